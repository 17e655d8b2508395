// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the host driver of this program with a traced driver, such as Linux's. Our driver gets the block requests
//! and the replies of the trace, in their order, and its decisions are compared: whether a read is an HPB READ, which
//! sub-regions are loaded, which regions are dropped.
//!
//! A trace is seen from the device, and the other host hears of a reply later: when it looks at the doorbell. A trace
//! of `readpath attach` says when that was; then our host hears of the same replies at once, in the order of their
//! tags, as Linux does. What the other does after it has looked and before it sends a command is not seen. So around
//! the moment at which a region changes, the two may differ; such differences are counted apart, with their cause.

use readpath_config::DevicePreset;
use readpath_flash::AnySched;
use readpath_host::{BlockOp, BlockRequest, Driver, HostConfig};
use readpath_kit::Ns;
use readpath_proto::hpb::Control;
use readpath_proto::scsi::parse_unmap;
use readpath_proto::typed::{
    Cdb, Command, FLAG_FUA, Reply, ReplyBody, Request, RequestBody, Response, Status, SubRegion,
};
use readpath_proto::upiu;
use readpath_stack::{NoData, Stack, StackError, Typed};
use readpath_workload::trace::TraceError;
use readpath_workload::trace::upius::Seen;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use thiserror::Error;

/// A host has taken every reply of the device after this time at most.
pub const HEARD_WITHIN: Ns = Ns::from_ms(20);
/// Differences that are kept in words.
const MOST: usize = 20;

/// Why two hosts cannot be compared.
#[derive(Debug, Error)]
pub enum ParityError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Our host does not find the device.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The trace has something in it that changes what hosts do, in ways that are not followed here.
    #[error("at {at} a command of the trace {what}; hosts are compared while nothing goes wrong")]
    Disturbed {
        /// When.
        at: Ns,
        /// What went wrong, as the verb of the sentence.
        what: &'static str,
    },
    /// The device is not one whose hosts are compared.
    #[error("{0}")]
    Device(&'static str),
}

/// Why a difference is to be expected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// The map of the region had just come to the host.
    MapJustCame,
    /// The region had just been dropped, or was to be loaded anew.
    RegionJustWent,
    /// The region was dropped before the host got to loading it.
    Overtaken,
    /// Our worker has loaded a region. The other host's worker has not, or has just done so: the regions behind this
    /// one still wait there.
    WorkerNotDone,
}

impl Cause {
    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            Cause::MapJustCame => "the map of the region was on its way to the host",
            Cause::RegionJustWent => "word that the region had changed was on its way to the host",
            Cause::WorkerNotDone => "the worker of the other host was not done",
            Cause::Overtaken => "the region was dropped before its turn to be loaded came",
        }
    }
}

/// What a comparison found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parity {
    /// Block requests of the trace.
    pub requests: u64,
    /// Reads that both send as HPB READ.
    pub both_hpb: u64,
    /// Reads that both send as READ.
    pub both_plain: u64,
    /// Sub-regions that both load.
    pub loads: u64,
    /// Regions that both drop.
    pub drops: u64,
    /// Differences that were to be expected, by their causes.
    pub tolerated: BTreeMap<Cause, u64>,
    /// Other differences.
    pub differences: u64,
    /// The first differences in words.
    pub told: Vec<String>,
}

impl Parity {
    fn differ(&mut self, what: String) {
        self.differences += 1;
        if self.told.len() < MOST {
            self.told.push(what);
        }
    }

    fn tolerate(&mut self, cause: Cause) {
        *self.tolerated.entry(cause).or_default() += 1;
    }
}

/// What our host waits for under a tag of its own.
#[derive(Clone, Copy, Debug)]
struct Ours {
    tag: u8,
    /// The map that it waits for: its region and bytes.
    map: Option<(u16, u32)>,
}

/// A command of HPB's own that our host has sent, and the traced host has not sent yet.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    lun: u8,
    at: SubRegion,
    tag: u8,
    map_bytes: u32,
    since: Ns,
}

/// When a region changed, and how.
#[derive(Clone, Copy, Debug, Default)]
struct Changed {
    came: Option<Ns>,
    went: Option<Ns>,
}

