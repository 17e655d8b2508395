// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journal in SRAM: records in order, how many of them are in flash, and how many have to be. It does not know
//! the meaning of records.

use super::durable::Record;
use crate::ids::Mark;

#[derive(Default)]
pub(in crate::ftl) struct Journal {
    pending: Vec<Record>,
    /// Number of records made so far.
    made: Mark,
    /// How many of those are in flash or being written.
    sent: Mark,
    durable: Mark,
    wanted: Mark,
    /// The newest record of a trim.
    pub trims: Mark,
}

impl Journal {
    /// Records of trims that SRAM can hold until they are in flash. Other records need no room: the table of
    /// superblocks holds the same facts.
    pub(super) const MOST_TRIMS: u64 = 1024;

    /// Whether SRAM has no room for the record of one more trim.
    pub(crate) fn is_full(&self) -> bool {
        self.made - self.durable >= Self::MOST_TRIMS
    }

    /// Adds a record; returns its number.
    pub(super) fn push(&mut self, record: Record) -> Mark {
        self.pending.push(record);
        self.made += 1;
        self.made
    }

    /// Requests the write of records up to `mark`. Returns whether they are in flash already.
    pub(super) fn want(&mut self, mark: Mark) -> bool {
        self.wanted = self.wanted.max(mark);
        self.is_durable(mark)
    }

    /// Records up to this one are in flash.
    pub(crate) fn durable(&self) -> Mark {
        self.durable
    }

    /// Whether the record `mark` is in flash.
    pub(super) fn is_durable(&self, mark: Mark) -> bool {
        self.durable >= mark
    }

    /// Whether records have to be written that are not being written.
    pub(crate) fn must_write(&self) -> bool {
        self.wanted > self.sent
    }

    /// Number of records that are not being written.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The number of the newest record.
    pub(crate) fn newest(&self) -> Mark {
        self.made
    }

    /// Takes up to `most` records to be written, and the number of the last.
    pub(super) fn take(&mut self, most: usize) -> (Vec<Record>, Mark) {
        let rest = self.pending.split_off(most.min(self.pending.len()));
        let taken = std::mem::replace(&mut self.pending, rest);
        self.sent += taken.len() as u64;
        (taken, self.sent)
    }

    /// Records up to `mark` are in flash. The caller writes one part at a time: parts may end out of order, but the
    /// journal is durable only up to the first gap.
    pub(super) fn written(&mut self, mark: Mark) {
        self.durable = self.durable.max(mark);
    }

    /// A journal that continues behind the record `made`.
    pub(super) fn up_to(made: Mark) -> Journal {
        Journal { durable: made, ..Journal::default() }.after_power_cut(made)
    }

    /// The journal after a power cut: empty; numbers continue behind the records in flash and in the checkpoint.
    pub(super) fn after_power_cut(&self, checkpoint: Mark) -> Journal {
        let made = self.durable.max(checkpoint);
        Journal { pending: Vec::new(), made, sent: made, durable: made, wanted: 0, trims: 0 }
    }

    /// Sequence numbers now count from `base` on.
    pub(super) fn renumber(&mut self, base: u32) {
        self.pending.iter_mut().for_each(|record| record.renumber(base));
    }
}
