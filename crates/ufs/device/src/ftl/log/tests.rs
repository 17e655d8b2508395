// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order in which records and superblocks have to reach flash.

use super::durable::Held;
use super::state::Step;
use super::*;
use crate::back::{Back, NoMedia};
use crate::config::{DeviceConfig, LuConfig, ZoneConfig, ZoneLayout, ZoneRule};
use crate::ftl::Stall;
use crate::ftl::map::Map;
use crate::ftl::pump::tests::anchors::config;
use crate::ftl::space::{Purpose, State};
use crate::ftl::zones::{Extent, ZoneState, ZoneStates};
use crate::ids::SuperblockId;
use readpath_flash::Lean;
use readpath_kit::Ns;

fn parts() -> (Space, Map, Log) {
    let config = Arc::new(config());
    let space = Space::new(&config);
    let log = Log::new(config.clone(), &space);
    (space, Map::new(&config), log)
}

/// Writes all records so far to flash.
fn write_journal(log: &mut Log) -> Vec<Record> {
    let (records, up_to) = log.journal.take(usize::MAX);
    log.journal.written(up_to);
    records
}

#[test]
fn a_superblock_is_written_only_when_flash_names_it() {
    let (mut space, mut map, mut log) = parts();
    for _ in 0..2 {
        assert_eq!(log.prepare_unit(&mut space, &map, Stream::Hot, Purpose::Host), Err(Stall::Journal));
        assert!(log.journal.must_write(), "the record is asked for");
    }
    let opened = space.open_of(Stream::Hot).expect("it is open, but not written");
    let [Record::Open { stream, superblock, .. }] = write_journal(&mut log)[..] else { panic!("one record") };
    assert_eq!((stream, superblock), (Stream::Hot, opened));
    assert_eq!(log.prepare_unit(&mut space, &map, Stream::Hot, Purpose::Host), Ok(()));
    let unit = log.take_unit(&mut space, &mut map, Stream::Hot, 1).expect("it was prepared");
    assert_eq!((space.of(unit), space.programs()), (opened, 1));
    assert_eq!(log.prepare_unit(&mut space, &map, Stream::Cold, Purpose::Move), Err(Stall::Journal), "another stream");
}

#[test]
fn a_unit_needs_room_for_its_changes_and_no_checkpoint_about_to_be_put_together() {
    let (mut space, mut map, mut log) = parts();
    map.reserve(map.room() - 1);
    assert_eq!(log.prepare_unit(&mut space, &map, Stream::Host, Purpose::Host), Err(Stall::MapChanges));
    log.checkpoint.step = Step::Quiet;
    assert_eq!(log.prepare_unit(&mut space, &map, Stream::Host, Purpose::Host), Err(Stall::Checkpoint));
    assert_eq!(space.open_of(Stream::Host), None, "nothing was opened");
}

#[test]
fn what_recovery_may_need_is_not_given_up() {
    let (mut space, _, mut log) = parts();
    let sb = space.open(Stream::Meta, 1).expect("an erased superblock");
    space.close(Stream::Meta, 1);
    log.stream.pin(0, sb);
    log.discard_if_empty(&mut space, sb);
    assert!(space.is_empty(sb) && log.journal.newest() == 0, "it stays");
    log.stream.pins[sb.index()] = 0;
    log.discard_if_empty(&mut space, sb);
    assert_eq!(write_journal(&mut log), [Record::Erase { superblock: sb }]);
    assert_eq!(space.waits_to_be_erased(), Some(1), "when that record is in flash");
}

#[test]
fn requests_wait_for_the_trims_before_them() {
    let (_, _, mut log) = parts();
    let (first, second) = (TagRef { tag: 1, life: 1 }, TagRef { tag: 2, life: 1 });
    assert!(!log.sync_trims(first), "nothing was trimmed");
    log.note_trim(Lpn(3), 4, 1);
    assert!(log.sync_trims(first));
    let (_, up_to) = log.journal.take(usize::MAX);
    log.note_trim(Lpn(9), 1, 2);
    assert!(log.sync_trims(second));
    log.journal.written(up_to);
    let mut effects = Effects::new();
    log.journal_moved_on(&mut effects);
    assert_eq!((effects.take(), effects.take()), (Some(Effect::PartInFlash(first)), None));
    write_journal(&mut log);
    log.journal_moved_on(&mut effects);
    assert_eq!((effects.take(), log.sync_trims(first)), (Some(Effect::PartInFlash(second)), false));
}

