// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the name of an image to a UBIFS volume: sizes are guessed where they are not given, the volume is picked.

use crate::args::{ImageInput, ImageSizes};
use crate::usage;
use crate::variants::size;
use anyhow::{Result, anyhow};
use readpath_ubi::device::Options;
use readpath_ubi::guess::{Known, guess};
use readpath_ubi::mtd::{Image, Logged};
use readpath_ubi::{NoCache, Ubi};
use readpath_ubifs::{UbiVolume, UbifsError};
use std::fs::File;
use std::path::Path;

/// A volume in an image, whose flash operations are logged when asked for.
pub type Volume = UbiVolume<Logged<Image<File>>, NoCache>;

/// Opens the volume of an image. The flash operations of the attach are logged if `log` says so.
pub fn volume(input: &ImageInput, log: bool) -> Result<Volume> {
    let ImageInput { image, sizes } = input;
    let wrong = |e: &dyn std::fmt::Display| usage(anyhow!("{}: {e}", image.display()));
    let file = File::open(image).map_err(|e| wrong(&format!("cannot be read: {e}")))?;
    if file.metadata().map_err(|e| wrong(&e))?.is_dir() {
        return Err(wrong(&"is a folder, not an image"));
    }
    let known = known(sizes)?;
    let guess = guess(&file, &known).map_err(|e| wrong(&e))?;
    let device = Image::new(file, guess.geometry).map_err(|e| wrong(&e))?;
    let mut logged = Logged::new(device);
    logged.recording = log;
    let options = Options { vid_offset: guess.vid_offset, ..Options::image() };
    let ubi = Ubi::attach(logged, NoCache, &options).map_err(|e| {
        let hint = if guess.ambiguous { "; if these sizes are wrong, give --page-size and --subpage-size" } else { "" };
        let (peb, page) = (guess.geometry.peb_bytes, guess.geometry.page_bytes);
        wrong(&format!("{e} (PEBs of {peb} bytes, pages of {page}{hint})"))
    })?;
    let id = pick(&ubi, sizes.volume.as_deref()).map_err(|e| wrong(&e))?;
    UbiVolume::new(ubi, id).map_err(|e| wrong(&e))
}

fn known(sizes: &ImageSizes) -> Result<Known> {
    let bytes = |option: &str, text: &Option<String>| {
        let Some(text) = text else { return Ok(None) };
        let bytes = size(text).map_err(|e| usage(anyhow!("{option}: {e}")))?;
        u32::try_from(bytes).map(Some).map_err(|_| usage(anyhow!("{option}: {bytes} bytes are more than NAND has")))
    };
    Ok(Known {
        peb_bytes: bytes("--peb-size", &sizes.peb_size)?,
        page_bytes: bytes("--page-size", &sizes.page_size)?,
        subpage_bytes: bytes("--subpage-size", &sizes.subpage_size)?,
    })
}

/// The volume that is meant: by name, by number, or the only one.
fn pick<M: readpath_ubi::mtd::Mtd>(ubi: &Ubi<M>, wanted: Option<&str>) -> Result<u32, String> {
    let names = || {
        let names: Vec<String> = ubi.volumes().map(|v| format!("{} \"{}\"", v.id, v.name())).collect();
        names.join(", ")
    };
    match wanted {
        Some(wanted) => {
            let named = ubi.volumes().find(|v| v.record.name == wanted.as_bytes());
            let numbered = || ubi.volumes().find(|v| wanted.parse() == Ok(v.id));
            let found = named.or_else(numbered).map(|v| v.id);
            found.ok_or_else(|| format!("no volume \"{wanted}\"; there are: {}", names()))
        }
        None => {
            let mut volumes = ubi.volumes();
            match (volumes.next(), volumes.next()) {
                (Some(only), None) => Ok(only.id),
                (None, _) => Err("there is no volume".to_owned()),
                _ => Err(format!("several volumes, --volume says which: {}", names())),
            }
        }
    }
}

/// An error of a volume, as the image's mistake.
pub fn wrong(image: &Path, error: UbifsError) -> anyhow::Error {
    usage(anyhow!("{}: {error}", image.display()))
}
