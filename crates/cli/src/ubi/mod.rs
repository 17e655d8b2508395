// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi`: raw NAND and UBI. Each command has a file.

mod replay;
mod streams;

pub use replay::caches;

use crate::args::UbiCommand;
use anyhow::Result;

/// `readpath ubi`.
pub fn main(command: &UbiCommand) -> Result<()> {
    match command {
        UbiCommand::Replay(args) => replay::main(args),
    }
}
