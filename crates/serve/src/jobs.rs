// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of clients in flight: their data, their steps, and which of them wait for others. It knows no socket and no
//! device.

use crate::edges::{Ask, BLOCK, Step, Steps};
use crate::nbd::Errno;
use crate::record::Asked;
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::Ns;
use readpath_run::rules::{Late, Request};
use readpath_workload::{Io, IoKind};
use std::collections::VecDeque;

/// Blocks of zeros that are written at once, and blocks of a CACHE that are read at once.
const AT_ONCE: u32 = 256;

/// Whose request it is: a place in the table of clients, and which of the clients that were there.
pub(crate) type Owner = (usize, u32);

/// What rules do to a request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Fate {
    /// How much longer it takes.
    pub late: Late,
    /// How far behind its place it goes, around the end of 64 bits.
    pub away: u64,
    /// The bit of what it reads that is flipped.
    pub flips: Option<u64>,
}

/// Why a request failed: for the client, and in words.
pub(crate) type Failure = (Errno, String);

/// A request under way.
#[derive(Default)]
pub(crate) struct Job {
    /// None if it is the server's own.
    pub owner: Option<Owner>,
    /// Its logical unit.
    pub unit: u8,
    /// The client's name for it.
    pub handle: u64,
    /// Its place among all requests.
    pub number: u64,
    pub ask: Ask,
    pub offset: u64,
    pub bytes: u32,
    /// Bytes of memory that it takes.
    pub held: usize,
    pub steps: Steps,
    /// The data read, or to be written.
    pub data: Vec<u8>,
    /// When it was read from the socket.
    pub since: Ns,
    /// How often the device had lost its power when its first step was submitted.
    pub power_losses: u32,
    /// Changes that were answered when it came.
    pub covers: u64,
    /// What rules do to it.
    pub fate: Fate,
    /// Why it failed.
    pub failure: Option<Failure>,
}

impl Job {
    /// The byte where it goes: its offset, unless a rule misdirects it.
    pub(crate) fn place(&self) -> u64 {
        self.offset.wrapping_add(self.fate.away)
    }

    /// The request as rules look at it.
    pub(crate) fn ruled(&self) -> Request {
        let &Job { owner, unit, ask, offset, bytes, .. } = self;
        Request { op: ask.op(), unit, offset, bytes, client: owner.map(|(_, life)| life) }
    }

    /// The first block that it touches, and the one behind the last.
    fn blocks(&self) -> (u64, u64) {
        (self.place() / BLOCK as u64, (self.place() + u64::from(self.bytes)).div_ceil(BLOCK as u64))
    }

    /// The request as it is recorded: it has ended at `now`.
    pub(crate) fn asked(&self, now: Ns) -> Asked {
        let &Job { owner, unit, number, ask, offset, bytes, since, .. } = self;
        let client = owner.map(|(_, life)| life);
        Asked { at: since, unit, ask, offset, bytes, client, number, modelled: now - since, served: None }
    }

    fn overlaps(&self, other: &Job) -> bool {
        let ((first, end), (from, to)) = (self.blocks(), other.blocks());
        self.unit == other.unit && from < end && first < to
    }

    fn changes_blocks(&self) -> bool {
        matches!(self.ask.kind(), IoKind::Write | IoKind::Trim)
    }
}

struct Place {
    job: Job,
    /// The block that is being merged.
    edge: Vec<u8>,
    is_active: bool,
}

/// The requests under way.
#[derive(Default)]
pub(crate) struct Jobs {
    places: Vec<Place>,
    free: Vec<u32>,
    /// Requests that have not ended.
    count: u32,
    /// Requests that have not begun, in order.
    waiting: VecDeque<u32>,
    /// Requests that have begun and merge blocks at their edges.
    edges: u32,
}

impl Jobs {
    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn get(&self, cookie: u32) -> &Job {
        &self.places[cookie as usize].job
    }

    pub(crate) fn get_mut(&mut self, cookie: u32) -> &mut Job {
        &mut self.places[cookie as usize].job
    }

    /// The request has failed, and is over.
    pub(crate) fn fail(&mut self, cookie: u32, failure: Failure) {
        self.places[cookie as usize].job.failure = Some(failure);
    }

    /// The request as a run names it.
    pub(crate) fn io(&self, cookie: u32) -> Io {
        let job = self.get(cookie);
        let (first, end) = job.blocks();
        let blocks = (end - first).min(u64::from(u16::MAX)) as u16;
        Io { block: first as u32, blocks, kind: job.ask.kind(), fua: false }
    }

