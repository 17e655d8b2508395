// SPDX-License-Identifier: MIT OR Apache-2.0
//! WriteBooster: what a host is told of it, how it switches it on, which data goes where and how fast, and how the
//! buffer is emptied. `vopr` and `power.rs` have it among their random devices.

use readpath_device::{DeviceConfig, DeviceStats, SlcCacheConfig, SlcConfig};
use readpath_flash::Lean;
use readpath_host::{BlockOp, BlockRequest, HostConfig};
use readpath_kit::Ns;
use readpath_proto::booster::{LIFE_EXCEEDED, flush_status};
use readpath_proto::desc::{DeviceDescriptor, GeometryDescriptor};
use readpath_proto::query::{attribute, descriptor, flag, opcode, result};
use readpath_proto::typed::{QueryRequest, ReplyBody, Request, RequestBody};
use readpath_run::Runner;
use readpath_stack::{Stack, Tags, Typed};
use readpath_testkit::{Bare, give_little_room, give_room, job, one, run, settle, step};
use readpath_workload::{IoKind, Stream};

pub(crate) const SLC: SlcConfig = SlcConfig {
    bits_per_cell: 3,
    read: Ns(20_000),
    program: Ns(75_000),
    erase: Ns(900_000),
    life_erases: 1_000,
    holds_map: false,
    folds_on_die: false,
};

/// A device with room, whose buffer has so many superblocks of SLC pages.
pub(crate) fn device(superblocks: u32) -> DeviceConfig {
    let mut config = readpath_testkit::device(4096);
    config.geometry.pages_per_block = 24;
    config.ftl.idle_after = Ns::from_ms(20);
    give_room(&mut config);
    boost(&mut config, superblocks);
    config
}

fn boost(config: &mut DeviceConfig, superblocks: u32) {
    config.slc = Some(SLC);
    config.slc_cache = Some(SlcCacheConfig::write_booster(superblocks * config.cache_slices()));
}

pub(crate) struct Desk {
    pub stack: Stack<Lean, Tags, (), Typed>,
    pub now: Ns,
}

impl Desk {
    pub fn new(config: &DeviceConfig, write_booster: bool) -> Desk {
        let host = HostConfig { write_booster, ..HostConfig::LINUX };
        let (stack, now) = readpath_testkit::start::<Lean, Tags, Typed>(config, host, |_| ());
        Desk { stack, now }
    }

    /// A query on the slot that the driver keeps for its own, which ignores the reply.
    fn query(&mut self, opcode: u8, idn: u8) -> (u8, u32) {
        let tag = HostConfig::LINUX.slots - 1;
        let query = QueryRequest { opcode, idn, index: 0, selector: 0, length: 0, value: 0 };
        self.stack.device.submit(self.now, &Request { lun: 0, tag, body: RequestBody::Query(query) }, &[]);
        loop {
            self.now = self.stack.advance_to_reply(Ns::NEVER);
            assert_ne!(self.now, Ns::NEVER, "the query is answered");
            match self.stack.device.reply().body {
                ReplyBody::Query(q) => return (q.result, q.value),
                _ => continue,
            }
        }
    }

    fn set(&mut self, idn: u8) {
        assert_eq!(self.query(opcode::SET_FLAG, idn), (result::SUCCESS, 1));
    }

    fn clear(&mut self, idn: u8) {
        assert_eq!(self.query(opcode::CLEAR_FLAG, idn), (result::SUCCESS, 0));
    }

    pub fn attribute(&mut self, idn: u8) -> u32 {
        let (code, value) = self.query(opcode::READ_ATTRIBUTE, idn);
        assert_eq!(code, result::SUCCESS);
        value
    }

    /// Writes, without waiting for more than the replies: nothing idles long enough to be flushed.
    pub fn write(&mut self, blocks: std::ops::Range<u32>) {
        for block in blocks.step_by(4) {
            self.stack.submit(self.now, &BlockRequest { cookie: 1, lun: 0, op: BlockOp::Write, block, blocks: 4 });
            while self.stack.poll_done().is_none() {
                self.now = self.stack.advance_to_reply(Ns::NEVER);
            }
        }
    }

