// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of a unit's memory: one from the start, for either driver, and others at any time, for the managed one. The
//! drivers choose the maps to evict.

use super::{HpbLu, MapDriver};
use crate::params::ParamError;

impl HpbLu {
    /// Limits maps and tables to `bytes` from the start on.
    pub(super) fn begin_with(&mut self, bytes: u64) -> Result<(), ParamError> {
        let table = &self.common.table;
        let per_map = table.bytes_per_map();
        let per_region = table.geometry().sub_regions_per_region();
        let pinned = table.pinned_regions().count() as u32 * per_region;
        let kept = self.memory().table_bytes + u64::from(pinned) * per_map;
        // A later limit may leave nothing but tables. A run that began with such a limit would be reported as a run
        // with HPB, but be one without.
        let (more, what) = match (&self.driver, pinned) {
            (MapDriver::Managed(_), 0) => (per_map, "tables and the map of a sub-region"),
            (MapDriver::Linux(_), 0) => (u64::from(per_region) * per_map, "tables and the map of a region"),
            _ => (0, "tables and pinned regions"),
        };
        let least = kept + more;
        if bytes < least {
            return Err(ParamError::TooLittleMemory { bytes, least, what });
        }
        let maps = (bytes - kept) / per_map;
        match &mut self.driver {
            MapDriver::Managed(managed) => managed.bound_maps(maps + u64::from(pinned)),
            MapDriver::Linux(linux) => linux.bound_maps(maps, per_region),
        }
        Ok(())
    }

    /// The least possible limit of memory: tables and pinned regions.
    ///
    /// # Errors
    /// The unit follows Linux, which cannot shrink.
    pub fn least_memory(&self) -> Result<u64, ParamError> {
        if matches!(self.driver, MapDriver::Linux(_)) {
            return Err(ParamError::CannotShrink);
        }
        let table = &self.common.table;
        Ok(self.memory().table_bytes + table.pinned_sub_regions().count() as u64 * table.bytes_per_map())
    }

    /// Whether `bytes` are enough for [`crate::Driver::limit_memory`].
    ///
    /// # Errors
    /// The unit follows Linux, which cannot shrink; or the limit has no room for the tables (and pinned regions).
    pub fn check_limit(&self, bytes: u64) -> Result<(), ParamError> {
        let least = self.least_memory()?;
        let is_pinned = self.common.table.pinned_regions().count() > 0;
        let what = if is_pinned { "tables and pinned regions" } else { "tables alone" };
        if bytes < least { Err(ParamError::TooLittleMemory { bytes, least, what }) } else { Ok(()) }
    }

    /// Sets the memory limit. Maps beyond it are dropped at once; requests in flight continue.
    ///
    /// # Errors
    /// As [`HpbLu::check_limit`].
    pub(crate) fn limit_memory(&mut self, bytes: u64) -> Result<(), ParamError> {
        self.check_limit(bytes)?;
        let maps = (bytes - self.memory().table_bytes) / self.common.table.bytes_per_map();
        if let MapDriver::Managed(managed) = &mut self.driver {
            managed.limit_maps(&mut self.common, maps);
        }
        Ok(())
    }
}
