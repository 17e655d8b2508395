// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads of one block that are under way together, with nothing else: rows of a table, by the tags that they take. They
//! stand in no queue of the driver and have no [`TagState`] until [`Driver::end_rows`] makes one of each row.

use super::joins::JoinId;
use super::tags::{MAX_SLOTS, Tag, TagState, Use};
use super::{Driver, Paths};
use crate::block::{BlockOp, BlockRequest};
use crate::hpb::UnitHpb;
use readpath_proto::typed::HpbEntry;

/// A read, by its tag.
#[derive(Clone, Copy)]
struct Row {
    cookie: u32,
    block: u32,
    lun: u8,
    /// Sent as HPB READ.
    hpb: bool,
}

pub(super) struct Together {
    /// A bit for each tag.
    under_way: u64,
    rows: [Row; MAX_SLOTS],
}

impl Default for Together {
    fn default() -> Self {
        Together { under_way: 0, rows: [Row { cookie: 0, block: 0, lun: 0, hpb: false }; MAX_SLOTS] }
    }
}

impl Driver {
    /// Makes rows of the requests under way, if they are reads that can be rows and nothing else goes on.
    pub fn begin_rows(&mut self) -> bool {
        let Paths { notes_replies, reads_may_wait, follows_reads } = self.paths;
        let is_special = notes_replies || reads_may_wait || follows_reads || self.reads_wait || self.map_work;
        if is_special || !self.is_ready() || !self.waiting.is_empty() || !self.out.is_empty() {
            return false;
        }
        let is_row = |state: &TagState| {
            let &TagState { used, op, blocks, join, retries, plain, .. } = state;
            (used, op, blocks) == (Use::Block, BlockOp::Read, 1) && join == JoinId::NONE && retries == 0 && !plain
        };
        if self.tags.iter().any(|(_, state)| state.used != Use::Free && !is_row(state)) {
            return false;
        }
        self.tags.together.under_way = 0;
        for tag in (0..MAX_SLOTS as u8).map(Tag) {
            let TagState { used, cookie, block, lun, hpb, .. } = self.tags[tag];
            if used != Use::Free {
                self.tags.together.under_way |= 1 << tag.0;
                self.tags.together.rows[tag.row()] = Row { cookie, block, lun, hpb };
            }
        }
        true
    }

    /// The tags of the rows, a bit each.
    pub fn rows_under_way(&self) -> u64 {
        self.tags.together.under_way
    }

    /// Makes requests under way of the rows again.
    pub fn end_rows(&mut self) {
        let under_way = std::mem::take(&mut self.tags.together.under_way);
        for tag in (0..MAX_SLOTS as u8).map(Tag).filter(|tag| under_way >> tag.0 & 1 == 1) {
            let Row { cookie, block, lun, hpb } = self.tags.together.rows[tag.row()];
            self.tags[tag] =
                TagState { used: Use::Block, op: BlockOp::Read, lun, hpb, cookie, block, blocks: 1, ..TagState::FREE };
        }
    }

    /// The tag and the entry, as a word, with which a request would be sent as a row; `None` if it can be none.
    #[inline(always)]
    pub fn foresee_together(&self, request: &BlockRequest) -> Option<(u8, Option<u64>)> {
        let &BlockRequest { lun, op, block, blocks, .. } = request;
        if blocks != 1 || op != BlockOp::Read {
            return None;
        }
        let unit = self.unit(lun).filter(|unit| block < unit.blocks)?;
        let entry = match &unit.hpb {
            UnitHpb::None => None,
            UnitHpb::Standard(hpb) => {
                let HpbEntry(entry) = hpb.direct_entry(block)?;
                Some(u64::from_ne_bytes(entry))
            }
            UnitHpb::Prototype(_) => return None,
        };
        Some((self.tags.next()?.0, entry))
    }

    /// A request was sent as [`Driver::foresee_together`] says, with an entry or without.
    #[inline(always)]
    pub fn sent_together(&mut self, request: &BlockRequest, with_entry: bool) {
        let Some(tag) = self.tags.take() else { return };
        let &BlockRequest { cookie, lun, block, .. } = request;
        self.tags.together.under_way |= 1 << (tag.0 % MAX_SLOTS as u8);
        self.tags.together.rows[tag.row() % MAX_SLOTS] = Row { cookie, block, lun, hpb: with_entry };
        if with_entry && let Some(hpb) = self.units[usize::from(lun)].as_mut().and_then(|unit| unit.hpb.standard_mut())
        {
            hpb.count_hit();
        }
    }

    /// The read with this tag has ended.
    #[inline(always)]
    pub fn ended_together(&mut self, tag: u8) {
        let Row { cookie, .. } = self.tags.together.rows[usize::from(tag) % MAX_SLOTS];
        self.tags.together.under_way &= !(1 << (tag % MAX_SLOTS as u8));
        self.tags.release(Tag(tag));
        self.end(cookie, tag, JoinId::NONE, None);
    }
}
