// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benches of the simulator itself: fixed runs, timed by a clock that the caller brings. They check nothing.

mod images;
mod parse;
mod reuse;
mod steady;
mod ubi;

use readpath_config::{DevicePreset, device, presets};
use readpath_device::{Layout, ZoneConfig, ZoneLayout, ZoneRule};
use readpath_flash::Lean;
use readpath_hci::Registers;
use readpath_host::{HostConfig, HpbOptions};
use readpath_kit::Ns;
use readpath_run::{ExecuteError, LUN, Runner};
use readpath_stack::{AnyWire, NoData, Stack, Typed, Wire};
use readpath_workload::{Ends, IoKind, Job, Limits, Offsets, Phase, Stream, StreamSpec, Think, Zbd};

pub use images::{IMAGES, ImageCase, images};
pub use parse::{PARSES, ParseCase, parse};
pub use reuse::{REUSES, ReuseCase, reuse};
pub use steady::{STEADY, SteadyCase, SteadyOutput, steady};
pub use ubi::{LOOKUPS, LookupCase, lookups};

/// A fixed run.
#[derive(Clone, Copy, Debug)]
pub struct BenchCase {
    /// Name.
    pub name: &'static str,
    /// Description.
    pub what: &'static str,
    preset: &'static str,
    gib: u32,
    depth: u32,
    hpb: bool,
    lu_gib: Option<u32>,
    /// Requests cross through the registers of a host controller.
    registers: bool,
    /// The unit has zones.
    zoned: Option<Zoned>,
}

/// What is done with a unit that has zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Zoned {
    Reads,
    /// Each job writes zones of its own in order, and resets those that are full.
    Writes,
}

const fn case(name: &'static str, what: &'static str, gib: u32, depth: u32, hpb: bool) -> BenchCase {
    BenchCase { name, what, preset: "ufs21-64g", gib, depth, hpb, lu_gib: None, registers: false, zoned: None }
}

/// Zones of 128 MiB.
const ZONES: ZoneConfig = ZoneConfig {
    layout: ZoneLayout::PowerOfTwo,
    blocks: ZONE_BLOCKS,
    most_open: 6,
    rule: ZoneRule::Zbc,
    program_blocks: 48,
    flush_blocks: 48,
};
const ZONE_BLOCKS: u32 = 1 << 15;

/// All benches.
pub const BENCHES: &[BenchCase] = &[
    case("qd1-sram-hit", "1 GiB at queue depth 1, map in SRAM", 1, 1, false),
    case("qd1-hpb-hit", "16 GiB at queue depth 1, HPB", 16, 1, true),
    case("qd16-hpb-hit", "16 GiB at queue depth 16, HPB", 16, 16, true),
    BenchCase {
        registers: true,
        ..case("qd16-registers", "the same, through the registers of a host controller", 16, 16, true)
    },
    case("qd31-hpb-hit", "16 GiB at queue depth 31, HPB", 16, 31, true),
    case("qd16-sram-hit", "1 GiB at queue depth 16, map in SRAM", 1, 16, false),
    BenchCase {
        zoned: Some(Zoned::Reads),
        ..case("qd16-zones", "16 GiB of a unit with zones at queue depth 16", 16, 16, false)
    },
    BenchCase {
        zoned: Some(Zoned::Writes),
        ..case("zones-write", "zones of 16 GiB, 4 at a time, written in order", 16, 4, false)
    },
    case("qd16-miss", "29 GiB at queue depth 16, nearly every read misses the map cache", 29, 16, false),
    BenchCase {
        preset: "mqsim-64g",
        ..case("mqsim-qd1", "29 GiB at queue depth 1 on the device of the MQSim comparison", 29, 1, false)
    },
    BenchCase {
        preset: "mqsim-64g",
        ..case("mqsim-qd16", "29 GiB at queue depth 16 on the device of the MQSim comparison", 29, 16, false)
    },
    BenchCase {
        preset: "ufs40-512g",
        ..case("512g-miss", "480 GiB of a 512 GiB device at queue depth 16", 480, 16, false)
    },
    BenchCase {
        lu_gib: Some(1024),
        ..case("1t-miss", "960 GiB of a 1 TiB device at queue depth 16, nearly every read misses", 960, 16, false)
    },
];

