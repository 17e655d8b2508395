// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU of the host: a lone request pays for its submission, its interrupt and its completion; many at once are limited
//! by their core, join interrupts, and gain by another core and by a faster clock.

use readpath_device::DeviceConfig;
use readpath_flash::Lean;
use readpath_host::{HostConfig, HostCores};
use readpath_kit::Ns;
use readpath_run::Runner;
use readpath_stack::{NoData, Typed};
use readpath_testkit::{DELAYS, device, job, run, start};
use readpath_workload::{IoKind, Stream};

const BLOCKS: u32 = 8 * 1024;
/// Cycles of 1 ns each.
const CORES: HostCores =
    HostCores { submit_cycles: 3_001, complete_cycles: 2_003, interrupt_cycles: 4_007, ..HostCores::FREE };

/// A device that is much faster than a core: nothing was ever written, so no read touches flash.
fn fast() -> DeviceConfig {
    let mut c = device(BLOCKS);
    c.firmware.buffer_read = Ns(11);
    (c.link.request, c.link.response, c.link.block) = (Ns(5), Ns(7), Ns(13));
    c
}

/// Nanoseconds for each of 20,000 reads, by `jobs` at `depth`; and the mean latency of the first job.
fn per_read(cores: HostCores, jobs: u32, depth: u32) -> (f64, f64) {
    let host = HostConfig { cores: Some(cores), slots: 64, ..HostConfig::LINUX };
    let (mut stack, now) = start::<Lean, NoData, Typed>(&fast(), host, |_| ());
    let each = 20_000 / u64::from(jobs);
    let stream = |seed| Stream::uniform_reads(0, BLOCKS, 1, seed).expect("a possible stream");
    let jobs = (0..jobs).map(|n| job(stream(u64::from(n)), depth, each)).collect();
    let stats = run(&mut stack, &mut Runner::new(now), jobs);
    assert_eq!(stats.ios, 20_000, "each request is counted once");
    let latency = stats.jobs[0].of(IoKind::Read).latency.mean();
    ((stats.end - stats.start).0 as f64 / stats.ios as f64, latency)
}

#[test]
fn a_lone_request_pays_for_all_its_cycles() {
    let device = (DELAYS.to_link + DELAYS.from_link).0 + 5 + 11 + 13 + 7;
    let cycles = CORES.time_alone().0;
    assert_eq!(cycles, 3_001 + 2_003 + 4_007);
    let (apart, latency) = per_read(CORES, 1, 1);
    assert_eq!((apart, latency), ((device + cycles) as f64, (device + cycles) as f64));
    // Two cores do not help one thread.
    assert_eq!(per_read(HostCores { count: 2, ..CORES }, 1, 1).0, apart);
    // At twice the clock, cycles take half of the time.
    let faster = per_read(HostCores { mhz: 2000, ..CORES }, 1, 1).0;
    assert!((apart - faster - cycles as f64 / 2.0).abs() <= 1.5, "{apart} {faster}");
}

/// Each block costs cycles of the core before the device hears of the request.
#[test]
fn each_block_that_is_moved_costs_cycles() {
    let per_page = HostCores { page_cycles: 1_009, ..CORES };
    let latency = |cores, blocks, device: &DeviceConfig| {
        let host = HostConfig { cores: Some(cores), ..HostConfig::LINUX };
        let (mut stack, now) = start::<Lean, NoData, Typed>(device, host, |_| ());
        let stream = Stream::uniform_reads(0, BLOCKS, blocks, 1).expect("a possible stream");
        let stats = run(&mut stack, &mut Runner::new(now), vec![job(stream, 1, 100)]);
        stats.jobs[0].of(IoKind::Read).latency.mean()
    };
    let slow = || {
        let mut c = fast();
        c.firmware.buffer_read = Ns(1_000_003);
        c
    };
    // Pages of all commands but the first are mapped while the device works; a fast one is done before.
    let first = HostConfig::LINUX.max_transfer_blocks;
    for (device, blocks, paid) in
        [(fast(), 1, 1), (fast(), 2, 2), (fast(), first, first), (slow(), 2 * first + 3, first)]
    {
        let more = latency(per_page, blocks, &device) - latency(CORES, blocks, &device);
        assert!((more - 1_009.0 * f64::from(paid)).abs() < 1e-6, "{blocks} blocks: {more} ns");
    }
    let long = 3 * first;
    assert!(latency(per_page, long, &fast()) > 1_009.0 * f64::from(long), "the core is busy with all pages");
}

#[test]
fn many_requests_are_limited_by_their_cores_and_join_interrupts() {
    let serial = f64::from(CORES.submit_cycles + CORES.complete_cycles);
    let near = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 0.02, "{got} ns per read, not {want}");
    // The core is never idle, so that hardly a completion finds it without another one.
    near(per_read(CORES, 1, 32).0, serial);
    near(per_read(CORES, 2, 16).0, serial);
    near(per_read(HostCores { count: 2, ..CORES }, 2, 16).0, serial / 2.0);
    // One thread stays on its core.
    near(per_read(HostCores { count: 2, ..CORES }, 1, 32).0, serial);
    // By Little's law.
    near(per_read(CORES, 1, 32).1, 32.0 * serial);
}
