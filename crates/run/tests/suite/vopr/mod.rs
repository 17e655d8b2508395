// SPDX-License-Identifier: MIT OR Apache-2.0
//! No read ever returns anything but what was written, whatever the device looks like, whatever is in flight together,
//! whatever happens to HPB notifications and entries on their way, whenever host and device are reset, and when the
//! device loses its power beneath a living host (what was not flushed may then be lost). Every request ends exactly
//! once, and nothing is left behind in host or device.
//!
//! Each seed draws a device, a host, a workload and a troublemaker. On failure its options are printed; a seed can be
//! run alone with `READPATH_SEED=n`.

mod met;
mod options;
mod run;
mod traffic;
mod trouble;

use met::Met;
use options::Options;
pub use options::one_of;
use readpath_device::{EntryConfig, FaultConfig, GroupUpdate, Layout, PrototypeConfig, Verification};
use readpath_flash::{DieSched, Exact, Lean, Queued, Scheduler};
use readpath_host::{BlockOp, BlockRequest, HostConfig, HpbOptions, ListOrder};
use readpath_kit::Prng;
use readpath_proto::typed::Sense;
use readpath_stack::{Tags, Typed};
use readpath_testkit::{any_read_path, chosen, device, give_little_room, give_room, host, settle};
use run::try_out;
use trouble::Trouble;

/// Runs seeds of `ops` requests each.
fn seeds<S: DieSched>(scheduler: Scheduler, of: impl Iterator<Item = u64>, ops: u32) {
    let mut met = Met::default();
    let (of, only) = chosen(of);
    of.for_each(|seed| {
        let mut o = Options::draw(seed, ops);
        o.config.scheduler = scheduler;
        any_read_path(&mut o.config, seed);
        try_out::<S>(&o, &mut met);
    });
    println!("{met:?}");
    assert!(only || met.everything(), "the seeds are too tame: {met:?}");
}

#[test]
fn lean_seeds_a() {
    seeds::<Lean>(Scheduler::Lean, 1_000..1_060, 60_000);
}

/// Of the last, the first two left the journal no superblock, and the third collected for ever.
#[test]
fn lean_seeds_b() {
    seeds::<Lean>(Scheduler::Lean, (2_000..2_060).chain([2_108, 2_860, 2_460]), 60_000);
}

#[test]
fn exact_seeds() {
    seeds::<Exact>(Scheduler::Exact, 3_000..3_040, 60_000);
}

#[test]
fn queued_seeds() {
    seeds::<Queued>(Scheduler::Queued, 4_000..4_050, 60_000);
}

/// Without verification, an honest host's dirty bitmap alone has to keep every read right, whatever happens to
/// notifications and whenever there is a reset, as long as only writes move blocks: so the device has enough room to
/// need no garbage collection.
#[test]
fn an_honest_host_needs_no_verification() {
    let mut met = Met::default();
    for seed in 6_000..6_040 {
        let mut o = Options::draw(seed, 50_000);
        let Trouble { lose, delay, double, invent, .. } = o.trouble;
        o.trouble = Trouble { lose, delay, double, invent, ..Trouble::default() };
        o.host.hpb = Some(HpbOptions { strict_linux: false, dirty_bitmap: true, ..o.host.hpb.unwrap_or_default() });
        let hpb = o.config.hpb.as_mut().expect("it has HPB");
        (hpb.verification, hpb.entries) = (Verification::Off, EntryConfig::DEFAULT);
        give_room(&mut o.config);
        (o.config.ftl.wear_threshold_percent, o.config.ftl.read_disturb_limit) = (0, 0);
        o.cuts_per_million = 0;
        o.config.ftl.collect_idle_below = 0;
        o.config.ftl.faults = FaultConfig::NONE;
        (o.config.slc, o.config.slc_cache) = (None, None);
        try_out::<Lean>(&o, &mut met);
    }
    assert!(met.of("hits") > 100_000 && met.of("resets") > 1_000, "{met:?}");
}

/// The longest reads that a host may send, each block on another page, none of their map pages in SRAM, as many at once
/// as a controller has slots, among writes.
#[test]
fn many_long_scattered_reads() {
    let mut config = device(8192);
    config.map_cache_bytes = 4096;
    let o = Options {
        config,
        host: HostConfig { slots: 64, max_transfer_blocks: 1024, ..HostConfig::LINUX },
        encoded: false,
        depth: 63,
        writes: 100,
        longest: 1024,
        precondition: Some(Layout::Random),
        ..Options::draw(5_000, 1_000)
    };
    try_out::<Lean>(&o, &mut Met::default());
}

