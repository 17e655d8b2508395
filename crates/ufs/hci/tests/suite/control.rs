// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers, UIC commands, queries and refusals, byte by byte where Linux reads bytes.

use crate::machine::{At, BASE, BLOCK, Machine, config};
use readpath_device::{UfsDevice, WithMedia};
use readpath_flash::Lean;
use readpath_hci::register::{self as reg, interrupt, status};
use readpath_hci::{GuestMem, PortError};
use readpath_kit::Ns;
use readpath_proto::transfer::{PrdtEntry, TransferDescriptor, UTRD_BYTES, ocs};
use readpath_proto::typed::{
    Cdb, Command, Form, QueryRequest, Reply, ReplyBody, Request, RequestBody, Residual, Response, Sense, Status,
    TaskRequest,
};
use readpath_proto::uic;
use readpath_store::Image;
use readpath_testkit::DELAYS;

fn read_10(lba: u64, blocks: u32) -> Cdb {
    Cdb::Read { form: Form::Ten, lba, blocks, flags: 0 }
}

fn uic(machine: &mut Machine, command: u8, attribute: u16, value: u32) -> Result<u32, PortError> {
    machine.port.uic(&mut At(&mut machine.device, machine.now), command, attribute, value)
}

/// The controller reads a command that a test writes byte by byte.
fn raw(
    machine: &mut Machine,
    tag: u8,
    descriptor: &TransferDescriptor,
    upiu: &[u8],
    prdt: &[PrdtEntry],
) -> (u8, Vec<u8>) {
    let base = descriptor.command_base;
    machine.memory.write(base, upiu).unwrap();
    for (i, entry) in prdt.iter().enumerate() {
        machine.memory.write(base + u64::from(descriptor.prdt_offset) + 16 * i as u64, &entry.to_bytes()).unwrap();
    }
    let response = base + u64::from(descriptor.response_offset);
    machine.memory.write(response, &[0xEE; 64]).unwrap();
    let at = BASE + u64::from(tag) * UTRD_BYTES as u64;
    machine.memory.write(at, &descriptor.to_bytes()).unwrap();
    machine.device.write(machine.now, reg::UTRLDBR, 1 << tag);
    while machine.device.read(reg::UTRLDBR) != 0 {
        machine.now = machine.device.next_deadline();
        assert_ne!(machine.now, Ns::NEVER);
        machine.device.advance(machine.now);
    }
    assert!(machine.device.line());
    assert_eq!(machine.device.read(reg::IS), interrupt::TRANSFER);
    machine.device.write(machine.now, reg::IS, interrupt::TRANSFER);
    assert!(!machine.device.line());
    let mut bytes = [0; UTRD_BYTES];
    machine.memory.read(at, &mut bytes).unwrap();
    let mut answer = vec![0; 64];
    machine.memory.read(response, &mut answer).unwrap();
    (TransferDescriptor::parse(&bytes).ocs, answer)
}

fn descriptor() -> TransferDescriptor {
    TransferDescriptor {
        command_type: 1,
        direction: 0,
        interrupt: true,
        crypto: false,
        ocs: ocs::INVALID,
        command_base: BASE + 0x9000,
        response_offset: 512,
        response_bytes: 512,
        prdt_offset: 1024,
        prdt_entries: 0,
    }
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut upiu = bytes.to_vec();
    upiu.resize(32, 0);
    upiu
}

