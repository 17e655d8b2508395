// SPDX-License-Identifier: MIT OR Apache-2.0
//! The optimum: of all caches with so many lines and the same rules, fewest pages are read from flash. It needs to know
//! the future, so it is a measure, not a cache to run.
//!
//! What is counted is pages, whole or in part: each part of a read that no line serves is one, be it a touch, filled or
//! bypassed, or a [`Policy::peek`]. It is not time: of two ways with as few pages either is taken, whatever fills cost.
//!
//! A future comes to *runs*: from a touch of a page, which may give it a line, to the next one, with the peeks between
//! them. A run serves what lies in it for as long as the page is kept, and once it is let go nothing brings it back
//! before the next touch. `plan.rs` chooses how far each run is followed.

mod plan;

use super::frames::Frames;
use super::{Answer, Page, Policy, Touch};
pub use plan::TooLarge;
use plan::{Runs, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What will be asked of a cache, in order. It is itself a policy, which has no lines and takes note.
#[derive(Clone, Debug, Default)]
pub struct Future {
    /// Touches and changes of size so far.
    now: u32,
    runs: Runs,
    /// The run that each page is in.
    last: BTreeMap<Page, u32>,
    /// Changes of size: when, and to how many lines.
    sizes: Vec<(u32, u32)>,
}

impl Future {
    /// A touch of a page.
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

/// The optimum for one future; it must then be asked just that.
#[derive(Clone, Debug)]
pub struct Opt {
    frames: Frames,
    /// For each touch, until when its page is kept.
    until: std::vec::IntoIter<u32>,
    /// Touches and changes of size so far.
    now: u32,
    /// Until when each line's page is kept.
    line_until: Vec<u32>,
    /// The same with the line, soonest first; entries that no longer agree with `line_until` are passed over.
    soonest: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Opt {
    /// `lines` lines, to begin with.
    ///
    /// # Errors
    /// Pages are read in parts and also whole or in bulk, and it would take too long to plan for so many of them.
    pub fn new(lines: u32, future: Future) -> Result<Opt, TooLarge> {
        let mut spans = vec![Span { begin: 0, lines }];
        for (begin, size) in future.sizes {
            spans.push(Span { begin, lines: size.min(lines) });
        }
        Ok(Opt {
            frames: Frames::new(lines),
            until: plan::plan(future.runs, &spans, future.now)?.into_iter(),
            now: 0,
            line_until: vec![0; lines as usize],
            soonest: BinaryHeap::new(),
        })
    }

    fn keep(&mut self, line: u32, until: u32) {
        self.line_until[line as usize] = until;
        self.soonest.push(Reverse((until, line)));
    }

    /// The line whose page is let go first, and when.
    fn first_to_go(&mut self) -> Option<(u32, u32)> {
        while let Some(&Reverse((until, line))) = self.soonest.peek() {
            if self.frames.page(line).is_some() && self.line_until[line as usize] == until {
                return Some((until, line));
            }
            self.soonest.pop();
        }
        None
    }
}

impl Policy for Opt {
    fn touch(&mut self, touch: &Touch) -> Answer {
        let now = self.now;
        let until = self.until.next().expect("a touch that was foreseen");
        self.now += 1;
        if let Some(line) = self.frames.find(touch.page) {
            self.keep(line, until);
            return Answer::Hit(line);
        }
        if until == now {
            return Answer::Bypass;
        }
        if self.frames.is_full() {
            match self.first_to_go() {
                Some((end, line)) if end <= now => self.frames.remove(line),
                _ => return Answer::Bypass,
            }
        }
        let line = self.frames.insert(touch.page);
        self.keep(line, until);
        Answer::Fill(line)
    }

    fn abandon(&mut self, line: u32) {
        self.frames.remove(line);
    }

    fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        let gone = self.frames.in_range(first, pages);
        gone.iter().for_each(|&line| self.frames.remove(line));
        gone.len() as u32
    }

    fn resize(&mut self, lines: u32, freed: &mut dyn FnMut(u32)) {
        self.now += 1;
        self.frames.set_limit(lines);
        while self.frames.len() > self.frames.limit() {
            let Some((_, line)) = self.first_to_go() else { break };
            self.frames.remove(line);
        }
        self.frames.give_back(freed);
    }

    fn resident(&self) -> u32 {
        self.frames.len()
    }

    fn line_of(&self, page: Page) -> Option<u32> {
        self.frames.find(page)
    }

    /// Nothing: it is a limit for caches of any make, so neither tables nor what it knows are charged to it, and a
    /// budget is all lines.
    fn metadata_bytes(&self) -> u64 {
        0
    }
}
