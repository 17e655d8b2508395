// SPDX-License-Identifier: MIT OR Apache-2.0
//! What streams of requests promise: coverage, shares, repeatability. Knows only the public interface.

use proptest::prelude::*;
use readpath_workload::{
    Io, IoKind, Kinds, Offsets, ReadBack, Sizes, Stream, StreamError, StreamSpec, Stride, Turn, Zone,
};

const EMPTY: Io = Io { block: 0, blocks: 0, kind: IoKind::Flush, fua: false };

fn take(stream: &mut Stream, n: usize) -> Vec<Io> {
    let mut out = vec![EMPTY; n];
    let got = stream.fill(&mut out);
    out.truncate(got);
    out
}

fn blocks(list: &[Io]) -> Vec<u32> {
    list.iter().map(|io| io.block).collect()
}

#[test]
fn once_covers_each_place_once_in_every_pass() {
    for (region, per_io) in [(1000, 1), (1000, 3), (64, 4), (1, 1), (7, 7)] {
        let mut stream = Stream::once(IoKind::Read, 100, region, per_io, 5).unwrap();
        let places = (region / u32::from(per_io)) as usize;
        let mut passes = Vec::new();
        for _ in 0..3 {
            let list = take(&mut stream, places);
            assert!(list.iter().all(|io| io.kind == IoKind::Read && io.blocks == per_io && !io.fua));
            let mut sorted = blocks(&list);
            passes.push(sorted.clone());
            sorted.sort_unstable();
            let want: Vec<u32> = (0..places as u32).map(|i| 100 + i * u32::from(per_io)).collect();
            assert_eq!(sorted, want);
        }
        if places > 20 {
            assert_ne!(passes[0], passes[1]);
            assert_ne!(passes[1], passes[2]);
        }
    }
}

#[test]
fn uniform_is_even_and_draws_with_replacement() {
    let mut stream = Stream::uniform_reads(1 << 20, 100, 1, 3).unwrap();
    let mut counts = [0u32; 100];
    for io in take(&mut stream, 200_000) {
        counts[(io.block - (1 << 20)) as usize] += 1;
    }
    let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 2000.0).powi(2) / 2000.0).sum();
    assert!(chi < 149.0, "chi-square with 99 degrees of freedom: {chi}");
}

#[test]
fn sequential_wraps_and_leaves_gaps() {
    let mut stream = Stream::sequential(IoKind::Write, 10, 10, 4).unwrap();
    assert_eq!(blocks(&take(&mut stream, 5)), [10, 14, 10, 14, 10]);
    let mut spec = StreamSpec::plain(IoKind::Read, 0, 12, 2, Offsets::Sequential);
    spec.skip_blocks = 3;
    let mut stream = Stream::new(&spec, 0).unwrap();
    assert_eq!(blocks(&take(&mut stream, 5)), [0, 5, 10, 0, 5]);
    spec.skip_blocks = -4;
    let mut stream = Stream::new(&spec, 0).unwrap();
    assert_eq!(blocks(&take(&mut stream, 9)), [0, 8, 6, 4, 2, 0, 8, 6, 4]);
}

#[test]
fn a_limit_ends_the_stream_for_good() {
    let mut spec = StreamSpec::plain(IoKind::Write, 0, 100, 2, Offsets::Once);
    spec.limit_blocks = Some(9);
    let mut stream = Stream::new(&spec, 1).unwrap();
    assert_eq!(take(&mut stream, 100).len(), 5);
    assert!(take(&mut stream, 100).is_empty());
    spec.end_flush = true;
    let mut stream = Stream::new(&spec, 1).unwrap();
    let list = take(&mut stream, 100);
    assert_eq!((list.len(), list[5]), (6, EMPTY));
    assert!(take(&mut stream, 100).is_empty());
    let mut again = stream.sibling(50, 1).unwrap();
    assert_eq!(blocks(&take(&mut again, 100)[..5]), list[..5].iter().map(|io| io.block + 50).collect::<Vec<_>>());
    assert_eq!(stream.total_blocks(), Some(9));
}

