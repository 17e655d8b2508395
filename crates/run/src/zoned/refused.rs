// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cannot be done on a unit with zones. Found before a run begins.

use crate::power_cuts::{Load, Loses, PowerCuts};
use crate::replay::Traces;
use readpath_config::{DevicePreset, Event, EventKind};
use readpath_device::Layout;
use readpath_workload::{IoKind, Workload};
use thiserror::Error;

/// Why a run cannot be made on a unit with zones.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ZonesError {
    /// Requests that are not at write pointers.
    #[error(
        "{what} writes to logical unit {lun}, whose zones take writes at their write pointers only; write with fio \
         jobs that have zonemode=zbd, to a unit without zones, or through a mapper (host.zones.mapper = \"log\")"
    )]
    Writes {
        /// The workload.
        what: String,
        /// The unit.
        lun: u8,
    },
    /// Zones that are written in random order.
    #[error(
        "blocks of logical unit {lun} cannot be there in random order, as it has zones; have them written in order, \
         or through a mapper (host.zones.mapper = \"log\")"
    )]
    RandomOrder {
        /// The unit.
        lun: u8,
    },
    /// The host sends what was in flight again after it.
    #[error(
        "{what} is not modelled for a workload on a unit with zones: the host sends what was in flight again, and \
         write pointers may be elsewhere by then; use a unit without zones"
    )]
    SentAgain {
        /// What happens.
        what: String,
    },
    /// A power cut behind a mapper.
    #[error(
        "a power cut is not modelled behind a mapper of zones (host.zones.mapper), which is no file system: after it \
         nothing would find its data; write with fio jobs that have zonemode=zbd"
    )]
    NoFileSystem,
    /// A power cut under a trace.
    #[error(
        "a power cut under a trace is not modelled on a unit with zones: what a trace reads lies there with holes \
         before it, where recovery ends a zone; use fio jobs that have zonemode=zbd"
    )]
    Trace,
    /// Rules between jobs and zones.
    #[error(
        "rules for requests are not modelled on a unit with zones: requests have no place there before they have \
         passed the rules; use a unit without zones"
    )]
    Rules,
    /// A device that was written through a mapper is kept, and the map is not.
    #[error(
        "a device is kept without the map of its host (host.zones.mapper), and no block would be found again; set \
         host.zones.mapper to \"none\", and write with fio jobs that have zonemode=zbd"
    )]
    LosesMap,
}

/// Whether a device can be aged by a workload and kept without its host.
pub(crate) fn of_past(preset: &DevicePreset) -> Result<(), ZonesError> {
    if preset.host.mapper().is_some() { Err(ZonesError::LosesMap) } else { Ok(()) }
}

/// Whether a unit has zones that its workloads see.
fn is_zoned(preset: &DevicePreset, lun: u8) -> bool {
    preset.host.mapper().is_none() && has_zones_in(preset, lun)
}

fn has_zones_in(preset: &DevicePreset, lun: u8) -> bool {
    preset.device.lus.get(usize::from(lun)).is_some_and(|lu| lu.zones.is_some())
}

fn has_zones(preset: &DevicePreset) -> bool {
    preset.device.lus.iter().any(|lu| lu.zones.is_some())
}

/// Whether a workload respects the zones of its units.
pub(crate) fn of_workload(workload: &Workload, preset: &DevicePreset) -> Result<(), ZonesError> {
    let writes = |what: &str, lun| Err(ZonesError::Writes { what: format!("'{what}'"), lun });
    if let Some(file) = workload.files.iter().find(|file| workload.launches.is_some() && is_zoned(preset, file.lun)) {
        return writes(&workload.name, file.lun);
    }
    let mut jobs = workload.phases.iter().flat_map(|phase| &phase.jobs);
    match jobs.find(|job| job.zbd.is_none() && job.stream.writes() && is_zoned(preset, job.lun)) {
        Some(job) => writes(&job.name, job.lun),
        None => Ok(()),
    }
}

/// Whether traces respect the zones of their units.
pub(crate) fn of_traces(traces: &Traces, preset: &DevicePreset) -> Result<(), ZonesError> {
    if !has_zones(preset) {
        return Ok(());
    }
    for (name, trace) in &traces.phases {
        let mut writes = trace.ios.iter().filter(|io| matches!(io.kind, IoKind::Write | IoKind::Trim));
        if let Some(io) = writes.find(|io| is_zoned(preset, traces.units.of(io.block).0)) {
            return Err(ZonesError::Writes { what: format!("'{name}'"), lun: traces.units.of(io.block).0 });
        }
    }
    Ok(())
}

/// Whether these ranges (unit, first block, blocks) can be on the device in this order.
pub(crate) fn of_order(ranges: &[(u8, u32, u32)], layout: Layout, preset: &DevicePreset) -> Result<(), ZonesError> {
    match ranges.iter().find(|(lun, ..)| layout == Layout::Random && is_zoned(preset, *lun)) {
        Some(&(lun, ..)) => Err(ZonesError::RandomOrder { lun }),
        None => Ok(()),
    }
}

/// Whether these events can happen to a workload on units, which are asked for only if it matters.
pub(crate) fn of_events(
    events: &[Event],
    mut units: impl Iterator<Item = u8>,
    preset: &DevicePreset,
) -> Result<(), ZonesError> {
    let resets = |event: &&Event| matches!(event.kind, EventKind::HardwareReset | EventKind::PowerCycle { .. });
    let resets = events.iter().find(resets).filter(|_| has_zones(preset));
    match resets.filter(|_| units.any(|lun| has_zones_in(preset, lun))) {
        Some(event) => Err(ZonesError::SentAgain { what: format!("the event {event}") }),
        None => Ok(()),
    }
}

/// Whether the power can be cut so under a workload on these units.
pub(crate) fn of_power_cuts(
    mut units: impl Iterator<Item = u8>,
    preset: &DevicePreset,
    (plan, load): (&PowerCuts, &Load),
) -> Result<(), ZonesError> {
    if !units.any(|lun| has_zones_in(preset, lun)) {
        return Ok(());
    }
    match plan {
        _ if preset.host.mapper().is_some() => Err(ZonesError::NoFileSystem),
        _ if matches!(load, Load::Traces(_)) => Err(ZonesError::Trace),
        PowerCuts { loses: Loses::Device, .. } => {
            Err(ZonesError::SentAgain { what: "a power cut of the device alone (--loses device)".to_owned() })
        }
        PowerCuts { faults, .. } if !faults.is_empty() => Err(ZonesError::Rules),
        _ => Ok(()),
    }
}
