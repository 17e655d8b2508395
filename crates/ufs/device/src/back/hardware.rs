// SPDX-License-Identifier: MIT OR Apache-2.0
//! What flash translation may do with the core and the array, and see of them.

use super::Back;
use super::cpu::{Cpu, Work};
use super::media::{MediaMode, MediaOp};
use super::ops::{Op, OpPool};
use super::probe::Probe;
use super::stats::DeviceStats;
use readpath_flash::{DieSched, OpId, Ppn};
use readpath_kit::Ns;

/// See the module.
pub trait Hardware {
    /// A flash operation begins: firmware first.
    fn begin(&mut self, now: Ns, op: Op);
    /// Takes an operation that has ended out of those in progress.
    fn end(&mut self, id: OpId) -> Op;
    /// Operations in progress.
    fn ops(&self) -> &OpPool;
    /// Operations in progress, to change.
    fn ops_mut(&mut self) -> &mut OpPool;
    /// Reserves the firmware core for `cost` from `now` on.
    fn work(&mut self, now: Ns, cost: Ns, work: Work);
    /// The firmware core.
    fn cpu(&self) -> &Cpu;
    /// Nothing begins before `ready`.
    fn set_busy_until(&mut self, ready: Ns);
    /// Data moves.
    fn emit(&mut self, op: MediaOp);
    /// Counters, to count.
    fn stats(&mut self) -> &mut DeviceStats;
    /// Programs and erases in progress.
    fn writes(&self) -> u32;
    /// The die of a slice.
    fn die_of(&self, ppn: Ppn) -> u32;
    /// Whether a program that has ended failed.
    fn program_fails(&mut self) -> bool;
    /// Whether an erase that has ended failed.
    fn erase_fails(&mut self) -> bool;
}

impl<S: DieSched, M: MediaMode, P: Probe> Hardware for Back<S, M, P> {
    #[inline]
    fn begin(&mut self, now: Ns, op: Op) {
        Back::begin(self, now, op);
    }

    #[inline]
    fn end(&mut self, id: OpId) -> Op {
        Back::end(self, id)
    }

    #[inline]
    fn ops(&self) -> &OpPool {
        self.dies.ops()
    }

    #[inline]
    fn ops_mut(&mut self) -> &mut OpPool {
        self.dies.ops_mut()
    }

    #[inline]
    fn work(&mut self, now: Ns, cost: Ns, work: Work) {
        Back::work(self, now, cost, work);
    }

    #[inline]
    fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    fn set_busy_until(&mut self, ready: Ns) {
        self.cpu.set_busy_until(ready);
    }

    #[inline]
    fn emit(&mut self, op: MediaOp) {
        Back::emit(self, op);
    }

    #[inline]
    fn stats(&mut self) -> &mut DeviceStats {
        &mut self.stats
    }

    #[inline]
    fn writes(&self) -> u32 {
        self.dies.writes()
    }

    #[inline]
    fn die_of(&self, ppn: Ppn) -> u32 {
        self.dies.die_of(ppn)
    }

    #[inline]
    fn program_fails(&mut self) -> bool {
        self.dies.program_fails()
    }

    #[inline]
    fn erase_fails(&mut self) -> bool {
        self.dies.erase_fails()
    }
}
