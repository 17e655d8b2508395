// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath device fit`: a device fitted to measurements. The fitted device is written as a file.

use crate::args::Fit as FitArgs;
use crate::files::write_whole;
use crate::output;
use anyhow::Result;
use readpath_report::terminal;
use readpath_session::ask::fit::Fitting;
use readpath_session::lab::fit::{Fit, FittedParam, FittedRow, Known};
use readpath_session::lab::runs::Shared;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

pub fn main(args: &FitArgs) -> Result<()> {
    let fitting = Fitting::read(&args.of)?;
    let shared = Arc::new(Shared::default());
    let progress = output::Progress::start(shared.clone(), None);
    let fit = fitting.fit(&shared)?;
    drop(progress);
    let source = fitting.source;
    let mut doc = fit.document(&source)?;
    doc.process = output::process();
    let json = doc.to_json_pretty()?;
    if let Some(path) = &args.output {
        let line = |k: &Known| {
            format!("{}: {}, {} ({})", k.param.key(), k.param.show(k.fitted), k.verdict.name(), k.interval())
        };
        let lines = fit.known().iter().filter(|k| k.high.is_finite()).map(line).collect();
        write_device(path, &fit, &Heading { program: "device fit", source: source.clone(), lines })?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        out.write_all(json.as_bytes())?;
    } else {
        write!(out, "{}", tables(&fit, &doc.title))?;
        if let Some(path) = &args.output {
            writeln!(out, "\nFitted device: {}", path.display())?;
        }
    }
    Ok(())
}

/// The comment at the beginning of the file of a fitted device.
pub struct Heading {
    /// The command that made it.
    pub program: &'static str,
    /// Source of the measurements.
    pub source: String,
    /// A line for each parameter.
    pub lines: Vec<String>,
}

/// Writes the fitted device as a file, once its text was parsed again.
pub fn write_device(path: &Path, fit: &Fit, heading: &Heading) -> Result<()> {
    let mut text = format!("# A device fitted to measurements with readpath {}.\n", heading.program);
    // A name may hold anything; a comment is one line.
    let one_line: String = heading.source.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.push_str(&format!("# Measurements: {one_line}\n"));
    for line in &heading.lines {
        text.push_str(&format!("# {line}\n"));
    }
    text.push_str(&fit.preset.echo().to_toml());
    readpath_session::config::device::parse(&text, "the fitted device")?;
    write_whole(path, text.as_bytes())
}

fn tables(fit: &Fit, title: &str) -> String {
    let parameter = |(p, known): (&FittedParam, &Known)| {
        vec![
            p.param.key().to_owned(),
            p.param.show(p.start),
            p.param.show(p.fitted),
            p.error(),
            known.interval(),
            known.verdict.name().to_owned(),
        ]
    };
    let params: Vec<Vec<String>> = fit.params.iter().zip(&fit.known()).map(parameter).collect();
    let row = |r: &FittedRow| {
        let m = &r.measurement;
        let hpb = if m.setting.hpb { "on" } else { "off" };
        let figure = |x: f64| if x < 1000.0 { format!("{x:.2}") } else { format!("{x:.0}") };
        vec![
            m.setting.to_string(),
            hpb.to_owned(),
            m.metric.name().to_owned(),
            figure(m.value),
            figure(r.before),
            figure(r.simulated),
            format!("{:+.2}", r.error_percent()),
            if m.is_seen() { "fit" } else { "predicted" }.to_owned(),
        ]
    };
    let of = |seen: bool| fit.rows.iter().filter(move |r| r.measurement.is_seen() == seen);
    let rows: Vec<Vec<String>> = of(true).chain(of(false)).map(row).collect();
    let mut text = format!("{title}\n\n");
    let width = output::terminal_width();
    text.push_str(&terminal::columns_up_to(
        &["parameter", "start", "fitted", "± error", "interval", "verdict"],
        &params,
        width,
    ));
    text.push('\n');
    text.push_str(&terminal::columns_up_to(
        &["measurement", "HPB", "metric", "measured", "start", "fitted", "error %", "origin"],
        &rows,
        width,
    ));
    text.push('\n');
    for (seen, what) in [(true, "fit"), (false, "predicted")] {
        if let Some(rms) = fit.rms_percent(seen) {
            text.push_str(&format!("rms error, {what}: {rms:.2} %\n"));
        }
    }
    text.push_str(&format!("{} steps, {} requests simulated\n", fit.iterations, fit.simulated_ios));
    for note in fit.notes() {
        text.push_str(&format!("Note: {note}\n"));
    }
    text
}