struct Comparison {
    host: Driver,
    parity: Parity,
    region_blocks: u32,
    units: u8,
    has_own_timers: bool,
    /// Commands of our host in flight, by the tag of the traced host.
    under_way: BTreeMap<u8, Vec<Ours>>,
    loads: VecDeque<Wanted>,
    drops: VecDeque<Wanted>,
    /// Commands that do not concern our host.
    others: BTreeSet<u8>,
    /// The command of a block request that was submitted last: its tag, and whether it is an HPB READ.
    sent: Option<(u8, bool)>,
    changed: BTreeMap<(u8, u16), Changed>,
    /// Replies that the traced host has not taken.
    unheard: BTreeMap<u8, Reply>,
    /// The trace says when the traced host takes replies.
    tells_heard: bool,
    /// When the other's worker loaded a region, of which unit, if nothing has interrupted it since.
    works: Option<(u8, Ns)>,
}

/// Compares the host `config` on a device of `preset` with the one whose trace this is, from when that was switched on.
///
/// # Errors
/// The trace cannot be read, or something went wrong in it.
pub fn parity(
    events: impl Iterator<Item = Result<Seen, TraceError>>,
    preset: &DevicePreset,
    config: HostConfig,
) -> Result<Parity, ParityError> {
    let Some(hpb) = preset.device.standard_hpb() else {
        return Err(ParityError::Device("the device has no HPB of JESD220-3"));
    };
    if preset.device.lus.iter().any(|lu| lu.pinned_regions > 0) {
        return Err(ParityError::Device("pinned regions are loaded while a host probes, which is not followed"));
    }
    let region_blocks = 1 << (hpb.region_size - 3);
    let mut stack: Stack<AnySched, NoData, (), Typed> =
        Stack::new(&preset.device, config, preset.delays, NoData, (), Typed)?;
    let begun = stack.start(Ns::ZERO)?;
    let mut comparison = Comparison {
        host: stack.host,
        parity: Parity::default(),
        region_blocks,
        units: preset.device.lus.len() as u8,
        has_own_timers: hpb.control != Control::Host,
        under_way: BTreeMap::new(),
        loads: VecDeque::new(),
        drops: VecDeque::new(),
        others: BTreeSet::new(),
        sent: None,
        changed: BTreeMap::new(),
        unheard: BTreeMap::new(),
        tells_heard: false,
        works: None,
    };
    let mut now = begun;
    for event in events {
        match event? {
            Seen::Upiu { time, wall, bytes, data, .. } => {
                now = now.max(Ns(begun.0.saturating_add(wall.unwrap_or(time).0)));
                comparison.advance(now);
                // A UPIU that is not understood was rejected by the device, and does not concern a host's HPB.
                match bytes.first().copied().unwrap_or_default() & 0x20 {
                    0 => upiu::parse_request(&bytes).map_or(Ok(()), |(r, _)| comparison.request(now, &r, &data))?,
                    _ => upiu::parse_reply(&bytes).map_or(Ok(()), |(reply, _)| comparison.arrives(now, reply))?,
                }
            }
            Seen::Heard { time, wall } => {
                now = now.max(Ns(begun.0.saturating_add(wall.unwrap_or(time).0)));
                comparison.advance(now);
                comparison.tells_heard = true;
                comparison.hear(now)?;
            }
            Seen::NoReply { time, .. } => {
                return Err(ParityError::Disturbed { at: time, what: "was never answered" });
            }
            Seen::Mark { .. } => {}
        }
    }
    comparison.hear(now)?;
    Ok(comparison.end())
}

impl Comparison {
    /// Timers of our host. That of host control mode runs when the trace shows that the other host's timer ran: its
    /// phase is not known otherwise.
    fn advance(&mut self, now: Ns) {
        while self.has_own_timers && self.host.next_deadline() <= now {
            let at = self.host.next_deadline();
            self.host.advance(at);
            self.take(at);
        }
    }

    /// Notes the commands that our host sends.
    fn take(&mut self, now: Ns) {
        while let Some(Request { lun, tag, body }) = self.host.poll_request(now) {
            let RequestBody::Command(Command { cdb, .. }) = body else { continue };
            match cdb {
                Cdb::HpbReadBuffer { at, alloc, .. } => {
                    self.loads.push_back(Wanted { lun, at, tag, map_bytes: alloc, since: now });
                    self.went(lun, at.region, now);
                }
                Cdb::HpbInactivate { region } => {
                    let at = SubRegion { region, index: 0 };
                    self.drops.push_back(Wanted { lun, at, tag, map_bytes: 0, since: now });
                    self.went(lun, region, now);
                }
                cdb => self.sent = Some((tag, matches!(cdb, Cdb::HpbRead { .. }))),
            }
        }
        while self.host.poll_done().is_some() {}
    }

