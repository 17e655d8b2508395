// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's side of the prototype of HPB (HotStorage 2017) for one logical unit: groups of entries of 4 bytes,
//! which of them are held, and which to load next. The host alone decides what it holds; the device only reports
//! changes.
//!
//! Entries are plain addresses, so the host can see whether blocks lie in a row. Two rules prevent the use of old
//! entries: no hint is sent for a group that is being loaded, and a response that names one of its blocks during the
//! load invalidates the entry of that block, because it is unknown which of the two is newer.
//!
//! It knows nothing of HPB of JESD220-3, and neither tags nor commands but the read that carries a hint.

mod setup;
#[cfg(test)]
mod tests;

pub use setup::PrototypeError;
pub(crate) use setup::check_groups;

use super::{HostMemory, HpbCounters, HpbRequest, Port};
use crate::config::{HpbOptions, ListOrder};
use crate::ids::{GroupId, Id, IdList};
use crate::params::ParamError;
use readpath_kit::{BLOCK_BYTES, huge_vec};
use readpath_proto::groups::{GroupEntry, GroupHint, GroupNotice, group_at, group_of};
use readpath_proto::typed::{Cdb, HpbEntry, SubRegion};

/// Reads without an entry before a group is loaded: one that is not held; below, one that is dirty or lacks the
/// entry. The paper gives no numbers; these are those of the device `ufs21-64g` in device control mode.
const LOAD_AFTER: u8 = 2;
const LOAD_AGAIN_AFTER: u8 = 32;
const NO_MAP: u32 = u32::MAX;
/// Bytes of a map in the list of free ones.
const FREE_BYTES: u64 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// No entries are held.
    Absent,
    /// A load is in progress; held entries must not be used.
    Loading,
    /// Entries may be used.
    Held,
    /// Entries are held, but the device has reported changes.
    Dirty,
}

/// Replaces an entry during the load of its group: a response named the block, so the load may bring an older entry.
const DOUBTFUL: u32 = u32::MAX;

/// Held entries of the blocks of a read.
enum Lookup {
    /// The blocks lie in a row from this address on.
    At(u32),
    /// The blocks lie in several places or groups: loading the entries again would not help.
    Scattered,
    /// Some have no entry that may be used.
    Nothing,
}

/// HPB of the prototype for one logical unit.
pub(crate) struct GroupLu {
    blocks: u32,
    shift: u32,
    recency: bool,
    states: Vec<State>,
    /// Reads of each group without an entry since it was loaded or became dirty.
    misses: Vec<u8>,
    map_of: Vec<u32>,
    entries: Vec<u32>,
    free: Vec<u32>,
    maps: u32,
    peak_maps: u32,
    /// Groups with memory that are not being loaded, the next victim first.
    list: IdList<GroupId>,
    wanted: IdList<GroupId>,
    /// Number of the newest update of the device, for any unit.
    seen: u8,
    /// The host sleeps, or is about to: nothing is sent, but responses are handled.
    asleep: bool,
    counters: HpbCounters,
}

impl GroupLu {
    /// A unit of `blocks` blocks whose groups have `group_entries` entries, a power of two.
    ///
    /// # Errors
    /// Too little memory for one group.
    pub(crate) fn new(blocks: u32, group_entries: u32, options: &HpbOptions) -> Result<Self, ParamError> {
        let groups = blocks.div_ceil(group_entries);
        let map_bytes = u64::from(group_entries) * GroupEntry::BYTES as u64;
        let affordable = options.max_map_bytes.map_or(u64::from(groups), |bytes| bytes / map_bytes);
        let maps = u64::from(groups).min(affordable) as u32;
        let mut lu = GroupLu {
            blocks,
            shift: group_entries.trailing_zeros(),
            recency: options.order == ListOrder::Recency,
            states: vec![State::Absent; groups as usize],
            misses: vec![0; groups as usize],
            map_of: vec![NO_MAP; groups as usize],
            entries: Vec::new(),
            free: Vec::new(),
            maps,
            peak_maps: 0,
            list: IdList::new(groups),
            wanted: IdList::new(groups),
            seen: 0,
            asleep: false,
            counters: HpbCounters::default(),
        };
        // A map also takes a place in the list of free ones.
        let (fixed, each) = (lu.table_bytes() - u64::from(maps) * FREE_BYTES, map_bytes + FREE_BYTES);
        if let Some(bytes) = options.memory_bytes {
            let room = bytes.saturating_sub(fixed) / each;
            lu.maps = maps.min(room.min(u64::from(u32::MAX)) as u32);
        }
        if lu.maps == 0 {
            let bytes = options.memory_bytes.or(options.max_map_bytes).unwrap_or(0);
            let least = fixed + each;
            return Err(ParamError::TooLittleMemory { bytes, least, what: "tables and the map of a group" });
        }
        lu.entries = huge_vec(lu.maps as usize * group_entries as usize);
        lu.free = (0..lu.maps).rev().collect();
        Ok(lu)
    }

