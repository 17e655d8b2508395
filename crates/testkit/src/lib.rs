// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests share: a small device whose times are easy to add up, ways to make stacks and phases, and a wire on which
//! a test can change what passes.

#![warn(unreachable_pub)]

pub mod book;
pub mod full;
pub mod vfio;
pub mod writes;

use readpath_device::{
    CacheCells, CacheOwner, Control, Delays, DeviceConfig, EntryConfig, FirmwareTiming, FlashTiming, FtlConfig,
    HpbConfig, Layout, LinkTiming, LuConfig, MapMemory, MediaOp, Probe, Recovery, SlcCacheConfig, SlcConfig, UfsDevice,
    UfsVersion, Verification, WithMedia,
};
use readpath_flash::{DieSched, Geometry, Lean, PlaneReads, Scheduler, SuspendTiming};
use readpath_host::{BlockOp, BlockRequest, HostConfig, HpbOptions};
use readpath_kit::{Ns, Prng};
use readpath_proto::query::{flag, opcode};
use readpath_proto::typed::{
    Cdb, Command, Form, HpbEntry, QueryRequest, Reply, ReplyBody, Request, RequestBody, Response, Status, SubRegion,
};
use readpath_run::{PhaseStats, Runner};
use readpath_stack::{Crossed, Encoded, Payload, Stack, Tags, Typed, Wire, WireError};
use readpath_workload::{Ends, Job, Limits, Phase, Stream, Think};

/// Delays of the host's software that no other delay equals.
pub const DELAYS: Delays = Delays { to_link: Ns(10_007), from_link: Ns(15_013) };

/// The map of one hand-out of HPB, small enough that a few thousand reads see every state of it: 64-block sub-regions,
/// four to a region.
pub const HPB: HpbConfig = HpbConfig {
    control: Control::Device,
    region_size: 11,
    sub_region_size: 9,
    max_active_regions: 64,
    activate_after: 1,
    refresh_after: 8,
    replace_after: 3,
    repeat_after: Ns::from_ms(1),
    freshness_chunk_entries: 1,
    read_buffers: 2,
    verification: Verification::On,
    entries: EntryConfig::DEFAULT,
    v2: None,
    prototype: None,
};

/// One unit of `blocks` blocks with HPB, all of it allowed to be active.
pub fn lu(blocks: u32) -> LuConfig {
    LuConfig { blocks, hpb: true, max_active_regions: 64, pinned_start: 0, pinned_regions: 0, zones: None }
}

/// A device of 2 channels with 2 dies each and one unit of `blocks` blocks. It never runs out of erased superblocks
/// however it is written: there is one for every logical block, which is the most that can hold valid data, and more.
pub fn device(blocks: u32) -> DeviceConfig {
    let mut config = DeviceConfig {
        product_name: "TEST".into(),
        ufs_version: UfsVersion::V31,
        geometry: Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes: 1,
            blocks_per_plane: 0,
            pages_per_block: 4,
            page_bytes: 16384,
        },
        flash: FlashTiming {
            read: Ns(50_021),
            map_read: Ns(40_009),
            program: Ns(300_007),
            erase: Ns(2_000_003),
            transfer_block: Ns(8_011),
            map_transfer: Ns(9_001),
            plane_reads: PlaneReads::One,
            life_erases: 1_000_000,
        },
        scheduler: Scheduler::Lean,
        suspend: SuspendTiming::OFF,
        firmware: FirmwareTiming {
            cores: 1,
            read_command: Ns::ZERO,
            flash_op: Ns(13_003),
            hpb_read_extra: Ns(307),
            write_command: Ns(5_009),
            buffer_read: Ns(6_011),
            unmapped_read: None,
            make_entry: Ns(11),
            control: Ns(4_001),
            trim_map_page: Ns::ZERO,
        },
        link: LinkTiming { request: Ns(503), response: Ns(101), block: Ns(3_907) },
        map_cache_bytes: 2 * 4096,
        map_page_bytes: 4096,
        map_runs_bytes: 0,
        map_read_ahead: 0,
        write_buffer_blocks: 64,
        queue_depth: 32,
        lus: vec![lu(blocks)],
        ftl: FtlConfig { map_changes: 1024, ..FtlConfig::DEFAULT },
        slc: None,
        slc_cache: None,
        map_memory: None,
        hpb: Some(HPB),
        entry_key: [0x5EED, 0xC0FFEE],
    };
    give_room(&mut config);
    config
}

