// SPDX-License-Identifier: MIT OR Apache-2.0
//! NBD clients as a source of requests: what they ask is submitted when it comes, and answered when it has ended. It
//! knows sockets and the protocol, and nothing of what is behind the port.

use crate::control::{CONTROL, Control};
use crate::edges::{Ask, BLOCK};
use crate::jobs::{Job, Owner};
use crate::lateness::Lateness;
use crate::nbd::{Closed, Command, Errno, Event, Export, Extent, Request, Session};
use crate::orders::Order;
use crate::poller::{Poller, Ready};
use crate::record::{Asked, Recording};
use crate::requests::Requests;
use crate::sockets::{Listener, Stream};
use readpath_host::SenseData;
use readpath_kit::Ns;
use readpath_run::{LATEST, LUN, Port, RunError, Source};
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
/// While all clients together have so many, one that has any gets no more.
const MOST_OF_ALL: usize = 256 << 20;
/// Requests of all clients that wait for others of the same blocks, about.
const MOST_WAITING: usize = 256;
/// Blocks that one BLOCK_STATUS looks at, and extents that it tells.
const LOOKED_AT: u32 = 1 << 14;
const MOST_EXTENTS: usize = 4096;
/// Device time that the loop cannot go beyond is near: the server ends in order.
pub(crate) const LAST: Ns = Ns(LATEST.0 - 3_600_000_000_000);
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
    /// Bytes of requests and answers that have been counted among those of all.
    counted: usize,
    /// It is read from; its socket is waited for to take more.
    reads: bool,
    writes: bool,
    /// Its answers wait to be sent.
    is_dirty: bool,
    /// It has said that it is over: what is under way is answered, and then it is closed.
    is_over: bool,
    /// Requests that were answered since something was sent, and when they had ended.
    answered: Vec<(Asked, Ns)>,
}

impl Client {
    fn held_bytes(&self) -> usize {
        self.bytes + self.session.output_bytes()
    }
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
    pub requests: u64,
}

