// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of what was counted before, between and after the events of a run.

use readpath_config::Event;
use readpath_kit::Ns;
use readpath_results::{Document, Error, Origin};
use readpath_run::{Counts, Span};
use readpath_workload::IoKind;

/// Rows of a run's spans, and a note of events that did not come.
pub(crate) fn rows(
    doc: &mut Document,
    case: &str,
    variant: &str,
    events: &[Event],
    spans: &[Span],
) -> Result<(), Error> {
    for span in spans {
        let name = match &span.event {
            None => format!("{case}: before event 1"),
            Some((number, event)) => format!("{case}: after event {number} ({event})"),
        };
        for (metric, unit, value) in figures(span) {
            doc.row(&name, variant, metric, unit, value, Origin::Predicted)?;
        }
    }
    let came = spans.len().saturating_sub(1);
    let missing = did_not_come("event", came, events.len());
    doc.notes.extend(missing.map(|which| format!("{case}, {variant}: {which} did not come: the run was over before")));
    Ok(())
}

/// Which of `all` things, each of which is called `what`, are those behind the first `came`; none if all came.
pub(crate) fn did_not_come(what: &str, came: usize, all: usize) -> Option<String> {
    match all.saturating_sub(came) {
        0 => None,
        1 => Some(format!("{what} {all}")),
        _ => Some(format!("{what}s {} to {all}", came + 1)),
    }
}

/// Names of the latencies of a kind: mean, 99th percentile, longest.
const LATENCIES: [(IoKind, [&str; 3]); 2] = [
    (IoKind::Read, ["read_latency_mean", "read_latency_p99", "read_latency_max"]),
    (IoKind::Write, ["write_latency_mean", "write_latency_p99", "write_latency_max"]),
];

fn figures(span: &Span) -> Vec<(&'static str, &'static str, f64)> {
    let Counts { device, hpb, memory } = &span.counts;
    let ms = |time: Ns| time.0 as f64 / 1e6;
    let mut list = vec![("span", "ms", ms(span.to - span.from))];
    list.extend(span.recovery.map(|time| ("recovery", "ms", ms(time))));
    let reads = device.translated_reads();
    list.push(("blocks_read", "", reads as f64));
    if reads > 0 {
        let share = |n: u64| 100.0 * n as f64 / reads as f64;
        list.push(("map_hit_ratio", "%", share(reads - device.map_misses)));
        list.push(("hpb_hit_ratio", "%", share(device.hpb_hits)));
    }
    for (kind, names) in LATENCIES {
        let all = &span.latency[kind as usize];
        if all.count() > 0 {
            let of = [all.mean(), all.quantile(0.99) as f64, all.max() as f64];
            list.extend(names.into_iter().zip(of).map(|(name, ns)| (name, "us", ns / 1e3)));
        }
    }
    list.push(("map_loads", "", (device.map_loads + device.buffer_map_loads) as f64));
    list.push(("hpb_read_buffers", "", device.read_buffers as f64));
    if let Some(hpb) = hpb {
        list.extend(hpb.by_name().map(|(name, count)| (name, "", count as f64)));
        list.push(("shrink_cnt", "", hpb.shrink_cnt as f64));
    }
    list.push(("host_memory_held", "bytes", memory.map_or(0, |m| m.map_bytes + m.bitmap_bytes + m.table_bytes) as f64));
    list
}
