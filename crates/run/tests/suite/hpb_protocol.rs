// SPDX-License-Identifier: MIT OR Apache-2.0
//! HPB as host and device speak it in device control mode: what follows from notifications, reads and writes, seen as
//! commands on the wire and in the counters of both sides.

use readpath_device::{DeviceConfig, Layout};
use readpath_flash::Lean;
use readpath_host::{BlockOp, BlockRequest, HostConfig, HpbCounters, HpbOptions, RegionState};
use readpath_kit::Ns;
use readpath_proto::typed::{
    Cdb, Command, HpbNotification, Reply, ReplyBody, Request, RequestBody, Response, Status, SubRegion,
};
use readpath_stack::NoData;
use readpath_testkit::{Checked, Meddled, Meddler, device, host, one, reset_hpb, settle, start_on, step};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Blocks of the unit under test: three whole regions of four sub-regions of 64 blocks, and a region of three whole
/// sub-regions and one of 40 blocks.
const BLOCKS: u32 = 1000;

const fn at(region: u16, index: u16) -> SubRegion {
    SubRegion { region, index }
}

#[derive(Default)]
struct Seen {
    requests: Vec<Request>,
    inject: VecDeque<HpbNotification>,
    /// Notifications of the device are taken away.
    silence: bool,
    notifications: Vec<HpbNotification>,
}

/// Sees all messages, and can put its own notifications into replies.
#[derive(Clone, Default)]
struct Spy(Arc<Mutex<Seen>>);

impl Meddler for Spy {
    fn request(&mut self, request: &mut Request) {
        self.0.lock().unwrap().requests.push(*request);
    }

    fn reply(&mut self, reply: &mut Reply) {
        let mut seen = self.0.lock().unwrap();
        let ReplyBody::Response(Response { status: Status::Good, hpb, .. }) = &mut reply.body else { return };
        seen.notifications.extend(*hpb);
        if seen.silence {
            *hpb = None;
        }
        if let Some(n) = seen.inject.pop_front() {
            *hpb = Some(n);
        }
    }
}

/// What a command of a stack was, as far as HPB is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sent {
    /// 28h.
    Read(u32),
    /// F8h.
    HpbRead(u32),
    /// F9h with its allocation length.
    Load(SubRegion, u32),
    Other,
}

struct Talk {
    stack: Checked<Lean, Meddled<Spy>>,
    now: Ns,
    spy: Spy,
}

impl Talk {
    fn new(config: &DeviceConfig, silence: bool) -> Talk {
        let spy = Spy::default();
        spy.0.lock().unwrap().silence = silence;
        let wire = Meddled::new(spy.clone(), true);
        let (mut stack, mut now) = start_on(config, host(Some(HpbOptions::default())), wire, |stack| {
            stack.precondition(0, 0, config.lus[0].blocks, Layout::Random, 1).expect("room");
        });
        settle(&mut stack, &mut now);
        Talk { stack, now, spy }
    }

    /// Commands sent since this was last asked.
    fn sent(&mut self) -> Vec<Sent> {
        let requests = std::mem::take(&mut self.spy.0.lock().unwrap().requests);
        let seen = |r: Request| match r.body {
            RequestBody::Command(Command { cdb, .. }) => match cdb {
                Cdb::Read { lba, .. } => Sent::Read(lba as u32),
                Cdb::HpbRead { lba, .. } => Sent::HpbRead(lba),
                Cdb::HpbReadBuffer { buffer_id: 1, at, alloc } => Sent::Load(at, alloc),
                _ => Sent::Other,
            },
            _ => Sent::Other,
        };
        requests.into_iter().map(seen).collect()
    }

    /// Makes one request and returns the commands that it took.
    fn does(&mut self, op: BlockOp, block: u32, blocks: u32) -> Vec<Sent> {
        self.sent();
        one(&mut self.stack, &mut self.now, op, block, blocks);
        self.sent()
    }

    fn reads(&mut self, block: u32) -> Vec<Sent> {
        self.does(BlockOp::Read, block, 1)
    }

    /// Reads block 0 with a notification in its response; returns the commands.
    fn notify(&mut self, n: HpbNotification) -> Vec<Sent> {
        self.spy.0.lock().unwrap().inject.push_back(n);
        self.reads(0)
    }

    fn counters(&self) -> HpbCounters {
        *self.stack.host.counters(0).expect("an HPB unit")
    }
}

fn activate(active: &[SubRegion]) -> HpbNotification {
    let mut n = HpbNotification { operation: HpbNotification::REGION_UPDATE, ..HpbNotification::default() };
    n.active_count = active.len() as u8;
    n.active[..active.len()].copy_from_slice(active);
    n
}

