// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders for a server: from `readpath ctl` through a socket, one line for each connection, and from a file with their
//! times; and Prometheus, which only reads. They are carried out between two steps of the loop. It knows no client and
//! no NBD.

use crate::connections::{Counts, UnitCount};
use crate::host::Host;
use crate::lateness::Lateness;
use crate::metrics::{self, Form, Metrics};
use crate::orders::{Heard, ORDERS, Order, Refused};
use crate::poller::Poller;
use crate::record::Recording;
use crate::requests::Requests;
use readpath_config::DevicePreset;
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_run::RunError;
use readpath_run::rules::Due;
use readpath_stack::{Payload, Stack, Wire};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};

/// What the poller calls the control socket, and that of Prometheus; their connections have higher numbers.
pub(crate) const CONTROL: u64 = 1 << 49;
const METRICS: u64 = CONTROL + 1;
/// Longest line or header; connections at once.
const LONGEST: usize = 4096;
const MOST_LINKS: usize = 64;

/// A parsed request.
#[derive(Clone, PartialEq, Debug)]
enum Asked {
    Stats(Form),
    Order(Order),
}

/// Who asked.
#[derive(Clone, PartialEq, Eq, Debug)]
enum By {
    /// A connection, as the poller calls it.
    Link(u64),
    /// A line of a file, by its place.
    File(String),
}

fn parse(line: &str) -> Result<Asked, String> {
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["stats"] => Ok(Asked::Stats(Form::Plain)),
        [] => Err(format!("there are: stats, {ORDERS}")),
        _ => line.parse().map(Asked::Order).map_err(|error| error.to_string()),
    }
}

/// A connection.
enum Link {
    /// A connection of `readpath ctl`.
    Line(UnixStream),
    /// An HTTP connection of Prometheus.
    Http(TcpStream),
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Link::Line(stream) => stream.as_fd(),
            Link::Http(stream) => stream.as_fd(),
        }
    }
}

impl Link {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Link::Line(stream) => stream.read(bytes),
            Link::Http(stream) => stream.read(bytes),
        }
    }

    /// Answers and closes the connection. An answer is shorter than what a socket takes at once.
    fn answer(self, text: &str, is_good: bool) {
        match self {
            Link::Line(mut stream) => _ = write!(stream, "{}{text}", if is_good { "" } else { "error: " }),
            Link::Http(mut stream) => {
                let status = if is_good { "200 OK" } else { "404 Not Found" };
                let length = text.len();
                let kind = match text.ends_with(metrics::END) {
                    true => "application/openmetrics-text; version=1.0.0; charset=utf-8",
                    false => "text/plain; version=0.0.4; charset=utf-8",
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: \
                     close\r\n\r\n"
                );
                stream.write_all((head + text).as_bytes()).ok();
            }
        }
    }

    /// The request, once all of it has arrived; none until then.
    fn asked(&self, bytes: &[u8], is_over: bool) -> Option<Result<Asked, String>> {
        let text = |end| String::from_utf8_lossy(&bytes[..end]).trim().to_owned();
        let end = match self {
            Link::Line(_) => bytes.iter().position(|&byte| byte == b'\n'),
            Link::Http(_) => bytes.windows(4).position(|window| window == b"\r\n\r\n"),
        };
        let end = match end {
            None if !is_over && bytes.len() < LONGEST => return None,
            None if !is_over => return Some(Err(format!("more than {LONGEST} bytes are not read"))),
            end => end.unwrap_or(bytes.len()),
        };
        Some(match self {
            Link::Line(_) if !bytes[end..].trim_ascii().is_empty() => {
                Err("a connection takes one order, which is one line".to_owned())
            }
            Link::Line(_) => parse(&text(end)),
            Link::Http(_) if text(end).starts_with("GET /metrics") => Ok(Asked::Stats(wanted(&text(end)))),
            Link::Http(_) => Err("GET /metrics\n".to_owned()),
        })
    }
}

