// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result document against its checked-in sample, and everything that it must refuse.

use readpath_results::metric::{self, Figure, Requests, SECTIONS};
use readpath_results::{
    Case, Chart, ChartKind, Document, Error, Input, Metric, Note, NoteKind, Origin, Part, Process, Row, SCHEMA,
    SeriesStyle, X,
};
use std::fmt::Write;

const GOLDEN: &str = include_str!("../golden/sample.json");

const CASES: [&str; 5] = ["1 GB", "4 GB", "8 GB", "16 GB", "32 GB"];
const PUBLISHED: [[f64; 5]; 2] = [[300.87, 179.35, 162.52, 156.26, 153.25], [294.80, 293.51, 294.85, 293.45, 277.40]];
const SIMULATED: [[f64; 5]; 2] = [[300.92, 177.04, 163.91, 157.73, 154.62], [300.41, 298.66, 297.93, 297.02, 288.35]];
const HIT_RATIO: [[f64; 5]; 2] = [[1.0, 0.2512, 0.1263, 0.0631, 0.0314], [1.0, 0.9996, 0.9992, 0.9985, 0.9491]];
const MAP_LOADS: [[f64; 5]; 2] = [[0.0, 196_301.0, 229_034.0, 245_602.0, 253_911.0], [0.0, 64.0, 128.0, 256.0, 512.0]];
const P50: [[f64; 5]; 2] = [[206.9, 352.4, 380.1, 395.6, 403.7], [207.3, 208.5, 209.0, 209.6, 214.2]];
const P99: [[f64; 5]; 2] = [[288.3, 571.0, 618.2, 1034.0, 1120.0], [288.9, 291.6, 292.7, 294.1, 446.8]];
const MEMORY: [[f64; 5]; 2] = [[0.0; 5], [1_048_576.0, 4_194_304.0, 8_388_608.0, 16_777_216.0, 33_554_432.0]];

