// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that parts of the device give to what they share. They know nothing but their numbers.

/// A use of a task tag. Tags are reused; what waits for a command of an earlier use is dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TagRef {
    /// Task tag.
    pub tag: u8,
    /// Which of its uses.
    pub life: u32,
}

impl TagRef {
    /// Of no request.
    pub(crate) const NONE: TagRef = TagRef { tag: u8::MAX, life: 0 };
}

/// Number of a record of the journal, counted from 1 on.
pub(crate) type Mark = u64;

/// A map page: which part of the map it is, not where it lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct MapPage(pub u32);

impl MapPage {
    /// Its place in a table of all map pages.
    #[inline(always)]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A superblock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SuperblockId(pub u32);

impl SuperblockId {
    /// Its place in a table of all superblocks.
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
    /// So many logical pages from this one on.
    #[inline(always)]
    pub(crate) fn run(self, count: u32) -> impl Iterator<Item = Lpn> {
        (self.0..self.0 + count).map(Lpn)
    }

    /// Its place in a table of all logical pages.
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
