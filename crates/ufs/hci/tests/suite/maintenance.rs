// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that look after a device, fields that it has to refuse, and what tells devices apart.

use crate::machine::{At, BLOCK, Machine, config};
use readpath_device::{DeviceConfig, LuConfig, UfsVersion, ZoneConfig, ZoneLayout, ZoneRule};
use readpath_hci::register::{self as reg, interrupt};
use readpath_kit::Ns;
use readpath_proto::query::{descriptor, opcode};
use readpath_proto::typed::{
    Cdb, Command, Form, QueryRequest, ReplyBody, RequestBody, Residual, Response, Sense, Status,
};
use readpath_proto::{scsi, uic};
use readpath_testkit::device;

/// A command by its bytes.
fn other(bytes: &[u8]) -> Cdb {
    let mut cdb = [0; 16];
    cdb[..bytes.len()].copy_from_slice(bytes);
    Cdb::Other(cdb)
}

/// The sense data of a command, none if it is GOOD.
fn sense(machine: &mut Machine, lun: u8, cdb: Cdb, bytes: u32, data: &[u8]) -> Option<Sense> {
    let (reply, _) = machine.command(1, lun, cdb, bytes, data);
    let ReplyBody::Response(response) = reply.body else { panic!("{reply:?}") };
    assert_eq!(response.sense.is_some(), response.status == Status::CheckCondition);
    response.sense
}

fn data(machine: &mut Machine, lun: u8, cdb: Cdb, bytes: u32) -> Vec<u8> {
    let (reply, mut data) = machine.command(1, lun, cdb, bytes, &[]);
    let ReplyBody::Response(Response { status: Status::Good, residual, .. }) = reply.body else { panic!("{reply:?}") };
    if let Residual::Under(left) = residual {
        data.truncate((bytes - left) as usize);
    }
    data
}

const REFUSED: Option<Sense> = Some(Sense::INVALID_FIELD);
const UNKNOWN: Option<Sense> = Some(Sense::INVALID_OPCODE);

fn write(machine: &mut Machine, lun: u8, block: u64) {
    let cdb = Cdb::Write { form: Form::Ten, lba: block, blocks: 1, flags: 0 };
    assert_eq!(sense(machine, lun, cdb, 4096, &[0xA5; BLOCK]), None);
}

fn is_zero(machine: &mut Machine, lun: u8, block: u64) -> bool {
    let cdb = Cdb::Read { form: Form::Ten, lba: block, blocks: 1, flags: 0 };
    data(machine, lun, cdb, 4096).iter().all(|byte| *byte == 0)
}

#[test]
fn format_unit_empties_a_unit_or_all() {
    let mut machine = Machine::started(&config());
    for (lun, block) in [(0, 0), (0, 1_999), (1, 999)] {
        write(&mut machine, lun, block);
    }
    // Lists of defects and protection are not for UFS.
    for byte_1 in [0x10, 0x20, 0x40, 0x80] {
        assert_eq!(sense(&mut machine, 0, other(&[0x04, byte_1]), 0, &[]), REFUSED, "{byte_1:#x}");
    }
    assert!(!is_zero(&mut machine, 0, 0));
    assert_eq!(sense(&mut machine, 0, other(&[0x04]), 0, &[]), None);
    assert!(is_zero(&mut machine, 0, 0) && is_zero(&mut machine, 0, 1_999));
    assert!(!is_zero(&mut machine, 1, 999), "of the other unit");
    write(&mut machine, 0, 7);
    assert_eq!(sense(&mut machine, scsi::WLUN_RPMB, other(&[0x04]), 0, &[]), UNKNOWN);
    assert_eq!(sense(&mut machine, scsi::WLUN_DEVICE, other(&[0x04]), 0, &[]), None);
    assert!(is_zero(&mut machine, 0, 7) && is_zero(&mut machine, 1, 999));
    // What a format has removed stays removed.
    assert_eq!(
        sense(&mut machine, 0, Cdb::SynchronizeCache { form: Form::Ten, lba: 0, blocks: 0, immed: false }, 0, &[]),
        None
    );
    let mut machine = machine.killed(&config());
    assert!(is_zero(&mut machine, 0, 7));
}

