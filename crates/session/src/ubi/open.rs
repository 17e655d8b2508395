// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an image to a UBIFS volume: sizes that are not given are guessed, and the volume is chosen.

use super::bytes::{ImageBytes, Spare};
use crate::args::{ImageInput, ImageSizes};
use crate::kinds::{self, Kind};
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_config::size;
use readpath_ubi::attach::{Method, Options};
use readpath_ubi::device::Finding;
use readpath_ubi::guess::{Guess, Known, guess};
use readpath_ubi::headers::{EcHeader, STATIC};
use readpath_ubi::mtd::{Geometry, Image, Logged, Mtd, ReadAt};
use readpath_ubi::{NoCache, Ubi, UbiError, printable};
use readpath_ubifs::{NODE_MAGIC, NodeType, UbiVolume, UbifsError};
use rustix::fs::Advice;
use std::io;
use std::path::Path;

/// A volume in an image; its flash operations can be logged.
pub type Volume = UbiVolume<Logged<Image<ImageBytes>>, NoCache>;

/// Opens an image and finds its sizes.
pub fn sized(image: &Path, sizes: &ImageSizes) -> Result<(ImageBytes, Guess)> {
    let (known, oob) = (&known(sizes)?, oob(sizes.oob.as_deref())?);
    let wrong = |e: &dyn std::fmt::Display| usage(anyhow!("{}: {e}", image.display()));
    let unreadable = |e: io::Error| wrong(&format!("cannot be read: {e}"));
    // Opening a pipe would wait for its other end.
    let kind = std::fs::metadata(image).map_err(unreadable)?.file_type();
    if kind.is_dir() {
        return Err(wrong(&"is a folder, not an image"));
    }
    if !kind.is_file() {
        return Err(wrong(&"is not a file; an image is read at any place, so copy it into one"));
    }
    let raw = ImageBytes::open(image).map_err(unreadable)?;
    // Headers are small and far apart, so read-ahead slows an attach down. It helps with data.
    raw.advise(Advice::Random);
    let (bytes, found) = match oob {
        None => {
            let found = guess(&raw, known);
            (raw, found)
        }
        Some(oob) => match without_spare(&raw, known, &[oob]) {
            Some((bytes, _, found)) => (bytes, Ok(found)),
            None => {
                return Err(wrong(&format!(
                    "--oob {oob}: the file is not UBI in pages with spare areas of {oob} bytes"
                )));
            }
        },
    };
    // Where spare areas shift the headers, a fraction of the distance between these fits too.
    let suspect = |found: &Guess| sizes.oob.is_none() && Image::new(&bytes, found.geometry).is_err();
    let spare = match &found {
        Ok(found) if !suspect(found) => None,
        _ => spare_areas(&bytes, known.page_bytes),
    };
    if let Some(Spare { page, oob }) = spare {
        let ways = format!("dump it without spare areas (nanddump --omitoob), or give --oob {oob}");
        return Err(wrong(&format!("looks like pages of {page} + {oob} bytes: {ways}")));
    }
    if found.is_err() && something_else(&bytes, image).is_none() {
        kinds::check(image, Kind::Ubi)?;
    }
    let mut found = found.map_err(|e| match (something_else(&bytes, image), &e) {
        (Some(what), _) => wrong(&what),
        (None, UbiError::Sizes(e)) => wrong(&format!("{e} (--peb-size gives the size of erase blocks)")),
        (None, e) => wrong(e),
    })?;
    settle(&bytes, &mut found);
    Ok((bytes, found))
}

/// Sizes of spare areas of real chips in bytes.
const SPARE: [u32; 13] = [16, 64, 112, 128, 218, 224, 232, 256, 448, 640, 744, 1280, 1664];

/// The spare areas of an image that is UBI without them, and is none with them.
fn spare_areas(raw: &ImageBytes, page_bytes: Option<u32>) -> Option<Spare> {
    let with_them = guess(raw, &Known::default()).and_then(|found| Ok(Image::new(raw, found.geometry).map(drop)?));
    // An erase block that was given may count them or not.
    let known = Known { page_bytes, ..Known::default() };
    let (_, spare, _) = without_spare(raw, &known, &SPARE).filter(|_| with_them.is_err())?;
    Some(spare)
}

