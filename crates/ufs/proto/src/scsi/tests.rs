// SPDX-License-Identifier: MIT OR Apache-2.0
//! Literal layouts and round trips of SCSI parameter data.

use proptest::prelude::*;

use super::*;

#[test]
fn standard_inquiry() {
    let mut out = vec![1, 2, 3];
    inquiry(PERIPHERAL_DISK, &Identity::new("READPATH", "Virtual UFS HPB device", "1\u{e9}"), &mut out);
    assert_eq!(out, b"\x00\x00\x06\x02\x1f\x00\x00\x02READPATHVirtual UFS HPB 1?  ");
    assert_eq!(out.len(), 36);
    inquiry(PERIPHERAL_WELL_KNOWN, &Identity::new("", "", ""), &mut out);
    assert_eq!((out[0], out[8], out[35]), (0x1E, b' ', b' '));
}

#[test]
fn vpd_pages() {
    let mut out = vec![9; 99];
    vpd_supported_pages(0, &[0x00, 0x80, 0x83, 0xB0, 0xB1, 0xB2], &mut out);
    assert_eq!(out, [0, 0, 0, 6, 0x00, 0x80, 0x83, 0xB0, 0xB1, 0xB2]);
    vpd_serial_number(0x1E, b"RP01", &mut out);
    assert_eq!(out, b"\x1e\x80\x00\x04RP01");
    vpd_identification(0, 0x3123_4567_89AB_CDEF, &mut out);
    assert_eq!(out, [0, 0x83, 0, 12, 1, 3, 0, 8, 0x31, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF]);
    vpd_characteristics(0, &mut out);
    assert_eq!(out[..6], [0, 0xB1, 0, 0x3C, 0, 1]);
    assert!(out.len() == 64 && out[6..].iter().all(|b| *b == 0));
}

#[test]
fn block_limits_page() {
    let limits = BlockLimits {
        optimal_transfer_blocks: 0x0102_0304,
        max_unmap_blocks: 0x1112_1314,
        max_unmap_descriptors: 0x1516_1718,
        unmap_granularity: 0x191A_1B1C,
    };
    let mut out = Vec::new();
    vpd_block_limits(0, &limits, &mut out);
    assert_eq!((out.len(), &out[..4]), (64, &[0, 0xB0, 0, 0x3C][..]));
    assert_eq!(out[20..32], [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C]);
    assert_eq!(out[12..16], [1, 2, 3, 4]);
    assert!(out[4..12].iter().chain(&out[16..20]).chain(&out[32..]).all(|b| *b == 0));
}

#[test]
fn provisioning() {
    let mut out = Vec::new();
    vpd_provisioning(0, true, &mut out);
    assert_eq!(out, [0, 0xB2, 0, 4, 0, 0x84, 2, 0]);
    vpd_provisioning(0x14, false, &mut out);
    assert_eq!(out, [0x14, 0xB2, 0, 4, 0, 0, 0, 0]);
    read_capacity_16(0x1_0000_0000, 4096, false, &mut out);
    assert_eq!(out[8..15], [0, 0, 0x10, 0, 0x10, 0, 0]);
    read_capacity_16(0x1_0000_0000, 4096, true, &mut out);
    assert_eq!(out[..15], [0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0x10, 0, 0, 0, 0xC0]);
    assert!(out.len() == 32 && out[15..].iter().all(|b| *b == 0));
}

#[test]
fn capacity_of_ten() {
    let mut out = Vec::new();
    read_capacity_10(16_777_216, 4096, &mut out);
    assert_eq!(out, [0x00, 0xFF, 0xFF, 0xFF, 0, 0, 0x10, 0]);
    read_capacity_10((1 << 32) + 1, 4096, &mut out);
    assert_eq!(out[..4], [0xFF; 4]);
}

