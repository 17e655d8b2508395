// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fits a device to measurements of it, and says which of its parameters the measurements fix and which they do not.
//!
//! Every measurement is simulated; parameters are changed by Levenberg's method, on their logarithms, until the sum of
//! squared differences, each in units of its measurement's standard error, is least. Searches from several places guard
//! against one that stops too early. Then the derivatives at the best place, and the distances of equally good places,
//! show how well each parameter is known. This module prints nothing and opens no file.

mod choices;
mod filled;
mod identify;
mod intervals;
mod linalg;
mod measurements;
mod model;
mod params;
mod report;
mod review;
mod setting;
mod starts;
mod table;
#[cfg(test)]
mod tests;

pub use identify::{Advice, Combination, Correlation, Verdict};
pub use intervals::Known;
pub(crate) use intervals::WIDE;
pub use measurements::{DEFAULT_ERROR_PERCENT, MOST_ROWS, Measurement, Metric, check, hold_out, parse};
pub use model::{ModelError, Outcome, predict};
pub use params::{DEFAULT_PARAMS, Jobs, Param, default_params, device, fill_params, with_cache_of};
pub(crate) use report::{jobs_notes, parts_note};
pub use setting::{Access, LongWrite, Setting, Stretch};
pub use table::MeasurementError;

use crate::runs::Shared;
use choices::{Choosing, Chosen};
use linalg::{dot, eigen, gram};
use model::{Model, Values};
use readpath_config::{ConfigFileError, DevicePreset};

/// How a fit is made.
#[derive(Clone, Debug)]
pub struct FitOptions {
    /// Parameters to fit.
    pub params: Vec<Param>,
    /// Requests that are timed for each measurement.
    pub ios: u32,
    /// Steps of each search at most.
    pub iterations: u32,
    /// Seed of the places that are read.
    pub seed: u64,
    /// Whether to look for further measurements that would fix what these do not.
    pub advice: bool,
    /// Blocks from the first on that held data when writes were measured, if that is more than their range.
    pub filled_blocks: u32,
    /// Measurements that could be made; if there are none here, random reads within, around and beyond what the device
    /// holds in SRAM.
    pub candidates: Vec<Setting>,
    /// Standard error that they would have, in percent.
    pub candidate_error_percent: f64,
    /// For many measurements, some of which change in leaps with the parameters. Derivatives are updated from step to
    /// step, and calculated anew only where they lead to no gain. A search has ended when they promise no gain beyond
    /// chance; standard errors grow accordingly. Searches also begin at a longer value of a time without effect, since
    /// another time may hide it.
    pub rough: bool,
}

impl Default for FitOptions {
    fn default() -> Self {
        FitOptions {
            params: DEFAULT_PARAMS.to_vec(),
            ios: 20_000,
            iterations: 30,
            seed: 1,
            advice: true,
            filled_blocks: 0,
            candidates: Vec::new(),
            candidate_error_percent: DEFAULT_ERROR_PERCENT,
            rough: false,
        }
    }
}

/// The result for a parameter.
#[derive(Clone, Debug)]
pub struct FittedParam {
    /// Which.
    pub param: Param,
    /// The start of the search, in the parameter's whole units.
    pub start: u64,
    /// The end of the search.
    pub fitted: u64,
    /// Standard error as a share of the value, if measurements are as good as they say. 1 if they say nothing,
    /// infinite if none can.
    pub standard_error: f64,
    /// How well the measurements determine it.
    pub verdict: Verdict,
    /// Whether some measurement could depend on it. If none can, it was left as it was.
    pub concerned: bool,
    /// Whether the search ended at the smallest or largest possible value.
    pub at_bound: bool,
    /// Of a choice: all values that fit as well as the best, which is one of them. Empty for what has intervals.
    pub possible: Vec<u64>,
}

/// A measurement and what the fitted device shows.
#[derive(Clone, Copy, Debug)]
pub struct FittedRow {
    /// The measurement.
    pub measurement: Measurement,
    /// What the device at the start showed.
    pub before: f64,
    /// What the fitted device shows.
    pub simulated: f64,
}

impl FittedRow {
    /// Difference to the measured value in percent of it.
    pub fn error_percent(&self) -> f64 {
        100.0 * (self.simulated / self.measurement.value - 1.0)
    }
}

