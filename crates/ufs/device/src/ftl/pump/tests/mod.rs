// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flash translation inside a small device: power cuts in the middle of anchors, and upkeep.

pub(crate) mod anchors;
mod upkeep;
