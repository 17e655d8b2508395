// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests: which come next, and that each one ends once and without an error.

use super::options::Options;
use super::run::Tried;
use readpath_flash::DieSched;
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{Ns, Prng};

/// Requests in flight by cookie.
#[derive(Default)]
pub struct InFlight {
    flights: Vec<Option<BlockRequest>>,
    free: Vec<u32>,
    pub outstanding: u32,
}

impl InFlight {
    pub fn submit<S: DieSched>(
        &mut self,
        stack: &mut Tried<S>,
        now: Ns,
        lun: u8,
        op: BlockOp,
        block: u32,
        blocks: u32,
    ) {
        let cookie = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() as u32 - 1
        });
        let request = BlockRequest { cookie, lun, op, block, blocks };
        self.flights[cookie as usize] = Some(request);
        self.outstanding += 1;
        stack.submit(now, &request);
    }

    pub fn collect<S: DieSched>(&mut self, stack: &mut Tried<S>) {
        while let Some(done) = stack.poll_done() {
            let request = self.flights[done.cookie as usize].take().expect("a request ends once");
            assert_eq!(done.error, None, "{request:?}");
            self.free.push(done.cookie);
            self.outstanding -= 1;
        }
    }

    pub fn drain<S: DieSched>(&mut self, stack: &mut Tried<S>, mut now: Ns) -> Ns {
        for step in 0.. {
            if stack.next_deadline() == Ns::NEVER {
                break;
            }
            now = stack.next_deadline();
            stack.advance(now);
            self.collect(stack);
            assert!(step < 1_500_000, "everything ends some time: {} requests outstanding", self.outstanding);
        }
        assert_eq!(self.outstanding, 0, "every request ends");
        now
    }
}

pub fn random_request(o: &Options, rng: &mut Prng, sent: u32) -> (u8, BlockOp, u32, u32) {
    let lun = rng.below(o.config.lus.len() as u64) as usize;
    let size = o.config.lus[lun].blocks;
    let kind = rng.below(1000) as u32;
    let op = match kind {
        k if k < o.flushes => BlockOp::Flush,
        k if k < o.flushes + o.trims => BlockOp::Discard,
        k if k < o.flushes + o.trims + o.writes && k % 8 == 0 => BlockOp::WriteFua,
        k if k < o.flushes + o.trims + o.writes => BlockOp::Write,
        _ => BlockOp::Read,
    };
    if op == BlockOp::Flush {
        return (lun as u8, op, 0, 0);
    }
    let longest = if op == BlockOp::Discard && rng.below(50) == 0 { 600 } else { o.longest };
    let blocks = (1 + rng.below(u64::from(longest)) as u32).min(size);
    let (start, range) = if rng.below(2) == 0 { (sent / 1000 * o.hot_moves, o.hot.min(size)) } else { (0, size) };
    let block = (start + rng.below(u64::from(range)) as u32) % size;
    (lun as u8, op, block.min(size - blocks), blocks)
}
