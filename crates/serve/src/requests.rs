// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests at the device: their steps are submitted, their ends awaited, and held back as orders say. They come from
//! clients in a server and from a recording in a replay, and the device sees the same of both. It knows neither socket
//! nor file.

use crate::edges::{Ask, BLOCK, Steps};
use crate::jobs::{Failure, Job, Jobs, Owner};
use crate::nbd::Errno;
use crate::promises::Promises;
use crate::troubles::{Troubles, flip};
use readpath_host::SenseData;
use readpath_kit::Ns;
use readpath_run::Port;
use readpath_stack::Fault;
use readpath_workload::{Io, IoKind};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The requests at the device.
#[derive(Default)]
pub(crate) struct Requests {
    jobs: Jobs,
    pub(crate) troubles: Troubles,
    promises: Promises,
    /// Requests that have ended and are answered later: when, their numbers and cookies.
    held: BinaryHeap<Reverse<(Ns, u64, u32)>>,
    /// How often they have been let go.
    let_go: u32,
    ended: VecDeque<Job>,
}

impl Requests {
    /// Requests that have not ended.
    pub(crate) fn count(&self) -> u32 {
        self.jobs.count()
    }

    /// Requests that wait for others of the same blocks.
    pub(crate) fn waiting(&self) -> usize {
        self.jobs.waiting()
    }

    /// The request as a run names it.
    pub(crate) fn io(&self, cookie: u32) -> Io {
        self.jobs.io(cookie)
    }

    /// The next request that has ended.
    pub(crate) fn poll(&mut self) -> Option<Job> {
        self.ended.pop_front()
    }

    /// When a request that is held back is to be answered.
    pub(crate) fn next_at(&self) -> Ns {
        match self.held.peek() {
            Some(_) if self.let_go != self.troubles.times_let_go() => Ns::ZERO,
            Some(&Reverse((at, ..))) => at,
            None => Ns::NEVER,
        }
    }

    /// Takes a request in; its steps are not known yet. `spare` gives a buffer that its owner does not need.
    pub(crate) fn add(
        &mut self,
        port: &mut impl Port,
        now: Ns,
        mut job: Job,
        spare: &mut dyn FnMut(Owner) -> Option<Vec<u8>>,
    ) {
        let fails = self.promises.fails(&mut job);
        if let Some((ask, bytes)) = self.troubles.what_is_done(now, &mut job) {
            if fails {
                job.failure = Some((Errno::Io, "the device lost its power, and writes that were answered".to_owned()));
            }
            job.steps = Steps::new(ask, job.place(), bytes);
        }
        if let Some(cookie) = self.jobs.add(job) {
            self.go_on(port, now, cookie, spare);
        }
    }

    /// The device has lost its power, and with it what was in its write buffer.
    pub(crate) fn power_was_lost(&mut self) {
        self.troubles.power_was_lost();
        self.promises.power_was_lost();
    }

    /// Every request that has not ended is lost with the power of host and device. Returns them in order.
    pub(crate) fn lose(&mut self) -> Vec<Job> {
        self.held.clear();
        // Clients begin anew.
        self.promises = Promises::default();
        let mut lost = std::mem::take(&mut self.jobs).into_jobs();
        lost.sort_by_key(|job| job.number);
        for job in &mut lost {
            job.failure = Some((Errno::Shutdown, "it was lost with the power".to_owned()));
        }
        lost
    }

    /// Submits the step of a request that is due, or lets it end.
    fn go_on(&mut self, port: &mut impl Port, now: Ns, cookie: u32, spare: &mut dyn FnMut(Owner) -> Option<Vec<u8>>) {
        let job = self.jobs.get_mut(cookie);
        if !job.steps.have_begun() || begins_again(job, self.troubles.power_losses()) {
            job.power_losses = self.troubles.power_losses();
        }
        if job.steps.now().is_none() || job.failure.is_some() {
            let until = self.troubles.held_until(now, job);
            let number = job.number;
            if until > now {
                self.let_go();
                return self.held.push(Reverse((until, number, cookie)));
            }
            return self.end(port, now, cookie, spare);
        }
        let owner = job.owner;
        let (request, data) = self.jobs.request(cookie, || spare(owner?));
        port.bring(cookie, request.block, data);
        port.submit(now, &request);
    }