    /// The hint to send with a read of these blocks, as an entry, if they are held, in one group, and in a row.
    pub(crate) fn hint_for(&mut self, block: u32, blocks: u32) -> Option<HpbEntry> {
        if blocks == 0 || self.asleep {
            return None;
        }
        let group = self.group_of(block);
        match self.look_up(group, block, blocks) {
            Lookup::At(address) => {
                self.counters.hit_cnt += 1;
                if self.recency {
                    self.list.touch(group);
                }
                Some(GroupHint { entry: GroupEntry::of(address), seen: self.seen }.to_entry())
            }
            Lookup::Scattered => {
                self.counters.miss_cnt += 1;
                None
            }
            Lookup::Nothing => {
                self.counters.miss_cnt += 1;
                self.note_miss(group);
                None
            }
        }
    }

    /// The command of a read with the result of [`GroupLu::hint_for`].
    pub(crate) fn read_with(block: u32, blocks: u32, hint: HpbEntry) -> Cdb {
        Cdb::HintedRead { lba: block, blocks, hint: GroupHint::from_entry(hint), flags: 0 }
    }

    fn group_of(&self, block: u32) -> GroupId {
        GroupId::new(block >> self.shift)
    }

    fn look_up(&self, group: GroupId, block: u32, blocks: u32) -> Lookup {
        let Some(first) = self.place_of(block).filter(|_| self.states[group] == State::Held) else {
            return Lookup::Nothing;
        };
        let to_group_end = (1 << self.shift) - (block & ((1 << self.shift) - 1));
        let entries = &self.entries[first..first + blocks.min(to_group_end) as usize];
        let in_a_row = entries.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        if entries.contains(&0) {
            Lookup::Nothing
        } else if in_a_row && blocks <= to_group_end {
            Lookup::At(entries[0])
        } else {
            Lookup::Scattered
        }
    }

    /// Index of the entry of `block`, if its group has memory.
    fn place_of(&self, block: u32) -> Option<usize> {
        let map = *self.map_of.get((block >> self.shift) as usize)?;
        let slot = block & ((1 << self.shift) - 1);
        (map != NO_MAP).then(|| ((map as usize) << self.shift) + slot as usize)
    }

    fn note_miss(&mut self, group: GroupId) {
        let misses = &mut self.misses[group];
        *misses = misses.saturating_add(1);
        let after = match self.states[group] {
            State::Absent => LOAD_AFTER,
            State::Held | State::Dirty => LOAD_AGAIN_AFTER,
            State::Loading => return,
        };
        if *misses >= after {
            self.wanted.add(group);
        }
    }

    /// Handles a GOOD response of this unit that names groups. Returns the number of the update that it carries, if
    /// any: the device counts updates of all units together, so the caller passes it to the others with
    /// [`GroupLu::saw`].
    #[must_use]
    pub(crate) fn notified(&mut self, notice: &GroupNotice) -> Option<u8> {
        let groups = self.states.len() as u64;
        let wrong = notice.dirty().is_some_and(|group| u64::from(group) >= groups)
            || notice.pair().is_some_and(|pair| pair.lba >= self.blocks);
        if wrong {
            self.counters.rejected_noti_cnt += 1;
            return None;
        }
        if let Some(group) = notice.dirty().map(GroupId::new) {
            self.counters.rcmd_noti_cnt += 1;
            if self.states[group] == State::Held {
                self.states[group] = State::Dirty;
                self.misses[group] = 0;
            }
        }
        let pair = notice.pair()?;
        self.counters.pair_cnt += 1;
        if let Some(at) = self.place_of(pair.lba) {
            let is_loading = self.states[self.group_of(pair.lba)] == State::Loading;
            self.entries[at] = if is_loading { DOUBTFUL } else { pair.entry.address() };
        }
        Some(notice.update())
    }

    pub(crate) fn saw(&mut self, update: u8) {
        self.seen = update;
    }

