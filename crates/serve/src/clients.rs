// SPDX-License-Identifier: MIT OR Apache-2.0
//! NBD clients as a source of requests: their requests are submitted on arrival, and answered when they have ended. It
//! knows no socket, and nothing of the stack behind the port.

use crate::connections::{Connections, Inbox, LISTENER};
use crate::control::{CONTROL, Control, Subject};
use crate::edges::{Ask, BLOCK};
use crate::host::Host;
use crate::jobs::{Job, Owner};
use crate::nbd::{Command, Errno, Extent, Request};
use crate::orders::{Heard, Order};
use crate::poller::Poller;
use crate::record::Recording;
use crate::requests::Requests;
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_host::SenseData;
use readpath_kit::Ns;
use readpath_run::rules::{Kind, RuleOrder};
use readpath_run::{LATEST, Port, RunError, Source};
use readpath_stack::{Payload, Stack, Wire};
use readpath_workload::{Io, IoKind};
use std::rc::Rc;

/// About the most requests of all clients that wait for others of the same blocks.
const MOST_WAITING: usize = 256;
/// Blocks that one BLOCK_STATUS looks at, and extents of its answer.
const LOOKED_AT: u32 = 1 << 14;
const MOST_EXTENTS: usize = 4096;
/// The server ends in order at this device time, an hour before the loop must end.
pub(crate) const LAST: Ns = Ns(LATEST.0 - 3_600_000_000_000);
/// The poller's token of the end of the server.
pub(crate) const STOP: u64 = u64::MAX;

/// NBD clients as a source of requests.
pub(crate) struct Clients {
    pub(crate) connections: Connections,
    pub(crate) control: Control,
    pub(crate) recording: Recording,
    pub(crate) requests: Requests,
    poller: Rc<Poller>,
    /// Time jumps to what happens next.
    time_jumps: bool,
    /// The newest time that was reported here. Requests of clients are submitted after it, so the order in which they
    /// and earlier events are noticed does not matter.
    heard: Ns,
    /// Answers that waited when the sockets were polled for requests to be answered with them; 1 if they were not.
    polled_with: u32,
    /// The server is ending; and what the device had accepted has been flushed.
    is_ending: bool,
    has_flushed: bool,
    /// Why the device could not flush at last.
    pub(crate) lost: Option<String>,
    /// Logs what went wrong with a request.
    log: fn(&str),
}

/// Takes requests in for a device.
struct Taking<'a, P> {
    requests: &'a mut Requests,
    recording: &'a mut Recording,
    port: &'a mut P,
    now: Ns,
}

impl<P: Port> Inbox for Taking<'_, P> {
    fn is_crowded(&self) -> bool {
        self.requests.waiting() >= MOST_WAITING
    }

    fn take(&mut self, connections: &mut Connections, owner: Owner, unit: u8, request: Request) {
        let Request { handle, offset, bytes, command } = request;
        let (ask, data) = match command {
            Command::Read => (Ask::Read, Vec::new()),
            Command::Cache => (Ask::Cache, Vec::new()),
            Command::Write { data, fua } => (Ask::Write { fua }, data),
            Command::Flush => (Ask::Flush, Vec::new()),
            Command::Trim { fua } => (Ask::Trim { fua }, Vec::new()),
            Command::WriteZeroes { no_hole: true, fast: true, .. } => {
                let why = "zeros that stay allocated are written";
                return connections.reply(owner, |session| session.reply_error(handle, Errno::NotSup, why));
            }
            Command::WriteZeroes { fua, no_hole, .. } => (Ask::Zero { fua, no_hole }, Vec::new()),
            Command::BlockStatus { one } => {
                let extents = extents(self.port, unit, offset, bytes, if one { 1 } else { MOST_EXTENTS });
                return connections.reply(owner, |session| session.reply_status(handle, &extents));
            }
        };
        // A flush has no range.
        let (offset, bytes) = if ask == Ask::Flush { (0, 0) } else { (offset, bytes) };
        // Only reads and writes take memory.
        let held = if ask == Ask::Read { bytes as usize } else { data.len() };
        connections.begin(owner, held);
        let Connections { counts, by_unit, .. } = connections;
        let of_unit = &mut by_unit[usize::from(unit)];
        let counted = match ask.kind() {
            IoKind::Read => Some([&mut counts.read_bytes, &mut of_unit.read_bytes]),
            IoKind::Write => Some([&mut counts.written_bytes, &mut of_unit.written_bytes]),
            _ => None,
        };
        counted.into_iter().flatten().for_each(|count| *count += u64::from(bytes));
        let (since, number) = (self.now, self.recording.number());
        self.recording.came(number, unit, &data);
        let job =
            Job { owner: Some(owner), unit, handle, number, ask, offset, bytes, held, data, since, ..Job::default() };
        self.requests.add(self.port, self.now, job, &mut connections.spare());
    }
}

