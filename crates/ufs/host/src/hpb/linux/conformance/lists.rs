// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notifications and the worker: what is queued, the order of work, which region is evicted, and what happens when a
//! command cannot be sent.

use super::Command::{Drop, Load};
use super::Hosts::*;
use super::Modes::*;
use super::Step::*;
use super::*;
use RegionState as R;
use SubRegionState as S;

/// Sub-regions of 1024 blocks, and Linux's thresholds.
const BIG: Unit = Unit { sub_region_size: 13, params: HpbParams { inflight_map_req: 9, ..HpbParams::LINUX }, ..UNIT };

const fn row(what: &'static str, modes: Modes, hosts: Hosts, steps: &'static [Step]) -> Row {
    Row { what, modes, hosts, unit: WIDE, steps }
}

#[test]
#[rustfmt::skip] // A table: a row each.
fn notifications() {
    play(&[
        row("active item: loaded", Dcm, Any, &[
            Activate(0, 1), Sent(&[Load(0, 1)]), Counter("rcmd_noti_cnt", 1), Counter("rcmd_active_cnt", 1),
            Counter("map_req_cnt", 1),
        ]),
        row("active item, region not active: ignored", Hcm, Any, &[
            Activate(0, 1), Sent(&[]), Counter("rcmd_noti_cnt", 1), Counter("rcmd_active_cnt", 0),
        ]),
        row("active item, region active: loaded again", Hcm, Any, &[
            Hold(0, 0), Activate(0, 0), Sent(&[Load(0, 0)]), Counter("rcmd_active_cnt", 2),
        ]),
        Row { unit: Unit { max_active: 4, pinned: 2..4, ..WIDE }, ..row("active item, region pinned: ignored", Hcm,
            Any, &[
            Loaded(2, 0), Loaded(2, 1), Loaded(3, 0), Loaded(3, 1),
            Sent(&[Load(2, 0), Load(2, 1), Load(3, 0), Load(3, 1)]),
            Activate(2, 0), Hit(64, 1), Sent(&[]),
        ]) },
        row("inactive item: ignored", Hcm, Any, &[
            Hold(0, 0), Inactivate(0), Hit(0, 1), Counter("rcmd_noti_cnt", 1), Counter("rcmd_inactive_cnt", 0),
        ]),
        row("both for the same region: inactivation wins", Dcm, Any, &[
            Hold(3, 0), ActivateAndInactivate(3, 1), Sent(&[]), Region(3, R::Inactive),
        ]),
        row("activation takes the region off the list of those to be dropped", Dcm, Any, &[
            Hold(0, 0), Suspend, Inactivate(0), Activate(0, 1), Resume, Sent(&[Load(0, 1)]), Region(0, R::Active),
            Sub(0, 0, S::Invalid),
        ]),
        row("inactivation takes its sub-regions off the list of those to be loaded", Dcm, Any, &[
            Suspend, Activate(0, 0), Activate(0, 1), Activate(1, 0), Inactivate(0), Resume, Sent(&[Load(1, 0)]),
        ]),
        row("queued twice, done once; Linux counts both", Dcm, Linux, &[
            Hold(0, 0), Suspend, Activate(1, 0), Activate(1, 0), Inactivate(0), Inactivate(0), Resume,
            Sent(&[Load(1, 0)]),
            Counter("rcmd_active_cnt", 3), Counter("rcmd_inactive_cnt", 2),
        ]),
        row("queued twice, done and counted once", Dcm, Own, &[
            Hold(0, 0), Suspend, Activate(1, 0), Activate(1, 0), Inactivate(0), Inactivate(0), Resume,
            Sent(&[Load(1, 0)]),
            Counter("rcmd_active_cnt", 2), Counter("rcmd_inactive_cnt", 1),
        ]),
        row("what does not exist is refused: Linux would write where it must not", Both, Any, &[
            OutOfRange, Counter("rcmd_noti_cnt", 0), Sent(&[]),
        ]),
        row("an unknown operation is counted", Both, Any, &[Hold(0, 0), Unknown, Counter("rcmd_noti_cnt", 1),
            Hit(0, 1)]),
        Row { unit: Unit { max_active: 4, pinned: 2..4, ..WIDE }, ..row(
            "device lost everything: all but pinned dropped", Dcm, Any, &[
            Loaded(2, 0), Loaded(2, 1), Loaded(3, 0), Loaded(3, 1),
            Sent(&[Load(2, 0), Load(2, 1), Load(3, 0), Load(3, 1)]),
            Hold(0, 0), Hold(1, 0), Lost, Counter("rcmd_inactive_cnt", 2), Miss(0, 1), Miss(32, 1), Hit(64, 1),
            Sent(&[]),
            Region(0, R::Inactive), Region(2, R::Pinned),
        ]) },
        row("device lost everything: on Linux one sub-region of each region is loaded again", Hcm, Linux, &[
            Hold(0, 0), Hold(0, 1), Lost, Hit(0, 1), Hit(16, 1), Wait(200), Sent(&[Load(0, 0)]), Loaded(0, 0),
            Hit(16, 1),
            Wait(200), Sent(&[]),
        ]),
        row("device lost everything: every sub-region is loaded again when touched", Hcm, Own, &[
            Hold(0, 0), Hold(0, 1), Lost, Hit(0, 1), Hit(16, 1), Wait(200), Sent(&[Load(0, 0), Load(0, 1)]),
        ]),
        row("device lost everything: a write touches as well", Hcm, Any, &[
            Hold(0, 0), Lost, Write(3, 1), Wait(200), Sent(&[Load(0, 0)]),
        ]),
        row("device lost everything: what is not held is not marked", Hcm, Any, &[Lost, Reads(0, 1), Wait(200),
            Sent(&[])]),
        Row { unit: Unit { max_active: 4, pinned: 2..4, ..WIDE }, ..row(
            "device lost everything: Linux keeps pinned entries", Hcm, Linux, &[
            Loaded(2, 0), Sent(&[Load(2, 0), Load(2, 1), Load(3, 0), Load(3, 1)]), Lost, Reads(64, 7), Wait(200),
            Sent(&[]),
        ]) },
        Row { unit: Unit { max_active: 4, pinned: 2..4, ..WIDE }, ..row("device lost everything: pinned ones too", Hcm,
            Own, &[
            Loaded(2, 0), Sent(&[Load(2, 0), Load(2, 1), Load(3, 0), Load(3, 1)]), Lost, Reads(64, 1), Wait(200),
            Sent(&[Load(2, 0)]),
        ]) },
    ]);
}

