// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spans of time and numbers of bytes, as people write them.

use readpath_kit::Ns;

/// A span of time such as `10ms`.
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

/// A number of bytes, rounded.
pub fn bytes(n: u64) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..1_048_576 => format!("{:.1} KiB", n as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", n as f64 / f64::from(1 << 20)),
        _ => format!("{:.2} GiB", n as f64 / f64::from(1 << 30)),
    }
}
