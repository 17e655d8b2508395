// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data reduced to a proof of its identity: every physical slice holds the logical page and the version that was
//! written there, and every read is checked against the versions that it may return. No slice may be programmed
//! before it is erased.
//!
//! A read may return any version from the newest acknowledged before it was sent to the newest sent before it ended.
//! Writes of one block that were in flight together may take effect in either order. After a power cut a read may
//! return any version since the newest that a flush (or FUA) had made durable; the version that it returns then
//! stays.

use crate::payload::Payload;
use readpath_device::{DeviceConfig, MediaOp, WithMedia};
use readpath_flash::Ppn;
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::huge_vec;

/// Content of a slice, a buffer slot or a moving block: logical page plus one, and version. 0 = no data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Content(u64);

impl Content {
    /// Content after a torn program: no data.
    const TORN: Content = Content(u64::MAX);

    fn of(lpn: u32, version: u32) -> Self {
        Content(u64::from(lpn + 1) << 32 | u64::from(version))
    }

    fn version_for(self, lpn: u32) -> Option<u32> {
        ((self.0 >> 32) as u32 == lpn + 1).then_some(self.0 as u32)
    }
}

/// Versions that a logical page may read as.
#[derive(Clone, Copy, Default)]
struct Expectation {
    /// Oldest version that a read may still return; 0 = never written.
    floor: u32,
    /// Newest version that a read may return.
    newest: u32,
    sent: u32,
    /// Newest version that was a discard.
    discarded: u32,
    /// Writes and discards in flight.
    in_flight: u16,
    /// Some of them overlapped, so acknowledgement of one does not say which is newest.
    overlapped: bool,
    /// Oldest version that may come back after a power cut: the newest that was flushed.
    durable: u32,
}

/// State of a block with unflushed writes after a power cut.
#[derive(Clone, Copy, Default)]
struct Remnant {
    /// Newest version sent before the cut; 0 = the block was not touched by a cut.
    cut: u32,
    /// The one version that survived, once a read has shown it.
    left: Option<u32>,
}

/// The first wrong read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadCheck {
    /// Logical page, device-wide.
    pub lpn: u32,
    /// Oldest valid version.
    pub oldest: u32,
    /// Newest valid version.
    pub newest: u32,
    /// Logical page and version that were read; `None` for zeros.
    pub got: Option<(u32, u32)>,
}

/// See the module.
#[derive(Default)]
pub struct Tags {
    slices: Vec<u64>,
    buffer: Vec<Content>,
    expected: Vec<Expectation>,
    /// Per tag and block: data on its way.
    moving: Vec<Vec<Content>>,
    /// Per tag and block: the floor when a read was sent.
    floors: Vec<Vec<u32>>,
    /// Commands in flight.
    sent: Vec<Option<(BlockRequest, u32)>>,
    /// Blocks and versions acknowledged since the last flush; below, how many of them each flush in flight covers.
    acknowledged: Vec<(u32, u32)>,
    flushes: Vec<Option<usize>>,
    remnants: Vec<Remnant>,
    /// Blocks read and checked.
    pub checked: u64,
    /// Blocks with wrong content.
    pub wrong: u64,
    /// The first of them.
    pub first_wrong: Option<ReadCheck>,
}

impl Tags {
    /// The most bytes that the tags of a device take, after all of its blocks have been written.
    pub fn most_bytes(device: &DeviceConfig) -> u64 {
        let each = (size_of::<Expectation>() + size_of::<Remnant>()) as u64;
        device.logical_blocks() * each + u64::from(device.geometry.slices()) * size_of::<u64>() as u64
    }

    fn write_begins(&mut self, lpn: u32, discard: bool) -> Content {
        let e = &mut self.expected[lpn as usize];
        e.sent += 1;
        e.newest = e.sent;
        e.overlapped |= e.in_flight > 0;
        e.in_flight += 1;
        if discard {
            e.discarded = e.newest;
        }
        Content::of(lpn, e.newest)
    }

    fn write_ends(&mut self, lpn: u32, version: u32, good: bool) {
        let e = &mut self.expected[lpn as usize];
        e.in_flight -= 1;
        if good && !e.overlapped {
            e.floor = version;
            self.acknowledged.push((lpn, version));
        }
        if e.in_flight == 0 {
            e.overlapped = false;
        }
    }

