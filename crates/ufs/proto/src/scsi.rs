// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data that SCSI commands move besides their CDBs: INQUIRY, capacity, mode pages, LUN lists, sense data and the UNMAP
//! list.
//!
//! Layouts: SPC-4 (INQUIRY, VPD 00h, 80h, 83h, MODE SENSE, REPORT LUNS, sense), SBC-3 (VPD B0h to B2h, READ CAPACITY,
//! caching page, UNMAP), with the values that JESD220 gives a UFS device. Each builder clears `out` and writes the
//! whole answer; the caller cuts it to the allocation length.

use crate::typed::Sense;

/// Peripheral qualifier and type of a direct-access block device: a general logical unit (SPC-4).
pub const PERIPHERAL_DISK: u8 = 0x00;
/// Peripheral type of a well-known logical unit (SPC-4).
pub const PERIPHERAL_WELL_KNOWN: u8 = 0x1E;
/// Qualifier 011b, type 1Fh: no logical unit can be here (SPC-4); the answer to INQUIRY of a disabled LUN 0.
pub const PERIPHERAL_NONE: u8 = 0x7F;

/// UPIU LUN of the REPORT LUNS well-known logical unit (JESD220).
pub const WLUN_REPORT_LUNS: u8 = 0x81;
/// UPIU LUN of the BOOT well-known logical unit (JESD220).
pub const WLUN_BOOT: u8 = 0xB0;
/// UPIU LUN of the RPMB well-known logical unit (JESD220).
pub const WLUN_RPMB: u8 = 0xC4;
/// UPIU LUN of the UFS DEVICE well-known logical unit (JESD220).
pub const WLUN_DEVICE: u8 = 0xD0;

/// Identity of a device in the standard INQUIRY data. Texts are ASCII, padded with spaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// T10 vendor identification.
    pub vendor: [u8; 8],
    /// Product identification.
    pub product: [u8; 16],
    /// Product revision level.
    pub revision: [u8; 4],
}

impl Identity {
    /// From texts: long ones are cut, short ones padded, and characters other than printable ASCII become `?`.
    pub fn new(vendor: &str, product: &str, revision: &str) -> Identity {
        Identity { vendor: padded(vendor), product: padded(product), revision: padded(revision) }
    }
}

fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    for (to, c) in field.iter_mut().zip(text.chars()) {
        *to = if c == ' ' || c.is_ascii_graphic() { c as u8 } else { b'?' };
    }
    field
}

/// Standard INQUIRY data, 36 bytes (SPC-4): SPC-4 compliant, response data format 2, CMDQUE. `peripheral` is byte 0.
pub fn inquiry(peripheral: u8, identity: &Identity, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[peripheral, 0, 0x06, 0x02, 31, 0, 0, 0x02]);
    out.extend_from_slice(&identity.vendor);
    out.extend_from_slice(&identity.product);
    out.extend_from_slice(&identity.revision);
}

/// VPD page 00h: supported pages, in ascending order (SPC-4).
pub fn vpd_supported_pages(peripheral: u8, pages: &[u8], out: &mut Vec<u8>) {
    vpd(peripheral, 0x00, pages.len() as u16, out);
    out.extend_from_slice(pages);
}

/// VPD page 80h: unit serial number in ASCII, at most 65,535 bytes (SPC-4).
pub fn vpd_serial_number(peripheral: u8, serial: &[u8], out: &mut Vec<u8>) {
    vpd(peripheral, 0x80, serial.len() as u16, out);
    out.extend_from_slice(serial);
}

/// VPD page 83h with one designator: `naa`, a binary NAA identifier of the logical unit (SPC-4; its highest four bits
/// say which kind of NAA, 3 is locally assigned).
pub fn vpd_identification(peripheral: u8, naa: u64, out: &mut Vec<u8>) {
    vpd(peripheral, 0x83, 12, out);
    // Code set 1 (binary); association 0 (logical unit), designator type 3 (NAA); 8 bytes.
    out.extend_from_slice(&[0x01, 0x03, 0, 8]);
    out.extend_from_slice(&naa.to_be_bytes());
}

/// Limits of VPD page B0h in logical blocks; 0 of what is not reported (SBC-3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockLimits {
    /// OPTIMAL TRANSFER LENGTH.
    pub optimal_transfer_blocks: u32,
    /// MAXIMUM UNMAP LBA COUNT; Linux sd discards only if this and the next are not 0.
    pub max_unmap_blocks: u32,
    /// MAXIMUM UNMAP BLOCK DESCRIPTOR COUNT.
    pub max_unmap_descriptors: u32,
    /// OPTIMAL UNMAP GRANULARITY.
    pub unmap_granularity: u32,
}

/// VPD page B0h, block limits, 64 bytes (SBC-3).
pub fn vpd_block_limits(peripheral: u8, limits: &BlockLimits, out: &mut Vec<u8>) {
    vpd(peripheral, 0xB0, 0x3C, out);
    out.resize(12, 0);
    out.extend_from_slice(&limits.optimal_transfer_blocks.to_be_bytes());
    out.resize(20, 0);
    for value in [limits.max_unmap_blocks, limits.max_unmap_descriptors, limits.unmap_granularity] {
        out.extend_from_slice(&value.to_be_bytes());
    }
    out.resize(64, 0);
}

