// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images, recorded streams and costs that tests of this crate share.

use readpath_ubi::cache::{Direct, Lines, PageCache, Rules};
use readpath_ubi::cost::CostModel;
use readpath_ubi::mtd::{Geometry, Image, Record, write_stream};
use readpath_ubi::preset::CostPreset;
use readpath_ubi::stream::{self, Limits, Outcome, Pressure, Setup, Stream};
use readpath_ubi::variant::Variant;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

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

/// The logged operations, line by line: op, block, offset and length.
pub fn places(log: &[Record]) -> Vec<String> {
    let mut text = Vec::new();
    write_stream(log, &mut text, |_| "").expect("memory");
    String::from_utf8(text).expect("text").lines().map(place).collect()
}

/// Op, block, offset and length of a line.
pub fn place(line: &str) -> String {
    line.split(',').take(4).collect::<Vec<_>>().join(",")
}

/// The folder of larger recordings, if READPATH_TRACES names one: that folder, or its subfolder with streams of UBI.
pub fn traces() -> Option<PathBuf> {
    let folder = std::env::var_os("READPATH_TRACES").map(PathBuf::from);
    if folder.is_none() {
        println!("SKIPPED: READPATH_TRACES does not name a folder of recorded streams");
    }
    folder.map(|f| if f.join("ubi").is_dir() { f.join("ubi") } else { f })
}

/// A recorded stream to be replayed.
pub fn load(path: &Path, page_bytes: u32) -> Stream {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut text = BufReader::new(flate2::read::MultiGzDecoder::new(file));
    let geometry = stream::Geometry::new(page_bytes, None).expect("a page");
    stream::load(&path.display().to_string(), &mut text, geometry, false, Limits::default())
        .unwrap_or_else(|e| panic!("{e}"))
}

/// Costs of reads of the published device, with pages of `page_bytes`.
pub fn costs(page_bytes: u32) -> CostModel {
    CostPreset::builtin("mlc-16k").expect("a preset").model(page_bytes)
}

/// The result of replaying records through a named cache.
pub fn replay(records: &[stream::Record], page_bytes: u32, cache: &str, lines: u32, pressure: &Pressure) -> Outcome {
    let variant = Variant::parse(cache, lines).unwrap_or_else(|e| panic!("{cache}: {e}"));
    let setup = Setup { variant, costs: costs(page_bytes), pressure };
    stream::run(records, &setup).unwrap_or_else(|e| panic!("{cache}: {e}"))
}

/// Costs of a small device with pages of 512 bytes and steps of 256.
pub const SMALL_COSTS: CostModel = CostModel {
    page_bytes: 512,
    step_bytes: 256,
    wait_fixed_ns: 100,
    wait_step_ns: 10,
    cpu_part_ns: 10,
    cpu_page_ns: 20,
    cpu_core_hit_ns: 0,
};

/// A cache of the last page read, for reads within one page that are shorter than it.
pub type OnePage = PageCache<Direct, Lines>;

pub fn one_page(page_bytes: u32) -> OnePage {
    let costs = CostModel { page_bytes, ..SMALL_COSTS };
    PageCache::new(Direct::new(1), Lines::new(page_bytes, 1), Rules::Patch, costs)
}
