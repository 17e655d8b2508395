// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a document as CSV. (The crate `csv` would bring a reader, and buffers, for the one rule of RFC 4180 that
//! a writer needs.)

use std::borrow::Cow;

use crate::{Document, Error, Finding, Interval, Row};

/// The columns, in order: those of a row, then its sample, then its difference.
pub const CSV_COLUMNS: [&str; 19] = [
    "case",
    "variant",
    "metric",
    "unit",
    "simulated",
    "published",
    "error_percent",
    "origin",
    "low",
    "high",
    "values",
    "base",
    "difference",
    "difference_low",
    "difference_high",
    "percent",
    "percent_low",
    "percent_high",
    "finding",
];

/// A cell, in quotes where RFC 4180 asks for them.
pub fn csv_cell(cell: &str) -> Cow<'_, str> {
    match cell.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", cell.replace('"', "\"\""))),
        false => Cow::Borrowed(cell),
    }
}

impl Document {
    /// The rows as CSV, below the names of [`CSV_COLUMNS`]: every line ends with a line feed, and a cell is empty where
    /// the row has nothing. Numbers are as exact as in the JSON.
    ///
    /// # Errors
    /// As [`Self::validate`].
    pub fn to_csv(&self) -> Result<String, Error> {
        self.validate()?;
        let mut out = CSV_COLUMNS.join(",");
        out.push('\n');
        for row in &self.rows {
            for (at, cell) in cells(row).iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                out.push_str(&csv_cell(cell));
            }
            out.push('\n');
        }
        Ok(out)
    }
}

fn cells(row: &Row) -> [String; CSV_COLUMNS.len()] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let [low, high] = ends(row.sample.as_ref().and_then(|sample| sample.interval)).map(number);
    let values = row.sample.iter().flat_map(|sample| &sample.values).map(f64::to_string).collect::<Vec<_>>().join(" ");
    let difference = row.difference.as_ref();
    let [difference_low, difference_high] = ends(difference.and_then(|d| d.interval)).map(number);
    let [percent_low, percent_high] = ends(difference.and_then(|d| d.percent_interval)).map(number);
    [
        row.case.to_string(),
        row.variant.clone(),
        row.metric.name().to_owned(),
        row.metric.unit().to_owned(),
        number(Some(row.simulated)),
        number(row.published),
        number(row.error_percent),
        row.origin.to_string(),
        low,
        high,
        values,
        difference.map_or_else(String::new, |d| d.base.clone()),
        number(difference.map(|d| d.mean)),
        difference_low,
        difference_high,
        number(difference.and_then(|d| d.percent)),
        percent_low,
        percent_high,
        difference.map_or_else(String::new, |d| word(d.finding).to_owned()),
    ]
}

fn ends(interval: Option<Interval>) -> [Option<f64>; 2] {
    [interval.map(|i| i.low), interval.map(|i| i.high)]
}

/// The finding as a document spells it.
fn word(finding: Finding) -> &'static str {
    match finding {
        Finding::Identical => "identical",
        Finding::Exact => "exact",
        Finding::Shown => "shown",
        Finding::NotShown => "not_shown",
        Finding::OneSeed => "one_seed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_have_to_be() {
        assert_eq!(csv_cell("16 GB"), "16 GB");
        assert_eq!(csv_cell("a, b"), "\"a, b\"");
        assert_eq!(csv_cell("4 \"K\"\r\n"), "\"4 \"\"K\"\"\r\n\"");
    }
}
