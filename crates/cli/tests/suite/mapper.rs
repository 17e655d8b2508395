// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs and traces that overwrite blocks of a unit with zones: through a mapper of the host, whose own write
//! amplification is told apart from the device's; without one they are refused.

use crate::common::{HEADER, Room, row, text};
use std::fmt::Write as _;
use std::fs;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/zoned.toml");
/// Zones of one superblock, with unit 1 behind a mapper.
const SMALL: [&str; 5] = ["--set", "lu.1.zones.size_mib=64", "--set", "lu.1.capacity_gib=1", "--hpb=off"];
const LOG: [&str; 2] = ["--set", "host.zones.mapper=log"];

const JOB: &str = "[w]\nfilename=/dev/sdb\nrw=randwrite\nbs=64k\niodepth=16\nioengine=libaio\ndirect=1\nsize=256m\nio_size=2g\n\
     norandommap=1\n";
const ZBD: &str = "[z]\nfilename=/dev/sdb\nrw=write\nbs=64k\nioengine=libaio\ndirect=1\nsize=64m\nzonemode=zbd\n";

fn with<'a>(command: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [command, &["--device", EXAMPLE], &SMALL, more].concat()
}

/// The example with its zoned unit alone.
fn one_unit() -> String {
    let text = fs::read_to_string(EXAMPLE).expect("it is there");
    let (before, units) = text.split_once("# For what is written in place.").expect("the first unit");
    let (_, zoned) = units.split_once("[[lu]]\ncapacity_gib = 0.5\nhpb = false\n").expect("the first unit");
    let small =
        zoned.replacen("capacity_gib = 8", "capacity_gib = 2", 1).replacen("size_mib = 128", "size_mib = 16", 1);
    format!("{before}{small}")
}

/// Both random tests of iozone keep the mapper's tables, and each says so once.
#[test]
fn iozone_runs_behind_a_mapper() {
    let room = Room::with("one.toml", &one_unit());
    let run = ["iozone", "--device", "one.toml", "--hpb=off", "--json"];
    let job = ["--", "-r", "4k", "-+n", "-i2", "-ecI", "-t", "4", "-l", "4", "-u", "4", "-s", "4m"];
    let doc = room.document(&[&run[..], &LOG, &job].concat());
    for case in ["iozone: random read", "iozone"] {
        let row =
            row(&doc, &[("metric", "host_zone_map"), ("case", case)]).unwrap_or_else(|| panic!("no row of {case}"));
        assert!(row["simulated"].as_f64().is_some_and(|bytes| bytes > 0.0), "{row}");
    }
}

#[test]
fn what_a_mapper_writes_is_told_apart() {
    let room = Room::with("w.fio", JOB);
    let doc = room.document(&with(&["fio", "w.fio", "--json"], &LOG));
    let value = |metric: &str| {
        let row = row(&doc, &[("metric", metric)]).unwrap_or_else(|| panic!("no {metric} in {:#}", doc["rows"]));
        row["simulated"].as_f64().expect("a number")
    };
    let [host, device] = ["host_write_amplification", "write_amplification"].map(value);
    // Cleaning moves blocks; what the device programs more is for rests and padding, and it moves nothing.
    assert!(host > 1.2 && (1.0..1.05).contains(&device) && host != device, "{host} and {device}");
    assert_eq!(value("data_write_amplification"), 1.0);
    // Places of 16 zones, and blocks of the ten that are left.
    let tables = f64::from((16 + 10) * 16384 * 4);
    assert!((tables..tables + 2000.0).contains(&value("host_zone_map")), "{}", value("host_zone_map"));
    assert!(value("zones_reset") > 20.0, "{}", value("zones_reset"));
    // Reads cost that memory too, and say where the map is.
    room.write("r.fio", &JOB.replace("randwrite", "randread").replace("io_size=2g", "io_size=16m"));
    let reads = room.document(&with(&["fio", "r.fio", "--json"], &LOG));
    let of_reads = |metric: &str| row(&reads, &[("metric", metric)]).map(|row| row["simulated"].as_f64());
    assert_eq!(of_reads("host_zone_map"), Some(Some(value("host_zone_map"))));
    assert_eq!(of_reads("host_memory"), of_reads("host_zone_map"));
    assert!(of_reads("device_sram").is_some());
    let shown = room.good(&with(&["fio", "w.fio"], &LOG));
    assert!(shown.contains("host ampl.") && shown.contains("write ampl."), "{shown}");
    // More room pays.
    let roomy = with(&["fio", "w.fio", "--json"], &["--set", "host.zones.mapper=log", "--set", "lu.1.capacity_gib=2"]);
    let doc = room.document(&roomy);
    let less = row(&doc, &[("metric", "host_write_amplification")]).expect("a mapper")["simulated"].as_f64();
    assert!(less < Some(host), "{less:?} and {host}");
}

