// SPDX-License-Identifier: MIT OR Apache-2.0
//! Byte examples, round trips and totality of the CDB translation.

use proptest::prelude::*;

use super::*;
use crate::testing::any_cdb;
use crate::typed::FLAG_FUA;

fn pad(bytes: &[u8]) -> [u8; 16] {
    let mut b = [0; 16];
    b[..bytes.len()].copy_from_slice(bytes);
    b
}

#[track_caller]
fn both_ways(cdb: Cdb, bytes: &[u8]) {
    assert_eq!(encode(&cdb), pad(bytes));
    assert_eq!(parse(&pad(bytes)), cdb);
}

#[test]
fn hpb_examples() {
    both_ways(
        Cdb::HpbRead {
            lba: 0x12345,
            blocks: 1,
            entry: HpbEntry([0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77]),
            flags: 0,
            read_id: 0,
        },
        &[0xF8, 0, 0, 0x01, 0x23, 0x45, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x01, 0],
    );
    both_ways(
        Cdb::HpbReadBuffer { buffer_id: 1, at: SubRegion { region: 0x12, index: 3 }, alloc: 8192 },
        &[0xF9, 0x01, 0x00, 0x12, 0x00, 0x03, 0x00, 0x20, 0x00, 0x00],
    );
    both_ways(Cdb::HpbInactivate { region: 9 }, &[0xFA, 0x01, 0x00, 0x09, 0, 0, 0, 0, 0, 0]);
    both_ways(
        Cdb::HpbPreRequest { lba: 0x100, read_id: 5, list_bytes: 128 },
        &[0xFA, 0x02, 0x00, 0x00, 0x01, 0x00, 0x05, 0x00, 0x80, 0x00],
    );
    both_ways(Cdb::HpbInactivateAll, &[0xFA, 0x03]);
}

#[test]
fn inactivate_ignores_what_linux_leaves_behind() {
    let bytes = pad(&[0xFA, 0x01, 0x00, 0x09, 0xDE, 0xAD, 0xBE, 0xEF, 0x55, 0x00]);
    assert_eq!(parse(&bytes), Cdb::HpbInactivate { region: 9 });
}

