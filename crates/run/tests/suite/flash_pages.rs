// SPDX-License-Identifier: MIT OR Apache-2.0
//! A read command reads each flash page once, whatever the source of its entries; and more host memory slows a read by
//! no more than the time that it adds to that read.

use crate::vopr::one_of;
use readpath_device::{DeviceConfig, DeviceStats, HostMap, Layout, LineCheck, MapMemory, MediaOp, Protocol, WithMedia};
use readpath_flash::{Geometry, Lean, PlaneReads, Ppn};
use readpath_host::{BlockOp, HostConfig};
use readpath_kit::{Ns, Prng};
use readpath_stack::{Payload, Stack, Typed};
use readpath_testkit::{DELAYS, device, give_room, latency, one, settle};
use std::ops::RangeInclusive;

const BLOCKS: u32 = 8 * 1024;
/// Map pages are of 4 KiB.
const PAGE_ENTRIES: u32 = 1024;

/// Places of the blocks of the last read in flash: block within the read, and slice.
#[derive(Default)]
struct Places(Vec<(u32, u32)>);

impl Payload for Places {
    type Mode = WithMedia;

    fn execute(&mut self, op: MediaOp) {
        if let MediaOp::ReadFlash { index, ppn: Ppn(ppn), .. } = op {
            self.0.push((index, ppn));
        }
    }
}

impl Places {
    /// The fewest and the most operations that read what a read from `block` on wants of flash: one for each flash
    /// page. A page that holds blocks in another order than the read wants them counts once for each run in order. The
    /// entries of one may be in two map pages, which may be loaded one after the other.
    fn operations(&mut self, block: u32, slices_per_page: u32) -> RangeInclusive<u64> {
        self.0.sort_unstable();
        let (mut fewest, mut more) = (self.0.len() as u64, 0);
        for pair in self.0.windows(2) {
            let ((index, ppn), (next, next_ppn)) = (pair[0], pair[1]);
            if (next, next_ppn) == (index + 1, ppn + 1) && next_ppn % slices_per_page > 0 {
                fewest -= 1;
                more += u64::from((block + next).is_multiple_of(PAGE_ENTRIES));
            }
        }
        fewest..=fewest + more
    }
}

type Traced = Stack<Lean, Places, (), Typed>;

/// A device and what it holds: files written in order, each beginning anywhere, and writes over them.
struct Drawn {
    config: DeviceConfig,
    files: Vec<(u8, u32, u32)>,
    writes: Vec<(u32, u32)>,
    reads: Vec<(u32, u32)>,
}

fn extent(rng: &mut Prng, longest: u64) -> (u32, u32) {
    let blocks = 1 + rng.below(longest) as u32;
    (rng.below(u64::from(BLOCKS - blocks)) as u32, blocks)
}

impl Drawn {
    fn new(seed: u64) -> Drawn {
        let rng = &mut Prng::stream(seed, "flash pages", 0);
        let mut config = device(BLOCKS);
        config.hpb = None;
        config.lus[0].hpb = false;
        config.geometry = Geometry {
            channels: 1 + rng.below(4) as u32,
            dies_per_channel: 1 + rng.below(4) as u32,
            planes: 1 + rng.below(2) as u32,
            page_bytes: one_of(rng, &[4096, 8192, 16384, 16384, 32768, 65_536]),
            ..config.geometry
        };
        // From a stream of its own, so that the other settings of a seed do not change.
        config.flash.plane_reads = one_of(&mut Prng::stream(seed, "planes", 0), &PlaneReads::ALL);
        config.map_cache_bytes = 4096;
        config.ftl.checkpoint_after_units = 256;
        config.write_buffer_blocks = config.write_buffer_blocks.max(2 * config.geometry.slices_per_unit());
        config.ftl.map_changes = config.ftl.map_changes.max(16 * config.geometry.slices_per_unit());
        config.ftl.move_buffer_blocks = config.ftl.move_buffer_blocks.max(2 * config.geometry.slices_per_unit());
        give_room(&mut config);
        let mut files = Vec::new();
        let mut block = rng.below(40) as u32;
        while block < BLOCKS - 40 {
            let blocks = (1 + rng.below(600) as u32).min(BLOCKS - block);
            files.push((0, block, blocks));
            block += blocks + rng.below(3) as u32;
        }
        let writes = (0..rng.below(60)).map(|_| extent(rng, 40)).collect();
        let lengths = [4, 20, 128];
        let reads = (0..400).map(|i| extent(rng, lengths[i % 3])).collect();
        Drawn { config, files, writes, reads }
    }

    /// Time, flash operations and counters of each read.
    fn read(&self, memory: Option<MapMemory>, map_cache_pages: u32) -> Vec<(u64, RangeInclusive<u64>, DeviceStats)> {
        let mut config = DeviceConfig { map_memory: memory, ..self.config.clone() };
        config.map_cache_bytes *= map_cache_pages;
        let mut stack =
            Traced::new(&config, HostConfig::LINUX, DELAYS, Places::default(), (), Typed).expect("a device");
        stack.precondition_all(self.files.iter().copied(), Layout::Sequential, 1).expect("room");
        let mut now = stack.start(Ns::ZERO).expect("a host");
        for &(block, blocks) in &self.writes {
            one(&mut stack, &mut now, BlockOp::Write, block, blocks);
        }
        let mut read = |&(block, blocks): &(u32, u32)| {
            settle(&mut stack, &mut now);
            stack.payload.0.clear();
            let before = *stack.device.stats();
            let time = latency(&mut stack, &mut now, BlockOp::Read, block, blocks);
            let operations = stack.payload.operations(block, config.geometry.slices_per_read(config.flash.plane_reads));
            (time, operations, stack.device.stats().since(&before))
        };
        self.reads.iter().map(&mut read).collect()
    }
}

