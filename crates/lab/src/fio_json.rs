// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results in the shape of fio's `--output-format=json`, so that programs that read fio's output read ours.
//!
//! Names, units and order of the fields are those that fio 3.33 writes (fio HOWTO, "JSON output"); what virtual time
//! does not have is zero, as `docs/formats/fio-json.md` lists. Knows measurements and the options of jobs, not the
//! model.

use readpath_kit::{Histogram, Ns};
use readpath_run::{GroupStats, JobStats, KindStats, PhaseStats};
use readpath_workload::{IoKind, Job, Latencies, Phase, Workload};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::ser::{Formatter, PrettyFormatter};
use std::io;

/// Value of "fio version": the version whose shape this is, and the program that wrote it.
const VERSION: &str = "fio-3.33-readpath";

/// fio's default `percentile_list`.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// Upper ends of the latency classes, the same for nanoseconds and microseconds; milliseconds have two more.
const CLASSES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
/// The names of the depth classes, and those of the counts per call.
const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
const CALLS: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// The JSON document that fio would print for `workload`, a fio job file, with the results `phases` of its phases, in
/// the same order; a phase without results is left out. One entry of "jobs" stands for one reporting group: one for
/// each job without `group_reporting`. With `bins`, latencies also have their histogram, as with
/// `--output-format=json+`.
///
/// Times are nanoseconds of virtual time; bandwidth and rate of a group are taken over its longest job in begun
/// milliseconds, as fio does.
pub(crate) fn fio_json(workload: &Workload, phases: &[PhaseStats], bins: bool) -> String {
    let span = match (phases.first(), phases.last()) {
        (Some(first), Some(last)) => last.end.saturating_sub(first.start),
        _ => Ns::ZERO,
    };
    // fio looks at the time when it prints, which is at the end.
    let elapsed = span.0 / 1_000_000_000 + 1;
    let mut jobs = Vec::new();
    for (phase, stats) in workload.phases.iter().zip(phases) {
        // Groups are numbered in fio's order, in which clones do not follow one another.
        let mut groups = stats.groups();
        groups.sort_by_key(|group| group.group);
        jobs.extend(groups.iter().map(|group| Entry::new(phase, stats, group, elapsed, bins)));
    }
    let document = Document {
        version: VERSION,
        timestamp: 0,
        timestamp_ms: 0,
        time: "Thu Jan  1 00:00:00 1970",
        global_options: (!workload.global_options.is_empty()).then(|| typed(&workload.global_options)),
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
#[derive(Default)]
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
    #[serde(rename = "global options", skip_serializing_if = "Option::is_none")]
    global_options: Option<Options>,
    jobs: Vec<Entry>,
    disk_util: [(); 0],
}

#[derive(Default, Serialize)]
struct Entry {
    jobname: String,
    groupid: u32,
    error: u32,
    eta: u64,
    elapsed: u64,
    #[serde(rename = "job options", skip_serializing_if = "Option::is_none")]
    job_options: Option<Options>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    desc: Option<String>,
}

#[derive(Default, Serialize)]
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

#[derive(Default, Serialize)]
struct Sync {
    total_ios: u64,
    lat_ns: Latency,
}

#[derive(Default, Serialize)]
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
    fn new(phase: &Phase, stats: &PhaseStats, group: &GroupStats, elapsed: u64, bins: bool) -> Entry {
        let members = || stats.jobs.iter().zip(&phase.jobs).filter(|(job, _)| job.group == group.group);
        let span = |job: &JobStats| job.end.saturating_sub(job.start);
        let longest = members().map(|(job, _)| span(job)).max().unwrap_or(Ns::ZERO);
        // fio adds the rounded times of the jobs.
        let job_runtime = members().map(|(job, _)| span(job).0 / 1_000_000).sum();
        // fio names an entry after its first job and gives it the options and depth of its last one.
        let report = |job: Option<(&JobStats, &Job)>| job.map(|(_, job)| job.fio.clone()).unwrap_or_default();
        let (of_first, of_last) = (report(members().next()), report(members().next_back()));
        let percentiles = if of_last.percentiles.is_empty() { &PERCENTILES[..] } else { &of_last.percentiles };
        let Latencies { clat, lat, clat_percentiles, lat_percentiles } = of_last.latencies;
        let show =
            |shown: bool, more: bool| shown.then_some(if more { Show { percentiles, bins } } else { Show::NOTHING });
        let (of_clat, of_lat) = (show(clat, clat_percentiles), show(lat, lat_percentiles));
        let [read, write, trim] = [IoKind::Read, IoKind::Write, IoKind::Trim]
            .map(|kind| Direction::new(group.of(kind), longest, of_clat, of_lat));
        let flushes = group.of(IoKind::Flush);
        let of_flushes = show(clat, clat_percentiles || lat_percentiles);
        let ios = read.total_ios + write.total_ios + trim.total_ios;
        let measured = if clat { &group.kinds[..3] } else { &[] };
        let [latency_ns, latency_us, latency_ms] = latency_classes(measured, ios);
        Entry {
            jobname: of_first.jobname.to_string(),
            groupid: of_first.groupid,
            elapsed,
            job_options: of_last.options.map(|options| typed(&options)),
            read,
            write,
            trim,
            sync: Sync { total_ios: flushes.ios, lat_ns: Latency::new(&flushes.latency, of_flushes) },
            job_runtime,
            iodepth_level: depth_classes(members().map(|(job, plan)| (plan.iodepth, data_ios(job))), ios),
            iodepth_submit: one_per_call(ios),
            iodepth_complete: one_per_call(ios),
            latency_ns,
            latency_us,
            latency_ms,
            latency_depth: of_last.iodepth,
            latency_percentile: 100.0,
            desc: of_first.description.map(|text| text.to_string()),
            ..Entry::default()
        }
    }
}

