// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the seeds that are bytes, not text, into `seeds/`: one well-formed input of each kind.

use readpath_nand_testkit::{Device, Ecc, Nand, NewVolume, Options};
use readpath_proto::desc::{DeviceDescriptor, GeometryDescriptor, UnitDescriptor, encode_string, health};
use readpath_proto::groups::{GroupEntry, GroupHint, GroupNotice, GroupPair, group_at};
use readpath_proto::scsi::encode_unmap;
use readpath_proto::typed::{
    Cdb, Command, Form, HpbEntry, HpbNotification, QueryRequest, QueryResponse, Reply, ReplyBody, Request, RequestBody,
    Residual, Response, Sense, SubRegion, TaskRequest, TaskResponse,
};
use readpath_proto::upiu::{encode_reply, encode_request};
use readpath_proto::{cdb, query};
use readpath_ubi::NoCache;
use readpath_ubi::mtd::Geometry;
use readpath_workload::trace::{Format, bench};
use std::io::Write;
use std::path::Path;
use std::{fs, io};

const HINT: GroupHint = GroupHint { entry: GroupEntry([0, 0, 1, 7]), seen: 3 };

fn cdbs() -> Vec<(&'static str, u32, Cdb)> {
    let at = SubRegion { region: 1, index: 2 };
    vec![
        ("inquiry", 36, Cdb::Inquiry { vpd: None, alloc: 36 }),
        ("vpd", 64, Cdb::Inquiry { vpd: Some(0xB0), alloc: 64 }),
        ("mode-sense", 64, Cdb::ModeSense10 { dbd: false, page: 0x3F, subpage: 0, alloc: 64 }),
        ("start-stop", 0, Cdb::StartStopUnit { immed: false, control: 0x20 }),
        ("capacity", 32, Cdb::ReadCapacity16 { alloc: 32 }),
        ("luns", 4096, Cdb::ReportLuns { select: 0, alloc: 4096 }),
        ("read-6", 4096, Cdb::Read { form: Form::Six, lba: 7, blocks: 1, flags: 0 }),
        ("read-10", 8192, Cdb::Read { form: Form::Ten, lba: 100, blocks: 2, flags: 0 }),
        ("read-16", 4096 * 300, Cdb::Read { form: Form::Sixteen, lba: 1400, blocks: 300, flags: 0 }),
        ("write-10", 8192, Cdb::Write { form: Form::Ten, lba: 100, blocks: 2, flags: 8 }),
        ("verify", 0, Cdb::Verify10 { lba: 1, blocks: 4, flags: 0 }),
        ("pre-fetch", 0, Cdb::PreFetch { form: Form::Ten, lba: 0, blocks: 8 }),
        ("sync", 0, Cdb::SynchronizeCache { form: Form::Ten, lba: 0, blocks: 0, immed: false }),
        ("unmap", 40, Cdb::Unmap { list_bytes: 40 }),
        ("hpb-read", 4096, Cdb::HpbRead { lba: 99, blocks: 1, entry: HpbEntry([7; 8]), flags: 0, read_id: 0 }),
        ("hpb-buffer", 512, Cdb::HpbReadBuffer { buffer_id: 1, at, alloc: 512 }),
        ("hpb-inactivate", 0, Cdb::HpbInactivate { region: 3 }),
        ("hpb-pre-request", 8, Cdb::HpbPreRequest { lba: 64, read_id: 1, list_bytes: 8 }),
        ("hpb-inactivate-all", 0, Cdb::HpbInactivateAll),
        ("hinted-read", 8192, Cdb::HintedRead { lba: 99, blocks: 2, hint: HINT, flags: 0 }),
    ]
}

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let write = |target: &str, name: &str, bytes: &[u8]| {
        fs::create_dir_all(root.join(target))?;
        fs::write(root.join(target).join(name), bytes)
    };
    let (mut bytes, mut list) = (Vec::new(), Vec::new());
    encode_unmap(&[(8, 8), (4000, 32)], &mut list);
    // Everything in a row to one device: commands, a wait after every third, a reset at the end.
    let mut all = Vec::new();
    let mut requests = vec![
        ("nop", Request { lun: 0, tag: 60, body: RequestBody::NopOut }, Vec::new()),
        (
            "task",
            Request { lun: 0, tag: 61, body: RequestBody::Task(TaskRequest { function: 1, lun: 0, task_tag: 1 }) },
            Vec::new(),
        ),
    ];
    for (tag, (name, expected_bytes, cdb)) in (0u8..).zip(cdbs()) {
        write("cdb", name, &cdb::encode(&cdb))?;
        let data = if name == "unmap" { list.clone() } else { vec![0x11; usize::from(name == "hpb-pre-request") * 8] };
        let body = RequestBody::Command(Command { expected_bytes, cdb });
        requests.push((name, Request { lun: 0, tag, body }, data));
    }
    for (i, (name, opcode, idn)) in [
        ("descriptor", query::opcode::READ_DESCRIPTOR, query::descriptor::GEOMETRY),
        ("attribute", query::opcode::READ_ATTRIBUTE, query::attribute::MAX_HPB_SINGLE_CMD),
        ("flag", query::opcode::SET_FLAG, query::flag::HPB_RESET),
    ]
    .into_iter()
    .enumerate()
    {
        let body = RequestBody::Query(QueryRequest { opcode, idn, index: 0, selector: 0, length: 255, value: 0 });
        requests.push((name, Request { lun: 0, tag: 40 + i as u8, body }, Vec::new()));
    }
    for (i, (name, request, data)) in requests.iter().enumerate() {
        encode_request(request, &[], &mut bytes);
        write("upiu", name, &bytes)?;
        let mut one = vec![0];
        one.extend_from_slice(&bytes);
        one.push(data.len() as u8);
        one.extend_from_slice(data);
        write("device_requests", name, &one)?;
        all.extend_from_slice(&one);
        if i % 3 == 2 {
            all.extend_from_slice(&[5, 1, 0]);
        }
    }
    all.extend_from_slice(&[6, 7]);
    write("device_requests", "all", &all)?;
    host_controller(&requests, &write)?;
    vfio_session(&write)?;

    // A group is loaded, a block of it is read and written, and read again.
    let load = Cdb::HpbReadBuffer { buffer_id: 1, at: group_at(1), alloc: 256 };
    let write_one = Cdb::Write { form: Form::Ten, lba: 99, blocks: 1, flags: 8 };
    let hinted = Cdb::HintedRead { lba: 99, blocks: 2, hint: HINT, flags: 0 };
    let mut groups = Vec::new();
    for (expected_bytes, cdb) in [(256, load), (8192, hinted), (4096, write_one), (8192, hinted)] {
        let body = RequestBody::Command(Command { expected_bytes, cdb });
        encode_request(&Request { lun: 0, tag: 7, body }, &[], &mut bytes);
        groups.push(0);
        groups.extend_from_slice(&bytes);
        groups.extend_from_slice(&[0, 6]);
    }
    write("prototype_requests", "groups", &groups)?;
    write("prototype_requests", "device", &[&groups[..], &[5, 0, 9]].concat())?;

    let notification = HpbNotification {
        operation: HpbNotification::REGION_UPDATE,
        lun: 0,
        active_count: 2,
        inactive_count: 1,
        active: [SubRegion { region: 1, index: 2 }, SubRegion { region: 4, index: 0 }],
        inactive: [2, 0],
    };
    let groups = GroupNotice::new(Some(0), Some(GroupPair { lba: 9, entry: HINT.entry }), 3);
    let query = QueryResponse { result: 0, opcode: 3, idn: 1, index: 0, selector: 0, length: 0, value: 31 };
    for (name, body) in [
        ("nop-in", ReplyBody::NopIn),
        ("good", ReplyBody::Response(Response::GOOD)),
        ("check", ReplyBody::Response(Response::check(Sense::LBA_OUT_OF_RANGE, 4096))),
        ("under", ReplyBody::Response(Response { residual: Residual::Under(8), ..Response::GOOD })),
        ("notification", ReplyBody::Response(Response { hpb: Some(notification), ..Response::GOOD })),
        ("groups", ReplyBody::Response(Response { groups, ..Response::GOOD })),
        ("query-response", ReplyBody::Query(query)),
        ("task-response", ReplyBody::Task(TaskResponse { service_response: 8 })),
        ("reject", ReplyBody::Reject),
    ] {
        encode_reply(&Reply { lun: 0, tag: 5, body }, &[], &mut bytes);
        write("upiu", name, &bytes)?;
        // A read of block 9, then this reply for its tag, then everything ends.
        let mut input = vec![0, 0, 0, 0, 0, 9, 0, 1, 6];
        bytes[3] = 0;
        input.extend_from_slice(&bytes);
        input.resize(9 + 52, 0);
        input.extend_from_slice(&[0, 7, 0, 0, 9]);
        write("host_replies", name, &input)?;
        if name == "groups" {
            // Two reads load the group, a reply brings an entry meanwhile, another after it.
            let read = [0, 0, 0, 0, 9, 0, 1];
            let twice = [&[1][..], &read, &[9, 0, 0], &read, &[9, 0, 0], &[6], &bytes, &read, &[6], &bytes, &[3, 0, 7]];
            write("prototype_replies", name, &twice.concat())?;
        }
    }
    // Loads, a write during a load, a reset, and a probe that is answered at random.
    write(
        "host_replies",
        "load",
        &[0, 7, 1, 0, 10, 0, 1, 2, 0, 4, 0, 0, 2, 0, 2, 7, 0, 0, 1, 1, 0, 0, 1, 66, 0, 1, 3],
    )?;
    write("host_replies", "probe", &[64, 4, 31, 0, 0, 0, 4, 31, 3, 0, 6, 1, 0, 0, 0, 0, 0, 0, 0, 0])?;

    write("descriptors", "device", &DeviceDescriptor::default().to_bytes())?;
    write("descriptors", "geometry", &GeometryDescriptor::default().to_bytes())?;
    write("descriptors", "unit", &UnitDescriptor::default().to_bytes())?;
    write("descriptors", "health", &health(1, [1, 1]))?;
    encode_string("READPATH-64G", &mut bytes).map_err(io::Error::other)?;
    write("descriptors", "string", &bytes)?;
    write("descriptors", "unmap", &list)?;

    for (format, bytes) in [
        (Format::Blktrace, 480),
        (Format::Alibaba, 200),
        (Format::Tencent, 200),
        (Format::Vscsi, 256),
        (Format::OracleGeneral, 240),
        (Format::Lcs, 8192 + 140),
    ] {
        write("trace", format.name(), &bench::sample(format, bytes))?;
    }
    for (format, ufs) in [(Format::PerfettoUfs, true), (Format::PerfettoBlock, false)] {
        let packets: Vec<u8> = (0..2).flat_map(|cpu| bench::bundle(ufs, cpu, 1_000_000, 2)).collect();
        write("trace", format.name(), &packets)?;
        // Field 50 of a packet has packets compressed with zlib, field 133 with zstd.
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        zlib.write_all(&packets)?;
        let (number, packed) = if ufs { (50, zlib.finish()?) } else { (133, zstd::encode_all(&packets[..], 3)?) };
        let name = format!("{}-packed", format.name());
        write("trace", &name, &bench::message(1, &bench::message(number, &packed)))?;
    }
    let table = bench::sample(Format::Csv, 400);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&table)?;
    write("trace", "gzip", &gzip.finish()?)?;
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 6);
    xz.write_all(&table)?;
    write("trace", "xz", &xz.finish()?)?;
    write("trace", "zstd", &zstd::encode_all(&table[..], 3)?)?;

    for (name, seals) in [("sealed", 1), ("as-it-is", 2)] {
        let image = ubi_image().map_err(io::Error::other)?;
        write("ubi_attach", name, &[&[seals][..], &image].concat())?;
        let table = readpath_ubi::vtbl::VolumeRecord {
            reserved_pebs: 3,
            alignment: 1,
            data_pad: 0,
            vol_type: 1,
            update_marker: false,
            name: b"rootfs".to_vec(),
            flags: 1,
        };
        write("ubi_volume_table", name, &[&[seals][..], &table.to_bytes(), &table.to_bytes()].concat())?;
    }
    for (name, bytes) in ubifs_seeds() {
        write(name.0, name.1, &bytes)?;
    }
    Ok(())
}

