// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data reduced to a proof of its identity: every physical slice holds the logical page and the version that was
//! written there, and every read is checked against the versions that it may return. No slice may be programmed
//! before it is erased.
//!
//! A read may return any version from the newest acknowledged before it was sent to the newest sent before it ended.
//! Writes of one block that were in flight together may take effect in either order. After a power cut a read may
//! return any version since the newest that a flush (or FUA) had made durable; the version that it returns then
//! stays.
//!
//! Where rules stand between clients and the device, each of the two has a judge: the device is judged by what it was
//! asked, and clients by what they asked and what was answered. What is right for the device and wrong for the client
//! was done by a rule.

mod belief;

use crate::payload::{Payload, Ruled};
use belief::{Belief, Content};
use readpath_device::{DeviceConfig, MediaOp, WithMedia};
use readpath_flash::Ppn;
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::huge_vec;
use std::ops::Range;

/// Tags of commands.
const TAGS: usize = 64;

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

/// A request as a rule changed it.
#[derive(Clone, Default)]
struct Change {
    /// How far behind the logical page that was asked for it goes, around the end of 32 bits.
    away: u32,
    /// Logical pages where it goes, of which the data is not what was asked.
    spoils: Range<u32>,
}

/// A request that a rule keeps from the device.
#[derive(Default)]
struct Kept {
    request: Option<(BlockRequest, u32)>,
    versions: Vec<u32>,
}

/// What clients believe, and by cookie what rules do to their requests.
#[derive(Default)]
struct Clients {
    belief: Belief,
    /// Per tag and block, as of the device.
    floors: Vec<Vec<u32>>,
    changes: Vec<Change>,
    kept: Vec<Kept>,
}

impl Clients {
    fn change(&self, cookie: u32) -> Change {
        self.changes.get(cookie as usize).cloned().unwrap_or_default()
    }

    /// What was kept from the device has been answered, or was lost.
    fn over(&mut self, cookie: usize, good: bool) {
        let Some(kept) = self.kept.get_mut(cookie) else { return };
        let Some((request, lpn)) = kept.request.take() else { return };
        match request.op {
            BlockOp::Flush => self.belief.flush_ends(TAGS + cookie, good),
            op => {
                let fua = op == BlockOp::WriteFua;
                let blocks = (lpn..).zip(kept.versions.drain(..));
                blocks.for_each(|(lpn, version)| self.belief.write_ends(lpn, version, good, fua));
            }
        }
    }
}

/// See the module.
#[derive(Default)]
pub struct Tags {
    slices: Vec<u64>,
    buffer: Vec<Content>,
    /// Per tag and block: data on its way.
    moving: Vec<Vec<Content>>,
    /// Per tag and block: the floor when a read was sent.
    floors: Vec<Vec<u32>>,
    /// Commands in flight.
    sent: Vec<Option<(BlockRequest, u32)>>,
    device: Belief,
    /// None if there are no rules.
    clients: Option<Clients>,
    /// Blocks read and checked.
    pub checked: u64,
    /// Blocks with wrong content.
    pub wrong: u64,
    /// The first of them.
    pub first_wrong: Option<ReadCheck>,
    /// Blocks whose content is right for what the device was asked, and wrong for what its clients asked.
    pub wrong_by_rule: u64,
    /// The first of them.
    pub first_by_rule: Option<ReadCheck>,
}

impl Tags {
    /// The tags of a device whose requests pass rules: see [`Payload::rule`].
    pub fn with_rules() -> Tags {
        Tags { clients: Some(Clients::default()), ..Tags::default() }
    }

    /// The most bytes that the tags of a device take, after all of its blocks have been written, with or without rules.
    pub fn most_bytes(device: &DeviceConfig, rules: bool) -> u64 {
        let each = Belief::BYTES * if rules { 2 } else { 1 };
        device.logical_blocks() * each + u64::from(device.geometry.slices()) * size_of::<u64>() as u64
    }

    /// The next version of a block.
    fn next(&self, lpn: u32) -> u32 {
        1 + self.clients.as_ref().map_or(0, |clients| clients.belief.sent(lpn)).max(self.device.sent(lpn))
    }

    /// A write or discard is sent to the device; returns the content.
    fn write_begins(&mut self, lpn: u32, discard: bool, change: &Change) -> Content {
        let version = self.next(lpn);
        self.device.write_begins(lpn, version, discard);
        if let Some(clients) = self.clients.as_mut().filter(|_| change.away == 0) {
            clients.belief.write_begins(lpn, version, discard);
        }
        let content = Content::of(lpn, version);
        if change.spoils.contains(&lpn) { content.spoiled() } else { content }
    }

