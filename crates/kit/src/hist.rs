// SPDX-License-Identifier: MIT OR Apache-2.0
//! A log-linear histogram of 64-bit values. `hdrhistogram` takes twice as long to record a value (it is the oracle of
//! the tests here) and its serial form is not ours to keep stable.

const SUB_BITS: u32 = 7;
const SUB: u64 = 1 << SUB_BITS;
const BUCKETS: usize = ((64 - SUB_BITS + 1) << SUB_BITS) as usize;

/// Counts of values in buckets whose width is at most 1/128 of the value; exact sum, minimum and maximum.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    sum_squares: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: Vec::new(), count: 0, sum: 0, sum_squares: 0, min: u64::MAX, max: 0 }
    }
}

#[inline]
fn bucket_of(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - SUB_BITS;
    ((u64::from(shift + 1) << SUB_BITS) + ((value >> shift) - SUB)) as usize
}

/// The largest value that falls into `bucket`.
fn bucket_top(bucket: usize) -> u64 {
    let (row, col) = ((bucket as u64) >> SUB_BITS, (bucket as u64) & (SUB - 1));
    if row == 0 {
        return col;
    }
    let shift = row - 1;
    ((SUB + col) << shift) + ((1 << shift) - 1)
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        match self.counts.get_mut(bucket_of(value)) {
            Some(count) => *count += 1,
            None => self.record_above(value),
        }
        self.count += 1;
        self.sum += u128::from(value);
        self.sum_squares += u128::from(value) * u128::from(value);
        // Rarely true, so a branch costs less than a minimum that is stored every time.
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
    }

    /// Counts a value above the allocated buckets. All buckets take 58 KiB, those for latencies up to 250 us 12 KiB:
    /// there may be thousands of histograms, so each allocates only what it uses.
    #[cold]
    fn record_above(&mut self, value: u64) {
        let bucket = bucket_of(value);
        // At least up to twice the value, so that growing stays rare.
        self.grow((((bucket >> SUB_BITS) + 2) << SUB_BITS).min(BUCKETS));
        self.counts[bucket] += 1;
    }

    fn grow(&mut self, buckets: usize) {
        self.counts.reserve_exact(buckets.saturating_sub(self.counts.len()));
        self.counts.resize(buckets.max(self.counts.len()), 0);
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        self.grow(other.counts.len());
        for (a, b) in self.counts.iter_mut().zip(&other.counts) {
            *a += b;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.sum_squares += other.sum_squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Exact sum of the values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Smallest value; 0 when empty.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// Largest value; 0 when empty.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Mean; 0 when empty.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Standard deviation (of the population); 0 when empty.
    pub fn stddev(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let mean = self.mean();
        (self.sum_squares as f64 / self.count as f64 - mean * mean).max(0.0).sqrt()
    }

    /// The value below or at which a share `q` (0 to 1) of all values lies, rounded up to its bucket's top; at most
    /// 1/128 too high. 0 when empty.
    pub fn quantile(&self, q: f64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        for (bucket, &n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return bucket_top(bucket).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Every bucket that is not empty, as (largest value in the bucket, count), ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|&(_, &n)| n > 0).map(|(b, &n)| (bucket_top(b), n))
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Histogram {{ count: {}, mean: {:.1}, max: {} }}", self.count, self.mean(), self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_tile_the_whole_range() {
        let mut bottom = 0u64;
        for b in 0..BUCKETS {
            assert_eq!(bucket_of(bottom), b);
            let top = bucket_top(b);
            assert_eq!(bucket_of(top), b);
            assert!(top - bottom <= bottom / 128);
            if top == u64::MAX {
                assert_eq!(b, BUCKETS - 1);
                return;
            }
            bottom = top + 1;
        }
        panic!("the last bucket must end at u64::MAX");
    }

    #[test]
    fn buckets_are_there_as_far_as_values_reach() {
        let of = |values: &[u64]| {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&v| histogram.record(v));
            histogram
        };
        let (short, long) = (of(&[100_000, 100_001]), of(&[u64::MAX, 3]));
        assert!(short.counts.len() * 8 < 13_000, "{} buckets", short.counts.len());
        assert_eq!(long.counts.len(), BUCKETS);
        // Merging gives the same result in both directions.
        for (mut one, other) in [(short.clone(), &long), (long.clone(), &short), (Histogram::default(), &short)] {
            let count = one.count() + other.count();
            one.merge(other);
            assert_eq!(one.buckets().map(|(_, n)| n).sum::<u64>(), count);
            assert_eq!(one.max(), one.buckets().last().map_or(0, |(top, _)| top.min(one.max())));
        }
    }

    proptest! {
        #[test]
        fn quantiles_agree_with_hdrhistogram(
            values in proptest::collection::vec(1u64..10_000_000, 1..400),
            q in 0.0f64..1.0,
        ) {
            let mut ours = Histogram::default();
            let mut oracle = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 20_000_000, 3).unwrap();
            for &v in &values {
                ours.record(v);
                oracle.record(v).unwrap();
            }
            let (a, b) = (ours.quantile(q) as f64, oracle.value_at_quantile(q) as f64);
            prop_assert!((a - b).abs() <= b / 100.0 + 1.0, "{a} against {b}");
            let mut twice = Histogram::default();
            twice.merge(&ours);
            twice.merge(&ours);
            prop_assert_eq!((twice.count(), twice.quantile(q)), (2 * ours.count(), ours.quantile(q)));
            let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
            prop_assert!((ours.mean() - mean).abs() < 1e-6 * mean);
        }
    }
}
