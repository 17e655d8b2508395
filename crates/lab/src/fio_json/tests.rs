// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the shape of fio's JSON against a golden file, and its figures and names against what fio prints.

use super::*;
use readpath_workload::fio;
use serde_json::Value;
use std::path::Path;

const JOBS: &str = "[global]\nsize=1m\nbs=4k\ntime_based\nruntime=1\nioengine=libaio\niodepth=8\n\
                    [mix \"a\"]\nrw=randrw\nnumjobs=2\ngroup_reporting\nnew_group\ndescription=reads and writes\n\
                    [w]\nstonewall\ngroup_reporting=0\nrw=write\nfsync=4\niodepth=1\n";

fn workload() -> Workload {
    workload_of(JOBS)
}

fn workload_of(text: &str) -> Workload {
    let no_files = |_: &Path| Err(io::ErrorKind::NotFound.into());
    let context = fio::Context { unit_blocks: &[1 << 16], zones: &[], seed: 1, options: &[], defaults: "" };
    fio::parse("t.fio", text, &no_files, &context).unwrap()
}

/// Results with a latency on each side of every border of the classes.
fn results(workload: &Workload) -> Vec<PhaseStats> {
    let mut start = Ns::from_ms(3);
    let mut all = Vec::new();
    for phase in &workload.phases {
        let mut jobs = Vec::new();
        for (i, job) in phase.jobs.iter().enumerate() {
            let mut stats = JobStats {
                name: job.name.clone(),
                group: job.group,
                start,
                end: start + Ns::from_ms(500 + 250 * i as u64) + Ns(1),
                kinds: Default::default(),
            };
            for n in 1..=100 * (i as u64 + 1) {
                stats.kinds[(n % 2) as usize].record(1 + i as u32, Ns(n * n * 1_000));
            }
            if job.name == "w" {
                stats.kinds[0] = KindStats::default();
                stats.kinds[3].record(0, Ns(5_000_000));
            }
            jobs.push(stats);
        }
        let end = jobs.iter().map(|j| j.end).max().unwrap();
        all.push(PhaseStats { name: phase.name.clone(), start, end, jobs, ios: 0 });
        start = end;
    }
    all
}

/// Set to write the file anew when the format is meant to change.
const GOLDEN: &str = include_str!("../../tests/golden/fio.json");

#[test]
fn the_document_is_the_golden_one() {
    let workload = workload();
    let text = fio_json(&workload, &results(&workload), false);
    if std::env::var_os("READPATH_BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/fio.json"), &text).unwrap();
        return;
    }
    assert_eq!(text, GOLDEN);
}

fn parsed(bins: bool) -> Value {
    let workload = workload();
    serde_json::from_str(&fio_json(&workload, &results(&workload), bins)).unwrap()
}

#[test]
fn groups_are_one_entry_and_rates_are_over_the_longest_job() {
    let all = parsed(false);
    let jobs = all["jobs"].as_array().unwrap();
    let names: Vec<_> = jobs.iter().map(|j| (j["jobname"].as_str().unwrap(), j["groupid"].as_u64().unwrap())).collect();
    assert_eq!(names, [("mix \"a\"", 0), ("w", 1)]);
    let read = &jobs[0]["read"];
    assert_eq!((&read["total_ios"], &read["io_bytes"]), (&150.into(), &((50 + 100 * 2) * 4096).into()));
    // A nanosecond is not over yet; job_runtime adds milliseconds that are over.
    assert_eq!((&read["runtime"], &jobs[0]["job_runtime"]), (&750.into(), &1250.into()));
    assert_eq!(read["bw_bytes"], 250u64 * 4096 * 1000 / 750);
    assert_eq!(read["bw"], read["bw_bytes"].as_u64().unwrap() / 1024);
    assert_eq!(read["iops"].as_f64(), Some(150.0 * 1000.0 / 750.0));
    assert_eq!(jobs[0]["trim"]["runtime"], 0, "no trims, no time");
    assert_eq!(jobs[1]["sync"]["lat_ns"]["mean"], 5e6);
    // Both entries are printed at the end: 751 ms and 501 ms after the start.
    assert!(jobs.iter().all(|j| j["elapsed"] == 2));
    assert_eq!((jobs[0]["desc"].as_str(), jobs[1].get("desc")), (Some("reads and writes"), None));
}

