// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath fio` as a user of fio meets it: where output goes, what is said about a job that runs otherwise than it
//! reads, and mistakes that would leave a result without figures.

use crate::common::{JOB, Room, figure, text, value};
use serde_json::Value;

#[test]
fn output_goes_to_a_file_in_every_format() {
    let room = Room::with("job.fio", JOB);
    // Times and memory of the process differ from run to run.
    let table = |shown: &str| shown.split("requests simulated").next().map(str::to_owned);
    let args = ["fio", "job.fio", "--output", "table.txt"];
    let shown = room.good(&args[..2]);
    assert_eq!(room.good(&args), "");
    assert!(shown.contains("read IOPS") && shown.contains("HPB dcm"), "{shown}");
    assert_eq!(table(&room.read("table.txt")), table(&shown));
    assert_eq!(room.good(&["fio", "job.fio", "--json", "--output", "own.json"]), "");
    assert!(room.read("own.json").starts_with("{\n  \"schema\": \"readpath-results/2\""));
    for format in ["json", "json+"] {
        let to = ["fio", "job.fio", "--hpb", "off", "--output-format", format, "--output", "fio.json"];
        assert_eq!(room.good(&to), "");
        assert_eq!(room.read("fio.json"), room.good(&to[..6]));
    }
    room.bad(&["fio", "job.fio", "--output", "none/x.txt"], &["none/x.txt", "cannot"]);
    room.bad(&["fio", "job.fio", "--output-format", "terse"], &["'terse'", "possible values: normal, json, json+"]);
}

/// The same job as a file and as options gives the same figures.
#[test]
fn a_job_is_typed_as_options_of_fio() {
    let room =
        Room::with("a.fio", "[a]\nrw=randread\nbs=4k\nsize=64m\nio_size=4m\niodepth=4\nioengine=libaio\ndirect=1\n");
    let options = "--name=a --rw=randread --bs 4k --size=64m --io_size=4m --iodepth=4 --ioengine=libaio --direct=1";
    let typed: Vec<&str> = ["fio", "--json", "--"].into_iter().chain(options.split(' ')).collect();
    assert_eq!(room.json(&typed)["rows"], room.json(&["fio", "--json", "a.fio"])["rows"]);
    room.bad(&["fio"], &["<FIO OPTIONS>", "required"]);
    room.bad(&["fio", "a.fio", "--", "--name=a"], &["the job file has its own"]);
    room.bad(&["fio", "--", "--rw=read"], &["--name=NAME is missing"]);
    room.bad(&["fio", "--", "--name=a", "--rx=read"], &["readpath: --rx=read: \"rx\" is not an option of fio"]);
    // Options beside a file are defaults: what the file says counts more.
    let ios = |file: &str, options: &[&str]| {
        let shown = room.json(&[&["fio", "--hpb=off", "--output-format=json", file, "--"], options].concat());
        shown["jobs"][0]["read"]["total_ios"].as_u64()
    };
    assert_eq!(ios("a.fio", &["--io_size=8m", "-bs=8k"]), Some(1024));
    room.write("b.fio", "[a]\nrw=randread\nfilename=/dev/sda\nioengine=libaio\ndirect=1\n");
    assert_eq!(ios("b.fio", &["-io_size=8m", "-bs", "8k", "--eta=never"]), Some(1024));
}

/// `${NAME}` is a variable of the environment, in a file and in options, and an input of the result.
#[test]
fn variables_come_from_the_environment() {
    let room = Room::with("a.fio", "[a]\nrw=randread\nsize=${SIZE}\ndirect=1\n");
    let mut command = room.command(&["fio", "a.fio", "--hpb", "off", "--json", "--dry-run"]);
    let plan: Value = serde_json::from_slice(&command.env("SIZE", "1m").output().unwrap().stdout).unwrap();
    assert!(plan.to_string().contains("256"), "{plan}");
    let mut command = room.command(&["fio", "a.fio", "--hpb", "off", "--json"]);
    let doc: Value = serde_json::from_slice(&command.env("SIZE", "1m").output().unwrap().stdout).unwrap();
    assert!(doc["inputs"].to_string().contains("${SIZE}"), "{}", doc["inputs"]);
    let output = room.command(&["fio", "a.fio"]).env_remove("SIZE").output().unwrap();
    let message = "readpath: a.fio:3: the environment has no variable SIZE; give it before the command: SIZE=VALUE\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), message));
}

