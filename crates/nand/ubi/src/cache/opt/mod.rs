// SPDX-License-Identifier: MIT OR Apache-2.0
//! The optimum: of all caches with the same lines and rules, the fewest pages are read from flash. It needs to know
//! the future, so it is a measure, not a cache to run.
//!
//! It minimises pages, whole or in part: each part of a read that no line serves counts one, whether a touch, filled
//! or bypassed, or a [`Policy::peek`]. It does not minimise time: of two ways with equally few pages either is taken,
//! whatever fills cost.
//!
//! A future consists of *runs*: from a touch of a page, which may give it a line, to the next one, with the peeks
//! between them. A run serves its touches and peeks for as long as the page is kept; after an eviction nothing loads
//! it before the next touch. `plan.rs` chooses how far each run is followed.

mod plan;

use super::frames::{Framed, Frames, Order};
use super::{Answer, Page, Policy, Touch};
pub use plan::TooLarge;
use plan::{Runs, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Future requests to a cache, in order. It is itself a policy, which has no lines and records touches.
#[derive(Clone, Debug, Default)]
pub struct Future {
    /// Touches and changes of size so far.
    now: u32,
    runs: Runs,
    /// The current run of each page.
    last: BTreeMap<Page, u32>,
    /// Changes of size: time, and number of lines.
    sizes: Vec<(u32, u32)>,
}

impl Future {
    fn note_touch(&mut self, page: Page) {
        let run = self.runs.begin(self.now);
        if let Some(before) = self.last.insert(page, run) {
            self.runs.serves(before, self.now);
        }
        self.now += 1;
    }
}

impl Policy for Future {
    fn touch(&mut self, touch: &Touch) -> Answer {
        self.note_touch(touch.page);
        Answer::Bypass
    }

    fn peek(&mut self, touch: &Touch) -> Option<u32> {
        if let Some(&run) = self.last.get(&touch.page) {
            self.runs.serves(run, self.now);
        }
        None
    }

    fn abandon(&mut self, _line: u32) {}

    fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        let end = Page(first.0 + u64::from(pages));
        while let Some((&page, _)) = self.last.range(first..end).next() {
            self.last.remove(&page);
        }
        0
    }

    fn resize(&mut self, lines: u32, _freed: &mut dyn FnMut(u32)) {
        self.sizes.push((self.now, lines));
        self.now += 1;
    }

    fn resident(&self) -> u32 {
        0
    }

    fn line_of(&self, _page: Page) -> Option<u32> {
        None
    }

    fn metadata_bytes(&self) -> u64 {
        0
    }
}

/// The optimum for one future, whose requests must follow exactly.
pub type Opt = Framed<Foreseen>;

/// The order of [`Opt`].
#[derive(Clone, Debug)]
pub struct Foreseen {
    /// For each touch, until when its page is kept.
    until: std::vec::IntoIter<u32>,
    /// Touches and changes of size so far.
    now: u32,
    /// Until when each line's page is kept.
    line_until: Vec<u32>,
    /// These times with their lines, soonest first; entries that no longer agree with `line_until` are skipped.
    soonest: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Opt {
    /// The optimum with initially `lines` lines.
    ///
    /// # Errors
    /// Pages are read in parts and also whole or in bulk, and planning for so many of them would take too long.
    pub fn new(lines: u32, future: Future) -> Result<Opt, TooLarge> {
        let mut spans = vec![Span { begin: 0, lines }];
        for (begin, size) in future.sizes {
            spans.push(Span { begin, lines: size.min(lines) });
        }
        let order = Foreseen {
            until: plan::plan(future.runs, &spans, future.now)?.into_iter(),
            now: 0,
            line_until: vec![0; lines as usize],
            soonest: BinaryHeap::new(),
        };
        Ok(Framed::of(lines, order))
    }
}

impl Foreseen {
    /// Until when the page of this touch is kept.
    fn next(&mut self) -> u32 {
        self.now += 1;
        self.until.next().expect("a touch that was foreseen")
    }

    fn keep(&mut self, line: u32, until: u32) {
        self.line_until[line as usize] = until;
        self.soonest.push(Reverse((until, line)));
    }
}

impl Order for Foreseen {
    fn hit(&mut self, line: u32) {
        let until = self.next();
        self.keep(line, until);
    }

    fn miss(&mut self, frames: &mut Frames, page: Page) -> Answer {
        let now = self.now;
        let until = self.next();
        if until == now {
            return Answer::Bypass;
        }
        if frames.is_full() {
            match self.victim(frames) {
                Some(line) if self.line_until[line as usize] <= now => frames.remove(line),
                _ => return Answer::Bypass,
            }
        }
        let line = frames.insert(page);
        self.keep(line, until);
        Answer::Fill(line)
    }

    /// The line whose page is evicted first.
    fn victim(&mut self, frames: &Frames) -> Option<u32> {
        while let Some(&Reverse((until, line))) = self.soonest.peek() {
            if frames.page(line).is_some() && self.line_until[line as usize] == until {
                return Some(line);
            }
            self.soonest.pop();
        }
        None
    }

    fn resized(&mut self, _lines: u32) {
        self.now += 1;
    }

    /// Zero: as a bound for all caches it is charged neither for tables nor for its knowledge, and a budget is all
    /// lines.
    fn bytes(&self, _: &Frames) -> u64 {
        0
    }
}
