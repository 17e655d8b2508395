// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device's answers to HPB commands and to what belongs to them, right or wrong, without a host in between: reads
//! with entries, read and write buffers, flags, attributes, descriptors, and what a reset in the middle leaves.

use readpath_device::{Control, DeviceConfig, HpbConfig, Layout, LuConfig};
use readpath_kit::Ns;
use readpath_proto::query::{attribute, descriptor, flag, opcode, result};
use readpath_proto::scsi::{WLUN_DEVICE, WLUN_REPORT_LUNS};
use readpath_proto::typed::{
    Cdb, Command, FLAG_FUA, HpbEntry, HpbNotification, QueryRequest, ReplyBody, Request, RequestBody, Residual,
    Response, Sense, Status, SubRegion,
};
use readpath_testkit::{Bare, command, device, give_room, lu, read_10, response, write_10};

/// Blocks of the unit under test: three whole regions of four sub-regions of 64 blocks, and a region of three whole
/// sub-regions and one of 40 blocks.
const BLOCKS: u32 = 1000;
const NO_SENSE: Option<Sense> = None;

const fn at(region: u16, index: u16) -> SubRegion {
    SubRegion { region, index }
}

fn bare() -> Bare {
    let mut config = device(BLOCKS);
    config.lus.push(LuConfig { hpb: false, ..lu(100) });
    give_room(&mut config);
    Bare::filled(&config, 900, Layout::Sequential, 1)
}

fn load(at: SubRegion, alloc: u32) -> Cdb {
    Cdb::HpbReadBuffer { buffer_id: 1, at, alloc }
}

fn hpb_read(lba: u32, blocks: u8, entry: HpbEntry) -> Cdb {
    Cdb::HpbRead { lba, blocks, entry, flags: 0, read_id: 0 }
}

#[test]
fn read_buffer_answers() {
    let mut b = bare();
    // (CDB, EDTL, sense, bytes, residual)
    let good = |at, alloc, bytes: usize, edtl: u32| {
        let residual = if edtl as usize == bytes { Residual::None } else { Residual::Under(edtl - bytes as u32) };
        (load(at, alloc), edtl, NO_SENSE, bytes, residual)
    };
    let bad = |cdb| (cdb, 4096, Some(Sense::INVALID_FIELD), 0, Residual::Under(4096));
    for (cdb, edtl, sense, bytes, residual) in [
        good(at(0, 0), 512, 512, 512),
        good(at(0, 0), 512, 512, 4096),
        good(at(3, 2), 512, 512, 4096),
        good(at(3, 3), 320, 320, 4096),
        good(at(3, 3), 512, 320, 4096),
        good(at(0, 1), 0, 0, 4096),
        good(at(0, 1), 0xFF_FFFF, 512, 4096),
        good(at(0, 1), 20, 16, 4096),
        good(at(0, 1), 7, 0, 4096),
        (load(at(0, 0), 512), 100, NO_SENSE, 100, Residual::Over(412)),
        bad(Cdb::HpbReadBuffer { buffer_id: 0, at: at(0, 0), alloc: 512 }),
        bad(Cdb::HpbReadBuffer { buffer_id: 2, at: at(0, 0), alloc: 512 }),
        bad(load(at(4, 0), 512)),
        bad(load(at(0, 4), 512)),
        bad(load(at(u16::MAX, u16::MAX), 512)),
        bad(load(at(4, 0), 0)),
    ] {
        let (reply, data) = b.command(cdb, edtl);
        let r = response(&reply);
        assert_eq!((r.sense, data.len(), r.residual), (sense, bytes, residual), "{cdb:?}");
        assert_eq!(r.status == Status::Good, sense.is_none());
    }
    // The firmware works for entries that exist, not for those that are asked for.
    let mut took = |alloc| {
        let since = b.now;
        b.command(load(at(0, 1), alloc), 4096);
        b.now - since
    };
    assert_eq!(took(512), took(0xFF_FFFF));
    assert!(took(256) < took(512));
    // Entries are in LBA order; unmapped blocks have none. Blocks from 900 on were never written.
    let all = b.entries(at(3, 2));
    assert_eq!(
        all.iter().map(|&e| e != HpbEntry::ZERO).collect::<Vec<_>>(),
        (896..960).map(|n| n < 900).collect::<Vec<_>>()
    );
    assert_eq!(b.device.ops_in_use(), 0);
}

