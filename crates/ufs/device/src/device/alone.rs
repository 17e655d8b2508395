// SPDX-License-Identifier: MIT OR Apache-2.0
//! A read of one block with nothing else under way, as at queue depth 1: its way through link, firmware and flash is a
//! sum, without an event for each stage. Nothing that can be seen differs from the long way.

use crate::back::{Hardware, MediaMode, Probe};
use crate::config::{CellMode, DeviceConfig};
use crate::device::UfsDevice;
use crate::ftl::PageAt;
use crate::hpb::Verdict;
use crate::ids::Lpn;
use readpath_flash::{DieSched, Ppn};
use readpath_kit::Ns;
use readpath_proto::typed::HpbEntry;

/// Whether reads of one block may be served alone, or together: no part of their way counts them, draws at random,
/// fetches from host memory, or loads more of the map than its page.
pub(super) fn is_possible(config: &DeviceConfig) -> bool {
    config.ftl.read_disturb_limit == 0
        && config.ftl.faults.read_retries_ppm == 0
        && config.host_map().is_none()
        && config.map_runs_bytes == 0
        && config.map_read_ahead == 0
}

/// What gives the address of a block.
enum By {
    Entry,
    /// Its page of the map, in this frame of SRAM.
    Frame(u32),
    /// Its page of the map, which has to be loaded until then.
    Load(Ns),
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Serves a read of one block that leaves the host's software at `now`, if nothing else happens from then until its
    /// reply, a GOOD one without further information, reaches the host, at the latest at `limit`. Returns that time.
    /// `None` if that cannot be said; then nothing has changed, and the read is to be submitted.
    ///
    /// It reserves nothing: everything that it used is free again when the host hears of it.
    #[inline(always)]
    pub fn read_alone(&mut self, now: Ns, limit: Ns, lun: u8, block: u32, entry: Option<HpbEntry>) -> Option<Ns> {
        // Without a branch for each.
        let is_idle = (self.front.next_reply() == Ns::NEVER) & (self.back.next_flash() == Ns::NEVER);
        if P::ACTIVE || M::ACTIVE || !(self.may_read_alone & is_idle & self.hpb.has_nothing_to_tell()) {
            return None;
        }
        if usize::from(lun) >= self.front.units() || !self.front.target().is_direct(lun) {
            return None;
        }
        let lpn = self.front.lpn_of(lun, u64::from(block), 1)?;
        let arrival = self.front.down_from(self.front.at_link(now)) + self.front.link().request;
        let (ppn, by) = match entry {
            Some(HpbEntry(entry)) => (self.by_word(lun, block, u64::from_ne_bytes(entry))?, By::Entry),
            None => self.by_map(arrival, lpn)?,
        };
        let (from, extra) = match by {
            By::Entry => (arrival, self.hpb_command),
            By::Frame(_) => (arrival, self.read_extra + self.map_access),
            By::Load(loaded) => (loaded, Ns::ZERO),
        };
        let sent = self.back.data_alone(from, extra, self.cells_of(ppn), ppn)?;
        let reply = self.front.at_host(self.front.up_from(sent) + self.front.link().block + self.front.link().response);
        if reply > limit || reply >= self.back.next_event() || self.front.target().query.exceptions_wanted() != 0 {
            return None;
        }

        self.back.cpu_mut().command_at(arrival);
        self.back.stats().data_reads += 1;
        match by {
            By::Entry => {
                self.back.stats().hpb_reads += 1;
                self.back.stats().hpb_hits += 1;
                if self.hpb.notes(1) {
                    self.hpb.note_read(lun, block);
                }
            }
            By::Frame(frame) => {
                self.ftl.map_mut().used(frame);
                self.back.stats().map_hits += 1;
            }
            By::Load(_) => {
                self.ftl.map_mut().loaded_alone(lpn);
                self.back.stats().map_misses += 1;
                self.back.stats().map_loads += 1;
            }
        }
        Some(reply)
    }

    /// Cell mode of the superblock of a slice.
    #[inline(always)]
    pub(super) fn cells_of(&self, ppn: Ppn) -> CellMode {
        if self.looks_at_superblocks { self.ftl.mode_of(ppn) } else { CellMode::Full }
    }

    /// The slice that a good entry names.
    #[inline(always)]
    pub(super) fn by_entry(&self, lun: u8, block: u32, entry: HpbEntry) -> Option<Ppn> {
        let unit = self.hpb.standard(lun).filter(|_| !self.back.engine().checks())?;
        match self.hpb.judge(unit, block, entry) {
            Verdict::Good(ppn) => Some(ppn),
            _ => None,
        }
    }

    /// The slice that the map names. Misses of a device that recommends sub-regions are noted, on the long way.
    #[inline(always)]
    fn by_map(&self, arrival: Ns, lpn: Lpn) -> Option<(Ppn, By)> {
        if self.hpb.notes(1) {
            return None;
        }
        match self.ftl.map().foresee(lpn)? {
            (ppn, PageAt::Frame(frame)) => Some((ppn, By::Frame(frame))),
            (ppn, PageAt::Flash(place)) => {
                Some((ppn, By::Load(self.back.page_alone(arrival, self.read_extra, place)?)))
            }
        }
    }
}
