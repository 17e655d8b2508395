// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one shape of everything that is asked of runs. A question has *points*, each of which is one run; perhaps
//! further points that depend on what others showed; and an answer. It knows no threads, processes or machines:
//!
//! ```text
//! points() ─▶ runner makes each point ─▶ figures() keeps what matters ─┬─▶ more() ─▶ further points, if any
//!                                                                     └─▶ answer(): verdict and document
//! ```
//!
//! Points are numbered from 0: first those of [`Question::points`], then those of each call of [`Question::more`]. A
//! question with the same inputs has the same points in the same order on any machine, so a runner may keep figures by
//! number, go on later, or have them made elsewhere.

use crate::attack::{Attempt, Tally};
use crate::power_cuts::{Cutting, PowerRun};
use crate::replay::{Replay, ReplayCase, ReplayRun};
use crate::runs::{ExperimentError, Plan, Shared, expected_ios};
use rayon::prelude::*;
use readpath_results::{Document, Error as ResultsError, NoteKind};
use readpath_run::{RunOutput, TapTo};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use thiserror::Error;

/// A run to be made: its inputs, settings and seed.
#[derive(Clone, Debug)]
pub enum Point {
    /// Jobs or launches.
    Workload(Box<Plan>),
    /// A block trace.
    Replay(Replay),
    /// Jobs, launches or a trace, with power cuts.
    Cuts(Box<Cutting>),
    /// An attack on HPB entries.
    Attack(Attempt),
}

/// A point and what its run showed, before that is reduced to figures.
#[derive(Debug)]
pub enum Shown<'a> {
    /// The run of a [`Point::Workload`].
    Workload(&'a Plan, RunOutput),
    /// The run of a [`Point::Replay`].
    Replay(&'a Replay, ReplayRun),
    /// The run of a [`Point::Cuts`].
    Cuts(&'a Cutting, Box<PowerRun>),
    /// The counts of a [`Point::Attack`].
    Attack(Box<Tally>),
}

impl Point {
    /// Its case.
    pub fn case(&self) -> &str {
        match self {
            Point::Workload(plan) => &plan.case,
            Point::Replay(replay) => &replay.case.name,
            Point::Cuts(cutting) => &cutting.plan.case,
            Point::Attack(attempt) => &attempt.case,
        }
    }

    /// Its variant.
    pub fn variant(&self) -> &str {
        match self {
            Point::Workload(plan) => &plan.variant,
            Point::Replay(replay) => &replay.variant.name,
            Point::Cuts(cutting) => &cutting.plan.variant,
            Point::Attack(attempt) => attempt.variant,
        }
    }

    /// The block trace that it replays.
    pub fn trace(&self) -> Option<&Arc<ReplayCase>> {
        match self {
            Point::Replay(replay) => Some(&replay.case),
            Point::Cuts(cutting) => cutting.trace.as_ref().map(|(case, _)| case),
            Point::Workload(_) | Point::Attack(_) => None,
        }
    }

    /// All that its run depends on, but for the requests of its [`Point::trace`]: two points of one version that differ
    /// have different texts.
    pub fn settings(&self) -> String {
        match self {
            Point::Workload(plan) => format!("{plan:?}"),
            Point::Replay(Replay { case, variant, options }) => {
                format!("{} {:?} {variant:?} {options:?}", case.name, case.units)
            }
            Point::Cuts(cutting) => cutting.settings(),
            Point::Attack(attempt) => format!("{attempt:?}"),
        }
    }

    /// Requests that it will make, if that is known before.
    pub fn expected_ios(&self) -> Option<u64> {
        match self {
            Point::Workload(plan) => expected_ios(&plan.workload),
            Point::Replay(replay) => Some(replay.case.ios()),
            Point::Cuts(cutting) => cutting.expected_ios(),
            Point::Attack(attempt) => Some(attempt.expected()),
        }
    }

    /// Makes the run, `place`th of those that are shown while they go on. The tap sees every stage of a run on a stack,
    /// and comes back in any case but that of a device which cannot be made.
    pub fn make<'t>(
        &self,
        place: usize,
        tap: Option<TapTo<'t>>,
        shared: &Shared,
    ) -> (Result<Shown<'_>, ExperimentError>, Option<TapTo<'t>>) {
        match self {
            Point::Workload(plan) => {
                let (run, tap) = plan.make(place, tap, shared);
                (run.map(|run| Shown::Workload(plan, run)), tap)
            }
            Point::Replay(replay) => {
                let (run, tap) = replay.make(place, tap, shared);
                (run.map(|run| Shown::Replay(replay, run)), tap)
            }
            Point::Cuts(cutting) => {
                let (run, tap) = cutting.make(place, tap, shared);
                (run.map(|run| Shown::Cuts(cutting, Box::new(run))), tap)
            }
            Point::Attack(attempt) => (attempt.make(shared).map(|tally| Shown::Attack(Box::new(tally))), tap),
        }
    }

    /// [`Point::make`] without a tap.
    ///
    /// # Errors
    /// When the device cannot be made, or the run fails or is stopped.
    pub fn run(&self, place: usize, shared: &Shared) -> Result<Shown<'_>, ExperimentError> {
        self.make(place, None, shared).0
    }
}

