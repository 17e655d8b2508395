// SPDX-License-Identifier: MIT OR Apache-2.0
//! Byte examples, round trips, refusals and totality of the UPIU translation.

use proptest::prelude::*;

use super::*;
use crate::groups::{GroupEntry, GroupNotice, GroupPair};
use crate::query::{attribute, descriptor, flag, opcode};
use crate::testing::{any_notification, any_reply, any_request};

/// The concatenated `parts`, then zeros up to `total` bytes.
fn bytes(parts: &[&[u8]], total: usize) -> Vec<u8> {
    let mut all = parts.concat();
    assert!(all.len() <= total);
    all.resize(total, 0);
    all
}

fn request_bytes(request: &Request, data: &[u8]) -> Vec<u8> {
    let mut out = vec![0xAA; 3];
    encode_request(request, data, &mut out);
    out
}

fn reply_bytes(reply: &Reply, data: &[u8]) -> Vec<u8> {
    let mut out = vec![0xAA; 3];
    encode_reply(reply, data, &mut out);
    out
}

#[track_caller]
fn request_both_ways(request: Request, data: &[u8], wire: &[u8]) {
    assert_eq!(request_bytes(&request, data), wire);
    assert_eq!(parse_request(wire), Ok((request, data)));
}

#[track_caller]
fn reply_both_ways(reply: Reply, data: &[u8], wire: &[u8]) {
    assert_eq!(reply_bytes(&reply, data), wire);
    assert_eq!(parse_reply(wire), Ok((reply, data)));
}

fn query(opcode: u8, idn: u8, length: u16, value: u32) -> Request {
    let body = RequestBody::Query(QueryRequest { opcode, idn, index: 0, selector: 0, length, value });
    Request { lun: 0, tag: 0x1F, body }
}

fn answer(opcode: u8, idn: u8, length: u16, value: u32) -> Reply {
    let body = ReplyBody::Query(QueryResponse { result: 0, opcode, idn, index: 0, selector: 0, length, value });
    Reply { lun: 0, tag: 0x1F, body }
}

fn response(lun: u8, tag: u8, response: Response) -> Reply {
    Reply { lun, tag, body: ReplyBody::Response(response) }
}

#[test]
fn nop() {
    let nop = Request { lun: 0, tag: 0x1F, body: RequestBody::NopOut };
    request_both_ways(nop, &[], &bytes(&[&[0x00, 0, 0, 0x1F]], 32));
    let nop = Reply { lun: 0, tag: 0x1F, body: ReplyBody::NopIn };
    reply_both_ways(nop, &[], &bytes(&[&[0x20, 0, 0, 0x1F]], 32));
}

#[test]
fn queries() {
    request_both_ways(
        query(opcode::READ_DESCRIPTOR, descriptor::DEVICE, 255, 0),
        &[],
        &bytes(&[&[0x16, 0, 0, 0x1F, 0, 1, 0, 0, 0, 0, 0, 0], &[1, 0, 0, 0, 0, 0, 0, 0xFF]], 32),
    );
    let device: Vec<u8> = (0..89).collect();
    reply_both_ways(
        answer(opcode::READ_DESCRIPTOR, descriptor::DEVICE, 0x59, 0),
        &device,
        &bytes(
            &[&[0x36, 0, 0, 0x1F, 0, 1, 0, 0, 0, 0, 0, 0x59], &[1, 0, 0, 0, 0, 0, 0, 0x59], &[0; 12], &device],
            32 + 89,
        ),
    );
    request_both_ways(
        query(opcode::SET_FLAG, flag::DEVICE_INIT, 0, 0),
        &[],
        &bytes(&[&[0x16, 0, 0, 0x1F, 0, 0x81, 0, 0, 0, 0, 0, 0], &[6, 1, 0, 0]], 32),
    );
    reply_both_ways(
        answer(opcode::READ_FLAG, flag::DEVICE_INIT, 0, 1),
        &[],
        &bytes(&[&[0x36, 0, 0, 0x1F, 0, 1, 0, 0, 0, 0, 0, 0], &[5, 1, 0, 0, 0, 0, 0, 0], &[0, 0, 0, 1]], 32),
    );
    request_both_ways(
        query(opcode::WRITE_ATTRIBUTE, attribute::EXCEPTION_EVENT_CONTROL, 0, 4),
        &[],
        &bytes(&[&[0x16, 0, 0, 0x1F, 0, 0x81, 0, 0, 0, 0, 0, 0], &[4, 0x0D, 0, 0, 0, 0, 0, 0], &[0, 0, 0, 4]], 32),
    );
    request_both_ways(
        query(opcode::WRITE_DESCRIPTOR, descriptor::CONFIGURATION, 3, 0),
        &[7, 8, 9],
        &bytes(&[&[0x16, 0, 0, 0x1F, 0, 0x81, 0, 0, 0, 0, 0, 3], &[2, 1, 0, 0, 0, 0, 0, 3], &[0; 12], &[7, 8, 9]], 35),
    );
}

