// SPDX-License-Identifier: MIT OR Apache-2.0
//! Says why HPB gains little, where it does: reads that are too long, that come without a good entry, or whose map is
//! in the device's SRAM anyway. It compares what runs have counted and runs nothing.

use readpath_config::DevicePreset;
use readpath_host::{HostConfig, HpbCounters};
use readpath_results::{Document, Note, NoteKind};
use readpath_run::PhaseOutput;
use readpath_workload::IoKind;
use serde::{Deserialize, Serialize};

/// The inputs and results of one run.
pub(crate) struct Seen<'a> {
    pub(crate) case: &'a str,
    pub(crate) variant: &'a str,
    pub(crate) preset: &'a DevicePreset,
    pub(crate) host: &'a HostConfig,
    /// Results of its phases.
    pub(crate) phases: Vec<&'a PhaseOutput>,
}

/// The gain of one run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Gain {
    case: String,
    variant: String,
    map_cache_bytes: u32,
    /// The map is in flash, and the host uses no HPB.
    is_plain: bool,
    /// Reads that were measured, and their mean latency in microseconds.
    reads: u64,
    mean_us: f64,
    /// Reads, those of the ramp included where they can be told from other requests: the host counts them all.
    all_reads: u64,
    /// Blocks whose map page was in SRAM, in percent of those that had no entry; none if all had one.
    in_sram: Option<f64>,
    /// What HPB did, if the host uses it.
    hpb: Option<Used>,
}

/// What HPB did in a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Used {
    /// Good entries, in percent of the blocks read.
    good: f64,
    /// Entries that the device refused.
    refused: u64,
    /// HPB READ may be longer than 4 KiB.
    has_long_reads: bool,
    /// Blocks were written before the last reads.
    is_mixed: bool,
    hits: u64,
    misses: u64,
    plain: u64,
}

/// A gain in mean read latency below this, in percent, is little.
const LITTLE: f64 = 5.0;
/// Without a run to compare with: the share of good entries, in percent of the blocks read, below which the gain is
/// little.
const FEW: f64 = 10.0;

/// Adds a note for each run with HPB that gains little.
pub(crate) fn notes(doc: &mut Document, runs: &[&Gain]) {
    for run in runs {
        let base = runs.iter().find(|other| run.is_beside(other));
        if let Some(text) = explanation(run, base.copied()) {
            let note = Note::new(NoteKind::LittleGain, text).of_case(&run.case).of_variant(&run.variant);
            doc.note(note.with("read_mean_us", run.mean_us));
        }
    }
}

impl Seen<'_> {
    /// The gain of the run.
    pub(crate) fn gain(&self) -> Gain {
        let device = &self.preset.device;
        let (reads, mean_us) = self.reads();
        let others = self.sum(|p| p.device.translated_reads() - p.device.hpb_hits);
        Gain {
            case: self.case.to_owned(),
            variant: self.variant.to_owned(),
            map_cache_bytes: device.map_cache_bytes,
            is_plain: self.host.hpb.is_none() && device.map_memory.is_none(),
            reads,
            mean_us,
            all_reads: self.all_reads(),
            in_sram: (others > 0).then(|| percent(self.sum(|p| p.device.map_hits + p.device.recent_hits), others)),
            hpb: self.phases.iter().filter_map(|phase| phase.hpb).reduce(|a, b| a.plus(&b)).map(|hpb| self.used(&hpb)),
        }
    }

    fn used(&self, counted: &HpbCounters) -> Used {
        let reads_of = |p: &&PhaseOutput| p.stats.jobs.iter().any(|job| job.of(IoKind::Read).ios > 0);
        let until = self.phases.iter().rposition(reads_of).map_or(0, |last| last + 1);
        Used {
            good: percent(self.sum(|p| p.device.hpb_hits), self.sum(|p| p.device.translated_reads()).max(1)),
            refused: self.sum(|p| {
                let d = &p.device;
                d.hpb_stale + d.hpb_inactive + d.hpb_zero + d.hpb_forged + d.hpb_foreign
            }),
            has_long_reads: self.preset.device.hpb.is_some_and(|hpb| hpb.v2.is_some()),
            is_mixed: self.phases[..until].iter().any(|p| p.device.slices_written > 0),
            hits: counted.hit_cnt,
            misses: counted.miss_cnt,
            plain: counted.plain_cnt,
        }
    }

    fn sum(&self, of: impl Fn(&PhaseOutput) -> u64) -> u64 {
        self.phases.iter().map(|phase| of(phase)).sum()
    }

    fn reads(&self) -> (u64, f64) {
        let jobs = self.phases.iter().flat_map(|phase| &phase.stats.jobs).map(|job| &job.of(IoKind::Read).latency);
        let (count, ns) = jobs.fold((0, 0.0), |(n, ns), l| (n + l.count(), ns + l.mean() * l.count() as f64));
        (count, ns / 1e3 / count.max(1) as f64)
    }

    fn all_reads(&self) -> u64 {
        let measured = |p: &PhaseOutput, kinds: &[IoKind]| -> u64 {
            p.stats.jobs.iter().flat_map(|job| kinds.iter().map(|&kind| job.of(kind).ios)).sum()
        };
        let others = [IoKind::Write, IoKind::Trim, IoKind::Flush];
        self.sum(|p| match (measured(p, &[IoKind::Read]), measured(p, &others)) {
            (1.., 0) => p.stats.ios,
            (reads, _) => reads,
        })
    }
}