#[test]
fn answers_are_what_linux_expects_byte_by_byte() {
    let mut machine = Machine::started(&config());
    let (ocs, answer) = raw(&mut machine, 31, &descriptor(), &padded(&[0, 0, 0, 0x1F]), &[]);
    assert_eq!((ocs, &answer[..32]), (ocs::SUCCESS, &padded(&[0x20, 0, 0, 0x1F])[..]));
    // READ FLAG fDeviceInit, which is clear; the task tag is the host's own.
    let request = [0x16, 0, 0, 0x77, 0, 1, 0, 0, 0, 0, 0, 0, 5, 1];
    let (_, answer) = raw(&mut machine, 31, &descriptor(), &padded(&request), &[]);
    assert_eq!(answer[..32], padded(&[0x36, 0, 0, 0x77, 0, 1, 0, 0, 0, 0, 0, 0, 5, 1])[..]);
    // READ (10) beyond the end: CHECK CONDITION with sense data, and no remains of older bytes.
    let mut request = padded(&[1, 0x40, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0x28, 0, 0, 1, 0, 0, 0, 0, 1]);
    request.truncate(32);
    let (ocs, answer) = raw(&mut machine, 3, &descriptor(), &request, &[]);
    let mut expected = padded(&[0x21, 0x20, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0x14, 0, 0, 0x10]);
    expected.extend([0, 0x12, 0x70, 0, 5, 0, 0, 0, 0, 0x0A, 0, 0, 0, 0, 0x21, 0, 0, 0, 0, 0]);
    assert_eq!((ocs, &answer[..52]), (ocs::SUCCESS, &expected[..]));
}

#[test]
fn what_cannot_be_read_or_answered_has_a_status() {
    let mut machine = Machine::started(&config());
    let nop = padded(&[0, 0, 0, 9]);
    let mut with = |change: fn(&mut TransferDescriptor), upiu: &[u8], prdt: &[PrdtEntry]| {
        let mut descriptor = TransferDescriptor { prdt_entries: prdt.len() as u16, ..descriptor() };
        change(&mut descriptor);
        raw(&mut machine, 9, &descriptor, upiu, prdt)
    };
    assert_eq!(with(|d| d.command_type = 0, &nop, &[]).0, ocs::INVALID_TABLE);
    assert_eq!(with(|d| d.crypto = true, &nop, &[]).0, ocs::INVALID_TABLE);
    assert_eq!(with(|d| d.response_bytes = 16, &nop, &[]).0, ocs::RESPONSE_SIZE);
    // A transaction code that no host sends is rejected by the device.
    assert_eq!(with(|_| (), &padded(&[0x3A, 0, 0, 9]), &[]).1[0], 0x3F);
    let mut read = padded(&[1, 0x40, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0x28]);
    read[24] = 1;
    let page = |address| PrdtEntry { address, bytes: 4096 };
    assert_eq!(with(|_| (), &read, &[page(BASE + 0xA0000)]).0, ocs::SUCCESS);
    assert_eq!(with(|_| (), &read, &[]).0, ocs::DATA_SIZE);
    assert_eq!(with(|_| (), &read, &[PrdtEntry { address: BASE + 0xA0000, bytes: 4092 }]).0, ocs::DATA_SIZE);
    for address in [0, u64::MAX - 100, BASE - 1] {
        assert_eq!(with(|_| (), &read, &[page(address)]).0, ocs::INVALID_PRDT, "{address:#x}");
    }
    let mut write = read.clone();
    (write[1], write[16]) = (0x20, 0x2A);
    assert_eq!(with(|_| (), &write, &[page(0)]).0, ocs::INVALID_PRDT);
    // A write of more than the host announces is refused, and does not wait for the rest.
    write[14] = 0x08;
    assert_eq!(with(|_| (), &write, &[page(BASE + 0xA0000)]).1[7], 2);
}

#[test]
fn a_list_that_is_not_in_memory_fails_the_bus() {
    let mut machine = Machine::started(&config());
    machine.device.write(machine.now, reg::UTRLBA, 0);
    machine.device.write(machine.now, reg::UTRLBAU, 0);
    machine.device.write(machine.now, reg::UTRLDBR, 1);
    assert_eq!(machine.device.read(reg::IS) & interrupt::BUS_FATAL, interrupt::BUS_FATAL);
    machine.start();
    let (reply, _) = machine.command(0, 0, Cdb::TestUnitReady, 0, &[]);
    assert!(matches!(reply.body, ReplyBody::Response(Response { status: Status::Good, .. })), "{reply:?}");
}

