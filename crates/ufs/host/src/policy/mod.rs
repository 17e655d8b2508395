// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies of host memory for HPB maps: what is loaded, what makes room, and which reads go without an entry although
//! there is one. A policy sees what the host itself sees: reads, writes, how long its reads took, and what was loaded
//! and dropped. It knows neither commands, tags nor memory (`hpb::managed` has them), and nothing of the device's
//! tables.
//!
//! Two policies are not here because they are the driver of Linux: `linux-dcm` (`hpb::notify`) and `linux-hcm`
//! (`hpb::hcm`). The others run in host control mode. One more is a file here, a variant of [`ManagedPolicy`] and one
//! of [`Policy`].

mod apps;
mod cost_aware;
mod costs;
mod device_reads;
mod dirty_refresh;
mod exclusive;
mod lfu;
mod lru;
mod preload;
mod reads;
mod sram_aware;
#[cfg(test)]
mod tests;

use crate::config::HpbOptions;
use crate::ids::SubRegionId;
use cost_aware::CostAware;
pub(crate) use device_reads::{Age, DeviceReads};
use dirty_refresh::DirtyRefresh;
use exclusive::Exclusive;
use lfu::Lfu;
use lru::Lru;
use preload::Preload;
use readpath_kit::Ns;
use readpath_proto::hpb::Control;
use sram_aware::SramAware;

readpath_kit::named! {
    /// A policy of this host's own, by what it is called.
    pub enum ManagedPolicy {
        /// Loads what is read without an entry; the least recently read makes room.
        Lru = "lru",
        /// Loads what is read more often than what would make room for it.
        Lfu = "lfu",
        /// Loads when the reads that it would have served have cost as much as a load, and again more than the
        /// victim's.
        CostAware = "cost-aware",
        /// Loads what the launched application read the last time, or what was read next when the same was read before.
        Preload = "preload",
        /// As `cost-aware`, and reads without an entry where the device is likely to hold the map itself.
        SramAware = "sram-aware",
        /// Loads again what is held, when reads of entries that were written have cost as much as a load.
        DirtyRefresh = "dirty-refresh",
        /// Loads what is about to leave the device's SRAM and was missed twice, or once if the load costs nothing.
        Exclusive = "exclusive",
    }
}

/// Any policy that a user can choose: one of Linux's two, or one of this host's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyChoice {
    /// The device recommends, and the host follows.
    LinuxDcm,
    /// The host counts as Linux does.
    LinuxHcm,
    /// A policy of this host's own.
    Managed(ManagedPolicy),
}

impl PolicyChoice {
    /// All of them, Linux's first.
    pub const ALL: [PolicyChoice; 9] = [
        PolicyChoice::LinuxDcm,
        PolicyChoice::LinuxHcm,
        PolicyChoice::Managed(ManagedPolicy::Lru),
        PolicyChoice::Managed(ManagedPolicy::Lfu),
        PolicyChoice::Managed(ManagedPolicy::CostAware),
        PolicyChoice::Managed(ManagedPolicy::Preload),
        PolicyChoice::Managed(ManagedPolicy::SramAware),
        PolicyChoice::Managed(ManagedPolicy::DirtyRefresh),
        PolicyChoice::Managed(ManagedPolicy::Exclusive),
    ];

    /// Its name in files and on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyChoice::LinuxDcm => "linux-dcm",
            PolicyChoice::LinuxHcm => "linux-hcm",
            PolicyChoice::Managed(policy) => policy.name(),
        }
    }

    /// The control mode that the device has to be configured for.
    pub const fn mode(self) -> Control {
        match self {
            PolicyChoice::LinuxDcm => Control::Device,
            PolicyChoice::LinuxHcm | PolicyChoice::Managed(_) => Control::Host,
        }
    }

    /// The policy, if it is one of this host's own.
    pub const fn managed(self) -> Option<ManagedPolicy> {
        match self {
            PolicyChoice::Managed(policy) => Some(policy),
            PolicyChoice::LinuxDcm | PolicyChoice::LinuxHcm => None,
        }
    }

    /// The policy with this name.
    pub fn by_name(name: &str) -> Option<PolicyChoice> {
        PolicyChoice::ALL.into_iter().find(|p| p.name() == name)
    }
}

/// A sub-region that a read is about to touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touch {
    /// Its index in the unit.
    pub sub_region: SubRegionId,
    /// Its map is held and may be used.
    pub held: bool,
    /// None of the blocks that are read has been written since it was loaded. False if it is not held.
    pub clean: bool,
    /// The read is short enough for an HPB READ. If not, it goes to the device without an entry whatever is held.
    pub eligible: bool,
    /// It is a read of one block, whose time [`MapPolicy::timed`] will tell.
    pub timed: bool,
    /// The device does not need its map for this, or has just needed it: it reads no map page even without an entry.
    /// False if nobody keeps track of that, as for most policies.
    pub recent: bool,
}

/// What a policy makes of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Wish {
    /// The sub-region is to be loaded, or loaded again.
    pub load: bool,
    /// The read is to go without an entry, even if there is one.
    pub plain: bool,
}

impl Wish {
    pub(crate) const fn load_if(load: bool) -> Wish {
        Wish { load, plain: false }
    }
}

