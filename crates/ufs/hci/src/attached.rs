// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controller, device and data in one, for a host that writes registers. The path of a command:
//!
//! 1. The host rings the doorbell. The controller reads the command, and the data of a write.
//! 2. The device serves it in its own time, and reports the movements of data.
//! 3. Its reply goes back to the controller, which writes data and response to the host's memory and raises the
//!    interrupt.
//!
//! The owner passes the time in. No address or count from the host is trusted.

use crate::controller::{Controller, Effect};
use crate::memory::GuestMem;
use crate::misbehaviour::{Misbehaving, Misbehaviour, Wrong};
use crate::register::{self as reg, interrupt};
use readpath_device::{
    ConfigError, Delays, DeviceConfig, FlashArray, LoadError, Probe, Recovery, UfsDevice, outlives_power,
};
use readpath_flash::DieSched;
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_proto::cdb::formats_without_list;
use readpath_proto::query::result;
use readpath_proto::rpmb::SecurityProtocol;
use readpath_proto::typed::{
    Cdb, Command, FLAG_FUA, Form, QueryResponse, Reply, ReplyBody, Request, RequestBody, Response, Sense, Status,
    ZoneAction,
};
use readpath_proto::uic;
use readpath_stack::{Payload, Units, medium};

/// The most bytes of one command.
const MOST_BYTES: u64 = 32 << 20;
/// The tag of the controller's own requests: those of [`Attached::flush`].
pub const OWN_TAG: u8 = 63;

/// See the module.
pub struct Attached<S: DieSched, X: Payload, P: Probe, M: GuestMem> {
    /// The device.
    pub device: UfsDevice<S, X::Mode, P>,
    /// Its data.
    pub data: X,
    /// The host's memory.
    pub memory: M,
    controller: Controller,
    units: Units,
    /// Commands whose data is kept until they end.
    carried: [Option<BlockRequest>; 64],
    spare: Vec<Vec<u8>>,
    /// Reads and writes without data, a bit each: data that their tags returned before is not theirs.
    without_data: u64,
    /// Commands, a bit each, whose responses depend on stored metadata: those of RPMB, and of non-volatile attributes
    /// and flags.
    depends_on_kept: u64,
    /// The reply to the controller's own request.
    own: Option<ReplyBody>,
    misbehaving: Option<Misbehaving>,
    /// When the controller got the last reply, if the host has not read the doorbell since.
    unseen: Option<Ns>,
}

impl<S: DieSched, X: Payload, P: Probe, M: GuestMem> Attached<S, X, P, M> {
    /// A device fresh from the factory behind a controller that has just been switched on.
    ///
    /// # Errors
    /// The device cannot exist.
    pub fn new(config: &DeviceConfig, slots: u8, mut data: X, probe: P, memory: M) -> Result<Self, ConfigError> {
        // The host's software runs outside, so it adds no delay here.
        let (device, units) = medium::new_device(config, Delays::default(), &mut data, probe)?;
        Ok(Attached {
            device,
            data,
            memory,
            controller: Controller::new(slots, config.ufs_version),
            units,
            carried: [None; 64],
            spare: Vec::new(),
            without_data: 0,
            depends_on_kept: 0,
            own: None,
            misbehaving: None,
            unseen: None,
        })
    }

