// SPDX-License-Identifier: MIT OR Apache-2.0
//! The adaptive cache with memory to learn: it evicts the page least likely to be touched soon, unless LRU has done
//! better recently. Evicted pages are remembered for a while. [`super::judge`] decides about fills.

use super::judge::Judge;
use super::kept::{Kept, NO_LINE};
use super::reuse::{self, Known, Reuse, UNWATCHED};
use crate::cache::index::Index;
use crate::cache::{Answer, Page, Touch};
use readpath_kit::IndexLru;

/// Remembered pages without a line, for each line.
const GHOSTS: u32 = 4;
/// Victims are chosen among this many pages, the least recently touched ones.
const LOOKED_AT: usize = 64;
/// Times restart here, long before they wrap.
const LAST_TIME: u32 = u32::MAX / 2;

#[derive(Clone, Copy, Debug)]
struct Node {
    known: Known,
    /// The line, or [`NO_LINE`] if the page is only followed.
    line: u32,
    /// Index among the followed pages, or [`NO_LINE`] if the page is only remembered.
    spot: u32,
}

/// Lines, followed pages and remembered pages.
#[derive(Clone, Debug)]
pub(super) struct Learning {
    index: Index,
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    free_lines: Vec<u32>,
    /// Followed pages in order of recency; below, in no order.
    order: IndexLru,
    followed: Vec<u32>,
    /// Remembered pages in order of recency.
    gone: IndexLru,
    /// Number of lines; below, of those that may be used.
    lines: u32,
    limit: u32,
    now: u32,
    reuse: Reuse,
    random: u64,
    /// Pages that LRU would hold, in order of recency; below, how many misses LRU is ahead recently, in 1024ths. All
    /// these pages are followed or remembered: a page is forgotten only after more others than there are lines have
    /// been touched.
    shadow: IndexLru,
    behind: i64,
}

impl Learning {
    /// A cache that has learned nothing, with the pages in `kept`, the coldest first, and other lines out of `free`;
    /// `lines` lines in all.
    pub(super) fn new(lines: u32, page_bytes: u32, kept: &[Kept], free: impl Iterator<Item = u32>) -> Learning {
        let nodes = lines * (1 + GHOSTS);
        let known = Known { last: 0, before: 0, bytes: 0, size: 0, watch: UNWATCHED };
        let mut new = Learning {
            index: Index::new(nodes),
            nodes: vec![Node { known, line: NO_LINE, spot: NO_LINE }; nodes as usize],
            free_nodes: (0..nodes).rev().collect(),
            free_lines: Vec::with_capacity(lines as usize),
            order: IndexLru::new(nodes as usize),
            followed: Vec::with_capacity(lines as usize),
            gone: IndexLru::new(nodes as usize),
            lines,
            limit: lines,
            now: 0,
            reuse: Reuse::new(lines, page_bytes),
            random: 0x9E37_79B9_7F4A_7C15,
            shadow: IndexLru::new(nodes as usize),
            behind: 0,
        };
        for kept in kept {
            let node = new.free_nodes.pop().expect("a node for each line");
            new.index.insert(kept.page, node);
            let spot = new.followed.len() as u32;
            new.nodes[node as usize] = Node { known: kept.known.unwrap_or(known), line: kept.line, spot };
            new.followed.push(node);
            new.order.push_back(node);
            new.shadow.push_back(node);
        }
        let owned = lines - kept.iter().filter(|kept| kept.line != NO_LINE).count() as u32;
        new.free_lines.extend(free.take(owned as usize));
        new.free_lines.reverse();
        new
    }

    /// Rebuilds the cache with `lines` lines, taking those not in `kept` out of `free`; learned data stays.
    pub(super) fn with_lines(
        self,
        lines: u32,
        page_bytes: u32,
        kept: &[Kept],
        free: impl Iterator<Item = u32>,
    ) -> Learning {
        let Learning { now, reuse, random, behind, .. } = self;
        Learning { now, reuse, random, behind, ..Learning::new(lines, page_bytes, kept, free) }
    }

    /// Followed pages, the coldest first.
    pub(super) fn kept(&self) -> Vec<Kept> {
        let kept = |node: u32| {
            let Node { known, line, .. } = self.nodes[node as usize];
            Kept { page: self.index.page(node), line, known: Some(known) }
        };
        self.order.iter().map(kept).collect()
    }

    pub(super) fn lines(&self) -> u32 {
        self.lines
    }

