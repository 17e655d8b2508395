// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flash translation. Six parts own its state: `space`, `map`, `zones`, `write`, `log` and `collect`; `pump` orders
//! them.
//! None of them knows SCSI, HPB or host memory. Their caller passes them the firmware core and the array
//! ([`crate::back::Hardware`]). Reports to the parts above are queued as [`Effect`]s, which the caller applies after
//! every call.

mod collect;
mod effects;
pub(crate) mod log;
pub(crate) mod map;
mod preset;
mod pump;
pub(crate) mod space;
mod write;
mod zones;

pub(crate) use collect::BoosterFlags;
pub(crate) use effects::Effect;
pub use log::Recovery;
pub(crate) use log::bytes;
pub(crate) use map::{FrameState, Mapping, PageAt, Paid};
pub use preset::Layout;
pub(crate) use pump::Ftl;
pub use space::{NoSpace, State, Stream, Superblock, Wear};
pub(crate) use write::Incoming;
pub use write::Stall;
pub(crate) use zones::Zones;
