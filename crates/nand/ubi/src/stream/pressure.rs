// SPDX-License-Identifier: MIT OR Apache-2.0
//! A schedule of memory pressure: the memory budget of the cache from each read on.

use super::StreamError;
use super::error::excerpt;

/// One change of the budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Number of the read through `ubi_eba_read_leb`, from 0, before which it takes effect.
    pub read: u64,
    /// The budget from then on, in bytes, for lines and their metadata.
    pub bytes: u64,
}

/// Changes in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pressure {
    /// The changes; numbers of reads rise.
    pub steps: Vec<Step>,
}

/// Changes that a schedule may have.
const MOST: usize = 1 << 20;

/// Reads a schedule called `file` in messages: lines `read,bytes`, `#` begins a comment.
///
/// # Errors
/// The first line that is not such a pair, or whose read does not come after the one before.
pub fn parse_pressure(file: &str, text: &str) -> Result<Pressure, StreamError> {
    let mut steps: Vec<Step> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let fault = |field, message| StreamError { file: file.to_owned(), line: i as u64 + 1, field, message };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((read, bytes)) = line.split_once(',') else {
            return Err(fault("", format!("expected read,bytes, found {}", excerpt(line.as_bytes()))));
        };
        let number = |field, text: &str| {
            text.trim()
                .parse::<u64>()
                .map_err(|_| fault(field, format!("expected a whole number, found {}", excerpt(text.as_bytes()))))
        };
        let step = Step { read: number("read", read)?, bytes: number("bytes", bytes)? };
        if let Some(last) = steps.last().filter(|last| last.read >= step.read) {
            let message = format!("expected a read after {}, found {}", last.read, step.read);
            return Err(fault("read", message));
        }
        if steps.len() == MOST {
            return Err(fault("", format!("there are more than {MOST} changes")));
        }
        steps.push(step);
    }
    Ok(Pressure { steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_and_faults_named() {
        let pressure = parse_pressure("p", "# read,bytes\n0, 1000000\n\n500,0\n").unwrap();
        assert_eq!(pressure.steps, [Step { read: 0, bytes: 1_000_000 }, Step { read: 500, bytes: 0 }]);
        for (text, says) in [
            ("5", "p:1: expected read,bytes, found \"5\""),
            ("5,x", "p:1: bytes: expected a whole number, found \"x\""),
            ("-5,1", "p:1: read: expected a whole number, found \"-5\""),
            ("5,1\n5,2", "p:2: read: expected a read after 5, found 5"),
        ] {
            assert_eq!(parse_pressure("p", text).unwrap_err().to_string(), says);
        }
    }
}
