// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices misbehave when they should, and behave again after an abort or a reset.

use crate::machine::{At, Machine, config};
use readpath_hci::Misbehaviour;
use readpath_hci::register::{self as reg, interrupt};
use readpath_kit::Ns;
use readpath_proto::typed::{Cdb, Command, Form, RequestBody};
use readpath_proto::uic;

const READ: RequestBody = RequestBody::Command(Command {
    expected_bytes: 4096,
    cdb: Cdb::Read { form: Form::Ten, lba: 7, blocks: 1, flags: 0 },
});

/// A machine whose next read, after `reads` reads, misbehaves.
fn before(how: Misbehaviour, reads: u32) -> Machine {
    let mut machine = Machine::started(&config());
    machine.device.misbehave(how);
    for _ in 1..reads {
        machine.ask(3, 0, READ, &[]).unwrap();
    }
    assert_eq!(machine.device.misbehaved(), 0);
    machine.send(3, 0, READ, &[]);
    machine.now += Ns::from_secs(1);
    machine.device.advance(machine.now);
    machine
}

#[test]
fn a_hung_command_is_there_until_it_is_aborted() {
    let mut machine = before(Misbehaviour::HungTag, 1000);
    assert_eq!((machine.device.read(reg::UTRLDBR), machine.device.line()), (1 << 3, false));
    assert_eq!(machine.manage(0x80, 0, 3), 0x08, "it is there");
    assert_eq!(machine.manage(0x01, 0, 3), 0x00);
    assert_eq!(machine.manage(0x80, 0, 3), 0x00, "it is gone");
    machine.port.clear(&mut At(&mut machine.device, machine.now), 1 << 3);
    machine.ask(3, 0, READ, &[]).unwrap();
    assert_eq!(machine.device.misbehaved(), 1);
}

#[test]
fn a_completion_without_interrupt_is_there_all_the_same() {
    let mut machine = before(Misbehaviour::LostCompletion, 1000);
    assert_eq!((machine.device.read(reg::UTRLDBR), machine.device.line()), (0, false));
    machine.send(4, 0, READ, &[]);
    assert_eq!(machine.wait().transfers, 1 << 3 | 1 << 4, "the next one tells of both");
}

#[test]
fn a_failure_is_told_and_ends_with_a_reset() {
    let mut machine = before(Misbehaviour::FatalError, 1000);
    assert_eq!(machine.device.read(reg::IS), interrupt::DEVICE_FATAL);
    machine.start();
    machine.ask(3, 0, READ, &[]).unwrap();
}

#[test]
fn layers_of_uic_tell_of_errors() {
    let mut machine = before(Misbehaviour::UicErrors, 200);
    assert_eq!(machine.device.read(reg::IS), interrupt::UIC_ERROR | interrupt::TRANSFER);
    assert_eq!((machine.device.read(reg::UECPA), machine.device.read(reg::UECPA)), (1 << 31 | 1, 0));
    machine.device.write(machine.now, reg::IS, interrupt::UIC_ERROR);
    assert_eq!(machine.wait().transfers, 1 << 3, "the read has gone well");
}

#[test]
fn initialisation_and_hibernation_take_long_or_for_ever() {
    let mut machine = Machine::started(&config());
    machine.device.misbehave(Misbehaviour::SlowInit);
    assert_eq!(machine.query(6, 1, 0).0, 0);
    assert_eq!(machine.query(5, 1, 0), (0, 1), "fDeviceInit");
    machine.now += Ns::from_ms(600);
    assert_eq!(machine.query(5, 1, 0), (0, 0));

    machine.device.misbehave(Misbehaviour::LostHibernate);
    machine.device.write(machine.now, reg::UICCMD, uic::opcode::HIBERNATE_ENTER.into());
    assert_eq!(machine.device.read(reg::IS), 0, "nothing comes");
    machine.start();
    machine.ask(3, 0, READ, &[]).unwrap();
}
