// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the tables `[slc]`, `[write_booster]` and `[slc_cache]`, and of the host's part in them.

use super::super::device::parse;
use super::super::{DevicePreset, Override, presets};
use super::{back, from_json, points_at, replaced};
use readpath_device::{CacheCells, CacheOwner, CellMode, SlcCacheConfig, SlcConfig};
use readpath_kit::Ns;

const TABLE: &str = "[slc]
bits_per_cell = 3
read_us = 20.0
program_us = 75.5
erase_us = 3500.0
life_erases = 30000

[write_booster]
buffer_mib = 2048
";

fn with_table(table: &str) -> String {
    let (before, after) = presets()[0].text.split_once("[hpb]").unwrap();
    format!("{before}{table}\n[hpb]{after}")
}

fn boosted() -> DevicePreset {
    parse(&with_table(TABLE), "test.toml").unwrap()
}

/// A device with a cache of its own instead.
fn cached(table: &str) -> String {
    with_table(&format!("{}{table}", &TABLE[..TABLE.find("[write_booster]").unwrap()]))
}

const SLC: SlcConfig = SlcConfig {
    bits_per_cell: 3,
    read: Ns(20_000),
    program: Ns(75_500),
    erase: Ns(3_500_000),
    life_erases: 30_000,
    holds_map: false,
    folds_on_die: false,
};

#[test]
fn every_key_reaches_its_field_and_comes_back() {
    let p = boosted();
    assert_eq!((p.device.slc, p.device.slc_cache), (Some(SLC), Some(SlcCacheConfig::write_booster(2048 * 256))));
    // 85 of 256 pages on 8 dies, 4 blocks each.
    assert_eq!((p.device.cache_slices(), p.device.cache_superblocks()), (85 * 8 * 4, 193));
    let json = serde_json::to_value(p.echo()).unwrap();
    let table = &json["write_booster"];
    assert_eq!((&table["mode"], &table["preserve_user_space"]), (&"shared".into(), &true.into()), "written out");
    assert_eq!((&table["buffer_mib"], &json["slc"]["program_us"]), (&2048.into(), &75.5.into()));
    assert_eq!(json["host"]["write_booster"], true);
    assert_eq!(from_json(&json).device, p.device);
}

#[test]
fn a_cache_of_the_device_itself() {
    let text = cached("[slc_cache]\nstatic_mib = 100\ndynamic_mib = 1000\nfold_when_idle = false\n");
    let text = text.replace("life_erases = 30000", "life_erases = 30000\nholds_map = true\nfold = \"die\"");
    let e = parse(&text, "test.toml").unwrap_err();
    points_at(&e, &text, "holds_map = true", "slc.holds_map", "flash.map_read_us is 50 and slc.read_us is 20;");
    let read = presets()[0].text.lines().find(|line| line.starts_with("map_read_us")).unwrap();
    let text = replaced(&text, read, "map_read_us = 20.0");
    let e = parse(&text, "test.toml").unwrap_err();
    points_at(&e, &text, text.lines().next().unwrap(), "ftl.spare_map_superblocks", "this far apart, need at least 17");
    let text = text.replace("[slc]", "[ftl]\nspare_map_superblocks = 20\n\n[slc]");
    let p = parse(&text, "test.toml").unwrap();
    let owner = CacheOwner::Device { folds_when_idle: false };
    let cache = SlcCacheConfig { owner, static_blocks: 25_600, dynamic_blocks: 256_000, cells: None };
    assert_eq!(p.device.slc_cache, Some(cache));
    assert_eq!(p.device.slc, Some(SlcConfig { holds_map: true, folds_on_die: true, ..SLC }));
    assert!(p.device.write_booster().is_none());
    // 2720 slices each.
    assert_eq!((p.device.static_superblocks(), p.device.cache_superblocks()), (10, 105));
    let without = parse(presets()[0].text, "test.toml").unwrap().device;
    // 64 MiB of the map are 7 superblocks in SLC mode, 2 otherwise; the cache keeps 10, and 14 more are spare.
    assert_eq!((without.map_superblocks(), p.device.map_superblocks()), (2, 7));
    assert_eq!(without.data_superblocks() - p.device.data_superblocks(), 10 + 5 + 14);
    let json = serde_json::to_value(p.echo()).unwrap();
    assert!(json.get("write_booster").is_none() && json["host"].get("write_booster").is_none());
    assert_eq!(from_json(&json).device, p.device);
}