/// The result of a fit.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Name of the device at the start.
    pub device: String,
    /// The fitted device.
    pub preset: DevicePreset,
    /// All parameters that were asked for.
    pub params: Vec<FittedParam>,
    /// All measurements.
    pub rows: Vec<FittedRow>,
    /// Combinations that the measurements fix although they do not fix each of their parameters.
    pub combinations: Vec<Combination>,
    /// Pairs of parameters that can hardly be distinguished.
    pub correlations: Vec<Correlation>,
    /// Further measurements that would help.
    pub advice: Option<Advice>,
    /// Steps that all searches took.
    pub iterations: u32,
    /// Whether the best search ended because there was nothing more to gain.
    pub converged: bool,
    /// Sum of squared differences at the start, each in units of its standard error.
    pub misfit_before: f64,
    /// The misfit at the end.
    pub misfit: f64,
    /// Measurements less directions that they determine.
    pub freedom: usize,
    /// Requests simulated.
    pub simulated_ios: u64,
    /// Options of the fit.
    pub options: FitOptions,
}

/// Directions with a standard error above 50 % are followed only for a gain beyond chance: derivatives are not valid
/// that far. In units of the logarithm an eigenvalue is one over the variance.
const SAYS_SOMETHING: f64 = 4.0;
/// Directions with a smaller eigenvalue are never followed.
const SAYS_NOTHING: f64 = 0.05;
/// A gain of two standard errors.
const BEYOND_CHANCE: f64 = 4.0;
/// Least damping, which limits steps in directions that are hardly better known.
const LEAST_DAMPING: f64 = 1.0;
/// Longest step of a logarithm.
const LONGEST_STEP: f64 = 0.7;
/// Attempts with growing damping before a step is given up.
const ATTEMPTS: u32 = 8;
/// Attempts of a step with derivatives of an earlier step.
const FEW_ATTEMPTS: u32 = 2;
/// A step of a logarithm over which derivatives are not carried on.
const LONG_MOVE: f64 = 0.3;
/// A gain of one standard error.
const WITHIN_CHANCE: f64 = 1.0;
/// A relative change of a parameter that does not matter.
const SMALL: f64 = 2e-4;

/// Derivatives of the logarithm of each simulated value by that of each parameter, a row for each measurement.
pub(crate) type Jacobian = Vec<Vec<f64>>;

