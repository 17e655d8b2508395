// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of the host's HPB. No decision depends on them.

/// Defines the counters and the operations on all of them.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of Linux's `hpb_stats`, by their sysfs names, and further ones.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct HpbCounters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl HpbCounters {
            fn each_with(&self, other: &HpbCounters, of: impl Fn(u64, u64) -> u64) -> HpbCounters {
                HpbCounters { $($name: of(self.$name, other.$name),)* }
            }
        }
    };
}

counters! {
    /// Reads sent as HPB READ.
    hit_cnt,
    /// Reads short enough for HPB READ that were sent as READ because an entry was missing or dirty.
    miss_cnt,
    /// Valid notifications.
    rcmd_noti_cnt,
    /// Sub-regions queued for activation.
    rcmd_active_cnt,
    /// Regions queued for inactivation.
    rcmd_inactive_cnt,
    /// HPB READ BUFFER commands.
    map_req_cnt,
    /// HPB WRITE BUFFER commands; none in device control mode.
    umap_req_cnt,
    /// Pre-requests (HPB WRITE BUFFER 02h); Linux did not export this counter.
    pre_req_cnt,
    /// Notifications refused because an index or a count was out of range; Linux would use them.
    rejected_noti_cnt,
    /// Regions evicted to make room for another.
    evict_cnt,
    /// Loads that failed and were retried or given up; Linux treats them as successful.
    map_error_cnt,
    /// Loads that were refused to a policy of this host: no held map was worth less, or too many waited.
    refuse_cnt,
    /// Reads that a managed unit sent as READ although it had an entry, because a pre-request does not pay.
    plain_cnt,
    /// Maps dropped because the limit of memory was lowered.
    shrink_cnt,
    /// Changed entries that came with responses of the prototype.
    pair_cnt,
}

impl HpbCounters {
    /// The counters that Linux has, by their names in `hpb_stats`, and those of pre-requests and of entries in
    /// responses if they are not 0.
    pub fn by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let pre_requests = (self.pre_req_cnt > 0).then_some(("pre_req_cnt", self.pre_req_cnt));
        let shown = [
            ("hit_cnt", self.hit_cnt),
            ("miss_cnt", self.miss_cnt),
            ("rcmd_noti_cnt", self.rcmd_noti_cnt),
            ("rcmd_active_cnt", self.rcmd_active_cnt),
            ("rcmd_inactive_cnt", self.rcmd_inactive_cnt),
            ("map_req_cnt", self.map_req_cnt),
            ("umap_req_cnt", self.umap_req_cnt),
        ];
        let pairs = (self.pair_cnt > 0).then_some(("pair_cnt", self.pair_cnt));
        shown.into_iter().chain(pre_requests).chain(pairs)
    }

    /// The counters of managed units.
    pub fn managed_by_name(&self) -> [(&'static str, u64); 4] {
        [
            ("evict_cnt", self.evict_cnt),
            ("refuse_cnt", self.refuse_cnt),
            ("plain_cnt", self.plain_cnt),
            ("shrink_cnt", self.shrink_cnt),
        ]
    }

    /// What was counted since `earlier`, an older copy of the same counters.
    pub fn since(&self, earlier: &HpbCounters) -> HpbCounters {
        self.each_with(earlier, |now, before| now - before)
    }

    /// The sums of these counters and those of another unit.
    pub fn plus(&self, other: &HpbCounters) -> HpbCounters {
        self.each_with(other, |a, b| a + b)
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

impl HostMemory {
    /// The sum with the memory of another unit. The sum of peaks is an upper bound.
    pub fn plus(&self, other: &HostMemory) -> HostMemory {
        HostMemory {
            map_bytes: self.map_bytes + other.map_bytes,
            bitmap_bytes: self.bitmap_bytes + other.bitmap_bytes,
            table_bytes: self.table_bytes + other.table_bytes,
            peak_bytes: self.peak_bytes + other.peak_bytes,
        }
    }
}
