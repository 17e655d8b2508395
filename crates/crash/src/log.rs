// SPDX-License-Identifier: MIT OR Apache-2.0
//! The changes of a recording, block by block: which blocks were touched, what each change leaves in them, and from
//! when on a change is durable by the rules of flush and FUA. It knows no state.

use crate::base::{BLOCK, Base, Block};
use crate::error::CrashError;
use crate::state::Cell;
use readpath_kit::Ns;
use readpath_serve::{Change, Changes, Mark, Recorded, What};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// A digest of content.
pub(crate) type Digest = u128;

/// The first half of a SHA-256.
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    let full = Sha256::digest(bytes);
    full.iter().take(16).fold(0, |digest, &byte| digest << 8 | u128::from(byte))
}

/// A whole block that a change wrote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    /// The change, and where in its data the block begins.
    change: u32,
    at: u32,
    pub(crate) digest: Digest,
}

/// What a change does to a touched block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    /// All of it is that version.
    Whole(u32),
    /// All of it is zeros.
    Zeros,
    /// A part of it changes.
    Part,
}

/// See the module.
pub struct Log {
    /// Changes of content and flushes, as they were sent.
    pub(crate) changes: Vec<Change>,
    /// When each change became durable; never if it did not.
    pub(crate) durable: Vec<Ns>,
    /// The touched blocks, ascending.
    pub(crate) blocks: Vec<u32>,
    /// The touched blocks of each change, in `pieces`: its first one's place there, and in `blocks`.
    at: Vec<(usize, usize)>,
    pieces: Vec<Piece>,
    versions: Vec<Version>,
    /// Digest of each touched block before the recording, and the factor that distinguishes it from others.
    pub(crate) before: Vec<Digest>,
    pub(crate) factors: Vec<Digest>,
    /// Digest of a block of zeros.
    pub(crate) zeros: Digest,
    /// As they were made.
    pub(crate) marks: Vec<Mark>,
    /// The order that ended what counts.
    pub until: Option<(u64, String)>,
}

impl Log {
    /// The changes of a recording that began with this content.
    ///
    /// # Errors
    /// The recording has no data, or is of another disk; or the image cannot be read.
    pub fn new(recorded: &Recorded, base: &Base) -> Result<Log, CrashError> {
        let Changes { changes, marks, until } = recorded.changes(base.bytes()).map_err(CrashError::Recording)?;
        let mut log = Log {
            durable: durable(&changes),
            changes,
            blocks: Vec::new(),
            at: Vec::new(),
            pieces: Vec::new(),
            versions: Vec::new(),
            before: Vec::new(),
            factors: Vec::new(),
            zeros: digest(&[0; BLOCK]),
            marks,
            until,
        };
        let touched: BTreeSet<u32> = log.changes.iter().flat_map(blocks).collect();
        log.blocks = touched.into_iter().collect();
        let mut block = [0; BLOCK];
        for &number in &log.blocks {
            base.read(number, &mut block)?;
            log.before.push(digest(&block));
            // Odd, so that no digest becomes another's.
            log.factors.push(digest(&number.to_le_bytes()) | 1);
        }
        for (index, change) in log.changes.iter().enumerate() {
            let touched = blocks(change);
            let first = log.blocks.partition_point(|&block| block < touched.start);
            log.at.push((log.pieces.len(), first));
            let pieces = &mut log.pieces;
            let versions = &mut log.versions;
            pieces.extend(touched.map(|block| match (part(change, block) == (0..BLOCK), &change.what) {
                (true, What::Zeros(_)) => Piece::Zeros,
                (true, What::Data(data)) => {
                    let at = (u64::from(block) * BLOCK as u64 - change.offset) as usize;
                    let digest = digest(&data[at..at + BLOCK]);
                    versions.push(Version { change: index as u32, at: at as u32, digest });
                    Piece::Whole(versions.len() as u32 - 1)
                }
                _ => Piece::Part,
            }));
        }
        Ok(log)
    }

