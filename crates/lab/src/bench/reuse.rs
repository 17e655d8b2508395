// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benches of the curves of map hits: reads of a number of map pages, some more often than others.

use readpath_kit::Prng;
use readpath_workload::IoKind;
use readpath_workload::trace::Request;
use readpath_workload::trace::mrc::MapReuse;

/// Curves to be measured.
#[derive(Clone, Copy, Debug)]
pub struct ReuseCase {
    /// Name.
    pub name: &'static str,
    /// Description.
    pub what: &'static str,
    pages: u64,
    sample: Option<usize>,
}

/// All benches of map hits.
pub const REUSES: &[ReuseCase] = &[
    ReuseCase { name: "mrc-4k-pages", what: "curve of map hits, 4,096 map pages", pages: 1 << 12, sample: None },
    ReuseCase { name: "mrc-64k-pages", what: "the same, 65,536 map pages", pages: 1 << 16, sample: None },
    ReuseCase { name: "mrc-sample", what: "the same, a sample of 4,096", pages: 1 << 16, sample: Some(1 << 12) },
];

const SPAN: u64 = 4 << 20;

/// Runs `requests` requests; returns the seconds by `clock`, and the memory at the end in bytes.
pub fn reuse(case: &ReuseCase, requests: u64, clock: impl Fn() -> f64) -> (f64, u64) {
    let mut rng = Prng::stream(1, "reuse bench", 0);
    let spread = |unit: f64| (case.pages as f64 * unit * unit) as u64;
    let offsets: Vec<u64> = (0..requests).map(|_| spread(rng.unit_f64()) * SPAN).collect();
    let begin = clock();
    let mut reuse = MapReuse::new(&[SPAN], case.sample, u64::MAX);
    for offset in offsets {
        // There is no limit.
        let _ = reuse.add(&Request { kind: IoKind::Read, offset, bytes: 4096, ..Request::NONE });
    }
    (clock() - begin, reuse.bytes())
}
