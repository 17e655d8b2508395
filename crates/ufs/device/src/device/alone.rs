// SPDX-License-Identifier: MIT OR Apache-2.0
//! A read of one block with nothing else under way, as at queue depth 1: its way through link, firmware and flash is a
//! sum, without an event for each stage. What it leaves behind is what the long way leaves.

use crate::back::{Hardware, MediaMode, Probe};
use crate::config::DeviceConfig;
use crate::device::UfsDevice;
use crate::ftl::PageAt;
use crate::hpb::Verdict;
use crate::ids::Lpn;
use readpath_flash::{Alone, DieSched, Ppn};
use readpath_kit::Ns;
use readpath_proto::typed::HpbEntry;

/// Whether reads that are plain may be served alone: no part of their way draws at random or fetches from host memory.
pub(super) fn is_possible(config: &DeviceConfig) -> bool {
    config.ftl.faults.read_retries_ppm == 0
        && config.host_map().is_none()
        && config.map_runs_bytes == 0
        && config.map_read_ahead == 0
}

/// What a read was served by.
enum Served {
    Entry,
    /// Its page of the map is in this frame of SRAM.
    Frame(u32),
    /// The page of the map was read from this slice, which took the firmware and the array until these times.
    Load(Ppn, (Ns, Alone)),
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Serves a read of one block that leaves the host's software at `now`, if nothing else happens from then until its
    /// reply, a GOOD one without further information, reaches the host, at the latest at `limit`. Returns that time.
    /// `None` if that cannot be said; then nothing has changed, and the read is to be submitted.
    #[inline(always)]
    pub fn read_alone(&mut self, now: Ns, limit: Ns, lun: u8, block: u32, entry: Option<HpbEntry>) -> Option<Ns> {
        let is_idle = self.front.next_reply() == Ns::NEVER && self.hpb.has_nothing_to_tell();
        if P::ACTIVE || M::ACTIVE || !self.may_read_alone || !is_idle || self.front.has_starved() {
            return None;
        }
        if usize::from(lun) >= self.front.units() || !self.front.target().is_direct(lun) {
            return None;
        }
        let lpn = self.front.lpn_of(lun, u64::from(block), 1)?;
        let arrival = self.front.down_from(self.front.at_link(now)) + self.front.link().request;
        let (ppn, served) = match entry {
            Some(entry) => (self.by_entry(lun, block, entry)?, Served::Entry),
            None => self.by_map(arrival, lpn)?,
        };
        let data = match &served {
            Served::Entry => self.back.alone(arrival, self.hpb_command, false, ppn)?,
            Served::Frame(_) => self.back.alone(arrival, self.read_extra + self.map_access, false, ppn)?,
            Served::Load(_, (_, load)) => self.back.alone(load.sent, Ns::ZERO, false, ppn)?,
        };
        let at_link = self.front.up_from(data.1.sent);
        let end = at_link + self.front.link().block + self.front.link().response;
        let reply = self.front.at_host(end);
        if reply > limit || reply >= self.back.next_event() || self.front.target().query.exceptions_wanted() != 0 {
            return None;
        }

        self.front.set_down_free(arrival);
        self.front.set_up_free(end);
        self.back.cpu_mut().command_at(arrival);
        match served {
            Served::Entry => {
                self.back.stats().hpb_reads += 1;
                self.back.stats().hpb_hits += 1;
                if self.hpb.notes(1) {
                    self.hpb.note_read(lun, block);
                }
            }
            Served::Frame(frame) => {
                self.ftl.map_mut().used(frame);
                self.back.stats().map_hits += 1;
            }
            Served::Load(place, load) => {
                let in_vain = self.ftl.map_mut().loaded_alone(lpn);
                let stats = self.back.stats();
                stats.map_misses += 1;
                stats.map_loads += 1;
                stats.map_ahead_unused += u64::from(in_vain);
                self.back.was_alone(place, load);
            }
        }
        self.back.stats().data_reads += 1;
        self.back.was_alone(ppn, data);
        Some(reply)
    }

    /// The slice that a good entry names.
    #[inline(always)]
    fn by_entry(&self, lun: u8, block: u32, entry: HpbEntry) -> Option<Ppn> {
        let unit = self.hpb.standard(lun).filter(|_| !self.back.engine().checks())?;
        match self.hpb.judge(unit, block, entry) {
            Verdict::Good(ppn) => Some(ppn),
            _ => None,
        }
    }

    /// The slice that the map names. Misses of a device that recommends sub-regions are noted, on the long way.
    #[inline(always)]
    fn by_map(&self, arrival: Ns, lpn: Lpn) -> Option<(Ppn, Served)> {
        if self.hpb.notes(1) {
            return None;
        }
        match self.ftl.map().foresee(lpn)? {
            (ppn, PageAt::Frame(frame)) => Some((ppn, Served::Frame(frame))),
            (ppn, PageAt::Flash(place)) => {
                let load = self.back.alone(arrival, self.read_extra, true, place)?;
                Some((ppn, Served::Load(place, load)))
            }
        }
    }
}
