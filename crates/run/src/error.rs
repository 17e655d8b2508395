// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a run stops before its end: the device refuses a request, virtual time is exhausted, or the user interrupts.

use readpath_host::SenseData;
use readpath_kit::{DeadlineHeap, Ns};
use readpath_stack::StackError;
use readpath_workload::{Io, IoKind};
use std::sync::Arc;
use thiserror::Error;

/// Runs stop a day before the deadlines of the device run out of bits.
pub const LATEST: Ns = Ns(DeadlineHeap::LATEST.0 - 86_400_000_000_000);

/// Later than any run lasts, but not never: a run that waits for it ends with an error.
pub(crate) const TOO_LATE: Ns = Ns(LATEST.0 + 1);

/// Why a run stopped.
#[derive(Clone, Debug, Error)]
pub enum RunError {
    /// The device refused a request.
    #[error(
        "{kind:?} of {blocks} blocks at block {block} failed with sense {key:X}h/{asc:02X}h/{ascq:02X}h ({meaning}) at \
         {at}"
    )]
    Io {
        /// Kind of the request.
        kind: IoKind,
        /// First block.
        block: u32,
        /// Blocks.
        blocks: u16,
        /// Sense key.
        key: u8,
        /// Additional sense code.
        asc: u8,
        /// Additional sense code qualifier.
        ascq: u8,
        /// What that means here.
        meaning: &'static str,
        /// Virtual time.
        at: Ns,
    },
    /// Virtual time has gone further than the model can count.
    #[error("the run goes beyond {limit} of virtual time; shorten its pauses, delays or rates")]
    TooLong {
        /// The limit.
        limit: Ns,
    },
    /// A job was over before its ramp was.
    #[error(
        "job '{job}': ramp_time ({ramp}) ends after the job's work, so nothing was measured; make ramp_time shorter, \
         or give the job more to do (size, loops, or time_based with runtime)"
    )]
    NothingMeasured {
        /// The job's name.
        job: String,
        /// Its ramp.
        ramp: Ns,
    },
    /// A job on zones finds nothing to read.
    #[error(
        "no zone of logical unit {lun} that the job may read has data; let a job before it write them \
         (stonewall), have them written before the run (--fill), or give the job read_beyond_wp=1"
    )]
    NothingToRead {
        /// The unit.
        lun: u8,
    },
    /// A job on zones finds no zone to write to.
    #[error(
        "no zone of logical unit {lun} that the job may write can be opened: {most_open} are open, none of them in its \
         part of the unit; give a larger max_open_zones (and lu.zones.most_open of the device, which bounds it), or \
         job_max_open_zones that leaves zones to each job"
    )]
    NoZone {
        /// The unit.
        lun: u8,
        /// Zones that may be open.
        most_open: u32,
    },
    /// Nothing can happen any more though requests are outstanding.
    #[error("the run is stuck at {0} with requests outstanding")]
    Stuck(Ns),
    /// A UPIU changed by encoding and parsing.
    #[error(transparent)]
    Wire(#[from] readpath_stack::WireError),
    /// After a power cut the host did not find the device again.
    #[error(transparent)]
    Restart(Arc<StackError>),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// The device refused `io`.
pub(crate) fn io_error(io: Io, sense: SenseData, at: Ns) -> RunError {
    let meaning = match (sense.key, sense.asc, sense.ascq) {
        (5, 0x21, 4) => "not at the write pointer of its zone: a unit with zones takes sequential writes only",
        (5, 0x21, 5) => "beyond the end of its zone",
        (5, 0x21, 9) => "in the gap between two zones",
        (5, 0x21, _) => "beyond the logical unit",
        (7, 0x55, 0x0E) => "as many zones are open as can be",
        (7, 0x27, 7) => {
            "the device has no flash left to write to: so many blocks have gone bad that the rest does not hold its \
             capacity, or a zone lost power or a program too often"
        }
        _ => "see SPC-4",
    };
    RunError::Io {
        kind: io.kind,
        block: io.block,
        blocks: io.blocks,
        key: sense.key,
        asc: sense.asc,
        ascq: sense.ascq,
        meaning,
        at,
    }
}
