// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers and words in rows of text, read byte by byte without allocation. Knows no format.

use super::error::{Reason, RowError};

/// Nanoseconds of a second, a microsecond and of the unit of Windows FILETIME.
pub(super) const SECONDS: u64 = 1_000_000_000;
pub(super) const MICROS: u64 = 1_000;
pub(super) const FILETIME: u64 = 100;

/// What a whole number should be, for messages.
const WHOLE: &str = "a whole number from 0 to 2^64-1";
/// What a time should be, for messages.
const TIME: &str = "a time that is not negative and below 2^64 ns";

/// A place in a row.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) row: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(row: &'a [u8]) -> Self {
        Cursor { row, at: 0 }
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.row.get(self.at).copied()
    }

    /// Passes `byte`, or says that `field` does not end here.
    #[inline]
    pub(super) fn pass(&mut self, byte: u8, field: &'static str, expected: &'static str) -> Result<(), RowError> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(RowError::new(Reason::Syntax, field, self.at, expected))
    }

    #[inline]
    pub(super) fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// The bytes up to the next `stop`, which is not passed, or up to the end.
    #[inline]
    pub(super) fn until(&mut self, stop: u8) -> &'a [u8] {
        let rest = &self.row[self.at..];
        let n = memchr::memchr(stop, rest).unwrap_or(rest.len());
        self.at += n;
        &rest[..n]
    }

    /// The next word, blanks before it passed. Words are short: a plain loop is faster than a vector search.
    #[inline]
    pub(super) fn word(&mut self) -> &'a [u8] {
        self.blanks();
        let from = self.at;
        while !matches!(self.peek(), None | Some(b' ' | b'\t')) {
            self.at += 1;
        }
        &self.row[from..self.at]
    }

    #[inline]
    fn digits(&mut self) -> (u64, usize) {
        let from = self.at;
        let mut value = 0u64;
        while let Some(d) = self.peek().map(|b| b.wrapping_sub(b'0')).filter(|&d| d < 10) {
            value = value.wrapping_mul(10).wrapping_add(u64::from(d));
            self.at += 1;
        }
        (value, self.at - from)
    }

    #[inline]
    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64, RowError> {
        let from = self.at;
        match self.digits() {
            (_, 0) => Err(RowError::new(Reason::Number, field, from, WHOLE)),
            (value, 1..=19) => Ok(value),
            // Nineteen digits always fit; more are read again with care.
            _ => checked(&self.row[from..self.at]).ok_or_else(|| RowError::new(Reason::Range, field, from, WHOLE)),
        }
    }

    /// Whether `0x` follows.
    #[inline]
    pub(super) fn has_hex_prefix(&self) -> bool {
        matches!(self.row[self.at..], [b'0', b'x' | b'X', ..])
    }

    /// A number in hexadecimal digits, with or without `0x`.
    #[inline]
    pub(super) fn hex(&mut self, field: &'static str) -> Result<u64, RowError> {
        if self.has_hex_prefix() {
            self.at += 2;
        }
        let from = self.at;
        let mut value = 0u64;
        while let Some(d) = self.peek().and_then(|b| char::from(b).to_digit(16)) {
            value = value << 4 | u64::from(d);
            self.at += 1;
        }
        match self.at - from {
            1..=16 => Ok(value),
            0 => Err(RowError::new(Reason::Number, field, from, "a hexadecimal number")),
            _ => Err(RowError::new(Reason::Range, field, from, "at most 16 hexadecimal digits")),
        }
    }

    /// A time with or without a fraction, of units of so many nanoseconds; rounded to the nearest nanosecond.
    #[inline]
    pub(super) fn time(&mut self, unit_ns: u64, field: &'static str) -> Result<u64, RowError> {
        let from = self.at;
        let (mut whole, n) = self.digits();
        if n > 19 {
            whole = checked(&self.row[from..self.at]).ok_or_else(|| RowError::new(Reason::Range, field, from, TIME))?;
        }
        let mut fraction = 0u64;
        let mut fraction_digits = 0;
        if self.peek() == Some(b'.') {
            self.at += 1;
            while let Some(d) = self.peek().map(|b| b.wrapping_sub(b'0')).filter(|&d| d < 10) {
                match fraction_digits {
                    0..9 => fraction = fraction * 10 + u64::from(d),
                    9 => fraction += u64::from(d >= 5),
                    _ => {}
                }
                fraction_digits += 1;
                self.at += 1;
            }
            if fraction_digits < 9 {
                fraction *= POWERS[9 - fraction_digits];
            }
        }
        if n + fraction_digits == 0 {
            return Err(RowError::new(Reason::Number, field, from, TIME));
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            return self.scientific(from, unit_ns, field);
        }
        let fraction_ns = if unit_ns == SECONDS { fraction } else { (fraction * unit_ns + SECONDS / 2) / SECONDS };
        whole
            .checked_mul(unit_ns)
            .and_then(|ns| ns.checked_add(fraction_ns))
            .ok_or_else(|| RowError::new(Reason::Range, field, from, TIME))
    }

    /// A time such as `8.06e-05`, as programs print small floating-point numbers.
    #[cold]
    fn scientific(&mut self, from: usize, unit_ns: u64, field: &'static str) -> Result<u64, RowError> {
        while matches!(self.peek(), Some(b'0'..=b'9' | b'e' | b'E' | b'+' | b'-' | b'.')) {
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.row[from..self.at]).unwrap_or_default();
        let value: f64 = text.parse().map_err(|_| RowError::new(Reason::Number, field, from, TIME))?;
        let ns = (value * unit_ns as f64).round();
        // 2^64 as a float; NaN fails the comparison as well.
        if ns < 18_446_744_073_709_551_616.0 {
            Ok(ns as u64)
        } else {
            Err(RowError::new(Reason::Range, field, from, TIME))
        }
    }
}

