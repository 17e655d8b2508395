// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small workload of our own for the comparison of policies where there are no recorded traces: applications that are
//! started in turn. It is made up, to be easy to reason about, and resembles no particular telephone.

use readpath_kit::Prng;
use readpath_workload::trace::{Loaded, Options, Prepare, Reader};
use std::fmt::Write;
use std::io::Cursor;
use std::sync::Arc;

/// Name of the case.
pub const NAME: &str = "applications";
const APPLICATIONS: u64 = 24;
const ROUNDS: u64 = 6;
/// Areas of 16 MiB: what each application has to itself, and what all share.
const OWN: u64 = 24;
const SHARED: u64 = 32;
const AREA_BLOCKS: u64 = 4096;
/// Reads of one block that a start makes, and how far apart they are.
const READS: u64 = 800;
const READ_NS: u64 = 250_000;
/// Time between two starts.
const START_NS: u64 = 400_000_000;

/// The trace for a device of `device_blocks` blocks: 24 applications, each started six times in turn; 30 % of the reads
/// concern what all share, 3 % of the requests write.
///
/// # Errors
/// When the device has no room for it: 9.5 GiB.
pub fn applications(device_blocks: u32, seed: u64) -> Result<Arc<Loaded>, String> {
    let mut text = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n".to_owned();
    let mut rng = Prng::stream(seed, "applications", 0);
    for round in 0..ROUNDS {
        for application in 0..APPLICATIONS {
            let start = (round * APPLICATIONS + application) * START_NS;
            let first_area = SHARED + application * OWN;
            for read in 0..READS {
                // A start goes through what belongs to it in the same order each time, and looks back now and then.
                let area = match rng.below(10) {
                    0..3 => rng.below(SHARED) * rng.below(SHARED) / SHARED,
                    3..8 => first_area + read * OWN / READS,
                    _ => first_area + rng.below(read * OWN / READS + 1),
                };
                let block = area * AREA_BLOCKS + rng.below(AREA_BLOCKS);
                let op = if rng.below(100) < 3 { 'W' } else { 'R' };
                let time = start + read * READ_NS;
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{time},{op},{},4096,,", block * 4096);
            }
        }
    }
    let reader = Reader::new(NAME, Box::new(Cursor::new(text.into_bytes())), &Options::default());
    let mut requests =
        Prepare::new(device_blocks).requests(NAME, reader.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    Loaded::load(&mut requests, 1 << 20).map(Arc::new).map_err(|e| e.to_string())
}
