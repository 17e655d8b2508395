// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control socket: whoever connects sends one line and gets text. What is asked of host and device happens between
//! two steps of the loop, as a hook.
//!
//! ```text
//! stats        counters, as Prometheus reads them: a name and a number in each line
//! cut [TIME]   the device loses its power for TIME (100ms unless told otherwise), and recovers
//! ```

use crate::poller::Poller;
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_run::{Hooks, RunError};
use readpath_stack::{Payload, Stack, Wire};
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::rc::Rc;

/// What the poller calls the control socket; its connections have higher numbers.
pub(crate) const CONTROL: u64 = 1 << 49;
/// Longest line; connections at once.
const LONGEST: usize = 256;
const MOST_LINKS: usize = 16;
/// What is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Asked {
    Stats,
    Cut { off: Ns },
}

/// `longest` is the longest time without power.
fn parse(line: &str, longest: Ns) -> Result<Asked, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["stats"] => Ok(Asked::Stats),
        ["cut"] => Ok(Asked::Cut { off: Ns::from_ms(100).min(longest) }),
        ["cut", time] => {
            let wrong = || format!("'{time}' is not a time without power: write 100ms or 2s, at most {longest}");
            let (digits, unit) = match time.strip_suffix("ms") {
                Some(digits) => (digits, 1_000_000),
                None => (time.strip_suffix('s').ok_or_else(wrong)?, 1_000_000_000),
            };
            let off = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).map(Ns);
            off.filter(|&off| off <= longest).map(|off| Asked::Cut { off }).ok_or_else(wrong)
        }
        _ => Err(format!("'{line}' is not a command; there are: stats, cut [TIME]")),
    }
}

struct Link {
    stream: UnixStream,
    line: Vec<u8>,
    life: u32,
}

#[derive(Default)]
struct State {
    listener: Option<UnixListener>,
    links: Vec<Option<Link>>,
    lives: u32,
    /// What waits to be done, and for whom.
    asked: Option<(u64, Asked)>,
    longest: Ns,
    /// What is said beside what host and device know.
    beside: String,
}

/// See the module. All clones are one.
#[derive(Clone, Default)]
pub(crate) struct Control {
    state: Rc<RefCell<State>>,
    has_work: Rc<Cell<bool>>,
}

impl Control {
    /// Listens to a socket, if there is to be one.
    pub(crate) fn new(listener: Option<UnixListener>, poller: &Poller, longest: Ns) -> std::io::Result<Control> {
        if let Some(listener) = &listener {
            poller.add(listener, CONTROL)?;
        }
        let control = Control::default();
        let mut state = control.state.borrow_mut();
        (state.listener, state.longest) = (listener, longest);
        drop(state);
        Ok(control)
    }

    /// Something that the poller calls `token` is ready; `beside` is what the server itself has counted.
    pub(crate) fn serve(&self, poller: &Poller, token: u64, beside: impl FnOnce() -> String) {
        let mut state = self.state.borrow_mut();
        if token == CONTROL {
            return state.accept(poller);
        }
        // One after the other: the rest stays ready.
        if !self.has_work.get() && state.read(poller, token) {
            state.beside = beside();
            self.has_work.set(true);
        }
    }
}

impl State {
    fn accept(&mut self, poller: &Poller) {
        while let Some(Ok((stream, _))) = self.listener.as_ref().map(UnixListener::accept) {
            let place = self.links.iter().position(Option::is_none).unwrap_or(self.links.len());
            if place >= MOST_LINKS || stream.set_nonblocking(true).is_err() {
                continue;
            }
            self.lives = (self.lives + 1) & 0xffff;
            let link = Link { stream, line: Vec::new(), life: self.lives };
            if poller.add(&link.stream, token(place, link.life)).is_err() {
                continue;
            }
            match self.links.get_mut(place) {
                Some(empty) => *empty = Some(link),
                None => self.links.push(Some(link)),
            }
        }
    }

    /// Reads from a connection. True if it has sent a line that says what to do.
    fn read(&mut self, poller: &Poller, called: u64) -> bool {
        let place = (called & 0xff) as usize;
        let Some(link) = self.links.get_mut(place).and_then(Option::as_mut) else { return false };
        if token(place, link.life) != called {
            return false;
        }
        let mut bytes = [0; LONGEST];
        let read = match link.stream.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            read => read.unwrap_or(0),
        };
        link.line.extend(&bytes[..read]);
        let end = link.line.iter().position(|&byte| byte == b'\n');
        if end.is_none() && read > 0 && link.line.len() < LONGEST {
            return false;
        }
        let line = String::from_utf8_lossy(&link.line[..end.unwrap_or(link.line.len())]).trim().to_owned();
        poller.remove(&link.stream);
        match parse(&line, self.longest) {
            Ok(asked) => {
                self.asked = Some((called, asked));
                true
            }
            Err(error) => {
                self.answer(called, &format!("error: {error}\n"));
                false
            }
        }
    }

    /// Says something, and hangs up.
    fn answer(&mut self, called: u64, text: &str) {
        if let Some(link) = self.links.get_mut((called & 0xff) as usize).and_then(Option::take) {
            // It is shorter than what a socket takes at once; whoever has gone away misses it.
            let mut stream = link.stream;
            stream.write_all(text.as_bytes()).ok();
        }
    }
}

fn token(place: usize, life: u32) -> u64 {
    CONTROL << 1 | u64::from(life) << 8 | place as u64
}

impl Hooks for Control {
    #[inline]
    fn next_at(&self) -> Ns {
        if self.has_work.get() { Ns::ZERO } else { Ns::NEVER }
    }

    fn happen<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
        in_flight: u32,
    ) -> Result<Ns, RunError> {
        self.has_work.set(false);
        let mut state = self.state.borrow_mut();
        let Some((called, asked)) = state.asked.take() else { return Ok(now) };
        let (answer, after) = match asked {
            Asked::Stats => (std::mem::take(&mut state.beside) + &stats(stack, now), now),
            Asked::Cut { off } => {
                let on = now + off;
                let recovery = stack.device_power_cycle(now, on);
                stack.advance(on);
                let text = format!(
                    "cut at {now} for {off} with {in_flight} requests in flight; {} units torn; recovered in {}\n",
                    recovery.torn,
                    recovery.ready_at.saturating_sub(on)
                );
                (text, on)
            }
        };
        state.answer(called, &answer);
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
    fn lines_are_commands() {
        let most = Ns::from_secs(60);
        assert_eq!(parse("stats", most), Ok(Asked::Stats));
        assert_eq!(parse("cut", most), Ok(Asked::Cut { off: Ns::from_ms(100) }));
        assert_eq!(parse(" cut  2s ", most), Ok(Asked::Cut { off: Ns::from_secs(2) }));
        assert_eq!(parse("cut 0ms", most), Ok(Asked::Cut { off: Ns::ZERO }));
        for line in ["", "cut 5", "cut 61s", "cut 99999999999999999999s", "cut -1s", "stats all", "stall"] {
            assert!(parse(line, most).is_err(), "{line}");
        }
    }
}
