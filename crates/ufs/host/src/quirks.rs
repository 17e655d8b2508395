// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences between Linux 6.1 and this host, by name. A host with `strict_linux` has all of them, any other
//! none. `docs/hpb-modes.md` has the same list for users.

use crate::config::HpbOptions;

macro_rules! quirks {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Behaviour of Linux that this host improves on.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) struct Quirks {
            $($(#[$doc])* pub $name: bool,)+
        }

        impl Quirks {
            const NONE: Quirks = Quirks { $($name: false,)+ };
            const LINUX: Quirks = Quirks { $($name: true,)+ };
        }
    };
}

quirks! {
    /// Writes outside of the state PRESENT make no entry dirty (`ufshpb_prep` returns before).
    ignores_writes_unless_present,
    /// Writes during a load make no entry dirty: the bitmap is cleared when the load ends (`ufshpb_set_ppn_dirty`,
    /// `ufshpb_activate_subregion`).
    ignores_writes_during_loads,
    /// A load that failed counts as one that succeeded (`ufshpb_map_req_compl_fn`).
    trusts_failed_loads,
    /// Only notifications and timers start the worker; replies, tags and the ends of loads do not.
    worker_waits_for_notices,
    /// The worker ends its run at the first load that cannot be sent (`ufshpb_run_active_subregion_list`).
    first_blocked_load_ends_run,
    /// The worker sleeps until there is a tag for a load that has begun (`ufshpb_issue_map_req`, HPB_MAP_REQ_RETRIES).
    worker_sleeps_for_tags,
    /// After an HPB reset one sub-region of each active region is loaded again: regions have one UPDATE mark
    /// (`RGN_FLAG_UPDATE`), and pinned ones none.
    one_update_mark_per_region,
    /// Read counters continue when a region is dropped, beyond the one value that would activate it.
    counters_outlive_eviction,
    /// Timers stay stopped after a reset of the controller, until the next resume.
    timers_stop_at_reset,
    /// Queued work of host control mode is forgotten at a reset of the controller (`ufshpb_toggle_state`).
    forgets_queue_at_reset,
    /// A command in flight at a reset is sent again unchanged, loads too (`ufshcd_transfer_rsp_status`, DID_REQUEUE).
    resends_at_reset,
    /// A command that is sent again keeps its form and its entry, unless there is a new one.
    resends_old_entries,
    /// A refused HPB READ is an I/O error; it is not sent again as READ.
    reports_refused_hpb_reads,
    /// bQueueDepth is ignored; only a unit's own queue counts.
    ignores_device_queue_depth,
    /// BUSY, TASK SET FULL and unit attentions do not count as attempts (`scsi_decide_disposition`), and loads are sent
    /// again as well.
    retries_busy_without_end,
    /// A recommendation or a drop that is already queued is counted again.
    counts_queued_again,
    /// An HPB reset counts only if the notification names a unit with HPB.
    resets_need_hpb_unit,
    /// The worker is not started for the loads of a single pinned region.
    single_pinned_region_waits,
    /// HPB starts when as many units as bNumberLU have been seen: never if there are fewer, and not for later ones.
    counts_units_by_b_number_lu,
}

impl Quirks {
    /// The quirks of a host with these options. Policies and the prototype are not Linux's, and have none.
    pub(crate) fn of(options: Option<&HpbOptions>) -> Quirks {
        let is_linux = |o: &HpbOptions| o.strict_linux && o.policy.is_none() && o.prototype.is_none();
        if options.is_some_and(is_linux) { Quirks::LINUX } else { Quirks::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::ManagedPolicy;
    use readpath_proto::groups::GroupUpdate;

    #[test]
    fn only_a_strict_host_of_linux_s_own_has_quirks() {
        let strict = HpbOptions { strict_linux: true, ..HpbOptions::DEFAULT };
        assert_eq!(Quirks::of(Some(&strict)), Quirks::LINUX);
        let policy = HpbOptions { policy: Some(ManagedPolicy::Lru), ..strict };
        let prototype = HpbOptions { prototype: Some(GroupUpdate::Host), ..strict };
        for other in [None, Some(&HpbOptions::DEFAULT), Some(&policy), Some(&prototype)] {
            assert_eq!(Quirks::of(other), Quirks::NONE);
        }
    }
}
