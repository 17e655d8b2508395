// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens to data: the core says what moves, a payload moves it.

use readpath_device::{MediaMode, MediaOp, NoMedia};
use readpath_flash::Ppn;
use readpath_host::BlockRequest;

/// Executes media operations, and sees block requests at both ends to give them data and to look at what came back.
pub trait Payload {
    /// Whether the device reports media operations to it.
    type Mode: MediaMode;

    /// A device of so many slices and buffer slots is in use.
    fn attach(&mut self, slices: u32, buffer_slots: usize, logical_blocks: u32);

    /// Preconditioning has put logical page `lpn` (device-wide) into `ppn`.
    fn preset(&mut self, lpn: u32, ppn: Ppn);

    /// The command `tag` is being sent; `lpn` is its first logical page (device-wide).
    fn begin(&mut self, tag: u8, request: &BlockRequest, lpn: u32);

    /// One movement of data.
    fn execute(&mut self, op: MediaOp);

    /// The command `tag` has ended, well or not.
    fn end(&mut self, tag: u8, request: &BlockRequest, lpn: u32, good: bool);

    /// All commands in flight have been dropped by a reset.
    fn reset(&mut self);

    /// The power has gone: commands in flight are lost, and so is what the write buffer held.
    fn power_cut(&mut self);

    /// Bytes of this process's memory that it takes.
    fn process_bytes(&self) -> u64;
}

/// No data: only time is simulated.
#[derive(Default)]
pub struct NoData;

impl Payload for NoData {
    type Mode = NoMedia;

    fn attach(&mut self, _: u32, _: usize, _: u32) {}
    fn preset(&mut self, _: u32, _: Ppn) {}
    #[inline(always)]
    fn begin(&mut self, _: u8, _: &BlockRequest, _: u32) {}
    #[inline(always)]
    fn execute(&mut self, _: MediaOp) {}
    #[inline(always)]
    fn end(&mut self, _: u8, _: &BlockRequest, _: u32, _: bool) {}
    fn reset(&mut self) {}
    fn power_cut(&mut self) {}
    fn process_bytes(&self) -> u64 {
        0
    }
}
