// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flash translation. Five parts own its state: `space`, `map`, `write`, `log` and `collect`; `pump` orders them.
//! None of them knows SCSI, HPB or host memory. Their caller passes them the firmware core and the array
//! ([`crate::back::Hardware`]). Reports to the parts above are queued as [`Effect`]s, which the caller applies after
//! every call.

pub(crate) mod booster_config;
mod collect;
pub(crate) mod config;
mod effects;
pub(crate) mod log;
pub(crate) mod map;
mod pump;
pub(crate) mod space;
mod write;

pub use booster_config::WriteBoosterConfig;
pub(crate) use collect::BoosterFlags;
pub use config::{FaultConfig, FtlConfig, Without};
pub(crate) use effects::Effect;
pub use log::Recovery;
pub(crate) use log::bytes;
pub(crate) use map::{FrameState, InReadBuffer, Mapping, Paid};
pub(crate) use pump::Ftl;
pub use pump::Layout;
pub use space::{ANCHORS, NoSpace, State, Stream, Superblock, VictimPolicy, Wear};
pub(crate) use write::Incoming;
pub use write::Stall;
