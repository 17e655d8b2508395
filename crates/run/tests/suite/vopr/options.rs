// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a seed draws: a device, a host, a workload and how much trouble there is.

use super::trouble::Trouble;
use readpath_device::{
    CheckOn, Control, DeviceConfig, EntryConfig, FaultConfig, FtlConfig, HostMap, Hpb2Config, HpbConfig, Layout,
    LineCheck, LuConfig, MapMemory, Protection, Protocol, VictimPolicy, Without,
};
use readpath_flash::{Geometry, SuspendTiming};
use readpath_host::{HostConfig, HpbOptions, HpbParams, ListOrder, LongReads, ManagedPolicy};
use readpath_kit::{Ns, Prng};
use readpath_testkit as common;

/// Everything drawn from a seed.
#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    pub config: DeviceConfig,
    pub host: HostConfig,
    pub encoded: bool,
    pub depth: u32,
    pub ops: u32,
    /// Shares in per mille; the rest are reads.
    pub writes: u32,
    pub trims: u32,
    pub flushes: u32,
    pub longest: u32,
    /// Width in blocks of the window that half of the requests go to.
    pub hot: u32,
    /// Blocks by which that window moves after every thousand requests.
    pub hot_moves: u32,
    pub resets_per_million: u64,
    /// Losses of power of the device alone.
    pub cuts_per_million: u64,
    /// Suspends of the host, and resumes.
    pub suspends_per_million: u64,
    pub precondition: Option<Layout>,
    pub trouble: Trouble,
}

pub fn one_of<T: Copy>(rng: &mut Prng, values: &[T]) -> T {
    values[rng.below(values.len() as u64) as usize]
}

