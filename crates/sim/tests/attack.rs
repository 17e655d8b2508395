// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host that forges, replays, swaps or changes entries never obtains anything but what an ordinary READ would give it; how
//! often a guess succeeds is as stated; and without protection the same attacks succeed, so these tests can fail.

mod common;

use readpath_device::{CheckOn, DeviceConfig, EntryConfig, Protection};
use readpath_kit::Ns;
use readpath_proto::typed::HpbEntry;
use readpath_sim::attack::{Attack, BLOCKS, Rogue, Tally, attack, device};

fn times() -> DeviceConfig {
    common::device(64)
}

fn entries(protection: Protection) -> EntryConfig {
    EntryConfig { protection, ..EntryConfig::DEFAULT }
}

fn tag(tag_bits: u8) -> EntryConfig {
    EntryConfig { tag_bits, ..EntryConfig::DEFAULT }
}

fn try_out(kind: Attack, entries: EntryConfig, forgeries: u64) -> Tally {
    attack(kind, &times(), entries, forgeries, 7).expect("a possible device")
}

/// On the firmware core and on an engine, where an entry is judged some time after it has come.
fn each_way(protection: Protection) -> [EntryConfig; 2] {
    let engine = EntryConfig { check_on: CheckOn::Engine, check: Ns(400), make: Ns(30), ..entries(protection) };
    [entries(protection), engine]
}

#[test]
fn no_forged_entry_is_ever_believed() {
    for protection in [Protection::Mac, Protection::Encrypted] {
        let tally = try_out(Attack::Forge, entries(protection), 2_000_000);
        assert_eq!((tally.tries, tally.believed, tally.leaked), (2_000_000, 0, 0), "{protection:?}");
        assert_eq!(tally.device.hpb_forged, 2_000_000);
    }
}

/// Of n guesses of a tag of b bits, n / 2^b are right, within four standard deviations of a binomial distribution: a seed in
/// 16,000 would fail.
#[test]
fn guesses_succeed_as_often_as_stated() {
    for (bits, guesses) in [(8u8, 400_000u64), (12, 800_000), (16, 4_000_000)] {
        let tally = try_out(Attack::Forge, tag(bits), guesses);
        let p = 1.0 / f64::from(1u32 << bits);
        let (mean, deviation) = (guesses as f64 * p, (guesses as f64 * p * (1.0 - p)).sqrt());
        let off = (tally.believed as f64 - mean) / deviation;
        assert!(off.abs() < 4.0, "{bits} bits: {} of {guesses} believed, expected {mean:.0}", tally.believed);
        assert!(tally.leaked > 0, "{bits} bits: what was believed gave other data away");
        assert_eq!(tally.believed + tally.device.hpb_forged, guesses);
    }
}

#[test]
fn neither_old_nor_swapped_nor_changed_nor_foreign_entries_give_anything_away() {
    for protection in [Protection::Mac, Protection::Encrypted] {
        for entries in each_way(protection) {
            for kind in [Attack::Replay, Attack::Swap, Attack::Foreigner, Attack::Flip] {
                let tally = try_out(kind, entries, 0);
                assert!(tally.tries >= u64::from(2 * BLOCKS), "{tally:?}");
                assert_eq!(tally.leaked, 0, "{kind:?} {entries:?}: {tally:?}");
                let d = &tally.device;
                match kind {
                    // What did not move is still where it was.
                    Attack::Replay => assert!(d.hpb_stale > 10_000 && d.hpb_forged > 4_000, "{d:?}"),
                    _ => assert_eq!((tally.believed, d.hpb_forged), (0, tally.tries), "{kind:?} {entries:?}"),
                }
            }
        }
    }
}

#[test]
fn without_protection_every_attack_succeeds() {
    for kind in Attack::ALL {
        let tally = try_out(kind, entries(Protection::None), 100_000);
        assert!(tally.leaked > 1_000, "{kind:?}: {tally:?}");
    }
}

