// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run over its virtual time, in a bounded number of bins of equal length: the length of the run need not be known.
//! When the bins are full, every two become one, which loses nothing: counters are kept as they were at the end of each
//! bin, and counts of latencies add up. A request costs one more count and a sum; the rest is done a few hundred times
//! in a run.

use crate::drive::Hooks;
use crate::error::RunError;
use readpath_device::{DeviceStats, Probe};
use readpath_flash::DieSched;
use readpath_host::{HpbLu, SubRegionState};
use readpath_kit::Ns;
use readpath_stack::{Payload, Stack, Wire};
use readpath_workload::IoKind;
use serde::{Deserialize, Serialize};

const MOST_BINS: usize = 64;
/// The length of the first.
const FIRST_INTERVAL: Ns = Ns(100_000);
/// Rows of a map of regions at most.
const MOST_ROWS: usize = 16;

/// A run over time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Series {
    /// Virtual time of its beginning.
    pub from: Ns,
    /// Its bins, in order; all but the last are of one length.
    pub bins: Vec<Bin>,
    /// The entries of the map that the host held, by address, if it held any.
    pub regions: Option<Regions>,
}

/// What happened in one bin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bin {
    /// Virtual time of its end.
    pub to: Ns,
    /// What the device did.
    pub device: DeviceStats,
    /// Host memory for HPB at its end: maps, bitmaps and tables, in bytes.
    pub host_memory: u64,
    /// Sub-regions at its end whose entries the host could use.
    pub valid: u32,
    /// Latencies of the reads that ended in it, and of the writes.
    pub latency: [Latency; 2],
}

/// Latencies of requests.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// Requests that ended.
    pub ios: u64,
    /// Sum of their latencies.
    pub total: Ns,
    /// Median, at most 1/64 too high.
    pub p50: Ns,
    /// 99th percentile, at most 1/64 too high.
    pub p99: Ns,
}

/// Shares of addresses, of the first logical unit with HPB, whose entries the host could use.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Regions {
    /// First blocks of the rows, and the end of the last row. Blocks outside never had entries.
    pub blocks: Vec<u64>,
    /// Share of valid entries of each row at the end of each bin, 0 to 1.
    pub valid: Vec<Vec<f64>>,
}

/// Values below 2 to this power have a bucket each; buckets of larger values are 1/64 as wide as the values.
const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;
/// Latencies of 2^40 ns (18 minutes) and more are in the last bucket.
const BUCKETS: usize = (40 - SUB_BITS as usize + 1) << SUB_BITS;

/// Counts of latencies of one bin. The run's histograms have finer buckets and moments; they would cost each request
/// twice as much.
#[derive(Clone)]
struct Latencies {
    buckets: Box<[u32; BUCKETS]>,
    total_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies { buckets: Box::new([0; BUCKETS]), total_ns: 0 }
    }
}

impl Latencies {
    #[inline(always)]
    fn record(&mut self, ns: u64) {
        let shift = 63 - (ns | SUB).leading_zeros() - SUB_BITS;
        let bucket = (u64::from(shift << SUB_BITS) + (ns >> shift)).min(BUCKETS as u64 - 1);
        self.buckets[bucket as usize] += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
    }

    fn merge(&mut self, other: &Latencies) {
        self.buckets.iter_mut().zip(other.buckets.iter()).for_each(|(sum, one)| *sum += one);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
    }

    fn count(&self) -> u64 {
        self.buckets.iter().map(|&n| u64::from(n)).sum()
    }

    /// The latency that this share of all does not exceed: the largest of its bucket.
    fn quantile(&self, share: f64) -> Ns {
        let rank = ((share * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|&n| {
            seen += u64::from(n);
            seen >= rank
        });
        let bucket = bucket.map_or(0, |bucket| bucket as u64);
        if bucket < 2 * SUB {
            return Ns(bucket);
        }
        let shift = (bucket >> SUB_BITS) - 1;
        Ns((((bucket & (SUB - 1)) + SUB + 1) << shift) - 1)
    }
}

/// A bin that may still be joined with the next one.
struct Kept {
    to: Ns,
    /// Counted from the beginning of the device.
    device: DeviceStats,
    host_memory: u64,
    valid: u32,
    /// A bit for each sub-region of the unit that is shown.
    map: Vec<u64>,
    latency: [Latencies; 2],
}

struct Recording {
    from: Ns,
    interval: Ns,
    before: DeviceStats,
    kept: Vec<Kept>,
    /// Latencies of the bin in progress.
    latency: [Latencies; 2],
    blocks_per_sub_region: u64,
}

/// Keeps a run over time, as a hook; or keeps nothing.
pub struct Recorder {
    /// When the bin in progress ends.
    next: Ns,
    recording: Option<Box<Recording>>,
}

impl Recorder {
    /// A recorder that keeps nothing.
    pub fn off() -> Self {
        Recorder { next: Ns::NEVER, recording: None }
    }

