// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves that jobs are paced as fio paces them, that any number of jobs can wait for a time, that a run which would go
//! on for months ends with an error, and that a bad HPB entry costs its check also when the map page is missing.

mod common;

use readpath_flash::Lean;
use readpath_kit::Ns;
use readpath_proto::typed::{Cdb, Command, Form, HpbEntry, ReplyBody, Request, RequestBody, Status};
use readpath_sim::{RunError, Runner};
use readpath_stack::{NoData, Stack, Typed};
use readpath_workload::{Job, Phase, Stream, Think};

const BLOCKS: u32 = 1000;

fn started() -> (Stack<Lean, NoData, (), Typed>, Runner) {
    let (mut stack, now) = common::start(&common::device(BLOCKS), common::host(None), |_| {});
    stack.precondition(0, 0, BLOCKS, readpath_device::Layout::Sequential, 1).expect("room");
    (stack, Runner::new(0, now))
}

fn reader(ios: u64, iodepth: u32) -> Job {
    common::job(Stream::uniform_reads(0, BLOCKS, 1, 7).expect("a range"), iodepth, ios)
}

#[test]
fn a_pause_begins_when_nothing_is_in_flight() {
    for iodepth in [1, 4] {
        let (mut stack, mut runner) = started();
        let mut job = reader(100, iodepth);
        job.think = Think { time: Ns::from_ms(1), every: 1 };
        let stats = common::run(&mut stack, &mut runner, vec![job]);
        let read = stats.jobs[0].of(readpath_workload::IoKind::Read);
        // One request at a time whatever the depth, and 99 pauses between 100 requests.
        let expected = read.latency.sum() as u64 + 99 * 1_000_000;
        assert_eq!((stats.end - stats.start).0, expected + 1_000_000, "the last pause is waited for, too");
    }
}

#[test]
fn more_jobs_than_a_deadline_heap_has_slots_wait_and_all_are_served() {
    let (mut stack, mut runner) = started();
    let jobs = (0..5000)
        .map(|_| {
            let mut job = reader(3, 1);
            job.rate_iops[0] = Some(50);
            job.start_delay = Ns::from_ms(1);
            job
        })
        .collect();
    assert_eq!(common::run(&mut stack, &mut runner, jobs).ios, 15_000);
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
    let mut config = common::device(BLOCKS);
    config.queue_depth = 64;
    // The whole map fits into SRAM and firmware costs nothing: every block becomes a flash operation on arrival.
    config.map_cache_bytes = 1 << 20;
    config.firmware.flash_op = Ns::ZERO;
    config.firmware.control = Ns::ZERO;
    let mut bare = common::Bare::new(&config);
    bare.device.precondition(0, 0, BLOCKS, readpath_device::Layout::Random, 1, |_, _| ()).expect("room");
    bare.command(Cdb::Read { form: Form::Ten, lba: 0, blocks: BLOCKS, flags: 0 }, BLOCKS * 4096);
    for _ in 0..12 {
        for tag in 0..64 {
            let cdb = Cdb::Read { form: Form::Ten, lba: u64::from(tag) * 8, blocks: 64, flags: 0 };
            let body = RequestBody::Command(Command { expected_bytes: 64 * 4096, cdb });
            bare.device.submit(bare.now, &Request { lun: 0, tag, body }, &[]);
        }
        // Long enough for the requests to arrive, far too short for flash to serve them.
        bare.now += Ns::from_us(400);
        bare.device.advance(bare.now);
        bare.device.hardware_reset();
    }
    while bare.device.next_deadline() != Ns::NEVER {
        bare.device.advance(bare.device.next_deadline());
    }
    assert_eq!(bare.device.ops_in_use(), 0);
    bare.command(Cdb::TestUnitReady, 0);
    let (reply, _) = bare.command(Cdb::Read { form: Form::Ten, lba: 1, blocks: 64, flags: 0 }, 64 * 4096);
    assert!(matches!(reply.body, ReplyBody::Response(r) if r.status == Status::Good), "{reply:?}");
}

#[test]
fn a_bad_entry_costs_its_check_when_the_map_page_is_missing_too() {
    let config = common::device(BLOCKS);
    let time = |cdb: Cdb| {
        let mut bare = common::Bare::new(&config);
        bare.device.precondition(0, 0, BLOCKS, readpath_device::Layout::Sequential, 1, |_, _| ()).expect("room");
        bare.command(cdb, 4096);
        assert_eq!(bare.device.stats().map_loads, 1);
        bare.now.0
    };
    let plain = time(Cdb::Read { form: Form::Ten, lba: 5, blocks: 1, flags: 0 });
    let forged = time(Cdb::HpbRead { lba: 5, blocks: 1, entry: HpbEntry([9; 8]), flags: 0, read_id: 0 });
    assert_eq!(forged, plain + config.firmware.hpb_read_extra.0);
}
