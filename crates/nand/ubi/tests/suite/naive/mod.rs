// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies in their simplest form: vectors of pages, searched from end to end.

use readpath_ubi::cache::Page;

/// Decision of a policy, without the number of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Did {
    Hit,
    Fill,
    Bypass,
}

/// A naive policy: pages only.
pub trait Naive {
    fn touch(&mut self, page: Page) -> Did;
    fn forget(&mut self, gone: &dyn Fn(Page) -> bool);
    fn drop_one(&mut self, page: Page) {
        self.forget(&|p| p == page);
    }
    fn resize(&mut self, lines: usize);
    fn pages(&self) -> Vec<Page>;
}

pub struct NaiveLru {
    pub lines: usize,
    pub pages: Vec<Page>,
}

impl Naive for NaiveLru {
    fn touch(&mut self, page: Page) -> Did {
        if self.lines == 0 {
            return Did::Bypass;
        }
        let hit = self.pages.contains(&page);
        self.pages.retain(|p| *p != page);
        if self.pages.len() == self.lines {
            self.pages.remove(0);
        }
        self.pages.push(page);
        if hit { Did::Hit } else { Did::Fill }
    }

    fn forget(&mut self, gone: &dyn Fn(Page) -> bool) {
        self.pages.retain(|p| !gone(*p));
    }

    fn resize(&mut self, lines: usize) {
        self.lines = lines;
        while self.pages.len() > lines {
            self.pages.remove(0);
        }
    }

    fn pages(&self) -> Vec<Page> {
        self.pages.clone()
    }
}

/// One page for each remainder.
pub struct NaiveDirect(pub Vec<Option<Page>>);

impl Naive for NaiveDirect {
    fn touch(&mut self, page: Page) -> Did {
        let n = self.0.len();
        if n == 0 {
            return Did::Bypass;
        }
        let was = self.0[page.peb() as usize % n].replace(page);
        if was == Some(page) { Did::Hit } else { Did::Fill }
    }

    fn forget(&mut self, gone: &dyn Fn(Page) -> bool) {
        self.0.iter_mut().filter(|p| p.is_some_and(gone)).for_each(|p| *p = None);
    }

    fn resize(&mut self, lines: usize) {
        if lines != self.0.len() {
            self.0 = vec![None; lines];
        }
    }

    fn pages(&self) -> Vec<Page> {
        self.0.iter().flatten().copied().collect()
    }
}

/// LRU behind a list of pages seen once.
pub struct NaiveSecond {
    pub lru: NaiveLru,
    pub seen: Vec<Page>,
    pub window: usize,
}

impl Naive for NaiveSecond {
    fn touch(&mut self, page: Page) -> Did {
        if self.lru.pages.contains(&page) || self.seen.contains(&page) {
            self.seen.retain(|p| *p != page);
            return self.lru.touch(page);
        }
        self.seen.push(page);
        if self.seen.len() > self.window {
            self.seen.remove(0);
        }
        Did::Bypass
    }

    fn forget(&mut self, gone: &dyn Fn(Page) -> bool) {
        self.seen.retain(|p| !gone(*p));
        self.lru.forget(gone);
    }

    fn resize(&mut self, lines: usize) {
        self.window = 4 * lines;
        while self.seen.len() > self.window {
            self.seen.remove(0);
        }
        self.lru.resize(lines);
    }

    fn pages(&self) -> Vec<Page> {
        self.lru.pages()
    }
}

/// The second chance, as slots on a ring.
pub struct NaiveClock {
    pub slots: Vec<Option<(Page, bool)>>,
    pub free: Vec<usize>,
    pub hand: usize,
    pub limit: usize,
}

impl NaiveClock {
    fn evict(&mut self) {
        loop {
            let at = self.hand;
            self.hand = (self.hand + 1) % self.slots.len();
            match &mut self.slots[at] {
                Some((_, touched)) if *touched => *touched = false,
                Some(_) => {
                    self.slots[at] = None;
                    return self.free.push(at);
                }
                None => {}
            }
        }
    }

    fn used(&self) -> usize {
        self.slots.iter().flatten().count()
    }
}

impl Naive for NaiveClock {
    fn touch(&mut self, page: Page) -> Did {
        if let Some((_, touched)) = self.slots.iter_mut().flatten().find(|(p, _)| *p == page) {
            *touched = true;
            return Did::Hit;
        }
        if self.limit == 0 {
            return Did::Bypass;
        }
        if self.used() >= self.limit {
            self.evict();
        }
        let at = self.free.pop().unwrap();
        self.slots[at] = Some((page, false));
        Did::Fill
    }

    fn forget(&mut self, gone: &dyn Fn(Page) -> bool) {
        for at in 0..self.slots.len() {
            if self.slots[at].is_some_and(|(page, _)| gone(page)) {
                self.slots[at] = None;
                self.free.push(at);
            }
        }
    }

    fn resize(&mut self, lines: usize) {
        self.limit = lines;
        while self.used() > lines {
            self.evict();
        }
    }

