// SPDX-License-Identifier: MIT OR Apache-2.0
//! The buffers of HPB READ BUFFER: each holds the map pages of a sub-region and the entries made of them, from the
//! first load until the reply has left. There are few, so commands may have to wait. It knows tags, not contents.

use crate::front::TAGS;
use crate::ids::TagRef;
use std::collections::VecDeque;

pub(crate) struct ReadBuffers {
    free: u8,
    /// Tags that hold a buffer, one bit each.
    held: u64,
    /// Commands that wait for a buffer.
    waiting: VecDeque<TagRef>,
}

const _: () = assert!(TAGS == 64, "a bit for each tag");

impl ReadBuffers {
    pub(crate) fn new(count: u8) -> Self {
        ReadBuffers { free: count, held: 0, waiting: VecDeque::with_capacity(TAGS) }
    }

    /// Takes a buffer for `tag`; false if it has to wait in line.
    pub(crate) fn take_or_wait(&mut self, tag: TagRef) -> bool {
        let free = self.free > 0;
        if free {
            self.free -= 1;
            self.held |= 1 << tag.tag;
        } else {
            self.waiting.push_back(tag);
        }
        free
    }

    /// Gives back the buffer of `tag`; false if it had none.
    pub(crate) fn give_back(&mut self, tag: u8) -> bool {
        let had = self.held >> tag & 1 == 1;
        if had {
            self.held &= !(1 << tag);
            self.free += 1;
        }
        had
    }

    /// The next waiting command, if a buffer is free. It does not take the buffer.
    pub(crate) fn next(&mut self) -> Option<TagRef> {
        if self.free > 0 { self.waiting.pop_front() } else { None }
    }

    /// Removes `tag` from the queue.
    pub(crate) fn leave(&mut self, tag: u8) {
        self.waiting.retain(|waiting| waiting.tag != tag);
    }

    pub(crate) fn clear(&mut self) {
        self.free += self.held.count_ones() as u8;
        self.held = 0;
        self.waiting.clear();
    }
}
