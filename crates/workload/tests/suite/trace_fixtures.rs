// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces that other programs wrote from one table of requests (`data/formats`), against that table.

use crate::trace_common::read_with;
use readpath_kit::Ns;
use readpath_workload::IoKind::{self, Flush, Read, Trim, Write};
use readpath_workload::trace::{Devices, Format, Options, Reader, Request, Summary};
use std::io::Cursor;
use std::path::Path;

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/formats").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A row of the table.
#[derive(Clone, Copy)]
struct Row {
    device: u64,
    sector: u64,
    request: Request,
}

fn table() -> Vec<Row> {
    let text = String::from_utf8(file("requests.csv")).expect("text");
    let row = |line: &str| {
        let f: Vec<&str> = line.split(',').collect();
        let n = |i: usize| f[i].parse::<u64>().expect("a number");
        let kind = match f[2].as_bytes()[0] {
            b'R' => Read,
            b'W' => Write,
            b'D' => Trim,
            _ => Flush,
        };
        let request = Request {
            time: Ns(n(0)),
            offset: n(3) * 512,
            bytes: n(4) * 512,
            latency: Some(Ns(n(6))),
            process: Some(n(5) as u32),
            kind,
            fua: f[2] == "WFS",
            preflush: false,
        };
        Row { device: n(1), sector: n(3), request }
    };
    let rows: Vec<Row> = text.lines().skip(1).map(row).collect();
    assert_eq!(rows.len(), 52);
    rows
}

/// Reads and writes of the table, as a format has them whose times are multiples of `unit` ns from a start that is
/// `start` ns.
fn moves(rows: &[Row], start: u64, unit: u64, kinds: &[IoKind], device: Option<u64>) -> Vec<Request> {
    let wanted = |row: &&Row| kinds.contains(&row.request.kind) && device.is_none_or(|device| device == row.device);
    let cut = |row: &Row| (start + row.request.time.0) / unit * unit;
    let base = rows.iter().find(|row| wanted(row)).map_or(0, cut);
    let plain =
        |row: &Row| Request { time: Ns(cut(row) - base), latency: None, process: None, fua: false, ..row.request };
    rows.iter().filter(wanted).map(plain).collect()
}

const START: u64 = 1_577_808_144_360_767_000;
const DATA: &[IoKind] = &[Read, Write];

fn named(format: Format) -> Options {
    Options { format: Some(format), ..Options::default() }
}

fn recognised(name: &str, options: &Options) -> Format {
    Reader::new(name, Box::new(Cursor::new(file(name))), options).unwrap_or_else(|e| panic!("{e}")).format()
}

