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
#[ignore = "half a minute: make test-long"]
fn the_whole_experiment_is_shown() {
    let room = Room::new();
    let shown = room.good(&["reproduce", "verification", "--out", "out"]);
    assert!(shown.contains("Attacks on HPB entries") && shown.contains("encrypted, firmware"), "{shown}");
    assert!(shown.contains("tag of 32 bits: no attack returned anything that a READ would not have"), "{shown}");
    let doc = Document::from_json(&room.read("out/result.json")).expect("our own document");
    assert!(room.read("out/report.html").contains("attack: replay"));
    assert_eq!(value(&doc, "attack: swap", "tag of 32 bits", "hpb_foreign"), 16_384.0);
}

#[test]
fn a_chosen_run_is_not_attacked() {
    let room = Room::new();
    let args = ["reproduce", "verification", "--case", "reads, depth 1", "--variant", "tag, engine", "--json"];
    let doc = Document::from_json(&room.good(&args)).expect("a document");
    assert!(doc.rows.iter().all(|r| r.case == "reads, depth 1" && r.variant == "tag, engine"));
}

#[test]
fn attacks_are_planned_runs() {
    let planned = Room::new().json(&["reproduce", "verification", "--dry-run", "--json"]);
    let lines = planned["planned"].as_array().expect("a list");
    let runs = |attacks: bool| -> u64 {
        let of = lines.iter().filter(|line| line["case"].as_str().expect("a case").starts_with("attack: ") == attacks);
        of.map(|line| line["runs"].as_u64().expect("a number")).sum()
    };
    assert_eq!((runs(true), planned["runs"].as_u64()), (5 * 6 * 2, Some(runs(false) + 60)));
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
