// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads that are served alone, or together with nothing else, against the same reads from event to event: request by
//! request, whatever the device, and whatever happens in between.

use crate::drive::trace;
use crate::flash_pages::host_memory;
use crate::wear::zones;
use readpath_config::{Event, EventKind};
use readpath_device::{
    CheckOn, Control, Delays, DeviceConfig, EntryConfig, Hpb2Config, Layout, LuConfig, MapMemory, Probe, Protection,
    Verification,
};
use readpath_flash::{
    AnySched, DieSched, Done, FlashOp, Lean, OpId, OpKind, PlaneReads, Scheduler, Servers, SuspendTiming,
};
use readpath_host::{BlockOp, BlockRequest, HostConfig, HpbOptions, ListOrder, LongReads, ManagedPolicy};
use readpath_kit::{Ns, Prng};
use readpath_proto::query::{attribute, opcode};
use readpath_proto::typed::{QueryRequest, Request, RequestBody};
use readpath_run::{
    Driven, Hooks, Jobs, Mode, Pace, Port, Rest, RunError, Runner, Schedule, Source, Trace, Units, Virtual, drive,
};
use readpath_stack::{Encoded, Hold, NoData, Payload, Stack, Typed, Wire};
use readpath_testkit::{DELAYS, any_read_path, any_slc, device, everything, give_room, job, one, run, start};
use readpath_workload::{Io, IoKind, Job, Kinds, Offsets, Phase, Sizes, Stream, StreamSpec, Think};
use std::cell::Cell;
use std::fmt::Write;

pub(crate) const BLOCKS: u32 = 16 * 1024;

/// Times between requests of a job with a rate.
const GRID: Ns = Ns(200_000);

pub(crate) type Plain = Stack<AnySched, NoData, (), Typed>;

/// A source that says this of its reads.
pub(crate) struct Saying<'a, Q>(pub Hold, pub &'a mut Q);

impl<Q: Source> Source for Saying<'_, Q> {
    const WATCH_EVERY: u64 = Q::WATCH_EVERY;
    const ENDS_FIRST: bool = Q::ENDS_FIRST;

    fn holds(&self) -> Hold {
        self.0
    }

    fn begin(&mut self, port: &mut impl Port, now: Ns) {
        self.1.begin(port, now);
    }

    fn next_at(&self) -> Ns {
        self.1.next_at()
    }

    fn act(&mut self, port: &mut impl Port, now: Ns, until: Ns) {
        self.1.act(port, now, until);
    }

    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        self.1.ended(port, cookie, now)
    }

    fn io(&self, cookie: u32) -> Io {
        self.1.io(cookie)
    }

    fn in_flight(&self) -> u32 {
        self.1.in_flight()
    }

    fn is_over(&self) -> bool {
        self.1.is_over()
    }

    fn rest(&self) -> Rest {
        self.1.rest()
    }

    fn lost(&mut self, port: &mut impl Port, now: Ns) {
        self.1.lost(port, now);
    }
}

/// The latency of every request, and what the device had counted now and then.
#[derive(Default)]
pub(crate) struct Watch(pub String);

impl Hooks for Watch {
    fn ended(&mut self, kind: IoKind, latency: Ns) {
        writeln!(self.0, "{kind:?} {latency:?}").unwrap();
    }

    fn watch<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        ios: u64,
        now: Ns,
    ) -> bool {
        writeln!(self.0, "{ios} {now:?} {:?}", stack.device.stats()).unwrap();
        true
    }
}

/// What the device had counted just behind the end of a request, when the next had been submitted.
#[derive(Default)]
pub(crate) struct Often {
    pub text: String,
    ended: u64,
    looked: u64,
}

impl Hooks for Often {
    fn next_at(&self) -> Ns {
        if self.ended >= self.looked + 97 { Ns::ZERO } else { Ns::NEVER }
    }

    fn ended(&mut self, _: IoKind, _: Ns) {
        self.ended += 1;
    }

