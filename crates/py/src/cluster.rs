// SPDX-License-Identifier: MIT OR Apache-2.0
//! Studies whose points workers make: a client has the folder, and workers, which do not see it, return lines of
//! segments. Python carries what they exchange.

use crate::call;
use crate::failure::Failure;
use crate::given::Source;
use crate::studies::{InFolder, Swept, Task};
use anyhow::{Result, anyhow};
use pyo3::prelude::*;
use readpath_session::failure::Interrupted;
use readpath_session::inputs::read_text;
use readpath_session::lab::runs::Shared;
use readpath_session::studies;
use readpath_session::study::{Maker, Plan, Record, Segment};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What a file says, by its path: a text, or the number of the error that reading it had.
type Texts = HashMap<PathBuf, Result<String, Option<i32>>>;

/// Files of a study on a machine that may not have them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Sent {
    /// Texts by their paths.
    texts: Vec<(String, Option<String>, Option<i32>)>,
    /// Paths of traces on this machine, by their paths in the study.
    traces: HashMap<String, PathBuf>,
}

/// A study: the points that it has, and how they are made.
#[pyclass(frozen, module = "readpath._readpath")]
pub struct Study {
    plan: Arc<Plan>,
    maker: Arc<Maker>,
    texts: Arc<Texts>,
}

fn read(texts: &Texts, path: &Path) -> io::Result<String> {
    match texts.get(path) {
        Some(Ok(text)) => Ok(text.clone()),
        Some(Err(Some(number))) => Err(io::Error::from_raw_os_error(*number)),
        _ => read_text(path),
    }
}

#[pymethods]
impl Study {
    /// Plans a study. Its files are those that were sent; others are read.
    #[new]
    fn new(py: Python<'_>, source: Source, set: Vec<String>, sent: Option<Sent>) -> PyResult<Study> {
        call::outside(py, move |_| {
            let text = source.read()?;
            let study = studies::parsed(&text, &source.name, &set)?;
            let seen = Mutex::<Texts>::default();
            let (texts, traces) = sent.map_or_else(Default::default, |sent| {
                let of =
                    |(path, text, number): (String, Option<String>, Option<i32>)| (path.into(), text.ok_or(number));
                (sent.texts.into_iter().map(of).collect(), sent.traces)
            });
            let noting = |path: &Path| {
                let said = read(&texts, path);
                let noted = said.as_ref().map(String::clone).map_err(io::Error::raw_os_error);
                seen.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), noted);
                said
            };
            let plan = Plan::with_traces(study, &text, &noting, traces)?;
            let texts = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
            Ok(Study { plan: Arc::new(plan), maker: Arc::default(), texts: Arc::new(texts) })
        })
    }

    /// The header of segments, as JSON: studies with equal headers have the same points.
    fn header(&self) -> Result<String, Failure> {
        Ok(serde_json::to_string(&self.plan.header())?)
    }

    /// Files that were read to plan it: path, and text or the number of an error.
    fn texts(&self) -> Vec<(String, Option<String>, Option<i32>)> {
        // As texts: Python's paths have no "./", by which files are looked up here.
        let one = |(path, said): (&PathBuf, &Result<String, Option<i32>>)| match said {
            Ok(text) => (path.display().to_string(), Some(text.clone()), None),
            Err(number) => (path.display().to_string(), None, *number),
        };
        let mut texts: Vec<_> = self.texts.iter().map(one).collect();
        texts.sort();
        texts
    }

    /// Traces that it names: path and SHA-256.
    fn traces(&self) -> Vec<(String, String)> {
        self.plan.traces().iter().map(|trace| (trace.path.clone(), trace.sha256.clone())).collect()
    }

    /// Makes points, one after the other: their lines. It stops when `go_on`, which is called now and then, raises.
    fn make(&self, py: Python<'_>, points: Vec<u64>, go_on: Py<PyAny>) -> PyResult<Cow<'static, [u8]>> {
        let (plan, maker, texts) = (self.plan.clone(), self.maker.clone(), self.texts.clone());
        let work = move |shared: &Arc<Shared>| {
            let mut lines = Vec::new();
            for index in points {
                if index >= plan.count() {
                    return Err(anyhow!("point {index}: the study has {} points", plan.count()));
                }
                let made = maker.make(&plan, &plan.point(index), &|path| read(&texts, path), shared);
                lines.extend(made.ok_or(Interrupted)?.line());
            }
            Ok(lines)
        };
        call::outside_while(py, move |py| go_on.call0(py).map(drop), work).map(Cow::Owned)
    }

    /// Reads what the folder of its results has.
    fn begin(&self, py: Python<'_>, task: Task) -> PyResult<Pending> {
        let plan = self.plan.clone();
        call::outside(py, move |_| {
            let study = InFolder::new(plan, &task)?;
            Ok(Pending(Mutex::new(Some(Made { study, segment: None, points: 0, failed: None }))))
        })
    }
}

