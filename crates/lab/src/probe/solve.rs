// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fits a device to what the jobs of a plan measured, says how sure each parameter is, and predicts what was held out.

use super::plan::{Job, Plan};
use super::readings::Reading;
use crate::fit::{Fit, FitOptions, Measurement, Metric, ModelError, Outcome, Param, Verdict, fit, predict};
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

/// A parameter and how well it is determined.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Known {
    /// Which.
    pub param: Param,
    /// The start of the search, in the parameter's whole units.
    pub start: u64,
    /// The value that fits best.
    pub fitted: u64,
    /// All values of all identified parameters lie within their intervals together with a probability of 95 %, if the
    /// model is right. Infinite bounds say that nothing is known.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Its verdict.
    pub verdict: Verdict,
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
    /// Whether the fitted device shows what was measured, within the errors, as far as chance allows. If not, nothing
    /// is identified.
    pub plausible: bool,
    /// The plan with the jobs that would tell most, behind its own; nothing if none would help.
    pub next: Option<Plan>,
}

impl Probe {
    /// The jobs that would tell most.
    pub(crate) fn next_jobs(&self) -> &[Job] {
        self.next.as_ref().map_or(&[], |next| &next.jobs[self.plan.jobs.len()..])
    }
}

/// Chance that some interval misses its value, if the model is right and errors are as stated.
const MISSES: f64 = 0.05;

/// Standard deviations of a misfit that is no chance: one time in a hundred.
const LARGE_MISFIT: f64 = 2.326;

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
    const WRITES: [&str; 6] = [
        "flash.program_us",
        "firmware.write_command_us",
        "slc.program_us",
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
    let at_start = predict(preset, &settings, options.ios, seed, shared)?;
    let sampling: Vec<f64> = at_start.iter().map(Outcome::sampling).collect();
    let error = |r: &Reading| r.scatter.max(plan.error_percent / 100.0).min(1.0);
    let measurement = |(r, sampling): (&Reading, &f64)| Measurement {
        line: r.job,
        setting: plan.jobs[r.job].setting,
        metric: Metric::Throughput,
        value: r.throughput_mib_s,
        error: (error(r) * error(r) + sampling * sampling).sqrt(),
    };
    let seen = readings.iter().zip(&sampling).filter(|(r, _)| !plan.jobs[r.job].held_out);
    let rows: Vec<Measurement> = seen.map(measurement).collect();
    let fit_options = FitOptions {
        params: options.params.clone(),
        ios: options.ios,
        advice: options.advice,
        candidates: plan.candidates(preset),
        candidate_error_percent: plan.error_percent,
        rough: true,
        ..FitOptions::default()
    };
    let fit = fit(preset, &rows, &fit_options, shared)?;
    let shown = predict(&fit.preset, &settings, options.ios, seed, shared)?;
    let row = |(reading, predicted): (&Reading, Outcome)| Compared {
        reading: *reading,
        fitted: !plan.jobs[reading.job].held_out,
        error: error(reading),
        predicted,
    };
    let rows = readings.iter().zip(shown).map(row).collect();
    let known = known(&fit);
    let plausible = plausible(&fit);
    // An incomplete model gives unreliable advice on other jobs.
    let advice = fit.advice.as_ref().filter(|_| plausible);
    let next = advice.map(|advice| plan.with(advice.measurements.iter().map(|(setting, _)| *setting)));
    Ok(Probe { plan: plan.clone(), plausible, fit, known, rows, next })
}

/// Whether the fitted device shows what was measured, within the errors, as far as chance allows: by Wilson and
/// Hilferty's approximation of the sum of squares.
fn plausible(fit: &Fit) -> bool {
    let n = fit.freedom as f64;
    if fit.freedom == 0 {
        return true;
    }
    let spread = 2.0 / (9.0 * n);
    let limit = n * libm::pow(1.0 - spread + LARGE_MISFIT * spread.sqrt(), 3.0);
    fit.misfit <= limit
}

