// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that wait in the driver, and how many are in flight.

use crate::common::{Device, Host, cdb};
use readpath_host::{BlockOp, BlockRequest, HpbOptions};
use readpath_proto::typed::{Cdb, Command, HpbNotification, ReplyBody, RequestBody, Response, SubRegion};

/// The device's queue depth limits the commands in flight, not only the controller's slots. Linux 6.1 sends as many
/// as it has slots.
#[test]
fn no_more_commands_are_under_way_than_the_device_takes() {
    for (depth, expected) in [(0, 31), (1, 1), (7, 7), (32, 31), (200, 31)] {
        for strict_linux in [false, true] {
            let mut device = Device::new();
            device.descriptor.queue_depth = depth;
            let mut host = Host::probe(&mut device, HpbOptions { strict_linux, ..HpbOptions::default() });
            let sent: Vec<_> = (0..40).filter_map(|i| host.submit_blocks(0, BlockOp::Read, i, 1)).collect();
            assert_eq!(sent.len(), if strict_linux { 31 } else { expected }, "bQueueDepth {depth}");
            host.good(&sent[0], None);
            assert!(host.done().is_some() && host.sent().is_some() && host.sent().is_none());
        }
    }
}

/// Linux `ufshcd_set_queue_depth`: a unit with a queue of its own (bLUQueueDepth) gets no more commands than its
/// depth, loads of maps included, which go first. Other units do not wait for it.
#[test]
fn no_more_commands_are_under_way_than_the_unit_takes() {
    for strict_linux in [false, true] {
        let mut device = Device::new();
        device.units.push(device.units[0]);
        device.descriptor.number_lu = 2;
        device.units[0].queue_depth = 3;
        let mut host = Host::probe(&mut device, HpbOptions { strict_linux, ..HpbOptions::default() });
        let mut sent: Vec<_> = (0..5).filter_map(|i| host.submit_blocks(0, BlockOp::Read, i, 1)).collect();
        assert_eq!(sent.len(), 3);
        assert!((0..20).all(|i| host.submit_blocks(1, BlockOp::Read, i, 1).is_some()), "the other unit's own");
        // A read takes the place of the one that ends, and the load that it causes precedes the read that still
        // waits.
        host.good(&sent.remove(0), Some(HpbNotification { operation: 1, active_count: 1, ..Default::default() }));
        let next = host.sent().expect("a read");
        assert!(matches!(cdb(&next), Cdb::Read { lba: 3, .. }) && host.sent().is_none());
        host.good(&next, None);
        sent.push(host.sent().expect("a load"));
        assert!(matches!(cdb(&sent[2]), Cdb::HpbReadBuffer { .. }));
        let mut ended = 2;
        while let Some(request) = sent.pop() {
            host.reply(&request, ReplyBody::Response(Response::GOOD), &[7; 512]);
            ended += 1;
            sent.extend(std::iter::from_fn(|| host.sent()));
            assert!(sent.len() <= 3);
        }
        assert_eq!((ended, host.driver.counters(0).expect("HPB").map_req_cnt), (6, 1), "five reads and a load");
        // A reset loses no request.
        let sent: Vec<_> = (0..5).filter_map(|i| host.submit_blocks(0, BlockOp::Read, i, 1)).collect();
        host.driver.reset(host.now);
        let again: Vec<_> = std::iter::from_fn(|| host.sent()).filter(|request| request.lun == 0).collect();
        assert_eq!((sent.len(), again.len()), (3, 3));
    }
}

/// More than a 16-bit count could hold.
#[test]
fn many_requests_in_parts_wait_at_once() {
    const REQUESTS: u32 = 70_000;
    let mut host = Host::probe(&mut Device::new(), HpbOptions::default());
    for cookie in 0..REQUESTS {
        host.driver.submit(&BlockRequest { cookie, lun: 0, op: BlockOp::Read, block: 0, blocks: 130 });
    }
    let (mut commands, mut ended) = (0, vec![0; REQUESTS as usize]);
    while let Some(request) = host.sent() {
        commands += 1;
        host.good(&request, None);
        while let Some(done) = host.done() {
            assert_eq!(done.error, None);
            ended[done.cookie as usize] += 1;
        }
    }
    assert_eq!(commands, 2 * REQUESTS);
    assert!(ended.iter().all(|&n| n == 1) && host.driver.is_idle());
}

/// Linux `ufshpb_execute_map_req`: the command requests the existing entries, the request has memory for a whole map.
#[test]
fn the_map_of_a_short_sub_region_has_room_for_a_whole_one() {
    let mut device = Device::new();
    (device.geometry.hpb_region_size, device.geometry.hpb_sub_region_size) = (14, 13);
    device.units[0].logical_block_count = 1024 + 5;
    for strict_linux in [true, false] {
        let mut host = Host::probe(&mut device, HpbOptions { strict_linux, ..HpbOptions::default() });
        for (index, bytes) in [(0, 8192), (1, 40)] {
            let read = host.submit(0, BlockOp::Read, 0);
            let active = [SubRegion { region: 0, index }, SubRegion::default()];
            host.good(&read, Some(HpbNotification { operation: 1, active_count: 1, active, ..Default::default() }));
            let load = host.sent().expect("a load");
            let RequestBody::Command(Command { expected_bytes, cdb }) = load.body else { panic!("{load:?}") };
            assert!(matches!(cdb, Cdb::HpbReadBuffer { alloc, .. } if alloc == bytes), "{cdb:?}");
            assert_eq!(expected_bytes, 8192, "sub-region {index}");
        }
    }
}

/// A write or discard in flight when a load is sent may reach the device before or after the entries are made: the
/// loaded entries of its blocks are not used. Linux clears the bitmap when the load ends, and loses it.
#[test]
fn entries_of_blocks_that_are_being_written_at_a_load_are_not_used() {
    for strict_linux in [false, true] {
        for (op, changed) in [(BlockOp::Write, 5..8), (BlockOp::Discard, 5..8), (BlockOp::Read, 0..0)] {
            let options = HpbOptions { strict_linux, ..HpbOptions::default() };
            let mut host = Host::probe(&mut Device::new(), options);
            let in_flight = host.submit_blocks(0, op, 5, 3).expect("it is sent");
            host.load();
            host.good(&in_flight, None);
            assert!(host.done().is_some_and(|done| done.error.is_none()));
            for block in 0..12 {
                let read = host.submit(0, BlockOp::Read, block);
                let is_plain = matches!(cdb(&read), Cdb::Read { .. });
                assert_eq!(is_plain, !strict_linux && changed.contains(&block), "{op:?}, block {block}");
                host.good(&read, None);
                host.done();
            }
        }
    }
}
