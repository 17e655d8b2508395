// SPDX-License-Identifier: MIT OR Apache-2.0
//! A volume of UBI as the blocks of UBIFS: every read passes UBI and its read cache.

use crate::lebs::{LebError, LebSizes, Lebs, ReadKind};
use readpath_ubi::mtd::{Mtd, ReadOutcome};
use readpath_ubi::vtbl::FLAG_AUTORESIZE;
use readpath_ubi::{ReadCache, Ubi, UbiError};

/// Blocks that a volume has that is going to take all its device has left (Linux `ubi_autoresize`), as long as nobody
/// knows the device: more than any raw NAND has, and few enough for tables of them.
const GROWN_LEBS: u32 = 1 << 18;

/// A volume of an attached UBI device. Reads carry the number of their [`ReadKind`] as tag into the device's log.
#[derive(Debug)]
pub struct UbiVolume<M, C> {
    ubi: Ubi<M, C>,
    volume: u32,
    /// As it will be; it has `reserved` blocks.
    sizes: LebSizes,
    reserved: u32,
}

impl<M: Mtd, C: ReadCache> UbiVolume<M, C> {
    /// Volume `volume` of `ubi`. One with the flag *autoresize* is as large as UBIFS may want it: that it grows belongs
    /// to an attach that writes.
    pub fn new(ubi: Ubi<M, C>, volume: u32) -> Result<Self, UbiError> {
        let found = ubi.volume(volume)?;
        let reserved = found.record.reserved_pebs;
        let grows = found.record.flags & FLAG_AUTORESIZE != 0;
        let leb_count = if grows { reserved.max(GROWN_LEBS) } else { reserved };
        let sizes = LebSizes { leb_bytes: found.leb_bytes, leb_count, min_io_bytes: ubi.layout().page_bytes };
        Ok(UbiVolume { ubi, volume, sizes, reserved })
    }

    /// The device.
    pub fn ubi(&mut self) -> &mut Ubi<M, C> {
        &mut self.ubi
    }
}

impl<M: Mtd, C: ReadCache> Lebs for UbiVolume<M, C> {
    fn sizes(&self) -> LebSizes {
        self.sizes
    }

    fn peb(&self, lnum: u32) -> Option<u32> {
        self.ubi.volume(self.volume).ok()?.peb(lnum)
    }

    fn read(&mut self, lnum: u32, offset: u32, buf: &mut [u8], what: ReadKind) -> Result<(), LebError> {
        if (self.reserved..self.sizes.leb_count).contains(&lnum) {
            // What it grows by is not mapped, and UBI does not know of it yet.
            buf.fill(0xFF);
            return Ok(());
        }
        match self.ubi.read(self.volume, lnum, offset, buf, what as u16) {
            Ok(ReadOutcome::Uncorrectable) => {
                let message = format!("{} bytes with more bit errors than the code corrects", buf.len());
                Err(LebError { message, uncorrectable: true })
            }
            Ok(_) => Ok(()),
            Err(e) => Err(LebError { message: e.to_string(), uncorrectable: false }),
        }
    }
}