    pub(crate) fn set_asleep(&mut self, asleep: bool) {
        self.asleep = asleep;
    }

    pub(crate) fn is_kicked(&self) -> bool {
        !self.asleep && !self.wanted.is_empty()
    }

    pub(crate) fn run_worker(&mut self, port: &mut impl Port) {
        while self.is_kicked()
            && let Some(group) = self.wanted.front().filter(|_| port.has_tag())
        {
            if self.map_of[group] == NO_MAP && !self.make_room() {
                // All held groups are being loaded; the next read requests this one again.
                self.wanted.pop_front();
                continue;
            }
            let bytes = self.map_bytes_of(group);
            let room_bytes = bytes.next_multiple_of(BLOCK_BYTES);
            if !port.send(HpbRequest::Load { at: group_at(group.index()), bytes, room_bytes }) {
                return;
            }
            self.wanted.pop_front();
            self.counters.map_req_cnt += 1;
            if self.map_of[group] == NO_MAP {
                self.map_of[group] = self.free.pop().expect("room was made");
                self.peak_maps = self.peak_maps.max(self.maps - self.free.len() as u32);
            } else {
                self.list.remove(group);
            }
            self.states[group] = State::Loading;
            // From now on the entries only mark blocks that responses name.
            let at = self.place_of(group.index() << self.shift).expect("it has just been given memory");
            self.entries[at..at + (1 << self.shift)].fill(0);
        }
    }

    /// Evicts a group. False if none can be evicted.
    fn make_room(&mut self) -> bool {
        if !self.free.is_empty() {
            return true;
        }
        let Some(victim) = self.list.front() else { return false };
        self.drop_group(victim);
        self.counters.evict_cnt += 1;
        true
    }

    fn drop_group(&mut self, group: GroupId) {
        self.list.remove(group);
        self.wanted.remove(group);
        let map = std::mem::replace(&mut self.map_of[group], NO_MAP);
        if map != NO_MAP {
            self.free.push(map);
        }
        self.states[group] = State::Absent;
        self.misses[group] = 0;
    }

    /// A load has ended, with its entries or (`None`) an error, which drops the group.
    pub(crate) fn loaded(&mut self, at: SubRegion, bytes: Option<&[u8]>) {
        let group = GroupId::new(group_of(at));
        if self.states.get(group.row()) != Some(&State::Loading) {
            return;
        }
        let first = group.index() << self.shift;
        let Some(bytes) = bytes else {
            self.counters.map_error_cnt += 1;
            return self.drop_group(group);
        };
        let at = self.place_of(first).expect("what is loaded has memory");
        let entries = &mut self.entries[at..at + (1 << self.shift)];
        let (words, _) = bytes.as_chunks::<{ GroupEntry::BYTES }>();
        for (i, entry) in entries.iter_mut().enumerate() {
            let address = words.get(i).map_or(0, |word| GroupEntry(*word).address());
            *entry = if *entry == DOUBTFUL { 0 } else { address };
        }
        self.states[group] = State::Held;
        self.misses[group] = 0;
        self.list.add(group);
    }

    /// The controller and the device are being reset: entries must not be used any more, and loads will not be
    /// answered.
    pub(crate) fn reset(&mut self) {
        (0..self.states.len() as u32).for_each(|group| self.drop_group(GroupId::new(group)));
        self.seen = 0;
    }

    fn map_bytes_of(&self, group: GroupId) -> u32 {
        let first = u64::from(group.index()) << self.shift;
        let entries = (u64::from(self.blocks) - first).min(1 << self.shift) as u32;
        entries * GroupEntry::BYTES as u32
    }

    /// Counters so far. A notification is a response that names a dirty group.
    pub(crate) fn counters(&self) -> &HpbCounters {
        &self.counters
    }

    pub(crate) fn memory(&self) -> HostMemory {
        let map_bytes = (GroupEntry::BYTES as u64) << self.shift;
        let used = u64::from(self.maps - self.free.len() as u32);
        HostMemory {
            map_bytes: used * map_bytes,
            bitmap_bytes: 0,
            table_bytes: self.table_bytes(),
            peak_bytes: u64::from(self.peak_maps) * map_bytes,
        }
    }

    /// State, misses and place of each group, two lists, and the places that are free.
    fn table_bytes(&self) -> u64 {
        self.states.len() as u64 * 6 + self.list.bytes() + self.wanted.bytes() + u64::from(self.maps) * FREE_BYTES
    }
}
