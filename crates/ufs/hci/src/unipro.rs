// SPDX-License-Identifier: MIT OR Apache-2.0
//! UniPro on both sides of the link, as far as a host sees it: attributes, and the state of the link. The modelled
//! link has one speed, so a host may set gears and lanes without effect.

use readpath_proto::desc::UfsVersion;
use readpath_proto::uic::{attribute, result};

/// The state of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Link {
    /// The link has to be started.
    #[default]
    Down,
    /// Commands pass the link.
    Up,
    /// The link has to be woken.
    Hibernated,
    /// The device was taken away: the link cannot be started any more.
    Gone,
}

/// Attributes with an initial value, and whether a host may set them.
const KNOWN: [(u16, u32, bool); 14] = [
    (attribute::ACTIVE_TX_LANES, 1, true),
    (attribute::CONNECTED_TX_LANES, LANES, false),
    (attribute::TX_GEAR, 1, true),
    (attribute::TX_TERMINATION, 0, true),
    (attribute::HS_SERIES, 1, true),
    (attribute::POWER_MODE, 0x55, true),
    (attribute::ACTIVE_RX_LANES, 1, true),
    (attribute::CONNECTED_RX_LANES, LANES, false),
    (attribute::RX_GEAR, 1, true),
    (attribute::RX_TERMINATION, 0, true),
    (attribute::MAX_RX_PWM_GEAR, 4, false),
    (attribute::MAX_RX_HS_GEAR, 4, false),
    // PA_LocalTxLCCEnable and PA_TxHsAdaptType: hosts set them, without effect.
    (0x155E, 0, true),
    (0x15D4, 3, true),
];
const LANES: u32 = 2;

/// Timers that hosts set with the power mode: PA_PWRModeUserData0 to 11, and DL_ timers of local values.
const TIMERS: [std::ops::RangeInclusive<u16>; 2] = [0x15B0..=0x15BB, 0xD041..=0xD046];

/// The attributes of one side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    known: [u32; KNOWN.len()],
    timers: [u32; 18],
}

impl Attributes {
    pub(crate) fn new(version: UfsVersion) -> Self {
        // HS-G5 came with UFS 4.0.
        let initial = |(name, value, _)| match (name, version) {
            (attribute::MAX_RX_HS_GEAR, UfsVersion::V40) => 5,
            _ => value,
        };
        Attributes { known: KNOWN.map(initial), timers: [0; 18] }
    }

    fn timer(attribute: u16) -> Option<usize> {
        let [user, local] = TIMERS;
        match attribute {
            a if user.contains(&a) => Some(usize::from(a - user.start())),
            a if local.contains(&a) => Some(12 + usize::from(a - local.start())),
            _ => None,
        }
    }

    /// The value of an attribute, or the result code of the refusal.
    pub(crate) fn get(&self, attribute: u16) -> Result<u32, u8> {
        if let Some(i) = Attributes::timer(attribute) {
            return Ok(self.timers[i]);
        }
        let known = KNOWN.iter().position(|(known, ..)| *known == attribute);
        known.map(|i| self.known[i]).ok_or(result::INVALID_ATTRIBUTE)
    }

    /// Sets an attribute, or returns the result code of the refusal.
    pub(crate) fn set(&mut self, attribute: u16, value: u32) -> Result<(), u8> {
        if let Some(i) = Attributes::timer(attribute) {
            self.timers[i] = value;
            return Ok(());
        }
        let Some(i) = KNOWN.iter().position(|(known, ..)| *known == attribute) else {
            return Err(result::INVALID_ATTRIBUTE);
        };
        let is_possible = match attribute {
            attribute::POWER_MODE => [value >> 4, value & 0xF].iter().all(|mode| matches!(mode, 1 | 2 | 4 | 5)),
            attribute::ACTIVE_TX_LANES | attribute::ACTIVE_RX_LANES => (1..=LANES).contains(&value),
            attribute::TX_GEAR | attribute::RX_GEAR => (1..=7).contains(&value),
            _ => true,
        };
        match (KNOWN[i].2, is_possible) {
            (false, _) => Err(result::READ_ONLY),
            (true, false) => Err(result::INVALID_VALUE),
            (true, true) => {
                self.known[i] = value;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_kept_or_refused() {
        assert_eq!(Attributes::new(UfsVersion::V40).get(attribute::MAX_RX_HS_GEAR), Ok(5));
        let mut side = Attributes::new(UfsVersion::V31);
        assert_eq!(side.get(attribute::MAX_RX_HS_GEAR), Ok(4));
        assert_eq!(side.set(attribute::MAX_RX_HS_GEAR, 5), Err(result::READ_ONLY));
        assert_eq!(side.set(attribute::POWER_MODE, 0x11), Ok(()));
        assert_eq!(side.get(attribute::POWER_MODE), Ok(0x11));
        assert_eq!(side.set(attribute::POWER_MODE, 0x13), Err(result::INVALID_VALUE));
        assert_eq!(side.set(0x1234, 1), Err(result::INVALID_ATTRIBUTE));
        assert_eq!((side.set(0x15B5, 7), side.get(0x15B5)), (Ok(()), Ok(7)));
        assert_eq!((side.set(0xD046, 8), side.get(0xD046)), (Ok(()), Ok(8)));
    }
}
