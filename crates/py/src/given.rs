// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments, as `python/readpath` passes them: dictionaries with these keys.

use crate::failure::Failure;
use crate::files;
use pyo3::FromPyObject;
use readpath_config::experiment::{Layout, Variant, hpb_modes};
use readpath_config::study::Assigned;
use readpath_config::{ConfigFileError, DevicePreset, GivenKey, Override, ReadFile};
use std::path::Path;

/// Keys with the texts of their values, and what errors call whoever says so.
type Set = Vec<(String, String)>;
const SET: &str = "set";

/// Something that stands in a file, or is given as a text.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Source {
    /// Path of the file, or a name; with a text what errors call it.
    pub name: String,
    /// The text, if it is given.
    pub text: Option<String>,
    /// Whether the name can only be a path.
    pub is_path: bool,
}

impl Source {
    /// The text.
    pub fn read(&self) -> Result<String, Failure> {
        self.text.clone().map_or_else(|| files::text(Path::new(&self.name)), Ok)
    }
}

/// A device.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Target {
    name: String,
    set: Set,
}

impl Target {
    /// The device with its keys changed.
    pub fn preset(&self, read: ReadFile) -> Result<DevicePreset, Failure> {
        let made = || readpath_config::device::load(&self.name, read)?.with_overrides(&overrides(&self.set)?);
        made().map_err(|e| Failure::of(&e))
    }
}

/// Which runs are made of an experiment, and how.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Choice {
    set: Set,
    /// Only this case.
    pub case: Option<String>,
    /// Only this variant.
    pub variant: Option<String>,
    /// Threads, or one for each processor.
    pub threads: Option<usize>,
}

impl Choice {
    /// Keys of the device that are changed.
    pub fn overrides(&self) -> Result<Vec<Override>, Failure> {
        overrides(&self.set).map_err(|e| Failure::of(&e))
    }
}

fn overrides(set: &[(String, String)]) -> Result<Vec<Override>, ConfigFileError> {
    set.iter().map(|(key, value)| Override::new(key.trim(), value, SET)).collect()
}

/// Keys that are the same for all points of a study.
pub fn assigned(set: &[(String, String)]) -> Result<Vec<Assigned>, Failure> {
    let one = |(key, value): &(String, String)| Assigned::from_argument(&format!("{key}={value}"), SET);
    set.iter().map(one).collect::<Result<_, _>>().map_err(|e| Failure::of(&e))
}

/// The host of a job, and what there is at the start.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Host {
    hpb: String,
    precondition: String,
    /// Seed of every random stream.
    pub seed: u64,
}

impl Host {
    /// Hosts with and without HPB.
    pub fn variants(&self) -> Result<Vec<Variant>, Failure> {
        let modes = self.modes()?;
        let of = |(name, word): &(&str, &str)| Variant::of_keys(name, &[GivenKey::new("hpb", *word, "hpb")]);
        modes.iter().map(of).collect::<Result<_, _>>().map_err(|e| Failure::of(&e))
    }

    /// Names of modes of HPB for tables, and the words of their keys.
    pub fn modes(&self) -> Result<&'static [(&'static str, &'static str)], Failure> {
        let expected = "off, dcm, hcm, both, all, prototype-host, prototype-device or prototype";
        hpb_modes(&self.hpb).ok_or_else(|| Failure::Wrong(format!("hpb: is {:?}; expected {expected}", self.hpb)))
    }

    /// In which order the files of the job were written, if they are there at the start.
    pub fn layout(&self) -> Result<Option<Layout>, Failure> {
        match self.precondition.as_str() {
            "sequential" => Ok(Some(Layout::Sequential)),
            "random" => Ok(Some(Layout::Random)),
            "none" => Ok(None),
            other => Err(Failure::Wrong(format!(
                "precondition: is {other:?}; expected \"sequential\", \"random\" or \"none\""
            ))),
        }
    }
}
