// SPDX-License-Identifier: MIT OR Apache-2.0
//! The prototype's device (HotStorage 2017) against a host that sends arbitrary commands: which are refused, which are
//! served as a READ, and what responses carry. Reads always return the data of the requested block.

use readpath_device::{DeviceConfig, GroupUpdate, HpbConfig, Layout, LuConfig, MediaOp, PrototypeConfig};
use readpath_kit::Ns;
use readpath_proto::groups::{GroupEntry, GroupHint, group_at};
use readpath_proto::query::{attribute, descriptor, flag, opcode, result};
use readpath_proto::typed::*;
use readpath_testkit::{Bare, HPB, command, device, give_room, response, write_10};

const BLOCKS: u32 = 1000;
const GROUP: u32 = 128;

fn config(update: GroupUpdate) -> DeviceConfig {
    let mut config = device(BLOCKS);
    let prototype = PrototypeConfig { update, group_entries: GROUP, listed_changes: 8 };
    config.hpb = Some(HpbConfig { prototype: Some(prototype), ..HPB });
    config
}

fn bare(update: GroupUpdate) -> Bare {
    Bare::filled(&config(update), BLOCKS, Layout::Random, 7)
}

fn sense(b: &mut Bare, cdb: Cdb, expected_bytes: u32) -> Option<Sense> {
    b.response(cdb, expected_bytes).sense
}

fn load(group: u32, alloc: u32) -> Cdb {
    Cdb::HpbReadBuffer { buffer_id: 1, at: group_at(group), alloc }
}

/// All entries of a group.
fn entries(b: &mut Bare, group: u32) -> Vec<GroupEntry> {
    let bytes = (BLOCKS - group * GROUP).min(GROUP) * 4;
    let (reply, data) = b.command(load(group, bytes), bytes);
    assert_eq!((response(&reply).status, data.len()), (Status::Good, bytes as usize));
    data.chunks(4).map(|c| GroupEntry(c.try_into().expect("4 bytes"))).collect()
}

fn hinted(lba: u32, blocks: u32, entry: GroupEntry) -> Cdb {
    Cdb::HintedRead { lba, blocks, hint: GroupHint { entry, seen: 0 }, flags: 0 }
}

/// Reads one block; its response, and how many hits it was. The data has to be that of the place where the map has the
/// block.
fn read(b: &mut Bare, lba: u32, entry: GroupEntry) -> (Response, u64) {
    let hits = b.device.stats().hpb_hits;
    let (reply, _) = b.command(hinted(lba, 1, entry), 4096);
    let from = b.media.clone();
    assert_eq!(response(&reply).status, Status::Good);
    let hits = b.device.stats().hpb_hits - hits;
    b.command(Cdb::Read { form: Form::Sixteen, lba: u64::from(lba), blocks: 1, flags: 0 }, 4096);
    assert_eq!(from, b.media, "a READ brings the same");
    assert!(matches!(from[..], [MediaOp::ReadFlash { .. } | MediaOp::ReadBuffer { .. }]));
    (response(&reply), hits)
}

#[test]
fn entries_that_are_worth_nothing_are_told_and_the_map_is_asked() {
    for update in [GroupUpdate::Host, GroupUpdate::Device] {
        let mut b = bare(update);
        let slices = b.device.array_slices();
        // Before anything was given out nothing is believed, and the group is named.
        let (told, hits) = read(&mut b, 300, GroupEntry::of(5));
        assert_eq!((told.groups.and_then(|n| n.dirty()), hits), (Some(300 / GROUP), 0));
        let list = entries(&mut b, 2);
        let (told, hits) = read(&mut b, 300, list[300 - 256]);
        assert_eq!((told.groups, hits), (None, 1));
        for entry in [GroupEntry::ZERO, GroupEntry::of(slices), GroupEntry::of(u32::MAX), list[9], GroupEntry::of(1)] {
            assert_eq!(read(&mut b, 300, entry).1, 0, "{entry:?}");
        }
        let s = b.device.stats();
        assert_eq!((s.hpb_reads, s.hpb_stale, s.hpb_zero, s.hpb_forged, s.hpb_foreign), (7, 1, 1, 2, 2));
        // A neighbour that is written: its group, or only the block itself.
        let told = b.response(write_10(301, 1, 0), 4096);
        let whole = update == GroupUpdate::Host;
        assert_eq!(told.groups.and_then(|n| n.dirty()), whole.then_some(2));
        assert_eq!(read(&mut b, 300, list[300 - 256]).1, u64::from(!whole));
        assert_eq!(read(&mut b, 301, list[301 - 256]).1, 0);
        entries(&mut b, 2);
        assert_eq!(read(&mut b, 300, list[300 - 256]).1, 1);
        // After a reset nothing is believed.
        b.device.hardware_reset(b.now);
        b.command(Cdb::TestUnitReady, 0);
        assert_eq!(read(&mut b, 300, list[300 - 256]).1, 0);
    }
}

