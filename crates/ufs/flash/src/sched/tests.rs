// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schedulers against each other and against arithmetic.

use super::queued::READS_AHEAD;
use super::*;
use proptest::prelude::*;

const R: Ns = Ns(50_000);
const X: Ns = Ns(8_000);

const SERVERS: Servers = Servers { channels: 2, dies: 4, planes: 1 };
/// As many servers, of two dies whose planes read apart.
const PLANES: Servers = Servers { channels: 2, dies: 2, planes: 2 };

fn read(die: u32) -> FlashOp {
    FlashOp { die, kind: OpKind::Read, array: R, transfer: X, report_at_end: true, expected: false }
}

fn program(die: u32) -> FlashOp {
    FlashOp { die, kind: OpKind::Program, array: Ns(500_000), transfer: X, report_at_end: true, expected: false }
}

/// Submits operations at their times and returns each one's end, by identity.
fn ends<S: DieSched>(ops: &[(u64, FlashOp)], suspend: SuspendTiming) -> Vec<Ns> {
    ends_on::<S>(SERVERS, ops, suspend)
}

fn ends_on<S: DieSched>(servers: Servers, ops: &[(u64, FlashOp)], suspend: SuspendTiming) -> Vec<Ns> {
    let mut sched = S::new(Scheduler::Lean, servers, suspend);
    let mut ends = vec![Ns::NEVER; ops.len()];
    let mut next = 0;
    loop {
        let arrival = ops.get(next).map_or(Ns::NEVER, |&(at, _)| Ns(at));
        let now = arrival.min(sched.next_deadline());
        if now == Ns::NEVER {
            return ends;
        }
        while let Some(done) = sched.poll(now) {
            assert_eq!(ends[usize::from(done.op)], Ns::NEVER, "reported twice");
            ends[usize::from(done.op)] = done.at;
        }
        if arrival == now {
            sched.submit(now, next as OpId, ops[next].1);
            next += 1;
        }
    }
}

/// [`ends`], but each operation is known when the one `ahead` places before it arrives, and is then submitted to its
/// die if that is allowed.
fn planned_ends(servers: Servers, ops: &[(u64, FlashOp)], ahead: usize) -> (Vec<Ns>, usize) {
    let mut sched = Lean::new(Scheduler::Lean, servers, SuspendTiming::OFF);
    let mut ends = vec![Ns::NEVER; ops.len()];
    let (mut known, mut planned) = (0, 0);
    let mut waiting = std::collections::VecDeque::<(Ns, usize)>::new();
    loop {
        let arrival = waiting.front().map_or(Ns::NEVER, |&(at, _)| at);
        let news = ops.get(known).map_or(Ns::NEVER, |_| Ns(ops[known.saturating_sub(ahead)].0));
        let now = arrival.min(news).min(sched.next_deadline());
        if now == Ns::NEVER {
            return (ends, planned);
        }
        while let Some(done) = sched.poll(now) {
            ends[usize::from(done.op)] = done.at;
        }
        if arrival == now {
            let (_, id) = waiting.pop_front().expect("just seen");
            sched.submit(now, id as OpId, FlashOp { expected: true, ..ops[id].1 });
        } else if news == now {
            let (at, op) = ops[known];
            if op.kind != OpKind::Program && sched.plans_ahead(op.die, op.kind) {
                sched.submit(Ns(at), known as OpId, op);
                planned += 1;
            } else {
                sched.expect(op.die, op.kind);
                waiting.push_back((Ns(at), known));
            }
            known += 1;
        }
    }
}

fn workload() -> impl Strategy<Value = Vec<(u64, FlashOp)>> {
    proptest::collection::vec((0u64..60_000, 0u32..4, 0u8..10), 1..120).prop_map(|gaps| {
        let mut at = 0;
        gaps.into_iter()
            .map(|(gap, die, kind)| {
                at += gap;
                let op = match kind {
                    0 => program(die),
                    1 => FlashOp { kind: OpKind::Erase, array: Ns(3_000_000), transfer: Ns::ZERO, ..read(die) },
                    2 | 3 => FlashOp { kind: OpKind::ReadTogether, ..read(die) },
                    _ => read(die),
                };
                (at, op)
            })
            .collect()
    })
}

