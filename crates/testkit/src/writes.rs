// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices that are written for long, and what that did to them: write amplification in its parts, and wear.

use crate::{device, filled, job, lu};
use readpath_device::{DeviceConfig, DeviceStats, FtlConfig, Layout, Wear};
use readpath_flash::{Geometry, Lean};
use readpath_run::Runner;
use readpath_stack::{NoData, Stack, Typed};
use readpath_workload::{IoKind, Offsets, Phase, Stream, StreamSpec};

/// Write amplification of collection in the limit of large superblocks, under uniform writes (L. Xiang and B. M.
/// Kurkoski, arXiv:1110.4245), by physical blocks for each logical one.
pub fn closed_form(physical_per_logical: f64) -> f64 {
    // What is left of a superblock when its turn comes: u = e^(-a (1 - u)), which is what Lambert's function solves.
    let mut left: f64 = 0.5;
    for _ in 0..10_000 {
        left = libm::exp(-physical_per_logical * (1.0 - left));
    }
    1.0 / (1.0 - left)
}

/// A device of `blocks` logical blocks and superblocks of `pages_per_block` pages on each of `dies` dies, with
/// over-provisioning of `over_provisioning` times the logical capacity.
pub fn written_device(blocks: u32, dies: u32, pages_per_block: u32, over_provisioning: f64) -> DeviceConfig {
    let mut config = device(1024);
    config.lus = vec![lu(blocks)];
    config.lus[0].hpb = false;
    config.hpb = None;
    config.geometry = Geometry {
        channels: 2,
        dies_per_channel: dies / 2,
        planes: 1,
        blocks_per_plane: 0,
        pages_per_block,
        page_bytes: 16384,
    };
    config.map_page_bytes = 16384;
    config.map_cache_bytes = 2 * 16384;
    config.write_buffer_blocks = 128;
    config.ftl = FtlConfig::DEFAULT;
    let superblocks = |c: &DeviceConfig| c.spare_slices() as f64 / f64::from(blocks);
    while superblocks(&config) < over_provisioning {
        config.geometry.blocks_per_plane += 1;
    }
    config
}

/// What a device did in the last part of a run, and how worn it was at the end of each part.
pub struct Written {
    /// Counters of the whole run.
    pub all: DeviceStats,
    /// Counters of the last part.
    pub last: DeviceStats,
    /// At the end of each part.
    pub wear: Vec<Wear>,
    /// Slices of a multi-plane page.
    pub slices_per_unit: u32,
}

impl Written {
    /// Data programmed for each slice of the host's, and everything programmed for each.
    pub fn amplification(&self) -> (f64, f64) {
        amplification(&self.last, self.slices_per_unit)
    }

    /// The parts of write amplification in words: moved, padding, and what the meta stream programs.
    pub fn parts(&self) -> String {
        let (s, host) = (&self.last, self.last.slices_programmed as f64);
        let (data, all) = self.amplification();
        let rest = all - data - s.slices_padded as f64 / host;
        format!(
            "data {data:.3} (moved {:.3}), padding {:.3}, map, journal and checkpoints {rest:.3}, all {all:.3}",
            s.slices_moved as f64 / host,
            s.slices_padded as f64 / host,
        )
    }
}

/// Data programmed for each slice of the host's, and everything programmed for each.
pub fn amplification(s: &DeviceStats, slices_per_unit: u32) -> (f64, f64) {
    let host = s.slices_programmed as f64;
    (s.write_amplification().expect("something was written"), (s.programs * u64::from(slices_per_unit)) as f64 / host)
}

/// Fills the device in `layout`, then writes single blocks at `offsets`, in `parts` parts of `blocks_each`.
pub fn write(config: &DeviceConfig, layout: Layout, offsets: Offsets, parts: u32, blocks_each: u64) -> Written {
    let blocks = config.lus[0].blocks;
    let (mut stack, now): (Stack<Lean, NoData, (), Typed>, _) = filled(config, None, blocks, layout, 1);
    let mut runner = Runner::new(now);
    let spec = StreamSpec::plain(IoKind::Write, 0, blocks, 1, offsets);
    let stream = Stream::new(&spec, 5).expect("a possible stream");
    // The stream goes on from one part to the next.
    let mut phase = Phase { name: String::new(), jobs: vec![job(stream, 32, blocks_each)] };
    let begin = *stack.device.stats();
    let mut before = begin;
    let mut wear = Vec::new();
    for _ in 0..parts {
        before = *stack.device.stats();
        runner.phase(&mut stack, &mut phase, &mut ()).expect("the run ends well");
        wear.push(stack.device.wear());
    }
    stack.device.check_consistency().expect("the counts are right");
    let end = stack.device.stats();
    Written {
        all: end.since(&begin),
        last: end.since(&before),
        wear,
        slices_per_unit: config.geometry.slices_per_unit(),
    }
}
