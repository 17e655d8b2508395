// SPDX-License-Identifier: MIT OR Apache-2.0
//! Little-endian records of fixed size: numbers at their places, and what a message says of them.

use super::super::error::{Reason, RowError};

/// A number in a record.
#[derive(Clone, Copy)]
pub(in super::super) struct Field {
    name: &'static str,
    at: usize,
    bytes: usize,
}

impl Field {
    pub(super) const fn new(name: &'static str, at: usize, bytes: usize) -> Field {
        Field { name, at, bytes }
    }
}

/// The message about a record, with the number that it has there.
pub(in super::super) fn message(e: &RowError, record: &[u8], fields: &[Field]) -> String {
    let Some(field) = fields.iter().find(|field| field.at == e.at) else {
        return format!("{}: expected {}", e.field, e.expected);
    };
    let bytes = &record[field.at..field.at + field.bytes];
    let value = bytes.iter().rev().fold(0, |value: u64, &byte| value << 8 | u64::from(byte));
    match e.reason {
        Reason::Syntax | Reason::Operation => format!("{}: expected {}, found {value:#x}", field.name, e.expected),
        Reason::Number => format!("{}: expected {}, found {}", field.name, e.expected, value as i64),
        _ => format!("{}: expected {}, found {value}", field.name, e.expected),
    }
}

#[inline]
pub(super) fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(*record[at..].first_chunk().expect("inside the record"))
}

#[inline]
pub(super) fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*record[at..].first_chunk().expect("inside the record"))
}

#[inline]
pub(super) fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*record[at..].first_chunk().expect("inside the record"))
}