impl Clients {
    pub(crate) fn new(
        connections: Connections,
        control: Control,
        recording: Recording,
        poller: Rc<Poller>,
        (time_jumps, log): (bool, fn(&str)),
    ) -> Clients {
        Clients {
            connections,
            control,
            recording,
            requests: Requests::default(),
            poller,
            time_jumps,
            heard: Ns::ZERO,
            polled_with: 1,
            is_ending: false,
            has_flushed: false,
            lost: None,
            log,
        }
    }

    /// Whether answers should be sent now: before an order is carried out, so that no answer from before a power cut
    /// comes after that of the cut. Requests that have come are answered with them.
    #[inline]
    fn wants_to_send(&self) -> bool {
        let is_idle = self.requests.count() == 0 && !self.has_news();
        self.connections.has_to_send() || (self.connections.has_unsent() && (is_idle || self.control.has_work()))
    }

    /// Whether something came that was not taken in, and may be now: another host comes when everything has ended.
    #[inline]
    fn has_news(&self) -> bool {
        self.poller.is_ready() && !self.control.has_new_host()
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
        if self.connections.has_to_send() {
            self.look_if_time_jumps();
        }
        last
    }

    fn answer_one(&mut self, job: Job, now: Ns) {
        let Job { owner, ask, offset, bytes, .. } = job;
        if let Some((_, what)) = &job.failure {
            self.connections.counts.errors += 1;
            (self.log)(&format!("{:?} of {bytes} bytes at {offset} failed: {what}", ask.kind()));
        }
        if owner.is_none() {
            self.has_flushed = true;
            self.lost = job.failure.as_ref().map(|(_, what)| what.clone());
            if let Some(what) = &self.lost {
                self.has_flushed = self.is_ending;
                self.requests.troubles.drain(false);
                self.control.new_host_came(Err(what));
            }
        }
        let asked = job.asked(now);
        self.recording.ended(job.number, job.failure.is_some());
        self.connections.answer(asked, job, now);
        self.record();
    }

    /// Records requests whose answers have left.
    fn record(&mut self) {
        self.connections.take_left().for_each(|asked| self.recording.asked(&asked));
    }

