// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device file after reading and checking. It knows no key.

use crate::tree::Node;
use readpath_device::{Control, Delays, DeviceConfig};
use readpath_host::HostConfig;

/// A device file that has been read and checked.
#[derive(Clone, Debug)]
pub struct DevicePreset {
    /// Name for reports and on the command line.
    pub name: String,
    /// What it is a model of, for people.
    pub description: String,
    /// Where its numbers come from.
    pub sources: Vec<String>,
    /// The device.
    pub device: DeviceConfig,
    /// Delays of the host's software.
    pub delays: Delays,
    /// Limits of the host, without HPB, which variants add.
    pub host: HostConfig,
    /// The only control mode of HPB that it can be configured for, if not either.
    pub only_control: Option<Control>,
    /// Keys that were fitted, and the published row that each was fitted to.
    pub fitted: Vec<(String, String)>,
    /// The file's tree, for overrides.
    pub(super) tree: Node,
}
