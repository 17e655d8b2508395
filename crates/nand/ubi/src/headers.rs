// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two headers of an erase block, as values and as bytes: erase counter (EC) and volume identifier (VID). Layouts
//! and checks are those of Linux, drivers/mtd/ubi/ubi-media.h and `validate_ec_hdr` and `validate_vid_hdr` in io.c. All
//! integers are big-endian. It reads no flash.

use crate::crc::crc32;
use crate::layout::{HEADER_BYTES, Layout, MAX_VOLUMES};

/// First bytes of an EC header: "UBI#".
const EC_MAGIC: u32 = 0x5542_4923;
/// First bytes of a VID header: "UBI!".
const VID_MAGIC: u32 = 0x5542_4921;
/// The version of the format.
pub const VERSION: u8 = 1;
/// Largest erase counter.
pub const MAX_ERASE_COUNTER: u64 = 0x7FFF_FFFF;
/// First identifier of internal volumes: the layout volume.
pub const LAYOUT_VOLUME: u32 = 0x7FFF_EFFF;
/// Volume of a fastmap's superblock.
pub const FASTMAP_SB_VOLUME: u32 = 0x7FFF_F000;
/// Volume of a fastmap's other blocks.
pub const FASTMAP_DATA_VOLUME: u32 = 0x7FFF_F001;

/// Handling of an unknown internal volume (`UBI_COMPAT_*`).
pub mod compat {
    /// Erase its blocks.
    pub const DELETE: u8 = 1;
    /// Attach read-only.
    pub const READ_ONLY: u8 = 2;
    /// Preserve its blocks.
    pub const PRESERVE: u8 = 4;
    /// Refuse the device.
    pub const REJECT: u8 = 5;
}

pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from(be32(bytes, at)) << 32 | u64::from(be32(bytes, at + 4))
}

fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

fn put64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_be_bytes());
}

fn seal(bytes: &mut [u8; HEADER_BYTES]) {
    let crc = crc32(&bytes[..60]);
    put32(bytes, 60, crc);
}

/// A fault of a header's bytes, found before its fields are examined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// Every byte is 0xFF.
    Empty,
    /// The first four bytes differ: found.
    Magic(u32),
    /// The checksum differs: found, computed.
    Crc(u32, u32),
}

fn damage(bytes: &[u8; HEADER_BYTES], magic: u32) -> Option<Damage> {
    let found = be32(bytes, 0);
    if found != magic {
        return Some(if bytes.iter().all(|&b| b == 0xFF) { Damage::Empty } else { Damage::Magic(found) });
    }
    let (stored, computed) = (be32(bytes, 60), crc32(&bytes[..60]));
    (stored != computed).then_some(Damage::Crc(stored, computed))
}

/// A fault in the fields of a header with a good checksum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderFault {
    /// The field, and what would be valid.
    pub what: String,
    /// Whether other sizes of PEBs, pages or sub-pages would make it valid.
    pub of_sizes: bool,
}

/// A fault of the field itself.
fn fault<T>(what: String) -> Result<T, HeaderFault> {
    Err(HeaderFault { what, of_sizes: false })
}

/// A fault that wrong sizes may explain.
fn against_sizes<T>(what: String) -> Result<T, HeaderFault> {
    Err(HeaderFault { what, of_sizes: true })
}

/// The erase counter header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcHeader {
    /// Version of the format.
    pub version: u8,
    /// How often the block was erased.
    pub erase_counter: u64,
    /// Offset of the VID header, in bytes from the start of the block.
    pub vid_offset: u32,
    /// Offset of the data.
    pub data_offset: u32,
    /// Number of the image that the block belongs to; 0 in old images.
    pub image_seq: u32,
}

