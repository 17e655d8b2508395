// SPDX-License-Identifier: MIT OR Apache-2.0
//! No read ever returns anything but what was written, whatever the device looks like, whatever is in flight together,
//! whatever happens to HPB notifications and entries on their way, whenever host and device are reset, and when the device
//! loses its power beneath a living host (what was not flushed may then be lost). Every request ends exactly once, and
//! nothing is left behind in host or device.
//!
//! Each seed draws a device, a host, a workload and a troublemaker. On failure its options are printed; a seed can be
//! run alone with `READPATH_SEED=n`.

mod common;

use common::{DELAYS, Meddled, Meddler};
use readpath_device::{
    CheckOn, Control, DeviceConfig, EntryConfig, FaultConfig, FtlConfig, HostMap, Hpb2Config, HpbConfig, Layout,
    LineCheck, LuConfig, MapMemory, Protection, Protocol, Verification, VictimPolicy, Without,
};
use readpath_flash::{DieSched, Exact, Geometry, Lean, Queued, SuspendTiming};
use readpath_host::{BlockOp, BlockRequest, HostConfig, HpbOptions, HpbParams, ListOrder, LongReads, ManagedPolicy};
use readpath_kit::{Ns, Prng};
use readpath_proto::typed::{
    Cdb, HpbEntry, HpbNotification, Reply, ReplyBody, Request, RequestBody, Sense, Status, SubRegion,
};
use readpath_stack::{Stack, Tags, Typed};

/// What happens to HPB on the wire, in per mille of the messages that could be meddled with.
#[derive(Clone, Copy, Default, Debug)]
struct Trouble {
    lose: u32,
    delay: u32,
    double: u32,
    invent: u32,
    stale: u32,
    random: u32,
    flip: u32,
    zero: u32,
    swap: u32,
    /// Plain reads turned into HPB READs with an entry that once was right.
    replay: u32,
    /// HPB READ BUFFERs that ask for another sub-region, which may not exist.
    misdirect: u32,
}

/// Everything drawn from a seed.
#[derive(Clone, Debug)]
struct Options {
    seed: u64,
    config: DeviceConfig,
    host: HostConfig,
    encoded: bool,
    depth: u32,
    ops: u32,
    /// Shares in per mille; what is left is reads.
    writes: u32,
    trims: u32,
    flushes: u32,
    longest: u32,
    /// Width in blocks of the window that half of the requests go to.
    hot: u32,
    /// Blocks by which that window moves after every thousand requests.
    hot_moves: u32,
    resets_per_million: u64,
    /// Losses of power of the device alone.
    cuts_per_million: u64,
    /// Suspends of the host, and resumes.
    suspends_per_million: u64,
    precondition: Option<Layout>,
    trouble: Trouble,
}

fn one_of<T: Copy>(rng: &mut Prng, values: &[T]) -> T {
    values[rng.below(values.len() as u64) as usize]
}

impl Options {
    fn draw(seed: u64, ops: u32) -> Options {
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
            // From a stream of their own, so that all else is drawn as it was before they were there.
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
            });
        }
        // Blocks that go bad take room away.
        let faults = config.ftl.faults.program_failures_ppm + config.ftl.faults.erase_failures_ppm;
        let more = 1 + rng.below(8) as u32 + if faults > 0 { 200 } else { 0 };
        common::give_little_room(&mut config, more);
        let booster = &mut Prng::stream(seed, "booster", 0);
        if booster.below(2) == 0 {
            common::any_booster(&mut config, booster);
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
            write_booster: true,
        };
        // From a stream of its own, so that the seeds still draw what they drew before.
        let hcm = &mut Prng::stream(seed, "control", 0);
        let suspends_per_million = one_of(hcm, &[0, 0, 500]);
        let mut hot_moves = 0;
        if hcm.below(2) == 0 {
            let host = host.hpb.as_mut();
            config.hpb.as_mut().expect("it has HPB").control = Control::Host;
            // What is read much becomes what was.
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
            // Little room, so that regions take the place of others.
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

/// Parameters under which a few thousand requests see everything that host control mode does: timers run 100 times as fast,
/// and thresholds are low. `entries` are those of a sub-region.
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

/// Limits of memory that change many times in a run, so that maps are dropped while requests are under way.
fn pressure<S: DieSched>(stack: &mut Tried<S>, now: Ns, rng: &mut Prng) {
    for lun in 0..8 {
        // Linux's policies have none.
        let Some(least) = stack.host.hpb(lun).and_then(|hpb| hpb.least_memory().ok()) else { continue };
        let mut bytes = || {
            let width = 7 + rng.below(9);
            least + rng.below(1 << width)
        };
        let changes: Vec<(Ns, u64)> = (1..200).map(|i| (now + Ns(i * 500_000), bytes())).collect();
        stack.host.schedule_limits(lun, &changes).expect("room for the tables");
    }
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
        line_bytes,
        outstanding: one_of(rng, &[1, 2, 8, 64]),
        firmware: Ns(rng.below(2_000)),
        request: Ns(rng.below(1_000)),
        access: Ns(one_of(rng, &[0, 800, 5_000, 60_000])),
        response: Ns(rng.below(500)),
        check,
    })
}