#[test]
fn traces_overwrite_blocks_of_zones() {
    let room = Room::new();
    let mut trace = HEADER.trim_end().to_owned() + "\n";
    for i in 0..6_000u64 {
        let block = i * 7919 % 40_000;
        let (op, bytes) = match i % 20 {
            0 => ("F", 0),
            1 => ("D", 65536),
            2..6 => ("R", 16384),
            _ => ("W", 65536),
        };
        let offset = if op == "F" { 0 } else { block * 4096 };
        writeln!(trace, "{},{op},{offset},{bytes},,", i * 100_000).unwrap();
    }
    room.write("t.csv", &trace);
    room.write("one.toml", &one_unit());
    let base = ["replay", "t.csv", "--device", "one.toml", "--hpb", "off"];
    room.bad(&base, &["writes to logical unit 0", "host.zones.mapper = \"log\""]);
    let log = [&base[..], &LOG].concat();
    let shown = room.good(&log);
    assert!(shown.contains("host ampl.") && shown.contains("write ampl."), "{shown}");
    let documents = ["1", "2"].map(|threads| room.document(&[&log[..], &["--json", "--threads", threads]].concat()));
    assert_eq!(documents[0]["rows"], documents[1]["rows"]);
    let more = row(&documents[0], &[("metric", "host_write_amplification")]).expect("a mapper")["simulated"].as_f64();
    assert!(more >= Some(1.0), "{more:?}");
    // Beyond what the mapper leaves of 2 GiB: 13 of 128 zones.
    room.write("far.csv", &format!("{}\n0,W,{},4096,,\n", HEADER.trim_end(), (128 - 13) * (16u64 << 20)));
    let far = ["replay", "far.csv", "--device", "one.toml", "--hpb", "off", "--set", "host.zones.mapper=log"];
    room.bad(&far, &["far.csv:2", "beyond"]);
    // The first variant has room for it, the second has not.
    room.write("mid.csv", &format!("{}\n0,W,{},4096,,\n", HEADER.trim_end(), 1u64 << 30));
    let mid = ["replay", "mid.csv", "--device", "one.toml", "--hpb", "off", "--set", "host.zones.mapper=log"];
    let vary = ["--vary", "host.zones.spare_percent=10,60", "--out", "mid"];
    let output = room.output(&[&mid[..], &vary].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("spare_percent=60: the workload needs 262145 blocks"), "{said}");
}

/// Of a device whose write buffer is too small for the zones that are written, which is a row.
#[test]
fn zones_that_leave_the_write_buffer_early_are_counted() {
    let job = "[z]\nfilename=/dev/sdb\nrw=write\nbs=4k\nioengine=libaio\ndirect=1\nsize=64m\nio_size=1m\noffset_increment=64m\n\
        numjobs=4\nzonemode=zbd\n";
    let room = Room::with("z.fio", job);
    let early = |kib: &str| {
        let buffer = format!("write_buffer.size_kib={kib}");
        let set = ["--set", &buffer, "--set", "ftl.checkpoint_after_units=1024"];
        let document = room.document(&with(&["fio", "z.fio", "--json"], &set));
        let value = |metric: &str| row(&document, &[("metric", metric)]).and_then(|row| row["simulated"].as_f64());
        (value("zone_early_flushes"), value("write_amplification_rests"))
    };
    // Programs of 192 KiB of four zones, and what is on its way.
    assert_eq!(early("1536"), (None, None));
    let (flushes, rests) = early("384");
    assert!(flushes > Some(3.0) && rests > Some(0.0), "{flushes:?}, {rests:?}");
}

#[test]
fn what_cannot_be_says_what_would_help() {
    let room = Room::with("w.fio", JOB);
    room.write("z.fio", ZBD);
    let help = ["w.fio:1", "add zonemode=zbd", "host.zones.mapper = \"log\""];
    room.bad(&with(&["fio", "w.fio"], &[]), &help);
    room.good(&with(&["fio", "z.fio"], &[]));
    room.bad(
        &with(&["fio", "z.fio"], &LOG),
        &["z.fio:8", "has no zones of its own", "no host.zones.mapper, which hides"],
    );
    let power = with(&["power", "w.fio", "--cuts", "1"], &LOG);
    room.bad(&power, &["a power cut is not modelled behind a mapper of zones", "with fio jobs that have zonemode=zbd"]);
    room.good(&with(&["power", "z.fio", "--cuts", "1"], &[]));
    room.bad(
        &with(&["power", "z.fio", "--cuts", "1", "--loses", "device"], &[]),
        &["z, HPB off: a power cut of the device alone (--loses device) is", "use a unit without zones"],
    );
    room.write("t.csv", "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,a,0\n");
    room.write("one.toml", &one_unit());
    let trace = ["power", "t.csv", "--cuts", "1", "--device", "one.toml"];
    room.bad(&trace, &["a power cut under a trace is not modelled on a unit with zones"]);
    room.write("rules", "0s slow read 1% 20ms\n");
    room.bad(
        &with(&["power", "z.fio", "--cuts", "1", "--faults", "rules"], &[]),
        &["rules for requests are not modelled on a unit with zones"],
    );
    // The unit beside it.
    room.write("a.fio", &JOB.replace("/dev/sdb", "/dev/sda").replace("io_size=2g", "io_size=64m"));
    let told = room.good(&with(&["power", "a.fio", "--cuts", "3"], &[]));
    assert!(told.contains("in 3 power cuts: all 131072 blocks read back are right"), "{told}");
    let cut = with(&["fio", "a.fio", "--events", "e.csv"], &[]);
    room.write("e.csv", "1,hardware-reset\n");
    room.good(&cut);
    room.bad(&with(&["fio", "z.fio", "--events", "e.csv"], &[]), &["use a unit without zones"]);
    room.bad(
        &with(&["fio", "z.fio", "--set", "lu.1.hpb=true"], &[]),
        &["lu[1].hpb: is true, but the device has no HPB"],
    );
    let image = ["image", "create", "i.img", "--age", "w.fio", "--device", EXAMPLE];
    let image = [&image[..], &SMALL[..4], &LOG].concat();
    room.bad(&image, &["without the map of its host", "zonemode=zbd"]);
}
