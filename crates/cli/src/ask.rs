// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of every command that makes runs: the points of its question are made side by side or recorded, and its
//! answer is written and shown. It knows no question.

use crate::args::{Basics, Common, Recorded};
use crate::files::{PartFile, check_not_input, check_writable};
use crate::live::Live;
use crate::output::{self, Kept};
use crate::{dry_run, stop, usage};
use anyhow::{Context, Result, anyhow};
use readpath_session::args::Making;
use readpath_session::ask::Ready;
use readpath_session::lab::question::{Answer, Done, Point, Question, make_one};
use readpath_session::lab::runs::Shared;
use readpath_session::results::{Document, Note};
use readpath_session::running::Tap;
use readpath_session::runs::{self, mark};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a command that simulates.
#[derive(Clone, Default)]
pub struct Files<'a> {
    /// Folder for the document and its page.
    pub folder: Option<PathBuf>,
    /// Files that were read; outputs must not overwrite them.
    pub inputs: Vec<&'a Path>,
    /// File for the printed output, instead of standard output.
    pub to: Option<&'a Path>,
}

impl Files<'_> {
    /// Checks that everything can be written.
    fn prepare(&self, basics: &Basics) -> Result<Kept> {
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

/// A command whose options were looked at, and that may begin to read and run.
pub struct Asking<'a> {
    making: Making,
    basics: &'a Basics,
    recorded: Option<(&'a Path, Recorded)>,
    files: Files<'a>,
    live: Live,
    shared: Arc<Shared>,
    kept: Kept,
}

impl<'a> Asking<'a> {
    /// Begins a command that shows its runs, which have these cases and variants, while they go on.
    pub fn begin(making: &Making, common: &'a Common, runs: Vec<(String, String)>, files: Files<'a>) -> Result<Self> {
        if common.trace_io.is_some() && runs.len() != 1 {
            let message = "choose one with --case, --variant or --hpb";
            return Err(usage(anyhow!("--trace-io records one run, but this makes {}: {message}", runs.len())));
        }
        if common.trace_io.is_some() && making.keep.is_some() {
            return Err(usage(anyhow!("--trace-io records a run; --keep would leave it out")));
        }
        let live = Live::start(&common.live, runs)?;
        let recorded = common.trace_io.as_deref().map(|path| (path, common.recorded()));
        Asking::with(making, &common.basics, recorded, live, files)
    }

    /// Begins a command that shows nothing before its end.
    pub fn plain(making: &Making, basics: &'a Basics, files: Files<'a>) -> Result<Self> {
        Asking::with(making, basics, None, Live::default(), files)
    }

    fn with(
        making: &Making,
        basics: &'a Basics,
        recorded: Option<(&'a Path, Recorded)>,
        live: Live,
        files: Files<'a>,
    ) -> Result<Self> {
        let shared = stoppable(&live)?;
        let kept = files.prepare(basics)?;
        Ok(Asking { making: making.clone(), basics, recorded, files, live, shared, kept })
    }

    /// Makes all points of a question.
    pub fn make<Q: Question>(&self, question: &Q) -> Result<Vec<Done<Q::Figures>>> {
        match (self.recorded, question.points()) {
            (Some((path, recorded)), [point]) => Ok(vec![self.record(question, point, path, recorded)?]),
            _ => side_by_side(question, &self.making, &self.shared),
        }
    }

    /// Answers a question, and shows the answer with `tables` of so many columns at most.
    pub fn answer<Q: Question>(
        self,
        question: &Q,
        tables: impl FnOnce(&Answer, Option<u16>) -> String,
    ) -> Result<Document> {
        let done = self.make(question)?;
        self.show(question.answer(&done).map_err(mark)?, tables)
    }

    /// Writes and shows an answer.
    pub fn show(self, mut answer: Answer, tables: impl FnOnce(&Answer, Option<u16>) -> String) -> Result<Document> {
        let doc = self.finish(&mut answer)?;
        // What took long is shown also if it cannot be written.
        let written = self.kept.write(&doc);
        let folder = self.files.folder.as_deref().filter(|_| written.is_ok());
        let to = self.files.to;
        // A file may be read on any terminal.
        let width = if to.is_none() { output::terminal_width() } else { None };
        output::show(&doc, self.basics, folder, to, || tables(&answer, width))?;
        written?;
        self.live.finish()?;
        runs::complete(&answer)?;
        Ok(doc)
    }

    /// Writes an answer, and shows its text in the shape of another program's output. Notes, which have no place there,
    /// go to standard error.
    pub fn show_text(self, mut answer: Answer) -> Result<()> {
        let doc = self.finish(&mut answer)?;
        self.kept.write(&doc)?;
        if self.basics.prints_csv() {
            output::emit(&doc.to_csv()?, None)?;
        }
        output::emit(answer.text.as_deref().unwrap_or_default(), self.files.to)?;
        for note in &doc.notes {
            writeln!(io::stderr(), "Note: {note}").ok();
        }
        self.live.finish()?;
        runs::complete(&answer)
    }

    /// The document with what depends on this process.
    fn finish(&self, answer: &mut Answer) -> Result<Document> {
        let mut doc = answer.document.clone();
        doc.notes.extend(self.live.notes().into_iter().map(Note::remark));
        doc.process = output::process();
        doc.validate()?;
        Ok(doc)
    }

    /// Makes one point and records its requests, stage by stage, to the file at `path`.
    fn record<Q: Question>(
        &self,
        question: &Q,
        point: &Point,
        path: &Path,
        recorded: Recorded,
    ) -> Result<Done<Q::Figures>> {
        let part = PartFile::create(path)?;
        let title = format!("{}, {}", point.case(), point.variant());
        let out: &mut dyn Write = &mut &part.file;
        let tap = Tap::new(out, &title, Some(recorded.limit));
        let tap = recorded.from.into_iter().fold(tap, Tap::starting);
        let (figures, tap) = make_one(question, point, tap, &self.shared);
        let (events, requests) = match tap {
            Some(mut tap) => {
                let events = tap.finish().with_context(|| format!("{}: cannot write", path.display()))?;
                (events, tap.requests())
            }
            None => (0, 0),
        };
        let figures = figures.map_err(mark)?;
        part.finish()?;
        let nothing = match recorded.from {
            Some(_) if requests == 0 => ": the run ended before --trace-io-from",
            _ => "",
        };
        writeln!(io::stderr(), "{}: {events} events{nothing}", path.display()).ok();
        Ok(Ok(figures))
    }
}

/// Answers the question that `question` makes, and shows the answer with `tables`; or shows the runs that it would
/// make, as JSON or not, if `dry` says so. `begin` begins the command when options are checked, before traces are read.
pub fn ask<'a, Q: Question>(
    begin: impl FnOnce(Vec<(String, String)>) -> Result<Asking<'a>>,
    dry: Option<bool>,
    question: impl FnOnce(Ready) -> Result<Q>,
    tables: impl FnOnce(&Answer, Option<u16>) -> String,
) -> Result<Option<Document>> {
    if let Some(json) = dry {
        let question = question(&mut |_| stoppable(&Live::default()))?;
        return dry_run::show(&question, json).map(|()| None);
    }
    let (mut begin, mut asking) = (Some(begin), None);
    let mut ready = |names| {
        if let Some(begin) = begin.take() {
            asking = Some(begin(names)?);
        }
        asking.as_ref().map(|asking| asking.shared.clone()).context("a command begins once")
    };
    let question = question(&mut ready)?;
    ready(names(question.points()))?;
    asking.context("a command begins")?.answer(&question, tables).map(Some)
}

/// Cases and variants of points.
pub fn names(points: &[Point]) -> Vec<(String, String)> {
    points.iter().map(|point| (point.case().to_owned(), point.variant().to_owned())).collect()
}

/// Makes all points of a question side by side, with progress.
pub fn side_by_side<Q: Question>(question: &Q, making: &Making, shared: &Arc<Shared>) -> Result<Vec<Done<Q::Figures>>> {
    let expected = question.points().iter().map(Point::expected_ios).sum::<Option<u64>>();
    let _progress = output::Progress::start(shared.clone(), expected);
    runs::side_by_side(question, making, shared)
}

/// State that runs share: what `live` shows of them, and the stop flag, which signals set from now on.
pub fn stoppable(live: &Live) -> Result<Arc<Shared>> {
    let shared = live.shared();
    stop::in_order(shared.stop.clone())?;
    Ok(Arc::new(shared))
}