    /// NAND is programmed once between erases.
    fn program(&mut self, ppn: Ppn, content: u64) {
        let slice = &mut self.slices[ppn.0 as usize];
        debug_assert_eq!(*slice, 0, "slice {} is programmed without an erase", ppn.0);
        *slice = content;
    }

    fn check(&mut self, lpn: u32, floor: u32, got: Content) {
        self.checked += 1;
        let e = &mut self.expected[lpn as usize];
        let remnant = &mut self.remnants[lpn as usize];
        let is_left = |v: u32| v > remnant.cut || remnant.left.is_none_or(|left| left == v);
        let right = match got {
            Content(0) => floor == 0 || e.discarded >= floor,
            content => content.version_for(lpn).is_some_and(|v| (floor..=e.newest).contains(&v) && is_left(v)),
        };
        // Zeros may come from a discard before the cut or after it.
        let version = if got == Content(0) { e.discarded } else { got.0 as u32 };
        if right && remnant.left.is_none() && version <= remnant.cut {
            remnant.left = Some(version);
            e.floor = e.floor.max(version);
            e.durable = e.durable.max(version);
            if e.newest == remnant.cut {
                e.newest = version;
            }
        }
        if !right {
            self.wrong += 1;
            let got = (got.0 != 0).then(|| ((got.0 >> 32) as u32 - 1, got.0 as u32));
            let newest = e.newest;
            self.first_wrong.get_or_insert(ReadCheck { lpn, oldest: floor, newest, got });
        }
    }
}

impl Payload for Tags {
    type Mode = WithMedia;

    fn attach(&mut self, slices: u32, buffer_slots: usize, logical_blocks: u32) {
        self.slices = huge_vec(slices as usize);
        self.buffer = vec![Content::default(); buffer_slots];
        self.expected = vec![Expectation::default(); logical_blocks as usize];
        self.moving = vec![Vec::new(); 64];
        self.floors = vec![Vec::new(); 64];
        self.sent = vec![None; 64];
        self.flushes = vec![None; 64];
        self.remnants = vec![Remnant::default(); logical_blocks as usize];
    }

    fn preset(&mut self, lpn: u32, ppn: Ppn) {
        self.slices[ppn.0 as usize] = Content::of(lpn, 1).0;
        let e = &mut self.expected[lpn as usize];
        (e.floor, e.newest, e.sent, e.durable) = (1, 1, 1, 1);
    }

    fn begin(&mut self, tag: u8, request: &BlockRequest, lpn: u32) {
        let t = usize::from(tag);
        self.sent[t] = Some((*request, lpn));
        let n = request.blocks as usize;
        let mut moving = std::mem::take(&mut self.moving[t]);
        moving.clear();
        match request.op {
            BlockOp::Write | BlockOp::WriteFua => moving.extend((lpn..).take(n).map(|l| self.write_begins(l, false))),
            BlockOp::Discard => moving.extend((lpn..).take(n).map(|l| self.write_begins(l, true))),
            BlockOp::Read => {
                moving.resize(n, Content(u64::MAX));
                let expected = &self.expected[lpn as usize..lpn as usize + n];
                self.floors[t].clear();
                self.floors[t].extend(expected.iter().map(|e| e.floor));
            }
            BlockOp::Flush => self.flushes[t] = Some(self.acknowledged.len()),
        }
        self.moving[t] = moving;
    }

    fn execute(&mut self, op: MediaOp) {
        match op {
            MediaOp::Fill { tag, index, slot } => {
                self.buffer[usize::from(slot)] = self.moving[usize::from(tag)][index as usize];
            }
            MediaOp::Program { slot, ppn, .. } => self.program(ppn, self.buffer[usize::from(slot)].0),
            MediaOp::Move { from, to, .. } => self.program(to, self.slices[from.0 as usize]),
            MediaOp::Torn { first, slices } => {
                self.slices[first.0 as usize..(first.0 + slices) as usize].fill(Content::TORN.0);
            }
            MediaOp::ReadFlash { tag, index, ppn } => {
                self.moving[usize::from(tag)][index as usize] = Content(self.slices[ppn.0 as usize]);
            }
            MediaOp::ReadBuffer { tag, index, slot } => {
                self.moving[usize::from(tag)][index as usize] = self.buffer[usize::from(slot)];
            }
            MediaOp::Programmed { .. } | MediaOp::Own => {}
            MediaOp::ReadZeros { tag, index } => self.moving[usize::from(tag)][index as usize] = Content(0),
            MediaOp::Erase { first, slices } => {
                self.slices[first.0 as usize..(first.0 + slices) as usize].fill(0);
            }
        }
    }