/// Reads of what was written are requests of the job too, and `exitall` ends a job that would go on.
#[test]
fn jobs_read_back_and_end_together() {
    let job = "[a]\nrw=randwrite\nsize=1m\ndirect=1\nioengine=libaio\niodepth=4\nverify=crc32c\n";
    let room = Room::with("verify.fio", job);
    let of = |file: &str| -> Value {
        let shown = room.output(&["fio", file, "--hpb", "off", "--output-format", "json"]);
        serde_json::from_slice(&shown.stdout).unwrap_or_else(|e| panic!("{file}: {e}: {}", text(&shown.stderr)))
    };
    let ios = |shown: &Value, job: usize, kind: &str| shown["jobs"][job][kind]["total_ios"].as_u64().expect("a number");
    let verified = of("verify.fio");
    assert_eq!(["read", "write"].map(|kind| ios(&verified, 0, kind)), [256; 2]);
    let both = "[global]\ndirect=1\nexitall\nrw=randread\n[short]\nsize=1m\n[long]\nsize=1g\nrate_iops=1000\n";
    room.write("both.fio", both);
    let shown = of("both.fio");
    let ended = [0, 1].map(|job| ios(&shown, job, "read"));
    assert!(ended[0] == 256 && (10..100).contains(&ended[1]), "{ended:?}");
    // The mean rate of a Poisson process is that of an even one.
    let rate = "[a]\ndirect=1\nrw=randread\nsize=1g\nrate_iops=1000\nruntime=4\ntime_based\nrate_process=poisson\n";
    room.write("rate.fio", rate);
    let made = ios(&of("rate.fio"), 0, "read");
    assert!((3_700..4_300).contains(&made) && made != 4_000, "{made}");
}

/// `percentile_list` adds rows and columns, and takes the place of fio's own list in its JSON.
#[test]
fn percentiles_are_those_asked_for() {
    let job = "[a]\nrw=randread\nsize=64m\nio_size=8m\ndirect=1\npercentile_list=99.99:25:99\n";
    let room = Room::with("job.fio", job);
    let shown = room.good(&["fio", "job.fio", "--hpb", "off"]);
    assert!(shown.contains("read p25") && shown.contains("read p99.99"), "{shown}");
    let doc = room.json(&["fio", "job.fio", "--hpb", "off", "--json"]);
    let at = |name: &str| value(&doc, "HPB off", name);
    let rising = ["read_latency_p25", "read_latency_p50", "read_latency_p99", "read_latency_p99_99"].map(at);
    assert!(rising.is_sorted() && rising[0] < rising[3], "{rising:?}");
    let fio = room.json(&["fio", "job.fio", "--hpb", "off", "--output-format", "json"]);
    let list = fio["jobs"][0]["read"]["clat_ns"]["percentile"].as_object().unwrap();
    assert_eq!(list.keys().collect::<Vec<_>>(), ["25.000000", "99.000000", "99.990000"]);
    for (wrong, says) in [("0", "\"0\" must be a number above 0"), ("99:x", "\"x\" must be a number above 0")] {
        room.write("wrong.fio", &job.replace("99.99:25:99", wrong));
        room.bad(&["fio", "wrong.fio"], &["wrong.fio:6: percentile_list: ", says]);
    }
}

/// A device without HPB has nothing to choose.
#[test]
fn fios_json_of_a_device_without_hpb() {
    let room = Room::with("job.fio", JOB);
    let args = ["fio", "job.fio", "--output-format", "json+", "--device", "nvme-dramless-1t"];
    let shown = room.good(&args);
    assert_eq!(shown, room.good(&[&args[..], &["--hpb", "off"]].concat()));
    room.bad(&[&args[..], &["--hpb", "off,dcm"]].concat(), &["fio's JSON holds one run"]);
    room.bad(&args[..4], &["fio's JSON holds one run"]);
    room.good(&[&args[..4], &["--set", "lu[0].hpb=false"]].concat());
}

