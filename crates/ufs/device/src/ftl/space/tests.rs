// SPDX-License-Identifier: MIT OR Apache-2.0
//! Life of a superblock: opened, written, referenced, discarded, erased, retired.

use super::*;
use crate::config::VictimPolicy;
use crate::ids::Lpn;
use readpath_kit::Prng;

/// Space of an array without faults.
pub(in crate::ftl) fn space(geometry: &Geometry) -> Space {
    Space::shaped(geometry, &FtlConfig::DEFAULT, [geometry.units_per_superblock(), 0, 0])
}

const G: Geometry =
    Geometry { channels: 1, dies_per_channel: 2, planes: 1, blocks_per_plane: 5, pages_per_block: 2, page_bytes: 4096 };

#[test]
fn superblocks_are_opened_by_wear_and_come_back_when_erased() {
    let mut s = space(&G);
    assert_eq!((s.erased(), s.open(Stream::Host, 1)), (3, Ok(SuperblockId(2))));
    let units: Vec<_> = (0..4).map(|_| s.next_unit(Stream::Host, 9).unwrap()).collect();
    assert_eq!(units, [8, 9, 10, 11].map(Ppn));
    assert_eq!((s.next_unit(Stream::Host, 9), s.get(SuperblockId(2)).state), (None, State::Closed(Stream::Host)));
    units.iter().for_each(|&u| s.program_ended(u));
    s.add_ref(Ppn(9));
    assert_eq!(s.victim(VictimPolicy::Greedy, 10), Some(SuperblockId(2)));
    s.drop_ref(Ppn(9));
    assert!(s.is_empty(SuperblockId(2)));
    s.discard(SuperblockId(2), 0);
    assert_eq!(s.begin_erase(), Some(SuperblockId(2)));
    assert!(!s.die_erased(SuperblockId(2), 0, false));
    assert!(s.die_erased(SuperblockId(2), 1, false));
    assert_eq!(s.open(Stream::Host, 20), Ok(SuperblockId(3)), "not the one that was erased before");
    assert_eq!(s.open(Stream::Moved, 20), Ok(SuperblockId(2)), "moved data goes where wear is");
}

#[test]
fn references_of_earlier_lives_do_not_count() {
    let mut s = space(&G);
    s.open(Stream::Host, 100).unwrap();
    s.add_ref(Ppn(8));
    s.drop_written_ref(Ppn(8), 99);
    assert_eq!(s.get(SuperblockId(2)).refs, 1, "the map page was written before the superblock was opened");
    s.drop_written_ref(Ppn(8), 100);
    assert_eq!(s.get(SuperblockId(2)).refs, 0);
    s.drop_written_ref(Ppn(12), 100);
}

/// Of superblock 2, the block of die 0 is bad.
fn with_a_bad_block(geometry: &Geometry) -> Space {
    let mut s = space(geometry);
    s.open(Stream::Host, 1).unwrap();
    s.close(Stream::Host, 1);
    s.discard(SuperblockId(2), 0);
    s.begin_erase();
    assert!(!s.die_erased(SuperblockId(2), 0, true) && s.die_erased(SuperblockId(2), 1, false));
    s
}

#[test]
fn bad_blocks_are_skipped_and_retire_superblocks() {
    let mut s = with_a_bad_block(&G);
    s.open(Stream::Hot, 2).unwrap();
    s.open(Stream::Moved, 2).unwrap();
    assert_eq!((s.open_of(Stream::Moved), s.units_left(Stream::Moved)), (Some(SuperblockId(2)), 2));
    assert_eq!(s.next_unit(Stream::Moved, 3), Some(Ppn(9)), "die 0 is skipped");
    assert_eq!(s.next_unit(Stream::Moved, 3), Some(Ppn(11)));
    s.program_ended(Ppn(9));
    s.program_ended(Ppn(11));
    s.discard(SuperblockId(2), 0);
    s.begin_erase();
    assert!(s.die_erased(SuperblockId(2), 1, true));
    assert_eq!(s.get(SuperblockId(2)).state, State::Retired);
    assert_eq!((s.open(Stream::Cold, 4), s.erased()), (Ok(SuperblockId(4)), 0));
    s.close(Stream::Cold, 4);
    assert_eq!(s.open(Stream::Cold, 5), Err(NoSpace), "what is retired is not opened again");
}

