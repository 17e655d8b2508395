// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections of NBD clients: their sockets, their sessions, what they may hold of memory, and answers until they have
//! left. It knows neither device nor orders, nor what becomes of a request between its arrival and its answer.

use crate::edges::{Ask, BLOCK};
use crate::jobs::{Job, Owner};
use crate::lateness::Lateness;
use crate::nbd::{Closed, Event, Export, Request, Session};
use crate::poller::{Poller, Ready};
use crate::record::Asked;
use crate::sockets::{Listener, Stream};
use readpath_kit::Ns;
use std::cell::Cell;
use std::io::{self, ErrorKind, IoSlice};
use std::rc::Rc;
use std::time::Duration;

/// Connections at once. More are closed at once.
const MOST_CLIENTS: usize = 256;
/// Most requests, and most bytes of requests and answers, of a client: one that reaches a limit is not read from until
/// it has fewer.
const MOST_REQUESTS: usize = 1024;
const MOST_BYTES: usize = 64 << 20;
/// Most bytes of all clients together: at the limit, a client that has some gets no more.
const MOST_OF_ALL: usize = 256 << 20;
/// The poller's token of the first listener.
pub(crate) const LISTENER: u64 = 1 << 48;

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

/// What clients did with a logical unit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UnitCount {
    /// The name of its export.
    pub name: String,
    /// Requests that were answered.
    pub requests: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
}

/// Takes in what clients ask.
pub(crate) trait Inbox {
    /// Whether a client that has requests under way may ask for no more at present.
    fn is_crowded(&self) -> bool;

    /// Takes a request of a client of a logical unit.
    fn take(&mut self, connections: &mut Connections, owner: Owner, unit: u8, request: Request);
}

/// What connections are to, and how time passes.
pub(crate) struct Setup {
    pub poller: Rc<Poller>,
    pub listeners: Vec<Listener>,
    /// One for each logical unit.
    pub exports: Rc<[Export]>,
    /// As [`Connections::scale`].
    pub scale: Option<(f64, Ns)>,
    /// As [`Connections::disk`].
    pub disk: Rc<Cell<Duration>>,
    pub log: fn(&str),
}

/// The connections of a server.
pub(crate) struct Connections {
    poller: Rc<Poller>,
    listeners: Vec<Listener>,
    exports: Rc<[Export]>,
    clients: Vec<Option<Client>>,
    lives: u32,
    /// Bytes of requests and answers of all clients.
    bytes: usize,
    /// Clients that were not read from and may be again.
    resumed: Vec<usize>,
    /// Clients with answers that wait to be sent; how many answers, and how many may wait.
    dirty: Vec<usize>,
    unsent: u32,
    most_unsent: u32,
    /// Requests whose answers have left, or whose clients have disconnected.
    left: Vec<Asked>,
    /// Real time is so many times slower than the model's, and began at that; none if time jumps.
    scale: Option<(f64, Ns)>,
    /// Real time that the disk took since answers were last sent.
    disk: Rc<Cell<Duration>>,
    /// How late answers left.
    pub(crate) lateness: Lateness,
    pub(crate) counts: Counts,
    /// What clients did with each logical unit.
    pub(crate) by_unit: Vec<UnitCount>,
    /// Logs what went wrong with a client.
    log: fn(&str),
}

impl Connections {
    pub(crate) fn new(setup: Setup) -> io::Result<Connections> {
        let Setup { poller, listeners, exports, scale, disk, log } = setup;
        for (token, listener) in (LISTENER..).zip(&listeners) {
            poller.add(listener, token)?;
        }
        Ok(Connections {
            poller,
            listeners,
            by_unit: exports
                .iter()
                .map(|export| UnitCount { name: export.name.clone(), ..UnitCount::default() })
                .collect(),
            exports,
            clients: Vec::new(),
            lives: 0,
            bytes: 0,
            resumed: Vec::new(),
            dirty: Vec::new(),
            unsent: 0,
            // A client at depth 16 takes half of its answers while the server works at the other half.
            most_unsent: if scale.is_some() { 1 } else { 8 },
            left: Vec::new(),
            scale,
            disk,
            lateness: Lateness::default(),
            counts: Counts::default(),
            log,
        })
    }

    /// Whether answers wait to be sent.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Whether so many answers wait that they must be sent before other work.
    #[inline]
    pub(crate) fn has_to_send(&self) -> bool {
        self.unsent >= self.most_unsent
    }

    /// How many answers wait to be sent.
    #[inline]
    pub(crate) fn unsent(&self) -> u32 {
        self.unsent
    }

