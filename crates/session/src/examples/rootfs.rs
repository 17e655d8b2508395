// SPDX-License-Identifier: MIT OR Apache-2.0
//! The root file system of a small device, in a UBI image of SLC NAND: made up, with names and contents from a seed.

use readpath_kit::Prng;
use readpath_ubi::mtd::Geometry;
use readpath_ubi::ubinize::{ImageHead, ImageVolume, write_image};
use readpath_ubifs::sample::{Tree, volume_of};

const GEOMETRY: Geometry = Geometry { peb_bytes: 128 << 10, page_bytes: 2048, subpage_bytes: 512, pebs: 1024 };
const LEB_BYTES: u32 = 126 << 10;
/// Blocks of the volume that are free, and not in the image.
const FREE_LEBS: u32 = 40;

/// The image.
pub(super) fn image() -> Vec<u8> {
    let mut volume = volume_of(&root(), LEB_BYTES, GEOMETRY.page_bytes, FREE_LEBS);
    let whole = volume.len();
    volume.truncate(whole - (FREE_LEBS * LEB_BYTES) as usize);
    let root = ImageVolume { bytes: Some(whole as u64), ..ImageVolume::dynamic(0, "rootfs", &volume) };
    let head = ImageHead { geometry: GEOMETRY, vid_offset: None, image_seq: 1, erase_counter: 1 };
    let mut image = Vec::new();
    write_image(&head, &[root], &mut image).expect("one volume fits into memory");
    image
}

type Entries = Vec<(String, Tree)>;

fn root() -> Tree {
    let rng = &mut Prng::stream(1, "rootfs", 0);
    let applets = ["cat", "cp", "dd", "find", "grep", "ls", "mount", "mv", "ps", "rm", "sed", "sh", "tar", "vi"];
    let mut bin = vec![("busybox".to_owned(), Tree::File(text(rng, 400 << 10)))];
    bin.extend(applets.map(|name| (name.to_owned(), Tree::Link("busybox".to_owned()))));
    let etc = [files(rng, 90, ".conf", 2 << 10), directories(rng, 8, 6, "", 1 << 10)].concat();
    let modules = Tree::Directory(directories(rng, 12, 14, ".ko", 48 << 10));
    let lib = [files(rng, 40, ".so", 160 << 10), vec![("modules".to_owned(), modules)]].concat();
    let usr = [
        ("bin", files(rng, 180, "", 32 << 10)),
        ("lib", [files(rng, 60, ".so", 96 << 10), directories(rng, 10, 12, "", 24 << 10)].concat()),
        ("share", directories(rng, 60, 14, ".txt", 4 << 10)),
    ];
    let usr = usr.map(|(name, below)| (name.to_owned(), Tree::Directory(below))).to_vec();
    let var = vec![("messages".to_owned(), Tree::File(text(rng, 3 << 20)))];
    let all = [("bin", bin), ("etc", etc), ("lib", lib), ("usr", usr), ("var", var)];
    Tree::Directory(all.map(|(name, below)| (name.to_owned(), Tree::Directory(below))).to_vec())
}

/// So many directories with so many files each.
fn directories(rng: &mut Prng, count: u32, each: u32, ending: &str, most: u64) -> Entries {
    (0..count).map(|n| (name(rng, n), Tree::Directory(files(rng, each, ending, most)))).collect()
}

/// Files of at most so many bytes; most are shorter.
fn files(rng: &mut Prng, count: u32, ending: &str, most: u64) -> Entries {
    let mut file = |n| {
        let most = most >> rng.below(4);
        let bytes = 1 + rng.below(most);
        (name(rng, n) + ending, Tree::File(text(rng, bytes)))
    };
    (0..count).map(&mut file).collect()
}

/// A name; the number makes it the only one of its directory.
fn name(rng: &mut Prng, number: u32) -> String {
    const SYLLABLES: [&str; 16] =
        ["ba", "con", "da", "fi", "gra", "ho", "in", "ker", "lo", "mi", "net", "or", "pa", "ri", "sta", "ut"];
    let syllables = 2 + rng.below(3);
    (0..syllables).map(|_| SYLLABLES[rng.below(16) as usize]).collect::<String>() + &number.to_string()
}

fn text(rng: &mut Prng, bytes: u64) -> Vec<u8> {
    let mut text: Vec<u8> = Vec::new();
    while (text.len() as u64) < bytes {
        text.extend(rng.next_u64().to_le_bytes().map(|byte| b"abcdefghijklmno "[usize::from(byte % 16)]));
    }
    text.truncate(bytes as usize);
    text
}
