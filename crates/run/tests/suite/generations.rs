// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-outs of HPB are numbered, and flash names a number before it is used: no entry of before a power cut is
//! believed after it, however soon the power goes again.

use readpath_device::{Layout, MediaOp};
use readpath_kit::Ns;
use readpath_proto::typed::{Cdb, FLAG_FUA, Form, HpbEntry, SubRegion};
use readpath_testkit::Bare;

const MOVED: u32 = 5;

fn entries(b: &mut Bare) -> Vec<HpbEntry> {
    let load = Cdb::HpbReadBuffer { buffer_id: 1, at: SubRegion { region: 0, index: 0 }, alloc: 512 };
    let (_, data) = b.command(load, 512);
    data.chunks(8).map(|c| HpbEntry(c.try_into().expect("whole entries"))).collect()
}

/// The power goes and comes back.
fn cycle(b: &mut Bare) {
    b.device.power_cut(b.now);
    b.now = b.device.recover(b.now).ready_at;
    // The first command hears of it.
    b.command(Cdb::TestUnitReady, 0);
}

/// Where a read of the block that moved comes from.
fn read(b: &mut Bare, cdb: Cdb) -> Vec<MediaOp> {
    b.command(cdb, 4096);
    b.media.clone()
}

#[test]
fn no_number_is_used_twice_if_the_power_goes_twice() {
    let mut config = readpath_testkit::device(1000);
    // Nothing reaches flash between the first power cut and the second.
    config.flash.program = Ns::from_ms(50);
    let mut b = Bare::new(&config);
    b.device.precondition(0, 0, 900, Layout::Sequential, 1, |_, _| ()).expect("room");
    cycle(&mut b);
    let early = entries(&mut b);
    cycle(&mut b);
    b.command(Cdb::Write { form: Form::Ten, lba: u64::from(MOVED), blocks: 1, flags: FLAG_FUA }, 4096);
    let late = entries(&mut b);
    let [early, late] = [early, late].map(|entries| Cdb::HpbRead {
        lba: MOVED,
        blocks: 1,
        entry: entries[MOVED as usize],
        flags: 0,
        read_id: 0,
    });
    let right = read(&mut b, Cdb::Read { form: Form::Ten, lba: u64::from(MOVED), blocks: 1, flags: 0 });
    assert!(matches!(right[..], [MediaOp::ReadFlash { .. }]), "{right:?}");
    assert_eq!((read(&mut b, early), b.device.stats().hpb_hits), (right.clone(), 0));
    assert_eq!((read(&mut b, late), b.device.stats().hpb_hits), (right, 1));
}
