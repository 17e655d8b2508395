// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published traces, where the folder that READPATH_TRACES names has them; they are other people's and not in this
//! project. The figures were counted with other tools.

use readpath_workload::trace::{Analysis, Compression, Format, Options, Reader};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// File, format, reads, writes, rows out of order, end of the last byte.
const TRACES: [(&str, Format, u64, u64, bool, u64); 7] = [
    ("mobile/genshin_impact_exec.csv.gz", Format::Mobile, 81_697, 9_620, true, 249_389_352 * 512),
    ("mobile/genshin_impact_precond.csv.gz", Format::Mobile, 0, 141_152, false, 249_175_856 * 512),
    ("mobile/telegram_exec.csv.gz", Format::Mobile, 24_094, 227_785, false, 249_560_880 * 512),
    ("mobile/telegram_precond.csv.gz", Format::Mobile, 0, 5_320, false, 154_498_504 * 512),
    ("block/cloudphysics.csv.gz", Format::CloudPhysics, 46_974, 66_898, false, 33_584_938_496),
    ("block/msr-cambridge1-sample.csv", Format::MsrCambridge, 508, 492, false, 13_575_029_248),
    ("block/systor17-traces-sample.csv.gz", Format::Systor17, 826, 173, true, 5_029_321_633_280),
];

/// Said past the test harness, which keeps the output of tests that pass.
fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

#[test]
fn published_traces() {
    let Some(folder) = std::env::var_os("READPATH_TRACES").map(PathBuf::from).filter(|p| p.is_dir()) else {
        skip("READPATH_TRACES names no folder with published traces; nothing was tested");
        return;
    };
    for (name, format, reads, writes, inversions, highest) in TRACES {
        let path = folder.join(name);
        let Ok(file) = File::open(&path) else {
            skip(&format!("{} is not there", path.display()));
            continue;
        };
        let mut reader = Reader::new(name, Box::new(file), &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(reader.format(), format, "{name}");
        assert_eq!(reader.compression() == Compression::Gzip, name.ends_with(".gz"));
        let mut analysis = Analysis::new(&Analysis::MAP_SPANS, Analysis::LIMIT_BYTES).unwrap();
        for request in reader.by_ref() {
            analysis.add(&request.unwrap_or_else(|e| panic!("{e}"))).unwrap_or_else(|e| panic!("{e}"));
        }
        let info = analysis.finish();
        assert_eq!([info.kinds[0].requests, info.kinds[1].requests], [reads, writes], "{name}");
        assert_eq!(reader.summary().requests, reads + writes);
        assert_eq!(reader.summary().inversions > 0, inversions, "{name}");
        assert_eq!(info.footprint.highest, highest, "{name}");
        assert_eq!(reader.summary().skips.total(), 0);
    }
}
