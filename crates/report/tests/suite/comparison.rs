// SPDX-License-Identifier: MIT OR Apache-2.0
//! Means, intervals and differences in the table and on the page, and error bars in figures.

use readpath_report::{TableSpec, comparison, html, svg};
use readpath_results::{
    Chart, ChartKind, Difference, Document, Finding, Interval, Metric, Origin, Sample, SeriesStyle,
};

fn interval(low: f64, high: f64) -> Option<Interval> {
    Some(Interval { low, high })
}

fn sample() -> Document {
    let mut doc = Document::new("compare", "t");
    for (metric, base, other, finding) in [
        ("read_latency_mean", [400.0, 404.0], [204.0, 206.0], Finding::Shown),
        ("map_loads", [10.0, 14.0], [9.0, 14.0], Finding::NotShown),
        ("host_memory", [7.0, 7.0], [7.0, 7.0], Finding::Identical),
        ("iops", [10.0, 14.0], [20.0, 24.0], Finding::Shown),
    ] {
        for (variant, values) in [("A & co", base), ("B", other)] {
            let mean = (values[0] + values[1]) / 2.0;
            let spread = (finding != Finding::Identical).then_some(Interval { low: mean - 1.5, high: mean + 1.5 });
            let row = doc.row("the case", variant, Metric::new(metric, "us"), mean, Origin::Predicted).unwrap();
            row.sample = Some(Sample { values: values.to_vec(), interval: spread });
            if variant == "B" {
                let difference = mean - (base[0] + base[1]) / 2.0;
                let about = |x: f64| spread.map(|_| Interval { low: x - 0.75, high: x + 0.75 });
                row.difference = Some(Difference {
                    base: "A & co".into(),
                    mean: difference,
                    interval: about(difference),
                    percent: Some(difference / 4.0),
                    percent_interval: about(difference / 4.0),
                    finding,
                });
            }
        }
    }
    doc.validate().unwrap();
    doc
}

#[test]
fn table_for_a_terminal() {
    let [loads, mean, none] = ["map_loads", "read_latency_mean", "none"].map(|name| Metric::new(name, "us"));
    let spec = TableSpec::new().column(&loads, "loads").column(&mean, "mean").column(&none, "none");
    let shown = comparison::table(&sample(), &spec);
    let lines: Vec<Vec<&str>> = shown.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["Metric", "Variant", "mean", "±", "difference", "±", "%", "±"]);
    assert_eq!(lines[2], ["loads,", "us", "A", "&", "co", "12.0", "1.5"]);
    assert_eq!(lines[3], ["B", "11.5", "1.5", "-0.50", "0.75", "-0.13", "0.75", "no", "difference", "shown"]);
    assert_eq!(lines[5], ["B", "205.0", "1.5", "-197.00", "0.75", "-49.25", "0.75"]);
    assert_eq!(lines.len(), 6, "other metrics are not asked for: {shown}");
    let all = comparison::table(&sample(), &TableSpec::new());
    assert!(all.contains("Host memory, us") && all.contains("identical"), "{all}");
    let last: Vec<&str> = all.lines().last().expect("lines").split_whitespace().collect();
    assert_eq!(last, ["B", "22.0", "1.5", "+10.00", "0.75", "+2.50", "0.75"]);
    assert!(all.lines().all(|l| l.trim_end() == l));
    assert_eq!(comparison::table(&Document::new("e", "t"), &spec), "no rows\n");
}

#[test]
fn page_has_differences_and_findings() {
    let page = html::page(&sample()).unwrap();
    for part in [
        "<h2>Comparison</h2>",
        "the case: means over the seeds, and differences from A &amp; co",
        "<td class=\"sim\">205.0</td><td>1.5</td><td>−197.00</td><td>0.75</td><td>−49.25</td><td>0.75</td>",
        "<td class=\"name\">no difference shown</td>",
        "<td class=\"name\">identical</td>",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("as a multiple of"), "differences stand already");
}

/// Ends of the error bars of a figure, in its own units: top and bottom.
fn bars(figure: &str) -> Vec<(f64, f64)> {
    let data = figure.split("class=\"error\" d=\"").skip(1).map(|rest| rest.split_once('"').expect("data").0);
    let ends = data.map(|d| {
        // M left low H right M x low V high M left high H right
        let (from, to) = d.split_once('V').expect("a line upward");
        let low = from.rsplit(' ').next().expect("its start");
        (to.split_once('M').expect("its end").0.parse().expect("a number"), low.parse().expect("a number"))
    });
    ends.collect()
}

#[test]
fn error_bars_are_drawn_to_scale_and_told() {
    for kind in [ChartKind::Bars, ChartKind::Lines] {
        let mut chart = Chart::new("c", "t", kind).axes("x", "y");
        let points = [("a", 50.0, interval(40.0, 60.0)), ("b", 50.0, interval(45.0, 140.0)), ("c", 80.0, None)];
        chart.series_with_bars("s", SeriesStyle::Plain, points).unwrap();
        let figure = svg::standalone(&chart).unwrap();
        let ends = bars(&figure);
        assert_eq!(ends.len(), 2, "{kind:?}");
        let lengths: Vec<f64> = ends.iter().map(|(top, bottom)| bottom - top).collect();
        assert!(lengths[0] > 10.0 && (lengths[1] / lengths[0] - 4.75).abs() < 0.05, "{kind:?}: {lengths:?}");
        assert!(ends[1].0 > 0.0, "{kind:?}: the axis reaches to the end of the bar");
        assert!(figure.contains("a: 50 (40 to 60)") && figure.contains("Error bars show intervals."), "{figure}");
    }
    let mut plain = Chart::new("c", "t", ChartKind::Bars);
    plain.series("s", SeriesStyle::Plain, [("a", 1.0)]).unwrap();
    let figure = svg::standalone(&plain).unwrap();
    assert!(bars(&figure).is_empty() && !figure.contains("Error bars"));
    // Values outside of a logarithmic axis.
    let mut log = Chart::new("c", "t", ChartKind::Bars).y_log();
    log.series_with_bars("s", SeriesStyle::Plain, [("a", 1.0, interval(-1.0, 3.0))]).unwrap();
    assert_eq!(bars(&svg::standalone(&log).unwrap()).len(), 1);
}
