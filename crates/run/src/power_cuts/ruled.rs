// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules between a source and the stack, in virtual time: requests fail, take longer, or are not done as they should
//! be, and the payload, which judges what is read, is told. It knows no power cut.

use crate::drive::{Port, Rest, Source};
use crate::request::Flights;
use crate::rules::{Deed, Due, Kind, Late, Op, Request, RuleCount, RuleOrder, Rules};
use crate::through::{Taker, Through};
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_stack::Ruled;
use readpath_workload::{Io, IoKind};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// After this time a request is answered that a rule keeps from the device, about that of a command that does nothing.
/// In no time a job could make requests without end.
const ANSWER: Ns = Ns::from_us(10);

/// A request of the source.
#[derive(Clone, Copy)]
struct Flight {
    /// As the source asked for it.
    request: BlockRequest,
    /// As it is known here.
    cookie: u32,
    late: Late,
    /// The payload was told of it.
    is_ruled: bool,
}

/// Rules during a run, over the sources of all its phases.
pub(super) struct Injected {
    rules: Rules,
    orders: VecDeque<Due<RuleOrder>>,
    /// Blocks of each logical unit.
    units: Vec<u32>,
    flights: Flights<Flight>,
    /// Requests that are answered later: when, in which order, and which.
    held: BinaryHeap<Reverse<(Ns, u64, u32)>>,
    count: u64,
    /// Those that are answered now.
    due: VecDeque<u32>,
}

impl Injected {
    /// Orders of a run that begins at `start`; chance comes from `seed`.
    pub(super) fn new(orders: &[Due<RuleOrder>], units: Vec<u32>, start: Ns, seed: u64) -> Injected {
        let mut rules = Rules::default();
        rules.seed(seed);
        let from_start = |due: &Due<RuleOrder>| Due { at: Ns(due.at.0.saturating_add(start.0)), ..due.clone() };
        Injected {
            rules,
            orders: orders.iter().map(from_start).collect(),
            units,
            flights: Flights::new(),
            held: BinaryHeap::new(),
            count: 0,
            due: VecDeque::new(),
        }
    }

    /// What rules have done, and the places of orders that were never due.
    pub(super) fn end(self) -> (Vec<RuleCount>, Vec<String>) {
        (self.rules.counts(), self.orders.into_iter().map(|due| due.place).collect())
    }

    /// Carries out what was ordered until `now`.
    fn obey(&mut self, now: Ns) {
        while self.orders.front().is_some_and(|due| due.at <= now)
            && let Some(due) = self.orders.pop_front()
        {
            // What cannot be was refused before the run.
            let carried = self.rules.carry_out(&due.order, due.at, &self.units);
            debug_assert_eq!(carried, Ok(()));
            if due.order == RuleOrder::End(Kind::Slow) {
                // Who was slow is so no more.
                self.due.extend(std::mem::take(&mut self.held).into_sorted_vec().iter().rev().map(|held| held.0.2));
            }
        }
    }

    fn hold(&mut self, until: Ns, cookie: u32) {
        self.count += 1;
        self.held.push(Reverse((until, self.count, cookie)));
    }

    /// A request is answered; returns its cookie at the source.
    fn answer(&mut self, port: &mut impl Port, cookie: u32) -> u32 {
        let Flight { request, is_ruled, .. } = self.flights.end(cookie);
        if is_ruled {
            port.rule(&BlockRequest { cookie, ..request }, Ruled::Over { good: true });
        }
        request.cookie
    }

    /// All requests are lost.
    fn lose(&mut self, port: &mut impl Port) {
        self.held.clear();
        self.due.clear();
        for Flight { request, cookie, .. } in self.flights.take().into_iter().filter(|flight| flight.is_ruled) {
            port.rule(&BlockRequest { cookie, ..request }, Ruled::Over { good: false });
        }
    }
}

