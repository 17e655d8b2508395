// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of the meta stream and of checkpoints: what is on its way to flash, and what recovery may still need there. It
//! knows neither time nor what map pages say.

use super::durable::Record;
use crate::config::DeviceConfig;
use crate::ftl::map::{Paid, Taken};
use crate::ftl::space::Spares;
use crate::ids::{MapPage, Mark, SuperblockId};
use readpath_kit::BLOCK_BYTES;
use std::collections::VecDeque;

/// Part of a unit.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Map(MapPart),
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

/// A map page on its way to flash.
#[derive(Clone, Copy, Debug)]
pub(in crate::ftl) struct MapPart {
    pub page: Paid,
    /// When the one that it replaces was put together.
    pub before: u32,
    /// Its changes, from the moment on when it is put together.
    pub taken: Taken,
    pub put_together: u32,
    /// The newest sequence number then.
    pub sequence: u32,
}

impl MapPart {
    /// A map page that waits for its unit.
    pub(super) fn to_be_put_together(page: Paid, before: u32) -> MapPart {
        MapPart { page, before, taken: Taken::NONE, put_together: 0, sequence: 0 }
    }
}

/// State of the meta stream.
pub(super) struct MetaStream {
    pub(super) parts_per_unit: usize,
    /// Map pages to be written whether they changed or not, because their superblock is to be given up.
    pub(super) rewrite: VecDeque<MapPage>,
    pub(super) victim: Option<SuperblockId>,
    /// Map pages on their way: being read, waiting for a unit, or being programmed.
    pub(super) pages_under_way: u32,
    pub(super) loading: u32,
    pub(super) queue: VecDeque<Part>,
    pub(super) programs: Vec<Vec<Part>>,
    pub(super) in_flight: u32,
    pub(super) journal_under_way: bool,
    /// The newest unit held parts of the journal.
    pub(super) journal_came_last: bool,
    /// The unit that names the open superblock is not in flash yet.
    pub(super) next_under_way: bool,
    /// Parts that recovery may still need, by superblock; and in order of age.
    pub(super) pins: Vec<u32>,
    pub(super) pinned: VecDeque<(u64, SuperblockId)>,
}

impl MetaStream {
    pub(super) fn new(config: &DeviceConfig) -> Self {
        let unit_bytes = config.geometry.slices_per_unit() * BLOCK_BYTES;
        MetaStream {
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
    pub(super) fn is_pinned(&self, sb: SuperblockId) -> bool {
        self.pins[sb.index()] > 0
    }

    /// Whether anything is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.pages_under_way > 0 || self.in_flight > 0
    }

    /// A superblock was given up.
    pub(super) fn given_up(&mut self, sb: SuperblockId) {
        if self.victim == Some(sb) {
            self.victim = None;
        }
    }

    /// Something in `sb` is needed until the checkpoint behind the one of this age is there.
    pub(super) fn pin(&mut self, age: u64, sb: SuperblockId) {
        self.pins[sb.index()] += 1;
        self.pinned.push_back((age, sb));
    }

    /// Sequence numbers now count from `base` on.
    pub(super) fn renumber(&mut self, base: u32) {
        for part in self.programs.iter_mut().flatten() {
            match part {
                Part::Map(part) => part.sequence = part.sequence.saturating_sub(base),
                Part::Journal { records, .. } => records.iter_mut().for_each(|record| record.renumber(base)),
                Part::Checkpoint | Part::Next { .. } => {}
            }
        }
    }

    /// The changes of map pages that are being programmed.
    pub(super) fn taken(&self) -> impl Iterator<Item = Taken> {
        self.programs.iter().flatten().filter_map(|part| match part {
            Part::Map(part) => Some(part.taken),
            _ => None,
        })
    }
}

/// How far the next checkpoint has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
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
pub(super) struct Numbers {
    /// Order is kept for so many.
    pub(super) span: u32,
    /// They are counted anew from here on.
    pub(super) renumber_at: u32,
}

impl Numbers {
    pub(super) const ALL: Numbers = Numbers { span: Spares::SPAN, renumber_at: 1 << 31 };

    /// Fewer, for tests.
    pub(super) fn limited(span: u32, renumber_at: u32) -> Numbers {
        assert!(span <= Spares::SPAN, "spare areas hold no more");
        Numbers { span, renumber_at }
    }
}

/// Checkpoints and anchors.
pub(super) struct Checkpoints {
    pub(super) step: Step,
    pub(super) units: u32,
    /// Checkpoints put together so far.
    pub(super) age: u64,
    pub(super) due: bool,
    /// Nothing but the checkpoint may be written: no journal leads to what comes before it.
    pub(super) first: bool,
    /// Anchor that is programmed next, counted through both superblocks; flash itself shows how far it is written.
    pub(super) anchor: u32,
    /// The newest of them that was not torn.
    pub(super) newest: Option<u32>,
    /// It was erased, and none has been programmed since: then flash leads nowhere.
    pub(super) lost: bool,
    /// Dies of the next anchor superblock that are being erased.
    pub(super) anchor_erasing: u32,
    pub(super) anchor_wanted: bool,
    /// Parts of the newest checkpoint that are not in flash yet.
    pub(super) parts_left: u32,
}

impl Checkpoints {
    pub(super) fn new() -> Self {
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
    pub(super) fn holds_programs(&self) -> bool {
        self.step == Step::Quiet
    }

    pub(super) fn count_unit(&mut self) {
        self.units += 1;
    }

    /// Whether the newest anchor leads to a checkpoint that is not all there: it was programmed too early.
    pub(super) fn is_incomplete(&self) -> bool {
        self.parts_left > 0 && self.step == Step::Idle
    }

    /// Flash shows how far anchors are written, and the newest of them.
    pub(super) fn set_anchors(&mut self, anchor: u32, newest: Option<u32>) {
        (self.anchor, self.newest) = (anchor, newest);
    }

    /// Whether a checkpoint is being written, or its place made ready.
    pub(super) fn is_under_way(&self) -> bool {
        self.step != Step::Idle || self.anchor_erasing > 0 || self.parts_left > 0
    }

    /// The power is gone.
    pub(super) fn power_cut(&mut self) {
        let anchor = self.anchor + u32::from(self.step == Step::Anchor && !self.anchor_wanted);
        *self = Checkpoints { anchor, newest: self.newest, lost: self.lost, ..Checkpoints::new() };
    }

    /// Recovery has ended: a checkpoint is due, and comes before everything else if the meta stream is lost.
    pub(super) fn after_recovery(&mut self, meta_is_lost: bool) {
        self.due = true;
        self.first = meta_is_lost;
    }
}
