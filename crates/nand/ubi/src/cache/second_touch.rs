// SPDX-License-Identifier: MIT OR Apache-2.0
//! Admission on the second touch, in front of any policy: the first touch of a page reads only the wanted bytes and
//! remembers the page; if it is touched again while remembered, it gets a line. Scans then cost nothing extra, but
//! each page that is worth a line costs a part read first.

use super::ghosts::Ghosts;
use super::{Answer, Page, Policy, Touch};

/// Ghosts for each line.
const WINDOW: u32 = 4;

/// A policy that sees only pages touched before.
#[derive(Clone, Debug)]
pub struct SecondTouch<P> {
    inner: P,
    seen: Ghosts,
}

impl<P: Policy> SecondTouch<P> {
    /// In front of `inner`, which has `lines` lines; four times as many pages are remembered.
    pub fn new(inner: P, lines: u32) -> Self {
        SecondTouch { inner, seen: Ghosts::new(lines.saturating_mul(WINDOW)) }
    }
}

impl<P: Policy> Policy for SecondTouch<P> {
    #[inline]
    fn touch(&mut self, touch: &Touch) -> Answer {
        if self.inner.line_of(touch.page).is_some() || self.seen.take(touch.page) {
            return self.inner.touch(touch);
        }
        self.seen.push(touch.page);
        Answer::Bypass
    }

    fn peek(&mut self, touch: &Touch) -> Option<u32> {
        self.inner.peek(touch)
    }

    fn abandon(&mut self, line: u32) {
        self.inner.abandon(line);
    }

    fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        self.seen.invalidate(first, pages);
        self.inner.invalidate(first, pages)
    }

    fn resize(&mut self, lines: u32, freed: &mut dyn FnMut(u32)) {
        self.seen.set_limit(lines.saturating_mul(WINDOW));
        self.inner.resize(lines, freed);
    }

    fn resident(&self) -> u32 {
        self.inner.resident()
    }

    fn line_of(&self, page: Page) -> Option<u32> {
        self.inner.line_of(page)
    }

    fn metadata_bytes(&self) -> u64 {
        self.inner.metadata_bytes() + self.seen.bytes()
    }
}
