// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording in virtual time: the requests that a server was asked, at the moments at which it was, on an image as it
//! was then. Host and device decide as they did; what is left out is the machine that the server ran on. It knows no
//! file by name.

use crate::clients::LAST;
use crate::edges::Ask;
use crate::host::Host;
use crate::jobs::Job;
use crate::lateness::Lateness;
use crate::orders::{Order, Refused};
use crate::record::{Asked, Item, Recorded, Start, counters};
use crate::requests::Requests;
use crate::server::ServeError;
use readpath_config::DevicePreset;
use readpath_device::{DeviceStats, Probe};
use readpath_flash::DieSched;
use readpath_host::{HpbCounters, SenseData};
use readpath_kit::{BLOCK_BYTES, Histogram, Ns};
use readpath_run::rules::RuleCount;
use readpath_run::{Hooks, Parts, Port, RunError, Source, Virtual, Work, drive};
use readpath_stack::{Payload, Stack, Typed, Wire};
use readpath_store::{Disk, Image, Store};
use readpath_workload::{Io, IoKind};
use std::collections::{BTreeMap, VecDeque};

/// What a replay found.
pub struct Replayed {
    /// Requests.
    pub requests: u64,
    /// Requests with the same modelled time as when they were served.
    pub same: u64,
    /// The first that it did not: its number, and the times then and now.
    pub first_other: Option<(u64, Ns, Ns)>,
    /// Modelled and served latencies of the requests that were served in real time.
    pub lateness: Lateness,
    /// Modelled latencies of all.
    pub modelled: Histogram,
    /// Device time at the end.
    pub end: Ns,
    /// What the device did since it was last switched on.
    pub device: DeviceStats,
    /// What the host's HPB did since then.
    pub hpb: Option<HpbCounters>,
    /// What rules have done.
    pub rules: Vec<RuleCount>,
    /// Requests and orders that were left out, because some before them are missing.
    pub left_out: u64,
    /// Counters that were others when they were served: name, value then, value now. None if the recording does not
    /// have its end.
    pub other_counters: Option<Vec<(String, u64, u64)>>,
}

/// Replays a recording on the image of a device of `base` that it began with; the image stays as it is. `progress` is
/// called with the number of requests that have ended; false stops the replay.
///
/// # Errors
/// The recording is of another device or began from another state, or the device cannot begin from the image.
pub fn replay<D: Disk>(
    image: Image<D>,
    base: &DevicePreset,
    recorded: Recorded,
    progress: impl FnMut(u64) -> bool,
) -> Result<Replayed, ServeError> {
    replay_with(image, base, recorded, Progress(progress)).map(|(replayed, _)| replayed)
}

/// [`replay`] with any hooks.
pub(crate) fn replay_with<D: Disk, H: Hooks>(
    image: Image<D>,
    base: &DevicePreset,
    recorded: Recorded,
    hooks: H,
) -> Result<(Replayed, H), ServeError> {
    let Recorded { device, host, start, items, end, counters: counted, data, left_out, .. } = recorded;
    if device != base.name {
        return Err(ServeError::Recording(format!("it is of a device {device}, and the image of a {}", base.name)));
    }
    let units: Vec<u64> = base.device.lus.iter().map(|unit| u64::from(unit.blocks) * u64::from(BLOCK_BYTES)).collect();
    if let Some(fault) = fault(&items, &units) {
        return Err(ServeError::Recording(fault));
    }
    let host: Host = host.parse().map_err(|error| ServeError::Recording(format!("its host: {error}")))?;
    let last = items.last().map_or(Ns::ZERO, |&(_, at, _)| at);
    let known_until = if end.is_some() { Ns::NEVER } else { last };
    let mut replay = Replay {
        start: Some(start),
        on: Ns::ZERO,
        source: Asker {
            items: items.into(),
            data,
            new_host: None,
            requests: Requests::default(),
            has_flushed: false,
            same: 0,
            total: 0,
            first_other: None,
            known_until,
            lateness: Lateness::default(),
            modelled: Histogram::default(),
            asked: Vec::new(),
        },
        hooks,
    };
    let (mut payload, mut host) = (Store::new(image.array), host);
    loop {
        let (preset, config) = host.of(base).map_err(ServeError::Host)?;
        let parts = Parts { preset: &preset, host: config, payload, probe: (), wire: Typed };
        let (kept, next, lived) = parts.stack_for(&mut replay)??;
        if let Some(next) = next {
            (payload, host) = (kept, next);
            continue;
        }
        let (device, hpb) = lived;
        let now = counters(&device, hpb.as_ref());
        let others = counted.iter().filter_map(|(name, then)| {
            let value = now.iter().find(|(known, _)| known == name).map_or(0, |&(_, value)| value);
            (value != *then).then(|| (name.clone(), *then, value))
        });
        let Asker { same, total, first_other, lateness, modelled, requests, .. } = replay.source;
        let replayed = Replayed {
            requests: total,
            same,
            first_other,
            lateness,
            modelled,
            end: replay.on,
            device,
            hpb,
            rules: requests.troubles.rules.counts(),
            left_out,
            other_counters: end.map(|_| others.collect()),
        };
        return Ok((replayed, replay.hooks));
    }
}