impl EcHeader {
    /// Parses a header; [`EcHeader::check`] checks its fields.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<EcHeader, Damage> {
        match damage(bytes, EC_MAGIC) {
            Some(damage) => Err(damage),
            None => Ok(EcHeader {
                version: bytes[4],
                erase_counter: be64(bytes, 8),
                vid_offset: be32(bytes, 16),
                data_offset: be32(bytes, 20),
                image_seq: be32(bytes, 24),
            }),
        }
    }

    /// A header of a block of this layout.
    pub fn new(layout: &Layout, erase_counter: u32, image_seq: u32) -> EcHeader {
        let Layout { vid_offset, data_offset, .. } = *layout;
        EcHeader { version: VERSION, erase_counter: erase_counter.into(), vid_offset, data_offset, image_seq }
    }

    /// The header as bytes.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        put32(&mut bytes, 0, EC_MAGIC);
        bytes[4] = self.version;
        put64(&mut bytes, 8, self.erase_counter);
        put32(&mut bytes, 16, self.vid_offset);
        put32(&mut bytes, 20, self.data_offset);
        put32(&mut bytes, 24, self.image_seq);
        seal(&mut bytes);
        bytes
    }

    /// Checks that the fields are valid on a device of this layout.
    pub fn check(&self, layout: &Layout) -> Result<(), HeaderFault> {
        if self.version != VERSION {
            return fault(format!("UBI version {} is not supported, only {VERSION}", self.version));
        }
        if self.vid_offset != layout.vid_offset {
            return against_sizes(format!(
                "VID header offset {} where {} is expected",
                self.vid_offset, layout.vid_offset
            ));
        }
        if self.data_offset != layout.data_offset {
            return against_sizes(format!("data offset {} where {} is expected", self.data_offset, layout.data_offset));
        }
        if self.erase_counter > MAX_ERASE_COUNTER {
            return fault(format!("erase counter {} is above {MAX_ERASE_COUNTER}", self.erase_counter));
        }
        Ok(())
    }
}

/// The volume identifier header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VidHeader {
    /// Version of the format.
    pub version: u8,
    /// 1 for dynamic volumes, 2 for static ones.
    pub vol_type: u8,
    /// 1 if the block is a copy whose data is protected by `data_crc`, otherwise 0.
    pub copy_flag: u8,
    /// Handling of the block if its volume is unknown; 0 for ordinary volumes.
    pub compat: u8,
    /// Volume.
    pub volume: u32,
    /// Logical block.
    pub lnum: u32,
    /// Bytes of data; 0 in dynamic volumes unless it is a copy.
    pub data_bytes: u32,
    /// Logical blocks with data of a static volume, 0 for dynamic ones.
    pub used_lebs: u32,
    /// Bytes at the end of the block that the volume's alignment leaves unused.
    pub data_pad: u32,
    /// CRC of the data; 0 if `data_bytes` is 0.
    pub data_crc: u32,
    /// Sequence number: the higher, the newer.
    pub sqnum: u64,
}

/// A volume's number as messages name it: internal ones in hexadecimal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VolumeId(pub u32);

impl std::fmt::Display for VolumeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            LAYOUT_VOLUME => f.write_str("the layout volume"),
            internal @ LAYOUT_VOLUME.. => write!(f, "the internal volume {internal:#x}"),
            id => write!(f, "volume {id}"),
        }
    }
}

/// `vol_type` of dynamic volumes.
pub const DYNAMIC: u8 = 1;
/// `vol_type` of static volumes.
pub const STATIC: u8 = 2;

