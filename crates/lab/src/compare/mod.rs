// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison of variants over several seeds. Each run's document is that of the ordinary command with that seed; what
//! is added here is the same workload under further seeds, and what the spread over them says. It opens no file, and a
//! run knows nothing of the others.

mod document;
mod statistics;
#[cfg(test)]
mod tests;

use crate::document as of_experiment;
use crate::experiment::{ExperimentError, Plan, Shared, first_failure, run_one};
use crate::over_time::{self, Timed};
use crate::replay::{self, ReplayCase, ReplayOptions, ReplayTexts, ReplayVariant};
use rayon::prelude::*;
use readpath_config::experiment::Experiment;
use readpath_results::{Chart, Document, Error as ResultsError};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use thiserror::Error;

pub use document::{CompareTexts, document};
pub(crate) use statistics::t_95;

/// Why a comparison gave no result.
#[derive(Debug, Error)]
pub enum CompareError {
    /// A run failed, or could not be planned.
    #[error(transparent)]
    Run(#[from] ExperimentError),
    /// A figure is not finite.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

/// Seeds in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seeds {
    first: u64,
    count: u32,
}

impl Seeds {
    /// `count` seeds, at least one, from `first` on; none if the last would be beyond 64 bits.
    pub fn new(first: u64, count: u32) -> Option<Self> {
        first.checked_add(u64::from(count.checked_sub(1)?)).map(|_| Seeds { first, count })
    }

    /// All of them, in order.
    pub fn all(self) -> RangeInclusive<u64> {
        self.first..=self.first + u64::from(self.count - 1)
    }

    /// The first.
    pub fn first(self) -> u64 {
        self.first
    }

    /// How many.
    pub fn count(self) -> u32 {
        self.count
    }
}

/// One run under one seed.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The seed.
    pub seed: u64,
    /// What the run showed, without charts.
    pub document: Document,
    /// The run over time, if that was kept.
    pub over_time: Vec<Chart>,
    /// What is missing of it, and why.
    pub incomplete: Option<String>,
}

/// Makes the runs that are planned, each with the experiment it belongs to and so its seed, on as many threads as the
/// pool has; they come back in order. A run is reduced to its figures as soon as it ends.
///
/// # Errors
/// That of the first run in order that failed.
pub fn run_plans(plans: Vec<(Arc<Experiment>, Plan)>, shared: &Shared) -> Result<Vec<Trial>, CompareError> {
    let results = plans
        .into_par_iter()
        .enumerate()
        .with_max_len(1)
        .map(|(place, (experiment, plan))| {
            let run = stopping(run_one(plan, place, shared), shared)?;
            let incomplete = run.incomplete();
            let document = of_experiment::document(&experiment, std::slice::from_ref(&run));
            let timed: Vec<Timed> = of_experiment::timed(&run).into_iter().collect();
            let over_time = over_time::charts(&run.plan.case, &timed, true);
            Ok(document.and_then(|d| Ok(trial(experiment.seed, d, over_time?, incomplete))))
        })
        .collect();
    Ok(first_failure(results)?.into_iter().collect::<Result<_, _>>()?)
}

/// Replays every case on every variant under every seed, as [`run_plans`] does with plans. `options` has a seed of its
/// own, which does not count.
///
/// # Errors
/// That of the first run in order that failed.
pub fn run_replays(
    texts: &ReplayTexts,
    cases: &[ReplayCase],
    variants: &[ReplayVariant],
    options: &ReplayOptions,
    seeds: Seeds,
    shared: &Shared,
) -> Result<Vec<Trial>, CompareError> {
    let places = |seed| (0..cases.len()).flat_map(move |c| (0..variants.len()).map(move |v| (seed, c, v)));
    let runs: Vec<(u64, usize, usize)> = seeds.all().flat_map(places).collect();
    let results = runs
        .into_par_iter()
        .with_max_len(1)
        .map(|(seed, case, variant)| {
            let over_time = options.over_time && seed == seeds.first();
            let options = ReplayOptions { seed, over_time, ..*options };
            let run = replay::run_one(cases, variants, (case, variant), &options, (), shared).0;
            let run = stopping(run, shared)?;
            let document = replay::document(texts, cases, variants, &options, std::slice::from_ref(&run));
            let timed: Vec<Timed> = replay::timed(&run, variants).into_iter().collect();
            let over_time = over_time::charts(&cases[case].name, &timed, true);
            Ok(document.and_then(|d| Ok(trial(seed, d, over_time?, None))))
        })
        .collect();
    Ok(first_failure(results)?.into_iter().collect::<Result<_, _>>()?)
}

/// A run that failed stops the others.
fn stopping<T>(result: Result<T, ExperimentError>, shared: &Shared) -> Result<T, ExperimentError> {
    if result.is_err() {
        shared.stop.store(true, Ordering::Relaxed);
    }
    result
}

fn trial(seed: u64, mut document: Document, over_time: Vec<Chart>, incomplete: Option<String>) -> Trial {
    document.charts.clear();
    Trial { seed, document, over_time, incomplete }
}
