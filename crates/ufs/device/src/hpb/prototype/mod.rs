// SPDX-License-Identifier: MIT OR Apache-2.0
//! The prototype of HPB (W. Jeong et al., HotStorage 2017), which has groups in the place of HPB units: all that is its
//! own is in this folder.

pub(crate) mod config;
mod groups;
mod reads;

pub use config::PrototypeConfig;
pub(crate) use groups::{Forgotten, Groups};
