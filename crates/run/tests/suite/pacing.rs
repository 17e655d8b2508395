// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves that jobs are paced as fio paces them (each kind of request by its own rate), that a ramp which outlasts its
//! job is an error, that any number of jobs can wait for a time, that a run which would go
//! on for months ends with an error, and that a bad HPB entry costs its check also when the map page is missing.

use readpath_device::Layout;
use readpath_flash::Lean;
use readpath_kit::Ns;
use readpath_proto::typed::{Cdb, HpbEntry, ReplyBody, Request, Status};
use readpath_run::{PhaseStats, RunError, Runner};
use readpath_stack::{NoData, Stack, Typed};
use readpath_testkit::{Bare, command, device, host, job, read_10, run, start};
use readpath_workload::{Ends, Flow, IoKind, Job, Kinds, Offsets, Phase, Stream, StreamSpec, Think};

const BLOCKS: u32 = 1000;

fn started() -> (Stack<Lean, NoData, (), Typed>, Runner) {
    let (mut stack, now) = start(&device(BLOCKS), host(None), |_| {});
    stack.precondition(0, 0, BLOCKS, Layout::Sequential, 1).expect("room");
    (stack, Runner::new(now))
}

fn reader(ios: u64, iodepth: u32) -> Job {
    job(Stream::uniform_reads(0, BLOCKS, 1, 7).expect("a range"), iodepth, ios)
}

#[test]
fn a_pause_begins_when_nothing_is_in_flight() {
    for iodepth in [1, 4] {
        let (mut stack, mut runner) = started();
        let mut job = reader(100, iodepth);
        job.think = Think { time: Ns::from_ms(1), every: 1 };
        let stats = run(&mut stack, &mut runner, vec![job]);
        let read = stats.jobs[0].of(IoKind::Read);
        // One request at a time at any depth, and 99 pauses between 100 requests.
        let expected = read.latency.sum() as u64 + 99 * 1_000_000;
        assert_eq!((stats.end - stats.start).0, expected + 1_000_000, "the last pause is waited for, too");
    }
}

/// Reads and writes, `reads` percent reads, for `seconds`.
fn mixed(reads: u8, iodepth: u32, seconds: u64, rates: [Option<u64>; 3]) -> Job {
    let mut spec = StreamSpec::plain(IoKind::Read, 0, BLOCKS, 1, Offsets::Sequential);
    spec.kinds = Kinds::Mix(reads);
    let mut job = job(Stream::new(&spec, 3).expect("a possible stream"), iodepth, u64::MAX);
    job.limits.runtime = Some(Ns::from_secs(seconds));
    job.rate_bytes = rates.map(|rate| rate.map(|iops| iops * 4096));
    job
}

#[test]
fn each_kind_keeps_its_own_rate() {
    for iodepth in [1, 8] {
        let (mut stack, mut runner) = started();
        // A tenth of the draws are reads, yet both rates are met: a kind that is ahead lets the other one go.
        let job = mixed(10, iodepth, 2, [Some(400), Some(100), None]);
        let stats = run(&mut stack, &mut runner, vec![job]);
        let [reads, writes] = [IoKind::Read, IoKind::Write].map(|kind| stats.jobs[0].of(kind).ios);
        assert!((799..=801).contains(&reads) && (199..=201).contains(&writes), "{reads} reads, {writes} writes");
    }
}

#[test]
fn a_kind_that_must_wait_does_not_hold_up_the_other() {
    let (mut stack, mut runner) = started();
    let stats = run(&mut stack, &mut runner, vec![mixed(50, 1, 1, [Some(40), None, None])]);
    let [reads, writes] = [IoKind::Read, IoKind::Write].map(|kind| stats.jobs[0].of(kind).ios);
    assert!((39..=41).contains(&reads) && writes > 2000, "{reads} reads, {writes} writes");
}

#[test]
fn a_rate_is_caught_up_with_and_ends_with_the_run_time() {
    let (mut stack, mut runner) = started();
    // Requests take longer than the time between two of them: fio waits for them all, then sends those that are due.
    let mut job = reader(u64::MAX, 16);
    job.limits.runtime = Some(Ns::from_secs(1));
    job.rate_bytes[0] = Some(12_000 * 4096);
    let stats = run(&mut stack, &mut runner, vec![job]);
    let reads = stats.jobs[0].of(IoKind::Read).ios;
    assert!((11_900..=12_001).contains(&reads), "{reads}");
    // Less than one request in the time.
    let mut job = reader(u64::MAX, 1);
    job.limits.runtime = Some(Ns::from_secs(1));
    job.rate_bytes[0] = Some(1);
    let stats = run(&mut stack, &mut runner, vec![job]);
    assert_eq!((stats.jobs[0].of(IoKind::Read).ios, stats.end - stats.start), (1, Ns::from_secs(1)));
    let mut job = reader(2, 1);
    job.rate_bytes[0] = Some(1 << 40);
    run(&mut stack, &mut runner, vec![job]);
    let mut phase = Phase { name: String::new(), jobs: vec![reader(2000, 1)] };
    phase.jobs[0].rate_bytes[0] = Some(1);
    let result = runner.phase(&mut stack, &mut phase, &mut ());
    assert!(matches!(result, Err(RunError::TooLong { .. })), "{result:?}");
}