impl Options {
    pub fn draw(seed: u64, ops: u32) -> Options {
        let rng = &mut Prng::stream(seed, "options", 0);
        let mut config = common::device(1);
        let page_bytes = one_of(rng, &[4096, 8192, 16384]);
        config.geometry = Geometry {
            channels: 1 + rng.below(3) as u32,
            dies_per_channel: 1 + rng.below(3) as u32,
            planes: 1 + rng.below(2) as u32,
            blocks_per_plane: 0,
            pages_per_block: 6 + rng.below(10) as u32,
            page_bytes,
        };
        let unit = config.geometry.slices_per_unit();
        config.ftl = FtlConfig {
            victim: one_of(rng, &[VictimPolicy::Greedy, VictimPolicy::CostBenefit]),
            collect_below: 2 + rng.below(4) as u32,
            // From a stream of their own, so that the other options of a seed do not change.
            collect_together: one_of(&mut Prng::stream(seed, "together", 0), &[1, 2, 5]),
            superblock_tables: Prng::stream(seed, "tables", 0).below(2) == 0,
            collect_idle_below: one_of(rng, &[0, 6]),
            idle_after: Ns::from_ms(1),
            move_buffer_blocks: unit * (2 + rng.below(4) as u32),
            separate_moved: rng.below(2) == 0,
            hot_table_entries: one_of(rng, &[0, 64]),
            wear_threshold_percent: one_of(rng, &[0, 5, 20]),
            wear_least_erases: one_of(rng, &[1, 4]),
            map_changes: unit * (16 + rng.below(40) as u32),
            map_write_pages: 1 + rng.below(4) as u32,
            spare_map_superblocks: 5 + rng.below(3) as u32,
            checkpoint_after_units: 16 + rng.below(200) as u32,
            read_disturb_limit: one_of(rng, &[0, 0, 40]),
            faults: FaultConfig {
                program_failures_ppm: one_of(rng, &[0, 0, 50]),
                erase_failures_ppm: one_of(rng, &[0, 0, 200]),
                read_retries_ppm: one_of(rng, &[0, 20_000]),
                seed,
            },
            without: Without::NOTHING,
        };
        config.map_page_bytes = if page_bytes == 16384 { one_of(rng, &[4096, 16384]) } else { 4096 };
        config.map_cache_bytes = config.map_page_bytes * (1 + rng.below(4) as u32);
        config.write_buffer_blocks = config.geometry.slices_per_unit() * (1 + rng.below(8) as u32);
        config.suspend = one_of(
            rng,
            &[SuspendTiming::OFF, SuspendTiming { suspend: Ns(20_000), resume: Ns(30_000), max_per_op: 3 }],
        );
        let sub_region_size = 3 + one_of(rng, &[0, 3, 4, 6, 8, 10]);
        let region_size = sub_region_size + rng.below(4) as u8;
        config.hpb = Some(HpbConfig {
            region_size,
            sub_region_size,
            activate_after: 1 + rng.below(4) as u8,
            refresh_after: 1 + rng.below(16) as u8,
            repeat_after: Ns(one_of(rng, &[1_000, 100_000, 10_000_000])),
            freshness_chunk_entries: 1 << rng.below(u64::from(sub_region_size - 2)).min(6),
            replace_after: 1 + rng.below(16) as u8,
            read_buffers: 1 + rng.below(4) as u8,
            ..common::HPB
        });
        // No multiple of anything; a region more than the map cache holds; few enough for reads to meet writes.
        let region_entries = 1u32 << (region_size - 3);
        config.lus.clear();
        for _ in 0..one_of(rng, &[1, 1, 1, 2]) {
            let more = one_of(rng, &[800, 3_000, 9_000]);
            let blocks = (200 + rng.below(more) as u32).max(region_entries / 2);
            let regions = blocks.div_ceil(region_entries);
            let max_active = (1 + rng.below(12) as u32).max(regions / 4).min(64);
            let pinned = (rng.below(3) as u32).min(max_active - 1).min(regions);
            config.lus.push(LuConfig {
                blocks,
                hpb: rng.below(8) > 0,
                max_active_regions: max_active as u16,
                pinned_start: rng.below(u64::from(regions - pinned) + 1) as u16,
                pinned_regions: pinned as u16,
                zones: None,
            });
        }
        // Blocks that go bad take room away.
        let faults = config.ftl.faults.program_failures_ppm + config.ftl.faults.erase_failures_ppm;
        let more = 1 + rng.below(8) as u32 + if faults > 0 { 200 } else { 0 };
        common::give_little_room(&mut config, more);
        let booster = &mut Prng::stream(seed, "booster", 0);
        if booster.below(2) == 0 {
            common::any_slc(&mut config, booster);
        }
        let hpb = HpbOptions {
            order: one_of(rng, &[ListOrder::Activation, ListOrder::Recency]),
            strict_linux: rng.below(4) == 0,
            dirty_bitmap: rng.below(8) > 0,
            max_map_bytes: one_of(rng, &[None, None, Some(1 << 14)]),
            ..HpbOptions::default()
        };
        let mut host = HostConfig {
            slots: one_of(rng, &[2, 3, 8, 32, 64]),
            max_transfer_blocks: one_of(rng, &[1, 7, 32, 128]),
            hpb: (rng.below(16) > 0).then_some(hpb),
            ..HostConfig::LINUX
        };
        // From a stream of its own, so that the other options of a seed do not change.
        let hcm = &mut Prng::stream(seed, "control", 0);
        let suspends_per_million = one_of(hcm, &[0, 0, 500]);
        let mut hot_moves = 0;
        if hcm.below(2) == 0 {
            let host = host.hpb.as_mut();
            config.hpb.as_mut().expect("it has HPB").control = Control::Host;
            // The hot window moves by a region, so that hot regions become cold.
            hot_moves = region_entries;
            if let Some(hpb) = host {
                hpb.params = host_control(hcm, 1 << (sub_region_size - 3));
                let own = &mut Prng::stream(seed, "policy", 0);
                if own.below(2) == 0 {
                    // A policy has neither Linux's list nor its holes.
                    hpb.policy = Some(one_of(own, &ManagedPolicy::ALL));
                    (hpb.order, hpb.strict_linux) = (ListOrder::Activation, false);
                    // What their tables take alone is more than the smallest limit of maps.
                    hpb.max_map_bytes = None;
                }
            }
            // Little room, so that regions replace others.
            if hcm.below(2) == 0 {
                config
                    .lus
                    .iter_mut()
                    .for_each(|lu| lu.max_active_regions = lu.pinned_regions + 1 + hcm.below(3) as u16);
            }
        }
        let v2 = &mut Prng::stream(seed, "hpb2", 0);
        if v2.below(4) > 0 {
            let long_reads =
                one_of(v2, &[LongReads::First, LongReads::PreRequest, LongReads::PreRequest, LongReads::Ehs]);
            config.hpb.as_mut().expect("it has HPB").v2 = Some(Hpb2Config {
                enabled: v2.below(8) > 0,
                single_blocks: if long_reads == LongReads::First {
                    one_of(v2, &[8, 32, 255])
                } else {
                    one_of(v2, &[1, 2, 8])
                },
                pre_requests: one_of(v2, &[1, 4, 16]),
                entries_in_ehs: long_reads == LongReads::Ehs,
            });
            if let Some(hpb) = &mut host.hpb {
                hpb.long_reads = long_reads;
                hpb.params.requeue_timeout_ms = one_of(v2, &[0, 0, 1, 20]);
            }
        }
        let own = &mut Prng::stream(seed, "entries", 0);
        if own.below(2) == 0 {
            let protection = one_of(own, &[Protection::Mac, Protection::Encrypted]);
            config.hpb.as_mut().expect("it has HPB").entries = EntryConfig {
                protection,
                check_on: one_of(own, &[CheckOn::Firmware, CheckOn::Engine]),
                make: Ns(one_of(own, &[0, 100])),
                check: Ns(one_of(own, &[0, 900, 20_000])),
                tell_foreign: protection == Protection::Mac && own.below(2) == 0,
                ..EntryConfig::DEFAULT
            };
        }
        let memory = &mut Prng::stream(seed, "map memory", 0);
        if memory.below(2) == 0 {
            config.map_memory = Some(any_map_memory(&config, memory));
        }
        let mut trouble = Trouble::default();
        if rng.below(4) > 0 {
            let mut some = || if rng.below(2) == 0 { 0 } else { 1 + rng.below(300) as u32 };
            trouble = Trouble {
                lose: some(),
                delay: some(),
                double: some(),
                invent: some() / 8,
                stale: some(),
                random: some(),
                flip: some(),
                zero: some(),
                swap: some(),
                replay: some(),
                misdirect: some() / 4,
                hpb_resets_per_million: one_of(&mut Prng::stream(seed, "hpb resets", 0), &[0, 0, 2_000]),
            };
        }
        let kind = rng.below(4);
        Options {
            seed,
            encoded: rng.below(8) == 0,
            depth: one_of(rng, &[1, 2, 4, 16, 48]),
            ops,
            writes: [50, 200, 400, 600][kind as usize],
            trims: [5, 20, 50, 150][kind as usize],
            flushes: one_of(rng, &[0, 2, 10]),
            longest: one_of(rng, &[1, 2, 8, 40]).max(if config.hpb.is_some_and(|hpb| hpb.v2.is_some()) {
                8
            } else {
                1
            }),
            hot: 1 + rng.below(100) as u32,
            hot_moves,
            resets_per_million: one_of(rng, &[0, 100, 2_000]),
            suspends_per_million,
            cuts_per_million: one_of(&mut Prng::stream(seed, "power", 0), &[0, 0, 200]),
            precondition: one_of(rng, &[None, Some(Layout::Sequential), Some(Layout::Random)]),
            config,
            host,
            trouble,
        }
    }
}

