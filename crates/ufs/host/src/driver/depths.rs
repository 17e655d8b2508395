// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units that accept fewer commands at a time than the controller has slots (bLUQueueDepth; Linux
//! `ufshcd_set_queue_depth`, `scsi_dev_queue_ready`). As on Linux a command already has its tag when it waits here,
//! and HPB's own commands precede all others. The contents of commands are not known here.

use super::tags::{MAX_SLOTS, Tag, Tags, Use};
use readpath_kit::FrontQueue;
use std::collections::VecDeque;

/// Queue depths of units, and commands in flight.
pub(super) struct UnitDepths {
    /// Queue depth of each unit; 0 if it shares the device's queue.
    depths: Vec<u8>,
    in_flight: [bool; MAX_SLOTS],
    waiting: VecDeque<Tag>,
}

impl UnitDepths {
    /// For the queue depths of units, by number; `None` if no unit has its own.
    pub(super) fn new(depths: Vec<u8>) -> Option<Box<UnitDepths>> {
        let has_some = depths.iter().any(|&depth| depth > 0);
        has_some.then(|| Box::new(UnitDepths { depths, in_flight: [false; MAX_SLOTS], waiting: VecDeque::new() }))
    }

    /// The next command of `out` whose unit accepts it; others wait.
    pub(super) fn next(&mut self, out: &mut FrontQueue<Tag>, tags: &Tags) -> Option<Tag> {
        loop {
            let tag = out.pop_front()?;
            if self.has_room(tag, tags) {
                self.in_flight[tag.row()] = matches!(tags[tag].used, Use::Block | Use::Ordered | Use::Map | Use::Unmap);
                return Some(tag);
            }
            match tags[tag].used {
                Use::Map | Use::Unmap => self.waiting.push_front(tag),
                _ => self.waiting.push_back(tag),
            }
        }
    }

    fn has_room(&self, tag: Tag, tags: &Tags) -> bool {
        let state = &tags[tag];
        let depth = self.depths.get(usize::from(state.lun)).copied().unwrap_or(0);
        let is_command = matches!(state.used, Use::Block | Use::Ordered | Use::Map | Use::Unmap);
        if depth == 0 || !is_command || self.in_flight[tag.row()] {
            return true;
        }
        let same_unit = |tag: Tag, lun| self.in_flight[tag.row()] && lun == state.lun;
        tags.iter().filter(|&(tag, other)| same_unit(tag, other.lun)).count() < usize::from(depth)
    }

    /// After a reply: moves the unit's next waiting command to `out`.
    pub(super) fn ended(&mut self, tag: Tag, out: &mut FrontQueue<Tag>, tags: &Tags) {
        if !std::mem::take(&mut self.in_flight[tag.row()]) {
            return;
        }
        let lun = tags[tag].lun;
        if let Some(i) = self.waiting.iter().position(|&waiting| tags[waiting].lun == lun) {
            self.waiting.remove(i).into_iter().for_each(|tag| out.push_back(tag));
        }
    }

    /// Forgets commands in flight and waiting ones.
    pub(super) fn clear(&mut self) {
        self.in_flight = [false; MAX_SLOTS];
        self.waiting.clear();
    }
}
