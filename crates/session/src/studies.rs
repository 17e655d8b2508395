// SPDX-License-Identifier: MIT OR Apache-2.0
//! Studies: planned, made in a folder point by point, and their tables. It does not know where the points are made.

use crate::failure::{Interrupted, usage};
use crate::files::NewFolder;
use crate::folder;
use crate::inputs::read_text;
use crate::runs::of_sweep;
use anyhow::{Result, anyhow};
use readpath_config::study::{self, Assigned};
use readpath_lab::runs::Shared;
use readpath_results::{Document, Process};
use readpath_sweep::{
    Folder, Found, Made, Maker, Merged, OfPlan, Plan, Segment, Shard, document, merge, unfinished, work,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// A study file with keys that are the same for all points.
///
/// # Errors
/// A mistake of the user when the text or a key is wrong.
pub fn parsed(text: &str, name: &str, set: &[String]) -> Result<study::Study> {
    let mut study = study::parse(text, name).map_err(usage)?;
    let fixed: Result<Vec<_>, _> = set.iter().map(|one| Assigned::from_argument(one, "--set")).collect();
    study.fix(fixed.map_err(usage)?).map_err(usage)?;
    Ok(study)
}

/// The plan of a study file on this machine.
///
/// # Errors
/// As [`parsed`] and [`Plan::new`].
pub fn planned(text: &str, name: &str, set: &[String]) -> Result<Arc<Plan>> {
    Ok(Arc::new(Plan::new(parsed(text, name, set)?, text, &read_text).map_err(of_sweep)?))
}

/// The folder of a study, and the part to make.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// The folder of its results, `out/NAME` by default.
    pub out: Option<PathBuf>,
    /// The share of points to make.
    pub shard: Option<Shard>,
    /// Whether points that failed are made again.
    pub retry_failed: bool,
}

impl Task {
    fn shard(&self) -> Shard {
        self.shard.unwrap_or(Shard::WHOLE)
    }

    /// The folder of a study's results.
    pub fn folder(&self, plan: &Plan) -> PathBuf {
        self.out.clone().unwrap_or_else(|| Path::new("out").join(&plan.study.name))
    }
}

/// A study whose points go into a folder.
pub struct Begun {
    /// The study.
    pub plan: Arc<Plan>,
    /// The folder.
    pub out: PathBuf,
    /// The records that the folder had.
    pub found: Found,
    shard: Shard,
    result: folder::Folder,
}

/// Points that were made, and the first of them that failed: its number and why.
pub type New = (u64, Option<(u64, String)>);

/// The tables of a study.
pub struct Tables {
    /// Points that the folder holds.
    pub done: u64,
    /// Points that failed.
    pub failed: u64,
    /// Tables of points and document, once all points are there.
    pub whole: Option<(Merged, Document)>,
}

impl Begun {
    /// Reads the records of the folder, which must not overwrite any of `inputs`.
    ///
    /// # Errors
    /// When the folder cannot be written, or has points of another plan.
    pub fn new(plan: Arc<Plan>, task: &Task, inputs: &[&Path]) -> Result<Begun> {
        let out = task.folder(&plan);
        let result = folder::Folder::create(&out)?.apart_from(inputs)?;
        let mut found = there(&plan, &out)?;
        if task.retry_failed {
            found.retry_failed();
        }
        Ok(Begun { plan, out, found, shard: task.shard(), result })
    }

    /// The number of points of this task, and of those made before.
    pub fn counts(&self) -> (u64, u64) {
        (self.shard.count(self.plan.count()), self.shard.done(&self.found))
    }

    /// Points that are to be made.
    pub fn missing(&self) -> Vec<u64> {
        let points = (0..self.shard.count(self.plan.count())).map(|n| self.shard.point(n));
        points.filter(|&point| !self.found.done.contains(point as usize)).collect()
    }

    /// A new segment for these points, with `name` in its file name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn segment(&self, name: &str) -> Result<Segment> {
        let name = format!("points-{}-{name}", std::process::id());
        Segment::create(&self.out, &name, &self.plan.header()).map_err(of_sweep)
    }

    /// Makes the missing points in this process.
    ///
    /// # Errors
    /// When a segment cannot be written.
    pub fn make(&self, threads: usize, shared: &Shared, made: &Made) -> Result<()> {
        let (folder, name) = (Folder::new(&self.out), format!("points-{}", std::process::id()));
        let of_plan = OfPlan { plan: &self.plan, maker: &Maker::default(), read: &read_text };
        work(&of_plan, (&folder, &name), (self.shard, &self.found), threads, shared, made).map_err(of_sweep)
    }

    /// Makes the tables and the page, if all points are there. `new` were made since it began.
    ///
    /// # Errors
    /// When the task's points are not all made, or something cannot be written.
    pub fn finish(self, new: u64, process: impl FnOnce() -> Process) -> Result<Tables> {
        let (count, before) = self.counts();
        if before + new < count {
            return Err(Interrupted.into());
        }
        let mut found = there(&self.plan, &self.out)?;
        let (done, failed) = (found.count(), found.failed());
        if done < self.plan.count() {
            return Ok(Tables { done, failed, whole: None });
        }
        let merged = merge(&mut found, &self.out).map_err(of_sweep)?;
        let mut doc = document(&self.plan, &mut found).map_err(of_sweep)?;
        doc.process = process();
        doc.validate()?;
        self.result.write(&doc)?;
        Ok(Tables { done, failed, whole: Some((merged, doc)) })
    }

    /// Files that [`Begun::finish`] leaves behind if the process ends in the middle.
    pub fn unfinished(&self) -> [PathBuf; 2] {
        unfinished(&self.out)
    }
}

/// What a folder has of a plan.
///
/// # Errors
/// When it cannot be read, or has points of another plan.
pub fn there(plan: &Plan, folder: &Path) -> Result<Found> {
    Found::of(&[Folder::new(folder)], Some(&plan.header())).map_err(of_sweep)
}

/// What workers have made.
pub fn new(made: &Made) -> New {
    let first = made.first_failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    (made.points.load(Ordering::Relaxed), first)
}

/// Why the first point failed, with its settings.
pub fn failure(plan: &Plan, (index, why): (u64, String)) -> String {
    format!("point {index} ({}): {why}", plan.describe(&plan.point(index)))
}

/// What several folders hold of one study, and the folder for its tables, which is removed again if it stays empty.
///
/// # Errors
/// When they hold nothing, or points of several studies.
pub fn gathered(folders: &[PathBuf], out: &Path) -> Result<(Found, NewFolder)> {
    let all: Vec<Folder> = folders.iter().map(Folder::new).collect();
    let found = Found::of(&all, None).map_err(of_sweep)?;
    if found.header.is_none() {
        let first = folders.first().map_or_else(String::new, |folder| format!("{}: ", folder.display()));
        return Err(usage(anyhow!("{first}no results of a study are there")));
    }
    Ok((found, NewFolder::create(out)?))
}
