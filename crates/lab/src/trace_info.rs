// SPDX-License-Identifier: MIT OR Apache-2.0
//! From what a trace is like to a result document: rows and charts. Everything in it was counted in the trace; nothing is
//! simulated.

use crate::document::{MIB, kind_name};
use readpath_kit::BLOCK_BYTES;
use readpath_results::{Chart, ChartKind, Document, Error, Origin, SeriesStyle};
use readpath_workload::IoKind;
use readpath_workload::trace::Info;
use readpath_workload::trace::info::{SIZE_CLASSES, class_limit};

const KINDS: [IoKind; 4] = [IoKind::Read, IoKind::Write, IoKind::Trim, IoKind::Flush];

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
///
/// # Errors
/// A figure that is not finite.
pub fn document(case: &str, info: &Info, notes: &[String]) -> Result<Document, Error> {
    let mut doc = Document::new("trace_info", format!("Block trace {case}"));
    doc.description = "Counted in the trace; nothing was simulated.".to_owned();
    doc.notes = notes.to_vec();
    let mut add =
        |metric: &str, unit: &str, value: f64| doc.row(case, "", metric, unit, value, Origin::Measured).map(drop);
    let seconds = info.span.as_secs_f64();
    add("requests", "", info.requests() as f64)?;
    add("span", "s", seconds)?;
    if seconds > 0.0 {
        add("request_rate", "1/s", info.requests() as f64 / seconds)?;
    }
    if let Some(ratio) = info.read_ratio() {
        add("read_ratio", "%", 100.0 * ratio)?;
    }
    for kind in KINDS {
        let (of, name) = (&info.kinds[kind as usize], kind_name(kind));
        if of.requests == 0 {
            continue;
        }
        let share = |n: u64| 100.0 * n as f64 / of.requests as f64;
        add(&format!("{name}_requests"), "", of.requests as f64)?;
        if kind == IoKind::Flush {
            continue;
        }
        add(&format!("{name}_bytes"), "bytes", of.bytes as f64)?;
        add(&format!("{name}_mean_size"), "bytes", of.bytes as f64 / of.requests as f64)?;
        add(&format!("{name}_smallest"), "bytes", of.smallest as f64)?;
        add(&format!("{name}_largest"), "bytes", of.largest as f64)?;
        add(&format!("{name}_sequential"), "%", share(of.sequential))?;
        add(&format!("{name}_in_streams"), "%", share(of.in_streams))?;
        add(&format!("{name}_unaligned"), "%", share(of.unaligned))?;
        add(&format!("{name}_fua"), "", of.fua as f64)?;
        for (class, &n) in of.sizes.iter().enumerate().filter(|(_, n)| **n > 0) {
            let limit = class_limit(class).map_or("larger".to_owned(), |bytes| format!("up_to_{bytes}_bytes"));
            add(&format!("{name}_size_{limit}"), "", n as f64)?;
        }
    }
    add("preflushes", "", info.preflushes as f64)?;
    let f = &info.footprint;
    for (name, blocks) in [
        ("footprint", f.blocks),
        ("footprint_read", f.blocks_read),
        ("footprint_written", f.blocks_written),
        ("footprint_read_first", f.blocks_read_first),
        ("footprint_only_read", f.blocks_only_read),
    ] {
        add(&format!("{name}_blocks"), "", blocks as f64)?;
    }
    add("footprint_bytes", "bytes", (f.blocks * u64::from(BLOCK_BYTES)) as f64)?;
    add("address_end", "bytes", f.highest as f64)?;
    if f.block_reads > 0 {
        add("block_reads_again", "%", 100.0 * f.block_reads_again as f64 / f.block_reads as f64)?;
    }
    for reuse in info.reuse.iter().filter(|r| r.accesses > 0) {
        let name = span_name(reuse.span_bytes);
        add(&format!("map_pages_{name}"), "", reuse.pages as f64)?;
        add(&format!("map_page_accesses_{name}"), "", reuse.accesses as f64)?;
        for k in 0..reuse.hits.len() {
            let ratio = reuse.hit_ratio(k).unwrap_or(0.0);
            add(&format!("lru_hits_{name}_{}_pages", 1u64 << k), "%", 100.0 * ratio)?;
        }
    }
    for class in info.gaps.classes.iter().filter(|c| c.count > 0) {
        add(&format!("pauses_from_{}_ms", class.at_least.0 / 1_000_000), "", class.count as f64)?;
    }
    add("longest_pause", "s", info.gaps.longest.as_secs_f64())?;
    if let Some(depth) = &info.depth {
        add("queue_depth_mean", "", depth.mean)?;
        add("queue_depth_most", "", depth.most as f64)?;
        add("busy_time", "s", depth.busy.as_secs_f64())?;
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
            sizes.series(kind_name(kind), SeriesStyle::Plain, points)?;
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