#[test]
#[rustfmt::skip] // A table: a row each.
fn the_worker() {
    play(&[
        row("drops before loads", Dcm, Any, &[
            Hold(0, 0), Hold(1, 0), Suspend, Activate(2, 0), Inactivate(1), Resume, Sent(&[Load(2, 0)]),
            Region(0, R::Active), Region(1, R::Inactive),
        ]),
        row("loads in the order in which they were queued", Dcm, Any, &[
            Suspend, Activate(1, 1), Activate(0, 0), Activate(1, 0), Resume,
            Sent(&[Load(1, 1), Load(0, 0), Load(1, 0)]),
        ]),
        row("loads at the same time: as many as there are tags", Dcm, Any, &[
            Tags(2), Suspend, Activate(0, 0), Activate(0, 1), Activate(1, 0), Resume, Sent(&[Load(0, 0), Load(0, 1)]),
        ]),
        row("not started by the end of a load on Linux", Dcm, Linux, &[
            Activate(0, 0), Sent(&[Load(0, 0)]), Activate(0, 0), Activate(1, 0), Sent(&[]), Loaded(0, 0), Sent(&[]),
            Reply,
            Sent(&[]), Unknown, Sent(&[]), Inactivate(7), Sent(&[Load(0, 0), Load(1, 0)]),
        ]),
        row("what reads have queued waits for the timer", Hcm, Any, &[
            Reads(0, 8), Reply, Sent(&[]), Wait(199), Sent(&[]), Wait(1), Sent(&[Load(0, 0)]),
        ]),
        row("Linux ends at the first that cannot be loaded", Hcm, Linux, &[
            Hold(0, 0), Hold(1, 0), Queue(2, 0), Queue(0, 1), Wait(200), Sent(&[]), Wait(200), Sent(&[]),
            Reads(64, 14), Wait(200), Sent(&[Drop(0), Load(2, 0)]),
        ]),
        row("one that cannot be loaded does not block the others", Hcm, Own, &[
            Hold(0, 0), Hold(1, 0), Queue(2, 0), Queue(0, 1), Wait(200), Sent(&[Load(0, 1)]),
        ]),
        row("no tag for a load on Linux: five attempts, 3 ms apart, then the worker waits for a wake-up", Dcm,
            Linux, &[
            Hold(0, 0), Tags(0), Activate(0, 0), Sub(0, 0, S::Issued), Wait(11), Tags(0), Wait(1),
            Sub(0, 0, S::Invalid),
            Timer(false), Tags(5), Wait(1000), Sent(&[]), Activate(0, 1), Sent(&[Load(0, 0), Load(0, 1)]),
        ]),
        row("no tag for a load on Linux: a tag at the fifth attempt", Both, Linux, &[
            Hold(0, 0), Queue(0, 1), Suspend, Tags(0), Resume, Wait(11), Sent(&[]), Tags(1), Reply, Sent(&[]), Wait(1),
            Sent(&[Load(0, 1)]), Counter("map_req_cnt", 2),
        ]),
        row("no tag for a load on Linux: what is queued meanwhile comes afterwards", Dcm, Linux, &[
            Tags(0), Activate(0, 0), Activate(1, 0), Tags(9), Sent(&[]), Wait(3), Sent(&[Load(0, 0), Load(1, 0)]),
        ]),
        row("no tag for a load on Linux: what is to be dropped meanwhile is not loaded", Dcm, Linux, &[
            Hold(0, 0), Tags(0), Activate(0, 1), Inactivate(0), Wait(12), Tags(9), Activate(1, 0),
            Sent(&[Load(1, 0)]), Region(0, R::Inactive),
        ]),
        row("no tag for a load on Linux: the worker ends its run although the host is about to sleep", Both, Linux, &[
            Hold(0, 0), Queue(0, 1), Queue(1, 0), Suspend, Tags(0), Resume, Suspend, Tags(9), Wait(3),
            Sent(&[Load(0, 1), Load(1, 0)]), Lu(LuState::Suspend), Activate(0, 0), Wait(1000), Sent(&[]),
        ]),
        row("no tag for a load on Linux: nor then longer than five attempts", Dcm, Linux, &[
            Tags(0), Activate(0, 0), Suspend, Wait(12), Timer(false), Sub(0, 0, S::Invalid), Tags(9), Wait(1000),
            Sent(&[]), Resume, Sent(&[Load(0, 0)]),
        ]),
        row("no tag for a load on Linux: a reset ends the waiting", Dcm, Linux, &[
            Tags(0), Activate(0, 0), Reset, Timer(false), Tags(9), Restored, Sub(0, 0, S::Invalid), Wait(100),
            Sent(&[]),
        ]),
        row("no tag for a load: with the next reply", Both, Own, &[
            Queue(0, 0), Suspend, Tags(0), Resume, Sent(&[]), Region(0, R::Inactive), Tags(1), Reply,
            Sent(&[Load(0, 0)]),
        ]),
        row("no tag for a drop: one attempt on Linux", Hcm, Linux, &[
            Hold(0, 0), Write(3, 1), Tags(0), Wait(1200), Sent(&[]), Region(0, R::Active), Tags(9), Reply, Sent(&[]),
            Wait(200), Sent(&[Drop(0)]), Region(0, R::Inactive), Counter("umap_req_cnt", 1),
        ]),
        row("no tag for a drop: with the next reply", Hcm, Own, &[
            Hold(0, 0), Write(3, 1), Tags(0), Wait(1200), Sent(&[]), Region(0, R::Active), Tags(9), Reply,
            Sent(&[Drop(0)]),
        ]),
        row("no tag to drop the victim", Hcm, Any, &[
            Hold(0, 0), Hold(1, 0), Reads(64, 14), Tags(0), Wait(200), Sent(&[]), Region(0, R::Active),
            Region(2, R::Inactive), Tags(9), Wait(200), Sent(&[Drop(0), Load(2, 0)]),
        ]),
        row("the only tag goes to the drop: the load follows", Hcm, Own, &[
            Hold(0, 0), Hold(1, 0), Reads(64, 14), Tags(1), Wait(200), Sent(&[Drop(0)]), Tags(1), Reply,
            Sent(&[Load(2, 0)]),
        ]),
        Row { unit: UNIT, ..row("at most inflight_map_req loads, and Linux waits for the timer", Hcm, Linux, &[
            Queue(0, 0), Queue(0, 1), Queue(1, 0), Wait(200), Sent(&[Load(0, 0)]), Sub(0, 1, S::Invalid), Loaded(0, 0),
            Sent(&[]), Wait(199), Sent(&[]), Wait(1), Sent(&[Load(0, 1)]),
        ]) },
        Row { unit: UNIT, ..row("at most inflight_map_req loads, one after the other", Hcm, Own, &[
            Queue(0, 0), Queue(0, 1), Queue(1, 0), Wait(200), Sent(&[Load(0, 0)]), Loaded(0, 0), Sent(&[Load(0, 1)]),
            Loaded(0, 1), Sent(&[Load(1, 0)]),
        ]) },
        Row { unit: UNIT, ..row("on Linux what is throttled loses its entries", Hcm, Linux, &[
            Hold(0, 0), Queue(1, 0), Queue(0, 0), Hit(0, 1), Wait(200), Sent(&[Load(1, 0)]), Sub(0, 0, S::Invalid),
            Miss(0, 1),
        ]) },
        Row { unit: UNIT, ..row("what is throttled keeps its entries", Hcm, Own, &[
            Hold(0, 0), Queue(1, 0), Queue(0, 0), Wait(200), Sent(&[Load(1, 0)]), Hit(0, 1),
        ]) },
        Row { unit: UNIT, ..row("inflight_map_req can be changed", Hcm, Any, &[
            Store(HpbParam::InflightMapReq, 2), Queue(0, 0), Queue(0, 1), Queue(1, 0), Wait(200),
            Sent(&[Load(0, 0), Load(0, 1)]),
        ]) },
    ]);
}

