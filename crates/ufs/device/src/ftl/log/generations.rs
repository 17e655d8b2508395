// SPDX-License-Identifier: MIT OR Apache-2.0
//! HPB generations that may have been handed out: the journal names them ahead of their use. It knows no entry.

use super::durable::Record;
use super::journal::Journal;
use crate::config::DeviceConfig;
use crate::ids::Mark;

/// HPB generations named ahead in the journal.
const AHEAD: u64 = 1 << 20;

pub(in crate::ftl) struct Generations {
    /// The device hands out HPB entries, each time under a generation of its own.
    are_used: bool,
    /// The newest generation named in the journal; below, the newest one named in flash.
    named: u64,
    durable: u64,
    /// The record that named the last.
    mark: Mark,
}

impl Generations {
    /// The first generations count as named from the start.
    pub(super) fn new(config: &DeviceConfig) -> Self {
        let are_used = config.standard_hpb().is_some_and(|_| config.lus.iter().any(|lu| lu.hpb));
        Generations { are_used, named: AHEAD, durable: AHEAD, mark: 0 }
    }

    /// Generations up to this one have been named.
    pub(super) fn named(&self) -> u64 {
        self.named
    }

    /// After a recovery: generations up to this one may have been handed out.
    pub(crate) fn durable(&self) -> u64 {
        self.durable
    }

    /// Whether more generations must be named soon.
    pub(super) fn runs_short(&self, next: u64) -> bool {
        next + AHEAD / 2 > self.named
    }

    /// Whether generation `next` may be handed out.
    pub(super) fn may_use(&self, next: u64) -> bool {
        next <= self.durable
    }

    pub(super) fn name_more(&mut self, journal: &mut Journal) {
        self.named += AHEAD;
        self.mark = journal.push(Record::Generations { up_to: self.named });
        journal.want(self.mark);
    }

    /// Records up to `mark` are in flash.
    pub(super) fn journal_is_durable_up_to(&mut self, mark: Mark) {
        if self.mark <= mark {
            self.durable = self.named;
        }
    }

    /// Recovery has found that generations up to `named` may have been handed out. Hand-outs continue as soon as more
    /// are named.
    pub(super) fn recovered(&mut self, named: u64, journal: &mut Journal) {
        (self.named, self.durable) = (named, named);
        if self.are_used {
            self.name_more(journal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_used_only_when_the_journal_has_named_it_in_flash() {
        let mut journal = Journal::default();
        let mut generations = Generations { are_used: true, named: AHEAD, durable: AHEAD, mark: 0 };
        assert!(!generations.runs_short(AHEAD / 2) && generations.runs_short(AHEAD / 2 + 1));
        generations.name_more(&mut journal);
        assert!(journal.must_write() && generations.may_use(AHEAD) && !generations.may_use(AHEAD + 1));
        generations.journal_is_durable_up_to(journal.newest() - 1);
        assert!(!generations.may_use(AHEAD + 1));
        generations.journal_is_durable_up_to(journal.newest());
        assert!(generations.may_use(2 * AHEAD) && !generations.may_use(2 * AHEAD + 1));
        generations.recovered(7 * AHEAD, &mut journal);
        assert_eq!((generations.durable(), generations.named()), (7 * AHEAD, 8 * AHEAD), "all named may be out");
    }
}
