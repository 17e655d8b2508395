// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cache with data in front of a flash that is written, erased, and has pages that cannot be read whole: reads
//! through it return the contents of flash. Without invalidation they do not, and the same check finds that.

use crate::common::SMALL_COSTS;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use readpath_ubi::cache::{
    Adaptive, Arc, Clock, Direct, Lines, Lru, Media, Page, PageCache, Policy, ReadCache, Rules, SetAssoc, TwoQ,
};

const PAGE: u32 = 512;
const PEB: u32 = 4 * PAGE;
const PEBS: u32 = 6;

/// All bytes of all erase blocks, and the buffer of a read.
struct Flash {
    bytes: Vec<u8>,
    /// The last byte of this page cannot be read.
    bad: Option<Page>,
    out: Vec<u8>,
    /// Offset of `out` in its erase block.
    at: u32,
}

#[derive(Debug, PartialEq)]
struct Uncorrectable;

impl Flash {
    fn range(peb: u32, offset: u32, bytes: u32) -> std::ops::Range<usize> {
        let from = (peb * PEB + offset) as usize;
        from..from + bytes as usize
    }

    fn raw(&self, peb: u32, offset: u32, bytes: u32) -> Result<&[u8], Uncorrectable> {
        if let Some(bad) = self.bad.filter(|bad| bad.peb() == peb) {
            let byte = bad.number() * PAGE + PAGE - 1;
            if (offset..offset + bytes).contains(&byte) {
                return Err(Uncorrectable);
            }
        }
        Ok(&self.bytes[Flash::range(peb, offset, bytes)])
    }
}

impl Media for Flash {
    type Error = Uncorrectable;

    fn fill(&mut self, page: Page, line: &mut [u8]) -> Result<(), Uncorrectable> {
        // A failed read leaves undefined bytes in the buffer.
        line.fill(0xEE);
        line.copy_from_slice(self.raw(page.peb(), page.number() * PAGE, PAGE)?);
        Ok(())
    }

    fn direct(&mut self, peb: u32, offset: u32, bytes: u32) -> Result<(), Uncorrectable> {
        let from = (offset - self.at) as usize;
        let read = self.raw(peb, offset, bytes)?.to_vec();
        self.out[from..from + bytes as usize].copy_from_slice(&read);
        Ok(())
    }

    fn copy(&mut self, line: &[u8], from: u32, offset: u32, bytes: u32) {
        let into = (offset - self.at) as usize;
        self.out[into..into + bytes as usize].copy_from_slice(&line[from as usize..(from + bytes) as usize]);
    }
}

type Act = (u32, u32, u32, u32, u8);

fn acts() -> impl Strategy<Value = Vec<Act>> {
    proptest::collection::vec((0u32..20, 0..PEBS, 0..PEB, 1..5 * PAGE, any::<u8>()), 0..400)
}

/// Reads that differed from flash.
fn wrong_reads<P: Policy>(policy: P, rules: Rules, acts: &[Act], lines: u32, invalidate: bool) -> u32 {
    let mut cache = PageCache::new(policy, Lines::new(PAGE, lines), rules, SMALL_COSTS);
    let bytes = (0..PEBS * PEB).map(|i| (i * 7 + i / 251) as u8).collect();
    let mut flash = Flash { bytes, bad: None, out: Vec::new(), at: 0 };
    let (mut wrong, mut reads) = (0, 0);
    for &(act, peb, offset, bytes, value) in acts {
        let bytes = if act < 14 { bytes.min(if value < 200 { 120 } else { PEB }) } else { bytes };
        let bytes = bytes.min(PEB - offset);
        match act {
            0..17 => {
                (flash.out, flash.at) = (vec![0x55; bytes as usize], offset);
                let got = cache.read(&mut flash, peb, offset, bytes);
                reads += 1;
                let want = flash.raw(peb, offset, bytes);
                // Lines may hold what flash can no longer read.
                wrong += u32::from(match (&got, &want) {
                    (Ok(()), Ok(want)) => flash.out != *want,
                    (Ok(()), Err(_)) => flash.out != flash.bytes[Flash::range(peb, offset, bytes)],
                    (Err(_), Ok(_)) => true,
                    (Err(_), Err(_)) => false,
                });
            }
            17 => {
                flash.bytes[Flash::range(peb, offset, bytes)].fill(value);
                if invalidate {
                    cache.written(peb, offset, bytes);
                }
            }
            18 => {
                flash.bytes[Flash::range(peb, 0, PEB)].fill(0xFF);
                if invalidate {
                    cache.erased(peb);
                }
            }
            _ if value < 128 => flash.bad = Some(Page::new(peb, offset / PAGE)),
            _ => {
                flash.bad = None;
                if value.is_multiple_of(2) {
                    cache.resize(u32::from(value) % (lines + 1));
                } else {
                    // Up to the size of tables to learn with, and beyond.
                    cache.set_budget(u64::from(value - 128) * 400, lines);
                }
            }
        }
        // A failed read is not counted, because its error ends it.
        assert!(cache.counters().reads() <= reads);
    }
    wrong
}

fn each(rules: Rules, acts: &[Act], invalidate: bool) -> [u32; 8] {
    [
        wrong_reads(Lru::new(7), rules, acts, 7, invalidate),
        wrong_reads(Direct::new(3), rules, acts, 3, invalidate),
        wrong_reads(Clock::new(7), rules, acts, 7, invalidate),
        wrong_reads(SetAssoc::new(8), rules, acts, 8, invalidate),
        wrong_reads(TwoQ::new(7), rules, acts, 7, invalidate),
        wrong_reads(Arc::new(7), rules, acts, 7, invalidate),
        wrong_reads(Adaptive::learned(7, &SMALL_COSTS), rules, acts, 7, invalidate),
        wrong_reads(Adaptive::new(7, &SMALL_COSTS), rules, acts, 7, invalidate),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_read_is_what_flash_holds(acts in acts()) {
        for rules in [Rules::Patch, Rules::Split] {
            prop_assert_eq!(each(rules, &acts, true), [0; 8]);
        }
    }
}

#[test]
fn without_invalidation_wrong_reads_are_found() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut found = [0; 8];
    for _ in 0..50 {
        let acts = acts().new_tree(&mut runner).unwrap().current();
        for (sum, wrong) in found.iter_mut().zip(each(Rules::Split, &acts, false)) {
            *sum += wrong;
        }
    }
    assert!(found.iter().all(|&n| n > 0), "{found:?}");
}

#[test]
fn a_page_that_cannot_be_filled_is_read_in_part() {
    let mut cache = PageCache::new(Lru::new(2), Lines::new(PAGE, 2), Rules::Patch, SMALL_COSTS);
    let bytes = vec![1; (PEBS * PEB) as usize];
    let mut flash = Flash { bytes, bad: Some(Page::new(0, 0)), out: vec![0; 16], at: 8 };
    for misses in 1..3 {
        assert_eq!(cache.read(&mut flash, 0, 8, 16), Ok(()));
        assert_eq!(flash.out, [1; 16]);
        let c = cache.counters();
        assert_eq!((c.misses, c.failed_fills, c.fills), (misses, misses, 0));
    }
    // The fault is in the wanted bytes: the read fails with its own error.
    (flash.at, flash.out) = (PAGE - 4, vec![0; 4]);
    assert_eq!(cache.read(&mut flash, 0, PAGE - 4, 4), Err(Uncorrectable));
    assert_eq!(cache.policy().resident(), 0);
}