#[test]
fn hpb_read_answers_at_the_edges() {
    let mut b = bare();
    let entry = b.entries(at(0, 0))[5];
    for (lba, blocks, sense) in [
        (999, 1, NO_SENSE),
        (1000, 1, Some(Sense::LBA_OUT_OF_RANGE)),
        (999, 2, Some(Sense::LBA_OUT_OF_RANGE)),
        (u32::MAX, 255, Some(Sense::LBA_OUT_OF_RANGE)),
        (5, 0, NO_SENSE),
        (1000, 0, NO_SENSE),
        (5, 1, NO_SENSE),
        (5, 255, NO_SENSE),
    ] {
        let edtl = u32::from(blocks) * 4096;
        let with_entry = (b.response(hpb_read(lba, blocks, entry), edtl), b.moved());
        assert_eq!(with_entry.0.sense, sense, "{lba} {blocks}");
        let plain = b.response(read_10(lba, u32::from(blocks)), edtl);
        assert_eq!(with_entry, (plain, b.moved()), "as READ: {lba} {blocks}");
        let moved = if sense.is_some() { 0 } else { usize::from(blocks) };
        assert_eq!(b.media.len(), moved, "{lba} {blocks}");
    }
}

/// A command that expects less than it reads gets as much as it expects, with an entry as without.
#[test]
fn an_hpb_read_transfers_what_is_expected() {
    let mut b = bare();
    let entry = b.entries(at(0, 0))[5];
    for (blocks, edtl, residual) in [
        (2, 4096, Residual::Over(4096)),
        (1, 8192, Residual::Under(4096)),
        (1, 0, Residual::Over(4096)),
        (1, 4096, Residual::None),
    ] {
        let with_entry = b.response(hpb_read(5, blocks, entry), edtl);
        assert_eq!(with_entry, b.response(read_10(5, u32::from(blocks)), edtl), "{blocks} {edtl}");
        assert_eq!(with_entry.residual, residual, "{blocks} {edtl}");
    }
}

#[test]
fn a_device_without_hpb_knows_none_of_its_commands() {
    let mut config = DeviceConfig { hpb: None, ..device(BLOCKS) };
    config.lus[0].hpb = false;
    let mut b = Bare::new(&config);
    let mut unknown = [0; 16];
    (unknown[0], unknown[1]) = (0xFA, 4);
    for cdb in [
        hpb_read(0, 1, HpbEntry([1; 8])),
        load(at(0, 0), 512),
        Cdb::HpbInactivate { region: 0 },
        Cdb::HpbInactivateAll,
        Cdb::HpbPreRequest { lba: 0, read_id: 1, list_bytes: 8 },
        Cdb::Other(unknown),
    ] {
        assert_eq!(b.response(cdb, 0).sense, Some(Sense::INVALID_OPCODE), "{cdb:?}");
    }
}

#[test]
fn hpb_commands_need_an_hpb_unit() {
    let mut b = bare();
    let commands = [
        hpb_read(0, 1, HpbEntry([1; 8])),
        load(at(0, 0), 512),
        Cdb::HpbInactivate { region: 0 },
        Cdb::HpbInactivateAll,
        Cdb::HpbPreRequest { lba: 0, read_id: 1, list_bytes: 8 },
    ];
    for cdb in commands {
        for lun in [1, WLUN_DEVICE, WLUN_REPORT_LUNS] {
            let (reply, _) = b.ask(lun, command(cdb, 0), &[]);
            assert_eq!(response(&reply).sense, Some(Sense::INVALID_OPCODE), "{cdb:?} to unit {lun:02X}h");
        }
        let (reply, _) = b.ask(5, command(cdb, 0), &[]);
        assert_eq!(response(&reply).sense, Some(Sense::LUN_NOT_SUPPORTED), "{cdb:?}");
    }
}