    /// Takes a request in. Returns its cookie if it may begin now; else it has to wait for others.
    pub(crate) fn add(&mut self, job: Job) -> Option<u32> {
        let place = Place { job, edge: Vec::new(), is_active: false };
        let cookie = match self.free.pop() {
            Some(cookie) => {
                self.places[cookie as usize] = place;
                cookie
            }
            None => {
                self.places.push(place);
                (self.places.len() - 1) as u32
            }
        };
        self.count += 1;
        if self.must_wait(cookie) || self.waits_behind(cookie) {
            self.waiting.push_back(cookie);
            return None;
        }
        self.begin(cookie);
        Some(cookie)
    }

    fn begin(&mut self, cookie: u32) {
        let place = &mut self.places[cookie as usize];
        place.is_active = true;
        self.edges += u32::from(place.job.steps.has_edges());
    }

    /// Whether a request has to wait for one that has begun and changes the same blocks: a block whose edges are being
    /// merged must stay as it was read.
    fn must_wait(&self, cookie: u32) -> bool {
        let job = self.get(cookie);
        let has_edges = job.steps.has_edges();
        job.changes_blocks()
            && (self.edges > 0 || has_edges)
            && self.places.iter().any(|other| {
                let edges = has_edges || other.job.steps.has_edges();
                other.is_active && edges && other.job.changes_blocks() && other.job.overlaps(job)
            })
    }

    /// Requests that have not begun.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a request has to let those go first that wait for the same blocks.
    fn waits_behind(&self, cookie: u32) -> bool {
        let job = self.get(cookie);
        job.changes_blocks() && self.waiting.iter().any(|&waiting| self.get(waiting).overlaps(job))
    }

    /// The next request that has waited and may begin now.
    pub(crate) fn next_waiting(&mut self) -> Option<u32> {
        let may_begin = |&i: &usize| {
            let cookie = self.waiting[i];
            let job = self.get(cookie);
            // Requests that have waited longer go first.
            !self.must_wait(cookie) && !self.waiting.range(..i).any(|&before| self.get(before).overlaps(job))
        };
        let i = (0..self.waiting.len()).find(may_begin)?;
        let cookie = self.waiting.remove(i)?;
        self.begin(cookie);
        Some(cookie)
    }

    /// What the step that is due asks of the device, and its data; `spare` gives a buffer to read into.
    pub(crate) fn request(&mut self, cookie: u32, spare: impl FnOnce() -> Option<Vec<u8>>) -> (BlockRequest, Vec<u8>) {
        let Place { job, edge, .. } = &mut self.places[cookie as usize];
        let lun = job.unit;
        let of = |op, block, blocks| BlockRequest { cookie, lun, op, block, blocks };
        match job.steps.now().unwrap_or(Step::Flush) {
            Step::Read { block, blocks } => {
                let mut data = spare().unwrap_or_default();
                data.resize(blocks as usize * BLOCK, 0);
                (of(BlockOp::Read, block, blocks), data)
            }
            Step::Fetch { block } => {
                let mut data = std::mem::take(edge);
                data.resize(BLOCK, 0);
                (of(BlockOp::Read, block, 1), data)
            }
            Step::Merge { block, from, bytes, at } => {
                let mut data = std::mem::take(edge);
                match job.data.get(at..at + bytes) {
                    Some(new) => data[from..from + bytes].copy_from_slice(new),
                    None => data[from..from + bytes].fill(0),
                }
                (of(BlockOp::Write, block, 1), data)
            }
            Step::Write { block, blocks, at, fua } => {
                let op = if fua { BlockOp::WriteFua } else { BlockOp::Write };
                let bytes = blocks as usize * BLOCK;
                let data = match job.data.len() == bytes {
                    true => std::mem::take(&mut job.data),
                    false => job.data[at..at + bytes].to_vec(),
                };
                (of(op, block, blocks), data)
            }
            Step::Zero { block, blocks } => {
                let blocks = blocks.min(AT_ONCE);
                (of(BlockOp::Write, block, blocks), vec![0; blocks as usize * BLOCK])
            }
            Step::Cache { block, blocks } => (of(BlockOp::Read, block, blocks.min(AT_ONCE)), Vec::new()),
            Step::Discard { block, blocks } => (of(BlockOp::Discard, block, blocks), Vec::new()),
            Step::Flush => (of(BlockOp::Flush, 0, 0), Vec::new()),
        }
    }