impl Gain {
    /// Whether `other` is this run without HPB.
    fn is_beside(&self, other: &Gain) -> bool {
        other.case == self.case && other.is_plain && other.map_cache_bytes == self.map_cache_bytes
    }
}

fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of as f64
}

fn explanation(run: &Gain, base: Option<&Gain>) -> Option<String> {
    let hpb = run.hpb.as_ref().filter(|_| run.reads > 0)?;
    let mean = run.mean_us;
    let (little, times) = match base.filter(|base| base.reads > 0).map(|base| base.mean_us) {
        Some(alone) => (
            mean > alone * (1.0 - LITTLE / 100.0),
            format!("reads take {mean:.1} us in the mean, and {alone:.1} us without HPB"),
        ),
        None => (hpb.good < FEW, format!("{:.1} % of the blocks read had a good entry", hpb.good)),
    };
    if !little {
        return None;
    }
    let mut text = format!("{}, {}: HPB gains little: {times}.", run.case, run.variant);
    // The reads of the ramp of a mix are not counted apart.
    let all = run.all_reads.max(hpb.hits + hpb.misses + hpb.plain);
    let ramp = if all > run.reads { ", those of the ramp included," } else { "" };
    text.push_str(&format!(" Of {all} reads{ramp} {}.", hpb.shares(all)));
    if 100 * hpb.refused > all {
        text.push_str(&format!(" The device found {} entries out of date.", hpb.refused));
    }
    match (base.and_then(|base| base.in_sram), run.in_sram) {
        (Some(all), _) => {
            text.push_str(&format!(" Without HPB {all:.1} % of the blocks had their map page in SRAM anyway."));
        }
        (None, Some(others)) => {
            text.push_str(&format!(" Of the blocks without, {others:.1} % had their map page in SRAM anyway."));
        }
        (None, None) => {}
    }
    Some(text)
}

