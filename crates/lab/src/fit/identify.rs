// SPDX-License-Identifier: MIT OR Apache-2.0
//! What measurements say of parameters: standard errors, verdicts, combinations that are known though their parts are
//! not, and which further measurement would help. It looks at derivatives only and changes no device.

use super::linalg::{Eigen, dot, eigen, gram};
use super::measurements::{Measurement, Metric};
use super::model::{ModelError, Values};
use super::params::{Param, region_blocks};
use super::setting::{Access, Setting};
use super::{FitOptions, Jacobian, Search};

readpath_kit::named! {
    /// What measurements say of a parameter.
    pub enum Verdict {
        /// Its standard error is at most 5 %, and the search converged.
        Identified = "identified",
        /// At most 30 %.
        Weakly = "weakly",
        /// More, or no measurement depends on it.
        NotIdentified = "not identified",
    }
}

impl Verdict {
    /// The verdict on a standard error.
    pub fn of(standard_error: f64) -> Verdict {
        match standard_error {
            e if e <= 0.05 => Verdict::Identified,
            e if e <= 0.30 => Verdict::Weakly,
            _ => Verdict::NotIdentified,
        }
    }
}

/// A sum of parameters, each times a factor, that is known although its parts are not.
#[derive(Clone, Debug)]
pub struct Combination {
    /// Parameters and factors; the first factor is 1.
    pub parts: Vec<(Param, f64)>,
    /// Value of the sum, in the unit of the first parameter.
    pub value: f64,
    /// Its standard error as a share of the value.
    pub standard_error: f64,
}

/// Two parameters whose errors go together.
#[derive(Clone, Copy, Debug)]
pub struct Correlation {
    /// The first parameter.
    pub a: Param,
    /// The second parameter.
    pub b: Param,
    /// Correlation of their errors, -1 to 1.
    pub value: f64,
}

/// What the measurements determine of the parameters.
pub(super) struct Known {
    pub standard_errors: Vec<f64>,
    pub verdicts: Vec<Verdict>,
    pub combinations: Vec<Combination>,
    pub correlations: Vec<Correlation>,
    /// Directions that the measurements determine.
    pub determined: usize,
}

impl Known {
    /// Widens standard errors so that intervals reach all equally good places, which lie `apart` in logarithms and have
    /// errors of their own.
    pub(super) fn add(&mut self, apart: &[f64]) {
        for ((error, verdict), apart) in self.standard_errors.iter_mut().zip(&mut self.verdicts).zip(apart) {
            *error += apart / REACH;
            *verdict = Verdict::of(*error);
        }
    }

    /// Raises standard errors to the distances of equally good values, in logarithms: derivatives are not valid that
    /// far.
    pub(super) fn widen(&mut self, apart: &[f64]) {
        for ((error, verdict), apart) in self.standard_errors.iter_mut().zip(&mut self.verdicts).zip(apart) {
            *error = error.max(*apart);
            *verdict = Verdict::of(*error);
        }
    }

    /// Multiplies all standard errors.
    pub(super) fn loosen(&mut self, times: f64) {
        for (error, verdict) in self.standard_errors.iter_mut().zip(&mut self.verdicts) {
            *error *= times;
            *verdict = Verdict::of(*error);
        }
    }

    /// Withdraws what needs a minimum: derivatives at a place where the search has not converged identify nothing.
    pub(super) fn distrust(&mut self) {
        for verdict in self.verdicts.iter_mut().filter(|verdict| **verdict == Verdict::Identified) {
            *verdict = Verdict::Weakly;
        }
        self.combinations.clear();
    }
}

/// Standard errors of half an interval, at least.
const REACH: f64 = 2.5;
/// Correlations from here on are reported.
const STRONG_CORRELATION: f64 = 0.9;
/// Parts of a combination below this share of its largest are left out.
const SMALL_PART: f64 = 0.15;
/// Eigenvalues below this share of the largest are rounding.
const ROUNDING: f64 = 1e-13;

/// Without any measurement a parameter is taken to be known to within a factor of e: a standard error of 1 in its
/// logarithm. Otherwise an unknown parameter could take any value, far beyond the range of the derivatives, and change
/// the estimates of the others with it.
fn with_prior(information: &[Vec<f64>]) -> Eigen {
    let mut sum = information.to_vec();
    for (i, row) in sum.iter_mut().enumerate() {
        row[i] += 1.0;
    }
    eigen(&sum)
}

fn covariance(e: &Eigen, i: usize, j: usize) -> f64 {
    // Eigenvalues are at least 1 but for rounding.
    e.values.iter().zip(&e.vectors).map(|(value, v)| v[i] * v[j] / value.max(1.0)).sum()
}

fn standard_errors(e: &Eigen, n: usize) -> Vec<f64> {
    (0..n).map(|i| covariance(e, i, i).sqrt()).collect()
}

