// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the entries that a device hands out are protected, what that costs and who does it, and the checks of that.

use super::error::{ConfigError, bad, bad_value};
use readpath_kit::Ns;

/// Treatment of the entry of an HPB READ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verification {
    /// Only an authentic and fresh entry is used.
    On,
    /// Any entry whose address exists is used. For tests that prove the need of verification.
    Off,
}

readpath_kit::named! {
    /// What prevents a host from forging entries.
    pub enum Protection {
        /// A keyed tag next to the physical address, which is not encrypted.
        Mac = "mac",
        /// Address and redundancy are encrypted together: the host learns no address.
        Encrypted = "encrypted",
        /// Nothing. The address is believed if it exists, the sub-region was handed out and nothing in the
        /// neighbourhood has changed since. A host that makes entries up, or keeps old ones, can read any slice.
        None = "none",
    }
}

readpath_kit::named! {
    /// Who makes and checks entries.
    pub enum CheckOn {
        /// The firmware core.
        Firmware = "firmware",
        /// An engine of its own, first come, first served; the firmware core hears of an HPB READ when it is done with
        /// it.
        Engine = "engine",
    }
}

/// Protection of entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryConfig {
    /// Kind of protection.
    pub protection: Protection,
    /// Bits of the tag of [`Protection::Mac`], 8 to 32. Fewer than 32 serve to measure how often a forgery succeeds.
    pub tag_bits: u8,
    /// Who makes and checks them.
    pub check_on: CheckOn,
    /// Time to protect one entry that is handed out, on top of [`crate::FirmwareTiming::make_entry`].
    pub make: Ns,
    /// Time to check one entry that comes with an HPB READ, on top of [`crate::FirmwareTiming::hpb_read_extra`]. An
    /// entry that fails against the current hand-out is checked again, against the one before.
    pub check: Ns,
    /// Whether the device finds out if an entry that it did not make for this block was made for another: it reads
    /// the spare area of the slice that the entry names. Only for counting.
    pub tell_foreign: bool,
}

impl EntryConfig {
    /// A tag of 32 bits without additional times.
    pub const DEFAULT: EntryConfig = EntryConfig {
        protection: Protection::Mac,
        tag_bits: 32,
        check_on: CheckOn::Firmware,
        make: Ns::ZERO,
        check: Ns::ZERO,
        tell_foreign: false,
    };

    /// Firmware time to protect one entry.
    pub(crate) fn make_on_firmware(&self) -> Ns {
        if self.check_on == CheckOn::Firmware { self.make } else { Ns::ZERO }
    }

    /// Firmware time to check one entry.
    pub(crate) fn check_on_firmware(&self) -> Ns {
        if self.check_on == CheckOn::Firmware { self.check } else { Ns::ZERO }
    }

    /// Whether an engine checks entries before the firmware core sees the command.
    pub(crate) fn engine_checks(&self) -> bool {
        self.check_on == CheckOn::Engine && self.check > Ns::ZERO
    }

    /// Checks the settings; `verification` says whether entries are checked at all.
    pub(crate) fn check(&self, verification: Verification) -> Result<(), ConfigError> {
        for (field, value) in [("hpb.entries.make", self.make), ("hpb.entries.check", self.check)] {
            if value > Ns::ZERO && self.protection == Protection::None {
                return bad_value(field, format!("is {value}; without protection there is nothing that takes time"));
            }
        }
        if self.protection != Protection::Mac {
            if self.tag_bits != 32 {
                return bad("hpb.entries.tag_bits", "belongs to protection = \"mac\"; remove it");
            }
            if self.tell_foreign {
                let only = "only then does a bad entry name a slice that can be looked at";
                return bad("hpb.entries.tell_foreign", format!("needs protection = \"mac\": {only}"));
            }
        }
        if self.protection == Protection::None && self.check_on == CheckOn::Engine {
            return bad("hpb.entries.check_on", "is \"engine\", but without protection there is nothing to check");
        }
        if verification == Verification::Off && *self != Self::DEFAULT {
            return bad("hpb.entries", "says how entries are checked, but verify = false says that they are not");
        }
        Ok(())
    }
}
