// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much each factor matters: from Saltelli's points, from Morris's trajectories, and from the levels of a crossed
//! design. Shares are of 1.

use readpath_kit::Prng;

/// Bootstrap resamples for an interval.
const RESAMPLES: u64 = 200;

/// A value and half of its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Estimate {
    pub value: f64,
    pub half: f64,
}

/// First-order and total index of each factor: the estimators of Saltelli et al. (2010) and of Jansen (1999). `y` has
/// the points of each base sample, `rows` of them, one sample after another.
pub(crate) fn sobol(y: &[f64], factors: usize, rows: usize, seed: u64) -> Vec<(Estimate, Estimate)> {
    let samples = y.len() / rows;
    // Subtracting the mean does not change the indices and makes the estimate of the first order less noisy.
    let middle = y.iter().sum::<f64>() / y.len() as f64;
    let at = |sample: usize, row: usize| y[sample * rows + row] - middle;
    let indices = |pick: &dyn Fn(usize) -> usize, factor: usize| {
        let (mut sum, mut squares, mut first, mut total) = (0.0, 0.0, 0.0, 0.0);
        for n in 0..samples {
            let sample = pick(n);
            let (a, b, ab) = (at(sample, 0), at(sample, rows - 1), at(sample, 1 + factor));
            sum += a + b;
            squares += a * a + b * b;
            first += b * (ab - a);
            total += (a - ab) * (a - ab);
        }
        let n = samples as f64;
        let mean = sum / (2.0 * n);
        let variance = squares / (2.0 * n) - mean * mean;
        match variance > 0.0 {
            true => (first / n / variance, total / (2.0 * n) / variance),
            false => (0.0, 0.0),
        }
    };
    let estimate = |factor: usize| {
        let (first, total) = indices(&|n| n, factor);
        let (mut firsts, mut totals) = (Vec::new(), Vec::new());
        for resample in 0..RESAMPLES {
            let mut random = Prng::stream(seed, "bootstrap", resample);
            let picked: Vec<usize> = (0..samples).map(|_| random.below(samples as u64) as usize).collect();
            let (first, total) = indices(&|n| picked[n], factor);
            firsts.push(first);
            totals.push(total);
        }
        (Estimate { value: first, half: half_of(firsts) }, Estimate { value: total, half: half_of(totals) })
    };
    (0..factors).map(estimate).collect()
}

/// Half of the distance between the 2.5th and the 97.5th percentile.
fn half_of(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    (at(0.975) - at(0.025)) / 2.0
}

/// Mean without the sign, and standard deviation, of what each factor changes: Morris (1991), Campolongo et al. (2007).
/// `changed` says which factor differs between a point and the next, and whether upwards.
pub(crate) fn morris(y: &[f64], factors: usize, changed: impl Fn(usize) -> Option<(usize, bool)>) -> Vec<(f64, f64)> {
    let mut effects: Vec<Vec<f64>> = vec![Vec::new(); factors];
    for (index, pair) in y.windows(2).enumerate() {
        if let Some((factor, up)) = changed(index) {
            effects[factor].push(if up { pair[1] - pair[0] } else { pair[0] - pair[1] });
        }
    }
    effects
        .iter()
        .map(|effects| {
            let n = effects.len().max(1) as f64;
            let mean = effects.iter().sum::<f64>() / n;
            let size = effects.iter().map(|effect| effect.abs()).sum::<f64>() / n;
            let squares = effects.iter().map(|effect| (effect - mean) * (effect - mean)).sum::<f64>();
            (size, (squares / (n - 1.0).max(1.0)).sqrt())
        })
        .collect()
}

/// The share of the variance of `y` that lies between the levels of a factor; `level` says which level a point has.
pub(crate) fn variance_share(y: &[f64], level: impl Fn(usize) -> usize) -> f64 {
    let mean = y.iter().sum::<f64>() / y.len() as f64;
    let total: f64 = y.iter().map(|y| (y - mean) * (y - mean)).sum();
    let between: f64 = means(y, level).iter().map(|(level, n)| *n as f64 * (level - mean) * (level - mean)).sum();
    if total > 0.0 { between / total } else { 0.0 }
}

