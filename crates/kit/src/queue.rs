// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue that is mostly empty or holds one item: its first item lies outside of the ring. At queue depth 1 every
//! queue of the simulator is of that kind, and `VecDeque` alone pays for its ring at each push, peek and pop.

use std::collections::VecDeque;

/// A first-in, first-out queue.
#[derive(Debug, Clone)]
pub struct FrontQueue<T> {
    front: Option<T>,
    /// Empty whenever `front` is.
    rest: VecDeque<T>,
}

impl<T> FrontQueue<T> {
    /// An empty queue with room for `capacity` items before it allocates again.
    pub fn with_capacity(capacity: usize) -> Self {
        FrontQueue { front: None, rest: VecDeque::with_capacity(capacity) }
    }

    /// Adds an item at the end.
    #[inline(always)]
    pub fn push_back(&mut self, item: T) {
        if self.front.is_none() {
            self.front = Some(item);
        } else {
            self.rest.push_back(item);
        }
    }

    /// Adds an item before all others.
    pub fn push_front(&mut self, item: T) {
        if let Some(second) = self.front.replace(item) {
            self.rest.push_front(second);
        }
    }

    /// The first item.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        self.front.as_ref()
    }

    /// Takes the first item out.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        // Without this check, the whole item would be loaded before it is known to be `None`.
        self.front.as_ref()?;
        if self.rest.is_empty() { self.front.take() } else { std::mem::replace(&mut self.front, self.rest.pop_front()) }
    }

    /// True when there is no item.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.front.is_none()
    }

    /// Forgets every item.
    pub fn clear(&mut self) {
        self.front = None;
        self.rest.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_line(ops in proptest::collection::vec(0u8..8, 0..200)) {
            let mut queue = FrontQueue::with_capacity(1);
            let mut model = VecDeque::new();
            for (i, op) in ops.into_iter().enumerate() {
                match op {
                    0..4 => { queue.push_back(i); model.push_back(i); }
                    4..7 => prop_assert_eq!(queue.pop_front(), model.pop_front()),
                    _ if i % 3 == 0 => { queue.push_front(i); model.push_front(i); }
                    _ if i % 5 == 0 => { queue.clear(); model.clear(); }
                    _ => {}
                }
                prop_assert_eq!(queue.front(), model.front());
                prop_assert_eq!(queue.is_empty(), model.is_empty());
            }
        }
    }
}
