// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the incrementally kept lists and counts of superblocks with a walk over their states and over the table
//! of bad blocks.

use super::{Space, State, Stream};
use crate::config::CellMode;
use crate::ids::SuperblockId;

impl Space {
    /// Checks that every superblock is on the list of its state once and on no other; that a superblock is retired if
    /// and only if more than half of its blocks are bad; and that the superblocks in each cell mode equal their
    /// count, in streams of that mode.
    ///
    /// # Errors
    /// The first disagreement found.
    pub(crate) fn check_consistency(&self) -> Result<(), String> {
        let in_state = |wanted: fn(State) -> bool| -> Vec<SuperblockId> {
            self.iter().filter(|(_, sb)| wanted(sb.state)).map(|(i, _)| i).collect()
        };
        let agree = |what: &str, mut listed: Vec<SuperblockId>, walked: Vec<SuperblockId>| {
            listed.sort_unstable();
            match listed == walked {
                true => Ok(()),
                false => Err(format!("{what}: {listed:?} are on the list, {walked:?} by state")),
            }
        };
        agree("erased", self.erased.clone(), in_state(|state| state == State::Erased))?;
        agree(
            "open",
            self.open.iter().flatten().copied().collect(),
            in_state(|state| matches!(state, State::Open(stream) if stream != Stream::Zone)),
        )?;
        let to_erase = self.to_erase.iter().map(|&(sb, _)| sb).chain(self.erasing).collect();
        agree("being erased", to_erase, in_state(|state| matches!(state, State::Erasing(_))))?;
        for stream in Stream::ALL {
            if self.open_of(stream).is_some_and(|sb| self.get(sb).state != State::Open(stream)) {
                return Err(format!("superblock {:?} is not open for {stream:?}", self.open_of(stream)));
            }
        }
        let meta = in_state(|state| matches!(state, State::Open(Stream::Meta) | State::Closed(Stream::Meta))).len();
        if meta != self.meta_in_use as usize {
            return Err(format!("{meta} superblocks hold the map, counted as {}", self.meta_in_use));
        }
        let zoned = in_state(|state| matches!(state, State::Open(Stream::Zone) | State::Closed(Stream::Zone))).len();
        if zoned != self.zones.held as usize {
            return Err(format!("{zoned} superblocks hold zones, counted as {}", self.zones.held));
        }
        let is_open = |sb: &SuperblockId| self.get(*sb).state == State::Open(Stream::Zone);
        if let Some(sb) = self.zones_with_failures().find(is_open) {
            return Err(format!("superblock {sb} is written on, and a program of a zone failed in it"));
        }
        for (i, sb) in self.iter() {
            let bad = self.bad_dies(i);
            let worn_out = bad * 2 > self.shape.dies;
            if bad != sb.bad_dies
                || (sb.state == State::Retired && !worn_out)
                || (sb.state == State::Erased && worn_out)
            {
                return Err(format!("superblock {i} has {bad} bad blocks of {}: {sb:?}", self.shape.dies));
            }
        }
        self.check_modes()
    }

    fn check_modes(&self) -> Result<(), String> {
        let mut counts = [0; CellMode::COUNT];
        for (i, sb) in self.iter() {
            let (is_written, right) = match sb.state {
                State::Open(stream) | State::Closed(stream) => (true, sb.mode == self.mode_for(stream)),
                State::Erasing(_) => (true, true),
                State::Anchor | State::Erased | State::Retired => (false, sb.mode == CellMode::Full),
            };
            if !right || sb.next_unit > self.modes[sb.mode.index()].units {
                return Err(format!("superblock {i} is in the wrong mode: {sb:?}"));
            }
            counts[sb.mode.index()] += u32::from(is_written);
        }
        let counted = self.modes.map(|mode| mode.superblocks);
        match counts == counted {
            true => Ok(()),
            false => Err(format!("{counts:?} superblocks are in the cell modes, counted as {counted:?}")),
        }
    }

    /// Numbers of retired superblocks and of bad blocks.
    pub(crate) fn given_up(&self) -> (u32, u32) {
        let retired = self.iter().filter(|(_, sb)| sb.state == State::Retired).count();
        (retired as u32, self.bad.count_ones(..) as u32)
    }
}
