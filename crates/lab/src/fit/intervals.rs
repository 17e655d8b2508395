// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intervals of fitted parameters, and whether the fit may be believed at all. It simulates nothing.

use super::identify::Verdict;
use super::{Fit, FittedParam, Param};

/// A parameter and how well it is determined.
#[derive(Clone, PartialEq, Debug)]
pub struct Known {
    /// Which.
    pub param: Param,
    /// The start of the search, in the parameter's whole units.
    pub start: u64,
    /// The value that fits best.
    pub fitted: u64,
    /// All values of all identified parameters lie within their intervals together with a probability of 95 %, if the
    /// model is right. Infinite bounds say that nothing is known.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Of a choice: all values that fit as well as the best, which is one of them.
    pub possible: Vec<u64>,
    /// Its verdict.
    pub verdict: Verdict,
}

/// Chance that some interval misses its value, if the model is right and errors are as stated.
const MISSES: f64 = 0.05;
/// Standard deviations of a misfit that is no chance: one time in a hundred.
const LARGE_MISFIT: f64 = 2.326;
/// An interval that reaches so many times above its value says next to nothing.
pub(crate) const WIDE: f64 = 3.0;

impl Known {
    /// Its interval as text.
    pub fn interval(&self) -> String {
        if self.param.is_choice() {
            let values: Vec<String> = self.possible.iter().map(|value| self.param.show(*value)).collect();
            return match &values[..] {
                [] => "unknown".to_owned(),
                [first, _, .., last] if self.param.counts() => format!("{first} to {last}"),
                some => some.join(" or "),
            };
        }
        let figure = |x: f64| match x {
            x if x >= 100.0 => format!("{x:.0}"),
            x if x >= 10.0 => format!("{x:.1}"),
            x => format!("{x:.2}"),
        };
        let value = self.param.in_unit(self.fitted);
        if self.high > WIDE * value {
            "unknown".to_owned()
        } else {
            format!("{} to {}", figure(self.low), figure(self.high))
        }
    }
}

impl Fit {
    /// Whether the fitted device shows what was measured, within the errors, as far as chance allows: by Wilson and
    /// Hilferty's approximation of the sum of squares.
    pub fn is_plausible(&self) -> bool {
        let n = self.freedom as f64;
        if self.freedom == 0 {
            return true;
        }
        let spread = 2.0 / (9.0 * n);
        let limit = n * libm::pow(1.0 - spread + LARGE_MISFIT * spread.sqrt(), 3.0);
        self.misfit <= limit
    }

    /// Times that the fitted device misses the measurements by more than their errors: either these are too small, or
    /// the model is incomplete. 1 if it does not.
    pub fn excess(&self) -> f64 {
        if self.freedom > 0 { (self.misfit / self.freedom as f64).sqrt().max(1.0) } else { 1.0 }
    }

    /// Intervals of all parameters.
    pub fn known(&self) -> Vec<Known> {
        let (plausible, wider) = (self.is_plausible(), self.excess());
        let measured = |p: &&FittedParam| p.concerned && !p.param.is_choice();
        let concerned = self.params.iter().filter(measured).count();
        let reach = normal_quantile(MISSES / concerned.max(1) as f64);
        let one = |p: &FittedParam| {
            let error = p.standard_error * wider;
            let factor = libm::exp(reach * error);
            let value = p.param.in_unit(p.fitted);
            let of_error = if p.param.is_choice() { p.verdict } else { Verdict::of(error) };
            let verdict = match of_error {
                // A device that does not reproduce the measurements identifies nothing.
                Verdict::Identified if !plausible => Verdict::Weakly,
                // Nor does a search that did not converge.
                Verdict::Identified => p.verdict,
                verdict => verdict,
            };
            let is_known = p.concerned && factor.is_finite();
            let grain = p.param.grain(&self.preset);
            let ends = || ((value / factor - grain).max(0.0), value * factor + grain);
            let (low, high) = match (&p.possible[..], is_known) {
                ([first, .., last], _) => (p.param.in_unit(*first), p.param.in_unit(*last)),
                ([only], _) => (p.param.in_unit(*only), p.param.in_unit(*only)),
                ([], true) => ends(),
                ([], false) => (0.0, f64::INFINITY),
            };
            let possible = p.possible.clone();
            Known { param: p.param, start: p.start, fitted: p.fitted, low, high, possible, verdict }
        };
        self.params.iter().map(one).collect()
    }
}

/// How many standard deviations a normal variable is beyond, on either side, with a probability of `beyond`.
fn normal_quantile(beyond: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if libm::erfc(middle / core::f64::consts::SQRT_2) > beyond { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::super::FitOptions;
    use super::*;

    /// A fit of so many parameters, which all are a read of flash of 60 us, with four degrees of freedom.
    fn fit_of(params: usize) -> Fit {
        let preset = readpath_config::device::load("ufs21-64g", &|_| Err(std::io::Error::other("none"))).unwrap();
        let one = FittedParam {
            param: Param::of_key("flash.read_us").unwrap(),
            start: 60_000,
            fitted: 60_000,
            standard_error: 0.05,
            verdict: Verdict::Identified,
            concerned: true,
            at_bound: false,
            possible: Vec::new(),
        };
        Fit {
            device: preset.name.clone(),
            preset,
            params: vec![one; params],
            rows: Vec::new(),
            combinations: Vec::new(),
            correlations: Vec::new(),
            advice: None,
            iterations: 1,
            converged: true,
            misfit_before: 100.0,
            misfit: 0.0,
            freedom: 4,
            simulated_ios: 0,
            options: FitOptions::default(),
        }
    }

    /// As the Particle Data Group does: by the root of the sum of squares over the degrees of freedom, if that is more
    /// than 1. Of several parameters all lie within their intervals with 95 %.
    #[test]
    fn intervals_are_as_wide_as_the_misfit_asks() {
        let mut fit = fit_of(1);
        let grain = fit.params[0].param.grain(&fit.preset);
        for (misfit, wider) in [(1.0, 1.0), (4.0, 1.0), (16.0, 2.0), (36.0, 3.0)] {
            fit.misfit = misfit;
            let [known] = &fit.known()[..] else { panic!("one parameter") };
            let (down, up) = (60.0 / (known.low + grain), (known.high - grain) / 60.0);
            let wanted = libm::exp(1.959_964 * 0.05 * wider);
            assert!((down - wanted).abs() < 1e-5 && (up - wanted).abs() < 1e-5, "{misfit}: {known:?}");
        }
        let known = fit_of(5).known();
        let wanted = 60.0 * libm::exp(2.575_829 * 0.05) + grain;
        assert!(known.len() == 5 && known.iter().all(|known| (known.high - wanted).abs() < 1e-3), "{known:?}");
    }

    /// 99 % points of the distribution of a sum of squares, as tables print them.
    #[test]
    fn a_misfit_that_comes_one_time_in_a_hundred_is_no_chance() {
        let mut fit = fit_of(1);
        for (freedom, published) in [(2, 9.210), (4, 13.277), (10, 23.209), (30, 50.892)] {
            fit.freedom = freedom;
            for (times, is_plausible) in [(0.98, true), (1.02, false)] {
                fit.misfit = published * times;
                assert_eq!(fit.is_plausible(), is_plausible, "{freedom} {}", fit.misfit);
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (beyond, wanted) in [(0.05, 1.959_964), (0.01, 2.575_829), (0.005, 2.807_034), (1.0, 0.0)] {
            assert!((normal_quantile(beyond) - wanted).abs() < 1e-5, "{beyond}");
        }
    }
}
