// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every state that a crash can leave, from a recording of a served device: the states are made, each is served on a
//! socket of its own, and a program says whether it survives it.
//!
//! ```text
//!  recording ─▶ Log: changes, blocks ─▶ Permitted: state number n ─▶ State: a content for each touched block
//!  image ─▶ Base: blocks before                                        │ equal ones once
//!                                              outcome ◀─ CHECK ◀─ NBD ─┘
//! ```
//!
//! This crate has processes, threads and sockets. It knows no flash translation, and no command line.

#![warn(unreachable_pub)]

mod base;
mod check;
mod device;
mod disk;
mod document;
mod error;
mod hunt;
mod kept;
mod log;
mod permitted;
mod reduce;
mod state;
mod states;

pub use base::Base;
pub use check::{Check, Outcome, Ran};
pub use device::{Cut, Device};
pub use document::document;
pub use error::CrashError;
pub use hunt::{Budget, Found, Hunt, Progress, Reduced, Tried};
pub use kept::Kept;
pub use log::Log;
pub use permitted::{Moment, Permitted, Spec};
pub use state::State;
pub use states::States;
