// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published claims about an experiment without exact figures: one variant, or group of jobs, is faster than another by
//! some percentage.

use crate::error::Result;
use crate::keys::{Keys, filled, flag, keys, number, snake, texts};

/// A claim: in each case, a metric of one variant differs from that of another, or of another group of jobs, by a
/// percentage within limits.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// The claim in a sentence.
    pub text: String,
    /// Its source.
    pub source: String,
    /// Metric in snake case.
    pub metric: String,
    /// Group of jobs that it concerns, if a case has several.
    pub group: Option<String>,
    /// Group of jobs of the base, if it is another.
    pub base_group: Option<String>,
    /// The variant.
    pub variant: String,
    /// The variant that it is compared with.
    pub base: String,
    /// A parameter was chosen to satisfy the claim, so agreement proves little.
    pub fitted: bool,
    /// The cases that it concerns; all if empty.
    pub cases: Vec<String>,
    /// The least percentage by which the variant is above the base; negative is below.
    pub min_percent: Option<f64>,
    /// The greatest percentage.
    pub max_percent: Option<f64>,
}

impl Claim {
    /// Whether a difference in percent is within the claim.
    pub fn holds(&self, percent: f64) -> bool {
        self.min_percent.is_none_or(|min| percent >= min) && self.max_percent.is_none_or(|max| percent <= max)
    }
}

/// `[[claim]]`, for the cases and variants of a file.
pub(super) fn claim(k: &mut Keys<Claim>, cases: &[&str], variants: &[&str]) -> Result<Claim> {
    let claim = keys!(k => Claim {
        /// the claim in a sentence
        text: filled();
        /// source of the claim
        source: filled();
        /// metric to compare
        metric: snake();
        /// group of fio jobs, if a case has several: rows are then called `case: group`
        group: filled().optional();
        /// group of the base; by default `group`
        base_group: filled().optional();
        /// the variant
        variant: filled();
        /// the variant it is compared with
        base: filled();
        /// a parameter was chosen with the claim in view: the row's origin is `fit`, not `predicted`
        fitted: flag().or(false);
        /// cases that it covers; by default all
        cases: texts().or(Vec::new()).quiet();
        /// smallest difference; at least one of the two limits is required
        min_percent: number().optional();
        /// largest difference
        max_percent: number().optional();
    });
    let known = |key: &str, name: &String, names: &[&str]| {
        let message = format!("names {name:?}, which is not there; there are {}", names.join(", "));
        k.refuse(!names.contains(&name.as_str()), key, message)
    };
    known("variant", &claim.variant, variants)?;
    known("base", &claim.base, variants)?;
    claim.cases.iter().try_for_each(|case| known("cases", case, cases))?;
    let (min, max) = (claim.min_percent, claim.max_percent);
    let message = "or max_percent has to be there: the claim says nothing";
    k.refuse(min.is_none() && max.is_none(), "min_percent", message)?;
    let above = min.zip(max).filter(|(min, max)| min > max);
    k.refuse(above.is_some(), "min_percent", format!("is {}, above max_percent", min.unwrap_or_default()))?;
    Ok(claim)
}
