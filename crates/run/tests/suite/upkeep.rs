// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the device does though no write needs it: data that was read very often moves, and garbage is collected while
//! the host is idle.

use readpath_device::{DeviceConfig, Layout};
use readpath_flash::Lean;
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::Ns;
use readpath_stack::{Stack, Tags, Typed};
use readpath_testkit::{device, filled, one, settle, step};

const BLOCKS: u32 = 1024;

type Kept = Stack<Lean, Tags, (), Typed>;

/// A device that is full of data in order.
fn full(config: &DeviceConfig) -> (Kept, Ns) {
    filled(config, None, BLOCKS, Layout::Sequential, 1)
}

/// Everything reads as it was written, and the device's tables agree.
fn check(stack: &mut Kept, now: &mut Ns) {
    for block in (0..BLOCKS).step_by(64) {
        one(stack, now, BlockOp::Read, block, 64);
    }
    assert_eq!(stack.payload.wrong, 0, "{:?}", stack.payload.first_wrong);
    stack.device.check_consistency().unwrap();
}

#[test]
fn data_moves_when_its_superblock_was_read_too_often() {
    let mut config = device(BLOCKS);
    config.ftl.read_disturb_limit = 10;
    let reads = 10 * config.geometry.units_per_superblock();
    let slices = u64::from(config.geometry.slices_per_superblock());
    let (mut stack, mut now) = full(&config);
    for times in 1..=2 {
        // Reads of two superblocks in turn: the reads of each are counted.
        let (block, other) = (5 + 128 * (times - 1), 64 + 5 + 128 * (times - 1));
        for _ in 1..reads {
            one(&mut stack, &mut now, BlockOp::Read, block, 1);
            one(&mut stack, &mut now, BlockOp::Read, other, 1);
        }
        let s = stack.device.stats();
        assert_eq!((s.refreshed, s.slices_moved), (u64::from(times - 1), slices * u64::from(times - 1)));
        one(&mut stack, &mut now, BlockOp::Read, block, 1);
        let s = stack.device.stats();
        assert_eq!((s.refreshed, s.slices_moved), (u64::from(times), slices * u64::from(times)), "all that it held");
    }
    let s = stack.device.stats();
    assert_eq!((s.collected, s.collected_idle, s.levelled), (0, 0, 0));
    check(&mut stack, &mut now);
}

/// A superblock that is still being filled cannot be moved when the limit is reached; later it can.
#[test]
fn what_was_read_too_often_while_it_was_open_moves_when_it_is_full() {
    let mut config = device(BLOCKS);
    config.ftl.read_disturb_limit = 10;
    let (units, slices) = (config.geometry.units_per_superblock(), config.geometry.slices_per_superblock());
    let (mut stack, mut now) = full(&config);
    write(&mut stack, &mut now, 0..8);
    one(&mut stack, &mut now, BlockOp::Flush, 0, 0);
    for _ in 0..10 * units {
        one(&mut stack, &mut now, BlockOp::Read, 3, 1);
    }
    write(&mut stack, &mut now, 512..512 + slices);
    settle(&mut stack, &mut now);
    assert_eq!(stack.device.stats().refreshed, 0, "it was open");
    for _ in 0..units {
        one(&mut stack, &mut now, BlockOp::Read, 3, 1);
    }
    settle(&mut stack, &mut now);
    assert_eq!(stack.device.stats().refreshed, 1);
    check(&mut stack, &mut now);
}

/// Writes single blocks without a pause.
fn write(stack: &mut Kept, now: &mut Ns, blocks: impl Iterator<Item = u32>) {
    for block in blocks {
        stack.submit(*now, &BlockRequest { cookie: 1, lun: 0, op: BlockOp::Write, block, blocks: 1 });
        while stack.poll_done().is_none() {
            *now = stack.advance_to_reply(Ns::NEVER);
        }
    }
}

/// Leaves four superblocks half full of garbage, pauses for `pause`, and returns what was collected.
fn collected_after(config: &DeviceConfig, pause: Ns) -> u64 {
    let four = 4 * config.geometry.slices_per_superblock();
    let (mut stack, mut now) = full(config);
    write(&mut stack, &mut now, 0..four);
    write(&mut stack, &mut now, (0..four).step_by(2));
    let since = now;
    assert_eq!(stack.device.stats().collected_idle, 0, "the host was never idle for long enough");
    while stack.next_deadline() <= since + pause {
        step(&mut stack, &mut now);
    }
    let s = *stack.device.stats();
    assert_eq!(s.collected, 0, "space is not short");
    settle(&mut stack, &mut now);
    check(&mut stack, &mut now);
    s.collected_idle
}

#[test]
fn garbage_is_collected_while_the_host_is_idle() {
    let mut config = device(BLOCKS);
    config.ftl.idle_after = Ns::from_ms(50);
    config.ftl.collect_idle_below = config.geometry.superblocks();
    assert_eq!(collected_after(&config, Ns::from_ms(49)), 0, "not yet idle");
    assert_eq!(collected_after(&config, Ns::from_secs(10)), 4, "all that pays");
    config.ftl.collect_idle_below = 2;
    assert_eq!(collected_after(&config, Ns::from_secs(10)), 0, "there is enough");
}
