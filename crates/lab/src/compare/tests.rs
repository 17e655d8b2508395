// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparisons of made-up figures.

use super::statistics::t_95;
use super::{CompareTexts, Seeds, Trial, document};
use readpath_results::metric::definitions;
use readpath_results::{Chart, ChartKind, Document, Finding, Metric, Note, Origin, Row, SeriesStyle, X};
use serde_json::json;

/// A metric of the registry, or one of these tests.
fn metric(name: &str) -> Metric {
    let known = definitions().find(|d| d.name == name).map_or("us", |d| d.unit);
    Metric::new(name.to_owned(), known)
}

/// A run that showed these metrics.
fn trial(seed: u64, variant: &str, figures: &[(&str, f64)]) -> Trial {
    let mut document = Document::new("e", "t");
    for (name, value) in figures {
        document.row("case", variant, metric(name), *value, Origin::Predicted).expect("finite");
    }
    document.configuration = json!({ "of": { variant: seed }, "same": 1 });
    document.notes = vec![Note::remark("a note")];
    document.simulated_ios = 10;
    Trial { seed, variant: variant.to_owned(), document, over_time: Vec::new(), incomplete: None }
}

fn compared(trials: &[Trial], variants: &[&str], count: u32, drawn: Option<&str>) -> Document {
    let texts = CompareTexts { title: "t".into(), description: "d".into(), drawn: drawn.map(String::from) };
    let variants: Vec<String> = variants.iter().map(|v| (*v).to_owned()).collect();
    let seeds = Seeds::new(3, count).expect("seeds");
    let doc = document(&texts, trials, &variants, &variants[0], seeds).expect("a document");
    doc.validate().expect("valid");
    doc
}

/// Two variants whose figure is `a` and `b` under seeds from 3 on.
fn two(a: &[f64], b: &[f64]) -> Document {
    let seeds = 3u64..;
    let pairs = a.iter().zip(b).zip(seeds);
    let trials: Vec<Trial> =
        pairs.flat_map(|((a, b), s)| [trial(s, "A", &[("m", *a)]), trial(s, "B", &[("m", *b)])]).collect();
    compared(&trials, &["A", "B"], a.len() as u32, Some("this and that"))
}

fn notes(doc: &Document) -> Vec<String> {
    doc.notes.iter().map(Note::to_string).collect()
}

fn row<'d>(doc: &'d Document, variant: &str, metric: &str) -> &'d Row {
    doc.rows.iter().find(|r| r.variant == variant && r.metric.name() == metric).expect("a row")
}