/// Streams say how many requests they will make, whatever their lengths: exactly, or within a few percent where chance
/// draws these.
#[test]
fn requests_are_counted_before_they_are_made() {
    let write = |blocks_per_io, limit| {
        let mut spec = StreamSpec::plain(IoKind::Write, 0, 10_000, blocks_per_io, Offsets::Uniform);
        spec.limit_blocks = limit;
        spec
    };
    assert_eq!(Stream::new(&write(16, None), 1).unwrap().expected_requests(), None);
    let after = ReadBack { blocks: u64::MAX, writes: u64::MAX };
    for (spec, tolerance) in [
        (StreamSpec { end_flush: true, ..write(2, Some(9)) }, 0),
        (write(16, Some(65_536)), 0),
        // As many as are looked at.
        (write(16, Some(16_369)), 0),
        (StreamSpec { kinds: Kinds::TrimWrite, ..write(8, Some(80_000)) }, 0),
        (StreamSpec { flush_every: [4, 0], ..write(16, Some(160_000)) }, 100),
        (StreamSpec { sizes: [1, 2, 3].map(|_| Sizes::Range { min: 1, max: 31 }), ..write(1, Some(160_000)) }, 500),
        (StreamSpec { read_back: Some(after), ..write(16, Some(800)) }, 0),
    ] {
        let stream = Stream::new(&spec, 1).unwrap();
        let made = take(&mut stream.clone(), 100_000).len() as u64;
        let expected = stream.expected_requests().expect("it ends");
        assert!(made.abs_diff(expected) <= tolerance, "{expected} expected, {made} made of {spec:?}");
    }
}

#[test]
fn mixes_keep_their_shares_and_share_one_pass() {
    let mut spec = StreamSpec::plain(IoKind::Read, 0, 10_000, 1, Offsets::Once);
    spec.kinds = Kinds::Mix(70);
    spec.fua = true;
    let mut stream = Stream::new(&spec, 2).unwrap();
    let list = take(&mut stream, 10_000);
    let reads = list.iter().filter(|io| io.kind == IoKind::Read).count();
    assert!((6_800..7_200).contains(&reads), "{reads}");
    assert!(list.iter().all(|io| io.fua == (io.kind == IoKind::Write)));
    let mut all = blocks(&list);
    all.sort_unstable();
    assert_eq!(all, (0..10_000).collect::<Vec<_>>());
}

#[test]
fn sizes_follow_their_choice() {
    let mut spec = StreamSpec::plain(IoKind::Read, 0, 1 << 20, 1, Offsets::Uniform);
    spec.sizes[0] = Sizes::Range { min: 2, max: 9 };
    let list = take(&mut Stream::new(&spec, 2).unwrap(), 4000);
    for n in [2u16, 4, 6, 8] {
        let count = list.iter().filter(|io| io.blocks == n).count();
        assert!((850..1150).contains(&count), "{n}: {count}");
    }
    assert!(list.iter().all(|io| io.block % 2 == 0 && io.blocks % 2 == 0));
    spec.sizes[0] = Sizes::Split(vec![(1, 60), (8, 0), (16, 40)]);
    let list = take(&mut Stream::new(&spec, 2).unwrap(), 10_000);
    let ones = list.iter().filter(|io| io.blocks == 1).count();
    assert!((5_800..6_200).contains(&ones), "{ones}");
    assert!(list.iter().all(|io| io.blocks == 1 || io.blocks == 16 || io.block + u32::from(io.blocks) == 1 << 20));
}

#[test]
fn flushes_follow_writes() {
    let mut spec = StreamSpec::plain(IoKind::Write, 0, 100, 1, Offsets::Sequential);
    spec.flush_every = [2, 3];
    let kinds: String = take(&mut Stream::new(&spec, 0).unwrap(), 10)
        .iter()
        .map(|io| if io.kind == IoKind::Flush { 'f' } else { 'w' })
        .collect();
    assert_eq!(kinds, "wwfwfwfwwf");
}

#[test]
fn what_ends_the_stream_comes_before_a_flush() {
    let mut spec = StreamSpec::plain(IoKind::Write, 0, 100, 1, Offsets::Sequential);
    spec.flush_every = [2, 0];
    spec.limit_blocks = Some(4);
    let flushes =
        |spec: &StreamSpec| take(&mut Stream::new(spec, 0).unwrap(), 10).iter().filter(|io| io.blocks == 0).count();
    assert_eq!(flushes(&spec), 1);
    spec.end_flush = true;
    assert_eq!(flushes(&spec), 2, "the one at the end was asked for");
}