    fn happen<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
        in_flight: u32,
    ) -> Result<Ns, RunError> {
        self.looked = self.ended;
        writeln!(self.text, "{now:?} {in_flight} {:?} {:?}", stack.device.stats(), stack.next_deadline()).unwrap();
        Ok(now)
    }
}

/// A device on whose reads one of these things has an influence, or none.
fn drawn(seed: u64) -> (DeviceConfig, HostConfig) {
    let rng = &mut Prng::stream(seed, "alone", 0);
    let mut config = device(BLOCKS);
    let mut hpb = HpbOptions::DEFAULT;
    match rng.below(8) {
        0..4 => {
            config.hpb = None;
            config.lus[0].hpb = false;
        }
        4..6 => {}
        6 => hpb.mode = Some(Control::Host),
        _ => (hpb.mode, hpb.policy) = (Some(Control::Host), Some(ManagedPolicy::Lru)),
    }
    if let (Some(device), Some(mode)) = (&mut config.hpb, hpb.mode) {
        device.control = mode;
    }
    config.map_cache_bytes = 4096 * [1, 2, 8, 32][rng.below(4) as usize];
    // Timers of another unit's HPB, whose requests take no part.
    if hpb.mode == Some(Control::Host) && rng.below(2) == 0 {
        let other = LuConfig { blocks: 2048, ..config.lus[0] };
        config.lus[0] = LuConfig { hpb: false, max_active_regions: 0, ..config.lus[0] };
        config.lus.push(other);
        give_room(&mut config);
    } else if let Some(device) = &mut config.hpb
        && rng.below(2) == 0
    {
        device.max_active_regions = [3, 9][rng.below(2) as usize];
        config.lus[0].max_active_regions = device.max_active_regions;
    }
    match rng.below(10) {
        0 | 8 => any_read_path(&mut config, seed),
        1 => config.ftl.read_disturb_limit = 2,
        2 => config.ftl.faults.read_retries_ppm = 100_000,
        3 => {
            config.map_memory = Some(MapMemory::Dram { access: Ns(211) });
            config.map_cache_bytes = 4096 * config.map_pages();
        }
        4 => (config.ftl.collect_idle_below, config.ftl.idle_after) = (1 << 16, Ns::from_us(1 + rng.below(3000))),
        5 => {
            config.hpb = None;
            config.lus.iter_mut().for_each(|lu| lu.hpb = false);
            config.map_memory = Some(MapMemory::Host(host_memory(rng, 4)));
        }
        9 => (config.map_cache_bytes, config.map_read_ahead) = (4096 * 8, 2),
        _ => config.firmware.read_command = Ns(rng.below(2) * 1_009),
    }
    // From a stream of their own, so that the other settings of a seed do not change.
    let rng = &mut Prng::stream(seed, "alone, cells and planes", 0);
    if rng.below(3) == 0 {
        give_room(&mut config);
        any_slc(&mut config, rng);
    }
    if rng.below(3) == 0 && config.scheduler == Scheduler::Lean {
        config.flash.plane_reads = PlaneReads::ALL[rng.below(PlaneReads::ALL.len() as u64) as usize];
    }
    (config, readpath_testkit::host(Some(hpb)))
}

