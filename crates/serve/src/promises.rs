// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes that were answered and are not durable, and clients that have to hear of their loss: a flush that covers
//! them fails. It knows no device.

use crate::edges::Ask;
use crate::jobs::Job;
use readpath_workload::IoKind;
use std::collections::BTreeSet;

/// What was answered before flushes, and was lost.
#[derive(Default)]
pub(crate) struct Promises {
    /// Changes that were answered without a promise, and how many of these a flush has made durable.
    answered: u64,
    durable: u64,
    /// The newest connection that has asked for something.
    newest: u32,
    /// The newest connection that had when answered changes were lost, and those that have heard of it.
    lost_until: u32,
    heard: BTreeSet<u32>,
}

impl Promises {
    /// A request has arrived. Whether it is a flush that fails, because what it covers was lost.
    pub(crate) fn fails(&mut self, job: &mut Job) -> bool {
        job.covers = self.answered;
        let Some((_, client)) = job.owner else { return false };
        self.newest = self.newest.max(client);
        job.ask == Ask::Flush && client <= self.lost_until && !self.heard.contains(&client)
    }

    /// A request is answered.
    pub(crate) fn ended(&mut self, job: &Job) {
        match (job.ask, &job.failure, job.owner) {
            (Ask::Flush, None, _) => self.durable = self.durable.max(job.covers),
            (Ask::Flush, Some(_), Some((_, client))) if client <= self.lost_until => _ = self.heard.insert(client),
            (ask, None, _) if matches!(ask.kind(), IoKind::Write | IoKind::Trim) && !ask.is_durable() => {
                self.answered += 1;
            }
            _ => {}
        }
    }

    /// The device has lost its power, and clients do not know.
    pub(crate) fn power_was_lost(&mut self) {
        if self.durable < self.answered {
            self.lost_until = self.newest;
            self.heard.clear();
        }
        self.durable = self.answered;
    }
}
