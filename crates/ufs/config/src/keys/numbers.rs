// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole numbers and decimals with their units and bounds. It knows no key.

use super::kind::{About, Form, KeyValue, Kind};
use crate::decimal::{DecimalError, fixed};
use crate::tree::Value;
use readpath_kit::Ns;
use std::ops::RangeInclusive;

/// The types that a whole number of a file can become.
pub(crate) trait Count: TryFrom<u64> + Into<u64> + Copy {}

impl<T: TryFrom<u64> + Into<u64> + Copy> Count for T {}

pub(crate) fn whole<'a, T: Count + 'a>(range: RangeInclusive<u64>) -> Kind<'a, T> {
    let (least, most) = range.clone().into_inner();
    let schema = [("type", Value::text("integer")), ("minimum", Value::whole(least)), ("maximum", Value::whole(most))];
    let read = move |value: &Value| match value {
        Value::Integer(Some(n)) => u64::try_from(*n).ok().filter(|n| range.contains(n))?.try_into().ok(),
        _ => None,
    };
    let blank = move || T::try_from(least).unwrap_or_else(|_| unreachable!("the range begins within the type"));
    Kind::plain(format!("a whole number from {least} to {most}"), schema, read, |n| Value::whole((*n).into()), blank)
}

pub(crate) fn multiple<'a, T: Count + 'a>(range: RangeInclusive<u64>, of: u64) -> Kind<'a, T> {
    let check = move |n: u64| (!n.is_multiple_of(of)).then(|| format!("a multiple of {of}"));
    ruled(range, &format!("a multiple of {of}"), ("multipleOf", Value::whole(of)), check)
}

pub(crate) fn power_of_two<'a, T: Count + 'a>(range: RangeInclusive<u64>) -> Kind<'a, T> {
    let (words, least, most) = ("a power of two", *range.start(), *range.end());
    let such_as = move |n: u64| {
        let below = 1u64 << n.ilog2();
        format!("{words} from {least} to {most}, such as {below} or {}", below * 2)
    };
    ruled(range, words, ("$comment", Value::text(words)), move |n| (!n.is_power_of_two()).then(|| such_as(n)))
}

/// A number of a range with a rule: `check` returns a description of valid numbers for one that breaks it.
fn ruled<'a, T: Count + 'a>(
    range: RangeInclusive<u64>,
    rule: &str,
    schema: (&'static str, Value),
    check: impl Fn(u64) -> Option<String> + 'a,
) -> Kind<'a, T> {
    let Kind { about, read, blank, .. } = whole::<T>(range);
    let About { mut expected, form, counted } = about();
    expected.push_str(&format!(", {rule}"));
    let form = match form {
        Form::Plain(known) => Form::Plain(known.into_iter().chain([schema]).collect()),
        other => other,
    };
    let expects = expected.clone();
    let about = move || About { expected: expects.clone(), form: form.clone(), counted };
    let read = move |found: &KeyValue| {
        let n = read(found).map_err(|_| found.unlike(&expected))?;
        check(n.into()).map_or(Ok(n), |right| Err(found.wrong(format!("is {}; it must be {right}", n.into()))))
    };
    Kind::new(about, read, |n| Value::whole((*n).into()), blank)
}

/// One of two numbers.
pub(crate) fn either<'a>(a: u32, b: u32) -> Kind<'a, u32> {
    let schema = [("enum", Value::list([a, b].map(Value::whole)))];
    let read = move |value: &Value| match value {
        Value::Integer(Some(n)) => u32::try_from(*n).ok().filter(|n| [a, b].contains(n)),
        _ => None,
    };
    Kind::plain(format!("{a} or {b}"), schema, read, |n| Value::whole(*n), move || a)
}

/// KiB that are a number of whole blocks within `range`; in blocks.
pub(crate) fn blocks_of_kib<'a, T: Count + 'a>(range: RangeInclusive<u64>) -> Kind<'a, T> {
    in_blocks(multiple(range.start() * 4..=range.end() * 4, 4))
}

/// KiB that are a power of two of blocks within `range`; in blocks.
pub(crate) fn power_of_two_blocks_of_kib<'a, T: Count + 'a>(range: RangeInclusive<u64>) -> Kind<'a, T> {
    in_blocks(power_of_two(range.start() * 4..=range.end() * 4))
}

/// MiB, at least one; `range` is in bytes.
pub(crate) fn bytes_of_mib<'a, T: Count + 'a>(range: RangeInclusive<u64>) -> Kind<'a, T> {
    let mib = range.start().div_ceil(1 << 20)..=range.end() >> 20;
    whole(mib).scaled(|mib| mib << 20, |bytes| bytes >> 20, " (counted in bytes)")
}

