// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables: a pass over the function that names their keys, which reads, writes or describes them.

use super::kind::{About, Form, Key, KeyValue, Kind, Row};
use super::kinds::constant;
use crate::error::{ConfigFileError, Result, nearest};
use crate::tree::{At, Node, Table, Value};
use std::sync::Arc;

/// A table that is being read.
struct Reading<'n> {
    node: &'n Node,
    table: &'n Table,
    path: &'n str,
}

impl Reading<'_> {
    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// An error at `key`, or at its nearest existing parent.
    fn error(&self, key: &str, message: impl Into<String>) -> ConfigFileError {
        self.node.locate(key).error(self.path_of(key), message)
    }

    fn key<T>(&self, key: &str, kind: Kind<T>) -> Result<T> {
        match (self.table.get(key), kind.absent) {
            (Some(entry), _) => (kind.read)(&KeyValue { node: &entry.node, path: self.path_of(key) }),
            (None, Some(absent)) => Ok(absent),
            (None, None) => Err(self.error(key, format!("is missing; expected {}", (kind.about)().expected))),
        }
    }

    /// Refuses keys that are not among `known`.
    fn check_names(&self, known: &[&str]) -> Result<()> {
        let unknown = self.table.iter().filter(|(key, _)| !known.contains(key));
        let Some((key, entry)) = unknown.min_by_key(|(_, e)| (e.key_at.line, e.key_at.column)) else { return Ok(()) };
        let message = match nearest(key, known.iter().copied()) {
            Some(near) => format!("is not a key; did you mean {near}?"),
            None => format!("is not a key; known here: {}", known.join(", ")),
        };
        Err(entry.key_at.error(self.path_of(key), message))
    }
}