/// Our own extension: entries of all blocks in an extra header segment.
#[test]
fn hpb_read_with_an_entry_for_each_block() {
    let cdb = Cdb::HpbRead { lba: 0x1_2345, blocks: 4, entry: HpbEntry([0x11; 8]), flags: 0, read_id: 0 };
    let body = RequestBody::Command(Command { expected_bytes: 4 * 4096, cdb });
    let entries: Vec<u8> = (1..=32).collect();
    let wire = bytes(
        &[
            &[0x01, 0x40, 0, 0x03, 0, 0, 0, 0, 2, 0, 0, 0],
            &[0, 0, 0x40, 0],
            &[0xF8, 0, 0, 1, 0x23, 0x45, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 4, 0],
            &[2, 0xC0, 0, 0, 4, 0, 0, 0],
            &entries,
        ],
        32 + 64,
    );
    request_both_ways(Request { lun: 0, tag: 3, body }, &entries, &wire);
    assert_eq!((ehs_bytes(0), ehs_bytes(8), ehs_bytes(24), ehs_bytes(32), ehs_bytes(255 * 8)), (0, 32, 32, 64, 2048));
    for (at, byte, wrong) in [
        (
            8,
            1,
            UpiuError::Field {
                offset: 32,
                found: 2,
                expected: "the length in byte 8: there is one extra header segment",
            },
        ),
        (8, 3, UpiuError::Short { have: 96, need: 128 }),
        (33, 1, UpiuError::Field { offset: 33, found: 1, expected: "C0h (HPB entries)" }),
        (36, 8, UpiuError::Field { offset: 36, found: 8, expected: "as many entries as the segment has room for" }),
        (16, 0x28, UpiuError::Field { offset: 8, found: 2, expected: "00h (no extra header segment)" }),
    ] {
        let mut broken = wire.clone();
        broken[at] = byte;
        assert_eq!(parse_request(&broken), Err(wrong), "byte {at}");
    }
}