    /// Switches the device on at `on` with the contents of the array of its data. `looked` is called with each
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
        medium::power_on_with(&mut self.device, &mut self.data, on, array, looked)
    }

    /// From now on device and controller misbehave in this way.
    pub fn misbehave(&mut self, how: Misbehaviour) {
        self.misbehaving = Some(Misbehaving::new(how));
    }

    /// Number of misbehaviours so far.
    pub fn misbehaved(&self) -> u64 {
        self.misbehaving.as_ref().map_or(0, |misbehaving| misbehaving.times)
    }

    /// Whether the interrupt is raised.
    #[inline]
    pub fn line(&self) -> bool {
        self.controller.line()
    }

    /// The host reads a register.
    #[inline]
    pub fn read(&mut self, offset: u32) -> u32 {
        if P::ACTIVE
            && offset == reg::UTRLDBR
            && let Some(now) = self.unseen.take()
        {
            self.device.probe_mut().heard(now);
        }
        self.controller.read(offset)
    }

    /// The host writes a register at `now`, not before any earlier event.
    pub fn write(&mut self, now: Ns, offset: u32, value: u32) {
        self.advance(now);
        let was_raised = self.controller.is_raised(interrupt::HIBERNATE_ENTER);
        let effect = self.controller.write(offset, value);
        if let Some(misbehaving) = &mut self.misbehaving
            && (offset, value as u8) == (reg::UICCMD, uic::opcode::HIBERNATE_ENTER)
            && (!was_raised && self.controller.is_raised(interrupt::HIBERNATE_ENTER))
            && misbehaving.loses_hibernation()
        {
            self.controller.withdraw(interrupt::UIC_COMMAND | interrupt::HIBERNATE_ENTER);
        }
        match effect {
            Effect::None => {}
            Effect::Started { transfers, tasks } => {
                each(transfers, |slot| self.begin(now, slot));
                each(tasks, |slot| {
                    if let Some(request) = self.controller.fetch_task(slot, &mut self.memory) {
                        self.device.submit(now, &request, &[]);
                    }
                });
            }
            Effect::Cleared(slots) => each(slots, |slot| {
                self.move_data();
                self.device.drop_command(now, slot);
                self.forget(slot);
            }),
            Effect::ClearedTasks(slots) => {
                each(slots, |slot| self.device.drop_command(now, Controller::task_tag(slot)))
            }
            Effect::Reset => self.reset_device(now),
        }
    }

    /// The host has disconnected, or its machine is reset: controller and device are reset, and commands in flight
    /// are dropped.
    pub fn reset(&mut self, now: Ns) {
        self.advance(now);
        self.controller.reset();
        self.reset_device(now);
    }

    fn reset_device(&mut self, now: Ns) {
        if self.controller.is_gone() {
            return;
        }
        self.move_data();
        self.device.hardware_reset(now);
        self.device.free_link(now);
        self.data.reset();
        self.without_data = 0;
        (0..32).for_each(|slot| self.forget(slot));
        self.spare.clear();
    }

    /// Time of the next event.
    #[inline]
    pub fn next_deadline(&self) -> Ns {
        self.device.next_deadline()
    }

    /// Handles what is due until `now`.
    pub fn advance(&mut self, now: Ns) {
        self.device.advance(now);
        self.move_data();
        while self.device.take_reply(now) {
            let mut reply = *self.device.reply();
            if let Some(misbehaving) = &mut self.misbehaving {
                misbehaving.reply(now, &mut reply);
            }
            self.answer(&reply);
            self.unseen = Some(now);
        }
    }

    /// Whether a host uses the device.
    pub fn is_in_use(&self) -> bool {
        self.controller.is_in_use()
    }

    /// Takes the device away from its host, which is told of it and finds none from now on. All acknowledged data
    /// becomes durable; returns when it is. Commands in flight are dropped.
    ///
    /// # Errors
    /// As [`Attached::flush`].
    pub fn take_away(&mut self, now: Ns) -> Result<Ns, Sense> {
        self.advance(now);
        self.reset_device(now);
        self.controller.take_away();
        self.flush_units(now)
    }

    /// Makes all acknowledged data durable; returns when it is. Commands in flight are dropped.
    ///
    /// # Errors
    /// The device fails, or its data could not be stored.
    pub fn flush(&mut self, now: Ns) -> Result<Ns, Sense> {
        self.reset(now);
        self.flush_units(now)
    }

    fn flush_units(&mut self, mut now: Ns) -> Result<Ns, Sense> {
        for lun in 0..self.units.count() {
            // The first command after a reset ends with UNIT ATTENTION.
            for is_last in [false, true] {
                let op = BlockOp::Flush;
                self.carry(BlockRequest { cookie: OWN_TAG.into(), lun, op, block: 0, blocks: 0 }, Vec::new());
                let cdb = Cdb::SynchronizeCache { form: Form::Ten, lba: 0, blocks: 0, immed: false };
                let body = RequestBody::Command(Command { expected_bytes: 0, cdb });
                self.device.submit(now, &Request { lun, tag: OWN_TAG, body }, &[]);
                self.own = None;
                while self.own.is_none() && self.device.next_deadline() != Ns::NEVER {
                    now = self.device.next_deadline();
                    self.advance(now);
                }
                match self.own {
                    Some(ReplyBody::Response(Response { status: Status::Good, .. })) => {}
                    Some(ReplyBody::Response(Response { sense: Some(sense), .. })) if is_last => return Err(sense),
                    _ if is_last => return Err(Sense::NOT_READY),
                    _ => {}
                }
            }
        }
        Ok(now)
    }

    /// Starts a command.
    fn begin(&mut self, now: Ns, slot: u8) {
        let Some(request) = self.controller.fetch(slot, &mut self.memory) else { return };
        let Some((block, expected_bytes)) = block_request(&request) else { return self.submit(now, &request) };
        let moves = matches!(block.op, BlockOp::Read | BlockOp::Write | BlockOp::WriteFua);
        let writes = moves && block.op != BlockOp::Read;
        let blocks = match self.units.get(block.lun) {
            Some((_, blocks)) => blocks,
            None if !moves => 0,
            None => {
                self.without_data |= 1 << slot;
                return self.submit(now, &request);
            }
        };
        let is_within = u64::from(block.block) + u64::from(block.blocks) <= u64::from(blocks);
        if moves && (block.blocks == 0 || !is_within) {
            // There is no data, or the device will refuse the command.
            self.without_data |= 1 << slot;
            return self.submit(now, &request);
        }
        let bytes = if moves { u64::from(block.blocks) * u64::from(BLOCK_BYTES) } else { 0 };
        if bytes > MOST_BYTES || writes && u64::from(expected_bytes) != bytes {
            let body = ReplyBody::Response(Response::check(Sense::INVALID_FIELD, expected_bytes));
            return self.controller.complete(&Reply { lun: request.lun, tag: slot, body }, &[], &mut self.memory);
        }
        if moves && self.goes_wrong(now, &request) {
            return;
        }
        let mut data = self.spare.pop().unwrap_or_default();
        data.resize(bytes as usize, 0);
        if writes && !self.controller.gather(slot, &mut self.memory, &mut data) {
            return self.spare.push(data);
        }
        self.carry(block, data);
        self.submit(now, &request);
    }

    /// Whether a read or write is never answered, because the device misbehaves.
    fn goes_wrong(&mut self, now: Ns, request: &Request) -> bool {
        let Some(misbehaving) = &mut self.misbehaving else { return false };
        match misbehaving.command(request.tag) {
            Wrong::Nothing | Wrong::Silent => return false,
            Wrong::Uic(layer, code) => {
                self.controller.uic_failed(layer, code);
                return false;
            }
            Wrong::Hangs => {}
            Wrong::Fatal(bits) => self.controller.failed(bits),
        }
        self.device.swallow(now, request);
        true
    }

    fn submit(&mut self, now: Ns, request: &Request) {
        let depends = match &request.body {
            RequestBody::Command(command) => SecurityProtocol::parse(&command.cdb).is_some(),
            RequestBody::Query(query) => outlives_power(query),
            _ => false,
        };
        let bit = 1 << request.tag;
        self.depends_on_kept = if depends { self.depends_on_kept | bit } else { self.depends_on_kept & !bit };
        self.device.submit(now, request, self.controller.parameters());
    }

    /// The first logical page of a command's data. One without data may be for a unit that does not exist.
    fn page_of(&self, block: &BlockRequest) -> u32 {
        self.units.get(block.lun).map_or(0, |_| self.units.page(block.lun, block.block))
    }

    /// Hands the data of a command to the payload, to be moved when the device says so.
    fn carry(&mut self, block: BlockRequest, data: Vec<u8>) {
        let tag = block.cookie as u8;
        self.data.bring(block.cookie, block.block, data);
        self.data.begin(tag, &block, self.page_of(&block));
        self.carried[usize::from(tag)] = Some(block);
    }

    /// Handles a reply of the device.
    fn answer(&mut self, reply: &Reply) {
        let tag = reply.tag;
        if let Some(slot) = Controller::task_slot(tag) {
            return self.controller.complete_task(slot, reply, &mut self.memory);
        }
        let Some(block) = self.carried[usize::from(tag)].take() else {
            if self.depends_on_kept >> tag & 1 == 1
                && let Some(sense) = self.data.not_kept()
                && let Some(body) = not_kept(reply, sense)
            {
                return self.controller.complete(&Reply { body, ..*reply }, &[], &mut self.memory);
            }
            let has_data = self.without_data >> tag & 1 == 0;
            self.without_data &= !(1 << tag);
            let data = if has_data { self.device.data_in(tag) } else { &[] };
            return self.controller.complete(reply, data, &mut self.memory);
        };
        self.data.end(tag, &block, self.page_of(&block), is_good(reply));
        let (data, fault) = self.data.take(tag.into());
        let fault = fault.map(|fault| fault.sense());
        if tag == OWN_TAG {
            self.own = Some(fault.map_or(reply.body, |sense| ReplyBody::Response(Response::check(sense, 0))));
            return;
        }
        let mut reply = *reply;
        if let (ReplyBody::Response(response), Some(sense)) = (&mut reply.body, fault)
            && response.status == Status::Good
        {
            *response = Response { event_alert: response.event_alert, ..Response::check(sense, 0) };
        }
        let moved = if block.op == BlockOp::Read && is_good(&reply) { &data[..] } else { &[] };
        let was_raised = self.controller.is_raised(interrupt::TRANSFER);
        self.controller.complete(&reply, moved, &mut self.memory);
        if self.misbehaving.as_mut().is_some_and(|misbehaving| misbehaving.is_silent(tag)) && !was_raised {
            self.controller.withdraw(interrupt::TRANSFER);
        }
        self.spare.push(data);
    }

    /// Drops the data of a command without response.
    fn forget(&mut self, slot: u8) {
        if let Some(misbehaving) = &mut self.misbehaving {
            misbehaving.dropped(1 << slot);
        }
        self.without_data &= !(1 << slot);
        if self.carried[usize::from(slot)].take().is_some() {
            self.spare.push(self.data.take(slot.into()).0);
        }
    }

    fn move_data(&mut self) {
        medium::move_data(&mut self.device, &mut self.data);
    }
}

