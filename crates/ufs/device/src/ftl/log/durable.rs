// SPDX-License-Identifier: MIT OR Apache-2.0
//! What flash holds other than data: the newest checkpoint, and what was programmed since, in order. Only this is
//! left after a power cut. Recovery pays for reading it page by page; while the device runs, nothing reads it.

use super::spare_refs::Refs;
use crate::ftl::map::Entry;
use crate::ftl::map::stretch::{self, Stretch};
use crate::ftl::space::{Stream, Superblock};
use crate::ids::{Lpn, MapPage, Mark, SuperblockId};
use readpath_flash::Ppn;

/// A record of the journal: what the spare areas of data cannot say.
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
    /// HPB generations up to this one may have been given out.
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
        if let Record::Trim { sequence, .. } = self {
            *sequence = sequence.saturating_sub(base);
        }
    }
}

/// What part of a unit of the meta stream holds; each is as long as a map page.
#[derive(Clone, Debug)]
pub(super) enum Held {
    /// A map page, and how writing it changed the references into superblocks.
    Map {
        /// Map page.
        page: MapPage,
        /// Where it begins.
        at: Ppn,
        /// See [`Superblock::opened_at`]: when its entries were put together.
        written_at: u32,
        /// The newest sequence number when it was put together.
        sequence: u32,
        /// How many of [`Durable::refs_of_map_pages`], after those of the map pages before it, belong to it.
        refs: u32,
        /// Whether its spare area had room for them. Without, there are none.
        fits: bool,
    },
    /// Records of the journal.
    Journal {
        /// Number of the first.
        first: Mark,
        /// In order.
        records: Vec<Record>,
    },
    /// The superblock that the meta stream goes on in. The spare areas of the unit say so.
    Next {
        /// Superblock.
        superblock: SuperblockId,
        /// See [`Superblock::opened_at`].
        opened_at: u32,
    },
}

/// A program since the newest checkpoint, or what is left of it.
#[derive(Clone, Debug)]
pub(super) enum Logged {
    /// A unit of data; what its slices hold stands in their spare areas.
    Data {
        /// First slice.
        first: Ppn,
    },
    /// A unit of data that was being programmed when the power went: its spare areas may say anything, which
    /// their check shows.
    Torn {
        /// First slice.
        first: Ppn,
        /// What the spare areas say: logical page and sequence number of each slice.
        spares: Vec<(Option<Lpn>, u32)>,
    },
    /// A unit of the meta stream. What follows in the log is what it holds.
    Meta {
        /// First slice.
        first: Ppn,
        /// Parts that it holds.
        parts: u32,
    },
    /// A part of the unit before it.
    Part(Held),
}

/// Everything that the device has to know, as of one moment when no program was in progress.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Checkpoint {
    /// Next sequence number.
    pub sequence: u32,
    /// What was in the write buffer then has this sequence number or a later one: it is programmed after the
    /// checkpoint.
    pub oldest: u32,
    /// Openings and map writes so far.
    pub ticks: u32,
    /// HPB generations up to this one may have been given out.
    pub generations: u64,
    /// Number of the newest record of the journal, in flash or not: what it says is part of the checkpoint.
    pub journal: Mark,
    /// Where each map page begins.
    pub directory: Vec<Option<Ppn>>,
    /// All superblocks.
    pub superblocks: Vec<Superblock>,
    /// Logical page and entry of each change: clean, each page once, in order. `None` as long as the power stays:
    /// looking up thousands of entries for every checkpoint would be wasted if no cut follows;
    /// [`Durable::note_changed`] keeps what they were.
    pub changes: Option<Vec<Stretch>>,
    /// Entries of the table of changes that were in use.
    pub used: u32,
    /// Map pages in which stretches were trimmed, and how many: each takes a place of the table of changes.
    pub trims: Vec<(MapPage, u32)>,
    /// Map pages that its own pages take in flash.
    pub slots: u32,
    /// Where those are that have been programmed: its anchor says so.
    pub places: Vec<Ppn>,
}

/// See the module.
pub(super) struct Durable {
    /// The checkpoint that the newest anchor leads to.
    pub checkpoint: Checkpoint,
    /// What was programmed since, in the order in which the programs ended.
    pub log: Vec<Logged>,
    /// Superblocks that gained or lost references by the map pages in the log, in its order. The spare area of each map
    /// page holds its own, if they fit ([`super::spare_refs`]); here they lie in one row because a list for each would
    /// be allocated for each.
    refs: Vec<Refs>,
    /// See [`Durable::note_changed`].
    changed: Vec<Stretch>,
    /// A checkpoint that is being written.
    pub pending: Option<Pending>,
}

/// A checkpoint that is being written, and how much of the logs is older.
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

    /// Its changes, once the power is gone.
    ///
    /// # Panics
    /// As long as it is not.
    pub(super) fn changes(&self) -> &[Stretch] {
        self.changes.as_deref().expect("changes are recalled when the power goes")
    }
}

impl Durable {
    /// Nothing but a checkpoint.
    pub(super) fn new(checkpoint: Checkpoint) -> Self {
        Durable::with_log(checkpoint, Vec::new(), Vec::new())
    }

    /// A checkpoint, what was programmed since, and what its map pages changed of references.
    pub(super) fn with_log(checkpoint: Checkpoint, log: Vec<Logged>, refs: Vec<Refs>) -> Self {
        Durable { checkpoint, log, refs, changed: Vec::new(), pending: None }
    }

    /// A map page that is being written gives a superblock a reference (`gains`), or takes it one.
    #[inline]
    pub(super) fn note_ref(&mut self, superblock: SuperblockId, gains: bool) {
        self.refs.push((superblock, if gains { 1 } else { -1 }));
    }

    /// How many were noted since the checkpoint.
    pub(super) fn refs(&self) -> usize {
        self.refs.len()
    }

    /// What the map pages since the checkpoint changed of references, in order.
    pub(super) fn refs_of_map_pages(&self) -> &[Refs] {
        &self.refs
    }

    /// What the last map page changed, which is `refs` of them; the caller puts others in their place.
    pub(super) fn take_refs(&mut self, refs: u32) -> Vec<Refs> {
        self.refs.split_off(self.refs.len() - refs as usize)
    }

    /// The last map page changed these.
    pub(super) fn put_refs(&mut self, refs: &[Refs]) {
        self.refs.extend(refs);
    }

    /// An entry changes, and was `old` until now. If SRAM did not know it as a change, it does not matter where it was.
    #[inline]
    pub(super) fn note_changed(&mut self, lpn: Lpn, old: Entry) {
        let before = Stretch::of(lpn, if old.is_recent() { old } else { Entry::UNMAPPED });
        // What a checkpoint that is being written needs does not join what it does not need.
        match self.pending.as_ref().is_some_and(|pending| pending.changed == self.changed.len()) {
            true => self.changed.push(before),
            false => stretch::push(&mut self.changed, before),
        }
    }

    /// What entries were that changed since the checkpoint, in order. They are forgotten.
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

    /// The next part of the pending checkpoint is at `at`. Returns how many there were before.
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
