// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts and changes of the host while clients of several connections make requests of every kind, against the
//! model of what they may rely on. Everything between their sockets and the flash is real, but the clock, which lets
//! them act when time comes to it.

use super::model::{Model, SECTOR, SECTORS};
use super::*;
use crate::connections::Setup;
use crate::control::Sources;
use crate::nbd::Export;
use crate::sockets::{Listener, Sockets};
use readpath_device::{UfsDevice, WithMedia};
use readpath_flash::AnySched;
use readpath_kit::Prng;
use readpath_run::{Clock, drive};
use readpath_stack::Typed;
use readpath_store::{Image, MemoryDisk, Store};
use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use tempfile::TempDir;

const CONNECTIONS: usize = 3;
/// Requests of one round: between two looks at everything.
const OF_A_ROUND: u32 = 60;
/// Requests that are not answered.
const MOST_ASKED: usize = 30;

/// A connection to the server, and what came from it and is not read.
struct Connection {
    stream: UnixStream,
    input: Vec<u8>,
    is_greeted: bool,
    /// It has been answered.
    is_known: bool,
}

/// What comes before the end.
enum Last {
    Slow,
    Read,
}

/// All clients, and who gives orders. They make random requests and check every answer.
struct World {
    folder: TempDir,
    rng: Prng,
    model: Model,
    connections: Vec<Connection>,
    /// The order that was not answered, and what came of its answer.
    order: Option<(UnixStream, Vec<u8>)>,
    is_off: bool,
    next_at: Ns,
    next_order: Ns,
    /// Requests of this round that are still to come, sectors that were read back, and rounds.
    left: u32,
    read_back: u64,
    rounds: u32,
    /// The server ends when it is closed, while a read of these is in the device, whose answer is to come late.
    stop: Option<UnixStream>,
    last: Vec<Last>,
    /// Cuts that met a request, changes of the host, and how many requests of each kind cuts met.
    cuts: u32,
    hosts: u32,
    met: [u32; 6],
}

fn kind_of(ask: Ask) -> usize {
    match ask {
        Ask::Read | Ask::Cache => 0,
        Ask::Flush => 1,
        Ask::Write { fua } => 2 + usize::from(fua),
        Ask::Trim { .. } => 4,
        Ask::Zero { .. } => 5,
    }
}

/// Reads what has come; true if nothing more can.
fn read_all(stream: &mut UnixStream, to: &mut Vec<u8>) -> bool {
    match stream.read_to_end(to) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => true,
        Err(error) => panic!("{error}"),
    }
}

impl World {
    fn socket(&self, name: &str) -> UnixStream {
        let stream = UnixStream::connect(self.folder.path().join(name)).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    }

    fn connect(&mut self) {
        let new = |world: &World| {
            let mut stream = world.socket("nbd");
            // Fixed newstyle without zeroes, then EXPORT_NAME of the first export.
            stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
            Connection { stream, input: Vec::new(), is_greeted: false, is_known: false }
        };
        self.connections = (0..CONNECTIONS).map(|_| new(self)).collect();
    }

    /// Reads all answers.
    fn hear(&mut self, now: Ns) {
        let told = self.order.as_mut().and_then(|(stream, input)| {
            read_all(stream, input).then(|| String::from_utf8(std::mem::take(input)).unwrap())
        });
        let told = told.unwrap_or_default();
        assert!(!told.starts_with("error: "), "{told}");
        let is_cut = told.starts_with("cut ") || told.starts_with("power off ");
        // Which answers of clients came after that of the order cannot be known.
        match is_cut {
            true => self.model.power_goes(),
            false if told.starts_with("host ") => {
                self.hosts += 1;
                self.model.all_stays();
            }
            false => {}
        }
        (0..self.connections.len()).for_each(|i| self.hear_one(i));
        if !told.is_empty() {
            (self.order, self.next_order) = (None, now + Ns(self.rng.below(500_000)));
        }
        if is_cut {
            self.model.power_went();
            self.cuts += u32::from(!told.contains(" with 0 requests "));
            self.model.asked.iter().for_each(|asked| self.met[kind_of(asked.ask)] += 1);
        }
        if told.contains(" which are lost; ") {
            self.model.forget();
            self.is_off = told.starts_with("power off ");
            self.connections.clear();
        }
        self.is_off &= !told.starts_with("power on ");
        if self.connections.is_empty() && !self.is_off {
            self.connect();
        }
    }

