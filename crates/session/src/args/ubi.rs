// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images of raw NAND, and streams of reads on it.

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
    /// Its sizes.
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

/// An image to attach, and what its reads cost.
#[derive(Args, Debug)]
pub struct UbiAttach {
    /// The image: made by ubinize or dumped by nanddump; plain, or packed with gzip, xz or zstd
    #[arg(value_name = "IMAGE")]
    pub image: PathBuf,
    /// Its sizes.
    #[command(flatten)]
    pub sizes: ImageSizes,
    /// What reads cost: a kind of NAND, such as slc-2k or mlc-16k, or a file [default: the kind with such pages]
    #[arg(long, value_name = "NAME|FILE")]
    pub cost: Option<String>,
    /// Read all headers, even if there is a fastmap
    #[arg(long)]
    pub scan: bool,
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

/// Read streams, and the caches through which they are replayed.
#[derive(Args, Debug)]
pub struct UbiReplay {
    /// The read streams
    #[arg(required = true, value_name = "TRACE")]
    pub files: Vec<PathBuf>,
    /// How they are read, and what reads cost.
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
}
