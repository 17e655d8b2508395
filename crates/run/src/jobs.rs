// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs of a phase as a source: each keeps its queue depth filled, within its limits, rates and pauses.

use crate::drive::{Driven, Port, Rest, Source};
use crate::error::{RunError, TOO_LATE};
use crate::flow::Flows;
use crate::measure::{JobStats, PhaseStats};
use crate::rate::{Rates, Step};
use crate::request::{Flights, block_op};
use readpath_host::BlockRequest;
use readpath_kit::Ns;
use readpath_stack::Hold;
use readpath_workload::{Ends, Io, IoKind, Job, Phase};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Requests taken from a stream at a time, and how far ahead their tables are prefetched.
const BATCH: usize = 16;
const QUEUE: usize = 2 * BATCH;

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
    ended: bool,
    rates: Rates,
    /// Whether `rates` has any.
    rated: bool,
    /// Whether it shares a flow with others.
    flowed: bool,
    /// Whether it has rates, a flow or pauses: then every request is looked at more closely.
    is_paced: bool,
    /// When, and with how many requests and bytes, it ends; the largest number where there is no limit.
    until: Ns,
    most_ios: u64,
    most_bytes: u64,
}

#[derive(Clone, Copy)]
struct InFlight {
    job: u32,
    io: Io,
    since: Ns,
}

/// The jobs of a phase.
pub struct Jobs<'a> {
    name: &'a str,
    start: Ns,
    jobs: Vec<Running<'a>>,
    flights: Flights<InFlight>,
    /// Jobs that wait for a time. There may be more jobs than slots of a [`readpath_kit::DeadlineHeap`], and timers
    /// are rare.
    timers: BinaryHeap<Reverse<(Ns, u32)>>,
    flows: Flows,
    rest: Rest,
}

impl<'a> Jobs<'a> {
    /// The jobs of a phase that begins at `start`.
    pub fn new(phase: &'a mut Phase, start: Ns, rest: Rest) -> Self {
        let flows = Flows::new(&phase.jobs);
        let jobs = phase.jobs.iter_mut().map(|job| Running::new(job, start)).collect();
        Jobs { name: &phase.name, start, jobs, flights: Flights::new(), timers: BinaryHeap::new(), flows, rest }
    }

    /// What they have measured.
    ///
    /// # Errors
    /// A job was over before its ramp was.
    pub fn stats(self, driven: Driven) -> Result<PhaseStats, RunError> {
        let nothing = |job: &&Running| job.job.ramp > Ns::ZERO && job.stats.kinds.iter().all(|k| k.ios == 0);
        if let Some(job) = self.jobs.iter().find(nothing) {
            return Err(RunError::NothingMeasured { job: job.job.name.clone(), ramp: job.job.ramp });
        }
        let Driven { end, ios } = driven;
        let jobs = self.jobs.into_iter().map(|job| job.stats).collect();
        Ok(PhaseStats { name: self.name.to_owned(), start: self.start, end, jobs, ios })
    }

    /// Submits as much as a job may have outstanding now.
    #[inline(never)]
    fn fill(&mut self, port: &mut impl Port, index: u32, now: Ns) {
        self.fill_now(port, index, now);
        self.share(port, index, now);
    }

    /// What a job has made or left may let others of its flow go on.
    #[inline(always)]
    fn share(&mut self, port: &mut impl Port, index: u32, now: Ns) {
        if !self.flows.is_empty() {
            self.go_on(port, index, now);
        }
    }

    #[cold]
    fn go_on(&mut self, port: &mut impl Port, index: u32, now: Ns) {
        self.leave_if_over(index);
        while let Some((next, at)) = self.flows.release(now) {
            let job = &mut self.jobs[next as usize];
            job.not_before = job.not_before.max(at);
            self.fill_now(port, next, now);
            self.leave_if_over(next);
        }
    }

    fn leave_if_over(&mut self, index: u32) {
        let job = &self.jobs[index as usize];
        if job.ended && job.outstanding == 0 {
            self.flows.leave(index);
        }
    }

    /// `fill`, inlined for the one caller that nearly all requests pass through.
    #[inline(always)]
    fn fill_now(&mut self, port: &mut impl Port, index: u32, now: Ns) {
        let job = &mut self.jobs[index as usize];
        while job.outstanding < job.job.iodepth && !job.ended {
            if job.is_paced && job.pause.is_some() {
                return;
            }
            if job.not_before > now {
                if !job.timer {
                    job.timer = true;
                    self.timers.push(Reverse((job.not_before.min(TOO_LATE), index)));
                }
                return;
            }
            if job.is_paced
                && job.flowed
                && let Some(sleep) = self.flows.holds(index, job.outstanding == 0, now)
            {
                job.pause = sleep;
                return;
            }
            // A job without a next request has ended, or waits for its rate.
            let Some(io) = job.next_io(port, now) else {
                if job.ended && job.job.ends != Ends::Itself {
                    return self.end_others(index);
                }
                continue;
            };
            let cookie = self.flights.begin(InFlight { job: index, io, since: now });
            job.outstanding += 1;
            let (op, lun, block, blocks) = (block_op(io), job.job.lun, io.block, u32::from(io.blocks));
            port.submit_from(now, index, &BlockRequest { cookie, lun, op, block, blocks });
            if job.is_paced {
                if job.flowed {
                    self.flows.count(index);
                }
                job.pace();
            }
        }
    }

    /// Ends the jobs that end with this one.
    #[cold]
    fn end_others(&mut self, index: u32) {
        let Job { ends, fio, .. } = &*self.jobs[index as usize].job;
        let (group, ends) = (fio.groupid, *ends);
        let others = self.jobs.iter_mut().filter(|other| ends != Ends::Group || other.job.fio.groupid == group);
        others.for_each(|other| other.ended = true);
        self.timers.retain(|&Reverse((_, waiting))| !self.jobs[waiting as usize].ended);
        (0..self.jobs.len() as u32).for_each(|index| self.leave_if_over(index));
    }

