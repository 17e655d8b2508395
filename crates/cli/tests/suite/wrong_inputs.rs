// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sixty wrong inputs: each message names the place, what is wrong, and what would be right.

use crate::common::Room;
use std::fs;

const JOB: &str = "[a]\nrw=randread\nsize=1m\n";
const TRACE: &str = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n";

/// Files that the commands name.
const FILES: [(&str, &[u8]); 26] = [
    ("job.fio", JOB.as_bytes()),
    ("t.csv", TRACE.as_bytes()),
    ("e.toml", b"schema = \"readpath-experiment/1\"\nname = \"e\"\n"),
    ("s.toml", b"schema = \"readpath-study/1\"\nname = \"s\"\n"),
    ("d.toml", b"schema = \"readpath-device/1\"\nname = \"d\"\n"),
    ("r.json", b"{\n  \"schema\": \"readpath-results/2\"\n}\n"),
    ("perf.data", b"PERFILE2h\0\0\0\0\0\0\0"),
    ("trace.dat", b"\x17\x08Dtracing6\0"),
    ("systrace.html", b"<!DOCTYPE html>\n<html>\n# tracer: nop\n</script>\n"),
    ("bugreport.zip", b"PK\x03\x04\x14\0\0\0\x08\0"),
    ("junk.img", &[0x5A; 300_000]),
    ("empty", b""),
    ("large.fio", b"[a]\nrw=read\nsize=100g\n"),
    ("disk.fio", b"[a]\nrw=read\nfilename=/dev/sda\nsize=100g\n"),
    ("typo.fio", b"[a]\nrw=read\nsize=1m\niodpeth=4\n"),
    ("engine.fio", b"[a]\nioengine=rados\nrw=read\nsize=1m\n"),
    ("half.fio", b"[a]\nrw=read\nbs=512\nsize=1m\n"),
    ("zbd.fio", b"[a]\nrw=read\nsize=1m\nzonemode=zbd\n"),
    ("variable.fio", b"[a]\nrw=read\nsize=${READPATH_NOT_SET}\n"),
    ("cpus.fio", b"[a]\nrw=read\nsize=1m\nnumjobs=$ncpus\n"),
    ("files.fio", b"[a]\nrw=read\nsize=1m\nfilename=a:b\n"),
    ("pre.fio", b"[a]\nrw=read\nsize=1m\npre_read=1\n"),
    ("percent.fio", b"[a]\nrw=read\nfilename=/dev/sda\nsize=101%\n"),
    ("letter.csv", b"time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n1,Q,0,4096,,\n"),
    ("hex.csv", b"time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0xZ000,4096,,\n"),
    ("far.csv", b"time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,99999999995904,4096,,\n"),
];

