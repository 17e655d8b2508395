// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of WriteBooster's descriptors and attributes (JESD220F; names as in Linux `include/ufs/ufs.h`). Offsets and
//! numbers of fields, attributes and flags are in [`crate::desc`] and [`crate::query`].

/// dExtendedUFSFeaturesSupport: the device has WriteBooster (Linux `UFS_DEV_WRITE_BOOSTER_SUP`).
pub const FEATURE_WRITE_BOOSTER: u32 = 1 << 8;
/// bWriteBoosterBufferType: all logical units share the buffer (Linux `WB_BUF_MODE_SHARED`).
pub const BUFFER_SHARED: u8 = 1;
/// bSupportedWriteBoosterBufferUserSpaceReductionTypes: the buffer never takes space away from the logical units.
pub const PRESERVE_USER_SPACE_ONLY: u8 = 1;
/// bSupportedWriteBoosterBufferTypes: one shared buffer and nothing else.
pub const SHARED_ONLY: u8 = 1;
/// bWriteBoosterBufferLifeTimeEst beyond 0Ah, tenths of the buffer's life (Linux `UFS_WB_EXCEED_LIFETIME`).
pub const LIFE_EXCEEDED: u8 = 0x0B;
/// Blocks of 4 KiB of an allocation unit by default: dSegmentSize * bAllocationUnitSize = 4 MiB.
pub const ALLOCATION_UNIT_BLOCKS: u32 = 1024;

/// Values of bWriteBoosterBufferFlushStatus.
pub mod flush_status {
    /// Nothing has been flushed.
    pub const IDLE: u32 = 0;
    /// A flush is in progress.
    pub const IN_PROGRESS: u32 = 1;
    /// A flush ended before the buffer was empty.
    pub const STOPPED: u32 = 2;
    /// A flush has emptied the buffer.
    pub const COMPLETED: u32 = 3;
}
