// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of configuration: values, and places of errors. They run nothing.

mod booster;
mod device;
mod entries;
mod experiment;
mod ftl;
mod map_memory;
mod reference;
mod study;

use super::{ConfigFileError, DevicePreset};

/// Reads no file.
fn no_file(_: &std::path::Path) -> std::io::Result<String> {
    Err(std::io::Error::new(std::io::ErrorKind::NotFound, "no such file"))
}

/// The device that the echo of another describes.
fn back(preset: &DevicePreset) -> DevicePreset {
    let text = preset.echo().to_toml();
    crate::device::parse(&text, "echo.toml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The device of a result document.
fn from_json(document: &serde_json::Value) -> DevicePreset {
    let text = toml::to_string(document).expect("a document has no null");
    crate::device::parse(&text, "document.toml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// `text` with the first `old` replaced, which must be there.
fn replaced(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old:?} is not in the file");
    text.replacen(old, new, 1)
}

/// Line of the first `part`, from 1.
fn line_of(text: &str, part: &str) -> usize {
    text[..text.find(part).expect("part is in the text")].matches('\n').count() + 1
}

/// Whether an error points at the line of `part`, at `key`, and says `says`.
#[track_caller]
fn points_at(e: &ConfigFileError, text: &str, part: &str, key: &str, says: &str) {
    assert_eq!((e.line, e.key.as_str()), (line_of(text, part) + part.starts_with('\n') as usize, key), "{e}");
    assert!(e.message.contains(says), "{e}\n  does not say {says:?}");
    assert!(e.to_string().starts_with(&format!("test.toml:{}:{}: ", e.line, e.column)), "{e}");
    assert!(e.column > 0, "{e}");
}
