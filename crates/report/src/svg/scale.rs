// SPDX-License-Identifier: MIT OR Apache-2.0
//! Axes as arithmetic: from values to the unit interval, with ticks at 1, 2 and 5 times powers of ten. No drawing.

use crate::format::{grouped, number, six};

/// Largest absolute value that an axis takes.
pub(super) const LIMIT: f64 = 1e300;

/// One axis.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    lo: f64,
    hi: f64,
    log: bool,
    /// Positions of grid lines and labels, ascending.
    pub ticks: Vec<f64>,
    /// Distance of the ticks of a linear axis.
    step: f64,
    /// Ticks of a logarithmic axis are powers of two.
    is_binary: bool,
    /// Labels of a linear axis are divided by ten to this power; the axis title says so.
    pub exponent: i32,
}

impl Scale {
    /// A linear axis with about `count` intervals. `snap` moves its ends out to ticks.
    pub(super) fn linear(lo: f64, hi: f64, count: usize, snap: bool) -> Self {
        let (mut lo, mut hi) = if lo <= hi { (lo, hi) } else { (hi, lo) };
        // A span too small for the precision of its ends cannot be divided.
        if hi - lo <= 1e-12 * lo.abs().max(hi.abs()) {
            let around = if hi == 0.0 { 1.0 } else { hi.abs() * 0.5 };
            (lo, hi) = if hi == 0.0 { (0.0, around) } else { (lo - around, hi + around) };
        }
        let raw = (hi - lo) / count.max(1) as f64;
        let power = 10f64.powi(raw.log10().floor() as i32).max(f64::MIN_POSITIVE);
        let step = [1.0, 2.0, 5.0].into_iter().map(|m| m * power).find(|s| *s >= raw * 0.999).unwrap_or(10.0 * power);
        let (first, last) = if snap {
            ((lo / step + 1e-9).floor(), (hi / step - 1e-9).ceil())
        } else {
            ((lo / step - 1e-9).ceil(), (hi / step + 1e-9).floor())
        };
        let ticks: Vec<f64> = (0..=20)
            .map(|i| first + f64::from(i))
            .take_while(|k| *k <= last)
            // Dividing by the inverse of a small step gives 0.3, not 0.30000000000000004.
            .map(|k| if step < 1.0 { k / (1.0 / step).round().max(1.0 / step) } else { k * step })
            .collect();
        if snap {
            (lo, hi) = (ticks[0], ticks[ticks.len() - 1]);
        }
        let largest = ticks.iter().fold(0.0, |a: f64, t| a.max(t.abs()));
        let exponent = match largest {
            0.0 => 0,
            x if !(1e-3..1e6).contains(&x) => 3 * (x.log10() / 3.0).floor() as i32,
            _ => 0,
        };
        Self { lo, hi, log: false, ticks, step, is_binary: false, exponent }
    }

