// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans, what may stand in a file of results, and probes of devices that are known.

use super::*;
use crate::fit::{Access, Param, Verdict};
use crate::runs::{Shared, watch};
use proptest::prelude::*;
use readpath_config::{DevicePreset, device};
use readpath_kit::Ns;
use readpath_run::{Measurement, measure_parts};
use readpath_workload::{IoKind, Offsets, Stream, StreamSpec};

fn preset() -> DevicePreset {
    device::load("ufs21-64g", &|_| Err(std::io::Error::other("none"))).unwrap()
}

fn ask(writes: bool) -> Ask {
    Ask {
        target: "/data/probe.bin".to_owned(),
        size_bytes: 16 << 30,
        writes,
        seconds: 20,
        error_percent: 2.0,
        long_write_bytes: None,
        fill: false,
        experts: false,
    }
}

fn plan(writes: bool) -> Plan {
    Plan::new(&preset(), &ask(writes)).unwrap()
}

/// What fio prints for a job, of which a test may spoil a part.
fn printed(plan: &Plan, names: &[&str], spoil: impl Fn(&mut serde_json::Value)) -> String {
    let job = |name: &&str| {
        let job = plan.jobs.iter().find(|job| job.name == **name).unwrap();
        let options: serde_json::Map<_, _> = plan
            .options(job)
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(key, value)| (key.to_owned(), value.into()))
            .collect();
        // 100 MiB/s, for as long or as much as was planned.
        let bytes: u64 = if job.setting.writes() { 4096 * 8192 } else { 20 * 104_857_600 };
        let measured = serde_json::json!({
            "io_bytes": bytes, "bw_bytes": 104_857_600, "runtime": bytes * 1000 / 104_857_600, "total_ios": 100,
            "iops_mean": 25_600.0, "iops_stddev": 256.0, "iops_samples": 4,
            "clat_ns": { "N": 100, "bins": { "100000": 60, "90000": 39, "250000": 1 } },
            "lat_ns": { "mean": 101_000.0 },
        });
        let kind = if job.setting.writes() { "write" } else { "read" };
        serde_json::json!({ "jobname": job.name, "error": 0, "job options": options, kind: measured })
    };
    let mut document = serde_json::json!({
        "fio version": "fio-3.33",
        "global options": { "filename": plan.target, "direct": "1", "ioengine": "libaio" },
        "jobs": names.iter().map(job).collect::<Vec<_>>(),
    });
    spoil(&mut document);
    document.to_string()
}

const ONE: &str = "randread-384m-q1-4k";

#[test]
fn a_plan_without_leave_only_reads() {
    let plan = plan(false);
    assert!(plan.jobs.iter().all(|job| job.setting.access == Access::RandomRead));
    let files = plan.job_files(0);
    assert_eq!(files.len(), 1);
    assert!(!files[0].writes && !files[0].text.contains("write"), "{}", files[0].text);
    assert!(files[0].text.contains("allow_file_create=0"));
    assert!(plan.script(&files).contains("fio --readonly "));
    // Some jobs are held out, but the others still have all ranges and depths.
    let held_out = plan.jobs.iter().filter(|job| job.held_out).count();
    assert!((3..=plan.jobs.len() / 3).contains(&held_out));
}

#[test]
fn writes_begin_on_an_idle_device() {
    let plan = plan(true);
    let files = plan.job_files(0);
    let writes: Vec<&JobFile> = files.iter().filter(|file| file.writes).collect();
    assert_eq!(writes.len(), 6);
    // The parts of the long write follow one another.
    assert_eq!(writes[0].text.matches("rw=write").count(), 12);
    let script = plan.script(&files);
    assert_eq!(script.matches("sleep 60").count(), 6);
    for file in &files {
        let line = script.lines().find(|line| line.contains(&format!("{}.fio", file.name))).unwrap();
        assert_eq!(line.contains("--readonly"), !file.writes, "{line}");
    }
}

#[test]
fn our_own_reader_takes_the_jobs() {
    let plan = plan(true);
    let context =
        readpath_workload::fio::Context { unit_blocks: &[1 << 24], zones: &[], seed: 1, options: &[], defaults: "" };
    let none = |_: &std::path::Path| Err(std::io::Error::other("none"));
    let mut jobs = 0;
    for file in plan.job_files(0) {
        let workload = readpath_workload::fio::parse(&file.name, &file.text, &none, &context).unwrap();
        jobs += workload.phases.len();
    }
    assert_eq!(jobs, plan.jobs.len());
}