/// SPC-4: an unknown operation code has another sense code than a wrong field of a known command.
#[test]
fn what_is_wrong_with_a_command() {
    let mut b = bare();
    let other = |code: u8, byte_1: u8, byte_2: u8| {
        let mut bytes = [0; 16];
        (bytes[0], bytes[1], bytes[2]) = (code, byte_1, byte_2);
        Cdb::Other(bytes)
    };
    for (cdb, sense) in [
        // INQUIRY of a page without EVPD; an unknown service action; a form of HPB WRITE BUFFER.
        (other(0x12, 0, 0x80), Sense::INVALID_FIELD),
        (other(0x9E, 0x1F, 0), Sense::INVALID_FIELD),
        (other(0xFA, 9, 0), Sense::INVALID_FIELD),
        (other(0xC0, 0, 0), Sense::INVALID_OPCODE),
        (other(0x07, 0, 0), Sense::INVALID_OPCODE),
    ] {
        assert_eq!(b.response(cdb, 0).sense, Some(sense), "{cdb:?}");
    }
}

#[test]
fn write_buffer_answers() {
    for control in [Control::Device, Control::Host] {
        write_buffer_answers_in(control);
    }
}

fn write_buffer_answers_in(control: Control) {
    let mut config = device(BLOCKS);
    config.hpb = config.hpb.map(|hpb| HpbConfig { control, ..hpb });
    // Region 3 is pinned: the host cannot have it dropped.
    (config.lus[0].pinned_start, config.lus[0].pinned_regions) = (3, 1);
    let mut b = Bare::filled(&config, 900, Layout::Sequential, 1);
    let entry = b.entries(at(3, 0))[5];
    let mut unknown = [0; 16];
    (unknown[0], unknown[1]) = (0xFA, 4);
    for (cdb, sense) in [
        (Cdb::HpbInactivate { region: 0 }, NO_SENSE),
        (Cdb::HpbInactivate { region: 3 }, NO_SENSE),
        (Cdb::HpbInactivate { region: 4 }, Some(Sense::INVALID_FIELD)),
        (Cdb::HpbInactivate { region: u16::MAX }, Some(Sense::INVALID_FIELD)),
        (Cdb::HpbInactivateAll, NO_SENSE),
        (Cdb::HpbPreRequest { lba: 0, read_id: 1, list_bytes: 8 }, Some(Sense::INVALID_FIELD)),
        (Cdb::Other(unknown), Some(Sense::INVALID_FIELD)),
    ] {
        assert_eq!(b.response(cdb, 0).sense, sense, "{control:?} {cdb:?}");
    }
    let hits = b.device.stats().hpb_hits;
    b.command(hpb_read(3 * 256 + 5, 1, entry), 4096);
    assert_eq!(b.device.stats().hpb_hits, hits + 1, "{control:?}: a pinned region stays active");
}

#[test]
fn whatever_the_entry_data_and_status_are_those_of_read() {
    let mut b = bare();
    let old = b.entries(at(0, 0));
    let all = b.entries(at(0, 0));
    let other = b.entries(at(1, 0));
    // Block 9 is written after its entry was handed out, and reaches flash at its new place.
    b.command(write_10(9, 1, FLAG_FUA), 4096);
    let mut flipped = all[5];
    flipped.0[2] ^= 0x10;
    let mut tag_flipped = all[5];
    tag_flipped.0[7] ^= 1;
    let elsewhere = 2 * 256 + 5;
    let counts = |b: &Bare| {
        let s = b.device.stats();
        [s.hpb_hits, s.hpb_zero, s.hpb_forged, s.hpb_stale, s.hpb_inactive]
    };
    for (what, lba, entry, verdict) in [
        ("good", 5, all[5], [1, 0, 0, 0, 0]),
        ("zero", 5, HpbEntry::ZERO, [0, 1, 0, 0, 0]),
        ("of another block", 5, all[6], [0, 0, 1, 0, 0]),
        ("of another sub-region", 5, other[5], [0, 0, 1, 0, 0]),
        ("other address", 5, flipped, [0, 0, 1, 0, 0]),
        ("other tag", 5, tag_flipped, [0, 0, 1, 0, 0]),
        ("byte order reversed", 5, HpbEntry(std::array::from_fn(|i| all[5].0[7 - i])), [0, 0, 1, 0, 0]),
        ("made up", 5, HpbEntry([0xA5; 8]), [0, 0, 1, 0, 0]),
        ("of the hand-out before", 5, old[5], [0, 0, 0, 1, 0]),
        ("of before a write", 9, all[9], [0, 0, 0, 1, 0]),
        ("for a region not handed out", elsewhere, all[5], [0, 0, 0, 0, 1]),
    ] {
        for blocks in [1, 8] {
            let before = counts(&b);
            let (reply, _) = b.command(hpb_read(lba, blocks, entry), u32::from(blocks) * 4096);
            let with_entry = (response(&reply), b.moved());
            let after = counts(&b);
            let counted: Vec<u64> = after.iter().zip(before).map(|(a, b)| a - b).collect();
            assert_eq!(counted, verdict, "an entry {what}");
            let plain = b.response(read_10(lba, u32::from(blocks)), u32::from(blocks) * 4096);
            assert_eq!(with_entry, (plain, b.moved()), "an entry {what}");
            assert_eq!(with_entry.1.len(), usize::from(blocks));
        }
    }
}

