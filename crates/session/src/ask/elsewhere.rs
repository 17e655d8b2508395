// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions whose points are made in other processes: figures of points go between them as lines of JSON.

use super::{Asked, Asker};
use crate::failure::Interrupted;
use crate::runs::mark;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_lab::question::{Answer, AskError, Done, Point, Question, figures};
use readpath_lab::runs::Shared;
use readpath_results::Input;
use std::sync::Arc;

/// A question whose points are made anywhere.
pub trait Elsewhere: Send + Sync {
    /// Points that are known so far.
    fn count(&self) -> usize;

    /// Those of them that were not kept.
    fn missing(&self) -> Vec<usize>;

    /// What its points read.
    fn inputs(&self) -> Vec<Input>;

    /// Makes a point: a line of JSON.
    ///
    /// # Errors
    /// When there is no such point, its run fails and the question does not stand without it, or `shared` says to stop.
    fn make(&self, point: usize, shared: &Shared) -> Result<String>;

    /// Keeps the line of a point.
    ///
    /// # Errors
    /// When it is not the line of a point.
    fn keep(&mut self, point: usize, line: &str) -> Result<()>;

    /// Lines of the points, in order up to the first that is missing.
    fn lines(&self) -> Vec<&str>;

    /// Adds the points that depend on those before them, once all of these are kept. Whether there are any.
    ///
    /// # Errors
    /// When the question has no answer.
    fn more(&mut self) -> Result<bool>;

    /// The answer, from all points.
    ///
    /// # Errors
    /// When points are missing, or all failed.
    fn answer(&self) -> Result<Answer>;
}

impl Asked {
    /// The question, for points that are made elsewhere. The reading of traces stops with `shared`.
    ///
    /// # Errors
    /// When an option or an input is wrong, or the question has no points.
    pub fn elsewhere(&self, shared: &Arc<Shared>) -> Result<Box<dyn Elsewhere>> {
        self.ask(&mut |_| Ok(shared.clone()), Boxing)
    }
}

struct Boxing;

impl Asker for Boxing {
    type Output = Box<dyn Elsewhere>;

    fn question<Q: Question + Send + 'static>(self, question: Q) -> Result<Self::Output> {
        let points = question.points().to_vec();
        Ok(Box::new(Kept { lines: vec![None; points.len()], question, points }))
    }

    fn answer(self, _: Answer) -> Result<Self::Output> {
        Err(usage(anyhow!("client: the question has no points that workers could make")))
    }
}

/// A question, its points, and the lines of those that were kept.
struct Kept<Q> {
    question: Q,
    points: Vec<Point>,
    lines: Vec<Option<String>>,
}

impl<Q: Question> Kept<Q> {
    fn done(&self) -> Result<Vec<Done<Q::Figures>>> {
        self.lines.iter().map(|line| Ok(serde_json::from_str(line.as_deref().ok_or(Interrupted)?)?)).collect()
    }
}

impl<Q: Question + Send> Elsewhere for Kept<Q> {
    fn count(&self) -> usize {
        self.points.len()
    }

    fn missing(&self) -> Vec<usize> {
        (0..self.points.len()).filter(|&point| self.lines[point].is_none()).collect()
    }

    fn inputs(&self) -> Vec<Input> {
        let of = |point: &Point| match point {
            Point::Workload(plan) => plan.inputs.clone(),
            Point::Replay(replay) => replay.case.inputs.clone(),
            Point::Cuts(cutting) => cutting.plan.inputs.clone(),
            Point::Attack(_) => Vec::new(),
        };
        self.points.iter().flat_map(of).collect()
    }

    fn make(&self, point: usize, shared: &Shared) -> Result<String> {
        let of = self.points.get(point).ok_or_else(|| usage(anyhow!("point {point}: there is no such point")))?;
        let made = figures(&self.question, of.run(0, shared));
        let done: Done<Q::Figures> = match made {
            Err(AskError::Run(error)) if self.question.stands_without() && !error.is_interruption() => {
                Err(error.to_string())
            }
            made => Ok(made.map_err(mark)?),
        };
        Ok(serde_json::to_string(&done)?)
    }

    fn keep(&mut self, point: usize, line: &str) -> Result<()> {
        let _: Done<Q::Figures> = serde_json::from_str(line)?;
        *self.lines.get_mut(point).ok_or_else(|| anyhow!("point {point}: there is no such point"))? =
            Some(line.to_owned());
        Ok(())
    }

    fn lines(&self) -> Vec<&str> {
        self.lines.iter().map_while(Option::as_deref).collect()
    }

    fn more(&mut self) -> Result<bool> {
        let more = self.question.more(&self.done()?).map_err(mark)?;
        self.lines.resize(self.points.len() + more.len(), None);
        self.points.extend(more);
        Ok(!self.missing().is_empty())
    }

    fn answer(&self) -> Result<Answer> {
        let done = self.done()?;
        if let (Some(Err(why)), false) = (done.first(), done.iter().any(Result::is_ok)) {
            return Err(anyhow!("{why}"));
        }
        self.question.answer(&done).map_err(mark)
    }
}
