// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `readpath ubi`.

use super::image::{UbiAttach, UbiCat, UbiCheck, UbiExtract, UbiFind, UbiLook, UbiStream};
use clap::{Args, Subcommand};
use readpath_session::args;
use std::path::PathBuf;

/// Commands about raw NAND and UBI.
#[derive(Subcommand, Debug)]
pub enum UbiCommand {
    /// Replay UBI read streams through read caches
    Replay(UbiReplay),
    /// Show what UBI finds in an image and how long its attach takes
    Attach(UbiAttach),
    /// List a directory of a UBIFS volume in an image
    Ls(UbiLook),
    /// Print a file of a UBIFS volume in an image
    Cat(UbiCat),
    /// List everything below a directory of a UBIFS volume in an image
    Find(UbiFind),
    /// Write files and directories of a UBIFS volume in an image below a new directory
    Extract(UbiExtract),
    /// Show the attributes of a file of a UBIFS volume in an image
    Stat(UbiLook),
    /// Check a UBIFS volume in an image and name every error
    Check(UbiCheck),
    /// Write the flash reads that work on a freshly mounted UBIFS volume causes
    Stream(UbiStream),
}

/// Arguments of `ubi replay`.
#[derive(Args, Debug)]
#[command(after_help = readpath_session::ubi::caches())]
// The options within have this name already.
#[group(skip)]
pub struct UbiReplay {
    #[command(flatten)]
    pub of: args::UbiReplay,
    /// Print the result document as JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Write the rows of the result document as CSV; - for standard output, instead of a table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Folder for result.json and report.html
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
