// SPDX-License-Identifier: MIT OR Apache-2.0
//! One loop drives a stack, for any source of requests, with hooks between its steps, under any clock. It does not know
//! what a request is for.
//!
//! What happens to a request:
//! 1. Its [`Source`] submits it through a [`Port`], because it is due ([`Source::act`]) or because another request has
//!    ended ([`Source::ended`]). The source finds its data again by the request's cookie.
//! 2. Host driver and device handle it; [`Stack`] moves it between them.
//! 3. The [`Clock`] advances time to the next reply of the device, but never past the next deadline of source or hooks.
//! 4. Hooks that are due act: an event, a power cut. A source may act on host and device too ([`Source::work`]), for
//!    orders that change what it keeps of its requests. Nothing else loses requests.
//! 5. The end of the request is polled. A refusal ends the run; otherwise the source counts it and may submit more, and
//!    the hooks get its kind and latency.
//! 6. When the source is over, the device's own work is waited for or left ([`Rest`]).

use crate::error::{LATEST, RunError, io_error};
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_host::{BlockRequest, SenseData};
use readpath_kit::Ns;
use readpath_stack::{Fault, Hold, Payload, Ruled, Stack, Wire};
use readpath_workload::{Io, IoKind};

/// What a source may do with a stack. It cannot advance time.
pub trait Port {
    /// Submits a request at `now`.
    fn submit(&mut self, now: Ns, request: &BlockRequest);
    /// Submits a request of the thread with this number. Threads are on cores of the host, whose CPU it costs if that
    /// is modelled; requests of no certain thread are spread over the cores.
    #[inline(always)]
    fn submit_from(&mut self, now: Ns, thread: u32, request: &BlockRequest) {
        let _ = thread;
        self.submit(now, request);
    }
    /// Prefetches the tables that a read of `block` will touch.
    fn prefetch(&self, lun: u8, block: u32);
    /// Prefetches the tables that a write or a trim will touch.
    fn prefetch_write(&self, lun: u8, block: u32);
    /// Whether a block holds data, for sources that report it.
    fn holds_data(&self, lun: u8, block: u32) -> bool;
    /// Blocks up to the write pointer of each zone of a unit, as the device reports them; empty if it has no zones.
    fn zone_pointers(&self, lun: u8) -> Vec<u32>;
    /// Gives the request `cookie`, which is submitted next, its data or a buffer to fill, as [`Payload::bring`].
    fn bring(&mut self, cookie: u32, block: u32, data: Vec<u8>);
    /// The data of a request that has ended, as [`Payload::take`].
    fn take(&mut self, cookie: u32) -> (Vec<u8>, Option<Fault>);
    /// As [`Payload::settle`].
    fn settle(&mut self);
    /// As [`Payload::rule`].
    fn rule(&mut self, request: &BlockRequest, ruled: Ruled);
}

impl<S: DieSched, X: Payload, P: Probe, W: Wire> Port for Stack<S, X, P, W> {
    #[inline(always)]
    fn submit(&mut self, now: Ns, request: &BlockRequest) {
        Stack::submit(self, now, request);
    }

    #[inline(always)]
    fn prefetch(&self, lun: u8, block: u32) {
        Stack::prefetch(self, lun, block);
    }

    #[inline(always)]
    fn prefetch_write(&self, lun: u8, block: u32) {
        Stack::prefetch_write(self, lun, block);
    }

    fn holds_data(&self, lun: u8, block: u32) -> bool {
        self.device.holds_data(lun, block)
    }

    fn zone_pointers(&self, lun: u8) -> Vec<u32> {
        self.device.zone_pointers(lun)
    }

    fn bring(&mut self, cookie: u32, block: u32, data: Vec<u8>) {
        self.payload.bring(cookie, block, data);
    }

    fn take(&mut self, cookie: u32) -> (Vec<u8>, Option<Fault>) {
        self.payload.take(cookie)
    }

    fn settle(&mut self) {
        self.payload.settle();
    }

    fn rule(&mut self, request: &BlockRequest, ruled: Ruled) {
        Stack::rule(self, request, ruled);
    }
}

/// Whether a run waits for the device's own work when its source is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// The run ends without it.
    Leave,
    /// It is waited for; the time is then that of the last reply that reached the host.
    Replies,
    /// It is waited for, event by event; the time is then that of the last one.
    Events,
}

/// Submits requests and is called when they end.
pub trait Source {
    /// Ends of commands between two calls of [`Hooks::watch`].
    const WATCH_EVERY: u64 = 1 << 12;
    /// At equal times the ends of requests come before [`Source::act`].
    const ENDS_FIRST: bool = true;

