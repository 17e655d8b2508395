// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wait for real time and for sockets at once. The clock waits here, and servers take here what has become
//! ready. It knows no protocol.

use readpath_kit::Ns;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// A file that is ready: the token of its registration, and for what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ready {
    pub token: u64,
    pub can_read: bool,
    pub can_write: bool,
}

/// The poller of a server.
pub(crate) struct Poller {
    epoll: OwnedFd,
    ready: RefCell<Vec<Ready>>,
    /// Whether anything is ready that was not taken, which is asked for often.
    is_ready: Cell<bool>,
    events: RefCell<Vec<Event>>,
    begun: Instant,
    /// When the clock saw that a file is ready.
    woken: Cell<Ns>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        Ok(Poller {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            ready: RefCell::default(),
            is_ready: Cell::new(false),
            events: RefCell::new(Vec::with_capacity(64)),
            begun: Instant::now(),
            woken: Cell::new(Ns::ZERO),
        })
    }

    /// Real time since the server was begun.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Watches `fd` from now on: it is ready when it can be read.
    pub(crate) fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN | EventFlags::RDHUP)?)
    }

    /// Watches `fd` until it can be read once.
    pub(crate) fn add_once(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN | EventFlags::ONESHOT)?)
    }

    /// Watches `fd` for these from now on.
    pub(crate) fn change(&self, fd: impl AsFd, token: u64, read: bool, write: bool) -> io::Result<()> {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN | EventFlags::RDHUP, read);
        flags.set(EventFlags::OUT, write);
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(token), flags)?)
    }

    /// `fd`, which is about to be closed, is not watched any more.
    pub(crate) fn remove(&self, fd: impl AsFd) {
        epoll::delete(&self.epoll, fd).ok();
    }

    /// Waits until a file is ready, at most `limit` if given.
    pub(crate) fn wait(&self, limit: Option<Duration>) {
        if self.is_ready.get() {
            return;
        }
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs().min(1 << 30) as i64,
            tv_nsec: i64::from(limit.subsec_nanos()),
        });
        let mut events = self.events.borrow_mut();
        // An interrupted wait is over too: the caller looks at the time again.
        let buffer = rustix::buffer::spare_capacity(&mut *events);
        _ = epoll::wait(&self.epoll, buffer, limit.as_ref());
        let mut ready = self.ready.borrow_mut();
        for Event { data, flags } in events.drain(..) {
            let gone = flags.intersects(EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP);
            ready.push(Ready {
                token: data.u64(),
                can_read: gone || flags.contains(EventFlags::IN),
                can_write: gone || flags.contains(EventFlags::OUT),
            });
        }
        self.is_ready.set(!ready.is_empty());
    }

    /// Polls without waiting.
    pub(crate) fn look(&self) {
        self.wait(Some(Duration::ZERO));
    }

    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.get()
    }

    /// The time when a file became ready, by the waiting clock.
    #[inline]
    pub(crate) fn woken(&self) -> Ns {
        self.woken.get()
    }

    /// A file has become ready at `now`.
    pub(crate) fn wake(&self, now: Ns) {
        self.woken.set(now);
    }

    /// Takes the list of files that are ready.
    pub(crate) fn take(&self) -> Vec<Ready> {
        self.is_ready.set(false);
        std::mem::take(&mut self.ready.borrow_mut())
    }
}
