// SPDX-License-Identifier: MIT OR Apache-2.0
//! The gain of a map of the size at the knee of a trace's curve: the same trace with that much SRAM, with as much host
//! memory that the device reads itself, and with HPB; and on zones behind a log-structured mapper, which need no map.
//! It opens no file.

use crate::map_rows::{peak_host_bytes, static_host_bytes};
use crate::question::{Answer, AskError, Done, Point, Question, Shown};
use crate::replay::{Mode, Replay, ReplayCase, ReplayOptions, ReplayRun, ReplayVariant};
use crate::verdict::{self, Measured, Memory, Outcome};
use readpath_config::experiment::Variant;
use readpath_config::{ConfigFileError, DevicePreset, GivenKey};
use readpath_device::{DeviceConfig, Layout, LuConfig, Protocol, ZoneConfig, ZoneLayout, ZoneRule};
use readpath_host::{ZoneMapper, ZoneMapping};
use readpath_kit::Histogram;
use readpath_results::{Document, Error, Note, NoteKind, metric};
use readpath_run::PhaseOutput;
use readpath_workload::IoKind;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A place for the map, and how reads went.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GainRow {
    /// The place, and how large it was.
    pub place: String,
    /// Memory for maps on the host, in bytes.
    pub host_bytes: u64,
    /// Memory for map pages in SRAM or DRAM of the device, in bytes.
    pub device_bytes: u64,
    /// Mean latency of a read.
    pub read_mean_us: f64,
    /// The latency that one read in a hundred exceeds.
    pub read_p99_us: f64,
    /// Map pages read from flash, for any purpose.
    pub map_loads: u64,
    outcome: Outcome,
}

/// Sizes at the knee of reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Knees {
    /// Size of the map in map pages of the device's size, with entries of 4 bytes.
    pub pages: u64,
    /// Size of the map in HPB regions of the device's size, with entries of 8 bytes.
    pub regions: u64,
}

/// The variants of a device. HPB is left out where the device has none, zones where they cannot be.
///
/// # Errors
/// A device that cannot be.
///
/// The device has its map in flash and SRAM, or with copies in a Host Memory Buffer: [`can_gain`].
pub fn variants(base: &DevicePreset, knees: Knees) -> Result<Vec<ReplayVariant>, ConfigFileError> {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20).to_string();
    let page_kib = u64::from(base.device.map_page_bytes) >> 10;
    let kib = |bytes: u64| (bytes.div_ceil(page_kib << 10) * page_kib).to_string();
    // A device that asks for host memory of its own gets none where the question is another.
    let own = base.device.host_map().is_some();
    let none: &[(&str, &str)] = if own { &[("host.max_host_mem_mib", "0")] } else { &[] };
    let of = |name: String, keys: &[(&str, &str)]| {
        let keys: Vec<GivenKey> = keys.iter().map(|(key, value)| GivenKey::new(*key, *value, "--gain")).collect();
        ReplayVariant::new(&Variant::of_keys(&name, &keys)?, base)
    };
    let off = |more: &[(&'static str, &str)]| -> Vec<(&str, String)> {
        let keys = [("hpb", "off")].into_iter().chain(none.iter().copied()).chain(more.iter().copied());
        keys.map(|(key, value)| (key, value.to_owned())).collect()
    };
    let given = |name: String, keys: Vec<(&str, String)>| {
        let keys: Vec<(&str, &str)> = keys.iter().map(|(key, value)| (*key, value.as_str())).collect();
        of(name, &keys)
    };
    let mut all = vec![given(AS_IT_IS.to_owned(), off(&[]))?];
    let sram = kib(knees.pages);
    all.push(given(format!("SRAM, {sram} KiB"), off(&[("map_cache.size_kib", &sram)]))?);
    let memory = mib(knees.pages.max(base.device.host_map().map_or(0, |host| host.minimum)));
    let mut hmb = match own {
        true => of("HMB".to_owned(), &[("hpb", "off"), ("host.max_host_mem_mib", &memory)])?,
        false => {
            let keys = HMB.into_iter().chain([("map_memory.size_mib", memory.as_str())]);
            given("HMB".to_owned(), off(&keys.collect::<Vec<_>>()))?
        }
    };
    // The device may ask for less, or take too few pieces.
    hmb.name = format!("HMB, {} MiB", static_host_bytes(&hmb.preset) >> 20);
    all.push(hmb);
    if base.device.standard_hpb().is_some() {
        let memory = mib(knees.regions);
        all.push(of(format!("HPB, {memory} MiB"), &[("hpb", "dcm"), ("max_map_mib", &memory)])?);
    }
    all.extend(on_zones(given("zones".to_owned(), off(&[]))?));
    Ok(all)
}

