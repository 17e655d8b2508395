// SPDX-License-Identifier: MIT OR Apache-2.0
//! An aged device: filled, written to by a workload in virtual time, and then idle.

use crate::execute::{ExecuteError, fits};
use crate::request::LUN;
use crate::runner::Runner;
use crate::watch::Observer;
use crate::zoned::refused;
use readpath_config::DevicePreset;
use readpath_device::{Layout, NoMedia, NoSpace, UfsDevice};
use readpath_flash::AnySched;
use readpath_host::{BlockOp, BlockRequest, HostConfig};
use readpath_kit::Ns;
use readpath_stack::{AnyWire, NoData, Stack};
use readpath_workload::Workload;

/// The past of a device.
pub struct Past<'a> {
    /// Everything is written once, in this order.
    pub fill: Option<Layout>,
    /// Seed of that order.
    pub seed: u64,
    /// The workload that follows.
    pub workload: Option<&'a mut Workload>,
}

/// Gives a new device of `preset` a past. All that was written is then in flash, and the device is idle.
///
/// # Errors
/// The workload does not fit the device, or the device refuses it; or the observer stops it.
pub fn age(
    preset: &DevicePreset,
    past: Past,
    observer: &mut dyn Observer,
) -> Result<UfsDevice<AnySched, NoMedia, ()>, ExecuteError> {
    let host = HostConfig { hpb: None, ..preset.host };
    let mut stack: Stack<AnySched, NoData, (), AnyWire> =
        Stack::new(&preset.device, host, preset.delays, NoData, (), AnyWire::new(false))?;
    let Past { fill, seed, workload } = past;
    if let Some(layout) = fill {
        let units = (0..).zip(&preset.device.lus).map(|(lun, lu)| (lun, 0, lu.blocks));
        let blocks = preset.device.logical_blocks() as u32;
        let filled = stack.precondition_all(units, layout, seed);
        filled.map_err(|NoSpace| ExecuteError::Precondition { blocks })?;
    }
    if let Some(workload) = workload {
        fits(workload, preset)?;
        refused::of_past(preset)?;
        let mut runner = Runner::new(stack.start(Ns::ZERO)?);
        for phase in &mut workload.phases {
            runner.phase(&mut stack, phase, observer)?;
        }
        let flush = BlockRequest { cookie: 0, lun: LUN, op: BlockOp::Flush, block: 0, blocks: 0 };
        stack.submit(runner.now(), &flush);
        Runner::settle(&mut stack)?;
    }
    Ok(stack.device)
}