    fn fill_all(&mut self, port: &mut impl Port, now: Ns) {
        for index in 0..self.jobs.len() as u32 {
            self.fill(port, index, now);
        }
    }
}

impl Source for Jobs<'_> {
    /// A job whose pause is over continues before ends of requests are handled.
    const ENDS_FIRST: bool = false;

    fn holds(&self) -> Hold {
        match &self.jobs[..] {
            [job] if job.job.iodepth == 1 => Hold::One,
            _ => Hold::Several,
        }
    }

    fn begin(&mut self, port: &mut impl Port, now: Ns) {
        self.fill_all(port, now);
    }

    #[inline(always)]
    fn next_at(&self) -> Ns {
        self.timers.peek().map_or(Ns::NEVER, |&Reverse((at, _))| at)
    }

    #[inline(never)]
    fn act(&mut self, port: &mut impl Port, now: Ns, until: Ns) {
        while let Some(&Reverse((at, index))) = self.timers.peek()
            && at <= until
        {
            self.timers.pop();
            self.jobs[index as usize].timer = false;
            self.fill(port, index, now);
        }
    }

    #[inline(always)]
    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        let flight = self.flights.end(cookie);
        self.jobs[flight.job as usize].completed(flight, now);
        self.fill_now(port, flight.job, now);
        self.share(port, flight.job, now);
        Some((flight.io.kind, now - flight.since))
    }

    fn begins(&mut self, cookie: u32, now: Ns) {
        self.flights.get_mut(cookie).since = now;
    }

    fn gives_up(&mut self, port: &mut impl Port, cookie: u32, is_last: bool, now: Ns) {
        let InFlight { job: index, io, .. } = self.flights.end(cookie);
        let job = &mut self.jobs[index as usize];
        job.outstanding -= 1;
        job.submitted = job.submitted.saturating_sub(1);
        job.bytes -= u64::from(io.blocks) * u64::from(readpath_kit::BLOCK_BYTES);
        job.pause_if_idle(now);
        if is_last && !std::mem::replace(&mut job.ended, true) && job.job.ends != Ends::Itself {
            self.end_others(index);
        }
        self.fill(port, index, now);
    }

    fn io(&self, cookie: u32) -> Io {
        self.flights.get(cookie).io
    }

    fn in_flight(&self) -> u32 {
        self.flights.len()
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        self.flights.is_empty() && self.timers.is_empty()
    }

    #[inline(always)]
    fn rest(&self) -> Rest {
        self.rest
    }

    fn lost(&mut self, port: &mut impl Port, now: Ns) {
        self.flights = Flights::new();
        for job in &mut self.jobs {
            job.outstanding = 0;
            job.pause_if_idle(now);
        }
        self.fill_all(port, now);
    }
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
        let rates = Rates::new(job.rate_bytes, job.poisson, started);
        let nothing = Io { block: 0, blocks: 0, kind: IoKind::Flush, fua: false };
        let limits = job.limits;
        Running {
            until: limits.runtime.map_or(Ns::NEVER, |t| started + t),
            most_ios: limits.ios.unwrap_or(u64::MAX),
            most_bytes: limits.bytes.unwrap_or(u64::MAX),
            is_paced: rates.any() || job.flow.is_some() || job.think.time > Ns::ZERO,
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
            ended: false,
            rated: rates.any(),
            rates,
            flowed: job.flow.is_some(),
            job,
        }
    }

    /// The next request of the stream, unless a limit is reached or a rate says to wait.
    #[inline(always)]
    fn next_io(&mut self, port: &impl Port, now: Ns) -> Option<Io> {
        if now >= self.until || self.submitted >= self.most_ios || self.bytes >= self.most_bytes {
            self.ended = true;
            return None;
        }
        let io = if self.is_paced && self.rated {
            self.rated_io(now)?
        } else {
            if self.len <= BATCH {
                self.refill(port);
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
        // fio restarts its counts after the ramp.
        self.submitted += u64::from(now >= self.stats.start);
        self.bytes += u64::from(io.blocks) * u64::from(readpath_kit::BLOCK_BYTES);
        Some(io)
    }

    /// Takes the next batch from the stream; what its requests will touch is prefetched a batch ahead of their use.
    #[inline(never)]
    fn refill(&mut self, port: &impl Port) {
        let tail = (self.head + self.len) % QUEUE;
        // The queue is filled in whole batches, so the free half that begins at its tail never wraps.
        let half = if tail < BATCH { &mut self.queue[tail..BATCH] } else { &mut self.queue[tail..] };
        let n = self.job.stream.fill(half);
        let lun = self.job.lun;
        for io in &half[..n] {
            match io.kind {
                IoKind::Read => port.prefetch(lun, io.block),
                _ => port.prefetch_write(lun, io.block),
            }
        }
        self.len += n;
    }

    /// A pause begins when nothing is in flight.
    #[inline(always)]
    fn pause_if_idle(&mut self, now: Ns) {
        if self.is_paced
            && let Some(pause) = self.pause
            && self.outstanding == 0
        {
            self.pause = None;
            self.not_before = self.not_before.max(now + pause);
        }
    }

    #[inline(always)]
    fn completed(&mut self, flight: InFlight, now: Ns) {
        self.outstanding -= 1;
        self.pause_if_idle(now);
        if now >= self.stats.start {
            // A request that began before the end of the ramp is not measured, but its end is work of the measured
            // time.
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
                let until = due.min(self.until);
                // fio first waits for all requests in flight, and then sleeps for the time that it computed before.
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
