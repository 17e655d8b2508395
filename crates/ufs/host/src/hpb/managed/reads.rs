// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles every read and write of a managed unit, and the times of its commands: it asks the policy, and updates its
//! view of the device. Nothing is loaded here.

use super::{ManagedDriver, Route};
use crate::hpb::Common;
use crate::hpb::table::MapTable;
use crate::ids::SubRegionId;
use crate::policy::{Age, MapPolicy, Timed, Touch};
use readpath_kit::Ns;
use readpath_proto::typed::SubRegion;

/// A command whose time was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimedWhat {
    Read {
        block: u32,
        blocks: u32,
        route: Route,
        /// It was an HPB READ.
        with_entry: bool,
    },
    /// An HPB READ BUFFER.
    Load(SubRegion),
}

impl ManagedDriver {
    /// Asks the policy about a read before it is sent. Returns whether it has to go without its entry, because a
    /// pre-request would not pay.
    #[inline(never)]
    pub(in crate::hpb) fn sends_plain(&mut self, common: &mut Common, block: u32, blocks: u32) -> bool {
        let eligible = blocks <= common.max_blocks;
        let (mut usable, mut oldest) = (eligible, None);
        for part in common.table.parts(block, blocks) {
            let sub_region = part.sub_region;
            let held = common.table.is_valid(sub_region);
            let clean = common.table.is_clean(part);
            let age = self.view.as_ref().map(|view| view.age(part));
            oldest = oldest.max(age.flatten());
            let recent = age.is_some_and(|age| age.is_none_or(|age| age == Age::IN_WINDOW));
            let wanted = self.policy.read(&Touch { sub_region, held, clean, eligible, timed: blocks == 1, recent });
            if wanted && !common.table.is_loading(sub_region) {
                common.kicked = true;
                common.counters.refuse_cnt += u64::from(!self.want(sub_region));
            }
            usable &= clean;
        }
        let needs_pre_request = usable && blocks > common.single_blocks;
        let plain = needs_pre_request && self.avoids_pre_request(oldest);
        self.note_route(common, (block, blocks), !plain && usable, oldest);
        common.counters.plain_cnt += u64::from(plain);
        plain
    }

    /// Notes whether a read of these blocks is sent with entries, and how long ago the device needed its oldest map.
    fn note_route(
        &mut self,
        common: &mut Common,
        (block, blocks): (u32, u32),
        with_entries: bool,
        oldest: Option<Age>,
    ) {
        if self.view.is_none() {
            return;
        }
        if with_entries {
            let has_pre_request = blocks > common.single_blocks;
            return self.set_route(if has_pre_request { Route::PreRequest } else { Route::Other });
        }
        self.set_route(oldest.map_or(Route::Other, Route::Plain));
        for part in common.table.parts(block, blocks) {
            common.kicked |= self.device_reads(part);
        }
    }

    pub(in crate::hpb) fn note_written(&mut self, common: &mut Common, block: u32, blocks: u32) {
        if let Some(view) = &mut self.view {
            common.table.parts(block, blocks).for_each(|part| view.note_written(part));
        }
    }

    /// Notes the time of a command, with `others` commands in flight or waiting at its end.
    pub(in crate::hpb) fn timed(&mut self, table: &MapTable, now: Ns, what: TimedWhat, took: Ns, others: u32) {
        let geometry = table.geometry();
        let (srgn, what) = match what {
            TimedWhat::Read { block, blocks, with_entry, route } => {
                if let Some(view) = &mut self.view {
                    view.timed(route, blocks, took, others);
                }
                // The answer for a block that does not exist says nothing about maps.
                if blocks > 1 || block >= geometry.logical_blocks() {
                    return;
                }
                (SubRegionId::of_block(geometry, block), if with_entry { Timed::HpbRead } else { Timed::Read })
            }
            TimedWhat::Load(at) => (SubRegionId::named(geometry, at), Timed::Load),
        };
        let sent = now.saturating_sub(took);
        let during_load = self.in_flight > 0 || self.loaded_at > sent;
        if what == Timed::Load {
            self.loaded_at = now;
        }
        self.policy.timed(srgn, what, took, during_load);
    }
}