    /// Time from submission to reply of one request of one block.
    pub fn took(&mut self, op: BlockOp, block: u32) -> Ns {
        let begin = self.now;
        self.stack.submit(begin, &BlockRequest { cookie: 7, lun: 0, op, block, blocks: 1 });
        while self.stack.poll_done().is_none() {
            self.now = self.stack.advance_to_reply(Ns::NEVER);
        }
        self.now - begin
    }

    pub fn settle(&mut self) {
        settle(&mut self.stack, &mut self.now);
    }

    pub fn stats(&self) -> DeviceStats {
        *self.stack.device.stats()
    }

    /// Everything reads as it was written, and the device's tables agree.
    pub fn check(&mut self, blocks: u32) {
        for block in (0..blocks).step_by(64) {
            one(&mut self.stack, &mut self.now, BlockOp::Read, block, 64.min(blocks - block));
        }
        assert_eq!(self.stack.payload.wrong, 0, "{:?}", self.stack.payload.first_wrong);
        self.stack.device.check_consistency().unwrap();
    }
}

#[test]
fn what_the_host_is_told() {
    let mut bare = Bare::new(&device(4));
    let (_, _, bytes) = bare.query(opcode::READ_DESCRIPTOR, descriptor::DEVICE, 0, 0);
    let d = DeviceDescriptor::parse(&bytes).unwrap();
    let units = device(4).write_booster().unwrap().dynamic_blocks.div_ceil(1024);
    assert_eq!((d.extended_features >> 8 & 1, d.wb_preserve_user_space, d.wb_type), (1, 1, 1));
    assert_eq!(d.wb_shared_alloc_units, units);
    let (_, _, bytes) = bare.query(opcode::READ_DESCRIPTOR, descriptor::GEOMETRY, 0, 0);
    let g = GeometryDescriptor::parse(&bytes).unwrap();
    assert_eq!((g.wb_max_alloc_units, g.wb_max_luns, g.wb_capacity_factor), (units, 1, 3));
    assert_eq!((g.wb_reduction_types, g.wb_types), (1, 1), "preservation of user space and a shared buffer only");
    let (_, _, bytes) = bare.query(opcode::READ_DESCRIPTOR, descriptor::CONFIGURATION, 0, 0);
    assert_eq!(bytes[0x10..0x16], [&[1, 1][..], &units.to_be_bytes()].concat(), "the configuration says the same");
    for (idn, value) in [
        (attribute::WB_FLUSH_STATUS, flush_status::IDLE),
        (attribute::WB_AVAILABLE_SIZE, 10),
        (attribute::WB_LIFE_TIME_EST, 1),
        (attribute::WB_CURRENT_SIZE, units),
    ] {
        assert_eq!(bare.query(opcode::READ_ATTRIBUTE, idn, 0, 0).1, value, "attribute {idn:#x}");
        assert_eq!(bare.query(opcode::WRITE_ATTRIBUTE, idn, 0, 0).0, result::NOT_WRITABLE);
    }
    for idn in [flag::WB_EN, flag::WB_FLUSH_EN, flag::WB_FLUSH_DURING_HIBERNATE] {
        assert_eq!(bare.query(opcode::READ_FLAG, idn, 0, 0).1, 0, "flags are volatile and off at first");
        assert_eq!(bare.query(opcode::TOGGLE_FLAG, idn, 0, 0).1, 1);
        assert_eq!(bare.query(opcode::CLEAR_FLAG, idn, 0, 0).1, 0);
    }

    let mut without = Bare::new(&readpath_testkit::device(4096));
    let (_, _, bytes) = without.query(opcode::READ_DESCRIPTOR, descriptor::DEVICE, 0, 0);
    assert_eq!(DeviceDescriptor::parse(&bytes).unwrap().extended_features >> 8 & 1, 0);
    assert_eq!(without.query(opcode::SET_FLAG, flag::WB_EN, 0, 0).0, result::INVALID_IDN);
}