    /// A recorder of a run that begins at `from`.
    pub fn new<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &Stack<S, X, P, W>, from: Ns) -> Self {
        let recording = Recording {
            from,
            interval: FIRST_INTERVAL,
            before: *stack.device.stats(),
            kept: Vec::with_capacity(MOST_BINS),
            latency: Default::default(),
            blocks_per_sub_region: shown_unit(stack).map_or(0, |hpb| u64::from(hpb.blocks_per_sub_region())),
        };
        Recorder { next: from + FIRST_INTERVAL, recording: Some(Box::new(recording)) }
    }

    /// The run so far, which ends at `now`.
    pub fn end<S: DieSched, X: Payload, P: Probe, W: Wire>(self, stack: &Stack<S, X, P, W>, now: Ns) -> Option<Series> {
        let mut recording = self.recording?;
        let last = recording.kept.last().map_or(recording.from, |bin| bin.to);
        if now > last || recording.latency.iter().any(|l| l.count() > 0) {
            recording.keep(stack, now.max(last));
        }
        Some(recording.series())
    }

    #[cold]
    fn close<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &Stack<S, X, P, W>) {
        let Some(recording) = &mut self.recording else { return };
        recording.keep(stack, self.next);
        if recording.kept.len() == MOST_BINS {
            recording.halve();
        }
        self.next += recording.interval;
    }
}

impl Hooks for Recorder {
    #[inline(always)]
    fn next_at(&self) -> Ns {
        self.next
    }

    fn happen<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
        _: u32,
    ) -> Result<Ns, RunError> {
        self.close(stack);
        Ok(now)
    }

    #[inline(always)]
    fn ended(&mut self, kind: IoKind, latency: Ns) {
        if let (Some(recording), IoKind::Read | IoKind::Write) = (&mut self.recording, kind) {
            recording.latency[kind as usize].record(latency.0);
        }
    }
}

impl Recording {
    fn keep<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &Stack<S, X, P, W>, to: Ns) {
        let host = &stack.host;
        let units = host.luns().filter_map(|lun| host.hpb(lun));
        let valid = units.map(|hpb| hpb.sub_region_states().iter().filter(is_valid).count() as u32).sum();
        let map = shown_unit(stack).map_or_else(Vec::new, |hpb| {
            let states = hpb.sub_region_states().chunks(64);
            states
                .map(|some| some.iter().rev().fold(0, |bits, state| bits << 1 | u64::from(is_valid(&state))))
                .collect()
        });
        let memory = host.all_memory().unwrap_or_default();
        self.kept.push(Kept {
            to,
            device: *stack.device.stats(),
            host_memory: memory.map_bytes + memory.bitmap_bytes + memory.table_bytes,
            valid,
            map,
            latency: std::mem::take(&mut self.latency),
        });
    }

    /// Every two bins become one of twice the length.
    fn halve(&mut self) {
        let mut bins = std::mem::take(&mut self.kept).into_iter();
        while let (Some(first), Some(mut second)) = (bins.next(), bins.next()) {
            second.latency.iter_mut().zip(&first.latency).for_each(|(sum, one)| sum.merge(one));
            self.kept.push(second);
        }
        self.interval = Ns(2 * self.interval.0);
    }

    fn series(self) -> Series {
        let mut before = self.before;
        let regions = regions(&self.kept, self.blocks_per_sub_region);
        let bin = |kept: Kept| {
            let device = kept.device.since(&before);
            before = kept.device;
            let latency = kept.latency.map(|all| Latency {
                ios: all.count(),
                total: Ns(all.total_ns),
                p50: all.quantile(0.5),
                p99: all.quantile(0.99),
            });
            Bin { to: kept.to, device, host_memory: kept.host_memory, valid: kept.valid, latency }
        };
        Series { from: self.from, bins: self.kept.into_iter().map(bin).collect(), regions }
    }
}

fn is_valid(state: &&SubRegionState) -> bool {
    **state == SubRegionState::Valid
}