/// A command line, and what its message has: the place, what is wrong, what would be right.
const WRONG: [(&str, [&str; 3]); 60] = [
    // Numbers and words of the command line.
    ("fio job.fio --seed -1", ["'--seed", "'-1'", "a whole number, 0 or more"]),
    ("fio job.fio --seed many", ["'--seed", "'many'", "a whole number, 0 or more"]),
    ("fio job.fio --threads 0", ["'--threads", "'0'", "1..=4294967295"]),
    ("fio job.fio --device ufs21-64", ["ufs21-64", "no device of this name", "did you mean ufs21-64g?"]),
    ("fio job.fio --hpb on", ["'--hpb", "'on'", "possible values"]),
    ("fio job.fio --set queue_depth=0", ["queue_depth", "is 0", "1 to"]),
    ("fio job.fio --set queue_dept=2", ["queue_dept", "is not a key", "did you mean queue_depth?"]),
    ("fio job.fio --output-format yaml", ["'--output-format", "'yaml'", "normal, json, json+"]),
    ("fio job.fio --output-format json", ["fio's JSON", "holds one run", "--policy, or --hpb"]),
    ("fio job.fi", ["job.fi", "cannot be read", "No such file"]),
    ("fio", ["<FIO OPTIONS>", "required", "--help"]),
    ("replay", ["<FILE>", "required", "--help"]),
    ("reproduce iozon", ["iozon", "no experiment of this name", "did you mean iozone?"]),
    ("repaly t.csv", ["'repaly'", "unrecognized", "'replay'"]),
    // Files of another kind.
    ("fio e.toml", ["e.toml", "is an experiment", "'readpath reproduce e.toml'"]),
    ("fio s.toml", ["s.toml", "is a study", "'readpath sweep s.toml'"]),
    ("fio d.toml", ["d.toml", "is a device file", "--device d.toml"]),
    ("fio t.csv", ["t.csv", "is a block trace", "'readpath replay t.csv'"]),
    ("fio r.json", ["r.json", "is a result document", "'readpath report r.json'"]),
    ("fio perf.data", ["perf.data", "recording of perf", "perf script -i perf.data"]),
    ("replay job.fio", ["job.fio", "is a fio job", "'readpath fio job.fio'"]),
    ("replay e.toml", ["e.toml", "is an experiment", "'readpath reproduce e.toml'"]),
    ("replay s.toml", ["s.toml", "is a study", "'readpath sweep s.toml'"]),
    ("replay perf.data", ["perf.data", "recording of perf", "'perf script -i perf.data >perf.data.txt'"]),
    ("replay trace.dat", ["trace.dat", "recording of trace-cmd", "'trace-cmd report -i trace.dat >trace.dat.txt'"]),
    ("replay systrace.html", ["systrace.html", "is a web page", "systrace.html >systrace.html.txt"]),
    ("replay bugreport.zip", ["bugreport.zip", "is a zip archive", "unzip it"]),
    ("replay junk.img", ["junk.img", "not recognised", "give the columns"]),
    ("replay empty", ["empty:", "it is empty", "a trace has at least one request"]),
    ("break-even e.toml", ["e.toml", "is an experiment", "'readpath reproduce e.toml'"]),
    ("power e.toml", ["e.toml", "is an experiment", "'readpath reproduce e.toml'"]),
    ("sweep e.toml", ["e.toml", "is an experiment", "'readpath reproduce e.toml'"]),
    ("sweep job.fio", ["job.fio", "is a fio job", "'readpath fio job.fio'"]),
    ("report t.csv", ["t.csv", "is a block trace", "'readpath replay t.csv'"]),
    ("fio job.fio --device e.toml", ["e.toml", "is an experiment", "'readpath reproduce e.toml'"]),
    ("fio job.fio --device job.fio", ["job.fio", "is a fio job", "'readpath fio job.fio'"]),
    ("ubi ls junk.img", ["junk.img", "no UBI", "--peb-size"]),
    ("ubi ls t.csv", ["t.csv", "is a block trace", "'readpath replay t.csv'"]),
    ("ubi ls bugreport.zip", ["bugreport.zip", "zip", "unpack it first"]),
    ("trace info job.fio", ["job.fio", "is a fio job", "'readpath fio job.fio'"]),
    // Jobs.
    ("fio large.fio", ["large.fio:3", "100.00 GiB", "64.00 GiB) are left; give a smaller size, or a larger device"]),
    ("fio disk.fio", ["disk.fio:4", "100.00 GiB", "(64.00 GiB)"]),
    ("fio typo.fio", ["typo.fio:4", "not an option of fio", "did you mean iodepth?"]),
    ("fio engine.fio", ["engine.fio:2", "\"rados\"", "a block device"]),
    ("fio half.fio", ["half.fio:3", "\"512\" is 512", "multiple of 4096"]),
    ("fio zbd.fio", ["zbd.fio:4", "zonemode=zbd", "has no zones"]),
    ("fio variable.fio", ["variable.fio:3", "no variable READPATH_NOT_SET", "READPATH_NOT_SET=VALUE"]),
    ("fio cpus.fio", ["cpus.fio:4", "$ncpus says what machine", "write the number itself"]),
    ("fio files.fio", ["files.fio:4", "several files", "\\: for a colon"]),
    ("fio pre.fio", ["pre.fio:4", "is not modelled", "or give pre_read=0"]),
    ("fio percent.fio", ["percent.fio:4", "\"101\"", "between 0 and 100"]),
    ("fio -- --rw=read --size=1m", ["--name=NAME", "is missing", "it begins a job"]),
    ("fio -- --name=a --size=1m --output-format=json", ["--output-format", "of the program fio", "before the --"]),
    ("fio -- --name=a --size=1m --bs=5k", ["--bs=5k", "is 5120", "multiple of 4096"]),
    ("fio job.fio -- --name=b", ["--name", "the job file has its own", "leave --name out"]),
    ("fio job.fio -- job2.fio", ["job2.fio", "is not an option of a job", "--option=value"]),
    // Traces.
    ("replay letter.csv", ["letter.csv:3", "\"Q\"", "R"]),
    ("replay hex.csv", ["hex.csv:2", "found \"Z000\"", "expected a hexadecimal number"]),
    ("replay far.csv", ["far.csv:2", "beyond", "--fold to fold them"]),
    ("replay t.csv --format mrs", ["--format", "\"mrs\" is not a format", "there are msr"]),
];

