// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the map is held besides flash and the map cache, what fits there, and whether the device can have it.

use super::DeviceConfig;
use super::error::{ConfigError, bad_value};
use readpath_kit::Ns;

/// A store for the map that is larger than SRAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapMemory {
    /// The whole map in DRAM of the device, in place of the map cache. Pages are loaded from flash when they are
    /// first needed after power-on, and stay.
    Dram {
        /// Time of a lookup, during which the firmware core waits.
        access: Ns,
    },
    /// Copies of map pages in memory of the host, behind the map cache.
    Host(HostMap),
}

impl MapMemory {
    /// Time of a lookup in DRAM, or of an access to host memory.
    pub fn access(&self) -> Ns {
        match self {
            MapMemory::Dram { access } => *access,
            MapMemory::Host(host) => host.access,
        }
    }
}

/// How device and host exchange parts of the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// As NVMe's Host Memory Buffer (NVM Express 1.2): the device reads and writes host memory itself, and writes are
    /// posted.
    Hmb,
    /// As the Unified Memory Extension of UFS (JESD220-1A): messages to the host's controller, each of which is
    /// answered.
    Ume,
}

/// Host memory for the device from the start, and what its use costs.
///
/// A read whose map page is not in SRAM, but here, fetches the line with its entries: firmware, a request on the link
/// to the host, the host's memory, the line on the link to the device. Map pages loaded from flash for translation
/// are copied here, and the copies are renewed when their pages are written back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMap {
    /// Kind of exchange.
    pub protocol: Protocol,
    /// Bytes that the device asks for; the host allocates all that it gives at the start. NVMe: HMPRE.
    pub bytes: u64,
    /// Bytes below which the device uses no host memory. NVMe: HMMIN.
    pub minimum: u64,
    /// Bytes of the smallest piece that the device accepts; 0 for any. NVMe: HMMINDS.
    pub least_chunk: u64,
    /// The most pieces that the device accepts; 0 for any number. NVMe: HMMAXD.
    pub most_chunks: u32,
    /// The least bytes of entries fetched at once: a power of two, 16 to a map page.
    pub line_bytes: u32,
    /// Requests that may be outstanding; further ones wait in order.
    pub outstanding: u8,
    /// Firmware time for each exchange.
    pub firmware: Ns,
    /// Link time to the host: a request, or the header of data.
    pub request: Ns,
    /// Time from the end of a request on the link until the answer is ready for the link: the host's side and its
    /// memory.
    pub access: Ns,
    /// Link time to the device: the header of data, or an answer without data.
    pub response: Ns,
    /// Whether each line has a tag that detects changes, and what that costs.
    pub check: Option<LineCheck>,
}

/// Cost of tags of lines, each [`LineCheck::TAG_BYTES`] long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineCheck {
    /// Firmware time for each line that is fetched.
    pub check: Ns,
    /// Firmware time for each line that is written.
    pub seal: Ns,
}

impl LineCheck {
    /// Bytes of a tag, which is stored and sent with its line.
    pub const TAG_BYTES: u32 = 8;
}

impl HostMap {
    /// Bytes of a line with its tag in host memory.
    pub fn stored_line_bytes(&self) -> u32 {
        self.line_bytes + if self.check.is_some() { LineCheck::TAG_BYTES } else { 0 }
    }
}

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