#[test]
fn a_controller_that_is_off_takes_no_notice() {
    let mut machine = Machine::new(&config());
    assert_eq!(machine.device.read(reg::CAP), 0x0107_021F);
    assert_eq!(machine.device.read(reg::VER), 0x0310);
    for offset in (0..0x200).step_by(4).filter(|offset| *offset != reg::HCE) {
        machine.device.write(machine.now, offset, u32::MAX);
    }
    let all: Vec<u32> = (0..0x200).step_by(4).map(|offset| machine.device.read(offset)).collect();
    assert_eq!(all.iter().filter(|value| **value != 0).count(), 2, "only CAP and VER: {all:x?}");
    assert!(!machine.device.line());
}

#[test]
fn the_link_is_started_changed_and_put_to_sleep() {
    let mut machine = Machine::new(&config());
    let at = machine.now;
    machine.device.write(at, reg::HCE, 1);
    assert_eq!(machine.device.read(reg::HCS), status::UIC_READY);
    // Without a link there is no peer, and no command.
    assert_eq!(
        uic(&mut machine, uic::opcode::PEER_GET, 0x1587, 0),
        Err(PortError::Uic { command: 3, code: uic::result::PEER_COMMUNICATION })
    );
    machine.device.write(at, reg::UTRLRSR, 1);
    machine.device.write(at, reg::UTRLDBR, 1);
    assert_eq!((machine.device.read(reg::UTRLRSR), machine.device.read(reg::UTRLDBR)), (0, 0), "nothing is fetched");
    assert_eq!(machine.device.read(reg::IS) & (interrupt::BUS_FATAL | interrupt::TRANSFER), 0);
    machine.start();
    assert!(uic(&mut machine, uic::opcode::SET, 0x1571, 0x33).is_err(), "no such power mode");

    // A request sent while the link sleeps waits until it is awake.
    uic(&mut machine, uic::opcode::HIBERNATE_ENTER, 0, 0).unwrap();
    assert_eq!(machine.device.read(reg::IS), interrupt::HIBERNATE_ENTER);
    assert_eq!(machine.device.read(reg::HCS) & status::POWER_RESULT, status::POWER_LOCAL);
    assert!(uic(&mut machine, uic::opcode::HIBERNATE_ENTER, 0, 0).is_err(), "twice");
    machine.device.write(machine.now, reg::IS, u32::MAX);
    machine.send(4, 0, RequestBody::Command(Command { expected_bytes: 0, cdb: Cdb::TestUnitReady }), &[]);
    let task = TaskRequest { function: 0x80, lun: 0, task_tag: 9 };
    machine.port.manage(&mut At(&mut machine.device, machine.now), &mut machine.memory, 2, task).unwrap();
    machine.device.advance(machine.now + Ns::from_secs(1));
    machine.now += Ns::from_secs(1);
    assert_eq!((machine.device.read(reg::UTRLDBR), machine.device.read(reg::UTMRLDBR)), (1 << 4, 1 << 2));
    uic(&mut machine, uic::opcode::HIBERNATE_EXIT, 0, 0).unwrap();
    assert_eq!(machine.device.read(reg::IS), interrupt::HIBERNATE_EXIT);
    machine.device.write(machine.now, reg::IS, interrupt::HIBERNATE_EXIT);
    let (mut transfers, mut tasks) = (0, 0);
    while (transfers, tasks) != (1 << 4, 1 << 2) {
        let done = machine.wait();
        (transfers, tasks) = (transfers | done.transfers, tasks | done.tasks);
    }
    assert_eq!(machine.port.task_reply(&machine.memory, 2).unwrap().service_response, 0);
    assert_eq!(machine.device.read(reg::UECPA), 0);
}

/// A command that is cleared while the link sleeps is never sent.
#[test]
fn what_is_cleared_while_the_link_sleeps_does_not_start() {
    let mut machine = Machine::started(&config());
    uic(&mut machine, uic::opcode::HIBERNATE_ENTER, 0, 0).unwrap();
    machine.device.write(machine.now, reg::IS, u32::MAX);
    for tag in [4, 5] {
        machine.send(tag, 0, RequestBody::Command(Command { expected_bytes: 0, cdb: Cdb::TestUnitReady }), &[]);
    }
    machine.port.clear(&mut At(&mut machine.device, machine.now), 1 << 4);
    uic(&mut machine, uic::opcode::HIBERNATE_EXIT, 0, 0).unwrap();
    machine.device.write(machine.now, reg::IS, interrupt::HIBERNATE_EXIT);
    assert_eq!(machine.wait().transfers, 1 << 5);
    machine.now += Ns::from_secs(1);
    machine.device.advance(machine.now);
    assert!(!machine.device.line(), "nothing else has ended");
    assert!(matches!(machine.port.reply(&machine.memory, 4), Err(PortError::Command { tag: 4, .. })), "not answered");
}

