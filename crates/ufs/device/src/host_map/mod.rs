// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of map pages in host memory that the device reads and writes itself: the rivals of HPB, in which the host
//! takes no part in a read. This part keeps the state of the copies and the transfers in progress.
//!
//! A copy in the index equals the map page in flash. Later changes are in the table of changes, which is looked up
//! first. When a page is written back its changes leave that table, so its copy is rewritten at that moment, and
//! fetches of the old copy are repeated. This part knows neither the link nor the map.
//!
//! The host may withdraw its memory for a while and return it unchanged. Meanwhile nothing is fetched or written, and
//! the copy of a page that is written back is dropped.

mod copies;
mod exchange;

pub(crate) use copies::{Copies, Held};
pub(crate) use exchange::{Ask, Coming, Next};

use crate::SramTable;
use crate::config::{DeviceConfig, HostMap, MAP_ENTRY_BYTES, Protocol};
use crate::ids::{Lpn, MapPage};
use exchange::Exchange;
use readpath_flash::Ppn;
use readpath_kit::Ns;

/// An entry of NVMe's list of descriptors: an address, a size, and reserved bytes.
const DESCRIPTOR_BYTES: u64 = 16;
/// Size of the pieces that Linux grants if it can.
const USUAL_CHUNK: u64 = 4 << 20;

pub(crate) struct HostMemory {
    host: Option<HostMap>,
    looks_at_contents: bool,
    /// Copies are not renewed, for tests that prove the need.
    without_renewal: bool,
    lines: u32,
    page_bytes: u64,
    /// Bytes that the host grants.
    given: u64,
    /// The host has withdrawn its memory, and will return it.
    taken: bool,
    copies: Copies,
    exchange: Exchange,
}

impl HostMemory {
    /// Host memory without copies; with contents if they are looked at.
    pub(crate) fn new(config: &DeviceConfig, looks_at_contents: bool) -> Self {
        HostMemory {
            host: config.host_map().copied(),
            looks_at_contents,
            without_renewal: config.ftl.without.renewed_copies,
            lines: config.host_map().map_or(0, |host| config.host_lines(host)),
            page_bytes: config.host_map().map_or(0, |host| config.host_page_bytes(host)),
            given: config.host_map().map_or(0, |host| host.bytes),
            taken: false,
            copies: Copies::new(config, config.host_map_frames(), looks_at_contents),
            exchange: Exchange::new(),
        }
    }

    /// Its configuration, if there is any.
    #[inline]
    pub(crate) fn host(&self) -> Option<HostMap> {
        self.host
    }

    /// Bytes that the host grants.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// The host grants `bytes`, at most those that the device asks for; all copies are lost.
    pub(crate) fn give(&mut self, config: &DeviceConfig, bytes: u64) {
        self.given = bytes.min(self.host.map_or(0, |host| host.bytes));
        self.taken = false;
        self.copies = Copies::new(config, config.host_map_frames_in(self.given), self.looks_at_contents);
    }

    /// The host withdraws its memory for a while.
    pub(crate) fn take_away(&mut self) {
        self.taken = true;
    }

    /// The host returns its memory unchanged.
    pub(crate) fn give_back(&mut self) {
        self.taken = false;
    }

    /// Whether map pages are copied to host memory.
    #[inline(always)]
    pub(crate) fn is_there(&self) -> bool {
        self.copies.frames() > 0 && !self.taken
    }

    /// Whether `page` is held; a held page becomes the most recently used.
    #[inline(always)]
    pub(crate) fn touch(&mut self, page: MapPage) -> bool {
        self.copies.touch(page) && !self.taken
    }

    /// The copy of `page`, if it can be reached.
    pub(crate) fn held(&self, page: MapPage) -> Option<Held> {
        self.copies.held(page).filter(|_| !self.taken)
    }

    /// Whether the copy of a changed page has to be rewritten. A copy that cannot be reached is dropped instead.
    #[inline]
    pub(crate) fn wants_renewal(&mut self, page: MapPage) -> bool {
        if self.copies.held(page).is_none() || self.without_renewal {
            return false;
        }
        if self.taken {
            self.copies.drop_page(page);
        }
        !self.taken
    }

    /// Whether the copy `held` has not been replaced.
    pub(crate) fn still_holds(&self, held: Held) -> bool {
        self.copies.is_there(held)
    }

    /// Whether fetched entries are unchanged, as far as checks show.
    pub(crate) fn is_sound(&self, held: Held, lpn: Lpn, count: u32, slices: u32) -> bool {
        self.copies.is_sound(held, lpn, count, slices)
    }

