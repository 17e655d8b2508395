// SPDX-License-Identifier: MIT OR Apache-2.0
//! HPB 2.0 at the device: longer HPB READs with the entry of their first block, with a pre-request before them, and
//! with all entries in an extra header segment. What comes back is always what READ would bring; only flash operations
//! and time differ, and those are counted here to the nanosecond.

use readpath_device::{DeviceConfig, Hpb2Config, HpbConfig, Layout};
use readpath_kit::Ns;
use readpath_proto::query::{attribute, descriptor, flag, opcode, result};
use readpath_proto::typed::{
    Cdb, Command, FLAG_FUA, HpbEntry, HpbNotification, Request, RequestBody, Response, Sense, Status, SubRegion,
};
use readpath_proto::upiu::ehs_bytes;
use readpath_testkit::{Bare, HPB, command, device, read_10, response, write_10};

const BLOCKS: u32 = 8 * 1024;
const V2: Hpb2Config = Hpb2Config { enabled: true, single_blocks: 8, pre_requests: 2, entries_in_ehs: true };

fn config(v2: Hpb2Config) -> DeviceConfig {
    let mut config = device(BLOCKS);
    config.hpb = Some(HpbConfig { v2: Some(v2), ..HPB });
    config
}

/// Half of the unit is written, in order or not.
fn bare(v2: Hpb2Config, layout: Layout) -> Bare {
    Bare::filled(&config(v2), BLOCKS / 2, layout, 1)
}

/// The entries of a sub-region of 64 blocks.
fn entries(b: &mut Bare, region: u16, index: u16) -> Vec<u8> {
    let at = SubRegion { region, index };
    let (reply, data) = b.command(Cdb::HpbReadBuffer { buffer_id: 1, at, alloc: 512 }, 512);
    assert_eq!(response(&reply).status, Status::Good);
    data
}

fn entry(list: &[u8], i: usize) -> HpbEntry {
    HpbEntry(list[8 * i..8 * i + 8].try_into().expect("an entry"))
}

fn hpb_read(lba: u32, blocks: u8, entry: HpbEntry, read_id: u8) -> RequestBody {
    let cdb = Cdb::HpbRead { lba, blocks, entry, flags: 0, read_id };
    command(cdb, u32::from(blocks) * 4096)
}

fn pre_request(lba: u32, read_id: u8, list: &[u8]) -> RequestBody {
    let list_bytes = list.len() as u16;
    command(Cdb::HpbPreRequest { lba, read_id, list_bytes }, list.len() as u32)
}

/// Reads with the request, then by READ: the same response and the same blocks. Returns how many blocks were read by an
/// entry.
#[track_caller]
fn served(b: &mut Bare, body: RequestBody, data: &[u8]) -> u64 {
    let hits = b.device.stats().hpb_hits;
    let RequestBody::Command(Command { expected_bytes, cdb: Cdb::HpbRead { lba, blocks, .. } }) = body else {
        panic!("an HPB READ")
    };
    let (reply, _) = b.ask(0, body, data);
    let with_entries = (response(&reply).status, response(&reply).residual, b.moved());
    let hits = b.device.stats().hpb_hits - hits;
    let plain = b.response(read_10(lba, u32::from(blocks)), expected_bytes);
    assert_eq!(with_entries, (plain.status, plain.residual, b.moved()));
    assert_eq!(b.device.ops_in_use(), 0);
    hits
}

fn write(b: &mut Bare, lba: u32, blocks: u32) {
    b.command(write_10(lba, blocks, FLAG_FUA), blocks * 4096);
}

