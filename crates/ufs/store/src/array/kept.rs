// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kept record: up to which program the array is known to have reached the disk, which start of the machine wrote
//! it, and whether the array was sealed.

use crate::disk::Disk;
use crate::error::ImageError;
use crate::layout::Format;

/// Its bytes; below, the offsets of its check and its seal.
const BYTES: usize = 40;
const CHECK: usize = 32;
const SEAL: usize = 36;

/// A crash of the machine, or a kill of the process, may cut a write at multiples of these.
const SECTOR: u64 = 512;
const MEMORY_PAGE: u64 = 4096;

/// Identifies one start of the machine; zeros if unknown, which never equals an earlier one.
pub type Boot = [u8; 16];

#[derive(Debug)]
pub(super) struct Kept {
    /// Number of the newest program known to have reached the disk.
    pub program: u64,
    /// Number of writes of the record.
    writes: u64,
    /// The present start of the machine.
    boot: Boot,
    /// The machine has not been restarted since the last write of the array.
    is_whole: bool,
    /// The array was synced after its last write.
    pub is_sealed: bool,
}

impl Kept {
    /// Reads the newer of the two records on a disk.
    ///
    /// # Errors
    /// They cannot be read, or one is damaged.
    pub(super) fn read(disk: &impl Disk, boot: Boot) -> Result<Kept, ImageError> {
        let mut kept = Kept { program: 0, writes: 0, boot, is_whole: false, is_sealed: false };
        for copy in 0..2 {
            let at = Format::kept(copy);
            let mut bytes = [0; BYTES];
            disk.read_at(&mut bytes, at)?;
            if bytes == [0; BYTES] {
                continue;
            }
            // It lies in one sector, so a crash cannot leave a wrong check.
            if bytes[CHECK..SEAL] != crc32fast::hash(&bytes[..CHECK]).to_le_bytes() {
                return Err(ImageError::Contents(format!("the kept record (byte {at} of the image) is damaged")));
            }
            let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
            if number(0) >= kept.writes {
                (kept.writes, kept.program) = (number(0), number(8));
                kept.is_whole = bytes[16..CHECK] == boot && boot != Boot::default();
                kept.is_sealed = bytes[SEAL..] == seal_of(&bytes[..SEAL]);
            }
        }
        Ok(kept)
    }

    /// The next record, and its offset.
    pub(super) fn next(&mut self) -> (u64, [u8; BYTES]) {
        self.writes += 1;
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&self.writes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.program.to_le_bytes());
        bytes[16..CHECK].copy_from_slice(&self.boot);
        let check = crc32fast::hash(&bytes[..CHECK]);
        bytes[CHECK..SEAL].copy_from_slice(&check.to_le_bytes());
        if self.is_sealed {
            let seal = seal_of(&bytes[..SEAL]);
            bytes[SEAL..].copy_from_slice(&seal);
        }
        (Format::kept(self.writes % 2), bytes)
    }

    /// Whether all programs in the array have reached the disk.
    pub(super) fn has_all(&self) -> bool {
        self.is_whole || self.is_sealed
    }

    /// Where a write of `bytes` bytes at `offset` can have been cut inside.
    pub(super) fn can_be_cut(&self, offset: u64, bytes: usize) -> Option<usize> {
        let cut_at = if self.is_whole { MEMORY_PAGE } else { SECTOR };
        let first = (cut_at - offset % cut_at) as usize;
        (!self.is_sealed && first < bytes).then_some(first)
    }
}

fn seal_of(record: &[u8]) -> [u8; BYTES - SEAL] {
    (!crc32fast::hash(record)).to_le_bytes()
}