/// The data of a cleared read is not returned by the next command in its slot.
#[test]
fn a_slot_that_was_cleared_carries_nothing_over() {
    let mut machine = Machine::started(&config());
    let data = [9; BLOCK];
    let write = Cdb::Write { form: Form::Ten, lba: 0, blocks: 1, flags: 0 };
    machine.command(1, 0, write, BLOCK as u32, &data);
    let read = RequestBody::Command(Command { expected_bytes: BLOCK as u32, cdb: read_10(0, 1) });
    machine.send(1, 0, read, &[]);
    machine.port.clear(&mut At(&mut machine.device, machine.now), 1 << 1);
    let (_, inquiry) = machine.command(1, 0, Cdb::Inquiry { vpd: None, alloc: 36 }, 36, &[]);
    assert_eq!((inquiry.len(), inquiry[4]), (36, 31), "the length that standard inquiry data says");
    assert!(inquiry != data[..36]);
}

#[test]
fn switching_the_controller_off_forgets_everything() {
    let mut machine = Machine::started(&config());
    let read = RequestBody::Command(Command { expected_bytes: 4096, cdb: read_10(0, 1) });
    machine.send(6, 0, read, &[]);
    let before = machine.memory.0.borrow().clone();
    machine.device.write(machine.now, reg::HCE, 0);
    for offset in [reg::IS, reg::IE, reg::HCS, reg::UTRLDBR, reg::UTRLRSR, reg::UTRLBA, reg::UTRLBAU] {
        assert_eq!(machine.device.read(offset), 0, "{offset:#x}");
    }
    machine.now += Ns::from_secs(1);
    machine.device.advance(machine.now);
    assert!(before == *machine.memory.0.borrow(), "what is off does not touch memory");
    // The first command after that reports the reset, the second does not.
    machine.port.start(&mut At(&mut machine.device, machine.now)).unwrap();
    let told = |reply: &Reply| match reply.body {
        ReplyBody::Response(response) => response.sense,
        _ => None,
    };
    assert_eq!(told(&machine.command(0, 0, Cdb::TestUnitReady, 0, &[]).0), Some(Sense::RESET_OCCURRED));
    assert_eq!(told(&machine.command(0, 0, Cdb::TestUnitReady, 0, &[]).0), None);
}

#[test]
fn data_may_be_less_than_expected_or_more() {
    let mut machine = Machine::started(&config());
    let inquiry = Cdb::Inquiry { vpd: None, alloc: 255 };
    let (reply, data) = machine.command(1, 0xD0, inquiry, 255, &[]);
    let ReplyBody::Response(response) = reply.body else { panic!("{reply:?}") };
    assert_eq!((response.residual, data.len(), data[0]), (Residual::Under(255 - 36), 36, 0x1E));
    // A read of two blocks by a host that has room for one.
    let (reply, data) = machine.command(1, 0, read_10(0, 2), 4096, &[]);
    let ReplyBody::Response(response) = reply.body else { panic!("{reply:?}") };
    assert_eq!((response.status, response.residual, data.len()), (Status::Good, Residual::Over(4096), BLOCK));
}

