// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-outs of HPB are numbered, and flash names a number before it is used: no entry of before a power cut is
//! believed after it, however soon the power goes again.

use readpath_device::{Layout, MediaOp};
use readpath_kit::Ns;
use readpath_proto::typed::{Cdb, FLAG_FUA, HpbEntry, HpbNotification, ReplyBody, SubRegion};
use readpath_testkit::{Bare, device, read_10, write_10};

const MOVED: u32 = 5;

fn entries(b: &mut Bare) -> Vec<HpbEntry> {
    load(b).0
}

/// The entries of the first sub-region, and what the response tells.
fn load(b: &mut Bare) -> (Vec<HpbEntry>, Option<HpbNotification>) {
    let load = Cdb::HpbReadBuffer { buffer_id: 1, at: SubRegion { region: 0, index: 0 }, alloc: 512 };
    let (reply, data) = b.command(load, 512);
    let ReplyBody::Response(response) = reply.body else { panic!("no response: {reply:?}") };
    (data.chunks(8).map(|c| HpbEntry(c.try_into().expect("whole entries"))).collect(), response.hpb)
}

fn hpb_read(entries: &[HpbEntry]) -> Cdb {
    Cdb::HpbRead { lba: MOVED, blocks: 1, entry: entries[MOVED as usize], flags: 0, read_id: 0 }
}

/// Moves the block to another place in flash.
fn move_block(b: &mut Bare) {
    b.command(write_10(MOVED, 1, FLAG_FUA), 4096);
}

/// The place from which the moved block is read.
fn read(b: &mut Bare, cdb: Cdb) -> Vec<MediaOp> {
    b.command(cdb, 4096);
    b.media.clone()
}

#[test]
fn no_number_is_used_twice_if_the_power_goes_twice() {
    let mut config = device(1000);
    // Nothing reaches flash between the first power cut and the second.
    config.flash.program = Ns::from_ms(50);
    let mut b = Bare::filled(&config, 900, Layout::Sequential, 1);
    b.power_cycle();
    let early = b.entries(SubRegion::default());
    b.power_cycle();
    move_block(&mut b);
    let [early, late] = [early, entries(&mut b)].map(|entries| hpb_read(&entries));
    let right = read(&mut b, read_10(MOVED, 1));
    assert!(matches!(right[..], [MediaOp::ReadFlash { .. }]), "{right:?}");
    assert_eq!((read(&mut b, early), b.device.stats().hpb_hits), (right.clone(), 0));
    assert_eq!((read(&mut b, late), b.device.stats().hpb_hits), (right, 1));
}

/// After the last number the first comes again, under another key: entries of the first hand-out, whose block has moved
/// since, are not believed. The response of the very command that changed the key says that old entries are worthless.
#[test]
fn the_key_changes_after_the_last_number_and_the_host_is_told() {
    const BITS: u32 = 3;
    const NUMBERS: u32 = (1 << BITS) - 1;
    let mut b = Bare::new(&readpath_testkit::device(1000));
    b.device.limit_generations(BITS);
    b.device.precondition([(0, 0, 900)], Layout::Sequential, 1, |_, _| ()).expect("room");
    let mut first = entries(&mut b);
    for hand_out in 1..=3 * NUMBERS {
        move_block(&mut b);
        let (newest, told) = load(&mut b);
        assert_ne!(newest[0], first[0], "the same place, another number or another key");
        if hand_out % NUMBERS != 0 {
            assert_eq!(told, None, "hand-out {hand_out}");
            continue;
        }
        assert_eq!(told.map(|told| told.operation), Some(HpbNotification::RESET), "hand-out {hand_out}");
        let (right, hits) = (read(&mut b, read_10(MOVED, 1)), b.device.stats().hpb_hits);
        assert_eq!((read(&mut b, hpb_read(&first)), b.device.stats().hpb_hits), (right.clone(), hits));
        assert_eq!((read(&mut b, hpb_read(&newest)), b.device.stats().hpb_hits), (right, hits + 1));
        first = newest;
    }
}
