// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads of map pages into SRAM, the operations that wait for them, and the proof that one was paid for.

use super::cache::MapCache;
use super::runs::MapRun;
use super::{FrameState, Map, Mapping};
use crate::back::{Hardware, Job, NO_OP, Op};
use crate::host_map::Held;
use crate::ids::{Lpn, MapPage, TagRef};
use readpath_flash::{OpId, Ppn};
use readpath_kit::Ns;

/// Proof that the device may look into a map page: SRAM holds it, it was read from flash or host memory, or the
/// directory says that it does not exist. It costs no modelled memory or time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Paid(MapPage);

impl Paid {
    /// For a page whose read has ended, or that was found in SRAM.
    #[inline(always)]
    pub(super) fn for_page(page: MapPage) -> Paid {
        Paid(page)
    }

    #[inline(always)]
    pub(crate) fn page(self) -> MapPage {
        self.0
    }

    /// For a page that recovery has read, as it reads all of them.
    pub(crate) fn by_recovery(page: MapPage) -> Paid {
        Paid(page)
    }

    /// For the page whose load from flash is `op`, which has ended.
    pub(crate) fn by_load(op: &Op) -> Paid {
        debug_assert!(matches!(op.job, Job::MapLoad | Job::WriteBackLoad), "{:?} loads no map page", op.job);
        Paid(MapPage(op.lpn))
    }
}

/// Where a map page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PageAt {
    /// In this frame of SRAM.
    Frame(u32),
    /// In flash only.
    Flash(Ppn),
}

/// Proof that all map pages of an HPB READ BUFFER are in its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InReadBuffer {
    first: MapPage,
    pages: u32,
}

/// The heads of the empty chains of waiters.
pub(super) fn no_waiters(cache: &MapCache) -> Vec<OpId> {
    vec![NO_OP; cache.frames() as usize]
}

impl Map {
    /// Where a block is whose entry only its map page knows, and where that page is: for a read with nothing between
    /// now and its lookup. `None` if it would find something else. Nothing changes.
    #[inline(always)]
    pub(crate) fn foresee(&self, lpn: Lpn) -> Option<(Ppn, PageAt)> {
        let ppn = self.in_flash(lpn)?;
        let page = self.page_of(lpn);
        match self.cache.frame(page) {
            Some(frame) => Some((ppn, PageAt::Frame(frame))),
            None if self.cache.has_frame(page) => None,
            None => Some((ppn, PageAt::Flash(self.directory(page)?))),
        }
    }

    /// Where a block is whose entry only its map page knows.
    #[inline(always)]
    fn in_flash(&self, lpn: Lpn) -> Option<Ppn> {
        let entry = self.table().entry(lpn);
        entry.mapping().flash().filter(|_| !entry.is_recent())
    }

    /// Where a block is whose entry only its map page knows, and where that page is in flash: for a read that will be
    /// allowed to know it, with nothing that changes it between.
    #[inline(always)]
    pub(crate) fn placed(&self, lpn: Lpn) -> Option<(Ppn, Ppn)> {
        let ppn = self.in_flash(lpn)?;
        Some((ppn, self.directory(self.page_of(lpn))?))
    }

    /// Takes a frame for a map page that is to be loaded; `None` if every frame has a load in progress.
    #[inline(always)]
    pub(crate) fn take_frame(&mut self, page: MapPage) -> Option<u32> {
        let (frame, _) = self.cache.begin_load(page)?;
        self.waiters[frame as usize] = NO_OP;
        Some(frame)
    }

    /// The operation `id` waits for the page that is loaded into `frame`; returns the one that did before it.
    #[inline(always)]
    pub(crate) fn wait_in(&mut self, frame: u32, id: OpId) -> OpId {
        std::mem::replace(&mut self.waiters[frame as usize], id)
    }

    /// The last operation that waits for the page that is loaded into `frame`.
    pub(crate) fn waiting(&self, frame: u32) -> OpId {
        self.waiters[frame as usize]
    }

    /// The page in `frame` is in SRAM; returns the last operation that waited for it.
    #[inline(always)]
    pub(crate) fn end_load(&mut self, frame: u32) -> OpId {
        self.cache.finish_load(frame);
        std::mem::replace(&mut self.waiters[frame as usize], NO_OP)
    }

    /// A read has used the page in a frame of SRAM.
    #[inline(always)]
    pub(crate) fn used(&mut self, frame: u32) {
        self.count_lookups(1);
        self.cache.touch(frame);
    }

