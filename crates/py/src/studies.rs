// SPDX-License-Identifier: MIT OR Apache-2.0
//! Studies: the same plans, segments and tables as those of `readpath sweep`.

use crate::asked::since;
use crate::given::Source;
use anyhow::Result;
use pyo3::{FromPyObject, IntoPyObject};
use readpath_session::lab::runs::Shared;
use readpath_session::process::process;
use readpath_session::results::Process;
use readpath_session::runs::processors;
use readpath_session::studies::{self, Begun, New};
use readpath_session::study::{Made, Plan, merge};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The part of a study to make, and how.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Task {
    out: Option<PathBuf>,
    threads: Option<usize>,
    set: Vec<String>,
    shard: Option<String>,
    retry_failed: bool,
}

/// The outcome of a task.
#[derive(IntoPyObject)]
pub struct Swept {
    /// Name of the study.
    study: String,
    out: PathBuf,
    /// Points of the study.
    count: u64,
    /// Points that the folder holds.
    done: u64,
    /// Points that this call made.
    made: u64,
    failed: u64,
    /// Why the first failed point did, if this call made it.
    first_failure: Option<String>,
    /// Tables, once all points are there.
    points: Option<PathBuf>,
    failures: Option<PathBuf>,
    /// The result document as JSON, then, if this call knows the study.
    json: Option<String>,
    /// Records that are damaged.
    damaged: Vec<String>,
}

impl Task {
    fn task(&self) -> Result<studies::Task> {
        let shard = self.shard.as_deref().map(str::parse).transpose()?;
        Ok(studies::Task { out: self.out.clone(), shard, retry_failed: self.retry_failed })
    }
}

/// A study whose points go into a folder.
pub struct InFolder {
    pub begun: Begun,
    before: Process,
}

impl InFolder {
    /// Reads what the folder has.
    pub fn new(plan: Arc<Plan>, task: &Task) -> Result<InFolder> {
        let before = process();
        Ok(InFolder { begun: Begun::new(plan, &task.task()?, &[])?, before })
    }

    /// Makes the tables, and the page of the whole.
    pub fn finish(self, (new, first): New) -> Result<Swept> {
        let InFolder { begun, before } = self;
        let (plan, out, damaged) = (begun.plan.clone(), begun.out.clone(), begun.found.damaged.clone());
        let tables = begun.finish(new, || since(&before))?;
        let (merged, doc) = tables.whole.unzip();
        let (points, failures) = merged.map(|merged| (merged.points, merged.failed)).unzip();
        Ok(Swept {
            study: plan.study.name.clone(),
            out,
            count: plan.count(),
            done: tables.done,
            made: new,
            failed: tables.failed,
            first_failure: first.map(|first| studies::failure(&plan, first)),
            points,
            failures: failures.flatten(),
            json: doc.map(|doc| doc.to_json_pretty()).transpose()?,
            damaged,
        })
    }
}

/// Makes the points that the folder lacks.
pub fn sweep(source: &Source, task: &Task, shared: &Shared) -> Result<Swept> {
    let text = source.read()?;
    let study = InFolder::new(studies::planned(&text, &source.name, &task.set)?, task)?;
    let made = Made::default();
    study.begun.make(task.threads.unwrap_or_else(processors), shared, &made)?;
    study.finish(studies::new(&made))
}

/// Makes tables of what several folders hold.
pub fn merge_folders(folders: &[PathBuf], out: &Path) -> Result<Swept> {
    let (mut found, _made) = studies::gathered(folders, out)?;
    let header = found.header.clone();
    let (study, count) = header.map_or_else(Default::default, |header| (header.study, header.points));
    let (done, failed, damaged) = (found.count(), found.failed(), std::mem::take(&mut found.damaged));
    let merged = if done == count { Some(merge(&mut found, out)?) } else { None };
    let (points, failures) = merged.map(|merged| (merged.points, merged.failed)).unzip();
    Ok(Swept {
        study,
        out: out.to_owned(),
        count,
        done,
        made: 0,
        failed,
        first_failure: None,
        points,
        failures: failures.flatten(),
        json: None,
        damaged,
    })
}