/// Other times, schedulers, entries and hosts, in streams of their own; returns the delays of the host's software.
fn other_ways(seed: u64, config: &mut DeviceConfig, host: &mut HostConfig) -> Delays {
    let rng = &mut Prng::stream(seed, "alone, ties", 0);
    let mut delays = DELAYS;
    // Otherwise hardly two events are at the same time, and nothing that is free again is needed at once.
    if rng.below(2) == 0 {
        let grid = [10_000, 100_000][rng.below(2) as usize];
        let (flash, firmware, link) = (&mut config.flash, &mut config.firmware, &mut config.link);
        let of_array = [&mut flash.read, &mut flash.map_read, &mut flash.program, &mut flash.erase];
        let of_channel = [&mut flash.transfer_block, &mut flash.map_transfer];
        let of_firmware = [&mut firmware.read_command, &mut firmware.flash_op, &mut firmware.hpb_read_extra];
        let of_writes = [&mut firmware.write_command, &mut firmware.buffer_read, &mut firmware.control];
        let of_host =
            [&mut link.request, &mut link.response, &mut link.block, &mut delays.to_link, &mut delays.from_link];
        let of_cells = config.slc.iter_mut().flat_map(|slc| [&mut slc.read, &mut slc.program, &mut slc.erase]);
        let of_flash = of_array.into_iter().chain(of_channel).chain(of_cells);
        of_flash.for_each(|time| time.0 = time.0.next_multiple_of(grid));
        of_firmware.into_iter().chain(of_writes).chain(of_host).for_each(|time| time.0 -= time.0 % grid);
    }
    let rng = &mut Prng::stream(seed, "alone, entries and hosts", 0);
    if rng.below(8) == 0 {
        config.scheduler = [Scheduler::Queued, Scheduler::Exact][rng.below(2) as usize];
        config.flash.plane_reads = PlaneReads::One;
    }
    host.slots = [host.slots, 4, 7][rng.below(3) as usize];
    if rng.below(4) == 0 {
        host.max_transfer_blocks = 1 + rng.below(3) as u16;
    }
    let (Some(device), Some(hpb)) = (&mut config.hpb, &mut host.hpb) else { return delays };
    device.entries.protection = Protection::ALL[rng.below(Protection::ALL.len() as u64) as usize];
    match rng.below(8) {
        0 => {
            let protection = Protection::Encrypted;
            device.entries =
                EntryConfig { protection, check_on: CheckOn::Engine, check: Ns(701), ..EntryConfig::DEFAULT };
        }
        1 => (device.verification, device.entries) = (Verification::Off, EntryConfig::DEFAULT),
        2 => hpb.strict_linux = true,
        3 => hpb.order = ListOrder::Recency,
        4 => {
            device.v2 = Some(Hpb2Config {
                enabled: true,
                single_blocks: 2,
                pre_requests: 3,
                entries_in_ehs: rng.below(2) == 0,
            });
            hpb.long_reads = LongReads::PreRequest;
        }
        _ => {}
    }
    delays
}

/// Jobs of which each keeps as many requests under way as `depth` draws.
fn jobs(rng: &mut Prng, seed: u64, ios: u64, count: u64, depth: impl Fn(&mut Prng) -> u32) -> Phase {
    let jobs = (0..count).map(|n| {
        let depth = depth(rng);
        a_job(rng, seed ^ n, ios / count, depth)
    });
    Phase { name: "reads".into(), jobs: jobs.collect() }
}

fn a_job(rng: &mut Prng, seed: u64, ios: u64, depth: u32) -> Job {
    let mut spec = StreamSpec::plain(IoKind::Read, 0, BLOCKS, 1, Offsets::Uniform);
    if rng.below(2) == 0 {
        spec.kinds = Kinds::Mix([99, 90, 50][rng.below(3) as usize]);
    }
    // Some regions are read more often than others, which then give way to them.
    if rng.below(3) == 0 {
        spec.offsets = std::array::from_fn(|_| zones(&[(5, 30), (70, 20), (25, 50)]));
    }
    if rng.below(3) == 0 {
        spec.sizes = std::array::from_fn(|_| Sizes::Range { min: 1, max: 4 });
    }
    let mut job = job(Stream::new(&spec, seed).expect("a possible stream"), depth, ios);
    if rng.below(4) == 0 {
        job.rate_bytes[IoKind::Read as usize] = Some(4096 * 1_000_000_000 / GRID.0);
    } else if rng.below(2) == 0 {
        job.think = Think { time: Ns::from_us(rng.below(6000)), every: 1 + rng.below(40) as u32 };
    }
    job
}