fn inactivate(region: u16) -> HpbNotification {
    HpbNotification { operation: 1, inactive_count: 1, inactive: [region, 0], ..HpbNotification::default() }
}

#[test]
fn each_recommended_sub_region_is_loaded_once_and_then_used() {
    let mut talk = Talk::new(&device(BLOCKS), false);
    talk.sent();
    // Twice over all sub-regions, one block of each: the first read finds no entry, which makes the device recommend.
    let firsts: Vec<u32> = (0..BLOCKS).step_by(64).collect();
    let mut sent: Vec<Sent> = firsts.iter().flat_map(|&b| talk.reads(b)).collect();
    for (i, &block) in firsts.iter().enumerate() {
        let (at, alloc) = (at(i as u16 / 4, i as u16 % 4), if i == 15 { 40 * 8 } else { 64 * 8 });
        assert_eq!(sent[2 * i..2 * i + 2], [Sent::Read(block), Sent::Load(at, alloc)]);
    }
    assert_eq!(sent.len(), 32, "one load for each sub-region");
    sent = firsts.iter().flat_map(|&b| talk.reads(b)).collect();
    assert_eq!(sent, firsts.iter().map(|&b| Sent::HpbRead(b)).collect::<Vec<_>>());
    let (host, device) = (talk.counters(), talk.stack.device.stats());
    let noted = (host.rcmd_noti_cnt, host.rcmd_active_cnt, host.map_req_cnt, host.hit_cnt, host.miss_cnt);
    assert_eq!(noted, (16, 16, 16, 16, 16));
    assert_eq!((device.recommended_active, device.read_buffers, device.hpb_reads, device.hpb_hits), (16, 16, 16, 16));
    assert_eq!(talk.stack.payload.wrong, 0);
}

#[test]
fn without_a_notification_nothing_is_loaded() {
    let mut talk = Talk::new(&device(BLOCKS), true);
    for block in [3, 3, 3, 77, 77, 3] {
        assert_eq!(talk.reads(block), [Sent::Read(block)]);
    }
    let c = talk.counters();
    assert_eq!((c.hit_cnt, c.miss_cnt, c.map_req_cnt, c.rcmd_noti_cnt), (0, 6, 0, 0));
    assert!(talk.spy.0.lock().unwrap().notifications.len() >= 2, "the device did recommend");
}

#[test]
fn a_written_block_is_read_without_entry_until_it_is_loaded_again() {
    let mut talk = Talk::new(&device(BLOCKS), true);
    assert_eq!(talk.notify(activate(&[at(1, 2)])), [Sent::Read(0), Sent::Load(at(1, 2), 512)]);
    let block = 256 + 2 * 64 + 7;
    assert_eq!(talk.reads(block), [Sent::HpbRead(block)]);
    assert_eq!(talk.does(BlockOp::Write, block, 1), [Sent::Other]);
    assert_eq!(talk.reads(block), [Sent::Read(block)]);
    assert_eq!(talk.reads(block - 1), [Sent::HpbRead(block - 1)]);
    assert_eq!(talk.reads(block + 1), [Sent::HpbRead(block + 1)]);
    assert_eq!(talk.does(BlockOp::Discard, block + 1, 1), [Sent::Other]);
    assert_eq!(talk.reads(block + 1), [Sent::Read(block + 1)]);
    // HPB 1.0 reads one block with an entry, no more.
    let counted = talk.counters();
    assert_eq!(talk.does(BlockOp::Read, block - 3, 2), [Sent::Read(block - 3)]);
    assert_eq!(talk.counters(), counted, "a read that is too long counts as neither hit nor miss");
    // Once its new place is in flash, the same notification again brings its new entry.
    talk.does(BlockOp::Flush, 0, 0);
    assert_eq!(talk.notify(activate(&[at(1, 2)])), [Sent::Read(0), Sent::Load(at(1, 2), 512)]);
    assert_eq!(talk.reads(block), [Sent::HpbRead(block)]);
    let s = talk.stack.device.stats();
    assert_eq!((s.hpb_reads, s.hpb_hits, s.read_buffers), (4, 4, 2));
    let c = talk.counters();
    assert_eq!((c.rcmd_noti_cnt, c.rcmd_active_cnt, c.map_req_cnt, c.map_error_cnt), (2, 2, 2, 0));
    assert_eq!(talk.stack.payload.wrong, 0);
}

