// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of policies: name, type, meaning and constructor of each. Command line, errors, schema, reference pages,
//! the random test and `reproduce policies` derive from it.

use super::cost_aware::CostAware;
use super::exclusive::Exclusive;
use super::lru::Lru;
use super::{MapPolicy, Timed, Touch};
use crate::config::HpbOptions;
use crate::ids::SubRegionId;
use readpath_kit::Ns;
use readpath_proto::hpb::Control;

/// Derives everything that exists once for each policy from the table.
macro_rules! policies {
    (
        linux {
            $($(#[$linux_doc:meta])* $linux:ident = $linux_name:literal, $control:expr, $linux_meaning:literal;)+
        }
        managed {
            $($(#[$doc:meta])* $variant:ident = $name:literal, $type:ty, $meaning:literal, $new:expr;)+
        }
    ) => {
        readpath_kit::named! {
            /// A policy of this host.
            pub enum ManagedPolicy {
                $($(#[$doc])* $variant = $name,)+
            }
        }

        /// Any policy that a user can choose: one of Linux's two, or one of this host.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum PolicyChoice {
            $($(#[$linux_doc])* $linux,)+
            /// A policy of this host.
            Managed(ManagedPolicy),
        }

        impl PolicyChoice {
            /// All policies, Linux's first.
            pub const ALL: [PolicyChoice; [$($linux_name,)+ $($name),+].len()] =
                [$(PolicyChoice::$linux,)+ $(PolicyChoice::Managed(ManagedPolicy::$variant)),+];

            /// Its name in files and on command lines.
            pub const fn name(self) -> &'static str {
                match self {
                    $(PolicyChoice::$linux => $linux_name,)+
                    PolicyChoice::Managed(policy) => policy.name(),
                }
            }

            /// What it loads and what it evicts, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(PolicyChoice::$linux => $linux_meaning,)+
                    $(PolicyChoice::Managed(ManagedPolicy::$variant) => $meaning,)+
                }
            }

            /// The control mode that the device must have.
            pub const fn mode(self) -> Control {
                match self {
                    $(PolicyChoice::$linux => $control,)+
                    PolicyChoice::Managed(_) => Control::Host,
                }
            }
        }

        /// The policy of one unit.
        pub(crate) enum Policy {
            $($variant($type),)+
        }

        impl Policy {
            /// A policy for a unit of `sub_regions` sub-regions, none of which is held.
            pub(crate) fn new(policy: ManagedPolicy, options: &HpbOptions, sub_regions: u32) -> Self {
                match policy {
                    $(ManagedPolicy::$variant => Policy::$variant($new(options, sub_regions)),)+
                }
            }
        }

        impl MapPolicy for Policy {
            fn read(&mut self, touch: &Touch) -> bool {
                match self { $(Policy::$variant(p) => p.read(touch),)+ }
            }

            fn timed(&mut self, sub_region: SubRegionId, what: Timed, took: Ns, during_load: bool) {
                match self { $(Policy::$variant(p) => p.timed(sub_region, what, took, during_load),)+ }
            }

            fn heeds_advice(&self) -> bool {
                match self { $(Policy::$variant(p) => p.heeds_advice(),)+ }
            }

            fn loads_when_idle(&self, sub_region: SubRegionId, in_sram: bool) -> bool {
                match self { $(Policy::$variant(p) => p.loads_when_idle(sub_region, in_sram),)+ }
            }

            fn loads_at_once(&self, sub_region: SubRegionId, commands: u32) -> bool {
                match self { $(Policy::$variant(p) => p.loads_at_once(sub_region, commands),)+ }
            }

            fn loaded(&mut self, sub_region: SubRegionId) {
                match self { $(Policy::$variant(p) => p.loaded(sub_region),)+ }
            }

            fn dropped(&mut self, sub_region: SubRegionId) {
                match self { $(Policy::$variant(p) => p.dropped(sub_region),)+ }
            }

            fn victim(
                &mut self,
                candidate: Option<SubRegionId>,
                free: impl Fn(SubRegionId) -> bool,
            ) -> Option<SubRegionId> {
                match self { $(Policy::$variant(p) => p.victim(candidate, free),)+ }
            }

            fn bytes(&self) -> u64 {
                match self { $(Policy::$variant(p) => p.bytes(),)+ }
            }
        }
    };
}

policies! {
    linux {
        /// The device recommends, and the host follows.
        LinuxDcm = "linux-dcm", Control::Device,
            "loads what the device recommends; evicts the region that the device names, or the one activated first \
             (Linux 6.1, [device control mode](hpb-modes.md))";
        /// The host counts as Linux does.
        LinuxHcm = "linux-hcm", Control::Host,
            "loads sub-regions after eight reads; evicts a region with few reads, and regions not read for a while \
             (Linux 6.1, host control mode)";
    }
    managed {
        /// Loads what is read without an entry; the least recently read makes room.
        Lru = "lru", Lru,
            "loads every sub-region read without an entry; evicts the least recently used",
            |_: &HpbOptions, sub_regions| Lru::new(sub_regions);
        /// Loads when the reads that it would have served have cost as much as a load, and again more than the
        /// victim's.
        CostAware = "cost-aware", CostAware,
            "loads a sub-region whose reads without an entry have cost as much as a load, and more than the victim \
             saves; evicts the one that saves least",
            |_: &HpbOptions, sub_regions| CostAware::new(sub_regions);
        /// Loads what is about to leave the device's SRAM and was missed twice, or once if the load costs nothing.
        Exclusive = "exclusive", Exclusive,
            "loads what has left the device's SRAM, or is about to: after two misses, or after one if the load costs \
             nothing, [while the device is idle](#exclusive); evicts as `cost-aware`, with a bounded margin",
            |options: &HpbOptions, sub_regions| Exclusive::new(sub_regions, options.exclusive.misses);
    }
}

impl PolicyChoice {
    /// The policy, if it is one of this host.
    pub const fn managed(self) -> Option<ManagedPolicy> {
        match self {
            PolicyChoice::Managed(policy) => Some(policy),
            PolicyChoice::LinuxDcm | PolicyChoice::LinuxHcm => None,
        }
    }

    /// The names of all policies, separated by commas.
    pub fn names() -> String {
        PolicyChoice::ALL.map(PolicyChoice::name).join(", ")
    }
}
