// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading logical blocks, through the cache (Linux, drivers/mtd/ubi/eba.c: `ubi_eba_read_leb`).

use super::{ReadCache, Ubi, Volume};
use crate::crc::crc32;
use crate::error::UbiError;
use crate::headers::STATIC;
use crate::io::Header;
use crate::mtd::{Mtd, ReadOutcome, Why};

impl<M: Mtd, C: ReadCache> Ubi<M, C> {
    /// Reads `out.len()` bytes of a logical block at `offset`; `tag` only goes to the log of flash operations. A logical
    /// block that is not mapped reads as 0xFF, without flash. `out` is filled whatever the outcome, so that a reader with
    /// checksums of its own may go on after [`ReadOutcome::Uncorrectable`].
    pub fn read(
        &mut self,
        volume: u32,
        lnum: u32,
        offset: u32,
        out: &mut [u8],
        tag: u16,
    ) -> Result<ReadOutcome, UbiError> {
        let vol = self.volume(volume)?;
        check_range(vol, lnum, offset, out.len())?;
        let Some(peb) = vol.peb(lnum) else {
            out.fill(0xFF);
            return Ok(ReadOutcome::Clean);
        };
        let why = Why::Leb { volume, lnum, tag };
        let outcome = self.read_cached(peb, self.io.layout.data_offset + offset, out, why)?;
        Ok(outcome)
    }

    /// Whether a logical block is mapped.
    pub fn is_mapped(&self, volume: u32, lnum: u32) -> Result<bool, UbiError> {
        let vol = self.volume(volume)?;
        check_range(vol, lnum, 0, 0)?;
        Ok(vol.peb(lnum).is_some())
    }

    /// Reads `out` at byte `at` of an erase block.
    #[inline]
    fn read_cached(&mut self, peb: u32, at: u32, out: &mut [u8], why: Why) -> Result<ReadOutcome, UbiError> {
        let page_bytes = self.io.layout.page_bytes;
        let (page, column) = (at / page_bytes, (at % page_bytes) as usize);
        let end = column + out.len();
        if out.len() >= page_bytes as usize || end > page_bytes as usize {
            self.cache.not_asked();
            return Ok(self.io.read(peb, at, out, why)?);
        }
        if let Some(bytes) = self.cache.lookup(peb, page) {
            out.copy_from_slice(&bytes[column..end]);
            return Ok(ReadOutcome::Clean);
        }
        if let Some(room) = self.cache.room(peb, page) {
            let outcome = self.io.read(peb, page * page_bytes, room, why)?;
            if outcome != ReadOutcome::Uncorrectable {
                out.copy_from_slice(&room[column..end]);
                self.cache.filled(peb, page);
                return Ok(outcome);
            }
            // Another part of the page may be at fault: the request itself decides.
        }
        Ok(self.io.read(peb, at, out, why)?)
    }

    /// Reads a whole static volume and compares the checksum of each logical block; the first that is damaged is the
    /// error. Linux does so when a static volume is opened (`ubi_check_volume`, drivers/mtd/ubi/misc.c).
    pub fn check_static(&mut self, volume: u32) -> Result<(), UbiError> {
        let vol = self.volume(volume)?;
        if vol.record.vol_type != STATIC {
            return Err(UbiError::Leb { volume, lnum: 0, what: "only static volumes have checksums of data".into() });
        }
        let mut data = vec![0; vol.leb_bytes as usize];
        for lnum in 0..vol.used_lebs {
            let Some(peb) = self.volume(volume)?.peb(lnum) else {
                return Err(UbiError::Leb { volume, lnum, what: "it is missing in a static volume".into() });
            };
            let Header::Good { header, .. } = self.io.read_vid(peb)? else {
                let offset = self.io.layout.vid_offset;
                return Err(UbiError::Peb { peb, offset, what: "VID header: it was good at the attach".into() });
            };
            let data = &mut data[..header.data_bytes as usize];
            self.io.read_data(peb, 0, data, Why::Check)?;
            let crc = crc32(data);
            if crc != header.data_crc {
                let what = format!("data CRC {crc:#010x} instead of {:#010x} (LEB {lnum})", header.data_crc);
                return Err(UbiError::Peb { peb, offset: self.io.layout.data_offset, what });
            }
        }
        Ok(())
    }
}

/// Whether `len` bytes at `offset` are inside of a logical block that the volume has.
pub(super) fn check_range(vol: &Volume, lnum: u32, offset: u32, len: usize) -> Result<(), UbiError> {
    let wrong = |what| Err(UbiError::Leb { volume: vol.id, lnum, what });
    if lnum >= vol.record.reserved_pebs {
        return wrong(format!("the volume has {} LEBs", vol.record.reserved_pebs));
    }
    if u64::from(offset) + len as u64 > u64::from(vol.leb_bytes) {
        return wrong(format!("{len} bytes at {offset} end beyond its {} bytes", vol.leb_bytes));
    }
    Ok(())
}