    fn pages(&self) -> Vec<Page> {
        self.slots.iter().flatten().map(|(p, _)| *p).collect()
    }
}

/// 2Q with vectors.
pub struct NaiveTwoQ {
    pub most: usize,
    pub lines: usize,
    pub once: Vec<Page>,
    pub again: Vec<Page>,
    pub gone: Vec<Page>,
}

impl NaiveTwoQ {
    fn evict(&mut self) {
        if self.once.len() > (self.lines / 4).max(1) || self.again.is_empty() {
            let page = self.once.remove(0);
            if self.gone.len() == (self.most / 2).min((self.lines / 2).max(1)) {
                self.gone.remove(0);
            }
            self.gone.push(page);
        } else {
            self.again.remove(0);
        }
    }
}

impl Naive for NaiveTwoQ {
    fn touch(&mut self, page: Page) -> Did {
        if self.again.contains(&page) {
            self.again.retain(|p| *p != page);
            self.again.push(page);
            return Did::Hit;
        }
        if self.once.contains(&page) {
            return Did::Hit;
        }
        if self.lines == 0 {
            return Did::Bypass;
        }
        let known = self.gone.contains(&page);
        self.gone.retain(|p| *p != page);
        if self.once.len() + self.again.len() >= self.lines {
            self.evict();
        }
        if known {
            self.again.push(page)
        } else {
            self.once.push(page)
        }
        Did::Fill
    }

    fn forget(&mut self, gone: &dyn Fn(Page) -> bool) {
        for list in [&mut self.once, &mut self.again, &mut self.gone] {
            list.retain(|p| !gone(*p));
        }
    }

    fn resize(&mut self, lines: usize) {
        self.lines = lines;
        while self.once.len() + self.again.len() > lines {
            self.evict();
        }
        while self.gone.len() > (lines / 2).max(1) {
            self.gone.remove(0);
        }
    }

    fn pages(&self) -> Vec<Page> {
        self.once.iter().chain(&self.again).copied().collect()
    }
}

/// ARC as its paper has it, with vectors.
pub struct NaiveArc {
    pub c: usize,
    pub p: usize,
    pub t1: Vec<Page>,
    pub t2: Vec<Page>,
    pub b1: Vec<Page>,
    pub b2: Vec<Page>,
}

impl NaiveArc {
    fn replace(&mut self, in_b2: bool) {
        if !self.t1.is_empty() && (self.t1.len() > self.p || (in_b2 && self.t1.len() == self.p)) || self.t2.is_empty() {
            let page = self.t1.remove(0);
            self.b1.push(page);
        } else {
            let page = self.t2.remove(0);
            self.b2.push(page);
        }
        for list in [&mut self.b1, &mut self.b2] {
            if list.len() > self.c {
                list.remove(0);
            }
        }
    }
}

impl Naive for NaiveArc {
    fn touch(&mut self, page: Page) -> Did {
        if self.t1.contains(&page) || self.t2.contains(&page) {
            self.t1.retain(|p| *p != page);
            self.t2.retain(|p| *p != page);
            self.t2.push(page);
            return Did::Hit;
        }
        if self.c == 0 {
            return Did::Bypass;
        }
        let full = self.t1.len() + self.t2.len() >= self.c;
        if self.b1.contains(&page) {
            self.p = (self.p + (self.b2.len() / self.b1.len()).max(1)).min(self.c);
            self.b1.retain(|p| *p != page);
            if full {
                self.replace(false);
            }
            self.t2.push(page);
        } else if self.b2.contains(&page) {
            self.p = self.p.saturating_sub((self.b1.len() / self.b2.len()).max(1));
            self.b2.retain(|p| *p != page);
            if full {
                self.replace(true);
            }
            self.t2.push(page);
        } else {
            if self.t1.len() + self.b1.len() >= self.c {
                if self.t1.len() < self.c {
                    self.b1.remove(0);
                    if full {
                        self.replace(false);
                    }
                } else {
                    self.t1.remove(0);
                }
            } else if full {
                if self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len() >= 2 * self.c && !self.b2.is_empty() {
                    self.b2.remove(0);
                }
                self.replace(false);
            }
            self.t1.push(page);
        }
        Did::Fill
    }

    fn forget(&mut self, gone: &dyn Fn(Page) -> bool) {
        for list in [&mut self.t1, &mut self.t2, &mut self.b1, &mut self.b2] {
            list.retain(|p| !gone(*p));
        }
    }

    fn resize(&mut self, lines: usize) {
        let before = self.c;
        self.p = self.p.min(lines);
        while self.t1.len() + self.t2.len() > lines {
            self.c = before;
            self.replace(false);
        }
        self.c = lines;
        for list in [&mut self.b1, &mut self.b2] {
            while list.len() > lines {
                list.remove(0);
            }
        }
    }

    fn pages(&self) -> Vec<Page> {
        self.t1.iter().chain(&self.t2).copied().collect()
    }
}

pub fn naive_lru(lines: u32) -> NaiveLru {
    NaiveLru { lines: lines as usize, pages: Vec::new() }
}
