// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two traces to try the program with, drawn from a seed. They are synthetic: they have the shape of what a phone and
//! the server of a database ask for, but nobody recorded them, and nothing follows from their numbers.

use super::Request;
use crate::IoKind;
use crate::dist::Zipf;
use readpath_kit::{Ns, Prng};

const SEED: u64 = 1;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A part of the address space that is used together: a file, or a table.
#[derive(Clone, Copy)]
struct Extent {
    offset: u64,
    bytes: u64,
}

impl Extent {
    /// The first byte of a random range of `bytes` bytes that begins at a multiple of its own size.
    fn at(self, rng: &mut Prng, bytes: u64) -> u64 {
        self.offset + rng.below(self.bytes / bytes) * bytes
    }
}

/// A growing trace.
struct Maker {
    rng: Prng,
    now: u64,
    requests: Vec<Request>,
}

impl Maker {
    fn new(name: &str) -> Self {
        Maker { rng: Prng::stream(SEED, name, 0), now: 0, requests: Vec::new() }
    }

    /// Lets time pass: `mean` ns on average, exponentially distributed.
    fn wait(&mut self, mean: u64) {
        self.now += (-libm::log(1.0 - self.rng.unit_f64()) * mean as f64) as u64;
    }

    fn add(&mut self, process: u32, kind: IoKind, offset: u64, bytes: u64) -> &mut Request {
        let request = Request { time: Ns(self.now), kind, offset, bytes, process: Some(process), ..Request::NONE };
        self.requests.push(request);
        self.requests.last_mut().expect("it was just added")
    }
}

/// Some 47,000 requests of a phone in two minutes: apps are started one after the other, which reads 4 KiB here and
/// there in their files, some of it in longer pieces; then their user browses, which reads and writes a cache and a
/// database, and pauses. The files of 24 apps lie in 64 GiB, so a device of 64 GiB holds them.
pub fn phone() -> Vec<Request> {
    const APPS: u64 = 24;
    const FILES: u64 = 120;
    let mut maker = Maker::new("phone");
    let rng = &mut maker.rng;
    let mut file = |_| Extent { bytes: (256 * KIB) << rng.below(6), offset: 4 * GIB + rng.below(60 * KIB - 8) * MIB };
    let apps: Vec<Vec<Extent>> = (0..APPS).map(|_| (0..FILES).map(&mut file).collect()).collect();
    let popular = Zipf::new(APPS as u32, 0.6);
    let (cache, database) = (Extent { offset: GIB, bytes: 2 * GIB }, Extent { offset: 3 * GIB, bytes: 256 * MIB });
    let mut log = 0;
    for _ in 0..40 {
        let app = popular.sample(&mut maker.rng);
        let process = 1000 + app;
        let reads = 500 + maker.rng.below(500);
        let mut file = 0;
        for _ in 0..reads {
            if maker.rng.below(2) == 0 {
                file = maker.rng.below(FILES) as usize;
            }
            let bytes = [4, 4, 4, 4, 4, 4, 4, 16, 32, 128][maker.rng.below(10) as usize] * KIB;
            let offset = apps[app as usize][file].at(&mut maker.rng, bytes);
            maker.add(process, IoKind::Read, offset, bytes);
            // Several threads ask at about the same time.
            let burst = maker.rng.below(4) > 0;
            maker.wait(if burst { 40_000 } else { 1_500_000 });
        }
        for _ in 0..16 {
            for _ in 0..10 + maker.rng.below(30) {
                let offset = cache.at(&mut maker.rng, 4 * KIB);
                maker.add(process, IoKind::Read, offset, 4 * KIB);
                maker.wait(150_000);
            }
            for _ in 0..1 + maker.rng.below(4) {
                let offset = cache.at(&mut maker.rng, 16 * KIB);
                maker.add(process, IoKind::Write, offset, 16 * KIB);
            }
            // A transaction: pages of the database, and its log.
            let offset = database.at(&mut maker.rng, 4 * KIB);
            maker.add(process, IoKind::Write, offset, 4 * KIB);
            maker.add(process, IoKind::Write, 3 * GIB + 512 * MIB + log % (64 * MIB), 8 * KIB).fua = true;
            log += 8 * KIB;
            maker.wait(150_000_000);
        }
        maker.wait(1_000_000_000);
    }
    maker.requests
}

/// 100,000 requests of the server of a database in seven seconds: pages of 8 KiB are read from three tables of 1, 4 and
/// 20 GiB and seldom from an archive of 160 GiB, pages are written back, and every transaction ends with a write of the
/// log. Load comes in waves, so that requests queue.
pub fn server() -> Vec<Request> {
    const TABLES: [(u32, Extent); 4] = [
        (36, Extent { offset: 16 * GIB, bytes: GIB }),
        (28, Extent { offset: 32 * GIB, bytes: 4 * GIB }),
        (34, Extent { offset: 64 * GIB, bytes: 20 * GIB }),
        (2, Extent { offset: 200 * GIB, bytes: 160 * GIB }),
    ];
    let mut maker = Maker::new("server");
    let mut log = 0;
    while maker.requests.len() < 100_000 {
        let worker = 100 + maker.rng.below(32) as u32;
        let mut chance = maker.rng.below(100) as u32;
        let table = TABLES.iter().find(|(share, _)| {
            let found = chance < *share;
            chance = chance.saturating_sub(*share);
            found
        });
        let offset = table.expect("the shares are 100").1.at(&mut maker.rng, 8 * KIB);
        match maker.rng.below(100) {
            0..80 => _ = maker.add(worker, IoKind::Read, offset, 8 * KIB),
            80..95 => _ = maker.add(worker, IoKind::Write, offset, 8 * KIB),
            _ => {
                maker.add(99, IoKind::Write, 8 * GIB + log % GIB, 16 * KIB).fua = true;
                log += 16 * KIB;
            }
        }
        // A wave of 100 ms, in its first quarter four times as many as later.
        let busy = maker.now % 100_000_000 < 25_000_000;
        maker.wait(if busy { 30_000 } else { 120_000 });
    }
    maker.requests
}
