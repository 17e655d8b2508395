// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a trace, where, and what would be right; and the account of rows that a lenient reader left
//! out. Knows no format.

use std::collections::BTreeMap;
use std::fmt;

/// A place in a trace, after decompression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A line of text, from 1.
    Line(u64),
    /// A byte of binary content, from 0.
    Byte(u64),
}

/// The kind of a fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// A row that is not one of this format.
    Syntax,
    /// A field that should be a number and is not, or is negative.
    Number,
    /// A number that is too large.
    Range,
    /// A read, write or trim of no bytes.
    ZeroSize,
    /// An operation that is unknown or missing.
    Operation,
    /// A request whose address or size was not recorded.
    Address,
    /// A request to a second device.
    Device,
    /// A request that does not lie on the device that is to replay it.
    Beyond,
    /// A row further out of order than the reorder window reaches.
    Order,
    /// A line longer than the limit.
    LongLine,
    /// The content is cut off or damaged.
    Truncated,
    /// The format is not recognised or not supported.
    Format,
    /// There is no request.
    Empty,
    /// A limit on size or memory is exceeded.
    Limit,
    /// The options contradict each other or the content.
    Options,
    /// Reading or writing failed.
    Io,
}

impl Reason {
    /// Whether a lenient reader counts the fault and continues.
    fn is_lenient(self) -> bool {
        use Reason::*;
        !matches!(self, Format | Empty | Limit | Options | Io)
    }

    /// The reason in words, for a table of skipped rows.
    pub fn words(self) -> &'static str {
        match self {
            Reason::Syntax => "not a row of this format",
            Reason::Number => "not a number, or negative",
            Reason::Range => "number too large",
            Reason::ZeroSize => "size is zero",
            Reason::Operation => "unknown or missing operation",
            Reason::Address => "address or size was not recorded",
            Reason::Device => "another device",
            Reason::Beyond => "beyond the device",
            Reason::Order => "too far out of order",
            Reason::LongLine => "line too long",
            Reason::Truncated => "cut off or damaged",
            Reason::Format => "format not recognised",
            Reason::Empty => "no request",
            Reason::Limit => "limit exceeded",
            Reason::Options => "options do not fit",
            Reason::Io => "input or output failed",
        }
    }
}

/// A trace that cannot be read (or prepared, or written) as asked. Displayed as `file:line: message`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct TraceError {
    /// File as the caller named it.
    pub file: String,
    /// Place of the fault.
    pub place: Place,
    /// What kind of fault.
    pub reason: Reason,
    /// What is wrong and what would be right.
    pub message: String,
    /// Of requests beyond the device: bytes of a device that holds all of the trace, or
    /// [`NO_DEVICE`](super::NO_DEVICE).
    pub needed_bytes: Option<u64>,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::File => write!(f, "{}: {}", self.file, self.message),
            Place::Line(n) => write!(f, "{}:{n}: {}", self.file, self.message),
            Place::Byte(n) => write!(f, "{}: byte {n}: {}", self.file, self.message),
        }
    }
}

impl TraceError {
    pub(crate) fn of_file(file: &str, reason: Reason, message: impl Into<String>) -> Self {
        TraceError { file: file.into(), place: Place::File, reason, message: message.into(), needed_bytes: None }
    }
}

/// The expectation after the number of a field.
pub(super) const NOTHING_MORE: &str = "nothing more after the number";

/// Why one row is not a request. Small, so that the fast path returns it cheaply; text is made on demand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RowError {
    pub(super) reason: Reason,
    /// The field's name; empty when the row as a whole is meant.
    pub(super) field: &'static str,
    /// Offset of the field in the row.
    pub(super) at: usize,
    /// What would be right.
    pub(super) expected: &'static str,
}

impl RowError {
    #[cold]
    pub(super) fn new(reason: Reason, field: &'static str, at: usize, expected: &'static str) -> Self {
        RowError { reason, field, at, expected }
    }

    #[cold]
    pub(super) fn syntax(expected: &'static str) -> Self {
        RowError { reason: Reason::Syntax, field: "", at: 0, expected }
    }

    /// The message about `row`, in which `expected` would be right.
    pub(super) fn message(&self, row: &[u8], expected: &str) -> String {
        let from = row.get(self.at..).unwrap_or_default();
        if self.field.is_empty() {
            return format!("expected {expected}, found \"{}\"", excerpt(from));
        }
        // Surplus text in a field may begin with a separator of other formats.
        let first = usize::from(self.expected == NOTHING_MORE).min(from.len());
        let ends = |b: &u8| matches!(b, b',' | b' ' | b'\t' | b';' | b'|');
        let end = from[first..].iter().position(ends).map_or(from.len(), |n| first + n);
        match &from[..end] {
            [] => format!("{}: expected {expected}, found nothing", self.field),
            text => format!("{}: expected {expected}, found \"{}\"", self.field, excerpt(text)),
        }
    }
}

/// At most 60 bytes of a row, printable.
pub(super) fn excerpt(row: &[u8]) -> String {
    let head = &row[..row.len().min(60)];
    let more = if row.len() > head.len() { "..." } else { "" };
    format!("{}{more}", head.escape_ascii())
}

/// Rows that a lenient reader left out or ([`Reason::Order`]) moved: of each kind how many, and the first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Skips(BTreeMap<Reason, (u64, Place, String)>);

impl Skips {
    /// Counts one; `example` is asked for the first of its kind only. False when the kind may not be left out.
    pub(super) fn note(&mut self, reason: Reason, place: Place, example: impl FnOnce() -> String) -> bool {
        if reason.is_lenient() {
            self.0.entry(reason).or_insert_with(|| (0, place, example())).0 += 1;
        }
        reason.is_lenient()
    }

    /// Counts one of a kind that has its example already, for which no message need be made; false otherwise.
    pub(super) fn again(&mut self, reason: Reason) -> bool {
        self.0.get_mut(&reason).map(|skip| skip.0 += 1).is_some()
    }

    /// How many of one kind.
    pub fn count(&self, reason: Reason) -> u64 {
        self.0.get(&reason).map_or(0, |skip| skip.0)
    }

    /// How many in all.
    pub fn total(&self) -> u64 {
        self.0.values().map(|skip| skip.0).sum()
    }

    /// Kinds that occurred: how often, where first, and what was wrong there.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64, Place, &str)> {
        self.0.iter().map(|(&reason, (count, place, example))| (reason, *count, *place, example.as_str()))
    }
}
