// SPDX-License-Identifier: MIT OR Apache-2.0
//! Skewed choices among `0..n`: Zipf, Pareto and zoned. Tables are built once; a draw allocates nothing and costs one
//! or two random words. Transcendental functions come from `libm` only, so the same seed gives the same bits on every
//! machine. This module knows nothing of blocks, files or requests.

use std::sync::Arc;

use readpath_kit::Prng;

/// Gaps of a Poisson process: independent, exponentially distributed.
#[derive(Clone, Debug)]
pub struct Gaps(Prng);

impl Gaps {
    /// The gaps that `seed` chooses.
    pub fn new(seed: u64) -> Gaps {
        Gaps(Prng::stream(seed, "gaps", 0))
    }

    /// The next gap, in units of the mean.
    pub fn draw(&mut self) -> f64 {
        -libm::log(1.0 - self.0.unit_f64())
    }
}

/// One bin of the Zipf envelope: ranks `start..start + width`, all weighted like its first rank.
#[derive(Clone, Copy, Debug)]
struct Bin {
    /// Alias method: fractions below this stay in this bin, the others go to `alias`.
    threshold: u64,
    /// Acceptance fractions up to this need no look at the exact weight.
    floor: u64,
    alias: u32,
    start: u32,
    width: u32,
}

/// Ranks `0..n`, rank k with a probability proportional to `1 / (k + 1)^theta`.
///
/// The ranks are cut into bins of about 1/32 of their first rank. A bin is drawn from an alias table by the mass of its
/// envelope, a rank evenly within it, and the rank is accepted with the ratio of its weight to the envelope's; about 97
/// % of the draws are accepted without computing that ratio. Rejection-inversion (Hörmann and Derflinger 1996) gives
/// the same distribution with a logarithm and an exponential per draw.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    theta: f64,
    bins: Arc<[Bin]>,
}

impl Zipf {
    /// The distribution over `n` ranks (1 to 2^32 - 1) with exponent `theta` (above 0, at most 10).
    pub(crate) fn new(n: u32, theta: f64) -> Zipf {
        let mut bins = Vec::with_capacity(1024);
        let mut mass = Vec::with_capacity(1024);
        let mut start = 0u64;
        while start < u64::from(n) {
            let first = start + 1;
            let width = (first / 32).max(1).min(u64::from(n) - start);
            let worst = weight(theta, (start + width) as f64 / first as f64);
            // A little below the last rank's ratio, so that rounding cannot accept too much.
            let floor = if width == 1 { u64::MAX } else { to_fraction(worst * (1.0 - 1e-12)) };
            bins.push(Bin { threshold: 0, floor, alias: 0, start: start as u32, width: width as u32 });
            mass.push(width as f64 * weight(theta, first as f64));
            start += width;
        }
        alias(&mut bins, &mass);
        Zipf { theta, bins: bins.into() }
    }

    #[inline]
    pub(crate) fn sample(&self, rng: &mut Prng) -> u32 {
        loop {
            let wide = u128::from(rng.next_u64()) * self.bins.len() as u128;
            let mut bin = &self.bins[(wide >> 64) as usize];
            if (wide as u64) >= bin.threshold {
                bin = &self.bins[bin.alias as usize];
            }
            if bin.width == 1 {
                return bin.start;
            }
            let wide = u128::from(rng.next_u64()) * u128::from(bin.width);
            let step = (wide >> 64) as u32;
            let fraction = wide as u64;
            if fraction <= bin.floor || self.accept(bin, step, fraction) {
                return bin.start + step;
            }
        }
    }

    #[cold]
    fn accept(&self, bin: &Bin, step: u32, fraction: u64) -> bool {
        let first = f64::from(bin.start) + 1.0;
        fraction < to_fraction(weight(self.theta, (first + f64::from(step)) / first))
    }
}

/// `x` to the power of minus `theta`.
fn weight(theta: f64, x: f64) -> f64 {
    libm::pow(x, -theta)
}

/// A probability as a 64-bit fraction; one saturates.
fn to_fraction(p: f64) -> u64 {
    (p * 18_446_744_073_709_551_616.0) as u64
}

