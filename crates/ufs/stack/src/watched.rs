// SPDX-License-Identifier: MIT OR Apache-2.0
//! An array that reports progress while a device begins from it, which takes long for a large one.

use readpath_device::{BLOCK_RECORD_BYTES, FlashArray, RpmbState, SETTINGS_BYTES, SPARE_REST_BYTES, Seen, Spare};
use readpath_flash::Ppn;

/// An array that reports each superblock the device looks at.
pub(crate) struct Watched<'a, A> {
    pub array: &'a mut A,
    /// Called with each superblock that is looked at.
    pub looked: &'a mut dyn FnMut(u32),
}

impl<A: FlashArray> FlashArray for Watched<'_, A> {
    fn look(&mut self, superblock: u32, seen: &mut Vec<Seen>) -> Result<(), String> {
        (self.looked)(superblock);
        self.array.look(superblock, seen)
    }

    fn read(&mut self, ppn: Ppn, rest: &mut [u8; SPARE_REST_BYTES], data: &mut [u8]) -> Result<Spare, String> {
        self.array.read(ppn, rest, data)
    }

    fn is_blank(&mut self, ppn: Ppn) -> Result<bool, String> {
        self.array.is_blank(ppn)
    }

    fn block_record(&mut self, superblock: u32) -> Result<Option<[u8; BLOCK_RECORD_BYTES]>, String> {
        self.array.block_record(superblock)
    }

    fn factory(&mut self) -> Result<Vec<u8>, String> {
        self.array.factory()
    }

    fn rpmb(&mut self) -> Result<Option<RpmbState>, String> {
        self.array.rpmb()
    }

    fn settings(&mut self) -> Result<Option<[u8; SETTINGS_BYTES]>, String> {
        self.array.settings()
    }

    fn kept(&self) -> Option<u64> {
        self.array.kept()
    }

    fn goes_on(&mut self, newest: u64) {
        self.array.goes_on(newest);
    }
}
