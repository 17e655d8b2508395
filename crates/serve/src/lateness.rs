// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late answers were: the model says when a request has ended, and the answer leaves a little later. Latencies
//! that a client measures are valid while that is short.

use readpath_kit::{Histogram, Ns};

/// The mean or a percentile of latency, with and without what the server added to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// `mean`, `p50`, `p99` or `p99.9`.
    pub name: &'static str,
    /// Latency of the model.
    pub modelled: Ns,
    /// Latency as served, from reading the request to handing the answer to the socket.
    pub served: Ns,
}

impl Verdict {
    /// Whether what a client measures is the model's: within 5 % or 10 us.
    pub fn is_valid(&self) -> bool {
        let tolerance = (self.modelled.0 / 20).max(10_000);
        self.served.0.abs_diff(self.modelled.0) <= tolerance
    }
}

/// How late answers were.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    modelled: Histogram,
    served: Histogram,
    late: Histogram,
    /// Lateness in all, and the shares of the disk and of slow clients.
    late_by: u64,
    disk: u64,
    client: u64,
}

readpath_kit::named! {
    /// The cause of most of the lateness.
    pub enum Cause {
        /// The processors had something else to do, or the model itself takes too long.
        Cpu = "CPU",
        /// Reading, writing or syncing the image.
        Disk = "disk",
        /// The client did not read its answers.
        Client = "client",
    }
}

impl Lateness {
    /// A request took `modelled` time and was answered `late`; the disk took `disk` meanwhile. Returns how long it took
    /// as it was served.
    pub(crate) fn add(&mut self, modelled: Ns, late: Ns, disk: Ns, client_is_slow: bool) -> Ns {
        self.compare(modelled, modelled + late);
        self.late.record(late.0);
        self.late_by += late.0;
        if client_is_slow {
            self.client += late.0;
        } else {
            self.disk += disk.0.min(late.0);
        }
        modelled + late
    }

    /// A request took `served` time and takes `modelled` in the model.
    pub(crate) fn compare(&mut self, modelled: Ns, served: Ns) {
        self.modelled.record(modelled.0);
        self.served.record(served.0);
    }

    /// Latency as modelled and as served, and how late answers were: name, meaning and values.
    pub(crate) fn histograms(&self) -> [(&'static str, &'static str, &Histogram); 3] {
        [
            ("request_modelled_seconds", "Latency of requests in the model.", &self.modelled),
            ("request_served_seconds", "Latency of requests from socket to socket, in device time.", &self.served),
            ("request_lateness_seconds", "How much later than modelled answers left.", &self.late),
        ]
    }

    /// Requests.
    pub fn requests(&self) -> u64 {
        self.modelled.count()
    }

    /// Mean, median, 99 % and 99.9 % of latency.
    pub fn verdicts(&self) -> [Verdict; 4] {
        let both = |name, of: &dyn Fn(&Histogram) -> u64| Verdict {
            name,
            modelled: Ns(of(&self.modelled)),
            served: Ns(of(&self.served)),
        };
        [
            both("mean", &|histogram| histogram.mean() as u64),
            both("p50", &|histogram| histogram.quantile(0.5)),
            both("p99", &|histogram| histogram.quantile(0.99)),
            both("p99.9", &|histogram| histogram.quantile(0.999)),
        ]
    }

    /// The main cause.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_valid_within_five_percent_or_ten_microseconds() {
        let is_valid =
            |modelled, served| Verdict { name: "mean", modelled: Ns::from_us(modelled), served: Ns(served) }.is_valid();
        assert!(is_valid(1000, 1_050_000) && is_valid(1000, 950_000));
        assert!(!is_valid(1000, 1_050_001) && !is_valid(1000, 949_999));
        assert!(is_valid(100, 110_000) && is_valid(100, 90_000));
        assert!(!is_valid(100, 110_001) && !is_valid(100, 89_999));
    }

    #[test]
    fn what_is_served_is_what_is_modelled_and_the_lateness() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.add(Ns(100_000), Ns(7_000), Ns::ZERO, false), Ns(107_000));
        lateness.compare(Ns(100_000), Ns(90_000));
        let [mean, ..] = lateness.verdicts();
        assert_eq!((lateness.requests(), mean.modelled, mean.served), (2, Ns(100_000), Ns(98_500)));
    }

    #[test]
    fn the_cause_is_that_of_most_of_the_lateness() {
        let late = |disk, client_is_slow| {
            let mut lateness = Lateness::default();
            lateness.add(Ns(100), Ns(1000), Ns(disk), client_is_slow);
            lateness.cause()
        };
        assert_eq!([late(501, false), late(2000, false), late(500, false)], [Cause::Disk, Cause::Disk, Cause::Cpu]);
        assert_eq!(late(2000, true), Cause::Client);
        // The disk delays an answer by no more than it is late.
        let mut lateness = Lateness::default();
        lateness.add(Ns(100), Ns(100), Ns(2000), false);
        lateness.add(Ns(100), Ns(900), Ns(0), false);
        assert_eq!(lateness.cause(), Cause::Cpu);
    }
}
