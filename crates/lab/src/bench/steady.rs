// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bench in which garbage collection is at work as it is in a device that has been in use for long. It knows that
//! this takes many writes, and when they were enough.

use super::{BenchCase, bench_preset, case};
use readpath_device::Layout;
use readpath_flash::Lean;
use readpath_run::{ExecuteError, LUN, Runner};
use readpath_stack::{AnyWire, NoData, Stack};
use readpath_workload::{IoKind, Kinds, Offsets, Phase, Stream, StreamSpec};

/// Random reads and writes on a device that collects garbage.
#[derive(Clone, Copy, Debug)]
pub struct SteadyCase {
    /// Device, range and queue depth.
    pub bench: BenchCase,
    read_percent: u8,
}

/// All of them: what is not in the range is spare room for garbage collection.
pub const STEADY: &[SteadyCase] = &[
    mixed(
        "mix-70-30-gc",
        "70 % reads of 63 of 64 GiB, queue depth 16, collection in steady state: tables, 4 victims together",
        63,
    ),
    mixed("mix-70-30-gc-57g", "the same in 57 of 64 GiB", 57),
    mixed("mix-70-30-gc-52g", "the same in 52 of 64 GiB", 52),
    SteadyCase {
        bench: BenchCase {
            preset: "ufs40-512g",
            ..case("mix-70-30-slc", "the same in 16 of 512 GiB, with a cache in SLC mode", 16, 16, false)
        },
        read_percent: 70,
    },
];

const fn mixed(name: &'static str, what: &'static str, gib: u32) -> SteadyCase {
    SteadyCase { bench: case(name, what, gib, 16, false), read_percent: 70 }
}

/// What a bench in steady state gave.
#[derive(Clone, Copy, Debug)]
pub struct SteadyOutput {
    /// Requests of the fastest repetition.
    pub ios: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Data, moved data and padding programmed, over data of the host, in all repetitions.
    pub write_amplification: f64,
    /// Blocks written before, in multiples of the range.
    pub passes_before: f64,
    /// Requests of all kinds that were simulated.
    pub simulated_ios: u64,
}

/// Write amplification is steady when two windows, each a quarter of the range, differ by no more than this.
const STEADY_WITHIN: f64 = 0.01;
/// Windows at least, one pass over the range, and at most.
const WINDOWS: std::ops::RangeInclusive<u64> = 4..=64;

/// Fills the range, overwrites it at random until write amplification is steady, and then runs `repeat` times `ios`
/// requests of the mix one after another, timed by `clock`. None if it was not steady after sixteen times the range.
///
/// # Errors
/// The device refused a request.
pub fn steady(
    case: &SteadyCase,
    ios: u64,
    repeat: u32,
    clock: impl Fn() -> f64,
) -> Result<Option<SteadyOutput>, ExecuteError> {
    let bench = &case.bench;
    let mut preset = bench_preset(bench);
    (preset.device.ftl.superblock_tables, preset.device.ftl.collect_together) = (true, 4);
    let wire = AnyWire::new(false);
    let mut stack =
        Stack::<Lean, NoData, (), AnyWire>::new(&preset.device, preset.host, preset.delays, NoData, (), wire)?;
    let blocks = bench.gib << 18;
    stack.precondition(LUN, 0, blocks, Layout::Random, 1).map_err(|_| ExecuteError::Precondition { blocks })?;
    let ready = stack.start(readpath_kit::Ns::ZERO)?;
    let mut runner = Runner::new(ready);
    let (mut simulated_ios, mut windows, mut before) = (0, 0, f64::INFINITY);
    loop {
        let start = *stack.device.stats();
        let written = u64::from(blocks) / 4;
        simulated_ios += runner.phase(&mut stack, &mut mix(bench, 0, written, windows), &mut ())?.ios;
        windows += 1;
        let now = stack.device.stats().since(&start).write_amplification().unwrap_or(0.0);
        if windows >= *WINDOWS.start() && (now - before).abs() <= STEADY_WITHIN * now {
            break;
        }
        if windows == *WINDOWS.end() {
            return Ok(None);
        }
        before = now;
    }
    let start = *stack.device.stats();
    let mut best = (0, f64::INFINITY);
    for i in 0..u64::from(repeat) {
        let mut phase = mix(bench, case.read_percent, ios, WINDOWS.end() + i);
        let begin = clock();
        let done = runner.phase(&mut stack, &mut phase, &mut ())?.ios;
        let seconds = clock() - begin;
        simulated_ios += done;
        if seconds / (done as f64) < best.1 / best.0 as f64 || best.0 == 0 {
            best = (done, seconds);
        }
    }
    Ok(Some(SteadyOutput {
        ios: best.0,
        seconds: best.1,
        write_amplification: stack.device.stats().since(&start).write_amplification().unwrap_or(0.0),
        passes_before: windows as f64 / 4.0,
        simulated_ios,
    }))
}

/// Uniform reads and writes of 4 KiB.
fn mix(bench: &BenchCase, read_percent: u8, ios: u64, seed: u64) -> Phase {
    let mut spec = StreamSpec::plain(IoKind::Write, 0, bench.gib << 18, 1, Offsets::Uniform);
    spec.kinds = Kinds::Mix(read_percent);
    super::jobs(bench, ios, |i| Stream::new(&spec, seed * 1000 + i).expect("a valid range"))
}
