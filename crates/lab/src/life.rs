// SPDX-License-Identifier: MIT OR Apache-2.0
//! What writes cost the cells of a device: programs by cause and by cell mode, erases, and how long the cells live
//! under the load of a run. It counts what the device counted, and knows neither cases nor documents.

use crate::saving::half_of_ratio;
use crate::verdict::{Measured, in_parts};
use readpath_device::{CellMode, DeviceConfig, DeviceStats};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_results::{Document, Metric, Note, NoteKind, metric};
use readpath_run::{Bin, PhaseOutput, Series};
use serde::{Deserialize, Serialize};

/// Days of the warranty that drive writes a day refer to: five years, the usual one of makers.
const WARRANTY_DAYS: f64 = 5.0 * YEAR_DAYS;
const YEAR_DAYS: f64 = 365.0;
const YEAR_NS: f64 = YEAR_DAYS * 86_400e9;
/// Bytes of the terabyte of TBW (JESD218).
const TB: f64 = 1e12;
/// The least share of the wear by programs that erases must have caught up with: a run with fewer began on an erased
/// device, and its erases say little.
const STEADY: f64 = 0.5;
/// A run whose first erase comes after this share of it is not in its steady state.
const LATE: f64 = 0.25;

/// Programs in blocks of 4 KiB for each block that the host wrote, by cause and then by cell mode: the causes add up to
/// the write amplification, and so do the modes. Those that are zero are left out.
pub(crate) fn programs(device: &DeviceStats, config: &DeviceConfig) -> impl Iterator<Item = (Metric, f64)> {
    let unit = u64::from(config.geometry.slices_per_unit());
    let part = u64::from(config.map_page_bytes / BLOCK_BYTES);
    let all = device.programs * unit;
    let [map, journal, checkpoint] =
        [device.map_writes, device.journal_writes, device.checkpoint_writes].map(|parts| parts * part);
    let tables = device.table_writes * unit;
    let anchors = device.anchor_programs * unit;
    let padded = device.slices_padded + device.meta_programs * unit - map - journal - checkpoint;
    // As programs begin, like all the others; `slices_programmed` counts those that have ended.
    let not_of_host = device.slices_padded + device.slices_moved + device.zone_rests;
    let host = all - device.meta_programs * unit - anchors - tables - not_of_host;
    let unasked = device.slices_flushed + device.slices_levelled + device.slices_refreshed;
    let slc = (device.slc_programs * unit, device.slc_map_programs * unit);
    let has_slc = config.slc.is_some();
    let amplifications = [
        (metric::AMPLIFICATION_HOST, host),
        (metric::AMPLIFICATION_COLLECTION, device.slices_moved - unasked),
        (metric::AMPLIFICATION_RESTS, device.zone_rests),
        (metric::AMPLIFICATION_FOLDING, device.slices_flushed),
        (metric::AMPLIFICATION_LEVELLING, device.slices_levelled),
        (metric::AMPLIFICATION_REFRESH, device.slices_refreshed),
        (metric::AMPLIFICATION_MAP, map),
        (metric::AMPLIFICATION_JOURNAL, journal),
        (metric::AMPLIFICATION_CHECKPOINTS, checkpoint + anchors),
        (metric::AMPLIFICATION_TABLES, tables),
        (metric::AMPLIFICATION_PADDING, padded),
        (metric::AMPLIFICATION_FULL_CELLS, if has_slc { all - slc.0 - slc.1 } else { 0 }),
        (metric::AMPLIFICATION_SLC, slc.0),
        (metric::AMPLIFICATION_SLC_MAP, slc.1),
    ];
    let written = device.slices_written;
    let shown = amplifications.into_iter().filter(move |(_, blocks)| *blocks > 0 && written > 0);
    shown.map(move |(metric, blocks)| (metric, blocks as f64 / written as f64))
}

/// What the host wrote in some time, and what that did to the cells.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Load {
    ns: f64,
    written: f64,
    programmed: f64,
    erases: [u64; CellMode::COUNT],
    /// Blocks filled by programs, by mode.
    filled: [f64; CellMode::COUNT],
}