/// The document that the reader of the documentation sees: a table of the literature with invented simulated values.
fn sample() -> Result<Document, Error> {
    let mut doc = Document::new("hpb_read_range", "Random read throughput over the address range, HPB off and on");
    doc.description =
        "4 KiB random reads from 16 threads over the first 1 to 32 GB of a 64 GB device. Without HPB the \
                       device loads map pages from flash as soon as the range outgrows its map cache; with HPB the \
                       host sends the entry along with the read.\n\nThe simulated values of this sample are invented: \
                       it shows the format, not a result."
            .to_owned();
    for (i, case) in CASES.into_iter().enumerate() {
        for (v, variant) in ["HPB off", "HPB dcm"].into_iter().enumerate() {
            let origin = if v == 0 && i < 2 { Origin::Fit } else { Origin::Predicted };
            doc.row(case, variant, Requests::RandomRead.of(Figure::Throughput), SIMULATED[v][i], origin)?
                .published(PUBLISHED[v][i])?;
            for (metric, unit, value) in [
                ("map_hit_ratio", "", HIT_RATIO[v][i]),
                ("map_loads", "", MAP_LOADS[v][i]),
                ("latency_p50", "µs", P50[v][i]),
                ("latency_p99", "µs", P99[v][i]),
                ("host_memory", "bytes", MEMORY[v][i]),
            ] {
                doc.row(case, variant, Metric::new(metric, unit), value, Origin::Measured)?;
            }
        }
    }
    let with = |values: [f64; 5]| CASES.into_iter().zip(values);
    let mut bars = Chart::new("throughput", "Random read throughput", ChartKind::Bars)
        .axes("address range", "throughput, MiB/s")
        .caption("With HPB the throughput no longer depends on the range, until host memory runs out at 32 GB.");
    for (v, variant) in ["HPB off", "HPB dcm"].into_iter().enumerate() {
        bars.series(format!("{variant}, published"), SeriesStyle::Published, with(PUBLISHED[v]))?;
        bars.series(format!("{variant}, simulated"), SeriesStyle::Simulated, with(SIMULATED[v]))?;
    }
    let mut hits = Chart::new("map_hits", "Hit ratio of the map", ChartKind::Lines)
        .axes("address range, GB", "hit ratio")
        .caption("Share of reads whose physical address was known without a flash read.");
    for (v, variant) in ["HPB off", "HPB dcm"].into_iter().enumerate() {
        hits.series(variant, SeriesStyle::Plain, [1.0, 4.0, 8.0, 16.0, 32.0].into_iter().zip(HIT_RATIO[v]))?;
    }
    let mut cdf = Chart::new("latency_16gb", "Read latency at 16 GB", ChartKind::Step)
        .axes("read latency, µs", "share of reads")
        .x_log()
        .caption(
            "Distribution of the latency of single reads. Without HPB nearly every read waits for a map page first.",
        );
    let share = [0.0, 0.01, 0.04, 0.1, 0.2, 0.31, 0.42, 0.5, 0.58, 0.67, 0.76, 0.85, 0.92, 0.96, 0.99, 0.999, 1.0];
    let off = [
        121.0, 164.0, 202.0, 251.0, 312.0, 344.0, 371.0, 395.6, 418.0, 437.0, 462.0, 498.0, 561.0, 702.0, 1034.0,
        2110.0, 2930.0,
    ];
    let on = [
        119.0, 138.0, 153.0, 168.0, 183.0, 192.0, 201.0, 209.6, 217.0, 226.0, 236.0, 248.0, 261.0, 273.0, 294.1, 655.0,
        1190.0,
    ];
    cdf.series("HPB off", SeriesStyle::Plain, off.into_iter().zip(share))?;
    cdf.series("HPB dcm", SeriesStyle::Plain, on.into_iter().zip(share))?;
    doc.charts = vec![bars, hits, cdf];
    doc.simulated_ios = 2_621_440;
    doc.seed = 42;
    doc.configuration = serde_json::json!({
        "device": { "preset": "ufs-64gb", "capacity_gib": 64, "channels": 4, "dies_per_channel": 2,
                    "map_cache_bytes": 1_048_576, "page_bytes": 16_384, "read_us": 50.5 },
        "host": { "hpb": [false, true], "mode": "device control", "memory_limit_bytes": null },
        "workload": { "pattern": "randread", "block_bytes": 4096, "threads": 16, "ios": 262_144 },
    });
    doc.notes = vec![Note::remark("GB is 10⁹ bytes, MiB is 2²⁰ bytes, as in the source.")];
    doc.program = "readpath 0.1.0".to_owned();
    doc.inputs.push(Input::of_text("randread.fio", "[randread]\nrw=randread\n"));
    doc.citations =
        vec!["Commit message of the Host Performance Booster patches for Linux, linux-kernel list, 2020.".to_owned()];
    doc.process = Process { cpu_seconds: 1.75, peak_rss_bytes: 71_303_168, ..Process::default() };
    Ok(doc)
}

/// A reader of a document without heat maps need not know of them.
#[test]
fn heat_maps_say_what_their_rows_are() {
    let mut doc = Document::new("e", "t");
    let mut map = Chart::new("map", "t", ChartKind::Heat).axes("x", "us").rows("depth");
    map.series("1", SeriesStyle::Plain, [(1.0, 2.0)]).expect("a point");
    doc.charts = vec![map, Chart::new("lines", "t", ChartKind::Lines)];
    let text = doc.to_json_pretty().expect("text");
    assert!(text.contains("\"kind\": \"heat\"") && text.matches("series_label").count() == 1, "{text}");
    assert_eq!(Document::from_json(&text).expect("a document"), doc);
}

#[test]
fn sample_is_the_checked_in_text() {
    let text = sample().unwrap().to_json_pretty().unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/sample.json"), &text).unwrap();
    }
    assert!(text == GOLDEN, "the sample has changed; if that is meant, run the test with UPDATE_GOLDEN=1 and look");
}

#[test]
fn golden_round_trips() {
    let read = Document::from_json(GOLDEN).unwrap();
    assert_eq!(read, sample().unwrap());
    assert_eq!(read.to_json_pretty().unwrap(), GOLDEN);
}

