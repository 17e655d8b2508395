// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath stats`: asks a run in progress for its counters, through the socket that `--stats` made, and prints them.

use crate::args::Stats;
use crate::live::socket::{self, PathKind};
use crate::live::{HOST, SCHEMA};
use crate::output::json_escaped;
use crate::usage;
use anyhow::{Result, anyhow};
use serde_json::{Map, Value};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// A run answers between two of its requests, so at once; one that does not has been stopped.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest plausible answer: some kilobytes for each run.
const LONGEST: u64 = 256 << 20;

pub fn main(args: &Stats) -> Result<()> {
    let path = match &args.socket {
        Some(path) => path.clone(),
        None => the_only_one()?,
    };
    let mut answer = ask(&path)?;
    loop {
        print(&answer, args)?;
        let Some(seconds) = args.watch else { return Ok(()) };
        sleep(Duration::from_secs(seconds.into()));
        // The socket is removed when the run ends, and so this command ends.
        if matches!(socket::look(&path), Ok(PathKind::Nothing)) {
            return Ok(());
        }
        answer = match connect(&path) {
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => return Ok(()),
            _ => ask(&path)?,
        };
        if !args.json {
            writeln!(io::stdout())?;
        }
    }
}

/// The socket of the only run. Sockets that killed programs left behind are removed.
fn the_only_one() -> Result<PathBuf> {
    let mut alive = Vec::new();
    for path in socket::all()? {
        match connect(&path) {
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => _ = fs::remove_file(&path).ok(),
            _ => alive.push(path),
        }
    }
    match &alive[..] {
        [only] => Ok(only.clone()),
        [] => {
            let folder = socket::folder();
            Err(usage(anyhow!(
                "no run in progress shows its counters ({} has no socket of one); start it with --stats",
                folder.display()
            )))
        }
        several => {
            let list: Vec<String> = several.iter().map(|path| described(path)).collect();
            let message = "runs in progress show their counters; name the socket of one";
            Err(usage(anyhow!("{} {message}:\n{}", several.len(), list.join("\n"))))
        }
    }
}

/// A line of the list of sockets.
fn described(path: &Path) -> String {
    let command = ask(path).ok().and_then(|answer| answer.get("command")?.as_str().map(str::to_owned));
    format!("  {}  {}", path.display(), command.map_or_else(|| "(does not answer)".to_owned(), |c| harmless(&c)))
}

fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// What a run answers.
fn ask(path: &Path) -> Result<Value> {
    let name = path.display();
    let wrong = |what: String| usage(anyhow!("{name}: {what}"));
    match socket::look(path).map_err(|e| wrong(format!("cannot look at it: {e}")))? {
        PathKind::Nothing => return Err(wrong("there is no such socket; the run is over, or never had it".into())),
        PathKind::Other => return Err(wrong("is no socket".into())),
        PathKind::Socket => {}
    }
    let stream = connect(path).map_err(|e| match e.kind() {
        io::ErrorKind::ConnectionRefused => wrong("no answer: the program that made this socket has ended".into()),
        io::ErrorKind::PermissionDenied => wrong("only the user who started the run may read it".into()),
        _ => wrong(format!("cannot connect: {e}")),
    })?;
    let mut text = String::new();
    stream.take(LONGEST).read_to_string(&mut text).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => wrong(format!(
            "has not answered for {} s; the program behind it is stopped, or is not readpath",
            PATIENCE.as_secs()
        )),
        io::ErrorKind::InvalidData => wrong("answers no text".into()),
        _ => wrong(format!("does not answer: {e}")),
    })?;
    let answer: Value = serde_json::from_str(&text).map_err(|e| wrong(format!("answers no JSON document: {e}")))?;
    match answer.get("schema").and_then(Value::as_str) {
        Some(SCHEMA) => {}
        other => {
            let found = other.map_or_else(|| "something else".to_owned(), harmless);
            return Err(wrong(format!("answers {found}; this program reads {SCHEMA}")));
        }
    }
    match answer.get("runs").and_then(Value::as_array) {
        Some(runs) if runs.iter().all(Value::is_object) => Ok(answer),
        _ => Err(wrong("answers without runs, a list of objects".into())),
    }
}

/// A text of another program, for the terminal: its control characters are escaped.
fn harmless(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

fn print(answer: &Value, args: &Stats) -> Result<()> {
    let mut out = Vec::new();
    if args.json {
        writeln!(out, "{}", json_escaped(answer.to_string()))?;
    } else {
        text(answer, args.all, &mut out)?;
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(&out)?;
    Ok(stdout.flush()?)
}

fn text(answer: &Value, all: bool, out: &mut Vec<u8>) -> Result<()> {
    let empty = Map::new();
    let object = |value: &'_ Value| value.as_object().cloned().unwrap_or_default();
    let runs = answer.get("runs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for run in runs.iter().filter_map(Value::as_object) {
        let word = |key: &str| harmless(run.get(key).and_then(Value::as_str).unwrap_or_default());
        let number = |key: &str| run.get(key).and_then(Value::as_u64).unwrap_or_default();
        let host = word("host");
        writeln!(
            out,
            "{host} ({}, {}): {}, {} requests, {:.3} s of virtual time",
            word("case"),
            word("variant"),
            word("state"),
            number("requests"),
            number("virtual_time_ns") as f64 / 1e9
        )?;
        let mut files = Vec::new();
        walk("", &object(run.get("device").unwrap_or(&Value::Null)), &mut files);
        for (address, unit) in run.get("units").and_then(Value::as_object).unwrap_or(&empty) {
            walk(&harmless(address), &object(unit), &mut files);
        }
        files.retain(|(path, _)| all || path.contains("hpb"));
        let width = files.iter().map(|(path, _)| path.len()).max().unwrap_or(0);
        for (path, value) in files {
            writeln!(out, "  {path:<width$}  {value}")?;
        }
    }
    let mut module = Vec::new();
    walk("module/ufshcd_core/parameters", &object(answer.get("module").unwrap_or(&Value::Null)), &mut module);
    for (path, value) in module {
        writeln!(out, "{path}  {value}")?;
    }
    if runs.is_empty() {
        writeln!(out, "There is no {HOST}.")?;
    }
    Ok(())
}

/// Paths of files below `path`, each with its content.
fn walk(path: &str, folder: &Map<String, Value>, files: &mut Vec<(String, String)>) {
    for (name, value) in folder {
        let name = harmless(name);
        let path = if path.is_empty() { name } else { format!("{path}/{name}") };
        match value {
            Value::Object(folder) => walk(&path, folder, files),
            Value::Null => files.push((path, "-".to_owned())),
            Value::String(text) => files.push((path, harmless(text))),
            other => files.push((path, other.to_string())),
        }
    }
}