/// Fills the alias columns for the weights `mass` (Walker's method in Vose's order).
fn alias(bins: &mut [Bin], mass: &[f64]) {
    let total: f64 = mass.iter().sum();
    let mut share: Vec<f64> = mass.iter().map(|m| m / total * mass.len() as f64).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..share.len()).partition(|&i| share[i] < 1.0);
    while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
        small.pop();
        bins[s].threshold = to_fraction(share[s]);
        bins[s].alias = l as u32;
        share[l] -= 1.0 - share[s];
        if share[l] < 1.0 {
            large.pop();
            small.push(l);
        }
    }
    for i in small.into_iter().chain(large) {
        bins[i].threshold = u64::MAX;
        bins[i].alias = i as u32;
    }
}

/// Ranks `0..n` of which the first share `h` takes the share `1 - h` of the draws, self-similar at every scale: the
/// form of fio's `pareto:h` (fio HOWTO, `random_distribution`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pareto {
    n: u32,
    power: f64,
}

impl Pareto {
    /// The distribution over `n` ranks (at least 1) with `h` in (0, 1).
    pub(crate) fn new(n: u32, h: f64) -> Pareto {
        Pareto { n, power: libm::log(h) / libm::log(1.0 - h) }
    }

    #[inline]
    pub(crate) fn sample(&self, rng: &mut Prng) -> u32 {
        // A number in (0, 1], so that the logarithm is finite.
        let u = 1.0 - rng.unit_f64();
        let rank = f64::from(self.n) * libm::exp(self.power * libm::log(u));
        (rank as u32).min(self.n - 1)
    }
}

/// A part of a file and its share of the accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Share of the accesses, in percent.
    pub access_percent: u8,
    /// Share of the file, in percent.
    pub size_percent: u8,
}

/// Positions `0..n` in zones that lie one after another, each even within itself (fio's `zoned:`).
#[derive(Clone, Debug)]
pub(crate) struct Zoned {
    table: Arc<ZoneTable>,
}

#[derive(Debug)]
struct ZoneTable {
    /// Zone of each percent of the accesses.
    zone_of: [u8; 100],
    /// First position and length of each zone.
    spans: Vec<(u32, u32)>,
}

impl Zoned {
    /// The distribution over `n` positions; both shares of `zones` (at most 256) must sum to 100.
    pub(crate) fn new(n: u32, zones: &[Zone]) -> Zoned {
        let edge = |percent: u64| (u64::from(n) * percent / 100) as u32;
        let (mut accesses, mut size) = (0usize, 0u64);
        let mut zone_of = [0u8; 100];
        let mut spans = Vec::with_capacity(zones.len());
        for (i, zone) in zones.iter().enumerate() {
            let (from, to) = (edge(size), edge(size + u64::from(zone.size_percent)));
            // A zone too small for one position is served by the position where it would begin.
            spans.push((from.min(n - 1), (to - from).max(1)));
            let end = (accesses + usize::from(zone.access_percent)).min(100);
            zone_of[accesses.min(100)..end].fill(i as u8);
            accesses = end;
            size += u64::from(zone.size_percent);
        }
        Zoned { table: Arc::new(ZoneTable { zone_of, spans }) }
    }

