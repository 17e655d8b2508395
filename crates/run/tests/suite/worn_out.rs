// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device whose blocks go bad one after the other takes writes for as long as its good blocks hold its logical
//! capacity, and then says so. `-- --nocapture` prints how far it came.

use readpath_device::{FaultConfig, Layout};
use readpath_flash::Lean;
use readpath_run::{RunError, Runner};
use readpath_stack::{NoData, Stack, Typed};
use readpath_testkit::writes::written_device;
use readpath_testkit::{filled, job};
use readpath_workload::{IoKind, Offsets, Phase, Stream, StreamSpec};

/// Writes a full device until it refuses; returns what was left then of its spare slices, in percent of its logical
/// blocks.
fn left_when_refused(blocks: u32, dies: u32, pages_per_block: u32, over_provisioning: f64, failures_ppm: u32) -> f64 {
    let mut config = written_device(blocks, dies, pages_per_block, over_provisioning);
    config.ftl.map_changes = 4096;
    config.ftl.faults =
        FaultConfig { program_failures_ppm: failures_ppm, erase_failures_ppm: failures_ppm, ..FaultConfig::NONE };
    let (mut stack, now): (Stack<Lean, NoData, (), Typed>, _) = filled(&config, None, blocks, Layout::Sequential, 1);
    let spec = StreamSpec::plain(IoKind::Write, 0, blocks, 1, Offsets::Uniform);
    let stream = Stream::new(&spec, 5).expect("a possible stream");
    let mut phase = Phase { name: String::new(), jobs: vec![job(stream, 32, 20_000_000)] };
    match Runner::new(now).phase(&mut stack, &mut phase, &mut ()) {
        Err(RunError::Io { key: 7, asc: 0x27, ascq: 7, .. }) => {}
        other => panic!("it refuses a write, and does not stand still: {other:?}"),
    }
    stack.device.check_consistency().expect("the counts are right");
    let bad = stack.device.stats().bad_blocks;
    let lost = bad * u64::from(config.geometry.slices_per_superblock() / dies);
    let left = (config.spare_slices() as f64 - lost as f64) / f64::from(blocks) * 100.0;
    println!(
        "{dies} dies, {pages_per_block} pages a block: {bad} blocks bad, {left:.2} % spare is left when it refuses"
    );
    left
}

/// What is left is less than what stays erased even when space is shortest, and what collection of superblocks with bad
/// blocks cannot put to use.
#[test]
fn a_write_is_refused_when_the_spare_is_used_up() {
    // The fewer blocks go bad, the longer it takes, so that device is smaller.
    for (blocks, dies, pages, over_provisioning, ppm) in [
        (32 << 10, 4, 4, 0.10, 300),
        (16 << 10, 4, 4, 0.10, 30),
        (32 << 10, 4, 16, 0.10, 300),
        (32 << 10, 8, 16, 0.28, 300),
    ] {
        let left = left_when_refused(blocks, dies, pages, over_provisioning, ppm);
        assert!(left < 3.0, "{left}");
    }
}

/// Overwritten blocks count as valid until their map pages are written back, and the table of changes may hold more of
/// them than there is spare flash. A device without a bad block still takes every write.
#[test]
fn changes_of_the_map_do_not_use_the_spare_up() {
    let blocks = 32 << 10;
    let mut config = written_device(blocks, 2, 32, 0.12);
    config.ftl.map_changes = 16_384;
    assert!(config.spare_slices() < 16_384);
    let (mut stack, now): (Stack<Lean, NoData, (), Typed>, _) = filled(&config, None, blocks, Layout::Sequential, 1);
    let spec = StreamSpec::plain(IoKind::Write, 0, blocks, 128, Offsets::Sequential);
    let stream = Stream::new(&spec, 5).expect("a possible stream");
    let mut phase = Phase { name: String::new(), jobs: vec![job(stream, 1, 2000)] };
    Runner::new(now).phase(&mut stack, &mut phase, &mut ()).expect("every write is taken");
    stack.device.check_consistency().expect("the counts are right");
    assert!(stack.device.stats().erases > 0);
}