/// A device whose blocks go bad one after another refuses writes when too few are left; no request hangs, and its data
/// can be read.
#[test]
fn a_worn_out_device_refuses_and_does_not_hang() {
    wear_out(0);
}

/// The same if it collects while the host is idle, and then cannot finish.
#[test]
fn a_worn_out_device_comes_to_rest() {
    wear_out(100);
}

fn wear_out(collect_idle_below: u32) {
    let mut config = device(512);
    config.ftl.collect_idle_below = collect_idle_below;
    give_little_room(&mut config, 2);
    config.ftl.faults = FaultConfig { program_failures_ppm: 30_000, erase_failures_ppm: 30_000, ..FaultConfig::NONE };
    let (mut stack, mut now) = readpath_testkit::start::<Lean, Tags, Typed>(&config, host(None), |_| ());
    let mut rng = Prng::new(1);
    let (mut ended, mut refused) = (0, 0);
    for cookie in 0..20_000 {
        let op = one_of(&mut rng, &[BlockOp::WriteFua, BlockOp::Write, BlockOp::Flush, BlockOp::Read]);
        let blocks = if op == BlockOp::Flush { 0 } else { 1 + rng.below(6) as u32 };
        stack.submit(now, &BlockRequest { cookie, lun: 0, op, block: rng.below(500) as u32, blocks });
        if cookie % 8 == 7 {
            settle(&mut stack, &mut now);
        }
        while let Some(done) = stack.poll_done() {
            ended += 1;
            assert!(done.error.is_none_or(|sense| sense == Sense::NO_SPACE), "{done:?}");
            refused += u64::from(done.error.is_some());
        }
    }
    assert_eq!((ended, stack.host.is_idle(), stack.device.ops_in_use()), (20_000, true, 0));
    assert!(refused > 1_000 && refused == stack.device.stats().no_space, "{refused}");
    stack.device.check_consistency().expect("what is left is in order");
    let s = stack.device.stats();
    assert!(s.bad_blocks > 20 && s.retired_superblocks > 2, "{s:?}");
    assert_eq!(stack.payload.wrong, 0, "{:?}", stack.payload.first_wrong);
}

/// The prototype of HPB, which verifies nothing, with a host that keeps to its rules, on a wire that changes nothing:
/// dirty bits and the list of changes alone keep every read right, whenever there is a reset, a power cut or a block
/// that goes bad.
#[test]
fn the_prototype_with_an_honest_host() {
    let mut met = Met::default();
    for seed in 7_000..7_060 {
        let mut o = Options::draw(seed, 40_000);
        o.trouble = Trouble::default();
        let rng = &mut Prng::stream(seed, "prototype", 0);
        let update = one_of(rng, &[GroupUpdate::Host, GroupUpdate::Device]);
        let group_entries = one_of(rng, &[64, 256, 1024]);
        let prototype = PrototypeConfig { update, group_entries, listed_changes: one_of(rng, &[1, 16, 200, 2_000]) };
        o.config.map_memory = None;
        o.config.lus.iter_mut().for_each(|lu| lu.pinned_regions = 0);
        let hpb = o.config.hpb.as_mut().expect("it has HPB");
        (hpb.v2, hpb.entries, hpb.prototype) = (None, EntryConfig::DEFAULT, Some(prototype));
        o.host.hpb = Some(HpbOptions {
            prototype: Some(update),
            order: one_of(rng, &[ListOrder::Activation, ListOrder::Recency]),
            max_map_bytes: one_of(rng, &[None, None, Some(u64::from(group_entries) * 4 * 3)]),
            ..HpbOptions::default()
        });
        let foreign = met.of("foreign");
        try_out::<Lean>(&o, &mut met);
        assert_eq!(
            met.of("foreign"),
            foreign,
            "seed {seed}: a host that keeps to the rules is never told by a spare area"
        );
    }
    for (what, least) in [
        ("hits", 50_000),
        ("stale", 50),
        ("resets", 500),
        ("cuts", 50),
        ("collected", 1_000),
        ("evicted", 50),
        ("long by the first entry", 1_000),
    ] {
        assert!(met.of(what) > least, "{what}: {met:?}");
    }
}
