// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a page is easy to read: many rows, many variants, text about missing parts, axes.

use readpath_report::{html, svg};
use readpath_results::metric::{Figure, MAP_LOADS, Requests};
use readpath_results::{Chart, ChartKind, Document, Origin, Row, Sample, SeriesStyle};

fn drawn(chart: &Chart) -> String {
    svg::standalone(chart).expect("a drawing")
}

/// The labels of the y axis.
fn ticks(svg: &str) -> Vec<&str> {
    let texts = svg.split("<text class=\"tick\"").skip(1).filter(|text| text.contains("text-anchor=\"end\""));
    texts.map(|text| text.split_once('>').expect("a tag").1.split_once('<').expect("an end").0).collect()
}

#[test]
fn words_about_published_values_are_only_where_there_are_some() {
    let mut doc = Document::new("e", "t");
    doc.row("c", "v", MAP_LOADS, 1.0, Origin::Predicted).expect("a row");
    let page = html::page(&doc).expect("a page");
    assert!(!page.contains("proves nothing") && !page.contains("is evidence") && !page.contains("timed on"));
    assert!(!page.contains("simulated I/Os</span>"), "nothing was simulated");
    doc.simulated_ios = 7;
    doc.row("c", "w", MAP_LOADS, 1.0, Origin::Predicted).expect("a row").published(1.0).expect("a number");
    doc.row("c", "x", MAP_LOADS, 1.0, Origin::Measured).expect("a row");
    let page = html::page(&doc).expect("a page");
    assert!(!page.contains("proves nothing") && page.contains("is evidence") && page.contains("timed on"));
    assert!(page.contains("7 simulated I/Os</span>"));
}

/// A comparison of thirty variants begins with the figures that matter, not with hundreds of rows.
#[test]
fn comparisons_of_many_variants_are_folded() {
    let document = |variants: usize| {
        let mut doc = Document::new("compare", "t");
        for figure in [Figure::Throughput, Figure::LatencyP50, Figure::LatencyMean] {
            for variant in 0..variants {
                let metric = Requests::Read.of(figure);
                let mut row = Row::new("c", format!("v{variant}"), metric, 1.5, Origin::Predicted).expect("a row");
                row.sample = Some(Sample { values: vec![1.0, 2.0], interval: None });
                doc.rows.push(row);
            }
        }
        html::page(&doc).expect("a page")
    };
    let before_fold = |page: &str| {
        let section = page.split_once("<h2>Comparison</h2>").expect("a section").1;
        section.split_once("<details>").map(|(open, _)| open.matches("<tr>").count())
    };
    // Nine lines are all shown; of 45 those of the two most important metrics, each with headings; of 90 none.
    let few = document(3);
    assert!(
        !few.split_once("<h2>Comparison</h2>")
            .expect("a section")
            .1
            .split_once("</section>")
            .expect("an end")
            .0
            .contains("<details>")
    );
    let more = document(15);
    assert_eq!(before_fold(&more), Some(1 + 30));
    assert!(more.contains("All 45 means and differences"));
    assert_eq!(more.matches(">Read throughput, MiB/s<").count(), 2, "in the same words in both");
    assert_eq!(before_fold(&document(30)), Some(0));
}

#[test]
fn axes_do_not_make_much_of_little() {
    let chart = |values: [f64; 3]| {
        let mut chart = Chart::new("c", "t", ChartKind::Lines).axes("x", "y");
        chart.series("s", SeriesStyle::Plain, [1.0, 2.0, 3.0].into_iter().zip(values)).expect("points");
        chart
    };
    assert!(ticks(&drawn(&chart([1.806, 1.811, 1.816]))).contains(&"0.0"), "half a percent");
    assert!(!ticks(&drawn(&chart([1.7, 1.8, 1.9]))).contains(&"0.0"), "ten percent are to be seen");
}

/// Long names are cut where they are equal, so that the figure tells them apart.
#[test]
fn labels_are_not_cut_where_they_differ() {
    let names = ["HPB off, device.map_cache.size_kib=64", "HPB off, device.map_cache.size_kib=1024"];
    let mut bars = Chart::new("c", "t", ChartKind::Bars).axes("variant", "y");
    bars.series("s", SeriesStyle::Plain, names.map(|name| (name, 1.0))).expect("points");
    let mut lines = Chart::new("c", "t", ChartKind::Lines).axes("x", "y");
    for name in names {
        lines.series(name, SeriesStyle::Plain, [(1.0, 2.0), (2.0, 9.0)]).expect("points");
    }
    for chart in [bars, lines] {
        let svg = drawn(&chart);
        assert!(svg.contains(">…64<") && svg.contains(">…1024<"), "{svg}");
    }
}
