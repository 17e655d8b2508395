// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program `readpath`: what was typed, turned into calls of the libraries, and their results shown.
//!
//! Exit status: 0 done; 1 the run failed; 2 what was typed, or a file it names, is wrong; 130 interrupted.

mod args;
mod attacks;
mod bench;
mod cases;
mod compare;
mod device;
mod events;
mod files;
mod fit;
mod inputs;
mod live;
mod memory;
mod output;
mod policies;
mod power;
mod replay;
mod runs;
mod simulate;
mod stats;
mod trace;
mod ubi;
mod variants;

use args::{Cli, Command};
use clap::{CommandFactory, FromArgMatches};
use std::io::{self, Write};
use std::process::ExitCode;

/// A mistake of the user, as opposed to a failure of the run.
#[derive(Debug)]
pub struct Usage(pub anyhow::Error);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&output::describe(&self.0))
    }
}

impl std::error::Error for Usage {}

/// Exit status of a program that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

/// The user asked to stop.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted; nothing was written")
    }
}

impl std::error::Error for Interrupted {}

/// Marks an error as the user's.
pub fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    anyhow::Error::new(Usage(error.into()))
}

fn main() -> ExitCode {
    // Elsewhere --output is the file that is printed to.
    let command = Cli::command().mut_subcommand("replay", |c| c.mut_arg("out", |a| a.visible_alias("output")));
    let cli = Cli::from_arg_matches(&command.get_matches()).unwrap_or_else(|e| e.exit());
    let result = match cli.command {
        Command::Reproduce(args) => simulate::reproduce(&args),
        Command::Run(args) => simulate::run_file(&args),
        Command::Iozone(args) => simulate::iozone(&args),
        Command::Fio(args) => simulate::fio(&args),
        Command::Replay(args) => replay::main(&args),
        Command::Compare(args) => compare::main(&args),
        Command::Power(args) => power::main(&args),
        Command::Trace(command) => trace::main(&command),
        Command::Device(command) => device::main(&command),
        Command::Ubi(command) => ubi::main(&command),
        Command::Stats(args) => stats::main(&args),
        Command::Report(args) => simulate::report(&args),
        Command::Bench(args) => bench::main(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody may be listening; that is no reason to panic.
            writeln!(io::stderr(), "readpath: {}", output::describe(&error)).ok();
            ExitCode::from(match () {
                () if error.is::<Usage>() => 2,
                () if error.is::<Interrupted>() => INTERRUPTED,
                () => 1,
            })
        }
    }
}
