// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run shows when the device refuses a request in its middle: completed phases are shown, and the document says
//! what is missing. A run without a completed phase fails.

use crate::made::{Made, run_all};
use readpath_config::experiment::{Experiment, Iozone, Layout, Precondition, PreconditionRange, Workload as Source};
use readpath_config::{DevicePreset, device};
use readpath_lab::runs::{ExperimentError, Plan};
use readpath_run::{RunError, Setup};
use readpath_workload::{IoKind, Offsets, Phase, Stream, StreamSpec, Workload, iozone};

/// A unit so small that requests can leave it.
const BLOCKS: u32 = 4096;

fn preset() -> DevicePreset {
    let none = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
    let preset = device::load("ufs21-64g", &none).expect("a preset");
    preset.with_override("lu[0].blocks", &BLOCKS.to_string()).expect("a possible device")
}

/// Two threads that read and then write 8 MiB each, as iozone does.
fn workload() -> Workload {
    iozone::parse(&["-i2", "-t", "2", "-s", "8m"], 1).expect("an iozone line")
}

/// Makes the first job of a phase write beyond the unit.
fn leave_the_unit(phase: &mut Phase) {
    let beyond = StreamSpec::plain(IoKind::Write, BLOCKS, 16, 1, Offsets::Uniform);
    phase.jobs[0].stream = Stream::new(&beyond, 1).expect("a possible stream");
}

fn run(variant: &str, workload: Workload) -> Result<Made, ExperimentError> {
    let preset = preset();
    let precondition = Precondition { layout: Layout::Sequential, range: PreconditionRange::Files };
    let host = preset.host;
    let setup = Setup { preset, host, precondition, seed: 1, encoded: false, events: Vec::new(), over_time: false };
    let plan = Plan { case: "iozone".into(), variant: variant.into(), setup, workload, inputs: Vec::new() };
    run_all(vec![plan]).map(|mut runs| runs.remove(0))
}

fn experiment() -> Experiment {
    let source = Source::Iozone(Iozone::Args { case: "iozone".into(), args: Vec::new() });
    let precondition = Precondition { layout: Layout::Sequential, range: PreconditionRange::Files };
    Experiment::new("cut", "A run cut short", "ufs21-64g", 1, precondition, source)
}

#[test]
fn phases_that_ended_stand() {
    let whole = run("whole", workload()).expect("a run");
    assert!(whole.output.cut_short.is_none() && whole.run().incomplete().is_none());
    let mut refused = workload();
    refused.phases.extend(workload().phases);
    leave_the_unit(&mut refused.phases[1]);
    let cut = run("cut", refused).expect("what ended stands");
    let why = cut.output.cut_short.as_ref().expect("the second phase fails");
    assert_eq!((why.phase.as_str(), why.not_run), ("random write", 2));
    assert!(matches!(why.error, RunError::Io { kind: IoKind::Write, block: BLOCKS.., key: 5, asc: 0x21, .. }));
    // The reads are those of the run that went to its end.
    assert_eq!(cut.output.phases.len(), 1);
    assert_eq!(cut.output.ios, whole.output.phases[0].stats.ios);
    let says = cut.run().incomplete().expect("a sentence");
    assert!(says.starts_with("iozone, cut: phase 'random write' was cut short and has no figures: Write of"), "{says}");
    assert!(says.ends_with("; the 2 phases behind it were not run"), "{says}");

    let rows = |run: &Made| {
        let doc = run.document(&experiment());
        let rows: Vec<(String, f64)> = doc.rows.iter().map(|r| (r.metric.name().to_owned(), r.simulated)).collect();
        (rows, doc.notes)
    };
    let ((all, notes), (kept, said)) = (rows(&whole), rows(&cut));
    assert!(kept.iter().any(|(metric, _)| metric == "random_read_throughput"));
    assert!(kept.len() < all.len(), "the whole run has figures of its writes");
    assert_eq!(kept, all[..kept.len()], "phases stand in order");
    assert_eq!(said[0].to_string(), format!("INCOMPLETE: {says}"), "before every other note");
    assert!(!notes.iter().any(|n| n.kind == readpath_results::NoteKind::Incomplete));
}

#[test]
fn a_run_that_has_shown_nothing_fails() {
    let mut workload = workload();
    leave_the_unit(&mut workload.phases[0]);
    let error = run("cut", workload).expect_err("nothing to show");
    assert!(!error.is_usage() && error.to_string().contains("failed with sense 5h/21h"), "{error}");
}
