// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether a page is filled: whether that pays, and whether the risk is allowed. It knows the cost of reads,
//! and no page.

use crate::cost::CostModel;

/// The cost of a part read divided by this may be risked: 2 %.
const RISK: i64 = 50;
/// Fills allowed before the first hit, so that a stream need not wait for one.
const FIRST_FILLS: i64 = 2;

/// Costs and savings of fills, made or only assumed.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    /// Recent savings of assumed fills, in ns.
    gain_ns: i64,
    /// How much longer than part reads fills may take so far, in ns.
    credit_ns: i64,
    page_ns: i64,
    /// Whether only pages are filled for which that pays.
    frugal: bool,
}

impl Judge {
    /// For pages with the read costs `costs`.
    pub(super) fn new(costs: &CostModel, frugal: bool) -> Judge {
        let page_ns = costs.page().total_ns() as i64;
        let credit_ns = FIRST_FILLS * (page_ns - costs.steps(1).total_ns() as i64);
        Judge { gain_ns: 0, credit_ns, page_ns, frugal }
    }

    /// A touch that a line serves, or would serve if its page had been filled; the cache has `lines` lines.
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
        // Decays over about eight times as many touches as there are lines.
        self.gain_ns += ns - (self.gain_ns >> (lines.max(1).ilog2() + 3));
    }

    /// Whether a page is filled for this touch; if so, charges the fill.
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

    /// A touch that a part read serves.
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
