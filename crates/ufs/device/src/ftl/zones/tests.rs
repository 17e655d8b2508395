// SPDX-License-Identifier: MIT OR Apache-2.0
//! States of zones, and what recovery makes of every loss.

use super::*;
use crate::config::{LuConfig, ZoneLayout};
use crate::ftl::map::Entry;
use crate::ftl::space::{State, Stream, Superblock};
use readpath_flash::{Geometry, Ppn};
use readpath_kit::Prng;

const ZONES: u32 = 10;
const BLOCKS: u32 = 8;
const TAG: TagRef = TagRef { tag: 1, life: 1 };

fn zones(layout: ZoneLayout, blocks: u32, rule: ZoneRule) -> Zones {
    let config = ZoneConfig { layout, blocks, most_open: 3, rule, program_blocks: 4, flush_blocks: 4 };
    let lu = LuConfig {
        blocks: ZONES * config.stride(),
        hpb: false,
        max_active_regions: 0,
        pinned_start: 0,
        pinned_regions: 0,
        zones: Some(config),
    };
    let table = vec![Zone::EMPTY; lu.zone_count() as usize];
    let unit = Unit::new((1, lu.blocks), config, Lpn(100), 0, table);
    Zones {
        units: vec![unit],
        resets: Vec::new(),
        placed: Placed::new(ZONES as usize, 4, 100),
        tails: Tails::default(),
        writes_to: BTreeMap::new(),
        refresh: None,
    }
}

fn plain() -> Zones {
    zones(ZoneLayout::PowerOfTwo, BLOCKS, ZoneRule::Zbc)
}

fn told(zones: &Zones) -> String {
    let letter = |zone: Described| match zone.condition {
        ZoneCondition::Empty => 'e',
        ZoneCondition::ImplicitOpen => 'i',
        ZoneCondition::ExplicitOpen => 'x',
        ZoneCondition::Closed => 'c',
        ZoneCondition::Full => 'f',
        ZoneCondition::NotWritePointer => '-',
    };
    zones.report(1, 0, Listed::All).unwrap().map(letter).collect()
}

fn write(zones: &mut Zones, zone: u64, offset: u64, blocks: u32) -> Result<Lpn, Sense> {
    zones.write(1, zone * u64::from(BLOCKS) + offset, blocks)
}

fn act(zones: &mut Zones, action: ZoneAction, zone: u64) -> Result<Vec<(Lpn, u32)>, Sense> {
    zones.change(1, action, Some(zone * u64::from(BLOCKS)))
}

#[test]
fn a_write_has_to_be_at_the_write_pointer() {
    let mut zones = plain();
    assert_eq!(write(&mut zones, 2, 0, 3), Ok(Lpn(116)));
    assert_eq!(write(&mut zones, 2, 3, 1), Ok(Lpn(119)));
    for (offset, blocks, sense) in [
        (0, 1, Sense::UNALIGNED_WRITE),
        (5, 1, Sense::UNALIGNED_WRITE),
        (4, 5, Sense::WRITE_BOUNDARY),
        // The end of the zone comes first.
        (0, 9, Sense::WRITE_BOUNDARY),
        (62, 3, Sense::LBA_OUT_OF_RANGE),
    ] {
        assert_eq!(write(&mut zones, 2, offset, blocks), Err(sense), "{blocks} from {offset} on");
    }
    assert_eq!(told(&zones), "eeieeeeeee");
    assert_eq!(write(&mut zones, 2, 4, 4), Ok(Lpn(120)));
    assert_eq!(write(&mut zones, 2, 7, 1), Err(Sense::INVALID_FIELD), "it is full");
    assert_eq!(zones.write(1, u64::MAX, 1), Err(Sense::LBA_OUT_OF_RANGE));
    assert_eq!(told(&zones), "eefeeeeeee");
    let full = zones.report(1, 16, Listed::All).unwrap().next().unwrap();
    assert_eq!((full.start, full.write_pointer), (16, 24));
}

