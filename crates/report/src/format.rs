// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers as text. Knows no documents and no output format.

use readpath_results::Interval;

/// A number with four significant digits and grouped thousands. Integers stay plain, large numbers keep every digit
/// before the point, and very small or very large ones use an exponent.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.fract() == 0.0 && value.abs() < 1e15 { grouped(value, 0) } else { significant(value, 4) }
}

/// A number with `digits` significant digits, trailing zeros kept.
pub(crate) fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // A decimal half rounds away from zero even if its binary form is slightly below: 179.35 is 179.4.
    let value = value * (1.0 + f64::EPSILON);
    let size = value.abs();
    if !(1e-4..1e15).contains(&size) {
        return format!("{value:.*e}", (digits - 1).max(0) as usize);
    }
    // Rounding may carry into a new digit: 9.9996 is 10.00, not 10.000.
    let mut exponent = size.log10().floor() as i32;
    let scale = 10f64.powi(digits - 1 - exponent);
    if (size * scale).round() >= 10f64.powi(digits) {
        exponent += 1;
    }
    grouped(value, (digits - 1 - exponent).max(0) as usize)
}

/// Six significant digits without trailing zeros; the result document has all of them.
pub(crate) fn six(value: f64) -> String {
    let rounded = format!("{value:.5e}").parse().unwrap_or(value);
    if rounded == 0.0 || (1e-5..1e15).contains(&rounded.abs()) { rounded.to_string() } else { format!("{rounded:e}") }
}

/// A number for a column: integers stay plain only if the whole column is integers.
pub(crate) fn in_column(value: f64, integers: bool) -> String {
    if integers { number(value) } else { significant(value, 4) }
}

/// A signed relative error in percent, without the sign for what rounds to zero.
pub(crate) fn percent(value: f64) -> String {
    let text = if value.abs() >= 1000.0 { grouped(value.abs(), 0) } else { format!("{:.1}", value.abs()) };
    match text.as_str() {
        "0.0" => text,
        _ if value < 0.0 => format!("-{text}"),
        _ => format!("+{text}"),
    }
}

/// `value` with `decimals` digits after the point and commas between thousands.
pub(crate) fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::with_capacity(text.len() + 6);
    if value < 0.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        out.push('-');
    }
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// Both ends of an interval.
pub(crate) fn interval(interval: Interval) -> String {
    format!("{} to {}", number(interval.low), number(interval.high))
}

/// Most digits after the point that a mean is given for the sake of its interval.
const MOST_DECIMALS: i32 = 6;

/// A value and half of its interval: two digits of the half, and the value to the same place. Without an interval, the
/// value as [`number`] writes it, and nothing.
pub(crate) fn with_half(value: f64, interval: Option<Interval>) -> (String, String) {
    let half = interval.map_or(0.0, Interval::half);
    if half <= 0.0 || !(1e-4..1e15).contains(&value.abs()) && value != 0.0 {
        let half = interval.map_or_else(String::new, |i| significant(i.half(), 2));
        return (number(value), half);
    }
    let decimals = 1 - half.log10().floor() as i32;
    let shown = decimals.clamp(0, MOST_DECIMALS) as usize;
    let half = if decimals > MOST_DECIMALS { significant(half, 2) } else { grouped(half, shown) };
    // As in [`significant`]: a decimal half rounds away from zero.
    (grouped(value * (1.0 + f64::EPSILON), shown), half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (7.0, "7"),
            (-1234567.0, "-1,234,567"),
            (300.87, "300.9"),
            (179.35, "179.4"),
            (17834.6, "17,835"),
            (0.25, "0.2500"),
            (0.031415, "0.03142"),
            (9.99961, "10.00"),
            (999.96, "1,000"),
            (0.00001234, "1.234e-5"),
            (-12.345, "-12.35"),
            (1e20, "1.000e20"),
            (1e-320, "1.000e-320"),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
        assert_eq!(in_column(1.0, false), "1.000");
        assert_eq!(in_column(1.0, true), "1");
        assert_eq!(grouped(-0.001, 2), "0.00");
    }

    #[test]
    fn percents() {
        for (value, text) in [
            (1.94, "+1.9"),
            (-0.36, "-0.4"),
            (0.04, "0.0"),
            (-0.04, "0.0"),
            (0.0, "0.0"),
            (123.0, "+123.0"),
            (-4567.0, "-4,567"),
        ] {
            assert_eq!(percent(value), text);
        }
    }

    #[test]
    fn means_have_the_digits_of_their_intervals() {
        for (value, half, texts) in [
            (204.8312, 0.2149, ("204.83", "0.21")),
            (401.4, 12.34, ("401", "12")),
            (17834.6, 1234.0, ("17,835", "1,234")),
            (0.98317, 0.000123, ("0.98317", "0.00012")),
            (300.0, 1e-9, ("300.000000", "1.0e-9")),
            (0.0, 0.5, ("0.00", "0.50")),
            (-12.345, 0.99, ("-12.35", "0.99")),
        ] {
            let interval = Interval { low: value - half, high: value + half };
            let (shown, spread) = with_half(value, Some(interval));
            assert_eq!((shown.as_str(), spread.as_str()), texts, "{value} {half}");
        }
        assert_eq!(with_half(1024.0, None), ("1,024".into(), String::new()));
        assert_eq!(with_half(179.35, None), ("179.4".into(), String::new()));
    }
}
