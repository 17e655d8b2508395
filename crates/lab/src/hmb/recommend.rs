// SPDX-License-Identifier: MIT OR Apache-2.0
//! The size of memory beyond which more memory gains next to nothing, and how sure that is. It knows sizes, and how
//! long requests took in each part of a run, not what the memory is.

use crate::compare::t_95;
use serde::{Deserialize, Serialize};

/// Requests of one part of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PartTimes {
    /// How many ended.
    pub requests: u64,
    /// Their total time, in nanoseconds.
    pub ns: f64,
}

/// A size of memory, and the times of the parts of its run. A part has the same requests, or the same duration, in the
/// runs of all sizes.
#[derive(Clone, Debug)]
pub struct SizeTimes {
    /// The memory.
    pub bytes: u64,
    /// Its variant.
    pub variant: String,
    /// The parts in order.
    pub parts: Vec<PartTimes>,
}

/// The share of the time of a request that more memory saves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Saving {
    /// Time saved in percent of the time with less memory; negative if requests take longer.
    pub percent: f64,
    /// Half of its 95 % confidence interval, in points; 0 where all parts save the same.
    pub half: f64,
}

impl Saving {
    /// Half of the interval, if there is one: parts with equal savings give no estimate of the spread.
    pub fn interval(&self) -> Option<f64> {
        Some(self.half).filter(|half| *half > ROUNDING)
    }
}

/// Halves of intervals, in points, that are sums of rounding.
const ROUNDING: f64 = 1e-9;

/// What the sizes of a case say.
#[derive(Clone, PartialEq, Debug)]
pub struct Advice {
    /// What the largest size saves of the time with each, in the order of sizes.
    pub left: Vec<Saving>,
    /// Place of the smallest size with which it saves less than [`LITTLE_PERCENT`], with all of the interval; none if
    /// that is only the largest itself.
    pub enough: Option<usize>,
}

/// Why there is no advice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoAdvice {
    /// There are fewer than two sizes to compare.
    OneSize,
    /// Number of parts that have requests with both sizes, fewer than [`LEAST_PARTS`].
    FewParts(usize),
}

/// A saving below this is not worth more memory.
pub const LITTLE_PERCENT: f64 = 1.0;
/// Least parts with requests of an interval.
pub const LEAST_PARTS: usize = 2;

/// The advice from `sizes`, which go from the smallest to the largest.
///
/// # Errors
/// Why there is none.
pub fn advise(sizes: &[SizeTimes]) -> Result<Advice, NoAdvice> {
    let Some((largest, smaller @ [_, ..])) = sizes.split_last() else { return Err(NoAdvice::OneSize) };
    let left = smaller.iter().map(|size| saving(&size.parts, &largest.parts)).collect::<Result<Vec<_>, _>>()?;
    let enough = left.iter().position(|saving| saving.percent + saving.half < LITTLE_PERCENT);
    Ok(Advice { left, enough })
}

/// What `more` saves of the time with `less`: one less the ratio of the mean times. The interval is that of the
/// jackknife, which leaves out one part after the other, by Student's t.
fn saving(less: &[PartTimes], more: &[PartTimes]) -> Result<Saving, NoAdvice> {
    let both = || less.iter().zip(more).filter(|(a, b)| a.requests > 0 && b.requests > 0);
    let parts = both().count();
    if parts < LEAST_PARTS {
        return Err(NoAdvice::FewParts(parts));
    }
    let sums = both().fold([0.0; 4], |sums, (a, b)| plus(sums, figures(a, b), 1.0));
    let all = saved(sums);
    let without: Vec<f64> = both().map(|(a, b)| saved(plus(sums, figures(a, b), -1.0))).collect();
    let n = parts as f64;
    let mean = without.iter().sum::<f64>() / n;
    let squares: f64 = without.iter().map(|s| (s - mean) * (s - mean)).sum();
    let error = ((n - 1.0) / n * squares).sqrt();
    Ok(Saving { percent: 100.0 * all, half: 100.0 * t_95(parts as u32 - 1) * error })
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

    fn size(mib: u64, us: &[f64]) -> SizeTimes {
        let parts = us.iter().map(|us| PartTimes { requests: 10, ns: us * 1e4 }).collect();
        SizeTimes { bytes: mib << 20, variant: format!("{mib} MiB"), parts }
    }

    #[test]
    fn the_smallest_size_beyond_which_next_to_nothing_is_gained() {
        let sizes = [
            size(0, &[200.0, 201.0, 199.0, 200.0]),
            size(16, &[100.2, 100.0, 100.1, 100.3]),
            size(64, &[100.0, 100.0, 100.0, 100.0]),
        ];
        let advice = advise(&sizes).expect("three sizes");
        assert_eq!(advice.enough, Some(1));
        assert!((advice.left[0].percent - 50.0).abs() < 0.2, "{advice:?}");
        assert!((advice.left[1].percent - 0.15).abs() < 0.01, "{advice:?}");
        // Deviations of 0.05, 0.15, 0.05 and 0.15 % around the mean; Student's t with 3 degrees of freedom is 3.18.
        let error = (2.0 * (0.05f64.powi(2) + 0.15f64.powi(2)) / 12.0).sqrt();
        assert!((advice.left[1].half - 3.182 * error).abs() < 0.01, "{advice:?}");
    }

    #[test]
    fn what_is_not_sure_is_not_enough() {
        // The mean gains 0.5 %, one part in four gains 2 %.
        let sizes = [size(16, &[100.0, 100.0, 100.0, 102.04]), size(64, &[100.0; 4])];
        let advice = advise(&sizes).expect("two sizes");
        assert!(advice.left[0].percent < LITTLE_PERCENT && advice.enough.is_none(), "{advice:?}");
    }

    #[test]
    fn parts_weigh_as_much_as_they_have_requests() {
        let mut sizes = [size(0, &[100.0, 100.0, 100.0]), size(8, &[50.0, 100.0, 100.0])];
        for size in &mut sizes {
            size.parts[0] = PartTimes { requests: 20, ns: size.parts[0].ns * 2.0 };
        }
        let advice = advise(&sizes).expect("two sizes");
        assert!((advice.left[0].percent - 25.0).abs() < 1e-9, "{advice:?}");
    }

    #[test]
    fn parts_without_requests_say_nothing() {
        let empty = PartTimes::default();
        let mut sizes = [size(0, &[100.0, 100.0, 100.0]), size(8, &[50.0, 50.0, 50.0])];
        sizes.iter_mut().for_each(|size| size.parts.push(empty));
        let saving = advise(&sizes).expect("parts").left[0];
        assert_eq!(saving, Saving { percent: 50.0, half: 0.0 });
        assert_eq!(saving.interval(), None, "they all save the same");
        // Nor do those that have requests with one size only.
        let mut one_sided = sizes.clone();
        one_sided[0].parts.push(PartTimes { requests: 10, ns: 1e9 });
        one_sided[1].parts.push(empty);
        assert_eq!(advise(&one_sided).expect("parts").left[0], saving);
        sizes.iter_mut().for_each(|size| size.parts = vec![size.parts[0], empty, empty, empty]);
        assert_eq!(advise(&sizes), Err(NoAdvice::FewParts(1)));
        assert_eq!(advise(&sizes[..1]), Err(NoAdvice::OneSize));
    }
}