/// Why a question has no answer.
#[derive(Debug, Error)]
pub enum AskError {
    /// A run failed, or could not be planned.
    #[error(transparent)]
    Run(#[from] ExperimentError),
    /// A figure is not finite.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// What was asked for has no answer, for a reason that lies in the question.
    #[error("{0}")]
    Wrong(String),
}

/// A point that was made: its figures, or why it failed where the question stands without it.
pub type Done<F> = Result<F, String>;

/// What a question found out.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The result document, without what depends on the machine.
    pub document: Document,
    /// Parts of it that are shown as tables of their own.
    pub parts: Vec<Document>,
    /// What is missing and why, by run.
    pub missing: Vec<String>,
    /// The same in the shape of another program's output, if that was asked for.
    pub text: Option<String>,
    /// Runs that were to be made.
    pub runs: usize,
    /// Why the command fails although there is an answer.
    pub failed: Option<String>,
}

impl Answer {
    /// An answer from so many runs with nothing missing.
    pub fn new(document: Document, runs: usize) -> Self {
        Answer { document, parts: Vec::new(), missing: Vec::new(), text: None, runs, failed: None }
    }

    /// The answer in a sentence or two, if the question has one.
    pub fn verdict(&self) -> Option<&str> {
        self.document.notes.iter().find(|note| note.kind == NoteKind::Advice).map(|note| &*note.text)
    }
}

/// A question about runs; the module's header describes its life.
pub trait Question: Sync {
    /// Figures of a point: small, and equal when read back on any machine.
    type Figures: Send + Sync + Serialize + DeserializeOwned;

    /// A heading.
    fn title(&self) -> String;

    /// The points that are known before anything runs.
    fn points(&self) -> &[Point];

    /// Reduces a run to its figures, as soon as it ends.
    ///
    /// # Errors
    /// A figure that is not finite.
    fn figures(&self, shown: Shown<'_>) -> Result<Self::Figures, ResultsError>;

    /// Further points, by what all before them showed; none if that is enough.
    ///
    /// # Errors
    /// When the question turns out to have no answer.
    fn more(&self, _: &[Done<Self::Figures>]) -> Result<Vec<Point>, AskError> {
        Ok(Vec::new())
    }

    /// Whether the question has an answer although points failed. Otherwise the error of such a point is that of the
    /// question.
    fn stands_without(&self) -> bool {
        false
    }

    /// The answer, from all points in order.
    ///
    /// # Errors
    /// A figure that is not finite.
    fn answer(&self, done: &[Done<Self::Figures>]) -> Result<Answer, AskError>;
}

/// Makes all points of a question on as many threads as the pool has, and returns their figures in order.
///
/// # Errors
/// The error of the first point in order that failed, where the question does not stand without it or no point did
/// better; an interruption in any case.
pub fn make<Q: Question>(question: &Q, shared: &Shared) -> Result<Vec<Done<Q::Figures>>, AskError> {
    let mut done = make_points(question, question.points(), 0, shared)?;
    loop {
        let more = question.more(&done)?;
        if more.is_empty() {
            return Ok(done);
        }
        done.extend(make_points(question, &more, done.len(), shared)?);
    }
}

fn make_points<Q: Question>(
    question: &Q,
    points: &[Point],
    first: usize,
    shared: &Shared,
) -> Result<Vec<Done<Q::Figures>>, AskError> {
    let results: Vec<Result<Q::Figures, AskError>> = points
        .par_iter()
        .enumerate()
        .with_max_len(1)
        .map(|(number, point)| {
            let figures = figures(question, point.run(first + number, shared));
            if figures.is_err() && !question.stands_without() {
                shared.stop.store(true, Ordering::Relaxed);
            }
            figures
        })
        .collect();
    settled(results, question.stands_without())
}

/// Makes one point. The tap sees every stage of its run, as in [`Point::make`].
pub fn make_one<'t, Q: Question>(
    question: &Q,
    point: &Point,
    tap: TapTo<'t>,
    shared: &Shared,
) -> (Result<Q::Figures, AskError>, Option<TapTo<'t>>) {
    let (shown, tap) = point.make(0, Some(tap), shared);
    (figures(question, shown), tap)
}

