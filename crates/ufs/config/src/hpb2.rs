// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table `[hpb.v2]` of a device file: reading it, and writing it as a file would say it. It knows nothing of the rest
//! of the file.

use super::error::ConfigFileError;
use super::section::Section;
use readpath_device::Hpb2Config;
use serde::{Deserialize, Serialize};

type Result<T> = std::result::Result<T, ConfigFileError>;

const KEYS: [&str; 4] = ["single_kib", "pre_requests", "enabled", "entries_in_ehs"];
/// Pre-requests that are kept, unless a file says something else: half of 32 commands, as Linux sends at most.
const PRE_REQUESTS: u8 = 16;
const BLOCK_KIB: u32 = 4;

/// Reads the table, if `hpb` has it.
pub(crate) fn read(hpb: &Section) -> Result<Option<Hpb2Config>> {
    let Some(s) = hpb.optional("v2", &KEYS)? else {
        return Ok(None);
    };
    let kib: u32 = s.integer("single_kib", 4..=255 * u64::from(BLOCK_KIB))?;
    if !kib.is_multiple_of(BLOCK_KIB) {
        return Err(s.error("single_kib", format!("is {kib}; it must be a multiple of {BLOCK_KIB}")));
    }
    Ok(Some(Hpb2Config {
        enabled: s.flag_or("enabled", true)?,
        single_blocks: (kib / BLOCK_KIB) as u8,
        pre_requests: if s.has("pre_requests") { s.integer("pre_requests", 1..=126)? } else { PRE_REQUESTS },
        entries_in_ehs: s.flag_or("entries_in_ehs", false)?,
    }))
}

/// `[hpb.v2]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Hpb2Echo {
    single_kib: u32,
    pre_requests: u8,
    enabled: bool,
    entries_in_ehs: bool,
}

impl Hpb2Echo {
    pub fn of(v2: &Hpb2Config) -> Hpb2Echo {
        Hpb2Echo {
            single_kib: u32::from(v2.single_blocks) * BLOCK_KIB,
            pre_requests: v2.pre_requests,
            enabled: v2.enabled,
            entries_in_ehs: v2.entries_in_ehs,
        }
    }
}
