// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flash translation inside a small device: power cuts in the middle of anchors, copies of zones, zones written
//! beforehand, and upkeep.

pub(crate) mod anchors;
mod copies;
mod preset;
mod upkeep;
