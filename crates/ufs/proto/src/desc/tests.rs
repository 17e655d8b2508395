// SPDX-License-Identifier: MIT OR Apache-2.0
//! Offsets of every field, lengths, tolerance and refusals of descriptors.

use proptest::prelude::*;

use super::*;

/// For each field: sets it, checks that exactly its bytes change at the offset of the JESD220 table, and parses it
/// back. Also checks that the list below names every field of the struct.
macro_rules! fields {
    ($ty:ident, $idn:literal { $($offset:literal $field:ident = $value:expr => $bytes:expr),* $(,)? }) => {{
        let plain = $ty::default();
        let base = plain.to_bytes();
        assert_eq!(base.len(), $ty::BYTES);
        assert_eq!((usize::from(base[0]), base[1]), ($ty::BYTES, $idn));
        assert_eq!($ty::parse(&base), Ok(plain));
        let mut names = Vec::new();
        $(
            let changed = $ty { $field: $value, ..plain };
            let bytes = changed.to_bytes();
            let expected: &[u8] = &$bytes;
            assert_eq!(&bytes[$offset..$offset + expected.len()], expected, stringify!($field));
            assert_eq!(bytes[..$offset], base[..$offset], "before {}", stringify!($field));
            let end = $offset + expected.len();
            assert_eq!(bytes[end..], base[end..], "after {}", stringify!($field));
            assert_eq!($ty::parse(&bytes), Ok(changed));
            names.push((stringify!($field), $offset));
        )*
        let declared: Vec<_> = $ty::FIELDS.iter().map(|f| (f.name, f.offset)).collect();
        assert_eq!(declared, names);
        for pair in $ty::FIELDS.windows(2) {
            assert!(pair[0].offset + pair[0].bytes <= pair[1].offset, "{pair:?} overlap");
        }
        base
    }};
}

#[test]
fn device() {
    let base = fields!(DeviceDescriptor, 0 {
        0x06 number_lu = 0xE2 => [0xE2],
        0x10 spec_version = 0xA1A2 => [0xA1, 0xA2],
        0x14 manufacturer_name = 0xE9 => [0xE9],
        0x15 product_name = 0xEA => [0xEA],
        0x16 serial_number = 0xEB => [0xEB],
        0x17 oem_id = 0xEC => [0xEC],
        0x1F ufs_features = 0x80 => [0x80],
        0x21 queue_depth = 0xEE => [0xEE],
        0x2A product_revision = 0xEF => [0xEF],
        0x40 hpb_version = 0x0200 => [0x02, 0x00],
        0x42 hpb_control = 0xF0 => [0xF0],
        0x4F extended_features = 0xB1B2_B3B4 => [0xB1, 0xB2, 0xB3, 0xB4],
        0x53 wb_preserve_user_space = 0xF1 => [0xF1],
        0x54 wb_type = 0xF2 => [0xF2],
        0x55 wb_shared_alloc_units = 0xC1C2_C3C4 => [0xC1, 0xC2, 0xC3, 0xC4],
    });
    assert_eq!(base.len(), 89);
    assert_eq!(base[..0x10], [0x59, 0x00, 0, 0, 1, 0, 1, 4, 0, 0, 1, 0x7F, 0, 1, 0, 0]);
    assert_eq!(base[0x10..0x1D], [0x03, 0x10, 0x01, 0x26, 1, 2, 3, 4, 0x52, 0x50, 0x16, 0x1A, 2]);
    assert_eq!(base[0x1D..0x2B], [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 5]);
}

#[test]
fn geometry() {
    let base = fields!(GeometryDescriptor, 7 {
        0x04 total_raw_capacity = 0x0102_0304_0506_0708 => [1, 2, 3, 4, 5, 6, 7, 8],
        0x48 hpb_region_size = 0x0F => [0x0F],
        0x49 hpb_number_lu = 0xE9 => [0xE9],
        0x4A hpb_sub_region_size = 0x0D => [0x0D],
        0x4B hpb_max_active_regions = 0xA3A4 => [0xA3, 0xA4],
        0x4F wb_max_alloc_units = 0xC1C2_C3C4 => [0xC1, 0xC2, 0xC3, 0xC4],
        0x53 wb_max_luns = 0xF1 => [0xF1],
        0x54 wb_capacity_factor = 0xF2 => [0xF2],
        0x55 wb_reduction_types = 0xF3 => [0xF3],
        0x56 wb_types = 0xF4 => [0xF4],
    });
    assert_eq!(base.len(), 87);
    assert_eq!(base[0x0C..0x20], [0, 0, 0, 0x20, 0, 1, 8, 8, 8, 8, 8, 0x40, 0, 0, 5, 0, 0, 0, 0x80, 1]);
}