/// Prints the options of a seed that panics.
struct OnPanic<'a>(&'a Options);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed: {:#?}", self.0);
        }
    }
}

/// Loses, delays, doubles and invents notifications; replaces entries.
struct Troublemaker {
    rng: Prng,
    trouble: Trouble,
    kept: Vec<HpbNotification>,
    /// Entries seen, by unit and block: the newest and an older one.
    seen: Vec<Vec<[HpbEntry; 2]>>,
}

impl Troublemaker {
    fn new(o: &Options) -> Self {
        let seen = o.config.lus.iter().map(|lu| vec![[HpbEntry::ZERO; 2]; lu.blocks as usize]).collect();
        Troublemaker { rng: Prng::stream(o.seed, "trouble", 0), trouble: o.trouble, kept: Vec::new(), seen }
    }

    fn happens(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.rng.chance_per_mille(per_mille)
    }

    fn invented(&mut self) -> HpbNotification {
        let mut at = || SubRegion { region: self.rng.next_u64() as u16, index: self.rng.below(10) as u16 };
        let active = [at(), at()];
        HpbNotification {
            operation: one_of(&mut self.rng, &[0, 1, 1, 1, 2, 3, 255]),
            lun: one_of(&mut self.rng, &[0, 0, 1, 7, 0x7F, 0xD0]),
            active_count: one_of(&mut self.rng, &[0, 1, 2, 3, 255]),
            inactive_count: one_of(&mut self.rng, &[0, 1, 2, 3, 255]),
            active: if self.rng.below(2) == 0 {
                active
            } else {
                active.map(|a| SubRegion { region: a.region % 8, ..a })
            },
            inactive: [self.rng.below(40) as u16, self.rng.next_u64() as u16],
        }
    }

    /// A READ ID that another command may have, or none.
    fn changed_id(&mut self, read_id: u8) -> u8 {
        if read_id != 0 && self.happens(self.trouble.swap) { self.rng.below(4) as u8 } else { read_id }
    }

    fn changed(&mut self, lun: usize, lba: u32, entry: HpbEntry) -> HpbEntry {
        let Trouble { stale, random, flip, zero, swap, .. } = self.trouble;
        if self.happens(stale) {
            return self.seen[lun][lba as usize][1];
        }
        if self.happens(random) {
            return HpbEntry(self.rng.next_u64().to_be_bytes());
        }
        if self.happens(flip) {
            let mut flipped = entry;
            let bit = self.rng.below(64) as usize;
            flipped.0[bit / 8] ^= 1 << (bit % 8);
            return flipped;
        }
        if self.happens(zero) {
            return HpbEntry::ZERO;
        }
        if self.happens(swap) {
            let near = (u64::from(lba) + self.rng.below(4)) as usize;
            return self.seen[lun].get(near).map_or(entry, |seen| seen[0]);
        }
        entry
    }
}