    /// NAND is programmed once between erases.
    fn program(&mut self, ppn: Ppn, content: u64) {
        let slice = &mut self.slices[ppn.0 as usize];
        debug_assert_eq!(*slice, 0, "slice {} is programmed without an erase", ppn.0);
        *slice = content;
    }

    /// A block has been read with the command `tag`, whose block `i` it is.
    fn check(&mut self, (tag, i): (usize, usize), lpn: u32, got: Content, change: &Change) {
        self.checked += 1;
        let floor = self.floors[tag][i];
        let read = |newest: u32, lpn: u32, oldest: u32| {
            let got = (got.0 != 0).then(|| ((got.0 >> 32) as u32 - 1, got.version()));
            ReadCheck { lpn, oldest, newest, got }
        };
        if !self.device.allows(lpn, floor, got) {
            self.wrong += 1;
            let newest = self.device.newest(lpn);
            self.first_wrong.get_or_insert(read(newest, lpn, floor));
            return;
        }
        let Some(clients) = &mut self.clients else { return };
        let is_spoiled = got.is_spoiled() || change.spoils.contains(&lpn);
        let (asked, floor) = (lpn.wrapping_sub(change.away), clients.floors[tag][i]);
        if is_spoiled || !clients.belief.allows(asked, floor, got) {
            self.wrong_by_rule += 1;
            let newest = clients.belief.newest(asked);
            self.first_by_rule.get_or_insert(read(newest, asked, floor));
        }
    }
}

impl Payload for Tags {
    type Mode = WithMedia;

    fn attach(&mut self, slices: u32, buffer_slots: usize, logical_blocks: u32) {
        self.slices = huge_vec(slices as usize);
        self.buffer = vec![Content::default(); buffer_slots];
        self.moving = vec![Vec::new(); TAGS];
        self.floors = vec![Vec::new(); TAGS];
        self.sent = vec![None; TAGS];
        self.device = Belief::new(logical_blocks as usize);
        if let Some(clients) = &mut self.clients {
            clients.belief = Belief::new(logical_blocks as usize);
            clients.floors = vec![Vec::new(); TAGS];
        }
    }

    fn preset(&mut self, lpn: u32, ppn: Ppn) {
        self.slices[ppn.0 as usize] = Content::of(lpn, 1).0;
        self.device.preset(lpn);
        self.clients.iter_mut().for_each(|clients| clients.belief.preset(lpn));
    }

