// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fast die scheduler against the exact one, through the whole stack: random reads at several depths, shares of map
//! misses and numbers of dies, with firmware so fast that dies and channels contend and with firmware as slow as that
//! of real devices; and reads mixed with writes.

use readpath_device::{DeviceConfig, Layout};
use readpath_flash::{DieSched, Exact, Lean};
use readpath_kit::Ns;
use readpath_run::Runner;
use readpath_stack::{NoData, Typed};
use readpath_testkit::{filled, job, run};
use readpath_workload::{IoKind, Kinds, Offsets, Stream, StreamSpec};

const READS: u64 = 60_000;

/// How many map pages the reads spread over, and how many of them fit into SRAM.
#[derive(Clone, Copy)]
struct Cache {
    pages: u32,
    frames: u32,
}

/// Shares of misses of about 0, 0.3 and 0.97; the last is as near to 1 as reads at a depth of 32 allow without waiting
/// for frames.
const CACHES: [Cache; 3] =
    [Cache { pages: 64, frames: 64 }, Cache { pages: 1024, frames: 717 }, Cache { pages: 1024, frames: 34 }];

struct Outcome {
    mean: f64,
    p99: f64,
    misses: f64,
}

fn device(dies: u32, cache: Cache, firmware: Ns) -> DeviceConfig {
    let mut config = readpath_testkit::device(cache.pages * 1024);
    config.geometry.dies_per_channel = dies / 2;
    config.geometry.pages_per_block = 256;
    config.geometry.blocks_per_plane = 2 * cache.pages;
    config.map_cache_bytes = cache.frames * 4096;
    config.firmware.flash_op = firmware;
    config
}

fn measure<S: DieSched>(dies: u32, depth: u32, cache: Cache, firmware: Ns, read_percent: u8) -> Outcome {
    let config = device(dies, cache, firmware);
    let blocks = config.lus[0].blocks;
    let (mut stack, now) = filled::<S, NoData, Typed>(&config, None, blocks, Layout::Random, 1);
    let mut runner = Runner::new(now);
    let uniform = Stream::uniform_reads(0, blocks, 1, 1).expect("a possible stream");
    run(&mut stack, &mut runner, vec![job(uniform, 8, 10_000)]);
    let before = *stack.device.stats();
    let mut spec = StreamSpec::plain(IoKind::Read, 0, blocks, 1, Offsets::Uniform);
    spec.kinds = Kinds::Mix(read_percent);
    let stream = Stream::new(&spec, 2).expect("a possible stream");
    let stats = run(&mut stack, &mut runner, vec![job(stream, depth, READS)]);
    let after = stack.device.stats();
    let misses = (after.map_misses - before.map_misses) as f64;
    let hits = (after.map_hits - before.map_hits) as f64;
    let latency = &stats.jobs[0].of(IoKind::Read).latency;
    Outcome { mean: latency.mean(), p99: latency.quantile(0.99) as f64, misses: misses / (misses + hits) }
}

fn percent(lean: f64, exact: f64) -> f64 {
    (lean / exact - 1.0) * 100.0
}

/// Compares every cell of the grid; returns the largest differences of mean and 99th percentile in percent.
fn grid(firmware: Ns, read_percent: u8) -> (f64, f64) {
    let mut table = format!("firmware {firmware}, {read_percent} % reads\n");
    table += "dies depth misses   exact mean  lean mean  diff %   exact p99   lean p99  diff %\n";
    let (mut worst_mean, mut worst_p99) = (0.0f64, 0.0f64);
    for dies in [4, 8, 16] {
        for cache in CACHES {
            for depth in [1, 4, 16, 32] {
                let exact = measure::<Exact>(dies, depth, cache, firmware, read_percent);
                let lean = measure::<Lean>(dies, depth, cache, firmware, read_percent);
                let (mean, p99) = (percent(lean.mean, exact.mean), percent(lean.p99, exact.p99));
                table += &format!(
                    "{dies:4} {depth:5} {:6.3} {:12.0} {:10.0} {mean:7.2} {:11.0} {:10.0} {p99:7.2}\n",
                    exact.misses, exact.mean, lean.mean, exact.p99, lean.p99
                );
                worst_mean = worst_mean.max(mean.abs());
                worst_p99 = worst_p99.max(p99.abs());
            }
        }
    }
    println!("{table}worst: mean {worst_mean:.2} %, p99 {worst_p99:.2} %");
    (worst_mean, worst_p99)
}

#[test]
fn reads_with_fast_firmware() {
    let (mean, p99) = grid(Ns(1_500), 100);
    assert!(mean < 3.0 && p99 < 4.0, "mean off by {mean:.2} %, p99 by {p99:.2} %");
}

#[test]
fn reads_with_slow_firmware() {
    let (mean, p99) = grid(Ns(13_000), 100);
    assert!(mean < 3.0 && p99 < 4.0, "mean off by {mean:.2} %, p99 by {p99:.2} %");
}

#[test]
fn reads_among_writes() {
    let (mean, p99) = grid(Ns(1_500), 70);
    assert!(mean <= 3.0 && p99 <= 4.0, "mean off by {mean:.2} %, p99 by {p99:.2} %");
}