/// Fits `preset` to those of `rows` that are not held out, one at least, and predicts the others. [`check`] has
/// accepted them for it.
///
/// # Errors
/// When a run fails or is interrupted.
pub fn fit(
    preset: &DevicePreset,
    rows: &[Measurement],
    options: &FitOptions,
    shared: &Shared,
) -> Result<Fit, ModelError> {
    let mut asked: Vec<Param> = Vec::new();
    for param in &options.params {
        if !asked.contains(param) {
            asked.push(*param);
        }
    }
    let seen: Vec<Measurement> = rows.iter().filter(|row| row.is_seen()).copied().collect();
    let concerned = |p: &&Param| seen.iter().any(|r| p.concerns(&r.setting, preset));
    let (choices, params): (Vec<Param>, Vec<Param>) = asked.iter().filter(concerned).partition(|p| p.is_choice());
    let start: Values = params.iter().map(|p| p.start(preset)).collect();
    let mut at_start = Search::new(preset, &seen, params.clone(), options, shared);
    let before = at_start.simulated_of(rows, &start)?;
    let misfit_before = at_start.simulated(&start).map(|s| at_start.misfit(&s))?;
    let chosen = match choices.is_empty() {
        true => Chosen { preset: preset.clone(), values: start.clone(), choices: Vec::new() },
        false => Choosing::new(preset, &seen, choices, &params, (options, shared)).choose()?,
    };
    let built = &chosen.preset;
    let mut search = Search::new(built, &seen, params.clone(), options, shared);
    let (found, apart) = search.search_from_several(&chosen.values, options)?;

    let of_choices = chosen.choices.iter().map(|p| (p.param, p.fitted));
    let values: Vec<(Param, u64)> = params.iter().copied().zip(found.values.iter().copied()).collect();
    let fitted_preset = fitted_device(preset, &values.into_iter().chain(of_choices).collect::<Vec<_>>())?;
    let jacobian = if options.rough { search.jacobian(&seen, &found.values)? } else { found.jacobian };
    let weighted = search.weighted(&jacobian);
    let mut known = identify::identify(&params, &found.values, &weighted);
    if options.rough {
        known.loosen((1.0 + found.promised).sqrt());
        known.add(&apart);
    } else {
        known.widen(&apart);
    }
    if !found.converged {
        known.distrust();
    }
    let fitted = asked.iter().map(|&param| {
        if let Some(choice) = chosen.choices.iter().find(|p| p.param == param) {
            let verdict = if found.converged { choice.verdict } else { Verdict::NotIdentified };
            return FittedParam { verdict, ..choice.clone() };
        }
        match params.iter().position(|p| *p == param) {
            Some(i) => {
                let (least, most) = param.bounds(built);
                FittedParam {
                    param,
                    start: start[i],
                    fitted: found.values[i],
                    standard_error: known.standard_errors[i],
                    verdict: known.verdicts[i],
                    concerned: true,
                    at_bound: found.values[i] == least || found.values[i] == most,
                    possible: Vec::new(),
                }
            }
            None => FittedParam {
                param,
                start: param.value(preset),
                fitted: param.value(preset),
                standard_error: f64::INFINITY,
                verdict: Verdict::NotIdentified,
                concerned: false,
                at_bound: false,
                possible: Vec::new(),
            },
        }
    });
    let fitted: Vec<FittedParam> = fitted.collect();
    let is_open = |p: &FittedParam| p.verdict != Verdict::Identified && !p.param.is_choice();
    let advice = if options.advice && fitted.iter().any(is_open) {
        // Advice may concern parameters that no measurement depends on so far.
        let open = fitted.iter().filter(|p| !p.param.is_choice());
        let values = open.clone().map(|p| if p.concerned { p.fitted } else { p.param.start(preset) }).collect();
        let mut wider = Search::new(built, &seen, open.map(|p| p.param).collect(), options, shared);
        identify::advise(&mut wider, &values, options)?
    } else {
        None
    };
    let misfit = search.simulated(&found.values).map(|s| search.misfit(&s))?;
    let simulated = search.simulated_of(rows, &found.values)?;
    let fitted_rows = rows
        .iter()
        .zip(before.iter().zip(&simulated))
        .map(|(m, (&before, &simulated))| FittedRow { measurement: *m, before, simulated })
        .collect();
    Ok(Fit {
        device: preset.name.clone(),
        preset: fitted_preset,
        params: fitted,
        rows: fitted_rows,
        combinations: known.combinations,
        correlations: known.correlations,
        advice,
        iterations: found.iterations,
        converged: found.converged,
        misfit_before,
        misfit,
        freedom: seen.len().saturating_sub(known.determined),
        simulated_ios: shared.ios.load(std::sync::atomic::Ordering::Relaxed),
        options: options.clone(),
    })
}

/// The device with the fitted values. Its name says that it is another device: the calibration of the one at the start
/// does not hold for it.
fn fitted_device(preset: &DevicePreset, values: &[(Param, u64)]) -> Result<DevicePreset, ConfigFileError> {
    let mut device = params::device(preset, values)?;
    let kept = preset.name.len().min(LONGEST_NAME - FITTED.len());
    device.name = format!("{}{FITTED}", &preset.name[..kept]);
    device.description = format!(
        "The device '{}', with the keys under [calibration] fitted to measurements. All others are as there.",
        preset.name
    );
    let keys = values.iter().flat_map(|(p, _)| p.file_keys());
    device.fitted = keys.map(|key| (key.to_owned(), "measurements".to_owned())).collect();
    Ok(device)
}

/// Suffix of the name of a fitted device.
const FITTED: &str = "-fitted";
/// Characters that a name may have.
const LONGEST_NAME: usize = 64;

/// The end of a search.
#[derive(Clone)]
struct Minimum {
    values: Values,
    jacobian: Jacobian,
    iterations: u32,
    converged: bool,
    /// Gain that the derivatives still promise.
    promised: f64,
}

/// The search for the values that fit best.
pub(crate) struct Search<'a> {
    preset: &'a DevicePreset,
    rows: &'a [Measurement],
    params: Vec<Param>,
    model: Model<'a>,
    rough: bool,
}

impl<'a> Search<'a> {
    fn new(
        preset: &'a DevicePreset,
        rows: &'a [Measurement],
        params: Vec<Param>,
        options: &FitOptions,
        shared: &'a Shared,
    ) -> Self {
        let model = Model::new(preset, params.clone(), options.ios, options.seed, shared);
        let model = model.filled(options.filled_blocks);
        Search { preset, rows, params, model, rough: options.rough }
    }

    /// Whether there can be a device with these values: some limit each other.
    fn possible(&self, values: &Values) -> bool {
        let values: Vec<(Param, u64)> = self.params.iter().copied().zip(values.iter().copied()).collect();
        params::device(self.preset, &values).is_ok()
    }

