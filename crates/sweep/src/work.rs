// SPDX-License-Identifier: MIT OR Apache-2.0
//! Workers: threads that take the next point that is missing, make it, and append it to their own segment.

use crate::error::SweepError;
use crate::folder::{Folder, Found};
use crate::record::Record;
use crate::segment::{Header, Segment};
use readpath_lab::runs::Shared;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A part of a plan's points: those whose number leaves `index` when divided by `of`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    index: u64,
    of: u64,
}

impl Shard {
    /// All points.
    pub const WHOLE: Shard = Shard { index: 0, of: 1 };

    /// Points of a plan with `count` that belong to it.
    pub fn count(self, count: u64) -> u64 {
        count.saturating_sub(self.index).div_ceil(self.of)
    }

    /// The `n`th of its points.
    pub fn point(self, n: u64) -> u64 {
        n.saturating_mul(self.of).saturating_add(self.index)
    }

    /// Points of this shard that are among those found.
    pub fn done(self, found: &Found) -> u64 {
        found.done.ones().filter(|&point| point as u64 % self.of == self.index).count() as u64
    }
}

/// As a part of a file name: `2of8`.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}of{}", self.index + 1, self.of)
    }
}

impl FromStr for Shard {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse::<u64>().ok()?, n.parse::<u64>().ok()?)));
        match parts {
            Some((i, of)) if (1..=of).contains(&i) => Ok(Shard { index: i - 1, of }),
            _ => Err(SweepError::Shard(text.to_owned())),
        }
    }
}

/// What workers have done so far.
#[derive(Default, Debug)]
pub struct Made {
    /// Points that were made, failed ones included.
    pub points: AtomicU64,
    /// Points that failed.
    pub failed: AtomicU64,
    /// The first failed point: its number and the reason.
    pub first_failure: Mutex<Option<(u64, String)>>,
}

/// Points that are made by number: the same record of each, whichever worker makes it.
pub trait Work: Sync {
    /// Figures of a point.
    type Figures: Serialize + DeserializeOwned;

    /// The first line of its segments.
    fn header(&self) -> Header;

    /// Makes a point; none if it was stopped by `shared`.
    ///
    /// # Errors
    /// When no further point is to be made.
    fn make(&self, index: u64, shared: &Shared) -> Result<Option<Record<Self::Figures>>, SweepError>;
}

/// Makes the points of `shard` that are not in `found`, on so many threads, until all are made or `shared.stop` is set.
/// Each thread has a segment in `folder`, whose name begins with `name`.
///
/// # Errors
/// When a segment cannot be written, or no further point is to be made; other threads stop then.
pub fn work<W: Work>(
    work: &W,
    (folder, name): (&Folder, &str),
    (shard, found): (Shard, &Found),
    threads: usize,
    shared: &Shared,
    made: &Made,
) -> Result<(), SweepError> {
    let next = AtomicU64::new(0);
    let header = work.header();
    let worker = |thread: usize| -> Result<(), SweepError> {
        let mut segment: Option<Segment> = None;
        loop {
            let index = shard.point(next.fetch_add(1, Ordering::Relaxed));
            if index >= header.points || shared.stop.load(Ordering::Relaxed) {
                break;
            }
            if found.done.contains(index as usize) {
                continue;
            }
            let Some(record) = work.make(index, shared)? else { break };
            if let Some(why) = record.failure() {
                made.failed.fetch_add(1, Ordering::Relaxed);
                let mut first = made.first_failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if first.as_ref().is_none_or(|(other, _)| *other > index) {
                    *first = Some((index, why.to_owned()));
                }
            }
            if segment.is_none() {
                segment = Some(Segment::create(folder.path(), &format!("{name}-{thread}"), &header)?);
            }
            if let Some(segment) = &mut segment {
                segment.append(&record.line())?;
            }
            made.points.fetch_add(1, Ordering::Relaxed);
        }
        segment.map_or(Ok(()), Segment::finish)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1))
            .map(|thread| {
                let worker = &worker;
                scope.spawn(move || {
                    let result = worker(thread);
                    if result.is_err() {
                        shared.stop.store(true, Ordering::Relaxed);
                    }
                    result
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or(Ok(())))
    })
}
