// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a probe may be believed: devices whose parameters it does not know are measured by simulation, with noise,
//! and what it calls identified is compared with the truth.

use super::plan::{Ask, Plan};
use super::readings::Reading;
use super::solve::{Probe, ProbeOptions, default_params, probe};
use crate::fit::{Metric, ModelError, Outcome, Param, Verdict, device, predict};
use crate::runs::Shared;
use readpath_config::{ConfigFileError, DevicePreset};
use readpath_kit::Prng;

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
    let shown = predict(truth, &settings, ios, seed, shared)?;
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
