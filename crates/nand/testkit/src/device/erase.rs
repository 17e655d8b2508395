// SPDX-License-Identifier: MIT OR Apache-2.0
//! Background work, one step at a time: erasing blocks that are no longer needed, testing suspicious ones, marking
//! bad ones, and moving logical blocks (Linux, drivers/mtd/ubi/wl.c: `erase_worker`, `do_sync_erase`; io.c:
//! `torture_peb`).

use super::{Device, read_only};
use crate::write::MtdWrite;
use readpath_ubi::headers::{EcHeader, MAX_ERASE_COUNTER};
use readpath_ubi::io::RETRIES;
use readpath_ubi::layout::HEADER_BYTES;
use readpath_ubi::mtd::{MtdError, ReadOutcome, Why};
use readpath_ubi::{ReadCache, UbiError};

/// Result of a step of background work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// There is nothing to do.
    Idle,
    /// A block was erased and is free.
    Erased {
        /// Erase block.
        peb: u32,
    },
    /// A block could not be erased or failed its test, and was marked bad.
    MarkedBad {
        /// Erase block.
        peb: u32,
    },
    /// A logical block was moved.
    Moved {
        /// From this erase block, which will be erased.
        from: u32,
        /// To this one.
        to: u32,
    },
    /// A move was given up; the logical block stays in place.
    NotMoved {
        /// From this erase block.
        from: u32,
    },
}

impl<M: MtdWrite, C: ReadCache> Device<M, C> {
    /// Does one step of background work. Erasures come first, in the order in which blocks were queued; then moves
    /// because of flips; then moves that even out wear.
    pub fn work(&mut self) -> Result<Work, UbiError> {
        self.check_writable()?;
        if self.wear.next_erase().is_some() { self.erase_one() } else { self.move_one() }
    }

    /// Works until there is nothing left to do.
    pub fn work_all(&mut self) -> Result<(), UbiError> {
        while self.work()? != Work::Idle {}
        Ok(())
    }

    /// Erases all queued blocks: unmapped contents then cannot return after a power cut.
    pub fn flush(&mut self) -> Result<(), UbiError> {
        self.check_writable()?;
        while self.wear.next_erase().is_some() {
            self.erase_one()?;
        }
        Ok(())
    }

    /// A free block to be filled; erases one if there is none.
    pub(super) fn take_peb(&mut self) -> Result<u32, UbiError> {
        loop {
            if let Some(peb) = self.wear.take() {
                return Ok(peb);
            }
            if self.wear.next_erase().is_none() {
                let what = "no free PEB: no erase block is free and none waits to be erased";
                return Err(UbiError::Refused(what.into()));
            }
            self.erase_one()?;
        }
    }

    /// Erases the block at the head of the queue, or marks it bad.
    pub(super) fn erase_one(&mut self) -> Result<Work, UbiError> {
        let Some((peb, torture)) = self.wear.next_erase() else { return Ok(Work::Idle) };
        match self.erase_peb(peb, torture) {
            Ok(ec) => {
                self.wear.erased(peb, ec);
                Ok(Work::Erased { peb })
            }
            Err(UbiError::Mtd(MtdError::EraseFailed { .. } | MtdError::WriteFailed { .. })) => {
                self.mark_bad(peb)?;
                Ok(Work::MarkedBad { peb })
            }
            Err(e) => Err(e),
        }
    }

    /// Erases the superblocks of all fastmaps before any other change, because they would mislead a later attach. The
    /// oldest goes first, so that a cut in between leaves none older than the newest (Linux, `ubi_wl_init`, erases
    /// those that it does not use in the same way).
    pub(super) fn end_fastmaps(&mut self) -> Result<(), UbiError> {
        for peb in self.ubi.found().anchors.clone() {
            self.wear.erase_next(peb);
            self.erase_one()?;
        }
        Ok(())
    }

    /// Erases a block and writes its EC header.
    fn erase_peb(&mut self, peb: u32, torture: bool) -> Result<u32, UbiError> {
        let mut ec = self.wear.ec(peb);
        if torture {
            ec += self.torture(peb)?;
        }
        self.erase_with_retries(peb)?;
        ec += 1;
        if u64::from(ec) > MAX_ERASE_COUNTER {
            let what = format!("erase counter {ec} is above {MAX_ERASE_COUNTER}");
            return Err(UbiError::Peb { peb, offset: 0, what });
        }
        let header = EcHeader::new(self.ubi.layout(), ec, self.image_seq);
        let (subpage, mut bytes) = (self.ubi.layout().subpage_bytes as usize, header.to_bytes().to_vec());
        bytes.resize(HEADER_BYTES.next_multiple_of(subpage), 0);
        self.ubi.mtd_mut().write(peb, 0, &bytes, Why::EcHeader)?;
        Ok(ec)
    }

    pub(super) fn erase_with_retries(&mut self, peb: u32) -> Result<(), MtdError> {
        self.ubi.cache.erased(peb);
        let mut tries = 0;
        loop {
            match self.ubi.mtd_mut().erase(peb, Why::Erase) {
                Err(MtdError::EraseFailed { .. }) if tries < RETRIES => tries += 1,
                done => return done,
            }
        }
    }

    /// Erases a block with doubtful contents and writes patterns to it; returns how often it was erased. A failure is
    /// one of the block.
    fn torture(&mut self, peb: u32) -> Result<u32, UbiError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(self.ubi.layout().peb_bytes as usize, 0);
        let result = self.torture_with(peb, &mut buffer);
        buffer.truncate(self.ubi.layout().leb_bytes as usize);
        self.buffer = buffer;
        result
    }

    fn torture_with(&mut self, peb: u32, buffer: &mut [u8]) -> Result<u32, UbiError> {
        const PATTERNS: [u8; 3] = [0xA5, 0x5A, 0x00];
        for pattern in PATTERNS {
            self.erase_with_retries(peb)?;
            for expected in [0xFF, pattern] {
                if expected == pattern {
                    buffer.fill(pattern);
                    self.ubi.mtd_mut().write(peb, 0, buffer, Why::Erase)?;
                }
                let outcome = self.ubi.io_mut().read(peb, 0, buffer, Why::Erase)?;
                if outcome >= ReadOutcome::BitFlips || buffer.iter().any(|&b| b != expected) {
                    return Err(MtdError::EraseFailed { peb }.into());
                }
            }
        }
        Ok(PATTERNS.len() as u32)
    }

    /// Marks a block as bad, and takes a block of the reserve for it.
    fn mark_bad(&mut self, peb: u32) -> Result<(), UbiError> {
        if self.bad_reserve == 0 && self.available == 0 {
            let what = format!("PEB {peb} went bad and no reserved PEB is left");
            let refused = read_only(&what);
            self.read_only = Some(what);
            return Err(refused);
        }
        self.ubi.mtd_mut().mark_bad(peb)?;
        self.wear.bad(peb);
        if self.bad_reserve > 0 {
            self.bad_reserve -= 1;
        } else {
            self.available -= 1;
        }
        self.fill_bad_reserve();
        Ok(())
    }

    /// Fills the reserve for bad blocks from the available ones, as far as possible.
    pub(super) fn fill_bad_reserve(&mut self) {
        let bad = self.pebs() - self.wear.good;
        let level = self.options.bad_peb_limit(self.pebs()).saturating_sub(bad);
        let more = level.saturating_sub(self.bad_reserve).min(self.available);
        self.bad_reserve += more;
        self.available -= more;
        let excess = self.bad_reserve.saturating_sub(level);
        self.bad_reserve -= excess;
        self.available += excess;
    }
}
