// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of the program share: a folder to run it in, small inputs, and how a refusal has to look.

pub mod running;

use assert_cmd::Command;
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::{fs, str};

/// A folder of a test's own in which the program runs.
pub struct Room(tempfile::TempDir);

impl Room {
    pub fn new() -> Self {
        Room(tempfile::tempdir().expect("a folder"))
    }

    /// A folder with a file in it.
    pub fn with(name: &str, text: &str) -> Self {
        let room = Room::new();
        room.write(name, text);
        room
    }

    /// A folder with a recorded dump of flash in it.
    pub fn with_dump(name: &str) -> Self {
        let room = Room::new();
        dump(&room, name);
        room
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The program with arguments, in this folder.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("readpath").expect("the program");
        command.current_dir(self.0.path()).args(args);
        command
    }

    pub fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    /// Runs it well; standard output. Nothing may be on standard error, which is no terminal here.
    pub fn good(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert!(output.status.success(), "{args:?}: {} {}", output.status, text(&output.stderr));
        assert_eq!(text(&output.stderr), "", "{args:?}: standard error is quiet");
        text(&output.stdout).to_owned()
    }

    /// Runs it well; the JSON that it prints.
    pub fn json(&self, args: &[&str]) -> Value {
        json(&self.good(args))
    }

    /// Runs a command and returns its document, without the fields that depend on the machine.
    pub fn document(&self, args: &[&str]) -> Value {
        let mut document = self.json(args);
        document.as_object_mut().expect("an object").remove("process");
        document
    }

    /// Runs it into a mistake of the user's: exit status 2, nothing on standard output, a message that has all of
    /// `says`, each thing once, and no file or folder that was not there before. Returns the message.
    pub fn bad(&self, args: &[&str], says: &[&str]) -> String {
        let before = self.files();
        let output = self.output(args);
        let message = text(&output.stderr).to_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
        for part in says {
            assert_eq!(message.matches(part).count(), 1, "{args:?}: {part:?} is once in {message:?}");
        }
        assert!(!message.contains("panicked") && !message.contains("RUST_BACKTRACE"), "{message}");
        assert_eq!(self.files(), before, "{args:?} leaves nothing behind");
        message
    }

    /// Everything in the folder.
    pub fn files(&self) -> Vec<PathBuf> {
        fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    walk(&path, found);
                }
                found.push(path);
            }
        }
        let mut found = Vec::new();
        walk(self.0.path(), &mut found);
        found.sort();
        found
    }
}

/// Puts a recorded dump of flash into a room.
fn dump(room: &Room, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nand/ubi/tests/data").join(format!("{name}.xz"));
    let packed = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut bytes = Vec::new();
    liblzma::read::XzDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("an xz file");
    fs::write(room.path(name), bytes).expect("a file");
}

pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The rows of a document.
pub fn rows(document: &Value) -> &[Value] {
    document["rows"].as_array().expect("rows")
}

/// The first row with these values.
pub fn row<'d>(document: &'d Value, keys: &[(&str, &str)]) -> Option<&'d Value> {
    rows(document).iter().find(|row| keys.iter().all(|(key, value)| row[key] == *value))
}

/// The figure of the first row with these values.
pub fn figure(document: &Value, keys: &[(&str, &str)]) -> Option<f64> {
    row(document, keys)?["simulated"].as_f64()
}

/// The figure of a variant in a document of one case.
#[track_caller]
pub fn value(document: &Value, variant: &str, metric: &str) -> f64 {
    let figure = figure(document, &[("variant", variant), ("metric", metric)]);
    figure.unwrap_or_else(|| panic!("{variant}: no {metric} in {:#?}", rows(document)))
}

/// The texts of the notes of a document.
pub fn texts(document: &Value) -> Vec<&str> {
    document["notes"].as_array().expect("notes").iter().map(|note| note["text"].as_str().expect("a text")).collect()
}

/// The notes as people see them, one a line.
pub fn notes(document: &Value) -> String {
    let note = |note: &Value| serde_json::from_value::<readpath_results::Note>(note.clone()).expect("a note");
    document["notes"].as_array().expect("notes").iter().map(|json| format!("{}\n", note(json))).collect()
}

/// The sentences of the verdict, a line each.
pub fn verdict(document: &Value) -> String {
    let notes = document["verdict"].as_array().map(Vec::as_slice).unwrap_or_default();
    notes.iter().filter_map(|note| note["text"].as_str()).collect::<Vec<_>>().join("\n")
}

pub fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("UTF-8")
}

/// A preset as a file in which the line of a key is another; the number of that line (from 1) comes along. `section` is
/// `[hpb]`, `[[lu]]`, or empty for the keys at the top.
pub fn preset_with(section: &str, key: &str, line: &str) -> (String, usize) {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../presets/ufs21-64g.toml"));
    let text = text.expect("the preset");
    let mut lines: Vec<&str> = text.lines().collect();
    let from = if section.is_empty() { 0 } else { lines.iter().position(|l| *l == section).expect("the section") };
    let key = format!("{key} = ");
    let at = from + lines[from..].iter().position(|l| l.starts_with(&key)).expect("the key");
    lines[at] = line;
    (lines.join("\n") + "\n", at + 1)
}

/// An experiment that takes milliseconds: random reads of 16 MiB, HPB off and on.
pub const EXPERIMENT: &str = r#"schema = "readpath-experiment/1"
name = "small"
title = "A small experiment"
description = "Four threads read a little."
citations = ["nobody"]
device = "ufs21-64g"
seed = 7

[precondition]
layout = "sequential"
range = "files"

[workload]
kind = "iozone"
case = "reads"
args = ["-r", "4k", "-+n", "-i2", "-ecI", "-t", "4", "-s", "4m"]

[[variant]]
name = "HPB off"
hpb = false

[[variant]]
name = "HPB dcm"
hpb = true

[[published]]
case = "reads"
variant = "HPB dcm"
metric = "random_read_throughput"
unit = "MiB/s"
value = 294.80
origin = "predicted"
"#;

/// The first line of a trace in our own table.
pub const HEADER: &str = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n";

/// A job that takes milliseconds.
pub const JOB: &str = "[reader]\nrw=randread\nbs=4k\nsize=4m\nioengine=libaio\ndirect=1\niodepth=8\n";
