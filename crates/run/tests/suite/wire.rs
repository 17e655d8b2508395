// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests and replies that travel as values, the same ones encoded to UPIUs and parsed again, and those that a host
//! controller fetches from memory and answers by interrupts, give the same results to the bit.

use readpath_device::Layout;
use readpath_flash::Lean;
use readpath_hci::Registers;
use readpath_host::HpbOptions;
use readpath_kit::Prng;
use readpath_run::Runner;
use readpath_stack::{Encoded, Tags, Typed, Wire};
use readpath_testkit::{device, everything, filled, job, run};
use readpath_workload::{IoKind, Kinds, Offsets, Sizes, Stream, StreamSpec};

/// Everything that a run of reads, writes, trims and flushes left in counters and histograms.
fn results<W: Wire + Default>(seed: u64) -> String {
    let mut rng = Prng::stream(seed, "wire", 0);
    let mut config = device(3_000);
    config.map_cache_bytes = 4096 * (1 + rng.below(3) as u32);
    config.lus[0].max_active_regions = 3 + rng.below(9) as u16;
    config.lus[0].pinned_regions = 2;
    let (mut stack, now) = filled::<Lean, Tags, W>(&config, Some(HpbOptions::default()), 2_000, Layout::Random, seed);
    let mut runner = Runner::new(now);
    let mut spec = StreamSpec::plain(IoKind::Read, 0, 3_000, 1, Offsets::Zipf(0.9));
    spec.kinds = Kinds::Mix(80);
    spec.sizes = std::array::from_fn(|_| Sizes::Split(vec![(1, 8), (4, 1), (150, 1)]));
    spec.flush_every = [50, 0];
    let mixed = Stream::new(&spec, seed).expect("a possible stream");
    spec.kinds = Kinds::TrimWrite;
    (spec.start_block, spec.blocks, spec.fua) = (500, 300, true);
    let trims = Stream::new(&spec, seed + 1).expect("a possible stream");
    let stats = run(&mut stack, &mut runner, vec![job(mixed, 12, 8_000), job(trims, 2, 1_000)]);
    assert!(stack.wire_error().is_none());
    assert_eq!(stack.payload.wrong, 0);
    let counters = stack.host.counters(0).expect("an HPB unit");
    assert!(counters.hit_cnt > 500 && counters.map_req_cnt > 8, "HPB is at work: {counters:?}");
    for job in 0..2 {
        let done = stats.jobs[job].kinds.iter().map(|k| k.ios > 0).collect::<Vec<_>>();
        assert_eq!(done, [[true, true, false, true], [false, true, true, true]][job], "every kind took part");
    }
    format!("{}{:?}\n{counters:?}", everything(&stats), stack.device.stats())
}

#[test]
fn however_requests_cross_results_are_the_same() {
    for seed in 1..=8 {
        let typed = results::<Typed>(seed);
        assert!(typed.len() > 2_000);
        assert_eq!(typed, results::<Encoded>(seed), "seed {seed}");
        assert_eq!(typed, results::<Registers>(seed), "seed {seed}");
    }
}
