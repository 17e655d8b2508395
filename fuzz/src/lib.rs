// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each fuzz target does with its input, as plain functions, so that tests on a stable compiler run them too.
//!
//! A function returns when all is well and panics when a parser, the host driver or the device does, or when something
//! that was read does not survive being written.

mod hci;
mod machines;
mod serve;
mod text;
mod trace;
mod ubi;
mod ubi_streams;
mod ubifs;
mod wire;

pub use hci::{host_controller, vfio_session};
pub use machines::{device_requests, host_replies, prototype_replies, prototype_requests};
pub use serve::{image, nbd_session, recording};
pub use text::{device_toml, experiment_toml, fio_job, iozone_args, measurements_csv, result_json, study_toml};
pub use trace::{trace, trace_columns};
pub use ubi::{ubi_attach, ubi_volume_table};
pub use ubi_streams::{ubi_costs, ubi_stream};
pub use ubifs::{ubifs_data, ubifs_nodes, ubifs_volume};
pub use wire::{cdb, descriptors, upiu};

/// A fuzz target: its name and what it does.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("upiu", upiu),
    ("cdb", cdb),
    ("descriptors", descriptors),
    ("fio_job", fio_job),
    ("iozone_args", iozone_args),
    ("device_toml", device_toml),
    ("experiment_toml", experiment_toml),
    ("study_toml", study_toml),
    ("result_json", result_json),
    ("host_replies", host_replies),
    ("device_requests", device_requests),
    ("prototype_replies", prototype_replies),
    ("prototype_requests", prototype_requests),
    ("measurements_csv", measurements_csv),
    ("trace", trace),
    ("trace_columns", trace_columns),
    ("ubi_attach", ubi_attach),
    ("ubi_volume_table", ubi_volume_table),
    ("ubi_stream", ubi_stream),
    ("ubi_costs", ubi_costs),
    ("ubifs_nodes", ubifs_nodes),
    ("ubifs_data", ubifs_data),
    ("ubifs_volume", ubifs_volume),
    ("nbd_session", nbd_session),
    ("image", image),
    ("recording", recording),
    ("host_controller", host_controller),
    ("vfio_session", vfio_session),
];

/// Input read piece by piece; where it ends, zeros follow.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// At most `n` bytes.
    fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        head
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut a = [0; N];
        let head = self.take(N);
        a[..head.len()].copy_from_slice(head);
        a
    }

    fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.array())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.array())
    }
}
