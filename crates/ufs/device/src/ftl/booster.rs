// SPDX-License-Identifier: MIT OR Apache-2.0
//! WriteBooster: which data goes to superblocks in SLC mode, and when it leaves them again. Moving it is the work of
//! garbage collection (`collect.rs`), and what flash holds of it is recovered like any other data.
//!
//! The buffer consists of superblocks that are lent to it: one may be opened for it as long as that does not make space
//! short. It gives them back when it is flushed, and earlier when space gets short, because then a superblock with a
//! fraction of its pages in use is the best victim of all.

use super::booster_state::Booster;
use super::pump::Purpose;
use super::{BoosterFlags, Ftl, Stall, Stream};
use crate::back::Hardware;
use crate::config::CellMode;
use crate::ids::SuperblockId;
use readpath_flash::Ppn;
use readpath_proto::booster::{ALLOCATION_UNIT_BLOCKS, LIFE_EXCEEDED, flush_status};
use readpath_proto::query::attribute;

impl Ftl {
    /// A unit for data from the host: in the buffer while there is room, of `stream` otherwise.
    pub(super) fn unit_for_host(&mut self, stream: Stream) -> Result<Ppn, Stall> {
        let stream = if self.boosts() { Stream::Boosted } else { stream };
        self.unit_for(stream, Purpose::Host)
    }

    fn boosts(&self) -> bool {
        self.booster.flags.on
            && !self.space.is_short()
            && (self.space.open_of(Stream::Boosted).is_some() || self.lends() > 0)
    }

    /// Superblocks that could be lent to the buffer now, beyond those it has.
    fn lends(&self) -> u32 {
        if self.life() >= LIFE_EXCEEDED {
            return 0;
        }
        let most = self.config.booster_superblocks().saturating_sub(self.space.in_mode(CellMode::Slc));
        most.min(self.space.spare().saturating_sub(self.space.short_below()))
    }

    /// bWriteBoosterBufferLifeTimeEst.
    fn life(&self) -> u8 {
        let Some(wb) = &self.config.write_booster else { return 0 };
        let life = u64::from(wb.life_erases) * u64::from(self.config.booster_superblocks());
        (1 + self.space.erases_in(CellMode::Slc) * 10 / life).min(u64::from(LIFE_EXCEEDED)) as u8
    }

    /// Attributes 1Ch to 1Fh of a device that has WriteBooster.
    pub(crate) fn booster_attribute(&self, idn: u8) -> u32 {
        let each = self.config.booster_slices();
        let slices = (self.space.in_mode(CellMode::Slc) + self.lends()) * each;
        match idn {
            attribute::WB_AVAILABLE_SIZE => {
                let open = self.space.units_left(Stream::Boosted) * self.geometry.slices_per_unit();
                let free = u64::from(self.lends() * each + open);
                (free * 10).checked_div(slices.into()).unwrap_or(0) as u32
            }
            attribute::WB_LIFE_TIME_EST => self.life().into(),
            attribute::WB_CURRENT_SIZE => {
                let most = self.config.write_booster.map_or(0, |wb| wb.buffer_blocks);
                slices.min(most).div_ceil(ALLOCATION_UNIT_BLOCKS)
            }
            _ => self.booster.flush_status,
        }
    }

    /// Whether idle time is used to flush. The model has no hibernation of the link: it stands for that as well.
    pub(super) fn flushes_when_idle(&self) -> bool {
        self.booster.flags.flush || self.booster.flags.flush_when_idle
    }

    /// The superblock that is to be flushed next, if a flush is going on.
    pub(super) fn next_to_flush(&mut self, hw: &mut impl Hardware) -> Option<SuperblockId> {
        if self.space.in_mode(CellMode::Slc) == 0 && self.booster.flush_status == flush_status::IDLE {
            return None;
        }
        let idle = self.host_is_idle(hw) && self.flushes_when_idle();
        let goes_on = idle || self.booster.flags.flush;
        // What is still being written is left alone while the host may write more.
        let is_blank = self.space.is_blank(Stream::Boosted);
        if (idle || goes_on && !self.booster.flags.on) && !is_blank {
            self.close_boosted();
        }
        let status = &mut self.booster.flush_status;
        let holds_data = self.space.in_mode(CellMode::Slc) > u32::from(is_blank);
        *status = match *status {
            _ if goes_on && holds_data => flush_status::IN_PROGRESS,
            flush_status::IN_PROGRESS if holds_data => flush_status::STOPPED,
            flush_status::IN_PROGRESS => flush_status::COMPLETED,
            before => before,
        };
        if goes_on { self.space.oldest_boosted() } else { None }
    }

    /// Ends the superblock that the buffer is writing, so that it can be emptied.
    pub(super) fn close_boosted(&mut self) {
        if let Some(sb) = self.space.open_of(Stream::Boosted) {
            self.space.close(Stream::Boosted, self.sequence);
            self.discard_if_empty(sb);
        }
    }

    /// The host has changed one of WriteBooster's flags.
    pub(crate) fn set_booster_flags(&mut self, flags: BoosterFlags) {
        self.booster.flags = flags;
    }

    /// The flags of WriteBooster are as after power-on.
    pub(super) fn reset_booster(&mut self) {
        self.booster = Booster::default();
    }
}
