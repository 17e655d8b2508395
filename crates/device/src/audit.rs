// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares what the device believes with what is so, by looking at everything at once. Only tests may do that.

use crate::device::UfsDevice;
use crate::ftl::{Mapping, State, Stream};
use crate::media::MediaMode;
use crate::probe::Probe;
use readpath_flash::DieSched;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Checks that every mapped block's spare area names it; that references into superblocks are as many as they are
    /// counted; and that every superblock is in exactly one state.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit(&self) -> Result<(), String> {
        let mut refs = vec![0u32; self.config.geometry.superblocks() as usize];
        for lpn in 0..self.config.logical_blocks() as u32 {
            let entry = self.flash_entry(lpn);
            if let Mapping::Flash(ppn) = entry.mapping() {
                if self.spares.lpn(ppn) != Some(lpn) {
                    return Err(format!("block {lpn} is at {ppn:?}, which holds {:?}", self.spares.lpn(ppn)));
                }
                refs[self.superblocks.of(ppn) as usize] += 1;
            }
        }
        self.each_change(|change| {
            let written_at = self.meta.written_at(self.map.page_of(change.lpn));
            if let Mapping::Flash(ppn) = change.persisted.mapping()
                && self.superblocks.is_counted(ppn, written_at)
            {
                refs[self.superblocks.of(ppn) as usize] += 1;
            }
        });
        for page in 0..self.map.pages() {
            if let Some(at) = self.map.directory(page) {
                refs[self.superblocks.of(at) as usize] += 1;
            }
        }
        for (i, sb) in self.superblocks.iter() {
            let seen = refs[i as usize];
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
        let count =
            |wanted: fn(State) -> bool| self.superblocks.iter().filter(|(_, sb)| wanted(sb.state)).count() as u32;
        let erased = count(|state| state == State::Erased);
        let meta = count(|state| matches!(state, State::Open(Stream::Meta) | State::Closed(Stream::Meta)));
        if (erased, meta) != (self.superblocks.erased(), self.superblocks.meta_in_use()) {
            return Err(format!(
                "{erased} superblocks are erased and {meta} hold the map; {} and {} are on the lists",
                self.superblocks.erased(),
                self.superblocks.meta_in_use()
            ));
        }
        self.audit_booster()
    }

    /// Checks that what is in SLC mode is the WriteBooster buffer's, and no more than it may have.
    fn audit_booster(&self) -> Result<(), String> {
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

    /// Superblocks erased, in use (anchors included), being erased, and retired: the sum never changes.
    pub fn superblock_counts(&self) -> [u32; 4] {
        let mut counts = [0; 4];
        for (_, sb) in self.superblocks.iter() {
            counts[match sb.state {
                State::Erased => 0,
                State::Anchor | State::Open(_) | State::Closed(_) => 1,
                State::Erasing(_) => 2,
                State::Retired => 3,
            }] += 1;
        }
        counts
    }

    /// Bad blocks (one per die and superblock).
    pub fn bad_blocks(&self) -> u32 {
        self.superblocks.iter().map(|(_, sb)| sb.bad_dies).sum()
    }
}