    /// Polls the sockets, if time jumps. In real time the clock polls them, and keeps the time at which it did.
    fn look_if_time_jumps(&self) {
        if self.time_jumps {
            self.poller.look();
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
        self.requests.step_ended(port, cookie, refused, now, &mut self.connections.spare());
        let ended = self.answer(now);
        // Other requests need not wait until a long one has ended.
        if ended.is_none() {
            self.look_if_time_jumps();
        }
        ended
    }

    /// Takes in what sockets and signals have ready.
    fn hear(&mut self, port: &mut impl Port, now: Ns) {
        // Everything under way has to end before another host comes.
        if self.control.has_new_host() {
            return;
        }
        let Clients { connections, requests, recording, .. } = self;
        connections.read_resumed(&mut Taking { requests, recording, port, now });
        for ready in if self.poller.is_ready() { self.poller.take() } else { Vec::new() } {
            match ready.token {
                STOP => self.begin_to_end(now),
                token @ CONTROL..STOP => self.control.serve(&self.poller, token),
                token if self.connections.is_listener(token) => self.connections.accept(token),
                // A listener that the end of the server has closed.
                LISTENER.. => {}
                _ => {
                    let Clients { connections, requests, recording, .. } = self;
                    connections.serve(&mut Taking { requests, recording, port, now }, ready);
                }
            }
        }
        self.answer(now);
        self.record();
    }

    /// Whether the device is about to be switched off, and has not flushed yet what it accepted.
    fn has_to_flush(&self) -> bool {
        (self.is_ending || self.control.has_new_host()) && self.requests.count() == 0 && !self.is_flushed()
    }

    /// Whether the device may be switched off: what it accepted has been flushed, or was lost with its power.
    fn is_flushed(&self) -> bool {
        self.has_flushed || self.requests.troubles.is_off()
    }

    /// The device was switched off and on, and is ready at `now` for another host.
    pub(crate) fn begin_again(&mut self, now: Ns) {
        (self.heard, self.has_flushed) = (now, false);
        self.requests.troubles.drain(false);
        self.control.new_host_came(Ok(()));
    }

    /// The host that is to take over, if the server is not to end.
    pub(crate) fn new_host(&self) -> Option<Host> {
        let has_ended = self.is_ending && self.is_flushed() && self.requests.count() == 0;
        self.control.new_host().filter(|_| !has_ended)
    }

    /// Every client is disconnected, whether or not it has taken its answers.
    pub(crate) fn close(&mut self) {
        self.connections.close_all();
        self.record();
    }

    /// The server is to end: no client is read from any more, what is under way is answered.
    fn begin_to_end(&mut self, now: Ns) {
        self.is_ending = true;
        // Orders hold nothing back any more.
        self.requests.troubles.rules.end(Kind::Slow);
        self.requests.troubles.let_go();
        self.recording.ordered(now, &Order::Rules(RuleOrder::End(Kind::Slow)));
        self.recording.ordered(now, &Order::StallOff);
        self.connections.stop();
    }
}

impl Source for Clients {
    fn next_at(&self) -> Ns {
        if self.wants_to_send() || self.has_to_flush() {
            return Ns::ZERO;
        }
        let news = if self.has_news() || (self.connections.has_resumed() && !self.control.has_new_host()) {
            self.poller.woken().max(Ns(self.heard.0 + 1))
        } else {
            Ns::NEVER
        };
        // A clock that jumps would be there at once.
        let last = if !self.time_jumps && !self.is_ending { LAST } else { Ns::NEVER };
        news.min(last).min(self.requests.next_at())
    }

    fn act(&mut self, port: &mut impl Port, now: Ns, _until: Ns) {
        if self.requests.next_at() <= now {
            self.requests.release(port, now, &mut self.connections.spare());
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
            let job = Job { number: self.recording.number(), since: now, ..Job::default() };
            self.requests.add(port, now, job, &mut self.connections.spare());
            self.answer(now);
        }
        // A client that waits for one answer asks for nothing before. Sockets are polled again only for more answers.
        if self.wants_to_send() && self.connections.unsent() > self.polled_with {
            self.polled_with = self.connections.unsent();
            self.look_if_time_jumps();
        }
        if self.wants_to_send() {
            // What an answer tells of is in the file before it leaves.
            port.settle();
            self.connections.send();
            self.polled_with = 1;
            self.record();
        }
    }

    fn work_at(&self) -> Ns {
        self.control.work_at(self.requests.troubles.is_off())
    }

    fn work<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
    ) -> Result<Ns, RunError> {
        let Clients { connections, control, recording, requests, .. } = self;
        let Connections { counts, by_unit, lateness, .. } = connections;
        // So is what an answer to an order tells of.
        stack.payload.settle();
        let subject = Subject { requests, recording, counts, by_unit, lateness };
        let (after, heard) = control.work(stack, subject, now)?;
        match heard {
            Heard::Nothing => {}
            Heard::End => connections.close_all(),
            Heard::Silence => connections.fall_silent(),
            Heard::Back => connections.come_back(),
        }
        self.record();
        Ok(after)
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
        is_off && self.is_flushed() && self.requests.count() == 0 && !self.connections.has_unsent()
    }