#[test]
fn read_and_its_answers() {
    let cdb = Cdb::Read { form: Form::Ten, lba: 2048, blocks: 1, flags: 0 };
    let body = RequestBody::Command(Command { expected_bytes: 4096, cdb });
    request_both_ways(
        Request { lun: 0, tag: 3, body },
        &[],
        &bytes(
            &[
                &[0x01, 0x40, 0, 0x03, 0, 0, 0, 0, 0, 0, 0, 0],
                &[0, 0, 0x10, 0],
                &[0x28, 0, 0, 0, 0x08, 0, 0, 0, 0x01, 0],
            ],
            32,
        ),
    );
    reply_both_ways(response(0, 3, Response::GOOD), &[], &bytes(&[&[0x21, 0, 0, 0x03]], 32));
    let check = Response { residual: Residual::None, ..Response::check(Sense::LBA_OUT_OF_RANGE, 4096) };
    let mut wire = bytes(
        &[
            &[0x21, 0, 0, 0x03, 0, 0, 0, 0x02, 0, 0, 0, 0x14],
            &[0; 20],
            &[0, 0x12, 0x70, 0, 0x05, 0, 0, 0, 0, 0x0A, 0, 0, 0, 0, 0x21, 0, 0, 0, 0, 0],
        ],
        52,
    );
    reply_both_ways(response(0, 3, check), &[], &wire);
    // With the residual that such a command has.
    wire[1] = 0x20;
    wire[12..16].copy_from_slice(&[0, 0, 0x10, 0]);
    reply_both_ways(response(0, 3, Response::check(Sense::LBA_OUT_OF_RANGE, 4096)), &[], &wire);
    let over = Response { residual: Residual::Over(5), ..Response::GOOD };
    reply_both_ways(response(0, 3, over), &[], &bytes(&[&[0x21, 0x40, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]], 32));
}

#[test]
fn command_flags() {
    let flags = |cdb| {
        let body = RequestBody::Command(Command { expected_bytes: 0, cdb });
        request_bytes(&Request { lun: 0, tag: 0, body }, &[])[1]
    };
    assert_eq!(flags(Cdb::HpbReadBuffer { buffer_id: 1, at: SubRegion::default(), alloc: 8 }), 0x40);
    assert_eq!(flags(Cdb::Unmap { list_bytes: 24 }), 0x20);
    assert_eq!(flags(Cdb::HpbInactivate { region: 1 }), 0);
    assert_eq!(flags(Cdb::HpbPreRequest { lba: 0, read_id: 1, list_bytes: 8 }), 0x20);
}

#[test]
fn task_management() {
    let body = RequestBody::Task(TaskRequest { function: 1, lun: 0, task_tag: 3 });
    request_both_ways(
        Request { lun: 0, tag: 0, body },
        &[],
        &bytes(&[&[0x04, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], &[0; 4], &[0, 0, 0, 3]], 32),
    );
    let body = ReplyBody::Task(TaskResponse { service_response: 8 });
    reply_both_ways(Reply { lun: 0, tag: 0, body }, &[], &bytes(&[&[0x24], &[0; 14], &[8]], 32));
}

/// LUN 2, tag 5: activate sub-region 3 of region 7, inactivate region 9.
fn notification_example() -> (Reply, Vec<u8>) {
    let hpb = HpbNotification {
        operation: HpbNotification::REGION_UPDATE,
        lun: 2,
        active_count: 1,
        inactive_count: 1,
        active: [SubRegion { region: 7, index: 3 }, SubRegion::default()],
        inactive: [9, 0],
    };
    let wire = bytes(
        &[
            &[0x21, 0x00, 0x02, 0x05],
            &[0x00, 0x00, 0x00, 0x00],
            &[0x00, 0x02, 0x00, 0x14],
            &[0x00, 0x00, 0x00, 0x00],
            &[0; 16],
            &[0x00, 0x12, 0x80, 0x10, 0x01, 0x02, 0x01, 0x01],
            &[0x00, 0x07, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00],
            &[0x00, 0x09, 0x00, 0x00],
        ],
        52,
    );
    (response(2, 5, Response { hpb: Some(hpb), ..Response::GOOD }), wire)
}

#[test]
fn notification_bytes_are_those_of_linux() {
    let (reply, wire) = notification_example();
    reply_both_ways(reply, &[], &wire);
}

#[track_caller]
fn hpb_of(wire: &[u8]) -> Option<HpbNotification> {
    let (Reply { body: ReplyBody::Response(response), .. }, _) = parse_reply(wire).unwrap() else {
        panic!("not a response");
    };
    response.hpb
}

