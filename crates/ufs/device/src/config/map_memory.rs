// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory for the map, checked against the rest of the device: how many map pages fit, and whether it can exist.

use super::DeviceConfig;
use super::error::{ConfigError, bad_value};
use crate::host_map::config::{HostMap, MapMemory};

impl DeviceConfig {
    /// Host memory for copies of map pages, if the device uses any.
    pub fn host_map(&self) -> Option<&HostMap> {
        match &self.map_memory {
            Some(MapMemory::Host(host)) => Some(host),
            _ => None,
        }
    }

    /// Lines of a map page.
    pub(crate) fn host_lines(&self, host: &HostMap) -> u32 {
        self.map_page_bytes / host.line_bytes
    }

    /// Bytes of a map page in host memory, tags included.
    pub(crate) fn host_page_bytes(&self, host: &HostMap) -> u64 {
        u64::from(self.host_lines(host)) * u64::from(host.stored_line_bytes())
    }

    /// Map pages that fit into the host memory that the device would like; at most all of them.
    pub fn host_map_frames(&self) -> u32 {
        self.host_map_frames_in(self.host_map().map_or(0, |host| host.bytes))
    }

    /// Map pages that fit into `bytes` of host memory; at most all of them.
    pub(crate) fn host_map_frames_in(&self, bytes: u64) -> u32 {
        self.host_map().map_or(0, |host| {
            let frames = bytes / self.host_page_bytes(host).max(1);
            frames.min(u64::from(self.map_pages())) as u32
        })
    }

    /// Bytes of DRAM of the device.
    pub fn dram_bytes(&self) -> u64 {
        match self.map_memory {
            Some(MapMemory::Dram { .. }) => u64::from(self.map_pages()) * u64::from(self.map_page_bytes),
            _ => 0,
        }
    }

    /// Frames of the map cache: in SRAM, or in DRAM for all of the map.
    pub(crate) fn map_cache_frames(&self) -> u32 {
        match self.map_memory {
            Some(MapMemory::Dram { .. }) => self.map_pages(),
            _ => self.map_cache_bytes / self.map_page_bytes,
        }
    }

    /// Called after map pages and capacity have been checked.
    pub(crate) fn check_map_memory(&self) -> Result<(), ConfigError> {
        let Some(host) = self.host_map() else { return Ok(()) };
        if !host.line_bytes.is_power_of_two() || host.line_bytes > self.map_page_bytes {
            return bad_value(
                "map_memory.line_bytes",
                format!(
                    "is {}; it must be a power of two up to the {} of a map page",
                    host.line_bytes, self.map_page_bytes
                ),
            );
        }
        if host.minimum > host.bytes {
            let message = format!("is {}, above the {} that the device would like", host.minimum, host.bytes);
            return bad_value("map_memory.minimum", message);
        }
        let page = self.host_page_bytes(host);
        if host.bytes < page {
            return bad_value(
                "map_memory.bytes",
                format!("is {}; it must hold at least one map page of {page} bytes", host.bytes),
            );
        }
        Ok(())
    }
}
