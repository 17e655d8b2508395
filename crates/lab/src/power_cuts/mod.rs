// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts in the middle of a workload: at random moments the power goes and comes back, the device recovers, the
//! workload goes on, and at the end everything is read back and held against what may be there. It opens no file.
//!
//! Data is reduced to tags (see [`readpath_stack::Tags`]), so every block read tells whose it is and which version.

mod document;
mod hpb_use;

pub use document::{PowerTexts, document};
pub use hpb_use::HpbUse;

use crate::experiment::{Shared, expected_ios};
use readpath_config::Scheduler;
use readpath_config::experiment::PreconditionRange;
use readpath_device::{DeviceStats, Recovery};
use readpath_flash::{DieSched, Exact, Lean, Queued};
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{Ns, Prng};
use readpath_run::execute::{ExecuteError, Setup, fits, precondition, ranges};
use readpath_run::request::{Flights, LATEST, block_op, io_error};
use readpath_run::run::RunError;
use readpath_stack::{AnyWire, ReadCheck, Stack, StackError, Tags};
use readpath_workload::{Io, IoKind, Job, Workload};
use std::sync::atomic::Ordering;
use thiserror::Error;

/// Who loses the power.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loses {
    /// Host and device: requests in flight are gone, and the host finds the device anew.
    Everything,
    /// The device beneath a living host, which sends again what was in flight and keeps its HPB entries until told.
    Device,
}

/// How the power is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PowerCuts {
    /// How often.
    pub cuts: u32,
    /// Who loses it.
    pub loses: Loses,
    /// How long it is away.
    pub off: Ns,
    /// Draws the moments.
    pub seed: u64,
}

/// Why there is no result.
#[derive(Debug, Error)]
pub enum PowerError {
    /// The workload asks for something that makes no sense together with power cuts.
    #[error("job '{job}': {what} does not go with power cuts")]
    Unsupported {
        /// Name of the job.
        job: String,
        /// The option.
        what: &'static str,
    },
    /// Nobody knows when the moments would be.
    #[error("the workload has no known length; give its jobs a size or number_ios, and no runtime")]
    Endless,
    /// More cuts than requests.
    #[error("{cuts} power cuts need at least as many requests; the workload has {ios}")]
    TooMany {
        /// Cuts asked for.
        cuts: u32,
        /// Requests of the workload.
        ios: u64,
    },
    /// A run failed.
    #[error(transparent)]
    Run(#[from] ExecuteError),
}

/// One power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// When.
    pub at: Ns,
    /// Requests in flight at the host.
    pub in_flight: u32,
    /// From the return of the power until the device was ready.
    pub took: Ns,
    /// What recovery did.
    pub recovery: Recovery,
}

/// What a run showed.
#[derive(Clone, Debug)]
pub struct PowerRun {
    /// The cuts in order.
    pub cuts: Vec<Cut>,
    /// What a recovery may take at most, by the configuration.
    pub longest: Recovery,
    /// Requests of the workload that ended.
    pub ios: u64,
    /// Blocks read and checked, at the end and before.
    pub checked: u64,
    /// Blocks that were not what they may be.
    pub wrong: u64,
    /// The first of them.
    pub first_wrong: Option<ReadCheck>,
    /// Counters of the device.
    pub device: DeviceStats,
    /// What HPB did for the workload.
    pub hpb: HpbUse,
    /// Virtual time at the end of the workload.
    pub end: Ns,
}

/// Runs `workload` on what `setup` describes and cuts the power meanwhile.
///
/// # Errors
/// [`PowerError`]; wrong blocks are no error here.
pub fn run(setup: &Setup, workload: &mut Workload, plan: &PowerCuts, shared: &Shared) -> Result<PowerRun, PowerError> {
    let ios = check(workload, plan)?;
    match setup.preset.scheduler {
        Scheduler::Lean => on::<Lean>(setup, workload, plan, ios, shared),
        Scheduler::Queued => on::<Queued>(setup, workload, plan, ios, shared),
        Scheduler::Exact => on::<Exact>(setup, workload, plan, ios, shared),
    }
}

/// Whether a workload can be run through these power cuts; returns how many requests it will make.
///
/// # Errors
/// Any [`PowerError`] but a failed run.
pub fn check(workload: &Workload, plan: &PowerCuts) -> Result<u64, PowerError> {
    for job in workload.phases.iter().flat_map(|p| &p.jobs) {
        check_job(job)?;
    }
    let ios = expected_ios(workload).ok_or(PowerError::Endless)?;
    if u64::from(plan.cuts) > ios {
        return Err(PowerError::TooMany { cuts: plan.cuts, ios });
    }
    Ok(ios)
}

