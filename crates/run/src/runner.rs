// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one source after another on a stack, in virtual time that continues from each to the next.

use crate::cores::OnCores;
use crate::drive::{Driven, Hooks, Rest, Source, Virtual, drive};
use crate::error::{LATEST, RunError};
use crate::jobs::Jobs;
use crate::measure::PhaseStats;
use crate::watch::{Observer, Watched};
use crate::zoned::{HostZones, OnZones, Written, ZoneCounts};
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_stack::{Payload, Stack, Wire};
use readpath_workload::{Phase, Zbd};

/// What each job of a phase knows of zones, and its unit.
pub(crate) fn on_units(phase: &Phase) -> (Vec<Option<Zbd>>, Vec<u8>) {
    phase.jobs.iter().map(|job| (job.zbd, job.lun)).unzip()
}

/// Virtual time, and the runs of sources in it.
pub struct Runner {
    now: Ns,
    /// Exists once a source has run on units with zones.
    zones: Option<HostZones>,
    /// What a mapper of zones had written before.
    written: Written,
    /// Whether the power may go, after which zones have to be looked at whatever runs.
    may_lose_power: bool,
}

impl Runner {
    /// A runner from virtual time `now` on.
    pub fn new(now: Ns) -> Self {
        Runner { now, zones: None, written: Written::default(), may_lose_power: false }
    }

    /// The same; the power may go.
    pub(crate) fn under_power_cuts(now: Ns) -> Self {
        Runner { may_lose_power: true, ..Runner::new(now) }
    }

    /// The same; a mapper of zones has written this before.
    pub(crate) fn after(now: Ns, written: Written) -> Self {
        Runner { written, ..Runner::new(now) }
    }

    /// What the host did in zones so far, if the device has any.
    pub(crate) fn zone_counts<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &Stack<S, X, P, W>,
    ) -> Option<ZoneCounts> {
        self.zones = self.zones.take().or_else(|| HostZones::of(stack, &self.written));
        self.zones.as_ref().map(|zones| zones.counts(stack.host.zone_resets()))
    }

    /// Virtual time.
    pub fn now(&self) -> Ns {
        self.now
    }

    /// Runs a source, which begins now, to its end.
    pub fn run<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        source: &mut impl Source,
        hooks: &mut impl Hooks,
    ) -> Result<Driven, RunError> {
        self.run_jobs(stack, source, (&[], &[]), hooks)
    }

    /// Runs a source whose threads are jobs on units, some of which know of zones: see [`on_units`].
    pub(crate) fn run_jobs<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        source: &mut impl Source,
        (jobs, luns): (&[Option<Zbd>], &[u8]),
        hooks: &mut impl Hooks,
    ) -> Result<Driven, RunError> {
        let (from, clock) = (self.now, &mut Virtual);
        self.zones = self.zones.take().or_else(|| HostZones::of(stack, &self.written));
        let may_lose_power = self.may_lose_power;
        let places = |zones: &&mut HostZones| zones.maps() || jobs.iter().any(Option::is_some) || may_lose_power;
        let driven = match (stack.host.cores(), self.zones.as_mut().filter(places)) {
            (None, None) => drive(stack, source, hooks, clock, from)?,
            (Some((cores, most)), None) => drive(stack, &mut OnCores::new(source, cores, most), hooks, clock, from)?,
            (None, Some(zones)) => drive(stack, &mut OnZones::new(source, zones, jobs, luns), hooks, clock, from)?,
            (Some((cores, most)), Some(zones)) => {
                let source = &mut OnCores::new(source, cores, most);
                drive(stack, &mut OnZones::new(source, zones, jobs, luns), hooks, clock, from)?
            }
        };
        self.now = driven.end;
        Ok(driven)
    }

    /// Runs the jobs of a phase. The next phase does not wait for the work of a device that goes on when idle.
    pub fn jobs<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        phase: &mut Phase,
        hooks: &mut impl Hooks,
    ) -> Result<PhaseStats, RunError> {
        let rest = if stack.device.config().works_when_idle() { Rest::Leave } else { Rest::Replies };
        let (zbd, luns) = on_units(phase);
        let mut jobs = Jobs::new(phase, self.now, rest);
        let driven = self.run_jobs(stack, &mut jobs, (&zbd, &luns), hooks)?;
        jobs.stats(driven)
    }

    /// Runs the jobs of a phase without hooks.
    pub fn phase<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        phase: &mut Phase,
        observer: &mut dyn Observer,
    ) -> Result<PhaseStats, RunError> {
        self.jobs(stack, phase, &mut Watched(observer))
    }

    /// Lets the device complete its background work: nothing is submitted any more.
    ///
    /// # Errors
    /// Virtual time reaches its end.
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
}
