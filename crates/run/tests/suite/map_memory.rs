// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map in DRAM of the device and in memory of the host: latencies are sums of stages, copies are never out of date,
//! a changed copy is noticed if it is checked, and nothing outlives a reset.

use readpath_device::{DeviceConfig, HostMap, Layout, LineCheck, MapMemory, Protocol, SramTable, Without};
use readpath_flash::{DieSched, Exact, Lean, Queued};
use readpath_host::{BlockOp, BlockRequest, HostConfig, HostMemoryLimit};
use readpath_kit::{Ns, Prng};
use readpath_run::Runner;
use readpath_stack::{NoData, Stack, Tags, Typed, given_host_memory};
use readpath_testkit::{Checked, DELAYS, device, filled, give_room, job, latency, one, run, settle, step};
use readpath_workload::Stream;

const BLOCKS: u32 = 8 * 1024;

/// Host memory for all eight map pages, with times that no other time equals.
const HOST: HostMap = HostMap {
    protocol: Protocol::Hmb,
    bytes: 8 * 4096,
    minimum: 0,
    least_chunk: 0,
    most_chunks: 0,
    line_bytes: 64,
    outstanding: 8,
    firmware: Ns(401),
    request: Ns(53),
    access: Ns(907),
    response: Ns(29),
    check: None,
};

/// A device without HPB whose map cache holds one of eight map pages.
fn with(memory: Option<MapMemory>) -> DeviceConfig {
    let mut c = device(BLOCKS);
    c.hpb = None;
    c.lus[0].hpb = false;
    c.map_cache_bytes = 4096;
    c.map_memory = memory;
    c.check().expect("a possible device");
    c
}

fn in_order<S: DieSched>(config: &DeviceConfig) -> (Checked<S>, Ns) {
    filled::<S, Tags, Typed>(config, None, BLOCKS, Layout::Sequential, 1)
}

/// What a read of one block takes with its entry in SRAM.
fn hit(c: &DeviceConfig) -> u64 {
    let around = DELAYS.to_link.0 + c.link.request.0 + c.link.response.0 + DELAYS.from_link.0;
    around + c.firmware.flash_op.0 + c.flash.read.0 + c.flash.transfer_block.0 + c.link.block.0
}

/// A map that was loaded beforehand: the first read of every map page finds it in SRAM.
#[test]
fn a_map_that_is_loaded_is_not_read() {
    let c = DeviceConfig { map_cache_bytes: 8 * 4096, ..with(None) };
    let (mut stack, mut now) = in_order::<Lean>(&c);
    stack.device.preload_map();
    for page in 0..8 {
        assert_eq!(latency(&mut stack, &mut now, BlockOp::Read, page * 1024 + 7, 1), hit(&c), "page {page}");
    }
    assert_eq!((stack.device.stats().map_loads, stack.device.stats().map_hits), (0, 8));
}

fn stages_add_up<S: DieSched>(protocol: Protocol, check: Option<LineCheck>) {
    let host = HostMap { protocol, check, bytes: 8 * 5000, ..HOST };
    let c = with(Some(MapMemory::Host(host)));
    let (mut stack, mut now) = in_order::<S>(&c);
    let s = &mut stack;
    let miss = hit(&c) + c.firmware.flash_op.0 + c.flash.map_read.0 + c.flash.map_transfer.0;
    // While the data is read the page goes to the host, for which the firmware is wanted first.
    let seal = check.map_or(0, |check| check.seal.0 * 64);
    let copied = HOST.firmware.0 + seal;
    let per_line = |lines: u64| {
        let line = 64 + if check.is_some() { LineCheck::TAG_BYTES as u64 } else { 0 };
        let link = c.link.bytes((lines * line) as usize).0;
        let check = lines * check.map_or(0, |check| check.check.0);
        HOST.firmware.0 + HOST.request.0 + HOST.access.0 + HOST.response.0 + link + check
    };
    assert_eq!(latency(s, &mut now, BlockOp::Read, 5, 1), miss + copied);
    assert_eq!(latency(s, &mut now, BlockOp::Read, 1029, 1), miss + copied);
    // One frame of SRAM: it holds the second page, and host memory holds the first.
    assert_eq!(latency(s, &mut now, BlockOp::Read, 1030, 1), hit(&c));
    assert_eq!(latency(s, &mut now, BlockOp::Read, 70, 1), hit(&c) + per_line(1));
    // Four blocks of a flash page, in one line and across two.
    let four = 3 * (c.flash.transfer_block.0 + c.link.block.0);
    assert_eq!(latency(s, &mut now, BlockOp::Read, 8, 4), hit(&c) + per_line(1) + four);
    assert_eq!(latency(s, &mut now, BlockOp::Read, 1030, 1), hit(&c), "what is fetched does not enter the map cache");
    let stats = *s.device.stats();
    assert_eq!((stats.host_map_hits, stats.host_map_fetches, stats.host_map_fills), (5, 2, 2));
    assert_eq!((stats.map_loads, stats.map_misses, stats.map_hits), (2, 2, 2));
    let line = u64::from(host.stored_line_bytes());
    assert_eq!((stats.host_map_bytes_read, stats.host_map_bytes_written), (2 * line, 2 * 64 * line));
    let page = c.link.bytes(64 * line as usize).0;
    assert_eq!(stats.host_map_link_up_ns, 2 * (HOST.request.0 + page) + 2 * HOST.request.0);
    let acknowledged = if protocol == Protocol::Ume { 2 * HOST.response.0 } else { 0 };
    assert_eq!(
        stats.host_map_link_down_ns,
        2 * (HOST.response.0 + c.link.bytes(line as usize).0) + acknowledged,
        "{protocol:?}"
    );
    assert_eq!(stack.payload.wrong, 0);
}

