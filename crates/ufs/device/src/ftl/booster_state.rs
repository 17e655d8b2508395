// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host wants of WriteBooster, and how far a flush has come.

/// Flags that the host sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BoosterFlags {
    /// fWriteBoosterEn.
    pub on: bool,
    /// fWBFlushEn.
    pub flush: bool,
    /// fWBFlushDuringHibernate.
    pub flush_when_idle: bool,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Booster {
    /// Flags that the host has set.
    pub flags: BoosterFlags,
    /// bWBFlushStatus.
    pub flush_status: u32,
}
