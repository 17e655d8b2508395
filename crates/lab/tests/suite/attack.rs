// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host that forges, replays, swaps or changes entries never obtains anything but what an ordinary READ would give
//! it; how often a guess succeeds is as stated; and without protection the same attacks succeed, so these tests can
//! fail.

use readpath_device::{CheckOn, DeviceConfig, EntryConfig, Protection};
use readpath_kit::Ns;
use readpath_lab::attack::{self, Attack, BLOCKS, Got, Means, Rogue, Tally};
use readpath_proto::typed::HpbEntry;

fn times() -> DeviceConfig {
    readpath_testkit::device(64)
}

fn entries(protection: Protection) -> EntryConfig {
    EntryConfig { protection, ..EntryConfig::DEFAULT }
}

fn tag(tag_bits: u8) -> EntryConfig {
    EntryConfig { tag_bits, ..EntryConfig::DEFAULT }
}

const MEANS: [Means; 3] = [Means::OneEntry, Means::PreRequest, Means::HeaderSegment];

fn try_out(kind: Attack, entries: EntryConfig, forgeries: u64) -> Tally {
    try_by(Means::OneEntry, kind, entries, forgeries)
}

fn try_by(means: Means, kind: Attack, entries: EntryConfig, forgeries: u64) -> Tally {
    attack::attack(kind, &times(), entries, means, forgeries, 7).expect("a possible device")
}

fn rogue(entries: EntryConfig) -> Rogue {
    rogue_by(Means::OneEntry, entries)
}

fn rogue_by(means: Means, entries: EntryConfig) -> Rogue {
    let config = attack::device(&times(), entries, means, [1, 2]).expect("a possible device");
    Rogue::new(&config, 3).expect("a possible device")
}

fn read(rogue: &mut Rogue, lpn: u32, entry: HpbEntry) -> Got {
    rogue.read(lpn, &[entry], Means::OneEntry)
}

/// On the firmware core, and on an engine, which checks an entry some time after its arrival.
fn each_way(protection: Protection) -> [EntryConfig; 2] {
    let engine = EntryConfig { check_on: CheckOn::Engine, check: Ns(400), make: Ns(30), ..entries(protection) };
    [entries(protection), engine]
}

fn both_by_each_means() -> impl Iterator<Item = (Protection, Means)> {
    [Protection::Mac, Protection::Encrypted].into_iter().flat_map(|p| MEANS.map(|means| (p, means)))
}

#[test]
fn no_forged_entry_is_ever_believed() {
    for (protection, means) in both_by_each_means() {
        let forgeries = if means == Means::OneEntry { 200_000 } else { 50_000 };
        let tally = try_by(means, Attack::Forge, entries(protection), forgeries);
        assert_eq!((tally.tries, tally.believed, tally.leaked), (forgeries, 0, 0), "{protection:?} {means:?}");
        assert_eq!(tally.device.hpb_forged, forgeries);
    }
}

/// Of n guesses of a tag of b bits, n / 2^b are right, within four standard deviations of a binomial distribution: a
/// seed in 16,000 would fail.
#[test]
fn guesses_succeed_as_often_as_stated() {
    let one_by_one = [(8u8, 400_000u64), (12, 800_000), (16, 2_000_000)].map(|(bits, n)| (Means::OneEntry, bits, n));
    let by_lists = [Means::PreRequest, Means::HeaderSegment].map(|means| (means, 8, 400_000));
    for (means, bits, guesses) in one_by_one.into_iter().chain(by_lists) {
        let tally = try_by(means, Attack::Forge, tag(bits), guesses);
        let p = 1.0 / f64::from(1u32 << bits);
        let (mean, deviation) = (guesses as f64 * p, (guesses as f64 * p * (1.0 - p)).sqrt());
        let off = (tally.believed as f64 - mean) / deviation;
        assert!(off.abs() < 4.0, "{means:?}, {bits} bits: {} of {guesses}, expected {mean:.0}", tally.believed);
        assert!(tally.leaked > 0, "{bits} bits: what was believed gave other data away");
        assert_eq!(tally.believed + tally.device.hpb_forged, guesses);
    }
}

