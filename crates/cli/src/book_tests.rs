// SPDX-License-Identifier: MIT OR Apache-2.0
//! The book and the command line agree: every command that is shown can be typed.

use crate::args::Cli;
use crate::command;
use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use readpath_testkit::book::{Shown, pages, programs};

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