/// What takes all planes of a die whose planes read apart names the first.
fn name_first_planes(ops: &mut [(u64, FlashOp)]) {
    let whole = ops.iter_mut().filter(|(_, op)| op.kind.takes_all_planes());
    whole.for_each(|(_, op)| op.die = PLANES.first_plane(op.die));
}

#[test]
fn planes_that_read_apart_overlap_and_share_their_channel() {
    let ops = [(0, read(0)), (0, read(1)), (10, program(0)), (20, read(1)), (30, read(2))];
    for got in [ends_on::<Lean>(PLANES, &ops, SuspendTiming::OFF), ends_on::<Exact>(PLANES, &ops, SuspendTiming::OFF)] {
        // The second die is on the other channel.
        assert_eq!(got[..2], [R + X, R + X + X]);
        assert_eq!(got[4], Ns(30) + R + X);
        // The program waits for both planes. The third read of the die reached its plane before the program, whose
        // data was still on the channel.
        assert_eq!(got[2], R + R + Ns(500_000));
        assert_eq!(got[3], R + R + X);
    }
}

/// A read of several pages waits for both planes, and the next read of either for it.
#[test]
fn pages_that_are_read_together_take_all_planes() {
    let together = FlashOp { kind: OpKind::ReadTogether, ..read(0) };
    let ops = [(0, read(1)), (10, together), (20, read(0)), (30, read(1)), (40, read(2))];
    for got in [ends_on::<Lean>(PLANES, &ops, SuspendTiming::OFF), ends_on::<Exact>(PLANES, &ops, SuspendTiming::OFF)] {
        assert_eq!(got[..2], [R + X, R + R + X]);
        assert_eq!(got[2..4], [R + R + R + X, R + R + R + X + X]);
        assert_eq!(got[4], Ns(40) + R + X, "another die");
    }
}

/// Each plane is planned again when what takes all planes has been queued at the die.
#[test]
fn planes_are_planned_ahead_again_behind_a_program_or_an_erase() {
    let plans = |sched: &Lean| [0, 1].map(|plane| sched.plans_ahead(plane, OpKind::Read));
    let erase = FlashOp { kind: OpKind::Erase, array: Ns(3_000_000), transfer: Ns::ZERO, expected: true, ..read(0) };
    let together = FlashOp { kind: OpKind::ReadTogether, expected: true, ..read(0) };
    for op in [program(0), erase, together] {
        let mut sched = Lean::new(Scheduler::Lean, PLANES, SuspendTiming::OFF);
        if op.expected {
            sched.expect(op.die, op.kind);
            assert_eq!(plans(&sched), [false; 2], "{op:?}");
        }
        sched.submit(Ns::ZERO, 0, op);
        if op.kind == OpKind::Program {
            assert_eq!(plans(&sched), [false; 2], "its data is on the channel");
            assert_eq!(sched.poll(X), None);
        }
        assert_eq!(plans(&sched), [true; 2], "{op:?}");
    }
}

proptest! {
    #[test]
    fn lean_equals_exact_for_reads(mut ops in workload()) {
        ops.iter_mut().for_each(|(_, op)| *op = read(op.die));
        // Simultaneous array ends on one channel are served in different, equally valid orders: compare sorted ends.
        let (mut a, mut b) = (ends::<Lean>(&ops, SuspendTiming::OFF), ends::<Exact>(&ops, SuspendTiming::OFF));
        a.sort_unstable();
        b.sort_unstable();
        prop_assert_eq!(a, b);
    }

    /// Without transfers, where the two differ in the order of simultaneous ends on a channel.
    #[test]
    fn lean_equals_exact_for_planes_that_read_apart(mut ops in workload()) {
        ops.iter_mut().for_each(|(_, op)| op.transfer = Ns::ZERO);
        name_first_planes(&mut ops);
        let lean = ends_on::<Lean>(PLANES, &ops, SuspendTiming::OFF);
        prop_assert_eq!(&lean, &ends_on::<Exact>(PLANES, &ops, SuspendTiming::OFF));
        let (planned, _) = planned_ends(PLANES, &ops, 3);
        prop_assert_eq!(lean, planned);
    }

    #[test]
    fn what_is_planned_ahead_ends_when_it_would_have(ops in workload(), ahead in 1usize..6) {
        let (ends_then, planned) = planned_ends(SERVERS, &ops, ahead);
        prop_assert_eq!(ends_then, ends::<Lean>(&ops, SuspendTiming::OFF));
        // The first operation that is no program finds its die quiet.
        let first = ops.iter().position(|(_, op)| op.kind != OpKind::Program);
        prop_assert!(first != Some(0) || planned > 0);
    }

    #[test]
    fn every_operation_ends_once_and_not_too_early(ops in workload()) {
        let suspend = SuspendTiming { suspend: Ns(5_000), resume: Ns(5_000), max_per_op: 3 };
        for got in [ends::<Lean>(&ops, suspend), ends::<Exact>(&ops, suspend), ends::<Queued>(&ops, suspend)] {
            for (&end, &(at, op)) in got.iter().zip(&ops) {
                prop_assert!(end != Ns::NEVER && end >= Ns(at) + op.array + op.transfer);
            }
        }
    }
}

