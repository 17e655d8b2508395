// SPDX-License-Identifier: MIT OR Apache-2.0
//! Factors of a study: keys, and the levels that they take together. It does not interpret keys or designs.

use super::point::OWN;
use crate::error::Result;
use crate::keys::{Digits, Key, Keys, any, digits, filled, list, whole, words};
use crate::tree::{At, Node, Value, parse_value};
use serde::Serialize;
use std::fmt;

/// The most levels of a factor.
const MOST_LEVELS: u64 = 1 << 20;
/// Whole numbers up to this are exact.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// The value of a key in TOML, or as a bare word.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Setting(String);

impl Setting {
    pub(crate) fn of(value: &Value) -> Setting {
        let nowhere = At::outside("");
        match value {
            // A word that reads as itself needs no quotes.
            Value::String(text) if parse_value(text, &nowhere).as_ref() == Ok(value) => Setting(text.clone()),
            value => {
                let mut text = String::new();
                let whole = value.serialize(toml::ser::ValueSerializer::new(&mut text)).is_ok();
                debug_assert!(whole, "what came from TOML is TOML");
                Setting(text)
            }
        }
    }

    /// A number with at most `decimals` decimals.
    fn number(x: f64, decimals: usize) -> Setting {
        let mut text = format!("{x:.decimals$}");
        if text.contains('.') {
            text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        }
        Setting(if text == "-0" { "0".into() } else { text })
    }

    /// The value in TOML, or as a bare word.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The value; a text without its quotes.
    pub fn plain(&self) -> String {
        match parse_value(&self.0, &At::outside("")) {
            Ok(Value::String(text)) => text,
            _ => self.0.clone(),
        }
    }

    /// The value, if it is a number.
    pub fn as_number(&self) -> Option<f64> {
        self.0.replace('_', "").parse().ok().filter(|x: &f64| x.is_finite())
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Division of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Equal steps.
    Linear,
    /// Equal ratios.
    Log,
}

/// A difference between points: one key, or several that change together.
#[derive(Clone, PartialEq, Debug)]
pub struct Factor {
    /// The keys.
    pub keys: Vec<String>,
    /// Their values.
    pub levels: Levels,
}

/// Values of the keys of a factor.
#[derive(Clone, PartialEq, Debug)]
pub enum Levels {
    /// A value for each key, level by level.
    Listed(Vec<Vec<Setting>>),
    /// Numbers of a range, for a single key.
    Range {
        /// The least.
        from: f64,
        /// The greatest.
        to: f64,
        /// Division of the range.
        scale: Scale,
        /// Values are multiples of this.
        multiple_of: f64,
        /// Decimals of the multiples.
        decimals: usize,
        /// Levels, if the design does not choose them.
        steps: Option<u32>,
    },
}

impl Factor {
    /// Levels of a crossed factor.
    pub fn steps(&self) -> u64 {
        match &self.levels {
            Levels::Listed(levels) => levels.len() as u64,
            Levels::Range { steps, .. } => u64::from(steps.unwrap_or(1)),
        }
    }

    pub(super) fn range_steps(&self) -> (bool, bool) {
        match &self.levels {
            Levels::Listed(_) => (false, false),
            Levels::Range { steps, .. } => (steps.is_some(), true),
        }
    }

    /// Whether one of its keys may name input files.
    pub fn names_files(&self) -> bool {
        let first = |key: &String| key.split(['.', '[']).next().unwrap_or_default().to_owned();
        self.keys.iter().any(|key| OWN.contains(&first(key).as_str()))
    }

    /// A level of a crossed factor, below [`Factor::steps`].
    pub fn level(&self, level: u64) -> Vec<Setting> {
        match &self.levels {
            Levels::Listed(levels) => levels[level as usize].clone(),
            Levels::Range { steps, .. } => {
                let last = steps.unwrap_or(1).saturating_sub(1);
                self.at(if last == 0 { 0.0 } else { level as f64 / f64::from(last) })
            }
        }
    }

