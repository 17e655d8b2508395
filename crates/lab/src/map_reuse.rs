// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory a map needs under a trace: makes a result document of curves of map hits, and compares them with the
//! simulator's map cache under the same requests. It opens no file.

use crate::figures::MIB;
use crate::map_gain::{self, GainRow};
use crate::map_model::MapModel;
use crate::question::{Answer, AskError, Done, Point, Question, Shown};
use crate::replay::{Mode, Replay, ReplayCase, ReplayOptions, ReplayVariant};
use readpath_config::{ConfigFileError, DevicePreset, Override};
use readpath_device::Layout;
use readpath_host::HostConfig;
use readpath_kit::BLOCK_BYTES;
use readpath_results::{Chart, ChartKind, Document, Error, Metric, Note, Origin, SeriesStyle, metric};
use readpath_run::LUN;
use readpath_workload::IoKind;
use readpath_workload::trace::mrc::{MapReuse, Of, SpanCurves};
use readpath_workload::trace::reuse::Curve;
use readpath_workload::trace::{Loaded, Request, TraceError};
use std::sync::Arc;

/// The gain, in points, below which more memory is not worth it: [`MapOf::knee`].
pub(crate) const KNEE_POINTS: f64 = 1.0;

/// A kind of map: pages of a size, and what an entry takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapOf {
    /// Name of the map.
    pub name: String,
    /// Bytes of address space that a page translates.
    pub span_bytes: u64,
    /// Bytes of an entry, of a block of 4 KiB each.
    pub entry_bytes: u64,
}

impl MapOf {
    /// Map pages of a device, with entries of 4 bytes: in SRAM, or in memory of the host that the device uses.
    pub fn pages(page_bytes: u64) -> MapOf {
        let name = format!("pages of {}", size(page_bytes));
        MapOf { name, span_bytes: page_bytes / 4 * u64::from(BLOCK_BYTES), entry_bytes: 4 }
    }

    /// Regions of HPB, with entries of 8 bytes, which the host sends with a read.
    pub fn regions(region_bytes: u64) -> MapOf {
        MapOf { name: format!("HPB regions of {}", size(region_bytes)), span_bytes: region_bytes, entry_bytes: 8 }
    }

    /// Memory of a page or region.
    pub fn page_bytes(&self) -> u64 {
        self.span_bytes / u64::from(BLOCK_BYTES) * self.entry_bytes
    }

    /// Share of accesses that hit a map of so many bytes, in percent; `None` without accesses.
    pub fn hits(&self, curve: &Curve, bytes: u64) -> Option<f64> {
        curve.hit_ratio(bytes / self.page_bytes()).map(|ratio| 100.0 * ratio)
    }

    /// The memory of a map that misses only what is accessed for the first time.
    pub fn enough(&self, curve: &Curve) -> u64 {
        curve.enough() * self.page_bytes()
    }

    /// The smallest map, by powers of two, from which on no doubling gains a point. `None` if nothing hits.
    pub fn knee(&self, curve: &Curve) -> Option<u64> {
        let last = self.enough(curve).next_power_of_two();
        let hits = |bytes| self.hits(curve, bytes).unwrap_or(0.0);
        let mut knee = last;
        while knee > 1 && hits(knee) - hits(knee / 2) < KNEE_POINTS {
            knee /= 2;
        }
        (curve.enough() > 0).then_some(knee.max(self.page_bytes()).min(self.enough(curve)))
    }
}

/// A number of bytes that is a multiple of a binary unit.
pub fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ => format!("{} KiB", bytes.div_ceil(1 << 10)),
    }
}

/// A trace and its curves, one entry for each kind of map.
pub struct MapReuseCase {
    /// Name for tables.
    pub name: String,
    /// Kinds of maps, and what the trace does with each.
    pub maps: Vec<(MapOf, SpanCurves)>,
    /// The simulator's map cache under the same requests.
    pub check: Option<Check>,
    /// What a map of the size of the knee would bring on a device; empty without such a question.
    pub gain: Vec<GainRow>,
}

impl MapReuseCase {
    /// The sizes that tables show: powers of two from one page of the smallest kind to where nothing more is gained.
    pub fn sizes(&self) -> Vec<u64> {
        let curves = || self.maps.iter().flat_map(|(map, spans)| spans.curves.iter().map(move |curve| (map, curve)));
        let least = self.maps.iter().map(|(map, _)| map.page_bytes()).min().unwrap_or(1).next_power_of_two();
        let most = curves().map(|(map, curve)| map.enough(curve)).max().unwrap_or(0).next_power_of_two();
        std::iter::successors(Some(least), |size| size.checked_mul(2)).take_while(|size| *size <= most).collect()
    }
}

