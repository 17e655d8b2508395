// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of 2016 beside the cost model, on the counts that were published and on streams.

use super::by_lines::by_lines;
use super::error::{Error, replay};
use super::model::{Model, percent};
use super::published::{Configuration, Published, Task};
use super::verdict::of_caches;
use super::{TaskStream, beyond};
use crate::verdict::of_published;
use readpath_results::{Case, Chart, ChartKind, Document, Note, Origin, Row, SeriesStyle, metric};
use readpath_ubi::cost::Cost;
use readpath_ubi::preset::CostPreset;
use readpath_ubi::stream::{Op, Pressure, Setup};
use readpath_ubi::variant::Variant;
use serde_json::json;
use std::collections::BTreeSet;

/// Configurations whose published times differ by less than this share are not put in order: the table's own noise is
/// larger (sys time of rm rises with more lines, although fewer pages are read).
const TIE: f64 = 0.03;

/// An error, in %, that is worth an explanation.
const FAR_OFF: f64 = 25.0;

/// What the experiment came to: its document, whose rows are of three tables one after the other.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// The document of all streams.
    pub document: Document,
    /// The first row of caches beyond the published table.
    pub caches: usize,
    /// The first row of caches of several sizes.
    pub sizes: usize,
}

/// The document of the experiment, with `streams` in the order in which they are to be shown. Their reads cost what
/// `cost` says, or else what the kind of NAND with such pages does.
///
/// # Errors
/// A figure that is not finite, or a stream that is too much for a cache that knows the future.
pub fn reproduce(streams: &[TaskStream], cost: Option<&CostPreset>) -> Result<Reproduction, Error> {
    let model = Model::new(cost);
    let Model { published, preset, .. } = &model;
    let us = |ns: u64| ns / 1000;
    let mut doc = Document::new(&published.name, &published.title);
    doc.description = published.description.clone();
    doc.citations = published.citations.clone();
    doc.configuration = json!({
        "cost": { "preset": preset.name, "page_bytes": preset.page_bytes, "ecc_step_bytes": preset.ecc_step_bytes,
            "wait_us": preset.wait_ns.map(us), "cpu_us": preset.cpu_ns.map(us), "core_hit_us": us(preset.core_hit_ns),
            "find_ms": preset.find_ms, "rm_ms": preset.rm_ms, "boot_ms": preset.boot_ms },
        "streams": streams.iter().map(|s| json!({ "stream": s.name(""), "page_bytes": s.page_bytes,
            "cost": model.preset(s.page_bytes).name })).collect::<Vec<_>>(),
    });
    // The user's images come first; the published table follows, to compare with.
    let images: BTreeSet<&str> = streams.iter().filter(|s| s.is_own()).map(|s| s.case.name.as_str()).collect();
    let image_comes_first = !images.is_empty();
    let names = images.into_iter().collect::<Vec<_>>().join(", ");
    let what = format!("{names}, all works together");
    if image_comes_first {
        doc.title = format!("Read caches of UBI on {names}");
        doc.description = format!(
            "Reads that our reader of UBIFS makes of {names}, without a cache, with the one page of the NAND core, and \
             with caches in UBI. Behind them, to compare with: {}.",
            published.title
        );
        of_streams(&mut doc, &model, streams)?;
    }
    doc.remark(answer(&model));
    for task in Task::ALL {
        let real = on_counts(&mut doc, &model, task)?;
        doc.remark(order_note(&model, task, "on the published counts", &real));
    }
    if !image_comes_first {
        of_streams(&mut doc, &model, streams)?;
    }
    general_notes(&mut doc, &model, streams);
    break_even_chart(&mut doc, &model)?;
    seconds_chart(&mut doc, streams)?;
    let published_charts = doc.charts.len();
    // Caches are asked by reads of logical blocks only.
    let cached = || streams.iter().filter(|s| s.case.stream.summary.reads > 0);
    let caches = doc.rows.len();
    let mut replayed = cached().map(|s| beyond::caches(&mut doc, &model, s)).collect::<Result<Vec<_>, _>>()?;
    let sizes = doc.rows.len();
    let sized = cached().enumerate().map(|(i, stream)| beyond::sizes(&mut doc, &model, i, stream));
    let sized = sized.collect::<Result<Vec<_>, _>>()?;
    if image_comes_first {
        doc.charts.rotate_left(published_charts);
        let own = cached().zip(&sized).filter(|(stream, _)| stream.is_own());
        let own: Vec<&[_]> = own.map(|(_, outcomes)| &outcomes[..]).collect();
        if sized.len() > 1 && !own.is_empty() {
            doc.charts.splice(0..0, by_lines("", &what, &own)?);
        }
    }
    replayed.iter_mut().zip(sized).for_each(|(replayed, sized)| replayed.outcomes.extend(sized));
    let own: Vec<_> = cached().zip(replayed).filter(|(s, _)| s.is_own()).map(|(_, replayed)| replayed).collect();
    doc.verdict = match image_comes_first {
        true => of_caches(&what, &own).into_iter().collect(),
        false => of_published(&doc).into_iter().collect(),
    };
    Ok(Reproduction { document: doc, caches, sizes })
}