#[test]
fn a_write_that_needs_a_zone_closes_one_that_a_write_opened() {
    let mut zones = plain();
    for zone in [5, 1, 7] {
        write(&mut zones, zone, 0, 1).unwrap();
    }
    write(&mut zones, 9, 0, 1).unwrap();
    assert_eq!(told(&zones), "eceeeieiei", "the lowest of them");
    act(&mut zones, ZoneAction::Open, 0).unwrap();
    act(&mut zones, ZoneAction::Open, 7).unwrap();
    act(&mut zones, ZoneAction::Open, 2).unwrap();
    assert_eq!(told(&zones), "xcxeecexec");
    for zone in [3, 5] {
        assert_eq!(act(&mut zones, ZoneAction::Open, zone), Err(Sense::ZONE_RESOURCES));
    }
    assert_eq!(write(&mut zones, 3, 0, 1), Err(Sense::ZONE_RESOURCES));
    assert_eq!(write(&mut zones, 5, 1, 1), Err(Sense::ZONE_RESOURCES));
    assert_eq!(told(&zones), "xcxeecexec");
    // Room returns when a zone is closed, full or reset.
    act(&mut zones, ZoneAction::Close, 0).unwrap();
    assert_eq!(told(&zones), "ecxeecexec", "nothing was written to it");
    write(&mut zones, 3, 0, 8).unwrap();
    write(&mut zones, 5, 1, 1).unwrap();
    assert_eq!(told(&zones), "ecxfeiexec");
}

/// Closed zones count, and nothing closes by itself.
#[test]
fn under_the_rule_of_phones_closed_zones_count() {
    let mut zones = zones(ZoneLayout::PowerOfTwo, BLOCKS, ZoneRule::Zufs);
    for zone in 0..3 {
        write(&mut zones, zone, 0, 1).unwrap();
    }
    act(&mut zones, ZoneAction::Close, 1).unwrap();
    assert_eq!(write(&mut zones, 3, 0, 1), Err(Sense::ZONE_RESOURCES));
    assert_eq!(act(&mut zones, ZoneAction::Open, 3), Err(Sense::ZONE_RESOURCES));
    write(&mut zones, 1, 1, 1).unwrap();
    assert_eq!(told(&zones), "iiieeeeeee");
    act(&mut zones, ZoneAction::Finish, 1).unwrap();
    write(&mut zones, 3, 0, 1).unwrap();
    assert_eq!(told(&zones), "ifiieeeeee");
}

#[test]
fn all_zones_at_once() {
    let mut zones = plain();
    for zone in [1, 2, 3] {
        write(&mut zones, zone, 0, 2).unwrap();
    }
    zones.change(1, ZoneAction::Close, None).unwrap();
    write(&mut zones, 4, 0, 1).unwrap();
    assert_eq!(told(&zones), "ecccieeeee");
    zones.change(1, ZoneAction::Open, None).unwrap();
    assert_eq!(told(&zones), "exxxceeeee");
    assert_eq!(zones.change(1, ZoneAction::Open, None), Err(Sense::ZONE_RESOURCES), "one more than can be open");
    assert_eq!(told(&zones), "exxxceeeee");
    let finished = zones.change(1, ZoneAction::Finish, None).unwrap();
    assert_eq!(finished, [(Lpn(108), 2), (Lpn(116), 2), (Lpn(124), 2), (Lpn(132), 1)]);
    assert_eq!(told(&zones), "effffeeeee", "an empty zone stays");
    assert_eq!(act(&mut zones, ZoneAction::Finish, 0), Ok(vec![(Lpn(100), 0)]), "unless it is named");
    let ranges = zones.reset(TAG, 1, None).unwrap();
    assert_eq!(ranges, [100, 108, 116, 124, 132].map(|first| (Lpn(first), 8)));
    assert_eq!(write(&mut zones, 1, 2, 1), Err(Sense::INVALID_FIELD), "they are not empty yet");
    zones.reset_ended(TAG);
    assert_eq!(told(&zones), "eeeeeeeeee");
}

#[test]
fn what_is_no_zone_is_refused() {
    let mut zones = plain();
    for action in [ZoneAction::Open, ZoneAction::Close, ZoneAction::Finish] {
        assert_eq!(zones.change(1, action, Some(9)), Err(Sense::INVALID_FIELD), "inside of a zone");
        assert_eq!(zones.change(1, action, Some(80)), Err(Sense::LBA_OUT_OF_RANGE));
    }
    assert_eq!(zones.reset(TAG, 1, Some(9)), Err(Sense::INVALID_FIELD));
    assert_eq!(zones.report(1, 80, Listed::All).err(), Some(Sense::LBA_OUT_OF_RANGE));
    assert!(zones.config(0).is_none() && zones.config(1).is_some());
}

