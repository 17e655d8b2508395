// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments, as `python/readpath` passes them: dictionaries with these keys.

use anyhow::Result;
use pyo3::FromPyObject;
use readpath_config::DevicePreset;
use readpath_config::experiment::Variant;
use readpath_config::study::Assigned;
use readpath_session::args::{Fill, Hpb, word};
use readpath_session::variants::Typed;
use readpath_session::{inputs, presets};
use std::path::Path;

/// Something that stands in a file, or is given as a text.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Source {
    /// Path of the file, or a name; with a text its name in errors.
    pub name: String,
    /// The text, if it is given.
    pub text: Option<String>,
    /// Whether the name can only be a path.
    pub is_path: bool,
}

impl Source {
    /// The text.
    pub fn read(&self) -> Result<String> {
        self.text.clone().map_or_else(|| inputs::text(Path::new(&self.name)), Ok)
    }
}

/// A device.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Target {
    name: String,
    set: Vec<String>,
}

impl Target {
    /// The device with its keys changed.
    pub fn preset(&self) -> Result<DevicePreset> {
        presets::preset(&self.name, &self.set)
    }
}

/// Which runs are made of an experiment, and how.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Choice {
    /// Keys of the device that are changed: `KEY=VALUE`.
    pub set: Vec<String>,
    /// Only this case.
    pub case: Option<String>,
    /// Only this variant.
    pub variant: Option<String>,
    /// Threads, or one for each processor.
    pub threads: Option<u32>,
}

/// Keys that are the same for all points of a study.
pub fn assigned(set: &[String]) -> Result<Vec<Assigned>> {
    Ok(set.iter().map(|argument| Assigned::from_argument(argument, "--set")).collect::<Result<_, _>>()?)
}

/// The host of a job, and the state of the device before the first request.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Host {
    hpb: String,
    precondition: String,
    /// Seed of every random stream.
    pub seed: u64,
}

impl Host {
    /// Every mode of HPB with every size of the map cache.
    pub fn variants(&self, map_cache: &[String]) -> Result<Vec<Variant>> {
        let hpb: [Hpb; 1] = [word("--hpb", &self.hpb)?];
        Typed { named: &[], varied: &[], policy: &[], map_cache, hpb: &hpb }.variants()
    }

    /// The order in which the files of the job were written, if they were.
    pub fn fill(&self) -> Result<Fill> {
        word("--precondition", &self.precondition)
    }
}
