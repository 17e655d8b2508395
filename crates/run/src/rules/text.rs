// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules as text: `slow read 0-1G 1% 20ms`. Words may come in any order, and are written in one.

use super::{Act, Errno, Kind, Op, Rule, Which};
use readpath_config::{size, time};
use readpath_kit::Ns;
use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use thiserror::Error;

/// Longest time of an order.
const LONGEST: Ns = Ns::from_secs(3600);

/// What a rule can say, for help and errors.
pub const WORDS: &str = "[read|write|flush|trim|zero] [FROM-TO] [client N] [nth N|every N|first N|P%|Nppm] \
                                [up TIME down TIME]";

const ONCE: &str = "a rule has one operation, one range, one client, one count or share, one window and one value";

/// The errors of NBD and their names.
const ERRNOS: [(Errno, &str); 8] = [
    (Errno::Perm, "EPERM"),
    (Errno::Io, "EIO"),
    (Errno::NoMem, "ENOMEM"),
    (Errno::Inval, "EINVAL"),
    (Errno::NoSpace, "ENOSPC"),
    (Errno::Overflow, "EOVERFLOW"),
    (Errno::NotSup, "ENOTSUP"),
    (Errno::Shutdown, "ESHUTDOWN"),
];

/// Why a text is no rule, and where in it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{what}")]
pub struct Wrong {
    /// The byte of the text where the word at fault begins.
    pub at: usize,
    /// What is wrong, and what would be right.
    pub what: String,
}

/// An order about rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuleOrder {
    /// A rule is in effect from now on.
    Add(Rule),
    /// Rules of a kind are over.
    End(Kind),
    /// Chance begins anew.
    Seed(u64),
}

impl RuleOrder {
    /// The order of a text; none if it is about something else than rules.
    pub fn read(text: &str) -> Option<Result<RuleOrder, Wrong>> {
        let mut words = text.split_whitespace();
        let first = words.next()?;
        let second = words.next();
        let at = second.map_or(text.len(), |second| second.as_ptr() as usize - text.as_ptr() as usize);
        match (Kind::by_name(first), second, words.next()) {
            (Some(kind), Some("off"), None) => Some(Ok(RuleOrder::End(kind))),
            (Some(_), ..) => Some(text.parse().map(RuleOrder::Add)),
            (None, Some(seed), None) if first == "seed" => {
                Some(number(seed).map(RuleOrder::Seed).map_err(|what| Wrong { at, what }))
            }
            (None, ..) => None,
        }
    }
}

impl fmt::Display for RuleOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleOrder::Add(rule) => write!(f, "{rule}"),
            RuleOrder::End(kind) => write!(f, "{} off", kind.name()),
            RuleOrder::Seed(seed) => write!(f, "seed {seed}"),
        }
    }
}

/// A span of time that reads back as it was.
pub struct Exactly(pub Ns);

impl fmt::Display for Exactly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
        let (unit, ns) = units.into_iter().find(|&(_, ns)| self.0.0.is_multiple_of(ns)).unwrap_or(("ns", 1));
        write!(f, "{}{unit}", self.0.0 / ns)
    }
}

/// A span of time that an order may take.
///
/// # Errors
/// What would be one.
pub fn span(text: &str) -> Result<Ns, String> {
    match time(text)? {
        span if span <= LONGEST => Ok(span),
        _ => Err(format!("{text} is longer than {LONGEST}")),
    }
}

/// A whole number.
///
/// # Errors
/// It is none, or too large.
pub fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number, or too large"))
}

/// `FROM-TO` in bytes, to below `TO`; none without a hyphen.
pub fn range(text: &str) -> Option<Result<Range<u64>, String>> {
    let (from, to) = text.split_once('-')?;
    let read = || {
        let from = if from == "0" { 0 } else { size(from)? };
        let range = from..size(to)?;
        if range.is_empty() { Err(format!("{text} is empty: it ends where it begins, or earlier")) } else { Ok(range) }
    };
    Some(read())
}

/// A value that may be given once.
fn set<T>(place: &mut Option<T>, value: T, word: &str) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("'{word}' is one too many: {ONCE}")),
    }
}

/// Parts in a million, of `1%`, `0.5%` or `20ppm`; none if it is neither.
fn ppm(text: &str) -> Option<Result<u32, String>> {
    let ppm = match (text.strip_suffix("ppm"), text.strip_suffix('%')) {
        (Some(ppm), _) => number(ppm),
        (None, Some(percent)) => {
            let (whole, part) = percent.split_once('.').unwrap_or((percent, ""));
            let digits = part.len();
            if digits > 4 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
                return Some(Err(format!("'{text}' is not a share such as 1%, 0.5% or 20ppm")));
            }
            let read = number::<u32>(whole).map_err(|_| format!("'{text}' is not a share such as 1%, 0.5% or 20ppm"));
            let part = format!("{part:0<4}").parse().unwrap_or(0);
            read.map(|whole| whole.saturating_mul(10_000).saturating_add(part))
        }
        (None, None) => return None,
    };
    Some(ppm.and_then(|ppm| match ppm {
        1..=1_000_000 => Ok(ppm),
        0 => Err(format!("'{text}' is never")),
        _ => Err(format!("'{text}' is more than all")),
    }))
}

