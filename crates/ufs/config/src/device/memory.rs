// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of memory for the map besides flash and SRAM.

use super::bounds;
use crate::error::Result;
use crate::keys::{Key, Keys, bytes_of_mib, fields, flag, keys, multiple, power_of_two, us, whole, words};
use readpath_device::{HostMap, LineCheck, MapMemory, Protocol};

const KINDS: [(&str, Option<Protocol>); 3] =
    [("dram", None), ("hmb", Some(Protocol::Hmb)), ("ume", Some(Protocol::Ume))];

pub(super) fn map_memory(k: &mut Keys<MapMemory>) -> Result<MapMemory> {
    let kind = Key::new(
        "kind",
        "`dram`: the whole map in DRAM of the device, instead of the map cache; a map page is read from flash when it \
            is first needed after power-on. `hmb`, `ume`: copies of map pages in host memory that belongs to the \
            device, behind the map cache",
    );
    let of_host = |memory: &MapMemory| match memory {
        MapMemory::Dram { .. } => None,
        MapMemory::Host(host) => Some(*host),
    };
    let protocol = k.key(kind, words(KINDS), |memory| of_host(memory).map(|host| host.protocol))?;
    let access = Key {
        name: "access_us",
        field: "access",
        doc: "`dram`: a lookup, for which the firmware core waits. Otherwise from the end of a request on the link \
            until the host's answer is ready to be sent",
    };
    let access = k.key(access, us(bounds("map_memory.access")), MapMemory::access)?;
    let why = "has no meaning for kind = \"dram\", which holds all of the map in the device";
    let host = k.group(protocol.is_some(), Some(why), of_host, host_map)?;
    let why = "belongs to kind = \"hmb\", whose device and host agree on a size";
    let of_hmb = |memory: &MapMemory| of_host(memory).filter(|host| host.protocol == Protocol::Hmb).map(Ask::of);
    let ask = k.group(protocol == Some(Protocol::Hmb), Some(why), of_hmb, ask)?.unwrap_or_default();
    let Some((host, protocol)) = host.zip(protocol) else { return Ok(MapMemory::Dram { access }) };
    let Ask { minimum, least_chunk, most_chunks } = ask;
    let too_much = "is above size_mib; a device cannot need more than it would like";
    k.refuse(minimum > host.bytes, "min_kib", too_much)?;
    Ok(MapMemory::Host(HostMap { protocol, access, minimum, least_chunk, most_chunks, ..host }))
}

/// What a device with `hmb` requires of host memory besides its size.
#[derive(Clone, Copy, Default)]
struct Ask {
    minimum: u64,
    least_chunk: u64,
    most_chunks: u32,
}

impl Ask {
    fn of(host: HostMap) -> Ask {
        Ask { minimum: host.minimum, least_chunk: host.least_chunk, most_chunks: host.most_chunks }
    }
}

fn ask(k: &mut Keys<Ask>) -> Result<Ask> {
    let kib =
        |least: u64| multiple(least..=1 << 30, 4).scaled(|kib| kib << 10, |bytes| bytes >> 10, " (counted in bytes)");
    Ok(keys!(k => Ask {
        /// with `hmb`: below this the device takes none (HMMIN)
        minimum = "min_kib": kib(0).or(0).quiet();
        /// with `hmb`: smallest piece of host memory that the device takes, 0 for any (HMMINDS)
        least_chunk = "min_chunk_kib": kib(0).or(0).quiet();
        /// with `hmb`: pieces that the device takes at most, 0 for any number (HMMAXD)
        most_chunks = "max_chunks": whole(0..=65535).or(0).quiet();
    }))
}

/// For `hmb` and `ume`; the caller reads kind and time of access.
fn host_map(k: &mut Keys<HostMap>) -> Result<HostMap> {
    fields! { k:
        /// host memory that the device asks for, allocated from the start; with `hmb` (HMPRE) the host may give less,
        /// see `host.max_host_mem_mib`. A map page takes as much as in flash, plus its tags
        bytes = "size_mib": bytes_of_mib(bounds("map_memory.bytes"));
        /// bytes of entries fetched at once, at most `map_cache.page_bytes`; 4 bytes an entry
        line_bytes: power_of_two(bounds("map_memory.line_bytes"));
        /// requests outstanding at once; more wait in order. Writes are answered with `ume` only
        outstanding: whole(bounds("map_memory.outstanding"));
        /// firmware core for each exchange
        firmware = "firmware_us": us(bounds("map_memory.firmware"));
        /// link to the host: a request, or the header of a page that is written
        request = "request_us": us(bounds("map_memory.request"));
        /// link to the device: the header of lines, or the answer to a write (`ume`)
        response = "response_us": us(bounds("map_memory.response"));
    }
    let checked = Key::new("check", "each line has a tag of 8 bytes, which shows whether the host changed it");
    let checked = k.key(checked.of(""), flag(), |host| host.check.is_some())?;
    let check = k.group(
        checked,
        Some("has no meaning with check = false"),
        |host| host.check,
        |k| {
            Ok(keys!(k => LineCheck {
                /// with `check = true`: firmware core for each line fetched
                check = "check_us": us(bounds("map_memory.check"));
                /// with `check = true`: firmware core for each line written
                seal = "seal_us": us(bounds("map_memory.seal"));
            }))
        },
    )?;
    let (protocol, access) = (Protocol::Hmb, readpath_kit::Ns::ZERO);
    let Ask { minimum, least_chunk, most_chunks } = Ask::default();
    Ok(HostMap {
        protocol,
        bytes,
        minimum,
        least_chunk,
        most_chunks,
        line_bytes,
        outstanding,
        firmware,
        request,
        access,
        response,
        check,
    })
}
