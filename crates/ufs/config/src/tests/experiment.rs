// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of experiment files.

use super::super::experiment::{Experiment, Fio, Iozone, Origin, PreconditionRange, Workload, load, parse};
use super::super::{Event, EventKind, experiments, presets};
use super::{no_file, points_at, replaced};
use readpath_device::Layout;
use readpath_host::ListOrder;
use readpath_kit::Ns;
use std::path::Path;

fn iozone() -> &'static str {
    experiments()[0].text
}

fn good(text: &str) -> Experiment {
    parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_published_table() {
    let e = load("iozone", &no_file).unwrap();
    assert_eq!((e.name.as_str(), e.device.as_str(), e.seed), ("iozone", "ufs21-64g", 1));
    assert_eq!(e.precondition.layout, Layout::Sequential);
    assert_eq!(e.precondition.range, PreconditionRange::Files);
    assert_eq!(e.workload.cases(), ["1 GB", "4 GB", "8 GB", "16 GB", "32 GB"]);
    let Workload::Iozone(Iozone::Cases { threads: 16, record_kib: 4, cases }) = &e.workload else { panic!() };
    assert_eq!(cases[4].total_bytes, 32 << 30);
    let off = [300.87, 179.35, 162.52, 156.26, 153.25];
    let on = [294.80, 293.51, 294.85, 293.45, 277.40];
    for (variant, values, fitted) in [("HPB off", off, [0, 1]), ("HPB dcm", on, [0, 4])] {
        for (i, (case, value)) in e.workload.cases().iter().zip(values).enumerate() {
            let row = e.published.iter().find(|r| r.case == *case && r.variant == variant).unwrap();
            assert_eq!((row.value, row.unit.as_str()), (value, "MiB/s"));
            assert_eq!(row.origin == Origin::Fit, fitted.contains(&i), "{case} {variant}");
        }
    }
    assert_eq!(e.published.len(), 10);
    let device = e.load_device(&no_file).unwrap();
    assert_eq!(device.name, "ufs21-64g");
    assert!(e.variants[0].host(&device).hpb.is_none());
    assert_eq!(e.variants[1].host(&device).hpb.unwrap().order, ListOrder::Activation);
    assert_eq!(e.variants[1].host(&device).slots, 32);
    assert_eq!(e.variant_devices(&device).unwrap()[1].device, device.device);
    assert!(iozone().starts_with("# SPDX-License-Identifier: MIT OR Apache-2.0\n"));
}

const VARIANTS: &str = r#"
schema = "readpath-experiment/1"
name = "sizes"
title = "Sizes of the map cache"
description = "What a larger map cache is worth."
citations = []
device = "ufs21-64g"
seed = 18446744073709551615
[precondition]
layout = "random"
range = "all"
[workload]
kind = "fio"
case = "random read"
text = """
[global]
rw=randread
"""
[[variant]]
name = "small"
hpb = false
set = { "map_cache.size_kib" = 512, scheduler = "exact", "flash.read_us" = 40.5 }
[[variant]]
name = "large"
hpb = true
order = "recency"
dirty_bitmap = false
max_map_mib = 8
[variant.set]
"map_cache.size_kib" = 2048
[[variant]]
name = "as Linux"
hpb = true
strict_linux = true
"#;

#[test]
fn variants_change_the_device_and_the_host() {
    let e = good(VARIANTS);
    let base = e.load_device(&no_file).unwrap();
    let devices = e.variant_devices(&base).unwrap();
    assert_eq!(devices[..2].iter().map(|d| d.device.map_cache_bytes >> 10).collect::<Vec<_>>(), [512, 2048]);
    assert_eq!(devices[0].device.flash.read.0, 40_500);
    let hpb = e.variants[1].hpb.unwrap();
    assert_eq!((hpb.order, hpb.strict_linux, hpb.dirty_bitmap), (ListOrder::Recency, false, false));
    assert!(e.variants[2].hpb.unwrap().strict_linux);
    assert_eq!(hpb.max_map_bytes, Some(8 << 20));
    assert_eq!(e.seed, u64::MAX);
    assert!(matches!(&e.workload, Workload::Fio(Fio::Text { case, .. }) if case == "random read"));
    assert!(e.published.is_empty());
}

/// A file that describes the whole experiment.
fn written(e: &Experiment) -> String {
    toml::to_string(e).expect("plain data")
}

#[test]
fn experiments_survive_their_echo() {
    let seed = replaced(VARIANTS, "18446744073709551615", "9");
    let args = r#"kind = "iozone"
args = ["-r", "4k", "-i2"]"#;
    let fio = "kind = \"fio\"\ncase = \"random read\"\ntext = \"\"\"\n[global]\nrw=randread\n\"\"\"";
    let texts =
        [iozone().to_owned(), replaced(&seed, fio, args), replaced(&seed, fio, "kind = \"fio\"\njob = \"a.fio\"")];
    let builtin = experiments().iter().map(|b| b.text.to_owned()).collect::<Vec<_>>();
    for text in texts.iter().chain([&seed]).chain(&builtin) {
        let e = good(text);
        let back = parse(&written(&e), "test.toml").unwrap_or_else(|x| panic!("{x}\n{}", written(&e)));
        let json = |e: &Experiment| serde_json::to_value(e).unwrap();
        assert_eq!(json(&e), json(&back));
        assert_eq!(e.workload, back.workload);
        assert_eq!((&e.published, &e.claims), (&back.published, &back.claims));
        for (a, b) in e.variants.iter().zip(&back.variants) {
            assert_eq!((&a.name, a.hpb, a.set.len()), (&b.name, b.hpb, b.set.len()));
        }
    }
}

#[test]
fn a_wrong_override_points_at_its_line_in_the_experiment() {
    let text = replaced(VARIANTS, "\"map_cache.size_kib\" = 2048", "\"map_cache.size_kb\" = 2048");
    let e = good(&text);
    let error = e.variant_devices(&e.load_device(&no_file).unwrap()).unwrap_err();
    points_at(&error, &text, "\"map_cache.size_kb\" = 2048", "map_cache.size_kb", "did you mean size_kib?");
    let text = replaced(VARIANTS, "\"map_cache.size_kib\" = 2048", "\"map_cache.size_kib\" = 8");
    let e = good(&text);
    let error = e.variant_devices(&e.load_device(&no_file).unwrap()).unwrap_err();
    points_at(&error, &text, "\"map_cache.size_kib\" = 8", "map_cache.size_kib", "at least one map page");
}

#[test]
fn devices_are_found_from_the_experiments_folder() {
    for (file, device, expected) in [
        ("a/b.toml", "../d.toml", "a/../d.toml"),
        ("b.toml", "d.toml", "./d.toml"),
        ("b.toml", "x/d.toml", "x/d.toml"),
        ("a/b.toml", "/d.toml", "/d.toml"),
    ] {
        let e = parse(&replaced(iozone(), "device = \"ufs21-64g\"", &format!("device = {device:?}")), file).unwrap();
        let read = |path: &Path| {
            assert_eq!(path.to_str(), Some(expected));
            Ok(presets()[2].text.to_owned())
        };
        assert_eq!(e.load_device(&read).unwrap().name, "ufs31-256g");
    }
}

/// Checks the place of a text's error.
#[track_caller]
fn wrong(text: &str, part: &str, key: &str, says: &str) {
    points_at(&parse(text, "test.toml").expect_err(part), text, part, key, says);
}

#[track_caller]
fn mistake(old: &str, new: &str, key: &str, says: &str) {
    wrong(&replaced(iozone(), old, new), new, key, says);
}

#[test]
fn mistakes_point_at_their_line() {
    mistake("title = ", "titel = ", "titel", "did you mean title?");
    mistake("name = \"iozone\"", "name = \"IO zone\"", "name", "lower-case letters");
    mistake("seed = 1", "seed = -1", "seed", "expected a whole number");
    mistake("layout = \"sequential\"", "layout = \"linear\"", "precondition.layout", "\"sequential\" or \"random\"");
    mistake("range = \"files\"", "range = \"file\"", "precondition.range", "did you mean \"files\"?");
    mistake("kind = \"iozone\"", "kind = \"bonnie\"", "workload.kind", "\"iozone\" or \"fio\" or \"launches\"");
    mistake("threads = 16", "job = \"a.fio\"", "workload.job", "has no meaning for kind = \"iozone\"");
    mistake("threads = 16", "case = \"x\"\nthreads = 16", "workload.case", "their own names");
    mistake("threads = 16", "threads = 0", "workload.threads", "from 1 to 65535");
    mistake("record_kib = 4", "record_kib = 6", "workload.record_kib", "a multiple of 4");
    mistake("total_gib = 4 }", "total_gib = 0 }", "workload.cases[1].total_gib", "the same number of 4 KiB records");
    mistake("\"4 GB\", total", "\"1 GB\",  total", "workload.cases[1].name", "names must differ");
    mistake("name = \"HPB dcm\"", "name = \"HPB off\" #", "variant[1].name", "names must differ");
    mistake("hpb = false", "hpb = \"off\"", "variant[0].hpb", "expected true or false");
    mistake("hpb = false", "order = \"recency\"\nhpb = false", "variant[0].order", "no meaning with hpb = false");
    mistake("order = \"activation\"", "order = \"lru\"", "variant[1].order", "\"activation\" or \"recency\"");
    mistake("order = \"activation\"", "max_map_mib = 0", "variant[1].max_map_mib", "from 1 to");
    mistake("order = \"activation\"", "set = 7", "variant[1].set", "is 7; expected a table");
    mistake("case = \"8 GB\"", "case = \"9 GB\"", "published[2].case", "there are 1 GB, 4 GB, 8 GB");
    mistake("variant = \"HPB off\"", "variant = \"none\"", "published[0].variant", "HPB off, HPB dcm");
    mistake("metric = \"random", "metric = \"Random", "published[0].metric", "lower-case letters");
    mistake("origin = \"fit\"", "origin = \"fitted\"", "published[0].origin", "\"fit\" or \"predicted\"");
    let fitted = replaced(iozone(), "origin = \"fit\"", "origin = \"fit\"\nreason = \"slow\"");
    wrong(&fitted, "reason = \"slow\"", "published[0].reason", "this one is fitted");
    mistake("value = 300.87", "value = inf", "published[0].value", "a finite number");
    mistake("case = \"4 GB\"", "case = \"1 GB\" #", "published[1].case", "rows must differ");
}

#[track_caller]
fn mistake_in_tiobench(old: &str, new: &str, key: &str, says: &str) {
    wrong(&replaced(experiments()[1].text, old, new), new, key, says);
}

#[test]
fn places_of_a_job_file_are_filled_by_cases() {
    let e = good(experiments()[1].text);
    assert_eq!(e.workload.cases()[1], "2 threads");
    let Workload::Fio(Fio::Cases { text, cases }) = &e.workload else { panic!("{:?}", e.workload) };
    let filled = cases[1].text(text);
    assert!(filled.contains("numjobs=2\nsize=512m\noffset_increment=512m\n"), "{filled}");
    mistake_in_tiobench("\"2 threads\", with", "\"1 thread\",  with", "workload.cases[1].name", "names must differ");
    mistake_in_tiobench(
        "{ THREADS = \"2\"",
        "{ THREAD = \"2\"",
        "workload.cases[1].with.THREAD",
        "no ${THREAD} in text",
    );
    mistake_in_tiobench("{ THREADS = \"2\"", "{ THREADS = 2", "workload.cases[1].with.THREADS", "expected a text");
    mistake_in_tiobench("kind = \"fio\"", "job = \"a\"\nkind = \"fio\"", "workload.job", "no meaning beside cases");
    let text = replaced(experiments()[1].text, "text = \"\"\"", "case = \"\"\"");
    wrong(&text, "cases = [", "workload.cases", "text, which is missing");
}

#[test]
fn claims_are_bounds_of_a_difference() {
    let e = good(experiments()[1].text);
    let claim = &e.claims[0];
    assert_eq!((claim.variant.as_str(), claim.base.as_str(), claim.cases.len()), ("HPB dcm", "HPB off", 4));
    assert!(claim.holds(58.0) && claim.holds(67.0) && !claim.holds(57.9) && !claim.holds(67.1));
    mistake_in_tiobench("min_percent = 58", "min_percent = 68", "claim[0].min_percent", "above max_percent");
    let text = replaced(experiments()[1].text, "min_percent = 58\nmax_percent = 67", "");
    wrong(&text, "[[claim]]", "claim[0].min_percent", "says nothing");
    mistake_in_tiobench("base = \"HPB off\"", "base = \"off\"", "claim[0].base", "there are HPB off, HPB dcm");
    mistake_in_tiobench(
        "cases = [\"1 thread\"",
        "cases = [\"3 threads\"",
        "claim[0].cases",
        "not there; there are 1 thread",
    );
}

/// A claim about rows that were all fitted is no prediction.
#[test]
fn claims_about_fitted_rows_are_fitted() {
    let mut about_fitted = 0;
    for builtin in experiments() {
        let e = load(builtin.name, &no_file).unwrap();
        for claim in &e.claims {
            let is_about = |case: &str| claim.cases.is_empty() || claim.cases.iter().any(|c| c == case);
            let mut rows = e.published.iter().filter(|p| {
                is_about(&p.case) && p.metric == claim.metric && [&claim.variant, &claim.base].contains(&&p.variant)
            });
            let any = rows.clone().next().is_some();
            if any && rows.all(|p| p.origin == Origin::Fit) {
                about_fitted += 1;
                assert!(claim.fitted, "{}: {}", e.name, claim.text);
            }
        }
    }
    assert_eq!(about_fitted, 1, "that of appstart");
}

/// One limit of HPB READs in the file equals the longest chunk: it was chosen to match the claim.
#[test]
fn the_longest_chunk_just_has_an_entry() {
    let e = load("chunk", &no_file).unwrap();
    let device = e.load_device(&no_file).unwrap();
    let on = &e.variant_devices(&device).unwrap()[1];
    let single = on.device.hpb.unwrap().v2.unwrap().single_blocks;
    assert_eq!(e.workload.cases().last(), Some(&"512 KB"));
    assert_eq!(u32::from(single) * 4, 512);
    assert!(e.claims.iter().all(|claim| claim.fitted));
    assert!(!e.description.contains("no parameter was chosen"));
}

#[test]
fn what_is_missing() {
    let without = |from: &str, to: &str| {
        let (a, b) = (iozone().find(from).unwrap(), iozone().rfind(to).unwrap());
        format!("{}{}", &iozone()[..a], &iozone()[b..])
    };
    let e = parse(&without("[[variant]]", "[[published]]"), "test.toml").unwrap_err();
    assert_eq!((e.line, e.key.as_str()), (1, "variant"), "{e}");
    let e = parse(&replaced(iozone(), "threads = 16", ""), "test.toml").unwrap_err();
    points_at(&e, iozone(), "[workload]", "workload.threads", "is missing");
    let start = iozone().find("threads = 16").unwrap();
    let end = iozone().find("[[variant]]").unwrap();
    let text = format!("{}\n{}", &iozone()[..start], &iozone()[end..]);
    wrong(&text, "[workload]", "workload.cases", "expected args, or threads");
    let text = replaced(VARIANTS, "text = \"\"\"", "jab = \"\"\"");
    wrong(&text, "jab = ", "workload.jab", "did you mean job?");
    let both = replaced(iozone(), "threads = 16", "args = []\nthreads = 16");
    wrong(&both, "threads = 16", "workload.threads", "is said by args too");
}

#[test]
fn truncated_files_are_errors() {
    for end in (0..iozone().len()).step_by(5) {
        if let Some(text) = iozone().get(..end) {
            let _ = parse(text, "test.toml").map_err(|e| e.to_string());
        }
    }
    assert!(load("iozon", &no_file).unwrap_err().to_string().contains("did you mean iozone?"));
}

/// A value that only this device refuses is reported with its line, like any other error.
#[test]
fn parameters_that_the_device_does_not_take_point_at_their_line() {
    let text = replaced(VARIANTS, "strict_linux = true", "mode = \"host\"\ninflight_map_req = 31");
    let e = good(&text);
    let error = e.variant_devices(&e.load_device(&no_file).unwrap()).unwrap_err();
    points_at(&error, &text, "inflight_map_req = 31", "inflight_map_req", "it must be 1 to 30");
    let text = replaced(VARIANTS, "max_map_mib = 8", "max_map = \"16K\"");
    let e = good(&text);
    let error = e.variant_devices(&e.load_device(&no_file).unwrap()).unwrap_err();
    points_at(&error, &text, "max_map = \"16K\"", "max_map", "do not hold the map of one region");
}

#[test]
fn events_are_read_and_written() {
    let with = |events: &str| format!("{VARIANTS}{events}");
    let text = with(
        "[[event]]\nat_ms = 0.5\nwhat = \"suspend\"\n[[event]]\nat_ms = 2\nwhat = \"power-cycle\"\noff_ms = 7\n\
         [[event]]\nat_ms = 2\nwhat = \"hardware-reset\"\n[[event]]\nat_ms = 3\nwhat = \"power-cycle\"\n",
    );
    let e = good(&text);
    let at = |us, kind| Event { at: Ns::from_us(us), kind };
    let expected = [
        at(500, EventKind::Suspend),
        at(2000, EventKind::PowerCycle { off: Ns::from_ms(7) }),
        at(2000, EventKind::HardwareReset),
        at(3000, EventKind::PowerCycle { off: Ns::from_ms(100) }),
    ];
    assert_eq!(e.events, expected);
    assert_eq!(good(&written(&e)).events, expected);
    let managed = ["order = \"recency\"\n", "strict_linux = true\n"]
        .iter()
        .fold(text, |text, own| replaced(&text, own, "policy = \"lru\"\n"));
    let pressed = good(&format!("{managed}[[event]]\nat_ms = 9\nwhat = \"pressure\"\nmemory_bytes = 4096\n"));
    assert_eq!(pressed.events[4].kind, EventKind::Pressure { bytes: 4096 });
    assert_eq!(good(&written(&pressed)).events, pressed.events);
}

#[test]
fn mistakes_in_events_name_the_key() {
    for (event, says) in [
        ("at_ms = 1", "event[0].what: is missing"),
        ("what = \"suspend\"", "event[0].at_ms: is missing"),
        ("at_ms = -1\nwhat = \"suspend\"", "event[0].at_ms: is -1; it cannot be negative"),
        ("at_ms = 1\nwhat = \"sleep\"", "event[0].what: is \"sleep\""),
        ("at_ms = 1\nwhat = \"suspend\"\noff_ms = 1", "event[0].off_ms: has no meaning for what = \"suspend\""),
        ("at_ms = 1\nwhat = \"power-cycle\"\nmemory_bytes = 1", "event[0].memory_bytes: has no meaning"),
        (
            "at_ms = 1\nwhat = \"pressure\"\nmemory_bytes = 1",
            "event[0].what: is \"pressure\", but the host of variant \"large\" never gives memory back",
        ),
        (
            "at_ms = 2\nwhat = \"suspend\"\n[[event]]\nat_ms = 1\nwhat = \"resume\"",
            "event[1].at_ms: is before that of the event above",
        ),
    ] {
        let message =
            parse(&format!("{VARIANTS}[[event]]\n{event}\n"), "test.toml").expect_err("a mistake").to_string();
        assert!(message.starts_with("test.toml:") && message.contains(says), "{says}: {message}");
    }
    let managed = replaced(VARIANTS, "order = \"recency\"\n", "policy = \"lru\"\n");
    let prototype = replaced(&managed, "strict_linux = true\n", "prototype = \"host\"\n");
    let pressed = format!("{prototype}[[event]]\nat_ms = 1\nwhat = \"pressure\"\nmemory_bytes = 1\n");
    let message = parse(&pressed, "test.toml").expect_err("a mistake").to_string();
    assert!(message.contains("is the prototype's, which knows no pressure"), "{message}");
}
