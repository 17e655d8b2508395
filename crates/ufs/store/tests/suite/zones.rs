// SPDX-License-Identifier: MIT OR Apache-2.0
//! A unit with zones in an image, beside a conventional one: after the power was cut, the process killed or the machine
//! crashed at any moment, another device finds write pointers, and below them what was flushed.

use crate::both::{Kept, Left, check, switch_on_full};
use crate::cuts::{END, end, no_damage};
use readpath_device::{DeviceConfig, FaultConfig, LuConfig, Without, ZoneConfig, ZoneLayout, ZoneRule};
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{Ns, Prng};
use readpath_testkit::full::full_device;
use readpath_testkit::{give_little_room, next_event, settle};

const ZONED: u8 = 1;
const ZONES: u32 = 6;
/// More than a superblock holds, and no power of two.
const BLOCKS: u32 = 70;

/// `fails` says that programs and erases fail now and then.
fn config(fails: bool) -> DeviceConfig {
    let mut config = full_device(Without::NOTHING);
    config.lus[0].blocks = 100;
    config.lus[0] = LuConfig { hpb: false, max_active_regions: 0, ..config.lus[0] };
    config.hpb = None;
    let zones = ZoneConfig {
        layout: ZoneLayout::Native,
        blocks: BLOCKS,
        most_open: 4,
        rule: ZoneRule::Zbc,
        program_blocks: 4,
        flush_blocks: 4,
    };
    config.lus.push(LuConfig { blocks: ZONES * zones.stride(), zones: Some(zones), ..config.lus[0] });
    if fails {
        config.ftl.faults =
            FaultConfig { program_failures_ppm: 10_000, erase_failures_ppm: 10_000, seed: 3, ..FaultConfig::NONE };
    }
    // Blocks that go bad take room away.
    give_little_room(&mut config, if fails { 40 } else { 4 });
    config
}

/// Requests to both units, zones written in order.
struct Load {
    rng: Prng,
    /// Blocks of each zone that were sent.
    sent: Vec<u32>,
    outstanding: u32,
    left: u32,
    /// Most requests read whole zones.
    reads: bool,
}

impl Load {
    fn new(seed: u64, requests: u32, reads: bool, stack: &Kept) -> Load {
        let sent = stack.device.zone_pointers(ZONED);
        Load { rng: Prng::stream(seed, "zones", 0), sent, outstanding: 0, left: requests, reads }
    }

    fn request(&mut self) -> BlockRequest {
        let zone = self.rng.below(u64::from(ZONES));
        let sent = &mut self.sent[zone as usize];
        let start = zone as u32 * BLOCKS;
        let in_zone = |op, block, blocks| BlockRequest { cookie: 0, lun: ZONED, op, block, blocks };
        let elsewhere = |op, block, blocks| BlockRequest { cookie: 0, lun: 0, op, block, blocks };
        let full = *sent == BLOCKS;
        if self.reads && self.rng.below(4) > 0 {
            return in_zone(BlockOp::Read, start, BLOCKS);
        }
        match self.rng.below(20) {
            0 => elsewhere(BlockOp::Flush, 0, 0),
            1 => in_zone(BlockOp::Flush, 0, 0),
            2 => elsewhere(BlockOp::Discard, self.rng.below(91) as u32, 10),
            3..6 => elsewhere(BlockOp::Write, self.rng.below(96) as u32, 5),
            6 if !full => {
                *sent = BLOCKS;
                in_zone(BlockOp::FinishZone, start, BLOCKS)
            }
            7 | 8 => in_zone(BlockOp::Read, start + self.rng.below(u64::from(BLOCKS - 3)) as u32, 3),
            _ if full => {
                *sent = 0;
                in_zone(BlockOp::ResetZone, start, BLOCKS)
            }
            n => {
                let blocks = (1 + self.rng.below(9) as u32).min(BLOCKS - *sent);
                let block = start + *sent;
                *sent += blocks;
                in_zone(if n == 9 { BlockOp::WriteFua } else { BlockOp::Write }, block, blocks)
            }
        }
    }

    /// Advances to the next event; false when nothing is left to do.
    fn step(&mut self, stack: &mut Kept, now: &mut Ns) -> bool {
        while self.outstanding < 6 && self.left > 0 {
            let request = self.request();
            stack.submit(*now, &request);
            self.outstanding += 1;
            self.left -= 1;
        }
        if stack.next_deadline() == Ns::NEVER {
            assert_eq!((self.outstanding, self.left), (0, 0), "every request ends");
            return false;
        }
        self.outstanding -= next_event(stack, now);
        true
    }
}