#[test]
fn the_oldest_activated_region_makes_room() {
    let mut config = device(BLOCKS);
    config.lus[0].max_active_regions = 2;
    let mut talk = Talk::new(&config, true);
    for region in [0, 1] {
        assert_eq!(talk.notify(activate(&[at(region, 1)])).last(), Some(&Sent::Load(at(region, 1), 512)));
    }
    // Use does not change the order, activation does.
    assert_eq!(talk.reads(64), [Sent::HpbRead(64)]);
    assert_eq!(talk.notify(activate(&[at(2, 1)])).last(), Some(&Sent::Load(at(2, 1), 512)));
    assert_eq!(talk.counters().evict_cnt, 1);
    assert_eq!(talk.reads(64), [Sent::Read(64)]);
    assert_eq!(talk.reads(256 + 64), [Sent::HpbRead(256 + 64)]);
    let hpb = talk.stack.host.hpb(0).expect("an HPB unit");
    let states: Vec<_> = (0..3).map(|r| hpb.region_state(r)).collect();
    assert_eq!(states, [RegionState::Inactive, RegionState::Active, RegionState::Active]);
    let memory = talk.stack.host.memory(0).expect("an HPB unit");
    assert_eq!((memory.map_bytes, memory.bitmap_bytes), (2 * 512, 2 * 8), "one sub-region of each of two regions");
}

#[test]
fn inactivation_and_device_reset_stop_hpb_reads_without_a_command() {
    let mut config = device(BLOCKS);
    (config.lus[0].pinned_start, config.lus[0].pinned_regions) = (3, 1);
    let mut talk = Talk::new(&config, true);
    let loads = talk.sent().into_iter().filter(|s| matches!(s, Sent::Load(..))).collect::<Vec<_>>();
    let pinned: Vec<_> = (0..4).map(|i| Sent::Load(at(3, i), if i == 3 { 320 } else { 512 })).collect();
    assert_eq!(loads, pinned, "pinned regions are loaded without being asked");
    talk.notify(activate(&[at(0, 0), at(1, 0)]));
    assert_eq!([talk.reads(1), talk.reads(257)].concat(), [Sent::HpbRead(1), Sent::HpbRead(257)]);
    assert_eq!(talk.notify(inactivate(1)), [Sent::HpbRead(0)], "no command follows");
    assert_eq!([talk.reads(1), talk.reads(257)].concat(), [Sent::HpbRead(1), Sent::Read(257)]);
    talk.notify(inactivate(3));
    let lost = HpbNotification { operation: HpbNotification::RESET, ..HpbNotification::default() };
    assert_eq!(talk.notify(lost), [Sent::HpbRead(0)]);
    assert_eq!(talk.reads(1), [Sent::Read(1)]);
    let hpb = talk.stack.host.hpb(0).expect("an HPB unit");
    assert_eq!((hpb.region_state(0), hpb.region_state(3)), (RegionState::Inactive, RegionState::Pinned));
    let c = talk.counters();
    assert_eq!((c.rcmd_noti_cnt, c.rcmd_active_cnt, c.rcmd_inactive_cnt), (4, 2, 3));
    assert_eq!(c.umap_req_cnt, 0);
}

#[test]
fn a_device_reset_spares_pinned_regions() {
    let mut config = device(BLOCKS);
    (config.lus[0].pinned_start, config.lus[0].pinned_regions) = (3, 1);
    let mut talk = Talk::new(&config, true);
    talk.notify(activate(&[at(0, 0)]));
    talk.notify(HpbNotification { operation: HpbNotification::RESET, ..HpbNotification::default() });
    assert_eq!([talk.reads(0), talk.reads(999)].concat(), [Sent::Read(0), Sent::HpbRead(999)]);
}

#[test]
fn notifications_that_name_nothing_are_refused() {
    let mut talk = Talk::new(&device(BLOCKS), true);
    talk.notify(activate(&[at(0, 1)]));
    let before = talk.counters();
    let three = HpbNotification { active_count: 3, ..activate(&[at(0, 1)]) };
    for n in [activate(&[at(4, 0)]), activate(&[at(0, 1), at(0, 4)]), inactivate(4), inactivate(u16::MAX), three] {
        assert_eq!(talk.notify(n), [Sent::Read(0)]);
        assert_eq!(talk.reads(64), [Sent::HpbRead(64)], "{n:?} changed something");
    }
    for n in
        [activate(&[]), HpbNotification { lun: 1, ..inactivate(0) }, HpbNotification { lun: 0x7F, ..inactivate(0) }]
    {
        talk.notify(n);
        assert_eq!(talk.reads(64), [Sent::HpbRead(64)], "{n:?} changed something");
    }
    let after = talk.counters();
    assert_eq!(after.rejected_noti_cnt, 5);
    assert_eq!((after.rcmd_noti_cnt, after.map_req_cnt), (before.rcmd_noti_cnt, before.map_req_cnt));
}