#[test]
fn descriptors_come_through_queries() {
    let mut machine = Machine::started(&config());
    let query =
        |idn, index, length| RequestBody::Query(QueryRequest { opcode: 1, idn, index, selector: 0, length, value: 0 });
    for (idn, index, bytes) in
        [(0, 0, 0x59), (1, 0, 0xE6), (7, 0, 0x57), (2, 1, 0x2D), (2, 0xC4, 0x23), (5, 2, 2 + 8), (8, 0, 0x62)]
    {
        let (reply, data) = machine.ask(31, 0, query(idn, index, 255), &[]).unwrap();
        let ReplyBody::Query(answer) = reply.body else { panic!("{reply:?}") };
        assert_eq!((answer.result, data.len(), data[0] as usize, data[1]), (0, bytes, bytes, idn), "{idn} {index}");
        let (_, short) = machine.ask(31, 0, query(idn, index, 8), &[]).unwrap();
        assert_eq!(short, data[..8]);
    }
    let (reply, _) = machine.ask(31, 0, query(0x66, 0, 255), &[]).unwrap();
    assert!(matches!(reply.body, ReplyBody::Query(answer) if answer.result == 0xFD));
}

#[test]
fn tasks_are_asked_about_aborted_and_reset() {
    let mut machine = Machine::started(&config());
    let read = RequestBody::Command(Command { expected_bytes: 4096, cdb: read_10(1, 1) });
    assert_eq!(machine.manage(0x80, 0, 7), 0x00, "not there");
    machine.send(7, 0, read, &[]);
    // The response of a read precedes that of the task; a stopped unit keeps commands longer.
    assert_eq!(machine.manage(0x77, 0, 7), 0x04, "no such function");
    assert_eq!(machine.manage(0x01, 9, 7), 0x09, "no such unit");
    assert_eq!(machine.manage(0x08, 1, 0), 0x00);
    let request =
        Request { lun: 1, tag: 8, body: RequestBody::Command(Command { expected_bytes: 0, cdb: Cdb::TestUnitReady }) };
    let (reply, _) = machine.ask(request.tag, request.lun, request.body, &[]).unwrap();
    let ReplyBody::Response(response) = reply.body else { panic!("{reply:?}") };
    assert_eq!(response.sense, Some(Sense::RESET_OCCURRED), "a unit tells that it was reset");
}

fn sense(reply: &Reply) -> Option<Sense> {
    match reply.body {
        ReplyBody::Response(response) => response.sense,
        _ => None,
    }
}

#[test]
fn a_device_that_goes_to_sleep_has_flushed() {
    const POWER_MODE: u8 = 0x02;
    let config = config();
    for (control, is_kept) in [(0x20, true), (0x30, true), (0x24, false)] {
        let mut machine = Machine::started(&config);
        let write = Cdb::Write { form: Form::Ten, lba: 5, blocks: 1, flags: 0 };
        machine.command(1, 0, write, 4096, &[7; BLOCK]);
        let stop = Cdb::StartStopUnit { immed: false, control };
        assert_eq!(sense(&machine.command(2, 0xD0, stop, 0, &[]).0), None);
        assert_eq!(machine.query(3, POWER_MODE, 0), (0, u32::from(control >> 4) * 0x11));
        assert_eq!(sense(&machine.command(1, 0, read_10(5, 1), 4096, &[]).0), Some(Sense::NOT_READY));
        let mut machine = machine.killed(&config);
        assert_eq!(machine.query(3, POWER_MODE, 0), (0, 0x11));
        let (_, data) = machine.command(1, 0, read_10(5, 1), 4096, &[]);
        assert_eq!(data == [7; BLOCK], is_kept, "{control:#x}");
        let nonsense = Cdb::StartStopUnit { immed: false, control: 0x70 };
        assert_eq!(sense(&machine.command(2, 0xD0, nonsense, 0, &[]).0), Some(Sense::INVALID_FIELD));
    }
}

const BACKGROUND_OPS: u8 = 0x04;
const BACKGROUND_STATUS: u8 = 0x05;

/// Writes all blocks, and every other group of 8 again: superblocks are left half empty.
fn write_and_write_half(machine: &mut Machine) {
    for block in (0..2_000).step_by(8).chain((0..2_000).step_by(16)) {
        let write = Cdb::Write { form: Form::Ten, lba: block, blocks: 8, flags: 0 };
        machine.command(1, 0, write, 8 * 4096, &[1; 8 * BLOCK]);
    }
}

