// SPDX-License-Identifier: MIT OR Apache-2.0
//! The query manager: descriptors, attributes and flags (JESD220 §14), answered from the configuration and a little
//! state. It does not know time.

use crate::back::{MediaMode, Probe};
use crate::config::MOST_ENTRIES;
use crate::device::UfsDevice;
use crate::front::attribute_access;
use crate::ftl::BoosterFlags;
use crate::ftl::bytes::Own;
use readpath_flash::DieSched;
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_proto::desc::{
    self, CONFIGURED_UNITS, DeviceDescriptor, GeometryDescriptor, UnitDescriptor, encode_string,
};
use readpath_proto::query::{attribute, descriptor, flag, opcode, result};
use readpath_proto::scsi::WLUN_RPMB;
use readpath_proto::typed::{QueryRequest, QueryResponse, ReplyBody};
use readpath_proto::{booster, hpb};

const SECTOR_BYTES: u64 = 512;
/// The lowest bBackgroundOpStatus that raises an exception event.
const PERFORMANCE_SUFFERS: u8 = 2;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    pub(crate) fn query(&mut self, now: Ns, tag: u8, request: &QueryRequest) {
        let mut data = std::mem::take(&mut self.front.slot_mut(tag).data_in);
        data.clear();
        let settings = self.front.target().query.settings();
        let answer = self.query_result(request, &mut data);
        let now_are = self.front.target().query.settings();
        if now_are != settings {
            self.ftl.export_other(Own::Settings(now_are), &mut self.back);
        }
        let (code, value) = match answer {
            Ok(value) => (result::SUCCESS, value),
            Err(code) => (code, 0),
        };
        let length = data.len() as u16;
        let response = QueryResponse {
            result: code,
            opcode: request.opcode,
            idn: request.idn,
            index: request.index,
            selector: request.selector,
            length,
            value,
        };
        let slot = self.front.slot_mut(tag);
        slot.data_in = data;
        slot.outcome = Some(ReplyBody::Query(response));
        self.send_reply(now, tag);
        let writes_flag = matches!(request.opcode, opcode::SET_FLAG | opcode::CLEAR_FLAG | opcode::TOGGLE_FLAG);
        let is_heard = matches!(request.idn, flag::BACKGROUND_OPS_EN | flag::WB_EN..=flag::WB_FLUSH_DURING_HIBERNATE);
        if code == result::SUCCESS && writes_flag && is_heard {
            self.follow_flags();
            self.arm_background(now);
            self.pump(now);
        }
    }

    /// Passes the flags to flash translation.
    pub(crate) fn follow_flags(&mut self) {
        let is_set = |idn| self.front.target().query.is_set(idn);
        self.ftl.set_background(is_set(flag::BACKGROUND_OPS_EN));
        self.ftl.set_booster_flags(BoosterFlags {
            on: is_set(flag::WB_EN),
            flush: is_set(flag::WB_FLUSH_EN),
            flush_when_idle: is_set(flag::WB_FLUSH_DURING_HIBERNATE),
        });
    }

    /// Pending exception events (wExceptionEventStatus): urgent background operations.
    pub(crate) fn exceptions(&self) -> u32 {
        const URGENT_BKOPS: u32 = 1 << 2;
        if self.ftl.background_need() >= PERFORMANCE_SUFFERS { URGENT_BKOPS } else { 0 }
    }

    fn query_result(&mut self, q: &QueryRequest, data: &mut Vec<u8>) -> Result<u32, u8> {
        match q.opcode {
            opcode::NOP => Ok(0),
            opcode::READ_DESCRIPTOR | opcode::READ_ATTRIBUTE | opcode::READ_FLAG => self.inspect(q, data),
            // The configuration descriptor is read-only too: the layout of flash depends on it.
            opcode::WRITE_DESCRIPTOR => Err(result::NOT_WRITABLE),
            opcode::WRITE_ATTRIBUTE => {
                let (_, writable) = attribute_access(q.idn).ok_or(result::INVALID_IDN)?;
                if !writable {
                    return Err(result::NOT_WRITABLE);
                }
                let bits = u32::from(attribute::bytes(q.idn).unwrap_or(4)) * 8;
                if bits < 32 && q.value >> bits != 0 {
                    return Err(result::INVALID_VALUE);
                }
                let query = &mut self.front.target_mut().query;
                if query.is_final_attribute(q.idn) {
                    return Err(result::ALREADY_WRITTEN);
                }
                query.set_attribute(q.idn, q.value);
                Ok(q.value)
            }
            opcode::SET_FLAG | opcode::CLEAR_FLAG | opcode::TOGGLE_FLAG => {
                self.known_flag(q.idn)?;
                self.change_flag(q)
            }
            _ => Err(result::INVALID_OPCODE),
        }
    }

    /// The bytes (in `data`) or the value that a READ DESCRIPTOR, READ ATTRIBUTE or READ FLAG would return now. For
    /// observers that send no command; it takes no time.
    /// # Errors
    /// The result code of the refusal ([`readpath_proto::query::result`]), as in a response.
    pub fn inspect(&self, q: &QueryRequest, data: &mut Vec<u8>) -> Result<u32, u8> {
        match q.opcode {
            opcode::READ_DESCRIPTOR => {
                self.read_descriptor(q, data)?;
                data.truncate(usize::from(q.length));
                Ok(0)
            }
            opcode::READ_ATTRIBUTE => {
                let (readable, _) = attribute_access(q.idn).ok_or(result::INVALID_IDN)?;
                if !readable {
                    return Err(result::NOT_READABLE);
                }
                match q.idn {
                    attribute::WB_FLUSH_STATUS..=attribute::WB_CURRENT_SIZE
                        if self.config.write_booster().is_some() =>
                    {
                        Ok(self.ftl.booster_attribute(q.idn))
                    }
                    attribute::BACKGROUND_OP_STATUS => Ok(self.ftl.background_need().into()),
                    attribute::EXCEPTION_EVENT_STATUS => Ok(self.exceptions()),
                    attribute::MAX_HPB_SINGLE_CMD => Ok(self.hpb.v2().map_or(0, |v2| u32::from(v2.single_blocks) - 1)),
                    // Not in JESD220: a device without the feature does not have the attribute.
                    attribute::EHS_HPB_ENTRIES => match self.hpb.v2() {
                        Some(v2) if v2.entries_in_ehs => Ok(u32::from(MOST_ENTRIES)),
                        _ => Err(result::INVALID_IDN),
                    },
                    attribute::GROUP_ENTRIES => match self.hpb.prototype() {
                        Some(groups) => Ok(groups.group_entries()),
                        None => Err(result::INVALID_IDN),
                    },
                    idn => Ok(self.front.target().query.attribute(idn)),
                }
            }
            opcode::READ_FLAG => {
                self.known_flag(q.idn)?;
                if q.idn == flag::HPB_EN {
                    return Ok(u32::from(self.hpb.is_enabled()));
                }
                Ok(u32::from(self.front.target().query.is_set(q.idn)))
            }
            _ => Err(result::INVALID_OPCODE),
        }
    }

    fn known_flag(&self, idn: u8) -> Result<(), u8> {
        let hpb = self.config.standard_hpb().is_some();
        let write_booster = self.config.write_booster().is_some();
        match idn {
            flag::DEVICE_INIT..=flag::BUSY_RTC | flag::DISABLE_FW_UPDATE => Ok(()),
            flag::HPB_RESET if hpb => Ok(()),
            // fHPBEn exists since HPB 2.0.
            flag::HPB_EN if self.hpb.v2().is_some() => Ok(()),
            flag::WB_EN..=flag::WB_FLUSH_DURING_HIBERNATE if write_booster => Ok(()),
            _ => Err(result::INVALID_IDN),
        }
    }

    fn change_flag(&mut self, q: &QueryRequest) -> Result<u32, u8> {
        match (q.idn, q.opcode) {
            // Both operations are done at once, so the flag reads 0.
            (flag::DEVICE_INIT, opcode::SET_FLAG) => Ok(0),
            (flag::HPB_RESET, opcode::SET_FLAG) => {
                self.hpb.host_reset();
                Ok(0)
            }
            (flag::HPB_EN, op) => {
                let on = after(op, self.hpb.is_enabled());
                self.hpb.set_enabled(on);
                self.front.target_mut().query.set_flag(flag::HPB_EN, on);
                Ok(u32::from(on))
            }
            // These flags have no effect: no unit is configured for permanent protection (bLUWriteProtect), and there
            // is no firmware to update.
            (
                flag::PERMANENT_WP_EN
                | flag::DISABLE_FW_UPDATE
                | flag::BACKGROUND_OPS_EN
                | flag::LIFE_SPAN_MODE_EN
                | flag::WB_EN
                | flag::WB_FLUSH_EN
                | flag::WB_FLUSH_DURING_HIBERNATE,
                op,
            ) => {
                let query = &mut self.front.target_mut().query;
                if query.is_final_flag(q.idn) {
                    return Err(result::ALREADY_WRITTEN);
                }
                let on = after(op, query.is_set(q.idn));
                query.set_flag(q.idn, on);
                Ok(u32::from(on))
            }
            _ => Err(result::NOT_WRITABLE),
        }
    }

    fn read_descriptor(&self, q: &QueryRequest, data: &mut Vec<u8>) -> Result<(), u8> {
        match (q.idn, q.index) {
            (descriptor::DEVICE, 0) => data.extend(self.device_descriptor().to_bytes()),
            (descriptor::GEOMETRY, 0) => data.extend(self.geometry_descriptor().to_bytes()),
            // Other indexes are units beyond the eighth, which no device has (bMaxNumberLU is 0).
            (descriptor::CONFIGURATION, 0) => {
                let units: [_; CONFIGURED_UNITS] = std::array::from_fn(|lun| self.unit_descriptor(lun as u8));
                data.extend(desc::configuration(&self.device_descriptor(), &units));
            }
            (descriptor::UNIT, WLUN_RPMB) => data.extend(desc::RPMB_UNIT),
            (descriptor::UNIT, lun @ 0..8) => data.extend(self.unit_descriptor(lun).to_bytes()),
            (descriptor::INTERCONNECT, 0) => data.extend(desc::interconnect(self.config.ufs_version)),
            (descriptor::POWER, 0) => data.extend(desc::POWER),
            (descriptor::HEALTH, 0) => data.extend(self.ftl.health()),
            (descriptor::STRING, index) => {
                let d = DeviceDescriptor::default();
                let text = match index {
                    i if i == d.manufacturer_name => "READPATH",
                    i if i == d.product_name => &self.config.product_name,
                    i if i == d.serial_number => &self.front.target().serial_text(),
                    i if i == d.oem_id => "READPATH",
                    i if i == d.product_revision => "0001",
                    _ => return Err(result::INVALID_INDEX),
                };
                encode_string(text, data).map_err(|_| result::GENERAL_FAILURE)?;
            }
            (
                descriptor::DEVICE
                | descriptor::GEOMETRY
                | descriptor::CONFIGURATION
                | descriptor::UNIT
                | descriptor::INTERCONNECT
                | descriptor::POWER
                | descriptor::HEALTH,
                _,
            ) => return Err(result::INVALID_INDEX),
            _ => return Err(result::INVALID_IDN),
        }
        Ok(())
    }

    fn device_descriptor(&self) -> DeviceDescriptor {
        let mut d = DeviceDescriptor { number_lu: self.config.lus.len() as u8, ..DeviceDescriptor::default() };
        d.spec_version = self.config.ufs_version.bcd();
        d.queue_depth = self.config.queue_depth as u8;
        if let Some(config) = self.config.standard_hpb() {
            d.hpb_control = config.control.byte();
            d.ufs_features |= hpb::FEATURE_HPB;
            d.extended_features |= u32::from(hpb::FEATURE_HPB);
            d.hpb_version = if config.v2.is_some() { hpb::VERSION_2_0 } else { hpb::VERSION_1_0 };
        }
        if let Some(wb) = self.config.write_booster() {
            d.extended_features |= booster::FEATURE_WRITE_BOOSTER;
            d.wb_preserve_user_space = 1;
            d.wb_type = booster::BUFFER_SHARED;
            d.wb_shared_alloc_units = wb.dynamic_blocks.div_ceil(booster::ALLOCATION_UNIT_BLOCKS);
        }
        d
    }

    fn geometry_descriptor(&self) -> GeometryDescriptor {
        let bytes = u64::from(self.config.geometry.slices()) * u64::from(BLOCK_BYTES);
        let mut d = GeometryDescriptor { total_raw_capacity: bytes / SECTOR_BYTES, ..GeometryDescriptor::default() };
        if let Some(hpb) = self.config.standard_hpb() {
            d.hpb_region_size = hpb.region_size;
            d.hpb_sub_region_size = hpb.sub_region_size;
            d.hpb_number_lu = self.config.lus.iter().filter(|lu| lu.hpb).count() as u8;
            d.hpb_max_active_regions = hpb.max_active_regions;
        }
        if let Some(wb) = self.config.write_booster() {
            d.wb_max_alloc_units = wb.dynamic_blocks.div_ceil(booster::ALLOCATION_UNIT_BLOCKS);
            d.wb_max_luns = self.config.lus.len() as u8;
            d.wb_capacity_factor = self.config.slc.map_or(0, |slc| slc.bits_per_cell as u8);
            d.wb_reduction_types = booster::PRESERVE_USER_SPACE_ONLY;
            d.wb_types = booster::SHARED_ONLY;
        }
        d
    }

    fn unit_descriptor(&self, lun: u8) -> UnitDescriptor {
        let Some(lu) = self.config.lus.get(usize::from(lun)) else {
            return UnitDescriptor { unit_index: lun, ..UnitDescriptor::default() };
        };
        let mut d = UnitDescriptor {
            unit_index: lun,
            lu_enable: 1,
            logical_block_count: u64::from(lu.blocks),
            erase_block_size: self.config.geometry.slices_per_superblock(),
            // 03h: thin, unmapped blocks read as zeros. A zoned unit is not thin.
            provisioning_type: if lu.zones.is_some() { 0 } else { 3 },
            physical_resource_count: u64::from(lu.blocks),
            ..UnitDescriptor::default()
        };
        if lu.hpb {
            d.lu_enable = hpb::LU_ENABLED_HPB;
        }
        if lu.hpb && self.hpb.prototype().is_none() {
            d.hpb_max_active_regions = lu.max_active_regions;
            d.hpb_pinned_start = lu.pinned_start;
            d.hpb_pinned_count = lu.pinned_regions;
        }
        d
    }
}

/// The value of a flag after SET, CLEAR or TOGGLE FLAG.
fn after(op: u8, was_set: bool) -> bool {
    match op {
        opcode::SET_FLAG => true,
        opcode::CLEAR_FLAG => false,
        _ => !was_set,
    }
}
