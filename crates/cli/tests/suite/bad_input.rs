// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever is wrong with what a user typed or wrote: exit status 2, a message that names the place and says what would
//! be right, and nothing left behind.

use crate::common::{EXPERIMENT, JOB, Room, preset_with, text};
use std::fs;

#[test]
fn device_files() {
    let room = Room::new();
    // Line 0: the message names another line than the changed one, its counterpart or the section that lacks a key.
    for (section, key, new, at, says) in [
        ("", "schema", "schema = \"readpath-device/1", 1, "this is not TOML"),
        ("", "schema", "schema = \"readpath-device/9\"", 1, "schema: is \"readpath-device/9\""),
        ("", "queue_depth", "queue_dept = 32", 1, "queue_dept: is not a key; did you mean queue_depth?"),
        ("", "queue_depth", "queue_depth = 0", 1, "queue_depth: is 0; "),
        ("", "queue_depth", "queue_depth = \"32\"", 1, "queue_depth: is the text \"32\"; expected"),
        ("", "scheduler", "scheduler = \"leen\"", 1, "scheduler: "),
        ("[geometry]", "page_bytes", "page_bytes = 6000", 1, "geometry.page_bytes: is 6000; it must be a power of two"),
        ("[geometry]", "channels", "channels = 0", 1, "geometry.channels: is 0; "),
        ("[hpb]", "sub_region_mib", "sub_region_mib = 32", 0, "a region is at least a sub-region"),
        ("[hpb]", "region_mib", "region_mib = 17", 1, "hpb.region_mib: is 17; "),
        ("[hpb]", "entry_key", "entry_key = \"xx\"", 1, "hpb.entry_key: "),
        ("[[lu]]", "pinned_regions", "pinned_regions = 1920", 1, "it must be below max_active_regions (1920)"),
        ("[[lu]]", "capacity_gib", "capacity_gib = 0", 1, "lu[0].capacity_gib: is 0; "),
        ("[[lu]]", "capacity_gib", "capacity_gib = 80", 0, "20971520 logical blocks"),
        ("[map_cache]", "size_kib", "size_kib = 0", 1, "map_cache.size_kib: is 0; "),
        ("[map_cache]", "size_kib", "size_kib = 1\nsize_kib = 2", 2, "size_kib: is given twice in this table"),
        ("[map_cache]", "page_bytes", "page_bytes = 0", 1, "map_cache.page_bytes: is 0; "),
        ("[flash]", "erase_us", "erase_us = 3.5e3", 1, "flash.erase_us: "),
        ("[flash]", "erase_us", "", 0, "erase_us"),
    ] {
        let (file, line) = preset_with(section, key, new);
        room.write("my.toml", &file);
        let place = if at == 0 { "my.toml:".to_owned() } else { format!("my.toml:{}:", line + at - 1) };
        let message = room.bad(&["device", "show", "./my.toml"], &[&place, says]);
        // A run with this device fails with the same message.
        let run = room.bad(&["iozone", "--device", "./my.toml", "--out", "out", "--", "-i2"], &[]);
        assert_eq!(run, message);
    }
}

#[test]
fn device_check_goes_on_after_a_bad_file() {
    let room = Room::with("good.toml", &preset_with("", "queue_depth", "queue_depth = 16").0);
    room.write("bad.toml", &preset_with("", "queue_depth", "queue_depth = 65").0);
    room.write("not-text.toml", "");
    fs::write(room.path("not-text.toml"), [0xFF, 0xFE, 0]).expect("a file");
    fs::create_dir(room.path("folder")).expect("a folder");
    let output = room.output(&["device", "check", "bad.toml", "none.toml", "not-text.toml", "folder", "good.toml"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "good.toml: ufs21-64g is a device\n");
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 5, "{message}");
    for (line, begins) in
        lines.iter().zip(["bad.toml:", "none.toml: cannot", "not-text.toml: cannot", "folder: cannot"])
    {
        assert!(line.starts_with(&format!("readpath: {begins}")), "{line}");
    }
    assert!(lines[0].contains("queue_depth: is 65") && lines[4].contains("4 of 5 files"), "{message}");
}

