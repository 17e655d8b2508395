// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connects host and device: requests go down, replies come back, and timers of the host run. It decides nothing.

use crate::host_memory::given_host_memory;
use crate::medium::{self, Units};
use crate::payload::{Payload, Ruled};
use crate::wire::{Wire, WireError};
use readpath_device::{
    ConfigError, Delays, DeviceConfig, FlashArray, Layout, LoadError, MediaMode, NoSpace, Probe, Recovery, UfsDevice,
};
use readpath_flash::DieSched;
use readpath_host::{BlockDone, BlockOp, BlockRequest, Driver, HostConfig, ParamError, ProbeError, ReadRequest};
use readpath_kit::Ns;
use readpath_proto::typed::{ReplyBody, Status};
use thiserror::Error;

/// Why a stack cannot be used.
#[derive(Debug, Error)]
pub enum StackError {
    /// The device cannot exist.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The host refuses the device.
    #[error("the host cannot use the device: {0}")]
    Probe(#[from] ProbeError),
    /// Host and device became idle before the probe ended.
    #[error("the probe did not end")]
    NoAnswer,
    /// A request or reply was not transferred.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// A request that was submitted at `at`, since when nothing has happened; [`Ns::NEVER`] stands for none. Not a
/// [`BlockRequest`], which would be copied as a whole: that is slow while its parts are still on their way to memory.
struct Held {
    at: Ns,
    cookie: u32,
    block: u32,
    blocks: u32,
    lun: u8,
    op: BlockOp,
}

impl Held {
    const NONE: Held = Held { at: Ns::NEVER, cookie: 0, block: 0, blocks: 0, lun: 0, op: BlockOp::Flush };
}

/// Which reads may leave the way from stage to stage, if nobody sees a difference. The holder calls [`Stack::release`]
/// before it looks at host or device, or goes on otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// None.
    Nothing,
    /// One that is submitted with nothing else under way: [`Stack::advance_to_reply`] knows how long it takes.
    One,
    /// All those of one block, as long as there is nothing else: they are rows of a table instead of commands. Where
    /// that never lasts long, it is tried less often.
    Several,
    /// The same whenever they can: for tests, as it costs more than it gains.
    Always,
}

/// When reads become rows of a table ([`Hold::Several`]), and how long they have been.
struct Rows {
    /// Submissions until it is tried again.
    pause: u32,
    /// The pause behind this one.
    next_pause: u32,
    /// Submissions since then; `None` if they are commands.
    lasts: Option<u32>,
}

/// For fewer submissions rows cost more than they gain. Sources let hooks watch after 256 commands or more.
const SHORT: u32 = 128;
const LONGEST_PAUSE: u32 = 1 << 12;

impl Rows {
    const NONE: Rows = Rows { pause: 0, next_pause: 1, lasts: None };

    /// They are commands again, or could not become rows.
    #[cold]
    fn ends(&mut self, hold: Hold) {
        let was_short = self.lasts.take().is_none_or(|lasted| lasted < SHORT);
        self.next_pause = if was_short { (2 * self.next_pause).min(LONGEST_PAUSE) } else { 1 };
        self.pause = if hold == Hold::Always { 0 } else { self.next_pause };
    }
}

/// Host driver, link and device.
pub struct Stack<S: DieSched, X: Payload, P: Probe, W: Wire> {
    /// The host driver.
    pub host: Driver,
    /// The device.
    pub device: UfsDevice<S, X::Mode, P>,
    /// The data.
    pub payload: X,
    wire: W,
    units: Units,
    hold: Hold,
    held: Held,
    rows: Rows,
    wire_error: Option<WireError>,
}

impl<S: DieSched, X: Payload, P: Probe, W: Wire> Stack<S, X, P, W> {
    /// A device, and a host that has not probed it yet.
    pub fn new(
        device: &DeviceConfig,
        host: HostConfig,
        delays: Delays,
        mut payload: X,
        probe: P,
        wire: W,
    ) -> Result<Self, StackError> {
        let given = given_host_memory(device, &host);
        let (mut device, units) = medium::new_device(device, delays, &mut payload, probe)?;
        device.give_host_memory(given);
        let mut host = Driver::new(host);
        for (lun, unit) in (0..).zip(&device.config().lus) {
            if let Some(zones) = &unit.zones {
                host.know_zones(lun, unit.blocks, zones.stride());
            }
        }
        Ok(Stack {
            host,
            device,
            payload,
            wire,
            units,
            hold: Hold::Nothing,
            held: Held::NONE,
            rows: Rows::NONE,
            wire_error: None,
        })
    }

