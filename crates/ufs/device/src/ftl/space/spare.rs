// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spare areas: the logical page and sequence number of each slice of data (4 bytes each). This is flash: it is known
//! only after the slice was read.
//!
//! A simulation keeps them in 7 bytes. Sequence numbers are compared only among slices that were programmed since the
//! last checkpoint, so they are kept as distances from a number that follows the checkpoints; older slices have none.
//! Formulas stand for what superblocks have held since the device was preconditioned.

use crate::ftl::preset::Preset;
use crate::ids::{Lpn, SuperblockId};
use readpath_flash::Ppn;
use readpath_kit::{Divisor, huge_vec};
use std::sync::Arc;

/// Spare areas of every slice of the array.
pub(in crate::ftl) struct Spares {
    /// Logical page plus one; 0 is erased or padding.
    lpn: Vec<u32>,
    /// When its data was accepted from the host, counted from `base` on, little-endian; 0 is `base` or before. A copy
    /// made by garbage collection keeps the number.
    after_base: Vec<[u8; 3]>,
    base: u32,
    /// By superblock, which of `presets` says what it holds where `lpn` says nothing, plus one; 0 if none does.
    preset_of: Vec<u8>,
    presets: Vec<Arc<Preset>>,
    /// By superblock of a zone, what it has held since then; empty while there is none.
    in_programs: Vec<InPrograms>,
    programs: Programs,
    per_superblock: Divisor,
}

/// How the slices of a superblock of a zone follow each other, if all of its blocks are good: each die in turn programs
/// `units` multi-plane pages together, of `per_unit` slices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) struct Programs {
    pub dies: u32,
    pub units: u32,
    pub per_unit: u32,
}

impl Programs {
    const NONE: Programs = Programs { dies: 1, units: 1, per_unit: 1 };

    /// Slices of one.
    pub(in crate::ftl) fn slices(self) -> u32 {
        self.units * self.per_unit
    }

    /// How many slices were programmed before this one of a superblock.
    fn before(&self, slice: u32) -> u32 {
        let (unit, within) = (slice / self.per_unit, slice % self.per_unit);
        let (page, die) = (unit / self.dies, unit % self.dies);
        let program = page / self.units * self.dies + die;
        (program * self.units + page % self.units) * self.per_unit + within
    }
}

/// Consecutive blocks in the first programs of a superblock.
#[derive(Clone, Copy)]
struct InPrograms {
    first: Lpn,
    blocks: u32,
}

impl InPrograms {
    const NONE: InPrograms = InPrograms { first: Lpn(0), blocks: 0 };
}

impl Spares {
    /// Sequence numbers this far above the base of [`Spares::forget_order`] cannot be kept.
    pub(crate) const SPAN: u32 = 1 << 24;

    pub(crate) fn new(slices: u32, per_superblock: Divisor) -> Self {
        Spares {
            lpn: huge_vec(slices as usize),
            after_base: huge_vec(slices as usize),
            base: 0,
            preset_of: vec![0; slices.div_ceil(per_superblock.get()) as usize],
            presets: Vec::new(),
            in_programs: Vec::new(),
            programs: Programs::NONE,
            per_superblock,
        }
    }

    /// The slice now holds data of `lpn`.
    #[inline]
    pub(crate) fn program(&mut self, ppn: Ppn, lpn: Lpn, sequence: u32) {
        let after_base = sequence.saturating_sub(self.base);
        assert!(after_base < Self::SPAN, "no checkpoint for {after_base} blocks");
        self.lpn[ppn.0 as usize] = lpn.0 + 1;
        let [a, b, c, _] = after_base.to_le_bytes();
        self.after_base[ppn.0 as usize] = [a, b, c];
    }

    /// For a new device, which finds `lpn` there. Slices without order take no memory for it.
    pub(crate) fn load(&mut self, ppn: Ppn, lpn: Lpn, sequence: u32) {
        match self.span(sequence) {
            0 => self.preset(ppn, lpn),
            _ => self.program(ppn, lpn, sequence),
        }
    }

    /// As if `lpn` had been written there before all other data. Its sequence number stays 0.
    #[inline]
    pub(crate) fn preset(&mut self, ppn: Ppn, lpn: Lpn) {
        self.lpn[ppn.0 as usize] = lpn.0 + 1;
    }

    /// [`Spares::preset`] for a whole range. A superblock that a formula already stands for gets the rest one by one.
    pub(crate) fn preset_all(&mut self, preset: &Arc<Preset>) {
        self.presets.push(preset.clone());
        let id = u8::try_from(self.presets.len()).expect("the map limits their number");
        let mut filled = None;
        for run in preset.runs() {
            let last = self.superblock(Ppn(run.first.0 + run.slices - 1));
            for superblock in self.superblock(run.first)..=last {
                match &mut self.preset_of[superblock] {
                    of if *of == 0 || *of == id => *of = id,
                    _ if filled == Some(superblock) => {}
                    _ => {
                        filled = Some(superblock);
                        self.fill(superblock, preset);
                    }
                }
            }
        }
    }

