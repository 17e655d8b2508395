// SPDX-License-Identifier: MIT OR Apache-2.0
//! The size of memory beyond which more memory gains next to nothing, and how sure that is. It knows sizes, and how
//! long requests took in each part of a run, not what the memory is.

use crate::saving::{PartTimes, Saving, TooFewParts, saving};

/// A size of memory, and the times of the parts of its run. A part has the same requests, or the same duration, in the
/// runs of all sizes.
#[derive(Clone, Debug)]
pub(crate) struct SizeTimes {
    /// The memory.
    pub bytes: u64,
    /// Its variant.
    pub variant: String,
    /// The parts in order.
    pub parts: Vec<PartTimes>,
}

impl SizeTimes {
    /// Mean time of all requests, in microseconds.
    pub(crate) fn mean_us(&self) -> f64 {
        let (ns, requests) = self.parts.iter().fold((0.0, 0), |(ns, n), part| (ns + part.ns, n + part.requests));
        ns / 1e3 / requests.max(1) as f64
    }
}

/// What the sizes of a case say.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Advice {
    /// What the largest size saves of the time with each, in the order of sizes.
    pub left: Vec<Saving>,
    /// What each size but the smallest saves of the time with the smallest.
    pub gained: Vec<Saving>,
    /// Place of the smallest size with which it saves less than [`LITTLE_PERCENT`], with all of the interval; none if
    /// that is only the largest itself.
    pub enough: Option<usize>,
}

/// Why there is no advice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoAdvice {
    /// There are fewer than two sizes to compare.
    OneSize,
    /// Too few parts have requests with both sizes.
    FewParts(TooFewParts),
}

/// A saving below this is not worth more memory.
pub(crate) const LITTLE_PERCENT: f64 = 1.0;

/// The advice from `sizes`, which go from the smallest to the largest.
///
/// # Errors
/// Why there is none.
pub(crate) fn advise(sizes: &[SizeTimes]) -> Result<Advice, NoAdvice> {
    let Some((largest, smaller @ [_, ..])) = sizes.split_last() else { return Err(NoAdvice::OneSize) };
    let left = smaller.iter().map(|size| saving(&size.parts, &largest.parts, 1)).collect::<Result<Vec<_>, _>>();
    let left = left.map_err(NoAdvice::FewParts)?;
    let gained = sizes[1..].iter().map(|size| saving(&sizes[0].parts, &size.parts, 1)).collect::<Result<Vec<_>, _>>();
    let gained = gained.map_err(NoAdvice::FewParts)?;
    let enough = left.iter().position(|saving| saving.percent + saving.half < LITTLE_PERCENT);
    Ok(Advice { left, gained, enough })
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
        assert_eq!(advise(&sizes), Err(NoAdvice::FewParts(TooFewParts(1))));
        assert_eq!(advise(&sizes[..1]), Err(NoAdvice::OneSize));
    }
}
