// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions whose points are made in other processes: lines of records go between them, and into a folder if there is
//! one.

use super::{Asked, Asker};
use crate::failure::Interrupted;
use crate::runs::{mark, of_sweep};
use crate::usage;
use anyhow::{Context, Result, anyhow};
use readpath_lab::question::{Answer, Done, Point, Question};
use readpath_lab::runs::Shared;
use readpath_sweep::{Header, Record, Round, Segment, Work};
use std::path::PathBuf;
use std::sync::Arc;

/// A question whose points are made anywhere.
pub trait Elsewhere: Send + Sync {
    /// Points that are known so far.
    fn count(&self) -> usize;

    /// The known points that have not been kept.
    fn missing(&self) -> Vec<usize>;

    /// The first line of segments of its last round: questions with equal headers make equal lines.
    fn header(&self) -> Header;

    /// Makes a point of the last round: the line of its record.
    ///
    /// # Errors
    /// When there is no such point, its run fails and the question does not stand without it, or `shared` says to stop.
    fn make(&self, point: usize, shared: &Shared) -> Result<Vec<u8>>;

    /// Keeps the line of a point, in its folder too if it has one.
    ///
    /// # Errors
    /// When it is not the line of that point, or the folder cannot be written.
    fn keep(&mut self, point: usize, line: &[u8]) -> Result<()>;

    /// Syncs the kept lines to the disk.
    ///
    /// # Errors
    /// When that fails.
    fn sync(&mut self) -> Result<()>;

    /// Lines of the points, in order up to the first that is missing.
    fn lines(&self) -> Vec<&[u8]>;

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
        let folder = self.making().and_then(|making| making.keep.clone());
        self.ask(&mut |_| Ok(shared.clone()), Boxing(folder))
    }
}

/// Boxes a question, with the folder that keeps its points.
struct Boxing(Option<PathBuf>);

impl Asker for Boxing {
    type Output = Box<dyn Elsewhere>;

    fn question<Q: Question + Send + 'static>(self, question: Q) -> Result<Self::Output> {
        let points = question.points().to_vec();
        let folder = self.0;
        let mut kept = Kept { lines: vec![None; points.len()], question, points, first: 0, folder, segment: None };
        kept.load()?;
        Ok(Box::new(kept))
    }

    fn answer(self, _: Answer) -> Result<Self::Output> {
        Err(usage(anyhow!("client: the question has no points that workers could make")))
    }
}

/// A question, its points, and the lines of those that were kept.
struct Kept<Q> {
    question: Q,
    points: Vec<Point>,
    lines: Vec<Option<Vec<u8>>>,
    /// The first point of the last round.
    first: usize,
    folder: Option<PathBuf>,
    /// The lines of that round kept by this process.
    segment: Option<Segment>,
}

impl<Q: Question + Send> Kept<Q> {
    fn round(&self) -> Round<'_, Q> {
        Round::new(&self.question, &self.points[self.first..], self.first)
    }

    /// Takes what the folder has of the last round.
    fn load(&mut self) -> Result<()> {
        self.sync()?;
        let Some(folder) = &self.folder else { return Ok(()) };
        let round = self.round();
        let folder = round.folder(folder).map_err(of_sweep)?;
        let mut found = round.found(&folder).map_err(of_sweep)?;
        let records = round.records(&mut found).map_err(of_sweep)?;
        for record in records.iter().filter(|record| record.failure().is_none()) {
            self.lines[self.first + record.point as usize] = Some(record.line());
        }
        Ok(())
    }

    fn done(&self) -> Result<Vec<Done<Q::Figures>>> {
        let of = |line: &Option<Vec<u8>>| {
            let record: Option<Record<Q::Figures>> = Record::of_line(line.as_ref().ok_or(Interrupted)?);
            Ok(record.context(DAMAGED)?.outcome.done())
        };
        self.lines.iter().map(of).collect()
    }
}

const DAMAGED: &str = "the line of a point is damaged";

impl<Q: Question + Send> Elsewhere for Kept<Q> {
    fn count(&self) -> usize {
        self.points.len()
    }

    fn missing(&self) -> Vec<usize> {
        (0..self.points.len()).filter(|&point| self.lines[point].is_none()).collect()
    }

    fn header(&self) -> Header {
        self.round().header()
    }

    fn make(&self, point: usize, shared: &Shared) -> Result<Vec<u8>> {
        if !(self.first..self.points.len()).contains(&point) {
            return Err(usage(anyhow!("point {point}: this round has points {} to {}", self.first, self.points.len())));
        }
        let made = self.round().make((point - self.first) as u64, shared).map_err(of_sweep)?;
        Ok(made.ok_or(Interrupted)?.line())
    }

    fn keep(&mut self, point: usize, line: &[u8]) -> Result<()> {
        let record: Record<Q::Figures> = Record::of_line(line).context(DAMAGED)?;
        if record.point as usize + self.first != point || point >= self.lines.len() {
            return Err(anyhow!("point {point}: the line is that of point {}", record.point as usize + self.first));
        }
        self.lines[point] = Some(line.to_owned());
        let Some(folder) = &self.folder else { return Ok(()) };
        if self.segment.is_none() {
            let round = self.round();
            let folder = round.folder(folder).map_err(of_sweep)?;
            let name = format!("points-{}-client", std::process::id());
            self.segment = Some(Segment::create(folder.path(), &name, &round.header()).map_err(of_sweep)?);
        }
        self.segment.as_mut().map_or(Ok(()), |segment| segment.append(line)).map_err(of_sweep)
    }

    fn sync(&mut self) -> Result<()> {
        self.segment.take().map_or(Ok(()), Segment::finish).map_err(of_sweep)
    }

    fn lines(&self) -> Vec<&[u8]> {
        self.lines.iter().map_while(Option::as_deref).collect()
    }

    fn more(&mut self) -> Result<bool> {
        let more = self.question.more(&self.done()?).map_err(mark)?;
        if !more.is_empty() {
            self.first = self.points.len();
            self.lines.resize(self.first + more.len(), None);
            self.points.extend(more);
            self.load()?;
        }
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