#[test]
fn each_message_names_place_fault_and_remedy() {
    let room = Room::new();
    for (name, bytes) in FILES {
        fs::write(room.path(name), bytes).expect("a file");
    }
    for (line, says) in WRONG {
        let message = room.bad(&line.split(' ').collect::<Vec<_>>(), &[]);
        for part in says {
            assert!(message.contains(part), "readpath {line}\n{message}lacks {part:?}");
        }
    }
}

/// On a device without HPB all hosts are equal, so there is one.
#[test]
fn a_device_without_hpb_has_one_host() {
    let room = Room::with("job.fio", JOB);
    room.write("t.csv", TRACE);
    let nvme = ["--device", "nvme-dramless-512g"];
    for command in [&["fio", "job.fio"][..], &["replay", "t.csv"], &["power", "job.fio", "--cuts", "1"]] {
        let shown = room.good(&[command, &nvme].concat());
        assert!(!shown.contains("HPB dcm") && shown.contains("HPB off"), "{command:?}: {shown}");
        assert!(room.good(command).contains("HPB dcm"), "{command:?}");
    }
    for workload in ["job.fio", "t.csv"] {
        let vary = ["compare", workload, "--vary", "host.max_host_mem_mib=0,32", "--dry-run"];
        let shown = room.good(&[&vary[..], &nvme].concat());
        assert!(!shown.contains("HPB dcm") && shown.contains("2 variants"), "{shown}");
    }
}

/// The files of one trace, one for each processor, are one trace.
#[test]
fn files_of_processors_are_joined() {
    let record = |time: u64, sector: u64| {
        let mut record = [0u8; 48];
        for (at, bytes) in [
            (0, 0x6561_7407u64.to_le_bytes()),
            (8, time.to_le_bytes()),
            (16, sector.to_le_bytes()),
            (24, (4096u64 | (7 | 1 << 16) << 32).to_le_bytes()),
            (36, (8u64 << 20).to_le_bytes()),
        ] {
            record[at..at + 8].copy_from_slice(&bytes);
        }
        record
    };
    let room = Room::new();
    let put = |name: &str, records: &[[u8; 48]]| fs::write(room.path(name), records.concat()).expect("a file");
    put("sda.blktrace.0", &[record(10, 0), record(40, 8)]);
    let one = room.good(&["trace", "info", "sda.blktrace.0"]);
    assert!(one.contains("is the file of ONE processor") && one.contains("2 requests over 30 ns"), "{one}");
    put("sda.blktrace.10", &[record(30, 16)]);
    put("sda.blktrace.2", &[record(20, 24), record(50, 32)]);
    put("sdb.blktrace.1", &[record(1, 40)]);
    for name in ["sda.blktrace.0", "sda.blktrace.10"] {
        let all = room.good(&["trace", "info", name]);
        assert!(all.contains("the files of all 3 processors") && all.contains("5 requests over 40 ns"), "{all}");
        assert!(!all.contains("out of order"), "{all}");
    }
    room.good(&["trace", "convert", "sda.blktrace.2", "--output", "all.csv", "--output-format", "csv"]);
    let offsets: Vec<String> =
        room.read("all.csv").lines().skip(1).map(|l| l.split(',').nth(2).unwrap().to_owned()).collect();
    assert_eq!(offsets, ["0", "12288", "8192", "4096", "16384"]);
    let two = ["replay", "sda.blktrace.0", "sda.blktrace.2"];
    room.bad(&two, &["sda.blktrace.2: is read with sda.blktrace.0", "give one of them"]);
}
