// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the seeds of a test met, added up.

use super::run::Tried;
use readpath_device::{CheckOn, EntryConfig, Protection};
use readpath_flash::DieSched;
use std::collections::BTreeMap;

/// Number of conditions: those of [`Met::add`], and those that a run counts itself.
const KINDS: usize = 49;
/// Weights of rare conditions.
const RARE: [(&str, u64); 4] = [("refreshed", 20), ("host map stale", 10), ("retired", 30), ("shrunk", 4)];

/// The conditions that all seeds of a test met together, by name. A test that met none proves nothing.
#[derive(Default, Debug)]
pub struct Met(BTreeMap<&'static str, u64>);

impl Met {
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    pub fn count(&mut self, what: &'static str, n: u64) {
        *self.0.entry(what).or_default() += n;
    }

    pub fn add<S: DieSched>(&mut self, stack: &Tried<S>) {
        let s = stack.device.stats();
        assert_eq!(s.host_map_bad, 0, "nobody changes the copies");
        let entries = stack.device.config().hpb.map_or(EntryConfig::DEFAULT, |hpb| hpb.entries);
        let hits_if = |is_so: bool| if is_so { s.hpb_hits } else { 0 };
        for (what, n) in [
            ("blocks checked", stack.payload.checked),
            ("hits", s.hpb_hits),
            ("stale", s.hpb_stale),
            ("forged", s.hpb_forged),
            ("foreign", s.hpb_foreign),
            ("encrypted hits", hits_if(entries.protection == Protection::Encrypted)),
            ("hits checked by an engine", hits_if(entries.check_on == CheckOn::Engine)),
            ("zero", s.hpb_zero),
            ("inactive", s.hpb_inactive),
            ("map misses", s.map_misses),
            ("run hits", s.run_hits),
            ("map loads ahead", s.map_loads_ahead),
            ("map loads ahead unused", s.map_ahead_unused),
            ("buffer hits", s.buffer_hits),
            ("unmapped", s.unmapped_reads),
            ("padded", s.slices_padded),
            ("erases", s.erases),
            ("collected", s.collected),
            ("collected idle", s.collected_idle),
            ("levelled", s.levelled),
            ("refreshed", s.refreshed),
            ("bad blocks", s.bad_blocks),
            ("retired", s.retired_superblocks),
            ("boosted", s.slices_boosted),
            ("flushed", s.flushed),
            ("map writes", s.map_writes),
            ("checkpoints", s.checkpoints),
            ("recommended", s.recommended_active),
            ("pre-requests", s.pre_requests),
            ("pre-requests used", s.pre_requests_used),
            ("host map hits", s.host_map_hits),
            ("host map fills", s.host_map_fills),
            ("host map updates", s.host_map_updates),
            ("host map stale", s.host_map_stale),
        ] {
            self.count(what, n);
        }
        for c in (0..8).filter_map(|lun| stack.host.counters(lun)) {
            self.count("evicted", c.evict_cnt);
            self.count("refused", c.rejected_noti_cnt);
            self.count("load errors", c.map_error_cnt);
        }
        for hpb in (0..8).filter_map(|lun| stack.host.hpb(lun)).filter(|hpb| hpb.is_host_control()) {
            let c = hpb.counters();
            self.count("HCM loads", c.map_req_cnt);
            self.count("HCM drops", c.umap_req_cnt);
            self.count("HCM evicted", c.evict_cnt);
            self.count("HCM hits", c.hit_cnt);
            self.count("shrunk", c.shrink_cnt);
        }
    }

    /// Whether every condition was met often.
    pub fn everything(&self) -> bool {
        let weight = |what: &str| RARE.iter().find(|(rare, _)| *rare == what).map_or(1, |&(_, weight)| weight);
        self.0.len() == KINDS && self.0.iter().all(|(what, n)| n * weight(what) > 50)
    }
}
