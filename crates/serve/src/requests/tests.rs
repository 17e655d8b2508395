// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts while requests of every kind are under way, against a model of the guarantees: answered writes are there
//! until power is lost, and those answered with FUA, or before a successful FLUSH was sent, stay.

use super::*;
use crate::edges::{Ask, BLOCK};
use crate::host::Host;
use crate::orders::Order;
use readpath_device::{Probe, UfsDevice, WithMedia};
use readpath_flash::{AnySched, DieSched};
use readpath_kit::Prng;
use readpath_run::{RunError, Source, Virtual, drive};
use readpath_stack::{Payload, Stack, Typed, Wire};
use readpath_store::{Image, MemoryDisk, Store};

const SECTOR: usize = 512;
const SECTORS: u64 = 24 * BLOCK as u64 / SECTOR as u64;
/// Requests of one round: between two looks at everything.
const OF_A_ROUND: u32 = 60;

/// What a sector may hold. Values are numbers of requests; zero is what trims leave.
#[derive(Clone, Debug)]
struct Sector {
    /// The value that stays whatever happens, and those answered since; a request under way is the last.
    values: Vec<u32>,
    /// The last value that was answered is there for certain: power was not lost since.
    is_known: bool,
    is_changing: bool,
}

/// A request that has not been answered.
struct Asked {
    job: u64,
    ask: Ask,
    /// Sectors that it changes or reads.
    from: usize,
    to: usize,
    /// For a flush: how many values of each sector it makes permanent. For a read: the values that it may find.
    covers: Vec<usize>,
    may_find: Vec<Vec<u32>>,
    /// For a read: no request has changed these sectors meanwhile.
    is_steady: bool,
}

/// A client that makes random requests and checks every answer.
struct Client {
    requests: Requests,
    rng: Prng,
    sectors: Vec<Sector>,
    asked: Vec<Asked>,
    next: u64,
    /// Requests of this round that are still to come, and whether everything is being read back.
    left: u32,
    read_back: usize,
    rounds: u32,
    losses: u32,
    /// Cuts that met a request.
    cuts: u32,
    next_at: Ns,
    heard: Ns,
    /// How many requests of each kind were under way when power was lost, as `Ask` and FUA.
    met: [u32; 6],
    next_order: Ns,
    orders: Prng,
    wrong: Option<String>,
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

fn is_change(ask: Ask) -> bool {
    matches!(ask.kind(), IoKind::Write | IoKind::Trim)
}

impl Client {
    fn new(seed: u64, rounds: u32, from: Ns) -> Client {
        let sector = Sector { values: vec![0], is_known: true, is_changing: false };
        Client {
            requests: Requests::default(),
            rng: Prng::new(seed),
            sectors: vec![sector; SECTORS as usize],
            asked: Vec::new(),
            next: 0,
            left: OF_A_ROUND,
            read_back: 0,
            rounds,
            losses: 0,
            cuts: 0,
            next_at: Ns::ZERO,
            heard: Ns::ZERO,
            met: [0; 6],
            next_order: from + Ns::from_ms(5),
            orders: Prng::new(seed + 1000),
            wrong: None,
        }
    }

    /// Power may have been lost since the last answer: what was answered may be gone, unless it stays.
    fn look_at_power(&mut self) {
        if std::mem::replace(&mut self.losses, self.requests.troubles.power_losses()) == self.losses {
            return;
        }
        self.cuts += u32::from(!self.asked.is_empty());
        for asked in &mut self.asked {
            self.met[kind_of(asked.ask)] += 1;
            asked.is_steady = false;
            for (found, sector) in asked.may_find.iter_mut().zip(&self.sectors[asked.from..asked.to]) {
                found.extend(&sector.values);
            }
        }
        self.sectors.iter_mut().for_each(|sector| sector.is_known = false);
    }

