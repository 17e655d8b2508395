// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of files. A function for each table names every key once: name, kind of value, default and meaning.
//! Passes over that function read the table, write it, or describe it.

mod kind;
mod kinds;
mod numbers;
mod schema;
mod table;

pub(crate) use kind::{Form, Key, KeyValue, Kind, Row};
pub(crate) use kinds::{
    Digits, any, digits, filled, flag, list, name, number, open_table, size, snake, text, texts, words,
};
pub(crate) use numbers::{
    blocks_of_kib, bytes_of_mib, either, gib, ms, multiple, power_of_two, power_of_two_blocks_of_kib, us, whole,
};
pub(crate) use schema::json_schema;
pub(crate) use table::{Keys, describe, names, read_document, read_table, table, write_document};

/// Keys that are fields: each `/// meaning`, `field = "name": kind;` becomes a variable with the field's name. The
/// key's name is left out if it equals the field's; `field of part.part` is a field of a part.
macro_rules! fields {
    ($keys:ident: $(
        $(#[doc = $doc:literal])+ $field:ident $(of $($part:ident).+)? $(= $name:literal)?: $slot:expr;
    )+) => {
        $(let $field = $keys.key(
            $crate::keys::Key {
                name: $crate::keys::fields!(@name $field $($name)?),
                field: stringify!($field),
                doc: concat!($($doc),+),
            },
            $slot,
            |whole| Clone::clone(&whole$($(.$part)+)?.$field),
        )?;)+
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
}

/// A table whose keys are the fields of a type. The values of other fields follow `..`, and may depend on those
/// before. A missing field is a compiler error.
macro_rules! keys {
    ($keys:ident => $T:ident {
        $($(#[doc = $doc:literal])+ $field:ident $(= $name:literal)?: $slot:expr;)+
        $(.. $($rest:ident $(: $value:expr)?),+)?
    }) => {{
        $crate::keys::fields! { $keys: $($(#[doc = $doc])+ $field $(= $name)?: $slot;)+ }
        $T { $($($rest $(: $value)?,)+)? $($field),+ }
    }};
}

pub(crate) use {fields, keys};
