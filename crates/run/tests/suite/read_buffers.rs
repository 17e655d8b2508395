// SPDX-License-Identifier: MIT OR Apache-2.0
//! HPB READ BUFFERs at the same time: as many are served as the device has buffers, the others wait in order of
//! arrival, and no buffer is lost to commands that are aborted or forgotten.

use readpath_device::{DeviceConfig, HpbConfig, Layout, LuConfig, SramTable};
use readpath_kit::Ns;
use readpath_proto::typed::{Cdb, Request, RequestBody, SubRegion, TaskRequest};
use readpath_testkit::{Bare, HPB, command, device, lu};

/// Bytes of the entries of a sub-region.
const BYTES: u32 = 512;

fn config(read_buffers: u8) -> DeviceConfig {
    let mut config = device(4096);
    config.hpb = Some(HpbConfig { read_buffers, ..HPB });
    config
}

fn bare(config: &DeviceConfig) -> Bare {
    Bare::filled(config, 4096, Layout::Sequential, 1)
}

/// Sends HPB READ BUFFER of as many sub-regions, with tags from 0, all at once.
fn load(bare: &mut Bare, tags: std::ops::Range<u8>) {
    for tag in tags {
        let at = SubRegion { region: 0, index: u16::from(tag % 4) };
        let cdb = Cdb::HpbReadBuffer { buffer_id: 1, at, alloc: BYTES };
        let body = command(cdb, BYTES);
        bare.device.submit(bare.now, &Request { lun: 0, tag, body }, &[]);
    }
}

/// All replies that come, as tag and time.
fn replies(bare: &mut Bare) -> Vec<(u8, Ns)> {
    let replies = bare.settle().into_iter().map(|(at, reply)| (reply.tag, at)).collect();
    assert_eq!(bare.device.ops_in_use(), 0);
    replies
}

#[test]
fn one_buffer_serves_one_command_after_the_other() {
    let one = config(1);
    let mut b = bare(&one);
    load(&mut b, 0..6);
    let served = replies(&mut b);
    let tags: Vec<u8> = served.iter().map(|(tag, _)| *tag).collect();
    assert_eq!(tags, [0, 1, 2, 3, 4, 5], "in order of arrival");
    // Map page, entries, link: nothing of one overlaps anything of the next.
    let (f, t, l) = (&one.firmware, &one.flash, &one.link);
    let entries = f.control.0 + u64::from(BYTES / 8) * f.make_entry.0;
    let sent = (l.block.0 * u64::from(BYTES)).div_ceil(4096) + l.response.0;
    let each = f.flash_op.0 + t.map_read.0 + t.map_transfer.0 + entries + sent;
    for pair in served.windows(2) {
        assert_eq!(pair[1].1.0 - pair[0].1.0, each);
    }
    let end = |buffers| {
        let mut b = bare(&config(buffers));
        load(&mut b, 0..6);
        replies(&mut b).last().expect("six replies").1
    };
    assert_eq!(end(1), served[5].1);
    assert!(end(2) < end(1), "{} {}", end(2), end(1));
    assert_eq!(end(6), end(64), "more than are asked for at once change nothing");
}

#[test]
fn aborted_commands_leave_their_buffer_and_their_place_in_line() {
    let mut b = bare(&config(1));
    for round in 0..200 {
        load(&mut b, 0..4);
        // The first holds the buffer by now, or is about to; the second waits.
        b.now += Ns(round * 400);
        b.device.advance(b.now);
        let task = |task_tag| RequestBody::Task(TaskRequest { function: 0x01, lun: 0, task_tag });
        b.device.submit(b.now, &Request { lun: 0, tag: 10, body: task(0) }, &[]);
        b.device.submit(b.now, &Request { lun: 0, tag: 11, body: task(1) }, &[]);
        let mut tags: Vec<u8> = replies(&mut b).iter().map(|(tag, _)| *tag).collect();
        tags.sort_unstable();
        // Commands that ended before the abort have their replies.
        tags.retain(|tag| !(0..2).contains(tag));
        assert_eq!(tags, [2, 3, 10, 11], "round {round}");
    }
}

#[test]
fn a_reset_frees_all_buffers() {
    for buffers in [1, 2] {
        let mut b = bare(&config(buffers));
        for round in 0..50 {
            load(&mut b, 1..7);
            b.now += Ns(round * 3_000);
            b.device.advance(b.now);
            b.device.hardware_reset(b.now);
            assert_eq!(replies(&mut b), [], "nobody is answered after a reset");
            // Takes the unit attention.
            b.command(Cdb::TestUnitReady, 0);
        }
        load(&mut b, 1..7);
        assert_eq!(replies(&mut b).len(), 6);
    }
}

/// What one HPB READ BUFFER takes: map pages of 4 bytes an entry, and entries of 8.
#[test]
fn the_bytes_of_a_buffer() {
    let mut c = config(3);
    let entries = |config: &mut DeviceConfig, exponent| {
        config.hpb = Some(HpbConfig { sub_region_size: exponent, region_size: exponent, ..config.hpb.expect("HPB") });
    };
    assert_eq!(c.read_buffer_bytes(), 4096 + 512, "64 entries in one map page of 1024");
    entries(&mut c, 15);
    assert_eq!(c.read_buffer_bytes(), 16_384 + 32_768, "4096 entries in four");
    c.map_page_bytes = 16_384;
    assert_eq!(c.read_buffer_bytes(), 16_384 + 32_768, "or in one");
    // A unit that begins within a map page: its sub-regions reach over two.
    c.lus = vec![LuConfig { hpb: false, ..lu(100) }, lu(8192)];
    assert_eq!(c.read_buffer_bytes(), 2 * 16_384 + 32_768);
    c.lus[0].blocks = 8192;
    assert_eq!(c.read_buffer_bytes(), 16_384 + 32_768);
    let sram = bare(&config(3)).device.sram();
    let of = |table| sram.iter().find(|(t, _)| *t == table).expect("a table").1;
    assert_eq!((of(SramTable::HpbReadBuffers), of(SramTable::ReadData)), (3 * (4096 + 512), 32 * 4096));
    for wrong in [0, 65] {
        let e = config(wrong).check().expect_err("no such device");
        assert_eq!((e.field, e.message), ("hpb.read_buffers", format!("is {wrong}; it must be 1 to 64")));
    }
}
