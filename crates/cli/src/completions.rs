// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a shell is told while one types: names of devices, experiments, caches, policies and keys, and files of the
//! right kind. The program itself is asked by the script of `readpath completions`.

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::Shells;
use readpath_session::config::{device, experiment::Variant, experiments, presets};
use readpath_session::lab::builtin;
use readpath_session::ubi;
use serde_json::Value;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// The environment variable that asks for candidates; its value is the shell.
pub const ASKED: &str = "READPATH_COMPLETE";

/// Bash parts words at `=` and `:`, which keys have: they are joined again, and what stands before is taken off.
const BASH: &str = r#"_readpath() {
    local IFS=$'\n' words=() word joined= i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $joined || (i -gt 1 && $word == [=:]) ]]; then words[${#words[@]}-1]+=$word; else words+=("$word"); fi
        joined=
        if [[ i -gt 1 && $word == [=:] ]]; then joined=1; fi
    done
    i=$((${#words[@]} - 1))
    word=${words[i]}
    COMPREPLY=($(ASKED=bash _CLAP_COMPLETE_INDEX=$i _CLAP_IFS=$'\n' "$1" -- "${words[@]}" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*[=:]}"}"}")
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/:] ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o bashdefault -F _readpath readpath
"#;

/// Writes the script for a shell.
pub fn script(shell: &str, out: &mut dyn io::Write) -> io::Result<()> {
    match Shells::builtins().completer(shell) {
        Some(other) if shell != "bash" => other.write_registration(ASKED, "readpath", "readpath", "readpath", out),
        _ => out.write_all(BASH.replace("ASKED", ASKED).as_bytes()),
    }
}

/// The command line, with what is known of its values.
pub fn completing(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command.mut_args(|arg| with_values(&name, arg)).mut_subcommands(completing)
}

fn with_values(command: &str, arg: Arg) -> Arg {
    let option = arg.get_long().unwrap_or_default().to_owned();
    let id = arg.get_id().to_string();
    let of = |names: Vec<String>, files: &'static [&'static str]| ArgValueCompleter::new(Known { names, files });
    let values = match (command, if option.is_empty() { &*id } else { &*option }) {
        ("show", "name") | (_, "device" | "gain") | ("mrc", "check") => of(names(presets()), &["toml"]),
        ("reproduce", "name") => {
            let all = builtin::BUILTINS.iter().map(|one| one.name.to_owned());
            of(all.chain(["all".to_owned()]).collect(), &["toml"])
        }
        ("compare", "workload") => of(names(experiments()), ANY),
        ("fio", "job") | ("create", "age") => of(Vec::new(), &["fio"]),
        ("sweep", "file") | ("check", "files") => of(Vec::new(), &["toml"]),
        ("report", "result") | ("fit", "results") => of(Vec::new(), &["json"]),
        ("serve" | "attach" | "info" | "check" | "clone" | "reset" | "rpmb", "image") => {
            of(Vec::new(), &["img", "mtd"])
        }
        (_, "policy") => of(readpath_session::args::policy_names(), &[]),
        (_, "cache") => of(ubi::cache_names(), &[]),
        (_, "cost") => of(ubi::cost_names(), &["toml"]),
        (_, "set") => ArgValueCompleter::new(Keys { of_host: false, values: true }),
        (_, "vary" | "with" | "against") => ArgValueCompleter::new(Keys { of_host: true, values: true }),
        (_, "key" | "params") if command != "rpmb" => ArgValueCompleter::new(Keys { of_host: false, values: false }),
        (_, "out" | "keep" | "sysfs" | "plan") => ArgValueCompleter::new(PathCompleter::dir()),
        _ => return arg,
    };
    arg.add(values)
}

fn names(all: &[readpath_session::config::Builtin]) -> Vec<String> {
    all.iter().map(|one| one.name.to_owned()).collect()
}

/// Files of all kinds.
const ANY: &[&str] = &["*"];

/// Some names, and files whose name ends so.
struct Known {
    names: Vec<String>,
    files: &'static [&'static str],
}

impl ValueCompleter for Known {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let text = current.to_string_lossy();
        let named = self.names.iter().filter(|name| name.starts_with(&*text)).map(CompletionCandidate::new);
        let files = self.files;
        let ends = move |path: &Path| files == ANY || files.iter().any(|end| path.extension() == Some(OsStr::new(end)));
        let files = match files {
            [] => Vec::new(),
            _ => PathCompleter::file().filter(move |path| path.is_file() && ends(path)).complete(current),
        };
        named.chain(files).collect()
    }
}

/// Keys of the device, perhaps those of the host, with the values that they have.
struct Keys {
    of_host: bool,
    values: bool,
}

/// A key, what it means, and its values if they have names.
type Key = (String, String, Vec<String>);

impl ValueCompleter for Keys {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let text = current.to_string_lossy();
        let mut keys = Vec::new();
        if self.of_host {
            keys.extend(Variant::host_keys().into_iter().map(|key| (key.to_owned(), String::new(), host_values(key))));
        }
        of_schema(&serde_json::to_value(device::schema()).unwrap_or_default(), "", &mut keys);
        match text.split_once('=').filter(|_| self.values) {
            Some((key, values)) => {
                let before = &text[..text.len() - values.rsplit(',').next().map_or(0, str::len)];
                let known = keys.into_iter().find(|known| known.0 == key).map(|known| known.2).unwrap_or_default();
                let known = known.iter().map(|value| format!("{before}{value}"));
                known.filter(|value| value.starts_with(&*text)).map(CompletionCandidate::new).collect()
            }
            None => {
                let fit = keys.into_iter().filter(|key| key.0.starts_with(&*text));
                let end = if self.values { "=" } else { "" };
                fit.map(|(key, what, _)| CompletionCandidate::new(key + end).help(Some(what.into()))).collect()
            }
        }
    }
}

/// Words for a key of the host.
fn host_values(key: &str) -> Vec<String> {
    match key {
        "hpb" => ["off", "dcm", "hcm", "prototype-host", "prototype-device"].map(str::to_owned).to_vec(),
        "policy" => readpath_session::args::policy_names(),
        _ => Vec::new(),
    }
}

/// The keys of a JSON schema, with those of tables and of the first of several tables.
fn of_schema(schema: &Value, path: &str, keys: &mut Vec<Key>) {
    for (name, key) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{name}");
        match (&key["properties"], &key["items"]["properties"]) {
            (Value::Object(_), _) => of_schema(key, &format!("{path}."), keys),
            (_, Value::Object(_)) => of_schema(&key["items"], &format!("{path}[0]."), keys),
            _ => {
                let words = key["enum"].as_array().into_iter().flatten().map(|v| v.to_string().replace('"', ""));
                let truths = ["false", "true"].into_iter().filter(|_| key["type"] == "boolean").map(str::to_owned);
                let what = key["description"].as_str().unwrap_or_default().to_owned();
                keys.push((path, what, words.chain(truths).collect()));
            }
        }
    }
}