    fn hear_one(&mut self, i: usize) {
        let Connection { stream, input, is_greeted, is_known } = &mut self.connections[i];
        read_all(stream, input);
        if !*is_greeted && input.len() >= 28 {
            input.drain(..28);
            *is_greeted = true;
        }
        let mut at = 0;
        while *is_greeted && input.len() >= at + 16 {
            let head = &input[at..at + 16];
            let error = u32::from_be_bytes(head[4..8].try_into().unwrap());
            let number = u64::from_be_bytes(head[8..].try_into().unwrap());
            let asked = self.model.asked.iter().find(|asked| asked.number == number).expect("it was asked");
            let bytes = if asked.ask == Ask::Read && error == 0 { asked.bytes as usize } else { 0 };
            let Some(data) = input.get(at + 16..at + 16 + bytes) else { break };
            self.model.answer(number, error, data);
            *is_known = true;
            at += 16 + bytes;
        }
        input.drain(..at);
    }

    /// When they act next, if time is real.
    fn next_at(&self) -> Ns {
        let order = if self.wants_order() { self.next_order } else { Ns::NEVER };
        if self.may_ask() { self.next_at.min(order) } else { order }
    }

    fn is_busy(&self) -> bool {
        !self.model.asked.is_empty()
    }

    /// Whether no more is asked for.
    fn is_over(&self) -> bool {
        self.rounds == 0 || self.model.wrong.is_some()
    }

    /// A connection that was not answered yet.
    fn new_one(&self) -> Option<usize> {
        self.connections.iter().position(|connection| !connection.is_known)
    }

    fn wants_order(&self) -> bool {
        self.order.is_none() && (self.is_off || (self.is_busy() && !self.is_over() && self.new_one().is_none()))
    }

    fn may_ask(&self) -> bool {
        let may_send = self.left > 0 && self.model.asked.len() < MOST_ASKED;
        let may_end = self.is_over() && self.last.is_empty();
        !self.is_off && self.stop.is_some() && (may_send || may_end || !self.is_busy())
    }

    /// Does what is due at `now`, or the next thing.
    fn act(&mut self, now: Ns, must: bool) {
        if self.wants_order() && (self.next_order <= now || (must && self.is_off)) {
            let orders = ["slow write 3ms", "slow off", "stall 2ms", "stall off", "cut disconnect 1ms", "cut crash"];
            let hosts = ["host hpb=off", "host hpb=dcm", "host hpb=hcm"];
            let order = match self.rng.below(14) as usize {
                6 => hosts[self.rng.below(3) as usize],
                n => orders.get(n).unwrap_or(&"cut 1ms"),
            };
            self.order(if self.is_off { "power on" } else { order });
        }
        if !self.may_ask() || (self.next_at > now && !must) {
            return;
        }
        self.next_at = now + Ns(self.rng.below(400_000));
        if self.is_over() {
            // Nothing is left that an order could lose.
            if self.order.is_none() {
                match self.last.pop() {
                    Some(Last::Slow) => self.order("slow 3600s"),
                    Some(Last::Read) => {
                        self.ask(Ask::Read, 0, SECTOR as u32);
                        self.next_at = now + Ns(20_000);
                    }
                    None => self.stop = None,
                }
            }
        } else if self.left > 0 {
            for _ in 0..self.left.min(1 + self.rng.below(4) as u32) {
                self.left -= 1;
                self.ask_anything();
            }
        } else {
            // Everything is read back in parts, and another round begins.
            let part = SECTORS / 4;
            self.ask(Ask::Read, self.read_back * SECTOR as u64, part as u32 * SECTOR as u32);
            self.read_back += part;
            if self.read_back == SECTORS {
                (self.rounds, self.read_back) = (self.rounds - 1, 0);
                self.left = if self.rounds > 0 { OF_A_ROUND } else { 0 };
            }
        }
    }

    fn order(&mut self, words: &str) {
        let mut stream = self.socket("ctl");
        writeln!(stream, "{words}").unwrap();
        self.order = Some((stream, Vec::new()));
    }

