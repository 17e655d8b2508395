// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of values: how one is read, written and described, and whether its key is required.

use crate::error::{ConfigFileError, Result};
use crate::tree::{Node, Value};
use std::sync::Arc;

/// A value in a file, and the path of its key.
pub(crate) struct KeyValue<'a> {
    pub node: &'a Node,
    pub path: String,
}

impl KeyValue<'_> {
    /// An error at this value.
    pub(crate) fn wrong(&self, message: impl Into<String>) -> ConfigFileError {
        self.node.at.error(&self.path, message)
    }

    /// The error of a value of another kind.
    pub(crate) fn unlike(&self, expected: &str) -> ConfigFileError {
        self.wrong(format!("is {}; expected {expected}", self.node.value.describe()))
    }
}

/// A key in the table of keys.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub name: &'static str,
    /// Field of the type that the table becomes; empty if the table's keys are fields of the enclosing type.
    pub field: &'static str,
    /// Its meaning, in Markdown.
    pub doc: &'static str,
}

impl Key {
    /// A key with the name of its field, or of no field.
    pub(crate) const fn new(name: &'static str, doc: &'static str) -> Key {
        Key { name, field: name, doc }
    }

    /// The key with the path of its field.
    pub(crate) const fn of(self, field: &'static str) -> Key {
        Key { field, ..self }
    }
}

/// Description of a key.
#[derive(Clone)]
pub(crate) struct Row {
    pub key: Key,
    pub about: Arc<About>,
    /// Whether it is required. Keys of a group are not: the group may be absent.
    pub required: bool,
    /// The value if it is left out.
    pub default: Option<Value>,
}

/// The description of a kind.
pub(crate) struct About {
    /// The expected value, for messages and documentation.
    pub expected: String,
    /// Its form, for programs.
    pub form: Form,
    /// The unit of the configuration in brackets, if it differs from the file's.
    pub counted: &'static str,
}

/// The shape of values.
#[derive(Clone)]
pub(crate) enum Form {
    /// Their properties in a JSON schema.
    Plain(Vec<(&'static str, Value)>),
    List(Box<Form>),
    Table(Vec<Row>),
}

type Read<'a, T> = Box<dyn Fn(&KeyValue) -> Result<T> + 'a>;
type Write<'a, T> = Box<dyn Fn(&T) -> Option<Value> + 'a>;

/// A kind of value; its key is required unless a method makes it optional.
pub(crate) struct Kind<'a, T> {
    pub(super) about: Box<dyn Fn() -> About + 'a>,
    pub(super) read: Read<'a, T>,
    pub(super) write: Write<'a, T>,
    /// A value for passes that neither read nor write one.
    pub(super) blank: Box<dyn Fn() -> T + 'a>,
    /// The value if the key is left out.
    pub(super) absent: Option<T>,
    /// Written only if it differs from the default.
    pub(super) quiet: bool,
}

impl<'a, T: 'a> Kind<'a, T> {
    pub(super) fn new(
        about: impl Fn() -> About + 'a,
        read: impl Fn(&KeyValue) -> Result<T> + 'a,
        write: impl Fn(&T) -> Value + 'a,
        blank: impl Fn() -> T + 'a,
    ) -> Self {
        let write = Box::new(move |value: &T| Some(write(value)));
        let (about, read, blank) = (Box::new(about), Box::new(read), Box::new(blank));
        Kind { about, read, write, blank, absent: None, quiet: false }
    }

    /// A value that is neither table nor array; `read` returns `None` for a value of another kind.
    pub(super) fn plain(
        expected: impl Into<String>,
        schema: impl Into<Vec<(&'static str, Value)>>,
        read: impl Fn(&Value) -> Option<T> + 'a,
        write: impl Fn(&T) -> Value + 'a,
        blank: impl Fn() -> T + 'a,
    ) -> Self {
        let (expected, schema) = (expected.into(), schema.into());
        let wrong = expected.clone();
        let about = move || About { expected: expected.clone(), form: Form::Plain(schema.clone()), counted: "" };
        Kind::new(about, move |found| read(&found.node.value).ok_or_else(|| found.unlike(&wrong)), write, blank)
    }

    pub(crate) fn read(&self, found: &KeyValue) -> Result<T> {
        (self.read)(found)
    }

    /// Makes the key optional, with this default.
    pub(crate) fn or(self, default: T) -> Self {
        Kind { absent: Some(default), ..self }
    }

    /// The key is written only if it differs from its default.
    pub(crate) fn quiet(self) -> Self {
        self.quiet_if(true)
    }

    /// [`Kind::quiet`] under a condition.
    pub(crate) fn quiet_if(self, quiet: bool) -> Self {
        Kind { quiet, ..self }
    }

    /// Makes the key optional, without a default.
    pub(crate) fn optional(self) -> Kind<'a, Option<T>> {
        let Kind { about, read, write, .. } = self;
        Kind {
            about,
            read: Box::new(move |found| read(found).map(Some)),
            write: Box::new(move |value| value.as_ref().and_then(&write)),
            blank: Box::new(|| None),
            absent: Some(None),
            quiet: false,
        }
    }

    /// Converts the value, which may fail.
    pub(crate) fn parsed<U: Default + 'a>(
        self,
        from: impl Fn(T) -> std::result::Result<U, String> + 'a,
        to: impl Fn(&U) -> Value + 'a,
    ) -> Kind<'a, U> {
        let Kind { about, read, .. } = self;
        Kind::new(about, move |found| from(read(found)?).map_err(|message| found.wrong(message)), to, U::default)
    }
}
