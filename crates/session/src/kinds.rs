// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a file is, by its beginning: for the error of a command that takes something else. Knows no options and reads
//! nothing but the beginning.

use crate::inputs::is_stdin;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_workload::trace::{Options, Reader};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes that are looked at.
const HEAD: u64 = 64 << 10;

/// What a command takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A fio job file.
    Job,
    /// An experiment file.
    Experiment,
    /// A study file.
    Study,
    /// A device file.
    Device,
    /// A result document.
    Document,
    /// A block trace.
    Trace,
    /// An image of UBI.
    Ubi,
    /// Nothing that a command takes.
    Other,
}

/// Whether a file that begins so is of a kind.
type Begins = fn(&[u8]) -> bool;

/// Kinds of files: how they begin, what they are called, and what to do with `FILE`.
const KINDS: [(Kind, Begins, &str, &str); 11] = [
    (Kind::Experiment, |head| has_schema(head, "experiment"), "an experiment", "'readpath reproduce FILE' runs it"),
    (Kind::Study, |head| has_schema(head, "study"), "a study", "'readpath sweep FILE' runs it"),
    (
        Kind::Device,
        |head| has_schema(head, "device"),
        "a device file",
        "'readpath fio' and others take it as --device FILE",
    ),
    (Kind::Document, |head| has_schema(head, "results"), "a result document", "'readpath report FILE' shows it"),
    (Kind::Job, is_job, "a fio job", "'readpath fio FILE' runs it"),
    (Kind::Ubi, |head| head.starts_with(b"UBI#"), "an image of UBI", "'readpath ubi ls FILE' lists what is in it"),
    (
        Kind::Other,
        |head| head.starts_with(b"PERFILE2") || head.starts_with(b"2ELIFREP"),
        "a recording of perf",
        "'perf script -i FILE >FILE.txt' makes text of it, which 'readpath replay' reads",
    ),
    (
        Kind::Other,
        |head| head.starts_with(b"\x17\x08Dtracing"),
        "a recording of trace-cmd",
        "'trace-cmd report -i FILE >FILE.txt' makes text of it, which 'readpath replay' reads",
    ),
    (
        Kind::Other,
        |head| {
            head.trim_ascii_start()
                .first_chunk::<5>()
                .is_some_and(|tag| tag.eq_ignore_ascii_case(b"<!doc") || tag.eq_ignore_ascii_case(b"<html"))
        },
        "a web page",
        "if it is one of systrace, 'sed -n \"/^# tracer/,/<.script>/{/<.script>/!p}\" FILE >FILE.txt' takes its text \
         out, which 'readpath replay' reads",
    ),
    (
        Kind::Other,
        |head| head.starts_with(b"PK\x03\x04"),
        "a zip archive",
        "unzip it; a bug report of Android has its trace in FS/data/misc/perfetto-traces, which 'readpath replay' \
         reads",
    ),
    (
        Kind::Trace,
        is_trace,
        "a block trace",
        "'readpath replay FILE' replays it; compare, break-even and power take it, too",
    ),
];

/// Refuses a file that is something else than `wanted`, and names the command that takes it. What cannot be read or is
/// not recognised is left to its reader.
///
/// # Errors
/// When it is something else.
pub fn check(path: &Path, wanted: Kind) -> Result<()> {
    let Some(head) = head(path) else { return Ok(()) };
    match KINDS.iter().find(|(_, begins, _, _)| begins(&head)) {
        Some((kind, _, what, instead)) if *kind != wanted => {
            let file = path.display().to_string();
            Err(usage(anyhow!("{file}: is {what}; {}", instead.replace("FILE", &file))))
        }
        _ => Ok(()),
    }
}

/// Whether a workload is a fio job rather than a block trace, by its name or by its beginning.
pub fn is_job_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "fio") || head(path).is_some_and(|head| is_job(&head))
}

/// The beginning of a file, but not of a pipe: nobody else could read that.
fn head(path: &Path) -> Option<Vec<u8>> {
    let regular = !is_stdin(path) && path.metadata().is_ok_and(|meta| meta.is_file());
    let mut head = Vec::new();
    let read = |file: File| file.take(HEAD).read_to_end(&mut head);
    (regular && File::open(path).and_then(read).is_ok()).then_some(head)
}

/// Whether it says that it is a file of this kind of ours: `schema = "readpath-KIND/1"`, or the same in JSON.
fn has_schema(head: &[u8], kind: &str) -> bool {
    let mark = format!("\"readpath-{kind}/");
    lines(head).take(50).any(|line| {
        let line = line.trim_start_matches(['{', '"', ' ']);
        line.starts_with("schema") && line.contains(&mark)
    })
}

/// Whether the first line that is no comment begins a section, as in a fio job.
fn is_job(head: &[u8]) -> bool {
    let first = lines(head).map(str::trim).find(|line| !line.is_empty() && !line.starts_with([';', '#']));
    first.is_some_and(|line| line.starts_with('[') && line.split([';', '#']).next().unwrap_or("").trim().ends_with(']'))
}

fn is_trace(head: &[u8]) -> bool {
    Reader::new("", Box::new(std::io::Cursor::new(head.to_vec())), &Options::default()).is_ok()
}

/// The complete lines of a text.
fn lines(head: &[u8]) -> impl Iterator<Item = &str> {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    head.split(|&byte| byte == b'\n').map_while(|line| std::str::from_utf8(line).ok())
}
