// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late answers were: the model says when a request has ended, and the client hears of it a little later. Latencies
//! that a client measures are worth as much as that is small.

use readpath_kit::{Histogram, Ns};

/// A percentile of latency, with and without what the server added to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Of a thousand requests, so many took no longer.
    pub per_mille: u32,
    /// As the model says.
    pub modelled: Ns,
    /// As it was served, from when the request was read to when the answer was handed to the socket.
    pub served: Ns,
}

impl Verdict {
    /// Whether what a client measures is the model's: within 5 % or 10 us.
    pub fn is_valid(&self) -> bool {
        let tolerance = (self.modelled.0 / 20).max(10_000);
        self.served.0.abs_diff(self.modelled.0) <= tolerance
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    modelled: Histogram,
    served: Histogram,
    late: Histogram,
    /// Lateness in all, and how much of it the disk and slow clients are to blame for.
    late_by: u64,
    disk: u64,
    client: u64,
}

/// What was to blame for most of the time that was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The processors had something else to do, or the model itself takes too long.
    Cpu,
    /// Reading, writing or syncing the image.
    Disk,
    /// The client did not read its answers.
    Client,
}

impl Cause {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Cpu => "CPU",
            Cause::Disk => "disk",
            Cause::Client => "client",
        }
    }
}

impl Lateness {
    /// The percentiles that are judged.
    const PER_MILLE: [u32; 3] = [500, 990, 999];

    /// A request took `modelled` time and was answered `late`, for which the disk or a slow client may be to blame.
    pub(crate) fn add(&mut self, modelled: Ns, late: Ns, disk: Ns, client_is_slow: bool) {
        self.modelled.record(modelled.0);
        self.served.record(modelled.0 + late.0);
        self.late.record(late.0);
        self.late_by += late.0;
        if client_is_slow {
            self.client += late.0;
        } else {
            self.disk += disk.0.min(late.0);
        }
    }

    /// Requests.
    pub fn requests(&self) -> u64 {
        self.modelled.count()
    }

    /// Median, 99 % and 99.9 % of latency.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let of = |histogram: &Histogram, per_mille: u32| Ns(histogram.quantile(f64::from(per_mille) / 1000.0));
        let verdict = |per_mille| Verdict {
            per_mille,
            modelled: of(&self.modelled, per_mille),
            served: of(&self.served, per_mille),
        };
        Lateness::PER_MILLE.into_iter().map(verdict).collect()
    }

    /// Lateness that so many of a thousand requests did not exceed.
    pub fn late(&self, per_mille: u32) -> Ns {
        Ns(self.late.quantile(f64::from(per_mille) / 1000.0))
    }

    /// What is to blame for most of it.
    pub fn cause(&self) -> Cause {
        if self.disk * 2 > self.late_by {
            Cause::Disk
        } else if self.client * 2 > self.late_by {
            Cause::Client
        } else {
            Cause::Cpu
        }
    }
}
