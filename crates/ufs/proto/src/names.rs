// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names in HPB commands and responses: the entry of a block, and a sub-region.

/// The opaque 8 bytes that stand for one 4 KiB logical block in an HPB map (JESD220-3). A host stores and returns
/// them unchanged and never interprets them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(transparent)]
pub struct HpbEntry(pub [u8; 8]);

impl HpbEntry {
    /// All zeros: a host sends this for no entry; never a valid entry.
    pub const ZERO: HpbEntry = HpbEntry([0; 8]);
    /// Bytes of an entry.
    pub const BYTES: usize = 8;
}

/// A sub-region by its region's index in the logical unit and its own index within the region.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash)]
pub struct SubRegion {
    /// Region of the logical unit.
    pub region: u16,
    /// Sub-region within the region.
    pub index: u16,
}