impl Meddler for Troublemaker {
    fn request(&mut self, request: &mut Request) {
        let RequestBody::Command(command) = &mut request.body else { return };
        let lun = usize::from(request.lun);
        match command.cdb {
            Cdb::HpbRead { lba, blocks, entry, flags, read_id } => {
                let seen = &mut self.seen[lun][lba as usize];
                if seen[0] != entry {
                    *seen = [entry, seen[0]];
                }
                let entry = self.changed(lun, lba, entry);
                let read_id = self.changed_id(read_id);
                command.cdb = Cdb::HpbRead { lba, blocks, entry, flags, read_id };
            }
            Cdb::Read { lba, blocks, flags, .. } if blocks < 256 && self.happens(self.trouble.replay) => {
                let [new, old] = self.seen[lun][lba as usize];
                let entry = if self.rng.below(2) == 0 { new } else { old };
                if entry != HpbEntry::ZERO {
                    command.cdb = Cdb::HpbRead { lba: lba as u32, blocks: blocks as u8, entry, flags, read_id: 0 };
                }
            }
            Cdb::HpbPreRequest { lba, read_id, list_bytes } => {
                // READ ID 0 is refused, like too many entries; neither is the read's concern.
                let read_id = self.changed_id(read_id);
                let lba = if self.happens(self.trouble.misdirect) { self.rng.next_u64() as u32 } else { lba };
                command.cdb = Cdb::HpbPreRequest { lba, read_id, list_bytes };
            }
            Cdb::HpbReadBuffer { buffer_id, at, alloc } if self.happens(self.trouble.misdirect) => {
                let region =
                    if self.rng.below(2) == 0 { at.region.wrapping_add(1) } else { self.rng.next_u64() as u16 };
                let at = SubRegion { region, index: self.rng.below(4) as u16 };
                command.cdb = Cdb::HpbReadBuffer { buffer_id, at, alloc };
            }
            _ => {}
        }
    }

    fn reply(&mut self, reply: &mut Reply) {
        let ReplyBody::Response(response) = &mut reply.body else { return };
        if response.status != Status::Good {
            return;
        }
        let Trouble { lose, delay, double, invent, .. } = self.trouble;
        if let Some(n) = response.hpb {
            if self.happens(lose) {
                response.hpb = None;
            } else if self.happens(delay) {
                self.kept.push(n);
                response.hpb = None;
            } else if self.happens(double) {
                self.kept.push(n);
            }
        } else if self.happens(invent) {
            response.hpb = Some(self.invented());
        } else if !self.kept.is_empty() && self.rng.below(20) == 0 {
            let at = self.rng.below(self.kept.len() as u64) as usize;
            response.hpb = Some(self.kept.swap_remove(at));
        }
    }
}

type Tried<S> = Stack<S, Tags, (), Meddled<Troublemaker>>;

/// Requests in flight by cookie.
struct InFlight {
    flights: Vec<Option<BlockRequest>>,
    free: Vec<u32>,
    outstanding: u32,
}

impl InFlight {
    fn submit<S: DieSched>(&mut self, stack: &mut Tried<S>, now: Ns, lun: u8, op: BlockOp, block: u32, blocks: u32) {
        let cookie = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() as u32 - 1
        });
        let request = BlockRequest { cookie, lun, op, block, blocks };
        self.flights[cookie as usize] = Some(request);
        self.outstanding += 1;
        stack.submit(now, &request);
    }

    fn collect<S: DieSched>(&mut self, stack: &mut Tried<S>) {
        while let Some(done) = stack.poll_done() {
            let request = self.flights[done.cookie as usize].take().expect("a request ends once");
            assert_eq!(done.error, None, "{request:?}");
            self.free.push(done.cookie);
            self.outstanding -= 1;
        }
    }

    fn drain<S: DieSched>(&mut self, stack: &mut Tried<S>, mut now: Ns) -> Ns {
        for step in 0.. {
            if stack.next_deadline() == Ns::NEVER {
                break;
            }
            now = stack.next_deadline();
            stack.advance(now);
            self.collect(stack);
            assert!(step < 1_500_000, "everything ends some time: {} requests outstanding", self.outstanding);
        }
        assert_eq!(self.outstanding, 0, "every request ends");
        now
    }
}

