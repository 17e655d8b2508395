// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device that comes with data: the state that writing it would have left, built at no cost in virtual time. It knows
//! nothing of requests.

use super::durable::Checkpoint;
use super::{Ftl, Mapping, NoSpace, Stream};
use crate::ids::{Lpn, SuperblockId};
use readpath_flash::Ppn;
use readpath_kit::Permutation;

/// How preconditioned blocks lie in flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// As if written once in ascending order.
    Sequential,
    /// As if written once, block by block in random order.
    Random,
}

impl Ftl {
    /// Maps these ranges, each a logical page and how many from there on, as if they had been written, in no time.
    /// `place` is told each logical page and its slice.
    ///
    /// # Errors
    /// [`NoSpace`] when the erased superblocks do not suffice.
    ///
    /// # Panics
    /// If something has been written to the device.
    pub(crate) fn precondition(
        &mut self,
        ranges: impl IntoIterator<Item = (Lpn, u32)>,
        layout: Layout,
        seed: u64,
        mut place: Option<impl FnMut(u32, Ppn)>,
    ) -> Result<(), NoSpace> {
        assert!(self.sequence == 0, "a device that has been written to cannot be preconditioned");
        let mut any = false;
        for (first, blocks) in ranges.into_iter().filter(|&(_, blocks)| blocks > 0) {
            self.place(first, blocks, layout, seed, &mut place)?;
            any = true;
        }
        if any {
            // What power cuts go back to. It is as large as the device, so it is put together once.
            self.durable.checkpoint =
                Checkpoint { changes: Some(self.changes_now()), ..self.put_checkpoint_together() };
        }
        Ok(())
    }

    /// Reads map pages into SRAM, in no time, from the first on and as many as it holds.
    pub(crate) fn preload_map(&mut self) {
        self.map.preload();
    }

    /// Places one range, of a block at least.
    pub(crate) fn place(
        &mut self,
        base: Lpn,
        blocks: u32,
        layout: Layout,
        seed: u64,
        place: &mut Option<impl FnMut(u32, Ppn)>,
    ) -> Result<(), NoSpace> {
        for lpn in base.run(blocks) {
            if let Mapping::Flash(ppn) = self.map.get(lpn) {
                self.space.drop_ref(ppn);
            }
        }
        // Superblocks of a fresh device are taken in ascending order, but the map's may lie between them.
        let mut runs: Vec<(u32, Ppn, u32)> = Vec::new();
        let mut at = 0;
        self.space.preset(blocks, Stream::Host, |ppn, n| {
            match runs.last_mut() {
                Some((_, start, length)) if start.0 + *length == ppn.0 => *length += n,
                _ => runs.push((at, ppn, n)),
            }
            at += n;
        })?;
        let mut run = 0;
        let mut slice_of = |i: u32| {
            if i.wrapping_sub(runs[run].0) >= runs[run].2 {
                // Nearly all runs are as long as the first.
                run = ((i / runs[0].2) as usize).min(runs.len() - 1);
                if i.wrapping_sub(runs[run].0) >= runs[run].2 {
                    run = runs.partition_point(|r| r.0 <= i) - 1;
                }
            }
            Ppn(runs[run].1.0 + (i - runs[run].0))
        };
        let spares = self.space.spares_mut();
        let mut assign = |i: u32, ppn: Ppn| {
            spares.preset(ppn, base + i);
            if let Some(place) = place {
                place((base + i).0, ppn);
            }
            ppn
        };
        match layout {
            Layout::Sequential => self.map.preset(base, blocks, |i| assign(i, slice_of(i))),
            Layout::Random => {
                let order = Permutation::new(u64::from(blocks), seed);
                self.map.preset(base, blocks, |i| assign(i, slice_of(order.get(u64::from(i)) as u32)));
            }
        }
        let per_superblock = self.space.slices();
        for &(_, start, length) in &runs {
            let (mut from, end) = (start.0, start.0 + length);
            while from < end {
                let sb = from / per_superblock;
                let n = (end - from).min((sb + 1) * per_superblock - from);
                self.space.add_refs(SuperblockId(sb), n);
                from += n;
            }
        }
        self.preset_map_pages(self.map.page_of(base).0..=self.map.page_of(base + (blocks - 1)).0)?;
        if self.space.open_of(Stream::Meta).is_none() {
            self.ticks += 1;
            self.space.open(Stream::Meta, self.ticks)?;
        }
        Ok(())
    }
}
