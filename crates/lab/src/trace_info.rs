// SPDX-License-Identifier: MIT OR Apache-2.0
//! From what a trace is like to a result document: rows and charts. Everything in it was counted in the trace; nothing
//! is simulated.

use crate::figures::{KINDS, MIB, requests};
use readpath_kit::BLOCK_BYTES;
use readpath_results::metric::{self, Figure};
use readpath_results::{Chart, ChartKind, Document, Error, Metric, Note, Origin, SeriesStyle};
use readpath_workload::IoKind;
use readpath_workload::trace::Info;
use readpath_workload::trace::info::{SIZE_CLASSES, Skew, class_limit};

/// A span of address space in words.
fn span_name(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{}mib", bytes >> 20) } else { format!("{}kib", bytes >> 10) }
}

/// The largest size of a class in words.
pub fn class_name(class: usize) -> String {
    match class_limit(class) {
        None => "larger".to_owned(),
        Some(n) if n < 1 << 10 => format!("{n} B"),
        Some(n) if n < 1 << 20 => format!("{} KiB", n >> 10),
        Some(n) => format!("{} MiB", n >> 20),
    }
}

/// The document about a trace that tables call `case`, without what depends on the machine.
pub fn document(case: &str, info: &Info, notes: &[String]) -> Result<Document, Error> {
    let mut doc = Document::new("trace_info", format!("Block trace {case}"));
    doc.description = "Counted in the trace; nothing was simulated.".to_owned();
    doc.notes = notes.iter().map(Note::remark).collect();
    let mut add = |metric: Metric, value: f64| doc.row(case, "", metric, value, Origin::Measured).map(drop);
    let seconds = info.span.as_secs_f64();
    add(metric::REQUESTS, info.requests() as f64)?;
    add(metric::TRACE_SPAN, seconds)?;
    if seconds > 0.0 {
        add(metric::REQUEST_RATE, info.requests() as f64 / seconds)?;
    }
    if let Some(ratio) = info.read_ratio() {
        add(metric::READ_RATIO, 100.0 * ratio)?;
    }
    for kind in KINDS {
        let (of, requests) = (&info.kinds[kind as usize], requests(kind));
        if of.requests == 0 {
            continue;
        }
        add(requests.of(Figure::Count), of.requests as f64)?;
        if kind == IoKind::Flush {
            continue;
        }
        let share = |n: u64| 100.0 * n as f64 / of.requests as f64;
        for (figure, value) in [
            (Figure::Bytes, of.bytes as f64),
            (Figure::MeanSize, of.bytes as f64 / of.requests as f64),
            (Figure::Smallest, of.smallest as f64),
            (Figure::Largest, of.largest as f64),
            (Figure::Sequential, share(of.sequential)),
            (Figure::InStreams, share(of.in_streams)),
            (Figure::Unaligned, share(of.unaligned)),
            (Figure::Fua, of.fua as f64),
        ] {
            add(requests.of(figure), value)?;
        }
        for (class, &n) in of.sizes.iter().enumerate().filter(|(_, n)| **n > 0) {
            let metric = match class_limit(class) {
                Some(bytes) => metric::SIZES_UP_TO.with([requests.name(), &bytes.to_string()]),
                None => metric::SIZES_LARGER.with([requests.name()]),
            };
            add(metric, n as f64)?;
        }
    }
    add(metric::PREFLUSHES, info.preflushes as f64)?;
    let f = &info.footprint;
    for (metric, blocks) in [
        (metric::FOOTPRINT_BLOCKS, f.blocks),
        (metric::FOOTPRINT_READ_BLOCKS, f.blocks_read),
        (metric::FOOTPRINT_WRITTEN_BLOCKS, f.blocks_written),
        (metric::FOOTPRINT_READ_FIRST_BLOCKS, f.blocks_read_first),
        (metric::FOOTPRINT_ONLY_READ_BLOCKS, f.blocks_only_read),
    ] {
        add(metric, blocks as f64)?;
    }
    add(metric::FOOTPRINT_BYTES, (f.blocks * u64::from(BLOCK_BYTES)) as f64)?;
    add(metric::ADDRESS_END, f.highest as f64)?;
    if f.block_reads > 0 {
        add(metric::BLOCK_READS_AGAIN, 100.0 * f.block_reads_again as f64 / f.block_reads as f64)?;
    }
    for reuse in info.reuse.iter().filter(|r| r.accesses > 0) {
        let span = span_name(reuse.span_bytes);
        add(metric::MAP_PAGES.with([&span]), reuse.pages as f64)?;
        add(metric::MAP_PAGE_ACCESSES.with([&span]), reuse.accesses as f64)?;
        for k in 0..reuse.hits.len() {
            let ratio = reuse.hit_ratio(k).unwrap_or(0.0);
            add(metric::LRU_HITS.with([&span, &(1u64 << k).to_string()]), 100.0 * ratio)?;
        }
    }
    for skew in &info.skew {
        let span = span_name(skew.span_bytes);
        if skew.pages > 0 {
            add(metric::MAP_PAGES_OF_ALL.with([&span]), skew.pages as f64)?;
        }
        for (percent, share) in Skew::PERCENT.into_iter().zip(skew.shares().into_iter().flatten()) {
            add(metric::HOTTEST.with([&span, &percent.to_string()]), 100.0 * share)?;
        }
    }
    for class in info.gaps.classes.iter().filter(|c| c.count > 0) {
        add(metric::PAUSES_FROM.with([&(class.at_least.0 / 1_000_000).to_string()]), class.count as f64)?;
    }
    add(metric::LONGEST_PAUSE, info.gaps.longest.as_secs_f64())?;
    if let Some(depth) = &info.depth {
        add(metric::QUEUE_DEPTH_MEAN, depth.mean)?;
        add(metric::QUEUE_DEPTH_MOST, depth.most as f64)?;
        add(metric::BUSY_TIME, depth.busy.as_secs_f64())?;
    }
    charts(&mut doc, info)?;
    Ok(doc)
}

