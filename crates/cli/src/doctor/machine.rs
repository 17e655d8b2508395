// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the machine has that simulations take: processors, memory, disk, huge pages.

use crate::units;
use readpath_session::memory;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

pub struct Machine {
    processors: usize,
    /// Bytes that this process can have.
    memory: Option<u64>,
    /// Bytes free on the disk of the current folder.
    disk: Option<u64>,
    folder: PathBuf,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    huge_pages: Option<String>,
}

impl Machine {
    pub fn look() -> Self {
        let statvfs = rustix::fs::statvfs(".").ok();
        Machine {
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory: memory::available(),
            disk: statvfs.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
            folder: std::env::current_dir().unwrap_or_default(),
            huge_pages: fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
                .ok()
                .as_deref()
                .and_then(chosen),
        }
    }

    /// Properties of the machine, and their effect on simulations.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let known = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".into(), units::bytes);
        let huge = match self.huge_pages.as_deref() {
            Some("always" | "madvise") => "used for the tables of large devices",
            Some(_) => "slower on large devices; echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
            None => "this kernel has none, or does not say; slower on large devices",
        };
        let rows = [
            ("processors", self.processors.to_string(), "one run on each"),
            (
                "free memory",
                known(self.memory),
                "150 MiB for a run on a device of 64 GiB that is full; others in proportion",
            ),
            ("free disk", known(self.disk), "device images are sparse: as much as is written to them"),
            ("huge pages", self.huge_pages.clone().unwrap_or_else(|| "unknown".into()), huge),
        ];
        rows.map(|(what, value, meaning)| vec![what.to_owned(), value, meaning.to_owned()]).to_vec()
    }

    pub fn json(&self) -> Value {
        json!({
            "processors": self.processors,
            "available_memory_bytes": self.memory,
            "folder": self.folder.to_string_lossy(),
            "free_disk_bytes": self.disk,
            "transparent_huge_pages": self.huge_pages,
        })
    }
}

/// The word in brackets.
fn chosen(text: &str) -> Option<String> {
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_in_brackets() {
        assert_eq!(chosen("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(chosen("always madvise never\n"), None);
    }
}
