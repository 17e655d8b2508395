// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the table `[map_memory]`.

use super::super::device::parse;
use super::super::overrides::Override;
use super::super::presets;
use super::{from_json, points_at};
use readpath_device::{HostMap, LineCheck, MapMemory, Protocol};
use readpath_host::HostMemoryLimit;
use readpath_kit::Ns;

const HOST: &str = "[map_memory]
kind = \"ume\"
size_mib = 16
line_bytes = 128
outstanding = 8
firmware_us = 1.0
request_us = 0.5
access_us = 2.0
response_us = 0.1
check = true
check_us = 0.25
seal_us = 0.08
";
const DRAM: &str = "[map_memory]\nkind = \"dram\"\naccess_us = 0.1\n";

fn with_table(table: &str) -> String {
    let (before, after) = presets()[0].text.split_once("[hpb]").unwrap();
    format!("{before}{table}\n[hpb]{after}")
}

fn comes_back(table: &str) -> MapMemory {
    let preset = parse(&with_table(table), "test.toml").unwrap();
    let json = serde_json::to_value(preset.echo()).unwrap();
    let echo = from_json(&json);
    assert_eq!(echo.clone().device, preset.device);
    preset.device.map_memory.unwrap()
}

#[test]
fn every_key_reaches_its_field_and_comes_back() {
    let host = HostMap {
        protocol: Protocol::Ume,
        bytes: 16 << 20,
        minimum: 0,
        least_chunk: 0,
        most_chunks: 0,
        line_bytes: 128,
        outstanding: 8,
        firmware: Ns(1_000),
        request: Ns(500),
        access: Ns(2_000),
        response: Ns(100),
        check: Some(LineCheck { check: Ns(250), seal: Ns(80) }),
    };
    assert_eq!(comes_back(HOST), MapMemory::Host(host));
    let hmb = HOST.replace("ume", "hmb").replace("check = true\ncheck_us = 0.25\nseal_us = 0.08", "check = false");
    assert_eq!(comes_back(&hmb), MapMemory::Host(HostMap { protocol: Protocol::Hmb, check: None, ..host }));
    assert_eq!(comes_back(DRAM), MapMemory::Dram { access: Ns(100) });
    let preset = parse(presets()[0].text, "test.toml").unwrap();
    assert!(preset.device.map_memory.is_none());
    assert!(serde_json::to_value(preset.echo()).unwrap().get("map_memory").is_none(), "nothing is said of it");
}

#[test]
fn memory_is_counted() {
    let device = |table: &str| parse(&with_table(table), "test.toml").unwrap().device;
    // 128 lines of 128 + 8 bytes to a map page.
    assert_eq!(device(HOST).host_map_frames(), (16 << 20) / (128 * 136));
    assert_eq!(device(HOST).dram_bytes(), 0);
    assert_eq!(device(DRAM).dram_bytes(), 64 << 20, "4 bytes for each of 16 Mi blocks");
    let all = HOST.replace("size_mib = 16", "size_mib = 1000");
    assert_eq!(device(&all).host_map_frames(), 4096, "there are no more map pages");
}

#[test]
fn mistakes_name_line_and_key() {
    for (table, from, to, key, says) in [
        (HOST, "\"ume\"", "\"nvme\"", "map_memory.kind", "expected \"dram\" or \"hmb\" or \"ume\""),
        (HOST, "line_bytes = 128", "line_bytes = 100", "map_memory.line_bytes", "a power of two from 16"),
        (HOST, "line_bytes = 128", "line_bytes = 32768", "map_memory.line_bytes", "from 16 to 16384"),
        (HOST, "size_mib = 16", "size_mib = 0", "map_memory.size_mib", "a whole number from 1"),
        (HOST, "outstanding = 8", "outstanding = 65", "map_memory.outstanding", "a whole number from 1 to 64"),
        (HOST, "check = true", "check = false", "map_memory.check_us", "has no meaning with check = false"),
        (HOST, "seal_us = 0.08\n", "", "map_memory.seal_us", "is missing"),
        (HOST, "access_us = 2.0", "access_us = 2000000.0", "map_memory.access_us", "at most 1 s"),
        (HOST, "access_us", "acess_us", "map_memory.acess_us", "did you mean access_us?"),
        (DRAM, "access_us = 0.1", "access_us = 0.1\nsize_mib = 64", "map_memory.size_mib", "has no meaning for kind"),
    ] {
        assert!(table.contains(from), "{from}");
        let text = with_table(&table.replace(from, to));
        let error = parse(&text, "test.toml").unwrap_err();
        // A missing key is reported at its table, a contradicting one at its own place.
        let part = match to {
            "" => "[map_memory]",
            "check = false" => "check_us = 0.25",
            to => to.rsplit('\n').next().unwrap_or(to),
        };
        points_at(&error, &text, part, key, says);
    }
}

