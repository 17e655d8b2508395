// SPDX-License-Identifier: MIT OR Apache-2.0
//! What flash translation may do with the core and the array, and see of them.

use super::cpu::{Cpu, Work};
use super::media::MediaOp;
use super::ops::{Op, OpPool};
use super::stats::DeviceStats;
use readpath_flash::{OpId, Ppn};
use readpath_kit::Ns;

/// See the module.
pub(crate) trait Hardware {
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
