// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moving a logical block to another erase block, because of flips or to even out wear (Linux, drivers/mtd/ubi/wl.c:
//! `wear_leveling_worker`, and eba.c: `ubi_eba_copy_leb`).

use super::erase::Work;
use super::{Device, PebState, crc32, data_len};
use crate::write::MtdWrite;
use readpath_ubi::headers::{STATIC, VidHeader};
use readpath_ubi::io::Header;
use readpath_ubi::mtd::{MtdError, ReadOutcome, Why};
use readpath_ubi::{ReadCache, UbiError};

/// Why a copy failed.
enum NotCopied {
    /// The source cannot be read.
    Source,
    /// The target cannot be written, or cannot be read back.
    Target,
    /// The source no longer holds a mapped logical block.
    Stale,
    /// The source was erased before the attach, and no longer counts as used.
    Erased,
    Fatal(UbiError),
}

impl<E: Into<UbiError>> From<E> for NotCopied {
    fn from(e: E) -> Self {
        match e.into() {
            UbiError::Mtd(MtdError::WriteFailed { .. }) => NotCopied::Target,
            e => NotCopied::Fatal(e),
        }
    }
}

impl<M: MtdWrite, C: ReadCache> Device<M, C> {
    /// Does a move that is due.
    pub(super) fn move_one(&mut self) -> Result<Work, UbiError> {
        let Some((from, to)) = self.wear.next_move(self.options.wear_threshold) else { return Ok(Work::Idle) };
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = self.copy(from, to, &mut buffer);
        self.buffer = buffer;
        match result {
            Ok(()) => {
                self.wear.put(from, false);
                self.moves += 1;
                Ok(Work::Moved { from, to })
            }
            Err(NotCopied::Target) => {
                self.wear.put(to, true);
                Ok(Work::NotMoved { from })
            }
            Err(NotCopied::Source) => {
                self.wear.change(to, PebState::Free);
                self.wear.change(from, PebState::Erroneous);
                Ok(Work::NotMoved { from })
            }
            Err(NotCopied::Stale) => {
                self.wear.change(to, PebState::Free);
                self.wear.change(from, PebState::Protected);
                Ok(Work::NotMoved { from })
            }
            Err(NotCopied::Erased) => {
                self.wear.change(to, PebState::Free);
                Ok(Work::NotMoved { from })
            }
            Err(NotCopied::Fatal(e)) => Err(e),
        }
    }

    fn copy(&mut self, from: u32, to: u32, buffer: &mut [u8]) -> Result<(), NotCopied> {
        let mut header = match self.ubi.io_mut().read_vid(from)? {
            Header::Good { header, .. } => header,
            _ if self.was_erased(from)? => return Err(NotCopied::Erased),
            // The block was taken, but nothing has been written yet.
            Header::Empty { .. } => return Err(NotCopied::Stale),
            Header::Bad { .. } => return Err(NotCopied::Source),
        };
        let VidHeader { volume, lnum, .. } = header;
        if self.volume(volume).ok().and_then(|v| v.peb(lnum)) != Some(from) {
            return Err(NotCopied::Stale);
        }
        let page_bytes = self.ubi.layout().page_bytes;
        let read_bytes = if header.vol_type == STATIC {
            header.data_bytes.next_multiple_of(page_bytes)
        } else {
            self.ubi.layout().leb_bytes - header.data_pad
        };
        let data = &mut buffer[..read_bytes as usize];
        if self.ubi.io_mut().read_data(from, 0, data, Why::Move)? == ReadOutcome::Uncorrectable {
            return Err(NotCopied::Source);
        }
        let write_bytes = if header.vol_type == STATIC { read_bytes } else { data_len(data, page_bytes) };
        if write_bytes > 0 {
            header.data_bytes = if header.vol_type == STATIC { header.data_bytes } else { write_bytes };
            header.copy_flag = 1;
            header.data_crc = crc32(&data[..header.data_bytes as usize]);
        }
        header.sqnum = self.next_sqnum();
        self.write_vid(to, &header)?;
        match self.ubi.io_mut().read_vid(to)? {
            Header::Good { flips: false, .. } => {}
            _ => return Err(NotCopied::Target),
        }
        if write_bytes > 0 {
            self.write_data(to, 0, &data[..write_bytes as usize], Why::Move)?;
        }
        self.ubi.remap(volume, lnum, Some(to));
        Ok(())
    }
}
