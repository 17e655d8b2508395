// SPDX-License-Identifier: MIT OR Apache-2.0
//! A volume of UBI as the blocks of UBIFS: every read passes UBI and its read cache.

use crate::lebs::{LebError, LebSizes, Lebs, ReadKind};
use readpath_ubi::mtd::{Mtd, ReadOutcome};
use readpath_ubi::vtbl::FLAG_AUTORESIZE;
use readpath_ubi::{ReadCache, Ubi, UbiError};

/// Blocks of a volume that will take all space left on its device (Linux `ubi_autoresize`), while the device is
/// unknown: more than any raw NAND has, and few enough for tables of them.
const GROWN_LEBS: u32 = 1 << 18;

/// A volume of an attached UBI device. Reads carry the number of their [`ReadKind`] as tag into the device's log.
#[derive(Debug)]
pub struct UbiVolume<M, C> {
    ubi: Ubi<M, C>,
    volume: u32,
    /// Sizes after its growth; it has `reserved` blocks now.
    sizes: LebSizes,
    reserved: u32,
}

impl<M: Mtd, C: ReadCache> UbiVolume<M, C> {
    /// Volume `volume` of `ubi`. One with the flag *autoresize* has its future size, which an attach with write
    /// access would give it.
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
            // Blocks beyond the present size are not mapped, and UBI does not know them yet.
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
