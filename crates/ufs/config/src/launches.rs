// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of an experiment file that describes launches of apps. It knows the keys and their units, not what is made of
//! them.

use super::error::ConfigFileError;
use super::section::Section;
use serde::Serialize;

/// Launches of apps, one after another, in several cycles.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LaunchKeys {
    /// Apps, each launched once a cycle.
    pub apps: u32,
    /// How many of them are games.
    pub games: u32,
    /// Requests of a launch of an app that is no game.
    pub requests: u32,
    /// Requests of a game, in percent of that.
    pub game_percent: u32,
    /// GiB that everything lies in, from block 0 on.
    pub range_gib: f64,
    /// GiB of what all apps share.
    pub shared_gib: f64,
    /// GiB that the fragments of an app are strewn over.
    pub span_gib: f64,
    /// Reads of what is shared.
    pub shared_percent: u8,
    /// Reads of a launch that the next one repeats.
    pub repeat_percent: u8,
    /// Steps with 4 to 8 requests at once.
    pub burst_percent: u8,
    /// Requests that are writes of 4 KiB.
    pub write_percent: u8,
    /// What all launches of a cycle compute together, for each cycle.
    pub busy_seconds: Vec<f64>,
    /// What the cycles are called.
    #[serde(skip)]
    pub cycles: Vec<String>,
}

/// The keys, in order.
pub(super) const KEYS: [&str; 12] = [
    "apps",
    "games",
    "requests",
    "game_percent",
    "range_gib",
    "shared_gib",
    "span_gib",
    "shared_percent",
    "repeat_percent",
    "burst_percent",
    "write_percent",
    "busy_seconds",
];

impl LaunchKeys {
    pub(super) fn read(s: &Section) -> Result<Self, ConfigFileError> {
        // Exact to a byte, and a multiple of a block of 4 KiB.
        let gib = |key: &str| -> Result<f64, ConfigFileError> {
            let value = s.number(key)?;
            match value > 0.0 && value <= 8192.0 && (value * f64::from(1 << 18)).fract() == 0.0 {
                true => Ok(value),
                false => Err(s.error(key, format!("is {value}; expected GiB in whole blocks of 4 KiB, up to 8192"))),
            }
        };
        let busy = s.numbers("busy_seconds")?;
        if busy.is_empty() || busy.iter().any(|seconds| !(0.0..=1e6).contains(seconds)) {
            return Err(s.error("busy_seconds", "needs a time in seconds, up to a million, for each cycle"));
        }
        let percent = |key: &str| s.integer(key, 0..=100);
        Ok(LaunchKeys {
            apps: s.integer("apps", 1..=1_000)?,
            games: s.integer("games", 0..=1_000)?,
            requests: s.integer("requests", 1..=10_000_000)?,
            game_percent: s.integer("game_percent", 1..=10_000)?,
            range_gib: gib("range_gib")?,
            shared_gib: gib("shared_gib")?,
            span_gib: gib("span_gib")?,
            shared_percent: percent("shared_percent")?,
            repeat_percent: percent("repeat_percent")?,
            burst_percent: percent("burst_percent")?,
            write_percent: percent("write_percent")?,
            cycles: (1..=busy.len()).map(|n| format!("cycle {n}")).collect(),
            busy_seconds: busy,
        })
    }
}
