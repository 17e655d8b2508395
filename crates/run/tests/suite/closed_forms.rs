// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulator against formulas that do not need one: latencies at depth 1 are sums of stages to the nanosecond, one
//! die under Poisson arrivals is an M/D/1 queue, a saturated firmware core serves one flash operation per service time,
//! and a least-recently-used cache under uniform reads hits with the share of pages that it holds.

use readpath_device::{DeviceConfig, FirmwareTiming, Hpb2Config, HpbConfig, Layout, LinkTiming};
use readpath_flash::{DieSched, Exact, Lean, PlaneReads, Queued};
use readpath_host::{BlockOp, BlockRequest, HostConfig, HpbOptions};
use readpath_kit::{Ns, Prng};
use readpath_run::Runner;
use readpath_stack::{NoData, Stack, Tags, Typed};
use readpath_testkit::{DELAYS, HPB, device, filled, give_room, job, latency, one, run, settle, step};
use readpath_workload::{IoKind, Stream};

const BLOCKS: u32 = 8 * 1024;

/// What every command pays outside the flash and the firmware.
fn around(c: &DeviceConfig) -> u64 {
    DELAYS.to_link.0 + c.link.request.0 + c.link.response.0 + DELAYS.from_link.0
}

fn stages_add_up<S: DieSched>() {
    let c = device(BLOCKS);
    let (f, t) = (c.firmware.flash_op.0, c.flash);
    let hpb = Some(HpbOptions::default());
    let (mut stack, mut now) = filled::<S, Tags, Typed>(&c, hpb, BLOCKS / 2, Layout::Sequential, 1);
    let hit = around(&c) + f + t.read.0 + t.transfer_block.0 + c.link.block.0;
    let miss = hit + f + t.map_read.0 + t.map_transfer.0;
    let s = &mut stack;
    // The first read of a map page pays for it. With it the device recommends the sub-region, which the host loads.
    assert_eq!(latency(s, &mut now, BlockOp::Read, 5, 1), miss);
    assert_eq!(latency(s, &mut now, BlockOp::Read, 70, 1), hit);
    assert_eq!(latency(s, &mut now, BlockOp::Read, 5, 1), hit + c.firmware.hpb_read_extra.0);
    assert_eq!(latency(s, &mut now, BlockOp::Read, BLOCKS / 2 - 1, 1), miss);
    assert_eq!(s.device.stats().hpb_hits, 1);

    // Neighbours in one flash page are read together.
    let page = hit + 3 * (t.transfer_block.0 + c.link.block.0);
    assert_eq!(latency(s, &mut now, BlockOp::Read, 8, 4), page);

    // 128 KiB, written in order, are eight pages of four blocks on dies 0, 1, 2, 3, 0, 1, 2, 3 and channels 0, 1, 0, 1,
    // 0, 1, 0, 1. Page k leaves the firmware after (k + 1) f; no die is asked for its second page before it has sensed
    // its first. A channel takes longer for a page (4 transfers, 32 us) than two pages need in the firmware (2 f, 26
    // us), so both channels work without a pause once they have begun, channel 0 after f + tR and channel 1 after 2 f +
    // tR. The link (4 blocks, 15.6 us) takes pages in turn. Page 6 ends on channel 0 after f + tR + 16 transfers, and
    // the link is free for it; page 7 ends on its channel f later, when the link is still busy with page 6, since f < 4
    // blocks.
    let (x, l) = (t.transfer_block.0, c.link.block.0);
    assert!(4 * f < f + t.read.0 && 2 * f < 4 * x && f < 4 * l && 4 * l < 2 * f, "the argument above holds");
    let long = around(&c) + f + t.read.0 + 16 * x + 8 * l;
    assert_eq!(latency(s, &mut now, BlockOp::Read, 64, 32), long);
    // If its map page is not in SRAM, the whole read waits for the page.
    assert_eq!(latency(s, &mut now, BlockOp::Read, 2048, 32), long + f + t.map_read.0 + t.map_transfer.0);

    // What was there at the start has left units in its superblock. The journal has to name the next one before it is
    // written, so the first program there waits for one of the journal.
    let write = around(&c) + c.link.block.0 + c.firmware.write_command.0;
    let program = f + 4 * t.transfer_block.0 + t.program.0;
    let (slices, unit) = (c.geometry.slices_per_superblock(), c.geometry.slices_per_unit());
    let left = (BLOCKS / 2).next_multiple_of(slices) - BLOCKS / 2;
    for _ in 0..left / unit {
        assert_eq!(latency(s, &mut now, BlockOp::WriteFua, 41, 1), write + program);
    }
    assert_eq!(latency(s, &mut now, BlockOp::WriteFua, 41, 1), write + 2 * program);

    // Blocks that were never written need no flash, and neither do those in the write buffer.
    let from_sram = around(&c) + c.firmware.buffer_read.0 + c.link.block.0;
    assert_eq!(latency(s, &mut now, BlockOp::Read, BLOCKS - 1, 1), from_sram);
    assert_eq!(latency(s, &mut now, BlockOp::Write, 40, 1), write);
    assert_eq!(latency(s, &mut now, BlockOp::Read, 40, 1), from_sram);
    assert_eq!(latency(s, &mut now, BlockOp::Flush, 0, 0), around(&c) + c.firmware.control.0 + program);
    // A write that has to be in flash first is programmed alone, padded to a whole page.
    assert_eq!(latency(s, &mut now, BlockOp::WriteFua, 41, 1), write + program);
    assert_eq!(stack.payload.wrong, 0);
}

