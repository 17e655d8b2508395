// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares what the device believes with what is so, by looking at everything at once. Only tests may do that.

use super::{Ftl, Mapping, State};
use crate::back::DeviceStats;
use crate::config::CellMode;
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
            let entry = self.map.flash_entry(lpn);
            if let Mapping::Flash(ppn) = entry.mapping() {
                if self.space.spares().lpn(ppn) != Some(lpn) {
                    return Err(format!(
                        "block {} is at {ppn:?}, which holds {:?}",
                        lpn.0,
                        self.space.spares().lpn(ppn)
                    ));
                }
                refs[self.space.of(ppn).index()] += 1;
            }
        }
        self.each_change(|change| {
            let written_at = self.map.put_together_at(self.map.page_of(change.lpn));
            if let Mapping::Flash(ppn) = change.persisted.mapping()
                && self.space.is_counted(ppn, written_at)
            {
                refs[self.space.of(ppn).index()] += 1;
            }
        });
        for page in self.map.all_pages() {
            if let Some(at) = self.map.directory(page) {
                refs[self.space.of(at).index()] += 1;
            }
        }
        for (i, sb) in self.space.iter() {
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
        self.space.check_consistency()?;
        let (retired, bad) = self.space.given_up();
        let counted = (stats.retired_superblocks, stats.bad_blocks);
        if (u64::from(retired), u64::from(bad)) != counted {
            return Err(format!("{retired} superblocks are retired and {bad} blocks bad, counted as {counted:?}"));
        }
        let (slc, most) = (self.space.in_mode(CellMode::Slc), self.config.booster_superblocks());
        match slc <= most {
            true => Ok(()),
            false => Err(format!("{slc} superblocks are in SLC mode, of at most {most}")),
        }
    }
}
