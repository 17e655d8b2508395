// SPDX-License-Identifier: MIT OR Apache-2.0
//! What clients may rely on: answered changes are there until power is lost, and those answered with FUA, or before a
//! successful FLUSH was sent, stay.

use crate::edges::{Ask, BLOCK};
use crate::nbd::Errno;
use readpath_workload::IoKind;

pub(super) const SECTOR: usize = 512;
pub(super) const SECTORS: u64 = 24 * BLOCK as u64 / SECTOR as u64;

/// What a sector may hold. Values are numbers of requests; zero is what trims leave.
#[derive(Clone, Debug)]
struct Sector {
    /// The value that stays whatever happens, and those answered since; a request under way is the last.
    values: Vec<u32>,
    /// The values up to the last that was answered or found, and when that was.
    answered: usize,
    answered_at: u64,
    /// The last value that was answered is there for certain: power was not lost since.
    is_known: bool,
    is_changing: bool,
}

/// A request that has not been answered.
pub(super) struct Asked {
    pub number: u64,
    pub ask: Ask,
    pub bytes: u32,
    /// Its connection.
    pub by: usize,
    /// Sectors that it changes or reads.
    from: usize,
    to: usize,
    /// For a flush: how many values of each sector it makes permanent. For a read: the values that it may find.
    covers: Vec<usize>,
    may_find: Vec<Vec<u32>>,
    /// For a read: no request has changed these sectors meanwhile.
    is_steady: bool,
    /// It is a flush that may fail: the device has lost its power, and its connection has not heard of that.
    may_fail: bool,
}

/// A disk as its clients know it.
pub(super) struct Model {
    sectors: Vec<Sector>,
    pub asked: Vec<Asked>,
    /// Counts answers. When power went, when the answers begin that came before or after, and when each connection has
    /// heard of a loss, because a flush failed or the connection is new.
    time: u64,
    went_at: u64,
    goes_at: u64,
    heard: Vec<u64>,
    next: u64,
    /// What broke the guarantees.
    pub wrong: Option<String>,
}

fn is_change(ask: Ask) -> bool {
    matches!(ask.kind(), IoKind::Write | IoKind::Trim)
}

impl Model {
    pub(super) fn new(connections: usize) -> Model {
        let sector = Sector { values: vec![0], answered: 1, answered_at: 0, is_known: true, is_changing: false };
        Model {
            sectors: vec![sector; SECTORS as usize],
            asked: Vec::new(),
            time: 1,
            went_at: 0,
            goes_at: 0,
            heard: vec![1; connections],
            next: 0,
            wrong: None,
        }
    }

    /// Power may be lost before anything else is answered: what was answered may be gone, unless it stays.
    pub(super) fn power_goes(&mut self) {
        self.goes_at = self.time;
        for asked in &mut self.asked {
            (asked.is_steady, asked.may_fail) = (false, true);
            for (found, sector) in asked.may_find.iter_mut().zip(&self.sectors[asked.from..asked.to]) {
                found.extend(&sector.values);
            }
        }
    }

    /// Power was lost.
    pub(super) fn power_went(&mut self) {
        self.time += 1;
        self.went_at = self.time;
        self.heard.iter_mut().filter(|heard| **heard > self.goes_at).for_each(|heard| *heard = self.time);
        self.sectors.iter_mut().for_each(|sector| sector.is_known = false);
    }

    /// The connections ended. Requests that were not answered never are, and what they change may be there or not.
    pub(super) fn forget(&mut self) {
        self.heard.fill(self.time);
        for asked in self.asked.drain(..).filter(|asked| is_change(asked.ask)) {
            self.sectors[asked.from..asked.to].iter_mut().for_each(|sector| sector.is_changing = false);
        }
    }

    /// How many values of each sector a flush makes permanent, for one who has heard of losses until then.
    fn answered(&self, heard: u64) -> Vec<usize> {
        let is_there = |sector: &Sector| sector.is_known || sector.answered_at > heard;
        self.sectors.iter().map(|sector| if is_there(sector) { sector.answered } else { 1 }).collect()
    }