fn random_request(o: &Options, rng: &mut Prng, sent: u32) -> (u8, BlockOp, u32, u32) {
    let lun = rng.below(o.config.lus.len() as u64) as usize;
    let size = o.config.lus[lun].blocks;
    let kind = rng.below(1000) as u32;
    let op = match kind {
        k if k < o.flushes => BlockOp::Flush,
        k if k < o.flushes + o.trims => BlockOp::Discard,
        k if k < o.flushes + o.trims + o.writes && k % 8 == 0 => BlockOp::WriteFua,
        k if k < o.flushes + o.trims + o.writes => BlockOp::Write,
        _ => BlockOp::Read,
    };
    if op == BlockOp::Flush {
        return (lun as u8, op, 0, 0);
    }
    let longest = if op == BlockOp::Discard && rng.below(50) == 0 { 600 } else { o.longest };
    let blocks = (1 + rng.below(u64::from(longest)) as u32).min(size);
    let (start, range) = if rng.below(2) == 0 { (sent / 1000 * o.hot_moves, o.hot.min(size)) } else { (0, size) };
    let block = (start + rng.below(u64::from(range)) as u32) % size;
    (lun as u8, op, block.min(size - blocks), blocks)
}

/// What all seeds of a test met together. A test that met nothing proves nothing.
#[derive(Default, Debug)]
struct Met {
    requests: u64,
    blocks_checked: u64,
    resets: u64,
    cuts: u64,
    hits: u64,
    stale: u64,
    forged: u64,
    zero: u64,
    inactive: u64,
    map_misses: u64,
    buffer_hits: u64,
    unmapped: u64,
    padded: u64,
    erases: u64,
    collected: u64,
    levelled: u64,
    boosted: u64,
    flushed: u64,
    map_writes: u64,
    checkpoints: u64,
    recommended: u64,
    evicted: u64,
    refused: u64,
    load_errors: u64,
    suspends: u64,
    /// HPB READ BUFFERs and WRITE BUFFERs of hosts in host control mode, and hits of their reads.
    hcm_loads: u64,
    hcm_drops: u64,
    hcm_evicted: u64,
    hcm_hits: u64,
    /// Maps dropped because a limit of memory was lowered.
    shrunk: u64,
    /// Pre-requests and those that were used; blocks of longer HPB READs served by entries, of hosts that send that of the first
    /// block, and of hosts that send all.
    pre_requests: u64,
    pre_requests_used: u64,
    long_first: u64,
    long_all: u64,
    /// Entries that were told to be of other blocks, and hits of encrypted ones and of those that an engine checks.
    foreign: u64,
    encrypted: u64,
    engine: u64,
    /// Blocks translated from host memory; its pages written, and written anew; fetches that came too late.
    host_map_hits: u64,
    host_map_fills: u64,
    host_map_updates: u64,
    host_map_stale: u64,
}

impl Met {
    fn add<S: DieSched>(&mut self, stack: &Tried<S>) {
        let s = stack.device.stats();
        self.blocks_checked += stack.payload.checked;
        self.hits += s.hpb_hits;
        self.stale += s.hpb_stale;
        self.forged += s.hpb_forged;
        self.foreign += s.hpb_foreign;
        let entries = stack.device.config().hpb.map_or(EntryConfig::DEFAULT, |hpb| hpb.entries);
        self.encrypted += if entries.protection == Protection::Encrypted { s.hpb_hits } else { 0 };
        self.engine += if entries.check_on == CheckOn::Engine { s.hpb_hits } else { 0 };
        self.zero += s.hpb_zero;
        self.inactive += s.hpb_inactive;
        self.map_misses += s.map_misses;
        self.buffer_hits += s.buffer_hits;
        self.unmapped += s.unmapped_reads;
        self.padded += s.slices_padded;
        self.erases += s.erases;
        self.collected += s.collected;
        self.levelled += s.levelled;
        self.boosted += s.slices_boosted;
        self.flushed += s.flushed;
        self.map_writes += s.map_writes;
        self.checkpoints += s.checkpoints;
        self.recommended += s.recommended_active;
        self.pre_requests += s.pre_requests;
        self.pre_requests_used += s.pre_requests_used;
        self.host_map_hits += s.host_map_hits;
        self.host_map_fills += s.host_map_fills;
        self.host_map_updates += s.host_map_updates;
        self.host_map_stale += s.host_map_stale;
        assert_eq!(s.host_map_bad, 0, "nobody changes the copies");
        for c in (0..8).filter_map(|lun| stack.host.counters(lun)) {
            self.evicted += c.evict_cnt;
            self.refused += c.rejected_noti_cnt;
            self.load_errors += c.map_error_cnt;
        }
        for lun in 0..8 {
            let Some(c) = stack.host.hpb(lun).filter(|hpb| hpb.is_host_control()).map(|hpb| *hpb.counters()) else {
                continue;
            };
            self.hcm_loads += c.map_req_cnt;
            self.hcm_drops += c.umap_req_cnt;
            self.hcm_evicted += c.evict_cnt;
            self.hcm_hits += c.hit_cnt;
            self.shrunk += c.shrink_cnt;
        }
    }