/// Blocks that were never written, or were trimmed, take a time of their own where they have one, however long they
/// have been so; blocks in the write buffer do not.
#[test]
fn unmapped_blocks_take_their_own_time() {
    let mut c = device(BLOCKS);
    c.firmware.unmapped_read = Some(Ns(2_017));
    let (mut stack, mut now) = filled::<Lean, Tags, Typed>(&c, None, BLOCKS / 2, Layout::Sequential, 1);
    let s = &mut stack;
    let of_zeros = around(&c) + 2_017 + c.link.block.0;
    assert_eq!(latency(s, &mut now, BlockOp::Read, BLOCKS - 1, 1), of_zeros);
    assert_eq!(latency(s, &mut now, BlockOp::Read, BLOCKS - 8, 8), of_zeros + 7 * c.link.block.0);
    latency(s, &mut now, BlockOp::Discard, 40, 8);
    assert_eq!(latency(s, &mut now, BlockOp::Read, 40, 1), of_zeros);
    latency(s, &mut now, BlockOp::Write, 44, 1);
    let buffered = around(&c) + c.firmware.buffer_read.0 + c.link.block.0;
    assert_eq!(latency(s, &mut now, BlockOp::Read, 44, 1), buffered);
    assert_eq!(s.device.stats().unmapped_reads, 10);
    assert_eq!(stack.payload.wrong, 0);
}

/// A read that has to be sensed again takes another array time for each retry, and there are no more than eight.
#[test]
fn each_retry_takes_another_array_time() {
    const READS: u32 = 4096;
    for chance in [0.5, 0.9] {
        let mut c = device(BLOCKS);
        c.ftl.faults.read_retries_ppm = (chance * 1e6) as u32;
        let (mut stack, mut now) = filled::<Lean, Tags, Typed>(&c, None, BLOCKS, Layout::Sequential, 1);
        let once = around(&c) + c.firmware.flash_op.0 + c.flash.read.0 + c.flash.transfer_block.0 + c.link.block.0;
        // Its map page is in SRAM from then on.
        latency(&mut stack, &mut now, BlockOp::Read, 5, 1);
        let mut with_retries = [0; 9];
        for _ in 0..READS {
            let more = latency(&mut stack, &mut now, BlockOp::Read, 5, 1) - once;
            assert_eq!(more % c.flash.read.0, 0);
            with_retries[(more / c.flash.read.0) as usize] += 1;
        }
        // Each retry is as likely as the first; after eight there is no other.
        for n in 0..=8 {
            let at_least: u32 = with_retries[n..].iter().sum();
            let expected = f64::from(READS) * f64::powi(chance, n as i32);
            assert!((f64::from(at_least) - expected).abs() < 4.0 * expected.sqrt(), "{chance}: {with_retries:?}");
        }
    }
}

