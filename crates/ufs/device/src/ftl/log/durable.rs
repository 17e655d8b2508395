// SPDX-License-Identifier: MIT OR Apache-2.0
//! What flash holds other than data: the newest checkpoint, and everything programmed since, in order. A power cut
//! leaves only this. Recovery pays for reading it page by page; a running device does not read it.

use super::spare_refs::Refs;
use crate::ftl::map::Entry;
use crate::ftl::map::stretch::{self, Stretch};
use crate::ftl::space::{Stream, Superblock};
use crate::ftl::zones::ZoneStates;
use crate::ids::{Lpn, MapPage, Mark, SuperblockId};
use readpath_flash::Ppn;

/// A record of the journal: facts that the spare areas of data do not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) enum Record {
    /// A superblock is about to be written.
    Open {
        /// The stream that it is written for.
        stream: Stream,
        /// Superblock.
        superblock: SuperblockId,
        /// See [`Superblock::opened_at`].
        opened_at: u32,
    },
    /// A superblock is about to be erased.
    Erase {
        /// Superblock.
        superblock: SuperblockId,
    },
    /// Blocks were trimmed.
    Trim {
        /// First logical page.
        lpn: Lpn,
        /// Logical pages.
        count: u32,
        /// Orders it among writes.
        sequence: u32,
    },
    /// A zone is full from now on, although not all of it was written.
    Finish {
        /// Its first logical page.
        lpn: Lpn,
        /// Blocks that were written.
        written: u32,
        /// Orders it among writes.
        sequence: u32,
    },
    /// HPB generations up to this one may have been handed out.
    Generations {
        /// The last of them.
        up_to: u64,
    },
}

impl Record {
    /// Bytes in flash.
    pub(super) const BYTES: u32 = 16;

    /// Sequence numbers now count from `base` on.
    pub(super) fn renumber(&mut self, base: u32) {
        if let Record::Trim { sequence, .. } | Record::Finish { sequence, .. } = self {
            *sequence = sequence.saturating_sub(base);
        }
    }
}

/// A part of a unit of the meta stream, as long as a map page.
#[derive(Clone, Debug)]
pub(super) enum Held {
    /// A map page, and how its write changed the references into superblocks.
    Map {
        /// Map page.
        page: MapPage,
        /// Where it begins.
        at: Ppn,
        /// See [`Superblock::opened_at`]: when its entries were put together.
        written_at: u32,
        /// The newest sequence number when it was put together.
        sequence: u32,
        /// How many of [`Durable::refs`], after those of the map pages before it, belong to it.
        refs: u32,
        /// Whether they fit into its spare area. If not, `refs` is 0.
        fits: bool,
    },
    /// Records of the journal.
    Journal {
        /// Number of the first.
        first: Mark,
        /// In order.
        records: Vec<Record>,
    },
    /// The superblock in which the meta stream continues, as the spare areas of the unit say.
    Next {
        /// Superblock.
        superblock: SuperblockId,
        /// See [`Superblock::opened_at`].
        opened_at: u32,
    },
}

/// A program since the newest checkpoint, complete or torn.
#[derive(Clone, Debug)]
pub(super) enum Logged {
    /// A unit of data; the spare areas of its slices hold the logical pages.
    Data {
        /// First slice.
        first: Ppn,
    },
    /// A unit of data that was being programmed at the power cut: its spare areas may say anything, and their check
    /// fails.
    Torn {
        /// First slice.
        first: Ppn,
        /// What the spare areas say: logical page and sequence number of each slice.
        spares: Vec<(Option<Lpn>, u32)>,
    },
    /// A unit of the meta stream. Its parts follow in the log.
    Meta {
        /// First slice.
        first: Ppn,
        /// Parts that it holds.
        parts: u32,
    },
    /// A part of the unit before it.
    Part(Held),
}

/// The state of the device at a moment when no program was in progress.
#[derive(Clone, Debug, Default)]
pub(in crate::ftl) struct Checkpoint {
    /// Next sequence number.
    pub sequence: u32,
    /// Blocks that were in the write buffer then have this sequence number or a later one: they are programmed after
    /// the checkpoint.
    pub oldest: u32,
    /// Openings of superblocks and writes of map pages so far.
    pub ticks: u32,
    /// HPB generations up to this one may have been handed out.
    pub generations: u64,
    /// Number of the newest record of the journal, in flash or not: the checkpoint includes it.
    pub journal: Mark,
    /// Where each map page begins.
    pub directory: Vec<Option<Ppn>>,
    pub superblocks: Vec<Superblock>,
    /// Logical page and entry of each change: clean, each page once, in order. `None` until a power cut: looking up
    /// thousands of entries for every checkpoint would be wasted without one; [`Durable::note_changed`] keeps the old
    /// entries instead.
    pub changes: Option<Vec<Stretch>>,
    /// Entries of the table of changes that were in use.
    pub used: u32,
    /// Map pages in which stretches were trimmed, and how many: each takes a place of the table of changes.
    pub trims: Vec<(MapPage, u32)>,
    /// Zones of all units.
    pub zones: ZoneStates,
    /// Map pages that the checkpoint takes in flash.
    pub slots: u32,
    /// Where its programmed parts are; its anchor names them.
    pub places: Vec<Ppn>,
}

