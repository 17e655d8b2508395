// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests to a unit behind a mapper: which commands they become, and what happens when those end. Where blocks lie is
//! up to the [`Log`].

use super::log::{Log, Run, Work};
use crate::request::Flights;
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::Ns;
use readpath_workload::{Io, IoKind};
use std::collections::VecDeque;

/// How long a read takes whose blocks were all never written: the host gives zeros without asking the device.
const ZEROS: Ns = Ns(1_000);

/// A command of the mapper in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Command {
    /// Part of a read.
    Read { parent: u32, run: Run },
    /// Part of a write, of blocks from `first` on.
    Write { parent: u32, first: u32, run: Run },
    /// A flush of the source.
    Flush { parent: u32 },
    /// Blocks are read to be moved.
    Fetch(Run),
    /// A part of them, from `from` on, is written elsewhere.
    Store { fetch: u32, from: u32, run: Run },
    /// A flush before resets.
    Sync,
    /// A zone is reset.
    Reset(u32),
}

/// A request of the source, and its commands that have not ended.
#[derive(Clone, Copy)]
struct Parent {
    cookie: u32,
    left: u32,
}

/// Blocks that were fetched, and the parts of them that are not stored yet.
#[derive(Clone, Copy)]
struct Fetch {
    place: u32,
    left: u32,
}

/// A unit behind a mapper.
pub(super) struct Mapped {
    pub log: Log,
    lun: u8,
    parents: Flights<Parent>,
    fetches: Flights<Fetch>,
    /// Writes that wait for room, with their parents; `block` and `blocks` are what is left of them.
    waiting: VecDeque<(BlockRequest, u32)>,
    /// Fetched blocks that wait for room, and their fetch.
    stores: VecDeque<(u32, Run)>,
    /// Reads without data, and when they end.
    zeros: VecDeque<(Ns, u32)>,
    runs: Vec<Run>,
    /// Commands to be sent: the operation, first block of the unit, blocks.
    out: VecDeque<(Command, BlockOp, u32, u32)>,
}

impl std::fmt::Debug for Mapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapped").field("lun", &self.lun).finish_non_exhaustive()
    }
}

impl Mapped {
    pub(super) fn new(lun: u8, log: Log) -> Mapped {
        let (parents, fetches) = (Flights::new(), Flights::new());
        let (waiting, stores, zeros) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (runs, out) = (Vec::new(), VecDeque::new());
        Mapped { log, lun, parents, fetches, waiting, stores, zeros, runs, out }
    }

    /// Its unit.
    pub(super) fn lun(&self) -> u8 {
        self.lun
    }

    /// A request of the source, at `now`.
    pub(super) fn submit(&mut self, now: Ns, request: &BlockRequest) {
        let &BlockRequest { cookie, op, block, blocks, .. } = request;
        match op {
            BlockOp::Read => {
                let mut runs = std::mem::take(&mut self.runs);
                self.log.read(block, blocks, &mut runs);
                if runs.is_empty() {
                    self.zeros.push_back((now + ZEROS, cookie));
                } else {
                    let parent = self.parents.begin(Parent { cookie, left: runs.len() as u32 });
                    for &run in &runs {
                        self.send(Command::Read { parent, run }, BlockOp::Read, run);
                    }
                }
                self.runs = runs;
            }
            BlockOp::Write | BlockOp::WriteFua => {
                let parent = self.parents.begin(Parent { cookie, left: 1 });
                self.waiting.push_back((*request, parent));
            }
            BlockOp::Flush => {
                let parent = self.parents.begin(Parent { cookie, left: 1 });
                self.out.push_back((Command::Flush { parent }, BlockOp::Flush, 0, 0));
            }
            BlockOp::Discard => {
                self.log.trim(block, blocks);
                self.zeros.push_back((now + ZEROS, cookie));
            }
            BlockOp::ResetZone | BlockOp::FinishZone => debug_assert!(false, "its users know of no zones"),
        }
        self.go_on();
    }

    fn send(&mut self, command: Command, op: BlockOp, run: Run) {
        let block = self.log.address(run.place);
        self.out.push_back((command, op, block, run.blocks));
    }

