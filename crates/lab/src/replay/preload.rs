// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which blocks have to be on the device before the first of several traces begins. Knows addresses only.

use readpath_workload::trace::Loaded;

/// Blocks as bits.
struct Blocks(Vec<u64>);

impl Blocks {
    fn none(device_blocks: u32) -> Self {
        Blocks(vec![0; device_blocks.div_ceil(64) as usize])
    }

    /// Calls `f` with each word of `first..first + blocks` and the range's bits in it.
    fn words(first: u32, blocks: u32, mut f: impl FnMut(usize, u64)) {
        let end = first + blocks;
        let mut at = first;
        while at < end {
            let (word, low) = (at as usize / 64, at % 64);
            let n = (64 - low).min(end - at);
            f(word, (u64::MAX >> (64 - n)) << low);
            at += n;
        }
    }

    fn ranges(&self) -> Vec<(u32, u32)> {
        let mut list: Vec<(u32, u32)> = Vec::new();
        for (word, &bits) in self.0.iter().enumerate() {
            let mut left = bits;
            while left != 0 {
                let low = left.trailing_zeros();
                let run = (left >> low).trailing_ones();
                let first = word as u32 * 64 + low;
                match list.last_mut() {
                    Some((start, blocks)) if *start + *blocks == first => *blocks += run,
                    _ => list.push((first, run)),
                }
                left &= if low + run == 64 { 0 } else { u64::MAX << (low + run) };
            }
        }
        list
    }
}

/// What the traces read, write or discard.
pub(super) fn touched<'a>(phases: impl Iterator<Item = &'a Loaded>, device_blocks: u32) -> Vec<(u32, u32)> {
    let mut all = Blocks::none(device_blocks);
    for io in phases.flat_map(|trace| &trace.ios) {
        Blocks::words(io.block, u32::from(io.blocks), |word, mask| all.0[word] |= mask);
    }
    all.ranges()
}

/// What each trace needs at its start, less what those before it have written, discarded, or needed themselves.
pub(super) fn of_phases(phases: &[&Loaded], device_blocks: u32) -> Vec<(u32, u32)> {
    if let [only] = phases {
        return only.preload.clone();
    }
    let (mut known, mut needed) = (Blocks::none(device_blocks), Blocks::none(device_blocks));
    for trace in phases {
        for &(first, blocks) in &trace.preload {
            Blocks::words(first, blocks, |word, mask| needed.0[word] |= mask & !known.0[word]);
        }
        for io in &trace.ios {
            Blocks::words(io.block, u32::from(io.blocks), |word, mask| known.0[word] |= mask);
        }
    }
    needed.ranges()
}

/// Ranges with gaps shorter than `page_blocks`, what one program writes, made one. Each range begins a program of its
/// own, so scattered blocks would take more flash than the device has; the gaps are written before they are read.
pub(super) fn joined(ranges: &[(u32, u32)], page_blocks: u32) -> Vec<(u32, u32)> {
    let mut list: Vec<(u32, u32)> = Vec::new();
    for &(first, blocks) in ranges {
        match list.last_mut() {
            Some((start, length)) if first - (*start + *length) < page_blocks => *length = first + blocks - *start,
            _ => list.push((first, blocks)),
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::{joined, of_phases};
    use readpath_workload::trace::{Loaded, Options, Prepare, Reader};

    /// Requests at byte addresses given in blocks.
    fn trace(rows: &[(&str, u32, u32)]) -> Loaded {
        let mut text = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n".to_owned();
        for (op, block, blocks) in rows {
            text.push_str(&format!("0,{op},{},{},,\n", block * 4096, blocks * 4096));
        }
        let source = Box::new(std::io::Cursor::new(text.into_bytes()));
        let reader = Reader::new("t", source, &Options::default()).expect("a trace");
        let mut replay = Prepare::new(1000).requests("t", reader).expect("prepared");
        Loaded::load(&mut replay, 1000).expect("loaded")
    }

    #[test]
    fn what_an_earlier_trace_writes_is_not_preloaded() {
        let (one, two) = (trace(&[("W", 60, 10), ("R", 100, 30)]), trace(&[("R", 50, 100), ("R", 900, 100)]));
        assert_eq!(of_phases(&[&one, &two], 1000), [(50, 10), (70, 80), (900, 100)]);
        // In the opposite order, the block is read before it is written.
        assert_eq!(of_phases(&[&two, &one], 1000), [(50, 100), (900, 100)]);
        assert_eq!(of_phases(&[&one], 1000), [(100, 30)]);
    }

    #[test]
    fn only_short_gaps_are_filled() {
        assert_eq!(joined(&[(0, 1), (4, 2), (10, 1)], 4), [(0, 6), (10, 1)]);
        assert_eq!(joined(&[(3, 1), (5, 1), (7, 1)], 1), [(3, 1), (5, 1), (7, 1)]);
        assert_eq!(joined(&[], 4), []);
    }

    #[test]
    fn ranges_at_the_borders_of_words() {
        let reads = trace(&[("R", 0, 64), ("R", 128, 1), ("R", 191, 2), ("R", 999, 1)]);
        let nothing = trace(&[("F", 0, 0)]);
        assert_eq!(of_phases(&[&nothing, &reads], 1000), [(0, 64), (128, 1), (191, 2), (999, 1)]);
    }
}