    /// Which of its reads may leave the way from stage to stage.
    fn holds(&self) -> Hold {
        Hold::Nothing
    }

    /// The run begins at `now`.
    fn begin(&mut self, port: &mut impl Port, now: Ns) {
        let _ = (port, now);
    }

    /// When [`Source::act`] is due next, unless a request ends before; [`Ns::NEVER`] if it is not. A time in the past
    /// means at once.
    fn next_at(&self) -> Ns;

    /// Does at `now` what was due by `until`, which is not later. Afterwards [`Source::next_at`] is later than `until`.
    fn act(&mut self, port: &mut impl Port, now: Ns, until: Ns);

    /// When [`Source::work`] is due next; a time in the past means at once.
    #[inline(always)]
    fn work_at(&self) -> Ns {
        Ns::NEVER
    }

    /// Acts on host and device themselves at `now`; returns the time when it is over. Afterwards [`Source::work_at`] is
    /// another time.
    ///
    /// # Errors
    /// Host or device cannot go on.
    fn work<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
    ) -> Result<Ns, RunError> {
        let _ = stack;
        Ok(now)
    }

    /// A command has ended. If a request of the workload has ended with it, its kind and how long it took.
    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)>;

    /// A request of the workload has ended without a command, because [`Source::act`] found that it was due: its kind
    /// and how long it took. Called until there is none.
    #[inline(always)]
    fn late(&mut self, port: &mut impl Port, now: Ns) -> Option<(IoKind, Ns)> {
        let _ = (port, now);
        None
    }

    /// A request that was submitted before begins only now: something had to be made ready for it.
    #[inline(always)]
    fn begins(&mut self, cookie: u32, now: Ns) {
        let _ = (cookie, now);
    }

    /// A request that was submitted could do nothing, and counts as never made; if `is_last`, its thread is over.
    #[inline(always)]
    fn gives_up(&mut self, port: &mut impl Port, cookie: u32, is_last: bool, now: Ns) {
        let _ = (port, cookie, is_last, now);
    }

    /// A command was refused. An error ends the run.
    ///
    /// # Errors
    /// The refusal, if the source cannot go on after it; by default any refusal.
    fn refused(&mut self, port: &mut impl Port, cookie: u32, sense: SenseData, now: Ns) -> Result<(), RunError> {
        let _ = port;
        Err(io_error(self.io(cookie), sense, now))
    }

    /// The request of a cookie, for an error message.
    fn io(&self, cookie: u32) -> Io;

    /// Requests that have not ended.
    fn in_flight(&self) -> u32;

    /// Whether it has nothing more to do.
    fn is_over(&self) -> bool;

    /// What a run waits for after its last request.
    fn rest(&self) -> Rest {
        Rest::Leave
    }

    /// The host has lost its power and is back at `now`: nothing in flight will end.
    fn lost(&mut self, port: &mut impl Port, now: Ns);
}

/// How far time may advance at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Pace {
    /// To the next reply.
    ToReply,
    /// To the next event inside the device.
    ToEvent,
}

/// What happens between requests. Each method does nothing by default, which costs nothing. Several hooks at once are a
/// pair of them.
pub trait Hooks {
    /// When [`Hooks::happen`] is due next; time does not advance past it. A time in the past means at once. A source
    /// that is over does not wait for it.
    #[inline(always)]
    fn next_at(&self) -> Ns {
        Ns::NEVER
    }

    /// Asked before time advances: how far it may advance at once.
    #[inline(always)]
    fn pace(&mut self) -> Pace {
        Pace::ToReply
    }

    /// Whether the next [`Hooks::happen`] takes the power of the host, which then loses all its state.
    #[inline(always)]
    fn takes_host(&self) -> bool {
        false
    }

    /// The host is about to lose its counters, whichever hook causes that.
    fn host_goes<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &Stack<S, X, P, W>) {
        let _ = stack;
    }

    /// Acts at `now`, with `in_flight` requests in flight; returns the time when that is over. Afterwards
    /// [`Hooks::next_at`] is another time.
    ///
    /// # Errors
    /// Host or device cannot go on.
    fn happen<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
        in_flight: u32,
    ) -> Result<Ns, RunError> {
        let _ = (stack, in_flight);
        Ok(now)
    }

    /// A request has ended.
    #[inline(always)]
    fn ended(&mut self, kind: IoKind, latency: Ns) {
        let _ = (kind, latency);
    }

    /// Called at the beginning, every [`Source::WATCH_EVERY`] commands, after [`Hooks::happen`], and at the end. `ios`
    /// requests have ended. False stops the run.
    #[inline(always)]
    fn watch<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        ios: u64,
        now: Ns,
    ) -> bool {
        let _ = (stack, ios, now);
        true
    }
}