/// VPD page B1h, block device characteristics, 64 bytes: rotation rate 1, not a rotating medium (SBC-3).
pub fn vpd_characteristics(peripheral: u8, out: &mut Vec<u8>) {
    vpd(peripheral, 0xB1, 0x3C, out);
    out.extend_from_slice(&1u16.to_be_bytes());
    out.resize(64, 0);
}

/// VPD page B2h, logical block provisioning, 8 bytes (SBC-3): thin, UNMAP works, and unmapped blocks read as zeros; or
/// nothing of that, as of a zoned unit.
pub fn vpd_provisioning(peripheral: u8, thin: bool, out: &mut Vec<u8>) {
    vpd(peripheral, 0xB2, 4, out);
    // LBPU (7) and LBPRZ (4:2), then the type.
    out.extend_from_slice(if thin { &[0, 1 << 7 | 1 << 2, 2, 0] } else { &[0; 4] });
}

fn vpd(peripheral: u8, page: u8, length: u16, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[peripheral, page]);
    out.extend_from_slice(&length.to_be_bytes());
}

/// READ CAPACITY (10) data, 8 bytes: last LBA (FFFFFFFFh if it does not fit: ask the 16-byte form) and block size in
/// bytes (SBC-3). `blocks` is the number of logical blocks, at least 1.
pub fn read_capacity_10(blocks: u64, block_bytes: u32, out: &mut Vec<u8>) {
    let last = u32::try_from(blocks.saturating_sub(1)).unwrap_or(u32::MAX);
    out.clear();
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&block_bytes.to_be_bytes());
}

/// READ CAPACITY (16) data, 32 bytes (SBC-3): no protection, one logical block per physical block, `thin` provisioning
/// as in VPD page B2h. `blocks` is the number of logical blocks, at least 1. The last block is that of the unit also
/// where it has zones (RC_BASIS 1, ZBC-2), which are not thin.
pub fn read_capacity_16(blocks: u64, block_bytes: u32, thin: bool, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&blocks.saturating_sub(1).to_be_bytes());
    out.extend_from_slice(&block_bytes.to_be_bytes());
    // Byte 12: RC_BASIS (5:4). Byte 14: LBPME (7), LBPRZ (6).
    out.extend_from_slice(if thin { &[0, 0, 1 << 7 | 1 << 6] } else { &[1 << 4, 0, 0] });
    out.resize(32, 0);
}

/// SAVING PARAMETERS NOT SUPPORTED: the answer to page control 11b.
const SAVING_NOT_SUPPORTED: Sense = Sense { key: 5, asc: 0x39, ascq: 0 };

/// MODE SENSE (10) data: 8-byte header with DPOFUA, no block descriptor, then read-write error recovery page 01h,
/// caching page 08h, control page 0Ah, or all of them for page code 3Fh (SPC-4, SBC-3). `page` is CDB byte 2 (page
/// control 7:6, page code 5:0). Changeable values are all zero: nothing can be changed.
///
/// # Errors
/// INVALID FIELD IN CDB for any other page or subpage (except FFh, all subpages, with 3Fh);
/// SAVING PARAMETERS NOT SUPPORTED for saved values. `out` is empty then.
pub fn mode_sense_10(page: u8, subpage: u8, out: &mut Vec<u8>) -> Result<(), Sense> {
    out.clear();
    let (control, code) = (page >> 6, page & 0x3F);
    if !matches!((code, subpage), (0x01 | 0x08 | 0x0A | 0x3F, 0) | (0x3F, 0xFF)) {
        return Err(Sense::INVALID_FIELD);
    }
    if control == 3 {
        return Err(SAVING_NOT_SUPPORTED);
    }
    out.extend_from_slice(&[0, 0, 0, 1 << 4, 0, 0, 0, 0]);
    let changeable = control == 1;
    if matches!(code, 0x01 | 0x3F) {
        // AWRE: blocks that cannot be written are written elsewhere.
        mode_page::<12>(0x01, (2, 1 << 7), changeable, out);
    }
    if matches!(code, 0x08 | 0x3F) {
        // WCE: writes are acknowledged from a volatile cache.
        mode_page::<20>(0x08, (2, 1 << 2), changeable, out);
    }
    if matches!(code, 0x0A | 0x3F) {
        // QUEUE ALGORITHM MODIFIER 1: a UFS device may reorder without limit.
        mode_page::<12>(0x0A, (3, 0x10), changeable, out);
    }
    // MODE DATA LENGTH does not count itself.
    let length = (out.len() - 2) as u16;
    out[0..2].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn mode_page<const N: usize>(code: u8, (at, value): (usize, u8), changeable: bool, out: &mut Vec<u8>) {
    let mut page = [0; N];
    page[0] = code;
    page[1] = (N - 2) as u8;
    page[at] = if changeable { 0 } else { value };
    out.extend_from_slice(&page);
}

/// The 8-byte LUN of REPORT LUNS for a UPIU LUN: 00h and the LUN, or C1h and its low 7 bits for a well-known logical
/// unit (JESD220, Linux `ufshcd_upiu_wlun_to_scsi_wlun`).
const fn scsi_lun(upiu_lun: u8) -> [u8; 8] {
    let first = if upiu_lun & 0x80 != 0 { 0xC1 } else { 0 };
    [first, upiu_lun & 0x7F, 0, 0, 0, 0, 0, 0]
}

/// REPORT LUNS data: an 8-byte header with the list's length, then 8 bytes for each of `upiu_luns` (SPC-4).
pub fn report_luns(upiu_luns: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&(upiu_luns.len() as u32 * 8).to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    for lun in upiu_luns {
        out.extend_from_slice(&scsi_lun(*lun));
    }
}

/// Bytes of sense data in the fixed format.
pub(crate) const FIXED_SENSE_BYTES: usize = 18;

/// Fixed-format sense data, current error: response code 70h (SPC-4). Only the low four bits of the key exist.
pub const fn fixed_sense(sense: Sense) -> [u8; FIXED_SENSE_BYTES] {
    let mut b = [0; FIXED_SENSE_BYTES];
    b[0] = 0x70;
    b[2] = sense.key & 0x0F;
    b[7] = (FIXED_SENSE_BYTES - 8) as u8;
    b[12] = sense.asc;
    b[13] = sense.ascq;
    b
}

/// Key and codes of fixed-format sense data (response code 70h or 71h), if it has that format and extends to ASCQ.
pub const fn parse_fixed_sense(bytes: &[u8]) -> Option<Sense> {
    if bytes.len() < 14 || bytes[0] & 0x7E != 0x70 {
        return None;
    }
    Some(Sense { key: bytes[2] & 0x0F, asc: bytes[12], ascq: bytes[13] })
}

/// A fault of an UNMAP parameter list (SBC-3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnmapError {
    /// Fewer bytes than the header, but not none.
    #[error("an UNMAP parameter list has a header of 8 bytes, here are {0}")]
    Header(usize),
    /// The header announces more than was sent.
    #[error("UNMAP block descriptors take {announced} bytes by the header, but {have} follow it")]
    Truncated {
        /// UNMAP BLOCK DESCRIPTOR DATA LENGTH.
        announced: usize,
        /// Bytes after the header.
        have: usize,
    },
}

