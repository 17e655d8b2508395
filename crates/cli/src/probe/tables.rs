// SPDX-License-Identifier: MIT OR Apache-2.0
//! A probe as tables of a terminal.

use readpath_report::terminal;
use readpath_session::lab::fit::Metric;
use readpath_session::lab::probe::{Compared, Probe};

/// Parameters, and then jobs.
pub fn of(probe: &Probe) -> String {
    let mut text = parameters(probe);
    text.push('\n');
    text.push_str(&jobs(probe));
    for (fitted, what) in [(true, "fitted"), (false, "held out")] {
        if let Some(rms) = probe.rms_percent(fitted) {
            text.push_str(&format!("rms error of throughput, {what}: {rms:.2} %\n"));
        }
    }
    text.push('\n');
    text
}

fn parameters(probe: &Probe) -> String {
    let row = |k: &readpath_session::lab::fit::Known| {
        vec![
            k.param.key().to_owned(),
            k.param.show(k.start),
            k.param.show(k.fitted),
            k.interval(),
            k.verdict.name().to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = probe.known.iter().map(row).collect();
    terminal::columns(&["parameter", "start", "fitted", "interval", "verdict"], &rows)
}

fn jobs(probe: &Probe) -> String {
    let figure = |x: f64| if x < 1000.0 { format!("{x:.1}") } else { format!("{x:.0}") };
    let row = |r: &Compared| {
        let of = |metric| [figure(r.measured(metric)), figure(r.predicted.of(metric))];
        let [measured, shown] = of(Metric::Throughput);
        let [p99, shown_p99] = of(Metric::LatencyP99);
        let name = probe.plan.jobs[r.reading.job].name.clone();
        let use_of_it = if r.fitted { "" } else { "held out" }.to_owned();
        vec![name, use_of_it, measured, shown, format!("{:+.1}", r.error_percent()), p99, shown_p99]
    };
    let rows: Vec<Vec<String>> = probe.rows.iter().map(row).collect();
    terminal::columns(&["job", "", "MiB/s", "model", "error %", "p99 us", "model"], &rows)
}