    /// [`Spares::preset`] for `blocks` from `first` on in programs of a superblock of a zone, behind `before` slices.
    /// False, and nothing has changed, if the formula does not stand for those.
    pub(crate) fn preset_in_programs(
        &mut self,
        to: SuperblockId,
        programs: Programs,
        before: u32,
        (first, blocks): (Lpn, u32),
    ) -> bool {
        self.in_programs.resize(self.preset_of.len(), InPrograms::NONE);
        self.programs = programs;
        let held = &mut self.in_programs[to.index()];
        if held.blocks == 0 {
            held.first = first;
        }
        let follows = held.blocks == before && held.first + before == first;
        held.blocks += if follows { blocks } else { 0 };
        follows
    }

    fn superblock(&self, ppn: Ppn) -> usize {
        self.per_superblock.divide(ppn.0) as usize
    }

    /// Notes slice by slice what a formula says of a superblock.
    fn fill(&mut self, superblock: usize, preset: &Preset) {
        let slices = self.per_superblock.get();
        for (ppn, lpn) in preset.blocks_in(Ppn(superblock as u32 * slices), slices) {
            self.preset(ppn, lpn);
        }
    }

    /// All slices of a superblock will be read, some more than once.
    pub(crate) fn will_be_read(&mut self, superblock: SuperblockId) {
        self.end_preset(superblock.index());
    }

    fn end_preset(&mut self, superblock: usize) {
        if let Some(n) = usize::from(std::mem::take(&mut self.preset_of[superblock])).checked_sub(1) {
            self.fill(superblock, &self.presets[n].clone());
        }
        let Some(held) = self.in_programs.get_mut(superblock) else { return };
        let held = std::mem::replace(held, InPrograms::NONE);
        for slice in 0..self.per_superblock.get() {
            let before = self.programs.before(slice);
            if before < held.blocks {
                self.preset(Ppn(superblock as u32 * self.per_superblock.get() + slice), held.first + before);
            }
        }
    }

    /// The logical page that a slice names, if it holds data.
    #[inline]
    pub(crate) fn lpn(&self, ppn: Ppn) -> Option<Lpn> {
        match self.lpn[ppn.0 as usize].checked_sub(1) {
            Some(lpn) => Some(Lpn(lpn)),
            None => self.preset_lpn(ppn),
        }
    }

    #[inline]
    fn preset_lpn(&self, ppn: Ppn) -> Option<Lpn> {
        let superblock = self.superblock(ppn);
        match usize::from(self.preset_of[superblock]).checked_sub(1) {
            Some(n) => self.presets[n].block(ppn),
            None => {
                let held = self.in_programs.get(superblock).filter(|held| held.blocks > 0)?;
                let before = self.programs.before(self.per_superblock.remainder(ppn.0));
                (before < held.blocks).then(|| held.first + before)
            }
        }
    }

    /// The sequence number of a slice; without order it is smaller than any that is compared.
    #[inline]
    pub(crate) fn sequence(&self, ppn: Ppn) -> u32 {
        self.base + distance(self.after_base[ppn.0 as usize])
    }

    /// Whether this number can be kept for a slice.
    pub(crate) fn has_room_for(&self, sequence: u32) -> bool {
        self.span(sequence) < Self::SPAN
    }

    /// Slices are erased, or torn.
    pub(crate) fn erase(&mut self, first: Ppn, slices: u32) {
        let range = first.0 as usize..(first.0 + slices) as usize;
        for superblock in self.superblock(first)..=self.superblock(Ppn(first.0 + slices - 1)) {
            match slices == self.per_superblock.get() {
                true => {
                    self.preset_of[superblock] = 0;
                    if let Some(held) = self.in_programs.get_mut(superblock) {
                        *held = InPrograms::NONE;
                    }
                }
                false => self.end_preset(superblock),
            }
        }
        self.lpn[range.clone()].fill(0);
        self.after_base[range].fill([0; 3]);
    }

    /// How far a sequence number lies above the base.
    pub(crate) fn span(&self, sequence: u32) -> u32 {
        sequence.saturating_sub(self.base)
    }

    /// For a new device: slices with numbers up to `base` have no order.
    pub(crate) fn begin_at(&mut self, base: u32) {
        self.base = base;
    }

    /// Slices with numbers up to `base` no longer need an order.
    pub(crate) fn forget_order(&mut self, base: u32) {
        let by = base.saturating_sub(self.base);
        for kept in self.after_base.iter_mut().filter(|kept| **kept != [0; 3]) {
            let [a, b, c, _] = distance(*kept).saturating_sub(by).to_le_bytes();
            *kept = [a, b, c];
        }
        self.base += by;
    }