fn check_job(job: &Job) -> Result<(), PowerError> {
    let unsupported = |what| Err(PowerError::Unsupported { job: job.name.clone(), what });
    if job.rate_bytes.iter().any(Option::is_some) {
        return unsupported("a rate");
    }
    if job.think.time > Ns::ZERO {
        return unsupported("thinktime");
    }
    if job.ramp > Ns::ZERO {
        return unsupported("ramp_time");
    }
    if job.start_delay > Ns::ZERO {
        return unsupported("startdelay");
    }
    if job.limits.runtime.is_some() {
        return unsupported("runtime");
    }
    Ok(())
}

type Powered<S> = Stack<S, Tags, (), AnyWire>;

/// A job, how much of it is outstanding and what it may still submit.
struct Running<'a> {
    job: &'a mut Job,
    outstanding: u32,
    ios_left: u64,
    bytes_left: u64,
}

impl Running<'_> {
    fn next(&mut self) -> Option<Io> {
        if self.ios_left == 0 || self.bytes_left == 0 {
            return None;
        }
        let mut io = [Io { block: 0, blocks: 0, kind: IoKind::Flush, fua: false }];
        if self.job.stream.fill(&mut io) == 0 {
            self.ios_left = 0;
            return None;
        }
        self.ios_left -= 1;
        let bytes = u64::from(io[0].blocks) * u64::from(readpath_kit::BLOCK_BYTES);
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        Some(io[0])
    }
}

struct Session<'a, S: DieSched> {
    stack: Powered<S>,
    now: Ns,
    plan: &'a PowerCuts,
    /// Requests after which the power goes, in order.
    moments: std::iter::Peekable<std::vec::IntoIter<u64>>,
    /// Events until it does, once that many requests have ended.
    events: Option<u64>,
    rng: Prng,
    flights: Flights<(usize, Io)>,
    cuts: Vec<Cut>,
    hpb: HpbUse,
    ios: u64,
}

fn on<S: DieSched>(
    setup: &Setup,
    workload: &mut Workload,
    plan: &PowerCuts,
    expected: u64,
    shared: &Shared,
) -> Result<PowerRun, PowerError> {
    let mut session = Session::<S>::start(setup, workload, plan, expected)?;
    session.watch(shared, 0)?;
    for phase in &mut workload.phases {
        let mut jobs: Vec<Running> = phase
            .jobs
            .iter_mut()
            .map(|job| Running {
                outstanding: 0,
                ios_left: job.limits.ios.unwrap_or(u64::MAX),
                bytes_left: job.limits.bytes.unwrap_or(u64::MAX),
                job,
            })
            .collect();
        session.phase(&mut jobs, shared)?;
    }
    session.late_cuts(shared)?;
    let end = session.now;
    // What is read back is no part of the workload.
    session.hpb.ended(&session.stack);
    for (lun, first, blocks) in ranges(PreconditionRange::Files, workload, &setup.preset) {
        session.read_back(lun, first, blocks, shared)?;
    }
    let Session { stack, cuts, hpb, ios, .. } = session;
    Ok(PowerRun {
        cuts,
        hpb,
        longest: setup.preset.device.longest_recovery(),
        ios,
        checked: stack.payload.checked,
        wrong: stack.payload.wrong,
        first_wrong: stack.payload.first_wrong,
        device: *stack.device.stats(),
        end,
    })
}

fn failed(error: RunError) -> PowerError {
    PowerError::Run(ExecuteError::Run(error))
}

impl<'a, S: DieSched> Session<'a, S> {
    fn start(setup: &Setup, workload: &Workload, plan: &'a PowerCuts, expected: u64) -> Result<Self, PowerError> {
        let preset = &setup.preset;
        fits(workload, preset)?;
        let stack = |e: StackError| PowerError::Run(e.into());
        let wire = AnyWire::new(setup.encoded);
        let mut stack: Powered<S> =
            Stack::new(&preset.device, setup.host, preset.delays, Tags::default(), (), wire).map_err(stack)?;
        precondition(&mut stack, setup, workload)?;
        let now = stack.start(Ns::ZERO).map_err(|e| PowerError::Run(e.into()))?;
        let mut rng = Prng::stream(plan.seed, "power cuts", 0);
        let mut moments: Vec<u64> = (0..plan.cuts).map(|_| 1 + rng.below(expected)).collect();
        moments.sort_unstable();
        let moments = moments.into_iter().peekable();
        Ok(Session {
            stack,
            now,
            plan,
            moments,
            events: None,
            rng,
            flights: Flights::new(),
            cuts: Vec::new(),
            hpb: HpbUse::default(),
            ios: 0,
        })
    }

