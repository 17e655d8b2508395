// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies of host memory for HPB maps: which maps are loaded, and which are evicted. A policy sees what the host
//! sees: reads, writes, the times of its reads, loads and drops. It knows neither commands, tags nor memory
//! (`hpb::managed` does), nor the device's tables.
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
    /// Its number in the unit.
    pub sub_region: SubRegionId,
    /// Its map is held and may be used.
    pub held: bool,
    /// None of the read blocks has been written since it was loaded. False if it is not held.
    pub clean: bool,
    /// The read is short enough for an HPB READ. If not, it is sent without an entry.
    pub eligible: bool,
    /// It is a read of one block, whose time [`MapPolicy::timed`] will report.
    pub timed: bool,
    /// The device does not need its map for this read, or has just needed it: it reads no map page even without an
    /// entry. False if this is not tracked, as for most policies.
    pub recent: bool,
}

/// A command whose time is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timed {
    Read,
    HpbRead,
    Load,
}

/// Decisions of a policy, and its notifications. All calls happen during traffic, so they must not allocate. Tables
/// as long as the unit may be walked only when counters are halved: at most once in 1024 reads, and in ten reads for
/// each held map.
pub(crate) trait MapPolicy {
    /// Notes a read of a sub-region; returns whether it is to be loaded, or loaded again. Called for every read, also
    /// for those that are too long for HPB.
    fn read(&mut self, touch: &Touch) -> bool;

    /// A command took `took` from the host to its reply; `during_load`: a map was being loaded meanwhile.
    fn timed(&mut self, _sub_region: SubRegionId, _what: Timed, _took: Ns, _during_load: bool) {}

    /// Whether a held map with outdated entries is loaded again on the device's recommendation.
    fn heeds_advice(&self) -> bool {
        true
    }

    /// The device has not needed the map of a sub-region for a while, and may soon evict it; `in_sram`: it probably
    /// still holds it. Returns whether the map is to be loaded while the device is idle.
    fn loads_when_idle(&self, _sub_region: SubRegionId, _in_sram: bool) -> bool {
        false
    }

    /// Whether the map of [`MapPolicy::loads_when_idle`] is to be loaded at once although `commands` others are in
    /// flight.
    fn loads_at_once(&self, _sub_region: SubRegionId, _commands: u32) -> bool {
        false
    }

    /// The map of a sub-region has been loaded.
    fn loaded(&mut self, sub_region: SubRegionId);

    /// A sub-region is no longer held.
    fn dropped(&mut self, sub_region: SubRegionId);

    /// The map to evict: one that is worth less than `candidate`; without a candidate, to shrink memory. Only maps
    /// that are `free` to be evicted; `None` if there is none.
    fn victim(&mut self, candidate: Option<SubRegionId>, free: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId>;

    /// Bytes of its tables.
    fn bytes(&self) -> u64;
}
