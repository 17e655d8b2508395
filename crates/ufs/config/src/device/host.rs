// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of the host around a device.

use super::preset::DevicePreset;
use crate::error::Result;
use crate::keys::{Key, Keys, blocks_of_kib, fields, flag, table, us_within, whole};
use readpath_device::Delays;
use readpath_host::HostConfig;
use readpath_kit::Ns;

/// What the table `[host]` says.
#[derive(Clone)]
pub(super) struct Host {
    pub delays: Delays,
    pub config: HostConfig,
}

/// `[host]`; whether WriteBooster is used is written only where it matters.
pub(super) fn read(k: &mut Keys<DevicePreset>, has_booster: bool) -> Result<Host> {
    let delay = || us_within(Ns::ZERO, Ns::from_secs(1000));
    let keys = |k: &mut Keys<Host>| {
        fields! { k:
            /// from the submission of a request to the link; delays no other request
            to_link of delays = "submit_us": delay();
            /// from the link to the submitter
            from_link of delays = "complete_us": delay();
            /// transfer request slots (NUTRS); the last is reserved for queries
            slots of config: whole(2..=64);
            /// longest transfer of a command; longer requests are split
            max_transfer_blocks of config = "max_transfer_kib": blocks_of_kib(65_535);
            /// whether the host enables WriteBooster if the device has it
            write_booster of config: flag().or(true).quiet_if(!has_booster);
        }
        let config = HostConfig { slots, max_transfer_blocks, hpb: None, write_booster };
        Ok(Host { delays: Delays { to_link, from_link }, config })
    };
    let host = Key::new("host", "delays and limits of the host").of("");
    k.key(host, table(keys), |preset| Host { delays: preset.delays, config: preset.host })
}
