// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of the `readpath ubi` commands that read an image.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// An image and the volume in it.
#[derive(Args, Debug)]
pub struct ImageInput {
    /// The image: made by ubinize or dumped by nanddump; plain, or packed with gzip, xz or zstd
    #[arg(value_name = "IMAGE")]
    pub image: PathBuf,
    /// Name or number of the volume, if the image has several
    #[arg(long, value_name = "NAME|ID")]
    pub volume: Option<String>,
    #[command(flatten)]
    pub sizes: ImageSizes,
}

/// Properties of an image; those not given are read from the image.
#[derive(Args, Debug, Default)]
pub struct ImageSizes {
    /// Erase block size in bytes, or with K or M
    #[arg(long, value_name = "BYTES")]
    pub peb_size: Option<String>,
    /// Page size in bytes, or with K
    #[arg(long, value_name = "BYTES")]
    pub page_size: Option<String>,
    /// Sub-page size in bytes, or with K
    #[arg(long, value_name = "BYTES")]
    pub subpage_size: Option<String>,
    /// Bytes of the spare area behind each page, if the image has spare areas
    #[arg(long, value_name = "BYTES")]
    pub oob: Option<String>,
    /// Number of erase blocks of the device; blocks beyond the image are erased [default: those of the image]
    #[arg(long, value_name = "N")]
    pub pebs: Option<u32>,
}

/// Images for `reproduce ubi`.
#[derive(Args, Debug, Default)]
pub struct OwnImages {
    /// For ubi: a raw NAND image with a UBIFS volume, whose reads are derived and replayed as well; repeatable
    #[arg(long = "image", value_name = "FILE")]
    pub images: Vec<PathBuf>,
    /// For ubi: number of erase blocks of the device; blocks beyond an image are erased [default: those of the image]
    #[arg(long, value_name = "N", requires = "images")]
    pub pebs: Option<u32>,
    /// For ubi: a list of the files that a boot reads, one path a line [default: all below /etc, /lib/systemd and
    /// /usr/lib/systemd]
    #[arg(long, value_name = "FILE", requires = "images")]
    pub boot_list: Option<PathBuf>,
    /// For ubi: what reads of streams and images cost: a kind of NAND, such as slc-2k or mlc-16k, or a file [default:
    /// the kind with such pages]
    #[arg(long, value_name = "NAME|FILE")]
    pub cost: Option<String>,
}

/// Arguments of `ubi attach`.
#[derive(Args, Debug)]
pub struct UbiAttach {
    /// The image: made by ubinize or dumped by nanddump; plain, or packed with gzip, xz or zstd
    #[arg(value_name = "IMAGE")]
    pub image: PathBuf,
    #[command(flatten)]
    pub sizes: ImageSizes,
    /// What reads cost: a kind of NAND, such as slc-2k or mlc-16k, or a file [default: the kind with such pages]
    #[arg(long, visible_alias = "nand", value_name = "NAME|FILE")]
    pub cost: Option<String>,
    /// Read all headers, even if there is a fastmap
    #[arg(long)]
    pub scan: bool,
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
    /// Print only what is called so; * stands for any bytes, ? for one, [a-z] for one of some, {a,b} for either, a
    /// leading ! for what is not called so; a backslash takes the next byte as it is, but \n, \r, \t and \b are control
    /// characters
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
    pub to: PathBuf,
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

/// The work that causes the reads of a stream.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum UbiWork {
    /// Mount; PATH is /
    Mount,
    /// `find PATH`
    Find,
    /// `find PATH -ls`
    FindLs,
    /// `find PATH -type f`, then read every file from start to end
    Cat,
    /// Read the files listed in PATH, a local file with one path a line, such as the files that a boot reads
    Read,
    /// `rm PATH`
    Rm,
}

/// Arguments of `ubi stream`.
#[derive(Args, Debug)]
pub struct UbiStream {
    /// What is done with the freshly mounted volume, with cold caches
    #[arg(value_name = "WORK")]
    pub work: UbiWork,
    /// Path in the volume
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    #[command(flatten)]
    pub input: ImageInput,
    /// The file to write; - is standard output
    #[arg(long, visible_alias = "output", value_name = "FILE")]
    pub out: PathBuf,
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