/// Rows and notes of all streams.
fn of_streams(doc: &mut Document, model: &Model, streams: &[TaskStream]) -> Result<(), Error> {
    for stream in streams {
        let first = doc.rows.len();
        replayed(doc, model, stream)?;
        let note = far_off(stream, &doc.rows[first..]);
        doc.notes.extend(note.iter().chain(&stream.case.notes).map(Note::remark));
        doc.read_from([&stream.case.input]);
    }
    Ok(())
}

fn general_notes(doc: &mut Document, model: &Model, streams: &[TaskStream]) {
    if streams.iter().any(|s| s.case.stream.summary.other_reads > 0) {
        doc.remark(
            "Headers and the volume table are read below ubi_eba_read_leb, so a cache in UBI changes nothing about \
             attaching; without sub-page reads (B) each page with headers is read whole.",
        );
    }
    let other_pages: BTreeSet<u32> =
        streams.iter().map(|s| s.page_bytes).filter(|&b| b != model.preset.page_bytes).collect();
    for page_bytes in other_pages {
        doc.remark(format!(
            "Streams with pages of {page_bytes} bytes do not stand beside published values, which are for {}.",
            model.preset.page_bytes
        ));
    }
    let pages: BTreeSet<u32> = streams.iter().map(|s| s.page_bytes).collect();
    doc.notes.extend(pages.into_iter().map(|page_bytes| {
        let told = model.preset(page_bytes).described(page_bytes);
        Note::remark(format!("Reads of streams with pages of {page_bytes} bytes cost: {told}. --cost names others."))
    }));
    if streams.is_empty() {
        doc.remark(
            "Without streams: the model ran on the counts that the thread published, so hits, misses and no_query are \
             not predicted here. --traces DIR adds recorded streams, --image FILE those that our reader of UBIFS makes \
             of an image; with either, also other caches and sizes.",
        );
    }
    doc.remark(
        "B: no counts were published; those of C1 stand in, but the first page of a crossing read is served as often \
         as any read. How many pages it read in rm, and the CPU of a hit in the NAND core, were fitted to its rm.",
    );
}

/// Why find became slower.
fn answer(model: &Model) -> String {
    let costs = &model.costs;
    let ms = |cost: Cost| cost.total_ns() as f64 / 1e6;
    format!(
        "Why find became slower with a cache: filling a line reads the whole page, {:.2} ms, where a sub-page read \
         takes {:.2} ms, so a cache of pages pays only above a hit ratio of {:.1} %; find hits {:.1} % with one line \
         and {:.1} % with 61, rm 93 %.",
        ms(costs.page()),
        ms(costs.steps(1)),
        100.0 * costs.break_even_hit_ratio(),
        model.published_hits(Task::Find, 1),
        model.published_hits(Task::Find, 61),
    )
}