#[test]
fn a_host_that_was_reset_hears_that_the_device_lost_its_hpb_state_and_loads_again() {
    let mut talk = Talk::new(&device(BLOCKS), false);
    talk.reads(5);
    assert_eq!(talk.reads(6), [Sent::HpbRead(6)]);
    talk.stack.reset(talk.now);
    // The first command meets the unit attention and is sent again; its response brings operation 02h.
    assert_eq!(talk.reads(6), [Sent::HpbRead(6), Sent::HpbRead(6)]);
    assert_eq!(talk.stack.device.stats().hpb_inactive, 1, "the old entry is not believed");
    let last = talk.spy.0.lock().unwrap().notifications.last().copied();
    assert_eq!(last.map(|n| n.operation), Some(HpbNotification::RESET));
    let mut sent = Vec::new();
    for _ in 0..6 {
        sent.extend(talk.reads(6));
    }
    assert!(sent.contains(&Sent::Load(at(0, 0), 512)), "{sent:?}");
    assert_eq!(sent.last(), Some(&Sent::HpbRead(6)));
    assert!(talk.stack.device.stats().hpb_hits > 1, "new entries are believed again");
}

/// A reset that the host did not ask for, as far as its driver knows: entries that it still has lead to reads as
/// without HPB, and what the device recommends then brings new ones.
#[test]
fn a_host_goes_on_after_an_hpb_reset_in_the_middle_of_its_load() {
    for after in [0, 20, 60, 100, 200] {
        let mut talk = Talk::new(&device(BLOCKS), false);
        talk.reads(70);
        assert_eq!(talk.reads(70), [Sent::HpbRead(70)]);
        talk.sent();
        // The device recommends, and the host begins to load.
        let request = BlockRequest { cookie: 7, lun: 0, op: BlockOp::Read, block: 5, blocks: 1 };
        talk.stack.submit(talk.now, &request);
        while !talk.sent().contains(&Sent::Load(at(0, 0), 512)) {
            step(&mut talk.stack, &mut talk.now);
        }
        let later = talk.now + Ns::from_us(after);
        while talk.stack.next_deadline() <= later {
            step(&mut talk.stack, &mut talk.now);
        }
        talk.now = later;
        reset_hpb(&mut talk.stack, talk.now);
        settle(&mut talk.stack, &mut talk.now);
        assert!(talk.stack.poll_done().is_some_and(|done| done.error.is_none()));
        assert!(talk.stack.host.is_idle(), "the load has ended");
        let hits = talk.stack.device.stats().hpb_hits;
        let mut sent = talk.reads(70);
        assert_eq!(sent[0], Sent::HpbRead(70), "the host knows nothing");
        assert_eq!(talk.stack.device.stats().hpb_hits, hits, "an entry of before the reset");
        sent.extend((0..6).flat_map(|_| [talk.reads(5), talk.reads(70)].concat()));
        assert!(sent.contains(&Sent::Load(at(0, 1), 512)), "{sent:?}");
        let hits = talk.stack.device.stats().hpb_hits;
        assert_eq!([talk.reads(5), talk.reads(70)].concat(), [Sent::HpbRead(5), Sent::HpbRead(70)]);
        assert_eq!(talk.stack.device.stats().hpb_hits, hits + 2, "new entries are believed");
        assert_eq!(talk.stack.payload.wrong, 0);
    }
}

/// When the host has more maps to load than tags, the next load goes out with the next tag that is free, not later.
#[test]
fn a_load_without_a_tag_goes_out_with_the_next_reply() {
    let spy = Spy::default();
    spy.0.lock().unwrap().silence = true;
    // Two tags for requests, the third is kept for queries.
    let host = HostConfig { slots: 3, ..host(Some(HpbOptions::default())) };
    let wire = Meddled::new(spy.clone(), false);
    let (mut stack, mut now) = start_on::<Lean, NoData, _>(&device(BLOCKS), host, wire, |stack| {
        stack.precondition(0, 0, BLOCKS, Layout::Sequential, 1).expect("room");
    });
    spy.0.lock().unwrap().inject.push_back(activate(&[at(0, 0), at(0, 1)]));
    for cookie in 0..2 {
        stack.submit(now, &BlockRequest { cookie, lun: 0, op: BlockOp::Read, block: 500 + 4 * cookie, blocks: 1 });
    }
    let is_load = |r: &&Request| matches!(r.body, RequestBody::Command(Command { cdb: Cdb::HpbReadBuffer { .. }, .. }));
    for ended in 1..=2 {
        while stack.poll_done().is_none() {
            assert_ne!(stack.next_deadline(), Ns::NEVER, "every request ends");
            step(&mut stack, &mut now);
        }
        let loads = spy.0.lock().unwrap().requests.iter().filter(is_load).count();
        assert_eq!(loads, ended, "each reply frees a tag, and a load takes it");
        assert_eq!(stack.host.counters(0).expect("an HPB unit").map_error_cnt, 0);
    }
}
