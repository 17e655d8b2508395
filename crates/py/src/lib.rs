// SPDX-License-Identifier: MIT OR Apache-2.0
//! The extension module `readpath._readpath`: plain functions on texts, numbers and paths. What a user of Python sees
//! is made of them in `python/readpath`. Nothing is modelled here, and nothing is shown.

mod asked;
mod call;
mod cluster;
mod failure;
mod given;
mod reading;
mod studies;
mod traces;

/// Functions of the package `readpath`, in plain types. They are not for users.
#[pyo3::pymodule]
mod _readpath {
    use crate::asked::{Shown, Texts};
    use crate::failure::Failure;
    use crate::given::Source;
    use crate::reading::{Reading, Requests};
    use crate::studies::{Swept, Task};
    use crate::traces::{MapCurve, Maps};
    use crate::{asked, call, reading, studies, traces};
    use pyo3::prelude::*;
    use readpath_report::html;
    use readpath_session::results::Document;
    use readpath_session::{config, presets};
    use std::path::PathBuf;

    #[pymodule_export]
    use crate::failure::Error;

    #[pymodule_export]
    use crate::asked::Question;

    #[pymodule_export]
    use crate::cluster::{Pending, Study};

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Names of the presets.
    #[pyfunction]
    fn devices() -> Vec<&'static str> {
        config::presets().iter().map(|preset| preset.name).collect()
    }

    /// Writes inputs to try into a folder; their paths.
    #[pyfunction]
    fn examples(dir: PathBuf) -> Result<Vec<PathBuf>, Failure> {
        Ok(readpath_session::examples::write(&dir)?)
    }

    /// A device with keys that are changed, as its file would have it.
    #[pyfunction]
    fn device(name: &str, set: Vec<String>) -> Result<String, Failure> {
        Ok(presets::preset(name, &set)?.echo().to_toml())
    }

    /// The rows of a result document as a table.
    #[pyfunction]
    fn csv(document: &str) -> Result<String, Failure> {
        Ok(Document::from_json(document)?.to_csv()?)
    }

    /// The page of a result document.
    #[pyfunction]
    fn page(document: &str) -> Result<String, Failure> {
        Ok(html::page(&Document::from_json(document)?)?)
    }

    /// Answers a question: its name and options, as words of a command line.
    #[pyfunction]
    fn ask(py: Python<'_>, words: Vec<String>, texts: Texts) -> PyResult<Shown> {
        call::outside(py, move |shared| asked::ask(&words, texts, shared))
    }

    /// Makes a study, or a part of it.
    #[pyfunction]
    fn sweep(py: Python<'_>, study: Source, task: Task) -> PyResult<Swept> {
        call::outside(py, move |shared| studies::sweep(&study, &task, shared))
    }

    /// Makes tables of what folders hold of a study.
    #[pyfunction]
    fn merge(py: Python<'_>, folders: Vec<PathBuf>, out: PathBuf) -> PyResult<Swept> {
        call::outside(py, move |_| studies::merge_folders(&folders, &out))
    }

    /// Hits by memory of maps under a trace.
    #[pyfunction]
    fn mrc(py: Python<'_>, trace: PathBuf, how: Reading, maps: Maps) -> PyResult<Vec<MapCurve>> {
        call::outside(py, move |shared| traces::curves(&trace, &how, &maps, shared))
    }

    /// Requests of a trace.
    #[pyfunction]
    fn trace(py: Python<'_>, trace: PathBuf, how: Reading, most: Option<u64>) -> PyResult<Requests> {
        call::outside(py, move |shared| reading::requests(&trace, &how, most, shared))
    }
}
