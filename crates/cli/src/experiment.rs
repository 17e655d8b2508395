// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an experiment to its document: planned, run, shown and written. Every command whose workload is an experiment's
//! goes through here; what made the experiment, a file or options, it does not know.

use crate::args::{Basics, Common, Recorded};
use crate::dry_run::{self, Planned};
use crate::failure::classify;
use crate::files::{check_not_input, check_writable};
use crate::inputs::read_text;
use crate::live::Live;
use crate::output::{self, Kept};
use crate::{attacks, presets, runs, usage};
use anyhow::{Result, anyhow};
use readpath_config::experiment::Experiment;
use readpath_lab::experiment::{CaseRun, ExperimentError, Plan, expected_ios, plan, run_all, watch};
use readpath_lab::{beforehand, document};
use readpath_results::{Document, Note};
use readpath_run::execute;
use std::path::{Path, PathBuf};

/// The files of a command that simulates.
pub struct Files<'a> {
    /// For the document and its page.
    pub folder: Option<PathBuf>,
    /// What was read, and so is not to be written to.
    pub inputs: &'a [&'a Path],
    /// For what is printed, instead of standard output.
    pub to: Option<&'a Path>,
}

impl Files<'_> {
    /// Sees to it that everything can be written.
    pub fn prepare(&self, basics: &Basics) -> Result<Kept> {
        if let Some(to) = self.to {
            if basics.csv.as_deref() == Some(to) {
                return Err(usage(anyhow!("--csv and --output both write to {}; choose another file", to.display())));
            }
            self.inputs.iter().try_for_each(|input| check_not_input(to, input))?;
            check_writable(to)?;
        }
        Kept::create(basics, self.folder.as_deref(), self.inputs.iter().copied())
    }
}

/// Runs an experiment, prints its table or document and writes its folder.
pub fn run_and_show(experiment: &Experiment, common: &Common, files: Files) -> Result<Document> {
    let plans = plans(experiment, common)?;
    let (kept, to) = (files.prepare(&common.basics)?, files.to);
    let live = show(&plans, common)?;
    let runs = run(plans, common, &live)?;
    let mut doc = finish(experiment, &runs, &live)?;
    // A table of their own: they are counted, where everything else is timed.
    let costs = doc.clone();
    let attacks = attacks::document(experiment, common, &runs)?;
    if let Some(attacks) = &attacks {
        doc.rows.extend_from_slice(&attacks.rows);
        doc.notes.extend_from_slice(&attacks.notes);
        doc.simulated_ios += attacks.simulated_ios;
        doc.process = output::process();
        doc.validate()?;
    }
    // What took long is shown also if it cannot be written.
    let written = kept.write(&doc);
    // A file may be read on any terminal.
    let width = if to.is_none() { output::terminal_width() } else { None };
    let shown = files.folder.as_deref().filter(|_| written.is_ok());
    let tables = || {
        let attacks = attacks.map(|attacks| attacks::table(&attacks, width));
        output::table(&costs, output::columns(&costs), width) + &attacks.unwrap_or_default()
    };
    output::show(&doc, &common.basics, shown, to, tables)?;
    written?;
    live.finish()?;
    runs::complete(runs.iter().filter_map(CaseRun::incomplete), runs.len())?;
    Ok(doc)
}

/// Shows the runs of an experiment and makes none.
pub fn dry_run(experiment: &Experiment, common: &Common) -> Result<()> {
    let plans = plans(experiment, common)?;
    dry_run::show(&experiment.title, &Planned::of_plans(&plans), common.basics.json)?;
    if attacks::belong_to(experiment, common) && !common.basics.json {
        output::emit("Attacks on HPB entries follow; they are not counted here\n", None)?;
    }
    Ok(())
}

/// The document of runs, with what was changed while they went on.
pub fn finish(experiment: &Experiment, runs: &[CaseRun], live: &Live) -> Result<Document> {
    let mut doc = document::document(experiment, runs)?;
    doc.notes.extend(live.notes().into_iter().map(Note::remark));
    doc.process = output::process();
    doc.validate()?;
    Ok(doc)
}

/// The runs that were asked for, with everything checked that can be checked without running them.
pub fn plans(experiment: &Experiment, common: &Common) -> Result<Vec<Plan>> {
    let overrides = presets::overrides(&common.basics.set)?;
    let mut plans = plan(experiment, &overrides, &read_text).map_err(classify)?;
    runs::choose(&mut plans, |p| &p.case, "--case", common.case.as_deref())?;
    runs::choose(&mut plans, |p| &p.variant, "--variant", common.variant.as_deref())?;
    plans.iter_mut().for_each(|p| p.setup.encoded = common.wire);
    runs::only_one_traced(common, plans.len())?;
    beforehand::plans(&plans).map_err(classify)?;
    Ok(plans)
}

/// Lets others see the runs that are planned, if that was asked for.
pub fn show(plans: &[Plan], common: &Common) -> Result<Live> {
    Live::start(&common.live, plans.iter().map(|p| (p.case.clone(), p.variant.clone())))
}

/// Makes the runs, or records the only one.
pub fn run(mut plans: Vec<Plan>, common: &Common, live: &Live) -> Result<Vec<CaseRun>> {
    if let (Some(path), [_]) = (&common.trace_io, &plans[..]) {
        return Ok(vec![traced(plans.remove(0), path, common.recorded(), live)?]);
    }
    let expected = plans.iter().map(|p| expected_ios(&p.workload)).sum::<Option<u64>>();
    let count = plans.len();
    let result = runs::side_by_side(common.basics.threads, count, expected, &runs::stoppable(live)?, |shared| {
        run_all(plans, shared)
    })?;
    result.map_err(classify)
}

/// One run with every stage of its requests recorded.
fn traced(mut plan: Plan, path: &Path, recorded: Recorded, live: &Live) -> Result<CaseRun> {
    let title = format!("{}, {}", plan.case, plan.variant);
    runs::recorded(path, &title, recorded, &*runs::stoppable(live)?, |tap, shared| {
        let (result, tap) = execute(&plan.setup, &mut plan.workload, tap, &mut watch(shared, 0));
        let run = match result {
            Ok(output) => Ok(CaseRun { plan, output }),
            Err(error) => Err(ExperimentError::Run { case: plan.case, variant: plan.variant, error }),
        };
        (run, tap)
    })
}
