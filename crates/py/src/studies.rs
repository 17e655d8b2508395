// SPDX-License-Identifier: MIT OR Apache-2.0
//! Studies: the same plans, segments and tables as those of `readpath sweep`.

use crate::asked::since;
use crate::given::{Source, assigned};
use anyhow::{Result, anyhow};
use pyo3::{FromPyObject, IntoPyObject};
use readpath_session::config::study::{self, Study};
use readpath_session::failure::Interrupted;
use readpath_session::files::NewFolder;
use readpath_session::folder;
use readpath_session::inputs::read_text;
use readpath_session::lab::runs::Shared;
use readpath_session::process::process;
use readpath_session::results::Process;
use readpath_session::study::{Folder, Found, Made, Plan, Segment, Shard, document, merge, work};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// What is to be made of a study, and how.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Task {
    out: Option<PathBuf>,
    threads: Option<usize>,
    set: Vec<String>,
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

/// Points that were made, and the first of them that failed: its number and why.
pub type New = (u64, Option<(u64, String)>);

/// A study whose points go into a folder.
pub struct Begun {
    plan: Arc<Plan>,
    out: PathBuf,
    shard: Shard,
    found: Found,
    before: Process,
    /// Removed again if it stays empty.
    _made: NewFolder,
}

impl Begun {
    /// Looks what the folder has.
    pub fn new(plan: Arc<Plan>, task: &Task) -> Result<Begun> {
        let shard = task.shard.as_deref().map_or(Ok(Shard::WHOLE), str::parse)?;
        let before = process();
        let out = task.out.clone().unwrap_or_else(|| Path::new("out").join(&plan.study.name));
        let made = NewFolder::create(&out)?;
        let mut found = Found::of(&[Folder::new(&out)], Some(&plan.header()))?;
        if task.retry_failed {
            found.retry_failed();
        }
        Ok(Begun { plan, out, shard, found, before, _made: made })
    }

    /// Points that are to be made.
    pub fn missing(&self) -> Vec<u64> {
        let points = (0..self.shard.count(self.plan.count())).map(|n| self.shard.point(n));
        points.filter(|&point| !self.found.done.contains(point as usize)).collect()
    }

    /// A new segment for them, with `name` in its file name.
    pub fn segment(&self, name: &str) -> Result<Segment> {
        let name = format!("points-{}-{name}", std::process::id());
        Ok(Segment::create(&self.out, &name, &self.plan.header())?)
    }

    /// Makes the tables, and the page of the whole.
    pub fn finish(self, (new, first): New) -> Result<Swept> {
        let Begun { plan, out, shard, found, before, _made } = self;
        if shard.done(&found) + new < shard.count(plan.count()) {
            return Err(Interrupted.into());
        }
        let first_failure =
            first.map(|(index, why)| format!("point {index} ({}): {why}", plan.describe(&plan.point(index))));
        let damaged = found.damaged;
        let mut there = Found::of(&[Folder::new(&out)], Some(&plan.header()))?;
        let swept = tables(&mut there, &out, plan.count())?;
        let json = swept.points.is_some().then(|| shown(&plan, &mut there, before, &out)).transpose()?;
        Ok(Swept { study: plan.study.name.clone(), made: new, first_failure, damaged, json, ..swept })
    }
}

/// A study with keys that are the same for all points, and its text.
pub fn read_study(source: &Source, set: &[String]) -> Result<(Study, String)> {
    let text = source.read()?;
    let mut study = study::parse(&text, &source.name)?;
    study.fix(assigned(set)?)?;
    Ok((study, text))
}

/// Makes the points that the folder lacks.
pub fn sweep(source: &Source, task: &Task, shared: &Shared) -> Result<Swept> {
    let (study, text) = read_study(source, &task.set)?;
    let plan = Arc::new(Plan::new(study, &text, &read_text)?);
    let begun = Begun::new(plan, task)?;
    let made = Made::default();
    let name = format!("points-{}", std::process::id());
    let threads = task.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let (folder, todo) = (Folder::new(&begun.out), (begun.shard, &begun.found));
    work(&begun.plan, (&folder, &name), todo, threads, &read_text, shared, &made)?;
    let first = made.first_failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    begun.finish((made.points.load(Ordering::Relaxed), first))
}

/// The result document of a study of which all points are there; the folder has it too, and its page.
fn shown(plan: &Plan, found: &mut Found, before: Process, out: &Path) -> Result<String> {
    let mut doc = document(plan, found)?;
    doc.process = since(&before);
    folder::Folder::create(out)?.write(&doc)?;
    Ok(doc.to_json_pretty()?)
}

/// Makes tables of what several folders hold.
pub fn merge_folders(folders: &[PathBuf], out: &Path) -> Result<Swept> {
    let all: Vec<Folder> = folders.iter().map(Folder::new).collect();
    let mut found = Found::of(&all, None)?;
    let Some(header) = found.header.clone() else {
        let first = folders.first().map_or_else(String::new, |folder| format!("{}: ", folder.display()));
        return Err(anyhow!("{first}no results of a study are there"));
    };
    let _made = NewFolder::create(out)?;
    let damaged = found.damaged.clone();
    let swept = tables(&mut found, out, header.points)?;
    Ok(Swept { study: header.study, damaged, ..swept })
}

/// Writes the tables, if every point is there.
fn tables(found: &mut Found, out: &Path, count: u64) -> Result<Swept> {
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
        let merged = merge(found, out)?;
        (swept.points, swept.failures) = (Some(merged.points), merged.failed);
    }
    Ok(swept)
}
