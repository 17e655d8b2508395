// SPDX-License-Identifier: MIT OR Apache-2.0
//! RPMB as a machine's own driver accesses it: commands in the lists of a host controller, a device that begins from
//! an image, and the contents of the image afterwards.

use crate::both::image;
use readpath_device::{DeviceConfig, FlashArray, Without};
use readpath_flash::Lean;
use readpath_hci::{Attached, Bus, GuestMem, Port, Ram, Unreachable};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_proto::rpmb::{Frame, Key, SecurityProtocol, is_signed, request, result, sign};
use readpath_proto::scsi::{WLUN_DEVICE, WLUN_RPMB};
use readpath_proto::typed::{Cdb, Command, ReplyBody, Request, RequestBody, Residual, Response, Sense, Status};
use readpath_store::{Image, MemoryDisk, Store};
use readpath_testkit::full::full_device;
use std::cell::RefCell;
use std::rc::Rc;

const BASE: u64 = 0x10_0000;
const SLOTS: u8 = 4;
const KEY: Key = [0x42; 32];

/// Memory that host and controller share.
#[derive(Clone)]
struct Shared(Rc<RefCell<Ram>>);

impl GuestMem for Shared {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Unreachable> {
        self.0.borrow().read(address, bytes)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Unreachable> {
        self.0.borrow_mut().write(address, bytes)
    }
}

type Device = Attached<Lean, Store<MemoryDisk>, (), Shared>;

struct Line<'a>(&'a mut Device, Ns);

impl Bus for Line<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.0.read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.0.write(self.1, offset, value);
    }
}

struct Host {
    device: Device,
    port: Port,
    memory: Shared,
    now: Ns,
}

type Answer = (Response, Vec<u8>);

impl Host {
    /// A machine with the device of an image, which has been switched on and is idle.
    fn new(config: &DeviceConfig, mut disk: MemoryDisk) -> Host {
        let bytes = disk.bytes_mut().len() as u64;
        let image = Image::on(disk, bytes, true, Default::default()).unwrap();
        let memory = Shared(Rc::new(RefCell::new(Ram::new(BASE, (1 << 20) + (SLOTS as usize) * (1 << 24)))));
        let store = Store::new(image.array);
        let mut device = Device::new(config, SLOTS, store, (), memory.clone()).unwrap();
        let recovery = device.power_on_with(Ns::ZERO, Store::array_mut, &mut |_| {}).unwrap();
        let mut host = Host { device, port: Port::new(BASE, SLOTS, true), memory, now: recovery.ready_at };
        host.port.start(&mut Line(&mut host.device, host.now)).unwrap();
        host.rest();
        host
    }

    fn rest(&mut self) {
        while self.device.next_deadline() != Ns::NEVER {
            self.now = self.device.next_deadline();
            self.device.advance(self.now);
        }
    }

    fn send(&mut self, tag: u8, lun: u8, cdb: Cdb, expected_bytes: u32, data: &[u8]) {
        let request = Request { lun, tag, body: RequestBody::Command(Command { expected_bytes, cdb }) };
        let bus = &mut Line(&mut self.device, self.now);
        self.port.send(bus, &mut self.memory, &request, data).unwrap();
    }

    /// Waits for these commands, a bit each; returns their order of completion.
    fn wait(&mut self, commands: u32) -> Vec<u8> {
        let mut ended = Vec::new();
        while (ended.len() as u32) < commands.count_ones() {
            self.now = self.device.next_deadline();
            assert_ne!(self.now, Ns::NEVER, "some of {commands:#b} do not end");
            self.device.advance(self.now);
            let completed = self.port.interrupt(&mut Line(&mut self.device, self.now)).unwrap();
            ended.extend((0..SLOTS).filter(|tag| completed.transfers >> tag & 1 == 1));
        }
        ended
    }

    fn answer(&mut self, tag: u8) -> Answer {
        let (reply, data) = self.port.reply(&self.memory, tag).unwrap();
        let ReplyBody::Response(response) = reply.body else { panic!("{reply:?}") };
        // Any answer may carry an HPB notification.
        (Response { hpb: None, ..response }, data.to_vec())
    }

    fn command(&mut self, lun: u8, cdb: Cdb, expected_bytes: u32, data: &[u8]) -> Answer {
        self.send(0, lun, cdb, expected_bytes, data);
        self.wait(1);
        self.answer(0)
    }