/// What happens meanwhile.
fn events(rng: &mut Prng) -> Vec<Event> {
    let mut at = Ns::ZERO;
    let kinds = [EventKind::Mark, EventKind::Suspend, EventKind::Resume, EventKind::HardwareReset];
    let mut next = |_| {
        at += match rng.below(2) {
            // At times when a job with a rate submits.
            0 => Ns(GRID.0 * rng.below(20)),
            _ => Ns(rng.below(40_000_000)),
        };
        let kind = match rng.below(5) {
            4 => EventKind::PowerCycle { off: Ns(rng.below(6_000_000)) },
            n => kinds[n as usize],
        };
        Event { at, kind }
    };
    (0..4).map(&mut next).collect()
}

/// Drives a source of whose reads this is held, or what it says itself.
pub(crate) fn driven(
    stack: &mut Plain,
    source: &mut impl Source,
    hooks: &mut impl Hooks,
    now: Ns,
    hold: Option<Hold>,
) -> Driven {
    let driven = match hold {
        None => drive(stack, source, hooks, &mut Virtual, now),
        Some(hold) => drive(stack, &mut Saying(hold, source), hooks, &mut Virtual, now),
    };
    driven.expect("it ends well")
}

/// How many requests are under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    One,
    Several,
}

/// All that can be seen of a run, and of one at depth 8 that follows.
fn seen(seed: u64, depth: Depth, hold: Option<Hold>) -> String {
    let rng = &mut Prng::stream(seed, "alone, run", 0);
    let (mut config, mut host) = drawn(seed);
    let delays = other_ways(seed, &mut config, &mut host);
    let layout = [Layout::Random, Layout::Sequential][rng.below(2) as usize];
    let filled = BLOCKS - rng.below(2) as u32 * 3000;
    let mut stack: Plain = Stack::new(&config, host, delays, NoData, (), Typed).expect("a possible device");
    stack.precondition(0, 0, filled, layout, seed).expect("room");
    let now = stack.start(Ns::ZERO).expect("host and device find each other");
    let events = if rng.below(2) == 0 { events(rng) } else { Vec::new() };
    let schedule = Schedule::new(&events, &stack, now).expect("possible events");
    let often = if rng.below(2) == 0 { Often::default() } else { Often { looked: u64::MAX / 2, ..Often::default() } };
    let mut hooks = (schedule, (Watch::default(), often));
    let mut text = String::new();
    let driven = if rng.below(4) > 0 {
        let mut phase = match depth {
            Depth::One => jobs(rng, seed, 6000, 1, |_| 1),
            // The host has fewer tags than the deepest of these keeps under way.
            Depth::Several => {
                let count = 1 + rng.below(2);
                jobs(rng, seed, 6000, count, |rng| [1, 2, 4, 16, 24, 40][rng.below(6) as usize])
            }
        };
        let mut jobs = Jobs::new(&mut phase, now, Rest::Replies);
        let driven = driven(&mut stack, &mut jobs, &mut hooks, now, hold);
        text += &everything(&jobs.stats(driven).expect("measured"));
        driven
    } else {
        let loaded = trace(BLOCKS);
        let mode = match depth {
            Depth::One => Mode::Closed { iodepth: 1 },
            Depth::Several if rng.below(2) == 0 => Mode::Timed,
            Depth::Several => Mode::Closed { iodepth: 2 + rng.below(20) as u32 },
        };
        let mut trace = Trace::new(&loaded.ios, mode, Units::first(), now);
        let driven = driven(&mut stack, &mut trace, &mut hooks, now, hold);
        text += &everything(&trace.stats("trace".into(), driven).0);
        driven
    };
    let (schedule, (Watch(watched), often)) = hooks;
    text += &(watched + &often.text);
    writeln!(text, "{:?}", schedule.end(&stack, driven.end)).unwrap();
    let uniform = Stream::uniform_reads(0, BLOCKS, 1, 2).expect("a possible stream");
    let after = run(&mut stack, &mut Runner::new(driven.end), vec![job(uniform, 8, 2000)]);
    write!(text, "{}{:?}\n{:?}", everything(&after), stack.device.stats(), stack.host.all_counters()).unwrap();
    text
}

