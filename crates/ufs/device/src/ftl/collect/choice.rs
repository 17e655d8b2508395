// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which superblocks are emptied next, and why.

use super::{Around, Collect, Pass};
use crate::back::Hardware;
use crate::config::{CellMode, VictimPolicy};
use crate::ftl::space::{Space, Stream};
use crate::ids::SuperblockId;

/// Superblocks emptied for other reasons between two that are emptied to level wear. Without this limit the host
/// would wait for many of them in a row after a long time without levelling; a few percent of all are enough.
const BETWEEN_LEVELLING: u32 = 3;

/// Why a superblock is emptied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    Space,
    Idle,
    Wear,
    Disturb,
    Flush,
}

impl Collect {
    /// Chooses superblocks to be emptied; false if none is to be.
    pub(super) fn choose_victims(&mut self, around: &mut Around, hw: &mut impl Hardware) -> bool {
        let is_idle = self.idle.is_now(hw);
        let flush = self.next_to_flush(around, is_idle);
        if around.space.is_short() && !around.space.cache_is_static() {
            close_boosted(around);
        }
        let policy = self.settings.victim;
        let is_due = around.space.is_short() || around.space.has_failed();
        let space = if is_due { around.space.victim(policy, around.sequence) } else { None };
        // Wear comes before space, because under pressure levelling would never have its turn. But it frees no space.
        let why = |why: Why| move |sb: SuperblockId| (sb, why);
        let choice = (self.worn(around).map(why(Why::Wear)))
            .or(space.map(why(Why::Space)))
            .or(flush.map(why(Why::Flush)))
            .or_else(|| self.next_disturbed(around.space).map(why(Why::Disturb)))
            .or_else(|| self.worth_idle_time(around, is_idle).map(why(Why::Idle)));
        let Some((victim, why)) = choice else { return false };
        let counter = match why {
            Why::Space => &mut hw.stats().collected,
            Why::Idle => &mut hw.stats().collected_idle,
            Why::Wear => &mut hw.stats().levelled,
            Why::Disturb => &mut hw.stats().refreshed,
            Why::Flush => &mut hw.stats().flushed,
        };
        *counter += 1;
        let mut list = vec![victim];
        // Not by cost and benefit: that order changes with every write, so several victims at once would be another
        // policy.
        if why == Why::Space && policy == VictimPolicy::Greedy {
            let most = self.settings.collect_together;
            around.space.more_victims(policy, around.sequence, most, &mut list);
            hw.stats().collected += list.len() as u64 - 1;
        }
        self.begin(&list, why, around.space);
        true
    }

    fn begin(&mut self, list: &[SuperblockId], why: Why, space: &mut Space) {
        let emptied = self.since_levelled + list.len() as u32;
        (self.to, self.since_levelled) = match why {
            Why::Wear => (Stream::Cold, 0),
            _ if self.settings.separate_moved => (Stream::Moved, emptied),
            _ => (Stream::Host, emptied),
        };
        self.why = why;
        self.victims.begin(list.iter().map(|&sb| (sb, space.first(sb))));
        self.round += 1;
        let unit = self.geometry.slices_per_unit();
        let freed = |&sb: &SuperblockId| {
            let sb = space.get(sb);
            // A superblock in another mode becomes free with all pages of the full mode.
            let slices = if sb.mode == CellMode::Full { sb.next_unit * unit } else { space.slices() };
            slices.saturating_sub(sb.refs)
        };
        let freed = if matches!(why, Why::Wear | Why::Flush) { 0 } else { list.iter().map(freed).sum() };
        self.progress.begin(list.iter().map(|&sb| space.get(sb).next_unit).sum(), freed);
        self.progress.begin_pass(Pass::Spares);
        space.begin_emptying(list);
    }

    /// The next superblock to flush, if a flush is in progress.
    fn next_to_flush(&mut self, around: &mut Around, is_idle: bool) -> Option<SuperblockId> {
        if !self.slc_cache.has_flush(around.space) {
            return None;
        }
        if self.slc_cache.closes(around.space, is_idle) {
            close_boosted(around);
        }
        self.slc_cache.next_to_flush(around.space, is_idle)
    }

    /// The superblock that levelling empties, if levelling is due.
    fn worn(&mut self, around: &mut Around) -> Option<SuperblockId> {
        let (percent, least) = (self.settings.wear_threshold_percent, self.settings.wear_least_erases);
        // Moved data may need a superblock, or two if blocks are bad, before the victim becomes free.
        let room = around.space.spare() + 1 >= around.space.spare_for_host();
        let may = percent > 0 && room && self.since_levelled >= BETWEEN_LEVELLING;
        if !may || !std::mem::take(&mut self.wear_due) {
            return None;
        }
        let choice = around.space.look_at_wear(percent, least);
        for stream in Stream::ALL {
            if let Some(sb) = around.space.close_left_behind(stream, around.sequence) {
                around.log.discard_if_empty(around.space, sb);
            }
        }
        choice
    }

    /// A superblock that was read so often that its data has to move.
    fn next_disturbed(&mut self, space: &Space) -> Option<SuperblockId> {
        while let Some(sb) = self.disturbed.pop_front() {
            // It may have been emptied for another reason since, and be in use again.
            if space.is_disturbed(sb, self.settings.read_disturb_limit) && space.may_move(sb) {
                return Some(sb);
            }
        }
        None
    }

    /// A superblock that is worth emptying while the host is idle.
    fn worth_idle_time(&self, around: &Around, is_idle: bool) -> Option<SuperblockId> {
        let space = &*around.space;
        if !is_idle || !self.collects_when_idle() || space.spare() >= self.settings.collect_idle_below {
            return None;
        }
        // At least a quarter of its units must become free; otherwise collection might never end.
        let unit = self.geometry.slices_per_unit();
        let pays = |&sb: &SuperblockId| {
            let sb = space.get(sb);
            sb.mode != CellMode::Full || sb.refs.div_ceil(unit) * 4 <= sb.next_unit * 3
        };
        space.victim(self.settings.victim, around.sequence).filter(pays)
    }
}

/// Closes the open superblock of the cache in SLC mode, so that it can be emptied.
fn close_boosted(around: &mut Around) {
    if let Some(sb) = around.space.open_of(Stream::Boosted) {
        around.space.close(Stream::Boosted, around.sequence);
        around.log.discard_if_empty(around.space, sb);
    }
}
