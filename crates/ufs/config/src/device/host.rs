// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of the host around a device.

use super::preset::DevicePreset;
use crate::error::Result;
use crate::keys::{Key, Keys, blocks_of_kib, fields, flag, keys, multiple, table, us, whole, words};
use readpath_device::{Delays, HostMap, LuConfig, Protocol};
use readpath_host::{HostConfig, HostCores, HostMemoryLimit, NoHostMemory, ZoneMapper, ZoneMapping, grant};
use readpath_kit::Ns;
use readpath_stack::host_memory_ask;

/// The table `[host]`.
#[derive(Clone)]
pub(super) struct Host {
    pub delays: Delays,
    pub config: HostConfig,
}

/// `[host]`. Keys of WriteBooster and of host memory are written only for devices that have or ask for them.
pub(super) fn read(k: &mut Keys<DevicePreset>, has_booster: bool, asks_for_memory: bool) -> Result<Host> {
    let delay = || us(0..=Ns::from_secs(1000).0);
    let keys = |k: &mut Keys<Host>| {
        fields! { k:
            /// from the submission of a request to the link; delays no other request
            to_link of delays = "submit_us": delay();
            /// from the link to the submitter
            from_link of delays = "complete_us": delay();
            /// transfer request slots (NUTRS); the last is reserved for queries
            slots of config: whole(2..=64);
            /// longest transfer of a command; longer requests are split
            max_transfer_blocks of config = "max_transfer_kib": blocks_of_kib(1..=65_535);
            /// whether the host enables WriteBooster if the device has it
            write_booster of config: flag().or(true).quiet_if(!has_booster);
        }
        let of_host = |host: &Host| Some(host.config.host_memory);
        let host_memory =
            k.group(true, None, of_host, |k| memory(k, asks_for_memory))?.unwrap_or(HostMemoryLimit::LINUX);
        let cpu = Key::new("cpu", "CPU time of requests, in virtual time only").of("config.cores");
        let cores = k.key(cpu, table(cores).optional(), |host| host.config.cores)?;
        let zones = Key::new("zones", "how workloads use units with zones, in virtual time only").of("config.zones");
        let zones = k.key(zones, table(zones_of_host).optional(), |host| host.config.zones)?;
        let config = HostConfig { slots, max_transfer_blocks, hpb: None, write_booster, host_memory, cores, zones };
        Ok(Host { delays: Delays { to_link, from_link }, config })
    };
    let host = Key::new("host", "delays and limits of the host").of("");
    k.key(host, table(keys), |preset| Host { delays: preset.delays, config: preset.host })
}

fn cores(k: &mut Keys<HostCores>) -> Result<HostCores> {
    let cycles = || whole(0..=100_000_000);
    Ok(keys!(k => HostCores {
        /// cores that submit. A job stays on one; requests of a trace are spread over all
        count = "cores": whole(1..=256);
        /// their clock
        mhz = "core_mhz": whole(1..=100_000);
        /// cycles of a request before the device hears of it; a core works on one request at a time
        submit_cycles: cycles();
        /// cycles on top for each 4 KiB that it reads or writes: pages are pinned and mapped for the device
        page_cycles: cycles().or(0).quiet();
        /// cycles of its completion, on the same core
        complete_cycles: cycles();
        /// cycles of an interrupt. A completion that comes while its core completes others joins theirs
        interrupt_cycles: cycles();
    }))
}

fn zones_of_host(k: &mut Keys<ZoneMapper>) -> Result<ZoneMapper> {
    Ok(keys!(k => ZoneMapper {
        /// `none`: workloads have to write at write pointers, as fio jobs do with `zonemode=zbd`. `log`: they may write
        /// anywhere; a log-structured mapper of the host gives blocks places in zones, and cleans zones
        mapper: words(ZoneMapping::WORDS).or(ZoneMapping::None);
        /// with `mapper = "log"`: share of a unit's zones that workloads do not see, in percent; at least `keep_free`
        /// zones and four more
        spare_percent: whole(0..=90).or(10);
        /// with `mapper = "log"`: it cleans while fewer zones are free. Writes wait only when one is left
        keep_free: whole(2..=1000).or(2);
    }))
}

