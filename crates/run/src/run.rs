// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runner: jobs submit to a stack, time jumps from event to event.

use crate::events::Schedule;
use crate::measure::{JobStats, PhaseStats};
use crate::rate::{Rates, Step};
use crate::request::{Flights, LATEST, block_op, io_error};
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_host::BlockRequest;
use readpath_kit::Ns;
use readpath_stack::{Payload, Stack, Wire};
use readpath_workload::{Io, IoKind, Job, Phase};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use thiserror::Error;

/// Why a run stopped.
#[derive(Clone, Debug, Error)]
pub enum RunError {
    /// The device refused a request.
    #[error(
        "{kind:?} of {blocks} blocks at block {block} failed with sense {key:X}h/{asc:02X}h/{ascq:02X}h ({meaning}) at {at}"
    )]
    Io {
        /// What was asked.
        kind: IoKind,
        /// First block.
        block: u32,
        /// Blocks.
        blocks: u16,
        /// Sense key.
        key: u8,
        /// Additional sense code.
        asc: u8,
        /// Additional sense code qualifier.
        ascq: u8,
        /// What that means here.
        meaning: &'static str,
        /// Virtual time.
        at: Ns,
    },
    /// Virtual time has gone further than the model can count.
    #[error("the run goes beyond {limit} of virtual time; shorten its pauses, delays or rates")]
    TooLong {
        /// The limit.
        limit: Ns,
    },
    /// A job was over before its ramp was.
    #[error(
        "job '{job}': ramp_time ({ramp}) ends after the job's work, so nothing was measured; make ramp_time shorter, or \
         give the job more to do (size, loops, or time_based with runtime)"
    )]
    NothingMeasured {
        /// The job's name.
        job: String,
        /// Its ramp.
        ramp: Ns,
    },
    /// Nothing can happen any more though requests are outstanding.
    #[error("the run stands still at {0} with requests outstanding")]
    Stuck(Ns),
    /// A UPIU did not survive.
    #[error(transparent)]
    Wire(#[from] readpath_stack::WireError),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Watches a run from outside, now and then.
pub trait Observer {
    /// So many requests have ended in this phase, at virtual time `now`: none at its beginning, all at its end. False stops the run.
    fn progress(&mut self, ios: u64, now: Ns) -> bool;

    /// Host and device between two requests at virtual time `now`: as often as [`Observer::progress`] is called, and at the
    /// end. What it changes, a user of the host could have changed then.
    fn look<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, _stack: &mut Stack<S, X, P, W>, _now: Ns) {}
}

/// Nobody watches.
impl Observer for () {
    fn progress(&mut self, _: u64, _: Ns) -> bool {
        true
    }
}

/// Requests taken from a stream at a time, and how far ahead their tables are prefetched.
const BATCH: usize = 16;
const QUEUE: usize = 2 * BATCH;
/// Requests between two looks of the observer.
const WATCH_EVERY: u64 = 1 << 12;

struct Running<'a> {
    job: &'a mut Job,
    stats: JobStats,
    queue: [Io; QUEUE],
    head: usize,
    len: usize,
    outstanding: u32,
    /// Requests made after the ramp.
    submitted: u64,
    bytes: u64,
    since_think: u32,
    /// A pause of this length begins when everything in flight has ended.
    pause: Option<Ns>,
    /// Before this time nothing is submitted (start delay, pause, rate).
    not_before: Ns,
    /// Whether a timer for `not_before` is pending.
    timer: bool,
    started: Ns,
    ended: bool,
    rates: Rates,
    /// Whether `rates` has any.
    rated: bool,
}

#[derive(Clone, Copy)]
struct InFlight {
    job: u32,
    io: Io,
    since: Ns,
}

/// Among timers, the place of an event of the run: no job has it.
const EVENT: u32 = u32::MAX;

/// Runs phases on a stack. Time goes on from one phase to the next.
pub struct Runner {
    now: Ns,
    in_flight: Flights<InFlight>,
    /// Jobs that wait for a time. Jobs may be more than a [`readpath_kit::DeadlineHeap`] can tell apart, and timers are
    /// rare.
    timers: BinaryHeap<Reverse<(Ns, u32)>>,
}

impl Runner {
    /// A runner from virtual time `now` on.
    pub fn new(now: Ns) -> Self {
        Runner { now, in_flight: Flights::new(), timers: BinaryHeap::new() }
    }

    /// Virtual time.
    pub fn now(&self) -> Ns {
        self.now
    }

