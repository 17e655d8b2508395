// SPDX-License-Identifier: MIT OR Apache-2.0
//! Predictions of the model for a setting of a measurement, on a device that was written once in ascending order. The
//! order of requests does not depend on the device's times, so that two devices are compared on the same random
//! choices. The module does not know measured values.

use super::measurements::Metric;
use super::params::{self, Param, region_blocks};
use super::setting::{Access, LongWrite, Setting, Stretch};
use crate::runs::{Shared, watch};
use rayon::prelude::*;
use readpath_config::{ConfigFileError, DevicePreset, Override};
use readpath_host::{HostConfig, HpbOptions};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_run::{ExecuteError, Measurement, Part, measure_parts};
use readpath_stack::given_host_memory;
use readpath_workload::{IoKind, Offsets, Stream, StreamSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use thiserror::Error;

/// Why the model has no answer.
#[derive(Debug, Error)]
pub enum ModelError {
    /// The values make no device.
    #[error(transparent)]
    Config(#[from] ConfigFileError),
    /// A probe of the device is not possible.
    #[error(transparent)]
    Plan(#[from] crate::probe::PlanError),
    /// A run failed.
    #[error("{setting}: {error}")]
    Run {
        /// The setting.
        setting: String,
        /// Why it failed.
        error: ExecuteError,
    },
}

/// What a run showed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    iops: f64,
    mib_s: f64,
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
    /// Standard error of mean and throughput as a share of them, from the finite number of timed requests.
    sampling: f64,
}

impl Outcome {
    /// Standard error of mean and throughput as a share of them.
    pub(crate) fn sampling(&self) -> f64 {
        self.sampling
    }

    /// What parts that follow one another showed together. Percentiles are the means of theirs.
    fn joined(parts: &[Outcome]) -> Outcome {
        let n = parts.len().max(1) as f64;
        let mean = |of: fn(&Outcome) -> f64| parts.iter().map(of).sum::<f64>() / n;
        let harmonic = |of: fn(&Outcome) -> f64| n / parts.iter().map(|p| 1.0 / of(p)).sum::<f64>();
        Outcome {
            iops: harmonic(|p| p.iops),
            mib_s: harmonic(|p| p.mib_s),
            mean_us: mean(|p| p.mean_us),
            p50_us: mean(|p| p.p50_us),
            p99_us: mean(|p| p.p99_us),
            sampling: mean(|p| p.sampling) / n.sqrt(),
        }
    }

    /// One figure of it, in the unit of the metric.
    pub fn of(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Throughput => self.mib_s,
            Metric::Iops => self.iops,
            Metric::LatencyMean => self.mean_us,
            Metric::LatencyP50 => self.p50_us,
            Metric::LatencyP99 => self.p99_us,
        }
    }
}

/// What a device with data in so many blocks shows when it is measured in these ways, each timed for `ios` requests.
///
/// # Errors
/// When a run fails or is interrupted.
pub fn predict(
    preset: &DevicePreset,
    filled_blocks: u32,
    settings: &[Setting],
    ios: u32,
    seed: u64,
    shared: &Shared,
) -> Result<Vec<Outcome>, ModelError> {
    let mut model = Model::new(preset, Vec::new(), ios, seed, shared).filled(filled_blocks);
    let wanted: Vec<(usize, Values)> = settings.iter().map(|s| (model.setting(*s), Values::new())).collect();
    model.prepare(&wanted)?;
    wanted.iter().map(|(setting, values)| model.outcome(*setting, values)).collect()
}

/// Values of the parameters, in the order of the model's.
pub(super) type Values = Vec<u64>;

/// A run that may be needed: an index into the runs and the values that it is made with.
type Key = (usize, Vec<Option<u64>>);

/// Simulates settings on devices and remembers what came out.
pub(super) struct Model<'a> {
    preset: &'a DevicePreset,
    params: Vec<Param>,
    /// Settings of which each has a run; those of parts that follow one another share the first's.
    runs: Vec<Setting>,
    /// Each setting, its run, and its parts of the run.
    settings: Vec<(Setting, usize, Range<usize>)>,
    ios: u32,
    seed: u64,
    /// Blocks from the first on that hold data before a write, if that is more than its range. How much of a dynamic
    /// cache there is depends on it.
    filled_blocks: u32,
    shared: &'a Shared,
    /// Outcomes of the parts of each run.
    known: BTreeMap<Key, Vec<Outcome>>,
}

