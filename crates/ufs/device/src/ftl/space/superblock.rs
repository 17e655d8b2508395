// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of one superblock, and the streams of data that superblocks are written for.

use crate::config::{CellMode, OwnCells};

/// No erased superblock is left for this purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoSpace;

/// Data that is written together because its lifetime is expected to be similar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Data from the host.
    Host,
    /// Data from the host that overwrites recently written data.
    Hot,
    /// Data from the host in the cache in SLC mode.
    Boosted,
    /// Data that garbage collection moved.
    Moved,
    /// Map pages, journal and checkpoints.
    Meta,
    /// Data that wear levelling moved, because it had stayed longest.
    Cold,
    /// Data of zones that does not fill a program.
    Rest,
    /// Data of a zone, in superblocks of its own.
    Zone,
}

impl Stream {
    /// Number of streams.
    pub const COUNT: usize = 8;
    /// All streams.
    pub const ALL: [Stream; Stream::COUNT] = [
        Stream::Host,
        Stream::Hot,
        Stream::Boosted,
        Stream::Moved,
        Stream::Meta,
        Stream::Cold,
        Stream::Rest,
        Stream::Zone,
    ];

    /// Number from 0 on.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The mode in which its superblocks are written.
    #[inline]
    pub(crate) fn mode(self, own: OwnCells) -> CellMode {
        match self {
            Stream::Boosted => CellMode::Cache,
            Stream::Meta => own.meta,
            Stream::Rest => own.rests,
            Stream::Host | Stream::Hot | Stream::Moved | Stream::Cold | Stream::Zone => CellMode::Full,
        }
    }

    /// Whether a full superblock of it may end with a table of the logical pages in it.
    pub(super) fn has_table(self) -> bool {
        !matches!(self, Stream::Boosted | Stream::Meta | Stream::Rest | Stream::Zone)
    }
}

/// State of a superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Holds the anchors, which point to the newest checkpoint.
    Anchor,
    /// Ready to be written.
    Erased,
    /// Being written.
    Open(Stream),
    /// Written; holds data of a stream.
    Closed(Stream),
    /// Discarded: it waits to be erased, or this many of its dies are still being erased.
    Erasing(u32),
    /// Too many of its blocks are bad.
    Retired,
}

/// One superblock. Its table is SRAM: `SRAM_BYTES` each.
#[derive(Clone, Copy, Debug)]
pub struct Superblock {
    /// Its state.
    pub state: State,
    /// Map entries, in map pages and in the table of changes, that point into it. Overwritten slices count until
    /// their map page is read.
    pub refs: u32,
    /// Units handed out whose program has not ended.
    pub in_flight: u32,
    /// The unit that is written next.
    pub next_unit: u32,
    /// The unit at which data ends, where the table of its logical pages begins; in SLC mode there is none.
    pub end: u32,
    /// How often it was erased.
    pub erases: u32,
    /// When it was opened last, by the count of openings and map writes.
    pub opened_at: u32,
    /// When it was closed last, by sequence number.
    pub closed_at: u32,
    /// Reads since it was erased.
    pub reads: u32,
    /// Number of its bad blocks, one per die.
    pub bad_dies: u32,
    /// A program in it failed: it is to be emptied soon.
    pub failed: bool,
    /// Cell mode, until it is erased.
    pub mode: CellMode,
    /// Its table is in flash. A read of the units behind its data shows that.
    pub has_table: bool,
}

impl Superblock {
    /// State, references, next unit, erases, opened, closed, reads: 4 bytes each, with state and flags packed.
    pub(crate) const SRAM_BYTES: u64 = 28;

    /// Erased, and never used.
    pub(crate) const NEW: Superblock = Superblock {
        state: State::Erased,
        refs: 0,
        in_flight: 0,
        next_unit: 0,
        end: 0,
        erases: 0,
        opened_at: 0,
        closed_at: 0,
        reads: 0,
        bad_dies: 0,
        failed: false,
        mode: CellMode::Full,
        has_table: false,
    };

    /// Whether it holds data that could be moved now.
    pub(crate) fn is_movable(&self) -> bool {
        matches!(self.state, State::Closed(stream) if !matches!(stream, Stream::Meta | Stream::Zone))
            && self.in_flight == 0
    }

    /// Sets the state that its blocks show: the stream of their data, and up to which unit it was written.
    pub(super) fn shows(&mut self, retired: bool, stream: Option<Stream>, next_unit: u32) {
        (self.next_unit, self.end) = (next_unit, UNKNOWN_END);
        self.state = match (retired, stream) {
            (true, _) => State::Retired,
            // Torn units alone show no stream, but the superblock has to be erased.
            (_, stream) if next_unit > 0 => State::Closed(stream.unwrap_or(Stream::Host)),
            _ => State::Erased,
        };
    }
}

/// The end of data in a superblock without a known stream.
pub(crate) const UNKNOWN_END: u32 = u32::MAX;