/// Sets the number of superblocks so that writing never runs out of erased ones (see [`device`]).
pub fn give_room(config: &mut DeviceConfig) {
    config.geometry.blocks_per_plane = config.logical_blocks() as u32 + 64;
    config.geometry.blocks_per_plane += config.meta_superblocks();
    make_checkpoints_fit(config);
}

/// Any number of firmware cores, a time for each READ or none, and planes that read in any way that the scheduler
/// knows; with runs of the map or without, and any reading ahead of it. From a stream of its own, so that the other
/// settings of a seed do not change.
pub fn any_read_path(config: &mut DeviceConfig, seed: u64) {
    let rng = &mut Prng::stream(seed, "read path", 0);
    config.firmware.cores = 1 + rng.below(4) as u8;
    config.firmware.read_command = Ns(rng.below(2) * 1_009);
    // The last two let planes read apart, which the scheduler `queued` does not know.
    let ways = if config.scheduler == Scheduler::Queued { 2 } else { PlaneReads::ALL.len() };
    config.flash.plane_reads = PlaneReads::ALL[rng.below(ways as u64) as usize];
    let is_in_dram = matches!(config.map_memory, Some(MapMemory::Dram { .. }));
    config.map_runs_bytes = if is_in_dram { 0 } else { [0, 96, 500, 10_000][rng.below(4) as usize] };
    let frames = if is_in_dram { config.map_pages() } else { config.map_cache_bytes / config.map_page_bytes };
    config.map_read_ahead = (rng.below(3) as u32).min(frames - 1);
}

/// Cells in SLC mode, of two to four bits otherwise, and a cache in them of any size that the device can have:
/// WriteBooster's buffer or the device's own. The map may lie in SLC mode too.
pub fn any_slc(config: &mut DeviceConfig, rng: &mut Prng) {
    let bits_per_cell = 2 + rng.below(3) as u32;
    // In very small superblocks, the map would need many more of them than the data.
    let large = config.geometry.units_per_superblock() / bits_per_cell >= 16;
    let holds_map = rng.below(4) == 0 && large;
    let slc = SlcConfig {
        bits_per_cell,
        read: Ns(20_011),
        program: Ns(75_013),
        erase: Ns(900_007),
        life_erases: if rng.below(8) == 0 { 20 } else { 1_000_000 },
        holds_map,
        folds_on_die: rng.below(2) == 0,
    };
    config.slc = Some(slc);
    if holds_map {
        config.flash.map_read = slc.read;
    }
    let own = CacheOwner::Device { folds_when_idle: rng.below(2) == 0 };
    let owner = if rng.below(2) == 0 { CacheOwner::Host } else { own };
    let kept = if owner == own { rng.below(4) as u32 } else { 0 };
    let more_bits = CacheCells {
        bits: bits_per_cell - 1,
        read: Ns(33_023),
        program: Ns(260_009),
        erase: Ns(1_200_011),
        life_erases: slc.life_erases / 2,
    };
    let cells = (owner == own && bits_per_cell > 2).then_some(more_bits);
    let cache = |config: &DeviceConfig, lent: u32| {
        let each = config.cache_slices();
        Some(SlcCacheConfig { owner, static_blocks: kept * each, dynamic_blocks: lent * each, cells })
    };
    config.slc_cache = Some(SlcCacheConfig { owner, static_blocks: 0, dynamic_blocks: 0, cells });
    // A map and a cache in SLC mode need more superblocks, and a checkpoint in SLC mode longer ones.
    config.slc_cache = cache(config, 1);
    config.geometry.blocks_per_plane += kept;
    while let Err(e) = config.check() {
        match e.field {
            "ftl.map_changes" => config.geometry.pages_per_block += 1,
            "geometry.blocks_per_plane" | "slc_cache.static_blocks" | "slc_cache.dynamic_blocks" => {
                config.geometry.blocks_per_plane += 1;
            }
            "ftl.spare_map_superblocks" => config.ftl.spare_map_superblocks += 1,
            _ => break,
        }
        config.slc_cache = cache(config, 1);
    }
    let lent = rng.below(u64::from(config.data_superblocks())) as u32 + u32::from(kept == 0);
    config.slc_cache = cache(config, lent);
}

