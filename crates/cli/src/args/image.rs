// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of the `readpath ubi` commands that read an image.

use clap::Args;
use readpath_session::args;
use readpath_session::args::{ImageInput, UbiWork};
use std::path::PathBuf;

/// Arguments of `ubi attach`.
#[derive(Args, Debug)]
// The options within have this name already.
#[group(skip)]
pub struct UbiAttach {
    #[command(flatten)]
    pub of: args::UbiAttach,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `ubi ls` and `ubi stat`.
#[derive(Args, Debug)]
pub struct UbiLook {
    #[command(flatten)]
    pub input: ImageInput,
    /// Path in the volume
    #[arg(default_value = "/", value_name = "PATH")]
    pub path: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `ubi find`.
#[derive(Args, Debug)]
pub struct UbiFind {
    #[command(flatten)]
    pub look: UbiLook,
    /// Print attributes as well; JSON always has them
    #[arg(long, conflicts_with = "json")]
    pub ls: bool,
    /// Print raw path bytes, each path followed by a zero byte
    #[arg(long, conflicts_with_all = ["ls", "json"])]
    pub print0: bool,
    /// Print only names that match: * is any bytes, ? one byte, [a-z] one byte of a range, {a,b} either, and a leading
    /// ! negates; a backslash takes the next byte as it is, but \n, \r, \t and \b are control characters
    #[arg(long, value_name = "GLOB")]
    pub name: Option<String>,
}

/// Arguments of `ubi extract`.
#[derive(Args, Debug)]
pub struct UbiExtract {
    #[command(flatten)]
    pub input: ImageInput,
    /// Path in the volume
    #[arg(value_name = "PATH", default_value = "/")]
    pub path: PathBuf,
    /// The directory to make; it must not be there yet
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Arguments of `ubi cat`.
#[derive(Args, Debug)]
pub struct UbiCat {
    #[command(flatten)]
    pub input: ImageInput,
    /// Path of a file in the volume
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
}

/// Arguments of `ubi check`.
#[derive(Args, Debug)]
pub struct UbiCheck {
    #[command(flatten)]
    pub input: ImageInput,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// List at most N findings
    #[arg(long, value_name = "N", default_value = "1000")]
    pub most: usize,
}

/// Arguments of `ubi stream`.
#[derive(Args, Debug)]
pub struct UbiStream {
    #[command(flatten)]
    pub input: ImageInput,
    /// What is done with the freshly mounted volume, with cold caches
    #[arg(value_name = "WORK")]
    pub work: UbiWork,
    /// Path in the volume
    #[arg(value_name = "PATH", default_value = "/")]
    pub path: PathBuf,
    /// The file to write; - is standard output
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
    /// Mount read-only
    #[arg(long)]
    pub read_only: bool,
    /// Mount with the option bulk_read
    #[arg(long)]
    pub bulk_read: bool,
    /// Begin the stream with the reads of attach and mount
    #[arg(long)]
    pub with_mount: bool,
}
