// SPDX-License-Identifier: MIT OR Apache-2.0
//! The built-in files, and the choice between one of them and a user's file.

use super::error::{ConfigFileError, nearest};
use std::io;
use std::path::{Path, PathBuf};

/// A file that is part of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Builtin {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its path in the source tree, for errors.
    pub file: &'static str,
    /// Its content.
    pub text: &'static str,
}

/// Reads a user's file. The caller decides whether and how.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

macro_rules! builtin {
    ($folder:literal, $name:literal) => {
        Builtin {
            name: $name,
            file: concat!($folder, "/", $name, ".toml"),
            text: include_str!(concat!("../../../../", $folder, "/", $name, ".toml")),
        }
    };
}

/// The device presets.
pub fn presets() -> &'static [Builtin] {
    &[
        builtin!("presets", "ufs21-64g"),
        builtin!("presets", "ufs31-128g"),
        builtin!("presets", "ufs31-256g"),
        builtin!("presets", "ufs40-512g"),
        builtin!("presets", "nvme-dramless-512g"),
        builtin!("presets", "nvme-dramless-1t"),
        builtin!("presets", "nvme-qlc-1t"),
        builtin!("presets", "nvme-2230-256g"),
        builtin!("presets", "mqsim-64g"),
    ]
}

/// The experiments with published results.
pub fn experiments() -> &'static [Builtin] {
    &[
        builtin!("experiments", "iozone"),
        builtin!("experiments", "tiobench"),
        builtin!("experiments", "appstart"),
        builtin!("experiments", "mixed"),
        builtin!("experiments", "chunk"),
        builtin!("experiments", "memory"),
        builtin!("experiments", "verification"),
        builtin!("experiments", "rivals"),
        builtin!("experiments", "rivals_apps"),
        builtin!("experiments", "zones_reads"),
        builtin!("experiments", "zones_fragmented"),
        builtin!("experiments", "zones_writes"),
        builtin!("experiments", "zones_apps"),
        builtin!("experiments", "zones_programs"),
        builtin!("experiments", "zones_ageing"),
        builtin!("experiments", "ufs31"),
        builtin!("experiments", "ufs40"),
        builtin!("experiments", "nvme_reads"),
        builtin!("experiments", "nvme_writes"),
        builtin!("experiments", "qlc_writes"),
        builtin!("experiments", "raspberry"),
        builtin!("experiments", "hmb"),
        builtin!("experiments", "hmb_map"),
        builtin!("experiments", "raspberry_memory"),
    ]
}

/// Whether a name is the path of a file.
pub(crate) fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// A path as text for which [`is_path`] holds: one without a folder names a file in the current folder.
pub(crate) fn path_text(path: PathBuf) -> String {
    let path = if path.components().count() > 1 { path } else { Path::new(".").join(path) };
    path.display().to_string()
}

/// Text and file name for a name or a path. `others` are names that only the caller knows; errors list them.
pub(crate) fn find(
    kind: &str,
    all: &[Builtin],
    others: &[&str],
    name_or_path: &str,
    read: ReadFile,
) -> Result<(String, String), ConfigFileError> {
    let error =
        |message| ConfigFileError { file: name_or_path.to_owned(), line: 0, column: 0, key: String::new(), message };
    if let Some(b) = all.iter().find(|b| b.name == name_or_path) {
        return Ok((b.text.to_owned(), b.file.to_owned()));
    }
    if is_path(name_or_path) {
        let text = read(Path::new(name_or_path)).map_err(|e| error(format!("cannot be read: {e}")))?;
        return Ok((text, name_or_path.to_owned()));
    }
    let names = all.iter().map(|b| b.name).chain(others.iter().copied());
    let hint = nearest(name_or_path, names.clone()).map(|n| format!("; did you mean {n}?")).unwrap_or_default();
    let names: Vec<&str> = names.collect();
    Err(error(format!(
        "there is no {kind} of this name{hint} (built in: {}; a file of your own is given as a path that ends in \
         .toml)",
        names.join(", ")
    )))
}
