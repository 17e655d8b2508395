// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a page is filled: whether that pays, and whether it may be risked. Knows what reads cost, and no page.

use crate::cost::CostModel;

/// A part read's cost over this is the share that may be risked: 2 %.
const RISK: i64 = 50;
/// Fills that may be risked at once, so that a stream need not wait for its first hit.
const FIRST_FILLS: i64 = 2;

/// What fills have cost and saved, or would have.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    /// What fills would have saved lately, in ns.
    gain_ns: i64,
    /// By how much we may be behind part reads, in ns.
    credit_ns: i64,
    page_ns: i64,
    /// Whether only what pays is filled.
    frugal: bool,
}

impl Judge {
    /// Of pages of which a read costs what `costs` says.
    pub(super) fn new(costs: &CostModel, frugal: bool) -> Judge {
        let page_ns = costs.page().total_ns() as i64;
        let credit_ns = FIRST_FILLS * (page_ns - costs.steps(1).total_ns() as i64);
        Judge { gain_ns: 0, credit_ns, page_ns, frugal }
    }

    /// A touch that a line serves, or would if its page had been filled; the cache has `lines`.
    #[inline]
    pub(super) fn served(&mut self, part_ns: u32, lines: u32) {
        self.gained(i64::from(part_ns), lines);
    }

    /// A touch of a page that would be filled for it.
    #[inline]
    pub(super) fn missed(&mut self, part_ns: u32, lines: u32) {
        self.gained(i64::from(part_ns) - self.page_ns, lines);
    }

    #[inline]
    fn gained(&mut self, ns: i64, lines: u32) {
        // About as many touches as there are lines, eight times.
        self.gain_ns += ns - (self.gain_ns >> (lines.max(1).ilog2() + 3));
    }

    /// Whether a page is filled for this touch. If so, it is paid for.
    #[inline]
    pub(super) fn fills(&mut self, part_ns: u32) -> bool {
        let part_ns = i64::from(part_ns);
        let after = self.credit_ns + part_ns / RISK + part_ns - self.page_ns;
        if self.frugal && (self.gain_ns < 0 || after < 0) {
            self.credit_ns += part_ns / RISK;
            return false;
        }
        self.credit_ns = after;
        true
    }

    /// A touch that flash serves in part.
    #[inline]
    pub(super) fn passed(&mut self, part_ns: u32) {
        self.credit_ns += i64::from(part_ns) / RISK;
    }

    /// A touch that a line serves.
    #[inline]
    pub(super) fn hit(&mut self, part_ns: u32) {
        self.credit_ns += i64::from(part_ns) + i64::from(part_ns) / RISK;
    }
}
