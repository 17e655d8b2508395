// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw NAND: what its operations take, what goes wrong in it, and a simulated device that keeps data. It knows nothing of
//! UBI.

mod chip;
mod presets;
mod store;
mod timing;
mod whole_pages;

pub use chip::{Counts, Ecc, Faults, Nand};
pub use presets::{PRESETS, Preset, preset};
pub use timing::Timing;