/// Changes one of the flags of WriteBooster, unknown to the driver.
pub fn toggle_booster<S: DieSched, X: Payload, P: Probe, W: Wire>(
    stack: &mut Stack<S, X, P, W>,
    now: Ns,
    rng: &mut Prng,
) {
    let opcodes = [opcode::SET_FLAG, opcode::CLEAR_FLAG, opcode::TOGGLE_FLAG];
    let flags = [flag::WB_EN, flag::WB_FLUSH_EN, flag::WB_FLUSH_DURING_HIBERNATE];
    change_flag(stack, now, opcodes[rng.below(3) as usize], flags[rng.below(3) as usize]);
}

/// Has the device forget all that it knows of HPB, unknown to the driver.
pub fn reset_hpb<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &mut Stack<S, X, P, W>, now: Ns) {
    change_flag(stack, now, opcode::SET_FLAG, flag::HPB_RESET);
}

/// Sends a query on a tag that no driver with fewer than 64 slots uses.
fn change_flag<S: DieSched, X: Payload, P: Probe, W: Wire>(
    stack: &mut Stack<S, X, P, W>,
    now: Ns,
    opcode: u8,
    idn: u8,
) {
    const TAG: u8 = 63;
    let query = QueryRequest { opcode, idn, index: 0, selector: 0, length: 0, value: 0 };
    if stack.device.is_tag_free(TAG) {
        stack.device.submit(now, &Request { lun: 0, tag: TAG, body: RequestBody::Query(query) }, &[]);
    }
}

/// Sets the number of superblocks so that garbage has to be collected: the fewest that the device can do with, and
/// `more`.
pub fn give_little_room(config: &mut DeviceConfig, more: u32) {
    config.geometry.blocks_per_plane = 1;
    while config.check().is_err_and(|e| e.field == "geometry.blocks_per_plane") {
        config.geometry.blocks_per_plane += 1;
    }
    config.geometry.blocks_per_plane += more;
    make_checkpoints_fit(config);
}

/// The more superblocks there are, the longer is a checkpoint, and the more pages a superblock needs to hold one.
fn make_checkpoints_fit(config: &mut DeviceConfig) {
    while config.check().is_err_and(|e| e.field == "ftl.map_changes") {
        config.geometry.pages_per_block += 1;
    }
}

/// A host with Linux's limits, with HPB if options are given.
pub fn host(hpb: Option<HpbOptions>) -> HostConfig {
    HostConfig { hpb, ..HostConfig::LINUX }
}

/// A stack that checks what it reads.
pub type Checked<S = Lean, W = Typed> = Stack<S, Tags, (), W>;

/// A stack of host and device that have found each other, and the time when they had.
pub fn start<S: DieSched, X: Payload + Default, W: Wire + Default>(
    config: &DeviceConfig,
    host: HostConfig,
    prepare: impl FnOnce(&mut Stack<S, X, (), W>),
) -> (Stack<S, X, (), W>, Ns) {
    start_on(config, host, W::default(), prepare)
}

/// As [`start`], on a wire of the caller.
pub fn start_on<S: DieSched, X: Payload + Default, W: Wire>(
    config: &DeviceConfig,
    host: HostConfig,
    wire: W,
    prepare: impl FnOnce(&mut Stack<S, X, (), W>),
) -> (Stack<S, X, (), W>, Ns) {
    let mut stack = Stack::new(config, host, DELAYS, X::default(), (), wire).expect("a possible device");
    prepare(&mut stack);
    let now = stack.start(Ns::ZERO).expect("host and device find each other");
    (stack, now)
}

