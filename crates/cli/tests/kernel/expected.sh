#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What Linux's sysfs has to show of a device, for scenarios/probe.sh: readpath device show DEVICE | expected.sh
#
# By the units of JESD220: regions are powers of two of 512 bytes, blocks of 4 KiB.
exec awk '
function log2(n, power) { for (power = 0; n > 1; n /= 2) power++; return power }
function line(lun, path, format, value) { printf "%s %s " format "\n", lun, path, value }
/^\[/ { table = $1 }
table == "[[lu]]" && /^\[/ { units++ }
/^[a-z_]+ = / {
    value = $3
    gsub(/"/, "", value)
    if (table == "[[lu]]") unit[units - 1, $1] = value; else key[table $1] = value
}
END {
    version = "[hpb.v2]single_kib" in key ? 512 : 256
    line("-", "device_descriptor/hpb_version", "0x%04X", version)
    line("-", "device_descriptor/hpb_control", "0x%02X", key["[hpb]control"] == "device")
    line("-", "device_descriptor/number_of_luns", "0x%02X", units)
    line("-", "device_descriptor/queue_depth", "0x%02X", key["queue_depth"])
    for (u = 0; u < units; u++) {
        hpb = unit[u, "hpb"] == "true"
        with_hpb += hpb
        line(u, "unit_descriptor/lu_enable", "0x%02X", 1 + hpb)
        line(u, "unit_descriptor/logical_block_size", "0x%02X", 12)
        line(u, "unit_descriptor/logical_block_count", "0x%016X", unit[u, "blocks"])
        line(u, "unit_descriptor/hpb_lu_max_active_regions", "0x%04X", unit[u, "max_active_regions"])
        line(u, "unit_descriptor/hpb_pinned_region_start_offset", "0x%04X", unit[u, "pinned_start"])
        line(u, "unit_descriptor/hpb_number_pinned_regions", "0x%04X", unit[u, "pinned_regions"])
        line(u, "block/size", "%d", unit[u, "blocks"] * 8)
        line(u, "model", "%s", key["product_name"])
    }
    line("-", "geometry_descriptor/hpb_region_size", "0x%02X", log2(key["[hpb]region_mib"]) + 11)
    line("-", "geometry_descriptor/hpb_subregion_size", "0x%02X", log2(key["[hpb]sub_region_mib"]) + 11)
    line("-", "geometry_descriptor/hpb_number_lu", "0x%02X", with_hpb)
    line("-", "geometry_descriptor/hpb_max_active_regions", "0x%04X", key["[hpb]max_active_regions"])
    if (version == 512) {
        line("-", "attributes/max_data_size_hpb_single_cmd", "0x%08X", key["[hpb.v2]single_kib"] / 4 - 1)
        line("-", "flags/hpb_enable", "%s", key["[hpb.v2]enabled"])
    }
}'
