// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plays launches of apps: computes, asks for what comes next, waits for what cannot be read ahead, and so on. One app at a
//! time.

use crate::events::Schedule;
use crate::measure::{JobStats, KindStats, PhaseStats};
use crate::request::{Flights, LATEST, block_op, io_error};
use crate::run::{Observer, RunError, watch};
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_host::BlockRequest;
use readpath_kit::Ns;
use readpath_stack::{Payload, Stack, Wire};
use readpath_workload::Io;
use readpath_workload::launch::{Launch, Launches};

/// All launches of `cycle`, from `now` on, which is then the time when the last has ended. Requests are counted as those of
/// one job.
pub(crate) fn play_cycle<S: DieSched, X: Payload, P: Probe, W: Wire>(
    stack: &mut Stack<S, X, P, W>,
    lun: u8,
    now: &mut Ns,
    launches: &Launches,
    cycle: usize,
    events: &mut Schedule,
    observer: &mut impl Observer,
) -> Result<PhaseStats, RunError> {
    let start = *now;
    let mut kinds: [KindStats; 4] = Default::default();
    let mut ios = 0;
    watch(stack, observer, 0, start)?;
    for app in 0..launches.apps() {
        let launch = launches.launch(cycle, app);
        stack.foreground(*now, app);
        play(stack, lun, now, &launch, events, &mut kinds)?;
        ios += launch.requests.len() as u64;
        watch(stack, observer, ios, *now)?;
    }
    let name = format!("cycle {}", cycle + 1);
    let job = JobStats { name: name.clone(), group: 0, start, end: *now, kinds };
    Ok(PhaseStats { name, start, end: *now, jobs: vec![job], ios })
}

/// A request under way.
#[derive(Clone, Copy)]
struct Flight {
    io: Io,
    begun: Ns,
    is_waited_for: bool,
}

/// What is under way, and what has ended.
struct Playing<'a> {
    flights: Flights<Flight>,
    waited_for: usize,
    kinds: &'a mut [KindStats; 4],
}

impl Playing<'_> {
    fn take_done<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
        events: &mut Schedule,
    ) -> Result<(), RunError> {
        while let Some(done) = stack.poll_done() {
            let flight = self.flights.get(done.cookie);
            self.flights.end(done.cookie);
            if let Some(sense) = done.error {
                return Err(io_error(flight.io, sense, now));
            }
            self.waited_for -= usize::from(flight.is_waited_for);
            self.kinds[flight.io.kind as usize].record(u32::from(flight.io.blocks), now - flight.begun);
            events.request_ended(flight.io.kind, now - flight.begun);
        }
        Ok(())
    }
}

fn play<S: DieSched, X: Payload, P: Probe, W: Wire>(
    stack: &mut Stack<S, X, P, W>,
    lun: u8,
    now: &mut Ns,
    launch: &Launch,
    events: &mut Schedule,
    kinds: &mut [KindStats; 4],
) -> Result<(), RunError> {
    let mut playing = Playing { flights: Flights::new(), waited_for: 0, kinds };
    let mut requests = launch.requests.iter();
    for step in &launch.steps {
        let until = *now + step.think;
        if until > LATEST {
            return Err(RunError::TooLong { limit: LATEST });
        }
        while stack.next_deadline().min(events.next_at()) <= until {
            step_once(stack, now, events)?;
            playing.take_done(stack, *now, events)?;
        }
        // With the device idle, only timers of the host are left, which are not among its deadlines. An event may have taken
        // longer than the app computes.
        let until = until.max(*now);
        *now = until;
        stack.advance(until);
        for &io in requests.by_ref().take(usize::from(step.requests)) {
            playing.waited_for += usize::from(step.waits);
            let cookie = playing.flights.begin(Flight { io, begun: until, is_waited_for: step.waits });
            let request = BlockRequest { cookie, lun, op: block_op(io), block: io.block, blocks: u32::from(io.blocks) };
            stack.submit(until, &request);
        }
        playing.take_done(stack, *now, events)?;
        while playing.waited_for > 0 {
            step_once(stack, now, events)?;
            playing.take_done(stack, *now, events)?;
        }
    }
    while !playing.flights.is_empty() {
        step_once(stack, now, events)?;
        playing.take_done(stack, *now, events)?;
    }
    Ok(())
}

/// The next thing happens.
fn step_once<S: DieSched, X: Payload, P: Probe, W: Wire>(
    stack: &mut Stack<S, X, P, W>,
    now: &mut Ns,
    events: &mut Schedule,
) -> Result<(), RunError> {
    let next = stack.next_deadline();
    if events.next_at() <= next {
        // One whose time came while nobody had requests happens now.
        *now = events.happen(stack, events.next_at().max(*now));
        return Ok(());
    }
    if next == Ns::NEVER {
        return Err(RunError::Stuck(*now));
    }
    *now = next;
    stack.advance(next);
    Ok(())
}
