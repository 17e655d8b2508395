// SPDX-License-Identifier: MIT OR Apache-2.0
//! The prototype of HPB in files: the table `[hpb.prototype]` of a device, and the key `prototype` of a variant. What it
//! does is the business of device and host.

use super::error::ConfigFileError;
use super::section::Section;
use readpath_device::{GroupUpdate, PrototypeConfig};
use readpath_host::HpbOptions;
use serde::{Deserialize, Serialize};

type Result<T> = std::result::Result<T, ConfigFileError>;

const KEYS: [&str; 3] = ["update", "group_kib", "listed_changes"];
const BLOCK_KIB: u32 = 4;
/// A map page of 16 KiB (HotStorage 2017).
const GROUP_KIB: u32 = 16 << 10;
/// Changes in the list, unless a file says something else: more than the write buffer of a preset holds. Assumption.
const LISTED_CHANGES: u16 = 512;
/// The key of a variant.
pub(super) const KEY: &str = "prototype";

/// Reads the table, if `hpb` has it.
pub(crate) fn read(hpb: &Section) -> Result<Option<PrototypeConfig>> {
    let Some(s) = hpb.optional("prototype", &KEYS)? else {
        return Ok(None);
    };
    let kib: u32 = if s.has("group_kib") { s.integer("group_kib", 256..=256 << 10)? } else { GROUP_KIB };
    if !kib.is_power_of_two() {
        let below = 1 << kib.ilog2();
        return Err(
            s.error("group_kib", format!("is {kib}; it must be a power of two, such as {below} or {}", below * 2))
        );
    }
    Ok(Some(PrototypeConfig {
        update: if s.has("update") { s.word("update", &GroupUpdate::ALL)? } else { GroupUpdate::Host },
        group_entries: kib / BLOCK_KIB,
        listed_changes: if s.has("listed_changes") { s.integer("listed_changes", 1..=4096)? } else { LISTED_CHANGES },
    }))
}

/// `[hpb.prototype]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct PrototypeEcho {
    update: String,
    group_kib: u32,
    listed_changes: u16,
}

impl PrototypeEcho {
    pub fn of(prototype: &PrototypeConfig) -> PrototypeEcho {
        PrototypeEcho {
            update: prototype.update.name().into(),
            group_kib: prototype.group_entries * BLOCK_KIB,
            listed_changes: prototype.listed_changes,
        }
    }
}

/// Keys of a variant that mean something beside `prototype`.
const ALSO: [&str; 5] = ["order", "max_map_mib", "max_map", "memory_mib", "memory"];

/// Reads the key `prototype` of a variant, if it is there: it takes the place of the modes of JESD220-3 and all that belongs
/// to them. `keys` are those of a variant's HPB.
pub(super) fn read_key(s: &Section, keys: &[&str], options: &mut HpbOptions) -> Result<()> {
    if !s.has(KEY) {
        return Ok(());
    }
    options.prototype = Some(s.word(KEY, &GroupUpdate::ALL)?);
    // Experiments say these two also where they are as usual.
    let usual = |key: &str| match key {
        "strict_linux" => !options.strict_linux,
        "dirty_bitmap" => options.dirty_bitmap,
        key => ALSO.contains(&key),
    };
    match keys.iter().find(|key| **key != KEY && s.has(key) && !usual(key)) {
        Some(key) => Err(s.error(key, "belongs to HPB of JESD220-3; the prototype does not have it")),
        None => Ok(()),
    }
}
