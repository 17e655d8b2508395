// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requests of a simulated measurement: always as many outstanding, some not timed, then those of one part after
//! another. It knows nothing of devices.

use crate::drive::{Port, Source};
use crate::execute::ExecuteError;
use crate::request::LUN;
use crate::runner::Runner;
use crate::stacks::{Work, tapped};
use crate::watch::{Observer, Watched};
use readpath_config::DevicePreset;
use readpath_device::{Layout, Probe};
use readpath_flash::DieSched;
use readpath_host::{BlockOp, BlockRequest, HostConfig};
use readpath_kit::Ns;
use readpath_stack::{AnyWire, Hold, NoData, Stack};
use readpath_workload::{Io, IoKind, Stream};

const BATCH: usize = 16;
const NONE: Io = Io { block: 0, blocks: 0, kind: IoKind::Read, fua: false };

/// A measurement on unit [`LUN`].
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// Blocks from the start of the unit that were written once before, in ascending order; 0 for an erased device.
    pub blocks: u32,
    /// What the requests do.
    pub kind: IoKind,
    /// Requests outstanding at any time.
    pub depth: u32,
    /// Requests that are not timed.
    pub warm_up: u32,
    /// Requests of each part that are.
    pub timed: u32,
    /// Parts, one after another.
    pub parts: u16,
    /// Time without a request before the middle part; 0 for none.
    pub pause: Ns,
}

/// Makes the measurement with the requests of `stream`; returns what every part showed.
///
/// # Errors
/// When the device cannot be made, or the run fails or is stopped.
pub fn measure_parts(
    preset: &DevicePreset,
    host: HostConfig,
    measurement: Measurement,
    stream: Stream,
    observer: &mut dyn Observer,
) -> Result<Vec<Part>, ExecuteError> {
    tapped(preset, host, NoData, false, None, Measuring { measurement, stream, observer }).0
}

struct Measuring<'a> {
    measurement: Measurement,
    stream: Stream,
    observer: &'a mut dyn Observer,
}

impl<P: Probe> Work<NoData, P, AnyWire> for Measuring<'_> {
    type Output = (Result<Vec<Part>, ExecuteError>, P);

    fn on<S: DieSched>(self, mut stack: Stack<S, NoData, P, AnyWire>) -> Self::Output {
        let shown = self.run(&mut stack);
        (shown, stack.device.into_probe())
    }
}

impl Measuring<'_> {
    fn run<S: DieSched, P: Probe>(self, stack: &mut Stack<S, NoData, P, AnyWire>) -> Result<Vec<Part>, ExecuteError> {
        let Measuring { measurement, stream, observer } = self;
        let blocks = measurement.blocks;
        if blocks > 0 {
            let filled = stack.precondition(LUN, 0, blocks, Layout::Sequential, 0);
            filled.map_err(|_| ExecuteError::Precondition { blocks })?;
        }
        let mut requests = Requests::new(stream, measurement);
        let ready = stack.start(Ns::ZERO)?;
        Runner::new(ready).run(stack, &mut requests, &mut Watched(observer))?;
        Ok(requests.into_parts())
    }
}

/// Makes the warm-up's requests and then those of all parts, and times the latter exactly.
struct Requests {
    stream: Stream,
    kind: IoKind,
    /// Requests are taken from the stream in batches.
    batch: [Io; BATCH],
    at: usize,
    /// Submission time and request, by cookie.
    flights: Vec<(Ns, Io)>,
    first: u64,
    last: u64,
    /// Requests of a part.
    each: u64,
    submitted: u64,
    ended: u64,
    /// Requests before the pause, its length, and when it ends.
    until_pause: u64,
    pause: Ns,
    resume: Ns,
    /// When the part began that is under way.
    began: Ns,
    /// Time that each part took.
    spans: Vec<Ns>,
    latencies: Vec<u64>,
}

