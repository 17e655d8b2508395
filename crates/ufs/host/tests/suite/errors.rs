// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handling of an HPB READ that the device does not serve: Linux 6.1 has no fallback to READ (SCSI mid-layer), this
//! host has one. Each row is a device answer and what follows on either host.

use crate::common::{Device, Host, cdb};
use readpath_host::{BlockOp, HpbOptions, SubRegionState};
use readpath_proto::desc::UnitDescriptor;
use readpath_proto::typed::{Cdb, HpbNotification, ReplyBody, Request, Response, Sense, Status, SubRegion};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Follows {
    /// The request succeeds.
    Good,
    /// The same command again.
    Again,
    /// A READ instead.
    Plain,
    /// The request ends with the error.
    Error,
}

#[derive(Clone, Copy)]
enum Answer {
    Good,
    Check(u8, u8, u8),
    Status(Status),
}

fn host(strict_linux: bool) -> Host {
    let mut host = Host::probe(&mut Device::new(), HpbOptions { strict_linux, ..HpbOptions::default() });
    host.load();
    host
}

fn answer(host: &mut Host, request: &Request, with: Answer) {
    match with {
        Answer::Good => host.good(request, None),
        Answer::Check(key, asc, ascq) => host.check(request, Sense { key, asc, ascq }),
        Answer::Status(status) => host.status(request, status),
    }
}

#[test]
fn answers_to_an_hpb_read() {
    use Follows::*;
    for (with, linux, own) in [
        (Answer::Good, Good, Good),
        (Answer::Check(6, 0x29, 0), Again, Again),
        (Answer::Check(2, 4, 1), Again, Again),
        (Answer::Check(2, 4, 0), Error, Error),
        (Answer::Check(0x0B, 0, 0), Again, Again),
        (Answer::Status(Status::TaskAborted), Again, Again),
        (Answer::Status(Status::Busy), Again, Again),
        (Answer::Status(Status::TaskSetFull), Again, Again),
        (Answer::Check(5, 0x20, 0), Error, Plain),
        (Answer::Check(5, 0x21, 0), Error, Plain),
        (Answer::Check(5, 0x24, 0), Error, Plain),
        (Answer::Check(3, 0x11, 0), Error, Error),
        (Answer::Check(3, 0x13, 0), Error, Error),
        (Answer::Check(3, 0x14, 0), Error, Error),
    ] {
        for (strict, expected) in [(true, linux), (false, own)] {
            let mut host = host(strict);
            let first = host.submit(0, BlockOp::Read, 5);
            assert!(matches!(cdb(&first), Cdb::HpbRead { .. }));
            answer(&mut host, &first, with);
            let follows = match (host.done(), host.sent()) {
                (Some(done), None) if done.error.is_none() => Good,
                (Some(_), None) => Error,
                (None, Some(next)) if cdb(&next) == cdb(&first) => Again,
                (None, Some(next)) if matches!(cdb(&next), Cdb::Read { lba: 5, blocks: 1, .. }) => Plain,
                other => panic!("{other:?}"),
            };
            assert_eq!(follows, expected, "strict_linux = {strict}");
        }
    }
}

/// sd gives up after five retries.
#[test]
fn what_passes_by_itself_is_waited_for_five_times() {
    for strict in [true, false] {
        for with in [Answer::Check(0x0B, 0, 0), Answer::Check(2, 4, 1), Answer::Status(Status::TaskAborted)] {
            let mut host = host(strict);
            let mut request = host.submit(0, BlockOp::Read, 5);
            for _ in 0..5 {
                answer(&mut host, &request, with);
                assert!(host.done().is_none());
                request = host.sent().expect("it is tried again");
            }
            answer(&mut host, &request, with);
            assert!(host.done().is_some_and(|d| d.error.is_some()) && host.sent().is_none());
        }
    }
}

/// Linux does not count how often the device was busy or reset; this host gives up as after any other failure.
#[test]
fn a_busy_device_is_waited_for_on_linux_only() {
    let reset = Answer::Check(6, 0x29, 0);
    for with in [[Status::Busy, Status::TaskSetFull].map(Answer::Status), [reset; 2]] {
        for strict in [true, false] {
            let mut host = host(strict);
            let mut request = host.submit(0, BlockOp::Read, 5);
            let mut tries = 0;
            for with in with.into_iter().cycle().take(1000) {
                answer(&mut host, &request, with);
                let Some(next) = host.sent() else { break };
                (request, tries) = (next, tries + 1);
            }
            assert_eq!(tries, if strict { 1000 } else { 5 });
            if strict {
                host.good(&request, None);
            }
            assert_eq!(host.done().expect("the end").error.is_some(), !strict);
        }
    }
}