/// A DRAM-less SSD of 4 GiB with a cache in SLC mode.
fn cached() -> DevicePreset {
    let set = [
        ("lu[0].blocks", "1048576"),
        ("geometry.dies_per_channel", "4"),
        ("geometry.blocks_per_plane", "190"),
        ("flash.erase_us", "5000"),
        ("slc.erase_us", "3500"),
        ("map_cache.size_kib", "64"),
        ("map_memory.size_mib", "1"),
    ];
    let set = set.map(|(key, value)| readpath_config::Override::new(key, value, "test").unwrap());
    study::dramless(0, 400).unwrap().with_overrides(&set).unwrap()
}

/// A device with host memory and a cache is read around what both kinds of memory cover, written beyond the end of its
/// cache, left alone, and on request erased and filled.
#[test]
fn host_memory_and_a_cache_have_jobs_of_their_own() {
    let preset = cached();
    let all = Ask { size_bytes: 4 << 30, ..ask(true) };
    let plan = Plan::new(&preset, &Ask { fill: true, ..all.clone() }).unwrap();
    plan.check(&preset, "plan.json").unwrap();
    assert_eq!(Plan::from_json(&plan.to_json(), "plan.json").unwrap(), plan);
    let ranges = |depth| -> Vec<u32> {
        let reads = plan.jobs.iter().map(|job| &job.setting).filter(|s| !s.writes() && s.block_count == 1);
        let mut ranges: Vec<u32> = reads.filter(|s| s.queue_depth == depth).map(|s| s.range_blocks / 256).collect();
        ranges.sort_unstable();
        ranges.dedup();
        ranges
    };
    // SRAM covers 64 MiB, and both together 1,088 MiB.
    assert_eq!(ranges(1), [64, 128, 256, 512, 576, 1344, 2752]);
    assert_eq!(ranges(63), [64, 128, 192, 256, 512, 576, 896, 1344, 1728, 2752]);
    let files = plan.job_files(0);
    let script = plan.script(&files);
    let pause: Vec<&JobFile> = files.iter().filter(|file| file.text.contains("[pause-")).collect();
    let [before, behind] = pause[..] else { panic!("{script}") };
    assert_eq!((before.idle_seconds, behind.idle_seconds), (60, 30));
    assert_eq!((before.text.matches("stonewall").count(), behind.text.matches("stonewall").count()), (6, 6));
    let fill = files.iter().find(|file| file.erases).unwrap();
    assert_eq!(fill.text.matches("[fill-").count(), 24);
    let of_fill = script.split("# All that the target holds is discarded.").nth(1).unwrap();
    assert!(of_fill.contains("blkdiscard -f '/data/probe.bin'") && of_fill.contains(&fill.name), "{script}");
    // Results are complete where they have their name.
    assert_eq!(script.matches("--output=part.json").count(), script.matches("mv part.json ").count());

    let none = Plan::new(&preset, &all).unwrap();
    assert!(none.job_files(0).iter().all(|file| !file.erases));
    let half = Plan::new(&preset, &Ask { size_bytes: 2 << 30, fill: true, ..all }).unwrap_err().to_string();
    assert!(half.contains("needs all of it: 2048 MiB can be used, but 'nvme-dramless-512g' has 4096"), "{half}");
}

/// A fill is fast until the cache is full, then direct, and slower again where data must be folded.
#[test]
fn a_filled_device_has_three_speeds() {
    let preset = cached();
    let plan = Plan::new(&preset, &Ask { size_bytes: 4 << 30, fill: true, ..ask(true) }).unwrap();
    let rates = |what: &str| -> Vec<f64> {
        let jobs = plan.jobs.iter().filter(|job| job.name.starts_with(what));
        let settings: Vec<_> = jobs.map(|job| job.setting).collect();
        let shown = crate::fit::predict(&preset, 0, &settings, 500, 1, &Shared::default()).unwrap();
        shown.iter().map(|outcome| outcome.of(crate::fit::Metric::Throughput)).collect()
    };
    let fill = rates("fill-");
    // 400 MiB are 2.3 of 24 parts, and the last ones need space that the cache has.
    assert!(fill[0] > 2.5 * fill[6] && fill[1] > 2.5 * fill[6], "{fill:?}");
    assert!(fill[23] < 0.8 * fill[6], "{fill:?}");
    // A stretch takes the time of its parts.
    let mut whole = plan.jobs.iter().find(|job| job.name.starts_with("fill-")).unwrap().setting;
    let Access::SequentialWrite(stretch) = &mut whole.access else { panic!("{whole:?}") };
    stretch.count = 24;
    let shown = crate::fit::predict(&preset, 0, &[whole], 500, 1, &Shared::default()).unwrap();
    let mean = 24.0 / fill.iter().map(|rate| 1.0 / rate).sum::<f64>();
    assert!((shown[0].of(crate::fit::Metric::Throughput) / mean - 1.0).abs() < 1e-9, "{mean}");
    // After the pause the cache is empty again.
    let pause = rates("pause-");
    assert!(pause[5] < pause[0] / 3.0 && pause[6] > 0.9 * pause[0], "{pause:?}");
}