/// A TRIM keeps the firmware busy for each map page that it touches, and the next request waits for that.
#[test]
fn a_trim_takes_its_time_for_each_map_page() {
    let mut c = device(BLOCKS);
    c.firmware.trim_map_page = Ns(2_003);
    let (mut stack, mut now) = filled::<Lean, Tags, Typed>(&c, None, BLOCKS, Layout::Sequential, 1);
    let entries = c.map_page_entries();
    let s = &mut stack;
    let one = latency(s, &mut now, BlockOp::Discard, 0, entries);
    assert_eq!(one, around(&c) + c.firmware.control.0 + c.firmware.trim_map_page.0);
    assert_eq!(latency(s, &mut now, BlockOp::Discard, entries + 1, 1), one, "a part of a page is a page");
    for (first, blocks, pages) in
        [(3 * entries - 1, 2, 2), (3 * entries, 3 * entries, 3), (0, BLOCKS, BLOCKS / entries)]
    {
        let took = latency(s, &mut now, BlockOp::Discard, first, blocks);
        assert_eq!(took, one + u64::from(pages - 1) * c.firmware.trim_map_page.0, "{first}, {blocks}");
    }
    settle(s, &mut now);
    let since = now;
    let request = |cookie, op, blocks| BlockRequest { cookie, lun: 0, op, block: 0, blocks };
    s.submit(since, &request(1, BlockOp::Discard, BLOCKS));
    s.submit(since, &request(2, BlockOp::Write, 1));
    let mut ends = [0; 3];
    while ends[1] == 0 || ends[2] == 0 {
        step(s, &mut now);
        while let Some(done) = s.poll_done() {
            ends[done.cookie as usize] = (now - since).0;
        }
    }
    let marks = u64::from(BLOCKS / entries) * c.firmware.trim_map_page.0;
    assert!(ends[2] > around(&c) + c.firmware.control.0 + marks, "a write waits until {} at least: {ends:?}", marks);
    assert_eq!(stack.payload.wrong, 0);
}

#[test]
fn latencies_are_sums_of_stages() {
    stages_add_up::<Lean>();
    stages_add_up::<Exact>();
    stages_add_up::<Queued>();
}

/// A device whose only time is that of one die.
fn one_die() -> DeviceConfig {
    let mut c = device(1024);
    (c.geometry.channels, c.geometry.dies_per_channel) = (1, 1);
    give_room(&mut c);
    c.firmware = FirmwareTiming {
        cores: 1,
        read_command: Ns::ZERO,
        flash_op: Ns::ZERO,
        hpb_read_extra: Ns::ZERO,
        write_command: Ns::ZERO,
        buffer_read: Ns::ZERO,
        unmapped_read: None,
        make_entry: Ns::ZERO,
        control: Ns::ZERO,
        trim_map_page: Ns::ZERO,
    };
    c.link = LinkTiming { request: Ns::ZERO, response: Ns::ZERO, block: Ns::ZERO };
    c.flash.transfer_block = Ns::ZERO;
    c.flash.read = Ns(50_000);
    c
}

/// Mean waiting time of `n` reads that arrive at exponential gaps and load the die with `rho`.
fn mean_wait(rho: f64, n: u64) -> f64 {
    let c = one_die();
    let service = c.flash.read.0;
    let host = HostConfig { slots: 64, max_transfer_blocks: 1, ..HostConfig::LINUX };
    let mut stack: Stack<Lean, NoData, (), Typed> =
        Stack::new(&c, host, Default::default(), NoData, (), Typed).expect("a possible device");
    stack.precondition(0, 0, 1024, Layout::Sequential, 1).expect("room");
    let mut now = stack.start(Ns::ZERO).expect("host and device find each other");
    let mut rng = Prng::new(11);
    one(&mut stack, &mut now, BlockOp::Read, 0, 1);
    let (mut arrived, mut ended, mut waited) = (0, 0u64, 0u128);
    let mut since: Vec<Ns> = Vec::new();
    let mut free: Vec<u32> = Vec::new();
    let mut next = now.0 as f64;
    while ended < n {
        if arrived < n {
            next += -(1.0 - rng.unit_f64()).ln() * service as f64 / rho;
        }
        let arrival = if arrived < n { Ns(next as u64) } else { Ns::NEVER };
        while stack.next_deadline() <= arrival && ended < n {
            step(&mut stack, &mut now);
            while let Some(done) = stack.poll_done() {
                waited += u128::from((now - since[done.cookie as usize]).0 - service);
                free.push(done.cookie);
                ended += 1;
            }
        }
        if arrived < n {
            let cookie = free.pop().unwrap_or_else(|| {
                since.push(Ns::ZERO);
                since.len() as u32 - 1
            });
            since[cookie as usize] = arrival;
            let block = rng.below(1024) as u32;
            stack.submit(arrival, &BlockRequest { cookie, lun: 0, op: BlockOp::Read, block, blocks: 1 });
            arrived += 1;
        }
    }
    waited as f64 / n as f64
}

