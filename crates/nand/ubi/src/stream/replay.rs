// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stream through one cache: what it counts, how often flash is read, and what that costs. The hot loop.

use super::{Op, Pressure, Record};
use crate::cache::{
    Adaptive, Arc, Clock, Counters, Direct, Future, Lru, Media, NandPage, NoData, Opt, Page, Policy, ReadCache,
    SecondTouch, SetAssoc, TooLarge, TwoQ,
};
use crate::cost::{Cost, CostModel};
use crate::variant::{Kind, Variant};
use std::convert::Infallible;

/// What flash was asked for, and what it cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Reads of whole pages.
    pub page_reads: u64,
    /// Reads of part of a page; a read that spans pages counts once for each.
    pub part_reads: u64,
    /// ECC steps that were moved.
    pub steps: u64,
    /// Time of all.
    pub cost: Cost,
}

/// What a stream came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// What the cache counted; only reads through `ubi_eba_read_leb`.
    pub counters: Counters,
    /// Flash reads for them.
    pub totals: Totals,
    /// Flash reads for all other reads: headers, volume table.
    pub other: Totals,
    /// Memory that the cache keeps beside its lines at the end, in bytes.
    pub metadata_bytes: u64,
    /// Lines that held a page at the end.
    pub resident: u32,
    /// Most lines that held a page at a time.
    pub resident_most: u32,
}

/// What a replay needs beside the records.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The cache.
    pub variant: Variant,
    /// What reads cost; its page is that of the stream.
    pub costs: CostModel,
    /// Changes of the memory budget; of no meaning for a cache without lines.
    pub pressure: &'a Pressure,
}

/// Replays `records`.
///
/// # Errors
/// The optimum, where it splits reads, is too much to plan.
pub fn run(records: &[Record], setup: &Setup) -> Result<Outcome, TooLarge> {
    let (variant, lines) = (setup.variant, setup.variant.lines);
    let costs = &setup.costs;
    Ok(match variant.kind {
        Kind::None => uncached(records, setup),
        Kind::NandPage => nand_page(records, setup),
        Kind::OneLine | Kind::PebHash => drive(records, setup, Direct::new(lines)),
        Kind::Lru if variant.second_touch => drive(records, setup, SecondTouch::new(Lru::new(lines), lines)),
        Kind::Lru => drive(records, setup, Lru::new(lines)),
        Kind::SetAssoc => drive(records, setup, SetAssoc::new(lines)),
        Kind::Clock => drive(records, setup, Clock::new(lines)),
        Kind::TwoQ => drive(records, setup, TwoQ::new(lines)),
        Kind::Arc => drive(records, setup, Arc::new(lines)),
        Kind::Learned => drive(records, setup, Adaptive::learned(lines, costs)),
        Kind::Adaptive => drive(records, setup, Adaptive::new(lines, costs)),
        Kind::Opt => {
            // What a cache is asked for depends on no answer of it, so one without lines hears all there is to know.
            let (_, future) = drive_and_keep(records, setup, Future::default());
            drive(records, setup, Opt::new(lines, future)?)
        }
    })
}

/// Counts what a read costs and moves no data.
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

/// What never happens to a [`Ledger`].
fn done(result: Result<(), Infallible>) {
    match result {
        Ok(()) => {}
        Err(never) => match never {},
    }
}

fn uncached(records: &[Record], setup: &Setup) -> Outcome {
    let (mut ledger, mut other) = (Ledger::new(&setup.costs, false), Ledger::new(&setup.costs, false));
    let mut counters = Counters::default();
    for r in records {
        match r.op {
            Op::Read => {
                counters.no_query += 1;
                done(ledger.direct(r.peb, r.offset, r.bytes));
            }
            Op::Other => done(other.direct(r.peb, r.offset, r.bytes)),
            Op::Write | Op::Erase => {}
        }
    }
    outcome(counters, &ledger, &other)
}

fn nand_page(records: &[Record], setup: &Setup) -> Outcome {
    let (mut ledger, mut other) = (Ledger::new(&setup.costs, true), Ledger::new(&setup.costs, true));
    let mut cache = NandPage::new(setup.costs.page_bytes, NoData);
    for r in records {
        match r.op {
            Op::Read => done(cache.read(&mut ledger, r.peb, r.offset, r.bytes, true)),
            Op::Other => done(cache.read(&mut other, r.peb, r.offset, r.bytes, false)),
            Op::Write => cache.written(r.peb, r.offset, r.bytes),
            Op::Erase => cache.erased(r.peb),
        }
    }
    ledger.totals.cost.cpu_ns += cache.counters().hits * setup.costs.cpu_core_hit_ns;
    outcome(*cache.counters(), &ledger, &other)
}

fn drive<P: Policy>(records: &[Record], setup: &Setup, policy: P) -> Outcome {
    drive_and_keep(records, setup, policy).0
}

fn drive_and_keep<P: Policy>(records: &[Record], setup: &Setup, policy: P) -> (Outcome, P) {
    let whole_pages = setup.variant.whole_pages();
    let (mut ledger, mut other) = (Ledger::new(&setup.costs, whole_pages), Ledger::new(&setup.costs, whole_pages));
    let mut cache = ReadCache::new(policy, NoData, setup.variant.rules, setup.costs);
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
                done(cache.read(&mut ledger, r.peb, r.offset, r.bytes));
                resident_most = resident_most.max(cache.policy().resident());
            }
            Op::Other => done(other.direct(r.peb, r.offset, r.bytes)),
            Op::Write => cache.written(r.peb, r.offset, r.bytes),
            Op::Erase => cache.erased(r.peb),
        }
    }
    let (resident, metadata_bytes) = (cache.policy().resident(), cache.policy().metadata_bytes());
    let counters = *cache.counters();
    let outcome = Outcome { metadata_bytes, resident, resident_most, ..outcome(counters, &ledger, &other) };
    (outcome, cache.into_policy())
}

fn outcome(counters: Counters, ledger: &Ledger, other: &Ledger) -> Outcome {
    let (totals, other) = (ledger.totals, other.totals);
    Outcome { counters, totals, other, metadata_bytes: 0, resident: 0, resident_most: 0 }
}
