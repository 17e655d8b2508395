// SPDX-License-Identifier: MIT OR Apache-2.0
//! NBD clients as a source of requests: what they ask is submitted when it comes, and answered when it has ended. It
//! knows sockets and the protocol, and nothing of what is behind the port.

use crate::control::{CONTROL, Control};
use crate::edges::{Ask, BLOCK, Steps};
use crate::jobs::{Job, Jobs};
use crate::lateness::Lateness;
use crate::nbd::{Closed, Command, Errno, Event, Export, Extent, Request, Session};
use crate::poller::{Poller, Ready};
use crate::sockets::{Listener, Stream};
use readpath_host::SenseData;
use readpath_kit::Ns;
use readpath_run::{LATEST, LUN, Port, RunError, Source};
use readpath_store::{Fault, Transfers};
use readpath_workload::{Io, IoKind};
use std::cell::Cell;
use std::io::{self, ErrorKind, IoSlice};
use std::rc::Rc;
use std::time::Duration;

/// Connections at once. More are closed at once.
const MOST_CLIENTS: usize = 256;
/// A client that has so many requests, or bytes of them and of answers, under way is not read from until it has fewer.
const MOST_REQUESTS: usize = 1024;
const MOST_BYTES: usize = 64 << 20;
/// Requests of all clients that wait for others of the same blocks, about.
const MOST_WAITING: usize = 256;
/// Blocks that one BLOCK_STATUS looks at, and extents that it tells.
const LOOKED_AT: u32 = 1 << 14;
const MOST_EXTENTS: usize = 4096;
/// Device time that the loop cannot go beyond is near: the server ends in order.
const LAST: Ns = Ns(LATEST.0 - 3_600_000_000_000);
/// What the poller calls the end of the server, and the first listener.
pub(crate) const STOP: u64 = u64::MAX;
const LISTENER: u64 = 1 << 48;

/// A connection.
struct Client {
    stream: Stream,
    session: Session,
    life: u32,
    /// Requests that have not been answered, and their bytes.
    requests: usize,
    bytes: usize,
    /// It is read from; its socket is waited for to take more.
    reads: bool,
    writes: bool,
    /// Its answers wait to be sent.
    is_dirty: bool,
    /// It has said that it is over: what is under way is answered, and then it is closed.
    is_over: bool,
    /// Requests that were answered since something was sent: modelled latency, and when they had ended.
    answered: Vec<(Ns, Ns)>,
}

/// What the server has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub connections: u64,
    pub turned_away: u64,
    pub broken: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub errors: u64,
}

impl Counts {
    /// As Prometheus reads them.
    fn as_text(&self, active: u32) -> String {
        let Counts { connections, turned_away, broken, read_bytes, written_bytes, errors } = self;
        format!(
            "readpath_connections {connections}\nreadpath_clients_turned_away {turned_away}\n\
             readpath_clients_broken {broken}\nreadpath_read_bytes {read_bytes}\n\
             readpath_written_bytes {written_bytes}\nreadpath_request_errors {errors}\n\
             readpath_requests_in_flight {active}\n"
        )
    }
}

/// See the module.
pub(crate) struct Clients {
    poller: Rc<Poller>,
    listeners: Vec<Listener>,
    control: Control,
    export: Rc<Export>,
    transfers: Transfers,
    clients: Vec<Option<Client>>,
    lives: u32,
    jobs: Jobs,
    dirty: Vec<usize>,
    /// Answers that wait to be sent, and how many may before they are.
    unsent: u32,
    most_unsent: u32,
    /// Nobody is served any more; and what the device had accepted has been flushed.
    is_ending: bool,
    has_flushed: bool,
    pub(crate) lateness: Lateness,
    pub(crate) counts: Counts,
    /// Real time of the model, so many times slower; none if it jumps.
    scale: Option<(f64, Ns)>,
    /// Real time that the disk took, since somebody was sent an answer.
    disk: Rc<Cell<Duration>>,
    /// What went wrong with a client, for a log.
    pub(crate) log: Box<dyn FnMut(&str)>,
}

/// What is served, and how.
pub(crate) struct Setup {
    pub poller: Rc<Poller>,
    pub listeners: Vec<Listener>,
    pub control: Control,
    pub export: Rc<Export>,
    pub transfers: Transfers,
    /// As [`Clients::scale`].
    pub scale: Option<(f64, Ns)>,
    /// As [`Clients::disk`].
    pub disk: Rc<Cell<Duration>>,
    pub log: Box<dyn FnMut(&str)>,
}