/// Effect of a block request on the entries of its blocks: writes and discards make them dirty when they are sent.
#[test]
fn requests_that_make_entries_dirty() {
    for strict in [true, false] {
        for (op, dirty) in [
            (BlockOp::Read, false),
            (BlockOp::Flush, false),
            (BlockOp::Write, true),
            (BlockOp::WriteFua, true),
            (BlockOp::Discard, true),
        ] {
            let mut host = host(strict);
            let blocks = u32::from(op != BlockOp::Flush);
            let request = host.submit_blocks(0, op, 5 * blocks, blocks).expect("it is sent");
            let during = host.submit(0, BlockOp::Read, 5);
            host.good(&request, None);
            let after = host.submit(0, BlockOp::Read, 5);
            for read in [during, after] {
                assert_eq!(matches!(cdb(&read), Cdb::Read { .. }), dirty, "{op:?}");
            }
            let beside = host.submit(0, BlockOp::Read, 6);
            assert!(matches!(cdb(&beside), Cdb::HpbRead { .. }), "{op:?}");
        }
    }
}

/// Between two attempts the block is written. Linux looks for an entry again, finds none, and sends the command
/// unchanged.
#[test]
fn an_entry_that_became_dirty_is_sent_again_on_linux_only() {
    for strict in [true, false] {
        let mut host = host(strict);
        let first = host.submit(0, BlockOp::Read, 5);
        let write = host.submit(0, BlockOp::Write, 5);
        host.good(&write, None);
        host.status(&first, Status::Busy);
        let again = cdb(&host.sent().expect("it is tried again"));
        match strict {
            true => assert_eq!(again, cdb(&first)),
            false => assert!(matches!(again, Cdb::Read { lba: 5, .. })),
        }
        assert_eq!(host.driver.counters(0).expect("HPB").miss_cnt, 2, "the read before the load, and this one");
    }
}

/// A reset of the controller with a read, a write and a load in flight. Linux sends all three again: the read as the
/// HPB READ that it was, and the load, whose sub-region waits for it.
#[test]
fn a_reset_sends_what_is_in_flight_again() {
    for strict in [true, false] {
        let mut host = host(strict);
        let first = host.submit(0, BlockOp::Read, 5);
        let write = host.submit(0, BlockOp::Write, 5);
        let other = host.submit(0, BlockOp::Read, 64);
        let n = HpbNotification { operation: 1, active_count: 1, ..Default::default() };
        let n = HpbNotification { active: [SubRegion { region: 0, index: 1 }, SubRegion::default()], ..n };
        host.good(&other, Some(n));
        let load = host.sent().expect("a load");
        assert!(host.done().is_some());
        host.driver.reset(host.now);
        let sent: Vec<Request> = std::iter::from_fn(|| host.sent()).collect();
        let of_load = |r: &Request| matches!(cdb(r), Cdb::HpbReadBuffer { .. });
        let state = host.driver.hpb(0).expect("HPB").sub_region_state(SubRegion { region: 0, index: 1 });
        if strict {
            assert_eq!([first, write, load].map(|r| sent.contains(&r)), [true; 3], "as they were: {sent:?}");
            assert_eq!((sent.len(), state), (3, SubRegionState::Issued));
            host.reply(&load, ReplyBody::Response(Response::GOOD), &[9; 512]);
            let read = host.submit(0, BlockOp::Read, 65);
            assert!(matches!(cdb(&read), Cdb::HpbRead { entry, .. } if entry.0 == [9; 8]));
        } else {
            assert!(matches!(
                sent[..].iter().map(cdb).collect::<Vec<_>>()[..],
                [Cdb::Read { lba: 5, .. }, Cdb::Write { lba: 5, .. }]
            ));
            assert_eq!((sent.iter().any(of_load), state), (false, SubRegionState::Invalid));
        }
        for request in sent.iter().filter(|r| !of_load(r)) {
            host.good(request, None);
            assert!(host.done().is_some_and(|d| d.error.is_none()));
        }
    }
}

/// HPB's own commands fail without an effect on block requests.
#[test]
fn a_load_that_is_refused_is_a_load_on_linux() {
    // The SCSI mid-layer passes both to the sender of the command: it retries only block requests itself.
    for sense in [Sense::INVALID_FIELD, Sense::RESET_OCCURRED] {
        for strict in [true, false] {
            let options = HpbOptions { strict_linux: strict, ..HpbOptions::default() };
            let mut host = Host::probe(&mut Device::new(), options);
            let read = host.submit(0, BlockOp::Read, 0);
            let n = HpbNotification { operation: 1, active_count: 1, ..Default::default() };
            host.good(&read, Some(n));
            let load = host.sent().expect("a load");
            host.check(&load, sense);
            let next = host.sent();
            if strict {
                assert!(next.is_none());
                let read = host.submit(0, BlockOp::Read, 5);
                assert!(matches!(cdb(&read), Cdb::HpbRead { entry, .. } if entry.0 == [0; 8]), "zeros are entries too");
            } else {
                let again = next.expect("another attempt");
                assert_eq!(cdb(&again), cdb(&load));
                let read = host.submit(0, BlockOp::Read, 5);
                assert!(matches!(cdb(&read), Cdb::Read { .. }));
                host.reply(&again, ReplyBody::Response(Response::GOOD), &[9; 512]);
                let read = host.submit(0, BlockOp::Read, 5);
                assert!(matches!(cdb(&read), Cdb::HpbRead { entry, .. } if entry.0 == [9; 8]));
            }
            let c = host.driver.counters(0).expect("HPB");
            let expected = if strict { (1, 0) } else { (2, 1) };
            assert_eq!((c.map_req_cnt, c.map_error_cnt), expected, "{sense:?}");
        }
    }
}

