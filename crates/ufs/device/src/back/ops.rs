// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pool of operations in progress inside the device: each is a unit of work that waits for the firmware, a die or
//! a map page. The pool has a fixed size and uses links, so nothing is allocated while the device runs.

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
    /// Blocks of a read, which wait for their map page and are then read from flash.
    HostRead,
    /// Map page being loaded into a frame of the map cache.
    MapLoad,
    /// Map page read for an HPB READ BUFFER.
    BufferLoad,
    /// Multi-plane page being programmed.
    Program,
    /// Multi-plane pages of a die being programmed together for a zone. `lpn` is the zone, `frame` how many they are.
    ZoneProgram,
    /// Blocks of a zone that do not fill such a program being programmed. `lpn` is the zone.
    RestProgram,
    /// Such blocks being read back. `lpn` is the zone, `index` the first block.
    RestRead,
    /// Blocks of a zone being read to be copied. `lpn` is the zone.
    RefreshRead,
    /// Such blocks being programmed, as `ZoneProgram`.
    RefreshProgram,
    /// One die of a superblock being erased.
    Erase,
    /// Unit of the table of a superblock being programmed.
    TableProgram,
    /// Unit of the table of a superblock being read, to find its logical pages.
    TableRead,
    /// Spare areas of a unit being read, to find its logical pages.
    SpareRead,
    /// Map page being read to find which slices of a superblock are current.
    CollectMapLoad,
    /// Page of data being read to be moved.
    MoveRead,
    /// Moved data being programmed.
    MoveProgram,
    /// Map page being read to be written back with its changes.
    WriteBackLoad,
    /// Map pages, journal or parts of a checkpoint being programmed.
    MetaProgram,
    /// Anchor of a checkpoint being programmed.
    AnchorProgram,
    /// Spare area being read to find the block for which an HPB entry was made. `index` and `frame` are the entry's
    /// halves.
    OwnerRead,
    /// Blocks of a read at the address that a hint of the prototype names.
    HintedRead,
    /// Blocks of RPMB being read.
    RpmbRead,
    /// RPMB update being programmed, without flash translation.
    RpmbProgram,
}

impl Job {
    /// Whether the operation programs slices for flash translation.
    #[inline]
    pub(crate) fn is_program(self) -> bool {
        use Job::{
            AnchorProgram, MetaProgram, MoveProgram, Program, RefreshProgram, RestProgram, TableProgram, ZoneProgram,
        };
        let of_zones = matches!(self, ZoneProgram | RestProgram | RefreshProgram);
        of_zones || matches!(self, Program | MoveProgram | TableProgram | MetaProgram | AnchorProgram)
    }

    /// Whether the operation programs several multi-plane pages of a die together: `frame` of them.
    #[inline(always)]
    pub(crate) fn programs_together(self) -> bool {
        matches!(self, Job::ZoneProgram | Job::RefreshProgram)
    }

    /// Whether the operation programs or erases slices for flash translation.
    #[inline]
    pub(crate) fn writes(self) -> bool {
        self.is_program() || self == Job::Erase
    }
}

/// One operation, aligned so that its address in the pool is a shift of its number.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Op {
    /// What it does.
    pub job: Job,
    /// Cell mode of the superblock that it accesses.
    pub cells: CellMode,
    /// Its data stays on the die: no channel carries it.
    pub stays: bool,
    /// The use of the tag that it belongs to; when it ends, it is ignored if the tag has been reused.
    pub tag: TagRef,
    /// Blocks that it moves.
    pub count: u16,
    /// Next in a chain of waiters on a map page.
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
        Op {
            job,
            cells: CellMode::Full,
            stays: false,
            tag: TagRef::NONE,
            count: 0,
            next: NO_OP,
            index: 0,
            lpn: 0,
            ppn,
            frame: 0,
        }
    }
}

const _: () = assert!(size_of::<Op>() == 32);

/// The number of operations that schedulers can address.
const SIZE: usize = DeadlineHeap::SLOTS as usize;

pub(crate) struct OpPool {
    ops: Box<[Op; SIZE]>,
    free: Box<[OpId; SIZE]>,
    /// Length of the used part of `free`, a stack.
    free_count: usize,
}

impl OpPool {
    pub(crate) fn new() -> Self {
        let idle = Op::new(Job::Free, Ppn(0));
        let free = std::array::from_fn(|i| (SIZE - 1 - i) as OpId);
        OpPool { ops: Box::new([idle; SIZE]), free: Box::new(free), free_count: SIZE }
    }

    /// Takes an operation. The device's limits per request keep the pool from running dry.
    #[inline(always)]
    pub(crate) fn take(&mut self, op: Op) -> OpId {
        let id = self.take_number();
        self.ops[usize::from(id) % SIZE] = op;
        id
    }

    /// As [`OpPool::take`], for one who says only later, or never, what the operation is.
    #[inline(always)]
    pub(crate) fn take_number(&mut self) -> OpId {
        let left = self.free_count.checked_sub(1).expect("limits per request bound the operations in progress");
        self.free_count = left;
        self.free[left % SIZE]
    }

    #[inline(always)]
    pub(crate) fn free(&mut self, id: OpId) {
        self.ops[usize::from(id) % SIZE].job = Job::Free;
        self.free[self.free_count] = id;
        self.free_count += 1;
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: OpId) -> &Op {
        &self.ops[usize::from(id) % SIZE]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: OpId) -> &mut Op {
        &mut self.ops[usize::from(id) % SIZE]
    }

    /// Whether new work may begin. The reserve is for operations that work in progress still needs, for programs and
    /// erases, and for operations whose request was reset or aborted.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        const RESERVE: usize = 2000;
        self.free_count >= RESERVE
    }

    /// Operations in progress, in a repeatable order without meaning.
    pub(crate) fn in_progress(&self) -> impl Iterator<Item = &Op> {
        self.ops.iter().filter(|op| op.job != Job::Free)
    }

    /// [`OpPool::in_progress`] with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (OpId, &Op)> {
        (0..).zip(self.ops.iter()).filter(|(_, op)| op.job != Job::Free).take(self.in_use())
    }

    pub(crate) fn in_use(&self) -> usize {
        SIZE - self.free_count
    }
}