    fn lost(&mut self, _port: &mut impl Port, _now: Ns) {
        unreachable!("the host keeps its power while it serves clients")
    }
}

/// The allocated extents of `bytes` bytes at `offset`, at least of the beginning of the range.
fn extents(port: &impl Port, unit: u8, offset: u64, bytes: u32, most: usize) -> Vec<Extent> {
    let end = offset + u64::from(bytes);
    let mut extents: Vec<Extent> = Vec::new();
    let (mut at, mut looked_at) = (offset, 0);
    while at < end && looked_at < LOOKED_AT {
        let block = at / BLOCK as u64;
        let next = ((block + 1) * BLOCK as u64).min(end);
        let hole = !port.holds_data(unit, block as u32);
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

#[cfg(test)]
mod cuts;
#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::Setup;
    use crate::control::Sources;
    use crate::nbd::Export;
    use crate::sockets::Listener;
    use readpath_device::NoMedia;
    use readpath_flash::AnySched;
    use readpath_host::{BlockRequest, HostConfig};
    use readpath_stack::{Fault, Ruled, Typed};
    use std::cell::Cell;
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::time::Duration;

    /// A device of which some blocks of unit 1 hold data.
    struct Holding(&'static [bool]);

    impl Port for Holding {
        fn submit(&mut self, _: Ns, _: &BlockRequest) {}
        fn prefetch(&self, _: u8, _: u32) {}
        fn prefetch_write(&self, _: u8, _: u32) {}
        fn bring(&mut self, _: u32, _: u32, _: Vec<u8>) {}

        fn holds_data(&self, unit: u8, block: u32) -> bool {
            unit == 1 && self.0[block as usize]
        }

        fn zone_pointers(&self, _: u8) -> Vec<u32> {
            Vec::new()
        }

        fn take(&mut self, _: u32) -> (Vec<u8>, Option<Fault>) {
            (Vec::new(), None)
        }

        fn settle(&mut self) {}
        fn rule(&mut self, _: &BlockRequest, _: Ruled) {}
    }

    /// A client that copies only what is allocated loses what is called a hole.
    #[test]
    fn extents_are_holes_where_nothing_is_held() {
        let port = Holding(&[true, true, false, true]);
        let of = |offset, bytes, most| {
            let extents = extents(&port, 1, offset, bytes, most);
            assert!(extents.iter().all(|extent| extent.zero == extent.hole), "what is not there reads as zeros");
            extents.iter().map(|extent| (extent.bytes, extent.hole)).collect::<Vec<_>>()
        };
        assert_eq!(of(0, 16384, 99), [(8192, false), (4096, true), (4096, false)]);
        assert_eq!(of(6000, 4096, 99), [(2192, false), (1904, true)], "parts of blocks");
        assert_eq!(of(0, 16384, 1), [(8192, false)], "one that is asked for");
    }

    /// A device that has the socket of its client.
    struct Heard<'a> {
        client: &'a UnixStream,
        submitted: Vec<u32>,
        /// How often it was settled when the client had not been answered.
        settled: u32,
    }

    impl Port for Heard<'_> {
        fn submit(&mut self, _: Ns, request: &BlockRequest) {
            self.submitted.push(request.cookie);
        }

        fn settle(&mut self) {
            let read = { self.client }.read(&mut [0]);
            assert!(read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "an answer has left before");
            self.settled += 1;
        }

        fn rule(&mut self, _: &BlockRequest, _: Ruled) {}
        fn prefetch(&self, _: u8, _: u32) {}
        fn prefetch_write(&self, _: u8, _: u32) {}
        fn bring(&mut self, _: u32, _: u32, _: Vec<u8>) {}

        fn holds_data(&self, _: u8, _: u32) -> bool {
            true
        }

        fn zone_pointers(&self, _: u8) -> Vec<u32> {
            Vec::new()
        }

        fn take(&mut self, _: u32) -> (Vec<u8>, Option<Fault>) {
            (Vec::new(), None)
        }
    }

    /// Data of a device whose orders come from a socket; and how often it was settled before they were answered.
    struct Ordered<'a>(&'a UnixStream, u32);

    impl Payload for Ordered<'_> {
        type Mode = NoMedia;

        fn settle(&mut self) {
            let read = { self.0 }.read(&mut [0]);
            assert!(read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "an answer has left before");
            self.1 += 1;
        }
    }

    /// What an answer tells of is in the file before it leaves: one to a request, and one to an order.
    #[test]
    fn the_device_is_settled_before_an_answer_leaves() {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut client = UnixStream::connect(folder.path().join("socket")).unwrap();
        let poller = Rc::new(Poller::new().unwrap());
        let log = |line: &str| panic!("{line}");
        let preset = readpath_config::device::parse(readpath_config::presets()[0].text, "preset").unwrap();
        let orders = UnixListener::bind(folder.path().join("orders")).unwrap();
        orders.set_nonblocking(true).unwrap();
        let sources = Sources {
            listener: Some(orders),
            metrics: None,
            due: Vec::new(),
            time_jumps: true,
            longest: Ns::ZERO,
            preset: preset.clone(),
            log,
        };
        let export = Export {
            name: String::new(),
            description: String::new(),
            bytes: 1 << 20,
            read_only: false,
            min_block: 1,
            preferred_block: 4096,
            max_payload: 1 << 20,
        };
        let setup = Setup {
            poller: poller.clone(),
            listeners: vec![Listener::Unix(listener)],
            exports: [export].into(),
            scale: None,
            disk: Rc::<Cell<Duration>>::default(),
            log,
        };
        let control = Control::new(sources, &poller).unwrap();
        let recording = Recording::default();
        let mut clients =
            Clients::new(Connections::new(setup).unwrap(), control, recording, poller.clone(), (true, log));
        let mut now = Ns::ZERO;
        let mut act = |clients: &mut Clients, port: &mut Heard| {
            poller.look();
            now = Ns(now.0 + 1);
            clients.act(port, now, now);
            now
        };
        let port = &mut Heard { client: &client.try_clone().unwrap(), submitted: Vec::new(), settled: 0 };
        client.set_nonblocking(true).unwrap();
        act(&mut clients, port);
        client.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
        // Takes greeting and export.
        assert_eq!(client.read(&mut [0; 100]).unwrap(), 18);
        act(&mut clients, port);
        assert_eq!(client.read(&mut [0; 100]).unwrap(), 10);
        let mut write = b"\x25\x60\x95\x13\0\0\0\x01handle..\0\0\0\0\0\0\0\0\0\0\x10\0".to_vec();
        write.resize(28 + 4096, 7);
        client.write_all(&write).unwrap();
        let now = act(&mut clients, port);
        let (&[cookie], settled) = (&port.submitted[..], port.settled) else { panic!("{:?}", port.submitted) };
        clients.ended(port, cookie, now);
        assert!(client.read(&mut [0]).is_err(), "it is answered when it is due");
        act(&mut clients, port);
        assert_eq!((client.read(&mut [0; 100]).unwrap(), port.settled), (16, settled + 1));
        let mut orders = UnixStream::connect(folder.path().join("orders")).unwrap();
        orders.set_nonblocking(true).unwrap();
        orders.write_all(b"seed 7\n").unwrap();
        act(&mut clients, port);
        let now = act(&mut clients, port);
        let (payload, host) = (Ordered(&orders, 0), HostConfig::LINUX);
        let mut stack =
            Stack::<AnySched, _, _, _>::new(&preset.device, host, preset.delays, payload, (), Typed).unwrap();
        clients.work(&mut stack, now).unwrap();
        assert_eq!(stack.payload.1, 1);
        act(&mut clients, port);
        assert_eq!((&orders).read(&mut [0; 100]).unwrap(), 7);
    }
}
