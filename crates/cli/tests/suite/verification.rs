// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath reproduce verification`: complete protections withstand every attack, others do not, and the table says
//! so.

use crate::common::Room;
use readpath_results::Document;

fn value(doc: &Document, case: &str, variant: &str, metric: &str) -> f64 {
    let mut rows = doc.rows.iter();
    let row = rows.find(|r| r.case == case && r.variant == variant && r.metric.name() == metric);
    row.unwrap_or_else(|| panic!("{case}, {variant}, {metric}")).simulated
}

#[test]
fn costs_and_attacks_are_in_one_document() {
    let room = Room::new();
    let shown = room.good(&["reproduce", "verification", "--out", "out"]);
    assert!(shown.contains("Attacks on HPB entries") && shown.contains("encrypted, firmware"), "{shown}");
    assert!(shown.contains("tag of 32 bits: no attack returned anything that a READ would not have"), "{shown}");
    let doc = Document::from_json(&room.read("out/result.json")).expect("our own document");
    assert!(room.read("out/report.html").contains("attack: replay"));
    let attacks = ["forge", "replay", "swap", "other device", "flip a bit"];
    for case in attacks.iter().flat_map(|a| [format!("attack: {a}"), format!("attack: {a} by lists")]) {
        for safe in ["tag of 32 bits", "encrypted"] {
            assert_eq!(value(&doc, &case, safe, "leaked"), 0.0, "{case}, {safe}");
        }
        assert!(value(&doc, &case, "none", "leaked") > 1000.0, "{case}");
        assert!(value(&doc, &case, "tag of 8 bits", "leaked") > 10.0, "{case}");
    }
    assert_eq!(value(&doc, "attack: swap", "tag of 32 bits", "hpb_foreign"), 16_384.0);
    // Checks in software cost more than those of an engine; most of the cost is making entries.
    let speed = |case: &str, variant: &str| value(&doc, case, variant, "read_throughput");
    for case in ["reads, depth 1", "reads, depth 32", "mixed, depth 1", "mixed, depth 32"] {
        for kind in ["tag", "encrypted"] {
            let (engine, firmware) =
                (speed(case, &format!("{kind}, engine")), speed(case, &format!("{kind}, firmware")));
            assert!(engine > firmware, "{case}: {engine} {firmware}");
        }
    }
    assert!(speed("mixed, depth 32", "encrypted, firmware") < speed("mixed, depth 32", "HPB off"));
    assert!(value(&doc, "mixed, depth 32", "encrypted, engine", "hpb_stale") > 0.0, "verdicts of a run are told");
}

#[test]
fn a_chosen_run_is_not_attacked() {
    let room = Room::new();
    let args = ["reproduce", "verification", "--case", "reads, depth 1", "--variant", "tag, engine", "--json"];
    let doc = Document::from_json(&room.good(&args)).expect("a document");
    assert!(doc.rows.iter().all(|r| r.case == "reads, depth 1" && r.variant == "tag, engine"));
}

#[test]
fn mistakes_name_their_key() {
    let room = Room::new();
    for (set, says) in [
        ("hpb.entries.tag_bits=7", "hpb.entries.tag_bits: is 7; expected a whole number from 8 to 32"),
        ("hpb.entries.protection=aes", "hpb.entries.protection: is \"aes\""),
        ("hpb.entries.tag=8", "hpb.entries.tag: is not a key"),
    ] {
        room.bad(&["device", "show", "ufs21-64g", "--set", set], &[says]);
        room.bad(&["reproduce", "verification", "--set", set], &[says]);
    }
}
