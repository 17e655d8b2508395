// SPDX-License-Identifier: MIT OR Apache-2.0
//! When data of zones is programmed before it fills a whole program, and when it is not.

use super::*;

const PROGRAM: u32 = 12;

/// Zones of 256 blocks that are programmed 12 at a time, with a write buffer of so many blocks.
fn with_buffer(write_buffer_blocks: u32) -> Bare {
    let mut config = zoned(ZoneLayout::PowerOfTwo, 256, ZoneRule::Zbc);
    let zones = config.lus[1].zones.as_mut().expect("zones");
    (zones.program_blocks, zones.flush_blocks) = (PROGRAM, PROGRAM);
    config.write_buffer_blocks = write_buffer_blocks;
    config.ftl.checkpoint_after_units = 512;
    give_little_room(&mut config, 20);
    Bare::new(&config)
}

fn flush(bare: &mut Bare) {
    let flush = Cdb::SynchronizeCache { form: Form::Sixteen, lba: 0, blocks: 0, immed: false };
    assert_eq!(response(&bare.ask(ZONED, command(flush, 0), &[]).0).status, Status::Good);
}

/// What a flush leaves of a program is programmed once more, and data that comes behind it is not: not before the
/// program that it is read back for has ended either.
#[test]
fn a_flush_costs_no_more_than_what_it_leaves() {
    let mut bare = with_buffer(60);
    let (mut flushes, mut left) = (0, 0);
    for block in 0..200 {
        written(&mut bare, ZONED, block, 1);
        if block % 50 == 16 {
            flush(&mut bare);
            flushes += 1;
            left += (block + 1) % u64::from(PROGRAM);
        }
    }
    flush(&mut bare);
    left += 200 % u64::from(PROGRAM);
    let stats = bare.device.stats();
    assert_eq!((flushes, stats.zone_early_flushes, stats.no_space), (4, 0, 0));
    assert_eq!(stats.zone_rests, left, "rests");
    assert!(stats.zone_rests_loaded < stats.zone_rests, "the last are not read back");
}

/// If more zones are written than the buffer has room for, the zone with most in it leaves; otherwise none does.
#[test]
fn zones_leave_a_buffer_that_is_too_small_for_them() {
    let early = |buffer, zones: u32, blocks: u32| {
        let mut bare = with_buffer(buffer);
        (0..blocks).for_each(|i| written(&mut bare, ZONED, u64::from(i % zones * 256 + i / zones), 1));
        bare.device.check_consistency().expect("tables that agree");
        (bare.device.stats().zone_early_flushes, bare.device.stats().zone_rests)
    };
    // All but a block of a program of each of three, and one that fills the first.
    let buffer = 3 * (PROGRAM - 1) + 1;
    for zones in 1..=3 {
        assert_eq!(early(buffer, zones, zones * 4 * PROGRAM), (0, 0), "{zones} zones");
    }
    // Of four, the first two have nine blocks when it is full.
    assert_eq!(early(buffer, 4, buffer), (0, 0));
    assert_eq!(early(buffer, 4, buffer + 1), (1, 9));
    assert_eq!(early(buffer, 4, 4 * 4 * PROGRAM), (8, 73));
}
