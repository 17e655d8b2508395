// SPDX-License-Identifier: MIT OR Apache-2.0
//! States of units, regions and sub-regions, and reads and writes in each of them.

use super::Command::{Drop, Load};
use super::Hosts::*;
use super::Modes::*;
use super::Step::*;
use super::*;
use LuState as L;
use RegionState as R;
use SubRegionState as S;

const PINNED: Unit = Unit { max_active: 4, pinned: 2..4, ..WIDE };
const fn row(what: &'static str, modes: Modes, hosts: Hosts, steps: &'static [Step]) -> Row {
    Row { what, modes, hosts, unit: WIDE, steps }
}

#[test]
#[rustfmt::skip] // A table: a row each.
fn units() {
    play(&[
        row("INIT: no entries, notifications dropped, writes not noted", Both, Any, &[
            Lu(L::Init), Miss(0, 1), Counter("miss_cnt", 0), Activate(0, 0), Counter("rcmd_noti_cnt", 0), Write(0, 1),
            Present, Sent(&[]), Lu(L::Present),
        ]),
        row("PRESENT: entries, notifications, dirty bits", Both, Any, &[
            Hold(0, 0), Hit(0, 1), Write(0, 1), Miss(0, 1), Unknown, Counter("rcmd_noti_cnt", 1),
        ]),
        row("SUSPEND: no entries, nothing counted", Both, Any, &[
            Hold(0, 0), Suspend, Lu(L::Suspend), Miss(0, 1), Counter("miss_cnt", 0), Resume, Lu(L::Present), Hit(0, 1),
        ]),
        row("SUSPEND: reads are not counted for regions", Hcm, Any, &[Suspend, Reads(0, 9), ReadsOf(0, 0)]),
        row("SUSPEND: lists grow, resume starts the worker", Both, Any, &[
            Hold(0, 0), Suspend, Activate(0, 0), Counter("rcmd_noti_cnt", 1), Sub(0, 0, S::Invalid), Sent(&[]),
            Resume, Sent(&[Load(0, 0)]),
        ]),
        row("SUSPEND stops the timers, resume starts them", Hcm, Any, &[
            Timer(true), Suspend, Timer(false), Wait(1000), Resume, Timer(true),
        ]),
        row("SUSPEND: Linux forgets writes", Both, Linux, &[Hold(0, 0), Suspend, Write(3, 1), Resume, Hit(3, 1)]),
        row("SUSPEND: writes are noted", Both, Own, &[Hold(0, 0), Suspend, Write(3, 1), Resume, Miss(3, 1), Hit(2, 1)]),
        row("SUSPEND: a load that was under way ends as always", Both, Any, &[
            Queue(0, 0), Suspend, Resume, Sent(&[Load(0, 0)]), Suspend, Loaded(0, 0), Sub(0, 0, S::Valid),
        ]),
        row("RESET: no entries, notifications dropped, lists discarded, maps kept", Both, Any, &[
            Hold(0, 0), Queue(1, 0), Reset, Lu(L::Reset), Miss(0, 1), Counter("miss_cnt", 0), Activate(0, 1),
            Counter("rcmd_noti_cnt", 0), Restored, Lu(L::Present), Sent(&[]), Hit(0, 1), Reply, Sent(&[]),
        ]),
        row("RESET: Linux forgets writes", Both, Linux, &[Hold(0, 0), Reset, Write(3, 1), Restored, Hit(3, 1)]),
        row("RESET: writes are noted", Both, Own, &[Hold(0, 0), Reset, Write(3, 1), Restored, Miss(3, 1)]),
        row("RESET: a load under way is sent again by Linux, and counts until then", Both, Linux, &[
            Hold(0, 0), Queue(0, 1), Queue(0, 0), Suspend, Resume, Sent(&[Load(0, 1), Load(0, 0)]), Reset, Restored,
            Sub(0, 0, S::Issued), Sub(0, 1, S::Issued), Miss(0, 1), Loaded(0, 0), Sub(0, 0, S::Valid), Hit(0, 1),
        ]),
        row("RESET: a load under way is lost", Both, Own, &[
            Queue(0, 1), Suspend, Resume, Sent(&[Load(0, 1)]), Reset, Restored, Sub(0, 1, S::Invalid), Miss(16, 1),
        ]),
        row("RESET: timers are dead on Linux until the next resume", Hcm, Linux, &[
            Reset, Restored, Timer(false), Reads(0, 8), Wait(10_000), Sent(&[]), Suspend, Resume, Sent(&[Load(0, 0)]),
            Timer(true),
        ]),
        row("RESET: timers go on", Hcm, Own, &[Reset, Restored, Timer(true), Reads(0, 8), Wait(200),
            Sent(&[Load(0, 0)])]),
        row("RESET: what the host wanted is wanted still", Hcm, Own, &[
            Reads(0, 8), Reads(16, 7), Reset, Restored, Wait(200), Sent(&[]), Reads(0, 1), Wait(200),
            Sent(&[Load(0, 0)]),
        ]),
        row("a reset in SUSPEND leaves SUSPEND", Both, Any, &[
            Hold(0, 0), Suspend, Reset, Lu(L::Suspend), Restored, Lu(L::Suspend), Resume, Hit(0, 1),
        ]),
        row("FAILED: everything is given back, and nothing works", Both, Any, &[
            Hold(0, 0), Destroy, Lu(L::Failed), Maps(0), Region(0, R::Inactive), Sub(0, 0, S::Unused), Miss(0, 1),
            Activate(0, 0), Counter("rcmd_noti_cnt", 0), Sent(&[]), Timer(false), Resume, Restored, Lu(L::Failed),
        ]),
        row("FAILED: a load that was under way comes to nothing", Both, Any, &[
            Hold(0, 0), Queue(0, 1), Queue(1, 0), Suspend, Resume, Sent(&[Load(0, 1), Load(1, 0)]), Destroy,
            Loaded(0, 1), Failed(1, 0), Lu(L::Failed), Maps(0), Region(0, R::Inactive), Sub(0, 1, S::Unused),
            Region(1, R::Inactive), Sub(1, 0, S::Unused), Miss(0, 1), Miss(16, 1), Miss(32, 1), Sent(&[]),
        ]),
    ]);
}

