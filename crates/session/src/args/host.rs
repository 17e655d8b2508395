// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts, and the state of the device before the first request.

use clap::{Args, ValueEnum};
use readpath_config::experiment::Layout;
use readpath_host::PolicyChoice;

/// Whether the host uses HPB.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hpb {
    /// Never
    Off,
    /// Device control mode: the device recommends what to load
    Dcm,
    /// Host control mode: the host counts reads and decides
    Hcm,
    /// off and dcm
    Both,
    /// off, dcm and hcm
    All,
    /// The prototype of 2017: the host loads the groups that responses call changed
    PrototypeHost,
    /// The prototype of 2017: responses also carry changed entries
    PrototypeDevice,
    /// prototype-host and prototype-device
    Prototype,
}

/// State of the device before the first request.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// The files of the workload, written in ascending order
    Sequential,
    /// The files of the workload, written in random order
    Random,
    /// Nothing is written before the run
    None,
}

impl Fill {
    /// The order of what is written, if anything is.
    pub fn layout(self) -> Option<Layout> {
        match self {
            Fill::Sequential => Some(Layout::Sequential),
            Fill::Random => Some(Layout::Random),
            Fill::None => None,
        }
    }
}

/// Help of an option that takes policies, with their names.
pub fn policies(what: &str) -> String {
    format!("{what}: {}", PolicyChoice::names())
}

/// Hosts with HPB, and without.
#[derive(Args, Debug)]
pub struct HpbHost {
    /// Whether and how the host uses HPB [default: both, or what --policy needs]
    #[arg(long, value_enum)]
    pub hpb: Option<Hpb>,
    /// Host memory policies.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        help = policies("Host memory policies, separated by commas")
    )]
    pub policy: Vec<String>,
    /// Limit of all host memory for HPB (maps, dirty bitmaps, tables): bytes, or with K, M or G
    #[arg(long, value_name = "BYTES")]
    pub host_memory: Option<String>,
}