/// What a part showed.
#[derive(Clone, Debug)]
pub struct Part {
    /// Latencies of its requests, in nanoseconds.
    pub latencies: Vec<u64>,
    /// Time from the end of the previous part, of the warm-up or of the pause, to the end of this part.
    pub time: Ns,
}

impl Requests {
    fn new(stream: Stream, of: Measurement) -> Self {
        let each = u64::from(of.timed);
        let (first, timed) = (u64::from(of.warm_up), each * u64::from(of.parts));
        let pauses = of.pause > Ns::ZERO && of.parts > 1;
        Requests {
            stream,
            kind: of.kind,
            batch: [NONE; BATCH],
            at: BATCH,
            flights: vec![(Ns::ZERO, NONE); of.depth as usize],
            first,
            last: first + timed,
            each,
            submitted: 0,
            ended: 0,
            until_pause: if pauses { first + each * u64::from(of.parts / 2) } else { u64::MAX },
            pause: of.pause,
            resume: Ns::NEVER,
            began: Ns::ZERO,
            spans: Vec::with_capacity(usize::from(of.parts)),
            latencies: Vec::with_capacity(timed as usize),
        }
    }

    /// What every part showed.
    fn into_parts(self) -> Vec<Part> {
        let parts = self.latencies.chunks(self.each.max(1) as usize).zip(self.spans);
        parts.map(|(latencies, time)| Part { latencies: latencies.to_vec(), time }).collect()
    }

    #[inline(always)]
    fn submit(&mut self, port: &mut impl Port, cookie: u32, now: Ns) {
        if self.submitted == self.until_pause {
            return;
        }
        self.submitted += 1;
        if self.at == BATCH {
            self.stream.fill(&mut self.batch);
            for io in &self.batch {
                port.prefetch(LUN, io.block);
            }
            self.at = 0;
        }
        let io = self.batch[self.at];
        self.at += 1;
        self.flights[cookie as usize] = (now, io);
        let op = if self.kind == IoKind::Read { BlockOp::Read } else { BlockOp::Write };
        let (block, blocks) = (io.block, u32::from(io.blocks));
        port.submit(now, &BlockRequest { cookie, lun: LUN, op, block, blocks });
    }
}

impl Source for Requests {
    fn holds(&self) -> Hold {
        if self.flights.len() == 1 { Hold::One } else { Hold::Several }
    }

    fn begin(&mut self, port: &mut impl Port, now: Ns) {
        if self.ended == 0 {
            self.began = now;
        }
        (0..self.flights.len() as u32).for_each(|cookie| self.submit(port, cookie, now));
    }

    #[inline(always)]
    fn next_at(&self) -> Ns {
        self.resume
    }

    /// The pause is over.
    fn act(&mut self, port: &mut impl Port, now: Ns, _: Ns) {
        (self.resume, self.until_pause, self.began) = (Ns::NEVER, u64::MAX, now);
        (0..self.flights.len() as u32).for_each(|cookie| self.submit(port, cookie, now));
    }

    #[inline(always)]
    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        if self.ended == self.last {
            return None;
        }
        let latency = now - self.flights[cookie as usize].0;
        self.ended += 1;
        if self.ended > self.first {
            self.latencies.push(latency.0);
        }
        // No part is shorter than a request.
        if self.ended >= self.first && (self.ended - self.first).is_multiple_of(self.each) {
            if self.ended > self.first {
                self.spans.push(now - self.began);
            }
            self.began = now;
        }
        if self.ended == self.until_pause {
            self.resume = now + self.pause;
        }
        self.submit(port, cookie, now);
        Some((self.kind, latency))
    }

    fn io(&self, cookie: u32) -> Io {
        self.flights[cookie as usize].1
    }

    fn in_flight(&self) -> u32 {
        self.flights.len() as u32
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        self.ended == self.last
    }

    fn lost(&mut self, port: &mut impl Port, now: Ns) {
        self.begin(port, now);
    }
}
