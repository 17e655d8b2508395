// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sram-aware`: where the device holds the map itself, an entry saves nothing and its check costs a little; such reads
//! go without one. The device does not say what its SRAM holds. But a READ makes it load the map, so a list of the
//! sub-regions that were last read without an entry is a guess at its content, as long as it is not longer than the
//! SRAM. How long it may be is learned from how often a READ of what is in the list takes long, beside how often an HPB
//! READ does.
//!
//! What the host loads, and what makes room, is decided as in `cost-aware`.

use super::cost_aware::CostAware;
use super::costs::Mean;
use super::{MapPolicy, Timed, Touch, Wish};
use crate::ids::{IdList, SubRegionId};
use readpath_kit::Ns;

/// Sub-regions that any device is believed to hold at first.
const AT_FIRST: u32 = 2;
/// Reads of the list between two judgements of its length, and while it has never been too long.
const WINDOW: u32 = 512;
const FIRST_WINDOW: u32 = 64;
/// Reads with entries before anything is judged.
const ENOUGH: u32 = 64;
/// Of so many reads of the list one goes with an entry, for comparison.
const COMPARE: u32 = 64;
/// Windows without growth after the list was too long, at most.
const MOST_PATIENCE: u32 = 1 << 12;
/// Share of slow reads, in 1/65536, that is too much: 1/64. What a load of the map takes is about that many times what
/// the check of an entry takes, so the list gains nothing beyond.
const TOO_SLOW: u32 = 1 << 10;

/// A share of reads lately, about the last 512, in 1/65536.
#[derive(Clone, Copy, Default)]
struct Share(u32);

impl Share {
    /// Two standard deviations of the difference between two such shares that are in truth the same.
    fn doubt(self) -> u32 {
        // The variance of a share p, so averaged, is about p / 1024; that of a difference twice as much.
        2 * (u64::from(self.0) << 16 >> 9).isqrt() as u32
    }

    fn add(&mut self, slow: bool) {
        self.0 = self.0 - (self.0 >> 9) + if slow { 1 << 7 } else { 0 };
    }
}

/// Of a sub-region in the list: it was in the list when its last read was sent, and that one has ended.
const KNOWN: u8 = 0x80;
/// The other bits count reads on their way since it was entered.
const ON_THE_WAY: u8 = 0x7F;

pub(crate) struct SramAware {
    host: CostAware,
    /// Sub-regions last read without an entry, the longest ago first.
    device: IdList<SubRegionId>,
    /// What is known of each of them.
    entered: Vec<u8>,
    /// How long that list may be, and can be.
    length: u32,
    longest: u32,
    /// Slow reads of what is in the list, and with entries.
    slow: Share,
    slow_with_entry: Share,
    /// Reads with entries so far.
    compared: u32,
    /// Reads of the list in this window, and windows until it may grow.
    reads: u32,
    wait: u32,
    patience: u32,
    /// The window before this one was too slow.
    warned: bool,
    /// It has never been too long, so it may double.
    never_too_long: bool,
    /// What a read takes with its entry, and the first of a sub-region that was not in the list.
    with_entry: Mean,
    first: Mean,
    /// Reads of the list until one goes with its entry.
    compare: u32,
}

impl SramAware {
    pub(crate) fn new(sub_regions: u32) -> Self {
        SramAware {
            host: CostAware::new(sub_regions),
            device: IdList::new(sub_regions),
            entered: vec![0; sub_regions as usize],
            length: AT_FIRST.min(sub_regions),
            longest: sub_regions,
            slow: Share::default(),
            slow_with_entry: Share::default(),
            compared: 0,
            reads: 0,
            wait: 0,
            patience: 1,
            warned: false,
            never_too_long: true,
            with_entry: Mean::default(),
            first: Mean::default(),
            compare: COMPARE,
        }
    }

    /// The device is about to look for this map, or to load it.
    fn device_reads(&mut self, sub_region: SubRegionId, timed: bool) {
        if self.device.contains(sub_region) {
            self.device.touch(sub_region);
        } else {
            self.device.add(sub_region);
            self.entered[sub_region] = 0;
            self.shorten();
        }
        let entered = &mut self.entered[sub_region];
        if timed && *entered < ON_THE_WAY {
            *entered += 1;
        }
    }

