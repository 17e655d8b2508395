// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing logical blocks of dynamic volumes (Linux, drivers/mtd/ubi/eba.c and kapi.c).

use super::{Device, crc32};
use crate::write::MtdWrite;
use readpath_ubi::headers::{DYNAMIC, LAYOUT_VOLUME, VERSION, VidHeader, compat};
use readpath_ubi::io::{Header, RETRIES};
use readpath_ubi::layout::HEADER_BYTES;
use readpath_ubi::mtd::{MtdError, ReadOutcome, Why};
use readpath_ubi::{ReadCache, UbiError};

impl<M: MtdWrite, C: ReadCache> Device<M, C> {
    /// Writes whole pages of a logical block at `offset`, and maps it if it is not mapped. Pages have to be erased,
    /// and are written front to back, as NAND requires: when a program fails, the data before `offset` and `data` are
    /// rescued to another erase block, but nothing behind them.
    pub fn write(&mut self, volume: u32, lnum: u32, offset: u32, data: &[u8]) -> Result<(), UbiError> {
        self.check_change(volume, lnum, offset, data.len())?;
        match self.proven_peb(volume, lnum)? {
            Some(peb) if data.is_empty() => {
                let what = format!("it is mapped already, to PEB {peb}");
                Err(UbiError::Leb { volume, lnum, what })
            }
            Some(peb) => match self.write_data(peb, offset, data, Why::Leb { volume, lnum, tag: 0 }) {
                Err(MtdError::WriteFailed { .. }) => self.recover(peb, offset, data),
                done => Ok(done?),
            },
            None => {
                let header = self.dynamic_header(volume, lnum)?;
                self.write_new(header, offset, data)
            }
        }
    }

    /// Maps a logical block to an erased block, so that it reads as 0xFF and an older version cannot return.
    pub fn map(&mut self, volume: u32, lnum: u32) -> Result<(), UbiError> {
        self.write(volume, lnum, 0, &[])
    }

    /// Drops the contents of a logical block. The erase block is erased later; after a power cut before that, the old
    /// contents return.
    pub fn unmap(&mut self, volume: u32, lnum: u32) -> Result<(), UbiError> {
        self.check_change(volume, lnum, 0, 0)?;
        if let Some(peb) = self.ubi.remap(volume, lnum, None) {
            self.wear.put(peb, false);
        }
        Ok(())
    }

    /// Drops the contents of a logical block for good: erases at once, including all blocks queued before it.
    pub fn erase(&mut self, volume: u32, lnum: u32) -> Result<(), UbiError> {
        self.unmap(volume, lnum)?;
        self.flush()
    }

    /// Replaces the contents of a logical block with `data`, whole pages: after a power cut it has either the old or
    /// the new contents.
    pub fn change(&mut self, volume: u32, lnum: u32, data: &[u8]) -> Result<(), UbiError> {
        self.check_change(volume, lnum, 0, data.len())?;
        if data.is_empty() {
            self.unmap(volume, lnum)?;
            return self.map(volume, lnum);
        }
        let mut header = self.dynamic_header(volume, lnum)?;
        header.copy_flag = 1;
        header.data_bytes = data.len() as u32;
        header.data_crc = crc32(data);
        self.write_new(header, 0, data)
    }

    /// Writes header and data to a new erase block, maps the logical block to it and queues the old one for erasure.
    pub(super) fn write_new(&mut self, mut header: VidHeader, offset: u32, data: &[u8]) -> Result<(), UbiError> {
        let VidHeader { volume, lnum, .. } = header;
        let mut tries = 0;
        loop {
            header.sqnum = self.next_sqnum();
            let peb = self.take_peb()?;
            let why = Why::Leb { volume, lnum, tag: 0 };
            let written = self.write_vid(peb, &header).and_then(|()| match data.is_empty() {
                true => Ok(()),
                false => self.write_data(peb, offset, data, why),
            });
            match written {
                Ok(()) => {
                    if let Some(old) = self.ubi.remap(volume, lnum, Some(peb)) {
                        self.wear.put(old, false);
                    }
                    return Ok(());
                }
                Err(MtdError::WriteFailed { .. }) if tries < RETRIES => {
                    self.wear.put(peb, true);
                    tries += 1;
                }
                Err(e) => {
                    self.wear.put(peb, true);
                    return Err(e.into());
                }
            }
        }
    }

