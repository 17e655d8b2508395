// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flash translation. Five parts own its state: `space`, `map`, `write`, `log` and `collect`; `pump` orders
//! them. None of them knows SCSI, HPB or host memory. They work with the firmware core and the array
//! ([`crate::back::Hardware`]) that they are handed. What concerns the parts above waits in a line of [`Effect`]s,
//! which the caller empties after every call.

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
