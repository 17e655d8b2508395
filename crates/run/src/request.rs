// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every source needs: a place for each request in flight, and the operation that it asks for.

use readpath_host::BlockOp;
use readpath_workload::{Io, IoKind};

/// The logical unit that traces, launches and benches run on.
pub const LUN: u8 = 0;

/// Requests in flight, each at the cookie that the stack hands back with its end. Places are used again, the one that
/// became vacant last first, so that there are no more of them than requests were ever outstanding at once.
pub(crate) struct Flights<T> {
    places: Vec<Place<T>>,
    /// The first vacant place, or [`NONE`].
    vacant: u32,
    in_flight: u32,
}

struct Place<T> {
    of: T,
    /// Of a vacant place, the next one; of another, [`TAKEN`].
    next: u32,
}

const NONE: u32 = u32::MAX;
const TAKEN: u32 = u32::MAX - 1;

impl<T: Copy> Flights<T> {
    /// Nothing in flight.
    pub(crate) fn new() -> Self {
        Flights { places: Vec::new(), vacant: NONE, in_flight: 0 }
    }

    /// Keeps a request; returns its cookie.
    #[inline(always)]
    pub(crate) fn begin(&mut self, flight: T) -> u32 {
        self.in_flight += 1;
        let cookie = self.vacant;
        let taken = Place { of: flight, next: TAKEN };
        match self.places.get_mut(cookie as usize) {
            Some(place) => {
                self.vacant = place.next;
                *place = taken;
                cookie
            }
            None => {
                self.places.push(taken);
                (self.places.len() - 1) as u32
            }
        }
    }

    /// Forgets everything in flight, and returns it.
    #[cold]
    pub(crate) fn take(&mut self) -> Vec<T> {
        let Flights { places, .. } = std::mem::replace(self, Flights::new());
        places.into_iter().filter(|place| place.next == TAKEN).map(|place| place.of).collect()
    }

    pub(crate) fn len(&self) -> u32 {
        self.in_flight
    }

    /// Whether nothing is in flight.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.in_flight == 0
    }

    /// The value stored for a request.
    #[inline(always)]
    pub(crate) fn get(&self, cookie: u32) -> T {
        self.places[cookie as usize].of
    }

    /// The value stored for a request, mutable.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, cookie: u32) -> &mut T {
        &mut self.places[cookie as usize].of
    }

    /// The request has ended; its cookie may be reused. Returns the value stored for it.
    #[inline(always)]
    pub(crate) fn end(&mut self, cookie: u32) -> T {
        self.in_flight -= 1;
        let place = &mut self.places[cookie as usize];
        debug_assert_eq!(place.next, TAKEN, "request {cookie} is not in flight");
        place.next = std::mem::replace(&mut self.vacant, cookie);
        place.of
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_only_what_is_in_flight_is_taken() {
        let mut flights = Flights::new();
        let cookies: Vec<u32> = "abcd".chars().map(|of| flights.begin(of)).collect();
        assert_eq!((cookies, flights.len()), (vec![0, 1, 2, 3], 4));
        assert_eq!((flights.end(1), flights.end(3), flights.len()), ('b', 'd', 2));
        assert_eq!((flights.begin('e'), flights.get(3)), (3, 'e'), "the one that became vacant last");
        assert_eq!(flights.take(), ['a', 'c', 'e']);
        assert!(flights.is_empty() && flights.begin('f') == 0);
    }
}
