// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the tables `[ftl]` and `[faults]`: every key reaches its field, and mistakes point at their line.

use super::super::device::{load, parse};
use super::super::{DevicePreset, Override, presets};
use super::{from_json, no_file, points_at};
use readpath_device::{FaultConfig, FtlConfig, VictimPolicy, Without};
use readpath_kit::Ns;

const TABLES: &str = r#"
[ftl]
victim = "cost-benefit"
collect_below = 5
collect_together = 6
superblock_tables = true
collect_idle_below = 7
idle_after_ms = 2.5
move_buffer_kib = 384
separate_moved = false
hot_table_entries = 512
wear_threshold_percent = 9
wear_least_erases = 12
map_changes = 20000
map_write_pages = 3
spare_map_superblocks = 11
checkpoint_after_units = 5000
read_disturb_limit = 60000

[faults]
program_failures_ppm = 10
erase_failures_ppm = 20
read_retries_ppm = 30
seed = 9223372036854775807
"#;

fn ufs21() -> DevicePreset {
    load("ufs21-64g", &no_file).unwrap()
}

fn with_tables(tables: &str) -> String {
    let text = presets()[0].text;
    let (before, after) = text.split_once("[hpb]").unwrap();
    format!("{before}{tables}\n[hpb]{after}")
}

#[test]
fn every_key_reaches_its_field_and_comes_back() {
    let p = parse(&with_tables(TABLES), "test.toml").unwrap();
    assert_eq!(
        p.device.ftl,
        FtlConfig {
            victim: VictimPolicy::CostBenefit,
            collect_below: 5,
            collect_together: 6,
            superblock_tables: true,
            collect_idle_below: 7,
            idle_after: Ns(2_500_000),
            move_buffer_blocks: 96,
            separate_moved: false,
            hot_table_entries: 512,
            wear_threshold_percent: 9,
            wear_least_erases: 12,
            map_changes: 20_000,
            map_write_pages: 3,
            spare_map_superblocks: 11,
            checkpoint_after_units: 5_000,
            read_disturb_limit: 60_000,
            faults: FaultConfig {
                program_failures_ppm: 10,
                erase_failures_ppm: 20,
                read_retries_ppm: 30,
                seed: i64::MAX as u64,
            },
            without: Without::NOTHING,
        }
    );
    let json = serde_json::to_value(p.echo()).unwrap();
    assert_eq!(json["ftl"]["victim"], "cost-benefit");
    assert_eq!((&json["ftl"]["idle_after_ms"], &json["ftl"]["move_buffer_kib"]), (&2.5.into(), &384.into()));
    assert_eq!(json["faults"]["read_retries_ppm"], 30);
    let mut older = json.clone();
    assert!(older["ftl"].as_object_mut().unwrap().remove("collect_together").is_some());
    let older = from_json(&older);
    assert_eq!(older.clone().device.ftl.collect_together, 1, "as devices did before the key");
    let echo = from_json(&json);
    assert_eq!(echo.clone().device, p.device);
}

#[test]
fn what_is_left_out_is_the_default_also_in_older_documents() {
    let p = ufs21();
    assert_eq!(p.device.ftl, FtlConfig::DEFAULT);
    let q = parse(&with_tables("[ftl]\n[faults]"), "test.toml").unwrap();
    assert_eq!(q.device, p.device);
    let mut json = serde_json::to_value(p.echo()).unwrap();
    assert_eq!(json["ftl"]["map_changes"], 16_384, "defaults are written out");
    assert!(json.as_object_mut().unwrap().remove("ftl").is_some());
    assert!(json.as_object_mut().unwrap().remove("faults").is_some());
    let echo = from_json(&json);
    assert_eq!(echo.clone().device, p.device);
}