/// Why these items cannot be replayed on logical units of so many bytes, if they cannot.
pub(crate) fn fault(items: &[(u64, Ns, Item)], units: &[u64]) -> Option<String> {
    let mut last = Ns::ZERO;
    items.iter().find_map(|(number, at, item)| {
        let is_early = *at < std::mem::replace(&mut last, *at);
        match item {
            _ if is_early => Some(format!("number {number} is earlier than the one before")),
            _ if *at > LAST => Some(format!("number {number} comes later than a server runs")),
            Item::Request(Asked { unit, offset, bytes, .. }) if beyond(*unit, *offset, *bytes, units) => {
                Some(match units.get(usize::from(*unit)) {
                    Some(unit_bytes) => format!("request {number} ends beyond the unit, which has {unit_bytes} bytes"),
                    None => format!("request {number} is of logical unit {unit}, and there are {}", units.len()),
                })
            }
            Item::Request(asked) if (asked.bytes == 0) != (asked.ask.kind() == IoKind::Flush) => {
                Some(format!("request {number} has {} bytes", asked.bytes))
            }
            _ => None,
        }
    })
}

/// Whether there are no such bytes on one of these logical units.
fn beyond(unit: u8, offset: u64, bytes: u32, units: &[u64]) -> bool {
    let end = offset.checked_add(u64::from(bytes));
    end.is_none_or(|end| units.get(usize::from(unit)).is_none_or(|&unit_bytes| end > unit_bytes))
}

/// Makes the recorded requests, and carries out the recorded orders.
struct Asker {
    /// Remaining entries: numbers, times, requests and orders.
    items: VecDeque<(u64, Ns, Item)>,
    /// Data of writes, by their numbers, if it was recorded.
    data: BTreeMap<u64, Vec<u8>>,
    /// The host that takes over when all requests in flight have ended.
    new_host: Option<Host>,
    requests: Requests,
    /// The flush before the device is switched off has ended.
    has_flushed: bool,
    same: u64,
    total: u64,
    first_other: Option<(u64, Ns, Ns)>,
    /// Requests after this time are not all in the recording, and may have delayed those that ended later.
    known_until: Ns,
    lateness: Lateness,
    modelled: Histogram,
    /// Requests under way.
    asked: Vec<Asked>,
}

impl Asker {
    /// When the next item comes, if it is an order as asked for.
    fn next_item_at(&self, is_order: bool) -> Ns {
        let next = self.items.front().filter(|(.., item)| matches!(item, Item::Order(_)) == is_order);
        next.map_or(Ns::NEVER, |&(_, at, _)| at)
    }

    fn hear_ends(&mut self, now: Ns) -> Option<(IoKind, Ns)> {
        let mut last = None;
        while let Some(job) = self.requests.poll() {
            last = self.hear_end(job, now).or(last);
        }
        last
    }

    fn hear_end(&mut self, job: Job, now: Ns) -> Option<(IoKind, Ns)> {
        let place = self.asked.iter().position(|asked| asked.number == job.number)?;
        let asked = self.asked.swap_remove(place);
        let modelled = now - job.since;
        if asked.client.is_none() {
            self.has_flushed = job.failure.is_none();
            if !self.has_flushed {
                self.new_host = None;
                self.requests.troubles.drain(false);
            }
        }
        self.total += 1;
        self.modelled.record(modelled.0);
        self.same += u64::from(asked.modelled == modelled);
        if asked.modelled != modelled && asked.at.0.saturating_add(asked.modelled.0) <= self.known_until.0 {
            self.first_other.get_or_insert((asked.number, asked.modelled, modelled));
        }
        if let Some(served) = asked.served {
            self.lateness.compare(modelled, served);
        }
        Some((job.ask.kind(), modelled))
    }
}

