// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pool of operations in progress inside the device: each is a unit of work that waits for the firmware, a die or a
//! map page. Fixed size, links instead of lists, nothing allocated while it runs.

use crate::config::CellMode;
use crate::ids::TagRef;
use readpath_flash::{OpId, Ppn};
use readpath_kit::DeadlineHeap;

/// Ends a chain of operations.
pub(crate) const NO_OP: OpId = OpId::MAX;

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Job {
    /// Not in use.
    Free,
    /// Blocks of a read: waiting for their map page, then being read from flash.
    HostRead,
    /// Map page on its way into a frame of the map cache, for those who wait.
    MapLoad,
    /// Map page read for an HPB READ BUFFER.
    BufferLoad,
    /// Multi-plane page being programmed.
    Program,
    /// One die of a superblock being erased.
    Erase,
    /// Unit of the table of a superblock being programmed.
    TableProgram,
    /// Unit of the table of a superblock being read, to find out what is in it.
    TableRead,
    /// Spare areas of a unit being read, to find out what is in it.
    SpareRead,
    /// Map page read to find out what is current in a superblock.
    CollectMapLoad,
    /// Page of data that moves being read.
    MoveRead,
    /// Moved data being programmed.
    MoveProgram,
    /// Map page read to be written back with its changes.
    WriteBackLoad,
    /// Map pages, journal or parts of a checkpoint being programmed.
    MetaProgram,
    /// Anchor of a checkpoint being programmed.
    AnchorProgram,
    /// Spare area read to find out for which block an HPB entry was made. `index` and `frame` are the entry's halves.
    OwnerRead,
    /// Blocks of a read from where a hint of the prototype says that they are.
    HintedRead,
    /// Blocks of RPMB being read.
    RpmbRead,
    /// A change of RPMB being programmed. Flash translation has no part in it.
    RpmbProgram,
}

impl Job {
    /// Whether it programs slices, for flash translation.
    #[inline]
    pub(crate) fn is_program(self) -> bool {
        use Job::{AnchorProgram, MetaProgram, MoveProgram, Program, TableProgram};
        matches!(self, Program | MoveProgram | TableProgram | MetaProgram | AnchorProgram)
    }

    /// Whether it programs or erases slices, for flash translation.
    #[inline]
    pub(crate) fn writes(self) -> bool {
        self.is_program() || self == Job::Erase
    }
}

/// One operation. Aligned so that its place in the pool is a shift away.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Op {
    /// What it does.
    pub job: Job,
    /// How the superblock that it goes to is written.
    pub cells: CellMode,
    /// The use of a tag that it belongs to; what belongs to an earlier one is ignored when it ends.
    pub tag: TagRef,
    /// Blocks it moves.
    pub count: u16,
    /// Next in a chain: of waiters on a map page.
    pub next: OpId,
    /// First block within the request (a read); first buffer slot (a program).
    pub index: u32,
    /// First logical page (a read), map page (a load), superblock (an erase).
    pub lpn: u32,
    /// First slice.
    pub ppn: Ppn,
    /// Frame of the map cache (a load); a bit for each slice whose spare area names another block (a read by a hint).
    pub frame: u32,
}

impl Op {
    /// An operation that belongs to no request.
    pub(crate) const fn new(job: Job, ppn: Ppn) -> Op {
        Op { job, cells: CellMode::Full, tag: TagRef::NONE, count: 0, next: NO_OP, index: 0, lpn: 0, ppn, frame: 0 }
    }
}

const _: () = assert!(size_of::<Op>() == 32);

/// As many operations as schedulers can name.
const SIZE: usize = DeadlineHeap::SLOTS as usize;

/// See the module.
pub(crate) struct OpPool {
    ops: Box<[Op; SIZE]>,
    free: Box<[OpId; SIZE]>,
    /// The first so many of `free` are free; the last of them goes first.
    free_count: usize,
}

impl OpPool {
    /// A pool of which nothing is in use.
    pub(crate) fn new() -> Self {
        let idle = Op::new(Job::Free, Ppn(0));
        let free = std::array::from_fn(|i| (SIZE - 1 - i) as OpId);
        OpPool { ops: Box::new([idle; SIZE]), free: Box::new(free), free_count: SIZE }
    }

    /// Takes an operation. The device's limits per request keep the pool from running dry.
    #[inline(always)]
    pub(crate) fn take(&mut self, op: Op) -> OpId {
        let left = self.free_count.checked_sub(1).expect("limits per request bound the operations in progress");
        self.free_count = left;
        let id = self.free[left % SIZE];
        self.ops[usize::from(id) % SIZE] = op;
        id
    }

    /// Gives an operation back.
    #[inline(always)]
    pub(crate) fn free(&mut self, id: OpId) {
        self.ops[usize::from(id) % SIZE].job = Job::Free;
        self.free[self.free_count] = id;
        self.free_count += 1;
    }

    /// An operation.
    #[inline(always)]
    pub(crate) fn get(&self, id: OpId) -> &Op {
        &self.ops[usize::from(id) % SIZE]
    }

    /// An operation, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: OpId) -> &mut Op {
        &mut self.ops[usize::from(id) % SIZE]
    }

    /// Whether new work may begin. What has begun may still need operations of its own, and so may programs and erases;
    /// resets and aborts leave operations in flight without a request, on top of what the limits per request allow.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        const RESERVE: usize = 2000;
        self.free_count >= RESERVE
    }

    /// Operations in progress, in no particular but repeatable order.
    pub(crate) fn in_progress(&self) -> impl Iterator<Item = &Op> {
        self.ops.iter().filter(|op| op.job != Job::Free)
    }

    /// Operations in use.
    pub(crate) fn in_use(&self) -> usize {
        SIZE - self.free_count
    }
}
