// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers in progress between the device and its memory on the host, and those that wait for the link. It knows
//! times and operations, not their purpose.
//!
//! The link is a server in each direction, reserved when a transfer arrives at it. Requests of the host arrive after
//! a constant delay and could be reserved ahead. But answers from host memory may arrive between them, and a
//! reservation ahead would let an answer wait for a request that has not arrived yet. So both are queued here.

use crate::ids::TagRef;
use readpath_flash::OpId;
use readpath_kit::{FrontQueue, Ns};
use std::collections::VecDeque;

/// A request of the host that has not reached the link yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    /// When it reaches the link.
    pub at: Ns,
    pub tag: TagRef,
    /// Its time on the link.
    pub span: Ns,
}

/// A request of the device to host memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// Fetch of lines for a waiting operation.
    Fetch(OpId),
    /// Write of a page, which is answered.
    Write,
}

/// The next event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// A request of the host reaches the link.
    Request(Coming),
    /// Host memory has an answer ready for the link.
    Ready(Ask),
    /// An answer has arrived in the device.
    Answered(Ask),
}

pub(super) struct Exchange {
    /// Requests of the host that will come to the link.
    pub coming: FrontQueue<Coming>,
    /// When the host's memory will have its answers. Each of these is in order of time, because what comes before it is
    /// a line, or a constant.
    pub at_host: FrontQueue<(Ns, Ask)>,
    /// When answers will be in the device.
    answers: FrontQueue<(Ns, Ask)>,
    /// When the last of them will be.
    last_answer: Ns,
    /// Requests that wait because too many are outstanding.
    pub waiting: VecDeque<Ask>,
    /// Number of outstanding requests.
    pub outstanding: u8,
}

impl Exchange {
    pub(super) fn new() -> Self {
        Exchange {
            coming: FrontQueue::with_capacity(64),
            at_host: FrontQueue::with_capacity(64),
            answers: FrontQueue::with_capacity(64),
            last_answer: Ns::ZERO,
            waiting: VecDeque::new(),
            outstanding: 0,
        }
    }

    pub(super) fn next_deadline(&self) -> Ns {
        let coming = self.coming.front().map_or(Ns::NEVER, |c| c.at);
        let at_host = self.at_host.front().map_or(Ns::NEVER, |a| a.0);
        let answers = self.answers.front().map_or(Ns::NEVER, |a| a.0);
        coming.min(at_host).min(answers)
    }

    /// An answer will be in the device at `at`, or with the one before it, which it does not overtake; returns when.
    pub(super) fn answer_at(&mut self, at: Ns, ask: Ask) -> Ns {
        self.last_answer = self.last_answer.max(at);
        self.answers.push_back((self.last_answer, ask));
        self.last_answer
    }

    /// Takes an event at `now`: answers first, then requests, then host memory.
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
        x.at_host.push_back((Ns(30), Ask::Fetch(1)));
        x.coming.push_back(Coming { at: Ns(20), tag: tag(4), span: Ns(1) });
        x.coming.push_back(Coming { at: Ns(30), tag: tag(5), span: Ns(1) });
        assert_eq!(x.answer_at(Ns(30), Ask::Write), Ns(30));
        assert_eq!(x.next_deadline(), Ns(20));
        assert!(x.take(Ns(19)).is_none());
        assert!(matches!(x.take(Ns(20)), Some(Next::Request(Coming { tag: TagRef { tag: 4, .. }, .. }))));
        assert!(matches!(x.take(Ns(30)), Some(Next::Answered(Ask::Write))));
        assert!(matches!(x.take(Ns(30)), Some(Next::Request(Coming { tag: TagRef { tag: 5, .. }, .. }))));
        assert!(matches!(x.take(Ns(30)), Some(Next::Ready(Ask::Fetch(1)))));
        assert_eq!(x.next_deadline(), Ns::NEVER);
    }

    /// A short answer may be ready for the link behind a long one.
    #[test]
    fn answers_do_not_overtake_each_other() {
        let mut x = Exchange::new();
        let at = [50, 40, 60].map(|at| x.answer_at(Ns(at), Ask::Fetch(at as u16)));
        assert_eq!(at, [Ns(50), Ns(50), Ns(60)]);
        for (at, ask) in [(50, 50), (50, 40), (60, 60)] {
            assert_eq!(x.next_deadline(), Ns(at));
            assert!(matches!(x.take(Ns(at)), Some(Next::Answered(Ask::Fetch(id))) if id == ask));
        }
    }
}