/// Rows of one task on the published counts; the model's real time of each configuration.
fn on_counts(doc: &mut Document, model: &Model, task: Task) -> Result<[f64; 4], Error> {
    let mut real = [0.0; 4];
    for (i, configuration) in Configuration::ALL.into_iter().enumerate() {
        let measured = model.published.seconds(task, configuration);
        let cost = model.cost_of_counts(task, configuration);
        real[i] = model.real_seconds(task, cost, &measured);
        let name = configuration.name();
        doc.row(task.name(), name, metric::REAL_SECONDS, real[i], measured.origin)?.published(measured.real_s)?;
        if let (Some(sys), Some(known)) = (model.sys_seconds(task, cost), measured.sys_s) {
            doc.row(task.name(), name, metric::SYS_SECONDS, sys, measured.origin)?.published(known)?;
        }
    }
    Ok(real)
}

/// Rows of one stream.
fn replayed(doc: &mut Document, model: &Model, stream: &TaskStream) -> Result<(), Error> {
    let (task, summary) = (stream.task, &stream.case.stream.summary);
    let (name, costs) = (stream.name(""), model.costs(stream.page_bytes));
    let mut real = [0.0; 4];
    let mut hits = [0.0; 4];
    for (i, configuration) in Configuration::ALL.into_iter().enumerate() {
        let (cache, lines) = match configuration {
            Configuration::A => ("none", 1),
            Configuration::B => ("nand-page", 1),
            Configuration::C1 => ("one-line", 1),
            Configuration::C61 => ("peb-hash", 61),
        };
        let variant = Variant::parse(cache, lines).expect("the name of a cache");
        let setup = Setup { variant, costs, pressure: &Pressure::default() };
        let outcome = replay(&stream.case.name, &stream.case.stream, &setup)?;
        doc.simulated_ios += outcome.counters.reads();
        let variant = configuration.name();
        let c = &outcome.counters;
        if summary.other_reads > 0 {
            let seconds = outcome.other.cost.seconds();
            doc.row(&name, variant, metric::HEADER_SECONDS, seconds, Origin::Predicted)?;
        }
        if summary.reads == 0 {
            continue;
        }
        if configuration != Configuration::A {
            hits[i] = percent(c.hits, c.misses);
            let known = match (task, configuration) {
                (Some(task), Configuration::C1) => Some(model.published.counts(task, 1)),
                (Some(task), Configuration::C61) => Some(model.published.counts(task, 61)),
                _ => None,
            };
            for (metric, value, known) in [
                (metric::HITS, c.hits, known.map(|k| k.hits)),
                (metric::MISSES, c.misses, known.map(|k| k.misses)),
                (metric::NO_QUERY, c.no_query, known.map(|k| k.no_query)),
            ] {
                let row = doc.row(&name, variant, metric, value as f64, Origin::Predicted)?;
                if let Some(known) = known {
                    row.published(known as f64)?;
                }
            }
        }
        let cost = outcome.totals.cost;
        doc.row(&name, variant, metric::READ_SECONDS, cost.seconds(), Origin::Predicted)?;
        if let Some(task) = task {
            let measured = model.published.seconds(task, configuration);
            real[i] = model.real_seconds(task, cost, &measured);
            doc.row(&name, variant, metric::REAL_SECONDS, real[i], Origin::Predicted)?.published(measured.real_s)?;
            if let (Some(sys), Some(known)) = (model.sys_seconds(task, cost), measured.sys_s) {
                doc.row(&name, variant, metric::SYS_SECONDS, sys, Origin::Predicted)?.published(known)?;
            }
        }
    }
    if let Some(task) = task {
        let mut note = order_note(model, task, &format!("on {}", stream.case.name), &real);
        if !in_order(&model.published, task, &real) {
            note.push_str(&why_not(model, task, stream, hits));
        }
        doc.remark(note);
    }
    Ok(())
}