    fn went(&mut self, lun: u8, region: u16, now: Ns) {
        self.changed.entry((lun, region)).or_default().went = Some(now);
    }

    fn request(&mut self, now: Ns, request: &Request, data: &[u8]) -> Result<(), ParityError> {
        let &Request { lun, tag, body } = request;
        if self.unheard.contains_key(&tag) {
            // Its tag is free: it has heard.
            self.hear(now)?;
        }
        let RequestBody::Command(Command { cdb, .. }) = body else {
            self.others.insert(tag);
            return Ok(());
        };
        let block = |op, lba: u64, blocks| (op, lba as u32, blocks);
        let (op, first, blocks) = match cdb {
            _ if lun >= self.units => {
                self.others.insert(tag);
                return Ok(());
            }
            Cdb::Read { lba, blocks, .. } => block(BlockOp::Read, lba, blocks),
            Cdb::HpbRead { lba, blocks, .. } => block(BlockOp::Read, lba.into(), blocks.into()),
            Cdb::Write { lba, blocks, flags, .. } if flags & FLAG_FUA != 0 => block(BlockOp::WriteFua, lba, blocks),
            Cdb::Write { lba, blocks, .. } => block(BlockOp::Write, lba, blocks),
            Cdb::SynchronizeCache { .. } => block(BlockOp::Flush, 0, 0),
            Cdb::Unmap { .. } => {
                let ranges: Vec<_> = parse_unmap(data).into_iter().flatten().collect();
                for (lba, blocks) in ranges {
                    self.submit(now, lun, tag, BlockOp::Discard, lba as u32, blocks);
                }
                return Ok(());
            }
            Cdb::HpbReadBuffer { at, .. } => {
                self.wanted(now, lun, tag, at, true);
                return Ok(());
            }
            Cdb::HpbInactivate { region } => {
                self.wanted(now, lun, tag, SubRegion { region, index: 0 }, false);
                return Ok(());
            }
            _ => {
                self.others.insert(tag);
                return Ok(());
            }
        };
        self.submit(now, lun, tag, op, first, blocks);
        let Some((_, ours)) = self.sent.take() else {
            self.parity.differ(format!("{now}: block {first}: our host has no tag for it"));
            return Ok(());
        };
        if op == BlockOp::Read {
            self.compare(now, lun, first, blocks, (ours, matches!(cdb, Cdb::HpbRead { .. })));
        }
        Ok(())
    }

    fn submit(&mut self, now: Ns, lun: u8, tag: u8, op: BlockOp, block: u32, blocks: u32) {
        self.parity.requests += 1;
        self.sent = None;
        self.host.submit(&BlockRequest { cookie: tag.into(), lun, op, block, blocks });
        self.take(now);
        if let Some((ours, _)) = self.sent {
            self.under_way.entry(tag).or_default().push(Ours { tag: ours, map: None });
        }
    }

    fn compare(&mut self, now: Ns, lun: u8, first: u32, blocks: u32, (ours, theirs): (bool, bool)) {
        match (ours, theirs) {
            (true, true) => self.parity.both_hpb += 1,
            (false, false) => self.parity.both_plain += 1,
            _ => {
                let regions = first / self.region_blocks..=(first + blocks.max(1) - 1) / self.region_blocks;
                let changed = regions.filter_map(|region| self.changed.get(&(lun, region as u16)));
                let recent = |at: Option<Ns>| at.is_some_and(|at| now.saturating_sub(at) <= HEARD_WITHIN);
                let cause = changed.into_iter().find_map(|changed| match changed {
                    Changed { came, .. } if ours && recent(*came) => Some(Cause::MapJustCame),
                    Changed { went, .. } if theirs && recent(*went) => Some(Cause::RegionJustWent),
                    _ => None,
                });
                let loads = self.loads.iter().map(|wanted| (wanted.lun, wanted.since)).chain(self.works);
                let works = loads.into_iter().any(|(unit, since)| unit == lun && recent(Some(since)));
                let cause = cause.or((theirs && works).then_some(Cause::WorkerNotDone));
                match cause {
                    Some(cause) => self.parity.tolerate(cause),
                    None => self.parity.differ(format!(
                        "{now}: {blocks} blocks from {first} on: {} by our host, {} in the trace",
                        name(ours),
                        name(theirs)
                    )),
                }
            }
        }
    }

