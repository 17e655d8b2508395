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
        assert!(svg.contains(">HPB off, 64<") && svg.contains(">HPB off, 1024<"), "{svg}");
    }
}

/// The verdict and the figure that shows it come first; tables come behind all figures, and ratios are folded.
#[test]
fn the_answer_comes_before_the_tables() {
    let mut doc = Document::new("e", "t");
    doc.verdict = vec![readpath_results::Note::remark("B is twice as fast.")];
    doc.description = "What was asked.".to_owned();
    for (variant, value) in [("A", 2.0), ("B", 1.0)] {
        doc.row("c", variant, Requests::Read.of(Figure::LatencyMean), value, Origin::Predicted).expect("a row");
    }
    for id in ["first", "second"] {
        let mut chart = Chart::new(id, id, ChartKind::Bars).axes("x", "y");
        chart.series("s", SeriesStyle::Plain, [("a", 1.0)]).expect("a point");
        doc.charts.push(chart);
    }
    let page = html::page(&doc).expect("a page");
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    let order =
        ["B is twice", "id=\"figure1\"", "What was asked.", "id=\"figure2\"", "<h2>Results</h2>", "multiples of A"];
    let places = order.map(place);
    assert!(places.is_sorted(), "{places:?}");
    let folded = page.split_once("<summary>As multiples of A</summary>").expect("folded").1;
    assert!(folded.contains("as a multiple of A") && !page[..place("<h2>Results")].contains("as a multiple"));
}

/// Curves say what they are and what they show where the pointer rests on them.
#[test]
fn curves_have_tips() {
    let mut chart = Chart::new("cdf", "t", ChartKind::Step).axes("us", "%");
    chart.series("HPB off", SeriesStyle::Plain, (0..300).map(|i| (f64::from(i), f64::from(i) / 3.0))).expect("points");
    let svg = drawn(&chart);
    assert!(svg.contains("<title>HPB off</title></path>"), "{svg}");
    assert!(svg.contains("<title>HPB off, 25: 8.333</title></circle>"), "{svg}");
    assert!((10..=12).contains(&svg.matches("class=\"tip\"").count()));
}

/// Columns of a map over time end at odd moments; its axis has round ones.
#[test]
fn maps_of_many_columns_have_round_ticks() {
    let map = |count: usize, step: f64| {
        let mut chart = Chart::new("map", "t", ChartKind::Heat).axes("s", "%").rows("GiB");
        let points = (1..=count).map(|i| (step * i as f64, 100.0 + i as f64));
        chart.series("0 to 1", SeriesStyle::Plain, points).expect("points");
        drawn(&chart)
    };
    let svg = map(32, 0.4096);
    assert!(svg.contains(">2</text>") && svg.contains(">12</text>") && !svg.contains(">3.2768<"), "{svg}");
    // Column 5 ends at 2.048: the tick of 2 is a little left of its middle.
    let at = |text: &str, tag: &str| -> f64 {
        let before = svg.split_once(text).expect("a label").0;
        before
            .rsplit_once(&format!("{tag}=\""))
            .expect("a place")
            .1
            .split_once('"')
            .expect("an end")
            .0
            .parse()
            .expect("x")
    };
    let cell = |text: &str| at(&format!("\"><title>0 to 1, {text}: "), "x");
    let middle = (cell("2.048") + cell("2.4576")) / 2.0;
    let tick = at(">2</text>", "x");
    assert!((middle - tick - (2.048 - 2.0) / 0.4096 * (cell("2.4576") - cell("2.048"))).abs() < 0.2, "{tick} {middle}");
    assert!(map(4, 0.4096).contains(">0.8192</text>"), "few columns have their own numbers");
}

/// Sizes that double have their own ticks, and none has its place below them.
#[test]
fn sizes_that_double_are_ticks() {
    let mut chart = Chart::new("c", "t", ChartKind::Lines).axes("MiB", "us").x_log();
    chart.series("s", SeriesStyle::Plain, [0.0, 1.0, 2.0, 64.0].map(|x| (x, 100.0 - x))).expect("points");
    let svg = drawn(&chart);
    for tick in ["0", "1", "2", "64"] {
        assert!(svg.contains(&format!("text-anchor=\"middle\" font-size=\"11.5\">{tick}</text>")), "{tick}: {svg}");
    }
    assert!(!svg.contains("lie on the edge"));
}

/// Ten bars of a group have ten colours.
#[test]
fn colours_do_not_come_twice_among_twelve() {
    let mut chart = Chart::new("c", "t", ChartKind::Bars).axes("x", "y");
    for i in 0..12 {
        chart.series(format!("s{i}"), SeriesStyle::Plain, [("a", 1.0)]).expect("a point");
    }
    let svg = drawn(&chart);
    let colours: std::collections::BTreeSet<&str> =
        svg.split("class=\"bar ").skip(1).map(|rest| rest.split_once('"').expect("an end").0).collect();
    assert_eq!(colours.len(), 12, "{colours:?}");
    assert!(colours.iter().all(|k| svg.contains(&format!(".chart .{k}{{"))), "each has a colour in the sheet");
}

/// The leftmost of the slanted labels has all of its letters, as the axis begins further to the right.
#[test]
fn the_first_slanted_label_is_whole() {
    let mut chart = Chart::new("c", "t", ChartKind::Bars).axes("variant", "us");
    let names = ["no host memory"].into_iter().map(str::to_owned).chain((1..=9).map(|i| format!("{} MiB", 1 << i)));
    chart.series("s", SeriesStyle::Plain, names.map(|name| (name, 1.0))).expect("points");
    let svg = drawn(&chart);
    assert!(svg.contains(">no host memory</text>"), "{svg}");
}
