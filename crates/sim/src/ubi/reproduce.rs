// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of 2016 beside the cost model, on the counts that were published and on recorded streams.

use super::CacheCase;
use super::published::{Configuration, Measured, Published, Task};
use readpath_results::{Chart, ChartKind, Document, Error, Origin, SeriesStyle};
use readpath_ubi::cost::{Cost, CostModel};
use readpath_ubi::preset::CostPreset;
use readpath_ubi::stream::{Outcome, Pressure, Setup, run};
use readpath_ubi::variant::Variant;
use serde_json::json;

/// Configurations whose published times differ by less than this share are not put in order: the table's own noise is
/// larger (sys time of rm rises with more lines, although fewer pages are read).
const TIE: f64 = 0.03;

/// Reads of a task as the thread counted them, priced. No counts of B were published, so those of C1 are taken: both keep
/// one page. But the NAND core looks up each page of a crossing read, so the first of them is served as often as any read.
fn cost_of_counts(published: &Published, costs: &CostModel, task: Task, configuration: Configuration) -> Cost {
    let one = published.counts(task, 1);
    let part = costs.steps(published.steps(task));
    // A read that crosses pages touches two.
    let mut sum = Cost::default();
    match configuration {
        Configuration::A => sum += part * (one.hits + one.misses + 2 * one.no_query),
        Configuration::B => {
            let served = one.no_query * one.hits / (one.hits + one.misses);
            sum += costs.page() * (one.misses + 2 * one.no_query - served);
        }
        Configuration::C1 | Configuration::C61 => {
            let c = if configuration == Configuration::C1 { one } else { published.counts(task, 61) };
            sum += costs.page() * c.misses;
            sum += part * (2 * c.no_query);
        }
    }
    sum
}

/// Seconds of CPU that the model gives: reads and what the task takes beside them. None for boot, where the two cannot be
/// told apart.
fn sys_seconds(preset: &CostPreset, task: Task, cost: Cost) -> Option<f64> {
    let base_ms = match task {
        Task::Find => preset.find_ms,
        Task::Rm => preset.rm_ms,
        Task::Boot => return None,
    };
    Some(f64::from(base_ms) / 1e3 + cost.cpu_ns as f64 / 1e9)
}

fn real_seconds(preset: &CostPreset, task: Task, cost: Cost, published: &Measured) -> f64 {
    match sys_seconds(preset, task, cost) {
        // User time is not modelled; it is a few hundredths of the whole.
        Some(sys) => sys + cost.wait_ns as f64 / 1e9 + published.user_s.unwrap_or(0.0),
        None => f64::from(preset.boot_ms) / 1e3 + cost.seconds(),
    }
}

/// Which task a recorded stream is of, by its name: `…_find`, `…_boot`, `…_rm1g`.
pub fn task_of(name: &str) -> Option<Task> {
    let stem = name.split('.').next().unwrap_or(name);
    match stem.rsplit('_').next()? {
        "find" => Some(Task::Find),
        "boot" => Some(Task::Boot),
        "rm1g" => Some(Task::Rm),
        _ => None,
    }
}

/// Whether a recorded stream is of attaching, by its name: `…_attach`.
pub fn is_attach(name: &str) -> bool {
    name.split('.').next().unwrap_or(name).ends_with("_attach")
}

/// The document of the experiment. `recorded` are streams, of any task; the page size is that of the cost preset.
///
/// # Errors
/// A figure that is not finite.
pub fn reproduce(recorded: &[CacheCase]) -> Result<Document, Error> {
    let published = Published::builtin();
    let preset = CostPreset::builtin(&published.cost).expect("the experiment names a built-in preset");
    let costs = preset.model(preset.page_bytes);
    let mut doc = Document::new(&published.name, &published.title);
    doc.description = published.description.clone();
    doc.citations = published.citations.clone();
    doc.configuration = json!({
        "cost": { "preset": preset.name, "page_bytes": preset.page_bytes, "ecc_step_bytes": preset.ecc_step_bytes,
            "wait_us": preset.wait_us, "cpu_us": preset.cpu_us, "find_ms": preset.find_ms, "rm_ms": preset.rm_ms,
            "boot_ms": preset.boot_ms },
        "recorded": recorded.iter().map(|c| &c.name).collect::<Vec<_>>(),
    });
    doc.notes.push(answer(&published, &costs));
    for task in Task::ALL {
        let real = on_counts(&mut doc, &published, &preset, &costs, task)?;
        doc.notes.push(order_note(&published, task, "on the published counts", &real));
    }
    for case in recorded {
        replayed(&mut doc, &published, &preset, &costs, case)?;
        doc.notes.extend(case.notes.iter().cloned());
        doc.read_from([&case.input]);
    }
    if recorded.iter().any(|case| case.stream.summary.other_reads > 0) {
        doc.notes.push(
            "Headers and the volume table are read below ubi_eba_read_leb, so a cache in UBI changes nothing about attaching; \
             without sub-page reads (B) each header costs a page."
                .to_owned(),
        );
    }
    if recorded.is_empty() {
        doc.notes.push(
            "Without recorded streams: the model ran on the counts that the thread published, so hits, misses and no_query \
             are not predicted here. --traces DIR adds recorded streams."
                .to_owned(),
        );
    }
    doc.notes.push(
        "B: no counts were published; those of C1 stand in, and the first page of a crossing read is served as often as any \
         read."
            .to_owned(),
    );
    break_even_chart(&mut doc, &published, &costs)?;
    seconds_chart(&mut doc)?;
    Ok(doc)
}