#[test]
fn flags_and_attributes() {
    let mut b = bare();
    let ok = |value: u32| (result::SUCCESS, value);
    let mut ask = |op, idn, value| {
        let (result, value, _) = b.query(op, idn, 0, value);
        (result, value)
    };
    assert_eq!(ask(opcode::READ_FLAG, flag::HPB_RESET, 0), ok(0));
    assert_eq!(ask(opcode::SET_FLAG, flag::HPB_RESET, 0).0, result::SUCCESS);
    assert_eq!(ask(opcode::READ_FLAG, flag::HPB_RESET, 0), ok(0), "done at once");
    assert_eq!(ask(opcode::CLEAR_FLAG, flag::HPB_RESET, 0).0, result::NOT_WRITABLE);
    assert_eq!(ask(opcode::TOGGLE_FLAG, flag::HPB_RESET, 0).0, result::NOT_WRITABLE);
    assert_eq!(ask(opcode::READ_FLAG, flag::HPB_EN, 0).0, result::INVALID_IDN, "fHPBEn came with HPB 2.0");
    assert_eq!(ask(opcode::READ_ATTRIBUTE, attribute::MAX_HPB_SINGLE_CMD, 0), ok(0));
    assert_eq!(ask(opcode::WRITE_ATTRIBUTE, attribute::MAX_HPB_SINGLE_CMD, 7).0, result::NOT_WRITABLE);
    assert_eq!(ask(opcode::READ_ATTRIBUTE, attribute::MAX_HPB_SINGLE_CMD, 0), ok(0));
}

#[test]
fn an_hpb_reset_by_the_host_makes_all_entries_worthless() {
    let mut b = bare();
    let entry = b.entries(at(0, 0))[5];
    assert_eq!(b.query(opcode::SET_FLAG, flag::HPB_RESET, 0, 0).0, result::SUCCESS);
    b.command(hpb_read(5, 1, entry), 4096);
    assert_eq!((b.device.stats().hpb_inactive, b.device.stats().hpb_hits), (1, 0));
    let entry = b.entries(at(0, 0))[5];
    b.command(hpb_read(5, 1, entry), 4096);
    assert_eq!(b.device.stats().hpb_hits, 1);
}

/// HPB READ BUFFER is no INQUIRY: it is refused while its unit has to report a reset, and takes that report.
#[test]
fn a_load_meets_a_unit_attention() {
    for loses_power in [false, true] {
        let mut b = bare();
        let old = b.entries(at(0, 0))[5];
        if loses_power {
            b.device.power_cut(b.now);
            while b.device.poll_media().is_some() {}
            b.now = b.device.recover(b.now + Ns::from_ms(1)).ready_at;
            // Entries are handed out again when more of their generations are named in flash.
            b.settle();
        } else {
            b.device.hardware_reset(b.now);
        }
        let loads = b.device.stats().read_buffers;
        // Another unit reports for itself.
        let (other, _) = b.ask(1, command(Cdb::TestUnitReady, 0), &[]);
        assert_eq!(response(&other).sense, Some(Sense::RESET_OCCURRED));
        let (reply, data) = b.command(load(at(0, 0), 512), 512);
        assert_eq!(response(&reply), Response::check(Sense::RESET_OCCURRED, 512));
        assert_eq!((data.len(), b.device.stats().read_buffers), (0, loads), "nothing is loaded");
        // Once is enough, and what comes then is good.
        let hits = b.device.stats().hpb_hits;
        let new = b.entries(at(0, 0))[5];
        for (entry, more) in [(old, 0), (new, 1)] {
            assert_eq!(b.response(hpb_read(5, 1, entry), 4096).status, Status::Good);
            assert_eq!(b.device.stats().hpb_hits - hits, more, "loses its power: {loses_power}");
        }
    }
}

