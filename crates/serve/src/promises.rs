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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbd::Errno;

    /// A request of a connection is answered; whether it failed.
    fn asked(promises: &mut Promises, client: u32, ask: Ask) -> bool {
        let mut job = Job { owner: Some((0, client)), ask, ..Job::default() };
        let fails = promises.fails(&mut job);
        job.failure = fails.then(|| (Errno::Io, String::new()));
        promises.ended(&job);
        fails
    }

    #[test]
    fn each_loss_fails_the_next_flush_of_each_connection_that_was_there() {
        let mut promises = Promises::default();
        for newcomer in 3..5 {
            assert!(!asked(&mut promises, 1, Ask::Write { fua: false }));
            assert!(!asked(&mut promises, 2, Ask::Flush) && !asked(&mut promises, 1, Ask::Write { fua: false }));
            promises.power_was_lost();
            assert_eq!(
                [1, 1, 2, 2, newcomer].map(|client| asked(&mut promises, client, Ask::Flush)),
                [true, false, true, false, false]
            );
        }
    }

    #[test]
    fn nothing_was_lost_that_was_flushed_or_promised() {
        let mut promises = Promises::default();
        asked(&mut promises, 1, Ask::Write { fua: false });
        asked(&mut promises, 1, Ask::Flush);
        asked(&mut promises, 1, Ask::Write { fua: true });
        promises.power_was_lost();
        assert!(!asked(&mut promises, 1, Ask::Flush));
    }
}
