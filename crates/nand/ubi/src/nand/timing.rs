// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times of operations on raw NAND. One chip behind one bus, one operation after the other, as Linux's raw NAND layer
//! drives it. It knows no data.
//!
//! A read of a page consists of command and address; the array's time tR; the bytes over the bus. If the controller
//! can check single ECC steps ("sub-page reads", `NAND_SUBPAGE_READ` in Linux, drivers/mtd/nand/raw/nand_base.c),
//! only the requested steps and their check bytes are moved; otherwise the page and all check bytes.

use crate::mtd::Geometry;
use readpath_kit::Ns;

/// Times and error correction of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// tR: from the array into the page register.
    pub read_page: Ns,
    /// Bus cycle: one byte, in picoseconds.
    pub cycle_ps: u32,
    /// Bus cycles of command and address of a page operation.
    pub command_cycles: u32,
    /// Bytes of data of an ECC step.
    pub ecc_step_bytes: u32,
    /// Check bytes of an ECC step.
    pub ecc_check_bytes: u32,
    /// Driver: each call.
    pub call: Ns,
    /// Driver: each page, such as an interrupt and waking the waiting thread.
    pub page: Ns,
    /// Whether single steps can be read.
    pub subpage_reads: bool,
}

impl Timing {
    fn cycles(&self, count: u64) -> u64 {
        count * u64::from(self.cycle_ps) / 1000
    }

    /// ECC steps that `len` bytes at byte `column` of a page touch.
    fn steps(&self, column: u32, len: u32) -> u32 {
        if len == 0 {
            return 0;
        }
        (column + len - 1) / self.ecc_step_bytes - column / self.ecc_step_bytes + 1
    }

    /// A read of `len` bytes at `offset` of a block.
    pub fn read(&self, geometry: &Geometry, offset: u32, len: u32) -> Ns {
        let page_bytes = geometry.page_bytes;
        let (mut ns, mut at, end) = (self.call.0, offset, offset + len);
        while at < end {
            let column = at % page_bytes;
            let piece = (page_bytes - column).min(end - at);
            let steps =
                if self.subpage_reads { self.steps(column, piece) } else { page_bytes.div_ceil(self.ecc_step_bytes) };
            let moved = u64::from(steps) * u64::from(self.ecc_step_bytes + self.ecc_check_bytes);
            ns += self.page.0 + self.read_page.0 + self.cycles(u64::from(self.command_cycles) + moved);
            at += piece;
        }
        Ns(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nand::preset;

    #[test]
    fn parts_of_a_read_add_up() {
        let (geometry, timing) = (preset("mlc-16k").expect("it").geometry, preset("mlc-16k").expect("it").timing);
        let base = timing.page.0 + timing.read_page.0;
        let one = |steps: u64| steps * (1024 + 70);
        let with = |cycles: u64| base + (cycles + 7) * u64::from(timing.cycle_ps) / 1000;
        // 188 bytes inside of a step, across two steps, across two pages, and a whole page.
        assert_eq!(timing.read(&geometry, 32_768, 188).0, timing.call.0 + with(one(1)));
        assert_eq!(timing.read(&geometry, 32_768 + 1000, 188).0, timing.call.0 + with(one(2)));
        assert_eq!(timing.read(&geometry, 49_152 - 100, 188).0, timing.call.0 + 2 * with(one(1)));
        assert_eq!(timing.read(&geometry, 32_768, 16_384).0, timing.call.0 + with(one(16)));
        let whole = Timing { subpage_reads: false, ..timing };
        assert_eq!(whole.read(&geometry, 32_768, 188).0, timing.call.0 + with(one(16)));
        assert_eq!(timing.read(&geometry, 0, 0).0, timing.call.0);
    }

    #[test]
    fn the_published_difference_of_page_and_step() {
        // linux-mtd, July 2016: about 0.92 ms for a page of 16 KiB and 0.56 ms for a step of 1 KiB.
        let preset = preset("mlc-16k").expect("it");
        let page = preset.timing.read(&preset.geometry, 0, 16_384).0 as f64 / 1e6;
        let step = preset.timing.read(&preset.geometry, 0, 64).0 as f64 / 1e6;
        assert!((page - 0.92).abs() < 0.05 && (step - 0.56).abs() < 0.05, "{page} {step}");
    }
}