    fn end(&mut self, port: &mut impl Port, now: Ns, cookie: u32, spare: &mut dyn FnMut(Owner) -> Option<Vec<u8>>) {
        let mut job = self.jobs.end(cookie);
        if let Some(bit) = job.fate.flips {
            let head = job.offset % BLOCK as u64;
            flip(&mut job.data, head * 8 + bit);
        }
        self.promises.ended(&job);
        self.ended.push_back(job);
        while let Some(waiting) = self.jobs.next_waiting() {
            self.go_on(port, now, waiting, spare);
        }
    }

    /// A step has ended, or was refused.
    pub(crate) fn step_ended(
        &mut self,
        port: &mut impl Port,
        cookie: u32,
        refused: Option<SenseData>,
        now: Ns,
        spare: &mut dyn FnMut(Owner) -> Option<Vec<u8>>,
    ) {
        let (data, fault) = port.take(cookie);
        let failure = match (refused, fault) {
            (Some(sense), _) => Some(refusal(sense)),
            (None, Some(Fault::Medium(what))) => Some((Errno::Io, what)),
            (None, Some(Fault::Write(what))) => Some((Errno::NoSpace, format!("the image cannot be written: {what}"))),
            (None, None) => None,
        };
        match failure {
            Some(failure) => self.jobs.fail(cookie, failure),
            None => _ = self.jobs.step_done(cookie, data),
        }
        self.go_on(port, now, cookie, spare);
    }

    /// Ends the requests that were held back until now.
    pub(crate) fn release(&mut self, port: &mut impl Port, now: Ns, spare: &mut dyn FnMut(Owner) -> Option<Vec<u8>>) {
        self.let_go();
        while self.next_at() <= now {
            let Some(Reverse((_, _, cookie))) = self.held.pop() else { return };
            let job = self.jobs.get_mut(cookie);
            // Data that became durable before the power loss is still there.
            if !job.ask.is_durable() && begins_again(job, self.troubles.power_losses()) {
                self.go_on(port, now, cookie, spare);
            } else {
                self.end(port, now, cookie, spare);
            }
        }
    }

    /// Ends the holding back of answers, if an order asked for that.
    fn let_go(&mut self) {
        let times = self.troubles.times_let_go();
        if std::mem::replace(&mut self.let_go, times) != times {
            self.held =
                self.held.drain().map(|Reverse((_, number, cookie))| Reverse((Ns::ZERO, number, cookie))).collect();
        }
    }
}

/// Whether all steps of a request are due again because the device has lost its power since the first: their changes
/// may be lost. A flush fails instead, since the writes that it covers have been answered and cannot be repeated.
fn begins_again(job: &mut Job, power_losses: u32) -> bool {
    if job.power_losses == power_losses || job.failure.is_some() || job.ask.kind() == IoKind::Read {
        return false;
    }
    if job.ask == Ask::Flush && job.owner.is_some() {
        job.failure = Some((Errno::Io, "the device lost its power before the flush was done".to_owned()));
        return false;
    }
    job.steps.begin_again();
    true
}

/// A refusal of the device, for a client.
fn refusal(sense: SenseData) -> Failure {
    let SenseData { key, asc, ascq, .. } = sense;
    let errno = match key {
        7 => Errno::NoSpace,
        5 => Errno::Inval,
        _ => Errno::Io,
    };
    let what = match (key, asc) {
        (7, 0x27) => "so many blocks have gone bad that what is left does not hold the capacity",
        _ => "see SPC-4",
    };
    (errno, format!("the device refused it with sense {key:X}h/{asc:02X}h/{ascq:02X}h ({what})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_informed_why_the_device_refuses() {
        for (key, asc, errno, says) in [
            (7, 0x27, Errno::NoSpace, "gone bad"),
            (7, 0, Errno::NoSpace, "7h/00h/00h"),
            (5, 0x21, Errno::Inval, "5h/21h/00h"),
            (3, 0x11, Errno::Io, "3h/11h/00h"),
        ] {
            let (found, what) = refusal(SenseData { key, asc, ascq: 0 });
            assert!(found == errno && what.contains(says), "{key:X}h/{asc:02X}h: {found:?}, {what}");
        }
    }
}
