// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of the meta stream and of checkpoints: what is on its way to flash, and what recovery may still need there. It
//! knows neither time nor what map pages say.

mod checkpoint;
mod write_back;

use super::Paid;
use super::durable::Record;
use super::map::Taken;
use super::space::Spares;
use crate::config::DeviceConfig;
use crate::ids::{MapPage, Mark, SuperblockId};
use readpath_kit::BLOCK_BYTES;
use std::collections::VecDeque;

/// Part of a unit.
#[derive(Clone, Debug)]
enum Part {
    Map {
        page: Paid,
        /// When the one that it replaces was put together.
        before: u32,
        taken: Taken,
        put_together: u32,
        sequence: u32,
    },
    Journal {
        records: Vec<Record>,
        up_to: Mark,
    },
    Checkpoint,
    /// The superblock that the stream goes on in. It stands in the spare areas and takes no room.
    Next {
        superblock: SuperblockId,
        opened_at: u32,
    },
}

impl Part {
    /// A map page as it will be when its unit is programmed.
    fn to_be_put_together(page: Paid, before: u32) -> Part {
        Part::Map { page, before, taken: Taken::NONE, put_together: 0, sequence: 0 }
    }
}

/// State of the meta stream.
pub(super) struct Meta {
    parts_per_unit: usize,
    /// Map pages to be written whether they changed or not, because their superblock is to be given up.
    rewrite: VecDeque<MapPage>,
    victim: Option<SuperblockId>,
    /// Map pages on their way: being read, waiting for a unit, or being programmed.
    pages_under_way: u32,
    loading: u32,
    queue: VecDeque<Part>,
    programs: Vec<Vec<Part>>,
    in_flight: u32,
    journal_under_way: bool,
    /// The newest unit held parts of the journal.
    journal_came_last: bool,
    /// The unit that names the open superblock is not in flash yet.
    next_under_way: bool,
    /// Parts that recovery may still need, by superblock; and in order of age.
    pins: Vec<u32>,
    pinned: VecDeque<(u64, SuperblockId)>,
}

impl Meta {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let unit_bytes = config.geometry.slices_per_unit() * BLOCK_BYTES;
        Meta {
            parts_per_unit: (unit_bytes / config.map_page_bytes) as usize,
            rewrite: VecDeque::new(),
            victim: None,
            pages_under_way: 0,
            loading: 0,
            queue: VecDeque::new(),
            programs: Vec::new(),
            in_flight: 0,
            journal_under_way: false,
            journal_came_last: false,
            next_under_way: false,
            pins: vec![0; config.geometry.superblocks() as usize],
            pinned: VecDeque::new(),
        }
    }

    /// Whether something in a superblock may still be needed by recovery.
    pub(crate) fn is_pinned(&self, sb: SuperblockId) -> bool {
        self.pins[sb.index()] > 0
    }

    /// Whether anything is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.pages_under_way > 0 || self.in_flight > 0
    }

    /// A superblock was given up.
    pub(crate) fn given_up(&mut self, sb: SuperblockId) {
        if self.victim == Some(sb) {
            self.victim = None;
        }
    }

    /// Something in `sb` is needed until the checkpoint behind the one of this age is there.
    pub(crate) fn pin(&mut self, age: u64, sb: SuperblockId) {
        self.pins[sb.index()] += 1;
        self.pinned.push_back((age, sb));
    }

    /// Sequence numbers now count from `base` on.
    fn renumber(&mut self, base: u32) {
        for part in self.programs.iter_mut().flatten() {
            match part {
                Part::Map { sequence, .. } => *sequence = sequence.saturating_sub(base),
                Part::Journal { records, .. } => records.iter_mut().for_each(|record| record.renumber(base)),
                Part::Checkpoint | Part::Next { .. } => {}
            }
        }
    }

    /// The changes of map pages that are being programmed.
    pub(crate) fn taken(&self) -> impl Iterator<Item = Taken> {
        self.programs.iter().flatten().filter_map(|part| match part {
            Part::Map { taken, .. } => Some(*taken),
            _ => None,
        })
    }
}

/// How far the next checkpoint has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Idle,
    /// Programs in progress have to end.
    Quiet,
    /// Its parts are being programmed.
    Parts,
    /// Its anchor is being programmed.
    Anchor,
}

/// How far sequence numbers may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Numbers {
    /// Order is kept for so many.
    span: u32,
    /// They are counted anew from here on.
    renumber_at: u32,
}

impl Numbers {
    pub(crate) const ALL: Numbers = Numbers { span: Spares::SPAN, renumber_at: 1 << 31 };
}

/// Checkpoints and anchors.
pub(super) struct Checkpoints {
    step: Step,
    units: u32,
    /// Checkpoints put together so far.
    age: u64,
    due: bool,
    /// Nothing but the checkpoint may be written: no journal leads to what comes before it.
    pub(crate) first: bool,
    /// Anchor that is programmed next, counted through both superblocks; flash itself shows how far it is written.
    anchor: u32,
    /// The newest of them that was not torn.
    newest: Option<u32>,
    /// It was erased, and none has been programmed since: then flash leads nowhere.
    pub(crate) lost: bool,
    /// Dies of the next anchor superblock that are being erased.
    anchor_erasing: u32,
    anchor_wanted: bool,
    /// Parts of the newest checkpoint that are not in flash yet.
    parts_left: u32,
}

impl Checkpoints {
    pub(crate) fn new() -> Self {
        Checkpoints {
            step: Step::Idle,
            units: 0,
            age: 0,
            due: false,
            first: false,
            anchor: 0,
            newest: None,
            lost: false,
            anchor_erasing: 0,
            anchor_wanted: false,
            parts_left: 0,
        }
    }

    /// Whether programs other than the checkpoint's own have to wait.
    pub(crate) fn holds_programs(&self) -> bool {
        self.step == Step::Quiet
    }

    pub(crate) fn count_unit(&mut self) {
        self.units += 1;
    }

    /// Whether the newest anchor leads to a checkpoint that is not all there: it was programmed too early.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.parts_left > 0 && self.step == Step::Idle
    }

    /// Flash shows how far anchors are written, and the newest of them.
    pub(crate) fn set_anchors(&mut self, anchor: u32, newest: Option<u32>) {
        (self.anchor, self.newest) = (anchor, newest);
    }

    /// Whether a checkpoint is being written, or its place made ready.
    pub(crate) fn is_under_way(&self) -> bool {
        self.step != Step::Idle || self.anchor_erasing > 0 || self.parts_left > 0
    }

    /// The power is gone.
    pub(crate) fn power_cut(&mut self) {
        let anchor = self.anchor + u32::from(self.step == Step::Anchor && !self.anchor_wanted);
        *self = Checkpoints { anchor, newest: self.newest, lost: self.lost, ..Checkpoints::new() };
    }

    /// Recovery has ended: a checkpoint is due, and comes before everything else if the meta stream is lost.
    pub(crate) fn after_recovery(&mut self, meta_is_lost: bool) {
        self.due = true;
        self.first = meta_is_lost;
    }
}
