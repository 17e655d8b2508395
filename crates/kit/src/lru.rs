// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recency order over dense indices, as two arrays of links. Hashing LRU crates (`lru`, `moka`) pay a hash and a
//! pointer chase per touch; our keys are small integers.

const NIL: u32 = u32::MAX;

/// A doubly linked list over the indices `0..capacity`; each index is in the list at most once. The front is the
/// coldest (next victim), the back the most recent.
#[derive(Debug, Clone)]
pub struct IndexLru {
    links: Vec<Link>,
    front: u32,
    back: u32,
    len: u32,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    prev: u32,
    next: u32,
}

/// Marks an index that is not in the list; distinct from `NIL`, which ends it.
const OUT: Link = Link { prev: NIL - 1, next: NIL - 1 };

impl IndexLru {
    /// An empty list over `0..capacity`.
    pub fn new(capacity: usize) -> Self {
        assert!((capacity as u64) < u64::from(NIL - 1));
        IndexLru { links: vec![OUT; capacity], front: NIL, back: NIL, len: 0 }
    }

    /// Appends `i` as the most recent.
    #[inline]
    pub fn push_back(&mut self, i: u32) {
        debug_assert!(!self.contains(i));
        self.links[i as usize] = Link { prev: self.back, next: NIL };
        match self.back {
            NIL => self.front = i,
            b => self.links[b as usize].next = i,
        }
        self.back = i;
        self.len += 1;
    }

    /// Puts `i` first in line for eviction.
    pub fn push_front(&mut self, i: u32) {
        debug_assert!(!self.contains(i));
        self.links[i as usize] = Link { prev: NIL, next: self.front };
        match self.front {
            NIL => self.back = i,
            f => self.links[f as usize].prev = i,
        }
        self.front = i;
        self.len += 1;
    }

    /// Takes `i` out of the list.
    #[inline]
    pub fn remove(&mut self, i: u32) {
        debug_assert!(self.contains(i));
        let Link { prev, next } = self.links[i as usize];
        match prev {
            NIL => self.front = next,
            p => self.links[p as usize].next = next,
        }
        match next {
            NIL => self.back = prev,
            n => self.links[n as usize].prev = prev,
        }
        self.links[i as usize] = OUT;
        self.len -= 1;
    }

    /// Makes `i`, which is in the list, the most recent.
    #[inline]
    pub fn touch(&mut self, i: u32) {
        debug_assert!(self.contains(i));
        let last = self.back;
        if last == i {
            return;
        }
        // It has a next, and the list a last.
        let Link { prev, next } = self.links[i as usize];
        self.links[next as usize].prev = prev;
        match prev {
            NIL => self.front = next,
            p => self.links[p as usize].next = next,
        }
        self.links[last as usize].next = i;
        self.links[i as usize] = Link { prev: last, next: NIL };
        self.back = i;
    }

    /// Takes the coldest index out.
    #[inline]
    pub fn pop_front(&mut self) -> Option<u32> {
        let i = self.front();
        if let Some(i) = i {
            self.remove(i);
        }
        i
    }

    /// The coldest index.
    #[inline]
    pub fn front(&self) -> Option<u32> {
        (self.front != NIL).then_some(self.front)
    }

    /// The index after `i`, which is in the list.
    #[inline]
    pub fn after(&self, i: u32) -> Option<u32> {
        debug_assert!(self.contains(i));
        let next = self.links[i as usize].next;
        (next != NIL).then_some(next)
    }

    /// Whether `i` is in the list.
    #[inline]
    pub fn contains(&self, i: u32) -> bool {
        self.links[i as usize].next != OUT.next
    }

    /// How many indices are in the list.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// True when the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The indices from coldest to most recent.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.front(), |&i| {
            let next = self.links[i as usize].next;
            (next != NIL).then_some(next)
        })
    }

    /// Memory of this list, in bytes.
    pub fn bytes(&self) -> u64 {
        IndexLru::bytes_for(self.links.len())
    }

    /// Memory of a list over `0..capacity`, in bytes.
    pub const fn bytes_for(capacity: usize) -> u64 {
        (capacity * size_of::<Link>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_vector(ops in proptest::collection::vec((0u8..5, 0u32..8), 0..300)) {
            let mut lru = IndexLru::new(8);
            let mut model: Vec<u32> = Vec::new();
            for (op, i) in ops {
                let inside = model.contains(&i);
                prop_assert_eq!(lru.contains(i), inside);
                match op {
                    0 if !inside => { lru.push_back(i); model.push(i); }
                    1 if !inside => { lru.push_front(i); model.insert(0, i); }
                    2 if inside => { lru.remove(i); model.retain(|&x| x != i); }
                    3 if inside => { lru.touch(i); model.retain(|&x| x != i); model.push(i); }
                    4 => {
                        let want = if model.is_empty() { None } else { Some(model.remove(0)) };
                        prop_assert_eq!(lru.pop_front(), want);
                    }
                    _ => {}
                }
                prop_assert_eq!(lru.iter().collect::<Vec<_>>(), model.clone());
                for pair in model.windows(2) {
                    prop_assert_eq!(lru.after(pair[0]), Some(pair[1]));
                }
                prop_assert_eq!(lru.len() as usize, model.len());
            }
        }
    }
}
