// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device's front: commands by task tag from arrival to reply, the link in both directions, the SCSI target and
//! the query manager's state. It knows neither the map, nor flash, nor HPB, nor the meaning of commands.

mod query_state;
mod slot;
mod target;

pub(crate) use query_state::attribute_access;
pub use query_state::{SETTINGS_BYTES, outlives_power};
pub(crate) use slot::{HpbRead, Kind, Slot, TAGS};

use crate::config::{DeviceConfig, LinkTiming};
use crate::ids::{Lpn, TagRef};
use readpath_kit::{FrontQueue, Ns};
use readpath_proto::typed::{Reply, ReplyBody, Response};
use slot::Slots;
use std::collections::VecDeque;
pub(crate) use target::DATA_BUFFER_BYTES;
use target::Target;

/// Constant delays between the host's software and the link; a delayed request does not block others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delays {
    /// From the host's submission to the link.
    pub to_link: Ns,
    /// From the link to the host's completion (interrupt, wake-up).
    pub from_link: Ns,
}

/// The serial number of a device to which nobody gives another.
const FIRST_SERIAL: u64 = 1;

/// A logical unit: its first logical page, its blocks, and those of them that can hold data.
#[derive(Clone, Copy)]
struct Unit {
    base: Lpn,
    blocks: u32,
    data_blocks: u32,
    is_zoned: bool,
}

pub(crate) struct Front {
    slots: Slots,
    units: Vec<Unit>,
    link: LinkTiming,
    delays: Delays,
    down_free: Ns,
    up_free: Ns,
    /// Commands on the link, and replies on their way to the host's software.
    arrivals: FrontQueue<(Ns, TagRef)>,
    replies: FrontQueue<(Ns, TagRef)>,
    /// Requests that wait for free operations.
    starved: VecDeque<TagRef>,
    target: Target,
    reply: Reply,
    /// `reply` is GOOD without further information.
    reply_is_plain: bool,
}

impl Front {
    pub(crate) fn new(config: &DeviceConfig, delays: Delays) -> Self {
        let mut base = Lpn(0);
        let units = config.lus.iter().map(|lu| {
            let (blocks, data_blocks) = (lu.blocks, lu.data_blocks());
            let unit = Unit { base, blocks, data_blocks, is_zoned: lu.zones.is_some() };
            base = base + data_blocks;
            unit
        });
        Front {
            slots: Box::new(std::array::from_fn(|_| Slot::new())),
            units: units.collect(),
            link: config.link,
            delays,
            down_free: Ns::ZERO,
            up_free: Ns::ZERO,
            arrivals: FrontQueue::with_capacity(TAGS),
            replies: FrontQueue::with_capacity(TAGS),
            starved: VecDeque::new(),
            target: Target::new(config, FIRST_SERIAL),
            reply: Reply { lun: 0, tag: 0, body: ReplyBody::Response(Response::GOOD) },
            reply_is_plain: true,
        }
    }

    #[inline(always)]
    pub(crate) fn slot(&self, tag: u8) -> &Slot {
        &self.slots[usize::from(tag)]
    }

    #[inline(always)]
    pub(crate) fn slot_mut(&mut self, tag: u8) -> &mut Slot {
        &mut self.slots[usize::from(tag)]
    }

    /// Whether a host may use a tag now: it is in range and no command uses it.
    #[inline(always)]
    pub(crate) fn is_free(&self, tag: u8) -> bool {
        self.slots.get(usize::from(tag)).is_some_and(|slot| !slot.active)
    }

    /// The present use of `tag`.
    #[inline(always)]
    pub(crate) fn tag_ref(&self, tag: u8) -> TagRef {
        TagRef { tag, life: self.slot(tag).life }
    }

    /// Whether the command is still in progress.
    #[inline(always)]
    pub(crate) fn is_alive(&self, tag: TagRef) -> bool {
        let slot = &self.slots[usize::from(tag.tag) % TAGS];
        slot.active && slot.life == tag.life
    }

