// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of superblocks in checkpoints, from a medium, and after recovery.

use super::choice::WearBand;
use super::zones::ZoneSpace;
use super::{Space, State, Stream, Superblock};
use crate::config::CellMode;
use crate::ids::SuperblockId;

impl Space {
    /// Loads the record of a superblock: its erases and those of them in SLC mode for the cache and for the map,
    /// whether a program in it failed, and which of its blocks are bad.
    pub(crate) fn load_record(&mut self, sb: SuperblockId, erases: u32, in_slc: [u32; 2], failed: bool, bad: &[u32]) {
        bad.iter().for_each(|&die| _ = self.mark_bad(sb, die));
        let slot = &mut self.table[sb.index()];
        (slot.erases, slot.failed) = (erases, failed);
        if slot.state != State::Anchor {
            let full = erases.saturating_sub(in_slc[0]).saturating_sub(in_slc[1]);
            let by_mode = [full, in_slc[0], in_slc[1]];
            self.modes.iter_mut().zip(by_mode).for_each(|(mode, erases)| mode.erases += u64::from(erases));
        }
    }

    /// Loads the contents found in a superblock: data of `stream`, how far units are programmed or torn, and the
    /// units of its table. Recovery decides its state.
    pub(crate) fn load(
        &mut self,
        sb: SuperblockId,
        retired: bool,
        stream: Option<Stream>,
        (programmed, torn): (u32, u32),
        tables: &[u32],
    ) {
        self.table[sb.index()].shows(retired, stream, programmed.max(torn));
        if let Some(stream) = stream {
            self.set_end(sb, stream, programmed);
        }
        let has_table =
            self.shape.table_units > 0 && !tables.is_empty() && self.units_of_table(sb).eq(tables.iter().copied());
        self.table[sb.index()].has_table = has_table && !self.table[sb.index()].failed;
    }

    /// Sets the stream of a superblock, which its contents may not show; units before `programmed` are data.
    pub(crate) fn set_end(&mut self, sb: SuperblockId, stream: Stream, programmed: u32) {
        let (end, mode) = (self.end_of_data(sb, stream), self.mode_for(stream));
        let slot = &mut self.table[sb.index()];
        // Behind the data lies the table, which may be torn. If a block has gone bad since, data may extend beyond
        // the place that the table would have now.
        slot.next_unit = slot.next_unit.min(end).max(programmed);
        slot.end = end.max(programmed);
        slot.mode = mode;
        if stream != Stream::Zone {
            self.skip_bad(sb);
        }
    }

    /// The table for a checkpoint.
    pub(crate) fn snapshot(&self) -> Vec<Superblock> {
        self.table.clone()
    }

    /// Takes over the table from recovery. Superblocks that were open stay open and continue behind torn units.
    pub(crate) fn restore(&mut self, table: Vec<Superblock>, now: u32) {
        self.table = table;
        self.open = [None; Stream::COUNT];
        self.erased.clear();
        self.to_erase.clear();
        self.meta_in_use = 0;
        self.wear_band = WearBand::NONE;
        self.emptying.clear();
        self.zones = ZoneSpace::default();
        for mode in &mut self.modes {
            (mode.superblocks, mode.closed) = (0, 0);
        }
        self.failed = self.table.iter().filter(|sb| sb.failed).count() as u32;
        for i in (0..self.table.len() as u32).map(SuperblockId) {
            let bad = self.bad_dies(i);
            let slot = &mut self.table[i.index()];
            slot.in_flight = 0;
            slot.bad_dies = bad;
            if slot.state == State::Erased && bad * 2 > self.shape.dies {
                // Too many blocks went bad in its last erase, and no record says that it is retired.
                slot.state = State::Retired;
            }
            self.zones.held += u32::from(matches!(slot.state, State::Open(Stream::Zone) | State::Closed(Stream::Zone)));
            if let State::Open(stream) = slot.state {
                if slot.next_unit == slot.end || slot.failed {
                    slot.state = State::Closed(stream);
                    slot.closed_at = now;
                } else if stream != Stream::Zone {
                    self.open[stream.index()] = Some(i);
                }
            }
            if matches!(slot.state, State::Erased | State::Retired) {
                slot.mode = CellMode::Full;
            }
            let is_written = matches!(slot.state, State::Open(_) | State::Closed(_) | State::Erasing(_));
            self.modes[slot.mode.index()].superblocks += u32::from(is_written);
            if let State::Closed(_) = slot.state {
                self.modes[slot.mode.index()].closed += 1;
            }
            match slot.state {
                State::Erased => {
                    slot.next_unit = 0;
                    slot.end = self.shape.units;
                    self.skip_bad(i);
                    self.erased.push(i);
                }
                State::Erasing(_) => {
                    slot.state = State::Erasing(self.shape.dies - bad);
                    self.to_erase.push_back((i, 0));
                }
                State::Open(Stream::Meta) | State::Closed(Stream::Meta) => self.meta_in_use += 1,
                _ => {}
            }
        }
    }

    /// Sequence numbers now count from `base` on.
    pub(crate) fn renumber(&mut self, base: u32) {
        self.table.iter_mut().for_each(|sb| sb.closed_at = sb.closed_at.saturating_sub(base));
        self.spares.renumber(base);
    }
}