    fn tick(&mut self) -> u32 {
        if self.now == LAST_TIME {
            self.now = 0;
            self.reuse.restart();
            for node in &mut self.nodes {
                (node.known.last, node.known.before, node.known.watch) = (0, 0, UNWATCHED);
            }
        }
        self.now += 1;
        self.now
    }

    /// At times begins to watch a followed page.
    #[inline]
    fn watch_one(&mut self, current: Page) {
        if self.followed.is_empty() || !self.reuse.wants_watch() {
            return;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let at = ((self.random >> 32) * self.followed.len() as u64) >> 32;
        let node = self.followed[at as usize];
        let page = Page(self.index.page(node));
        self.reuse.watch(page, &mut self.nodes[node as usize].known, current, self.now);
    }

    /// Notes whether LRU would hold the page, and whether it is followed.
    #[inline]
    fn compare(&mut self, missed: bool, followed: bool) {
        if missed == followed {
            // One of the two missed. Old misses fade, and a lead is limited to a few misses.
            let slack = i64::from(self.limit / 8 + 2) << 10;
            let step = if followed { -1 << 10 } else { 1 << 10 };
            self.behind = (self.behind + step).clamp(-slack, 2 * slack);
        } else if missed {
            self.behind -= self.behind >> 10;
        }
    }

    /// Updates LRU's pages at a touch.
    #[inline]
    fn shadow_touch(&mut self, node: u32) {
        if self.shadow.contains(node) {
            return self.shadow.touch(node);
        }
        if self.shadow.len() >= self.limit {
            self.shadow.pop_front();
        }
        self.shadow.push_back(node);
    }

    /// The page least likely to be touched soon.
    fn victim(&self, current: Page) -> Option<u32> {
        if self.behind > i64::from(self.limit / 8 + 2) << 10 {
            // LRU has done better recently.
            return self.order.front();
        }
        let (mut victim, mut least) = (None, i32::MAX);
        for node in self.order.iter().take(LOOKED_AT) {
            let page = Page(self.index.page(node));
            let estimate = self.reuse.estimate(page, &self.nodes[node as usize].known, current, self.now);
            if estimate < least {
                (victim, least) = (Some(node), estimate);
            }
        }
        victim
    }

    fn take_line(&mut self, node: u32) -> Option<u32> {
        let line = std::mem::replace(&mut self.nodes[node as usize].line, NO_LINE);
        (line != NO_LINE).then(|| {
            self.free_lines.push(line);
            line
        })
    }

    /// Stops following a page; it keeps its node.
    fn unfollow(&mut self, node: u32) -> Option<u32> {
        self.order.remove(node);
        let spot = std::mem::replace(&mut self.nodes[node as usize].spot, NO_LINE);
        self.followed.swap_remove(spot as usize);
        if let Some(&moved) = self.followed.get(spot as usize) {
            self.nodes[moved as usize].spot = spot;
        }
        self.take_line(node)
    }

    /// Forgets a page.
    fn forget(&mut self, node: u32) -> Option<u32> {
        let line = match self.nodes[node as usize].spot {
            NO_LINE => {
                self.gone.remove(node);
                None
            }
            _ => self.unfollow(node),
        };
        // Only for erased pages, and for those without room any more.
        if self.shadow.contains(node) {
            self.shadow.remove(node);
        }
        self.index.remove(node);
        self.free_nodes.push(node);
        line
    }

    /// Evicts a followed page, which is then remembered.
    fn evict(&mut self, current: Page) -> bool {
        let Some(node) = self.victim(current) else { return false };
        self.reuse.left(self.now - self.nodes[node as usize].known.last);
        self.unfollow(node);
        self.gone.push_back(node);
        self.trim_gone();
        true
    }

    fn trim_gone(&mut self) {
        while self.gone.len() > self.limit * GHOSTS
            && let Some(oldest) = self.gone.front()
        {
            self.forget(oldest);
        }
    }

    /// Fills a followed page, if that pays and the risk is allowed.
    #[inline]
    fn fill(&mut self, judge: &mut Judge, node: u32, part_ns: u32) -> Answer {
        if !judge.fills(part_ns) {
            return Answer::Bypass;
        }
        let line = self.free_lines.pop().expect("a line for each page that is followed");
        self.nodes[node as usize].line = line;
        Answer::Fill(line)
    }

    /// Handles a touch of a page that is not followed.
    fn miss(&mut self, judge: &mut Judge, touch: &Touch, node: Option<u32>) -> Answer {
        judge.missed(touch.part_ns, self.limit);
        if self.followed.len() >= self.limit as usize && !self.evict(touch.page) {
            judge.passed(touch.part_ns);
            return Answer::Bypass;
        }
        // The eviction may have forgotten it.
        let node = match node.filter(|&node| self.index.page(node) == touch.page.0) {
            Some(node) => {
                self.gone.remove(node);
                node
            }
            None => {
                let node = self.free_nodes.pop().expect("nodes are as many as may be followed and remembered");
                self.index.insert(touch.page.0, node);
                let size = reuse::size_class(touch.bytes);
                let known = Known { last: self.now, before: self.now, bytes: touch.bytes, size, watch: UNWATCHED };
                self.nodes[node as usize].known = known;
                node
            }
        };
        self.shadow_touch(node);
        self.order.push_back(node);
        self.nodes[node as usize].spot = self.followed.len() as u32;
        self.followed.push(node);
        self.fill(judge, node, touch.part_ns)
    }

    #[inline]
    pub(super) fn touch(&mut self, judge: &mut Judge, touch: &Touch) -> Answer {
        let now = self.tick();
        let node = self.index.find(touch.page.0);
        let followed = node.filter(|&node| self.nodes[node as usize].spot != NO_LINE);
        if let Some(node) = node {
            self.reuse.touched(&mut self.nodes[node as usize].known, touch.bytes, now);
        }
        self.watch_one(touch.page);
        let shadowed = node.is_some_and(|node| self.shadow.contains(node));
        self.compare(!shadowed, followed.is_some());
        let Some(at) = followed else { return self.miss(judge, touch, node) };
        self.shadow_touch(at);
        self.order.touch(at);
        judge.served(touch.part_ns, self.limit);
        match self.nodes[at as usize].line {
            NO_LINE => self.fill(judge, at, touch.part_ns),
            line => {
                judge.hit(touch.part_ns);
                Answer::Hit(line)
            }
        }
    }

    /// As [`crate::cache::Policy::peek`].
    pub(super) fn peek(&mut self, judge: &mut Judge, touch: &Touch) -> Option<u32> {
        let node = self.index.find(touch.page.0).map(|node| self.nodes[node as usize]);
        // A page that is only remembered would have lost its line by now.
        if node.is_some_and(|node| node.spot != NO_LINE) {
            judge.served(touch.part_ns, self.limit);
        }
        let line = node.map(|node| node.line).filter(|&line| line != NO_LINE);
        if line.is_some() {
            judge.hit(touch.part_ns)
        } else {
            judge.passed(touch.part_ns)
        }
        line
    }

    /// Marks a line as empty.
    pub(super) fn abandon(&mut self, line: u32) {
        if let Some(node) = self.followed.iter().find(|&&node| self.nodes[node as usize].line == line) {
            self.take_line(*node);
        }
    }

    /// As [`crate::cache::Policy::invalidate`].
    pub(super) fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        let nodes = self.index.in_range(first, pages);
        nodes.into_iter().filter_map(|node| self.forget(node)).count() as u32
    }

