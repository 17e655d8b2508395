// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a probe calls identified is so: devices that it does not know, measured with 2 % noise.

use rayon::prelude::*;
use readpath_config::{DevicePreset, Override, device};
use readpath_lab::fit::Param;
use readpath_lab::probe::Ask;
use readpath_lab::probe::study::{Case, Hidden, case};
use readpath_lab::runs::Shared;
use std::path::Path;

/// Presets that hidden devices are like, whether something is written to them, and blocks of a plane. They are cut down
/// to 4 GiB, with map caches in proportion, which takes less time to simulate.
const STARTS: [(&str, bool, &str); 3] = [
    ("ufs21-64g", false, "230"),
    (concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/write_booster.toml"), true, "230"),
    ("ufs31-256g", false, "70"),
];

fn start(name: &str, blocks: &str) -> DevicePreset {
    let preset = device::load(name, &|path: &Path| std::fs::read_to_string(path)).unwrap();
    let mut set =
        vec![("lu[0].capacity_gib", "4"), ("geometry.blocks_per_plane", blocks), ("map_cache.size_kib", "352")];
    if preset.device.write_booster().is_some() {
        // While there is room for the larger buffer.
        set.insert(0, ("write_booster.buffer_mib", "512"));
    }
    set.iter().fold(preset, |preset, (key, value)| preset.with_override(key, value).unwrap())
}

fn hidden(seed: u64, ios: u32, keys: &[&str]) -> Hidden {
    let (name, writes, blocks) = STARTS[seed as usize % STARTS.len()];
    let ask = Ask {
        target: "/hidden".to_owned(),
        size_bytes: 4 << 30,
        writes,
        seconds: 20,
        error_percent: 2.0,
        long_write_bytes: None,
        fill: false,
        experts: false,
    };
    let params = keys.iter().map(|key| Param::of_key(key).unwrap()).collect();
    Hidden { start: start(name, blocks), params, ask, factor: 1.4, noise: 0.02, measured_ios: 10 * ios, ios }
}

/// Probes hidden devices and prints what is wrong of each. Returns the number of devices of which all holds, and of
/// parameters that were identified. Each simulated value is the mean of `ios` requests.
fn study(seeds: std::ops::Range<u64>, ios: u32, keys: &[&str]) -> (usize, usize) {
    let shared = Shared::default();
    let cases: Vec<(u64, Case)> =
        seeds.into_par_iter().map(|seed| (seed, case(&hidden(seed, ios, keys), seed, &shared).unwrap().0)).collect();
    let mut identified = 0;
    for (seed, case) in &cases {
        identified += case.identified.len();
        println!(
            "{seed}: {} identified, {} not; {} of {} held out are near",
            case.identified.len(),
            case.others,
            case.near,
            case.held_out.len()
        );
        for found in case.identified.iter().filter(|found| !found.holds()) {
            let (key, low, high) = (found.param.key(), found.low, found.high);
            println!("    {key}: {} is not within {low:.3} to {high:.3} ({:.3})", found.truth, found.fitted);
        }
    }
    (cases.iter().filter(|(_, case)| case.holds()).count(), identified)
}

/// Four parameters, which take less time than all.
const FOUR: [&str; 4] = ["firmware.flash_op_us", "map_cache.size_kib", "flash.read_us", "link.transfer_4k_us"];

#[test]
fn four_parameters_of_three_hidden_devices_are_found() {
    let (held, identified) = study(0..3, 1000, &FOUR);
    println!("{held} of 3 hold, {identified} of 12 parameters identified");
    assert_eq!(held, 3);
    assert!(identified >= 6, "{identified}");
}

#[test]
#[ignore = "takes a minute"]
fn four_parameters_of_ten_hidden_devices_are_found() {
    let (held, identified) = study(0..10, 500, &FOUR);
    println!("{held} of 10 hold, {identified} of 40 parameters identified");
    assert!(held >= 9, "{held} of 10");
    assert!(identified >= 20, "{identified}");
}

#[test]
#[ignore = "takes minutes"]
fn what_is_called_identified_holds_for_ten_hidden_devices() {
    let (held, identified) = study(0..10, 500, &[]);
    println!("{held} of 10 hold, {identified} parameters identified");
    assert!(held >= 9, "{held} of 10");
    // A probe that identifies nothing would hold, too.
    assert!(identified >= 20, "{identified}");
}

#[test]
#[ignore = "takes minutes"]
fn what_is_called_identified_holds_for_fifty_hidden_devices() {
    let (held, identified) = study(0..50, 1000, &[]);
    println!("{held} of 50 hold, {identified} parameters identified");
    assert!(held >= 45, "{held} of 50");
    assert!(identified >= 200, "{identified}");
}

/// A DRAM-less SSD of 20 GiB with host memory and a cache in SLC mode, all in proportion to one of 512 GB.
fn dramless() -> DevicePreset {
    let preset = device::load("nvme-dramless-512g", &|path: &Path| std::fs::read_to_string(path)).unwrap();
    let set = [
        ("lu[0].blocks", "5242880"),
        ("geometry.dies_per_channel", "4"),
        ("geometry.pages_per_block", "96"),
        ("geometry.blocks_per_plane", "1000"),
        ("map_cache.size_kib", "512"),
        ("map_memory.size_mib", "8"),
        ("host.max_host_mem_mib", "8"),
        ("geometry.planes", "1"),
        ("flash.read_us", "50"),
        ("flash.map_read_us", "50"),
        ("flash.program_us", "496"),
        ("flash.erase_us", "5000"),
        ("flash.transfer_4k_us", "3.18"),
        ("flash.plane_reads", "one"),
        ("write_buffer.size_kib", "2048"),
        ("slc.holds_map", "false"),
        ("ftl.spare_map_superblocks", "6"),
        ("slc.read_us", "25"),
        ("slc.program_us", "120"),
        ("slc_cache.dynamic_mib", "640"),
        ("ftl.checkpoint_after_units", "1024"),
    ];
    let set = set.map(|(key, value)| Override::new(key, value, "test").unwrap());
    preset.with_overrides(&set).unwrap()
}

/// What sizes and times of such a device a probe looks for.
const OF_DRAMLESS: [&str; 7] = [
    "map_cache.size_kib",
    "map_memory.size_mib",
    "flash.read_us",
    "flash.map_read_us",
    "flash.program_us",
    "slc.program_us",
    "slc_cache.dynamic_mib",
];

/// Probes hidden devices with host memory and a cache. Identified parameters, those of them within their intervals, and
/// the errors of all jobs held out, in percent and in order.
fn dramless_study(seeds: &[u64], keys: &[&str]) -> (usize, usize, Vec<f64>) {
    let start = dramless();
    let ask = Ask {
        target: "/hidden".to_owned(),
        size_bytes: 20 << 30,
        writes: true,
        seconds: 20,
        error_percent: 2.0,
        long_write_bytes: None,
        fill: false,
        experts: false,
    };
    let params = keys.iter().map(|key| Param::of_key(key).unwrap()).collect();
    let hidden = Hidden { start, params, ask, factor: 1.4, noise: 0.02, measured_ios: 4000, ios: 500 };
    let made = seeds.par_iter().map(|seed| {
        let case = case(&hidden, *seed, &Shared::default()).unwrap().0;
        let worst = case.held_out.iter().fold(0.0, |a, b| f64::max(a, *b));
        println!("{seed}: {} identified, {} not; held out: at most {worst:.1} %", case.identified.len(), case.others);
        for found in case.identified.iter().filter(|found| !found.holds()) {
            let (key, low, high) = (found.param.key(), found.low, found.high);
            println!("    {key}: {} is not within {low:.3} to {high:.3} ({:.3})", found.truth, found.fitted);
        }
        case
    });
    let cases: Vec<Case> = made.collect();
    let identified = cases.iter().flat_map(|case| &case.identified);
    let held = identified.clone().filter(|found| found.holds()).count();
    let mut errors: Vec<f64> = cases.iter().flat_map(|case| case.held_out.clone()).collect();
    errors.sort_by(f64::total_cmp);
    (identified.count(), held, errors)
}

/// The value that this share of sorted values does not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len()) - 1]
}

fn check_dramless(seeds: &[u64], keys: &[&str]) {
    let devices = seeds.len();
    let (identified, held, errors) = dramless_study(seeds, keys);
    let (p50, p99) = (quantile(&errors, 0.5), quantile(&errors, 0.99));
    println!("{held} of {identified} parameters of {devices} devices hold; held out: p50 {p50:.2} %, p99 {p99:.2} %");
    assert!(10 * held >= 9 * identified, "{held} of {identified}");
    // A probe that identifies nothing would hold, too.
    assert!(identified >= devices, "{identified} of {devices} devices");
    assert!(p50 <= 10.0 && p99 <= 20.0, "{p50} {p99}");
}

#[test]
fn caches_and_host_memory_of_two_hidden_devices_are_found() {
    check_dramless(&[0, 2], &["map_memory.size_mib", "slc.program_us", "slc_cache.dynamic_mib", "flash.program_us"]);
}

#[test]
#[ignore = "takes an hour"]
fn caches_and_host_memory_of_fifty_hidden_devices_are_found() {
    check_dramless(&Vec::from_iter(0..50), &OF_DRAMLESS);
}
