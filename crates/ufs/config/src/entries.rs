// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table `[hpb.entries]` of a device file: reading it, and writing it as a file would say it. It knows nothing of the
//! rest of the file.

use super::error::ConfigFileError;
use super::section::Section;
use readpath_device::{CheckOn, EntryConfig, Protection};
use serde::{Deserialize, Serialize};

type Result<T> = std::result::Result<T, ConfigFileError>;

const KEYS: [&str; 6] = ["protection", "tag_bits", "check_on", "make_us", "check_us", "tell_foreign"];

/// Reads the table; what `hpb` does not say is as usual.
pub(crate) fn read(hpb: &Section) -> Result<EntryConfig> {
    let default = EntryConfig::DEFAULT;
    let Some(s) = hpb.optional("entries", &KEYS)? else {
        return Ok(default);
    };
    Ok(EntryConfig {
        protection: if s.has("protection") { s.word("protection", &Protection::ALL)? } else { default.protection },
        tag_bits: if s.has("tag_bits") { s.integer("tag_bits", 8..=32)? } else { default.tag_bits },
        check_on: if s.has("check_on") { s.word("check_on", &CheckOn::ALL)? } else { default.check_on },
        make: if s.has("make_us") { s.us("make_us")? } else { default.make },
        check: if s.has("check_us") { s.us("check_us")? } else { default.check },
        tell_foreign: s.flag_or("tell_foreign", default.tell_foreign)?,
    })
}

/// `[hpb.entries]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct EntriesEcho {
    protection: String,
    tag_bits: u8,
    check_on: String,
    make_us: f64,
    check_us: f64,
    tell_foreign: bool,
}

impl EntriesEcho {
    /// The table, where it says anything.
    pub fn of(entries: &EntryConfig) -> Option<EntriesEcho> {
        (*entries != EntryConfig::DEFAULT).then(|| EntriesEcho {
            protection: entries.protection.name().into(),
            tag_bits: entries.tag_bits,
            check_on: entries.check_on.name().into(),
            make_us: entries.make.as_us_f64(),
            check_us: entries.check.as_us_f64(),
            tell_foreign: entries.tell_foreign,
        })
    }
}