#[test]
fn an_entry_counts_for_the_blocks_that_lie_behind_its_own() {
    let mut b = bare(V2, Layout::Sequential);
    let list = entries(&mut b, 0, 0);
    // The blocks lie in order, so all are hits, also beyond the eight for which the host needs no pre-request, but not
    // beyond the sub-region. Not every length can be encoded: 63 becomes 32.
    for (lba, blocks, hits) in [(0, 8, 8), (3, 8, 8), (0, 1, 1), (1, 63, 32), (10, 32, 32), (60, 8, 4)] {
        assert_eq!(served(&mut b, hpb_read(lba, blocks, entry(&list, lba as usize), 0), &[]), hits, "{lba} {blocks}");
    }
    assert_eq!(served(&mut b, hpb_read(0, 64, entry(&list, 0), 0), &[]), 64);
    assert_eq!(served(&mut b, hpb_read(49, 15, entry(&list, 49), 0), &[]), 12);
    // One block of the run is written: the blocks before it are read by the entry, and none after it. Chunks are single
    // entries here.
    write(&mut b, 5, 1);
    assert_eq!(served(&mut b, hpb_read(0, 8, entry(&list, 0), 0), &[]), 5);
    assert_eq!(served(&mut b, hpb_read(6, 8, entry(&list, 6), 0), &[]), 8);
    let stale = b.device.stats().hpb_stale;
    assert_eq!(served(&mut b, hpb_read(5, 8, entry(&list, 5), 0), &[]), 0);
    assert_eq!(b.device.stats().hpb_stale, stale + 1);
}

/// Blocks 0 to 3 are written together, so that they share a page, whose spare area names them; then block 1 once more.
/// When the entries are made, block 1 lies elsewhere, and nothing changes after that: only the entry itself can tell.
#[test]
fn an_older_copy_behind_a_block_is_not_taken_for_its_neighbour() {
    let mut b = bare(V2, Layout::Sequential);
    write(&mut b, 0, 4);
    write(&mut b, 1, 1);
    let list = entries(&mut b, 0, 0);
    assert_eq!(served(&mut b, hpb_read(0, 4, entry(&list, 0), 0), &[]), 1);
    assert_eq!(served(&mut b, hpb_read(2, 2, entry(&list, 2), 0), &[]), 2);
}

/// A read longer than bMaxDataSizeForSingleCmd without a pre-request is served all the same.
#[test]
fn reads_that_are_longer_than_one_command_may_be_are_reads() {
    for layout in [Layout::Sequential, Layout::Random] {
        let mut b = bare(V2, layout);
        let list = entries(&mut b, 0, 0);
        for blocks in [8, 9, 10, 64, 255] {
            served(&mut b, hpb_read(0, blocks, entry(&list, 0), 0), &[]);
            served(&mut b, hpb_read(7, blocks, entry(&list, 0), 0), &[]);
        }
    }
}

#[test]
fn scattered_blocks_need_an_entry_each() {
    for list_too in [false, true] {
        let mut b = bare(V2, Layout::Random);
        let list = entries(&mut b, 3, 1);
        let first = 3 * 256 + 64;
        let body = hpb_read(first, 20, entry(&list, 0), 0);
        let before = *b.device.stats();
        let data = if list_too { &list[..160] } else { &[] };
        let hits = served(&mut b, body, data);
        let after = b.device.stats().since(&before);
        if list_too {
            assert_eq!((hits, after.hpb_reads), (20, 1));
        } else {
            assert!(hits < 5, "{hits}");
        }
        assert_eq!(b.device.stats().hpb_forged, 0);
    }
}

#[test]
fn entries_in_the_header_are_checked_one_by_one() {
    let mut b = bare(V2, Layout::Random);
    let list = entries(&mut b, 0, 0);
    let read = |blocks: u8| hpb_read(0, blocks, entry(&list, 0), 0);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut data = list[..64].to_vec();
        change(&mut data);
        data
    };
    assert_eq!(served(&mut b, read(8), &list[..64]), 8);
    // (what, entries, blocks by an entry, forged, zero)
    for (what, data, hits, forged, zero) in [
        ("one made up", with(&|d| d[24] ^= 1), 7, 1, 0),
        ("one of another block", with(&|d| d.copy_within(0..8, 40)), 7, 1, 0),
        ("three missing in a row", with(&|d| d[16..40].fill(0)), 5, 0, 3),
        ("the first is in the command as well", with(&|d| d[..8].fill(0)), 7, 0, 0),
    ] {
        let before = *b.device.stats();
        assert_eq!(served(&mut b, read(8), &data), hits, "{what}");
        let s = b.device.stats().since(&before);
        assert_eq!((s.hpb_forged, s.hpb_zero), (forged, zero), "{what}");
    }
    // Too few or too many are none: the command is served as one with the entry of its first block.
    for bytes in [8, 56, 72] {
        assert_eq!(served(&mut b, read(8), &list[..bytes]), 1, "{bytes}");
    }
    // A device that takes no entries in the header serves the command in the same way.
    let mut b = bare(Hpb2Config { entries_in_ehs: false, ..V2 }, Layout::Random);
    let list = entries(&mut b, 0, 0);
    assert_eq!(served(&mut b, hpb_read(0, 8, entry(&list, 0), 0), &list[..64]), 1);
}

