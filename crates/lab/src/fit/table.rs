// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of a table of text: column names and fields, with the place of a mistake. It opens no file and knows no
//! column's meaning, but for those that all tables of measurements have.

use std::fmt;

/// A mistake in a table of measurements.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct MeasurementError {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1; 0 when no line is at fault.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for MeasurementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Where a table is read, for errors.
pub(super) struct Reader<'a> {
    pub file: &'a str,
    pub line: usize,
}

impl Reader<'_> {
    pub(super) fn error(&self, message: impl Into<String>) -> MeasurementError {
        MeasurementError { file: self.file.to_owned(), line: self.line, message: message.into() }
    }

    /// A positive number in plain or scientific notation, at most `most`.
    pub(super) fn number(&self, column: &str, text: &str, most: f64) -> Result<f64, MeasurementError> {
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
        let value: f64 = Some(text)
            .filter(|t| plain && t.len() <= 40)
            .and_then(|t| t.parse().ok())
            .ok_or_else(|| self.error(format!("{column} is {}; expected a number such as 12.5", shown(text))))?;
        if value > 0.0 && value <= most {
            return Ok(value);
        }
        Err(self.error(format!("{column} is {}; it must be greater than 0 and at most {most}", shown(text))))
    }

    pub(super) fn whole(&self, column: &str, text: &str, most: u32) -> Result<u32, MeasurementError> {
        match text.parse::<u32>() {
            Ok(n) if n > 0 && n <= most => Ok(n),
            _ => Err(self.error(format!("{column} is {}; expected a whole number from 1 to {most}", shown(text)))),
        }
    }

    /// A standard error in percent, of which an empty field means `default`, as a share.
    pub(super) fn error_percent(&self, text: &str, default: f64) -> Result<f64, MeasurementError> {
        let percent = if text.is_empty() { default } else { self.number("error_percent", text, 100.0)? };
        if percent < 0.001 {
            return Err(self.error(format!("error_percent is {percent}; at least 0.001 is possible")));
        }
        Ok(percent / 100.0)
    }

    /// The field of [`HELD_OUT`]. Without the column nothing is said.
    pub(super) fn held_out(&self, text: Option<&str>) -> Result<Option<bool>, MeasurementError> {
        match text {
            None => Ok(None),
            Some("yes") => Ok(Some(true)),
            Some("" | "no") => Ok(Some(false)),
            Some(other) => Err(self.error(format!("{HELD_OUT} is {}; expected yes or no", shown(other)))),
        }
    }
}

/// The column that says whether the fit must not see a row.
pub(super) const HELD_OUT: &str = "held_out";

/// A field as it can be quoted in an error.
pub(super) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    format!("{short:?}")
}

fn fields<'a>(line: &'a str) -> Vec<&'a str> {
    let unquoted = |f: &'a str| -> Option<&'a str> { f.strip_prefix('"')?.strip_suffix('"').map(str::trim) };
    line.split(',').map(str::trim).map(|f| unquoted(f).unwrap_or(f)).collect()
}

/// The lines of a table that are neither empty nor a comment, with their numbers, as fields.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.split('#').next().unwrap_or("").trim()));
    lines.filter(|(_, line)| !line.is_empty()).map(|(i, line)| (i, fields(line)))
}

/// Column names must be separated by commas: names another separator by a name that `is_known`.
pub(super) fn check_separator(
    reader: &Reader,
    all: &[&str],
    is_known: impl Fn(&str) -> bool,
) -> Result<(), MeasurementError> {
    let [line] = all else { return Ok(()) };
    for (separator, called) in [(';', "semicolons"), ('\t', "tabs"), ('|', "bars"), (' ', "spaces")] {
        let names: Vec<&str> = line.split(separator).map(|name| name.trim().trim_matches('"')).collect();
        if names.len() > 1 && names.iter().any(|name| is_known(name)) {
            let names = shown(&names.join(","));
            return Err(reader.error(format!("is separated by {called}; expected commas: {names}")));
        }
    }
    Ok(())
}

/// Names of the columns of a table.
pub(super) struct Columns<'a>(Vec<&'a str>);

impl<'a> Columns<'a> {
    /// Every column is one of `known`, and there once.
    pub(super) fn read(reader: &Reader, all: Vec<&'a str>, known: &[&str]) -> Result<Self, MeasurementError> {
        for (i, column) in all.iter().enumerate() {
            if !known.contains(column) {
                let known = known.join(", ");
                return Err(reader.error(format!("{} is not a column; known here: {known}", shown(column))));
            }
            if all[..i].contains(column) {
                return Err(reader.error(format!("has the column {column} twice")));
            }
        }
        Ok(Columns(all))
    }

    pub(super) fn names(&self) -> &[&'a str] {
        &self.0
    }

    pub(super) fn has(&self, column: &str) -> bool {
        self.0.contains(&column)
    }

    pub(super) fn need(&self, reader: &Reader, column: &str) -> Result<(), MeasurementError> {
        if self.has(column) { Ok(()) } else { Err(reader.error(format!("has no column {column}"))) }
    }

    /// A line with as many fields.
    pub(super) fn row<'b>(&'b self, reader: &Reader, fields: Vec<&'b str>) -> Result<Row<'b>, MeasurementError> {
        if fields.len() != self.0.len() {
            let (has, all) = (fields.len(), self.0.len());
            let names = self.0.join(", ");
            return Err(reader.error(format!("has {has} fields, but there are {all} columns: {names}")));
        }
        Ok(Row { columns: &self.0, fields })
    }
}

/// The fields of a line.
pub(super) struct Row<'a> {
    columns: &'a [&'a str],
    fields: Vec<&'a str>,
}

impl<'a> Row<'a> {
    /// The field of a column, if the table has it.
    pub(super) fn field(&self, column: &str) -> Option<&'a str> {
        let at = self.columns.iter().position(|c| *c == column)?;
        Some(self.fields[at])
    }

    /// The field of a column; nothing if it is empty or the table has no such column.
    pub(super) fn filled(&self, column: &str) -> Option<&'a str> {
        self.field(column).filter(|field| !field.is_empty())
    }

    pub(super) fn need(&self, reader: &Reader, column: &str) -> Result<&'a str, MeasurementError> {
        self.filled(column).ok_or_else(|| reader.error(format!("{column} is missing")))
    }
}