/// A long write is simulated with shorter blocks; its speeds are those of the whole device, at the same shares.
#[test]
fn shorter_blocks_show_the_same_write() {
    let larger = [("geometry.pages_per_block", "192"), ("lu[0].blocks", "2097152"), ("slc_cache.dynamic_mib", "800")];
    let larger = larger.map(|(key, value)| readpath_config::Override::new(key, value, "test").unwrap());
    let preset = cached().with_overrides(&larger).unwrap();
    let plan = Plan::new(&preset, &Ask { size_bytes: 8 << 30, fill: true, ..ask(true) }).unwrap();
    let fill: Vec<_> = plan.jobs.iter().map(|job| job.setting).filter(|s| s.range_blocks > 2_000_000).collect();
    let fill: Vec<_> = fill.into_iter().filter(|s| s.writes()).collect();
    let shown = crate::fit::predict(&preset, 0, &fill, 500, 1, &Shared::default()).unwrap();
    // The whole device.
    let (range, length) = (fill[0].range_blocks, fill[0].block_count);
    let spec = StreamSpec::plain(IoKind::Write, 0, range, length, Offsets::Sequential);
    let timed = range / u32::from(length) / 24;
    let (depth, parts) = (fill[0].queue_depth, 24);
    let all = Measurement { blocks: 0, kind: IoKind::Write, depth, warm_up: 0, timed, parts, pause: Ns::ZERO };
    let stream = Stream::new(&spec, 1).unwrap();
    let whole = measure_parts(&preset, preset.host, all, stream, &mut watch(&Shared::default(), 0)).unwrap();
    assert_eq!(whole.len(), shown.len());
    for (part, outcome) in whole.iter().zip(&shown) {
        let mib_s = f64::from(range / 24) / 256.0 / part.time.as_secs_f64();
        let ratio = outcome.of(crate::fit::Metric::Throughput) / mib_s;
        assert!((ratio - 1.0).abs() < 0.08, "{mib_s} {ratio}");
    }
}

/// Long reads at low queue depths over all of the target: held out, and none longer than the host's requests.
#[test]
fn experts_are_read_in_long_pieces() {
    let with = Plan::new(&preset(), &Ask { experts: true, ..ask(false) }).unwrap();
    let more: Vec<&Job> = with.jobs.iter().filter(|job| !plan(false).jobs.contains(job)).collect();
    assert_eq!(more.len(), 4 * 5, "64 to 512 KiB, at five queue depths");
    assert_eq!((&*more[0].name, &*more[19].name), ("randread-16384m-q1-64k", "randread-16384m-q16-512k"));
    assert!(more.iter().all(|job| job.held_out && !job.setting.writes()));
    assert_eq!(Plan::from_json(&with.to_json(), "plan.json").unwrap(), with);
}

#[test]
fn a_plan_comes_back_from_its_text() {
    for writes in [false, true] {
        let plan = plan(writes);
        assert_eq!(Plan::from_json(&plan.to_json(), "plan.json").unwrap(), plan);
        plan.check(&preset(), "plan.json").unwrap();
    }
    let small = preset().with_override("queue_depth", "8").unwrap();
    let error = plan(false).check(&small, "plan.json").unwrap_err().to_string();
    assert!(error.contains("plan.json: jobs[4]") && error.contains("queue_depth is 16"), "{error}");
}

