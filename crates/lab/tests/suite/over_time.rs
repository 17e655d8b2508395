// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs over time: the bins add up to the totals of the run, whatever its length, and keeping them changes no result.

use crate::made::{Made, document, run_all};
use readpath_config::experiment::parse;
use readpath_kit::Ns;
use readpath_lab::experiment::plan;
use readpath_results::{Chart, ChartKind, Document};
use readpath_run::Series;
use readpath_workload::IoKind;

/// Random reads and writes in 256 MiB, with HPB off and in host control, which begins without entries; a power cut
/// comes if `cut`.
fn made(ios: u64, cut: bool, over_time: bool) -> (Document, Vec<Made>) {
    let events = if cut { "[[event]]\nat_ms = 40\nwhat = \"power-cycle\"\noff_ms = 300.0\n" } else { "" };
    let text = format!(
        r#"
schema = "readpath-experiment/1"
name = "over_time"
title = "Over time"
description = "What is kept."
citations = []
device = "ufs21-64g"
seed = 1
[precondition]
layout = "random"
range = "files"
[workload]
kind = "fio"
text = """
[mix]
rw=randrw
ioengine=libaio
direct=1
iodepth=4
size=256m
number_ios={ios}
"""
[[variant]]
name = "off"
hpb = false
[[variant]]
name = "hcm"
hpb = true
mode = "host"
{events}
"#
    );
    let experiment = parse(&text, "over_time.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut plans = plan(&experiment, &[], &|_| Err(std::io::ErrorKind::NotFound.into())).expect("a plan");
    assert!(plans.iter().all(|p| p.setup.over_time), "an experiment of two variants has charts over time");
    plans.iter_mut().for_each(|p| p.setup.over_time = over_time);
    (document(&experiment, plans.clone()), run_all(plans).expect("runs"))
}

fn series(run: &Made) -> &Series {
    run.output.over_time.as_ref().expect("it was kept")
}

#[test]
fn keeping_a_run_over_time_changes_nothing() {
    for cut in [false, true] {
        let (mut kept, _) = made(4000, cut, true);
        let (plain, _) = made(4000, cut, false);
        assert_eq!(kept.rows, plain.rows, "cut: {cut}");
        let over_time = |id: &str| id.contains("_over_time");
        assert!(kept.charts.iter().any(|c| over_time(&c.id)) && !plain.charts.iter().any(|c| over_time(&c.id)));
        kept.charts.retain(|c| !over_time(&c.id));
        // Only what is kept over time has intervals.
        let bare = |charts: &[Chart]| -> Vec<_> {
            let points = |chart: &Chart| chart.series.iter().flat_map(|s| &s.points).map(|p| p.y).collect::<Vec<_>>();
            charts.iter().map(|chart| (chart.id.clone(), points(chart))).collect()
        };
        assert_eq!(bare(&kept.charts), bare(&plain.charts), "cut: {cut}");
        assert!(kept.charts[0].series[0].points[0].interval.is_some(), "means have intervals");
    }
}

#[test]
fn bins_add_up_to_the_run() {
    for ios in [300, 4000, 40_000] {
        let (_, runs) = made(ios, false, true);
        for run in &runs {
            let series = series(run);
            let phase = &run.output.phases[0];
            let at = format!("{ios} requests, {}: {} bins", run.plan.variant, series.bins.len());
            assert!((4..=64).contains(&series.bins.len()), "{at}");
            let lengths: Vec<u64> = std::iter::once(series.from)
                .chain(series.bins.iter().map(|b| b.to))
                .collect::<Vec<Ns>>()
                .windows(2)
                .map(|ends| (ends[1] - ends[0]).0)
                .collect();
            let (last, whole) = lengths.split_last().expect("bins");
            assert!(whole.iter().all(|length| *length == whole[0] && length >= last), "{at}: {lengths:?}");
            assert_eq!(series.bins.last().expect("a bin").to, phase.stats.end, "{at}");
            for (n, kind) in [IoKind::Read, IoKind::Write].into_iter().enumerate() {
                let of_jobs: u64 = phase.stats.jobs.iter().map(|job| job.of(kind).ios).sum();
                assert_eq!(series.bins.iter().map(|bin| bin.latency[n].ios).sum::<u64>(), of_jobs, "{at}");
                let most = phase.stats.jobs.iter().map(|job| job.of(kind).latency.max()).max().expect("a job");
                assert!(series.bins.iter().all(|bin| bin.latency[n].p50 <= bin.latency[n].p99), "{at}");
                assert!(series.bins.iter().all(|bin| bin.latency[n].p99.0 <= most + most / 64), "{at}");
            }
            for counted in ["slices_written", "map_misses", "hpb_hits", "programs", "erases"] {
                let of = |stats: &readpath_device::DeviceStats| {
                    stats.by_name().find(|(name, _)| *name == counted).expect("a counter").1
                };
                let sum: u64 = series.bins.iter().map(|bin| of(&bin.device)).sum();
                assert_eq!(sum, of(&phase.device), "{at}: {counted}");
            }
        }
    }
}

#[test]
fn regions_become_active_in_their_place() {
    let (doc, runs) = made(40_000, false, true);
    let [off, hcm] = &runs[..] else { panic!("two runs") };
    assert!(series(off).regions.is_none() && series(off).bins.iter().all(|bin| bin.valid == 0));
    let regions = series(hcm).regions.as_ref().expect("regions");
    let share = |valid: &[f64]| valid.iter().sum::<f64>() / valid.len() as f64;
    let (first, last) = (&regions.valid[0], regions.valid.last().expect("a bin"));
    assert!(share(first) < share(last), "host control begins without entries: {first:?} {last:?}");
    assert!(series(hcm).bins.last().expect("a bin").valid > 0);
    // The file has 256 MiB, and a margin of one sub-region.
    assert!(*regions.blocks.last().expect("an edge") <= (256 << 8) + (16 << 8), "{:?}", regions.blocks);
    let map = doc.charts.iter().find(|c| c.kind == ChartKind::Heat).expect("a heat map");
    assert_eq!(map.series.len() + 1, regions.blocks.len());
    assert!(map.series.iter().flat_map(|s| &s.points).all(|p| (0.0..=100.0).contains(&p.y)));
    // What is zero all the time has no line: HPB that is off takes no memory.
    let memory = doc.charts.iter().find(|c| c.id.starts_with("host_memory_over_time")).expect("host memory");
    let names: Vec<&str> = memory.series.iter().map(|s| &*s.name).collect();
    assert_eq!(names, ["hcm"]);
}

/// The same bits for any number of parallel runs.
#[test]
fn courses_do_not_depend_on_threads() {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    let (alone, _) = one.install(|| made(4000, true, true));
    let (beside, _) = made(4000, true, true);
    assert_eq!(alone.charts, beside.charts);
}

/// Figures of the long write of an erased drive with these settings: what went to the cache, and where it folds.
fn long_write(set: &str, size: &str) -> [Option<f64>; 3] {
    let text = format!(
        r#"
schema = "readpath-experiment/1"
name = "long_write"
title = "A long write"
description = "Its phases."
citations = []
device = "nvme-dramless-1t"
seed = 1
[precondition]
layout = "sequential"
range = "none"
[workload]
kind = "fio"
text = """
[fill]
ioengine=libaio
filename=/dev/nvme0n1
iodepth=4
direct=1
rw=write
bs=1m
size={size}
"""
[[variant]]
name = "drive"
hpb = false
set = {{ {set} }}
"#
    );
    let experiment = parse(&text, "long_write.toml").unwrap_or_else(|e| panic!("{e}"));
    let plans = plan(&experiment, &[], &|_| Err(std::io::ErrorKind::NotFound.into())).expect("a plan");
    let doc = document(&experiment, plans);
    ["cached_write", "direct_write_throughput", "folding_from"]
        .map(|name| doc.rows.iter().find(|row| row.metric.name() == name).map(|row| row.simulated))
}

/// The write buffer, which fills in the first bin, is 1 and 7 % of it here. Caches are whole superblocks.
#[test]
fn a_short_write_shows_the_size_of_the_cache() {
    for (set, size, gb) in [
        (r#""slc_cache.dynamic_mib" = 1000"#, "1300m", 1.17),
        (r#""slc_cache.dynamic_mib" = 5722, "write_buffer.size_kib" = 16384"#, "7g", 6.1),
    ] {
        let [cached, direct, folding] = long_write(set, size);
        assert!((cached.expect("a cache") / gb - 1.0).abs() < 0.01, "{set}: {cached:?}");
        assert!((1900.0..2100.0).contains(&direct.expect("a speed")) && folding.is_none(), "{direct:?} {folding:?}");
    }
}

/// A sixteenth of the drive, as `reproduce nvme_writes` has it, written until shortly behind the end of the cache: it
/// is emptied when the host has ended.
#[test]
fn a_cache_that_is_emptied_behind_the_last_write_is_no_folding() {
    let set = r#""lu.0.blocks" = 15261915, "geometry.pages_per_block" = 336, "geometry.blocks_per_plane" = 390,
        "slc_cache.dynamic_mib" = 16690"#;
    let [cached, direct, folding] = long_write(&set.replace('\n', ""), "16812m");
    assert!((cached.expect("a cache") / 17.5 - 1.0).abs() < 0.01, "{cached:?}");
    assert!((1900.0..2100.0).contains(&direct.expect("a speed")) && folding.is_none(), "{direct:?} {folding:?}");
}
