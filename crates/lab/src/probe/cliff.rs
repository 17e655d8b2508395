// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the throughput of a long write falls, read off the measured values. It knows no device and fits nothing.

/// A fall of throughput.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cliff {
    /// Written until then, in parts.
    pub after_parts: f64,
    /// Throughput before, in the unit of the values.
    pub before: f64,
    /// Mean after it.
    pub behind: f64,
}

/// A fall to less than this share of the previous value is a cliff.
const FALL: f64 = 0.75;
/// Parts before and behind, at least.
const LEVEL: usize = 2;

/// The fall in the throughput of parts that follow one another, if there is one: the place from which two levels, and
/// one part that has something of both, explain the values best.
pub fn cliff(values: &[f64]) -> Option<Cliff> {
    let logarithm = |x: &f64| libm::log(x.max(f64::MIN_POSITIVE));
    let level = |part: &[f64]| part.iter().map(logarithm).sum::<f64>() / part.len() as f64;
    let rest = |part: &[f64], level: f64| part.iter().map(|x| (logarithm(x) - level).powi(2)).sum::<f64>();
    let mut best: Option<(f64, Cliff)> = None;
    for mixed in LEVEL..values.len().saturating_sub(LEVEL) {
        let (first, last) = (&values[..mixed], &values[mixed + 1..]);
        let (high, low) = (level(first), level(last));
        let (before, behind) = (libm::exp(high), libm::exp(low));
        if behind >= FALL * before {
            continue;
        }
        // A part takes the time of its share at each level.
        let share = (1.0 / values[mixed].max(f64::MIN_POSITIVE) - 1.0 / behind) / (1.0 / before - 1.0 / behind);
        let within = share.clamp(0.0, 1.0);
        let explained = 1.0 / (within / before + (1.0 - within) / behind);
        let misfit = rest(first, high) + rest(last, low) + (logarithm(&values[mixed]) - libm::log(explained)).powi(2);
        if best.is_none_or(|(least, _)| misfit < least) {
            best = Some((misfit, Cliff { after_parts: mixed as f64 + within, before, behind }));
        }
    }
    best.map(|(_, cliff)| cliff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fall_is_found_within_a_part() {
        // Three and a quarter parts at 400, the rest at 100.
        let mixed = 1.0 / (0.25 / 400.0 + 0.75 / 100.0);
        let found = cliff(&[400.0, 400.0, 400.0, mixed, 100.0, 100.0, 100.0]).unwrap();
        assert!((found.after_parts - 3.25).abs() < 1e-9 && (found.before - 400.0).abs() < 1e-9, "{found:?}");
        assert!((found.behind - 100.0).abs() < 1e-9);
    }

    #[test]
    fn what_only_scatters_does_not_fall() {
        assert_eq!(cliff(&[100.0, 98.0, 103.0, 97.0, 101.0, 99.0]), None);
        assert_eq!(cliff(&[100.0, 100.0, 100.0, 76.0, 76.0, 76.0]), None);
        assert!(cliff(&[100.0, 100.0, 100.0, 74.0, 74.0, 74.0]).is_some(), "a quarter less is a fall");
        assert_eq!(cliff(&[400.0, 100.0]), None);
        assert_eq!(cliff(&[]), None);
        assert_eq!(cliff(&[100.0, 100.0, 100.0, 400.0, 400.0, 400.0]), None, "a rise is no fall");
    }
}