/// No entry helps a read of a block that lies nowhere, so nothing is recommended for it, however often it is read.
#[test]
fn blocks_that_were_never_written_are_not_worth_a_load() {
    for (first, recommended) in [(0, true), (900, false)] {
        let mut b = bare();
        b.query(opcode::SET_FLAG, flag::HPB_RESET, 0, 0);
        b.entries(at(0, 0));
        for i in 0..2_000u32 {
            assert_eq!(b.response(read_10(first + i % 64, 1), 4096).status, Status::Good);
        }
        assert_eq!(b.device.stats().recommended_active > 0, recommended, "from block {first} on");
    }
}

/// Whether a block lies anywhere is known when it has been translated, not before: a response between the arrival of a
/// read and that of its map page recommends nothing, and the read's own does.
#[test]
fn nothing_is_recommended_before_translation() {
    for (block, blocks, expected) in [
        (5, 1, Some(at(0, 0))),
        (905, 1, None),
        // Nothing counts but single blocks.
        (5, 2, None),
    ] {
        let mut b = bare();
        b.query(opcode::SET_FLAG, flag::HPB_RESET, 0, 0);
        let read = Command { expected_bytes: 4096 * blocks, cdb: read_10(block, blocks) };
        b.device.submit(b.now, &Request { lun: 0, tag: 1, body: RequestBody::Command(read) }, &[]);
        let (between, _) = b.command(Cdb::TestUnitReady, 0);
        assert_eq!((between.tag, response(&between).hpb, b.device.stats().map_loads), (0, None, 1), "block {block}");
        let own = loop {
            b.now = b.device.next_deadline();
            b.device.advance(b.now);
            if let Some(reply) = b.device.poll_reply(b.now) {
                break reply;
            }
        };
        let activated = response(&own).hpb.map(|n| (n.active_count, n.active[0]));
        assert_eq!(activated, expected.map(|at| (1, at)), "block {block}");
    }
}

