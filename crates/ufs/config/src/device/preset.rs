// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device file after reading and checking.

use crate::tree::Node;
use readpath_device::{Control, Delays, DeviceConfig, LuConfig};
use readpath_host::HostConfig;

/// A device file that has been read and checked.
#[derive(Clone, Debug)]
pub struct DevicePreset {
    /// Name for reports and on the command line.
    pub name: String,
    /// The modelled device, in words.
    pub description: String,
    /// Sources of its numbers.
    pub sources: Vec<String>,
    /// The device.
    pub device: DeviceConfig,
    /// Delays of the host's software.
    pub delays: Delays,
    /// Limits of the host, without HPB, which variants add.
    pub host: HostConfig,
    /// The only control mode of HPB that it offers, unless it offers both.
    pub only_control: Option<Control>,
    /// Keys that were fitted, and the published row that each was fitted to.
    pub fitted: Vec<(String, String)>,
    /// The file's tree, for overrides.
    pub(super) tree: Node,
}

impl DevicePreset {
    /// The logical units as workloads see them: a mapper on the host hides zones, and keeps some of them.
    pub fn seen_units(&self) -> Vec<LuConfig> {
        let seen = |lu: &LuConfig| match (self.host.mapper(), lu.zones) {
            (Some(mapper), Some(zones)) => {
                LuConfig { blocks: mapper.logical_blocks(lu.zone_count(), zones.blocks), zones: None, ..*lu }
            }
            _ => *lu,
        };
        self.device.lus.iter().map(seen).collect()
    }
}
