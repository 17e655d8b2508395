// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host control mode: counters, thresholds and timers, each parameter on both sides of its bound.

use super::Command::{Drop, Load};
use super::Hosts::*;
use super::Modes::*;
use super::Step::*;
use super::*;
use RegionState as R;

const fn row(what: &'static str, hosts: Hosts, steps: &'static [Step]) -> Row {
    Row { what, modes: Hcm, hosts, unit: WIDE, steps }
}

#[test]
#[rustfmt::skip] // A table: a row each.
fn activation() {
    play(&[
        row("nothing is active at the start, and nothing is said", Any, &[Wait(5000), Sent(&[]),
            Region(0, R::Inactive)]),
        row("activation_thld reads", Any, &[
            Reads(0, 7), Wait(200), Sent(&[]), Reads(1, 1), Counter("rcmd_active_cnt", 1), Wait(200),
            Sent(&[Load(0, 0)]),
        ]),
        row("reads of both sub-regions do not add up", Any, &[Reads(0, 7), Reads(16, 7), ReadsOf(0, 14), Wait(200),
            Sent(&[])]),
        row("a read across two sub-regions counts in both", Any, &[
            Reads(14, 7), Miss(14, 3), Counter("rcmd_active_cnt", 1), Wait(200), Sent(&[Load(0, 0)]), ReadsOf(0, 9),
        ]),
        row("exactly so many: no more loads afterwards", Any, &[
            Reads(0, 8), Wait(200), Sent(&[Load(0, 0)]), Loaded(0, 0), Reads(0, 7), Wait(200), Sent(&[]),
        ]),
        row("after a write they count anew", Any, &[
            Reads(0, 8), Wait(200), Loaded(0, 0), Sent(&[Load(0, 0)]), Write(3, 1), Reads(0, 8), Wait(200),
            Sent(&[Load(0, 0)]),
        ]),
        row("another threshold", Any, &[
            Store(HpbParam::ActivationThld, 3), Reads(0, 3), Wait(200), Sent(&[Load(0, 0)]),
        ]),
    ]);
}

#[test]
#[rustfmt::skip] // A table: a row each.
fn normalisation() {
    play(&[
        row("more reads than entries of a sub-region: halved", Any, &[
            Reads(0, 16), ReadsOf(0, 16), Reads(0, 1), ReadsOf(0, 8),
        ]),
        row("all regions, each sub-region on its own", Any, &[
            Reads(32, 3), Reads(48, 3), Reads(0, 17), ReadsOf(0, 8), ReadsOf(1, 2),
        ]),
        row("shifted by normalization_factor", Any, &[
            Store(HpbParam::NormalizationFactor, 3), Reads(32, 9), Reads(0, 17), ReadsOf(0, 2), ReadsOf(1, 1),
        ]),
        row("only the first region of a read is looked at", Any, &[Reads(32, 16), Miss(31, 2), ReadsOf(1, 17)]),
        row("active regions without reads are dropped", Any, &[
            Hold(0, 0), Hold(1, 0), Reads(32, 2), Reads(0, 1), Reads(64, 17), Counter("rcmd_inactive_cnt", 1),
            Wait(200),
            // Into the free place, although it has too few reads to displace another.
            Sent(&[Drop(0), Load(2, 0)]), Region(1, R::Active),
        ]),
        row("counters that pass the threshold again load again", Any, &[
            Store(HpbParam::NormalizationFactor, 2), Reads(0, 8), Wait(200), Loaded(0, 0), Sent(&[Load(0, 0)]),
            Reads(0, 9),
            ReadsOf(0, 4), Reads(0, 3), Wait(200), Sent(&[]), Reads(0, 1), Wait(200), Sent(&[Load(0, 0)]),
        ]),
    ]);
}

