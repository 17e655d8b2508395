// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters that are one of a few ways to be built and have no slope: each way is tried, with all other parameters
//! fitted for it.

use super::identify::Verdict;
use super::model::{ModelError, Values};
use super::params;
use super::starts::AS_GOOD;
use super::{FitOptions, FittedParam, Measurement, Param, Search};
use crate::runs::Shared;
use readpath_config::DevicePreset;
use std::collections::BTreeMap;

/// The key of a number of equal workers: the time of each may grow with it.
const CORES: &str = "firmware.cores";
const WORK: &str = "firmware.flash_op_us";
/// Rounds over all choices at most: one may depend on another.
const ROUNDS: u32 = 3;

/// What a device of one way shows at best.
#[derive(Clone)]
struct Tried {
    misfit: f64,
    /// The misfit that a longer search might still reach.
    least: f64,
    values: Values,
}

/// What is known of the choices, and where to go on.
pub(super) struct Chosen {
    /// The device as it is built.
    pub preset: DevicePreset,
    /// The best values of the other parameters so far.
    pub values: Values,
    /// The choices.
    pub choices: Vec<FittedParam>,
}

/// Looks how a device is built.
pub(super) struct Choosing<'a> {
    preset: &'a DevicePreset,
    rows: &'a [Measurement],
    choices: Vec<Param>,
    params: &'a [Param],
    options: &'a FitOptions,
    shared: &'a Shared,
    /// By the values of the choices; nothing where there is no such device.
    tried: BTreeMap<Values, Option<Tried>>,
}

impl<'a> Choosing<'a> {
    pub(super) fn new(
        preset: &'a DevicePreset,
        rows: &'a [Measurement],
        choices: Vec<Param>,
        params: &'a [Param],
        (options, shared): (&'a FitOptions, &'a Shared),
    ) -> Self {
        Choosing { preset, rows, choices, params, options, shared, tried: BTreeMap::new() }
    }

    /// The best way, and which others are as good.
    pub(super) fn choose(mut self) -> Result<Chosen, ModelError> {
        let mut built: Values = self.choices.iter().map(|p| p.value(self.preset)).collect();
        let start = self.params.iter().map(|p| p.start(self.preset)).collect();
        let Some(mut best) = self.best_of(&built, &start)? else {
            return Ok(Chosen { preset: self.preset.clone(), values: start, choices: Vec::new() });
        };
        let mut possible = vec![Vec::new(); self.choices.len()];
        for _ in 0..ROUNDS {
            let before = built.clone();
            for (i, possible) in possible.iter_mut().enumerate() {
                *possible = self.look(i, &mut built, &mut best)?;
            }
            if built == before {
                break;
            }
        }
        let fitted = self.choices.iter().zip(&built).zip(possible).map(|((param, value), possible)| FittedParam {
            param: *param,
            start: param.value(self.preset),
            fitted: *value,
            standard_error: if possible.len() == 1 { 0.0 } else { f64::INFINITY },
            verdict: if possible.len() == 1 { Verdict::Identified } else { Verdict::NotIdentified },
            concerned: true,
            at_bound: false,
            possible,
        });
        let choices = fitted.collect();
        Ok(Chosen { preset: self.device(&built)?, values: best.values, choices })
    }

    fn device(&self, built: &Values) -> Result<DevicePreset, ModelError> {
        let values: Vec<(Param, u64)> = self.choices.iter().copied().zip(built.iter().copied()).collect();
        Ok(params::device(self.preset, &values)?)
    }