/// Few variants are series; many are positions on the axis.
#[test]
fn many_variants_are_an_axis() {
    for count in [8, 9] {
        let names: Vec<String> = (0..count).map(|i| format!("v{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let trials: Vec<Trial> =
            names.iter().zip(1u32..).map(|(v, n)| trial(3, v, &[("map_hit_ratio", n.into())])).collect();
        let doc = compared(&trials, &names, 1, Some("this and that"));
        let mean = doc.charts.iter().find(|chart| chart.id == "mean_map_hit_ratio").expect("a chart");
        let differences = doc.charts.iter().find(|chart| chart.id == "differences_1").expect("differences");
        assert_eq!(
            (differences.x_label.as_str(), differences.series.len()),
            if count == 8 { ("metric", 7) } else { ("variant", 1) }
        );
        assert_eq!((mean.x_label.as_str(), mean.series.len()), ("variant", 1), "one case needs no legend");
        let points: Vec<(X, f64)> = mean.series[0].points.iter().map(|p| (p.x.clone(), p.y)).collect();
        assert_eq!((points.len(), &points[0], &points[7]), (count, &(X::from("v0"), 1.0), &(X::from("v7"), 8.0)));
    }
}

/// Variants are lines of one chart, and seeds but the first are left out.
#[test]
fn the_first_seed_is_shown_over_time() {
    let with = |seed, variant: &str| {
        let mut chart = Chart::new("throughput_over_time: case", "t", ChartKind::Lines).caption("What.");
        chart.series(variant, SeriesStyle::Plain, [(1.0, seed as f64)]).expect("a point");
        Trial { over_time: vec![chart], ..trial(seed, variant, &[("m", 1.0)]) }
    };
    let trials = [with(3, "A"), with(3, "B"), with(4, "A"), with(4, "B")];
    let doc = compared(&trials, &["A", "B"], 2, Some("this and that"));
    let shown: Vec<&Chart> = doc.charts.iter().filter(|chart| chart.id.contains("over_time")).collect();
    let [chart] = shown[..] else { panic!("one chart: {shown:?}") };
    let lines: Vec<(&str, f64)> = chart.series.iter().map(|s| (&*s.name, s.points[0].y)).collect();
    assert_eq!(lines, [("A", 3.0), ("B", 3.0)]);
    assert_eq!(chart.caption, "What. Seed 3.");
}

#[test]
fn pairs_are_compared_and_not_means() {
    // The seeds differ by hundreds, the variants by 5 on average.
    let doc = two(&[100.0, 900.0, 500.0, 300.0], &[104.0, 906.0, 505.0, 305.0]);
    let b = row(&doc, "B", "m");
    let difference = b.difference.as_ref().expect("a difference");
    // Differences 4, 6, 5, 5: mean 5, standard error sqrt(2/3)/2.
    let half = t_95(3, 1) * (2.0f64 / 3.0).sqrt() / 2.0;
    let interval = difference.interval.expect("an interval");
    assert_eq!((difference.mean, difference.finding), (5.0, Finding::Shown));
    assert!((interval.half() - half).abs() < 1e-12, "{interval:?}");
    assert_eq!(difference.percent, Some(100.0 * 5.0 / 450.0));
    let of_mean = b.sample.as_ref().and_then(|s| s.interval).expect("an interval");
    assert!(of_mean.half() > 100.0 * interval.half(), "the means alone would have shown nothing");
    assert_eq!((b.simulated, doc.seed, doc.simulated_ios), (455.0, 3, 80));
}

#[test]
fn every_finding() {
    let finding = |a: &[f64], b: &[f64]| row(&two(a, b), "B", "m").difference.as_ref().expect("one").finding;
    assert_eq!(finding(&[1.0, 2.0, 3.0], &[1.5, 1.8, 3.1]), Finding::NotShown);
    assert_eq!(finding(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), Finding::Identical);
    assert_eq!(finding(&[1.0, 2.0, 3.0], &[3.0, 4.0, 5.0]), Finding::Exact);
    assert_eq!(finding(&[1.0], &[2.0]), Finding::OneSeed);
    assert_eq!(finding(&[2.0], &[2.0]), Finding::Identical);
    // What only rounding tells apart is not noise: 0.1 + 0.2 is not 0.3.
    assert_eq!(finding(&[0.1, 0.2, 0.3], &[0.3, 0.4, 0.1 + 0.2 + 0.2]), Finding::Exact);
    // A small difference of one seed is not taken for rounding.
    assert_eq!(finding(&[1e9, 1e9], &[1e9, 1e9 + 1.0]), Finding::NotShown);
    let fixed = [trial(3, "A", &[("m", 1.0)]), trial(3, "B", &[("m", 2.0)])];
    let doc = compared(&fixed, &["A", "B"], 1, None);
    assert_eq!(row(&doc, "B", "m").difference.as_ref().map(|d| d.finding), Some(Finding::Exact));
    assert!(notes(&doc)[0].starts_with("One run of each variant, with seed 3: nothing"), "{:?}", notes(&doc));
}

#[test]
fn notes_say_what_is_covered() {
    let doc = two(&[1.0, 2.0, 3.0], &[1.5, 1.8, 3.1]);
    assert!(notes(&doc)[0].contains("3 seeds (3 to 5)") && notes(&doc)[0].contains("2 degrees of freedom, 4.303"));
    assert!(notes(&doc)[0].contains("cover this and that."), "{:?}", notes(&doc));
    assert!(notes(&doc)[1].contains("variant − 'A' for each seed"), "{:?}", notes(&doc));
    assert_eq!(notes(&doc).iter().filter(|n| *n == "a note").count(), 1);
    let same = two(&[1.0, 1.0], &[2.0, 2.0]);
    assert!(notes(&same)[0].starts_with("All 2 seeds (3 to 4) gave the same figures"), "{:?}", notes(&same));
    let identical = two(&[1.0, 2.0], &[1.0, 2.0]);
    assert!(notes(&identical).iter().any(|n| n.starts_with("'B' and 'A' are identical")), "{:?}", notes(&identical));
    let mut trials = [trial(3, "A", &[("m", 1.0)]), trial(3, "B", &[("m", 2.0)])];
    trials[1].incomplete = Some("B ended early".into());
    let doc = compared(&trials, &["A", "B"], 1, None);
    assert_eq!(notes(&doc)[0], "INCOMPLETE: seed 3: B ended early");
}

#[test]
fn what_some_seeds_lack_is_left_out_and_said() {
    let trials = [
        trial(3, "A", &[("m", 1.0), ("n", 5.0)]),
        trial(3, "B", &[("m", 2.0), ("n", 6.0), ("own", 1.0)]),
        trial(4, "A", &[("m", 1.5)]),
        trial(4, "B", &[("m", 2.0), ("n", 7.0), ("own", 2.0)]),
    ];
    let doc = compared(&trials, &["A", "B"], 2, Some("x"));
    let names: Vec<_> = doc.rows.iter().map(|r| (r.variant.as_str(), r.metric.name())).collect();
    assert_eq!(names, [("A", "m"), ("B", "m"), ("B", "n"), ("B", "own")]);
    assert!(row(&doc, "B", "n").difference.is_none() && row(&doc, "B", "own").difference.is_none());
    assert!(notes(&doc).contains(&"case, A: n is left out, as runs with 1 of 2 seeds do not have it".to_owned()));
    let configuration = json!({ "of": { "A": 3, "B": 3 }, "same": 1,
        "compare": { "variants": ["A", "B"], "base": "A", "first_seed": 3, "seeds": 2 } });
    assert_eq!(doc.configuration, configuration);
}

#[test]
fn charts_have_error_bars_where_there_are_intervals() {
    let figures = |x: f64| [("read_latency_mean", x), ("map_hit_ratio", 50.0)];
    let trials = [
        trial(3, "A", &figures(1.0)),
        trial(3, "B", &figures(2.0)),
        trial(4, "A", &figures(1.5)),
        trial(4, "B", &figures(2.6)),
    ];
    let doc = compared(&trials, &["A", "B"], 2, Some("x"));
    let ids: Vec<&str> = doc.charts.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["mean_read_latency_mean", "differences_1", "mean_map_hit_ratio"]);
    let points = &doc.charts[1].series[0].points;
    assert_eq!((doc.charts[1].series.len(), points.len()), (1, 2), "the base has no difference from itself");
    assert!(points[0].interval.is_some_and(|i| i.contains(points[0].y)) && points[1].interval.is_none());
    assert!(doc.charts[0].series.iter().all(|s| s.points[0].interval.is_some()));
}

/// 30 variants that differ from the base by noise only: one in twenty has an interval without zero, the verdict none.
#[test]
fn the_best_of_many_equal_variants_is_no_gain() {
    let mut draws = readpath_kit::Prng::new(1);
    let names: Vec<String> = (0..31).map(|i| format!("v{i}")).collect();
    let mut noise = |seed, name: &String| trial(seed, name, &[("read_latency_mean", 100.0 + draws.unit_f64())]);
    let trials: Vec<Trial> = (3..8)
        .flat_map(|seed| names.iter().map(move |name| (seed, name)))
        .map(|(seed, name)| noise(seed, name))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let doc = compared(&trials, &names, 5, Some("noise"));
    let shown = doc.rows.iter().filter(|r| r.difference.as_ref().is_some_and(|d| d.finding == Finding::Shown));
    assert!(shown.count() > 0);
    let [verdict] = &doc.verdict[..] else { panic!("{:?}", doc.verdict) };
    assert!(verdict.text.starts_with("No difference beyond chance among 31 variants: "), "{verdict}");
}

/// A verdict on exact differences has a price and no doubt.
#[test]
fn the_verdict_has_the_price_of_the_rows() {
    let of = |variant, us, mib: u32| {
        let figures = [("read_latency_mean", us), ("host_memory", f64::from(mib << 20))];
        trial(3, variant, &figures)
    };
    let doc = compared(&[of("A", 2.0, 1), of("B", 1.0, 17)], &["A", "B"], 1, None);
    let text =
        "'B' makes reads 2.00 × as fast as 'A' (1.00 us in the mean instead of 2.00), for 16 MiB of host memory.";
    assert_eq!(doc.verdict[0].text, text);
}

#[test]
fn seeds_end_with_64_bits() {
    assert_eq!(Seeds::new(u64::MAX - 1, 2).expect("two").all().count(), 2);
    assert_eq!(Seeds::new(u64::MAX - 1, 3), None);
    assert_eq!(Seeds::new(1, 0), None);
}