    fn ask(&mut self, ask: Ask, offset: u64, bytes: u32) {
        // Each connection reads first, as clients do that look for partitions.
        let new = self.new_one();
        let by = new.unwrap_or(self.rng.below(CONNECTIONS as u64) as usize);
        let (ask, bytes) = if new.is_some() { (Ask::Read, SECTOR as u32) } else { (ask, bytes) };
        let Some((number, data)) = self.model.ask(by, ask, offset, bytes) else { return };
        let (command, flags): (u16, u16) = match ask {
            Ask::Read => (0, 0),
            Ask::Write { fua } => (1, fua.into()),
            Ask::Flush => (3, 0),
            Ask::Trim { fua } => (4, fua.into()),
            Ask::Cache => (5, 0),
            Ask::Zero { fua, no_hole } => (6, u16::from(fua) | u16::from(no_hole) << 1),
        };
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend(flags.to_be_bytes());
        request.extend(command.to_be_bytes());
        request.extend(number.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(bytes.to_be_bytes());
        request.extend(data);
        self.connections[by].stream.write_all(&request).unwrap();
    }

    /// Something random, in sectors: often within a block, sometimes of several whole ones.
    fn ask_anything(&mut self) {
        let rng = &mut self.rng;
        let fua = rng.below(3) == 0;
        let ask = match rng.below(12) {
            0..2 => Ask::Read,
            2 => Ask::Cache,
            3..5 => Ask::Flush,
            5..8 => Ask::Write { fua },
            8..10 => Ask::Trim { fua },
            _ => Ask::Zero { fua, no_hole: rng.below(2) == 0 },
        };
        let size = (BLOCK / SECTOR) as u64;
        let (from, count) = match rng.below(3) {
            0 => (rng.below(SECTORS / size) * size, size * (1 + rng.below(3))),
            1 => (rng.below(SECTORS), 1 + rng.below(6)),
            _ => (rng.below(SECTORS), 1 + rng.below(3 * size)),
        };
        let count = count.min(SECTORS - from);
        let (offset, bytes) = (from * SECTOR as u64, count as u32 * SECTOR as u32);
        let (offset, bytes) = if ask == Ask::Flush { (0, 0) } else { (offset, bytes) };
        self.ask(ask, offset, bytes);
    }
}

/// A clock that lets the world act: one of real time that is sometimes late, or one that jumps.
struct WorldClock {
    world: Rc<RefCell<World>>,
    poller: Rc<Poller>,
    jumps: bool,
    now: Ns,
}

impl Clock for WorldClock {
    const JUMPS: bool = false;
    const WAKES: bool = true;

    fn wait_until(&mut self, at: Ns) -> Ns {
        let WorldClock { world, poller, jumps, now } = self;
        let world = &mut *world.borrow_mut();
        if *jumps && at != Ns::NEVER {
            *now = at.max(*now);
            world.hear(*now);
            if world.rng.below(3) == 0 {
                world.act(*now, world.may_ask());
            }
            return *now;
        }
        while at > *now {
            world.hear(*now);
            poller.look();
            if poller.is_ready() {
                *now = Ns(now.0 + 1 + world.rng.below(2_000)).min(at);
                poller.wake(*now);
                break;
            }
            let next = world.next_at();
            if next >= at {
                assert!(at < Ns::NEVER, "everybody waits");
                *now = at + Ns(world.rng.below(2) * world.rng.below(30_000));
                break;
            }
            if !*jumps {
                *now = next.max(*now);
            }
            world.act(*now, *jumps);
        }
        *now
    }

