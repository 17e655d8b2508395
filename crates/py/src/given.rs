// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments, as `python/readpath` passes them: dictionaries with these keys.

use anyhow::Result;
use pyo3::FromPyObject;
use readpath_session::inputs;
use std::path::Path;

/// A text that is given, or that a file has.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Source {
    /// Path of the file, or a name; with a text its name in errors.
    pub name: String,
    /// The text, if it is given.
    pub text: Option<String>,
}

impl Source {
    /// The text.
    pub fn read(&self) -> Result<String> {
        self.text.clone().map_or_else(|| inputs::text(Path::new(&self.name)), Ok)
    }
}
