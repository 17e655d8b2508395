// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures that every kind of run has, from what device, host and jobs counted. It knows no case, variant or document.

use crate::life;
use readpath_device::{DeviceConfig, DeviceStats, Wear};
use readpath_host::{HostConfig, HpbCounters};
use readpath_kit::Histogram;
use readpath_results::metric::{self, Figure, Requests};
use readpath_results::{Case, Metric, Part};
use readpath_run::{GroupStats, KindStats, UnitOutput, ZoneCounts};
use readpath_workload::{IoKind, Workload};

pub(crate) const MIB: f64 = (1u64 << 20) as f64;
/// The note on figures of writes.
pub(crate) const WRITES: &str =
    "Writes pay for garbage collection, wear levelling, map pages, journal and checkpoints.";
/// Points of a latency distribution in a chart.
const CDF_POINTS: usize = 300;

/// Requests of a kind, as metrics have them.
pub(crate) fn requests(kind: IoKind) -> Requests {
    match kind {
        IoKind::Read => Requests::Read,
        IoKind::Write => Requests::Write,
        IoKind::Trim => Requests::Trim,
        IoKind::Flush => Requests::Flush,
    }
}

pub(crate) const KINDS: [IoKind; 4] = [IoKind::Read, IoKind::Write, IoKind::Trim, IoKind::Flush];

/// Shares of the blocks read whose place in flash had to be found, in %; none if there are none.
pub(crate) fn hit_ratios(device: &DeviceStats, of_host_map: bool) -> impl Iterator<Item = (Metric, f64)> {
    let translated = device.translated_reads();
    let hits = [
        (metric::MAP_HIT_RATIO, translated - device.map_misses),
        (metric::HPB_HIT_RATIO, device.hpb_hits),
        (metric::HOST_MAP_HIT_RATIO, device.host_map_hits),
    ];
    let shown = if translated == 0 { 0 } else { 2 + usize::from(of_host_map) };
    hits.into_iter().take(shown).map(move |(metric, n)| (metric, 100.0 * n as f64 / translated as f64))
}

/// What runs of the map and reading ahead in it brought, for a device that has them.
pub(crate) fn runs_and_ahead(device: &DeviceStats, config: &DeviceConfig) -> Vec<(Metric, f64)> {
    let mut metrics = Vec::new();
    let translated = device.translated_reads();
    if config.map_runs_bytes > 0 && translated > 0 {
        metrics.push((metric::RUN_HIT_RATIO, 100.0 * device.run_hits as f64 / translated as f64));
    }
    if config.map_read_ahead > 0 {
        metrics.push((metric::MAP_LOADS_AHEAD, device.map_loads_ahead as f64));
        metrics.push((metric::MAP_AHEAD_UNUSED, device.map_ahead_unused as f64));
    }
    metrics
}

/// Counters of the host's HPB, and those of its policy.
pub(crate) fn hpb_counts(hpb: &HpbCounters, host: &HostConfig) -> impl Iterator<Item = (Metric, f64)> {
    let managed = host.hpb.is_some_and(|hpb| hpb.policy.is_some());
    let counts = hpb.by_name().chain(hpb.managed_by_name().into_iter().filter(move |_| managed));
    counts.map(|(name, count)| (counter(name), count as f64))
}

/// The metric of a counter, which has its name.
pub(crate) fn counter(name: &'static str) -> Metric {
    Metric::new(name, "")
}

/// What rows of one of several logical units are about.
pub(crate) fn unit_case(case: &Case, unit: &UnitOutput) -> Case {
    case.with(Part::Unit, &format!("logical unit {}", unit.lun))
}

/// What the host's HPB of one of several logical units did.
pub(crate) fn unit_figures(unit: &UnitOutput, host: &HostConfig) -> impl Iterator<Item = (Metric, f64)> {
    let memory = (unit.memory.peak_bytes + unit.memory.table_bytes) as f64;
    hpb_counts(&unit.hpb, host).chain([(metric::HOST_MEMORY, memory)])
}