/// A document of the version before: notes are strings, and rows do not say where parts of cases begin.
#[test]
fn the_former_version_is_read() {
    let former = include_str!("../golden/version-1.json");
    let read = Document::from_json(former).expect("a document of version 1");
    let sample = sample().expect("a sample");
    assert_eq!((&read.schema, read.rows.len()), (&sample.schema, sample.rows.len()));
    let shown = |doc: &Document| doc.notes.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!((shown(&read), &read.rows, &read.charts), (shown(&sample), &sample.rows, &sample.charts));
    assert!(read.to_json_pretty().expect("JSON").contains(SCHEMA));
}

/// A part of a case is one again when a document is read.
#[test]
fn parts_of_cases_are_kept() {
    let mut doc = sample().expect("a sample");
    let whole = Case::from("a: b");
    let jobs = whole.jobs("c: d");
    for case in [&whole, &jobs, &jobs.with(Part::Unit, "logical unit 1")] {
        doc.row(case, "v", Metric::new("m", ""), 1.0, Origin::Predicted).expect("a row");
    }
    let read = Document::from_json(&doc.to_json_pretty().expect("JSON")).expect("a document");
    let cases: Vec<&Case> = read.rows.iter().rev().take(3).map(|row| &row.case).collect();
    assert_eq!(cases.iter().map(|c| c.name()).collect::<Vec<_>>(), ["a: b"; 3]);
    assert_eq!(cases.iter().map(|c| c.jobs_name()).collect::<Vec<_>>(), [None, Some("c: d"), None]);
    assert_eq!(cases.iter().map(|c| c.is_whole()).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn every_field_is_described() {
    let page = include_str!("../../../../docs/formats/results.md");
    let value: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
    let first = |v: &serde_json::Value, key: &str| v[key][0].clone();
    let chart = first(&value, "charts");
    let series = first(&chart, "series");
    let points = first(&series, "points");
    for object in [&value, &first(&value, "rows"), &chart, &series, &points, &first(&value, "notes"), &value["process"]]
    {
        for key in object.as_object().unwrap().keys() {
            assert!(page.contains(&format!("| `{key}` |")), "docs/formats/results.md says nothing of `{key}`");
        }
    }
    assert!(page.contains(SCHEMA));
}

/// The rows of a section of the registry as the page has them.
fn table_of_metrics(title: &str) -> String {
    let mut table = "| Metric | Unit | Better | Meaning |\n|---|---|---|---|\n".to_owned();
    for d in SECTIONS.iter().filter(|(t, _)| *t == title).flat_map(|(_, definitions)| *definitions) {
        let better = match d.better {
            metric::Better::More => "more",
            metric::Better::Less => "less",
            metric::Better::Neither => "",
        };
        writeln!(table, "| `{}` | {} | {better} | {} |", d.name, d.unit, d.what).expect("memory");
    }
    table
}

/// Each section of the registry stands in the page between two comments, and is written there with UPDATE_GOLDEN.
#[test]
fn the_page_has_the_metrics_of_the_registry() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/results.md");
    let mut page = std::fs::read_to_string(path).unwrap();
    let mut same = true;
    for (title, _) in SECTIONS {
        let (begin, end) = (format!("<!-- metrics: {title} -->\n"), "<!-- end of metrics -->");
        let from = page.find(&begin).unwrap_or_else(|| panic!("{path} has no {begin}")) + begin.len();
        let to = from + page[from..].find(end).expect("an end");
        let table = table_of_metrics(title);
        same &= page[from..to] == table;
        page.replace_range(from..to, &table);
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, page).unwrap();
    } else {
        assert!(same, "metrics have changed; run the test with UPDATE_GOLDEN=1 and look at docs/formats/results.md");
    }
}