/// SET FLAG fHPBReset at every moment of an HPB READ BUFFER: both are answered, and what was given out before is not
/// believed.
#[test]
fn an_hpb_reset_in_the_middle_of_a_load() {
    let (mut believed, mut worthless) = (0, 0);
    for delay in (0..400).step_by(5) {
        let mut b = bare();
        let old = b.entries(at(0, 0))[5];
        let body = |cdb| command(cdb, 512);
        b.device.submit(b.now, &Request { lun: 0, tag: 1, body: body(load(at(1, 0), 512)) }, &[]);
        b.device.submit(b.now, &Request { lun: 0, tag: 2, body: body(load(at(0, 0), 512)) }, &[]);
        let reset_at = b.now + Ns::from_us(delay);
        let (mut loaded, mut was_reset) = (Vec::new(), false);
        let mut submitted = false;
        loop {
            if !submitted && b.device.next_deadline() > reset_at {
                submitted = true;
                let (opcode, idn) = (opcode::SET_FLAG, flag::HPB_RESET);
                let query = QueryRequest { opcode, idn, index: 0, selector: 0, length: 0, value: 0 };
                b.device.submit(reset_at, &Request { lun: 0, tag: 3, body: RequestBody::Query(query) }, &[]);
            }
            let now = b.device.next_deadline();
            if now == Ns::NEVER {
                break;
            }
            b.now = now;
            b.device.advance(now);
            while let Some(reply) = b.device.poll_reply(now) {
                match reply.body {
                    ReplyBody::Query(q) => was_reset = q.result == result::SUCCESS,
                    _ => {
                        assert_eq!(response(&reply), Response { hpb: response(&reply).hpb, ..Response::GOOD });
                        let data = b.device.data_in(reply.tag);
                        assert_eq!(data.len(), 512, "a whole load");
                        loaded.push((reply.tag, HpbEntry(data[40..48].try_into().expect("8 bytes"))));
                    }
                }
            }
        }
        assert!(was_reset && loaded.len() == 2, "at {delay} us: {loaded:?}");
        let old_hits = b.device.stats().hpb_hits;
        let good = |b: &mut Bare, entry| {
            assert_eq!(b.response(hpb_read(5, 1, entry), 4096).status, Status::Good);
            b.moved()
        };
        // Only entries made after the reset are believed; the data is the same in both cases.
        let from = good(&mut b, old);
        assert_eq!(b.device.stats().hpb_hits, old_hits, "given out before the reset");
        let (_, new) = *loaded.iter().find(|(tag, _)| *tag == 2).expect("a load");
        assert_eq!(good(&mut b, new), from);
        let hit = b.device.stats().hpb_hits - old_hits;
        (believed, worthless) = (believed + hit, worthless + 1 - hit);
        // Written since, neither is good.
        b.command(write_10(5, 1, FLAG_FUA), 4096);
        let [after_old, after_new] = [old, new].map(|entry| good(&mut b, entry));
        assert_eq!(b.device.stats().hpb_hits - old_hits, hit);
        assert!(after_old == after_new && after_old != from, "the new place");
        // The host can continue.
        let again = b.entries(at(0, 0))[5];
        assert_eq!(good(&mut b, again), after_new);
        assert_eq!(b.device.stats().hpb_hits - old_hits, hit + 1);
    }
    assert!(believed > 0 && worthless > 0, "before and after the hand-out: {believed}, {worthless}");
}

#[test]
fn the_loss_of_hpb_state_is_told_until_the_host_reacts_but_not_for_ever() {
    let reset = Some(HpbNotification { operation: HpbNotification::RESET, ..HpbNotification::default() });
    for loads_after in [1, 100] {
        let mut b = bare();
        b.query(opcode::SET_FLAG, flag::HPB_RESET, 0, 0);
        b.device.hardware_reset(b.now);
        let (reply, _) = b.command(Cdb::TestUnitReady, 0);
        let r = response(&reply);
        assert_eq!((r.sense, r.hpb), (Some(Sense::RESET_OCCURRED), None), "only GOOD carries notifications");
        let mut told = 0;
        for i in 0..10 {
            let cdb = if i == loads_after { load(at(0, 0), 512) } else { Cdb::TestUnitReady };
            let n = b.response(cdb, 512).hpb;
            assert!(n.is_none() || n == reset, "{n:?}");
            told += u32::from(n.is_some());
        }
        assert_eq!(told, if loads_after == 1 { 1 } else { 4 });
    }
    // A host that never asked for HPB gets no notification.
    let mut b = bare();
    b.device.hardware_reset(b.now);
    for _ in 0..3 {
        assert_eq!(b.response(Cdb::TestUnitReady, 0).hpb, None);
    }
}