fn each(mut slots: u32, mut what: impl FnMut(u8)) {
    while slots != 0 {
        what(slots.trailing_zeros() as u8);
        slots &= slots - 1;
    }
}

fn is_good(reply: &Reply) -> bool {
    matches!(reply.body, ReplyBody::Response(Response { status: Status::Good, .. }))
}

/// The response that replaces one about metadata that could not be stored.
fn not_kept(reply: &Reply, sense: Sense) -> Option<ReplyBody> {
    match reply.body {
        ReplyBody::Query(answer) => {
            Some(ReplyBody::Query(QueryResponse { result: result::GENERAL_FAILURE, value: 0, ..answer }))
        }
        _ if is_good(reply) => Some(ReplyBody::Response(Response::check(sense, 0))),
        _ => None,
    }
}

/// The block request of a command, if it concerns the payload; and the bytes that its host expects to move.
fn block_request(request: &Request) -> Option<(BlockRequest, u32)> {
    let RequestBody::Command(Command { cdb, expected_bytes }) = request.body else { return None };
    let (op, block, blocks) = match cdb {
        Cdb::Read { lba, blocks, .. } => (BlockOp::Read, lba, blocks),
        Cdb::HpbRead { lba, blocks, .. } => (BlockOp::Read, lba.into(), blocks.into()),
        Cdb::HintedRead { lba, blocks, .. } => (BlockOp::Read, lba.into(), blocks),
        Cdb::Write { lba, blocks, flags, .. } if flags & FLAG_FUA != 0 => (BlockOp::WriteFua, lba, blocks),
        Cdb::Write { lba, blocks, .. } => (BlockOp::Write, lba, blocks),
        Cdb::SynchronizeCache { immed: false, .. } => (BlockOp::Flush, 0, 0),
        // A device flushes before it sleeps.
        Cdb::StartStopUnit { immed: false, control } if control >> 4 > 1 => (BlockOp::Flush, 0, 0),
        Cdb::Unmap { .. } | Cdb::ManageZones { action: ZoneAction::Reset, .. } => (BlockOp::Discard, 0, 0),
        Cdb::Other(bytes) if formats_without_list(&bytes) => (BlockOp::Discard, 0, 0),
        _ => return None,
    };
    // The device refuses an address that no unit has.
    let block = u32::try_from(block).ok()?;
    Some((BlockRequest { cookie: request.tag.into(), lun: request.lun, op, block, blocks }, expected_bytes))
}
