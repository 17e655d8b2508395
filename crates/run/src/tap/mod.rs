// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tap on the wire and on the device's resources: every request, its stages and its UPIUs, written as they happen.
//!
//! The text is the JSON array of Chrome's trace event format (public document "Trace Event Format"), one event per
//! line, which Perfetto and chrome://tracing open and a person can read; `docs/formats/trace-io.md` describes it. The
//! tap sees what a [`Probe`] sees and nothing else; it keeps one buffer and the requests in flight, never the trace.

mod line;
mod text;

pub use line::UpiuText;
use readpath_device::{Probe, Resource, StageOf};
use readpath_kit::Ns;
use readpath_proto::typed::{Reply, ReplyBody, Request, RequestBody, Response};
use readpath_proto::upiu;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io;
use text::{Details, Escaped, Hex, Name, Notification, Outcome, Us, reply_name, request_name};

/// Default limit of requests that a trace records: about 200 MB of text for reads of one block.
pub const TRACE_IO_LIMIT: u64 = 100_000;

/// Bytes that are collected before they are written.
const BUFFER: usize = 64 << 10;

/// Processes of the trace: the host with a track per tag, the device with a track per resource.
const HOST: u32 = 1;
const DEVICE: u32 = 2;

/// Tracks have numbers of their own over both processes, in the order in which they are to be shown.
const INTERRUPTS: u32 = 1;
const TAGS: u32 = 100;
const LINK_DOWN: u32 = 1_000;
const FIRMWARE: u32 = 1_001;
const ENGINE: u32 = 1_002;
const DIES: u32 = 10_000;
const CHANNELS: u32 = 1_000_000;
const LINK_UP: u32 = 2_000_000;

/// A request whose reply has not come.
#[derive(Clone, Copy)]
struct Open {
    number: u64,
    since: Ns,
    request: Request,
}

/// The start of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TapFrom {
    /// After this many requests.
    Request(u64),
    /// With the first request that is sent at this time or later.
    Time(Ns),
}

/// The part of the trace that is still to be recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing yet: the trace begins later.
    Before(TapFrom),
    /// Everything.
    All,
    /// The limit is reached: only the requests that are open.
    Rest,
    /// Nothing: nothing is open any more, writing failed, or the trace is closed.
    Nothing,
}

/// Records what it observes to `W` in virtual time. Call [`Tap::finish`] at the end, also of a run that failed.
pub struct Tap<W: io::Write> {
    out: W,
    buffer: String,
    title: String,
    limit: u64,
    state: State,
    closed: bool,
    error: Option<io::Error>,
    events: u64,
    /// Requests seen.
    seen: u64,
    /// Requests recorded.
    requests: u64,
    open: Vec<Option<Open>>,
    open_count: u32,
    tracks: HashSet<u32>,
    bytes: Vec<u8>,
    last: Ns,
    wall: Option<Box<dyn FnMut() -> Ns + Send>>,
    left_out: Option<u8>,
}

/// A tap of a run, wherever it writes to: so that runs with a tap are compiled once.
pub type TapTo<'a> = Tap<&'a mut dyn io::Write>;

impl<W: io::Write> Tap<W> {
    /// A tap that writes to `out`. `title` labels the host's tracks; after `limit` requests (`None`: never) no
    /// further one is recorded, and the trace says so.
    pub fn new(out: W, title: &str, limit: Option<u64>) -> Self {
        let mut tap = Tap {
            out,
            buffer: String::with_capacity(BUFFER + 4096),
            title: title.to_owned(),
            limit: limit.unwrap_or(u64::MAX),
            state: State::All,
            closed: false,
            error: None,
            events: 0,
            seen: 0,
            requests: 0,
            open: vec![None; 256],
            open_count: 0,
            tracks: HashSet::new(),
            bytes: Vec::new(),
            last: Ns::ZERO,
            wall: None,
            left_out: None,
        };
        for (pid, name) in [(HOST, "host"), (DEVICE, "device")] {
            tap.metadata("process_name", pid, 0, format_args!("\"name\":\"{name}\""));
            tap.metadata("process_sort_index", pid, 0, format_args!("\"sort_index\":{pid}"));
        }
        let labels = format!("\"labels\":\"{}\"", Escaped(title));
        tap.metadata("process_labels", HOST, 0, format_args!("{labels}"));
        tap
    }