#[test]
fn notification_is_recognised_as_linux_does() {
    let (_, good) = notification_example();
    let with = |changes: &[(usize, u8)]| {
        let mut wire = good.clone();
        for (at, value) in changes {
            wire[*at] = *value;
        }
        wire
    };
    assert!(hpb_of(&good).is_some());
    assert!(hpb_of(&with(&[(35, 0x11)])).is_some(), "additional length of 2018");
    assert!(hpb_of(&with(&[(11, 4)])).is_some(), "another data segment length, but not 0");
    assert_eq!(hpb_of(&with(&[(9, 3)])).unwrap().active[0], SubRegion { region: 7, index: 3 });
    for (why, changes) in [
        ("no alert", &[(9, 0)][..]),
        ("only the event alert", &[(9, 1)]),
        ("no data segment", &[(11, 0)]),
        ("sense length", &[(33, 0x10)]),
        ("sense length", &[(32, 1)]),
        ("descriptor type", &[(34, 0x70)]),
        ("additional length", &[(35, 0x12)]),
        ("operation 0", &[(36, 0)]),
        ("nothing named", &[(38, 0), (39, 0)]),
        ("LUN", &[(37, 0x7F)]),
        ("BUSY", &[(7, 0x08)]),
    ] {
        assert_eq!(hpb_of(&with(changes)), None, "{why}");
    }
    assert!(hpb_of(&with(&[(36, 2), (38, 0), (39, 0)])).is_some(), "a reset names nothing");
    assert_eq!(hpb_of(&with(&[(38, 200)])).unwrap().active_count, 200, "counts are the receiver's to check");
    // Short of its 52 bytes, with and without a data segment length that fits.
    assert_eq!(parse_reply(&good[..51]), Err(UpiuError::Short { have: 51, need: 52 }));
    assert_eq!(parse_reply(&with(&[(11, 4)])[..51]), Err(UpiuError::Short { have: 51, need: 52 }));
}

#[test]
fn notification_only_with_good_and_sense_only_with_check_condition() {
    let hpb = HpbNotification { operation: 2, ..Default::default() };
    let busy = Response { status: Status::Busy, hpb: Some(hpb), ..Response::GOOD };
    assert_eq!(reply_bytes(&response(0, 0, busy), &[]), bytes(&[&[0x21, 0, 0, 0, 0, 0, 0, 8]], 32));
    let both = Response { hpb: Some(hpb), ..Response::check(Sense::RESET_OCCURRED, 0) };
    let wire = reply_bytes(&response(0, 0, both), &[]);
    assert_eq!((wire[9], wire[34], wire[36]), (0, 0x70, 6));
    let odd = Response { sense: Some(Sense::RESET_OCCURRED), ..Response::GOOD };
    assert_eq!(reply_bytes(&response(0, 0, odd), &[]).len(), 32);
}