#[test]
fn a_zone_being_reset_takes_no_write() {
    let mut zones = plain();
    write(&mut zones, 0, 0, 4).unwrap();
    assert_eq!(zones.reset(TAG, 1, Some(0)), Ok(vec![(Lpn(100), 8)]));
    assert_eq!(write(&mut zones, 0, 4, 1), Err(Sense::UNALIGNED_WRITE));
    assert_eq!(write(&mut zones, 0, 0, 1), Err(Sense::UNALIGNED_WRITE));
    let other = TagRef { tag: 2, life: 1 };
    assert_eq!(zones.reset(other, 1, None), Ok(vec![]), "it is being reset already");
    assert!(zones.is_resetting(TAG) && !zones.is_resetting(other));
    zones.reset_ended(TAG);
    assert_eq!(write(&mut zones, 0, 0, 1), Ok(Lpn(100)));
}

#[test]
fn gaps_hold_nothing() {
    let mut zones = zones(ZoneLayout::Gaps, 5, ZoneRule::Zbc);
    assert_eq!(zones.write(1, 8, 5), Ok(Lpn(105)));
    assert_eq!(zones.write(1, 0, 6), Err(Sense::WRITE_BOUNDARY));
    assert_eq!(zones.write(1, 5, 1), Err(Sense::GAP_ZONE));
    assert_eq!(zones.read(1, 11, 2), Ok(Lpn(108)));
    assert_eq!(zones.read(1, 11, 3), Err(Sense::GAP_ZONE));
    assert_eq!(zones.read(1, 13, 1), Err(Sense::GAP_ZONE));
    assert_eq!(zones.change(1, ZoneAction::Open, Some(5)), Err(Sense::INVALID_FIELD));
    assert_eq!(&told(&zones)[..6], "e-f-e-");
    let count = |listed| zones.report(1, 0, listed).unwrap().count();
    assert_eq!((count(Listed::NoGaps), count(Listed::NoWritePointer)), (10, 10));
    let from_gap: Vec<_> = zones.report(1, 14, Listed::All).unwrap().map(|zone| zone.start).take(2).collect();
    assert_eq!(from_gap, [13, 16]);
}

/// The data of a write never came: its zone goes back to what it holds.
#[test]
fn a_dropped_write_moves_the_pointer_back() {
    let mut zones = plain();
    write(&mut zones, 3, 0, 8).unwrap();
    assert_eq!(zones.take_back(Lpn(126)), Some((Lpn(126), 6)));
    assert_eq!(told(&zones), "eeeceeeeee");
    assert_eq!(write(&mut zones, 3, 2, 1), Ok(Lpn(126)));
    assert_eq!(zones.take_back(Lpn(124)), Some((Lpn(124), 8)));
    assert_eq!(told(&zones), "eeeieeeeee");
    assert_eq!(zones.take_back(Lpn(99)), None, "no zone");
}

/// Two dies; a program is a multi-plane page of 4 blocks, and a superblock has 8 of them.
const FLASH: Geometry = Geometry {
    channels: 1,
    dies_per_channel: 2,
    planes: 1,
    blocks_per_plane: 6,
    pages_per_block: 4,
    page_bytes: 16384,
};

/// Superblocks that all hold data of a stream, each opened when its number says.
fn table(stream: Stream) -> Vec<Superblock> {
    let superblock = |opened_at| Superblock { state: State::Closed(stream), opened_at, ..Superblock::NEW };
    (0..FLASH.superblocks()).map(superblock).collect()
}

