// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recently written blocks, whose reads need no map page: their data is in the device's write buffer, or its table of
//! changes has the entry. Two generations of hashed bits: up to one block in six is wrongly taken for written.

/// Bits of a generation.
const BITS: u32 = 1 << 16;
/// Writes of other blocks after which a generation becomes the old one, and the old one is forgotten.
const GENERATION: u32 = 1 << 12;

pub(super) struct Written {
    young: Vec<u64>,
    old: Vec<u64>,
    count: u32,
}

fn place(block: u32) -> (usize, u64) {
    // Fibonacci hashing.
    let hash = block.wrapping_mul(0x9E37_79B1) >> (u32::BITS - BITS.trailing_zeros());
    ((hash / u64::BITS) as usize, 1 << (hash % u64::BITS))
}

impl Written {
    pub(super) fn new() -> Self {
        let none = || vec![0; (BITS / u64::BITS) as usize];
        Written { young: none(), old: none(), count: 0 }
    }

    pub(super) fn add(&mut self, block: u32, blocks: u32) {
        for block in block..block.saturating_add(blocks) {
            let (word, bit) = place(block);
            if self.young[word] & bit != 0 {
                continue;
            }
            if self.count == GENERATION {
                self.count = 0;
                std::mem::swap(&mut self.young, &mut self.old);
                self.young.fill(0);
            }
            self.young[word] |= bit;
            self.count += 1;
        }
    }

    /// Whether all of these blocks were written recently.
    pub(super) fn all(&self, block: u32, blocks: u32) -> bool {
        (block..block + blocks).all(|block| {
            let (word, bit) = place(block);
            (self.young[word] | self.old[word]) & bit != 0
        })
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.young.len() + self.old.len()) as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_writes_are_known_and_those_long_ago_are_not() {
        let mut written = Written::new();
        written.add(1000, 3);
        assert!(written.all(1000, 3) && written.all(1001, 1) && !written.all(999, 2) && !written.all(1000, 4));
        for block in 0..GENERATION {
            written.add(1 << 20 | block, 1);
            // Repeated writes of a block count once.
            written.add(1 << 20, 1);
        }
        assert!(written.all(1000, 3) && written.all(1 << 20, GENERATION));
        written.add(1 << 21, GENERATION);
        assert!(!written.all(1000, 3));
        let wrong = (1 << 24..(1 << 24) + 10_000).filter(|&block| written.all(block, 1)).count();
        assert!(wrong < 2000, "{wrong} of 10,000 blocks were taken for written");
    }
}