impl<'a> Model<'a> {
    pub(super) fn new(preset: &'a DevicePreset, params: Vec<Param>, ios: u32, seed: u64, shared: &'a Shared) -> Self {
        let (runs, settings, known) = (Vec::new(), Vec::new(), BTreeMap::new());
        Model { preset, params, runs, settings, ios, seed, filled_blocks: 0, shared, known }
    }

    /// The same, of a device with data in so many blocks.
    pub(super) fn filled(self, filled_blocks: u32) -> Self {
        Model { filled_blocks, ..self }
    }

    pub(super) fn setting(&mut self, setting: Setting) -> usize {
        if let Some(known) = self.settings.iter().position(|(s, ..)| *s == setting) {
            return known;
        }
        let (run, parts) = setting.run();
        let number = self.runs.iter().position(|s| *s == run).unwrap_or_else(|| {
            self.runs.push(run);
            self.runs.len() - 1
        });
        self.settings.push((setting, number, parts));
        self.settings.len() - 1
    }

    /// Values that a setting cannot depend on are left out, so that one run serves all of them.
    fn key(&self, setting: usize, values: &Values) -> Key {
        let run = self.settings[setting].1;
        let concerns = |p: &Param| p.concerns(&self.runs[run], self.preset);
        (run, self.params.iter().zip(values).map(|(p, v)| concerns(p).then_some(*v)).collect())
    }

    /// Makes all runs that are missing, in parallel.
    pub(super) fn prepare(&mut self, wanted: &[(usize, Values)]) -> Result<(), ModelError> {
        let new: BTreeSet<Key> =
            wanted.iter().map(|(s, v)| self.key(*s, v)).filter(|k| !self.known.contains_key(k)).collect();
        let new: Vec<Key> = new.into_iter().collect();
        let runs: Vec<_> = new.par_iter().with_max_len(1).map(|key| self.run(key)).collect();
        for (key, run) in new.into_iter().zip(runs) {
            self.known.insert(key, run?);
        }
        Ok(())
    }

    /// What a setting shows with these values.
    pub(super) fn outcome(&mut self, setting: usize, values: &Values) -> Result<Outcome, ModelError> {
        let key = self.key(setting, values);
        let parts = self.settings[setting].2.clone();
        if let Some(known) = self.known.get(&key) {
            return Ok(Outcome::joined(&known[parts]));
        }
        let outcomes = self.run(&key)?;
        let outcome = Outcome::joined(&outcomes[parts]);
        self.known.insert(key, outcomes);
        Ok(outcome)
    }

    /// Reads that are timed. Long ones differ little from each other, and each takes long to simulate.
    fn reads(&self, setting: &Setting) -> u32 {
        // Reads that wait for each other are no sample of their own.
        let ios = self.ios.max(ROUNDS * setting.queue_depth);
        let blocks = u64::from(ios) * u64::from(FEW_BLOCKS);
        let fewer = (blocks / u64::from(setting.block_count)) as u32;
        fewer.clamp(LEAST_READS.min(ios), ios)
    }