    /// Maps blocks of a unit as if they had been written, in no time.
    pub fn precondition(&mut self, lun: u8, first: u32, blocks: u32, layout: Layout, seed: u64) -> Result<(), NoSpace> {
        self.precondition_all([(lun, first, blocks)], layout, seed)
    }

    /// [`Stack::precondition`] for many ranges: unit, first block, blocks.
    pub fn precondition_all(
        &mut self,
        ranges: impl IntoIterator<Item = (u8, u32, u32)>,
        layout: Layout,
        seed: u64,
    ) -> Result<(), NoSpace> {
        let payload = &mut self.payload;
        self.device.precondition(ranges, layout, seed, |lpn, ppn| payload.preset(lpn, ppn))
    }

    /// Lets the host find the device; returns when it has, and the time that took.
    pub fn start(&mut self, mut now: Ns) -> Result<Ns, StackError> {
        self.assert_released();
        self.host.start(now);
        self.exchange(now);
        while !self.host.is_ready() {
            if let Some(e) = self.host.failure() {
                return Err(e.clone().into());
            }
            now = self.next_deadline();
            if now == Ns::NEVER {
                return Err(self.wire_error.take().map_or(StackError::NoAnswer, StackError::Wire));
            }
            self.advance(now);
        }
        Ok(now)
    }

    /// Submits a block request at `now`; the stack must have been advanced until then.
    #[inline(always)]
    pub fn submit(&mut self, now: Ns, request: &BlockRequest) {
        debug_assert!(self.host.next_deadline() >= now, "a timer of the host was due before {now}");
        match self.hold {
            Hold::Nothing => {}
            Hold::One if self.held.at == Ns::NEVER => {
                let &BlockRequest { cookie, lun, op, block, blocks } = request;
                self.held = Held { at: now, cookie, block, blocks, lun, op };
                return;
            }
            Hold::One => self.release(),
            Hold::Several | Hold::Always => {
                if (self.rows.lasts.is_some() || self.may_begin_rows()) && self.send_together(now, request) {
                    return;
                }
                self.release();
            }
        }
        self.send(now, request);
    }

    /// Lets reads leave the way from stage to stage from now on, or no longer.
    pub fn hold(&mut self, hold: Hold) {
        self.release();
        (self.hold, self.rows) = (hold, Rows::NONE);
    }

    /// Lets all that is under way go on from stage to stage.
    #[inline(always)]
    pub fn release(&mut self) {
        if self.held.at != Ns::NEVER {
            self.send_held();
        }
        if self.rows.lasts.is_some() {
            self.end_rows();
        }
    }

    /// A holder releases what it holds before anything else happens.
    #[inline(always)]
    fn assert_released(&self) {
        debug_assert_eq!(self.held.at, Ns::NEVER, "a request is being held");
        debug_assert_eq!(self.rows.lasts, None, "reads are rows");
    }

    /// Whether the reads that are under way have become rows. It is not tried each time.
    #[inline(always)]
    fn may_begin_rows(&mut self) -> bool {
        if self.rows.pause > 0 {
            self.rows.pause -= 1;
            return false;
        }
        self.begin_rows()
    }

    #[inline(never)]
    fn begin_rows(&mut self) -> bool {
        if self.wire.is_open() && self.host.begin_rows() {
            if self.device.begin_rows() {
                debug_assert_eq!(self.host.rows_under_way(), self.device.rows_under_way(), "tags of both sides");
                self.rows.lasts = Some(0);
                return true;
            }
            self.host.end_rows();
        }
        self.rows.ends(self.hold);
        false
    }

