// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the map is held besides flash and the map cache, as part of a device's configuration. It knows nothing of
//! requests.

use readpath_kit::Ns;

/// A place for the map that is larger than SRAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapMemory {
    /// All of the map in DRAM of the device, in place of the map cache. Pages come from flash when they are first
    /// needed after power is applied, and stay.
    Dram {
        /// A look at the map: the firmware core waits for it.
        access: Ns,
    },
    /// Copies of map pages in memory of the host, behind the map cache.
    Host(HostMap),
}

impl MapMemory {
    /// A look at the map in DRAM, or the access to host memory.
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

/// Memory of the host that belongs to the device from the start, and what its use costs.
///
/// A read whose map page is not in SRAM, but here, fetches the line with its entries: firmware, a request on the link
/// to the host, the host's memory, the line on the link to the device. Map pages read from flash for translation are
/// copied here, and pages that are held are written here anew when they are written back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMap {
    /// Kind of exchange.
    pub protocol: Protocol,
    /// Bytes that the device would like to have; the host allocates all that it gives at the start. NVMe: HMPRE.
    pub bytes: u64,
    /// Bytes below which it takes none. NVMe: HMMIN.
    pub minimum: u64,
    /// Bytes of the smallest piece that it takes; 0 for any. NVMe: HMMINDS.
    pub least_chunk: u64,
    /// Pieces that it takes at most; 0 for any number. NVMe: HMMAXD.
    pub most_chunks: u32,
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
    /// Whether each line has a tag that shows changes to it, and what that costs.
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
    /// Bytes of a tag, which is stored and sent with its line.
    pub const TAG_BYTES: u32 = 8;
}

impl HostMap {
    /// Bytes of a line with its tag, as it lies in host memory.
    pub fn stored_line_bytes(&self) -> u32 {
        self.line_bytes + if self.check.is_some() { LineCheck::TAG_BYTES } else { 0 }
    }
}
