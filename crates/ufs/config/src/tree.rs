// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TOML document that keeps the place of every value.

use super::error::ConfigFileError;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::cell::Cell;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// A place in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct At {
    pub file: Arc<str>,
    pub line: usize,
    pub column: usize,
}

impl At {
    /// Not in a file: `origin` is the source, for errors.
    pub(crate) fn outside(origin: &str) -> At {
        At { file: origin.into(), line: 0, column: 0 }
    }

    pub(crate) fn error(&self, key: impl Into<String>, message: impl Into<String>) -> ConfigFileError {
        ConfigFileError {
            file: self.file.to_string(),
            line: self.line,
            column: self.column,
            key: key.into(),
            message: message.into(),
        }
    }
}

/// Keys with their values, in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Table(Vec<(String, Entry)>);

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, entry)| entry)
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.0.iter_mut().find(|(k, _)| k == key).map(|(_, entry)| entry)
    }

    /// Adds a key that does not exist yet.
    pub(crate) fn push(&mut self, key: &str, at: At, value: Value) {
        self.0.push((key.to_owned(), Entry { key_at: at.clone(), node: Node { at, value } }));
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.0.retain(|(k, _)| k != key);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(key, entry)| (key.as_str(), entry))
    }
}

/// A key with its value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Entry {
    pub key_at: At,
    pub node: Node,
}

/// A value and its place.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Node {
    pub at: At,
    pub value: Value,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    String(String),
    /// `None` = beyond 128 bits.
    Integer(Option<i128>),
    /// As written, so that decimals stay exact.
    Float(String),
    Boolean(bool),
    Datetime(String),
    Array(Vec<Node>),
    Table(Table),
}

impl Value {
    pub(crate) fn text(text: impl Into<String>) -> Value {
        Value::String(text.into())
    }

    pub(crate) fn whole(n: impl Into<i128>) -> Value {
        Value::Integer(Some(n.into()))
    }

    /// Printed in the shortest form that is read back exactly.
    pub(crate) fn number(x: f64) -> Value {
        Value::Float(x.to_string())
    }

    /// An array of values without places.
    pub(crate) fn list(values: impl IntoIterator<Item = Value>) -> Value {
        Value::Array(values.into_iter().map(Node::from).collect())
    }

    /// A table of values without places.
    pub(crate) fn table<'k>(values: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
        let mut table = Table::default();
        values.into_iter().for_each(|(key, value)| table.push(key, At::outside(""), value));
        Value::Table(table)
    }

    /// Description of the found value, for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Value::String(s) if s.chars().count() > 60 => "a long text".into(),
            Value::String(s) => format!("the text {s:?}"),
            Value::Integer(Some(n)) => n.to_string(),
            Value::Integer(None) => "a number beyond all bounds".into(),
            Value::Float(text) => text.clone(),
            Value::Boolean(b) => b.to_string(),
            Value::Datetime(text) => format!("the date or time {text}"),
            Value::Array(_) => "an array".into(),
            Value::Table(_) => "a table".into(),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::String(text) | Value::Datetime(text) => s.serialize_str(text),
            Value::Integer(n) => match n.map(|n| (i64::try_from(n), u64::try_from(n))) {
                Some((Ok(n), _)) => s.serialize_i64(n),
                Some((_, Ok(n))) => s.serialize_u64(n),
                _ => s.serialize_str(&self.describe()),
            },
            Value::Float(text) => match text.parse::<f64>() {
                Ok(x) if x.is_finite() => s.serialize_f64(x),
                _ => s.serialize_str(text),
            },
            Value::Boolean(b) => s.serialize_bool(*b),
            Value::Array(nodes) => s.collect_seq(nodes.iter().map(|n| &n.value)),
            Value::Table(table) => {
                let mut map = s.serialize_map(Some(table.0.len()))?;
                for (key, entry) in table.iter() {
                    map.serialize_entry(key, &entry.node.value)?;
                }
                map.end()
            }
        }
    }
}

