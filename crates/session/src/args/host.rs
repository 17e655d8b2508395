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
    /// The prototype of 2017: the host loads the groups that responses call changed
    PrototypeHost,
    /// The prototype of 2017: responses also carry changed entries
    PrototypeDevice,
}

/// State of the device before the first request.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// Written in ascending order
    Sequential,
    /// Written in random order
    Random,
    /// Nothing is written before; not for traces, which read what was there
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

/// Names of host memory policies.
pub fn policy_names() -> Vec<String> {
    PolicyChoice::ALL.iter().map(|policy| policy.name().to_owned()).collect()
}

/// Help of an option that takes policies, with their names.
pub fn policies(what: &str) -> String {
    format!("{what}: {}", PolicyChoice::names())
}

/// The variants of a run: all combinations of what is listed.
#[derive(Args, Clone, Default, Debug)]
pub struct Hosts {
    /// How the host uses HPB, separated by commas [default: off,dcm, unless --policy or --vary say it]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "MODE")]
    pub hpb: Vec<Hpb>,
    /// Host memory policies.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        help = policies("Host memory policies, separated by commas")
    )]
    pub policy: Vec<String>,
    /// Values of a key of device, host or policy; or a whole variant, NAME:KEY=VALUE,KEY=VALUE; repeatable
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub vary: Vec<String>,
    /// Limit of all host memory for HPB (maps, dirty bitmaps, tables): bytes, or with K, M or G
    #[arg(long, value_name = "BYTES")]
    pub host_memory: Option<String>,
}
