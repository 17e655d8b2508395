// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames against manual bytes, codes against RFC 4231 and another implementation, and commands both ways.

use super::*;
use crate::cdb::{Direction, direction};
use crate::upiu::encode_request;

/// A frame with distinct bytes in every field.
fn frame() -> Frame {
    Frame {
        mac: [0x5A; 32],
        data: std::array::from_fn(|i| (i * 7 + 3) as u8),
        nonce: std::array::from_fn(|i| 0xA0 + i as u8),
        counter: 0x0102_0304,
        address: 0x1122,
        blocks: 1,
        result: result::COUNTER | result::COUNTER_EXPIRED,
        kind: request::WRITE,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_frame_has_its_fields_where_they_belong() {
    let mut golden = [0u8; 512];
    golden[196..228].fill(0x5A);
    (228..484).for_each(|at| golden[at] = ((at - 228) * 7 + 3) as u8);
    (484..500).for_each(|at| golden[at] = 0xA0 + (at - 484) as u8);
    golden[500..].copy_from_slice(&[1, 2, 3, 4, 0x11, 0x22, 0, 1, 0, 0x83, 0, 3]);
    assert_eq!(frame().to_bytes(), golden);
    golden[..196].fill(0xEE);
    assert_eq!(Frame::parse(&golden), frame(), "whatever the stuff is");
}

/// Keys of RFC 4231 have up to 32 bytes here; HMAC pads shorter ones with zeros itself.
#[test]
fn codes_are_those_of_rfc_4231() {
    let key = |from: &[u8]| {
        let mut key = [0; 32];
        key[..from.len()].copy_from_slice(from);
        key
    };
    let numbers: Vec<u8> = (1..=25).collect();
    let cases: [(Key, &[u8], &str); 4] = [
        (key(&[0x0b; 20]), b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        (
            key(b"Jefe"),
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (key(&[0xaa; 20]), &[0xdd; 50], "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
        (key(&numbers), &[0xcd; 50], "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
    ];
    for (key, text, code) in cases {
        // In one part, or in two.
        let (front, back) = text.split_at(3);
        assert_eq!(hex(&hmac(&key, [text].into_iter()).finalize().into_bytes()), code);
        assert_eq!(hex(&hmac(&key, [front, back].into_iter()).finalize().into_bytes()), code);
    }
}

/// The codes were made with Python's hmac from bytes 228 to 511 of the frame.
#[test]
fn a_message_is_signed_in_its_last_frame_over_all_of_them() {
    let key: Key = std::array::from_fn(|i| i as u8);
    let one = Frame { mac: [0; 32], ..frame() }.to_bytes();
    let codes = [
        "bdd8ae0b93e43170df66cdf01b7e0834b35790ec38e32d5c94704cbb51510670",
        "0eaaf1d24bf5880d01ab4f995c9bd75fce7ec598b65c2d01f1033a6b9d3d8ba2",
    ];
    for (frames, code) in (1..).zip(codes) {
        let mut message = one.repeat(frames);
        sign(&key, &mut message);
        let (front, last) = message.split_at(512 * (frames - 1));
        assert!(hex(&last[196..228]) == code && front == one.repeat(frames - 1));
        assert!(is_signed(&key, &message) && !is_signed(&[9; 32], &message));
        for at in 0..message.len() {
            let is_stuff = at % 512 < 196 || at % 512 < 228 && at < 512 * (frames - 1);
            let mut other = message.clone();
            other[at] ^= 0x10;
            assert_eq!(is_signed(&key, &other), is_stuff, "byte {at}");
        }
    }
    assert!(!is_signed(&key, &[]));
}

#[test]
fn commands_come_back_and_say_which_way_data_goes() {
    let command = SecurityProtocol::of_frames(true, 64);
    let Cdb::Other(bytes) = command.cdb() else { panic!("it has no variant") };
    assert_eq!(bytes, [0xB5, 0xEC, 0, 1, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    for out in [false, true] {
        let command = SecurityProtocol { out, protocol: 0, specific: 0x0201, in_sectors: true, length: 0x1020_3040 };
        assert_eq!(SecurityProtocol::parse(&command.cdb()), Some(command));
        assert_eq!(direction(&command.cdb()), if out { Direction::Out } else { Direction::In });
    }
    assert_eq!(SecurityProtocol::parse(&Cdb::Other([0xA3; 16])), None);
    assert_eq!(SecurityProtocol::parse(&Cdb::TestUnitReady), None);
    // It crosses the link like any other command.
    let body = crate::typed::RequestBody::Command(crate::typed::Command { expected_bytes: 512, cdb: command.cdb() });
    let request = crate::typed::Request { lun: crate::scsi::WLUN_RPMB, tag: 3, body };
    let mut upiu = Vec::new();
    encode_request(&request, &[], &mut upiu);
    assert_eq!(crate::upiu::parse_request(&upiu).map(|(request, _)| request), Ok(request));
}