#[test]
fn the_host_allows_work_in_the_background() {
    let mut config = config();
    let superblocks = config.geometry.blocks_per_plane - config.meta_superblocks();
    config.ftl.collect_idle_below = superblocks - 40;
    let mut machine = Machine::started(&config);
    assert_eq!(machine.query(5, BACKGROUND_OPS, 0), (0, 1), "on after a reset");
    assert_eq!(machine.query(3, BACKGROUND_STATUS, 0), (0, 0));
    // As Linux does when it has found the device.
    machine.query(7, BACKGROUND_OPS, 0);
    let collected = |machine: &Machine| machine.device.device.stats().collected_idle;
    write_and_write_half(&mut machine);
    machine.device.advance(machine.now + Ns::from_secs(1));
    machine.now += Ns::from_secs(1);
    assert_eq!(machine.query(3, BACKGROUND_STATUS, 0), (0, 1), "not critical");
    assert_eq!(collected(&machine), 0, "background operations are not enabled");
    machine.query(6, BACKGROUND_OPS, 0);
    machine.device.advance(machine.now + Ns::from_secs(1));
    machine.now += Ns::from_secs(1);
    assert!(collected(&machine) > 0);
    assert_eq!(machine.query(3, BACKGROUND_STATUS, 0), (0, 0), "nothing is left to do");
}

#[test]
fn a_host_that_wants_to_hear_is_told_that_space_is_short() {
    let control = 0x0D;
    let mut config = config();
    config.ftl.collect_below = 3_010;
    let mut machine = Machine::started(&config);
    for _ in 0..3 {
        write_and_write_half(&mut machine);
    }
    for wanted in [0, 8, 4] {
        assert_eq!(machine.query(4, control, wanted), (0, wanted));
        let mut alerts = 0;
        // Many at once: collection runs beside them, and does not keep up.
        for first in (0..2_000).step_by(200) {
            for tag in 0..25 {
                let cdb = Cdb::Write { form: Form::Ten, lba: first + 8 * u64::from(tag), blocks: 4, flags: 0 };
                let body = RequestBody::Command(Command { expected_bytes: 4 * 4096, cdb });
                machine.send(tag, 0, body, &[2; 4 * BLOCK]);
            }
            let mut left = (1 << 25) - 1;
            while left != 0 {
                let done = machine.wait().transfers;
                left &= !done;
                for tag in (0..25).filter(|tag| done >> tag & 1 == 1) {
                    let (reply, _) = machine.port.reply(&machine.memory, tag).unwrap();
                    let ReplyBody::Response(response) = reply.body else { panic!("{reply:?}") };
                    alerts += u32::from(response.event_alert);
                }
            }
        }
        assert_eq!(alerts > 0, wanted == 4, "{alerts} alerts");
    }
}

#[test]
fn what_is_refused_keeps_nobody_waiting_and_returns_nothing() {
    let mut machine = Machine::started(&config());
    let (_, inquiry) = machine.command(1, 0, Cdb::Inquiry { vpd: None, alloc: 36 }, 36, &[]);
    assert_eq!(inquiry.len(), 36);
    // A write of more than the capacity, which the link would carry for hours.
    let before = machine.now;
    let (lba, blocks) = (0, u32::MAX);
    let endless = Cdb::Write { form: Form::Sixteen, lba, blocks, flags: 0 };
    assert_eq!(sense(&machine.command(2, 0, endless, 0, &[]).0), Some(Sense::LBA_OUT_OF_RANGE));
    assert!(machine.now < before + Ns::from_ms(1));
    // A write without data uses the slot of the INQUIRY, but not its data.
    machine.memory.write(BASE + 0x10_0000 + (1 << 24), &[0xEE; 36]).unwrap();
    let nothing = Cdb::Write { form: Form::Ten, lba: 0, blocks: 0, flags: 0 };
    assert_eq!(sense(&machine.command(1, 0, nothing, 36, &[]).0), None);
    let mut bytes = [0; 36];
    machine.memory.read(BASE + 0x10_0000 + (1 << 24), &mut bytes).unwrap();
    assert_eq!(bytes, [0xEE; 36]);
}

