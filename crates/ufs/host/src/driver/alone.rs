// SPDX-License-Identifier: MIT OR Apache-2.0
//! A read of one block while nothing else is under way, which therefore takes the only way that there is, and needs
//! neither tag nor queue.

use super::joins::JoinId;
use super::{Driver, Paths};
use crate::block::BlockOp;
use crate::hpb::UnitHpb;
use readpath_proto::typed::HpbEntry;

impl Driver {
    /// Whether a request, if nothing else is under way, is sent at once as one READ or HPB READ, and its reply does no
    /// more than end it: with which entry. Nothing changes.
    #[inline(always)]
    pub fn foresee(&self, lun: u8, op: BlockOp, block: u32, blocks: u32) -> Option<Option<HpbEntry>> {
        let Paths { notes_replies, reads_may_wait, follows_reads } = self.paths;
        // Without a branch for each.
        let is_special = notes_replies | reads_may_wait | follows_reads | self.reads_wait | self.map_work;
        if is_special | (blocks != 1) || op != BlockOp::Read || !self.waiting.is_empty() || self.tags.next().is_none() {
            return None;
        }
        let unit = self.unit(lun).filter(|unit| block < unit.plain_blocks)?;
        match &unit.hpb {
            UnitHpb::None => Some(None),
            UnitHpb::Standard(hpb) => hpb.direct_entry(block).map(Some),
            UnitHpb::Prototype(_) => None,
        }
    }

    /// Such a request has ended, the one of this cookie.
    #[inline(always)]
    pub fn was_alone(&mut self, lun: u8, cookie: u32) {
        let unit = self.units[usize::from(lun)].as_mut();
        if let Some(hpb) = unit.and_then(|unit| unit.hpb.standard_mut()) {
            hpb.count_hit();
        }
        if let Some(tag) = self.tags.next() {
            self.end(cookie, tag.0, JoinId::NONE, None);
        }
    }
}
