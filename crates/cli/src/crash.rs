// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath crash`: every state that a crash can leave, and whether a program survives it.

use crate::args::{Crash, CrashStates};
use crate::failure::{Damaged, Interrupted, NotSurvived, Unfinished};
use crate::{output, stop, usage};
use anyhow::{Context, Result, anyhow};
use readpath_crash::{
    Base, Budget, Check, CrashError, Device, Found, Hunt, Kept, Log, Outcome, Permitted, Progress, States, document,
};
use readpath_serve::Recorded;
use readpath_session::folder::Folder;
use readpath_session::images;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub fn main(args: &Crash) -> Result<()> {
    let name = args.recording.display().to_string();
    let opened = File::open(&args.recording).map_err(|error| usage(anyhow!("{name}: {error}")))?;
    let recorded = Recorded::read(BufReader::new(opened)).map_err(|error| usage(anyhow!("{name}: {error}")))?;
    let (image, preset) = images::open(&args.image, false, false)?;
    let told = |error| told(args, error);
    let base = Base::new(image, &preset, Some(&recorded)).map_err(told)?;
    let log = Log::new(&recorded, &base).map_err(told)?;
    if recorded.left_out > 0 {
        warn(&format!("{name}: {} requests are left out, because some before them are missing", recorded.left_out));
    }
    if let Some((number, order)) = &log.until {
        warn(&format!("{name}: nothing counts from '{order}' on, number {number}: the device was switched off"));
    }
    match args.states {
        CrashStates::Permitted => with(args, &base, &log, &Permitted::new(&log, args.seed)),
        CrashStates::Device => {
            let device = Device::new((&log, &recorded), &args.image, &preset, args.seed).map_err(told)?;
            with(args, &base, &log, &device)
        }
    }
}

fn warn(what: &str) {
    writeln!(io::stderr(), "readpath: {what}").ok();
}

fn with<T: States>(args: &Crash, base: &Base, log: &Log, states: &T) -> Result<()> {
    let told = |error| told(args, error);
    let folder = args.out.as_deref().map(|out| Folder::create(out)?.apart_from([&args.recording, &args.image]));
    let folder = folder.transpose()?;
    let check = Check { words: args.check.clone(), limit: args.timeout, shows: args.state.is_some() };
    let kept = match &args.keep {
        Some(keep) if args.state.is_none() => Some(kept(keep, log, &check).map_err(told)?),
        _ => None,
    };
    let stopped = Arc::new(AtomicBool::new(false));
    stop::in_order(stopped.clone())?;
    let sockets = Sockets::make()?;
    let progress = Arc::new(Progress::default());
    let hunt = Hunt {
        base,
        log,
        states,
        check: &check,
        folder: &sockets.0,
        threads: threads(args),
        budget: args.budget,
        kept,
        stop: &stopped,
        progress: &progress,
    };
    if let Some(name) = &args.state {
        let ran = hunt.one(&states.parse(name).map_err(told)?).map_err(told)?;
        return match ran.outcome {
            Outcome::Survived => Ok(writeln!(io::stdout(), "CHECK survived {name}.")?),
            outcome => Err(NotSurvived(format!("CHECK did not survive {name}: {outcome}")).into()),
        };
    }
    let found = {
        let seen = progress.clone();
        let _progress = output::Progress::of_states(states_of(args.budget), move || {
            (seen.looked_at.load(Ordering::Relaxed), seen.failed.load(Ordering::Relaxed))
        });
        hunt.search().map_err(told)?
    };
    show(args, &found, folder)
}

fn states_of(budget: Budget) -> Option<u64> {
    match budget {
        Budget::States(states) => Some(states),
        Budget::Time(_) => None,
    }
}

fn threads(args: &Crash) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    args.threads.map_or_else(processors, usize::from)
}

fn kept(folder: &Path, log: &Log, check: &Check) -> Result<Kept, CrashError> {
    let made = fs::create_dir_all(folder);
    made.map_err(|error| CrashError::Kept { path: folder.to_owned(), what: error.to_string() })?;
    Kept::open(&folder.join("outcomes.jsonl"), &log.identity(&check.words))
}

fn show(args: &Crash, found: &Found, folder: Option<Folder>) -> Result<()> {
    let kind = match args.states {
        CrashStates::Permitted => "permitted",
        CrashStates::Device => "device",
    };
    let name = args.recording.file_name().unwrap_or_default().to_string_lossy();
    let budget = match args.budget {
        Budget::States(states) => json!(states),
        Budget::Time(time) => json!(format!("{}s", time.as_secs_f64())),
    };
    let settings = json!({
        "states": kind,
        "budget": budget,
        "timeout_s": args.timeout.as_secs_f64(),
        "check": args.check,
    });
    let mut doc = document(found, (&name, kind, &args.check.join(" ")), (args.seed, settings))?;
    doc.process = output::process();
    folder.map_or(Ok(()), |folder| folder.write(&doc))?;
    let mut out = io::stdout().lock();
    if args.json {
        write!(out, "{}", doc.to_json_pretty()?)?;
    } else {
        write!(out, "{}", output::verdict(&doc))?;
        let (systematic, all) = found.systematic;
        let random = found.looked_at - systematic;
        let (looked_at, known) = (found.looked_at, found.known);
        writeln!(out, "{looked_at} states looked at: {systematic} of {all} systematic ones, {random} random ones")?;
        if known > 0 {
            writeln!(out, "{known} outcomes were known")?;
        }
        doc.notes.iter().try_for_each(|note| writeln!(out, "Note: {note}"))?;
        if let Some(out_folder) = &args.out {
            let (json, page) = (out_folder.join("result.json"), out_folder.join("report.html"));
            writeln!(out, "Results: {} and {}", json.display(), page.display())?;
        }
    }
    match found.failed.len() {
        0 => Ok(()),
        failed => Err(NotSurvived(format!("{failed} of {} states were not survived", found.different)).into()),
    }
}

/// An error of the search, with its class.
fn told(args: &Crash, error: CrashError) -> anyhow::Error {
    let (recording, image) = (args.recording.display(), args.image.display());
    match error {
        CrashError::Recording(_) => usage(anyhow!("{recording}: {error}")),
        CrashError::Load(_) | CrashError::Block { .. } => Damaged(format!("{image}: {error}")).into(),
        CrashError::Interrupted if args.keep.is_some() => {
            Unfinished("interrupted; the outcomes so far are kept: the same command goes on".to_owned()).into()
        }
        CrashError::Interrupted => Interrupted.into(),
        CrashError::Config(_)
        | CrashError::Image(_)
        | CrashError::Name { .. }
        | CrashError::Start { .. }
        | CrashError::Whole { .. }
        | CrashError::Kept { .. } => usage(error),
        CrashError::Io(_) => error.into(),
    }
}

/// The folder of the sockets, which is removed at the end however the program ends.
struct Sockets(PathBuf);

impl Sockets {
    fn make() -> Result<Sockets> {
        let path = std::env::temp_dir().join(format!("readpath-crash-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("{}: cannot make the folder", path.display()))?;
        let sockets = Sockets(path.clone());
        stop::clean_up(move || remove(&path))?;
        Ok(sockets)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes a folder of sockets. Nothing else is in it.
fn remove(folder: &Path) {
    fs::read_dir(folder).into_iter().flatten().flatten().for_each(|entry| _ = fs::remove_file(entry.path()));
    fs::remove_dir(folder).ok();
}