#[test]
fn order_of_fields_is_fixed() {
    let keys = "schema experiment title description rows charts simulated_ios seed configuration notes citations \
                program inputs process";
    let place = |key| GOLDEN.find(&format!("\n  \"{key}\": ")).unwrap();
    let places: Vec<usize> = keys.split(' ').map(place).collect();
    assert!(places.is_sorted());
}

#[test]
fn error_percent_is_computed() {
    let mut row = Row::new("c", "v", Metric::new("m", "u"), 110.0, Origin::Fit).unwrap();
    assert_eq!(row.published(100.0).unwrap().error_percent, Some(10.0));
    assert_eq!(row.published(-100.0).unwrap().error_percent, Some(210.0));
    assert_eq!(row.published(0.0).unwrap().error_percent, None);
    let mut low = Row::new("c", "v", Metric::new("m", "u"), 90.0, Origin::Fit).unwrap();
    assert_eq!(low.published(100.0).unwrap().error_percent, Some(-10.0));
}

#[test]
fn numbers_must_be_finite() {
    let mut doc = Document::new("e", "t");
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(
            doc.row("c", "v", Metric::new("m", "u"), bad, Origin::Measured),
            Err(Error::NotFinite { .. })
        ));
        assert!(doc.rows.is_empty());
        let mut row = Row::new("c", "v", Metric::new("m", "u"), 1.0, Origin::Fit).unwrap();
        assert!(row.published(bad).is_err());
        assert_eq!(row.published, None);
        let mut chart = Chart::new("id", "t", ChartKind::Lines);
        assert!(chart.series("s", SeriesStyle::Plain, [(bad, 1.0)]).is_err());
        assert!(chart.series("s", SeriesStyle::Plain, [("x", bad)]).is_err());
        assert!(chart.series.is_empty());
    }
    let mut row = Row::new("c", "v", Metric::new("m", "u"), 1e300, Origin::Fit).unwrap();
    let error = row.published(1e-300).unwrap_err().to_string();
    assert_eq!(
        error,
        "error_percent of case `c`, variant `v`, metric `m` is inf: a result document holds finite numbers only"
    );
    doc.process.cpu_seconds = f64::NAN;
    assert!(doc.to_json_pretty().is_err());
}

