// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath dev`: tools for work on Readpath itself.

pub mod bench;
mod parity;
mod upius;

use crate::args::DevCommand;
use anyhow::Result;

pub fn main(command: &DevCommand) -> Result<()> {
    match command {
        DevCommand::Bench(args) => bench::main(args),
        DevCommand::Upius { file } => upius::main(file),
        DevCommand::Parity { file, device, set, hpb } => parity::main(file, device, set, hpb),
    }
}
