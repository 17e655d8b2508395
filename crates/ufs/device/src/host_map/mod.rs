// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of map pages in host memory that the device reads and writes itself: the rivals of HPB, in which the host has
//! no part in a read. Here is what the device knows of them, and what is on its way there and back.
//!
//! A copy that is in the index says what the map page in flash says. What changed since is in the table of changes,
//! which is looked at first. When a page is written back its changes leave that table, so its copy is written anew at
//! that moment, and what is on its way from the old one is fetched again. This part knows neither the link nor the map.
//!
//! The host may take its memory away for a while and return it as it was. Meanwhile nothing is fetched or written, and
//! the copy of a page that is written back is forgotten.

pub(crate) mod config;
mod copies;
mod exchange;

pub use config::{HostMap, LineCheck, MapMemory, Protocol};
pub(crate) use copies::{Copies, Held};
pub(crate) use exchange::{Ask, Coming, Next};

use crate::SramTable;
use crate::config::{DeviceConfig, MAP_ENTRY_BYTES};
use crate::ids::{Lpn, MapPage};
use exchange::Exchange;
use readpath_flash::Ppn;
use readpath_kit::Ns;

/// An entry of NVMe's list of descriptors: an address, a size, and what is reserved.
const DESCRIPTOR_BYTES: u64 = 16;
/// Pieces that Linux gives if it can.
const USUAL_CHUNK: u64 = 4 << 20;

/// See the module.
pub(crate) struct HostMemory {
    host: Option<HostMap>,
    looks_at_contents: bool,
    /// Renewing a copy is left out, for tests of what that is good for.
    without_renewal: bool,
    lines: u32,
    page_bytes: u64,
    /// Bytes that the host gives.
    given: u64,
    /// The host has taken its memory away, and will return it.
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

    /// What its use costs, if there is any.
    #[inline]
    pub(crate) fn host(&self) -> Option<HostMap> {
        self.host
    }

    /// Bytes that the host gives.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// The host gives so many bytes, at most those that the device would like, with nothing in them.
    pub(crate) fn give(&mut self, config: &DeviceConfig, bytes: u64) {
        self.given = bytes.min(self.host.map_or(0, |host| host.bytes));
        self.taken = false;
        self.copies = Copies::new(config, config.host_map_frames_in(self.given), self.looks_at_contents);
    }

    /// The host takes its memory away for a while.
    pub(crate) fn take_away(&mut self) {
        self.taken = true;
    }

    /// The host returns its memory as it was.
    pub(crate) fn give_back(&mut self) {
        self.taken = false;
    }

    /// Whether map pages are copied there.
    #[inline(always)]
    pub(crate) fn is_there(&self) -> bool {
        self.copies.frames() > 0 && !self.taken
    }

    /// Whether `page` is held; if it is, it becomes the most recently used.
    #[inline(always)]
    pub(crate) fn touch(&mut self, page: MapPage) -> bool {
        self.copies.touch(page) && !self.taken
    }

    /// The copy of `page`, if it can be reached.
    pub(crate) fn held(&self, page: MapPage) -> Option<Held> {
        self.copies.held(page).filter(|_| !self.taken)
    }

    /// A page says something else than its copy: whether the copy has to be written anew. One that cannot be reached is
    /// forgotten instead.
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

    /// Whether the copy that `held` names is still there.
    pub(crate) fn still_holds(&self, held: Held) -> bool {
        self.copies.is_there(held)
    }

    /// Whether what has come of a copy is as it was written, as far as checks show.
    pub(crate) fn is_sound(&self, held: Held, lpn: Lpn, count: u32, slices: u32) -> bool {
        self.copies.is_sound(held, lpn, count, slices)
    }

    /// Where the copy `held` says that `lpn` is, if anywhere; `None` if contents are not looked at.
    pub(crate) fn place(&self, held: Held, lpn: Lpn) -> Option<Option<Ppn>> {
        self.copies.place(held, lpn)
    }

