// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real recordings. Ours, small and always here: random and sequential reads and writes of a file, recorded for three
//! seconds in three formats. Published ones, where the folder that READPATH_TRACES names has them; they are other
//! people's and not in this project. The figures were counted with other tools.

use readpath_workload::trace::{Analysis, Compression, Format, Options, Reader};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A recording and its known figures.
struct Known {
    file: &'static str,
    format: Format,
    reads: u64,
    writes: u64,
    /// Whether rows are out of order.
    inversions: bool,
    /// End of the last byte.
    highest: u64,
}

const fn known(file: &'static str, format: Format, counts: [u64; 2], inversions: bool, highest: u64) -> Known {
    Known { file, format, reads: counts[0], writes: counts[1], inversions, highest }
}

const OWN: [Known; 3] = [
    known("own_mobile.csv.gz", Format::Mobile, [1_083, 483], false, 4_190_208),
    known("own_cloudphysics.csv.gz", Format::CloudPhysics, [1_083, 483], false, 4_190_208),
    known("own_msr.csv", Format::MsrCambridge, [287, 113], false, 4_190_208),
];

const PUBLISHED: [Known; 7] = [
    known("mobile/genshin_impact_exec.csv.gz", Format::Mobile, [81_697, 9_620], true, 249_389_352 * 512),
    known("mobile/genshin_impact_precond.csv.gz", Format::Mobile, [0, 141_152], false, 249_175_856 * 512),
    known("mobile/telegram_exec.csv.gz", Format::Mobile, [24_094, 227_785], false, 249_560_880 * 512),
    known("mobile/telegram_precond.csv.gz", Format::Mobile, [0, 5_320], false, 154_498_504 * 512),
    known("block/cloudphysics.csv.gz", Format::CloudPhysics, [46_974, 66_898], false, 33_584_938_496),
    known("block/msr-cambridge1-sample.csv", Format::MsrCambridge, [508, 492], false, 13_575_029_248),
    known("block/systor17-traces-sample.csv.gz", Format::Systor17, [826, 173], true, 5_029_321_633_280),
];

/// Said past the test harness, which keeps the output of tests that pass.
fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

#[test]
fn our_own_recordings() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    OWN.iter().for_each(|known| check(known, File::open(folder.join(known.file)).expect("it is in the project")));
}

#[test]
fn published_traces() {
    let Some(folder) = std::env::var_os("READPATH_TRACES").map(PathBuf::from).filter(|p| p.is_dir()) else {
        skip("READPATH_TRACES names no folder with published traces; only our own were read");
        return;
    };
    for known in &PUBLISHED {
        let path = folder.join(known.file);
        match File::open(&path) {
            Ok(file) => check(known, file),
            Err(_) => skip(&format!("{} is not there", path.display())),
        }
    }
}

fn check(known: &Known, file: File) {
    let name = known.file;
    let mut reader = Reader::new(name, Box::new(file), &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(reader.format(), known.format, "{name}");
    assert_eq!(reader.compression() == Compression::Gzip, name.ends_with(".gz"));
    let mut analysis = Analysis::new(&Analysis::MAP_SPANS, Analysis::LIMIT_BYTES).unwrap();
    for request in reader.by_ref() {
        analysis.add(&request.unwrap_or_else(|e| panic!("{e}"))).unwrap_or_else(|e| panic!("{e}"));
    }
    let info = analysis.finish();
    assert_eq!([info.kinds[0].requests, info.kinds[1].requests], [known.reads, known.writes], "{name}");
    assert_eq!(reader.summary().requests, known.reads + known.writes);
    assert_eq!(reader.summary().inversions > 0, known.inversions, "{name}");
    assert_eq!(info.footprint.highest, known.highest, "{name}");
    assert_eq!(reader.summary().skips.total(), 0);
}
