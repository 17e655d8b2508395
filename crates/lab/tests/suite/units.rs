// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs on several logical units of one device: each job's requests reach its unit, the host has HPB for each, figures
//! are reported for each and together, and data written to one unit is never found on another.

use crate::made::{Made, run_all};
use readpath_config::experiment::{Experiment, parse};
use readpath_kit::Ns;
use readpath_lab::experiment::plan;
use readpath_lab::power_cuts::{Load, Loses, PowerCuts, check, run};
use readpath_run::UnitOutput;
use std::path::Path;

const PRESET: &str = include_str!("../../../../presets/ufs21-64g.toml");

/// The built-in device with its 64 GiB in two units.
fn device() -> String {
    let unit = |gib: u32| format!("capacity_gib = {gib}\nhpb = true\nmax_active_regions = 640\n");
    let (before, after) = PRESET.split_once("[[lu]]").expect("a unit");
    let (_, host) = after.split_once("[host]").expect("the host behind it");
    let host: String = host.lines().filter(|line| !line.contains("lu[0]")).map(|line| format!("{line}\n")).collect();
    format!("{before}[[lu]]\n{}\n[[lu]]\n{}\n[host]{host}", unit(40), unit(24))
}

fn read(path: &Path) -> std::io::Result<String> {
    if path.ends_with("two.toml") { Ok(device()) } else { Err(std::io::ErrorKind::NotFound.into()) }
}

fn experiment(jobs: &str, variant: &str, events: &str) -> Experiment {
    let text = format!(
        r#"
schema = "readpath-experiment/1"
name = "units"
title = "Units"
description = "Two units."
citations = []
device = "two.toml"
seed = 1
[precondition]
layout = "sequential"
range = "files"
[workload]
kind = "fio"
text = """
[global]
rw=randread
ioengine=libaio
direct=1
iodepth=4
size=256m
number_ios=8000
{jobs}
"""
[[variant]]
name = "v"
{variant}
{events}
"#
    );
    parse(&text, "units.toml").unwrap_or_else(|e| panic!("{e}"))
}

const BOTH: &str = "[first]\nfilename=/dev/sda\n[second]\nfilename=/dev/sdb\nnumber_ios=4000";
const HPB: &str = "hpb = true";

fn only_run(experiment: &Experiment) -> Made {
    let plans = plan(experiment, &[], &read).unwrap_or_else(|e| panic!("{e}"));
    run_all(plans).unwrap_or_else(|e| panic!("{e}")).remove(0)
}

fn units(run: &Made) -> &[UnitOutput] {
    &run.output.phases[0].units
}

#[test]
fn each_job_reads_from_its_unit() {
    let experiment = experiment(BOTH, HPB, "");
    let run = only_run(&experiment);
    let [first, second] = units(&run) else { panic!("{:?}", units(&run)) };
    let reads = |unit: &UnitOutput| unit.hpb.hit_cnt + unit.hpb.miss_cnt;
    assert_eq!((first.lun, second.lun), (0, 1));
    assert_eq!((reads(first), reads(second)), (8000, 4000));
    // Both units' maps were loaded: 256 MiB have 128 sub-regions of 2 MiB, or fewer larger ones.
    assert!(first.hpb.map_req_cnt > 0 && second.hpb.map_req_cnt > 0);
    let all = run.output.phases[0].hpb.expect("HPB");
    assert_eq!(all, first.hpb.plus(&second.hpb));
    assert_eq!(run.output.phases[0].memory, Some(first.memory.plus(&second.memory)));
    let doc = run.document(&experiment);
    let value = |case: &str, metric: &str| {
        let mut rows = doc.rows.iter().filter(|r| r.case.ends_with(case) && r.metric.name() == metric);
        let row = rows.next().unwrap_or_else(|| panic!("{case} {metric}"));
        assert!(rows.next().is_none(), "{case} {metric} comes once");
        row.simulated
    };
    let hits = ["logical unit 0", "logical unit 1", "first and 1 more"].map(|case| value(case, "hit_cnt"));
    assert_eq!(hits[0] + hits[1], hits[2], "{hits:?}");
}

