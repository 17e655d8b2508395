// SPDX-License-Identifier: MIT OR Apache-2.0
//! Upkeep of a device: map pages being written back count as progress, a retired superblock does not block others,
//! and a superblock that was written without a name in flash is erased before it is written again.

use super::anchors::{Device, config, cut, device, go_on};
use crate::back::{Hardware, Job, Op};
use crate::front::Delays;
use crate::ftl::{Layout, Stall, State, Stream};
use crate::ids::Lpn;
use readpath_kit::Ns;
use std::cell::Cell;

/// Writing a map page back may free a superblock of the map, or show that one of data is empty.
#[test]
fn a_write_is_not_refused_while_a_map_page_is_loaded_to_be_written_back() {
    let (mut device, mut now) = (device(), Ns::ZERO);
    assert!(!go_on(&mut device, &mut now, |_| false));
    device.ftl.write.set_stall(now, Some(Stall::Space), device.back.stats());
    assert!(device.ftl.is_stuck(&device.back), "nothing goes on");
    // More than three quarters of the table of changes.
    Lpn(0).run(100).for_each(|lpn| device.ftl.relocate(lpn, device.ftl.map.flash_entry(lpn)));
    device.ftl.write_back(now, &mut device.back);
    assert_eq!((device.back.writes(), device.stats().write_back_loads > 0), (0, true), "it is only read so far");
    assert!(!device.ftl.is_stuck(&device.back));
}

/// On a device of one die a superblock has one block.
#[test]
fn behind_a_superblock_whose_blocks_are_all_bad_the_next_is_erased() {
    let (mut device, mut now) = (device(), Ns::ZERO);
    let [bad, good] = [true, false].map(|fails| {
        let sb = device.ftl.space.open(Stream::Cold, 1).expect("an erased superblock");
        match fails {
            true => assert!(device.ftl.space.program_failed(sb, 0, 0)),
            false => device.ftl.space.close(Stream::Cold, 0),
        }
        device.ftl.log.discard(&mut device.ftl.space, sb);
        sb
    });
    device.pump(now);
    let is_retired = |device: &Device| device.ftl.space.get(bad).state == State::Retired;
    assert!(go_on(&mut device, &mut now, is_retired));
    assert_eq!(device.ftl.space.erasing(), Some(good), "nothing else would begin it");
    assert!(!go_on(&mut device, &mut now, |_| false));
    assert_eq!(device.ftl.space.get(good).state, State::Erased);
    assert_eq!(device.stats().retired_superblocks, 1);
}

/// The last unit of the map's superblock names the next one. If it is torn, the first checkpoint after the recovery
/// goes into a superblock that only its anchor names; and the power may be cut again before that anchor.
#[test]
fn what_was_written_without_a_name_is_erased_again() {
    let names_next = |device: &Device| {
        let last = device.ftl.space.slices() - device.config.geometry.slices_per_unit();
        let of_meta = |op: &&Op| op.job == Job::MetaProgram;
        device.back.ops().in_progress().filter(of_meta).any(|op| op.ppn.0 % device.ftl.space.slices() == last)
    };
    let unnamed = (0..200u32).map_while(|events| {
        let (mut device, mut now) = (device(), Ns::ZERO);
        // A checkpoint follows each recovery, so one of them comes to the end of the superblock.
        while !go_on(&mut device, &mut now, names_next) {
            cut(&mut device, &mut now);
        }
        cut(&mut device, &mut now);
        let left = Cell::new(events);
        go_on(&mut device, &mut now, |_| left.replace(left.get().saturating_sub(1)) == 0);
        let open = device.ftl.space.open_of(Stream::Meta);
        let written = open.filter(|&sb| device.ftl.space.get(sb).next_unit > 0);
        if written.is_some_and(|sb| device.ftl.log.checkpoint_says(sb) != State::Erased) {
            return None;
        }
        cut(&mut device, &mut now);
        written.inspect(|&sb| {
            let state = device.ftl.space.get(sb).state;
            assert!(matches!(state, State::Erasing(_)), "after {events} events: {state:?}");
        });
        Some(written)
    });
    assert!(unnamed.flatten().count() > 2, "the power went while there was one");
}

/// Worn superblocks are taken last, so a range need not ascend.
#[test]
fn a_device_that_is_worn_can_be_preconditioned() {
    let config = config();
    for layout in [Layout::Sequential, Layout::Random] {
        let mut device = Device::new(&config, Delays::default(), ()).expect("a possible device");
        let all: Vec<_> = device.ftl.space.all().collect();
        for (wear, &sb) in all.iter().rev().enumerate() {
            (0..wear).for_each(|_| device.ftl.space.count_anchor_erase(sb));
        }
        let blocks = config.lus[0].blocks;
        device.precondition([(0, 0, blocks)], layout, 1, |_, _| ()).expect("room");
        device.check_consistency().expect("spare areas name the blocks that lie there");
    }
}
