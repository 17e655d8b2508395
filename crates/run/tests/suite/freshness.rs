// SPDX-License-Identifier: MIT OR Apache-2.0
//! What makes an entry of HPB stale beside a write, and what a check of a bad entry costs: garbage collection moves its
//! block, TRIM forgets it, and an entry that is not of the newest hand-out is checked a second time.

use readpath_device::{CheckOn, DeviceConfig, Layout, MediaOp};
use readpath_kit::{Ns, Prng};
use readpath_proto::scsi::encode_unmap;
use readpath_proto::typed::{Cdb, Command, Form, HpbEntry, Request, RequestBody, SubRegion};
use readpath_testkit::Bare;

const BLOCKS: u32 = 1000;
/// Blocks of a sub-region.
const HANDED: u32 = 64;

fn start(config: &DeviceConfig) -> Bare {
    let mut b = Bare::new(config);
    b.device.precondition([(0, 0, BLOCKS)], Layout::Random, 1, |_, _| ()).expect("room");
    b
}

/// The entries of the first sub-region.
fn entries(b: &mut Bare) -> Vec<HpbEntry> {
    let load = Cdb::HpbReadBuffer { buffer_id: 1, at: SubRegion { region: 0, index: 0 }, alloc: HANDED * 8 };
    let (_, data) = b.command(load, HANDED * 8);
    data.chunks(8).map(|c| HpbEntry(c.try_into().expect("whole entries"))).collect()
}

fn write(b: &mut Bare, block: u32) {
    b.command(Cdb::Write { form: Form::Ten, lba: u64::from(block), blocks: 1, flags: 0 }, 4096);
}

fn plain(block: u32) -> Cdb {
    Cdb::Read { form: Form::Ten, lba: u64::from(block), blocks: 1, flags: 0 }
}

fn hinted(block: u32, entry: HpbEntry) -> Cdb {
    Cdb::HpbRead { lba: block, blocks: 1, entry, flags: 0, read_id: 0 }
}

/// The place from which a read takes its block.
fn place(b: &mut Bare, cdb: Cdb) -> MediaOp {
    b.command(cdb, 4096);
    let taken = |op: &&MediaOp| {
        matches!(op, MediaOp::ReadFlash { .. } | MediaOp::ReadBuffer { .. } | MediaOp::ReadZeros { .. })
    };
    *b.media.iter().find(taken).expect("a read takes its block from somewhere")
}

/// Lets everything happen that is under way.
fn rest(b: &mut Bare) {
    while b.device.next_deadline() != Ns::NEVER {
        b.now = b.device.next_deadline();
        b.device.advance(b.now);
        while b.device.poll_media().is_some() || b.device.poll_reply(b.now).is_some() {}
    }
}

#[test]
fn an_entry_is_stale_when_garbage_collection_has_moved_its_block() {
    let mut config = readpath_testkit::device(BLOCKS);
    readpath_testkit::give_little_room(&mut config, 2);
    let mut b = start(&config);
    let before: Vec<MediaOp> = (0..HANDED).map(|block| place(&mut b, plain(block))).collect();
    let entries = entries(&mut b);
    // The host writes everything else.
    let rng = &mut Prng::new(1);
    for _ in 0..4 * BLOCKS {
        write(&mut b, HANDED + rng.below(u64::from(BLOCKS - HANDED)) as u32);
    }
    rest(&mut b);
    let (mut moved, mut stayed) = (0, 0);
    for (block, (&entry, &before)) in (0..).zip(entries.iter().zip(&before)) {
        let now = place(&mut b, plain(block));
        let (hits, stale) = (b.device.stats().hpb_hits, b.device.stats().hpb_stale);
        assert_eq!(place(&mut b, hinted(block, entry)), now, "block {block}");
        let stats = b.device.stats();
        let judged = (stats.hpb_hits - hits, stats.hpb_stale - stale);
        assert_eq!(judged, if now == before { (1, 0) } else { (0, 1) }, "block {block}");
        (moved, stayed) = (moved + judged.1, stayed + judged.0);
    }
    assert!(moved > 10, "{moved} moved, {stayed} stayed");
}

fn unmap(b: &mut Bare, range: (u64, u32)) {
    let mut list = Vec::new();
    encode_unmap(&[range], &mut list);
    let cdb = Cdb::Unmap { list_bytes: list.len() as u16 };
    b.ask(0, RequestBody::Command(Command { expected_bytes: list.len() as u32, cdb }), &list);
}

#[test]
fn an_entry_is_stale_when_its_block_was_trimmed() {
    let mut b = start(&readpath_testkit::device(BLOCKS));
    let entries = entries(&mut b);
    unmap(&mut b, (9, 2));
    for (block, is_trimmed) in [(8, false), (9, true), (10, true), (11, false)] {
        let (hits, stale) = (b.device.stats().hpb_hits, b.device.stats().hpb_stale);
        let from = place(&mut b, hinted(block, entries[block as usize]));
        assert_eq!(matches!(from, MediaOp::ReadZeros { .. }), is_trimmed, "block {block}: {from:?}");
        let stats = b.device.stats();
        assert_eq!((stats.hpb_hits - hits, stats.hpb_stale - stale), if is_trimmed { (0, 1) } else { (1, 0) });
    }
}

/// How long two commands take together: an HPB READ of block 5 with `entry`, and one of block 6 with a good entry,
/// which is sent `after` the first.
fn together(b: &mut Bare, entry: HpbEntry, good: HpbEntry, after: Ns) -> Ns {
    let begun = b.now;
    for (tag, cdb, after) in [(1, hinted(5, entry), Ns::ZERO), (2, hinted(6, good), after)] {
        let at = begun + after;
        while b.device.next_deadline() <= at {
            b.device.advance(b.device.next_deadline());
        }
        let body = RequestBody::Command(Command { expected_bytes: 4096, cdb });
        b.device.submit(at, &Request { lun: 0, tag, body }, &[]);
    }
    rest(b);
    b.now - begun
}

/// The engine that checks is busy for twice as long, and the next request waits for that.
#[test]
fn an_entry_that_is_not_of_the_newest_hand_out_is_checked_twice() {
    let check = Ns::from_us(50);
    // The engine begins the second check when the first is over, and the next read finds 40 us of it left.
    for (check_on, after, more) in
        [(CheckOn::Firmware, Ns::from_us(40), check), (CheckOn::Engine, Ns::from_us(60), Ns::from_us(40))]
    {
        let mut config = readpath_testkit::device(BLOCKS);
        let protected = &mut config.hpb.as_mut().expect("HPB").entries;
        (protected.check_on, protected.check) = (check_on, check);
        let mut b = start(&config);
        entries(&mut b);
        let held = entries(&mut b);
        // A change is seen without a second check.
        write(&mut b, 5);
        let once = together(&mut b, held[5], held[6], after);
        let counted = |b: &Bare| {
            let stats = b.device.stats();
            (stats.hpb_stale, stats.hpb_forged, stats.hpb_hits)
        };
        assert_eq!(counted(&b), (1, 0, 1));
        let newest = entries(&mut b);
        for (entry, expected) in [(HpbEntry([0xA5; 8]), (1, 1, 2)), (held[5], (2, 1, 3))] {
            let twice = together(&mut b, entry, newest[6], after);
            assert_eq!((twice - once, counted(&b)), (more, expected), "{check_on:?}");
        }
    }
}
