// SPDX-License-Identifier: MIT OR Apache-2.0
//! Designs: from the number of a point to the settings of its factors. Points are computed, not stored, so a study of
//! a million points starts as fast as one of ten.

use crate::error::SweepError;
use readpath_config::study::{Design, MOST_POINTS, Setting, Study};
use readpath_kit::{Permutation, Prng};

/// Factors of a Sobol study at most: the sequence has two dimensions for each.
const MOST_SOBOL_FACTORS: usize = sobol_burley::NUM_DIMENSIONS as usize / 2;

/// The points of a study.
#[derive(Debug)]
pub(crate) struct Points {
    count: u64,
    /// For a Latin hypercube: the order of parts of each factor.
    orders: Vec<Permutation>,
}

impl Points {
    pub(crate) fn new(study: &Study) -> Result<Points, SweepError> {
        let factors = study.factors.len();
        let (count, orders) = match study.design {
            Design::Cross => {
                let product = study.factors.iter().try_fold(1u64, |n, factor| n.checked_mul(factor.steps()));
                (product.unwrap_or(u64::MAX), Vec::new())
            }
            Design::LatinHypercube { samples } => {
                let order = |factor: usize| {
                    let seed = Prng::stream(study.seed, "latin hypercube", factor as u64).next_u64();
                    Permutation::new(u64::from(samples), seed)
                };
                (u64::from(samples), (0..factors).map(order).collect())
            }
            Design::Sobol { .. } if factors > MOST_SOBOL_FACTORS => {
                let message =
                    format!("design \"sobol\" takes at most {MOST_SOBOL_FACTORS} factors; there are {factors}");
                return Err(SweepError::Study(format!("{}: {message}", study.file)));
            }
            Design::Sobol { samples, second_order } => {
                (u64::from(samples) * saltelli_rows(factors, second_order), Vec::new())
            }
            Design::Morris { trajectories, .. } => (u64::from(trajectories) * (factors as u64 + 1), Vec::new()),
        };
        if count > MOST_POINTS {
            let message =
                format!("the study has more than {MOST_POINTS} points; fewer levels, or a design that samples");
            return Err(SweepError::Study(format!("{}: {message}", study.file)));
        }
        Ok(Points { count, orders })
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The settings of point `index`, in the order of [`Study::keys`].
    pub(crate) fn settings(&self, study: &Study, index: u64) -> Vec<Setting> {
        let places = match study.design {
            Design::Cross => return crossed(study, index),
            Design::LatinHypercube { samples } => self.latin(study, samples, index),
            Design::Sobol { second_order, .. } => saltelli(study, second_order, index),
            Design::Morris { levels, .. } => morris(study, levels, index),
        };
        study.factors.iter().zip(places).flat_map(|(factor, place)| factor.at(place)).collect()
    }

    fn latin(&self, study: &Study, samples: u32, index: u64) -> Vec<f64> {
        let mut within = Prng::stream(study.seed, "latin hypercube, within a part", index);
        let place = |order: &Permutation| (order.get(index) as f64 + within.unit_f64()) / f64::from(samples);
        self.orders.iter().map(place).collect()
    }
}

/// The last factor changes fastest.
fn crossed(study: &Study, index: u64) -> Vec<Setting> {
    let mut rest = index;
    let mut levels: Vec<u64> = Vec::with_capacity(study.factors.len());
    for factor in study.factors.iter().rev() {
        levels.push(rest % factor.steps());
        rest /= factor.steps();
    }
    study.factors.iter().zip(levels.into_iter().rev()).flat_map(|(factor, level)| factor.level(level)).collect()
}

/// Points that belong to a base sample: A, the factors of A taken from B one by one, with second order those of B taken
/// from A, and B.
fn saltelli_rows(factors: usize, second_order: bool) -> u64 {
    let factors = factors as u64;
    if second_order { 2 * factors + 2 } else { factors + 2 }
}

/// The scheme of Saltelli et al., Computer Physics Communications 181 (2010) 259, in the order of SALib.
fn saltelli(study: &Study, second_order: bool, index: u64) -> Vec<f64> {
    let factors = study.factors.len();
    let rows = saltelli_rows(factors, second_order);
    let (sample, row) = ((index / rows) as u32, (index % rows) as usize);
    let seed = Prng::stream(study.seed, "sobol", 0).next_u64() as u32;
    let of = |dimension: usize| f64::from(sobol_burley::sample(sample, dimension as u32, seed));
    let from_b = |factor: usize| match row {
        0 => false,
        _ if row <= factors => factor == row - 1,
        _ if row as u64 == rows - 1 => true,
        _ => factor != row - 1 - factors,
    };
    (0..factors).map(|factor| of(if from_b(factor) { factors + factor } else { factor })).collect()
}

/// A trajectory begins at a random place of the grid and changes each factor once, by half of the levels, in random
/// order: Morris, Technometrics 33 (1991) 161.
fn morris(study: &Study, levels: u32, index: u64) -> Vec<f64> {
    let factors = study.factors.len();
    let points = factors as u64 + 1;
    let (trajectory, step) = (index / points, (index % points) as usize);
    let mut random = Prng::stream(study.seed, "morris", trajectory);
    let half = levels / 2;
    let mut order: Vec<usize> = (0..factors).collect();
    for i in (1..factors).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    let mut level: Vec<(u32, u32)> = Vec::with_capacity(factors);
    for _ in 0..factors {
        let low = random.below(u64::from(half)) as u32;
        let high = low + half;
        level.push(if random.below(2) == 0 { (low, high) } else { (high, low) });
    }
    let changed = |factor: usize| order[..step].contains(&factor);
    let last = f64::from(levels - 1);
    let place = |(factor, &(before, after)): (usize, &(u32, u32))| {
        f64::from(if changed(factor) { after } else { before }) / last
    };
    level.iter().enumerate().map(place).collect()
}

/// The factor that a step of a trajectory changes, and whether upwards; none after its last point.
pub(crate) fn changed(study: &Study, index: u64) -> Option<(usize, bool)> {
    let Design::Morris { levels, .. } = study.design else { return None };
    if (index + 1).is_multiple_of(study.factors.len() as u64 + 1) {
        return None;
    }
    let (before, after) = (morris(study, levels, index), morris(study, levels, index + 1));
    let factor = before.iter().zip(&after).position(|(a, b)| a != b)?;
    Some((factor, after[factor] > before[factor]))
}
