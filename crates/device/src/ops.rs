// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pool of operations in progress inside the device: each is a unit of work that waits for the firmware, a die or a
//! map page. Fixed size, links instead of lists, nothing allocated while it runs.

use readpath_flash::{OpId, Ppn};
use readpath_kit::DeadlineHeap;

/// Ends a chain of operations.
pub const NO_OP: OpId = OpId::MAX;

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Job {
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
}

impl Job {
    /// Whether it programs.
    #[inline]
    pub fn is_program(self) -> bool {
        matches!(self, Job::Program | Job::MoveProgram | Job::MetaProgram | Job::AnchorProgram)
    }

    /// Whether it programs or erases.
    #[inline]
    pub fn writes(self) -> bool {
        self.is_program() || self == Job::Erase
    }
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// What it does.
    pub job: Job,
    /// The request it belongs to.
    pub tag: u8,
    /// Blocks it moves.
    pub count: u16,
    /// Next in a chain: of waiters on a map page.
    pub next: OpId,
    /// Life of the request slot that it belongs to; an operation of an earlier life is ignored when it ends.
    pub life: u32,
    /// First block within the request (a read); first buffer slot (a program).
    pub index: u32,
    /// First logical page (a read), map page (a load), superblock (an erase).
    pub lpn: u32,
    /// First slice.
    pub ppn: Ppn,
    /// Frame of the map cache (a load).
    pub frame: u32,
}

/// See the module.
pub struct OpPool {
    ops: Vec<Op>,
    free: Vec<OpId>,
}

impl OpPool {
    /// A pool of as many operations as schedulers can name.
    pub fn new() -> Self {
        let n = DeadlineHeap::SLOTS as OpId;
        let idle =
            Op { job: Job::Free, tag: 0, count: 0, next: NO_OP, life: 0, index: 0, lpn: 0, ppn: Ppn(0), frame: 0 };
        OpPool { ops: vec![idle; usize::from(n)], free: (0..n).rev().collect() }
    }

    /// Takes an operation. The device's limits per request keep the pool from running dry.
    #[inline]
    pub fn take(&mut self, op: Op) -> OpId {
        let id = self.free.pop().expect("limits per request bound the operations in progress");
        self.ops[usize::from(id)] = op;
        id
    }

    /// Gives an operation back.
    #[inline]
    pub fn free(&mut self, id: OpId) {
        self.ops[usize::from(id)].job = Job::Free;
        self.free.push(id);
    }

    /// An operation.
    #[inline]
    pub fn get(&self, id: OpId) -> &Op {
        &self.ops[usize::from(id)]
    }

    /// An operation, to change.
    #[inline]
    pub fn get_mut(&mut self, id: OpId) -> &mut Op {
        &mut self.ops[usize::from(id)]
    }

    /// Whether new work may begin. What has begun may still need operations of its own, and so may programs and erases;
    /// resets and aborts leave operations in flight that nobody waits for, on top of what the limits per request allow.
    #[inline]
    pub fn has_room(&self) -> bool {
        const RESERVE: usize = 2000;
        self.free.len() >= RESERVE
    }

    /// Operations in progress, in no particular but repeatable order.
    pub fn in_progress(&self) -> impl Iterator<Item = &Op> {
        self.ops.iter().filter(|op| op.job != Job::Free)
    }

    /// Operations in use.
    pub fn in_use(&self) -> usize {
        self.ops.len() - self.free.len()
    }
}