#[test]
fn rates_come_from_begun_milliseconds() {
    let workload = workload();
    let mut results = results(&workload);
    results.truncate(1);
    results[0].jobs.iter_mut().for_each(|job| job.end = job.start + Ns::from_us(1_001));
    let all: Value = serde_json::from_str(&fio_json(&workload, &results, false)).unwrap();
    let read = &all["jobs"][0]["read"];
    assert_eq!((&read["runtime"], &read["iops"]), (&2.into(), &75_000.0.into()));
    assert_eq!(read["bw_bytes"], 250 * 4096 * 1000 / 2);
}

#[test]
fn clones_are_entries_of_one_name_in_fios_order() {
    let text = "[a]\nsize=1m\nnumjobs=3\n[b]\nsize=1m\nstonewall\n";
    let workload = workload_of(text);
    let all: Value = serde_json::from_str(&fio_json(&workload, &results(&workload), false)).unwrap();
    let entry = |j: &Value| (j["jobname"].clone(), j["groupid"].clone(), j["write"]["total_ios"].clone());
    let entries: Vec<_> = all["jobs"].as_array().unwrap().iter().map(entry).collect();
    let wanted = [("a", 0, 50), ("a", 0, 150), ("a", 0, 100), ("b", 1, 50)];
    assert_eq!(entries, wanted.map(|(name, group, ios)| (name.into(), group.into(), ios.into())));
    assert!(all.get("global options").is_none(), "there is no such section");
}

#[test]
fn options_are_echoed_where_they_stood() {
    let all = parsed(false);
    let keys = |v: &Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&all["global options"]), ["bs", "iodepth", "ioengine", "runtime", "size"]);
    assert_eq!(keys(&all["jobs"][0]["job options"]), ["description", "numjobs", "rw"], "without those without value");
    assert_eq!(keys(&all["jobs"][1]["job options"]), ["fsync", "group_reporting", "iodepth", "rw"]);
    assert_eq!((&all["jobs"][0]["latency_depth"], &all["jobs"][1]["latency_depth"]), (&8.into(), &1.into()));
}

#[test]
fn a_merged_entry_has_the_name_of_its_first_and_the_options_of_its_last_job() {
    let text = "[global]\nioengine=libaio\nsize=64k\ngroup_reporting\n[a]\niodepth=4\ndescription=aa\n\
                [b]\niodepth=16\ndescription=bb\nrw=randread\n";
    let workload = workload_of(text);
    let all: Value = serde_json::from_str(&fio_json(&workload, &results(&workload), false)).unwrap();
    let entry = &all["jobs"][0];
    assert_eq!(
        (all["jobs"].as_array().unwrap().len(), &entry["jobname"], &entry["desc"]),
        (1, &"a".into(), &"aa".into())
    );
    assert_eq!((&entry["latency_depth"], &entry["job options"]["description"]), (&16.into(), &"bb".into()));
}

#[test]
fn shares_add_up() {
    let all = parsed(false);
    for job in all["jobs"].as_array().unwrap() {
        let sum = |keys: &[&str]| -> f64 {
            keys.iter().flat_map(|k| job[k].as_object().unwrap().values()).map(|v| v.as_f64().unwrap()).sum()
        };
        for keys in [
            &["iodepth_level"][..],
            &["iodepth_submit"],
            &["iodepth_complete"],
            &["latency_ns", "latency_us", "latency_ms"],
        ] {
            assert!((sum(keys) - 100.0).abs() < 1e-4, "{keys:?}");
        }
    }
    let depth = |i: usize, class: &str| all["jobs"][i]["iodepth_level"][class].clone();
    assert_eq!((depth(0, "8"), depth(1, "1")), (100.0.into(), 100.0.into()));
}

#[test]
fn depths_and_latencies_fall_into_fios_classes() {
    let Members(d) = depth_classes([(1, 1), (3, 1), (4, 1), (63, 1), (64, 1), (5_000, 3)].into_iter(), 8);
    let d: Vec<f64> = d.into_iter().map(|x| x.1).collect();
    assert_eq!(d, [12.5, 12.5, 12.5, 0.0, 0.0, 12.5, 50.0]);
    let mut kind = KindStats::default();
    for ns in [1, 2, 999, 1_000, 1_999, 2_000, 999_900, 1_000_000, 1_990_000_000, 2_020_000_000] {
        kind.record(1, Ns(ns));
    }
    let rows = latency_classes(&[kind], 10);
    let get = |row: usize, name: &str| rows[row].0.iter().find(|(n, _)| n == name).unwrap().1;
    assert_eq!((get(0, "2"), get(0, "4"), get(0, "1000")), (10.0, 10.0, 10.0));
    assert_eq!((get(1, "2"), get(1, "4"), get(2, "2")), (20.0, 10.0, 20.0));
    assert_eq!((get(2, "2000"), get(2, ">=2000")), (10.0, 10.0));
}