#[test]
fn the_host_switches_it_on_also_after_a_reset() {
    let mut desk = Desk::new(&device(4), true);
    let flags = |desk: &mut Desk| {
        [flag::WB_EN, flag::WB_FLUSH_EN, flag::WB_FLUSH_DURING_HIBERNATE].map(|f| desk.query(opcode::READ_FLAG, f).1)
    };
    assert_eq!(flags(&mut desk), [1, 0, 1]);
    desk.stack.reset(desk.now);
    desk.settle();
    assert_eq!(flags(&mut desk), [1, 0, 1], "a reset has cleared them, the driver sets them again");
    let recovery = desk.stack.power_cycle(desk.now, desk.now + Ns::from_ms(1));
    desk.now = desk.stack.start(recovery.ready_at).unwrap();
    assert_eq!(flags(&mut desk), [1, 0, 1]);

    let mut desk = Desk::new(&device(4), false);
    assert_eq!(flags(&mut desk), [0, 0, 0]);
    desk.write(0..400);
    assert_eq!(desk.stats().slices_boosted, 0);
}

/// The same write and read with and without: the difference is that of the array times, to the nanosecond.
#[test]
fn pages_in_slc_mode_have_their_own_times() {
    let config = device(4);
    let took = |write_booster| {
        let mut desk = Desk::new(&config, write_booster);
        desk.clear(flag::WB_FLUSH_DURING_HIBERNATE);
        // The superblock is opened, and announced in the journal.
        one(&mut desk.stack, &mut desk.now, BlockOp::WriteFua, 100, 1);
        [(BlockOp::WriteFua, 200), (BlockOp::Read, 200)].map(|(op, block)| desk.took(op, block))
    };
    let ([write, read], [slc_write, slc_read]) = (took(false), took(true));
    assert_eq!(write - slc_write, config.flash.program - SLC.program);
    assert_eq!(read - slc_read, config.flash.read - SLC.read);
}

/// When the buffer is full, data goes to normal blocks, and no write waits for space.
#[test]
fn a_full_buffer_is_passed_by() {
    let config = device(4);
    let buffer = config.write_booster().unwrap().dynamic_blocks;
    let mut desk = Desk::new(&config, true);
    desk.write(0..buffer + 1000);
    let stats = desk.stats();
    assert_eq!(stats.slices_boosted, u64::from(buffer), "the buffer takes what it has been told to");
    assert!(stats.slices_programmed > stats.slices_boosted + 800);
    assert_eq!((stats.stall_space_ns, stats.flushed, stats.slc_erases), (0, 0, 0));
    assert_eq!(desk.attribute(attribute::WB_AVAILABLE_SIZE), 0);
    desk.check(buffer + 1000);
}

#[test]
fn an_explicit_flush_empties_the_buffer() {
    let config = device(4);
    let buffer = config.write_booster().unwrap().dynamic_blocks;
    let mut desk = Desk::new(&config, true);
    desk.clear(flag::WB_FLUSH_DURING_HIBERNATE);
    let written = buffer * 5 / 8 / 4 * 4;
    desk.write(0..written);
    // Half of the first superblock is out of date.
    desk.write(0..config.cache_slices() / 2 / 4 * 4);
    desk.settle();
    assert_eq!((desk.stats().flushed, desk.attribute(attribute::WB_FLUSH_STATUS)), (0, flush_status::IDLE));
    let available = desk.attribute(attribute::WB_AVAILABLE_SIZE);
    assert!((1..=4).contains(&available), "{available} tenths of 2/8 or a little more");

    let before = desk.stats();
    desk.set(flag::WB_FLUSH_EN);
    assert_eq!(desk.attribute(attribute::WB_FLUSH_STATUS), flush_status::IN_PROGRESS);
    desk.settle();
    assert_eq!(desk.attribute(attribute::WB_FLUSH_STATUS), flush_status::COMPLETED);
    assert_eq!(desk.attribute(attribute::WB_AVAILABLE_SIZE), 10);
    let did = desk.stats().since(&before);
    let least = u64::from(written) - desk.stack.device.buffer_slots() as u64;
    assert!((least..=u64::from(written)).contains(&did.slices_flushed), "what is current moves, once: {did:?}");
    assert_eq!(did.slices_flushed, did.slices_moved);
    // The last one, which was still being written, only because the host has been idle.
    assert_eq!(did.slc_erases, did.flushed * u64::from(config.geometry.dies()));
    assert!((3..=4).contains(&did.flushed) && did.collected == 0, "{did:?}");
    assert!(desk.stats().write_amplification().unwrap() > 1.7, "the flush is paid for");
    desk.check(written);
}

