// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of plans, with what each showed, and their document.

use readpath_config::experiment::Experiment;
use readpath_lab::experiment::{Experimenting, fragment};
use readpath_lab::question::{Question, make};
use readpath_lab::runs::{CaseRun, ExperimentError, Plan, Shared};
use readpath_results::Document;
use readpath_run::RunOutput;

/// A plan and what its run showed.
#[derive(Debug)]
pub struct Made {
    pub plan: Plan,
    pub output: RunOutput,
}

impl Made {
    pub fn run(&self) -> CaseRun<'_> {
        CaseRun { plan: &self.plan, output: &self.output }
    }

    /// The document of this run alone.
    pub fn document(&self, experiment: &Experiment) -> Document {
        let kept = fragment(experiment, self.run(), false).expect("finite figures");
        let plans = std::slice::from_ref(&self.plan);
        readpath_lab::experiment::document(experiment, plans, &[&kept]).expect("a document")
    }
}

/// Makes all runs, one after the other.
pub fn run_all(plans: Vec<Plan>) -> Result<Vec<Made>, ExperimentError> {
    let made = |plan: Plan| Ok(Made { output: plan.make(0, None, &Shared::default()).0?, plan });
    plans.into_iter().map(made).collect()
}

/// The document of an experiment whose runs are these.
pub fn document(experiment: &Experiment, plans: Vec<Plan>) -> Document {
    let question = Experimenting::new(experiment.clone(), plans, None);
    let done = make(&question, &Shared::default()).expect("runs");
    question.answer(&done).expect("a document").document
}