/// A medium may lose the newest anchor, and keep the journal behind it.
#[test]
fn what_recovery_has_read_is_erased_behind_the_next_anchor() {
    let (mut space, mut map, mut log) = parts();
    let mut hw: Back<Lean, NoMedia, ()> = Back::new(&config(), ());
    let [old, open] = [1, 2].map(|opened_at| {
        space.close(Stream::Meta, 1);
        space.open(Stream::Meta, opened_at).expect("an erased superblock")
    });
    log.durable.checkpoint.superblocks = space.snapshot();
    log.durable.checkpoint.places = vec![space.first(old)];
    let journal = Held::Journal { first: 1, records: vec![Record::Erase { superblock: old }] };
    log.durable.log = vec![Logged::Meta { first: space.first(open), parts: 1 }, Logged::Part(journal)];
    log.power_cut(&mut map);
    log.recover(Ns::ZERO, &mut space, (&mut map, &mut crate::ftl::Zones::new(&config())), &mut hw);
    assert_eq!((space.get(old).state, space.waits_to_be_erased()), (State::Closed(Stream::Meta), None));
    log.stream.pins[old.index()] = 0;
    log.discard_if_empty(&mut space, old);
    assert_eq!(write_journal(&mut log), [Record::Erase { superblock: old }], "another anchor is there");
}

/// `config` with a unit of a zone of 8 blocks, two programs.
fn with_a_zone() -> DeviceConfig {
    let mut config = config();
    let zones = ZoneConfig {
        layout: ZoneLayout::Native,
        blocks: 8,
        most_open: 1,
        rule: ZoneRule::Zbc,
        program_blocks: 4,
        flush_blocks: 4,
    };
    config.lus.push(LuConfig { blocks: 8, hpb: false, max_active_regions: 0, zones: Some(zones), ..config.lus[0] });
    config
}

/// A part of a zone has blocks, and lies in a superblock.
#[test]
fn a_checkpoint_with_impossible_parts_of_zones_is_not_taken() {
    let config = with_a_zone();
    let may_be = |placed, from, program| {
        let state = ZoneState { begins: Some(SuperblockId(3)), placed, finished: None };
        let others = vec![(0, from, Extent { superblock: SuperblockId(4), program })];
        ZoneStates { zones: vec![state], others, rests: Vec::new() }.are_possible(&config)
    };
    assert!(may_be(8, 4, 0) && may_be(8, 0, 1));
    assert!(!may_be(4, 4, 0), "a part without a block");
    assert!(!may_be(4, 8, 0), "a part behind the zone's end");
    assert!(!may_be(8, 4, config.zone_slices() / 4), "a part behind its superblock");
}

/// A rest that is moved while its program begins is found behind that program. The program counts all the same.
#[test]
fn a_program_of_a_zone_counts_before_copies_of_its_blocks() {
    let config = with_a_zone();
    let base = config.mapped_blocks() as u32;
    let config = Arc::new(config);
    let (mut space, mut map) = (Space::new(&config), Map::new(&config));
    let (mut log, mut zones) = (Log::new(config.clone(), &space), crate::ftl::Zones::new(&config));
    let mut hw: Back<Lean, NoMedia, ()> = Back::new(&config, ());
    let of_zone = space.open_for_zone(1).expect("an erased superblock");
    let whole = space.slice_of_program(of_zone, 0, 0);
    space.take_program(of_zone);
    space.open(Stream::Moved, 2).expect("an erased superblock");
    let copy = space.next_unit(Stream::Moved, 2).expect("a unit");
    (0..4).for_each(|i| space.spares_mut().program(Ppn(whole.0 + i), Lpn(base + i), 10 + i));
    space.spares_mut().program(copy, Lpn(base), 10);
    log.durable.checkpoint.superblocks = space.snapshot();
    log.durable.log = vec![Logged::Data { first: whole }, Logged::Data { first: copy }];
    log.power_cut(&mut map);
    log.recover(Ns::ZERO, &mut space, (&mut map, &mut zones), &mut hw);
    assert_eq!(zones.placed().blocks(0), 4);
    assert_eq!((map.rest(Lpn(base)), space.get(of_zone).refs), (None, 4));
}

/// Otherwise they could fill the last superblock before the checkpoint lets others be erased.
#[test]
fn with_all_that_the_map_may_take_records_wait_for_a_checkpoint_in_progress() {
    for (left, step, begun) in [(1, Step::Anchor, 1), (0, Step::Parts, 0), (0, Step::Anchor, 0), (0, Step::Idle, 1)] {
        let (mut space, mut map, mut log) = parts();
        let mut hw: Back<Lean, NoMedia, ()> = Back::new(&config(), ());
        while !space.meta_may_take_at_most(left) {
            space.close(Stream::Meta, 1);
            space.open(Stream::Meta, 1).expect("an erased superblock");
        }
        let record = log.journal.push(Record::Erase { superblock: crate::ids::SuperblockId(9) });
        log.journal.want(record);
        log.checkpoint.step = step;
        log.program_meta(Ns::ZERO, (&mut space, &mut map), 1, &mut hw);
        assert_eq!(log.stream.in_flight, begun, "{left} left, {step:?}");
    }
}