/// The map cache of the simulator, and the curve of reads.
pub struct Check {
    /// The device's map.
    pub map: MapOf,
    /// The device has runs of the map or reads ahead in it: instead of the curve, a model of both, without time.
    pub is_predicted: bool,
    /// Sizes, with hits in percent: by the curve, and simulated at each of [`CHECK_DEPTHS`].
    pub rows: Vec<(u64, f64, [f64; 2])>,
}

/// Requests under way in a check.
pub const CHECK_DEPTHS: [u32; 2] = [1, 16];

impl Check {
    /// The largest deviation of the simulator at each depth, in points.
    pub fn deviations(&self) -> [f64; 2] {
        [0, 1].map(|i| self.rows.iter().map(|(_, curve, simulated)| (simulated[i] - curve).abs()).fold(0.0, f64::max))
    }
}

/// Why there is no check.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The device cannot have a map cache of this size.
    #[error(transparent)]
    Device(#[from] ConfigFileError),
    /// The trace takes too much memory.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Whether the simulator's map cache has the hits that the curve of reads says, as a question: replays of the reads of
/// a case on a device without HPB or host memory whose map cache is of each size in turn. The device has its map in
/// flash and SRAM: [`can_gain`](crate::map_gain::can_gain).
///
/// Reads alone, on both sides: a read of what was written lately needs no map page, since the device has its entry in
/// the write buffer or the table of changes, and how long it stays there is a matter of the device.
#[derive(Clone, Debug)]
pub struct Checking {
    map: MapOf,
    case: String,
    is_predicted: bool,
    /// Sizes, with hits in percent by the curve, or as predicted.
    sizes: Vec<(u64, f64)>,
    accesses: u64,
    points: Vec<Point>,
}

impl Checking {
    /// The check of a case on a device.
    ///
    /// # Errors
    /// The device cannot be, or the trace takes more than `limit_bytes`.
    pub fn new(case: &ReplayCase, base: &DevicePreset, limit_bytes: u64) -> Result<Self, CheckError> {
        let map = MapOf::pages(u64::from(base.device.map_page_bytes));
        let case = Arc::new(reads_of(case, base.seen_units()[usize::from(LUN)].blocks));
        let mut reuse = MapReuse::new(&[map.span_bytes], None, limit_bytes);
        for io in &case.trace.ios {
            let block = u64::from(BLOCK_BYTES);
            let (offset, bytes) = (u64::from(io.block) * block, u64::from(io.blocks) * block);
            reuse.add(&Request { offset, bytes, kind: io.kind, ..Request::NONE })?;
        }
        let curve = reuse.finish()[0].of(Of::Reads).clone();
        // No size if no page is read twice.
        let most = if curve.enough() == 0 { 0 } else { map.enough(&curve).next_power_of_two() };
        let sizes = std::iter::successors(Some(map.page_bytes()), |size| size.checked_mul(2));
        // Pages that are read ahead need frames of their own.
        let least = map.page_bytes() * u64::from(base.device.map_read_ahead);
        let sizes: Vec<u64> = sizes.take_while(|size| *size <= most).filter(|size| *size > least).collect();
        let variant = |bytes: &u64| {
            let kib = ("map_cache.size_kib", (bytes >> 10).to_string());
            // Host memory would hold what SRAM has not.
            let none = base.device.host_map().map(|_| ("host.max_host_mem_mib", "0".to_owned()));
            let keys = [Some(kib), none].into_iter().flatten();
            let keys = keys.map(|(key, value)| Override::new(key, &value, "")).collect::<Result<Vec<_>, _>>()?;
            let preset = base.with_overrides(&keys)?;
            let host = HostConfig { hpb: None, ..preset.host };
            let (limits, events) = (Vec::new(), Vec::new());
            Ok(Arc::new(ReplayVariant { name: size(*bytes), preset, host, limits, events }))
        };
        let variants = sizes.iter().map(variant).collect::<Result<Vec<_>, ConfigFileError>>()?;
        let at_depth = |iodepth| {
            let (mode, layout) = (Mode::Closed { iodepth }, Layout::Sequential);
            let options = ReplayOptions { mode, layout, seed: 1, encoded: false, over_time: false };
            Replay::all(std::slice::from_ref(&case), &variants, &options)
        };
        let points = CHECK_DEPTHS.into_iter().flat_map(at_depth).map(Point::Replay).collect();
        let is_predicted = MapModel::is_for(&base.device);
        let hits = |variant: &ReplayVariant, bytes: u64| match is_predicted {
            true => {
                let mut model = MapModel::new(&variant.preset.device, &case.preloaded(&variant.preset));
                case.trace.ios.iter().for_each(|io| model.read(io.block, u32::from(io.blocks)));
                100.0 * (1.0 - model.loads as f64 / curve.accesses.max(1) as f64)
            }
            false => map.hits(&curve, bytes).unwrap_or(0.0),
        };
        let sizes = variants.iter().zip(sizes).map(|(variant, bytes)| (bytes, hits(variant, bytes))).collect();
        Ok(Checking { map, case: case.name.clone(), is_predicted, sizes, accesses: curve.accesses, points })
    }

    /// What the runs show.
    pub fn check(&self, done: &[Done<f64>]) -> Check {
        let hits = |depth: usize, size: usize| {
            // A page that several reads wait for is loaded once.
            let loads = done.get(depth * self.sizes.len() + size).and_then(|loads| loads.as_ref().ok()).copied();
            100.0 * (1.0 - loads.unwrap_or(f64::NAN) / self.accesses.max(1) as f64)
        };
        let rows =
            self.sizes.iter().enumerate().map(|(i, (bytes, counted))| (*bytes, *counted, [hits(0, i), hits(1, i)]));
        Check { map: self.map.clone(), is_predicted: self.is_predicted, rows: rows.collect() }
    }
}

impl Question for Checking {
    /// Map pages that were loaded because a read missed them.
    type Figures = f64;

    fn title(&self) -> String {
        format!("Map hits of the simulator: {}", self.case)
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn figures(&self, shown: Shown<'_>) -> Result<f64, Error> {
        let Shown::Replay(_, run) = shown else { unreachable!("all points are replays") };
        let phase = run.phases.last().expect("a replay has its trace");
        let device = &phase.output.device;
        Ok((device.map_loads - device.map_loads_ahead) as f64)
    }

    fn answer(&self, done: &[Done<f64>]) -> Result<Answer, AskError> {
        let mut doc = Document::new("map_check", self.title());
        check_rows(&mut doc, &self.case, &self.check(done))?;
        Ok(Answer::new(doc, done.len()))
    }
}

fn check_rows(doc: &mut Document, case: &str, check: &Check) -> Result<(), Error> {
    for (bytes, counted, simulated) in &check.rows {
        if check.is_predicted {
            let variant = format!("{}, predicted with runs and reading ahead", check.map.name);
            doc.row(case, &variant, hits_at(*bytes), *counted, Origin::Predicted)?;
        }
        for (depth, hits) in CHECK_DEPTHS.iter().zip(simulated) {
            let variant = format!("{}, simulated at depth {depth}", check.map.name);
            doc.row(case, &variant, hits_at(*bytes), *hits, Origin::Predicted)?;
        }
    }
    Ok(())
}

/// The reads of a case; all that they read is there from the start.
fn reads_of(case: &ReplayCase, blocks: u32) -> ReplayCase {
    let mut reads = Loaded::clone(&case.trace);
    reads.ios.retain(|io| io.kind == IoKind::Read);
    let mut ranges: Vec<(u32, u32)> = reads.ios.iter().map(|io| (io.block, io.block + u32::from(io.blocks))).collect();
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let joins = next.0 <= last.1;
        last.1 = if joins { last.1.max(next.1) } else { last.1 };
        joins
    });
    reads.preload = ranges.into_iter().map(|(first, end)| (first, end - first)).collect();
    ReplayCase::new(&case.name, Vec::new(), Arc::new(reads), blocks)
}