/// The image without spare areas of one of these `sizes`, if it is UBI then, with some size of a page.
fn without_spare(raw: &ImageBytes, known: &Known, sizes: &[u32]) -> Option<(ImageBytes, Spare, Guess)> {
    let pages = (9..=16).map(|bits| 1 << bits).filter(|&page| known.page_bytes.is_none_or(|known| known == page));
    let mut all = pages.flat_map(|page| sizes.iter().map(move |&oob| Spare { page, oob }));
    all.find_map(|spare| {
        let bytes = raw.without(spare)?;
        let found = guess(&bytes, known).ok()?;
        let page = found.geometry.page_bytes;
        (page == spare.page || found.ambiguous && 2 * page == spare.page).then_some((bytes, spare, found))
    })
}

/// Sizes of the device of an image; it may have more erase blocks than the image.
pub fn of_device(found: &Guess, pebs: Option<u32>) -> Geometry {
    Geometry { pebs: pebs.unwrap_or(found.geometry.pebs), ..found.geometry }
}

/// First bytes of packed files that are not unpacked here, with name and command.
const PACKED: [(&[u8], &str, &str); 4] = [
    (b"BZh", "packed with bzip2", "bzip2 -dk"),
    (&[0x04, 0x22, 0x4D, 0x18], "packed with lz4", "lz4 -d"),
    (b"PK\x03\x04", "packed with zip", "unzip"),
    (&[0x3A, 0xFF, 0x26, 0xED], "an Android sparse image", "simg2img"),
];
/// How far into a file an image is looked for.
const MOST_BEFORE: u64 = 64 << 20;

/// The format of a file that is not UBI, if its first bytes show it.
fn something_else(file: &ImageBytes, image: &Path) -> Option<String> {
    let mut first = [0; 6];
    file.read_exact_at(0, &mut first).ok()?;
    if let Some((_, name, command)) = PACKED.iter().find(|(magic, ..)| first.starts_with(magic)) {
        let to = if *command == "simg2img" { " image.ubi" } else { "" };
        return Some(format!("is {name}; unpack it first: {command} {}{to}", image.display()));
    }
    if let Some(at) = begins_at(file).filter(|&at| at > 0) {
        let name = image.display();
        return Some(format!(
            "UBI begins at byte {at}; cut off what is before it: tail -c +{} {name} >image.ubi",
            at + 1
        ));
    }
    first.starts_with(&NODE_MAGIC.to_le_bytes()).then(|| {
        "is a volume of UBIFS without UBI around it, as mkfs.ubifs makes it; ubinize makes an image of it".to_owned()
    })
}

/// The place of the first EC header in the beginning of a file.
fn begins_at(file: &ImageBytes) -> Option<u64> {
    let end = file.bytes().ok()?.min(MOST_BEFORE);
    let mut chunk = vec![0; 1 << 20];
    let mut at = 0;
    while at < end {
        let bytes = &mut chunk[..(end - at).min(1 << 20) as usize];
        file.read_exact_at(at, bytes).ok()?;
        let is_header =
            |place: &usize| bytes[*place..].first_chunk().is_some_and(|first| EcHeader::parse(first).is_ok());
        let marks = bytes.windows(4).enumerate().filter(|(_, mark)| mark == b"UBI#").map(|(place, _)| place);
        if let Some(place) = { marks }.find(is_header) {
            return Some(at + place as u64);
        }
        // Chunks overlap, so that a header across their border is whole in one.
        at += bytes.len().saturating_sub(64).max(1) as u64;
    }
    None
}

