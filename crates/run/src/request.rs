// SPDX-License-Identifier: MIT OR Apache-2.0
//! What everybody who submits requests to a stack needs: a place for each request in flight, the operation that it asks
//! for, the error when it is refused, and the end of time. Knows neither jobs nor traces.

use crate::run::RunError;
use readpath_host::{BlockOp, SenseData};
use readpath_kit::{DeadlineHeap, Ns};
use readpath_workload::{Io, IoKind};

/// Runs stop a day before the deadlines of the device run out of bits.
pub const LATEST: Ns = Ns(DeadlineHeap::LATEST.0 - 86_400_000_000_000);

/// Requests in flight, each at the cookie that the stack hands back with its end. Places are used again, so that there are
/// never more than requests were outstanding at once.
pub struct Flights<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Flights<T> {
    /// Nothing in flight.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Flights { places: Vec::new(), free: Vec::new() }
    }

    /// Keeps a request; returns its cookie.
    #[inline(always)]
    pub fn begin(&mut self, flight: T) -> u32 {
        match self.free.pop() {
            Some(cookie) => {
                self.places[cookie as usize] = flight;
                cookie
            }
            None => {
                self.places.push(flight);
                (self.places.len() - 1) as u32
            }
        }
    }

    /// Whether nothing is in flight.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// What is kept of a request.
    #[inline(always)]
    pub fn get(&self, cookie: u32) -> T {
        self.places[cookie as usize]
    }

    /// The same, to change.
    #[inline(always)]
    pub fn get_mut(&mut self, cookie: u32) -> &mut T {
        &mut self.places[cookie as usize]
    }

    /// The request has ended; its cookie may be given out again.
    #[inline(always)]
    pub fn end(&mut self, cookie: u32) {
        self.free.push(cookie);
    }
}

/// What a request asks of the stack.
#[inline(always)]
pub fn block_op(io: Io) -> BlockOp {
    if io.kind == IoKind::Read { BlockOp::Read } else { other_op(io) }
}

/// The same for what is not a read.
#[inline(never)]
fn other_op(io: Io) -> BlockOp {
    match io.kind {
        IoKind::Read => BlockOp::Read,
        IoKind::Write if io.fua => BlockOp::WriteFua,
        IoKind::Write => BlockOp::Write,
        IoKind::Trim => BlockOp::Discard,
        IoKind::Flush => BlockOp::Flush,
    }
}

/// The device refused `io`.
pub fn io_error(io: Io, sense: SenseData, at: Ns) -> RunError {
    let meaning = match (sense.key, sense.asc, sense.ascq) {
        (5, 0x21, _) => "beyond the logical unit",
        (7, 0x27, 7) => {
            "the device has no flash left to write to: so many blocks have gone bad that the rest does not hold its capacity"
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
