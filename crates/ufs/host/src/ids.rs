// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identifiers within a unit: regions and sub-regions by number, and the tables and lists indexed by them.

use readpath_kit::IndexLru;
use readpath_proto::hpb::HpbGeometry;
use readpath_proto::typed::SubRegion;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// An index of tables with a row for each region, sub-region or group.
pub(crate) trait Id: Copy {
    fn new(index: u32) -> Self;
    fn index(self) -> u32;

    #[inline(always)]
    fn row(self) -> usize {
        self.index() as usize
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(transparent)]
        pub(crate) struct $name(u32);

        impl Id for $name {
            #[inline(always)]
            fn new(index: u32) -> Self {
                $name(index)
            }

            #[inline(always)]
            fn index(self) -> u32 {
                self.0
            }
        }

        impl<T> Index<$name> for Vec<T> {
            type Output = T;

            #[inline(always)]
            fn index(&self, id: $name) -> &T {
                &self[id.row()]
            }
        }

        impl<T> IndexMut<$name> for Vec<T> {
            #[inline(always)]
            fn index_mut(&mut self, id: $name) -> &mut T {
                &mut self[id.row()]
            }
        }
    };
}

id!(
    /// A region of a unit.
    RegionId
);
id!(
    /// A sub-region, counted through all regions of its unit.
    SubRegionId
);
id!(
    /// A group of entries of the prototype.
    GroupId
);

impl RegionId {
    /// The number in commands and descriptors.
    pub(crate) fn number(self) -> u16 {
        self.0 as u16
    }

    /// Its sub-regions; fewer in a short last region.
    pub(crate) fn sub_regions(self, geometry: &HpbGeometry) -> impl Iterator<Item = SubRegionId> + use<> {
        let per_region = geometry.sub_regions_per_region();
        (self.0 * per_region..((self.0 + 1) * per_region).min(geometry.sub_regions())).map(SubRegionId)
    }
}

impl From<u16> for RegionId {
    fn from(number: u16) -> Self {
        RegionId(number.into())
    }
}

impl SubRegionId {
    /// The sub-region of a block of the unit.
    #[inline(always)]
    pub(crate) fn of_block(geometry: &HpbGeometry, block: u32) -> Self {
        SubRegionId(geometry.index_of_lba(block))
    }

    /// The sub-region that a command or a notification names; the unit must have it.
    pub(crate) fn named(geometry: &HpbGeometry, at: SubRegion) -> Self {
        SubRegionId(geometry.index_of(at))
    }

    /// The name in commands.
    pub(crate) fn name(self, geometry: &HpbGeometry) -> SubRegion {
        geometry.sub_region_at(self.0)
    }

    /// The region that it is a part of.
    pub(crate) fn region(self, geometry: &HpbGeometry) -> RegionId {
        geometry.sub_region_at(self.0).region.into()
    }
}

/// A list in which each identifier stands at most once; the front is the next victim.
pub(crate) struct IdList<I> {
    list: IndexLru,
    of: PhantomData<I>,
}

impl<I: Id> IdList<I> {
    pub(crate) fn new(count: u32) -> Self {
        IdList { list: IndexLru::new(count as usize), of: PhantomData }
    }

    pub(crate) fn contains(&self, id: I) -> bool {
        self.list.contains(id.index())
    }

    /// Appends `id`, unless it is in the list; returns whether it was added.
    pub(crate) fn add(&mut self, id: I) -> bool {
        let new = !self.contains(id);
        if new {
            self.list.push_back(id.index());
        }
        new
    }

    /// Puts `id` before all others.
    pub(crate) fn put_first(&mut self, id: I) {
        self.remove(id);
        self.list.push_front(id.index());
    }

    /// Moves `id` to the end, if it is in the list.
    pub(crate) fn touch(&mut self, id: I) {
        if self.contains(id) {
            self.list.touch(id.index());
        }
    }

    pub(crate) fn remove(&mut self, id: I) {
        if self.contains(id) {
            self.list.remove(id.index());
        }
    }

    pub(crate) fn front(&self) -> Option<I> {
        self.list.front().map(I::new)
    }

    pub(crate) fn pop_front(&mut self) -> Option<I> {
        self.list.pop_front().map(I::new)
    }

    /// The identifier after `id`, which is in the list.
    pub(crate) fn after(&self, id: I) -> Option<I> {
        self.list.after(id.index()).map(I::new)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = I> + '_ {
        self.list.iter().map(I::new)
    }

    pub(crate) fn len(&self) -> u32 {
        self.list.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        while self.list.pop_front().is_some() {}
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.list.bytes()
    }
}
