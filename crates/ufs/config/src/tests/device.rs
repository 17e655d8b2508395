// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of device files.

use super::super::device::{load, parse};
use super::super::{DevicePreset, Override, presets};
use super::{back, from_json, no_file, points_at, replaced};
use proptest::prelude::*;
use readpath_device::{ZoneLayout, ZoneRule};
use readpath_flash::Scheduler;
use readpath_kit::Ns;

fn ufs21() -> &'static str {
    presets()[0].text
}

fn preset(name: &str) -> DevicePreset {
    load(name, &no_file).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_preset_is_valid_and_survives_its_echo() {
    for b in presets() {
        let p = preset(b.name);
        assert_eq!(p.name, b.name);
        p.device.check().unwrap();
        assert!(b.text.starts_with("# SPDX-License-Identifier: MIT OR Apache-2.0\n"), "{}", b.file);
        let calibrated = !p.description.contains("Not calibrated");
        assert_eq!(calibrated, !p.fitted.is_empty(), "{} says which keys are fitted, or that none is", b.name);

        let back = from_json(&serde_json::to_value(p.echo()).unwrap());
        assert_eq!(back.device, super::back(&p).device);
        assert_eq!(back.device, p.device);
        assert_eq!((back.delays, back.host), (p.delays, p.host));
        assert_eq!((&back.name, &back.description, &back.sources), (&p.name, &p.description, &p.sources));
        assert_eq!(back.fitted, p.fitted);
        assert_eq!(back.echo(), p.echo());
    }
}

#[test]
fn the_echo_has_the_keys_and_units_of_the_file() {
    let echo = serde_json::to_value(preset("ufs21-64g").echo()).unwrap();
    for (pointer, value) in [
        ("/schema", serde_json::json!("readpath-device/1")),
        ("/flash/erase_us", 3500.0.into()),
        ("/firmware/hpb_read_extra_us", 0.25.into()),
        ("/map_cache/size_kib", 1440.into()),
        ("/write_buffer/size_kib", 768.into()),
        ("/hpb/region_mib", 16.into()),
        ("/hpb/repeat_after_ms", 10.0.into()),
        ("/lu/0/blocks", 16_777_216.into()),
        ("/host/max_transfer_kib", 512.into()),
        ("/calibration/fitted/1/key", "map_cache.size_kib".into()),
    ] {
        assert_eq!(echo.pointer(pointer), Some(&value), "{pointer}");
    }
}

#[test]
fn sums_of_the_presets() {
    for (name, blocks, map_pages, spare_permille) in [
        ("ufs21-64g", 64 << 18, 4096, 70),
        ("ufs31-128g", 128 << 18, 8192, 70),
        ("ufs31-256g", 256 << 18, 16384, 70),
        ("ufs40-512g", 512 << 18, 32768, 70),
        ("mqsim-64g", 58 << 18, 3712, 102),
        ("nvme-dramless-1t", 244_190_646, 59_617, 95),
        ("nvme-qlc-1t", 244_190_646, 59_617, 94),
        ("nvme-2230-256g", 62_514_774, 61_050, 96),
    ] {
        let d = preset(name).device;
        let superblock = u64::from(d.geometry.slices_per_superblock());
        let data = u64::from(d.geometry.superblocks() - d.map_superblocks()) * superblock;
        assert_eq!((d.logical_blocks(), d.map_pages()), (blocks, map_pages), "{name}");
        assert_eq!((data - blocks) * 1000 / blocks, spare_permille, "{name}");
    }
    let d = preset("ufs21-64g").device;
    assert_eq!(d.logical_blocks(), 16_777_216);
    assert_eq!(d.map_superblocks(), 2);
    let spare = u64::from(d.geometry.slices()) - d.logical_blocks() - 2 * 8192;
    assert_eq!(spare, 144 * 8192, "144 superblocks of 32 MiB: 4.5 GiB, 7.03 % of 64 GiB");
}

#[test]
fn times_are_exact() {
    let p = preset("ufs21-64g");
    let (d, delays) = (&p.device, p.delays);
    assert_eq!((d.firmware.flash_op, d.firmware.hpb_read_extra), (Ns(13_000), Ns(250)));
    assert_eq!((d.link.request, d.link.block, d.link.response), (Ns(500), Ns(3_900), Ns(100)));
    assert_eq!((d.flash.erase, d.hpb.unwrap().repeat_after), (Ns(3_500_000), Ns(10_000_000)));
    assert_eq!((delays.to_link, delays.from_link), (Ns(10_000), Ns(15_000)));
    assert_eq!(d.hpb.unwrap().region_size, 15);
    assert_eq!(d.entry_key, [0x5265616470617468, 0x2048504220656e74]);
    assert_eq!(p.device.scheduler, Scheduler::Lean);
}

/// A map page of 16 KiB crosses the channel in four times the time of 4 KiB of data, unless the file has a longer
/// time; a shorter one is refused.
#[test]
fn a_map_page_takes_as_long_as_its_bytes() {
    for (name, nanoseconds) in
        [("ufs21-64g", 32_000), ("ufs31-256g", 11_704), ("ufs40-512g", 10_240), ("mqsim-64g", 20_480)]
    {
        assert_eq!(preset(name).device.flash.map_transfer, Ns(nanoseconds), "{name}");
    }
    let p = preset("ufs21-64g");
    let map_transfer = |key, value| p.with_override(key, value).unwrap().device.flash.map_transfer;
    assert_eq!(map_transfer("flash.transfer_4k_us", "2.5"), Ns(10_000), "it follows the channel");
    assert_eq!(map_transfer("map_cache.page_bytes", "4096"), Ns(8_000), "and the page");
    assert_eq!(map_transfer("flash.map_transfer_us", "32"), Ns(32_000));
    assert_eq!(map_transfer("flash.map_transfer_us", "40.5"), Ns(40_500));
    let old = "transfer_4k_us = 8.0";
    let text = replaced(ufs21(), old, &format!("{old}\nmap_transfer_us = 31.999"));
    let e = parse(&text, "test.toml").unwrap_err();
    let says = "is 31.999; a map page of 16384 bytes takes at least 32 (4 x transfer_4k_us), which is the default";
    points_at(&e, &text, "map_transfer_us = 31.999", "flash.map_transfer_us", says);
    let text = replaced(ufs21(), old, &format!("{old}\nmap_transfer_us = 1000000.001"));
    wrong(&text, "map_transfer_us = 1000000.001", "flash.map_transfer_us", "at most 1 s");
    // An error that depends on another key is reported at that key's table.
    let text = replaced(ufs21(), old, "transfer_4k_us = 500000.0");
    wrong(&text, "[flash]", "flash.map_transfer_us", "at most 1 s");
}

/// Checks the place of a text's error.
#[track_caller]
fn wrong(text: &str, part: &str, key: &str, says: &str) {
    points_at(&parse(text, "test.toml").expect_err(part), text, part, key, says);
}

/// Replaces a line of a valid file and checks the place of the error.
#[track_caller]
fn mistake(old: &str, new: &str, key: &str, says: &str) {
    wrong(&replaced(ufs21(), old, new), new, key, says);
}

#[test]
fn mistakes_in_the_text() {
    mistake("size_kib = 1440", "size_kib = = 1", "", "this is not TOML");
    mistake("queue_depth = 32", "queue_depth = ", "", "this is not TOML");
    mistake("[host]", "[host", "", "this is not TOML");
    let text = replaced(ufs21(), "size_kib = 1440", "size_kib = 1440\nsize_kib = 3");
    wrong(&text, "size_kib = 3", "size_kib", "is given twice");
    let e = parse("", "test.toml").unwrap_err();
    assert_eq!(e.to_string(), "test.toml:1:1: schema: is missing; expected a text");
}

#[test]
fn unknown_and_missing_keys() {
    mistake("read_us = 50.0", "raed_us = 50.0", "flash.raed_us", "is not a key; did you mean read_us?");
    mistake("[firmware]", "[firmwear]", "firmwear", "did you mean firmware?");
    mistake("pinned_start = 0", "colour = 0", "lu[0].colour", "is not a key; known here: capacity_gib, blocks");
    mistake("key = \"map_cache.size_kib\"", "kee = \"x\"", "calibration.fitted[1].kee", "did you mean key?");
    let text = replaced(ufs21(), "program_us = 500.0", "");
    wrong(&text, "[flash]", "flash.program_us", "is missing; expected a time in microseconds");
    let text = replaced(ufs21(), "capacity_gib = 64", "");
    wrong(&text, "[[lu]]", "lu[0].capacity_gib", "is missing; expected a capacity in GiB");
    let e = parse(&replaced(ufs21(), "scheduler = \"lean\"", ""), "test.toml").unwrap_err();
    assert_eq!((e.line, e.key.as_str()), (1, "scheduler"));
    assert!(e.message.contains("\"lean\" or \"queued\" or \"exact\""), "{e}");
    mistake("readpath-device/1", "readpath-device/2", "schema", "this program reads \"readpath-device/1\" here");
}

#[test]
fn wrong_types_and_ranges() {
    mistake("queue_depth = 32", "queue_depth = \"32\"", "queue_depth", "is the text \"32\"; expected a whole number");
    mistake("queue_depth = 32", "queue_depth = 32.0", "queue_depth", "is 32.0; expected a whole number");
    mistake("channels = 2", "channels = -2", "geometry.channels", "is -2; expected a whole number from 1");
    mistake("channels = 2", "channels = 99999999999999999999999999999999999999999", "geometry.channels", "beyond");
    mistake("verify = true", "verify = 1", "hpb.verify", "is 1; expected true or false");
    mistake("read_us = 50.0", "read_us = \"50 us\"", "flash.read_us", "expected a time in microseconds");
    mistake("read_us = 50.0", "read_us = 50.0001", "flash.read_us", "at most 3 decimals are possible");
    mistake("read_us = 50.0", "read_us = -50.0", "flash.read_us", "cannot be negative");
    mistake("read_us = 50.0", "read_us = 0.0", "flash.read_us", "is 0.0; it must be above 0 and at most 1 s");
    mistake("read_us = 50.0", "read_us = 5e1", "flash.read_us", "write it in plain digits");
    mistake("read_us = 50.0", "read_us = nan", "flash.read_us", "write it in plain digits");
    mistake("read_us = 50.0", "read_us = 1e999", "flash.read_us", "write it in plain digits");
    mistake("read_us = 50.0", "read_us = 99999999999999999999.0", "flash.read_us", "at most");
    mistake("scheduler = \"lean\"", "scheduler = \"leen\"", "scheduler", "did you mean \"lean\"?");
    mistake("slots = 32", "slots = 65", "host.slots", "from 2 to 64");
    mistake("max_transfer_kib = 512", "max_transfer_kib = 510", "host.max_transfer_kib", "a multiple of 4");
    mistake("max_transfer_kib = 512", "max_transfer_kib = 300000", "host.max_transfer_kib", "from 4 to 262140");
    mistake("size_kib = 768", "size_kib = 767", "write_buffer.size_kib", "a multiple of 4");
    mistake("capacity_gib = 64", "capacity_gib = 0.000001", "lu[0].capacity_gib", "no whole number of 4 KiB blocks");
    mistake("capacity_gib = 64", "blocks = 3\ncapacity_gib = 64", "lu[0].blocks", "keep one of them");
    mistake("region_mib = 16", "region_mib = 12", "hpb.region_mib", "a power of two from 1 to 524288, such as 8 or 16");
    mistake("entry_key = \"52", "entry_key = \"+2", "hpb.entry_key", "32 hexadecimal digits");
    mistake(
        "entry_key = \"5265616470617468",
        "entry_key = \"526561647061746ä",
        "hpb.entry_key",
        "32 hexadecimal digits",
    );
    mistake("name = \"ufs21-64g\"", "name = \"UFS 2.1\"", "name", "lower-case letters");
    mistake("\"map_cache.size_kib\"", "\"map_cache.size\"", "calibration.fitted[1].key", "no key of this file");
    mistake("sources = [", "sources = [ 7,", "sources[0]", "is 7; expected a text");
}

/// Files and documents older than the key have the presets' number.
#[test]
fn read_buffers_may_be_left_out() {
    let text = replaced(ufs21(), "read_buffers = 4", "");
    assert_eq!(parse(&text, "test.toml").unwrap().device, preset("ufs21-64g").device);
    assert_eq!(preset("ufs21-64g").with_override("hpb.read_buffers", "7").unwrap().device.hpb.unwrap().read_buffers, 7);
    mistake("read_buffers = 4", "read_buffers = 65", "hpb.read_buffers", "expected a whole number from 1 to 64");
    let mut echo = serde_json::to_value(preset("ufs21-64g").echo()).unwrap();
    assert_eq!(echo["hpb"].as_object_mut().unwrap().remove("read_buffers"), Some(4.into()));
    let echo = from_json(&echo);
    assert_eq!(echo.clone().device, preset("ufs21-64g").device);
}

/// Blocks that were never written take the time of buffered ones, and documents leave the key out, unless the file
/// has a time for them.
#[test]
fn unmapped_reads_have_a_time_if_they_are_given_one() {
    let plain = preset("ufs21-64g");
    assert_eq!(plain.device.firmware.unmapped_read, None);
    assert!(!plain.echo().to_toml().contains("unmapped_read_us"));
    let set = plain.with_override("firmware.unmapped_read_us", "2.5").unwrap();
    assert_eq!(set.device.firmware.unmapped_read, Some(Ns(2_500)));
    let json = serde_json::to_value(set.echo()).unwrap();
    assert_eq!(json["firmware"]["unmapped_read_us"], 2.5);
    assert_eq!(from_json(&json).device, set.device);
    let text = replaced(ufs21(), "buffer_read_us = 13.0", "buffer_read_us = 13.0\nunmapped_read_us = 0.0");
    assert_eq!(parse(&text, "test.toml").unwrap().device.firmware.unmapped_read, Some(Ns::ZERO));
    mistake(
        "buffer_read_us = 13.0",
        "unmapped_read_us = 1000000.001\nbuffer_read_us = 13.0",
        "firmware.unmapped_read_us",
        "at most 1 s",
    );
}

#[test]
fn planes_read_as_the_geometry_and_the_scheduler_allow() {
    let with = |from: &str, to: &str, planes: &str, way: &str| {
        let text = replaced(ufs21(), from, to).replace("planes = 1", planes);
        text.replace("transfer_4k_us = 8.0", &format!("transfer_4k_us = 8.0\nplane_reads = {way}"))
    };
    for (from, to, planes, way, says) in [
        (
            "planes = 1",
            "planes = 1",
            "planes = 3",
            "\"together\"",
            "flash.plane_reads: is \"together\", for a power of two",
        ),
        ("dies_per_channel = 4", "dies_per_channel = 64", "planes = 4", "\"apart\"", "of 512 planes; at most 256"),
        (
            "scheduler = \"lean\"",
            "scheduler = \"queued\"",
            "planes = 2",
            "\"apart\"",
            "scheduler: is \"queued\", which knows whole dies only",
        ),
        ("planes = 1", "planes = 1", "planes = 2", "\"any\"", "expected \"one\" or \"together\" or \"apart\""),
    ] {
        let Err(e) = parse(&with(from, to, planes, way), "test.toml") else { panic!("no error: {says}") };
        assert!(e.to_string().contains(says), "{e}");
    }
    mistake("flash_op_us = 13.0", "cores = 17\nflash_op_us = 13.0", "firmware.cores", "from 1 to 16");
}

/// A capacity of 0.000001 GiB is not a whole number of blocks, but an eighth GiB is.
#[test]
fn decimal_capacities() {
    let p = parse(&replaced(ufs21(), "capacity_gib = 64", "capacity_gib = 0.125"), "test.toml").unwrap();
    assert_eq!(p.device.lus[0].blocks, 32_768);
}

#[test]
fn what_the_device_finds_wrong_points_at_its_key() {
    mistake("page_bytes = 16384", "page_bytes = 6000", "geometry.page_bytes", "must be a power of two");
    mistake("planes = 1", "planes = 17", "geometry.planes", "expected a whole number from 1 to 16");
    mistake(
        "blocks_per_plane = 2194",
        "blocks_per_plane = 2000",
        "geometry.blocks_per_plane",
        "room to collect garbage",
    );
    mistake("\"READPATH-64G\"", "\"READPATH-64G-LONGER\"", "product_name", "1 to 16 ASCII characters");
    mistake("queue_depth = 32", "queue_depth = 65", "queue_depth", "expected a whole number from 1 to 64");
    for (section, key) in [
        ("flash", "read_us = 50.0"),
        ("flash", "map_read_us = 50.0"),
        ("flash", "program_us = 500.0"),
        ("flash", "erase_us = 3500.0"),
        ("flash", "transfer_4k_us = 8.0"),
        ("suspend", "suspend_us = 0.0"),
        ("suspend", "resume_us = 0.0"),
        ("firmware", "flash_op_us = 13.0"),
        ("firmware", "hpb_read_extra_us = 0.25"),
        ("firmware", "write_command_us = 5.0"),
        ("firmware", "buffer_read_us = 13.0"),
        ("firmware", "make_entry_us = 0.02"),
        ("firmware", "control_us = 5.0"),
        ("link", "request_us = 0.5"),
        ("link", "response_us = 0.1"),
        ("link", "transfer_4k_us = 3.9"),
    ] {
        let name = key.split(' ').next().unwrap();
        let old = format!("\n{key}");
        let new = format!("\n{name} = 1000000.001");
        let text = replaced(ufs21(), &old, &new);
        wrong(&text, new.trim(), &format!("{section}.{name}"), "at most 1 s");
    }
    let map_page = "page_bytes = 16384\n\n[write";
    mistake(map_page, "page_bytes = 8192\n\n[write", "map_cache.page_bytes", "is 8192; expected 4096 or 16384");
    mistake("size_kib = 1440", "size_kib = 8", "map_cache.size_kib", "is 8192; the map cache must hold at least");
    mistake("size_kib = 768", "size_kib = 8", "write_buffer.size_kib", "at least one multi-plane page of 4 blocks");
    mistake("capacity_gib = 64", "blocks = 0", "lu[0].blocks", "1 to 2^31 - 1 blocks");
    mistake("capacity_gib = 64", "capacity_gib = 0", "lu[0].capacity_gib", "1 to 2^31 - 1 blocks");
}

#[test]
fn what_the_device_finds_wrong_with_hpb_points_at_its_key() {
    let lu = "hpb = true\n# Fitted: as hpb.max_active_regions.\nmax_active_regions = ";
    let text = replaced(ufs21(), &format!("{lu}1920"), &format!("{lu}1921"));
    wrong(&text, "max_active_regions = 1921", "lu[0].max_active_regions", "more than the device's 1920");
    mistake(
        "freshness_chunk_entries = 16",
        "freshness_chunk_entries = 24",
        "hpb.freshness_chunk_entries",
        "power of two",
    );
    mistake("pinned_regions = 0", "pinned_regions = 1920", "lu[0].pinned_regions", "below max_active_regions");
    let pinned = "pinned_start = 4000\npinned_regions = 1000";
    mistake("pinned_start = 0\npinned_regions = 0", pinned, "lu[0].pinned_start", "beyond the last of 4096 regions");
    mistake("\nregion_mib = 16", "\nregion_mib = 8", "hpb.region_mib", "is less than sub_region_mib");
    let small = replaced(ufs21(), "sub_region_mib = 16", "sub_region_mib = 1");
    let many = replaced(&small, "\nregion_mib = 16", "\nregion_mib = 131072");
    wrong(&many, "region_mib = 131072", "hpb.region_mib", "at least a sub-region (11) and at most 27");
    mistake("sub_region_mib = 16", "sub_region_mib = 512", "hpb.sub_region_mib", "from 1 to 256");
    mistake("activate_after_reads = 2", "activate_after_reads = 0", "hpb.activate_after_reads", "from 1 to 255");
    mistake("max_active_regions = 1920\n#", "max_active_regions = 0\n#", "hpb.max_active_regions", "from 1 to 65535");
    let big =
        ufs21().replace("capacity_gib = 64", "capacity_gib = 512").replace("_per_plane = 2194", "_per_plane = 20000");
    let big = big.replace("region_mib = 16", "region_mib = 4");
    wrong(&big, "region_mib = 4", "hpb.region_mib", "makes 131072 regions");
    let start = ufs21().find("[hpb]").unwrap();
    let end = ufs21().find("[[lu]]").unwrap();
    let without = format!("{}{}", &ufs21()[..start], &ufs21()[end..]);
    wrong(&without, "hpb = true", "lu[0].hpb", "add an [hpb] table");
    let none =
        ufs21().split("[calibration]").next().unwrap().replace("[[lu]]", "").replace("capacity_gib = 64", "lu = []");
    let e = parse(&none, "test.toml").unwrap_err();
    assert!(e.line > 0, "{e}");
}

#[test]
fn a_device_without_hpb_or_suspension() {
    let text = ufs21().split("[calibration]").next().unwrap();
    let start = text.find("[hpb]").unwrap();
    let end = text.find("[[lu]]").unwrap();
    let text =
        format!("{}{}", &text[..start], text[end..].replace("hpb = true", "hpb = false").replace("max_active", "#"));
    let text = replaced(&text, "[suspend]\nsuspend_us = 0.0\nresume_us = 0.0\nmax_per_op = 0", "");
    let p = parse(&text, "test.toml").unwrap();
    assert!(p.device.hpb.is_none() && p.fitted.is_empty());
    assert_eq!(p.device.suspend, readpath_flash::SuspendTiming::OFF);
    assert_eq!(back(&p).device, p.device);
}

#[test]
fn overrides_act_as_if_they_stood_in_the_file() {
    let p = preset("ufs21-64g");
    let q = p.with_override("map_cache.size_kib", "2048").unwrap();
    assert_eq!(q.device.map_cache_bytes, 2 << 20);
    assert_eq!(q.with_override("map_cache.size_kib", "1440").unwrap().device, p.device);
    assert_eq!(p.with_override("scheduler", "exact").unwrap().device.scheduler, Scheduler::Exact);
    assert_eq!(p.with_override("scheduler", "\"exact\"").unwrap().device.scheduler, Scheduler::Exact);
    assert_eq!(p.with_override("firmware.flash_op_us", "0.001").unwrap().device.firmware.flash_op, Ns(1));
    assert_eq!(p.with_override("lu[0].capacity_gib", "32").unwrap().device.lus[0].blocks, 8 << 20);
    assert_eq!(p.with_override("lu.0.blocks", "1_024").unwrap().device.lus[0].blocks, 1024);
    // Each alone would be invalid: they are checked together.
    let both = ["hpb.region_mib=4", "hpb.sub_region_mib=4"].map(|a| Override::from_argument(a, "--set").unwrap());
    assert_eq!(p.with_overrides(&both).unwrap().device.hpb.unwrap().region_size, 13);
    assert!(p.with_overrides(&both[..1]).is_err());
}

#[test]
fn wrong_overrides_name_their_key() {
    let p = preset("ufs21-64g");
    for (argument, error) in [
        ("map_cache.sizekib=1", "--set: map_cache.sizekib: is not a key; did you mean size_kib?"),
        ("map_cash.size_kib=1", "--set: map_cash: is not a key; did you mean map_cache?"),
        ("queue_depth=65", "--set: queue_depth: is 65; expected a whole number from 1 to 64"),
        ("read=1", "--set: read: is not a key; known here: schema"),
        ("lu[1].blocks=1", "--set: lu[1].blocks: has no element 1: there are 1, counted from 0"),
        ("name.x=1", "--set: name.x: has no key \"x\" in what is the text"),
        ("queue_depth=3 4", "--set: queue_depth: \"3 4\" is not a value"),
        ("queue_depth=", "--set: queue_depth: \"\" is not a value"),
        ("queue_depth=many", "--set: queue_depth: is the text \"many\"; expected a whole number"),
        ("queue_depth", "--set: \"queue_depth\" has no '='"),
        ("a..b=1", "--set: a..b: is not a path of keys"),
        ("=1", "--set: is not a path of keys"),
        ("lu[=1", "--set: lu[: is not a path of keys"),
        ("lu[0]=1", "--set: lu[0]: is 1; expected a table"),
        ("link=1", "--set: link: is 1; expected a table"),
    ] {
        let e = Override::from_argument(argument, "--set").and_then(|o| p.with_overrides(&[o])).expect_err(argument);
        assert!(e.to_string().starts_with(error), "{argument}\n{e}\n{error}");
    }
}

#[test]
fn presets_and_paths() {
    let e = load("ufs21-64", &no_file).unwrap_err();
    assert!(e.to_string().contains("did you mean ufs21-64g?"), "{e}");
    let e = load("my/device.toml", &no_file).unwrap_err();
    assert_eq!(e.to_string(), "my/device.toml: cannot be read: no such file");
    let p = load("mine.toml", &|path| {
        assert_eq!(path.to_str(), Some("mine.toml"));
        Ok(ufs21().to_owned())
    });
    assert_eq!(p.unwrap().name, "ufs21-64g");
}

/// Any text gives a result or an error within the text, not a panic.
fn never_panics(text: &str) {
    if let Err(e) = parse(text, "test.toml") {
        assert!(e.line >= 1 && e.line <= text.matches('\n').count() + 1, "{e}");
        let _ = e.to_string();
    }
}

#[test]
fn truncated_files() {
    for end in (0..ufs21().len()).filter(|i| ufs21().is_char_boundary(*i)) {
        if end % 7 == 0 {
            never_panics(&ufs21()[..end]);
        }
    }
    never_panics(&"[".repeat(100_000));
    never_panics(&format!("schema = \"readpath-device/1\"\na = {}", "[".repeat(100_000)));
    never_panics(&format!("schema = \"readpath-device/1\"\n{}x = 1", "a.".repeat(100_000)));
    never_panics(&replaced(ufs21(), "\n", "\r\n"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_files(at in 0usize..20_000, length in 0usize..12, new in "[\\[\\]=.\"'#{},\n\r0-9a-zA-Z_\\- \
        äé\u{0}\u{feff}]{0,8}") {
        let text: Vec<char> = ufs21().chars().collect();
        let at = at % text.len();
        let end = (at + length).min(text.len());
        let (before, behind) = (text[..at].iter().copied(), text[end..].iter().copied());
        let mutated: String = before.chain(new.chars()).chain(behind).collect();
        never_panics(&mutated);
    }

    #[test]
    fn values_of_any_kind(
        line in 0usize..400,
        value in "(-?[0-9]{1,40}|[0-9]{1,25}\\.[0-9]{1,12}|0x[0-9a-f]{1,40}|true|inf|\\[\\]|\\{\\}|\"\"|1979-05-27\
                  |\"[a-zä]{0,70}\")",
    ) {
        let lines: Vec<&str> = ufs21().lines().collect();
        let line = line % lines.len();
        let mut mutated = lines.clone();
        let new = lines[line].split_once(" = ").map(|(key, _)| format!("{key} = {value}"));
        if let Some(new) = &new {
            mutated[line] = new;
        }
        never_panics(&mutated.join("\n"));
    }

    #[test]
    fn overrides_of_any_kind(key in "[a-z_.\\[\\]0-9]{0,20}", value in "\\PC{0,20}") {
        let p = preset("ufs21-64g");
        let _ = p.with_override(&key, &value);
    }
}

#[test]
fn hpb_2_is_a_table_of_its_own() {
    let with = |keys: &[(&str, &str)]| {
        let set: Vec<Override> = keys.iter().map(|(k, v)| Override::new(k, v, "--set").unwrap()).collect();
        preset("ufs21-64g").with_overrides(&set).map_err(|e| e.to_string())
    };
    assert_eq!(preset("ufs21-64g").device.hpb.unwrap().v2, None);
    let p = with(&[("hpb.v2.single_kib", "32")]).unwrap();
    let v2 = p.device.hpb.unwrap().v2.unwrap();
    assert_eq!((v2.single_blocks, v2.pre_requests, v2.enabled, v2.entries_in_ehs), (8, 16, true, false));
    let back = back(&p);
    assert_eq!((back.device.hpb, back.echo()), (p.device.hpb, p.echo()));
    let all = [("single_kib", "1020"), ("pre_requests", "126"), ("enabled", "false"), ("entries_in_ehs", "true")];
    let all = all.map(|(key, value)| (format!("hpb.v2.{key}"), value));
    let v2 = with(&all.each_ref().map(|(k, v)| (k.as_str(), *v))).unwrap().device.hpb.unwrap().v2.unwrap();
    assert_eq!((v2.single_blocks, v2.pre_requests, v2.enabled, v2.entries_in_ehs), (255, 126, false, true));
    for (keys, says) in [
        (&[("hpb.v2.enabled", "true")][..], "hpb.v2.single_kib: is missing"),
        (&[("hpb.v2.single_kib", "30")], "hpb.v2.single_kib: is 30; it must be a multiple of 4"),
        (&[("hpb.v2.single_kib", "1024")], "hpb.v2.single_kib: is 1024; expected a whole number from 4 to 1020"),
        (&[("hpb.v2.single_kib", "8"), ("hpb.v2.pre_requests", "0")], "hpb.v2.pre_requests: is 0; expected a whole"),
        (&[("hpb.v2.single_kib", "8"), ("hpb.v2.ehs", "true")], "hpb.v2.ehs: is not a key"),
        (&[("hpb.v2.single_kib", "8"), ("geometry.blocks_per_plane", "40000")], "hpb.v2: needs the upper bits"),
    ] {
        let message = with(keys).map(drop).expect_err("a mistake");
        assert!(message.contains(says), "{says}: {message}");
    }
}

/// A second unit with these keys and zones.
fn with_zones(unit: &str, zones: &str) -> String {
    let second = format!("[[lu]]\n{unit}\nhpb = false\n[lu.zones]\n{zones}\n\n[host]");
    replaced(ufs21(), "[host]", &second)
}

#[test]
fn zones_are_read_and_written() {
    let text = with_zones("capacity_gib = 2", "size_mib = 1056\nlayout = \"gaps\"\nmost_open = 1\nrule = \"zufs\"");
    // The flash holds one unit.
    let text = replaced(&text, "capacity_gib = 64", "capacity_gib = 32");
    let preset = parse(&text, "test.toml").unwrap();
    let lu = preset.device.lus[1];
    let zones = lu.zones.unwrap();
    assert_eq!((zones.layout, zones.rule, zones.most_open), (ZoneLayout::Gaps, ZoneRule::Zufs, 1));
    assert_eq!((zones.blocks, zones.stride(), lu.zone_count()), (0x4_2000, 0x8_0000, 1));
    assert_eq!((lu.blocks, lu.data_blocks()), (0x8_0000, 0x4_2000));
    assert_eq!([0, 0x4_1FFF, 0x4_2000].map(|block| lu.data_block(block)), [Some(0), Some(0x4_1FFF), None]);
    assert_eq!(back(&preset).device, preset.device);
}

#[test]
fn zones_that_cannot_be_point_at_their_key() {
    for (unit, zones, part, key, says) in [
        ("capacity_gib = 1", "size_mib = 100", "size_mib = 100", "lu[1].zones.size_mib", "which is no power of two"),
        ("capacity_gib = 1", "size_mib = 0", "size_mib = 0", "lu[1].zones.size_mib", "whole number from 1 to 4096"),
        ("capacity_gib = 1", "layout = \"native\"", "[lu.zones]", "lu[1].zones.size_mib", "is missing"),
        ("capacity_gib = 1", "size_mib = 128\nmost_open = 9", "most_open", "lu[1].zones.most_open", "has 8 zones"),
        ("blocks = 40000", "size_mib = 128", "blocks = 40000", "lu[1].blocks", "expected a multiple of 128 MiB"),
        ("capacity_gib = 1", "size_mib = 128\nlayout = \"gaps\"", "\nlayout =", "lu[1].zones.layout", "leave none"),
        ("capacity_gib = 1", "size_mib = 128\nlayout = \"odd\"", "\nlayout =", "lu[1].zones.layout", "power-of-two"),
        ("capacity_gib = 1", "size_mib = 128\nopen = 6", "open = 6", "lu[1].zones.open", "most_open"),
        (
            "capacity_gib = 1",
            "size_mib = 128\nprogram_kib = 4",
            "program_kib",
            "lu[1].zones.program_kib",
            "multi-plane",
        ),
        ("capacity_gib = 1", "size_mib = 128\nflush_kib = 200", "flush_kib", "lu[1].zones.flush_kib", "a multiple of"),
    ] {
        let text = replaced(&with_zones(unit, zones), "capacity_gib = 64", "capacity_gib = 32");
        points_at(&parse(&text, "test.toml").expect_err(zones), &text, part, key, says);
    }
    let text = replaced(&with_zones("capacity_gib = 1", "size_mib = 128"), "hpb = false\n[lu", "hpb = true\n[lu");
    let text = replaced(&text, "capacity_gib = 1\n", "capacity_gib = 1\nmax_active_regions = 4\n");
    let text = replaced(&text, "capacity_gib = 64", "capacity_gib = 32");
    let e = parse(&text, "test.toml").expect_err("zones and HPB");
    assert_eq!(e.key, "lu[1].hpb", "{e}");
}

#[test]
fn a_mapper_of_zones_needs_zones() {
    let with = |zones: &str, host: &str| {
        let text = replaced(&with_zones("capacity_gib = 2", zones), "capacity_gib = 64", "capacity_gib = 32");
        format!("{text}\n[host.zones]\n{host}\n")
    };
    let preset =
        parse(&with("size_mib = 128", "mapper = \"log\"\nspare_percent = 20\nkeep_free = 3"), "test.toml").unwrap();
    let mapper = preset.host.mapper().expect("a mapper");
    assert_eq!((mapper.spare_percent, mapper.keep_free), (20, 3));
    // Three logs and one zone on top of those that are kept free; or a share, rounded up.
    assert_eq!([16, 35, 36, 100].map(|zones| mapper.spare_zones(zones)), [7, 7, 8, 20]);
    assert_eq!(mapper.logical_blocks(16, 0x8000), 9 * 0x8000);
    assert_eq!(back(&preset).host, preset.host);
    assert!(parse(&with("size_mib = 128", "mapper = \"none\""), "test.toml").unwrap().host.mapper().is_none());
    for (zones, host, key, says) in [
        ("size_mib = 128", "mapper = \"lgo\"", "host.zones.mapper", "expected \"none\" or \"log\""),
        ("size_mib = 128", "mapper = \"log\"\nspare_percent = 91", "host.zones.spare_percent", "from 0 to 90"),
        ("size_mib = 128", "mapper = \"log\"\nkeep_free = 1", "host.zones.keep_free", "from 2 to"),
        ("size_mib = 512", "mapper = \"log\"", "host.zones.mapper", "6 of the 4 zones of lu[1]"),
        ("size_mib = 128\nmost_open = 2", "mapper = \"log\"", "lu[1].zones.most_open", "writes to 3 zones"),
    ] {
        let e = parse(&with(zones, host), "test.toml").expect_err(host);
        assert!(e.key == key && e.to_string().contains(says), "{key}: {e}");
    }
    let text = format!("{}\n[host.zones]\nmapper = \"log\"\n", ufs21());
    let e = parse(&text, "test.toml").expect_err("no zones");
    assert!(e.key == "host.zones.mapper" && e.to_string().contains("no unit has zones"), "{e}");
}

#[test]
fn what_zones_need_of_the_device_is_told() {
    let device = |unit: &str, zones: &str| {
        let text = replaced(&with_zones(unit, zones), "capacity_gib = 64", "capacity_gib = 32");
        parse(&text, "test.toml").expect("a device").device
    };
    let fine = device("capacity_gib = 1", "size_mib = 128");
    assert_eq!(fine.check(), Ok(()));
    // One superblock is kept for copies of those that are read often.
    let mut copies = fine.clone();
    copies.ftl.read_disturb_limit = 1000;
    assert_eq!((copies.check(), copies.data_superblocks() + 1), (Ok(()), fine.data_superblocks()));
    let fault = |change: &dyn Fn(&mut readpath_device::DeviceConfig)| {
        let mut config = fine.clone();
        change(&mut config);
        let e = config.check().expect_err("it cannot be");
        (e.field, e.message)
    };
    let (field, message) = fault(&|config| config.lus.reverse());
    assert_eq!((field, message.contains("put those last")), ("lus", true), "{message}");
    let (field, message) = fault(&|config| config.write_buffer_blocks = 48);
    assert_eq!(
        (field, message.contains("192 KiB that wait to be programmed")),
        ("write_buffer_blocks", true),
        "{message}"
    );
    let (field, message) = fault(&|config| {
        config.geometry.pages_per_block = 1 << 14;
        config.geometry.blocks_per_plane = 100;
        config.lus[1].zones.as_mut().unwrap().program_blocks = 1 << 13;
    });
    assert_eq!((field, message.contains("at most 16384")), ("lus[].zones.program_blocks", true), "{message}");
    let (field, message) = fault(&|config| {
        let mut other = config.lus[1];
        other.zones.as_mut().unwrap().program_blocks = 16;
        config.lus.push(other);
    });
    assert_eq!(
        (field, message.contains("but 192 for another unit")),
        ("lus[].zones.program_blocks", true),
        "{message}"
    );
}
