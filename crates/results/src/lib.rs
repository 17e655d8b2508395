// SPDX-License-Identifier: MIT OR Apache-2.0
//! The versioned result document: everything in Readpath that measures writes it; tables, pages and tests read it.
//!
//! This crate knows rows, charts and the JSON they are kept in. It does not know flash, UFS, workloads or how any of
//! the numbers came about; it reads no clock, opens no file and prints nothing. The format is described field by
//! field in `docs/formats/results.md`.
//!
//! ```
//! use readpath_results::metric::{Figure, HPB_READ_BUFFERS, Requests};
//! use readpath_results::{Document, Origin};
//!
//! let mut doc = Document::new("hpb_range", "Random read over the address range");
//! let throughput = Requests::RandomRead.of(Figure::Throughput);
//! doc.row("16 GB", "HPB dcm", throughput, 290.1, Origin::Predicted)?.published(293.45)?;
//! doc.row("16 GB", "HPB dcm", HPB_READ_BUFFERS, 1024.0, Origin::Predicted)?;
//! let text = doc.to_json_pretty()?;
//! assert_eq!(Document::from_json(&text)?, doc);
//! # Ok::<(), readpath_results::Error>(())
//! ```

#![warn(unreachable_pub)]

mod alike;
mod case;
mod chart;
mod csv;
mod document;
mod error;
mod input;
pub mod metric;
mod note;
mod row;
mod spread;

pub use case::{Case, Part};
pub use chart::{Chart, ChartKind, Point, Series, SeriesStyle, X};
pub use csv::{CSV_COLUMNS, csv_cell};
pub use document::{Document, Process, SCHEMA};
pub use error::Error;
pub use input::{Input, InputDigest};
pub use metric::Metric;
pub use note::{Note, NoteKind};
pub use row::{Origin, Row, Standing};
pub use spread::{Difference, Finding, Interval, Sample};
