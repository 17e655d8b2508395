// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens to data: the core says what moves, a payload moves it.

use readpath_device::{Failing, MediaMode, MediaOp, NoMedia, Own};
use readpath_flash::Ppn;
use readpath_host::BlockRequest;
use readpath_proto::typed::Sense;

/// What went wrong with the data of a request, whatever the device says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A slice cannot be read, or is not what was written.
    Medium(String),
    /// The data cannot be kept any more.
    Write(String),
}

impl Fault {
    /// What a SCSI device says of it.
    pub fn sense(&self) -> Sense {
        match self {
            // UNRECOVERED READ ERROR, WRITE ERROR.
            Fault::Medium(_) => Sense { key: 3, asc: 0x11, ascq: 0 },
            Fault::Write(_) => Sense { key: 3, asc: 0x0C, ascq: 0 },
        }
    }
}

/// Executes media operations, and sees block requests at both ends to give them data and to look at what came back.
/// The methods that have a body here are those of a payload that holds no data.
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

    /// The request `cookie`, from `block` on, brings this data, or wants it filled. Called before [`Payload::begin`].
    /// Cookies are small numbers.
    fn bring(&mut self, cookie: u32, block: u32, data: Vec<u8>) {
        let _ = (cookie, block, data);
    }

    /// The request has ended, or will not: its data, and what went wrong with it, whatever the device says.
    fn take(&mut self, cookie: u32) -> (Vec<u8>, Option<Fault>) {
        let _ = cookie;
        (Vec::new(), None)
    }

    /// Which reads of a block from flash fail from now on, though nothing is wrong with the data.
    fn fail_reads(&mut self, failing: Failing) {
        let _ = failing;
    }

    /// Reads that fail by chance are drawn anew.
    fn seed_reads(&mut self, seed: u64) {
        let _ = seed;
    }

    /// Bytes of this process's memory that it takes.
    fn process_bytes(&self) -> u64 {
        0
    }
}

/// No data: only time is simulated.
#[derive(Default)]
pub struct NoData;

impl Payload for NoData {
    type Mode = NoMedia;
}
