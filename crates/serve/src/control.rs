// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who controls a server: `readpath ctl` through a socket, one line for each connection; a file of orders with their
//! times; and Prometheus, which only reads. What is asked of host and device happens between two steps of the loop, as
//! a hook.

use crate::host::Host;
use crate::orders::{Due, ORDERS, Order};
use crate::poller::Poller;
use crate::record::Recording;
use crate::troubles::Troubles;
use readpath_config::DevicePreset;
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_run::{Hooks, RunError};
use readpath_stack::{Payload, Stack, Wire};
use readpath_store::Transfers;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::rc::Rc;

/// What the poller calls the control socket, and that of Prometheus; their connections have higher numbers.
pub(crate) const CONTROL: u64 = 1 << 49;
const METRICS: u64 = CONTROL + 1;
/// Longest line or header; connections at once.
const LONGEST: usize = 4096;
const MOST_LINKS: usize = 64;

/// What is asked for.
#[derive(Clone, PartialEq, Debug)]
enum Asked {
    Stats,
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
        ["stats"] => Ok(Asked::Stats),
        [] => Err(format!("there are: stats, {ORDERS}")),
        _ => line.parse().map(Asked::Order).map_err(|error| error.to_string()),
    }
}

/// A connection.
enum Link {
    /// Of `readpath ctl`.
    Line(UnixStream),
    /// Of Prometheus: HTTP.
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

    /// Says something, and hangs up. It is shorter than what a socket takes at once; whoever has gone away misses it.
    fn answer(self, text: &str, is_good: bool) {
        match self {
            Link::Line(mut stream) => _ = write!(stream, "{}{text}", if is_good { "" } else { "error: " }),
            Link::Http(mut stream) => {
                let status = if is_good { "200 OK" } else { "404 Not Found" };
                let length = text.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\n\
                     Connection: close\r\n\r\n"
                );
                stream.write_all((head + text).as_bytes()).ok();
            }
        }
    }

    /// What was asked, once all of it has come: none until then.
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
            Link::Line(_) => parse(&text(end)),
            Link::Http(_) if text(end).starts_with("GET /metrics") => Ok(Asked::Stats),
            Link::Http(_) => Err("GET /metrics\n".to_owned()),
        })
    }
}

struct Place {
    link: Link,
    bytes: Vec<u8>,
    life: u32,
}

/// What orders act on beside host and device.
#[derive(Clone, Default)]
pub(crate) struct Subject {
    pub troubles: Troubles,
    pub transfers: Transfers,
    pub recording: Recording,
}

#[derive(Default)]
struct State {
    listener: Option<UnixListener>,
    metrics: Option<TcpListener>,
    links: Vec<Option<Place>>,
    lives: u32,
    /// What waits to be done, and for whom.
    asked: Option<(u64, Asked)>,
    /// Longest time without power.
    longest: Ns,
    /// What is said beside what host and device know.
    beside: String,
    /// Orders that come at their times.
    due: VecDeque<Due>,
    /// The host that is to take over, and who asked for it.
    new_host: Option<(Host, By)>,
    subject: Subject,
    preset: Option<DevicePreset>,
    log: Option<fn(&str)>,
}

/// See the module. All clones are one.
#[derive(Clone, Default)]
pub(crate) struct Control {
    state: Rc<RefCell<State>>,
    has_work: Rc<Cell<bool>>,
    /// When the next order comes by itself; and if time jumps, how far it has come. Then orders come with the requests
    /// that take it there, not before.
    due: Rc<Cell<Ns>>,
    heard: Option<Rc<Cell<Ns>>>,
    has_new_host: Rc<Cell<bool>>,
}

/// Where orders come from, and what they may do.
pub(crate) struct Sources {
    pub listener: Option<UnixListener>,
    pub metrics: Option<TcpListener>,
    pub due: Vec<Due>,
    pub time_jumps: bool,
    pub longest: Ns,
    pub subject: Subject,
    /// The device that hosts have to go with.
    pub preset: DevicePreset,
    /// Hears of orders that come by themselves.
    pub log: fn(&str),
}

impl Control {
    pub(crate) fn new(sources: Sources, poller: &Poller) -> std::io::Result<Control> {
        let Sources { listener, metrics, due, time_jumps, longest, subject, preset, log } = sources;
        if let Some(listener) = &listener {
            poller.add(listener, CONTROL)?;
        }
        if let Some(metrics) = &metrics {
            poller.add(metrics, METRICS)?;
        }
        let (due, log, preset) = (due.into(), Some(log), Some(preset));
        let state = State { listener, metrics, due, longest, subject, preset, log, ..State::default() };
        let control =
            Control { state: Rc::new(RefCell::new(state)), heard: time_jumps.then(Rc::default), ..Control::default() };
        control.find_due();
        Ok(control)
    }

