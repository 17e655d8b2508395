// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be typed behind those commands of `readpath ubi` that look into an image.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// An image and the volume in it.
#[derive(Args, Debug)]
pub struct ImageInput {
    /// The image: what ubinize makes, or nanddump without spare areas
    #[arg(value_name = "IMAGE")]
    pub image: PathBuf,
    #[command(flatten)]
    pub sizes: ImageSizes,
}

/// What is to be known of an image; what is not given is found in the image.
#[derive(Args, Debug, Default)]
pub struct ImageSizes {
    /// Name or number of the volume, if there are several
    #[arg(long, value_name = "NAME|ID")]
    pub volume: Option<String>,
    /// Bytes of an erase block, also with K or M
    #[arg(long, value_name = "BYTES")]
    pub peb_size: Option<String>,
    /// Bytes of a page, also with K
    #[arg(long, value_name = "BYTES")]
    pub page_size: Option<String>,
    /// Bytes of a sub-page, also with K
    #[arg(long, value_name = "BYTES")]
    pub subpage_size: Option<String>,
    /// Erase blocks of the device; those beyond the image are erased [default: those of the image]
    #[arg(long, value_name = "N")]
    pub pebs: Option<u32>,
}

/// Images whose reads `reproduce ubi` makes.
#[derive(Args, Debug, Default)]
pub struct OwnImages {
    /// For ubi: image of raw NAND with a UBIFS volume, whose reads are made and replayed as well; repeatable
    #[arg(long = "image", value_name = "FILE")]
    pub images: Vec<PathBuf>,
    /// For ubi: erase blocks of the device that each image is of; those beyond an image are erased [default: those of the
    /// image]
    #[arg(long, value_name = "N", requires = "images")]
    pub pebs: Option<u32>,
    /// For ubi: the files of each image that a boot reads, a path a line [default: those below /etc, /lib/systemd and
    /// /usr/lib/systemd]
    #[arg(long, value_name = "FILE", requires = "images")]
    pub boot_list: Option<PathBuf>,
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
    /// Print attributes as well; JSON has them in any case
    #[arg(long, conflicts_with = "json")]
    pub ls: bool,
    /// Print paths as they are, byte for byte, each with a zero byte behind it
    #[arg(long, conflicts_with_all = ["ls", "json"])]
    pub print0: bool,
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
    /// Most findings to list
    #[arg(long, value_name = "N", default_value = "1000")]
    pub most: usize,
}

/// What a stream is the reads of.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum UbiWork {
    /// Mounting; PATH is /
    Mount,
    /// `find PATH`
    Find,
    /// `find PATH -ls`
    FindLs,
    /// `find PATH -type f`, then every file read from its beginning to its end
    Cat,
    /// The files read whose paths are the lines of the file PATH, which is not in the volume; such as a boot reads
    Read,
    /// `rm PATH`
    Rm,
}

/// Arguments of `ubi stream`.
#[derive(Args, Debug)]
pub struct UbiStream {
    /// What is done with the volume, freshly mounted and with cold caches
    #[arg(value_name = "WORK")]
    pub work: UbiWork,
    /// Path in the volume
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    #[command(flatten)]
    pub input: ImageInput,
    /// The file to write
    #[arg(long, visible_alias = "output", value_name = "FILE")]
    pub out: PathBuf,
    /// Mounted only to read
    #[arg(long)]
    pub read_only: bool,
    /// Mounted with the option bulk_read
    #[arg(long)]
    pub bulk_read: bool,
    /// Begin the stream with the reads of the attach and of the mount
    #[arg(long)]
    pub with_mount: bool,
}