#[test]
fn overrides_make_the_tables() {
    let set = |key: &str, value: &str| ufs21().with_override(key, value).unwrap().device.ftl;
    assert_eq!(set("ftl.victim", "cost-benefit").victim, VictimPolicy::CostBenefit);
    assert_eq!(set("faults.program_failures_ppm", "100").faults.program_failures_ppm, 100);
    assert_eq!(set("ftl.separate_moved", "false"), FtlConfig { separate_moved: false, ..FtlConfig::DEFAULT });
    for (argument, error) in [
        ("ftl.victims=greedy", "--set: ftl.victims: is not a key; did you mean victim?"),
        ("ftl.victim=gredy", "--set: ftl.victim: is \"gredy\"; expected \"greedy\" or \"cost-benefit\"; did you mean"),
        ("ftl.collect_below=1", "--set: ftl.collect_below: is 1; expected a whole number from 2 to 65536"),
        ("faults.seed=-1", "--set: faults.seed: is -1; expected a whole number from 0 to 9223372036854775807"),
        ("ftl.without=1", "--set: ftl.without: is not a key"),
    ] {
        let o = Override::from_argument(argument, "--set").unwrap();
        let e = ufs21().with_overrides(&[o]).expect_err(argument);
        assert!(e.to_string().starts_with(error), "{argument}\n{e}\n{error}");
    }
}

#[test]
fn mistakes_point_at_their_line() {
    for (new, key, says) in [
        ("victim = 1", "ftl.victim", "is 1; expected \"greedy\" or \"cost-benefit\""),
        ("collect_below = 140", "ftl.collect_below", "at most 136 superblocks can be erased"),
        ("collect_together = 0", "ftl.collect_together", "is 0; expected a whole number from 1 to 64"),
        ("collect_idle_below = 70000", "ftl.collect_idle_below", "expected a whole number from 0 to 65536"),
        ("idle_after_ms = 0.0", "ftl.idle_after_ms", "it must be 1 us to 1000 s"),
        ("move_buffer_kib = 6", "ftl.move_buffer_kib", "a multiple of 4"),
        ("move_buffer_kib = 28", "ftl.move_buffer_kib", "is 7; it must be 8 or more (counted in blocks of 4 KiB)"),
        ("separate_moved = 1", "ftl.separate_moved", "expected true or false"),
        ("hot_table_entries = 100", "ftl.hot_table_entries", "0 or a power of two from 2 on"),
        ("hot_table_entries = 1", "ftl.hot_table_entries", "0 or a power of two from 2 on"),
        ("wear_threshold_percent = 101", "ftl.wear_threshold_percent", "expected a whole number from 0 to 100"),
        ("wear_least_erases = 0", "ftl.wear_least_erases", "expected a whole number from 1 to 65536"),
        ("map_changes = 63", "ftl.map_changes", "it must be 64 or more"),
        ("map_changes = 16000000", "ftl.map_changes", "a superblock has room for 2047"),
        ("map_write_pages = 0", "ftl.map_write_pages", "expected a whole number from 1 to 256"),
        ("spare_map_superblocks = 4", "ftl.spare_map_superblocks", "expected a whole number from 5 to 65536"),
        ("checkpoint_after_units = 15", "ftl.checkpoint_after_units", "expected a whole number from 16 to 16777216"),
        ("read_disturb_limit = 4294967296", "ftl.read_disturb_limit", "from 0 to 4294967295"),
        (
            "[faults]\nprogram_failures_ppm = 100001",
            "faults.program_failures_ppm",
            "expected a whole number from 0 to 100000",
        ),
        (
            "[faults]\nerase_failures_ppm = 100001",
            "faults.erase_failures_ppm",
            "expected a whole number from 0 to 100000",
        ),
        ("[faults]\nread_retries_ppm = 900001", "faults.read_retries_ppm", "expected a whole number from 0 to 900000"),
        ("[faults]\nprogram_failures = 1", "faults.program_failures", "did you mean program_failures_ppm?"),
    ] {
        let text = with_tables(&format!("[ftl]\n{new}"));
        let e = parse(&text, "test.toml").expect_err(new);
        points_at(&e, &text, new.lines().last().unwrap(), key, says);
    }
}