fn from_one<T: FromStr + Default + PartialEq>(what: &str, text: &str) -> Result<T, String> {
    let value: T = number(text)?;
    if value == T::default() { Err(format!("{what} {text}: they are counted from 1")) } else { Ok(value) }
}

/// A time that is not nothing.
fn some_time(text: &str) -> Result<Ns, String> {
    match span(text)? {
        Ns::ZERO => Err(format!("{text} is no time")),
        time => Ok(time),
    }
}

impl FromStr for Rule {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Rule, Wrong> {
        let at = Cell::new(0);
        rule(text, &at).map_err(|what| Wrong { at: at.get(), what })
    }
}

/// The rule of a text; `at` is where the word begins that was read last, or that is at fault.
fn rule(text: &str, at: &Cell<usize>) -> Result<Rule, String> {
    let place = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    let mut words = text.split_whitespace().inspect(|word| at.set(place(word)));
    let kind = words.next().and_then(Kind::by_name).ok_or("a rule begins with its kind")?;
    let (mut op, mut bytes, mut client, mut which, mut window, mut act) = (None, None, None, None, None, None);
    let mut places = (0, 0);
    while let Some(word) = words.next() {
        let mut next = || {
            words.next().ok_or_else(|| {
                at.set(text.trim_end().len());
                format!("'{word}' needs a value")
            })
        };
        if let Some(named) = Op::by_name(word) {
            places.0 = place(word);
            set(&mut op, named, word)?;
        } else if let Some(ppm) = ppm(word) {
            set(&mut which, Which::Ppm(ppm?), word)?;
        } else if let Some(range) = range(word) {
            places.1 = place(word);
            set(&mut bytes, range?, word)?;
        } else if word == "client" {
            set(&mut client, from_one(word, next()?)?, word)?;
        } else if matches!(word, "nth" | "every" | "first") {
            let count = from_one(word, next()?)?;
            let counted = match word {
                "nth" => Which::Nth(count),
                "every" => Which::Every(count),
                _ => Which::First(count),
            };
            set(&mut which, counted, word)?;
        } else if word == "up" {
            let (up, down) = (some_time(next()?)?, next()?);
            if down != "down" {
                return Err(format!("'up' goes with 'down', as in 'up 5s down 1s', and here is '{down}'"));
            }
            set(&mut window, (up, some_time(next()?)?), word)?;
        } else {
            set(&mut act, act_of(kind, word)?, word)?;
        }
    }
    at.set(text.trim_end().len());
    let act = match (act, kind) {
        (Some(act), _) => act,
        (None, Kind::Error) => Act::Error(Errno::Io),
        (None, Kind::Drop) => Act::Drop,
        (None, Kind::Misdirect) => Act::Misdirect,
        (None, Kind::Corrupt) => Act::Corrupt,
        (None, Kind::Torn) => return Err("at what size? 512 or 4K".to_owned()),
        (None, Kind::Slow) => return Err(format!("by how much? write slow {WORDS} TIME, or slow off")),
    };
    let names = || kind.ops().iter().map(|op| op.name()).collect::<Vec<_>>().join(", ");
    match op {
        Some(op) if !kind.ops().contains(&op) => {
            at.set(places.0);
            Err(format!("a {} cannot be; it goes with {}", op.name(), names()))
        }
        Some(Op::Flush) if bytes.is_some() => {
            at.set(places.1);
            Err("a flush has no range".to_owned())
        }
        op => Ok(Rule { act, op, range: bytes, client, which: which.unwrap_or(Which::All), window }),
    }
}

