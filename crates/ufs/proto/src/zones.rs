// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data of zoned block devices: REPORT ZONES, the VPD page of zoned characteristics, and the codes of zones.
//!
//! Layouts: ZBC-2 (REPORT ZONES, ZONE MANAGEMENT OUT, VPD B6h), as Linux `drivers/scsi/sd_zbc.c` reads them. The
//! standard for UFS (JESD220-5) adds no layout that Linux knows: a zoned logical unit is a unit of peripheral type 14h.
//! It does not know in which state a zone is, nor what changes it.

/// Peripheral type of a host-managed zoned block device (ZBC-2).
pub const PERIPHERAL_ZONED: u8 = 0x14;
/// VPD page of zoned block device characteristics (ZBC-2).
pub const VPD_ZONED: u8 = 0xB6;

/// Bytes of the header of REPORT ZONES data, and of each zone descriptor.
pub const DESCRIPTOR_BYTES: usize = 64;

/// What ZONE MANAGEMENT OUT does, by its service action (CDB byte 1 bits 4:0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneAction {
    /// CLOSE ZONE (01h).
    Close,
    /// FINISH ZONE (02h).
    Finish,
    /// OPEN ZONE (03h).
    Open,
    /// RESET WRITE POINTER (04h).
    Reset,
}

impl ZoneAction {
    /// All actions.
    pub const ALL: [ZoneAction; 4] = [ZoneAction::Close, ZoneAction::Finish, ZoneAction::Open, ZoneAction::Reset];

    /// The service action.
    pub const fn code(self) -> u8 {
        match self {
            ZoneAction::Close => 1,
            ZoneAction::Finish => 2,
            ZoneAction::Open => 3,
            ZoneAction::Reset => 4,
        }
    }

    /// The action of a service action, if it is one.
    pub fn from_code(code: u8) -> Option<ZoneAction> {
        ZoneAction::ALL.into_iter().find(|action| action.code() == code)
    }
}

/// Zone type, as a descriptor names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneType {
    /// Sequential write required (2h).
    Sequential,
    /// Gap (5h): no blocks are there.
    Gap,
}

/// Zone condition, as a descriptor names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneCondition {
    /// Not write pointer (0h): a gap.
    NotWritePointer,
    /// Empty (1h).
    Empty,
    /// Implicitly open (2h): by a write.
    ImplicitOpen,
    /// Explicitly open (3h): by OPEN ZONE.
    ExplicitOpen,
    /// Closed (4h).
    Closed,
    /// Full (Eh).
    Full,
}

impl ZoneCondition {
    /// The code in a descriptor.
    pub const fn code(self) -> u8 {
        match self {
            ZoneCondition::NotWritePointer => 0x0,
            ZoneCondition::Empty => 0x1,
            ZoneCondition::ImplicitOpen => 0x2,
            ZoneCondition::ExplicitOpen => 0x3,
            ZoneCondition::Closed => 0x4,
            ZoneCondition::Full => 0xE,
        }
    }
}

/// Which zones REPORT ZONES lists: its reporting options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listed {
    /// All zones (00h).
    All,
    /// Those in a condition (01h to 05h).
    In(ZoneCondition),
    /// Read-only or offline zones (06h, 07h), zones to be reset (10h) or with non-sequential resources (11h): there
    /// are none.
    None,
    /// All zones but gaps (3Eh).
    NoGaps,
    /// Zones without a write pointer (3Fh).
    NoWritePointer,
}

impl Listed {
    /// The choice of reporting options (CDB byte 14 bits 5:0), if they are known.
    pub const fn from_code(code: u8) -> Option<Listed> {
        Some(match code {
            0x00 => Listed::All,
            0x01 => Listed::In(ZoneCondition::Empty),
            0x02 => Listed::In(ZoneCondition::ImplicitOpen),
            0x03 => Listed::In(ZoneCondition::ExplicitOpen),
            0x04 => Listed::In(ZoneCondition::Closed),
            0x05 => Listed::In(ZoneCondition::Full),
            0x06 | 0x07 | 0x10 | 0x11 => Listed::None,
            0x3E => Listed::NoGaps,
            0x3F => Listed::NoWritePointer,
            _ => return None,
        })
    }