/// Decides between two sizes of a page by a superblock of UBIFS, which has it. Volumes are found with either size.
fn settle(file: &ImageBytes, guess: &mut Guess) {
    if !guess.ambiguous {
        return;
    }
    let options = Options { vid_offset: guess.vid_offset, ..Options::image() };
    // Errors are reported by the attach that follows.
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

/// Why an image was not attached. If sizes may be the reason, the error has them and their options.
pub fn not_attached(image: &Path, guess: &Guess, e: &UbiError) -> anyhow::Error {
    if !matches!(e, UbiError::Sizes(_)) {
        return usage(anyhow!("{}: {e}", image.display()));
    }
    let Geometry { peb_bytes, page_bytes, .. } = guess.geometry;
    let sizes = format!("PEBs of {peb_bytes} bytes, pages of {page_bytes}");
    let options = "if these sizes are wrong, give --peb-size, --page-size and --subpage-size";
    usage(anyhow!("{}: {e} ({sizes}; {options})", image.display()))
}

/// A warning, if headers allow two sizes of a page.
pub fn ambiguity(guess: &Guess) -> Option<String> {
    let page = guess.geometry.page_bytes;
    guess.ambiguous.then(|| {
        format!(
            "pages of {} bytes with sub-pages of {page} have the same headers: --page-size, --subpage-size",
            2 * page
        )
    })
}

fn open(input: &ImageInput, log: bool, fastmap: bool) -> Result<Ubi<Logged<Image<ImageBytes>>>> {
    let ImageInput { image, sizes, .. } = input;
    let (file, guess) = sized(image, sizes)?;
    let geometry = of_device(&guess, sizes.pebs);
    let device = Image::new(file.clone(), geometry).map_err(|e| usage(anyhow!("{}: {e}", image.display())))?;
    let mut logged = Logged::new(device);
    logged.recording = log;
    let options = Options { vid_offset: guess.vid_offset, fastmap, ..Options::image() };
    let ubi = Ubi::attach(logged, NoCache, &options).map_err(|e| not_attached(image, &guess, &e))?;
    file.advise(Advice::Normal);
    Ok(ubi)
}

/// A volume, by its contents.
pub enum Opened {
    /// It may hold UBIFS.
    Ubifs(Volume),
    /// One with other contents.
    Other {
        /// The device.
        ubi: Ubi<Logged<Image<ImageBytes>>>,
        /// Number of the volume.
        id: u32,
        /// Whether UBI has a checksum of its contents.
        is_static: bool,
    },
}

/// Opens the volume of an image. With `log` the flash operations of the attach are logged.
///
/// # Errors
/// A mistake of the user when the image is not UBI or has no such volume.
pub fn open_volume(input: &ImageInput, log: bool) -> Result<Opened> {
    let wrong = |e: &dyn std::fmt::Display| usage(anyhow!("{}: {e}", input.image.display()));
    let mut ubi = open(input, log, true)?;
    let id = pick(&ubi, input.volume.as_deref()).map_err(|e| wrong(&e))?;
    let is_static = ubi.volume(id).map_err(|e| wrong(&e))?.record.vol_type == STATIC;
    // Linux mounts UBIFS of a static volume, too, only to read. A dynamic one without UBIFS has no node where the first
    // of its master nodes would be, either; with one, its superblock is damaged.
    if !has_node(&mut ubi, id, 0) && (is_static || !has_node(&mut ubi, id, MASTER_LEB)) {
        return Ok(Opened::Other { ubi, id, is_static });
    }
    UbiVolume::new(ubi, id).map(Opened::Ubifs).map_err(|e| wrong(&e))
}

/// Opens a volume of UBIFS.
///
/// # Errors
/// As [`open_volume`], and when the volume holds no UBIFS.
pub fn volume(input: &ImageInput, log: bool) -> Result<Volume> {
    match open_volume(input, log)? {
        Opened::Ubifs(volume) => Ok(volume),
        Opened::Other { ubi, id, .. } => {
            let name = ubi.volume(id).map(|v| printable(&v.record.name)).unwrap_or_default();
            let what = format!("volume {id} \"{name}\" holds no UBIFS");
            Err(usage(anyhow!("{}: {what}", input.image.display())))
        }
    }
}

/// The first LEB with master nodes of UBIFS.
const MASTER_LEB: u32 = 1;

/// Whether a LEB begins as all nodes of UBIFS do.
fn has_node(ubi: &mut Ubi<Logged<Image<ImageBytes>>>, id: u32, leb: u32) -> bool {
    let mut magic = [0; 4];
    // No kernel makes this read, so it is not in the log.
    let recording = std::mem::replace(&mut ubi.mtd_mut().recording, false);
    let is_read = ubi.read(id, leb, 0, &mut magic, 0).is_ok();
    ubi.mtd_mut().recording = recording;
    is_read && u32::from_le_bytes(magic) == NODE_MAGIC
}

/// [`volume`] by its number.
pub fn volume_at(input: &ImageInput, id: u32, log: bool) -> Result<Volume> {
    let ubi = open(input, log, true)?;
    UbiVolume::new(ubi, id).map_err(|e| usage(anyhow!("{}: {e}", input.image.display())))
}

/// Number and name of the only volume of an image that holds UBIFS.
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

/// Damage of the device below a volume.
///
/// # Errors
/// When the device cannot be read.
pub fn findings(input: &ImageInput, ubi: &mut Ubi<Logged<Image<ImageBytes>>>) -> Result<Vec<Finding>> {
    let found = match ubi.found().method {
        Method::Scan => ubi.findings(),
        // An attach by fastmap reads few headers.
        Method::Fastmap { .. } => open(input, false, false)?.findings(),
    };
    found.map_err(|e| usage(anyhow!("{}: {e}", input.image.display())))
}

fn oob(text: Option<&str>) -> Result<Option<u32>> {
    let wrong = |text: &str| usage(anyhow!("--oob: \"{text}\" is no number of bytes from 1 to 65536"));
    let bytes = |text: &str| text.parse().ok().filter(|n| (1..=65536).contains(n)).ok_or_else(|| wrong(text));
    text.map(bytes).transpose()
}

fn known(sizes: &ImageSizes) -> Result<Known> {
    Ok(Known {
        peb_bytes: nand_bytes("--peb-size", &sizes.peb_size)?,
        page_bytes: nand_bytes("--page-size", &sizes.page_size)?,
        subpage_bytes: nand_bytes("--subpage-size", &sizes.subpage_size)?,
    })
}

/// A size on NAND from an option.
pub fn nand_bytes(option: &str, text: &Option<String>) -> Result<Option<u32>> {
    let Some(text) = text else { return Ok(None) };
    let bytes = size(text).map_err(|e| usage(anyhow!("{option}: {e}")))?;
    u32::try_from(bytes).map(Some).map_err(|_| usage(anyhow!("{option}: {bytes} bytes are more than NAND has")))
}

/// The number of the volume `wanted`: by name, by number, or the only one.
fn pick<M: Mtd>(ubi: &Ubi<M>, wanted: Option<&str>) -> Result<u32, String> {
    let names = || {
        let name = |v: &readpath_ubi::device::Volume| {
            let kind = if v.record.vol_type == STATIC { " (static)" } else { "" };
            format!("{} \"{}\"{kind}", v.id, printable(&v.record.name))
        };
        ubi.volumes().map(name).collect::<Vec<_>>().join(", ")
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

/// An error of a volume, with the name of its image.
pub fn wrong(image: &Path, error: UbifsError) -> anyhow::Error {
    usage(anyhow!("{}: {error}", image.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With VID headers at 2048 a fraction of the distance between erase blocks fits the headers of a few of them, but
    /// not the length of the file.
    #[test]
    fn spare_areas_of_a_few_blocks_are_told() {
        let header = EcHeader { version: 1, erase_counter: 0, vid_offset: 2048, data_offset: 4096, image_seq: 5 };
        let mut block = vec![0xFF; 128 << 10];
        let bytes = header.to_bytes();
        block[..bytes.len()].copy_from_slice(&bytes);
        let block: Vec<u8> = block.chunks(2048).flat_map(|page| [page, &[0xFF; 64]].concat()).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("few.ubi");
        std::fs::write(&path, block.repeat(15)).expect("a file");
        let sizes = |oob: Option<&str>| ImageSizes { oob: oob.map(str::to_owned), ..ImageSizes::default() };
        let error = sized(&path, &sizes(None)).expect_err("spare areas").to_string();
        assert!(error.contains("looks like pages of 2048 + 64 bytes: dump it without spare areas"), "{error}");
        let (_, found) = sized(&path, &sizes(Some("64"))).expect("UBI");
        assert_eq!((found.geometry.peb_bytes, found.geometry.page_bytes, found.geometry.pebs), (128 << 10, 2048, 15));
    }
}
