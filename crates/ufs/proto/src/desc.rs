// SPDX-License-Identifier: MIT OR Apache-2.0
//! UFS descriptors as plain structs, to bytes and back.
//!
//! Layouts: JESD220 descriptor tables, JESD220-3 for the HPB fields, Linux `include/ufs/ufs.h` (`enum
//! device_desc_param`, `geometry_desc_param`, `unit_desc_param`, `health_desc_param`). All fields are big-endian.
//! `Default` is a UFS 3.1 device without HPB that Linux accepts; fields that a struct leaves out keep fixed values.
//! Knows layouts only: whether counts agree with each other is the device's part.

use crate::booster::ALLOCATION_UNIT_BLOCKS;
use crate::query::descriptor;
use crate::rpmb;

readpath_kit::named! {
    /// A version of UFS, which a device (wSpecVersion) and its controller (VER) claim.
    #[derive(Default)]
    pub enum UfsVersion {
        /// The first with which Linux uses HPB.
        #[default]
        V31 = "3.1",
        /// HS-G5.
        V40 = "4.0",
    }
}

impl UfsVersion {
    /// In BCD.
    pub const fn bcd(self) -> u16 {
        match self {
            UfsVersion::V31 => 0x0310,
            UfsVersion::V40 => 0x0400,
        }
    }
}

/// Why bytes are not a valid descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DescError {
    /// The descriptor (or the part read of it) ends before a required field.
    #[error("{descriptor} descriptor ends at byte {have}: {field} at byte {offset:#04x} and all after it is missing")]
    Short {
        /// Name of the descriptor.
        descriptor: &'static str,
        /// Bytes available: the fewer of those given and bLength.
        have: usize,
        /// First field that is missing or cut.
        field: &'static str,
        /// Offset of that field.
        offset: usize,
    },
    /// Byte 1, bDescriptorIDN, names another descriptor.
    #[error("descriptor has IDN {found:#04x}; a {descriptor} descriptor has {expected:#04x}")]
    Idn {
        /// Name of the descriptor.
        descriptor: &'static str,
        /// IDN found.
        found: u8,
        /// IDN that would be right.
        expected: u8,
    },
    /// A string descriptor whose text is no UTF-16: an odd number of bytes or an unpaired surrogate.
    #[error("string descriptor of {0} bytes does not hold UTF-16 text")]
    Text(usize),
    /// A text too long for a string descriptor.
    #[error("text has {0} UTF-16 units; a string descriptor holds 126")]
    TextLength(usize),
}

/// Place of a field in a descriptor.
#[derive(Debug)]
struct Field {
    name: &'static str,
    offset: usize,
    bytes: usize,
}

/// A big-endian value in a descriptor.
trait Wire: Sized {
    const BYTES: usize;
    fn put(self, to: &mut [u8]);
    /// `from` has [`Self::BYTES`] bytes.
    fn get(from: &[u8]) -> Self;
}

macro_rules! wire {
    ($($ty:ty)*) => {$(
        impl Wire for $ty {
            const BYTES: usize = size_of::<$ty>();

            fn put(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_be_bytes());
            }

            fn get(from: &[u8]) -> $ty {
                <$ty>::from_be_bytes(from.try_into().expect("as many bytes as the type has"))
            }
        }
    )*};
}

wire!(u8 u16 u32 u64);

/// The valid bytes: at most bLength, with the right IDN, extending at least to the last of `fields`.
fn checked<'a>(
    descriptor: &'static str,
    expected: u8,
    fields: &[Field],
    bytes: &'a [u8],
) -> Result<&'a [u8], DescError> {
    const HEADER: [Field; 2] =
        [Field { name: "bLength", offset: 0, bytes: 1 }, Field { name: "bDescriptorIDN", offset: 1, bytes: 1 }];
    let have = bytes.first().map_or(0, |length| bytes.len().min((*length).into()));
    let bytes = &bytes[..have];
    let ends_before = |field: &&Field| field.offset + field.bytes > have;
    let short = |field: &Field| DescError::Short { descriptor, have, field: field.name, offset: field.offset };
    if let Some(field) = HEADER.iter().find(ends_before) {
        return Err(short(field));
    }
    if bytes[1] != expected {
        return Err(DescError::Idn { descriptor, found: bytes[1], expected });
    }
    match fields.iter().find(ends_before) {
        Some(field) => Err(short(field)),
        None => Ok(bytes),
    }
}

