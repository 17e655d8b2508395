// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every source needs: a place for each request in flight, and the operation that it asks for.

use readpath_host::BlockOp;
use readpath_workload::{Io, IoKind};

/// The logical unit that traces, launches and benches run on.
pub const LUN: u8 = 0;

/// Requests in flight, each at the cookie that the stack hands back with its end. Places are used again, so that there
/// are no more of them than requests were ever outstanding at once.
pub(crate) struct Flights<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Flights<T> {
    /// Nothing in flight.
    pub(crate) fn new() -> Self {
        Flights { places: Vec::new(), free: Vec::new() }
    }

    /// Keeps a request; returns its cookie.
    #[inline(always)]
    pub(crate) fn begin(&mut self, flight: T) -> u32 {
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

    /// Forgets everything in flight, and returns it.
    #[cold]
    pub(crate) fn take(&mut self) -> Vec<T> {
        let Flights { places, free } = std::mem::replace(self, Flights::new());
        (0..).zip(places).filter(|(cookie, _)| !free.contains(cookie)).map(|(_, flight)| flight).collect()
    }

    pub(crate) fn len(&self) -> u32 {
        (self.places.len() - self.free.len()) as u32
    }

    /// Whether nothing is in flight.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// The value stored for a request.
    #[inline(always)]
    pub(crate) fn get(&self, cookie: u32) -> T {
        self.places[cookie as usize]
    }

    /// The value stored for a request, mutable.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, cookie: u32) -> &mut T {
        &mut self.places[cookie as usize]
    }

    /// The request has ended; its cookie may be reused. Returns the value stored for it.
    #[inline(always)]
    pub(crate) fn end(&mut self, cookie: u32) -> T {
        self.free.push(cookie);
        self.places[cookie as usize]
    }
}

/// What a request asks of the stack.
#[inline(always)]
pub(crate) fn block_op(io: Io) -> BlockOp {
    if io.kind == IoKind::Read { BlockOp::Read } else { other_op(io) }
}

/// The operation of a request that is not a read.
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
