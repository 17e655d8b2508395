// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens to data: the core says what moves, a payload moves it.

use readpath_device::{MediaMode, MediaOp, NoMedia, Own};
use readpath_flash::Ppn;
use readpath_host::BlockRequest;
use readpath_proto::typed::Sense;

/// Executes media operations, and sees block requests at both ends to give them data and to look at what came back.
/// Without further words it holds no data.
pub trait Payload {
    /// Whether the device reports media operations to it.
    type Mode: MediaMode;

    /// A device of so many slices and buffer slots is in use.
    fn attach(&mut self, _slices: u32, _buffer_slots: usize, _logical_blocks: u32) {}

    /// Preconditioning has put logical page `lpn` (device-wide) into `ppn`.
    fn preset(&mut self, _lpn: u32, _ppn: Ppn) {}

    /// The command `tag` is being sent; `lpn` is its first logical page (device-wide).
    #[inline(always)]
    fn begin(&mut self, _tag: u8, _request: &BlockRequest, _lpn: u32) {}

    /// One movement of data.
    #[inline(always)]
    fn execute(&mut self, _op: MediaOp) {}

    /// The device has something of its own to keep, if it is kept in flash.
    fn keep(&mut self, _own: Own) {}

    /// Why what the device has of its own cannot be kept any more, if so: then no answer about it holds.
    fn not_kept(&self) -> Option<Sense> {
        None
    }

    /// The command `tag` has ended, well or not.
    #[inline(always)]
    fn end(&mut self, _tag: u8, _request: &BlockRequest, _lpn: u32, _good: bool) {}

    /// All commands in flight have been dropped by a reset.
    fn reset(&mut self) {}

    /// The power has gone: commands in flight are lost, and so is what the write buffer held.
    fn power_cut(&mut self) {}

    /// Bytes of this process's memory that it takes.
    fn process_bytes(&self) -> u64 {
        0
    }
}

/// A payload that is given the data of each request, and gives back what became of it. Requests are named by small
/// numbers: their cookies.
pub trait BlockData: Payload {
    /// The request `cookie`, from `block` on, brings this data, or wants it filled. Called before [`Payload::begin`].
    fn bring(&mut self, cookie: u32, block: u32, data: Vec<u8>);

    /// It has ended, or will not: its data, and the error of moving it, which the device does not know.
    fn take(&mut self, cookie: u32) -> (Vec<u8>, Option<Sense>);
}

/// No data: only time is simulated.
#[derive(Default)]
pub struct NoData;

impl Payload for NoData {
    type Mode = NoMedia;
}