/// What the reader of the rows has to know.
pub const NOTE: &str = "Map in SRAM: it takes the place of the device's own map cache. HMB and HPB come on top of that \
                        cache. Zones are superblocks of the same flash behind a log-structured mapper that keeps a \
                        tenth of them: what it moves is simulated, and its map is the host memory. Their data \
                        does not pass a cache in SLC mode. They are left out where the trace needs more than the \
                        mapper leaves, and on devices of several units.";

/// Share of the zones that the mapper keeps, in percent, and its free zones: what `[host.zones]` has without keys.
const MAPPER: ZoneMapper = ZoneMapper { mapper: ZoneMapping::Log, spare_percent: 10, keep_free: 2 };

/// The same with zones, each a superblock, as many as the flash holds. `None` if it can have none.
fn on_zones(without: ReplayVariant) -> Option<ReplayVariant> {
    let ReplayVariant { mut preset, mut host, .. } = without;
    let [lu] = preset.device.lus[..] else { return None };
    let geometry = preset.device.geometry;
    let unit = geometry.slices_per_unit();
    let zones = ZoneConfig {
        layout: ZoneLayout::Native,
        blocks: geometry.slices_per_superblock(),
        most_open: 6,
        // As devices are said to count, so that few zones have blocks in no whole program.
        rule: ZoneRule::Zufs,
        program_blocks: unit,
        flush_blocks: unit,
    };
    let mapper = ZoneMapper { mapper: ZoneMapping::Log, ..preset.host.zones.unwrap_or(MAPPER) };
    (preset.host.zones, host.zones) = (Some(mapper), Some(mapper));
    // Whole programs do not pass a cache, and room that is lent to one cannot be zones.
    (preset.device.hpb, preset.device.slc_cache) = (None, None);
    let with = |count: u32| {
        let blocks = count * zones.stride();
        let lu = LuConfig { blocks, hpb: false, max_active_regions: 0, zones: Some(zones), ..lu };
        DeviceConfig { lus: vec![lu], ..preset.device.clone() }
    };
    preset.device = (1..geometry.superblocks()).rev().map(with).find(|device| device.check().is_ok())?;
    let name = format!("zones, {} KiB", zone_map_bytes(&preset.device).div_ceil(1 << 10));
    Some(ReplayVariant { name, preset, host, ..without })
}

/// Bytes of SRAM that say where the blocks of zones lie.
fn zone_map_bytes(device: &DeviceConfig) -> u64 {
    let zones: u64 = device.lus.iter().map(|lu| u64::from(lu.zone_count())).sum();
    zones * ZoneConfig::ENTRY_BYTES + if zones > 0 { device.zone_parts_bytes() } else { 0 }
}

/// Whether places for the map can be compared on a device: it has one, neither in DRAM nor in a memory that the host
/// always gives.
pub fn can_gain(device: &DeviceConfig) -> bool {
    let has_zones = device.lus.iter().any(|lu| lu.zones.is_some());
    !has_zones && (device.map_memory.is_none() || device.host_map().is_some_and(|host| host.protocol == Protocol::Hmb))
}

/// The device without memory of the host.
const AS_IT_IS: &str = "SRAM of the device";

/// Times of a Host Memory Buffer on a device that has none: the assumptions of the experiment `rivals`.
const HMB: [(&str, &str); 8] = [
    ("map_memory.kind", "hmb"),
    ("map_memory.line_bytes", "64"),
    ("map_memory.outstanding", "32"),
    ("map_memory.firmware_us", "0.5"),
    ("map_memory.request_us", "0.05"),
    ("map_memory.access_us", "1.0"),
    ("map_memory.response_us", "0.05"),
    ("map_memory.check", "false"),
];

/// What each place for a map gains under a trace, as a question.
#[derive(Clone, Debug)]
pub struct Gaining {
    case: String,
    points: Vec<Point>,
}

