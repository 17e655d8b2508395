// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads of map pages into SRAM, the operations that wait for them, and the proof that one was paid for.

use super::cache::MapCache;
use super::{FrameState, Map, Mapping};
use crate::back::{Hardware, Job, NO_OP, Op};
use crate::host_map::Held;
use crate::ids::{Lpn, MapPage, TagRef};
use readpath_flash::OpId;
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

/// Proof that all map pages of an HPB READ BUFFER are in its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InReadBuffer {
    first: MapPage,
    pages: u32,
}

impl InReadBuffer {
    /// For `pages` map pages from `first` on, of which `missing` are not loaded.
    ///
    /// # Panics
    /// If pages are missing.
    pub(crate) fn loaded(first: MapPage, pages: u32, missing: u32) -> InReadBuffer {
        assert!(missing == 0, "{missing} of {pages} map pages are still on their way");
        InReadBuffer { first, pages }
    }
}

/// The heads of the empty chains of waiters.
pub(super) fn no_waiters(cache: &MapCache) -> Vec<OpId> {
    vec![NO_OP; cache.frames() as usize]
}

impl Map {
    /// Looks a map page up for a translation.
    #[inline(always)]
    pub(crate) fn look_up(&mut self, page: MapPage) -> FrameState {
        self.cache.lookup(page)
    }

    /// Proof for a map page that is in SRAM; does not count as use.
    pub(in crate::ftl) fn cached(&self, page: MapPage) -> Option<Paid> {
        self.cache.present(page)
    }

    /// Proof for a map page that does not exist according to the directory: nothing in it is mapped.
    #[inline(always)]
    pub(crate) fn missing(&self, page: MapPage) -> Option<Paid> {
        self.directory(page).is_none().then_some(Paid(page))
    }

    /// Where a block is whose map page is in the buffer of an HPB READ BUFFER.
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
                Some(frame) => {
                    self.begin_load(now, page, frame, hw);
                    frame
                }
                None => return self.stalled.push_back(id),
            },
        };
        let head = &mut self.waiters[frame as usize];
        hw.ops_mut().get_mut(id).next = *head;
        *head = id;
    }

    fn begin_load(&mut self, now: Ns, page: MapPage, frame: u32, hw: &mut impl Hardware) {
        let ppn = self.directory(page).expect("only existing map pages are loaded");
        hw.stats().map_loads += 1;
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

    /// Takes the first stalled read.
    pub(crate) fn next_stalled(&mut self) -> Option<OpId> {
        self.stalled.pop_front()
    }
}
