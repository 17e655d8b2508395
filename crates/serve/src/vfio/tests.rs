// SPDX-License-Identifier: MIT OR Apache-2.0
//! The function and its session, without a socket.

use super::session::{Function, HEADER_BYTES, Irqs, Session};
use super::{Maps, PciId, UfsFunction};
use readpath_config::device::parse;
use readpath_device::{UfsDevice, WithMedia};
use readpath_flash::AnySched;
use readpath_hci::Attached;
use readpath_hci::register::{self as reg, interrupt};
use readpath_kit::Ns;
use readpath_store::{Image, MemoryDisk, Store};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;

type Ufs = UfsFunction<AnySched, Store<MemoryDisk>, ()>;

const BAR_0: u32 = 0;
/// UIC command DME_LINKSTARTUP.
const LINK_STARTUP: u32 = 0x16;

fn function() -> Ufs {
    let text = readpath_config::presets().iter().find(|preset| preset.file.contains("ufs21-64g")).unwrap().text;
    let set: Vec<_> = ["geometry.blocks_per_plane=30", "geometry.pages_per_block=16", "lu.0.blocks=4800"]
        .map(|set| readpath_config::Override::from_argument(set, "test").unwrap())
        .into();
    let preset = parse(text, "preset").unwrap().with_overrides(&set).unwrap();
    let mut empty = UfsDevice::<AnySched, WithMedia, ()>::new(&preset.device, preset.delays, ()).unwrap();
    let image = Image::create_on("", 1, &mut empty, |bytes| Ok(MemoryDisk::new(bytes))).unwrap();
    let store = Store::new(image.array);
    let mut attached = Attached::new(&preset.device, 32, store, (), Maps::default()).unwrap();
    let recovery = attached.power_on_with(Ns::ZERO, Store::array_mut, &mut |_| {}).unwrap();
    let mut function = UfsFunction::new(attached, PciId::INTEL);
    function.now = recovery.ready_at;
    function
}

fn write(function: &mut Ufs, register: u32, value: u32) {
    function.write(BAR_0, register.into(), &value.to_le_bytes()).unwrap();
}

/// The controller asks for an interrupt: a UIC command has ended.
fn ask_for_an_interrupt(function: &mut Ufs) {
    write(function, reg::HCE, 1);
    write(function, reg::IE, interrupt::UIC_COMMAND);
    write(function, reg::UICCMD, LINK_STARTUP);
    assert!(function.attached.line());
}

/// An eventfd for the function, and the same for the test.
fn trigger() -> (OwnedFd, OwnedFd) {
    let trigger = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
    (trigger.try_clone().unwrap(), trigger)
}

/// How often the interrupt was raised since this was asked before.
fn raised(trigger: &OwnedFd) -> u64 {
    let mut count = [0; 8];
    rustix::io::read(trigger, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
}

/// The line stays high until the driver has looked; the eventfd is written once for it.
#[test]
fn an_interrupt_is_raised_once_until_it_is_unmasked() {
    let mut function = function();
    let (given, seen) = trigger();
    function.irqs(Irqs::Trigger(Some(given))).unwrap();
    function.raise();
    assert_eq!(raised(&seen), 0, "the line is low");
    ask_for_an_interrupt(&mut function);
    (0..3).for_each(|_| function.raise());
    assert_eq!(raised(&seen), 1);
    function.irqs(Irqs::Unmask).unwrap();
    function.raise();
    assert_eq!(raised(&seen), 1, "the line is still high");
    write(&mut function, reg::IS, u32::MAX);
    function.irqs(Irqs::Unmask).unwrap();
    function.raise();
    assert_eq!(raised(&seen), 0, "the driver has looked");
}

#[test]
fn the_next_client_begins_with_an_interrupt_that_is_not_masked() {
    let mut function = function();
    function.irqs(Irqs::Mask).unwrap();
    function.client_gone();
    assert!(!function.attached.line(), "the controller was reset");
    let (given, seen) = trigger();
    function.irqs(Irqs::Trigger(Some(given))).unwrap();
    ask_for_an_interrupt(&mut function);
    function.raise();
    assert_eq!(raised(&seen), 1);
}

#[test]
fn an_interrupt_that_the_command_register_disables_is_not_raised() {
    const CONFIG: u32 = 7;
    const COMMAND: u64 = 4;
    const INTERRUPT_OFF: u16 = 1 << 10;
    let mut function = function();
    let (given, seen) = trigger();
    function.irqs(Irqs::Trigger(Some(given))).unwrap();
    function.write(CONFIG, COMMAND, &INTERRUPT_OFF.to_le_bytes()).unwrap();
    ask_for_an_interrupt(&mut function);
    function.raise();
    assert_eq!(raised(&seen), 0);
    function.write(CONFIG, COMMAND, &[0, 0]).unwrap();
    function.raise();
    assert_eq!(raised(&seen), 1);
}

pub(super) fn message(command: u16, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![7, 0];
    message.extend(command.to_le_bytes());
    message.extend(((HEADER_BYTES + payload.len()) as u32).to_le_bytes());
    message.extend(flags.to_le_bytes());
    message.extend([0; 4]);
    message.extend(payload);
    message
}

#[test]
fn a_message_that_wants_no_reply_gets_none() {
    const VERSION: u16 = 1;
    const REGION_WRITE: u16 = 10;
    const NO_REPLY: u32 = 1 << 4;
    let (mut function, mut session, mut out) = (function(), Session::default(), Vec::new());
    session.handle(&message(VERSION, 0, &[0; 4]), Vec::new(), &mut function, &mut out).unwrap();
    out.clear();
    let mut enable = u64::from(reg::HCE).to_le_bytes().to_vec();
    enable.extend([BAR_0, 4, 1].map(u32::to_le_bytes).as_flattened());
    session.handle(&message(REGION_WRITE, NO_REPLY, &enable), Vec::new(), &mut function, &mut out).unwrap();
    assert_eq!((out.len(), function.attached.read(reg::HCE)), (0, 1), "it is done all the same");
    // A message that fails has no reply either.
    session.handle(&message(99, NO_REPLY, &[]), Vec::new(), &mut function, &mut out).unwrap();
    assert!(out.is_empty());
    session.handle(&message(REGION_WRITE, 0, &enable), Vec::new(), &mut function, &mut out).unwrap();
    assert_eq!(out.len(), HEADER_BYTES + 16);
}