#[test]
fn unit() {
    let base = fields!(UnitDescriptor, 2 {
        0x02 unit_index = 0xE1 => [0xE1],
        0x03 lu_enable = 0xE2 => [0xE2],
        0x06 queue_depth = 0xE5 => [0xE5],
        0x0B logical_block_count = 0x0102_0304_0506_0708 => [1, 2, 3, 4, 5, 6, 7, 8],
        0x13 erase_block_size = 0xB1B2_B3B4 => [0xB1, 0xB2, 0xB3, 0xB4],
        0x17 provisioning_type = 0xEA => [0xEA],
        0x18 physical_resource_count = 0x1112_1314_1516_1718 => [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18],
        0x23 hpb_max_active_regions = 0xA3A4 => [0xA3, 0xA4],
        0x25 hpb_pinned_start = 0xA5A6 => [0xA5, 0xA6],
        0x27 hpb_pinned_count = 0xA7A8 => [0xA7, 0xA8],
        0x29 wb_alloc_units = 0xC1C2_C3C4 => [0xC1, 0xC2, 0xC3, 0xC4],
    });
    assert_eq!((base.len(), base[0x0A]), (45, 0x0C));
}

#[test]
fn what_never_changes() {
    // 16,384 blocks, 32 times 128 KiB, and as many blocks again.
    let unit: [&[u8]; 5] =
        [&[35, 2, 0xC4, 1, 0, 0, 0, 0, 0x0F, 0, 8], &[0, 0, 0, 0, 0, 0, 0x40, 0], &[32, 0, 0, 0, 0], &[0; 6], &[0x40]];
    assert_eq!(RPMB_UNIT[..], [&unit.concat()[..], &[0; 4]].concat());
    assert_eq!(usize::from(GeometryDescriptor::default().to_bytes()[0x17]), crate::rpmb::MOST_FRAMES);
    assert_eq!(interconnect(UfsVersion::V31), [6, 4, 0x01, 0x80, 0x04, 0x10]);
    assert_eq!(interconnect(UfsVersion::V40), [6, 4, 0x02, 0, 0x05, 0]);
    assert!(POWER[..2] == [98, 8] && POWER[2..].iter().all(|b| *b == 0));
    let health = health(1, [2, 3]);
    assert!(health[..6] == [45, 9, 1, 2, 3, 0] && health[6..].iter().all(|b| *b == 0));
}

/// Fields of the other descriptors, at their offsets in the tables of UFS 3.1.
#[test]
fn a_configuration() {
    let device = DeviceDescriptor {
        hpb_control: 0xE1,
        wb_preserve_user_space: 0xE2,
        wb_type: 0xE3,
        wb_shared_alloc_units: 0xA1A2_A3A4,
        ..Default::default()
    };
    let unit = UnitDescriptor {
        unit_index: 7,
        lu_enable: 2,
        logical_block_count: 3 * 1024 + 1,
        provisioning_type: 3,
        hpb_max_active_regions: 0xB1B2,
        hpb_pinned_start: 0xB3B4,
        hpb_pinned_count: 0xB5B6,
        wb_alloc_units: 0xC1C2_C3C4,
        ..Default::default()
    };
    let mut units = [UnitDescriptor::default(); CONFIGURED_UNITS];
    units[7] = unit;
    let bytes = configuration(&device, &units);
    assert_eq!(bytes.len(), 230);
    let base = device.to_bytes();
    assert_eq!((base[0x1A], base[0x1B]), (0x16, 0x1A), "where the device descriptor says that units begin");
    let header =
        [&[0xE6, 1, 0, 0, 0, 1, 0x7F, 0, 0, 0, 0, 0xE1, 0, 0, 0, 0][..], &[0xE2, 0xE3, 0xA1, 0xA2, 0xA3, 0xA4]];
    assert_eq!(bytes[..0x16], header.concat());
    for disabled in bytes[0x16..0x16 + 7 * 0x1A].chunks_exact(0x1A) {
        assert_eq!(disabled, [[0; 9].as_slice(), &[0x0C], &[0; 16]].concat());
    }
    let enabled: [&[u8]; 4] = [
        &[2, 0, 0, 0, 0, 0, 0, 4, 0, 0x0C, 3, 0, 0, 0, 0, 0],
        &[0xB1, 0xB2],
        &[0xB3, 0xB4, 0xB5, 0xB6],
        &[0xC1, 0xC2, 0xC3, 0xC4],
    ];
    assert_eq!(bytes[0x16 + 7 * 0x1A..], enabled.concat());
}