    /// A logarithmic axis over positive values. `snap` moves its ends out to ticks.
    pub(super) fn log(lo: f64, hi: f64, snap: bool) -> Self {
        let (lo, hi) = (lo.min(hi).max(1.0 / LIMIT), hi.max(lo).max(1.0 / LIMIT));
        let (bottom, top) = (lo.log10().floor() as i32, hi.log10().ceil() as i32);
        let decades = (hi / lo).log10();
        let every = ((top - bottom) / 7 + 1).max(1);
        let fine = decades < 2.5;
        let mantissas: &[f64] = if fine { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let all: Vec<f64> = (bottom - 1..=top + 1)
            .filter(|e| fine || (e - bottom).rem_euclid(every) == 0)
            .flat_map(|e| mantissas.iter().map(move |m| m * 10f64.powi(e)))
            .filter(|t| t.is_finite() && *t > 0.0)
            .collect();
        let inside = |t: f64| t >= lo * (1.0 - 1e-9) && t <= hi * (1.0 + 1e-9);
        let count = all.iter().filter(|t| inside(**t)).count();
        if snap || count < 2 {
            let first = all.iter().rposition(|t| *t <= lo * (1.0 + 1e-9)).unwrap_or(0);
            let mut last = all.iter().position(|t| *t >= hi * (1.0 - 1e-9)).unwrap_or(all.len() - 1);
            if last <= first {
                last = (first + 1).min(all.len() - 1);
            }
            let ticks = all[first..=last].to_vec();
            let (lo, hi) = (lo.min(ticks[0]), hi.max(ticks[ticks.len() - 1]));
            return Self { lo, hi, log: true, ticks, step: 0.0, is_binary: false, exponent: 0 };
        }
        let ticks = all.into_iter().filter(|t| inside(*t)).collect();
        Self { lo, hi, log: true, ticks, step: 0.0, is_binary: false, exponent: 0 }
    }

    /// A logarithmic axis with these powers of two as ticks. With `zero`, it begins an octave below them, and that is
    /// labelled 0.
    pub(super) fn powers_of_two(mut ticks: Vec<f64>, zero: bool) -> Self {
        let hi = ticks[ticks.len() - 1];
        if zero {
            ticks.insert(0, 0.0);
        }
        let lo = if zero { ticks[1] / 2.0 } else { ticks[0] };
        Self { lo, hi, log: true, ticks, step: 0.0, is_binary: true, exponent: 0 }
    }

    /// Place of `value` on the axis, 0 to 1. What a logarithmic axis cannot show lies at its lower end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = if !self.log {
            (value - self.lo) / (self.hi - self.lo)
        } else if value <= 0.0 {
            0.0
        } else {
            (value.log10() - self.lo.log10()) / (self.hi.log10() - self.lo.log10())
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 }
    }

    /// Where bars stand: at zero, or at the lower end of a logarithmic axis.
    pub(super) fn base(&self) -> f64 {
        if self.log { 0.0 } else { self.at(0.0) }
    }

    /// The label of a tick.
    pub(super) fn tick(&self, value: f64) -> String {
        if self.is_binary {
            return if value.fract() == 0.0 { grouped(value, 0) } else { six(value) };
        }
        if self.log {
            // All labels of an axis are written alike.
            let plain = |t: &f64| (0.999e-3..1e6).contains(t);
            if self.ticks.iter().all(plain) || (0.999..1e3).contains(&value) {
                return grouped(value, (-(value.log10() + 1e-9).floor()).max(0.0) as usize);
            }
            let exponent = (value.log10() + 1e-9).floor() as i32;
            let mantissa = (value / 10f64.powi(exponent)).round();
            let power = format!("10{}", superscript(exponent));
            return if mantissa == 1.0 { power } else { format!("{}×{power}", number(mantissa)) };
        }
        let scaled = value / 10f64.powi(self.exponent);
        let decimals = self.exponent - (self.step.log10() + 1e-9).floor() as i32;
        let text = grouped(scaled, decimals.clamp(0, 12) as usize);
        text.strip_prefix('-').map_or(text.clone(), |rest| format!("−{rest}"))
    }
}