    /// The step that was due is done, with this data. True if another is due.
    pub(crate) fn step_done(&mut self, cookie: u32, data: Vec<u8>) -> bool {
        let Place { job, edge, .. } = &mut self.places[cookie as usize];
        match job.steps.now() {
            Some(Step::Fetch { .. } | Step::Merge { .. }) => *edge = data,
            _ if job.data.is_empty() => job.data = data,
            _ => {}
        }
        job.steps.done(AT_ONCE);
        job.steps.now().is_some()
    }

    /// Those that have not ended.
    pub(crate) fn into_jobs(self) -> Vec<Job> {
        let mut has_ended = vec![false; self.places.len()];
        self.free.iter().for_each(|&cookie| has_ended[cookie as usize] = true);
        let places = self.places.into_iter().zip(has_ended);
        places.filter(|(_, has_ended)| !has_ended).map(|(place, _)| place.job).collect()
    }

    /// The request has ended; its cookie may be given out again.
    pub(crate) fn end(&mut self, cookie: u32) -> Job {
        let place = &mut self.places[cookie as usize];
        place.is_active = false;
        self.edges -= u32::from(place.job.steps.has_edges());
        self.count -= 1;
        self.free.push(cookie);
        std::mem::take(&mut place.job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(ask: Ask, offset: u64, bytes: u32) -> Job {
        let data = vec![7; if ask.kind() == IoKind::Write { bytes as usize } else { 0 }];
        Job { ask, offset, bytes, steps: Steps::new(ask, offset, bytes), data, ..Job::default() }
    }

    fn write(offset: u64, bytes: u32) -> Job {
        job(Ask::Write { fua: false }, offset, bytes)
    }

    #[test]
    fn who_writes_a_block_waits_while_its_edges_are_merged() {
        let mut jobs = Jobs::default();
        let merging = jobs.add(write(100, 50)).expect("no other write is under way");
        assert_eq!(jobs.add(write(0, 4096)), None, "the same block");
        assert_eq!(jobs.add(write(200, 50)), None, "the same block");
        assert!(jobs.add(write(4096, 4096)).is_some(), "another block");
        assert!(jobs.add(Job { unit: 1, ..write(200, 50) }).is_some(), "another unit");
        let read = job(Ask::Read, 0, 4096);
        assert!(jobs.add(read).is_some(), "reads change nothing");
        assert_eq!((jobs.next_waiting(), jobs.count()), (None, 6));
        jobs.end(merging);
        let next = jobs.next_waiting().expect("the first that waited");
        assert_eq!(jobs.get(next).bytes, 4096);
        assert_eq!(jobs.next_waiting(), None, "a write of the block is under way");
        jobs.end(next);
        let last = jobs.next_waiting().expect("no other write is under way");
        assert_eq!((jobs.get(last).bytes, jobs.next_waiting()), (50, None));
    }

    #[test]
    fn who_waits_is_not_overtaken() {
        let mut jobs = Jobs::default();
        let whole = jobs.add(write(0, 4096)).expect("no other write is under way");
        assert_eq!(jobs.add(write(0, 10)), None);
        assert_eq!(jobs.add(write(0, 4096)), None, "it came later");
        jobs.end(whole);
        let next = jobs.next_waiting().expect("the first that waited");
        assert_eq!((jobs.get(next).bytes, jobs.waiting()), (10, 1));
    }

    #[test]
    fn whole_writes_do_not_wait_for_each_other() {
        let mut jobs = Jobs::default();
        assert!(jobs.add(write(0, 8192)).is_some() && jobs.add(write(4096, 8192)).is_some());
        assert_eq!(jobs.add(write(4000, 10)), None, "but one that merges waits for them");
    }

    #[test]
    fn data_goes_through_the_steps() {
        let mut jobs = Jobs::default();
        let cookie = jobs.add(write(4000, 5000)).unwrap();
        let mut wrote = Vec::new();
        loop {
            let (request, mut data) = jobs.request(cookie, || None);
            match request.op {
                BlockOp::Write => wrote.push((request.block, data.iter().filter(|&&byte| byte == 7).count())),
                // The device holds zeros.
                _ => data.fill(0),
            }
            if !jobs.step_done(cookie, data) {
                break;
            }
        }
        assert_eq!(wrote, [(0, 96), (1, 4096), (2, 808)]);
    }
}