    fn begin(&mut self, tag: u8, request: &BlockRequest, lpn: u32) {
        let t = usize::from(tag);
        self.sent[t] = Some((*request, lpn));
        let n = request.blocks as usize;
        let change = self.clients.as_ref().map(|clients| clients.change(request.cookie)).unwrap_or_default();
        let mut moving = std::mem::take(&mut self.moving[t]);
        moving.clear();
        match request.op {
            BlockOp::Write | BlockOp::WriteFua | BlockOp::Discard | BlockOp::ResetZone => {
                let discard = matches!(request.op, BlockOp::Discard | BlockOp::ResetZone);
                moving.extend((lpn..).take(n).map(|l| self.write_begins(l, discard, &change)));
            }
            BlockOp::Read => {
                moving.resize(n, Content::TORN);
                self.floors[t].clear();
                self.floors[t].extend((lpn..).take(n).map(|l| self.device.floor(l)));
                if let Some(Clients { belief, floors, .. }) = &mut self.clients {
                    floors[t].clear();
                    floors[t].extend((lpn.wrapping_sub(change.away)..).take(n).map(|l| belief.floor(l)));
                }
            }
            BlockOp::FinishZone => {}
            BlockOp::Flush => {
                self.device.flush_begins(t);
                self.clients.iter_mut().for_each(|clients| clients.belief.flush_begins(t));
            }
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
        let change = self.clients.as_ref().map(|clients| clients.change(request.cookie)).unwrap_or_default();
        let moving = std::mem::take(&mut self.moving[t]);
        for (i, &content) in moving.iter().enumerate() {
            let lpn = lpn + i as u32;
            match request.op {
                BlockOp::Read if good => self.check((t, i), lpn, content, &change),
                BlockOp::Read | BlockOp::Flush => {}
                op => {
                    let (version, fua) = (content.version(), op == BlockOp::WriteFua);
                    self.device.write_ends(lpn, version, good, fua);
                    if let Some(clients) = self.clients.as_mut().filter(|_| change.away == 0) {
                        clients.belief.write_ends(lpn, version, good, fua);
                    }
                }
            }
        }
        self.moving[t] = moving;
        if request.op == BlockOp::Flush {
            self.device.flush_ends(t, good);
            self.clients.iter_mut().for_each(|clients| clients.belief.flush_ends(t, good));
        }
    }

    fn rule(&mut self, request: &BlockRequest, lpn: u32, ruled: Ruled) {
        let Some(clients) = &mut self.clients else { return };
        let cookie = request.cookie as usize;
        if clients.changes.len() <= cookie {
            clients.changes.resize(cookie + 1, Change::default());
            clients.kept.resize_with(cookie + 1, Kept::default);
        }
        match ruled {
            Ruled::Sent { asked, spoils } => {
                let spoils = lpn + spoils.start..lpn + spoils.end;
                clients.changes[cookie] = Change { away: request.block.wrapping_sub(asked), spoils };
            }
            Ruled::Kept => {
                let Clients { belief, kept, .. } = clients;
                kept[cookie].request = Some((*request, lpn));
                kept[cookie].versions.clear();
                if request.op == BlockOp::Flush {
                    return belief.flush_begins(TAGS + cookie);
                }
                for lpn in (lpn..).take(request.blocks as usize) {
                    let version = 1 + belief.sent(lpn).max(self.device.sent(lpn));
                    belief.write_begins(lpn, version, request.op == BlockOp::Discard);
                    kept[cookie].versions.push(version);
                }
            }
            Ruled::Over { good } => {
                clients.changes[cookie] = Change::default();
                clients.over(cookie, good);
            }
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
        self.buffer.fill(Content::TORN);
        self.device.power_cut();
        if let Some(clients) = &mut self.clients {
            (0..clients.kept.len()).for_each(|cookie| clients.over(cookie, false));
            clients.belief.power_cut();
        }
    }

    fn process_bytes(&self) -> u64 {
        let beliefs = 1 + u64::from(self.clients.is_some());
        self.slices.len() as u64 * 8 + beliefs * self.device.bytes()
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
    /// What a rule did is told apart from what the device did.
    #[test]
    fn a_client_is_judged_by_what_it_asked() {
        let fill = |tags: &mut Tags, op, ppn: u32| {
            tags.begin(1, &request(op), 3);
            tags.execute(MediaOp::Fill { tag: 1, index: 0, slot: 0 });
            tags.execute(MediaOp::Program { slot: 0, ppn: Ppn(ppn), lpn: None, sequence: 0 });
            tags.end(1, &request(op), 3, true);
        };
        let (write, sent) = (request(BlockOp::Write), |asked, spoils| Ruled::Sent { asked, spoils });
        let over = |tags: &mut Tags, good| tags.rule(&write, 3, Ruled::Over { good });
        let read_after = |what: &str, by_rule: u64, ppn: u32, tags: &mut Tags| {
            assert_eq!((read(tags, Ppn(ppn)), tags.wrong_by_rule), (0, by_rule), "{what}");
        };
        let with_rules = || {
            let mut tags = Tags::with_rules();
            tags.attach(16, 4, 8);
            tags.preset(3, Ppn(0));
            tags
        };

        let tags = &mut with_rules();
        tags.rule(&write, 3, Ruled::Kept);
        read_after("it may have been done or not", 0, 0, tags);
        over(tags, true);
        read_after("it was answered, and not done", 1, 0, tags);
        fill(tags, BlockOp::Write, 4);
        read_after("a later write is there", 1, 4, tags);

        let tags = &mut with_rules();
        tags.rule(&write, 3, Ruled::Kept);
        tags.power_cut();
        over(tags, true);
        read_after("the power took it before it was answered", 0, 0, tags);

        let tags = &mut with_rules();
        tags.rule(&request(BlockOp::WriteFua), 3, Ruled::Kept);
        over(tags, true);
        tags.power_cut();
        read_after("FUA was answered before the cut", 1, 0, tags);

        let tags = &mut with_rules();
        tags.rule(&write, 3, Ruled::Kept);
        over(tags, true);
        tags.power_cut();
        read_after("nothing was flushed", 0, 0, tags);

        let tags = &mut with_rules();
        fill(tags, BlockOp::Write, 4);
        tags.rule(&request(BlockOp::Flush), 3, Ruled::Kept);
        over(tags, true);
        tags.power_cut();
        read_after("the flush was answered, and not done", 1, 0, tags);

        let tags = &mut with_rules();
        tags.rule(&write, 3, sent(3, 0..1));
        fill(tags, BlockOp::Write, 4);
        over(tags, true);
        read_after("what is there is not what was written", 1, 4, tags);

        let tags = &mut with_rules();
        tags.rule(&write, 3, sent(5, 0..1));
        fill(tags, BlockOp::Write, 4);
        over(tags, true);
        read_after("a write of another block came here", 1, 4, tags);

        let tags = &mut with_rules();
        tags.rule(&request(BlockOp::Read), 3, sent(5, 0..0));
        read_after("block 5 was never written, and this is not it", 1, 0, tags);
        over(tags, true);
        read_after("it was one read", 1, 0, tags);
    }
}
