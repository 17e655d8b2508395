// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison of variants over several seeds. Each run's document is that of the ordinary command with that seed; this
//! module adds runs of the same workload under further seeds, and statistics of their spread. It opens no file, and
//! runs are independent.

mod basis;
mod break_even;
mod document;
mod statistics;
#[cfg(test)]
mod tests;

pub use basis::{Basis, Read, replay_variants};
pub use break_even::{BreakEven, Grid, Wanted};
pub use document::{CompareTexts, document};
pub(crate) use statistics::t_95;

use crate::question::{Answer, AskError, Done, Point, Question, Shown};
use readpath_config::experiment::Variant;
use readpath_results::{Chart, Document, Error};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

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

    /// All seeds, in order.
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// The seed.
    pub seed: u64,
    /// Its variant.
    pub variant: String,
    /// What the run showed, without charts.
    pub document: Document,
    /// The run over time, if that was kept.
    pub over_time: Vec<Chart>,
    /// What the run lacks, and why.
    pub incomplete: Option<String>,
}

/// Variants compared with one of them, under the same workload and seeds.
#[derive(Clone, Debug)]
pub struct Comparison {
    basis: Basis,
    texts: CompareTexts,
    variants: Vec<String>,
    base: String,
    seeds: Seeds,
    points: Vec<Point>,
}

impl Comparison {
    /// The comparison of `variants` with the one called `base`.
    ///
    /// # Errors
    /// When a run cannot be planned.
    pub fn new(basis: Basis, variants: &[Variant], base: &str, seeds: Seeds) -> Result<Self, AskError> {
        let mut texts = basis.texts();
        if variants.len() > 1 {
            texts.title = format!("{}: {} variants compared", texts.title, variants.len());
        }
        let points = basis.points(variants, seeds)?;
        let variants = variants.iter().map(|variant| variant.name.clone()).collect();
        Ok(Comparison { basis, texts, variants, base: base.to_owned(), seeds, points })
    }
}

impl Question for Comparison {
    type Figures = Trial;

    fn title(&self) -> String {
        self.texts.title.clone()
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn figures(&self, shown: Shown<'_>) -> Result<Trial, Error> {
        self.basis.trial(shown)
    }

    fn answer(&self, done: &[Done<Trial>]) -> Result<Answer, AskError> {
        let trials: Vec<Trial> = done.iter().flatten().cloned().collect();
        answer(&self.texts, &trials, &self.variants, &self.base, self.seeds)
    }
}

fn answer(
    texts: &CompareTexts,
    trials: &[Trial],
    variants: &[String],
    base: &str,
    seeds: Seeds,
) -> Result<Answer, AskError> {
    let missing = trials.iter().filter_map(|trial| trial.incomplete.clone()).collect();
    Ok(Answer { missing, ..Answer::new(document(texts, trials, variants, base, seeds)?, trials.len()) })
}
