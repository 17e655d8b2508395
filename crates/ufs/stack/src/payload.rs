// SPDX-License-Identifier: MIT OR Apache-2.0
//! Treatment of data: the core reports movements, a payload carries them out.

use readpath_device::{Failing, MediaMode, MediaOp, NoMedia, Own};
use readpath_flash::Ppn;
use readpath_host::BlockRequest;
use readpath_proto::typed::Sense;
use std::ops::Range;

/// A fault of a request's data that the device does not report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A slice cannot be read, or differs from what was written.
    Medium(String),
    /// Data can no longer be stored.
    Write(String),
}

impl Fault {
    /// The sense data of a SCSI device for it.
    pub fn sense(&self) -> Sense {
        match self {
            // UNRECOVERED READ ERROR, WRITE ERROR.
            Fault::Medium(_) => Sense { key: 3, asc: 0x11, ascq: 0 },
            Fault::Write(_) => Sense { key: 3, asc: 0x0C, ascq: 0 },
        }
    }
}

/// What a rule makes of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ruled {
    /// It is submitted next.
    Sent {
        /// The block that was asked for in place of its first.
        asked: u32,
        /// Blocks of the request, from 0, whose data on the way is not what was asked.
        spoils: Range<u32>,
    },
    /// It is not submitted, and its sender is told otherwise.
    Kept,
    /// What was said of the request of this cookie is over: it has been answered well, or was lost.
    Over {
        /// Whether it was answered well.
        good: bool,
    },
}

/// Executes media operations, and gets block requests at both ends to supply their data and to check what was read.
/// The methods with a body here are those of a payload without data.
pub trait Payload {
    /// Whether the device reports media operations to it.
    type Mode: MediaMode;

    /// A device with this many slices, buffer slots and logical blocks is in use.
    fn attach(&mut self, _slices: u32, _buffer_slots: usize, _logical_blocks: u32) {}

    /// Preconditioning has put logical page `lpn` (device-wide) into `ppn`.
    fn preset(&mut self, _lpn: u32, _ppn: Ppn) {}

    /// The command `tag` is being sent; `lpn` is its first logical page (device-wide).
    #[inline(always)]
    fn begin(&mut self, _tag: u8, _request: &BlockRequest, _lpn: u32) {}

    /// One movement of data.
    #[inline(always)]
    fn execute(&mut self, _op: MediaOp) {}

    /// Stores metadata of the device, if it is kept in flash.
    fn keep(&mut self, _own: Own) {}

    /// Why the device's metadata can no longer be stored, if so: then no response about it is valid.
    fn not_kept(&self) -> Option<Sense> {
        None
    }

    /// The command `tag` has ended, successfully or not.
    #[inline(always)]
    fn end(&mut self, _tag: u8, _request: &BlockRequest, _lpn: u32, _good: bool) {}

    /// All commands in flight have been dropped by a reset.
    fn reset(&mut self) {}

    /// The power is cut: commands in flight are lost, and so are the contents of the write buffer.
    fn power_cut(&mut self) {}

    /// An answer is about to leave, or time stands still until a client asks: what was executed survives the end of the
    /// process from now on.
    fn settle(&mut self) {}

    /// The request `cookie`, from `block` on, supplies this data, or wants it filled. Called before
    /// [`Payload::begin`]. Cookies are small numbers.
    fn bring(&mut self, cookie: u32, block: u32, data: Vec<u8>) {
        let _ = (cookie, block, data);
    }

    /// The request has ended, or was dropped: returns its data, and a fault that the device does not report.
    fn take(&mut self, cookie: u32) -> (Vec<u8>, Option<Fault>) {
        let _ = cookie;
        (Vec::new(), None)
    }

    /// A rule stands between the sender of a request and the device. `lpn` is the first logical page of the request.
    fn rule(&mut self, request: &BlockRequest, lpn: u32, ruled: Ruled) {
        let _ = (request, lpn, ruled);
    }

    /// Which reads of a block from flash fail from now on, although the data is good.
    fn fail_reads(&mut self, failing: Failing) {
        let _ = failing;
    }

    /// Restarts the stream of random read failures.
    fn seed_reads(&mut self, seed: u64) {
        let _ = seed;
    }

    /// Bytes of this process's memory that the payload takes.
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