    /// Gives room to what was fetched and to writes that wait, and work to the log.
    fn go_on(&mut self) {
        self.store();
        while let Some(&(request, parent)) = self.waiting.front() {
            let heat = self.log.heat(request.block);
            let Some(run) = self.log.room(heat, request.blocks) else { break };
            let (left, _) = self.waiting.front_mut().expect("seen above");
            (left.block, left.blocks) = (left.block + run.blocks, left.blocks - run.blocks);
            if left.blocks == 0 {
                self.waiting.pop_front();
            } else {
                self.parents.get_mut(parent).left += 1;
            }
            self.send(Command::Write { parent, first: request.block, run }, request.op, run);
        }
        while let Some(work) = self.log.work() {
            match work {
                Work::Fetch(run) => self.send(Command::Fetch(run), BlockOp::Read, run),
                Work::Sync => self.out.push_back((Command::Sync, BlockOp::Flush, 0, 0)),
                Work::Reset(zone) => {
                    let blocks = self.log.capacity();
                    self.send(Command::Reset(zone), BlockOp::ResetZone, Run { place: zone * blocks, blocks });
                }
            }
        }
    }

    /// The next command to be sent.
    pub(super) fn next(&mut self) -> Option<(Command, BlockRequest)> {
        let (command, op, block, blocks) = self.out.pop_front()?;
        Some((command, BlockRequest { cookie: 0, lun: self.lun, op, block, blocks }))
    }

    /// A command has ended; returns the cookie of the request that has ended with it.
    pub(super) fn ended(&mut self, command: Command) -> Option<u32> {
        let ended = match command {
            Command::Read { parent, run } => {
                self.log.used(run.place);
                self.part_ended(parent)
            }
            Command::Write { parent, first, run } => {
                self.log.written(first, run);
                self.part_ended(parent)
            }
            Command::Flush { parent } => self.part_ended(parent),
            Command::Fetch(run) => {
                let fetch = self.fetches.begin(Fetch { place: run.place, left: 1 });
                self.stores.push_back((fetch, run));
                None
            }
            Command::Store { fetch, from, run } => {
                self.log.stored(from, run);
                let of = self.fetches.get_mut(fetch);
                of.left -= 1;
                if of.left == 0 {
                    let Fetch { place, .. } = self.fetches.end(fetch);
                    self.log.copied(place);
                }
                None
            }
            Command::Sync => {
                self.log.sync_ended();
                None
            }
            Command::Reset(zone) => {
                self.log.reset_ended(zone);
                None
            }
        };
        self.go_on();
        ended
    }

    fn part_ended(&mut self, parent: u32) -> Option<u32> {
        let of = self.parents.get_mut(parent);
        of.left -= 1;
        (of.left == 0).then(|| self.parents.end(parent).cookie)
    }

    /// Writes what was fetched to the end of the log of moved blocks.
    fn store(&mut self) {
        while let Some(&(fetch, rest)) = self.stores.front() {
            let Some(run) = self.log.store(rest) else { return };
            if run.blocks == rest.blocks {
                self.stores.pop_front();
            } else {
                self.fetches.get_mut(fetch).left += 1;
                self.stores[0].1 = Run { place: rest.place + run.blocks, blocks: rest.blocks - run.blocks };
            }
            self.send(Command::Store { fetch, from: rest.place, run }, BlockOp::Write, run);
        }
    }

    /// When the next request ends that needs no command.
    pub(super) fn next_at(&self) -> Ns {
        self.zeros.front().map_or(Ns::NEVER, |(at, _)| *at)
    }

    /// A request that ends by `until` without a command.
    pub(super) fn late(&mut self, until: Ns) -> Option<u32> {
        let due = self.zeros.front().is_some_and(|(at, _)| *at <= until);
        if due { self.zeros.pop_front().map(|(_, cookie)| cookie) } else { None }
    }

    /// A command as a request, for error messages.
    pub(super) fn io(&self, command: Command) -> Io {
        let (kind, run) = match command {
            Command::Read { run, .. } | Command::Fetch(run) => (IoKind::Read, run),
            Command::Write { run, .. } | Command::Store { run, .. } => (IoKind::Write, run),
            Command::Reset(zone) => (IoKind::Trim, Run { place: zone * self.log.capacity(), blocks: 0 }),
            Command::Flush { .. } | Command::Sync => (IoKind::Flush, Run { place: 0, blocks: 0 }),
        };
        let blocks = u16::try_from(run.blocks).unwrap_or(u16::MAX);
        Io { block: self.log.address(run.place), blocks, kind, fua: false }
    }
}