/// The document of these traces, without what depends on the machine.
///
/// # Errors
/// A figure is none.
pub fn document(cases: &[MapReuseCase], notes: &[Note]) -> Result<Document, Error> {
    let mut doc = Document::new("map_reuse", "Map hits by memory");
    doc.description = "How often a least-recently-used map of any size would hit, counted in the traces in one pass. \
                       Nothing was simulated but the rows that say so."
        .to_owned();
    doc.notes = notes.to_vec();
    for case in cases {
        let sizes = case.sizes();
        for (map, spans) in &case.maps {
            for of in Of::ALL {
                let curve = spans.of(of);
                if curve.accesses == 0 {
                    continue;
                }
                let variant = format!("{}, {}", map.name, of.name());
                let mut add = |metric: Metric, value: f64| {
                    doc.row(&case.name, &variant, metric, value, Origin::Measured).map(drop)
                };
                add(metric::MAP_PAGES_TOUCHED, curve.pages as f64)?;
                if let Some(knee) = map.knee(curve) {
                    add(metric::MAP_KNEE, knee as f64)?;
                    add(metric::MAP_ENOUGH, map.enough(curve) as f64)?;
                }
                let least = map.page_bytes() * spans.least(of);
                for bytes in sizes.iter().filter(|bytes| **bytes >= least) {
                    add(hits_at(*bytes), map.hits(curve, *bytes).unwrap_or(0.0))?;
                }
            }
        }
        if let Some(check) = &case.check {
            check_rows(&mut doc, &case.name, check)?;
        }
        map_gain::rows(&mut doc, &case.name, &case.gain)?;
        charts(&mut doc, case)?;
    }
    let gained = cases.iter().filter(|case| !case.gain.is_empty());
    doc.verdict =
        gained.flat_map(|case| map_gain::verdict(&case.name, &case.gain, notes)).take(MOST_VERDICTS).collect();
    Ok(doc)
}