#[test]
fn block_commands() {
    let read = |form, lba, blocks, flags| Cdb::Read { form, lba, blocks, flags };
    both_ways(read(Form::Six, 0x1A_BCDE, 256, 0), &[0x08, 0x1A, 0xBC, 0xDE, 0x00]);
    both_ways(read(Form::Six, 1, 255, 0), &[0x08, 0, 0, 1, 0xFF]);
    both_ways(read(Form::Ten, 2048, 1, FLAG_FUA), &[0x28, 0x08, 0, 0, 0x08, 0, 0, 0, 0x01]);
    both_ways(
        read(Form::Sixteen, 0x0102_0304_0506_0708, 0x0A0B_0C0D, 0),
        &[0x88, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x0A, 0x0B, 0x0C, 0x0D],
    );
    let write = |form, lba, blocks, flags| Cdb::Write { form, lba, blocks, flags };
    both_ways(write(Form::Six, 7, 2, 0), &[0x0A, 0, 0, 7, 2]);
    both_ways(write(Form::Ten, 0xFFFF_FFFF, 0xFFFF, 0), &[0x2A, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0xFF, 0xFF]);
    both_ways(write(Form::Sixteen, 1, 2, 0x10), &[0x8A, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
    both_ways(Cdb::Verify10 { lba: 5, blocks: 6, flags: 2 }, &[0x2F, 2, 0, 0, 0, 5, 0, 0, 6]);
    both_ways(Cdb::PreFetch { form: Form::Ten, lba: 5, blocks: 6 }, &[0x34, 0, 0, 0, 0, 5, 0, 0, 6]);
    both_ways(Cdb::PreFetch { form: Form::Sixteen, lba: 5, blocks: 6 }, &[0x90, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6]);
    both_ways(
        Cdb::SynchronizeCache { form: Form::Ten, lba: 5, blocks: 6, immed: true },
        &[0x35, 0x02, 0, 0, 0, 5, 0, 0, 6],
    );
    both_ways(
        Cdb::SynchronizeCache { form: Form::Sixteen, lba: 5, blocks: 6, immed: false },
        &[0x91, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6],
    );
    both_ways(Cdb::Unmap { list_bytes: 24 }, &[0x42, 0, 0, 0, 0, 0, 0, 0, 24]);
}

#[test]
fn zone_commands() {
    both_ways(
        Cdb::ReportZones { start: 0x8000, alloc: 0x200, options: 0x3F, partial: true },
        &[0x95, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 2, 0, 0xBF],
    );
    for (action, code) in ZoneAction::ALL.into_iter().zip(1..) {
        both_ways(
            Cdb::ManageZones { action, lba: 0x1_0000_0000, count: 2, all: true },
            &[0x94, code, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 1],
        );
    }
}

#[test]
fn primary_commands() {
    both_ways(Cdb::TestUnitReady, &[0x00]);
    both_ways(Cdb::RequestSense { alloc: 18 }, &[0x03, 0, 0, 0, 18]);
    both_ways(Cdb::Inquiry { vpd: None, alloc: 36 }, &[0x12, 0, 0, 0, 36]);
    both_ways(Cdb::Inquiry { vpd: Some(0xB0), alloc: 0x102 }, &[0x12, 1, 0xB0, 1, 2]);
    both_ways(Cdb::Inquiry { vpd: Some(0), alloc: 255 }, &[0x12, 1, 0, 0, 255]);
    both_ways(
        Cdb::ModeSense10 { dbd: true, page: 0x3F, subpage: 0xFF, alloc: 0x200 },
        &[0x5A, 0x08, 0x3F, 0xFF, 0, 0, 0, 2, 0],
    );
    both_ways(Cdb::StartStopUnit { immed: true, control: 0x20 }, &[0x1B, 1, 0, 0, 0x20]);
    both_ways(Cdb::ReadCapacity10, &[0x25]);
    both_ways(Cdb::ReadCapacity16 { alloc: 32 }, &[0x9E, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32]);
    both_ways(Cdb::ReportLuns { select: 2, alloc: 4096 }, &[0xA0, 0, 2, 0, 0, 0, 0, 0, 0x10, 0]);
}

#[test]
fn what_cannot_be_said_is_kept_as_it_came() {
    for bytes in [
        pad(&[0x9E, 0x11]), // another service action
        pad(&[0x95, 0x06]),
        pad(&[0x94, 0x05]),
        pad(&[0x94, 0x00]),
        pad(&[0xFA, 0x04, 1, 2, 3]), // unknown buffer id
        pad(&[0xFA, 0x00]),
        pad(&[0x12, 0, 0x80, 0, 36]),      // page code without EVPD
        pad(&[0x03, 1, 0, 0, 18]),         // descriptor-format sense
        pad(&[0x42, 1, 0, 0, 0, 0, 0, 8]), // ANCHOR
        [0xC0; 16],
    ] {
        assert_eq!(parse(&bytes), Cdb::Other(bytes));
        assert_eq!(encode(&Cdb::Other(bytes)), bytes);
    }
    // The device refuses an unknown buffer id of HPB READ BUFFER.
    assert!(matches!(parse(&pad(&[0xF9, 0x7F])), Cdb::HpbReadBuffer { buffer_id: 0x7F, .. }));
}

#[test]
fn directions() {
    let read = Cdb::Read { form: Form::Ten, lba: 0, blocks: 1, flags: 0 };
    let write = Cdb::Write { form: Form::Ten, lba: 0, blocks: 1, flags: 0 };
    assert_eq!(direction(&read), Direction::In);
    assert_eq!(direction(&write), Direction::Out);
    assert_eq!(direction(&Cdb::TestUnitReady), Direction::None);
    assert_eq!(direction(&Cdb::Verify10 { lba: 0, blocks: 1, flags: 0 }), Direction::None);
    assert_eq!(direction(&Cdb::Verify10 { lba: 0, blocks: 1, flags: 0x02 }), Direction::Out);
    assert_eq!(direction(&Cdb::HpbInactivate { region: 0 }), Direction::None);
    assert_eq!(direction(&Cdb::HpbPreRequest { lba: 0, read_id: 0, list_bytes: 8 }), Direction::Out);
    assert_eq!(direction(&Cdb::Other(pad(&[0xA2]))), Direction::In);
    assert_eq!(direction(&Cdb::Other(pad(&[0x55]))), Direction::Out);
    assert_eq!(direction(&Cdb::Other(pad(&[0x1D]))), Direction::None);
    assert_eq!(direction(&Cdb::Other(pad(&[0x1D, 0, 0, 0, 4]))), Direction::Out);
}

#[test]
fn named_opcodes_are_those_that_parse() {
    for code in 0..=255u8 {
        let named = (0..=255u8).any(|second| {
            let bytes = pad(&[code, second]);
            parse(&bytes) != Cdb::Other(bytes)
        });
        assert_eq!(named, is_named_opcode(code), "operation code {code:#04x}");
    }
}

#[test]
fn a_read_with_the_flag_carries_an_entry() {
    let hint = GroupHint { entry: GroupEntry([0xA1, 0xA2, 0xA3, 0xA4]), seen: 0x5C };
    let cdb = Cdb::HintedRead { lba: 0x0102_0304, blocks: 0x0A0B_0C0D, hint, flags: FLAG_FUA };
    both_ways(cdb, &[0x88, 0x09, 0xA1, 0xA2, 0xA3, 0xA4, 1, 2, 3, 4, 0x0A, 0x0B, 0x0C, 0x0D, 0x5C]);
    assert_eq!(direction(&cdb), Direction::In);
    // Without it, the same bytes are a READ (16) of a block far away.
    let mut bytes = encode(&cdb);
    bytes[1] = 0;
    let read = Cdb::Read { form: Form::Sixteen, lba: 0xA1A2_A3A4_0102_0304, blocks: 0x0A0B_0C0D, flags: 0 };
    assert_eq!(parse(&bytes), read);
}

proptest! {
    #[test]
    fn round_trip(cdb in any_cdb()) {
        prop_assert_eq!(parse(&encode(&cdb)), cdb);
    }

    #[test]
    fn any_bytes_have_a_meaning_that_survives(mut bytes: [u8; 16], pick: prop::sample::Index, named: bool) {
        // Half of the cases have a known operation code.
        if named {
            let codes: Vec<u8> = (0..=255).filter(|code| is_named_opcode(*code)).collect();
            bytes[0] = codes[pick.index(codes.len())];
        }
        let cdb = parse(&bytes);
        prop_assert_eq!(parse(&encode(&cdb)), cdb);
        direction(&cdb);
    }
}
