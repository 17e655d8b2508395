// SPDX-License-Identifier: MIT OR Apache-2.0
//! A modelled device in real time: the stack of the simulator, driven by a real clock through the one loop, with NBD
//! clients as the source of its requests and an image as its flash.
//!
//! This room has the clock and the sockets. It knows no flash translation, no HPB and no file format; what a request
//! does is the stack's business, and what the image holds is the store's.

#![warn(unreachable_pub)]

mod address;
mod clients;
mod clock;
mod control;
mod edges;
mod jobs;
mod lateness;
pub mod nbd;
mod poller;
mod server;
mod sockets;
mod timed;

pub use address::{Address, AddressError};
pub use clock::Speed;
pub use lateness::{Cause, Lateness, Verdict};
pub use server::{Begun, Options, ServeError, Served, serve};