/// Traces at most that have a sentence in the verdict, the first.
const MOST_VERDICTS: usize = 3;

fn hits_at(bytes: u64) -> Metric {
    metric::MAP_HITS_AT.with([&(bytes >> 10).to_string()])
}

/// Points of a curve in a chart, at most.
const MOST_POINTS: usize = 400;

fn charts(doc: &mut Document, case: &MapReuseCase) -> Result<(), Error> {
    let place = doc.charts.len();
    for of in Of::ALL {
        let id = format!("hits-{}-{place}", of.name());
        let title = match of {
            Of::Reads => format!("{}: reads", case.name),
            Of::Writes => format!("{}: writes", case.name),
            Of::All => format!("{}: one map for reads and writes", case.name),
        };
        let mut chart = Chart::new(id, title, ChartKind::Step)
            .axes("MiB", "% of accesses")
            .x_log()
            .caption("Accesses to map pages that a least-recently-used map of so much memory holds.");
        for (map, spans) in &case.maps {
            let curve = spans.of(of);
            if curve.steps.is_empty() {
                continue;
            }
            let every = curve.steps.len().div_ceil(MOST_POINTS);
            let least = spans.least(of);
            let kept =
                |at: &usize| (at.is_multiple_of(every) || at + 1 == curve.steps.len()) && curve.steps[*at].0 >= least;
            let points = (0..curve.steps.len()).filter(kept).map(|at| {
                let (pages, hits) = curve.steps[at];
                ((pages * map.page_bytes()) as f64 / MIB, 100.0 * hits / curve.accesses as f64)
            });
            chart.series(&map.name, SeriesStyle::Plain, points)?;
        }
        if let Some(check) = case.check.as_ref().filter(|_| of == Of::Reads) {
            for (i, depth) in CHECK_DEPTHS.iter().enumerate() {
                let points = check.rows.iter().map(|(bytes, _, hits)| (*bytes as f64 / MIB, hits[i]));
                let name = format!("simulated, depth {depth}");
                chart.series(name, SeriesStyle::Simulated, points)?;
            }
        }
        if !chart.series.is_empty() {
            doc.charts.push(chart);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_where_the_last_doubling_gains_a_point() {
        let map = MapOf::pages(16 << 10);
        // A plateau from 2 to 63 pages, and half a point behind 64.
        let steps = vec![(1, 500.0), (2, 503.0), (64, 900.0), (1000, 905.0)];
        let mut curve = Curve { accesses: 1000, pages: 1100, steps };
        assert_eq!(map.knee(&curve), Some(64 * (16 << 10)));
        // A last doubling that gains a point needs no more than what hits all.
        curve.steps[3].1 = 950.0;
        assert_eq!(map.knee(&curve), Some(1000 * (16 << 10)));
        assert_eq!(map.enough(&curve), 1000 * (16 << 10));
        curve.steps.clear();
        assert_eq!(map.knee(&curve), None);
    }
}
