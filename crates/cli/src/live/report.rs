// SPDX-License-Identifier: MIT OR Apache-2.0
//! All files of a tree as one JSON document: objects for folders, by the kernel's names.

use readpath_sysfs::{Entry, Kind, Tree};
use serde_json::{Map, Value, json};

pub const SCHEMA: &str = "readpath-stats/1";

/// What hosts are called, before their number.
pub const HOST: &str = "host";

/// The current state of all runs.
pub fn report(tree: &Tree) -> Value {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let runs: Vec<Value> = entries(tree, "readpath").iter().map(|entry| run(tree, entry)).collect();
    json!({
        "schema": SCHEMA,
        "pid": std::process::id(),
        "command": arguments.join(" "),
        "runs": runs,
        "module": object(tree, &entries(tree, "module/ufshcd_core/parameters")),
    })
}

/// One run: its description, and the files of its device and of its logical units once its host has found them.
fn run(tree: &Tree, entry: &Entry) -> Value {
    let mut run = Map::new();
    run.insert("host".into(), entry.name.clone().into());
    for file in tree.entries(entry.node).unwrap_or_default() {
        let text = tree.read(file.node).unwrap_or_default();
        let text = text.trim_end_matches('\n');
        let value = match file.name.as_str() {
            // Names may look like numbers.
            "requests" | "virtual_time_ns" => value(text),
            _ => text.into(),
        };
        run.insert(file.name, value);
    }
    let number = entry.name.trim_start_matches(HOST);
    let device = entries(tree, &format!("devices/platform/{number}.ufs"));
    let (targets, groups): (Vec<Entry>, Vec<Entry>) = device.into_iter().partition(|e| e.name == entry.name);
    run.insert("device".into(), object(tree, &groups));
    let mut units = Map::new();
    for target in targets.iter().flat_map(|host| tree.entries(host.node).unwrap_or_default()) {
        for unit in tree.entries(target.node).unwrap_or_default() {
            let mut files = tree.entries(unit.node).unwrap_or_default();
            // It holds nothing but a link back.
            files.retain(|e| e.name != "scsi_device");
            units.insert(unit.name, object(tree, &files));
        }
    }
    run.insert("units".into(), units.into());
    run.into()
}

fn entries(tree: &Tree, path: &str) -> Vec<Entry> {
    tree.find(path).and_then(|node| tree.entries(node)).unwrap_or_default()
}

fn object(tree: &Tree, entries: &[Entry]) -> Value {
    let mut map = Map::new();
    for entry in entries {
        let value = match entry.kind {
            Kind::Folder => object(tree, &tree.entries(entry.node).unwrap_or_default()),
            Kind::Link(_) => continue,
            // What cannot be read is null: the kernel has an error number for it.
            Kind::File { .. } => tree.read(entry.node).map_or(Value::Null, |text| value(text.trim_end_matches('\n'))),
        };
        map.insert(entry.name.clone(), value);
    }
    map.into()
}

/// Numbers and truth values as such, everything else as the text that it is.
fn value(text: &str) -> Value {
    match (text, text.parse::<u64>()) {
        ("true", _) => true.into(),
        ("false", _) => false.into(),
        // A serial number with zeros before it is no number.
        (_, Ok(number)) if number.to_string() == text => number.into(),
        _ => text.into(),
    }
}
