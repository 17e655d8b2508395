// SPDX-License-Identifier: MIT OR Apache-2.0
//! Map pages on their way into the map cache, and who waits for them.

use super::{FrameState, Ftl, Paid};
use crate::back::{Hardware, Job, NO_OP, Op};
use crate::ids::MapPage;
use readpath_flash::OpId;
use readpath_kit::Ns;

impl Ftl {
    pub(crate) fn wait_for_map(&mut self, now: Ns, id: OpId, page: MapPage, state: FrameState, hw: &mut impl Hardware) {
        let frame = match state {
            FrameState::Loading(frame) => frame,
            _ => match self.cache.begin_load(page) {
                Some(frame) => {
                    self.begin_map_load(now, page, frame, hw);
                    frame
                }
                None => return self.stalled.push_back(id),
            },
        };
        let head = &mut self.map_waiters[frame as usize];
        hw.ops_mut().get_mut(id).next = *head;
        *head = id;
    }

    fn begin_map_load(&mut self, now: Ns, page: MapPage, frame: u32, hw: &mut impl Hardware) {
        let ppn = self.map.directory(page).expect("only existing map pages are loaded");
        hw.stats().map_loads += 1;
        self.map_waiters[frame as usize] = NO_OP;
        hw.begin(now, Op { count: 1, lpn: page.0, frame, ..Op::new(Job::MapLoad, ppn) });
    }

    /// A map page is in SRAM, in `frame`.
    pub(crate) fn map_page_here(&mut self, page: MapPage, frame: u32) -> Paid {
        self.cache.finish_load(frame);
        Paid::loaded(page)
    }

    /// Takes out who waits for the page in `frame`: the first of a chain, in order of arrival.
    pub(crate) fn take_waiters(&mut self, frame: u32, hw: &mut impl Hardware) -> OpId {
        let mut chain = std::mem::replace(&mut self.map_waiters[frame as usize], NO_OP);
        // The chain is last in, first out: turn it round.
        let mut ordered = NO_OP;
        while chain != NO_OP {
            let next = std::mem::replace(&mut hw.ops_mut().get_mut(chain).next, ordered);
            ordered = chain;
            chain = next;
        }
        ordered
    }

    /// Reads whose map page found every frame taken by a load.
    pub(crate) fn stalled(&self) -> usize {
        self.stalled.len()
    }

    /// Takes the first of them.
    pub(crate) fn next_stalled(&mut self) -> Option<OpId> {
        self.stalled.pop_front()
    }
}
