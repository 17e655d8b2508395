// SPDX-License-Identifier: MIT OR Apache-2.0
//! The learned and the adaptive cache. Three judgements, each made from the past alone, with no figure chosen for a stream;
//! the learned cache makes only the first:
//!
//! - **Which page goes.** Of the 64 pages touched longest ago the one least likely to be touched soon, by `reuse.rs`. A
//!   directory of tags follows plain LRU beside it; while that has missed less, the cache does as LRU would.
//! - **Whether caching pays.** Pages that would be filled are followed even if they are not. While what they would have
//!   saved is less than what filling them costs, nothing is filled.
//! - **What may be risked.** A fill is an advance on hits to come. It is made only while the cache stays within 2 % of
//!   what part reads alone would have cost so far, so no stream costs more than that.
//!
//! The first judgement needs tables of the size of two lines. Where a budget is so small that lines would do more, it is not
//! made, and the least recently used page goes.

mod cursors;
mod reuse;

use super::index::Index;
use super::{Answer, Page, Policy, Touch};
use crate::cost::CostModel;
use readpath_kit::IndexLru;
use reuse::{Known, Reuse, UNWATCHED};

/// Pages that are remembered without a line, for each line.
const GHOSTS: u32 = 4;
/// Pages touched longest ago that are looked at when one has to go.
const LOOKED_AT: usize = 64;
/// A part read's cost over this is the share that may be risked: 2 %.
const RISK: i64 = 50;
/// Fills that may be risked at once, so that a stream need not wait for its first hit.
const FIRST_FILLS: i64 = 2;
/// No line.
const NO_LINE: u32 = u32::MAX;
/// Tables to learn with may take the place of one line of so many.
const LINES_FOR_TABLES: u64 = 64;
/// Times begin anew here, long before they wrap.
const LAST_TIME: u32 = u32::MAX / 2;

#[derive(Clone, Copy, Debug)]
struct Node {
    known: Known,
    /// The line, or [`NO_LINE`] where only the page is followed.
    line: u32,
    /// Place among those that are followed as if they had a line, or [`NO_LINE`] of those remembered only.
    spot: u32,
}

/// Lines, pages that are followed and pages that are remembered.
#[derive(Clone, Debug)]
pub struct Adaptive {
    index: Index,
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    free_lines: Vec<u32>,
    /// Node of each line.
    line_nodes: Vec<u32>,
    /// Pages that are followed, in order of recency, and in no order.
    order: IndexLru,
    followed: Vec<u32>,
    /// Pages that are remembered, in order of recency.
    gone: IndexLru,
    limit: u32,
    /// Lines that the tables are made for, and that there are at most.
    lines: u32,
    most: u32,
    now: u32,
    /// Nothing where memory is too short to learn.
    reuse: Option<Reuse>,
    random: u64,
    /// Pages that LRU would have, in order of recency, and by how many misses we are behind it lately, in 1024ths. All are
    /// followed or remembered: until a page is forgotten, more others than there are lines have been touched.
    shadow: IndexLru,
    behind: i64,
    /// What fills would have saved lately, in ns.
    gain_ns: i64,
    /// By how much we may be behind part reads, in ns.
    credit_ns: i64,
    page_ns: i64,
    page_bytes: u32,
    /// Whether it fills only what pays.
    frugal: bool,
}

impl Adaptive {
    /// The adaptive cache: `lines` lines for pages of which a read costs what `costs` says.
    pub fn new(lines: u32, costs: &CostModel) -> Adaptive {
        let first_ns = FIRST_FILLS * (costs.page().total_ns() - costs.steps(1).total_ns()) as i64;
        Adaptive { frugal: true, credit_ns: first_ns, ..Adaptive::learned(lines, costs) }
    }

    /// The learned cache, which fills whatever it misses.
    pub fn learned(lines: u32, costs: &CostModel) -> Adaptive {
        Adaptive::empty(lines, lines, true, costs.page_bytes, costs.page().total_ns() as i64)
    }

    /// One with tables for `lines` of `most` lines, with those to learn with or without.
    fn empty(lines: u32, most: u32, learns: bool, page_bytes: u32, page_ns: i64) -> Adaptive {
        let nodes = if learns { lines * (1 + GHOSTS) } else { lines };
        let remembered = if learns { nodes as usize } else { 0 };
        let known = Known { last: 0, before: 0, bytes: 0, size: 0, watch: UNWATCHED };
        Adaptive {
            index: Index::new(nodes),
            nodes: vec![Node { known, line: NO_LINE, spot: NO_LINE }; nodes as usize],
            free_nodes: (0..nodes).rev().collect(),
            free_lines: (0..most).rev().collect(),
            line_nodes: vec![0; most as usize],
            order: IndexLru::new(nodes as usize),
            followed: Vec::with_capacity(lines as usize),
            gone: IndexLru::new(remembered),
            limit: lines,
            lines,
            most,
            now: 0,
            reuse: learns.then(|| Reuse::new(lines, page_bytes)),
            random: 0x9E37_79B9_7F4A_7C15,
            shadow: IndexLru::new(remembered),
            behind: 0,
            gain_ns: 0,
            credit_ns: 0,
            page_ns,
            page_bytes,
            frugal: false,
        }
    }

