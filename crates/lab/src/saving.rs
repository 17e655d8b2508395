// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one run saves of the time of requests that another takes, and how sure that is, from the times of their parts.
//! It knows numbers, not what differs between the runs.

use crate::compare::t_95;
use serde::{Deserialize, Serialize};

/// Requests of one part of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PartTimes {
    /// How many ended.
    pub requests: u64,
    /// Their total time, in nanoseconds.
    pub ns: f64,
}

/// The share of the time of a request that more memory saves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Saving {
    /// Time saved in percent of the time with less memory; negative if requests take longer.
    pub percent: f64,
    /// Half of its confidence interval, in points; 0 where all parts save the same.
    pub half: f64,
}

impl Saving {
    /// Half of the interval, if there is one: parts with equal savings give no estimate of the spread.
    pub(crate) fn interval(&self) -> Option<f64> {
        Some(self.half).filter(|half| *half > ROUNDING)
    }
}

/// Halves of intervals, in points, that are sums of rounding.
const ROUNDING: f64 = 1e-9;

/// Least parts with requests of an interval.
pub(crate) const LEAST_PARTS: usize = 2;

/// So many parts have requests in both runs, fewer than [`LEAST_PARTS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooFewParts(pub usize);

/// What `more` saves of the time with `less`: one less the ratio of the mean times. The interval is that of the
/// jackknife, which leaves out one part after the other, by Student's t; so many `intervals` cover together with 95 %.
///
/// # Errors
/// How many parts have requests in both runs, if those are fewer than [`LEAST_PARTS`].
pub(crate) fn saving(less: &[PartTimes], more: &[PartTimes], intervals: usize) -> Result<Saving, TooFewParts> {
    let both = || less.iter().zip(more).filter(|(a, b)| a.requests > 0 && b.requests > 0);
    let parts = both().count();
    if parts < LEAST_PARTS {
        return Err(TooFewParts(parts));
    }
    let sums = both().fold([0.0; 4], |sums, (a, b)| plus(sums, figures(a, b), 1.0));
    let all = saved(sums);
    let without: Vec<f64> = both().map(|(a, b)| saved(plus(sums, figures(a, b), -1.0))).collect();
    Ok(Saving { percent: 100.0 * all, half: 100.0 * jackknife(&without, intervals) })
}

/// Half of the 95 % interval of the mean time of a request, in nanoseconds, by the same means; none if fewer than
/// [`LEAST_PARTS`] parts have requests, or if all have the same mean.
pub(crate) fn half_of_mean(parts: &[PartTimes]) -> Option<f64> {
    let with_requests = parts.iter().filter(|part| part.requests > 0);
    half_of_ratio(&with_requests.map(|part| (part.ns, part.requests as f64)).collect::<Vec<_>>())
}

/// Half of the 95 % interval of the ratio of two sums, from the parts of both; none if fewer than [`LEAST_PARTS`] parts
/// have a second one, or if all have the same ratio.
pub(crate) fn half_of_ratio(parts: &[(f64, f64)]) -> Option<f64> {
    if parts.iter().filter(|(_, of)| *of > 0.0).count() < LEAST_PARTS {
        return None;
    }
    let (sum, of) = parts.iter().fold((0.0, 0.0), |(sum, of), part| (sum + part.0, of + part.1));
    let without: Vec<f64> = parts.iter().map(|part| (sum - part.0) / (of - part.1)).collect();
    Some(jackknife(&without, 1)).filter(|half| *half > ROUNDING * sum / of)
}

/// Half of the interval of a figure, one of so many, from its values without one part after the other.
fn jackknife(without: &[f64], intervals: usize) -> f64 {
    let n = without.len() as f64;
    let mean = without.iter().sum::<f64>() / n;
    let squares: f64 = without.iter().map(|s| (s - mean) * (s - mean)).sum();
    t_95(without.len() as u32 - 1, intervals) * ((n - 1.0) / n * squares).sqrt()
}

fn figures(less: &PartTimes, more: &PartTimes) -> [f64; 4] {
    [less.ns, less.requests as f64, more.ns, more.requests as f64]
}

fn plus(sums: [f64; 4], more: [f64; 4], sign: f64) -> [f64; 4] {
    std::array::from_fn(|i| sums[i] + sign * more[i])
}

fn saved([less_ns, less, more_ns, more]: [f64; 4]) -> f64 {
    1.0 - (more_ns / more) / (less_ns / less)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of equally many requests: the interval is that of the mean of their means.
    #[test]
    fn the_interval_of_a_mean_is_that_of_its_parts() {
        let parts =
            |us: &[f64]| -> Vec<PartTimes> { us.iter().map(|us| PartTimes { requests: 10, ns: us * 1e4 }).collect() };
        // Means 1, 2, 3 and 4 us: standard error sqrt(5/3)/2.
        let half = half_of_mean(&parts(&[1.0, 2.0, 3.0, 4.0])).expect("an interval");
        assert!((half - 1e3 * t_95(3, 1) * (5.0f64 / 3.0).sqrt() / 2.0).abs() < 1e-6, "{half}");
        assert_eq!(half_of_mean(&parts(&[2.0; 4])), None, "equal means");
        let idle = PartTimes::default();
        assert_eq!(half_of_mean(&[parts(&[2.0])[0], idle, idle]), None, "one part has requests");
    }
}
