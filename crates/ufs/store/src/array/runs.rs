// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes that wait to be made together, in order: those of adjacent places are one. Units of an array wait so.

use super::FlashFile;
use crate::disk::Disk;
use crate::layout::HEAD_BYTES;
use readpath_flash::Ppn;

/// Writes in order.
#[derive(Debug, Default)]
pub(super) struct Runs {
    bytes: Vec<u8>,
    /// Offset on the disk and bytes of each run.
    runs: Vec<(u64, usize)>,
}

impl Runs {
    /// Adds `bytes`, followed by zeros up to `length`; returns them all.
    pub(super) fn add(&mut self, offset: u64, bytes: &[u8], length: usize) -> &[u8] {
        match self.runs.last_mut() {
            Some((first, before)) if *first + *before as u64 == offset => *before += length,
            _ => self.runs.push((offset, length)),
        }
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(at + length, 0);
        &self.bytes[at..]
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether a byte of the disk is among them.
    pub(super) fn hold(&self, offset: u64) -> bool {
        self.runs.iter().any(|&(first, length)| (first..first + length as u64).contains(&offset))
    }

    /// Offset and bytes of each run.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = &self.bytes[..];
        self.runs.iter().map(move |&(offset, length)| (offset, rest.split_off(..length).unwrap_or_default()))
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.runs.clear();
    }
}

impl<D: Disk> FlashFile<D> {
    /// From now on the writes of units wait until the array is settled. Before that they are lost when the process is
    /// killed.
    pub fn gather(&mut self) {
        self.gathers = true;
    }

    /// Makes the writes of all units that are complete.
    pub fn settle(&mut self) {
        if self.held.bytes() == 0 {
            return;
        }
        self.write_data();
        let held = std::mem::take(&mut self.held);
        for (offset, heads) in held.iter() {
            self.write_now(|disk| disk.write_at(heads, offset));
            if self.failure.is_some() {
                let first = ((offset - self.format.head(0)) / HEAD_BYTES as u64) as u32;
                let slices = first..first + (heads.len() / HEAD_BYTES) as u32;
                self.lost.extend(slices.map(|slice| (slice, None)));
            }
        }
        let format = self.format;
        self.moved.retain(|&(to, at)| {
            self.lost.entry(to).and_modify(|disk| *disk = Some(at));
            !held.hold(format.head(to))
        });
        self.held = held;
        self.held.clear();
    }

    /// Settles if a slice, which is about to be read, waits for it.
    pub(crate) fn settle_slice(&mut self, ppn: Ppn) {
        if self.held.hold(self.format.head(ppn.0)) {
            self.settle();
        }
    }

    /// Writes the data of slices, also of those whose units are not complete.
    pub(super) fn write_data(&mut self) {
        let data = std::mem::take(&mut self.data);
        for (offset, bytes) in data.iter() {
            self.write_now(|disk| disk.write_at(bytes, offset));
        }
        self.data = data;
        self.data.clear();
    }
}
