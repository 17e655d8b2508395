// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device as its file would say it: the same names, nesting and units, for result documents that have to tell the full
//! configuration and for reading it back. It checks nothing; whoever reads it back does.

use super::booster::WriteBoosterEcho;
use super::device::{CONTROL_MODES, DevicePreset, MIB_EXPONENT, READ_BUFFERS, SCHEDULERS, SCHEMA};
use super::entries::EntriesEcho;
use super::ftl::{FaultsEcho, FtlEcho};
use super::hpb2::Hpb2Echo;
use super::map_memory::MapMemoryEcho;
use super::prototype::PrototypeEcho;
use readpath_device::Verification;
use readpath_kit::Ns;
use serde::{Deserialize, Serialize};

/// A device file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DeviceEcho {
    schema: String,
    name: String,
    description: String,
    sources: Vec<String>,
    product_name: String,
    queue_depth: u32,
    scheduler: String,
    geometry: GeometryEcho,
    flash: FlashEcho,
    suspend: SuspendEcho,
    firmware: FirmwareEcho,
    link: LinkEcho,
    map_cache: MapCacheEcho,
    write_buffer: WriteBufferEcho,
    /// Documents older than these tables do not have them.
    #[serde(default)]
    ftl: FtlEcho,
    #[serde(default)]
    faults: FaultsEcho,
    #[serde(skip_serializing_if = "Option::is_none")]
    write_booster: Option<WriteBoosterEcho>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map_memory: Option<MapMemoryEcho>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hpb: Option<HpbEcho>,
    lu: Vec<LuEcho>,
    host: HostEcho,
    calibration: CalibrationEcho,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct GeometryEcho {
    channels: u32,
    dies_per_channel: u32,
    planes: u32,
    blocks_per_plane: u32,
    pages_per_block: u32,
    page_bytes: u32,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct FlashEcho {
    read_us: f64,
    map_read_us: f64,
    program_us: f64,
    erase_us: f64,
    transfer_4k_us: f64,
    map_transfer_us: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct SuspendEcho {
    suspend_us: f64,
    resume_us: f64,
    max_per_op: u32,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct FirmwareEcho {
    flash_op_us: f64,
    hpb_read_extra_us: f64,
    write_command_us: f64,
    buffer_read_us: f64,
    make_entry_us: f64,
    control_us: f64,
    /// Documents that are older than the key come from devices that took no time for it.
    #[serde(default)]
    trim_map_page_us: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct LinkEcho {
    request_us: f64,
    response_us: f64,
    transfer_4k_us: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct MapCacheEcho {
    size_kib: u32,
    page_bytes: u32,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct WriteBufferEcho {
    size_kib: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct HpbEcho {
    /// Documents older than these two keys do not have them.
    #[serde(default = "both")]
    control_modes: String,
    #[serde(default = "device")]
    control: String,
    region_mib: u64,
    sub_region_mib: u64,
    max_active_regions: u16,
    activate_after_reads: u8,
    refresh_after_reads: u8,
    replace_after_reads: u8,
    repeat_after_ms: f64,
    freshness_chunk_entries: u32,
    /// Neither do some have this one.
    #[serde(default = "read_buffers")]
    read_buffers: u8,
    verify: bool,
    entry_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entries: Option<EntriesEcho>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    v2: Option<Hpb2Echo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prototype: Option<PrototypeEcho>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct LuEcho {
    blocks: u32,
    hpb: bool,
    max_active_regions: u16,
    pinned_start: u16,
    pinned_regions: u16,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct HostEcho {
    submit_us: f64,
    complete_us: f64,
    slots: u8,
    max_transfer_kib: u32,
    /// Said only where it matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    write_booster: Option<bool>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct CalibrationEcho {
    fitted: Vec<FittedEcho>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct FittedEcho {
    key: String,
    to: String,
}

fn both() -> String {
    "both".into()
}

fn device() -> String {
    "device".into()
}

fn read_buffers() -> u8 {
    READ_BUFFERS
}

/// The double nearest to the decimal; printed as shortly as possible it is that decimal again, up to 15 digits.
fn us(time: Ns) -> f64 {
    time.as_us_f64()
}

impl DeviceEcho {
    pub(crate) fn of(preset: &DevicePreset) -> DeviceEcho {
        let d = &preset.device;
        let scheduler = SCHEDULERS.iter().find(|(_, s)| *s == preset.scheduler).map_or("lean", |(word, _)| *word);
        let fitted = preset.fitted.iter().map(|(key, to)| FittedEcho { key: key.clone(), to: to.clone() }).collect();
        DeviceEcho {
            schema: SCHEMA.to_owned(),
            name: preset.name.clone(),
            description: preset.description.clone(),
            sources: preset.sources.clone(),
            product_name: d.product_name.clone(),
            queue_depth: d.queue_depth,
            scheduler: scheduler.to_owned(),
            geometry: GeometryEcho {
                channels: d.geometry.channels,
                dies_per_channel: d.geometry.dies_per_channel,
                planes: d.geometry.planes,
                blocks_per_plane: d.geometry.blocks_per_plane,
                pages_per_block: d.geometry.pages_per_block,
                page_bytes: d.geometry.page_bytes,
            },
            flash: FlashEcho {
                read_us: us(d.flash.read),
                map_read_us: us(d.flash.map_read),
                program_us: us(d.flash.program),
                erase_us: us(d.flash.erase),
                transfer_4k_us: us(d.flash.transfer_block),
                map_transfer_us: us(d.flash.map_transfer),
            },
            suspend: SuspendEcho {
                suspend_us: us(d.suspend.suspend),
                resume_us: us(d.suspend.resume),
                max_per_op: d.suspend.max_per_op,
            },
            firmware: FirmwareEcho {
                flash_op_us: us(d.firmware.flash_op),
                hpb_read_extra_us: us(d.firmware.hpb_read_extra),
                write_command_us: us(d.firmware.write_command),
                buffer_read_us: us(d.firmware.buffer_read),
                make_entry_us: us(d.firmware.make_entry),
                control_us: us(d.firmware.control),
                trim_map_page_us: us(d.firmware.trim_map_page),
            },
            link: LinkEcho {
                request_us: us(d.link.request),
                response_us: us(d.link.response),
                transfer_4k_us: us(d.link.block),
            },
            map_cache: MapCacheEcho { size_kib: d.map_cache_bytes >> 10, page_bytes: d.map_page_bytes },
            write_buffer: WriteBufferEcho { size_kib: u64::from(d.write_buffer_blocks) * 4 },
            ftl: FtlEcho::of(&d.ftl),
            faults: FaultsEcho::of(&d.ftl.faults),
            write_booster: d.write_booster.as_ref().map(WriteBoosterEcho::of),
            map_memory: d.map_memory.as_ref().map(MapMemoryEcho::of),
            hpb: d.hpb.map(|h| HpbEcho {
                control_modes: CONTROL_MODES
                    .iter()
                    .find(|(_, only)| *only == preset.only_control)
                    .map_or_else(both, |(word, _)| (*word).into()),
                control: h.control.name().into(),
                region_mib: 1 << (h.region_size - MIB_EXPONENT),
                sub_region_mib: 1 << (h.sub_region_size - MIB_EXPONENT),
                max_active_regions: h.max_active_regions,
                activate_after_reads: h.activate_after,
                refresh_after_reads: h.refresh_after,
                replace_after_reads: h.replace_after,
                repeat_after_ms: h.repeat_after.0 as f64 / 1e6,
                freshness_chunk_entries: h.freshness_chunk_entries,
                read_buffers: h.read_buffers,
                verify: h.verification == Verification::On,
                entry_key: format!("{:016x}{:016x}", d.entry_key[0], d.entry_key[1]),
                entries: EntriesEcho::of(&h.entries),
                v2: h.v2.as_ref().map(Hpb2Echo::of),
                prototype: h.prototype.as_ref().map(PrototypeEcho::of),
            }),
            lu: d
                .lus
                .iter()
                .map(|lu| LuEcho {
                    blocks: lu.blocks,
                    hpb: lu.hpb,
                    max_active_regions: lu.max_active_regions,
                    pinned_start: lu.pinned_start,
                    pinned_regions: lu.pinned_regions,
                })
                .collect(),
            host: HostEcho {
                submit_us: us(preset.delays.to_link),
                complete_us: us(preset.delays.from_link),
                slots: preset.host.slots,
                max_transfer_kib: u32::from(preset.host.max_transfer_blocks) * 4,
                write_booster: (d.write_booster.is_some() || !preset.host.write_booster)
                    .then_some(preset.host.write_booster),
            },
            calibration: CalibrationEcho { fitted },
        }
    }

    /// The device file. `DevicePreset::try_from` reads it back.
    pub fn to_toml(&self) -> String {
        // Cannot fail: every field is a number, a text, an array or a table. If it did, nothing could be read back, and
        // that is an error there.
        toml::to_string(self).unwrap_or_default()
    }
}