/// What the device did for the writes of a phase. The first ratio counts data, moved data included,
/// for each block that was programmed for the host; the second counts all programs for each block that it wrote. Both
/// count what a flush of the WriteBooster buffer moves. The counts behind it are what programs are made of.
pub(crate) fn write_metrics(device: &DeviceStats, config: &DeviceConfig) -> Vec<(Metric, f64)> {
    let programmed = (device.programs * u64::from(config.geometry.slices_per_unit())) as f64;
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut metrics = Vec::new();
    if let Some(ratio) = device.write_amplification() {
        metrics.push((metric::DATA_WRITE_AMPLIFICATION, ratio));
    }
    if device.slices_written > 0 {
        metrics.push((metric::WRITE_AMPLIFICATION, programmed / device.slices_written as f64));
    }
    metrics.extend(life::programs(device, config));
    metrics.extend([
        (metric::PROGRAMS, device.programs as f64),
        (metric::SLICES_MOVED, device.slices_moved as f64),
        (metric::SLICES_PADDED, device.slices_padded as f64),
        (metric::MAP_WRITES, device.map_writes as f64),
        (metric::JOURNAL_WRITES, device.journal_writes as f64),
        (metric::CHECKPOINT_WRITES, device.checkpoint_writes as f64),
        (metric::ERASES, device.erases as f64),
        (metric::SUPERBLOCKS_COLLECTED, (device.collected + device.collected_idle) as f64),
        (metric::SUPERBLOCKS_LEVELLED, device.levelled as f64),
        (metric::STALL_SPACE, ms(device.stall_space_ns)),
        (metric::STALL_MAP, ms(device.stall_map_ns)),
        (metric::STALL_JOURNAL, ms(device.stall_journal_ns)),
        (metric::STALL_CHECKPOINT, ms(device.stall_checkpoint_ns)),
        (metric::STALL_FLASH, ms(device.stall_flash_ns)),
    ]);
    // Counts that are zero for most devices.
    let seldom = [
        (metric::SUPERBLOCKS_COLLECTED_IDLE, device.collected_idle as f64),
        (metric::ZONE_EARLY_FLUSHES, device.zone_early_flushes as f64),
        (metric::SUPERBLOCKS_REFRESHED, device.refreshed as f64),
        (metric::PROGRAM_FAILURES, device.program_failures as f64),
        (metric::ERASE_FAILURES, device.erase_failures as f64),
    ];
    metrics.extend(seldom.into_iter().filter(|(_, count)| *count > 0.0));
    if config.slc_cache.is_some() {
        metrics.extend([
            (metric::SLICES_BOOSTED, device.slices_boosted as f64),
            (metric::SLICES_FLUSHED, device.slices_flushed as f64),
            (metric::SUPERBLOCKS_FLUSHED, device.flushed as f64),
            (metric::SLC_ERASES, device.slc_erases as f64),
        ]);
    }
    if device.slc_map_erases > 0 {
        metrics.push((metric::SLC_MAP_ERASES, device.slc_map_erases as f64));
    }
    metrics
}

/// What the host needs to place blocks in zones.
pub(crate) fn zone_map(zones: Option<&ZoneCounts>) -> Option<(Metric, f64)> {
    zones.filter(|zones| zones.map_bytes > 0).map(|zones| (metric::HOST_ZONE_MAP, zones.map_bytes as f64))
}

/// What the host did in zones.
pub(crate) fn zone_metrics(zones: Option<&ZoneCounts>) -> impl Iterator<Item = (Metric, f64)> {
    let of = |zones: &ZoneCounts| {
        let mut metrics = vec![(metric::ZONES_RESET, zones.resets as f64)];
        if zones.written > 0 {
            let all = (zones.written + zones.moved) as f64;
            metrics.push((metric::HOST_WRITE_AMPLIFICATION, all / zones.written as f64));
        }
        metrics
    };
    zones.map(of).unwrap_or_default().into_iter()
}

