// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identifiers that several parts of the device share.

/// A use of a task tag. Tags are reused; work for a command of an earlier use is dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TagRef {
    /// Task tag.
    pub tag: u8,
    /// Number of the use.
    pub life: u32,
}

impl TagRef {
    /// No request.
    pub(crate) const NONE: TagRef = TagRef { tag: u8::MAX, life: 0 };
}

/// Number of a record of the journal, counted from 1 on.
pub(crate) type Mark = u64;

/// Number of a map page: its part of the map, not its place in flash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct MapPage(pub u32);

impl MapPage {
    /// Index in a table of all map pages.
    #[inline(always)]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SuperblockId(pub u32);

impl SuperblockId {
    /// Index in a table of all superblocks.
    #[inline(always)]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for SuperblockId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A logical page: a logical block of 4 KiB, counted through all logical units.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Lpn(pub u32);

impl Lpn {
    /// `count` logical pages from this one on.
    #[inline(always)]
    pub(crate) fn run(self, count: u32) -> impl Iterator<Item = Lpn> {
        (self.0..self.0 + count).map(Lpn)
    }

    /// Index in a table of all logical pages.
    #[inline(always)]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::ops::Add<u32> for Lpn {
    type Output = Lpn;

    #[inline(always)]
    fn add(self, blocks: u32) -> Lpn {
        Lpn(self.0 + blocks)
    }
}

impl std::ops::Sub<Lpn> for Lpn {
    type Output = u32;

    #[inline(always)]
    fn sub(self, first: Lpn) -> u32 {
        self.0 - first.0
    }
}