    /// A request is asked on a connection; its number and the data of a write. None while another changes these
    /// sectors.
    pub(super) fn ask(&mut self, by: usize, ask: Ask, offset: u64, bytes: u32) -> Option<(u64, Vec<u8>)> {
        let size = (BLOCK / SECTOR) as u64;
        let (mut from, mut to) = (offset / SECTOR as u64, (offset + u64::from(bytes)) / SECTOR as u64);
        if matches!(ask, Ask::Trim { .. }) {
            (from, to) = (from.next_multiple_of(size), to / size * size);
        }
        let (from, to) = (from as usize, to.max(from) as usize);
        if is_change(ask) && self.sectors[from..to].iter().any(|sector| sector.is_changing) {
            return None;
        }
        self.next += 1;
        let is_write = matches!(ask, Ask::Write { .. });
        let value = if is_write { self.next as u32 } else { 0 };
        let mut asked = Asked {
            number: self.next,
            ask,
            bytes,
            by,
            from,
            to,
            covers: Vec::new(),
            may_find: Vec::new(),
            is_steady: true,
            may_fail: self.heard[by] <= self.went_at,
        };
        match ask {
            Ask::Flush => asked.covers = self.answered(self.heard[by]),
            Ask::Read | Ask::Cache => {
                for sector in &self.sectors[from..to] {
                    let certain =
                        if sector.is_known { sector.values.len() - 1 - usize::from(sector.is_changing) } else { 0 };
                    asked.may_find.push(sector.values[certain..].to_vec());
                    asked.is_steady &= !sector.is_changing;
                }
            }
            _ => {
                for sector in &mut self.sectors[from..to] {
                    sector.values.push(value);
                    sector.is_changing = true;
                }
                for other in self.asked.iter_mut().filter(|other| other.ask == Ask::Read) {
                    for sector in from.max(other.from)..to.min(other.to) {
                        other.may_find[sector - other.from].push(value);
                        other.is_steady = false;
                    }
                }
            }
        }
        self.asked.push(asked);
        Some((self.next, if is_write { value.to_le_bytes().repeat(bytes as usize / 4) } else { Vec::new() }))
    }

    /// A request is answered, with this error of NBD or with data.
    pub(super) fn answer(&mut self, number: u64, error: u32, data: &[u8]) {
        let at = self.asked.iter().position(|asked| asked.number == number).expect("it was asked");
        let asked = self.asked.swap_remove(at);
        self.time += 1;
        if error != 0 {
            if asked.ask != Ask::Flush || error != Errno::Io as u32 || !asked.may_fail {
                self.wrong.get_or_insert_with(|| format!("{:?} failed with {error}", asked.ask));
            }
            // The connection knows now, and relies on none of the flushes that it has sent.
            self.heard[asked.by] = self.time;
            self.asked.iter_mut().filter(|other| other.by == asked.by).for_each(|other| other.covers.fill(1));
        }
        match asked.ask {
            Ask::Flush if error == 0 => self.stays(&asked.covers),
            Ask::Flush | Ask::Cache => {}
            Ask::Read => self.check(&asked, data),
            ask => {
                let mut stays = vec![1; self.sectors.len()];
                for (sector, stays) in self.sectors[asked.from..asked.to].iter_mut().zip(&mut stays[asked.from..]) {
                    (sector.is_changing, sector.is_known) = (false, true);
                    (sector.answered, sector.answered_at) = (sector.values.len(), self.time);
                    if ask.is_durable() {
                        *stays = sector.values.len();
                    }
                }
                self.stays(&stays);
            }
        }
    }

    /// Everything that was answered stays.
    pub(super) fn all_stays(&mut self) {
        self.stays(&self.answered(u64::MAX));
    }

    /// So many values of each sector are over but the last of them, which stays.
    fn stays(&mut self, covers: &[usize]) {
        for (sector, &covered) in self.sectors.iter_mut().zip(covers) {
            // A FUA or another flush may have been faster.
            let over = covered.min(sector.values.len()) - 1;
            sector.values.drain(..over);
            sector.answered = sector.answered.saturating_sub(over).max(1);
        }
        // Flushes that were sent later cover fewer values that are still listed.
        for other in self.asked.iter_mut().filter(|other| other.ask == Ask::Flush) {
            for (covers, by) in other.covers.iter_mut().zip(covers) {
                *covers = covers.saturating_sub(by - 1).max(1);
            }
        }
    }

    fn check(&mut self, asked: &Asked, data: &[u8]) {
        for (i, may_find) in asked.may_find.iter().enumerate() {
            let bytes = &data[i * SECTOR..][..SECTOR];
            let found = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let sector = &mut self.sectors[asked.from + i];
            if !may_find.contains(&found) || *bytes != *found.to_le_bytes().repeat(SECTOR / 4) {
                let at = asked.from + i;
                self.wrong.get_or_insert_with(|| format!("sector {at} reads {found}, and may be one of {may_find:?}"));
            } else if asked.is_steady && !sector.is_changing {
                // The sector holds this value, and lost values stay lost.
                let place = sector.values.iter().rposition(|&value| value == found).expect("it may be found");
                sector.values.truncate(place + 1);
                (sector.answered, sector.answered_at, sector.is_known) = (place + 1, self.time, true);
            }
        }
    }
}
