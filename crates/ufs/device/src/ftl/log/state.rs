// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of the meta stream and of checkpoints: writes in progress, and superblocks that recovery may still need. It
//! knows neither time nor the contents of map pages.

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
    /// The superblock in which the stream continues. It is named in the spare areas and takes no room.
    Next {
        superblock: SuperblockId,
        opened_at: u32,
    },
}

/// A map page that is being written back.
#[derive(Clone, Copy, Debug)]
pub(in crate::ftl) struct MapPart {
    pub page: Paid,
    /// When the version that it replaces was put together.
    pub before: u32,
    /// Its changes, once it is put together.
    pub taken: Taken,
    pub put_together: u32,
    /// The newest sequence number at that time.
    pub sequence: u32,
}

/// State of the meta stream.
#[derive(Default)]
pub(super) struct MetaStream {
    pub(super) parts_per_unit: usize,
    /// Map pages to be written even without changes, because their superblock is to be discarded.
    pub(super) rewrite: VecDeque<MapPage>,
    pub(super) victim: Option<SuperblockId>,
    /// Number of map pages being read, waiting for a unit, or being programmed.
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
    /// Number of parts that recovery may still need, by superblock; below, the parts by age.
    pub(super) pins: Vec<u32>,
    pub(super) pinned: VecDeque<(u64, SuperblockId)>,
}

impl MetaStream {
    pub(super) fn new(config: &DeviceConfig) -> Self {
        let unit_bytes = config.geometry.slices_per_unit() * BLOCK_BYTES;
        MetaStream {
            parts_per_unit: (unit_bytes / config.map_page_bytes) as usize,
            pins: vec![0; config.geometry.superblocks() as usize],
            ..MetaStream::default()
        }
    }

    /// Whether reads or programs are in progress.
    pub(super) fn is_busy(&self) -> bool {
        self.pages_under_way > 0 || self.in_flight > 0
    }

    /// Pins `sb` until the checkpoint after the one of this age is complete.
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

/// Progress of the next checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Step {
    #[default]
    Idle,
    /// Waiting for programs in progress to end.
    Quiet,
    /// Its parts are being programmed.
    Parts,
    /// Its anchor is being programmed.
    Anchor,
}

/// Limits of sequence numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Numbers {
    /// Spare areas keep the order of this many.
    pub(super) span: u32,
    /// Numbering restarts at this number.
    pub(super) renumber_at: u32,
}

impl Numbers {
    pub(super) const ALL: Numbers = Numbers { span: Spares::SPAN, renumber_at: 1 << 31 };

    /// Lower limits, for tests.
    pub(super) fn limited(span: u32, renumber_at: u32) -> Numbers {
        assert!(span <= Spares::SPAN, "spare areas hold no more");
        Numbers { span, renumber_at }
    }
}

/// Checkpoints and anchors.
#[derive(Default)]
pub(super) struct Checkpoints {
    pub(super) step: Step,
    pub(super) units: u32,
    /// Number of checkpoints put together so far.
    pub(super) age: u64,
    pub(super) due: bool,
    /// Only the checkpoint may be written: no journal leads to units before it.
    pub(super) first: bool,
    /// The anchor to program next, counted through both superblocks; flash itself shows how far they are written.
    pub(super) anchor: u32,
    /// The newest anchor that is not torn.
    pub(super) newest: Option<u32>,
    /// The newest anchor was erased and none has been programmed since: flash has no checkpoint.
    pub(super) lost: bool,
    /// Dies of the next anchor superblock that are being erased.
    pub(super) anchor_erasing: u32,
    pub(super) anchor_wanted: bool,
    /// Parts of the newest checkpoint that are not in flash yet.
    pub(super) parts_left: u32,
}

impl Checkpoints {
    /// Whether programs other than the checkpoint's own have to wait.
    pub(super) fn holds_programs(&self) -> bool {
        self.step == Step::Quiet
    }

    /// Whether the newest anchor was programmed before its checkpoint was complete.
    pub(super) fn is_incomplete(&self) -> bool {
        self.parts_left > 0 && self.step == Step::Idle
    }

    /// Whether a checkpoint is being written, or a superblock is being erased for it.
    pub(super) fn is_under_way(&self) -> bool {
        self.step != Step::Idle || self.anchor_erasing > 0 || self.parts_left > 0
    }

    pub(super) fn power_cut(&mut self) {
        let anchor = self.anchor + u32::from(self.step == Step::Anchor && !self.anchor_wanted);
        *self = Checkpoints { anchor, newest: self.newest, lost: self.lost, ..Checkpoints::default() };
    }
}