#[track_caller]
fn refused_at<T: std::fmt::Debug>(result: Result<T, UpiuError>, at: usize) {
    match result {
        Err(error @ UpiuError::Field { offset, .. }) => {
            assert_eq!(offset, at);
            assert!(error.to_string().contains(&format!("byte {at} ")), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

/// The table of HotStorage 2017: device information in bytes 8 and 9, the group in 12 to 15, block and entry behind.
#[test]
fn groups_are_told_as_the_prototype_did() {
    let pair = GroupPair { lba: 0x0102_0304, entry: GroupEntry::of(0xA1A2_A3A4) };
    let told = |dirty, pair| {
        let groups = GroupNotice::new(dirty, pair, 0x5C);
        response(2, 5, Response { groups, ..Response::GOOD })
    };
    let wire = |info: &[u8; 4], group: &[u8; 4], segment: &[u8]| {
        let head: &[&[u8]] = &[&[0x21, 0, 2, 5], &[0; 4], info, group, &[0; 16], segment];
        bytes(head, 32 + segment.len())
    };
    let segment = [1, 2, 3, 4, 0xA1, 0xA2, 0xA3, 0xA4];
    reply_both_ways(told(Some(0x0203), None), &[], &wire(&[0, 4, 0, 0], &[0, 0, 2, 3], &[]));
    reply_both_ways(told(None, Some(pair)), &[], &wire(&[0x5C, 8, 0, 8], &[0; 4], &segment));
    let both = wire(&[0x5C, 12, 0, 8], &[0, 0, 0, 0], &segment);
    reply_both_ways(told(Some(0), Some(pair)), &[], &both);
    let under =
        Response { groups: GroupNotice::new(None, Some(pair), 1), residual: Residual::Under(7), ..Response::GOOD };
    reply_both_ways(response(2, 5, under), &[], &{
        let mut wire = wire(&[1, 8, 0, 8], &[0, 0, 0, 7], &segment);
        wire[1] = FLAG_UNDERFLOW;
        wire
    });
    // With other values or bytes in these places it is not a valid response.
    for (at, value, wrong) in [(7, 2, 9), (9, 14, 9), (1, 0x20, 9), (11, 7, 10), (11, 0, 10), (9, 4, 8)] {
        let mut wire = both.clone();
        wire[at] = value;
        refused_at(parse_reply(&wire), wrong);
    }
    let mut plain = wire(&[0, 4, 0, 4], &[0; 4], &segment[..4]);
    refused_at(parse_reply(&plain), 10);
    plain.truncate(34);
    assert_eq!(parse_reply(&plain), Err(UpiuError::Short { have: 34, need: 36 }));
}

#[test]
fn refused_requests() {
    assert_eq!(parse_request(&[]), Err(UpiuError::Short { have: 0, need: 32 }));
    assert_eq!(parse_request(&[0; 31]), Err(UpiuError::Short { have: 31, need: 32 }));
    refused_at(parse_request(&bytes(&[&[0x21]], 32)), 0);
    refused_at(parse_request(&bytes(&[&[0x41]], 32)), 0);
    refused_at(parse_request(&bytes(&[&[0x01, 0, 0, 0, 0x01]], 32)), 4);
    assert!(parse_request(&bytes(&[&[0x01, 0, 0, 0, 0x10]], 32)).is_ok());
    refused_at(parse_request(&bytes(&[&[0x01, 0, 0, 0, 0, 0, 0, 0, 1]], 32)), 8);
    // READ FLAG with the write function, an unknown opcode with no function.
    refused_at(parse_request(&bytes(&[&[0x16, 0, 0, 0, 0, 0x81], &[0; 6], &[5]], 32)), 5);
    refused_at(parse_request(&bytes(&[&[0x16, 0, 0, 0, 0, 0x02], &[0; 6], &[0x55]], 32)), 5);
    assert!(parse_request(&bytes(&[&[0x16, 0, 0, 0, 0, 0x01], &[0; 6], &[0x55]], 32)).is_ok());
    refused_at(parse_request(&bytes(&[&[0x04], &[0; 13], &[1]], 32)), 12);
    refused_at(parse_request(&bytes(&[&[0x04], &[0; 15], &[1]], 32)), 16);
    // Four bytes of data announced, three there.
    let short = bytes(&[&[0x16, 0, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 4], &[2]], 35);
    assert_eq!(parse_request(&short), Err(UpiuError::Short { have: 35, need: 36 }));
}

#[test]
fn refused_replies() {
    assert_eq!(parse_reply(&[0x21; 31]), Err(UpiuError::Short { have: 31, need: 32 }));
    refused_at(parse_reply(&[0; 32]), 0);
    refused_at(parse_reply(&bytes(&[&[0x21, 0x60]], 32)), 1);
    refused_at(parse_reply(&bytes(&[&[0x21, 0, 0, 0, 0, 0, 1]], 32)), 6);
    refused_at(parse_reply(&bytes(&[&[0x21, 0, 0, 0, 0, 0, 0, 0x04]], 32)), 7);
    refused_at(parse_reply(&bytes(&[&[0x21, 0, 0, 0, 0, 0, 0, 0, 1]], 32)), 8);
    let check =
        |length: u8, rest: &[u8], total| bytes(&[&[0x21, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, length], &[0; 20], rest], total);
    assert_eq!(parse_reply(&check(20, &[], 51)), Err(UpiuError::Short { have: 51, need: 52 }));
    refused_at(parse_reply(&check(1, &[], 33)), 10);
    refused_at(parse_reply(&check(20, &[0, 13, 0x70], 52)), 32);
    refused_at(parse_reply(&check(20, &[0, 19, 0x70], 52)), 10);
    refused_at(parse_reply(&check(20, &[0, 18, 0x72], 52)), 34);
    assert!(parse_reply(&check(20, &[0, 18, 0xF1], 52)).is_ok(), "VALID is not part of the response code");
}

#[test]
fn buffers_are_reused() {
    let mut out = Vec::with_capacity(RESPONSE_BYTES);
    let place = out.as_ptr();
    let (notification, _) = notification_example();
    for reply in [notification, response(0, 1, Response::GOOD), notification] {
        encode_reply(&reply, &[], &mut out);
        assert_eq!(out.as_ptr(), place);
        assert_eq!(parse_reply(&out).unwrap().0, reply);
    }
}

proptest! {
    #[test]
    fn requests_round_trip(request in any_request(), data: Vec<u8>, after: Vec<u8>) {
        let data = match request.body {
            RequestBody::Query(_) => data,
            RequestBody::Command(Command { cdb: Cdb::HpbRead { .. }, .. }) => data[..data.len() / 8 * 8].to_vec(),
            _ => Vec::new(),
        };
        let mut wire = request_bytes(&request, &data);
        prop_assert_eq!(parse_request(&wire), Ok((request, &data[..])));
        wire.extend_from_slice(&after);
        prop_assert_eq!(parse_request(&wire), Ok((request, &data[..])));
    }

    #[test]
    fn replies_round_trip(reply in any_reply(), data: Vec<u8>, after: Vec<u8>) {
        let data = if matches!(reply.body, ReplyBody::Query(_)) { data } else { Vec::new() };
        let mut wire = reply_bytes(&reply, &data);
        prop_assert_eq!(parse_reply(&wire), Ok((reply, &data[..])));
        wire.extend_from_slice(&after);
        prop_assert_eq!(parse_reply(&wire), Ok((reply, &data[..])));
    }

    #[test]
    fn cut_replies_are_refused(notification in any_notification(), cut in 0usize..RESPONSE_BYTES) {
        let reply = response(0, 0, Response { hpb: Some(notification), ..Response::GOOD });
        let wire = reply_bytes(&reply, &[]);
        prop_assert!(parse_reply(&wire[..cut]).is_err());
    }

    #[test]
    fn random_bytes_never_panic(
        mut wire in prop::collection::vec(any::<u8>(), 0..96),
        kind in prop::sample::select(vec![0x00u8, 0x01, 0x04, 0x16, 0x20, 0x21, 0x24, 0x36, 0x3F]),
        tame: bool,
    ) {
        // Half of the cases have a valid header.
        if tame && wire.len() > 12 {
            wire[0] = kind;
            wire[1] &= 0x9F;
            wire[4] = 0;
            wire[6] = 0;
            wire[7] &= 0x02;
            wire[8] = 0;
            wire[10] = 0;
            wire[11] &= 0x1F;
        }
        if let Ok((request, data)) = parse_request(&wire) {
            let again = request_bytes(&request, data);
            prop_assert_eq!(parse_request(&again), Ok((request, data)));
        }
        if let Ok((reply, data)) = parse_reply(&wire) {
            let again = reply_bytes(&reply, data);
            prop_assert_eq!(parse_reply(&again), Ok((reply, data)));
        }
    }
}
