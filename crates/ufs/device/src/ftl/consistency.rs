// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares what the device believes with what is so, by looking at everything at once. Only tests may do that.

use super::paid::Paid;
use super::{Ftl, Mapping, State, Stream};
use crate::back::DeviceStats;
use crate::ids::Lpn;

impl Ftl {
    /// Checks that every mapped block's spare area names it; that references into superblocks are as many as they are
    /// counted; that every superblock is on the list of its state; and that as many are retired, and as many blocks
    /// bad, as ever were counted, however often the power went away.
    ///
    /// # Errors
    /// What does not agree.
    pub(crate) fn check_consistency(&self, stats: &DeviceStats) -> Result<(), String> {
        let mut refs = vec![0u32; self.geometry.superblocks() as usize];
        for lpn in Lpn(0).run(self.logical_blocks) {
            let entry = self.flash_entry(lpn);
            if let Mapping::Flash(ppn) = entry.mapping() {
                if self.spares.lpn(ppn) != Some(lpn) {
                    return Err(format!("block {} is at {ppn:?}, which holds {:?}", lpn.0, self.spares.lpn(ppn)));
                }
                refs[self.superblocks.of(ppn).index()] += 1;
            }
        }
        self.each_change(|change| {
            let written_at = self.meta.written_at(Paid::loaded(self.map.page_of(change.lpn)));
            if let Mapping::Flash(ppn) = change.persisted.mapping()
                && self.superblocks.is_counted(ppn, written_at)
            {
                refs[self.superblocks.of(ppn).index()] += 1;
            }
        });
        for page in self.map.all_pages() {
            if let Some(at) = self.map.directory(page) {
                refs[self.superblocks.of(at).index()] += 1;
            }
        }
        for (i, sb) in self.superblocks.iter() {
            let seen = refs[i.index()];
            match sb.state {
                State::Open(_) | State::Closed(_) if sb.refs != seen => {
                    return Err(format!("superblock {i} has {seen} references, counted as {}: {sb:?}", sb.refs));
                }
                State::Anchor | State::Erased | State::Erasing(_) | State::Retired if seen > 0 => {
                    return Err(format!("superblock {i} is {:?} and has {seen} references", sb.state));
                }
                _ => {}
            }
        }
        self.superblocks.check_consistency(self.erasing)?;
        let (retired, bad) = self.superblocks.given_up();
        let counted = (stats.retired_superblocks, stats.bad_blocks);
        if (u64::from(retired), u64::from(bad)) != counted {
            return Err(format!("{retired} superblocks are retired and {bad} blocks bad, counted as {counted:?}"));
        }
        self.check_booster()
    }

    /// Checks that what is in SLC mode is the WriteBooster buffer's, and no more than it may have.
    pub(crate) fn check_booster(&self) -> Result<(), String> {
        let mut slc = 0;
        for (i, sb) in self.superblocks.iter() {
            let boosted = matches!(sb.state, State::Open(Stream::Boosted) | State::Closed(Stream::Boosted));
            let may = boosted || matches!(sb.state, State::Erasing(_));
            if (boosted && !sb.slc) || (sb.slc && (!may || sb.next_unit > self.config.booster_units())) {
                return Err(format!("superblock {i} is in the wrong mode: {sb:?}"));
            }
            slc += u32::from(sb.slc);
        }
        if slc != self.superblocks.slc() || slc > self.config.booster_superblocks() {
            return Err(format!(
                "{slc} superblocks are in SLC mode, counted as {}, of at most {}",
                self.superblocks.slc(),
                self.config.booster_superblocks()
            ));
        }
        Ok(())
    }
}
