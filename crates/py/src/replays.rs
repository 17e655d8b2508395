// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays of block traces, with the main options of `readpath replay`.

use crate::given::{Choice, Host};
use crate::reading::Reading;
use crate::runs::{Shown, answered};
use anyhow::{Result, anyhow};
use pyo3::FromPyObject;
use readpath_config::experiment::Layout;
use readpath_lab::beforehand;
use readpath_lab::replay::{Replay, ReplayOptions, ReplayVariant, Replays};
use readpath_lab::runs::Shared;
use readpath_session::args::{Offers, ReplayMode, TraceHow};
use readpath_session::failure::classify;
use readpath_session::process::process;
use readpath_session::{cases, presets};
use std::path::PathBuf;
use std::sync::Arc;

/// How traces are replayed.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct How {
    before: Vec<PathBuf>,
    /// Queue depth, or none where requests come at their times.
    iodepth: Option<u32>,
    speed: Option<f64>,
    max_idle_ms: Option<f64>,
    fold: bool,
    spread_ties: bool,
    map_cache_kib: Vec<u64>,
    reading: Reading,
}

impl How {
    fn options(&self) -> Result<TraceHow> {
        if let Some(iodepth) = self.iodepth.filter(|n| !(1..=65_535).contains(n)) {
            return Err(anyhow!("iodepth: is {iodepth}; expected a whole number from 1 to 65535"));
        }
        if let Some(ms) = self.max_idle_ms.filter(|ms| !(0.0..=1e9).contains(ms)) {
            return Err(anyhow!("max_idle_ms: is {ms}; expected 0 to 1000000000"));
        }
        Ok(TraceHow {
            offers: Offers::default(),
            input: self.reading.input()?,
            mode: self.iodepth.map(|_| ReplayMode::Closed),
            iodepth: self.iodepth,
            units: Vec::new(),
            speed: self.speed.map(|x| x.to_string()),
            max_idle: self.max_idle_ms.map(|ms| format!("{}ns", (ms * 1e6) as u64)),
            fold: self.fold,
            spread_ties: self.spread_ties,
            shift_sectors: 0,
        })
    }
}

/// Replays a trace on each variant of a device.
pub fn replay(path: PathBuf, device: &str, how: &How, host: &Host, choice: &Choice, shared: &Shared) -> Result<Shown> {
    let started = process();
    let options = how.options()?;
    let layout = host.fill()?.layout().unwrap_or(Layout::Sequential);
    let base = presets::preset(device, &choice.set)?;
    let variants = host.variants(&how.map_cache_kib.iter().map(|kib| format!("{kib}K")).collect::<Vec<_>>())?;
    let variants: Vec<_> = variants.iter().map(|v| ReplayVariant::new(v, &base)).collect::<Result<_, _>>()?;
    let (mode, files) = (cases::mode(&options)?, [path]);
    cases::prepare(&options, 1)?;
    let names = cases::names(&files)?;
    beforehand::variants(&names[0], &variants).map_err(classify)?;
    let cases = cases::cases(&options, &how.before, &files, &names, &base.device.lus, shared)?;
    let of_runs = ReplayOptions { mode, layout, seed: host.seed, encoded: false, over_time: true };
    let texts = cases::texts(&options, (&how.before, &files), device, layout, &cases);
    let (cases, variants): (Vec<_>, Vec<_>) =
        (cases.into_iter().map(Arc::new).collect(), variants.into_iter().map(Arc::new).collect());
    answered(&Replays::new(texts, Replay::all(&cases, &variants, &of_runs)), choice, &started, shared)
}
