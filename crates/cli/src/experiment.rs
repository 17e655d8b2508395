// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments, whatever made them, a file or options: planned, asked and shown.

use crate::args::Common;
use crate::ask::{self, Files};
use crate::failure::classify;
use crate::inputs::read_text;
use crate::{output, presets};
use anyhow::Result;
use readpath_config::experiment::Experiment;
use readpath_lab::beforehand;
use readpath_lab::builtin;
use readpath_lab::experiment::{Experimenting, plan};
use readpath_lab::question::Answer;
use readpath_lab::runs::Plan;
use readpath_report::TableSpec;
use readpath_results::metric;
use readpath_results::{Document, Metric};

/// Columns of attacks on HPB entries.
static ATTACKS: [Metric; 9] = [
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

/// Runs an experiment, prints its table or document and writes its folder; or says which runs there would be.
pub fn ask(experiment: Experiment, common: &Common, dry: bool, files: Files) -> Result<Option<Document>> {
    ask::ask(&question(experiment, common)?, common, dry, files, tables)
}

/// The question of an experiment.
pub fn question(experiment: Experiment, common: &Common) -> Result<Experimenting> {
    let plans = plans(&experiment, common)?;
    let is_whole = common.case.is_none() && common.variant.is_none() && common.trace_io.is_none();
    let has_attacks = is_whole && builtin::has_attacks(&experiment.name);
    Ok(Experimenting::new(experiment, plans, has_attacks))
}

/// The tables of its answer: of what was timed, and of attacks, which are counted.
pub fn tables(answer: &Answer, width: Option<u16>) -> String {
    let table = |doc: &Document| output::table(doc, output::columns(doc), width);
    match &answer.parts[..] {
        [timed, attacks] => {
            let attacks_table = output::table(attacks, TableSpec::of(&ATTACKS), width);
            format!("{}{}\n\n{attacks_table}", table(timed), attacks.title)
        }
        _ => table(&answer.document),
    }
}

/// The runs that were asked for, with everything checked that can be checked without running them.
pub fn plans(experiment: &Experiment, common: &Common) -> Result<Vec<Plan>> {
    let overrides = presets::overrides(&common.basics.set)?;
    let mut plans = plan(experiment, &overrides, &read_text).map_err(classify)?;
    ask::choose(&mut plans, |p| &p.case, "--case", common.case.as_deref())?;
    ask::choose(&mut plans, |p| &p.variant, "--variant", common.variant.as_deref())?;
    plans.iter_mut().for_each(|p| p.setup.encoded = common.wire);
    ask::only_one_traced(common, plans.len())?;
    beforehand::plans(&plans).map_err(classify)?;
    Ok(plans)
}
