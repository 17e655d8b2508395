// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds of the numbers of a device, other than those of its geometry. Checks that involve several fields are in
//! [`super::check`].

use super::{CacheCells, DeviceConfig};
use readpath_kit::{Bound, Ns};

fn cache_cells(c: &DeviceConfig) -> Option<CacheCells> {
    c.slc_cache.and_then(|cache| cache.cells)
}

impl DeviceConfig {
    /// Bounds by field. Readers of files use them too.
    pub const BOUNDS: &[Bound<DeviceConfig>] = &[
        Bound::count("queue_depth", 1, 64, |c| Some(c.queue_depth.into())),
        Bound::count("write_buffer_blocks", 1, 1 << 16, |c| Some(c.write_buffer_blocks.into())),
        Bound::count("map_read_ahead", 0, 64, |c| Some(c.map_read_ahead.into())),
        Bound::time("flash.read", Ns(1), 1, |c| Some(c.flash.read.0)),
        Bound::time("flash.program", Ns(1), 1, |c| Some(c.flash.program.0)),
        Bound::time("flash.erase", Ns(1), 1, |c| Some(c.flash.erase.0)),
        Bound::time("flash.map_read", Ns::ZERO, 1, |c| Some(c.flash.map_read.0)),
        Bound::time("flash.transfer_block", Ns::ZERO, 1, |c| Some(c.flash.transfer_block.0)),
        Bound::time("flash.map_transfer", Ns::ZERO, 1, |c| Some(c.flash.map_transfer.0)),
        Bound::count("flash.life_erases", 1, 10_000_000, |c| Some(c.flash.life_erases.into())),
        Bound::time("suspend.suspend", Ns::ZERO, 1, |c| Some(c.suspend.suspend.0)),
        Bound::time("suspend.resume", Ns::ZERO, 1, |c| Some(c.suspend.resume.0)),
        Bound::count("firmware.cores", 1, 16, |c| Some(c.firmware.cores.into())),
        Bound::time("firmware.read_command", Ns::ZERO, 1, |c| Some(c.firmware.read_command.0)),
        Bound::time("firmware.flash_op", Ns::ZERO, 1, |c| Some(c.firmware.flash_op.0)),
        Bound::time("firmware.hpb_read_extra", Ns::ZERO, 1, |c| Some(c.firmware.hpb_read_extra.0)),
        Bound::time("firmware.write_command", Ns::ZERO, 1, |c| Some(c.firmware.write_command.0)),
        Bound::time("firmware.buffer_read", Ns::ZERO, 1, |c| Some(c.firmware.buffer_read.0)),
        Bound::time("firmware.make_entry", Ns::ZERO, 1, |c| Some(c.firmware.make_entry.0)),
        Bound::time("firmware.control", Ns::ZERO, 1, |c| Some(c.firmware.control.0)),
        Bound::time("firmware.trim_map_page", Ns::ZERO, 1, |c| Some(c.firmware.trim_map_page.0)),
        Bound::time("link.request", Ns::ZERO, 1, |c| Some(c.link.request.0)),
        Bound::time("link.response", Ns::ZERO, 1, |c| Some(c.link.response.0)),
        Bound::time("link.block", Ns::ZERO, 1, |c| Some(c.link.block.0)),
        Bound::time("firmware.unmapped_read", Ns::ZERO, 1, |c| c.firmware.unmapped_read.map(|time| time.0)),
        Bound::count("ftl.collect_below", 2, 1 << 16, |c| Some(c.ftl.collect_below.into())),
        Bound::count("ftl.collect_together", 1, 64, |c| Some(c.ftl.collect_together.into())),
        Bound::count("ftl.collect_idle_below", 0, 1 << 16, |c| Some(c.ftl.collect_idle_below.into())),
        Bound::count("ftl.move_buffer_blocks", 1, 1 << 15, |c| Some(c.ftl.move_buffer_blocks.into())),
        Bound::count("ftl.hot_table_entries", 0, 1 << 24, |c| Some(c.ftl.hot_table_entries.into())),
        Bound::count("ftl.wear_threshold_percent", 0, 100, |c| Some(c.ftl.wear_threshold_percent.into())),
        Bound::count("ftl.wear_least_erases", 1, 1 << 16, |c| Some(c.ftl.wear_least_erases.into())),
        Bound::count("ftl.map_changes", 16, 1 << 24, |c| Some(c.ftl.map_changes.into())),
        Bound::count("ftl.map_write_pages", 1, 256, |c| Some(c.ftl.map_write_pages.into())),
        Bound::count("ftl.spare_map_superblocks", 5, 1 << 16, |c| Some(c.ftl.spare_map_superblocks.into())),
        Bound::count("ftl.checkpoint_after_units", 16, 1 << 24, |c| Some(c.ftl.checkpoint_after_units.into())),
        Bound::count("ftl.read_disturb_limit", 0, u32::MAX as u64, |c| Some(c.ftl.read_disturb_limit.into())),
        Bound::count("ftl.faults.program_failures_ppm", 0, 100_000, |c| Some(c.ftl.faults.program_failures_ppm.into())),
        Bound::count("ftl.faults.erase_failures_ppm", 0, 100_000, |c| Some(c.ftl.faults.erase_failures_ppm.into())),
        Bound::count("ftl.faults.read_retries_ppm", 0, 900_000, |c| Some(c.ftl.faults.read_retries_ppm.into())),
        // The check for idle time repeats after this time; at 0 it would repeat for ever.
        Bound::time("ftl.idle_after", Ns::from_us(1), 1000, |c| Some(c.ftl.idle_after.0)),
        Bound::count("slc.bits_per_cell", 2, 5, |c| c.slc.map(|slc| slc.bits_per_cell.into())),
        Bound::count("slc.life_erases", 1, 10_000_000, |c| c.slc.map(|slc| slc.life_erases.into())),
        Bound::time("slc.read", Ns(1), 1, |c| c.slc.map(|slc| slc.read.0)),
        Bound::time("slc.program", Ns(1), 1, |c| c.slc.map(|slc| slc.program.0)),
        Bound::time("slc.erase", Ns(1), 1, |c| c.slc.map(|slc| slc.erase.0)),
        Bound::count("slc_cache.cells.bits", 2, 4, |c| cache_cells(c).map(|cells| cells.bits.into())),
        Bound::count("slc_cache.cells.life_erases", 1, 10_000_000, |c| {
            cache_cells(c).map(|cells| cells.life_erases.into())
        }),
        Bound::time("slc_cache.cells.read", Ns(1), 1, |c| cache_cells(c).map(|cells| cells.read.0)),
        Bound::time("slc_cache.cells.program", Ns(1), 1, |c| cache_cells(c).map(|cells| cells.program.0)),
        Bound::time("slc_cache.cells.erase", Ns(1), 1, |c| cache_cells(c).map(|cells| cells.erase.0)),
        Bound::time("map_memory.access", Ns::ZERO, 1, |c| c.map_memory.map(|memory| memory.access().0)),
        Bound::time("map_memory.firmware", Ns::ZERO, 1, |c| c.host_map().map(|host| host.firmware.0)),
        Bound::time("map_memory.request", Ns::ZERO, 1, |c| c.host_map().map(|host| host.request.0)),
        Bound::time("map_memory.response", Ns::ZERO, 1, |c| c.host_map().map(|host| host.response.0)),
        Bound::time("map_memory.check", Ns::ZERO, 1, |c| c.host_map()?.check.map(|check| check.check.0)),
        Bound::time("map_memory.seal", Ns::ZERO, 1, |c| c.host_map()?.check.map(|check| check.seal.0)),
        Bound::count("map_memory.bytes", 1, 1 << 40, |c| c.host_map().map(|host| host.bytes)),
        Bound::count("map_memory.line_bytes", 16, 16384, |c| c.host_map().map(|host| host.line_bytes.into())),
        Bound::count("map_memory.outstanding", 1, 64, |c| c.host_map().map(|host| host.outstanding.into())),
        Bound::count("hpb.sub_region_size", 3, 19, |c| c.hpb.map(|hpb| hpb.sub_region_size.into())),
        Bound::count("hpb.max_active_regions", 1, 65_535, |c| c.hpb.map(|hpb| hpb.max_active_regions.into())),
        Bound::count("hpb.activate_after", 1, 255, |c| c.hpb.map(|hpb| hpb.activate_after.into())),
        Bound::count("hpb.refresh_after", 1, 255, |c| c.hpb.map(|hpb| hpb.refresh_after.into())),
        Bound::count("hpb.replace_after", 1, 255, |c| c.hpb.map(|hpb| hpb.replace_after.into())),
        Bound::count("hpb.freshness_chunk_entries", 1, 65_536, |c| c.hpb.map(|hpb| hpb.freshness_chunk_entries.into())),
        Bound::count("hpb.read_buffers", 1, 64, |c| c.hpb.map(|hpb| hpb.read_buffers.into())),
        Bound::count("hpb.entries.tag_bits", 8, 32, |c| c.hpb.map(|hpb| hpb.entries.tag_bits.into())),
        Bound::time("hpb.entries.make", Ns::ZERO, 1, |c| c.hpb.map(|hpb| hpb.entries.make.0)),
        Bound::time("hpb.entries.check", Ns::ZERO, 1, |c| c.hpb.map(|hpb| hpb.entries.check.0)),
        Bound::count("hpb.v2.single_blocks", 1, 255, |c| c.hpb?.v2.map(|v2| v2.single_blocks.into())),
        Bound::count("hpb.v2.pre_requests", 1, 126, |c| c.hpb?.v2.map(|v2| v2.pre_requests.into())),
        Bound::count("hpb.prototype.group_entries", 64, 65_536, |c| c.prototype().map(|p| p.group_entries.into())),
        Bound::count("hpb.prototype.listed_changes", 1, 4096, |c| c.prototype().map(|p| p.listed_changes.into())),
    ];
}
