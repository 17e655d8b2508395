// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of Perfetto that are damaged, out of order or have much else in them.

use crate::trace_common::{open, read_with, request};
use flate2::write::ZlibEncoder;
use readpath_kit::Ns;
use readpath_workload::IoKind::{Read, Trim, Write};
use readpath_workload::trace::{Devices, Event, Format, Options, Place, Reason, Request, Within};
use std::io::Write as _;

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn number(field: u32, value: u64) -> Vec<u8> {
    [varint(u64::from(field) << 3), varint(value)].concat()
}

fn bytes(field: u32, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [varint(u64::from(field) << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

fn event(time: u64, field: u32, payload: &[Vec<u8>]) -> Vec<u8> {
    bytes(2, [number(1, time), number(2, 7), bytes(field, payload.concat())].concat())
}

const ISSUE: u32 = 45;
const QUEUE: u32 = 119;
const COMPLETE: u32 = 125;
const COMMAND: u32 = 406;

fn issue_on(time: u64, dev: u64, rwbs: &str, sector: u64, sectors: u64) -> Vec<u8> {
    let fields = [number(1, dev), number(2, sector), number(3, sectors), number(4, sectors * 512), bytes(5, rwbs)];
    event(time, ISSUE, &fields)
}

fn issue(time: u64, sector: u64) -> Vec<u8> {
    issue_on(time, 0x800, "R", sector, 8)
}

fn complete(time: u64, sector: u64) -> Vec<u8> {
    event(time, COMPLETE, &[number(1, 0x800), number(2, sector), number(3, 8), bytes(5, "R")])
}

fn command(time: u64, code: u64, lba: u64, size: u64, moment: Vec<u8>) -> Vec<u8> {
    let fields = [bytes(1, "ufs"), number(4, lba), number(5, code), number(7, 3), number(8, size), moment];
    event(time, COMMAND, &fields)
}

fn packet(content: &[u8]) -> Vec<u8> {
    bytes(1, [number(3, 9999), content.to_vec()].concat())
}

fn bundle(events: &[Vec<u8>]) -> Vec<u8> {
    packet(&bytes(1, [number(1, 2), events.concat()].concat()))
}

fn zlib(trace: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(trace).expect("a vector");
    bytes(1, bytes(50, encoder.finish().expect("a vector")))
}

fn strict(trace: &[u8]) -> Result<Vec<Request>, String> {
    read_with(trace, &Options::default()).map(|(requests, _)| requests).map_err(|e| e.to_string())
}

fn plain_file() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/formats/plain.pftrace");
    std::fs::read(path).expect("it is in the project")
}

#[test]
fn messages_name_the_byte_and_what_would_be_right() {
    let good = bundle(&[issue(100, 8)]);
    let at = good.len();
    // Within the second packet: 2 bytes for it, 3 for the uid, 2 for the bundle, 2 for the CPU, 2 for the event.
    let (in_packet, in_bundle) = (at + 2, at + 7);
    let in_event = in_bundle + 4;
    let begins = format!("; the packet begins at byte {at}");
    let op = "rwbs: expected an operation such as R, W, WS, RA, D or FN, found \"Q\"".to_owned();
    let fields = |list: &[Vec<u8>]| bundle(&[event(200, ISSUE, list)]);
    for (bad, byte, message) in [
        (vec![0x37, 1], at, "expected 0x0a, with which a packet begins, found 0x37; either this is damaged, or".into()),
        (vec![0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], at, "expected the length of a packet, at most 2147483647".into()),
        (vec![0x0A; 1], at, "the packet that begins here is cut off within its length".into()),
        (good[..good.len() - 3].to_vec(), at, "the packet that begins here is cut off: 3 of its bytes are".into()),
        (
            bytes(1, [0x07, 1]),
            in_packet,
            format!("expected the tag of a field, with a number from 1 to 536870911, found 07 01{begins}"),
        ),
        (bytes(1, [0x1C, 1]), in_packet, format!("expected a tag of wire type 0, 1, 2 or 5, found 1c 01{begins}")),
        (bytes(1, [0x18]), in_packet, format!("expected a field that ends with its packet, found 18{begins}")),
        (
            bytes(1, [0x1A, 0]),
            in_packet,
            format!("field 3 of a packet: expected a number (wire type 0), found bytes{begins}"),
        ),
        (
            bytes(1, [0x08, 7]),
            in_packet,
            format!("field 1 of a packet: expected bytes (wire type 2), found a number{begins}"),
        ),
        (
            packet(&[0x0A, 7, 8, 1]),
            in_packet + 3,
            "field 1 of a packet: expected at most 2 bytes, which are left of the packet, found a length of 7".into(),
        ),
        (packet(&bytes(50, "no")), in_packet + 3, "field 50 of a packet: expected compressed packets by them".into()),
        (packet(&bytes(1, [0x10, 7])), in_bundle, "field 2 of a bundle: expected a number for CPU (1) and lost".into()),
        (packet(&bytes(1, [0x12, 9, 1])), in_bundle, "field 2 of a bundle: expected at most 1 bytes, which are".into()),
        (packet(&bytes(1, [0x12])), in_bundle, format!("expected a field that ends with its bundle, found 12{begins}")),
        (packet(&bytes(1, [0x06, 7])), in_bundle, "expected the tag of a field, with a number from 1".into()),
        (bundle(&[bytes(2, [0x08])]), in_event, "expected a field that ends with its event or before, found 08".into()),
        (
            bundle(&[bytes(2, bytes(1, "x"))]),
            in_event,
            "timestamp: expected a number (wire type 0), found \"x\"".into(),
        ),
        (
            bundle(&[bytes(2, bytes(ISSUE, ""))]),
            in_event,
            "expected an event with a timestamp (field 1), found ea 02".into(),
        ),
        (fields(&[bytes(5, "Q")]), in_event + 8, op),
        (fields(&[number(1, 5)]), in_event + 8, "expected an event of the block layer with rwbs, found 08 05".into()),
        (fields(&[number(5, 5)]), in_event + 8, "rwbs: expected a text (wire type 2), found 5".into()),
        (fields(&[bytes(5, "R")]), in_event + 11, "size: expected at least 1 byte, found nothing".into()),
        (
            fields(&[bytes(5, "W"), number(3, 1 << 23), number(2, 9)]),
            in_event + 11,
            "size: expected less than 4 GiB for a read or write, found 8388608".into(),
        ),
        (
            fields(&[bytes(5, "R"), number(3, 8), number(2, 1 << 60)]),
            in_event + 13,
            "offset: expected less than 2^64 bytes, found 1152921504606846976".into(),
        ),
        (
            bundle(&[issue_on(200, 0x810, "R", 8, 8)]),
            in_event + 8,
            "expected the device of the rows before (choose one device by its name, or merge all), found 8,16".into(),
        ),
    ] {
        let trace = [&good[..], &bad].concat();
        let found = strict(&trace).expect_err(&message);
        assert!(found.starts_with(&format!("t: byte {byte}: {message}")), "{found}\nnot byte {byte}: {message}");
        // A lenient reader keeps the packets before and after it.
        let options = Options { lenient: true, ..Options::default() };
        let (requests, summary) = read_with(&*trace, &options).expect("one request is good");
        assert_eq!((requests.len(), summary.skips.total()), (1, 1), "{message}");
        let skip = summary.skips.iter().next().expect("one");
        assert_eq!(skip.2, Place::Byte(byte as u64));
        // A fault between packets leaves no place to continue.
        if byte != at {
            let (requests, _) = read_with([&trace[..], &bundle(&[issue(300, 16)])].concat(), &options).expect("two");
            assert_eq!(requests.len(), 2, "{message}");
        }
    }
}

/// If even the first packet is damaged, the format is not recognised: the user has to name it.
#[test]
fn a_damaged_beginning() {
    let bad = [bytes(1, [0x1C, 1]), bundle(&[issue(100, 8)])].concat();
    let message = strict(&bad).expect_err("not recognised");
    let hint = "; if it is a trace of Perfetto, --format perfetto-block says where it is damaged";
    assert!(message.starts_with("t: the format is not recognised") && message.ends_with(hint), "{message}");
    let named = Options { format: Some(Format::PerfettoBlock), ..Options::default() };
    let e = read_with(bad, &named).expect_err("it is damaged");
    assert!(e.to_string().starts_with("t: byte 2: expected a tag of wire type 0, 1, 2 or 5, found 1c 01"), "{e}");
}

#[test]
fn commands_without_an_address() {
    let send = number(10, 0);
    let good = command(100, 0x28, 5, 4096, send.clone());
    for (bad, found) in [
        (command(200, 0xF8, u64::MAX, 4096, send.clone()), "18446744073709551615"),
        (command(200, 0x2A, 5, -1i64 as u64, send.clone()), "18446744073709551615"),
        (command(200, 0x2A, 5, 0, send.clone()), "0"),
    ] {
        let e = read_with(bundle(&[good.clone(), bad]), &Options::default()).expect_err("no address");
        assert_eq!(e.reason, Reason::Address);
        assert!(e.message.starts_with("lba: expected an address and a size (this kernel does not"), "{e}");
        assert!(e.message.ends_with(&format!("found {found}")), "{e}");
    }
    // A flush needs none, what moves no data is passed over, and so are moments that are neither.
    let events = [
        good,
        command(200, 0x35, u64::MAX, -1i64 as u64, send.clone()),
        command(300, 0x00, u64::MAX, -1i64 as u64, send.clone()),
        command(350, 0x28, 6, 4096, number(10, 3)),
        command(360, 0x28, 6, 4096, bytes(6, "query_send")),
        command(400, 0x42, 7, 8192, bytes(6, "send")),
        command(900, 0x42, 7, 8192, bytes(6, "complete")),
    ];
    let (requests, summary) = read_with(bundle(&events), &Options::default()).expect("a trace");
    let kinds: Vec<_> = requests.iter().map(|r| (r.time.0, r.kind)).collect();
    assert_eq!(kinds, [(0, Read), (100, readpath_workload::IoKind::Flush), (300, Trim)]);
    assert_eq!(requests[2], Request { process: Some(7), latency: Some(Ns(500)), ..request(300, Trim, 7 * 4096, 8192) });
    assert_eq!((summary.rows, summary.other_rows), (7, 4));
    let sectors = Options { ufs_block_bytes: Some(512), ..Options::default() };
    assert_eq!(read_with(bundle(&events), &sectors).expect("a trace").0[2].offset, 7 * 512);
}

#[test]
fn which_events_count() {
    let queue = |time: u64| event(time, QUEUE, &[number(1, 0x800), number(2, 64), number(3, 8), bytes(4, "W")]);
    let all = [queue(50), issue(100, 8), complete(300, 8), queue(400)];
    let with = |event| read_with(bundle(&all), &Options { event, ..Options::default() }).expect("a trace").0;
    let mine = |r: Request| Request { process: Some(7), ..r };
    assert_eq!(with(Event::Auto), [mine(Request { latency: Some(Ns(200)), ..request(0, Read, 4096, 4096) })]);
    assert_eq!(with(Event::Queue), [50, 400].map(|t| mine(request(t - 50, Write, 32_768, 4096))));
    assert_eq!(with(Event::Complete), [mine(request(0, Read, 4096, 4096))]);
    let open = |events: &[Vec<u8>]| open(bundle(events), &Options::default()).expect("a trace");
    assert_eq!((open(&all).format(), open(&all).event()), (Format::PerfettoBlock, Event::Issue));
    assert_eq!(open(&[all[0].clone(), all[2].clone()]).event(), Event::Queue);
    assert_eq!(open(&[all[2].clone()]).event(), Event::Complete);
    // The driver is nearer to the device; where there is neither, it may come later.
    let ufs = command(200, 0x28, 5, 4096, number(10, 0));
    assert_eq!(open(&[all[1].clone(), ufs]).format(), Format::PerfettoUfs);
    let other = event(100, 4, &[number(1, 5)]);
    let message = strict(&bundle(&[other])).expect_err("no request");
    assert!(message.starts_with("t: there is no request: of 1 rows, 1 are no requests"), "{message}");
    // A command that passes through has bytes and no sectors.
    let passing = event(150, ISSUE, &[number(1, 0x800), number(4, 36), bytes(5, "R")]);
    assert_eq!(strict(&bundle(&[issue(100, 8), passing])).expect("a trace").len(), 1);
}

/// A completion ends a request of its own device, even if another device uses the same sector.
#[test]
fn devices_with_the_same_sector() {
    let done =
        |time: u64, dev: u64| event(time, COMPLETE, &[number(1, dev), number(2, 8), number(3, 8), bytes(5, "R")]);
    let trace = bundle(&[
        issue_on(100, 0x800, "R", 8, 8),
        issue_on(110, 0x810, "R", 8, 8),
        done(200, 0x810),
        done(500, 0x800),
        done(700, 0x0011_032C),
    ]);
    let with = |devices| read_with(&*trace, &Options { devices, ..Options::default() }).expect("a trace");
    let latencies = |requests: &[Request]| requests.iter().map(|r| r.latency.map(|l| l.0)).collect::<Vec<_>>();
    let (merged, summary) = with(Devices::Merge);
    assert_eq!((latencies(&merged), summary.unmatched_completions), (vec![Some(400), Some(90)], 1));
    for (name, latency) in [("8,0", 400), ("8,16", 90)] {
        let (one, summary) = with(Devices::Named(name.into()));
        assert_eq!((latencies(&one), summary.unmatched_completions), (vec![Some(latency)], 0), "{name}");
    }
}

#[test]
fn bundles_out_of_order() {
    // Four processors with 100 events each in a period, each bundle before the next.
    let period = |p: u64| -> Vec<u8> {
        let of = |cpu: u64| (0..100).map(|i| issue(1_000_000 + p * 1000 + i * 10 + cpu, i * 8)).collect::<Vec<_>>();
        (0..4).flat_map(|cpu| bundle(&of(cpu))).collect()
    };
    let trace: Vec<u8> = (0..20).flat_map(period).collect();
    for window in [10, 4096] {
        let options = Options { window, ..Options::default() };
        let (requests, summary) = read_with(&*trace, &options).expect("a trace");
        assert_eq!(requests.len(), 20 * 400);
        assert!(requests.is_sorted_by_key(|r| r.time));
        assert_eq!(summary.furthest_inversion, Ns(989));
        assert_eq!(summary.inversions, 20 * (3 * 100 - 3));
    }
    // A completion in a bundle before that of its request.
    let crossed = [bundle(&[complete(900, 8)]), bundle(&[issue(100, 8)])].concat();
    assert_eq!(strict(&crossed).expect("a trace")[0].latency, Some(Ns(800)));
    // Too far: 64 events at a window of 1.
    let mut late = bundle(&(0..100).map(|i| issue(1000 + i, i * 8)).collect::<Vec<_>>());
    let at = late.len() as u64;
    late.extend(bundle(&[issue(5, 0)]));
    let options = Options { window: 1, ..Options::default() };
    let e = read_with(&*late, &options).expect_err("too late");
    assert_eq!((e.reason, e.place), (Reason::Order, Place::Byte(at + 9)));
    assert!(e.message.starts_with("this event is 1.058 us earlier than one that is more than 32 requests"), "{e}");
    let (requests, summary) = read_with(&*late, &Options { lenient: true, ..options }).expect("it moves");
    assert_eq!((requests.len(), summary.skips.count(Reason::Order)), (101, 1));
    assert!(requests.is_sorted_by_key(|r| r.time) && requests.iter().any(|r| r.offset == 0 && r.time == Ns(63)));
}

#[test]
fn what_else_is_in_a_trace_is_passed_over() {
    let (five_mib, long) = (vec![7; 5 << 20], vec![7; 100 << 10]);
    let lost = packet(&bytes(1, [number(1, 0), number(3, 1), issue(300, 24)].concat()));
    let trace = [
        packet(&bytes(7, &five_mib)),
        packet(&[bytes(1, [issue(100, 8), bytes(4, &five_mib), issue(200, 16)].concat()), bytes(8000, "x")].concat()),
        lost,
        bundle(&[event(400, 3, &[bytes(1, &long)]), issue(500, 32)]),
        // Fields of 8 and of 4 bytes.
        packet(&[vec![0x29, 1, 2, 3, 4, 5, 6, 7, 8, 0x2D, 1, 2, 3, 4], bytes(1, issue(600, 40))].concat()),
        bytes(1, ""),
        packet(&[]),
    ]
    .concat();
    let (requests, summary) =
        read_with(&*trace, &Options { format: Some(Format::PerfettoBlock), ..Options::default() }).expect("a trace");
    assert_eq!(requests.iter().map(|r| r.offset / 4096).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!((summary.rows, summary.other_rows, summary.lost_events), (6, 1, 1));
    // A trace that was cut off within skipped fields.
    for to in [1000, 3 << 20, (5 << 20) + 8000, 6 << 20, (10 << 20) + 100] {
        let e = read_with(&trace[..to], &Options { format: Some(Format::PerfettoBlock), ..Options::default() });
        assert_eq!(e.expect_err("cut off").reason, Reason::Truncated, "{to}");
    }
}

#[test]
fn compressed_packets() {
    let plain = bundle(&[issue(100, 8), issue(200, 16)]);
    let more = bundle(&[issue(300, 24)]);
    let trace = [zlib(&plain), more.clone(), zlib(&more)].concat();
    assert_eq!(strict(&trace).expect("a trace").len(), 4);
    let mut bad = [more.clone(), zlib(&plain.repeat(9)), more.clone()].concat();
    bad[more.len() + 20] ^= 0xFF;
    let message = strict(&bad).expect_err("damaged");
    let damage = "the compressed content is cut off or damaged: the compressed packets at byte ";
    assert!(message.contains(damage) && message.contains(&more.len().to_string()), "{message}");
    // A packet of some KiB that would become 40 MiB.
    let bomb = zlib(&packet(&bytes(7, vec![0; 40 << 20])));
    assert!(bomb.len() < 1 << 20);
    let options = Options { max_expanded_bytes: 32 << 20, ..Options::default() };
    let e = read_with([more, bomb].concat(), &options).expect_err("too much");
    assert_eq!((e.reason, &*e.message), (Reason::Limit, "the content is larger than the limit on expanded bytes"));
}

#[test]
fn a_request_beyond_the_device() {
    let trace = [bundle(&[issue(100, 8)]), bundle(&[issue(200, 80), issue(300, 800)])].concat();
    let at = bundle(&[issue(100, 8)]).len() as u64;
    let within = Some(Within { device_blocks: 4, shift_sectors: 0 });
    let e = read_with(&*trace, &Options { within, ..Options::default() }).expect_err("beyond");
    assert_eq!((e.reason, e.place), (Reason::Beyond, Place::Byte(at + 9)));
    assert!(e.message.contains("413696"), "{e}");
    let (requests, summary) =
        read_with(&*trace, &Options { within, lenient: true, ..Options::default() }).expect("one lies on it");
    assert_eq!((requests.len(), summary.beyond), (1, 2));
}

/// Wherever it ends, a trace that does not end with a packet is an error that names the packet.
#[test]
fn every_cut_is_found() {
    let file = plain_file();
    let starts: Vec<usize> = {
        let (mut at, mut starts) = (0, Vec::new());
        while at < file.len() {
            starts.push(at);
            let (mut length, mut n) = (0, 1);
            loop {
                length |= usize::from(file[at + n] & 0x7F) << (7 * (n - 1));
                n += 1;
                if file[at + n - 1] < 0x80 {
                    break;
                }
            }
            at += n + length;
        }
        starts
    };
    let options = Options { format: Some(Format::PerfettoBlock), devices: Devices::Merge, ..Options::default() };
    for to in (1..file.len()).filter(|to| to % 5 == 0 || starts.contains(to)) {
        let start = starts[starts.partition_point(|&start| start < to) - 1];
        match read_with(&file[..to], &options) {
            Ok(_) => assert!(starts.contains(&to), "{to}"),
            Err(e) if starts.contains(&to) => assert_eq!(e.reason, Reason::Empty, "{to}: {e}"),
            Err(e) => assert_eq!((e.reason, e.place), (Reason::Truncated, Place::Byte(start as u64)), "{to}: {e}"),
        }
    }
}

/// A byte that is another is found or makes another trace; an error has a place in the file and says what is right.
#[test]
fn every_damaged_byte_is_an_error_with_a_place_or_another_trace() {
    let file = plain_file();
    let (mut changes, mut found) = (0, 0);
    // Every third, with each change for each format in turn.
    for at in (0..file.len()).step_by(3) {
        let mut bad = file.clone();
        bad[at] ^= [0x80, 0x07, 0xFF][at / 6 % 3];
        let format = Some([Format::PerfettoBlock, Format::PerfettoUfs][at / 3 % 2]);
        changes += 1;
        let Err(e) = read_with(bad, &Options { format, devices: Devices::Merge, ..Options::default() }) else {
            continue;
        };
        found += 1;
        let Place::Byte(place) = e.place else { panic!("{at}: {e}") };
        assert!(place <= file.len() as u64, "{at}: {e}");
        let says = ["expected ", "cut off", "earlier"].iter().any(|part| e.message.contains(part));
        assert!(says, "{at}: {e}");
    }
    assert!(3 * found > changes, "{found} of {changes}");
}
