// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configuration of HPB 2.0, and the checks that it can exist.

use super::entry::ADDRESS_BITS;
use crate::config::error::{ConfigError, bad};
use readpath_proto::typed::HpbEntry;

/// Most entries that one command carries: CDB byte 14 of HPB READ counts up to 255 blocks.
pub const MOST_ENTRIES: u8 = u8::MAX;

/// HPB 2.0 (JESD220-3A): longer HPB READs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hpb2Config {
    /// fHPBEn as shipped. The host can change it, and it is non-volatile.
    pub enabled: bool,
    /// The most blocks of an HPB READ without a pre-request: bMAX_DATA_SIZE_FOR_HPB_SINGLE_CMD + 1.
    pub single_blocks: u8,
    /// Pre-requests (HPB WRITE BUFFER 02h) stored until their HPB READ comes, 1 to 126; one more displaces the
    /// oldest. READ IDs go from 1 to 126.
    pub pre_requests: u8,
    /// Not in JESD220-3A: an HPB READ may carry an entry for each block in an extra header segment.
    pub entries_in_ehs: bool,
}

impl Hpb2Config {
    /// SRAM of one pre-request: its entries, and unit, READ ID, block and age.
    pub(crate) const PRE_REQUEST_BYTES: u64 = MOST_ENTRIES as u64 * HpbEntry::BYTES as u64 + 8;

    /// Checks the settings for an array of `slices` slices.
    pub(crate) fn check(&self, slices: u32) -> Result<(), ConfigError> {
        let most = 1 << ADDRESS_BITS;
        if slices > most {
            return bad(
                "hpb.v2",
                format!(
                    "needs the upper bits of addresses; the array has {slices} slices of 4 KiB, at most {most} are \
                     possible"
                ),
            );
        }
        Ok(())
    }
}