/// HPB of the unit whose regions are shown.
fn shown_unit<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &Stack<S, X, P, W>) -> Option<&HpbLu> {
    stack.host.luns().find_map(|lun| stack.host.hpb(lun))
}

/// Shares of valid sub-regions, in as many rows as there are sub-regions with entries, but not more than [`MOST_ROWS`].
fn regions(kept: &[Kept], blocks: u64) -> Option<Regions> {
    let has = |bin: &Kept, at: usize| bin.map.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 == 1);
    let all = 64 * kept.iter().map(|bin| bin.map.len()).max()?;
    let first = (0..all).find(|&at| kept.iter().any(|bin| has(bin, at)))?;
    let end = 1 + (first..all).rfind(|&at| kept.iter().any(|bin| has(bin, at)))?;
    let each = (end - first).div_ceil(MOST_ROWS);
    let rows: Vec<(usize, usize)> = (first..end).step_by(each).map(|at| (at, (at + each).min(end))).collect();
    let share = |bin: &Kept, (from, to): (usize, usize)| {
        (from..to).filter(|&at| has(bin, at)).count() as f64 / (to - from) as f64
    };
    let mut edges: Vec<u64> = rows.iter().map(|&(from, _)| from as u64 * blocks).collect();
    edges.push(end as u64 * blocks);
    let valid = kept.iter().map(|bin| rows.iter().map(|&row| share(bin, row)).collect()).collect();
    Some(Regions { blocks: edges, valid })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(to: u64, map: Vec<u64>, latencies: &[u64]) -> Kept {
        let mut latency: [Latencies; 2] = Default::default();
        latencies.iter().for_each(|&ns| latency[0].record(ns));
        let device = DeviceStats { slices_written: to, ..DeviceStats::default() };
        Kept { to: Ns(to), device, host_memory: to, valid: 0, map, latency }
    }

    /// Two bins in one have all that was counted in them, and what was held at the end of the second.
    #[test]
    fn bins_are_joined_without_loss() {
        let mut recording = Recording {
            from: Ns(0),
            interval: Ns(10),
            before: DeviceStats::default(),
            kept: (1..=4).map(|i| kept(10 * i, vec![i], &[i, 100 * i])).collect(),
            latency: Default::default(),
            blocks_per_sub_region: 1,
        };
        recording.halve();
        assert_eq!(recording.interval, Ns(20));
        let series = recording.series();
        let told: Vec<_> = series.bins.iter().map(|b| (b.to.0, b.device.slices_written, b.host_memory)).collect();
        assert_eq!(told, [(20, 20, 20), (40, 20, 40)]);
        assert_eq!(series.bins[0].latency[0], Latency { ios: 4, total: Ns(303), p50: Ns(2), p99: Ns(201) });
    }

    #[test]
    fn percentiles_are_at_most_a_64th_too_high() {
        let mut ns = 1u64;
        while ns < 1 << 40 {
            for value in [ns - 1, ns, ns + ns / 3] {
                let mut one = Latencies::default();
                one.record(value);
                let Ns(told) = one.quantile(0.99);
                assert!(told >= value && told - value <= value / 64, "{value}: {told}");
            }
            ns *= 2;
        }
        let mut all = Latencies::default();
        (1..=100).for_each(|ns| all.record(ns));
        assert_eq!((all.count(), all.quantile(0.5), all.quantile(0.99)), (100, Ns(50), Ns(99)));
        all.record(u64::MAX);
        assert!(all.quantile(1.0) >= Ns((1 << 40) - 1));
    }

    #[test]
    fn regions_are_rows_of_what_had_entries() {
        // Sub-regions 70 to 109; the first twenty of them in the second bin only.
        let bits = |from: usize, to: usize| {
            let bit = |at: usize| u64::from((from..to).contains(&at));
            (0..2).map(|word| (0..64).map(|i| bit(64 * word + i) << i).sum()).collect()
        };
        let kept = [kept(1, bits(90, 110), &[]), kept(2, bits(70, 110), &[])];
        let regions = regions(&kept, 1000).expect("some had entries");
        // Forty in sixteen rows at most: three each, and the last has one.
        assert_eq!(regions.blocks.len(), 14 + 1);
        assert_eq!((regions.blocks[0], regions.blocks[14]), (70_000, 110_000));
        assert_eq!(regions.valid[1], [1.0; 14]);
        assert_eq!(regions.valid[0][..6], [0.0; 6]);
        assert!((regions.valid[0][6] - 1.0 / 3.0).abs() < 1e-12 && regions.valid[0][7] == 1.0);
    }
}