/// Linux sends loads and drops again while the device is busy, which is no error; this host counts a load as failed.
#[test]
fn a_busy_device_is_asked_again_for_a_load() {
    for strict in [true, false] {
        let mut host = Host::probe(&mut Device::new(), HpbOptions { strict_linux: strict, ..HpbOptions::default() });
        let read = host.submit(0, BlockOp::Read, 0);
        host.good(&read, Some(HpbNotification { operation: 1, active_count: 1, ..Default::default() }));
        let load = host.sent().expect("a load");
        let mut tries = 0;
        for status in [Status::Busy, Status::TaskSetFull].into_iter().cycle().take(100) {
            host.status(&load, status);
            let Some(again) = host.sent() else { break };
            assert_eq!(cdb(&again), cdb(&load));
            tries += 1;
        }
        assert_eq!(tries, if strict { 100 } else { 3 });
        if strict {
            host.reply(&load, ReplyBody::Response(Response::GOOD), &[9; 512]);
        }
        let read = host.submit(0, BlockOp::Read, 5);
        let entry = if let Cdb::HpbRead { entry, .. } = cdb(&read) { Some(entry.0) } else { None };
        assert_eq!(entry, strict.then_some([9; 8]));
        let c = host.driver.counters(0).expect("HPB");
        assert_eq!((c.map_req_cnt, c.map_error_cnt), if strict { (1, 0) } else { (4, 4) });
    }
}

/// A notification is for the unit that it names, whichever unit's response brings it (Linux `ufshpb_rsp_upiu`).
#[test]
fn notifications_reach_the_unit_that_they_name() {
    for strict in [true, false] {
        for (by, named) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let mut device = Device::new();
            device.descriptor.number_lu = 2;
            device.geometry.hpb_number_lu = 2;
            device.units.push(UnitDescriptor { unit_index: 1, ..device.units[0] });
            let mut host = Host::probe(&mut device, HpbOptions { strict_linux: strict, ..HpbOptions::default() });
            let region = |region| SubRegion { region, index: 1 };
            let note = |n: HpbNotification| Some(HpbNotification { operation: 1, lun: named, ..n });
            let entry = |host: &mut Host, lun| {
                let read = host.submit(lun, BlockOp::Read, 64);
                let has = matches!(cdb(&read), Cdb::HpbRead { .. });
                host.good(&read, None);
                has
            };
            let read = host.submit(by, BlockOp::Read, 0);
            let active = [region(0), region(0)];
            host.good(&read, note(HpbNotification { active_count: 1, active, ..Default::default() }));
            let load = host.sent().expect("a load");
            assert!(load.lun == named && matches!(cdb(&load), Cdb::HpbReadBuffer { at, .. } if at == region(0)));
            assert!(host.sent().is_none(), "and no other");
            host.reply(&load, ReplyBody::Response(Response::GOOD), &[7; 512]);
            assert_eq!([0, 1].map(|lun| entry(&mut host, lun)), [0, 1].map(|lun| lun == named));
            let counted = |host: &Host, lun| host.driver.counters(lun).expect("HPB").rcmd_noti_cnt;
            assert_eq!([0, 1].map(|lun| counted(&host, lun)), [0, 1].map(|lun| u64::from(lun == named)));
            // Both hold the same sub-region; one has to drop it.
            let read = host.submit(1 - named, BlockOp::Read, 0);
            let other = HpbNotification { operation: 1, lun: 1 - named, active_count: 1, active, ..Default::default() };
            host.good(&read, Some(other));
            let load = host.sent().expect("a load");
            host.reply(&load, ReplyBody::Response(Response::GOOD), &[7; 512]);
            assert_eq!([0, 1].map(|lun| entry(&mut host, lun)), [true, true]);
            let read = host.submit(by, BlockOp::Read, 0);
            host.good(&read, note(HpbNotification { inactive_count: 1, ..Default::default() }));
            assert_eq!([0, 1].map(|lun| entry(&mut host, lun)), [0, 1].map(|lun| lun != named));
        }
    }
}

/// The loss of the device's HPB state concerns every unit. Linux ignores it unless the notification names a unit with
/// HPB.
#[test]
fn a_reset_that_names_a_unit_without_hpb_is_heard_by_this_host_only() {
    for strict in [true, false] {
        for lun in [0, 9] {
            let mut host = host(strict);
            let read = host.submit(0, BlockOp::Read, 5);
            assert!(matches!(cdb(&read), Cdb::HpbRead { .. }));
            let n = HpbNotification { operation: 2, lun, ..Default::default() };
            host.good(&read, Some(n));
            let after = host.submit(0, BlockOp::Read, 5);
            let heard = matches!(cdb(&after), Cdb::Read { .. });
            assert_eq!(heard, lun == 0 || !strict, "strict_linux = {strict}, unit {lun}");
        }
    }
}
