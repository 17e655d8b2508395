// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of keys from outside a file: the command line, or a variant of an experiment.

use super::error::ConfigFileError;
use super::tree::{At, Value, parse_value};

/// A value for a dotted key of a device file, and its source.
#[derive(Clone, Debug)]
pub struct Override {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) at: At,
}

impl Override {
    /// Sets `key` to the value `text`, in TOML or as a bare word. `origin` is its source, for errors (`--set`).
    ///
    /// # Errors
    /// When the text is neither.
    pub fn new(key: &str, text: &str, origin: &str) -> Result<Self, ConfigFileError> {
        let at = At::outside(origin);
        let text = text.trim();
        let value = parse_value(text, &at).map_err(|e| at.error(key, format!("{text:?} is not a value: {e}")))?;
        Ok(Override { key: key.to_owned(), value, at })
    }

    /// From an argument of the form `key=value`.
    ///
    /// # Errors
    /// When there is no `=`, or as [`Override::new`].
    pub fn from_argument(argument: &str, origin: &str) -> Result<Self, ConfigFileError> {
        let at = At::outside(origin);
        let Some((key, text)) = argument.split_once('=') else {
            return Err(at.error("", format!("{argument:?} has no '='; expected key=value, map_cache.size_kib=2048")));
        };
        Override::new(key.trim(), text, origin)
    }

    /// The key.
    pub fn key(&self) -> &str {
        &self.key
    }
}