#[test]
fn a_mix_gives_either_kind_on_request() {
    let mut spec = StreamSpec::plain(IoKind::Read, 0, 100, 1, Offsets::Sequential);
    spec.kinds = Kinds::Mix(30);
    let mut stream = Stream::new(&spec, 0).unwrap();
    let mut reads = 0;
    for block in 0..100 {
        let Turn::Of { kind, other: Some(other) } = stream.turn() else { panic!("there is another kind") };
        assert_ne!(kind, other);
        reads += u32::from(kind == IoKind::Read);
        let io = stream.request(IoKind::Write);
        assert_eq!((io.kind, io.block), (IoKind::Write, block), "the writes go on one after another");
    }
    assert!((15..45).contains(&reads), "{reads}");
    // A kind with a share of 0 % is no alternative.
    spec.kinds = Kinds::Mix(100);
    assert_eq!(Stream::new(&spec, 0).unwrap().turn(), Turn::Of { kind: IoKind::Read, other: None });
}

#[test]
fn trim_write_pairs() {
    let mut spec = StreamSpec::plain(IoKind::Trim, 0, 100, 2, Offsets::Once);
    spec.kinds = Kinds::TrimWrite;
    spec.limit_blocks = Some(200);
    let list = take(&mut Stream::new(&spec, 0).unwrap(), 1000);
    assert_eq!(list.len(), 100);
    for pair in list.chunks(2) {
        assert_eq!((pair[0].kind, pair[1].kind), (IoKind::Trim, IoKind::Write));
        assert_eq!((pair[0].block, pair[0].blocks), (pair[1].block, pair[1].blocks));
    }
}

#[test]
fn runs_and_partly_random_lanes() {
    let mut spec = StreamSpec::plain(IoKind::Read, 0, 1 << 20, 1, Offsets::Uniform);
    spec.run = 8;
    let follows = |list: &[Io]| list.windows(2).filter(|w| w[1].block == w[0].block + 1).count();
    let list = take(&mut Stream::new(&spec, 0).unwrap(), 8000);
    assert!((6_990..=7_005).contains(&follows(&list)), "{}", follows(&list));
    spec.run = 1;
    spec.random_percent[0] = 25;
    let list = take(&mut Stream::new(&spec, 0).unwrap(), 8000);
    assert!((5_800..6_200).contains(&follows(&list)), "{}", follows(&list));
}

#[test]
fn a_percentage_of_random_places_is_exact() {
    for percent in [1, 99] {
        let mut spec = StreamSpec::plain(IoKind::Read, 0, 1 << 20, 1, Offsets::Uniform);
        spec.random_percent[0] = percent;
        let list = take(&mut Stream::new(&spec, 3).unwrap(), 100_000);
        let random = list.windows(2).filter(|w| w[1].block != w[0].block + 1).count();
        // Five standard deviations are 157.
        assert!(random.abs_diff(usize::from(percent) * 1000) < 157, "{percent} %: {random} of 100,000");
    }
}

#[test]
fn skewed_places_lie_anywhere() {
    let zones = vec![Zone { access_percent: 90, size_percent: 10 }, Zone { access_percent: 10, size_percent: 90 }];
    for offsets in [Offsets::Zipf(1.1), Offsets::Pareto(0.2), Offsets::Zoned(zones)] {
        let skew = offsets.clone();
        let mut stream = Stream::new(&StreamSpec::plain(IoKind::Read, 500, 4000, 4, offsets), 8).unwrap();
        let list = take(&mut stream, 20_000);
        assert!(list.iter().all(|io| (500..4500).contains(&io.block) && (io.block - 500) % 4 == 0));
        let mut counts = vec![0u32; 1000];
        list.iter().for_each(|io| counts[((io.block - 500) / 4) as usize] += 1);
        let low: u32 = counts[..100].iter().sum();
        if matches!(skew, Offsets::Zoned(_)) {
            assert!((17_700..18_300).contains(&low), "{low}");
        } else {
            // The hot ranks are scattered: no tenth of the file holds nearly everything, and the hottest is not first.
            assert!(low < 12_000, "{low}");
            counts.sort_unstable();
            assert!(counts[900..].iter().sum::<u32>() > 10_000);
        }
    }
}