    /// The entry of `lpn` in the copy `held`; `None` if contents are not looked at.
    pub(crate) fn place(&self, held: Held, lpn: Lpn) -> Option<Option<Ppn>> {
        self.copies.place(held, lpn)
    }

    /// Writes `page`; returns the firmware's time for it.
    pub(crate) fn write(&mut self, page: MapPage, place: impl Fn(Lpn) -> Option<Ppn>) -> Option<Ns> {
        let host = self.host?;
        self.copies.write(page, place);
        Some(host.firmware + Ns(host.check.map_or(0, |check| check.seal.0 * u64::from(self.lines))))
    }

    /// Drops the copy of `page`.
    pub(crate) fn drop_page(&mut self, page: MapPage) {
        self.copies.drop_page(page);
    }

    /// Bytes of a map page in host memory, tags included.
    pub(crate) fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// The firmware's time to check fetched lines.
    pub(crate) fn check_cost(&self, lines: u32) -> Ns {
        self.host.and_then(|host| host.check).map_or(Ns::ZERO, |check| Ns(check.check.0 * u64::from(lines)))
    }

    /// Announces a request of the host, which reaches the link after those announced earlier.
    pub(crate) fn announce(&mut self, coming: Coming) {
        self.exchange.coming.push_back(coming);
    }

    /// Queues a request to host memory.
    pub(crate) fn queue(&mut self, ask: Ask) {
        self.exchange.waiting.push_back(ask);
    }

    /// Takes the next request that may be sent now.
    pub(crate) fn next_to_ask(&mut self) -> Option<Ask> {
        if self.exchange.outstanding >= self.host?.outstanding {
            return None;
        }
        self.exchange.waiting.pop_front()
    }

    /// The request has reached the host at `at`; its memory begins to serve it.
    pub(crate) fn asked(&mut self, at: Ns, ask: Ask) {
        self.exchange.outstanding += 1;
        self.exchange.at_host.push_back((at + self.host.map_or(Ns::ZERO, |host| host.access), ask));
    }

    /// As [`Exchange::answer_at`].
    pub(crate) fn answer_at(&mut self, at: Ns, ask: Ask) -> Ns {
        self.exchange.answer_at(at, ask)
    }

    /// An answer has arrived in the device.
    pub(crate) fn answered(&mut self) {
        self.exchange.outstanding -= 1;
    }

    pub(crate) fn next_deadline(&self) -> Ns {
        self.exchange.next_deadline()
    }

    /// Takes an event at `now`.
    pub(crate) fn take(&mut self, now: Ns) -> Option<Next> {
        self.exchange.take(now)
    }

    /// The host grants its memory anew, with undefined contents; announced requests are dropped.
    pub(crate) fn hardware_reset(&mut self) {
        self.exchange.coming.clear();
        self.copies.drop_all();
    }

    pub(crate) fn lose_power(&mut self, config: &DeviceConfig) {
        self.copies = Copies::new(config, config.host_map_frames_in(self.given), self.looks_at_contents);
        self.exchange = Exchange::new();
    }

    pub(crate) fn tamper(&mut self, change: impl FnMut(u32, u32) -> u32) {
        self.copies.tamper(change);
    }

    /// SRAM of the modelled device: each table and its bytes. A fetch covers as many blocks as a request may have
    /// operations. There is room for all memory that the device asks for, even if the host grants less.
    pub(crate) fn sram(&self, config: &DeviceConfig, fetched_blocks: u32) -> Vec<(SramTable, u64)> {
        let Some(host) = self.host else { return Vec::new() };
        let map_pages = config.map_pages();
        let pages = u64::from(map_pages) * Copies::PAGE_SRAM_BYTES;
        // The entries of a fetch lie in at most two lines, unless lines are short.
        let entries = u64::from(fetched_blocks * MAP_ENTRY_BYTES);
        let lines = entries.div_ceil(u64::from(host.line_bytes)) + 1;
        let fetch = lines * u64::from(host.stored_line_bytes());
        // The list of descriptors of the pieces of host memory.
        let pieces = match (host.protocol, host.most_chunks) {
            (Protocol::Ume, _) => 0,
            (Protocol::Hmb, 0) => host.bytes.div_ceil(USUAL_CHUNK),
            (Protocol::Hmb, most) => u64::from(most),
        };
        let frames = u64::from(config.host_map_frames()) * Copies::FRAME_SRAM_BYTES;
        vec![
            (SramTable::HostMapIndex, frames + pages + pieces * DESCRIPTOR_BYTES),
            (SramTable::HostMapFetches, u64::from(host.outstanding) * fetch),
        ]
    }
}
