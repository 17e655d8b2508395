// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs as the user sees them: chosen by name, side by side with progress, or one of them recorded; and stopped by
//! Ctrl-C. Knows nothing of what a run is.

use crate::args::{Common, Recorded};
use crate::failure::classify;
use crate::files::PartFile;
use crate::live::Live;
use crate::{output, stop, usage};
use anyhow::{Context, Result, anyhow};
use readpath_lab::experiment::{ExperimentError, Shared};
use readpath_run::Tap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Keeps what has the name that was asked for with `option`, if one was.
pub fn choose<T>(list: &mut Vec<T>, name: impl Fn(&T) -> &str, option: &str, wanted: Option<&str>) -> Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    if !list.iter().any(|item| name(item) == wanted) {
        // In the order of the experiment, which is that of its tables: 4 GB comes before 16 GB.
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

/// Refuses `--trace-io` for several runs.
pub fn only_one_traced(common: &Common, runs: usize) -> Result<()> {
    if common.trace_io.is_some() && runs != 1 {
        let message = "choose one with --case, --variant or --hpb";
        return Err(usage(anyhow!("--trace-io records one run, but this makes {runs}: {message}")));
    }
    Ok(())
}

/// What runs share: what `live` shows of them, and a wish to stop, which signals express from now on.
pub fn stoppable(live: &Live) -> Result<Arc<Shared>> {
    let shared = live.shared();
    stop::in_order(shared.stop.clone())?;
    Ok(Arc::new(shared))
}

/// Lets `work` make `runs` runs on a pool of threads, with progress on the way to `expected` requests.
pub fn side_by_side<T: Send>(
    threads: Option<u32>,
    runs: usize,
    expected: Option<u64>,
    shared: &Arc<Shared>,
    work: impl FnOnce(&Shared) -> T + Send,
) -> Result<T> {
    let _progress = output::Progress::start(shared.clone(), expected);
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(n) = threads {
        // More threads than runs have nothing to do.
        pool = pool.num_threads((n as usize).min(runs));
    }
    Ok(pool.build()?.install(|| work(shared)))
}

/// Lets `work` make one run and records its requests, stage by stage, to the file at `path`.
pub fn recorded<T>(
    path: &Path,
    title: &str,
    recorded: Recorded,
    shared: &Shared,
    work: impl for<'f> FnOnce(Tap<&'f File>, &Shared) -> (Result<T, ExperimentError>, Option<Tap<&'f File>>),
) -> Result<T> {
    let part = PartFile::create(path)?;
    let tap = Tap::new(&part.file, title, Some(recorded.limit));
    let tap = recorded.from.into_iter().fold(tap, Tap::starting);
    let (result, tap) = work(tap, shared);
    let (events, requests) = match tap {
        Some(mut tap) => {
            let events = tap.finish().with_context(|| format!("{}: cannot write", path.display()))?;
            (events, tap.requests())
        }
        None => (0, 0),
    };
    let output = result.map_err(classify)?;
    part.finish()?;
    let nothing = match recorded.from {
        Some(_) if requests == 0 => ": the run ended before --trace-io-from",
        _ => "",
    };
    writeln!(io::stderr(), "{}: {events} events{nothing}", path.display()).ok();
    Ok(output)
}

/// Fails if something is missing of any of `runs` runs. What there is of it has been shown and written by then.
pub fn complete(mut missing: impl Iterator<Item = String>, runs: usize) -> Result<()> {
    let Some(first) = missing.next() else { return Ok(()) };
    let more = match missing.count() {
        0 => String::new(),
        n => format!("; and so in {n} more of {runs} runs (see the notes of the results)"),
    };
    Err(anyhow!("results are incomplete: {first}{more}"))
}