    /// Host and device lost their power: these requests are never answered, and what they change may be there or not.
    fn forget(&mut self, lost: &[Job]) {
        self.cuts += u32::from(!lost.is_empty());
        for job in lost {
            let at = self.asked.iter().position(|asked| asked.job == job.number).expect("it was asked");
            let asked = self.asked.swap_remove(at);
            self.met[kind_of(asked.ask)] += 1;
            self.sectors[asked.from..asked.to]
                .iter_mut()
                .for_each(|sector| sector.is_changing &= !is_change(asked.ask));
        }
        assert!(self.asked.is_empty());
        self.sectors.iter_mut().for_each(|sector| sector.is_known = false);
    }

    fn ask(&mut self, port: &mut impl Port, now: Ns, ask: Ask, offset: u64, bytes: u32) {
        self.next += 1;
        let size = (BLOCK / SECTOR) as u64;
        let (mut from, mut to) = (offset / SECTOR as u64, (offset + u64::from(bytes)) / SECTOR as u64);
        if matches!(ask, Ask::Trim { .. }) {
            (from, to) = (from.next_multiple_of(size), to / size * size);
        }
        let (from, to) = (from as usize, to.max(from) as usize);
        if is_change(ask) && self.sectors[from..to].iter().any(|sector| sector.is_changing) {
            return;
        }
        let is_write = matches!(ask, Ask::Write { .. });
        let value = if is_write { self.next as u32 } else { 0 };
        let mut asked =
            Asked { job: self.next, ask, from, to, covers: Vec::new(), may_find: Vec::new(), is_steady: true };
        match ask {
            Ask::Flush => {
                let covered = |sector: &Sector| match sector.is_known {
                    true => sector.values.len() - usize::from(sector.is_changing),
                    false => 1,
                };
                asked.covers = self.sectors.iter().map(covered).collect();
            }
            Ask::Read | Ask::Cache => {
                for sector in &self.sectors[from..to] {
                    let certain =
                        if sector.is_known { sector.values.len() - 1 - usize::from(sector.is_changing) } else { 0 };
                    asked.may_find.push(sector.values[certain..].to_vec());
                    asked.is_steady &= !sector.is_changing;
                }
            }
            _ => {
                for sector in &mut self.sectors[from..to] {
                    sector.values.push(value);
                    sector.is_changing = true;
                }
                for other in self.asked.iter_mut().filter(|other| other.ask == Ask::Read) {
                    for sector in from.max(other.from)..to.min(other.to) {
                        other.may_find[sector - other.from].push(value);
                        other.is_steady = false;
                    }
                }
            }
        }
        self.asked.push(asked);
        let data = if is_write { value.to_le_bytes().repeat(bytes as usize / 4) } else { Vec::new() };
        let job =
            Job { owner: Some((0, 1)), number: self.next, ask, offset, bytes, data, since: now, ..Job::default() };
        self.requests.add(port, now, job, &mut |_| None);
    }

    /// Something random, in sectors: often within a block, sometimes of several whole ones.
    fn ask_anything(&mut self, port: &mut impl Port, now: Ns) {
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
        self.ask(port, now, ask, offset, bytes);
    }

    fn hear_ends(&mut self, now: Ns) {
        self.heard = now;
        self.look_at_power();
        while let Some(job) = self.requests.poll() {
            let at = self.asked.iter().position(|asked| asked.job == job.number).expect("it was asked");
            let asked = self.asked.swap_remove(at);
            let is_good = job.failure.is_none();
            match asked.ask {
                Ask::Flush if is_good => {
                    for (sector, &covered) in self.sectors.iter_mut().zip(&asked.covers) {
                        // A FUA or another flush may have been faster.
                        let gone = covered.min(sector.values.len()) - 1;
                        sector.values.drain(..gone);
                    }
                    // Flushes that were sent later cover fewer values that are still listed.
                    self.shift(&asked.covers);
                }
                Ask::Flush | Ask::Cache => {}
                Ask::Read => self.check(&asked, &job, now),
                _ => self.changed(&asked, is_good),
            }
        }
    }