#[test]
fn one_die_is_an_md1_queue() {
    for (rho, n) in [(0.3, 1_000_000), (0.6, 2_000_000), (0.8, 6_000_000)] {
        let formula = rho * 50_000.0 / (2.0 * (1.0 - rho));
        let wait = mean_wait(rho, n);
        println!(
            "load {rho}: mean wait {wait:.1} ns, formula {formula:.1} ns, {:+.2} %",
            (wait / formula - 1.0) * 100.0
        );
        assert!((wait / formula - 1.0).abs() < 0.01, "load {rho}: {wait} against {formula}");
    }
}

#[test]
fn saturated_firmware_serves_one_operation_per_service_time() {
    for cores in [1, 3] {
        let per_read = saturated_firmware(cores) * f64::from(cores);
        assert!((per_read / 13_000.0 - 1.0).abs() < 0.001, "{per_read} ns per read and core of {cores}");
    }
}

/// Nanoseconds for each read that the firmware takes 13 us for: 11 for its flash operation and 2 for the command.
fn saturated_firmware(cores: u8) -> f64 {
    let mut c = device(BLOCKS);
    (c.geometry.channels, c.geometry.dies_per_channel) = (8, 8);
    c.ftl.checkpoint_after_units = 256;
    c.flash.transfer_block = Ns(2_000);
    c.link.block = Ns(1_000);
    (c.firmware.cores, c.firmware.flash_op, c.firmware.read_command) = (cores, Ns(11_000), Ns(2_000));
    c.map_cache_bytes = 8 * 4096;
    let (mut stack, now) = filled::<Lean, NoData, Typed>(&c, None, BLOCKS, Layout::Random, 1);
    let mut runner = Runner::new(now);
    let stream = Stream::uniform_reads(0, BLOCKS, 1, 1).expect("a possible stream");
    run(&mut stack, &mut runner, vec![job(stream.clone(), 31, 2_000)]);
    let stats = run(&mut stack, &mut runner, vec![job(stream, 31, 100_000)]);
    (stats.end - stats.start).0 as f64 / stats.ios as f64
}

/// READ, HPB READ of one block, and HPB READ of several pay for their command once each, also if they wait for the map.
#[test]
fn each_read_pays_for_its_command() {
    let latencies = |read_command: u64| {
        let mut c = device(BLOCKS);
        c.firmware.read_command = Ns(read_command);
        let v2 = Hpb2Config { enabled: true, single_blocks: 8, pre_requests: 1, entries_in_ehs: false };
        c.hpb = Some(HpbConfig { v2: Some(v2), ..HPB });
        let hpb = Some(HpbOptions::default());
        let (mut stack, mut now) = filled::<Lean, Tags, Typed>(&c, hpb, BLOCKS / 2, Layout::Sequential, 1);
        let reads = [(5, 1), (70, 1), (5, 1), (8, 4)];
        let got = reads.map(|(block, blocks)| latency(&mut stack, &mut now, BlockOp::Read, block, blocks));
        let stats = stack.device.stats();
        assert_eq!((stats.map_misses, stats.hpb_hits, stats.hpb_long_hits), (1, 5, 4));
        got
    };
    assert_eq!(latencies(1_009), latencies(0).map(|latency| latency + 1_009));
}