#[test]
fn descriptors_say_what_a_host_needs_to_know() {
    let mut config = device(BLOCKS);
    config.lus[0] = LuConfig { pinned_start: 2, pinned_regions: 2, ..lu(BLOCKS) };
    config.lus.push(LuConfig { hpb: false, ..lu(100) });
    give_room(&mut config);
    let mut b = Bare::new(&config);
    let mut read = |idn, index| {
        let (code, _, data) = b.query(opcode::READ_DESCRIPTOR, idn, index, 0);
        assert_eq!(code, result::SUCCESS);
        data
    };
    let device = read(descriptor::DEVICE, 0);
    assert_eq!((device.len(), device[0], device[6]), (0x59, 0x59, 2), "length and units");
    assert!(u16::from_be_bytes([device[0x10], device[0x11]]) >= 0x0310, "wSpecVersion");
    assert!(![0x012C, 0x01CE, 0x01AD, 0x0198].contains(&u16::from_be_bytes([device[0x18], device[0x19]])));
    assert_eq!((device[0x1F] & 0x80, device[0x52] & 0x80), (0x80, 0x80), "both feature words");
    assert_eq!(device[0x40..0x43], [0x01, 0x00, 0x01], "HPB 1.0, device control mode");
    let geometry = read(descriptor::GEOMETRY, 0);
    assert_eq!(geometry.len(), 0x57);
    assert_eq!(geometry[0x48..0x4D], [11, 1, 9, 0, 64], "region, units, sub-region, most active regions");
    let unit = read(descriptor::UNIT, 0);
    assert_eq!((unit.len(), unit[2], unit[3], unit[0x0A]), (0x2D, 0, 2, 12), "an enabled HPB unit of 4096-byte blocks");
    assert_eq!(unit[0x0B..0x13], u64::from(BLOCKS).to_be_bytes());
    assert_eq!(unit[0x23..0x29], [0, 64, 0, 2, 0, 2], "most active regions, first pinned, pinned");
    let plain = read(descriptor::UNIT, 1);
    assert_eq!((plain.len(), plain[2], plain[3]), (0x2D, 1, 1));
    assert_eq!(plain[0x23..0x29], [0; 6]);
    config.hpb = None;
    config.lus[0].hpb = false;
    let mut b = Bare::new(&config);
    let device = b.query(opcode::READ_DESCRIPTOR, descriptor::DEVICE, 0, 0).2;
    assert_eq!((device[0x1F] & 0x80, device[0x52] & 0x80, &device[0x40..0x43]), (0, 0, &[0, 0, 0][..]));
    assert_eq!(b.query(opcode::READ_FLAG, flag::HPB_RESET, 0, 0).0, result::INVALID_IDN);
}

/// The configuration descriptor has the eight units that the device was made with, and cannot be changed.
#[test]
fn a_configuration_says_how_the_device_is_provisioned() {
    let mut config = device(3 * 1024 + 1);
    config.lus.push(LuConfig { hpb: false, ..lu(100) });
    config.hpb = config.hpb.map(|hpb| HpbConfig { control: Control::Host, ..hpb });
    (config.lus[0].pinned_start, config.lus[0].pinned_regions, config.lus[0].max_active_regions) = (1, 2, 5);
    give_room(&mut config);
    let mut b = Bare::new(&config);
    let (code, _, bytes) = b.query(opcode::READ_DESCRIPTOR, descriptor::CONFIGURATION, 0, 0);
    assert_eq!((code, bytes.len(), &bytes[..3]), (result::SUCCESS, 230, &[0xE6, 0x01, 0][..]));
    // bHPBControl: the host's. No region of RPMB but the first, no WriteBooster.
    assert_eq!(bytes[0x0B..0x16], [0; 11]);
    let unit = |lun: usize| &bytes[0x16 + lun * 0x1A..][..0x1A];
    // Four units of 4 MiB; blocks of 4 KiB; thin, reads zeros; five active regions at most, two pinned from 1 on.
    let first: [&[u8]; 3] = [&[2, 0, 0, 0, 0, 0, 0, 4, 0, 0x0C, 3], &[0; 5], &[0, 5, 0, 1, 0, 2, 0, 0, 0, 0]];
    assert_eq!(unit(0), first.concat());
    assert_eq!(unit(1), [&[1, 0, 0, 0, 0, 0, 0, 1, 0, 0x0C, 3][..], &[0; 15]].concat());
    for lun in 2..8 {
        assert_eq!((unit(lun)[0], &unit(lun)[4..8]), (0, &[0; 4][..]), "unit {lun} is not there");
    }
    for index in [1, 3, 0xFF] {
        assert_eq!(b.query(opcode::READ_DESCRIPTOR, descriptor::CONFIGURATION, index, 0).0, result::INVALID_INDEX);
    }
    assert_eq!(b.query(opcode::WRITE_DESCRIPTOR, descriptor::CONFIGURATION, 0, 0).0, result::NOT_WRITABLE);
    let mut device_control = Bare::new(&device(BLOCKS));
    assert_eq!(device_control.query(opcode::READ_DESCRIPTOR, descriptor::CONFIGURATION, 0, 0).2[0x0B], 1);
}
