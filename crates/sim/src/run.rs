// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runner: jobs submit to a stack, time jumps from event to event.

use crate::measure::{JobStats, PhaseStats};
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{DeadlineHeap, Ns};
use readpath_stack::{Payload, Stack, Wire};
use readpath_workload::{Io, IoKind, Job, Phase};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use thiserror::Error;

/// Why a run stopped.
#[derive(Debug, Error)]
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
    /// So many requests have ended in this phase, at virtual time `now`. False stops the run.
    fn progress(&mut self, ios: u64, now: Ns) -> bool;
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
const WATCH_EVERY: u64 = 1 << 18;

struct Running<'a> {
    job: &'a mut Job,
    stats: JobStats,
    queue: [Io; QUEUE],
    head: usize,
    len: usize,
    outstanding: u32,
    submitted: u64,
    bytes: u64,
    since_think: u32,
    /// A pause begins when everything in flight has ended.
    thinking: bool,
    /// Before this time nothing is submitted (start delay, pause, rate).
    not_before: Ns,
    /// Whether a timer for `not_before` is pending.
    timer: bool,
    started: Ns,
    ended: bool,
    /// Requests of each kind that the rate has let pass.
    paced: [u64; 3],
}

#[derive(Clone, Copy)]
struct InFlight {
    job: u32,
    io: Io,
    since: Ns,
}

/// Runs phases on a stack. Time goes on from one phase to the next.
pub struct Runner {
    now: Ns,
    lun: u8,
    in_flight: Vec<InFlight>,
    free: Vec<u32>,
    /// Jobs that wait for a time. Jobs may be more than a [`DeadlineHeap`] can tell apart, and timers are rare.
    timers: BinaryHeap<Reverse<(Ns, u32)>>,
}

/// Runs stop a day before the deadlines of the device run out of bits.
const LATEST: Ns = Ns(DeadlineHeap::LATEST.0 - 86_400_000_000_000);

impl Runner {
    /// A runner for logical unit `lun`, from virtual time `now` on.
    pub fn new(lun: u8, now: Ns) -> Self {
        Runner { now, lun, in_flight: Vec::new(), free: Vec::new(), timers: BinaryHeap::new() }
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
        let start = self.now;
        let mut jobs: Vec<Running> = phase.jobs.iter_mut().map(|job| Running::new(job, start)).collect();
        let mut ios = 0;
        self.timers.clear();
        for (i, job) in jobs.iter_mut().enumerate() {
            self.fill(stack, job, i as u32, start);
        }
        loop {
            while let Some(done) = stack.poll_done() {
                let flight = self.in_flight[done.cookie as usize];
                self.free.push(done.cookie);
                if let Some(sense) = done.error {
                    return Err(io_error(flight.io, sense, self.now));
                }
                ios += 1;
                let job = &mut jobs[flight.job as usize];
                job.completed(flight, self.now);
                self.fill(stack, job, flight.job, self.now);
                if ios % WATCH_EVERY == 0 && !observer.progress(ios, self.now) {
                    return Err(RunError::Interrupted);
                }
            }
            let timer = self.timers.peek().map_or(Ns::NEVER, |&Reverse((at, _))| at);
            let next = stack.advance_to_reply(timer);
            if next == Ns::NEVER {
                break;
            }
            if next > LATEST {
                return Err(RunError::TooLong { limit: LATEST });
            }
            self.now = next;
            while let Some(&Reverse((at, i))) = self.timers.peek()
                && at <= next
            {
                self.timers.pop();
                jobs[i as usize].timer = false;
                self.fill(stack, &mut jobs[i as usize], i, next);
            }
        }
        if let Some(e) = stack.wire_error() {
            return Err(e.clone().into());
        }
        if jobs.iter().any(|job| job.outstanding > 0) {
            return Err(RunError::Stuck(self.now));
        }
        observer.progress(ios, self.now);
        let stats = jobs.into_iter().map(|job| job.stats).collect();
        Ok(PhaseStats { name: phase.name.clone(), start, end: self.now, jobs: stats, ios })
    }