    /// Whether any command is in progress.
    pub(crate) fn is_busy(&self) -> bool {
        self.slots.iter().any(|slot| slot.active)
    }

    /// Logical units.
    #[inline(always)]
    pub(crate) fn units(&self) -> usize {
        self.units.len()
    }

    /// The first logical page of a unit.
    #[inline(always)]
    pub(crate) fn base(&self, lun: u8) -> Lpn {
        self.units[usize::from(lun)].base
    }

    /// The first logical page of each unit.
    pub(crate) fn bases(&self) -> impl Iterator<Item = Lpn> {
        self.units.iter().map(|unit| unit.base)
    }

    /// Blocks of a unit.
    #[inline(always)]
    pub(crate) fn blocks(&self, lun: u8) -> u32 {
        self.units[usize::from(lun)].blocks
    }

    /// Whether a unit that exists has zones.
    #[inline(always)]
    pub(crate) fn is_zoned(&self, lun: u8) -> bool {
        self.units[usize::from(lun)].is_zoned
    }

    /// The first logical page of blocks of a unit that exists; `None` if they go beyond its end. Blocks are counted
    /// without those of gaps.
    #[inline(always)]
    pub(crate) fn lpn_of(&self, lun: u8, lba: u64, blocks: u32) -> Option<Lpn> {
        let unit = self.units[usize::from(lun)];
        (lba.saturating_add(u64::from(blocks)) <= u64::from(unit.data_blocks)).then(|| unit.base + lba as u32)
    }

    /// Whether a unit has all of these blocks.
    #[inline(always)]
    pub(crate) fn has_blocks(&self, lun: u8, lba: u64, blocks: u32) -> bool {
        let unit = self.units.get(usize::from(lun));
        unit.is_some_and(|unit| lba.saturating_add(u64::from(blocks)) <= u64::from(unit.blocks))
    }

    #[inline(always)]
    pub(crate) fn link(&self) -> &LinkTiming {
        &self.link
    }

    /// When a request sent at `now` arrives at the link.
    #[inline(always)]
    pub(crate) fn at_link(&self, now: Ns) -> Ns {
        now + self.delays.to_link
    }

    /// When the link to the device is free for a transfer that arrives at `at`.
    #[inline(always)]
    pub(crate) fn down_from(&self, at: Ns) -> Ns {
        at.max(self.down_free)
    }

    #[inline(always)]
    pub(crate) fn set_down_free(&mut self, end: Ns) {
        self.down_free = end;
    }

    /// Reserves the link to the host from `at` on for `span`; returns start and end.
    #[inline(always)]
    pub(crate) fn reserve_up(&mut self, at: Ns, span: Ns) -> (Ns, Ns) {
        let start = at.max(self.up_free);
        self.up_free = start + span;
        (start, self.up_free)
    }

    /// When the link to the host is free for a transfer that is ready at `at`.
    #[inline(always)]
    pub(crate) fn up_from(&self, at: Ns) -> Ns {
        at.max(self.up_free)
    }

    /// When a reply that leaves the link at `end` reaches the host's software.
    #[inline(always)]
    pub(crate) fn at_host(&self, end: Ns) -> Ns {
        end + self.delays.from_link
    }

    /// A command will arrive, after those queued before it.
    #[inline(always)]
    pub(crate) fn will_arrive(&mut self, at: Ns, tag: TagRef) {
        self.arrivals.push_back((at, tag));
    }

