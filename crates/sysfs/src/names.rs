// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of files and what is behind each: offset and bytes of a descriptor's field, number of a flag or an attribute.
//! Spelled as in Linux 6.1 `drivers/ufs/core/ufs-sysfs.c`; offsets as in `include/ufs/ufs.h`.

use readpath_proto::query::{attribute, descriptor, flag};

/// A field of a descriptor.
pub(crate) struct Field(pub &'static str, pub u8, pub u8);

/// A folder with the fields of one descriptor of the device.
pub(crate) struct Group {
    pub name: &'static str,
    pub idn: u8,
    pub fields: &'static [Field],
}

/// Descriptors of the device. That of power is made by a loop in the kernel, and by [`power_levels`] here.
pub(crate) const DESCRIPTORS: [Group; 4] = [
    Group { name: "device_descriptor", idn: descriptor::DEVICE, fields: DEVICE },
    Group { name: "interconnect_descriptor", idn: descriptor::INTERCONNECT, fields: INTERCONNECT },
    Group { name: "geometry_descriptor", idn: descriptor::GEOMETRY, fields: GEOMETRY },
    Group { name: "health_descriptor", idn: descriptor::HEALTH, fields: HEALTH },
];

const DEVICE: &[Field] = &[
    Field("device_type", 0x02, 1),
    Field("device_class", 0x03, 1),
    Field("device_sub_class", 0x04, 1),
    Field("protocol", 0x05, 1),
    Field("number_of_luns", 0x06, 1),
    Field("number_of_wluns", 0x07, 1),
    Field("boot_enable", 0x08, 1),
    Field("descriptor_access_enable", 0x09, 1),
    Field("initial_power_mode", 0x0A, 1),
    Field("high_priority_lun", 0x0B, 1),
    Field("secure_removal_type", 0x0C, 1),
    Field("support_security_lun", 0x0D, 1),
    Field("bkops_termination_latency", 0x0E, 1),
    Field("initial_active_icc_level", 0x0F, 1),
    Field("specification_version", 0x10, 2),
    Field("manufacturing_date", 0x12, 2),
    Field("manufacturer_id", 0x18, 2),
    Field("rtt_capability", 0x1C, 1),
    Field("rtc_update", 0x1D, 2),
    Field("ufs_features", 0x1F, 1),
    Field("ffu_timeout", 0x20, 1),
    Field("queue_depth", 0x21, 1),
    Field("device_version", 0x22, 2),
    Field("number_of_secure_wpa", 0x24, 1),
    Field("psa_max_data_size", 0x25, 4),
    Field("psa_state_timeout", 0x29, 1),
    Field("hpb_version", 0x40, 2),
    Field("hpb_control", 0x42, 1),
    Field("ext_feature_sup", 0x4F, 4),
    Field("wb_presv_us_en", 0x53, 1),
    Field("wb_type", 0x54, 1),
    Field("wb_shared_alloc_units", 0x55, 4),
];

const INTERCONNECT: &[Field] = &[Field("unipro_version", 0x02, 2), Field("mphy_version", 0x04, 2)];

const GEOMETRY: &[Field] = &[
    Field("raw_device_capacity", 0x04, 8),
    Field("max_number_of_luns", 0x0C, 1),
    Field("segment_size", 0x0D, 4),
    Field("allocation_unit_size", 0x11, 1),
    Field("min_addressable_block_size", 0x12, 1),
    Field("optimal_read_block_size", 0x13, 1),
    Field("optimal_write_block_size", 0x14, 1),
    Field("max_in_buffer_size", 0x15, 1),
    Field("max_out_buffer_size", 0x16, 1),
    Field("rpmb_rw_size", 0x17, 1),
    Field("dyn_capacity_resource_policy", 0x18, 1),
    Field("data_ordering", 0x19, 1),
    Field("max_number_of_contexts", 0x1A, 1),
    Field("sys_data_tag_unit_size", 0x1B, 1),
    Field("sys_data_tag_resource_size", 0x1C, 1),
    Field("secure_removal_types", 0x1D, 1),
    Field("memory_types", 0x1E, 2),
    Field("sys_code_memory_max_alloc_units", 0x20, 4),
    Field("sys_code_memory_capacity_adjustment_factor", 0x24, 2),
    Field("non_persist_memory_max_alloc_units", 0x26, 4),
    Field("non_persist_memory_capacity_adjustment_factor", 0x2A, 2),
    Field("enh1_memory_max_alloc_units", 0x2C, 4),
    Field("enh1_memory_capacity_adjustment_factor", 0x30, 2),
    Field("enh2_memory_max_alloc_units", 0x32, 4),
    Field("enh2_memory_capacity_adjustment_factor", 0x36, 2),
    Field("enh3_memory_max_alloc_units", 0x38, 4),
    Field("enh3_memory_capacity_adjustment_factor", 0x3C, 2),
    Field("enh4_memory_max_alloc_units", 0x3E, 4),
    Field("enh4_memory_capacity_adjustment_factor", 0x42, 2),
    Field("hpb_region_size", 0x48, 1),
    Field("hpb_number_lu", 0x49, 1),
    Field("hpb_subregion_size", 0x4A, 1),
    Field("hpb_max_active_regions", 0x4B, 2),
    Field("wb_max_alloc_units", 0x4F, 4),
    Field("wb_max_wb_luns", 0x53, 1),
    Field("wb_buff_cap_adj", 0x54, 1),
    Field("wb_sup_red_type", 0x55, 1),
    Field("wb_sup_wb_type", 0x56, 1),
];

const HEALTH: &[Field] =
    &[Field("eol_info", 0x02, 1), Field("life_time_estimation_a", 0x03, 1), Field("life_time_estimation_b", 0x04, 1)];

/// The unit descriptor. The spelling of `resourse` is the kernel's.
pub(crate) const UNIT: &[Field] = &[
    Field("lu_enable", 0x03, 1),
    Field("boot_lun_id", 0x04, 1),
    Field("lun_write_protect", 0x05, 1),
    Field("lun_queue_depth", 0x06, 1),
    Field("psa_sensitive", 0x07, 1),
    Field("lun_memory_type", 0x08, 1),
    Field("data_reliability", 0x09, 1),
    Field("logical_block_size", 0x0A, 1),
    Field("logical_block_count", 0x0B, 8),
    Field("erase_block_size", 0x13, 4),
    Field("provisioning_type", 0x17, 1),
    Field("physical_memory_resourse_count", 0x18, 8),
    Field("context_capabilities", 0x20, 2),
    Field("large_unit_granularity", 0x22, 1),
    Field("hpb_lu_max_active_regions", 0x23, 2),
    Field("hpb_pinned_region_start_offset", 0x25, 2),
    Field("hpb_number_pinned_regions", 0x27, 2),
    Field("wb_buf_alloc_units", 0x29, 4),
];

/// Fields of `power_descriptor`: 16 levels of each supply, two bytes each.
pub(crate) fn power_levels() -> impl Iterator<Item = (String, u8)> {
    [("vcc", 0x02), ("vccq", 0x22), ("vccq2", 0x42)].into_iter().flat_map(|(supply, first)| {
        (0..16).map(move |level| (format!("active_icc_levels_{supply}{level}"), first + 2 * level))
    })
}

/// Files of `string_descriptors`, in the order of [`readpath_run::View::strings`].
pub(crate) const STRINGS: [&str; 5] =
    ["manufacturer_name", "product_name", "oem_id", "serial_number", "product_revision"];

/// Files of `flags`.
pub(crate) const FLAGS: [(&str, u8); 12] = [
    ("device_init", flag::DEVICE_INIT),
    ("permanent_wpe", flag::PERMANENT_WP_EN),
    ("power_on_wpe", flag::POWER_ON_WP_EN),
    ("bkops_enable", flag::BACKGROUND_OPS_EN),
    ("life_span_mode_enable", flag::LIFE_SPAN_MODE_EN),
    ("phy_resource_removal", flag::PHY_RESOURCE_REMOVAL),
    ("busy_rtc", flag::BUSY_RTC),
    ("disable_fw_update", flag::DISABLE_FW_UPDATE),
    ("wb_enable", flag::WB_EN),
    ("wb_flush_en", flag::WB_FLUSH_EN),
    ("wb_flush_during_h8", flag::WB_FLUSH_DURING_HIBERNATE),
    ("hpb_enable", flag::HPB_EN),
];

/// Files of `attributes`.
pub(crate) const ATTRIBUTES: [(&str, u8); 21] = [
    ("boot_lun_enabled", attribute::BOOT_LUN_EN),
    ("max_data_size_hpb_single_cmd", attribute::MAX_HPB_SINGLE_CMD),
    ("current_power_mode", attribute::CURRENT_POWER_MODE),
    ("active_icc_level", attribute::ACTIVE_ICC_LEVEL),
    ("ooo_data_enabled", attribute::OUT_OF_ORDER_DATA_EN),
    ("bkops_status", attribute::BACKGROUND_OP_STATUS),
    ("purge_status", attribute::PURGE_STATUS),
    ("max_data_in_size", attribute::MAX_DATA_IN_SIZE),
    ("max_data_out_size", attribute::MAX_DATA_OUT_SIZE),
    ("reference_clock_frequency", attribute::REF_CLK_FREQ),
    ("configuration_descriptor_lock", attribute::CONFIG_DESCR_LOCK),
    ("max_number_of_rtt", attribute::MAX_NUM_OF_RTT),
    ("exception_event_control", attribute::EXCEPTION_EVENT_CONTROL),
    ("exception_event_status", attribute::EXCEPTION_EVENT_STATUS),
    ("ffu_status", attribute::DEVICE_FFU_STATUS),
    ("psa_state", attribute::PSA_STATE),
    ("psa_data_size", attribute::PSA_DATA_SIZE),
    ("wb_flush_status", attribute::WB_FLUSH_STATUS),
    ("wb_avail_buf", attribute::WB_AVAILABLE_SIZE),
    ("wb_life_time_est", attribute::WB_LIFE_TIME_EST),
    ("wb_cur_buf", attribute::WB_CURRENT_SIZE),
];

/// Files of `hpb_stats`, in the order of [`readpath_host::HpbCounters::by_name`].
pub(crate) const STATS: [&str; 7] =
    ["hit_cnt", "miss_cnt", "rcmd_noti_cnt", "rcmd_active_cnt", "rcmd_inactive_cnt", "map_req_cnt", "umap_req_cnt"];
