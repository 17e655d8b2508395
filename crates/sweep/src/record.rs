// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a point: its settings, and its figures or its error. A record is a line: the CRC-32 of the JSON text
//! in eight hexadecimal digits, a blank, and the JSON text.

use crate::plan::Point;
use readpath_config::study::Setting;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The result of a point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Its number.
    pub point: u64,
    /// The seed of its random streams.
    pub seed: u64,
    /// The value of each key of the study.
    pub settings: Vec<String>,
    /// Requests that were simulated for it.
    pub ios: u64,
    /// Its figures or its error.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Figures or error of a point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Figures by name, with their units in brackets.
    Figures(Vec<(String, f64)>),
    /// Why there are no figures.
    Error(String),
}

impl Record {
    /// The record of `point`.
    pub(crate) fn new(point: &Point, ios: u64, outcome: Outcome) -> Record {
        let settings = point.settings.iter().map(Setting::plain).collect();
        Record { point: point.index, seed: point.seed, settings, ios, outcome }
    }

    /// Its line in a segment, with its line feed.
    pub fn line(&self) -> Vec<u8> {
        line(self)
    }

    /// The record of a line with its line feed; none if it is damaged.
    pub fn of_line(line: &[u8]) -> Option<Record> {
        of_line(line.strip_suffix(b"\n")?)
    }

    /// Whether it has no figures.
    pub fn is_failure(&self) -> bool {
        matches!(self.outcome, Outcome::Error(_))
    }
}

/// A line with its line feed.
pub(crate) fn line(value: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(value).expect("plain data");
    let mut line = format!("{:08x} ", crc32fast::hash(&json)).into_bytes();
    line.extend_from_slice(&json);
    line.push(b'\n');
    line
}

/// The value of a line without its line feed; none if the line is damaged.
pub(crate) fn of_line<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let (sum, json) = line.split_at_checked(9)?;
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?.strip_suffix(' ')?, 16).ok()?;
    if crc32fast::hash(json) != sum {
        return None;
    }
    serde_json::from_slice(json).ok()
}