    fn out(&mut self, message: &[u8]) -> Response {
        let cdb = SecurityProtocol::of_frames(true, message.len() / 512).cdb();
        self.command(WLUN_RPMB, cdb, message.len() as u32, message).0
    }

    fn fetch(&mut self, frames: usize) -> Answer {
        let cdb = SecurityProtocol::of_frames(false, frames).cdb();
        self.command(WLUN_RPMB, cdb, 512 * frames as u32, &[])
    }

    fn result(&mut self) -> Frame {
        assert_eq!(self.out(&of(request::READ_RESULT).to_bytes()), Response::GOOD);
        let (response, data) = self.fetch(1);
        assert_eq!(response, Response::GOOD);
        let frame = Frame::parse(data.first_chunk().unwrap());
        assert!(frame.kind == 0x0100 || is_signed(&KEY, &data), "{frame:?}");
        frame
    }

    fn program_key(&mut self) -> u16 {
        assert_eq!(self.out(&Frame { mac: KEY, ..of(request::PROGRAM_KEY) }.to_bytes()), Response::GOOD);
        self.result().result
    }

    fn read(&mut self, address: u16, blocks: u16) -> Vec<u8> {
        let asked = Frame { address, blocks, nonce: [7; 16], ..of(request::READ) };
        assert_eq!(self.out(&asked.to_bytes()), Response::GOOD);
        let (response, data) = self.fetch(blocks.into());
        assert!(response == Response::GOOD && is_signed(&KEY, &data));
        let frames = data.chunks_exact(512).map(|frame| Frame::parse(frame.first_chunk().unwrap()));
        let is_answer =
            |frame: &Frame| (frame.kind, frame.result, frame.nonce, frame.blocks) == (0x0400, 0, [7; 16], blocks);
        frames.inspect(|frame| assert!(is_answer(frame), "{frame:?}")).flat_map(|frame| frame.data).collect()
    }

    fn into_disk(self) -> MemoryDisk {
        self.device.data.array().disk().clone()
    }
}

fn of(kind: u16) -> Frame {
    Frame { kind, ..Frame::ZERO }
}

fn write(counter: u32, address: u16, data: &[u8]) -> Vec<u8> {
    let blocks = data.len() as u16;
    let frame = |byte: &u8| Frame { data: [*byte; 256], counter, address, blocks, ..of(request::WRITE) };
    let mut message: Vec<u8> = data.iter().flat_map(|byte| frame(byte).to_bytes()).collect();
    sign(&KEY, &mut message);
    message
}

fn new() -> (DeviceConfig, Host) {
    let config = full_device(Without::NOTHING);
    let disk = image(&config, false).array.disk().clone();
    let host = Host::new(&config, disk);
    (config, host)
}

#[test]
fn a_driver_programs_writes_and_reads_and_another_start_knows_it() {
    let (config, mut host) = new();
    assert_eq!(host.program_key(), result::OK);
    assert_eq!(host.program_key(), result::WRITE, "once");
    let first = write(0, 16_320, &[5; 64]);
    assert_eq!(host.out(&first), Response::GOOD);
    let written = host.result();
    assert_eq!((written.kind, written.result, written.counter, written.address), (0x0300, 0, 1, 16_320));
    assert_eq!(host.read(16_319, 2), [[0; 256], [5; 256]].concat());
    // The machine crashes as soon as the result is known.
    let mut disk = host.into_disk();
    disk.crash(|_| 0);
    let mut host = Host::new(&config, disk);
    assert_eq!(host.read(16_320, 64), [5; 64 * 256]);
    for (again, code) in [(first.clone(), result::COUNTER), (write(1, 16_321, &[6; 64]), result::ADDRESS)] {
        assert_eq!(host.out(&again), Response::GOOD);
        assert_eq!((host.result().result, host.result().counter), (code, 1));
    }
    assert_eq!(host.out(&write(1, 0, &[9])), Response::GOOD);
    // A reset drops only the request and its response.
    host.device.reset(host.now);
    host.port.start(&mut Line(&mut host.device, host.now)).unwrap();
    assert_eq!(host.fetch(1).0.sense, Some(Sense::COMMAND_SEQUENCE));
    let nothing = host.result();
    assert_eq!((nothing.kind, nothing.result), (0x0500, result::GENERAL));
    assert_eq!(host.read(0, 1), [9; 256]);
    let kept = host.device.data.array_mut().rpmb().unwrap().unwrap();
    assert_eq!((kept.key, kept.counter, kept.data.len()), (KEY, 2, 4 << 20));
}

