// SPDX-License-Identifier: MIT OR Apache-2.0
//! The prototype of HPB (W. Jeong et al., HotStorage 2017), which has groups in the place of HPB units: its parameters,
//! and what the device remembers of the groups it has given out. [`crate::device`] serves its commands.

mod groups;

pub(crate) use groups::{Forgotten, Groups};
