// SPDX-License-Identifier: MIT OR Apache-2.0
//! Choices over random tables: victims against the published formulas, erased superblocks and levelling against the
//! band.

use super::*;
use crate::ftl::NoSpace;
use crate::ftl::space::tests::space;
use readpath_flash::Geometry;
use readpath_kit::Prng;

const G: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes: 1,
    blocks_per_plane: 40,
    pages_per_block: 64,
    page_bytes: 16384,
};
const UNIT: u32 = 4;
const FULL: u32 = 4 * 64 * UNIT;
const NOW: u32 = 1_000_000;

/// Superblocks in random states, with counts independent of their contents.
fn drawn(rng: &mut Prng) -> Space {
    let mut s = space(&G);
    s.erased.clear();
    for (i, sb) in s.table.iter_mut().enumerate().skip(2) {
        // The last two are for zones.
        let stream = Stream::ALL[rng.below(Stream::COUNT as u64 - 2) as usize];
        sb.state = match rng.below(10) {
            0 => State::Erased,
            1 => State::Open(stream),
            2 => State::Erasing(4),
            3 => State::Retired,
            _ => State::Closed(stream),
        };
        if sb.state == State::Erased {
            s.erased.push(SuperblockId(i as u32));
        }
        sb.refs = rng.below(u64::from(FULL) + 1) as u32;
        sb.in_flight = u32::from(rng.below(10) == 0);
        sb.closed_at = rng.below(u64::from(NOW)) as u32;
        sb.erases = rng.below(100) as u32;
    }
    s
}

fn candidates(s: &Space) -> Vec<(SuperblockId, Superblock)> {
    let data = |sb: &Superblock| matches!(sb.state, State::Closed(stream) if stream != Stream::Meta);
    let pays = |sb: &Superblock| sb.in_flight == 0 && sb.refs + UNIT <= FULL;
    s.iter().filter(|(_, sb)| data(sb) && pays(sb)).map(|(i, sb)| (i, *sb)).collect()
}

#[test]
fn greedy_takes_the_fewest_references() {
    let mut rng = Prng::new(1);
    for _ in 0..2_000 {
        let s = drawn(&mut rng);
        let fewest = candidates(&s).iter().map(|(_, sb)| sb.refs).min();
        let victim = s.victim(VictimPolicy::Greedy, NOW);
        assert_eq!(victim.map(|i| s.get(i).refs), fewest);
        assert!(victim.is_none_or(|i| candidates(&s).iter().any(|&(c, _)| c == i)), "{:?}", victim.map(|i| *s.get(i)));
    }
}

#[test]
fn cost_benefit_takes_the_greatest_benefit_for_its_cost() {
    let mut rng = Prng::new(2);
    let mut not_greedy = 0;
    for _ in 0..2_000 {
        let s = drawn(&mut rng);
        let worth = |sb: &Superblock| {
            let u = f64::from(sb.refs.max(1)) / f64::from(FULL);
            (1.0 - u) * f64::from(NOW - sb.closed_at) / (2.0 * u)
        };
        let Some(victim) = s.victim(VictimPolicy::CostBenefit, NOW) else { continue };
        let best = candidates(&s).iter().map(|(_, sb)| worth(sb)).fold(0.0, f64::max);
        let sb = s.get(victim);
        assert!(worth(sb) > 0.9999 * best || sb.refs == 0, "{} of {best}: {sb:?}", worth(sb));
        not_greedy += u32::from(s.victim(VictimPolicy::Greedy, NOW) != Some(victim));
    }
    assert!(not_greedy > 300, "age decides in {not_greedy} cases only");
}

#[test]
fn a_superblock_whose_program_failed_goes_first() {
    let mut s = space(&G);
    for refs in [5, 900, 3] {
        let sb = s.open(Stream::Host, 1).unwrap();
        s.close(Stream::Host, 1);
        s.add_refs(sb, refs);
    }
    assert_eq!(s.victim(VictimPolicy::Greedy, NOW), Some(SuperblockId(4)));
    s.program_failed(SuperblockId(3), 0, 2);
    assert_eq!(s.victim(VictimPolicy::Greedy, NOW), Some(SuperblockId(3)));
    s.get_mut(SuperblockId(3)).failed = false;
    s.failed = 0;
    for (sb, refs) in [(2, FULL), (3, FULL - UNIT + 1), (4, FULL - UNIT + 1)] {
        s.get_mut(SuperblockId(sb)).refs = refs;
    }
    for policy in [VictimPolicy::Greedy, VictimPolicy::CostBenefit] {
        s.get_mut(SuperblockId(4)).refs = FULL - UNIT + 1;
        assert_eq!(s.victim(policy, NOW), None, "{policy:?}: a padded unit would take what is gained");
        s.get_mut(SuperblockId(4)).refs = FULL - UNIT;
        assert_eq!(s.victim(policy, NOW), Some(SuperblockId(4)), "{policy:?}");
    }
}

impl Space {
    fn get_mut(&mut self, sb: SuperblockId) -> &mut Superblock {
        &mut self.table[sb.index()]
    }
}

/// Ten superblocks: two of anchors, the last three erased, the others closed; erase counts as given.
fn worn(erases: [u32; 10]) -> Space {
    let mut s = space(&Geometry { blocks_per_plane: 10, ..G });
    for _ in 2..7 {
        s.open(Stream::Host, 1).unwrap();
        s.close(Stream::Host, NOW);
    }
    for (sb, erases) in s.table.iter_mut().zip(erases) {
        sb.erases = erases;
    }
    s
}