/// Parameters under which a few thousand requests see everything that host control mode does: timers run 100 times as
/// fast, and thresholds are low. `entries` are those of a sub-region.
fn host_control(rng: &mut Prng, entries: u32) -> HpbParams {
    let mut some = |from: u32, n: u64| from + rng.below(n) as u32;
    let activation_thld = some(1, 4);
    let eviction_thld_exit = activation_thld + some(1, 4);
    let timeout_polling_interval_ms = some(1, 3);
    let mut params = HpbParams {
        activation_thld,
        eviction_thld_exit,
        eviction_thld_enter: eviction_thld_exit + some(1, 3),
        read_timeout_ms: timeout_polling_interval_ms * 2 + some(0, 8),
        read_timeout_expiries: some(1, 5),
        timeout_polling_interval_ms,
        ..HpbParams::LINUX
    };
    if rng.below(2) == 0 {
        // Nothing times out, so regions take the place of others. Counters are shifted down when they pass `entries`.
        params.read_timeout_ms = 5_000;
        params.activation_thld = 1;
        params.eviction_thld_exit = (entries / 4).max(2);
        params.eviction_thld_enter = params.eviction_thld_exit + 1;
    }
    params
}

/// DRAM for all of the map, or memory of the host for some of it.
fn any_map_memory(config: &DeviceConfig, rng: &mut Prng) -> MapMemory {
    if rng.below(4) == 0 {
        return MapMemory::Dram { access: Ns(rng.below(300)) };
    }
    let check = (rng.below(2) == 0).then(|| LineCheck { check: Ns(rng.below(400)), seal: Ns(rng.below(100)) });
    let pages = 1 + rng.below(u64::from(config.map_pages()));
    let line_bytes = 16 << rng.below(7);
    MapMemory::Host(HostMap {
        protocol: one_of(rng, &[Protocol::Hmb, Protocol::Ume]),
        bytes: pages * u64::from(config.map_page_bytes) * if check.is_some() { 2 } else { 1 },
        minimum: 0,
        least_chunk: 0,
        most_chunks: 0,
        line_bytes,
        outstanding: one_of(rng, &[1, 2, 8, 64]),
        firmware: Ns(rng.below(2_000)),
        request: Ns(rng.below(1_000)),
        access: Ns(one_of(rng, &[0, 5_000, 60_000, 300_000])),
        response: Ns(rng.below(500)),
        check,
    })
}

/// Prints the options of a seed that panics.
pub struct OnPanic<'a>(pub &'a Options);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed: {:#?}", self.0);
        }
    }
}
