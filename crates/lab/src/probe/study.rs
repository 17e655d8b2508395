// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a probe may be believed: devices whose parameters it does not know are measured by simulation, with noise,
//! and what it calls identified is compared with the truth.

use super::plan::{Ask, Plan};
use super::readings::Reading;
use super::solve::{Probe, ProbeOptions, default_params, probe};
use crate::fit::{Metric, ModelError, Outcome, Param, Verdict, device, predict};
use crate::runs::Shared;
use readpath_config::{ConfigFileError, DevicePreset, Override};
use readpath_kit::Prng;

/// What a DRAM-less SSD that is soon simulated has instead of the values of `nvme-dramless-512g`: 4 GiB, half of which
/// its host memory covers, and short blocks, which are erased in as much less time.
const DRAMLESS: [(&str, &str); 21] = [
    ("lu[0].blocks", "1048576"),
    ("geometry.dies_per_channel", "2"),
    ("geometry.pages_per_block", "96"),
    ("geometry.blocks_per_plane", "430"),
    ("map_cache.size_kib", "192"),
    ("map_memory.size_mib", "2"),
    ("map_memory.min_kib", "0"),
    ("geometry.planes", "1"),
    ("flash.read_us", "50"),
    ("flash.map_read_us", "50"),
    ("flash.program_us", "496"),
    ("flash.erase_us", "300"),
    ("slc.erase_us", "300"),
    ("flash.transfer_4k_us", "3.18"),
    ("flash.plane_reads", "one"),
    ("write_buffer.size_kib", "2048"),
    ("slc.holds_map", "false"),
    ("ftl.spare_map_superblocks", "6"),
    ("slc.read_us", "25"),
    ("slc.program_us", "120"),
    ("ftl.checkpoint_after_units", "512"),
];

/// A DRAM-less SSD with host memory that is soon simulated, and a cache in SLC mode: so many MiB apart from the logical
/// units, and so many more at most where these have space.
///
/// # Errors
/// When there is no such preset.
pub fn dramless(static_mib: u32, dynamic_mib: u32) -> Result<DevicePreset, ConfigFileError> {
    let preset = readpath_config::device::load("nvme-dramless-512g", &|_| Err(std::io::Error::other("no file")))?;
    let sizes = [("slc_cache.static_mib", static_mib), ("slc_cache.dynamic_mib", dynamic_mib)];
    let sizes = sizes.map(|(key, mib)| Override::new(key, &mib.to_string(), "study"));
    let set = DRAMLESS.iter().map(|(key, value)| Override::new(key, value, "study"));
    preset.with_overrides(&set.chain(sizes).collect::<Result<Vec<_>, _>>()?)
}

/// `preset` cut down to 4 GiB, which are soon simulated, with so many blocks in a plane and a map cache in proportion.
///
/// # Errors
/// When that makes no device.
pub fn cut_down(preset: &DevicePreset, blocks_per_plane: u32) -> Result<DevicePreset, ConfigFileError> {
    let blocks = blocks_per_plane.to_string();
    let mut set =
        vec![("lu[0].capacity_gib", "4"), ("geometry.blocks_per_plane", &*blocks), ("map_cache.size_kib", "352")];
    if preset.device.write_booster().is_some() {
        set.push(("write_booster.buffer_mib", "512"));
    }
    let set = set.into_iter().map(|(key, value)| Override::new(key, value, "study"));
    preset.with_overrides(&set.collect::<Result<Vec<_>, _>>()?)
}

/// The hidden device, and how it is measured.
#[derive(Clone, Debug)]
pub struct Hidden {
    /// The preset that the search begins from.
    pub start: DevicePreset,
    /// Unknown parameters; empty for all that a probe fits.
    pub params: Vec<Param>,
    /// What may be measured; the target is only a name.
    pub ask: Ask,
    /// Every parameter is the start's times a factor between one over this and this.
    pub factor: f64,
    /// Standard deviation of a measurement as a share of its value.
    pub noise: f64,
    /// Requests that are timed for each measurement of the hidden device.
    pub measured_ios: u32,
    /// Requests that are timed for each measurement of the search.
    pub ios: u32,
}

/// A parameter that was called identified.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Found {
    /// Which.
    pub param: Param,
    /// Its hidden value, in the unit of its key.
    pub truth: f64,
    /// The value that was found.
    pub fitted: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Found {
    /// Whether the truth lies within the interval.
    pub fn holds(&self) -> bool {
        (self.low..=self.high).contains(&self.truth)
    }
}