impl Gaining {
    /// Replays of a case at its own times on each variant that is large enough.
    pub fn new(case: ReplayCase, variants: Vec<ReplayVariant>) -> Self {
        let options =
            ReplayOptions { mode: Mode::Timed, layout: Layout::Sequential, seed: 1, encoded: false, over_time: true };
        let fits = |preset: &DevicePreset| case.traces(options.mode, preset, options.layout, options.seed).fit(preset);
        let variants = variants.into_iter().filter(|variant| fits(&variant.preset).is_ok()).map(Arc::new);
        let variants: Vec<_> = variants.collect();
        let name = case.name.clone();
        let replays = Replay::all(&[Arc::new(case)], &variants, &options);
        Gaining { case: name, points: replays.into_iter().map(Point::Replay).collect() }
    }
}

impl Question for Gaining {
    type Figures = GainRow;

    fn title(&self) -> String {
        format!("Places for the map: {}", self.case)
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn figures(&self, shown: Shown<'_>) -> Result<GainRow, Error> {
        let Shown::Replay(replay, run) = shown else { unreachable!("all points are replays") };
        Ok(row(&self.case, &replay.variant, &run))
    }

    fn answer(&self, done: &[Done<GainRow>]) -> Result<Answer, AskError> {
        let mut doc = Document::new("map_gain", self.title());
        let gained: Vec<GainRow> = done.iter().flatten().cloned().collect();
        rows(&mut doc, &self.case, &gained)?;
        doc.verdict = verdict(&self.case, &gained, &[]);
        doc.remark(NOTE);
        Ok(Answer::new(doc, done.len()))
    }
}

/// Which place makes reads fastest; or that coarse times, of which `notes` say, tell nothing.
pub(crate) fn verdict(case: &str, rows: &[GainRow], notes: &[Note]) -> Vec<Note> {
    let coarse = |note: &&Note| note.kind == NoteKind::CoarseTimes && note.case.as_deref() == Some(case);
    match notes.iter().find(coarse) {
        Some(coarse) => vec![verdict::not_from_these_times(coarse)],
        None => verdict::of_runs(rows.iter().map(|row| &row.outcome)),
    }
}

fn row(case: &str, variant: &ReplayVariant, run: &ReplayRun) -> GainRow {
    let mut latency = Histogram::default();
    let phase: Option<&PhaseOutput> = run.phases.last().map(|phase| &phase.output);
    phase.into_iter().flat_map(|phase| &phase.stats.jobs).for_each(|job| latency.merge(&job.of(IoKind::Read).latency));
    let count = |of: fn(&PhaseOutput) -> u64| phase.map_or(0, of);
    let host_bytes = peak_host_bytes(phase, &variant.preset);
    let device_bytes = match zone_map_bytes(&variant.preset.device) {
        0 => u64::from(variant.preset.device.map_cache_bytes),
        zones => zones,
    };
    let memory = Memory { host: host_bytes as f64, sram: device_bytes as f64 };
    let phases: Vec<&PhaseOutput> = phase.into_iter().collect();
    GainRow {
        place: variant.name.clone(),
        host_bytes,
        device_bytes,
        outcome: Outcome::new((case, &variant.name), &phases, run.over_time.as_ref(), Measured::ALL, memory),
        read_mean_us: if latency.count() > 0 { latency.mean() / 1e3 } else { 0.0 },
        read_p99_us: latency.quantile(0.99) as f64 / 1e3,
        map_loads: count(|p| p.device.map_loads + p.device.buffer_map_loads),
    }
}

pub(crate) fn rows(doc: &mut Document, case: &str, rows: &[GainRow]) -> Result<(), Error> {
    use metric::{Figure, Requests};
    for row in rows {
        let figures = [
            (Requests::Read.of(Figure::LatencyMean), row.read_mean_us),
            (Requests::Read.of(Figure::LatencyP99), row.read_p99_us),
            (metric::MAP_LOADS, row.map_loads as f64),
            (metric::HOST_MEMORY, row.host_bytes as f64),
            (metric::DEVICE_MAP_MEMORY, row.device_bytes as f64),
        ];
        doc.predicted(case, &row.place, figures)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_config::experiment;

    fn never(path: &std::path::Path) -> std::io::Result<String> {
        panic!("{} is not built in", path.display())
    }

    fn preset(name: &str) -> DevicePreset {
        readpath_config::device::load(name, &never).expect("a preset")
    }

    #[test]
    fn the_assumptions_are_those_of_the_experiment() {
        let rivals = experiment::load("rivals", &never).expect("it is built in");
        let theirs = rivals.variants.iter().find(|v| v.name == "HMB, 16 MiB").expect("a rival");
        let theirs = theirs.device(&preset("ufs21-64g")).expect("a device");
        let knees = Knees { pages: 16 << 20, regions: 16 << 20 };
        let ours = variants(&preset("ufs21-64g"), knees).expect("variants");
        assert_eq!(ours[2].preset.device.map_memory, theirs.device.map_memory);
    }

    /// Coarse times of another case say nothing of this one.
    #[test]
    fn coarse_times_tell_nothing_of_their_own_case() {
        let row = GainRow {
            place: "SRAM".to_owned(),
            host_bytes: 0,
            device_bytes: 0,
            read_mean_us: 0.0,
            read_p99_us: 0.0,
            map_loads: 0,
            outcome: Outcome::new(("c", "SRAM"), &[], None, Measured::ALL, Memory::default()),
        };
        let coarse = |case: &str| Note::new(NoteKind::CoarseTimes, "COARSE TIMES").of_case(case);
        let said = |of: &str| verdict("c", std::slice::from_ref(&row), &[coarse(of)])[0].text.clone();
        assert!(said("c").starts_with("This cannot be told from this trace."), "{}", said("c"));
        assert_eq!(said("d"), "The workload reads and writes nothing: there is nothing to compare.");
    }

    #[test]
    fn each_place_is_as_large_as_its_knee() {
        let knees = Knees { pages: 100 << 10, regions: 3 << 20 };
        let names = |name: &str| -> Vec<String> {
            variants(&preset(name), knees).expect("variants").into_iter().map(|v| v.name).collect()
        };
        assert_eq!(names("ufs31-256g"), [AS_IT_IS, "SRAM, 112 KiB", "HMB, 1 MiB", "HPB, 3 MiB", "zones, 13 KiB"]);
        let larger = Knees { pages: 20 << 20, ..knees };
        let nvme = variants(&preset("nvme-dramless-1t"), larger).expect("variants");
        let host: Vec<u64> = nvme.iter().map(|v| static_host_bytes(&v.preset)).collect();
        assert_eq!(host, [0, 0, 20 << 20, 0]);
        assert_eq!(nvme[1].preset.device.map_cache_bytes, 20 << 20);
        // Nothing but zones: as many superblocks as can be, of which the mapper keeps a tenth.
        let ReplayVariant { preset, host: driver, .. } = &nvme[3];
        let (count, seen) = (preset.device.lus[0].zone_count(), preset.seen_units()[0].blocks);
        let superblocks = preset.device.geometry.superblocks();
        assert_eq!((count, superblocks, seen), (1534, 1560, 237_404_160));
        // Places of zones; of parts of them; of blocks in no whole program.
        let bytes = u64::from(count) * 8 + (64 + 4 * 6) * 12 + 6 * 15 * 8;
        assert_eq!((zone_map_bytes(&preset.device), driver.mapper()), (bytes, Some(MAPPER)));
    }

    #[test]
    fn zones_have_the_mapper_of_the_device_or_that_of_no_keys() {
        let knees = Knees { pages: 100 << 10, regions: 3 << 20 };
        let base = preset("ufs31-256g");
        let with = |keys: &[(&str, &str)]| {
            let keys = [("hpb", "off")].iter().chain(keys);
            let keys: Vec<GivenKey> = keys.map(|(key, value)| GivenKey::new(*key, *value, "--set")).collect();
            Variant::of_keys("x", &keys).expect("keys").device(&base).expect("a device")
        };
        let unused = ZoneMapper { mapper: ZoneMapping::None, ..MAPPER };
        assert_eq!(with(&[("host.zones.mapper", "none")]).host.zones, Some(unused));
        let more = variants(&with(&[("host.zones.spare_percent", "30")]), knees).expect("variants");
        let zones = more.last().expect("zones");
        let mapper = ZoneMapper { spare_percent: 30, ..MAPPER };
        assert_eq!((zones.host.mapper(), zones.preset.host.mapper()), (Some(mapper), Some(mapper)));
        // What has zones already has no map to put elsewhere.
        assert!(can_gain(&base.device) && !can_gain(&zones.preset.device));
        // Superblocks of zones that are read often are copied, as others are.
        let counted = variants(&with(&[("ftl.read_disturb_limit", "1000")]), knees).expect("variants");
        assert!(counted.last().is_some_and(|variant| variant.name.starts_with("zones, ")));
    }
}
