// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images and recorded streams that tests of this crate share.

use readpath_ubi::mtd::{Geometry, Image};
use std::fs;
use std::io::Read;
use std::path::Path;

/// The device of the recorded dumps: 64 MiB of SLC with 2 KiB pages.
pub const SLC: Geometry = Geometry { peb_bytes: 128 << 10, page_bytes: 2048, subpage_bytes: 512, pebs: 512 };

fn data(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A dump, unpacked.
pub fn dump(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    liblzma::read::XzDecoder::new(&data(name)[..]).read_to_end(&mut bytes).expect("an xz file");
    bytes
}

/// A dump as a device of 512 blocks.
pub fn device(name: &str) -> Image<Vec<u8>> {
    Image::new(dump(name), SLC).expect("a dump of 64 MiB")
}

/// A recorded stream, line by line, without comments.
pub fn stream(name: &str) -> Vec<String> {
    unpack(&data(name))
}

/// Lines of a packed stream, without comments.
pub fn unpack(packed: &[u8]) -> Vec<String> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("a gzip file");
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}
