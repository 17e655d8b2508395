// SPDX-License-Identifier: MIT OR Apache-2.0
//! The book and the command line agree: every command that is shown can be typed, and the page of options is `--help`.

use crate::args::Cli;
use crate::command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, FromArgMatches};
use readpath_testkit::book::{Shown, pages, programs, root};
use std::{env, fs};

/// What clap says against these words.
fn parse(words: &[String]) -> Result<(), clap::Error> {
    command().try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches)).map(drop)
}

/// The words of each start of the program.
fn starts(command: &str) -> Vec<Vec<String>> {
    let own = |words: &Vec<String>| words[0] == "readpath" || words[0].ends_with("/readpath");
    programs(command).into_iter().filter(own).collect()
}

/// Whether the command line has an unknown argument, rather than lacks one.
fn is_wrong(error: &clap::Error) -> bool {
    match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => true,
        ErrorKind::InvalidValue => error.get(ContextKind::InvalidValue) != Some(&ContextValue::String(String::new())),
        _ => false,
    }
}

#[test]
fn every_command_of_the_book_can_be_typed() {
    let (mut seen, mut wrong) = (0, String::new());
    for page in pages() {
        let shown = |command: &Shown| (command.line, starts(&command.text));
        let fenced = page.blocks.iter().flatten().map(shown).flat_map(|(n, all)| all.into_iter().map(move |w| (n, w)));
        for (line, words) in fenced {
            seen += 1;
            if let Err(e) = parse(&words).or_else(|e| if e.use_stderr() { Err(e) } else { Ok(()) }) {
                wrong += &format!("{}:{line}: {words:?}: {e}\n", page.path);
            }
        }
        // Inline code may leave out what a command needs, or name no command; it names no option that is not there.
        for (line, code) in &page.inline {
            let words = starts(code).swap_remove(0);
            let names_one = words[1].chars().all(|c| c.is_ascii_lowercase() || c == '-');
            if let Err(e) = parse(&words).or_else(|e| if names_one && is_wrong(&e) { Err(e) } else { Ok(()) }) {
                wrong += &format!("{}:{line}: {words:?}: {e}\n", page.path);
            }
        }
    }
    assert_eq!(wrong, "");
    assert!(seen > 100, "only {seen} commands were found");
}

/// The help of a command and of those below it, in the order of `readpath --help`.
fn help(command: &mut Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or("readpath").to_owned();
    let text = command.render_long_help().to_string();
    let lines: String = text.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    *page += &format!("\n## {name}\n\n```text\n{lines}```\n");
    command.get_subcommands_mut().for_each(|below| help(below, page));
}

#[test]
fn the_page_of_options_is_the_help() {
    let mut page = "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n# All options\n\nWhat `--help` says of each \
                    command. [Commands](commands.md) says what they are for.\n"
        .to_owned();
    let mut all = command().disable_help_subcommand(true).term_width(100);
    all.build();
    help(&mut all, &mut page);
    let path = root().join("docs/options.md");
    if env::var_os("READPATH_KEEP_REFERENCE").is_some() {
        fs::write(&path, page).expect("the page can be written");
        return;
    }
    let old = fs::read_to_string(&path).unwrap_or_default();
    let differs = old.lines().zip(page.lines()).find(|(old, new)| old != new);
    let keep = "READPATH_KEEP_REFERENCE=1 cargo test -p readpath book_tests";
    assert!(old == page, "docs/options.md is not as the command line is; write it anew with\n    {keep}\n{differs:#?}");
}