#[test]
fn a_capped_depth_is_told_in_every_format() {
    let room = Room::with("job.fio", "[a]\nrw=randread\nsize=1m\ndirect=1\niodepth=8\n");
    let note = "Note: job.fio:5: iodepth=8 counts as 1, as in fio";
    assert!(room.good(&["fio", "job.fio"]).contains(note));
    let output = room.output(&["fio", "job.fio", "--hpb", "off", "--output-format", "json"]);
    assert!(output.status.success() && text(&output.stderr).starts_with(note), "{}", text(&output.stderr));
    // fio reports the depth as typed, and where the requests were.
    let shown = text(&output.stdout);
    assert!(shown.contains("\"latency_depth\" : 8") && shown.contains("\"1\" : 100.000000"), "{shown}");
}

#[test]
fn a_ramp_without_anything_behind_it_leaves_no_result() {
    let room = Room::with("job.fio", "[late]\nrw=randread\nsize=1m\ndirect=1\nramp_time=10\n");
    let says = ["job 'late'", "ramp_time (10.000 s) ends after the job's work"];
    room.bad(&["fio", "job.fio", "--out", "out", "--output", "table.txt"], &says);
    room.bad(&["fio", "job.fio", "--hpb", "off", "--output-format", "json", "--output", "fio.json"], &says);
}

/// Both ways of updating the prototype's host, with their own counters; what belongs to the standard is refused.
#[test]
fn the_prototype_of_hpb_in_both_ways() {
    let room = Room::with("job.fio", "[a]\nrw=randrw\nrwmixread=90\nsize=64m\nnumber_ios=4000\ndirect=1\n");
    let document = room.json(&["fio", "job.fio", "--hpb", "prototype-host,prototype-device", "--json"]);
    let value = |variant: &str, metric: &str| value(&document, variant, metric);
    for (variant, update) in [("HPB prototype (host)", "host"), ("HPB prototype (device)", "device")] {
        let keys = &document["configuration"]["device_by_variant"][variant]["hpb"]["prototype"];
        assert_eq!(keys["update"], update, "{}", document["configuration"]);
        assert!(value(variant, "hit_cnt") > 100.0 && value(variant, "map_req_cnt") >= 4.0);
        assert_eq!((value(variant, "hpb_foreign"), value(variant, "hpb_forged")), (0.0, 0.0));
    }
    assert!(value("HPB prototype (host)", "dirty_groups_named") > 100.0);
    assert_eq!(value("HPB prototype (host)", "entries_piggybacked"), 0.0);
    let brought = value("HPB prototype (device)", "entries_piggybacked");
    assert!(brought > 100.0 && brought == value("HPB prototype (device)", "pair_cnt"), "{brought}");
    room.bad(
        &["compare", "job.fio", "--vary", "a:hpb=prototype-host,strict_linux=true"],
        &["strict_linux: belongs to HPB of JESD220-3"],
    );
    room.bad(
        &["fio", "job.fio", "--hpb", "prototype-host", "--set", "hpb.entries.protection=encrypted"],
        &["hpb.entries.protection: is \"encrypted\", but entries of the prototype are plain addresses"],
    );
}

#[test]
fn events_happen_in_a_job() {
    let room = Room::with("job.fio", "[a]\nrw=randread\nsize=16m\nthinktime=1ms\ntime_based=1\nruntime=50ms\n");
    room.write("events", "10,suspend\n20,resume\n30,hardware-reset\n");
    let job = |events| ["fio", "job.fio", "--hpb", "dcm", "--events", events, "--json"];
    let shown = room.good(&job("events"));
    assert!(shown.contains("job: after event 3 (hardware-reset at 30 ms)"), "{shown}");
    room.write("pressure", "10,suspend\n20,resume\n30,pressure,1M\n");
    room.bad(&job("pressure"), &["--events: the host of variant 'HPB dcm' never gives memory back"]);
    let prototype = ["fio", "job.fio", "--hpb", "prototype-host,prototype-device", "--events", "pressure"];
    room.bad(&prototype, &["'HPB prototype (host)' is the prototype's, which knows no pressure"]);
    let lru = ["fio", "job.fio", "--policy", "lru", "--host-memory", "4M", "--events", "pressure", "--json"];
    let shown = room.good(&lru);
    assert!(shown.contains("job: after event 3 (pressure 1048576 bytes at 30 ms)"), "{shown}");
    room.write("before", "20,suspend\n10,resume\n");
    room.bad(&job("before"), &["before: line 2: 10 ms is before the line above"]);
}

