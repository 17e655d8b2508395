// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that flash is erased behind data whose end is known: a bit that is cleared there would corrupt the next
//! write, or shows that flash loses its contents. It only reads.

use super::Ubi;
use super::findings::Finding;
use crate::cache::ReadCache;
use crate::error::UbiError;
use crate::mtd::{Mtd, ReadOutcome, Why};

impl<M: Mtd, C: ReadCache> Ubi<M, C> {
    /// The finding behind the first `used` bytes of a block's data area, if any; `what` names the data.
    pub(super) fn behind(&mut self, peb: u32, used: u32, what: &str) -> Result<Option<Finding>, UbiError> {
        let layout = self.io.layout;
        let mut rest = vec![0; layout.leb_bytes.saturating_sub(used) as usize];
        // A read with errors says nothing about erased flash.
        if rest.is_empty() || self.io.read_data(peb, used, &mut rest, Why::Check)? == ReadOutcome::Uncorrectable {
            return Ok(None);
        }
        let Some(at) = first_stray(&rest, used, layout.page_bytes) else { return Ok(None) };
        let byte = rest[(at - used) as usize];
        let detail = format!(
            "{byte:#04x} behind the {used} bytes of {what}, where flash has to be erased (0xff; zeros only up to the \
             end of their page)"
        );
        let place = Some((peb, layout.data_offset + at));
        Ok(Some(Finding { kind: "not-erased", is_damage: true, place, detail }))
    }
}

/// The first of `bytes`, which begin at byte `used` of a data area, that is neither erased nor padding. Linux fills
/// the last page that it writes with zeros, ubinize leaves it erased; the page size may be known only up to a factor
/// of two.
fn first_stray(bytes: &[u8], used: u32, page: u32) -> Option<u32> {
    let zeros = bytes.iter().take_while(|&&b| b == 0).count() as u32;
    let padded = used + zeros;
    let most = used.next_multiple_of(2 * page);
    if zeros > 0 && (padded > most || !padded.is_multiple_of(page) && zeros as usize != bytes.len()) {
        return Some(if zeros > most - used { most } else { stray_in_padding(bytes, used, page, zeros) });
    }
    let rest = &bytes[zeros as usize..];
    // Whole chunks first, for speed: there may be megabytes of them.
    let empty = rest.chunks(64).take_while(|c| c.iter().fold(0xFF, |a, &b| a & b) == 0xFF).count() * 64;
    let first = rest.get(empty..)?.iter().position(|&b| b != 0xFF)?;
    Some(padded + (empty + first) as u32)
}

/// The zeros end within a page: of zero and other bytes in it, the fewer are wrong.
fn stray_in_padding(bytes: &[u8], used: u32, page: u32, zeros: u32) -> u32 {
    let end = ((used + zeros).next_multiple_of(page) - used) as usize;
    let page = &bytes[..end.min(bytes.len())];
    if page.iter().filter(|&&b| b == 0).count() * 2 < page.len() { used } else { used + zeros }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 pages of 512 bytes of which 300 bytes are used; `change` gets the bytes behind them.
    fn stray(change: impl FnOnce(&mut [u8])) -> Option<u32> {
        let mut bytes = vec![0xFF; 8 * 512 - 300];
        change(&mut bytes);
        first_stray(&bytes, 300, 512)
    }

    #[test]
    fn padding_is_told_from_flipped_bits() {
        assert_eq!(stray(|_| {}), None);
        // Padded with zeros, also where the page is twice as large as it looks, and a whole block.
        assert_eq!(stray(|b| b[..212].fill(0)), None);
        assert_eq!(stray(|b| b[..724].fill(0)), None);
        assert_eq!(stray(|b| b[..725].fill(0)), Some(1024));
        assert_eq!(first_stray(&[0; 212], 300, 512), None);
        assert_eq!(stray(|b| b[0] = 0x7F), Some(300));
        assert_eq!(stray(|b| b[0] = 0), Some(300));
        assert_eq!(stray(|b| b[100] = 0xFE), Some(400));
        assert_eq!(stray(|b| b[3795] = 0xFE), Some(4095));
        assert_eq!(stray(|b| b[3000] = 0), Some(3300));
        let padded = |at: usize, value: u8| {
            stray(|b| {
                b[..212].fill(0);
                b[at] = value;
            })
        };
        assert_eq!([padded(100, 1), padded(211, 0x80), padded(212, 0xFE)], [Some(400), Some(511), Some(512)]);
    }
}
