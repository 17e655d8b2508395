// SPDX-License-Identifier: MIT OR Apache-2.0
//! Upper bounds on the rate of each kind of request, as fio keeps them: every kind has a time before which its next
//! request is not due, and a kind that is ahead of its rate lets the other kind of a mix go first (fio's `rate_ddir`).
//! Knows streams and times, not the stack.

use crate::error::TOO_LATE;
use readpath_kit::Ns;
use readpath_workload::{Gaps, Io, IoKind, Stream, Turn};

/// What a job with rates does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Submit this request.
    Submit(Io),
    /// Wait until this time, which is later than now, and ask again.
    Wait(Ns),
    /// The stream has ended.
    End,
}

/// How far the requests of each kind have come.
#[derive(Default)]
pub(crate) struct Rates {
    /// Bytes per second; reads, writes, trims.
    limits: [Option<u64>; 3],
    started: Ns,
    /// Makes the times random.
    gaps: Option<Gaps>,
    /// Bytes asked for since the start.
    bytes: [u64; 3],
    /// When the next request of a kind may be sent.
    due: [Ns; 3],
    /// The turn that is not due yet.
    waiting: Option<Turn>,
}

impl Rates {
    pub(crate) fn new(limits: [Option<u64>; 3], poisson: Option<u64>, started: Ns) -> Rates {
        Rates { limits, started, gaps: poisson.map(Gaps::new), ..Rates::default() }
    }

    /// Whether any kind is bounded.
    pub(crate) fn any(&self) -> bool {
        self.limits.iter().any(Option::is_some)
    }

    /// The next request of `stream`, or how long to wait for it.
    pub(crate) fn next(&mut self, stream: &mut Stream, now: Ns) -> Step {
        let turn = self.waiting.take().unwrap_or_else(|| stream.turn());
        let (kind, due) = match turn {
            Turn::End => return Step::End,
            Turn::Ready(io) => (io.kind, self.due(io.kind)),
            Turn::Of { kind, other: None } => (kind, self.due(kind)),
            Turn::Of { kind, other: Some(other) } => {
                let times = (self.due(kind), self.due(other));
                if times.0 <= now || (times.1 > now && times.0 <= times.1) { (kind, times.0) } else { (other, times.1) }
            }
        };
        if due > now {
            self.waiting = Some(match turn {
                Turn::Of { .. } => Turn::Of { kind, other: None },
                ready => ready,
            });
            return Step::Wait(due);
        }
        let io = if let Turn::Ready(io) = turn { io } else { stream.request(kind) };
        self.count(io);
        Step::Submit(io)
    }

    /// Flushes are always due.
    fn due(&self, kind: IoKind) -> Ns {
        self.due.get(kind as usize).copied().unwrap_or(Ns::ZERO)
    }

    fn count(&mut self, io: Io) {
        let i = io.kind as usize;
        if let Some(Some(limit)) = self.limits.get(i) {
            let bytes = u64::from(io.blocks) * u64::from(readpath_kit::BLOCK_BYTES);
            if let Some(gaps) = &mut self.gaps {
                let gap = Ns((gaps.draw() * bytes as f64 * 1e9 / (*limit).max(1) as f64) as u64);
                self.due[i] = Ns(self.due[i].max(self.started).0.saturating_add(gap.0)).min(TOO_LATE);
                return;
            }
            self.bytes[i] += bytes;
            let span = (u128::from(self.bytes[i]) * 1_000_000_000).div_ceil(u128::from((*limit).max(1)));
            let due = u64::try_from(span).ok().and_then(|span| self.started.0.checked_add(span));
            self.due[i] = due.map_or(TOO_LATE, |due| Ns(due).min(TOO_LATE));
        }
    }
}
