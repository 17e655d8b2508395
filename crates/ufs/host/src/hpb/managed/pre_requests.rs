// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a pre-request pays, measured during the run. It costs a command, and saves the read of a map page if the
//! device does not hold it. Whether the device holds it depends on how long ago it needed that map ([`Age`]). So for
//! each age this measures how much longer reads without entries take than reads of maps that the device surely holds,
//! and for pre-requests the same. Only reads that have the device to themselves are compared: others wait for each
//! other.
//!
//! Until there are enough measurements, pre-requests are sent for maps that the device did not need recently. At
//! times a pre-request that seems not to pay is sent, and one that seems to pay is left out.

use crate::policy::Age;

/// How a read was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// Without an entry; the device needed its oldest map this long ago.
    Plain(Age),
    /// Behind a pre-request.
    PreRequest,
    /// Otherwise, or with other commands in flight.
    Other,
}

/// A running mean over about 256 values, in ns.
#[derive(Clone, Copy, Default)]
struct Mean {
    /// In 1/256 ns.
    scaled: i64,
    values: u32,
}

const SHIFT: u32 = 8;
/// Values before a mean counts.
const ENOUGH: u32 = 32;
/// A time counts as at most this many means: one that waited for an erase says nothing about maps.
const MOST_MEANS: i64 = 4;
/// One of this many reads is sent against the rule: before there are enough measurements; below, afterwards.
const TRY_AT_FIRST: u32 = 64;
const TRY: u32 = 512;
/// Longest time, an hour: no sum can overflow.
const MOST_NS: u64 = 3_600_000_000_000;
/// Classes of reads by length: 8 blocks each.
const LENGTHS: usize = 32;

impl Mean {
    fn add(&mut self, value: i64) {
        self.values = self.values.saturating_add(1);
        // The mean of all values, until there are enough for a running one.
        let weight = i64::from(self.values.min(1 << SHIFT));
        self.scaled += ((value << SHIFT) - self.scaled) / weight;
    }

    fn ns(&self) -> Option<i64> {
        (self.values >= ENOUGH).then_some(self.scaled >> SHIFT)
    }
}

/// Mean times that decide whether a pre-request pays.
pub(super) struct PreRequestGain {
    /// Reads of maps that the device has just needed, by length.
    held: [Mean; LENGTHS],
    /// How much longer reads take without entries, by age; below, behind a pre-request.
    plain: [Mean; Age::COUNT],
    pre_request: Mean,
    since_try: u32,
}

impl PreRequestGain {
    pub(super) fn new() -> Self {
        let none = Mean::default();
        PreRequestGain { held: [none; LENGTHS], plain: [none; Age::COUNT], pre_request: none, since_try: 0 }
    }

    /// Whether a read is to be preceded by a pre-request.
    pub(super) fn pays(&mut self, age: Age) -> bool {
        let known = self.plain[age.row()].ns().zip(self.pre_request.ns());
        let pays = known.map_or(age != Age::IN_WINDOW, |(plain, pre_request)| plain > pre_request);
        self.since_try += 1;
        let tries = self.since_try >= if known.is_some() { TRY } else { TRY_AT_FIRST };
        if tries {
            self.since_try = 0;
        }
        pays != tries
    }

    /// Notes the time of a read that was alone.
    pub(super) fn timed(&mut self, route: Route, blocks: u32, took: u64) {
        let held = &mut self.held[(blocks as usize / 8).min(LENGTHS - 1)];
        let mut took = took.min(MOST_NS) as i64;
        let mean = held.ns();
        if let Some(mean) = mean {
            took = took.min(mean * MOST_MEANS);
        }
        if route == Route::Plain(Age::IN_WINDOW) {
            held.add(took);
        }
        let Some(mean) = mean else { return };
        match route {
            Route::Plain(age) => self.plain[age.row()].add(took - mean),
            Route::PreRequest => self.pre_request.add(took - mean),
            Route::Other => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Id, SubRegionId};
    use crate::policy::DeviceReads;
    use readpath_kit::Prng;

    const MISS: u64 = 66_000;
    const PRE_REQUEST: u64 = 6_000;

    /// Reads of 16 to 128 blocks, uniform over `units` maps with all entries, on a device that holds `frames` maps.
    /// Returns the share of pre-requests, and the mean time above that of reads without misses, in the last quarter.
    fn play(units: u64, frames: usize, choose: impl Fn(&mut PreRequestGain, Age) -> bool) -> (f64, f64) {
        let (mut rng, mut pays) = (Prng::new(5), PreRequestGain::new());
        let mut device = DeviceReads::new(units as u32);
        let mut cache: Vec<u64> = Vec::new();
        let (mut sent, mut extra, reads) = (0u64, 0u64, 40_000u64);
        for i in 0..4 * reads {
            let unit = rng.below(units);
            let id = SubRegionId::new(unit as u32);
            let blocks = 16 << rng.below(4);
            let age = device.age(id);
            let (route, more) = if choose(&mut pays, age) {
                (Route::PreRequest, PRE_REQUEST)
            } else {
                let hit = cache.contains(&unit);
                cache.retain(|&c| c != unit);
                cache.push(unit);
                if cache.len() > frames {
                    cache.remove(0);
                }
                device.read(id);
                (Route::Plain(age), if hit { 0 } else { MISS })
            };
            // Times differ by more than a pre-request costs.
            pays.timed(route, blocks, 100_000 + u64::from(blocks) * 2_000 + rng.below(40_000) + more);
            if i >= 3 * reads {
                sent += u64::from(route == Route::PreRequest);
                extra += more;
            }
        }
        (sent as f64 / reads as f64, extra as f64 / reads as f64)
    }

    #[test]
    fn pre_requests_are_sent_where_they_pay() {
        let measured = |units, frames| play(units, frames, PreRequestGain::pays);
        let always = |units, frames| play(units, frames, |_, _| true);
        let never = |units, frames| play(units, frames, |_, _| false);
        // The device holds all maps: nearly no pre-requests, and nearly no time is lost.
        let (sent, extra) = measured(60, 64);
        assert!(sent < 0.02 && extra < 200.0, "{sent} {extra}");
        assert!(always(60, 64).1 > 5_900.0 && never(60, 64).1 < 1.0);
        // It holds few of them: nearly always pre-requests, and as fast as with all.
        let (sent, extra) = measured(1000, 64);
        assert!(sent > 0.8 && extra < always(1000, 64).1 * 1.05, "{sent} {extra}");
        assert!(never(1000, 64).1 > 60_000.0);
        // It holds fewer than is assumed of any device.
        let (_, extra) = measured(200, 2);
        assert!(extra < 9_000.0, "{extra}");
    }
}