#[test]
fn a_ramp_that_outlasts_the_work_is_an_error() {
    let (mut stack, mut runner) = started();
    let mut ramped = reader(100, 1);
    ramped.limits = readpath_workload::Limits { bytes: Some(100 * 4096), ..Default::default() };
    ramped.name = "short".into();
    ramped.ramp = Ns::from_secs(1);
    let mut phase = Phase { name: String::new(), jobs: vec![reader(100, 1), ramped.clone()] };
    let error = runner.phase(&mut stack, &mut phase, &mut ()).expect_err("nothing to show");
    assert!(error.to_string().starts_with("job 'short': ramp_time (1.000 s) ends after the job's work"), "{error}");
    // Requests are counted from the end of the ramp, as fio does; bytes from the start.
    ramped.limits = readpath_workload::Limits { ios: Some(100), ..Default::default() };
    let stats = run(&mut stack, &mut runner, vec![ramped]);
    assert_eq!(stats.jobs[0].of(IoKind::Read).ios, 100);
    assert!(stats.ios > 1000);
}

#[test]
fn more_jobs_than_a_deadline_heap_has_slots_wait_and_all_are_served() {
    let (mut stack, mut runner) = started();
    let jobs = (0..5000)
        .map(|_| {
            let mut job = reader(3, 1);
            job.rate_bytes[0] = Some(50 * 4096);
            job.start_delay = Ns::from_ms(1);
            job
        })
        .collect();
    assert_eq!(run(&mut stack, &mut runner, jobs).ios, 15_000);
}

#[test]
fn a_run_of_months_is_an_error() {
    let (mut stack, mut runner) = started();
    let mut job = reader(10, 1);
    job.start_delay = Ns::from_secs(60 * 86_400);
    let mut phase = Phase { name: String::new(), jobs: vec![job] };
    let result = runner.phase(&mut stack, &mut phase, &mut ());
    assert!(matches!(result, Err(RunError::TooLong { .. })), "{result:?}");
}

#[test]
fn resets_one_upon_another_leave_no_operation_behind() {
    let mut config = device(BLOCKS);
    config.queue_depth = 64;
    // The whole map fits into SRAM and firmware costs nothing: every block becomes a flash operation on arrival.
    config.map_cache_bytes = 1 << 20;
    config.firmware.flash_op = Ns::ZERO;
    config.firmware.control = Ns::ZERO;
    let mut bare = Bare::filled(&config, BLOCKS, Layout::Random, 1);
    bare.command(read_10(0, BLOCKS), BLOCKS * 4096);
    for _ in 0..12 {
        for tag in 0..64 {
            let cdb = read_10(u32::from(tag) * 8, 64);
            let body = command(cdb, 64 * 4096);
            bare.device.submit(bare.now, &Request { lun: 0, tag, body }, &[]);
        }
        // Long enough for the requests to arrive, far too short for flash to serve them.
        bare.now += Ns::from_us(400);
        bare.device.advance(bare.now);
        bare.device.hardware_reset(bare.now);
    }
    while bare.device.next_deadline() != Ns::NEVER {
        bare.device.advance(bare.device.next_deadline());
    }
    assert_eq!(bare.device.ops_in_use(), 0);
    bare.command(Cdb::TestUnitReady, 0);
    let (reply, _) = bare.command(read_10(1, 64), 64 * 4096);
    assert!(matches!(reply.body, ReplyBody::Response(r) if r.status == Status::Good), "{reply:?}");
}

#[test]
fn a_bad_entry_costs_its_check_when_the_map_page_is_missing_too() {
    let config = device(BLOCKS);
    let time = |cdb: Cdb| {
        let mut bare = Bare::filled(&config, BLOCKS, Layout::Sequential, 1);
        bare.command(cdb, 4096);
        assert_eq!(bare.device.stats().map_loads, 1);
        bare.now.0
    };
    let plain = time(read_10(5, 1));
    let forged = time(Cdb::HpbRead { lba: 5, blocks: 1, entry: HpbEntry([9; 8]), flags: 0, read_id: 0 });
    assert_eq!(forged, plain + config.firmware.hpb_read_extra.0);
}

