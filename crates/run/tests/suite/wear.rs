// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves what wear levelling holds and what it costs: erase counts of all superblocks within 5 % of their mean, least
//! and most, for at most 3 % more writes than without it. Superblocks of the map count like those of data; the two of
//! anchors do not, and are shown apart. `-- --nocapture` prints the figures.

use readpath_device::{DeviceConfig, Layout, Wear};
use readpath_testkit::writes::{Written, amplification, write, written_device};
use readpath_workload::{Offsets, Zone};

/// 128 MiB in superblocks of 256 KiB: as many superblocks as a large device has, and soon erased as often.
const BLOCKS: u32 = 32 << 10;

fn device(wear_threshold_percent: u32) -> DeviceConfig {
    let mut config = written_device(BLOCKS, 4, 4, 0.15);
    config.ftl.map_changes = 4096;
    config.ftl.wear_threshold_percent = wear_threshold_percent;
    config
}

pub(crate) fn zones(shares: &[(u8, u8)]) -> Offsets {
    Offsets::Zoned(shares.iter().map(|&(access_percent, size_percent)| Zone { access_percent, size_percent }).collect())
}

fn show(what: &str, w: &Written) -> (f64, Wear) {
    let (data, _) = amplification(&w.all, w.slices_per_unit);
    let wear = *w.wear.last().expect("it has parts");
    println!(
        "{what}: {} erases a superblock on average, {} to {} ({:.1} %); anchors {}; {} emptied to level wear of {} in \
         all; write amplification {data:.4}, in the end: {}",
        wear.mean.round(),
        wear.min,
        wear.max,
        wear.spread_percent(),
        wear.anchors_max,
        w.all.levelled,
        w.all.levelled + w.all.collected,
        w.parts()
    );
    (data, wear)
}

fn held_at_a_price(what: &str, layout: Layout, offsets: Offsets, writes: u64, spread_without: f64, price: f64) {
    let [without, with] = std::thread::scope(|scope| {
        [0, 5]
            .map(|percent| {
                let offsets = offsets.clone();
                scope.spawn(move || write(&device(percent), layout, offsets, 2, writes / 2))
            })
            .map(|run| run.join().expect("the run ends well"))
    });
    let (data_without, wear_without) = show(&format!("{what}, levelling off"), &without);
    let (data, wear) = show(&format!("{what}, levelling on"), &with);
    println!("{what}: {:+.2} % writes", 100.0 * (data / data_without - 1.0));
    assert!(wear.mean >= 200.0, "{wear:?}");
    assert!(wear.spread_percent() <= 5.0, "{wear:?}");
    assert!(wear_without.spread_percent() > spread_without, "the load is too even: {wear_without:?}");
    assert!(data / data_without - 1.0 < price, "{data} against {data_without}");
}

/// A tenth of the space takes nine tenths of the writes, the rest is written little.
#[test]
fn cold_data_is_levelled() {
    let offsets = zones(&[(90, 10), (10, 90)]);
    held_at_a_price("cold", Layout::Sequential, offsets, 3_400_000, 5.0, 0.03);
}

/// Half of the space is never written again, and lies in superblocks of its own.
#[test]
#[ignore = "half a minute; make test-long"]
fn data_that_nobody_writes_is_levelled() {
    let offsets = zones(&[(90, 10), (10, 40), (0, 50)]);
    held_at_a_price("static", Layout::Sequential, offsets, 8_000_000, 90.0, 0.03);
}

/// The same, but it lies among data that is written: levelling sorts it out, and collection has less to move.
#[test]
#[ignore = "half a minute; make test-long"]
fn data_that_nobody_writes_is_sorted_out() {
    let offsets = zones(&[(90, 10), (10, 40), (0, 50)]);
    held_at_a_price("static, mixed", Layout::Random, offsets, 4_800_000, 90.0, -0.1);
}