/// Why `rm` on another tree may differ from the published one, if a figure does by more than [`FAR_OFF`].
fn far_off(stream: &TaskStream, rows: &[Row]) -> Option<String> {
    let errors = rows.iter().filter_map(|row| Some((row, row.error_percent.filter(|e| e.abs() > FAR_OFF)?)));
    let (row, error) = errors.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    (stream.task == Some(Task::Rm)).then(|| {
        format!(
            "{}: up to {error:+.0} % from what was published ({}, {}). rm reads the index of the file, and where that \
             lies depends on who wrote it. The kernel writes an index node right behind its children (post-order), so \
             that a page has both. mkfs.ubifs writes the index level by level, a parent far from its children. How \
             many nodes cross the border of two pages depends on where the index begins.",
            stream.name(""),
            row.metric.name(),
            row.variant,
        )
    })
}

/// What distinguishes a stream from what was measured, where it leads to another order. `hits` are those of the
/// configurations, in %.
fn why_not(model: &Model, task: Task, stream: &TaskStream, hits: [f64; 4]) -> String {
    let reads = stream.case.stream.records.iter().filter(|r| r.op == Op::Read);
    let blocks = reads.map(|r| r.peb).collect::<BTreeSet<_>>().len();
    let [.., one, most] = hits;
    let mut text = format!(
        " One line hits {one:.1} %, 61 lines {most:.1} %, in the thread {:.1} and {:.1} %; a cache pays above {:.1} %.",
        model.published_hits(task, 1),
        model.published_hits(task, 61),
        100.0 * model.costs.break_even_hit_ratio(),
    );
    if task == Task::Find {
        text.push_str(&format!(
            " What this find reads lies in {blocks} erase blocks. The kernel writes names and inodes through a journal \
             head of their own, into few blocks; mkfs.ubifs puts them between the data, over many. A tree written by \
             the one does not have the hits of a tree written by the other."
        ));
    }
    text
}

/// Whether the model puts the configurations of a task in the published order, ties aside.
fn in_order(published: &Published, task: Task, real: &[f64; 4]) -> bool {
    let known = Configuration::ALL.map(|c| published.seconds(task, c).real_s);
    let pairs = (0..4).flat_map(|i| (0..4).map(move |j| (i, j)));
    pairs.filter(|&(i, j)| known[i] < known[j] * (1.0 - TIE)).all(|(i, j)| real[i] < real[j])
}

fn order_note(model: &Model, task: Task, on: &str, real: &[f64; 4]) -> String {
    let published = &model.published;
    let order = |seconds: &[f64; 4]| {
        let mut list: Vec<usize> = (0..4).collect();
        list.sort_by(|&a, &b| seconds[a].total_cmp(&seconds[b]));
        let names: Vec<&str> = list.into_iter().map(|i| Configuration::ALL[i].short()).collect();
        names.join(", ")
    };
    let known = Configuration::ALL.map(|c| published.seconds(task, c).real_s);
    let verdict = if in_order(published, task, real) { "the same" } else { "NOT the same" };
    format!(
        "{}, {on}, the fastest first. Published: {}. Model: {}; {verdict} where published times differ by {:.0} % or \
         more.",
        task.name(),
        order(&known),
        order(real),
        100.0 * TIE
    )
}

fn break_even_chart(doc: &mut Document, model: &Model) -> Result<(), Error> {
    let Model { published, costs, .. } = model;
    let (page, part) = (costs.page().total_ns() as f64 / 1e6, costs.steps(1).total_ns() as f64 / 1e6);
    let mut chart = Chart::new("break_even", "When a cache of pages pays", ChartKind::Lines)
        .axes("hit ratio, %", "ms for each read")
        .caption("A miss reads a whole page; without a cache every read moves one ECC step. Hits cost nothing.");
    chart.series("cache of pages", SeriesStyle::Plain, [(0.0, page), (100.0, 0.0)])?;
    chart.series("no cache, sub-page reads", SeriesStyle::Plain, [(0.0, part), (100.0, part)])?;
    for task in Task::ALL {
        let point = |lines| {
            let c = published.counts(task, lines);
            let ratio = c.hits as f64 / (c.hits + c.misses) as f64;
            (100.0 * ratio, page * (1.0 - ratio))
        };
        chart.series(format!("{}, 1 and 61 lines", task.name()), SeriesStyle::Published, [point(1), point(61)])?;
    }
    doc.charts.push(chart);
    Ok(())
}