#[test]
fn plans_that_cannot_be_say_what_would_be_right() {
    let plan_of = |ask: Ask| Plan::new(&preset(), &ask).unwrap_err().to_string();
    assert!(plan_of(Ask { size_bytes: 1 << 20, ..ask(false) }).contains("the least range that is measured is 64 MiB"));
    assert!(plan_of(Ask { size_bytes: 1 << 30, ..ask(true) }).contains("the long write needs 4128 MiB, but 1024"));
    let short = Ask { long_write_bytes: Some(1), ..ask(true) };
    assert!(plan_of(short).contains("a long write of 1 bytes has not 12 parts; expected 48 MiB at least, and 16368"));
    assert!(plan_of(Ask { target: "/a b".to_owned(), ..ask(false) }).contains("has ' '"));
    assert!(plan_of(Ask { target: "x.bin".to_owned(), ..ask(false) }).contains("\"x.bin\": is no full path"));
    let text = plan(false).to_json();
    for (from, to, wanted) in [
        ("readpath-probe/1", "readpath-probe/9", "schema is \"readpath-probe/9\"; expected \"readpath-probe/1\""),
        (ONE, "randread-384m-q0-4k", "jobs[0].name is \"randread-384m-q0-4k\"; expected a name such as"),
        ("randread-384m-q4-4k", ONE, "jobs[2].name is \"randread-384m-q1-4k\", like that of another job"),
        ("\"seconds\": 20", "\"seconds\": 0", "seconds is 0; expected 1 to 86400"),
        // This many requests would be simulated, many times.
        (
            ONE,
            "randwrite-384m-q1-4k-4294967295",
            "jobs[0].name is \"randwrite-384m-q1-4k-4294967295\"; expected a name",
        ),
        ("error_percent", "error", "plan.json: is no plan of a probe: unknown field `error`"),
    ] {
        let error = Plan::from_json(&text.replacen(from, to, 1), "plan.json").unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn a_reading_is_taken_from_what_fio_prints() {
    let plan = plan(false);
    let text = printed(&plan, &[ONE, "randread-2176m-q31-4k"], |_| ());
    let readings = read(&text, "r.json", &plan).unwrap();
    let [one, two] = readings[..] else { panic!("{readings:?}") };
    assert_eq!(plan.jobs[two.job].name, "randread-2176m-q31-4k");
    assert_eq!((one.throughput_mib_s, one.scatter), (100.0, 0.005));
    // 39 of 100 requests took 90 us, 60 took 100 us.
    assert_eq!((one.mean_us, one.p50_us, one.p99_us), (101.0, 100.0, 100.0));
    // By nearest rank: of 3 requests the median is the second, of 10 the 99th percentile is the last.
    for (bins, n, wanted) in [
        (serde_json::json!({ "1000": 1, "2000": 1, "3000": 1 }), 3, (2.0, 3.0)),
        (serde_json::json!({ "1000": 9, "9000": 1 }), 10, (1.0, 9.0)),
    ] {
        let text = printed(&plan, &[ONE], |d| {
            let clat = &mut d["jobs"][0]["read"]["clat_ns"];
            (clat["bins"], clat["N"]) = (bins.clone(), n.into());
        });
        let one = read(&text, "r.json", &plan).unwrap()[0];
        assert_eq!((one.p50_us, one.p99_us), wanted);
    }
}

/// A way to spoil what fio printed.
type Spoil<'a> = &'a dyn Fn(&mut serde_json::Value);

#[test]
fn what_is_no_measurement_is_refused_with_its_place() {
    let plan = plan(true);
    let message =
        |names: &[&str], spoil: Spoil| read(&printed(&plan, names, spoil), "r.json", &plan).unwrap_err().to_string();
    let job = "jobs[0] (randread-384m-q1-4k)";
    let cases: [(Spoil, String); 21] = [
        (
            &|d| d["jobs"][0]["read"]["lat_ns"]["mean"] = 1e16.into(),
            format!("{job}.read.lat_ns.mean: is 1e+16; expected a number from 0 to 1e15"),
        ),
        (
            &|d| d["jobs"][0]["read"]["lat_ns"]["mean"] = (-1).into(),
            format!("{job}.read.lat_ns.mean: is -1; expected a number from 0 to 1e15"),
        ),
        (
            &|d| d["jobs"][0]["read"]["iops_stddev"] = 1e300.into(),
            format!("{job}.read.iops_stddev: is 1e+300; expected a number from 0 to 1e15"),
        ),
        (
            &|d| d["jobs"][0]["read"]["clat_ns"]["bins"] = serde_json::json!({ "10000000000000000000": 100 }),
            format!("{job}.read.clat_ns.bins: has \"10000000000000000000\": 100; expected nanoseconds and a count"),
        ),
        (&|d| d["fio version"] = "fio-2.21".into(), "fio version: is \"fio-2.21\"; expected fio-3".to_owned()),
        (&|d| d["fio version"] = 3.into(), "fio version: is 3; expected fio-3".to_owned()),
        (&|d| d["jobs"] = serde_json::json!([]), "jobs: is no list of jobs; expected one job at least".to_owned()),
        (&|d| d["jobs"][0]["error"] = 5.into(), format!("{job}: failed with error 5; expected error 0")),
        (
            &|d| d["jobs"][0]["jobname"] = "x".into(),
            "jobs[0].jobname: is \"x\", which is no job of the plan".to_owned(),
        ),
        (
            &|d| d["jobs"][0]["job options"]["bs"] = "8k".into(),
            format!("{job}.job options: bs is \"8k\"; expected \"4k\", as planned"),
        ),
        (
            &|d| d["jobs"][0]["job options"]["rw"] = "read".into(),
            format!("{job}.job options: rw is \"read\"; expected \"randread\""),
        ),
        (
            &|d| d["global options"]["filename"] = "/x".into(),
            format!("{job}.job options: filename is \"/x\"; expected \"/data/probe.bin\""),
        ),
        (
            &|d| drop(d["global options"].as_object_mut().unwrap().remove("direct")),
            format!("{job}.job options: direct is missing; expected \"1\""),
        ),
        (&|d| d["jobs"][0]["read"]["total_ios"] = 0.into(), format!("{job}.read: has no requests (total_ios is 0)")),
        (
            &|d| d["jobs"][0]["read"]["runtime"] = 3000.into(),
            format!("{job}.read: ran for 3000 ms of 20000; expected all of it"),
        ),
        (
            &|d| drop(d["jobs"][0]["read"]["clat_ns"].as_object_mut().unwrap().remove("bins")),
            format!(
                "{job}.read.clat_ns: has no \"bins\"; expected the histogram of latencies: run fio with --output-form"
            ),
        ),
        (
            &|d| d["jobs"][0]["read"]["clat_ns"]["bins"]["100000"] = 1.into(),
            format!("{job}.read.clat_ns.bins: count 41 requests, but N is 100"),
        ),
        (
            &|d| d["jobs"][0]["job options"]["numjobs"] = "4".into(),
            format!("{job}.job options: numjobs is no option of the plan"),
        ),
        (
            &|d| d["global options"]["ioengine"] = "sync".into(),
            format!("{job}.job options: ioengine is \"sync\"; expected \"libaio\""),
        ),
        (
            &|d| d["jobs"][0]["read"]["bw_bytes"] = 1_048_576_000.into(),
            format!(
                "{job}.read: has a throughput (bw_bytes) of 1.048576e9, but io_bytes and runtime come to 1.048576e8"
            ),
        ),
        (
            &|d| d["jobs"][0]["read"]["bw_bytes"] = "x".into(),
            format!("{job}.read.bw_bytes: is \"x\"; expected a number"),
        ),
    ];
    for (spoil, wanted) in cases {
        let found = message(&[ONE], spoil);
        assert!(found.starts_with("r.json: ") && found.contains(&wanted), "{found}\nexpected {wanted}");
    }
    assert!(message(&[ONE, ONE], &|_| ()).contains("jobs[1]: is another job \"randread-384m-q1-4k\""));
    // A job of writes has to write the planned amount.
    let short = message(&["randwrite-256m-q1-4k-8192"], &|d| d["jobs"][0]["write"]["io_bytes"] = 4096.into());
    assert!(short.contains("write: moved 4096 bytes (io_bytes); expected 33554432"), "{short}");
}

#[test]
fn what_fio_says_before_its_document_counts() {
    let plan = plan(false);
    let text = format!("fio: refusing extend of file due to read-only\n{}", printed(&plan, &[ONE], |_| ()));
    let error = read(&text, "r.json", &plan).unwrap_err().to_string();
    assert!(error.starts_with("r.json: fio says \"fio: refusing extend of file due to read-only\""), "{error}");
    let error = read("", "r.json", &plan).unwrap_err().to_string();
    assert!(error.contains("is not JSON") && error.contains("--output-format=json+"), "{error}");
    let whole = printed(&plan, &[ONE], |_| ());
    for number in ["-nan", "nan", "inf", "1e999"] {
        let text = whole.replacen("\"iops_stddev\":256.0", &format!("\"iops_stddev\":{number}"), 1);
        let error = read(&text, "r.json", &plan).unwrap_err().to_string();
        assert!(error.starts_with("r.json: is not JSON behind \"iops_stddev\": "), "{error}");
    }
    let error = read(&whole[..whole.len() / 2], "r.json", &plan).unwrap_err().to_string();
    assert!(error.starts_with("r.json: is not JSON") && error.contains(": EOF"), "{error}");
}

/// Without noise the probe finds the hidden values, and predicts the held-out jobs.
#[test]
fn a_known_device_comes_back() {
    let start = small();
    let params: Vec<Param> =
        ["firmware.flash_op_us", "flash.read_us", "map_cache.size_kib"].map(|key| Param::of_key(key).unwrap()).into();
    let values = [(params[0], 11_000), (params[1], 60_000), (params[2], 288)];
    let truth = crate::fit::device(&start, &values).unwrap();
    let plan = Plan::new(&start, &Ask { size_bytes: 4 << 30, error_percent: 1.5, ..ask(false) }).unwrap();
    let shared = Shared::default();
    let readings = study::measure(&plan, &truth, 0.0, 2000, 7, &shared).unwrap();
    let options = ProbeOptions { params, ios: 1000, advice: true };
    let probe = probe(&plan, &start, &readings, &options, &shared).unwrap();
    for (known, (param, value)) in probe.known.iter().zip(values) {
        assert_eq!(known.verdict, Verdict::Identified, "{known:?} {:?}", probe.fit.notes());
        assert!((known.fitted as f64 / value as f64 - 1.0).abs() < 0.06, "{} {}", param.key(), known.fitted);
        assert!((known.low..=known.high).contains(&param.in_unit(value)), "{known:?}");
    }
    assert!(probe.rms_percent(false).unwrap() < 2.0, "{:?}", probe.rms_percent(false));
    assert!(probe.next.is_none() && probe.notes().last().unwrap().contains("none needs to be run next"));
    let document = probe.document().unwrap();
    assert_eq!(document.charts.len(), 6, "{:?}", document.charts.iter().map(|c| &c.id).collect::<Vec<_>>());
    assert_eq!(document.configuration["probe"]["parameters"][0]["verdict"], "identified");
}

/// What too few jobs leave open is not called identified, and the next job is one that is not in the plan.
#[test]
fn the_next_job_is_a_new_one() {
    let start = small();
    let mut plan = Plan::new(&start, &Ask { size_bytes: 4 << 30, ..ask(false) }).unwrap();
    plan.error_percent = 5.0;
    plan.jobs.retain(|job| job.setting.queue_depth == 31 && job.setting.block_count == 1 && !job.held_out);
    let shared = Shared::default();
    let readings = study::measure(&plan, &start, 0.0, 2000, 7, &shared).unwrap();
    let params = ["firmware.flash_op_us", "flash.read_us"].map(|key| Param::of_key(key).unwrap()).into();
    let options = ProbeOptions { params, ios: 1000, advice: true };
    let probe = probe(&plan, &start, &readings, &options, &shared).unwrap();
    assert_eq!(probe.known[0].verdict, Verdict::Identified);
    assert_eq!(probe.known[1].verdict, Verdict::NotIdentified);
    assert_eq!(probe.known[1].interval(), "unknown");
    let next = probe.next.as_ref().unwrap();
    assert!(!probe.next_jobs().is_empty() && probe.next_jobs().iter().all(|job| job.setting.queue_depth < 31));
    let files = next.job_files(plan.jobs.len());
    assert_eq!(files[0].text.matches("stonewall").count(), probe.next_jobs().len());
    assert_eq!(probe.rms_percent(false), None);
}

/// A device that is quickly simulated.
fn small() -> DevicePreset {
    study::cut_down(&preset(), 230).unwrap()
}

proptest! {
    #[test]
    fn any_bytes_are_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = read(&text, "r.json", &plan(false));
        let _ = Plan::from_json(&text, "plan.json");
    }

    #[test]
    fn any_name_is_a_job_or_none(name in "(rand)?(read|write)-[0-9]{1,6}m-q[0-9]{1,3}-[0-9]{1,4}k(-[0-9of]{1,8})?") {
        if let Some(setting) = names::setting(&name) {
            prop_assert_eq!(names::of(&setting), name);
        }
    }
}