    #[inline]
    pub(crate) fn sample(&self, rng: &mut Prng) -> u32 {
        let zone = self.table.zone_of[rng.below(100) as usize];
        let (start, len) = self.table.spans[usize::from(zone)];
        start + rng.below(u64::from(len)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exact probabilities of the ranks of a Zipf distribution.
    fn zipf_probabilities(n: u32, theta: f64) -> Vec<f64> {
        let w: Vec<f64> = (1..=n).map(|k| weight(theta, f64::from(k))).collect();
        let sum: f64 = w.iter().sum();
        w.iter().map(|x| x / sum).collect()
    }

    #[test]
    fn zipf_meets_the_exact_frequencies() {
        for (theta, seed) in [(0.5, 1), (0.99, 2), (1.0, 3), (1.2, 4), (2.5, 5)] {
            let (n, draws) = (1000u32, 1_000_000u32);
            let zipf = Zipf::new(n, theta);
            let mut rng = Prng::new(seed);
            let mut counts = vec![0u32; n as usize];
            for _ in 0..draws {
                counts[zipf.sample(&mut rng) as usize] += 1;
            }
            // Ranks whose expectation is at least 20, the rest in one class; the normal bound of chi-square at 0.01 %.
            let (mut chi, mut classes, mut rest_seen, mut rest_want) = (0.0, 0.0, 0.0, 0.0);
            for (&c, p) in counts.iter().zip(zipf_probabilities(n, theta)) {
                let (seen, want) = (f64::from(c), p * f64::from(draws));
                if want >= 20.0 {
                    chi += (seen - want) * (seen - want) / want;
                    classes += 1.0;
                } else {
                    rest_seen += seen;
                    rest_want += want;
                }
            }
            if rest_want >= 20.0 {
                chi += (rest_seen - rest_want) * (rest_seen - rest_want) / rest_want;
                classes += 1.0;
            }
            let df: f64 = classes - 1.0;
            assert!(chi < df + 3.8 * (2.0 * df).sqrt() + 5.0, "theta {theta}: chi-square {chi} with {df} degrees");
        }
    }

    #[test]
    fn zipf_tail_mass_is_right_on_a_large_set() {
        let (n, theta) = (100_000_000u32, 0.9);
        let zipf = Zipf::new(n, theta);
        let mut rng = Prng::new(9);
        let draws = 400_000;
        let cuts = [100u32, 10_000, 1_000_000, 10_000_000];
        let mut below = [0u32; 4];
        for _ in 0..draws {
            let k = zipf.sample(&mut rng);
            assert!(k < n);
            for (b, &cut) in below.iter_mut().zip(&cuts) {
                *b += u32::from(k < cut);
            }
        }
        // Euler-Maclaurin: sum of k^-0.9 to m is about 10 m^0.1 + zeta(0.9) + m^-0.9 / 2.
        let sum = |m: f64| 10.0 * m.powf(0.1) - 9.430_114 + 0.5 * m.powf(-0.9);
        for (b, cut) in below.into_iter().zip(cuts) {
            let (seen, want) = (f64::from(b) / f64::from(draws), sum(f64::from(cut)) / sum(f64::from(n)));
            assert!((seen - want).abs() < 0.004, "below {cut}: {seen} against {want}");
        }
    }

    #[test]
    fn zipf_degenerate_sets() {
        let mut rng = Prng::new(1);
        assert_eq!(Zipf::new(1, 0.7).sample(&mut rng), 0);
        let huge = Zipf::new(u32::MAX, 0.001);
        let high = (0..1000).filter(|_| huge.sample(&mut rng) > u32::MAX / 2).count();
        assert!((400..600).contains(&high));
    }

    #[test]
    fn pareto_is_self_similar() {
        let pareto = Pareto::new(1_000_000, 0.2);
        let mut rng = Prng::new(4);
        let draws = 200_000;
        let (mut first, mut deep) = (0, 0);
        for _ in 0..draws {
            let k = pareto.sample(&mut rng);
            first += u32::from(k < 200_000);
            deep += u32::from(k < 40_000);
        }
        assert!((f64::from(first) / f64::from(draws) - 0.8).abs() < 0.005);
        assert!((f64::from(deep) / f64::from(draws) - 0.64).abs() < 0.005);
    }

    #[test]
    fn zones_take_their_shares() {
        let z = |a, s| Zone { access_percent: a, size_percent: s };
        let zoned = Zoned::new(10_000, &[z(50, 5), z(30, 15), z(20, 80)]);
        let mut rng = Prng::new(4);
        let mut counts = [0u32; 3];
        for _ in 0..100_000 {
            let k = zoned.sample(&mut rng);
            counts[if k < 500 { 0 } else { usize::from(k >= 2000) + 1 }] += 1;
        }
        for (seen, want) in counts.into_iter().zip([50_000.0, 30_000.0, 20_000.0]) {
            assert!((f64::from(seen) - want).abs() < 700.0, "{counts:?}");
        }
        let tiny = Zoned::new(1, &[z(50, 5), z(50, 95)]);
        assert!((0..100).all(|_| tiny.sample(&mut rng) == 0));
    }
}
