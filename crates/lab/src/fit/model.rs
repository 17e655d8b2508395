// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the model says of a way to measure: uniform random reads on a device that was written once in ascending order,
//! timed after a warm-up. Requests come in the same order whatever the device's times, so that two devices are compared
//! on the same luck. It knows nothing of measured values.

use super::measurements::{Metric, Setting};
use super::params::{self, Param, region_blocks};
use crate::experiment::{Shared, watch};
use rayon::prelude::*;
use readpath_config::{ConfigFileError, DevicePreset};
use readpath_device::Layout;
use readpath_flash::DieSched;
use readpath_host::{BlockOp, BlockRequest, HostConfig, HpbOptions};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_run::{ExecuteError, LUN, Parts, Port, Runner, Source, Watched, Work};
use readpath_stack::{AnyWire, NoData, Stack};
use readpath_workload::{Io, IoKind, Stream};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Why the model has no answer.
#[derive(Debug, Error)]
pub enum ModelError {
    /// The values make no device.
    #[error(transparent)]
    Config(#[from] ConfigFileError),
    /// A run failed.
    #[error("{setting}: {error}")]
    Run {
        /// What was run.
        setting: String,
        /// Why it failed.
        error: ExecuteError,
    },
}

/// What a run showed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Outcome {
    iops: f64,
    mib_s: f64,
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
}

impl Outcome {
    pub(super) fn of(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Throughput => self.mib_s,
            Metric::Iops => self.iops,
            Metric::LatencyMean => self.mean_us,
            Metric::LatencyP50 => self.p50_us,
            Metric::LatencyP99 => self.p99_us,
        }
    }
}

/// Values of the parameters, in the order of the model's.
pub(super) type Values = Vec<u64>;

/// A run that may be needed: an index into the settings and the values that it is made with.
type Key = (usize, Vec<Option<u64>>);

/// Simulates settings on devices and remembers what came out.
pub(super) struct Model<'a> {
    preset: &'a DevicePreset,
    params: Vec<Param>,
    settings: Vec<Setting>,
    ios: u32,
    seed: u64,
    shared: &'a Shared,
    known: BTreeMap<Key, Outcome>,
}

impl<'a> Model<'a> {
    pub(super) fn new(preset: &'a DevicePreset, params: Vec<Param>, ios: u32, seed: u64, shared: &'a Shared) -> Self {
        Model { preset, params, settings: Vec::new(), ios, seed, shared, known: BTreeMap::new() }
    }

    /// The number of a setting.
    pub(super) fn setting(&mut self, setting: Setting) -> usize {
        self.settings.iter().position(|s| *s == setting).unwrap_or_else(|| {
            self.settings.push(setting);
            self.settings.len() - 1
        })
    }

    /// Values that a setting cannot depend on are left out, so that one run serves all of them.
    fn key(&self, setting: usize, values: &Values) -> Key {
        let concerns = |p: &Param| p.concerns(&self.settings[setting], self.preset);
        (setting, self.params.iter().zip(values).map(|(p, v)| concerns(p).then_some(*v)).collect())
    }

    /// Makes every run that is not known yet, side by side.
    pub(super) fn prepare(&mut self, wanted: &[(usize, Values)]) -> Result<(), ModelError> {
        let new: BTreeSet<Key> =
            wanted.iter().map(|(s, v)| self.key(*s, v)).filter(|k| !self.known.contains_key(k)).collect();
        let new: Vec<Key> = new.into_iter().collect();
        let runs: Vec<Result<Outcome, ModelError>> = new.par_iter().with_max_len(1).map(|key| self.run(key)).collect();
        for (key, run) in new.into_iter().zip(runs) {
            self.known.insert(key, run?);
        }
        Ok(())
    }

    /// What a setting shows with these values.
    pub(super) fn outcome(&mut self, setting: usize, values: &Values) -> Result<Outcome, ModelError> {
        let key = self.key(setting, values);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let outcome = self.run(&key)?;
        self.known.insert(key, outcome);
        Ok(outcome)
    }

