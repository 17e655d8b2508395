// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results in the shape of fio's `--output-format=json`, so that programs that read fio's output read ours.
//!
//! Names, units and order of the fields are those that fio 3.33 writes (fio HOWTO, "JSON output"); what virtual time
//! does not have is zero, as `docs/formats/fio-json.md` lists. Knows measurements and the options of jobs, not the model.

use crate::measure::{GroupStats, JobStats, KindStats, PhaseStats};
use readpath_kit::{Histogram, Ns};
use readpath_workload::{IoKind, Phase, Workload};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::ser::{Formatter, PrettyFormatter};
use std::io;

/// What stands in "fio version": the version whose shape this is, and who wrote it.
const VERSION: &str = "fio-3.33-readpath";

/// fio's default `percentile_list`.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// Upper ends of the latency classes, the same for nanoseconds and microseconds; milliseconds have two more.
const CLASSES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
/// The names of the depth classes, and those of the counts per call.
const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
const CALLS: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// The JSON document that fio would print for `workload` with the results `phases` of its phases, in the same order; a
/// phase without results is left out. One entry of "jobs" stands for one reporting group: one for each job without
/// `group_reporting`. With `bins`, latencies also have their histogram, as with `--output-format=json+`.
///
/// Times are nanoseconds of virtual time; bandwidth and rate of a group are taken over its longest job, as fio does.
pub fn fio_json(workload: &Workload, phases: &[PhaseStats], bins: bool) -> String {
    let planned: Vec<&Phase> = workload.phases.iter().zip(phases).map(|(phase, _)| phase).collect();
    let mut jobs = Vec::new();
    for (phase, stats) in planned.iter().zip(phases) {
        jobs.extend(stats.groups().iter().map(|group| Entry::new(workload, phase, stats, group, bins)));
    }
    let document = Document {
        version: VERSION,
        timestamp: 0,
        timestamp_ms: 0,
        time: "Thu Jan  1 00:00:00 1970",
        global_options: common_options(&planned),
        jobs,
        disk_util: [],
    };
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, Layout(PrettyFormatter::new()));
    document.serialize(&mut serializer).expect("strings, numbers and maps with string keys, written to memory");
    text.push(b'\n');
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Members in the order given.
struct Members<K, V>(Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Members<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

type Options = Members<String, String>;
type Shares = Members<String, f64>;

#[derive(Serialize)]
struct Document {
    #[serde(rename = "fio version")]
    version: &'static str,
    timestamp: u64,
    timestamp_ms: u64,
    time: &'static str,
    #[serde(rename = "global options")]
    global_options: Options,
    jobs: Vec<Entry>,
    disk_util: [(); 0],
}

#[derive(Serialize)]
struct Entry {
    jobname: String,
    groupid: usize,
    error: u32,
    eta: u64,
    elapsed: u64,
    #[serde(rename = "job options")]
    job_options: Options,
    read: Direction,
    write: Direction,
    trim: Direction,
    sync: Sync,
    job_runtime: u64,
    usr_cpu: f64,
    sys_cpu: f64,
    ctx: u64,
    majf: u64,
    minf: u64,
    iodepth_level: Shares,
    iodepth_submit: Shares,
    iodepth_complete: Shares,
    latency_ns: Shares,
    latency_us: Shares,
    latency_ms: Shares,
    latency_depth: u32,
    latency_target: u64,
    latency_percentile: f64,
    latency_window: u64,
}

#[derive(Serialize)]
struct Direction {
    io_bytes: u64,
    io_kbytes: u64,
    bw_bytes: u64,
    bw: u64,
    iops: f64,
    runtime: u64,
    total_ios: u64,
    short_ios: u64,
    drop_ios: u64,
    slat_ns: Latency,
    clat_ns: Latency,
    lat_ns: Latency,
    bw_min: u64,
    bw_max: u64,
    bw_agg: f64,
    bw_mean: f64,
    bw_dev: f64,
    bw_samples: u64,
    iops_min: u64,
    iops_max: u64,
    iops_mean: f64,
    iops_stddev: f64,
    iops_samples: u64,
}

#[derive(Serialize)]
struct Sync {
    total_ios: u64,
    lat_ns: Latency,
}

#[derive(Serialize)]
struct Latency {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    n: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    percentile: Option<Members<String, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bins: Option<Members<String, u64>>,
}

impl Entry {
    fn new(workload: &Workload, phase: &Phase, stats: &PhaseStats, group: &GroupStats, bins: bool) -> Entry {
        let members = || stats.jobs.iter().zip(&phase.jobs).filter(|(job, _)| job.group == group.group);
        let first = members().next();
        let span = |job: &JobStats| job.end.saturating_sub(job.start);
        let longest = members().map(|(job, _)| span(job)).max().unwrap_or(Ns::ZERO);
        let sum: u64 = members().map(|(job, _)| span(job).0).sum();
        let iodepth = first.map_or(1, |(_, job)| job.iodepth);
        let mut options = first.map_or_else(Vec::new, |(_, job)| typed(&job.options));
        for (key, value) in [("iodepth", u64::from(iodepth)), ("numjobs", group.jobs as u64)] {
            // Programs that plot results look for these two whether or not they were typed.
            if options.iter().all(|(k, _)| k != key) {
                options.push((key.to_owned(), value.to_string()));
            }
        }
        let [read, write, trim] =
            [IoKind::Read, IoKind::Write, IoKind::Trim].map(|kind| Direction::new(group.of(kind), longest, bins));
        let flushes = group.of(IoKind::Flush);
        let ios = read.total_ios + write.total_ios + trim.total_ios;
        let [latency_ns, latency_us, latency_ms] = latency_classes(&group.kinds[..3], ios);
        let name = workload.groups.get(group.group).cloned();
        Entry {
            jobname: name.or_else(|| first.map(|(job, _)| job.name.clone())).unwrap_or_default(),
            groupid: group.group,
            error: 0,
            eta: 0,
            elapsed: group.end.saturating_sub(stats.start).0 / 1_000_000_000 + 1,
            job_options: Members(options),
            read,
            write,
            trim,
            sync: Sync { total_ios: flushes.ios, lat_ns: Latency::new(&flushes.latency, true, bins) },
            job_runtime: milliseconds(Ns(sum)),
            usr_cpu: 0.0,
            sys_cpu: 0.0,
            ctx: 0,
            majf: 0,
            minf: 0,
            iodepth_level: depth_classes(members().map(|(job, plan)| (plan.iodepth, data_ios(job))), ios),
            iodepth_submit: one_per_call(ios),
            iodepth_complete: one_per_call(ios),
            latency_ns,
            latency_us,
            latency_ms,
            latency_depth: iodepth,
            latency_target: 0,
            latency_percentile: 100.0,
            latency_window: 0,
        }
    }
}

impl Direction {
    fn new(kind: &KindStats, time: Ns, bins: bool) -> Direction {
        let time = if kind.ios == 0 { Ns::ZERO } else { time };
        let per_second = |n: u64| (u128::from(n) * 1_000_000_000).checked_div(u128::from(time.0)).unwrap_or(0) as u64;
        let iops = if time == Ns::ZERO { 0.0 } else { kind.ios as f64 * 1e9 / time.0 as f64 };
        let bw_bytes = per_second(kind.bytes());
        let bw = bw_bytes >> 10;
        Direction {
            io_bytes: kind.bytes(),
            io_kbytes: kind.bytes() >> 10,
            bw_bytes,
            bw,
            iops,
            runtime: milliseconds(time),
            total_ios: kind.ios,
            short_ios: 0,
            drop_ios: 0,
            slat_ns: Latency::new(&Histogram::default(), false, false),
            clat_ns: Latency::new(&kind.latency, true, bins),
            lat_ns: Latency::new(&kind.latency, false, false),
            bw_min: bw,
            bw_max: bw,
            bw_agg: if bw > 0 { 100.0 } else { 0.0 },
            bw_mean: bw_bytes as f64 / 1024.0,
            bw_dev: 0.0,
            bw_samples: 0,
            iops_min: iops as u64,
            iops_max: iops as u64,
            iops_mean: iops,
            iops_stddev: 0.0,
            iops_samples: 0,
        }
    }
}

impl Latency {
    fn new(h: &Histogram, percentiles: bool, bins: bool) -> Latency {
        let n = h.count();
        let percentile = |&p: &f64| (format!("{p:.6}"), h.quantile(p / 100.0));
        Latency {
            min: h.min(),
            max: h.max(),
            mean: h.mean(),
            // fio estimates the deviation of what the sample was drawn from.
            stddev: if n > 1 { h.stddev() * (n as f64 / (n - 1) as f64).sqrt() } else { 0.0 },
            n,
            percentile: (percentiles && n > 0).then(|| Members(PERCENTILES.iter().map(percentile).collect())),
            bins: (bins && n > 0).then(|| Members(h.buckets().map(|(top, n)| (top.to_string(), n)).collect())),
        }
    }
}

fn data_ios(job: &JobStats) -> u64 {
    job.kinds[..3].iter().map(|k| k.ios).sum()
}

/// Begun milliseconds: a short run in virtual time must not look like none.
fn milliseconds(time: Ns) -> u64 {
    time.0.div_ceil(1_000_000)
}

fn percent(n: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { n as f64 * 100.0 / of as f64 }
}

/// Options with a value; fio does not print the others.
fn typed(options: &[(String, String)]) -> Vec<(String, String)> {
    options.iter().filter(|(_, value)| !value.is_empty()).cloned().collect()
}

/// The options that every job has with the same value.
fn common_options(phases: &[&Phase]) -> Options {
    let mut jobs = phases.iter().flat_map(|phase| &phase.jobs);
    let mut common = jobs.next().map_or_else(Vec::new, |job| typed(&job.options));
    let mut seen = None;
    for job in jobs {
        // Clones share their options.
        if seen != Some(job.options.as_ptr()) {
            seen = Some(job.options.as_ptr());
            common.retain(|option| job.options.contains(option));
        }
    }
    Members(common)
}

/// How the requests are spread over depths: each job keeps its own depth.
fn depth_classes(jobs: impl Iterator<Item = (u32, u64)>, ios: u64) -> Shares {
    let mut counts = [0; DEPTHS.len()];
    for (depth, n) in jobs {
        counts[depth.max(1).ilog2().min(6) as usize] += n;
    }
    Members(DEPTHS.iter().zip(counts).map(|(class, n)| ((*class).to_owned(), percent(n, ios))).collect())
}

/// Requests are submitted and taken back one at a time; fio counts that in the class up to 4.
fn one_per_call(ios: u64) -> Shares {
    Members(CALLS.iter().map(|&class| (class.to_owned(), if class == "4" { percent(ios, ios) } else { 0.0 })).collect())
}

/// Shares of all requests by latency: below 1 us, below 1 ms, and above, in classes that exclude their upper end.
fn latency_classes(kinds: &[KindStats], ios: u64) -> [Shares; 3] {
    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;
    let mut counts = [[0u64; CLASSES.len() + 2]; 3];
    for (ns, n) in kinds.iter().flat_map(|kind| kind.latency.buckets()) {
        let (row, value) = match ns {
            0..US => (0, ns),
            US..MS => (1, ns / US),
            _ => (2, ns / MS),
        };
        let class = CLASSES.iter().position(|&end| value < end);
        counts[row][class.unwrap_or(if value < 2000 { CLASSES.len() } else { CLASSES.len() + 1 })] += n;
    }
    let names = CLASSES.iter().map(u64::to_string).chain(["2000".to_owned(), ">=2000".to_owned()]);
    let names: Vec<String> = names.collect();
    [0, 1, 2].map(|row| {
        let classes = if row == 2 { names.len() } else { CLASSES.len() };
        Members((0..classes).map(|i| (names[i].clone(), percent(counts[row][i], ios))).collect())
    })
}

/// fio's way to print: a space on both sides of the colon, six decimals.
struct Layout(PrettyFormatter<'static>);

impl Formatter for Layout {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        write!(writer, "{value:.6}")
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" : ")
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_workload::fio;
    use serde_json::Value;
    use std::path::Path;

    const JOBS: &str = "[global]\nsize=1m\nbs=4k\ntime_based\nruntime=1\niodepth=8\n\
                        [mix \"a\"]\nrw=randrw\nnumjobs=2\ngroup_reporting\nnew_group\n\
                        [w]\nstonewall\ngroup_reporting=0\nrw=write\nfsync=4\niodepth=1\n";

    fn workload() -> Workload {
        let no_files = |_: &Path| Err(io::ErrorKind::NotFound.into());
        fio::parse("t.fio", JOBS, &no_files, &fio::Context { device_blocks: 1 << 16, seed: 1 }).unwrap()
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
    const GOLDEN: &str = include_str!("../tests/golden/fio.json");

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
        let names: Vec<_> =
            jobs.iter().map(|j| (j["jobname"].as_str().unwrap(), j["groupid"].as_u64().unwrap())).collect();
        assert_eq!(names, [("mix \"a\"", 0), ("w", 1)]);
        let read = &jobs[0]["read"];
        assert_eq!((&read["total_ios"], &read["io_bytes"]), (&150.into(), &((50 + 100 * 2) * 4096).into()));
        assert_eq!((&read["runtime"], &jobs[0]["job_runtime"]), (&751.into(), &1251.into()));
        assert_eq!(read["bw_bytes"], 250u64 * 4096 * 1_000_000_000 / 750_000_001);
        assert_eq!(read["bw"], read["bw_bytes"].as_u64().unwrap() / 1024);
        assert_eq!(jobs[0]["trim"]["runtime"], 0, "no trims, no time");
        assert_eq!(jobs[1]["sync"]["lat_ns"]["mean"], 5e6);
    }

    #[test]
    fn options_are_echoed_and_those_in_common_are_global() {
        let all = parsed(false);
        let common: Vec<&str> = all["global options"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(common, ["bs", "runtime", "size"]);
        let [mix, w] = [0, 1].map(|i| all["jobs"][i]["job options"].clone());
        assert_eq!((&mix["numjobs"], &mix["iodepth"], &mix["rw"]), (&"2".into(), &"8".into(), &"randrw".into()));
        assert_eq!((&w["numjobs"], &w["iodepth"], &w["fsync"]), (&"1".into(), &"1".into(), &"4".into()));
        assert!(w.get("time_based").is_none() && mix.get("group_reporting").is_none(), "they were typed without value");
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
        assert!(
            serde_json::from_str::<Value>(&fio_json(&workload, &[], false)).unwrap()["jobs"] == Value::Array(vec![])
        );
    }
}