    fn run(&self, key: &Key) -> Result<Vec<Outcome>, ModelError> {
        let values: Vec<(Param, u64)> =
            self.params.iter().zip(&key.1).filter_map(|(p, v)| v.map(|v| (*p, v))).collect();
        let setting = &self.runs[key.0];
        let shrunk = Shrunk::new(self.preset, setting);
        let preset = shrunk.apply(&params::device(self.preset, &values)?)?;
        let setting = &shrunk.setting(setting);
        let filled = (shrunk.size(u64::from(self.filled_blocks)) as u32).min(preset.device.lus[0].blocks);
        let plain = Measurement {
            blocks: setting.range_blocks,
            kind: IoKind::Write,
            depth: setting.queue_depth,
            warm_up: 0,
            timed: 0,
            parts: 1,
            pause: Ns::ZERO,
        };
        let (measurement, order) = match setting.access {
            // The warm-up is that of the first device, so that all devices are measured on the same requests.
            Access::RandomRead => {
                let (timed, warm_up) = (self.reads(setting), warm_up(self.preset, setting, self.ios));
                (Measurement { warm_up, timed, kind: IoKind::Read, ..plain }, Offsets::Uniform)
            }
            Access::RandomWrites(timed) => {
                (Measurement { timed, blocks: plain.blocks.max(filled), ..plain }, Offsets::Uniform)
            }
            Access::SequentialWrite(Stretch { of, parts, .. }) => {
                let timed = setting.range_blocks / u32::from(setting.block_count) / u32::from(parts);
                let blocks = if of == LongWrite::Fill { 0 } else { plain.blocks.max(filled) };
                let pause = match of {
                    LongWrite::Pause(s) => shrunk.time(Ns::from_secs(u64::from(s))),
                    LongWrite::Again | LongWrite::Fill => Ns::ZERO,
                };
                (Measurement { timed, parts, blocks, pause, ..plain }, Offsets::Sequential)
            }
        };
        let hpb = setting.hpb.then(HpbOptions::default);
        let host = HostConfig { hpb, ..preset.host };
        let spec = StreamSpec::plain(measurement.kind, 0, setting.range_blocks, setting.block_count, order);
        // Cannot fail: the range was checked to hold a request and to be within the unit.
        let stream = Stream::new(&spec, self.seed);
        let shown = stream
            .map_err(|_| ExecuteError::Precondition { blocks: setting.range_blocks })
            .and_then(|stream| measure_parts(&preset, host, measurement, stream, &mut watch(self.shared, 0)));
        let parts = shown.map_err(|error| ModelError::Run { setting: setting.to_string(), error })?;
        // All of a sequential write is simulated, so no sample stands for it.
        let sampling = |of: f64| match setting.access {
            Access::SequentialWrite(_) if shrunk.is_whole() => 0.0,
            Access::SequentialWrite(_) => SHRUNK_ERROR,
            Access::RandomRead | Access::RandomWrites(_) => of,
        };
        let shown = parts.into_iter().map(|Part { latencies, time }| outcome(latencies, time, setting));
        Ok(shown.map(|shown| Outcome { sampling: sampling(shown.sampling), ..shown }).collect())
    }
}

/// A device with shorter blocks, on which a long write takes less time to simulate: flash, cache, range and pause are
/// smaller in the same proportion, so that throughput falls at the same shares of the range.
struct Shrunk {
    /// Pages of a block, and those that are left.
    pages: (u32, u32),
}

/// A long write of no more blocks is simulated as it is.
const LONG_BLOCKS: u32 = 1 << 20;
/// Pages of a block in SLC mode that are left at least.
const LEAST_PAGES: u32 = 16;
/// How far the speed of a long write on a device with shorter blocks is from that on the whole device, in the mean.
const SHRUNK_ERROR: f64 = 0.02;
const SPARE_MAP: &str = "ftl.spare_map_superblocks";
/// Superblocks for checkpoints and the like that a device with shorter blocks is given at most.
const MOST_SPARE_MAP: u32 = 256;