#[test]
fn commands_that_are_wrong_are_refused_by_their_cdb() {
    let (_, mut host) = new();
    let good = SecurityProtocol::of_frames(true, 1);
    let frame = of(request::READ_COUNTER).to_bytes();
    let refused = |sense| (Status::CheckCondition, Some(sense));
    assert_eq!(host.command(0, Cdb::TestUnitReady, 0, &[]).0.sense, Some(Sense::RESET_OCCURRED));
    let mut sense_of = |lun, command: SecurityProtocol, expected| {
        let (response, _) = host.command(lun, command.cdb(), expected, &frame.repeat(expected as usize / 512));
        (response.status, response.sense)
    };
    let field = refused(Sense::INVALID_FIELD);
    for out in [true, false] {
        let good = SecurityProtocol { out, ..good };
        assert_eq!(sense_of(WLUN_RPMB, SecurityProtocol { protocol: 0xEF, ..good }, 512), field);
        assert_eq!(sense_of(WLUN_RPMB, SecurityProtocol { specific: 0x0101, ..good }, 512), field, "region 1");
        assert_eq!(sense_of(WLUN_RPMB, SecurityProtocol { in_sectors: true, ..good }, 512), field);
        assert_eq!(sense_of(WLUN_RPMB, SecurityProtocol { length: 500, ..good }, 512), field);
        assert_eq!(sense_of(0, good, 512), refused(Sense::INVALID_OPCODE));
        assert_eq!(sense_of(WLUN_DEVICE, good, 512), refused(Sense::INVALID_OPCODE));
        assert_eq!(sense_of(0x47, good, 512), refused(Sense::LUN_NOT_SUPPORTED));
    }
    assert_eq!(sense_of(WLUN_RPMB, SecurityProtocol { length: 1024, ..good }, 1024), field, "only writes have more");
    assert_eq!(sense_of(WLUN_RPMB, SecurityProtocol { length: 1024, ..good }, 512), field, "not all of it came");
    assert_eq!(sense_of(WLUN_RPMB, SecurityProtocol { out: true, protocol: 0, specific: 0, ..good }, 512), field);
    assert_eq!(sense_of(WLUN_RPMB, SecurityProtocol { out: false, ..good }, 512), refused(Sense::COMMAND_SEQUENCE));
    assert_eq!(sense_of(WLUN_RPMB, good, 512), (Status::Good, None));
    let (response, _) = host.command(WLUN_RPMB, good.cdb(), 1024, &frame.repeat(2));
    assert_eq!((response.status, response.residual), (Status::Good, Residual::Under(512)));
    let list = SecurityProtocol { out: false, protocol: 0, specific: 0, in_sectors: false, length: 512 };
    let (response, data) = host.command(WLUN_RPMB, list.cdb(), 512, &[]);
    assert_eq!((response.residual, &data[..]), (Residual::Under(502), &[0, 0, 0, 0, 0, 0, 0, 2, 0, 0xEC][..]));
    let certificate = SecurityProtocol { specific: 1, ..list };
    assert_eq!(
        host.command(WLUN_RPMB, certificate.cdb(), 4, &[]),
        (Response { residual: Residual::None, ..Response::GOOD }, vec![0; 4])
    );
    // A response is truncated, and stays until the next message.
    assert_eq!(host.out(&of(request::READ_COUNTER).to_bytes()), Response::GOOD);
    let (_, whole) = host.fetch(2);
    assert_eq!((whole.len(), Frame::parse(whole.first_chunk().unwrap()).result), (512, result::NO_KEY));
    assert_eq!(host.fetch(1).1, whole);
}