/// From derivatives in units of the measurements' standard errors.
pub(super) fn identify(params: &[Param], values: &Values, weighted: &Jacobian) -> Known {
    let n = params.len();
    let information = gram(weighted, n);
    let e = with_prior(&information);
    let standard_errors = standard_errors(&e, n);
    let verdicts: Vec<Verdict> = standard_errors.iter().map(|s| Verdict::of(*s)).collect();
    let mut correlations = Vec::new();
    for i in 0..n {
        for j in i + 1..n {
            let value = covariance(&e, i, j) / (standard_errors[i] * standard_errors[j]);
            if value.abs() >= STRONG_CORRELATION {
                correlations.push(Correlation { a: params[i], b: params[j], value: value.clamp(-1.0, 1.0) });
            }
        }
    }
    let combinations = combinations(params, values, &information, &verdicts);
    let determined = e.values.iter().filter(|v| **v > 2.0).count();
    Known { standard_errors, verdicts, combinations, correlations, determined }
}

/// What is known of the parameters that are not identified once those that are may be anything: directions in their
/// space that are well determined.
fn combinations(params: &[Param], values: &Values, information: &[Vec<f64>], verdicts: &[Verdict]) -> Vec<Combination> {
    let of = |known: bool| -> Vec<usize> {
        (0..params.len()).filter(|&i| (verdicts[i] == Verdict::Identified) == known).collect()
    };
    let (free, other) = (of(true), of(false));
    let block = |rows: &[usize], columns: &[usize]| -> Vec<Vec<f64>> {
        rows.iter().map(|&i| columns.iter().map(|&j| information[i][j]).collect()).collect()
    };
    let inner = eigen(&block(&free, &free));
    let across = block(&other, &free);
    let mut left = block(&other, &other);
    let largest = inner.values.first().copied().unwrap_or(0.0);
    for (value, v) in inner.values.iter().zip(&inner.vectors).filter(|(value, _)| **value > ROUNDING * largest) {
        let along: Vec<f64> = across.iter().map(|row| dot(row, v)).collect();
        for (row, a) in left.iter_mut().zip(&along) {
            for (x, b) in row.iter_mut().zip(&along) {
                *x -= a * b / value;
            }
        }
    }
    let e = eigen(&left);
    let directions = e.values.iter().zip(&e.vectors).filter(|(value, _)| **value > 0.0);
    directions.filter_map(|(value, v)| combination(&other, params, values, v, 1.0 / value.sqrt())).collect()
}

/// A direction in logarithms, written as a sum of the parameters themselves.
fn combination(other: &[usize], params: &[Param], values: &Values, v: &[f64], error: f64) -> Option<Combination> {
    let mut parts: Vec<(usize, f64)> = (0..v.len()).map(|k| (other[k], v[k])).collect();
    parts.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let (first, lead) = *parts.first()?;
    parts.retain(|(_, x)| x.abs() >= SMALL_PART * lead.abs());
    if parts.len() < 2 {
        return None;
    }
    let size = |i: usize| params[i].in_unit(values[i]);
    let sum: f64 = parts.iter().map(|(_, x)| x / lead * size(first)).sum();
    let standard_error = size(first) / lead.abs() * error / sum.abs();
    if Verdict::of(standard_error) != Verdict::Identified {
        return None;
    }
    let parts = parts.iter().map(|&(i, x)| (params[i], x / lead * size(first) / size(i))).collect();
    Some(Combination { parts, value: sum, standard_error })
}

/// Further measurements that would help.
#[derive(Clone, Debug)]
pub struct Advice {
    /// What to measure, the most useful first.
    pub measurements: Vec<(Setting, Metric)>,
    /// Standard errors that these would leave, for parameters that are not identified now.
    pub then: Vec<(Param, f64)>,
}

const MOST_PROPOSED: usize = 4;

