// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kept record: up to which program the array is known to have reached the disk, who wrote it last, and whether
//! everything was written then. It knows no program.

use crate::disk::Disk;
use crate::error::ImageError;
use crate::layout::Format;

/// Its bytes, and where its check and its seal begin.
const BYTES: usize = 40;
const CHECK: usize = 32;
const SEAL: usize = 36;

/// Where a crash of the machine, or a kill of the process, may cut a write: at multiples of these.
const SECTOR: u64 = 512;
const MEMORY_PAGE: u64 = 4096;

/// Identifies one start of the machine; zeros if it is not known, which never equals the one before.
pub type Boot = [u8; 16];

/// See the module.
#[derive(Debug)]
pub(super) struct Kept {
    /// Number of the newest program that is known to have reached the disk.
    pub program: u64,
    /// How often it was written.
    writes: u64,
    /// The start of the machine that this is.
    boot: Boot,
    /// The machine has not been started anew since the array was written last.
    is_whole: bool,
    /// The array was synced when all had been written, and nothing was written since.
    pub is_sealed: bool,
}

impl Kept {
    /// What the newer of the two records on a disk says.
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
            // It lies in one sector, so no crash leaves a wrong check.
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

    /// The next record, and where it is written.
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

    /// Whether all programs that the array shows have reached the disk.
    pub(super) fn has_all(&self) -> bool {
        self.is_whole || self.is_sealed
    }

    /// Whether a write to so many bytes at `offset` can have been cut among them.
    pub(super) fn can_be_cut(&self, offset: u64, bytes: u64) -> bool {
        let cut_at = if self.is_whole { MEMORY_PAGE } else { SECTOR };
        !self.is_sealed && offset % cut_at + bytes > cut_at
    }
}

fn seal_of(record: &[u8]) -> [u8; BYTES - SEAL] {
    (!crc32fast::hash(record)).to_le_bytes()
}
