// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `readpath ubi`.

use super::image::{UbiAttach, UbiCat, UbiCheck, UbiExtract, UbiFind, UbiLook, UbiStream};
use clap::{Args, Subcommand};
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

/// How read streams are read, and what reads cost.
#[derive(Args, Debug)]
pub struct StreamInput {
    /// NAND page size in bytes, or with K: a power of two [default: as in the streams, or else 16384 with a note]
    #[arg(long, value_name = "BYTES")]
    pub page_size: Option<String>,
    /// Erase block size in bytes; reads beyond it are then errors
    #[arg(long, value_name = "BYTES")]
    pub peb_size: Option<String>,
    /// Skip and count lines that cannot be read, instead of refusing the stream
    #[arg(long)]
    pub lenient: bool,
    /// What reads cost: a kind of NAND, such as slc-2k or mlc-16k, or a file [default: the kind with such pages]
    #[arg(long, value_name = "NAME|FILE")]
    pub cost: Option<String>,
}

/// Arguments of `ubi replay`.
#[derive(Args, Debug)]
#[command(after_help = crate::ubi::caches())]
pub struct UbiReplay {
    /// The read streams
    #[arg(required = true, value_name = "TRACE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub input: StreamInput,
    /// Caches to compare, separated by commas [default: none,nand-page,one-line,peb-hash,lru,opt]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub cache: Vec<String>,
    /// Cache sizes in lines, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "61")]
    pub lines: Vec<u32>,
    /// Changes of the memory budget: a file of lines READ,BYTES
    #[arg(long, value_name = "FILE")]
    pub pressure: Option<PathBuf>,
    /// Print the result document as JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Write the rows of the result document as CSV; - for standard output, instead of a table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Folder for result.json and report.html
    #[arg(long, visible_alias = "output", value_name = "DIR")]
    pub out: Option<PathBuf>,
}