/// A program occupies the die, and later messages wait, in order.
#[test]
fn messages_take_the_time_of_a_command_and_of_what_flash_does() {
    let (config, mut host) = new();
    host.program_key();
    let (link, firmware, flash) = (config.link, config.firmware, config.flash);
    let command = link.request.0 + firmware.control.0 + link.response.0;
    let slices = u64::from(config.geometry.slices_per_unit());
    let span = |host: &mut Host, message: &[u8]| {
        host.rest();
        let begin = host.now;
        assert_eq!(host.out(message), Response::GOOD);
        host.now.0 - begin.0
    };
    let program = firmware.flash_op.0 + slices * flash.transfer_block.0 + flash.program.0;
    assert_eq!(span(&mut host, &write(0, 0, &[1])), command + link.bytes(512).0 + program);
    assert_eq!(span(&mut host, &write(1, 0, &[2; 64])), command + link.bytes(64 * 512).0 + program);
    assert_eq!(span(&mut host, &write(9, 0, &[1])), command + link.bytes(512).0, "it programs nothing");
    let read = Frame { blocks: 17, ..of(request::READ) };
    let blocks = (17 * 256u64).div_ceil(BLOCK_BYTES.into());
    let read_time = firmware.flash_op.0 + flash.read.0 + blocks * flash.transfer_block.0;
    assert_eq!(span(&mut host, &read.to_bytes()), command + link.bytes(512).0 + read_time);
    host.rest();
    let out = SecurityProtocol::of_frames(true, 1).cdb();
    host.send(0, WLUN_RPMB, out, 512, &write(2, 3, &[8]));
    host.send(1, WLUN_RPMB, out, 512, &of(request::READ_RESULT).to_bytes());
    host.send(2, WLUN_RPMB, SecurityProtocol::of_frames(false, 1).cdb(), 512, &[]);
    host.send(3, WLUN_RPMB, Cdb::TestUnitReady, 0, &[]);
    assert_eq!(host.wait(0b1111), [3, 0, 1, 2]);
    let frame = Frame::parse(host.answer(2).1.first_chunk().unwrap());
    assert_eq!((frame.kind, frame.result, frame.counter, frame.address), (0x0300, 0, 3, 3));
}

/// The device loses its power at each event of a write: counter and data are both old, or both new.
#[test]
fn a_power_cut_leaves_counter_and_data_of_one_moment() {
    let config = full_device(Without::NOTHING);
    let (_, mut host) = new();
    host.program_key();
    host.out(&write(0, 0, &[1; 3]));
    let start = host.into_disk();
    let mut seen = [0; 2];
    for events in 0.. {
        let mut host = Host::new(&config, start.clone());
        host.send(0, WLUN_RPMB, SecurityProtocol::of_frames(true, 3).cdb(), 1536, &write(1, 0, &[2; 3]));
        for _ in 0..events {
            host.now = host.device.next_deadline();
            host.device.advance(host.now);
        }
        let is_over = host.device.next_deadline() == Ns::NEVER;
        // The machine loses its power: the device's work is lost, and so are unsynced writes.
        host.device.device.power_cut(host.now);
        let mut disk = host.into_disk();
        disk.crash(|_| 0);
        let mut host = Host::new(&config, disk);
        host.out(&of(request::READ_COUNTER).to_bytes());
        let counter = Frame::parse(host.fetch(1).1.first_chunk().unwrap()).counter;
        assert_eq!(host.read(0, 4), [[counter as u8; 256].repeat(3), vec![0; 256]].concat(), "event {events}");
        let consistent = host.device.device.check_consistency();
        assert!(consistent.is_ok(), "event {events}: {consistent:?}");
        seen[counter as usize - 1] += 1;
        if is_over {
            break;
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

/// The disk is full: no result reports a successful write.
#[test]
fn what_cannot_be_kept_is_not_answered() {
    let (config, mut host) = new();
    host.program_key();
    assert_eq!(host.out(&write(0, 0, &[1])), Response::GOOD);
    let lost = Some(Sense { key: 3, asc: 0x0C, ascq: 0 });
    host.device.data.array_mut().disk_mut().writes_left = Some(0);
    // Everything that a host may send before it sees the failure.
    let out = SecurityProtocol::of_frames(true, 1).cdb();
    host.send(0, WLUN_RPMB, out, 512, &write(1, 0, &[2]));
    host.send(1, WLUN_RPMB, out, 512, &of(request::READ_RESULT).to_bytes());
    host.send(2, WLUN_RPMB, SecurityProtocol::of_frames(false, 1).cdb(), 512, &[]);
    host.wait(0b111);
    for tag in 0..3 {
        let (response, _) = host.answer(tag);
        assert_eq!((response.status, response.sense), (Status::CheckCondition, lost), "command {tag}");
    }
    let mut disk = host.into_disk();
    disk.writes_left = None;
    let mut host = Host::new(&config, disk);
    assert_eq!(host.read(0, 1), [1; 256]);
}
