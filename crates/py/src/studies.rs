// SPDX-License-Identifier: MIT OR Apache-2.0
//! Studies: the same plans, segments and tables as those of `readpath sweep`.

use crate::failure::Failure;
use crate::files::{make_folder, process, read_text};
use crate::given::{Source, assigned};
use pyo3::{FromPyObject, IntoPyObject};
use readpath_config::study;
use readpath_lab::experiment::Shared;
use readpath_results::Process;
use readpath_sweep::{Folder, Found, Made, Plan, Shard, SweepError, document, merge, work};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// What is to be made of a study, and how.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Task {
    out: Option<PathBuf>,
    threads: Option<usize>,
    set: Vec<(String, String)>,
    shard: Option<String>,
    retry_failed: bool,
}

/// What became of it.
#[derive(IntoPyObject)]
pub struct Swept {
    /// Name of the study.
    study: String,
    out: PathBuf,
    /// Points of the study.
    count: u64,
    /// Those of them that the folder holds.
    done: u64,
    /// Those that this call made.
    made: u64,
    failed: u64,
    /// Why the first of those did, if this call made it.
    first_failure: Option<String>,
    /// Tables, once all points are there.
    points: Option<PathBuf>,
    failures: Option<PathBuf>,
    /// The result document as JSON, then, if this call knows the study.
    json: Option<String>,
    /// Records that are damaged.
    damaged: Vec<String>,
}

fn wrong(error: SweepError) -> Failure {
    Failure::of(&error)
}

/// Makes the points that the folder lacks.
pub fn sweep(source: &Source, task: &Task, shared: &Shared) -> Result<Swept, Failure> {
    let shard = task.shard.as_deref().map_or(Ok(Shard::WHOLE), str::parse).map_err(wrong)?;
    let text = source.read()?;
    let mut study = study::parse(&text, &source.name).map_err(|e| Failure::of(&e))?;
    study.fix(assigned(&task.set)?).map_err(|e| Failure::of(&e))?;
    let before = process();
    let plan = Plan::new(study, &text, &read_text).map_err(wrong)?;
    let out = task.out.clone().unwrap_or_else(|| Path::new("out").join(&plan.study.name));
    make_folder(&out)?;
    let folder = Folder::new(&out);
    let look = || Found::of(&[Folder::new(&out)], Some(&plan.header())).map_err(wrong);
    let mut found = look()?;
    if task.retry_failed {
        found.retry_failed();
    }
    let made = Made::default();
    let name = format!("points-{}", std::process::id());
    let threads = task.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    work(&plan, (&folder, &name), (shard, &found), threads, &read_text, shared, &made).map_err(wrong)?;
    let new = made.points.load(Ordering::Relaxed);
    if shard.done(&found) + new < shard.count(plan.count()) {
        return Err(Failure::Interrupted);
    }
    let first = made.first_failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    let first_failure =
        first.map(|(index, why)| format!("point {index} ({}): {why}", plan.describe(&plan.point(index))));
    let damaged = found.damaged;
    let mut there = look()?;
    let swept = tables(&mut there, &out, plan.count())?;
    let json = swept.points.is_some().then(|| shown(&plan, &mut there, before)).transpose()?;
    Ok(Swept { study: plan.study.name.clone(), made: new, first_failure, damaged, json, ..swept })
}

/// The result document of a study of which all points are there.
fn shown(plan: &Plan, found: &mut Found, before: Process) -> Result<String, Failure> {
    let mut doc = document(plan, found).map_err(wrong)?;
    let Process { cpu_seconds, peak_rss_bytes } = process();
    doc.process = Process { cpu_seconds: cpu_seconds - before.cpu_seconds, peak_rss_bytes };
    doc.to_json_pretty().map_err(|e| Failure::of(&e))
}

/// Makes tables of what several folders hold.
pub fn merge_folders(folders: &[PathBuf], out: &Path) -> Result<Swept, Failure> {
    let all: Vec<Folder> = folders.iter().map(Folder::new).collect();
    let mut found = Found::of(&all, None).map_err(wrong)?;
    let Some(header) = found.header.clone() else {
        let first = folders.first().map_or_else(String::new, |folder| format!("{}: ", folder.display()));
        return Err(Failure::Wrong(format!("{first}no results of a study are there")));
    };
    make_folder(out)?;
    let damaged = found.damaged.clone();
    let swept = tables(&mut found, out, header.points)?;
    Ok(Swept { study: header.study, damaged, ..swept })
}

/// Writes the tables, if every point is there.
fn tables(found: &mut Found, out: &Path, count: u64) -> Result<Swept, Failure> {
    let mut swept = Swept {
        study: String::new(),
        out: out.to_owned(),
        count,
        done: found.count(),
        made: 0,
        failed: found.failed(),
        first_failure: None,
        points: None,
        failures: None,
        json: None,
        damaged: Vec::new(),
    };
    if swept.done == count {
        let merged = merge(found, out).map_err(wrong)?;
        (swept.points, swept.failures) = (Some(merged.points), merged.failed);
    }
    Ok(swept)
}