    /// Writes `page`; returns what the firmware spends on that.
    pub(crate) fn write(&mut self, page: MapPage, place: impl Fn(Lpn) -> Option<Ppn>) -> Option<Ns> {
        let host = self.host?;
        self.copies.write(page, place);
        Some(host.firmware + Ns(host.check.map_or(0, |check| check.seal.0 * u64::from(self.lines))))
    }

    /// What was held of `page` is not looked at any more.
    pub(crate) fn drop_page(&mut self, page: MapPage) {
        self.copies.drop_page(page);
    }

    /// Bytes of a map page there, tags included.
    pub(crate) fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// What the firmware spends on checking lines that have come.
    pub(crate) fn check_cost(&self, lines: u32) -> Ns {
        self.host.and_then(|host| host.check).map_or(Ns::ZERO, |check| Ns(check.check.0 * u64::from(lines)))
    }

    /// A request of the host will come to the link; not before those that were announced earlier.
    pub(crate) fn announce(&mut self, coming: Coming) {
        self.exchange.announce(coming);
    }

    /// Something is to be asked when it may be.
    pub(crate) fn queue(&mut self, ask: Ask) {
        self.exchange.waiting.push_back(ask);
    }

    /// Takes what may be asked now.
    pub(crate) fn next_to_ask(&mut self) -> Option<Ask> {
        if self.exchange.outstanding >= self.host?.outstanding {
            return None;
        }
        self.exchange.waiting.pop_front()
    }

    /// The request has reached the host at `at`, whose memory now takes its time.
    pub(crate) fn asked(&mut self, at: Ns, ask: Ask) {
        self.exchange.outstanding += 1;
        self.exchange.asked(at + self.host.map_or(Ns::ZERO, |host| host.access), ask);
    }

    /// An answer will be in the device at `at`.
    pub(crate) fn answer_at(&mut self, at: Ns, ask: Ask) {
        self.exchange.answered(at, ask);
    }

    /// An answer is in the device.
    pub(crate) fn answered(&mut self) {
        self.exchange.outstanding -= 1;
    }

    /// When something happens next.
    pub(crate) fn next_deadline(&self) -> Ns {
        self.exchange.next_deadline()
    }

    /// Takes what happens at `now`.
    pub(crate) fn take(&mut self, now: Ns) -> Option<Next> {
        self.exchange.take(now)
    }

    /// The host gives its memory anew, and it may say anything; its requests on their way are dropped.
    pub(crate) fn hardware_reset(&mut self) {
        self.exchange.drop_requests();
        self.copies.drop_all();
    }

    /// The power is gone.
    pub(crate) fn lose_power(&mut self, config: &DeviceConfig) {
        self.copies = Copies::new(config, config.host_map_frames_in(self.given), self.looks_at_contents);
        self.exchange = Exchange::new();
    }

    /// A fault of the host changes the copies.
    pub(crate) fn tamper(&mut self, change: impl FnMut(u32, u32) -> u32) {
        self.copies.tamper(change);
    }

    /// SRAM of the modelled device, by table: what it is and its bytes. A fetch is of as many blocks as a request may
    /// have operations. There is room for all that the device would like, even if the host gives less.
    pub(crate) fn sram(&self, config: &DeviceConfig, fetched_blocks: u32) -> Vec<(SramTable, u64)> {
        let Some(host) = self.host else { return Vec::new() };
        let map_pages = config.map_pages();
        let pages = u64::from(map_pages) * Copies::PAGE_SRAM_BYTES;
        // The entries of a fetch lie in two lines at most, unless lines are short.
        let entries = u64::from(fetched_blocks * MAP_ENTRY_BYTES);
        let lines = entries.div_ceil(u64::from(host.line_bytes)) + 1;
        let fetch = lines * u64::from(host.stored_line_bytes());
        // Where the pieces of host memory are: the list of descriptors.
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