/// The same under Linux's host, with the first blocks of unit 0 written in `layout`; `seed` draws a random one.
pub fn filled<S: DieSched, X: Payload + Default, W: Wire + Default>(
    config: &DeviceConfig,
    hpb: Option<HpbOptions>,
    blocks: u32,
    layout: Layout,
    seed: u64,
) -> (Stack<S, X, (), W>, Ns) {
    start(config, host(hpb), |stack| stack.precondition(0, 0, blocks, layout, seed).expect("room"))
}

/// One request, and all its consequences; returns when no event is left.
pub fn one<S: DieSched, X: Payload, P: Probe, W: Wire>(
    stack: &mut Stack<S, X, P, W>,
    now: &mut Ns,
    op: BlockOp,
    block: u32,
    blocks: u32,
) {
    stack.submit(*now, &BlockRequest { cookie: 7, lun: 0, op, block, blocks });
    settle(stack, now);
    let done = stack.poll_done().expect("the request ends");
    assert_eq!((done.cookie, done.error), (7, None));
    assert!(stack.poll_done().is_none(), "it ends once");
}

/// Time in ns from submission to end of one request on an idle stack.
pub fn latency<S: DieSched, X: Payload, P: Probe, W: Wire>(
    stack: &mut Stack<S, X, P, W>,
    now: &mut Ns,
    op: BlockOp,
    block: u32,
    blocks: u32,
) -> u64 {
    settle(stack, now);
    let since = *now;
    stack.submit(since, &BlockRequest { cookie: 0, lun: 0, op, block, blocks });
    while next_event(stack, now) == 0 {}
    (*now - since).0
}

/// Lets everything happen that is under way.
pub fn settle<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &mut Stack<S, X, P, W>, now: &mut Ns) {
    while stack.next_deadline() != Ns::NEVER {
        step(stack, now);
    }
}

/// Advances to the next event.
pub fn step<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &mut Stack<S, X, P, W>, now: &mut Ns) {
    *now = stack.next_deadline();
    stack.advance(*now);
}

/// Advances to the next event; returns how many requests ended there. Panics if one failed.
pub fn next_event<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &mut Stack<S, X, P, W>, now: &mut Ns) -> u32 {
    step(stack, now);
    let mut ended = 0;
    while let Some(done) = stack.poll_done() {
        assert_eq!(done.error, None);
        ended += 1;
    }
    ended
}

/// No recovery, with the power back at `on`, reads more or takes longer than follows from the configuration.
pub fn assert_bounded(config: &DeviceConfig, recovery: &Recovery, on: Ns, what: &str) {
    let most = config.longest_recovery();
    assert!(
        recovery.checkpoint_reads <= most.checkpoint_reads
            && recovery.units_read <= most.units_read
            && recovery.reads() <= most.reads()
            && recovery.changes <= most.changes
            && recovery.ready_at - on <= most.ready_at,
        "{what}: {recovery:?} is more than {most:?}"
    );
}

/// A job that keeps `iodepth` requests of `stream` outstanding until `ios` have been sent.
pub fn job(stream: Stream, iodepth: u32, ios: u64) -> Job {
    Job {
        name: String::new(),
        group: 0,
        lun: 0,
        iodepth,
        limits: Limits { ios: Some(ios), ..Limits::default() },
        ramp: Ns::ZERO,
        start_delay: Ns::ZERO,
        think: Think::default(),
        rate_bytes: [None; 3],
        poisson: None,
        zbd: None,
        flow: None,
        ends: Ends::Itself,
        fio: Default::default(),
        stream,
    }
}

/// Those seeds, or the one that `READPATH_SEED` names, which need not be among them; and whether it names one.
pub fn chosen(seeds: impl Iterator<Item = u64>) -> (impl Iterator<Item = u64>, bool) {
    let only = std::env::var("READPATH_SEED").ok().and_then(|s| s.parse::<u64>().ok());
    (only.into_iter().chain(seeds.filter(move |_| only.is_none())), only.is_some())
}

