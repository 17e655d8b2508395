// SPDX-License-Identifier: MIT OR Apache-2.0
//! The means of recovery after a power cut: the journal, the meta stream with its map pages and checkpoints, anchors,
//! HPB generations, and recovery itself. It also turns what it programs into bytes.
//!
//! It may not know collection, or any request but by its tag. It sees space, the map and the newest numbers of
//! writes, because a checkpoint contains them.

pub(crate) mod bytes;
mod checkpoint;
mod durable;
mod generations;
mod journal;
mod recovered;
mod recovery;
mod recovery_time;
mod spare_refs;
mod state;
#[cfg(test)]
mod tests;
mod units;
mod write_back;

pub use recovery_time::Recovery;

use super::effects::{Effect, Effects};
use super::space::{Space, Stream};
use super::zones::ZoneStates;
use crate::config::DeviceConfig;
use crate::config::FtlConfig;
use crate::ids::{Lpn, Mark, TagRef};
use bytes::Export;
use durable::{Checkpoint, Durable, Logged, Record};
use generations::Generations;
use journal::Journal;
use readpath_flash::{Geometry, Ppn};
use state::{Checkpoints, MetaStream, Numbers};
use std::sync::Arc;

pub(in crate::ftl) struct Log {
    config: Arc<DeviceConfig>,
    journal: Journal,
    /// By stream, the record that has to be in flash before its open superblock is written.
    announced: [Mark; Stream::COUNT],
    /// Requests that wait for a record of the journal.
    waiters: Vec<(TagRef, Mark)>,
    stream: MetaStream,
    checkpoint: Checkpoints,
    durable: Durable,
    /// Limits of sequence numbers.
    numbers: Numbers,
    /// Number of openings of superblocks and of map pages put together.
    ticks: u32,
    generations: Generations,
    export: Export,
}

impl Log {
    /// The state from the factory: the checkpoint says that nothing is mapped.
    pub(crate) fn new(config: Arc<DeviceConfig>, space: &Space) -> Self {
        let generations = Generations::new(&config);
        let factory = Checkpoint {
            generations: generations.named(),
            directory: vec![None; config.map_pages() as usize],
            superblocks: space.snapshot(),
            changes: Some(Vec::new()),
            zones: ZoneStates::empty(config.zone_blocks().count()),
            slots: 1,
            ..Checkpoint::default()
        };
        Log {
            journal: Journal::default(),
            announced: [0; Stream::COUNT],
            waiters: Vec::new(),
            stream: MetaStream::new(&config),
            checkpoint: Checkpoints::default(),
            durable: Durable::new(factory, Vec::new(), Vec::new()),
            numbers: Numbers::ALL,
            ticks: 0,
            generations,
            export: Export::default(),
            config,
        }
    }

    /// SRAM for records of trims that are not in flash.
    pub(crate) const JOURNAL_BYTES: u64 = Journal::MOST_TRIMS * Record::BYTES as u64;

    fn geometry(&self) -> &Geometry {
        &self.config.geometry
    }

    fn logical_blocks(&self) -> u32 {
        self.config.logical_blocks() as u32
    }

    fn settings(&self) -> &FtlConfig {
        &self.config.ftl
    }

