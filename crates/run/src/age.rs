// SPDX-License-Identifier: MIT OR Apache-2.0
//! An aged device: filled, written to by a workload in virtual time, and then idle. The caller says how it is used
//! ([`Finish`]).

use crate::execute::{ExecuteError, fits};
use crate::request::LUN;
use crate::runner::Runner;
use crate::stacks::{Parts, Work};
use crate::watch::Observer;
use readpath_config::DevicePreset;
use readpath_device::{Layout, NoMedia, NoSpace, UfsDevice};
use readpath_flash::DieSched;
use readpath_host::{BlockOp, BlockRequest};
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

/// A use of an aged device.
pub trait Finish {
    /// Its result.
    type Output;

    /// Uses the device: all written data is in flash, and the device is idle.
    fn finish<S: DieSched>(self, device: &mut UfsDevice<S, NoMedia, ()>) -> Self::Output;
}

/// Gives a new device of `preset` a past.
///
/// # Errors
/// The workload does not fit the device, or the device refuses it; or the observer stops it.
pub fn age<F: Finish>(
    preset: &DevicePreset,
    past: Past,
    observer: &mut impl Observer,
    finish: F,
) -> Result<F::Output, ExecuteError> {
    let host = readpath_host::HostConfig { hpb: None, ..preset.host };
    let parts = Parts { preset, host, payload: NoData, probe: (), wire: AnyWire::new(false) };
    parts.stack_for(Ageing { preset, past, observer, finish })?
}

struct Ageing<'a, O, F> {
    preset: &'a DevicePreset,
    past: Past<'a>,
    observer: &'a mut O,
    finish: F,
}

impl<O: Observer, F: Finish> Work<NoData, (), AnyWire> for Ageing<'_, O, F> {
    type Output = Result<F::Output, ExecuteError>;

    fn on<S: DieSched>(self, mut stack: Stack<S, NoData, (), AnyWire>) -> Self::Output {
        let Past { fill, seed, workload } = self.past;
        if let Some(layout) = fill {
            let units = (0..).zip(&self.preset.device.lus).map(|(lun, lu)| (lun, 0, lu.blocks));
            let blocks = self.preset.device.logical_blocks() as u32;
            let filled = stack.precondition_all(units, layout, seed);
            filled.map_err(|NoSpace| ExecuteError::Precondition { blocks })?;
        }
        if let Some(workload) = workload {
            fits(workload, self.preset)?;
            let mut runner = Runner::new(stack.start(Ns::ZERO)?);
            for phase in &mut workload.phases {
                runner.phase(&mut stack, phase, self.observer)?;
            }
            let flush = BlockRequest { cookie: 0, lun: LUN, op: BlockOp::Flush, block: 0, blocks: 0 };
            stack.submit(runner.now(), &flush);
            Runner::settle(&mut stack)?;
        }
        Ok(self.finish.finish(&mut stack.device))
    }
}
