// SPDX-License-Identifier: MIT OR Apache-2.0
//! Result documents made readable: tables for the terminal, one self-contained HTML page.
//!
//! This crate knows only the result document, not the simulator or how a number was found. It opens no file, asks
//! no terminal for its width and prints nothing; it turns a [`readpath_results::Document`] into a string. Whatever
//! stands in a document is treated as hostile text.

#![warn(unreachable_pub)]

pub mod comparison;
mod findings;
mod format;
pub mod html;
mod pivot;
mod style;
pub mod svg;
pub mod terminal;
mod text;

pub use findings::why_not;
pub use pivot::TableSpec;

/// Why a chart could not be drawn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A series has more points than a figure can show; aggregate it first.
    #[error("series `{series}` of chart `{chart}` has {points} points, more than {limit}: aggregate it first")]
    TooManyPoints {
        /// Id of the chart.
        chart: String,
        /// Name of the series.
        series: String,
        /// Number of points.
        points: usize,
        /// Number of points allowed.
        limit: usize,
    },
    /// A coordinate is not finite or beyond ±10³⁰⁰.
    #[error("series `{series}` of chart `{chart}` has a coordinate that cannot be drawn: {value}")]
    Range {
        /// Id of the chart.
        chart: String,
        /// Name of the series.
        series: String,
        /// The coordinate.
        value: f64,
    },
}
