// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of fio options: numbers with size suffixes, percentages, times, lists per kind (fio HOWTO, "Parameter
//! types"). Knows no option's name. Every function answers with a message that says what would be right.

use readpath_kit::{BLOCK_BYTES, Ns};

/// A number of bytes, or a percentage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Amount {
    Bytes(u64),
    Percent(u64),
}

type Res<T> = Result<T, String>;

/// What a time without suffix counts, in nanoseconds.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Second = 1_000_000_000,
    Microsecond = 1000,
}

/// Longest time that an option may give, in days: a mistake in the unit is noticed, and sums of times fit.
const MAX_DAYS: u64 = 400;

/// Splits leading decimal or hexadecimal digits from what follows them.
fn number(text: &str) -> Res<(u64, &str)> {
    let wrong = || format!("\"{text}\" is not a whole number");
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    if end == 0 {
        return Err(if text.starts_with('(') {
            "calculations in brackets are not supported; write the result".into()
        } else {
            wrong()
        });
    }
    let value = u64::from_str_radix(&digits[..end], radix).map_err(|_| format!("\"{text}\" is too large"))?;
    Ok((value, &digits[end..]))
}

pub(super) fn count(text: &str, min: u64, max: u64) -> Res<u64> {
    match number(text)? {
        (value, "") if (min..=max).contains(&value) => Ok(value),
        (_, "") => Err(format!("\"{text}\" must lie between {min} and {max}")),
        _ => Err(format!("\"{text}\" is not a whole number")),
    }
}

/// Bytes of a size. `kb_base` is 1024 (fio's default: k = 1024, ki = 1000) or 1000 (k = 1000, ki = 1024).
pub(super) fn bytes(text: &str, kb_base: u64) -> Res<u64> {
    let (value, suffix) = number(text)?;
    let lower = suffix.to_ascii_lowercase();
    let (power, rest) = match lower.bytes().next() {
        Some(b'k') => (1, &lower[1..]),
        Some(b'm') => (2, &lower[1..]),
        Some(b'g') => (3, &lower[1..]),
        Some(b't') => (4, &lower[1..]),
        Some(b'p') => (5, &lower[1..]),
        _ => (0, &lower[..]),
    };
    let base: u64 = match (rest, kb_base) {
        ("" | "b", base) => base,
        ("i" | "ib", 1024) if power > 0 => 1000,
        ("i" | "ib", _) if power > 0 => 1024,
        _ => return Err(format!("\"{text}\" is not a size; k, m, g, t and p may follow the number")),
    };
    value.checked_mul(base.pow(power)).ok_or_else(|| format!("\"{text}\" is too large"))
}

/// A size or a percentage (0 to 100) of something. As in fio, several percent signs count as one.
pub(super) fn amount(text: &str, kb_base: u64) -> Res<Amount> {
    match text.trim_end_matches('%') {
        percent if percent.len() < text.len() => count(percent.trim(), 0, 100).map(Amount::Percent),
        _ => bytes(text, kb_base).map(Amount::Bytes),
    }
}

/// Number of 4 KiB blocks of one request.
pub(super) fn block_size(text: &str, kb_base: u64) -> Res<u16> {
    let bytes = bytes(text, kb_base)?;
    let block = u64::from(BLOCK_BYTES);
    if bytes == 0 {
        return Err("a block size of zero moves no data".into());
    }
    if !bytes.is_multiple_of(block) {
        let hint =
            if text.to_ascii_lowercase().contains('i') { " (in fio, ki is 1000 unless kb_base=1000)" } else { "" };
        return Err(format!("a block size must be a multiple of {block} bytes, \"{text}\" is {bytes}{hint}"));
    }
    u16::try_from(bytes / block).map_err(|_| format!("a block size must be below {} bytes", block << 16))
}

/// A span of time; numbers without suffix count `unit`.
pub(super) fn time(text: &str, unit: Unit) -> Res<Ns> {
    let wrong = || format!("\"{text}\" is not a time; d, h, m, s, ms or us may follow the number");
    let large = || format!("\"{text}\" is longer than {MAX_DAYS} days of virtual time, the most that can be given");
    let second = 1_000_000_000u64;
    let total = if text.contains(':') {
        // days:hours:minutes:seconds, from the right.
        let parts: Vec<&str> = text.split(':').collect();
        if parts.len() > 4 {
            return Err(wrong());
        }
        let mut sum = 0u64;
        for (part, scale) in parts.iter().rev().zip([1, 60, 3600, 86_400]) {
            let value = count(part, 0, u64::MAX).map_err(|_| wrong())?;
            sum = value.checked_mul(scale * second).and_then(|v| sum.checked_add(v)).ok_or_else(large)?;
        }
        sum
    } else {
        let (value, suffix) = number(text).map_err(|_| wrong())?;
        let scale = match suffix.to_ascii_lowercase().as_str() {
            "" => unit as u64,
            "d" => 86_400 * second,
            "h" => 3600 * second,
            "m" => 60 * second,
            "s" | "sec" => second,
            "ms" | "msec" => 1_000_000,
            "us" | "usec" => 1000,
            _ => return Err(wrong()),
        };
        value.checked_mul(scale).ok_or_else(large)?
    };
    if total > MAX_DAYS * 86_400 * second { Err(large()) } else { Ok(Ns(total)) }
}

/// A switch: 0, 1, true, false or the option alone.
pub(super) fn switch(value: Option<&str>) -> Res<bool> {
    match value {
        None | Some("1" | "true") => Ok(true),
        Some("0" | "false") => Ok(false),
        Some(other) => Err(format!("\"{other}\" must be 0 or 1")),
    }
}

pub(super) fn float(text: &str) -> Res<f64> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x),
        _ => Err(format!("\"{text}\" is not a number")),
    }
}

/// Sets the values of a list read,write,trim. One value is for all kinds; with two, the second is also for trims; an
/// empty place leaves its kind as it was, and a comma at the end leaves the kinds after it.
pub(super) fn per_kind<T: Clone>(text: &str, out: &mut [T; 3], parse: impl Fn(&str) -> Res<T>) -> Res<()> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 || parts.iter().all(|p| p.is_empty()) {
        return Err("expected up to three values: read,write,trim".into());
    }
    for (i, slot) in out.iter_mut().enumerate() {
        let part = parts.get(i).or_else(|| parts.last()).copied().unwrap_or_default();
        if !part.is_empty() {
            *slot = parse(part)?;
        }
    }
    Ok(())
}