/// Policies of the host's memory, for jobs, iozone and power cuts as for traces.
#[test]
fn policies_have_memory_and_hold_to_it() {
    let room = Room::with("job.fio", "[a]\nrw=randrw\nsize=256m\nio_size=16m\ndirect=1\nioengine=libaio\niodepth=4\n");
    let iozone = ["-r", "4k", "-i2", "-ecI", "-t", "1", "-s", "64m"];
    let choice = ["--policy", "linux-dcm,lru", "--host-memory"];
    let job = |memory| [&["fio", "job.fio"][..], &choice, &[memory, "--json"]].concat();
    let suite = |memory| [&["iozone"][..], &choice, &[memory, "--json", "--"], &iozone].concat();
    for args in [job("300K"), suite("300K")] {
        let document = room.json(&args);
        let rows = document["rows"].as_array().expect("rows");
        let of = |metric| rows.iter().filter(move |row| row["metric"] == metric);
        let memory: Vec<f64> = of("host_memory").filter_map(|row| row["simulated"].as_f64()).collect();
        assert!(memory.len() == 2 && memory.iter().all(|&bytes| bytes > 0.0 && bytes <= 300.0 * 1024.0), "{memory:?}");
        assert!(of("hit_cnt").all(|row| row["simulated"].as_f64() > Some(0.0)), "{args:?}");
    }
    for args in [job("4K"), suite("4K"), [&["power", "job.fio"][..], &choice, &["4K"]].concat()] {
        room.bad(&args, &[", linux-dcm: ", "memory of 4096 bytes is too little for HPB", " take "]);
    }
    for loses in ["everything", "device"] {
        let args = [&["power", "job.fio", "--cuts", "4", "--loses", loses, "--json"][..], &choice, &["300K"]].concat();
        let document = room.json(&args);
        for variant in ["linux-dcm", "lru"] {
            let of = |metric: &str| figure(&document, &[("variant", variant), ("metric", metric)]);
            let memory = of("host_memory").expect("bytes");
            assert!(memory > 200.0 * 1024.0 && memory <= 300.0 * 1024.0, "{loses}, {variant}: {memory}");
            assert!(of("hpb_hit_ratio") > Some(5.0) && of("map_req_cnt") > Some(10.0), "{loses}, {variant}");
            // The host uses HPB again when the power is back.
            assert!(of("hit_cnt_after_cuts") > Some(10.0), "{loses}, {variant}");
            assert!(of("hit_cnt") > of("hit_cnt_after_cuts"), "{loses}, {variant}: hosts before the last cut count");
        }
    }
    let off = ["power", "job.fio", "--policy", "lru", "--cuts", "2", "--set", "hpb.v2.single_kib=16"];
    let off = room.good(&[&off[..], &["--set", "hpb.v2.enabled=false"]].concat());
    assert!(off.contains("Note: 'lru' ran WITHOUT HPB: the device has it switched off"), "{off}");
    room.bad(&["fio", "job.fio", "--policy", "lur"], &["--policy: policy: is \"lur\"; expected \"linux-dcm\""]);
    room.bad(&["fio", "job.fio", "--host-memory", "lots"], &["--host-memory: \"lots\" is not a size"]);
    room.bad(&["power", "job.fio", "--hpb", "off", "--host-memory", "1M"], &["--hpb off does not use"]);
    room.bad(
        &["fio", "job.fio", "--policy", "lru,exclusive", "--output-format", "json"],
        &["choose one policy with --policy"],
    );
    let one = ["fio", "job.fio", "--policy", "lru", "--output-format", "json"];
    assert!(text(&room.output(&one).stdout).contains("\"fio version\""));
}

