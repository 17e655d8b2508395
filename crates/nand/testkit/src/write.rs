// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw flash that can be written. Offsets count from the start of the erase block.

use readpath_ubi::mtd::{Logged, Mtd, MtdError, Op, Why};

/// Flash whose blocks are written in whole sub-pages and erased as a whole (Linux, include/linux/mtd/mtd.h:
/// `mtd_write`, `mtd_erase`, `mtd_block_markbad`).
pub trait MtdWrite: Mtd {
    /// Programs `data`, whole sub-pages that are erased.
    fn write(&mut self, peb: u32, offset: u32, data: &[u8], why: Why) -> Result<(), MtdError>;

    /// Erases a block.
    fn erase(&mut self, peb: u32, why: Why) -> Result<(), MtdError>;

    /// Marks a block bad, for ever.
    fn mark_bad(&mut self, peb: u32) -> Result<(), MtdError>;
}

impl<M: MtdWrite + ?Sized> MtdWrite for &mut M {
    fn write(&mut self, peb: u32, offset: u32, data: &[u8], why: Why) -> Result<(), MtdError> {
        (**self).write(peb, offset, data, why)
    }

    fn erase(&mut self, peb: u32, why: Why) -> Result<(), MtdError> {
        (**self).erase(peb, why)
    }

    fn mark_bad(&mut self, peb: u32) -> Result<(), MtdError> {
        (**self).mark_bad(peb)
    }
}

impl<M: MtdWrite> MtdWrite for Logged<M> {
    fn write(&mut self, peb: u32, offset: u32, data: &[u8], why: Why) -> Result<(), MtdError> {
        let done = self.inner.write(peb, offset, data, why);
        self.note(Op::Write, peb, offset, data.len() as u32, why);
        done
    }

    fn erase(&mut self, peb: u32, why: Why) -> Result<(), MtdError> {
        let done = self.inner.erase(peb, why);
        self.note(Op::Erase, peb, 0, self.inner.geometry().peb_bytes, why);
        done
    }

    fn mark_bad(&mut self, peb: u32) -> Result<(), MtdError> {
        self.inner.mark_bad(peb)
    }
}