/// One zone, of which any rests may be lost: what is left is what was written, in order, without gaps, not less than
/// what was flushed, and nothing from before a reset that was answered.
#[test]
fn recovery_finds_the_written_part_of_a_zone() {
    let rng = &mut Prng::new(7);
    let (space, table) = (crate::ftl::space::tests::space(&FLASH), table(Stream::Rest));
    let (mut kept, mut lost, mut stale) = (0, 0, 0);
    for _ in 0..20_000 {
        let mut zones = plain();
        // The truth: of each block its sequence number, which stands for its place too.
        let mut fill: Vec<u32> = Vec::new();
        let (mut began, mut sequence) = (0, 0);
        let mut flushed = 0;
        let mut newest: BTreeMap<Lpn, (u32, Entry)> = BTreeMap::new();
        let (mut trims, mut finished) = (Vec::new(), Vec::new());
        let (mut is_full, mut full_is_durable) = (false, false);
        let mut states = ZoneStates::empty(ZONES as usize);
        let mut checkpoint = 0;
        for _ in 0..rng.below(12) {
            match rng.below(8) {
                // A reset is answered when its trim is durable.
                0 if !fill.is_empty() || is_full => {
                    sequence += 1;
                    trims.push((Lpn(100), Lpn(108), sequence));
                    (fill, flushed, is_full, full_is_durable) = (Vec::new(), 0, false, false);
                    began = sequence;
                }
                // All that was written is in flash, and so are the records.
                1 => {
                    newest.extend(waiting(&fill, flushed));
                    (flushed, full_is_durable) = (fill.len(), is_full);
                }
                // A checkpoint: flushed data and earlier records are part of it.
                2 => {
                    let rests = waiting(&fill[..flushed], 0).into_iter();
                    states.rests = rests.map(|(lpn, (number, _))| (lpn, Ppn(number))).collect();
                    states.zones[0].finished = is_full.then_some(fill.len() as u32);
                    checkpoint = sequence;
                    newest.clear();
                    finished.clear();
                    full_is_durable = is_full && flushed == fill.len();
                }
                3 if !is_full && fill.len() < 8 && rng.below(3) == 0 => {
                    sequence += 1;
                    finished.push((Lpn(100), fill.len() as u32, sequence));
                    is_full = true;
                }
                _ if !is_full && fill.len() < 8 => {
                    sequence += 1;
                    fill.push(sequence);
                }
                _ => {}
            }
        }
        // Some of what was not flushed is in flash all the same.
        let mut left = waiting(&fill, flushed);
        left.retain(|_| rng.below(3) > 0);
        let holes = left.len() < fill.len() - flushed;
        newest.extend(left);
        if !full_is_durable && rng.below(2) == 0 {
            finished.clear();
        }
        let found = Found { sequence: checkpoint, newest: &newest, trims: &trims, finished: &finished, table: &table };
        let rests = zones.recover(&states, &found, &space);
        let zone = zones.units[0].zones[0];
        assert!(zone.written as usize >= flushed && zone.written as usize <= fill.len(), "{zone:?}, {flushed} flushed");
        let truth: Vec<_> = waiting(&fill, 0).into_iter().map(|(lpn, (number, _))| (lpn, Ppn(number))).collect();
        assert_eq!(rests, truth[..zone.written as usize], "in order, and of this filling from {began} on");
        if full_is_durable {
            assert_eq!(zone.condition, Condition::Full);
        }
        assert!(zone.condition != Condition::Full || is_full || fill.len() == 8);
        kept += u32::from(zone.written as usize > flushed);
        lost += u32::from(holes);
        stale += u32::from(newest.contains_key(&(Lpn(100) + zone.written)) && zone.written < 8);
    }
    assert!(kept > 1000 && lost > 1000 && stale > 500, "{kept} {lost} {stale}");
}

/// Blocks that wait for flash: those behind the flushed part, with the numbers that they were given.
fn waiting(fill: &[u32], flushed: usize) -> Vec<(Lpn, (u32, Entry))> {
    let blocks = (100..).map(Lpn).zip(fill.iter().map(|&number| (number, Entry::at(Ppn(number)))));
    blocks.skip(flushed).collect()
}

/// An earlier cut lost a block, and left the ones behind it in flash. Then that block was written anew.
#[test]
fn what_an_earlier_cut_left_behind_does_not_come_back() {
    let (space, table) = (crate::ftl::space::tests::space(&FLASH), table(Stream::Rest));
    let mut zones = plain();
    let newest: BTreeMap<Lpn, (u32, Entry)> = [(100, 1), (101, 9), (102, 3), (103, 4)]
        .map(|(lpn, sequence)| (Lpn(lpn), (sequence, Entry::at(Ppn(sequence)))))
        .into();
    let found = Found { sequence: 0, newest: &newest, trims: &[], finished: &[], table: &table };
    let rests = zones.recover(&ZoneStates::empty(ZONES as usize), &found, &space);
    assert_eq!(rests, [(Lpn(100), Ppn(1)), (Lpn(101), Ppn(9))]);
    assert_eq!(zones.units[0].zones[0].written, 2);
}

/// What recovery makes of whole programs of zone 0: how many blocks each of them has, its superblock and its number
/// there, and which sequence number its blocks have.
fn programs(before: &ZoneStates, found: &[(u32, u32, u32, u32)], finished: &[(Lpn, u32, u32)]) -> (Zones, usize) {
    let (space, mut table) = (crate::ftl::space::tests::space(&FLASH), table(Stream::Zone));
    table[5].state = State::Open(Stream::Zone);
    let mut newest = BTreeMap::new();
    let mut lpn = Lpn(100);
    for &(blocks, superblock, program, sequence) in found {
        for i in 0..blocks {
            let entry = Entry::at(space.slice_of_program(SuperblockId(superblock), program, i));
            newest.insert(lpn, (sequence, entry));
            lpn = lpn + 1;
        }
    }
    let found = Found { sequence: 0, newest: &newest, trims: &[], finished, table: &table };
    let mut zones = plain();
    let rests = zones.recover(before, &found, &space).len();
    (zones, rests)
}

