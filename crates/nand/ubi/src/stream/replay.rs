// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays a stream through one cache: counters, reads of flash, and their cost. The hot loop.

use super::{Op, Pressure, Record};
use crate::cache::{
    Adaptive, Arc, Clock, Counters, Direct, Future, Lru, Media, NandPage, NoCache, NoData, Opt, Page, PageCache,
    Policy, ReadCache, SecondTouch, SetAssoc, TooLarge, TwoQ,
};
use crate::cost::{Cost, CostModel};
use crate::variant::{Kind, Variant};
use std::convert::Infallible;

/// Reads of flash, and their cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Reads of whole pages.
    pub page_reads: u64,
    /// Reads of part of a page; a read that spans pages counts once for each.
    pub part_reads: u64,
    /// ECC steps that were moved.
    pub steps: u64,
    /// Time of all reads.
    pub cost: Cost,
}

/// Result of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Counters of the cache; only reads through `ubi_eba_read_leb`.
    pub counters: Counters,
    /// Flash reads for them.
    pub totals: Totals,
    /// Flash reads for all other reads: headers, volume table.
    pub other: Totals,
    /// Memory of the cache besides its lines at the end, in bytes.
    pub metadata_bytes: u64,
    /// Lines that held a page at the end.
    pub resident: u32,
    /// Most lines that held a page at a time.
    pub resident_most: u32,
}

/// Settings of a replay.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The cache.
    pub variant: Variant,
    /// Costs of reads, for the stream's page size.
    pub costs: CostModel,
    /// Changes of the memory budget; ignored by a cache without lines.
    pub pressure: &'a Pressure,
}

/// Replays `records`.
///
/// # Errors
/// The optimum with split reads is too large to plan.
pub fn run(records: &[Record], setup: &Setup) -> Result<Outcome, TooLarge> {
    let (variant, lines, costs) = (setup.variant, setup.variant.lines, &setup.costs);
    Ok(match variant.kind {
        Kind::None => {
            let mut outcome = drive(records, setup, NoCache).0;
            outcome.counters.no_query = records.iter().filter(|r| r.op == Op::Read).count() as u64;
            outcome
        }
        Kind::NandPage => {
            let mut outcome = drive(records, setup, NandPage::new(costs.page_bytes, NoData)).0;
            outcome.totals.cost.cpu_ns += outcome.counters.hits * costs.cpu_core_hit_ns;
            outcome
        }
        Kind::OneLine | Kind::PebHash => with(records, setup, Direct::new(lines)),
        Kind::Lru if variant.second_touch => with(records, setup, SecondTouch::new(Lru::new(lines), lines)),
        Kind::Lru => with(records, setup, Lru::new(lines)),
        Kind::SetAssoc => with(records, setup, SetAssoc::new(lines)),
        Kind::Clock => with(records, setup, Clock::new(lines)),
        Kind::TwoQ => with(records, setup, TwoQ::new(lines)),
        Kind::Arc => with(records, setup, Arc::new(lines)),
        Kind::Learned => with(records, setup, Adaptive::learned(lines, costs)),
        Kind::Adaptive => with(records, setup, Adaptive::new(lines, costs)),
        Kind::Opt => {
            // Requests to a cache do not depend on its answers, so a cache without lines can record all of them.
            let (_, asked) = drive(records, setup, cache(setup, Future::default()));
            with(records, setup, Opt::new(lines, asked.into_policy())?)
        }
    })
}

fn cache<P: Policy>(setup: &Setup, policy: P) -> PageCache<P, NoData> {
    PageCache::new(policy, NoData, setup.variant.rules, setup.costs)
}

fn with<P: Policy>(records: &[Record], setup: &Setup, policy: P) -> Outcome {
    drive(records, setup, cache(setup, policy)).0
}

/// Counts the costs of reads and moves no data.
#[derive(Debug)]
struct Ledger {
    costs: CostModel,
    /// The chip or its driver has no part reads.
    whole_pages: bool,
    totals: Totals,
}

impl Ledger {
    fn new(costs: &CostModel, whole_pages: bool) -> Ledger {
        Ledger { costs: *costs, whole_pages, totals: Totals::default() }
    }

    #[inline]
    fn pages(&mut self, n: u64) {
        self.totals.page_reads += n;
        self.totals.steps += n * u64::from(self.costs.page_bytes / self.costs.step_bytes);
        self.totals.cost += self.costs.page() * n;
    }

    #[inline]
    fn part(&mut self, from: u32, bytes: u32) {
        let steps = self.costs.steps_of(from, bytes);
        if self.whole_pages || steps * self.costs.step_bytes >= self.costs.page_bytes {
            return self.pages(1);
        }
        self.totals.part_reads += 1;
        self.totals.steps += u64::from(steps);
        self.totals.cost += self.costs.steps(u64::from(steps));
    }
}

impl Media for Ledger {
    type Error = Infallible;

    #[inline]
    fn fill(&mut self, _page: Page, _line: &mut [u8]) -> Result<(), Infallible> {
        self.pages(1);
        Ok(())
    }

    #[inline]
    fn direct(&mut self, _peb: u32, offset: u32, bytes: u32) -> Result<(), Infallible> {
        let page_bytes = self.costs.page_bytes;
        let from = offset & (page_bytes - 1);
        let first = bytes.min(page_bytes - from);
        self.part(from, first);
        let left = bytes - first;
        if left > 0 {
            let whole = left / page_bytes;
            self.pages(u64::from(whole));
            if left > whole * page_bytes {
                self.part(0, left - whole * page_bytes);
            }
        }
        Ok(())
    }

    #[inline]
    fn copy(&mut self, _line: &[u8], _from: u32, _offset: u32, _bytes: u32) {}
}

/// Replays through any cache; returns the result and the cache.
fn drive<C: ReadCache>(records: &[Record], setup: &Setup, mut cache: C) -> (Outcome, C) {
    let whole_pages = setup.variant.whole_pages();
    let (mut ledger, mut other) = (Ledger::new(&setup.costs, whole_pages), Ledger::new(&setup.costs, whole_pages));
    let mut steps = setup.pressure.steps.iter().peekable();
    let mut resident_most = 0;
    let mut until_step = steps.peek().map_or(u64::MAX, |s| s.read);
    for r in records {
        match r.op {
            Op::Read => {
                if until_step == 0 {
                    let step = steps.next().expect("a step is due");
                    cache.set_budget(step.bytes, setup.variant.lines);
                    until_step = steps.peek().map_or(u64::MAX, |next| next.read - step.read);
                }
                until_step -= 1;
                let Ok(()) = cache.read(&mut ledger, r.peb, r.offset, r.bytes);
                resident_most = resident_most.max(cache.resident());
            }
            Op::Other => {
                let Ok(()) = cache.read_below(&mut other, r.peb, r.offset, r.bytes);
            }
            Op::Write => cache.written(r.peb, r.offset, r.bytes),
            Op::Erase => cache.erased(r.peb),
        }
    }
    let outcome = Outcome {
        counters: cache.counters(),
        totals: ledger.totals,
        other: other.totals,
        metadata_bytes: cache.metadata_bytes(),
        resident: cache.resident(),
        resident_most,
    };
    (outcome, cache)
}