/// A flush that is called off ends after the superblock it is at.
#[test]
fn a_flush_can_be_stopped() {
    let config = device(8);
    let mut desk = Desk::new(&config, true);
    desk.clear(flag::WB_FLUSH_DURING_HIBERNATE);
    desk.write(0..config.cache_slices() * 6);
    desk.set(flag::WB_FLUSH_EN);
    desk.clear(flag::WB_FLUSH_EN);
    desk.settle();
    assert_eq!(desk.attribute(attribute::WB_FLUSH_STATUS), flush_status::STOPPED);
    assert_eq!(desk.stats().flushed, 1);
    desk.check(config.cache_slices() * 6);
}

#[test]
fn idle_time_is_used_to_flush_if_the_host_allows_it() {
    for allowed in [true, false] {
        let config = device(4);
        let mut desk = Desk::new(&config, true);
        if !allowed {
            desk.clear(flag::WB_FLUSH_DURING_HIBERNATE);
        }
        desk.write(0..600);
        assert_eq!(desk.stats().flushed, 0, "the host is busy");
        desk.settle();
        let blocks = desk.stats().slices_flushed;
        assert_eq!((desk.stats().flushed > 0, blocks > 400), (allowed, allowed), "{:?}", desk.stats());
        desk.check(600);
    }
}

/// A buffer that has been erased as often as it may takes no more data, and the next host does not switch it on.
#[test]
fn a_worn_buffer_retires() {
    let mut config = device(2);
    config.slc.as_mut().unwrap().life_erases = 3;
    let mut desk = Desk::new(&config, true);
    let mut life = Vec::new();
    for _ in 0..8 {
        desk.write(0..config.cache_slices() * 2);
        desk.settle();
        life.push(desk.attribute(attribute::WB_LIFE_TIME_EST));
    }
    assert!(life.is_sorted() && life[0] > 1 && life[7] == u32::from(LIFE_EXCEEDED), "{life:?}");
    assert_eq!(desk.attribute(attribute::WB_CURRENT_SIZE), 0);
    let boosted = desk.stats().slices_boosted;
    desk.write(0..1000);
    assert_eq!(desk.stats().slices_boosted, boosted);
    let recovery = desk.stack.power_cycle(desk.now, desk.now + Ns::from_ms(1));
    desk.now = desk.stack.start(recovery.ready_at).unwrap();
    assert_eq!(desk.query(opcode::READ_FLAG, flag::WB_EN), (result::SUCCESS, 0));
    assert_eq!(
        desk.attribute(attribute::WB_LIFE_TIME_EST),
        u32::from(LIFE_EXCEEDED),
        "a power cut makes nothing young"
    );
}

/// The buffer takes no space away: a device with a buffer larger than its spare area can be filled and overwritten, and
/// gives the space back before any write is refused.
#[test]
fn the_whole_capacity_can_be_written() {
    let mut config = readpath_testkit::device(3000);
    config.geometry.pages_per_block = 24;
    give_little_room(&mut config, 2);
    boost(&mut config, 8);
    let mut desk = Desk::new(&config, true);
    for round in 0..4 {
        desk.write(0..3000);
        let stats = desk.stats();
        assert_eq!(stats.no_space, 0, "round {round}");
    }
    let stats = desk.stats();
    assert!(stats.slices_boosted > 100 && stats.slices_flushed > 10 && stats.collected > 10, "{stats:?}");
    let size = desk.attribute(attribute::WB_CURRENT_SIZE);
    assert!(size <= config.write_booster().unwrap().dynamic_blocks.div_ceil(1024), "{size}");
    desk.check(3000);
}