#[test]
fn a_fetch_from_host_memory_is_a_sum_of_stages() {
    let check = Some(LineCheck { check: Ns(211), seal: Ns(17) });
    for protocol in [Protocol::Hmb, Protocol::Ume] {
        for check in [None, check] {
            stages_add_up::<Lean>(protocol, check);
            stages_add_up::<Exact>(protocol, check);
            stages_add_up::<Queued>(protocol, check);
        }
    }
}

#[test]
fn a_look_into_dram_takes_one_access_and_each_page_is_loaded_once() {
    let access = Ns(97);
    let c = with(Some(MapMemory::Dram { access }));
    let (mut stack, mut now) = in_order::<Lean>(&c);
    let miss = hit(&c) + c.firmware.flash_op.0 + c.flash.map_read.0 + c.flash.map_transfer.0;
    for page in 0..8 {
        assert_eq!(latency(&mut stack, &mut now, BlockOp::Read, page * 1024, 1), miss);
    }
    for page in 0..8 {
        assert_eq!(latency(&mut stack, &mut now, BlockOp::Read, page * 1024 + 9, 1), hit(&c) + access.0);
    }
    assert_eq!(stack.device.stats().map_loads, 8);
    let dram: u64 = c.dram_bytes();
    assert_eq!(dram, 8 * 4096);
    assert!(stack.device.sram().iter().all(|(table, _)| *table != SramTable::MapCache), "there is none");
    // It keeps what it holds over a reset of the link, but not over a loss of power.
    stack.reset(now);
    one(&mut stack, &mut now, BlockOp::Read, 1024, 1);
    assert_eq!(stack.device.stats().map_loads, 8);
    settle(&mut stack, &mut now);
    stack.device_power_cycle(now, now + Ns::from_ms(1));
    now += Ns::from_ms(1);
    settle(&mut stack, &mut now);
    let loads = stack.device.stats().map_loads;
    one(&mut stack, &mut now, BlockOp::Read, 1024, 1);
    assert_eq!(stack.device.stats().map_loads, loads + 1);
    assert_eq!(stack.payload.wrong, 0);
}

/// Many writes and reads, `between` them something else; returns how many reads were wrong.
fn busy(config: &DeviceConfig, between: impl Fn(&mut Checked<Lean>, Ns, u32)) -> (u64, readpath_device::DeviceStats) {
    let (mut stack, mut now) = in_order::<Lean>(config);
    let mut rng = Prng::new(5);
    let mut under_way = 0;
    for i in 0..60_000u32 {
        let op = if rng.below(10) < 4 { BlockOp::Write } else { BlockOp::Read };
        let block = rng.below(u64::from(BLOCKS) - 8) as u32;
        stack.submit(now, &BlockRequest { cookie: i, lun: 0, op, block, blocks: 1 + rng.below(6) as u32 });
        under_way += 1;
        while under_way >= 16 {
            step(&mut stack, &mut now);
            while let Some(done) = stack.poll_done() {
                assert_eq!(done.error, None);
                under_way -= 1;
            }
        }
        between(&mut stack, now, i);
    }
    settle(&mut stack, &mut now);
    assert_eq!(stack.device.ops_in_use(), 0);
    (stack.payload.wrong, *stack.device.stats())
}

