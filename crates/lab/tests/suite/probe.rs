// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a probe calls identified is so: devices that it does not know, measured with 2 % noise.

use rayon::prelude::*;
use readpath_config::{DevicePreset, device};
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
        set.push(("write_booster.buffer_mib", "512"));
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
        let (held_out, near) = case.held_out;
        println!(
            "{seed}: {} identified, {} not; {near} of {held_out} held out are near",
            case.identified.len(),
            case.others
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
    let (held, identified) = study(0..3, 500, &FOUR);
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