    fn find_due(&self) {
        self.due.set(self.state.borrow().due.front().map_or(Ns::NEVER, |due| due.at));
    }

    /// Time has come to `now`.
    #[inline]
    pub(crate) fn hear(&self, now: Ns) {
        self.heard.iter().for_each(|heard| heard.set(now));
    }

    /// Something that the poller calls `token` is ready; `beside` is what the server itself has counted.
    pub(crate) fn serve(&self, poller: &Poller, token: u64, beside: impl FnOnce() -> String) {
        let mut state = self.state.borrow_mut();
        if matches!(token, CONTROL | METRICS) {
            return state.accept(poller);
        }
        // One after the other: the rest stays ready.
        if !self.has_work.get() && state.read(poller, token) {
            state.beside = beside();
            self.has_work.set(true);
        }
    }

    /// Whether something was asked for that host or device have to do.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.has_work.get()
    }

    /// Whether a new host is to take over as soon as everything under way has ended.
    #[inline]
    pub(crate) fn has_new_host(&self) -> bool {
        self.has_new_host.get()
    }

    /// The host that is to take over.
    pub(crate) fn new_host(&self) -> Option<Host> {
        Some(self.state.borrow().new_host.as_ref()?.0.clone())
    }

    /// It cannot: what the device holds in its buffer would be lost.
    pub(crate) fn host_cannot_come(&self, why: &str) {
        let mut state = self.state.borrow_mut();
        self.has_new_host.set(false);
        state.subject.troubles.drain(false);
        if let Some((host, by)) = state.new_host.take() {
            state.say(by, &format!("host {host}: the device cannot flush before: {why}\n"), false);
        }
    }

    /// It has taken over.
    pub(crate) fn host_has_come(&self) {
        let mut state = self.state.borrow_mut();
        self.has_new_host.set(false);
        state.subject.troubles.drain(false);
        if let Some((host, by)) = state.new_host.take() {
            state.say(by, &format!("host {host}\n"), true);
        }
    }
}

impl State {
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

    /// Whoever has been silent for longest goes. Returns its place.
    fn make_room(&mut self, poller: &Poller) -> usize {
        let waits = self.asked.as_ref().map(|&(called, _)| called);
        let is_silent = |(at, place): (usize, &Option<Place>)| {
            let place = place.as_ref().filter(|place| Some(token(at, place.life)) != waits)?;
            Some((self.lives.wrapping_sub(place.life) & 0xffff, at))
        };
        let oldest = self.links.iter().enumerate().filter_map(is_silent).max().map_or(0, |(_, at)| at);
        if let Some(place) = self.links[oldest].take() {
            poller.remove(&place.link);
        }
        oldest
    }

    /// Reads from a connection. True if it has asked for something.
    fn read(&mut self, poller: &Poller, called: u64) -> bool {
        let at = (called & 0xff) as usize;
        let Some(place) = self.links.get_mut(at).and_then(Option::as_mut) else { return false };
        if token(at, place.life) != called {
            return false;
        }
        let mut bytes = [0; LONGEST];
        let read = match place.link.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            read => read.unwrap_or(0),
        };
        place.bytes.extend(&bytes[..read]);
        let Some(asked) = place.link.asked(&place.bytes, read == 0) else { return false };
        poller.remove(&place.link);
        match asked {
            Ok(asked) => {
                self.asked = Some((called, asked));
                true
            }
            Err(error) => {
                self.say(By::Link(called), &format!("{error}\n"), false);
                false
            }
        }
    }

    /// Says something to whoever asked. The log hears what came of a file, and of which line if it went wrong.
    fn say(&mut self, by: By, text: &str, is_good: bool) {
        match by {
            By::Link(called) => {
                let at = (called & 0xff) as usize;
                let link = self.links.get_mut(at);
                let is_there = |place: &mut Place| token(at, place.life) == called;
                if let Some(place) = link.and_then(|link| link.take_if(is_there)) {
                    place.link.answer(text, is_good);
                }
            }
            By::File(_) if is_good => _ = self.log.map(|log| log(text.trim_end())),
            By::File(place) => _ = self.log.map(|log| log(&format!("{place}: {}", text.trim_end()))),
        }
    }
}

fn token(place: usize, life: u32) -> u64 {
    CONTROL << 1 | u64::from(life) << 8 | place as u64
}