/// Why find became slower.
fn answer(published: &Published, costs: &CostModel) -> String {
    let ratio = |lines| {
        let c = published.counts(Task::Find, lines);
        100.0 * c.hits as f64 / (c.hits + c.misses) as f64
    };
    let ms = |cost: Cost| cost.total_ns() as f64 / 1e6;
    format!(
        "Why find became slower with a cache: filling a line reads the whole page, {:.2} ms, where a sub-page read takes \
         {:.2} ms, so a cache of pages pays only above a hit ratio of {:.1} %; find hits {:.1} % with one line and {:.1} % \
         with 61, rm 93 %.",
        ms(costs.page()),
        ms(costs.steps(1)),
        100.0 * costs.break_even_hit_ratio(),
        ratio(1),
        ratio(61),
    )
}

/// Rows of one task on the published counts; the model's real time of each configuration.
fn on_counts(
    doc: &mut Document,
    published: &Published,
    preset: &CostPreset,
    costs: &CostModel,
    task: Task,
) -> Result<[f64; 4], Error> {
    let mut real = [0.0; 4];
    for (i, configuration) in Configuration::ALL.into_iter().enumerate() {
        let measured = published.seconds(task, configuration);
        let cost = cost_of_counts(published, costs, task, configuration);
        real[i] = real_seconds(preset, task, cost, &measured);
        let name = configuration.name();
        doc.row(task.name(), name, "real_seconds", "s", real[i], measured.origin)?.published(measured.real_s)?;
        if let (Some(sys), Some(known)) = (sys_seconds(preset, task, cost), measured.sys_s) {
            doc.row(task.name(), name, "sys_seconds", "s", sys, measured.origin)?.published(known)?;
        }
    }
    Ok(real)
}

/// Rows of one recorded stream.
fn replayed(
    doc: &mut Document,
    published: &Published,
    preset: &CostPreset,
    costs: &CostModel,
    case: &CacheCase,
) -> Result<(), Error> {
    let task = task_of(&case.name);
    let name = match task {
        Some(task) => format!("{}, recorded: {}", task.name(), case.name),
        None => format!("recorded: {}", case.name),
    };
    let mut real = [0.0; 4];
    for (i, configuration) in Configuration::ALL.into_iter().enumerate() {
        let (cache, lines) = match configuration {
            Configuration::A => ("none", 1),
            Configuration::B => ("nand-page", 1),
            Configuration::C1 => ("one-line", 1),
            Configuration::C61 => ("peb-hash", 61),
        };
        let variant = Variant::parse(cache, lines).expect("the name of a cache");
        let setup = Setup { variant, costs: *costs, pressure: &Pressure::default() };
        let outcome: Outcome = run(&case.stream.records, &setup);
        doc.simulated_ios += outcome.counters.reads();
        let variant = configuration.name();
        let c = &outcome.counters;
        if case.stream.summary.other_reads > 0 {
            let seconds = outcome.other.cost.seconds();
            doc.row(&name, variant, "header_seconds", "s", seconds, Origin::Predicted)?;
        }
        if c.reads() == 0 {
            continue;
        }
        if configuration != Configuration::A {
            let known = match (task, configuration) {
                (Some(task), Configuration::C1) => Some(published.counts(task, 1)),
                (Some(task), Configuration::C61) => Some(published.counts(task, 61)),
                _ => None,
            };
            for (metric, value, known) in [
                ("hits", c.hits, known.map(|k| k.hits)),
                ("misses", c.misses, known.map(|k| k.misses)),
                ("no_query", c.no_query, known.map(|k| k.no_query)),
            ] {
                let row = doc.row(&name, variant, metric, "", value as f64, Origin::Predicted)?;
                if let Some(known) = known {
                    row.published(known as f64)?;
                }
            }
        }
        let cost = outcome.totals.cost;
        doc.row(&name, variant, "read_seconds", "s", cost.seconds(), Origin::Predicted)?;
        if let Some(task) = task {
            let measured = published.seconds(task, configuration);
            real[i] = real_seconds(preset, task, cost, &measured);
            doc.row(&name, variant, "real_seconds", "s", real[i], Origin::Predicted)?.published(measured.real_s)?;
            if let (Some(sys), Some(known)) = (sys_seconds(preset, task, cost), measured.sys_s) {
                doc.row(&name, variant, "sys_seconds", "s", sys, Origin::Predicted)?.published(known)?;
            }
        }
    }
    if let Some(task) = task {
        doc.notes.push(order_note(published, task, &format!("on {}", case.name), &real));
    }
    Ok(())
}

