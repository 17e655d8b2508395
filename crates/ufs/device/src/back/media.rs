// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the core asks of the medium. The core never touches a byte: it says which slice is read, written or erased, and
//! its driver moves the data (or, in a pure timing run, nothing).

use crate::ftl::Stream;
use readpath_flash::Ppn;

/// One movement of data. A driver executes each as soon as it polls it, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MediaOp {
    /// Block `index` of write request `tag` is now in buffer slot `slot`.
    Fill {
        /// Request.
        tag: u8,
        /// Block within the request.
        index: u32,
        /// Slot of the write buffer.
        slot: u16,
    },
    /// Buffer slot `slot` has been programmed into slice `ppn`.
    Program {
        /// Slot of the write buffer.
        slot: u16,
        /// The slice.
        ppn: Ppn,
        /// The logical page that its spare area names (device-wide), if any.
        lpn: Option<u32>,
        /// The sequence number that its spare area has.
        sequence: u64,
    },
    /// Slice `from` has been programmed into slice `to` as well, with its spare area.
    Move {
        /// Slice that was read.
        from: Ppn,
        /// Slice that was written.
        to: Ppn,
        /// The logical page that it holds (device-wide).
        lpn: u32,
        /// The sequence number that its spare area has.
        sequence: u64,
    },
    /// All slices of the unit that was programmed last have been reported. Only of a device that is kept in flash.
    Programmed {
        /// Its first slice.
        first: Ppn,
        /// The stream of its superblock.
        stream: Stream,
        /// Number of the program.
        program: u64,
    },
    /// The device has metadata to store: [`crate::UfsDevice::take_own`] returns it. Only of a device that is kept in
    /// flash.
    Own,
    /// The power was cut while these slices were being programmed: their contents are undefined.
    Torn {
        /// First slice.
        first: Ppn,
        /// Slices.
        slices: u32,
    },
    /// Slice `ppn` is the data of block `index` of read request `tag`.
    ReadFlash {
        /// Request.
        tag: u8,
        /// Block within the request.
        index: u32,
        /// The slice.
        ppn: Ppn,
    },
    /// Buffer slot `slot` is the data of block `index` of read request `tag`.
    ReadBuffer {
        /// Request.
        tag: u8,
        /// Block within the request.
        index: u32,
        /// Slot of the write buffer.
        slot: u16,
    },
    /// Block `index` of read request `tag` was never written, or trimmed: it reads as zeros.
    ReadZeros {
        /// Request.
        tag: u8,
        /// Block within the request.
        index: u32,
    },
    /// `slices` slices from `first` on are erased.
    Erase {
        /// First slice of the superblock.
        first: Ppn,
        /// Slices of the superblock.
        slices: u32,
    },
}

/// Whether media operations are reported at all.
pub trait MediaMode {
    /// False removes the reports at compile time.
    const ACTIVE: bool;
}

/// No data is moved; only time is simulated.
pub struct NoMedia;

impl MediaMode for NoMedia {
    const ACTIVE: bool = false;
}

/// Every movement of data is reported.
pub struct WithMedia;

impl MediaMode for WithMedia {
    const ACTIVE: bool = true;
}