/// The form that a request for metrics accepts.
fn wanted(header: &str) -> Form {
    let accepts = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("accept").then(|| value.contains("application/openmetrics-text"))
    };
    if header.lines().filter_map(accepts).any(|open| open) { Form::OpenMetrics } else { Form::Prometheus }
}

struct Place {
    link: Link,
    bytes: Vec<u8>,
    life: u32,
}

/// Sockets that orders come from.
#[derive(Default)]
struct Links {
    listener: Option<UnixListener>,
    metrics: Option<TcpListener>,
    links: Vec<Option<Place>>,
    lives: u32,
    /// The connection whose order waits to be carried out.
    waits: Option<u64>,
}

/// Orders that wait, and the sockets that they come from.
pub(crate) struct Control {
    links: Links,
    /// What a connection asked for and has not been done.
    asked: Option<(u64, Asked)>,
    /// Orders that come at their times.
    due: VecDeque<Due<Order>>,
    /// If time jumps, the latest time: orders take effect with the requests that advance time, not before.
    heard: Option<Ns>,
    /// The host that is to take over, and who asked for it.
    new_host: Option<(Host, By)>,
    /// Longest time without power.
    longest: Ns,
    /// The device that hosts have to go with.
    preset: DevicePreset,
    /// Logs what came of orders of a file.
    log: fn(&str),
}

/// Sources of orders, and their limits.
pub(crate) struct Sources {
    pub listener: Option<UnixListener>,
    pub metrics: Option<TcpListener>,
    pub due: Vec<Due<Order>>,
    pub time_jumps: bool,
    /// As [`Control::longest`].
    pub longest: Ns,
    /// As [`Control::preset`].
    pub preset: DevicePreset,
    /// As [`Control::log`].
    pub log: fn(&str),
}

/// What orders act on apart from host and device.
pub(crate) struct Subject<'a> {
    pub requests: &'a mut Requests,
    pub recording: &'a mut Recording,
    /// What the server itself has counted, for those who ask.
    pub counts: &'a Counts,
    pub by_unit: &'a [UnitCount],
    pub lateness: &'a Lateness,
}

impl Control {
    pub(crate) fn new(sources: Sources, poller: &Poller) -> std::io::Result<Control> {
        let Sources { listener, metrics, due, time_jumps, longest, preset, log } = sources;
        if let Some(listener) = &listener {
            poller.add(listener, CONTROL)?;
        }
        if let Some(metrics) = &metrics {
            poller.add(metrics, METRICS)?;
        }
        let links = Links { listener, metrics, ..Links::default() };
        let heard = time_jumps.then_some(Ns::ZERO);
        Ok(Control { links, asked: None, due: due.into(), heard, new_host: None, longest, preset, log })
    }

    /// Time has come to `now`.
    #[inline]
    pub(crate) fn hear(&mut self, now: Ns) {
        self.heard.iter_mut().for_each(|heard| *heard = now);
    }

    /// Serves the file of `token`, which is ready.
    pub(crate) fn serve(&mut self, poller: &Poller, token: u64) {
        if matches!(token, CONTROL | METRICS) {
            return self.links.accept(poller);
        }
        // One connection at a time: the others stay ready.
        if self.asked.is_none()
            && let Some(asked) = self.links.read(poller, token)
        {
            self.links.waits = Some(token);
            self.asked = Some((token, asked));
        }
    }

    /// When there is something to be done with host and device: [`Control::work`]. While the power is off no request
    /// advances time, and it jumps to the next order.
    #[inline]
    pub(crate) fn work_at(&self, is_off: bool) -> Ns {
        let due = self.due.front().map_or(Ns::NEVER, |due| due.at);
        match self.heard {
            _ if self.asked.is_some() => Ns::ZERO,
            Some(heard) if heard < due && !is_off => Ns::NEVER,
            // What has been heard at this moment comes first, as in a replay.
            Some(heard) => due.max(Ns(heard.0 + 1)),
            None => due,
        }
    }

    /// Whether a connection asked for something that host or device have to do.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether a new host is to take over as soon as everything under way has ended.
    #[inline]
    pub(crate) fn has_new_host(&self) -> bool {
        self.new_host.is_some()
    }