/// Refuses a mapper on a unit whose zones are too few for it.
pub(super) fn check_mapper(k: &Keys<DevicePreset>, units: &[LuConfig], host: &HostConfig) -> Result<()> {
    let Some(mapper) = host.mapper() else { return Ok(()) };
    let zoned = || units.iter().enumerate().filter_map(|(i, unit)| Some((i, unit.zone_count(), unit.zones?)));
    k.refuse(zoned().next().is_none(), "host.zones.mapper", "is \"log\", but no unit has zones (lu.zones)")?;
    for (i, zones, config) in zoned() {
        let spare = mapper.spare_zones(zones);
        let message =
            format!("is \"log\": it keeps {spare} of the {zones} zones of lu[{i}]; give that unit more zones");
        k.refuse(spare >= zones, "host.zones.mapper", message)?;
        let logs = ZoneMapper::LOGS;
        let message = format!("is {}; host.zones.mapper = \"log\" writes to {logs} zones at a time", config.most_open);
        k.refuse(config.most_open < logs, &format!("lu[{i}].zones.most_open"), message)?;
    }
    Ok(())
}

const MIB: u64 = 1 << 20;

/// The host's memory limits; written only if a device asks for memory.
fn memory(k: &mut Keys<HostMemoryLimit>, asks: bool) -> Result<HostMemoryLimit> {
    let usual = HostMemoryLimit::LINUX;
    let mib = whole(0..=MIB).scaled(|mib| mib * MIB, |bytes| bytes / MIB, " (counted in bytes)");
    let kib = multiple(8..=4096, 4).scaled(|kib| kib << 10, |bytes| bytes >> 10, " (counted in bytes)");
    Ok(keys!(k => HostMemoryLimit {
        /// with `map_memory.kind = "hmb"`: host memory that the device gets at most, 0 for none (Linux:
        /// `nvme.max_host_mem_size_mb`)
        bytes = "max_host_mem_mib": mib.or(usual.bytes).quiet_if(!asks);
        /// with `map_memory.kind = "hmb"`: largest piece of memory that the host's allocator finds; less where memory
        /// is in pieces
        largest_chunk = "largest_chunk_kib": kib.or(usual.largest_chunk).quiet_if(!asks);
    }))
}

/// Refuses a host that grants less than its device needs. Linux logs that and continues without host memory; here it
/// is an error.
pub(super) fn check_memory(k: &Keys<DevicePreset>, map: Option<&HostMap>, limit: &HostMemoryLimit) -> Result<()> {
    let Some(map) = map.filter(|map| map.protocol == Protocol::Hmb) else { return Ok(()) };
    let mib = |bytes: u64| bytes.div_ceil(MIB);
    let (key, message) = match grant(&host_memory_ask(map), limit) {
        Ok(_) | Err(NoHostMemory::NotWanted) => return Ok(()),
        Err(NoHostMemory::LimitBelowMinimum { minimum, limit }) => (
            "host.max_host_mem_mib",
            format!(
                "is {}, and the device needs {} KiB (map_memory.min_kib): the host would give nothing. Give at least \
                 {}, or 0 for a device without host memory",
                limit / MIB,
                minimum >> 10,
                mib(minimum)
            ),
        ),
        Err(NoHostMemory::ChunksBelowMinimum { minimum, chunks, chunk }) => (
            "map_memory.max_chunks",
            format!(
                "is {chunks}: so many pieces of {} KiB (host.largest_chunk_kib, at most 4096) are less than the {} KiB \
                 that the device needs (map_memory.min_kib); take more pieces, larger ones or a smaller minimum",
                chunk >> 10,
                minimum >> 10
            ),
        ),
        Err(NoHostMemory::ChunksTooSmall { least, largest }) => (
            "map_memory.min_chunk_kib",
            format!(
                "is {}, and the largest piece that the host gives has {} KiB (host.largest_chunk_kib, at most 4096, \
                 and at most the memory given): the device would get nothing",
                least >> 10,
                largest >> 10
            ),
        ),
    };
    k.refuse(true, key, message)
}
