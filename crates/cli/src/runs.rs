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
use readpath_session::runs::pool;
pub use readpath_session::runs::{choose, complete};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

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
    Ok(pool(threads, runs)?.install(|| work(shared)))
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
