// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the name of an image to a UBIFS volume: sizes are guessed where they are not given, the volume is picked.

use crate::args::{ImageInput, ImageSizes};
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_stack::config::size;
use readpath_ubi::attach::Method;
use readpath_ubi::device::{Finding, Options};
use readpath_ubi::guess::{Guess, Known, guess};
use readpath_ubi::mtd::{Geometry, Image, Logged, Mtd};
use readpath_ubi::{NoCache, Ubi, UbiError, printable};
use readpath_ubifs::{NodeType, UbiVolume, UbifsError};
use readpath_workload::trace::Compression;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A volume in an image, whose flash operations are logged when asked for.
pub type Volume = UbiVolume<Logged<Image<File>>, NoCache>;

/// Opens an image and finds its sizes.
pub fn sized(image: &Path, known: &Known) -> Result<(File, Guess)> {
    let wrong = |e: &dyn std::fmt::Display| usage(anyhow!("{}: {e}", image.display()));
    let unreadable = |e: io::Error| wrong(&format!("cannot be read: {e}"));
    // Whoever opens a pipe waits for its other end.
    let kind = std::fs::metadata(image).map_err(unreadable)?.file_type();
    if kind.is_dir() {
        return Err(wrong(&"is a folder, not an image"));
    }
    if !kind.is_file() {
        return Err(wrong(&"is not a file; an image is read at any place, so copy it into one"));
    }
    let file = File::open(image).map_err(unreadable)?;
    let mut guess = guess(&file, known).map_err(|e| match (known.peb_bytes, packed(&file)) {
        (_, Some(how)) => wrong(&format!("is packed with {how}; unpack it, an image is read at any place")),
        (None, _) => wrong(&format!("{e} (--peb-size gives the size of erase blocks)")),
        _ => wrong(&e),
    })?;
    settle(&file, &mut guess);
    Ok((file, guess))
}

/// With what a file is packed, if it is.
fn packed(file: &File) -> Option<&'static str> {
    let mut head = [0; 6];
    file.read_exact_at(&mut head, 0).ok()?;
    Some(Compression::of(&head)).filter(|&c| c != Compression::Plain).map(Compression::name)
}

/// Decides between two sizes of a page by a superblock of UBIFS, which says it. Volumes are where they are with either.
fn settle(file: &File, guess: &mut Guess) {
    if !guess.ambiguous {
        return;
    }
    let options = Options { vid_offset: guess.vid_offset, ..Options::image() };
    // What keeps it from being attached is told by the attach that counts.
    let Ok(image) = Image::new(file, guess.geometry) else { return };
    let Ok(mut ubi) = Ubi::attach(image, NoCache, &options) else { return };
    let ids: Vec<u32> = ubi.volumes().map(|v| v.id).collect();
    for id in ids {
        let Some(min_io) = superblock_min_io(&mut ubi, id) else { continue };
        let page_bytes = guess.geometry.page_bytes;
        let larger = Geometry { page_bytes: 2 * page_bytes, subpage_bytes: page_bytes, ..guess.geometry };
        if min_io == larger.page_bytes && larger.check().is_ok() {
            guess.geometry = larger;
        } else if min_io != page_bytes {
            continue;
        }
        guess.ambiguous = false;
        return;
    }
}

/// The unit of writing that a superblock of UBIFS in LEB 0 names.
fn superblock_min_io<M: Mtd>(ubi: &mut Ubi<M>, id: u32) -> Option<u32> {
    let mut node = vec![0; 4096];
    ubi.read(id, 0, 0, &mut node, 0).ok()?;
    let header = readpath_ubifs::check_node(&node, 8).ok()?;
    let word = node[32..36].try_into().ok()?;
    (header.kind == NodeType::Superblock).then_some(u32::from_le_bytes(word))
}