impl Load {
    fn add(&mut self, device: &DeviceStats, length: Ns, config: &DeviceConfig) {
        let block = f64::from(BLOCK_BYTES);
        self.ns += length.0 as f64;
        self.written += device.slices_written as f64 * block;
        self.programmed += device.programs as f64 * f64::from(config.geometry.slices_per_unit()) * block;
        self.erases.iter_mut().zip(device.erases_by_mode()).for_each(|(sum, one)| *sum += one);
        let slc = [device.slc_programs, device.slc_map_programs];
        let programs = [device.programs - device.anchor_programs - slc[0] - slc[1], slc[0], slc[1]];
        let pages = CellMode::ALL.map(|mode| f64::from(config.pages_in(mode).max(1)));
        for (sum, (programs, pages)) in self.filled.iter_mut().zip(programs.into_iter().zip(pages)) {
            *sum += programs as f64 / pages;
        }
    }
}

/// How the cells of a device fare under the load of a run in which the host wrote.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Life {
    variant: String,
    written: f64,
    amplification: f64,
    /// Share of the life of all cells that the run used, by cell mode.
    used: [f64; CellMode::COUNT],
    /// Share of the erases after which the cache in SLC mode takes no more data.
    cache_used: f64,
    /// Share that the blocks filled will have used when they are all erased.
    due: f64,
    /// Time of the run in years, and half of the 95 % interval of the years until cells are worn: none of a run in
    /// which too few parts wore cells for one, or whose parts are not known.
    ran: f64,
    half: Option<f64>,
    /// Bytes of the logical units.
    capacity: f64,
    /// Share of the run before its first erase.
    quiet: f64,
}

impl Life {
    /// The life under the load of these phases; none if the host wrote nothing.
    pub(crate) fn of(
        variant: &str,
        phases: &[&PhaseOutput],
        config: &DeviceConfig,
        series: Option<&Series>,
    ) -> Option<Life> {
        let mut all = Load::default();
        for phase in phases {
            all.add(&phase.device, phase.stats.end.saturating_sub(phase.stats.start), config);
        }
        let measured = Measured { from: phases.first()?.stats.start, to: phases.last()?.stats.end };
        let parts = series.map_or_else(Vec::new, |series| {
            in_parts(series, measured, |load: &mut Load, length, bin: &Bin| load.add(&bin.device, length, config))
        });
        (all.written > 0.0).then(|| Life::new(variant, &all, &parts, config))
    }

    fn new(variant: &str, all: &Load, parts: &[Load], config: &DeviceConfig) -> Life {
        let used = |load: &Load| config.life_used(load.erases.map(|n| n as f64)).iter().sum::<f64>();
        let due = |load: &Load| config.life_used(load.filled).iter().sum::<f64>();
        let wear = |load: &Load| if due(all) > used(all) { due(load) } else { used(load) };
        let ratios: Vec<(f64, f64)> = parts.iter().map(|part| (part.ns / YEAR_NS, wear(part))).collect();
        let cache_blocks = config.cache_life() * u64::from(config.geometry.dies());
        let quiet = parts.iter().position(|part| used(part) > 0.0).unwrap_or(0);
        Life {
            variant: variant.to_owned(),
            written: all.written,
            amplification: all.programmed / all.written,
            used: config.life_used(all.erases.map(|n| n as f64)),
            cache_used: match cache_blocks {
                0 => 0.0,
                blocks => all.erases[CellMode::Cache.index()] as f64 / blocks as f64,
            },
            due: due(all),
            ran: all.ns / YEAR_NS,
            half: half_of_ratio(&ratios),
            capacity: config.logical_blocks() as f64 * f64::from(BLOCK_BYTES),
            quiet: quiet as f64 / parts.len().max(1) as f64,
        }
    }

    fn used(&self) -> f64 {
        self.used.iter().sum()
    }

    /// Whether erases tell how fast cells wear.
    fn is_told(&self) -> bool {
        self.used() > 0.0 && self.used() >= STEADY * self.due
    }

    /// What the run cost: what its erases used, or what its programs will, if that is more.
    fn wear(&self) -> f64 {
        self.used().max(self.due)
    }

    /// Whether there is an interval, and it is smaller than the figure.
    fn is_sure(&self) -> bool {
        self.half.is_some_and(|half| half < self.years())
    }

    fn years(&self) -> f64 {
        self.ran / self.wear()
    }

    /// Terabytes that the host can write until cells are worn.
    fn terabytes(&self) -> f64 {
        self.written / self.wear() / TB
    }

    fn drive_writes_a_day(&self) -> f64 {
        self.terabytes() * TB / self.capacity / WARRANTY_DAYS
    }

