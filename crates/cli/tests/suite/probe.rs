// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath device probe` as a user meets it: plans, what fio measured, and what is refused.

use crate::common::{Room, json, rows};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// fio 3.33 on a virtual disk of another machine: what it printed, without what names that machine.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/probe/reads-1.json");

/// A plan for a target that is elsewhere, as the recording was made with.
const PLAN: [&str; 11] =
    ["device", "probe", "plan", "--target", "/data/probe.bin", "--size", "512M", "--seconds", "2", "--out", "p"];

/// A device of 1 GiB that is quickly simulated.
const SMALL: [&str; 6] =
    ["--set", "lu[0].capacity_gib=1", "--set", "geometry.blocks_per_plane=120", "--set", "map_cache.size_kib=176"];

fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [args, more].concat()
}

#[test]
fn a_plan_only_reads_unless_the_target_is_named_twice() {
    let room = Room::new();
    let told = room.good(&PLAN);
    assert!(told.contains("18 jobs in 1 files; 6 of them are held out"), "{told}");
    assert!(told.contains("They only read /data/probe.bin") && told.contains("would show how large the map cache is"));
    assert!(!room.read("p/reads-1.fio").contains("write") && room.read("p/run.sh").contains("fio --readonly"));
    room.bad(&PLAN, &["p/plan.json: already exists; choose another folder"]);

    let destructive = |named| with(&PLAN[..10], &["q", "--long-write", "256M", "--destructive", named]);
    room.bad(
        &destructive("/data/other.bin"),
        &["--destructive names \"/data/other.bin\"", "must be named twice alike"],
    );
    assert!(!room.path("q").exists());
    let told = room.good(&destructive("/data/probe.bin"));
    assert!(told.contains("They WRITE to /data/probe.bin: what it holds is lost."), "{told}");
    assert!(room.read("q/writes-1.fio").contains("rw=write"));
    // To erase and fill a device needs the same leave, and all of the device.
    room.bad(&with(&PLAN[..10], &["r", "--fill"]), &["required arguments were not provided"]);
    room.bad(&with(&destructive("/data/probe.bin"), &["--fill"]), &["to fill a device needs all of it: 512 MiB"]);
    // A length of a long write needs a plan with writes.
    room.bad(&with(&PLAN[..10], &["r", "--long-write", "256M"]), &["required arguments were not provided"]);
}

#[test]
fn a_target_is_looked_at() {
    let room = Room::new();
    room.write("short.bin", "x");
    let target = |name: &str| room.path(name).display().to_string();
    let plan = |target: &str, more: &[&str], says: &[&str]| {
        room.bad(&[&["device", "probe", "plan", "--out", "p", "--target", target], more].concat(), says);
        assert!(!room.path("p").exists());
    };
    plan(
        &target("none.bin"),
        &[],
        &["none.bin: does not exist", "fio --name=fill", "or give --size if it is on another machine"],
    );
    plan(&target("short.bin"), &[], &["short.bin: has 1 bytes; the least range that is measured is 64 MiB"]);
    plan(&target("short.bin"), &["--size", "1G"], &["--size is 1073741824 bytes, but", "has 1; make it larger"]);
    plan(&room.path("").display().to_string(), &[], &["is neither a file nor a disk"]);
    plan("/dev/null", &[], &["/dev/null: is neither a file nor a disk"]);
    plan("short.bin", &["--size", "1"], &["\"short.bin\": is no full path"]);
    plan("/none", &["--size", "1 elephant"], &["--size: "]);
    plan("/none", &["--size", "1G", "--error", "0"], &["--error is 0; expected 0.01 to 50"]);
    let write = |long| ["--size", "512M", "--destructive", "/none", "--long-write", long];
    plan(
        "/none",
        &write("1"),
        &["a long write of 1 bytes has not 12 parts; expected 48 MiB at least, and 480 at most"],
    );
    plan("/none", &write("47M"), &["expected 48 MiB at least"]);
    plan("/none", &write("481M"), &["needs 528 MiB, but 512 can be used", "(480 MiB at most)"]);
}

