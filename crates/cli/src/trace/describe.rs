// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace is like, as tables for people.

use crate::units::bytes;
use readpath_session::lab::trace_info::class_name;
use readpath_session::workload::IoKind;
use readpath_session::workload::trace::Info;
use readpath_session::workload::trace::info::Skew;

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

const KINDS: [(IoKind, &str); 4] =
    [(IoKind::Read, "read"), (IoKind::Write, "write"), (IoKind::Trim, "trim"), (IoKind::Flush, "flush")];

/// Tables and sentences on the trace called `name`.
pub fn describe(name: &str, info: &Info, notes: &[String]) -> String {
    let mut lines = vec![format!("Block trace {name}\n")];
    lines.push(format!("requests    {} over {}", info.requests(), info.span));
    if let Some(ratio) = info.read_ratio() {
        lines.push(format!("reads       {:.1} % of reads and writes", 100.0 * ratio));
    }
    kinds(info, &mut lines);
    sizes(info, &mut lines);
    footprint(info, &mut lines);
    skew(info, &mut lines);
    reuse(info, &mut lines);
    load(info, &mut lines);
    lines.push(String::new());
    lines.extend(notes.iter().map(|note| format!("Note: {note}")));
    lines.join("\n") + "\n"
}

/// A line for each kind of request.
fn kinds(info: &Info, lines: &mut Vec<String>) {
    lines.push(format!(
        "\n{:<6} {:>10} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}",
        "", "requests", "data", "mean", "largest", "sequential", "in streams", "unaligned"
    ));
    for (kind, word) in KINDS {
        let k = &info.kinds[kind as usize];
        let share = |n| percent(n, k.requests);
        match kind {
            _ if k.requests == 0 => {}
            IoKind::Flush => lines.push(format!("{word:<6} {:>10}", k.requests)),
            _ => lines.push(format!(
                "{word:<6} {:>10} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}",
                k.requests,
                bytes(k.bytes),
                bytes(k.bytes / k.requests),
                bytes(k.largest),
                share(k.sequential),
                share(k.in_streams),
                share(k.unaligned)
            )),
        }
    }
}

fn sizes(info: &Info, lines: &mut Vec<String>) {
    lines.push(format!("\n{:<10} {:>10} {:>10} {:>10}   requests by size", "up to", "read", "write", "trim"));
    for class in 0..info.kinds[0].sizes.len() {
        let n = [0, 1, 2].map(|k| info.kinds[k].sizes[class]);
        if n.iter().any(|&n| n > 0) {
            lines.push(format!("{:<10} {:>10} {:>10} {:>10}", class_name(class), n[0], n[1], n[2]));
        }
    }
}

fn footprint(info: &Info, lines: &mut Vec<String>) {
    let f = &info.footprint;
    let (all, end) = (bytes(f.bytes()), bytes(f.highest));
    lines.push(format!("\nworking set {all} ({} blocks of 4 KiB), addresses up to {end}", f.blocks));
    lines.push(format!("            {} blocks read, {} written", f.blocks_read, f.blocks_written));
    lines.push(format!(
        "            {} read before they are written: they were there when the trace began",
        f.blocks_read_first
    ));
    if f.block_reads > 0 {
        let again = percent(f.block_reads_again, f.block_reads);
        lines.push(format!("            {again} of blocks read had been read before"));
    }
}

/// How many map pages, and how unevenly they are read.
fn skew(info: &Info, lines: &mut Vec<String>) {
    for skew in info.skew.iter().filter(|skew| skew.pages > 0) {
        let (span, touched, read) = (bytes(skew.span_bytes), skew.pages, skew.pages_read);
        let mut line = format!("map pages   of {span}: {touched} touched, {read} read");
        if let Some(shares) = skew.shares() {
            let list = Skew::PERCENT.into_iter().zip(shares);
            let list: Vec<String> = list.map(|(n, share)| format!("{n} %: {:.1} %", 100.0 * share)).collect();
            line += &format!("; reads of the hottest {}", list.join(", "));
        }
        lines.push(line);
    }
}

fn reuse(info: &Info, lines: &mut Vec<String>) {
    for reuse in info.reuse.iter().filter(|r| r.accesses > 0) {
        let span = bytes(reuse.span_bytes);
        lines
            .push(format!("reuse       of map pages of {span}: hits of a least-recently-used cache of so many pages:"));
        let hit = |k| format!("{}: {:.1} %", 1u64 << k, 100.0 * reuse.hit_ratio(k).unwrap_or(0.0));
        let hits: Vec<String> = (0..reuse.hits.len()).map(hit).collect();
        lines.extend(hits.chunks(6).map(|row| format!("            {}", row.join("   "))));
    }
}

/// How requests come over time.
fn load(info: &Info, lines: &mut Vec<String>) {
    let slots = &info.timeline.slots;
    let width = info.timeline.width;
    if let Some(busiest) = slots.iter().map(|s| s.requests).max() {
        let mean = info.requests() as f64 / info.span.as_secs_f64().max(width.as_secs_f64());
        let most = busiest as f64 / width.as_secs_f64();
        lines.push(format!("load        {mean:.1} requests/s; {most:.1} in the busiest {width}"));
    }
    let paused = info.gaps.classes.iter().filter(|c| c.count > 0);
    let pauses: Vec<String> = paused.map(|c| format!("{} of {}", c.count, c.at_least)).collect();
    if !pauses.is_empty() {
        lines.push(format!("pauses      {} or longer; the longest {}", pauses.join(", "), info.gaps.longest));
    }
    lines.push(match &info.depth {
        Some(d) => {
            let busy = percent(d.busy.0, d.span.0);
            format!("depth       {:.2} on average, {} at most, busy {busy}", d.mean, d.most)
        }
        None => "depth       not known: the trace has no latencies".into(),
    });
}
