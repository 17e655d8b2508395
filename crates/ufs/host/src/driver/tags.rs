// SPDX-License-Identifier: MIT OR Apache-2.0
//! The controller's tags: what each carries, and which are free.

use super::joins::JoinId;
use super::together::Together;
use crate::block::{BlockOp, BlockRequest};
use readpath_proto::typed::SubRegion;
use std::ops::{Index, IndexMut};

/// The most slots of a controller.
pub(super) const MAX_SLOTS: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(transparent)]
pub(super) struct Tag(pub u8);

impl Tag {
    /// Index in tables of [`MAX_SLOTS`].
    #[inline(always)]
    pub(super) fn row(self) -> usize {
        usize::from(self.0)
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Use {
    Free,
    /// A block request, or a part of one with a join.
    Block,
    /// The same, the only one of its zone that moves the write pointer.
    Ordered,
    /// An HPB READ BUFFER.
    Map,
    /// An HPB WRITE BUFFER that drops a region.
    Unmap,
    /// An HPB WRITE BUFFER with the entries of a read that follows.
    PreRequest,
    /// A step of the probe.
    Probe,
    /// A step that enables WriteBooster again.
    Booster,
}

/// The use of a tag. The command itself is built when it is sent, and never stored: entries are looked up when the
/// command goes to the controller, as on Linux. Aligned so that a tag's address is a shift of its number.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct TagState {
    pub used: Use,
    pub op: BlockOp,
    pub lun: u8,
    pub retries: u8,
    /// Sent as HPB READ.
    pub hpb: bool,
    /// Not to be sent as HPB READ (again).
    pub plain: bool,
    /// Entries of all its blocks are in `data_out`.
    pub listed: bool,
    /// READ ID of its pre-request; 0 if it has none.
    pub read_id: u8,
    pub join: JoinId,
    pub cookie: u32,
    pub block: u32,
    pub blocks: u32,
    /// Sub-region to load, or one in the region to drop.
    pub at: SubRegion,
    /// Bytes of the map to load; `blocks` is the memory for it.
    pub map_bytes: u32,
}

impl TagState {
    pub(super) const FREE: TagState = TagState {
        used: Use::Free,
        op: BlockOp::Flush,
        lun: 0,
        retries: 0,
        hpb: false,
        plain: false,
        listed: false,
        read_id: 0,
        join: JoinId::NONE,
        cookie: 0,
        block: 0,
        blocks: 0,
        at: SubRegion { region: 0, index: 0 },
        map_bytes: 0,
    };

    pub(super) fn part(&self) -> BlockRequest {
        let TagState { cookie, lun, op, block, blocks, .. } = *self;
        BlockRequest { cookie, lun, op, block, blocks }
    }

    pub(super) fn writes(&self) -> bool {
        matches!(self.op, BlockOp::Write | BlockOp::WriteFua | BlockOp::Discard)
    }
}

/// All tags of the controller. The last is kept for queries, as Linux does.
pub(super) struct Tags {
    /// Those beyond the controller's slots are never used.
    states: Box<[TagState; MAX_SLOTS]>,
    free: Vec<Tag>,
    slots: u8,
    /// Tags for commands.
    usable: u32,
    /// Reads without a state.
    pub(super) together: Box<Together>,
}

impl Tags {
    pub(super) fn new(slots: u8) -> Self {
        let free = (0..slots - 1).rev().map(Tag).collect();
        let (states, usable) = (Box::new([TagState::FREE; MAX_SLOTS]), u32::from(slots) - 1);
        Tags { states, free, slots, usable, together: Box::default() }
    }

    pub(super) fn for_queries(&self) -> Tag {
        Tag(self.slots - 1)
    }

    /// Limits the tags used for commands.
    pub(super) fn limit(&mut self, depth: u8) {
        self.free.retain(|tag| tag.0 < depth);
        self.usable = self.usable.min(u32::from(depth));
    }

    /// The use of a reply's tag, if the controller has such a tag.
    #[inline(always)]
    pub(super) fn get(&self, tag: u8) -> Option<&TagState> {
        self.states.get(usize::from(tag))
    }

    /// Commands in flight.
    pub(super) fn in_use(&self) -> u32 {
        self.usable.saturating_sub(self.free.len() as u32)
    }

    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// The tag that is taken next.
    #[inline(always)]
    pub(super) fn next(&self) -> Option<Tag> {
        self.free.last().copied()
    }

    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<Tag> {
        self.free.pop()
    }

    #[inline(always)]
    pub(super) fn release(&mut self, tag: Tag) {
        self[tag].used = Use::Free;
        if tag != self.for_queries() {
            self.free.push(tag);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Tag, &TagState)> {
        (0..).map(Tag).zip(self.states.iter())
    }
}

impl Index<Tag> for Tags {
    type Output = TagState;

    #[inline(always)]
    fn index(&self, tag: Tag) -> &TagState {
        &self.states[tag.row()]
    }
}

impl IndexMut<Tag> for Tags {
    #[inline(always)]
    fn index_mut(&mut self, tag: Tag) -> &mut TagState {
        &mut self.states[tag.row()]
    }
}
