// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether two hosts decide alike, by traces that are written here command by command.

use readpath_config::GivenKey;
use readpath_config::experiment::Variant;
use readpath_kit::Ns;
use readpath_lab::parity::{Cause, Parity, ParityError, parity};
use readpath_proto::typed::{Cdb, HpbEntry, HpbNotification, Reply, ReplyBody, Request, Response, Sense, SubRegion};
use readpath_proto::upiu;
use readpath_testkit::{command, read_10, write_10};
use readpath_workload::trace::upius::Seen;

/// Blocks of a region of the preset, of one sub-region.
const REGION: u32 = 4096;
const MAP_BYTES: u32 = 32 << 10;

/// What another host did, as a trace tells it.
#[derive(Default)]
struct Told {
    events: Vec<Seen>,
    ms: u64,
}

impl Told {
    fn upiu(&mut self, bytes: Vec<u8>) {
        let (time, request) = (Ns::from_ms(self.ms), self.events.len() as u64);
        self.events.push(Seen::Upiu { time, wall: None, request, bytes, data: Vec::new() });
    }

    fn sends(&mut self, tag: u8, cdb: Cdb, bytes: u32) {
        let mut upiu = Vec::new();
        upiu::encode_request(&Request { lun: 0, tag, body: command(cdb, bytes) }, &[], &mut upiu);
        self.upiu(upiu);
    }

    fn answered(&mut self, tag: u8, response: Response) {
        let mut upiu = Vec::new();
        upiu::encode_reply(&Reply { lun: 0, tag, body: ReplyBody::Response(response) }, &[], &mut upiu);
        self.upiu(upiu);
    }

    fn hears(&mut self) {
        self.events.push(Seen::Heard { time: Ns::from_ms(self.ms), wall: None });
    }

    fn does(&mut self, cdb: Cdb, bytes: u32) {
        self.sends(0, cdb, bytes);
        self.answered(0, Response::GOOD);
        self.hears();
    }

    fn reads(&mut self, block: u32, is_hpb: bool) {
        self.does(if is_hpb { hpb_read(block) } else { read_10(block, 1) }, 4096);
    }

    fn writes(&mut self, block: u32) {
        self.does(write_10(block, 1, 0), 4096);
    }

    fn loads(&mut self, region: u16) {
        self.does(read_buffer(region), MAP_BYTES);
    }

    /// Compares the trace with our host in a mode.
    fn beside(self, mode: &str) -> Result<Parity, ParityError> {
        let keys = [("hpb", mode), ("strict_linux", "true")].map(|(key, value)| GivenKey::new(key, value, ""));
        let variant = Variant::of_keys("parity", &keys).expect("a variant");
        let base = readpath_config::device::load("ufs21-64g", &|_| unreachable!("it is built in")).expect("a preset");
        let preset = variant.device(&base).expect("a device that can exist");
        parity(self.events.into_iter().map(Ok), &preset, variant.host(&preset))
    }
}

fn hpb_read(block: u32) -> Cdb {
    Cdb::HpbRead { lba: block, blocks: 1, entry: HpbEntry([7; 8]), flags: 0, read_id: 0 }
}

fn read_buffer(region: u16) -> Cdb {
    Cdb::HpbReadBuffer { buffer_id: 1, at: SubRegion { region, index: 0 }, alloc: MAP_BYTES }
}

fn recommends(region: u16) -> Response {
    let at = SubRegion { region, index: 0 };
    let hpb = HpbNotification {
        operation: HpbNotification::REGION_UPDATE,
        lun: 0,
        active_count: 1,
        inactive_count: 0,
        active: [at; 2],
        inactive: [0; 2],
    };
    Response { hpb: Some(hpb), ..Response::GOOD }
}

/// A region that has been read often enough, loaded, and written: it is dirty.
fn a_dirty_region() -> Told {
    let mut told = Told::default();
    (0..8).for_each(|block| told.reads(REGION + block, false));
    told.loads(1);
    told.ms += 100;
    told.reads(REGION, true);
    told.writes(REGION + 9);
    told.reads(REGION + 9, false);
    told
}

#[test]
fn a_host_that_does_the_same_does_not_differ() {
    let mut told = a_dirty_region();
    // Every other block is read by its entry, and the region is loaded again when it is read often enough.
    (0..7).for_each(|block| told.reads(REGION + block, true));
    told.loads(1);
    told.ms += 100;
    told.reads(REGION + 9, true);
    let found = told.beside("hcm").unwrap();
    assert_eq!((found.both_hpb, found.both_plain, found.loads, found.differences), (9, 9, 2, 0), "{found:?}");
    assert_eq!((found.requests, found.tolerated.len()), (19, 0));
}