/// How worn the device is. All of its life counts, and superblocks of anchors apart.
pub(crate) fn wear_metrics(wear: &Wear) -> Vec<(Metric, f64)> {
    let mut metrics = vec![
        (metric::ERASE_COUNT_MEAN, wear.mean),
        (metric::ERASE_COUNT_MIN, f64::from(wear.min)),
        (metric::ERASE_COUNT_MAX, f64::from(wear.max)),
        (metric::ERASE_COUNT_SPREAD, wear.spread_percent()),
        (metric::ANCHOR_ERASE_COUNT_MAX, f64::from(wear.anchors_max)),
    ];
    let bad =
        [(metric::BAD_BLOCKS, f64::from(wear.bad_blocks)), (metric::SUPERBLOCKS_RETIRED, f64::from(wear.retired))];
    metrics.extend(bad.into_iter().filter(|(_, count)| *count > 0.0));
    metrics
}

/// Latencies in microseconds.
pub(crate) fn latencies(stats: &KindStats) -> [(Figure, f64); 4] {
    let l = &stats.latency;
    [
        (Figure::LatencyMean, l.mean() / 1e3),
        (Figure::LatencyP50, l.quantile(0.5) as f64 / 1e3),
        (Figure::LatencyP99, l.quantile(0.99) as f64 / 1e3),
        (Figure::LatencyP99_9, l.quantile(0.999) as f64 / 1e3),
    ]
}

/// Latencies at the percentiles that the jobs of a group ask for and every result does not have anyway.
pub(crate) fn asked_percentiles(
    workload: &Workload,
    group: &GroupStats,
    stats: &KindStats,
    of: Requests,
) -> impl Iterator<Item = (Metric, f64)> {
    const ALWAYS: [f64; 3] = [50.0, 99.0, 99.9];
    let jobs = workload.phases.iter().flat_map(|phase| &phase.jobs).filter(|job| job.group == group.group);
    let mut asked: Vec<f64> = jobs.flat_map(|job| job.fio.percentiles.iter().copied()).collect();
    asked.sort_by(f64::total_cmp);
    asked.dedup();
    asked.retain(|percent| !ALWAYS.contains(percent));
    asked.into_iter().map(move |percent| {
        let name = percent.to_string().replace('.', "_");
        (of.of(Figure::LatencyPercentile).with([&name]), stats.latency.quantile(percent / 100.0) as f64 / 1e3)
    })
}

/// Shares in percent of latencies (us) that are no longer.
pub(crate) fn distribution(all: &Histogram) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut seen = 0;
    let step = 100.0 / CDF_POINTS as f64;
    let mut next = 0.0;
    for (ns, n) in all.buckets() {
        seen += n;
        let share = 100.0 * seen as f64 / all.count() as f64;
        if share >= next || seen == all.count() {
            points.push((ns as f64 / 1e3, share));
            next = share + step;
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_no_miss_of_the_map_is_a_hit() {
        let device = DeviceStats {
            map_hits: 10,
            recent_hits: 20,
            host_map_hits: 30,
            map_misses: 50,
            hpb_hits: 90,
            ..DeviceStats::default()
        };
        let ratios = |of_host_map| hit_ratios(&device, of_host_map).map(|(_, percent)| percent).collect::<Vec<_>>();
        assert_eq!((ratios(false), ratios(true)), (vec![75.0, 45.0], vec![75.0, 45.0, 15.0]));
        assert_eq!(hit_ratios(&DeviceStats::default(), true).count(), 0);
    }

    #[test]
    fn the_host_has_a_write_amplification_of_its_own() {
        let counts = ZoneCounts { resets: 3, written: 100, moved: 50, map_bytes: 8 };
        let of = |counts| zone_metrics(counts).collect::<Vec<_>>();
        let all = [(metric::ZONES_RESET, 3.0), (metric::HOST_WRITE_AMPLIFICATION, 1.5)];
        assert_eq!(of(Some(&counts)), all);
        assert_eq!(zone_map(Some(&counts)), Some((metric::HOST_ZONE_MAP, 8.0)));
        let unmapped = ZoneCounts { written: 0, moved: 0, map_bytes: 0, ..counts };
        assert_eq!(of(Some(&unmapped)), all[..1]);
        assert!(zone_map(Some(&unmapped)).is_none() && of(None).is_empty());
    }
}
