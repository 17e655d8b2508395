// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who decides what a host holds of a unit, and what that needs to be kept. Knows nothing of maps and states.

use super::hcm::Hcm;
use super::managed::Manager;

/// Control mode of a unit with HPB of JESD220-3.
pub(super) enum Mode {
    /// The device recommends (Linux's device control mode).
    Dcm,
    /// The host counts reads (Linux's host control mode).
    Hcm(Box<Hcm>),
    /// A policy of this host's own, which takes the place of Linux's host control mode.
    Managed(Box<Manager>),
}

impl Mode {
    pub(super) fn hcm(&self) -> Option<&Hcm> {
        if let Mode::Hcm(hcm) = self { Some(hcm) } else { None }
    }

    pub(super) fn hcm_mut(&mut self) -> Option<&mut Hcm> {
        if let Mode::Hcm(hcm) = self { Some(hcm) } else { None }
    }

    pub(super) fn manager(&self) -> Option<&Manager> {
        if let Mode::Managed(manager) = self { Some(manager) } else { None }
    }

    pub(super) fn manager_mut(&mut self) -> Option<&mut Manager> {
        if let Mode::Managed(manager) = self { Some(manager) } else { None }
    }
}