#[test]
#[rustfmt::skip] // A table: a row each.
fn regions() {
    play(&[
        row("not pinned: INACTIVE, UNUSED", Both, Any, &[Region(0, R::Inactive), Sub(0, 0, S::Unused), Maps(0)]),
        Row { unit: PINNED, ..row("pinned: memory at once, loaded at the start", Dcm, Any, &[
            Lu(L::Init), Region(2, R::Pinned), Sub(2, 0, S::Invalid), Maps(4), Sent(&[]), Present,
            Sent(&[Load(2, 0), Load(2, 1), Load(3, 0), Load(3, 1)]),
        ]) },
        Row { unit: Unit { pinned: 2..3, ..PINNED }, ..row("one pinned region: Linux does not start", Dcm, Linux, &[
            Lu(L::Init), Present, Sent(&[]), Reply, Sent(&[]), Activate(0, 0),
            Sent(&[Load(2, 0), Load(2, 1), Load(0, 0)]),
        ]) },
        Row { unit: Unit { pinned: 2..3, ..PINNED }, ..row("one pinned region", Both, Own, &[
            Lu(L::Init), Present, Reply, Loaded(2, 0), Loaded(2, 1), Hit(64, 1), Hit(80, 1),
        ]) },
        row("activation, region active: to the end of the list", Both, Any, &[
            Hold(0, 0), Hold(1, 0), Hold(0, 1), Reads(64, 14), Queue(2, 0), Suspend, Resume, Region(0, R::Active),
            Region(1, R::Inactive),
        ]),
        row("activation, room: ACTIVE, ISSUED, zeros until loaded", Both, Any, &[
            Queue(0, 1), Suspend, Resume, Sent(&[Load(0, 1)]), Region(0, R::Active), Sub(0, 1, S::Issued),
            Sub(0, 0, S::Unused), Maps(1), Miss(16, 1), Loaded(0, 1), Sub(0, 1, S::Valid), Hit(16, 1),
        ]),
        row("activation, no room: all of the victim is given back", Dcm, Any, &[
            Hold(0, 0), Hold(0, 1), Hold(1, 0), Activate(2, 0), Sent(&[Load(2, 0)]), Region(0, R::Inactive),
            Sub(0, 0, S::Unused), Sub(0, 1, S::Unused), Maps(2), Counter("umap_req_cnt", 0),
        ]),
        row("activation, no room: the drop is announced first", Hcm, Any, &[
            Hold(0, 0), Hold(0, 1), Hold(1, 0), Reads(64, 14), Wait(200), Sent(&[Drop(0), Load(2, 0)]),
            Region(0, R::Inactive), Sub(0, 1, S::Unused), Maps(2), Counter("umap_req_cnt", 1),
        ]),
        row("INVALID is loaded into the memory that it has", Dcm, Any, &[
            Hold(0, 0), Activate(0, 0), Sent(&[Load(0, 0)]), Sub(0, 0, S::Issued), Maps(1), Loaded(0, 0), Hit(0, 1),
        ]),
        row("VALID stays VALID until the worker takes it", Hcm, Any, &[
            Hold(0, 0), Reads(0, 8), Hit(0, 1), Wait(200), Sent(&[Load(0, 0)]), Sub(0, 0, S::Issued), Miss(0, 1),
        ]),
        row("ISSUED: loaded again afterwards, on Linux when the worker starts next", Dcm, Linux, &[
            Activate(0, 0), Activate(0, 0), Sent(&[Load(0, 0)]), Loaded(0, 0), Sub(0, 0, S::Valid), Sent(&[]),
            Activate(1, 0), Sent(&[Load(0, 0), Load(1, 0)]),
        ]),
        row("ISSUED: loaded again at once afterwards", Dcm, Own, &[
            Activate(0, 0), Activate(0, 0), Sent(&[Load(0, 0)]), Loaded(0, 0), Sent(&[Load(0, 0)]),
        ]),
        row("a load that failed is a load on Linux", Both, Linux, &[
            Queue(0, 0), Suspend, Resume, Failed(0, 0), Sub(0, 0, S::Valid), Hit(0, 1), Reply, Sent(&[Load(0, 0)]),
        ]),
        row("a load that failed is tried three times more", Both, Own, &[
            Queue(0, 0), Suspend, Resume, Failed(0, 0), Miss(0, 1), Failed(0, 0), Failed(0, 0), Failed(0, 0),
            Sub(0, 0, S::Invalid), Sent(&[Load(0, 0); 4]), Reply, Sent(&[]),
        ]),
        row("a recommendation of VALID stops its use", Dcm, Any, &[Hold(0, 0), Suspend, Activate(0, 0),
            Sub(0, 0, S::Invalid)]),
        row("inactivation stops its use", Dcm, Any, &[Hold(0, 0), Suspend, Inactivate(0), Sub(0, 0, S::Invalid)]),
        row("inactivation: dropped without a command", Dcm, Any, &[
            Hold(0, 0), Inactivate(0), Sent(&[]), Region(0, R::Inactive), Sub(0, 0, S::Unused), Maps(0),
        ]),
        row("inactivation waits for a load", Dcm, Any, &[
            Hold(0, 0), Activate(0, 1), Inactivate(0), Region(0, R::Active), Loaded(0, 1), Inactivate(0),
            Region(0, R::Inactive),
        ]),
        Row { unit: PINNED, ..row("inactivation of a pinned region has no effect but that its entries stop", Dcm, Any,
            &[
            Loaded(2, 0), Loaded(2, 1), Hit(64, 1), Inactivate(2), Region(2, R::Pinned), Sub(2, 0, S::Invalid), Maps(4),
        ]) },
        row("inactivation of an inactive region has no effect", Dcm, Any, &[Inactivate(5), Region(5, R::Inactive),
            Sent(&[])]),
    ]);
}