/// Readers of one flow with these weights, for `ms` of virtual time.
fn flowing(weights: &[u32], iodepth: u32, ms: u64, sleep: Ns) -> Vec<Job> {
    let readers = weights.iter().map(|&weight| {
        let mut job = reader(u64::MAX, iodepth);
        job.limits.runtime = Some(Ns::from_ms(ms));
        job.flow = Some(Flow { id: 7, weight, sleep });
        job
    });
    readers.collect()
}

fn reads(stats: &PhaseStats) -> Vec<u64> {
    stats.jobs.iter().map(|job| job.of(IoKind::Read).ios).collect()
}

#[test]
fn jobs_of_a_flow_make_requests_by_their_weights() {
    for (iodepth, sleep) in [(1, Ns::ZERO), (16, Ns::ZERO), (16, Ns::from_us(500))] {
        let (mut stack, mut runner) = started();
        let stats = run(&mut stack, &mut runner, flowing(&[3, 2, 1], iodepth, 300, sleep));
        let made = reads(&stats);
        let parts: Vec<f64> = made.iter().map(|&ios| 6.0 * ios as f64 / made.iter().sum::<u64>() as f64).collect();
        let near = parts.iter().zip([3.0, 2.0, 1.0]).all(|(part, weight)| (part - weight).abs() < 0.02);
        assert!(near && made[2] > 300, "{iodepth} {sleep:?}: {made:?}");
    }
    // A job of another flow, and one of none, are not held.
    let (mut stack, mut runner) = started();
    let mut jobs = flowing(&[1, 9, 1, 1], 1, 100, Ns::ZERO);
    jobs[2].flow = Some(Flow { id: 8, weight: 1, sleep: Ns::ZERO });
    jobs[3].flow = None;
    let made = reads(&run(&mut stack, &mut runner, jobs));
    assert!(made[0] * 9 <= made[1] + 9 && made[2] > 5 * made[0] && made[3] > 5 * made[0], "{made:?}");
}

#[test]
fn a_job_of_a_flow_that_is_over_holds_no_other() {
    // The light one ends after 10 requests; the heavy one would be held after 20 for ever.
    let (mut stack, mut runner) = started();
    let mut jobs = flowing(&[1, 2], 4, 1000, Ns::ZERO);
    (jobs[0].limits.ios, jobs[1].limits.ios) = (Some(10), Some(500));
    assert_eq!(reads(&run(&mut stack, &mut runner, jobs)), [10, 500]);
    // One that has not begun does, as in fio; what ends by `exitall` of a third, which has no flow, does not.
    let mut jobs = flowing(&[1, 1], 4, 1000, Ns::ZERO);
    jobs[0].start_delay = Ns::from_ms(50);
    (jobs[0].limits.ios, jobs[1].limits.ios) = (Some(10), Some(500));
    let started_at = runner_time(&mut stack, &mut runner, jobs);
    assert!(started_at > Ns::from_ms(50), "{started_at:?}");
    let mut jobs = flowing(&[1, 1], 1, 1000, Ns::ZERO);
    jobs[0].start_delay = Ns::from_ms(900);
    jobs[0].fio.groupid = 1;
    jobs[1].limits.ios = Some(50);
    let mut third = reader(20, 1);
    (third.ends, third.fio.groupid) = (Ends::Group, 1);
    jobs.push(third);
    assert_eq!(reads(&run(&mut stack, &mut runner, jobs)), [0, 50, 20]);
}

/// How long the jobs take.
fn runner_time(stack: &mut Stack<Lean, NoData, (), Typed>, runner: &mut Runner, jobs: Vec<Job>) -> Ns {
    let stats = run(stack, runner, jobs);
    stats.end - stats.start
}

#[test]
fn a_job_ahead_of_its_flow_sleeps_with_nothing_in_flight() {
    for (sleep, ends) in [(0, 10), (3, 12), (40, 40)] {
        let (mut stack, mut runner) = started();
        let mut jobs = flowing(&[1, 1], 4, 100, Ns::from_ms(sleep));
        jobs[0].limits.ios = Some(7);
        // The other makes four, then waits 10 ms or for the first, which may be two ahead.
        jobs[1].flow = Some(Flow { id: 7, weight: 1, sleep: Ns::ZERO });
        jobs[1].think = Think { time: Ns::from_ms(10), every: 4 };
        let stats = run(&mut stack, &mut runner, jobs);
        let end = stats.jobs[0].end - stats.start;
        assert!((Ns::from_ms(ends)..Ns::from_ms(ends + 1)).contains(&end), "{sleep} {end:?}");
    }
}