impl Clients {
    pub(crate) fn new(setup: Setup) -> io::Result<Clients> {
        let Setup { poller, listeners, control, export, transfers, scale, disk, log } = setup;
        for (token, listener) in (LISTENER..).zip(&listeners) {
            poller.add(listener, token)?;
        }
        Ok(Clients {
            poller,
            listeners,
            control,
            export,
            transfers,
            clients: Vec::new(),
            lives: 0,
            jobs: Jobs::default(),
            dirty: Vec::new(),
            unsent: 0,
            most_unsent: if scale.is_some() { 1 } else { 16 },
            is_ending: false,
            has_flushed: false,
            lateness: Lateness::default(),
            counts: Counts::default(),
            scale,
            disk,
            log,
        })
    }

    /// Whether answers should be sent now.
    #[inline]
    fn wants_to_send(&self) -> bool {
        self.unsent >= self.most_unsent || (!self.dirty.is_empty() && self.jobs.count() == 0)
    }

    fn accept(&mut self, index: usize) {
        // Until there is none left.
        while let Ok(stream) = self.listeners[index].accept() {
            let mut place = self.clients.iter().position(Option::is_none).unwrap_or(self.clients.len());
            if place >= MOST_CLIENTS || self.is_ending {
                self.counts.turned_away += 1;
                (self.log)(&format!("a client was turned away: more than {MOST_CLIENTS} at once are not served"));
                // Whoever has connected first and has not said yet what it wants makes room.
                match self.silent() {
                    Some(silent) if !self.is_ending => {
                        self.close(silent);
                        place = silent;
                    }
                    _ => continue,
                }
            }
            self.lives = self.lives.wrapping_add(1);
            let client = Client {
                session: Session::new(self.export.clone()),
                stream,
                life: self.lives,
                requests: 0,
                bytes: 0,
                reads: true,
                writes: false,
                is_dirty: false,
                is_over: false,
                answered: Vec::new(),
            };
            if self.poller.add(&client.stream, token(place, client.life)).is_err() {
                continue;
            }
            self.counts.connections += 1;
            match self.clients.get_mut(place) {
                Some(empty) => *empty = Some(client),
                None => self.clients.push(Some(client)),
            }
            self.touch(place);
        }
    }

    /// The client that has been in its handshake for longest.
    fn silent(&self) -> Option<usize> {
        let in_handshake = |(place, client): (usize, &Option<Client>)| {
            let client = client.as_ref().filter(|client| !client.session.is_transmitting())?;
            Some((self.lives.wrapping_sub(client.life), place))
        };
        self.clients.iter().enumerate().filter_map(in_handshake).max().map(|(_, place)| place)
    }

    /// Something waits to be sent to a client.
    fn touch(&mut self, place: usize) {
        if let Some(client) = &mut self.clients[place]
            && !client.is_dirty
        {
            client.is_dirty = true;
            self.dirty.push(place);
        }
    }

    fn close(&mut self, place: usize) {
        if let Some(client) = self.clients[place].take() {
            self.poller.remove(&client.stream);
        }
    }

    /// A client has something for us, or can take something.
    fn serve(&mut self, port: &mut impl Port, now: Ns, ready: Ready) {
        let place = (ready.token & 0xffff) as usize;
        let Some(client) = self.clients.get_mut(place).and_then(Option::as_mut) else { return };
        if token(place, client.life) != ready.token {
            return;
        }
        if ready.can_write {
            self.touch(place);
        }
        if ready.can_read {
            self.read(port, now, place);
        }
    }