fn both(name: &str, options: &Options) -> (Vec<Request>, Summary) {
    read_with(file(name), options).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn of_device(name: &str, options: &Options, device: &str) -> (Vec<Request>, Summary) {
    both(name, &Options { devices: Devices::Named(device.into()), ..options.clone() })
}

#[test]
fn tables_of_alibaba_and_tencent() {
    let rows = table();
    for (name, format, unit, volumes, head) in [
        ("alibaba.csv", Format::Alibaba, 1_000, ["419", "420"], "device_id,opcode,offset,length,timestamp\n"),
        ("tencent.csv", Format::Tencent, 1_000_000_000, ["1283", "1284"], "Timestamp,Offset,Size,IOType,VolumeID\n"),
    ] {
        let options = named(format);
        let merged = both(name, &Options { devices: Devices::Merge, ..options.clone() }).0;
        assert_eq!(merged, moves(&rows, START, unit, DATA, None), "{name}");
        for (device, volume) in volumes.iter().enumerate() {
            let (requests, summary) = of_device(name, &options, volume);
            assert_eq!(requests, moves(&rows, START, unit, DATA, Some(device as u64)), "{name}");
            assert_eq!(summary.other_device, merged.len() as u64 - requests.len() as u64);
        }
        // A second volume is an error of its row.
        let text = String::from_utf8(file(name)).expect("text");
        let line = 1 + text.lines().position(|line| line.contains(volumes[1])).expect("a second one");
        let e = read_with(&*text, &options).expect_err("two volumes");
        assert!(e.to_string().starts_with(&format!("t:{line}: expected the device of the rows before")), "{e}");
        // Its rows do not identify the format, but a header does.
        let e = read_with(&*text, &Options::default()).expect_err("not recognised");
        assert!(e.message.ends_with(&format!("; rows of format {} look like this one", format.name())), "{e}");
        let with_head = format!("{head}{text}");
        let options = Options { devices: Devices::Merge, ..Options::default() };
        assert_eq!(read_with(with_head, &options).expect("recognised").0, merged);
    }
}

#[test]
fn records_of_vscsi() {
    let rows = table();
    let expected = moves(&rows, START, 1_000, &[Read, Write, Flush], None);
    for name in ["requests.v1.vscsi", "requests.v2.vscsi"] {
        assert_eq!(recognised(name, &Options::default()), Format::Vscsi, "{name}");
        let (requests, summary) = both(name, &Options::default());
        assert_eq!(requests, expected, "{name}");
        // TEST UNIT READY and INQUIRY.
        assert_eq!((summary.other_rows, summary.rows), (10, 57));
    }
}

#[test]
fn records_of_libcachesim() {
    let rows = table();
    let sectors = Options { object_bytes: Some(512), ..Options::default() };
    let oracle = Options { format: Some(Format::OracleGeneral), ..sectors.clone() };
    let reads = |requests: Vec<Request>| -> Vec<Request> {
        requests.into_iter().map(|request| Request { kind: Read, ..request }).collect()
    };
    let expected = moves(&rows, 0, 1_000_000_000, DATA, None);
    assert_eq!(both("requests.oracleGeneral.zst", &oracle).0, reads(expected.clone()));
    assert_eq!(both("requests.v1.lcs.zst", &sectors).0, reads(expected.clone()));
    for version in 2..=8 {
        let name = format!("requests.v{version}.lcs.zst");
        assert_eq!(recognised(&name, &sectors), Format::Lcs);
        assert_eq!(both(&name, &Options { devices: Devices::Merge, ..sectors.clone() }).0, expected, "{name}");
        let one = moves(&rows, 0, 1_000_000_000, DATA, Some(1));
        assert_eq!(of_device(&name, &sectors, "1").0, one, "{name}");
    }
    // Bytes, not sectors.
    let bytes = both("requests.oracleGeneral.zst", &Options { object_bytes: Some(1), ..oracle }).0;
    assert_eq!(bytes[0].offset, rows[0].sector);
}

/// Files as the tracing service writes them: plain, and with packets compressed inside.
const PERFETTO: [&str; 3] = ["plain.pftrace", "zlib.pftrace", "zstd.pftrace"];

/// Requests with the first at time 0. Nothing says in which order those of several processors came at one time.
fn from_first(rows: impl IntoIterator<Item = Request>) -> Vec<Request> {
    let mut rows: Vec<Request> = rows.into_iter().collect();
    let first = rows[0].time;
    rows.iter_mut().for_each(|request| request.time = request.time - first);
    rows.sort_by_key(|request| (request.time, request.offset));
    rows
}

#[test]
fn block_layer_in_traces_of_perfetto() {
    let rows = table();
    for name in PERFETTO {
        let options = named(Format::PerfettoBlock);
        let (merged, summary) = both(name, &Options { devices: Devices::Merge, ..options.clone() });
        assert_eq!(from_first(merged), from_first(rows.iter().map(|row| row.request)), "{name}");
        assert_eq!((summary.with_latency, summary.unmatched_completions), (52, 0), "{name}");
        assert!(summary.inversions > 10 && summary.furthest_inversion > Ns::from_ms(100), "{summary:?}");
        for (number, device) in [(0, "8,0"), (1, "8,16")] {
            let expected = from_first(rows.iter().filter(|row| row.device == number).map(|row| row.request));
            let (requests, summary) = of_device(name, &options, device);
            assert_eq!(from_first(requests), expected, "{name}");
            assert_eq!((summary.other_device, summary.unmatched_completions), (52 - expected.len() as u64, 0));
        }
        let aligned = rows.iter().filter(|row| row.sector % 8 == 0).count() as u64;
        assert_eq!(summary.other_layer, aligned, "{name}");
    }
}

#[test]
fn ufs_driver_in_traces_of_perfetto() {
    let rows = table();
    // The generator puts 1 us between both layers, at either end.
    let of_ufs = |row: &Row| {
        let latency = row.request.latency.map(|latency| latency - Ns(2_000));
        Request { latency, fua: false, ..row.request }
    };
    let expected = from_first(rows.iter().filter(|row| row.sector % 8 == 0).map(of_ufs));
    for name in PERFETTO {
        assert_eq!(recognised(name, &Options::default()), Format::PerfettoUfs, "{name}");
        let (requests, summary) = both(name, &Options::default());
        assert_eq!(from_first(requests), expected, "{name}");
        assert_eq!((summary.other_layer, summary.unmatched_completions), (52, 0), "{name}");
    }
}