enum Pass<'p, 'n> {
    Read(&'p Reading<'n>),
    Write(&'p mut Table),
    Describe { rows: &'p mut Vec<Row>, conditional: bool },
    Names(&'p mut Vec<&'static str>),
}

/// A pass over the keys of a table that becomes a `T`.
pub(crate) struct Keys<'p, 'n, T> {
    pass: Pass<'p, 'n>,
    /// The value being written.
    value: Option<&'p T>,
}

impl Pass<'_, '_> {
    /// A key, whose `value` is given where it is written. Once for each type of value, not for each key.
    fn key<V>(&mut self, key: Key, kind: Kind<V>, value: Option<V>) -> Result<V> {
        match self {
            Pass::Read(reading) => return reading.key(key.name, kind),
            Pass::Write(table) => {
                if let Some(value) = value {
                    let usual = kind.absent.as_ref().filter(|_| kind.quiet).and_then(&kind.write);
                    if let Some(written) = (kind.write)(&value).filter(|written| usual.as_ref() != Some(written)) {
                        table.push(key.name, At::outside(""), written);
                    }
                    return Ok(value);
                }
                return Ok((kind.blank)());
            }
            Pass::Describe { rows, conditional } => {
                let required = kind.absent.is_none() && !*conditional;
                let default = kind.absent.as_ref().and_then(&kind.write);
                rows.push(Row { key, about: (kind.about)().into(), required, default });
            }
            // Groups may share a key.
            Pass::Names(names) if names.contains(&key.name) => {}
            Pass::Names(names) => names.push(key.name),
        }
        Ok(kind.absent.unwrap_or_else(kind.blank))
    }
}

impl<T> Keys<'_, '_, T> {
    /// A key: `get` takes its value out of the value being written.
    pub(crate) fn key<V>(&mut self, key: Key, kind: Kind<V>, get: impl FnOnce(&T) -> V) -> Result<V> {
        let value = self.value.map(get);
        self.pass.key(key, kind, value)
    }

    /// Keys of the same table that are read if `given`; otherwise they are errors, if there is a reason.
    pub(crate) fn group<V>(
        &mut self,
        given: bool,
        otherwise: Option<&str>,
        get: impl FnOnce(&T) -> Option<V>,
        keys: impl Fn(&mut Keys<V>) -> Result<V>,
    ) -> Result<Option<V>> {
        let value = self.value.and_then(get);
        if let Some(why) = otherwise.filter(|_| !given) {
            self.refuse_keys(&names(&keys), why)?;
        }
        let pass = match &mut self.pass {
            Pass::Read(_) if !given => return Ok(None),
            Pass::Read(reading) => Pass::Read(reading),
            Pass::Write(_) if value.is_none() => return Ok(None),
            Pass::Write(table) => Pass::Write(table),
            Pass::Describe { rows, .. } => Pass::Describe { rows, conditional: true },
            Pass::Names(names) => Pass::Names(names),
        };
        keys(&mut Keys { pass, value: value.as_ref() }).map(Some)
    }

    /// The key `schema`, which every document has.
    pub(crate) fn schema(&mut self, schema: &'static str) -> Result<()> {
        self.key(SCHEMA, constant(schema), |_| ())
    }

    /// While a file is read: an error at a key, or at a longer path, if `wrong`.
    pub(crate) fn refuse(&self, wrong: bool, path: &str, message: impl Into<String>) -> Result<()> {
        match &self.pass {
            Pass::Read(reading) if wrong => Err(reading.error(path, message)),
            _ => Ok(()),
        }
    }

    /// [`Keys::refuse`] for each of these keys that exists.
    pub(crate) fn refuse_keys(&self, keys: &[&str], message: &str) -> Result<()> {
        keys.iter().try_for_each(|key| self.refuse(self.has(key), key, message))
    }

    /// Refuses the first table of the array `list` with a name used before; `earlier` describes the earlier one.
    pub(crate) fn refuse_same_names(&self, list: &str, earlier: &str, names: &[&str]) -> Result<()> {
        let mut twice = names.iter().enumerate().filter(|(i, name)| names[..*i].contains(name));
        twice.try_for_each(|(i, name)| {
            let message = format!("is {name:?}, as that of {earlier}; names must differ");
            self.refuse(true, &format!("{list}[{i}].name"), message)
        })
    }

    /// Whether a key, or a longer path, exists in the file being read.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.place(path).is_some()
    }

    /// Its place in that file.
    pub(crate) fn place(&self, path: &str) -> Option<At> {
        match &self.pass {
            Pass::Read(reading) => reading.node.find(path).map(|node| node.at.clone()),
            _ => None,
        }
    }
}

/// A table whose keys a function names. Only a reading pass may find errors in them.
pub(crate) fn table<'a, T: 'a>(keys: impl Fn(&mut Keys<T>) -> Result<T> + 'a) -> Kind<'a, T> {
    let keys = Arc::new(keys);
    let (described, read, written) = (keys.clone(), keys.clone(), keys.clone());
    let read = move |found: &KeyValue| {
        let Value::Table(table) = &found.node.value else { return Err(found.unlike("a table")) };
        let reading = Reading { node: found.node, table, path: &found.path };
        reading.check_names(&names(&*read))?;
        read(&mut Keys { pass: Pass::Read(&reading), value: None })
    };
    let write = move |value: &T| {
        let mut table = Table::default();
        pass_over(&*written, Pass::Write(&mut table), Some(value));
        Value::Table(table)
    };
    let about = move || About { expected: "a table".into(), form: Form::Table(describe(&*described)), counted: "" };
    Kind::new(about, read, write, move || pass_over(&*keys, Pass::Names(&mut Vec::new()), None))
}

fn pass_over<T>(keys: impl Fn(&mut Keys<T>) -> Result<T>, pass: Pass, value: Option<&T>) -> T {
    keys(&mut Keys { pass, value }).expect("only a file can be wrong")
}

/// Description of all keys of a table.
pub(crate) fn describe<T>(keys: impl Fn(&mut Keys<T>) -> Result<T>) -> Vec<Row> {
    let mut rows = Vec::new();
    pass_over(keys, Pass::Describe { rows: &mut rows, conditional: false }, None);
    rows
}

/// Names of the keys of a table.
pub(crate) fn names<T>(keys: impl Fn(&mut Keys<T>) -> Result<T>) -> Vec<&'static str> {
    let mut names = Vec::new();
    pass_over(keys, Pass::Names(&mut names), None);
    names
}

const SCHEMA: Key = Key::new("schema", "format and its version");

/// Reads a document of the kind `schema`.
pub(crate) fn read_document<T>(
    node: &Node,
    schema: &'static str,
    keys: impl Fn(&mut Keys<T>) -> Result<T>,
) -> Result<T> {
    // Before the keys: in another kind of file all keys would be unknown, which would hide the actual error.
    match node.find(SCHEMA.name) {
        Some(found) => (constant(schema).read)(&KeyValue { node: found, path: SCHEMA.name.into() })?,
        None => return Err(node.at.error(SCHEMA.name, "is missing; expected a text")),
    }
    read_table(&KeyValue { node, path: String::new() }, keys)
}

/// Reads a table that is not part of a document, or a whole document.
pub(crate) fn read_table<T>(found: &KeyValue, keys: impl Fn(&mut Keys<T>) -> Result<T>) -> Result<T> {
    (table(keys).read)(found)
}

pub(crate) fn write_document<T>(value: &T, keys: impl Fn(&mut Keys<T>) -> Result<T>) -> Value {
    let mut table = Table::default();
    pass_over(keys, Pass::Write(&mut table), Some(value));
    Value::Table(table)
}