/// Unit 1 has two zones.
fn with_zones(layout: ZoneLayout, blocks: u32) -> DeviceConfig {
    let mut config = config();
    let rule = ZoneRule::Zbc;
    let zones = ZoneConfig { layout, blocks, most_open: 2, rule, program_blocks: 4, flush_blocks: 4 };
    config.lus[1] = LuConfig { blocks: 1_024, zones: Some(zones), ..config.lus[1] };
    config
}

/// A unit with zones is emptied zone by zone; the device as a whole would empty it too.
#[test]
fn format_unit_leaves_zones_alone() {
    let config = with_zones(ZoneLayout::PowerOfTwo, 512);
    let mut machine = Machine::started(&config);
    for (lun, block) in [(0, 5), (1, 0), (1, 512)] {
        write(&mut machine, lun, block);
    }
    for lun in [1, scsi::WLUN_DEVICE] {
        assert_eq!(sense(&mut machine, lun, other(&[0x04]), 0, &[]), UNKNOWN, "{lun:#x}");
        assert!([(0, 5), (1, 0), (1, 512)].into_iter().all(|(lun, block)| !is_zero(&mut machine, lun, block)));
    }
    assert_eq!(sense(&mut machine, 0, other(&[0x04]), 0, &[]), None);
    assert!(is_zero(&mut machine, 0, 5) && !is_zero(&mut machine, 1, 0) && !is_zero(&mut machine, 1, 512));
}

/// Zones with gaps behind them: what is in flash is found at its logical page, which gaps have none of.
#[test]
fn zones_behind_gaps_are_read_back() {
    let config = with_zones(ZoneLayout::Gaps, 300);
    let mut machine = Machine::started(&config);
    let written = [(0, 5), (1, 0), (1, 512), (1, 513)];
    for (lun, block) in written {
        write(&mut machine, lun, block);
    }
    let flush = |lun| (lun, Cdb::SynchronizeCache { form: Form::Ten, lba: 0, blocks: 0, immed: false });
    for (lun, cdb) in [0, 1].map(flush) {
        assert_eq!(sense(&mut machine, lun, cdb, 0, &[]), None);
    }
    let mut machine = machine.killed(&config);
    for (lun, block) in written {
        assert!(!is_zero(&mut machine, lun, block), "{block} of unit {lun}");
    }
}

#[test]
fn the_self_test_passes_and_there_is_no_other() {
    let mut machine = Machine::started(&config());
    for lun in [0, scsi::WLUN_DEVICE] {
        assert_eq!(sense(&mut machine, lun, other(&[0x1D, 0x04]), 0, &[]), None);
        // A background self-test, a list, UNITOFFL.
        for cdb in [&[0x1D, 0x20][..], &[0x1D, 0x10, 0, 0, 4], &[0x1D, 0x05]] {
            assert_eq!(sense(&mut machine, lun, other(cdb), 0, &[]), REFUSED, "{cdb:x?}");
        }
    }
    assert_eq!(sense(&mut machine, scsi::WLUN_BOOT, other(&[0x1D, 0x04]), 0, &[]), UNKNOWN);
}

