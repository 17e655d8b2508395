// SPDX-License-Identifier: MIT OR Apache-2.0
//! A JSON schema of a kind of file, for editors and checkers. It has the rules of single keys, not those between keys.

use super::kind::{Form, Row};
use crate::tree::Value;

/// The schema of a document with these keys.
pub(crate) fn json_schema(title: &'static str, rows: &[Row]) -> Value {
    let dialect = Value::text("https://json-schema.org/draft/2020-12/schema");
    Value::table([("$schema", dialect), ("title", Value::text(title))].into_iter().chain(object(rows)))
}

fn object(rows: &[Row]) -> [(&'static str, Value); 4] {
    let required = rows.iter().filter(|row| row.required).map(|row| Value::text(row.key.name));
    [
        ("type", Value::text("object")),
        ("properties", Value::table(rows.iter().map(|row| (row.key.name, property(row))))),
        ("required", Value::list(required)),
        ("additionalProperties", Value::Boolean(false)),
    ]
}

fn property(row: &Row) -> Value {
    let description = [("description", Value::text(row.key.doc.trim()))];
    let plain = matches!(row.about.form, Form::Plain(_));
    let default = row.default.clone().filter(|_| plain).map(|default| ("default", default));
    Value::table(description.into_iter().chain(form(&row.about.form)).chain(default))
}

fn form(of: &Form) -> Vec<(&'static str, Value)> {
    match of {
        Form::Plain(schema) => schema.clone(),
        Form::List(item) => vec![("type", Value::text("array")), ("items", Value::table(form(item)))],
        Form::Table(rows) => object(rows).into(),
    }
}
