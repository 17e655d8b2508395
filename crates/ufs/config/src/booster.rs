// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table `[write_booster]` of a device file: reading it, and writing it as a file would say it. It knows nothing of
//! the rest of the file.

use super::error::ConfigFileError;
use super::section::Section;
use readpath_device::WriteBoosterConfig;
use readpath_kit::Ns;
use readpath_proto::booster::ALLOCATION_UNIT_BLOCKS;
use serde::{Deserialize, Serialize};

type Result<T> = std::result::Result<T, ConfigFileError>;

const KEYS: [&str; 8] = [
    "buffer_mib",
    "mode",
    "preserve_user_space",
    "bits_per_cell",
    "slc_read_us",
    "slc_program_us",
    "slc_erase_us",
    "life_erases",
];

/// Blocks of 4 KiB of a MiB.
const MIB_BLOCKS: u32 = 256;
const UNIT_MIB: u32 = ALLOCATION_UNIT_BLOCKS / MIB_BLOCKS;

/// Reads the table, if the device has it.
pub(crate) fn write_booster(root: &Section) -> Result<Option<WriteBoosterConfig>> {
    let Some(s) = root.optional("write_booster", &KEYS)? else {
        return Ok(None);
    };
    if s.has("mode") && !s.word("mode", &[("shared", true), ("dedicated", false)])? {
        let message = "is \"dedicated\"; only a buffer that all logical units share is built: \"shared\"";
        return Err(s.error("mode", message));
    }
    if !s.flag_or("preserve_user_space", true)? {
        let message = "is false; a buffer that takes space from the logical units is not built";
        return Err(s.error("preserve_user_space", message));
    }
    let mib: u32 = s.integer("buffer_mib", u64::from(UNIT_MIB)..=u64::from(u32::MAX / MIB_BLOCKS))?;
    if !mib.is_multiple_of(UNIT_MIB) {
        return Err(s.error("buffer_mib", format!("is {mib}; it must be a multiple of {UNIT_MIB} (allocation units)")));
    }
    Ok(Some(WriteBoosterConfig {
        buffer_blocks: mib * MIB_BLOCKS,
        bits_per_cell: s.any_u32("bits_per_cell")?,
        slc_read: s.us("slc_read_us")?,
        slc_program: s.us("slc_program_us")?,
        slc_erase: s.us("slc_erase_us")?,
        life_erases: s.any_u32("life_erases")?,
    }))
}

/// `[write_booster]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct WriteBoosterEcho {
    buffer_mib: u32,
    mode: String,
    preserve_user_space: bool,
    bits_per_cell: u32,
    slc_read_us: f64,
    slc_program_us: f64,
    slc_erase_us: f64,
    life_erases: u32,
}

impl WriteBoosterEcho {
    pub fn of(wb: &WriteBoosterConfig) -> WriteBoosterEcho {
        let us = |time: Ns| time.as_us_f64();
        WriteBoosterEcho {
            buffer_mib: wb.buffer_blocks / MIB_BLOCKS,
            mode: "shared".to_owned(),
            preserve_user_space: true,
            bits_per_cell: wb.bits_per_cell,
            slc_read_us: us(wb.slc_read),
            slc_program_us: us(wb.slc_program),
            slc_erase_us: us(wb.slc_erase),
            life_erases: wb.life_erases,
        }
    }
}
