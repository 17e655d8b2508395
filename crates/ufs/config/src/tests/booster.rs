// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the table `[write_booster]` and of the host's part in it.

use super::super::device::parse;
use super::super::{DevicePreset, Override, presets};
use super::{back, from_json, points_at, replaced};
use readpath_device::WriteBoosterConfig;
use readpath_kit::Ns;

const TABLE: &str = "[write_booster]
buffer_mib = 2048
bits_per_cell = 3
slc_read_us = 20.0
slc_program_us = 75.5
slc_erase_us = 3500.0
life_erases = 30000
";

fn with_table(table: &str) -> String {
    let (before, after) = presets()[0].text.split_once("[hpb]").unwrap();
    format!("{before}{table}\n[hpb]{after}")
}

fn boosted() -> DevicePreset {
    parse(&with_table(TABLE), "test.toml").unwrap()
}

#[test]
fn every_key_reaches_its_field_and_comes_back() {
    let p = boosted();
    assert_eq!(
        p.device.write_booster,
        Some(WriteBoosterConfig {
            buffer_blocks: 2048 * 256,
            bits_per_cell: 3,
            slc_read: Ns(20_000),
            slc_program: Ns(75_500),
            slc_erase: Ns(3_500_000),
            life_erases: 30_000,
        })
    );
    // 85 of 256 pages on 8 dies, 4 blocks each.
    assert_eq!((p.device.booster_slices(), p.device.booster_superblocks()), (85 * 8 * 4, 193));
    let json = serde_json::to_value(p.echo()).unwrap();
    let table = &json["write_booster"];
    assert_eq!((&table["mode"], &table["preserve_user_space"]), (&"shared".into(), &true.into()), "written out");
    assert_eq!((&table["buffer_mib"], &table["slc_program_us"]), (&2048.into(), &75.5.into()));
    assert_eq!(json["host"]["write_booster"], true);
    let echo = from_json(&json);
    assert_eq!(echo.clone().device, p.device);
}

#[test]
fn a_device_without_it_says_nothing_of_it() {
    let p = parse(presets()[0].text, "test.toml").unwrap();
    assert!(p.device.write_booster.is_none() && p.host.write_booster);
    let json = serde_json::to_value(p.echo()).unwrap();
    assert!(json.get("write_booster").is_none() && json["host"].get("write_booster").is_none());
}

#[test]
fn the_host_may_leave_it_alone() {
    let p = boosted().with_override("host.write_booster", "false").unwrap();
    assert!(!p.host.write_booster);
    assert!(!back(&p).host.write_booster);
    let set =
        ["buffer_mib=4", "bits_per_cell=4", "slc_read_us=20", "slc_program_us=75", "slc_erase_us=1", "life_erases=1"];
    let set = set.map(|s| Override::from_argument(&format!("write_booster.{s}"), "--set").unwrap());
    let p = parse(presets()[0].text, "test.toml").unwrap().with_overrides(&set).unwrap();
    assert_eq!(p.device.write_booster.unwrap().buffer_blocks, 1024, "overrides can give a device a buffer");
}

#[test]
fn mistakes_point_at_their_line() {
    for (old, new, key, says) in [
        ("buffer_mib = 2048", "buffer_mib = 2046", "buffer_mib", "it must be a multiple of 4"),
        ("buffer_mib = 2048", "buffer_mib = 0", "buffer_mib", "expected a whole number from 4"),
        ("buffer_mib = 2048", "buffer_mib = 65536", "buffer_mib", "superblocks for data, 2720 blocks each"),
        (
            "buffer_mib = 2048",
            "mode = \"dedicated\"\nbuffer_mib = 4",
            "mode",
            "only a buffer that all logical units share",
        ),
        ("buffer_mib = 2048", "mode = \"share\"\nbuffer_mib = 4", "mode", "did you mean \"shared\"?"),
        (
            "buffer_mib = 2048",
            "preserve_user_space = false\nbuffer_mib = 4",
            "preserve_user_space",
            "takes space from the logical units is not built",
        ),
        ("bits_per_cell = 3", "bits_per_cell = 1", "bits_per_cell", "expected a whole number from 2 to 5"),
        ("slc_read_us = 20.0", "slc_read_us = 0.0", "slc_read_us", "above 0 and at most 1 s"),
        ("slc_program_us = 75.5", "slc_program_us = 1000000.001", "slc_program_us", "above 0 and at most 1 s"),
        ("slc_erase_us = 3500.0", "slc_erase_us = -1", "slc_erase_us", "cannot be negative"),
        ("life_erases = 30000", "life_erases = 0", "life_erases", "expected a whole number from 1 to 10000000"),
        ("life_erases = 30000", "life_eraces = 1", "life_eraces", "did you mean life_erases?"),
    ] {
        let text = with_table(&replaced(TABLE, old, new));
        let e = parse(&text, "test.toml").expect_err(new);
        points_at(&e, &text, new.lines().next().unwrap(), &format!("write_booster.{key}"), says);
    }
    let text = with_table(&replaced(TABLE, "life_erases = 30000\n", ""));
    let e = parse(&text, "test.toml").unwrap_err();
    points_at(&e, &text, "[write_booster]", "write_booster.life_erases", "is missing");
}