/// What ended, of commands whose time is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timed {
    Read,
    HpbRead,
    Load,
}

/// What a policy is asked and told. All of it happens in the middle of traffic: nothing here may allocate, or walk a
/// table as long as the unit but now and then, as counters are halved: once in a thousand reads at most, and ten for
/// each map that is held.
pub(crate) trait MapPolicy {
    /// A read touches a sub-region. Asked for every read, also for those that are too long for HPB.
    fn read(&mut self, touch: &Touch) -> Wish;

    /// A command took so long, from leaving the host to its reply, and in between a map was being loaded or not.
    fn timed(&mut self, _sub_region: SubRegionId, _what: Timed, _took: Ns, _beside_load: bool) {}

    /// Whether a held map with entries out of date is loaded again because the device advises it.
    fn heeds_advice(&self) -> bool {
        true
    }

    /// The device has not needed the map of a sub-region for a while, and may soon forget it; `in_sram`: has probably
    /// not yet. Whether it is to be loaded while the device has nothing else to do.
    fn loads_when_idle(&self, _sub_region: SubRegionId, _in_sram: bool) -> bool {
        false
    }

    /// The same, whether it is to be loaded at once, beside so many other commands.
    fn loads_beside(&self, _sub_region: SubRegionId, _commands: u32) -> bool {
        false
    }

    /// The map of a sub-region has come.
    fn loaded(&mut self, sub_region: SubRegionId);

    /// A sub-region is not held any more.
    fn dropped(&mut self, sub_region: SubRegionId);

    /// What makes room. With a `candidate`, that is to be worth more than the victim; without one, memory has to
    /// shrink. Only what is `free` to go may be named; `None` if nothing is, or nothing is worth less.
    fn victim(&mut self, candidate: Option<SubRegionId>, free: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId>;

    /// The system says which application comes to the foreground: any number that means it. Only some systems do.
    fn foreground(&mut self, _app: u32) {}

    /// What else is to be loaded after a read or a launch, one at a time, until `None`. `held` says what need not be.
    fn more(&mut self, _held: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId> {
        None
    }

    fn bytes(&self) -> u64;
}

pub(crate) enum Policy {
    Lru(Lru),
    Lfu(Lfu),
    CostAware(CostAware),
    Preload(Preload),
    SramAware(SramAware),
    DirtyRefresh(DirtyRefresh),
    Exclusive(Exclusive),
}

macro_rules! ask {
    ($policy:expr, $p:ident => $what:expr) => {
        match $policy {
            Policy::Lru($p) => $what,
            Policy::Lfu($p) => $what,
            Policy::CostAware($p) => $what,
            Policy::Preload($p) => $what,
            Policy::SramAware($p) => $what,
            Policy::DirtyRefresh($p) => $what,
            Policy::Exclusive($p) => $what,
        }
    };
}

impl Policy {
    /// A policy for a unit of so many sub-regions, of which nothing is held.
    pub(crate) fn new(policy: ManagedPolicy, options: &HpbOptions, sub_regions: u32) -> Self {
        match policy {
            ManagedPolicy::Lru => Policy::Lru(Lru::new(sub_regions)),
            ManagedPolicy::Lfu => Policy::Lfu(Lfu::new(sub_regions)),
            ManagedPolicy::CostAware => Policy::CostAware(CostAware::new(sub_regions)),
            ManagedPolicy::Preload => Policy::Preload(Preload::new(sub_regions)),
            ManagedPolicy::SramAware => Policy::SramAware(SramAware::new(sub_regions)),
            ManagedPolicy::DirtyRefresh => Policy::DirtyRefresh(DirtyRefresh::new(sub_regions)),
            ManagedPolicy::Exclusive => Policy::Exclusive(Exclusive::new(sub_regions, options.exclusive.misses)),
        }
    }
}

impl MapPolicy for Policy {
    fn read(&mut self, touch: &Touch) -> Wish {
        ask!(self, p => p.read(touch))
    }

    fn timed(&mut self, sub_region: SubRegionId, what: Timed, took: Ns, beside_load: bool) {
        ask!(self, p => p.timed(sub_region, what, took, beside_load));
    }

    fn heeds_advice(&self) -> bool {
        ask!(self, p => p.heeds_advice())
    }

    fn loads_when_idle(&self, sub_region: SubRegionId, in_sram: bool) -> bool {
        ask!(self, p => p.loads_when_idle(sub_region, in_sram))
    }

    fn loads_beside(&self, sub_region: SubRegionId, commands: u32) -> bool {
        ask!(self, p => p.loads_beside(sub_region, commands))
    }

    fn loaded(&mut self, sub_region: SubRegionId) {
        ask!(self, p => p.loaded(sub_region));
    }

    fn dropped(&mut self, sub_region: SubRegionId) {
        ask!(self, p => p.dropped(sub_region));
    }

    fn victim(&mut self, candidate: Option<SubRegionId>, free: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId> {
        ask!(self, p => p.victim(candidate, free))
    }

    fn foreground(&mut self, app: u32) {
        ask!(self, p => p.foreground(app));
    }

    fn more(&mut self, held: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId> {
        ask!(self, p => p.more(held))
    }

    fn bytes(&self) -> u64 {
        size_of::<Policy>() as u64 + ask!(self, p => p.bytes())
    }
}
