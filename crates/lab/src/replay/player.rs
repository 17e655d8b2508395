// SPDX-License-Identifier: MIT OR Apache-2.0
//! One trace on a stack: submits its requests at their times or at a queue depth, and measures each from the moment it
//! was due to the end of its last piece.

use super::Mode;
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::Ns;
use readpath_run::events::Schedule;
use readpath_run::execute::LUN;
use readpath_run::measure::JobStats;
use readpath_run::request::{Flights, LATEST, block_op, io_error};
use readpath_run::run::{Observer, RunError, watch};
use readpath_stack::{NoData, Stack, Wire};
use readpath_workload::trace::TimedIo;

/// Commands between two looks of the observer; one may have 65,535 blocks.
const WATCH_EVERY: u32 = 1 << 8;
/// How far ahead of their use tables are prefetched, in requests.
const PREFETCH: usize = 16;

/// What a request waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Nothing yet.
    Due,
    /// The flush before its write.
    Flush,
    /// The blocks that it writes in part, as they were.
    Old,
    /// Its pieces.
    Pieces,
}

/// A request of the trace.
#[derive(Clone, Copy)]
struct Flight {
    /// Where its pieces are in the trace.
    first: u32,
    end: u32,
    step: Step,
    /// Commands of this step that have not ended.
    left: u32,
    since: Ns,
}

struct Player<'a> {
    ios: &'a [TimedIo],
    next: usize,
    flights: Flights<Flight>,
}

/// Replays `ios` from virtual time `start` on. Returns what was measured, and the most requests outstanding at once.
pub(super) fn play<S: DieSched, P: Probe, W: Wire>(
    stack: &mut Stack<S, NoData, P, W>,
    ios: &[TimedIo],
    mode: Mode,
    start: Ns,
    events: &mut Schedule,
    observer: &mut impl Observer,
) -> Result<(JobStats, u32), RunError> {
    let mut player = Player { ios, next: 0, flights: Flights::new() };
    let mut stats = JobStats { name: String::new(), group: 0, start, end: start, kinds: Default::default() };
    let (mut now, mut outstanding, mut most, mut ended) = (start, 0, 0, 0);
    let mut commands = 0u32;
    watch(stack, observer, 0, start)?;
    loop {
        while let Some(done) = stack.poll_done() {
            let flight = player.flights.get(done.cookie);
            if let Some(sense) = done.error {
                return Err(io_error(ios[flight.first as usize].io(), sense, now));
            }
            commands = commands.wrapping_add(1);
            if commands.is_multiple_of(WATCH_EVERY) {
                watch(stack, observer, ended, now)?;
            }
            if player.one_ended(stack, done.cookie, now) {
                continue;
            }
            player.flights.end(done.cookie);
            outstanding -= 1;
            let pieces = &ios[flight.first as usize..flight.end as usize];
            let blocks = pieces.iter().map(|io| u32::from(io.blocks)).sum();
            stats.kinds[pieces[0].kind as usize].record(blocks, now - flight.since);
            events.request_ended(pieces[0].kind, now - flight.since);
            ended += 1;
        }
        let due = |player: &Player| ios.get(player.next).map(|io| Ns(start.0.saturating_add(io.time.0)));
        let mut limit = Ns::NEVER;
        while let Some(time) = due(&player) {
            let since = match mode {
                Mode::Timed if time > now => {
                    limit = time;
                    break;
                }
                Mode::Timed => time,
                Mode::Closed { iodepth } if outstanding >= iodepth => break,
                Mode::Closed { .. } => now,
            };
            player.begin(stack, since, now);
            outstanding += 1;
            most = most.max(outstanding);
        }
        if outstanding == 0 && player.next == ios.len() {
            break;
        }
        if limit != Ns::NEVER && limit > LATEST {
            return Err(RunError::TooLong { limit: LATEST });
        }
        let next = stack.advance_to_reply(limit.min(events.next_at()));
        if next == Ns::NEVER {
            break;
        }
        if next > LATEST {
            return Err(RunError::TooLong { limit: LATEST });
        }
        now = next;
        while events.next_at() <= now {
            now = events.happen(stack, now);
        }
    }
    // Of what did not survive its encoding nothing more is heard.
    if let Some(e) = stack.wire_error() {
        return Err(e.clone().into());
    }
    if outstanding > 0 {
        return Err(RunError::Stuck(now));
    }
    watch(stack, observer, ended, now)?;
    stats.end = now;
    Ok((stats, most))
}

impl Player<'_> {
    /// Takes the next request of the trace.
    fn begin<S: DieSched, P: Probe, W: Wire>(&mut self, stack: &mut Stack<S, NoData, P, W>, since: Ns, now: Ns) {
        let first = self.next;
        let more = self.ios[first + 1..].iter().take_while(|io| io.continued()).count();
        self.next = first + 1 + more;
        if let Some(io) = self.ios.get(self.next + PREFETCH) {
            stack.prefetch(LUN, io.block);
        }
        let flight = Flight { first: first as u32, end: self.next as u32, step: Step::Due, left: 0, since };
        let cookie = self.flights.begin(flight);
        self.go_on(stack, cookie, now);
    }

    /// A command of a request has ended. Whether there are others, or will be.
    fn one_ended<S: DieSched, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, NoData, P, W>,
        cookie: u32,
        now: Ns,
    ) -> bool {
        let flight = self.flights.get_mut(cookie);
        flight.left -= 1;
        if flight.left > 0 {
            return true;
        }
        if flight.step == Step::Pieces {
            return false;
        }
        self.go_on(stack, cookie, now);
        true
    }

    /// Submits the commands of the next step that has any.
    fn go_on<S: DieSched, P: Probe, W: Wire>(&mut self, stack: &mut Stack<S, NoData, P, W>, cookie: u32, now: Ns) {
        let flight = self.flights.get_mut(cookie);
        let pieces = &self.ios[flight.first as usize..flight.end as usize];
        let (head, tail) = (&pieces[0], &pieces[pieces.len() - 1]);
        let command = |op, block, blocks| BlockRequest { cookie, lun: LUN, op, block, blocks };
        if flight.step == Step::Due && head.preflush() {
            (flight.step, flight.left) = (Step::Flush, 1);
            stack.submit(now, &command(BlockOp::Flush, 0, 0));
            return;
        }
        if matches!(flight.step, Step::Due | Step::Flush) {
            let front = head.partial_first().then_some(head.block);
            let back = tail.partial_last().then(|| tail.block + u32::from(tail.blocks) - 1);
            let back = back.filter(|_| front.is_none() || back != front || pieces.len() > 1);
            if front.is_some() || back.is_some() {
                flight.step = Step::Old;
                flight.left = u32::from(front.is_some()) + u32::from(back.is_some());
                for block in front.into_iter().chain(back) {
                    stack.submit(now, &command(BlockOp::Read, block, 1));
                }
                return;
            }
        }
        (flight.step, flight.left) = (Step::Pieces, pieces.len() as u32);
        for io in pieces {
            stack.submit(now, &command(block_op(io.io()), io.block, u32::from(io.blocks)));
        }
    }
}