/// Benches whose cost should depend neither on how long they run nor on how large the device is.
pub const FLAT: &[BenchCase] = &[
    case("flat-hpb-64g", "16 GiB at queue depth 1, HPB, on a 64 GiB device", 16, 1, true),
    BenchCase {
        lu_gib: Some(1024),
        ..case("flat-hpb-1t", "16 GiB at queue depth 1, HPB, on a 1 TiB device", 16, 1, true)
    },
    case("flat-miss-64g", "60 GiB at queue depth 16 on a 64 GiB device, nearly every read misses", 60, 16, false),
    BenchCase {
        lu_gib: Some(1024),
        ..case("flat-miss-1t", "960 GiB at queue depth 16 on a 1 TiB device, nearly every read misses", 960, 16, false)
    },
];

/// A device that is made and filled.
#[derive(Clone, Copy, Debug)]
pub struct StartCase {
    /// Name.
    pub name: &'static str,
    /// Description.
    pub what: &'static str,
    layout: Layout,
    device: BenchCase,
}

const fn start_case(name: &'static str, what: &'static str, layout: Layout, lu_gib: Option<u32>) -> StartCase {
    StartCase { name, what, layout, device: BenchCase { lu_gib, ..case("", "", 0, 1, false) } }
}

const fn start_of_zones(name: &'static str, what: &'static str, gib: u32, lu_gib: Option<u32>) -> StartCase {
    let device = BenchCase { lu_gib, zoned: Some(Zoned::Reads), ..case("", "", gib, 1, false) };
    StartCase { name, what, layout: Layout::Sequential, device }
}

/// All starts.
pub const STARTS: &[StartCase] = &[
    start_case("start-64g-seq", "64 GiB device, written in ascending order", Layout::Sequential, None),
    start_case("start-64g-rand", "64 GiB device, written in random order", Layout::Random, None),
    start_case("start-1t-seq", "1 TiB device, written in ascending order", Layout::Sequential, Some(1024)),
    start_case("start-1t-rand", "1 TiB device, written in random order", Layout::Random, Some(1024)),
    start_of_zones("start-64g-zbd", "64 GiB device, 48 GiB of zones written", 48, None),
    start_of_zones("start-1t-zbd", "1 TiB device, 800 GiB of zones written", 800, Some(1024)),
];

/// Makes a device, fills its whole logical unit and lets the host find it; returns the seconds that `clock` counted and
/// the most bytes of this process that the device may take for each logical block of 4 KiB.
pub fn start(case: &StartCase, clock: impl Fn() -> f64) -> Result<(f64, f64), ExecuteError> {
    let preset = bench_preset(&case.device);
    let blocks = preset.device.lus[usize::from(LUN)].blocks;
    let begin = clock();
    let mut stack =
        Stack::<Lean, NoData, (), Typed>::new(&preset.device, preset.host, preset.delays, NoData, (), Typed)?;
    stack.precondition(LUN, 0, blocks, case.layout, 1).map_err(|_| ExecuteError::Precondition { blocks })?;
    stack.start(Ns::ZERO)?;
    let seconds = clock() - begin;
    Ok((seconds, stack.device.process_bytes() as f64 / f64::from(blocks)))
}

/// Runs a bench of `ios` uniform reads of 4 KiB after a warm-up of a quarter of them; returns how many ended and the
/// seconds that `clock` counted.
pub fn run(bench: &BenchCase, ios: u64, clock: impl Fn() -> f64) -> Result<(u64, f64), ExecuteError> {
    if bench.registers {
        return run_on(bench, ios, Registers::default(), clock);
    }
    run_on(bench, ios, AnyWire::new(false), clock)
}