    /// Whether clients that were not read from may be again.
    #[inline]
    pub(crate) fn has_resumed(&self) -> bool {
        !self.resumed.is_empty()
    }

    /// Whether the poller's token is that of a listener.
    pub(crate) fn is_listener(&self, token: u64) -> bool {
        token.checked_sub(LISTENER).is_some_and(|index| index < self.listeners.len() as u64)
    }

    /// Requests whose answers have left, or whose clients have disconnected, since the last call.
    pub(crate) fn take_left(&mut self) -> impl Iterator<Item = Asked> + '_ {
        self.left.drain(..)
    }

    /// Accepts the connections that wait at a listener.
    pub(crate) fn accept(&mut self, listener: u64) {
        // Until there is none left.
        while let Ok(stream) = self.listeners[(listener - LISTENER) as usize].accept() {
            let mut place = self.clients.iter().position(Option::is_none).unwrap_or(self.clients.len());
            if place >= MOST_CLIENTS {
                self.counts.turned_away += 1;
                // A client in its handshake makes room.
                match self.silent() {
                    Some(silent) => {
                        (self.log)(&format!("of {MOST_CLIENTS} clients, one in its handshake is disconnected"));
                        self.close(silent);
                        place = silent;
                    }
                    None => {
                        (self.log)(&format!("a client was turned away: {MOST_CLIENTS} are served"));
                        continue;
                    }
                }
            }
            self.lives = self.lives.wrapping_add(1);
            let client = Client {
                session: Session::new(self.exports.clone()),
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
            if self.poller.add(&client.stream, token((place, client.life))).is_err() {
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

    /// The client that made a request, if it is still there.
    fn owner(&mut self, (place, life): Owner) -> Option<&mut Client> {
        self.clients[place].as_mut().filter(|client| client.life == life)
    }

    /// Notes that a client has output to send.
    fn touch(&mut self, place: usize) {
        if let Some(client) = &mut self.clients[place]
            && !client.is_dirty
        {
            client.is_dirty = true;
            self.dirty.push(place);
            // In real time it is sent at once, since the next request may end much later.
            self.unsent = self.unsent.max(1);
        }
    }

    fn close(&mut self, place: usize) {
        if let Some(client) = self.clients[place].take() {
            self.bytes -= client.counted;
            self.poller.remove(&client.stream);
            // These answers were not sent, but the device has worked for them.
            self.left.extend(client.answered.into_iter().map(|(asked, _)| asked));
        }
    }

    /// Every client is disconnected, whether or not it has taken its answers.
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

    /// A client that was not read from is read from again, later than all that has happened so far.
    fn resume(&mut self, place: usize) {
        if self.clients[place].as_ref().is_some_and(|client| !client.reads && !client.is_over) {
            self.resumed.push(place);
        }
    }

    /// Clients that were not read from are read from again.
    pub(crate) fn read_resumed(&mut self, inbox: &mut impl Inbox) {
        for place in std::mem::take(&mut self.resumed) {
            self.read(inbox, place);
        }
    }

    /// A client's socket can be read or written.
    pub(crate) fn serve(&mut self, inbox: &mut impl Inbox, ready: Ready) {
        let place = (ready.token & 0xffff) as usize;
        let Some(client) = self.clients.get(place).and_then(Option::as_ref) else { return };
        if token((place, client.life)) != ready.token {
            return;
        }
        if ready.can_write {
            self.touch(place);
        }
        if ready.can_read {
            self.read(inbox, place);
        }
    }

    /// Reads what a client has sent, as far as there is room for it.
    fn read(&mut self, inbox: &mut impl Inbox, place: usize) {
        // After so many reads other clients have a turn; the poller reports the rest.
        const TURNS: u32 = 4;
        for _ in 0..TURNS {
            if !self.take_requests(inbox, place) {
                return;
            }
            let Some(client) = &mut self.clients[place] else { return };
            let space = client.session.space();
            let room = space.len();
            match client.stream.read(space) {
                Ok(0) => return self.disconnected(place),
                Ok(bytes) => {
                    client.session.filled(bytes);
                    if bytes < room {
                        self.take_requests(inbox, place);
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.disconnected(place),
            }
        }
        self.take_requests(inbox, place);
    }

    /// A client has disconnected. What it asked for is done, and not answered.
    fn disconnected(&mut self, place: usize) {
        if let Some(client) = &self.clients[place]
            && !client.is_over
            && client.requests > 0
        {
            (self.log)(&format!("a client disconnected with {} requests under way", client.requests));
        }
        self.close(place);
    }

    /// Takes in the requests that a client's session holds; false if it has to wait, or is over.
    fn take_requests(&mut self, inbox: &mut impl Inbox, place: usize) -> bool {
        loop {
            let Some(client) = &mut self.clients[place] else { return false };
            if client.is_over {
                return false;
            }
            // A client with requests in flight is read from again when they end.
            let held = client.held_bytes();
            let is_full = (client.requests > 0 && inbox.is_crowded())
                || client.requests >= MOST_REQUESTS
                || held >= MOST_BYTES
                || (held > 0 && self.bytes >= MOST_OF_ALL);
            let owner = (place, client.life);
            if client.reads == is_full {
                client.reads = !is_full;
                self.poller.change(&client.stream, token(owner), client.reads, client.writes).ok();
            }
            if is_full {
                return false;
            }
            let event = client.session.poll();
            let unit = client.session.export() as u8;
            if client.session.has_output() {
                self.touch(place);
            }
            match event {
                None => return true,
                Some(Event::Request(request)) => inbox.take(self, owner, unit, request),
                Some(Event::Closed(closed)) => {
                    self.end_session(place, &closed);
                    return false;
                }
            }
        }
    }

    fn end_session(&mut self, place: usize, closed: &Closed) {
        if closed.is_error() {
            self.counts.broken += 1;
            (self.log)(&format!("a client is disconnected: {closed}"));
        }
        self.stop_reading(place);
        self.touch(place);
    }

    fn stop_reading(&mut self, place: usize) {
        if let Some(client) = &mut self.clients[place] {
            (client.is_over, client.reads) = (true, false);
            self.poller.change(&client.stream, token((place, client.life)), false, client.writes).ok();
        }
    }

    /// No client may connect or is read from any more.
    pub(crate) fn stop(&mut self) {
        for listener in self.listeners.drain(..) {
            self.poller.remove(&listener);
        }
        (0..self.clients.len()).for_each(|place| self.stop_reading(place));
    }

    /// Clients hear nothing any more, and none may connect: the machine seems dead.
    pub(crate) fn fall_silent(&mut self) {
        self.listeners.iter().for_each(|listener| self.poller.remove(listener));
        self.clients.iter().flatten().for_each(|client| self.poller.remove(&client.stream));
        self.dirty.clear();
        self.resumed.clear();
        self.unsent = 0;
    }

    /// The silence is over: clients from before it are disconnected, and may connect.
    pub(crate) fn come_back(&mut self) {
        self.close_all();
        for (token, listener) in (LISTENER..).zip(&self.listeners) {
            if let Err(error) = self.poller.add(listener, token) {
                (self.log)(&format!("no client can connect any more: {error}"));
            }
        }
    }

    /// Counts `bytes` bytes for a client's request until it is answered.
    pub(crate) fn begin(&mut self, owner: Owner, bytes: usize) {
        if let Some(client) = self.owner(owner) {
            client.requests += 1;
            client.bytes += bytes;
            self.count(owner.0);
        }
    }

    /// Answers a request at once, without the device.
    pub(crate) fn reply(&mut self, (place, life): Owner, reply: impl FnOnce(&mut Session)) {
        if let Some(client) = self.owner((place, life)) {
            reply(&mut client.session);
            self.touch(place);
        }
    }

    /// A request of a client has ended at `now`: it is answered when answers are sent.
    pub(crate) fn answer(&mut self, asked: Asked, job: Job, now: Ns) {
        let Job { owner, unit, handle, ask, offset, bytes, held, data, failure, .. } = job;
        let Some(owner) = owner else { return self.left.push(asked) };
        let Some(client) = self.owner(owner) else { return self.left.push(asked) };
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
        self.counts.requests += 1;
        self.by_unit[usize::from(unit)].requests += 1;
        self.unsent += 1;
        self.count(owner.0);
        self.touch(owner.0);
        self.resume(owner.0);
    }

    /// Gives a buffer that a client does not need.
    pub(crate) fn spare(&mut self) -> impl FnMut(Owner) -> Option<Vec<u8>> + '_ {
        |(place, _)| self.clients[place].as_mut()?.session.take_spare_buffer()
    }

    /// Sends what waits to be sent.
    pub(crate) fn send(&mut self) {
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
                Err(_) => return self.disconnected(place),
            }
        }
        if is_slow != client.writes {
            client.writes = is_slow;
            self.poller.change(&client.stream, token((place, client.life)), client.reads, is_slow).ok();
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
                asked.served = Some(self.lateness.add(asked.modelled, late, disk, was_slow || is_slow));
            }
            self.left.push(asked);
        }
        if client.is_over && client.requests == 0 {
            self.close(place);
        }
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

/// The poller's token of a client: its place and its life.
fn token((place, life): Owner) -> u64 {
    place as u64 | u64::from(life) << 16
}
