// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts, words, flags, sizes and arrays. It knows no key.

use super::kind::{About, Form, KeyValue, Kind};
use super::numbers::whole;
use crate::error::nearest;
use crate::tree::{Node, Value};

pub(crate) fn text<'a>() -> Kind<'a, String> {
    let read = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        _ => None,
    };
    Kind::plain("a text", [("type", Value::text("string"))], read, |text| Value::text(text), String::new)
}

/// A text that is not empty.
pub(crate) fn filled<'a>() -> Kind<'a, String> {
    text().parsed(|text| if text.is_empty() { Err("is empty".into()) } else { Ok(text) }, |text| Value::text(text))
}

/// A name of characters that `allowed` accepts; `what` describes them.
pub(crate) fn name<'a>(what: &'static str, allowed: fn(char) -> bool) -> Kind<'a, String> {
    let checked = move |name: String| match name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
        true => Err(format!("is {name:?}; expected 1 to 64 characters: {what}")),
        false => Ok(name),
    };
    text().parsed(checked, |text| Value::text(text))
}

/// A name of lower-case letters, digits and `_`.
pub(crate) fn snake<'a>() -> Kind<'a, String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name("lower-case letters, digits and '_'", allowed)
}

pub(super) fn constant<'a>(text: &'static str) -> Kind<'a, ()> {
    let about = move || {
        let form = Form::Plain(vec![("const", Value::text(text))]);
        About { expected: format!("{text:?}"), form, counted: "" }
    };
    let read = move |found: &KeyValue| match &found.node.value {
        Value::String(found) if found == text => Ok(()),
        Value::String(other) => Err(found.wrong(format!("is {other:?}; this program reads {text:?} here"))),
        _ => Err(found.unlike("a text")),
    };
    Kind::new(about, read, move |()| Value::text(text), || ())
}

/// One of a few words.
pub(crate) fn words<'a, T: Copy + PartialEq + 'a>(words: impl Into<Vec<(&'static str, T)>>) -> Kind<'a, T> {
    let words: Vec<(&str, T)> = words.into();
    let list: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
    let expected = list.join(" or ");
    let (first, all, expects) = (words[0].1, words.clone(), expected.clone());
    let about = move || {
        let form = Form::Plain(vec![("enum", Value::list(all.iter().map(|(word, _)| Value::text(*word))))]);
        About { expected: expects.clone(), form, counted: "" }
    };
    let known = words.clone();
    let read = move |found: &KeyValue| {
        let Value::String(text) = &found.node.value else { return Err(found.unlike(&expected)) };
        known.iter().find(|(word, _)| word == text).map(|(_, of)| *of).ok_or_else(|| {
            let near = nearest(text, known.iter().map(|(word, _)| *word));
            let hint = near.map(|n| format!("; did you mean {n:?}?")).unwrap_or_default();
            found.wrong(format!("is {text:?}; expected {expected}{hint}"))
        })
    };
    let write = move |value: &T| Value::text(words.iter().find(|(_, of)| of == value).map_or("", |(word, _)| word));
    Kind::new(about, read, write, move || first)
}

/// True or false.
pub(crate) fn flag<'a>() -> Kind<'a, bool> {
    let read = |value: &Value| match value {
        Value::Boolean(b) => Some(*b),
        _ => None,
    };
    Kind::plain("true or false", [("type", Value::text("boolean"))], read, |b| Value::Boolean(*b), || false)
}

/// Any finite number.
pub(crate) fn number<'a>() -> Kind<'a, f64> {
    let read = |value: &Value| match value {
        Value::Integer(Some(n)) => Some(*n as f64),
        Value::Float(text) => text.replace('_', "").parse().ok().filter(|x: &f64| x.is_finite()),
        _ => None,
    };
    Kind::plain("a finite number", [("type", Value::text("number"))], read, |x| Value::number(*x), || 0.0)
}

/// A number, and the decimals that it was written with.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Digits {
    pub value: f64,
    pub decimals: usize,
}

/// A finite number in plain digits.
pub(crate) fn digits<'a>() -> Kind<'a, Digits> {
    let read = |value: &Value| match value {
        Value::Integer(Some(n)) => Some(Digits { value: *n as f64, decimals: 0 }),
        Value::Float(text) => {
            let (_, decimals) = text.split_once('.').filter(|_| !text.contains(['e', 'E']))?;
            let value = text.replace('_', "").parse().ok()?;
            Some(Digits { value, decimals: decimals.trim_end_matches('0').len().max(1) })
        }
        _ => None,
    };
    let write = |digits: &Digits| Value::number(digits.value);
    Kind::plain("a number in plain digits", [("type", Value::text("number"))], read, write, Digits::default)
}

/// Any value, as it stands.
pub(crate) fn any<'a>() -> Kind<'a, Node> {
    let about = || About { expected: "a value".into(), form: Form::Plain(Vec::new()), counted: "" };
    let blank = || Node::from(Value::Boolean(false));
    Kind::new(about, |found| Ok(found.node.clone()), |node: &Node| node.value.clone(), blank)
}

/// A size in bytes: a number of them, or a text such as `512K`.
pub(crate) fn size<'a>() -> Kind<'a, u64> {
    const EXPECTED: &str = "a size such as 262144 or \"256K\"";
    let about = || {
        let types = Value::list(["integer", "string"].map(Value::text));
        About { expected: EXPECTED.into(), form: Form::Plain(vec![("type", types)]), counted: "" }
    };
    let bytes = whole::<u64>(1..=1 << 40);
    let read = move |found: &KeyValue| match &found.node.value {
        Value::String(text) => crate::size::size(text).map_err(|e| found.wrong(e)),
        Value::Integer(_) => (bytes.read)(found),
        _ => Err(found.unlike(EXPECTED)),
    };
    Kind::new(about, read, |bytes| Value::whole(*bytes), || 1)
}

/// An array of values of a kind; `expected` describes it in messages.
pub(crate) fn list<'a, T: 'a>(kind: Kind<'a, T>, expected: &'static str) -> Kind<'a, Vec<T>> {
    let Kind { about, read, write, .. } = kind;
    let read = move |found: &KeyValue| {
        let Value::Array(nodes) = &found.node.value else { return Err(found.unlike(expected)) };
        let element = |(i, node)| read(&KeyValue { node, path: format!("{}[{i}]", found.path) });
        nodes.iter().enumerate().map(element).collect()
    };
    let about = move || About { expected: expected.into(), form: Form::List(Box::new(about().form)), counted: "" };
    Kind::new(about, read, move |values: &Vec<T>| Value::list(values.iter().filter_map(&write)), Vec::new)
}

pub(crate) fn texts<'a>() -> Kind<'a, Vec<String>> {
    list(text(), "an array of texts")
}

/// A table with arbitrary keys: `read` takes the value of each.
pub(crate) fn open_table<'a, T: FromIterator<U> + Default + 'a, U>(
    read: impl Fn(&str, &KeyValue) -> Result<U, crate::ConfigFileError> + 'a,
    write: impl Fn(&T) -> Value + 'a,
) -> Kind<'a, T> {
    let about = || {
        let form = Form::Plain(vec![("type", Value::text("object"))]);
        About { expected: "a table".into(), form, counted: "" }
    };
    let read = move |found: &KeyValue| {
        let Value::Table(table) = &found.node.value else { return Err(found.unlike("a table")) };
        let value = |(key, node)| read(key, &KeyValue { node, path: format!("{}.{key}", found.path) });
        table.iter().map(|(key, entry)| value((key, &entry.node))).collect()
    };
    Kind::new(about, read, write, T::default)
}