#[test]
fn a_copy_that_is_not_renewed_gives_wrong_data() {
    for protocol in [Protocol::Hmb, Protocol::Ume] {
        for pages in [3, 8] {
            let host = HostMap { protocol, bytes: pages * 4096, ..HOST };
            let mut c = with(Some(MapMemory::Host(host)));
            c.ftl.map_changes = 16 * c.geometry.slices_per_unit();
            let (wrong, stats) = busy(&c, |stack, now, i| {
                if i % 5_000 == 4_999 {
                    stack.reset(now);
                }
            });
            assert_eq!(wrong, 0, "{protocol:?}, {pages} pages");
            assert!(stats.host_map_hits > 5_000 && stats.host_map_updates > 500, "{stats:?}");
            assert!(stats.host_map_stale > 0, "some copies are written anew while they are fetched: {stats:?}");
            assert_eq!(stats.host_map_bad, 0);
            c.ftl.without = Without { renewed_copies: true, ..Without::NOTHING };
            let (wrong, _) = busy(&c, |_, _, _| ());
            assert!(wrong > 20, "{protocol:?}, {pages} pages: only {wrong} wrong reads");
        }
    }
}

#[test]
fn a_host_that_changes_the_map_is_believed_only_without_a_check() {
    for check in [None, Some(LineCheck { check: Ns(200), seal: Ns(10) })] {
        let c = with(Some(MapMemory::Host(HostMap { check, bytes: 8 * 5000, ..HOST })));
        let (mut stack, mut now) = in_order::<Lean>(&c);
        for page in 0..8 {
            one(&mut stack, &mut now, BlockOp::Read, page * 1024, 1);
        }
        // Entries change places, and those of the first pages name no slice of the array.
        stack.device.tamper_with_host_map(|lpn, ppn| if lpn < 2048 { ppn | 1 << 29 } else { ppn ^ 1 });
        for page in 0..7 {
            one(&mut stack, &mut now, BlockOp::Read, page * 1024 + 40, 1);
        }
        let stats = stack.device.stats();
        match check {
            None => {
                assert_eq!((stack.payload.wrong, stats.host_map_bad), (5, 2), "two name nothing, five something else")
            }
            Some(_) => assert_eq!((stack.payload.wrong, stats.host_map_bad, stats.host_map_hits), (0, 7, 0)),
        }
    }
}

/// A copy that does not pass its check is looked for in flash when the check is over.
#[test]
fn a_check_that_fails_takes_its_time() {
    let of = |check| {
        let check = Some(LineCheck { check: Ns(check), seal: Ns(10) });
        let c = with(Some(MapMemory::Host(HostMap { check, bytes: 8 * 5000, ..HOST })));
        let (mut stack, mut now) = in_order::<Lean>(&c);
        for page in 0..8 {
            one(&mut stack, &mut now, BlockOp::Read, page * 1024, 1);
        }
        stack.device.tamper_with_host_map(|_, ppn| ppn ^ 1);
        let latency = latency(&mut stack, &mut now, BlockOp::Read, 40, 1);
        assert_eq!(stack.device.stats().host_map_bad, 1);
        latency
    };
    assert_eq!(of(5_200) - of(200), 5_000);
}

