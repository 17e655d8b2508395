// SPDX-License-Identifier: MIT OR Apache-2.0
//! Means of a few values and how sure they are. Knows numbers, not what they measure.
//!
//! No function of the system's mathematical library is used whose last bit may differ between machines.

use readpath_results::Interval;
use std::f64::consts::FRAC_2_PI;

/// The mean of some values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its 95 % confidence interval; none for a single value, or if all are equal.
    pub interval: Option<Interval>,
    /// All values are equal, bit for bit.
    pub equal: bool,
}

/// What `values`, at least one, say of their mean. Student's t assumes that they are independent and roughly normal.
pub(super) fn estimate(values: &[f64]) -> Estimate {
    let first = values[0];
    if values.iter().all(|v| v.to_bits() == first.to_bits()) {
        // Not computed: a sum would round.
        return Estimate { mean: first, interval: None, equal: true };
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    let half = t_95(values.len() as u32 - 1, 1) * error;
    Estimate { mean, interval: Some(Interval { low: mean - half, high: mean + half }), equal: false }
}

/// How many standard errors each of so many intervals reaches to each side, if all of them cover together with 95 % at
/// least (Bonferroni's correction): the quantile of Student's t at 1 − 0.05 / (2 `intervals`) with `freedom` degrees of
/// freedom, at least 1.
pub(crate) fn t_95(freedom: u32, intervals: usize) -> f64 {
    let outside = 0.05 / intervals.max(1) as f64;
    let mut high = 13.0;
    while 1.0 - within(high, freedom) > outside {
        high *= 2.0;
    }
    let mut low = 0.0;
    loop {
        let middle = (low + high) / 2.0;
        if middle <= low || middle >= high {
            return middle;
        }
        if within(middle, freedom) < 1.0 - outside { low = middle } else { high = middle }
    }
}

/// Probability that a variable of Student's t lies within ±`t`: the finite sums of Abramowitz and Stegun, Handbook of
/// Mathematical Functions, 26.7.3 and 26.7.4.
fn within(t: f64, freedom: u32) -> f64 {
    let v = f64::from(freedom);
    let cos2 = v / (v + t * t);
    let sin = t / (v + t * t).sqrt();
    let odd = freedom % 2 == 1;
    let terms = (freedom / 2).saturating_sub(u32::from(!odd));
    let (mut sum, mut term) = (0.0, 1.0);
    for k in 0..=terms {
        if k > 0 {
            let k = f64::from(k);
            term *= cos2 * if odd { 2.0 * k / (2.0 * k + 1.0) } else { (2.0 * k - 1.0) / (2.0 * k) };
        }
        sum += term;
    }
    match (freedom, odd) {
        (1, _) => FRAC_2_PI * libm::atan(t),
        // The sum of the odd case has one term less.
        (_, true) => FRAC_2_PI * (libm::atan(t / v.sqrt()) + sin * cos2.sqrt() * (sum - term)),
        (_, false) => sin * sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 97.5 % points as every table of Student's t prints them.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, published) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (6, 2.447),
            (7, 2.365),
            (8, 2.306),
            (9, 2.262),
            (10, 2.228),
            (15, 2.131),
            (20, 2.086),
            (29, 2.045),
            (30, 2.042),
            (40, 2.021),
            (60, 2.000),
            (120, 1.980),
            (999, 1.962),
        ] {
            let t = t_95(freedom, 1);
            assert!((t - published).abs() <= 0.0005, "{freedom} degrees of freedom: {t}, not {published}");
        }
    }

    /// The columns 99.5 %, 99.75 %, 99.9 % and 99.95 % of the same tables are those of 5, 10, 25 and 50 intervals.
    #[test]
    fn quantiles_of_several_intervals_are_those_of_the_tables() {
        const INTERVALS: [usize; 4] = [5, 10, 25, 50];
        for (freedom, published) in [
            (1, [63.657, 127.321, 318.309, 636.619]),
            (2, [9.925, 14.089, 22.327, 31.599]),
            (3, [5.841, 7.453, 10.215, 12.924]),
            (4, [4.604, 5.598, 7.173, 8.610]),
            (5, [4.032, 4.773, 5.893, 6.869]),
            (10, [3.169, 3.581, 4.144, 4.587]),
            (15, [2.947, 3.286, 3.733, 4.073]),
            (19, [2.861, 3.174, 3.579, 3.883]),
            (30, [2.750, 3.030, 3.385, 3.646]),
            (120, [2.617, 2.860, 3.160, 3.373]),
        ] {
            for (intervals, published) in INTERVALS.into_iter().zip(published) {
                let t = t_95(freedom, intervals);
                assert!((t - published).abs() <= 0.0005, "{freedom}, {intervals} intervals: {t}, not {published}");
            }
        }
        // With one degree of freedom the quantile is a cotangent.
        let cotangent = 1.0 / libm::tan(std::f64::consts::FRAC_PI_2 * 0.05 / 1e6);
        assert!((t_95(1, 1_000_000) / cotangent - 1.0).abs() < 1e-6);
    }

    #[test]
    fn mean_and_interval() {
        // Mean 3, standard deviation sqrt(2.5), standard error sqrt(0.5), times 2.776.
        let e = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        let half = 2.776_445_105 * 0.5f64.sqrt();
        let interval = e.interval.expect("an interval");
        assert_eq!((e.mean, e.equal), (3.0, false));
        assert!((interval.low - (3.0 - half)).abs() < 1e-8 && (interval.high - (3.0 + half)).abs() < 1e-8);
        // Two values: 12.706 times half of their distance.
        let interval = estimate(&[10.0, 12.0]).interval.expect("an interval");
        assert!((interval.half() - 12.706_204_736).abs() < 1e-8);
    }

    #[test]
    fn equal_values_have_no_interval() {
        // Their sum, divided, is another number.
        let e = estimate(&[0.1; 3]);
        assert_eq!((e.mean, e.interval, e.equal), (0.1, None, true));
        assert_ne!((0.1 + 0.1 + 0.1) / 3.0, 0.1);
        assert_eq!(estimate(&[7.0]), Estimate { mean: 7.0, interval: None, equal: true });
        assert!(!estimate(&[0.0, 1e-300]).equal);
    }
}