    fn everything(&self) -> bool {
        let Met { resets, cuts, hits, stale, forged, zero, inactive, map_misses, buffer_hits, .. } = *self;
        let Met { unmapped, padded, erases, recommended, evicted, refused, load_errors, .. } = *self;
        let Met { collected, levelled, map_writes, checkpoints, .. } = *self;
        let device = [hits, stale, forged, zero, inactive, map_misses, buffer_hits, unmapped, padded, erases];
        let host = [resets, cuts, recommended, evicted, refused, load_errors];
        let Met { suspends, hcm_loads, hcm_drops, hcm_evicted, hcm_hits, .. } = *self;
        let translation = [collected, levelled, map_writes, checkpoints];
        let hcm = [suspends, hcm_loads, hcm_drops, hcm_evicted, hcm_hits, 4 * self.shrunk];
        let buffer = [self.boosted, self.flushed];
        let hpb2 = [self.pre_requests, self.pre_requests_used, self.long_first, self.long_all];
        let entries = [self.foreign, self.encrypted, self.engine];
        let copies = [self.host_map_hits, self.host_map_fills, self.host_map_updates, 10 * self.host_map_stale];
        device
            .iter()
            .chain(&copies)
            .chain(&host)
            .chain(&translation)
            .chain(&buffer)
            .chain(&hcm)
            .chain(&hpb2)
            .chain(&entries)
            .all(|&n| n > 50)
    }
}

/// Runs one seed.
fn try_out<S: DieSched>(o: &Options, met: &mut Met) {
    let _on_panic = OnPanic(o);
    let wire = Meddled::new(Troublemaker::new(o), o.encoded);
    let mut stack: Tried<S> = Stack::new(&o.config, o.host, DELAYS, Tags::default(), (), wire).expect("possible");
    if let Some(layout) = o.precondition {
        for (lun, lu) in o.config.lus.iter().enumerate() {
            stack.precondition(lun as u8, 0, lu.blocks * 3 / 4, layout, o.seed).expect("room");
        }
    }
    let mut now = stack.start(Ns::ZERO).expect("host and device find each other");
    pressure(&mut stack, now, &mut Prng::stream(o.seed, "pressure", 0));
    let rng = &mut Prng::stream(o.seed, "requests", 0);
    let power = &mut Prng::stream(o.seed, "cuts", 0);
    let sleep = &mut Prng::stream(o.seed, "sleep", 0);
    let mut flights = InFlight { flights: Vec::new(), free: Vec::new(), outstanding: 0 };
    let (mut sent, mut steps) = (0, 0u64);
    let toggles = &mut Prng::stream(o.seed, "toggles", 0);
    while sent < o.ops {
        if o.config.write_booster.is_some() && o.host.slots < 64 && toggles.below(1000) == 0 {
            common::toggle_booster(&mut stack, now, toggles);
        }
        // Now and then everything ends before more is sent.
        if rng.below(2000) == 0 {
            now = flights.drain(&mut stack, now);
        }
        while flights.outstanding < o.depth && sent < o.ops {
            let (lun, op, block, blocks) = random_request(o, rng, sent);
            flights.submit(&mut stack, now, lun, op, block, blocks);
            sent += 1;
        }
        let reset = rng.below(1_000_000) < o.resets_per_million;
        if reset {
            // In the same instant as a submission, or somewhere in the middle.
            let later = now + Ns(rng.below(2) * rng.below(400_000));
            while stack.next_deadline() <= later {
                now = stack.next_deadline();
                stack.advance(now);
            }
            now = later;
            stack.reset(now);
            met.resets += 1;
        } else if power.below(1_000_000) < o.cuts_per_million {
            let on = now + Ns::from_ms(1);
            stack.device_power_cycle(now, on);
            now = on;
            met.cuts += 1;
        } else if sleep.below(1_000_000) < o.suspends_per_million {
            // Awake again at once, or some time later.
            if sleep.below(2) == 0 {
                stack.suspend();
            }
            if sleep.below(2) == 0 {
                stack.resume(now);
            }
            met.suspends += 1;
        } else if rng.below(2) == 0 {
            now = stack.next_deadline();
            stack.advance(now);
        } else {
            now = stack.advance_to_reply(Ns::NEVER);
        }
        steps += 1;
        assert!(steps < 20_000_000, "requests end some time: {} outstanding, {sent} sent", flights.outstanding);
        assert_ne!(now, Ns::NEVER, "requests are outstanding, so something must happen");
        flights.collect(&mut stack);
    }
    flights.drain(&mut stack, now);
    finish(o, &mut stack, &mut flights, now);
    met.requests += u64::from(sent);
    met.add(&stack);
    let hits = stack.device.stats().hpb_long_hits;
    match o.host.hpb.map(|hpb| hpb.long_reads) {
        Some(LongReads::First) => met.long_first += hits,
        Some(LongReads::Ehs) => met.long_all += hits,
        _ => {}
    }
}