    /// The host that is to take over.
    pub(crate) fn new_host(&self) -> Option<Host> {
        Some(self.new_host.as_ref()?.0.clone())
    }

    /// The new host has taken over; or it cannot, because the device cannot flush.
    pub(crate) fn new_host_came(&mut self, came: Result<(), &str>) {
        let Some((host, by)) = self.new_host.take() else { return };
        match came {
            Ok(()) => self.say(by, &format!("host {host}\n"), true),
            Err(why) => self.say(by, &format!("host {host}: the device cannot flush before: {why}\n"), false),
        }
    }

    /// Carries out an order that is due at `now`; returns the time when it is done, and what connections hear of it.
    ///
    /// # Errors
    /// Host and device cannot go on.
    pub(crate) fn work<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        subject: Subject,
        now: Ns,
    ) -> Result<(Ns, Heard), RunError> {
        let nothing = Ok((now, Heard::Nothing));
        let Subject { requests, recording, counts, by_unit, lateness } = subject;
        let (by, asked) = match self.asked.take() {
            Some((called, asked)) => (By::Link(called), asked),
            None => match self.due.pop_front() {
                Some(due) => (By::File(due.place), Asked::Order(due.order)),
                None => return nothing,
            },
        };
        self.links.waits = None;
        let order = match asked {
            Asked::Stats(form) => {
                let mut metrics = Metrics::new(form);
                metrics.server(counts, lateness, requests.count());
                metrics.units(by_unit);
                metrics.rules(&requests.troubles.rules.counts());
                metrics.stack(stack, now);
                self.say(by, &metrics.end(), true);
                return nothing;
            }
            Asked::Order(order) => order,
        };
        let longest = self.longest;
        let objection = match &order {
            Order::Cut { off } | Order::Disconnect { off } if *off > longest => {
                Some(format!("at this speed it may take {longest} at most"))
            }
            Order::Host(_) | Order::Disconnect { .. } | Order::Crash if self.new_host.is_some() => {
                Some("another host is about to take over".to_owned())
            }
            Order::Host(host) => host.fits(&self.preset).err(),
            _ => None,
        };
        let carried = match objection {
            Some(objection) => Err(Refused::Order(objection)),
            None => order.carry_out(stack, requests, now),
        };
        match carried {
            Ok(carried) => {
                for job in &carried.lost {
                    recording.ended(job.number, true);
                    recording.asked(&job.asked(now));
                }
                recording.ordered(now, &order);
                match order {
                    Order::Host(host) => self.new_host = Some((host, by)),
                    _ => self.say(by, &format!("{}\n", carried.answer), true),
                }
                Ok((carried.after, carried.heard))
            }
            Err(Refused::Order(error)) => {
                self.say(by, &format!("{order}: {error}\n"), false);
                nothing
            }
            Err(Refused::Run(error)) => Err(error),
        }
    }

    /// Answers an order: to its connection, or to the log, with the line of the file if it failed.
    fn say(&mut self, by: By, text: &str, is_good: bool) {
        match by {
            By::Link(called) => self.links.say(called, text, is_good),
            By::File(_) if is_good => (self.log)(text.trim_end()),
            By::File(place) => (self.log)(&format!("{place}: {}", text.trim_end())),
        }
    }
}

impl Links {
    fn accept(&mut self, poller: &Poller) {
        loop {
            let line = self.listener.as_ref().and_then(|listener| listener.accept().ok());
            let http = || self.metrics.as_ref().and_then(|listener| listener.accept().ok());
            let link = match line {
                Some((stream, _)) => Link::Line(stream),
                None => match http() {
                    Some((stream, _)) => Link::Http(stream),
                    None => return,
                },
            };
            let place = match self.links.iter().position(Option::is_none) {
                None if self.links.len() >= MOST_LINKS => self.make_room(poller),
                place => place.unwrap_or(self.links.len()),
            };
            let is_ready = match &link {
                Link::Line(stream) => stream.set_nonblocking(true),
                Link::Http(stream) => stream.set_nonblocking(true),
            };
            if is_ready.is_err() {
                continue;
            }
            self.lives = (self.lives + 1) & 0xffff;
            if poller.add(&link, token(place, self.lives)).is_err() {
                continue;
            }
            let new = Some(Place { link, bytes: Vec::new(), life: self.lives });
            match self.links.get_mut(place) {
                Some(empty) => *empty = new,
                None => self.links.push(new),
            }
        }
    }

