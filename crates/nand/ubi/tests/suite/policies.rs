// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every policy against a naive one with plain vectors, on random touches, invalidations and changes of size; and
//! invariants of all: no line twice, no page that was invalidated, no more lines than allowed.

use crate::common::costs;
use crate::naive::{Did, Naive, NaiveArc, NaiveClock, NaiveDirect, NaiveSecond, NaiveTwoQ, naive_lru};
use proptest::prelude::*;
use readpath_ubi::cache::{
    Adaptive, Answer, Arc, Clock, Direct, Future, Lru, Opt, Page, Policy, SecondTouch, SetAssoc, Touch, TwoQ,
};
use readpath_ubi::cost::CostModel;
use std::sync::LazyLock;

static COSTS: LazyLock<CostModel> = LazyLock::new(|| costs(16384));

#[derive(Clone, Copy, Debug)]
enum Act {
    Touch(u32, u32, u32),
    Write(u32, u32, u32),
    Erase(u32),
    Resize(u32),
    /// A touch whose fill, if any, fails.
    Fail(u32, u32),
}

const LINES: u32 = 6;

fn acts(resize: bool) -> impl Strategy<Value = Vec<Act>> {
    let page = || (0u32..4, 0u32..5);
    let act = prop_oneof![
        40 => (page(), 1u32..300).prop_map(|((peb, page), bytes)| Act::Touch(peb, page, bytes)),
        2 => (page(), 1u32..3).prop_map(|((peb, page), n)| Act::Write(peb, page, n)),
        1 => (0u32..4).prop_map(Act::Erase),
        1 => (0..=LINES).prop_map(move |n| if resize { Act::Resize(n) } else { Act::Erase(n % 4) }),
        1 => page().prop_map(|(peb, page)| Act::Fail(peb, page)),
    ];
    proptest::collection::vec(act, 0..300)
}

fn touch(page: Page, bytes: u32) -> Touch {
    Touch { page, offset: 0, bytes, part_ns: COSTS.part(0, bytes).total_ns() as u32 }
}