/// An end of each kind at every event of which the number divided by `every` leaves the number of the kind. With
/// `reads` superblocks that are read often are copied; returns how many were.
fn ends(every: u64, fails: bool, reads: bool) -> u64 {
    let mut config = config(fails);
    if reads {
        config.ftl.read_disturb_limit = 1;
        give_little_room(&mut config, 4);
    }
    let mut copied = 0;
    for (kind, how) in (0..).zip(END) {
        let mut events = kind;
        loop {
            let (mut stack, mut now) = switch_on_full(&config);
            let mut load = Load::new(5, if reads { 600 } else { 120 }, reads, &stack);
            let is_over = !(0..events).all(|_| load.step(&mut stack, &mut now));
            copied += stack.device.stats().refreshed;
            let rng = &mut Prng::stream(events, "crash", 0);
            // Again, while the next device recovers or soon after.
            for again in (0..2).rev() {
                let what = format!("event {events}, {how:?}, {again} to come");
                let (then, soon, _) = end(stack, now, how, rng).switch_on(&config, &what);
                (stack, now) = (then, soon);
                no_damage(&stack, &what);
                if again == 0 || rng.below(2) == 0 {
                    settle(&mut stack, &mut now);
                    check(&mut stack, &mut now, &what);
                }
                let mut load = Load::new(events, 40, reads, &stack);
                (0..rng.below(60)).all(|_| load.step(&mut stack, &mut now));
            }
            if is_over {
                break;
            }
            events += every;
        }
        assert!(events > 300, "{events}");
    }
    copied
}

/// A copy that no checkpoint names is forgotten, one that a checkpoint names is found.
#[test]
fn copies_of_zones_are_there_after_an_end_at_many_events() {
    let copied = ends(197, false, true);
    assert!(copied > 10, "{copied}");
}

#[test]
fn zones_are_there_after_an_end_at_many_events() {
    ends(12, false, false);
    ends(24, true, false);
}

#[test]
#[ignore = "takes minutes"]
fn zones_are_there_after_an_end_at_any_event() {
    ends(1, false, false);
    ends(1, true, false);
    ends(5, false, true);
}

/// The last program of a zone is padded, and a unit of it may hold nothing: what is written later and flushed is
/// there.
#[test]
fn padding_of_a_zone_is_no_gap_after_a_crash() {
    let config = config(false);
    let (mut stack, mut now) = switch_on_full(&config);
    let write = |op, block, blocks| BlockRequest { cookie: 0, lun: ZONED, op, block, blocks };
    for request in [write(BlockOp::Write, 0, BLOCKS), write(BlockOp::WriteFua, BLOCKS, 3)] {
        stack.submit(now, &request);
        settle(&mut stack, &mut now);
        assert_eq!(stack.poll_done().map(|done| done.error), Some(None));
    }
    let mut left = Left::kill(stack, now);
    left.crash(|_| 0);
    let (mut stack, mut now, _) = left.switch_on(&config, "a crash");
    assert_eq!(stack.device.zone_pointers(ZONED)[..3], [BLOCKS, 3, 0]);
    check(&mut stack, &mut now, "a crash");
}

/// What was copied, and what a checkpoint says lies in the copy, is in the image.
#[test]
fn a_copied_zone_is_there_after_a_kill() {
    let mut config = config(false);
    config.ftl.read_disturb_limit = 1;
    give_little_room(&mut config, 4);
    let (mut stack, mut now) = switch_on_full(&config);
    let mut ask = |stack: &mut Kept, op, blocks| {
        stack.submit(now, &BlockRequest { cookie: 0, lun: ZONED, op, block: 0, blocks });
        settle(stack, &mut now);
        assert_eq!(stack.poll_done().map(|done| done.error), Some(None));
    };
    ask(&mut stack, BlockOp::Write, BLOCKS);
    ask(&mut stack, BlockOp::Flush, 0);
    while stack.device.stats().refreshed < 3 {
        ask(&mut stack, BlockOp::Read, BLOCKS);
    }
    let (mut stack, mut now, _) = Left::kill(stack, now).switch_on(&config, "a kill");
    no_damage(&stack, "a kill");
    assert_eq!(stack.device.zone_pointers(ZONED)[..2], [BLOCKS, 0]);
    check(&mut stack, &mut now, "a kill");
}