    /// Submits as much as the job may have outstanding now.
    #[inline]
    fn fill<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        job: &mut Running,
        index: u32,
        now: Ns,
    ) {
        while job.outstanding < job.job.iodepth && !job.ended {
            if job.thinking {
                return;
            }
            if job.not_before > now {
                if !job.timer {
                    job.timer = true;
                    self.timers.push(Reverse((job.not_before, index)));
                }
                return;
            }
            let Some(io) = job.next_io(stack, self.lun, now) else { return };
            let flight = InFlight { job: index, io, since: now };
            let cookie = match self.free.pop() {
                Some(cookie) => {
                    self.in_flight[cookie as usize] = flight;
                    cookie
                }
                None => {
                    self.in_flight.push(flight);
                    (self.in_flight.len() - 1) as u32
                }
            };
            job.outstanding += 1;
            let op = match io.kind {
                IoKind::Read => BlockOp::Read,
                IoKind::Write if io.fua => BlockOp::WriteFua,
                IoKind::Write => BlockOp::Write,
                IoKind::Trim => BlockOp::Discard,
                IoKind::Flush => BlockOp::Flush,
            };
            let (lun, block, blocks) = (self.lun, io.block, u32::from(io.blocks));
            stack.submit(now, &BlockRequest { cookie, lun, op, block, blocks });
            job.pace(io);
        }
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
            thinking: false,
            not_before: started,
            timer: false,
            started,
            ended: false,
            paced: [0; 3],
            job,
        }
    }

    /// The next request of the stream, unless a limit is reached.
    #[inline]
    fn next_io<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &Stack<S, X, P, W>,
        lun: u8,
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
        if self.len <= BATCH {
            self.refill(stack, lun);
            if self.len == 0 {
                self.ended = true;
                return None;
            }
        }
        let io = self.queue[self.head];
        self.head = (self.head + 1) % QUEUE;
        self.len -= 1;
        self.submitted += 1;
        self.bytes += u64::from(io.blocks) * u64::from(readpath_kit::BLOCK_BYTES);
        Some(io)
    }

    /// Takes the next batch from the stream; what its requests will touch is prefetched a batch ahead of their use.
    #[inline(never)]
    fn refill<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &Stack<S, X, P, W>, lun: u8) {
        let tail = (self.head + self.len) % QUEUE;
        // The queue is filled in whole batches, so the free half that begins at its tail never wraps.
        let half = if tail < BATCH { &mut self.queue[tail..BATCH] } else { &mut self.queue[tail..] };
        let n = self.job.stream.fill(half);
        for io in &half[..n] {
            stack.prefetch(lun, io.block);
        }
        self.len += n;
    }

    #[inline]
    fn completed(&mut self, flight: InFlight, now: Ns) {
        self.outstanding -= 1;
        if self.thinking && self.outstanding == 0 {
            // fio pauses after completion, with nothing in flight.
            self.thinking = false;
            self.not_before = self.not_before.max(now + self.job.think.time);
        }
        if now >= self.stats.start {
            // A request that began before the end of the ramp is not measured, but its end is work of the measured time.
            if flight.since >= self.stats.start {
                self.stats.kinds[flight.io.kind as usize].record(u32::from(flight.io.blocks), now - flight.since);
            }
            self.stats.end = now;
        }
    }

    /// Pauses and rates after a submission.
    #[inline]
    fn pace(&mut self, io: Io) {
        let think = self.job.think;
        if think.time > Ns::ZERO {
            self.since_think += 1;
            if self.since_think >= think.every.max(1) {
                self.since_think = 0;
                self.thinking = true;
            }
        }
        if let Some(Some(rate)) = self.job.rate_iops.get(io.kind as usize) {
            let n = &mut self.paced[io.kind as usize];
            *n += 1;
            // The n-th request may not be sent before n / rate seconds have passed.
            let due = (u128::from(*n) * 1_000_000_000).div_ceil(u128::from((*rate).max(1))) as u64;
            self.not_before = self.not_before.max(self.started + Ns(due));
        }
    }
}

pub(crate) fn io_error(io: Io, sense: readpath_host::SenseData, at: Ns) -> RunError {
    let meaning = match (sense.key, sense.asc, sense.ascq) {
        (5, 0x21, _) => "beyond the logical unit",
        (7, 0x27, 7) => {
            "no erased flash is left: garbage collection is not built yet; write less or give the device more spare blocks"
        }
        _ => "see SPC-4",
    };
    RunError::Io {
        kind: io.kind,
        block: io.block,
        blocks: io.blocks,
        key: sense.key,
        asc: sense.asc,
        ascq: sense.ascq,
        meaning,
        at,
    }
}
