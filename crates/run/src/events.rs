// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events in the middle of a run, at their times, and what host and device counted before, between and after them. It
//! knows nothing about the source of requests.

use crate::drive::Hooks;
use crate::error::RunError;
use crate::request::LUN;
use readpath_config::{Event, EventKind};
use readpath_device::{DeviceStats, Probe};
use readpath_flash::DieSched;
use readpath_host::{HostMemory, HpbCounters, ParamError};
use readpath_kit::{Histogram, Ns};
use readpath_stack::{Payload, Stack, Wire};
use readpath_workload::IoKind;
use thiserror::Error;

/// An event that this run cannot have.
#[derive(Clone, Debug, Error)]
#[error("event {number} ({event}): {error}")]
pub struct EventError {
    /// Its place, from 1.
    pub number: usize,
    /// The event.
    pub event: Event,
    /// Why.
    pub error: ParamError,
}

/// What host and device have counted.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// The device.
    pub device: DeviceStats,
    /// HPB of the host, if it has one.
    pub hpb: Option<HpbCounters>,
    /// Host memory for HPB at the end.
    pub memory: Option<HostMemory>,
}

impl Counts {
    fn of<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &Stack<S, X, P, W>) -> Self {
        let host = &stack.host;
        Counts { device: *stack.device.stats(), hpb: host.all_counters(), memory: host.all_memory() }
    }

    fn since(&self, before: &Counts) -> Counts {
        Counts {
            device: self.device.since(&before.device),
            hpb: self.hpb.map(|hpb| hpb.since(&before.hpb.unwrap_or_default())),
            memory: self.memory,
        }
    }
}

/// The part of a run from one event to the next.
#[derive(Clone, Debug)]
pub struct Span {
    /// The event that it begins with, and its place from 1; none before the first event.
    pub event: Option<(usize, Event)>,
    /// Virtual time of its beginning.
    pub from: Ns,
    /// Virtual time of its end.
    pub to: Ns,
    /// Counters of the span.
    pub counts: Counts,
    /// From power-on until the device was ready, if the event was a power cycle.
    pub recovery: Option<Ns>,
    /// Latencies by kind, from submission to end in nanoseconds, of the requests that ended in the span.
    pub latency: [Histogram; 4],
}

/// The events of a run that are to come.
#[derive(Default)]
pub struct Schedule<'a> {
    events: &'a [Event],
    start: Ns,
    next: usize,
    /// What had been counted when the newest span began.
    before: Counts,
    /// Counters of hosts that have lost their power.
    gone: HpbCounters,
    spans: Vec<Span>,
}

impl<'a> Schedule<'a> {
    /// Events, in order of time, for a run that begins at `start`.
    ///
    /// # Errors
    /// A limit of memory that its host cannot keep. One without HPB keeps each.
    pub fn new<S: DieSched, X: Payload, P: Probe, W: Wire>(
        events: &'a [Event],
        stack: &Stack<S, X, P, W>,
        start: Ns,
    ) -> Result<Self, EventError> {
        for hpb in stack.host.luns().filter_map(|lun| stack.host.hpb(lun)) {
            for (i, &event) in events.iter().enumerate() {
                let EventKind::Pressure { bytes } = event.kind else { continue };
                hpb.check_limit(bytes).map_err(|error| EventError { number: i + 1, event, error })?;
            }
        }
        let mut schedule = Schedule { events, start, before: Counts::of(stack), ..Schedule::default() };
        if !events.is_empty() {
            schedule.begin(None, start, None);
        }
        Ok(schedule)
    }

