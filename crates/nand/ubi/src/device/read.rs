// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading logical blocks, through the cache (Linux, drivers/mtd/ubi/eba.c: `ubi_eba_read_leb`).

use super::{Ubi, Volume};
use crate::cache::{Media, Page, ReadCache};
use crate::crc::crc32;
use crate::error::UbiError;
use crate::headers::{STATIC, VidHeader};
use crate::io::{Header, Io};
use crate::mtd::{Mtd, MtdError, ReadOutcome, Why};

impl<M: Mtd, C: ReadCache> Ubi<M, C> {
    /// Reads `out.len()` bytes of a logical block at `offset`; `tag` only goes to the log of flash operations. An
    /// unmapped logical block reads as 0xFF, without flash. `out` is filled whatever the outcome, so that a reader
    /// with checksums of its own may continue after [`ReadOutcome::Uncorrectable`].
    pub fn read(
        &mut self,
        volume: u32,
        lnum: u32,
        offset: u32,
        out: &mut [u8],
        tag: u16,
    ) -> Result<ReadOutcome, UbiError> {
        let vol = self.volume(volume)?;
        vol.check_range(lnum, offset, out.len())?;
        if vol.record.update_marker {
            let what = "an update of the volume was interrupted: what it holds is not complete".into();
            return Err(UbiError::Leb { volume, lnum, what });
        }
        let is_static = vol.record.vol_type == STATIC;
        let Some(peb) = self.proven_peb(volume, lnum)? else {
            out.fill(0xFF);
            return Ok(ReadOutcome::Clean);
        };
        let why = Why::Leb { volume, lnum, tag };
        let mut outcome = self.read_cached(peb, self.io.layout.data_offset + offset, out, why)?;
        if outcome == ReadOutcome::Uncorrectable && is_static {
            outcome = self.read_checked(volume, peb, offset, out)?;
        }
        Ok(outcome)
    }

    /// The block of flash of a logical block. If it comes from a fastmap, its VID header is read, once for each
    /// logical block: a block that was unmapped after the fastmap was written may have been erased (Linux,
    /// drivers/mtd/ubi/eba.c: `check_mapping`).
    #[inline]
    pub fn proven_peb(&mut self, volume: u32, lnum: u32) -> Result<Option<u32>, UbiError> {
        let vol = self.volume(volume)?;
        match vol.peb(lnum) {
            Some(peb) if self.by_fastmap && vol.proven.get(lnum as usize) != Some(&true) => {
                self.prove(volume, lnum, peb)
            }
            peb => Ok(peb),
        }
    }

    #[cold]
    fn prove(&mut self, volume: u32, lnum: u32, peb: u32) -> Result<Option<u32>, UbiError> {
        let is_there = match self.io.read_vid(peb)? {
            Header::Good { header, .. } if (header.volume, header.lnum) == (volume, lnum) => true,
            Header::Good { header, .. } => {
                let VidHeader { volume: other, lnum: other_lnum, .. } = header;
                let what = format!(
                    "VID header: LEB {other_lnum} of volume {other}, where the fastmap has LEB {lnum} of volume \
                     {volume}"
                );
                return Err(UbiError::Peb { peb, offset: self.io.layout.vid_offset, what });
            }
            Header::Empty { .. } | Header::Bad { .. } => false,
        };
        let proven = &mut self.volume_mut(volume)?.proven;
        if proven.len() <= lnum as usize {
            proven.resize(lnum as usize + 1, false);
        }
        proven[lnum as usize] = true;
        if is_there {
            return Ok(Some(peb));
        }
        self.remap(volume, lnum, None);
        Ok(None)
    }

    /// A read of a static volume with too many errors: the checksum of the whole logical block decides.
    fn read_checked(&mut self, volume: u32, peb: u32, offset: u32, out: &mut [u8]) -> Result<ReadOutcome, UbiError> {
        if let Header::Good { header, .. } = self.io.read_vid(peb)? {
            let mut data = vec![0; header.data_bytes as usize];
            self.io.read_data(peb, 0, &mut data, Why::Check)?;
            let end = offset as usize + out.len();
            if crc32(&data) == header.data_crc && end <= data.len() {
                out.copy_from_slice(&data[offset as usize..end]);
                return Ok(ReadOutcome::BitFlips);
            }
        }
        self.volume_mut(volume)?.corrupted = true;
        Ok(ReadOutcome::Uncorrectable)
    }

    /// Whether a logical block is mapped.
    pub fn is_mapped(&self, volume: u32, lnum: u32) -> Result<bool, UbiError> {
        let vol = self.volume(volume)?;
        vol.check_range(lnum, 0, 0)?;
        Ok(vol.peb(lnum).is_some())
    }