    /// Reads what a client has sent, as far as there is room for it.
    fn read(&mut self, port: &mut impl Port, now: Ns, place: usize) {
        // Then it is others' turn; the poller tells if there is more.
        const TURNS: u32 = 4;
        for _ in 0..TURNS {
            if !self.take_requests(port, now, place) {
                return;
            }
            let Some(client) = &mut self.clients[place] else { return };
            let space = client.session.space();
            let room = space.len();
            match client.stream.read(space) {
                Ok(0) => return self.lost(place),
                Ok(bytes) => {
                    client.session.filled(bytes);
                    if bytes < room {
                        self.take_requests(port, now, place);
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.lost(place),
            }
        }
        self.take_requests(port, now, place);
    }

    /// A client has gone away. What it asked for is done, and nobody hears of it.
    fn lost(&mut self, place: usize) {
        if let Some(client) = &self.clients[place]
            && !client.is_over
            && client.requests > 0
        {
            (self.log)(&format!("a client went away with {} requests under way", client.requests));
        }
        self.close(place);
    }

    /// Begins the requests that a client's session holds; false if it has to wait, or is over.
    fn take_requests(&mut self, port: &mut impl Port, now: Ns, place: usize) -> bool {
        loop {
            let Some(client) = &mut self.clients[place] else { return false };
            if client.is_over {
                return false;
            }
            // One that has requests under way is read from again when they end.
            let waits = client.requests > 0 && self.jobs.waiting() >= MOST_WAITING;
            let is_full =
                waits || client.requests >= MOST_REQUESTS || client.bytes + client.session.output_bytes() >= MOST_BYTES;
            if client.reads == is_full {
                client.reads = !is_full;
                self.poller.change(&client.stream, token(place, client.life), client.reads, client.writes).ok();
            }
            if is_full {
                return false;
            }
            let event = client.session.poll();
            if client.session.has_output() {
                self.touch(place);
            }
            match event {
                None => return true,
                Some(Event::Request(request)) => self.begin(port, now, place, request),
                Some(Event::Closed(closed)) => {
                    self.say_goodbye(place, &closed);
                    return false;
                }
            }
        }
    }

    fn say_goodbye(&mut self, place: usize, closed: &Closed) {
        if closed.is_error() {
            self.counts.broken += 1;
            (self.log)(&format!("a client was let go: {closed}"));
        }
        if let Some(client) = &mut self.clients[place] {
            client.is_over = true;
            client.reads = false;
            self.poller.change(&client.stream, token(place, client.life), false, client.writes).ok();
        }
        self.touch(place);
    }

    /// A request of a client.
    fn begin(&mut self, port: &mut impl Port, now: Ns, place: usize, request: Request) {
        let Request { handle, offset, bytes, command } = request;
        let Some(client) = &mut self.clients[place] else { return };
        let wants_data = command == Command::Read;
        let (ask, kind, data) = match command {
            Command::Read => (Ask::Read, IoKind::Read, Vec::new()),
            Command::Cache => (Ask::Cache, IoKind::Read, Vec::new()),
            Command::Write { data, fua } => (Ask::Write { fua }, IoKind::Write, data),
            Command::Flush => (Ask::Flush, IoKind::Flush, Vec::new()),
            Command::Trim { fua } => (Ask::Trim { fua }, IoKind::Trim, Vec::new()),
            Command::WriteZeroes { no_hole: true, fast: true, .. } => {
                client.session.reply_error(handle, Errno::NotSup, "zeros that stay allocated are written");
                return self.touch(place);
            }
            Command::WriteZeroes { fua, no_hole, .. } => (Ask::Zero { fua, no_hole }, IoKind::Write, Vec::new()),
            Command::BlockStatus { one } => {
                let extents = extents(port, offset, bytes, if one { 1 } else { MOST_EXTENTS });
                client.session.reply_status(handle, &extents);
                return self.touch(place);
            }
        };
        // A flush has no range.
        let (offset, bytes) = if ask == Ask::Flush { (0, 0) } else { (offset, bytes) };
        let steps = Steps::new(ask, offset, bytes);
        if steps.now().is_none() {
            client.session.reply_done(handle);
            return self.touch(place);
        }
        client.requests += 1;
        // Only what is read or written takes memory.
        let held = if wants_data { bytes as usize } else { data.len() };
        client.bytes += held;
        match kind {
            IoKind::Read => self.counts.read_bytes += u64::from(bytes),
            IoKind::Write => self.counts.written_bytes += u64::from(bytes),
            _ => {}
        }
        let owner = Some((place, client.life));
        self.add(port, now, Job { owner, handle, offset, bytes, kind, wants_data, held, steps, data, since: now });
    }

    fn add(&mut self, port: &mut impl Port, now: Ns, job: Job) {
        if let Some(cookie) = self.jobs.add(job) {
            self.step(port, now, cookie);
        }
    }

    /// Submits the step of a request that is due.
    fn step(&mut self, port: &mut impl Port, now: Ns, cookie: u32) {
        let owner = self.jobs.get(cookie).owner;
        let clients = &mut self.clients;
        let spare = || owner.and_then(|(place, _)| clients[place].as_mut()?.session.take_spare_buffer());
        let (request, data) = self.jobs.request(cookie, spare);
        self.transfers.begin(cookie, request.block, data);
        port.submit(now, &request);
    }

    /// A step has ended. Returns the request's kind and latency if it has ended with it.
    fn step_ended(
        &mut self,
        port: &mut impl Port,
        cookie: u32,
        refused: Option<SenseData>,
        now: Ns,
    ) -> Option<(IoKind, Ns)> {
        let (data, fault) = self.transfers.end(cookie);
        let failure = match (refused, fault) {
            (Some(sense), _) => Some(refusal(sense)),
            (None, Some(Fault::Medium(what))) => Some((Errno::Io, what)),
            (None, Some(Fault::Write(what))) => Some((Errno::NoSpace, format!("the image cannot be written: {what}"))),
            (None, None) => None,
        };
        if failure.is_none() && self.jobs.step_done(cookie, data) {
            // Nobody has to wait until a long request has ended.
            self.look_if_time_jumps();
            self.step(port, now, cookie);
            return None;
        }
        Some(self.end(port, cookie, failure, now))
    }

    /// A request has ended, and is answered.
    fn end(&mut self, port: &mut impl Port, cookie: u32, failure: Option<(Errno, String)>, now: Ns) -> (IoKind, Ns) {
        let data = self.jobs.end(cookie);
        let &Job { owner, handle, offset, bytes, kind, wants_data, held, since, .. } = self.jobs.get(cookie);
        if let Some((_, what)) = &failure {
            self.counts.errors += 1;
            (self.log)(&format!("{kind:?} of {bytes} bytes at {offset} failed: {what}"));
        }
        self.has_flushed |= owner.is_none();
        if let Some((place, life)) = owner
            && let Some(client) = self.clients[place].as_mut().filter(|client| client.life == life)
        {
            client.requests -= 1;
            client.bytes -= held;
            match failure {
                Some((errno, what)) => client.session.reply_error(handle, errno, &what),
                None if wants_data => client.session.reply_data(handle, offset, asked_for(data, offset, bytes)),
                None => {
                    client.session.reply_done(handle);
                    client.session.give_buffer(data);
                }
            }
            client.answered.push((now - since, now));
            let is_held = !client.reads && !client.is_over;
            self.unsent += 1;
            self.touch(place);
            if is_held {
                self.read(port, now, place);
            }
        }
        while let Some(waiting) = self.jobs.next_waiting() {
            self.step(port, now, waiting);
        }
        if self.unsent >= self.most_unsent {
            self.look_if_time_jumps();
        }
        (kind, now - since)
    }

    /// Sees who wants something. In real time the clock does, which knows when it was.
    fn look_if_time_jumps(&self) {
        if self.scale.is_none() {
            self.poller.look();
        }
    }

    /// Sends what waits to be sent. A client that was not read from because of that is read from again.
    fn send(&mut self, port: &mut impl Port, now: Ns) {
        self.unsent = 0;
        let disk = self.disk.take();
        for place in std::mem::take(&mut self.dirty) {
            self.send_to(place, disk);
            if self.clients[place].as_ref().is_some_and(|client| !client.reads && !client.is_over) {
                self.read(port, now, place);
            }
        }
    }

    fn send_to(&mut self, place: usize, disk: Duration) {
        let Some(client) = &mut self.clients[place] else { return };
        client.is_dirty = false;
        let was_slow = client.writes;
        let mut is_slow = false;
        while client.session.has_output() {
            let mut slices = [IoSlice::new(&[]); 64];
            let mut count = 0;
            for (slot, slice) in slices.iter_mut().zip(client.session.output()) {
                *slot = IoSlice::new(slice);
                count += 1;
            }
            match client.stream.write(&slices[..count]) {
                Ok(bytes) => client.session.sent(bytes),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    is_slow = true;
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.lost(place),
            }
        }
        if is_slow != client.writes {
            client.writes = is_slow;
            self.poller.change(&client.stream, token(place, client.life), client.reads, is_slow).ok();
        }
        // An answer has been given when it has left, with all that is before it.
        if client.session.has_output() {
            return;
        }
        if let Some((scale, from)) = self.scale {
            let now = from + Ns((self.poller.elapsed().as_nanos() as f64 / scale) as u64);
            let disk = Ns((disk.as_nanos() as f64 / scale) as u64);
            for (latency, ended) in client.answered.drain(..) {
                self.lateness.add(latency, now.saturating_sub(ended), disk, was_slow || is_slow);
            }
        } else {
            client.answered.clear();
        }
        if client.is_over && client.requests == 0 {
            self.close(place);
        }
    }

    /// The server is to end: nobody is read from any more, what is under way is answered.
    fn begin_to_end(&mut self) {
        self.is_ending = true;
        for listener in self.listeners.drain(..) {
            self.poller.remove(&listener);
        }
        for place in 0..self.clients.len() {
            if let Some(client) = &mut self.clients[place] {
                client.is_over = true;
                client.reads = false;
                self.poller.change(&client.stream, token(place, client.life), false, client.writes).ok();
            }
        }
    }
}

impl Source for Clients {
    fn next_at(&self) -> Ns {
        if self.wants_to_send() || (self.is_ending && self.jobs.count() == 0 && !self.has_flushed) {
            return Ns::ZERO;
        }
        let ready = if self.poller.is_ready() { self.poller.woken() } else { Ns::NEVER };
        // A clock that jumps would be there at once.
        let last = if self.scale.is_some() && !self.is_ending { LAST } else { Ns::NEVER };
        ready.min(last)
    }

    fn act(&mut self, port: &mut impl Port, now: Ns, _until: Ns) {
        if self.poller.is_ready() {
            for ready in self.poller.take() {
                match ready.token {
                    STOP => self.begin_to_end(),
                    token @ CONTROL..STOP => {
                        let (counts, active) = (self.counts, self.jobs.count());
                        self.control.serve(&self.poller, token, || counts.as_text(active));
                    }
                    listener @ LISTENER..STOP if listener - LISTENER < self.listeners.len() as u64 => {
                        self.accept((listener - LISTENER) as usize);
                    }
                    _ => self.serve(port, now, ready),
                }
            }
        }
        if now >= LAST && !self.is_ending {
            (self.log)(&format!("device time has come to {now}, which is its end: serve the image again"));
            self.begin_to_end();
        }
        if self.is_ending && self.jobs.count() == 0 && !self.has_flushed {
            let steps = Steps::new(Ask::Flush, 0, 0);
            let job = Job {
                owner: None,
                handle: 0,
                offset: 0,
                bytes: 0,
                kind: IoKind::Flush,
                wants_data: false,
                held: 0,
                steps,
                data: Vec::new(),
                since: now,
            };
            self.add(port, now, job);
        }
        if self.wants_to_send() {
            self.send(port, now);
        }
    }

    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        let is_own = self.jobs.get(cookie).owner.is_none();
        self.step_ended(port, cookie, None, now).filter(|_| !is_own)
    }

    fn refused(&mut self, port: &mut impl Port, cookie: u32, sense: SenseData, now: Ns) -> Result<(), RunError> {
        self.step_ended(port, cookie, Some(sense), now);
        Ok(())
    }

    fn io(&self, cookie: u32) -> Io {
        self.jobs.io(cookie)
    }

    fn in_flight(&self) -> u32 {
        self.jobs.count()
    }

    fn is_over(&self) -> bool {
        self.is_ending && self.jobs.count() == 0 && self.has_flushed && self.dirty.is_empty()
    }

    fn lost(&mut self, _port: &mut impl Port, _now: Ns) {
        unreachable!("nothing takes the host's power while it serves clients")
    }
}

/// The bytes that were asked for, of the blocks that they lie in.
fn asked_for(mut data: Vec<u8>, offset: u64, bytes: u32) -> Vec<u8> {
    let head = (offset % BLOCK as u64) as usize;
    if head > 0 {
        data.copy_within(head..head + bytes as usize, 0);
    }
    data.truncate(bytes as usize);
    data
}

/// How the poller calls a client: its place and its life.
fn token(place: usize, life: u32) -> u64 {
    place as u64 | u64::from(life) << 16
}

/// A refusal of the device, for a client.
fn refusal(sense: SenseData) -> (Errno, String) {
    let SenseData { key, asc, ascq, .. } = sense;
    let errno = match key {
        7 => Errno::NoSpace,
        5 => Errno::Inval,
        _ => Errno::Io,
    };
    let what = match (key, asc) {
        (7, 0x27) => "so many blocks have gone bad that what is left does not hold the capacity",
        _ => "see SPC-4",
    };
    (errno, format!("the device refused it with sense {key:X}h/{asc:02X}h/{ascq:02X}h ({what})"))
}

/// What is allocated of `bytes` bytes at `offset`: at least the beginning of it.
fn extents(port: &impl Port, offset: u64, bytes: u32, most: usize) -> Vec<Extent> {
    let end = offset + u64::from(bytes);
    let mut extents: Vec<Extent> = Vec::new();
    let (mut at, mut looked_at) = (offset, 0);
    while at < end && looked_at < LOOKED_AT {
        let block = at / BLOCK as u64;
        let next = ((block + 1) * BLOCK as u64).min(end);
        let hole = !port.holds_data(LUN, block as u32);
        let length = (next - at) as u32;
        let count = extents.len();
        match extents.last_mut() {
            Some(last) if last.hole == hole => last.bytes += length,
            _ if count == most => break,
            _ => extents.push(Extent { bytes: length, hole, zero: hole }),
        }
        (at, looked_at) = (next, looked_at + 1);
    }
    extents
}