/// The figures of a run.
///
/// # Errors
/// The error of the run, or a figure that is not finite.
pub fn figures<Q: Question>(question: &Q, shown: Result<Shown<'_>, ExperimentError>) -> Result<Q::Figures, AskError> {
    Ok(question.figures(shown?)?)
}

/// What became of points. A failure may have stopped others, which then report that they were interrupted, so the cause
/// is what matters.
fn settled<F>(results: Vec<Result<F, AskError>>, stands_without: bool) -> Result<Vec<Done<F>>, AskError> {
    let is_interruption = |e: &AskError| matches!(e, AskError::Run(e) if e.is_interruption());
    let failed = |e: &AskError| !is_interruption(e);
    let any = results.iter().any(Result::is_ok);
    let interrupted = results.iter().any(|result| result.as_ref().is_err_and(is_interruption));
    if stands_without && any && !interrupted {
        return Ok(results.into_iter().map(|result| result.map_err(|e| e.to_string())).collect());
    }
    let cause = results.iter().position(|result| result.as_ref().is_err_and(failed));
    let cause = match stands_without && interrupted {
        true => results.iter().position(|result| result.as_ref().is_err_and(is_interruption)),
        false => cause.or_else(|| results.iter().position(Result::is_err)),
    };
    let mut done = Vec::with_capacity(results.len());
    for (number, result) in results.into_iter().enumerate() {
        match result {
            Err(error) if Some(number) == cause => return Err(error),
            Err(_) => {}
            Ok(figures) => done.push(Ok(figures)),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(why: &str) -> Result<u32, AskError> {
        Err(AskError::Wrong(why.to_owned()))
    }

    fn interrupted() -> Result<u32, AskError> {
        Err(ExperimentError::interrupted("case", "variant").into())
    }

    fn of(results: Vec<Result<u32, AskError>>, stands_without: bool) -> Result<Vec<Done<u32>>, String> {
        settled(results, stands_without).map_err(|error| error.to_string())
    }

    #[test]
    fn a_question_that_needs_all_points_has_the_error_of_the_first_that_failed() {
        assert_eq!(of(vec![Ok(1), Ok(2)], false), Ok(vec![Ok(1), Ok(2)]));
        // The one in front was stopped because of it.
        assert_eq!(of(vec![Ok(1), interrupted(), wrong("a"), wrong("b")], false), Err("a".to_owned()));
        let stopped = of(vec![Ok(1), interrupted()], false).expect_err("it was stopped");
        assert!(stopped.starts_with("case, variant: "), "{stopped}");
    }

    #[test]
    fn a_question_that_stands_without_points_has_what_others_showed() {
        let all = vec![Ok(1), Err("a".to_owned()), Ok(3)];
        assert_eq!(of(vec![Ok(1), wrong("a"), Ok(3)], true), Ok(all));
        assert_eq!(of(vec![wrong("a"), wrong("b")], true), Err("a".to_owned()), "nothing is left to stand on");
        for results in [vec![Ok(1), wrong("a"), interrupted()], vec![wrong("a"), interrupted()]] {
            let stopped = of(results, true).expect_err("it was stopped");
            assert!(stopped.starts_with("case, variant: "), "{stopped}");
        }
    }
}