    /// The figures: how long cells live only where erases tell.
    pub(crate) fn figures(&self) -> Vec<(Metric, f64)> {
        let [_, cache, map] = self.used;
        let percent = |share: f64| 100.0 * share;
        let used = [
            (metric::LIFE_USED, percent(self.used())),
            (metric::LIFE_USED_SLC, percent(cache)),
            (metric::LIFE_USED_SLC_MAP, percent(map)),
            (metric::CACHE_LIFE_USED, percent(self.cache_used)),
        ];
        let mut figures: Vec<_> = used.into_iter().filter(|(_, percent)| *percent > 0.0).collect();
        // Without an interval the run may be one of a sweep, whose repetitions tell how sure it is.
        if self.is_told() && self.half.is_none_or(|half| half < self.years()) {
            figures.push((metric::LIFE_DUE, percent(self.due)));
            figures.push((metric::LIFE_YEARS, self.years()));
            figures.extend(self.half.map(|half| (metric::LIFE_YEARS_ERROR, half)));
            figures.push((metric::TBW, self.terabytes()));
            figures.push((metric::DWPD, self.drive_writes_a_day()));
        }
        figures
    }

    /// What a verdict says: beside `others`, of which one may be worn sooner, though nothing tells when.
    fn sentence(&self, others: bool, sooner: Option<&str>) -> Note {
        let Life { variant, amplification, half, .. } = self;
        let (years, tbw, dwpd) = (self.years(), self.terabytes(), self.drive_writes_a_day());
        let first = match (others, sooner) {
            (false, _) => "Cells are worn".to_owned(),
            (true, None) => format!("With '{variant}' cells are worn first"),
            (true, Some(_)) => format!("With '{variant}' cells are worn"),
        };
        let sooner = sooner.map_or_else(String::new, |sooner| {
            format!(" With '{sooner}' they may be worn sooner, but its run gives no interval.")
        });
        let interval = half.map_or_else(String::new, |half| format!(" ± {}", three(half)));
        let cache = if self.cache_used > self.wear() {
            format!(
                " Its cache in SLC mode takes no more data after {} TB.",
                three(self.written / self.cache_used / TB)
            )
        } else {
            String::new()
        };
        let late = if self.quiet > LATE {
            let percent = 100.0 * self.quiet;
            format!(" The first erase came after {percent:.0} % of the run: in the long run cells wear faster.")
        } else {
            String::new()
        };
        let text = format!(
            "{first} after {}{interval} years of this load, when the host has written {} TB ({} drive writes a day for \
             5 years), with a write amplification of {}.{cache}{late}{sooner}",
            three(years),
            three(tbw),
            three(dwpd),
            three(*amplification),
        );
        let note = Note::new(NoteKind::Lifetime, text).of_variant(variant.clone()).with("years", years);
        let note = half.iter().fold(note, |note, half| note.with("years_half_interval", *half));
        note.with("host_terabytes", tbw).with("drive_writes_a_day", dwpd).with("write_amplification", *amplification)
    }
}

/// A number above 0 with three digits at least.
fn three(value: f64) -> String {
    let behind = (2.0 - libm::floor(libm::log10(value))).clamp(0.0, 9.0);
    format!("{value:.*}", behind as usize)
}

/// Adds to the verdict of a document the shortest life of these runs; where no run tells one, says why in a note.
pub(crate) fn judge<'a>(doc: &mut Document, lives: impl Iterator<Item = &'a Life>) {
    let lives: Vec<&Life> = lives.collect();
    let told = || lives.iter().filter(|life| life.is_told());
    let by_years = |a: &&&Life, b: &&&Life| a.years().total_cmp(&b.years());
    if let Some(first) = told().filter(|life| life.is_sure()).min_by(by_years) {
        let others = told().any(|life| life.variant != first.variant);
        let sooner = told().min_by(by_years).filter(|life| life.years() < first.years());
        return doc.verdict.push(first.sentence(others, sooner.map(|life| &*life.variant)));
    }
    let Some(most) = lives.iter().max_by(|a, b| a.used().total_cmp(&b.used())) else { return };
    let why = match most.used() {
        0.0 => "no superblock was erased".to_owned(),
        _ if most.is_told() && most.half.is_some() => "its 95 % interval is wider than the figure".to_owned(),
        _ if most.is_told() => "the run gives no 95 % interval".to_owned(),
        used => {
            format!("of the erases that its programs will need, {:.0} % have come", 100.0 * used / most.due)
        }
    };
    let text = format!("How long cells live cannot be told: {why}. A longer run, or a fuller device, would tell.");
    doc.note(Note::new(NoteKind::Lifetime, text));
}

#[cfg(test)]
mod tests;