    /// Tries the values of one choice, moves to the best, and returns all that are as good.
    fn look(&mut self, which: usize, built: &mut Values, best: &mut Tried) -> Result<Vec<u64>, ModelError> {
        let (first, last) = self.choices[which].bounds(self.preset);
        let here = built[which];
        let counts = self.choices[which].counts();
        let mut tried = vec![(here, best.clone())];
        let mut as_well = None;
        let ways: [Vec<u64>; 2] = [(here + 1..=last).collect(), (first..here).rev().collect()];
        for (up, way) in [true, false].into_iter().zip(ways) {
            for value in way {
                let mut other = built.clone();
                other[which] = value;
                let from = tried.iter().min_by(|a, b| a.1.misfit.total_cmp(&b.1.misfit)).map(|(_, t)| t.values.clone());
                let Some(found) = self.best_of(&other, &from.unwrap_or_default())? else { continue };
                let least = tried.iter().map(|(_, t)| t.misfit).fold(f64::INFINITY, f64::min);
                let worse = found.least > least + self.chance(least);
                let same = counts && up && !worse && self.shows_the_same(&other, &found, which)?;
                tried.push((value, found));
                // More workers than are ever busy make no difference, and too few or many only grow worse.
                if same {
                    as_well = Some(value + 1..=last);
                }
                if same || (counts && worse) {
                    break;
                }
            }
        }
        // What is in the preset stands unless another is better by more than nothing.
        let mut at = 0;
        for (i, (_, t)) in tried.iter().enumerate() {
            if t.misfit < tried[at].1.misfit - 0.1_f64.max(0.02 * t.misfit) {
                at = i;
            }
        }
        (built[which], *best) = tried[at].clone();
        let limit = best.misfit + self.chance(best.misfit);
        let mut possible: Vec<u64> = tried.iter().filter(|(_, t)| t.least <= limit).map(|(value, _)| *value).collect();
        if as_well.as_ref().is_some_and(|more| possible.contains(&(more.start() - 1))) {
            possible.extend(as_well.into_iter().flatten());
        }
        possible.sort_unstable();
        possible.dedup();
        Ok(possible)
    }

    /// The difference of misfits that chance may make.
    fn chance(&self, misfit: f64) -> f64 {
        let freedom = self.rows.len().saturating_sub(self.params.len()).max(1) as f64;
        AS_GOOD * (misfit / freedom).max(1.0)
    }

    /// Whether one worker more changes no row.
    fn shows_the_same(&self, built: &Values, found: &Tried, which: usize) -> Result<bool, ModelError> {
        let mut more = built.clone();
        more[which] += 1;
        if more[which] > self.choices[which].bounds(self.preset).1 {
            return Ok(false);
        }
        let mut shown = Vec::new();
        for built in [built, &more] {
            let device = self.device(built)?;
            let mut search = Search::new(&device, self.rows, self.params.to_vec(), self.options, self.shared);
            shown.push(search.simulated(&found.values)?);
        }
        Ok(shown[0] == shown[1])
    }

    /// The best values of the other parameters for a device that is built so, searched from `from` on.
    fn best_of(&mut self, built: &Values, from: &Values) -> Result<Option<Tried>, ModelError> {
        if let Some(known) = self.tried.get(built) {
            return Ok(known.clone());
        }
        let mut best: Option<Tried> = None;
        if let Ok(device) = self.device(built) {
            let mut search = Search::new(&device, self.rows, self.params.to_vec(), self.options, self.shared);
            for start in self.starts(built, from) {
                if !search.possible(&start) {
                    continue;
                }
                let end = search.run(&start, self.options.iterations, false)?;
                let misfit = search.simulated(&end.values).map(|s| search.misfit(&s))?;
                let least = (misfit - if end.converged { 0.0 } else { end.promised }).max(0.0);
                if best.as_ref().is_none_or(|best| misfit < best.misfit) {
                    best = Some(Tried { misfit, least, values: end.values });
                }
            }
        }
        self.tried.insert(built.clone(), best.clone());
        Ok(best)
    }

    /// Places to begin from: the best values so far, and with another number of workers, the same work done.
    fn starts(&self, built: &Values, from: &Values) -> Vec<Values> {
        let mut starts = vec![from.clone()];
        let cores = self.choices.iter().position(|p| p.key() == CORES);
        let work = self.params.iter().position(|p| p.key() == WORK);
        if let (Some(cores), Some(work)) = (cores, work) {
            let of_preset = self.params[work].start(self.preset) as f64;
            let times = built[cores] as f64 / self.choices[cores].value(self.preset) as f64;
            let mut scaled = from.clone();
            scaled[work] = self.params[work].realize(of_preset * times, self.preset);
            if scaled != *from {
                starts.push(scaled);
            }
        }
        starts
    }
}