/// What a word says that is none of those that all rules have.
fn act_of(kind: Kind, word: &str) -> Result<Act, String> {
    let others = || format!("'{word}' is nothing that {} takes: {WORDS}", kind.name());
    match kind {
        Kind::Error => {
            let errno = ERRNOS.iter().find(|(_, name)| *name == word);
            let names = || ERRNOS.map(|(_, name)| name).join(", ");
            errno.map(|&(errno, _)| Act::Error(errno)).ok_or_else(|| format!("{}, and one of {}", others(), names()))
        }
        Kind::Slow if word.starts_with(|c: char| c.is_ascii_digit()) => some_time(word).map(Act::Slow),
        Kind::Slow => Err(format!("{}, and a time", others())),
        Kind::Torn => match word {
            "512" => Ok(Act::Torn(512)),
            "4K" | "4096" | "4KiB" => Ok(Act::Torn(4096)),
            _ => Err(format!("{}, and 512 or 4K", others())),
        },
        Kind::Drop | Kind::Misdirect | Kind::Corrupt => Err(others()),
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { act, op, range, client, which, window } = self;
        write!(f, "{}", act.kind().name())?;
        op.iter().try_for_each(|op| write!(f, " {}", op.name()))?;
        range.iter().try_for_each(|range| write!(f, " {}-{}", range.start, range.end))?;
        client.iter().try_for_each(|client| write!(f, " client {client}"))?;
        match which {
            Which::All => {}
            Which::Nth(n) => write!(f, " nth {n}")?,
            Which::Every(n) => write!(f, " every {n}")?,
            Which::First(n) => write!(f, " first {n}")?,
            Which::Ppm(ppm) if ppm.is_multiple_of(10_000) => write!(f, " {}%", ppm / 10_000)?,
            Which::Ppm(ppm) => write!(f, " {ppm}ppm")?,
        }
        window.iter().try_for_each(|&(up, down)| write!(f, " up {} down {}", Exactly(up), Exactly(down)))?;
        match act {
            Act::Error(errno) => {
                let name = ERRNOS.iter().find(|(known, _)| known == errno).map_or("EIO", |&(_, name)| name);
                write!(f, " {name}")
            }
            Act::Slow(by) => write!(f, " {}", Exactly(*by)),
            Act::Torn(unit) => write!(f, " {}", if *unit == 4096 { "4K" } else { "512" }),
            Act::Drop | Act::Misdirect | Act::Corrupt => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_written() {
        for (text, written) in [
            ("error", "error EIO"),
            ("error ENOSPC write", "error write ENOSPC"),
            ("error read 0-1G nth 7 ESHUTDOWN", "error read 0-1073741824 nth 7 ESHUTDOWN"),
            ("slow 5ms", "slow 5ms"),
            ("slow read 0-1K 20ms 1%", "slow read 0-1024 1% 20ms"),
            ("slow flush 0.5% 1s", "slow flush 5000ppm 1s"),
            ("slow zero 100% 1ns", "slow zero 100% 1ns"),
            ("drop trim client 3 every 2", "drop trim client 3 every 2"),
            ("drop flush up 5s down 1500ms", "drop flush up 5s down 1500ms"),
            ("torn 4096", "torn 4K"),
            ("torn write 512 first 3", "torn write first 3 512"),
            ("misdirect read 20ppm", "misdirect read 20ppm"),
            ("corrupt 4K-8K", "corrupt 4096-8192"),
        ] {
            let rule: Rule = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(rule.to_string(), written, "{text}");
            assert_eq!(written.parse(), Ok(rule), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, what) in [
            ("error EBUSY", "one of EPERM, EIO"),
            ("error read write", "'write' is one too many"),
            ("error nth 3 5%", "'5%' is one too many"),
            ("error nth", "'nth' needs a value"),
            ("error nth 0", "counted from 1"),
            ("error client x", "not a number"),
            ("error 0%", "is never"),
            ("error 101%", "more than all"),
            ("error 1.23456%", "not a share"),
            ("error 8K-4K", "is empty"),
            ("error up 5s 1s", "'up' goes with 'down'"),
            ("error up 0s down 1s", "is no time"),
            ("slow", "by how much"),
            ("slow 0ms", "is no time"),
            ("slow fast 5ms", "'fast' is nothing that slow takes: [read|write"),
            ("slow flush 0-4K 5ms", "a flush has no range"),
            ("slow 5ms 6ms", "'6ms' is one too many"),
            ("drop read", "a read cannot be; it goes with write, flush, trim, zero"),
            ("drop 5ms", "'5ms' is nothing that drop takes"),
            ("torn write", "512 or 4K"),
            ("torn 1K", "512 or 4K"),
            ("misdirect trim", "it goes with read, write"),
        ] {
            let error = text.parse::<Rule>().expect_err(text).what;
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn the_word_at_fault_is_named() {
        for (text, at) in [
            ("error EBUSY", "EBUSY"),
            ("  error read  write", "write"),
            ("error nth 3 5% read", "5%"),
            ("error nth x read", "x"),
            ("error up 5s 1s", "1s"),
            ("slow fast 5ms", "fast"),
            ("slow flush 0-4K 5ms", "0-4K"),
            ("drop read every 5", "read every"),
            ("slow read ", " "),
            ("error client", ""),
        ] {
            let error = text.parse::<Rule>().expect_err(text);
            assert!(text[error.at..].starts_with(at) && error.at > 0, "{text}: {error:?}");
        }
        let error = RuleOrder::read("seed x").expect("it is about rules").expect_err("no number");
        assert_eq!(error.at, 5, "{error}");
    }

    #[test]
    fn orders_about_rules_are_told_from_others() {
        let read = |text| RuleOrder::read(text).map(|order| order.map(|order| order.to_string()));
        for (text, written) in [("torn off", "torn off"), ("seed 7", "seed 7"), ("drop", "drop")] {
            assert_eq!(read(text), Some(Ok(written.to_owned())));
        }
        assert_eq!(["", "cut", "seed", "lie on"].map(read), [None, None, None, None]);
    }
}
