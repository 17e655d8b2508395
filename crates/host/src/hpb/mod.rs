// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's side of HPB for one logical unit, in device control mode: which regions are active, the maps of their
//! sub-regions, which entries were written since, and what to load or drop next (Linux `drivers/ufs/core/ufshpb.c`).
//!
//! It knows what the device recommended and what was read and written here; never what the device's map says.

mod lists;
mod map;
#[cfg(test)]
mod tests;

use crate::config::{HpbOptions, ListOrder};
use lists::WorkLists;
use map::MapStore;
use readpath_kit::IndexLru;
use readpath_proto::hpb::HpbGeometry;
use readpath_proto::typed::{HpbEntry, HpbNotification, SubRegion};

/// State of a region (Linux `enum HPB_RGN_STATE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionState {
    /// The host holds nothing of it.
    Inactive,
    /// The host holds or loads maps of it.
    Active,
    /// Active for ever.
    Pinned,
}

/// State of a sub-region (Linux `enum HPB_SRGN_STATE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubRegionState {
    /// No memory.
    Unused,
    /// Memory, but its entries must not be used.
    Invalid,
    /// A load is under way.
    Issued,
    /// Entries that are not dirty may be used.
    Valid,
}

/// State of the unit's HPB (Linux `enum UFSHPB_STATE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LuState {
    /// Found, but the device has not finished its HPB reset.
    Init,
    /// In use.
    Present,
    /// The controller is being reset.
    Reset,
    /// Given up.
    Failed,
}

/// The counters of Linux's `hpb_stats`, by their sysfs names, and what Linux does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HpbCounters {
    /// Reads sent as HPB READ.
    pub hit_cnt: u64,
    /// Reads short enough for HPB READ that were sent as READ because an entry was missing or dirty.
    pub miss_cnt: u64,
    /// Valid notifications.
    pub rcmd_noti_cnt: u64,
    /// Sub-regions queued for activation.
    pub rcmd_active_cnt: u64,
    /// Regions queued for inactivation.
    pub rcmd_inactive_cnt: u64,
    /// HPB READ BUFFER commands.
    pub map_req_cnt: u64,
    /// HPB WRITE BUFFER commands; none in device control mode.
    pub umap_req_cnt: u64,
    /// Notifications refused because an index or a count was out of range; Linux would use them.
    pub rejected_noti_cnt: u64,
    /// Regions evicted to make room for another.
    pub evict_cnt: u64,
    /// Loads that failed and were tried again or given up; Linux takes them for success.
    pub map_error_cnt: u64,
}

impl HpbCounters {
    /// The counters that Linux has, by their names in `hpb_stats`.
    pub fn by_name(&self) -> [(&'static str, u64); 7] {
        [
            ("hit_cnt", self.hit_cnt),
            ("miss_cnt", self.miss_cnt),
            ("rcmd_noti_cnt", self.rcmd_noti_cnt),
            ("rcmd_active_cnt", self.rcmd_active_cnt),
            ("rcmd_inactive_cnt", self.rcmd_inactive_cnt),
            ("map_req_cnt", self.map_req_cnt),
            ("umap_req_cnt", self.umap_req_cnt),
        ]
    }

    /// What was counted since `earlier`, an older copy of the same counters.
    pub fn since(&self, earlier: &HpbCounters) -> HpbCounters {
        HpbCounters {
            hit_cnt: self.hit_cnt - earlier.hit_cnt,
            miss_cnt: self.miss_cnt - earlier.miss_cnt,
            rcmd_noti_cnt: self.rcmd_noti_cnt - earlier.rcmd_noti_cnt,
            rcmd_active_cnt: self.rcmd_active_cnt - earlier.rcmd_active_cnt,
            rcmd_inactive_cnt: self.rcmd_inactive_cnt - earlier.rcmd_inactive_cnt,
            map_req_cnt: self.map_req_cnt - earlier.map_req_cnt,
            umap_req_cnt: self.umap_req_cnt - earlier.umap_req_cnt,
            rejected_noti_cnt: self.rejected_noti_cnt - earlier.rejected_noti_cnt,
            evict_cnt: self.evict_cnt - earlier.evict_cnt,
            map_error_cnt: self.map_error_cnt - earlier.map_error_cnt,
        }
    }
}

/// Memory that HPB takes on the host, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostMemory {
    /// Entries held now.
    pub map_bytes: u64,
    /// Dirty bitmaps held now.
    pub bitmap_bytes: u64,
    /// Tables whose size depends only on the unit.
    pub table_bytes: u64,
    /// Highest sum of maps and bitmaps so far.
    pub peak_bytes: u64,
}

