// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device with its data, for any host: making it, switching it on with the contents of its data's array, and moving
//! its data. It knows no host, command or clock.

use crate::payload::Payload;
use crate::watched::Watched;
use readpath_device::{
    ConfigError, Delays, DeviceConfig, FlashArray, LoadError, LuConfig, MediaOp, Probe, Recovery, UfsDevice,
};
use readpath_flash::DieSched;
use readpath_kit::Ns;

/// First logical page and settings of each logical unit, device-wide.
#[derive(Clone, Debug)]
pub struct Units(Vec<(u32, LuConfig)>);

impl Units {
    fn new(config: &DeviceConfig) -> Units {
        let mut next = 0;
        let unit = |lu: &LuConfig| {
            next += lu.data_blocks();
            (next - lu.data_blocks(), *lu)
        };
        Units(config.lus.iter().map(unit).collect())
    }

    /// First logical page and blocks of a unit, if it exists.
    pub fn get(&self, lun: u8) -> Option<(u32, u32)> {
        self.0.get(usize::from(lun)).map(|(first, lu)| (*first, lu.blocks))
    }

    /// Number of units.
    pub fn count(&self) -> u8 {
        self.0.len() as u8
    }

    /// The logical page of a block of a unit that exists; of a block in a gap, which no request reaches, that of the
    /// next zone.
    #[inline(always)]
    pub fn page(&self, lun: u8, block: u32) -> u32 {
        let (first, lu) = &self.0[usize::from(lun)];
        first + if lu.zones.is_some() { lu.data_blocks_before(block) } else { block }
    }
}

/// A device, and the first logical pages of its units.
type WithUnits<S, M, P> = (UfsDevice<S, M, P>, Units);

/// A device fresh from the factory, to which `payload` is attached.
///
/// # Errors
/// The device cannot exist.
pub fn new_device<S: DieSched, X: Payload, P: Probe>(
    config: &DeviceConfig,
    delays: Delays,
    payload: &mut X,
    probe: P,
) -> Result<WithUnits<S, X::Mode, P>, ConfigError> {
    let device = UfsDevice::new(config, delays, probe)?;
    let units = Units::new(config);
    let blocks = units.0.last().map_or(0, |(first, lu)| first + lu.data_blocks());
    payload.attach(device.array_slices(), device.buffer_slots(), blocks);
    Ok((device, units))
}

/// Switches a device on at `on` with the contents of its payload's array. From now on it reports to its payload
/// everything that it programs. `looked` is called with each superblock that the device looks at.
///
/// # Errors
/// As [`UfsDevice::power_on_with`].
pub fn power_on_with<S: DieSched, X: Payload, P: Probe, A: FlashArray>(
    device: &mut UfsDevice<S, X::Mode, P>,
    payload: &mut X,
    on: Ns,
    array: impl FnOnce(&mut X) -> &mut A,
    looked: &mut dyn FnMut(u32),
) -> Result<Recovery, LoadError> {
    let recovery = device.power_on_with(on, &mut Watched { array: array(payload), looked })?;
    move_data(device, payload);
    Ok(recovery)
}

/// Moves data as the device reports.
#[inline(always)]
pub fn move_data<S: DieSched, X: Payload, P: Probe>(device: &mut UfsDevice<S, X::Mode, P>, payload: &mut X) {
    while let Some(op) = device.poll_media() {
        if op == MediaOp::Own
            && let Some(own) = device.take_own()
        {
            payload.keep(own);
        }
        payload.execute(op);
    }
}