/// A virtual disk is no UFS device, and the probe says so.
#[test]
fn recorded_measurements_are_read() {
    let room = Room::new();
    room.good(&PLAN);
    let params = ["--params", "firmware.flash_op_us,link.transfer_4k_us", "--ios", "500"];
    let args = with(&["device", "probe", "fit", "--plan", "p", RECORDED], &params);
    let document = room.document(&with(&args, &["--json", "--out", "out"]));
    let probe = &document["configuration"]["probe"];
    assert_eq!(probe["target"], "/data/probe.bin");
    assert!(probe["parameters"].as_array().unwrap().iter().all(|p| p["verdict"] != "identified"), "{probe}");
    let notes = document["notes"].to_string();
    assert!(notes.contains("That is no chance: the model lacks something"), "{notes}");
    assert!(notes.contains("6 of 18 jobs of the plan have no results here"), "{notes}");
    // 12 jobs with four metrics each; three jobs are held out, and latencies are always predicted.
    let rows = rows(&document);
    assert_eq!(rows.len(), 48);
    let of = |origin: &str| rows.iter().filter(|row| row["origin"] == origin).count();
    assert_eq!((of("fit"), of("predicted")), (9, 39));
    let first = &rows[0];
    assert_eq!((first["case"].as_str(), first["variant"].as_str()), (Some("384 MiB, queue depth 1"), Some("fitted")));
    // fio: bw_bytes of the first job.
    assert!((first["published"].as_f64().unwrap() - 76_317_425.0 / 1_048_576.0).abs() < 1e-9, "{first}");

    let page = room.read("out/report.html");
    assert!(page.contains("Jobs that the fit did not see"));
    assert!(room.read("out/fitted.toml").starts_with("# A device fitted to measurements with readpath device probe."));
    room.good(&["device", "check", "out/fitted.toml"]);
    // The errors of these parameters are small; it is the model that misses, and no other job mends that.
    assert!(!room.path("out/next").exists());
}

#[test]
fn wrong_results_name_file_and_place() {
    let room = Room::new();
    room.good(&PLAN);
    let recorded = fs::read_to_string(RECORDED).unwrap();
    let bad = |from: &str, to: &str, says: &[&str]| {
        assert!(recorded.contains(from), "{from}");
        room.write("r.json", &recorded.replacen(from, to, 1));
        room.bad(&["device", "probe", "fit", "--plan", "p", "r.json"], says);
    };
    bad("fio-3.33", "fio-2.2.10", &["r.json: fio version: is \"fio-2.2.10\"; expected fio-3"]);
    bad("\"error\":0", "\"error\":22", &["r.json: jobs[0] (randread-384m-q1-4k): failed with error 22"]);
    bad("\"bins\"", "\"bin\"", &["r.json: jobs[0] (randread-384m-q1-4k).read.clat_ns: has no \"bins\"", "json+"]);
    bad(
        "\"iodepth\":\"4\"",
        "\"iodepth\":\"8\"",
        &["jobs[1] (randread-384m-q4-4k).job options: iodepth is \"8\"; expected \"4\""],
    );
    // Shares of a rate and times of requests that no device has.
    bad("\"iops_stddev\":", "\"iops_stddev\":1e16,\"was\":", &["read.iops_stddev: is 1e+16; expected a number from 0"]);
    bad("\"iops_stddev\":", "\"iops_stddev\":-1,\"was\":", &["read.iops_stddev: is -1; expected a number from 0"]);
    bad("\"iops_stddev\":", "\"iops_stddev\":\"nan\",\"was\":", &["read.iops_stddev: is \"nan\"; expected a number"]);
    let whole = |text: &str, says: &[&str]| {
        room.write("r.json", text);
        room.bad(&["device", "probe", "fit", "--plan", "p", "r.json"], says);
    };
    let expected = "expected what fio --output-format=json+ --output=FILE writes, an object with \"fio version\"";
    whole("3\n", &["r.json: is 3; ", expected]);
    whole("[\n{}\n]\n", &["r.json: is a list; ", expected]);
    whole("{}\n", &["r.json: has no \"fio version\"; ", expected]);
    whole("\u{feff}{}\n", &["r.json: has no \"fio version\"; ", expected]);
    fs::create_dir(room.path("q")).expect("a folder");
    for (text, says) in [("3", "integer `3`"), ("{\"jobs\": []}", "`schema`"), ("[1]", "a job"), ("x", "")] {
        room.write("q/plan.json", text);
        let message = room.bad(
            &["device", "probe", "fit", "--plan", "q", RECORDED],
            &[
                "q/plan.json: is no plan of a probe: ",
                "; expected the plan.json that 'readpath device probe plan' writes",
            ],
        );
        assert!(!message.contains("Kept") && (text == "[1]" || message.contains(says)), "{message}");
    }
    room.bad(&["device", "probe", "fit", "--plan", "p", RECORDED, RECORDED], &["which another file has too"]);
    room.bad(&["device", "probe", "fit", "--plan", "nowhere", RECORDED], &["nowhere/plan.json: cannot be read"]);
    let params = ["device", "probe", "fit", "--plan", "p", RECORDED, "--params", "flash.red_us"];
    room.bad(&params, &["\"flash.red_us\" cannot be fitted"]);
}

