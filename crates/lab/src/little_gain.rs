// SPDX-License-Identifier: MIT OR Apache-2.0
//! Says why HPB gains little, where it does: reads that are too long, that come without a good entry, or whose map is
//! in the device's SRAM anyway. It compares what runs have counted and runs nothing.

use readpath_config::DevicePreset;
use readpath_host::{HostConfig, HpbCounters};
use readpath_results::{Document, Note};
use readpath_run::PhaseOutput;
use readpath_workload::IoKind;

/// One run.
pub(crate) struct Seen<'a> {
    /// Case.
    pub(crate) case: &'a str,
    /// Variant.
    pub(crate) variant: &'a str,
    /// The device.
    pub(crate) preset: &'a DevicePreset,
    /// The host.
    pub(crate) host: &'a HostConfig,
    /// What was measured.
    pub(crate) phases: Vec<&'a PhaseOutput>,
}

/// A gain in mean read latency below this, in percent, is little.
const LITTLE: f64 = 5.0;
/// Without a run to compare with: as few good entries, in percent of the blocks read.
const FEW: f64 = 10.0;

/// Adds a note for each run with HPB that gains little.
pub(crate) fn notes(doc: &mut Document, runs: &[Seen]) {
    for run in runs {
        let base = runs.iter().find(|other| run.is_beside(other));
        if let Some(text) = explanation(run, base) {
            doc.note(Note::remark(text));
        }
    }
}

impl Seen<'_> {
    /// Whether the other is this run without HPB.
    fn is_beside(&self, other: &Seen) -> bool {
        let (device, others) = (&self.preset.device, &other.preset.device);
        other.case == self.case
            && other.host.hpb.is_none()
            && others.map_cache_bytes == device.map_cache_bytes
            && others.map_memory.is_none()
    }

    fn sum(&self, of: impl Fn(&PhaseOutput) -> u64) -> u64 {
        self.phases.iter().map(|phase| of(phase)).sum()
    }

    /// Reads, and their mean latency in microseconds.
    fn reads(&self) -> (u64, f64) {
        let jobs = self.phases.iter().flat_map(|phase| &phase.stats.jobs).map(|job| &job.of(IoKind::Read).latency);
        let (count, ns) = jobs.fold((0, 0.0), |(n, ns), l| (n + l.count(), ns + l.mean() * l.count() as f64));
        (count, ns / 1e3 / count.max(1) as f64)
    }

    /// Reads, those of the ramp included where they can be told from other requests: the host counts them all.
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

    /// Blocks whose map page was in SRAM, in percent of those that had no entry.
    fn in_sram(&self) -> Option<f64> {
        let others = self.sum(|p| p.device.translated_reads() - p.device.hpb_hits);
        (others > 0).then(|| percent(self.sum(|p| p.device.map_hits + p.device.recent_hits), others))
    }
}

fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of as f64
}

fn explanation(run: &Seen, base: Option<&Seen>) -> Option<String> {
    let counted = run.phases.iter().filter_map(|phase| phase.hpb).reduce(|a, b| a.plus(&b))?;
    let (reads, mean) = run.reads();
    if reads == 0 {
        return None;
    }
    let (little, times) = match base.map(Seen::reads) {
        Some((1.., alone)) => (
            mean > alone * (1.0 - LITTLE / 100.0),
            format!("reads take {mean:.1} us in the mean, and {alone:.1} us without HPB"),
        ),
        _ => {
            let blocks = run.sum(|p| p.device.translated_reads());
            let good = percent(run.sum(|p| p.device.hpb_hits), blocks.max(1));
            (good < FEW, format!("{good:.1} % of the blocks read had a good entry"))
        }
    };
    if !little {
        return None;
    }
    let mut text = format!("{}, {}: HPB gains little: {times}.", run.case, run.variant);
    // Of a mix with a ramp nobody knows how many there were in all.
    let all = run.all_reads().max(counted.hit_cnt + counted.miss_cnt + counted.plain_cnt);
    let ramp = if all > reads { ", those of the ramp included," } else { "" };
    text.push_str(&format!(" Of {all} reads{ramp} {}.", shares(run, &counted, all)));
    let refused = run.sum(|p| {
        let d = &p.device;
        d.hpb_stale + d.hpb_inactive + d.hpb_zero + d.hpb_forged + d.hpb_foreign
    });
    if 100 * refused > all {
        text.push_str(&format!(" The device found {refused} entries out of date."));
    }
    match (base.and_then(Seen::in_sram), run.in_sram()) {
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

/// What became of the reads, in percent.
fn shares(run: &Seen, counted: &HpbCounters, reads: u64) -> String {
    let HpbCounters { hit_cnt, miss_cnt, plain_cnt, .. } = *counted;
    let too_long = match run.preset.device.hpb.is_some_and(|hpb| hpb.v2.is_some()) {
        false => "were longer than 4 KiB, which HPB 1.0 has no command for",
        true => "were longer than an HPB READ may be here",
    };
    // The host does not count which of the two it was.
    let reads_of = |p: &&PhaseOutput| p.stats.jobs.iter().any(|job| job.of(IoKind::Read).ios > 0);
    let until = run.phases.iter().rposition(reads_of).map_or(0, |last| last + 1);
    let without = match run.phases[..until].iter().map(|p| p.device.slices_written).sum() {
        0u64 => "came before their entries were loaded",
        _ => "came before their entries were loaded, or after their blocks were written again",
    };
    let shares = [
        (reads.saturating_sub(hit_cnt + miss_cnt + plain_cnt), too_long),
        (miss_cnt, without),
        (plain_cnt, "were sent without their entry, as the policy wanted it"),
        (hit_cnt, "went with an entry"),
    ];
    let told = shares.iter().filter(|(n, _)| *n > 0);
    let told: Vec<String> = told.map(|(n, what)| format!("{:.1} % {what}", percent(*n, reads))).collect();
    told.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;
    use crate::experiment::{Plan, Shared, run_all};
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
            let context = fio::Context { unit_blocks: &unit_blocks, seed: 1, options: &[] };
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
        let runs = run_all(plans, &Shared::default()).expect("runs");
        let source = Workload::Fio(Fio::Text { case: "job".to_owned(), text });
        let experiment = Experiment::new("test", "Test", "ufs21-64g", 1, precondition, source);
        let doc = document::document(&experiment, &runs).expect("a document");
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