impl UnmapError {
    /// PARAMETER LIST LENGTH ERROR, a device's answer.
    pub const SENSE: Sense = Sense::LIST_LENGTH;
}

const UNMAP_HEADER_BYTES: usize = 8;
const UNMAP_DESCRIPTOR_BYTES: usize = 16;
/// Most descriptors that one list can have: UNMAP DATA LENGTH counts 6 header bytes and 16 per descriptor in 16 bits.
pub const UNMAP_MAX_RANGES: usize = (u16::MAX as usize - 6) / UNMAP_DESCRIPTOR_BYTES;

/// Writes the UNMAP parameter list of `ranges` (first logical block, blocks) into `out`, which is cleared first
/// (SBC-3). At most [`UNMAP_MAX_RANGES`] fit; more are a mistake of the caller and left out.
pub fn encode_unmap(ranges: &[(u64, u32)], out: &mut Vec<u8>) {
    debug_assert!(ranges.len() <= UNMAP_MAX_RANGES);
    let ranges = &ranges[..ranges.len().min(UNMAP_MAX_RANGES)];
    let descriptors = (ranges.len() * UNMAP_DESCRIPTOR_BYTES) as u16;
    out.clear();
    out.extend_from_slice(&(descriptors + 6).to_be_bytes());
    out.extend_from_slice(&descriptors.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    for (lba, blocks) in ranges {
        out.extend_from_slice(&lba.to_be_bytes());
        out.extend_from_slice(&blocks.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
    }
}

/// The ranges (first logical block, blocks; 0 blocks is allowed) of an UNMAP parameter list. An empty list names none.
/// An incomplete last descriptor is ignored, as SBC-3 requires; whether ranges exist or overlap is not checked.
///
/// # Errors
/// [`UnmapError`] if the list is shorter than its header or than the header says.
pub fn parse_unmap(list: &[u8]) -> Result<impl ExactSizeIterator<Item = (u64, u32)> + Clone + '_, UnmapError> {
    let mut descriptors: &[u8] = &[];
    if !list.is_empty() {
        let Some((header, rest)) = list.split_first_chunk::<UNMAP_HEADER_BYTES>() else {
            return Err(UnmapError::Header(list.len()));
        };
        let announced = usize::from(u16::from_be_bytes([header[2], header[3]]));
        descriptors = rest.get(..announced).ok_or(UnmapError::Truncated { announced, have: rest.len() })?;
    }
    let (descriptors, _incomplete) = descriptors.as_chunks::<UNMAP_DESCRIPTOR_BYTES>();
    Ok(descriptors.iter().map(|d| {
        let lba = u64::from_be_bytes([d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]]);
        (lba, u32::from_be_bytes([d[8], d[9], d[10], d[11]]))
    }))
}

#[cfg(test)]
mod tests;