    fn shift(&mut self, by: &[usize]) {
        for other in self.asked.iter_mut().filter(|other| other.ask == Ask::Flush) {
            for (covers, by) in other.covers.iter_mut().zip(by) {
                *covers = covers.saturating_sub(by - 1).max(1);
            }
        }
    }

    fn changed(&mut self, asked: &Asked, is_good: bool) {
        let stays =
            matches!(asked.ask, Ask::Write { fua: true } | Ask::Trim { fua: true } | Ask::Zero { fua: true, .. });
        assert!(is_good, "{:?} was refused", asked.ask);
        let mut by = vec![1; self.sectors.len()];
        for (sector, by) in self.sectors[asked.from..asked.to].iter_mut().zip(&mut by[asked.from..asked.to]) {
            (sector.is_changing, sector.is_known) = (false, true);
            if stays {
                *by = sector.values.len();
                sector.values.drain(..*by - 1);
            }
        }
        self.shift(&by);
    }

    fn check(&mut self, asked: &Asked, job: &Job, now: Ns) {
        let first = asked.from * SECTOR - job.offset as usize / BLOCK * BLOCK;
        for (i, may_find) in asked.may_find.iter().enumerate() {
            let bytes = &job.data[first + i * SECTOR..][..SECTOR];
            let found = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let sector = &mut self.sectors[asked.from + i];
            if !may_find.contains(&found) || *bytes != *found.to_le_bytes().repeat(SECTOR / 4) {
                let (at, lost) = (asked.from + i, self.losses);
                self.wrong.get_or_insert_with(|| {
                    format!("at {now}, after {lost} cuts: sector {at} reads {found}, and may be one of {may_find:?}")
                });
            } else if asked.is_steady && !sector.is_changing {
                // The sector holds this value, and lost values stay lost.
                let place = sector.values.iter().rposition(|&value| value == found).expect("it may be found");
                sector.values.truncate(place + 1);
                sector.is_known = true;
            }
        }
    }
}

impl Source for Client {
    fn next_at(&self) -> Ns {
        let may_ask = !self.requests.troubles.is_off() && (self.left > 0 || self.asked.is_empty());
        let more = if may_ask { self.next_at.max(Ns(self.heard.0 + 1)) } else { Ns::NEVER };
        more.min(self.requests.next_at())
    }

    fn act(&mut self, port: &mut impl Port, now: Ns, _: Ns) {
        self.look_at_power();
        self.requests.release(port, now, &mut |_| None);
        self.hear_ends(now);
        if self.next_at > now {
            return;
        }
        if self.left > 0 {
            self.left -= 1;
            self.ask_anything(port, now);
        } else if self.asked.is_empty() {
            // Everything is read back in parts, and another round begins.
            let from = self.read_back;
            self.read_back += SECTORS as usize / 4;
            self.ask(port, now, Ask::Read, (from * SECTOR) as u64, (SECTORS as usize / 4 * SECTOR) as u32);
            if self.read_back >= SECTORS as usize {
                (self.rounds, self.read_back) = (self.rounds - 1, 0);
                self.left = if self.rounds > 0 { OF_A_ROUND } else { 0 };
            }
        }
        self.hear_ends(now);
        // A whole flash program takes a millisecond.
        self.next_at = now + Ns(self.rng.below(400_000));
    }

    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        self.look_at_power();
        self.requests.step_ended(port, cookie, None, now, &mut |_| None);
        self.hear_ends(now);
        None
    }

    fn refused(&mut self, _: &mut impl Port, _: u32, sense: SenseData, _: Ns) -> Result<(), RunError> {
        panic!("{sense:?}")
    }

    fn io(&self, cookie: u32) -> Io {
        self.requests.io(cookie)
    }

    fn in_flight(&self) -> u32 {
        self.requests.count()
    }

