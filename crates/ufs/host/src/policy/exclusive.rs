// SPDX-License-Identifier: MIT OR Apache-2.0
//! `exclusive`: host memory holds what the device's SRAM does not (exclusive caching: T. M. Wong and J. Wilkes,
//! USENIX 2002). A READ brings a map into SRAM, which then serves the next reads. Only a map that is about to leave
//! SRAM is worth a load, and a load of a map that is still in SRAM reads no map page.
//! - A miss is a read without an entry of a map that the device has not just read. The second miss justifies a load:
//!   by then not loading has cost as much as a load. One miss is enough if the load itself costs nothing: no request
//!   waits for it, and SRAM probably still holds the map.
//! - Reads that are too long for an entry bring the map into SRAM in any case, so each cancels a miss.
//! - A load delays each of the other commands in flight by about the cost of a miss, so it waits until the device is
//!   idle, unless there have been more misses than there are commands.
//! - Victims are chosen as in `cost-aware`, with a margin that stays small.

use super::cost_aware::CostAware;
use super::{MapPolicy, Timed, Touch};
use crate::ids::SubRegionId;
use readpath_kit::Ns;

/// The greatest margin by which a newcomer must have been read more often than the victim. Counters are halved after
/// ten reads for each held map, so a larger margin would end all replacements.
const MOST_MARGIN: u32 = 15;

/// The policy `exclusive`.
pub(crate) struct Exclusive {
    host: CostAware,
    /// Misses of each sub-region since it was last held.
    missed: Vec<u8>,
    /// Misses that justify a load.
    enough: u8,
}

impl Exclusive {
    pub(crate) fn new(sub_regions: u32, enough: u8) -> Self {
        let missed = vec![0; sub_regions as usize];
        let host = CostAware::new(sub_regions).with_most_margin(MOST_MARGIN);
        Exclusive { host, missed, enough }
    }
}

impl MapPolicy for Exclusive {
    fn read(&mut self, touch: &Touch) -> bool {
        self.host.read(touch);
        if !touch.recent {
            let missed = &mut self.missed[touch.sub_region];
            match (touch.eligible, touch.clean) {
                (false, _) => *missed = missed.saturating_sub(1),
                (true, false) => *missed = missed.saturating_add(1),
                (true, true) => {}
            }
        }
        false
    }

    fn timed(&mut self, sub_region: SubRegionId, what: Timed, took: Ns, during_load: bool) {
        self.host.timed(sub_region, what, took, during_load);
    }

    /// Reads of outdated entries already count as misses.
    fn heeds_advice(&self) -> bool {
        false
    }

    fn loads_when_idle(&self, sub_region: SubRegionId, in_sram: bool) -> bool {
        let missed = self.missed[sub_region];
        missed >= self.enough || (missed > 0 && in_sram)
    }

    fn loads_at_once(&self, sub_region: SubRegionId, commands: u32) -> bool {
        let missed = self.missed[sub_region];
        missed >= self.enough && u32::from(missed) > commands
    }

    fn loaded(&mut self, sub_region: SubRegionId) {
        self.missed[sub_region] = 0;
        self.host.loaded(sub_region);
    }

    fn dropped(&mut self, sub_region: SubRegionId) {
        self.host.dropped(sub_region);
    }

    fn victim(&mut self, candidate: Option<SubRegionId>, free: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId> {
        self.host.victim(candidate, free)
    }

    fn bytes(&self) -> u64 {
        self.host.bytes() + self.missed.len() as u64
    }
}
