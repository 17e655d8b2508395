// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any question whose points go into a folder: it can be stopped and asked again, and processes can share its points.
//! Points that depend on the answers of others are a round of their own, in a folder of their own.

use crate::error::SweepError;
use crate::folder::{Folder, Found};
use crate::merge::each;
use crate::plan::hex;
use crate::record::{Outcome, Record};
use crate::segment::Header;
use crate::work::{Made, Shard, Work, work};
use readpath_lab::question::{AskError, Done, Point, Question, figures};
use readpath_lab::replay::ReplayCase;
use readpath_lab::runs::Shared;
use sha2::{Digest, Sha256};
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// Where the points of a question are kept, and which of them this process makes.
#[derive(Clone, Debug)]
pub struct Keep {
    /// The folder.
    pub folder: PathBuf,
    /// Points of each round that are made here.
    pub shard: Shard,
}

/// What became of the points of a question.
#[derive(Debug)]
pub enum Kept<F> {
    /// All points are made.
    All(Vec<Done<F>>),
    /// Other shards have to make theirs first: points of this round that are made, and all of them.
    Part {
        /// Points that are made.
        made: u64,
        /// Points of the round.
        points: u64,
    },
}

/// Points of a question that are known at the same time: the first points, or the points that depend on all earlier
/// ones.
pub struct Round<'a, Q> {
    question: &'a Q,
    points: &'a [Point],
    /// The number of the first.
    first: usize,
    header: OnceLock<Header>,
}

impl<'a, Q: Question> Round<'a, Q> {
    /// Points of a question, of which the first has this number.
    pub fn new(question: &'a Q, points: &'a [Point], first: usize) -> Self {
        Round { question, points, first, header: OnceLock::new() }
    }

    /// The folder of its records, within the folder of its question. It is created if it does not exist.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn folder(&self, of_question: &Path) -> Result<Folder, SweepError> {
        let path = match self.first {
            0 => of_question.to_owned(),
            first => of_question.join(format!("after-{first}")),
        };
        let cannot = |error| SweepError::Io { path: path.clone(), what: "cannot be made", error };
        fs::create_dir_all(&path).map_err(cannot)?;
        Ok(Folder::new(path))
    }

    /// What its folder has.
    ///
    /// # Errors
    /// As [`Found::of`].
    pub fn found(&self, folder: &Folder) -> Result<Found, SweepError> {
        Found::of(std::slice::from_ref(folder), Some(&self.header()))
    }

    /// Records of it that were found, in order.
    ///
    /// # Errors
    /// When a segment cannot be read again.
    pub fn records(&self, found: &mut Found) -> Result<Vec<Record<Q::Figures>>, SweepError> {
        let mut records = Vec::with_capacity(self.points.len());
        found.sort();
        each(found, |record| {
            records.push(record);
            Ok(())
        })?;
        Ok(records)
    }
}

impl<Q: Question> Work for Round<'_, Q> {
    type Figures = Q::Figures;

    fn header(&self) -> Header {
        let new = || {
            let keys = ["case", "variant"].map(str::to_owned).into();
            Header::new(&self.question.title(), digest(self.points), self.points.len() as u64, keys)
        };
        self.header.get_or_init(new).clone()
    }

    fn make(&self, index: u64, shared: &Shared) -> Result<Option<Record<Q::Figures>>, SweepError> {
        let point = &self.points[index as usize];
        let outcome = match figures(self.question, point.run(self.first + index as usize, shared)) {
            Ok(figures) => Outcome::Figures(figures),
            Err(AskError::Run(error)) if error.is_interruption() => return Ok(None),
            Err(AskError::Run(error)) if self.question.stands_without() => Outcome::Error(error.to_string()),
            Err(error) => return Err(SweepError::Ask(error)),
        };
        let settings = vec![point.case().to_owned(), point.variant().to_owned()];
        Ok(Some(Record { point: index, seed: None, settings, ios: 0, outcome }))
    }
}

/// Makes the points of a question that its folder lacks, on `threads` threads.
///
/// # Errors
/// When the folder has points of another question or cannot be written, a point fails that the question does not stand
/// without, or `shared` says to stop.
pub fn keep<Q: Question>(
    question: &Q,
    keep: &Keep,
    threads: usize,
    shared: &Shared,
) -> Result<Kept<Q::Figures>, SweepError> {
    let mut done = Vec::new();
    let mut more: Vec<Point>;
    let mut points = question.points();
    while !points.is_empty() {
        let round = Round::new(question, points, done.len());
        match of_round(&round, keep, threads, shared)? {
            Kept::All(these) => done.extend(these),
            part @ Kept::Part { .. } => return Ok(part),
        }
        more = question.more(&done)?;
        points = &more;
    }
    match done.first() {
        Some(Err(why)) if !done.iter().any(Result::is_ok) => Err(SweepError::AllFailed(why.clone())),
        _ => Ok(Kept::All(done)),
    }
}

fn of_round<Q: Question>(
    round: &Round<'_, Q>,
    keep: &Keep,
    threads: usize,
    shared: &Shared,
) -> Result<Kept<Q::Figures>, SweepError> {
    let folder = round.folder(&keep.folder)?;
    let mut before = round.found(&folder)?;
    // A failure may have had its reason in the machine, such as its memory.
    before.retry_failed();
    let there = before.done.ones().filter_map(|point| round.points[point].expected_ios()).sum();
    shared.ios.fetch_add(there, Ordering::Relaxed);
    let name = format!("points-{}-{}", keep.shard, std::process::id());
    work(round, (&folder, &name), (keep.shard, &before), threads, shared, &Made::default())?;
    if shared.stop.load(Ordering::Relaxed) {
        return Err(SweepError::Interrupted);
    }
    let mut found = round.found(&folder)?;
    let (made, points) = (found.count(), round.points.len() as u64);
    if made < points {
        return Ok(Kept::Part { made, points });
    }
    Ok(Kept::All(round.records(&mut found)?.into_iter().map(|record| record.outcome.done()).collect()))
}

/// A digest of all that runs depend on.
fn digest(points: &[Point]) -> String {
    let mut digest = Sum(Sha256::new());
    let mut seen: Vec<&Arc<ReplayCase>> = Vec::new();
    for point in points {
        point.settings().hash(&mut digest);
        let Some(case) = point.trace() else { continue };
        // A trace has many requests, and points share it, so it is hashed once.
        let place = seen.iter().position(|other| Arc::ptr_eq(other, case)).unwrap_or_else(|| {
            case.phases().for_each(|(_, trace)| trace.ios.hash(&mut digest));
            seen.push(case);
            seen.len() - 1
        });
        place.hash(&mut digest);
    }
    hex(&digest.0.finalize())
}

/// A SHA-256 sum in progress.
struct Sum(Sha256);

impl Hasher for Sum {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The trait asks for it; only the whole sum is used.
    fn finish(&self) -> u64 {
        0
    }
}
