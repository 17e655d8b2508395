// SPDX-License-Identifier: MIT OR Apache-2.0
//! The extension module `readpath._readpath`: plain functions on texts, numbers and paths. What a user of Python sees
//! is made of them in `python/readpath`. Nothing is modelled here, and nothing is shown.

mod call;
mod cluster;
mod failure;
mod given;
mod reading;
mod replays;
mod runs;
mod studies;
mod traces;

/// Functions of the package `readpath`, in plain types. They are not for users.
#[pyo3::pymodule]
mod _readpath {
    use crate::failure::Failure;
    use crate::given::{Choice, Host, Source, Target};
    use crate::reading::{Reading, Requests};
    use crate::replays::How;
    use crate::runs::Shown;
    use crate::studies::{Swept, Task};
    use crate::traces::{MapCurve, Maps};
    use crate::{call, reading, replays, runs, studies, traces};
    use pyo3::prelude::*;
    use std::path::PathBuf;

    #[pymodule_export]
    use crate::failure::Error;

    #[pymodule_export]
    use crate::cluster::{Pending, Study};

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Names of the presets.
    #[pyfunction]
    fn devices() -> Vec<&'static str> {
        readpath_config::presets().iter().map(|preset| preset.name).collect()
    }

    /// A device with keys that are changed, as its file would say it.
    #[pyfunction]
    fn device(target: Target) -> Result<String, Failure> {
        Ok(target.preset()?.echo().to_toml())
    }

    /// The rows of a result document as a table.
    #[pyfunction]
    fn csv(document: &str) -> Result<String, Failure> {
        Ok(runs::csv(document)?)
    }

    /// The page of a result document.
    #[pyfunction]
    fn page(document: &str) -> Result<String, Failure> {
        Ok(runs::page(document)?)
    }

    /// Runs an experiment.
    #[pyfunction]
    fn run(py: Python<'_>, experiment: Source, choice: Choice) -> PyResult<Shown> {
        call::outside(py, move |shared| runs::experiment(&experiment, &choice, shared))
    }

    /// Runs a fio job.
    #[pyfunction]
    fn fio(py: Python<'_>, job: Source, device: String, host: Host, choice: Choice) -> PyResult<Shown> {
        call::outside(py, move |shared| runs::job(&job, &device, &host, &choice, shared))
    }

    /// Replays a block trace.
    #[pyfunction]
    fn replay(py: Python<'_>, trace: PathBuf, device: String, how: How, host: Host, choice: Choice) -> PyResult<Shown> {
        call::outside(py, move |shared| replays::replay(trace, &device, &how, &host, &choice, shared))
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