    /// Reads `out` at byte `at` of an erase block, through the cache.
    #[inline]
    fn read_cached(&mut self, peb: u32, at: u32, out: &mut [u8], why: Why) -> Result<ReadOutcome, UbiError> {
        if out.is_empty() {
            return Ok(ReadOutcome::Clean);
        }
        let bytes = out.len() as u32;
        let mut flash = Flash { io: &mut self.io, why, out, start: at, outcome: ReadOutcome::Clean };
        self.cache.read(&mut flash, peb, at, bytes)?;
        Ok(flash.outcome)
    }

    /// Reads a whole static volume and compares the checksum of each logical block; the first damaged one is the
    /// error. Linux does so when a static volume is opened (`ubi_check_volume`, drivers/mtd/ubi/misc.c).
    pub fn check_static(&mut self, volume: u32) -> Result<(), UbiError> {
        let vol = self.volume(volume)?;
        if vol.record.vol_type != STATIC {
            return Err(UbiError::Leb { volume, lnum: 0, what: "only static volumes have checksums of data".into() });
        }
        for lnum in 0..vol.used_lebs {
            self.check_static_leb(volume, lnum)?;
        }
        Ok(())
    }

    /// Compares the checksum of one logical block of a static volume; returns its erase block and number of bytes.
    pub(super) fn check_static_leb(&mut self, volume: u32, lnum: u32) -> Result<(u32, u32), UbiError> {
        let vol = self.volume(volume)?;
        let leb_bytes = vol.leb_bytes;
        let Some(peb) = vol.peb(lnum) else {
            return Err(UbiError::Leb { volume, lnum, what: "it is missing in a static volume".into() });
        };
        let offset = self.io.layout.vid_offset;
        let Header::Good { header, .. } = self.io.read_vid(peb)? else {
            return Err(UbiError::Peb { peb, offset, what: "VID header: it was good at the attach".into() });
        };
        // With a fastmap the expected size may be smaller.
        if header.data_bytes > leb_bytes {
            let what = format!("VID header: {} bytes of data in a LEB of {leb_bytes}", header.data_bytes);
            return Err(UbiError::Peb { peb, offset, what });
        }
        let mut data = vec![0; header.data_bytes as usize];
        self.io.read_data(peb, 0, &mut data, Why::Check)?;
        let crc = crc32(&data);
        if crc != header.data_crc {
            let what = format!("data CRC {crc:#010x} instead of {:#010x} (LEB {lnum})", header.data_crc);
            return Err(UbiError::Peb { peb, offset: self.io.layout.data_offset, what });
        }
        Ok((peb, header.data_bytes))
    }
}

/// Flash and the caller's buffer, for the cache.
struct Flash<'a, M> {
    io: &'a mut Io<M>,
    why: Why,
    out: &'a mut [u8],
    /// Offset of `out` in the erase block.
    start: u32,
    /// The worst outcome so far.
    outcome: ReadOutcome,
}

impl<M: Mtd> Media for Flash<'_, M> {
    type Error = MtdError;

    fn fill(&mut self, page: Page, line: &mut [u8]) -> Result<(), MtdError> {
        let (peb, offset) = (page.peb(), page.number() * self.io.layout.page_bytes);
        match self.io.read(peb, offset, line, self.why)? {
            // Not an error of this read: the fault may be in other bytes of the page.
            ReadOutcome::Uncorrectable => Err(MtdError::Uncorrectable { peb, offset }),
            outcome => {
                self.outcome = self.outcome.max(outcome);
                Ok(())
            }
        }
    }

    #[inline]
    fn direct(&mut self, peb: u32, offset: u32, bytes: u32) -> Result<(), MtdError> {
        let out = &mut self.out[(offset - self.start) as usize..][..bytes as usize];
        self.outcome = self.outcome.max(self.io.read(peb, offset, out, self.why)?);
        Ok(())
    }

    #[inline]
    fn copy(&mut self, line: &[u8], from: u32, offset: u32, bytes: u32) {
        let out = &mut self.out[(offset - self.start) as usize..][..bytes as usize];
        out.copy_from_slice(&line[from as usize..][..bytes as usize]);
    }
}

impl Volume {
    /// Checks that `len` bytes at `offset` are inside a logical block of the volume.
    pub fn check_range(&self, lnum: u32, offset: u32, len: usize) -> Result<(), UbiError> {
        let wrong = |what| Err(UbiError::Leb { volume: self.id, lnum, what });
        if lnum >= self.record.reserved_pebs {
            return wrong(format!("the volume has {} LEBs", self.record.reserved_pebs));
        }
        if u64::from(offset) + len as u64 > u64::from(self.leb_bytes) {
            return wrong(format!("{len} bytes at {offset} end beyond its {} bytes", self.leb_bytes));
        }
        Ok(())
    }
}