    fn sleep_until(&mut self, at: Ns) {
        self.now = self.now.max(at);
    }
}

/// Plays `rounds` rounds; returns the world with what it met, and what went wrong. Time jumps, or is so many times
/// slower than the model's.
fn play(seed: u64, rounds: u32, scale: Option<f64>) -> World {
    let text = readpath_config::presets().iter().find(|preset| preset.file.contains("ufs21-64g")).unwrap().text;
    let set: Vec<_> = ["geometry.blocks_per_plane=30", "geometry.pages_per_block=16", "lu.0.blocks=4800"]
        .map(|set| readpath_config::Override::from_argument(set, "test").unwrap())
        .into();
    let base = readpath_config::device::parse(text, "preset").unwrap().with_overrides(&set).unwrap();
    let mut host: Host = "hpb=dcm".parse().unwrap();
    let mut empty = UfsDevice::<AnySched, WithMedia, ()>::new(&base.device, base.delays, ()).unwrap();
    let disk = |bytes| Ok(MemoryDisk::new(bytes));
    let mut store = Store::new(Image::create_on("", 1, &mut empty, disk).unwrap().array);

    let folder = TempDir::new().unwrap();
    let mut sockets = Sockets::default();
    let listener = sockets.listen_at(&folder.path().join("nbd")).unwrap();
    let control = sockets.listen_at(&folder.path().join("ctl")).unwrap();
    let (stop, stopped) = UnixStream::pair().unwrap();
    let poller = Rc::new(Poller::new().unwrap());
    poller.add_once(&stopped, STOP).unwrap();
    let sources = Sources {
        listener: Some(control),
        metrics: None,
        due: Vec::new(),
        time_jumps: scale.is_none(),
        longest: Ns::from_ms(60),
        preset: base.clone(),
        log: |line| panic!("{line}"),
    };
    let export = Export {
        name: base.name.clone(),
        description: String::new(),
        bytes: u64::from(base.device.lus[0].blocks) * BLOCK as u64,
        read_only: false,
        min_block: 1,
        preferred_block: BLOCK as u32,
        max_payload: 1 << 20,
    };
    let setup = Setup {
        poller: poller.clone(),
        listeners: vec![Listener::Unix(listener)],
        exports: [export].into(),
        scale: scale.map(|scale| (scale, Ns::ZERO)),
        disk: Rc::default(),
        log: |_| {},
    };
    let control = Control::new(sources, &poller).unwrap();
    let connections = Connections::new(setup).unwrap();
    // Flushes that a cut meets fail.
    let how: (bool, fn(&str)) = (scale.is_none(), |_| {});
    let mut clients = Clients::new(connections, control, Recording::default(), poller.clone(), how);
    let world = World {
        folder,
        rng: Prng::new(seed),
        model: Model::new(CONNECTIONS),
        connections: Vec::new(),
        order: None,
        is_off: false,
        next_at: Ns::ZERO,
        next_order: Ns::ZERO,
        left: OF_A_ROUND,
        read_back: 0,
        rounds,
        stop: Some(stop),
        last: vec![Last::Read, Last::Slow],
        cuts: 0,
        hosts: 0,
        met: [0; 6],
    };
    let world = Rc::new(RefCell::new(world));
    let mut clock = WorldClock { world: world.clone(), poller, jumps: scale.is_none(), now: Ns::ZERO };
    loop {
        let (preset, config) = host.of(&base).unwrap();
        let mut stack =
            Stack::<AnySched, _, (), _>::new(&preset.device, config, preset.delays, store, (), Typed).unwrap();
        let recovery = stack.power_on_with(clock.now, Store::array_mut, &mut |_| {}).unwrap();
        let from = stack.start(recovery.ready_at).unwrap();
        clock.sleep_until(from);
        clients.begin_again(from);
        drive(&mut stack, &mut clients, &mut (), &mut clock, from).unwrap();
        let Some(next) = clients.new_host() else { break };
        (host, store) = (next, stack.payload);
    }
    assert_eq!((clients.lost.take(), clients.connections.counts.broken), (None, 0));
    assert!(clock.jumps || clock.now < Ns::from_secs(3600), "the answer to the last read was held back");
    drop((clients, clock));
    Rc::into_inner(world).unwrap().into_inner()
}

/// Plays with each of these seeds.
fn play_all(seeds: std::ops::Range<u64>, scale: Option<f64>) {
    let (mut cuts, mut hosts, mut met) = (0, 0, [0; 6]);
    for seed in seeds {
        let world = play(seed, 20, scale);
        assert_eq!(world.model.wrong, None, "seed {seed}");
        met.iter_mut().zip(world.met).for_each(|(met, of)| *met += of);
        (cuts, hosts) = (cuts + world.cuts, hosts + world.hosts);
    }
    println!("{cuts} cuts with requests under way met {met:?}; {hosts} changes of the host");
    assert!(cuts > 5000 && hosts > 300 && met.iter().all(|&met| met > 1500), "{cuts} met {met:?}; {hosts} hosts");
}

#[test]
fn a_cut_takes_nothing_that_a_client_may_rely_on_where_time_jumps() {
    play_all(0..110, None);
}

#[test]
fn a_cut_takes_nothing_that_a_client_may_rely_on_at_scale_1000() {
    play_all(200..226, Some(1000.0));
}