impl VidHeader {
    /// Parses a header; [`VidHeader::check`] checks its fields.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<VidHeader, Damage> {
        match damage(bytes, VID_MAGIC) {
            Some(damage) => Err(damage),
            None => Ok(VidHeader {
                version: bytes[4],
                vol_type: bytes[5],
                copy_flag: bytes[6],
                compat: bytes[7],
                volume: be32(bytes, 8),
                lnum: be32(bytes, 12),
                data_bytes: be32(bytes, 20),
                used_lebs: be32(bytes, 24),
                data_pad: be32(bytes, 28),
                data_crc: be32(bytes, 32),
                sqnum: be64(bytes, 40),
            }),
        }
    }

    /// The header as bytes.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        put32(&mut bytes, 0, VID_MAGIC);
        bytes[4] = self.version;
        bytes[5] = self.vol_type;
        bytes[6] = self.copy_flag;
        bytes[7] = self.compat;
        put32(&mut bytes, 8, self.volume);
        put32(&mut bytes, 12, self.lnum);
        put32(&mut bytes, 20, self.data_bytes);
        put32(&mut bytes, 24, self.used_lebs);
        put32(&mut bytes, 28, self.data_pad);
        put32(&mut bytes, 32, self.data_crc);
        put64(&mut bytes, 40, self.sqnum);
        seal(&mut bytes);
        bytes
    }

    /// Checks that the fields are valid on a device of this layout.
    pub fn check(&self, layout: &Layout) -> Result<(), HeaderFault> {
        let internal = self.volume >= LAYOUT_VOLUME;
        if self.version != VERSION {
            return fault(format!("UBI version {} is not supported, only {VERSION}", self.version));
        }
        if self.volume >= MAX_VOLUMES && !internal || self.volume > i32::MAX as u32 {
            return fault(format!("volume {} is neither below {MAX_VOLUMES} nor an internal one", self.volume));
        }
        let known = [compat::DELETE, compat::READ_ONLY, compat::PRESERVE, compat::REJECT].contains(&self.compat);
        if internal && !known || !internal && self.compat != 0 {
            return fault(format!("compatibility {} of {}", self.compat, VolumeId(self.volume)));
        }
        if self.vol_type != DYNAMIC && self.vol_type != STATIC {
            return fault(format!("volume type {}: 1 is dynamic, 2 is static", self.vol_type));
        }
        if self.copy_flag > 1 {
            return fault(format!("copy flag {}, 0 or 1 is expected", self.copy_flag));
        }
        if self.data_pad >= layout.leb_bytes / 2 {
            return against_sizes(format!("data_pad {} is at least half of a LEB", self.data_pad));
        }
        if self.lnum > i32::MAX as u32 || self.used_lebs > i32::MAX as u32 {
            return fault(format!("LEB {} of {} used ones", self.lnum, self.used_lebs));
        }
        let usable = layout.leb_bytes - self.data_pad;
        if self.data_bytes > usable {
            return against_sizes(format!("{} bytes of data in a LEB of {usable}", self.data_bytes));
        }
        if self.vol_type == STATIC {
            if self.lnum >= self.used_lebs {
                return fault(format!("LEB {} of a static volume of {} LEBs", self.lnum, self.used_lebs));
            }
            let last = self.lnum == self.used_lebs - 1;
            if self.data_bytes == 0 || !last && self.data_bytes != usable {
                return against_sizes(format!("{} bytes in LEB {} of a static volume", self.data_bytes, self.lnum));
            }
        } else {
            if self.used_lebs != 0 {
                return fault(format!("used_ebs {} in a dynamic volume, 0 is expected", self.used_lebs));
            }
            let without_data = self.data_bytes == 0 && self.data_crc == 0;
            if self.copy_flag == 1 && self.data_bytes == 0 || self.copy_flag == 0 && !without_data {
                return fault(format!("{} bytes of data, copy flag {}", self.data_bytes, self.copy_flag));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_and_flips_do_not() {
        let ec = EcHeader { version: 1, erase_counter: 7, vid_offset: 512, data_offset: 2048, image_seq: 99 };
        let vid = VidHeader { version: 1, vol_type: 1, volume: 3, lnum: 4, sqnum: 1 << 40, ..VidHeader::default() };
        assert_eq!(EcHeader::parse(&ec.to_bytes()), Ok(ec));
        assert_eq!(VidHeader::parse(&vid.to_bytes()), Ok(vid));
        for bit in 0..512 {
            let (mut a, mut b) = (ec.to_bytes(), vid.to_bytes());
            a[bit / 8] ^= 1 << (bit % 8);
            b[bit / 8] ^= 1 << (bit % 8);
            assert!(EcHeader::parse(&a).is_err() && VidHeader::parse(&b).is_err(), "bit {bit}");
        }
        assert_eq!(EcHeader::parse(&[0xFF; 64]), Err(Damage::Empty));
    }

    #[test]
    fn ubinize_writes_these_bytes() {
        // The first header of an image that ubinize 2.1.5 made: image sequence 99, 2 KiB pages with sub-pages of 512.
        let ec = EcHeader { version: 1, erase_counter: 0, vid_offset: 512, data_offset: 2048, image_seq: 99 };
        assert_eq!(ec.to_bytes()[60..], [0xAC, 0xBA, 0xFB, 0xFE]);
        let layout = VidHeader {
            version: 1,
            vol_type: DYNAMIC,
            compat: compat::REJECT,
            volume: LAYOUT_VOLUME,
            lnum: 1,
            ..VidHeader::default()
        };
        assert_eq!(layout.to_bytes()[60..], [0x1B, 0xB3, 0x4C, 0xE4]);
    }
}