    /// Notes that an entry of the map changes, which was `old`.
    #[inline]
    pub(crate) fn note_changed(&mut self, lpn: Lpn, old: super::map::Entry) {
        self.durable.note_changed(lpn, old);
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Adds the record of a trim.
    pub(crate) fn note_trim(&mut self, lpn: Lpn, count: u32, sequence: u32) {
        self.journal.trims = self.journal.push(Record::Trim { lpn, count, sequence });
    }

    /// Adds the record of a zone that is full from now on, although only `written` of its blocks were written. It is
    /// written as trims are.
    pub(crate) fn note_finish(&mut self, lpn: Lpn, written: u32, sequence: u32) {
        self.journal.trims = self.journal.push(Record::Finish { lpn, written, sequence });
    }

    /// Requests that all trims so far are written. `tag` waits for that; false if they already are in flash.
    pub(crate) fn sync_trims(&mut self, tag: TagRef) -> bool {
        let trims = self.journal.trims;
        let waits = !self.journal.want(trims);
        if waits {
            self.waiters.push((tag, trims));
        }
        waits
    }

    /// Requests that all trims so far are written; no request waits for that.
    pub(crate) fn flush_trims(&mut self) {
        self.journal.want(self.journal.trims);
    }

    /// Drops the requests that wait, except those to `keep`.
    pub(crate) fn forget_waiters(&mut self, keep: impl Fn(TagRef) -> bool) {
        self.waiters.retain(|(tag, _)| keep(*tag));
    }

    /// Answers the requests whose records have reached flash.
    fn journal_moved_on(&mut self, effects: &mut Effects) {
        self.generations.journal_is_durable_up_to(self.journal.durable());
        let mut i = 0;
        while i < self.waiters.len() {
            let (tag, mark) = self.waiters[i];
            if self.journal.is_durable(mark) {
                self.waiters.swap_remove(i);
                effects.push(Effect::PartInFlash(tag));
            } else {
                i += 1;
            }
        }
    }

    /// Whether the meta stream is reading or programming.
    pub(crate) fn is_busy(&self) -> bool {
        self.stream.is_busy()
    }

    /// Opens the first superblock of the meta stream.
    pub(crate) fn open_meta(&mut self, space: &mut Space) -> Result<(), super::NoSpace> {
        if space.open_of(Stream::Meta).is_none() {
            self.ticks += 1;
            space.open(Stream::Meta, self.ticks)?;
        }
        Ok(())
    }

    /// For tests: makes spare areas forget their order within `span` writes and trims, and renumbers from
    /// `renumber_at` on. There must not have been any.
    pub(crate) fn limit_numbers(&mut self, span: u32, renumber_at: u32) {
        self.numbers = Numbers::limited(span, renumber_at);
    }

    pub(crate) fn generations(&self) -> &Generations {
        &self.generations
    }

    /// Whether the hand-out number `next` may be used. No number may be used twice under one key, not even after a
    /// power cut, so the journal names numbers long before they are used.
    pub(crate) fn reserve_generation(&mut self, next: u64) -> bool {
        if self.generations.runs_short(next) {
            self.generations.name_more(&mut self.journal);
        }
        self.generations.may_use(next)
    }

    /// The newest checkpoint's table of superblocks.
    #[cfg(test)]
    pub(crate) fn checkpoint_says(&self, sb: crate::ids::SuperblockId) -> super::State {
        self.durable.checkpoint.superblocks[sb.index()].state
    }

    /// Whether the newest checkpoint has all `written` blocks of a full zone, of which a superblock was opened at
    /// `opened_at`.
    pub(crate) fn checkpoint_has_zone(&self, zone: u32, written: u32, opened_at: u32) -> bool {
        let checkpoint = &self.durable.checkpoint;
        let state = checkpoint.zones.zones.get(zone as usize);
        opened_at <= checkpoint.ticks && state.is_some_and(|state| state.placed == written && state.finished.is_some())
    }

    /// A checkpoint is due.
    pub(crate) fn want_checkpoint(&mut self) {
        self.checkpoint.due = true;
    }

    /// Keeps a superblock until a checkpoint is complete that is yet to be put together, which is due.
    pub(crate) fn pin_until_checkpoint(&mut self, sb: crate::ids::SuperblockId) {
        self.stream.pin(self.checkpoint.age, sb);
        self.want_checkpoint();
    }

    /// A sequence number as flash has it.
    #[inline]
    pub(crate) fn sequence_in_flash(&self, sequence: u32) -> u64 {
        self.export.sequence(sequence)
    }

    /// A unit of data has been programmed; its slices were reported.
    #[inline]
    pub(crate) fn data_programmed(&mut self, first: Ppn, space: &Space, hw: &mut impl crate::back::Hardware) {
        self.durable.log.push(Logged::Data { first });
        self.export_data(first, space, hw);
    }

    /// A unit of the table of a superblock has been programmed.
    pub(crate) fn table_programmed(&mut self, first: Ppn, space: &Space, hw: &mut impl crate::back::Hardware) {
        self.durable.log.push(Logged::Data { first });
        self.export_table(first, space, hw);
    }
}