#[test]
#[rustfmt::skip] // A table: a row each.
fn writes() {
    play(&[
        row("a write makes its blocks dirty, no others", Both, Any, &[
            Hold(0, 0), Hold(0, 1), Write(14, 4), Hit(13, 1), Miss(14, 1), Miss(17, 1), Hit(18, 1),
        ]),
        row("a write to what is not held leaves nothing", Both, Any, &[Write(0, 32), Hold(0, 0), Hit(0, 1)]),
        row("a load makes them clean", Both, Any, &[Hold(0, 0), Write(3, 1), Miss(3, 1), Hold(0, 0), Hit(3, 1)]),
        row("so does eviction", Dcm, Any, &[Hold(0, 0), Write(3, 1), Inactivate(0), Hold(0, 0), Hit(3, 1)]),
        row("a write during a load is forgotten on Linux", Both, Linux, &[
            Queue(0, 0), Suspend, Resume, Write(3, 1), Loaded(0, 0), Hit(3, 1),
        ]),
        row("a write during a load counts", Both, Own, &[
            Queue(0, 0), Suspend, Resume, Write(3, 1), Loaded(0, 0), Miss(3, 1), Hit(4, 1),
        ]),
        row("a write takes the reads of its sub-region away", Hcm, Any, &[
            Reads(0, 5), Reads(16, 6), ReadsOf(0, 11), Write(0, 1), ReadsOf(0, 6), Reads(0, 7), Wait(200), Sent(&[]),
            Reads(0, 1), Wait(200), Sent(&[Load(0, 0)]),
        ]),
        row("writes do not count in device control mode", Dcm, Any, &[Reads(0, 99), ReadsOf(0, 0), Wait(1000),
            Sent(&[])]),
        row("a written region takes no recommendations", Hcm, Any, &[
            Hold(0, 0), Write(20, 1), Activate(0, 0), Hit(0, 1), Sent(&[]),
        ]),
        row("a load of any of its sub-regions ends that", Hcm, Any, &[
            Hold(0, 0), Write(20, 1), Hold(0, 1), Activate(0, 0), Miss(0, 1), Sent(&[Load(0, 0)]),
        ]),
        row("an inactive region can be written as well", Hcm, Any, &[
            Write(0, 1), Reads(0, 8), Wait(200), Sent(&[Load(0, 0)]), Loaded(0, 0), Activate(0, 0), Sent(&[Load(0, 0)]),
        ]),
    ]);
}