pub(crate) fn host_memory(rng: &mut Prng, pages: u64) -> HostMap {
    HostMap {
        protocol: one_of(rng, &[Protocol::Hmb, Protocol::Ume]),
        bytes: pages * 8192,
        minimum: 0,
        least_chunk: 0,
        most_chunks: 0,
        line_bytes: one_of(rng, &[16, 64, 64, 512]),
        outstanding: one_of(rng, &[1, 8]),
        firmware: Ns(401),
        request: Ns(53),
        access: Ns(907),
        response: Ns(29),
        check: one_of(rng, &[None, Some(LineCheck { check: Ns(211), seal: Ns(17) })]),
    }
}

#[test]
fn a_read_reads_each_flash_page_once_with_every_kind_of_map() {
    let (mut fetched, mut long) = (0, 0);
    for seed in 0..24 {
        let drawn = Drawn::new(seed);
        let rng = &mut Prng::stream(seed, "host memory", 0);
        let hosts = [2, 5, 16].map(|pages| Some(MapMemory::Host(host_memory(rng, pages))));
        let others = [None, Some(MapMemory::Dram { access: Ns(97) })];
        for memory in others.into_iter().chain(hosts) {
            for map_cache_pages in [1, 8] {
                let reads = drawn.read(memory, map_cache_pages);
                for (&(block, blocks), (_, operations, stats)) in drawn.reads.iter().zip(reads) {
                    let what = format!("seed {seed}: {blocks} blocks from {block} on with {memory:?}: {stats:?}");
                    assert!(operations.contains(&stats.data_reads), "{operations:?} operations: {what}");
                    // What lies nowhere in flash may be found without the map, or with it.
                    let found = stats.recent_hits + stats.map_hits + stats.map_misses + stats.host_map_hits;
                    let nowhere = stats.buffer_hits + stats.unmapped_reads;
                    let blocks = u64::from(blocks);
                    assert!(found <= blocks && found + nowhere >= blocks, "each block counts once: {what}");
                    fetched += u64::from(stats.host_map_fetches > 0);
                    long += u64::from(stats.host_map_fetches > 1 && blocks > 16);
                }
            }
        }
    }
    assert!(fetched > 5_000 && long > 500, "{fetched} reads fetched entries, {long} of them more than once");
}

/// What host memory adds to a read at most: each of its fetches (firmware, request, access, response, lines on the
/// link, their check), and each copy of a map page that it loads (firmware with seals, request, page on the link).
fn added(config: &DeviceConfig, host: &HostMap, stats: &DeviceStats) -> u64 {
    let LineCheck { check, seal } = host.check.unwrap_or(LineCheck { check: Ns::ZERO, seal: Ns::ZERO });
    let lines = stats.host_map_bytes_read / u64::from(host.stored_line_bytes());
    let seals = seal.0 * u64::from(4 * PAGE_ENTRIES / host.line_bytes);
    stats.host_map_fetches * (host.firmware.0 + host.request.0 + host.access.0 + host.response.0)
        + lines * check.0
        + config.link.bytes(stats.host_map_bytes_read as usize).0
        + stats.host_map_fills * (host.firmware.0 + seals + host.request.0)
        + config.link.bytes(stats.host_map_bytes_written as usize).0
}

/// A read that is alone on the device takes no longer with more host memory than with less and what the memory adds
/// ([`added`]). One that does not get all its entries at once, because it has more than 16 blocks, entries in two map
/// pages, or blocks whose change SRAM knows, may have its flash pages read in another order: that may cost it one page
/// more.
///
/// Both caches of map pages replace the least recently used; the one in SRAM filters what the other sees, so a page can
/// be on the host with a little memory and not with more. Such reads are few, and there are none without any memory.
#[test]
fn more_host_memory_makes_no_read_slower_than_what_it_adds() {
    let (mut faster, mut slower) = (0, 0);
    for seed in 100..130 {
        let drawn = Drawn::new(seed);
        let (config, slices) = (&drawn.config, drawn.config.geometry.slices_per_read(drawn.config.flash.plane_reads));
        let page = config.firmware.flash_op + config.flash.read;
        let page = page.0 + u64::from(slices) * (config.flash.transfer_block + config.link.block).0;
        let host = host_memory(&mut Prng::stream(seed, "host memory", 0), 0);
        let mut with_less = drawn.read(None, 1);
        for pages in [2, 4, 8] {
            let host = HostMap { bytes: pages * 8192, ..host };
            let with_more = drawn.read(Some(MapMemory::Host(host)), 1);
            let mut loads = (0, 0);
            for (&(block, blocks), ((less, _, before), (more, _, stats))) in
                drawn.reads.iter().zip(with_less.iter().zip(&with_more))
            {
                loads = (loads.0 + before.map_loads, loads.1 + stats.map_loads);
                if stats.map_loads > before.map_loads {
                    assert!(pages > 2, "seed {seed}: host memory makes a read load a map page");
                    continue;
                }
                let is_changed = drawn.writes.iter().any(|&(at, n)| at < block + blocks && block < at + n);
                let is_at_once = blocks <= 16 && block % PAGE_ENTRIES + blocks <= PAGE_ENTRIES && !is_changed;
                let most = less + added(config, &host, stats) + if is_at_once { 0 } else { page };
                assert!(*more <= most, "seed {seed}: {pages} pages, {blocks} from {block} on: {more} ns, not {most}");
                faster += u64::from(more < less);
                slower += u64::from(more > less);
            }
            assert!(loads.1 <= loads.0, "seed {seed}: {pages} pages make {loads:?} loads");
            with_less = with_more;
        }
    }
    assert!(faster > 5_000 && slower > 1_000, "{faster} reads were faster with more memory, {slower} slower");
}