/// What became of one hidden device.
#[derive(Clone, Debug)]
pub struct Case {
    /// Parameters that were called identified.
    pub identified: Vec<Found>,
    /// Parameters that were not.
    pub others: usize,
    /// Of each held-out measurement, how far from it the prediction is, in percent of it.
    pub held_out: Vec<f64>,
    /// How many of these are within three standard errors.
    pub near: usize,
}

impl Case {
    /// Whether every parameter that was called identified lies within its interval.
    pub fn holds(&self) -> bool {
        self.identified.iter().all(Found::holds)
    }
}

/// A device like the start whose parameters are others.
///
/// # Errors
/// When the values make no device.
fn hide(hidden: &Hidden, params: &[Param], random: &mut Prng) -> Result<DevicePreset, ConfigFileError> {
    let width = libm::log(hidden.factor);
    let mut draw = |param: &Param| {
        let factor = libm::exp(width * (2.0 * random.unit_f64() - 1.0));
        (*param, param.realize(param.value(&hidden.start) as f64 * factor, &hidden.start))
    };
    let mut made = device(&hidden.start, &params.iter().map(&mut draw).collect::<Vec<_>>());
    // Some values limit each other.
    for _ in 0..DRAWS {
        if made.is_ok() {
            break;
        }
        made = device(&hidden.start, &params.iter().map(&mut draw).collect::<Vec<_>>());
    }
    made
}

/// Draws of a hidden device at most until one is possible.
const DRAWS: u32 = 100;

/// What the jobs of a plan measure of a device, by simulation, each value with noise of its own.
///
/// # Errors
/// When a run fails.
pub fn measure(
    plan: &Plan,
    truth: &DevicePreset,
    noise: f64,
    ios: u32,
    seed: u64,
    shared: &Shared,
) -> Result<Vec<Reading>, ModelError> {
    let settings: Vec<_> = plan.jobs.iter().map(|job| job.setting).collect();
    let shown = predict(truth, plan.filled_blocks, &settings, ios, seed, shared)?;
    let mut random = Prng::stream(seed, "noise of a probe", 0);
    let reading = |(job, outcome): (usize, Outcome)| {
        let mut noisy = |metric| outcome.of(metric) * (1.0 + noise * normal(&mut random)).max(0.01);
        Reading {
            job,
            throughput_mib_s: noisy(Metric::Throughput),
            scatter: 0.0,
            mean_us: noisy(Metric::LatencyMean),
            p50_us: noisy(Metric::LatencyP50),
            p99_us: noisy(Metric::LatencyP99),
        }
    };
    Ok(shown.into_iter().enumerate().map(reading).collect())
}

/// Hides a device, measures it, and compares the result of the probe with the truth.
///
/// # Errors
/// When the plan is not possible or a run fails.
pub fn case(hidden: &Hidden, seed: u64, shared: &Shared) -> Result<(Case, Probe), ModelError> {
    let plan = Plan::new(&hidden.start, &hidden.ask)?;
    let params = match hidden.params.is_empty() {
        true => default_params(&hidden.start, &plan),
        false => hidden.params.clone(),
    };
    let truth = hide(hidden, &params, &mut Prng::stream(seed, "hidden device", 0))?;
    // The places that are read are not those of the search.
    let readings = measure(&plan, &truth, hidden.noise, hidden.measured_ios, seed.wrapping_add(1000), shared)?;
    let options = ProbeOptions { params, ios: hidden.ios, advice: false };
    let found = probe(&plan, &hidden.start, &readings, &options, shared)?;
    let identified = found.known.iter().filter(|k| k.verdict == Verdict::Identified).map(|k| Found {
        param: k.param,
        truth: k.param.in_unit(k.param.value(&truth)),
        fitted: k.param.in_unit(k.fitted),
        low: k.low,
        high: k.high,
    });
    let identified: Vec<Found> = identified.collect();
    let others = found.known.len() - identified.len();
    let held_out = found.rows.iter().filter(|row| !row.fitted);
    let near = held_out.clone().filter(|row| row.error_percent().abs() <= 300.0 * row.error).count();
    let held_out = held_out.map(|row| row.error_percent().abs()).collect();
    Ok((Case { identified, others, held_out, near }, found))
}

/// A normal variable (Box and Muller).
fn normal(random: &mut Prng) -> f64 {
    let (a, b) = (1.0 - random.unit_f64(), random.unit_f64());
    libm::sqrt(-2.0 * libm::log(a)) * libm::cos(core::f64::consts::TAU * b)
}
