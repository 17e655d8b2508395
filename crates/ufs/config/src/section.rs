// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of a file while it is read: typed values, and an error with line and key for everything that is not as
//! expected. It knows no particular key.

use super::decimal::{DecimalError, fixed};
use super::error::{ConfigFileError, nearest};
use super::size::size;
use super::tree::{At, Node, Table, Value};
use readpath_kit::{BLOCK_BYTES, Ns};
use std::ops::RangeInclusive;

type Result<T> = std::result::Result<T, ConfigFileError>;

/// A table whose keys are all known.
pub(crate) struct Section<'a> {
    node: &'a Node,
    table: &'a Table,
    path: String,
}

impl<'a> Section<'a> {
    /// A document of the kind `schema`, whose keys are among `known`.
    pub fn document(node: &'a Node, schema: &str, known: &[&str]) -> Result<Self> {
        let Value::Table(table) = &node.value else {
            return Err(node.at.error("", "a document is a table"));
        };
        // Before the keys: those of another kind of file are all unknown, and that is not what is wrong.
        let section = Section { node, table, path: String::new() };
        let found = section.string("schema")?;
        if found != schema {
            return Err(section.error("schema", format!("is {found:?}; this program reads {schema:?} here")));
        }
        Section::open(node, String::new(), known)
    }

    /// A table whose keys are among `known`; `path` is where it stands.
    pub fn open(node: &'a Node, path: String, known: &[&str]) -> Result<Self> {
        let Value::Table(table) = &node.value else {
            return Err(node.at.error(path, format!("is {}; a table is expected", node.value.describe())));
        };
        let section = Section { node, table, path };
        let unknown = table.iter().filter(|(key, _)| !known.contains(&key.as_str()));
        if let Some((key, entry)) = unknown.min_by_key(|(_, e)| (e.key_at.line, e.key_at.column)) {
            let message = match nearest(key, known.iter().copied()) {
                Some(near) => format!("is not a key; did you mean {near}?"),
                None => format!("is not a key; known here: {}", known.join(", ")),
            };
            return Err(entry.key_at.error(section.key(key), message));
        }
        Ok(section)
    }

    /// The full path of a key of this table.
    pub fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// An error at the value of `key`, or at the table when the key is not there.
    pub fn error(&self, key: &str, message: impl Into<String>) -> ConfigFileError {
        self.table.get(key).map_or(&self.node.at, |e| &e.node.at).error(self.key(key), message)
    }

    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Where the value of a key stands, if it is there.
    pub fn place_of(&self, key: &str) -> Option<At> {
        self.table.get(key).map(|entry| entry.node.at.clone())
    }

    pub fn keys(&self) -> impl Iterator<Item = (&'a str, &'a Node)> {
        self.table.iter().map(|(key, entry)| (key.as_str(), &entry.node))
    }

