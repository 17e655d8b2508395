// SPDX-License-Identifier: MIT OR Apache-2.0
//! The access of flash translation to the firmware core and the flash array.

use super::cpu::{Cpu, Work};
use super::media::MediaOp;
use super::ops::{Op, OpPool};
use super::stats::DeviceStats;
use readpath_flash::{OpId, Ppn};
use readpath_kit::Ns;

pub(crate) trait Hardware {
    /// Begins a flash operation, which passes the firmware first.
    fn begin(&mut self, now: Ns, op: Op);
    /// Removes an operation that has ended from those in progress.
    fn end(&mut self, id: OpId) -> Op;
    /// Operations in progress.
    fn ops(&self) -> &OpPool;
    fn ops_mut(&mut self) -> &mut OpPool;
    /// Reserves the firmware core for `cost` from `now` on.
    fn work(&mut self, now: Ns, cost: Ns, work: Work);
    /// The firmware core.
    fn cpu(&self) -> &Cpu;
    /// Nothing begins before `ready`.
    fn set_busy_until(&mut self, ready: Ns);
    /// Reports a movement of data.
    fn emit(&mut self, op: MediaOp);
    /// Counters.
    fn stats(&mut self) -> &mut DeviceStats;
    /// Programs and erases in progress.
    fn writes(&self) -> u32;
    /// Whether data that leaves the cache in SLC mode stays on its die.
    fn folds_on_die(&self) -> bool;
    /// The die of a slice.
    fn die_of(&self, ppn: Ppn) -> u32;
    /// Whether a program that has ended failed.
    fn program_fails(&mut self) -> bool;
    /// Whether an erase that has ended failed.
    fn erase_fails(&mut self) -> bool;
}
