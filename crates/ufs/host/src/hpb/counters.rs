// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host's HPB counts. Plain numbers; nothing here influences a decision.

/// The counters and what is done to all of them alike.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of Linux's `hpb_stats`, by their sysfs names, and what Linux does not count.
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
    /// Pre-requests (HPB WRITE BUFFER 02h); Linux kept this one to itself.
    pre_req_cnt,
    /// Notifications refused because an index or a count was out of range; Linux would use them.
    rejected_noti_cnt,
    /// Regions evicted to make room for another.
    evict_cnt,
    /// Loads that failed and were tried again or given up; Linux takes them for success.
    map_error_cnt,
    /// Loads that a policy of this host's own did not get: nothing held was worth less, or too many waited.
    refuse_cnt,
    /// Reads that a managed unit sent as READ although it had an entry, because a pre-request does not pay.
    plain_cnt,
    /// Maps dropped because the limit of memory was lowered.
    shrink_cnt,
    /// Changed entries that responses of the prototype brought.
    pair_cnt,
}

impl HpbCounters {
    /// The counters that Linux has, by their names in `hpb_stats`, and those of pre-requests and of entries that
    /// responses brought if there were any.
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

    /// What only managed units count.
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
    /// What this and another unit take. The sum of their peaks is an upper bound.
    pub fn plus(&self, other: &HostMemory) -> HostMemory {
        HostMemory {
            map_bytes: self.map_bytes + other.map_bytes,
            bitmap_bytes: self.bitmap_bytes + other.bitmap_bytes,
            table_bytes: self.table_bytes + other.table_bytes,
            peak_bytes: self.peak_bytes + other.peak_bytes,
        }
    }
}