/// What the driver has to send for HPB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapRequest {
    /// Sub-region to load.
    pub at: SubRegion,
    /// Bytes of its map.
    pub bytes: u32,
}

const NO_MAP: u32 = u32::MAX;
/// Failed loads of a sub-region before it is left alone until the device recommends it again.
const LOAD_RETRIES: u8 = 3;

/// HPB of one logical unit.
pub struct HpbLu {
    geometry: HpbGeometry,
    options: HpbOptions,
    /// Blocks that one HPB READ may cover.
    max_blocks: u32,
    state: LuState,
    regions: Vec<RegionState>,
    sub_regions: Vec<SubRegionState>,
    /// Map of each sub-region that has memory.
    map_of: Vec<u32>,
    /// The same, but only while the sub-region is valid: what the read path looks at.
    valid_map: Vec<u32>,
    failures: Vec<u8>,
    store: MapStore,
    /// Active regions that are not pinned, coldest first.
    list: IndexLru,
    capacity: u32,
    work: WorkLists,
    counters: HpbCounters,
}

impl HpbLu {
    /// HPB of a unit with `geometry`, of which `max_active` regions may be active, `pinned` of them for ever.
    pub fn new(
        geometry: HpbGeometry,
        max_active: u32,
        pinned: std::ops::Range<u32>,
        max_blocks: u8,
        options: HpbOptions,
    ) -> Self {
        let regions = geometry.regions();
        let sub_regions = geometry.sub_regions();
        let region_bytes = u64::from(geometry.sub_regions_per_region()) * u64::from(geometry.sub_region_map_bytes());
        let affordable = options.max_map_bytes.map_or(u64::MAX, |b| b / region_bytes).min(u64::from(u32::MAX)) as u32;
        let active = max_active.min(affordable).min(regions);
        let pinned = pinned.start.min(regions)..pinned.end.min(regions);
        let maps = active.max(pinned.len() as u32) * geometry.sub_regions_per_region();
        let mut lu = HpbLu {
            geometry,
            options,
            max_blocks: u32::from(max_blocks),
            state: LuState::Init,
            regions: vec![RegionState::Inactive; regions as usize],
            sub_regions: vec![SubRegionState::Unused; sub_regions as usize],
            map_of: vec![NO_MAP; sub_regions as usize],
            valid_map: vec![NO_MAP; sub_regions as usize],
            failures: vec![0; sub_regions as usize],
            store: MapStore::new(maps, geometry.entries_per_sub_region()),
            list: IndexLru::new(regions as usize),
            capacity: active.saturating_sub(pinned.len() as u32),
            work: WorkLists::new(regions, sub_regions),
            counters: HpbCounters::default(),
        };
        for region in pinned {
            lu.regions[region as usize] = RegionState::Pinned;
            for srgn in lu.sub_regions_of(region) {
                lu.give_memory(srgn);
                lu.sub_regions[srgn as usize] = SubRegionState::Invalid;
                lu.work.activate(srgn);
            }
        }
        lu
    }

    /// The device's HPB reset is done.
    pub fn present(&mut self) {
        self.state = LuState::Present;
    }