    /// From now on UPIUs and marks have the time that `wall` gives when they are written. In real time resets are
    /// marked too, and a dropped request ends when it is dropped, not when its tag is used again.
    #[must_use]
    pub fn with_wall_clock(mut self, wall: impl FnMut() -> Ns + Send + 'static) -> Self {
        self.wall = Some(Box::new(wall));
        self
    }

    /// Requests before `from` are not recorded; their numbers are not given again.
    #[must_use]
    pub fn starting(mut self, from: TapFrom) -> Self {
        self.state = State::Before(from);
        self
    }

    /// Requests with `tag` are not recorded: they are not the client's.
    #[must_use]
    pub fn leaving_out(mut self, tag: u8) -> Self {
        self.left_out = Some(tag);
        self
    }

    /// Writes a line over all tracks at `now`, such as the beginning of a phase.
    pub fn mark(&mut self, now: Ns, name: &str) {
        if self.state != State::All {
            return;
        }
        self.global(now, &Escaped(name).to_string());
    }

    /// Requests recorded so far, those without reply included.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Closes the trace: requests that are still open get their span up to the last time seen and the status
    /// "no reply", and the array gets its end. Nothing is recorded afterwards. Returns the number of events written.
    ///
    /// # Errors
    /// The first error of the writer; recording stopped there, and the array is not closed. Viewers accept that.
    pub fn finish(&mut self) -> io::Result<u64> {
        if !self.closed {
            self.closed = true;
            for tag in 0..self.open.len() {
                self.close(tag as u8, self.last, None);
            }
            if self.error.is_none() {
                self.buffer.push_str("\n]\n");
                self.write_out();
            }
            if self.error.is_none() {
                self.error = self.out.flush().err();
            }
            self.state = State::Nothing;
        }
        match self.error.take() {
            Some(e) => Err(e),
            None => Ok(self.events),
        }
    }

    /// Begins the line of an event; the caller adds the event to `buffer` and calls [`Tap::end_event`].
    fn begin_event(&mut self) {
        self.buffer.push_str(if self.events == 0 { "[\n" } else { ",\n" });
        self.events += 1;
    }

    fn end_event(&mut self) {
        if self.buffer.len() >= BUFFER {
            self.write_out();
        }
    }

    fn write_out(&mut self) {
        if self.error.is_none()
            && let Err(e) = self.out.write_all(self.buffer.as_bytes())
        {
            self.error = Some(e);
            self.state = State::Nothing;
        }
        self.buffer.clear();
    }