    /// The same without pages, its tables for `lines` lines.
    fn shaped(&self, lines: u32, learns: bool) -> Adaptive {
        let (now, random, frugal) = (self.now, self.random, self.frugal);
        let (behind, gain_ns, credit_ns) = (self.behind, self.gain_ns, self.credit_ns);
        let empty = Adaptive::empty(lines, self.most, learns, self.page_bytes, self.page_ns);
        Adaptive { now, random, frugal, behind, gain_ns, credit_ns, ..empty }
    }

    /// Makes the tables anew, for `lines` lines; the pages touched last stay, and so does what was learned.
    fn reshape(&mut self, lines: u32, learns: bool) {
        if lines == self.lines && learns == self.reuse.is_some() {
            return;
        }
        let mut next = self.shaped(lines, learns);
        let learned = if learns { self.reuse.take() } else { None };
        let mut used = vec![false; self.most as usize];
        let beyond = self.order.len().saturating_sub(lines);
        for node in self.order.iter().skip(beyond as usize) {
            let mut kept = self.nodes[node as usize];
            if learned.is_none() {
                kept.known.watch = UNWATCHED;
            }
            kept.spot = next.followed.len() as u32;
            let at = next.free_nodes.pop().expect("a node for each line");
            next.index.insert(self.index.page(node), at);
            next.followed.push(at);
            next.order.push_back(at);
            if learns {
                next.shadow.push_back(at);
            }
            if kept.line != NO_LINE {
                next.line_nodes[kept.line as usize] = at;
                used[kept.line as usize] = true;
            }
            next.nodes[at as usize] = kept;
        }
        next.free_lines.retain(|&line| !used[line as usize]);
        next.reuse = learned.or(next.reuse);
        *self = next;
    }

    /// Most lines for which there is room beside their tables in `bytes` bytes.
    fn room(&self, bytes: u64, learns: bool) -> u32 {
        let (mut low, mut high) = (0, self.most);
        while low < high {
            let middle = high - (high - low) / 2;
            let all = self.shaped(middle, learns).metadata_bytes() + u64::from(middle) * u64::from(self.page_bytes);
            if all <= bytes { low = middle } else { high = middle - 1 }
        }
        low
    }

    fn tick(&mut self) -> u32 {
        if self.now == LAST_TIME {
            self.now = 0;
            self.reuse.iter_mut().for_each(Reuse::restart);
            for node in &mut self.nodes {
                (node.known.last, node.known.before, node.known.watch) = (0, 0, UNWATCHED);
            }
        }
        self.now += 1;
        self.now
    }

