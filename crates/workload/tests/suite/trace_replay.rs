// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces prepared for a device: rounding, splitting, folding, times, and what has to be on the device before.

use crate::trace_common::request;
use proptest::prelude::*;
use readpath_kit::Ns;
use readpath_workload::IoKind::{self, Flush, Read, Trim, Write};
use readpath_workload::trace::{Fit, Loaded, Prepare, Reason, Request, Speed, TimedIo, TraceError};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

fn load(how: Prepare, requests: &[Request]) -> Result<Loaded, TraceError> {
    Loaded::load(&mut how.requests("t", requests.iter().copied().map(Ok))?, 1 << 20)
}

fn loaded(how: Prepare, requests: &[Request]) -> Loaded {
    load(how, requests).expect("a trace that fits")
}

/// (time, first block, blocks, kind)
fn plain(loaded: &Loaded) -> Vec<(u64, u32, u16, IoKind)> {
    loaded.ios.iter().map(|io| (io.time.0, io.block, io.blocks, io.kind)).collect()
}

#[test]
fn a_request_takes_16_bytes() {
    assert_eq!(size_of::<TimedIo>(), 16);
}

#[test]
fn whole_blocks() {
    let l = loaded(
        Prepare::new(1000),
        &[
            request(0, Read, 512, 512),
            request(1, Read, 4095, 2),
            request(2, Write, 4096, 4096),
            request(3, Write, 4608, 512),
            request(4, Write, 8191, 4098),
            request(5, Trim, 1, 4096 * 3),
            request(6, Trim, 1, 4096),
            request(7, Flush, 0, 0),
            Request { fua: true, preflush: true, ..request(8, Write, 0, 512) },
        ],
    );
    assert_eq!(
        plain(&l),
        [
            (0, 0, 1, Read),
            (1, 0, 2, Read),
            (2, 1, 1, Write),
            (3, 1, 1, Write),
            (4, 1, 3, Write),
            (5, 1, 2, Trim),
            (7, 0, 0, Flush),
            (8, 0, 1, Write)
        ]
    );
    let partial: Vec<_> = l.ios.iter().map(|io| (io.partial_first(), io.partial_last())).collect();
    assert_eq!(partial[2..5], [(false, false), (true, true), (true, true)]);
    assert_eq!(partial[7], (false, true));
    assert!(l.ios[7].fua() && l.ios[7].preflush() && l.ios[7].io().fua);
    let p = l.prepared;
    assert_eq!((p.requests, p.ios, p.rounded_reads, p.partial_writes, p.partial_blocks), (9, 8, 2, 3, 4));
    assert_eq!((p.rounded_trims, p.dropped_trims), (1, 1));
    assert_eq!(p.warnings().len(), 3, "{:?}", p.warnings());
}

#[test]
fn a_shift_puts_misaligned_partitions_right() {
    let sector_63 = [request(0, Write, 63 * 512, 4096), request(1, Read, 71 * 512, 8192)];
    assert_eq!(loaded(Prepare::new(100), &sector_63).prepared.partial_writes, 1);
    let l = loaded(Prepare { shift_sectors: 1, ..Prepare::new(100) }, &sector_63);
    assert_eq!(plain(&l), [(0, 8, 1, Write), (1, 9, 2, Read)]);
    assert_eq!((l.prepared.partial_writes, l.prepared.rounded_reads), (0, 0));
    assert!(load(Prepare { shift_sectors: 8, ..Prepare::new(100) }, &sector_63).is_err());
}

#[test]
fn long_requests_are_split() {
    let how = Prepare { max_blocks: 4, ..Prepare::new(1000) };
    let l = loaded(how, &[Request { fua: true, preflush: true, ..request(5, Write, 512, 9 * 4096) }]);
    assert_eq!(plain(&l), [(5, 0, 4, Write), (5, 4, 4, Write), (5, 8, 2, Write)]);
    let flags = |f: fn(&TimedIo) -> bool| l.ios.iter().map(f).collect::<Vec<_>>();
    assert_eq!(flags(TimedIo::continued), [false, true, true]);
    assert_eq!(flags(TimedIo::preflush), [true, false, false]);
    assert_eq!(flags(TimedIo::fua), [true; 3]);
    assert_eq!(flags(TimedIo::partial_first), [true, false, false]);
    assert_eq!(flags(TimedIo::partial_last), [false, false, true]);
    assert_eq!((l.prepared.requests, l.prepared.ios, l.prepared.split), (1, 3, 1));
}

