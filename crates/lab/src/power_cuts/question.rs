// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts as a question: the same workload or trace on each host, with the power cut in the middle.

use super::{Load, Moments, PowerCuts, PowerError, PowerFigures, PowerRun, PowerTexts, check, document, run};
use crate::question::{Answer, AskError, Done, Point, Question, Shown};
use crate::replay::{Mode, ReplayCase};
use crate::runs::{ExperimentError, Plan, Shared, expected_ios, watch};
use readpath_results::Error;
use readpath_run::{TapTo, rules};
use std::sync::Arc;

/// A run with power cuts to be made.
#[derive(Clone, Debug)]
pub struct Cutting {
    /// Device, host and jobs.
    pub plan: Plan,
    /// The trace that is replayed instead of the jobs of the plan, if any.
    pub trace: Option<(Arc<ReplayCase>, Mode)>,
    /// How the power is cut.
    pub cuts: PowerCuts,
    moments: Moments,
}

impl Cutting {
    /// A run of `plan`, or of `trace` in place of its jobs.
    ///
    /// # Errors
    /// Why the power cannot be cut so often.
    pub fn new(plan: Plan, trace: Option<(Arc<ReplayCase>, Mode)>, cuts: PowerCuts) -> Result<Self, PowerError> {
        let load = match &trace {
            Some((case, mode)) => Load::Trace { case, mode: *mode },
            None => Load::Workload(&mut plan.workload.clone()),
        };
        let moments = check(&load, &cuts)?;
        let units: Vec<u32> = plan.setup.preset.device.lus.iter().map(|unit| unit.blocks).collect();
        rules::check(&cuts.faults, &units).map_err(PowerError::Faults)?;
        Ok(Cutting { plan, trace, cuts, moments })
    }

    /// All that it depends on but the requests of its trace.
    pub(crate) fn settings(&self) -> String {
        let trace = self.trace.as_ref().map(|(case, mode)| (&case.name, &case.units, mode));
        format!("{:?} {trace:?} {:?} {:?}", self.plan, self.cuts, self.moments)
    }

    /// Requests that it will make, if that is known before.
    pub(crate) fn expected_ios(&self) -> Option<u64> {
        match &self.trace {
            Some((case, _)) => Some(case.ios()),
            None => expected_ios(&self.plan.workload),
        }
    }

    /// Makes the run. See [`Plan::make`].
    pub(crate) fn make<'t>(
        &self,
        place: usize,
        tap: Option<TapTo<'t>>,
        shared: &Shared,
    ) -> (Result<PowerRun, ExperimentError>, Option<TapTo<'t>>) {
        let mut workload = self.plan.workload.clone();
        let load = match &self.trace {
            Some((case, mode)) => Load::Trace { case, mode: *mode },
            None => Load::Workload(&mut workload),
        };
        let watch = &mut watch(shared, place);
        let (run, tap) = run(&self.plan.setup, load, &self.cuts, self.moments, tap, watch);
        (run.map_err(|error| self.plan.failed(error)), tap)
    }
}

/// What recovery takes on each host, and whether all data was there.
#[derive(Clone, Debug)]
pub struct Cuttings {
    texts: PowerTexts,
    cuts: PowerCuts,
    points: Vec<Point>,
}

impl Cuttings {
    /// The question of these runs.
    pub fn new(texts: PowerTexts, cuts: PowerCuts, runs: Vec<Cutting>) -> Self {
        let points = runs.into_iter().map(|run| Point::Cuts(Box::new(run))).collect();
        Cuttings { texts, cuts, points }
    }

    fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.points.iter().filter_map(|point| if let Point::Cuts(run) = point { Some(&run.plan) } else { None })
    }
}

impl Question for Cuttings {
    type Figures = PowerFigures;

    fn title(&self) -> String {
        self.texts.title.clone()
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn figures(&self, shown: Shown<'_>) -> Result<PowerFigures, Error> {
        let Shown::Cuts(cutting, run) = shown else { unreachable!("all points have power cuts") };
        PowerFigures::of(&cutting.plan, &run)
    }

    fn answer(&self, done: &[Done<PowerFigures>]) -> Result<Answer, AskError> {
        let runs: Vec<&PowerFigures> = done.iter().flatten().collect();
        let plans: Vec<&Plan> = self.plans().collect();
        let document = document(&self.texts, &plans, &self.cuts, &runs)?;
        let sum = |of: fn(&PowerFigures) -> u64| runs.iter().map(|run| of(run)).sum::<u64>();
        let failed = match (sum(|run| run.wrong), sum(|run| run.wrong_by_rule)) {
            (0, 0) => None,
            (0, by_rule) => Some(format!("{by_rule} blocks were lost by rule; see the notes of the results")),
            (wrong, _) => Some(format!("{wrong} blocks held wrong data; see the notes of the results")),
        };
        Ok(Answer { failed, ..Answer::new(document, done.len()) })
    }
}