#[test]
fn nothing_of_host_memory_outlives_a_reset_or_a_loss_of_power() {
    let c = with(Some(MapMemory::Host(HOST)));
    for power in [false, true] {
        let (mut stack, mut now) = in_order::<Lean>(&c);
        for page in 0..8 {
            one(&mut stack, &mut now, BlockOp::Read, page * 1024, 1);
        }
        one(&mut stack, &mut now, BlockOp::Read, 100, 1);
        assert_eq!(stack.device.stats().host_map_hits, 1);
        // In the middle of a fetch.
        stack.submit(now, &BlockRequest { cookie: 3, lun: 0, op: BlockOp::Read, block: 1100, blocks: 1 });
        while stack.device.stats().host_map_fetches == 1 {
            step(&mut stack, &mut now);
        }
        if power {
            stack.device_power_cycle(now, now + Ns::from_ms(1));
            now += Ns::from_ms(1);
        } else {
            stack.reset(now);
        }
        // The host sends the lost requests again.
        settle(&mut stack, &mut now);
        assert_eq!(stack.poll_done().map(|done| done.error), Some(None));
        let (hits, loads) = (stack.device.stats().host_map_hits, stack.device.stats().map_loads);
        for page in 2..7 {
            one(&mut stack, &mut now, BlockOp::Read, page * 1024 + 5, 1);
        }
        let stats = stack.device.stats();
        assert_eq!((stats.host_map_hits, stats.map_loads - loads), (hits, 5), "power: {power}");
        assert_eq!((stack.payload.wrong, stack.device.ops_in_use()), (0, 0));
    }
}

/// Reads one block of each of the pages `from` to `to`; returns pages found in host memory, and read from flash.
fn look<S: DieSched>(stack: &mut Checked<S>, now: &mut Ns, pages: std::ops::Range<u32>) -> (u64, u64) {
    let before = *stack.device.stats();
    for page in pages {
        one(stack, now, BlockOp::Read, page * 1024 + 1000, 1);
    }
    let after = stack.device.stats();
    (after.host_map_hits - before.host_map_hits, after.map_loads - before.map_loads)
}

#[test]
fn a_host_that_sleeps_takes_its_memory_and_returns_it_as_it_was() {
    for protocol in [Protocol::Hmb, Protocol::Ume] {
        let mut c = with(Some(MapMemory::Host(HostMap { protocol, ..HOST })));
        c.ftl.map_changes = 16 * c.geometry.slices_per_unit();
        let (mut stack, mut now) = in_order::<Lean>(&c);
        let s = &mut stack;
        assert_eq!(look(s, &mut now, 0..8), (0, 8));
        assert_eq!(look(s, &mut now, 0..7), (7, 0));
        s.suspend();
        let written = s.device.stats().host_map_bytes_written;
        assert_eq!(look(s, &mut now, 0..7), (0, 7), "nothing of it can be reached");
        // A page that changes while its copy is out of reach.
        let mut block = 3 * 1024;
        while s.device.stats().map_writes == 0 {
            one(s, &mut now, BlockOp::Write, block, 4);
            one(s, &mut now, BlockOp::Flush, 0, 0);
            block += 4;
        }
        assert_eq!(s.device.stats().host_map_bytes_written, written, "nothing is written to it");
        s.resume(now);
        // One of the copies is in SRAM.
        let before = look(s, &mut now, 0..3);
        let behind = look(s, &mut now, 4..7);
        assert!(before.0 + behind.0 >= 5 && before.1 + behind.1 == 0, "{before:?}, {behind:?}");
        assert_eq!(look(s, &mut now, 3..4), (0, 1), "that copy was forgotten");
        assert_eq!(s.payload.wrong, 0);
    }
}

#[test]
fn what_sleeps_in_the_middle_of_traffic_reads_right() {
    let mut c = with(Some(MapMemory::Host(HOST)));
    c.ftl.map_changes = 16 * c.geometry.slices_per_unit();
    let (wrong, stats) = busy(&c, |stack, now, i| match i % 1_000 {
        300 => stack.suspend(),
        700 => stack.resume(now),
        _ => {}
    });
    assert!(stats.host_map_hits > 1_000 && stats.host_map_updates > 100, "{stats:?}");
    assert_eq!(wrong, 0);
}

