// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi`: raw NAND and UBI. Each command has a file.

mod attach;
mod check;
mod extract;
mod image;
mod names;
mod replay;
mod reproduce;
mod stream;

pub use reproduce::{begin, write_and_show};

use crate::args::UbiCommand;
use crate::stop::{self, Written};
use anyhow::Result;

pub fn main(command: &UbiCommand) -> Result<()> {
    let writes = matches!(command, UbiCommand::Replay(_) | UbiCommand::Stream(_));
    stop::at_once(if writes { Written::Nothing } else { Written::Printed })?;
    match command {
        UbiCommand::Replay(args) => replay::main(args),
        UbiCommand::Attach(args) => attach::main(args),
        UbiCommand::Ls(args) => image::ls(args),
        UbiCommand::Cat(args) => image::cat(args),
        UbiCommand::Find(args) => image::find(args),
        UbiCommand::Extract(args) => extract::main(args),
        UbiCommand::Stat(args) => image::stat(args),
        UbiCommand::Check(args) => check::check(args),
        UbiCommand::Stream(args) => stream::main(args),
    }
}
