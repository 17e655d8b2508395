// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that a boot reads, without booting: those of a list, or else the configuration and services of a Debian.

use crate::inputs::read_text;
use crate::usage;
use anyhow::{Context, Result, anyhow};
use readpath_results::Input;
use readpath_ubifs::{Entry, FileType, Lebs, Ubifs, UbifsError};
use std::collections::BTreeSet;
use std::path::Path;

/// Folders whose files are read without a list.
pub const FOLDERS: [&str; 3] = ["/etc", "/lib/systemd", "/usr/lib/systemd"];
/// Longest path that a program can open on Linux (`PATH_MAX`, with the zero byte behind it).
const LONGEST_PATH: usize = 4095;

/// A list of the files that a boot reads.
pub struct BootList {
    /// Their paths.
    pub paths: Vec<Vec<u8>>,
    /// The list as an input of a document.
    pub input: Input,
}

impl BootList {
    /// Reads a list.
    ///
    /// # Errors
    /// When it cannot be read or is empty.
    pub fn read(path: &Path) -> Result<BootList> {
        let name = path.display().to_string();
        let text = read_text(path).with_context(|| format!("--boot-list: {name}: cannot be read")).map_err(usage)?;
        let paths = lines(&text);
        if paths.is_empty() {
            return Err(usage(anyhow!("--boot-list: {name}: has no path; one on each line is expected")));
        }
        Ok(BootList { paths, input: Input::of_text(name, &text) })
    }
}

/// The paths of a text, one a line; empty lines are skipped.
pub fn lines(text: &str) -> Vec<Vec<u8>> {
    text.lines().filter(|line| !line.is_empty()).map(|line| line.as_bytes().to_vec()).collect()
}

/// Regular files below [`FOLDERS`], in the order of a walk that takes names in their order. Symbolic links to files
/// count, and folders on the way to a folder may be links. A folder that has two names is gone through once.
pub fn files<L: Lebs>(fs: &mut Ubifs<L>) -> Result<Vec<Vec<u8>>, UbifsError> {
    let (mut files, mut visited) = (Vec::new(), BTreeSet::new());
    // Entries that are left, the next one last.
    let mut todo: Vec<(Vec<u8>, Option<Entry>)> = FOLDERS.iter().rev().map(|f| (f.as_bytes().to_vec(), None)).collect();
    while let Some((path, entry)) = todo.pop() {
        let kind = entry.as_ref().map(|entry| entry.file_type());
        let dir = match (kind, entry) {
            (Some(Some(FileType::Regular)), _) => {
                files.push(path);
                continue;
            }
            (Some(Some(FileType::Directory)), Some(entry)) => entry.target as u32,
            (None | Some(Some(FileType::Symlink)), _) => match fs.resolve(&path, true) {
                Ok(inode) if kind.is_none() && inode.file_type() == Some(FileType::Directory) => inode.ino,
                Ok(inode) => {
                    if kind.is_some() && inode.file_type() == Some(FileType::Regular) {
                        files.push(path);
                    }
                    continue;
                }
                // There is no such folder, or a link leads nowhere.
                Err(UbifsError::Path { .. }) => continue,
                Err(e) => return Err(e),
            },
            _ => continue,
        };
        if !visited.insert(dir) {
            continue;
        }
        let mut entries = fs.read_dir(dir)?;
        entries.sort_by(|a, b| b.name.cmp(&a.name));
        let below = entries.into_iter().map(|entry| ([&path[..], b"/", &entry.name].concat(), Some(entry)));
        todo.extend(below.filter(|(path, _)| path.len() <= LONGEST_PATH));
    }
    Ok(files)
}
