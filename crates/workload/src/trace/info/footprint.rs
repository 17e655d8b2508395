// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which blocks of 4 KiB a trace touches, as bitmaps of 4 MiB each. Knows addresses, not times.

use super::super::Request;
use crate::IoKind;
use readpath_kit::BLOCK_BYTES;
use std::collections::HashMap;

const CHUNK_BLOCKS: u64 = 1024;
const WORDS: usize = CHUNK_BLOCKS as usize / 64;

/// Blocks of 4 KiB that are read and written. A block counts when any byte of it is touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Footprint {
    /// Different blocks that are read or written.
    pub blocks: u64,
    /// Different blocks that are read.
    pub blocks_read: u64,
    /// Different blocks that are written.
    pub blocks_written: u64,
    /// Different blocks that are read more than once.
    pub blocks_read_again: u64,
    /// Different blocks whose first access is a read: they held data before the trace began.
    pub blocks_read_first: u64,
    /// Different blocks that are read and never written.
    pub blocks_only_read: u64,
    /// Accesses: blocks of all reads.
    pub block_reads: u64,
    /// Accesses: blocks of all writes.
    pub block_writes: u64,
    /// Accesses: reads of blocks that were read before.
    pub block_reads_again: u64,
    /// First byte that is read or written.
    pub lowest: u64,
    /// End of the last byte that is read or written.
    pub highest: u64,
}

impl Footprint {
    /// Bytes of different blocks.
    pub fn bytes(&self) -> u64 {
        self.blocks * u64::from(BLOCK_BYTES)
    }
}

struct Chunk {
    read: [u64; WORDS],
    again: [u64; WORDS],
    written: [u64; WORDS],
    first: [u64; WORDS],
}

#[derive(Default)]
pub(super) struct Tracker {
    /// Only looked up, never walked, so that the order of its entries does not matter.
    index: HashMap<u64, u32>,
    chunks: Vec<Chunk>,
    last: Option<(u64, u32)>,
    sum: Footprint,
}

impl Tracker {
    fn chunk(&mut self, number: u64) -> &mut Chunk {
        let i = match self.last {
            Some((n, i)) if n == number => i,
            _ => *self.index.entry(number).or_insert_with(|| {
                let zero = [0; WORDS];
                self.chunks.push(Chunk { read: zero, again: zero, written: zero, first: zero });
                self.chunks.len() as u32 - 1
            }),
        };
        self.last = Some((number, i));
        &mut self.chunks[i as usize]
    }

    pub(super) fn add(&mut self, r: &Request) {
        let block = u64::from(BLOCK_BYTES);
        let (first, end) = (r.offset / block, r.offset.saturating_add(r.bytes).div_ceil(block));
        self.sum.lowest = if self.chunks.is_empty() { r.offset } else { self.sum.lowest.min(r.offset) };
        self.sum.highest = self.sum.highest.max(r.offset.saturating_add(r.bytes));
        match r.kind {
            IoKind::Read => self.sum.block_reads += end - first,
            _ => self.sum.block_writes += end - first,
        }
        let mut at = first;
        let mut again = 0;
        while at < end {
            let stop = end.min((at / CHUNK_BLOCKS + 1) * CHUNK_BLOCKS);
            let chunk = self.chunk(at / CHUNK_BLOCKS);
            let (mut bit, last) = ((at % CHUNK_BLOCKS) as usize, ((stop - 1) % CHUNK_BLOCKS) as usize);
            while bit <= last {
                let (w, low) = (bit / 64, bit % 64);
                let high = if last / 64 == w { last % 64 } else { 63 };
                let mask = (u64::MAX >> (63 - high)) & (u64::MAX << low);
                if r.kind == IoKind::Read {
                    let repeated = chunk.read[w] & mask;
                    again += u64::from(repeated.count_ones());
                    chunk.again[w] |= repeated;
                    chunk.first[w] |= mask & !chunk.read[w] & !chunk.written[w];
                    chunk.read[w] |= mask;
                } else {
                    chunk.written[w] |= mask;
                }
                bit = (w + 1) * 64;
            }
            at = stop;
        }
        self.sum.block_reads_again += again;
    }

    pub(super) fn bytes(&self) -> u64 {
        // An entry of the index takes 16 bytes, and up to half of its slots are free.
        self.chunks.len() as u64 * (size_of::<Chunk>() as u64 + 32)
    }

    pub(super) fn finish(self) -> Footprint {
        let mut sum = self.sum;
        for chunk in &self.chunks {
            for w in 0..WORDS {
                let n = |bits: u64| u64::from(bits.count_ones());
                sum.blocks += n(chunk.read[w] | chunk.written[w]);
                sum.blocks_read += n(chunk.read[w]);
                sum.blocks_written += n(chunk.written[w]);
                sum.blocks_read_again += n(chunk.again[w]);
                sum.blocks_read_first += n(chunk.first[w]);
                sum.blocks_only_read += n(chunk.read[w] & !chunk.written[w]);
            }
        }
        sum
    }
}
