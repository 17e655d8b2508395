// SPDX-License-Identifier: MIT OR Apache-2.0
//! The volume table. Layout and checks are those of Linux, drivers/mtd/ubi/ubi-media.h (`ubi_vtbl_record`) and
//! `vtbl_check` in vtbl.c. It does not know where the copies lie.

use crate::crc::crc32;
use crate::error::printable;
use crate::headers::{DYNAMIC, STATIC, be16, be32};
use crate::layout::{Layout, RECORD_BYTES};
use crate::mtd::MAX_PEBS;

/// Longest name, in bytes.
pub const MAX_NAME_BYTES: usize = 127;
/// Flag: grow the volume to all free blocks at the next attach.
pub const FLAG_AUTORESIZE: u8 = 1;
/// Flag: do not check the CRC of a static volume when it is opened.
pub const FLAG_SKIP_CRC: u8 = 2;

/// A volume, as the table describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeRecord {
    /// Erase blocks that belong to the volume.
    pub reserved_pebs: u32,
    /// Alignment of the usable size of a logical block, in bytes; 1 if there is none.
    pub alignment: u32,
    /// Bytes at the end of a logical block that the alignment leaves unused.
    pub data_pad: u32,
    /// 1 for dynamic volumes, 2 for static ones.
    pub vol_type: u8,
    /// Whether an update of the volume has begun and not ended.
    pub update_marker: bool,
    /// Name, without the zero at its end.
    pub name: Vec<u8>,
    /// Flags.
    pub flags: u8,
}

/// Why a table is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TableFault {
    /// A record's checksum is wrong: the copy is damaged. Record, found, computed.
    #[error("record {0} of the volume table has CRC {1:#010x} instead of {2:#010x}")]
    Crc(u32, u32, u32),
    /// A record with a good checksum has invalid contents: the device is refused.
    #[error("volume table: {0}")]
    Nonsense(String),
}

impl VolumeRecord {
    /// A dynamic volume without alignment.
    pub fn dynamic(name: &str, reserved_pebs: u32) -> VolumeRecord {
        let (vol_type, name) = (DYNAMIC, name.into());
        VolumeRecord { reserved_pebs, alignment: 1, data_pad: 0, vol_type, update_marker: false, name, flags: 0 }
    }

    /// The record as bytes.
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0..4].copy_from_slice(&self.reserved_pebs.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.alignment.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.data_pad.to_be_bytes());
        bytes[12] = self.vol_type;
        bytes[13] = u8::from(self.update_marker);
        bytes[14..16].copy_from_slice(&(self.name.len() as u16).to_be_bytes());
        bytes[16..16 + self.name.len()].copy_from_slice(&self.name);
        bytes[144] = self.flags;
        seal(&mut bytes);
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<VolumeRecord, String> {
        let name_bytes = usize::from(be16(bytes, 14));
        if name_bytes > MAX_NAME_BYTES {
            return Err(format!("a name of {name_bytes} bytes, at most {MAX_NAME_BYTES} are possible"));
        }
        let name = &bytes[16..16 + name_bytes];
        if name.is_empty() || name.contains(&0) || bytes[16 + name_bytes] != 0 {
            return Err("a name that does not end where its length says".into());
        }
        if bytes[13] > 1 {
            return Err(format!("update marker {}", bytes[13]));
        }
        Ok(VolumeRecord {
            reserved_pebs: be32(bytes, 0),
            alignment: be32(bytes, 4),
            data_pad: be32(bytes, 8),
            vol_type: bytes[12],
            update_marker: bytes[13] != 0,
            name: name.to_vec(),
            flags: bytes[144],
        })
    }

    /// Checks that the record is valid for a device of this layout with `good_pebs` blocks.
    pub fn check(&self, layout: &Layout, good_pebs: u32) -> Result<(), String> {
        if self.alignment == 0 || self.alignment > layout.leb_bytes {
            return Err(format!("alignment {} of a LEB of {} bytes", self.alignment, layout.leb_bytes));
        }
        if self.alignment != 1 && !self.alignment.is_multiple_of(layout.page_bytes) {
            return Err(format!("alignment {} is not a multiple of the page", self.alignment));
        }
        let pad = layout.leb_bytes % self.alignment;
        if self.data_pad != pad {
            return Err(format!("data_pad {} where {pad} is expected", self.data_pad));
        }
        if self.vol_type != DYNAMIC && self.vol_type != STATIC {
            return Err(format!("volume type {}: 1 is dynamic, 2 is static", self.vol_type));
        }
        if self.reserved_pebs > good_pebs {
            return Err(format!("{} reserved PEBs, but only {good_pebs} good ones", self.reserved_pebs));
        }
        Ok(())
    }
}

fn seal(bytes: &mut [u8; RECORD_BYTES]) {
    let crc = crc32(&bytes[..168]);
    bytes[168..].copy_from_slice(&crc.to_be_bytes());
}

/// The records of a device: one for each slot, `None` where there is no volume.
pub type Table = Vec<Option<VolumeRecord>>;

/// Parses a copy of the table. The volumes may reserve at most `good_pebs`.
pub fn parse_table(bytes: &[u8], layout: &Layout, good_pebs: u32) -> Result<Table, TableFault> {
    let mut table = Table::new();
    let mut reserved = 0u64;
    for (slot, record) in (0..layout.volume_slots()).zip(bytes.chunks_exact(RECORD_BYTES)) {
        let (found, computed) = (be32(record, 168), crc32(&record[..168]));
        if found != computed {
            return Err(TableFault::Crc(slot, found, computed));
        }
        if be32(record, 0) == 0 {
            if record[..168].iter().any(|&b| b != 0) {
                return Err(TableFault::Nonsense(format!("record {slot} reserves nothing but is not empty")));
            }
            table.push(None);
            continue;
        }
        let nonsense = |what| TableFault::Nonsense(format!("record {slot}: {what}"));
        let volume = VolumeRecord::parse(record).map_err(nonsense)?;
        volume.check(layout, good_pebs).map_err(nonsense)?;
        reserved += u64::from(volume.reserved_pebs);
        if reserved > u64::from(MAX_PEBS) {
            return Err(nonsense(format!("volumes reserve more than {MAX_PEBS} PEBs")));
        }
        table.push(Some(volume));
    }
    for (i, a) in table.iter().enumerate() {
        let Some(a) = a else { continue };
        if let Some(n) = table[..i].iter().position(|b| b.as_ref().is_some_and(|b| b.name == a.name)) {
            let name = printable(&a.name);
            return Err(TableFault::Nonsense(format!("records {n} and {i} have the same name \"{name}\"")));
        }
    }
    Ok(table)
}

/// The bytes of a copy of the table, without the padding of its last page.
pub fn table_to_bytes(table: &Table, layout: &Layout) -> Vec<u8> {
    let mut empty = [0; RECORD_BYTES];
    seal(&mut empty);
    let mut bytes = Vec::with_capacity(layout.volume_table_bytes() as usize);
    for slot in 0..layout.volume_slots() as usize {
        let record = table.get(slot).and_then(Option::as_ref).map_or(empty, VolumeRecord::to_bytes);
        bytes.extend_from_slice(&record);
    }
    bytes
}
