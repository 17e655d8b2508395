// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules that prevent a host of the prototype from sending outdated hints, one by one.

use super::*;
use readpath_proto::groups::GroupPair;

/// Two groups of 64 blocks, the second one short.
fn lu() -> GroupLu {
    GroupLu::new(100, 64, &HpbOptions::DEFAULT).expect("memory for both")
}

/// A port with unlimited tags.
#[derive(Default)]
struct Loads(Vec<(u32, u32)>);

impl Port for Loads {
    fn has_tag(&self) -> bool {
        true
    }

    fn in_flight(&self) -> u32 {
        0
    }

    fn send(&mut self, request: HpbRequest) -> bool {
        let HpbRequest::Load { at, bytes, .. } = request else { panic!("{request:?}") };
        self.0.push((group_of(at), bytes));
        true
    }

    fn writes_in_flight(&self, _: impl FnMut(u32, u32)) {}
}

/// Groups that are requested now, and the bytes of each.
fn asked_for(lu: &mut GroupLu) -> Vec<(u32, u32)> {
    let mut port = Loads::default();
    lu.run_worker(&mut port);
    port.0
}

/// The entry of block `n` is at `first` + n.
fn map(blocks: u32, first: u32) -> Vec<u8> {
    (first..first + blocks).flat_map(|address| GroupEntry::of(address).0).collect()
}

fn address(lu: &mut GroupLu, block: u32, blocks: u32) -> Option<u32> {
    lu.hint_for(block, blocks).map(|hint| GroupHint::from_entry(hint).entry.address())
}

fn notify(lu: &mut GroupLu, dirty: Option<u32>, pair: Option<(u32, u32)>, update: u8) -> Option<u8> {
    let pair = pair.map(|(lba, address)| GroupPair { lba, entry: GroupEntry::of(address) });
    lu.notified(&GroupNotice::new(dirty, pair, update).expect("a dirty group or a changed entry"))
}

/// Group 0 is being loaded.
fn loading() -> GroupLu {
    let mut lu = lu();
    assert_eq!((address(&mut lu, 1, 1), asked_for(&mut lu)), (None, vec![]), "one read is not enough");
    assert_eq!((address(&mut lu, 1, 1), asked_for(&mut lu)), (None, vec![(0, 64 * 4)]));
    lu
}

/// Group 0 is held from address 1000 on.
fn held() -> GroupLu {
    let mut lu = loading();
    lu.loaded(group_at(0), Some(&map(64, 1000)));
    lu
}

#[test]
fn a_group_is_used_when_it_is_here() {
    let mut lu = loading();
    assert_eq!(address(&mut lu, 1, 1), None);
    lu.loaded(group_at(0), Some(&map(64, 1000)));
    assert_eq!(
        [(1, 1), (3, 61), (3, 62), (70, 1)].map(|(block, n)| address(&mut lu, block, n)),
        [Some(1001), Some(1003), None, None]
    );
    address(&mut lu, 70, 1);
    assert_eq!(asked_for(&mut lu), [(1, 36 * 4)], "of the last group only what there is");
}

#[test]
fn a_block_named_while_its_group_is_loaded_has_no_entry() {
    let mut lu = loading();
    assert_eq!(notify(&mut lu, None, Some((5, 77)), 1), Some(1));
    lu.loaded(group_at(0), Some(&map(64, 1000)));
    assert_eq!([4, 5, 6].map(|block| address(&mut lu, block, 1)), [Some(1004), None, Some(1006)]);
    assert_eq!(address(&mut lu, 4, 3), None, "nor by a longer read");
    notify(&mut lu, None, Some((5, 78)), 2);
    assert_eq!(address(&mut lu, 5, 1), Some(78), "until it is named again");
}

#[test]
fn a_dirty_group_is_not_used_until_it_is_loaded_again() {
    let mut lu = held();
    notify(&mut lu, Some(0), Some((5, 77)), 1);
    assert_eq!([4, 5].map(|block| address(&mut lu, block, 1)), [None; 2]);
    (0..30).for_each(|_| assert_eq!(address(&mut lu, 4, 1), None));
    assert_eq!(asked_for(&mut lu), [(0, 64 * 4)]);
    lu.loaded(group_at(0), Some(&map(64, 2000)));
    assert_eq!([4, 5].map(|block| address(&mut lu, block, 1)), [Some(2004), Some(2005)]);
}

#[test]
fn nothing_is_left_of_a_load_that_fails_and_of_a_reset() {
    let mut lu = held();
    notify(&mut lu, Some(0), None, 0);
    (0..32).for_each(|_| assert_eq!(address(&mut lu, 4, 1), None));
    assert_eq!(asked_for(&mut lu).len(), 1);
    lu.loaded(group_at(0), None);
    assert_eq!((address(&mut lu, 4, 1), lu.memory().map_bytes), (None, 0));
    let mut lu = held();
    lu.saw(9);
    lu.reset();
    assert_eq!((address(&mut lu, 4, 1), lu.memory().map_bytes), (None, 0));
    // The answer to a load from before the reset is ignored.
    lu.loaded(group_at(0), Some(&map(64, 1000)));
    assert_eq!((address(&mut lu, 4, 1), asked_for(&mut lu).len()), (None, 1));
    lu.loaded(group_at(0), Some(&map(64, 1000)));
    assert_eq!(lu.hint_for(4, 1).map(|hint| GroupHint::from_entry(hint).seen), Some(0));
}

#[test]
fn a_host_that_sleeps_sends_nothing_and_takes_in_notices() {
    let mut lu = held();
    lu.set_asleep(true);
    assert_eq!(address(&mut lu, 4, 1), None);
    notify(&mut lu, None, Some((4, 77)), 1);
    assert_eq!([70; 2].map(|block| address(&mut lu, block, 1)), [None; 2]);
    assert_eq!(asked_for(&mut lu), []);
    lu.set_asleep(false);
    assert_eq!((address(&mut lu, 4, 1), address(&mut lu, 5, 1)), (Some(77), Some(1005)));
}

#[test]
fn what_the_unit_does_not_have_is_refused() {
    let mut lu = held();
    assert_eq!(notify(&mut lu, Some(2), Some((4, 77)), 1), None);
    assert_eq!(notify(&mut lu, Some(0), Some((100, 77)), 1), None);
    assert_eq!((address(&mut lu, 4, 1), lu.counters().rejected_noti_cnt), (Some(1004), 2));
}

/// The most groups that fit together with the tables, whose list of free maps has a place for each map.
#[test]
fn all_of_the_memory_is_used_and_no_more() {
    let with = |bytes| GroupLu::new(64 * 64, 64, &HpbOptions { memory_bytes: Some(bytes), ..HpbOptions::DEFAULT });
    let Err(ParamError::TooLittleMemory { least, .. }) = with(1) else { panic!("one byte holds nothing") };
    assert!(with(least - 1).is_err(), "the message says how much it takes");
    let mut more = 0;
    for maps in 1..=64 {
        let mut lu = with(least + more).expect("room for so many");
        for group in 0..=maps {
            (0..2).for_each(|_| assert_eq!(address(&mut lu, (group % 64) * 64, 1), None));
            asked_for(&mut lu);
        }
        let memory = lu.memory();
        assert_eq!(lu.maps, maps);
        assert_eq!(memory.peak_bytes + memory.table_bytes, least + more, "{maps} maps");
        more += 64 * 4 + 4;
    }
}