#[test]
fn a_pre_request_is_used_once_by_the_read_that_it_is_for() {
    let mut b = bare(V2, Layout::Random);
    let list = entries(&mut b, 0, 0);
    let first = entry(&list, 0);
    let ask = |b: &mut Bare, body, data: &[u8]| response(&b.ask(0, body, data).0);
    assert_eq!(ask(&mut b, pre_request(0, 7, &list[..320]), &list[..320]), Response::GOOD);
    assert_eq!(served(&mut b, hpb_read(0, 40, first, 8), &[]), 1, "another READ ID");
    assert_eq!(served(&mut b, hpb_read(1, 39, entry(&list, 1), 7), &[]), 1, "another block");
    assert_eq!(served(&mut b, hpb_read(0, 41, first, 7), &[]), 1, "more blocks than it has entries");
    assert_eq!(served(&mut b, hpb_read(0, 40, first, 7), &[]), 40);
    assert_eq!(served(&mut b, hpb_read(0, 40, first, 7), &[]), 1, "once");
    // Two pre-requests are kept; the same ID replaces its own.
    for id in [1, 2, 2, 3] {
        ask(&mut b, pre_request(0, id, &list[..320]), &list[..320]);
    }
    let found: Vec<u64> = (1..=3).map(|id| served(&mut b, hpb_read(0, 40, first, id), &[])).collect();
    assert_eq!(found, [1, 40, 40]);
    // A reset of HPB makes them worthless.
    ask(&mut b, pre_request(0, 1, &list[..320]), &list[..320]);
    b.query(opcode::SET_FLAG, flag::HPB_RESET, 0, 0);
    assert_eq!(served(&mut b, hpb_read(0, 40, first, 1), &[]), 0);
    let s = b.device.stats();
    assert_eq!((s.pre_requests, s.pre_requests_used), (6, 3));
}

/// Nothing orders the two commands: a read that comes first is served without the pre-request, which then has no
/// effect.
#[test]
fn a_pre_request_that_comes_too_late_changes_nothing() {
    let mut b = bare(V2, Layout::Random);
    let list = entries(&mut b, 0, 0);
    let read = Request { lun: 0, tag: 1, body: hpb_read(0, 40, entry(&list, 0), 5) };
    let ahead = Request { lun: 0, tag: 2, body: pre_request(0, 5, &list[..320]) };
    let play = |b: &mut Bare, order: [(&Request, &[u8]); 2]| {
        let hits = b.device.stats().hpb_hits;
        order.iter().for_each(|(request, data)| b.device.submit(b.now, request, data));
        let replies = b.settle();
        assert!(replies.len() == 2 && replies.iter().all(|(_, r)| response(r).status == Status::Good), "{replies:?}");
        b.device.stats().hpb_hits - hits
    };
    assert_eq!(play(&mut b, [(&read, &[]), (&ahead, &list[..320])]), 1);
    assert_eq!(play(&mut b, [(&ahead, &list[..320]), (&read, &[])]), 40, "at the same moment in the right order");
}

#[test]
fn pre_requests_that_are_wrong() {
    let bad = Some(Sense::INVALID_FIELD);
    let list = vec![1; 256 * 8];
    let mut b = bare(V2, Layout::Sequential);
    let mut v1 = v1();
    for (lba, id, announced, sent, sense) in [
        (0, 1, 8, 8, None),
        (0, 126, 255 * 8, 255 * 8, None),
        (BLOCKS - 2, 1, 16, 16, None),
        (0, 0, 8, 8, bad),
        (0, 1, 0, 0, bad),
        (0, 1, 12, 12, bad),
        (0, 1, 256 * 8, 256 * 8, bad),
        (0, 1, 16, 8, bad),
        (BLOCKS - 2, 1, 24, 24, Some(Sense::LBA_OUT_OF_RANGE)),
        (u32::MAX, 1, 8, 8, Some(Sense::LBA_OUT_OF_RANGE)),
    ] {
        let cdb = Cdb::HpbPreRequest { lba, read_id: id, list_bytes: announced };
        let body = command(cdb, sent as u32);
        assert_eq!(response(&b.ask(0, body, &list[..sent]).0).sense, sense, "{cdb:?} with {sent} bytes");
        assert_eq!(response(&v1.ask(0, body, &list[..sent]).0).sense, bad, "{cdb:?} to HPB 1.0");
    }
    assert_eq!(b.device.stats().pre_requests, 3);
}