#[test]
fn beyond_the_device() {
    let r = [request(0, Read, 0, 4096), request(1, Read, 99 * 4096, 3 * 4096), request(2, Write, 250 * 4096, 4096)];
    let e = load(Prepare::new(100), &r).unwrap_err();
    assert_eq!(
        e.to_string(),
        "t: request 2: it ends at byte 417792, beyond the device of 409600 bytes; 2 requests of the trace lie beyond \
         it; take a device of at least 1028096 bytes (0.0 GiB, 251 blocks), or have addresses folded",
        "the device is one for all of them"
    );
    let l = loaded(Prepare { fit: Fit::Fold, ..Prepare::new(100) }, &r);
    assert_eq!(plain(&l), [(0, 0, 1, Read), (1, 99, 1, Read), (1, 0, 2, Read), (2, 50, 1, Write)]);
    assert_eq!(l.ios.iter().map(TimedIo::folded).collect::<Vec<_>>(), [false, true, true, true]);
    assert_eq!((l.prepared.folded, l.prepared.split), (2, 1));
    assert!(l.prepared.altered().expect("a note").contains("2 of 3 requests lie beyond the device and were FOLDED"));
    // A trim of more than the device is the device; a read of more than the device cannot be.
    let l = loaded(Prepare { fit: Fit::Fold, ..Prepare::new(100) }, &[request(0, Trim, 0, u64::MAX)]);
    assert_eq!((plain(&l), l.prepared.shortened_trims), (vec![(0, 0, 100, Trim)], 1));
    let e = load(Prepare { fit: Fit::Fold, ..Prepare::new(100) }, &[request(0, Read, 0, 101 * 4096)]).unwrap_err();
    assert!(e.message.contains("are more than the device has"), "{e}");
}

#[test]
fn times() {
    let ms = 1_000_000;
    let r: Vec<Request> = [0, 3, 1003, 1004, 9004].iter().map(|t| request(t * ms, Read, 0, 4096)).collect();
    let at = |how| plain(&loaded(how, &r)).iter().map(|io| io.0 / 1000).collect::<Vec<_>>();
    let how = Prepare::new(10);
    assert_eq!(at(how), [0, 3_000, 1_003_000, 1_004_000, 9_004_000]);
    let idle = Prepare { max_idle: Some(Ns::from_ms(10)), ..how };
    assert_eq!(at(idle), [0, 3_000, 13_000, 14_000, 24_000]);
    // The pause is cut as recorded, then all times are scaled.
    assert_eq!(at(Prepare { speed: Speed::parse("2").unwrap(), ..idle }), [0, 1_500, 6_500, 7_000, 12_000]);
    assert_eq!(at(Prepare { speed: Speed::parse("0.5").unwrap(), ..idle }), [0, 6_000, 26_000, 28_000, 48_000]);
    let p = loaded(idle, &r).prepared;
    assert_eq!((p.cut_pauses, p.cut_time, p.end), (2, Ns::from_ms(990 + 7990), Ns::from_ms(24)));
    let slow = Prepare { speed: Speed::new(1, 1000).unwrap(), ..how };
    let e = load(slow, &[request(u64::MAX / 10, Read, 0, 4096)]).unwrap_err();
    assert_eq!(e.reason, Reason::Range);
}