/// Runs jobs to their end.
pub fn run<S: DieSched, X: Payload, P: Probe, W: Wire>(
    stack: &mut Stack<S, X, P, W>,
    runner: &mut Runner,
    jobs: Vec<Job>,
) -> PhaseStats {
    let mut phase = Phase { name: String::new(), jobs };
    runner.phase(stack, &mut phase, &mut ()).expect("the run ends well")
}

/// Everything that a phase counted, as text that can be compared.
pub fn everything(stats: &PhaseStats) -> String {
    use std::fmt::Write;
    let mut text = format!("{} {} {} {}\n", stats.name, stats.start.0, stats.end.0, stats.ios);
    for job in &stats.jobs {
        writeln!(text, "{} {} {} {}", job.name, job.group, job.start.0, job.end.0).unwrap();
        for kind in &job.kinds {
            let l = &kind.latency;
            writeln!(text, "{} {} {} {} {}", kind.ios, kind.blocks, l.sum(), l.min(), l.max()).unwrap();
            for (top, n) in l.buckets() {
                write!(text, "{top}:{n} ").unwrap();
            }
        }
    }
    text
}

/// What changes requests and replies as they pass.
pub trait Meddler {
    /// A request is on its way to the device.
    fn request(&mut self, request: &mut Request);
    /// A reply is on its way to the host.
    fn reply(&mut self, reply: &mut Reply);
}

/// A wire that changes what crosses it; the result is encoded and parsed again if there is `bytes`.
pub struct Meddled<T> {
    /// Makes the changes.
    pub by: T,
    /// The encoding, if what passes is encoded.
    pub bytes: Option<Encoded>,
    request: Option<Request>,
    reply: Option<Reply>,
}

impl<T: Meddler> Meddled<T> {
    /// A wire on which `by` meddles, with or without encoding.
    pub fn new(by: T, bytes: bool) -> Self {
        Meddled { by, bytes: bytes.then(Encoded::default), request: None, reply: None }
    }
}

impl<T: Meddler> Wire for Meddled<T> {
    fn request<'a>(&'a mut self, request: &'a Request, data: &'a [u8]) -> Result<Crossed<'a>, WireError> {
        let changed = self.request.insert(*request);
        self.by.request(changed);
        match &mut self.bytes {
            Some(encoded) => encoded.request(changed, data),
            None => Ok((changed, data)),
        }
    }

    fn reply<'a>(&'a mut self, reply: &'a Reply, data: &'a [u8]) -> Result<Crossed<'a, Reply>, WireError> {
        let changed = self.reply.insert(*reply);
        self.by.reply(changed);
        match &mut self.bytes {
            Some(encoded) => encoded.reply(changed, data),
            None => Ok((changed, data)),
        }
    }
}

/// READ (10) of unit 0.
pub fn read_10(lba: u32, blocks: u32) -> Cdb {
    Cdb::Read { form: Form::Ten, lba: u64::from(lba), blocks, flags: 0 }
}

/// WRITE (10) of unit 0; with `FLAG_FUA` it is in flash when it is answered.
pub fn write_10(lba: u32, blocks: u32, flags: u8) -> Cdb {
    Cdb::Write { form: Form::Ten, lba: u64::from(lba), blocks, flags }
}

/// A command that expects `expected_bytes` bytes.
pub fn command(cdb: Cdb, expected_bytes: u32) -> RequestBody {
    RequestBody::Command(Command { expected_bytes, cdb })
}

/// The response that a command has to be answered by.
pub fn response(reply: &Reply) -> Response {
    match reply.body {
        ReplyBody::Response(response) => response,
        other => panic!("a command was answered by {other:?}"),
    }
}

/// A device to which a test speaks itself, without a host driver.
pub struct Bare {
    /// The device.
    pub device: UfsDevice<Lean, WithMedia, ()>,
    /// Virtual time.
    pub now: Ns,
    /// Movements of data so far.
    pub media: Vec<MediaOp>,
}