#[test]
fn descriptors_attributes_and_the_flag() {
    let mut b = bare(V2, Layout::Sequential);
    let ok = |value: u32| (result::SUCCESS, value);
    let ask = |b: &mut Bare, op, idn| {
        let (result, value, _) = b.query(op, idn, 0, 0);
        (result, value)
    };
    let device = b.query(opcode::READ_DESCRIPTOR, descriptor::DEVICE, 0, 0).2;
    assert_eq!(device[0x40..0x42], [0x02, 0x00], "HPB 2.0");
    assert_eq!(ask(&mut b, opcode::READ_ATTRIBUTE, attribute::MAX_HPB_SINGLE_CMD), ok(7));
    assert_eq!(ask(&mut b, opcode::WRITE_ATTRIBUTE, attribute::MAX_HPB_SINGLE_CMD).0, result::NOT_WRITABLE);
    assert_eq!(ask(&mut b, opcode::READ_ATTRIBUTE, attribute::EHS_HPB_ENTRIES), ok(255));
    let mut without = bare(Hpb2Config { entries_in_ehs: false, ..V2 }, Layout::Sequential);
    assert_eq!(ask(&mut without, opcode::READ_ATTRIBUTE, attribute::EHS_HPB_ENTRIES).0, result::INVALID_IDN);

    assert_eq!(ask(&mut b, opcode::READ_FLAG, flag::HPB_EN), ok(1));
    ask(&mut b, opcode::SET_FLAG, flag::HPB_RESET);
    let list = entries(&mut b, 0, 0);
    assert_eq!(served(&mut b, hpb_read(0, 8, entry(&list, 0), 0), &[]), 8);
    // Off: the entry of a READ has no effect, there are no entries and no notifications, and pre-requests do nothing.
    assert_eq!(ask(&mut b, opcode::CLEAR_FLAG, flag::HPB_EN), ok(0));
    assert_eq!(ask(&mut b, opcode::READ_FLAG, flag::HPB_EN), ok(0));
    assert_eq!(served(&mut b, hpb_read(0, 8, entry(&list, 0), 0), &[]), 0);
    assert!(entries(&mut b, 0, 0).iter().all(|&byte| byte == 0));
    let (reply, _) = b.ask(0, pre_request(0, 1, &list[..80]), &list[..80]);
    assert_eq!((response(&reply).status, b.device.stats().pre_requests), (Status::Good, 0));
    let told = |b: &mut Bare| (0..20).filter(|_| b.response(read_10(3000, 1), 4096).hpb.is_some()).count();
    assert_eq!(told(&mut b), 0);
    ask(&mut b, opcode::SET_FLAG, flag::HPB_RESET);
    assert_eq!(told(&mut b), 0, "a reset does not switch it on");
    // It survives a hardware reset and the loss of power.
    b.device.hardware_reset(b.now);
    b.command(Cdb::TestUnitReady, 0);
    assert_eq!((ask(&mut b, opcode::READ_FLAG, flag::HPB_EN), told(&mut b)), (ok(0), 0));
    b.device.power_cut(b.now);
    b.now += Ns::from_ms(1);
    b.device.recover(b.now);
    assert_eq!(ask(&mut b, opcode::READ_FLAG, flag::HPB_EN), ok(0));
    // HPB is switched on again.
    b.command(Cdb::TestUnitReady, 0);
    assert_eq!(ask(&mut b, opcode::TOGGLE_FLAG, flag::HPB_EN), ok(1));
    ask(&mut b, opcode::SET_FLAG, flag::HPB_RESET);
    assert!(told(&mut b) > 0);
    let list = entries(&mut b, 0, 0);
    assert_eq!(served(&mut b, hpb_read(0, 8, entry(&list, 0), 0), &[]), 8);
    assert_eq!(ask(&mut v1(), opcode::READ_FLAG, flag::HPB_EN).0, result::INVALID_IDN);
    let mut off = bare(Hpb2Config { enabled: false, ..V2 }, Layout::Sequential);
    assert_eq!(ask(&mut off, opcode::READ_FLAG, flag::HPB_EN), ok(0), "as configured");
}