impl Shrunk {
    fn new(preset: &DevicePreset, setting: &Setting) -> Shrunk {
        let (device, pages) = (&preset.device, preset.device.geometry.pages_per_block);
        let bits = device.slc.map_or(1, |slc| slc.bits_per_cell);
        let long = matches!(setting.access, Access::SequentialWrite(_)) && device.lus.len() == 1;
        let times = if long { setting.range_blocks / LONG_BLOCKS } else { 0 };
        let left = pages / times.max(1) / bits * bits;
        let mut shrunk =
            Shrunk { pages: (pages, if times > 1 { left.max(LEAST_PAGES * bits).min(pages) } else { pages }) };
        // A device with few superblocks may have no room for what smaller ones need.
        while !shrunk.is_whole() && shrunk.apply(preset).is_err() {
            shrunk.pages.1 = (2 * shrunk.pages.1).min(pages);
        }
        shrunk
    }

    fn is_whole(&self) -> bool {
        self.pages.0 == self.pages.1
    }

    fn size(&self, size: u64) -> u64 {
        (u128::from(size) * u128::from(self.pages.1) / u128::from(self.pages.0)) as u64
    }

    fn time(&self, time: Ns) -> Ns {
        Ns(self.size(time.0))
    }

    fn setting(&self, setting: &Setting) -> Setting {
        match setting.access {
            Access::SequentialWrite(stretch) => {
                let unit = u32::from(stretch.parts) * u32::from(setting.block_count);
                let range = self.size(u64::from(setting.range_blocks)) as u32 / unit * unit;
                Setting { range_blocks: range.max(unit), ..*setting }
            }
            Access::RandomRead | Access::RandomWrites(_) => *setting,
        }
    }

    fn apply(&self, preset: &DevicePreset) -> Result<DevicePreset, ConfigFileError> {
        if self.is_whole() {
            return Ok(preset.clone());
        }
        let left = self.pages.1;
        let device = &preset.device;
        let mut set = vec![
            ("geometry.pages_per_block", left.to_string()),
            ("lu[0].blocks", self.size(u64::from(device.lus[0].blocks)).to_string()),
            ("flash.erase_us", params::us(self.time(device.flash.erase).0)),
        ];
        if let Some(slc) = device.slc {
            set.push(("slc.erase_us", params::us(self.time(slc.erase).0)));
        }
        if let Some(cells) = device.slc_cache.and_then(|cache| cache.cells) {
            set.push(("slc_cache.cells.erase_us", params::us(self.time(cells.erase).0)));
        }
        // Caches are made as small as they can be, and then as large as the smaller flash allows.
        let least = |key| if key == params::BOOSTER { 4 } else { 1 };
        let caches: Vec<_> = params::cache_sizes(preset).into_iter().filter(|(_, blocks)| *blocks > 0).collect();
        set.extend(caches.iter().map(|(key, _)| (*key, least(*key).to_string())));
        let overrides: Result<Vec<_>, _> = set.iter().map(|(key, value)| Override::new(key, value, "fit")).collect();
        let mut overrides = overrides?;
        // Checkpoints of as many changes need more of the smaller superblocks.
        let mut spare = device.ftl.spare_map_superblocks;
        loop {
            match preset.with_overrides(&overrides) {
                Err(error) if error.key == SPARE_MAP && spare < MOST_SPARE_MAP => {
                    overrides.retain(|set| set.key() != SPARE_MAP);
                    spare *= 2;
                    overrides.push(Override::new(SPARE_MAP, &spare.to_string(), "fit")?);
                }
                Err(error) => return Err(error),
                Ok(small) => {
                    let room = u64::from(small.device.data_superblocks()) * u64::from(small.device.cache_slices());
                    let sizes = caches.iter().map(|(key, blocks)| {
                        let mib = self.size(u64::from(*blocks)).min(room) / params::MIB_BLOCKS;
                        let mib = (mib / least(*key) * least(*key)).max(least(*key));
                        Override::new(key, &mib.to_string(), "fit")
                    });
                    return small.with_overrides(&sizes.collect::<Result<Vec<_>, _>>()?);
                }
            }
        }
    }
}