    fn phase(&mut self, jobs: &mut [Running], shared: &Shared) -> Result<(), PowerError> {
        loop {
            for (index, job) in jobs.iter_mut().enumerate() {
                while job.outstanding < job.job.iodepth
                    && let Some(io) = job.next()
                {
                    job.outstanding += 1;
                    self.submit(job.job.lun, index, io);
                }
            }
            if self.is_time_for_a_cut() {
                self.watch(shared, 0)?;
                self.cut(jobs)?;
                continue;
            }
            let next = self.stack.next_deadline();
            if next == Ns::NEVER {
                break;
            }
            if next > LATEST {
                return Err(failed(RunError::TooLong { limit: LATEST }));
            }
            self.now = next;
            self.stack.advance(next);
            while let Some(done) = self.stack.poll_done() {
                let (index, io) = self.flights.get(done.cookie);
                self.flights.end(done.cookie);
                if let Some(sense) = done.error {
                    return Err(failed(io_error(io, sense, self.now)));
                }
                jobs[index].outstanding -= 1;
                self.ios += 1;
                if self.ios.is_multiple_of(4096) {
                    self.watch(shared, 4096)?;
                }
            }
        }
        if jobs.iter().any(|job| job.outstanding > 0) {
            return Err(failed(RunError::Stuck(self.now)));
        }
        self.stack.wire_error().map_or(Ok(()), |e| Err(failed(e.clone().into())))
    }

    /// So many requests more have ended.
    fn watch(&self, shared: &Shared, more: u64) -> Result<(), PowerError> {
        shared.ios.fetch_add(more, Ordering::Relaxed);
        if shared.stop.load(Ordering::Relaxed) { Err(failed(RunError::Interrupted)) } else { Ok(()) }
    }

    fn submit(&mut self, lun: u8, job: usize, io: Io) {
        let cookie = self.flights.begin((job, io));
        let (block, blocks) = (io.block, u32::from(io.blocks));
        self.stack.submit(self.now, &BlockRequest { cookie, lun, op: block_op(io), block, blocks });
    }

    /// Counts requests, then events: the power may go between any two of them.
    fn is_time_for_a_cut(&mut self) -> bool {
        match &mut self.events {
            Some(0) => {
                self.events = None;
                true
            }
            Some(left) => {
                *left -= 1;
                false
            }
            None => {
                let ios = self.ios;
                if self.moments.next_if(|&moment| ios >= moment).is_some() {
                    self.events = Some(self.rng.below(256));
                }
                false
            }
        }
    }

    /// The cuts whose moments the end of the workload was ahead of.
    fn late_cuts(&mut self, shared: &Shared) -> Result<(), PowerError> {
        while self.events.take().is_some() || self.moments.next().is_some() {
            self.watch(shared, 0)?;
            self.cut(&mut [])?;
        }
        Ok(())
    }

    fn cut(&mut self, jobs: &mut [Running]) -> Result<(), PowerError> {
        let at = self.now;
        let on = at + self.plan.off;
        let in_flight = jobs.iter().map(|job| job.outstanding).sum();
        self.hpb.cut(&self.stack, self.plan.loses);
        let recovery = match self.plan.loses {
            Loses::Everything => {
                let recovery = self.stack.power_cycle(at, on);
                self.flights = Flights::new();
                jobs.iter_mut().for_each(|job| job.outstanding = 0);
                self.now = self.stack.start(recovery.ready_at).map_err(|e| PowerError::Run(e.into()))?;
                recovery
            }
            Loses::Device => {
                let recovery = self.stack.device_power_cycle(at, on);
                self.now = on;
                recovery
            }
        };
        self.cuts.push(Cut { at, in_flight, took: recovery.ready_at - on, recovery });
        Ok(())
    }

    /// Reads a range; the tags check every block.
    fn read_back(&mut self, lun: u8, first: u32, blocks: u32, shared: &Shared) -> Result<(), PowerError> {
        const EACH: u32 = 64;
        const DEPTH: u32 = 16;
        let (mut at, mut outstanding, mut ended) = (0, 0, 0u64);
        while at < blocks || outstanding > 0 {
            while outstanding < DEPTH && at < blocks {
                let n = EACH.min(blocks - at);
                let request = BlockRequest { cookie: 0, lun, op: BlockOp::Read, block: first + at, blocks: n };
                self.stack.submit(self.now, &request);
                at += n;
                outstanding += 1;
            }
            let next = self.stack.next_deadline();
            if next == Ns::NEVER {
                return Err(failed(RunError::Stuck(self.now)));
            }
            self.now = next;
            self.stack.advance(next);
            while let Some(done) = self.stack.poll_done() {
                if let Some(sense) = done.error {
                    let io = Io { block: first, blocks: EACH as u16, kind: IoKind::Read, fua: false };
                    return Err(failed(io_error(io, sense, self.now)));
                }
                outstanding -= 1;
                ended += 1;
                if ended.is_multiple_of(4096) {
                    self.watch(shared, 4096)?;
                }
            }
        }
        Ok(())
    }
}