    /// Sequence numbers now count from `base` on; older ones are 0.
    pub(crate) fn renumber(&mut self, base: u32) {
        self.forget_order(base);
        self.base -= base;
    }

    /// Bytes of this process's memory if every slice were written.
    pub(crate) fn process_bytes(&self) -> u64 {
        self.lpn.len() as u64 * 7
    }
}

#[inline]
fn distance([a, b, c]: [u8; 3]) -> u32 {
    u32::from_le_bytes([a, b, c, 0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::preset::{Layout, SliceRun};
    use readpath_kit::Prng;

    /// Formulas stand for what notes of each slice would say, also where two of them share a superblock.
    #[test]
    fn formulas_stand_for_notes_of_each_slice() {
        const PER: u32 = 16;
        for seed in 0..200 {
            let rng = &mut Prng::new(seed);
            let superblocks = 4 + rng.below(6) as u32;
            let slices = superblocks * PER;
            let mut spares = Spares::new(slices, Divisor::new(PER));
            let mut list = vec![None; slices as usize];
            let (mut at, mut base) = (rng.below(20) as u32, 0);
            while at + 30 < slices && rng.below(4) > 0 {
                // Two runs, with a gap between them.
                let (first, gap, second) = (1 + rng.below(14) as u32, rng.below(3) as u32, 1 + rng.below(12) as u32);
                let runs = vec![
                    SliceRun { before: 0, first: Ppn(at), slices: first },
                    SliceRun { before: first, first: Ppn(at + first + gap), slices: second },
                ];
                let layout = if rng.below(2) == 0 { Layout::Sequential } else { Layout::Random };
                let preset = Arc::new(Preset::new(Lpn(base), first + second, layout, seed, runs));
                Lpn(base).run(first + second).for_each(|lpn| list[preset.slice(lpn).0 as usize] = Some(lpn));
                spares.preset_all(&preset);
                at += first + gap + second + rng.below(4) as u32;
                base += first + second;
            }
            let is_equal = |spares: &Spares, list: &[Option<Lpn>]| {
                (0..slices).all(|ppn| spares.lpn(Ppn(ppn)) == list[ppn as usize] && spares.sequence(Ppn(ppn)) == 0)
            };
            assert!(is_equal(&spares, &list), "seed {seed}");
            let torn = Ppn(rng.below(u64::from(slices) / 4) as u32 * 4);
            spares.erase(torn, 4);
            list[torn.0 as usize..][..4].fill(None);
            assert!(is_equal(&spares, &list), "seed {seed}: torn");
            spares.will_be_read(SuperblockId(rng.below(u64::from(superblocks)) as u32));
            assert!(is_equal(&spares, &list), "seed {seed}: read");
            let erased = rng.below(u64::from(superblocks)) as u32 * PER;
            spares.erase(Ppn(erased), PER);
            list[erased as usize..][..PER as usize].fill(None);
            assert!(is_equal(&spares, &list), "seed {seed}: erased");
        }
    }

    #[test]
    fn order_above_the_base_survives() {
        let mut spares = Spares::new(4, Divisor::new(4));
        for (at, sequence) in [5, 1000, 1001, Spares::SPAN - 1].into_iter().enumerate() {
            spares.program(Ppn(at as u32), Lpn(7), sequence);
            assert_eq!(spares.sequence(Ppn(at as u32)), sequence);
        }
        spares.forget_order(1000);
        let of = |spares: &Spares| (0..4).map(|at| spares.sequence(Ppn(at))).collect::<Vec<_>>();
        assert_eq!(of(&spares), [1000, 1000, 1001, Spares::SPAN - 1]);
        let mut loaded = Spares::new(4, Divisor::new(4));
        loaded.begin_at(1000);
        (0..).zip([5, 1000, 1001, Spares::SPAN - 1]).for_each(|(at, sequence)| loaded.load(Ppn(at), Lpn(7), sequence));
        assert_eq!((of(&loaded), loaded.lpn(Ppn(0))), (of(&spares), Some(Lpn(7))), "a device that begins there");
        spares.program(Ppn(0), Lpn(7), Spares::SPAN + 999);
        spares.program(Ppn(1), Lpn(7), 3);
        assert_eq!(of(&spares), [Spares::SPAN + 999, 1000, 1001, Spares::SPAN - 1]);
        spares.renumber(1001);
        assert_eq!(of(&spares), [Spares::SPAN - 2, 0, 0, Spares::SPAN - 1002]);
        spares.erase(Ppn(0), 4);
        assert_eq!(spares.lpn(Ppn(3)), None);
    }
}