/// The jobs of a plan, run on a modelled device that the plan does not know.
#[test]
fn a_simulated_device_is_found_again() {
    let room = Room::new();
    let plan = with(
        &["device", "probe", "plan", "--target", "/dev/sda", "--size", "1G", "--seconds", "1", "--out", "p"],
        &["--destructive", "/dev/sda", "--long-write", "192M"],
    );
    room.good(&with(&plan, &SMALL));
    let hidden = ["--set", "flash.read_us=61", "--set", "flash.program_us=590", "--set", "firmware.flash_op_us=11.2"];
    let mut fit = vec!["device", "probe", "fit", "--plan", "p", "--ios", "1000", "--json"];
    fit.extend(["--params", "firmware.flash_op_us,flash.read_us,flash.program_us"]);
    let results = ["reads-1", "writes-1", "writes-2", "writes-3", "writes-4", "writes-5", "writes-6"];
    let results = results.map(|name| (format!("p/{name}.fio"), format!("{name}.json")));
    for (job, result) in &results {
        let run =
            ["fio", job, "--hpb", "off", "--output-format", "json+", "--output", result, "--device", "p/device.toml"];
        // Notes of ignored options are on standard error.
        assert!(room.output(&with(&run, &hidden)).status.success(), "{job}");
        fit.push(result);
    }
    let document = room.document(&fit);
    let parameters = &document["configuration"]["probe"]["parameters"];
    for (i, truth) in [11.2, 61.0, 590.0].into_iter().enumerate() {
        let p = &parameters[i];
        assert_eq!(p["verdict"], "identified", "{p}");
        let [low, high] = ["low", "high"].map(|end| p[end].as_f64().unwrap());
        assert!(low < truth && truth < high, "{truth}: {p}");
    }
    let held_out = document["configuration"]["probe"]["held_out_rms_percent"].as_f64().unwrap();
    assert!(held_out < 2.0, "{held_out}");
}

/// A drive that is full lends its cache little. A fit that took the target for all that is on it would find a cache of
/// half the size.
#[test]
fn a_dynamic_cache_is_as_large_as_a_full_drive_leaves_it() {
    let room = Room::new();
    let plan = with(
        &["device", "probe", "plan", "--target", "/dev/sda", "--size", "1G", "--seconds", "1", "--out", "p"],
        &["--destructive", "/dev/sda", "--long-write", "384M", "--set", "slc_cache.dynamic_mib=192"],
    );
    let modes = ["bits_per_cell=3", "read_us=20", "program_us=75", "erase_us=3500", "life_erases=30000"];
    let modes = modes.map(|key| format!("slc.{key}"));
    let modes: Vec<&str> = modes.iter().flat_map(|key| ["--set", key]).collect();
    let full = ["--set", "lu[0].capacity_gib=1", "--set", "geometry.blocks_per_plane=52"];
    room.good(&[&plan[..], &modes, &full, &SMALL[4..]].concat());
    assert!(room.read("p/plan.json").contains("\"filled_mib\": 1024"));
    let run = ["fio", "p/writes-1.fio", "--hpb", "off", "--output-format", "json+", "--output", "w.json"];
    assert!(room.output(&with(&run, &["--device", "p/device.toml"])).status.success());
    let fit = ["device", "probe", "fit", "--plan", "p", "w.json", "--params", "slc_cache.dynamic_mib", "--json"];
    let errors = |room: &Room| {
        let document = room.document(&fit);
        let probe = &document["configuration"]["probe"];
        (probe["parameters"][0].clone(), probe["fitted_rms_percent"].as_f64().unwrap())
    };
    let (parameter, error) = errors(&room);
    assert!(error < 3.0, "{error}: {parameter}");
    assert_eq!(parameter["verdict"], "not identified", "{parameter}: a full drive does not show its size");
    // As if nothing but the range of the write held data.
    let plan = room.read("p/plan.json").replace("\"filled_mib\": 1024", "\"filled_mib\": 384");
    room.write("p/plan.json", &plan);
    let (parameter, error) = errors(&room);
    assert!(error > 10.0, "{error}: {parameter}");
    room.write("p/plan.json", &plan.replace("384,", "1025,"));
    room.bad(&fit, &["p/plan.json: filled_mib is 1025, but the logical unit of 'ufs21-64g' has 1024"]);
}