pub(super) struct Durable {
    /// The checkpoint that the newest anchor leads to.
    pub checkpoint: Checkpoint,
    /// Programs since, in the order in which they ended.
    pub log: Vec<Logged>,
    /// Superblocks that gained or lost references by the map pages in the log, in its order. The spare area of each
    /// map page holds its own, if they fit ([`super::spare_refs`]); one list for all avoids an allocation for each.
    pub refs: Vec<Refs>,
    /// See [`Durable::note_changed`].
    changed: Vec<Stretch>,
    /// A checkpoint that is being written.
    pub pending: Option<Pending>,
}

/// A checkpoint that is being written, and the lengths of the logs when it was put together.
pub(super) struct Pending {
    checkpoint: Checkpoint,
    log: usize,
    changed: usize,
}

impl Checkpoint {
    /// Sequence numbers now count from `base` on.
    fn renumber(&mut self, base: u32) {
        self.sequence = self.sequence.saturating_sub(base);
        self.oldest = self.oldest.saturating_sub(base);
        self.superblocks.iter_mut().for_each(|sb| sb.closed_at = sb.closed_at.saturating_sub(base));
    }

    /// The changes of the checkpoint, after a power cut.
    ///
    /// # Panics
    /// Before a power cut.
    pub(super) fn changes(&self) -> &[Stretch] {
        self.changes.as_deref().expect("changes are recalled when the power goes")
    }
}

impl Durable {
    /// A checkpoint, the programs since, and the changes of references by their map pages.
    pub(super) fn new(checkpoint: Checkpoint, log: Vec<Logged>, refs: Vec<Refs>) -> Self {
        Durable { checkpoint, log, refs, changed: Vec::new(), pending: None }
    }

    /// Notes that a map page being written adds a reference to a superblock (`gains`), or removes one.
    #[inline]
    pub(super) fn note_ref(&mut self, superblock: SuperblockId, gains: bool) {
        self.refs.push((superblock, if gains { 1 } else { -1 }));
    }

    /// Notes that an entry changes, which was `old`. A clean `old` entry is not kept: the map page holds it.
    #[inline]
    pub(super) fn note_changed(&mut self, lpn: Lpn, old: Entry) {
        let before = Stretch::of(lpn, if old.is_recent() { old } else { Entry::UNMAPPED });
        // Entries before and after the start of a pending checkpoint stay in separate stretches.
        match self.pending.as_ref().is_some_and(|pending| pending.changed == self.changed.len()) {
            true => self.changed.push(before),
            false => stretch::push(&mut self.changed, before),
        }
    }

    /// Takes the old entries of blocks that changed since the checkpoint, in order.
    pub(super) fn take_changed(&mut self) -> Vec<Stretch> {
        std::mem::take(&mut self.changed)
    }

    /// Sequence numbers now count from `base` on.
    pub(super) fn renumber(&mut self, base: u32) {
        self.checkpoint.renumber(base);
        for logged in &mut self.log {
            match logged {
                Logged::Data { .. } | Logged::Meta { .. } | Logged::Part(Held::Next { .. }) => {}
                Logged::Part(Held::Map { sequence, .. }) => *sequence = sequence.saturating_sub(base),
                Logged::Torn { spares, .. } => {
                    spares.iter_mut().for_each(|(_, sequence)| *sequence = sequence.saturating_sub(base));
                }
                Logged::Part(Held::Journal { records, .. }) => {
                    records.iter_mut().for_each(|record| record.renumber(base));
                }
            }
        }
    }

    /// A checkpoint has been put together and is going to be written.
    pub(super) fn begin(&mut self, checkpoint: Checkpoint) {
        self.pending = Some(Pending { checkpoint, log: self.log.len(), changed: self.changed.len() });
    }

    /// Places the next part of the pending checkpoint at `at`. Returns how many were placed before.
    pub(super) fn place_part(&mut self, at: Ppn) -> usize {
        let Some(pending) = &mut self.pending else { return 0 };
        pending.checkpoint.places.push(at);
        pending.checkpoint.places.len() - 1
    }

    /// Where the parts of the pending checkpoint are.
    pub(super) fn pending_places(&self) -> &[Ppn] {
        self.pending.as_ref().map_or(&[], |pending| &pending.checkpoint.places)
    }

    /// The anchor of the pending checkpoint is in flash.
    pub(super) fn commit(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.checkpoint = pending.checkpoint;
            self.changed.drain(..pending.changed);
            let refs =
                |logged: Logged| if let Logged::Part(Held::Map { refs, .. }) = logged { refs as usize } else { 0 };
            let gone: usize = self.log.drain(..pending.log).map(refs).sum();
            self.refs.drain(..gone);
        }
    }
}
