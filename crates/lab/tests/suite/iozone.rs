// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ten rows of the published table, which Readpath is known by: a shortened run of the experiment gives fixed
//! figures, and they are near those of the whole run. `make test-long` makes the whole run.

use crate::made::document;
use readpath_lab::experiment::plan;
use readpath_lab::runs::Plan;

/// What `readpath reproduce iozone` prints, in MiB/s: case, HPB off, HPB dcm.
const WHOLE: [(&str, f64, f64); 5] = [
    ("1 GB", 300.74, 294.58),
    ("4 GB", 179.17, 294.31),
    ("8 GB", 162.87, 294.32),
    ("16 GB", 155.90, 294.26),
    ("32 GB", 152.57, 278.06),
];

/// Throughputs when no thread reads more than [`SHORT`] records.
const SHORTENED: [(&str, f64, f64); 5] = [
    ("1 GB", 300.74, 294.58),
    ("4 GB", 179.17, 294.31),
    ("8 GB", 162.84, 293.77),
    ("16 GB", 155.89, 292.47),
    ("32 GB", 152.58, 274.96),
];

/// Records of a thread, which in whole has 16,384 to 524,288: all that it has of 1 GB and of 4 GB, and so many that the
/// counts of reads, which choose the regions to be given up, are halved several times.
const SHORT: u64 = 65_536;

/// How far a shortened run may be from the whole one, in percent: it loads its maps in less time.
const NEAR: f64 = 1.5;

/// Throughputs of the built-in experiment, its plans changed by `change`.
fn throughputs(change: impl Fn(&mut Plan)) -> Vec<(String, f64)> {
    let none = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
    let experiment = readpath_config::experiment::load("iozone", &none).expect("an experiment");
    let mut plans = plan(&experiment, &[], &none).expect("plans");
    // The writes come behind the reads.
    plans.iter_mut().for_each(|plan| plan.workload.phases.truncate(1));
    plans.iter_mut().for_each(change);
    let doc = document(&experiment, plans);
    let rows = doc.rows.iter().filter(|r| r.metric.name() == "random_read_throughput");
    rows.map(|r| (format!("{}, {}", r.case, r.variant), r.simulated)).collect()
}

fn listed(table: [(&str, f64, f64); 5]) -> Vec<(String, f64)> {
    table
        .iter()
        .flat_map(|(case, off, on)| [(format!("{case}, HPB off"), *off), (format!("{case}, HPB dcm"), *on)])
        .collect()
}

/// Rounded as they are printed.
fn rounded(found: &[(String, f64)]) -> Vec<(String, f64)> {
    found.iter().map(|(row, x)| (row.clone(), (x * 100.0).round() / 100.0)).collect()
}

#[test]
fn ten_rows_of_a_shortened_run() {
    let found = throughputs(|plan| {
        plan.workload.phases.iter_mut().flat_map(|phase| &mut phase.jobs).for_each(|job| job.limits.ios = Some(SHORT));
    });
    assert_eq!(rounded(&found), listed(SHORTENED));
    for ((row, short), (_, whole)) in found.iter().zip(listed(WHOLE)) {
        let off = 100.0 * (short / whole - 1.0);
        assert!(off.abs() < NEAR, "{row}: {short:.2} instead of {whole}, {off:.2} %");
    }
}

/// The random tests share a case. What the device writes by itself while it is only read is of the phase.
#[test]
fn a_device_that_refreshes_while_it_is_read_has_one_row_of_each() {
    let none = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
    let experiment = readpath_config::experiment::load("iozone", &none).expect("an experiment");
    let mut plans = plan(&experiment, &[], &none).expect("plans");
    plans.truncate(1);
    for plan in &mut plans {
        plan.setup.preset.device.ftl.read_disturb_limit = 1;
        plan.workload.phases.iter_mut().flat_map(|phase| &mut phase.jobs).for_each(|job| job.limits.ios = Some(8192));
    }
    let doc = document(&experiment, plans);
    let cases = |metric: &str| -> Vec<String> {
        doc.rows.iter().filter(|row| row.metric.name() == metric).map(|row| row.case.to_string()).collect()
    };
    assert_eq!(cases("superblocks_refreshed"), ["1 GB: random read"]);
    assert_eq!(cases("programs"), ["1 GB: random read", "1 GB"]);
    assert_eq!(cases("map_loads"), ["1 GB"]);
}

#[test]
#[ignore = "takes a minute: make test-long"]
fn ten_rows_of_the_whole_run() {
    assert_eq!(rounded(&throughputs(|_| ())), listed(WHOLE));
}
