// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that Linux 6.1 shows in sysfs for a UFS device with HPB, for runs in progress: their names, what is read
//! from them, and what a write to them does. A [`Tree`] has the nodes, by number and by path.
//!
//! Sources: Linux `drivers/ufs/core/ufs-sysfs.c` and `ufshpb.c`, `Documentation/ABI/testing/sysfs-driver-ufs`.
//! It knows neither FUSE nor sockets, and nothing of a run but what its post shows ([`readpath_run::Post`]).

#![warn(unreachable_pub)]

mod errno;
mod names;
mod number;
mod tree;

pub use rustix::io::Errno;

pub use tree::{Entry, Kind, Tree};
