// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was published of UBI's read cache, and what reads of streams cost by it. It knows no documents.

use super::published::{Configuration, Measured, Published, Task};
use readpath_ubi::cost::{Cost, CostModel};
use readpath_ubi::preset::CostPreset;

/// The published values, and the costs of reads.
pub(super) struct Model {
    pub(super) published: Published,
    pub(super) preset: CostPreset,
    /// Costs for the pages of the published table.
    pub(super) costs: CostModel,
    /// Costs of streams that were asked for, if any.
    pub(super) given: Option<CostPreset>,
}

impl Model {
    pub(super) fn new(given: Option<&CostPreset>) -> Model {
        let published = Published::builtin();
        let preset = published.preset();
        let costs = preset.model(preset.page_bytes);
        Model { published, preset, costs, given: given.cloned() }
    }

    /// What reads of a stream cost: what was asked for, or the figures for such pages.
    pub(super) fn preset(&self, page_bytes: u32) -> CostPreset {
        self.given.clone().unwrap_or_else(|| match self.preset.page_bytes == page_bytes {
            true => self.preset.clone(),
            false => CostPreset::for_pages(page_bytes, None),
        })
    }

    pub(super) fn costs(&self, page_bytes: u32) -> CostModel {
        self.preset(page_bytes).model(page_bytes)
    }

    /// Seconds of CPU: reads and what the task takes beside them. None for boot, where the two cannot be separated.
    pub(super) fn sys_seconds(&self, task: Task, cost: Cost) -> Option<f64> {
        let base_ms = match task {
            Task::Find => self.preset.find_ms,
            Task::Rm => self.preset.rm_ms,
            Task::Boot => return None,
        };
        Some(f64::from(base_ms) / 1e3 + cost.cpu_ns as f64 / 1e9)
    }

    pub(super) fn real_seconds(&self, task: Task, cost: Cost, published: &Measured) -> f64 {
        match self.sys_seconds(task, cost) {
            // User time is not modelled; it is a few hundredths of the whole.
            Some(sys) => sys + cost.wait_ns as f64 / 1e9 + published.user_s.unwrap_or(0.0),
            None => f64::from(self.preset.boot_ms) / 1e3 + cost.seconds(),
        }
    }

    /// The same under a cache that was not measured, with the user time of C61.
    pub(super) fn real_seconds_of_any(&self, task: Task, cost: Cost) -> f64 {
        self.real_seconds(task, cost, &self.published.seconds(task, Configuration::C61))
    }

    /// Reads of a task as the thread counted them, priced. No counts of B were published, so those of C1 are taken:
    /// both keep one page. But the NAND core looks up each page of a crossing read, so the first of them is served as
    /// often as any read. In rm its waiting time says how many pages it read.
    pub(super) fn cost_of_counts(&self, task: Task, configuration: Configuration) -> Cost {
        let Model { published, costs, .. } = self;
        let one = published.counts(task, 1);
        let part = costs.steps(published.steps_per_read.of(task));
        // A read that crosses pages touches two.
        let mut sum = Cost::default();
        match configuration {
            Configuration::A => sum += part * (one.hits + one.misses + 2 * one.no_query),
            Configuration::B => {
                let served = one.no_query * one.hits / (one.hits + one.misses);
                let known = published.rm_page_reads_of_b.filter(|_| task == Task::Rm);
                sum += costs.page() * known.unwrap_or(one.misses + 2 * one.no_query - served);
                sum.cpu_ns += one.hits * costs.cpu_core_hit_ns;
            }
            Configuration::C1 | Configuration::C61 => {
                let c = if configuration == Configuration::C1 { one } else { published.counts(task, 61) };
                sum += costs.page() * c.misses;
                sum += part * (2 * c.no_query);
            }
        }
        sum
    }

    /// Share of reads that the published cache served, in %.
    pub(super) fn published_hits(&self, task: Task, lines: u32) -> f64 {
        let c = self.published.counts(task, lines);
        percent(c.hits, c.misses)
    }
}

pub(super) fn percent(hits: u64, misses: u64) -> f64 {
    100.0 * hits as f64 / (hits + misses).max(1) as f64
}
