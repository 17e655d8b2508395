// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw NAND: times of its operations. It knows nothing of UBI.

mod presets;
mod timing;

pub use presets::{PRESETS, Preset, preset};
pub use timing::Timing;
