// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device's request for host memory, and the host's grant.

use readpath_device::{DeviceConfig, HostMap, Protocol};
use readpath_host::{HostConfig, HostMemoryAsk, grant};

/// A device's request to its host.
pub fn host_memory_ask(map: &HostMap) -> HostMemoryAsk {
    let HostMap { bytes, minimum, least_chunk, most_chunks, .. } = *map;
    HostMemoryAsk { preferred: bytes, minimum, least_chunk, most_chunks }
}

/// Bytes of memory that a host grants to a device. For the Unified Memory Extension no limit is known.
pub fn given_host_memory(device: &DeviceConfig, host: &HostConfig) -> u64 {
    device.host_map().map_or(0, |map| match map.protocol {
        Protocol::Ume => map.bytes,
        Protocol::Hmb => grant(&host_memory_ask(map), &host.host_memory).map_or(0, |given| given.bytes),
    })
}
