// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the map is held beside flash and the map cache, as part of a device's configuration, and the checks that it can
//! exist. It knows nothing of requests.

use crate::config::{ConfigError, DeviceConfig, bad};
use readpath_kit::Ns;

/// A place for the map that is larger than SRAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapMemory {
    /// All of the map in DRAM of the device, in place of the map cache. Pages come from flash when they are first needed
    /// after power is applied, and stay.
    Dram {
        /// A look at the map: the firmware core waits for it.
        access: Ns,
    },
    /// Copies of map pages in memory of the host, behind the map cache.
    Host(HostMap),
}

/// How device and host exchange parts of the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// As NVMe's Host Memory Buffer (NVM Express 1.2): the device reads and writes host memory itself, and writes are
    /// posted.
    Hmb,
    /// As the Unified Memory Extension of UFS (JESD220-1A): messages to the host's controller, each of which is answered.
    Ume,
}

/// Memory of the host that belongs to the device from the start, and what its use costs.
///
/// A read whose map page is not in SRAM, but here, fetches the line with its entries: firmware, a request on the link to
/// the host, the host's memory, the line on the link to the device. Map pages read from flash for translation are copied
/// here, and pages that are held are written here anew when they are written back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMap {
    /// Kind of exchange.
    pub protocol: Protocol,
    /// Bytes, all allocated at the start.
    pub bytes: u64,
    /// Bytes of entries that are fetched at once, at least: a power of two, 16 to a map page.
    pub line_bytes: u32,
    /// Requests that may be unanswered at once; more wait in order.
    pub outstanding: u8,
    /// Firmware core for each exchange.
    pub firmware: Ns,
    /// Link to the host: a request, or what comes before data.
    pub request: Ns,
    /// From the end of a request on the link until the answer is ready for it: the host's side and its memory.
    pub access: Ns,
    /// Link to the device: what comes before data, or an answer without data.
    pub response: Ns,
    /// Whether each line has a tag that tells if somebody changed it, and what that costs.
    pub check: Option<LineCheck>,
}

/// Cost of tags of lines, each [`LineCheck::TAG_BYTES`] long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineCheck {
    /// Firmware core for each line that is fetched.
    pub check: Ns,
    /// Firmware core for each line that is written.
    pub seal: Ns,
}

impl LineCheck {
    /// Bytes of a tag, which lies and travels beside its line.
    pub const TAG_BYTES: u32 = 8;
}

impl HostMap {
    /// Bytes of a line with its tag, as it lies in host memory.
    pub fn stored_line_bytes(&self) -> u32 {
        self.line_bytes + if self.check.is_some() { LineCheck::TAG_BYTES } else { 0 }
    }
}

impl DeviceConfig {
    /// Copies of map pages in host memory, if the device has any.
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

    /// Map pages that host memory has room for; all of them at most.
    pub fn host_map_frames(&self) -> u32 {
        self.host_map().map_or(0, |host| {
            let frames = host.bytes / self.host_page_bytes(host).max(1);
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

    /// Frames of what serves as the map cache: SRAM, or DRAM for all of the map.
    pub(crate) fn map_cache_frames(&self) -> u32 {
        match self.map_memory {
            Some(MapMemory::Dram { .. }) => self.map_pages(),
            _ => self.map_cache_bytes / self.map_page_bytes,
        }
    }

    /// Called when map pages and capacity have been found possible.
    pub(crate) fn check_map_memory(&self) -> Result<(), ConfigError> {
        let longest = Ns::from_secs(1);
        let time = |field: &str, value: Ns| match value > longest {
            true => bad(field, format!("is {value}; it must be at most 1 s")),
            false => Ok(()),
        };
        let host = match &self.map_memory {
            None => return Ok(()),
            Some(MapMemory::Dram { access }) => return time("map_memory.access", *access),
            Some(MapMemory::Host(host)) => host,
        };
        time("map_memory.firmware", host.firmware)?;
        time("map_memory.request", host.request)?;
        time("map_memory.access", host.access)?;
        time("map_memory.response", host.response)?;
        if let Some(check) = host.check {
            time("map_memory.check", check.check)?;
            time("map_memory.seal", check.seal)?;
        }
        if !host.line_bytes.is_power_of_two() || !(16..=self.map_page_bytes).contains(&host.line_bytes) {
            return bad(
                "map_memory.line_bytes",
                format!(
                    "is {}; it must be a power of two from 16 to the {} of a map page",
                    host.line_bytes, self.map_page_bytes
                ),
            );
        }
        if !(1..=64).contains(&host.outstanding) {
            return bad("map_memory.outstanding", format!("is {}; it must be 1 to 64", host.outstanding));
        }
        let page = self.host_page_bytes(host);
        if host.bytes < page || host.bytes > 1 << 40 {
            return bad(
                "map_memory.bytes",
                format!("is {}; it must hold at least one map page of {page} bytes, and at most 1 TiB", host.bytes),
            );
        }
        Ok(())
    }
}