fn compare(seeds: std::ops::Range<u64>, depth: Depth) {
    let (seeds, _) = readpath_testkit::chosen(seeds);
    for seed in seeds {
        // Every other time all that can come together does.
        let hold = (depth == Depth::Several && seed % 2 == 0).then_some(Hold::Always);
        let (short, long) = (seen(seed, depth, hold), seen(seed, depth, Some(Hold::Nothing)));
        let other = short.lines().zip(long.lines()).find(|(a, b)| a != b);
        assert!(short == long, "READPATH_SEED={seed}: {other:?}");
    }
}

#[test]
fn reads_alone_take_as_long_as_from_event_to_event() {
    compare(0..300, Depth::One);
}

#[test]
fn reads_together_take_as_long_as_from_event_to_event() {
    compare(0..300, Depth::Several);
}

/// A limit in the middle of a read leaves it under way.
#[test]
fn a_read_that_is_not_over_in_time_is_sent() {
    let (config, host) = (device(BLOCKS), readpath_testkit::host(None));
    let (mut stack, now): (Plain, Ns) =
        start(&config, host, |stack| stack.precondition(0, 0, BLOCKS, Layout::Random, 1).expect("room"));
    let (before, limit) = (*stack.device.stats(), now + Ns(20_000));
    stack.hold(Hold::One);
    stack.submit(now, &BlockRequest { cookie: 1, lun: 0, op: BlockOp::Read, block: 9, blocks: 1 });
    assert_eq!(before, *stack.device.stats(), "it is held");
    assert_eq!(stack.advance_to_reply(limit), limit);
    assert!(stack.poll_done().is_none() && stack.next_deadline() != Ns::NEVER, "it is under way");
    stack.advance_to_reply(Ns::NEVER);
    assert_eq!(stack.poll_done().map(|done| done.cookie), Some(1));
    stack.hold(Hold::Nothing);
}

thread_local! {
    /// Operations that the scheduler of this thread has had.
    pub(crate) static OPERATIONS: Cell<u64> = const { Cell::new(0) };
    /// How often it was asked whether it plans ahead, as for each operation of a command.
    pub(crate) static ASKED: Cell<u64> = const { Cell::new(0) };
}

/// A scheduler that counts what reaches it.
pub(crate) struct Counted(Lean);

impl DieSched for Counted {
    fn new(named: Scheduler, servers: Servers, suspend: SuspendTiming) -> Self {
        Counted(Lean::new(named, servers, suspend))
    }

    fn plans_ahead(&self, die: u32, kind: OpKind) -> bool {
        ASKED.set(ASKED.get() + 1);
        self.0.plans_ahead(die, kind)
    }

    fn expect(&mut self, die: u32, kind: OpKind) {
        self.0.expect(die, kind);
    }

    fn submit(&mut self, arrival: Ns, id: OpId, op: FlashOp) {
        OPERATIONS.set(OPERATIONS.get() + 1);
        self.0.submit(arrival, id, op);
    }

    fn alone(&self, arrival: Ns, die: u32, array: Ns, transfer: Ns) -> Option<Ns> {
        self.0.alone(arrival, die, array, transfer)
    }

    fn next_deadline(&self) -> Ns {
        self.0.next_deadline()
    }

    fn poll(&mut self, now: Ns) -> Option<Done> {
        self.0.poll(now)
    }
}

/// Operations of 1000 reads at a depth, when as many as make every entry known have gone before.
fn operations(config: &DeviceConfig, hpb: bool, depth: u32, asks_for_alerts: bool) -> u64 {
    let host = readpath_testkit::host(hpb.then_some(HpbOptions::DEFAULT));
    let (mut stack, now): (Stack<Counted, NoData, (), Typed>, Ns) =
        start(config, host, |stack| stack.precondition(0, 0, BLOCKS, Layout::Random, 1).expect("room"));
    let mut runner = Runner::new(now);
    let mut reads = |stack: &mut Stack<Counted, NoData, (), Typed>, depth, ios| {
        let stream = Stream::uniform_reads(0, BLOCKS, 1, ios).expect("a possible stream");
        run(stack, &mut runner, vec![job(stream, depth, ios)]);
        runner.now()
    };
    let now = reads(&mut stack, 8, 20_000);
    if asks_for_alerts {
        let query = QueryRequest {
            opcode: opcode::WRITE_ATTRIBUTE,
            idn: attribute::EXCEPTION_EVENT_CONTROL,
            index: 0,
            selector: 0,
            length: 0,
            value: 4,
        };
        stack.device.submit(now, &Request { lun: 0, tag: 63, body: RequestBody::Query(query) }, &[]);
    }
    OPERATIONS.set(0);
    reads(&mut stack, depth, 1000);
    OPERATIONS.get()
}

