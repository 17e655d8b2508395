// SPDX-License-Identifier: MIT OR Apache-2.0
//! One number over several seeds: its values, the confidence interval of their mean, and the difference from another
//! variant. It computes no statistics; it checks that its fields agree.

use serde::{Deserialize, Serialize};

use crate::error::{Error, finite};

/// A range of values, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies within.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half of its width.
    pub fn half(self) -> f64 {
        (self.high - self.low) / 2.0
    }

    pub(crate) fn check(self, middle: f64, what: &impl Fn(&str) -> String) -> Result<(), Error> {
        finite(self.low, || what("low"))?;
        finite(self.high, || what("high"))?;
        if self.contains(middle) { Ok(()) } else { Err(Error::WrongInterval { what: what("interval") }) }
    }
}

/// The values behind a mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The value of each seed, in order of the seeds; the row's `simulated` is their mean.
    pub values: Vec<f64>,
    /// 95 % confidence interval of the mean; none for a single value, or if all are equal.
    pub interval: Option<Interval>,
}

/// The result of a comparison with the base variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The difference is zero for every seed.
    Identical,
    /// The difference is not zero and the same for every seed, or nothing depends on the seed: no chance is involved.
    Exact,
    /// The interval of the difference does not contain zero.
    Shown,
    /// The interval of the difference contains zero: it may be chance.
    NotShown,
    /// There is one seed only, so the part of chance is unknown.
    OneSeed,
}

/// The difference of a row from the base variant's row of the same case and metric, seed by seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Name of the base variant.
    pub base: String,
    /// Mean over the seeds of (this variant − base), in the unit of the row.
    pub mean: f64,
    /// 95 % confidence interval of that mean; none for a single seed, or if all differences are equal.
    pub interval: Option<Interval>,
    /// The mean in percent of the size of the base's mean; none if that is zero.
    pub percent: Option<f64>,
    /// The interval in percent of the base.
    pub percent_interval: Option<Interval>,
    /// The result.
    pub finding: Finding,
}

/// Relative rounding error that a mean may have.
const ROUNDING: f64 = 1e-9;

impl Sample {
    pub(crate) fn validate(&self, mean: f64, what: &impl Fn(&str) -> String) -> Result<(), Error> {
        for value in &self.values {
            finite(*value, || what("a value"))?;
        }
        let size = self.values.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
        let of_values = self.values.iter().sum::<f64>() / self.values.len() as f64;
        if self.values.is_empty() || (of_values - mean).abs() > ROUNDING * size {
            return Err(Error::WrongMean { what: what("row") });
        }
        self.interval.map_or(Ok(()), |i| i.check(mean, what))
    }
}

impl Difference {
    pub(crate) fn validate(&self, what: &impl Fn(&str) -> String) -> Result<(), Error> {
        let what = |field: &str| what(&format!("difference, {field}"));
        finite(self.mean, || what("mean"))?;
        if let Some(percent) = self.percent {
            finite(percent, || what("percent"))?;
        }
        self.interval.map_or(Ok(()), |i| i.check(self.mean, &what))?;
        match (self.percent_interval, self.percent) {
            (None, _) => {}
            (Some(interval), Some(percent)) => interval.check(percent, &what)?,
            (Some(_), None) => return Err(Error::WrongInterval { what: what("percent_interval") }),
        }
        let good = match (self.finding, self.interval) {
            (Finding::Identical, None) => self.mean == 0.0,
            (Finding::Exact, None) => self.mean != 0.0,
            (Finding::OneSeed, None) => true,
            (Finding::Shown, Some(interval)) => !interval.contains(0.0),
            (Finding::NotShown, Some(interval)) => interval.contains(0.0),
            _ => false,
        };
        if good { Ok(()) } else { Err(Error::WrongFinding { what: what("finding") }) }
    }
}
