// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers as the kernel reads them from a file of sysfs (Linux `lib/kstrtox.c`, `kstrtouint` with base 0).

use crate::Errno;

/// The number in what was written: decimal, octal behind `0`, hexadecimal behind `0x`, perhaps with a `+` before it,
/// and one newline after it. What follows a NUL does not count.
///
/// # Errors
/// [`Errno::INVAL`] for anything else, [`Errno::RANGE`] for a number above 32 bits.
pub(crate) fn parse_uint(written: &[u8]) -> Result<u32, Errno> {
    let text = written.split(|&b| b == 0).next().unwrap_or_default();
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let (base, digits) = match text {
        [b'0', b'x' | b'X', first, ..] if first.is_ascii_hexdigit() => (16, &text[2..]),
        [b'0', ..] => (8, text),
        _ => (10, text),
    };
    if digits.is_empty() {
        return Err(Errno::INVAL);
    }
    let mut value = Some(0u64);
    for &digit in digits {
        // Too many good digits are found before a wrong one behind them is.
        let wrong = if value.is_none() { Errno::RANGE } else { Errno::INVAL };
        let digit = char::from(digit).to_digit(base).ok_or(wrong)?;
        value = value.and_then(|v| v.checked_mul(base.into())?.checked_add(digit.into()));
    }
    value.and_then(|v| u32::try_from(v).ok()).ok_or(Errno::RANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_kernel_reads_them() {
        for (written, value) in [
            ("0", 0),
            ("8\n", 8),
            ("+8", 8),
            ("010", 8),
            ("0x10\n", 16),
            ("0XfF", 255),
            ("4294967295", u32::MAX),
            ("00", 0),
            ("12\0rubbish", 12),
        ] {
            assert_eq!(parse_uint(written.as_bytes()), Ok(value), "{written:?}");
        }
        for written in [
            "", "\n", " 8", "8 ", "8\n\n", "-8", "+-8", "++8", "08", "0x", "0xg", "8.0", "1e3", "eight", "\0", "8\r\n",
            "0b1",
        ] {
            assert_eq!(parse_uint(written.as_bytes()), Err(Errno::INVAL), "{written:?}");
        }
        for written in
            ["4294967296", "0x100000000", "18446744073709551616", "99999999999999999999999999x", "18446744073709551615"]
        {
            assert_eq!(parse_uint(written.as_bytes()), Err(Errno::RANGE), "{written:?}");
        }
    }
}