impl Hooks for Control {
    #[inline]
    fn next_at(&self) -> Ns {
        match &self.heard {
            _ if self.has_work.get() => Ns::ZERO,
            Some(heard) if heard.get() < self.due.get() => Ns::NEVER,
            _ => self.due.get(),
        }
    }

    fn happen<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
        in_flight: u32,
    ) -> Result<Ns, RunError> {
        let mut state = self.state.borrow_mut();
        let asked = match self.has_work.take() {
            true => state.asked.take().map(|(called, asked)| (By::Link(called), asked)),
            false => state.due.pop_front().map(|due| (By::File(due.place), Asked::Order(due.order))),
        };
        let Some((by, asked)) = asked else { return Ok(now) };
        let order = match asked {
            Asked::Stats => {
                let text = std::mem::take(&mut state.beside) + &stats(stack, now);
                state.say(by, &text, true);
                return Ok(now);
            }
            Asked::Order(order) => order,
        };
        let longest = state.longest;
        let objection = match &order {
            Order::Cut { off } if *off > longest => Some(format!("at this speed it may take {longest} at most")),
            Order::Host(_) if state.new_host.is_some() => Some("another host is about to take over".to_owned()),
            Order::Host(host) => state.preset.as_ref().and_then(|preset| host.fits(preset).err()),
            _ => None,
        };
        let Subject { troubles, transfers, .. } = &state.subject;
        let carried = match objection {
            Some(objection) => Err(objection),
            None => order.carry_out(stack, (troubles, transfers), now, in_flight),
        };
        let after = match carried {
            Ok(carried) => {
                state.subject.recording.told(now, &order);
                match order {
                    Order::Host(host) => {
                        state.new_host = Some((host, by));
                        self.has_new_host.set(true);
                    }
                    _ => state.say(by, &format!("{}\n", carried.answer), true),
                }
                carried.after
            }
            Err(error) => {
                state.say(by, &format!("{order}: {error}\n"), false);
                now
            }
        };
        drop(state);
        self.find_due();
        Ok(after)
    }
}

/// Counters of host and device.
fn stats<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &Stack<S, X, P, W>, now: Ns) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "readpath_device_time_seconds {}", now.0 as f64 / 1e9);
    for (name, value) in stack.device.stats().by_name() {
        let _ = writeln!(text, "readpath_device_{name} {value}");
    }
    let wear = stack.device.wear();
    let _ = writeln!(text, "readpath_device_erases_mean {}\nreadpath_device_erases_max {}", wear.mean, wear.max);
    let _ = writeln!(text, "readpath_device_bad_blocks_now {}", wear.bad_blocks);
    for lun in stack.host.luns() {
        let Some(counters) = stack.host.counters(lun) else { continue };
        for (name, value) in counters.by_name() {
            let _ = writeln!(text, "readpath_hpb_{name}{{lun=\"{lun}\"}} {value}");
        }
        if let Some(memory) = stack.host.memory(lun) {
            let _ = writeln!(text, "readpath_hpb_map_bytes{{lun=\"{lun}\"}} {}", memory.map_bytes);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_ask_for_something() {
        assert_eq!(parse("stats"), Ok(Asked::Stats));
        assert_eq!(parse(" cut  2s "), Ok(Asked::Order(Order::Cut { off: Ns::from_secs(2) })));
        for line in ["", "stats all", "cut 5"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    /// Who asked may have had to make room for somebody else, who must not get the answer.
    #[test]
    fn an_answer_goes_to_whoever_asked() {
        let (kept, mut other) = UnixStream::pair().unwrap();
        let place = Place { link: Link::Line(kept), bytes: Vec::new(), life: 2 };
        let mut state = State { links: vec![Some(place)], ..State::default() };
        state.say(By::Link(token(0, 1)), "not yours\n", true);
        assert!(state.links[0].is_some(), "it still waits for its own");
        state.say(By::Link(token(0, 2)), "yours\n", true);
        assert!(state.links[0].is_none());
        let mut heard = String::new();
        other.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "yours\n");
    }

    #[test]
    fn http_is_read_to_the_end_of_its_header() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = Link::Http(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        assert_eq!(link.asked(b"GET /metrics HTTP/1.1\r\nHost: x\r\n", false), None);
        assert_eq!(link.asked(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", false), Some(Ok(Asked::Stats)));
        assert!(link.asked(b"POST / HTTP/1.1\r\n\r\n", false).is_some_and(|asked| asked.is_err()));
        assert!(link.asked(&[b'x'; LONGEST], false).is_some_and(|asked| asked.is_err()));
    }
}