#[test]
fn mode_pages() {
    let mut out = Vec::new();
    let recovery = [0x01, 0x0A, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let caching = [0x08, 0x12, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let control = [0x0A, 0x0A, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0];
    mode_sense_10(0x01, 0, &mut out).unwrap();
    assert_eq!(out, [&[0, 18, 0, 0x10, 0, 0, 0, 0][..], &recovery].concat());
    mode_sense_10(0x08, 0, &mut out).unwrap();
    assert_eq!(out, [&[0, 26, 0, 0x10, 0, 0, 0, 0][..], &caching].concat());
    mode_sense_10(0x0A, 0, &mut out).unwrap();
    assert_eq!(out, [&[0, 18, 0, 0x10, 0, 0, 0, 0][..], &control].concat());
    for (page, subpage) in [(0x3F, 0), (0x3F, 0xFF), (0xBF, 0)] {
        mode_sense_10(page, subpage, &mut out).unwrap();
        assert_eq!(out, [&[0, 50, 0, 0x10, 0, 0, 0, 0][..], &recovery, &caching, &control].concat());
    }
    // Changeable: nothing.
    mode_sense_10(0x48, 0, &mut out).unwrap();
    assert_eq!(out[8..11], [0x08, 0x12, 0]);
    for (page, subpage, sense) in [
        (0x02, 0, Sense::INVALID_FIELD),
        (0x08, 1, Sense::INVALID_FIELD),
        (0x08, 0xFF, Sense::INVALID_FIELD),
        (0xC8, 0, SAVING_NOT_SUPPORTED),
    ] {
        assert_eq!(mode_sense_10(page, subpage, &mut out), Err(sense));
        assert!(out.is_empty());
    }
}

#[test]
fn lun_list() {
    let mut out = Vec::new();
    report_luns(&[0, 5, WLUN_DEVICE, WLUN_RPMB, WLUN_BOOT, WLUN_REPORT_LUNS], &mut out);
    assert_eq!(out[..8], [0, 0, 0, 48, 0, 0, 0, 0]);
    let firsts: Vec<_> = out[8..].chunks(8).map(|e| (u16::from_be_bytes([e[0], e[1]]), &e[2..])).collect();
    let expected = [0x0000, 0x0005, 0xC150, 0xC144, 0xC130, 0xC101].map(|lun| (lun, &[0u8; 6][..]));
    assert_eq!(firsts, expected);
}

#[test]
fn sense() {
    let bytes = fixed_sense(Sense::LBA_OUT_OF_RANGE);
    assert_eq!(bytes, [0x70, 0, 0x05, 0, 0, 0, 0, 0x0A, 0, 0, 0, 0, 0x21, 0, 0, 0, 0, 0]);
    assert_eq!(parse_fixed_sense(&bytes), Some(Sense::LBA_OUT_OF_RANGE));
    assert_eq!(parse_fixed_sense(&bytes[..14]), Some(Sense::LBA_OUT_OF_RANGE));
    assert_eq!(parse_fixed_sense(&bytes[..13]), None);
    assert_eq!(parse_fixed_sense(&[0x72; 18]), None);
    assert_eq!(parse_fixed_sense(&[0; 18]), None);
}

#[test]
fn unmap_list() {
    let mut out = Vec::new();
    encode_unmap(&[(0x0102_0304_0506_0708, 0x090A_0B0C)], &mut out);
    assert_eq!(out, [0, 22, 0, 16, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 0]);
    assert_eq!(parse_unmap(&out).unwrap().collect::<Vec<_>>(), [(0x0102_0304_0506_0708, 0x090A_0B0C)]);
    assert_eq!(parse_unmap(&[]).unwrap().len(), 0);
    assert_eq!(parse_unmap(&[0; 8]).unwrap().len(), 0);
    assert_eq!(parse_unmap(&[0; 7]).err(), Some(UnmapError::Header(7)));
    assert_eq!(parse_unmap(&out[..23]).err(), Some(UnmapError::Truncated { announced: 16, have: 15 }));
    // 15 of 16 bytes announced: an incomplete descriptor, ignored.
    out[3] = 15;
    assert_eq!(parse_unmap(&out).unwrap().len(), 0);
}

proptest! {
    #[test]
    fn unmap_round_trip(ranges in prop::collection::vec(any::<(u64, u32)>(), 0..20), after: Vec<u8>) {
        let mut out = Vec::new();
        encode_unmap(&ranges, &mut out);
        out.extend_from_slice(&after);
        prop_assert_eq!(parse_unmap(&out).unwrap().collect::<Vec<_>>(), ranges);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), length: u8) {
        let mut bytes = bytes;
        if bytes.len() > 4 {
            bytes[2] = 0;
            bytes[3] = length;
        }
        if let Ok(ranges) = parse_unmap(&bytes) {
            prop_assert!(ranges.len() * 16 + 8 <= bytes.len().max(8));
        }
        parse_fixed_sense(&bytes);
    }
}