/// A whole number in raised digits.
pub(super) fn superscript(value: i32) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    value.to_string().chars().map(|c| c.to_digit(10).map_or('⁻', |d| RAISED[d as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<String> {
        scale.ticks.iter().map(|t| scale.tick(*t)).collect()
    }

    #[test]
    fn linear_ticks_are_nice() {
        assert_eq!(labels(&Scale::linear(0.0, 300.92, 5, true)), ["0", "100", "200", "300", "400"]);
        assert_eq!(labels(&Scale::linear(0.0, 1.0, 5, true)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(Scale::linear(0.0, 1.0, 10, true).ticks[3], 0.3);
        assert_eq!(labels(&Scale::linear(-3.0, 4.0, 4, true)), ["−4", "−2", "0", "2", "4"]);
        let bytes = Scale::linear(0.0, 33_554_432.0, 4, true);
        assert_eq!((bytes.exponent, labels(&bytes)), (6, ["0", "10", "20", "30", "40"].map(String::from).to_vec()));
        let tight = Scale::linear(71.0, 2930.0, 5, false);
        assert_eq!(labels(&tight), ["1,000", "2,000"]);
    }

    #[test]
    fn log_ticks_are_nice() {
        assert_eq!(labels(&Scale::log(1.0, 1000.0, true)), ["1", "10", "100", "1,000"]);
        assert_eq!(labels(&Scale::log(119.0, 2930.0, false)), ["200", "500", "1,000", "2,000"]);
        assert_eq!(labels(&Scale::log(0.02, 0.3, true)), ["0.02", "0.05", "0.1", "0.2", "0.5"]);
        assert_eq!(labels(&Scale::log(3.0, 3.0, true)), ["2", "5"]);
        assert_eq!(Scale::log(1e6, 2e7, true).tick(2e6), "2×10⁶");
        assert_eq!(labels(&Scale::log(20.0, 5e5, true)), ["10", "100", "10³", "10⁴", "10⁵", "10⁶"]);
        assert!(Scale::log(1e-290, 1e290, true).ticks.len() <= 10);
    }

    #[test]
    fn powers_of_two_are_ticks_and_zero_is_one_below() {
        let scale = Scale::powers_of_two(vec![0.5, 1.0, 64.0], true);
        assert_eq!(labels(&scale), ["0", "0.5", "1", "64"]);
        assert_eq!([0.0, 0.5, 1.0, 64.0].map(|x| scale.at(x)), [0.0, 0.125, 0.25, 1.0]);
        assert_eq!(Scale::powers_of_two(vec![1.0, 4.0], false).at(2.0), 0.5);
    }

    #[test]
    fn equal_ratios_are_equally_far_apart_on_a_logarithmic_axis() {
        let scale = Scale::log(1.0, 1000.0, true);
        for (value, place) in [(1.0, 0.0), (10.0, 1.0 / 3.0), (31.622_776_6, 0.5), (100.0, 2.0 / 3.0), (1000.0, 1.0)] {
            assert!((scale.at(value) - place).abs() < 1e-9, "{value}: {}", scale.at(value));
        }
        assert!((Scale::linear(0.0, 1000.0, 5, true).at(250.0) - 0.25).abs() < 1e-12);
        // Bars stand at zero, wherever that is.
        assert_eq!((scale.base(), Scale::linear(-4.0, 4.0, 4, true).base()), (0.0, 0.5));
    }

    #[test]
    fn degenerate_domains_stay_finite() {
        for (lo, hi) in [
            (0.0, 0.0),
            (5.0, 5.0),
            (-5.0, -5.0),
            (1e17, 1e17 + 16.0),
            (-1e300, 1e300),
            (0.0, 5e-324),
            (1e-300, 2e-300),
            (1.0, 1.0 + 1e-15),
        ] {
            for snap in [false, true] {
                let scale = Scale::linear(lo, hi, 5, snap);
                assert!(scale.ticks.len() <= 21, "{lo} {hi}");
                assert!(scale.ticks.iter().all(|t| t.is_finite()), "{lo} {hi}");
                for value in [lo, hi] {
                    assert!((0.0..=1.0).contains(&scale.at(value)));
                }
                labels(&scale);
                if lo > 0.0 {
                    let scale = Scale::log(lo, hi, snap);
                    assert!((1..=24).contains(&scale.ticks.len()));
                    assert!((0.0..=1.0).contains(&scale.at(lo)));
                    labels(&scale);
                }
            }
        }
        assert_eq!(Scale::log(1.0, 10.0, true).at(0.0), 0.0);
        assert_eq!(Scale::log(1.0, 10.0, true).at(-4.0), 0.0);
    }
}