    /// The traced host sends a command of HPB's own: a load, or a drop.
    fn wanted(&mut self, now: Ns, lun: u8, tag: u8, at: SubRegion, is_load: bool) {
        let mut found = self.take_wanted(lun, at, is_load);
        if found.is_none() {
            // The timer of the traced host has just expired.
            self.host.poll_hpb(now);
            self.take(now);
            found = self.take_wanted(lun, at, is_load);
        }
        let Some(Wanted { tag: own, map_bytes, .. }) = found else {
            let what = if is_load { "loaded" } else { "dropped" };
            self.others.insert(tag);
            return self.parity.differ(format!("{now}: {at:?} is {what} in the trace, and not by our host"));
        };
        if is_load && self.tells_heard {
            self.works = Some((lun, now));
        }
        *(if is_load { &mut self.parity.loads } else { &mut self.parity.drops }) += 1;
        self.under_way.insert(tag, vec![Ours { tag: own, map: is_load.then_some((at.region, map_bytes)) }]);
    }

    fn take_wanted(&mut self, lun: u8, at: SubRegion, is_load: bool) -> Option<Wanted> {
        let ours = if is_load { &mut self.loads } else { &mut self.drops };
        let found = ours.iter().position(|wanted| wanted.lun == lun && wanted.at == at);
        found.and_then(|i| ours.remove(i))
    }

    /// A reply reaches the controller.
    fn arrives(&mut self, now: Ns, reply: Reply) -> Result<(), ParityError> {
        if !self.tells_heard {
            return self.reply(now, &reply);
        }
        self.unheard.insert(reply.tag, reply);
        Ok(())
    }

    /// The other looks at the doorbell, and goes through what has ended from the lowest tag on (Linux
    /// `__ufshcd_transfer_req_compl`).
    fn hear(&mut self, now: Ns) -> Result<(), ParityError> {
        self.works = None;
        while let Some((_, reply)) = self.unheard.pop_first() {
            self.reply(now, &reply)?;
        }
        Ok(())
    }

    fn reply(&mut self, now: Ns, reply: &Reply) -> Result<(), ParityError> {
        if self.others.remove(&reply.tag) {
            return Ok(());
        }
        let Some(all) = self.under_way.remove(&reply.tag) else { return Ok(()) };
        let ReplyBody::Response(Response { status: Status::Good, hpb, .. }) = &reply.body else {
            return Err(ParityError::Disturbed { at: now, what: "failed" });
        };
        if let Some(news) = hpb {
            let active = news.active.iter().take(news.active_count.into()).map(|at| at.region);
            let inactive = news.inactive.iter().take(news.inactive_count.into()).copied();
            for region in active.chain(inactive) {
                self.went(news.lun, region, now);
            }
        }
        for (i, Ours { tag, map }) in all.into_iter().enumerate() {
            let mut reply = Reply { tag, ..*reply };
            if i > 0
                && let ReplyBody::Response(response) = &mut reply.body
            {
                // The notification was delivered with the first part of the reply.
                response.hpb = None;
            }
            let mut bytes = 0;
            if let Some((region, map_bytes)) = map {
                self.changed.entry((reply.lun, region)).or_default().came = Some(now);
                bytes = map_bytes;
            }
            // The values of the entries do not matter: no read uses them here.
            self.host.on_reply(now, &reply, &vec![0x5A; bytes as usize]);
            self.take(now);
        }
        Ok(())
    }

    fn end(mut self) -> Parity {
        for (wanted, is_load) in self.loads.iter().map(|w| (w, true)).chain(self.drops.iter().map(|w| (w, false))) {
            let changed = self.changed.get(&(wanted.lun, wanted.at.region)).copied().unwrap_or_default();
            if is_load && changed.went.is_some_and(|at| at > wanted.since) {
                self.parity.tolerate(Cause::Overtaken);
            } else {
                let (at, since) = (wanted.at, wanted.since);
                let what = if is_load { "loaded" } else { "dropped" };
                self.parity.differ(format!("{since}: {at:?} is {what} by our host, and not in the trace"));
            }
        }
        self.parity
    }
}

fn name(is_hpb: bool) -> &'static str {
    if is_hpb { "HPB READ" } else { "READ" }
}