/// Of ten superblocks for all purposes, the map may take three.
#[test]
fn one_is_left_for_the_map_even_if_it_has_all_that_it_may_take() {
    for in_use in 0..5 {
        let mut s = space(&Geometry { blocks_per_plane: 12, ..G });
        s.shape.meta_superblocks = 3;
        for _ in 0..in_use {
            s.close(Stream::Meta, 1);
            s.open(Stream::Meta, 1).unwrap();
        }
        for (purpose, stream) in [(Purpose::Host, Stream::Host), (Purpose::Move, Stream::Moved)] {
            while s.may_open(purpose) {
                s.open(stream, 1).unwrap();
                s.close(stream, 1);
            }
        }
        // Moved data may take some of what is kept, down to two.
        assert_eq!((s.erased(), s.spare()), (if in_use < 2 { 2 } else { 1 }, 0), "with {in_use}");
    }
}

#[test]
fn a_superblock_that_is_being_emptied_is_not_given_up() {
    let mut s = space(&G);
    let sb = s.open(Stream::Host, 1).unwrap();
    s.close(Stream::Host, 1);
    assert!(s.is_empty(sb));
    s.begin_emptying(&[sb]);
    assert!(!s.is_empty(sb));
    s.discard(sb, 0);
    s.begin_erase();
    assert!(!s.die_erased(sb, 0, false) && s.die_erased(sb, 1, false));
    assert_eq!(s.open(Stream::Cold, 2), Ok(sb));
    s.close(Stream::Cold, 2);
    assert!(s.is_empty(sb), "it was emptied in its former life");
}

/// Random lives of superblocks in two cell modes, against a model of the referenced slices.
#[test]
fn references_units_and_modes_are_those_of_a_plain_model() {
    const SLC_UNITS: u32 = 2;
    let rng = &mut Prng::new(5);
    let g = Geometry { blocks_per_plane: 20, ..G };
    let mut s = Space::shaped(&g, &FtlConfig::DEFAULT, [g.units_per_superblock(), SLC_UNITS, SLC_UNITS]);
    s.shape.own_cells = OwnCells { meta: CellMode::SlcMap, rests: CellMode::SlcMap };
    let mut live: Vec<Ppn> = Vec::new();
    let mut erased_in = [0; CellMode::COUNT];
    for step in 0..20_000 {
        // The last is for zones, which open superblocks otherwise.
        let stream = Stream::ALL[rng.below(Stream::COUNT as u64 - 1) as usize];
        if s.open_of(stream).is_none() {
            _ = s.open(stream, step);
        }
        if let Some(ppn) = s.next_unit(stream, step) {
            s.program_ended(ppn);
            let units = s.get(s.of(ppn)).next_unit;
            assert!(
                units <= if matches!(stream, Stream::Boosted | Stream::Meta | Stream::Rest) { SLC_UNITS } else { 4 },
                "{stream:?} wrote {units} units"
            );
            assert_eq!(s.mode_of(ppn), s.mode_for(stream));
            s.add_ref(ppn);
            live.push(ppn);
        }
        // Most slices soon lose their reference.
        while live.len() > 12 {
            let gone = live.swap_remove(rng.below(live.len() as u64) as usize);
            s.drop_ref(gone);
        }
        for sb in s.all() {
            let refs = live.iter().filter(|&&ppn| s.of(ppn) == sb).count() as u32;
            let closed = matches!(s.get(sb).state, State::Closed(_));
            assert_eq!((s.get(sb).refs, s.is_empty(sb)), (refs, closed && refs == 0), "superblock {sb}");
            if s.is_empty(sb) {
                erased_in[s.get(sb).mode.index()] += 1;
                s.discard(sb, 0);
                assert_eq!((s.begin_erase(), s.erasing()), (Some(sb), Some(sb)));
                assert!(!s.die_erased(sb, 0, false));
                s.check_consistency().expect("half erased");
                assert!(s.die_erased(sb, 1, false));
            }
        }
        s.check_consistency().expect("the lists and counts agree");
    }
    assert_eq!(erased_in, CellMode::ALL.map(|mode| s.erases_in(mode)));
    assert!(erased_in.iter().all(|&erases| erases > 20), "{erased_in:?}");
}