#[test]
fn what_is_out_of_range_is_refused_as_an_hpb_read_would_be() {
    let (bad, beyond) = (Some(Sense::INVALID_FIELD), Some(Sense::LBA_OUT_OF_RANGE));
    let mut b = bare(GroupUpdate::Host);
    let entry = entries(&mut b, 0)[0];
    let ranges = [(BLOCKS, 1, beyond), (BLOCKS - 1, 2, beyond), (u32::MAX, u32::MAX, beyond), (0, 0, None)];
    for (lba, blocks, expected) in ranges {
        assert_eq!(sense(&mut b, hinted(lba, blocks, entry), blocks.wrapping_mul(4096)), expected, "{lba} {blocks}");
    }
    // A hint whose run would leave the array is none, and the read is served.
    let last = GroupEntry::of(b.device.array_slices() - 1);
    assert_eq!((sense(&mut b, hinted(0, 2, last), 8192), b.device.stats().hpb_forged), (None, 1));
    // More or less expected than there is.
    let told = b.response(hinted(0, 1, entry), 8192);
    assert_eq!(told.residual, Residual::Under(4096));
    let told = b.response(hinted(500, 2, GroupEntry::ZERO), 4096);
    assert_eq!((told.residual, told.groups), (Residual::Over(4096), None), "the count stands where the group would");
    // Groups: the last is short; beyond it there is none.
    let last_bytes = (BLOCKS % GROUP) * 4;
    assert_eq!(b.command(load(7, GROUP * 4), GROUP * 4).1.len(), last_bytes as usize);
    let other_buffer = Cdb::HpbReadBuffer { buffer_id: 2, at: group_at(0), alloc: 512 };
    for cdb in [load(8, 512), load(1 << 16, 512), load(u32::MAX, 512), other_buffer] {
        assert_eq!(sense(&mut b, cdb, 512), bad, "{cdb:?}");
    }
    let (reply, data) = b.command(load(1, 0), 0);
    assert_eq!((response(&reply).status, data.len()), (Status::Good, 0));
    // A partial load leaves the group dirty, whatever the limit.
    for (alloc, expected, bytes) in [(7, 7, 4), (GROUP * 4 - 1, GROUP * 4, GROUP * 4 - 4), (GROUP * 4, 100, 100)] {
        let (reply, data) = b.command(load(1, alloc), expected);
        assert_eq!((response(&reply).status, data.len()), (Status::Good, bytes as usize));
        assert_eq!(read(&mut b, GROUP, GroupEntry(*data.first_chunk().expect("4 bytes"))).1, 0);
    }
    // Commands of HPB 1.0 and 2.0 do not exist.
    let hpb_read = Cdb::HpbRead { lba: 0, blocks: 1, entry: HpbEntry::ZERO, flags: 0, read_id: 0 };
    for cdb in [hpb_read, Cdb::HpbInactivate { region: 0 }, Cdb::HpbInactivateAll] {
        assert_eq!(sense(&mut b, cdb, 0), Some(Sense::INVALID_OPCODE), "{cdb:?}");
    }
    // A unit attention comes first.
    b.device.hardware_reset(b.now);
    assert_eq!(sense(&mut b, hinted(0, 1, entry), 4096), Some(Sense::RESET_OCCURRED));
    assert_eq!(sense(&mut b, hinted(0, 1, entry), 4096), None);
}

#[test]
fn a_device_that_is_none_refuses_the_flag() {
    let mut plain = device(BLOCKS);
    (plain.hpb, plain.lus[0].hpb) = (None, false);
    for config in [device(BLOCKS), plain] {
        let mut b = Bare::new(&config);
        assert_eq!(sense(&mut b, hinted(0, 1, GroupEntry::of(9)), 4096), Some(Sense::INVALID_FIELD));
        assert_eq!(b.query(opcode::READ_ATTRIBUTE, attribute::GROUP_ENTRIES, 0, 0).0, result::INVALID_IDN);
    }
    // A unit without groups on a device that has some.
    let mut two = config(GroupUpdate::Host);
    two.lus.push(LuConfig {
        blocks: 64,
        hpb: false,
        max_active_regions: 0,
        pinned_start: 0,
        pinned_regions: 0,
        zones: None,
    });
    give_room(&mut two);
    let body = command(hinted(0, 1, GroupEntry::of(9)), 4096);
    assert_eq!(response(&Bare::new(&two).ask(1, body, &[]).0).sense, Some(Sense::INVALID_FIELD));
}

