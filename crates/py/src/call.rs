// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work that takes long, beside the interpreter: other threads of Python go on meanwhile, and Ctrl-C stops it.

use crate::failure::Failure;
use anyhow::Result;
use pyo3::prelude::*;
use readpath_session::failure::Interrupted;
use readpath_session::lab::runs::Shared;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How often Python is asked whether a signal came.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long work may take to end when it is to stop. Filling a large device looks at no flag; it is left to itself
/// then, and ends as soon as it has done that.
const GRACE: Duration = Duration::from_millis(500);

/// Has `work` done without the lock of the interpreter. A signal whose handler raises stops it, and is raised.
pub fn outside<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<Shared>) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    outside_while(py, |_| Ok(()), work)
}

/// As [`outside`], for work that also stops when `go_on` raises.
pub fn outside_while<T: Send + 'static>(
    py: Python<'_>,
    go_on: impl Fn(Python<'_>) -> PyResult<()> + Send,
    work: impl FnOnce(&Arc<Shared>) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let shared = Arc::new(Shared::default());
    py.detach(|| {
        let (giving, made) = mpsc::channel();
        let for_work = shared.clone();
        let worker = thread::Builder::new().name("readpath".into()).spawn(move || giving.send(work(&for_work)))?;
        match wait(&made, go_on) {
            Ok(Some(made)) => Ok(made.map_err(Failure::from)?),
            // The worker panicked.
            Ok(None) => {
                Err(worker.join().map_or_else(|panic| resume_unwind(panic), |_| Failure::from(Interrupted).into()))
            }
            Err(raised) => {
                shared.stop.store(true, Ordering::Relaxed);
                made.recv_timeout(GRACE).ok();
                Err(raised)
            }
        }
    })
}

/// What the worker made, or nothing if it panicked; or what a signal or `go_on` raised before.
fn wait<T>(made: &Receiver<T>, go_on: impl Fn(Python<'_>) -> PyResult<()>) -> PyResult<Option<T>> {
    let asked = |py: Python<'_>| py.check_signals().and_then(|()| go_on(py));
    loop {
        match made.recv_timeout(PATIENCE) {
            Ok(made) => return Ok(Some(made)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            // There is no interpreter any more at the end of the program.
            Err(RecvTimeoutError::Timeout) => Python::try_attach(asked).unwrap_or(Ok(()))?,
        }
    }
}
