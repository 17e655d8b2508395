// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `readpath crash`.

use clap::{Args, ValueEnum};
use readpath_crash::Budget;
use std::path::PathBuf;
use std::time::Duration;

/// Kinds of states.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrashStates {
    /// What any disk may leave that keeps the rules of flush and FUA
    Permitted,
    /// What this device leaves when power goes after each of its flash operations, and again while it recovers
    Device,
}

/// Arguments of `crash`.
#[derive(Args, Debug)]
pub struct Crash {
    /// The recording of `readpath serve --record FILE --data`
    #[arg(value_name = "RECORDING")]
    pub recording: PathBuf,
    /// The image as it was when the recording began; it stays as it is
    #[arg(long, value_name = "IMAGE")]
    pub image: PathBuf,
    /// Which states
    #[arg(long, value_enum, value_name = "KIND", default_value = "permitted")]
    pub states: CrashStates,
    /// Try this one only, and show what CHECK says
    #[arg(long, value_name = "NAME")]
    pub state: Option<String>,
    /// Look at so many states, or for so long, such as 10m; equal states are tried once
    #[arg(long, value_name = "N|TIME", default_value = "1000", value_parser = budget)]
    pub budget: Budget,
    /// End CHECK after this time; it has not survived then
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub timeout: Duration,
    /// States at a time [default: as many as processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Seed of the random states
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Keep outcomes in this folder, and go on with those that are there
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Print the result document as JSON
    #[arg(long)]
    pub json: bool,
    /// Folder for result.json and report.html
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The program that checks a state, and its arguments: exit status 0 means that it survived. {uri} stands for the
    /// NBD address of the state and {socket} for its socket, which are also in $URI and $SOCKET; $MARK has the words of
    /// the last `readpath ctl SOCKET mark WORDS` before power goes
    #[arg(last = true, required = true, value_name = "CHECK")]
    pub check: Vec<String>,
}

fn budget(text: &str) -> Result<Budget, String> {
    match text.parse() {
        Ok(0) => Err("at least one state must be looked at".to_owned()),
        Ok(states) => Ok(Budget::States(states)),
        Err(_) => time(text).map(Budget::Time),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let minutes = text.strip_suffix('m').and_then(|minutes| minutes.parse::<u32>().ok());
    let time = match minutes {
        Some(minutes) => Duration::from_secs(u64::from(minutes) * 60),
        None => Duration::from_nanos(readpath_session::config::time(text)?.0),
    };
    if time.is_zero() { Err("must be longer".to_owned()) } else { Ok(time) }
}
