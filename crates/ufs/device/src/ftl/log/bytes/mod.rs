// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes that flash translation keeps in flash, for a medium that outlives the process. A simulation does not
//! need them; after [`crate::UfsDevice::keep_in_flash`] a device reports each page that it programs, and a new one
//! begins from the medium. This module knows no file, and of time only the order in which programs ended.
//!
//! *A slice* has a spare area: what it is used for, its logical page (a map page its number), a sequence number, and
//! the number of the program that wrote it. Programs are counted over the life of the device, so the newest of
//! everything is the one with the highest number.
//!
//! *Sequence numbers* have 32 bits in SRAM and are renumbered at times; in flash they have 48 bits and only grow.

mod export;
mod load;
mod pages;
mod records;
mod seal;

pub(super) use export::Export;
pub use load::LoadError;

use crate::front::SETTINGS_BYTES;
use crate::ftl::space::Stream;
use crate::rpmb::{RpmbState, RpmbUpdate};
use readpath_flash::Ppn;

/// What a programmed slice is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceKind {
    /// A logical page, or padding.
    Data,
    /// Part of the table of a superblock's logical pages.
    Table,
    /// Part of a map page.
    Map,
    /// Part of a page of the journal.
    Journal,
    /// Part of a checkpoint.
    Checkpoint,
    /// An anchor, which leads to a checkpoint.
    Anchor,
}

impl SliceKind {
    /// All kinds; the index of each is its number in flash.
    pub const ALL: [SliceKind; 6] = [
        SliceKind::Data,
        SliceKind::Table,
        SliceKind::Map,
        SliceKind::Journal,
        SliceKind::Checkpoint,
        SliceKind::Anchor,
    ];
}

/// The beginning of the spare area of a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spare {
    /// What the slice is used for.
    pub kind: SliceKind,
    /// The stream of its superblock.
    pub stream: Stream,
    /// The logical page, or the map page, that it holds; `None` for padding.
    pub page: Option<u32>,
    /// Orders it among writes and trims; below 2^48.
    pub sequence: u64,
    /// Number of the program that wrote it, from 1 on; below 2^48.
    pub program: u64,
    /// The slice is the last programmed one of its unit. The medium sets this.
    pub ends_unit: bool,
}

/// State of a slice as a read shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// Erased, and not programmed since.
    Blank,
    /// Its program was interrupted; its contents cannot be believed.
    Torn,
    /// Its contents differ from what was written, and no interrupted program explains that.
    Damaged,
    /// Programmed.
    Programmed(Spare),
}

/// Bytes of the spare area of a slice behind its [`Spare`].
pub const SPARE_REST_BYTES: usize = 128;

/// Bytes of the record of a superblock, which survives programs and erases.
pub const BLOCK_RECORD_BYTES: usize = 96;

/// A slice that the device programs for itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnSlice {
    /// Its place.
    pub ppn: Ppn,
    /// The beginning of its spare area.
    pub spare: Spare,
    /// The rest of its spare area.
    pub rest: [u8; SPARE_REST_BYTES],
    /// 4 KiB, or fewer; zeros follow.
    pub data: Vec<u8>,
}

/// Metadata that the device keeps in flash, besides the data of its host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Own {
    /// Slices of a unit, programmed together.
    Unit(Vec<OwnSlice>),
    /// The record of a superblock has changed. It is not part of the superblock's pages, and an erase keeps it.
    Block {
        /// Superblock.
        superblock: u32,
        /// The whole record.
        record: [u8; BLOCK_RECORD_BYTES],
    },
    /// A change of RPMB, all at once, to be durable before the device continues. It is not part of the array.
    Rpmb(RpmbUpdate),
    /// A host has written a non-volatile attribute or flag: all of these, in the form that the device reads back. To
    /// be durable before the device continues, and not part of the array.
    Settings([u8; SETTINGS_BYTES]),
}

/// A medium, as a device reads it at power-on. The errors name the place in the medium.
pub trait FlashArray {
    /// Puts the state of all slices of a superblock into `seen`.
    ///
    /// # Errors
    /// The medium cannot be read.
    fn look(&mut self, superblock: u32, seen: &mut Vec<Seen>) -> Result<(), String>;

    /// Reads a slice that was programmed: 4 KiB of data, and the rest of its spare area.
    ///
    /// # Errors
    /// It cannot be read, or is not what was written.
    fn read(&mut self, ppn: Ppn, rest: &mut [u8; SPARE_REST_BYTES], data: &mut [u8]) -> Result<Spare, String>;

    /// Whether a slice has not been programmed since it was erased.
    ///
    /// # Errors
    /// The medium cannot be read.
    fn is_blank(&mut self, ppn: Ppn) -> Result<bool, String>;

    /// The record of a superblock; `None` if it was never written.
    ///
    /// # Errors
    /// The medium cannot be read, or the record is not what was written.
    fn block_record(&mut self, superblock: u32) -> Result<Option<[u8; BLOCK_RECORD_BYTES]>, String>;

    /// The bytes that [`crate::UfsDevice::seal`] returned when the medium was made.
    ///
    /// # Errors
    /// The medium cannot be read, or the bytes are not what was written.
    fn factory(&mut self) -> Result<Vec<u8>, String>;

    /// The state of RPMB; `None` if no key was programmed.
    ///
    /// # Errors
    /// The medium cannot be read, or the state is not what was written.
    fn rpmb(&mut self) -> Result<Option<RpmbState>, String>;

    /// The newest [`Own::Settings`]; `None` if there were none.
    ///
    /// # Errors
    /// The medium cannot be read, or the settings are not what was written.
    fn settings(&mut self) -> Result<Option<[u8; SETTINGS_BYTES]>, String>;

    /// Programs up to this number are known to have reached the medium, and so has every erase before them; `None` if
    /// all have.
    fn kept(&self) -> Option<u64>;

    /// The device continues: programs up to `newest` count, and later ones have higher numbers.
    fn goes_on(&mut self, newest: u64);
}

/// A part of the state of a sealed device, for [`crate::UfsDevice::seal`].
#[derive(Clone, Copy, Debug)]
pub enum Sealed<'a> {
    /// A slice of data, whose data the caller supplies.
    Data(Ppn, Spare),
    /// A slice of metadata.
    Own(&'a OwnSlice),
    /// The record of a superblock.
    Block(u32, &'a [u8; BLOCK_RECORD_BYTES]),
}
