// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a device can have the configured HPB.

use super::DeviceConfig;
use super::error::{ConfigError, bad, bad_unit, bad_value};
use crate::hpb::config::HpbConfig;

impl DeviceConfig {
    pub(super) fn check_hpb(&self, hpb: &HpbConfig) -> Result<(), ConfigError> {
        // A region's sub-regions are counted in 16 bits (JESD220-3).
        let largest = 30.min(hpb.sub_region_size + 16);
        if !(hpb.sub_region_size..=largest).contains(&hpb.region_size) {
            return bad_value(
                "hpb.region_size",
                format!(
                    "is {}; a region is at least a sub-region ({}) and at most {largest}",
                    hpb.region_size, hpb.sub_region_size
                ),
            );
        }
        let entries = 1u32 << (hpb.sub_region_size - 3);
        if !hpb.freshness_chunk_entries.is_power_of_two() || hpb.freshness_chunk_entries > entries {
            return bad_value(
                "hpb.freshness_chunk_entries",
                format!(
                    "is {}; it must be a power of two and at most the {entries} entries of a sub-region",
                    hpb.freshness_chunk_entries
                ),
            );
        }
        hpb.entries.check(hpb.verification)?;
        if let Some(prototype) = &hpb.prototype {
            prototype.check(&hpb.entries, hpb.v2.is_some())?;
            let pinned = self.lus.iter().position(|lu| lu.hpb && lu.pinned_regions > 0);
            prototype.check_device(self.host_map().is_some(), pinned)?;
        }
        if let Some(v2) = &hpb.v2 {
            v2.check(self.geometry.slices())?;
        }
        for (i, lu) in self.lus.iter().enumerate().filter(|(_, lu)| lu.hpb) {
            let regions = u64::from(lu.blocks).div_ceil(1 << (hpb.region_size - 3));
            if regions > 1 << 16 {
                return bad(
                    "hpb.region_size",
                    format!("makes {regions} regions of lus[{i}]; the wire has 16 bits for them (65,536)"),
                );
            }
            if lu.max_active_regions == 0 {
                return bad_unit(i, "lus[].max_active_regions", "is 0; an HPB unit needs at least 1");
            }
            if lu.max_active_regions > hpb.max_active_regions {
                return bad_unit(
                    i,
                    "lus[].max_active_regions",
                    format!("is {}, more than the device's {}", lu.max_active_regions, hpb.max_active_regions),
                );
            }
            if lu.pinned_regions >= lu.max_active_regions {
                return bad_unit(
                    i,
                    "lus[].pinned_regions",
                    format!(
                        "is {}; it must be below max_active_regions ({})",
                        lu.pinned_regions, lu.max_active_regions
                    ),
                );
            }
            if lu.pinned_regions > 0 && u64::from(lu.pinned_start) + u64::from(lu.pinned_regions) > regions {
                return bad_unit(
                    i,
                    "lus[].pinned_start",
                    format!("puts the pinned range beyond the last of {regions} regions"),
                );
            }
        }
        Ok(())
    }
}