    /// What the device with `values` shows for every measurement.
    fn simulated(&mut self, values: &Values) -> Result<Vec<f64>, ModelError> {
        self.simulated_of(self.rows, values)
    }

    fn simulated_of(&mut self, rows: &[Measurement], values: &Values) -> Result<Vec<f64>, ModelError> {
        let settings: Vec<usize> = rows.iter().map(|r| self.model.setting(r.setting)).collect();
        let wanted: Vec<(usize, Values)> = settings.iter().map(|s| (*s, values.clone())).collect();
        self.model.prepare(&wanted)?;
        let of = |(row, setting): (&Measurement, &usize)| Ok(self.model.outcome(*setting, values)?.of(row.metric));
        rows.iter().zip(&settings).map(of).collect()
    }

    /// Differences to the measured values in units of their standard errors.
    fn residuals(&self, simulated: &[f64]) -> Vec<f64> {
        let of = |(row, s): (&Measurement, &f64)| (ln(*s) - ln(row.value)) / row.error;
        self.rows.iter().zip(simulated).map(of).collect()
    }

    fn misfit(&self, simulated: &[f64]) -> f64 {
        let r = self.residuals(simulated);
        dot(&r, &r)
    }

    /// The differences' squares when all simulated values may be multiplied by one factor.
    fn shape_misfit(&self, simulated: &[f64]) -> f64 {
        let weights: Vec<f64> = self.rows.iter().map(|r| 1.0 / r.error).collect();
        let r = self.residuals(simulated);
        let factor = dot(&r, &weights) / dot(&weights, &weights);
        r.iter().zip(&weights).map(|(r, w)| (r - factor * w) * (r - factor * w)).sum()
    }

    /// Derivatives in units of the measurements' standard errors.
    fn weighted(&self, jacobian: &Jacobian) -> Jacobian {
        let scale = |(row, d): (&Measurement, &Vec<f64>)| d.iter().map(|x| x / row.error).collect();
        self.rows.iter().zip(jacobian).map(scale).collect()
    }

    /// The derivatives with sizes taken as fixed.
    fn without_sizes(&self, jacobian: &Jacobian) -> Jacobian {
        let mut weighted = self.weighted(jacobian);
        for derivatives in &mut weighted {
            for (d, param) in derivatives.iter_mut().zip(&self.params) {
                if param.is_size() {
                    *d = 0.0;
                }
            }
        }
        weighted
    }

    /// The derivatives that a search follows: in a rough search one-sided differences, at half the cost.
    fn slopes(&mut self, values: &Values) -> Result<Jacobian, ModelError> {
        self.differences(self.rows, values, !self.rough)
    }

    /// Central differences at `values`.
    fn jacobian(&mut self, rows: &[Measurement], values: &Values) -> Result<Jacobian, ModelError> {
        self.differences(rows, values, true)
    }

    fn differences(&mut self, rows: &[Measurement], values: &Values, is_central: bool) -> Result<Jacobian, ModelError> {
        let sides: Vec<(Values, Values)> = (0..values.len())
            .map(|i| {
                let param = self.params[i];
                let step = param.step(values[i], self.preset);
                let side = |factor: f64| {
                    let mut side = values.clone();
                    side[i] = param.realize(values[i] as f64 * factor, self.preset);
                    if self.possible(&side) { side } else { values.clone() }
                };
                (if is_central { side(1.0 - step) } else { values.clone() }, side(1.0 + step))
            })
            .collect();
        let settings: Vec<usize> = rows.iter().map(|r| self.model.setting(r.setting)).collect();
        let mut wanted = Vec::new();
        for setting in &settings {
            wanted.extend(sides.iter().flat_map(|(a, b)| [(*setting, a.clone()), (*setting, b.clone())]));
        }
        self.model.prepare(&wanted)?;
        let mut jacobian = Vec::new();
        for (row, &setting) in rows.iter().zip(&settings) {
            let mut derivatives = Vec::new();
            for (i, (low, high)) in sides.iter().enumerate() {
                let (a, b) = (self.model.outcome(setting, low)?, self.model.outcome(setting, high)?);
                let width = ln(high[i] as f64) - ln(low[i] as f64);
                let change = ln(b.of(row.metric)) - ln(a.of(row.metric));
                derivatives.push(if width > 0.0 { change / width } else { 0.0 });
            }
            jacobian.push(derivatives);
        }
        Ok(jacobian)
    }