    /// Runs a phase to its end.
    pub fn phase<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        phase: &mut Phase,
        observer: &mut impl Observer,
    ) -> Result<PhaseStats, RunError> {
        self.phase_with(stack, phase, &mut Schedule::default(), observer)
    }

    /// The same with events in its middle. Those that come when nobody has requests any more are left for the next phase.
    pub fn phase_with<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        phase: &mut Phase,
        events: &mut Schedule,
        observer: &mut impl Observer,
    ) -> Result<PhaseStats, RunError> {
        let start = self.now;
        let mut jobs: Vec<Running> = phase.jobs.iter_mut().map(|job| Running::new(job, start)).collect();
        let mut ios = 0;
        let works_when_idle = stack.device.config().works_when_idle();
        self.timers.clear();
        self.wait_for(events);
        watch(stack, observer, 0, start)?;
        for (i, job) in jobs.iter_mut().enumerate() {
            self.fill(stack, job, i as u32, start);
        }
        loop {
            while let Some(done) = stack.poll_done() {
                let flight = self.in_flight.get(done.cookie);
                self.in_flight.end(done.cookie);
                if let Some(sense) = done.error {
                    return Err(io_error(flight.io, sense, self.now));
                }
                ios += 1;
                let job = &mut jobs[flight.job as usize];
                job.completed(flight, self.now);
                events.request_ended(flight.io.kind, self.now - flight.since);
                self.fill_now(stack, job, flight.job, self.now);
                if ios % WATCH_EVERY == 0 {
                    watch(stack, observer, ios, self.now)?;
                }
            }
            let due = self.timers.peek().map_or(Ns::NEVER, |&Reverse((at, _))| at);
            let timer = if due != Ns::NEVER && self.only_an_event_is_left() { Ns::NEVER } else { due };
            if works_when_idle && timer == Ns::NEVER && self.in_flight.is_empty() {
                // What the device does from here on takes its time, and the next phase does not wait for it.
                break;
            }
            let next = stack.advance_to_reply(timer);
            if next == Ns::NEVER {
                break;
            }
            if next > LATEST {
                return Err(RunError::TooLong { limit: LATEST });
            }
            self.now = next;
            if due <= next {
                self.timers_due(stack, &mut jobs, events);
            }
        }
        if let Some(e) = stack.wire_error() {
            return Err(e.clone().into());
        }
        if jobs.iter().any(|job| job.outstanding > 0) {
            return Err(RunError::Stuck(self.now));
        }
        if let Some(job) = jobs.iter().find(|job| job.job.ramp > Ns::ZERO && job.stats.kinds.iter().all(|k| k.ios == 0))
        {
            return Err(RunError::NothingMeasured { job: job.job.name.clone(), ramp: job.job.ramp });
        }
        watch(stack, observer, ios, self.now)?;
        let stats = jobs.into_iter().map(|job| job.stats).collect();
        Ok(PhaseStats { name: phase.name.clone(), start, end: self.now, jobs: stats, ios })
    }

    /// Lets everything happen whose time has come: jobs go on, and events of the run.
    #[inline(never)]
    fn timers_due<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        jobs: &mut [Running],
        events: &mut Schedule,
    ) {
        while let Some(&Reverse((at, i))) = self.timers.peek()
            && at <= self.now
        {
            self.timers.pop();
            if i == EVENT {
                self.now = events.happen(stack, self.now);
                self.wait_for(events);
            } else {
                let job = &mut jobs[i as usize];
                job.timer = false;
                self.fill(stack, job, i, self.now);
            }
        }
    }

    #[cold]
    fn wait_for(&mut self, events: &Schedule) {
        if events.next_at() != Ns::NEVER {
            self.timers.push(Reverse((events.next_at(), EVENT)));
        }
    }

    /// Whether no job has anything in flight or waits for its time.
    #[cold]
    fn only_an_event_is_left(&self) -> bool {
        self.in_flight.is_empty() && self.timers.iter().all(|&Reverse((_, i))| i == EVENT)
    }

    /// Lets the device end what it does by itself: nothing is submitted any more.
    pub fn settle<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &mut Stack<S, X, P, W>) -> Result<(), RunError> {
        while stack.next_deadline() != Ns::NEVER {
            let now = stack.next_deadline();
            if now > LATEST {
                return Err(RunError::TooLong { limit: LATEST });
            }
            stack.advance(now);
        }
        Ok(())
    }

    /// Submits as much as the job may have outstanding now.
    #[inline(never)]
    fn fill<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        job: &mut Running,
        index: u32,
        now: Ns,
    ) {
        self.fill_now(stack, job, index, now);
    }

    /// The same in line, for the one place where nearly all requests pass.
    #[inline(always)]
    fn fill_now<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        job: &mut Running,
        index: u32,
        now: Ns,
    ) {
        while job.outstanding < job.job.iodepth && !job.ended {
            if job.pause.is_some() {
                return;
            }
            if job.not_before > now {
                if !job.timer {
                    job.timer = true;
                    self.timers.push(Reverse((job.not_before, index)));
                }
                return;
            }
            // Without a request the job has ended, or waits for its rate.
            let Some(io) = job.next_io(stack, now) else { continue };
            let cookie = self.in_flight.begin(InFlight { job: index, io, since: now });
            job.outstanding += 1;
            let (op, lun, block, blocks) = (block_op(io), job.job.lun, io.block, u32::from(io.blocks));
            stack.submit(now, &BlockRequest { cookie, lun, op, block, blocks });
            job.pace();
        }
    }
}

