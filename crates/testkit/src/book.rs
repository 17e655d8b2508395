// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands that the book and the other Markdown files show, so that tests can parse and run every one of them.
//!
//! A block that is fenced without a language, or as `sh` or `console`, has commands if a line begins with a prompt, or
//! with `readpath` or `make`. Behind a prompt, what follows is output. `text` marks blocks that only look like
//! commands.

use std::fs;
use std::path::{Path, PathBuf};

/// A Markdown file.
pub struct Page {
    /// Path from the root of the repository.
    pub path: String,
    /// The commands of each fenced block that has any.
    pub blocks: Vec<Vec<Shown>>,
    /// Inline code that begins with `readpath`, with its line.
    pub inline: Vec<(usize, String)>,
}

/// A command as a page shows it.
pub struct Shown {
    /// Its line in the page.
    pub line: usize,
    /// What a shell gets.
    pub text: String,
    /// Lines shown below it, if it has a prompt.
    pub output: Vec<String>,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// README, the chapters in the order of the book, and what developers read. The page of options is made of the program.
pub fn pages() -> Vec<Page> {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("SUMMARY.md");
    let chapters = summary.lines().filter_map(|line| line.split_once("](")?.1.strip_suffix(')'));
    let chapters = chapters.filter(|name| *name != "options.md");
    let files = ["README.md".to_owned()].into_iter().chain(chapters.map(|name| format!("docs/{name}")));
    files.chain(["ARCHITECTURE.md".to_owned(), "CONTRIBUTING.md".to_owned()]).map(page).collect()
}

fn page(path: String) -> Page {
    let text = fs::read_to_string(root().join(&path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    let (mut blocks, mut inline) = (Vec::new(), Vec::new());
    let mut lines = text.lines().enumerate().map(|(n, line)| (n + 1, line));
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            let code = line.split('`').skip(1).step_by(2).filter(|code| code.starts_with("readpath "));
            inline.extend(code.map(|code| (number, code.to_owned())));
            continue;
        };
        let block: Vec<_> = lines.by_ref().take_while(|(_, line)| !line.starts_with("```")).collect();
        if ["", "sh", "console"].contains(&language) {
            blocks.extend(Some(commands(&block)).filter(|commands| !commands.is_empty()));
        }
    }
    Page { path, blocks, inline }
}

/// The command behind a prompt; one is PowerShell's.
fn prompted(line: &str) -> Option<&str> {
    line.strip_prefix("$ ").or_else(|| line.strip_prefix("> ").filter(|rest| rest.starts_with("readpath ")))
}

fn commands(block: &[(usize, &str)]) -> Vec<Shown> {
    let transcript = block.iter().any(|(_, line)| prompted(line).is_some());
    let begins = |(_, line): &(usize, &str)| line.starts_with("readpath ") || line.starts_with("make ");
    if !transcript && !block.iter().any(begins) {
        return Vec::new();
    }
    if block[0].1.starts_with("#!") {
        let text = block.iter().map(|(_, line)| format!("{line}\n")).collect();
        return vec![Shown { line: block[0].0, text, output: Vec::new() }];
    }
    let mut shown: Vec<Shown> = Vec::new();
    let mut open = false;
    for &(line, text) in block {
        let command = if transcript { prompted(text) } else { Some(text).filter(|text| !text.is_empty()) };
        match (command, shown.last_mut()) {
            (_, Some(last)) if open => last.text += &format!("\n{text}"),
            (Some(text), _) => shown.push(Shown { line, text: text.to_owned(), output: Vec::new() }),
            (None, Some(last)) if transcript => last.output.push(text.to_owned()),
            (None, _) => {}
        }
        open = shown.last().is_some_and(|last| last.output.is_empty() && is_open(&last.text));
    }
    for command in &mut shown {
        while command.output.last().is_some_and(String::is_empty) {
            command.output.pop();
        }
    }
    shown
}

/// Whether the next line belongs to it.
fn is_open(command: &str) -> bool {
    command.ends_with('\\') || (command.starts_with("for ") && !command.ends_with("done"))
}

/// The words of each program that a shell would start for a command. A variable is `1`; redirections are left out.
pub fn programs(command: &str) -> Vec<Vec<String>> {
    let mut programs: Vec<Vec<String>> = vec![Vec::new()];
    let mut letters = command.chars().peekable();
    let (mut word, mut quote, mut redirected) = (None::<String>, None, false);
    loop {
        let letter = letters.next();
        match (letter, quote) {
            (Some(c), Some(q)) if c == q => quote = None,
            (Some('$'), None | Some('"')) => {
                if letters.next_if_eq(&'{').is_some() {
                    while letters.next_if(|c| *c != '}').is_some() {}
                    letters.next();
                }
                while letters.next_if(|c| c.is_ascii_alphanumeric() || *c == '_').is_some() {}
                word.get_or_insert_default().push('1');
            }
            (Some(c), Some(_)) => word.get_or_insert_default().push(c),
            (Some(c @ ('"' | '\'')), None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some('\\'), None) => {
                if let Some(c) = letters.next().filter(|c| *c != '\n') {
                    word.get_or_insert_default().push(c);
                }
            }
            (Some('#'), None) if word.is_none() => while letters.next_if(|c| *c != '\n').is_some() {},
            (None | Some(' ' | '\n' | '|' | '&' | ';' | '<' | '>'), None) => {
                let last = programs.last_mut().expect("at least one");
                let keyword = last.is_empty() && word.as_deref() == Some("do");
                last.extend(word.take().filter(|_| !keyword && !redirected));
                redirected &= letter == Some(' ');
                match letter {
                    None => break,
                    Some('<' | '>') => redirected = true,
                    Some(' ') => {}
                    Some(_) => programs.push(Vec::new()),
                }
            }
            (Some(c), None) => word.get_or_insert_default().push(c),
            (None, Some(q)) => panic!("{command}: {q} is open"),
        }
    }
    programs.retain(|program| !program.is_empty());
    programs
}