#[test]
fn a_lone_read_takes_the_sum_of_its_stages() {
    for got in [
        ends::<Lean>(&[(7, read(1))], SuspendTiming::OFF),
        ends::<Exact>(&[(7, read(1))], SuspendTiming::OFF),
        ends::<Queued>(&[(7, read(1))], SuspendTiming::OFF),
    ] {
        assert_eq!(got, [Ns(7) + R + X]);
    }
}

#[test]
fn queued_reads_overtake_waiting_programs() {
    let ops = [(0, program(0)), (1, program(0)), (20_000, read(0))];
    let fifo = ends::<Exact>(&ops, SuspendTiming::OFF);
    let first = ends::<Queued>(&ops, SuspendTiming::OFF);
    // The first program holds the die until 508 us either way; only with priority is the read next.
    assert_eq!(fifo[2], Ns(1_008_000) + R + X);
    assert_eq!(first[2], Ns(508_000) + R + X);
    assert_eq!(first[1], Ns(508_000) + R + Ns(500_000));
}

#[test]
fn queued_suspends_a_program_for_a_read() {
    let suspend = SuspendTiming { suspend: Ns(5_000), resume: Ns(7_000), max_per_op: 1 };
    let ops = [(0, program(0)), (100_000, read(0)), (200_000, read(0))];
    let got = ends::<Queued>(&ops, suspend);
    assert_eq!(got[1], Ns(105_000) + R + X);
    // 408 us of the program were left; it resumes when the read has left the array, and is not suspended again.
    assert_eq!(got[0], Ns(155_000 + 7_000 + 408_000));
    assert_eq!(got[2], got[0] + R + X);
}

#[test]
fn queued_reads_do_not_keep_a_program_waiting_for_ever() {
    for max_per_op in [0, 2] {
        let suspend = SuspendTiming { suspend: Ns(5_000), resume: Ns(7_000), max_per_op };
        // A read is always waiting.
        let mut ops = vec![(0, program(0))];
        ops.extend((1..200).map(|i| (i, read(0))));
        let got = ends::<Queued>(&ops, suspend);
        // Its array time, that of the reads before it and before each resumption, and a suspension and a resumption
        // each.
        let turns = u64::from(max_per_op) + 1;
        let most = 508_000 + turns * (u64::from(READS_AHEAD + 1) * R.0 + 12_000);
        assert!(got[0] <= Ns(most), "{max_per_op}: {}", got[0]);
        let overtaken = got[1..].iter().filter(|&&end| end < got[0]).count();
        assert!(overtaken >= READS_AHEAD as usize, "{overtaken} reads are done before the program");
    }
}

#[test]
fn queued_reads_are_served_before_an_erase_that_came_later() {
    let erase = FlashOp { kind: OpKind::Erase, array: Ns(3_000_000), transfer: Ns::ZERO, ..read(0) };
    let mut ops: Vec<(u64, FlashOp)> = (0..60).map(|i| (i, read(0))).collect();
    ops.push((1_000, erase));
    let got = ends::<Queued>(&ops, SuspendTiming::OFF);
    assert!(got[..60].iter().all(|&end| end < got[60]), "{got:?}");
}
