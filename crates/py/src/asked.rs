// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions by their names and options: answered here, or with points that workers make.

use crate::call;
use crate::failure::Failure;
use anyhow::{Result, anyhow};
use pyo3::prelude::*;
use readpath_session::ask::{Asked, Elsewhere};
use readpath_session::lab::question::Answer;
use readpath_session::lab::runs::Shared;
use readpath_session::process::process;
use readpath_session::results::Process;
use readpath_session::runs::complete;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};

/// A result document.
#[derive(IntoPyObject)]
pub struct Shown {
    json: String,
    /// What the document lacks, in a sentence.
    missing: Option<String>,
}

/// Texts that are given instead of files.
pub type Texts = Vec<(PathBuf, String)>;

/// What the process used since `before`, and the most memory that it ever had.
pub fn since(before: &Process) -> Process {
    let now = process();
    Process { cpu_seconds: now.cpu_seconds - before.cpu_seconds, ..now }
}

fn shown(answer: Answer, before: &Process) -> Result<Shown> {
    let missing = complete(&answer).err().map(|why| why.to_string());
    let mut document = answer.document;
    document.process = since(before);
    document.validate()?;
    Ok(Shown { json: document.to_json_pretty()?, missing })
}

fn parsed(words: &[String], texts: Texts) -> Result<Asked> {
    let asked = Asked::parse(words)?;
    if let Some(making) = asked.making() {
        texts.into_iter().for_each(|(path, text)| making.texts.give(path, text));
    }
    Ok(asked)
}

/// Answers a question.
pub fn ask(words: &[String], texts: Texts, shared: &Arc<Shared>) -> Result<Shown> {
    let before = process();
    shown(parsed(words, texts)?.answer(shared)?, &before)
}

/// A question whose points workers make.
#[pyclass(frozen, module = "readpath._readpath")]
pub struct Question {
    asked: Asked,
    question: Arc<RwLock<Box<dyn Elsewhere>>>,
    before: Process,
}

const POISONED: &str = "a call on it panicked";

#[pymethods]
impl Question {
    /// Makes a question of words, and takes what was kept of its first points.
    #[new]
    fn new(py: Python<'_>, words: Vec<String>, texts: Texts, kept: Vec<Vec<u8>>) -> PyResult<Question> {
        call::outside(py, move |shared| {
            let before = process();
            let asked = parsed(&words, texts)?;
            let mut question = asked.elsewhere(shared)?;
            for (point, line) in kept.iter().enumerate() {
                if point == question.count() {
                    question.more()?;
                }
                question.keep(point, line)?;
            }
            if !kept.is_empty() && kept.len() == question.count() {
                question.more()?;
            }
            Ok(Question { asked, question: Arc::new(RwLock::new(question)), before })
        })
    }

    /// The header of the segments of its last round, as JSON: questions with equal headers make equal lines.
    fn header(&self, py: Python<'_>) -> Result<String, Failure> {
        py.detach(|| {
            let question = self.question.read().map_err(|_| anyhow!(POISONED))?;
            Ok(serde_json::to_string(&question.header())?)
        })
    }

    /// Texts that were given or read.
    fn texts(&self) -> Texts {
        self.asked.making().map(|making| making.texts.all()).unwrap_or_default()
    }

    /// Points that were not kept.
    fn missing(&self) -> Result<Vec<usize>, Failure> {
        Ok(self.question.read().map_err(|_| anyhow!(POISONED))?.missing())
    }

    /// Makes points: a line for each. It stops when `go_on` raises.
    fn make(&self, py: Python<'_>, points: Vec<usize>, go_on: Py<PyAny>) -> PyResult<Cow<'static, [u8]>> {
        let question = self.question.clone();
        let work = move |shared: &Arc<Shared>| {
            let question = question.read().map_err(|_| anyhow!(POISONED))?;
            let lines = points.iter().map(|&point| question.make(point, shared));
            Ok(lines.collect::<Result<Vec<_>>>()?.concat())
        };
        call::outside_while(py, move |py| go_on.call0(py).map(drop), work).map(Cow::Owned)
    }

    fn keep(&self, points: Vec<usize>, lines: &[u8]) -> Result<(), Failure> {
        let mut question = self.question.write().map_err(|_| anyhow!(POISONED))?;
        let lines: Vec<&[u8]> = lines.split_inclusive(|&byte| byte == b'\n').collect();
        if lines.len() != points.len() {
            return Err(anyhow!("{} points came back as {} lines", points.len(), lines.len()).into());
        }
        Ok(points.into_iter().zip(lines).try_for_each(|(point, line)| question.keep(point, line))?)
    }

    /// Syncs the kept lines to the disk, if the question has a folder.
    fn sync(&self, py: Python<'_>) -> Result<(), Failure> {
        py.detach(|| Ok(self.question.write().map_err(|_| anyhow!(POISONED))?.sync()?))
    }

    /// Lines of the points, in order up to the first that is missing.
    fn kept(&self) -> Result<Vec<Cow<'static, [u8]>>, Failure> {
        let question = self.question.read().map_err(|_| anyhow!(POISONED))?;
        Ok(question.lines().into_iter().map(|line| Cow::Owned(line.to_owned())).collect())
    }

    /// Adds the points that depend on those before them. Whether there are any.
    fn more(&self) -> Result<bool, Failure> {
        Ok(self.question.write().map_err(|_| anyhow!(POISONED))?.more()?)
    }

    /// The answer, once all points are kept.
    fn answer(&self) -> Result<Shown, Failure> {
        let answer = self.question.read().map_err(|_| anyhow!(POISONED))?.answer()?;
        Ok(shown(answer, &self.before)?)
    }
}
