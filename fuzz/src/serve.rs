// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a server is given from outside: the bytes of an NBD client, an image, a file of orders; and a recording.

use crate::Bytes;
use readpath_config::DevicePreset;
use readpath_device::{DeviceConfig, Layout, UfsDevice, WithMedia, Without};
use readpath_flash::Lean;
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_serve::nbd::{Command, Errno, Event, Export, Extent, Session};
use readpath_serve::{Change, Changes, Faults, Recorded, replay};
use readpath_stack::{Payload, Stack, Typed};
use readpath_store::{Image, MemoryDisk, Store};
use readpath_testkit::full::full_device;
use readpath_testkit::{DELAYS, host};
use std::rc::Rc;
use std::sync::OnceLock;

/// What an NBD client sends, cut into pieces; each request is answered, and what is sent back is taken now and then.
pub fn nbd_session(data: &[u8]) {
    let mut input = Bytes(data);
    let options = input.u8();
    let export = Export {
        name: "disk".into(),
        description: String::new(),
        bytes: 1 << 20,
        read_only: options & 1 != 0,
        min_block: if options & 2 == 0 { 1 } else { 512 },
        preferred_block: 4096,
        max_payload: 1 << 16,
    };
    let mut session = Session::new(Rc::new([export]));
    while !input.is_empty() {
        let piece = input.take(1 + usize::from(options >> 2 & 3) * 21);
        let mut left = piece;
        while !left.is_empty() {
            answer(&mut session, options);
            let space = session.space();
            assert!(!space.is_empty(), "there is room when all requests have been taken");
            let n = space.len().min(left.len());
            space[..n].copy_from_slice(&left[..n]);
            session.filled(n);
            left = &left[n..];
        }
        if options & 16 == 0 {
            let bytes = session.output_bytes();
            session.sent(bytes / 2);
        }
    }
    answer(&mut session, options);
    let bytes = session.output().map(<[u8]>::len).sum::<usize>();
    assert_eq!(bytes, session.output_bytes());
    session.sent(bytes);
    assert!(!session.has_output());
}

fn answer(session: &mut Session, options: u8) {
    while let Some(event) = session.poll() {
        let Event::Request(request) = event else { continue };
        assert!(request.offset + u64::from(request.bytes) <= 1 << 20 || request.command == Command::Flush);
        let handle = request.handle;
        match request.command {
            _ if options & 32 != 0 => session.reply_error(handle, Errno::Io, "no"),
            Command::Read => session.reply_data(handle, request.offset, vec![0; request.bytes as usize]),
            Command::BlockStatus { .. } => {
                session.reply_status(handle, &[Extent { bytes: request.bytes, hole: true, zero: true }]);
            }
            Command::Write { data, .. } => {
                assert_eq!(data.len(), request.bytes as usize);
                session.give_buffer(data);
                session.reply_done(handle);
            }
            _ => session.reply_done(handle),
        }
    }
}

type Kept = Stack<Lean, Store<MemoryDisk>, (), Typed>;

fn stack(image: Image<MemoryDisk>, config: &DeviceConfig) -> Kept {
    Kept::new(config, host(None), DELAYS, Store::new(image.array), (), Typed).expect("a device")
}

/// A sealed image whose device has done some work.
struct Worked {
    config: DeviceConfig,
    bytes: Vec<u8>,
    /// What its blocks read as.
    contents: Vec<u8>,
}

/// Blocks that are read at a time.
const TOGETHER: u32 = 16;

/// The data of some blocks, if they can be read.
fn read(stack: &mut Kept, now: &mut Ns, block: u32, blocks: u32) -> Option<Vec<u8>> {
    stack.payload.bring(0, block, vec![0; blocks as usize * BLOCK_BYTES as usize]);
    stack.submit(*now, &BlockRequest { cookie: 0, lun: 0, op: BlockOp::Read, block, blocks });
    readpath_testkit::settle(stack, now);
    let refused = stack.poll_done().expect("it has settled").error.is_some();
    let (data, fault) = stack.payload.take(0);
    (!refused && fault.is_none()).then_some(data)
}

