// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings that tests write themselves, request by request, on an empty device.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use readpath_crash::{Base, Log};
use readpath_device::{UfsDevice, WithMedia};
use readpath_flash::AnySched;
use readpath_serve::Recorded;
use readpath_store::{FileDisk, Image, ImageError};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A recording in the making. Each request is answered before the next is sent.
pub struct Recorder {
    text: String,
    number: u64,
    now: u64,
}

impl Recorder {
    pub fn new() -> Recorder {
        let head = "time_ns,op,offset_bytes,size_bytes,process,latency_ns,request,number,modelled_ns\n# recording 1\n";
        Recorder { text: format!("{head}# start none\n"), number: 0, now: 0 }
    }

    /// A request that takes `takes`; the next comes `gap` later. Returns its number.
    pub fn request(&mut self, word: &str, (offset, bytes): (u64, usize), data: &[u8], (takes, gap): (u64, u64)) -> u64 {
        self.number += 1;
        let (now, number) = (self.now, self.number);
        if !data.is_empty() {
            let _ = writeln!(self.text, "#data {number} {}", STANDARD.encode(data));
        }
        let _ = writeln!(self.text, "{now},W,{offset},{bytes},1,,{word},{number},{takes}");
        self.now += gap;
        number
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) -> u64 {
        self.request("write", (offset, data.len()), data, (5, 10))
    }

    pub fn fua(&mut self, offset: u64, data: &[u8]) -> u64 {
        self.request("write-fua", (offset, data.len()), data, (5, 10))
    }

    pub fn flush(&mut self) -> u64 {
        self.request("flush", (0, 0), &[], (5, 10))
    }

    pub fn order(&mut self, words: &str) -> u64 {
        self.number += 1;
        let _ = writeln!(self.text, "#order {} {} {words}", self.now, self.number);
        self.now += 10;
        self.number
    }

    pub fn failed(&mut self, number: u64) {
        let _ = writeln!(self.text, "#failed {number}");
    }

    pub fn recorded(&self) -> Recorded {
        Recorded::read(self.text.as_bytes()).unwrap()
    }
}

/// An empty device of some MiB, and its content before a recording.
pub struct Empty {
    pub base: Base,
    // Removed at the end.
    _folder: TempDir,
}

/// An image of an empty device in a folder.
pub fn image(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let preset = small();
    let device = UfsDevice::<AnySched, WithMedia, ()>::new(&preset.device, preset.delays, ());
    Image::<FileDisk>::create(&path, &preset.echo().to_toml(), 1, &mut device.unwrap()).unwrap();
    path
}

impl Empty {
    pub fn new() -> Empty {
        let folder = TempDir::new().unwrap();
        let path = image(folder.path(), "image");
        // A check that another test is about to start has a copy of the lock for a moment.
        let image = loop {
            match Image::open(&path, false, false) {
                Err(ImageError::InUse) => std::thread::yield_now(),
                image => break image.unwrap(),
            }
        };
        let base = Base::new(image, &small(), None).unwrap();
        Empty { base, _folder: folder }
    }

    pub fn log(&self, recorder: &Recorder) -> Log {
        Log::new(&recorder.recorded(), &self.base).unwrap()
    }
}

pub fn small() -> readpath_config::DevicePreset {
    let text = readpath_config::presets().iter().find(|preset| preset.file.contains("ufs21-64g")).unwrap().text;
    let set: Vec<_> = ["geometry.blocks_per_plane=30", "geometry.pages_per_block=16", "lu.0.blocks=4800"]
        .map(|set| readpath_config::Override::from_argument(set, "test").unwrap())
        .into();
    readpath_config::device::parse(text, "preset").unwrap().with_overrides(&set).unwrap()
}