#[test]
fn a_device_uses_no_more_than_the_host_gives() {
    let host = HostMap { bytes: 8 * 4096, most_chunks: 2, ..HOST };
    let c = with(Some(MapMemory::Host(host)));
    for (limit, largest_chunk, pages) in
        [(1 << 30, 4 << 20, 8), (4 * 4096, 4 << 20, 4), (1 << 30, 8192, 4), (0, 8192, 0)]
    {
        let host = HostConfig { host_memory: HostMemoryLimit { bytes: limit, largest_chunk }, ..HostConfig::LINUX };
        assert_eq!(given_host_memory(&c, &host), pages * 4096);
        let mut stack = Stack::<Lean, NoData, (), Typed>::new(&c, host, DELAYS, NoData, (), Typed).expect("a stack");
        assert_eq!(stack.device.host_map_bytes(), pages * 4096);
        stack.precondition(0, 0, BLOCKS, Layout::Sequential, 1).expect("room");
        let mut now = stack.start(Ns::ZERO).expect("a device");
        for round in 0..2 {
            for page in 0..8 {
                one(&mut stack, &mut now, BlockOp::Read, page * 1024 + round, 1);
            }
        }
        // All pages in turn: a memory that does not hold all of them has no hits.
        let hits = stack.device.stats().host_map_hits;
        assert_eq!(hits, if pages == 8 { 7 } else { 0 }, "{pages} pages");
        let held = (0..8).filter(|page| {
            let before = stack.device.stats().host_map_hits;
            one(&mut stack, &mut now, BlockOp::Read, (7 - page) * 1024 + 99, 1);
            stack.device.stats().host_map_hits > before
        });
        assert!(held.count() as u64 <= pages);
        // Nor after a loss of power: the host has not granted the memory again.
        stack.device_power_cycle(now, now + Ns::from_ms(1));
        now += Ns::from_ms(1);
        settle(&mut stack, &mut now);
        let hits = stack.device.stats().host_map_hits;
        for round in 0..2 {
            for page in 0..8 {
                one(&mut stack, &mut now, BlockOp::Read, page * 1024 + 200 + round, 1);
            }
        }
        let hits = stack.device.stats().host_map_hits - hits;
        assert_eq!(hits, if pages == 8 { 7 } else { 0 }, "{pages} pages after a loss of power");
    }
}

#[test]
fn long_reads_read_each_flash_page_once() {
    for first in [0, 1, 64, 1000] {
        let c = with(Some(MapMemory::Host(HOST)));
        let page_blocks = c.geometry.slices_per_page();
        let (mut stack, mut now) = in_order::<Lean>(&c);
        look(&mut stack, &mut now, 0..8);
        let before = *stack.device.stats();
        // Neither of its map pages is in SRAM.
        one(&mut stack, &mut now, BlockOp::Read, 2 * 1024 + first, 128);
        let after = *stack.device.stats();
        let pages = 128 / page_blocks;
        let reads = (after.data_reads - before.data_reads) as u32;
        // A read that begins within a page touches one page more.
        assert_eq!(reads, pages + u32::from(first % page_blocks > 0), "{first}");
        let fetches = after.host_map_fetches - before.host_map_fetches;
        assert!(fetches <= 16, "{first}: {fetches} fetches");
        assert_eq!((after.map_loads, stack.payload.wrong), (before.map_loads, 0));
    }
}

#[test]
fn fetches_wait_for_each_other_when_they_may_not_be_unanswered() {
    let per_read = |outstanding: u8, access: Ns| {
        let host = HostMap { outstanding, access, ..HOST };
        let mut c = with(Some(MapMemory::Host(host)));
        c.geometry.dies_per_channel = 8;
        give_room(&mut c);
        let (mut stack, now) = filled::<Lean, NoData, Typed>(&c, None, BLOCKS, Layout::Random, 1);
        let mut runner = Runner::new(now);
        let stream = Stream::uniform_reads(0, BLOCKS, 1, 1).expect("a possible stream");
        run(&mut stack, &mut runner, vec![job(stream.clone(), 31, 2_000)]);
        let before = *stack.device.stats();
        let stats = run(&mut stack, &mut runner, vec![job(stream, 31, 40_000)]);
        let since = stack.device.stats().since(&before);
        assert_eq!((since.map_loads, since.host_map_hits + since.map_hits), (0, 40_000));
        ((stats.end - stats.start).0 as f64 / since.host_map_hits as f64, host)
    };
    let (serial, host) = per_read(1, Ns(40_000));
    let c = device(BLOCKS);
    let each = host.request.0 + host.access.0 + host.response.0 + c.link.bytes(64).0;
    assert!((serial / each as f64 - 1.0).abs() < 0.01, "{serial} ns per fetch, {each} for the way");
    // With eight, the firmware core is the limit: each fetched read takes its time for the fetch and for the page.
    let (parallel, host) = per_read(8, Ns(40_000));
    let share = 7.0 / 8.0;
    let core = (c.firmware.flash_op.0 as f64 + share * host.firmware.0 as f64) / share;
    assert!((parallel / core - 1.0).abs() < 0.02, "{parallel} ns per fetch, {core} of the firmware core");
}