fn in_blocks<'a, T: Count + 'a>(kib: Kind<'a, u64>) -> Kind<'a, T> {
    kib.scaled(|kib| kib / 4, |blocks| blocks * 4, " (counted in blocks of 4 KiB)")
}

impl<'a> Kind<'a, u64> {
    /// Converts to the unit of the configuration (`there`), and to that of the file (`back`). `counted` names the
    /// unit in brackets.
    pub(crate) fn scaled<T: Count + 'a>(
        self,
        there: fn(u64) -> u64,
        back: fn(u64) -> u64,
        counted: &'static str,
    ) -> Kind<'a, T> {
        let Kind { about, read, blank, .. } = self;
        let fits = move |n| T::try_from(there(n)).unwrap_or_else(|_| unreachable!("the range fits the type"));
        let about = move || About { counted, ..about() };
        let write = move |n: &T| Value::whole(back((*n).into()));
        Kind::new(about, move |found| read(found).map(fits), write, move || fits(blank()))
    }
}

/// A decimal number in units of 10^-`places`, exactly; `show` prints a bound.
fn decimal<'a>(
    what: &'static str,
    places: usize,
    range: RangeInclusive<u64>,
    show: fn(u64) -> String,
) -> Kind<'a, u64> {
    let (least, most) = range.clone().into_inner();
    let number = move |n: u64| Value::number(n as f64 / 10u64.pow(places as u32) as f64);
    // 1 is the smallest value above 0.
    let (minimum, bounds) = match least {
        0 => (("minimum", number(0)), format!("at most {}", show(most))),
        1 => (("exclusiveMinimum", number(0)), format!("above 0 and at most {}", show(most))),
        _ => (("minimum", number(least)), format!("{} to {}", show(least), show(most))),
    };
    let schema = [("type", Value::text("number")), minimum, ("maximum", number(most))];
    let expected = if range == (0..=SECOND) { what.to_owned() } else { format!("{what}, {bounds}") };
    let text = |value: &Value| match value {
        Value::Integer(Some(n)) => Some(n.to_string()),
        Value::Float(text) => Some(text.clone()),
        _ => None,
    };
    let read = move |text: String| {
        let message = match fixed(&text, places) {
            Ok(n) if range.contains(&n) => return Ok(n),
            Ok(_) | Err(DecimalError::TooLarge) => format!("it must be {bounds}"),
            Err(DecimalError::Negative) => "it cannot be negative".into(),
            Err(DecimalError::TooPrecise) => format!("at most {places} decimals are possible"),
            Err(DecimalError::NotPlain) => "write it in plain digits, such as 13.0".into(),
        };
        Err(format!("is {text}; {message}"))
    };
    Kind::plain(expected, schema, text, |text| Value::text(text), String::new).parsed(read, move |n| number(*n))
}

const SECOND: u64 = Ns::from_secs(1).0;

fn time<'a>(kind: Kind<'a, u64>) -> Kind<'a, Ns> {
    let Kind { about, read, write, blank, .. } = kind;
    let (read, blank) = (Box::new(move |found: &KeyValue| read(found).map(Ns)), Box::new(move || Ns(blank())));
    Kind { about, read, write: Box::new(move |time: &Ns| write(&time.0)), blank, absent: None, quiet: false }
}

/// A time in microseconds, to the nanosecond; `range` is in ns.
pub(crate) fn us<'a>(range: RangeInclusive<u64>) -> Kind<'a, Ns> {
    time(decimal("a time in microseconds", 3, range, show_time))
}

/// A time in milliseconds, to the nanosecond; `range` is in ns.
pub(crate) fn ms<'a>(range: RangeInclusive<u64>) -> Kind<'a, Ns> {
    time(decimal("a time in milliseconds", 6, range, show_time))
}

fn show_time(ns: u64) -> String {
    let units = [("s", SECOND), ("ms", 1_000_000), ("us", 1_000)];
    let (unit, per) = units.into_iter().find(|(_, per)| ns.is_multiple_of(*per)).unwrap_or(("ns", 1));
    format!("{} {unit}", ns / per)
}

/// GiB with six decimals, in millionths.
pub(crate) fn gib<'a>(what: &'static str) -> Kind<'a, u64> {
    decimal(what, 6, 0..=8192 * 1_000_000, |n| format!("{} GiB", n / 1_000_000))
}