/// Eight blocks of a multi-plane page: two pages of one die are sensed one after the other, together, or each by its
/// own plane. A program takes the die in any case.
#[test]
fn planes_read_one_at_a_time_together_or_apart() {
    for planes in PlaneReads::ALL {
        let mut c = device(BLOCKS);
        c.geometry.planes = 2;
        c.flash.plane_reads = planes;
        c.ftl.checkpoint_after_units = 256;
        let (mut stack, mut now) = filled::<Lean, Tags, Typed>(&c, None, BLOCKS / 2, Layout::Sequential, 1);
        let s = &mut stack;
        latency(s, &mut now, BlockOp::Read, 5, 1);
        let (f, r, x, l) = (c.firmware.flash_op.0, c.flash.read.0, c.flash.transfer_block.0, c.link.block.0);
        assert!(f < 4 * x && 4 * x < r && l < x, "the sums below hold");
        let (array, link) = match planes {
            PlaneReads::One => (2 * r + 4 * x, 4 * l),
            PlaneReads::Together | PlaneReads::Both => (r + 8 * x, 8 * l),
            PlaneReads::Apart => (r + 8 * x, 4 * l),
        };
        assert_eq!(latency(s, &mut now, BlockOp::Read, 8, 8), around(&c) + f + array + link, "{planes:?}");
        // Blocks of two multi-plane pages lie on two dies.
        let apart = around(&c) + f + r + 4 * x + 4 * l;
        assert_eq!(latency(s, &mut now, BlockOp::Read, 12, 8), apart + f.max(4 * l), "{planes:?}");
        assert_eq!(stack.payload.wrong, 0);
    }
}

/// With `both`, reads of single pages are as fast as those of planes that read apart, and reads of whole multi-plane
/// pages as those of dies that read them together.
#[test]
fn both_reads_a_page_apart_and_more_of_them_together() {
    let time = |planes, blocks| {
        let mut c = device(BLOCKS);
        c.geometry.planes = 2;
        c.flash.plane_reads = planes;
        c.ftl.checkpoint_after_units = 256;
        // Planes limit, not the firmware.
        c.firmware.flash_op = Ns(101);
        let (mut stack, now) = filled::<Lean, NoData, Typed>(&c, None, BLOCKS / 2, Layout::Sequential, 1);
        let stream = |seed| Stream::uniform_reads(0, 64, blocks, seed).expect("a possible stream");
        let jobs = (0..8).map(|seed| job(stream(seed), 1, 500)).collect();
        let stats = run(&mut stack, &mut Runner::new(now), jobs);
        (stats.end - stats.start).0
    };
    let [one, together, apart, both] = PlaneReads::ALL.map(|planes| [4, 8].map(|blocks| time(planes, blocks)));
    assert_eq!((both[0], one[0]), (apart[0], together[0]));
    assert_eq!(both[1], together[1]);
    assert!(apart[0] < together[0] && apart[1] != together[1], "{one:?} {together:?} {apart:?}");
}

fn hit_ratio(map_page_bytes: u32, pages: u32, frames: u32) -> f64 {
    let blocks = pages * map_page_bytes / 4;
    let mut c = device(blocks);
    c.geometry.pages_per_block = 64;
    c.geometry.blocks_per_plane = blocks / 256;
    c.map_page_bytes = map_page_bytes;
    c.map_cache_bytes = frames * map_page_bytes;
    let (mut stack, now) = filled::<Lean, NoData, Typed>(&c, None, blocks, Layout::Sequential, 1);
    let mut runner = Runner::new(now);
    let stream = |seed| Stream::uniform_reads(0, blocks, 1, seed).expect("a possible stream");
    run(&mut stack, &mut runner, vec![job(stream(1), 1, 5_000)]);
    let before = *stack.device.stats();
    let stats = run(&mut stack, &mut runner, vec![job(stream(2), 1, 500_000)]);
    let after = stack.device.stats();
    assert_eq!(stats.jobs[0].of(IoKind::Read).ios, 500_000);
    let (hits, misses) = (after.map_hits - before.map_hits, after.map_misses - before.map_misses);
    assert_eq!(hits + misses, 500_000);
    assert_eq!(after.map_loads - before.map_loads, misses, "every miss loads a page");
    hits as f64 / 500_000.0
}

#[test]
fn an_lru_cache_under_uniform_reads_hits_with_its_share_of_pages() {
    for map_page_bytes in [4096, 16384] {
        for (pages, frames) in [(128, 32), (128, 96), (81, 80)] {
            let (ratio, share) = (hit_ratio(map_page_bytes, pages, frames), f64::from(frames) / f64::from(pages));
            println!("{frames} of {pages} pages of {map_page_bytes}: hit ratio {ratio:.4}, share {share:.4}");
            assert!((ratio / share - 1.0).abs() < 0.01, "{ratio} against {share}");
        }
    }
}