/// What has been made so far.
struct Made {
    study: InFolder,
    segment: Option<Segment>,
    points: u64,
    failed: Option<(u64, String)>,
}

impl Made {
    /// Keeps `lines`, after checking that they are the records of `points`.
    fn keep(&mut self, points: &[u64], lines: &[u8]) -> Result<()> {
        let lines: Vec<&[u8]> = lines.split_inclusive(|&byte| byte == b'\n').collect();
        let records: Vec<Record> = lines.iter().filter_map(|line| Record::of_line(line)).collect();
        if !records.iter().map(|record| record.point).eq(points.iter().copied()) || records.len() != lines.len() {
            let wanted = points.first().map_or_else(String::new, |first| format!(" from point {first}"));
            return Err(anyhow!("records{wanted} came back damaged; nothing of them is kept"));
        }
        if self.segment.is_none() {
            self.segment = Some(self.study.begun.segment("client")?);
        }
        let Some(segment) = &mut self.segment else { return Ok(()) };
        for (line, record) in lines.into_iter().zip(records) {
            segment.append(line)?;
            self.points += 1;
            if let Some(why) = record.failure()
                && self.failed.as_ref().is_none_or(|(other, _)| *other > record.point)
            {
                self.failed = Some((record.point, why.to_owned()));
            }
        }
        Ok(())
    }
}

/// A study that is being made, in its folder.
#[pyclass(frozen, module = "readpath._readpath")]
pub struct Pending(Mutex<Option<Made>>);

impl Pending {
    fn with<T>(&self, act: impl FnOnce(&mut Made) -> Result<T>) -> Result<T> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(made.as_mut().ok_or_else(|| anyhow!("the study is finished"))?)
    }
}

#[pymethods]
impl Pending {
    /// Points that are to be made.
    fn missing(&self) -> Result<Vec<u64>, Failure> {
        Ok(self.with(|made| Ok(made.study.begun.missing()))?)
    }

    /// Keeps the lines that a worker made of `points`.
    fn keep(&self, py: Python<'_>, points: Vec<u64>, lines: &[u8]) -> Result<(), Failure> {
        Ok(py.detach(|| self.with(|made| made.keep(&points, lines)))?)
    }

    /// Syncs the kept lines to the disk.
    fn sync(&self, py: Python<'_>) -> Result<(), Failure> {
        Ok(py.detach(|| self.with(|made| Ok(made.segment.take().map_or(Ok(()), Segment::finish)?)))?)
    }

    /// Makes tables and the page, once all points are there.
    fn finish(&self, py: Python<'_>) -> PyResult<Swept> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let made = made.ok_or_else(|| Failure::from(anyhow!("the study is finished")))?;
        call::outside(py, move |_| {
            made.segment.map_or(Ok(()), Segment::finish)?;
            made.study.finish((made.points, made.failed))
        })
    }
}