    /// Now and then, a page that is followed is watched.
    #[inline]
    fn watch_one(&mut self, current: Page) {
        let Some(reuse) = &mut self.reuse else { return };
        if self.followed.is_empty() || !reuse.wants_watch() {
            return;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let at = ((self.random >> 32) * self.followed.len() as u64) >> 32;
        let node = self.followed[at as usize];
        let page = Page(self.index.page(node));
        reuse.watch(page, &mut self.nodes[node as usize].known, current, self.now);
    }

    /// Notes whether LRU would have had the page, and whether we follow it.
    #[inline]
    fn compare(&mut self, missed: bool, followed: bool) {
        if missed == followed {
            // One of the two missed. What is long past counts less and less; a lead of a few misses is all that is kept.
            let slack = i64::from(self.limit / 8 + 2) << 10;
            let step = if followed { -1 << 10 } else { 1 << 10 };
            self.behind = (self.behind + step).clamp(-slack, 2 * slack);
        } else if missed {
            self.behind -= self.behind >> 10;
        }
    }

    /// What LRU would do at a touch.
    #[inline]
    fn shadow_touch(&mut self, node: u32) {
        if self.reuse.is_none() {
            return;
        }
        if self.shadow.contains(node) {
            return self.shadow.touch(node);
        }
        if self.shadow.len() >= self.limit {
            self.shadow.pop_front();
        }
        self.shadow.push_back(node);
    }

    /// What chooses, unless LRU has done better lately, or memory is too short to learn.
    fn chooser(&self) -> Option<&Reuse> {
        self.reuse.as_ref().filter(|_| self.behind <= i64::from(self.limit / 8 + 2) << 10)
    }

    /// Notes what a fill would have saved at this touch.
    #[inline]
    fn gained(&mut self, ns: i64) {
        // About as many touches as there are lines, eight times.
        self.gain_ns += ns - (self.gain_ns >> (self.limit.max(1).ilog2() + 3));
    }

    /// The page least likely to be touched soon.
    fn victim(&self, current: Page) -> Option<u32> {
        let Some(reuse) = self.chooser() else { return self.order.front() };
        let (mut victim, mut least) = (None, i32::MAX);
        for node in self.order.iter().take(LOOKED_AT) {
            let page = Page(self.index.page(node));
            let estimate = reuse.estimate(page, &self.nodes[node as usize].known, current, self.now);
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
        // Only erased pages, and those for which there is no budget any more.
        if self.reuse.is_some() && self.shadow.contains(node) {
            self.shadow.remove(node);
        }
        self.index.remove(node);
        self.free_nodes.push(node);
        line
    }

    /// Lets a page go that is followed; it is remembered.
    fn evict(&mut self, current: Page) -> bool {
        let Some(node) = self.victim(current) else { return false };
        let Some(reuse) = &mut self.reuse else {
            self.forget(node);
            return true;
        };
        reuse.left(self.now - self.nodes[node as usize].known.last);
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

    /// Fills a page that is followed, if that pays and may be risked.
    #[inline]
    fn fill(&mut self, node: u32, part_ns: i64) -> Answer {
        let after = self.credit_ns + part_ns / RISK + part_ns - self.page_ns;
        if self.frugal && (self.gain_ns < 0 || after < 0) {
            self.credit_ns += part_ns / RISK;
            return Answer::Bypass;
        }
        let Some(line) = self.free_lines.pop() else { return Answer::Bypass };
        self.credit_ns = after;
        self.nodes[node as usize].line = line;
        self.line_nodes[line as usize] = node;
        Answer::Fill(line)
    }

    /// A touch of a page that is not followed.
    fn miss(&mut self, touch: &Touch, node: Option<u32>) -> Answer {
        let part_ns = i64::from(touch.part_ns);
        self.gained(part_ns - self.page_ns);
        if self.followed.len() >= self.limit as usize && !self.evict(touch.page) {
            self.credit_ns += part_ns / RISK;
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
        self.fill(node, part_ns)
    }
}

impl Policy for Adaptive {
    #[inline]
    fn touch(&mut self, touch: &Touch) -> Answer {
        let now = self.tick();
        let node = self.index.find(touch.page.0);
        let followed = node.filter(|&node| self.nodes[node as usize].spot != NO_LINE);
        if let Some(reuse) = &mut self.reuse {
            if let Some(node) = node {
                reuse.touched(&mut self.nodes[node as usize].known, touch.bytes, now);
            }
            self.watch_one(touch.page);
            let shadowed = node.is_some_and(|node| self.shadow.contains(node));
            self.compare(!shadowed, followed.is_some());
        }
        let Some(at) = followed else { return self.miss(touch, node) };
        self.shadow_touch(at);
        let part_ns = i64::from(touch.part_ns);
        self.order.touch(at);
        self.gained(part_ns);
        match self.nodes[at as usize].line {
            NO_LINE => self.fill(at, part_ns),
            line => {
                self.credit_ns += part_ns + part_ns / RISK;
                Answer::Hit(line)
            }
        }
    }

    fn peek(&mut self, touch: &Touch) -> Option<u32> {
        let part_ns = i64::from(touch.part_ns);
        self.credit_ns += part_ns / RISK;
        let node = self.index.find(touch.page.0)?;
        let Node { line, spot, .. } = self.nodes[node as usize];
        // What is only remembered would have lost its line by now.
        if spot != NO_LINE {
            self.gained(part_ns);
        }
        (line != NO_LINE).then(|| {
            self.credit_ns += part_ns;
            line
        })
    }

    fn abandon(&mut self, line: u32) {
        self.take_line(self.line_nodes[line as usize]);
    }

    fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        let nodes = self.index.in_range(first, pages);
        nodes.into_iter().filter_map(|node| self.forget(node)).count() as u32
    }

    fn resize(&mut self, lines: u32, freed: &mut dyn FnMut(u32)) {
        if lines > self.lines {
            self.reshape(lines.min(self.most), true);
        }
        self.limit = lines.min(self.lines);
        while self.shadow.len() > self.limit {
            self.shadow.pop_front();
        }
        while self.followed.len() > self.limit as usize && self.evict(Page(0)) {}
        self.trim_gone();
        self.free_lines.iter().for_each(|&line| freed(line));
    }

    fn fit(&mut self, bytes: u64, _line_bytes: u32, _most: u32, freed: &mut dyn FnMut(u32)) {
        let (learning, lean) = (self.room(bytes, true), self.room(bytes, false));
        let learns = u64::from(learning) * LINES_FOR_TABLES > u64::from(lean) * (LINES_FOR_TABLES - 1);
        let lines = if learns { learning } else { lean };
        self.reshape(lines, learns);
        self.resize(lines, freed);
    }

    fn resident(&self) -> u32 {
        (self.line_nodes.len() - self.free_lines.len()) as u32
    }

    fn line_of(&self, page: Page) -> Option<u32> {
        let node = self.index.find(page.0)?;
        Some(self.nodes[node as usize].line).filter(|&line| line != NO_LINE)
    }

    fn metadata_bytes(&self) -> u64 {
        let nodes = self.nodes.len() * (size_of::<Node>() + size_of::<u32>());
        let lines = (self.most as usize * 2 + self.lines as usize) * size_of::<u32>();
        self.index.bytes()
            + (nodes + lines) as u64
            + self.order.bytes()
            + self.gone.bytes()
            + self.shadow.bytes()
            + self.reuse.as_ref().map_or(0, Reuse::bytes)
    }
}