    /// Disconnects the oldest connection that has not asked yet. Returns its place.
    fn make_room(&mut self, poller: &Poller) -> usize {
        let is_silent = |(at, place): (usize, &Option<Place>)| {
            let place = place.as_ref().filter(|place| Some(token(at, place.life)) != self.waits)?;
            Some((self.lives.wrapping_sub(place.life) & 0xffff, at))
        };
        let oldest = self.links.iter().enumerate().filter_map(is_silent).max().map_or(0, |(_, at)| at);
        if let Some(place) = self.links[oldest].take() {
            poller.remove(&place.link);
        }
        oldest
    }

    /// Reads from a connection; returns the request once all of it has arrived.
    fn read(&mut self, poller: &Poller, called: u64) -> Option<Asked> {
        let at = (called & 0xff) as usize;
        let place = self.links.get_mut(at)?.as_mut()?;
        if token(at, place.life) != called {
            return None;
        }
        let mut bytes = [0; LONGEST];
        let read = match place.link.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            read => read.unwrap_or(0),
        };
        place.bytes.extend(&bytes[..read]);
        let asked = place.link.asked(&place.bytes, read == 0)?;
        poller.remove(&place.link);
        asked.map_err(|error| self.say(called, &format!("{error}\n"), false)).ok()
    }

    /// Answers a connection and closes it.
    fn say(&mut self, called: u64, text: &str, is_good: bool) {
        let at = (called & 0xff) as usize;
        let is_there = |place: &mut Place| token(at, place.life) == called;
        if let Some(place) = self.links.get_mut(at).and_then(|link| link.take_if(is_there)) {
            place.link.answer(text, is_good);
        }
    }
}

fn token(place: usize, life: u32) -> u64 {
    CONTROL << 1 | u64::from(life) << 8 | place as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_ask_for_something() {
        assert_eq!(parse("stats"), Ok(Asked::Stats(Form::Plain)));
        assert_eq!(parse(" cut  2s "), Ok(Asked::Order(Order::Cut { off: Ns::from_secs(2) })));
        for line in ["", "stats all", "cut 5"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    /// A connection may have been replaced by another, which must not get the answer.
    #[test]
    fn an_answer_goes_to_the_connection_that_asked() {
        let (kept, mut other) = UnixStream::pair().unwrap();
        let place = Place { link: Link::Line(kept), bytes: Vec::new(), life: 2 };
        let mut links = Links { links: vec![Some(place)], ..Links::default() };
        links.say(token(0, 1), "not yours\n", true);
        assert!(links.links[0].is_some(), "it still waits for its own");
        links.say(token(0, 2), "yours\n", true);
        assert!(links.links[0].is_none());
        let mut heard = String::new();
        other.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "yours\n");
    }

    #[test]
    fn http_is_read_to_the_end_of_its_header() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = Link::Http(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        assert_eq!(link.asked(b"GET /metrics HTTP/1.1\r\nHost: x\r\n", false), None);
        let asked = |text: &[u8]| link.asked(text, false);
        let stats = |form| Some(Ok(Asked::Stats(form)));
        assert_eq!(asked(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), stats(Form::Prometheus));
        assert_eq!(asked(b"GET /metrics HTTP/1.1\r\nAccept: text/plain\r\n\r\n"), stats(Form::Prometheus));
        let open =
            b"GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n";
        assert_eq!(asked(open), stats(Form::OpenMetrics));
        assert!(link.asked(b"POST / HTTP/1.1\r\n\r\n", false).is_some_and(|asked| asked.is_err()));
        assert!(link.asked(&[b'x'; LONGEST], false).is_some_and(|asked| asked.is_err()));
    }
}
