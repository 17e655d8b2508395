// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload under which variants are compared: an experiment, also that of a fio job, or a trace. It makes the
//! points of any variants and seeds, and reduces each run to its own document.

use super::{CompareTexts, Seeds, Trial};
use crate::experiment::{self, plan};
use crate::fragment::Fragment;
use crate::over_time::{self, Timed};
use crate::question::{AskError, Point, Shown};
use crate::replay::{self, Replay, ReplayCase, ReplayOptions, ReplayTexts, ReplayVariant};
use crate::runs::{CaseRun, ExperimentError};
use crate::{beforehand, map_rows};
use readpath_config::experiment::{Experiment, Layout, Variant};
use readpath_config::{DevicePreset, Override};
use readpath_results::{Document, Error};
use readpath_run::LUN;
use std::path::Path;
use std::sync::Arc;
use std::{fmt, io, slice};

/// How the text of a file is read.
pub type Read = Arc<dyn Fn(&Path) -> io::Result<String> + Send + Sync>;

/// A workload without variants and seeds.
#[derive(Clone)]
pub enum Basis {
    /// An experiment. Its own variants and seed are ignored.
    Experiment {
        /// The experiment.
        experiment: Arc<Experiment>,
        /// Overrides of every device.
        set: Vec<Override>,
        /// The only case that is run; none for all.
        case: Option<String>,
        /// How job files are read.
        read: Read,
    },
    /// A trace.
    Trace {
        /// The trace and those before it.
        case: Arc<ReplayCase>,
        /// The device that variants are made of.
        preset: Box<DevicePreset>,
        /// How it is replayed. The seed does not count.
        options: ReplayOptions,
        /// Texts of its documents.
        texts: Box<ReplayTexts>,
    },
}

impl fmt::Debug for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Basis::Experiment { experiment, case, .. } => {
                f.debug_struct("Experiment").field("name", &experiment.name).field("case", case).finish()
            }
            Basis::Trace { case, .. } => f.debug_struct("Trace").field("case", &case.name).finish(),
        }
    }
}

impl Basis {
    /// Texts of the comparison's document.
    pub(super) fn texts(&self) -> CompareTexts {
        match self {
            Basis::Experiment { experiment, .. } => {
                let mut drawn = "the random choices of the workload".to_owned();
                if experiment.precondition.layout == Layout::Random {
                    drawn.push_str(" and the order in which its files lie in flash");
                }
                let description = experiment.description.clone();
                CompareTexts { title: experiment.title.clone(), description, drawn: Some(drawn) }
            }
            Basis::Trace { options, texts, .. } => CompareTexts {
                title: texts.title.clone(),
                description: texts.description.clone(),
                drawn: (options.layout == Layout::Random).then(|| {
                    "the order in which preloaded blocks lie in flash; the requests of a trace are fixed".to_owned()
                }),
            },
        }
    }

    /// The runs of `variants`, seed by seed. Only the first seed is kept over time.
    pub(super) fn points(&self, variants: &[Variant], seeds: Seeds) -> Result<Vec<Point>, AskError> {
        let mut points = Vec::new();
        match self {
            Basis::Experiment { experiment, set, case, read } => {
                for seed in seeds.all() {
                    let mut of_seed = Experiment::clone(experiment);
                    (of_seed.seed, of_seed.variants) = (seed, variants.to_vec());
                    let mut plans = plan(&of_seed, set, &**read)?;
                    plans.retain(|plan| case.as_ref().is_none_or(|case| plan.case == *case));
                    if seed == seeds.first() {
                        beforehand::plans(&plans)?;
                    } else {
                        plans.iter_mut().for_each(|plan| plan.setup.over_time = false);
                    }
                    points.extend(plans.into_iter().map(|plan| Point::Workload(Box::new(plan))));
                }
            }
            Basis::Trace { case, preset, options, .. } => {
                let variants = replay_variants(&case.name, variants, preset, !case.units.is_one())?;
                for seed in seeds.all() {
                    let over_time = options.over_time && seed == seeds.first();
                    let options = ReplayOptions { seed, over_time, ..*options };
                    let replays = Replay::all(slice::from_ref(case), &variants, &options);
                    points.extend(replays.into_iter().map(Point::Replay));
                }
            }
        }
        Ok(points)
    }

    /// The document of a single run.
    pub(super) fn trial(&self, shown: Shown<'_>) -> Result<Trial, Error> {
        match (self, shown) {
            (Basis::Experiment { experiment, .. }, Shown::Workload(plan, output)) => {
                let mut experiment = Experiment::clone(experiment);
                experiment.seed = plan.setup.seed;
                let says_where_the_map_is = map_rows::matter([plan]);
                let run = experiment::fragment(&experiment, CaseRun { plan, output: &output }, says_where_the_map_is)?;
                let document = experiment::document(&experiment, slice::from_ref(plan), &[&run])?;
                trial((experiment.seed, &plan.variant), document, &plan.case, experiment::timed(plan, &run), &run)
            }
            (Basis::Trace { texts, .. }, Shown::Replay(replay, output)) => {
                let run = replay::fragment(replay, &output)?;
                let document = replay::document(texts, slice::from_ref(replay), &[Some(&run)])?;
                let at = (replay.options.seed, &*replay.variant.name);
                trial(at, document, &replay.case.name, replay::timed(replay, &run), &run)
            }
            _ => unreachable!("points are of the kind of their basis"),
        }
    }
}

fn trial(
    (seed, variant): (u64, &str),
    mut document: Document,
    case: &str,
    timed: Option<Timed>,
    run: &Fragment,
) -> Result<Trial, Error> {
    let timed: Vec<Timed> = timed.into_iter().collect();
    let over_time = over_time::charts(case, &timed, true)?;
    document.charts.clear();
    Ok(Trial { seed, variant: variant.to_owned(), document, over_time, incomplete: run.incomplete.clone() })
}

/// Device and host of each variant of the trace `case`, checked as far as can be without the trace: it has to fit onto
/// all of them, and onto their logical units if it `is_on_units`.
///
/// # Errors
/// What does not fit, or what cannot be.
pub fn replay_variants(
    case: &str,
    variants: &[Variant],
    preset: &DevicePreset,
    is_on_units: bool,
) -> Result<Vec<Arc<ReplayVariant>>, AskError> {
    let made = variants.iter().map(|variant| ReplayVariant::new(variant, preset).map(Arc::new));
    let made = made.collect::<Result<Vec<_>, _>>().map_err(ExperimentError::from)?;
    let blocks = |v: &ReplayVariant| v.preset.seen_units()[usize::from(LUN)].blocks;
    if let Some(other) = made.iter().find(|v| blocks(v) != blocks(&made[0])) {
        return Err(AskError::Wrong(format!(
            "'{}' has {} blocks and '{}' has {}: a trace is fitted to one size of the logical unit; change it with \
             --set",
            made[0].name,
            blocks(&made[0]),
            other.name,
            blocks(other)
        )));
    }
    let units = |v: &ReplayVariant| v.preset.seen_units().iter().map(|unit| unit.blocks).collect::<Vec<_>>();
    if is_on_units && made.iter().any(|v| units(v) != units(&made[0])) {
        return Err(AskError::Wrong(
            "--units: the variants have logical units of different sizes; change them with --set".to_owned(),
        ));
    }
    beforehand::variants(case, made.iter().map(Arc::as_ref))?;
    Ok(made)
}