impl Used {
    /// What became of the reads, in percent.
    fn shares(&self, reads: u64) -> String {
        let too_long = match self.has_long_reads {
            false => "were longer than 4 KiB, which HPB 1.0 has no command for",
            true => "were longer than an HPB READ may be here",
        };
        // The host does not count which of the two it was.
        let without = match self.is_mixed {
            false => "came before their entries were loaded",
            true => "came before their entries were loaded, or after their blocks were written again",
        };
        let shares = [
            (reads.saturating_sub(self.hits + self.misses + self.plain), too_long),
            (self.misses, without),
            (self.plain, "were sent without their entry, as the policy wanted it"),
            (self.hits, "went with an entry"),
        ];
        let told = shares.iter().filter(|(n, _)| *n > 0);
        let told: Vec<String> = told.map(|(n, what)| format!("{:.1} % {what}", percent(*n, reads))).collect();
        told.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experimenting;
    use crate::question::{Question, make};
    use crate::runs::{Plan, Shared};
    use readpath_config::experiment::{Experiment, Fio, Layout, Precondition, PreconditionRange, Workload};
    use readpath_config::{Override, device};
    use readpath_host::HpbOptions;
    use readpath_run::Setup;
    use readpath_workload::fio;

    /// Notes of a job of random reads on a device with a map cache of so many KiB, HPB off and on, or on only.
    fn said(job: &str, cache_kib: u32, beside: bool) -> Vec<String> {
        let preset = device::load("ufs21-64g", &|_| unreachable!("it comes with the program")).expect("a preset");
        let cache = Override::new("map_cache.size_kib", &cache_kib.to_string(), "--set").expect("a value");
        let preset = preset.with_overrides(&[cache]).expect("a device");
        let precondition = Precondition { layout: Layout::Sequential, range: PreconditionRange::Files };
        let text = format!("[job]\nioengine=psync\nrw=randread\nfilename=f\n{job}");
        let plan = |hpb: bool| {
            let unit_blocks = [preset.device.lus[0].blocks];
            let context = fio::Context { unit_blocks: &unit_blocks, zones: &[], seed: 1, options: &[], defaults: "" };
            let workload = fio::parse("job.fio", &text, &|_| unreachable!("it includes nothing"), &context);
            let host = HostConfig { hpb: hpb.then(HpbOptions::default), ..preset.host };
            let (preset, events) = (preset.clone(), Vec::new());
            let setup = Setup { preset, host, precondition, seed: 1, encoded: false, events, over_time: false };
            let variant = if hpb { "HPB dcm" } else { "HPB off" };
            Plan {
                case: "job".to_owned(),
                variant: variant.to_owned(),
                setup,
                workload: workload.expect("a job"),
                inputs: Vec::new(),
            }
        };
        let plans = [false, true].into_iter().filter(|hpb| *hpb || beside).map(plan).collect();
        let source = Workload::Fio(Fio::Text { case: "job".to_owned(), text });
        let experiment = Experiment::new("test", "Test", "ufs21-64g", 1, precondition, source);
        let question = Experimenting::new(experiment, plans, None);
        let done = make(&question, &Shared::default()).expect("runs");
        let doc = question.answer(&done).expect("a document").document;
        doc.notes.iter().map(Note::to_string).filter(|note| note.contains("gains little")).collect()
    }

    #[track_caller]
    fn says(notes: &[String], parts: &[&str]) {
        let [note] = notes else { panic!("{notes:?}") };
        parts.iter().for_each(|part| assert!(note.contains(part), "{part}: {note}"));
    }

    /// The host counts the reads of the ramp too, so the shares are of all reads.
    #[test]
    fn shares_with_a_ramp_are_shares() {
        let notes = said("size=256m\nbs=4k\ntime_based=1\nruntime=1\nramp_time=2\n", 1440, true);
        says(&notes, &[" reads, those of the ramp included, ", "% went with an entry"]);
        let mut sum = 0.0;
        for part in notes[0].split(" % ").filter(|part| !part.contains("without")) {
            sum += part.rsplit(' ').next().and_then(|n| n.parse::<f64>().ok()).filter(|n| *n <= 100.0).unwrap_or(0.0);
        }
        let of_reads = notes[0].split(". Without").next().expect("a sentence");
        assert!(of_reads.matches(" % ").count() == 2 && sum >= 99.9, "{sum}: {}", notes[0]);
    }

    /// Each reason for itself; and where HPB gains, nothing is said.
    #[test]
    fn why_hpb_gains_little() {
        let small = "size=256m\nio_size=64m\nbs=4k\n";
        assert_eq!(said(small, 32, true), [""; 0], "its map is 16 pages, 2 of which fit");
        let long = said("size=256m\nio_size=64m\nbs=64k\n", 32, true);
        says(&long, &["job, HPB dcm: HPB gains little: reads take ", "Of 1024 reads 100.0 % were longer than 4 KiB"]);
        let cached = said(small, 1440, true);
        says(&cached, &["% went with an entry", "% of the blocks had their map page in SRAM anyway"]);
        let anyway = |note: &str| {
            let (before, _) = note.split_once(" % of the blocks had their map").expect("a share");
            before.rsplit(' ').next().and_then(|n| n.parse::<f64>().ok()).expect("a number")
        };
        assert!(anyway(&cached[0]) > 95.0 && anyway(&long[0]) < 50.0, "{cached:?} {long:?}");
        let cold = said("size=8g\nio_size=2m\nbs=4k\n", 32, true);
        says(&cold, &["% came before their entries were loaded;"]);
        let dirty = said("size=64m\nio_size=64m\nbs=4k\nrw=randrw\nrwmixread=10\n", 512, true);
        says(&dirty, &["or after their blocks were written again;", " The device found "]);
    }

    #[test]
    fn a_run_that_is_alone_is_judged_by_its_hits() {
        assert_eq!(said("size=256m\nio_size=64m\nbs=4k\n", 1440, false), [""; 0]);
        let long = said("size=256m\nio_size=64m\nbs=64k\n", 32, false);
        says(&long, &["HPB gains little: 0.0 % of the blocks read had a good entry.", "Of the blocks without, "]);
    }
}
