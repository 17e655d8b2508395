// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of a cache. `hits + misses + no_query` is the number of reads that reached it.

/// Counts since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Reads served from lines alone.
    pub hits: u64,
    /// Reads that looked up the cache and were not served, or only in part.
    pub misses: u64,
    /// Reads that did not look up the cache.
    pub no_query: u64,
    /// Pages read into lines.
    pub fills: u64,
    /// Pages of reads for which the policy gave no line.
    pub bypasses: u64,
    /// Fills that failed; the wanted bytes were then read alone.
    pub failed_fills: u64,
    /// Lines emptied because their page was written.
    pub dropped_by_write: u64,
    /// Lines emptied because their erase block was erased.
    pub dropped_by_erase: u64,
    /// Bytes copied out of lines.
    pub copied_bytes: u64,
}

impl Counters {
    /// Reads that reached the cache.
    pub fn reads(&self) -> u64 {
        self.hits + self.misses + self.no_query
    }

    /// Share of hits among the reads that looked up the cache; `None` if there were none.
    pub fn hit_ratio(&self) -> Option<f64> {
        let asked = self.hits + self.misses;
        (asked > 0).then(|| self.hits as f64 / asked as f64)
    }
}
