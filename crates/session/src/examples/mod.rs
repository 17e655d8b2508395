// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small inputs to try the program with: jobs of fio, a script, and files that are made when they are asked for. All
//! are synthetic, and the same on every machine.

mod rootfs;

use crate::failure::usage;
use crate::files::{NewFolder, write_whole};
use anyhow::{Result, anyhow};
use readpath_workload::trace::{CsvWriter, Request, example};
use std::fs;
use std::path::{Path, PathBuf};

/// An input to try.
pub struct Example {
    /// Name of its file.
    pub name: &'static str,
    /// What it is, and a command that takes it.
    pub about: &'static str,
    /// Its bytes.
    pub make: fn() -> Vec<u8>,
}

/// A file of `docs/examples`.
macro_rules! file {
    ($name:literal, $about:literal) => {
        Example {
            name: $name,
            about: $about,
            make: || include_bytes!(concat!("../../../../docs/examples/", $name)).to_vec(),
        }
    };
}

/// All of them.
pub const ALL: [Example; 8] = [
    file!("phone.fio", "a phone's flash by queue depth and direction: readpath fio DIR/phone.fio"),
    file!("database.fio", "random pages and a log: readpath fio DIR/database.fio --device nvme-dramless-512g"),
    file!("ssd.fio", "random reads over 64 GiB: readpath fio DIR/ssd.fio --device nvme-dramless-512g"),
    file!("randread.fio", "random reads over 8 GiB, for comparisons: readpath compare DIR/randread.fio"),
    Example {
        name: "phone.csv",
        about: "a block trace like a phone's: readpath replay DIR/phone.csv --device ufs31-128g",
        make: || table(&example::phone()),
    },
    Example {
        name: "server.csv",
        about: "a block trace like a database server's: readpath hmb DIR/server.csv --device nvme-dramless-512g",
        make: || table(&example::server()),
    },
    Example {
        name: "rootfs.ubi",
        about: "a UBI image of NAND with a UBIFS volume: readpath ubi find --ls DIR/rootfs.ubi /usr",
        make: rootfs::image,
    },
    file!("sqlite.sh", "a power cut under SQLite, without root: readpath serve IMAGE --run 'sh DIR/sqlite.sh'"),
];

/// Writes them all into `dir`, which is made; their paths.
///
/// # Errors
/// A file of a name is there and has other contents, or `dir` cannot be written.
pub fn write(dir: &Path) -> Result<Vec<PathBuf>> {
    let files: Vec<_> = ALL.iter().map(|example| (dir.join(example.name), (example.make)())).collect();
    if let Some((path, _)) = files.iter().find(|(path, made)| fs::read(path).is_ok_and(|there| there != *made)) {
        return Err(usage(anyhow!("{}: has other contents; give another folder", path.display())));
    }
    let _made = NewFolder::create(dir)?;
    files.iter().try_for_each(|(path, made)| write_whole(path, made))?;
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

fn table(requests: &[Request]) -> Vec<u8> {
    let mut out = CsvWriter::new("", Vec::new()).expect("memory takes it");
    requests.iter().try_for_each(|request| out.write(request)).expect("memory takes it");
    out.finish().expect("memory takes it")
}