    /// A program of a mapped block failed: moves the data before it, and the new data, to another block.
    fn recover(&mut self, peb: u32, offset: u32, data: &[u8]) -> Result<(), UbiError> {
        let Header::Good { mut header, .. } = self.ubi.io_mut().read_vid(peb)? else {
            let offset = self.ubi.layout().vid_offset;
            return Err(UbiError::Peb { peb, offset, what: "VID header: needed to rescue data, but damaged".into() });
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = (|| {
            let all = &mut buffer[..offset as usize + data.len()];
            let before = self.ubi.io_mut().read_data(peb, 0, &mut all[..offset as usize], Why::Recover)?;
            if before == ReadOutcome::Uncorrectable {
                let what = format!("{offset} bytes before a failed write cannot be read to be rescued");
                return Err(UbiError::Peb { peb, offset: self.ubi.layout().data_offset, what });
            }
            all[offset as usize..].copy_from_slice(data);
            header.copy_flag = 1;
            header.data_bytes = all.len() as u32;
            header.data_crc = crc32(all);
            self.write_new(header, 0, all)
        })();
        self.buffer = buffer;
        result?;
        // `write_new` has queued the old block; it is suspicious.
        self.wear.put(peb, true);
        self.recoveries += 1;
        Ok(())
    }

    /// Writes to the data area and notifies the cache.
    pub(super) fn write_data(&mut self, peb: u32, offset: u32, data: &[u8], why: Why) -> Result<(), MtdError> {
        let offset = self.ubi.layout().data_offset + offset;
        self.ubi.cache.written(peb, offset, data.len() as u32);
        self.ubi.mtd_mut().write(peb, offset, data, why)
    }

    /// Writes a VID header, in whole sub-pages.
    pub(super) fn write_vid(&mut self, peb: u32, header: &VidHeader) -> Result<(), MtdError> {
        let layout = self.ubi.layout();
        let start = layout.vid_read_offset();
        let mut bytes = vec![0; layout.vid_write_bytes() as usize];
        bytes[(layout.vid_offset - start) as usize..][..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        self.ubi.mtd_mut().write(peb, start, &bytes, Why::VidHeader)
    }

    pub(super) fn dynamic_header(&self, volume: u32, lnum: u32) -> Result<VidHeader, UbiError> {
        Ok(VidHeader {
            version: VERSION,
            vol_type: DYNAMIC,
            compat: if volume == LAYOUT_VOLUME { compat::REJECT } else { 0 },
            volume,
            lnum,
            data_pad: self.volume(volume)?.record.data_pad,
            ..VidHeader::default()
        })
    }

    /// Checks that a logical block may be changed like that.
    fn check_change(&self, volume: u32, lnum: u32, offset: u32, len: usize) -> Result<(), UbiError> {
        self.check_writable()?;
        let vol = self.volume(volume)?;
        vol.check_range(lnum, offset, len)?;
        let wrong = |what: String| Err(UbiError::Leb { volume, lnum, what });
        if volume == LAYOUT_VOLUME {
            return wrong("the volume table is changed only together with volumes".into());
        }
        if vol.record.vol_type != DYNAMIC {
            return wrong("logical blocks of a static volume cannot be changed, only the whole volume".into());
        }
        if vol.record.update_marker {
            return wrong("an update of the volume was interrupted: it has to be updated as a whole".into());
        }
        let page = self.ubi.layout().page_bytes as usize;
        if !(offset as usize).is_multiple_of(page) || !len.is_multiple_of(page) {
            return wrong(format!("{len} bytes at {offset} are not whole pages of {page} bytes"));
        }
        Ok(())
    }
}
