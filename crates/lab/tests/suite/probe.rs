// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a probe calls identified is so: devices that it does not know, measured with 2 % noise.

use rayon::prelude::*;
use readpath_config::{DevicePreset, device};
use readpath_lab::fit::Param;
use readpath_lab::probe::Ask;
use readpath_lab::probe::study::{Case, Hidden, case, cut_down, dramless};
use readpath_lab::runs::Shared;
use std::path::Path;

/// Presets that hidden devices are like, whether something is written to them, and blocks of a plane when they are cut
/// down.
const STARTS: [(&str, bool, u32); 3] = [
    ("ufs21-64g", false, 230),
    (concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/write_booster.toml"), true, 230),
    ("ufs31-256g", false, 70),
];

fn ask(writes: bool) -> Ask {
    Ask {
        target: "/hidden".to_owned(),
        size_bytes: 4 << 30,
        writes,
        seconds: 20,
        error_percent: 2.0,
        long_write_bytes: None,
        fill: false,
        experts: false,
    }
}

/// Each simulated value is the mean of `ios` requests.
fn hidden(start: DevicePreset, ask: Ask, ios: u32, keys: &[&str]) -> Hidden {
    let params = keys.iter().map(|key| Param::of_key(key).unwrap()).collect();
    Hidden { start, params, ask, factor: 1.4, noise: 0.02, measured_ios: 10 * ios, ios }
}

/// What became of hidden devices.
struct Outcome {
    cases: Vec<Case>,
    identified: usize,
    /// Identified parameters that lie within their intervals.
    held: usize,
    /// Errors of all jobs held out, in percent, in order.
    errors: Vec<f64>,
}

impl Outcome {
    /// The error that this share of the jobs held out does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let n = self.errors.len();
        self.errors[((n as f64 * share).ceil() as usize).clamp(1, n) - 1]
    }
}

/// Probes hidden devices and prints what is wrong of each.
fn study(seeds: impl IntoParallelIterator<Item = u64>, of: impl Fn(u64) -> Hidden + Sync) -> Outcome {
    let probed = seeds.into_par_iter().map(|seed| {
        let case = case(&of(seed), seed, &Shared::default()).unwrap().0;
        let worst = case.held_out.iter().fold(0.0, |a, b| f64::max(a, *b));
        let (known, held_out) = (case.identified.len(), case.held_out.len());
        println!(
            "{seed}: {known} identified, {} not; {} of {held_out} held out are near, at most {worst:.1} % off",
            case.others, case.near
        );
        for found in case.identified.iter().filter(|found| !found.holds()) {
            let (key, low, high) = (found.param.key(), found.low, found.high);
            println!("    {seed} {key}: {} is not within {low:.3} to {high:.3} ({:.3})", found.truth, found.fitted);
        }
        case
    });
    let cases: Vec<Case> = probed.collect();
    let identified = cases.iter().flat_map(|case| &case.identified);
    let held = identified.clone().filter(|found| found.holds()).count();
    let mut errors: Vec<f64> = cases.iter().flat_map(|case| case.held_out.clone()).collect();
    errors.sort_by(f64::total_cmp);
    Outcome { identified: identified.count(), held, errors, cases }
}

/// Devices without a cache of their own: whether nine in ten of the devices hold in all, and of the parameters that are
/// called identified, and how many these are.
fn check_plain(devices: u64, ios: u32, keys: &[&str], least: usize) {
    let of = |seed: u64| {
        let (name, writes, blocks) = STARTS[seed as usize % STARTS.len()];
        let preset = device::load(name, &|path: &Path| std::fs::read_to_string(path)).unwrap();
        hidden(cut_down(&preset, blocks).unwrap(), ask(writes), ios, keys)
    };
    let found = study(0..devices, of);
    let all = found.cases.iter().filter(|case| case.holds()).count() as u64;
    println!("{all} of {devices} hold; {} of {} parameters identified hold", found.held, found.identified);
    assert!(10 * all >= 9 * devices, "{all} of {devices}");
    assert!(10 * found.held >= 9 * found.identified, "{} of {}", found.held, found.identified);
    // A probe that identifies nothing would hold, too.
    assert!(found.identified >= least, "{}", found.identified);
}

/// Four parameters, which take less time than all.
const FOUR: [&str; 4] = ["firmware.flash_op_us", "map_cache.size_kib", "flash.read_us", "link.transfer_4k_us"];

#[test]
fn four_parameters_of_three_hidden_devices_are_found() {
    check_plain(3, 1000, &FOUR, 6);
}

#[test]
#[ignore = "takes a minute"]
fn four_parameters_of_ten_hidden_devices_are_found() {
    check_plain(10, 500, &FOUR, 20);
}

#[test]
#[ignore = "takes minutes"]
fn what_is_called_identified_holds_for_fifty_hidden_devices() {
    check_plain(50, 1000, &[], 100);
}

/// MiB of the static and of the dynamic cache in SLC mode of DRAM-less SSDs with host memory.
const CACHES: [(u32, u32); 3] = [(0, 256), (256, 0), (96, 160)];

/// What a probe looks for in them.
const OF_DRAMLESS: [&str; 6] = [
    "map_memory.size_mib",
    "flash.read_us",
    "flash.program_us",
    "slc.program_us",
    "slc_cache.static_mib",
    "slc_cache.dynamic_mib",
];

/// Such devices: whether nine in ten of the parameters that are called identified lie within their intervals, and how
/// far the jobs held out are from their predictions.
fn check_dramless(seeds: std::ops::Range<u64>, keys: &[&str], least: usize) {
    let devices = seeds.end - seeds.start;
    let of = |seed: u64| {
        let (fixed, dynamic) = CACHES[seed as usize % CACHES.len()];
        let has =
            |key: &&&str| !(fixed == 0 && key.ends_with("static_mib") || dynamic == 0 && key.ends_with("dynamic_mib"));
        let keys: Vec<&str> = keys.iter().filter(has).copied().collect();
        let start = dramless(fixed, dynamic).unwrap();
        Hidden { measured_ios: 20_000, ..hidden(start, ask(true), 400, &keys) }
    };
    let found = study(seeds, of);
    let (held, identified) = (found.held, found.identified);
    let (p50, p99) = (found.quantile(0.5), found.quantile(0.99));
    println!("{held} of {identified} parameters of {devices} devices hold; held out: p50 {p50:.2} %, p99 {p99:.2} %");
    assert!(10 * held >= 9 * identified, "{held} of {identified}");
    // A probe that identifies nothing would hold, too.
    assert!(identified >= least, "{identified} of {devices} devices");
    assert!(p50 <= 10.0 && p99 <= 20.0, "{p50} {p99}");
}

#[test]
fn caches_and_host_memory_of_two_hidden_devices_are_found() {
    let keys = ["map_memory.size_mib", "slc.program_us", "slc_cache.static_mib", "slc_cache.dynamic_mib"];
    check_dramless(0..2, &keys, 3);
}

#[test]
#[ignore = "takes minutes"]
fn caches_and_host_memory_of_the_first_17_of_50_hidden_devices_are_found() {
    check_dramless(0..17, &OF_DRAMLESS, 51);
}

#[test]
#[ignore = "takes minutes"]
fn caches_and_host_memory_of_the_next_17_of_50_hidden_devices_are_found() {
    check_dramless(17..34, &OF_DRAMLESS, 51);
}

#[test]
#[ignore = "takes minutes"]
fn caches_and_host_memory_of_the_last_16_of_50_hidden_devices_are_found() {
    check_dramless(34..50, &OF_DRAMLESS, 48);
}
