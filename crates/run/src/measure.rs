// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is counted of requests while they run.

use readpath_kit::{BLOCK_BYTES, Histogram, Ns};
use readpath_workload::IoKind;

/// Requests of one kind.
#[derive(Clone, Default, Debug)]
pub struct KindStats {
    /// Requests that ended.
    pub ios: u64,
    /// Blocks of 4 KiB that they moved.
    pub blocks: u64,
    /// Latencies from submission to end, in nanoseconds.
    pub latency: Histogram,
}

impl KindStats {
    #[inline]
    /// A request of `blocks` blocks has ended.
    pub fn record(&mut self, blocks: u32, latency: Ns) {
        self.ios += 1;
        self.blocks += u64::from(blocks);
        self.latency.record(latency.0);
    }

    fn merge(&mut self, other: &KindStats) {
        self.ios += other.ios;
        self.blocks += other.blocks;
        self.latency.merge(&other.latency);
    }

    /// Bytes moved.
    pub fn bytes(&self) -> u64 {
        self.blocks * u64::from(BLOCK_BYTES)
    }
}

/// What one job did after its ramp.
#[derive(Clone, Debug)]
pub struct JobStats {
    /// Its name.
    pub name: String,
    /// Its reporting group.
    pub group: usize,
    /// When measurement began: its start plus the ramp.
    pub start: Ns,
    /// When its last request ended.
    pub end: Ns,
    /// Figures by kind: read, write, trim, flush.
    pub kinds: [KindStats; 4],
}

impl JobStats {
    /// Requests of `kind`.
    pub fn of(&self, kind: IoKind) -> &KindStats {
        &self.kinds[kind as usize]
    }

    /// Measured time in seconds.
    pub fn seconds(&self) -> f64 {
        self.end.saturating_sub(self.start).as_secs_f64()
    }
}

/// Jobs of a reporting group together.
#[derive(Clone, Debug)]
pub struct GroupStats {
    /// Index of the group.
    pub group: usize,
    /// Jobs in it.
    pub jobs: usize,
    /// Earliest start.
    pub start: Ns,
    /// Latest end.
    pub end: Ns,
    /// Figures by kind.
    pub kinds: [KindStats; 4],
    /// Sum over the jobs of each one's own rate, in bytes per second by kind: what iozone prints as "Children see
    /// throughput".
    pub rates: [f64; 4],
}

impl GroupStats {
    /// Requests of `kind`.
    pub fn of(&self, kind: IoKind) -> &KindStats {
        &self.kinds[kind as usize]
    }
}

/// What a phase did.
#[derive(Clone, Debug)]
pub struct PhaseStats {
    /// Name of the phase.
    pub name: String,
    /// When it began.
    pub start: Ns,
    /// When it ended.
    pub end: Ns,
    /// Its jobs.
    pub jobs: Vec<JobStats>,
    /// Requests that ended, ramp included.
    pub ios: u64,
}

impl PhaseStats {
    /// The phase's jobs by reporting group.
    pub fn groups(&self) -> Vec<GroupStats> {
        let mut groups: Vec<GroupStats> = Vec::new();
        for job in &self.jobs {
            let at = match groups.iter().position(|g| g.group == job.group) {
                Some(at) => at,
                None => {
                    groups.push(GroupStats {
                        group: job.group,
                        jobs: 0,
                        start: job.start,
                        end: job.end,
                        kinds: Default::default(),
                        rates: [0.0; 4],
                    });
                    groups.len() - 1
                }
            };
            let group = &mut groups[at];
            group.jobs += 1;
            group.start = group.start.min(job.start);
            group.end = group.end.max(job.end);
            for (i, kind) in job.kinds.iter().enumerate() {
                group.kinds[i].merge(kind);
                if job.seconds() > 0.0 {
                    group.rates[i] += kind.bytes() as f64 / job.seconds();
                }
            }
        }
        groups
    }
}