    /// The rows become commands, which go on from stage to stage.
    #[inline(never)]
    fn end_rows(&mut self) {
        self.device.end_rows();
        self.host.end_rows();
        self.rows.ends(self.hold);
    }

    /// Sends a request as a row; false if it is of another kind.
    #[inline(never)]
    fn send_together(&mut self, now: Ns, request: &BlockRequest) -> bool {
        let Some((tag, entry)) = self.host.foresee_together(request) else { return false };
        if !self.device.submit_together(now, request.lun, tag, request.block, entry) {
            return false;
        }
        self.host.sent_together(request, entry.is_some());
        self.rows.lasts = self.rows.lasts.map(|lasts| lasts.saturating_add(1));
        true
    }

    /// [`Stack::advance_to_reply`] for rows; `None` if they have become commands, at `limit` at the latest.
    #[inline(never)]
    fn advance_together(&mut self, limit: Ns) -> Option<Ns> {
        // Without a timer and a limit this is a time that nothing reaches: then they end as well.
        let before_timer = self.host.next_deadline().saturating_sub(Ns(1));
        let reply = self.device.advance_together(limit.min(before_timer));
        if let Some(now) = reply {
            let mut has_ended = false;
            while let Some(tag) = self.device.take_together(now) {
                self.host.ended_together(tag);
                has_ended = true;
            }
            if has_ended || now == limit {
                return reply;
            }
        }
        self.end_rows();
        None
    }

    #[inline(never)]
    fn send_held(&mut self) {
        let Held { at, cookie, block, blocks, lun, op } = std::mem::replace(&mut self.held, Held::NONE);
        self.send(at, &BlockRequest { cookie, lun, op, block, blocks });
    }

    #[inline(always)]
    fn send(&mut self, now: Ns, request: &BlockRequest) {
        self.host.submit(request);
        self.exchange_reads(now);
        if self.host.has_requests() {
            self.exchange(now);
        }
    }

    /// Tells the payload what a rule makes of a request, as [`Payload::rule`].
    pub fn rule(&mut self, request: &BlockRequest, ruled: Ruled) {
        self.payload.rule(request, self.units.page(request.lun, request.block), ruled);
    }

    /// Time of the next event. Timers of the host, which in host control mode of HPB recur for ever, do not count
    /// while the device is idle: see [`Stack::next_timer`].
    #[inline]
    pub fn next_deadline(&self) -> Ns {
        self.assert_released();
        match self.device.next_deadline() {
            Ns::NEVER => self.host.requeue_deadline(),
            device => device.min(self.host.next_deadline()),
        }
    }

    /// When the next timer of the host is due. [`Stack::advance`] beyond it handles it.
    #[inline]
    pub fn next_timer(&self) -> Ns {
        self.host.next_deadline()
    }

    /// Runs until a reply reaches the host or `limit` comes; returns that time. Without a limit, it ends when the
    /// device is idle.
    #[inline(always)]
    pub fn advance_to_reply(&mut self, limit: Ns) -> Ns {
        if self.held.at != Ns::NEVER {
            if let Some(reply) = self.read_alone(limit) {
                return reply;
            }
            self.send_held();
        }
        if self.rows.lasts.is_some()
            && let Some(now) = self.advance_together(limit)
        {
            return now;
        }
        if self.host.next_deadline() != Ns::NEVER {
            return self.advance_to_reply_or_timer(limit);
        }
        let now = self.device.advance_to_reply(limit);
        if now != Ns::NEVER {
            self.take_outputs(now);
        }
        now
    }

    /// Serves the request that is being held alone, if nothing else can happen until it ends, at the latest at `limit`;
    /// returns that time.
    #[inline(always)]
    fn read_alone(&mut self, limit: Ns) -> Option<Ns> {
        if !self.wire.is_open() {
            return None;
        }
        let limit = limit.min(self.host.next_deadline().saturating_sub(Ns(1)));
        let Held { at, cookie, block, blocks, lun, op } = self.held;
        let entry = self.host.foresee(lun, op, block, blocks)?;
        let reply = self.device.read_alone(at, limit, lun, block, entry)?;
        self.host.was_alone(lun, cookie);
        self.held.at = Ns::NEVER;
        Some(reply)
    }

