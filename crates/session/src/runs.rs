// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs: chosen by name, made on threads, and complete or not. Knows no question.

use crate::args::Making;
use crate::failure::{Partial, Unfinished, classify};
use crate::files::NewFolder;
use crate::usage;
use anyhow::{Result, anyhow};
use rayon::ThreadPoolBuilder;
use readpath_lab::question::{Answer, AskError, Done, Question, make};
use readpath_lab::runs::Shared;
use readpath_sweep::{Keep, Kept, Shard, SweepError, keep};

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

/// Makes all points of a question side by side, with what `making` says of threads and of the folder that keeps them.
///
/// # Errors
/// When a point fails that the question does not stand without, or other shards have points to make first.
pub fn side_by_side<Q: Question>(question: &Q, making: &Making, shared: &Shared) -> Result<Vec<Done<Q::Figures>>> {
    // Further threads would have no run.
    let runs = u32::try_from(question.points().len().max(1)).unwrap_or(u32::MAX);
    let threads = making.threads.map(|n| n.min(runs));
    let Some(folder) = &making.keep else {
        return on_threads(threads, || make(question, shared))?.map_err(mark);
    };
    let _made = NewFolder::create(folder)?;
    let kept = Keep { folder: folder.clone(), shard: making.shard.unwrap_or(Shard::WHOLE) };
    let threads = threads.map_or_else(|| processors().min(runs as usize), |n| n as usize);
    match keep(question, &kept, threads, shared).map_err(of_sweep)? {
        Kept::All(done) => Ok(done),
        Kept::Part { made, points } => {
            let what = "when all shards have ended, the same command without --shard goes on";
            Err(Partial(format!("{made} of {points} points are in {}; {what}", folder.display())).into())
        }
    }
}

/// Processors that this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does work on `threads` threads, or one for each processor.
///
/// # Errors
/// When they cannot be started.
pub fn on_threads<T: Send>(threads: Option<u32>, work: impl FnOnce() -> T + Send) -> Result<T> {
    Ok(ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0) as usize).build()?.install(work))
}

/// The class of an error of a question.
pub fn mark(error: AskError) -> anyhow::Error {
    match error {
        AskError::Run(error) => classify(error),
        AskError::Results(error) => error.into(),
        error @ AskError::Wrong(_) => usage(error),
    }
}

/// The class of an error of points that are kept in a folder.
pub fn of_sweep(error: SweepError) -> anyhow::Error {
    match error {
        SweepError::Ask(error) => mark(error),
        SweepError::Interrupted => {
            Unfinished("interrupted: the runs that ended are kept; the same command goes on from there".into()).into()
        }
        error if error.is_usage() => usage(error),
        error => error.into(),
    }
}

/// Fails if an answer is incomplete, or if it says that it failed. It has been shown and written by then.
///
/// # Errors
/// When something is missing; the first is named.
pub fn complete(answer: &Answer) -> Result<()> {
    missing(answer.missing.iter(), answer.runs)?;
    answer.failed.as_ref().map_or(Ok(()), |why| Err(anyhow!("{why}")))
}

/// Fails if something is missing of any of `runs` runs.
///
/// # Errors
/// When `missing` is not empty; the first is named.
pub fn missing(mut missing: impl Iterator<Item = impl std::fmt::Display>, runs: usize) -> Result<()> {
    let Some(first) = missing.next() else { return Ok(()) };
    let more = match missing.count() {
        0 => String::new(),
        n => format!("; and so in {n} more of {runs} runs (see the notes of the results)"),
    };
    Err(anyhow!("results are incomplete: {first}{more}"))
}