    /// The controller begins a reset: what waits to be loaded or dropped is forgotten, maps are kept (Linux
    /// `ufshpb_reset_host`). Loads in flight will never be answered.
    pub fn reset(&mut self) {
        self.state = LuState::Reset;
        self.work.clear();
        for srgn in 0..self.sub_regions.len() {
            if self.sub_regions[srgn] == SubRegionState::Issued {
                self.sub_regions[srgn] = SubRegionState::Invalid;
            }
        }
    }

    /// The entry to send with a read of `blocks` blocks from `block`, if every block of it may use one.
    #[inline(always)]
    pub fn entry_for(&mut self, block: u32, blocks: u32) -> Option<HpbEntry> {
        if self.state != LuState::Present || blocks == 0 || blocks > self.max_blocks {
            return None;
        }
        let map = self.valid_map[self.geometry.index_of_lba(block) as usize];
        let slot = self.slot_of(block);
        let usable = if blocks == 1 {
            map != NO_MAP && !self.store.any_dirty(map, slot, 1)
        } else {
            self.all_clean(block, blocks)
        };
        if !usable {
            self.counters.miss_cnt += 1;
            return None;
        }
        self.counters.hit_cnt += 1;
        if self.options.order == ListOrder::Recency {
            self.touch(block);
        }
        Some(self.store.entry(map, slot))
    }

    #[inline(never)]
    fn touch(&mut self, block: u32) {
        let region = u32::from(self.geometry.region_of(block));
        if self.regions[region as usize] == RegionState::Active {
            self.list.touch(region);
        }
    }

    #[inline(never)]
    fn all_clean(&self, block: u32, blocks: u32) -> bool {
        let mut at = block;
        let end = block + blocks;
        while at < end {
            let map = self.valid_map[self.geometry.index_of_lba(at) as usize];
            let slot = self.slot_of(at);
            let n = (end - at).min(self.geometry.entries_per_sub_region() - slot);
            if map == NO_MAP || self.store.any_dirty(map, slot, n) {
                return false;
            }
            at += n;
        }
        true
    }

    /// Brings near what [`HpbLu::entry_for`] will touch; false if no entry is held for `block`.
    #[inline]
    pub fn prefetch(&self, block: u32) -> bool {
        let map = self.valid_map[self.geometry.index_of_lba(block) as usize];
        if map == NO_MAP {
            return false;
        }
        self.store.prefetch(map, self.slot_of(block));
        true
    }

    /// A write or discard of these blocks is about to be sent: their entries must not be used until reloaded.
    pub fn mark_dirty(&mut self, block: u32, blocks: u32) {
        if !self.options.dirty_bitmap || (self.options.strict_linux && self.state != LuState::Present) {
            return;
        }
        let end = (u64::from(block) + u64::from(blocks)).min(u64::from(self.geometry.logical_blocks())) as u32;
        let mut at = block;
        while at < end {
            let slot = self.slot_of(at);
            let n = (end - at).min(self.geometry.entries_per_sub_region() - slot);
            let srgn = self.geometry.index_of_lba(at) as usize;
            let tracked = match self.sub_regions[srgn] {
                SubRegionState::Valid => true,
                // What Linux forgets: the load may bring an entry from before this write.
                SubRegionState::Issued => !self.options.strict_linux,
                SubRegionState::Invalid | SubRegionState::Unused => false,
            };
            if tracked {
                self.store.mark_dirty(self.map_of[srgn], slot, n);
            }
            at += n;
        }
    }

    /// A GOOD response brought a notification. False if it was refused.
    pub fn notified(&mut self, n: &HpbNotification) -> bool {
        match self.state {
            LuState::Init | LuState::Failed | LuState::Reset => return false,
            LuState::Present => {}
        }
        match n.operation {
            HpbNotification::REGION_UPDATE => self.region_update(n),
            HpbNotification::RESET => {
                self.counters.rcmd_noti_cnt += 1;
                self.device_reset();
                true
            }
            _ => {
                self.counters.rcmd_noti_cnt += 1;
                true
            }
        }
    }