/// Memory that one variant cannot have is found before another has run: this job's runs fail in another way.
#[test]
fn memory_is_looked_at_before_anything_runs() {
    let room = Room::with("job.fio", "[a]\nrw=randread\nsize=64m\nramp_time=1000s\nnumber_ios=10\n");
    room.write("run.toml", &experiment("job.fio"));
    room.write("pressure", "5,pressure,120K\n");
    let little = ["memory of 204800 bytes is too little for HPB", "tables and the map of a region take 259584"];
    let memory = ["--hpb", "off,dcm,hcm", "--host-memory", "200K"];
    room.bad(&["fio", "job.fio", "--hpb", "off"], &["ramp_time (1000.000 s) ends after the job's work"]);
    room.bad(&[&["fio", "job.fio"][..], &memory].concat(), &[&["job, HPB hcm: "][..], &little].concat());
    let vary = ["--vary", "off:hpb=off", "--vary", "hcm:hpb=hcm,memory=200K"];
    room.bad(&[&["compare", "job.fio"][..], &vary].concat(), &[&["job, hcm: "][..], &little].concat());
    room.bad(&["reproduce", "run.toml"], &[&["x, small: "][..], &little].concat());
    room.write("job.fio", "[a]\nrw=randread\nsize=64m\n");
    room.bad(&[&["power", "job.fio"][..], &memory].concat(), &[&["job, HPB hcm: "][..], &little].concat());
    // The replay of a trace fails with the same message.
    room.write("t.csv", "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n");
    room.bad(
        &[&["replay", "t.csv"][..], &memory].concat(),
        &[&["--host-memory: t.csv, HPB hcm: "][..], &little].concat(),
    );
    room.bad(&[&["compare", "t.csv"][..], &vary].concat(), &[&["t.csv, hcm: "][..], &little].concat());
    let tables = ["exclusive: event 1 (pressure 122880 bytes at 5 ms): ", "tables alone take 138704"];
    room.write("job.fio", "[a]\nrw=randread\nsize=64m\nramp_time=1000s\nnumber_ios=10\n");
    room.bad(&["fio", "job.fio", "--policy", "lru,exclusive", "--events", "pressure"], &tables);
    room.bad(&["replay", "t.csv", "--policy", "lru,exclusive", "--events", "pressure"], &tables);
    room.write("limits", "5,120K\n");
    let limits = ["replay", "t.csv", "--policy", "lru,exclusive", "--host-memory", "1M", "--pressure", "limits"];
    room.bad(&limits, &["--pressure limits: t.csv, exclusive: limit 1 of host memory", tables[1]]);
}

/// An experiment of a job, whose second variant has too little memory.
fn experiment(job: &str) -> String {
    let head = "schema = \"readpath-experiment/1\"\nname = \"x\"\ntitle = \"x\"\ndescription = \"\"\ncitations = []\n";
    let runs = "device = \"ufs21-64g\"\nseed = 1\n[precondition]\nlayout = \"sequential\"\nrange = \"files\"\n";
    let work = format!("[workload]\nkind = \"fio\"\ncase = \"x\"\njob = \"{job}\"\n");
    let off = "[[variant]]\nname = \"off\"\nhpb = false\n";
    let small = "[[variant]]\nname = \"small\"\nhpb = true\nmode = \"host\"\nmemory = 204800\n";
    [head, runs, &work, off, small].concat()
}

/// What the device does by itself, and the faults that it meets, are reported, also where nothing is written.
#[test]
fn disturbed_data_and_bad_blocks_are_told() {
    let room = Room::with("read.fio", "[a]\nrw=randread\nsize=512m\niodepth=16\nioengine=libaio\nio_size=256m\n");
    let refreshed = |limit: &str| {
        let limit = format!("ftl.read_disturb_limit={limit}");
        room.good(&["fio", "read.fio", "--hpb", "off", "--set", &limit, "--json"]).contains("\"superblocks_refreshed\"")
    };
    assert!(refreshed("1") && !refreshed("0"));
    room.write("write.fio", "[a]\nrw=randwrite\nsize=64m\niodepth=16\nioengine=libaio\nio_size=256m\n");
    let shown = |ppm: &str| {
        let ppm = format!("faults.program_failures_ppm={ppm}");
        room.good(&["fio", "write.fio", "--hpb", "off", "--set", &ppm, "--json"])
    };
    let (some, none) = (shown("200"), shown("0"));
    for metric in ["\"program_failures\"", "\"bad_blocks\""] {
        assert!(some.contains(metric) && !none.contains(metric), "{metric}");
    }
}
