// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ctl SOCKET watch`: what a served device does, every second: on a terminal in one place, in a pipe a line
//! for each second.

use super::send;
use crate::progress::escapes;
use anyhow::Result;
use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Counters at one moment.
struct Counters {
    values: HashMap<String, f64>,
    at: Instant,
}

impl Counters {
    fn read(socket: &Path) -> Result<Counters> {
        let text = send(socket, "stats")?;
        let at = Instant::now();
        let values = text.lines().filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.strip_prefix("readpath_").unwrap_or(name).to_owned(), value.parse().ok()?))
        });
        Ok(Counters { values: values.collect(), at })
    }

    fn get(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or(0.0)
    }
}

/// A name and its value as text.
type Figure = (&'static str, String);

fn figures(now: &Counters, before: &Counters) -> Vec<Figure> {
    let seconds = (now.at - before.at).as_secs_f64().max(1e-3);
    let grew = |name: &str| now.get(name) - before.get(name);
    let rate = |name: &str| grew(name) / seconds;
    let mib = f64::from(1 << 20);
    let share = |part: f64, all: f64| if all > 0.0 { format!("{:.1} %", 100.0 * part / all) } else { "-".to_owned() };
    let (hits, misses) = (grew("hpb_hit_cnt{lun=\"0\"}"), grew("hpb_miss_cnt{lun=\"0\"}"));
    let (moved, written) = (grew("device_slices_moved"), grew("device_slices_programmed"));
    let amplification = if written > 0.0 { format!("{:.2}", 1.0 + moved / written) } else { "-".to_owned() };
    vec![
        ("requests/s", format!("{:.0}", rate("requests"))),
        ("read MiB/s", format!("{:.1}", rate("read_bytes") / mib)),
        ("write MiB/s", format!("{:.1}", rate("written_bytes") / mib)),
        ("in flight", format!("{:.0}", now.get("requests_in_flight"))),
        ("HPB hits", share(hits, hits + misses)),
        ("write ampl.", amplification),
        ("errors", format!("{:.0}", now.get("request_errors"))),
        ("device time s", format!("{:.1}", now.get("device_time_seconds"))),
    ]
}

pub fn main(socket: &Path) -> Result<()> {
    let mut out = io::stdout().lock();
    // Figures are replaced by escape sequences; without those they go on line by line.
    let is_terminal = out.is_terminal() && escapes();
    let mut before = Counters::read(socket)?;
    let mut lines = 0;
    loop {
        sleep(Duration::from_secs(1));
        let Ok(now) = Counters::read(socket) else {
            return Ok(writeln!(out, "the server has ended")?);
        };
        let figures = figures(&now, &before);
        if is_terminal {
            // The cursor moves back to the first figure.
            if lines > 0 {
                write!(out, "\x1b[{lines}A")?;
            }
            figures.iter().try_for_each(|(name, value)| writeln!(out, "\x1b[2K{name:<14}{value:>12}"))?;
            lines = figures.len();
        } else {
            if lines == 0 {
                let names: Vec<&str> = figures.iter().map(|&(name, _)| name).collect();
                writeln!(out, "{}", names.join(","))?;
                lines = 1;
            }
            let values: Vec<&str> = figures.iter().map(|(_, value)| &**value).collect();
            writeln!(out, "{}", values.join(","))?;
        }
        out.flush()?;
        before = now;
    }
}
