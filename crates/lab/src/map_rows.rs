// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of an experiment that compares places for the map: bytes of each kind of memory, flash reads, and what the link
//! carried. It adds no figure that a run did not give.

use crate::runs::{CaseRun, Plan};
use readpath_config::DevicePreset;
use readpath_device::DeviceStats;
use readpath_results::{Metric, metric};
use readpath_run::PhaseOutput;
use readpath_stack::given_host_memory;

/// Whether any of the runs has its map elsewhere than in flash, SRAM and the memory of HPB, or zones: then all of them
/// say where it is.
pub(crate) fn matter<'a>(plans: impl IntoIterator<Item = &'a Plan>) -> bool {
    plans.into_iter().any(|plan| {
        let device = &plan.setup.preset.device;
        device.map_memory.is_some() || device.lus.iter().any(|lu| lu.zones.is_some())
    })
}

/// Bytes of host memory that belong to the device from the start.
pub(crate) fn static_host_bytes(preset: &DevicePreset) -> u64 {
    given_host_memory(&preset.device, &preset.host)
}

/// Bytes of host memory for the map: those that belong to the device from the start, the most that the host's HPB took
/// in any of these phases, and the map of a mapper of zones.
pub(crate) fn peak_host_bytes<'a>(phases: impl IntoIterator<Item = &'a PhaseOutput>, preset: &DevicePreset) -> u64 {
    let of_hpb = |phase: &PhaseOutput| phase.memory.map_or(0, |memory| memory.peak_bytes + memory.table_bytes);
    let of_zones = |phase: &PhaseOutput| phase.zones.map_or(0, |zones| zones.map_bytes);
    let peaks = phases.into_iter().map(|phase| of_hpb(phase) + of_zones(phase));
    peaks.max().unwrap_or(0) + static_host_bytes(preset)
}

/// Flash reads for the map, for any purpose.
fn map_reads(device: &DeviceStats) -> u64 {
    device.map_loads + device.buffer_map_loads + device.collect_map_loads + device.write_back_loads
}

/// What a phase of a run says of its map.
pub(crate) fn figures(run: CaseRun, phase: &PhaseOutput) -> Vec<(Metric, f64)> {
    let device = &phase.device;
    let sram: u64 = run.output.sram.iter().map(|(_, bytes)| bytes).sum();
    let mut figures = vec![
        (metric::DEVICE_SRAM, sram as f64),
        (metric::DEVICE_DRAM, run.plan.setup.preset.device.dram_bytes() as f64),
    ];
    let requests: u64 = phase.stats.ios;
    if requests > 0 {
        let flash = map_reads(device) + device.data_reads + device.moved_reads + device.spare_reads;
        figures.push((metric::MAP_READS_PER_REQUEST, map_reads(device) as f64 / requests as f64));
        figures.push((metric::FLASH_READS_PER_REQUEST, flash as f64 / requests as f64));
    }
    if run.plan.setup.preset.device.host_map().is_none() {
        return figures;
    }
    let span = phase.stats.end.saturating_sub(phase.stats.start).0;
    if span > 0 {
        let share = |ns: u64| 100.0 * ns as f64 / span as f64;
        figures.push((metric::HOST_MAP_LINK_UP, share(device.host_map_link_up_ns)));
        figures.push((metric::HOST_MAP_LINK_DOWN, share(device.host_map_link_down_ns)));
    }
    figures.extend([
        (metric::HOST_MAP_FETCHES, device.host_map_fetches as f64),
        (metric::HOST_MAP_FILLS, device.host_map_fills as f64),
        (metric::HOST_MAP_UPDATES, device.host_map_updates as f64),
        (metric::HOST_MAP_STALE, device.host_map_stale as f64),
        (metric::HOST_MAP_BYTES_READ, device.host_map_bytes_read as f64),
        (metric::HOST_MAP_BYTES_WRITTEN, device.host_map_bytes_written as f64),
    ]);
    figures
}
