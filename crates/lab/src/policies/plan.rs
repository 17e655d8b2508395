// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is compared, as data: `experiments/policies.toml`.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Name and number of the format.
const SCHEMA: &str = "readpath-policies-experiment/1";

/// The experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoliciesPlan {
    schema: String,
    /// Heading.
    pub title: String,
    /// Preset of the device.
    pub device: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Sizes of host memory that are compared.
    pub memory_mib: Vec<u64>,
    /// Largest slowdown against `linux-dcm`, in percent, of a policy that may be called better.
    pub slower_percent: f64,
    /// Folder of recorded traces, each with a trace that precedes it.
    pub folder_of_pairs: String,
    /// Folder of single recorded traces.
    pub folder_of_singles: String,
    /// Launches of applications.
    pub launches: PlannedLaunches,
    /// Protocols, in the order of [`super::Protocol`].
    pub(super) protocol: [PlannedProtocol; 2],
}

/// Which launches, and how many.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedLaunches {
    /// The experiment whose applications are started, on its own device.
    pub experiment: String,
    /// Cycles that are run, the first ones.
    pub cycles: usize,
}

/// A protocol, and its keys in addition to policy and memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlannedProtocol {
    /// Its part of the names of variants.
    pub(super) name: String,
    #[serde(default)]
    pub(super) set: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) set_for_own_policies: BTreeMap<String, String>,
    /// Keys for one policy, by its name; they override all others.
    #[serde(default)]
    pub(super) set_for_policy: BTreeMap<String, BTreeMap<String, String>>,
}

impl PoliciesPlan {
    /// The file that comes with the program.
    pub fn builtin() -> &'static PoliciesPlan {
        static PLAN: OnceLock<PoliciesPlan> = OnceLock::new();
        PLAN.get_or_init(|| {
            let text = include_str!("../../../../experiments/policies.toml");
            let plan: PoliciesPlan = toml::from_str(text).expect("the built-in experiment is valid");
            assert_eq!(plan.schema, SCHEMA, "the built-in experiment has the schema of this program");
            plan
        })
    }
}