/// With HPB 2.0 an entry says how many blocks lie in a row. A guess that succeeds gives that many away where it is the
/// only entry, and where each block has its own, those that are read with it from a page of flash.
#[test]
fn a_guess_that_succeeds_gives_a_run_away_with_hpb_2() {
    const RUN_OF_255: u64 = 0xF << 60;
    let page = u64::from(rogue(tag(8)).page_slices());
    for (means, most) in [(Means::OneEntry, 255), (Means::PreRequest, page), (Means::HeaderSegment, page)] {
        let knows = if means == Means::OneEntry { Means::PreRequest } else { means };
        let mut rogue = rogue_by(knows, tag(8));
        rogue.load();
        let got = (0..256u64).map(|guess| {
            let address = u64::from(rogue.slices() / 2) << 32;
            let mut list = [HpbEntry::default(); 255];
            list[0] = HpbEntry((RUN_OF_255 | address | guess).to_be_bytes());
            rogue.read(0, &list, means)
        });
        let believed: Vec<Got> = got.filter(|got| got.believed > 0).collect();
        assert!(!believed.is_empty(), "a tag of 8 bits has 256 values");
        for got in believed {
            assert!(got.believed == most && got.leaked > most * 3 / 4, "{means:?}: {got:?}");
        }
    }
}

/// Entries that are old, of other blocks or devices, or changed, sent by `means`, give nothing away.
fn nothing_is_given_away(means: Means, entries: EntryConfig, flips: u64) {
    for kind in [Attack::Replay, Attack::Swap, Attack::Foreigner, Attack::Flip] {
        let tally = try_by(means, kind, entries, flips);
        assert!(tally.tries >= u64::from(2 * BLOCKS), "{tally:?}");
        assert_eq!(tally.leaked, 0, "{means:?} {kind:?} {entries:?}: {tally:?}");
        let d = &tally.device;
        match kind {
            // What did not move is still where it was.
            Attack::Replay => assert!(d.hpb_stale > 10_000 && d.hpb_forged > 4_000, "{d:?}"),
            _ => assert_eq!((tally.believed, d.hpb_forged), (0, tally.tries), "{kind:?} {entries:?}"),
        }
    }
}

#[test]
fn neither_old_nor_swapped_nor_changed_nor_foreign_entries_give_anything_away() {
    for (protection, means) in both_by_each_means() {
        let [firmware, engine] = each_way(protection);
        nothing_is_given_away(means, if means == Means::PreRequest { engine } else { firmware }, 64 * 256);
    }
}

#[test]
#[ignore = "takes a minute"]
fn neither_do_they_in_any_way_of_checking() {
    for (protection, means) in both_by_each_means() {
        each_way(protection).into_iter().for_each(|entries| nothing_is_given_away(means, entries, 1 << 20));
    }
}

#[test]
fn without_protection_every_attack_succeeds() {
    for means in MEANS {
        for kind in Attack::ALL {
            let tally = try_by(means, kind, entries(Protection::None), 100_000);
            assert!(tally.leaked > 1_000, "{means:?} {kind:?}: {tally:?}");
        }
    }
}

/// Freshness alone still catches an old entry as long as nothing newer was given out.
#[test]
fn without_protection_only_what_has_changed_since_the_last_hand_out_is_stale() {
    let mut rogue = rogue(entries(Protection::None));
    let old = rogue.load();
    rogue.write(5);
    rogue.flush();
    let got = read(&mut rogue, 5, old[5]);
    assert!(got == Got { believed: 0, leaked: 0 } && rogue.stats().hpb_stale == 1, "{:?}", rogue.stats());
    rogue.load();
    let got = read(&mut rogue, 5, old[5]);
    assert_eq!(got, Got { believed: 1, leaked: 1 }, "the block's old data, from where it once was");
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
        let mut rogue = rogue(entries);
        let loaded = rogue.load();
        let from = rogue.now();
        (0..200).for_each(|lpn| {
            read(&mut rogue, lpn, loaded[lpn as usize + 1]);
        });
        rogue.now().saturating_sub(from)
    };
    assert!(time(telling) > time(EntryConfig::DEFAULT));
}

/// One read after the other, each with the entry for its block: what a check costs is added, wherever it is done.
#[test]
fn a_check_costs_what_it_says_on_the_core_and_on_the_engine() {
    let reads = |entries| {
        let mut rogue = rogue(entries);
        let from = rogue.now();
        let loaded = rogue.load();
        let loads = rogue.now().saturating_sub(from);
        let from = rogue.now();
        (0..100).for_each(|lpn| assert!(read(&mut rogue, lpn, loaded[lpn as usize]).believed == 1));
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
    // An entry of the previous hand-out is checked twice, and the read does not wait for the second check.
    let entry_of = |rogue: &mut Rogue| -> HpbEntry { rogue.load()[9] };
    let timed = EntryConfig { check: Ns(700), ..EntryConfig::DEFAULT };
    let stale_read = |entries| {
        let mut rogue = rogue(entries);
        let old = entry_of(&mut rogue);
        rogue.load();
        let from = rogue.now();
        assert!(read(&mut rogue, 9, old).believed == 0 && rogue.stats().hpb_stale == 1);
        rogue.now().saturating_sub(from)
    };
    let (with, without) = (stale_read(timed), stale_read(EntryConfig::DEFAULT));
    assert!(with > without, "{with} {without}");
}