impl Bare {
    /// A device fresh from the factory at time zero.
    pub fn new(config: &DeviceConfig) -> Self {
        let device = UfsDevice::new(config, Delays::default(), ()).expect("a possible device");
        Bare { device, now: Ns::ZERO, media: Vec::new() }
    }

    /// The same with the first blocks of unit 0 written in `layout`, which `seed` draws if it is random.
    pub fn filled(config: &DeviceConfig, blocks: u32, layout: Layout, seed: u64) -> Self {
        let mut bare = Bare::new(config);
        bare.device.precondition([(0, 0, blocks)], layout, seed, |_, _| ()).expect("room");
        bare
    }

    /// Sends one request and returns its reply and data-in.
    pub fn ask(&mut self, lun: u8, body: RequestBody, data_out: &[u8]) -> (Reply, Vec<u8>) {
        self.device.submit(self.now, &Request { lun, tag: 0, body }, data_out);
        self.media.clear();
        loop {
            self.now = self.device.next_deadline();
            assert_ne!(self.now, Ns::NEVER, "every request has a reply: {body:?}");
            self.device.advance(self.now);
            while let Some(op) = self.device.poll_media() {
                self.media.push(op);
            }
            if let Some(reply) = self.device.poll_reply(self.now) {
                return (reply, self.device.data_in(0).to_vec());
            }
        }
    }

    /// Sends a command for logical unit 0.
    pub fn command(&mut self, cdb: Cdb, expected_bytes: u32) -> (Reply, Vec<u8>) {
        self.ask(0, command(cdb, expected_bytes), &[])
    }

    /// Sends a command for logical unit 0; its response.
    pub fn response(&mut self, cdb: Cdb, expected_bytes: u32) -> Response {
        response(&self.command(cdb, expected_bytes).0)
    }

    /// The entries of a sub-region of 64 blocks of logical unit 0.
    pub fn entries(&mut self, at: SubRegion) -> Vec<HpbEntry> {
        let (reply, data) = self.command(Cdb::HpbReadBuffer { buffer_id: 1, at, alloc: 512 }, 512);
        assert_eq!(response(&reply).status, Status::Good);
        data.chunks(8).map(|entry| HpbEntry(entry.try_into().expect("whole entries"))).collect()
    }

    /// Where the blocks of the last read came from, in order of the blocks.
    pub fn moved(&self) -> Vec<MediaOp> {
        let mut moved = self.media.clone();
        moved.sort_by_key(|op| match op {
            MediaOp::ReadFlash { index, .. } | MediaOp::ReadBuffer { index, .. } | MediaOp::ReadZeros { index, .. } => {
                *index
            }
            other => panic!("a read moved {other:?}"),
        });
        moved
    }

    /// Lets everything happen that is under way; the replies and their times.
    pub fn settle(&mut self) -> Vec<(Ns, Reply)> {
        let mut replies = Vec::new();
        while self.device.next_deadline() != Ns::NEVER {
            self.now = self.device.next_deadline();
            self.device.advance(self.now);
            while self.device.poll_media().is_some() {}
            while let Some(reply) = self.device.poll_reply(self.now) {
                replies.push((self.now, reply));
            }
        }
        replies
    }

    /// The power goes and is back at once.
    pub fn power_cycle(&mut self) {
        self.device.power_cut(self.now);
        self.now = self.device.recover(self.now).ready_at;
        // The first command gets UNIT ATTENTION.
        self.command(Cdb::TestUnitReady, 0);
    }

    /// Sends a query; returns result, value and descriptor.
    pub fn query(&mut self, opcode: u8, idn: u8, index: u8, value: u32) -> (u8, u32, Vec<u8>) {
        let request = QueryRequest { opcode, idn, index, selector: 0, length: 255, value };
        let (reply, data) = self.ask(0, RequestBody::Query(request), &[]);
        match reply.body {
            ReplyBody::Query(q) => (q.result, q.value, data),
            other => panic!("a query was answered by {other:?}"),
        }
    }
}