    /// [`Stack::advance_to_reply`] with timers on the way.
    #[inline(never)]
    fn advance_to_reply_or_timer(&mut self, limit: Ns) -> Ns {
        loop {
            if limit == Ns::NEVER && self.next_deadline() == Ns::NEVER {
                return Ns::NEVER;
            }
            let timer = self.host.next_deadline();
            let now = self.device.advance_to_reply(limit.min(timer));
            self.take_outputs(now);
            if now < timer {
                return now;
            }
            self.host_timer(now);
            if now >= limit || self.host.has_done() {
                return now;
            }
        }
    }

    /// Handles what is due until `now`, timers of the host at their times.
    #[inline]
    pub fn advance(&mut self, now: Ns) {
        self.assert_released();
        while self.host.next_deadline() <= now {
            let timer = self.host.next_deadline();
            if timer == Ns::NEVER {
                break;
            }
            self.device.advance(timer);
            self.take_outputs(timer);
            self.host_timer(timer);
        }
        self.device.advance(now);
        self.take_outputs(now);
    }

    /// Handles a timer of the host that is due.
    #[inline(never)]
    fn host_timer(&mut self, now: Ns) {
        self.host.advance(now);
        self.exchange(now);
    }

    /// Before the host sleeps, as far as HPB is concerned: see [`Driver::suspend`]. It withdraws host memory from the
    /// device, as Linux does (`nvme_suspend`).
    pub fn suspend(&mut self) {
        self.assert_released();
        self.host.suspend();
        self.device.take_host_memory();
    }

    /// The host is awake again, and returns the device's host memory unchanged (`nvme_resume`).
    pub fn resume(&mut self, now: Ns) {
        self.assert_released();
        self.device.return_host_memory();
        self.host.resume(now);
        self.exchange(now);
    }

    /// Limits the memory of a unit's HPB on the host.
    pub fn limit_memory(&mut self, now: Ns, lun: u8, bytes: u64) -> Result<(), ParamError> {
        self.assert_released();
        let limited = self.host.limit_memory(now, lun, bytes);
        self.exchange(now);
        limited
    }

    /// Moves data as the device reports.
    #[inline(always)]
    fn move_data(&mut self) {
        medium::move_data(&mut self.device, &mut self.payload);
    }

    #[inline(always)]
    fn take_outputs(&mut self, now: Ns) {
        self.move_data();
        while self.device.take_reply(now) {
            let reply = self.device.reply();
            let (reply, data) = match self.wire.reply(reply, self.device.data_in(reply.tag)) {
                Ok(crossed) => crossed,
                Err(e) => {
                    self.wire_error = Some(e);
                    continue;
                }
            };
            if X::Mode::ACTIVE
                && let Some(part) = self.host.carried(reply.tag)
            {
                let good = matches!(&reply.body, ReplyBody::Response(r) if r.status == Status::Good);
                let lpn = self.units.page(part.lun, part.block);
                self.payload.end(reply.tag, &part, lpn, good);
            }
            self.host.on_reply(now, reply, data);
        }
        if self.host.has_requests() {
            self.exchange(now);
        }
    }

    /// The next completed block request.
    #[inline]
    #[must_use]
    pub fn poll_done(&mut self) -> Option<BlockDone> {
        self.host.poll_done()
    }

    /// Resets controller and device; commands in flight are sent again.
    pub fn reset(&mut self, now: Ns) {
        self.assert_released();
        // Movements before the reset count; their tags will be reused.
        self.move_data();
        self.device.hardware_reset(now);
        self.payload.reset();
        self.wire.reset();
        self.host.reset(now);
        self.exchange(now);
    }

