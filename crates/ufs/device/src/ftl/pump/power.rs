// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts and recovery, and the start of a device: preconditioned, or from a medium.

use super::Ftl;
use crate::back::{DeviceStats, Hardware, Job, MediaOp};
use crate::config::CellMode;
use crate::ftl::bytes::{FlashArray, LoadError, Sealed};
use crate::ftl::map::Mapping;
use crate::ftl::preset::{Layout, Preset, SliceRun};
use crate::ftl::{NoSpace, Recovery, State, Stream, Superblock};
use crate::ids::{Lpn, SuperblockId};
use readpath_flash::Ppn;
use readpath_kit::Ns;
use std::sync::Arc;

impl Ftl {
    /// Cuts the power at `now`: every program in progress is torn, every erase in progress leaves its blocks
    /// undefined, and SRAM is lost.
    pub(crate) fn lose_power(&mut self, now: Ns, hw: &mut impl Hardware) {
        self.write.drop_requests(now, |_| false, hw.stats());
        self.tear_programs(hw);
        self.log.recall_changes(&self.map);
        self.map.power_cut(self.write.buffer().held(), self.log.changes_on_their_way());
        if let Some(sb) = self.space.power_cut() {
            hw.emit(MediaOp::Erase { first: self.space.first(sb), slices: self.space.slices() });
            self.log.export_block(sb, &self.space, hw);
        }
        self.write.power_cut();
        self.log.power_cut(&mut self.map);
        self.collect.power_cut(&self.config);
        self.effects.clear();
    }

    /// Programs in progress become torn units.
    fn tear_programs(&mut self, hw: &mut impl Hardware) {
        let slices = self.geometry.slices_per_unit();
        let programs: Vec<_> = hw.ops().in_progress().filter(|op| op.job.is_program()).copied().collect();
        for op in programs {
            let first = op.index as u16;
            if op.job.programs_together() {
                let spares: Vec<_> = match op.job {
                    Job::ZoneProgram => self.write.buffer().spares_of(first).collect(),
                    _ => self.refreshed_spares(&op),
                };
                for (i, first) in self.space.units_of_program(op.ppn).enumerate() {
                    let of_unit = spares.iter().skip(i * slices as usize).take(slices as usize);
                    self.log.tear(first, of_unit.copied().collect());
                    hw.emit(MediaOp::Torn { first, slices });
                }
                continue;
            }
            let spares = match op.job {
                Job::Program | Job::RestProgram => self.write.buffer().spares_of(first).collect(),
                Job::MoveProgram => self.collect.spares_of(first).map(|(lpn, number)| (Some(lpn), number)).collect(),
                _ => Vec::new(),
            };
            self.log.tear(op.ppn, spares);
            hw.emit(MediaOp::Torn { first: op.ppn, slices });
        }
    }

    /// Recovers the device from flash, beginning at `now`, not before the cut. The power may be cut again before the
    /// device is ready.
    pub(crate) fn recover(&mut self, now: Ns, hw: &mut impl Hardware) -> Recovery {
        let (recovery, sequence) = self.log.recover(now, &mut self.space, (&mut self.map, &mut self.zones), hw);
        self.write.recovered(sequence, self.map.changes().is_over_full());
        recovery
    }

    /// Takes over the contents of `array`. The device is new; recovery must follow.
    ///
    /// # Errors
    /// The array cannot be read, is of another device, or is damaged where the device cannot do without.
    pub(crate) fn load(&mut self, array: &mut impl FlashArray, hw: &mut impl Hardware) -> Result<(), LoadError> {
        self.log.load(&mut self.space, &mut self.map, array, hw)
    }