    /// Lets the next event happen at `now`, which is not before its time. Returns the time when it is over.
    #[cold]
    fn next_event<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &mut Stack<S, X, P, W>, now: Ns) -> Ns {
        let Some(&event) = self.events.get(self.next) else { return now };
        stack.advance(now);
        self.close(self.counts(stack), now);
        let (mut after, mut recovery) = (now, None);
        match event.kind {
            EventKind::Suspend => stack.suspend(),
            EventKind::Resume => stack.resume(now),
            EventKind::Mark => {}
            EventKind::HardwareReset => stack.reset(now),
            EventKind::PowerCycle { off } => {
                after = now + off;
                recovery = Some(stack.device_power_cycle(now, after).ready_at.saturating_sub(after));
            }
            EventKind::Pressure { bytes } => {
                // Checked at the beginning; what tables take does not change. A unit without HPB has nothing to limit.
                for lun in stack.host.luns() {
                    let limited = stack.limit_memory(now, lun, bytes);
                    debug_assert!(matches!(limited, Ok(()) | Err(ParamError::NoHpb { .. })));
                }
            }
        }
        // Timers of the host that were due while the power was off.
        stack.advance(after);
        self.next += 1;
        self.begin(Some((self.next, event)), now, recovery);
        after
    }

    /// The spans of a run that ends at `now`.
    pub fn end<S: DieSched, X: Payload, P: Probe, W: Wire>(mut self, stack: &Stack<S, X, P, W>, now: Ns) -> Vec<Span> {
        self.close(self.counts(stack), now);
        self.spans
    }

    fn begin(&mut self, event: Option<(usize, Event)>, from: Ns, recovery: Option<Ns>) {
        let (counts, latency) = Default::default();
        self.spans.push(Span { event, from, to: from, counts, recovery, latency });
    }

    fn counts<S: DieSched, X: Payload, P: Probe, W: Wire>(&self, stack: &Stack<S, X, P, W>) -> Counts {
        let counts = Counts::of(stack);
        Counts { hpb: counts.hpb.map(|hpb| hpb.plus(&self.gone)), ..counts }
    }

    /// Ends the newest span, if there is one.
    fn close(&mut self, counts: Counts, now: Ns) {
        if let Some(span) = self.spans.last_mut() {
            (span.to, span.counts) = (now.max(span.from), counts.since(&self.before));
            self.before = counts;
        }
    }
}

impl Hooks for Schedule<'_> {
    #[inline(always)]
    fn next_at(&self) -> Ns {
        self.events.get(self.next).map_or(Ns::NEVER, |event| self.start + event.at)
    }

    fn happen<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
        _: u32,
    ) -> Result<Ns, RunError> {
        Ok(self.next_event(stack, now))
    }

    fn host_goes<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &Stack<S, X, P, W>) {
        self.gone = self.gone.plus(&stack.host.all_counters().unwrap_or_default());
    }

    #[inline(always)]
    fn ended(&mut self, kind: IoKind, latency: Ns) {
        if let Some(span) = self.spans.last_mut() {
            span.latency[kind as usize].record(latency.0);
        }
    }
}

/// Why a limit of host memory is not possible.
#[derive(Clone, Debug, Error)]
#[error("limit {number} of host memory, from {} ms on: {error}", at.0 as f64 / 1e6)]
pub struct LimitError {
    /// Its place, from 1.
    pub number: usize,
    /// Its time from the start of the trace.
    pub at: Ns,
    /// Why.
    pub error: ParamError,
}

/// Schedules limits of host memory for HPB at their times after `start`, on each unit with HPB: every unit has its own
/// memory.
pub fn limit<S: DieSched, X: Payload, P: Probe, W: Wire>(
    stack: &mut Stack<S, X, P, W>,
    limits: &[(Ns, u64)],
    start: Ns,
) -> Result<(), LimitError> {
    if limits.is_empty() {
        return Ok(());
    }
    let later: Vec<(Ns, u64)> = limits.iter().map(|&(at, bytes)| (Ns(start.0.saturating_add(at.0)), bytes)).collect();
    let units: Vec<u8> = stack.host.luns().filter(|&lun| stack.host.hpb(lun).is_some()).collect();
    for lun in if units.is_empty() { vec![LUN] } else { units } {
        let scheduled = stack.host.schedule_limits(lun, &later);
        scheduled.map_err(|(i, error)| LimitError { number: i + 1, at: limits[i].0, error })?;
    }
    Ok(())
}