    fn end(&mut self, tag: u8, request: &BlockRequest, lpn: u32, good: bool) {
        let t = usize::from(tag);
        self.sent[t] = None;
        let moving = std::mem::take(&mut self.moving[t]);
        for (i, &content) in moving.iter().enumerate() {
            let lpn = lpn + i as u32;
            match request.op {
                BlockOp::Read if good => self.check(lpn, self.floors[t][i], content),
                BlockOp::Read | BlockOp::Flush => {}
                op => {
                    // A write in flight together with it may have replaced it since.
                    let alone = !self.expected[lpn as usize].overlapped;
                    self.write_ends(lpn, content.0 as u32, good);
                    if good && alone && op == BlockOp::WriteFua {
                        let e = &mut self.expected[lpn as usize];
                        e.durable = e.durable.max(content.0 as u32);
                    }
                }
            }
        }
        self.moving[t] = moving;
        if request.op == BlockOp::Flush
            && let Some(covered) = self.flushes[t].take()
            && good
        {
            for (lpn, version) in self.acknowledged.drain(..covered) {
                let e = &mut self.expected[lpn as usize];
                e.durable = e.durable.max(version);
            }
            // Other flushes in flight cover fewer by that number.
            self.flushes.iter_mut().flatten().for_each(|n| *n = n.saturating_sub(covered));
        }
    }

    fn reset(&mut self) {
        for tag in 0..self.sent.len() {
            if let Some((request, lpn)) = self.sent[tag] {
                self.end(tag as u8, &request, lpn, false);
            }
        }
    }

    fn power_cut(&mut self) {
        self.reset();
        self.acknowledged.clear();
        self.flushes.fill(None);
        self.buffer.fill(Content::TORN);
        for (e, remnant) in self.expected.iter_mut().zip(&mut self.remnants) {
            if e.newest > e.durable {
                e.floor = e.durable;
                *remnant = Remnant { cut: e.sent, left: None };
                e.newest = e.sent;
            }
        }
    }

    fn process_bytes(&self) -> u64 {
        (self.slices.len() * 8 + self.expected.len() * size_of::<Expectation>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags() -> Tags {
        let mut tags = Tags::default();
        tags.attach(16, 4, 8);
        tags.preset(3, Ppn(0));
        tags
    }

    fn request(op: BlockOp) -> BlockRequest {
        BlockRequest { cookie: 0, lun: 0, op, block: 3, blocks: 1 }
    }

    fn read(tags: &mut Tags, ppn: Ppn) -> u64 {
        tags.begin(9, &request(BlockOp::Read), 3);
        tags.execute(MediaOp::ReadFlash { tag: 9, index: 0, ppn });
        tags.end(9, &request(BlockOp::Read), 3, true);
        tags.wrong
    }

    /// The device may carry out two writes in flight together in either order, and the one with FUA first.
    #[test]
    fn fua_promises_nothing_against_a_write_in_flight_with_it() {
        for (together, wrong) in [(true, 0), (false, 1)] {
            let mut tags = tags();
            let program = |tags: &mut Tags, tag: u8, ppn: u32| {
                tags.execute(MediaOp::Fill { tag, index: 0, slot: 0 });
                tags.execute(MediaOp::Program { slot: 0, ppn: Ppn(ppn), lpn: None, sequence: 0 });
            };
            tags.begin(1, &request(BlockOp::Write), 3);
            if !together {
                tags.end(1, &request(BlockOp::Write), 3, true);
            }
            program(&mut tags, 1, 5);
            tags.begin(2, &request(BlockOp::WriteFua), 3);
            program(&mut tags, 2, 4);
            tags.end(2, &request(BlockOp::WriteFua), 3, true);
            if together {
                tags.end(1, &request(BlockOp::Write), 3, true);
            }
            tags.power_cut();
            assert_eq!(read(&mut tags, Ppn(5)), wrong, "together: {together}");
            assert_eq!(read(&mut tags, Ppn(0)), 1 + wrong, "what was there before is gone");
        }
    }
}
