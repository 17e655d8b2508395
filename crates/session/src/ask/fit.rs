// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device fitted to measurements.

use crate::args::Fit as Args;
use crate::inputs;
use crate::{presets, runs, usage};
use anyhow::{Result, anyhow};
use readpath_config::DevicePreset;
use readpath_lab::fit::{
    Fit, FitOptions, Measurement, ModelError, Param, check, default_params, fill_params, fit, hold_out, parse,
    with_cache_of,
};
use readpath_lab::runs::Shared;
use std::path::Path;

/// Measurements, and the device that is to be fitted to them.
pub struct Fitting {
    preset: DevicePreset,
    rows: Vec<Measurement>,
    options: FitOptions,
    threads: Option<u32>,
    /// Name of the measurements.
    pub source: String,
}

impl Fitting {
    /// Reads the measurements.
    ///
    /// # Errors
    /// When an option or a measurement is wrong.
    pub fn read(args: &Args) -> Result<Self> {
        let mut preset = presets::preset(&args.device, &args.set)?;
        let mut rows = measurements(&args.measurements, &preset)?;
        let fills = rows.iter().all(|row| row.setting.writes());
        if let Some(device) = with_cache_of(&preset, &rows) {
            preset = device;
        }
        let params = match &args.params[..] {
            [] if fills => fill_params(&preset),
            [] => default_params(&preset),
            keys => params(keys)?,
        };
        hold_out(&mut rows, params.len());
        if !rows.iter().any(Measurement::is_seen) {
            let name = args.measurements.display();
            return Err(usage(anyhow!("{name}: all rows are held out, so there is nothing to fit")));
        }
        let options = FitOptions { params, ios: args.ios, ..FitOptions::default() };
        let source = args.measurements.display().to_string();
        Ok(Fitting { preset, rows, options, threads: args.threads, source })
    }

    /// Fits the device.
    ///
    /// # Errors
    /// When a run fails.
    pub fn fit(&self, shared: &Shared) -> Result<Fit> {
        let made = runs::on_threads(self.threads, || fit(&self.preset, &self.rows, &self.options, shared))?;
        made.map_err(run_error)
    }
}

fn measurements(path: &Path, preset: &DevicePreset) -> Result<Vec<Measurement>> {
    let name = path.to_string_lossy();
    let rows = parse(&inputs::text(path)?, &name).map_err(usage)?;
    check(&rows, preset, &name).map_err(usage)?;
    Ok(rows)
}

/// The error of a fit.
pub(super) fn run_error(error: ModelError) -> anyhow::Error {
    match error {
        ModelError::Config(e) => usage(e),
        ModelError::Plan(e) => usage(e),
        e @ ModelError::Run { .. } => e.into(),
    }
}

pub(super) fn params(keys: &[String]) -> Result<Vec<Param>> {
    let of = |key: &String| {
        let unknown = || anyhow!("--params: {key:?} cannot be fitted; known here: {}", Param::keys().join(", "));
        Param::of_key(key.trim()).ok_or_else(|| usage(unknown()))
    };
    keys.iter().map(of).collect()
}
