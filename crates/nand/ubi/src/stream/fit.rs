// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the records of a stream fit flash with a given page size. A stream seldom states its page size, but UBI
//! writes and copies whole pages, and keeps the first of each erase block for headers.

use super::{Op, Record};

/// A record that does not fit pages of the given size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misfit {
    /// Line from 1.
    pub line: u64,
    /// Description of the record.
    pub what: String,
    /// A page size that would fit, in bytes.
    pub page_bytes: u32,
}

/// The first records that do not fit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Misfits {
    /// A record that is impossible with such pages.
    pub certain: Option<Misfit>,
    /// A record that is possible only with sub-pages, or with headers at an offset that UBI does not choose by
    /// itself.
    pub unusual: Option<Misfit>,
}

/// Longer than the reads of a header or of the beginning of a fastmap, shorter than a volume table.
const LONG: u32 = 4096;
/// Bytes of either header.
const HEADER: u32 = 64;
/// The smallest page.
const LEAST_PAGE: u32 = 512;

impl Misfits {
    /// Checks record number `line` of a stream against pages of `page_bytes`.
    pub(super) fn note(&mut self, record: &Record, line: u64, page_bytes: u32) {
        if self.certain.is_some() {
            return;
        }
        let Record { offset, bytes, op, .. } = *record;
        // Multiples of this unit are also multiples of smaller pages.
        let unit = 1u32 << (offset | bytes).trailing_zeros().min(31);
        let found = match op {
            // UBI keeps no data before its headers, and those take a page; two, without sub-pages.
            Op::Read if (LEAST_PAGE..page_bytes.saturating_mul(2)).contains(&offset) => {
                let pages = 1 << offset.ilog2();
                let what = format!("reads data at byte {offset} of an erase block");
                if offset < page_bytes {
                    Some((true, format!("{what}, where headers are"), pages))
                } else {
                    let what = format!("{what}, where headers are unless the chip has sub-pages");
                    Some((false, what, (pages / 2).max(LEAST_PAGE)))
                }
            }
            Op::Other if bytes > LONG && unit < page_bytes => {
                Some((true, format!("reads {bytes} bytes at byte {offset}, which are whole pages"), unit))
            }
            Op::Other
                if bytes == HEADER && offset >= LEAST_PAGE && offset != page_bytes && offset.is_power_of_two() =>
            {
                Some((false, format!("reads a header at byte {offset}"), offset))
            }
            // Sub-pages are written with headers only, which are then in the first page.
            Op::Write if unit < page_bytes => {
                let what = format!("writes {bytes} bytes at byte {offset}");
                Some((u64::from(offset) + u64::from(bytes) > page_bytes.into(), what, unit))
            }
            _ => None,
        };
        // A page size that no chip has explains nothing.
        let Some((is_certain, what, would_fit)) = found.filter(|found| (LEAST_PAGE..=1 << 16).contains(&found.2))
        else {
            return;
        };
        let first = if is_certain { &mut self.certain } else { &mut self.unusual };
        if first.is_none() {
            *first = Some(Misfit { line, what, page_bytes: would_fit });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For one record on pages of 16 KiB: the size that would fit, and whether the misfit is certain.
    fn refusal(op: Op, offset: u32, bytes: u32) -> Option<(u32, bool)> {
        let mut misfits = Misfits::default();
        misfits.note(&Record { op, peb: 3, offset, bytes }, 7, 16384);
        let certain = misfits.certain.map(|m| (m.page_bytes, true));
        certain.or(misfits.unusual.map(|m| (m.page_bytes, false)))
    }

    #[test]
    fn records_of_other_pages_are_refused() {
        for (op, offset, bytes, says) in [
            (Op::Read, 32_768, 188, None),
            (Op::Read, 32_767, 188, Some((8192, false))),
            (Op::Read, 16_576, 188, Some((8192, false))),
            (Op::Read, 16_383, 60, Some((8192, true))),
            (Op::Read, 2048, 4096, Some((2048, true))),
            (Op::Read, 0, 64, None),
            (Op::Other, 0, 64, None),
            (Op::Other, 16_384, 64, None),
            (Op::Other, 8192, 64, Some((8192, false))),
            (Op::Other, 32_768, 64, Some((32_768, false))),
            (Op::Other, 32_768, 32_768, None),
            (Op::Other, 16_384, 24_576, Some((8192, true))),
            // The beginning of a fastmap.
            (Op::Other, 32_768, 312, None),
            (Op::Write, 0, 16_384, None),
            (Op::Write, 0, 8192, Some((8192, false))),
            (Op::Write, 8192, 8192, Some((8192, false))),
            (Op::Write, 24_576, 8192, Some((8192, true))),
            (Op::Erase, 0, 128 << 10, None),
        ] {
            assert_eq!(refusal(op, offset, bytes), says, "{op:?} {offset} {bytes}");
        }
    }
}
