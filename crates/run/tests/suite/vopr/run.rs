// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run of one seed, and what must hold at its end.

use super::met::Met;
use super::options::{OnPanic, Options};
use super::traffic::{InFlight, random_request};
use super::trouble::Troublemaker;
use readpath_flash::DieSched;
use readpath_host::{BlockOp, LongReads};
use readpath_kit::{Ns, Prng};
use readpath_testkit::{Checked, Meddled, reset_hpb, start_on, step, toggle_booster};

pub type Tried<S> = Checked<S, Meddled<Troublemaker>>;

/// Runs one seed.
pub fn try_out<S: DieSched>(o: &Options, met: &mut Met) {
    let _on_panic = OnPanic(o);
    let wire = Meddled::new(Troublemaker::new(o), o.encoded);
    let (mut stack, mut now): (Tried<S>, Ns) = start_on(&o.config, o.host, wire, |stack| {
        let Some(layout) = o.precondition else { return };
        for (lun, lu) in (0..).zip(&o.config.lus) {
            stack.precondition(lun, 0, lu.blocks * 3 / 4, layout, o.seed).expect("room");
        }
    });
    pressure(&mut stack, now, &mut Prng::stream(o.seed, "pressure", 0));
    let rng = &mut Prng::stream(o.seed, "requests", 0);
    let power = &mut Prng::stream(o.seed, "cuts", 0);
    let sleep = &mut Prng::stream(o.seed, "sleep", 0);
    let mut flights = InFlight::default();
    let (mut sent, mut steps) = (0, 0u64);
    let hpb_resets = &mut Prng::stream(o.seed, "hpb resets", 1);
    let toggles = &mut Prng::stream(o.seed, "toggles", 0);
    while sent < o.ops {
        if o.config.write_booster().is_some() && o.host.slots < 64 && toggles.below(1000) == 0 {
            toggle_booster(&mut stack, now, toggles);
        }
        if o.host.slots < 64 && hpb_resets.below(1_000_000) < o.trouble.hpb_resets_per_million {
            // While the device still works at what came before.
            now = stack.next_deadline().min(now + Ns(hpb_resets.below(100_000)));
            stack.advance(now);
            reset_hpb(&mut stack, now);
            met.count("HPB resets", 1);
        }
        // Now and then everything ends before more is sent.
        if rng.below(2000) == 0 {
            now = flights.drain(&mut stack, now);
        }
        while flights.outstanding < o.depth && sent < o.ops {
            let (lun, op, block, blocks) = random_request(o, rng, sent);
            flights.submit(&mut stack, now, lun, op, block, blocks);
            sent += 1;
        }
        let reset = rng.below(1_000_000) < o.resets_per_million;
        if reset {
            // At the time of a submission, or at a random time after it.
            let later = now + Ns(rng.below(2) * rng.below(400_000));
            while stack.next_deadline() <= later {
                step(&mut stack, &mut now);
            }
            now = later;
            // Timers of the host alone are no steps.
            stack.advance(now);
            stack.reset(now);
            met.count("resets", 1);
        } else if power.below(1_000_000) < o.cuts_per_million {
            let on = now + Ns::from_ms(1);
            stack.device_power_cycle(now, on);
            now = on;
            stack.advance(now);
            stack.device.check_consistency().unwrap_or_else(|e| panic!("after a power cut: {e}"));
            met.count("cuts", 1);
        } else if sleep.below(1_000_000) < o.suspends_per_million {
            // Awake again at once, or some time later.
            if sleep.below(2) == 0 {
                stack.suspend();
            }
            if sleep.below(2) == 0 {
                stack.resume(now);
            }
            met.count("suspends", 1);
        } else if rng.below(2) == 0 {
            step(&mut stack, &mut now);
        } else {
            now = stack.advance_to_reply(Ns::NEVER);
        }
        steps += 1;
        assert!(steps < 20_000_000, "requests end some time: {} outstanding, {sent} sent", flights.outstanding);
        assert_ne!(now, Ns::NEVER, "requests are outstanding, so something must happen");
        flights.collect(&mut stack);
    }
    flights.drain(&mut stack, now);
    finish(o, &mut stack, &mut flights, now);
    met.count("requests", u64::from(sent));
    met.add(&stack);
    let hits = stack.device.stats().hpb_long_hits;
    match o.host.hpb.map(|hpb| hpb.long_reads) {
        Some(LongReads::First) => met.count("long by the first entry", hits),
        Some(LongReads::Ehs) => met.count("long by all entries", hits),
        _ => {}
    }
}

/// Limits of memory that change many times in a run, so that maps are dropped while requests are under way.
fn pressure<S: DieSched>(stack: &mut Tried<S>, now: Ns, rng: &mut Prng) {
    for lun in 0..8 {
        // Linux's policies have none.
        let Some(least) = stack.host.hpb(lun).and_then(|hpb| hpb.least_memory().ok()) else { continue };
        let mut bytes = || {
            let width = 7 + rng.below(9);
            least + rng.below(1 << width)
        };
        let changes: Vec<(Ns, u64)> = (1..200).map(|i| (now + Ns(i * 500_000), bytes())).collect();
        stack.host.schedule_limits(lun, &changes).expect("room for the tables");
    }
}

/// Reads all data back, and checks that nothing is left in flight.
fn finish<S: DieSched>(o: &Options, stack: &mut Tried<S>, flights: &mut InFlight, now: Ns) {
    flights.submit(stack, now, 0, BlockOp::Flush, 0, 0);
    let mut now = flights.drain(stack, now);
    let unmapped = stack.device.stats().unmapped_reads;
    for (lun, lu) in o.config.lus.iter().enumerate() {
        for block in (0..lu.blocks).step_by(16) {
            flights.submit(stack, now, lun as u8, BlockOp::Read, block, (lu.blocks - block).min(16));
            if flights.outstanding == 32 {
                now = flights.drain(stack, now);
            }
        }
    }
    flights.drain(stack, now);
    assert!(stack.wire_error().is_none());
    assert_eq!(stack.payload.wrong, 0, "first wrong read: {:?}", stack.payload.first_wrong);
    assert!(stack.payload.checked >= o.config.logical_blocks());
    let stats = stack.device.stats();
    assert_eq!(stats.no_space, 0);
    assert_eq!(stack.device.ops_in_use(), 0, "no operation is left behind");
    assert!(stack.host.is_idle(), "no tag is left behind");
    stack.device.check_consistency().unwrap_or_else(|e| panic!("{e}"));
    // Everything has been flushed, so a block that did not read as unmapped lies in exactly one valid slice.
    let mapped = o.config.logical_blocks() - (stats.unmapped_reads - unmapped);
    assert_eq!(stack.device.valid_slices(), mapped, "a valid slice for every mapped block");
}