    /// The value at a position of the range, from 0 to 1; listed levels share the range equally.
    pub fn at(&self, place: f64) -> Vec<Setting> {
        match &self.levels {
            Levels::Listed(levels) => {
                let level = (place * levels.len() as f64) as usize;
                levels[level.min(levels.len() - 1)].clone()
            }
            &Levels::Range { from, to, scale, multiple_of, decimals, .. } => {
                let exact = match scale {
                    Scale::Linear => from + place * (to - from),
                    Scale::Log => from * libm::exp(place * libm::log(to / from)),
                };
                let rounded = (exact / multiple_of).round() * multiple_of;
                vec![Setting::number(rounded.clamp(from, to), decimals)]
            }
        }
    }
}

/// `[[factor]]`.
pub(super) fn factor(k: &mut Keys<Factor>) -> Result<Factor> {
    let one = |factor: &Factor| Some(factor.keys[0].clone()).filter(|_| factor.keys.len() == 1);
    let key = k.key(Key::new("key", "the key that is varied"), filled().optional(), one)?;
    let several = |factor: &Factor| Some(factor.keys.clone()).filter(|keys| keys.len() > 1);
    let together = Key::new("keys", "or several keys that change together");
    let keys = k.key(together, list(filled(), "an array of texts").optional(), several)?;
    k.refuse(key.is_some() && keys.is_some(), "keys", "is said by key too; give one of the two")?;
    let neither = key.is_none() && keys.as_ref().is_none_or(Vec::is_empty);
    k.refuse(neither, "key", "is missing; expected the key that is varied, such as \"map_cache.size_kib\"")?;
    let is_zip = keys.is_some();
    let keys = keys.unwrap_or_else(|| key.into_iter().collect());
    let twice = keys.iter().enumerate().find(|(i, key)| keys[..*i].contains(key));
    k.refuse(twice.is_some(), "keys", format!("has {:?} twice", twice.map_or("", |(_, key)| key)))?;

    let nothing = |_: &Factor| None;
    let listed = "levels: a value each, or with `keys` an array with a value for each key; or a range";
    let values = k.key(Key::new("values", listed), list(any(), "an array of levels").optional(), nothing)?;
    let from = k.key(Key::new("from", "least value of a range"), digits().optional(), |_| None)?;
    let to = k.key(Key::new("to", "greatest value of it"), digits().optional(), |_| None)?;
    let steps = Key::new("steps", "levels of the range, both ends included, for the design `cross`");
    let steps = k.key(steps, whole::<u32>(1..=MOST_LEVELS).optional(), |_| None)?;
    let scale = Key::new("scale", "steps of the range: `linear`, or `log` for equal ratios");
    let scale =
        k.key(scale, words([("linear", Scale::Linear), ("log", Scale::Log)]).or(Scale::Linear), |_| Scale::Linear)?;
    let of = "values of the range are rounded to multiples of this: by default 1 if both ends are whole numbers, else \
        0.001";
    let multiple_of = k.key(Key::new("multiple_of", of), digits().optional(), |_| None)?;

    let levels = match values {
        Some(values) => {
            k.refuse_keys(
                &["from", "to", "steps", "scale", "multiple_of"],
                "belongs to a range, but there are values",
            )?;
            Levels::Listed(list_of(k, &keys, is_zip, &values)?)
        }
        None => {
            k.refuse(is_zip, "values", "is missing: keys that change together need listed levels")?;
            let missing = "is missing; expected values, or a range with from and to";
            k.refuse(from.is_none() && to.is_none(), "values", missing)?;
            k.refuse(from.is_none(), "from", "is missing; a range has from and to")?;
            k.refuse(to.is_none(), "to", "is missing; a range has from and to")?;
            range(k, from.unwrap_or_default(), to.unwrap_or_default(), steps, scale, multiple_of)?
        }
    };
    Ok(Factor { keys, levels })
}

fn list_of(k: &Keys<Factor>, keys: &[String], is_zip: bool, values: &[Node]) -> Result<Vec<Vec<Setting>>> {
    k.refuse(values.is_empty(), "values", "is empty; at least one level is needed")?;
    let mut levels: Vec<Vec<Setting>> = Vec::with_capacity(values.len());
    for (i, node) in values.iter().enumerate() {
        let at = format!("values[{i}]");
        let level = match (&node.value, is_zip) {
            (Value::Array(each), true) if each.len() == keys.len() => {
                each.iter().map(|one| Setting::of(&one.value)).collect()
            }
            (other, true) => {
                let found = match other {
                    Value::Array(values) => format!("an array of {}", values.len()),
                    other => other.describe(),
                };
                let message = format!("is {found}; expected an array of {} values, one for each key", keys.len());
                k.refuse(true, &at, message)?;
                Vec::new()
            }
            (value, false) => vec![Setting::of(value)],
        };
        levels.push(level);
    }
    let mut sorted: Vec<(Vec<&str>, usize)> =
        levels.iter().enumerate().map(|(i, level)| (level.iter().map(Setting::text).collect(), i)).collect();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        k.refuse(true, &format!("values[{}]", pair[1].1), "stands there twice; levels must differ")?;
    }
    Ok(levels)
}

fn range(
    k: &Keys<Factor>,
    from: Digits,
    to: Digits,
    steps: Option<u32>,
    scale: Scale,
    multiple_of: Option<Digits>,
) -> Result<Levels> {
    let message = format!("is {}, which is not above from, {}: the range is empty", to.value, from.value);
    k.refuse(to.value <= from.value, "to", message)?;
    let message = format!("is {}; a range in equal ratios begins above 0", from.value);
    k.refuse(scale == Scale::Log && from.value <= 0.0, "from", message)?;
    let whole = from.decimals == 0 && to.decimals == 0;
    let usual = if whole { Digits { value: 1.0, decimals: 0 } } else { Digits { value: 0.001, decimals: 3 } };
    let multiple = multiple_of.unwrap_or(usual);
    k.refuse(multiple.value <= 0.0, "multiple_of", format!("is {}; it must be above 0", multiple.value))?;
    for (key, end) in [("from", from), ("to", to)] {
        let multiples = end.value / multiple.value;
        let message = format!("is {}, no multiple of {}; give multiple_of, or another end", end.value, multiple.value);
        k.refuse((multiples - multiples.round()).abs() > 1e-6, key, message)?;
        let message = format!("is {}; a range ends within 2^53, up to which numbers are exact", end.value);
        k.refuse(end.value.abs() > MOST_EXACT, key, message)?;
    }
    let levels = Levels::Range {
        from: from.value,
        to: to.value,
        scale,
        multiple_of: multiple.value,
        decimals: multiple.decimals.max(from.decimals).max(to.decimals),
        steps,
    };
    if let Some(steps) = steps {
        k.refuse(steps == 1, "steps", "is 1; a range has at least its two ends")?;
        let factor = Factor { keys: vec![String::new()], levels: levels.clone() };
        // Levels ascend, so equal ones are neighbours.
        let (mut before, mut twice) = (factor.level(0), None);
        for level in 1..u64::from(steps) {
            let this = factor.level(level);
            if this == before {
                twice = Some(this);
                break;
            }
            before = this;
        }
        let value = twice.iter().flatten().next().map_or("", Setting::text);
        let message = format!("is {steps}, which gives the level {value} twice; fewer steps, or a smaller multiple_of");
        k.refuse(twice.is_some(), "steps", message)?;
    }
    Ok(levels)
}
