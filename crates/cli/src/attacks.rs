// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of `readpath reproduce verification` that no experiment file can describe: what a dishonest host gains.
//! Which attacks there are is known elsewhere.

use crate::args::Common;
use crate::failure::Interrupted;
use crate::live::Live;
use crate::{output, runs, usage};
use anyhow::Result;
use readpath_config::Experiment;
use readpath_lab::attack::{AttackError, RUNS, add_rows};
use readpath_lab::experiment::CaseRun;
use readpath_report::TableSpec;
use readpath_results::metric;
use readpath_results::{Document, Metric};

/// The experiment that attacks belong to.
const NAME: &str = "verification";

static COLUMNS: [Metric; 9] = [
    metric::TRIES,
    metric::BELIEVED,
    metric::BELIEVED_SHARE,
    metric::BELIEVED_EXPECTED,
    metric::LEAKED,
    metric::HPB_STALE,
    metric::HPB_FORGED,
    metric::HPB_FOREIGN,
    metric::HPB_ZERO,
];

/// Whether there are attacks: if `experiment` is the one that they belong to and all of it was asked for.
pub fn belong_to(experiment: &Experiment, common: &Common) -> bool {
    let chosen = common.case.is_some() || common.variant.is_some() || common.trace_io.is_some();
    experiment.name == NAME && !chosen
}

/// Attacks on a device with the times of the one in `runs`, if there are any.
pub fn document(experiment: &Experiment, common: &Common, runs: &[CaseRun]) -> Result<Option<Document>> {
    let Some(first) = runs.first().filter(|_| belong_to(experiment, common)) else { return Ok(None) };
    let mut doc = Document::new(NAME, "Attacks on HPB entries");
    let times = &first.plan.setup.preset.device;
    let made = runs::side_by_side(common.basics.threads, RUNS, None, &runs::stoppable(&Live::default())?, |shared| {
        add_rows(&mut doc, times, experiment.seed, shared)
    })?;
    match made {
        Ok(()) => Ok(Some(doc)),
        Err(AttackError::Interrupted) => Err(anyhow::Error::new(Interrupted)),
        Err(error @ AttackError::Device(_)) => Err(usage(error)),
        Err(error) => Err(error.into()),
    }
}

pub fn table(doc: &Document, width: Option<u16>) -> String {
    format!("{}\n\n{}", doc.title, output::table(doc, TableSpec::of(&COLUMNS), width))
}
