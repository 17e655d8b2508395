// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a point: its settings, and its figures or its error. A record is a line: the CRC-32 of the JSON text
//! in eight hexadecimal digits, a blank, and the JSON text.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Figures by name, with their units in brackets: those of a study's point.
pub type Named = Vec<(String, f64)>;

/// The result of a point, with figures of type `F`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "F: DeserializeOwned"))]
pub struct Record<F = Named> {
    /// Its number.
    pub point: u64,
    /// The seed of its random streams, if the point of a study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The value of each key of the header.
    pub settings: Vec<String>,
    /// Requests that were simulated for it, if counted.
    pub ios: u64,
    /// Its figures or its error.
    #[serde(flatten)]
    pub outcome: Outcome<F>,
}

/// Figures or error of a point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", bound(deserialize = "F: DeserializeOwned"))]
pub enum Outcome<F = Named> {
    /// Its figures.
    Figures(F),
    /// Why there are no figures.
    Error(String),
}

impl<F> Outcome<F> {
    /// The outcome as a result.
    pub fn done(self) -> Result<F, String> {
        match self {
            Outcome::Figures(figures) => Ok(figures),
            Outcome::Error(why) => Err(why),
        }
    }
}

impl<F: Serialize + DeserializeOwned> Record<F> {
    /// Its line in a segment, with its line feed.
    pub fn line(&self) -> Vec<u8> {
        line(self)
    }

    /// The record of a line with its line feed; none if it is damaged.
    pub fn of_line(line: &[u8]) -> Option<Self> {
        of_line(line.strip_suffix(b"\n")?)
    }

    /// Why it has no figures, if it has none.
    pub fn failure(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Figures(_) => None,
            Outcome::Error(why) => Some(why),
        }
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