/// Filled at once, superblocks are as if they had been filled unit by unit.
#[test]
fn units_may_be_taken_many_at_once() {
    let g = Geometry { pages_per_block: 4, planes: 2, ..G };
    for slices in 1..2 * g.slices_per_superblock() {
        let [at_once, one_by_one] = [true, false].map(|at_once| {
            let mut s = with_a_bad_block(&g);
            // It is filled first.
            s.table.iter_mut().for_each(|sb| sb.erases = 0);
            let mut taken = Vec::new();
            if at_once {
                s.preset(slices, Stream::Host, |ppn, n| taken.extend(ppn.0..ppn.0 + n)).unwrap();
            } else {
                let mut left = slices;
                while left > 0 {
                    if s.open_of(Stream::Host).is_none() {
                        s.open(Stream::Host, 0).unwrap();
                    }
                    let ppn = s.next_unit(Stream::Host, 0).unwrap();
                    s.program_ended(ppn);
                    let n = left.min(g.slices_per_unit());
                    taken.extend(ppn.0..ppn.0 + n);
                    left -= n;
                }
            }
            (taken, format!("{:?} {:?}", s.table, s.open))
        });
        assert_eq!(at_once, one_by_one, "{slices} slices");
    }
}

/// Spare areas of superblocks of zones name the blocks where the programs put them, before and after the formula that
/// stands for them is given up.
#[test]
fn spare_areas_of_preset_programs_name_their_blocks() {
    for seed in 0..300 {
        let rng = &mut Prng::new(seed);
        let [dies, planes, units] = [1 + rng.below(3), 1 + rng.below(2), 1 + rng.below(3)].map(|n| n as u32);
        let pages_per_block = units * (1 + rng.below(4) as u32) + rng.below(2) as u32;
        let g = Geometry { dies_per_channel: dies, planes, pages_per_block, page_bytes: 8192, ..G };
        let mut s = space(&g);
        s.shape.program_units = units;
        let has_bad = dies > 1 && rng.below(4) == 0;
        if has_bad {
            s.mark_bad(SuperblockId(2), rng.below(u64::from(dies)) as u32);
        }
        s.sort_for_zones();
        let sb = s.preset_for_zone().expect("an erased superblock");
        assert_eq!(sb, SuperblockId(2));
        let each = units * g.slices_per_unit();
        let (mut held, mut next) = (Vec::new(), 100);
        while s.programs_left(sb) > 0 && rng.below(5) > 0 {
            let programs = 1 + rng.below(u64::from(s.programs_left(sb))) as u32;
            let first = s.next_program(sb);
            let by_host = rng.below(4) == 0;
            // The last program of a zone may hold less than it could.
            let blocks = programs * each - if rng.below(3) == 0 { rng.below(u64::from(each)) as u32 } else { 0 };
            let places = (0..blocks).map(|i| s.slice_of_program(sb, first + i / each, i % each)).collect::<Vec<_>>();
            if by_host {
                s.table[sb.index()].next_unit += units * programs;
                places.iter().zip(next..).for_each(|(&ppn, lpn)| s.spares.program(ppn, Lpn(lpn), 7));
            } else {
                s.preset_programs(sb, programs, Lpn(next), blocks);
            }
            held.extend(places.into_iter().zip(next..));
            next += blocks + rng.below(2) as u32;
        }
        let is_as_placed = |s: &Space, held: &[(Ppn, u32)]| {
            let slices = (0..g.slices()).map(Ppn);
            slices.clone().all(|ppn| {
                let lpn = held.iter().find(|(at, _)| *at == ppn).map(|(_, lpn)| Lpn(*lpn));
                s.spares.lpn(ppn) == lpn
            })
        };
        assert!(is_as_placed(&s, &held), "seed {seed}");
        let torn = Ppn(s.first(sb).0 + rng.below(u64::from(g.slices_per_superblock() / 4)) as u32 * 4);
        if rng.below(2) == 0 {
            s.spares.erase(torn, 4);
            held.retain(|(ppn, _)| !(torn.0..torn.0 + 4).contains(&ppn.0));
        } else {
            s.spares.will_be_read(sb);
        }
        assert!(is_as_placed(&s, &held), "seed {seed}, slice by slice");
        s.spares.erase(s.first(sb), g.slices_per_superblock());
        assert!(is_as_placed(&s, &[]), "seed {seed}, erased");
    }
}
