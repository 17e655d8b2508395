// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts of runs over virtual time, from what their recorders kept. It adds no figure that a run did not give.

use crate::figures::MIB;
use crate::long_write::LongWrite;
use crate::map_rows::static_host_bytes;
use readpath_config::DevicePreset;
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_results::{Chart, ChartKind, Error, SeriesStyle};
use readpath_run::{Bin, Series};

/// Variants of a case at most that have charts over time: more lines cannot be distinguished.
const MOST_VARIANTS: usize = 4;
/// Variants of a case at most that are kept over time, for charts and for the intervals of verdicts.
pub(crate) const MOST_KEPT: usize = 8;
/// Least bins of a chart over time.
const LEAST_BINS: usize = 4;
/// Columns of a map of regions at most.
const MOST_COLUMNS: usize = 32;

/// A run of one variant.
pub(crate) struct Timed<'a> {
    pub variant: &'a str,
    pub preset: &'a DevicePreset,
    pub series: &'a Series,
    /// A trace says when requests come, so that their rate is not the device's.
    pub is_paced: bool,
}

/// A bin, its length in seconds, and its run.
type Look<'a> = (&'a Bin, f64, &'a Timed<'a>);
/// A line of a chart: what it is called, and its value in a bin, if it has one.
type Course = (&'static str, fn(Look) -> Option<f64>);

/// What a chart shows.
struct Figure {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    log: bool,
    caption: &'static str,
    lines: &'static [Course],
}

const FIGURES: [Figure; 7] = [
    Figure {
        id: "throughput",
        title: "Throughput over time",
        unit: "MiB/s",
        log: false,
        caption: "Blocks that the device found or took in, over the time of each interval.",
        lines: &[
            ("reads", |l| Some(rate(read_blocks(l), l))),
            ("writes", |l| Some(rate(l.0.device.slices_written, l))),
        ],
    },
    Figure {
        id: "read_latency",
        title: "Read latency over time",
        unit: "us",
        log: true,
        caption: "Of the reads that ended in each interval.",
        lines: &[("p50", |l| us(l, 0, |l| l.p50)), ("p99", |l| us(l, 0, |l| l.p99))],
    },
    Figure {
        id: "write_latency",
        title: "Write latency over time",
        unit: "us",
        log: true,
        caption: "Of the writes that ended in each interval.",
        lines: &[("p50", |l| us(l, 1, |l| l.p50)), ("p99", |l| us(l, 1, |l| l.p99))],
    },
    Figure {
        id: "hits",
        title: "Map hits over time",
        unit: "% of blocks read",
        log: false,
        caption: "Blocks that did not wait for a map page, and of those the ones with a good HPB entry.",
        lines: &[
            ("map hits", |l| share(l, l.0.device.translated_reads() - l.0.device.map_misses)),
            ("HPB hits", |l| share(l, l.0.device.hpb_hits)),
        ],
    },
    Figure {
        id: "write_amplification",
        title: "Write amplification over time",
        unit: "blocks programmed for each written",
        log: false,
        caption: "All programs, also those of the map, the journal and of data that is moved. Intervals without writes \
                  are left out.",
        lines: &[("", |(bin, _, run)| {
            let programmed = bin.device.programs * u64::from(run.preset.device.geometry.slices_per_unit());
            (bin.device.slices_written > 0).then(|| programmed as f64 / bin.device.slices_written as f64)
        })],
    },
    Figure {
        id: "host_memory",
        title: "Host memory over time",
        unit: "MiB",
        log: false,
        caption: "Maps, bitmaps and tables, at the end of each interval.",
        lines: &[("", |(bin, _, run)| Some((bin.host_memory + static_host_bytes(run.preset)) as f64 / MIB))],
    },
    Figure {
        id: "upkeep",
        title: "Regions and collections over time",
        unit: "",
        log: false,
        caption: "Sub-regions whose entries the host could use, at the end of each interval; and superblocks that the \
                  device emptied for space in it.",
        lines: &[
            ("active sub-regions", |l| Some(f64::from(l.0.valid))),
            ("superblocks collected", |l| Some((l.0.device.collected + l.0.device.collected_idle) as f64)),
        ],
    },
];

fn read_blocks((bin, ..): Look) -> u64 {
    bin.device.translated_reads() + bin.device.buffer_hits + bin.device.unmapped_reads
}

fn rate(blocks: u64, (_, seconds, _): Look) -> f64 {
    (blocks * u64::from(BLOCK_BYTES)) as f64 / MIB / seconds
}

fn us((bin, ..): Look, kind: usize, of: fn(&readpath_run::Latency) -> Ns) -> Option<f64> {
    let latency = &bin.latency[kind];
    (latency.ios > 0).then(|| of(latency).0 as f64 / 1e3)
}

fn share((bin, ..): Look, blocks: u64) -> Option<f64> {
    let all = bin.device.translated_reads();
    (all > 0).then(|| 100.0 * blocks as f64 / all as f64)
}

/// Charts of the runs of a case. Lines that are zero all the time are left out, and charts without any other line. If
/// `named`, lines have the names of their variants also where there is only one.
pub(crate) fn charts(case: &str, runs: &[Timed], named: bool) -> Result<Vec<Chart>, Error> {
    let runs: Vec<&Timed> = runs.iter().filter(|run| run.series.bins.len() >= LEAST_BINS).collect();
    if runs.len() > MOST_VARIANTS {
        return Ok(Vec::new());
    }
    let named = named || runs.len() > 1;
    let mut charts = Vec::new();
    for run in &runs {
        charts.extend(LongWrite::of(run.series).map(|write| write.chart(case, run, named)).transpose()?);
    }
    for figure in &FIGURES {
        let is_rate_of_trace = figure.id == FIGURES[0].id && runs.iter().any(|run| run.is_paced);
        let title = if is_rate_of_trace { "Rate of the trace over time" } else { figure.title };
        let mut chart =
            new(figure.id, case, title, ChartKind::Lines).axes("virtual time, s", figure.unit).caption(figure.caption);
        chart.y_log = figure.log;
        for run in &runs {
            for (line, value) in figure.lines {
                let mut points = Vec::new();
                let mut from = run.series.from;
                for bin in &run.series.bins {
                    let seconds = (bin.to - from).as_secs_f64();
                    from = bin.to;
                    let at = (bin.to - run.series.from).as_secs_f64();
                    let value = Some((bin, seconds, *run)).filter(|_| seconds > 0.0).and_then(|look| value(look));
                    points.extend(value.map(|value| (at, value)));
                }
                let name = match (named, *line) {
                    (true, "") => run.variant.to_owned(),
                    (true, line) => format!("{}, {line}", run.variant),
                    (false, line) => line.to_owned(),
                };
                if points.iter().any(|&(_, value)| value > 0.0) {
                    chart.series(name, SeriesStyle::Plain, points)?;
                }
            }
        }
        if !chart.series.is_empty() {
            charts.push(chart);
        }
    }
    for run in runs {
        charts.extend(map_of_regions(case, run, named)?);
    }
    Ok(charts)
}

fn new(id: &str, case: &str, title: &str, kind: ChartKind) -> Chart {
    Chart::new(format!("{id}_over_time: {case}"), format!("{title}, {case}"), kind)
}

/// What the host had of the map, by address and time.
fn map_of_regions(case: &str, run: &Timed, named: bool) -> Result<Option<Chart>, Error> {
    let Some(regions) = &run.series.regions else { return Ok(None) };
    let mut chart = new("regions", case, "Regions over time", ChartKind::Heat)
        .axes("virtual time, s", "% of the map that the host could use")
        .rows("logical address, GiB")
        .caption(
            "By address, at the end of each interval. Addresses above and below never had entries at the host. A row \
             is not full where sub-regions are inactive, or their maps are being loaded.",
        );
    if named {
        chart.id = format!("{}: {}", chart.id, run.variant);
        chart.title = format!("{}, {}", chart.title, run.variant);
    }
    let every = run.series.bins.len().div_ceil(MOST_COLUMNS);
    for (row, edges) in regions.blocks.windows(2).enumerate() {
        let gib = |block: u64| block as f64 / f64::from(1 << 18);
        let bins = run.series.bins.iter().zip(&regions.valid).enumerate();
        // The last bin ends the last column, which may have fewer bins.
        let ends = bins.filter(|(i, _)| (i + 1) % every == 0 || i + 1 == run.series.bins.len());
        let points = ends.map(|(_, (bin, valid))| ((bin.to - run.series.from).as_secs_f64(), 100.0 * valid[row]));
        let name = format!("{:.3} to {:.3}", gib(edges[0]), gib(edges[1]));
        chart.series(name, SeriesStyle::Plain, points)?;
    }
    Ok(Some(chart))
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_device::DeviceStats;

    #[test]
    fn the_rate_of_a_bin_is_over_its_own_time() {
        let preset = readpath_config::device::load("ufs21-64g", &|_| Err(std::io::Error::other("none"))).unwrap();
        let device = DeviceStats { slices_written: 512, ..DeviceStats::default() };
        let bin = |ms| Bin { to: Ns::from_ms(ms), device, host_memory: 0, valid: 0, latency: Default::default() };
        let series = Series { from: Ns::from_ms(500), bins: [1500, 2500, 3500, 4000].map(bin).into(), regions: None };
        let run = |is_paced| Timed { variant: "A", preset: &preset, series: &series, is_paced };
        let drawn = |is_paced| charts("c", &[run(is_paced)], false).unwrap();
        let charts = drawn(false);
        let chart = charts.iter().find(|chart| chart.id == "throughput_over_time: c").expect("a chart");
        assert_eq!(
            [&*chart.title, &*drawn(true)[0].title],
            ["Throughput over time, c", "Rate of the trace over time, c"]
        );
        let [writes] = &chart.series[..] else { panic!("{chart:?}") };
        assert_eq!((writes.name.as_str(), writes.points.len()), ("writes", 4));
        assert_eq!([0, 1, 2, 3].map(|i| writes.points[i].y), [2.0, 2.0, 2.0, 4.0], "MiB/s");
    }
}
