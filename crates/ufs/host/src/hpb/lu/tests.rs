// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device control mode, beyond the rows of `linux::conformance`: bounds, memory, and the entries sent.

use super::*;
use crate::hpb::HpbRequest;
use readpath_proto::hpb::HpbGeometry;
use readpath_proto::typed::{HpbEntry, HpbNotification};

/// 8 regions of two sub-regions of 16 entries.
fn setup(max_active: u32, pinned: std::ops::Range<u32>) -> UnitSetup {
    let geometry = HpbGeometry::new(8, 7, 256).unwrap();
    UnitSetup { geometry, max_active, pinned, single_blocks: 1, max_blocks: 1, host_control: false, queue_depth: 31 }
}

/// Two regions may be active.
fn lu(options: HpbOptions) -> HpbLu {
    let mut lu = HpbLu::new(&setup(2, 0..0), options, Ns::ZERO).unwrap();
    lu.present();
    lu
}

/// A port with one tag.
#[derive(Default)]
struct OneTag(Option<MapRequest>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MapRequest {
    at: SubRegion,
    bytes: u32,
}

impl Port for OneTag {
    fn has_tag(&self) -> bool {
        self.0.is_none()
    }

    fn in_flight(&self) -> u32 {
        u32::from(self.0.is_some())
    }

    fn send(&mut self, request: HpbRequest) -> bool {
        let free = self.has_tag();
        if let HpbRequest::Load { at, bytes, .. } = request
            && free
        {
            self.0 = Some(MapRequest { at, bytes });
        }
        free
    }

    fn writes_in_flight(&self, _: impl FnMut(u32, u32)) {}
}

trait Steps {
    fn next_work(&mut self) -> Option<MapRequest>;
    fn entry(&mut self, block: u32, blocks: u32) -> Option<HpbEntry>;
}

impl Steps for HpbLu {
    /// What the worker sends if there is one tag.
    fn next_work(&mut self) -> Option<MapRequest> {
        let mut port = OneTag::default();
        self.run_worker(Ns::ZERO, &mut port);
        port.0
    }

    fn entry(&mut self, block: u32, blocks: u32) -> Option<HpbEntry> {
        self.entry_for(Ns::ZERO, block, blocks)
    }
}

fn activate(region: u16, index: u16) -> HpbNotification {
    let mut n = HpbNotification { operation: HpbNotification::REGION_UPDATE, active_count: 1, ..Default::default() };
    n.active[0] = SubRegion { region, index };
    n
}

fn inactivate(region: u16) -> HpbNotification {
    let mut n = HpbNotification { operation: HpbNotification::REGION_UPDATE, inactive_count: 1, ..Default::default() };
    n.inactive[0] = region;
    n
}

fn bytes(seed: u8) -> Vec<u8> {
    (0..16 * 8).map(|i| (i as u8).wrapping_mul(3) ^ seed | 1).collect()
}

fn load(lu: &mut HpbLu, region: u16, index: u16, seed: u8) {
    assert!(lu.notified(&activate(region, index)));
    let request = lu.next_work().unwrap();
    assert_eq!((request.at, request.bytes), (SubRegion { region, index }, 128));
    lu.loaded(request.at, Some(&bytes(seed)));
}

#[test]
fn a_loaded_entry_is_sent_verbatim_until_its_block_is_written() {
    let mut lu = lu(HpbOptions::default());
    assert_eq!(lu.entry(20, 1), None);
    load(&mut lu, 0, 1, 7);
    assert_eq!(lu.entry(20, 1), Some(HpbEntry(bytes(7)[32..40].try_into().unwrap())));
    assert_eq!(lu.entry(20, 2), None, "longer than one block: not eligible, not counted");
    lu.write(20, 1);
    assert_eq!(lu.entry(20, 1), None);
    assert!(lu.entry(21, 1).is_some());
    let c = lu.counters();
    assert_eq!((c.hit_cnt, c.miss_cnt, c.rcmd_noti_cnt, c.rcmd_active_cnt, c.map_req_cnt), (2, 2, 1, 1, 1));
}

#[test]
fn the_oldest_activated_region_makes_room_reads_do_not_count_on_linux() {
    for (order, survivor) in [(ListOrder::Activation, 1), (ListOrder::Recency, 0)] {
        let mut lu = lu(HpbOptions { order, ..HpbOptions::default() });
        load(&mut lu, 0, 0, 1);
        load(&mut lu, 1, 0, 1);
        assert!(lu.entry(0, 1).is_some());
        load(&mut lu, 2, 0, 1);
        assert_eq!(lu.counters().evict_cnt, 1);
        for region in 0..2 {
            let expected = if region == survivor { RegionState::Active } else { RegionState::Inactive };
            assert_eq!(lu.region_state(region), expected, "{order:?}");
        }
    }
}

#[test]
fn inactivation_stops_use_at_once_and_waits_for_a_load() {
    let mut lu = lu(HpbOptions::default());
    load(&mut lu, 0, 0, 1);
    lu.notified(&activate(0, 1));
    let request = lu.next_work().unwrap();
    lu.notified(&inactivate(0));
    assert_eq!(lu.entry(0, 1), None);
    assert_eq!(lu.next_work(), None);
    assert_eq!(lu.region_state(0), RegionState::Active, "busy with a load");
    lu.loaded(request.at, Some(&bytes(1)));
    assert_eq!(lu.next_work(), None);
    assert_eq!(lu.region_state(0), RegionState::Inactive);
    assert_eq!(lu.memory().map_bytes, 0);
    assert_eq!(lu.memory().peak_bytes, 2 * (128 + 2));
}

#[test]
fn what_is_out_of_range_is_refused_whole() {
    let mut lu = lu(HpbOptions::default());
    let mut both = activate(1, 0);
    both.active_count = 2;
    both.active[1] = SubRegion { region: 8, index: 0 };
    for bad in
        [activate(8, 0), activate(0, 2), inactivate(8), both, HpbNotification { active_count: 3, ..activate(0, 0) }]
    {
        assert!(!lu.notified(&bad));
    }
    assert!(!lu.notified(&HpbNotification { operation: 1, ..Default::default() }), "nothing listed");
    assert_eq!(lu.next_work(), None);
    assert_eq!((lu.counters().rejected_noti_cnt, lu.counters().rcmd_noti_cnt), (6, 0));
}

#[test]
fn memory_is_bounded_by_the_host_too() {
    let options = HpbOptions { max_map_bytes: Some(300), ..HpbOptions::default() };
    let mut lu = HpbLu::new(&setup(8, 0..0), options, Ns::ZERO).unwrap();
    lu.present();
    load(&mut lu, 0, 0, 1);
    load(&mut lu, 1, 0, 1);
    assert_eq!(lu.memory().map_bytes, 128, "300 bytes hold one region of 256");
}
