// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts in the middle of anchors, one after the other: the newest anchor is not erased before another points to
//! a checkpoint.

use crate::back::{Hardware, Job, NoMedia};
use crate::config::FtlConfig;
use crate::config::{DeviceConfig, FirmwareTiming, FlashTiming, LinkTiming, LuConfig};
use crate::device::UfsDevice;
use crate::front::Delays;
use crate::ftl::Layout;
use readpath_flash::{Geometry, Lean, PlaneReads, Scheduler, SuspendTiming};
use readpath_kit::Ns;

pub(crate) type Device = UfsDevice<Lean, NoMedia, ()>;

const BLOCKS: u32 = 500;
const PAGES: u32 = 8;

/// A small device of one die, without a fault.
pub(crate) fn config() -> DeviceConfig {
    DeviceConfig {
        product_name: "TEST".into(),
        ufs_version: crate::UfsVersion::V31,
        geometry: Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes: 1,
            blocks_per_plane: 100,
            pages_per_block: PAGES,
            page_bytes: 16384,
        },
        flash: FlashTiming {
            read: Ns(50_000),
            map_read: Ns(50_000),
            program: Ns(500_000),
            erase: Ns(3_000_000),
            transfer_block: Ns(8_000),
            map_transfer: Ns(8_000),
            plane_reads: PlaneReads::One,
            life_erases: 1_000_000,
        },
        scheduler: Scheduler::Lean,
        suspend: SuspendTiming::OFF,
        firmware: FirmwareTiming {
            cores: 1,
            read_command: Ns::ZERO,
            flash_op: Ns(13_000),
            hpb_read_extra: Ns(250),
            write_command: Ns(5_000),
            buffer_read: Ns(13_000),
            unmapped_read: None,
            make_entry: Ns(20),
            control: Ns(5_000),
            trim_map_page: Ns(1_000),
        },
        link: LinkTiming { request: Ns(500), response: Ns(100), block: Ns(3_900) },
        map_cache_bytes: 4096,
        map_page_bytes: 4096,
        map_runs_bytes: 0,
        map_read_ahead: 0,
        map_memory: None,
        write_buffer_blocks: 64,
        queue_depth: 32,
        lus: vec![LuConfig {
            blocks: BLOCKS,
            hpb: false,
            max_active_regions: 0,
            pinned_start: 0,
            pinned_regions: 0,
            zones: None,
        }],
        ftl: FtlConfig { map_changes: 128, checkpoint_after_units: 32, ..FtlConfig::DEFAULT },
        slc: None,
        slc_cache: None,
        hpb: None,
        entry_key: [1, 2],
    }
}

pub(crate) fn device() -> Device {
    let mut device = Device::new(&config(), Delays::default(), ()).expect("a possible device");
    device.precondition([(0, 0, BLOCKS)], Layout::Random, 1, |_, _| ()).expect("room");
    device
}

/// Runs until `stop` holds or no work is left; returns whether `stop` held.
pub(crate) fn go_on(device: &mut Device, now: &mut Ns, stop: impl Fn(&Device) -> bool) -> bool {
    loop {
        if stop(device) {
            return true;
        }
        let next = device.next_deadline();
        if next == Ns::NEVER {
            return false;
        }
        *now = next;
        device.advance(next);
    }
}

pub(crate) fn cut(device: &mut Device, now: &mut Ns) {
    device.power_cut(*now);
    *now = device.recover(*now).ready_at;
}

#[test]
fn anchors_that_are_torn_one_after_the_other_lose_nothing() {
    let is_anchor = |device: &Device| device.back.ops().in_progress().any(|op| op.job == Job::AnchorProgram);
    for good in 1..=2 * PAGES {
        for torn in [PAGES - 1, PAGES, 2 * PAGES + 3] {
            let (mut device, mut now) = (device(), Ns::ZERO);
            for _ in 0..good {
                // A checkpoint follows each recovery.
                cut(&mut device, &mut now);
                assert!(!go_on(&mut device, &mut now, |_| false));
            }
            let checkpoints = device.stats().checkpoints;
            for _ in 0..torn {
                cut(&mut device, &mut now);
                assert!(go_on(&mut device, &mut now, is_anchor));
            }
            cut(&mut device, &mut now);
            assert_eq!(device.valid_slices(), u64::from(BLOCKS), "{good} anchors, then {torn} torn");
            go_on(&mut device, &mut now, |_| false);
            cut(&mut device, &mut now);
            assert_eq!(device.valid_slices(), u64::from(BLOCKS), "{good} anchors, {torn} torn, and another");
            assert!(device.stats().checkpoints > checkpoints + u64::from(torn));
            device.check_consistency().expect("the counts are right");
        }
    }
}
