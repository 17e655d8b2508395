// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be typed behind `readpath ubi`.

use super::image::{UbiCat, UbiCheck, UbiFind, UbiLook, UbiStream};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Commands about raw NAND and UBI.
#[derive(Subcommand, Debug)]
pub enum UbiCommand {
    /// Replay recorded read streams of UBI through read caches
    Replay(UbiReplay),
    /// Show what UBI finds in an image, and how long an attach takes
    Attach(crate::ubi::UbiAttach),
    /// List a directory of a UBIFS volume in an image
    Ls(UbiLook),
    /// Print a file of a UBIFS volume in an image
    Cat(UbiCat),
    /// List everything below a directory of a UBIFS volume in an image
    Find(UbiFind),
    /// Show what a UBIFS volume in an image says of a file
    Stat(UbiLook),
    /// Check a UBIFS volume in an image and name everything that is wrong
    Check(UbiCheck),
    /// Write the stream of flash reads that work on a freshly mounted UBIFS volume causes
    Stream(UbiStream),
}

/// How read streams are read, and what reads cost.
#[derive(Args, Debug)]
pub struct StreamInput {
    /// Bytes of a NAND page: a power of two, also with K [default: what the streams say, or else 16384, and a note tells so]
    #[arg(long, value_name = "BYTES")]
    pub page_size: Option<String>,
    /// Bytes of an erase block; reads beyond it are then errors
    #[arg(long, value_name = "BYTES")]
    pub peb_size: Option<String>,
    /// Leave out lines that cannot be read, and count them, instead of refusing the stream
    #[arg(long)]
    pub lenient: bool,
    /// What reads cost: a preset, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "mlc-16k")]
    pub cost: String,
}

/// Arguments of `ubi replay`.
#[derive(Args, Debug)]
#[command(after_help = crate::ubi::caches())]
pub struct UbiReplay {
    /// The streams; each is a case of its own
    #[arg(required = true, value_name = "TRACE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub input: StreamInput,
    /// Caches to compare, with commas between them, or repeated [default: none,nand-page,one-line,peb-hash,lru,opt]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub cache: Vec<String>,
    /// Lines of the caches, with commas between several
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "61")]
    pub lines: Vec<u32>,
    /// Changes of the memory budget: lines `read,bytes`
    #[arg(long, value_name = "FILE")]
    pub pressure: Option<PathBuf>,
    /// Print the result document as JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Folder for result.json and report.html
    #[arg(long, visible_alias = "output", value_name = "DIR")]
    pub out: Option<PathBuf>,
}