#[test]
fn longer_descriptors_are_fine() {
    let unit = UnitDescriptor { logical_block_count: 77, wb_alloc_units: 5, ..Default::default() };
    let mut bytes = unit.to_bytes().to_vec();
    bytes[0] += 3;
    bytes.extend([0xAA; 10]);
    assert_eq!(UnitDescriptor::parse(&bytes), Ok(unit));
}

#[test]
fn shorter_descriptors_say_what_is_missing() {
    let short = |have, field, offset| Err(DescError::Short { descriptor: "unit", have, field, offset });
    let mut bytes = UnitDescriptor::default().to_bytes();
    assert_eq!(UnitDescriptor::parse(&[]), short(0, "bLength", 0));
    assert_eq!(UnitDescriptor::parse(&bytes[..1]), short(1, "bDescriptorIDN", 1));
    assert_eq!(UnitDescriptor::parse(&bytes[..0x24]), short(0x24, "hpb_max_active_regions", 0x23));
    // A UFS 2.1 device: bLength 23h, whatever follows.
    bytes[0] = 0x23;
    assert_eq!(UnitDescriptor::parse(&bytes), short(0x23, "hpb_max_active_regions", 0x23));
    let text = UnitDescriptor::parse(&bytes).unwrap_err().to_string();
    assert!(text.contains("hpb_max_active_regions") && text.contains("0x23"), "{text}");
    bytes[0] = 0x2D;
    bytes[1] = 0;
    let error = UnitDescriptor::parse(&bytes);
    assert_eq!(error, Err(DescError::Idn { descriptor: "unit", found: 0, expected: 2 }));
}

#[test]
fn strings() {
    let mut out = vec![1];
    encode_string("R\u{20AC}", &mut out).unwrap();
    assert_eq!(out, [6, 5, 0, b'R', 0x20, 0xAC]);
    encode_string("", &mut out).unwrap();
    assert_eq!(out, [2, 5]);
    assert_eq!(parse_string(&out).as_deref(), Ok(""));
    let longest = "x".repeat(126);
    encode_string(&longest, &mut out).unwrap();
    assert_eq!((out[0], out.len()), (0xFE, 254));
    assert_eq!(parse_string(&out), Ok(longest));
    assert_eq!(encode_string(&"x".repeat(127), &mut out), Err(DescError::TextLength(127)));
    assert!(out.is_empty());
    assert_eq!(parse_string(&[5, 5, 0, b'a', 0]), Err(DescError::Text(5)));
    assert_eq!(parse_string(&[4, 5, 0xD8, 0x00]), Err(DescError::Text(4)));
    assert_eq!(
        parse_string(&[4, 5, 0]),
        Err(DescError::Short { descriptor: "string", have: 3, field: "text", offset: 2 })
    );
    assert!(matches!(parse_string(&[1, 5]), Err(DescError::Short { have: 1, .. })));
    assert!(matches!(parse_string(&[4, 2, 0, b'a']), Err(DescError::Idn { found: 2, .. })));
    assert_eq!(parse_string(&[4, 5, 0, b'a', 0xD8]).as_deref(), Ok("a"));
}

proptest! {
    #[test]
    fn strings_round_trip(text in "\\PC{0,60}") {
        let mut out = Vec::new();
        encode_string(&text, &mut out).unwrap();
        prop_assert_eq!(parse_string(&out), Ok(text));
    }

    #[test]
    fn random_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120), idn in 0u8..10, long: bool) {
        if let [length, second, ..] = &mut bytes[..] {
            *second = idn;
            if long {
                *length = 0xFF;
            }
        }
        // Parsed descriptors are encoded back exactly, as far as their fields go.
        macro_rules! check {
            ($($ty:ident)*) => {$(
                if let Ok(value) = $ty::parse(&bytes) {
                    let again = value.to_bytes();
                    for f in $ty::FIELDS {
                        prop_assert_eq!(&again[f.offset..f.offset + f.bytes], &bytes[f.offset..f.offset + f.bytes]);
                    }
                }
            )*};
        }
        check!(DeviceDescriptor GeometryDescriptor UnitDescriptor);
        let _ = parse_string(&bytes);
    }
}