/// The mean of `y` at each level of a factor, and how many points it has.
pub(crate) fn means(y: &[f64], level: impl Fn(usize) -> usize) -> Vec<(f64, u64)> {
    let mut sums: Vec<(f64, u64)> = Vec::new();
    for (index, y) in y.iter().enumerate() {
        let level = level(index);
        if level >= sums.len() {
            sums.resize(level + 1, (0.0, 0));
        }
        sums[level].0 += y;
        sums[level].1 += 1;
    }
    sums.into_iter().map(|(sum, n)| (if n > 0 { sum / n as f64 } else { 0.0 }, n)).collect()
}

/// Points that no other beats in both: less of `cost`, and more of `gain`. In order of cost.
pub(crate) fn front(cost: &[f64], gain: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cost.len()).collect();
    order.sort_by(|&a, &b| cost[a].total_cmp(&cost[b]).then(gain[b].total_cmp(&gain[a])).then(a.cmp(&b)));
    let mut best = f64::NEG_INFINITY;
    order.retain(|&point| {
        let better = gain[point] > best;
        best = best.max(gain[point]);
        better
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_sum_are_those_of_its_terms() {
        // y = 3a + b over levels 0 to 3 of both: variances 9 to 1.
        let y: Vec<f64> = (0..16).map(|i| f64::from(3 * (i / 4) + i % 4)).collect();
        assert!((variance_share(&y, |i| i / 4) - 0.9).abs() < 1e-12);
        assert!((variance_share(&y, |i| i % 4) - 0.1).abs() < 1e-12);
        assert_eq!(means(&y, |i| i % 4), [(4.5, 4), (5.5, 4), (6.5, 4), (7.5, 4)]);
        assert_eq!(variance_share(&[2.0, 2.0], |i| i), 0.0);
    }

    #[test]
    fn effects_of_a_plane_are_its_slopes() {
        // Two trajectories of y = 5a - 2b, in steps of 1; the second goes down.
        let y = [0.0, 5.0, 3.0, 3.0, 5.0, 0.0];
        let changed = |i: usize| [Some((0, true)), Some((1, true)), None, Some((1, false)), Some((0, false))][i];
        assert_eq!(morris(&y, 2, changed), [(5.0, 0.0), (2.0, 0.0)]);
    }

    /// Of 2, 4, 4, 4, 5, 5, 7 and 9 the standard deviation of the sample is the root of 32/7, that of the eight 2.
    #[test]
    fn the_spread_of_effects_is_that_of_a_sample() {
        let y = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].map(|effect| [1.0, 1.0 + effect]).concat();
        let found = morris(&y, 1, |i| i.is_multiple_of(2).then_some((0, true)));
        assert!(found[0].0 == 5.0 && (found[0].1 - (32.0f64 / 7.0).sqrt()).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn an_interval_has_95_of_100_values() {
        assert_eq!(half_of((0..=1000).map(f64::from).collect()), 475.0);
    }

    #[test]
    fn a_front_has_what_nothing_beats() {
        assert_eq!(front(&[1.0, 2.0, 2.0, 3.0, 0.5], &[5.0, 4.0, 7.0, 7.0, 1.0]), [4, 0, 2]);
        assert_eq!(front(&[1.0, 2.0, 2.0], &[5.0, 6.0, 7.0]), [0, 2], "the better of equal cost");
        assert_eq!(front(&[], &[]), [0; 0]);
    }

    /// Of y = 4a + b, with a and b uniform over 0 to 1, the shares of the variance are 16/17 and 1/17.
    #[test]
    fn intervals_shrink_with_more_samples() {
        let study = |samples: u64| {
            let mut random = Prng::stream(1, "test", 0);
            let mut y = Vec::new();
            for _ in 0..samples {
                let [a, b, c, d] = std::array::from_fn(|_| random.unit_f64());
                let f = |x: f64, z: f64| 4.0 * x + z;
                y.extend([f(a, b), f(c, b), f(a, d), f(c, d)]);
            }
            sobol(&y, 2, 4, 7)
        };
        let (few, many) = (study(200), study(5000));
        let ((first, total), (second, _)) = (many[0], many[1]);
        assert!((first.value - 16.0 / 17.0).abs() < 2.0 * first.half, "{first:?}");
        assert!((total.value - 16.0 / 17.0).abs() < 2.0 * total.half, "{total:?}");
        assert!((second.value - 1.0 / 17.0).abs() < 2.0 * second.half + 0.01, "{second:?}");
        assert!(few[0].0.half > 2.0 * first.half && first.half > 0.0, "{:?} {first:?}", few[0]);
    }
}