impl Direction {
    fn new(kind: &KindStats, time: Ns, clat: Option<Show>, lat: Option<Show>) -> Direction {
        let runtime = if kind.ios == 0 { 0 } else { milliseconds(time) };
        // Integers and milliseconds, as fio computes them from what it prints.
        let bw_bytes = (u128::from(kind.bytes()) * 1000).checked_div(u128::from(runtime)).unwrap_or(0) as u64;
        let bw = bw_bytes / 1024;
        let iops = if runtime == 0 { 0.0 } else { kind.ios as f64 * 1000.0 / runtime as f64 };
        Direction {
            io_bytes: kind.bytes(),
            io_kbytes: kind.bytes() >> 10,
            bw_bytes,
            bw,
            iops,
            runtime,
            total_ios: kind.ios,
            clat_ns: Latency::new(&kind.latency, clat),
            lat_ns: Latency::new(&kind.latency, lat),
            bw_min: bw,
            bw_max: bw,
            bw_agg: if bw > 0 { 100.0 } else { 0.0 },
            bw_mean: bw_bytes as f64 / 1024.0,
            iops_min: iops as u64,
            iops_max: iops as u64,
            iops_mean: iops,
            ..Direction::default()
        }
    }
}

/// The fields of a distribution that are shown.
#[derive(Clone, Copy)]
struct Show<'a> {
    percentiles: &'a [f64],
    bins: bool,
}

impl Show<'_> {
    const NOTHING: Self = Show { percentiles: &[], bins: false };
}

impl Latency {
    /// All is zero of one that is not shown.
    fn new(h: &Histogram, show: Option<Show>) -> Latency {
        let Some(show) = show else { return Latency::default() };
        let n = h.count();
        let percentile = |&p: &f64| (format!("{p:.6}"), h.quantile(p / 100.0));
        Latency {
            min: h.min(),
            max: h.max(),
            mean: h.mean(),
            // fio estimates the deviation of what the sample was drawn from.
            stddev: if n > 1 { h.stddev() * (n as f64 / (n - 1) as f64).sqrt() } else { 0.0 },
            n,
            percentile: (!show.percentiles.is_empty() && n > 0)
                .then(|| Members(show.percentiles.iter().map(percentile).collect())),
            bins: (show.bins && n > 0).then(|| Members(h.buckets().map(|(top, n)| (top.to_string(), n)).collect())),
        }
    }
}

fn data_ios(job: &JobStats) -> u64 {
    job.kinds[..3].iter().map(|k| k.ios).sum()
}

/// Begun milliseconds of whole microseconds, as fio counts the time that its rates are taken over.
fn milliseconds(time: Ns) -> u64 {
    (time.0 / 1000).div_ceil(1000)
}

fn percent(n: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { n as f64 * 100.0 / of as f64 }
}

/// Options with a value; fio does not print the others.
fn typed(options: &[(String, String)]) -> Options {
    Members(options.iter().filter(|(_, value)| !value.is_empty()).cloned().collect())
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
mod tests;