/// Reads everything back, and looks at what is left behind.
fn finish<S: DieSched>(o: &Options, stack: &mut Tried<S>, flights: &mut InFlight, now: Ns) {
    flights.submit(stack, now, 0, BlockOp::Flush, 0, 0);
    let mut now = flights.drain(stack, now);
    let unmapped = stack.device.stats().unmapped_reads;
    for (lun, lu) in o.config.lus.iter().enumerate() {
        for block in (0..lu.blocks).step_by(16) {
            flights.submit(stack, now, lun as u8, BlockOp::Read, block, (lu.blocks - block).min(16));
            if flights.outstanding == 32 {
                now = flights.drain(stack, now);
            }
        }
    }
    flights.drain(stack, now);
    assert!(stack.wire_error().is_none());
    assert_eq!(stack.payload.wrong, 0, "first wrong read: {:?}", stack.payload.first_wrong);
    assert!(stack.payload.checked >= o.config.logical_blocks());
    let stats = stack.device.stats();
    assert_eq!(stats.no_space, 0);
    assert_eq!(stack.device.ops_in_use(), 0, "no operation is left behind");
    assert!(stack.host.is_idle(), "no tag is left behind");
    if let Err(e) = stack.device.audit() {
        panic!("{e}");
    }
    // Everything has been flushed, so a block that did not read as unmapped lies in exactly one valid slice.
    let mapped = o.config.logical_blocks() - (stats.unmapped_reads - unmapped);
    assert_eq!(stack.device.valid_slices(), mapped, "a valid slice for every mapped block");
}

/// Runs `count` seeds of `ops` requests each.
fn seeds<S: DieSched>(first: u64, count: u64, ops: u32) {
    let only = std::env::var("READPATH_SEED").ok().and_then(|s| s.parse::<u64>().ok());
    let mut met = Met::default();
    for seed in (first..first + count).filter(|&s| only.is_none_or(|only| s == only)) {
        try_out::<S>(&Options::draw(seed, ops), &mut met);
    }
    println!("{met:?}");
    assert!(only.is_some() || met.everything(), "the seeds are too tame: {met:?}");
}

#[test]
fn lean_seeds_a() {
    seeds::<Lean>(1_000, 60, 60_000);
}

#[test]
fn lean_seeds_b() {
    seeds::<Lean>(2_000, 60, 60_000);
}

#[test]
fn exact_seeds() {
    seeds::<Exact>(3_000, 40, 60_000);
}

#[test]
fn queued_seeds() {
    seeds::<Queued>(4_000, 40, 60_000);
}