const POWERS: [u64; 10] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

#[cold]
fn checked(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |v, d| v.checked_mul(10)?.checked_add(u64::from(d - b'0')))
}

/// The number at the end of a name such as `kworker/u17:0-21454`.
#[inline]
pub(super) fn trailing_number(name: &[u8]) -> Option<u32> {
    let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits > 10 {
        return None;
    }
    let value = name[name.len() - digits..].iter().fold(0, |v, d| v * 10 + u64::from(d - b'0'));
    u32::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str, unit_ns: u64) -> Result<u64, Reason> {
        Cursor::new(text.as_bytes()).time(unit_ns, "t").map_err(|e| e.reason)
    }

    #[test]
    fn times_are_exact_and_rounded_to_the_nearest_nanosecond() {
        assert_eq!(time("832636.2457430001", SECONDS), Ok(832_636_245_743_000));
        assert_eq!(time("832642.0457059999", SECONDS), Ok(832_642_045_706_000));
        assert_eq!(time("0.9999999996", SECONDS), Ok(1_000_000_000));
        assert_eq!(time("7", SECONDS), Ok(7_000_000_000));
        assert_eq!(time(".5", MICROS), Ok(500));
        assert_eq!(time("1.0015", MICROS), Ok(1_002));
        assert_eq!(time("128166385295514663", FILETIME), Ok(12_816_638_529_551_466_300));
        assert_eq!(time("8.06e-05", SECONDS), Ok(80_600));
        assert_eq!(time("18446744073709551615", 1), Ok(u64::MAX));
    }

    #[test]
    fn bad_times_say_why() {
        assert_eq!(time("-1", SECONDS), Err(Reason::Number));
        assert_eq!(time("", SECONDS), Err(Reason::Number));
        assert_eq!(time(".", SECONDS), Err(Reason::Number));
        assert_eq!(time("nan", SECONDS), Err(Reason::Number));
        assert_eq!(time("1e", SECONDS), Err(Reason::Number));
        assert_eq!(time("18446744074", SECONDS), Err(Reason::Range));
        assert_eq!(time("18446744073709551616", 1), Err(Reason::Range));
        assert_eq!(time("1e300", SECONDS), Err(Reason::Range));
        assert_eq!(time("99999999999999999999999", 1), Err(Reason::Range));
    }

    #[test]
    fn whole_numbers_do_not_wrap() {
        let whole = |t: &str| Cursor::new(t.as_bytes()).u64("n").map_err(|e| e.reason);
        assert_eq!(whole("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(whole("18446744073709551616"), Err(Reason::Range));
        assert_eq!(whole("00000000000000000000000007"), Ok(7));
        assert_eq!(whole("-3"), Err(Reason::Number));
        assert_eq!(Cursor::new(b"0xfF ").hex("n"), Ok(255));
        assert!(Cursor::new(b"0x").hex("n").is_err());
        assert!(Cursor::new(b"10000000000000000").hex("n").is_err());
    }

    #[test]
    fn process_ids_stand_behind_the_name() {
        assert_eq!(trailing_number(b"kworker/u17:0-21454"), Some(21454));
        assert_eq!(trailing_number(b"<...>-0"), Some(0));
        assert_eq!(trailing_number(b"name"), None);
        assert_eq!(trailing_number(b"a-4294967295"), Some(u32::MAX));
        assert_eq!(trailing_number(b"4294967296"), None);
        assert_eq!(trailing_number(b"99999999999"), None);
    }
}