impl Taker for Injected {
    /// It meets the rules.
    fn submit(&mut self, port: &mut impl Port, now: Ns, thread: u32, asked: &BlockRequest) {
        self.obey(now);
        let flight = Flight { request: *asked, cookie: 0, late: Late::default(), is_ruled: false };
        let cookie = self.flights.begin(flight);
        let request = BlockRequest { cookie, ..*asked };
        let (mut late, mut deed) = (Late::default(), None);
        if self.rules.are_any() {
            (late, deed) = self.rules.meet(now, &ruled(asked));
        }
        *self.flights.get_mut(cookie) = Flight { cookie, late, is_ruled: deed.is_some(), ..flight };
        let answer = now + ANSWER + self.rules.longer(late);
        let block = |bytes: u64| (bytes / u64::from(BLOCK_BYTES)) as u32;
        let mut send = |sent: BlockRequest, spoils| {
            port.rule(&sent, Ruled::Sent { asked: request.block, spoils });
            port.submit_from(now, thread, &sent);
        };
        match deed {
            None => port.submit_from(now, thread, &request),
            Some(Deed::Fails(..)) => self.hold(answer, cookie),
            Some(Deed::Nothing | Deed::Part(0)) => {
                port.rule(&request, Ruled::Kept);
                self.hold(answer, cookie);
            }
            Some(Deed::Part(bytes)) => {
                let (whole, blocks) = (block(u64::from(bytes)), bytes.div_ceil(BLOCK_BYTES));
                // A block that is written in part holds what nobody asked for.
                send(BlockRequest { blocks, ..request }, whole..blocks);
                if blocks < request.blocks {
                    let rest =
                        BlockRequest { block: request.block + blocks, blocks: request.blocks - blocks, ..request };
                    port.rule(&rest, Ruled::Kept);
                }
            }
            Some(Deed::Elsewhere(away)) => {
                let bytes = (u64::from(request.block) * u64::from(BLOCK_BYTES)).wrapping_add(away);
                let sent = BlockRequest { block: block(bytes), ..request };
                match request.op {
                    BlockOp::Read => send(sent, 0..0),
                    _ => {
                        send(sent, 0..request.blocks);
                        port.rule(&request, Ruled::Kept);
                    }
                }
            }
            Some(Deed::Flips(bit)) => {
                let spoiled = block(bit / 8);
                send(request, spoiled..spoiled + 1);
            }
        }
    }
}

/// A request as rules look at it.
fn ruled(&BlockRequest { lun, op, block, blocks, .. }: &BlockRequest) -> Request {
    let op = match op {
        BlockOp::Read => Op::Read,
        BlockOp::Write | BlockOp::WriteFua => Op::Write,
        BlockOp::Discard | BlockOp::ResetZone => Op::Trim,
        BlockOp::Flush | BlockOp::FinishZone => Op::Flush,
    };
    let offset = u64::from(block) * u64::from(BLOCK_BYTES);
    Request { op, unit: lun, offset, bytes: blocks.saturating_mul(BLOCK_BYTES), client: None }
}

/// A source whose requests pass rules.
pub(super) struct RuledSource<'a, Q> {
    pub source: Q,
    pub injected: &'a mut Injected,
}

impl<Q: Source> RuledSource<'_, Q> {
    fn answer(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        let own = self.injected.answer(port, cookie);
        self.source.ended(&mut Through { port, taker: self.injected }, own, now)
    }
}

impl<Q: Source> Source for RuledSource<'_, Q> {
    const WATCH_EVERY: u64 = Q::WATCH_EVERY;
    const ENDS_FIRST: bool = Q::ENDS_FIRST;

    fn begin(&mut self, port: &mut impl Port, now: Ns) {
        self.injected.obey(now);
        self.source.begin(&mut Through { port, taker: self.injected }, now);
    }

    fn next_at(&self) -> Ns {
        let Injected { held, orders, .. } = &*self.injected;
        let held = held.peek().map_or(Ns::NEVER, |&Reverse((at, ..))| at);
        held.min(orders.front().map_or(Ns::NEVER, |due| due.at)).min(self.source.next_at())
    }

    fn act(&mut self, port: &mut impl Port, now: Ns, until: Ns) {
        self.injected.obey(until);
        while self.injected.held.peek().is_some_and(|&Reverse((at, ..))| at <= until) {
            self.injected.due.extend(self.injected.held.pop().map(|held| held.0.2));
        }
        if self.source.next_at() <= until {
            self.source.act(&mut Through { port, taker: self.injected }, now, until);
        }
    }

    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        match self.injected.rules.longer(self.injected.flights.get(cookie).late) {
            Ns::ZERO => self.answer(port, cookie, now),
            longer => {
                self.injected.hold(Ns(now.0.saturating_add(longer.0)), cookie);
                None
            }
        }
    }

    fn late(&mut self, port: &mut impl Port, now: Ns) -> Option<(IoKind, Ns)> {
        while let Some(cookie) = self.injected.due.pop_front() {
            let ended = self.answer(port, cookie, now);
            if ended.is_some() {
                return ended;
            }
        }
        None
    }

    fn begins(&mut self, cookie: u32, now: Ns) {
        self.source.begins(self.injected.flights.get(cookie).request.cookie, now);
    }

    fn gives_up(&mut self, port: &mut impl Port, cookie: u32, is_last: bool, now: Ns) {
        let own = self.injected.answer(port, cookie);
        self.source.gives_up(&mut Through { port, taker: self.injected }, own, is_last, now);
    }

    fn io(&self, cookie: u32) -> Io {
        self.source.io(self.injected.flights.get(cookie).request.cookie)
    }

    fn in_flight(&self) -> u32 {
        self.source.in_flight()
    }

    fn is_over(&self) -> bool {
        self.source.is_over()
    }

    fn rest(&self) -> Rest {
        self.source.rest()
    }

    fn lost(&mut self, port: &mut impl Port, now: Ns) {
        self.injected.lose(port);
        self.source.lost(&mut Through { port, taker: self.injected }, now);
    }
}
