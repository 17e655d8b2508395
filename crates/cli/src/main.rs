// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program `readpath`: what was typed, turned into calls of the libraries, and their results shown.
//!
//! Exit status: 0 done; 1 the run failed; 2 what was typed, or a file it names, is wrong; 4 an
//! image is damaged; 130 interrupted.

mod args;
mod ask;
mod attach;
#[cfg(test)]
mod book_tests;
mod break_even;
mod compare;
mod completions;
mod crash;
mod dev;
mod device;
mod doctor;
mod dry_run;
mod examples;
mod experiment;
mod fit;
mod help;
mod hmb;
mod image;
mod live;
mod output;
mod policies;
mod power;
mod probe;
mod progress;
mod recording;
mod renamed;
mod replay;
mod report;
mod reproduce;
mod rpmb;
mod serve;
mod shell;
mod simulate;
mod stats;
mod stop;
mod sweep;
mod trace;
mod ubi;

use args::{Cli, Command};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use clap_complete::CompleteEnv;
use readpath_session::failure::usage;
use readpath_session::{cases, failure, files, inputs, presets, traces, units};
use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    CompleteEnv::with_factory(|| completions::completing(command())).var(completions::ASKED).complete();
    let typed = command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match typed {
        Ok(cli) => cli,
        Err(error) => {
            let words: Vec<String> = env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
            match renamed::instead(&command(), &words, &error).filter(|_| error.use_stderr()) {
                Some(message) => {
                    writeln!(io::stderr(), "{message}").ok();
                    return ExitCode::from(2);
                }
                None => suggest(error).exit(),
            }
        }
    };
    let result = match cli.command {
        Command::Reproduce(args) => reproduce::main(&args),
        Command::Iozone(args) => simulate::iozone(&args),
        Command::Fio(args) => simulate::fio(&args),
        Command::Replay(args) => replay::main(&args),
        Command::Hmb(args) => hmb::main(&args),
        Command::Compare(args) => compare::main(&args),
        Command::BreakEven(args) => break_even::main(&args),
        Command::Sweep(args) => sweep::main(&args),
        Command::Power(args) => power::main(&args),
        Command::Image(command) => image::main(&command),
        Command::Serve(args) => serve::main(&args),
        Command::Crash(args) => crash::main(&args),
        Command::Ctl(args) => serve::ctl(&args),
        Command::Attach(args) => attach::main(&args),
        Command::Trace(command) => trace::main(&command),
        Command::Device(command) => device::main(&command),
        Command::Ubi(command) => ubi::main(&command),
        Command::Stats(args) => stats::main(&args),
        Command::Report(args) => report::main(&args),
        Command::Examples(args) => examples::main(&args),
        Command::Doctor(args) => doctor::main(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
        Command::Dev(command) => dev::main(&command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if failure::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if failure::status(&error) == 0 => {
            writeln!(io::stdout(), "{error}").ok();
            ExitCode::SUCCESS
        }
        Err(error) => {
            // Standard error may be closed; that is no reason to panic.
            writeln!(io::stderr(), "readpath: {}", failure::describe(&error)).ok();
            ExitCode::from(failure::status(&error))
        }
    }
}

/// The command line, with what its definitions cannot say.
fn command() -> clap::Command {
    help::arranged(Cli::command())
        .mut_subcommand("dev", |c| c.mut_subcommand("bench", |c| c.after_help(dev::bench::list())))
}

/// Says what number would be right, and which command was meant where its letters were mixed up: clap knows only of
/// likeness.
fn suggest(mut error: clap::Error) -> clap::Error {
    let expected = match error.source().map(ToString::to_string).as_deref() {
        Some("invalid digit found in string") => Some("expected a whole number, 0 or more"),
        Some("invalid float literal") => Some("expected a number"),
        _ => None,
    };
    if let (Some(expected), Some(ContextValue::String(option)), Some(ContextValue::String(value))) =
        (expected, error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    {
        let message =
            format!("invalid value '{value}' for '{option}': {expected}\n\nFor more information, try '--help'.\n");
        return clap::Error::raw(ErrorKind::ValueValidation, message);
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let mixed_up = |c: &&clap::Command| strsim::osa_distance(typed, c.get_name()) == 1;
    let command = Cli::command();
    let near = command.get_subcommands().find(mixed_up).map(|c| c.get_name().to_owned());
    if let (Some(near), None) = (near, error.get(ContextKind::SuggestedSubcommand)) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near]));
    }
    error
}