/// Reads of more blocks than this are timed less often, in proportion, but so often at least.
const FEW_BLOCKS: u32 = 4;
const LEAST_READS: u32 = 500;
/// Times that a queue is filled anew, at least.
const ROUNDS: u32 = 50;
/// Longest warm-up, in reads.
const LONGEST_WARM_UP: f64 = 4e6;

/// Reads after which the map cache is full and nearly all sub-regions that can be active have had their chance: until
/// almost every one of n has been drawn takes n (ln n + 4) draws.
fn warm_up(preset: &DevicePreset, setting: &Setting, ios: u32) -> u32 {
    let draws = |n: f64, times: f64| n * (libm::log(n + 1.0) + 4.0 + 2.0 * (times - 1.0));
    let device = &preset.device;
    let pages = f64::from(setting.range_blocks.div_ceil(device.map_page_entries()));
    let given = given_host_memory(device, &preset.host) / u64::from(device.map_page_bytes);
    let cached = f64::from(device.map_cache_bytes / device.map_page_bytes) + given as f64;
    let mut reads = draws(pages.min(4.0 * cached), 1.0);
    if let Some(hpb) = device.hpb.filter(|_| setting.hpb) {
        let sub_regions = f64::from(setting.range_blocks.div_ceil(1 << (hpb.sub_region_size - 3)));
        let regions = f64::from(setting.range_blocks.div_ceil(region_blocks(preset)));
        let times = f64::from(hpb.activate_after);
        // If not all regions can be active, they replace each other.
        let times = if regions > f64::from(device.lus[0].max_active_regions) { times + 1.0 } else { times };
        reads = reads.max(1.5 * draws(sub_regions, times));
    }
    // Queues have to fill, too.
    let least = (ios / 4).min(1000) * FEW_BLOCKS / u32::from(setting.block_count).max(FEW_BLOCKS);
    (reads.min(LONGEST_WARM_UP) as u32).max(least)
}