/// A device of 16 blocks of 1 KiB with a dynamic and a static volume, two versions of a logical block among them.
fn ubi_image() -> Result<Vec<u8>, readpath_ubi::UbiError> {
    let geometry = Geometry { peb_bytes: 1024, page_bytes: 256, subpage_bytes: 64, pebs: 14 };
    let mut ubi = Device::attach(Nand::new(geometry, Ecc::new(64, 2), 1)?, NoCache, &Options::default())?;
    ubi.create_volume(&NewVolume::dynamic("first", 4))?;
    ubi.create_volume(&NewVolume { is_static: true, ..NewVolume::dynamic("second", 2) })?;
    ubi.update_volume(1, &[0x22; 1000])?;
    ubi.write(0, 1, 0, &[0x11; 512])?;
    ubi.work_all()?;
    ubi.change(0, 1, &[0x33; 256])?;
    let mut image = Vec::new();
    ubi.mtd().write_image(&mut image).expect("memory");
    Ok(image)
}

/// Blocks of UBIFS, compressed blocks, and changes to a volume.
fn ubifs_seeds() -> Vec<((&'static str, &'static str), Vec<u8>)> {
    let node = |kind: u8, group: u8, body: &[u8]| {
        let mut node = 0x0610_1831u32.to_le_bytes().to_vec();
        node.resize(16, 0);
        node.extend((24 + body.len() as u32).to_le_bytes());
        node.extend([kind, group, 0, 0]);
        node.extend(body);
        let crc = readpath_ubifs::crc32(&node[8..]);
        node[4..8].copy_from_slice(&crc.to_le_bytes());
        node.resize(node.len().next_multiple_of(8), 0xCE);
        node
    };
    let mut inode = vec![0; 136];
    inode[80..84].copy_from_slice(&0o100_644u32.to_le_bytes());
    let mut entry = vec![0; 32];
    entry[16] = 9;
    entry[26] = 3;
    entry.extend(b"abc\0");
    let mut block = [node(0, 1, &inode), node(2, 1, &entry), node(0, 2, &inode), node(5, 0, &[4, 0, 0, 0])].concat();
    block.extend([0; 4]);
    block.resize(block.len().next_multiple_of(8), 0);
    block.resize(block.len() + 64, 0xFF);
    let text = b"text and text and text and text and text".repeat(4);
    let mut deflated = vec![2];
    let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    deflate.write_all(&text).and_then(|()| deflate.finish()).map(|bytes| deflated.extend(bytes)).expect("deflate");
    let mut zstd = vec![3];
    zstd.extend(zstd::bulk::compress(&text, 3).expect("zstd"));
    // 17 literal bytes, a match of 16 at distance 17, the end.
    let mut lzo = vec![1, 17 + 17];
    lzo.extend(&text[..17]);
    lzo.extend([32 + 14, 16 << 2, 0, 17, 0, 0]);
    vec![
        (("ubifs_nodes", "block"), block),
        (("ubifs_nodes", "node"), node(0, 0, &inode)),
        (("ubifs_nodes", "torn"), [node(2, 1, &entry), vec![0x31, 0x18, 0x10, 6, 1, 2, 3, 4], vec![0xFF; 32]].concat()),
        (("ubifs_data", "none"), [&[0], &text[..]].concat()),
        (("ubifs_data", "lzo"), lzo),
        (("ubifs_data", "zlib"), deflated),
        (("ubifs_data", "zstd"), zstd),
        (("ubifs_volume", "as-it-is"), vec![0]),
        (("ubifs_volume", "one-bit"), vec![0, 0, 10, 1, 0, 1]),
        (("ubifs_volume", "sealed"), vec![2, 1, 0, 9, 0, 40, 5, 0, 0, 0, 2, 0, 30, 0, 24, 1, 2, 3, 4]),
        (
            ("ubifs_volume", "journal"),
            vec![1, 3, 0, 5, 0, 1, 1, 3, 2, 1, 3, 5, 1, 3, 1, 5, 2, 100, 1, 3, 4, 5, 9, 3, 1],
        ),
        (("ubifs_volume", "names"), (0..40).flat_map(|i| [3, 2, i % 3, i, i % 5, 1]).collect()),
        (("ubifs_volume", "torn"), vec![5, 3, 2, 1, 3, 1, 1, 3, 0, 5, 7, 1, 1]),
    ]
}

