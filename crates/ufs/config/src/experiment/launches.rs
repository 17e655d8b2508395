// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of an experiment file that describes launches of apps. It knows keys and units, not their use.

use crate::error::ConfigFileError;
use crate::keys::{Keys, Kind, keys, list, number, whole};
use crate::tree::Value;

/// Launches of apps, one after another, in several cycles.
#[derive(Clone, PartialEq, Debug)]
pub struct LaunchKeys {
    /// Apps, each launched once a cycle.
    pub apps: u32,
    /// Number of games among them.
    pub games: u32,
    /// Requests of a launch of an app that is not a game.
    pub requests: u32,
    /// Requests of a game, in percent of `requests`.
    pub game_percent: u32,
    /// GiB of the range of all data, from block 0 on.
    pub range_gib: f64,
    /// GiB of data that all apps share.
    pub shared_gib: f64,
    /// GiB over which the fragments of an app are scattered.
    pub span_gib: f64,
    /// Percentage of reads that go to the shared data.
    pub shared_percent: u8,
    /// Percentage of a launch's reads that the next launch repeats.
    pub repeat_percent: u8,
    /// Percentage of steps with 4 to 8 requests at once.
    pub burst_percent: u8,
    /// Percentage of requests that are writes of 4 KiB.
    pub write_percent: u8,
    /// Computing time of all launches of a cycle together, for each cycle.
    pub busy_seconds: Vec<f64>,
    /// Names of the cycles.
    pub cycles: Vec<String>,
}

/// GiB, exact to a byte, and a multiple of a block of 4 KiB.
fn gib() -> Kind<'static, f64> {
    let checked = |value: f64| match value > 0.0 && value <= 8192.0 && (value * f64::from(1 << 18)).fract() == 0.0 {
        true => Ok(value),
        false => Err(format!("is {value}; expected GiB in whole blocks of 4 KiB, up to 8192")),
    };
    number().parsed(checked, |gib| Value::number(*gib))
}

fn seconds() -> Kind<'static, Vec<f64>> {
    let checked = |all: Vec<f64>| match all.is_empty() || all.iter().any(|seconds| !(0.0..=1e6).contains(seconds)) {
        true => Err("needs a time in seconds, up to a million, for each cycle".into()),
        false => Ok(all),
    };
    list(number(), "an array of numbers").parsed(checked, |all| Value::list(all.iter().map(|&x| Value::number(x))))
}

/// `[workload]` of kind `launches`.
pub(super) fn launches(k: &mut Keys<LaunchKeys>) -> Result<LaunchKeys, ConfigFileError> {
    let percent = || whole(0..=100);
    Ok(keys!(k => LaunchKeys {
        /// `launches`, like all keys below: apps, each launched once a cycle
        apps: whole(1..=1_000);
        /// number of games among them
        games: whole(0..=1_000);
        /// requests of a launch
        requests: whole(1..=10_000_000);
        /// requests of a launch of a game, in percent of `requests`
        game_percent: whole(1..=10_000);
        /// range of all data, from block 0 on
        range_gib: gib();
        /// data that all apps share, at the start of the range
        shared_gib: gib();
        /// range over which the 4096 fragments (8 KiB to 1 MiB) of an app are scattered; four fifths of its reads go to
        /// a fifth of them
        span_gib: gib();
        /// share of reads that go to the shared data, by Zipf's law
        shared_percent: percent();
        /// share of a launch's reads that follow the app's script; the others are drawn anew
        repeat_percent: percent();
        /// share of steps that start 4 to 8 requests at once; otherwise the app waits for each read of 4 KiB, and reads
        /// longer ones ahead
        burst_percent: percent();
        /// share of requests that are writes of 4 KiB, in an area of 1 MiB for each app
        write_percent: percent();
        /// computing time of all launches of a cycle, for each cycle, spread evenly over their steps
        busy_seconds: seconds();
        .. cycles: (1..=busy_seconds.len()).map(|n| format!("cycle {n}")).collect()
    }))
}