/// Declares a descriptor: name for messages, IDN, length, then `offset name: type = default` per field in ascending
/// order and `offset = value` per fixed byte.
macro_rules! descriptor {
    (
        $(#[$meta:meta])*
        $name:ident, $text:literal, $idn:expr, $length:literal {
            $($(#[$field_meta:meta])* $offset:literal $field:ident: $ty:ty = $default:expr,)*
        }
        fixed { $($fixed_at:literal = $fixed:literal),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $ty,)*
        }

        impl $name {
            /// Bytes of the descriptor, its bLength.
            pub const BYTES: usize = $length;
            /// In ascending order of offset.
            const FIELDS: &[Field] = &[
                $(Field { name: stringify!($field), offset: $offset, bytes: <$ty as Wire>::BYTES },)*
            ];

            /// The whole descriptor.
            pub fn to_bytes(&self) -> [u8; $length] {
                let mut b = [0; $length];
                b[0] = $length;
                b[1] = $idn;
                $(b[$fixed_at] = $fixed;)*
                $(self.$field.put(&mut b[$offset..$offset + <$ty as Wire>::BYTES]);)*
                b
            }

            /// The fields from bytes as READ DESCRIPTOR returned them. A longer descriptor of a later version is fine.
            ///
            /// # Errors
            /// [`DescError::Idn`] for another descriptor, [`DescError::Short`] with the first missing field.
            pub fn parse(bytes: &[u8]) -> Result<$name, DescError> {
                let b = checked($text, $idn, $name::FIELDS, bytes)?;
                Ok($name { $($field: <$ty>::get(&b[$offset..$offset + <$ty as Wire>::BYTES]),)* })
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* }
            }
        }
    };
}

descriptor! {
    /// Device descriptor (JESD220; HPB fields JESD220-3).
    DeviceDescriptor, "device", descriptor::DEVICE, 0x59 {
        /// bNumberLU: enabled general logical units. Linux enables HPB and runtime power management when it has seen
        /// that many.
        0x06 number_lu: u8 = 1,
        /// wSpecVersion in BCD. Linux looks at HPB from 0310h on.
        0x10 spec_version: u16 = 0x0310,
        /// iManufacturerName: index of a string descriptor.
        0x14 manufacturer_name: u8 = 1,
        /// iProductName: index of a string descriptor, which Linux must be able to read.
        0x15 product_name: u8 = 2,
        /// iSerialNumber: index of a string descriptor.
        0x16 serial_number: u8 = 3,
        /// iOemID: index of a string descriptor.
        0x17 oem_id: u8 = 4,
        /// bUFSFeaturesSupport; bit 7 = HPB ([`crate::hpb::FEATURE_HPB`]).
        0x1F ufs_features: u8 = 0,
        /// bQueueDepth: shared queue of the device; 0 = every logical unit has its own.
        0x21 queue_depth: u8 = 0,
        /// iProductRevisionLevel: index of a string descriptor.
        0x2A product_revision: u8 = 5,
        /// wHPBVersion in BCD: 0100h or 0200h ([`crate::hpb::VERSION_1_0`], [`crate::hpb::VERSION_2_0`]).
        0x40 hpb_version: u16 = 0,
        /// bHPBControl: 0 host control mode, 1 device control mode.
        0x42 hpb_control: u8 = 0,
        /// dExtendedUFSFeaturesSupport; bit 7 = HPB, bit 8 = WriteBooster ([`crate::booster::FEATURE_WRITE_BOOSTER`]).
        0x4F extended_features: u32 = 0,
        /// bWriteBoosterBufferPreserveUserSpaceEn: 1 = the buffer takes no space from the logical units.
        0x53 wb_preserve_user_space: u8 = 0,
        /// bWriteBoosterBufferType ([`crate::booster::BUFFER_SHARED`]).
        0x54 wb_type: u8 = 0,
        /// dNumSharedWriteBoosterBufferAllocUnits: size of the shared buffer in allocation units.
        0x55 wb_shared_alloc_units: u32 = 0,
    }
    fixed {
        // bDeviceSubClass: not bootable. bNumberWLU. bInitPowerMode: active. bHighPriorityLUN: none. bSecurityLU: RPMB.
        0x04 = 1, 0x07 = 4, 0x0A = 1, 0x0B = 0x7F, 0x0D = 1,
        // wManufactureDate in BCD: month, year. wManufacturerID: unassigned; Linux has quirks for 012Ch, 01CEh, 01ADh
        // and 0198h.
        0x12 = 0x01, 0x13 = 0x26, 0x18 = 0x52, 0x19 = 0x50,
        // bUD0BaseOffset and bUDConfigPLength of the configuration descriptor. bDeviceRTTCap. wDeviceVersion.
        0x1A = 0x16, 0x1B = 0x1A, 0x1C = 2, 0x23 = 1,
    }
}

descriptor! {
    /// Geometry descriptor (JESD220; HPB fields JESD220-3).
    GeometryDescriptor, "geometry", descriptor::GEOMETRY, 0x57 {
        /// qTotalRawDeviceCapacity in 512 bytes.
        0x04 total_raw_capacity: u64 = 0,
        /// bHPBRegionSize: a region has 512 * 2^this bytes; 0 = no HPB.
        0x48 hpb_region_size: u8 = 0,
        /// bHPBNumberLU: most logical units with HPB, 1 to 32; 0 = no HPB.
        0x49 hpb_number_lu: u8 = 0,
        /// bHPBSubRegionSize: a sub-region has 512 * 2^this bytes; 0 = no HPB.
        0x4A hpb_sub_region_size: u8 = 0,
        /// wDeviceMaxActiveHPBRegions: most active regions of the device; 0 = no HPB.
        0x4B hpb_max_active_regions: u16 = 0,
        /// dWriteBoosterBufferMaxNAllocUnits: largest buffer of the device in allocation units.
        0x4F wb_max_alloc_units: u32 = 0,
        /// bDeviceMaxWriteBoosterLUs.
        0x53 wb_max_luns: u8 = 0,
        /// bWriteBoosterBufferCapAdjFac: bits of a cell outside the buffer.
        0x54 wb_capacity_factor: u8 = 0,
        /// bSupportedWriteBoosterBufferUserSpaceReductionTypes: 0 reduction, 1 preservation, 2 either.
        0x55 wb_reduction_types: u8 = 0,
        /// bSupportedWriteBoosterBufferTypes: 0 for one logical unit, 1 shared, 2 either.
        0x56 wb_types: u8 = 0,
    }
    fixed {
        // dSegmentSize in 512 bytes and bAllocationUnitSize in segments: 4 MiB.
        0x0F = 0x20, 0x11 = 1,
        // bMinAddrBlockSize, bOptimalRead/WriteBlockSize, bMaxIn/OutBufferSize: 4 KiB.
        0x12 = 8, 0x13 = 8, 0x14 = 8, 0x15 = 8, 0x16 = 8,
        // bRPMB_ReadWriteSize: 64 frames (rpmb::MOST_FRAMES). bMaxContexIDNumber.
        // wSupportedMemoryTypes: normal and RPMB.
        0x17 = 0x40, 0x1A = 5, 0x1E = 0x80, 0x1F = 0x01,
    }
}

descriptor! {
    /// Unit descriptor of a general logical unit (JESD220; HPB fields JESD220-3).
    UnitDescriptor, "unit", descriptor::UNIT, 0x2D {
        /// bUnitIndex: the LUN.
        0x02 unit_index: u8 = 0,
        /// bLUEnable: 0 disabled, 1 enabled, 2 enabled with HPB ([`crate::hpb::LU_ENABLED_HPB`]).
        0x03 lu_enable: u8 = 0,
        /// bLUQueueDepth; 0 = the device's shared queue.
        0x06 queue_depth: u8 = 0,
        /// qLogicalBlockCount.
        0x0B logical_block_count: u64 = 0,
        /// dEraseBlockSize in logical blocks.
        0x13 erase_block_size: u32 = 0,
        /// bProvisioningType: 0 full, 2 thin, 3 thin and reads zeros.
        0x17 provisioning_type: u8 = 0,
        /// qPhyMemResourceCount.
        0x18 physical_resource_count: u64 = 0,
        /// wLUMaxActiveHPBRegions, the pinned ones included.
        0x23 hpb_max_active_regions: u16 = 0,
        /// wHPBPinnedRegionStartIdx.
        0x25 hpb_pinned_start: u16 = 0,
        /// wNumHPBPinnedRegions.
        0x27 hpb_pinned_count: u16 = 0,
        /// dLUNumWriteBoosterBufferAllocUnits.
        0x29 wb_alloc_units: u32 = 0,
    }
    // bLogicalBlockSize, log2 of bytes: 4096, the only one with HPB.
    fixed { 0x0A = 0x0C }
}

/// Unit descriptor of the RPMB well-known logical unit, index C4h (JESD220): enabled, in the shared queue, bMemoryType
/// RPMB, [`rpmb::BLOCKS`] blocks of 256 bytes, all of them in region 0, whose size counts units of 128 KiB.
pub const RPMB_UNIT: [u8; 0x23] = {
    let count = (rpmb::BLOCKS as u64).to_be_bytes();
    let region = (rpmb::BLOCKS as usize * rpmb::BLOCK_BYTES) >> 17;
    // The counts end at 12h and 1Fh, and are below 2^16.
    let [.., high, low] = count;
    fixed(
        descriptor::UNIT,
        &[
            (0x02, crate::scsi::WLUN_RPMB),
            (0x03, 1),
            (0x08, 0x0F),
            (0x0A, 8),
            (0x11, high),
            (0x12, low),
            (0x13, region as u8),
            (0x1E, high),
            (0x1F, low),
        ],
    )
};
/// Logical units of a configuration descriptor.
pub const CONFIGURED_UNITS: usize = 8;
/// Bytes of its header, and of what it has for each unit: bUD0BaseOffset and bUDConfigPLength of UFS 3.1.
const CONFIG_HEADER: usize = 0x16;
const CONFIG_UNIT: usize = 0x1A;
/// Bytes of a configuration descriptor.
const CONFIGURATION_BYTES: usize = CONFIG_HEADER + CONFIGURED_UNITS * CONFIG_UNIT;

/// Configuration descriptor (JESD220E; offsets as in ufs-utils, `device_config_desc_field_name` and
/// `device_config_unit_desc_field_name`): how the device and its first units are provisioned. It repeats fields of
/// the other descriptors, so it is assembled from their bytes; dNumAllocUnits counts units of 4 MiB.
pub fn configuration(
    device: &DeviceDescriptor,
    units: &[UnitDescriptor; CONFIGURED_UNITS],
) -> [u8; CONFIGURATION_BYTES] {
    /// Offset here, offset there, bytes. bBootEnable to bSecureRemovalType, bInitActiveICCLevel, wPeriodicRTCUpdate,
    /// bHPBControl, fields of WriteBooster.
    const OF_DEVICE: [(usize, usize, usize); 5] =
        [(0x03, 0x08, 5), (0x08, 0x0F, 1), (0x09, 0x1D, 2), (0x0B, 0x42, 1), (0x10, 0x53, 6)];
    /// bRPMBRegionEnable, sizes of regions 1 to 3.
    const OF_RPMB: [(usize, usize, usize); 2] = [(0x0C, 0x09, 1), (0x0D, 0x14, 3)];
    /// bLUEnable to bLUWriteProtect, bMemoryType, bDataReliability and bLogicalBlockSize, bProvisioningType,
    /// wContextCapabilities, fields of HPB and WriteBooster.
    const OF_UNIT: [(usize, usize, usize); 6] =
        [(0x00, 0x03, 3), (0x03, 0x08, 1), (0x08, 0x09, 2), (0x0A, 0x17, 1), (0x0B, 0x20, 2), (0x10, 0x23, 10)];
    let copy = |to: &mut [u8], from: &[u8], fields: &[(usize, usize, usize)]| {
        fields.iter().for_each(|&(here, there, n)| to[here..here + n].copy_from_slice(&from[there..there + n]));
    };
    let mut bytes = [0; CONFIGURATION_BYTES];
    (bytes[0], bytes[1]) = (CONFIGURATION_BYTES as u8, descriptor::CONFIGURATION);
    copy(&mut bytes, &device.to_bytes(), &OF_DEVICE);
    copy(&mut bytes, &RPMB_UNIT, &OF_RPMB);
    for (unit, to) in units.iter().zip(bytes[CONFIG_HEADER..].chunks_exact_mut(CONFIG_UNIT)) {
        copy(to, &unit.to_bytes(), &OF_UNIT);
        let allocated = unit.logical_block_count.div_ceil(ALLOCATION_UNIT_BLOCKS.into());
        to[0x04..0x08].copy_from_slice(&(allocated as u32).to_be_bytes());
    }
    bytes
}

/// Interconnect descriptor (JESD220): UniPro 1.8 and M-PHY 4.1, with UFS 4.0 UniPro 2.0 and M-PHY 5.0.
pub const fn interconnect(version: UfsVersion) -> [u8; 0x06] {
    let (unipro, mphy) = match version {
        UfsVersion::V31 => ([0x01, 0x80], [0x04, 0x10]),
        UfsVersion::V40 => ([0x02, 0x00], [0x05, 0x00]),
    };
    fixed(descriptor::INTERCONNECT, &[(2, unipro[0]), (3, unipro[1]), (4, mphy[0]), (5, mphy[1])])
}
/// Power parameters descriptor (JESD220): most current per active ICC level. Linux accepts zeros.
pub const POWER: [u8; 0x62] = fixed(descriptor::POWER, &[]);
/// Bytes of the device health descriptor.
pub const HEALTH_BYTES: usize = 0x2D;

/// Device health descriptor (JESD220): bPreEOLInfo (1 normal, 2 and 3 from 80 and 90 % of the reserved blocks used),
/// and bDeviceLifeTimeEstA and B (0 not defined, 1 to 0Ah tenths of the life used, rounded up, 0Bh exceeded).
pub const fn health(pre_eol: u8, life: [u8; 2]) -> [u8; HEALTH_BYTES] {
    fixed(descriptor::HEALTH, &[(2, pre_eol), (3, life[0]), (4, life[1])])
}

/// A constant descriptor.
const fn fixed<const N: usize>(idn: u8, values: &[(usize, u8)]) -> [u8; N] {
    let mut bytes = [0; N];
    (bytes[0], bytes[1]) = (N as u8, idn);
    let mut i = 0;
    while i < values.len() {
        bytes[values[i].0] = values[i].1;
        i += 1;
    }
    bytes
}

/// Most UTF-16 units of a string descriptor: bLength is at most FEh.
const STRING_UNITS: usize = 126;

/// Writes a string descriptor (IDN 05h, UTF-16 big-endian without terminator) into `out`, which is cleared first
/// (JESD220). An empty text is allowed.
///
/// # Errors
/// [`DescError::TextLength`] over 126 UTF-16 units; `out` is empty then.
pub fn encode_string(text: &str, out: &mut Vec<u8>) -> Result<(), DescError> {
    out.clear();
    let units = text.encode_utf16().count();
    if units > STRING_UNITS {
        return Err(DescError::TextLength(units));
    }
    out.extend_from_slice(&[2 + 2 * units as u8, descriptor::STRING]);
    out.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
    Ok(())
}

/// The text of a string descriptor. Bytes after bLength are ignored.
///
/// # Errors
/// [`DescError::Short`] if the header is cut or there are fewer bytes than bLength, [`DescError::Idn`] for another
/// descriptor, [`DescError::Text`] if it is not UTF-16.
pub fn parse_string(bytes: &[u8]) -> Result<String, DescError> {
    const NAME: &str = "string";
    let b = checked(NAME, descriptor::STRING, &[], bytes)?;
    if b.len() < b[0].into() {
        return Err(DescError::Short { descriptor: NAME, have: b.len(), field: "text", offset: 2 });
    }
    let (units, odd) = b[2..].as_chunks::<2>();
    let text = char::decode_utf16(units.iter().map(|unit| u16::from_be_bytes(*unit))).collect::<Result<String, _>>();
    match text {
        Ok(text) if odd.is_empty() => Ok(text),
        _ => Err(DescError::Text(b.len())),
    }
}

#[cfg(test)]
mod tests;
