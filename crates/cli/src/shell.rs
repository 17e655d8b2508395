// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath completions` and `readpath man`: the command line for a shell and for man(1). Both follow from its
//! definitions, so they cannot say anything else than `--help`.

use crate::args::{Completions, Man};
use crate::files::{NewFolder, begin_whole};
use crate::{completions, output};
use anyhow::Result;
use clap::Command;
use std::io::Write;
use std::path::PathBuf;

const EXIT_STATUS: &str = ".SH \"EXIT STATUS\"
0 done; 1 the run failed or its results are incomplete; 2 an argument or an input file is wrong; 4 damage was found;
130 interrupted.
";

pub fn completions(args: &Completions) -> Result<()> {
    let mut out = output::stdout();
    completions::script(&args.shell.to_string(), &mut out)?;
    Ok(out.flush()?)
}

pub fn man(args: &Man) -> Result<()> {
    // The page of a command has its help; a command `help` has nothing to add.
    let mut command = crate::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add_pages(&command, None, &mut pages)?;
    let _made = NewFolder::create(&args.out)?;
    // All are made before one takes its name.
    let parts = pages.iter().map(|(name, page)| begin_whole(&args.out.join(name), page));
    for part in parts.collect::<Result<Vec<_>>>()? {
        part.finish()?;
    }
    let mut out = output::stdout();
    writeln!(out, "{}: {} pages; man -l {} shows one", args.out.display(), pages.len(), first(args).display())?;
    Ok(out.flush()?)
}

fn first(args: &Man) -> PathBuf {
    args.out.join("readpath.1")
}

/// The page of a command and those of the commands below it, each with the name of its file.
fn add_pages(command: &Command, above: Option<&str>, pages: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let title = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let page = clap_mangen::Man::new(command.clone()).title(&title);
    let below: Vec<&Command> = command.get_subcommands().filter(|c| !c.is_hide_set()).collect();
    let name = page.get_filename();
    // No date: the same program makes the same pages. clap_mangen leaves out empty fields, which moves the fields
    // behind them.
    let mut text = format!(".TH {title} 1 \"\" \"readpath {}\" Readpath\n", env!("CARGO_PKG_VERSION")).into_bytes();
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if !below.is_empty() {
        page.render_subcommands_section(&mut text)?;
    }
    if command.get_after_help().is_some() || command.get_after_long_help().is_some() {
        page.render_extra_section(&mut text)?;
    }
    text.extend_from_slice(EXIT_STATUS.as_bytes());
    let near = above.into_iter().chain(below.iter().filter_map(|c| c.get_display_name()));
    let near: Vec<String> = near.map(|name| format!(".BR {} (1)", name.replace('-', "\\-"))).collect();
    if !near.is_empty() {
        writeln!(text, ".SH \"SEE ALSO\"\n{}", near.join(" ,\n"))?;
    }
    pages.push((name, text));
    below.into_iter().try_for_each(|c| add_pages(c, Some(&title), pages))
}