    /// Cuts the power at `now` and restores it at `on`: the device recovers from its flash, and the host, which was
    /// reset as well, has to [`Stack::start`] again when the device is ready.
    pub fn power_cycle(&mut self, now: Ns, on: Ns) -> Recovery {
        debug_assert!(now <= on);
        self.power_cut(now);
        self.power_on(on)
    }

    /// Cuts the power of the device alone at `now` and restores it at `on`. The host runs on: it sends commands in
    /// flight again, and keeps its maps until the device reports their loss.
    pub fn device_power_cycle(&mut self, now: Ns, on: Ns) -> Recovery {
        debug_assert!(now <= on);
        self.device_power_cut(now);
        let recovery = self.device.recover(on);
        self.host.reset(on);
        self.exchange(on);
        recovery
    }

    fn device_power_cut(&mut self, now: Ns) {
        self.assert_released();
        self.device.power_cut(now);
        self.move_data();
        self.payload.power_cut();
        self.wire.reset();
    }

    /// Cuts the power at `now`.
    pub fn power_cut(&mut self, now: Ns) {
        self.device_power_cut(now);
        self.host.power_cut();
    }

    /// Restores the power at `on`.
    pub fn power_on(&mut self, on: Ns) -> Recovery {
        self.device.recover(on)
    }

    /// Switches a new device on at `on` with the contents of its payload's array; it reports from now on everything
    /// that it programs. The host has to [`Stack::start`] when the device is ready. `looked` is called with each
    /// superblock that the device looks at.
    ///
    /// # Errors
    /// As [`UfsDevice::power_on_with`].
    pub fn power_on_with<A: FlashArray>(
        &mut self,
        on: Ns,
        array: impl FnOnce(&mut X) -> &mut A,
        looked: &mut dyn FnMut(u32),
    ) -> Result<Recovery, LoadError> {
        medium::power_on_with(&mut self.device, &mut self.payload, on, array, looked)
    }

    /// An error of the wire, if there was one: the results of the run are then invalid.
    pub fn wire_error(&self) -> Option<&WireError> {
        self.wire_error.as_ref()
    }

    /// Prefetches the memory that a read of `block` touches.
    #[inline(always)]
    pub fn prefetch(&self, lun: u8, block: u32) {
        if !self.host.prefetch(lun, block) {
            self.device.prefetch(lun, block);
        }
    }

    /// Prefetches the memory that a write or a trim of `block` touches: the device's map too, even if the host has an
    /// entry.
    #[inline]
    pub fn prefetch_write(&self, lun: u8, block: u32) {
        self.host.prefetch(lun, block);
        self.device.prefetch(lun, block);
    }

    /// Passes reads to the device, up to the first request of another kind.
    #[inline(always)]
    fn exchange_reads(&mut self, now: Ns) {
        if !self.wire.is_open() {
            return;
        }
        while let Some(ReadRequest { lun, tag, block, blocks, entry }) = self.host.poll_read(now) {
            begin_payload(&self.host, &mut self.payload, &self.units, tag);
            self.device.submit_read(now, lun, tag, block, blocks, entry);
        }
    }

    /// Passes all requests to the device.
    #[inline(never)]
    fn exchange(&mut self, now: Ns) {
        self.exchange_reads(now);
        while let Some(request) = self.host.poll_request(now) {
            let (request, data_out) = match self.wire.request(&request, self.host.data_out(request.tag)) {
                Ok(crossed) => crossed,
                Err(e) => {
                    self.wire_error = Some(e);
                    continue;
                }
            };
            begin_payload(&self.host, &mut self.payload, &self.units, request.tag);
            self.device.submit(now, request, data_out);
            self.exchange_reads(now);
        }
    }
}

/// Notes that the command `tag` is being sent.
#[inline(always)]
fn begin_payload<X: Payload>(host: &Driver, payload: &mut X, units: &Units, tag: u8) {
    if X::Mode::ACTIVE
        && let Some(part) = host.carried(tag)
    {
        payload.begin(tag, &part, units.page(part.lun, part.block));
    }
}