/// Shows the observer how far the run has come. In line, so that nothing is left of it where nobody watches.
#[inline(always)]
pub fn watch<S: DieSched, X: Payload, P: Probe, W: Wire>(
    stack: &mut Stack<S, X, P, W>,
    observer: &mut impl Observer,
    ios: u64,
    now: Ns,
) -> Result<(), RunError> {
    let goes_on = observer.progress(ios, now);
    observer.look(stack, now);
    if goes_on { Ok(()) } else { Err(RunError::Interrupted) }
}

impl<'a> Running<'a> {
    fn new(job: &'a mut Job, phase_start: Ns) -> Self {
        let started = phase_start + job.start_delay;
        let stats = JobStats {
            name: job.name.clone(),
            group: job.group,
            start: started + job.ramp,
            end: started + job.ramp,
            kinds: Default::default(),
        };
        let rates = Rates::new(job.rate_bytes, started);
        let nothing = Io { block: 0, blocks: 0, kind: IoKind::Flush, fua: false };
        Running {
            stats,
            queue: [nothing; QUEUE],
            head: 0,
            len: 0,
            outstanding: 0,
            submitted: 0,
            bytes: 0,
            since_think: 0,
            pause: None,
            not_before: started,
            timer: false,
            started,
            ended: false,
            rated: rates.any(),
            rates,
            job,
        }
    }

    /// The next request of the stream, unless a limit is reached or a rate says to wait.
    #[inline(always)]
    fn next_io<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &Stack<S, X, P, W>,
        now: Ns,
    ) -> Option<Io> {
        let limits = &self.job.limits;
        if limits.runtime.is_some_and(|t| now >= self.started + t)
            || limits.ios.is_some_and(|n| self.submitted >= n)
            || limits.bytes.is_some_and(|n| self.bytes >= n)
        {
            self.ended = true;
            return None;
        }
        let io = if self.rated {
            self.rated_io(now)?
        } else {
            if self.len <= BATCH {
                self.refill(stack);
                if self.len == 0 {
                    self.ended = true;
                    return None;
                }
            }
            let io = self.queue[self.head];
            self.head = (self.head + 1) % QUEUE;
            self.len -= 1;
            io
        };
        // fio counts anew when the ramp is over.
        self.submitted += u64::from(now >= self.stats.start);
        self.bytes += u64::from(io.blocks) * u64::from(readpath_kit::BLOCK_BYTES);
        Some(io)
    }

    /// Takes the next batch from the stream; what its requests will touch is prefetched a batch ahead of their use.
    #[inline(never)]
    fn refill<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &Stack<S, X, P, W>) {
        let tail = (self.head + self.len) % QUEUE;
        // The queue is filled in whole batches, so the free half that begins at its tail never wraps.
        let half = if tail < BATCH { &mut self.queue[tail..BATCH] } else { &mut self.queue[tail..] };
        let n = self.job.stream.fill(half);
        let lun = self.job.lun;
        for io in &half[..n] {
            match io.kind {
                IoKind::Read => stack.prefetch(lun, io.block),
                _ => stack.prefetch_write(lun, io.block),
            }
        }
        self.len += n;
    }

    #[inline(always)]
    fn completed(&mut self, flight: InFlight, now: Ns) {
        self.outstanding -= 1;
        if let Some(pause) = self.pause
            && self.outstanding == 0
        {
            self.pause = None;
            self.not_before = self.not_before.max(now + pause);
        }
        if now >= self.stats.start {
            // A request that began before the end of the ramp is not measured, but its end is work of the measured time.
            if flight.since >= self.stats.start {
                self.stats.kinds[flight.io.kind as usize].record(u32::from(flight.io.blocks), now - flight.since);
            }
            self.stats.end = now;
        }
    }

    /// The next request of a job with rates, unless it has to wait or the stream has ended.
    #[cold]
    fn rated_io(&mut self, now: Ns) -> Option<Io> {
        match self.rates.next(&mut self.job.stream, now) {
            Step::Submit(io) => return Some(io),
            Step::Wait(due) => {
                let until = self.job.limits.runtime.map_or(due, |t| due.min(self.started + t));
                // fio lets everything in flight end first, and sleeps as long as it had meant to before.
                match self.outstanding {
                    0 => self.not_before = until,
                    _ => self.pause = Some(until - now),
                }
            }
            Step::End => self.ended = true,
        }
        None
    }

    /// Pauses after a submission.
    #[inline]
    fn pace(&mut self) {
        let think = self.job.think;
        if think.time > Ns::ZERO {
            self.since_think += 1;
            if self.since_think >= think.every.max(1) {
                self.since_think = 0;
                // fio pauses after completion, with nothing in flight.
                self.pause = Some(think.time);
            }
        }
    }
}