    /// What a change does to touched blocks: each one's place in `blocks`, its number, and what.
    pub(crate) fn pieces(&self, change: usize) -> impl Iterator<Item = (usize, u32, Piece)> + '_ {
        let (piece, first) = self.at[change];
        let end = self.at.get(change + 1).map_or(self.pieces.len(), |&(end, _)| end);
        self.pieces[piece..end].iter().enumerate().map(move |(i, &piece)| (first + i, self.blocks[first + i], piece))
    }

    pub(crate) fn version(&self, version: u32) -> (&[u8], Digest) {
        let Version { change, at, digest } = self.versions[version as usize];
        match &self.changes[change as usize].what {
            What::Data(data) => (&data[at as usize..at as usize + BLOCK], digest),
            What::Flush | What::Zeros(_) => unreachable!("only data has versions"),
        }
    }

    /// Changes the bytes of `range`, which are of the disk, in a block as far as they lie in it.
    pub(crate) fn patch(&self, change: usize, range: Range<u64>, number: u32, block: &mut Block) {
        let change = &self.changes[change];
        let first = u64::from(number) * BLOCK as u64;
        let (from, to) = (range.start.max(first), range.end.min(first + BLOCK as u64));
        if from < to {
            let part = &mut block[(from - first) as usize..(to - first) as usize];
            match &change.what {
                What::Data(data) => {
                    part.copy_from_slice(&data[(from - change.offset) as usize..(to - change.offset) as usize]);
                }
                What::Zeros(_) | What::Flush => part.fill(0),
            }
        }
    }

    /// A digest of all that the outcome of a state depends on beside the state: the content before, and the command
    /// that checks.
    pub fn identity(&self, check: &[String]) -> String {
        let mut all = Sha256::new();
        for (block, before) in self.blocks.iter().zip(&self.before) {
            all.update(block.to_le_bytes());
            all.update(before.to_le_bytes());
        }
        for word in check {
            all.update((word.len() as u64).to_le_bytes());
            all.update(word);
        }
        all.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A change, for people.
    pub(crate) fn described(&self, change: usize) -> String {
        let Change { number, sent, offset, what, fua, .. } = &self.changes[change];
        let (bytes, fua) = (self.changes[change].bytes(), if *fua { " with FUA" } else { "" });
        let kind = if matches!(what, What::Data(_)) { "write" } else { "zeros" };
        format!("{kind} {number}{fua}, {bytes} bytes at {offset}, sent at {sent}")
    }

    /// The known contents of touched blocks, by place and digest.
    pub(crate) fn cells(&self) -> HashMap<(usize, Digest), Cell> {
        let mut cells = HashMap::new();
        for change in 0..self.changes.len() {
            for (place, _, piece) in self.pieces(change) {
                if let Piece::Whole(version) = piece {
                    cells.insert((place, self.version(version).1), Cell::Version(version));
                }
            }
        }
        for (place, &before) in self.before.iter().enumerate() {
            cells.insert((place, self.zeros), Cell::Zeros);
            cells.insert((place, before), Cell::Before);
        }
        cells
    }

    /// The change that touched a block last, of those that were sent by then.
    pub(crate) fn last_of(&self, place: usize, now: Ns) -> Option<usize> {
        let touches = |&change: &usize| self.pieces(change).any(|(of, ..)| of == place);
        (0..self.changes.len()).rev().filter(|&change| self.changes[change].sent <= now).find(touches)
    }

    /// The last mark up to a time.
    pub(crate) fn mark(&self, now: Ns) -> Option<&Mark> {
        let marks = self.marks.partition_point(|mark| mark.at <= now);
        marks.checked_sub(1).map(|last| &self.marks[last])
    }

    /// The last mark up to a time, for people.
    pub(crate) fn marked(&self, now: Ns) -> String {
        self.mark(now).map(|mark| format!("; the last mark is {} '{}'", mark.number, mark.words)).unwrap_or_default()
    }

    /// The place of a change by its number.
    pub(crate) fn find(&self, number: u64) -> Option<usize> {
        self.changes.binary_search_by_key(&number, |change| change.number).ok()
    }
}

/// The bytes of the disk that a change touches.
pub(crate) fn range(change: &Change) -> Range<u64> {
    change.offset..change.offset + change.bytes()
}

fn blocks(change: &Change) -> Range<u32> {
    let Range { start, end } = range(change);
    let end = end.div_ceil(BLOCK as u64) as u32;
    ((start / BLOCK as u64) as u32).min(end)..if start == range(change).end { 0 } else { end }
}

/// The part of a block that a change touches.
fn part(change: &Change, block: u32) -> Range<usize> {
    let first = u64::from(block) * BLOCK as u64;
    let Range { start, end } = range(change);
    start.saturating_sub(first) as usize..(end - first).min(BLOCK as u64) as usize
}

/// When each change becomes durable: when it is answered if it has FUA, or when a flush is answered that was sent after
/// its own answer.
fn durable(changes: &[Change]) -> Vec<Ns> {
    let mut flushes: Vec<(Ns, Ns)> =
        changes.iter().filter(|c| c.what == What::Flush).map(|c| (c.sent, c.answered)).collect();
    flushes.sort();
    // The first answer of those sent then or later.
    let mut first = Ns::NEVER;
    for (_, answered) in flushes.iter_mut().rev() {
        first = first.min(*answered);
        *answered = first;
    }
    let of = |change: &Change| {
        let next = flushes.partition_point(|&(sent, _)| sent <= change.answered);
        let flushed = flushes.get(next).map_or(Ns::NEVER, |&(_, answered)| answered);
        if change.fua { flushed.min(change.answered) } else { flushed }
    };
    changes.iter().map(of).collect()
}