/// Without verification, an honest host's dirty bitmap alone has to keep every read right, whatever happens to
/// notifications and whenever there is a reset, as long as nothing but writes moves a block: so there is room enough that
/// no garbage is collected.
#[test]
fn an_honest_host_needs_no_verification() {
    let mut met = Met::default();
    for seed in 6_000..6_040 {
        let mut o = Options::draw(seed, 50_000);
        let Trouble { lose, delay, double, invent, .. } = o.trouble;
        o.trouble = Trouble { lose, delay, double, invent, ..Trouble::default() };
        o.host.hpb = Some(HpbOptions { strict_linux: false, dirty_bitmap: true, ..o.host.hpb.unwrap_or_default() });
        let hpb = o.config.hpb.as_mut().expect("it has HPB");
        (hpb.verification, hpb.entries) = (Verification::Off, EntryConfig::DEFAULT);
        common::give_room(&mut o.config);
        (o.config.ftl.wear_threshold_percent, o.config.ftl.read_disturb_limit) = (0, 0);
        o.cuts_per_million = 0;
        o.config.ftl.collect_idle_below = 0;
        o.config.ftl.faults = FaultConfig::NONE;
        o.config.write_booster = None;
        try_out::<Lean>(&o, &mut met);
    }
    assert!(met.hits > 100_000 && met.resets > 1_000, "{met:?}");
}

/// The longest reads that a host may send, each block on another page, none of their map pages in SRAM, as many at once
/// as a controller has slots, among writes.
#[test]
fn many_long_scattered_reads() {
    let mut config = common::device(8192);
    config.map_cache_bytes = 4096;
    let o = Options {
        config,
        host: HostConfig { slots: 64, max_transfer_blocks: 1024, ..HostConfig::LINUX },
        encoded: false,
        depth: 63,
        writes: 100,
        longest: 1024,
        precondition: Some(Layout::Random),
        ..Options::draw(5_000, 1_000)
    };
    try_out::<Lean>(&o, &mut Met::default());
}

/// A device whose blocks go bad one after the other refuses writes when too few are left; nothing waits for ever, and
/// what it holds can be read.
#[test]
fn a_worn_out_device_refuses_and_does_not_hang() {
    wear_out(0);
}

/// The same if it collects while the host is idle, and then cannot finish.
#[test]
fn a_worn_out_device_comes_to_rest() {
    wear_out(100);
}

fn wear_out(collect_idle_below: u32) {
    let mut config = common::device(512);
    config.ftl.collect_idle_below = collect_idle_below;
    common::give_little_room(&mut config, 2);
    config.ftl.faults = FaultConfig { program_failures_ppm: 30_000, erase_failures_ppm: 30_000, ..FaultConfig::NONE };
    let (mut stack, mut now) = common::start::<Lean, Tags, Typed>(&config, common::host(None), |_| ());
    let mut rng = Prng::new(1);
    let (mut ended, mut refused) = (0, 0);
    for cookie in 0..20_000 {
        let op = one_of(&mut rng, &[BlockOp::WriteFua, BlockOp::Write, BlockOp::Flush, BlockOp::Read]);
        let blocks = if op == BlockOp::Flush { 0 } else { 1 + rng.below(6) as u32 };
        stack.submit(now, &BlockRequest { cookie, lun: 0, op, block: rng.below(500) as u32, blocks });
        if cookie % 8 == 7 {
            common::settle(&mut stack, &mut now);
        }
        while let Some(done) = stack.poll_done() {
            ended += 1;
            assert!(done.error.is_none_or(|sense| sense == Sense::NO_SPACE), "{done:?}");
            refused += u64::from(done.error.is_some());
        }
    }
    assert_eq!((ended, stack.host.is_idle(), stack.device.ops_in_use()), (20_000, true, 0));
    assert!(refused > 1_000 && refused == stack.device.stats().no_space, "{refused}");
    assert!(stack.device.bad_blocks() > 20, "{}", stack.device.bad_blocks());
    stack.device.audit().expect("what is left is in order");
    assert_eq!(stack.payload.wrong, 0, "{:?}", stack.payload.first_wrong);
}