#[test]
#[rustfmt::skip] // A table: a row each.
fn reads() {
    play(&[
        row("nothing to read: neither hit nor miss", Both, Any, &[Hold(0, 0), Miss(0, 0), Counter("miss_cnt", 0)]),
        row("as long as one HPB READ may be", Both, Any, &[Hold(0, 0), Hit(0, 4), Counter("hit_cnt", 1)]),
        row("longer: neither hit nor miss", Both, Any, &[
            Hold(0, 0), Miss(0, 5), Counter("hit_cnt", 0), Counter("miss_cnt", 0),
        ]),
        row("longer: not counted for regions either", Hcm, Any, &[Hold(0, 0), Miss(0, 5), ReadsOf(0, 0)]),
        row("one dirty block among clean ones", Both, Any, &[
            Hold(0, 0), Write(2, 1), Miss(0, 3), Counter("miss_cnt", 1), Hit(3, 4),
        ]),
        row("across sub-regions and regions", Both, Any, &[
            Hold(0, 1), Miss(30, 4), Hold(1, 0), Hit(30, 4), Miss(14, 4), Hold(0, 0), Hit(14, 4),
        ]),
        row("across regions each is counted", Hcm, Any, &[Miss(30, 4), ReadsOf(0, 1), ReadsOf(1, 1)]),
        row("not held: a miss", Both, Any, &[Miss(0, 1), Counter("miss_cnt", 1)]),
    ]);
}