    /// When the next command arrives.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Ns {
        self.arrivals.front().map_or(Ns::NEVER, |arrival| arrival.0)
    }

    /// Takes the command that arrives next.
    pub(crate) fn take_arrival(&mut self) -> Option<TagRef> {
        self.arrivals.pop_front().map(|(_, tag)| tag)
    }

    #[inline(always)]
    pub(crate) fn will_reply(&mut self, end: Ns, tag: u8) {
        self.replies.push_back((self.at_host(end), self.tag_ref(tag)));
    }

    /// A reply will reach the host's software, after those queued before it.
    pub(crate) fn will_be_told(&mut self, at: Ns, tag: TagRef) {
        self.replies.push_back((at, tag));
    }

    /// Commands on the link with their arrivals, in order.
    pub(crate) fn arrivals(&self) -> impl Iterator<Item = &(Ns, TagRef)> {
        self.arrivals.iter()
    }

    /// Replies on their way with the times when they reach the host's software, in order.
    pub(crate) fn replies(&self) -> impl Iterator<Item = &(Ns, TagRef)> {
        self.replies.iter()
    }

    /// Takes all of [`Front::arrivals`].
    pub(crate) fn take_arrivals(&mut self) -> FrontQueue<(Ns, TagRef)> {
        std::mem::replace(&mut self.arrivals, FrontQueue::with_capacity(TAGS))
    }

    /// Takes all of [`Front::replies`].
    pub(crate) fn take_replies(&mut self) -> FrontQueue<(Ns, TagRef)> {
        std::mem::replace(&mut self.replies, FrontQueue::with_capacity(TAGS))
    }

    /// When the next reply reaches the host.
    #[inline(always)]
    pub(crate) fn next_reply(&self) -> Ns {
        self.replies.front().map_or(Ns::NEVER, |reply| reply.0)
    }

    /// Takes the next reply that has reached the host by `now`, of a command that was not dropped; returns its time
    /// and tag.
    #[inline(always)]
    pub(crate) fn take_reply(&mut self, now: Ns) -> Option<(Ns, u8)> {
        loop {
            let &(at, tag) = self.replies.front()?;
            if at > now {
                return None;
            }
            self.replies.pop_front();
            if self.is_alive(tag) {
                return Some((at, tag.tag));
            }
        }
    }

    /// Ends the command of `tag`, whose unit and tag [`Front::reply`] takes over. `is_plain` says that this reply is
    /// GOOD without further information; returns whether the reply before was.
    #[inline(always)]
    pub(crate) fn end(&mut self, tag: u8, is_plain: bool) -> bool {
        let slot = &mut self.slots[usize::from(tag)];
        slot.active = false;
        (self.reply.lun, self.reply.tag) = (slot.lun, tag);
        std::mem::replace(&mut self.reply_is_plain, is_plain)
    }

    pub(crate) fn set_reply(&mut self, body: ReplyBody) {
        self.reply.body = body;
    }

    /// The reply that was taken last.
    #[inline(always)]
    pub(crate) fn reply(&self) -> &Reply {
        &self.reply
    }

    /// Queues a request until enough operations are free.
    pub(crate) fn starve(&mut self, tag: TagRef) {
        self.starved.push_back(tag);
    }

    /// Whether a request waits for operations.
    #[inline(always)]
    pub(crate) fn has_starved(&self) -> bool {
        !self.starved.is_empty()
    }

    /// Takes the first waiting request.
    pub(crate) fn next_starved(&mut self) -> Option<TagRef> {
        self.starved.pop_front()
    }

    /// The SCSI target.
    #[inline(always)]
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn target_mut(&mut self) -> &mut Target {
        &mut self.target
    }

    /// Drops a command without reply.
    pub(crate) fn drop_request(&mut self, tag: u8) {
        let slot = self.slot_mut(tag);
        slot.active = false;
        slot.life = slot.life.wrapping_add(1);
    }

    /// Drops every command, those on the link included.
    pub(crate) fn reset(&mut self, config: &DeviceConfig) {
        self.arrivals.clear();
        self.replies.clear();
        (0..TAGS as u8).for_each(|tag| self.drop_request(tag));
        let settings = self.target.query.settings();
        self.target = Target::new(config, self.target.serial());
        self.target.query.restore(&settings);
        self.target.attention_after_reset();
    }

    pub(crate) fn lose_power(&mut self, config: &DeviceConfig) {
        self.reset(config);
        self.starved.clear();
        (self.down_free, self.up_free) = (Ns::ZERO, Ns::ZERO);
    }

    /// The link carries nothing before `ready`.
    pub(crate) fn set_busy_until(&mut self, ready: Ns) {
        (self.down_free, self.up_free) = (ready, ready);
    }
}