/// Recovery reads the spare areas of pages in SLC mode in their time.
#[test]
fn recovery_pays_for_slc_pages_what_they_cost() {
    let recovered = |slc_read| {
        let mut config = device(4);
        config.slc.as_mut().unwrap().read = slc_read;
        config.firmware.flash_op = Ns(10);
        let mut desk = Desk::new(&config, true);
        desk.clear(flag::WB_FLUSH_DURING_HIBERNATE);
        desk.write(0..400);
        desk.settle();
        let boosted = desk.stats().slices_boosted;
        let on = desk.now + Ns::from_ms(1);
        let recovery = desk.stack.power_cycle(desk.now, on);
        let took = recovery.ready_at - on;
        desk.now = desk.stack.start(recovery.ready_at).unwrap();
        desk.check(400);
        (took, boosted)
    };
    let (fast, boosted) = recovered(Ns(5_000));
    let (slow, same) = recovered(Ns(45_000));
    assert!(boosted > 300 && boosted == same);
    assert!(slow > fast + Ns::from_ms(1), "{fast} {slow}");
}

/// A phase ends with its last request: what the device then does by itself is not in the way of the next phase.
#[test]
fn the_next_phase_does_not_wait_for_a_flush() {
    let config = device(16);
    let (mut stack, now) = readpath_testkit::start::<Lean, Tags, Typed>(&config, HostConfig::LINUX, |_| ());
    let mut runner = Runner::new(now);
    let mut run = |from| {
        let stream = Stream::sequential(IoKind::Write, from, 1000, 4).expect("a range");
        run(&mut stack, &mut runner, vec![job(stream, 1, 250)])
    };
    let (first, second) = (run(0), run(1000));
    assert_eq!(first.end, second.start);
    let longest = [&first, &second].map(|p| p.jobs[0].of(IoKind::Write).latency.max());
    assert!(longest[1] < 3 * longest[0], "{longest:?} ns");
    assert_eq!(stack.device.stats().flushed, 0);
    Runner::settle(&mut stack).expect("the device comes to rest");
    assert!(stack.device.stats().flushed > 2);
}

/// What the buffer was writing when the host switched it off is given back, too, when space gets short.
#[test]
fn a_superblock_that_is_half_full_is_given_back() {
    let mut config = readpath_testkit::device(3000);
    config.geometry.pages_per_block = 24;
    give_little_room(&mut config, 1);
    boost(&mut config, 2);
    let mut desk = Desk::new(&config, true);
    desk.clear(flag::WB_FLUSH_DURING_HIBERNATE);
    desk.write(0..config.cache_slices() / 2 / 4 * 4);
    desk.clear(flag::WB_EN);
    desk.settle();
    assert!(desk.stats().slices_boosted > 0 && desk.stats().slc_erases == 0);
    // These writes do not overwrite the data in the buffer.
    desk.write(config.cache_slices()..3000);
    desk.write(config.cache_slices()..3000);
    assert_eq!(desk.stats().slc_erases, u64::from(config.geometry.dies()), "{:?}", desk.stats());
    desk.check(3000);
}

#[test]
fn a_host_that_reads_is_not_idle() {
    let mut desk = Desk::new(&device(4), true);
    desk.write(0..256);
    let idle_after = desk.stack.device.config().ftl.idle_after;
    // Reads far shorter than the time between them, and for far longer than a host has to be idle.
    for block in 0..100 {
        desk.stack.submit(desk.now, &BlockRequest { cookie: 1, lun: 0, op: BlockOp::Read, block, blocks: 1 });
        let next = desk.now + Ns(idle_after.0 / 2);
        while desk.stack.next_deadline() < next {
            step(&mut desk.stack, &mut desk.now);
        }
        assert!(desk.stack.poll_done().is_some(), "the read has ended");
        desk.now = next;
    }
    assert_eq!(desk.stats().flushed, 0);
    let last = desk.now;
    while desk.stats().flushed == 0 {
        step(&mut desk.stack, &mut desk.now);
    }
    assert!(desk.now >= last + Ns(idle_after.0 / 2) && desk.now < last + idle_after, "{:?} after {last:?}", desk.now);
    // A read ends idleness, which comes back.
    one(&mut desk.stack, &mut desk.now, BlockOp::Read, 7, 1);
    desk.settle();
    assert!(desk.stats().flushed > 1 && desk.stack.next_deadline() == Ns::NEVER, "{:?}", desk.stats());
    desk.check(256);
}