#[test]
fn the_data_buffer_gives_back_what_was_written() {
    let mut machine = Machine::started(&config());
    let write = |mode, id, offset: u16, length: u16| {
        let ([o, p], [l, m]) = (offset.to_be_bytes(), length.to_be_bytes());
        other(&[0x3B, mode, id, 0, o, p, 0, l, m])
    };
    let read = |mode, id, offset: u16, length: u16| {
        let ([o, p], [l, m]) = (offset.to_be_bytes(), length.to_be_bytes());
        other(&[0x3C, mode, id, 0, o, p, 0, l, m])
    };
    assert_eq!(data(&mut machine, 0, read(3, 0, 0, 4), 4), [0, 0, 0x10, 0], "4 KiB, by bytes");
    assert_eq!(data(&mut machine, 0, read(3, 1, 0, 4), 4), [0; 4], "no such buffer");
    assert_eq!(data(&mut machine, 0, read(2, 0, 4_000, 200), 200), [0; 96]);
    assert_eq!(sense(&mut machine, 0, write(2, 0, 8, 6), 6, b"abcdef"), None);
    assert_eq!(data(&mut machine, 1, read(2, 0, 6, 10), 10), *b"\0\0abcdef\0\0");
    for (mode, id, offset, length) in [(2, 1, 0, 4), (2, 0, 4_093, 4), (0x0E, 0, 0, 4)] {
        assert_eq!(sense(&mut machine, 0, write(mode, id, offset, length), 4, &[1; 4]), REFUSED);
    }
    assert_eq!(sense(&mut machine, 0, read(2, 0, 4_097, 1), 1, &[]), REFUSED);
    // A host that sends less than it says.
    assert_eq!(sense(&mut machine, 0, write(2, 0, 0, 8), 4, &[1; 4]), Some(Sense::LIST_LENGTH));
    assert_eq!(data(&mut machine, 0, read(2, 0, 8, 6), 6), *b"abcdef");
    // It is memory, and a reset empties it.
    machine.start();
    assert_eq!(data(&mut machine, 0, read(2, 0, 8, 6), 6), [0; 6]);
}

#[test]
fn units_are_listed_as_they_are_asked_for() {
    let mut machine = Machine::started(&config());
    let mut listed = |select| {
        let list = data(&mut machine, 0, Cdb::ReportLuns { select, alloc: 256 }, 256);
        assert_eq!(usize::from(list[3]), list.len() - 8);
        list[8..].chunks(8).map(|lun| [lun[0], lun[1]]).collect::<Vec<_>>()
    };
    let well_known = [[0xC1, 0x01], [0xC1, 0x30], [0xC1, 0x44], [0xC1, 0x50]];
    assert_eq!(listed(0), [[0, 0], [0, 1]]);
    assert_eq!(listed(1), well_known);
    assert_eq!(listed(2), [&[[0, 0], [0, 1]][..], &well_known].concat());
    assert_eq!(sense(&mut machine, 0, Cdb::ReportLuns { select: 3, alloc: 256 }, 256, &[]), REFUSED);
}

#[test]
fn protection_information_is_refused() {
    let mut machine = Machine::started(&config());
    write(&mut machine, 0, 5);
    for protect in [0x20, 0x60, 0xE0] {
        for form in [Form::Ten, Form::Sixteen] {
            let read = Cdb::Read { form, lba: 5, blocks: 1, flags: protect };
            assert_eq!(sense(&mut machine, 0, read, 4096, &[]), REFUSED);
            let write = Cdb::Write { form, lba: 5, blocks: 1, flags: protect };
            assert_eq!(sense(&mut machine, 0, write, 4096, &[0; BLOCK]), REFUSED);
        }
        let verify = Cdb::Verify10 { lba: 5, blocks: 1, flags: protect };
        assert_eq!(sense(&mut machine, 0, verify, 0, &[]), REFUSED);
    }
    // Data to compare with, which no UFS device takes.
    assert_eq!(sense(&mut machine, 0, Cdb::Verify10 { lba: 5, blocks: 1, flags: 2 }, 4096, &[0; BLOCK]), REFUSED);
    assert!(!is_zero(&mut machine, 0, 5), "nothing was written");
    let dpo_and_fua = Cdb::Read { form: Form::Ten, lba: 5, blocks: 1, flags: 0x18 };
    assert_eq!(sense(&mut machine, 0, dpo_and_fua, 4096, &[]), None);
}

fn descriptor_of(machine: &mut Machine, idn: u8, index: u8) -> Vec<u8> {
    let query = QueryRequest { opcode: opcode::READ_DESCRIPTOR, idn, index, selector: 0, length: 255, value: 0 };
    machine.ask(31, 0, RequestBody::Query(query), &[]).unwrap().1
}