    /// Capacities show only near the range that was read: a search that begins far away sees no slope. So some sizes
    /// are tried first.
    fn capacities(&mut self, values: &mut Values, from_found: bool) -> Result<(), ModelError> {
        for i in 0..self.params.len() {
            let param = self.params[i];
            // Long writes show where caches end, whatever the times are.
            if !param.is_size() || from_found && matches!(param, Param::Cache(_)) {
                continue;
            }
            let mut best = (self.simulated(values).map(|s| self.shape_misfit(&s))?, values[i]);
            let here = best.0;
            for factor in [0.125, 0.25, 0.5, 0.71, 1.41, 2.0, 4.0, 8.0] {
                let mut other = values.clone();
                other[i] = param.realize(values[i] as f64 * factor, self.preset);
                if !self.possible(&other) {
                    continue;
                }
                let simulated = self.simulated(&other)?;
                let misfit = self.shape_misfit(&simulated);
                if misfit < best.0 {
                    best = (misfit, other[i]);
                }
            }
            if best.0 < 0.7 * here && here > 1.0 {
                values[i] = best.1;
            }
        }
        Ok(())
    }

    /// A search from `start`. `from_found` says that its sizes are those where another search ended.
    fn run(&mut self, start: &Values, most: u32, from_found: bool) -> Result<Minimum, ModelError> {
        let mut values = start.clone();
        self.capacities(&mut values, from_found)?;
        let mut simulated = self.simulated(&values)?;
        let mut damping = LEAST_DAMPING;
        let mut iterations = 0;
        let mut jacobian = self.slopes(&values)?;
        let mut is_exact = true;
        loop {
            let residuals = self.residuals(&simulated);
            let step = Step::new(&self.weighted(&jacobian), &residuals, values.len());
            let misfit = self.misfit(&simulated);
            if iterations == most && is_exact {
                let step = self.final_step(step, &values, &residuals)?;
                let converged = self.has_converged(&step, &values, misfit);
                return Ok(Minimum { values, jacobian, iterations, converged, promised: step.gain() });
            }
            let mut better = None;
            let attempts = if is_exact { ATTEMPTS } else { FEW_ATTEMPTS };
            for _ in 0..if iterations < most { attempts } else { 0 } {
                let next = self.moved(&values, &step.with(damping));
                if next != values && self.possible(&next) {
                    let s = self.simulated(&next)?;
                    if self.misfit(&s) < misfit {
                        better = Some((next, s));
                        break;
                    }
                }
                damping *= 6.0;
            }
            if better.is_none() && !is_exact {
                jacobian = self.slopes(&values)?;
                (is_exact, damping) = (true, LEAST_DAMPING);
                continue;
            }
            iterations += 1;
            // Sizes change in whole pages and regions, which may prevent a gain: a step of times alone may still have
            // one.
            let times = Step::new(&self.without_sizes(&jacobian), &residuals, values.len());
            if better.is_none() {
                let next = self.moved(&values, &times.with(LEAST_DAMPING));
                if self.possible(&next) {
                    let s = self.simulated(&next)?;
                    better = (self.misfit(&s) < misfit).then_some((next, s));
                }
            }
            let Some((next, s)) = better else {
                // No step gains. The search has ended if little gain was promised.
                let step = self.final_step(step, &values, &residuals)?;
                let converged = self.has_converged(&step, &values, misfit)
                    || (times.small(&values, self.preset, &self.params, misfit)
                        && step.within_units(&values, self.preset, &self.params));
                return Ok(Minimum { values, jacobian, iterations, converged, promised: step.gain() });
            };
            damping = (damping / 10.0).max(LEAST_DAMPING);
            let gained = misfit - self.misfit(&s);
            let moves: Vec<f64> = next.iter().zip(&values).map(|(a, b)| ln(*a as f64) - ln(*b as f64)).collect();
            let moved = moves.iter().fold(0.0, |most: f64, m| most.max(m.abs()));
            let ends = moved < SMALL && gained < 1e-3 * misfit.max(1e-3);
            is_exact = ends || !self.rough || moved > LONG_MOVE;
            jacobian = match is_exact {
                true => self.slopes(&next)?,
                false => carried_on(jacobian, &moves, &simulated, &s),
            };
            (values, simulated) = (next, s);
            if ends {
                let step = Step::new(&self.weighted(&jacobian), &self.residuals(&simulated), values.len());
                return Ok(Minimum { values, jacobian, iterations, converged: true, promised: step.gain() });
            }
        }
    }

