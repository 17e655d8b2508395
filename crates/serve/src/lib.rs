// SPDX-License-Identifier: MIT OR Apache-2.0
//! A modelled device in real time, with an image as its flash. Either the stack of the simulator is driven by a real
//! clock through the one loop, with NBD clients as the source of its requests; or the driver of a virtual machine uses
//! the device through a host controller, over vfio-user.
//!
//! This crate has the clock and the sockets. It knows no flash translation, no HPB and no file format: the stack
//! handles requests, and the store keeps the image.

#![warn(unreachable_pub)]

mod address;
mod attach;
mod changes;
mod clients;
mod clock;
mod connections;
mod control;
mod edges;
mod flashed;
mod host;
mod jobs;
mod lateness;
mod metrics;
pub mod nbd;
mod orders;
mod poller;
mod promises;
mod record;
mod replayed;
mod requests;
mod server;
mod shown;
mod sockets;
mod timed;
mod troubles;
pub mod vfio;

pub use address::{Address, AddressError};
pub use attach::{AttachOptions, WasAttached, attach};
pub use changes::{Change, Changes, Mark, What};
pub use clock::Speed;
pub use connections::UnitCount;
pub use flashed::{DiskWrite, FlashLog, FlashMoment, Logged, flash_log, recovery_log, torn_writes};
pub use host::Host;
pub use lateness::{Cause, Lateness, Verdict};
pub use orders::{Faults, OrderError};
pub use readpath_hci::OWN_TAG;
pub use readpath_run::rules::RuleCount;
pub use record::{Recorded, RecordingError};
pub use replayed::{Replayed, replay};
pub use server::{Begun, Options, ServeError, Served, exports, serve};
pub use timed::{TimedDisk, open};