/// A host that knows HPB of JESD220-3 only finds none.
#[test]
fn descriptors_say_nothing_of_hpb() {
    let mut b = bare(GroupUpdate::Device);
    let device = b.query(opcode::READ_DESCRIPTOR, descriptor::DEVICE, 0, 0).2;
    assert_eq!(device[0x1F] & 0x80, 0, "bUFSFeaturesSupport");
    assert_eq!(b.query(opcode::READ_ATTRIBUTE, attribute::GROUP_ENTRIES, 0, 0).1, GROUP);
    assert_eq!(b.query(opcode::WRITE_ATTRIBUTE, attribute::GROUP_ENTRIES, 0, 1).0, result::NOT_WRITABLE);
    assert_eq!(b.query(opcode::SET_FLAG, flag::HPB_RESET, 0, 0).0, result::INVALID_IDN);
}

/// A long read takes several flash operations. An entry that is given out meanwhile may make its hint an old one, and a
/// change may make its address an old one: the rest of the read then uses the map.
#[test]
fn a_long_read_goes_on_with_its_hint_only_while_nothing_happens() {
    let write = write_10(120, 1, 0);
    for (other, all_by_hint) in
        [(None, true), (Some((load(3, GROUP * 4), GROUP * 4)), false), (Some((write, 4096)), false)]
    {
        let mut b = Bare::filled(&config(GroupUpdate::Host), BLOCKS, Layout::Sequential, 7);
        let first = entries(&mut b, 0)[0];
        let long = command(hinted(0, GROUP, first), GROUP * 4096);
        b.device.submit(b.now, &Request { lun: 0, tag: 1, body: long }, &[]);
        if let Some((cdb, bytes)) = other {
            b.device.submit(b.now, &Request { lun: 0, tag: 2, body: command(cdb, bytes) }, &[]);
        }
        let mut read = 0;
        while b.device.next_deadline() != Ns::NEVER {
            b.now = b.device.next_deadline();
            b.device.advance(b.now);
            while let Some(op) = b.device.poll_media() {
                read += u32::from(matches!(op, MediaOp::ReadFlash { tag: 1, .. } | MediaOp::ReadBuffer { tag: 1, .. }));
            }
            while let Some(reply) = b.device.poll_reply(b.now) {
                assert_eq!(response(&reply).status, Status::Good);
            }
        }
        let hits = b.device.stats().hpb_hits;
        assert_eq!((read, hits == u64::from(GROUP)), (GROUP, all_by_hint), "{other:?}: {hits} hits");
        assert_eq!(b.device.stats().hpb_foreign, 0);
    }
}

/// A block changes while a long read is under way, a response brings its new entry, and the next hint says that the
/// host has it: then it is on no list any more, but the hint of the long read is older.
#[test]
fn a_long_read_is_not_led_astray_by_what_another_hint_has_seen() {
    let mut device = config(GroupUpdate::Device);
    // All of that happens while the first pages are read: the end of each is a look at what has changed.
    (device.flash.read, device.flash.program) = (Ns::from_ms(1), Ns(1_000));
    let mut b = Bare::filled(&device, BLOCKS, Layout::Sequential, 7);
    let first = entries(&mut b, 0)[0];
    let send = |b: &mut Bare, tag, cdb, bytes| {
        let body = command(cdb, bytes);
        b.device.submit(b.now, &Request { lun: 0, tag, body }, &[]);
    };
    send(&mut b, 1, hinted(0, GROUP, first), GROUP * 4096);
    send(&mut b, 2, write_10(120, 1, FLAG_FUA), 4096);
    let (mut told, mut read_from) = (None, None);
    while b.device.next_deadline() != Ns::NEVER {
        b.now = b.device.next_deadline();
        b.device.advance(b.now);
        while let Some(op) = b.device.poll_media() {
            if let MediaOp::ReadFlash { tag: 1, index: 120, ppn } = op {
                read_from = Some(ppn.0);
            }
        }
        while let Some(reply) = b.device.poll_reply(b.now) {
            if let Some(notice) = response(&reply).groups {
                assert_eq!((reply.tag, read_from), (2, None), "the long read has not come to the block yet");
                told = notice.pair().map(|pair| (pair.lba, pair.entry.address()));
                let hint = GroupHint { entry: first, seen: notice.update() };
                send(&mut b, 3, Cdb::HintedRead { lba: 0, blocks: 1, hint, flags: 0 }, 4096);
            }
        }
    }
    let (lba, address) = told.expect("the response to the write brings the new entry");
    assert_ne!((lba, address), (120, first.address() + 120));
    assert_eq!((lba, Some(address)), (120, read_from));
}
