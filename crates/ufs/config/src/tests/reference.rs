// SPDX-License-Identifier: MIT OR Apache-2.0
//! The book equals the tables of keys, and the built-in files conform to them.

use crate::keys::{Form, Row};
use crate::{device, experiment, presets, study};
use readpath_host::PolicyChoice;
use serde_json::Value;
use std::{env, fs};

/// Markers of tables in the book; the name of a table stands between the two parts of the first.
const BEGIN: (&str, &str) = ("<!-- keys of ", " -->\n\n");
const END: &str = "\n<!-- end of keys -->";

/// The rows of each table, by its path. Arrays within a table are shown with their rows.
fn tables<'r>(path: &str, rows: &'r [Row], all: &mut Vec<(String, &'r [Row])>) {
    all.push((if path.is_empty() { "the file".into() } else { path.to_owned() }, rows));
    for row in rows {
        let path = if path.is_empty() { row.key.name.to_owned() } else { format!("{path}.{}", row.key.name) };
        match &row.about.form {
            Form::Table(rows) => tables(&path, rows, all),
            Form::List(item) if !path.contains('.') => {
                if let Form::Table(rows) = &**item {
                    tables(&path, rows, all);
                }
            }
            _ => {}
        }
    }
}

fn markdown(rows: &[Row]) -> String {
    let head = "| Key | Value | Default | Meaning |\n|---|---|---|---|\n".to_owned();
    rows.iter().filter(|row| !is_table(row)).fold(head, |text, row| {
        let expected = &row.about.expected;
        let value = ["a ", "an "].iter().find_map(|article| expected.strip_prefix(article)).unwrap_or(expected);
        let default = match &row.default {
            Some(value) => format!("`{}`", serde_json::to_string(value).expect("plain data")),
            None => String::new(),
        };
        let meaning = row.key.doc.trim();
        assert!(!meaning.is_empty() && !meaning.contains('|'), "{}: {meaning}", row.key.name);
        format!("{text}| `{}` | {value} | {default} | {meaning} |\n", row.key.name)
    })
}

/// Whether a row is a table of its own.
fn is_table(row: &Row) -> bool {
    matches!(row.about.form, Form::Table(_))
}

/// Checks that a page of the book has a table of the keys of each table of the file, as generated here.
#[track_caller]
fn page_has(file: &str, rows: &[Row]) {
    let path = format!("{}/../../../docs/formats/{file}", env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(&path).expect("the page is there");
    let mut all = Vec::new();
    tables("", rows, &mut all);
    let new = all.iter().fold(page.clone(), |page, (name, rows)| {
        let begin = format!("{}{name}{}", BEGIN.0, BEGIN.1);
        let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{file} has no {begin:?}"));
        let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("{file}: {begin:?} without end"));
        format!("{before}{begin}{}{END}{after}", markdown(rows))
    });
    assert_eq!(new.matches(BEGIN.0).count(), all.len(), "{file} has a table that is not in files");
    check(&path, &page, &new);
}

/// Checks the page at `path` against the generated text, or rewrites it on request.
#[track_caller]
fn check(path: &str, page: &str, new: &str) {
    if env::var_os("READPATH_KEEP_REFERENCE").is_some() {
        fs::write(path, new).expect("the page can be written");
    } else {
        let keep = "READPATH_KEEP_REFERENCE=1 cargo test -p readpath-config reference";
        let differs = page.lines().zip(new.lines()).find(|(old, new)| old != new);
        assert!(page == new, "{path} is not as the tables are; write it anew with\n    {keep}\n{differs:#?}");
    }
}

#[test]
fn the_page_of_device_files_has_every_key() {
    page_has("device.md", &device::reference());
}

#[test]
fn the_page_of_study_files_has_every_key() {
    page_has("study.md", &study::reference());
}

#[test]
fn the_page_of_experiment_files_has_every_key() {
    page_has("experiment.md", &experiment::reference());
}

