// SPDX-License-Identifier: MIT OR Apache-2.0
//! What operations take on a chip, or with a driver, that has no sub-page reads: a read moves whole pages, and the NAND
//! core keeps the last one that was read in part ([`NandPage`]). It knows no data.

use super::Timing;
use crate::cache::{Media, NandPage, NoData, Page, ReadCache};
use crate::mtd::{Geometry, Op, Record};
use readpath_kit::Ns;
use std::convert::Infallible;

/// Adds up what whole pages take.
struct Clock<'a> {
    timing: Timing,
    geometry: &'a Geometry,
    elapsed: Ns,
}

impl Media for Clock<'_> {
    type Error = Infallible;

    fn fill(&mut self, page: Page, _line: &mut [u8]) -> Result<(), Infallible> {
        let page_bytes = self.geometry.page_bytes;
        self.direct(page.peb(), page.number() * page_bytes, page_bytes)
    }

    fn direct(&mut self, _peb: u32, offset: u32, bytes: u32) -> Result<(), Infallible> {
        // The call is paid for once, however many pages are read for it.
        self.elapsed += Ns(self.timing.read(self.geometry, offset, bytes).0 - self.timing.call.0);
        Ok(())
    }

    fn copy(&mut self, _line: &[u8], _from: u32, _offset: u32, _bytes: u32) {}
}

impl Timing {
    /// What operations take one after the other if single steps cannot be read. A read that the kept page serves takes
    /// the driver's call.
    pub fn without_subpage_reads(&self, geometry: &Geometry, records: &[Record]) -> Ns {
        let timing = Timing { subpage_reads: false, ..*self };
        let mut clock = Clock { timing, geometry, elapsed: Ns::ZERO };
        let mut cache = NandPage::new(geometry.page_bytes, NoData);
        for r in records {
            match r.op {
                Op::Read => {
                    clock.elapsed += timing.call;
                    let Ok(()) = cache.read_below(&mut clock, r.peb, r.offset, r.len);
                }
                Op::Write => {
                    clock.elapsed += timing.write(geometry, r.offset, r.len);
                    cache.written(r.peb, r.offset, r.len);
                }
                Op::Erase => {
                    clock.elapsed += timing.erase();
                    cache.erased(r.peb);
                }
            }
        }
        clock.elapsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mtd::Why;
    use crate::nand::preset;

    #[test]
    fn a_second_header_in_the_same_page_is_served() {
        let slc = preset("slc-2k").expect("it");
        let read = |offset, len| Record { op: Op::Read, peb: 3, offset, len, why: Why::EcHeader };
        let of = |records: &[Record]| slc.timing.without_subpage_reads(&slc.geometry, records).0;
        // tR and the driver's times, and 4 steps of 512 + 7 bytes behind 7 cycles of 25 ns.
        let page = 40_000 + (7 + 4 * 519) * 25;
        assert_eq!(of(&[read(0, 64)]), 10_000 + page);
        assert_eq!(of(&[read(0, 64), read(512, 64)]), 20_000 + page);
        assert_eq!(of(&[read(0, 64), read(2048, 64), read(512, 64)]), 30_000 + 3 * page);
        assert_eq!(of(&[read(2048, 3 * 2048)]), 10_000 + 3 * page);
        let write = Record { op: Op::Write, peb: 3, offset: 0, len: 2048, why: Why::EcHeader };
        let erase = Record { op: Op::Erase, ..write };
        let others = slc.timing.write(&slc.geometry, 0, 2048).0 + slc.timing.erase().0;
        assert_eq!(of(&[read(0, 64), write, read(0, 64), erase, read(0, 64)]), others + 30_000 + 3 * page);
    }
}
