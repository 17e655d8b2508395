// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands and options that had other names. They are refused with the new one.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The command, what was typed there, and what is typed now. What begins with a dash is an option; `--option=value` one
/// with this value; capitals are a value too many; else it is a word right behind the command. `*` is any command.
const RENAMED: &[(&str, &str, &str)] = &[
    ("readpath", "run", "readpath reproduce FILE"),
    ("readpath", "bench", "readpath dev bench"),
    ("readpath trace", "upius", "readpath dev upius TRACE"),
    ("readpath trace", "parity", "readpath dev parity TRACE"),
    ("readpath fio", "--precondition", "--fill"),
    ("readpath iozone", "--precondition", "--fill"),
    ("readpath power", "--precondition", "--fill"),
    ("readpath replay", "--preload", "--fill"),
    ("readpath compare", "--preload", "--fill"),
    ("readpath break-even", "--preload", "--fill"),
    ("readpath replay", "--mode=timed", "a replay without --iodepth"),
    ("readpath replay", "--mode", "--iodepth N"),
    ("readpath compare", "--mode", "--iodepth N"),
    ("readpath break-even", "--mode", "--iodepth N"),
    ("readpath power", "--mode", "--iodepth N"),
    ("readpath replay", "--map-cache", "--vary map_cache.size_kib=N,N"),
    ("readpath compare", "--map-cache", "--vary map_cache.size_kib=N,N"),
    ("readpath replay", "--host-map", "--vary max_map=BYTES"),
    ("readpath compare", "--fio", "readpath compare JOB"),
    ("readpath compare", "--trace", "readpath compare TRACE"),
    ("readpath break-even", "--fio", "readpath break-even JOB"),
    ("readpath break-even", "--trace", "readpath break-even TRACE"),
    ("readpath power", "--trace", "readpath power TRACE"),
    ("readpath compare", "--variant", "--vary NAME:KEY=VALUE,..."),
    ("*", "--hpb=both", "--hpb off,dcm"),
    ("*", "--hpb=all", "--hpb off,dcm,hcm"),
    ("*", "--hpb=prototype", "--hpb prototype-host,prototype-device"),
    ("readpath trace convert", "--to", "--output-format csv|fio"),
    ("readpath trace convert", "--target", "--filename"),
    ("readpath trace convert", "OUT", "--output FILE"),
    ("readpath trace info", "--output", "--out"),
    ("readpath trace mrc", "--output", "--out"),
    ("readpath replay", "--output", "--out"),
    ("readpath ubi replay", "--output", "--out"),
    ("readpath ubi attach", "--nand", "--cost"),
    ("readpath ubi extract", "--to", "--out"),
    ("readpath ubi stream", "--out", "--output"),
    ("readpath ubi stream", "mount", "readpath ubi stream IMAGE mount"),
    ("readpath ubi stream", "find", "readpath ubi stream IMAGE find PATH"),
    ("readpath ubi stream", "find-ls", "readpath ubi stream IMAGE find-ls PATH"),
    ("readpath ubi stream", "cat", "readpath ubi stream IMAGE cat PATH"),
    ("readpath ubi stream", "read", "readpath ubi stream IMAGE read LIST"),
    ("readpath ubi stream", "rm", "readpath ubi stream IMAGE rm PATH"),
    ("readpath report", "--html", "--output"),
    ("readpath device fit", "--out", "--output"),
    ("readpath image clone", "COPY", "--output FILE"),
    ("readpath serve", "--image", "readpath serve IMAGE"),
    ("readpath serve", "--speed=real", "--scale 1"),
    ("readpath serve", "--speed", "--instant"),
    ("readpath attach", "--image", "readpath attach IMAGE"),
    ("readpath attach", "--speed=real", "--scale 1"),
    ("readpath attach", "--speed", "--instant"),
    ("readpath attach", "--trace", "--trace-io"),
    ("readpath image rpmb", "show", "readpath image rpmb IMAGE"),
    ("readpath image rpmb", "reset", "readpath image rpmb IMAGE --reset"),
];