/// Intervals of all parameters.
fn known(fit: &Fit) -> Vec<Known> {
    let plausible = plausible(fit);
    // If the model misses by more than the stated errors, these are too small, or the model is incomplete.
    let wider = if fit.freedom > 0 { (fit.misfit / fit.freedom as f64).sqrt().max(1.0) } else { 1.0 };
    let concerned = fit.params.iter().filter(|p| p.concerned).count();
    let reach = normal_quantile(MISSES / concerned.max(1) as f64);
    let one = |p: &crate::fit::FittedParam| {
        let error = p.standard_error * wider;
        let factor = libm::exp(reach * error);
        let value = p.param.in_unit(p.fitted);
        let verdict = match Verdict::of(error) {
            // A device that does not reproduce the measurements identifies nothing.
            Verdict::Identified if !plausible => Verdict::Weakly,
            // Nor does a search that did not converge.
            Verdict::Identified => p.verdict,
            verdict => verdict,
        };
        let known = p.concerned && factor.is_finite();
        let grain = p.param.grain(&fit.preset);
        let ends = || ((value / factor - grain).max(0.0), value * factor + grain);
        let (low, high) = if known { ends() } else { (0.0, f64::INFINITY) };
        Known { param: p.param, start: p.start, fitted: p.fitted, low, high, verdict }
    };
    fit.params.iter().map(one).collect()
}

/// How many standard deviations a normal variable is beyond, on either side, with a probability of `beyond`.
fn normal_quantile(beyond: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if libm::erfc(middle / core::f64::consts::SQRT_2) > beyond { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fit of so many parameters, which all are a read of flash of 60 us, with four degrees of freedom.
    fn fit_of(params: usize) -> Fit {
        let preset = readpath_config::device::load("ufs21-64g", &|_| Err(std::io::Error::other("none"))).unwrap();
        let one = crate::fit::FittedParam {
            param: Param::of_key("flash.read_us").unwrap(),
            start: 60_000,
            fitted: 60_000,
            standard_error: 0.05,
            verdict: Verdict::Identified,
            concerned: true,
            at_bound: false,
        };
        Fit {
            device: preset.name.clone(),
            preset,
            params: vec![one; params],
            rows: Vec::new(),
            combinations: Vec::new(),
            correlations: Vec::new(),
            advice: None,
            iterations: 1,
            converged: true,
            misfit_before: 100.0,
            misfit: 0.0,
            freedom: 4,
            simulated_ios: 0,
            options: FitOptions::default(),
        }
    }

    /// As the Particle Data Group does: by the root of the sum of squares over the degrees of freedom, if that is more
    /// than 1. Of several parameters all lie within their intervals with 95 %.
    #[test]
    fn intervals_are_as_wide_as_the_misfit_asks() {
        let mut fit = fit_of(1);
        let grain = fit.params[0].param.grain(&fit.preset);
        for (misfit, wider) in [(1.0, 1.0), (4.0, 1.0), (16.0, 2.0), (36.0, 3.0)] {
            fit.misfit = misfit;
            let [known] = &known(&fit)[..] else { panic!("one parameter") };
            let (down, up) = (60.0 / (known.low + grain), (known.high - grain) / 60.0);
            let wanted = libm::exp(1.959_964 * 0.05 * wider);
            assert!((down - wanted).abs() < 1e-5 && (up - wanted).abs() < 1e-5, "{misfit}: {known:?}");
        }
        let known = known(&fit_of(5));
        let wanted = 60.0 * libm::exp(2.575_829 * 0.05) + grain;
        assert!(known.len() == 5 && known.iter().all(|known| (known.high - wanted).abs() < 1e-3), "{known:?}");
    }

    /// 99 % points of the distribution of a sum of squares, as tables print them.
    #[test]
    fn a_misfit_that_comes_one_time_in_a_hundred_is_no_chance() {
        let mut fit = fit_of(1);
        for (freedom, published) in [(2, 9.210), (4, 13.277), (10, 23.209), (30, 50.892)] {
            fit.freedom = freedom;
            for (times, is_plausible) in [(0.98, true), (1.02, false)] {
                fit.misfit = published * times;
                assert_eq!(plausible(&fit), is_plausible, "{freedom} {}", fit.misfit);
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (beyond, wanted) in [(0.05, 1.959_964), (0.01, 2.575_829), (0.005, 2.807_034), (1.0, 0.0)] {
            assert!((normal_quantile(beyond) - wanted).abs() < 1e-5, "{beyond}");
        }
    }
}
