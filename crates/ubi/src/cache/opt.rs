// SPDX-License-Identifier: MIT OR Apache-2.0
//! Belady's optimum: the page goes whose next touch is furthest away, and a page whose own next touch is further than that
//! of all others gets no line. No policy has fewer misses; it needs to know the future, so it is a measure, not a policy to
//! run.

use super::frames::Frames;
use super::{Answer, Page, Policy, Touch};
use std::collections::{BTreeMap, BinaryHeap};

/// Never again.
const NEVER: u32 = u32::MAX;

/// The touches that will come, in order, and what will invalidate pages between them.
#[derive(Clone, Debug, Default)]
pub struct Future {
    /// For each touch the number of the next touch of its page before the page is invalidated, or [`NEVER`].
    next: Vec<u32>,
    /// Last touch of each page so far.
    last: BTreeMap<Page, u32>,
}

impl Future {
    /// A touch of a page.
    pub fn touch(&mut self, page: Page) {
        let now = self.next.len() as u32;
        if let Some(before) = self.last.insert(page, now) {
            self.next[before as usize] = now;
        }
        self.next.push(NEVER);
    }

    /// `pages` pages from `first` on, all in one erase block, will be invalidated.
    pub fn invalidate(&mut self, first: Page, pages: u32) {
        let end = Page(first.0 + u64::from(pages));
        while let Some((&page, _)) = self.last.range(first..end).next() {
            self.last.remove(&page);
        }
    }
}

/// The optimum for one future; it must then be given just those touches.
#[derive(Clone, Debug)]
pub struct Opt {
    frames: Frames,
    next: Vec<u32>,
    now: usize,
    /// Next touch of each line's page.
    line_next: Vec<u32>,
    /// Next touch and line; entries that no longer agree with `line_next` are passed over.
    furthest: BinaryHeap<(u32, u32)>,
}

impl Opt {
    /// `lines` lines.
    pub fn new(lines: u32, future: Future) -> Opt {
        Opt {
            frames: Frames::new(lines),
            next: future.next,
            now: 0,
            line_next: vec![0; lines as usize],
            furthest: BinaryHeap::new(),
        }
    }

    /// The line whose page is touched last, and when.
    fn last_touched(&mut self) -> Option<(u32, u32)> {
        while let Some(&(next, line)) = self.furthest.peek() {
            if self.frames.page(line).is_some() && self.line_next[line as usize] == next {
                return Some((next, line));
            }
            self.furthest.pop();
        }
        None
    }

    fn set_next(&mut self, line: u32, next: u32) {
        self.line_next[line as usize] = next;
        self.furthest.push((next, line));
    }
}

impl Policy for Opt {
    fn touch(&mut self, touch: &Touch) -> Answer {
        let next = self.next[self.now];
        self.now += 1;
        if let Some(line) = self.frames.find(touch.page) {
            self.set_next(line, next);
            return Answer::Hit(line);
        }
        if next == NEVER {
            return Answer::Bypass;
        }
        if self.frames.is_full() {
            match self.last_touched() {
                Some((furthest, line)) if furthest > next => self.frames.remove(line),
                _ => return Answer::Bypass,
            }
        }
        let line = self.frames.insert(touch.page);
        self.set_next(line, next);
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
        self.frames.set_limit(lines);
        while self.frames.len() > self.frames.limit() {
            let Some((_, line)) = self.last_touched() else { break };
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

    fn metadata_bytes(&self) -> u64 {
        // What it knows of the future is not charged to it: it is a limit, not a cache that somebody could build.
        self.frames.bytes() + self.line_next.len() as u64 * 4
    }
}
