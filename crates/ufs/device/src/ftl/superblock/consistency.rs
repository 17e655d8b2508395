// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the lists and counts of superblocks, which are kept as things change, against a walk over their states and
//! over the table of bad blocks.

use super::{State, Stream, Superblocks};
use crate::ids::SuperblockId;

impl Superblocks {
    /// Checks that every superblock is on the list of its state and on no other, once; `erasing` is the one that is
    /// being erased. And that a superblock is retired when more than half of its blocks are bad, not before.
    ///
    /// # Errors
    /// What does not agree.
    pub(crate) fn check_consistency(&self, erasing: Option<SuperblockId>) -> Result<(), String> {
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
            in_state(|state| matches!(state, State::Open(_))),
        )?;
        let to_erase = self.to_erase.iter().map(|&(sb, _)| sb).chain(erasing).collect();
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
        for (i, sb) in self.iter() {
            let bad = self.bad_dies(i);
            let worn_out = bad * 2 > self.dies;
            if bad != sb.bad_dies
                || (sb.state == State::Retired && !worn_out)
                || (sb.state == State::Erased && worn_out)
            {
                return Err(format!("superblock {i} has {bad} bad blocks of {}: {sb:?}", self.dies));
            }
        }
        Ok(())
    }

    /// Superblocks that are retired, and blocks that the table of bad blocks names.
    pub(crate) fn given_up(&self) -> (u32, u32) {
        let retired = self.iter().filter(|(_, sb)| sb.state == State::Retired).count();
        (retired as u32, self.bad.count_ones(..) as u32)
    }
}