/// Whether the model puts the configurations of a task in the published order, ties aside.
fn in_order(published: &Published, task: Task, real: &[f64; 4]) -> bool {
    let known = Configuration::ALL.map(|c| published.seconds(task, c).real_s);
    let pairs = (0..4).flat_map(|i| (0..4).map(move |j| (i, j)));
    pairs.filter(|&(i, j)| known[i] < known[j] * (1.0 - TIE)).all(|(i, j)| real[i] < real[j])
}

fn order_note(published: &Published, task: Task, on: &str, real: &[f64; 4]) -> String {
    let order = |seconds: &[f64; 4]| {
        let mut list: Vec<usize> = (0..4).collect();
        list.sort_by(|&a, &b| seconds[a].total_cmp(&seconds[b]));
        let names: Vec<String> = list.into_iter().map(|i| format!("{:?}", Configuration::ALL[i])).collect();
        names.join(" < ")
    };
    let known = Configuration::ALL.map(|c| published.seconds(task, c).real_s);
    let verdict = if in_order(published, task, real) { "the same" } else { "NOT the same" };
    format!(
        "{}, {on}: published order {}, model {}; {verdict} where published times differ by {:.0} % or more.",
        task.name(),
        order(&known),
        order(real),
        100.0 * TIE
    )
}

fn break_even_chart(doc: &mut Document, published: &Published, costs: &CostModel) -> Result<(), Error> {
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

fn seconds_chart(doc: &mut Document) -> Result<(), Error> {
    let mut chart = Chart::new("seconds", "Real time of the tasks", ChartKind::Bars).axes("task", "s");
    for configuration in Configuration::ALL {
        let name = configuration.name();
        let rows: Vec<_> = doc.rows.iter().filter(|r| r.variant == name && r.metric == "real_seconds").collect();
        let known: Vec<_> = rows.iter().filter_map(|r| Some((r.case.clone(), r.published?))).collect();
        let model: Vec<_> = rows.iter().map(|r| (r.case.clone(), r.simulated)).collect();
        chart.series(format!("{name}, published"), SeriesStyle::Published, known)?;
        chart.series(format!("{name}, model"), SeriesStyle::Simulated, model)?;
    }
    doc.charts.push(chart);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_of_find_and_rm_is_within_five_percent() {
        let doc = reproduce(&[]).unwrap();
        for row in doc.rows.iter().filter(|r| r.metric == "real_seconds" || r.metric == "sys_seconds") {
            let error = row.error_percent.unwrap();
            // The system time of B in rm is not explained: sys of B is 21 % above that of C1 with nearly the same reads.
            if row.metric == "sys_seconds" && row.case == "rm" && row.variant.starts_with('B') {
                assert!((-20.0..-10.0).contains(&error), "{error}");
            } else {
                assert!(error.abs() <= 5.0, "{} {} {}: {error:.1} %", row.case, row.variant, row.metric);
            }
        }
        assert_eq!(doc.rows.len(), 4 + 8 + 8);
    }

    #[test]
    fn the_order_of_configurations_is_right() {
        let published = Published::builtin();
        let doc = reproduce(&[]).unwrap();
        assert_eq!(doc.notes.iter().filter(|n| n.contains("; the same where")).count(), 3, "{:#?}", doc.notes);
        // A wrong order is found.
        assert!(!in_order(&published, Task::Find, &[25.0, 24.0, 23.0, 22.0]));
    }

    #[test]
    fn streams_are_known_by_their_names() {
        assert_eq!(task_of("m1_find.csv.gz"), Some(Task::Find));
        assert_eq!(task_of("a_b_rm1g"), Some(Task::Rm));
        assert_eq!(task_of("m1_boot.csv"), Some(Task::Boot));
        assert_eq!(task_of("m1_findls.csv.gz"), None);
        assert!(is_attach("m1_attach.csv.gz") && !is_attach("m1_mount.csv.gz"));
    }
}
