// SPDX-License-Identifier: MIT OR Apache-2.0
//! What HPB did for a workload with power cuts. A host that loses its power forgets what it counted, so it is asked
//! before.

use super::Loses;
use readpath_device::{DeviceStats, Probe};
use readpath_flash::DieSched;
use readpath_host::HpbCounters;
use readpath_stack::{Payload, Stack, Wire};

/// Counts from the start of the workload to its end, over all cuts.
#[derive(Clone, Default, Debug)]
pub struct HpbUse {
    /// What the host counted.
    pub counters: HpbCounters,
    /// The counts after the last cut.
    pub after_cuts: HpbCounters,
    /// Most bytes of the host's memory that were taken, tables included.
    pub memory_bytes: u64,
    /// What the device counted.
    pub device: DeviceStats,
    /// What hosts had counted that have lost their power.
    gone: HpbCounters,
}

impl HpbUse {
    /// The power is about to go.
    pub(super) fn cut<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &Stack<S, X, P, W>, loses: Loses) {
        self.look(stack);
        self.after_cuts = HpbCounters::default();
        if loses == Loses::Everything {
            self.gone = self.counters;
        }
    }

    /// The workload has ended.
    pub(super) fn ended<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &Stack<S, X, P, W>) {
        self.look(stack);
        self.device = *stack.device.stats();
    }

    fn look<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &Stack<S, X, P, W>) {
        let all = self.gone.plus(&stack.host.all_counters().unwrap_or_default());
        self.after_cuts = self.after_cuts.plus(&all.since(&self.counters));
        self.counters = all;
        let memory = stack.host.all_memory().unwrap_or_default();
        self.memory_bytes = self.memory_bytes.max(memory.peak_bytes + memory.table_bytes);
    }
}