/// Finds measurements, each as good as the options say, that make the parameters known: one after another the
/// one that gains most.
pub(super) fn advise(search: &mut Search, values: &Values, options: &FitOptions) -> Result<Option<Advice>, ModelError> {
    let n = search.params.len();
    let rows = search.rows;
    let jacobian = search.jacobian(rows, values)?;
    let weighted = search.weighted(&jacobian);
    let mut information = gram(&weighted, n);
    let before = standard_errors(&with_prior(&information), n);
    let possible = if options.candidates.is_empty() { reads(search, values) } else { options.candidates.clone() };
    let of =
        |setting| Measurement { line: 0, setting, metric: Metric::Throughput, value: 1.0, error: 0.01, held_out: None };
    let candidates: Vec<Measurement> = possible.into_iter().map(of).collect();
    let mut gains = search.jacobian(&candidates, values)?;
    for derivatives in &mut gains {
        derivatives.iter_mut().for_each(|d| *d *= 100.0 / options.candidate_error_percent);
    }
    // Errors below the limit of the best verdict count as equal.
    let score = |errors: &[f64]| -> f64 { errors.iter().map(|e| e.max(0.05)).sum() };
    let with = |information: &[Vec<f64>], d: &[f64]| -> Vec<Vec<f64>> {
        (0..n).map(|i| (0..n).map(|j| information[i][j] + d[i] * d[j]).collect()).collect()
    };
    let mut measurements: Vec<(Setting, Metric)> = Vec::new();
    let mut errors = before.clone();
    while measurements.len() < MOST_PROPOSED {
        let chosen = |k: &usize| measurements.iter().any(|(setting, _)| *setting == candidates[*k].setting);
        let tried = gains.iter().enumerate().filter(|(k, _)| !chosen(k)).map(|(k, d)| {
            let errors = standard_errors(&with_prior(&with(&information, d)), n);
            (score(&errors), k, errors)
        });
        let Some((best, k, then)) = tried.min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
        if best > score(&errors) - 0.03 {
            break;
        }
        measurements.push((candidates[k].setting, candidates[k].metric));
        information = with(&information, &gains[k]);
        errors = then;
    }
    if measurements.is_empty() {
        return Ok(None);
    }
    let open = (0..n).filter(|&i| Verdict::of(before[i]) != Verdict::Identified);
    Ok(Some(Advice { measurements, then: open.map(|i| (search.params[i], errors[i])).collect() }))
}

/// Random reads that could be timed: ranges within, around and far beyond the map cache and the active regions, alone
/// and with many outstanding.
fn reads(search: &Search, values: &Values) -> Vec<Setting> {
    let preset = search.preset;
    let unit = &preset.device.lus[0];
    let value = |param: Param| {
        let at = search.params.iter().position(|p| *p == param);
        at.map_or_else(|| param.value(preset), |at| values[at])
    };
    let page = u64::from(preset.device.map_page_entries());
    let cached = value(Param::MapCache) * 1024 / u64::from(preset.device.map_page_bytes) * page;
    // Round figures in MiB.
    let blocks = |blocks: f64| (((blocks / 65536.0).round() as u32).max(1) * 65536).min(unit.blocks);
    let most = preset.device.queue_depth.min(u32::from(preset.host.slots) - 1);
    let depths: Vec<u32> = [1, 4, most].into_iter().filter(|d| *d <= most).collect();
    let mut settings: Vec<Setting> = Vec::new();
    let mut add = |range: f64, hpb: bool| {
        for &queue_depth in &depths {
            let setting =
                Setting { access: Access::RandomRead, range_blocks: blocks(range), queue_depth, hpb, block_count: 1 };
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
    };
    for factor in [0.5, 2.0, 8.0] {
        add(cached as f64 * factor, false);
    }
    if preset.device.hpb.is_some() && unit.hpb {
        let active = value(Param::ActiveRegions) as f64 * f64::from(region_blocks(preset));
        add((cached as f64 * 2.0).min(active * 0.5), true);
        if active * 1.25 < f64::from(unit.blocks) {
            add(active * 1.25, true);
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equally good places and gains that are left widen what derivatives say, and the verdict follows.
    #[test]
    fn errors_reach_places_that_are_as_good() {
        let params = [Param::of_key("flash.read_us").unwrap()];
        let known = || identify(&params, &vec![60_000], &vec![vec![50.0]]);
        let says = |change: fn(&mut Known)| {
            let mut known = known();
            change(&mut known);
            ((known.standard_errors[0] * 1e3).round() / 1e3, known.verdicts[0])
        };
        assert_eq!(says(|_| ()), (0.02, Verdict::Identified));
        assert_eq!(says(|known| known.add(&[0.25])), (0.12, Verdict::Weakly));
        assert_eq!(says(|known| known.widen(&[0.01])), (0.02, Verdict::Identified));
        assert_eq!(says(|known| known.widen(&[0.4])), (0.4, Verdict::NotIdentified));
        assert_eq!(says(|known| known.loosen(4.0)), (0.08, Verdict::Weakly));
        assert_eq!(says(Known::distrust), (0.02, Verdict::Weakly));
    }

    /// One measurement of a sum, and one of a difference: what one parameter is too large, the other is too small, or
    /// too large as well.
    #[test]
    fn a_correlation_has_its_sign() {
        let params = ["flash.read_us", "host.submit_us"].map(|key| Param::of_key(key).unwrap());
        for sign in [1.0, -1.0] {
            let known = identify(&params, &vec![60_000, 5_000], &vec![vec![30.0, sign * 30.0]]);
            let [one] = &known.correlations[..] else { panic!("{:?}", known.correlations) };
            assert!((one.value + sign * 900.0 / 901.0).abs() < 1e-9, "{one:?}");
            assert_eq!(known.determined, 1);
        }
    }
}