#[test]
#[rustfmt::skip] // A table: a row each.
fn victims() {
    play(&[
        row("the first of the list, reads do not count", Dcm, Any, &[
            Hold(0, 0), Hold(1, 0), Reads(0, 50), Activate(2, 0), Region(0, R::Inactive), Region(1, R::Active),
        ]),
        row("not one with a load under way", Dcm, Any, &[
            Hold(0, 0), Hold(1, 0), Activate(0, 0), Hold(1, 1), Activate(2, 0), Region(0, R::Active),
            Region(1, R::Inactive),
        ]),
        row("none without a load under way: the item is kept", Dcm, Any, &[
            Activate(0, 0), Activate(1, 0), Sent(&[Load(0, 0), Load(1, 0)]), Activate(2, 0), Sent(&[]), Loaded(0, 0),
            Activate(1, 1), Sent(&[Load(2, 0), Load(1, 1)]), Region(0, R::Inactive),
        ]),
        row("who comes needs eviction_thld_enter reads", Hcm, Any, &[
            Hold(0, 0), Hold(1, 0), Reads(64, 13), Wait(200), Sent(&[]), Reads(80, 1), ReadsOf(2, 14), Wait(200),
            Sent(&[Drop(0), Load(2, 0)]),
        ]),
        Row { unit: BIG, ..row("Linux's 256 and 128", Hcm, Any, &[
            Hold(0, 0), Hold(1, 0), Reads(1, 129), Reads(2049, 128), Wait(200), Loaded(0, 0), Loaded(1, 0),
            Sent(&[Load(0, 0), Load(1, 0)]), Reads(4097, 255), Wait(200), Sent(&[]), Reads(4097, 1), Wait(200),
            Sent(&[Drop(1), Load(2, 0)]),
        ]) },
        row("who goes has at most eviction_thld_exit reads", Hcm, Any, &[
            Hold(0, 0), Hold(1, 0), Reads(0, 11), Reads(32, 10), Wait(200), Loaded(0, 0), Loaded(1, 0),
            Sent(&[Load(0, 0), Load(1, 0)]), Reads(64, 14), Wait(200), Sent(&[Drop(1), Load(2, 0)]),
            Region(0, R::Active),
        ]),
        row("who goes: none, and the item is kept", Hcm, Any, &[
            Hold(0, 0), Hold(1, 0), Reads(0, 11), Reads(32, 11), Wait(200), Loaded(0, 0), Loaded(1, 0),
            Sent(&[Load(0, 0), Load(1, 0)]), Reads(64, 14), Wait(200), Sent(&[]), Write(0, 1), Wait(200),
            Sent(&[Drop(0), Load(2, 0)]),
        ]),
        Row { unit: Unit { max_active: 2, pinned: 2..4, ..WIDE }, ..row(
            "all that may be active is pinned: no victim, no end", Both, Any, &[
            Queue(0, 0), Suspend, Resume, Region(0, R::Inactive), Reads(0, 300), Wait(1000), Region(0, R::Inactive),
        ]) },
    ]);
}