    fn run(&self, key: &Key) -> Result<Outcome, ModelError> {
        let values: Vec<(Param, u64)> =
            self.params.iter().zip(&key.1).filter_map(|(p, v)| v.map(|v| (*p, v))).collect();
        let preset = params::device(self.preset, &values)?;
        let setting = &self.settings[key.0];
        // The warm-up is that of the device at the start, so that all of them are measured on the same requests.
        let warm_up = warm_up(self.preset, setting);
        let hpb = setting.hpb.then(HpbOptions::default);
        let host = HostConfig { hpb, ..preset.host };
        let parts = Parts { preset: &preset, host, payload: NoData, probe: (), wire: AnyWire::new(false) };
        let simulation = Simulation { setting, warm_up, ios: self.ios, seed: self.seed, shared: self.shared };
        let outcome = parts.stack_for(simulation).unwrap_or_else(|error| Err(error.into()));
        outcome.map_err(|error| ModelError::Run { setting: setting.to_string(), error })
    }
}

/// No warm-up is longer.
const LONGEST_WARM_UP: f64 = 4e6;

/// Reads after which the map cache is full and nearly all sub-regions that can be active have had their chance: until
/// almost every one of n has been drawn takes n (ln n + 4) draws.
pub(super) fn warm_up(preset: &DevicePreset, setting: &Setting) -> u32 {
    let draws = |n: f64, times: f64| n * (libm::log(n + 1.0) + 4.0 + 2.0 * (times - 1.0));
    let device = &preset.device;
    let pages = f64::from(setting.range_blocks.div_ceil(device.map_page_entries()));
    let cached = f64::from(device.map_cache_bytes / device.map_page_bytes);
    let mut reads = draws(pages.min(4.0 * cached), 1.0);
    if let Some(hpb) = device.hpb.filter(|_| setting.hpb) {
        let sub_regions = f64::from(setting.range_blocks.div_ceil(1 << (hpb.sub_region_size - 3)));
        let regions = f64::from(setting.range_blocks.div_ceil(region_blocks(preset)));
        let times = f64::from(hpb.activate_after);
        // Where not all can be active, they begin to take each other's place.
        let times = if regions > f64::from(device.lus[0].max_active_regions) { times + 1.0 } else { times };
        reads = reads.max(1.5 * draws(sub_regions, times));
    }
    (reads.min(LONGEST_WARM_UP) as u32).max(1000)
}

/// A run that is to be made.
struct Simulation<'a> {
    setting: &'a Setting,
    warm_up: u32,
    ios: u32,
    seed: u64,
    shared: &'a Shared,
}

impl Work<NoData, (), AnyWire> for Simulation<'_> {
    type Output = Result<Outcome, ExecuteError>;

    fn on<S: DieSched>(self, mut stack: Stack<S, NoData, (), AnyWire>) -> Self::Output {
        let Simulation { setting, warm_up, ios, seed, shared } = self;
        let blocks = setting.range_blocks;
        let impossible = ExecuteError::Precondition { blocks };
        stack.precondition(LUN, 0, blocks, Layout::Sequential, seed).map_err(|_| impossible)?;
        let ready = stack.start(Ns::ZERO)?;
        // Cannot fail: the range was checked to hold a request and to be within the unit.
        let stream = Stream::uniform_reads(0, blocks, setting.block_count, seed);
        let stream = stream.map_err(|_| ExecuteError::Precondition { blocks })?;
        let mut reads = Reads::new(stream, setting.queue_depth, warm_up, ios);
        let driven = Runner::new(ready).run(&mut stack, &mut reads, &mut Watched(&mut watch(shared, 0)))?;
        Ok(outcome(reads.latencies, driven.end - reads.start, setting))
    }
}

const BATCH: usize = 16;
const READ: Io = Io { block: 0, blocks: 0, kind: IoKind::Read, fua: false };

