// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of `--events` and `--pressure`: events during a run, and limits of the memory for HPB. Each line has a time in
//! milliseconds from the start of the run, a comma, and the event or limit at that time; `#` begins a comment.

use crate::{inputs, usage};
use anyhow::{Result, anyhow};
use readpath_config::{Event, EventKind, MOST_EVENTS, size, time};
use readpath_kit::Ns;
use std::path::Path;

/// Changes of a limit at most.
const MOST_LIMITS: usize = 100_000;
/// The last time, in milliseconds. Virtual time ends after 52 days.
const LATEST_MS: u64 = 1_000_000_000;

/// Reads a file of `--pressure`: times from the start, and bytes.
///
/// # Errors
/// When it cannot be read, or a line is wrong.
pub fn read_limits(path: &Path) -> Result<Vec<(Ns, u64)>> {
    read(path, limits)
}

/// Reads a file of `--events`.
///
/// # Errors
/// When it cannot be read, or a line is wrong.
pub fn read_events(path: &Path) -> Result<Vec<Event>> {
    read(path, events)
}

/// Refuses memory pressure on a variant whose host does not give memory back. `keep` has the names of the variants, and
/// why the host of a variant keeps its memory, if it does.
///
/// # Errors
/// When there is such a variant.
pub fn check_pressure<'a>(
    events: &[Event],
    mut keep: impl Iterator<Item = (&'a str, Option<&'static str>)>,
) -> Result<()> {
    if !events.iter().any(|event| matches!(event.kind, EventKind::Pressure { .. })) {
        return Ok(());
    }
    let Some((name, why)) = keep.find_map(|(name, why)| Some((name, why?))) else { return Ok(()) };
    Err(usage(anyhow!(
        "--events: the host of variant '{name}' {why}; pressure needs a policy other than linux-dcm and linux-hcm"
    )))
}

fn read<T>(path: &Path, parse: impl Fn(&str) -> Result<T, String>) -> Result<T> {
    let name = path.display();
    parse(&inputs::text(path)?).map_err(|e| usage(anyhow!("{name}: {e}")))
}

fn limits(text: &str) -> Result<Vec<(Ns, u64)>, String> {
    timed(text, "a size, such as 1500,8M", MOST_LIMITS, size)
}

fn events(text: &str) -> Result<Vec<Event>, String> {
    let list = timed(text, "an event, such as 1500,suspend or 1500,pressure,8M", MOST_EVENTS, kind)?;
    Ok(list.into_iter().map(|(at, kind)| Event { at, kind }).collect())
}

/// An event: a word, and its value after a comma.
fn kind(text: &str) -> Result<EventKind, String> {
    let (word, more) = match text.split_once(',') {
        Some((word, more)) => (word.trim(), Some(more.trim())),
        None => (text, None),
    };
    match (EventKind::named(word)?, more) {
        (EventKind::Pressure { .. }, None) => Err("pressure needs a limit of memory, such as pressure,8M".to_owned()),
        (EventKind::Pressure { .. }, Some(bytes)) => Ok(EventKind::Pressure { bytes: size(bytes)? }),
        (EventKind::PowerCycle { .. }, Some(off)) => Ok(EventKind::PowerCycle { off: time_without_power(off)? }),
        (kind, None) => Ok(kind),
        (_, Some(more)) => Err(format!("{word} takes no value; remove {more:?}")),
    }
}

/// A time without power.
///
/// # Errors
/// When the text is not a time, or one above 1000 s.
pub fn time_without_power(text: &str) -> Result<Ns, String> {
    match time(text)? {
        off if off > Ns::from_secs(1000) => Err(format!("{text} without power; at most 1000 s are possible")),
        off => Ok(off),
    }
}

/// Lines with a time and `what`, `most` at most.
fn timed<T>(
    text: &str,
    what: &str,
    most: usize,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<(Ns, T)>, String> {
    let mut list: Vec<(Ns, T)> = Vec::new();
    for (i, line) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let wrong = |what: String| format!("line {}: {what}", i + 1);
        let (ms, rest) =
            line.split_once(',').ok_or_else(|| wrong(format!("{line:?} is not a time in ms and {what}")))?;
        let ms = ms.trim();
        let at = ms.parse::<u64>().ok().filter(|&n| n <= LATEST_MS).map(Ns::from_ms);
        let at = at.ok_or_else(|| wrong(format!("{ms:?} is not a time in whole milliseconds up to {LATEST_MS}")))?;
        if list.last().is_some_and(|&(before, _)| at < before) {
            return Err(wrong(format!("{ms} ms is before the line above; times must not decrease")));
        }
        list.push((at, parse(rest.trim()).map_err(wrong)?));
        if list.len() > most {
            return Err(wrong(format!("more than {most} lines")));
        }
    }
    if list.is_empty() {
        return Err(format!("has no line with a time and {what}"));
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes() {
        let limits = limits("# pressure\n0, 8M\n\n1500,512K # less\n1500,1M\n").expect("limits");
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
            let message = limits(text).expect_err("a mistake");
            assert!(message.contains(says), "{says}: {message}");
        }
    }

    #[test]
    fn events_of_all_kinds() {
        let text =
            "0,suspend\n10, resume # awake\n20,hardware-reset\n30,power-cycle\n40,power-cycle,5ms\n50,pressure,8M\n";
        let at = |ms, kind| Event { at: Ns::from_ms(ms), kind };
        assert_eq!(
            events(text).expect("events"),
            [
                at(0, EventKind::Suspend),
                at(10, EventKind::Resume),
                at(20, EventKind::HardwareReset),
                at(30, EventKind::PowerCycle { off: Ns::from_ms(100) }),
                at(40, EventKind::PowerCycle { off: Ns::from_ms(5) }),
                at(50, EventKind::Pressure { bytes: 8 << 20 }),
            ]
        );
        for (text, says) in [
            (
                "1,sleep",
                "line 1: \"sleep\" is no event; there are suspend, resume, hardware-reset, power-cycle, pressure",
            ),
            ("1,pressure", "line 1: pressure needs a limit"),
            ("1,pressure,x", "line 1: \"x\" is not a size"),
            ("1,resume\n2,suspend,3", "line 2: suspend takes no value"),
            ("1,power-cycle,5", "line 1: \"5\" is not a time"),
            ("1,power-cycle,5000s", "line 1: "),
            ("2,suspend\n1,resume", "line 2: 1 ms is before the line above"),
        ] {
            let message = events(text).expect_err("a mistake");
            assert!(message.contains(says), "{says}: {message}");
        }
    }
}