const ASKS: &str = "min_kib = 4096\nmin_chunk_kib = 64\nmax_chunks = 8\n";

fn hmb() -> String {
    HOST.replace("ume", "hmb").replace("check = true\ncheck_us = 0.25\nseal_us = 0.08", "check = false") + ASKS
}

fn with_host(table: &str, keys: &str) -> String {
    with_table(table).replace("[host]\n", &format!("[host]\n{keys}\n"))
}

#[test]
fn what_a_device_asks_for_and_what_a_host_gives_come_back() {
    let text = with_host(&hmb(), "max_host_mem_mib = 12\nlargest_chunk_kib = 1024");
    let preset = parse(&text, "test.toml").unwrap();
    let MapMemory::Host(host) = comes_back(&hmb()) else { panic!("host memory") };
    assert_eq!((host.minimum, host.least_chunk, host.most_chunks), (4 << 20, 64 << 10, 8));
    let echo = from_json(&serde_json::to_value(preset.echo()).unwrap());
    assert_eq!(echo.host, preset.host);
    assert_eq!(preset.host.host_memory, HostMemoryLimit { bytes: 12 << 20, largest_chunk: 1 << 20 });
    assert_eq!(readpath_stack::given_host_memory(&preset.device, &preset.host), 8 << 20, "eight pieces");
    // Documents of devices without host memory leave its keys out.
    let other = serde_json::to_value(parse(&with_table(DRAM), "test.toml").unwrap().echo()).unwrap();
    assert!(other["host"].get("max_host_mem_mib").is_none(), "{other}");
    assert!(serde_json::to_value(preset.echo()).unwrap()["host"].get("max_host_mem_mib").is_some());
}

#[test]
fn a_host_that_gives_too_little_is_a_mistake() {
    let nothing = parse(&with_host(&hmb(), "max_host_mem_mib = 0"), "test.toml").unwrap();
    assert_eq!(readpath_stack::given_host_memory(&nothing.device, &nothing.host), 0, "but none is a wish");
    for (keys, part, key, says) in [
        ("max_host_mem_mib = 3", "max_host_mem_mib = 3", "host.max_host_mem_mib", "Give at least 4, or 0"),
        ("largest_chunk_kib = 256", "max_chunks = 8", "map_memory.max_chunks", "so many pieces of 256 KiB"),
        ("largest_chunk_kib = 32", "min_chunk_kib = 64", "map_memory.min_chunk_kib", "has 32 KiB"),
        ("largest_chunk_kib = 10", "largest_chunk_kib = 10", "host.largest_chunk_kib", "a multiple of 4"),
    ] {
        let text = with_host(&hmb(), keys);
        points_at(&parse(&text, "test.toml").unwrap_err(), &text, part, key, says);
    }
    let above = hmb().replace("min_kib = 4096", "min_kib = 40960");
    let text = with_table(&above);
    let error = parse(&text, "test.toml").unwrap_err();
    points_at(&error, &text, "min_kib = 40960", "map_memory.min_kib", "above size_mib");
    let text = with_table(&format!("{HOST}{ASKS}"));
    points_at(&parse(&text, "test.toml").unwrap_err(), &text, "min_kib = 4096", "map_memory.min_kib", "kind = \"hmb\"");
}

#[test]
fn keys_of_the_map_cache_are_refused_by_their_names() {
    let preset = parse(&with_table(HOST), "test.toml").unwrap();
    let with = |keys: &[(&str, &str)]| {
        let set: Vec<_> = keys.iter().map(|(key, value)| Override::new(key, value, "--set").unwrap()).collect();
        preset.with_overrides(&set).map(|preset| preset.device).map_err(|e| e.to_string())
    };
    let device = with(&[("map_cache.runs_kib", "3"), ("map_cache.read_ahead", "2")]).unwrap();
    assert_eq!((device.map_runs_bytes, device.map_read_ahead), (3072, 2));
    assert_eq!((preset.device.map_runs_bytes, preset.device.map_read_ahead), (0, 0), "both are off");
    for (keys, message) in [
        (&[("map_cache.read_ahead", "65")][..], "map_cache.read_ahead: is 65; expected a whole number from 0 to 64"),
        (
            &[("map_cache.size_kib", "32"), ("map_cache.read_ahead", "2")],
            "map_cache.read_ahead: is 2; the map cache holds 2 pages, one of which is for the read itself",
        ),
        (
            &[("map_cache.runs_kib", "1048577")],
            "map_cache.runs_kib: is 1048577; expected a whole number from 0 to 1048576",
        ),
    ] {
        let error = with(keys).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    let dram = parse(&with_table(DRAM), "test.toml").unwrap().with_override("map_cache.runs_kib", "1").unwrap_err();
    let message = "map_cache.runs_kib: is for a map in flash; with map_memory.kind = \"dram\" it must be 0";
    assert!(dram.to_string().contains(message), "{dram}");
}