#[test]
fn bad_specifications_are_refused() {
    let good = StreamSpec::plain(IoKind::Read, 0, 100, 1, Offsets::Uniform);
    let with = |change: &dyn Fn(&mut StreamSpec)| {
        let mut spec = good.clone();
        change(&mut spec);
        Stream::new(&spec, 0).map(|_| ()).unwrap_err()
    };
    assert_eq!(with(&|s| s.blocks = 0), StreamError::EmptyRegion);
    assert_eq!(with(&|s| s.start_block = u32::MAX - 50), StreamError::RegionTooFar);
    assert_eq!(with(&|s| s.sizes[0] = Sizes::Fixed(0)), StreamError::BadSize);
    assert_eq!(with(&|s| s.sizes[0] = Sizes::Range { min: 3, max: 2 }), StreamError::BadSize);
    assert_eq!(with(&|s| s.sizes[0] = Sizes::Split(vec![(0, 1)])), StreamError::BadSize);
    assert_eq!(with(&|s| s.sizes[0] = Sizes::Fixed(101)), StreamError::SizeBeyondRegion);
    assert_eq!(with(&|s| s.random_percent[0] = 101), StreamError::BadPercent);
    assert_eq!(with(&|s| s.kinds = Kinds::Mix(101)), StreamError::BadPercent);
    assert_eq!(with(&|s| s.kinds = Kinds::Only(IoKind::Flush)), StreamError::OnlyFlushes);
    assert_eq!(with(&|s| s.offsets[0] = Offsets::Zipf(0.0)), StreamError::BadZipf);
    assert_eq!(with(&|s| s.offsets[0] = Offsets::Pareto(f64::NAN)), StreamError::BadPareto);
    assert_eq!(with(&|s| s.offsets[0] = Offsets::Zoned(vec![])), StreamError::BadZones);
    assert_eq!(with(&|s| s.run = 0), StreamError::ZeroRun);
}

#[test]
fn first_requests_are_fixed_for_ever() {
    let spec = |offsets| StreamSpec::plain(IoKind::Read, 0, 1 << 24, 1, offsets);
    let first = |offsets| blocks(&take(&mut Stream::new(&spec(offsets), 1).unwrap(), 4));
    let got = [Offsets::Uniform, Offsets::Once, Offsets::Zipf(0.99), Offsets::Pareto(0.2)].map(first);
    assert_eq!(got, FIRST);
}

const FIRST: [[u32; 4]; 4] = [
    [4756186, 2925468, 10181095, 8388906],
    [13315850, 5583757, 16608938, 14263975],
    [3236254, 12618593, 457171, 11935269],
    [15149256, 14016068, 3146683, 3954991],
];

/// Time per request, printed; run with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed() {
    let mut out = [EMPTY; 64];
    for (name, region, offsets) in [
        ("sequential", 1 << 24, Offsets::Sequential),
        ("uniform", 1 << 24, Offsets::Uniform),
        ("once 2^24", 1 << 24, Offsets::Once),
        ("once 2^24 + 2^22", (1 << 24) + (1 << 22), Offsets::Once),
        ("zipf 0.99", 1 << 24, Offsets::Zipf(0.99)),
        ("pareto 0.2", 1 << 24, Offsets::Pareto(0.2)),
    ] {
        let mut stream = Stream::new(&StreamSpec::plain(IoKind::Read, 0, region, 1, offsets), 1).unwrap();
        let (rounds, mut sum) = (200_000u32, 0u64);
        let start = std::time::Instant::now();
        for _ in 0..rounds {
            stream.fill(&mut out);
            sum += u64::from(out[63].block);
        }
        let ns = start.elapsed().as_nanos() as f64 / f64::from(rounds) / 64.0;
        println!("{name}: {ns:.2} ns per request ({sum}); {} bytes of state", size_of::<Stream>());
    }
}

