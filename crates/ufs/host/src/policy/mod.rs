// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies of host memory for HPB maps: what is loaded, and what makes room. A policy sees what the host itself sees:
//! reads, writes, how long its reads took, and what was loaded and dropped. It knows neither commands, tags nor memory
//! (`hpb::managed` has them), and nothing of the device's tables.
//!
//! [`table`] lists them. Two policies are rows without code here because they are the driver of Linux (`hpb::linux`);
//! the others run in host control mode.

mod cost_aware;
mod costs;
mod device_reads;
mod exclusive;
mod lru;
mod reads;
mod table;
#[cfg(test)]
mod tests;

use crate::ids::SubRegionId;
pub(crate) use device_reads::{Age, DeviceReads};
use readpath_kit::Ns;
pub(crate) use table::Policy;
pub use table::{ManagedPolicy, PolicyChoice};

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
    /// It is a read of one block, whose time [`MapPolicy::timed`] will report.
    pub timed: bool,
    /// The device does not need its map for this read, or has just needed it: it reads no map page even without an
    /// entry. False if this is not tracked, as for most policies.
    pub recent: bool,
}

/// What ended, of commands whose time is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timed {
    Read,
    HpbRead,
    Load,
}

/// What a policy decides and what it is notified of. All of it happens in the middle of traffic: nothing here may
/// allocate. Tables as long as the unit may be walked only when counters are halved: at most once in 1024 reads, and in
/// ten reads for each map that is held.
pub(crate) trait MapPolicy {
    /// A read touches a sub-region. Whether the sub-region is to be loaded, or loaded again. Called for every read,
    /// also for those that are too long for HPB.
    fn read(&mut self, touch: &Touch) -> bool;

    /// A command took `took` from leaving the host to its reply; `during_load`: a map was being loaded meanwhile.
    fn timed(&mut self, _sub_region: SubRegionId, _what: Timed, _took: Ns, _during_load: bool) {}

    /// Whether a held map with entries out of date is loaded again because the device advises it.
    fn heeds_advice(&self) -> bool {
        true
    }

    /// The device has not needed the map of a sub-region for a while, and may soon evict it; `in_sram`: probably it
    /// has not yet. Whether the map is to be loaded while the device is idle.
    fn loads_when_idle(&self, _sub_region: SubRegionId, _in_sram: bool) -> bool {
        false
    }

    /// The same, whether the map is to be loaded at once although so many other commands are in flight.
    fn loads_at_once(&self, _sub_region: SubRegionId, _commands: u32) -> bool {
        false
    }

    /// The map of a sub-region has been loaded.
    fn loaded(&mut self, sub_region: SubRegionId);

    /// A sub-region is not held any more.
    fn dropped(&mut self, sub_region: SubRegionId);

    /// The map to evict: for a `candidate`, one that is worth less; without one, memory has to shrink. Only what is
    /// `free` to go may be named; `None` if nothing is, or nothing is worth less.
    fn victim(&mut self, candidate: Option<SubRegionId>, free: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId>;

    /// Bytes of its tables.
    fn bytes(&self) -> u64;
}