#[test]
fn speeds() {
    assert_eq!(Speed::parse("1.25"), Speed::new(125, 100));
    assert_eq!(Speed::parse("4294"), Speed::new(4294, 1));
    for bad in ["", "0", "0.0", "-1", "1.", ".5", "1e3", "1.0000001", "99999999999", "x", "+1"] {
        assert!(Speed::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn what_has_to_be_there_before() {
    let b = 4096;
    let l = loaded(
        Prepare::new(1000),
        &[
            request(0, Read, 62 * b, 4 * b),
            request(1, Write, 70 * b, 2 * b),
            request(2, Read, 69 * b, 4 * b),
            // Discarded before it is read: nothing to preload.
            request(3, Trim, 100 * b, b),
            request(4, Read, 100 * b, b),
            // Written in part first.
            request(5, Write, 200 * b + 512, 512),
            request(6, Read, 200 * b, b),
            request(7, Write, 62 * b, b),
        ],
    );
    assert_eq!(l.preload, [(62, 4), (69, 1), (72, 1), (200, 1)]);
    assert_eq!(l.preload_blocks(), 7);
}

#[test]
fn limits_and_errors_of_the_trace_come_through() {
    let r = [request(0, Read, 0, 4096 * 10)];
    let how = Prepare { max_blocks: 1, ..Prepare::new(100) };
    let e = Loaded::load(&mut how.requests("t", r.map(Ok)).unwrap(), 9).unwrap_err();
    assert_eq!(
        e.to_string(),
        "t: request 1: the trace has more than 9 requests to the device, as many as are loaded; split it"
    );
    assert_eq!(Loaded::load(&mut how.requests("t", r.map(Ok)).unwrap(), 10).unwrap().ios.len(), 10);
    let bad = crate::trace_common::open("1,a,0,Read,0,512,1\nx\n", &Default::default()).unwrap();
    let e = Loaded::load(&mut how.requests("t", bad).unwrap(), 10).unwrap_err();
    assert!(e.to_string().starts_with("t:2: "), "{e}");
    assert!(Prepare::new(0).requests("t", r.map(Ok)).is_err());
    let backwards = [request(5, Read, 0, 512), request(4, Read, 0, 512)];
    assert!(load(how, &backwards).unwrap_err().message.starts_with("request 2: it is earlier"));
}

/// The caller is asked before each step of loading, and no step is large.
#[test]
fn memory_is_asked_for_before_it_is_taken() {
    let one = request(0, Read, 0, 4096 * 200_000);
    let how = Prepare { max_blocks: 1, ..Prepare::new(1 << 18) };
    let asked = RefCell::new(Vec::new());
    let load = |enough: u64| {
        asked.take();
        let ask = |bytes| {
            asked.borrow_mut().push(bytes);
            if asked.borrow().iter().sum::<u64>() > enough { Err("that is too much".to_owned()) } else { Ok(()) }
        };
        Loaded::load_if(&mut how.requests("t", [Ok(one)]).unwrap(), 200_001, ask)
    };
    assert_eq!(load(u64::MAX).unwrap().ios.len(), 200_000);
    let mib = 1 << 20;
    assert_eq!(asked.take(), [mib, mib, 2 * mib - 16 * (4 * 65_536 - 200_001)]);
    let e = load(3 * mib - 1).unwrap_err();
    assert_eq!(e.reason, Reason::Limit);
    assert_eq!(
        e.to_string(),
        "t: request 1: there is no memory for more than the first 131072 requests to the device (16 bytes each): that \
         is too much; split the trace, or replay it on a machine with more memory"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Against a device that is a map from blocks to whether their content is known.
    #[test]
    fn prepared_requests_cover_what_was_asked(
        ops in proptest::collection::vec((0u8..3, 0u64..3_000_000, 1u64..300_000), 1..40),
        max_blocks in 1u16..40,
        device_blocks in 80u32..900,
    ) {
        let kinds = [Read, Write, Trim];
        let requests: Vec<Request> =
            ops.iter().enumerate().map(|(i, o)| request(i as u64, kinds[usize::from(o.0)], o.1, o.2)).collect();
        let how = Prepare { max_blocks, fit: Fit::Fold, ..Prepare::new(device_blocks) };
        let l = loaded(how, &requests);
        let mut known: BTreeMap<u32, bool> = BTreeMap::new();
        let mut preload = BTreeSet::new();
        let mut got = l.ios.iter();
        for r in &requests {
            let mut blocks: Vec<u64> = (r.offset / 4096..=(r.offset + r.bytes - 1) / 4096).collect();
            let whole = |b: &u64| b * 4096 >= r.offset && (b + 1) * 4096 <= r.offset + r.bytes;
            if r.kind == Trim {
                blocks.retain(whole);
            }
            for b in &blocks {
                let at = (b % u64::from(device_blocks)) as u32;
                let wants = r.kind == Read || (r.kind == Write && !whole(b));
                if wants && !known.contains_key(&at) {
                    preload.insert(at);
                }
                known.insert(at, true);
            }
            let mut left = blocks.into_iter().map(|b| (b % u64::from(device_blocks)) as u32).peekable();
            while left.peek().is_some() {
                let io = got.next().expect("as many as asked for");
                prop_assert!(io.blocks >= 1 && io.blocks <= max_blocks && io.kind == r.kind && io.time == r.time);
                for b in io.block..io.block + u32::from(io.blocks) {
                    prop_assert!(b < device_blocks);
                    prop_assert_eq!(left.next(), Some(b));
                }
            }
        }
        prop_assert!(got.next().is_none());
        let listed: BTreeSet<u32> = l.preload.iter().flat_map(|&(first, n)| first..first + n).collect();
        prop_assert_eq!(listed, preload);
        prop_assert!(l.preload.windows(2).all(|w| w[0].0 + w[0].1 < w[1].0), "sorted and apart");
    }
}

/// Whole seconds: requests that share one are spread over it, pieces of one request together.
#[test]
fn ties_are_spread_evenly() {
    let second = 1_000_000_000;
    let long = request(0, Read, 0, 8 * 4096);
    let r = [
        long,
        long,
        // The next is two seconds later.
        request(second, Read, 0, 4096),
        request(second, Read, 0, 4096),
        request(3 * second, Write, 0, 4096),
        request(3 * second, Read, 0, 4096),
    ];
    let mut l = loaded(Prepare { max_blocks: 4, ..Prepare::new(100) }, &r);
    l.spread_ties(Ns(second), Speed::RECORDED);
    let times: Vec<u64> = l.ios.iter().map(|io| io.time.0 / 1_000_000).collect();
    assert_eq!(times, [0, 0, 500, 500, 1000, 1500, 3000, 3500]);
    assert_eq!((l.prepared.spread, l.prepared.end), (3, Ns(3_500_000_000)));
    assert!(l.prepared.warnings()[0].contains("3 of 6 requests had the time of the one before and were SPREAD evenly"));
    // Twice as fast, the unit takes half the time.
    let twice = Speed::parse("2").unwrap();
    let mut l = loaded(Prepare { speed: twice, ..Prepare::new(100) }, &r);
    l.spread_ties(Ns(second), twice);
    let times: Vec<u64> = l.ios.iter().map(|io| io.time.0 / 1_000_000).collect();
    assert_eq!(times, [0, 250, 500, 750, 1500, 1750]);
}