/// The page of policies has the rows of the table of policies.
#[test]
fn the_page_of_policies_has_every_policy() {
    let path = format!("{}/../../../docs/policies.md", env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(&path).expect("the page is there");
    let rows = PolicyChoice::ALL.map(|p| format!("| `{}` | {} |\n", p.name(), p.meaning())).concat();
    let (before, rest) = page.split_once("<!-- policies -->\n").expect("the beginning of the table");
    let (_, after) = rest.split_once("<!-- end of policies -->").expect("its end");
    let head = "<!-- policies -->\n| policy | what it does |\n|---|---|\n";
    check(&path, &page, &format!("{before}{head}{rows}<!-- end of policies -->{after}"));
}

/// Paths of all fields that have a key.
fn fields(path: &str, rows: &[Row], all: &mut Vec<String>) {
    for row in rows {
        let dot = if path.is_empty() || row.key.field.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{}", row.key.field);
        if let Form::Table(rows) = &row.about.form {
            fields(&path, rows, all);
        }
        all.push(path);
    }
}

/// Keys look up the bounds of their field by name, and an unknown name would panic. So every key with bounds has them
/// from the table; this test checks that every bound has a key.
#[test]
fn every_bound_of_a_device_belongs_to_a_key() {
    let mut all = Vec::new();
    fields("", &device::reference(), &mut all);
    let of_device = readpath_device::DeviceConfig::BOUNDS.iter().map(|bound| bound.field);
    let bounds: Vec<&str> = of_device.chain(readpath_flash::Geometry::BOUNDS.iter().map(|bound| bound.field)).collect();
    for (i, field) in bounds.iter().enumerate() {
        assert!(all.iter().any(|key| key == field), "{field} has no key");
        assert!(!bounds[..i].contains(field), "{field} has bounds twice");
    }
}

/// Violations of a schema by a value, as far as types, ranges, words, and names of keys go.
fn violations(at: &str, value: &Value, schema: &Value, wrong: &mut Vec<String>) {
    let is = |name: &Value| match name.as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    };
    let mut check = |right: bool, what: &str| {
        if !right {
            wrong.push(format!("{at}: {value} is not {what} of {schema}"));
        }
    };
    match &schema["type"] {
        Value::Null => {}
        Value::Array(names) => check(names.iter().any(is), "of the types"),
        name => check(is(name), "of the type"),
    }
    let number = value.as_f64().unwrap_or_default();
    let bound = |key: &str| schema[key].as_f64();
    check(bound("minimum").is_none_or(|least| number >= least), "within the minimum");
    check(bound("exclusiveMinimum").is_none_or(|least| number > least), "above the minimum");
    check(bound("maximum").is_none_or(|most| number <= most), "within the maximum");
    check(bound("multipleOf").is_none_or(|of| number % of == 0.0), "a multiple");
    check(schema["enum"].as_array().is_none_or(|words| words.contains(value)), "one");
    check(schema.get("const").is_none_or(|word| word == value), "the constant");
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        violations(&format!("{at}[{i}]"), item, &schema["items"], wrong);
    }
    let Some(properties) = schema["properties"].as_object() else { return };
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(key).is_none() {
            wrong.push(format!("{at}: {key} is missing"));
        }
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        match properties.get(key) {
            Some(schema) => violations(&format!("{at}.{key}"), value, schema, wrong),
            None => wrong.push(format!("{at}: {key} is unknown")),
        }
    }
}

fn wrong_by(schema: &Value, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    violations("", &toml::from_str(text).expect("TOML"), schema, &mut wrong);
    wrong
}

#[test]
fn presets_and_their_echoes_agree_with_the_schema() {
    let schema = serde_json::to_value(device::schema()).unwrap();
    for preset in presets() {
        assert_eq!(wrong_by(&schema, preset.text), [""; 0], "{}", preset.file);
        let echo = device::parse(preset.text, preset.file).unwrap().echo().to_toml();
        assert_eq!(wrong_by(&schema, &echo), [""; 0], "{}", preset.file);
    }
    let text = presets()[0].text;
    for (old, new, says) in [
        ("queue_depth = 32", "queue_depth = 65", ".queue_depth: 65 is not within the maximum"),
        ("queue_depth = 32", "queue_depth = \"32\"", ".queue_depth: \"32\" is not of the type"),
        ("queue_depth = 32", "queue_dept = 32", ": queue_depth is missing"),
        ("read_us = 50.0", "raed_us = 50.0", ".flash: read_us is missing"),
        ("\nread_us = 50.0", "\nread_us = 0", ".flash.read_us: 0 is not above the minimum"),
        ("scheduler = \"lean\"", "scheduler = \"leen\"", ".scheduler: \"leen\" is not one"),
        ("size_kib = 768", "size_kib = 767", ".write_buffer.size_kib: 767 is not a multiple"),
        ("pinned_start = 0", "pinned_start = -1", ".lu[0].pinned_start: -1 is not within the minimum"),
        ("device/1", "device/2", ".schema: \"readpath-device/2\" is not the constant"),
    ] {
        let wrong = wrong_by(&schema, &super::replaced(text, old, new));
        assert!(wrong[0].starts_with(says), "{says}: {wrong:?}");
    }
}
