// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath doctor`: what this machine has of all that Readpath can work with, what each part is for, and where to get
//! it. Only the model itself is needed.

mod machine;
mod programs;

use crate::args::Doctor;
use crate::failure::describe;
use crate::inputs::read_text;
use crate::output::{self, terminal_width};
use anyhow::{Context, Result, anyhow};
use machine::Machine;
use programs::{Part, State};
use readpath_report::terminal::texts;
use readpath_session::args::{Fill, Hosts};
use readpath_session::lab::experiment::{Experimenting, plan};
use readpath_session::lab::question::{Question, make};
use readpath_session::lab::runs::Shared;
use readpath_session::typed;
use serde_json::{Value, json};
use std::fmt::Write;

/// The device of the small simulation.
const DEVICE: &str = "ufs21-64g";

pub fn main(args: &Doctor) -> Result<()> {
    let model = model();
    let (parts, machine) = (programs::look(), Machine::look());
    let text = match args.json {
        true => serde_json::to_string_pretty(&json(&model, &parts, &machine))? + "\n",
        false => page(&model, &parts, &machine)?,
    };
    output::emit(&text, None)?;
    model.map(drop)
}

/// What the model has, once it was seen to work.
struct Model {
    devices: usize,
    experiments: usize,
    requests: u64,
}

/// Reads all that is built in, and simulates a little.
fn model() -> Result<Model> {
    for builtin in readpath_session::config::presets() {
        readpath_session::config::device::parse(builtin.text, builtin.file)
            .context("a built-in device cannot be read")?;
    }
    for builtin in readpath_session::config::experiments() {
        let loaded = readpath_session::config::experiment::load(builtin.name, &read_text);
        loaded.context("a built-in experiment cannot be read")?;
    }
    let line = ["-r", "4k", "-+n", "-i2", "-t", "2", "-s", "1m"].map(str::to_owned);
    let small = typed::of_iozone(&line, DEVICE, Fill::Sequential, Hosts::default().variants()?);
    let plans = plan(&small, &[], &read_text).context("a small simulation cannot be planned")?;
    let question = Experimenting::new(small, plans, None);
    let done = make(&question, &Shared::default()).context("a small simulation failed")?;
    let doc = question.answer(&done)?.document;
    doc.validate()?;
    if doc.simulated_ios == 0 {
        return Err(anyhow!("a small simulation made no requests"));
    }
    Ok(Model {
        devices: readpath_session::config::presets().len(),
        experiments: readpath_session::config::experiments().len(),
        requests: doc.simulated_ios,
    })
}

/// Headings of columns that are all to the left.
fn left<const N: usize>(head: [&str; N]) -> [(&str, bool); N] {
    head.map(|heading| (heading, true))
}

fn page(model: &Result<Model>, parts: &[Part], machine: &Machine) -> Result<String> {
    let width = terminal_width();
    let mut text = format!("readpath {}: ", env!("CARGO_PKG_VERSION"));
    match model {
        Ok(Model { devices, experiments, requests }) => {
            writeln!(text, "works ({devices} devices, {experiments} experiments, {requests} requests simulated)")?;
        }
        Err(_) => writeln!(text, "the model does NOT work")?,
    }
    let rows: Vec<_> =
        parts.iter().map(|part| vec![part.name.to_owned(), part.to_string(), part.purpose.to_owned()]).collect();
    write!(text, "\n{}", texts(&left(["optional part", "state", "for"]), &rows, width))?;
    let missing: Vec<&Part> = parts.iter().filter(|part| part.state != State::There).collect();
    if !missing.is_empty() {
        let rows: Vec<_> = missing.iter().map(|part| vec![part.name.to_owned(), part.debian.to_owned()]).collect();
        write!(text, "\n{}", texts(&left(["missing", "on Debian 12"]), &rows, width))?;
    }
    write!(text, "\n{}", texts(&left(["machine", "", "for"]), &machine.rows(), width))?;
    Ok(text)
}

fn json(model: &Result<Model>, parts: &[Part], machine: &Machine) -> Value {
    let error = model.as_ref().err().map(describe);
    let model = model.as_ref().ok();
    let parts = parts.iter().map(|part| {
        json!({
            "name": part.name,
            "state": part.state.word(),
            "path": part.found.as_ref().map(|path| path.to_string_lossy()),
            "in_path": part.found.as_ref().map(|_| !part.is_beside_path()),
            "version": part.version,
            "for": part.purpose,
            "debian_12": part.debian,
        })
    });
    json!({
        "readpath": env!("CARGO_PKG_VERSION"),
        "model": {
            "works": model.is_some(),
            "error": error,
            "devices": model.map(|m| m.devices),
            "experiments": model.map(|m| m.experiments),
            "simulated_ios": model.map(|m| m.requests),
        },
        "parts": parts.collect::<Vec<_>>(),
        "machine": machine.json(),
    })
}