    fn need(&self, key: &str, expected: &str) -> Result<&'a Node> {
        let node = self.table.get(key).map(|e| &e.node);
        node.ok_or_else(|| self.error(key, format!("is missing; expected {expected}")))
    }

    fn wrong(&self, key: &str, found: &Value, expected: &str) -> ConfigFileError {
        self.error(key, format!("is {}; expected {expected}", found.describe()))
    }

    pub fn string(&self, key: &str) -> Result<&'a str> {
        match &self.need(key, "a text")?.value {
            Value::String(s) => Ok(s),
            other => Err(self.wrong(key, other, "a text")),
        }
    }

    /// A text that names something: one line, at least a character, every one of them accepted by `allowed`.
    pub fn name(&self, key: &str, what: &str, allowed: fn(char) -> bool) -> Result<String> {
        let name = self.string(key)?;
        if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
            return Err(self.error(key, format!("is {name:?}; expected 1 to 64 characters: {what}")));
        }
        Ok(name.to_owned())
    }

    /// One of a few words.
    pub fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<T> {
        let all: Vec<String> = words.iter().map(|(w, _)| format!("{w:?}")).collect();
        let expected = all.join(" or ");
        match &self.need(key, &expected)?.value {
            Value::String(s) => words.iter().find(|(w, _)| w == s).map(|(_, t)| *t).ok_or_else(|| {
                let near = nearest(s, words.iter().map(|(w, _)| *w));
                let hint = near.map(|n| format!("; did you mean {n:?}?")).unwrap_or_default();
                self.error(key, format!("is {s:?}; expected {expected}{hint}"))
            }),
            other => Err(self.wrong(key, other, &expected)),
        }
    }

    pub fn flag(&self, key: &str) -> Result<bool> {
        match &self.need(key, "true or false")?.value {
            Value::Boolean(b) => Ok(*b),
            other => Err(self.wrong(key, other, "true or false")),
        }
    }

    pub fn flag_or(&self, key: &str, default: bool) -> Result<bool> {
        if self.has(key) { self.flag(key) } else { Ok(default) }
    }

    /// A whole number within a range.
    pub fn integer<T: TryFrom<u64>>(&self, key: &str, range: RangeInclusive<u64>) -> Result<T> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let value = &self.need(key, &expected)?.value;
        let number = match value {
            Value::Integer(Some(n)) => u64::try_from(*n).ok().filter(|n| range.contains(n)),
            _ => None,
        };
        number.and_then(|n| T::try_from(n).ok()).ok_or_else(|| self.wrong(key, value, &expected))
    }

    /// A whole number that the type can hold; its bounds are checked elsewhere.
    pub fn any_u32(&self, key: &str) -> Result<u32> {
        self.integer(key, 0..=u64::from(u32::MAX))
    }

    /// KiB that have to be whole blocks, at least one and at most `most` of them; in blocks.
    pub fn blocks_of_kib(&self, key: &str, most: u64) -> Result<u32> {
        let block_kib = u64::from(BLOCK_BYTES >> 10);
        let kib: u64 = self.integer(key, block_kib..=most * block_kib)?;
        if !kib.is_multiple_of(block_kib) {
            return Err(self.error(key, format!("is {kib}; it must be a multiple of {block_kib} (blocks of 4 KiB)")));
        }
        Ok((kib / block_kib) as u32)
    }

    /// A decimal number in units of 10^-`places`, at most `most` of them.
    pub fn decimal(&self, key: &str, places: usize, most: u64, what: &str) -> Result<u64> {
        let value = &self.need(key, what)?.value;
        let text = match value {
            Value::Integer(Some(n)) => n.to_string(),
            Value::Float(text) => text.clone(),
            other => return Err(self.wrong(key, other, what)),
        };
        let bound = most / 10u64.pow(places as u32);
        match fixed(&text, places) {
            Ok(n) if n <= most => Ok(n),
            Ok(_) | Err(DecimalError::TooLarge) => {
                Err(self.error(key, format!("is {text}; at most {bound} is possible")))
            }
            Err(DecimalError::Negative) => Err(self.error(key, format!("is {text}; it cannot be negative"))),
            Err(DecimalError::TooPrecise) => {
                Err(self.error(key, format!("is {text}; at most {places} decimals are possible")))
            }
            Err(DecimalError::NotPlain) => {
                Err(self.error(key, format!("is {text}; write it in plain digits, such as 13.0")))
            }
        }
    }

    /// A size in bytes: a number of them, or a text such as `512K`.
    pub fn size(&self, key: &str) -> Result<u64> {
        match &self.need(key, "a size")?.value {
            Value::String(text) => size(text).map_err(|e| self.error(key, e)),
            Value::Integer(_) => self.integer(key, 1..=1 << 40),
            other => Err(self.wrong(key, other, "a size such as 262144 or \"256K\"")),
        }
    }

    /// A size of memory under one of two names: in whole MiB, or as [`Section::size`].
    pub fn memory(&self, in_mib: &str, in_bytes: &str) -> Result<Option<u64>> {
        match (self.has(in_mib), self.has(in_bytes)) {
            (true, true) => Err(self.error(in_bytes, format!("is what {in_mib} says too; keep one of them"))),
            (true, false) => Ok(Some(self.integer::<u64>(in_mib, 1..=1 << 20)? << 20)),
            (false, true) => self.size(in_bytes).map(Some),
            (false, false) => Ok(None),
        }
    }

    /// A time in microseconds, to the nanosecond; up to 1000 s, tighter bounds are checked elsewhere.
    pub fn us(&self, key: &str) -> Result<Ns> {
        self.decimal(key, 3, Ns::from_secs(1000).0, "a time in microseconds").map(Ns)
    }

    /// A time in milliseconds, to the nanosecond; up to 1000 s.
    pub fn ms(&self, key: &str) -> Result<Ns> {
        self.decimal(key, 6, Ns::from_secs(1000).0, "a time in milliseconds").map(Ns)
    }

    /// Any finite number.
    pub fn number(&self, key: &str) -> Result<f64> {
        let value = &self.need(key, "a number")?.value;
        finite(value).ok_or_else(|| self.wrong(key, value, "a finite number"))
    }

    /// An array of finite numbers.
    pub fn numbers(&self, key: &str) -> Result<Vec<f64>> {
        let number = |(i, node): (usize, &Node)| {
            finite(&node.value).ok_or_else(|| {
                let message = format!("is {}; expected a finite number", node.value.describe());
                node.at.error(format!("{}[{i}]", self.key(key)), message)
            })
        };
        self.array(key, "an array of numbers")?.iter().enumerate().map(number).collect()
    }

    fn array(&self, key: &str, expected: &str) -> Result<&'a [Node]> {
        match &self.need(key, expected)?.value {
            Value::Array(nodes) => Ok(nodes),
            other => Err(self.wrong(key, other, expected)),
        }
    }

    pub fn strings(&self, key: &str) -> Result<Vec<String>> {
        let text = |(i, node): (usize, &Node)| match &node.value {
            Value::String(s) => Ok(s.clone()),
            v => Err(node.at.error(format!("{}[{i}]", self.key(key)), format!("is {}; expected a text", v.describe()))),
        };
        self.array(key, "an array of texts")?.iter().enumerate().map(text).collect()
    }

    pub fn section(&self, key: &str, known: &[&str]) -> Result<Section<'a>> {
        Section::open(self.need(key, "a table")?, self.key(key), known)
    }

    pub fn optional(&self, key: &str, known: &[&str]) -> Result<Option<Section<'a>>> {
        if self.has(key) { self.section(key, known).map(Some) } else { Ok(None) }
    }

    /// A table whose keys are the user's.
    pub fn open_table(&self, key: &str) -> Result<Section<'a>> {
        let node = self.need(key, "a table")?;
        match &node.value {
            Value::Table(table) => Ok(Section { node, table, path: self.key(key) }),
            other => Err(self.wrong(key, other, "a table")),
        }
    }

    /// An array of tables.
    pub fn sections(&self, key: &str, known: &[&str]) -> Result<Vec<Section<'a>>> {
        let nodes = self.array(key, "an array of tables")?.iter().enumerate();
        nodes.map(|(i, node)| Section::open(node, format!("{}[{i}]", self.key(key)), known)).collect()
    }
}

fn finite(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(Some(n)) => Some(*n as f64),
        Value::Float(text) => text.replace('_', "").parse().ok().filter(|x: &f64| x.is_finite()),
        _ => None,
    }
}