fn any_sizes() -> impl Strategy<Value = Sizes> {
    prop_oneof![
        (0u16..20).prop_map(Sizes::Fixed),
        (0u16..20, 0u16..30).prop_map(|(min, max)| Sizes::Range { min, max }),
        prop::collection::vec((0u16..20, 0u32..4), 0..4).prop_map(Sizes::Split),
    ]
}

fn any_offsets() -> impl Strategy<Value = Offsets> {
    prop_oneof![
        Just(Offsets::Sequential),
        Just(Offsets::Uniform),
        Just(Offsets::Once),
        (-1.0f64..12.0).prop_map(Offsets::Zipf),
        (-0.1f64..1.1).prop_map(Offsets::Pareto),
        (0u8..=100, 0u8..=100).prop_map(|(a, s)| {
            let zone = |access_percent, size_percent| Zone { access_percent, size_percent };
            Offsets::Zoned(vec![zone(a, s), zone(100 - a, 100 - s)])
        }),
    ]
}

prop_compose! {
    fn any_spec()(
        place in (prop_oneof![Just(0u32), Just(u32::MAX - 40), any::<u32>()], 0u32..60),
        kinds in prop_oneof![
            Just(Kinds::Only(IoKind::Read)), Just(Kinds::Only(IoKind::Write)), Just(Kinds::Only(IoKind::Trim)),
            Just(Kinds::Only(IoKind::Flush)), (0u8..110).prop_map(Kinds::Mix), Just(Kinds::TrimWrite),
        ],
        sizes in [any_sizes(), any_sizes(), any_sizes()],
        offsets in [any_offsets(), any_offsets(), any_offsets()],
        random_percent in [0u8..105, 90u8..105, 0u8..3],
        rest in (0u32..4, prop_oneof![Just(0i64), -9i64..9, -70i64..70, Just(1i64 << 32),
            Just(-(1i64 << 32))], [0u32..4, 0u32..4], any::<bool>()),
        limit_blocks in prop::option::of(0u64..300),
        end_flush: bool,
        stride in prop::option::of((0u32..9, prop_oneof![0u32..20, any::<u32>()])),
        back in prop::option::of((0u64..40, prop_oneof![0u64..9, Just(u64::MAX)])),
    ) -> StreamSpec {
        let (run, skip_blocks, flush_every, fua) = rest;
        let stride = stride.map(|(used, step)| Stride { used, step });
        let read_back = back.map(|(blocks, writes)| ReadBack { blocks, writes });
        StreamSpec {
            start_block: place.0, blocks: place.1, kinds, sizes, offsets, random_percent, run,
            skip_blocks, stride, read_back, flush_every, fua, limit_blocks, end_flush,
        }
    }
}

proptest! {
    #[test]
    fn any_accepted_stream_stays_inside_and_does_not_depend_on_batches(
        spec in any_spec(),
        seed: u64,
        batch in 1usize..70,
    ) {
        let Ok(mut stream) = Stream::new(&spec, seed) else { return Ok(()) };
        let mut other = stream.clone();
        let all = take(&mut stream, 500);
        let mut cut = Vec::new();
        while cut.len() < 500 {
            let part = take(&mut other, batch.min(500 - cut.len()));
            if part.is_empty() { break; }
            cut.extend(part);
        }
        prop_assert_eq!(&all, &cut);
        let mut turns = Stream::new(&spec, seed).unwrap();
        let one = |_| match turns.turn() {
            Turn::Ready(io) => Some(io),
            Turn::Of { kind, .. } => Some(turns.request(kind)),
            Turn::End => None,
        };
        prop_assert_eq!(&all, &(0..500).map_while(one).collect::<Vec<_>>());
        let end = u64::from(spec.start_block) + u64::from(spec.blocks);
        for io in &all {
            if io.kind == IoKind::Flush {
                prop_assert_eq!(*io, EMPTY);
            } else {
                prop_assert!(io.blocks > 0 && io.block >= spec.start_block);
                prop_assert!(u64::from(io.block) + u64::from(io.blocks) <= end);
            }
        }
        if spec.limit_blocks.is_none() { prop_assert_eq!(all.len(), 500); }
    }
}