    /// Whether a zone in this condition is listed.
    pub fn lists(self, condition: ZoneCondition) -> bool {
        match self {
            Listed::All => true,
            Listed::In(listed) => condition == listed,
            Listed::None => false,
            Listed::NoGaps => condition != ZoneCondition::NotWritePointer,
            Listed::NoWritePointer => condition == ZoneCondition::NotWritePointer,
        }
    }
}

/// A zone as REPORT ZONES describes it, in logical blocks of its unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// First block.
    pub start: u64,
    /// Blocks.
    pub blocks: u64,
    /// Condition; that of a gap is [`ZoneCondition::NotWritePointer`].
    pub condition: ZoneCondition,
    /// The next block to be written. Of a full zone the block behind it, of a gap it means nothing.
    pub write_pointer: u64,
}

impl Zone {
    fn kind(&self) -> ZoneType {
        match self.condition {
            ZoneCondition::NotWritePointer => ZoneType::Gap,
            _ => ZoneType::Sequential,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        let kind = match self.kind() {
            ZoneType::Sequential => 2,
            ZoneType::Gap => 5,
        };
        let write_pointer = match self.kind() {
            ZoneType::Sequential => self.write_pointer,
            ZoneType::Gap => u64::MAX,
        };
        let at = out.len();
        out.extend_from_slice(&[kind, self.condition.code() << 4, 0, 0, 0, 0, 0, 0]);
        for value in [self.blocks, self.start, write_pointer] {
            out.extend_from_slice(&value.to_be_bytes());
        }
        out.resize(at + DESCRIPTOR_BYTES, 0);
    }
}

/// REPORT ZONES data (ZBC-2): a header of 64 bytes, and 64 bytes for each zone. The list's length counts all `zones`,
/// or those that `partial` data of `alloc` bytes holds. `last` is the unit's last logical block; `granularity` is the
/// distance of zone starts where gaps lie between zones, otherwise 0. No more than `alloc` bytes are made.
pub fn report_zones(
    zones: impl Iterator<Item = Zone>,
    (last, granularity): (u64, u64),
    (alloc, partial): (u32, bool),
    out: &mut Vec<u8>,
) {
    out.clear();
    out.resize(DESCRIPTOR_BYTES, 0);
    let room = (alloc as usize).saturating_sub(DESCRIPTOR_BYTES);
    let whole = (room / DESCRIPTOR_BYTES) as u64;
    let mut zones = zones;
    let mut listed = 0u64;
    let mut lists = |limit: u64, out: &mut Vec<u8>| {
        while listed < limit
            && let Some(zone) = zones.next()
        {
            // The last one may be cut.
            if out.len() < DESCRIPTOR_BYTES + room {
                zone.put(out);
            }
            listed += 1;
        }
        listed
    };
    let listed = lists(if partial { whole } else { u64::MAX }, out);
    let bytes = u32::try_from(listed * DESCRIPTOR_BYTES as u64).unwrap_or(u32::MAX);
    out[0..4].copy_from_slice(&bytes.to_be_bytes());
    // Byte 4, SAME: zones and gaps differ in type and length; otherwise all are alike.
    out[4] = u8::from(granularity == 0);
    out[8..16].copy_from_slice(&last.to_be_bytes());
    out[16..24].copy_from_slice(&granularity.to_be_bytes());
}

/// VPD page B6h, 64 bytes (ZBC-2): reads above write pointers succeed (URSWRZ), and how many zones may be open. With
/// a `granularity` zones begin at multiples of it and gaps follow them (alignment method 8h); it is 0 without gaps.
pub fn vpd_zoned(peripheral: u8, most_open: u32, granularity: u64, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[peripheral, VPD_ZONED, 0, 0x3C, 1, 0, 0, 0]);
    // Sequential write preferred zones: there are none.
    out.extend_from_slice(&[0xFF; 8]);
    out.extend_from_slice(&most_open.to_be_bytes());
    out.extend_from_slice(&[0, 0, 0, if granularity > 0 { 8 } else { 0 }]);
    out.extend_from_slice(&granularity.to_be_bytes());
    out.resize(DESCRIPTOR_BYTES, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONE: u64 = 0x8000;

    fn zones() -> impl Iterator<Item = Zone> {
        [(ZoneCondition::Empty, 0), (ZoneCondition::ImplicitOpen, 0x30), (ZoneCondition::Full, ZONE)]
            .into_iter()
            .zip(0..)
            .map(|((condition, written), i)| Zone {
                start: i * ZONE,
                blocks: ZONE,
                condition,
                write_pointer: i * ZONE + written,
            })
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    #[test]
    fn a_report_byte_for_byte() {
        let mut out = vec![7; 3];
        report_zones(zones(), (0xFF_FFFF, 0), (u32::MAX, false), &mut out);
        let zeros = "00".repeat(32);
        let expected = [
            format!("000000C0 01000000 0000000000FFFFFF 0000000000000000 {} {}", "00".repeat(8), zeros),
            format!("0210 000000000000 0000000000008000 0000000000000000 0000000000000000 {zeros}"),
            format!("0220 000000000000 0000000000008000 0000000000008000 0000000000008030 {zeros}"),
            format!("02E0 000000000000 0000000000008000 0000000000010000 0000000000018000 {zeros}"),
        ];
        assert_eq!(out, hex(&expected.concat()));
    }

    /// Without PARTIAL the length counts zones that do not fit; a last descriptor may be cut by the caller.
    #[test]
    fn a_report_that_does_not_fit() {
        let mut out = Vec::new();
        for (alloc, whole, made) in
            [(0, 0, 64), (64, 0, 64), (127, 0, 128), (128, 1, 128), (200, 2, 256), (256, 3, 256)]
        {
            report_zones(zones(), (9, 0), (alloc, false), &mut out);
            assert_eq!((out[3], out.len()), (3 * 64, made), "{alloc} bytes");
            report_zones(zones(), (9, 0), (alloc, true), &mut out);
            assert_eq!(usize::from(out[3]), whole * 64, "{alloc} bytes");
        }
    }

    #[test]
    fn a_gap_has_no_write_pointer() {
        let gap = Zone { start: 6, blocks: 2, condition: ZoneCondition::NotWritePointer, write_pointer: 0 };
        let mut out = Vec::new();
        report_zones(std::iter::once(gap), (7, 8), (128, true), &mut out);
        assert_eq!(out[..24], hex("00000040 00000000 0000000000000007 0000000000000008"));
        assert_eq!(out[64..96], hex("0500 000000000000 0000000000000002 0000000000000006 FFFFFFFFFFFFFFFF"));
    }

    #[test]
    fn the_page_of_characteristics() {
        let mut out = Vec::new();
        vpd_zoned(PERIPHERAL_ZONED, 6, 0, &mut out);
        assert_eq!(
            out[..32],
            hex(&format!("14B6003C 01000000 {} 00000006 00000000 {}", "FF".repeat(8), "00".repeat(8)))
        );
        assert!(out.len() == 64 && out[32..].iter().all(|b| *b == 0));
        vpd_zoned(PERIPHERAL_ZONED, 6, 0x8_0000, &mut out);
        assert_eq!(out[20..32], hex("00000008 0000000000080000"));
    }

    #[test]
    fn options_list_what_they_say() {
        let all = [
            ZoneCondition::NotWritePointer,
            ZoneCondition::Empty,
            ZoneCondition::ImplicitOpen,
            ZoneCondition::ExplicitOpen,
            ZoneCondition::Closed,
            ZoneCondition::Full,
        ];
        let of = |code| Listed::from_code(code).map(|l| all.map(|c| u8::from(l.lists(c))));
        assert_eq!(of(0x00), Some([1; 6]));
        assert_eq!(of(0x02), Some([0, 0, 1, 0, 0, 0]));
        assert_eq!(of(0x05), Some([0, 0, 0, 0, 0, 1]));
        assert_eq!(of(0x3E), Some([0, 1, 1, 1, 1, 1]));
        assert_eq!(of(0x3F), Some([1, 0, 0, 0, 0, 0]));
        for code in [0x06, 0x07, 0x10, 0x11] {
            assert_eq!(of(code), Some([0; 6]));
        }
        assert_eq!([0x08, 0x0F, 0x12, 0x3D].map(Listed::from_code), [None; 4]);
    }
}
