// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `Analysis` says about traces small enough to count by hand, and about random ones against plain sets.

use crate::trace_common::request;
use proptest::prelude::*;
use readpath_kit::Ns;
use readpath_workload::IoKind::{Flush, Read, Trim, Write};
use readpath_workload::trace::info::{Depth, Info};
use readpath_workload::trace::{Analysis, Reason, Request};
use std::collections::HashSet;

fn info(requests: &[Request]) -> Info {
    let mut analysis = Analysis::new(&Analysis::MAP_SPANS, Analysis::LIMIT_BYTES).unwrap();
    requests.iter().for_each(|r| analysis.add(r).unwrap());
    analysis.finish()
}

#[test]
fn counts_sizes_and_sequences() {
    let r = [
        request(0, Read, 0, 4096),
        request(1, Read, 4096, 8192),
        request(2, Write, 1 << 20, 512),
        request(3, Read, 1 << 30, 4096),
        // Continues where the second read ended, with another read between them.
        request(4, Read, 12_288, 4096),
        request(5, Read, (1 << 30) + 4096, 1),
        Request { fua: true, ..request(6, Write, (1 << 20) + 512, 512) },
        request(7, Flush, 0, 0),
        request(8, Trim, 1 << 40, 1 << 40),
    ];
    let info = info(&r);
    let [read, write, trim, flush] = info.kinds;
    assert_eq!((read.requests, read.bytes, read.smallest, read.largest), (5, 20_481, 1, 8192));
    assert_eq!((read.sequential, read.in_streams, read.unaligned), (1, 3, 1));
    assert_eq!((read.sizes[0], read.sizes[3], read.sizes[4]), (1, 3, 1));
    assert_eq!((write.requests, write.sequential, write.unaligned, write.fua), (2, 1, 2, 1));
    assert_eq!((trim.requests, trim.bytes, flush.requests, flush.smallest), (1, 1 << 40, 1, 0));
    assert_eq!((info.requests(), info.read_ratio()), (9, Some(5.0 / 7.0)));
    assert_eq!(info.phases, [6, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(info.span, Ns(8));
    // A trim touches nothing.
    assert_eq!((info.footprint.lowest, info.footprint.highest), (0, (1 << 30) + 4097));
    assert_eq!((info.footprint.blocks, info.footprint.blocks_read, info.footprint.blocks_written), (7, 6, 1));
}

#[test]
fn what_was_read_before_it_was_written() {
    let b = 4096;
    let f = info(&[
        request(0, Read, 0, 2 * b),
        request(1, Write, b, 2 * b),
        request(2, Read, 0, 4 * b),
        request(3, Write, 9 * b, b),
    ])
    .footprint;
    // Blocks 0 and 1 by the first read, 3 by the second; of those, 1 is written later.
    assert_eq!((f.blocks, f.blocks_read, f.blocks_written), (5, 4, 3));
    assert_eq!((f.blocks_read_first, f.blocks_only_read, f.blocks_read_again), (3, 2, 2));
    assert_eq!((f.block_reads, f.block_writes, f.block_reads_again, f.bytes()), (6, 3, 2, 5 * 4096));
}

#[test]
fn requests_in_progress() {
    let with = |time, latency| Request { latency: Some(Ns(latency)), ..request(time, Read, 0, 512) };
    // 0 to 10, 5 to 15, 20 to 30, 30 to 40; the one without a latency does not count.
    let info = info(&[with(0, 10), with(5, 10), request(7, Read, 0, 512), with(20, 10), with(30, 10)]);
    let mut found = [0; 12];
    (found[0], found[1]) = (3, 1);
    let expected = Depth { requests: 4, most: 2, mean: 1.0, busy: Ns(35), span: Ns(40), found };
    assert_eq!(info.depth, Some(expected));
    assert_eq!(info.timeline.slots[0].most_in_progress, 2);
    let many: Vec<Request> = (0..2050).map(|i| with(i, 10_000)).collect();
    let depth = self::info(&many).depth.expect("latencies");
    assert_eq!((depth.most, depth.found), (2050, [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1026]));
    assert_eq!(self::info(&[request(0, Read, 0, 512)]).depth, None);
}

#[test]
fn pauses() {
    let g = info(&[
        request(0, Read, 0, 512),
        request(999_999, Read, 0, 512),
        request(1_999_999, Read, 0, 512),
        request(90_000_000_000_000, Read, 0, 512),
    ])
    .gaps;
    assert_eq!(g.classes.map(|c| c.count), [2, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(g.classes[0].total, Ns(90_000_000_000_000 - 999_999));
    assert_eq!((g.longest, g.longest_after), (Ns(90_000_000_000_000 - 1_999_999), 3));
}

#[test]
fn the_timeline_widens_and_loses_nothing() {
    let requests: Vec<Request> = (0..5000u64).map(|i| request(i * 10_000_000, Read, 0, 512)).collect();
    let t = info(&requests).timeline;
    // 50 s in at most 256 slots of 1 ms times a power of two.
    assert_eq!((t.width, t.slots.len()), (Ns::from_ms(256), 196));
    assert!(t.slots[..195].iter().all(|s| (25..=26).contains(&s.requests)));
    assert_eq!(t.slots.iter().map(|s| s.requests).sum::<u64>(), 5000);
    assert_eq!(t.slots.iter().map(|s| s.read_bytes).sum::<u64>(), 5000 * 512);
    let far = info(&[request(0, Write, 0, 1), request(u64::MAX, Write, 0, 1)]).timeline;
    assert_eq!((far.slots[0].requests, far.slots.last().unwrap().requests), (1, 1));
    assert!(far.slots.len() <= 256);
}

#[test]
fn memory_has_a_limit() {
    let mut analysis = Analysis::new(&[4 << 20], 1 << 20).unwrap();
    let e = (0..1u64 << 20).find_map(|i| analysis.add(&request(i, Read, i << 30, 512)).err()).expect("a limit");
    assert_eq!(e.reason, Reason::Limit);
    assert!(e.message.contains("more than 1048576 bytes of memory"), "{e}");
    assert!(Analysis::new(&[512], 1 << 20).is_err());
}

#[test]
fn requests_that_no_reader_gives_are_refused() {
    for bad in
        [request(0, Read, u64::MAX, 512), request(0, Read, 0, 0), request(0, Write, 0, 1 << 32), request(0, Trim, 0, 0)]
    {
        let mut analysis = Analysis::new(&[4 << 20], 1 << 20).unwrap();
        assert_eq!(analysis.add(&bad).unwrap_err().reason, Reason::Range, "{bad:?}");
    }
    let mut analysis = Analysis::new(&[4 << 20], 1 << 20).unwrap();
    analysis.add(&request(5, Read, 0, 512)).unwrap();
    assert!(analysis.add(&request(4, Read, 0, 512)).unwrap_err().message.contains("earlier"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn footprint_against_sets(
        ops in proptest::collection::vec((any::<bool>(), 0u64..40_000_000, 1u64..9_000_000), 1..40),
    ) {
        let requests: Vec<Request> = ops
            .iter()
            .enumerate()
            .map(|(i, &(read, offset, bytes))| request(i as u64, if read { Read } else { Write }, offset, bytes))
            .collect();
        let f = info(&requests).footprint;
        let [mut reads, mut writes, mut again, mut first] = [(); 4].map(|()| HashSet::new());
        let mut reads_again = 0;
        for r in &requests {
            for b in r.offset / 4096..=(r.offset + r.bytes - 1) / 4096 {
                if r.kind == Write {
                    writes.insert(b);
                    continue;
                }
                if !reads.contains(&b) && !writes.contains(&b) {
                    first.insert(b);
                }
                if !reads.insert(b) {
                    again.insert(b);
                    reads_again += 1;
                }
            }
        }
        prop_assert_eq!(f.blocks, reads.union(&writes).count() as u64);
        prop_assert_eq!(f.blocks_read, reads.len() as u64);
        prop_assert_eq!(f.blocks_written, writes.len() as u64);
        prop_assert_eq!(f.blocks_read_again, again.len() as u64);
        prop_assert_eq!(f.block_reads_again, reads_again);
        prop_assert_eq!(f.blocks_read_first, first.len() as u64);
        prop_assert_eq!(f.blocks_only_read, reads.difference(&writes).count() as u64);
    }
}