fn worked() -> &'static Worked {
    static WORKED: OnceLock<Worked> = OnceLock::new();
    WORKED.get_or_init(|| {
        let config = full_device(Without::NOTHING);
        let mut device = UfsDevice::<Lean, WithMedia, ()>::new(&config, DELAYS, ()).expect("a device");
        device.precondition([(0, 0, 500)], Layout::Random, 5, |_, _| {}).expect("room");
        let image = Image::create_on("device", 7, &mut device, |bytes| Ok(MemoryDisk::new(bytes))).expect("an image");
        let mut stack = stack(image, &config);
        let on = stack.power_on_with(Ns::ZERO, Store::array_mut, &mut |_| {}).expect("its own image");
        let mut now = stack.start(on.ready_at).expect("its own device");
        let mut work = |op, block, blocks: u32, byte| {
            stack.payload.bring(0, block, vec![byte; blocks as usize * BLOCK_BYTES as usize]);
            stack.submit(now, &BlockRequest { cookie: 0, lun: 0, op, block, blocks });
            readpath_testkit::settle(&mut stack, &mut now);
            stack.poll_done().expect("it has settled");
            stack.payload.take(0);
        };
        for i in 0..300u32 {
            let op = if i % 11 == 0 { BlockOp::Discard } else { BlockOp::Write };
            work(op, i * 37 % 590, 4, i as u8);
        }
        work(BlockOp::Flush, 0, 0, 0);
        let blocks = config.lus[0].blocks;
        let all = (0..blocks).step_by(TOGETHER as usize).map(|first| (first, TOGETHER.min(blocks - first)));
        let contents = all.flat_map(|(first, n)| read(&mut stack, &mut now, first, n).expect("nothing is wrong"));
        let contents = contents.collect();
        let array = stack.payload.array_mut();
        array.seal().expect("a disk in memory");
        let bytes = std::mem::take(array.disk_mut().bytes_mut());
        Worked { config, bytes, contents }
    })
}

/// An image with one bit flipped (4 bytes: its number), or with some bytes changed: pairs of an offset (4 bytes) and
/// the byte. With one bit flipped each block is unreadable, or reads as it was written.
pub fn image(data: &[u8]) {
    let Worked { config, bytes, contents } = worked();
    let mut disk = MemoryDisk::new(0);
    disk.bytes_mut().clone_from(bytes);
    let mut input = Bytes(data);
    let is_one_bit = input.u8() & 1 == 0;
    if is_one_bit {
        let bit = u32::from_be_bytes(input.array()) as usize % (8 * bytes.len());
        disk.bytes_mut()[bit / 8] ^= 1 << (bit % 8);
    }
    while !is_one_bit && !input.is_empty() {
        let at = u32::from_be_bytes(input.array()) as usize % bytes.len();
        disk.bytes_mut()[at] = input.u8();
    }
    let Ok(mut image) = Image::on(disk, bytes.len() as u64, true, [1; 16]) else { return };
    let examined = image.examine(|_| {});
    let mut stack = stack(image, config);
    let Ok(on) = stack.power_on_with(Ns::ZERO, Store::array_mut, &mut |_| {}) else { return };
    if examined.faults.is_empty() {
        stack.device.check_consistency().expect("nobody has found anything wrong");
    }
    if is_one_bit {
        let mut now = stack.start(on.ready_at).expect("a device that has begun");
        let of_chunk = TOGETHER as usize * BLOCK_BYTES as usize;
        for (first, expected) in (0..).step_by(TOGETHER as usize).zip(contents.chunks(of_chunk)) {
            let blocks = (expected.len() / BLOCK_BYTES as usize) as u32;
            let found = read(&mut stack, &mut now, first, blocks);
            assert!(found.is_none_or(|found| found == expected), "blocks from {first} on read as something else");
        }
    }
}

/// A device of some MiB, and the bytes of its image.
fn small() -> &'static (DevicePreset, Vec<u8>) {
    static SMALL: OnceLock<(DevicePreset, Vec<u8>)> = OnceLock::new();
    SMALL.get_or_init(|| {
        let text = readpath_config::presets().iter().find(|preset| preset.file.contains("ufs21-64g"));
        let set: Vec<_> = ["geometry.blocks_per_plane=30", "geometry.pages_per_block=8", "lu.0.blocks=2000"]
            .map(|set| readpath_config::Override::from_argument(set, "here").expect("a key"))
            .into();
        let preset = readpath_config::device::parse(text.expect("a preset").text, "preset").expect("a device");
        let preset = preset.with_overrides(&set).expect("a device");
        let mut device = UfsDevice::<Lean, WithMedia, ()>::new(&preset.device, preset.delays, ()).expect("a device");
        let image = Image::create_on("device", 7, &mut device, |bytes| Ok(MemoryDisk::new(bytes))).expect("an image");
        let mut array = image.array;
        (preset, std::mem::take(array.disk_mut().bytes_mut()))
    })
}

/// A file of orders and a recording. What can be read is replayed, if it is short.
pub fn recording(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        _ = Faults::read(text, "faults");
    }
    let Ok(recorded) = Recorded::read(data) else { return };
    let (preset, bytes) = small();
    let unit_bytes = u64::from(preset.device.lus[0].blocks) * u64::from(BLOCK_BYTES);
    if let Ok(Changes { changes, .. }) = recorded.changes(unit_bytes) {
        let is_inside = |change: &Change| change.bytes() == 0 || change.offset + change.bytes() <= unit_bytes;
        assert!(changes.iter().all(is_inside), "{changes:?}");
    }
    let mut disk = MemoryDisk::new(0);
    disk.bytes_mut().clone_from(bytes);
    let image = Image::on(disk, bytes.len() as u64, true, [1; 16]).expect("its own image");
    let mut looks = 0;
    let look = |_| {
        looks += 1;
        looks < 100
    };
    if let Ok(replayed) = replay(image, preset, recorded, look) {
        assert!(replayed.same <= replayed.requests);
    }
}
