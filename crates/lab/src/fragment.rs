// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is kept of one run: its rows and notes, and what charts and notes over several runs need. It is small and can
//! be written as JSON, so other processes and machines can make the run. It knows no questions.

use crate::life::Life;
use crate::little_gain::Gain;
use crate::verdict::Outcome;
use readpath_device::SramTable;
use readpath_results::Document;
use readpath_run::Series;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The part of a document that one run gives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fragment {
    /// Rows, notes and inputs, and the number of requests.
    pub document: Document,
    /// For each group of jobs that reads, by the case of its rows: shares in percent of reads whose latency (us) is no
    /// longer.
    pub latency: Vec<(String, Vec<(f64, f64)>)>,
    /// The run over time, if that was kept.
    pub over_time: Option<Series>,
    /// Counts that explain why HPB gains little.
    pub(crate) gain: Gain,
    /// What the run says of its variant.
    pub(crate) outcome: Outcome,
    /// What it says of the life of the device's cells, if the host wrote.
    pub(crate) life: Option<Life>,
    /// What each of several phases says of it.
    pub(crate) phases: Vec<Outcome>,
    /// SRAM of the modelled device by table, in bytes.
    pub sram: Map<String, Value>,
    /// Whether the device programmed any flash page.
    pub programs: bool,
    /// What the run lacks, and why.
    pub incomplete: Option<String>,
}

/// What a verdict on these runs compares: where there are several variants, the phases with reads, or all phases of a
/// run if none has any.
pub(crate) fn judged<'a>(runs: &[&'a Fragment]) -> Vec<&'a Outcome> {
    let is_alone = runs.iter().all(|run| run.outcome.variant() == runs[0].outcome.variant());
    let of_run = |run: &&'a Fragment| {
        let any = run.phases.iter().any(Outcome::reads);
        let whole = Some(&run.outcome).filter(|_| is_alone || run.phases.is_empty());
        let phases = run.phases.iter().filter(move |phase| !is_alone && (!any || phase.reads()));
        phases.chain(whole).collect::<Vec<_>>()
    };
    runs.iter().flat_map(of_run).collect()
}

pub(crate) fn sram(tables: &[(SramTable, u64)]) -> Map<String, Value> {
    tables.iter().map(|(table, bytes)| (table.name().to_owned(), Value::from(*bytes))).collect()
}

/// SRAM for the map among these tables, in bytes.
pub(crate) fn map_sram(tables: &[(SramTable, u64)]) -> u64 {
    tables.iter().filter(|(table, _)| table.is_of_map()).map(|(_, bytes)| bytes).sum()
}

/// Puts fragments together: their rows and inputs, and each of their notes once.
pub(crate) fn join<'a>(doc: &mut Document, fragments: impl IntoIterator<Item = &'a Fragment>) {
    for fragment in fragments {
        doc.absorb(fragment.document.clone(), "");
    }
}
