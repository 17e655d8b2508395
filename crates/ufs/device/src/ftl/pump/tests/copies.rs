// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of superblocks of zones: one at a time, since one superblock is kept for them; none begins a program that a
//! checkpoint waits for; and while there is one, writes may still get space.

use super::anchors::{Device, config, go_on};
use crate::back::Hardware;
use crate::config::{LuConfig, ZoneConfig, ZoneLayout, ZoneRule};
use crate::front::Delays;
use crate::ftl::space::{Purpose, State};
use crate::ftl::zones::Step;
use crate::ftl::{Layout, Stall, Stream};
use readpath_kit::Ns;

const ZONES: u32 = 8;
/// A zone fills a superblock.
const BLOCKS: u32 = 32;

/// A device whose zones are full, and in a checkpoint.
fn device() -> (Device, Ns) {
    let mut config = config();
    config.ftl.read_disturb_limit = 1;
    let zones = ZoneConfig {
        layout: ZoneLayout::PowerOfTwo,
        blocks: BLOCKS,
        most_open: 2,
        rule: ZoneRule::Zbc,
        program_blocks: 4,
        flush_blocks: 4,
    };
    config.lus.push(LuConfig { blocks: ZONES * BLOCKS, zones: Some(zones), ..config.lus[0] });
    let mut device = Device::new(&config, Delays::default(), ()).expect("a possible device");
    device.precondition([(1, 0, ZONES * BLOCKS)], Layout::Sequential, 1, |_, _| ()).expect("room");
    let mut now = Ns::ZERO;
    device.ftl.log.want_checkpoint();
    device.pump(now);
    assert!(!go_on(&mut device, &mut now, |_| false));
    (device, now)
}

/// Reads a zone as often as it takes until it should be copied.
fn read(device: &mut Device, now: Ns, zone: u32) {
    let ppn = device.ftl.slice_of(device.ftl.zones.first_of(zone)).expect("it is in flash");
    (0..BLOCKS / 4).for_each(|_| _ = device.ftl.note_read(now, ppn, &mut device.back));
}

/// Begins to copy a zone, and waits until the copy comes to a step.
fn copy_up_to(device: &mut Device, now: &mut Ns, zone: u32, step: Step) {
    read(device, *now, zone);
    let is_there = |device: &Device| device.ftl.zones.refresh().is_some_and(|refresh| refresh.step == step);
    assert!(go_on(device, now, is_there), "it is copied");
}

#[test]
fn one_superblock_is_copied_at_a_time() {
    let (mut device, mut now) = device();
    let (mut events, mut most) = (0, 0);
    for zone in 0..ZONES {
        read(&mut device, now, zone);
    }
    loop {
        let of_zones = |state| matches!(state, State::Open(Stream::Zone) | State::Closed(Stream::Zone));
        let held = device.ftl.space.iter().filter(|(_, at)| of_zones(at.state)).count() as u32;
        most = most.max(held);
        device.check_consistency().expect("tables that agree");
        read(&mut device, now, events % ZONES);
        events += 1;
        let next = device.next_deadline();
        if next == Ns::NEVER || device.stats().refreshed > 10 {
            break;
        }
        now = next;
        device.advance(next);
    }
    assert!(device.stats().refreshed > 10, "{} copies in {events} events", device.stats().refreshed);
    assert_eq!(most, ZONES + 1);
}

#[test]
fn data_of_other_units_leaves_a_superblock_for_a_copy() {
    let (mut device, now) = device();
    while device.ftl.space.may_open(Purpose::Host) {
        device.ftl.space.open(Stream::Hot, 1).expect("an erased superblock");
        device.ftl.space.close(Stream::Hot, 1);
    }
    read(&mut device, now, 0);
    assert!(device.ftl.zones.refresh().is_some());
}

#[test]
fn a_checkpoint_does_not_wait_for_a_program_of_a_copy_that_could_wait() {
    let (mut device, mut now) = device();
    copy_up_to(&mut device, &mut now, 0, Step::Reads(1));
    // A program that takes longer than the read.
    let (other, _) = device.ftl.log.open_for_zone(&mut device.ftl.space).expect("room");
    let program = device.ftl.space.take_program(other);
    device.ftl.log.want_checkpoint();
    device.pump(now);
    let checkpoints = device.stats().checkpoints;
    assert!(!go_on(&mut device, &mut now, |_| false));
    assert_eq!(device.ftl.zones.refresh().map(|refresh| refresh.step), Some(Step::Read));
    let first = device.ftl.space.slice_of_program(other, program, 0);
    device.ftl.space.data_program_ended(first);
    device.pump(now);
    assert_eq!(device.stats().checkpoints, checkpoints + 1, "it was put together at once");
    assert!(go_on(&mut device, &mut now, |device| device.stats().refreshed == 1));
}

#[test]
fn a_write_is_not_refused_while_a_superblock_is_copied() {
    let (mut device, mut now) = device();
    copy_up_to(&mut device, &mut now, 0, Step::Reads(1));
    device.ftl.write.set_stall(now, Some(Stall::Space), device.back.stats());
    assert_eq!(device.back.writes(), 0, "it is only read so far");
    assert!(!device.ftl.is_stuck(&device.back), "what is copied, or the copy, will be erased");
}
