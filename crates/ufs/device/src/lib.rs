// SPDX-License-Identifier: MIT OR Apache-2.0
//! The UFS device: SCSI target, query manager, flash translation layer and the device's side of HPB.
//!
//! [`UfsDevice`] is a state machine without clock, thread or file. Its methods are of four kinds:
//! - inputs: [`UfsDevice::submit`] ([`UfsDevice::submit_read`] for plain reads), [`UfsDevice::hardware_reset`];
//! - time: [`UfsDevice::next_deadline`], [`UfsDevice::advance`];
//! - outputs, polled until `None` after every `advance`: [`UfsDevice::poll_media`], [`UfsDevice::poll_reply`];
//! - getters.
//!
//! This crate knows flash and the UFS protocol. It does not know the host, the workload or the clock that drives it.
//! It decides only from what a real device would hold in SRAM, from the command, or from flash pages whose read it
//! has paid for in time.

#![warn(unreachable_pub)]

mod back;
mod config;
mod device;
mod front;
mod ftl;
mod host_map;
mod hpb;
mod ids;
mod rpmb;
mod sram_table;

pub use back::{DeviceStats, Failable, Failing, MediaMode, MediaOp, NoMedia, Probe, Resource, StageOf, WithMedia};
pub use config::{
    ANCHORS, CacheCells, CacheOwner, CellMode, CheckOn, ConfigError, DeviceConfig, EntryConfig, FaultConfig,
    FirmwareTiming, FlashTiming, FtlConfig, HostMap, Hpb2Config, HpbConfig, LineCheck, LinkTiming, LuConfig,
    MOST_ENTRIES, MapMemory, Protection, Protocol, PrototypeConfig, SlcCacheConfig, SlcConfig, Verification,
    VictimPolicy, Without, ZoneConfig, ZoneLayout, ZoneRule,
};
pub use device::UfsDevice;
pub use front::{Delays, SETTINGS_BYTES, outlives_power};
pub use ftl::bytes::{
    BLOCK_RECORD_BYTES, FlashArray, LoadError, Own, OwnSlice, SPARE_REST_BYTES, Sealed, Seen, SliceKind, Spare,
};
pub use ftl::{Layout, NoSpace, Recovery, Stall, State, Stream, Superblock, Wear};
pub use readpath_proto::desc::UfsVersion;
pub use readpath_proto::groups::GroupUpdate;
pub use readpath_proto::hpb::Control;
pub use rpmb::{RpmbState, RpmbUpdate};
pub use sram_table::SramTable;