    /// Limits the lines that may be used.
    pub(super) fn set_limit(&mut self, lines: u32) {
        self.limit = lines.min(self.lines);
        while self.shadow.len() > self.limit {
            self.shadow.pop_front();
        }
        while self.followed.len() > self.limit as usize && self.evict(Page(0)) {}
        self.trim_gone();
    }

    pub(super) fn resident(&self) -> u32 {
        self.lines - self.free_lines.len() as u32
    }

    pub(super) fn line_of(&self, page: Page) -> Option<u32> {
        let node = self.index.find(page.0)?;
        Some(self.nodes[node as usize].line).filter(|&line| line != NO_LINE)
    }

    /// Lines that hold a page.
    pub(super) fn filled_lines(&self) -> impl Iterator<Item = u32> + '_ {
        self.followed.iter().map(|&node| self.nodes[node as usize].line).filter(|&line| line != NO_LINE)
    }

    /// Bytes of the tables for `lines` lines.
    pub(super) fn bytes(lines: u32) -> u64 {
        let nodes = lines * (1 + GHOSTS);
        let of_nodes = u64::from(nodes) * (size_of::<Node>() + size_of::<u32>()) as u64;
        let of_lines = u64::from(lines) * 2 * size_of::<u32>() as u64;
        Index::bytes_for(nodes) + of_nodes + of_lines + 3 * IndexLru::bytes_for(nodes as usize) + Reuse::BYTES
    }
}
