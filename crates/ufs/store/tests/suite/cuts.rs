// SPDX-License-Identifier: MIT OR Apache-2.0
//! The power is cut, the process is killed or the machine crashes at any moment, and another device continues from
//! the image: flushed data is there, no read returns data never written, and the tables are consistent.

use crate::both::{Left, check, switch_on_full};
use readpath_device::{DeviceConfig, Without};
use readpath_kit::{Ns, Prng};
use readpath_stack::Payload;
use readpath_testkit::chosen;
use readpath_testkit::full::{Load, any_full_device, full_device};

/// Kind of the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The device loses its power.
    Cut,
    /// The process dies.
    Kill,
    /// The process dies while it writes to the disk.
    Writing,
    /// The machine crashes: unsynced writes reach the disk in part, in any order.
    Crash,
}

pub const END: [End; 4] = [End::Cut, End::Kill, End::Writing, End::Crash];

pub fn end(stack: crate::both::Kept, now: Ns, how: End, rng: &mut Prng) -> Left {
    match how {
        End::Cut => Left::cut(stack, now),
        End::Kill => Left::kill(stack, now),
        End::Writing => Left::kill_while_it_writes(stack, now, rng),
        End::Crash => {
            let mut left = Left::kill(stack, now);
            let all_or_nothing = rng.below(2) == 0;
            left.crash(|bytes| match rng.below(if all_or_nothing { 2 } else { 3 }) {
                0 => 0,
                1 => bytes,
                _ => rng.below(bytes as u64 + 1) as usize,
            });
            left
        }
    }
}

/// What the end left is marked as torn when the device has recovered, and is no damage.
pub fn no_damage(stack: &crate::both::Kept, what: &str) {
    let array = stack.payload.store.array();
    for superblock in 0..array.format().shape.superblocks {
        array.examine(superblock, &mut Default::default(), |fault| panic!("{what}: {fault}")).unwrap();
    }
}

fn many(config: &DeviceConfig, seed: u64, cuts: u32) {
    let (mut stack, mut now) = switch_on_full(config);
    let rng = &mut Prng::stream(seed, "cuts", 0);
    for cut in 0..cuts {
        // Writes of units are gathered, and settled now and then.
        let gathers = seed % 2 == 1;
        if gathers {
            stack.payload.store.array_mut().gather();
        }
        let how = END[rng.below(4) as usize];
        let what = format!("seed {seed}, cut {cut}, {how:?}");
        let mut load = Load::new(seed << 16 | u64::from(cut), 400);
        for _ in 0..rng.below(700) {
            if !load.step(&mut stack, &mut now) {
                break;
            }
            if gathers && rng.below(8) == 0 {
                stack.payload.settle();
            }
        }
        let mut left = end(stack, now, how, rng);
        for _ in 0..rng.below(3) {
            // Again, while the device recovers or its first checkpoint is being written.
            let (mut again, mut then, _) = left.switch_on(config, &what);
            for _ in 0..rng.below(40) {
                if again.next_deadline() == Ns::NEVER {
                    break;
                }
                readpath_testkit::step(&mut again, &mut then);
            }
            left = end(again, then, how, rng);
        }
        (stack, now, _) = left.switch_on(config, &what);
        no_damage(&stack, &what);
        check(&mut stack, &mut now, &what);
    }
}

#[test]
fn random_ends_of_random_devices() {
    let (seeds, _) = chosen(0..16);
    seeds.for_each(|seed| many(&any_full_device(seed), seed, 45));
}

#[test]
#[ignore = "takes minutes"]
fn many_random_ends_of_many_devices() {
    let (seeds, _) = chosen(16..200);
    seeds.for_each(|seed| many(&any_full_device(seed), seed, 45));
}

#[test]
fn an_end_at_every_event() {
    let config = full_device(Without::NOTHING);
    for how in END {
        let mut events = 0;
        loop {
            let (mut stack, mut now) = switch_on_full(&config);
            let mut load = Load::new(7, 120);
            let is_over = !(0..events).all(|_| load.step(&mut stack, &mut now));
            let rng = &mut Prng::stream(events, "crash", 0);
            let what = format!("event {events}, {how:?}");
            let (mut stack, mut now, _) = end(stack, now, how, rng).switch_on(&config, &what);
            no_damage(&stack, &what);
            check(&mut stack, &mut now, &what);
            if is_over {
                break;
            }
            events += 1;
        }
        assert!(events > 300, "{events}");
    }
}