fn outcome(mut latencies: Vec<u64>, time: Ns, setting: &Setting) -> Outcome {
    let n = latencies.len().max(1);
    let us = |ns: u64| ns as f64 / 1e3;
    let mut rank = |percent: usize| {
        let at = (n * percent).div_ceil(100).saturating_sub(1);
        let none = latencies.is_empty();
        if none { 0.0 } else { us(*latencies.select_nth_unstable(at).1) }
    };
    let (p50_us, p99_us) = (rank(50), rank(99));
    let sum: u64 = latencies.iter().sum();
    let mean = sum as f64 / n as f64;
    let squares: f64 = latencies.iter().map(|ns| (*ns as f64 - mean) * (*ns as f64 - mean)).sum();
    let sampling = (squares / n as f64).sqrt() / mean.max(1.0) / (n as f64).sqrt();
    let iops = n as f64 * 1e9 / time.0.max(1) as f64;
    let bytes = f64::from(u32::from(setting.block_count) * BLOCK_BYTES);
    Outcome { iops, mib_s: iops * bytes / f64::from(1 << 20), mean_us: mean / 1e3, p50_us, p99_us, sampling }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_config::device;

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let setting =
            Setting { access: Access::RandomRead, range_blocks: 1000, queue_depth: 1, hpb: false, block_count: 2 };
        let o = outcome((1..=200).rev().map(|i| i * 1000).collect(), Ns::from_secs(1), &setting);
        assert_eq!((o.p50_us, o.p99_us, o.mean_us, o.iops), (100.0, 198.0, 100.5, 200.0));
        assert_eq!(o.mib_s, 200.0 / 128.0);
    }

    /// A queue is filled fifty times, and a write that is simulated as a whole is no sample.
    #[test]
    fn samples_are_of_what_does_not_wait_for_each_other() {
        let preset = device::load("ufs21-64g", &|_| Err(std::io::Error::other("none"))).unwrap();
        let shared = Shared::default();
        let model = Model::new(&preset, vec![], 400, 1, &shared);
        let read =
            Setting { access: Access::RandomRead, range_blocks: 1 << 16, queue_depth: 1, hpb: false, block_count: 1 };
        let reads = |queue_depth, block_count| model.reads(&Setting { queue_depth, block_count, ..read });
        assert_eq!((reads(1, 1), reads(8, 4), reads(31, 1), reads(31, 128)), (400, 400, 1550, 500));
        let access = Access::SequentialWrite(Stretch::part(LongWrite::Again, 3, 4));
        let write = Setting { access, range_blocks: 4 * 8192, queue_depth: 8, hpb: false, block_count: 128 };
        let shown = predict(&preset, 0, &[read, Setting { queue_depth: 8, ..read }, write], 400, 1, &shared).unwrap();
        assert!(shown[1].sampling > 0.0 && shown[2].sampling == 0.0, "{shown:?}");
    }

    #[test]
    fn one_reader_at_a_time_takes_the_sum_of_all_stages() {
        let preset = device::load("ufs21-64g", &|_| Err(std::io::Error::other("none"))).unwrap();
        let shared = Shared::default();
        let mut model = Model::new(&preset, vec![], 2000, 1, &shared);
        let setting = model.setting(Setting {
            access: Access::RandomRead,
            range_blocks: 1 << 16,
            queue_depth: 1,
            hpb: false,
            block_count: 1,
        });
        let d = &preset.device;
        let sum = preset.delays.to_link
            + d.link.request
            + d.firmware.flash_op
            + d.flash.read
            + d.flash.transfer_block
            + d.link.block
            + d.link.response
            + preset.delays.from_link;
        let outcome = model.outcome(setting, &vec![]).unwrap();
        assert_eq!(outcome.p99_us, sum.as_us_f64());
        assert!((outcome.iops * outcome.mean_us / 1e6 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_drive_of_a_terabyte_may_have_its_shortest_blocks() {
        for (name, pages) in [("nvme-dramless-1t", 48), ("nvme-qlc-1t", 64)] {
            let preset = readpath_config::device::load(name, &|_| Err(std::io::Error::other("none"))).unwrap();
            let made = Shrunk { pages: (preset.device.geometry.pages_per_block, pages) }.apply(&preset);
            let made = made.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(made.device.geometry.pages_per_block, pages);
            assert!(made.device.ftl.spare_map_superblocks > preset.device.ftl.spare_map_superblocks, "{name}");
            // A cache that takes all of the larger device takes all of the smaller one, which has less room for data.
            let most = u64::from(preset.device.data_superblocks()) * u64::from(preset.device.cache_slices());
            let most = (most / params::MIB_BLOCKS).to_string();
            let full = preset.with_override("slc_cache.dynamic_mib", &most).unwrap();
            let made = Shrunk { pages: (full.device.geometry.pages_per_block, pages) }.apply(&full);
            made.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    /// An erase of a shorter block is shorter, in every mode.
    #[test]
    fn erases_shrink_with_blocks() {
        let preset = readpath_config::device::load("nvme-qlc-1t", &|_| Err(std::io::Error::other("none"))).unwrap();
        let cells = ["bits=3", "read_us=40", "program_us=600", "erase_us=2000", "life_erases=3000"];
        let cells = cells.map(|cell| Override::from_argument(&format!("slc_cache.cells.{cell}"), "--set").unwrap());
        let preset = preset.with_overrides(&cells).unwrap();
        let pages = preset.device.geometry.pages_per_block;
        let made = Shrunk { pages: (pages, pages / 4) }.apply(&preset).unwrap();
        let erases = |device: &readpath_device::DeviceConfig| {
            let cells = device.slc_cache.unwrap().cells.unwrap();
            [device.flash.erase, device.slc.unwrap().erase, cells.erase].map(|erase| erase.0)
        };
        assert_eq!(erases(&made.device), erases(&preset.device).map(|erase| erase / 4));
    }
}