/// Nobody would notice otherwise if every read took the long way.
#[test]
fn reads_alone_reach_no_scheduler() {
    let with_hpb = device(BLOCKS);
    let mut plain = with_hpb.clone();
    plain.hpb = None;
    plain.lus[0].hpb = false;
    let mut in_sram = plain.clone();
    in_sram.map_cache_bytes = 4096 * plain.map_pages();
    let mut cores = plain.clone();
    (cores.firmware.cores, cores.firmware.read_command) = (3, Ns(1_009));
    for (what, config, hpb) in
        [("misses", &plain, false), ("hits", &in_sram, false), ("HPB", &with_hpb, true), ("cores", &cores, false)]
    {
        assert_eq!(operations(config, hpb, 1, false), 0, "{what}");
        assert!(operations(config, hpb, 2, false) >= 1000, "{what}");
        // The device may have something to say in any reply.
        assert!(operations(config, hpb, 1, true) >= 999, "{what}");
    }
}

/// Hooks that want to see each event inside of the device.
struct EachEvent;

impl Hooks for EachEvent {
    fn pace(&mut self) -> Pace {
        Pace::ToEvent
    }
}

/// Operations of a source on a stack with the wire `W`, which is there for anybody to use afterwards.
fn operations_of<W: Wire + Default>(drive_it: impl FnOnce(&mut Stack<Counted, NoData, (), W>, Ns) -> Ns) -> u64 {
    let mut config = device(BLOCKS);
    config.hpb = None;
    config.lus[0].hpb = false;
    let (mut stack, now) = start(&config, readpath_testkit::host(None), |stack| {
        stack.precondition(0, 0, BLOCKS, Layout::Random, 1).expect("room");
    });
    OPERATIONS.set(0);
    let mut now = drive_it(&mut stack, now);
    let operations = OPERATIONS.get();
    one(&mut stack, &mut now, BlockOp::Read, 77, 1);
    assert!(OPERATIONS.get() > operations, "nobody holds it");
    operations
}

fn hundred_reads<W: Wire>(stack: &mut Stack<Counted, NoData, (), W>, hooks: &mut impl Hooks, now: Ns) -> Ns {
    let reads = Stream::uniform_reads(0, BLOCKS, 1, 2).expect("a possible stream");
    let mut phase = Phase { name: String::new(), jobs: vec![job(reads, 1, 100)] };
    let mut jobs = Jobs::new(&mut phase, now, Rest::Leave);
    drive(stack, &mut jobs, hooks, &mut Virtual, now).expect("it ends well").end
}

#[test]
fn reads_alone_are_for_those_who_see_no_difference() {
    assert_eq!(operations_of::<Typed>(|stack, now| hundred_reads(stack, &mut (), now)), 0);
    assert!(operations_of::<Encoded>(|stack, now| hundred_reads(stack, &mut (), now)) >= 100);
    assert!(operations_of::<Typed>(|stack, now| hundred_reads(stack, &mut EachEvent, now)) >= 100);
    let loaded = trace(BLOCKS);
    let of_trace = |iodepth| {
        operations_of::<Typed>(|stack, now| {
            let mut trace = Trace::new(&loaded.ios, Mode::Closed { iodepth }, Units::first(), now);
            drive(stack, &mut trace, &mut (), &mut Virtual, now).expect("it ends well").end
        })
    };
    let (alone, two) = (of_trace(1), of_trace(2));
    assert!(alone + 200 < two, "{alone} instead of {two} operations");
}