#[test]
fn overrides_and_names() {
    let room = Room::with("small.toml", EXPERIMENT);
    for (set, says) in [
        ("map_cache.size_kib", "has no '='; expected key=value"),
        ("map_cache.size_kib=", "map_cache.size_kib"),
        ("map_cache.size_kib=0", "expected a whole number from 1"),
        ("map_cache.size_kib=-1", "expected a whole number from 1"),
        ("map_cache.size_kib=1.5", "expected a whole number from 1"),
        ("map_cache.size_kb=512", "did you mean size_kib?"),
        ("nothing.at.all=1", "is not a key"),
        ("lu=3", "expected an array of tables"),
        ("lu[7].blocks=1000", "lu[7]"),
        ("lu[0].capacity_gib=80", "20971520 logical blocks"),
        ("flash.read_us=0", "it must be above 0"),
        ("flash.read_us=fast", "expected a time in microseconds"),
        ("hpb.activate_after_reads=0", "hpb.activate_after_reads"),
        ("hpb.max_active_regions=0", "hpb.max_active_regions"),
        ("lu[0].pinned_regions=1920", "must be below max_active_regions"),
        ("hpb=5", "hpb: is 5; "),
    ] {
        for args in [vec!["device", "show", "ufs21-64g"], vec!["reproduce", "small.toml", "--out", "out"]] {
            let message = room.bad(&[&args[..], &["--set", set]].concat(), &[]);
            assert!(message.contains("--set") || message.contains("ufs21-64g"), "{set}: {message}");
            assert!(message.contains(says), "{set}: {message}");
        }
    }
    let regions = ["--set", "hpb.region_mib=4", "--set", "hpb.sub_region_mib=4"];
    room.bad(&[&["device", "show", "ufs40-512g"], &regions[..]].concat(), &["--set: hpb.region_mib", "65,536"]);

    // What would fit is named.
    let many = ["device", "show", "ufs40-512g", "--set", "map_cache.page_bytes=4096"];
    room.bad(
        &many,
        &["ftl.checkpoint_after_units: is 1024, so that", "; a larger map_changes or write buffer would help"],
    );
    let sets = ["lu.0.blocks=976762584", "geometry.dies_per_channel=8", "write_buffer.size_kib=4096"];
    let large: Vec<&str> = sets.iter().flat_map(|key| ["--set", key]).collect();
    room.bad(&[&["device", "show", "nvme-qlc-1t"], &large[..]].concat(), &["; with 128 it fits"]);
    room.good(&[&["device", "show", "nvme-qlc-1t", "--set", "ftl.checkpoint_after_units=128"], &large[..]].concat());

    room.bad(&["device", "show", "ufs21-64"], &["did you mean ufs21-64g?", "mqsim-64g"]);
    room.bad(&["device", "show", "none.toml"], &["none.toml: cannot be read"]);
    room.bad(&["reproduce", "iozon"], &["there is no experiment of this name; did you mean iozone?"]);
    room.bad(&["reproduce", "polices"], &["did you mean policies?"]);
    room.bad(
        &["reproduce", "nosuch"],
        &[
            "(built in: iozone, ",
            ", rivals_apps, zones_reads, zones_fragmented, zones_writes, zones_apps, zones_programs, zones_ageing, ",
            "ufs31, ufs40, nvme_reads, nvme_writes, ",
            "qlc_writes, raspberry, hmb, hmb_map, raspberry_memory, policies, ubi, all, devices, zones; ",
            "a file of your own",
        ],
    );
    room.bad(
        &["reproduce", "iozone", "--case", "1 TB"],
        &["--case '1 TB' is not one of: 1 GB, 4 GB, 8 GB, 16 GB, 32 GB\n"],
    );
    room.bad(&["reproduce", "small.toml", "--variant", "HPB"], &["--variant 'HPB' is not one of: HPB off, HPB dcm"]);
    room.bad(&["reproduce", "small.toml", "--threads", "0"], &["0 is not in 1..=4294967295"]);
    room.bad(&["dev", "bench", "nothing"], &["no bench has 'nothing' in its name", "qd1-sram-hit"]);
    room.bad(&["reproduced"], &["reproduced", "'reproduce'"]);
    room.bad(&[], &["Usage: readpath <COMMAND>"]);
}