/// Why an image was not attached, with the sizes that were taken and the options that name others.
pub fn not_attached(image: &Path, guess: &Guess, e: &UbiError) -> anyhow::Error {
    let Geometry { peb_bytes, page_bytes, .. } = guess.geometry;
    let sizes = format!("PEBs of {peb_bytes} bytes, pages of {page_bytes}");
    let options = "if these sizes are wrong, give --peb-size, --page-size and --subpage-size";
    usage(anyhow!("{}: {e} ({sizes}; {options})", image.display()))
}

/// What to say where headers leave two sizes of a page.
pub fn ambiguity(guess: &Guess) -> Option<String> {
    let page = guess.geometry.page_bytes;
    guess.ambiguous.then(|| {
        format!(
            "pages of {} bytes with sub-pages of {page} have the same headers: --page-size, --subpage-size",
            2 * page
        )
    })
}

fn open(input: &ImageInput, log: bool, fastmap: bool) -> Result<Ubi<Logged<Image<File>>>> {
    let ImageInput { image, sizes } = input;
    let (file, guess) = sized(image, &known(sizes)?)?;
    let device = Image::new(file, guess.geometry).map_err(|e| usage(anyhow!("{}: {e}", image.display())))?;
    let mut logged = Logged::new(device);
    logged.recording = log;
    let options = Options { vid_offset: guess.vid_offset, fastmap, ..Options::image() };
    Ubi::attach(logged, NoCache, &options).map_err(|e| not_attached(image, &guess, &e))
}

/// Opens the volume of an image. The flash operations of the attach are logged if `log` says so.
pub fn volume(input: &ImageInput, log: bool) -> Result<Volume> {
    let wrong = |e: &dyn std::fmt::Display| usage(anyhow!("{}: {e}", input.image.display()));
    let ubi = open(input, log, true)?;
    let id = pick(&ubi, input.sizes.volume.as_deref()).map_err(|e| wrong(&e))?;
    UbiVolume::new(ubi, id).map_err(|e| wrong(&e))
}

/// The same for a volume by its number.
pub fn volume_at(input: &ImageInput, id: u32, log: bool) -> Result<Volume> {
    let ubi = open(input, log, true)?;
    UbiVolume::new(ubi, id).map_err(|e| usage(anyhow!("{}: {e}", input.image.display())))
}

/// Number and name of the one volume of an image that holds UBIFS; others, a kernel's for example, do not count.
pub fn only_ubifs(input: &ImageInput) -> Result<(u32, String)> {
    let mut ubi = open(input, false, true)?;
    let volumes: Vec<(u32, String)> = ubi.volumes().map(|v| (v.id, printable(&v.record.name))).collect();
    let of_ubifs: Vec<&(u32, String)> =
        volumes.iter().filter(|(id, _)| volumes.len() == 1 || superblock_min_io(&mut ubi, *id).is_some()).collect();
    let wrong = |e: String| Err(usage(anyhow!("{}: {e}", input.image.display())));
    match of_ubifs[..] {
        [(id, name)] => Ok((*id, name.clone())),
        [] => wrong(format!("none of its {} volumes holds UBIFS", volumes.len())),
        _ => {
            let names: Vec<String> = of_ubifs.iter().map(|(id, name)| format!("{id} \"{name}\"")).collect();
            wrong(format!("several volumes hold UBIFS: {}; --volume says which", names.join(", ")))
        }
    }
}

/// What is wrong with the device that holds a volume, below what the volume holds.
pub fn findings(input: &ImageInput, volume: &mut Volume) -> Result<Vec<Finding>> {
    let found = match volume.ubi().found().method {
        Method::Scan => volume.ubi().findings(),
        // A fastmap makes most headers needless to read, so that nobody has looked at them.
        Method::Fastmap { .. } => open(input, false, false)?.findings(),
    };
    found.map_err(|e| usage(anyhow!("{}: {e}", input.image.display())))
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
fn pick<M: Mtd>(ubi: &Ubi<M>, wanted: Option<&str>) -> Result<u32, String> {
    let names = || {
        let names: Vec<String> = ubi.volumes().map(|v| format!("{} \"{}\"", v.id, printable(&v.record.name))).collect();
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