#[test]
fn a_unit_without_jobs_stays_as_it_is() {
    let run = only_run(&experiment("[second]\nfilename=/dev/sdb", HPB, ""));
    let [first, second] = units(&run) else { panic!("{:?}", units(&run)) };
    assert_eq!((first.hpb.hit_cnt, first.hpb.miss_cnt, first.hpb.map_req_cnt), (0, 0, 0));
    assert_eq!(second.hpb.hit_cnt + second.hpb.miss_cnt, 8000);
}

/// A limit of memory is one for each unit, and both give back what is too much.
#[test]
fn pressure_reaches_every_unit() {
    let policy = "hpb = true\npolicy = \"lru\"";
    let event = "[[event]]\nat_ms = 150\nwhat = \"pressure\"\nmemory_bytes = 300000\n";
    let experiment = experiment(BOTH, policy, event);
    let run = only_run(&experiment);
    for unit in units(&run) {
        assert!(unit.hpb.shrink_cnt > 0, "{unit:?}");
        let held = unit.memory.map_bytes + unit.memory.bitmap_bytes + unit.memory.table_bytes;
        assert!(held <= 300_000 && unit.memory.map_bytes > 0, "{unit:?}");
    }
}

#[test]
fn a_job_beyond_its_unit_is_refused() {
    for (job, says) in [
        (
            "[a]\nfilename=/dev/sdc",
            "\"/dev/sdc\" is none of the device's 2 logical units; name one of /dev/sda, /dev/sdb",
        ),
        ("[a]\nfilename=/dev/sdb\noffset=24g", "lies beyond the end of the file \"/dev/sdb\""),
        (
            "[a]\nfilename=/dev/sdb\noffset=20g\nsize=5g",
            "end beyond \"/dev/sdb\", which has 6291456 blocks of 4 KiB (24.00 GiB)",
        ),
    ] {
        let error = plan(&experiment(job, HPB, ""), &[], &read).expect_err(job).to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// Power cuts with writes on both units: every block read back is of its unit and its place.
#[test]
fn cuts_lose_nothing_on_any_unit() {
    let jobs = "[first]\nrw=randwrite\nfilename=/dev/sda\noffset=1g\nsize=16m\n\
                [second]\nrw=randwrite\nfilename=/dev/sdb\noffset=2g\nsize=16m\nfsync=64";
    let mut experiment = experiment(jobs, HPB, "");
    experiment.precondition.range = readpath_config::experiment::PreconditionRange::None;
    let mut plans = plan(&experiment, &[], &read).unwrap_or_else(|e| panic!("{e}"));
    let plan = &mut plans[0];
    // Only written blocks are read back, not all of units of 64 GiB.
    for file in &mut plan.workload.files {
        (file.block, file.blocks) = ((u32::from(file.lun) + 1) << 18, 16 << 8);
    }
    for loses in [Loses::Everything, Loses::Device] {
        let cuts = PowerCuts { cuts: 8, loses, off: Ns::from_ms(5), seed: 3, faults: std::sync::Arc::default() };
        let mut workload = plan.workload.clone();
        let load = Load::Workload(&mut workload);
        let moments = check(&load, &cuts).expect("requests that can be counted");
        let shown = run(&plan.setup, load, &cuts, moments, None, &mut ()).0.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((shown.cuts.len(), shown.wrong), (8, 0), "{:?}", shown.first_wrong);
        assert_eq!(shown.checked, 2 * (16 << 8), "both ranges");
        // A cut takes what the write buffer holds, and requests in flight that the host does not send again; nothing
        // else is missing, so each range was written on its own unit.
        let buffer = u64::from(plan.setup.preset.device.write_buffer_blocks);
        let most: u64 = shown.cuts.iter().map(|cut| buffer + u64::from(cut.in_flight)).sum();
        assert!(shown.device.unmapped_reads <= most, "{} blocks are nowhere", shown.device.unmapped_reads);
    }
}