/// QLC flash whose cache is in TLC mode.
#[test]
fn a_cache_of_more_bits_a_cell() {
    const CELLS: &str =
        "[slc_cache.cells]\nbits = 3\nread_us = 40\nprogram_us = 600.5\nerase_us = 3000\nlife_erases = 1500\n";
    let text = cached(&format!("[slc_cache]\ndynamic_mib = 1000\n\n{CELLS}"));
    let text = text.replace("bits_per_cell = 3", "bits_per_cell = 4");
    let p = parse(&text, "test.toml").unwrap();
    let cells =
        CacheCells { bits: 3, read: Ns::from_us(40), program: Ns(600_500), erase: Ns::from_ms(3), life_erases: 1500 };
    assert_eq!(p.device.slc_cache.unwrap().cells, Some(cells));
    let pages = p.device.geometry.pages_per_block;
    let in_mode = CellMode::ALL.map(|mode| p.device.pages_in(mode));
    assert_eq!(in_mode, [pages, pages * 3 / 4, pages / 4]);
    let [full, cache, map] = p.device.life_used([1.0; CellMode::COUNT]);
    let lives = [full / cache, full / map].map(|life| (life * f64::from(p.device.flash.life_erases)).round());
    assert_eq!(lives, [1500.0, 30_000.0]);
    let mut of_host = p.device.clone();
    of_host.slc_cache.as_mut().unwrap().owner = CacheOwner::Host;
    assert_eq!(of_host.check().unwrap_err().field, "slc_cache.cells");
    let json = serde_json::to_value(p.echo()).unwrap();
    assert_eq!(from_json(&json).device, p.device);
    for (old, new, key, says) in [
        ("bits = 3", "bits = 4", "slc_cache.cells.bits", "is 4; it must be less than slc.bits_per_cell, which is 4"),
        ("bits = 3", "bits = 1", "slc_cache.cells.bits", "expected a whole number from 2 to 4"),
        ("program_us = 600.5", "", "slc_cache.cells.program_us", "is missing"),
        ("life_erases = 1500\n", "life_erases = 0\n", "slc_cache.cells.life_erases", "from 1 to"),
        (
            "dynamic_mib = 1000",
            "dynamic_mib = 4000000",
            "slc_cache.dynamic_mib",
            "blocks each in the mode of the cache",
        ),
    ] {
        let bad = replaced(&text, old, new);
        let e = parse(&bad, "test.toml").unwrap_err();
        assert!(e.key == key && e.to_string().contains(says), "{key}: {e}");
    }
    let text = cached(&format!("[write_booster]\nbuffer_mib = 4\n\n{}", CELLS.replace("slc_cache", "write_booster")));
    assert_eq!(parse(&text, "test.toml").unwrap_err().key, "write_booster.cells");
}

#[test]
fn a_device_without_it_says_nothing_of_it() {
    let p = parse(presets()[0].text, "test.toml").unwrap();
    assert!(p.device.slc.is_none() && p.device.slc_cache.is_none() && p.host.write_booster);
    let json = serde_json::to_value(p.echo()).unwrap();
    assert!(["slc", "slc_cache", "write_booster"].iter().all(|table| json.get(table).is_none()));
    assert!(json["host"].get("write_booster").is_none());
}

#[test]
fn the_host_may_leave_it_alone() {
    let p = boosted().with_override("host.write_booster", "false").unwrap();
    assert!(!p.host.write_booster);
    assert!(!back(&p).host.write_booster);
    let set = ["bits_per_cell=4", "read_us=20", "program_us=75", "erase_us=1", "life_erases=1"];
    let set = set.iter().map(|s| format!("slc.{s}")).chain(["write_booster.buffer_mib=4".to_owned()]);
    let set: Vec<_> = set.map(|s| Override::from_argument(&s, "--set").unwrap()).collect();
    let p = parse(presets()[0].text, "test.toml").unwrap().with_overrides(&set).unwrap();
    assert_eq!(p.device.write_booster().unwrap().dynamic_blocks, 1024, "overrides can give a device a buffer");
}

