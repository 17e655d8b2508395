// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map against a plain model of each block: slot, place in flash, and entry in its map page.

use super::*;
use readpath_kit::Prng;

const PAGE: u32 = 16;
const BLOCKS: u32 = 5 * PAGE;

/// A map of `blocks` blocks, with a slot of the write buffer for each, and three sets of runs.
pub(crate) fn map(blocks: u32, page_entries: u32) -> Map {
    Map::of(PageMap::new(u64::from(blocks), page_entries), 2, 3 * 96, blocks, &FtlConfig::DEFAULT)
}

#[derive(Clone, Copy, Default)]
struct Block {
    slot: Option<u16>,
    in_flash: Option<u32>,
    is_recent: bool,
    page_says: Option<u32>,
}

/// A map page being written back: its number, its entries, and its changes.
struct Writing {
    page: MapPage,
    says: Vec<Option<u32>>,
    taken: Taken,
}

fn entry(ppn: Option<u32>) -> Entry {
    ppn.map_or(Entry::UNMAPPED, |ppn| Entry::at(Ppn(ppn)))
}

fn check(map: &Map, blocks: &[Block]) {
    for (lpn, block) in Lpn(0).run(BLOCKS).zip(blocks) {
        let in_flash = entry(block.in_flash).mapping();
        let newest = block.slot.map_or(in_flash, Mapping::Buffered);
        assert_eq!((map.get(lpn), map.flash_entry(lpn).mapping()), (newest, in_flash), "{lpn:?}");
        assert_eq!(map.known(lpn), (block.slot.is_some() || block.is_recent).then_some(newest), "{lpn:?}");
    }
}

/// Blocks that runs place; each has to lie there, unless SRAM knows a newer place.
fn check_runs(map: &mut Map, blocks: &[Block]) -> (u32, u32) {
    let (mut placed, mut longest) = (0, 0);
    for lpn in Lpn(0).run(BLOCKS) {
        let Some((at, length)) = map.in_run(lpn) else { continue };
        for (i, block) in (0..length).zip(&blocks[lpn.index()..]) {
            assert_eq!(block.in_flash, Some(at.0 + i), "{lpn:?} and {i}");
        }
        (placed, longest) = (placed + 1, longest.max(length));
    }
    (placed, longest)
}

#[test]
fn blocks_are_where_a_plain_model_says_whatever_is_written_back_or_lost() {
    let rng = &mut Prng::new(3);
    let mut map = map(BLOCKS, PAGE);
    let mut blocks = vec![Block::default(); BLOCKS as usize];
    let mut writing: Vec<Writing> = Vec::new();
    let (mut settled, mut stayed) = (0, 0);
    let (mut placed, mut longest) = (0, 0);
    for ppn in 0..30_000 {
        let lpn = Lpn(rng.below(u64::from(BLOCKS)) as u32);
        let slot = lpn.0 as u16;
        let block = &mut blocks[lpn.index()];
        match rng.below(50) {
            40.. => map.enter_run(Paid::for_page(map.page_of(lpn)), lpn),
            0..10 => {
                map.enter_buffer(lpn, slot);
                block.slot = Some(slot);
            }
            10..30 => {
                // Half of the places follow on those of neighbours.
                let to = [None, Some(ppn), Some(100_000 + lpn.0), Some(200_000 + lpn.0)][rng.below(4) as usize];
                map.leave_buffer(lpn, slot);
                assert_eq!(map.relocate(lpn, entry(to)).mapping(), entry(block.in_flash).mapping());
                (block.slot, block.in_flash, block.is_recent) = (None, to, true);
            }
            30..34 => {
                let page = map.page_of(lpn);
                if !map.changes().is_being_written(page) {
                    map.begin_write(page);
                    let says = map.blocks_of(page).map(|lpn| blocks[lpn.index()].in_flash).collect();
                    writing.push(Writing { page, says, taken: map.put_together(Paid::for_page(page)) });
                }
            }
            34..39 if !writing.is_empty() => {
                let Writing { page, says, mut taken } = writing.swap_remove(0);
                loop {
                    let merged = map.next_merged(&mut taken);
                    if merged.is_empty() {
                        break;
                    }
                    for (change, merged) in merged.iter() {
                        let block = &mut blocks[change.lpn.index()];
                        assert_eq!(change.persisted, entry(block.page_says));
                        match map.settle(page, change, merged) {
                            Settled::Clean(_) => (block.is_recent, settled) = (false, settled + 1),
                            Settled::Stays => stayed += 1,
                        }
                    }
                }
                map.written(page, Ppn(page.0), ppn);
                for (lpn, says) in map.blocks_of(page).zip(says) {
                    let block = &mut blocks[lpn.index()];
                    block.page_says = says;
                    assert!(block.is_recent || block.in_flash == says, "{lpn:?} is taken for clean");
                }
            }
            39 if rng.below(20) == 0 => {
                let held: Vec<_> = Lpn(0).run(BLOCKS).zip(&blocks).filter_map(|(l, b)| Some((l, b.slot?))).collect();
                map.power_cut(held.into_iter(), writing.drain(..).map(|writing| writing.taken));
                for block in &mut blocks {
                    *block = Block { in_flash: block.page_says, page_says: block.page_says, ..Block::default() };
                }
            }
            _ => {}
        }
        let named = blocks.iter().filter(|block| block.is_recent && block.in_flash.is_some()).count();
        assert_eq!(map.changes().used() as usize, named, "changes that name a slice");
        if ppn % 16 == 0 {
            check(&map, &blocks);
            let (some, length) = check_runs(&mut map, &blocks);
            (placed, longest) = (placed + some, longest.max(length));
        }
    }
    check(&map, &blocks);
    assert!(placed > 10_000 && longest > 4, "{placed} blocks were placed by runs, the longest of {longest}");
    assert!(settled > 1000 && stayed > 100, "{settled} settled, {stayed} stayed");
}

#[test]
fn a_page_is_paid_for_when_it_is_there_or_when_there_is_none() {
    let mut map = map(BLOCKS, PAGE);
    assert_eq!(map.missing(MapPage(2)).map(Paid::page), Some(MapPage(2)), "the directory says that there is none");
    map.place_page(MapPage(2), Ppn(8), 1);
    assert_eq!(
        (map.missing(MapPage(2)), map.cached(MapPage(2)), map.look_up(MapPage(2))),
        (None, None, FrameState::Absent)
    );
    map.preload();
    assert_eq!(map.cached(MapPage(1)).map(Paid::page), Some(MapPage(1)));
    assert_eq!(map.cached(MapPage(2)), None, "two frames hold the first two pages");
    assert_eq!((map.room(), map.wants_write_back()), (FtlConfig::DEFAULT.map_changes, false));
    map.reserve(FtlConfig::DEFAULT.map_changes / 4 * 3);
    assert_eq!((map.room(), map.wants_write_back()), (FtlConfig::DEFAULT.map_changes / 4, false));
    map.reserve(1);
    assert!(map.wants_write_back(), "more than three quarters are taken");
}