    fn is_over(&self) -> bool {
        self.wrong.is_some() || (self.rounds == 0 && self.left == 0 && self.asked.is_empty())
    }

    fn work_at(&self) -> Ns {
        self.next_order
    }

    /// Cuts the power at random, and makes answers late now and then.
    fn work<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
    ) -> Result<Ns, RunError> {
        let orders = ["slow write 3ms", "slow off", "stall 2ms", "stall off", "cut disconnect 1ms", "cut crash"];
        let order = orders.get(self.orders.below(12) as usize).unwrap_or(&"cut 1ms");
        let is_off = self.requests.troubles.is_off();
        let order: Order = if is_off { "power on" } else { order }.parse().unwrap();
        self.look_at_power();
        let carried = order.carry_out(stack, &mut self.requests, now).unwrap();
        if matches!(order, Order::Disconnect { .. } | Order::Crash) {
            self.forget(&carried.lost);
        }
        self.next_order = carried.after + Ns(self.orders.below(6_000_000));
        Ok(carried.after)
    }

    fn lost(&mut self, _: &mut impl Port, _: Ns) {
        unreachable!("orders say what is lost")
    }
}

/// Runs a client through `rounds` rounds; returns the client with its errors and the situations that it met.
fn run(seed: u64, rounds: u32) -> Client {
    let text = readpath_config::presets().iter().find(|preset| preset.file.contains("ufs21-64g")).unwrap().text;
    let set: Vec<_> = ["geometry.blocks_per_plane=30", "geometry.pages_per_block=16", "lu.0.blocks=4800"]
        .map(|set| readpath_config::Override::from_argument(set, "test").unwrap())
        .into();
    let preset = readpath_config::device::parse(text, "preset").unwrap().with_overrides(&set).unwrap();
    let (preset, host) = "hpb=dcm".parse::<Host>().unwrap().of(&preset).unwrap();
    let mut empty = UfsDevice::<AnySched, WithMedia, ()>::new(&preset.device, preset.delays, ()).unwrap();
    let disk = |bytes| Ok(MemoryDisk::new(bytes));
    let image = Image::create_on("", 1, &mut empty, disk).unwrap();
    let store = Store::new(image.array);
    let mut stack = Stack::<AnySched, _, (), _>::new(&preset.device, host, preset.delays, store, (), Typed).unwrap();
    let recovery = stack.power_on_with(Ns::ZERO, Store::array_mut, &mut |_| {}).unwrap();
    let from = stack.start(recovery.ready_at).unwrap();
    let mut client = Client::new(seed, rounds, from);
    drive(&mut stack, &mut client, &mut (), &mut Virtual, from).unwrap();
    client
}

#[test]
fn a_cut_takes_nothing_that_a_client_may_rely_on() {
    let mut met = [0; 6];
    let (mut losses, mut cuts) = (0, 0);
    for seed in 0..60 {
        let client = run(seed, 50);
        assert_eq!(client.wrong, None, "seed {seed}");
        met.iter_mut().zip(client.met).for_each(|(met, of)| *met += of);
        (losses, cuts) = (losses + client.losses, cuts + client.cuts);
    }
    println!("{cuts} cuts with requests under way, {losses} of the device alone; they met {met:?}");
    assert!(cuts > 10_000 && met.iter().all(|&met| met > 3000), "{cuts} cuts met {met:?}");
}

#[test]
fn a_client_is_informed_why_the_device_refuses() {
    for (key, asc, errno, says) in [
        (7, 0x27, Errno::NoSpace, "gone bad"),
        (7, 0, Errno::NoSpace, "7h/00h/00h"),
        (5, 0x21, Errno::Inval, "5h/21h/00h"),
        (3, 0x11, Errno::Io, "3h/11h/00h"),
    ] {
        let (found, what) = refusal(SenseData { key, asc, ascq: 0 });
        assert!(found == errno && what.contains(says), "{key:X}h/{asc:02X}h: {found:?}, {what}");
    }
}
