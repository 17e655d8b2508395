// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launches of apps as a source: an app computes, asks for what comes next, waits for what cannot be read ahead, and so
//! on. One app at a time.

use crate::drive::{Driven, Port, Source};
use crate::error::TOO_LATE;
use crate::measure::{JobStats, KindStats, PhaseStats};
use crate::request::{Flights, block_op};
use readpath_host::BlockRequest;
use readpath_kit::Ns;
use readpath_stack::Hold;
use readpath_workload::launch::{Launch, Launches};
use readpath_workload::{Io, IoKind};

/// A request under way.
#[derive(Clone, Copy)]
struct Flight {
    io: Io,
    begun: Ns,
    is_waited_for: bool,
}

/// What the app in the foreground does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// It is at the beginning of a step, and computes until then.
    Thinks(Ns),
    /// It waits for the requests of its step.
    Waits,
    /// It has submitted all its requests, and is launched when all of them have ended.
    Ends,
    /// All apps were launched.
    Nothing,
}

/// One cycle of launches. Requests are counted as those of one job.
pub struct Cycle<'a> {
    launches: &'a Launches,
    lun: u8,
    cycle: usize,
    start: Ns,
    /// The app in the foreground.
    app: u32,
    launch: Launch,
    /// Its next step, and the first request of that.
    step: usize,
    request: usize,
    doing: Doing,
    flights: Flights<Flight>,
    waited_for: u32,
    kinds: [KindStats; 4],
}

impl<'a> Cycle<'a> {
    /// Cycle `cycle`, from `start` on.
    pub fn new(launches: &'a Launches, cycle: usize, lun: u8, start: Ns) -> Self {
        Cycle {
            launches,
            lun,
            cycle,
            start,
            app: 0,
            launch: Launch::default(),
            step: 0,
            request: 0,
            doing: Doing::Nothing,
            flights: Flights::new(),
            waited_for: 0,
            kinds: Default::default(),
        }
    }

    /// Measurements of the cycle.
    pub fn stats(self, driven: Driven) -> PhaseStats {
        let (name, Driven { end, ios }) = (format!("cycle {}", self.cycle + 1), driven);
        let job = JobStats { name: name.clone(), group: 0, start: self.start, end, kinds: self.kinds };
        PhaseStats { name, start: self.start, end, jobs: vec![job], ios }
    }

    /// Launches the app with number `app`, if there is one.
    fn begin_app(&mut self, app: u32, now: Ns) {
        (self.app, self.step, self.request) = (app, 0, 0);
        if app == self.launches.apps() {
            self.doing = Doing::Nothing;
            return;
        }
        self.launch = self.launches.launch(self.cycle, app);
        self.think(now);
    }

    /// Begins the next step.
    fn think(&mut self, now: Ns) {
        self.doing = match self.launch.steps.get(self.step) {
            Some(step) => Doing::Thinks(now + step.think),
            None => Doing::Ends,
        };
    }

    /// Submits the requests of the step.
    fn ask(&mut self, port: &mut impl Port, now: Ns) {
        let step = self.launch.steps[self.step];
        let first = self.request;
        self.request += usize::from(step.requests);
        for &io in &self.launch.requests[first..self.request] {
            let cookie = self.flights.begin(Flight { io, begun: now, is_waited_for: step.waits });
            let (lun, op, block, blocks) = (self.lun, block_op(io), io.block, u32::from(io.blocks));
            port.submit(now, &BlockRequest { cookie, lun, op, block, blocks });
        }
        self.waited_for += u32::from(step.waits) * u32::from(step.requests);
        self.step += 1;
        self.doing = Doing::Waits;
    }
}

impl Source for Cycle<'_> {
    const WATCH_EVERY: u64 = 1 << 10;

    fn holds(&self) -> Hold {
        Hold::Several
    }

    fn begin(&mut self, _: &mut impl Port, now: Ns) {
        self.begin_app(0, now);
    }

    fn next_at(&self) -> Ns {
        match self.doing {
            Doing::Thinks(until) => until.min(TOO_LATE),
            Doing::Waits if self.waited_for == 0 => Ns::ZERO,
            Doing::Ends if self.flights.is_empty() => Ns::ZERO,
            Doing::Waits | Doing::Ends | Doing::Nothing => Ns::NEVER,
        }
    }

    fn act(&mut self, port: &mut impl Port, now: Ns, _: Ns) {
        match self.doing {
            Doing::Thinks(_) => self.ask(port, now),
            Doing::Waits => self.think(now),
            Doing::Ends => self.begin_app(self.app + 1, now),
            Doing::Nothing => {}
        }
    }

    fn ended(&mut self, _: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        let Flight { io, begun, is_waited_for } = self.flights.end(cookie);
        self.waited_for -= u32::from(is_waited_for);
        self.kinds[io.kind as usize].record(u32::from(io.blocks), now - begun);
        Some((io.kind, now - begun))
    }

    fn io(&self, cookie: u32) -> Io {
        self.flights.get(cookie).io
    }

    fn in_flight(&self) -> u32 {
        self.flights.len()
    }

    fn is_over(&self) -> bool {
        self.doing == Doing::Nothing
    }

    fn lost(&mut self, _: &mut impl Port, _: Ns) {
        self.flights = Flights::new();
        self.waited_for = 0;
    }
}