/// Converts offsets in a text to lines and columns.
struct Lines<'a> {
    file: Arc<str>,
    text: &'a str,
    starts: Vec<usize>,
    /// The last place that was converted, and the characters before it on its line: the next is likely behind it, and
    /// a line may be long.
    last: Cell<(usize, usize)>,
}

impl<'a> Lines<'a> {
    fn new(file: &str, text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Lines { file: file.into(), text, starts, last: Cell::new((0, 0)) }
    }

    fn at(&self, offset: usize) -> At {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|s| *s <= offset);
        let start = self.starts[line - 1];
        let (from, before) = match self.last.get() {
            (last, before) if (start..=offset).contains(&last) => (last, before),
            _ => (start, 0),
        };
        // Bytes that begin a character.
        let begins = |byte: &&u8| **byte & 0xC0 != 0x80;
        let characters = before + self.text.as_bytes()[from..offset].iter().filter(begins).count();
        self.last.set((offset, characters));
        At { file: self.file.clone(), line, column: characters + 1 }
    }

    fn syntax_error(&self, e: &toml::de::Error) -> ConfigFileError {
        let span = e.span().unwrap_or(0..0);
        let key = self.text.get(span.clone()).unwrap_or_default().trim();
        if e.message().contains("duplicate key") {
            return self.at(span.start).error(key, "is given twice in this table; keep one of the two");
        }
        self.at(span.start).error("", format!("this is not TOML: {}", e.message()))
    }

    fn node(&self, value: DeValue, at: At) -> Node {
        let value = match value {
            DeValue::String(s) => Value::String(s.into_owned()),
            DeValue::Integer(n) => Value::Integer(i128::from_str_radix(n.as_str(), n.radix()).ok()),
            DeValue::Float(x) => Value::Float(x.as_str().to_owned()),
            DeValue::Boolean(b) => Value::Boolean(b),
            DeValue::Datetime(d) => Value::Datetime(d.to_string()),
            DeValue::Array(array) => {
                let nodes = array.into_iter().map(|v| (self.at(v.span().start), v.into_inner()));
                Value::Array(nodes.map(|(at, v)| self.node(v, at)).collect())
            }
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Node { at, value }
    }

    fn table(&self, table: DeTable) -> Table {
        let entry = |(key, value): (toml::Spanned<_>, toml::Spanned<DeValue>)| {
            let key_at = self.at(key.span().start);
            // The span of a table is that of its header; one implied by dotted keys has none.
            let start = value.span().start;
            let at = if value.span().is_empty() { key_at.clone() } else { self.at(start) };
            let key: std::borrow::Cow<str> = key.into_inner();
            (key.into_owned(), Entry { key_at, node: self.node(value.into_inner(), at) })
        };
        Table(table.into_iter().map(entry).collect())
    }
}

/// Reads a document; the root is a table.
pub(crate) fn parse_document(text: &str, file: &str) -> Result<Node, ConfigFileError> {
    let lines = Lines::new(file, text);
    let table = DeTable::parse(text).map_err(|e| lines.syntax_error(&e))?;
    Ok(Node { at: lines.at(0), value: Value::Table(lines.table(table.into_inner())) })
}

/// Reads a single value. A bare word is a text, because quotes would have to be escaped on a command line.
pub(crate) fn parse_value(text: &str, at: &At) -> Result<Value, String> {
    let bare = |c: char| c.is_alphanumeric() || "-_./+".contains(c);
    match DeValue::parse(text) {
        Ok(value) => {
            let mut node = Lines::new(&at.file, text).node(value.into_inner(), at.clone());
            node.move_to(at);
            Ok(node.value)
        }
        Err(_) if !text.is_empty() && text.chars().all(bare) => Ok(Value::String(text.to_owned())),
        Err(e) => Err(e.message().to_owned()),
    }
}

/// A step of a dotted path.
enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