#[test]
fn experiment_files() {
    let room = Room::new();
    for (old, new, says) in [
        ("seed = 7", "seed = ", "not TOML"),
        ("seed = 7", "sed = 7", "did you mean seed?"),
        ("seed = 7", "seed = -1", "small.toml:7:8: seed"),
        ("name = \"small\"", "name = \"../etc\"", "small.toml:2:8: name"),
        ("ufs21-64g", "ufs21-65g", "did you mean ufs21-64g?"),
        ("ufs21-64g", "./none.toml", "none.toml: cannot be read"),
        ("layout = \"sequential\"", "layout = \"sorted\"", "sequential"),
        ("kind = \"iozone\"", "kind = \"bonnie\"", "iozone"),
        ("\"-t\", \"4\"", "\"-t\", \"0\"", "the number of threads must be a number from 1"),
        ("name = \"HPB off\"", "name = \"HPB dcm\"", "HPB dcm"),
        ("hpb = false", "hpb = false\norder = \"recency\"", "order"),
        ("hpb = false", "hpb = false\nset = { \"map_cache.size_kb\" = 1 }", "did you mean size_kib?"),
        ("case = \"reads\"\nvariant", "case = \"writes\"\nvariant", "reads"),
        ("value = 294.80", "value = \"much\"", "published[0].value"),
    ] {
        assert_eq!(EXPERIMENT.matches(old).count(), 1, "{old}");
        room.write("small.toml", &EXPERIMENT.replace(old, new));
        let message = room.bad(&["reproduce", "small.toml", "--out", "out"], &[]);
        assert!(message.contains(says), "{old:?} -> {new:?}: {message}");
    }
    room.bad(&["reproduce", "none.toml"], &["none.toml: cannot be read"]);
    fs::create_dir(room.path("folder")).expect("a folder");
    room.bad(&["reproduce", "./folder"], &["folder: cannot be read"]);
    room.bad(&["run", "small.toml"], &["readpath: 'run' is now 'readpath reproduce FILE'\n"]);
    room.write("device.toml", &preset_with("", "queue_depth", "queue_depth = 16").0);
    room.bad(&["reproduce", "device.toml"], &["device.toml: is a device file; ", "--device device.toml"]);
}

#[test]
fn fio_jobs() {
    let room = Room::new();
    for (job, line, says) in [
        ("", 0, "there is no job"),
        ("rw=read\n", 1, "before the first section"),
        ("[a\nrw=read\nsize=1m\n", 1, "must end with ]"),
        ("[a]\nrw=read\nsize=1m\nbogus=1\n", 4, "\"bogus\" is not an option"),
        ("[a]\nrw=sideways\nsize=1m\n", 2, "rw: \"sideways\" must be read, write"),
        ("[a]\nrw=read\nbs=0\nsize=1m\n", 3, "bs: "),
        ("[a]\nrw=read\nbs=5k\nsize=1m\n", 3, "must be a multiple of 4096"),
        ("[a]\nrw=read\nbs=many\nsize=1m\n", 3, "bs: "),
        ("[a]\nrw=read\n", 1, "give size or filesize"),
        ("[a]\nrw=read\nsize=0\n", 3, "size: "),
        ("[a]\nrw=read\nsize=65g\n", 3, "the device"),
        ("[a]\nrw=read\nfilename=/dev/sda\nsize=65g\n", 4, "beyond \"/dev/sda\""),
        ("[a]\nrw=read\nfilename=/dev/sda\nsize=1m\noffset=64g\n", 5, "offset: lies beyond"),
        ("[a]\nrw=read\nsize=1m\nfilesize=1m\noffset=2m\n", 5, "offset: lies beyond"),
        ("[a]\nrw=randrw\nrwmixread=101\nsize=1m\n", 3, "between 0 and 100"),
        ("[a]\nrw=read\nsize=200%\n", 3, "between 0 and 100"),
        ("[a]\nrw=read\nsize=1m\niodepth=0\n", 4, "iodepth: "),
        ("[a]\nrw=read\nsize=1m\nnumjobs=0\n", 4, "numjobs: "),
        ("[a]\nrw=read\nsize=1m\nrandom_distribution=gauss\n", 4, "random_distribution: "),
        ("[a]\nrw=read\nsize=1m\ninclude job.fio\n", 4, "included"),
        ("[a]\nrw=read\nsize=1m\ninclude none.fio\n", 4, "none.fio"),
    ] {
        room.write("job.fio", job);
        let message = room.bad(&["fio", "job.fio", "--out", "out"], &[]);
        let place = if line == 0 { "readpath: job.fio".to_owned() } else { format!("readpath: job.fio:{line}: ") };
        assert!(message.starts_with(&place) && message.contains(says), "{job:?}: {message}");
    }
    room.bad(&["fio", "none.fio"], &["none.fio", "cannot be read"]);
    fs::create_dir(room.path("folder")).expect("a folder");
    room.bad(&["fio", "folder"], &["folder", "cannot be read"]);
}

