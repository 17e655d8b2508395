// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a look into an image of raw NAND takes: the attach of a large one, and a walk over many files. The images are
//! made in memory.

use readpath_ubi::attach::Options;
use readpath_ubi::mtd::{Geometry, Image, ReadAt};
use readpath_ubi::nand::preset;
use readpath_ubi::ubinize::{ImageHead, ImageVolume, write_image};
use readpath_ubi::{NoCache, Ubi};
use readpath_ubifs::{MountMode, Session, UbiVolume, Ubifs, sample};
use std::io::{self, Write};

/// An image to be looked into.
#[derive(Clone, Copy, Debug)]
pub struct ImageCase {
    /// Name.
    pub name: &'static str,
    /// Description.
    pub what: &'static str,
    work: Work,
}

#[derive(Clone, Copy, Debug)]
enum Work {
    Attach { volumes: u32, lebs: u32 },
    Walk { dirs: u32, files: u32 },
}

/// All benches of images.
pub const IMAGES: &[ImageCase] = &[
    ImageCase {
        name: "ubi-attach-4g",
        what: "attach of an image of 4 GiB with 32,762 erase blocks, all in use",
        work: Work::Attach { volumes: 126, lebs: 260 },
    },
    ImageCase {
        name: "ubifs-walk-100k",
        what: "attach, mount, and every inode of 100,000 files in 1,000 directories",
        work: Work::Walk { dirs: 1000, files: 100 },
    },
];

/// Looks into an image `repeat` times; how many things were found each time (mapped blocks, paths), and the fewest
/// seconds that `clock` counted. Making the image is not counted.
pub fn images(case: &ImageCase, repeat: u32, clock: impl Fn() -> f64) -> (u64, f64) {
    match case.work {
        Work::Attach { volumes, lebs } => {
            let image = full_image(volumes, lebs);
            best(repeat, clock, || attach(&image).volumes().map(|v| u64::from(v.mapped())).sum())
        }
        Work::Walk { dirs, files } => {
            let image = tree_image(dirs, files);
            best(repeat, clock, || walk(&image))
        }
    }
}

fn best(repeat: u32, clock: impl Fn() -> f64, mut work: impl FnMut() -> u64) -> (u64, f64) {
    let (mut found, mut seconds) = (0, f64::INFINITY);
    for _ in 0..repeat {
        let begin = clock();
        found = work();
        seconds = seconds.min(clock() - begin);
    }
    (found, seconds)
}

/// SLC with pages of 2 KiB: of all NAND of 4 GiB, that with the most erase blocks to look at.
fn geometry() -> Geometry {
    preset("slc-2k").expect("a built-in preset").geometry
}

fn attach<R: ReadAt>(source: R) -> Ubi<Image<R>> {
    let pebs = Image::pebs_of(&source, geometry().peb_bytes).expect("whole blocks");
    let image = Image::new(source, Geometry { pebs, ..geometry() }).expect("an image as large as its device");
    Ubi::attach(image, NoCache, &Options::image()).expect("an image that was just made")
}

fn write(volumes: &[ImageVolume], out: &mut impl Write) {
    let head = ImageHead { geometry: geometry(), vid_offset: None, image_seq: 1, erase_counter: 3 };
    write_image(&head, volumes, out).expect("volumes that fit together");
}

/// Bytes of a logical block.
const LEB_BYTES: u32 = 126 << 10;

/// Volumes whose blocks all have headers, and erased data.
fn full_image(volumes: u32, lebs: u32) -> Sparse {
    let data = vec![0xFF; lebs as usize * LEB_BYTES as usize];
    let names: Vec<String> = (0..volumes).map(|id| format!("volume{id}")).collect();
    let volumes: Vec<_> = (0..).zip(&names).map(|(id, name)| ImageVolume::dynamic(id, name, &data)).collect();
    let mut image = Sparse::default();
    write(&volumes, &mut image);
    image
}

fn tree_image(dirs: u32, files: u32) -> Vec<u8> {
    let data = sample::volume(dirs, files, LEB_BYTES, geometry().page_bytes);
    let mut image = Vec::new();
    write(&[ImageVolume::dynamic(0, "tree", &data)], &mut image);
    image
}

/// Paths of the tree in the first volume of an image; the inode of each is read.
fn walk(image: &Vec<u8>) -> u64 {
    let volume = UbiVolume::new(attach(image), 0).expect("the volume");
    let fs = Ubifs::mount(volume, MountMode::Inspect).expect("UBIFS");
    let mut paths = 0;
    Session::new(fs, false).find_ls(b"/", |_, _| paths += 1).expect("an undamaged tree");
    paths
}

/// Bytes of a piece of a [`Sparse`] image: both headers of an erase block lie in the first.
const PIECE_BYTES: usize = 1024;

/// An image that keeps only the pieces which are not erased.
#[derive(Debug, Default)]
struct Sparse {
    /// Where each piece begins in `bytes`, in pieces; [`ERASED`] if it is not kept.
    pieces: Vec<u32>,
    bytes: Vec<u8>,
}

const ERASED: u32 = u32::MAX;

impl Write for Sparse {
    /// Takes whole pieces, of which a block has some.
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let pieces = data.chunks_exact(PIECE_BYTES);
        if !pieces.remainder().is_empty() {
            return Err(io::Error::other(format!("{} bytes are no whole pieces of {PIECE_BYTES}", data.len())));
        }
        for piece in pieces {
            if piece.iter().all(|&byte| byte == 0xFF) {
                self.pieces.push(ERASED);
            } else {
                self.pieces.push((self.bytes.len() / PIECE_BYTES) as u32);
                self.bytes.extend(piece);
            }
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ReadAt for Sparse {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.pieces.len() as u64 * PIECE_BYTES as u64)
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut at = usize::try_from(offset).map_err(io::Error::other)?;
        let mut left = out;
        while !left.is_empty() {
            let from = at % PIECE_BYTES;
            let (part, rest) = left.split_at_mut(left.len().min(PIECE_BYTES - from));
            match *self.pieces.get(at / PIECE_BYTES).ok_or(io::ErrorKind::UnexpectedEof)? {
                ERASED => part.fill(0xFF),
                piece => part.copy_from_slice(&self.bytes[piece as usize * PIECE_BYTES + from..][..part.len()]),
            }
            at += part.len();
            left = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_in_the_images_is_found() {
        let case = |work| ImageCase { name: "", what: "", work };
        let (mapped, _) = images(&case(Work::Attach { volumes: 5, lebs: 7 }), 1, || 0.0);
        assert_eq!(mapped, 35);
        let (paths, _) = images(&case(Work::Walk { dirs: 8, files: 9 }), 1, || 0.0);
        assert_eq!(paths, 1 + 8 + 8 * 9);
    }

    #[test]
    fn a_sparse_image_reads_as_what_was_written() {
        let mut whole = vec![0xFF; 5 * PIECE_BYTES];
        whole[PIECE_BYTES + 1000..2 * PIECE_BYTES + 5].fill(7);
        let mut sparse = Sparse::default();
        sparse.write_all(&whole).expect("memory");
        assert_eq!(sparse.bytes.len(), 2 * PIECE_BYTES);
        for (offset, len) in [(0, 5 * PIECE_BYTES), (2000, 1000), (3 * PIECE_BYTES, 10)] {
            let mut out = vec![0; len];
            sparse.read_exact_at(offset as u64, &mut out).expect("within");
            assert!(out == whole[offset..offset + len], "{offset}");
        }
        assert!(sparse.read_exact_at(5 * PIECE_BYTES as u64 - 1, &mut [0; 2]).is_err());
    }
}
