// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TOML document whose values know where they stood. It knows no key and no meaning.

use super::error::ConfigFileError;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Where something stood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct At {
    pub file: Arc<str>,
    pub line: usize,
    pub column: usize,
}

impl At {
    pub fn error(&self, key: impl Into<String>, message: impl Into<String>) -> ConfigFileError {
        ConfigFileError {
            file: self.file.to_string(),
            line: self.line,
            column: self.column,
            key: key.into(),
            message: message.into(),
        }
    }
}

pub(crate) type Table = BTreeMap<String, Entry>;

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key_at: At,
    pub node: Node,
}

/// A value and where it stood.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub at: At,
    pub value: Value,
}

#[derive(Clone, Debug)]
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
    /// For messages: what was found instead of what was expected.
    pub fn describe(&self) -> String {
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
            Value::Integer(n) => match n.map(i64::try_from) {
                Some(Ok(n)) => s.serialize_i64(n),
                _ => s.serialize_str(&self.describe()),
            },
            Value::Float(text) => match text.parse::<f64>() {
                Ok(x) if x.is_finite() => s.serialize_f64(x),
                _ => s.serialize_str(text),
            },
            Value::Boolean(b) => s.serialize_bool(*b),
            Value::Array(nodes) => s.collect_seq(nodes.iter().map(|n| &n.value)),
            Value::Table(table) => {
                let mut map = s.serialize_map(Some(table.len()))?;
                for (key, entry) in table {
                    map.serialize_entry(key, &entry.node.value)?;
                }
                map.end()
            }
        }
    }
}

/// Offsets of a text to lines and columns.
struct Lines<'a> {
    file: Arc<str>,
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(file: &str, text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Lines { file: file.into(), text, starts }
    }

    fn at(&self, offset: usize) -> At {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|s| *s <= offset);
        let bytes = &self.text.as_bytes()[self.starts[line - 1]..offset];
        At { file: self.file.clone(), line, column: String::from_utf8_lossy(bytes).chars().count() + 1 }
    }

    fn syntax_error(&self, e: &toml::de::Error) -> ConfigFileError {
        let span = e.span().unwrap_or(0..0);
        let key = self.text.get(span.clone()).unwrap_or_default().trim();
        if e.message().contains("duplicate key") {
            return self.at(span.start).error(key, "stands twice in this table; keep one of the two");
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
            // The span of a table is that of its header; one that is only implied by dotted keys has none.
            let start = value.span().start;
            let at = if value.span().is_empty() { key_at.clone() } else { self.at(start) };
            let key: std::borrow::Cow<str> = key.into_inner();
            (key.into_owned(), Entry { key_at, node: self.node(value.into_inner(), at) })
        };
        table.into_iter().map(entry).collect()
    }
}

/// Reads a document; the root is a table.
pub(crate) fn parse_document(text: &str, file: &str) -> Result<Node, ConfigFileError> {
    let lines = Lines::new(file, text);
    let table = DeTable::parse(text).map_err(|e| lines.syntax_error(&e))?;
    Ok(Node { at: lines.at(0), value: Value::Table(lines.table(table.into_inner())) })
}

/// Reads a single value. A bare word is a text, as nobody wants to quote quotes on a command line.
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

/// Takes `lu[0].blocks` apart; `lu.0.blocks` is the same.
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

impl Node {
    fn move_to(&mut self, at: &At) {
        self.at = at.clone();
        match &mut self.value {
            Value::Array(nodes) => nodes.iter_mut().for_each(|n| n.move_to(at)),
            Value::Table(table) => table.values_mut().for_each(|e| {
                e.key_at = at.clone();
                e.node.move_to(at);
            }),
            _ => {}
        }
    }

    /// Where `path` stands, or as much of it as there is.
    pub fn locate(&self, path: &str) -> At {
        let mut node = self;
        for step in steps(path).unwrap_or_default() {
            match node.child(&step) {
                Some(child) => node = child,
                None => break,
            }
        }
        node.at.clone()
    }

    /// Whether `path` stands here.
    pub fn contains(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    /// What stands at `path`.
    pub fn find(&self, path: &str) -> Option<&Node> {
        steps(path)?.iter().try_fold(self, |node, step| node.child(step))
    }

    fn child(&self, step: &Step) -> Option<&Node> {
        match (&self.value, step) {
            (Value::Table(t), Step::Key(k)) => t.get(*k).map(|e| &e.node),
            (Value::Array(a), Step::Index(i)) => a.get(*i),
            _ => None,
        }
    }

    /// Puts a value at `path`, making tables on the way, as if it had stood in the document.
    pub fn set(&mut self, path: &str, value: Value, at: &At) -> Result<(), String> {
        let steps = steps(path).ok_or("is not a path of keys such as map_cache.size_kib or lu[0].blocks")?;
        let mut node = self;
        for step in steps {
            let what = node.value.describe();
            node = match (&mut node.value, step) {
                (Value::Table(table), Step::Key(key)) => {
                    let empty = || Entry {
                        key_at: at.clone(),
                        node: Node { at: at.clone(), value: Value::Table(Table::new()) },
                    };
                    &mut table.entry(key.to_owned()).or_insert_with(empty).node
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

    /// Removes the key `name` from the table that also holds `path`'s last key.
    pub fn remove_beside(&mut self, path: &str, name: &str) {
        let mut node = self;
        let steps = steps(path).unwrap_or_default();
        for step in steps.iter().take(steps.len().saturating_sub(1)) {
            let child = match (&mut node.value, step) {
                (Value::Table(t), Step::Key(k)) => t.get_mut(*k).map(|e| &mut e.node),
                (Value::Array(a), Step::Index(i)) => a.get_mut(*i),
                _ => None,
            };
            let Some(child) = child else { return };
            node = child;
        }
        if let Value::Table(table) = &mut node.value {
            table.remove(name);
        }
    }
}
