// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a point to its record: device, host and workload are made of its settings, and the run is made.

use crate::error::SweepError;
use crate::plan::{Plan, Point};
use crate::record::{Named, Outcome, Record};
use crate::segment::Header;
use crate::traces::{Traces, mode};
use crate::work::Work;
use readpath_config::study::{Setting, Source};
use readpath_lab::experiment::{ReadFile, plan_case, run_figures};
use readpath_lab::replay::{self, Replay, ReplayOptions, ReplayVariant};
use readpath_lab::runs::{self, CaseRun, Shared, expected_ios};
use readpath_results::Metric;
use readpath_run::LUN;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Makes points of a plan, and holds the data that they share.
#[derive(Default)]
pub struct Maker {
    traces: Traces,
}

/// The points of a plan, made by `maker`.
#[derive(Clone, Copy)]
pub struct OfPlan<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Makes them.
    pub maker: &'a Maker,
    /// Reads device, experiment and job files.
    pub read: &'a (dyn Fn(&Path) -> io::Result<String> + Sync),
}

impl Work for OfPlan<'_> {
    type Figures = Named;

    fn header(&self) -> Header {
        self.plan.header()
    }

    fn make(&self, index: u64, shared: &Shared) -> Result<Option<Record>, SweepError> {
        Ok(self.maker.make(self.plan, &self.plan.point(index), self.read, shared))
    }
}

/// A point that is ready to run.
struct Ready {
    variant: ReplayVariant,
    run: Run,
    seed: u64,
}

enum Run {
    Workload(Box<runs::Plan>),
    Trace(readpath_config::study::TraceKeys),
}

fn ready(plan: &Plan, point: &Point, read: ReadFile) -> Result<Ready, String> {
    let file = plan.study.point(&point.settings, read).map_err(whole)?;
    let seed = point.seed;
    let mut variant = ReplayVariant::new(&file.variant, &file.device).map_err(whole)?;
    let run = match file.source {
        Source::Workload { mut experiment, case, options } => {
            experiment.seed = seed;
            let planned = plan_case(&experiment, &case, &file.variant, &variant.preset, &options, read);
            Run::Workload(Box::new(planned.map_err(whole)?))
        }
        Source::Trace { keys, events } => {
            variant.events = events;
            Run::Trace(keys)
        }
    };
    Ok(Ready { variant, run, seed })
}

/// An error with what caused it.
fn whole(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let this = error.to_string();
        // Some errors repeat their cause.
        if !text.ends_with(&this) {
            text = format!("{text}: {this}");
        }
        cause = error.source();
    }
    text
}

impl Maker {
    /// The trace that a point replays; files are read on the way.
    pub(crate) fn trace_of(plan: &Plan, point: &Point, read: ReadFile) -> Option<String> {
        match ready(plan, point, read).ok()?.run {
            Run::Trace(keys) => keys.file,
            Run::Workload(_) => None,
        }
    }

    /// Whether device, host and workload of a point can be made.
    pub(crate) fn check(plan: &Plan, point: &Point, read: ReadFile) -> Result<(), String> {
        ready(plan, point, read).map(drop)
    }

    /// Requests that a point will make, if known before the run.
    pub fn expected_ios(plan: &Plan, point: &Point, read: ReadFile) -> Option<u64> {
        match ready(plan, point, read).ok()?.run {
            Run::Workload(planned) => expected_ios(&planned.workload),
            Run::Trace(_) => None,
        }
    }

    /// Makes a point; none if it was stopped by `shared`.
    pub fn make(&self, plan: &Plan, point: &Point, read: ReadFile, shared: &Shared) -> Option<Record> {
        let made = ready(plan, point, read).and_then(|ready| self.run(plan, ready, shared));
        if shared.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return None;
        }
        let (ios, outcome) = match made {
            Ok((ios, figures)) => (ios, Outcome::Figures(figures)),
            Err(why) => (0, Outcome::Error(why)),
        };
        let settings = point.settings.iter().map(Setting::plain).collect();
        Some(Record { point: point.index, seed: Some(point.seed), settings, ios, outcome })
    }

    fn run(&self, plan: &Plan, ready: Ready, shared: &Shared) -> Result<(u64, Named), String> {
        match ready.run {
            Run::Workload(planned) => {
                let output = planned.make(0, None, shared).0.map_err(whole)?;
                let run = CaseRun { plan: &planned, output: &output };
                if let Some(missing) = run.incomplete() {
                    return Err(missing);
                }
                let figures = run_figures(run).into_iter().map(|(case, metric, value)| {
                    // Cycles of launches are cases of their own.
                    let part = if case.name() == &*planned.case { case.part_name() } else { &case };
                    (column(part, &metric), value)
                });
                Ok((output.ios, checked(figures)?))
            }
            Run::Trace(keys) => {
                let blocks = ready.variant.preset.seen_units()[usize::from(LUN)].blocks;
                let case = self.traces.get(plan, &keys, blocks, &shared.stop)?;
                let (mode, layout) = (mode(&keys), keys.preload);
                let options = ReplayOptions { mode, layout, seed: ready.seed, encoded: false, over_time: false };
                let replay = Replay { case, variant: Arc::new(ready.variant), options };
                let run = replay.make(0, None, shared).0.map_err(whole)?;
                let figures = replay::run_figures(&replay.variant, &run);
                let figures = figures.into_iter().map(|(metric, value)| (column("", &metric), value));
                let ios = run.phases.iter().map(|phase| phase.output.stats.ios).sum();
                Ok((ios, checked(figures)?))
            }
        }
    }
}

/// The name of a figure, with the part of the run and the unit.
fn column(part: &str, metric: &Metric) -> String {
    let part = if part.is_empty() { String::new() } else { format!("{part}: ") };
    match metric.unit() {
        "" => format!("{part}{}", metric.name()),
        unit => format!("{part}{} ({unit})", metric.name()),
    }
}

fn checked(figures: impl Iterator<Item = (String, f64)>) -> Result<Named, String> {
    figures
        .map(|(name, value)| match value.is_finite() {
            true => Ok((name, value)),
            false => Err(format!("{name} is {value}, which is not finite; this is a fault of the program")),
        })
        .collect()
}
