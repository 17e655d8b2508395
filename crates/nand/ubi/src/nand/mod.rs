// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw NAND: what its operations take. It knows nothing of UBI.

mod presets;
mod timing;

pub use presets::{PRESETS, Preset, preset};
pub use timing::Timing;