fn run_on<W: Wire>(bench: &BenchCase, ios: u64, wire: W, clock: impl Fn() -> f64) -> Result<(u64, f64), ExecuteError> {
    let preset = bench_preset(bench);
    // The CPU of a modelled host is not what these benches measure.
    let host = HostConfig { hpb: bench.hpb.then(HpbOptions::default), cores: None, ..preset.host };
    let mut stack = Stack::<Lean, NoData, (), W>::new(&preset.device, host, preset.delays, NoData, (), wire)?;
    let blocks = bench.gib << 18;
    if bench.zoned != Some(Zoned::Writes) {
        stack.precondition(LUN, 0, blocks, Layout::Sequential, 1).map_err(|_| ExecuteError::Precondition { blocks })?;
    }
    let ready = stack.start(Ns::ZERO)?;
    let mut runner = Runner::new(ready);
    runner.phase(&mut stack, &mut phase(bench, blocks, ios / 4, 1), &mut ())?;
    let mut measured = phase(bench, blocks, ios, 2);
    let start = clock();
    let stats = runner.phase(&mut stack, &mut measured, &mut ())?;
    Ok((stats.ios, clock() - start))
}

fn bench_preset(bench: &BenchCase) -> DevicePreset {
    let builtin = presets().iter().find(|p| p.name == bench.preset).expect("a built-in preset");
    let mut preset = device::parse(builtin.text, builtin.file).expect("built-in presets are valid");
    if let Some(gib) = bench.lu_gib {
        let old = preset.device.lus[0].blocks >> 18;
        preset.device.lus[0].blocks = gib << 18;
        // Seven percent more than in proportion, for the map and the spare superblocks that do not grow in proportion.
        preset.device.geometry.blocks_per_plane = preset.device.geometry.blocks_per_plane / old * gib * 107 / 100;
    }
    if bench.zoned.is_some() {
        preset.device.hpb = None;
        let lu = &mut preset.device.lus[0];
        (lu.hpb, lu.max_active_regions) = (false, 0);
        (lu.blocks, lu.zones) = (bench.gib << 18, Some(ZONES));
    }
    preset
}

fn phase(bench: &BenchCase, blocks: u32, ios: u64, seed: u64) -> Phase {
    if bench.zoned != Some(Zoned::Writes) {
        return jobs(bench, ios, |i| Stream::uniform_reads(0, blocks, 1, seed * 1000 + i).expect("a valid range"));
    }
    let spec = StreamSpec::plain(IoKind::Write, 0, blocks, 1, Offsets::Sequential);
    let mut phase = jobs(bench, ios, |i| Stream::new(&spec, seed * 1000 + i).expect("a valid range"));
    let of_each = blocks / ZONE_BLOCKS / bench.depth;
    for (i, job) in (0..).zip(&mut phase.jobs) {
        job.zbd = Some(Zbd {
            zones: (i * of_each, (i + 1) * of_each),
            random: false,
            writes: true,
            most_open: bench.depth,
            job_most_open: 1,
            resets: None,
            again: true,
            read_beyond_wp: false,
        });
    }
    phase
}

/// `ios` requests shared by as many jobs with one request in flight as the bench is deep.
fn jobs(bench: &BenchCase, ios: u64, stream: impl Fn(u64) -> Stream) -> Phase {
    let jobs = (0..u64::from(bench.depth))
        .map(|i| Job {
            name: format!("job.{i}"),
            group: 0,
            lun: 0,
            iodepth: 1,
            limits: Limits { ios: Some(ios / u64::from(bench.depth)), ..Limits::default() },
            ramp: Ns::ZERO,
            start_delay: Ns::ZERO,
            think: Think::default(),
            rate_bytes: [None; 3],
            poisson: None,
            zbd: None,
            flow: None,
            ends: Ends::Itself,
            stream: stream(i),
            fio: Default::default(),
        })
        .collect();
    Phase { name: "bench".into(), jobs }
}