fn v1() -> Bare {
    Bare::new(&device(BLOCKS))
}

/// Longer reads count for what is recommended, in each sub-region that they touch at an end.
#[test]
fn long_reads_lead_to_recommendations() {
    let mut b = bare(V2, Layout::Sequential);
    b.query(opcode::SET_FLAG, flag::HPB_RESET, 0, 0);
    let read = read_10(60, 8);
    let n = b.response(read, 8 * 4096).hpb.expect("a recommendation");
    let at = |index| SubRegion { region: 0, index };
    assert_eq!((n.operation, n.active_count), (HpbNotification::REGION_UPDATE, 2));
    let mut active = n.active;
    active.sort_by_key(|a| a.index);
    assert_eq!(active, [at(0), at(1)]);
    // With HPB 1.0 there is no HPB READ for them, so nothing is recommended.
    let mut b = v1();
    b.query(opcode::SET_FLAG, flag::HPB_RESET, 0, 0);
    assert_eq!(b.response(read, 8 * 4096).hpb, None);
}

/// Time of one command on an idle device without delays of the host.
fn time(b: &mut Bare, body: RequestBody, data: &[u8]) -> u64 {
    let since = b.now;
    assert_eq!(response(&b.ask(0, body, data).0).status, Status::Good);
    (b.now - since).0
}

/// Eight blocks in order lie on two pages of different dies and channels; eight scattered ones on eight pages. With
/// entries there is no map page to wait for. What entries cost is their check, and the time that they take on the link.
#[test]
fn latencies_are_sums_of_stages() {
    let c = config(V2);
    let (f, x, l) = (c.firmware.flash_op.0, c.flash.transfer_block.0, c.link.block.0);
    let around = c.link.request.0 + c.link.response.0;
    let map = f + c.flash.map_read.0 + c.flash.map_transfer.0;
    let extra = c.firmware.hpb_read_extra.0;
    assert!(
        4 * x > f && 4 * l < 4 * x,
        "the second page comes from the other channel after the first, and after its link time"
    );

    // In order: page 0 leaves the firmware after f, page 1 after 2 f. Each channel moves four blocks; the link takes
    // the blocks of page 1 when they are there, which is later than the end of page 0's.
    let mut b = bare(V2, Layout::Sequential);
    let list = entries(&mut b, 0, 0);
    let two_pages = around + 2 * f + c.flash.read.0 + 4 * x + 4 * l;
    assert!(f > 0 && f < 4 * l, "page 0 is still on the link when page 1 comes");
    let two_pages = two_pages.max(around + f + c.flash.read.0 + 4 * x + 8 * l);
    let plain = |lba| command(read_10(lba, 8), 8 * 4096);
    assert_eq!(time(&mut b, hpb_read(0, 8, entry(&list, 0), 0), &[]), two_pages + extra);
    assert_eq!(time(&mut b, plain(0), &[]), two_pages + map, "no entry: the map page first");
    assert_eq!(time(&mut b, plain(0), &[]), two_pages, "it is in SRAM now");

    // Scattered, with entries in the header: the same as READ with the map page in SRAM, but for the check of eight
    // entries and 72 bytes of header, rounded up to 96, on the link.
    let mut b = bare(V2, Layout::Random);
    let list = entries(&mut b, 0, 0);
    let with_header = time(&mut b, hpb_read(0, 8, entry(&list, 0), 0), &list[..64]);
    let missed = time(&mut b, plain(0), &[]);
    let translated = time(&mut b, plain(0), &[]);
    let on_link = |bytes: u64| (l * bytes).div_ceil(4096);
    let check = extra + 7 * c.firmware.make_entry.0;
    assert_eq!(ehs_bytes(64), 96);
    assert_eq!(with_header, translated + check + on_link(96));
    assert_eq!(missed, translated + map);
    // With a pre-request before it the read itself has no header, and an idle device has the entries already.
    let control = c.firmware.control.0;
    assert_eq!(time(&mut b, pre_request(0, 3, &list[..64]), &list[..64]), around + control + on_link(64));
    assert_eq!(time(&mut b, hpb_read(0, 8, entry(&list, 0), 3), &[]), translated + check);
}