/// No hooks.
impl Hooks for () {}

/// Two hooks; at equal times the first acts before the second.
impl<A: Hooks, B: Hooks> Hooks for (A, B) {
    #[inline(always)]
    fn next_at(&self) -> Ns {
        self.0.next_at().min(self.1.next_at())
    }

    #[inline(always)]
    fn pace(&mut self) -> Pace {
        self.0.pace().max(self.1.pace())
    }

    fn takes_host(&self) -> bool {
        if self.0.next_at() <= self.1.next_at() { self.0.takes_host() } else { self.1.takes_host() }
    }

    fn host_goes<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &Stack<S, X, P, W>) {
        self.0.host_goes(stack);
        self.1.host_goes(stack);
    }

    fn happen<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
        in_flight: u32,
    ) -> Result<Ns, RunError> {
        match self.0.next_at() <= self.1.next_at() {
            true => self.0.happen(stack, now, in_flight),
            false => self.1.happen(stack, now, in_flight),
        }
    }

    #[inline(always)]
    fn ended(&mut self, kind: IoKind, latency: Ns) {
        self.0.ended(kind, latency);
        self.1.ended(kind, latency);
    }

    #[inline(always)]
    fn watch<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        ios: u64,
        now: Ns,
    ) -> bool {
        let goes_on = self.0.watch(stack, ios, now);
        self.1.watch(stack, ios, now) && goes_on
    }
}

/// Advances time. [`Virtual`] time jumps. A clock of real time sleeps, and its source has requests from outside that
/// wake it. Neither stack nor source nor hooks can distinguish the two.
pub trait Clock {
    /// Whether nothing can come from outside before the next reply, so that the stack may go on to it at once.
    const JUMPS: bool;
    /// Whether a source can wake it when nothing else is due.
    const WAKES: bool;

    /// Waits until `at`, or until the clock is woken if that is possible; with [`Ns::NEVER`] only until it is woken.
    /// Returns the time then, never less than before. A real clock may return a little late; events that were due
    /// meanwhile are then handled late, at their own modelled times.
    fn wait_until(&mut self, at: Ns) -> Ns;

    /// Waits until `at`, and cannot be woken.
    #[inline(always)]
    fn sleep_until(&mut self, at: Ns) {
        self.wait_until(at);
    }
}

/// Virtual time: as fast as the machine can simulate.
#[derive(Clone, Copy, Default, Debug)]
pub struct Virtual;

impl Clock for Virtual {
    const JUMPS: bool = true;
    const WAKES: bool = false;