#[test]
fn a_task_that_was_taken_back_is_not_answered() {
    let mut machine = Machine::started(&config());
    let task = |function| TaskRequest { function, lun: 0, task_tag: 9 };
    let Machine { device, port, memory, now } = &mut machine;
    port.manage(&mut At(device, *now), memory, 0, task(0x01)).unwrap();
    device.write(*now, reg::UTMRLCLR, !1);
    assert_eq!(device.read(reg::UTMRLDBR), 0);
    // The slot is free at once, for another function.
    port.manage(&mut At(device, *now), memory, 0, task(0x77)).unwrap();
    while machine.wait().tasks != 1 {}
    assert_eq!(machine.port.task_reply(&machine.memory, 0).unwrap().service_response, 0x04, "no such function");
    machine.device.advance(machine.now + Ns::from_secs(1));
    assert!(!machine.device.line(), "nothing else comes");
}

const BOOT_LUN: u8 = 0x00;
const CONFIG_LOCK: u8 = 0x0B;
const PERMANENT_WP: u8 = 0x02;

/// Machine and program crash as soon as the response is known.
#[test]
fn an_attribute_is_durable_when_its_answer_comes() {
    let config = config();
    let mut machine = Machine::started(&config);
    assert_eq!(machine.query(4, BOOT_LUN, 2), (0, 2));
    for (crash, value) in [(false, 1), (true, 2), (true, 1)] {
        assert_eq!(machine.query(4, BOOT_LUN, value), (0, value));
        machine.device.data.array_mut().disk_mut().crash(|bytes| if crash { 0 } else { bytes });
        machine = machine.killed(&config);
        assert_eq!(machine.query(3, BOOT_LUN, 0), (0, value));
    }
    assert_eq!((machine.query(4, CONFIG_LOCK, 1), machine.query(6, PERMANENT_WP, 0)), ((0, 1), (0, 1)));
    machine.device.data.array_mut().disk_mut().crash(|_| 0);
    let mut machine = machine.killed(&config);
    assert_eq!((machine.query(3, CONFIG_LOCK, 0), machine.query(5, PERMANENT_WP, 0)), ((0, 1), (0, 1)));
    assert_eq!((machine.query(4, CONFIG_LOCK, 0), machine.query(7, PERMANENT_WP, 0)), ((0xF8, 0), (0xF8, 0)));
}

/// The disk is full: no response reports an attribute that was not stored.
#[test]
fn an_attribute_that_cannot_be_kept_is_not_answered() {
    let config = config();
    let mut machine = Machine::started(&config);
    assert_eq!(machine.query(4, BOOT_LUN, 2), (0, 2));
    machine.device.data.array_mut().disk_mut().writes_left = Some(0);
    assert_eq!(machine.query(4, BOOT_LUN, 2), (0, 2), "it is kept already");
    assert_eq!(machine.query(4, 0x0D, 4), (0, 4), "volatile");
    for (opcode, idn) in [(4, BOOT_LUN), (3, BOOT_LUN), (6, PERMANENT_WP), (5, PERMANENT_WP)] {
        assert_eq!(machine.query(opcode, idn, 1), (0xFF, 0), "{opcode} of {idn}");
    }
    assert_eq!(machine.query(3, 0x0D, 0), (0, 4), "volatile");
    machine.device.data.array_mut().disk_mut().writes_left = None;
    let mut machine = machine.killed(&config);
    assert_eq!((machine.query(3, BOOT_LUN, 0), machine.query(5, PERMANENT_WP, 0)), ((0, 2), (0, 0)));
}

#[test]
fn a_record_of_attributes_that_is_damaged_is_no_beginning() {
    let config = config();
    let mut machine = Machine::started(&config);
    machine.query(4, BOOT_LUN, 2);
    let mut disk = machine.device.data.array().disk().clone();
    disk.bytes_mut()[5120 + 12] ^= 1;
    let bytes = disk.bytes_mut().len() as u64;
    let image = Image::on(disk, bytes, true, [0; 16]).unwrap();
    let mut device = UfsDevice::<Lean, WithMedia, ()>::new(&config, DELAYS, ()).unwrap();
    let mut array = image.array;
    let refused = device.power_on_with(Ns::ZERO, &mut array).unwrap_err().to_string();
    assert_eq!(refused, "the record of attributes and flags (byte 5120 of the image) is damaged");
}