/// Reads `first` and then some more times until there were `last`, always with as many requests outstanding, and times
/// the latter exactly.
struct Reads {
    stream: Stream,
    /// Requests are taken from the stream in batches.
    batch: [Io; BATCH],
    at: usize,
    /// By cookie.
    flights: Vec<(Ns, Io)>,
    first: u64,
    last: u64,
    ended: u64,
    /// When the first one that is timed began.
    start: Ns,
    latencies: Vec<u64>,
}

impl Reads {
    fn new(stream: Stream, depth: u32, warm_up: u32, ios: u32) -> Self {
        let (first, last) = (u64::from(warm_up), u64::from(warm_up) + u64::from(ios));
        Reads {
            stream,
            batch: [READ; BATCH],
            at: BATCH,
            flights: vec![(Ns::ZERO, READ); depth as usize],
            first,
            last,
            ended: 0,
            start: Ns::ZERO,
            latencies: Vec::with_capacity(ios as usize),
        }
    }

    #[inline(always)]
    fn submit(&mut self, port: &mut impl Port, cookie: u32, now: Ns) {
        if self.at == BATCH {
            self.stream.fill(&mut self.batch);
            for io in &self.batch {
                port.prefetch(LUN, io.block);
            }
            self.at = 0;
        }
        let io = self.batch[self.at];
        self.at += 1;
        self.flights[cookie as usize] = (now, io);
        let (block, blocks) = (io.block, u32::from(io.blocks));
        port.submit(now, &BlockRequest { cookie, lun: LUN, op: BlockOp::Read, block, blocks });
    }
}

impl Source for Reads {
    fn begin(&mut self, port: &mut impl Port, now: Ns) {
        (0..self.flights.len() as u32).for_each(|cookie| self.submit(port, cookie, now));
    }

    #[inline(always)]
    fn next_at(&self) -> Ns {
        Ns::NEVER
    }

    fn act(&mut self, _: &mut impl Port, _: Ns, _: Ns) {}

    #[inline(always)]
    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        if self.ended == self.last {
            return None;
        }
        let latency = now - self.flights[cookie as usize].0;
        self.ended += 1;
        if self.ended > self.first {
            self.latencies.push(latency.0);
        } else if self.ended == self.first {
            self.start = now;
        }
        self.submit(port, cookie, now);
        Some((IoKind::Read, latency))
    }

    fn io(&self, cookie: u32) -> Io {
        self.flights[cookie as usize].1
    }

    fn in_flight(&self) -> u32 {
        self.flights.len() as u32
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        self.ended == self.last
    }

    fn lost(&mut self, port: &mut impl Port, now: Ns) {
        self.begin(port, now);
    }
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
    let iops = n as f64 * 1e9 / time.0.max(1) as f64;
    let bytes = f64::from(u32::from(setting.block_count) * BLOCK_BYTES);
    Outcome { iops, mib_s: iops * bytes / f64::from(1 << 20), mean_us: us(sum) / n as f64, p50_us, p99_us }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_config::device;

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let setting = Setting { range_blocks: 1000, queue_depth: 1, hpb: false, block_count: 2 };
        let o = outcome((1..=200).rev().map(|i| i * 1000).collect(), Ns::from_secs(1), &setting);
        assert_eq!((o.p50_us, o.p99_us, o.mean_us, o.iops), (100.0, 198.0, 100.5, 200.0));
        assert_eq!(o.mib_s, 200.0 / 128.0);
    }

    #[test]
    fn one_reader_at_a_time_takes_the_sum_of_all_stages() {
        let preset = device::load("ufs21-64g", &|_| Err(std::io::Error::other("none"))).unwrap();
        let shared = Shared::default();
        let mut model = Model::new(&preset, vec![], 2000, 1, &shared);
        let setting = model.setting(Setting { range_blocks: 1 << 16, queue_depth: 1, hpb: false, block_count: 1 });
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
}