    #[inline(always)]
    fn wait_until(&mut self, at: Ns) -> Ns {
        at
    }
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Driven {
    /// The time then.
    pub end: Ns,
    /// Requests of the source that have ended.
    pub ios: u64,
}

/// Drives `stack` from time `from` on until `source` is over.
///
/// # Errors
/// The first request that was refused, and the other cases of [`RunError`].
pub fn drive<S: DieSched, X: Payload, P: Probe, W: Wire, Q: Source, H: Hooks, C: Clock>(
    stack: &mut Stack<S, X, P, W>,
    source: &mut Q,
    hooks: &mut H,
    clock: &mut C,
    from: Ns,
) -> Result<Driven, RunError> {
    stack.hold(if C::JUMPS { source.holds() } else { Hold::Nothing });
    let driven = drive_to_end(stack, source, hooks, clock, from);
    stack.hold(Hold::Nothing);
    driven
}

#[inline(always)]
fn drive_to_end<S: DieSched, X: Payload, P: Probe, W: Wire, Q: Source, H: Hooks, C: Clock>(
    stack: &mut Stack<S, X, P, W>,
    source: &mut Q,
    hooks: &mut H,
    clock: &mut C,
    from: Ns,
) -> Result<Driven, RunError> {
    let (mut now, mut ios, mut commands) = (from, 0, 0u64);
    watch(stack, hooks, ios, now)?;
    source.begin(stack, now);
    loop {
        while let Some(done) = stack.poll_done() {
            if let Some(sense) = done.error {
                source.refused(stack, done.cookie, sense, now)?;
            } else if let Some((kind, latency)) = source.ended(stack, done.cookie, now) {
                ios += 1;
                hooks.ended(kind, latency);
            }
            commands += 1;
            if commands % Q::WATCH_EVERY == 0 {
                watch(stack, hooks, ios, now)?;
            }
        }
        while let Some((kind, latency)) = source.late(stack, now) {
            ios += 1;
            hooks.ended(kind, latency);
        }
        if Q::ENDS_FIRST && source.next_at() <= now {
            source.act(stack, now, now);
            continue;
        }
        let mut pace = hooks.pace();
        let of_hooks = hooks.next_at().min(source.work_at());
        if of_hooks <= now {
            now = what_is_due(stack, source, hooks, clock, (now, ios))?;
            continue;
        }
        let is_over = source.is_over();
        if is_over {
            match source.rest() {
                Rest::Leave => break,
                Rest::Replies => {}
                Rest::Events => pace = Pace::ToEvent,
            }
        }
        let due = source.next_at().min(of_hooks);
        let next = go_on(stack, clock, if is_over { Ns::NEVER } else { due }, pace);
        if next == Ns::NEVER {
            break;
        }
        if next > LATEST {
            return Err(RunError::TooLong { limit: LATEST });
        }
        now = next;
        if due <= now {
            now = what_is_due(stack, source, hooks, clock, (now, ios))?;
        }
    }
    // A failed encoding ends the run.
    if let Some(e) = stack.wire_error() {
        return Err(e.clone().into());
    }
    if !source.is_over() {
        return Err(RunError::Stuck(now));
    }
    watch(stack, hooks, ios, now)?;
    Ok(Driven { end: now, ios })
}

/// Advances time to `limit` at most; [`Ns::NEVER`] if nothing can happen any more.
#[inline(always)]
fn go_on<S: DieSched, X: Payload, P: Probe, W: Wire, C: Clock>(
    stack: &mut Stack<S, X, P, W>,
    clock: &mut C,
    limit: Ns,
    pace: Pace,
) -> Ns {
    if C::JUMPS && pace == Pace::ToReply {
        return stack.advance_to_reply(limit);
    }
    stack.release();
    let until = stack.next_deadline().min(limit);
    if C::WAKES && until == Ns::NEVER {
        stack.payload.settle();
    }
    let now = clock.wait_until(until);
    if C::WAKES && now != Ns::NEVER {
        // The clock may be late. Events that are due go first, each at its own time.
        return stack.advance_to_reply(now.min(limit));
    }
    if now != Ns::NEVER {
        stack.advance(now);
    }
    now
}

/// Runs source and hooks as long as they are due, in the order of their times. Returns the time when that is over.
#[inline(never)]
fn what_is_due<S: DieSched, X: Payload, P: Probe, W: Wire, Q: Source, H: Hooks, C: Clock>(
    stack: &mut Stack<S, X, P, W>,
    source: &mut Q,
    hooks: &mut H,
    clock: &mut C,
    (mut now, ios): (Ns, u64),
) -> Result<Ns, RunError> {
    loop {
        let own = if Q::ENDS_FIRST { Ns::NEVER } else { source.next_at() };
        let (work, of_hooks) = (source.work_at(), hooks.next_at());
        let others = work.min(of_hooks);
        if own.min(others) > now {
            return Ok(now);
        }
        if own <= others {
            source.act(stack, now, others.min(now));
            continue;
        }
        // What was submitted is under way for those who look.
        stack.release();
        if work <= of_hooks {
            now = source.work(stack, now)?;
            clock.sleep_until(now);
            watch(stack, hooks, ios, now)?;
            continue;
        }
        let is_host_lost = hooks.takes_host();
        if is_host_lost {
            hooks.host_goes(stack);
        }
        now = hooks.happen(stack, now, source.in_flight())?;
        // A real clock may be later; what follows is handled late, at its own time.
        clock.sleep_until(now);
        if is_host_lost {
            source.lost(stack, now);
        }
        watch(stack, hooks, ios, now)?;
    }
}

/// Calls the hooks that watch. Inlined, so that it costs little without one.
#[inline(always)]
fn watch<S: DieSched, X: Payload, P: Probe, W: Wire>(
    stack: &mut Stack<S, X, P, W>,
    hooks: &mut impl Hooks,
    ios: u64,
    now: Ns,
) -> Result<(), RunError> {
    stack.release();
    if hooks.watch(stack, ios, now) { Ok(()) } else { Err(RunError::Interrupted) }
}
