// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of fixed size that are damaged, cut off or not what the options say: which byte the message names.

use crate::trace_common::{open, read_with};
use readpath_workload::IoKind::{Read, Trim, Write};
use readpath_workload::trace::{Devices, Format, Options, Place, Reason};

fn oracle(time: u32, object: u64, size: u32, next: i64) -> Vec<u8> {
    [&time.to_le_bytes()[..], &object.to_le_bytes(), &size.to_le_bytes(), &next.to_le_bytes()].concat()
}

fn vscsi1(version: u16, command: u16, us: u64, length: u32) -> Vec<u8> {
    let mut record = vec![0; 32];
    record[4..8].copy_from_slice(&length.to_le_bytes());
    record[12..14].copy_from_slice(&command.to_le_bytes());
    record[14..16].copy_from_slice(&version.to_le_bytes());
    record[24..32].copy_from_slice(&us.to_le_bytes());
    record
}

const MAGIC: u64 = 0x1234_5678_9ABC_DEF0;

/// A header of lcs for `requests` requests.
fn header(version: u64, requests: i64) -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    for (at, value) in [(0, MAGIC), (8, version), (24, requests as u64), (8184, MAGIC)] {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// A record of version 2.
fn v2(time: u32, op: u8, tenant: u32) -> Vec<u8> {
    let word = u32::from(op) | tenant << 8;
    let numbers = [&time.to_le_bytes()[..], &77u64.to_le_bytes(), &4096u32.to_le_bytes(), &word.to_le_bytes()];
    [&numbers.concat()[..], &(-1i64).to_le_bytes()].concat()
}

fn objects(format: Format) -> Options {
    Options { format: Some(format), object_bytes: Some(512), ..Options::default() }
}

#[track_caller]
fn refused(bytes: &[u8], options: &Options, message: &str) {
    let e = read_with(bytes, options).expect_err(message);
    assert!(e.to_string().starts_with(&format!("t: {message}")), "{e}");
    // Leniently the record is left out and counted, with its place; what is wrong as a whole stays an error.
    let (skipped, options) = (e.reason, Options { lenient: true, ..options.clone() });
    match read_with(bytes, &options) {
        Ok((requests, summary)) => {
            let skip = summary.skips.iter().next().expect("it was counted");
            assert!(!requests.is_empty() && (skip.0, skip.1, skip.2) == (skipped, 1, e.place), "{e}: {skip:?}");
        }
        Err(lenient) => assert!(matches!(e.reason, Reason::Format | Reason::Options), "{lenient}"),
    }
}

#[test]
fn a_damaged_record_of_oracle_general() {
    let good = oracle(1, 8, 4096, 3);
    let options = objects(Format::OracleGeneral);
    for (bad, message) in [
        (oracle(2, 8, 0, 3), "byte 36: size: expected at least 1 byte, found 0"),
        (oracle(2, 1 << 60, 512, -1), "byte 28: object: expected less than 2^64 bytes, found 1152921504606846976"),
        (
            oracle(2, (1 << 55) - 1, 4096, -1),
            "byte 28: object: expected an end below 2^64 bytes, found 36028797018963967",
        ),
        (oracle(2, 8, 512, -2), "byte 40: next access: expected -1, or the number of a later request, found -2"),
        (good[..23].to_vec(), "byte 24: the record is cut off; 23 bytes are left"),
    ] {
        refused(&[&good[..], &bad].concat(), &options, message);
    }
    let many = [good.clone(), oracle(2, 9, 0, 3), oracle(2, 9, 0, 3), good.clone()].concat();
    let (requests, summary) = read_with(&*many, &Options { lenient: true, ..options }).expect("two are good");
    assert_eq!((requests.len(), summary.skips.count(Reason::ZeroSize), summary.inversions), (2, 2, 0));
    assert_eq!(requests[1].offset, 8 * 512);
}

#[test]
fn objects_need_a_unit_and_nothing_else_takes_one() {
    let bytes = oracle(1, 8, 4096, 3);
    let without = Options { object_bytes: None, ..objects(Format::OracleGeneral) };
    refused(&bytes, &without, "oracle-general numbers objects, and does not say by how many bytes their addresses");
    refused(&header(1, 0), &Options::default(), "lcs numbers objects, and does not say by how many bytes");
    refused(&bytes, &objects(Format::Vscsi), "objects of 512 bytes go with oracle-general and lcs, not with vscsi");
    let zero = Options { object_bytes: Some(0), ..objects(Format::OracleGeneral) };
    refused(&bytes, &zero, "objects count by at least 1 byte");
}

#[test]
fn a_header_of_lcs_that_cannot_be() {
    let options = Options { object_bytes: Some(512), ..Options::default() };
    let with = |at: usize, value: u64| {
        let mut bytes = header(1, 1);
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        [bytes, oracle(1, 8, 512, -1)].concat()
    };
    assert_eq!(read_with(with(8, 1), &options).expect("a trace").0.len(), 1);
    refused(&with(8, 0), &options, "byte 8: lcs of version 0; versions 1 to 8 can be read");
    refused(&with(8, 9), &options, "byte 8: lcs of version 9; versions 1 to 8 can be read");
    let old = u64::from_le_bytes(*b"<IQIq\0\0\0");
    refused(&with(8, old), &options, "byte 8: this is the header of 1024 bytes that lcs had first, with a format");
    let message = "byte 8184: expected 0x123456789abcdef0 at the end of the header of lcs, found 0x7";
    refused(&with(8184, 7), &options, message);
    let message = "byte 24: expected a number of requests that is not negative, found -3";
    refused(&with(24, -3i64 as u64), &options, message);
    refused(&header(1, 1)[..8000], &options, "byte 0: expected a header of 8192 bytes, found 8000");
    refused(b"hello", &objects(Format::Lcs), "byte 0: expected the magic number 0x123456789abcdef0 of lcs");
    // The number of requests has to be that of the header.
    let message = "byte 8216: the header says 2 requests at byte 24, and 1 follow";
    refused(&with(24, 2), &options, message);
    let named = Options { devices: Devices::Named("1".into()), ..options };
    refused(&with(8, 1), &named, "records of this trace (lcs of version 1) name no device to choose by");
}

#[test]
fn what_records_of_lcs_do() {
    let options = Options { object_bytes: Some(512), ..Options::default() };
    let kinds = [(0, Read), (1, Read), (2, Read), (12, Read), (3, Write), (4, Write), (6, Write), (13, Write)];
    for (op, kind) in kinds.into_iter().chain([(14, Write), (9, Trim)]) {
        let bytes = [header(2, 1), v2(1, op, 3)].concat();
        assert_eq!(read_with(bytes, &options).expect("a trace").0[0].kind, kind, "{op}");
    }
    for op in [5, 7, 8, 10, 11, 15, 255] {
        let bytes = [header(2, 2), v2(1, 12, 3), v2(1, op, 3)].concat();
        refused(&bytes, &options, "byte 8236: operation: expected 0 (none), 1, 2 or 12 (get, read), 3,");
    }
    let two = [header(2, 2), v2(1, 12, 3), v2(1, 12, 4)].concat();
    refused(&two, &options, "byte 8237: tenant: expected the device of the rows before");
}

#[test]
fn a_damaged_record_of_vscsi() {
    let good = vscsi1(0x0100, 0x28, 1, 512).repeat(8);
    assert_eq!(open(&*good, &Options::default()).expect("recognised").format(), Format::Vscsi);
    let options = Options { format: Some(Format::Vscsi), ..Options::default() };
    for (bad, message) in [
        (vscsi1(0x0200, 0x28, 1, 512), "byte 270: version: expected the version of the first record, in the upper"),
        (vscsi1(0x0100, 0x128, 1, 512), "byte 268: command: expected a SCSI operation code of one byte, found 0x128"),
        (vscsi1(0x0100, 0x28, 1, 0), "byte 260: length: expected at least 1 byte, found 0"),
        (vscsi1(0x0100, 0x28, u64::MAX, 512), "byte 280: time: expected microseconds below 2^64 ns, found 18446744"),
        (vec![0; 31], "byte 256: the record is cut off; 31 bytes are left"),
    ] {
        refused(&[&good[..], &bad].concat(), &options, message);
    }
    refused(&[7; 80], &options, "byte 0: expected records of version 1 or 2: 0x01 as the upper byte of the version");
    // Fewer records are not recognised, unless the format is given.
    assert!(open(&good[..7 * 32], &Options::default()).is_err());
    assert_eq!(read_with(&good[..32], &options).expect("one").0.len(), 1);
}

/// A record across the boundary of the reader's buffer is read whole.
#[test]
fn records_across_the_buffer() {
    let count = 50_000u32;
    let records: Vec<u8> = (0..count).flat_map(|i| oracle(i / 7, u64::from(i) * 8, 4096, -1)).collect();
    let (requests, summary) = read_with(records, &objects(Format::OracleGeneral)).expect("a trace");
    assert_eq!((requests.len(), summary.rows), (count as usize, u64::from(count)));
    assert!((0..count as usize).all(|i| requests[i].offset == i as u64 * 4096));
    assert_eq!(summary.skips.iter().map(|s| s.2).collect::<Vec<Place>>(), []);
}
