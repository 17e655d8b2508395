// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact decimal numbers: 0.3 us are 300 ns, not 299. It knows no units.

/// Why a text is not a decimal number with this many places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DecimalError {
    /// Not written as digits, or as digits, a point and digits.
    NotPlain,
    Negative,
    /// More digits after the point than there are places.
    TooPrecise,
    /// More than 64 bits.
    TooLarge,
}

/// `text` in units of 10^-`places`: `fixed("0.3", 3)` = 300.
pub(crate) fn fixed(text: &str, places: usize) -> Result<u64, DecimalError> {
    let text = text.replace('_', "");
    let unsigned = match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| b"0.".contains(&b)) => rest,
        Some(_) => return Err(DecimalError::Negative),
        None => text.strip_prefix('+').unwrap_or(&text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return Err(DecimalError::NotPlain);
    }
    if fraction.len() > places {
        return Err(DecimalError::TooPrecise);
    }
    format!("{whole}{fraction:0<places$}").parse().map_err(|_| DecimalError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimal_microseconds_are_whole_nanoseconds() {
        for (text, ns) in
            [("0.3", 300), ("0.30", 300), ("13", 13_000), ("13.0", 13_000), ("3.9", 3_900), ("1.001", 1_001)]
        {
            assert_eq!(fixed(text, 3), Ok(ns), "{text}");
        }
        assert_eq!(fixed("1_000.5", 3), Ok(1_000_500));
        assert_eq!(fixed("-0.0", 3), Ok(0));
        assert_eq!(fixed("0.0001", 3), Err(DecimalError::TooPrecise));
        assert_eq!(fixed("-1", 3), Err(DecimalError::Negative));
        assert_eq!(fixed("99999999999999999999", 3), Err(DecimalError::TooLarge));
        for text in ["", ".", "1e3", "nan", "inf", "1.2.3", "0x10", "-", "+", " 1"] {
            assert!(fixed(text, 3).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(ns in 0u64..1 << 50) {
            prop_assert_eq!(fixed(&format!("{}.{:03}", ns / 1000, ns % 1000), 3), Ok(ns));
            prop_assert_eq!(fixed(&format!("{}", ns as f64 / 1e3), 3), Ok(ns));
        }
    }
}