    fn region_update(&mut self, n: &HpbNotification) -> bool {
        let (active, inactive) = (usize::from(n.active_count), usize::from(n.inactive_count));
        let in_range = active <= 2
            && inactive <= 2
            && active + inactive > 0
            && n.active[..active.min(2)].iter().all(|&at| self.geometry.contains(at))
            && n.inactive[..inactive.min(2)].iter().all(|&r| u32::from(r) < self.geometry.regions());
        if !in_range {
            self.counters.rejected_noti_cnt += 1;
            return false;
        }
        self.counters.rcmd_noti_cnt += 1;
        for &at in &n.active[..active] {
            let srgn = self.geometry.index_of(at);
            self.work.keep_region(u32::from(at.region));
            if self.work.activate(srgn) {
                self.counters.rcmd_active_cnt += 1;
            }
            self.failures[srgn as usize] = 0;
            self.invalidate(srgn);
        }
        for &region in &n.inactive[..inactive] {
            self.queue_inactivation(u32::from(region));
        }
        true
    }

    fn queue_inactivation(&mut self, region: u32) {
        for srgn in self.sub_regions_of(region) {
            self.work.forget_activation(srgn);
            self.invalidate(srgn);
        }
        if self.work.inactivate(region) {
            self.counters.rcmd_inactive_cnt += 1;
        }
    }

    /// HPB reset by the device (operation 02h): everything that is not pinned is dropped.
    pub fn device_reset(&mut self) {
        let active: Vec<u32> = self.list.iter().collect();
        active.into_iter().for_each(|region| self.queue_inactivation(region));
    }

    fn invalidate(&mut self, srgn: u32) {
        if self.sub_regions[srgn as usize] == SubRegionState::Valid {
            self.sub_regions[srgn as usize] = SubRegionState::Invalid;
            self.valid_map[srgn as usize] = NO_MAP;
        }
    }

    /// Drops what is to be dropped, then takes the next sub-region to load, if `may_send`. Linux
    /// `ufshpb_map_work_handler`, one step of it.
    ///
    /// The caller has to send the request, and to tell which writes are in flight with [`HpbLu::mark_dirty`] right after.
    pub fn next_work(&mut self, may_send: bool) -> Option<MapRequest> {
        if self.state != LuState::Present || self.work.is_empty() {
            return None;
        }
        self.drop_regions();
        if !may_send {
            return None;
        }
        let srgn = self.work.next_activation()?;
        if self.sub_regions[srgn as usize] == SubRegionState::Issued {
            // A newer map is wanted than the one under way: again when that has come.
            return None;
        }
        let at = self.geometry.sub_region_at(srgn);
        if !self.ensure_active(u32::from(at.region)) {
            return None;
        }
        self.work.forget_activation(srgn);
        if self.map_of[srgn as usize] == NO_MAP {
            self.give_memory(srgn);
        }
        self.valid_map[srgn as usize] = NO_MAP;
        self.sub_regions[srgn as usize] = SubRegionState::Issued;
        if !self.options.strict_linux {
            // From here on writes are recorded; Linux clears the bitmap when the load is done.
            self.store.clean(self.map_of[srgn as usize]);
        }
        self.counters.map_req_cnt += 1;
        Some(MapRequest { at, bytes: self.geometry.map_bytes_of(at) })
    }

    /// Whether the worker has something to do.
    pub fn has_work(&self) -> bool {
        !self.work.is_empty()
    }

