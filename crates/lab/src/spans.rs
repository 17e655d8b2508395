// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of what was counted before, between and after the events of a run.

use crate::figures::{counter, hit_ratios};
use readpath_config::Event;
use readpath_kit::Ns;
use readpath_results::metric::{self, Figure, Requests};
use readpath_results::{Case, Document, Error, Metric, Part};
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
    let whole = Case::from(case);
    for span in spans {
        let part = match &span.event {
            None => whole.with(Part::Span, "before event 1"),
            Some((number, event)) => whole.with(Part::Span, &format!("after event {number} ({event})")),
        };
        doc.predicted(part, variant, figures(span))?;
    }
    let came = spans.len().saturating_sub(1);
    let missing = did_not_come("event", came, events.len());
    missing.into_iter().for_each(|which| {
        doc.remark(format!("{case}, {variant}: {which} did not come: the run was over before"));
    });
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

fn figures(span: &Span) -> Vec<(Metric, f64)> {
    let Counts { device, hpb, memory } = &span.counts;
    let ms = |time: Ns| time.0 as f64 / 1e6;
    let mut list = vec![(metric::SPAN, ms(span.to - span.from))];
    list.extend(span.recovery.map(|time| (metric::RECOVERY, ms(time))));
    list.push((metric::BLOCKS_READ, device.translated_reads() as f64));
    list.extend(hit_ratios(device, false));
    for (kind, requests) in [(IoKind::Read, Requests::Read), (IoKind::Write, Requests::Write)] {
        let all = &span.latency[kind as usize];
        if all.count() > 0 {
            list.extend([
                (requests.of(Figure::LatencyMean), all.mean() / 1e3),
                (requests.of(Figure::LatencyP99), all.quantile(0.99) as f64 / 1e3),
                (requests.of(Figure::LatencyMax), all.max() as f64 / 1e3),
            ]);
        }
    }
    list.push((metric::MAP_LOADS, (device.map_loads + device.buffer_map_loads) as f64));
    list.push((metric::HPB_READ_BUFFERS, device.read_buffers as f64));
    if let Some(hpb) = hpb {
        list.extend(hpb.by_name().map(|(name, count)| (counter(name), count as f64)));
        list.push((metric::SHRINK_CNT, hpb.shrink_cnt as f64));
    }
    let held = memory.map_or(0, |m| m.map_bytes + m.bitmap_bytes + m.table_bytes);
    list.push((metric::HOST_MEMORY_HELD, held as f64));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_the_percentiles_of_its_own_requests() {
        let mut span = Span {
            event: None,
            from: Ns::from_ms(1),
            to: Ns::from_ms(3),
            counts: Counts::default(),
            recovery: None,
            latency: Default::default(),
        };
        for i in 0..100 {
            span.latency[IoKind::Read as usize].record(if i < 95 { 100_000 } else { 1_000_000 });
        }
        let found = figures(&span);
        let of = |metric: Metric| found.iter().find(|(other, _)| *other == metric).map(|(_, value)| *value);
        let p99 = of(Requests::Read.of(Figure::LatencyP99)).expect("reads");
        assert!((p99 / 1000.0 - 1.0).abs() < 0.01, "{p99}");
        assert_eq!((of(metric::SPAN), of(Requests::Write.of(Figure::LatencyP99))), (Some(2.0), None));
    }
}
