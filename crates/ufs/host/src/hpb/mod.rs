// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's side of HPB for one logical unit. HPB of JESD220-3 ([`lu`]) is a table of maps ([`table`]) that one of
//! two drivers fills: that of Linux ([`linux`]), in device or host control mode, or one that asks a policy
//! ([`managed`]). The prototype of 2017 is a separate host ([`prototype`]). [`mod@unit`] selects among them.
//!
//! It knows recommendations, reads and writes; never the device's map, nor tags, commands or a clock.

mod common;
mod counters;
mod linux;
mod lu;
mod managed;
mod port;
mod prototype;
mod table;
mod unit;

use common::Common;
pub use counters::{HostMemory, HpbCounters};
pub(crate) use lu::Carries;
pub use lu::HpbLu;
pub(crate) use managed::{Route, TimedWhat};
pub(crate) use port::{HpbRequest, Port};
pub use prototype::PrototypeError;
pub(crate) use prototype::{GroupLu, check_groups};
pub(crate) use unit::{UnitHpb, UnitSetup};

/// State of a region (Linux `enum HPB_RGN_STATE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionState {
    /// The host holds nothing of it.
    Inactive,
    /// The host holds or loads maps of it.
    Active,
    /// Always active.
    Pinned,
}

/// State of a sub-region (Linux `enum HPB_SRGN_STATE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubRegionState {
    /// No memory for its map.
    Unused,
    /// Memory for its map, but its entries must not be used.
    Invalid,
    /// A load is in progress.
    Issued,
    /// Entries that are not dirty may be used.
    Valid,
}

/// State of the unit's HPB (Linux `enum UFSHPB_STATE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LuState {
    /// Found, but the device has not finished its HPB reset.
    Init,
    /// In use.
    Present,
    /// The host sleeps, or is about to: recommendations are noted, but nothing is sent for HPB.
    Suspend,
    /// The controller is being reset.
    Reset,
    /// Given up.
    Failed,
}