    /// Adds the wall time to the members of an event, if there is a clock.
    fn wall(&mut self, comma: &str) {
        if let Some(wall) = &mut self.wall {
            let _ = write!(self.buffer, r#"{comma}"wall_ns":{}"#, wall().0);
        }
    }

    fn metadata(&mut self, name: &str, pid: u32, tid: u32, args: std::fmt::Arguments) {
        self.begin_event();
        let _ = write!(self.buffer, r#"{{"name":"{name}","ph":"M","pid":{pid},"tid":{tid},"args":{{{args}}}}}"#);
        self.end_event();
    }

    /// An instant over all tracks; `name` is already escaped.
    fn global(&mut self, now: Ns, name: &str) {
        self.begin_event();
        let (ts, b) = (Us(now), &mut self.buffer);
        let _ = write!(b, r#"{{"name":"{name}","ph":"i","s":"g","ts":{ts},"pid":{HOST},"tid":0,"args":{{"#);
        self.wall("");
        self.buffer.push_str("}}");
        self.end_event();
    }

    /// Names a track when it is used first.
    fn track(&mut self, pid: u32, tid: u32, name: &str, index: Option<u32>) -> u32 {
        if self.tracks.insert(tid) {
            match index {
                Some(i) => self.metadata("thread_name", pid, tid, format_args!("\"name\":\"{name} {i}\"")),
                None => self.metadata("thread_name", pid, tid, format_args!("\"name\":\"{name}\"")),
            }
            self.metadata("thread_sort_index", pid, tid, format_args!("\"sort_index\":{tid}"));
        }
        tid
    }

    fn tag_track(&mut self, tag: u8) -> u32 {
        self.track(HOST, TAGS + u32::from(tag), "tag", Some(tag.into()))
    }

    /// Writes the span of the request that `tag` holds, if it holds one.
    fn close(&mut self, tag: u8, now: Ns, reply: Option<&Reply>) {
        let Some(open) = self.open[usize::from(tag)].take() else { return };
        self.open_count -= 1;
        if self.state == State::Nothing {
            return;
        }
        let tid = self.tag_track(tag);
        self.begin_event();
        let (name, details, outcome) = (Name(&open.request), Details(&open.request), Outcome(reply));
        let (ts, dur, number) = (Us(open.since), Us(now.saturating_sub(open.since)), open.number);
        let _ = write!(
            self.buffer,
            r#"{{"name":"{name}","cat":"request","ph":"X","ts":{ts},"dur":{dur},"pid":{HOST},"tid":{tid},"args":{{"request":{number},"tag":{tag},{details}{outcome}}}}}"#
        );
        self.end_event();
    }

    /// A step of the arrow from a request to its stages, at the beginning of the bar of this track.
    fn flow(&mut self, phase: char, number: u64, start: Ns, pid: u32, tid: u32) {
        self.begin_event();
        let ts = Us(start);
        let _ = write!(
            self.buffer,
            r#"{{"name":"request","cat":"flow","ph":"{phase}","bp":"e","id":{number},"ts":{ts},"pid":{pid},"tid":{tid}}}"#
        );
        self.end_event();
    }

    /// The counter of recorded requests in flight.
    fn in_flight(&mut self, now: Ns) {
        if self.state == State::Nothing {
            return;
        }
        self.begin_event();
        let (ts, count) = (Us(now), self.open_count);
        let _ = write!(
            self.buffer,
            r#"{{"name":"in flight","cat":"counter","ph":"C","ts":{ts},"pid":{HOST},"args":{{"requests":{count}}}}}"#
        );
        self.end_event();
    }

    /// An instant with the bytes of a UPIU (from `self.bytes`) on a tag's track.
    fn upiu(&mut self, now: Ns, tag: u8, name: &str, number: u64, data: &[u8]) {
        let tid = self.tag_track(tag);
        self.begin_event();
        let (ts, upiu) = (Us(now), Hex(&self.bytes));
        let _ = write!(
            self.buffer,
            r#"{{"name":"{name} UPIU","cat":"upiu","ph":"i","s":"t","ts":{ts},"pid":{HOST},"tid":{tid},"args":{{"request":{number},"upiu":"{upiu}""#
        );
        if !data.is_empty() {
            let _ = write!(self.buffer, r#","data":"{}""#, Hex(data));
        }
        self.wall(",");
        self.buffer.push_str("}}");
        self.end_event();
    }

    /// The limit is reached at `now`.
    fn stop_taking(&mut self, now: Ns) {
        let text = format!("only the first {} requests are recorded", self.limit);
        self.global(now, &text);
        let labels = format!("\"labels\":\"{}: {text}\"", Escaped(&self.title));
        self.metadata("process_labels", HOST, 0, format_args!("{labels}"));
        self.rest();
    }

    fn rest(&mut self) {
        if self.state != State::Nothing {
            self.state = if self.open_count == 0 { State::Nothing } else { State::Rest };
        }
    }
}

impl<W: io::Write> Probe for Tap<W> {
    const ACTIVE: bool = true;

    fn stage(&mut self, of: StageOf, resource: Resource, start: Ns, end: Ns) {
        if matches!(self.state, State::Nothing | State::Before(_)) {
            return;
        }
        let open = match of {
            StageOf::Request(tag) => match self.open[usize::from(tag)] {
                Some(open) => Some(open),
                None => return,
            },
            _ => None,
        };
        self.last = self.last.max(end);
        let (tid, cat) = match resource {
            Resource::LinkDown => (self.track(DEVICE, LINK_DOWN, "link down", None), "link"),
            Resource::Firmware => (self.track(DEVICE, FIRMWARE, "firmware", None), "firmware"),
            Resource::Engine => (self.track(DEVICE, ENGINE, "entry engine", None), "engine"),
            Resource::Die(i) => (self.track(DEVICE, DIES + i, "die", Some(i)), "die"),
            Resource::Channel(i) => (self.track(DEVICE, CHANNELS + i, "channel", Some(i)), "channel"),
            Resource::LinkUp => (self.track(DEVICE, LINK_UP, "link up", None), "link"),
        };
        self.begin_event();
        let b = &mut self.buffer;
        b.push_str(r#"{"name":""#);
        let _ = match (of, &open) {
            (_, Some(open)) => write!(b, "{}", Name(&open.request)),
            (StageOf::MapLoad(_), _) => write!(b, "map load"),
            (StageOf::Erase, _) => write!(b, "erase"),
            (StageOf::Collect, _) => write!(b, "collect"),
            (StageOf::WriteBack, _) => write!(b, "map write-back"),
            (StageOf::Dropped, _) => write!(b, "dropped"),
            (StageOf::Program | StageOf::Request(_), _) => write!(b, "program"),
        };
        let (ts, dur) = (Us(start), Us(end.saturating_sub(start)));
        let _ = write!(b, r#"","cat":"{cat}","ph":"X","ts":{ts},"dur":{dur},"pid":{DEVICE},"tid":{tid},"args":{{"#);
        let _ = match (of, &open) {
            (StageOf::Request(tag), Some(open)) => write!(b, r#""request":{},"tag":{tag}"#, open.number),
            (StageOf::MapLoad(page), _) => write!(b, r#""map_page":{page}"#),
            _ => Ok(()),
        };
        b.push_str("}}");
        self.end_event();
        if let Some(open) = open {
            self.flow('t', open.number, start, DEVICE, tid);
        }
    }

    fn request(&mut self, now: Ns, request: &Request, data: &[u8]) {
        if self.state == State::Nothing || self.left_out == Some(request.tag) {
            return;
        }
        self.last = self.last.max(now);
        // The device dropped the request that had this tag.
        self.close(request.tag, now, None);
        self.seen += 1;
        if let State::Before(from) = self.state {
            let begins = match from {
                TapFrom::Request(number) => self.seen > number,
                TapFrom::Time(time) => now >= time,
            };
            if !begins {
                return;
            }
            self.state = State::All;
        }
        if self.state == State::All && self.requests == self.limit {
            self.stop_taking(now);
        }
        if self.state != State::All {
            return self.rest();
        }
        self.requests += 1;
        let number = self.seen;
        self.open[usize::from(request.tag)] = Some(Open { number, since: now, request: *request });
        self.open_count += 1;
        self.in_flight(now);
        let tid = self.tag_track(request.tag);
        self.flow('s', number, now, HOST, tid);
        let (segment, list) = match request.body {
            RequestBody::Query(_) => (data, &[][..]),
            _ => (&[][..], data),
        };
        upiu::encode_request(request, segment, &mut self.bytes);
        self.upiu(now, request.tag, request_name(&request.body), number, list);
    }

    fn reply(&mut self, now: Ns, reply: &Reply, data: &[u8]) {
        if self.state == State::Nothing {
            return;
        }
        let Some(open) = self.open[usize::from(reply.tag)] else { return };
        self.last = self.last.max(now);
        let segment = match reply.body {
            ReplyBody::Query(_) => data,
            _ => &[],
        };
        upiu::encode_reply(reply, segment, &mut self.bytes);
        self.upiu(now, reply.tag, reply_name(&reply.body), open.number, &[]);
        if let ReplyBody::Response(Response { hpb: Some(n), .. }) = &reply.body {
            let tid = self.tag_track(reply.tag);
            self.begin_event();
            let (ts, number, n) = (Us(now), open.number, Notification(n));
            let _ = write!(
                self.buffer,
                r#"{{"name":"HPB notification","cat":"hpb","ph":"i","s":"t","ts":{ts},"pid":{HOST},"tid":{tid},"args":{{"request":{number},{n}}}}}"#
            );
            self.end_event();
        }
        self.close(reply.tag, now, Some(reply));
        self.in_flight(now);
        if self.state == State::Rest {
            self.rest();
        }
    }

    fn dropped(&mut self, now: Ns, tag: u8) {
        if self.wall.is_some() {
            self.last = self.last.max(now);
            self.close(tag, now, None);
        }
    }

    fn reset(&mut self, now: Ns) {
        if self.wall.is_some() {
            (0..=u8::MAX).for_each(|tag| self.dropped(now, tag));
            self.mark(now, "reset");
        }
    }

    fn heard(&mut self, now: Ns) {
        if self.state == State::Nothing || self.wall.is_none() {
            return;
        }
        self.last = self.last.max(now);
        let tid = self.track(HOST, INTERRUPTS, "interrupts", None);
        self.begin_event();
        let ts = Us(now);
        let _ = write!(
            self.buffer,
            r#"{{"name":"replies heard","cat":"heard","ph":"i","s":"t","ts":{ts},"pid":{HOST},"tid":{tid},"args":{{"#
        );
        self.wall("");
        self.buffer.push_str("}}");
        self.end_event();
    }
}

#[cfg(test)]
mod tests;
