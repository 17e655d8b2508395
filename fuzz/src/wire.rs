// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that came over the wire.

use readpath_proto::desc::{
    DescError, DeviceDescriptor, GeometryDescriptor, UnitDescriptor, encode_string, parse_string,
};
use readpath_proto::scsi::{UNMAP_MAX_RANGES, encode_unmap, fixed_sense, parse_fixed_sense, parse_unmap};
use readpath_proto::{cdb as proto_cdb, upiu as proto_upiu};

/// Bytes as a request and as a reply: what parses is encoded and parsed to the same.
pub fn upiu(data: &[u8]) {
    let mut bytes = Vec::new();
    if let Ok((request, segment)) = proto_upiu::parse_request(data) {
        proto_upiu::encode_request(&request, segment, &mut bytes);
        assert_eq!(proto_upiu::parse_request(&bytes), Ok((request, segment)));
    }
    if let Ok((reply, segment)) = proto_upiu::parse_reply(data) {
        proto_upiu::encode_reply(&reply, segment, &mut bytes);
        assert_eq!(proto_upiu::parse_reply(&bytes), Ok((reply, segment)));
    }
}

/// 16 bytes as a command descriptor block.
pub fn cdb(data: &[u8]) {
    let mut block = [0; 16];
    let n = data.len().min(16);
    block[..n].copy_from_slice(&data[..n]);
    let cdb = proto_cdb::parse(&block);
    let bytes = proto_cdb::encode(&cdb);
    assert_eq!(proto_cdb::parse(&bytes), cdb);
    assert_eq!(proto_cdb::encode(&proto_cdb::parse(&bytes)), bytes);
    let _ = proto_cdb::direction(&cdb);
}

/// Bytes as each descriptor, as a string, as an UNMAP parameter list and as sense data.
pub fn descriptors(data: &[u8]) {
    fn survives<T: PartialEq + std::fmt::Debug, const N: usize>(
        data: &[u8],
        parse: fn(&[u8]) -> Result<T, DescError>,
        to_bytes: fn(&T) -> [u8; N],
    ) {
        if let Ok(d) = parse(data) {
            assert_eq!(parse(&to_bytes(&d)), Ok(d));
        }
    }
    survives(data, DeviceDescriptor::parse, DeviceDescriptor::to_bytes);
    survives(data, GeometryDescriptor::parse, GeometryDescriptor::to_bytes);
    survives(data, UnitDescriptor::parse, UnitDescriptor::to_bytes);
    let mut bytes = Vec::new();
    if let Ok(text) = parse_string(data) {
        encode_string(&text, &mut bytes).expect("what a string descriptor held fits into one");
        assert_eq!(parse_string(&bytes), Ok(text));
    }
    if let Ok(ranges) = parse_unmap(data) {
        let ranges: Vec<(u64, u32)> = ranges.take(UNMAP_MAX_RANGES).collect();
        encode_unmap(&ranges, &mut bytes);
        assert!(parse_unmap(&bytes).expect("our own list").eq(ranges));
    }
    if let Some(sense) = parse_fixed_sense(data) {
        assert_eq!(parse_fixed_sense(&fixed_sense(sense)), Some(sense));
    }
}
