// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs: chosen by name, made on threads, and complete or not. Knows nothing of what a run is.

use crate::usage;
use anyhow::{Result, anyhow};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// Keeps what has the name `wanted`, if `option` was given one.
///
/// # Errors
/// When nothing has that name.
pub fn choose<T>(list: &mut Vec<T>, name: impl Fn(&T) -> &str, option: &str, wanted: Option<&str>) -> Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    if !list.iter().any(|item| name(item) == wanted) {
        // In the order of the experiment, as in its tables: 4 GB comes before 16 GB.
        let mut known: Vec<&str> = Vec::new();
        for name in list.iter().map(&name) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        return Err(usage(anyhow!("{option} '{wanted}' is not one of: {}", known.join(", "))));
    }
    list.retain(|item| name(item) == wanted);
    Ok(())
}

/// Threads for `runs` runs: as many as `threads` says, or one for each processor.
///
/// # Errors
/// When they cannot be started.
pub fn pool(threads: Option<u32>, runs: usize) -> Result<ThreadPool, ThreadPoolBuildError> {
    // Further threads would have no run.
    ThreadPoolBuilder::new().num_threads(threads.map_or(0, |n| (n as usize).min(runs).max(1))).build()
}

/// Fails if something is missing of any of `runs` runs. The results that exist have been shown and written by then.
///
/// # Errors
/// When `missing` is not empty; the first is named.
pub fn complete(mut missing: impl Iterator<Item = String>, runs: usize) -> Result<()> {
    let Some(first) = missing.next() else { return Ok(()) };
    let more = match missing.count() {
        0 => String::new(),
        n => format!("; and so in {n} more of {runs} runs (see the notes of the results)"),
    };
    Err(anyhow!("results are incomplete: {first}{more}"))
}
