// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads of more than one block with HPB 2.0: which entries go with them, and how many pre-requests there may be (the
//! driver of Linux 5.15-rc, `ufshpb_issue_pre_req`; 6.1 has no pre-requests any more). Whether an entry may be used at
//! all is decided in `reads`; nothing is sent here.

use super::{HpbLu, MapId};
use crate::config::LongReads;
use crate::ids::SubRegionId;
use readpath_proto::typed::HpbEntry;

/// READ IDs go from 1 to one less than this (Linux 5.15-rc `MAX_HPB_READ_ID`); 0 says that there was no pre-request.
const READ_ID_END: u8 = 0x7F;

/// Which entries go along with a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carries {
    /// That of the first block, in the command.
    First,
    /// All of them, in a command of their own before it.
    PreRequest,
    /// All of them, in the command's extra header segment.
    All,
}

impl HpbLu {
    /// How the entries of a read of so many blocks travel.
    pub(crate) fn carries(&self, blocks: u32) -> Carries {
        match self.options.long_reads {
            LongReads::PreRequest | LongReads::Measured if blocks > self.single_blocks => Carries::PreRequest,
            LongReads::Ehs if blocks > 1 => Carries::All,
            _ => Carries::First,
        }
    }

    /// Puts the entries of these blocks into `out`. What is not held is zero.
    pub(crate) fn entries(&self, block: u32, blocks: u32, out: &mut Vec<u8>) {
        out.clear();
        for at in block..block + blocks {
            let map = self.map_of[SubRegionId::of_block(&self.geometry, at)];
            let entry = if map == MapId::NONE { HpbEntry::ZERO } else { self.store.entry(map, self.slot_of(at)) };
            out.extend_from_slice(&entry.0);
        }
    }

    /// The READ ID of another pre-request, unless as many are in flight as may be: half of what the unit takes.
    pub(crate) fn begin_pre_request(&mut self) -> Option<u8> {
        if self.pre_requests_in_flight >= self.queue_depth / 2 {
            return None;
        }
        self.pre_requests_in_flight += 1;
        self.counters.pre_req_cnt += 1;
        self.read_id = if self.read_id + 1 >= READ_ID_END { 1 } else { self.read_id + 1 };
        Some(self.read_id)
    }

    pub(crate) fn pre_request_ended(&mut self) {
        self.pre_requests_in_flight = self.pre_requests_in_flight.saturating_sub(1);
    }

    /// There is no tag for the pre-request of a read that had its entries: a miss, once that is given up.
    pub(crate) fn without_pre_request(&mut self, given_up: bool) {
        self.counters.hit_cnt -= 1;
        self.counters.miss_cnt += u64::from(given_up);
    }
}