#[test]
fn mistakes_point_at_their_line() {
    for (old, new, key, says) in [
        ("buffer_mib = 2048", "buffer_mib = 2046", "write_booster.buffer_mib", "it must be a multiple of 4"),
        ("buffer_mib = 2048", "buffer_mib = 0", "write_booster.buffer_mib", "expected a whole number from 4"),
        ("buffer_mib = 2048", "buffer_mib = 65536", "write_booster.buffer_mib", "superblocks for data, 2720 blocks"),
        (
            "buffer_mib = 2048",
            "mode = \"dedicated\"\nbuffer_mib = 4",
            "write_booster.mode",
            "only a buffer that all logical units share",
        ),
        ("buffer_mib = 2048", "mode = \"share\"\nbuffer_mib = 4", "write_booster.mode", "did you mean \"shared\"?"),
        (
            "buffer_mib = 2048",
            "preserve_user_space = false\nbuffer_mib = 4",
            "write_booster.preserve_user_space",
            "takes space from the logical units is not built",
        ),
        (
            "buffer_mib = 2048",
            "slc_program_us = 75.5\nbuffer_mib = 4",
            "write_booster.slc_program_us",
            "stands in the table [slc] now, as program_us",
        ),
        ("bits_per_cell = 3", "bits_per_cell = 1", "slc.bits_per_cell", "expected a whole number from 2 to 5"),
        ("read_us = 20.0", "read_us = 0.0", "slc.read_us", "above 0 and at most 1 s"),
        ("program_us = 75.5", "program_us = 1000000.001", "slc.program_us", "above 0 and at most 1 s"),
        ("erase_us = 3500.0", "erase_us = -1", "slc.erase_us", "cannot be negative"),
        ("life_erases = 30000", "life_erases = 0", "slc.life_erases", "expected a whole number from 1 to 10000000"),
        ("life_erases = 30000", "life_eraces = 1", "slc.life_eraces", "did you mean life_erases?"),
        ("life_erases = 30000", "fold = \"chip\"\nlife_erases = 1", "slc.fold", "\"controller\" or \"die\""),
    ] {
        let text = with_table(&replaced(TABLE, old, new));
        let e = parse(&text, "test.toml").expect_err(new);
        points_at(&e, &text, new.lines().next().unwrap(), key, says);
    }
    let text = with_table(&replaced(TABLE, "life_erases = 30000\n", ""));
    let e = parse(&text, "test.toml").unwrap_err();
    points_at(&e, &text, "[slc]", "slc.life_erases", "is missing");
    let both = format!("{TABLE}[slc_cache]\ndynamic_mib = 4\n");
    for (table, line, key, says) in [
        (both.as_str(), "[slc_cache]", "slc_cache", "stands beside [write_booster]"),
        ("[write_booster]\nbuffer_mib = 4\n", "", "slc", "is missing; a cache in SLC mode needs the times"),
    ] {
        let text = with_table(table);
        let e = parse(&text, "test.toml").unwrap_err();
        assert!(e.to_string().contains(says), "{e}");
        if !line.is_empty() {
            points_at(&e, &text, line, key, says);
        }
    }
    for (table, line, key, says) in [
        ("[slc_cache]\n", "[slc_cache]", "slc_cache", "has no size; static_mib or"),
        (
            "[slc_cache]\nstatic_mib = 90000\n",
            "static_mib = 90000",
            "slc_cache.static_mib",
            "is 90000 MiB; it may be at",
        ),
        (
            "[slc_cache]\nstatic_mib = 1000\ndynamic_mib = 90000\n",
            "dynamic_mib = 90000",
            "slc_cache.dynamic_mib",
            "is 90000 MiB beside a static part of 1000 MiB; both may be at most",
        ),
        ("[slc_cache]\ndynamic_mib = 90000\n", "dynamic_mib = 90000", "slc_cache.dynamic_mib", "2720 blocks each in"),
        ("[slc_cache]\nstatic_mib = 5000\n", "static_mib = 5000", "slc_cache.static_mib", "leave room for at most "),
    ] {
        let text = cached(table);
        let e = parse(&text, "test.toml").expect_err(table);
        let line = text.lines().find(|found| found.starts_with(line)).unwrap();
        points_at(&e, &text, line, key, says);
    }
}
