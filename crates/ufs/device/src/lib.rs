// SPDX-License-Identifier: MIT OR Apache-2.0
//! The UFS device: SCSI target, query manager, flash translation layer and the device's side of HPB.
//!
//! [`UfsDevice`] is a state machine without clock, thread or file. Its methods are of four kinds:
//! - inputs: [`UfsDevice::submit`] ([`UfsDevice::submit_read`] for plain reads), [`UfsDevice::hardware_reset`];
//! - time: [`UfsDevice::next_deadline`], [`UfsDevice::advance`];
//! - outputs, polled until `None` after every `advance`: [`UfsDevice::poll_media`], [`UfsDevice::poll_reply`];
//! - getters.
//!
//! This room knows flash and the UFS protocol. It does not know who the host is, what a workload is or which clock
//! drives it; and it decides only from what a real device would hold in SRAM, from the command, or from flash pages whose
//! reading it has paid for in time.

mod back;
mod booster_config;
mod config;
mod device;
mod entry_config;
mod ftl;
mod ftl_config;
mod hpb;
mod hpb2_config;
mod ids;
mod map_memory;
mod prototype_config;
mod request;

pub use back::{DeviceStats, MediaMode, MediaOp, NoMedia, Probe, Resource, StageOf, WithMedia};
pub use booster_config::WriteBoosterConfig;
pub use config::{
    ConfigError, DeviceConfig, FirmwareTiming, FlashTiming, HpbConfig, LinkTiming, LuConfig, MAP_ENTRY_BYTES,
    Verification,
};
pub use device::{Delays, UfsDevice};
pub use entry_config::{CheckOn, EntryConfig, Protection};
pub use ftl::{ANCHORS, Layout, NoSpace, Recovery, Stall, State, Stream, Superblock, VictimPolicy, Wear};
pub use ftl_config::{FaultConfig, FtlConfig, Without};
pub use hpb::{EntryCodec, Verdict};
pub use hpb2_config::{Hpb2Config, MOST_ENTRIES};
pub use map_memory::{HostMap, LineCheck, MapMemory, Protocol};
pub use prototype_config::PrototypeConfig;
pub use readpath_proto::groups::GroupUpdate;
pub use readpath_proto::hpb::Control;
