// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads of more than one block with HPB 2.0: which entries are sent with them, and how many pre-requests there may
//! be (the driver of Linux 5.15-rc, `ufshpb_issue_pre_req`; 6.1 has no pre-requests). `reads` decides whether an
//! entry may be used at all; nothing is sent here.

use super::HpbLu;
use crate::config::LongReads;

/// READ IDs go from 1 to one less than this (Linux 5.15-rc `MAX_HPB_READ_ID`); 0 means that there was no pre-request.
const READ_ID_END: u8 = 0x7F;

/// Which entries are sent with a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carries {
    /// The entry of the first block, in the command.
    First,
    /// All entries, in a command before it.
    PreRequest,
    /// All entries, in the command's extra header segment.
    All,
}

/// How long reads carry entries, and the pre-requests in flight.
pub(super) struct PreRequests {
    how: LongReads,
    /// READ ID of the newest one.
    read_id: u8,
    in_flight: u32,
    /// The most pre-requests in flight.
    most: u32,
}

impl PreRequests {
    pub(super) fn new(how: LongReads, most: u32) -> Self {
        PreRequests { how, read_id: 0, in_flight: 0, most }
    }

    /// A reset has ended all of them.
    pub(super) fn lost(&mut self) {
        self.in_flight = 0;
    }
}

impl HpbLu {
    /// How the entries of a read of `blocks` blocks are sent.
    pub(crate) fn carries(&self, blocks: u32) -> Carries {
        match self.pre_requests.how {
            LongReads::PreRequest | LongReads::Measured if blocks > self.common.single_blocks => Carries::PreRequest,
            LongReads::Ehs if blocks > 1 => Carries::All,
            _ => Carries::First,
        }
    }

    /// Puts the entries of these blocks into `out`; zeros for those not held.
    pub(crate) fn entries(&self, block: u32, blocks: u32, out: &mut Vec<u8>) {
        out.clear();
        (block..block + blocks).for_each(|at| out.extend_from_slice(&self.common.table.stored_entry(at).0));
    }

    /// The READ ID of another pre-request, unless their number is at its limit: half of the unit's queue depth.
    pub(crate) fn begin_pre_request(&mut self) -> Option<u8> {
        let ahead = &mut self.pre_requests;
        if ahead.in_flight >= ahead.most {
            return None;
        }
        ahead.in_flight += 1;
        ahead.read_id = if ahead.read_id + 1 >= READ_ID_END { 1 } else { ahead.read_id + 1 };
        self.common.counters.pre_req_cnt += 1;
        Some(ahead.read_id)
    }

    pub(crate) fn pre_request_ended(&mut self) {
        self.pre_requests.in_flight = self.pre_requests.in_flight.saturating_sub(1);
    }

    /// There is no tag for the pre-request of a read with entries: a miss, once the read stops waiting (`given_up`).
    pub(crate) fn pre_request_lacks_tag(&mut self, given_up: bool) {
        self.common.counters.hit_cnt -= 1;
        self.common.counters.miss_cnt += u64::from(given_up);
    }
}
