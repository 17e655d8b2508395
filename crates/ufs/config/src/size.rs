// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes and times in the notation of users.

use readpath_kit::Ns;

/// A size such as `1440K`, in bytes.
///
/// # Errors
/// A description of valid texts.
pub fn size(text: &str) -> Result<u64, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let wrong = || {
        let binary = ["KB", "MB", "GB", "TB"].into_iter().find(|unit| text[at..].eq_ignore_ascii_case(unit));
        let binary =
            binary.map(|unit| format!("; write {}{}iB: sizes here are multiples of 1024", &text[..at], &unit[..1]));
        let binary = binary.unwrap_or_default();
        format!("{text:?} is not a size such as 262144, 256K or 1M (1K = 1024 bytes){binary}")
    };
    let unit = match &text[at..] {
        "" => 1,
        "k" | "K" | "KiB" => 1 << 10,
        "m" | "M" | "MiB" => 1 << 20,
        "g" | "G" | "GiB" => 1 << 30,
        "t" | "T" | "TiB" => 1 << 40,
        _ => return Err(wrong()),
    };
    text[..at].parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).filter(|&n| n > 0).ok_or_else(wrong)
}

/// A time such as `10ms`.
///
/// # Errors
/// A description of valid texts.
pub fn time(text: &str) -> Result<Ns, String> {
    let wrong = || format!("{text:?} is not a time such as 10ms; units are ns, us, ms and s");
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let unit = match &text[at..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    text[..at].parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).map(Ns).ok_or_else(wrong)
}
