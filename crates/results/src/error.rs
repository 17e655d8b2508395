// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a result document. Knows names and numbers, not the types that carry them.

use crate::SCHEMA;

/// Why a document, or a part of one, was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A number is NaN or infinite; JSON could not carry it.
    #[error("{what} is {value}: a result document holds finite numbers only")]
    NotFinite {
        /// The field of the number.
        what: String,
        /// The number.
        value: f64,
    },
    /// Two rows have the same case, variant and metric.
    #[error("two rows for case `{case}`, variant `{variant}`, metric `{metric}`")]
    DuplicateRow {
        /// Case of both rows.
        case: String,
        /// Variant of both rows.
        variant: String,
        /// Metric of both rows.
        metric: String,
    },
    /// Two charts have the same id.
    #[error("two charts have the id `{0}`")]
    DuplicateChart(String),
    /// `error_percent` does not follow from `published` and `simulated`.
    #[error("{what}: error_percent does not follow from `published` and `simulated`")]
    WrongErrorPercent {
        /// The row.
        what: String,
    },
    /// `simulated` is not the mean of the sample.
    #[error("{what}: `simulated` is not the mean of `sample.values`, or there are none")]
    WrongMean {
        /// The row.
        what: String,
    },
    /// An interval does not contain its value.
    #[error("{what}: an interval does not contain the value that it belongs to, or that value is missing")]
    WrongInterval {
        /// The row and field.
        what: String,
    },
    /// A finding does not follow from its interval.
    #[error("{what}: the finding does not follow from the difference and its interval")]
    WrongFinding {
        /// The row.
        what: String,
    },
    /// The text is JSON without a schema.
    #[error("not a Readpath result document: there is no `schema` field")]
    NoSchema,
    /// The document has a schema that this code does not read.
    #[error(
        "the document has schema `{0}`, but this version of Readpath reads `{SCHEMA}`; use the version that wrote it"
    )]
    UnknownSchema(String),
    /// The text is not JSON, or lacks a field, or a field has another type.
    #[error("malformed result document: {0}")]
    Json(#[from] serde_json::Error),
}

pub(crate) fn finite(value: f64, what: impl FnOnce() -> String) -> Result<f64, Error> {
    if value.is_finite() { Ok(value) } else { Err(Error::NotFinite { what: what(), value }) }
}
