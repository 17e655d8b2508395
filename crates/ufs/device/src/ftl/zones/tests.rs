// SPDX-License-Identifier: MIT OR Apache-2.0
//! States of zones, and what recovery makes of every loss.

use super::recover::{Found, More, ZoneState};
use super::*;
use crate::config::{LuConfig, ZoneLayout};
use readpath_kit::Prng;
use std::collections::BTreeMap;

const ZONES: u32 = 10;
const BLOCKS: u32 = 8;
const TAG: TagRef = TagRef { tag: 1, life: 1 };

fn zones(layout: ZoneLayout, blocks: u32, rule: ZoneRule) -> Zones {
    let config = ZoneConfig { layout, blocks, most_open: 3, rule };
    let lu = LuConfig {
        blocks: ZONES * config.stride(),
        hpb: false,
        max_active_regions: 0,
        pinned_start: 0,
        pinned_regions: 0,
        zones: Some(config),
    };
    let table = vec![Zone::EMPTY; lu.zone_count() as usize];
    let unit = Unit { config, lun: 1, base: Lpn(100), blocks: lu.blocks.into(), zones: table };
    Zones { units: vec![unit], resets: Vec::new() }
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
    assert_eq!(ranges, [(Lpn(100), 0), (Lpn(108), 2), (Lpn(116), 2), (Lpn(124), 2), (Lpn(132), 1)]);
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
    assert_eq!(zones.reset(TAG, 1, Some(0)), Ok(vec![(Lpn(100), 4)]));
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

/// One zone, of which any writes may be lost: what is left is what was written, in order, without gaps, not less than
/// what was flushed, and nothing from before a reset that was answered.
#[test]
fn recovery_finds_the_written_part_of_a_zone() {
    let rng = &mut Prng::new(7);
    let (mut kept, mut lost, mut stale) = (0, 0, 0);
    for _ in 0..20_000 {
        let mut zones = plain();
        // The truth: of each block its sequence number, and which filling of the zone it belongs to.
        let mut fill: Vec<(u32, u32)> = Vec::new();
        let (mut number, mut sequence) = (1, 0);
        let mut flushed = 0;
        let mut newest: BTreeMap<Lpn, (u32, u32)> = BTreeMap::new();
        let (mut trims, mut finished) = (Vec::new(), Vec::new());
        let (mut is_full, mut full_is_durable) = (false, false);
        let mut states = vec![ZoneState::EMPTY; ZONES as usize];
        let mut checkpoint = 0;
        for _ in 0..rng.below(12) {
            match rng.below(8) {
                // A reset is answered when its trim is durable.
                0 if !fill.is_empty() || is_full => {
                    sequence += 1;
                    trims.push((Lpn(100), Lpn(100 + fill.len().max(1) as u32), sequence));
                    (fill, flushed, is_full, full_is_durable) = (Vec::new(), 0, false, false);
                    number += 1;
                }
                // All that was written is in flash, and so are the records.
                1 => {
                    newest.extend(waiting(&fill, flushed));
                    (flushed, full_is_durable) = (fill.len(), is_full);
                }
                // A checkpoint: flushed data and earlier records are part of it.
                2 => {
                    let more = if is_full { More::FinishedAt(fill.len() as u32) } else { More::Nothing };
                    states[0] = ZoneState { in_flash: flushed as u32, more };
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
                    fill.push((sequence, number));
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
        let found = Found { sequence: checkpoint, newest: &newest, trims, finished };
        let gone = zones.recover(&states, &found);
        let zone = zones.units[0].zones[0];
        assert!(zone.written as usize >= flushed && zone.written as usize <= fill.len(), "{zone:?}, {flushed} flushed");
        for at in flushed as u32..zone.written {
            assert_eq!(newest.get(&Lpn(100 + at)).map(|found| found.1), Some(number), "of this fill");
        }
        let behind = Lpn(100 + zone.written);
        let is_gone = |lpn: Lpn| gone.iter().any(|&(first, end)| (first..end).contains(&lpn));
        assert!(newest.range(behind..Lpn(108)).all(|(lpn, _)| is_gone(*lpn)), "what lies behind is trimmed");
        assert!(gone.iter().all(|(first, _)| *first >= behind));
        if full_is_durable {
            assert_eq!(zone.condition, Condition::Full);
        }
        assert!(zone.condition != Condition::Full || is_full || fill.len() == 8);
        kept += u32::from(zone.written as usize > flushed);
        lost += u32::from(holes);
        stale += u32::from(!gone.is_empty());
    }
    assert!(kept > 1000 && lost > 1000 && stale > 500, "{kept} {lost} {stale}");
}

/// Blocks that wait for flash: those behind the flushed part, with the numbers that they were given.
fn waiting(fill: &[(u32, u32)], flushed: usize) -> Vec<(Lpn, (u32, u32))> {
    let blocks = (100..).map(Lpn).zip(fill.iter().copied());
    blocks.skip(flushed).collect()
}

/// An earlier cut lost a block, and left the ones behind it in flash. Then that block was written anew.
#[test]
fn what_an_earlier_cut_left_behind_does_not_come_back() {
    let mut zones = plain();
    let newest: BTreeMap<Lpn, (u32, ())> =
        [(100, 1), (101, 9), (102, 3), (103, 4)].map(|(lpn, sequence)| (Lpn(lpn), (sequence, ()))).into();
    let found = Found { sequence: 0, newest: &newest, trims: Vec::new(), finished: Vec::new() };
    let states = [ZoneState::EMPTY; ZONES as usize];
    assert_eq!(zones.recover(&states, &found), [(Lpn(102), Lpn(108))]);
    assert_eq!(zones.units[0].zones[0].written, 2);
}

#[test]
fn a_zone_that_was_being_reset_is_empty() {
    let mut zones = plain();
    let newest: BTreeMap<Lpn, (u32, ())> = BTreeMap::new();
    let found = Found { sequence: 9, newest: &newest, trims: Vec::new(), finished: Vec::new() };
    let mut states = [ZoneState::EMPTY; ZONES as usize];
    states[1] = ZoneState { in_flash: 5, more: More::Resets };
    assert_eq!(zones.recover(&states, &found), [(Lpn(108), Lpn(116))]);
    assert_eq!(told(&zones), "eeeeeeeeee");
    for state in [states[0], states[1], ZoneState { in_flash: 3, more: More::FinishedAt(8) }] {
        assert_eq!(ZoneState::from_numbers(state.to_numbers(), 8), Some(state));
    }
    assert_eq!(ZoneState::from_numbers([9, u32::MAX], 8), None);
    assert_eq!(ZoneState::from_numbers([3, 9], 8), None);
}

/// A checkpoint knows of data that is not in flash.
#[test]
fn a_checkpoint_counts_what_is_in_flash() {
    let mut zones = plain();
    write(&mut zones, 0, 0, 6).unwrap();
    write(&mut zones, 1, 0, 8).unwrap();
    act(&mut zones, ZoneAction::Finish, 2).unwrap();
    let states = zones.states([Lpn(104), Lpn(103), Lpn(7)].into_iter());
    assert_eq!(states[0], ZoneState { in_flash: 3, more: More::Nothing });
    assert_eq!(states[1], ZoneState { in_flash: 8, more: More::FinishedAt(8) });
    assert_eq!(states[2], ZoneState { in_flash: 0, more: More::FinishedAt(0) });
    assert_eq!(states.len(), ZONES as usize);
}