    fn shorten(&mut self) {
        while self.device.len() > self.length {
            self.device.pop_front();
        }
    }

    /// Whether a read took so long that it may have waited for a map: longer than half way from those that surely did
    /// not to those that probably did.
    fn is_slow(&self, took: u64) -> bool {
        let Some(quick) = self.with_entry.ns() else { return false };
        let slow = self.first.ns().unwrap_or(0);
        took > quick + slow.saturating_sub(quick).max(quick * 3 / 4) / 2
    }

    /// A read of what was in the list when it was sent has ended.
    fn judge(&mut self, slow: bool) {
        if self.compared < ENOUGH {
            // Nobody knows what is slow.
            return;
        }
        self.slow.add(slow);
        self.reads += 1;
        if self.reads < if self.never_too_long { FIRST_WINDOW } else { WINDOW } {
            return;
        }
        self.reads = 0;
        let too_slow = self.slow.0 > self.slow_with_entry.0 + TOO_SLOW + self.slow_with_entry.doubt();
        // Slow reads come in bunches, whatever their reason.
        if too_slow && !self.warned {
            self.warned = true;
            return;
        }
        self.warned = false;
        if too_slow {
            self.length = (self.length - (self.length / 8).max(1)).max(1);
            self.shorten();
            self.never_too_long = false;
            self.patience = (self.patience * 2).min(MOST_PATIENCE);
            self.wait = self.patience;
            self.slow = self.slow_with_entry;
        } else if self.wait > 0 {
            self.wait -= 1;
        } else if self.device.len() == self.length {
            let more = if self.never_too_long { self.length } else { (self.length / 16).max(1) };
            self.length = (self.length + more).min(self.longest);
        }
    }
}

impl MapPolicy for SramAware {
    fn read(&mut self, touch: &Touch) -> Wish {
        let usable = touch.eligible && touch.clean;
        let listed = self.device.contains(touch.sub_region);
        let wish = self.host.read(touch);
        if usable && listed {
            self.compare -= 1;
            if self.compare == 0 {
                self.compare = COMPARE;
                return wish;
            }
        }
        // While the list may grow, it is tried what the device makes of one more.
        let plain = !usable || listed || self.device.len() < self.length;
        if plain {
            self.device_reads(touch.sub_region, touch.timed);
        }
        Wish { plain: usable && plain, ..wish }
    }

    fn timed(&mut self, sub_region: SubRegionId, what: Timed, took: Ns, beside_load: bool) {
        match what {
            Timed::Load => self.host.timed(sub_region, what, took, beside_load),
            Timed::HpbRead => {
                let slow = self.is_slow(took.0);
                self.slow_with_entry.add(slow);
                self.compared = self.compared.saturating_add(1);
                self.with_entry.add(took);
                self.host.timed(sub_region, what, took, beside_load);
            }
            Timed::Read => {
                let slow = self.is_slow(took.0);
                let listed = self.device.contains(sub_region);
                let entered = &mut self.entered[sub_region];
                if listed && *entered & KNOWN != 0 {
                    return self.judge(slow);
                }
                self.host.timed(sub_region, what, took, beside_load);
                if listed {
                    // It, or one sent before it, made the device load the map.
                    self.first.add(took);
                    *entered = entered.saturating_sub(1);
                    if *entered == 0 {
                        *entered = KNOWN;
                    }
                }
            }
        }
    }

    fn loaded(&mut self, sub_region: SubRegionId) {
        self.host.loaded(sub_region);
    }

    fn dropped(&mut self, sub_region: SubRegionId) {
        self.host.dropped(sub_region);
    }

    fn victim(&mut self, candidate: Option<SubRegionId>, free: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId> {
        self.host.victim(candidate, free)
    }

    fn bytes(&self) -> u64 {
        self.host.bytes() + self.device.bytes() + self.entered.len() as u64
    }
}
