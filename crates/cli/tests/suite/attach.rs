// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath attach` as a machine sees it, without a machine: a client of vfio-user that drives the controller.

use crate::common::{Room, text};
use readpath_kit::Prng;
use readpath_proto::query::{attribute, flag, opcode, result};
use readpath_proto::typed::{
    Cdb, Command as Scsi, FLAG_FUA, Form, HpbEntry, QueryRequest, Reply, ReplyBody, RequestBody, Response, Status,
    SubRegion, TaskRequest,
};
use readpath_testkit::vfio::{BASE, Client, Host};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{OFlags, fcntl_setfl};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;
const BLOCKS: u32 = 4_800;
/// A device of 19 MiB.
const SMALL: [&str; 6] =
    ["--set", "lu.0.blocks=4800", "--set", "geometry.blocks_per_plane=30", "--set", "geometry.pages_per_block=16"];

/// A program that waits for a machine. It ends with the test, however that ends.
struct Attached {
    child: Child,
    socket: PathBuf,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Attached {
    fn start(room: &Room, more: &[&str]) -> Attached {
        let program = room.command(&[]).get_program().to_owned();
        let child = Command::new(program)
            .current_dir(room.path(""))
            .args(["attach", "dev.img", "--socket", "s", "--instant", "--no-sync"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let mut attached = Attached { child, socket: room.path("s") };
        let mut lines = BufReader::new(attached.child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains("attached to") {
            line.clear();
            assert!(lines.read_line(&mut line).expect("a line") > 0, "the program has ended");
        }
        attached.child.stdout = Some(lines.into_inner());
        attached
    }

    /// Connects, again and again until the program has noticed that the client before is gone.
    fn connect<T>(&self, connect: fn(&Path) -> io::Result<T>) -> T {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            match connect(&self.socket) {
                Ok(connected) => return connected,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn host(&self) -> Host {
        let mut host = self.connect(Host::connect);
        host.start().expect("the controller is enabled");
        // The first command after a reset gets UNIT ATTENTION.
        host.command(0, 0, Cdb::TestUnitReady, 0, &[]).expect("an answer");
        host
    }

    /// Ends the program as Ctrl-C does; returns its output.
    fn stop(self) -> (String, String) {
        self.interrupt();
        self.ended()
    }

    fn interrupt(&self) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// The output of the program, which ends by itself.
    fn ended(mut self) -> (String, String) {
        let (mut said, mut complained) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut complained).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {said}{complained}");
        (said, complained)
    }
}

fn room() -> Room {
    let room = Room::new();
    room.good(&[&["image", "create", "dev.img"], &SMALL[..]].concat());
    room
}

fn response(reply: &Reply) -> Response {
    match reply.body {
        ReplyBody::Response(response) => response,
        other => panic!("{other:?}"),
    }
}

fn stamped(stamp: u64) -> Vec<u8> {
    stamp.to_le_bytes().repeat(BLOCK / 8)
}

fn write(block: u32, flags: u8) -> Cdb {
    Cdb::Write { form: Form::Ten, lba: block.into(), blocks: 1, flags }
}

fn read(block: u32) -> Cdb {
    Cdb::Read { form: Form::Ten, lba: block.into(), blocks: 1, flags: 0 }
}

const SYNC: Cdb = Cdb::SynchronizeCache { form: Form::Ten, lba: 0, blocks: 0, immed: false };

#[test]
fn data_outlives_clients_and_the_program() {
    let room = room();
    let attached = Attached::start(&room, &[]);
    let mut host = attached.host();
    let data = [stamped(7), stamped(8)].concat();
    let two = Cdb::Write { form: Form::Ten, lba: 17, blocks: 2, flags: 0 };
    assert_eq!(response(&host.command(3, 0, two, 8192, &data).unwrap().0).status, Status::Good);
    // The last page of memory lies in two mappings.
    let reply = host.command(30, 0, write(40, 0), 4096, &stamped(9)).unwrap().0;
    assert_eq!(response(&reply).status, Status::Good);

    let mut second = Client::connect(&attached.socket);
    assert!(second.as_mut().is_err() || second.unwrap().is_over(), "there is one client already");
    assert_eq!(host.command(3, 0, read(18), 4096, &[]).unwrap().1, stamped(8));
    assert_eq!(host.manage(TaskRequest { function: 0x80, lun: 0, task_tag: 3 }), Some(0));

    // A client that disconnects with a request under way, and the next one.
    host.send(5, 0, RequestBody::Command(Scsi { expected_bytes: 4096, cdb: read(17) }), &[]).unwrap();
    drop(host);
    let mut host = attached.host();
    assert_eq!(host.command(3, 0, read(17), 4096, &[]).unwrap().1, stamped(7));
    let (said, complained) = attached.stop();
    assert!(complained.contains("a client was turned away"), "{complained}");
    assert!(said.contains("2 clients, ") && said.contains(" turned away, 0 disconnected"), "{said}");
    assert!(said.contains("3 blocks written"), "{said}");

    // At the end the device flushes also what no flush had asked for.
    let attached = Attached::start(&room, &["--counters", "counters"]);
    let mut host = attached.host();
    for (block, stamp) in [(17, 7), (18, 8), (40, 9), (41, 0)] {
        assert_eq!(host.command(3, 0, read(block), 4096, &[]).unwrap().1, stamped(stamp), "block {block}");
    }
    attached.stop();
    let counters = room.read("counters");
    for line in ["slices_written 0", "unmapped_reads 1", "hpb_reads 0"] {
        assert!(counters.lines().any(|found| found == line), "{line}: {counters}");
    }
    assert!(counters.lines().all(|line| line.split_once(' ').is_some_and(|(_, n)| n.parse::<u64>().is_ok())));
    let nowhere = ["attach", "dev.img", "--socket", "s", "--counters", "no/where"];
    room.bad(&nowhere, &["--counters: no/where"]);
    room.good(&["image", "check", "dev.img"]);
}

#[test]
fn a_trace_says_when_the_machine_heard_of_replies() {
    let room = room();
    let attached = Attached::start(&room, &["--trace-io", "t.json"]);
    let mut host = attached.host();
    for block in 0..3 {
        host.command(1, 0, read(block), BLOCK as u32, &[]).expect("an answer");
    }
    drop(host);
    attached.stop();
    let told = room.good(&["dev", "upius", "t.json"]);
    assert_eq!(told.matches("> READ (10)").count(), 3, "{told}");
    let trace = room.read("t.json");
    let name = |line: &str| line.split('"').nth(3).expect("a name").to_owned();
    let events = trace.lines().filter(|l| l.contains("\"cat\":\"upiu\"") || l.contains("\"cat\":\"heard\""));
    let names: Vec<_> = events.map(name).collect();
    assert_eq!(names, ["COMMAND UPIU", "RESPONSE UPIU", "replies heard"].repeat(names.len() / 3));
}

#[test]
fn the_function_is_what_pci_says() {
    let room = room();
    let attached = Attached::start(&room, &["--pci-id", "8086:4b41"]);
    let mut host = attached.host();
    let client = &mut host.client;
    let config = client.read_region(7, 0, 64).unwrap();
    assert_eq!(config[..4], [0x86, 0x80, 0x41, 0x4B]);
    assert_eq!((&config[9..12], config[0x3D]), (&[1, 9, 1][..], 1));
    // The BAR tells its size, and what cannot be written stays.
    client.write_region(7, 0x10, &[0xFF; 4]).unwrap();
    assert_eq!(client.read_region(7, 0x10, 4).unwrap(), [0, 0xF0, 0xFF, 0xFF]);
    client.write_region(7, 0, &[0; 4]).unwrap();
    assert_eq!(client.read_region(7, 0, 2).unwrap(), [0x86, 0x80]);
    // Parts of registers can be read, and only whole ones written.
    assert_eq!(client.read_region(0, 0x09, 1).unwrap(), [0x03]);
    assert!(client.write_region(0, 0x21, &[1]).is_err());
    for (region, offset, bytes) in [(0, 0xFFD, 4), (0, u64::MAX, 4), (7, 255, 2), (1, 0, 4), (8, 0, 1), (77, 0, 1)] {
        assert!(client.read_region(region, offset, bytes).is_err(), "region {region} at {offset:#x}");
    }
    // A function that is not bus master reaches no memory.
    client.write_region(7, 4, &2u16.to_le_bytes()).unwrap();
    assert!(host.command(0, 0, Cdb::TestUnitReady, 0, &[]).is_none());
    // A reset makes it as it was when it was switched on.
    host.client.call(13, &[], &[]).unwrap();
    assert_eq!(host.client.read_region(0, 0x34, 4).unwrap(), [0; 4]);
    attached.stop();
}

#[test]
fn memory_that_was_taken_back_is_not_touched() {
    let room = room();
    let attached = Attached::start(&room, &[]);
    let mut host = attached.host();
    let file = host.memory.0.clone();
    let mut map = |address, bytes, offset| host.client.map(file.as_fd(), offset, address, bytes, 3);
    assert!(map(BASE + 4096, 4096, 0).is_err(), "it is lent already");
    assert!(map(BASE - 4096, 8192, 0).is_err(), "half of it is lent already");
    assert!(map(0, 1 << 40, 0).is_err(), "the file is shorter");
    assert!(map(u64::MAX - 4095, 8192, 0).is_err(), "there are no such addresses");
    assert!(map(0x1000, 0, 0).is_err(), "nothing");
    map(0x1000, 4096, 0).unwrap();
    // Everything is taken back.
    let unmap: Vec<u8> = [24u32, 2, 0, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    host.client.call(3, &unmap, &[]).unwrap();
    assert!(host.command(0, 0, Cdb::TestUnitReady, 0, &[]).is_none(), "the bus has failed");
    assert!(host.client.call(3, &[0; 24], &[]).is_err(), "no such mapping");
    attached.stop();
}

#[test]
fn an_interrupt_that_cannot_be_raised_holds_nobody() {
    let room = room();
    let attached = Attached::start(&room, &[]);
    let mut host = attached.host();
    let full = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    rustix::io::write(&full, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    let file = host.memory.0.clone();
    assert!(host.client.set_irqs(4 | 32, 1, &[file.as_fd()]).is_err(), "it is no eventfd");
    host.client.set_irqs(4 | 32, 1, &[full.as_fd()]).unwrap();
    // The server opens it without blocking. This makes writes to it block.
    fcntl_setfl(&full, OFlags::empty()).unwrap();
    host.client.set_irqs(1 | 32, 1, &[]).unwrap();
    host.send(1, 0, RequestBody::Command(Scsi { expected_bytes: 0, cdb: Cdb::TestUnitReady }), &[]).unwrap();
    host.client.read_region(0, 0x58, 4).expect("the server goes on");
    attached.stop();
}

#[test]
fn who_breaks_the_protocol_is_disconnected_and_the_next_is_served() {
    let room = room();
    let attached = Attached::start(&room, &[]);
    let header = |id: u16, command: u16, bytes: u32, flags: u32| {
        let mut header = [&id.to_le_bytes()[..], &command.to_le_bytes()].concat();
        header.extend([bytes, flags, 0].iter().flat_map(|word| word.to_le_bytes()));
        header
    };
    let broken = [
        header(1, 9, 15, 0),
        header(1, 9, u32::MAX, 0),
        header(1, 9, 16, 1),
        // A second agreement on the version.
        header(1, 1, 16, 0),
        vec![0xFF; 64],
    ];
    for bytes in &broken {
        let mut client = attached.connect(Client::connect);
        client.send(bytes, &[]).ok();
        assert!(client.is_over(), "{bytes:x?}");
    }
    let mut rng = Prng::new(3);
    for _ in 0..300 {
        // Messages with a good header and nothing else.
        let mut client = attached.connect(Host::connect).client;
        for _ in 0..20 {
            let payload: Vec<u8> = (0..rng.below(64)).map(|_| rng.below(4) as u8).collect();
            if client.call(rng.below(20) as u16, &payload, &[]).is_err_and(|e| e.raw_os_error().is_none()) {
                break;
            }
        }
    }
    let mut host = attached.host();
    assert_eq!(host.command(3, 0, read(17), 4096, &[]).unwrap().1, stamped(0));
    let (said, _) = attached.stop();
    let (before, _) = said.split_once(" disconnected").expect("how many");
    let disconnected: usize = before.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(disconnected >= broken.len(), "{said}");
}

/// What a block may hold: what was durable, and everything that was written since.
#[derive(Clone)]
struct May(Vec<u64>);

/// The program is killed at 200 points of running I/O. Data that was flushed, or written with FUA, stays; a block holds
/// no data but that written to it; and HPB entries from before are not trusted.
#[test]
fn killed_at_any_time_it_keeps_what_was_flushed() {
    let room = room();
    let mut rng = Prng::stream(1, "kills", 0);
    let mut blocks = vec![May(vec![0]); BLOCKS as usize];
    let mut entries = Vec::new();
    let (mut stamp, mut flushes, mut stale) = (0, 0, 0);
    for round in 0..200 {
        let mut attached = Attached::start(&room, &[]);
        let mut host = attached.host();
        let touched: Vec<u32> = (0..BLOCKS).filter(|block| blocks[*block as usize].0.len() > 1).collect();
        for block in touched.into_iter().chain((0..8).map(|_| rng.below(BLOCKS.into()) as u32)) {
            let reply = match entries.get(block as usize) {
                Some(&entry) => {
                    stale += 1;
                    host.command(1, 0, Cdb::HpbRead { lba: block, blocks: 1, entry, flags: 0, read_id: 0 }, 4096, &[])
                }
                None => host.command(1, 0, read(block), 4096, &[]),
            };
            let (reply, data) = reply.unwrap();
            assert_eq!(response(&reply).status, Status::Good);
            let holds = u64::from_le_bytes(*data.first_chunk().unwrap());
            assert_eq!(data, stamped(holds), "round {round}: block {block} is of two writes");
            let may = &mut blocks[block as usize].0;
            assert!(may.contains(&holds), "round {round}: block {block} holds {holds}, not {may:?}");
            // From now on the block holds this value, whether or not it is durable.
            *may = vec![holds];
        }
        let killed_after = rng.below(40);
        for i in 0..=killed_after {
            let is_last = i == killed_after;
            match rng.below(12) {
                0 | 1 => {
                    if host.command(2, 0, SYNC, 0, &[]).is_some() {
                        flushes += 1;
                        blocks.iter_mut().for_each(|may| drop(may.0.drain(..may.0.len() - 1)));
                    }
                }
                2 => {
                    let at = SubRegion { region: 0, index: 0 };
                    let load = Cdb::HpbReadBuffer { buffer_id: 1, at, alloc: 32768 };
                    let (_, bytes) = host.command(4, 0, load, 32768, &[]).unwrap();
                    entries = bytes.as_chunks::<8>().0.iter().map(|entry| HpbEntry(*entry)).collect();
                }
                _ => {
                    stamp += 1;
                    let block = rng.below(64) as u32 * 7;
                    let flags = if rng.below(4) == 0 { FLAG_FUA } else { 0 };
                    blocks[block as usize].0.push(stamp);
                    if is_last {
                        // Under way when the program is killed.
                        let body = RequestBody::Command(Scsi { expected_bytes: 4096, cdb: write(block, flags) });
                        host.send(3, 0, body, &stamped(stamp)).unwrap();
                        continue;
                    }
                    let reply = host.command(3, 0, write(block, flags), 4096, &stamped(stamp)).unwrap().0;
                    assert_eq!(response(&reply).status, Status::Good);
                    if flags == FLAG_FUA {
                        blocks[block as usize].0 = vec![stamp];
                    }
                }
            }
        }
        attached.child.kill().unwrap();
        attached.child.wait().unwrap();
        assert!(host.wait(Duration::from_millis(1)).is_none() || host.client.is_over());
    }
    assert!(flushes > 100 && stale > 500, "{flushes} flushes, {stale} reads by old entries");
    room.good(&["image", "check", "dev.img"]);
}

/// Result and value of a query.
fn query(host: &mut Host, opcode: u8, idn: u8, value: u32) -> (u8, u32) {
    let query = QueryRequest { opcode, idn, index: 0, selector: 0, length: 0, value };
    let (reply, _) = host.ask(31, 0, RequestBody::Query(query), &[]).expect("an answer");
    match reply.body {
        ReplyBody::Query(answer) => (answer.result, answer.value),
        other => panic!("{other:?}"),
    }
}

/// What a host has written of persistent attributes and flags is there when the program was killed.
#[test]
fn attributes_outlive_the_program() {
    let room = room();
    let (mut boot, mut volatile) = (0, 0);
    for round in 0..4 {
        let mut attached = Attached::start(&room, &[]);
        let mut host = attached.host();
        assert_eq!(query(&mut host, opcode::READ_ATTRIBUTE, attribute::BOOT_LUN_EN, 0), (result::SUCCESS, boot));
        let control = attribute::EXCEPTION_EVENT_CONTROL;
        assert_eq!(query(&mut host, opcode::READ_ATTRIBUTE, control, 0), (result::SUCCESS, 0), "after {volatile}");
        let (lock, locked) = (attribute::CONFIG_DESCR_LOCK, u32::from(round > 1));
        assert_eq!(query(&mut host, opcode::READ_ATTRIBUTE, lock, 0), (result::SUCCESS, locked));
        assert_eq!(query(&mut host, opcode::READ_FLAG, flag::DISABLE_FW_UPDATE, 0), (result::SUCCESS, locked));
        if locked == 1 {
            assert_eq!(query(&mut host, opcode::WRITE_ATTRIBUTE, lock, 0), (result::ALREADY_WRITTEN, 0));
        }
        if round == 1 {
            assert_eq!(query(&mut host, opcode::WRITE_ATTRIBUTE, lock, 1), (result::SUCCESS, 1));
            assert_eq!(query(&mut host, opcode::SET_FLAG, flag::DISABLE_FW_UPDATE, 0), (result::SUCCESS, 1));
        }
        (boot, volatile) = ([1, 2, 0, 1][round], 4);
        assert_eq!(query(&mut host, opcode::WRITE_ATTRIBUTE, control, volatile), (result::SUCCESS, volatile));
        assert_eq!(query(&mut host, opcode::WRITE_ATTRIBUTE, attribute::BOOT_LUN_EN, boot), (result::SUCCESS, boot));
        attached.child.kill().unwrap();
        attached.child.wait().unwrap();
    }
    room.good(&["image", "check", "dev.img"]);
    // A copy has them, and an image that was emptied is that of a new device.
    room.good(&["image", "clone", "dev.img", "--output", "copy.img"]);
    room.good(&["image", "reset", "dev.img"]);
    let record = |name: &str| fs::read(room.path(name)).unwrap()[5120..5632].to_vec();
    assert!(record("dev.img") == [0; 512] && record("copy.img")[12] == 1);
    let mut damaged = fs::read(room.path("copy.img")).unwrap();
    damaged[5120] ^= 2;
    fs::write(room.path("damaged.img"), damaged).unwrap();
    for command in [&["image", "check", "damaged.img"][..], &["attach", "damaged.img", "--socket", "s"]] {
        let output = room.output(command);
        assert_eq!(output.status.code(), Some(4), "{command:?}");
        let said = text(&output.stderr).to_owned() + text(&output.stdout);
        assert!(said.contains("the record of attributes and flags (byte 5120 of the image) is damaged"), "{said}");
    }
}

#[test]
fn mistakes_are_named() {
    let room = room();
    let attach =
        |more: &[&str], says: &[&str]| room.bad(&[&["attach", "dev.img", "--socket", "s"], more].concat(), says);
    attach(&["--pci-id", "144d"], &["--pci-id", "'144d' is not VVVV:DDDD"]);
    attach(&["--instant", "--scale", "2"], &["--scale"]);
    room.bad(&["attach", "no.img", "--socket", "s"], &["no.img"]);
    room.write("taken", "");
    room.bad(&["attach", "dev.img", "--socket", "taken"], &["taken: there is a file already, which is no socket"]);
    room.bad(&["attach", "dev.img", "--socket", "no/where"], &["no/where"]);
    let attached = Attached::start(&room, &[]);
    attach(&[], &["dev.img", "in use"]);
    fs::copy(room.path("dev.img"), room.path("other.img")).unwrap();
    room.bad(&["attach", "other.img", "--socket", "s"], &["another program serves this socket"]);
    attached.stop();
    let help = room.output(&["attach", "--help"]);
    assert!(text(&help.stdout).contains("vfio-user"));
}

/// The printed arguments, read by a shell, are those of QEMU, whatever is in the name of the socket.
#[test]
fn the_printed_arguments_can_be_pasted() {
    let room = room();
    for name in ["s", "it's \"a\" socket, $HOME\\n `x`"] {
        let mut command = Command::new(room.command(&[]).get_program());
        command.current_dir(room.path("")).args(["attach", "dev.img", "--socket", name]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap() + "\n");
        let attached = lines.by_ref().find(|line| line.starts_with("attached to")).expect("it has begun");
        assert!(attached.contains(name));
        let printed: String = lines.by_ref().take(2).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        let shell = Command::new("sh").args(["-c", &format!("printf '%s\\n' {printed}")]).output().unwrap();
        let words: Vec<&str> = text(&shell.stdout).lines().collect();
        assert_eq!(words[..3], ["-machine", "q35,memory-backend=mem", "-object"], "{printed}");
        assert_eq!(words[4], "-device");
        let device: serde_json::Value = serde_json::from_str(words[5]).expect("JSON");
        assert_eq!(device["socket"]["path"], name, "{printed}");
    }
}

#[test]
fn a_model_of_another_kind_of_drive_is_named() {
    let room = Room::new();
    room.good(&["image", "create", "dev.img", "--device", "nvme-dramless-512g", "--set", "lu.0.blocks=65536"]);
    let (_, complained) = Attached::start(&room, &[]).stop();
    assert!(complained.contains("nvme-dramless-512g models an NVMe drive"), "{complained}");
    room.good(&["image", "create", "ufs.img"]);
    fs::rename(room.path("ufs.img"), room.path("dev.img")).unwrap();
    assert_eq!(Attached::start(&room, &[]).stop().1, "");
}

/// VPD page 80h of unit 0.
fn serial(room: &Room) -> String {
    let attached = Attached::start(room, &[]);
    let mut host = attached.host();
    let (_, page) = host.command(1, 0, Cdb::Inquiry { vpd: Some(0x80), alloc: 255 }, 20, &[]).expect("an answer");
    drop(host);
    attached.stop();
    text(&page[4..20]).to_owned()
}

#[test]
fn devices_of_two_images_differ() {
    let room = room();
    let first = serial(&room);
    assert!(room.good(&["image", "info", "dev.img"]).contains(&format!("serial      {first}")), "{first}");
    // It is kept by a copy, and when the image is emptied.
    room.good(&["image", "clone", "dev.img", "--output", "copy.img"]);
    room.good(&["image", "reset", "dev.img"]);
    assert_eq!(serial(&room), first);
    fs::rename(room.path("copy.img"), room.path("dev.img")).unwrap();
    assert_eq!(serial(&room), first);
    // Another name, and another seed.
    room.good(&[&["image", "create", "other.img"], &SMALL[..]].concat());
    fs::rename(room.path("other.img"), room.path("dev.img")).unwrap();
    let other = serial(&room);
    fs::remove_file(room.path("dev.img")).unwrap();
    room.good(&[&["image", "create", "dev.img", "--seed", "2"], &SMALL[..]].concat());
    let seeded = serial(&room);
    assert!(first != other && first != seeded && other != seeded, "{first} {other} {seeded}");
    fs::remove_file(room.path("dev.img")).unwrap();
    room.good(&[&["image", "create", "dev.img"], &SMALL[..]].concat());
    assert_eq!(serial(&room), first, "made again, it is the same device");
}

#[test]
fn the_trace_of_a_killed_program_is_in_its_part() {
    let room = room();
    let mut attached = Attached::start(&room, &["--trace-io", "t.json"]);
    let mut host = attached.host();
    for block in 0..400 {
        host.command(1, 0, read(block), BLOCK as u32, &[]).expect("an answer");
    }
    attached.child.kill().unwrap();
    attached.child.wait().unwrap();
    assert!(!room.path("t.json").exists());
    let part = format!("t.json.part{}", attached.child.id());
    let told = room.good(&["dev", "upius", &part]);
    let reads = told.matches("> READ (10)").count();
    assert!((100..400).contains(&reads), "{reads} reads: {told}");
}

/// Ctrl-C while a machine has the device: its driver hears of it at once, and has time to find that there is none any
/// more. Then the program ends by itself.
#[test]
fn a_machine_is_told_that_its_device_goes() {
    let room = room();
    let attached = Attached::start(&room, &[]);
    let mut host = attached.host();
    assert_eq!(response(&host.command(3, 0, write(17, 0), 4096, &stamped(5)).unwrap().0).status, Status::Good);
    attached.interrupt();
    let begun = Instant::now();
    assert!(host.wait(Duration::from_secs(60)).is_none(), "nothing was completed");
    assert!(begun.elapsed() < Duration::from_secs(30), "the interrupt came");
    let status = host.client.read_region(0, 0x30, 4).expect("it answers still");
    assert_eq!(status[0] & 7, 0, "neither a device nor lists");
    assert!(host.start().is_err(), "there is no device");
    let (said, complained) = attached.ended();
    assert!(said.contains("1 blocks written"), "{said}");
    assert!(complained.contains("its device is gone"), "{complained}");
    let attached = Attached::start(&room, &[]);
    let mut host = attached.host();
    assert_eq!(host.command(3, 0, read(17), 4096, &[]).unwrap().1, stamped(5));
    // Who has disconnected is not waited for.
    drop(host);
    assert_eq!(attached.stop().1.matches("its device is gone").count(), 0);
}
