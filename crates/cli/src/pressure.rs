// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of `--pressure`: when the memory for HPB has which limit. Each line has a time in milliseconds from the start of
//! the trace and a size, with a comma between them; `#` begins a comment.

use crate::files::read_text;
use crate::usage;
use crate::variants::size;
use anyhow::{Context, Result, anyhow};
use readpath_kit::Ns;
use std::path::Path;

/// Changes at most: a file with more is not one of these.
const MOST: usize = 100_000;

/// Reads such a file.
pub fn read(path: &Path) -> Result<Vec<(Ns, u64)>> {
    let name = path.display();
    let text = read_text(path).with_context(|| format!("{name}: cannot read")).map_err(usage)?;
    parse(&text).map_err(|e| usage(anyhow!("{name}: {e}")))
}

fn parse(text: &str) -> Result<Vec<(Ns, u64)>, String> {
    let mut limits: Vec<(Ns, u64)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let wrong = |what: String| format!("line {}: {what}", i + 1);
        let (ms, bytes) = line
            .split_once(',')
            .ok_or_else(|| wrong(format!("{line:?} is not a time in ms and a size, such as 1500,8M")))?;
        let ms = ms.trim();
        let at = ms.parse::<u64>().ok().and_then(|n| n.checked_mul(1_000_000)).map(Ns);
        let at = at.ok_or_else(|| wrong(format!("{ms:?} is not a time in whole milliseconds")))?;
        if limits.last().is_some_and(|&(before, _)| at < before) {
            return Err(wrong(format!("{ms} ms is before the line above; times must not decrease")));
        }
        limits.push((at, size(bytes.trim()).map_err(wrong)?));
        if limits.len() > MOST {
            return Err(wrong(format!("more than {MOST} changes")));
        }
    }
    if limits.is_empty() {
        return Err("has no line with a time and a size".to_owned());
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes() {
        let limits = parse("# pressure\n0, 8M\n\n1500,512K # less\n1500,1M\n").expect("limits");
        assert_eq!(limits, [(Ns(0), 8 << 20), (Ns(1_500_000_000), 512 << 10), (Ns(1_500_000_000), 1 << 20)]);
    }

    #[test]
    fn mistakes_name_the_line() {
        for (text, says) in [
            ("", "has no line"),
            ("1,8M\n8M", "line 2: \"8M\" is not a time in ms and a size"),
            ("-1,8M", "line 1: \"-1\" is not a time"),
            ("99999999999999999999,8M", "line 1:"),
            ("18446744073709551,8M", "line 1:"),
            ("5,8M\n4,8M", "line 2: 4 ms is before the line above"),
            ("5,8X", "line 1: \"8X\" is not a size"),
            ("5,0", "line 1: \"0\" is not a size"),
        ] {
            let message = parse(text).expect_err("a mistake");
            assert!(message.contains(says), "{says}: {message}");
        }
    }
}
