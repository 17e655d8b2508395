// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text that users wrote: job files, command lines, configuration, documents.

use readpath_config::{self, DevicePreset, Override};
use readpath_lab::experiment::plan;
use readpath_lab::fit;
use readpath_report::{TableSpec, html, terminal};
use readpath_results::Document;
use readpath_sweep::{Found, Plan};
use readpath_workload::{Io, IoKind, Workload, fio, iozone};
use std::io;
use std::path::Path;

/// Requests taken from each stream of a workload that was accepted.
const TAKEN: usize = 64;
/// Jobs whose streams are looked at.
const JOBS: usize = 64;

/// Takes the first requests of a workload: they stay inside the units of their jobs, where these are known.
fn begin(mut workload: Workload, unit_blocks: Option<&[u32]>) {
    for job in workload.phases.iter_mut().flat_map(|p| &mut p.jobs).take(JOBS) {
        assert!(job.iodepth >= 1 && job.group < workload.groups.len());
        let mut ios = [Io { block: 0, blocks: 0, kind: IoKind::Flush, fua: false }; TAKEN];
        let n = job.stream.fill(&mut ios);
        for io in &ios[..n] {
            let end = u64::from(io.block) + u64::from(io.blocks);
            assert!((io.kind == IoKind::Flush) == (io.blocks == 0), "{io:?}");
            let known = unit_blocks.map(|units| units[usize::from(job.lun)]);
            assert!(known.is_none_or(|b| end <= u64::from(b)), "{io:?} is beyond unit {}", job.lun);
        }
    }
}

/// A fio job file. Text after a line of `%%` is another file, which `include 1`, `include 2` and so on read.
pub fn fio_job(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let files: Vec<&str> = text.split("\n%%\n").collect();
    let load = |path: &Path| {
        let number = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse::<usize>().ok());
        number.and_then(|n| files.get(n)).map(|s| (*s).to_owned()).ok_or_else(|| io::Error::other("no such file"))
    };
    for unit_blocks in [&[1 << 18][..], &[1 << 18, 1 << 12]] {
        let context = fio::Context { unit_blocks, zones: &[], seed: 1, options: &[], defaults: "" };
        match fio::parse("0", files[0], &load, &context) {
            Ok(workload) => begin(workload, Some(unit_blocks)),
            Err(e) => assert!(!e.message.is_empty()),
        }
    }
}

/// An iozone command line.
pub fn iozone_args(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let args: Vec<&str> = text.split_whitespace().collect();
    match iozone::parse(&args, 1) {
        Ok(workload) => begin(workload, None),
        Err(e) => assert!(e.position <= args.len() + 1 && !e.message.is_empty()),
    }
}

/// A device file; each line that begins with `#set ` is also an argument of `--set`. What is read survives its echo.
pub fn device_toml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let overrides: Result<Vec<Override>, _> =
        text.lines().filter_map(|l| l.strip_prefix("#set ")).map(|o| Override::from_argument(o, "--set")).collect();
    let Ok(preset) = readpath_config::device::parse(text, "fuzz.toml") else { return };
    echoes(&preset);
    if let Ok(preset) = overrides.and_then(|o| preset.with_overrides(&o)) {
        echoes(&preset);
    }
}

fn echoes(preset: &DevicePreset) {
    let echo = preset.echo();
    let text = echo.to_toml();
    let again = readpath_config::device::parse(&text, "echo.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(again.echo(), echo);
    assert_eq!((&again.device, again.host), (&preset.device, preset.host));
    preset.device.check().expect("what was read can exist");
}

/// An experiment file, planned as for a run.
pub fn experiment_toml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(experiment) = readpath_config::experiment::parse(text, "fuzz/fuzz.toml") else { return };
    serde_json::to_string(&experiment).expect("an experiment is plain data");
    let read = |_: &Path| Err(io::Error::other("no such file"));
    if let Ok(plans) = plan(&experiment, &[], &read) {
        assert!(!plans.is_empty());
        for plan in plans.into_iter().take(4) {
            begin(plan.workload, None);
        }
    }
}

/// A study file: its points have a setting for each key, and the first are made as far as no file is needed. What is
/// behind a line `%%` is a segment of results.
pub fn study_toml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (text, segment) = text.split_once("%%\n").unwrap_or((text, ""));
    let read = |_: &Path| Err(io::Error::other("no such file"));
    if let Ok(study) = readpath_config::study::parse(text, "fuzz.toml")
        && let Ok(plan) = Plan::new(study, text, &read)
    {
        let keys = plan.study.keys().count();
        for index in [0, plan.count() / 2, plan.count() - 1] {
            let point = plan.point(index);
            assert_eq!((point.index, point.settings.len()), (index, keys));
            assert_eq!(plan.point(index), point);
            let _ = plan.study.point(&point.settings, &read);
        }
    }
    if !segment.is_empty() {
        let _ = Found::of_segment(segment.as_bytes());
    }
}

/// A result document: writing and reading it again gives the same document, and it can be shown.
pub fn result_json(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(doc) = Document::from_json(text) else { return };
    let again = doc.to_json_pretty().expect("what was read can be written");
    assert_eq!(Document::from_json(&again).expect("our own text"), doc);
    let _ = html::page(&doc);
    let spec = doc.rows.iter().take(4).fold(TableSpec::new(), |s, r| s.column(&r.metric, "label"));
    let _ = terminal::table(&doc, &spec.width(80));
}

/// A table of measurements, as `device fit` reads it.
pub fn measurements_csv(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match fit::parse(text, "fuzz.csv") {
        Ok(rows) => {
            assert!(!rows.is_empty() && rows.len() <= fit::MOST_ROWS);
            assert!(rows.iter().all(|r| r.value.is_finite() && r.value > 0.0 && r.error > 0.0));
            let preset = readpath_config::device::load("ufs21-64g", &|_| Err(io::Error::other("not asked for")));
            let _ = fit::check(&rows, &preset.expect("a preset"), "fuzz.csv");
        }
        Err(e) => assert!(!e.message.is_empty()),
    }
}