impl Source for Asker {
    fn next_at(&self) -> Ns {
        self.next_item_at(false).min(self.requests.next_at())
    }

    fn act(&mut self, port: &mut impl Port, now: Ns, _: Ns) {
        self.requests.release(port, now, &mut |_| None);
        self.hear_ends(now);
        while self.next_item_at(false) <= now {
            let Some((.., Item::Request(asked))) = self.items.pop_front() else { return };
            let Asked { unit, ask, offset, bytes, number, client, .. } = asked;
            // What the data is does not matter to host and device, but it has its length.
            let mut data = self.data.remove(&number).unwrap_or_default();
            data.resize(if matches!(ask, Ask::Write { .. }) { bytes as usize } else { 0 }, 0);
            let owner = client.map(|client| (0, client));
            let job = Job { owner, unit, number, ask, offset, bytes, data, since: now, ..Job::default() };
            self.asked.push(asked);
            self.requests.add(port, now, job, &mut |_| None);
            self.hear_ends(now);
        }
    }

    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        self.requests.step_ended(port, cookie, None, now, &mut |_| None);
        self.hear_ends(now)
    }

    fn refused(&mut self, port: &mut impl Port, cookie: u32, sense: SenseData, now: Ns) -> Result<(), RunError> {
        self.requests.step_ended(port, cookie, Some(sense), now, &mut |_| None);
        self.hear_ends(now);
        Ok(())
    }

    fn io(&self, cookie: u32) -> Io {
        self.requests.io(cookie)
    }

    fn in_flight(&self) -> u32 {
        self.requests.count()
    }

    fn is_over(&self) -> bool {
        self.requests.count() == 0 && (self.items.is_empty() || (self.has_flushed && self.new_host.is_some()))
    }

    fn work_at(&self) -> Ns {
        self.next_item_at(true)
    }

    fn work<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
    ) -> Result<Ns, RunError> {
        let Some((.., Item::Order(order))) = self.items.pop_front() else { return Ok(now) };
        let carried = match order.carry_out(stack, &mut self.requests, now) {
            Ok(carried) => carried,
            Err(Refused::Run(error)) => return Err(error),
            // It was possible when it was recorded; if it is not, latencies differ.
            Err(Refused::Order(_)) => return Ok(now),
        };
        if let Order::Host(host) = order {
            self.new_host = Some(host);
        }
        carried.lost.into_iter().for_each(|job| _ = self.hear_end(job, now));
        Ok(carried.after)
    }

    fn lost(&mut self, _: &mut impl Port, _: Ns) {
        unreachable!("nothing takes the host's power in a replay")
    }
}

/// Reports how many requests have ended.
struct Progress<F>(F);

impl<F: FnMut(u64) -> bool> Hooks for Progress<F> {
    fn watch<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        _: &mut Stack<S, X, P, W>,
        ios: u64,
        _: Ns,
    ) -> bool {
        (self.0)(ios)
    }
}

struct Replay<H> {
    /// What the device has to begin with, at first.
    start: Option<Start>,
    /// When the device is switched on.
    on: Ns,
    source: Asker,
    hooks: H,
}

/// The data, the host that is to take over, if one is, and what was counted.
type Lived<D> = (Store<D>, Option<Host>, (DeviceStats, Option<HpbCounters>));

impl<D: Disk, H: Hooks> Work<Store<D>, (), Typed> for &mut Replay<H> {
    type Output = Result<Lived<D>, ServeError>;

    fn on<S: DieSched>(self, mut stack: Stack<S, Store<D>, (), Typed>) -> Self::Output {
        let recovery = stack.power_on_with(self.on, Store::array_mut, &mut |_| {})?;
        if let Some(start) = self.start.take() {
            let here = Start::new(&recovery, stack.device.valid_slices(), &stack.device.wear());
            start.is(&here).map_err(ServeError::Recording)?;
        }
        let from = stack.start(recovery.ready_at)?;
        self.source.has_flushed = false;
        self.source.requests.troubles.drain(false);
        let driven = drive(&mut stack, &mut self.source, &mut self.hooks, &mut Virtual, from)?;
        self.on = driven.end;
        let counted = (*stack.device.stats(), stack.host.all_counters());
        let host = self.source.new_host.take();
        Ok((stack.payload, host, counted))
    }
}