    /// A read has loaded and used the map page of a block, which SRAM had not got.
    #[inline(always)]
    pub(crate) fn loaded_alone(&mut self, lpn: Lpn) {
        self.count_lookups(1);
        if let Some((frame, _)) = self.cache.begin_load(self.page_of(lpn)) {
            self.cache.finish_load(frame);
        }
    }

    /// Looks a map page up for a translation.
    #[inline(always)]
    pub(crate) fn look_up(&mut self, page: MapPage) -> FrameState {
        self.count_lookups(1);
        self.cache.lookup(page)
    }

    /// Proof for a map page that is in SRAM; does not count as use.
    pub(in crate::ftl) fn cached(&self, page: MapPage) -> Option<Paid> {
        self.cache.present(page)
    }

    /// Whether runs of the map are kept.
    #[inline(always)]
    pub(crate) fn keeps_runs(&self) -> bool {
        self.runs.is_on()
    }

    /// Where the runs in SRAM place a block that the table of changes does not know, and how many blocks from it on.
    pub(crate) fn in_run(&mut self, lpn: Lpn) -> Option<(Ppn, u32)> {
        let page = self.page_of(lpn);
        self.runs.look_up(page, lpn).map(|run| (run.at, u32::from(run.blocks)))
    }

    /// Enters the longest run around a block of a map page that was read from flash.
    pub(crate) fn enter_run(&mut self, paid: Paid, lpn: Lpn) {
        let page = paid.page();
        let Mapping::Flash(at) = self.translate_in_flash(paid, lpn) else { return };
        if self.runs.look_up(page, lpn).is_some() {
            return;
        }
        self.will_be_read(page);
        // Slices that follow on each other are as far apart as their blocks.
        let slice = |other: Lpn| Mapping::Flash(Ppn(at.0.wrapping_add(other.0).wrapping_sub(lpn.0)));
        let joins = |other: &Lpn| self.translate_in_flash(paid, *other) == slice(*other);
        let first = Lpn(page.0 * self.page_entries());
        let before = (1..=lpn - first).take_while(|n| joins(&Lpn(lpn.0 - n))).count() as u32;
        let from = self.blocks_of(page).skip((lpn - first) as usize).take_while(joins).count() as u32;
        let run = MapRun { first: Lpn(lpn.0 - before), at: Ppn(at.0 - before), blocks: (before + from) as u16 };
        self.runs.enter(page, run);
    }

    /// Bytes of SRAM for runs of the map.
    pub(crate) fn runs_bytes(&self) -> u64 {
        self.runs.sram_bytes()
    }

    /// Proof for a map page that does not exist according to the directory: nothing in it is mapped.
    #[inline(always)]
    pub(crate) fn missing(&self, page: MapPage) -> Option<Paid> {
        self.directory(page).is_none().then_some(Paid(page))
    }

    /// Proof for `pages` map pages from `first` on, of which `missing` are not loaded, whose entries will be read.
    ///
    /// # Panics
    /// If pages are missing.
    pub(crate) fn in_read_buffer(&mut self, first: MapPage, pages: u32, missing: u32) -> InReadBuffer {
        assert!(missing == 0, "{missing} of {pages} map pages are still on their way");
        (first.0..first.0 + pages).for_each(|page| self.will_be_read(MapPage(page)));
        InReadBuffer { first, pages }
    }

    /// Where a block is whose map page is in the buffer of an HPB READ BUFFER.
    #[inline]
    pub(crate) fn translate_in_buffer(&self, buffer: InReadBuffer, lpn: Lpn) -> Mapping {
        let page = self.page_of(lpn);
        debug_assert!((buffer.first.0..buffer.first.0 + buffer.pages).contains(&page.0), "the buffer lacks {page:?}");
        self.get(lpn)
    }

    /// Where a block is whose map page was fetched from its copy in host memory.
    pub(crate) fn translate_fetched(&self, _copy: Held, lpn: Lpn) -> Mapping {
        self.get(lpn)
    }

    /// Loads the first map pages into SRAM, as many as it holds, in no time.
    pub(crate) fn preload(&mut self) {
        self.cache.load_first();
    }

    pub(crate) fn cache_frames(&self) -> u32 {
        self.cache.frames()
    }