#[test]
fn other_schemas_are_refused_with_a_clear_message() {
    let newer = GOLDEN.replace("readpath-results/2", "readpath-results/3");
    assert_eq!(
        Document::from_json(&newer).unwrap_err().to_string(),
        "the document has schema `readpath-results/3`, but this version of Readpath reads `readpath-results/2`; use \
         the version that wrote it"
    );
    // Even if the rest of the document is not understood.
    assert!(matches!(Document::from_json(r#"{"schema":"readpath-results/3","r":[]}"#), Err(Error::UnknownSchema(_))));
    assert!(matches!(Document::from_json("{}"), Err(Error::NoSchema)));
    assert!(matches!(Document::from_json("{"), Err(Error::Json(_))));
    assert!(matches!(Document::from_json(r#"{"schema":"readpath-results/1"}"#), Err(Error::Json(_))));
}

#[test]
fn inconsistent_documents_are_refused() {
    let mut twice = sample().unwrap();
    twice.rows.push(twice.rows[0].clone());
    assert!(matches!(twice.to_json_pretty(), Err(Error::DuplicateRow { .. })));
    let mut charts = sample().unwrap();
    charts.charts.push(charts.charts[0].clone());
    assert!(matches!(charts.validate(), Err(Error::DuplicateChart(id)) if id == "throughput"));
    let mut wrong = sample().unwrap();
    wrong.rows[0].error_percent = Some(50.0);
    assert!(matches!(wrong.validate(), Err(Error::WrongErrorPercent { .. })));
    wrong.rows[0].error_percent = None;
    assert!(wrong.validate().is_err());
    // Other writers may round; half a percent is no rounding.
    let right = sample().unwrap().rows[0].error_percent.expect("a published value");
    for (off, good) in [(1e-8, true), (-1e-8, true), (0.005, false), (-0.5, false)] {
        wrong.rows[0].error_percent = Some(right + off);
        assert_eq!(wrong.validate().is_ok(), good, "{right} and {off}");
    }
}

#[test]
fn what_is_absorbed_counts() {
    let mut whole = Document::new("e", "t");
    whole.simulated_ios = 5;
    whole.absorb(sample().unwrap(), "a_");
    whole.absorb(Document { rows: Vec::new(), ..sample().unwrap() }, "b_");
    assert_eq!(whole.simulated_ios, 5 + 2 * 2_621_440);
    assert_eq!((whole.rows.len(), whole.notes.len(), whole.inputs.len()), (sample().unwrap().rows.len(), 1, 1));
    let ids: Vec<&str> = whole.charts.iter().map(|chart| chart.id.as_str()).collect();
    assert_eq!(ids[..2], ["a_throughput", "a_map_hits"]);
    assert_eq!(ids[3..5], ["b_throughput", "b_map_hits"]);
    whole.validate().expect("a document");
}

#[test]
fn a_row_is_found_by_all_of_its_names() {
    let mut doc = Document::new("e", "t");
    let (reads, writes) = (Metric::new("reads", ""), Metric::new("writes", ""));
    let mut value = 0.0;
    for case in ["a", "b"] {
        for variant in ["A", "B"] {
            for metric in [&reads, &writes] {
                doc.row(case, variant, metric.clone(), value, Origin::Predicted).unwrap();
                value += 1.0;
            }
        }
    }
    let found = |case, variant, metric| doc.find(case, variant, metric).map(|row| row.simulated);
    assert_eq!(
        (found("b", "A", &writes), found("a", "B", &reads), found("a", "C", &reads)),
        (Some(5.0), Some(2.0), None)
    );
}

#[test]
fn origins_and_notes_have_their_words() {
    for (origin, word) in [(Origin::Fit, "fit"), (Origin::Predicted, "predicted"), (Origin::Measured, "measured")] {
        let mut doc = Document::new("e", "t");
        doc.row("c", "", Metric::new("m", "us"), 1.0, origin).unwrap();
        assert!(doc.to_csv().unwrap().contains(&format!("c,,m,us,1,,,{word},")), "{word}");
    }
    assert_eq!(Note::new(NoteKind::Advice, "16 MiB").to_string(), "RECOMMENDED: 16 MiB");
    assert_eq!(Note::new(NoteKind::LittleGain, "16 MiB").to_string(), "16 MiB");
}

#[test]
fn unknown_fields_are_passed_over() {
    let more = GOLDEN.replacen("\"experiment\"", "\"added_later\": 1,\n  \"experiment\"", 1);
    assert_eq!(Document::from_json(&more).unwrap(), sample().unwrap());
}

#[test]
fn process_stays_out_of_comparisons() {
    let a = sample().unwrap();
    let mut b = a.clone();
    b.process = Process { command: vec!["readpath".to_owned()], cpu_seconds: 99.0, peak_rss_bytes: 1 };
    assert_ne!(a, b);
    assert_eq!(a.without_process(), b.without_process());
}

#[test]
fn numbers_and_labels_keep_their_kind_and_every_bit() {
    let mut doc = Document::new("e", "t");
    let mut chart = Chart::new("c", "t", ChartKind::Lines);
    let xs = [0.1 + 0.2, 1e-310, 123_456_789.123_456_79, -0.0, f64::MAX];
    chart.series("numbers", SeriesStyle::Plain, xs.map(|x| (x, x))).unwrap();
    chart.series("labels", SeriesStyle::Plain, [("1", 1.0)]).unwrap();
    doc.charts.push(chart);
    doc.seed = u64::MAX;
    let read = Document::from_json(&doc.to_json_pretty().unwrap()).unwrap();
    assert_eq!(read.seed, u64::MAX);
    for (point, x) in read.charts[0].series[0].points.iter().zip(xs) {
        assert_eq!(point.y.to_bits(), x.to_bits());
        assert_eq!(point.x, X::Number(x));
    }
    assert_eq!(read.charts[0].series[1].points[0].x, X::Label("1".to_owned()));
}
