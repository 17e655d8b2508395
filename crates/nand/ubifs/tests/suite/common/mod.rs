// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dumps, manifests and recorded streams that tests of this crate share.

pub mod patient;

use readpath_ubi::attach::Options;
use readpath_ubi::mtd::{Geometry, Image, ReadAt};
use readpath_ubi::{NoCache, Ubi};
use readpath_ubifs::{FileType, Inode, LebError, LebSizes, Lebs, MountMode, ReadKind, Recorder, UbiVolume, Ubifs};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The device of the recorded dumps: 64 MiB of SLC with 2 KiB pages.
pub const SLC: Geometry = Geometry { peb_bytes: 128 << 10, page_bytes: 2048, subpage_bytes: 512, pebs: 512 };

/// Where data begins in an erase block of that device.
pub const SLC_DATA_OFFSET: u32 = 2048;

/// The three dumps: name of the dump, name of its recordings.
pub const DUMPS: [(&str, &str); 3] = [("fx", "pristine"), ("fxj", "journal"), ("fxu", "unclean")];

pub type Volume = UbiVolume<Image<Vec<u8>>, NoCache>;

fn file(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn unpack(path: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    liblzma::read::XzDecoder::new(&file(path)[..]).read_to_end(&mut bytes).expect("an xz file");
    bytes
}

/// A dump, unpacked once for all tests of a file.
pub fn dump(name: &str) -> Vec<u8> {
    static UNPACKED: Mutex<BTreeMap<String, Arc<Vec<u8>>>> = Mutex::new(BTreeMap::new());
    let mut unpacked = UNPACKED.lock().unwrap_or_else(PoisonError::into_inner);
    let made = || Arc::new(unpack(&format!("../ubi/tests/data/{name}.mtd.xz")));
    let dump = Arc::clone(unpacked.entry(name.to_owned()).or_insert_with(made));
    drop(unpacked);
    dump.to_vec()
}

/// The first volume of an image.
pub fn volume<R: ReadAt>(image: R, geometry: Geometry) -> UbiVolume<Image<R>, NoCache> {
    let image = Image::new(image, geometry).expect("an image of this device");
    let ubi = Ubi::attach(image, NoCache, &Options::image()).expect("an image of UBI");
    UbiVolume::new(ubi, 0).expect("volume 0")
}

/// The volume of a dump.
pub fn dump_volume(name: &str) -> Volume {
    volume(dump(name), SLC)
}

/// Blocks whose reads a test checks in advance: `before` gets block and bytes, and may refuse them.
pub struct Watched<L, F> {
    pub inner: L,
    pub before: F,
}

impl<L: Lebs, F: FnMut(&L, u32, usize) -> Result<(), LebError>> Lebs for Watched<L, F> {
    fn sizes(&self) -> LebSizes {
        self.inner.sizes()
    }

    fn peb(&self, lnum: u32) -> Option<u32> {
        self.inner.peb(lnum)
    }

    fn read(&mut self, lnum: u32, offset: u32, buf: &mut [u8], what: ReadKind) -> Result<(), LebError> {
        (self.before)(&self.inner, lnum, buf.len())?;
        self.inner.read(lnum, offset, buf, what)
    }
}

/// A dump, mounted; every read is recorded.
pub fn mount(name: &str, mode: MountMode) -> Ubifs<Recorder<Volume>> {
    Ubifs::mount(Recorder::new(dump_volume(name)), mode).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The kernel's listing of a dump: `path|type|size|mode|nlink|ino|rdev|sha256 or link target`.
pub fn manifest(name: &str) -> Vec<String> {
    manifest_of(&format!("fx_{name}"))
}

/// The listing in a file.
pub fn manifest_of(file: &str) -> Vec<String> {
    let text = String::from_utf8(unpack(&format!("tests/data/{file}.manifest.xz"))).expect("text");
    text.lines().map(str::to_owned).collect()
}

/// A read of a logical block in a recording: block, byte in it, bytes, purpose.
pub type Recorded = (u32, u32, u32, String);

/// The reads of logical blocks in a recording, without writes and erases.
pub fn recording(name: &str) -> Vec<Recorded> {
    reads_of(&recording_text(name), SLC_DATA_OFFSET)
}

fn recording_text(name: &str) -> String {
    let mut text = String::new();
    let packed = file(&format!("tests/data/fx_{name}.csv.gz"));
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("a gzip file");
    text
}

/// The reads of logical blocks in the text of a recording.
pub fn reads_of(text: &str, data_offset: u32) -> Vec<Recorded> {
    let reads = text.lines().filter_map(|line| line.strip_prefix("r,"));
    reads
        .map(|line| {
            let f: Vec<&str> = line.split(',').collect();
            let n = |i: usize| f[i].parse::<u32>().unwrap_or_else(|_| panic!("a number in {line}"));
            (n(3), n(1) - data_offset, n(2), f[4].to_owned())
        })
        .collect()
}

/// Number of reads of a recording from an erase block other than the dump's for that logical block.
pub fn moved<L: Lebs>(name: &str, fs: &mut Ubifs<Recorder<L>>) -> usize {
    let text = recording_text(name);
    let reads = text.lines().filter_map(|line| line.strip_prefix("r,"));
    let elsewhere = reads.filter(|line| {
        let f: Vec<&str> = line.split(',').collect();
        fs.lebs().peb(f[3].parse().expect("a number")) != f[0].parse().ok()
    });
    elsewhere.count()
}

/// Reads since the last call.
pub fn taken<L: Lebs>(fs: &mut Ubifs<Recorder<L>>) -> Vec<Recorded> {
    fs.lebs().take().iter().map(|r| (r.lnum, r.offset, r.len, r.what.name().to_owned())).collect()
}

/// Compares reads; shows the first difference with its surroundings.
pub fn assert_same(name: &str, made: &[Recorded], recorded: &[Recorded]) {
    let n = made.iter().zip(recorded).take_while(|(a, b)| a == b).count();
    if n < made.len().max(recorded.len()) {
        let around = |r: &[Recorded]| format!("{:#?}", &r[n.saturating_sub(4).min(r.len())..(n + 6).min(r.len())]);
        panic!(
            "{name}: {n} reads are equal, then (of {} made and {} recorded) made {} recorded {}",
            made.len(),
            recorded.len(),
            around(made),
            around(recorded)
        );
    }
}

/// The bytes of a file, holes included.
pub fn bytes_of<L: Lebs>(fs: &mut Ubifs<L>, inode: &Inode) -> Vec<u8> {
    let mut all = Vec::new();
    let read = fs.read_file(inode, |bytes| -> readpath_ubifs::Result<()> {
        all.extend_from_slice(bytes);
        Ok(())
    });
    read.unwrap_or_else(|e| panic!("inode {}: {e}", inode.ino));
    all
}

/// SHA-256, as hexadecimal text.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// The lines of a manifest, made from a mounted volume and sorted.
pub fn listing<L: Lebs>(fs: &mut Ubifs<L>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut todo = vec![(".".to_owned(), 1)];
    while let Some((path, ino)) = todo.pop() {
        let inode = fs.inode(ino).unwrap_or_else(|e| panic!("{path}: {e}"));
        let kind = inode.file_type().expect("a type");
        let (kind_name, last) = match kind {
            FileType::Regular if inode.size == 0 => ("regular empty file", sha256(&bytes_of(fs, &inode))),
            FileType::Regular => (kind.name(), sha256(&bytes_of(fs, &inode))),
            FileType::Symlink => (kind.name(), String::from_utf8_lossy(&inode.data).into_owned()),
            FileType::Block => ("block special file", "-".to_owned()),
            FileType::Character => ("character special file", "-".to_owned()),
            _ => (kind.name(), "-".to_owned()),
        };
        let (major, minor) = inode.device().unwrap_or_default();
        let Inode { size, nlink, .. } = inode;
        let mode = inode.mode & 0o7777;
        lines.push(format!("{path}|{kind_name}|{size}|{mode:o}|{nlink}|{ino}|{major:x}:{minor:x}|{last}"));
        if kind == FileType::Directory {
            for entry in fs.read_dir(ino).unwrap_or_else(|e| panic!("{path}: {e}")) {
                todo.push((format!("{path}/{}", String::from_utf8_lossy(&entry.name)), entry.target as u32));
            }
        }
    }
    lines.sort();
    lines
}
