// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU of the host: a source whose requests wait for the core of their thread before they are submitted, and again when
//! they are completed. It knows cycles, cores and threads; not what a request is for.

use crate::drive::{Port, Rest, Source};
use crate::error::RunError;
use crate::through::{Taker, Through};
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_host::{BlockRequest, HostCores, SenseData};
use readpath_kit::Ns;
use readpath_stack::{Hold, Payload, Stack, Wire};
use readpath_workload::{Io, IoKind};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A source on cores. In virtual time only: in real time the CPU is real.
pub(crate) struct OnCores<'a, Q> {
    source: &'a mut Q,
    cpu: Cpu,
    /// Requests that have ended and were not told yet.
    ended: VecDeque<(IoKind, Ns)>,
}

/// What the cores have done and will do. Each serves in order of arrival.
struct Cpu {
    config: HostCores,
    /// Blocks of the longest command. Of longer requests, the core maps the pages of all commands but the first while
    /// the device works.
    most_blocks: u32,
    cores: Vec<Core>,
    /// Work in order of its end, and of its arrival.
    line: BinaryHeap<Reverse<(Ns, u64, Work)>>,
    arrived: u64,
    requests: Vec<BlockRequest>,
    /// The core of each request, by its cookie.
    core_of: Vec<u16>,
    /// Its thread.
    thread_of: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Core {
    free: Ns,
    /// When it has completed all that it was told of.
    completes_until: Ns,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    /// The request of this cookie is to be submitted.
    Submit(u32),
    /// It has been completed.
    Complete(u32),
}

impl Cpu {
    fn new(config: HostCores, most_blocks: u32) -> Self {
        Cpu {
            config,
            most_blocks,
            cores: vec![Core::default(); usize::from(config.count)],
            line: BinaryHeap::new(),
            arrived: 0,
            requests: Vec::new(),
            core_of: Vec::new(),
            thread_of: Vec::new(),
        }
    }

    fn next(&self) -> Ns {
        self.line.peek().map_or(Ns::NEVER, |&Reverse((at, ..))| at)
    }

    fn take_due(&mut self, until: Ns) -> Option<Work> {
        if self.next() > until {
            return None;
        }
        self.line.pop().map(|Reverse((.., work))| work)
    }

    /// Gives work to a core at `now`; returns when it is done.
    fn work(&mut self, now: Ns, core: u16, cycles: u64, work: Work) -> Ns {
        let cost = self.config.time(cycles);
        let core = &mut self.cores[usize::from(core)];
        core.free = now.max(core.free) + cost;
        self.line.push(Reverse((core.free, self.arrived, work)));
        self.arrived += 1;
        core.free
    }

    fn complete(&mut self, now: Ns, cookie: u32) {
        let core = self.core_of[cookie as usize];
        let joins = self.cores[usize::from(core)].completes_until > now;
        let HostCores { complete_cycles, interrupt_cycles, .. } = self.config;
        let cycles = u64::from(complete_cycles) + if joins { 0 } else { u64::from(interrupt_cycles) };
        let end = self.work(now, core, cycles, Work::Complete(cookie));
        self.cores[usize::from(core)].completes_until = end;
    }
}

impl Taker for Cpu {
    /// Its core submits it later, to the port of that time.
    fn submit(&mut self, _port: &mut impl Port, now: Ns, thread: u32, request: &BlockRequest) {
        let core = (thread % u32::from(self.config.count)) as u16;
        let cookie = request.cookie as usize;
        if self.requests.len() <= cookie {
            self.requests.resize(cookie + 1, *request);
            self.core_of.resize(cookie + 1, 0);
            self.thread_of.resize(cookie + 1, 0);
        }
        self.thread_of[cookie] = thread;
        (self.requests[cookie], self.core_of[cookie]) = (*request, core);
        let moved = if request.op.moves_data() { request.blocks } else { 0 };
        let first = moved.min(self.most_blocks);
        let submitted = self.work(now, core, self.config.to_submit(first), Work::Submit(request.cookie));
        let behind = u64::from(self.config.page_cycles) * u64::from(moved - first);
        self.cores[usize::from(core)].free = submitted + self.config.time(behind);
    }
}

impl<'a, Q: Source> OnCores<'a, Q> {
    pub(crate) fn new(source: &'a mut Q, config: HostCores, most_blocks: u32) -> Self {
        OnCores { source, cpu: Cpu::new(config, most_blocks), ended: VecDeque::new() }
    }
}

impl<Q: Source> Source for OnCores<'_, Q> {
    const WATCH_EVERY: u64 = Q::WATCH_EVERY;
    const ENDS_FIRST: bool = Q::ENDS_FIRST;

    fn holds(&self) -> Hold {
        if self.source.holds() == Hold::Nothing { Hold::Nothing } else { Hold::Several }
    }

    fn begin(&mut self, port: &mut impl Port, now: Ns) {
        self.source.begin(&mut Through { port, taker: &mut self.cpu }, now);
    }

    fn next_at(&self) -> Ns {
        self.cpu.next().min(self.source.next_at())
    }

    fn act(&mut self, port: &mut impl Port, now: Ns, until: Ns) {
        loop {
            if let Some(work) = self.cpu.take_due(until) {
                match work {
                    Work::Submit(cookie) => {
                        let thread = self.cpu.thread_of[cookie as usize];
                        port.submit_from(now, thread, &self.cpu.requests[cookie as usize]);
                    }
                    Work::Complete(cookie) => {
                        let ended = self.source.ended(&mut Through { port, taker: &mut self.cpu }, cookie, now);
                        self.ended.extend(ended);
                    }
                }
            } else if self.source.next_at() <= until {
                self.source.act(&mut Through { port, taker: &mut self.cpu }, now, until);
            } else {
                return;
            }
        }
    }

    fn work_at(&self) -> Ns {
        self.source.work_at()
    }

    fn work<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
    ) -> Result<Ns, RunError> {
        self.source.work(stack, now)
    }

    /// The command has ended; its core completes it.
    fn ended(&mut self, _port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        self.cpu.complete(now, cookie);
        None
    }

    fn late(&mut self, port: &mut impl Port, now: Ns) -> Option<(IoKind, Ns)> {
        let ended = self.ended.pop_front();
        ended.or_else(|| self.source.late(&mut Through { port, taker: &mut self.cpu }, now))
    }

    fn begins(&mut self, cookie: u32, now: Ns) {
        self.source.begins(cookie, now);
    }

    fn gives_up(&mut self, port: &mut impl Port, cookie: u32, is_last: bool, now: Ns) {
        self.source.gives_up(&mut Through { port, taker: &mut self.cpu }, cookie, is_last, now);
    }

    fn refused(&mut self, port: &mut impl Port, cookie: u32, sense: SenseData, now: Ns) -> Result<(), RunError> {
        self.source.refused(&mut Through { port, taker: &mut self.cpu }, cookie, sense, now)
    }

    fn io(&self, cookie: u32) -> Io {
        self.source.io(cookie)
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
        let Cpu { config, most_blocks, arrived, .. } = self.cpu;
        self.cpu = Cpu { arrived, ..Cpu::new(config, most_blocks) };
        self.source.lost(&mut Through { port, taker: &mut self.cpu }, now);
    }
}