    /// The step that decides whether a search has ended: one-sided differences would promise a gain at the edge of a
    /// valley.
    fn final_step(&mut self, step: Step, values: &Values, residuals: &[f64]) -> Result<Step, ModelError> {
        if !self.rough {
            return Ok(step);
        }
        let jacobian = self.jacobian(self.rows, values)?;
        Ok(Step::new(&self.weighted(&jacobian), residuals, values.len()))
    }

    fn has_converged(&self, step: &Step, values: &Values, misfit: f64) -> bool {
        step.small(values, self.preset, &self.params, misfit) || (self.rough && step.gain() < WITHIN_CHANCE)
    }

    fn moved(&self, values: &Values, step: &[f64]) -> Values {
        let by = |((param, value), step): ((&Param, &u64), &f64)| {
            let step = step.clamp(-LONGEST_STEP, LONGEST_STEP);
            param.realize(*value as f64 * libm::exp(step), self.preset)
        };
        self.params.iter().zip(values).zip(step).map(by).collect()
    }
}

/// Derivatives after a step, by Broyden's update: the smallest change that explains the step.
fn carried_on(mut jacobian: Jacobian, moves: &[f64], before: &[f64], after: &[f64]) -> Jacobian {
    let length = dot(moves, moves);
    for (derivatives, (a, b)) in jacobian.iter_mut().zip(before.iter().zip(after)) {
        let unexplained = ln(*b) - ln(*a) - dot(derivatives, moves);
        for (d, m) in derivatives.iter_mut().zip(moves) {
            *d += unexplained * m / length;
        }
    }
    jacobian
}

/// The step that a linear model recommends, before damping.
struct Step {
    eigen: linalg::Eigen,
    /// Slope along each direction.
    slopes: Vec<f64>,
}

impl Step {
    fn new(weighted: &Jacobian, residuals: &[f64], n: usize) -> Step {
        let eigen = eigen(&gram(weighted, n));
        let gradient: Vec<f64> = (0..n).map(|i| weighted.iter().zip(residuals).map(|(d, r)| d[i] * r).sum()).collect();
        let slopes = eigen.vectors.iter().map(|v| dot(v, &gradient)).collect();
        Step { eigen, slopes }
    }

    fn with(&self, damping: f64) -> Vec<f64> {
        let mut step = vec![0.0; self.slopes.len()];
        for ((value, vector), slope) in self.eigen.values.iter().zip(&self.eigen.vectors).zip(&self.slopes) {
            if follows(*value, *slope) {
                for (s, v) in step.iter_mut().zip(vector) {
                    *s -= slope / (value + damping) * v;
                }
            }
        }
        step
    }

    /// How much less the misfit would be if the linear model were true.
    fn gain(&self) -> f64 {
        (self.eigen.values.iter().zip(&self.slopes))
            .map(|(value, slope)| if follows(*value, *slope) { slope * slope / value } else { 0.0 })
            .sum()
    }

    /// Whether the step is within the noise of a difference quotient, or promises next to nothing.
    fn small(&self, values: &Values, preset: &DevicePreset, params: &[Param], misfit: f64) -> bool {
        let gain = self.gain();
        let step = self.with(LEAST_DAMPING);
        let near = |((s, v), p): ((&f64, &u64), &Param)| s.abs() <= (p.unit(preset) as f64 / *v as f64).max(0.005);
        gain < 0.1_f64.max(0.02 * misfit) || step.iter().zip(values).zip(params).all(near)
    }

    /// Whether the step changes sizes by hardly more than whole units allow.
    fn within_units(&self, values: &Values, preset: &DevicePreset, params: &[Param]) -> bool {
        let step = self.with(LEAST_DAMPING);
        let within =
            |((s, v), p): ((&f64, &u64), &Param)| !p.is_size() || s.abs() <= 2.0 * p.unit(preset) as f64 / *v as f64;
        step.iter().zip(values).zip(params).all(within)
    }
}

/// Whether a direction with this eigenvalue and slope is worth following.
fn follows(value: f64, slope: f64) -> bool {
    value > SAYS_SOMETHING || (value > SAYS_NOTHING && slope * slope / value > BEYOND_CHANCE)
}

/// The natural logarithm, the same on every machine.
fn ln(x: f64) -> f64 {
    libm::log(x.max(f64::MIN_POSITIVE))
}