#[test]
fn whole_programs_count_in_the_order_in_which_they_began() {
    let none = ZoneStates::empty(ZONES as usize);
    let extent = |superblock, program| Extent { superblock: SuperblockId(superblock), program };
    // Sequence numbers say nothing: data that was read back has old ones.
    let (zones, rests) = programs(&none, &[(4, 5, 2, 7), (4, 5, 3, 1)], &[]);
    assert_eq!((zones.placed.blocks(0), rests, zones.units[0].zones[0].written), (8, 0, 8));
    assert_eq!(zones.placed.extents(0), [(0, extent(5, 2))]);
    assert_eq!(zones.writes_to(0), None, "it is full");
    // The second was left behind by an earlier cut.
    let (zones, rests) = programs(&none, &[(4, 5, 4, 7), (4, 5, 3, 1)], &[]);
    assert_eq!((zones.placed.blocks(0), rests, zones.units[0].zones[0].written), (4, 0, 4));
    assert_eq!(zones.writes_to(0), Some((SuperblockId(5), 0)));
    let (zones, _) = programs(&none, &[(4, 4, 1, 1), (4, 3, 2, 0)], &[]);
    assert_eq!((zones.placed.blocks(0), zones.writes_to(0)), (4, None), "the superblock was opened earlier");
    // They may go on elsewhere.
    let (zones, _) = programs(&none, &[(4, 3, 1, 1), (4, 5, 0, 2)], &[]);
    assert_eq!(zones.placed.extents(0), [(0, extent(3, 1)), (4, extent(5, 0))]);
    // Part of one is no program, but its blocks are there.
    let (zones, rests) = programs(&none, &[(4, 5, 0, 1), (3, 5, 1, 2)], &[]);
    assert_eq!((zones.placed.blocks(0), rests, zones.units[0].zones[0].written), (4, 3, 7));
    // If the zone was finished there, it is one.
    let (zones, rests) = programs(&none, &[(4, 5, 0, 1), (3, 5, 1, 2)], &[(Lpn(100), 7, 3)]);
    let zone = zones.units[0].zones[0];
    assert_eq!((zones.placed.blocks(0), rests, zone.written, zone.condition), (7, 0, 7, Condition::Full));
    // Behind a checkpoint.
    let mut before = none.clone();
    before.zones[0] = ZoneState { begins: Some(SuperblockId(5)), placed: 4, finished: None };
    before.others = vec![(0, 0, extent(5, 3))];
    let (mut zones, _) = programs(&before, &[(0, 0, 0, 0)], &[]);
    assert_eq!((zones.placed.blocks(0), zones.placed.extents(0)), (4, vec![(0, extent(5, 3))]));
    assert_eq!(zones.states(std::iter::empty()).zones[0], before.zones[0]);
    assert_eq!(zones.placed.clear(0), [SuperblockId(5)]);
    assert_eq!((zones.placed.blocks(0), zones.placed.extents(0)), (0, vec![]));
}

/// A finished zone that holds rests is programmed to its end, even if nothing of it is in the write buffer.
#[test]
fn what_is_left_of_a_finished_zone_is_going_to_be_programmed() {
    let (space, table) = (crate::ftl::space::tests::space(&FLASH), table(Stream::Rest));
    let mut states = ZoneStates::empty(ZONES as usize);
    states.zones[2].finished = Some(3);
    states.rests = (0..3).map(|i| (Lpn(116 + i), Ppn(i))).collect();
    let newest = BTreeMap::new();
    let found = Found { sequence: 9, newest: &newest, trims: &[], finished: &[], table: &table };
    let mut zones = plain();
    assert_eq!(zones.recover(&states, &found, &space), states.rests);
    assert_eq!(told(&zones), "eefeeeeeee");
    assert_eq!(zones.tails.get(2).map(|tail| (tail.next(), tail.end())), Some((3, 3)));
}

#[test]
fn parts_of_zones_need_room_in_their_table() {
    let mut placed = Placed::new(2, 4, 2);
    let mut extend = |zone, superblock, program| {
        placed.extend(zone, 4, Extent { superblock: SuperblockId(superblock), program });
        placed.has_room()
    };
    assert!(extend(0, 5, 0) && extend(0, 5, 1), "what follows takes no room");
    assert!(extend(0, 6, 0), "another superblock does");
    assert!(!extend(1, 7, 1), "and a beginning behind the start of one");
    assert_eq!(placed.clear(0).len(), 2);
    assert!(placed.has_room());
}
