// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables for a README: pipes and dashes, as GitHub and most other Markdown readers take them.

use std::fmt::Write;

use readpath_results::Document;

use crate::pivot::{Pivot, TableSpec, mark};
use crate::{format, text};

/// The rows of a document as a Markdown table, with the columns of [`crate::terminal::table`].
///
/// The width of the spec has no effect. A document without rows gives an empty string.
pub fn table(document: &Document, spec: &TableSpec) -> String {
    let pivot = Pivot::new(document, spec);
    if pivot.lines.is_empty() {
        return String::new();
    }
    let mut head = String::from("| Case |");
    let mut rule = String::from("|---|");
    if pivot.has_variants() {
        head.push_str(" Variant |");
        rule.push_str("---|");
    }
    for column in &pivot.columns {
        let heading = text::markdown(&column.heading());
        if column.compared {
            let _ = write!(head, " {heading}, published | simulated | error % |");
            rule.push_str("---:|---:|---:|");
        } else {
            let _ = write!(head, " {heading} |");
            rule.push_str("---:|");
        }
    }
    let mut out = format!("{head}\n{rule}\n");
    for line in &pivot.lines {
        let _ = write!(out, "| {} |", text::markdown(line.case));
        if pivot.has_variants() {
            let _ = write!(out, " {} |", text::markdown(line.variant));
        }
        for (column, row) in pivot.columns.iter().zip(&line.cells) {
            let show = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |v| column.number(v));
            let simulated = show(row.map(|r| r.simulated));
            if column.compared {
                let error = row.and_then(|r| r.error_percent).map_or_else(|| "–".to_owned(), format::percent);
                let mark = row.map_or("", mark);
                let gap = if mark.is_empty() { "" } else { " " };
                let published = show(row.and_then(|r| r.published));
                let _ = write!(out, " {published} | {simulated} | {error}{gap}{mark} |");
            } else {
                let _ = write!(out, " {simulated} |");
            }
        }
        out.push('\n');
    }
    out
}
