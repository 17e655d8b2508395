// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue that is mostly empty or holds one item: its first item lies outside of the ring. At queue depth 1 every
//! queue of the simulator is of that kind, and `VecDeque` alone pays for its ring at each push, peek and pop. It also
//! takes items by address: they are stored in parts and loaded as a whole at once, for which a processor waits.

/// A first-in, first-out queue of small items.
#[derive(Debug, Clone)]
pub struct FrontQueue<T> {
    front: Option<T>,
    /// The items behind `front`, `behind` of them from `head` on, around its end. Its length is 0 or a power of two.
    ring: Vec<T>,
    head: usize,
    behind: usize,
}

impl<T: Copy> FrontQueue<T> {
    /// An empty queue with room for `capacity` items before it allocates again.
    pub fn with_capacity(capacity: usize) -> Self {
        FrontQueue { front: None, ring: Vec::with_capacity(capacity.next_power_of_two()), head: 0, behind: 0 }
    }

    /// Adds an item at the end.
    #[inline(always)]
    pub fn push_back(&mut self, item: T) {
        if self.front.is_none() {
            self.front = Some(item);
            return;
        }
        if self.behind == self.ring.len() {
            self.grow();
        }
        let at = self.place(self.behind);
        self.ring[at] = item;
        self.behind += 1;
    }

    /// Adds an item before all others.
    pub fn push_front(&mut self, item: T) {
        if let Some(second) = self.front.replace(item) {
            if self.behind == self.ring.len() {
                self.grow();
            }
            self.head = self.place(self.ring.len() - 1);
            self.ring[self.head] = second;
            self.behind += 1;
        }
    }

    /// Where the item lies that `n` others of the ring precede.
    #[inline(always)]
    fn place(&self, n: usize) -> usize {
        (self.head + n) & (self.ring.len() - 1)
    }

    /// Doubles the ring, which is full. It does not take the item that needs the room: see the module.
    #[cold]
    fn grow(&mut self) {
        let Some(any) = self.front else { return };
        self.ring.rotate_left(self.head);
        self.head = 0;
        // The room that there is already may be any number.
        let room = 1 << self.ring.capacity().max(2).ilog2();
        self.ring.resize(room.max(2 * self.ring.len()), any);
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
        if self.behind == 0 {
            return self.front.take();
        }
        let next = self.ring[self.head];
        self.head = self.place(1);
        self.behind -= 1;
        self.front.replace(next)
    }

    /// The items, from the first on.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.front.iter().chain((0..self.behind).map(|n| &self.ring[self.place(n)]))
    }

    /// True when there is no item.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.front.is_none()
    }

    /// Forgets every item.
    pub fn clear(&mut self) {
        self.front = None;
        (self.head, self.behind) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn behaves_like_a_line(ops in proptest::collection::vec(0u8..8, 0..200)) {
            let mut queue = FrontQueue::with_capacity(ops.len() % 20);
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
                prop_assert!(queue.iter().eq(&model));
            }
        }
    }
}
