// SPDX-License-Identifier: MIT OR Apache-2.0
//! WriteBooster as part of a device's configuration: size and times of its buffer.

use readpath_kit::Ns;

/// WriteBooster (JESD220F): one buffer shared by all logical units, made of superblocks in SLC mode. It takes no space
/// away from the logical units: superblocks are lent to it while they are free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteBoosterConfig {
    /// The most data that the buffer holds, in blocks of 4 KiB (dNumSharedWriteBoosterBufferAllocUnits). It is rounded
    /// up to whole superblocks, see [`crate::DeviceConfig::booster_superblocks`].
    pub buffer_blocks: u32,
    /// Bits of a cell outside the buffer, 2 to 5: in SLC mode a block has a page for this many pages of the full mode
    /// (bWriteBoosterBufferCapAdjFac).
    pub bits_per_cell: u32,
    /// tR of a page in SLC mode.
    pub slc_read: Ns,
    /// tPROG of a multi-plane page in SLC mode.
    pub slc_program: Ns,
    /// tBERS of a block in SLC mode.
    pub slc_erase: Ns,
    /// Mean number of erases that the superblocks of the buffer endure (bWriteBoosterBufferLifeTimeEst). After them
    /// the buffer accepts no more data.
    pub life_erases: u32,
}