#[test]
fn levelling_waits_until_the_band_is_left() {
    // The mean is 100 (anchors do not count), the band 96 to 104.
    let within = worn([9, 9, 97, 98, 100, 100, 103, 100, 100, 102]);
    let mut s = worn([9, 9, 97, 98, 100, 100, 103, 100, 100, 102]);
    assert_eq!(s.look_at_wear(4, 1), None);
    assert_eq!(
        within.wear(),
        Wear { superblocks: 8, mean: 100.0, min: 97, max: 103, anchors_max: 9, bad_blocks: 0, retired: 0 }
    );
    assert!((within.wear().spread_percent() - 3.0).abs() < 1e-9);
    // One is behind, and an erased one is worn more than the mean.
    let mut s = worn([0, 0, 96, 99, 100, 100, 103, 100, 100, 102]);
    assert_eq!(s.look_at_wear(4, 1), Some(SuperblockId(2)));
    assert_eq!(s.look_at_wear(4, 5), None, "a band of five erases is wider");
    // One is behind, but all that are erased are worn less than the mean.
    let mut s = worn([0, 0, 95, 104, 103, 102, 102, 98, 98, 98]);
    assert_eq!(s.look_at_wear(4, 1), None);
    // An erased one is worn enough to be parked, and one is half a band behind.
    let mut s = worn([0, 0, 99, 98, 100, 100, 99, 100, 100, 104]);
    assert_eq!(s.look_at_wear(4, 1), Some(SuperblockId(3)));
    let mut s = worn([0, 0, 99, 99, 100, 100, 99, 100, 99, 104]);
    assert_eq!(s.look_at_wear(4, 1), None);
}

#[test]
fn of_superblocks_equally_far_behind_the_one_that_held_its_data_longest_is_emptied() {
    let mut s = worn([0, 0, 90, 90, 90, 106, 106, 106, 106, 106]);
    s.get_mut(SuperblockId(2)).closed_at = 30;
    s.get_mut(SuperblockId(3)).closed_at = 20;
    s.get_mut(SuperblockId(4)).closed_at = 40;
    assert_eq!(s.look_at_wear(4, 1), Some(SuperblockId(3)));
    s.get_mut(SuperblockId(3)).in_flight = 1;
    assert_eq!(s.look_at_wear(4, 1), Some(SuperblockId(2)), "what is being written cannot be emptied");
}

#[test]
fn wear_decides_which_erased_superblock_is_opened() {
    let fresh = || worn([0, 0, 100, 100, 100, 100, 100, 99, 101, 110]);
    let opened = |stream: Stream, look: bool| {
        let mut s = fresh();
        if look {
            s.look_at_wear(4, 1);
        }
        s.open(stream, 2)
    };
    for stream in [Stream::Host, Stream::Hot, Stream::Meta] {
        assert_eq!(opened(stream, true), Ok(SuperblockId(7)));
    }
    assert_eq!(opened(Stream::Cold, true), Ok(SuperblockId(9)));
    assert_eq!(opened(Stream::Moved, true), Ok(SuperblockId(8)), "the one beyond the band is kept for data that stays");
    assert_eq!(opened(Stream::Moved, false), Ok(SuperblockId(9)), "without levelling there is no band");
    let mut s = fresh();
    s.look_at_wear(4, 1);
    assert_eq!(
        [(); 4].map(|()| s.open(Stream::Moved, 2).inspect(|_| s.close(Stream::Moved, 2))),
        [Ok(SuperblockId(8)), Ok(SuperblockId(7)), Ok(SuperblockId(9)), Err(NoSpace)]
    );
}

#[test]
fn open_and_map_superblocks_are_not_left_behind() {
    let mut s = worn([0, 0, 100, 100, 100, 100, 100, 60, 100, 100]);
    assert_eq!(s.open(Stream::Hot, 1), Ok(SuperblockId(7)));
    let unit = s.next_unit(Stream::Hot, 1).unwrap();
    s.look_at_wear(4, 1);
    assert_eq!(s.close_left_behind(Stream::Hot, 5), None, "it was written since");
    assert_eq!(s.close_left_behind(Stream::Hot, 5), Some(SuperblockId(7)));
    assert_eq!((s.open_of(Stream::Hot), s.get(SuperblockId(7)).state), (None, State::Closed(Stream::Hot)));
    s.program_ended(unit);
    assert_eq!(s.look_at_wear(4, 1), Some(SuperblockId(7)), "closed, it can be emptied");

    let mut s = worn([0, 0, 100, 100, 100, 100, 100, 60, 100, 100]);
    for refs in [9, 3] {
        let sb = s.open(Stream::Meta, 1).unwrap();
        s.close(Stream::Meta, 1);
        s.add_refs(sb, refs);
    }
    assert_eq!(s.meta_victim(|_| true), Some(SuperblockId(8)), "the fewest references");
    s.look_at_wear(4, 1);
    assert_eq!(s.meta_victim(|_| true), Some(SuperblockId(7)), "wear has left it behind");
    assert_eq!(s.meta_victim(|sb| sb != SuperblockId(7)), Some(SuperblockId(8)));
}