#[test]
fn devices_of_ufs_4_say_so() {
    for (version, bcd, interconnect, gear) in
        [(UfsVersion::V31, 0x0310u16, [1, 0x80, 4, 0x10], 4), (UfsVersion::V40, 0x0400, [2, 0, 5, 0], 5)]
    {
        let mut machine = Machine::started(&DeviceConfig { ufs_version: version, ..config() });
        assert_eq!(machine.device.read(reg::VER), bcd.into());
        assert_eq!(descriptor_of(&mut machine, descriptor::DEVICE, 0)[0x10..0x12], bcd.to_be_bytes());
        assert_eq!(descriptor_of(&mut machine, descriptor::INTERCONNECT, 0)[2..], interconnect);
        machine.device.write(machine.now, reg::UCMDARG1, u32::from(uic::attribute::MAX_RX_HS_GEAR) << 16);
        machine.device.write(machine.now, reg::UICCMD, uic::opcode::GET.into());
        assert_eq!(machine.device.read(reg::UCMDARG3), gear);
    }
}

#[test]
fn a_serial_number_is_in_every_answer_about_identity() {
    let mut config = device(3_000);
    config.lus = vec![config.lus[0]; 2];
    config.lus.iter_mut().for_each(|lu| lu.blocks = 1_000);
    let mut machine = Machine::started(&config);
    let mut identity = |serial: Option<u64>| {
        if let Some(serial) = serial {
            machine.device.device.set_serial(serial);
            // A reset leaves it.
            machine.start();
        }
        let page = |page| Cdb::Inquiry { vpd: Some(page), alloc: 255 };
        let text = data(&mut machine, 0, page(0x80), 255)[4..].to_vec();
        let string = descriptor_of(&mut machine, descriptor::STRING, 3);
        assert_eq!(string[2..].iter().copied().filter(|byte| *byte != 0).collect::<Vec<_>>(), text);
        let mut naa = |lun| u64::from_be_bytes(data(&mut machine, lun, page(0x83), 255)[8..].try_into().unwrap());
        (String::from_utf8(text).unwrap(), naa(0), naa(1))
    };
    assert_eq!(identity(None), ("0000000000000001".into(), 0x3000_0000_0000_0100, 0x3000_0000_0000_0101));
    let other = identity(Some(0xFEDC_BA98_7654_3210));
    assert_eq!(other, ("FEDCBA9876543210".into(), 0x3CBA_9876_5432_1000, 0x3CBA_9876_5432_1001));
}

/// A device that is taken away: the host hears of it at once, nothing that was sent is answered, attempts to start the
/// link find no device, and what was acknowledged stays.
#[test]
fn a_device_that_is_taken_away_is_gone() {
    let mut machine = Machine::started(&config());
    write(&mut machine, 0, 3);
    assert!(machine.device.is_in_use());
    let read = Cdb::Read { form: Form::Ten, lba: 3, blocks: 1, flags: 0 };
    machine.send(7, 0, RequestBody::Command(Command { expected_bytes: 4096, cdb: read }), &[]);
    machine.now = machine.device.take_away(machine.now).unwrap();
    assert!(machine.device.line() && !machine.device.is_in_use());
    let gone = |machine: &mut Machine| {
        assert_eq!(machine.device.read(reg::HCS) & 7, 0, "neither a device nor lists");
        machine.device.write(machine.now, reg::UTRLDBR, 1 << 3);
        machine.device.advance(machine.now + Ns::from_secs(1));
    };
    assert_eq!(machine.device.read(reg::IS), interrupt::DEVICE_FATAL);
    gone(&mut machine);
    assert_eq!(machine.device.read(reg::UTRLDBR), 1 << 7, "the read is never answered");
    for _ in 0..5 {
        assert!(machine.port.start(&mut At(&mut machine.device, machine.now)).is_err());
        assert_eq!(machine.device.read(reg::HCE), 1);
        gone(&mut machine);
    }
    let mut machine = machine.killed(&config());
    assert!(!is_zero(&mut machine, 0, 3));
}