    /// Passes everything that flash holds and that is needed to `each`, and returns the checkpoint that a device
    /// begins with.
    ///
    /// # Errors
    /// The work that is still in progress.
    pub(crate) fn seal(&mut self, each: impl FnMut(Sealed)) -> Result<Vec<u8>, &'static str> {
        self.log.seal(&self.space, &self.map, &self.write, &self.zones, each)
    }

    /// Maps ranges, each a first logical page and a length, as if they had been written, in no time. `place` gets
    /// each logical page and its slice.
    ///
    /// # Errors
    /// [`NoSpace`] when there are not enough erased superblocks.
    ///
    /// # Panics
    /// If the device has been written to.
    pub(crate) fn precondition(
        &mut self,
        ranges: impl IntoIterator<Item = (Lpn, u32)>,
        layout: Layout,
        seed: u64,
        mut place: Option<impl FnMut(u32, Ppn)>,
    ) -> Result<(), NoSpace> {
        assert!(self.write.sequence() == 0, "a device that has been written to cannot be preconditioned");
        let mut any = false;
        for (first, blocks) in ranges.into_iter().filter(|&(_, blocks)| blocks > 0) {
            match self.map.is_zoned(first) {
                true => self.preset_zones(first, blocks, &mut place)?,
                false => self.place(first, blocks, layout, seed, &mut place)?,
            }
            self.zones.preset(first, blocks);
            any = true;
        }
        if any {
            // Once for all ranges: it is as large as the device.
            self.log.begin_with(&self.space, &self.map, &self.write, &self.zones);
        }
        Ok(())
    }

    /// Places one range of at least one block.
    fn place(
        &mut self,
        base: Lpn,
        blocks: u32,
        layout: Layout,
        seed: u64,
        place: &mut Option<impl FnMut(u32, Ppn)>,
    ) -> Result<(), NoSpace> {
        let mapped_before = self.map.mapped_end().0.saturating_sub(base.0).min(blocks);
        for lpn in base.run(mapped_before) {
            if let Mapping::Flash(ppn) = self.map.get(lpn) {
                self.space.drop_ref(ppn);
            }
        }
        // Superblocks of a fresh device are taken in ascending order, with gaps for the map's; worn ones come last.
        let mut runs: Vec<SliceRun> = Vec::new();
        let mut before = 0;
        self.space.preset(blocks, Stream::Host, |first, slices| {
            match runs.last_mut() {
                Some(last) if last.first.0 + last.slices == first.0 => last.slices += slices,
                _ => runs.push(SliceRun { before, first, slices }),
            }
            before += slices;
        })?;
        let preset = Arc::new(Preset::new(base, blocks, layout, seed, runs));
        if let Some(place) = place {
            base.run(blocks).for_each(|lpn| place(lpn.0, preset.slice(lpn)));
        }
        let stands = self.map.preset(&preset);
        let spares = self.space.spares_mut();
        if stands && preset.ascends() {
            spares.preset_all(&preset);
        } else {
            base.run(blocks).for_each(|lpn| spares.preset(preset.slice(lpn), lpn));
        }
        let per_superblock = self.space.slices();
        for run in preset.runs() {
            let (mut from, end) = (run.first.0, run.first.0 + run.slices);
            while from < end {
                let sb = from / per_superblock;
                let n = (end - from).min((sb + 1) * per_superblock - from);
                self.space.add_refs(SuperblockId(sb), n);
                from += n;
            }
        }
        let pages = self.map.page_of(base).0..=self.map.page_of(base + (blocks - 1)).0;
        self.log.preset_map_pages((&mut self.space, &mut self.map), pages)?;
        self.log.open_meta(&mut self.space)
    }

    /// Compares the device's tables with a walk over everything, for tests only: every mapped block's spare area
    /// names it; the references into each superblock equal its count; every superblock is on the list of its state;
    /// and the retired superblocks and bad blocks equal those ever counted, across all power cuts.
    ///
    /// # Errors
    /// The first disagreement found.
    /// What does not agree.
    pub(crate) fn check_consistency(&self, stats: &DeviceStats) -> Result<(), String> {
        let mut refs = vec![0u32; self.geometry.superblocks() as usize];
        for lpn in Lpn(0).run(self.config.mapped_blocks() as u32) {
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
        self.log.each_change(&self.map, |change| {
            let written_at = self.map.put_together_at(self.map.page_of(change.lpn));
            if let Mapping::Flash(ppn) = change.persisted.mapping()
                && self.space.is_counted(ppn, written_at)
            {
                refs[self.space.of(ppn).index()] += 1;
            }
        });
        self.check_zones(&mut refs)?;
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
        // A medium may have lost the erase of another superblock, which is erased again.
        let holds_data = |sb: &Superblock| matches!(sb.state, State::Open(_) | State::Closed(_));
        let is_cache = |sb: &Superblock| sb.mode == CellMode::Cache && holds_data(sb);
        let slc = self.space.iter().filter(|(_, sb)| is_cache(sb)).count() as u32;
        let most = self.config.cache_superblocks();
        match slc <= most {
            true => Ok(()),
            false => Err(format!("{slc} superblocks are in SLC mode, of at most {most}")),
        }
    }
}