/// What to type instead of `words`, which have the error, if something in them has another name now.
pub fn instead(mut program: &Command, words: &[String], error: &clap::Error) -> Option<String> {
    let (mut path, mut rest) = (program.get_name().to_owned(), words.get(1..)?);
    while let Some(below) = rest.first().and_then(|word| program.find_subcommand(word)) {
        (path, program, rest) = (format!("{path} {}", below.get_name()), below, &rest[1..]);
    }
    let rest: Vec<&str> = rest.iter().map(String::as_str).take_while(|word| *word != "--").collect();
    let too_many = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) => !word.starts_with('-'),
        _ => false,
    };
    let typed = |old: &str| match old.split_once('=') {
        Some((option, value)) => rest.contains(&old) || rest.windows(2).any(|two| two == [option, value]),
        None if old.starts_with('-') => rest.iter().any(|word| word.split('=').next() == Some(old)),
        None if old.chars().all(char::is_uppercase) => too_many,
        None => rest.first() == Some(&old),
    };
    let found = RENAMED.iter().find(|(command, old, _)| (*command == path || *command == "*") && typed(old));
    found.map(|(_, old, new)| format!("{path}: '{}' is now '{new}'", old.replacen('=', " ", 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;

    /// The command of some words, and what stands behind it.
    fn command_of<'a>(program: &'a Command, words: &'a [&'a str]) -> (&'a Command, &'a [&'a str]) {
        match words.first().and_then(|word| program.find_subcommand(word)) {
            Some(below) => command_of(below, &words[1..]),
            None => (program, words),
        }
    }

    #[test]
    fn old_names_are_gone_and_new_ones_are_there() {
        let mut program = command();
        program.build();
        for (path, old, new) in RENAMED {
            let path = if *path == "*" { "readpath fio" } else { path };
            let words: Vec<&str> = path.split(' ').collect();
            let (there, rest) = command_of(&program, &words[1..]);
            assert!(rest.is_empty(), "{path} is a command");
            let typed = path.split(' ').chain(old.split('=')).chain(["x"]).map(str::to_owned).collect::<Vec<_>>();
            let refused = command().try_get_matches_from(&typed).expect_err("an old name");
            assert!(refused.use_stderr(), "{typed:?}: {refused}");
            let said = instead(&command(), &typed, &refused).expect("a new name");
            assert!(said.contains(new), "{said}");
            // An option of the same command, or a whole command.
            let words: Vec<&str> = new.split(' ').collect();
            let (there, rest) =
                if words[0] == "readpath" { command_of(&program, &words[1..]) } else { (there, &*words) };
            assert!(!there.has_subcommands() || words[0] != "readpath", "{new} names a command");
            for option in rest.iter().filter_map(|word| word.strip_prefix("--")) {
                assert!(there.get_arguments().any(|a| a.get_long() == Some(option)), "{path}: {new}: no --{option}");
            }
        }
    }

    #[test]
    fn only_what_was_typed_in_its_place_is_an_old_name() {
        let said = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            instead(&command(), &words, &command().try_get_matches_from(&words).err()?)
        };
        assert_eq!(said("readpath run x.toml"), Some("readpath: 'run' is now 'readpath reproduce FILE'".into()));
        assert_eq!(
            said("readpath trace upius t"),
            Some("readpath trace: 'upius' is now 'readpath dev upius TRACE'".into())
        );
        for other in [
            "readpath trace convert t --output x",
            "readpath trace info a b",
            "readpath",
            "readpath fio run",
            "readpath reproduce",
            "readpath fio -- run",
            "readpath fio --nothing -- --precondition=x",
            "readpath dev bench",
        ] {
            assert_eq!(said(other), None, "{other}");
        }
    }
}