#[test]
fn iozone_lines() {
    let room = Room::new();
    for (line, position, says) in [
        ("-i2 -s 0", 3, "not zero"),
        ("-i2 -s many", 3, "the file size must be a number"),
        ("-i2 -r 5k -s 1m", 3, "must be a multiple of 4096"),
        ("-i2 -r 16k -s 20k", 5, "must be a multiple of the record size, 16384"),
        ("-i2 -t 0", 3, "from 1 to"),
        ("-i2 -t 2 -l 3 -u 4", 3, "outside of -l and -u"),
        ("-i2 -t 2 -F one", 5, "1 file names for 2 threads"),
        ("-i2 -t 2 -F one one", 6, "given twice"),
        ("-i2 -F", 2, "-F needs"),
        ("-i2 -q", 2, "needs a value"),
        ("-i2 --turbo", 2, "is not an iozone option"),
        ("-i 99", 2, "-i needs the number of a test"),
        ("-i 8", 2, "is not supported"),
        ("-r 4k -s 1m", 5, "no test: give -i"),
        ("-a", 1, "automatic mode"),
        ("-i2 mnt/tmp_1", 2, "file names belong after -F"),
        ("-i2 -t 65535 -s 64g", 5, "more than"),
    ] {
        let args: Vec<&str> = ["iozone", "--out", "out", "--"].into_iter().chain(line.split(' ')).collect();
        let message = room.bad(&args, &[]);
        assert!(message.starts_with("readpath: iozone"), "{message}");
        assert!(message.contains(&format!("argument {position} (")), "{line}: {message}");
        assert!(message.contains(says), "{line}: {message}");
    }
    let message = room.bad(&["iozone", "--out", "out", "--", "-i2", "-t", "2", "-s", "40g"], &["20971520", "16777216"]);
    assert!(message.contains("ufs21-64g"), "{message}");
    room.bad(&["iozone"], &["required arguments", "readpath iozone"]);
    room.bad(&["iozone", "-i2"], &["readpath iozone [OPTIONS] -- <IOZONE ARGUMENTS>"]);
}

#[test]
fn outputs_that_cannot_be_written_are_found_before_the_run() {
    let room = Room::with("small.toml", EXPERIMENT);
    room.write("job.fio", JOB);
    room.write("file", "");
    fs::create_dir(room.path("folder")).expect("a folder");
    fs::create_dir_all(room.path("taken/result.json")).expect("a folder");
    room.bad(&["reproduce", "small.toml", "--out", "file"], &["file: cannot make the folder"]);
    room.bad(&["reproduce", "small.toml", "--out", "file/deeper"], &["file/deeper: cannot make the folder"]);
    room.bad(&["reproduce", "small.toml", "--out", "taken"], &["taken/result.json: cannot be written"]);
    let json = ["fio", "job.fio", "--hpb", "off", "--output-format", "json", "--output"];
    room.bad(&[&json[..], &["folder"]].concat(), &["folder: cannot be written"]);
    room.bad(&[&json[..], &["none/x.json", "--out", "out"]].concat(), &["none/x.json: cannot be written"]);
    let trace = ["fio", "job.fio", "--hpb", "off", "--out", "out", "--trace-io"];
    room.bad(&[&trace[..], &["none/t.json"]].concat(), &["none/t.json: cannot be written"]);
    room.bad(&[&trace[..], &["folder"]].concat(), &["folder: cannot be written"]);
}

#[test]
fn options_that_do_not_go_together() {
    let room = Room::with("small.toml", EXPERIMENT);
    room.write("job.fio", JOB);
    room.bad(
        &["reproduce", "small.toml", "--out", "out", "--trace-io", "t.json"],
        &["--trace-io records one run", "--variant"],
    );
    room.bad(&["fio", "job.fio", "--trace-io", "t.json"], &["--trace-io records one run", "--hpb"]);
    room.bad(
        &["fio", "job.fio", "--output-format", "json"],
        &["one run: choose one policy with --policy, or --hpb off, dcm, hcm"],
    );
    let both = ["fio", "job.fio", "--hpb", "dcm", "--json", "--output-format", "json"];
    room.bad(&both, &["--json prints our own document"]);
    room.bad(&["fio", "job.fio", "--output-format", "xml"], &["'xml'", "possible values: normal, json, json+"]);
    room.bad(&["fio", "job.fio", "--hpb", "on"], &["'on'", "possible values: off, dcm, hcm, prototype-host"]);
}

#[test]
fn documents() {
    let room = Room::new();
    for (document, says) in [
        ("", "malformed result document: EOF while parsing a value"),
        ("not JSON", "malformed result document"),
        ("{}", "not a Readpath result document: there is no `schema` field"),
        ("{\"schema\": 5}", "malformed result document"),
        ("{\"schema\": \"readpath-results/9\"}", "reads `readpath-results/2`; use the version that wrote it"),
        ("{\"schema\": \"readpath-results/1\"}", "missing field `experiment`"),
    ] {
        room.write("bad.json", document);
        room.bad(&["report", "bad.json"], &["readpath: bad.json: ", says]);
    }
    fs::write(room.path("bad.json"), [0xFF, 0]).expect("a file");
    room.bad(&["report", "bad.json"], &["bad.json: cannot be read: "]);
    room.bad(&["report", "none.json"], &["none.json: cannot be read: "]);
}