fn seconds_chart(doc: &mut Document, streams: &[TaskStream]) -> Result<(), Error> {
    // Names of cases are too long for labels below bars.
    let short = |case: &Case| match streams.iter().find(|s| **case == *s.name("")) {
        Some(stream) => format!("{}, {}", stream.work, stream.case.name),
        None => case.to_string(),
    };
    let mut chart = Chart::new("seconds", "Real time of the tasks", ChartKind::Bars).axes("task", "s");
    for configuration in Configuration::ALL {
        let name = configuration.name();
        let rows: Vec<_> = doc.rows.iter().filter(|r| r.variant == name && r.metric == metric::REAL_SECONDS).collect();
        let known: Vec<_> = rows.iter().filter_map(|r| Some((short(&r.case), r.published?))).collect();
        let model: Vec<_> = rows.iter().map(|r| (short(&r.case), r.simulated)).collect();
        chart.series(format!("{name}, published"), SeriesStyle::Published, known)?;
        chart.series(format!("{name}, model"), SeriesStyle::Simulated, model)?;
    }
    doc.charts.push(chart);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::CacheCase;
    use super::*;
    use readpath_results::Input;
    use readpath_ubi::stream::{Record, Stream, Summary};

    #[test]
    fn every_cell_of_find_and_rm_is_within_five_percent() {
        let doc = reproduce(&[], None).unwrap().document;
        for row in doc.rows.iter().filter(|r| [metric::REAL_SECONDS, metric::SYS_SECONDS].contains(&r.metric)) {
            let error = row.error_percent.unwrap();
            assert!(error.abs() <= 5.0, "{} {} {}: {error:.1} %", row.case, row.variant, row.metric.name());
        }
        assert_eq!(doc.rows.len(), 4 + 8 + 8);
    }

    #[test]
    fn a_tree_that_makes_rm_differ_is_explained() {
        // As many reads as the published rm has, each of a page of its own.
        let reads = Published::builtin().reads(Task::Rm);
        let record =
            |i: u64| Record { op: Op::Read, peb: (i / 100) as u32, offset: (i % 100) as u32 * 16384, bytes: 188 };
        let summary = Summary { reads, ..Summary::default() };
        let stream = Stream { records: (0..reads).map(record).collect(), summary };
        let case = CacheCase { name: "i".into(), stream, notes: Vec::new(), input: Input::of_text("i", "") };
        let explained = |like| {
            let stream = TaskStream::own("work", Some(like), 16384, case.clone());
            let notes = reproduce(&[stream], None).unwrap().document.notes;
            notes.into_iter().map(|n| n.text).find(|n| n.contains("mkfs.ubifs writes the index level by level"))
        };
        let note = explained(Task::Rm).expect("an explanation");
        assert!(note.starts_with("work, own reader: i: up to +1556 % from what was published (misses, C61"), "{note}");
        assert_eq!(explained(Task::Find), None);
    }

    #[test]
    fn the_order_of_configurations_is_right() {
        let published = Published::builtin();
        let doc = reproduce(&[], None).unwrap().document;
        assert_eq!(doc.notes.iter().filter(|n| n.text.contains("; the same where")).count(), 3, "{:#?}", doc.notes);
        // On the published counts the order equals that of the table, near ties included.
        for task in Task::ALL {
            let rows = |c: Configuration| {
                let of =
                    |r: &&Row| *r.case == *task.name() && r.variant == c.name() && r.metric == metric::REAL_SECONDS;
                let row = doc.rows.iter().find(of).expect("a row of each configuration");
                (row.published.expect("a published time"), row.simulated)
            };
            let times = Configuration::ALL.map(rows);
            for (known, model) in times {
                assert!(times.iter().all(|t| known >= t.0 || model < t.1), "{task:?}: {times:?}");
            }
        }
        // A wrong order is found.
        assert!(!in_order(&published, Task::Find, &[25.0, 24.0, 23.0, 22.0]));
    }
}
