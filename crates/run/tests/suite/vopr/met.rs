// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the seeds of a test met, added up.

use super::run::Tried;
use readpath_device::{CheckOn, EntryConfig, Protection};
use readpath_flash::DieSched;

/// What all seeds of a test met together. A test that met nothing proves nothing.
#[derive(Default, Debug)]
pub struct Met {
    pub requests: u64,
    pub blocks_checked: u64,
    pub resets: u64,
    pub hpb_resets: u64,
    pub cuts: u64,
    pub hits: u64,
    pub stale: u64,
    pub forged: u64,
    pub zero: u64,
    pub inactive: u64,
    pub map_misses: u64,
    pub buffer_hits: u64,
    pub unmapped: u64,
    pub padded: u64,
    pub erases: u64,
    pub collected: u64,
    pub collected_idle: u64,
    pub levelled: u64,
    pub refreshed: u64,
    pub bad_blocks: u64,
    pub retired: u64,
    pub boosted: u64,
    pub flushed: u64,
    pub map_writes: u64,
    pub checkpoints: u64,
    pub recommended: u64,
    pub evicted: u64,
    pub refused: u64,
    pub load_errors: u64,
    pub suspends: u64,
    /// HPB READ BUFFERs and WRITE BUFFERs of hosts in host control mode, and hits of their reads.
    pub hcm_loads: u64,
    pub hcm_drops: u64,
    pub hcm_evicted: u64,
    pub hcm_hits: u64,
    /// Maps dropped because a limit of memory was lowered.
    pub shrunk: u64,
    /// Pre-requests and those that were used; blocks of longer HPB READs served by entries, of hosts that send that of
    /// the first block, and of hosts that send all.
    pub pre_requests: u64,
    pub pre_requests_used: u64,
    pub long_first: u64,
    pub long_all: u64,
    /// Entries that were told to be of other blocks, and hits of encrypted ones and of those that an engine checks.
    pub foreign: u64,
    pub encrypted: u64,
    pub engine: u64,
    /// Blocks translated from host memory; its pages written, and written anew; fetches that came too late.
    pub host_map_hits: u64,
    pub host_map_fills: u64,
    pub host_map_updates: u64,
    pub host_map_stale: u64,
}

impl Met {
    pub fn add<S: DieSched>(&mut self, stack: &Tried<S>) {
        let s = stack.device.stats();
        self.blocks_checked += stack.payload.checked;
        self.hits += s.hpb_hits;
        self.stale += s.hpb_stale;
        self.forged += s.hpb_forged;
        self.foreign += s.hpb_foreign;
        let entries = stack.device.config().hpb.map_or(EntryConfig::DEFAULT, |hpb| hpb.entries);
        self.encrypted += if entries.protection == Protection::Encrypted { s.hpb_hits } else { 0 };
        self.engine += if entries.check_on == CheckOn::Engine { s.hpb_hits } else { 0 };
        self.zero += s.hpb_zero;
        self.inactive += s.hpb_inactive;
        self.map_misses += s.map_misses;
        self.buffer_hits += s.buffer_hits;
        self.unmapped += s.unmapped_reads;
        self.padded += s.slices_padded;
        self.erases += s.erases;
        self.collected += s.collected;
        self.collected_idle += s.collected_idle;
        self.levelled += s.levelled;
        self.refreshed += s.refreshed;
        self.bad_blocks += s.bad_blocks;
        self.retired += s.retired_superblocks;
        self.boosted += s.slices_boosted;
        self.flushed += s.flushed;
        self.map_writes += s.map_writes;
        self.checkpoints += s.checkpoints;
        self.recommended += s.recommended_active;
        self.pre_requests += s.pre_requests;
        self.pre_requests_used += s.pre_requests_used;
        self.host_map_hits += s.host_map_hits;
        self.host_map_fills += s.host_map_fills;
        self.host_map_updates += s.host_map_updates;
        self.host_map_stale += s.host_map_stale;
        assert_eq!(s.host_map_bad, 0, "nobody changes the copies");
        for c in (0..8).filter_map(|lun| stack.host.counters(lun)) {
            self.evicted += c.evict_cnt;
            self.refused += c.rejected_noti_cnt;
            self.load_errors += c.map_error_cnt;
        }
        for lun in 0..8 {
            let Some(c) = stack.host.hpb(lun).filter(|hpb| hpb.is_host_control()).map(|hpb| *hpb.counters()) else {
                continue;
            };
            self.hcm_loads += c.map_req_cnt;
            self.hcm_drops += c.umap_req_cnt;
            self.hcm_evicted += c.evict_cnt;
            self.hcm_hits += c.hit_cnt;
            self.shrunk += c.shrink_cnt;
        }
    }

    pub fn everything(&self) -> bool {
        let Met { resets, cuts, hits, stale, forged, zero, inactive, map_misses, buffer_hits, .. } = *self;
        let Met { unmapped, padded, erases, recommended, evicted, refused, load_errors, .. } = *self;
        let Met { collected, collected_idle, levelled, refreshed, map_writes, checkpoints, .. } = *self;
        let device = [hits, stale, forged, zero, inactive, map_misses, buffer_hits, unmapped, padded, erases];
        let host = [resets, self.hpb_resets, cuts, recommended, evicted, refused, load_errors];
        let Met { suspends, hcm_loads, hcm_drops, hcm_evicted, hcm_hits, .. } = *self;
        let translation = [collected, collected_idle, levelled, 10 * refreshed, map_writes, checkpoints];
        let worn = [self.bad_blocks, 20 * self.retired];
        let hcm = [suspends, hcm_loads, hcm_drops, hcm_evicted, hcm_hits, 4 * self.shrunk];
        let buffer = [self.boosted, self.flushed];
        let hpb2 = [self.pre_requests, self.pre_requests_used, self.long_first, self.long_all];
        let entries = [self.foreign, self.encrypted, self.engine];
        let copies = [self.host_map_hits, self.host_map_fills, self.host_map_updates, 10 * self.host_map_stale];
        device
            .iter()
            .chain(&copies)
            .chain(&host)
            .chain(&translation)
            .chain(&worn)
            .chain(&buffer)
            .chain(&hcm)
            .chain(&hpb2)
            .chain(&entries)
            .all(|&n| n > 50)
    }
}