impl Counts {
    /// As Prometheus reads them.
    fn as_text(&self, active: u32) -> String {
        let Counts { connections, turned_away, broken, read_bytes, written_bytes, errors, requests } = self;
        format!(
            "readpath_requests {requests}\nreadpath_connections {connections}\nreadpath_clients_turned_away {turned_away}\n\
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
    clients: Vec<Option<Client>>,
    lives: u32,
    /// Bytes of requests and answers of all clients.
    bytes: usize,
    requests: Requests,
    recording: Recording,
    /// The newest time that is known here. What clients ask is submitted later, so that it does not matter in which
    /// order this and what had happened by then were heard of.
    heard: Ns,
    /// Clients that were not read from and may be again.
    resumed: Vec<usize>,
    dirty: Vec<usize>,
    /// Answers that wait to be sent, and how many may before they are.
    unsent: u32,
    most_unsent: u32,
    /// Nobody is served any more; and what the device had accepted has been flushed.
    is_ending: bool,
    has_flushed: bool,
    /// Why the device could not flush at last.
    pub(crate) lost: Option<String>,
    pub(crate) lateness: Lateness,
    pub(crate) counts: Counts,
    /// Real time of the model, so many times slower; none if it jumps.
    scale: Option<(f64, Ns)>,
    /// Real time that the disk took, since somebody was sent an answer.
    disk: Rc<Cell<Duration>>,
    /// What went wrong with a client, for a log.
    pub(crate) log: fn(&str),
}

/// What is served, and how.
pub(crate) struct Setup {
    pub poller: Rc<Poller>,
    pub listeners: Vec<Listener>,
    pub control: Control,
    pub export: Rc<Export>,
    pub requests: Requests,
    pub recording: Recording,
    /// As [`Clients::scale`].
    pub scale: Option<(f64, Ns)>,
    /// As [`Clients::disk`].
    pub disk: Rc<Cell<Duration>>,
    pub log: fn(&str),
}

impl Clients {
    pub(crate) fn new(setup: Setup) -> io::Result<Clients> {
        let Setup { poller, listeners, control, export, requests, recording, scale, disk, log } = setup;
        for (token, listener) in (LISTENER..).zip(&listeners) {
            poller.add(listener, token)?;
        }
        Ok(Clients {
            poller,
            listeners,
            control,
            export,
            clients: Vec::new(),
            lives: 0,
            bytes: 0,
            requests,
            recording,
            heard: Ns::ZERO,
            resumed: Vec::new(),
            dirty: Vec::new(),
            unsent: 0,
            most_unsent: if scale.is_some() { 1 } else { 16 },
            is_ending: false,
            has_flushed: false,
            lost: None,
            lateness: Lateness::default(),
            counts: Counts::default(),
            scale,
            disk,
            log,
        })
    }

    /// Whether answers should be sent now: before an order, so that no client hears after a power cut that it was
    /// before.
    #[inline]
    fn wants_to_send(&self) -> bool {
        let is_idle = self.requests.count() == 0;
        self.unsent >= self.most_unsent || (!self.dirty.is_empty() && (is_idle || self.control.has_work()))
    }

    fn accept(&mut self, index: usize) {
        // Until there is none left.
        while let Ok(stream) = self.listeners[index].accept() {
            let mut place = self.clients.iter().position(Option::is_none).unwrap_or(self.clients.len());
            if place >= MOST_CLIENTS || self.is_ending {
                self.counts.turned_away += 1;
                // Whoever has connected first and has not said yet what it wants makes room.
                match self.silent() {
                    Some(silent) if !self.is_ending => {
                        (self.log)(&format!("of {MOST_CLIENTS} clients, one that had said nothing made room"));
                        self.close(silent);
                        place = silent;
                    }
                    _ => {
                        (self.log)(&format!("a client was turned away: {MOST_CLIENTS} are served"));
                        continue;
                    }
                }
            }
            self.lives = self.lives.wrapping_add(1);
            let client = Client {
                session: Session::new(self.export.clone()),
                stream,
                life: self.lives,
                requests: 0,
                bytes: 0,
                counted: 0,
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
            // In real time it is sent at once, though nothing in flight may end for long.
            self.unsent = self.unsent.max(1);
        }
    }

    fn close(&mut self, place: usize) {
        if let Some(client) = self.clients[place].take() {
            self.bytes -= client.counted;
            self.poller.remove(&client.stream);
            // Nobody has taken these answers, but the device has worked for them.
            client.answered.iter().for_each(|(asked, _)| self.recording.asked(asked));
        }
    }

    /// Every client is left, whether or not it has taken its answers.
    pub(crate) fn close_all(&mut self) {
        (0..self.clients.len()).for_each(|place| self.close(place));
    }

    /// Counts again what a client holds of the memory of all.
    fn count(&mut self, place: usize) {
        if let Some(client) = &mut self.clients[place] {
            let held = client.held_bytes();
            self.bytes = self.bytes - client.counted + held;
            client.counted = held;
        }
    }

    /// A client that was not read from is read from again, later than what was heard so far.
    fn resume(&mut self, place: usize) {
        if self.clients[place].as_ref().is_some_and(|client| !client.reads && !client.is_over) {
            self.resumed.push(place);
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
                Ok(0) => return self.went_away(place),
                Ok(bytes) => {
                    client.session.filled(bytes);
                    if bytes < room {
                        self.take_requests(port, now, place);
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.went_away(place),
            }
        }
        self.take_requests(port, now, place);
    }

    /// A client has gone away. What it asked for is done, and nobody hears of it.
    fn went_away(&mut self, place: usize) {
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
            let waits = client.requests > 0 && self.requests.waiting() >= MOST_WAITING;
            let held = client.held_bytes();
            let is_full = waits
                || client.requests >= MOST_REQUESTS
                || held >= MOST_BYTES
                || (held > 0 && self.bytes >= MOST_OF_ALL);
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
        let (ask, data) = match command {
            Command::Read => (Ask::Read, Vec::new()),
            Command::Cache => (Ask::Cache, Vec::new()),
            Command::Write { data, fua } => (Ask::Write { fua }, data),
            Command::Flush => (Ask::Flush, Vec::new()),
            Command::Trim { fua } => (Ask::Trim { fua }, Vec::new()),
            Command::WriteZeroes { no_hole: true, fast: true, .. } => {
                client.session.reply_error(handle, Errno::NotSup, "zeros that stay allocated are written");
                return self.touch(place);
            }
            Command::WriteZeroes { fua, no_hole, .. } => (Ask::Zero { fua, no_hole }, Vec::new()),
            Command::BlockStatus { one } => {
                let extents = extents(port, offset, bytes, if one { 1 } else { MOST_EXTENTS });
                client.session.reply_status(handle, &extents);
                return self.touch(place);
            }
        };
        // A flush has no range.
        let (offset, bytes) = if ask == Ask::Flush { (0, 0) } else { (offset, bytes) };
        client.requests += 1;
        // Only what is read or written takes memory.
        let held = if ask == Ask::Read { bytes as usize } else { data.len() };
        client.bytes += held;
        let owner = Some((place, client.life));
        self.count(place);
        match ask.kind() {
            IoKind::Read => self.counts.read_bytes += u64::from(bytes),
            IoKind::Write => self.counts.written_bytes += u64::from(bytes),
            _ => {}
        }
        self.add(port, now, Job { owner, handle, ask, offset, bytes, held, data, ..Job::default() });
    }

    fn add(&mut self, port: &mut impl Port, now: Ns, mut job: Job) {
        (job.since, job.number) = (now, self.recording.number());
        self.requests.add(port, now, job, &mut spare(&mut self.clients));
        self.answer(now);
    }

    /// Answers requests that have ended. Returns the kind and latency of the last one that a client had made.
    fn answer(&mut self, now: Ns) -> Option<(IoKind, Ns)> {
        let mut last = None;
        while let Some(job) = self.requests.poll() {
            if job.owner.is_some() {
                last = Some((job.ask.kind(), now - job.since));
            }
            self.answer_one(job, now);
        }
        if self.unsent >= self.most_unsent {
            self.look_if_time_jumps();
        }
        last
    }

    fn answer_one(&mut self, job: Job, now: Ns) {
        let Job { owner, handle, number, ask, offset, bytes, held, data, since, failure, .. } = job;
        if let Some((_, what)) = &failure {
            self.counts.errors += 1;
            (self.log)(&format!("{:?} of {bytes} bytes at {offset} failed: {what}", ask.kind()));
        }
        if owner.is_none() {
            self.has_flushed = true;
            self.lost = failure.as_ref().map(|(_, what)| what.clone());
            if let Some(what) = &self.lost {
                self.has_flushed = self.is_ending;
                self.control.host_cannot_come(what);
            }
        }
        let client = owner.map(|(_, life)| life);
        let asked = Asked { at: since, ask, offset, bytes, client, number, modelled: now - since, served: None };
        let Some((place, life)) = owner else { return self.recording.asked(&asked) };
        let Some(client) = self.clients[place].as_mut().filter(|client| client.life == life) else {
            return self.recording.asked(&asked);
        };
        self.counts.requests += 1;
        client.requests -= 1;
        client.bytes -= held;
        match failure {
            Some((errno, what)) => client.session.reply_error(handle, errno, &what),
            None if ask == Ask::Read => client.session.reply_data(handle, offset, asked_for(data, offset, bytes)),
            None => {
                client.session.reply_done(handle);
                client.session.give_buffer(data);
            }
        }
        client.answered.push((asked, now));
        self.count(place);
        self.unsent += 1;
        self.touch(place);
        self.resume(place);
    }

    /// Sees who wants something. In real time the clock does, which knows when it was.
    fn look_if_time_jumps(&self) {
        if self.scale.is_none() {
            self.poller.look();
        }
    }

    /// Sends what waits to be sent.
    fn send(&mut self) {
        self.unsent = 0;
        let disk = self.disk.take();
        for place in std::mem::take(&mut self.dirty) {
            self.send_to(place, disk);
            self.count(place);
            self.resume(place);
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
                Err(_) => return self.went_away(place),
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
        let sent = self.scale.map(|(scale, from)| {
            let now = from + Ns((self.poller.elapsed().as_nanos() as f64 / scale) as u64);
            (now, Ns((disk.as_nanos() as f64 / scale) as u64))
        });
        for (mut asked, ended) in client.answered.drain(..) {
            if let Some((now, disk)) = sent {
                let late = now.saturating_sub(ended);
                self.lateness.add(asked.modelled, late, disk, was_slow || is_slow);
                asked.served = Some(asked.modelled + late);
            }
            self.recording.asked(&asked);
        }
        if client.is_over && client.requests == 0 {
            self.close(place);
        }
    }

    /// A step of a request has ended, or was refused.
    fn step_ended(
        &mut self,
        port: &mut impl Port,
        cookie: u32,
        refused: Option<SenseData>,
        now: Ns,
    ) -> Option<(IoKind, Ns)> {
        self.heard = now;
        self.control.hear(now);
        self.requests.step_ended(port, cookie, refused, now, &mut spare(&mut self.clients));
        // Nobody has to wait until a long request has ended.
        self.look_if_time_jumps();
        self.answer(now)
    }

    /// Hears what clients, those who control the server and signals have to say.
    fn hear(&mut self, port: &mut impl Port, now: Ns) {
        // Everything under way has to end before another host comes.
        if self.control.has_new_host() {
            return;
        }
        for place in std::mem::take(&mut self.resumed) {
            self.read(port, now, place);
        }
        if !self.poller.is_ready() {
            return;
        }
        for ready in self.poller.take() {
            match ready.token {
                STOP => self.begin_to_end(now),
                token @ CONTROL..STOP => {
                    let (counts, active) = (self.counts, self.requests.count());
                    self.control.serve(&self.poller, token, || counts.as_text(active));
                }
                listener @ LISTENER..STOP if listener - LISTENER < self.listeners.len() as u64 => {
                    self.accept((listener - LISTENER) as usize);
                }
                _ => self.serve(port, now, ready),
            }
        }
    }

    /// Whether the device is about to be switched off, and has not flushed yet what it accepted.
    fn has_to_flush(&self) -> bool {
        (self.is_ending || self.control.has_new_host()) && self.requests.count() == 0 && !self.has_flushed
    }

    /// The device was switched off and on, and is ready at `now`.
    pub(crate) fn begin_again(&mut self, now: Ns) {
        (self.heard, self.has_flushed) = (now, false);
    }

    /// Whether the server is to end, and everything has been answered.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_ending && self.has_flushed && self.requests.count() == 0
    }

    /// The server is to end: nobody is read from any more, what is under way is answered.
    fn begin_to_end(&mut self, now: Ns) {
        self.is_ending = true;
        // Nobody waits for what somebody wanted to be slow.
        self.requests.troubles.hurry();
        self.requests.troubles.let_go();
        self.recording.told(now, &Order::SlowOff);
        self.recording.told(now, &Order::StallOff);
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
        if self.wants_to_send() || self.has_to_flush() {
            return Ns::ZERO;
        }
        let has_news = (self.poller.is_ready() || !self.resumed.is_empty()) && !self.control.has_new_host();
        let news = if has_news { self.poller.woken().max(Ns(self.heard.0 + 1)) } else { Ns::NEVER };
        // A clock that jumps would be there at once.
        let last = if self.scale.is_some() && !self.is_ending { LAST } else { Ns::NEVER };
        news.min(last).min(self.requests.next_at())
    }

    fn act(&mut self, port: &mut impl Port, now: Ns, _until: Ns) {
        if self.requests.next_at() <= now {
            self.requests.release(port, now, &mut spare(&mut self.clients));
            self.answer(now);
        }
        if now > self.heard {
            self.hear(port, now);
        }
        self.heard = now;
        self.control.hear(now);
        if now >= LAST && !self.is_ending {
            (self.log)(&format!("device time has come to {now}, which is its end: serve the image again"));
            self.begin_to_end(now);
        }
        if self.has_to_flush() {
            self.add(port, now, Job::default());
        }
        if self.wants_to_send() {
            self.send();
        }
    }

    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        self.step_ended(port, cookie, None, now)
    }

    fn refused(&mut self, port: &mut impl Port, cookie: u32, sense: SenseData, now: Ns) -> Result<(), RunError> {
        self.step_ended(port, cookie, Some(sense), now);
        Ok(())
    }

    fn io(&self, cookie: u32) -> Io {
        self.requests.io(cookie)
    }

    fn in_flight(&self) -> u32 {
        self.requests.count()
    }

    fn is_over(&self) -> bool {
        let is_off = self.is_ending || self.control.has_new_host();
        is_off && self.has_flushed && self.requests.count() == 0 && self.dirty.is_empty()
    }

    fn lost(&mut self, _port: &mut impl Port, _now: Ns) {
        unreachable!("nothing takes the host's power while it serves clients")
    }
}

/// Gives a buffer that a client does not need.
fn spare(clients: &mut [Option<Client>]) -> impl FnMut(Owner) -> Option<Vec<u8>> + '_ {
    |(place, _)| clients[place].as_mut()?.session.take_spare_buffer()
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
