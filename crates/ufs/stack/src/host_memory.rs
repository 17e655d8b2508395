// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a device asks of the host's memory, and what it gets. It decides nothing itself.

use readpath_device::{DeviceConfig, HostMap, Protocol};
use readpath_host::{HostConfig, HostMemoryAsk, grant};

/// What a device asks its host for.
pub fn host_memory_ask(map: &HostMap) -> HostMemoryAsk {
    let HostMap { bytes, minimum, least_chunk, most_chunks, .. } = *map;
    HostMemoryAsk { preferred: bytes, minimum, least_chunk, most_chunks }
}

/// Bytes of its memory that a host gives to a device. Nothing is known of a bound for the Unified Memory Extension.
pub fn given_host_memory(device: &DeviceConfig, host: &HostConfig) -> u64 {
    device.host_map().map_or(0, |map| match map.protocol {
        Protocol::Ume => map.bytes,
        Protocol::Hmb => grant(&host_memory_ask(map), &host.host_memory).map_or(0, |given| given.bytes),
    })
}