/// Every request in a slot of its own, with waits; one request that is cleared; and accesses of registers.
fn host_controller(
    requests: &[(&str, Request, Vec<u8>)],
    write: &impl Fn(&str, &str, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let (mut all, mut bytes) = (Vec::new(), Vec::new());
    for (slot, (name, request, _)) in (0u8..).zip(requests) {
        encode_request(request, &[], &mut bytes);
        bytes.resize(32, 0);
        let one = [&[6][..], &bytes, &[slot, 7, 0xFF, 0xFF]].concat();
        write("host_controller", name, &one)?;
        all.extend_from_slice(&one);
    }
    let clear = [0, 0x5C / 4, 0, 0, 0, 0];
    let hibernate = [0, 0x90 / 4, 0x17, 0, 0, 0, 0, 0x90 / 4, 0x18, 0, 0, 0];
    write("host_controller", "all", &[&all[..], &clear, &hibernate, &[5, 0xFF, 2, 8, 2, 0x58 / 4]].concat())
}

/// A client that lends memory, sets up the interrupt and enables the controller; and each message alone.
fn vfio_session(write: &impl Fn(&str, &str, &[u8]) -> io::Result<()>) -> io::Result<()> {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let access = |offset: u64, region: u64, value: u32| {
        [words(&[offset, region | 4 << 32]), value.to_le_bytes().to_vec()].concat()
    };
    let irqs = |flags: u32, count: u32| [20, flags, 0, 0, count].iter().flat_map(|w: &u32| w.to_le_bytes()).collect();
    let messages: [(&str, u8, u8, Vec<u8>); 14] = [
        ("info", 4, 0, vec![16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("region-info", 5, 0, words(&[32, 0, 0, 0])),
        ("irq-info", 7, 0, words(&[16, 0])),
        ("map", 2, 2, words(&[3 << 32 | 32, 0, 0x1000, 1 << 16])),
        ("irqs", 8, 3, irqs(4 | 32, 1)),
        ("unmask-by", 8, 3, irqs(4 | 16, 1)),
        ("master", 10, 0, access(4, 7, 6)),
        ("enable", 10, 0, access(0x34, 0, 1)),
        ("link", 10, 0, access(0x90, 0, 0x16)),
        ("read", 9, 0, access(0x30, 0, 0)),
        ("multi", 15, 0, words(&[1, 0x50, 4 << 32, 0x1000])),
        ("doorbell", 10, 0, access(0x58, 0, 1)),
        ("reset", 13, 0, Vec::new()),
        ("unmap", 3, 0, words(&[24, 0x1000, 1 << 16])),
    ];
    let mut all = Vec::new();
    for (name, command, files, payload) in &messages {
        let one = [&[*command, 0, *files, payload.len() as u8][..], payload].concat();
        write("vfio_session", name, &one)?;
        all.extend_from_slice(&one);
    }
    write("vfio_session", "all", &all)
}
