// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi`: raw NAND and UBI. Each command has a file.

mod replay;
mod reproduce;
mod streams;

pub use replay::caches;
pub use reproduce::{EXPERIMENT, reproduce};

use crate::args::UbiCommand;
use anyhow::Result;

/// `readpath ubi`.
pub fn main(command: &UbiCommand) -> Result<()> {
    match command {
        UbiCommand::Replay(args) => replay::main(args),
    }
}