    /// Lets an operation wait for a map page; begins the load unless it is in progress.
    pub(crate) fn wait_for(&mut self, now: Ns, id: OpId, page: MapPage, state: FrameState, hw: &mut impl Hardware) {
        let frame = match state {
            FrameState::Loading(frame) => frame,
            _ => match self.cache.begin_load(page) {
                Some(taken) => {
                    self.begin_load(now, page, taken, hw);
                    taken.0
                }
                None => return self.stall(id),
            },
        };
        let head = &mut self.waiters[frame as usize];
        hw.ops_mut().get_mut(id).next = *head;
        *head = id;
    }

    /// Loads up to `most` of the pages behind one that was loaded for a read, if SRAM holds the page before it. A page
    /// that `is_held` elsewhere is left out.
    #[inline(never)]
    pub(crate) fn load_ahead(
        &mut self,
        now: Ns,
        page: MapPage,
        most: u32,
        is_held: impl Fn(MapPage) -> bool,
        hw: &mut impl Hardware,
    ) {
        if page.0 == 0 || !self.cache.has_frame(MapPage(page.0 - 1)) {
            return;
        }
        let last = page.0.saturating_add(most).min(self.pages() - 1);
        for next in (page.0 + 1..=last).map(MapPage) {
            if self.cache.has_frame(next) || self.directory(next).is_none() || is_held(next) || !hw.ops().has_room() {
                continue;
            }
            let Some(taken) = self.cache.begin_load(next) else { return };
            hw.stats().map_loads_ahead += 1;
            self.begin_load(now, next, taken, hw);
            self.cache.mark_ahead(next);
        }
    }

    #[inline]
    fn begin_load(&mut self, now: Ns, page: MapPage, (frame, in_vain): (u32, bool), hw: &mut impl Hardware) {
        let ppn = self.directory(page).expect("only existing map pages are loaded");
        hw.stats().map_loads += 1;
        hw.stats().map_ahead_unused += u64::from(in_vain);
        self.waiters[frame as usize] = NO_OP;
        hw.begin(now, Op { count: 1, lpn: page.0, frame, ..Op::new(Job::MapLoad, ppn) });
    }

    /// The load `op` has ended: its map page is in SRAM.
    pub(crate) fn loaded(&mut self, op: &Op) -> Paid {
        self.cache.finish_load(op.frame);
        Paid::by_load(op)
    }

    /// Loads a map page into the buffer of the HPB READ BUFFER `tag`, unless SRAM holds it or it does not exist.
    /// Returns whether a read begins.
    pub(crate) fn load_to_buffer(&self, now: Ns, page: MapPage, tag: TagRef, hw: &mut impl Hardware) -> bool {
        let Some(ppn) = self.directory(page).filter(|_| self.cached(page).is_none()) else { return false };
        hw.stats().buffer_map_loads += 1;
        hw.begin(now, Op { tag, count: 1, lpn: page.0, ..Op::new(Job::BufferLoad, ppn) });
        true
    }

    /// Whether a page, which has a frame, was loaded ahead and no read has asked for it.
    pub(crate) fn is_ahead(&self, page: MapPage) -> bool {
        self.cache.is_ahead(page)
    }

    /// Takes the operations that wait for the page in `frame`: the head of a chain in order of arrival.
    pub(crate) fn take_waiters(&mut self, frame: u32, hw: &mut impl Hardware) -> OpId {
        let mut chain = std::mem::replace(&mut self.waiters[frame as usize], NO_OP);
        // The chain is last in, first out: reverse it.
        let mut ordered = NO_OP;
        while chain != NO_OP {
            let next = std::mem::replace(&mut hw.ops_mut().get_mut(chain).next, ordered);
            ordered = chain;
            chain = next;
        }
        ordered
    }

    /// Number of reads that found a load in progress in every frame.
    pub(crate) fn stalled(&self) -> usize {
        self.stalled.len()
    }

    /// Whether a page that is absent finds a frame.
    pub(crate) fn can_take_frame(&self) -> bool {
        self.cache.can_take_frame()
    }

    /// Whether a page is in SRAM, or on its way there.
    #[inline]
    pub(crate) fn is_on_its_way(&self, page: MapPage) -> bool {
        self.cache.has_frame(page)
    }

    /// The reads that found a load in progress in every frame, in order.
    pub(crate) fn all_stalled(&self) -> impl Iterator<Item = OpId> {
        self.stalled.iter().copied()
    }

    /// A read found a load in progress in every frame.
    pub(crate) fn stall(&mut self, id: OpId) {
        self.stalled.push_back(id);
    }

    /// Takes the first stalled read.
    pub(crate) fn next_stalled(&mut self) -> Option<OpId> {
        self.stalled.pop_front()
    }
}