/// Runs both side by side and checks the invariants.
fn compare(policy: &mut impl Policy, naive: &mut dyn Naive, acts: &[Act]) -> Result<(), TestCaseError> {
    let mut held: Vec<Option<Page>> = vec![None; LINES as usize];
    let mut limit = LINES;
    for act in acts {
        match *act {
            Act::Touch(peb, page, _) | Act::Fail(peb, page) => {
                let page = Page::new(peb, page);
                let bytes = if let Act::Touch(_, _, bytes) = act { *bytes } else { 64 };
                let answer = policy.touch(&touch(page, bytes));
                let did = match answer {
                    Answer::Hit(line) => {
                        prop_assert_eq!(held[line as usize], Some(page), "a hit finds its page in the line");
                        Did::Hit
                    }
                    Answer::Fill(line) => {
                        prop_assert!(!held.contains(&Some(page)), "no page has two lines");
                        held[line as usize] = Some(page);
                        Did::Fill
                    }
                    Answer::Bypass => {
                        prop_assert!(!held.contains(&Some(page)) || policy.line_of(page).is_none());
                        Did::Bypass
                    }
                };
                prop_assert_eq!(did, naive.touch(page), "{:?}", act);
                if let (Act::Fail(..), Answer::Fill(line)) = (act, answer) {
                    policy.abandon(line);
                    held[line as usize] = None;
                    naive.drop_one(page);
                }
            }
            Act::Write(peb, first, n) => {
                let (from, to) = (Page::new(peb, first), Page::new(peb, first + n - 1));
                let gone = |page: Page| (from..=to).contains(&page);
                let before = naive.pages().into_iter().filter(|p| gone(*p)).count();
                prop_assert_eq!(policy.invalidate(from, n) as usize, before);
                for p in first..first + n {
                    naive.forget(&|page| page == Page::new(peb, p));
                }
                held.iter_mut().filter(|h| h.is_some_and(gone)).for_each(|h| *h = None);
            }
            Act::Erase(peb) => {
                policy.invalidate(Page::new(peb, 0), u32::MAX);
                naive.forget(&|page| page.peb() == peb);
                held.iter_mut().filter(|h| h.is_some_and(|p| p.peb() == peb)).for_each(|h| *h = None);
            }
            Act::Resize(n) => {
                policy.resize(n, &mut |line| held[line as usize] = None);
                naive.resize(n as usize);
                limit = n;
            }
        }
        let mut pages = naive.pages();
        pages.sort();
        for &page in &pages {
            let line = policy.line_of(page);
            prop_assert!(line.is_some(), "{:?} is missing after {:?}", page, act);
            prop_assert_eq!(held[line.unwrap() as usize], Some(page));
        }
        prop_assert_eq!(policy.resident() as usize, pages.len());
        prop_assert!(policy.resident() <= limit);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn lru(acts in acts(true)) {
        compare(&mut Lru::new(LINES), &mut naive_lru(LINES), &acts)?;
    }

    #[test]
    fn by_erase_block(acts in acts(true)) {
        compare(&mut Direct::new(LINES), &mut NaiveDirect(vec![None; LINES as usize]), &acts)?;
    }

    #[test]
    fn second_touch(acts in acts(true)) {
        let mut naive = NaiveSecond { lru: naive_lru(LINES), seen: vec![], window: 4 * LINES as usize };
        compare(&mut SecondTouch::new(Lru::new(LINES), LINES), &mut naive, &acts)?;
    }

    #[test]
    fn clock(acts in acts(true)) {
        let n = LINES as usize;
        let mut naive = NaiveClock { slots: vec![None; n], free: (0..n).rev().collect(), hand: 0, limit: n };
        compare(&mut Clock::new(LINES), &mut naive, &acts)?;
    }

    #[test]
    fn two_q(acts in acts(true)) {
        let lines = LINES as usize;
        let mut naive = NaiveTwoQ { most: lines, lines, once: vec![], again: vec![], gone: vec![] };
        compare(&mut TwoQ::new(LINES), &mut naive, &acts)?;
    }

    #[test]
    fn arc(acts in acts(true)) {
        let mut naive = NaiveArc { c: LINES as usize, p: 0, t1: vec![], t2: vec![], b1: vec![], b2: vec![] };
        compare(&mut Arc::new(LINES), &mut naive, &acts)?;
    }

    /// With no more lines than a set has, sets are LRU.
    #[test]
    fn one_set_is_lru(acts in acts(false)) {
        compare(&mut SetAssoc::new(4), &mut naive_lru(4), &acts)?;
    }

    /// The learned cache fills every miss, and the adaptive one never loses more than it may.
    #[test]
    fn adaptive_keeps_its_promises(acts in acts(true)) {
        let (mut learned, mut adaptive) = (Adaptive::learned(LINES, &COSTS), Adaptive::new(LINES, &COSTS));
        let (mut plain, mut spent) = (0u64, 0u64);
        let page_ns = COSTS.page().total_ns();
        let first = 2 * (page_ns - COSTS.steps(1).total_ns());
        let mut limit = LINES;
        for act in acts {
            match act {
                Act::Touch(peb, page, bytes) => {
                    let touch = touch(Page::new(peb, page), bytes);
                    prop_assert_eq!(matches!(learned.touch(&touch), Answer::Bypass), limit == 0);
                    let part = u64::from(touch.part_ns);
                    plain += part;
                    let held = adaptive.line_of(touch.page);
                    match adaptive.touch(&touch) {
                        Answer::Hit(line) => prop_assert_eq!(held, Some(line)),
                        Answer::Fill(line) => {
                            spent += page_ns;
                            prop_assert_eq!((held, adaptive.line_of(touch.page)), (None, Some(line)));
                        }
                        Answer::Bypass => {
                            spent += part;
                            prop_assert_eq!(held, None);
                        }
                    }
                    prop_assert!(spent <= plain + plain / 50 + first, "{} against {}", spent, plain);
                }
                Act::Write(peb, page, n) => {
                    for policy in [&mut learned, &mut adaptive] {
                        policy.invalidate(Page::new(peb, page), n);
                        prop_assert!((page..page + n).all(|p| policy.line_of(Page::new(peb, p)).is_none()));
                    }
                }
                Act::Erase(peb) => {
                    for policy in [&mut learned, &mut adaptive] {
                        policy.invalidate(Page::new(peb, 0), u32::MAX);
                        prop_assert!((0..5).all(|p| policy.line_of(Page::new(peb, p)).is_none()));
                    }
                }
                Act::Resize(n) => {
                    limit = n;
                    for policy in [&mut learned, &mut adaptive] {
                        let mut freed = 0;
                        policy.resize(n, &mut |_| freed += 1);
                        prop_assert_eq!(freed + policy.resident(), LINES);
                    }
                }
                Act::Fail(peb, page) => {
                    let touch = touch(Page::new(peb, page), 64);
                    if let Answer::Fill(line) = learned.touch(&touch) {
                        learned.abandon(line);
                        prop_assert_eq!(learned.line_of(touch.page), None);
                    }
                }
            }
            for policy in [&learned, &adaptive] {
                prop_assert!(policy.resident() <= limit);
                let pages = (0..4).flat_map(|peb| (0..5).map(move |page| Page::new(peb, page)));
                let mut lines: Vec<u32> = pages.filter_map(|page| policy.line_of(page)).collect();
                prop_assert_eq!(lines.len() as u32, policy.resident());
                lines.sort_unstable();
                lines.dedup();
                prop_assert_eq!(lines.len() as u32, policy.resident(), "a line has two pages");
            }
        }
    }

    /// No policy has fewer misses than the optimum.
    #[test]
    fn the_optimum_is_that_of_trying_everything(
        acts in proptest::collection::vec((0u32..5, 0u32..12), 1..14),
        lines in 1u32..3,
    ) {
        let mut future = Future::default();
        let is_touch = |n: u32| n > 0;
        for &(page, n) in &acts {
            let page = Page::new(0, page);
            let _ = if is_touch(n) {
                matches!(future.touch(&touch(page, 64)), Answer::Bypass)
            } else {
                future.invalidate(page, 1) == 0
            };
        }
        let mut opt = Opt::new(lines, future).expect("few touches");
        let mut misses = 0;
        for &(page, n) in &acts {
            let page = Page::new(0, page);
            if is_touch(n) {
                misses += u32::from(!matches!(opt.touch(&touch(page, 64)), Answer::Hit(_)));
            } else {
                opt.invalidate(page, 1);
            }
        }
        prop_assert_eq!(misses, fewest(&acts, &mut Vec::new(), lines as usize));
    }
}

/// The fewest misses, found by exhaustive search.
fn fewest(acts: &[(u32, u32)], held: &mut Vec<u32>, lines: usize) -> u32 {
    let Some((&(page, n), rest)) = acts.split_first() else { return 0 };
    if n == 0 {
        let mut less: Vec<u32> = held.iter().copied().filter(|p| *p != page).collect();
        return fewest(rest, &mut less, lines);
    }
    if held.contains(&page) {
        return fewest(rest, held, lines);
    }
    let mut best = fewest(rest, held, lines);
    if held.len() < lines {
        let mut more = held.clone();
        more.push(page);
        best = best.min(fewest(rest, &mut more, lines));
    } else {
        for i in 0..held.len() {
            let mut other = held.clone();
            other[i] = page;
            best = best.min(fewest(rest, &mut other, lines));
        }
    }
    1 + best
}