/// Splits `lu[0].blocks` into steps; `lu.0.blocks` is equivalent.
fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (name, indices) = part.split_once('[').map_or((part, None), |(n, rest)| (n, Some(rest)));
        match name.parse() {
            Ok(i) => steps.push(Step::Index(i)),
            Err(_) if name.is_empty() => return None,
            Err(_) => steps.push(Step::Key(name)),
        }
        if let Some(indices) = indices {
            for index in indices.strip_suffix(']')?.split("][") {
                steps.push(Step::Index(index.parse().ok()?));
            }
        }
    }
    Some(steps)
}

impl From<Value> for Node {
    /// A value without a place.
    fn from(value: Value) -> Node {
        Node { at: At::outside(""), value }
    }
}

impl Node {
    fn move_to(&mut self, at: &At) {
        self.at = at.clone();
        match &mut self.value {
            Value::Array(nodes) => nodes.iter_mut().for_each(|n| n.move_to(at)),
            Value::Table(table) => table.0.iter_mut().for_each(|(_, e)| {
                e.key_at = at.clone();
                e.node.move_to(at);
            }),
            _ => {}
        }
    }

    /// The place of `path`, or of its longest existing part.
    pub(crate) fn locate(&self, path: &str) -> At {
        let mut node = self;
        for step in steps(path).unwrap_or_default() {
            match node.child(&step) {
                Some(child) => node = child,
                None => break,
            }
        }
        node.at.clone()
    }

    /// Whether `path` exists.
    pub(crate) fn contains(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    /// The node at `path`.
    pub(crate) fn find(&self, path: &str) -> Option<&Node> {
        steps(path)?.iter().try_fold(self, |node, step| node.child(step))
    }

    fn child(&self, step: &Step) -> Option<&Node> {
        match (&self.value, step) {
            (Value::Table(t), Step::Key(k)) => t.get(k).map(|e| &e.node),
            (Value::Array(a), Step::Index(i)) => a.get(*i),
            _ => None,
        }
    }

    fn child_mut(&mut self, step: &Step) -> Option<&mut Node> {
        match (&mut self.value, step) {
            (Value::Table(t), Step::Key(k)) => t.get_mut(k).map(|e| &mut e.node),
            (Value::Array(a), Step::Index(i)) => a.get_mut(*i),
            _ => None,
        }
    }

    /// Sets the value at `path`, creating the tables above it.
    pub(crate) fn set(&mut self, path: &str, value: Value, at: &At) -> Result<(), String> {
        let steps = steps(path).ok_or("is not a path of keys such as map_cache.size_kib or lu[0].blocks")?;
        let mut node = self;
        for step in steps {
            let what = node.value.describe();
            node = match (&mut node.value, step) {
                (Value::Table(table), Step::Key(key)) => {
                    let at_key = table.0.iter().position(|(k, _)| k == key).unwrap_or_else(|| {
                        table.push(key, at.clone(), Value::Table(Table::default()));
                        table.0.len() - 1
                    });
                    &mut table.0[at_key].1.node
                }
                (Value::Array(nodes), Step::Index(i)) => {
                    let n = nodes.len();
                    nodes.get_mut(i).ok_or_else(|| format!("has no element {i}: there are {n}, counted from 0"))?
                }
                (_, Step::Key(key)) => return Err(format!("has no key \"{key}\" in what is {what}")),
                (_, Step::Index(i)) => return Err(format!("has no element {i} in what is {what}")),
            };
        }
        *node = Node { at: at.clone(), value };
        Ok(())
    }

    /// Removes the key `name` from the table of `path`'s last key.
    pub(crate) fn remove_beside(&mut self, path: &str, name: &str) {
        let mut steps = steps(path).unwrap_or_default();
        steps.pop();
        let table = steps.iter().try_fold(self, |node, step| node.child_mut(step));
        if let Some(Node { value: Value::Table(table), .. }) = table {
            table.0.retain(|(key, _)| key != name);
        }
    }
}
