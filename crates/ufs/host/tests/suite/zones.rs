// SPDX-License-Identifier: MIT OR Apache-2.0
//! Write order in zones: what may be in flight, and what waits for what.

use crate::common::{Device, Host, cdb};
use readpath_host::{BlockOp, HpbOptions};
use readpath_proto::typed::{Cdb, Form, Request, Sense, Status, ZoneAction};

/// Zones of 32 blocks on unit 0.
fn host() -> Host {
    Host::prepared(&mut Device::new(), HpbOptions::default(), |driver| driver.know_zones(0, 256, 32))
}

fn write_at(request: Option<Request>) -> (u64, u32) {
    match request.as_ref().map(cdb) {
        Some(Cdb::Write { form: Form::Sixteen, lba, blocks, flags: 0 }) => (lba, blocks),
        other => panic!("a write was expected, not {other:?}"),
    }
}

#[test]
fn one_write_of_a_zone_is_in_flight_and_the_others_keep_their_order() {
    let mut host = host();
    let first = host.submit_blocks(0, BlockOp::Write, 0, 4);
    assert_eq!(write_at(first), (0, 4));
    for block in [4, 8, 12] {
        assert_eq!(host.submit_blocks(0, BlockOp::Write, block, 4), None, "block {block}");
    }
    // Another zone, reads and flushes do not wait.
    assert_eq!(write_at(host.submit_blocks(0, BlockOp::Write, 32, 4)), (32, 4));
    assert!(matches!(cdb(&host.submit_blocks(0, BlockOp::Read, 0, 4).expect("sent")), Cdb::Read { .. }));
    let flush = host.submit_blocks(0, BlockOp::Flush, 0, 0).expect("sent");
    assert!(matches!(cdb(&flush), Cdb::SynchronizeCache { .. }));
    // A reset and a write behind it wait for all of them.
    assert_eq!(host.submit_blocks(0, BlockOp::ResetZone, 0, 32), None);
    assert_eq!(host.submit_blocks(0, BlockOp::Write, 0, 4), None);
    let mut last = first.expect("sent");
    for block in [4, 8, 12] {
        // Sent again while the device is busy, it is still the only one.
        host.status(&last, Status::Busy);
        let again = host.sent().expect("sent again");
        assert_eq!((cdb(&again), host.sent()), (cdb(&last), None));
        host.good(&again, None);
        let next = host.sent();
        assert_eq!((write_at(next), host.sent()), ((block, 4), None));
        last = next.expect("sent");
    }
    host.good(&last, None);
    let reset = host.sent().expect("sent");
    let expected = Cdb::ManageZones { action: ZoneAction::Reset, lba: 0, count: 0, all: false };
    assert_eq!((cdb(&reset), host.sent()), (expected, None));
    assert_eq!(host.driver.zone_resets(), 0);
    host.good(&reset, None);
    assert_eq!((write_at(host.sent()), host.sent(), host.driver.zone_resets()), ((0, 4), None, 1));
    assert_eq!(std::iter::from_fn(|| host.done()).filter(|done| done.error.is_none()).count(), 5);
}

/// Its parts are commands of one zone like any others.
#[test]
fn a_long_write_is_sent_part_by_part() {
    let mut host = Host::prepared(&mut Device::new(), HpbOptions::default(), |driver| driver.know_zones(0, 1024, 512));
    let mut sent = host.submit_blocks(0, BlockOp::Write, 0, 300).expect("sent");
    assert_eq!(host.submit_blocks(0, BlockOp::Write, 300, 4), None);
    for (lba, blocks) in [(0, 128), (128, 128), (256, 44), (300, 4)] {
        assert_eq!((write_at(Some(sent)), host.sent()), ((lba, blocks), None));
        assert!(host.done().is_none() || lba == 300);
        host.good(&sent, None);
        sent = host.sent().unwrap_or(sent);
    }
    assert_eq!(host.done().map(|done| (done.cookie, done.error)), Some((2, None)));
}

/// A refusal lets the zone go, and nothing beyond the unit is sent.
#[test]
fn a_refused_write_does_not_hold_its_zone() {
    let mut host = host();
    let first = host.submit_blocks(0, BlockOp::Write, 0, 4).expect("sent");
    assert_eq!(host.submit_blocks(0, BlockOp::Write, 4, 4), None);
    host.check(&first, Sense::UNALIGNED_WRITE);
    assert_eq!(write_at(host.sent()), (4, 4));
    assert_eq!(host.done().expect("ended").error, Some(Sense::UNALIGNED_WRITE));
    let units = host.driver.unit_blocks(0).expect("a unit");
    assert_eq!(host.submit_blocks(0, BlockOp::Write, units, 1), None);
    assert_eq!(host.done().expect("ended").error, Some(Sense::LBA_OUT_OF_RANGE));
}

/// All tags are taken: a write waits for one, and its zone with it. A reset of the device changes no order.
#[test]
fn order_survives_full_queues_and_resets() {
    let mut host = host();
    let mut reads: Vec<_> = (0..40).filter_map(|_| host.submit_blocks(0, BlockOp::Read, 64, 1)).collect();
    for block in [0, 4, 8] {
        assert_eq!(host.submit_blocks(0, BlockOp::Write, block, 4), None);
    }
    host.driver.reset(host.now);
    reads.clear();
    let (mut writes, mut sent) = (Vec::new(), Vec::new());
    loop {
        sent.extend(std::iter::from_fn(|| host.sent()));
        let Some(request) = sent.pop() else { break };
        let flying = sent.iter().chain([&request]).filter(|request| matches!(cdb(request), Cdb::Write { .. })).count();
        assert!(flying <= 1, "{flying} writes in flight");
        if let Cdb::Write { lba, .. } = cdb(&request) {
            writes.push(lba);
        }
        host.good(&request, None);
    }
    assert_eq!((writes, host.driver.is_idle()), (vec![0, 4, 8], true));
}
