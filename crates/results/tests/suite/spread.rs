// SPDX-License-Identifier: MIT OR Apache-2.0
//! Means over seeds and differences from a base: how they are written, and what is refused.

use readpath_results::{
    Chart, ChartKind, Difference, Document, Error, Finding, Interval, Metric, Origin, Sample, SeriesStyle,
};

fn interval(low: f64, high: f64) -> Option<Interval> {
    Some(Interval { low, high })
}

fn sample() -> Document {
    let mut doc = Document::new("compare", "t");
    doc.row("c", "A", Metric::new("m", "us"), 2.0, Origin::Predicted).unwrap().sample =
        Some(Sample { values: vec![1.0, 2.0, 3.0], interval: interval(-0.5, 4.5) });
    let row = doc.row("c", "B", Metric::new("m", "us"), 3.0, Origin::Predicted).unwrap();
    row.sample = Some(Sample { values: vec![2.0, 3.0, 4.0], interval: interval(0.5, 5.5) });
    row.difference = Some(Difference {
        base: "A".into(),
        mean: 1.0,
        interval: interval(0.9, 1.1),
        percent: Some(50.0),
        percent_interval: interval(45.0, 55.0),
        finding: Finding::Shown,
    });
    let mut chart = Chart::new("id", "t", ChartKind::Bars);
    chart.series_with_bars("A", SeriesStyle::Plain, [("x", 2.0, interval(1.0, 3.0)), ("y", 1.0, None)]).unwrap();
    doc.charts.push(chart);
    doc
}

#[test]
fn they_come_back_as_they_were_and_are_described() {
    let text = sample().to_json_pretty().unwrap();
    assert_eq!(Document::from_json(&text).unwrap(), sample());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let row = &value["rows"][1];
    assert_eq!(row["difference"]["finding"], "shown");
    assert!(value["rows"][0].get("difference").is_none(), "what is not there is not written");
    assert!(value["charts"][0]["series"][0]["points"][1].get("interval").is_none());
    let page = include_str!("../../../../docs/formats/results.md");
    let objects = [row, &row["sample"], &row["sample"]["interval"], &row["difference"]];
    let objects = objects.into_iter().chain([&value["charts"][0]["series"][0]["points"][0]]);
    for key in objects.flat_map(|o| o.as_object().unwrap().keys()) {
        assert!(page.contains(&format!("| `{key}` |")), "docs/formats/results.md says nothing of `{key}`");
    }
    for finding in [Finding::Identical, Finding::Exact, Finding::Shown, Finding::NotShown, Finding::OneSeed] {
        let word = serde_json::to_value(finding).unwrap();
        assert!(page.contains(&format!("`{}`", word.as_str().unwrap())), "{word}");
    }
}

#[test]
fn columns_of_intervals_have_the_low_end_first() {
    let csv = sample().to_csv().unwrap();
    let line = csv.lines().find(|line| line.starts_with("c,B,")).unwrap();
    assert!(line.ends_with(",0.5,5.5,2 3 4,A,1,0.9,1.1,50,45,55,shown"), "{line}");
}

#[test]
fn what_fits_together_is_taken() {
    let ends = Interval { low: 1.0, high: 2.0 };
    assert!(ends.contains(1.0) && ends.contains(2.0) && !ends.contains(0.99) && !ends.contains(2.01));
    for (finding, mean, interval, word) in [
        (Finding::Identical, 0.0, None, "identical"),
        (Finding::Exact, 1.0, None, "exact"),
        (Finding::Shown, 1.0, interval(0.5, 1.0), "shown"),
        (Finding::NotShown, 1.0, interval(-1.0, 3.0), "not_shown"),
        (Finding::OneSeed, 1.0, None, "one_seed"),
    ] {
        let mut doc = sample();
        let difference =
            Difference { base: "A".into(), mean, interval, percent: None, percent_interval: None, finding };
        doc.rows[1].difference = Some(difference);
        let csv = doc.to_csv().unwrap_or_else(|e| panic!("{word}: {e}"));
        assert!(csv.ends_with(&format!(",{word}\n")), "{word}: {csv}");
    }
}

#[test]
fn figures_are_checked_when_they_are_read() {
    let mut doc = sample();
    doc.charts[0].series[0].points[0].interval = interval(2.5, 3.0);
    let text = serde_json::to_string(&doc).unwrap();
    assert!(matches!(Document::from_json(&text), Err(Error::WrongInterval { .. })));
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let refused = |change: fn(&mut Document)| {
        let mut doc = sample();
        change(&mut doc);
        doc.to_json_pretty().unwrap_err().to_string()
    };
    fn difference(doc: &mut Document) -> &mut Difference {
        doc.rows[1].difference.as_mut().unwrap()
    }
    for (change, says) in [
        ((|d| d.rows[0].sample.as_mut().unwrap().values.clear()) as fn(&mut Document), "not the mean"),
        (|d| d.rows[0].sample.as_mut().unwrap().values[0] = 1.1, "not the mean"),
        (|d| d.rows[0].sample.as_mut().unwrap().values[0] = f64::NAN, "a value of case `c`, variant `A`"),
        (|d| d.rows[0].sample.as_mut().unwrap().interval = interval(2.1, 3.0), "does not contain the value"),
        (|d| difference(d).interval = interval(1.1, 1.2), "does not contain the value"),
        (|d| difference(d).percent_interval = interval(1.0, 2.0), "does not contain the value"),
        (|d| difference(d).percent = None, "that value is missing"),
        (|d| difference(d).finding = Finding::NotShown, "finding does not follow"),
        (|d| difference(d).finding = Finding::Identical, "finding does not follow"),
        (|d| difference(d).interval = interval(-1.0, 3.0), "finding does not follow"),
        (|d| difference(d).interval = None, "finding does not follow"),
        (|d| difference(d).mean = f64::INFINITY, "holds finite numbers only"),
    ] {
        let message = refused(change);
        assert!(message.contains(says), "{says}: {message}");
    }
    let mut chart = Chart::new("id", "t", ChartKind::Bars);
    let outside = chart.series_with_bars("A", SeriesStyle::Plain, [("x", 2.0, interval(2.5, 3.0))]);
    assert!(matches!(outside, Err(Error::WrongInterval { .. })));
    assert!(chart.series.is_empty());
}