#[test]
fn bins_hold_every_request_and_percentiles_are_ordered() {
    let all = parsed(true);
    let clat = &all["jobs"][0]["read"]["clat_ns"];
    let sum: u64 = clat["bins"].as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum();
    assert_eq!(Value::from(sum), clat["N"]);
    let at = |p: &str| clat["percentile"][p].as_u64().unwrap();
    assert!(at("1.000000") < at("50.000000") && at("50.000000") < at("99.990000"));
    assert_eq!(clat["max"], at("99.990000"));
    assert!(parsed(false)["jobs"][0]["read"]["clat_ns"].get("bins").is_none());
}

/// What fio 3.33 wrote for the same options: whether `clat_ns`, `lat_ns` and those of flushes have `N` and whether they
/// have percentiles (and bins), and whether requests are in latency classes.
#[test]
fn latencies_that_were_not_asked_for_are_left_out_as_in_fio() {
    for (options, [clat, lat, sync], [of_clat, of_lat, of_sync], classes) in [
        ("", [true; 3], [true, false, true], true),
        ("lat_percentiles=1", [true; 3], [true; 3], true),
        ("lat_percentiles=1\nclat_percentiles=0", [true; 3], [false, true, true], true),
        ("clat_percentiles=0", [true; 3], [false; 3], true),
        ("slat_percentiles=1\ndisable_slat=1\ndisable_bw=1", [true; 3], [true, false, true], true),
        ("disable_lat=1", [true, false, true], [true, false, true], true),
        ("disable_clat=1\nlat_percentiles=1", [false, true, false], [false, true, false], false),
        ("gtod_reduce=1\nlat_percentiles=1", [false; 3], [false; 3], false),
        ("gtod_reduce=1\ndisable_clat=0", [true, false, true], [false; 3], true),
        ("gtod_reduce=1\ngtod_reduce=0", [false; 3], [false; 3], false),
        ("gtod_reduce=0", [true; 3], [true, false, true], true),
    ] {
        let text = format!("{JOBS}{options}\n");
        let workload = workload_of(&text);
        let all: Value = serde_json::from_str(&fio_json(&workload, &results(&workload), true)).unwrap();
        let job = &all["jobs"][1];
        let of = [&job["write"]["clat_ns"], &job["write"]["lat_ns"], &job["sync"]["lat_ns"]];
        assert_eq!(of.map(|latency| latency["N"] != 0), [clat, lat, sync], "{options}");
        assert_eq!(of.map(|latency| latency["max"] != 0), [clat, lat, sync], "{options}");
        assert_eq!(of.map(|latency| latency.get("percentile").is_some()), [of_clat, of_lat, of_sync], "{options}");
        assert_eq!(of.map(|latency| latency.get("bins").is_some()), [of_clat, of_lat, of_sync], "{options}");
        assert_eq!(job["latency_us"].as_object().unwrap().values().any(|share| *share != 0.0), classes, "{options}");
        assert_eq!((&job["write"]["total_ios"], &job["sync"]["total_ios"]), (&50.into(), &1.into()), "{options}");
    }
}

#[test]
fn a_run_without_requests_has_no_infinite_numbers() {
    let workload = workload();
    let mut results = results(&workload);
    results.truncate(1);
    for job in &mut results[0].jobs {
        job.kinds = Default::default();
        job.end = job.start;
    }
    let all: Value = serde_json::from_str(&fio_json(&workload, &results, true)).unwrap();
    assert_eq!((all["jobs"].as_array().unwrap().len(), &all["jobs"][0]["read"]["iops"]), (1, &0.0.into()));
    assert!(serde_json::from_str::<Value>(&fio_json(&workload, &[], false)).unwrap()["jobs"] == Value::Array(vec![]));
}