#[test]
fn each_kind_of_difference_is_found() {
    let found = |last: fn(&mut Told)| {
        let mut told = a_dirty_region();
        last(&mut told);
        let found = told.beside("hcm").unwrap();
        assert_eq!(found.differences, found.told.len() as u64);
        found.told
    };
    assert_eq!(found(|_| {}), [""; 0]);
    assert!(found(|t| t.reads(REGION + 3, false))[0].contains("blocks from 4099 on: HPB READ by our host, READ in"));
    assert!(found(|t| t.reads(REGION + 9, true))[0].contains("READ by our host, HPB READ in the trace"));
    assert!(found(|t| t.reads(99, true))[0].contains("1 blocks from 99 on: READ by our host, HPB READ in the trace"));
    assert!(found(|t| t.loads(1))[0].ends_with("is loaded in the trace, and not by our host"));
    assert!(
        found(|t| t.does(Cdb::HpbInactivate { region: 1 }, 0))[0]
            .ends_with("is dropped in the trace, and not by our host")
    );
    let mut told = Told::default();
    told.sends(0, read_10(5, 1), 4096);
    told.answered(0, recommends(0));
    told.hears();
    told.ms += 100;
    assert!(told.beside("dcm").unwrap().told[0].ends_with("is loaded by our host, and not in the trace"));
}

/// Linux goes through what has ended by tag. Here a region's map comes (tag 0) in the same look as the advice to load
/// it once more (tag 1), which reached the controller before: a clean region takes the advice, a dirty one would not.
#[test]
fn replies_are_heard_when_the_other_host_looks_and_in_the_order_of_tags() {
    let differences = |is_one_look: bool| {
        let mut told = a_dirty_region();
        (0..7).for_each(|block| told.reads(REGION + block, true));
        told.sends(0, read_buffer(1), MAP_BYTES);
        told.sends(1, read_10(REGION, 1), 4096);
        told.answered(1, recommends(1));
        if !is_one_look {
            told.hears();
        }
        told.answered(0, Response::GOOD);
        told.hears();
        // It waits to be loaded once more, until the timer of Linux goes off.
        told.ms += 50;
        told.reads(REGION + 1, !is_one_look);
        if is_one_look {
            told.loads(1);
        }
        told.ms += 50;
        told.reads(REGION + 1, true);
        let found = told.beside("hcm").unwrap();
        assert!(found.tolerated.is_empty(), "{found:?}");
        found.told
    };
    assert_eq!(differences(true), [""; 0]);
    assert_eq!(differences(false), [""; 0]);
}

/// Around the moment at which a region changes, hosts may differ; not later.
#[test]
fn what_is_on_its_way_is_counted_apart() {
    let told = |after_ms: u64| {
        let mut told = Told::default();
        (0..8).for_each(|block| told.reads(REGION + block, false));
        told.loads(1);
        told.ms += after_ms;
        told.reads(REGION, false);
        told.beside("hcm").unwrap()
    };
    assert_eq!((told(5).differences, told(5).tolerated[&Cause::MapJustCame]), (0, 1));
    assert_eq!((told(25).differences, told(25).tolerated.len()), (1, 0));
}

/// Advice to load a region starts the worker. Ours loads region 0 at once, so region 1 waits; the other runs later.
#[test]
fn a_worker_that_runs_later_is_counted_apart() {
    let found = |after_ms: u64| {
        let mut told = Told::default();
        for region in [0, 1, 2] {
            (0..8).for_each(|block| told.reads(region * REGION + block, false));
            told.loads(region as u16);
            told.ms += 100;
        }
        for region in [0, 1] {
            told.writes(region * REGION + 9);
            (0..8).for_each(|block| told.reads(region * REGION + block, true));
        }
        told.sends(0, hpb_read(2 * REGION), 4096);
        told.answered(0, recommends(2));
        told.hears();
        told.ms += after_ms;
        told.reads(REGION, true);
        // It has loaded region 0 and is interrupted before it goes on to region 1.
        told.sends(0, read_buffer(0), MAP_BYTES);
        told.sends(1, hpb_read(REGION), 4096);
        (0..2).for_each(|tag| told.answered(tag, Response::GOOD));
        told.hears();
        told.reads(REGION, false);
        told.ms += 100;
        told.loads(1);
        told.ms += 100;
        told.loads(2);
        let found = told.beside("hcm").unwrap();
        (found.differences, found.tolerated.get(&Cause::WorkerNotDone).copied())
    };
    assert_eq!(found(0), (0, Some(2)));
    assert_eq!(found(25), (1, Some(1)));
}

#[test]
fn what_hosts_are_not_compared_by_is_said() {
    let mut told = a_dirty_region();
    told.sends(0, read_10(9, 1), 4096);
    told.answered(0, Response::check(Sense::NOT_READY, 4096));
    told.hears();
    let says = told.beside("hcm").unwrap_err().to_string();
    assert!(says.ends_with("a command of the trace failed; hosts are compared while nothing goes wrong"), "{says}");
}