#[test]
#[rustfmt::skip] // A table: a row each.
fn ageing() {
    play(&[
        row("a clean region: read_timeout_expiries times", Any, &[
            Hold(0, 0), Reads(0, 1), Wait(100_000), Region(0, R::Active), Wait(20_200), Sent(&[Drop(0)]),
            Region(0, R::Inactive), Counter("rcmd_inactive_cnt", 1), Counter("umap_req_cnt", 1),
        ]),
        row("a written region: once", Any, &[
            Hold(0, 0), Write(3, 1), Wait(1000), Region(0, R::Active), Sent(&[]), Wait(200), Sent(&[Drop(0)]),
        ]),
        row("a read begins anew", Any, &[
            Hold(0, 0), Write(3, 1), Wait(1000), Reads(0, 1), Wait(1000), Region(0, R::Active), Wait(200),
            Sent(&[Drop(0)]),
        ]),
        row("a read begins anew, and so do the expiries", Any, &[
            Store(HpbParam::ReadTimeoutExpiries, 2), Hold(0, 0), Wait(2000), Reads(0, 1), Wait(2000),
            Region(0, R::Active),
            Wait(600), Sent(&[Drop(0)]),
        ]),
        row("a write does not begin anew", Any, &[
            Hold(0, 0), Wait(900), Write(3, 1), Wait(300), Sent(&[Drop(0)]),
        ]),
        row("a load does not, unless it makes the region active", Any, &[
            Hold(0, 0), Write(3, 1), Wait(900), Hold(0, 1), Write(3, 1), Wait(300), Sent(&[Drop(0)]),
        ]),
        row("read_timeout_ms", Any, &[
            Store(HpbParam::ReadTimeoutMs, 400), Hold(0, 0), Write(3, 1), Wait(400), Region(0, R::Active), Wait(200),
            Sent(&[Drop(0)]),
        ]),
        row("timeout_polling_interval_ms, from the next look on", Any, &[
            Store(HpbParam::TimeoutPollingIntervalMs, 10), Reads(0, 8), Wait(199), Sent(&[]), Wait(1),
            Sent(&[Load(0, 0)]),
            Reads(16, 8), Wait(10), Sent(&[Load(0, 1)]),
        ]),
        row("those found later are dropped first", Any, &[
            Hold(1, 0), Hold(0, 0), Write(0, 1), Write(32, 1), Wait(1200), Sent(&[Drop(0), Drop(1)]),
        ]),
        row("a region with a load under way is dropped later", Any, &[
            Hold(0, 0), Queue(0, 1), Wait(200), Sent(&[Load(0, 1)]), Write(3, 1), Wait(1200), Sent(&[]), Loaded(0, 1),
            Wait(200), Sent(&[Drop(0)]),
        ]),
        Row { unit: Unit { max_active: 4, pinned: 2..4, ..WIDE }, ..row("pinned regions do not age", Any, &[
            Wait(200), Loaded(2, 0), Loaded(2, 1), Loaded(3, 0), Wait(200), Loaded(3, 1), Write(64, 1), Wait(200_000),
            Region(2, R::Pinned), Counter("umap_req_cnt", 0),
        ]) },
        row("once dropped, counters go on on Linux, beyond the threshold", Linux, &[
            Reads(0, 8), Wait(200), Loaded(0, 0), Sent(&[Load(0, 0)]), Reads(0, 1), Wait(120_000), Sent(&[Drop(0)]),
            ReadsOf(0, 9), Reads(0, 7), Wait(200), Sent(&[]),
        ]),
        row("once dropped, a region is loaded again after as many reads as at first", Own, &[
            Reads(0, 8), Wait(200), Loaded(0, 0), Sent(&[Load(0, 0)]), Reads(0, 1), Wait(120_000), Sent(&[Drop(0)]),
            ReadsOf(0, 0), Reads(0, 8), Wait(200), Sent(&[Load(0, 0)]),
        ]),
        Row { modes: Dcm, ..row("device control mode has no timers", Any, &[
            Timer(false), Hold(0, 0), Write(3, 1), Wait(1_000_000), Region(0, R::Active), Sent(&[]),
        ]) },
    ]);
}
