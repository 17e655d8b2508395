// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fits a device to what the jobs of a plan measured, says how sure each parameter is, and predicts what was held out.

use super::plan::{Job, Plan};
use super::readings::Reading;
use crate::fit::{Fit, FitOptions, Known, Measurement, Metric, ModelError, Outcome, Param, fit, predict};
use crate::runs::Shared;
use readpath_config::DevicePreset;

/// How a probe is evaluated.
#[derive(Clone, Debug)]
pub struct ProbeOptions {
    /// Parameters to fit.
    pub params: Vec<Param>,
    /// Requests that are timed for each simulated measurement.
    pub ios: u32,
    /// Whether to look for further jobs.
    pub advice: bool,
}

/// What a job measured and what the fitted device shows.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// The measured value.
    pub reading: Reading,
    /// Whether the fit saw its throughput. It never sees latencies.
    pub fitted: bool,
    /// Standard error of the measured throughput as a share of it.
    pub error: f64,
    /// What the fitted device shows.
    pub predicted: Outcome,
}

impl Compared {
    /// Difference of the predicted to the measured throughput in percent.
    pub fn error_percent(&self) -> f64 {
        100.0 * (self.predicted.of(Metric::Throughput) / self.reading.throughput_mib_s - 1.0)
    }
}

/// The result of a probe.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The plan.
    pub plan: Plan,
    /// The fit to the throughput of the jobs that are not held out.
    pub fit: Fit,
    /// The parameters.
    pub known: Vec<Known>,
    /// All jobs that have results, in the order of the plan.
    pub rows: Vec<Compared>,
    /// The plan with the jobs that would tell most, behind its own; nothing if none would help.
    pub next: Option<Plan>,
}

impl Probe {
    /// The jobs that would tell most.
    pub(crate) fn next_jobs(&self) -> &[Job] {
        self.next.as_ref().map_or(&[], |next| &next.jobs[self.plan.jobs.len()..])
    }
}

/// What a probe fits: times and sizes of the read path, and if something was written, of the write path. Times that are
/// 0 in the device stay 0.
pub fn default_params(preset: &DevicePreset, plan: &Plan) -> Vec<Param> {
    const READS: [&str; 9] = [
        "firmware.flash_op_us",
        "map_cache.size_kib",
        "flash.read_us",
        "flash.map_read_us",
        "host.submit_us",
        "flash.transfer_4k_us",
        "link.transfer_4k_us",
        "firmware.read_command_us",
        "map_memory.size_mib",
    ];
    const WRITES: [&str; 7] = [
        "flash.program_us",
        "firmware.write_command_us",
        "slc.program_us",
        "slc_cache.cells.program_us",
        "write_booster.buffer_mib",
        "slc_cache.static_mib",
        "slc_cache.dynamic_mib",
    ];
    let writes: &[&str] = if plan.writes() { &WRITES } else { &[] };
    let params = READS.iter().chain(writes).filter_map(|key| Param::of_key(key));
    params.filter(|p| p.value(preset) > 0).collect()
}

/// Evaluates what was measured of a device like `preset`. It needs readings that are not held out.
///
/// # Errors
/// When a run fails or is interrupted.
pub fn probe(
    plan: &Plan,
    preset: &DevicePreset,
    readings: &[Reading],
    options: &ProbeOptions,
    shared: &Shared,
) -> Result<Probe, ModelError> {
    let mut readings = readings.to_vec();
    readings.sort_by_key(|r| r.job);
    let settings: Vec<_> = readings.iter().map(|r| plan.jobs[r.job].setting).collect();
    // Simulated values have errors as well, since they are means of so many requests.
    let seed = FitOptions::default().seed;
    let at_start = predict(preset, plan.filled_blocks, &settings, options.ios, seed, shared)?;
    let sampling: Vec<f64> = at_start.iter().map(Outcome::sampling).collect();
    let error = |r: &Reading| r.scatter.max(plan.error_percent / 100.0).min(1.0);
    let measurement = |(r, sampling): (&Reading, &f64)| Measurement {
        line: r.job,
        setting: plan.jobs[r.job].setting,
        metric: Metric::Throughput,
        value: r.throughput_mib_s,
        error: (error(r) * error(r) + sampling * sampling).sqrt(),
        held_out: None,
    };
    let seen = readings.iter().zip(&sampling).filter(|(r, _)| !plan.jobs[r.job].held_out);
    let rows: Vec<Measurement> = seen.map(measurement).collect();
    let fit_options = FitOptions {
        params: options.params.clone(),
        ios: options.ios,
        advice: options.advice,
        candidates: plan.candidates(preset),
        candidate_error_percent: plan.error_percent,
        filled_blocks: plan.filled_blocks,
        rough: true,
        ..FitOptions::default()
    };
    let fit = fit(preset, &rows, &fit_options, shared)?;
    let shown = predict(&fit.preset, plan.filled_blocks, &settings, options.ios, seed, shared)?;
    let row = |(reading, predicted): (&Reading, Outcome)| Compared {
        reading: *reading,
        fitted: !plan.jobs[reading.job].held_out,
        error: error(reading),
        predicted,
    };
    let rows = readings.iter().zip(shown).map(row).collect();
    let known = fit.known();
    // An incomplete model gives unreliable advice on other jobs.
    let advice = fit.advice.as_ref().filter(|_| fit.is_plausible());
    let next = advice.map(|advice| plan.with(advice.measurements.iter().map(|(setting, _)| *setting)));
    Ok(Probe { plan: plan.clone(), fit, known, rows, next })
}