/// Freshness alone still catches an old entry as long as nothing newer was given out.
#[test]
fn without_protection_only_what_has_changed_since_the_last_hand_out_is_stale() {
    let config = device(&times(), entries(Protection::None), [1, 2]).expect("a possible device");
    let mut rogue = Rogue::new(&config, 3).expect("a possible device");
    let old = rogue.load();
    rogue.write(5);
    rogue.flush();
    let got = rogue.read(5, old[5]);
    assert!(!got.believed && !got.leaked && rogue.stats().hpb_stale == 1, "{:?}", rogue.stats());
    rogue.load();
    let got = rogue.read(5, old[5]);
    assert!(got.believed && got.leaked, "the block's old data, from where it once was");
}

/// The spare area of the slice that an entry names tells for which block it was made, as long as the block lies there.
#[test]
fn entries_of_other_blocks_are_told_from_forged_ones_at_a_price() {
    let telling = EntryConfig { tell_foreign: true, ..EntryConfig::DEFAULT };
    for (kind, entries) in [(Attack::Swap, telling), (Attack::Swap, EntryConfig::DEFAULT)] {
        let d = try_out(kind, entries, 0).device;
        let expected = if entries.tell_foreign { (16_384, 0, 16_384) } else { (0, 16_384, 0) };
        assert_eq!((d.hpb_foreign, d.hpb_forged, d.owner_reads), expected, "{d:?}");
    }
    let d = try_out(Attack::Foreigner, telling, 0).device;
    assert_eq!((d.hpb_foreign, d.hpb_forged), (0, 4096), "made by another device: {d:?}");
    let d = try_out(Attack::Forge, telling, 20_000).device;
    assert_eq!((d.hpb_foreign, d.hpb_forged, d.owner_reads), (0, 20_000, 20_000), "{d:?}");

    // The look costs the die a read: at an unlucky moment the next read waits for it.
    let time = |entries| {
        let mut rogue = Rogue::new(&device(&times(), entries, [1, 2]).expect("possible"), 3).expect("possible");
        let loaded = rogue.load();
        let from = rogue.now();
        (0..200).for_each(|lpn| {
            rogue.read(lpn, loaded[lpn as usize + 1]);
        });
        rogue.now().saturating_sub(from)
    };
    assert!(time(telling) > time(EntryConfig::DEFAULT));
}

/// One read after the other, each with the entry for its block: what a check costs is added, wherever it is done.
#[test]
fn a_check_costs_what_it_says_on_the_core_and_on_the_engine() {
    let reads = |entries| {
        let mut rogue = Rogue::new(&device(&times(), entries, [1, 2]).expect("possible"), 3).expect("possible");
        let from = rogue.now();
        let loaded = rogue.load();
        let loads = rogue.now().saturating_sub(from);
        let from = rogue.now();
        (0..100).for_each(|lpn| assert!(rogue.read(lpn, loaded[lpn as usize]).believed));
        (loads, rogue.now().saturating_sub(from))
    };
    let plain = reads(EntryConfig::DEFAULT);
    for check_on in [CheckOn::Firmware, CheckOn::Engine] {
        for protection in [Protection::Mac, Protection::Encrypted] {
            let timed = EntryConfig { check_on, check: Ns(700), make: Ns(90), protection, ..EntryConfig::DEFAULT };
            let (loads, checked) = reads(timed);
            assert_eq!(loads, Ns(plain.0.0 + u64::from(2 * BLOCKS) * 90), "{timed:?}");
            assert_eq!(checked, Ns(plain.1.0 + 100 * 700), "{timed:?}");
        }
    }
    // An entry of the hand-out before is checked twice, and nobody waits for the second time.
    let entry_of = |rogue: &mut Rogue| -> HpbEntry { rogue.load()[9] };
    let timed = EntryConfig { check: Ns(700), ..EntryConfig::DEFAULT };
    let stale_read = |entries| {
        let mut rogue = Rogue::new(&device(&times(), entries, [1, 2]).expect("possible"), 3).expect("possible");
        let old = entry_of(&mut rogue);
        rogue.load();
        let from = rogue.now();
        assert!(!rogue.read(9, old).believed && rogue.stats().hpb_stale == 1);
        rogue.now().saturating_sub(from)
    };
    let (with, without) = (stale_read(timed), stale_read(EntryConfig::DEFAULT));
    assert!(with > without, "{with} {without}");
}
