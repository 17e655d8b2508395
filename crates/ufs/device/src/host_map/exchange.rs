// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is on its way between the device and its memory on the host, and what waits for the link there. It knows times
//! and operations, not what they are for.
//!
//! The link is a server in each direction, reserved when something arrives at it. Requests of the host arrive a
//! constant delay after they were sent, which is known beforehand, and could be reserved ahead; with answers from host
//! memory between them that would let an answer wait for a request that has not come yet. So both stand in line here.

use crate::ids::TagRef;
use readpath_flash::OpId;
use readpath_kit::{FrontQueue, Ns};
use std::collections::VecDeque;

/// A request of the host that has not come to the link yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    /// When it comes to the link.
    pub at: Ns,
    /// Its tag.
    pub tag: TagRef,
    /// Time that it takes there.
    pub span: Ns,
}

/// What the device asks of the host's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// Lines for an operation that waits.
    Fetch(OpId),
    /// A page is written, and that is answered.
    Write,
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// A request of the host comes to the link.
    Request(Coming),
    /// The host's memory has an answer for the link.
    Ready(Ask),
    /// An answer is in the device.
    Answered(Ask),
}

/// See the module.
pub(super) struct Exchange {
    coming: FrontQueue<Coming>,
    /// Each of these is in order of time, because what comes before it is a line, or a constant.
    at_host: FrontQueue<(Ns, Ask)>,
    answers: FrontQueue<(Ns, Ask)>,
    /// What may not be asked yet, because too much is unanswered.
    pub waiting: VecDeque<Ask>,
    /// What is unanswered.
    pub outstanding: u8,
}

impl Exchange {
    /// Nothing is on its way.
    pub(super) fn new() -> Self {
        Exchange {
            coming: FrontQueue::with_capacity(64),
            at_host: FrontQueue::with_capacity(64),
            answers: FrontQueue::with_capacity(64),
            waiting: VecDeque::new(),
            outstanding: 0,
        }
    }

    /// A request of the host will come to the link; not before those that were announced earlier.
    pub(super) fn announce(&mut self, coming: Coming) {
        self.coming.push_back(coming);
    }

    /// The requests on their way are dropped.
    pub(super) fn drop_requests(&mut self) {
        self.coming.clear();
    }

    /// The host's memory will have its answer at `at`.
    pub(super) fn asked(&mut self, at: Ns, ask: Ask) {
        self.at_host.push_back((at, ask));
    }

    /// An answer will be in the device at `at`.
    pub(super) fn answered(&mut self, at: Ns, ask: Ask) {
        self.answers.push_back((at, ask));
    }

    /// When something happens next.
    pub(super) fn next_deadline(&self) -> Ns {
        let coming = self.coming.front().map_or(Ns::NEVER, |c| c.at);
        let at_host = self.at_host.front().map_or(Ns::NEVER, |a| a.0);
        let answers = self.answers.front().map_or(Ns::NEVER, |a| a.0);
        coming.min(at_host).min(answers)
    }

    /// Takes what happens at `now`: answers first, then requests, then what the host's memory has.
    pub(super) fn take(&mut self, now: Ns) -> Option<Next> {
        if self.answers.front().is_some_and(|a| a.0 <= now) {
            return self.answers.pop_front().map(|(_, ask)| Next::Answered(ask));
        }
        if self.coming.front().is_some_and(|c| c.at <= now) {
            return self.coming.pop_front().map(Next::Request);
        }
        self.at_host.front().filter(|a| a.0 <= now)?;
        self.at_host.pop_front().map(|(_, ask)| Next::Ready(ask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_first_in_time_is_taken_first() {
        let tag = |tag| TagRef { tag, life: 0 };
        let mut x = Exchange::new();
        assert_eq!(x.next_deadline(), Ns::NEVER);
        x.asked(Ns(30), Ask::Fetch(1));
        x.announce(Coming { at: Ns(20), tag: tag(4), span: Ns(1) });
        x.announce(Coming { at: Ns(30), tag: tag(5), span: Ns(1) });
        x.answered(Ns(30), Ask::Write);
        assert_eq!(x.next_deadline(), Ns(20));
        assert!(x.take(Ns(19)).is_none());
        assert!(matches!(x.take(Ns(20)), Some(Next::Request(Coming { tag: TagRef { tag: 4, .. }, .. }))));
        assert!(matches!(x.take(Ns(30)), Some(Next::Answered(Ask::Write))));
        assert!(matches!(x.take(Ns(30)), Some(Next::Request(Coming { tag: TagRef { tag: 5, .. }, .. }))));
        assert!(matches!(x.take(Ns(30)), Some(Next::Ready(Ask::Fetch(1)))));
        assert_eq!(x.next_deadline(), Ns::NEVER);
    }
}