/// Results of jobs with many outstanding requests leave open how long a read of flash takes. The jobs that are then
/// proposed are written like those of a plan, and tell it. What is held out tells the fit nothing.
#[test]
fn the_jobs_to_run_next_are_written_and_tell_more() {
    let room = Room::new();
    let plan = ["device", "probe", "plan", "--target", "/dev/sda", "--size", "1G", "--seconds", "1", "--out", "p"];
    room.good(&with(&plan, &SMALL));
    let run = |job: &str, result: &str| {
        let args = ["fio", job, "--hpb", "off", "--output-format", "json+", "--output", result];
        let device = ["--device", "p/device.toml", "--set", "flash.read_us=61", "--set", "firmware.flash_op_us=11.2"];
        assert!(room.output(&with(&args, &device)).status.success(), "{job}");
    };
    run("p/reads-1.fio", "all.json");
    let mut deep = json(&room.read("all.json"));
    let name = |job: &Value| job["jobname"].as_str().expect("a name").to_owned();
    deep["jobs"].as_array_mut().expect("jobs").retain(|job| name(job).contains("-q31-4k"));
    room.write("deep.json", &deep.to_string());
    let params = ["--ios", "1000", "--params", "firmware.flash_op_us,flash.read_us"];
    let fit = |plan: &str, results: &[&str], more: &[&str]| {
        room.good(&[&["device", "probe", "fit", "--plan", plan], results, &params, more].concat())
    };
    let shown = fit("p", &["deep.json"], &["--out", "out"]);
    assert!(shown.contains("Jobs to run next: out/next/run.sh\n"), "{shown}");
    assert!(shown.contains("rms error of throughput, held out: "), "{shown}");
    let first = json(&room.read("out/result.json"));
    let verdicts = |document: &Value| {
        let parameters = document["configuration"]["probe"]["parameters"].as_array().expect("parameters").clone();
        parameters.iter().map(|p| p["verdict"].as_str().expect("a verdict").to_owned()).collect::<Vec<_>>()
    };
    assert_ne!(verdicts(&first)[1], "identified", "{first}");

    // The plan has all jobs, and its script the new ones.
    let jobs = |file: &str| json(&room.read(file))["jobs"].as_array().expect("jobs").clone();
    let (before, after) = (jobs("p/plan.json"), jobs("out/next/plan.json"));
    let new: Vec<&str> = after[before.len()..].iter().map(|job| job["name"].as_str().expect("a name")).collect();
    assert!(after.starts_with(&before) && !new.is_empty());
    let text = room.read("out/next/reads-1.fio");
    assert_eq!(text.matches("stonewall").count(), new.len(), "{text}");
    assert!(new.iter().all(|name| text.contains(&format!("[{name}]"))), "{new:?} {text}");
    assert!(
        room.read("out/next/run.sh").contains("fio --readonly --output-format=json+ --output=part.json reads-1.fio")
    );
    let mode = fs::metadata(room.path("out/next/run.sh")).expect("a script").permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    assert_eq!(room.read("out/next/device.toml"), room.read("p/device.toml"));
    let again = ["device", "probe", "fit", "--plan", "p", "deep.json", "--out", "out"];
    room.bad(&again, &["out/next/plan.json: already exists; choose another folder"]);

    // Their results identify the remaining parameters.
    run("out/next/reads-1.fio", "next.json");
    let then = json(&fit("out/next", &["deep.json", "next.json"], &["--json"]));
    assert_eq!(verdicts(&then), ["identified", "identified"], "{}", then["configuration"]["probe"]);

    // Other results of the held-out jobs leave the fit unchanged, and make the error of the prediction larger.
    let held_out: Vec<&Value> = before.iter().filter(|job| job["held_out"] == true).map(|job| &job["name"]).collect();
    let mut spoilt = 0;
    for job in deep["jobs"].as_array_mut().expect("jobs").iter_mut().filter(|job| held_out.contains(&&job["jobname"])) {
        for key in ["io_bytes", "bw_bytes"] {
            job["read"][key] = (job["read"][key].as_u64().expect("bytes") / 2).into();
        }
        spoilt += 1;
    }
    assert!(spoilt > 0, "{held_out:?}");
    room.write("deep.json", &deep.to_string());
    let other = json(&fit("p", &["deep.json"], &["--json"]));
    let [first, other] = [first, other].map(|document| document["configuration"]["probe"].clone());
    assert_eq!(first["parameters"], other["parameters"]);
    assert_eq!(first["fitted_rms_percent"], other["fitted_rms_percent"]);
    let error = |probe: &Value| probe["held_out_rms_percent"].as_f64().expect("an error");
    assert!(error(&first) < 5.0 && error(&other) > 90.0, "{} {}", error(&first), error(&other));
}