    /// A load has ended, with its entries or (`None`) an error.
    pub fn loaded(&mut self, at: SubRegion, entries: Option<&[u8]>) {
        let srgn = self.geometry.index_of(at);
        if self.sub_regions[srgn as usize] != SubRegionState::Issued {
            return;
        }
        let map = self.map_of[srgn as usize];
        match entries {
            Some(bytes) => self.store.fill(map, bytes),
            None if self.options.strict_linux => {}
            None => {
                self.counters.map_error_cnt += 1;
                self.sub_regions[srgn as usize] = SubRegionState::Invalid;
                let failures = &mut self.failures[srgn as usize];
                *failures += 1;
                if *failures <= LOAD_RETRIES {
                    self.work.activate(srgn);
                }
                return;
            }
        }
        if self.options.strict_linux {
            self.store.clean(map);
        }
        self.failures[srgn as usize] = 0;
        if self.regions[usize::from(at.region)] == RegionState::Inactive {
            self.sub_regions[srgn as usize] = SubRegionState::Invalid;
        } else {
            self.sub_regions[srgn as usize] = SubRegionState::Valid;
            self.valid_map[srgn as usize] = map;
        }
    }

    fn drop_regions(&mut self) {
        for _ in 0..self.work.inactivations() {
            let Some(region) = self.work.next_inactivation() else { return };
            match self.regions[region as usize] {
                RegionState::Active if self.is_loading(region) => self.work.defer_inactivation(region),
                RegionState::Active => self.evict(region),
                RegionState::Inactive | RegionState::Pinned => {}
            }
        }
    }

    /// Makes `region` active, at the cost of the first region of the list that has no load under way. False if there is
    /// none.
    fn ensure_active(&mut self, region: u32) -> bool {
        match self.regions[region as usize] {
            RegionState::Pinned => return true,
            RegionState::Active => {
                self.list.touch(region);
                return true;
            }
            RegionState::Inactive => {}
        }
        if self.list.len() >= self.capacity {
            let Some(victim) = self.list.iter().find(|&r| !self.is_loading(r)) else { return false };
            self.evict(victim);
            self.counters.evict_cnt += 1;
        }
        self.regions[region as usize] = RegionState::Active;
        self.list.push_back(region);
        true
    }

    fn evict(&mut self, region: u32) {
        self.list.remove(region);
        self.regions[region as usize] = RegionState::Inactive;
        for srgn in self.sub_regions_of(region) {
            self.sub_regions[srgn as usize] = SubRegionState::Unused;
            self.valid_map[srgn as usize] = NO_MAP;
            let map = std::mem::replace(&mut self.map_of[srgn as usize], NO_MAP);
            if map != NO_MAP {
                self.store.release(map);
            }
        }
    }

    fn is_loading(&self, region: u32) -> bool {
        self.sub_regions_of(region).any(|s| self.sub_regions[s as usize] == SubRegionState::Issued)
    }

    fn give_memory(&mut self, srgn: u32) {
        self.map_of[srgn as usize] = self.store.take().expect("as many maps as active regions can need");
    }

    fn sub_regions_of(&self, region: u32) -> std::ops::Range<u32> {
        let per_region = self.geometry.sub_regions_per_region();
        region * per_region..((region + 1) * per_region).min(self.geometry.sub_regions())
    }

    #[inline]
    fn slot_of(&self, block: u32) -> u32 {
        block & (self.geometry.entries_per_sub_region() - 1)
    }

    /// Counters so far.
    pub fn counters(&self) -> &HpbCounters {
        &self.counters
    }

    /// Memory in use.
    pub fn memory(&self) -> HostMemory {
        let tables = self.regions.len() + self.sub_regions.len() * (1 + 4 + 4 + 1);
        HostMemory { table_bytes: tables as u64 + self.list.bytes() + self.work.bytes(), ..self.store.memory() }
    }

    /// State of the unit.
    pub fn state(&self) -> LuState {
        self.state
    }

    /// State of a region.
    pub fn region_state(&self, region: u16) -> RegionState {
        self.regions[usize::from(region)]
    }

    /// State of a sub-region.
    pub fn sub_region_state(&self, at: SubRegion) -> SubRegionState {
        self.sub_regions[self.geometry.index_of(at) as usize]
    }

    /// How the unit is divided.
    pub fn geometry(&self) -> &HpbGeometry {
        &self.geometry
    }
}
