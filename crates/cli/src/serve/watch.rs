// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ctl SOCKET watch`: what a served device does, every second: on a terminal in one place, in a pipe a line
//! for each second.

use super::send;
use crate::progress::escapes;
use anyhow::Result;
use std::borrow::Cow;
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

    /// Upper ends of the buckets of a histogram, as text and in no order.
    fn ends_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let end = move |key: &'a String| key.strip_prefix(name)?.strip_prefix("_bucket{le=\"")?.strip_suffix("\"}");
        self.values.keys().filter_map(end)
    }

    /// The sum of a counter of logical units.
    fn of_units(&self, name: &str) -> f64 {
        let is_of = |key: &str| key.strip_prefix(name).is_some_and(|labels| labels.starts_with('{'));
        self.values.iter().filter(|(key, _)| is_of(key)).map(|(_, value)| value).sum()
    }

    fn get(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or(0.0)
    }
}

/// A name and its value as text.
type Figure = (Cow<'static, str>, String);

fn figures(now: &Counters, before: &Counters) -> Vec<Figure> {
    let seconds = (now.at - before.at).as_secs_f64().max(1e-3);
    let grew = |name: &str| now.get(name) - before.get(name);
    let rate = |name: &str| grew(name) / seconds;
    let mib = f64::from(1 << 20);
    let share = |part: f64, all: f64| if all > 0.0 { format!("{:.1} %", 100.0 * part / all) } else { "-".to_owned() };
    let [hits, misses] =
        ["hpb_hit_cnt_total", "hpb_miss_cnt_total"].map(|name| now.of_units(name) - before.of_units(name));
    let (moved, written) = (grew("device_slices_moved_total"), grew("device_slices_programmed_total"));
    let amplification = if written > 0.0 { format!("{:.2}", 1.0 + moved / written) } else { "-".to_owned() };
    let quantile = |name: &str, part: f64| {
        let below = |end: &str| grew(&format!("{name}_bucket{{le=\"{end}\"}}"));
        let rank = part * below("+Inf");
        let mut ends: Vec<&str> = now.ends_of(name).collect();
        ends.sort_by(|one, two| one.parse::<f64>().unwrap_or(0.0).total_cmp(&two.parse().unwrap_or(0.0)));
        let end = ends.into_iter().find(|end| rank > 0.0 && below(end) >= rank).and_then(|end| end.parse::<f64>().ok());
        end.map_or("-".to_owned(), |end| format!("<= {}", (end * 1e5).round() / 100.0))
    };
    let all = [
        ("requests/s", format!("{:.0}", rate("requests_total"))),
        ("read MiB/s", format!("{:.1}", rate("read_bytes_total") / mib)),
        ("write MiB/s", format!("{:.1}", rate("written_bytes_total") / mib)),
        ("p50 ms", quantile("request_served_seconds", 0.5)),
        ("p99 ms", quantile("request_served_seconds", 0.99)),
        ("p99 late ms", quantile("request_lateness_seconds", 0.99)),
        ("in flight", format!("{:.0}", now.get("requests_in_flight"))),
        ("HPB hits", share(hits, hits + misses)),
        ("write ampl.", amplification),
        ("errors", format!("{:.0}", now.get("request_errors_total"))),
        ("device time s", format!("{:.1}", now.get("device_time_seconds"))),
    ];
    // With one logical unit there is no such counter.
    let counter = |unit: u8| format!("unit_requests_total{{unit=\"{unit}\"}}");
    let units = (0..8).filter(|&unit| now.values.contains_key(&counter(unit)));
    let of_unit = |unit| (format!("unit {unit} req/s").into(), format!("{:.0}", rate(&counter(unit))));
    all.into_iter().map(|(name, value)| (name.into(), value)).chain(units.map(of_unit)).collect()
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
                let names: Vec<&str> = figures.iter().map(|(name, _)| &**name).collect();
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