fn charts(doc: &mut Document, info: &Info) -> Result<(), Error> {
    let mut sizes = Chart::new("sizes", "Sizes of requests", ChartKind::Bars)
        .axes("up to", "requests")
        .caption("Each class holds what is larger than the class before.");
    let used = |class: usize| info.kinds.iter().any(|k| k.sizes[class] > 0);
    for kind in [IoKind::Read, IoKind::Write, IoKind::Trim] {
        let of = &info.kinds[kind as usize];
        if of.requests > 0 {
            let points = (0..SIZE_CLASSES).filter(|&c| used(c)).map(|c| (class_name(c), of.sizes[c] as f64));
            sizes.series(requests(kind).name(), SeriesStyle::Plain, points)?;
        }
    }
    if !sizes.series.is_empty() {
        doc.charts.push(sizes);
    }
    let timeline = &info.timeline;
    let width = timeline.width.as_secs_f64();
    let over_time = |chart: &mut Chart, name: &str, of: &dyn Fn(usize) -> f64| {
        let points = (0..timeline.slots.len()).map(|i| (i as f64 * width, of(i)));
        chart.series(name, SeriesStyle::Plain, points).map(drop)
    };
    let mut rate = Chart::new("rate", "Requests over time", ChartKind::Step).axes("s", "requests/s");
    over_time(&mut rate, "requests", &|i| timeline.slots[i].requests as f64 / width)?;
    doc.charts.push(rate);
    let mut data = Chart::new("data", "Data over time", ChartKind::Step).axes("s", "MiB/s");
    over_time(&mut data, "read", &|i| timeline.slots[i].read_bytes as f64 / width / MIB)?;
    over_time(&mut data, "written", &|i| timeline.slots[i].written_bytes as f64 / width / MIB)?;
    doc.charts.push(data);
    if info.depth.is_some() {
        let mut depth = Chart::new("depth", "Most requests in progress", ChartKind::Step).axes("s", "requests");
        over_time(&mut depth, "in progress", &|i| f64::from(timeline.slots[i].most_in_progress))?;
        doc.charts.push(depth);
    }
    let mut reuse = Chart::new("reuse", "Hits of a least-recently-used map cache", ChartKind::Lines)
        .axes("pages", "% of accesses")
        .x_log()
        .caption("Accesses of reads to map pages that a cache of so many pages would hold, whatever the device.");
    for r in info.reuse.iter().filter(|r| r.accesses > 0) {
        let points = (0..r.hits.len()).map(|k| ((1u64 << k) as f64, 100.0 * r.hit_ratio(k).unwrap_or(0.0)));
        let name = format!("pages that span {} MiB", r.span_bytes as f64 / MIB);
        reuse.series(name, SeriesStyle::Plain, points)?;
    }
    if !reuse.series.is_empty() {
        doc.charts.push(reuse);
    }
    Ok(())
}
