// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every output has the whole document, renders its text harmless, and draws odd charts too.

use readpath_report::{Error, TableSpec, html, svg, terminal};
use readpath_results::metric::{Figure, HITS, MAP_LOADS, Requests, SECONDS};
use readpath_results::{Chart, ChartKind, Document, Metric, Note, Origin, SeriesStyle};
use sha2::{Digest, Sha256};

const SAMPLE: &str = include_str!("../../../results/tests/golden/sample.json");

fn sample() -> Document {
    Document::from_json(SAMPLE).unwrap()
}

fn hostile() -> Document {
    const BAD: &str = "</title></style></pre><script>alert(1)</script>\" onload='x' & \u{1b}[31m|`*_\n|---|\u{202e}]]>";
    let mut doc = Document::new(BAD, BAD);
    doc.description = format!("{BAD}\n\n{BAD}");
    doc.row(BAD, BAD, Metric::new(BAD, BAD), 1.5, Origin::Predicted).unwrap().published(1.0).unwrap();
    doc.row(BAD, "", Metric::new(BAD, BAD), 1.5, Origin::Fit).unwrap();
    for kind in [ChartKind::Bars, ChartKind::Lines, ChartKind::Step, ChartKind::Heat] {
        let mut chart = Chart::new(format!("{BAD}{kind:?}"), BAD, kind).axes(BAD, BAD).rows(BAD).caption(BAD);
        chart.series(BAD, SeriesStyle::Published, [(BAD, 1.0), ("b", 2.0)]).unwrap();
        chart.series(BAD, SeriesStyle::Simulated, (0..50).map(|i| (format!("{BAD}{i}"), 1.0))).unwrap();
        doc.charts.push(chart);
    }
    // The same text as key and value of the configuration, spelled as JSON.
    let quoted = "\"</title></style></pre><script>alert(1)</script>\\\" onload='x' & \\u001b[31m|`*_\\n|---|]]>\"";
    let text = SAMPLE.replacen("\"preset\"", quoted, 1).replacen("\"ufs-64gb\"", quoted, 1);
    doc.configuration = Document::from_json(&text).unwrap().configuration;
    doc.notes = vec![Note::remark(BAD)];
    doc.citations = vec![BAD.to_owned(), "https://example.org/paper.pdf".to_owned()];
    doc
}

/// Name and attributes of an element.
type Tag = (String, Vec<(String, String)>);

/// Walks through markup: every tag is closed in order, every attribute quoted, every ampersand an entity, no id used
/// twice. Returns the tags with their attributes, and the text between them.
fn well_formed(markup: &str) -> (Vec<Tag>, String) {
    let mut rest = markup.strip_prefix("<!DOCTYPE html>\n").unwrap_or(markup);
    let (mut open, mut tags, mut text) = (Vec::new(), Vec::new(), String::new());
    let mut ids = std::collections::HashSet::new();
    let entities = |text: &str| {
        for part in text.split('&').skip(1) {
            let name = part.split_once(';').expect("an entity ends with a semicolon").0;
            assert!(["amp", "lt", "gt", "quot", "#39"].contains(&name), "&{name};");
        }
    };
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        assert!(open.last().is_some_and(|t| t == "style") || !before.contains('>'), "stray > in {before:?}");
        entities(before);
        text.push_str(before);
        let end = tag.find('>').expect("a tag ends");
        let inside = &tag[1..end];
        rest = &tag[end + 1..];
        if let Some(name) = inside.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closes what is open");
            continue;
        }
        let (inside, empty) = inside.strip_suffix('/').map_or((inside, false), |i| (i, true));
        let (name, mut attributes) = inside.split_once(' ').unwrap_or((inside, ""));
        assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()), "tag {name:?}");
        let mut list = Vec::new();
        while !attributes.trim().is_empty() {
            let (key, value) = attributes.trim_start().split_once("=\"").expect("attributes are quoted");
            let (value, more) = value.split_once('"').expect("quotes are closed");
            assert!(key.chars().all(|c| c.is_ascii_alphanumeric() || "-:".contains(c)), "attribute {key:?}");
            entities(value);
            assert!(key != "id" || ids.insert(value.to_owned()), "id {value} is used twice");
            list.push((key.to_owned(), value.to_owned()));
            attributes = more;
        }
        tags.push((name.to_owned(), list));
        if !empty {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    // Every reference to an id resolves.
    for (_, attributes) in &tags {
        for (key, value) in attributes {
            if key == "aria-labelledby" {
                assert!(value.split(' ').all(|id| ids.contains(id)), "{value}");
            }
            if let Some(id) = value.strip_prefix("fill:url(#") {
                assert!(ids.contains(id.trim_end_matches(')')), "{value}");
            }
        }
    }
    (tags, text)
}

fn count(tags: &[Tag], name: &str) -> usize {
    tags.iter().filter(|(tag, _)| tag == name).count()
}

fn assert_loads_nothing(page: &str) {
    let (tags, _) = well_formed(page);
    for (tag, attributes) in &tags {
        let harmless = "html head meta title style body main section h1 h2 p span b div table caption thead tbody \
                        tr th td dl dt dd ul ol li figure figcaption details summary pre svg desc defs pattern rect \
                        line path circle text script";
        assert!(harmless.split(' ').any(|name| name == tag), "element {tag}");
        for (key, value) in attributes {
            assert!(
                !["src", "href", "xlink:href", "data", "action", "srcset"].contains(&key.as_str()),
                "{key}={value}"
            );
            assert!(!key.starts_with("on"), "{key}={value}");
            assert!(key != "style" || value.starts_with("fill:url(#f"), "{value}");
            assert!(key == "xmlns" || !value.contains("http"), "{key}={value}");
        }
    }
    let sheets: Vec<&str> = page.split("<style").skip(1).map(|rest| rest.split_once("</style>").unwrap().0).collect();
    assert_eq!(sheets.len(), 3);
    assert!(sheets.iter().all(|sheet| !sheet.contains("url(") && !sheet.contains("@import")));
    // The only script is the one that the policy allows.
    assert_eq!(count(&tags, "script"), 1);
    let script = page.split_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
    let policy = format!("script-src 'sha256-{}'", base64(&Sha256::digest(script)));
    assert!(page.contains(&policy), "the hash of the script is {policy}");
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0, |bits: u32, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        let digit = |i: usize| char::from(DIGITS[(bits >> (18 - 6 * i)) as usize & 63]);
        out.extend((0..4).map(|i| if i <= group.len() { digit(i) } else { '=' }));
    }
    out
}

/// The CSV of each figure, as the page has it.
fn csv_of(page: &str) -> Vec<String> {
    let figures = page.split("<figure ").skip(1);
    let csv = figures.map(|figure| figure.split_once("<pre>").unwrap().1.split_once("</pre>").unwrap().0);
    csv.map(|text| text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        .collect()
}

#[test]
fn every_figure_has_its_table_and_all_of_its_data_as_csv() {
    let mut doc = sample();
    let mut bars = Chart::new("with bars/1", "Bars", ChartKind::Bars).axes("a, \"b\"", "ms");
    let ends = Some(readpath_results::Interval { low: 0.5, high: 2.0 });
    bars.series_with_bars("s", SeriesStyle::Simulated, [("x, y", 1.25, ends), ("<z>", 3.0, None)]).unwrap();
    let mut long = Chart::new("long", "Long", ChartKind::Step).axes("us", "%");
    for name in ["A", "B"] {
        let scale = if name == "A" { 1.0 } else { 1.5 };
        let points = (0..300).map(|i| (scale * f64::from(i), f64::from(i) / 3.0));
        long.series(name, SeriesStyle::Plain, points).unwrap();
    }
    doc.charts = vec![bars, long];
    let page = html::page(&doc).unwrap();
    assert_loads_nothing(&page);
    let csv = csv_of(&page);
    assert_eq!(
        csv[0],
        "series,\"a, \"\"b\"\"\",ms,low,high\n\"s, simulated\",\"x, y\",1.25,0.5,2\n\"s, simulated\",<z>,3,,\n"
    );
    let lines: Vec<&str> = csv[1].lines().collect();
    assert_eq!((lines.len(), lines[0], lines[600]), (601, "series,us,%", "B,448.5,99.6667"));
    let figures: Vec<&str> = page.split("<figure ").skip(1).collect();
    assert!(figures[0].contains("data-file=\"with_bars_1\""));
    let table = figures[1].split_once("<tbody>").unwrap().1.split_once("</tbody>").unwrap().0;
    assert!((30..=50).contains(&table.matches("<tr>").count()), "{table}");
    assert!(table.contains("448.5") && figures[1].contains("some of the lines"), "the last line is shown");
}

#[test]
fn page_has_everything_and_loads_nothing() {
    let doc = sample();
    let page = html::page(&doc).unwrap();
    assert_loads_nothing(&page);
    assert_eq!(page, html::page(&doc).unwrap());
    assert!(page.len() < 100_000, "{} bytes", page.len());
    assert!(page.contains("Content-Security-Policy"));
    let (tags, text) = well_formed(&page);
    assert_eq!(count(&tags, "svg"), 2 * doc.charts.len());
    assert_eq!(count(&tags, "table"), count(&tags, "caption"));
    // 20 bars, each with its value, in the wide and the narrow figure; swatches and hatches besides.
    let bars = |tag: &str, class: &str| {
        tags.iter().filter(|(t, a)| t == tag && a.iter().any(|(k, v)| k == "class" && v.contains(class))).count()
    };
    assert_eq!(bars("rect", "bar"), 2 * (20 + 4));
    assert_eq!(bars("circle", "dot"), 2 * 5);
    for chart in &doc.charts {
        for wanted in [&chart.title, &chart.caption, &chart.x_label] {
            assert!(text.contains(wanted.as_str()), "{wanted}");
        }
        for series in &chart.series {
            assert!(text.contains(&series.name));
        }
    }
    for wanted in [
        "300.87",
        "288.35",
        "0.9996",
        "2,930.0",
        "33,554,432",
        "253,911",
        "hpb_read_range",
        "2,621,440",
        "+3.9",
        "−1.3",
        "pred.",
        "readpath-results/2",
        "1.750 s",
        "68 MiB",
        "memory_limit_bytes",
        "device control",
        "×1.88",
        "linux-kernel",
        "GB is 10⁹ bytes",
        "proves nothing",
        "is evidence",
    ] {
        assert!(text.contains(wanted), "{wanted}");
    }
}

#[test]
fn hostile_text_is_only_text() {
    let mut doc = hostile();
    doc.process.command = vec!["readpath".to_owned(), doc.title.clone()];
    let page = html::page(&doc).unwrap();
    assert_loads_nothing(&page);
    let (tags, text) = well_formed(&page);
    assert!(text.contains("readpath &#39;&lt;/title&gt;"), "the command is quoted");
    assert_eq!(count(&tags, "script"), 1, "that of the page");
    assert!(text.contains("&lt;script&gt;alert(1)"));
    assert!(text.contains("https://example.org/paper.pdf"));
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
    for chart in &doc.charts {
        well_formed(&svg::standalone(chart).unwrap());
    }

    let shown = terminal::table(&doc, &TableSpec::new().width(80));
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()) && !shown.contains('\u{202e}'));
}

#[test]
fn terminal_table() {
    let throughput = Requests::RandomRead.of(Figure::Throughput);
    let spec = TableSpec::new().column(&throughput, "Throughput").column(&MAP_LOADS, "Map loads");
    let table = terminal::table(&sample(), &spec);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[..6],
        [
            "                         Throughput, MiB/s",
            "Case   Variant  published  simulated  error %        Map loads",
            "──────────────────────────────────────────────────────────────",
            "1 GB   HPB off      300.9      300.9      0.0 fit            0",
            "       HPB dcm      294.8      300.4     +1.9 pred.          0",
            "4 GB   HPB off      179.4      177.0     -1.3 fit      196,301",
        ]
    );
    assert!(table.contains("\nfit    this published value"));
    assert!(table.lines().all(|line| line == line.trim_end()));
}

#[test]
fn terminal_table_keeps_to_its_width() {
    let doc = sample();
    for width in [60, 80, 100, 120, 200] {
        let table = terminal::table(&doc, &TableSpec::new().width(width));
        let widest = table.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(width), "{widest} > {width}\n{table}");
        for wanted in ["33,554,432", "253,911", "+3.9 pred.", "446.8", "0.9996"] {
            assert!(table.contains(wanted), "{wanted} at {width}");
        }
    }
    assert_eq!(terminal::table(&Document::new("e", "t"), &TableSpec::new()), "no rows\n");
}

/// Fitted values, predictions and predictions that do not hold stand apart, in a terminal as on a page; the page also
/// says why some do not.
#[test]
fn what_does_not_hold_stands_apart() {
    let mut doc = Document::new("e", "t");
    for (case, simulated, origin) in
        [("a", 150.0, Origin::Fit), ("b", 109.0, Origin::Predicted), ("c", 120.0, Origin::Predicted)]
    {
        doc.row(case, "v", SECONDS, simulated, origin).unwrap().published(100.0).unwrap();
    }
    let (table, page) = (terminal::table(&doc, &TableSpec::new()), html::page(&doc).unwrap());
    for wanted in ["+50.0 fit", "+9.0 pred.", "+20.0 does not hold", "does not hold a prediction that is off"] {
        assert!(table.replace('\u{a0}', " ").contains(wanted), "{wanted}: {table}");
    }
    for (error, class, mark) in [("+50.0", " fit", "fit"), ("+9.0", "", "pred."), ("+20.0", " off", "does not hold")] {
        let cell = format!("<td>{error}<span class=\"mark{class}\">{mark}</span></td>");
        assert!(page.contains(&cell), "{cell}: {page}");
    }
    assert!(page.contains("<dt>does not hold</dt>") && !page.contains("<h2>What does not hold</h2>"), "{page}");
    doc.rows[2].reason = Some("too < fast".into());
    let page = html::page(&doc).unwrap();
    assert!(
        page.contains("<h2>What does not hold</h2>\n<ul>\n<li><strong>c, v</strong>: too &lt; fast</li>"),
        "{page}"
    );
    doc.rows.pop();
    let (table, page) = (terminal::table(&doc, &TableSpec::new()), html::page(&doc).unwrap());
    assert!(!table.contains("does not hold") && !page.contains("does not hold"), "{table}");
}

#[test]
fn rows_may_be_missing_and_in_any_order() {
    let mut doc = Document::new("e", "t");
    let [m, m_ms, n] = [("m", "s"), ("m", "ms"), ("n", "")].map(|(name, unit)| Metric::new(name, unit));
    doc.row("b", "x", m.clone(), 2.0, Origin::Measured).unwrap();
    doc.row("a", "x", m.clone(), 1.5, Origin::Predicted).unwrap().published(-3.0).unwrap();
    doc.row("b", "y", m_ms, 7.0, Origin::Measured).unwrap();
    doc.row("b", "w", n.clone(), -4.0, Origin::Measured).unwrap();
    let absent = Metric::new("absent", "");
    let spec = TableSpec::new().column(&m, "M").column(&absent, "A").column(&m, "again");
    let table = terminal::table(&doc, &spec);
    let lines: Vec<Vec<&str>> = table.lines().take(6).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines[..2],
        [vec!["M,", "s", "M"], vec!["Case", "Variant", "published", "simulated", "error", "%", "ms"]]
    );
    assert_eq!(
        lines[3..],
        [
            vec!["b", "x", "–", "2.000", "–", "–"],
            vec!["y", "–", "–", "–", "7"],
            vec!["a", "x", "-3.000", "1.500", "+150.0", "does", "not", "hold", "–"],
        ]
    );
    // If the document lacks all named columns, all of its own are shown.
    assert_eq!(terminal::table(&doc, &TableSpec::of([&absent])), terminal::table(&doc, &TableSpec::new()));
    assert_eq!(TableSpec::of([&n, &m]).headed(&m, "M"), TableSpec::new().column(&n, "N").column(&m, "M"));
    assert!(terminal::table(&doc, &TableSpec::new()).contains("-4"));
    assert_loads_nothing(&html::page(&doc).unwrap());
    assert_loads_nothing(&html::page(&Document::new("", "")).unwrap());
}

/// A metric that the first variant lacks has no multiples: another variant must not serve as the baseline.
#[test]
fn multiples_are_of_the_first_variant_or_of_none() {
    let mut doc = Document::new("x", "x");
    for (variant, hits, seconds) in [("A", None, 4.0), ("B", Some(1.0), 2.0), ("C", Some(3.0), 1.0)] {
        doc.row("c", variant, SECONDS, seconds, Origin::Fit).unwrap().published(seconds).unwrap();
        if let Some(hits) = hits {
            doc.row("c", variant, HITS, hits, Origin::Predicted).unwrap().published(hits).unwrap();
        }
    }
    let page = html::page(&doc).unwrap();
    assert!(page.contains("as a multiple of A") && !page.contains("as a multiple of B"));
}

/// Many cases without published values displace neither the multiples nor the table of those that have some.
#[test]
fn published_values_are_kept_apart_from_many_others() {
    let mut document = Document::new("apart", "Two tables");
    for (variant, published, simulated) in [("A", 10.0, 9.0), ("B", 5.0, 6.0)] {
        let row = document.row("known", variant, SECONDS, simulated, Origin::Predicted).expect("a row");
        row.published(published).expect("a number");
    }
    for variant in ["x", "y", "z"] {
        document.row("other", variant, SECONDS, 1.0, Origin::Predicted).expect("a row");
    }
    let page = html::page(&document).expect("a page");
    assert!(page.contains("Seconds as a multiple of A") && page.contains("×0.667"), "{page}");
    let (compared, others) = page.split_once("Values of other cases").expect("a second table");
    let compared = compared.split_once("Values beside published ones").expect("a first table").1;
    assert!(compared.contains("known") && !compared.contains("other"), "{compared}");
    let others = others.split_once("</table>").expect("an end").0;
    assert!(others.contains("other") && !others.contains("known") && !others.contains("published"), "{others}");
}

#[test]
fn multiples_are_shown_of_metrics_that_differ_by_a_twentieth_of_a_percent() {
    for (value, is_shown) in [(100.04, false), (100.06, true)] {
        let mut doc = Document::new("x", "x");
        for (variant, value) in [("A", 100.0), ("B", value)] {
            let metric = Requests::RandomRead.of(Figure::Throughput);
            doc.row("c", variant, metric, value, Origin::Predicted).unwrap();
        }
        assert_eq!(html::page(&doc).unwrap().contains("as a multiple of A"), is_shown, "{value}");
    }
}

#[test]
fn a_published_fraction_gives_its_whole_column_decimals() {
    let mut doc = Document::new("x", "x");
    doc.row("c", "", SECONDS, 2.0, Origin::Predicted).unwrap().published(2.5).unwrap();
    let table = terminal::table(&doc, &TableSpec::new());
    assert!(table.contains("2.000") && table.contains("2.500"), "{table}");
}

#[test]
fn negative_error_is_shown_with_its_sign() {
    let mut doc = Document::new("e", "t");
    doc.row("c", "", Metric::new("m", "s"), 90.0, Origin::Predicted).unwrap().published(100.0).unwrap();
    assert!(terminal::table(&doc, &TableSpec::new()).contains("-10.0 pred."));
    assert!(html::page(&doc).unwrap().contains("−10.0"));
    assert!(!terminal::table(&doc, &TableSpec::new()).contains("Variant"));
}

fn drawn(chart: &Chart) -> String {
    for size in [svg::Size::Wide, svg::Size::Narrow] {
        let figure = svg::chart(chart, "f", size).unwrap();
        well_formed(&figure);
        assert!(!figure.contains("NaN") && !figure.contains("inf"), "{figure}");
    }
    let figure = svg::standalone(chart).unwrap();
    well_formed(&figure);
    figure
}

#[test]
fn odd_charts_are_drawn() {
    for kind in [ChartKind::Bars, ChartKind::Lines, ChartKind::Step] {
        let new = || Chart::new("c", "t", kind).axes("x", "y");
        assert!(drawn(&new()).contains("no data"));
        let mut empty = new();
        empty.series("nothing", SeriesStyle::Plain, Vec::<(f64, f64)>::new()).unwrap();
        assert!(drawn(&empty).contains("nothing: no points"));
        let mut one = new();
        one.series("one", SeriesStyle::Published, [(3.0, 7.0)]).unwrap();
        let figure = drawn(&one);
        // A line of one point is a bar.
        let mark = if matches!(kind, ChartKind::Bars | ChartKind::Lines) {
            "<rect class=\"bar"
        } else {
            "class=\"dot k0 published"
        };
        assert!(figure.contains(mark));
        let mut zeros = new().y_log().x_log();
        zeros.series("zeros", SeriesStyle::Plain, [(0.0, 0.0), (1.0, 10.0), (2.0, -3.0), (10.0, 1e7)]).unwrap();
        // Three values lie on the edge; bars have categories across, so the zero there is in its place.
        let edge = if kind == ChartKind::Bars { "values of 0 or below (2)" } else { "values of 0 or below (3)" };
        assert!(drawn(&zeros).contains(edge));
        let mut only_zeros = new().y_log();
        only_zeros.series("zeros", SeriesStyle::Plain, [(0.0, 0.0), (1.0, 0.0)]).unwrap();
        drawn(&only_zeros);
        let mut mixed = new();
        mixed.series("a", SeriesStyle::Plain, [("one", -1.0), ("two", -2.0)]).unwrap();
        mixed.series("b", SeriesStyle::Simulated, [(1.0, 1e300), (2.0, -1e300)]).unwrap();
        drawn(&mixed);
        let mut tiny = new().y_log().x_log();
        tiny.series("t", SeriesStyle::Plain, [(1e-300, 5e-324), (1e300, 1e300)]).unwrap();
        drawn(&tiny);
        let mut many = new();
        for i in 0..30 {
            let name = format!("a series with a rather long name, number {i}");
            many.series(name, SeriesStyle::Plain, (0..60).map(|x| (format!("category {x}"), f64::from(x * i))))
                .unwrap();
        }
        drawn(&many);
    }
}

/// The colour and title of each cell of a drawing.
fn cells(svg: &str) -> Vec<(usize, String)> {
    let cells = svg.split("<rect class=\"cell h").skip(1);
    let tip = |cell: &str| Some(cell.split_once("<title>")?.1.split_once("</title>")?.0.to_owned());
    cells.filter_map(|cell| Some((cell[..1].parse().unwrap(), tip(cell.split_once("</rect>")?.0)?))).collect()
}

#[test]
fn heat_maps_say_values_by_colour_and_in_words() {
    let new = || Chart::new("map", "t", ChartKind::Heat).axes("cache, KiB", "latency, us").rows("depth");
    let mut chart = new();
    chart.series("1", SeriesStyle::Plain, [(64.0, 0.0), (256.0, 50.0), (1024.0, 100.0)]).unwrap();
    // A cell is missing, and two that are equal are one.
    chart.series("8", SeriesStyle::Plain, [(64.0, 25.0), (1024.0, 25.0)]).unwrap();
    chart.series("32", SeriesStyle::Plain, [(64.0, 100.0), (256.0, 100.0), (1024.0, 99.0)]).unwrap();
    let svg = drawn(&chart);
    let told: Vec<(usize, String)> = cells(&svg);
    let expected = [
        (0, "1, 64: 0"),
        (4, "1, 256: 50"),
        (8, "1, 1024: 100"),
        (2, "8, 64: 25"),
        (2, "8, 1024: 25"),
        (8, "32, 64 to 256: 100"),
        (8, "32, 1024: 99"),
    ];
    assert_eq!(told, expected.map(|(step, tip)| (step, tip.to_owned())));
    assert!(svg.contains("Heat map. Across: cache, KiB. Upward: depth. Colour: latency, us."), "{svg}");
    // The first row is the lowest, and its value stands in the cell, in a colour that can be read on it.
    let y = |tip: &str| {
        let cell = svg.split("<rect ").find(|cell| cell.contains(tip)).unwrap();
        cell.split_once(" y=\"").unwrap().1.split_once('"').unwrap().0.parse::<f64>().unwrap()
    };
    assert!(y("1, 64: 0") > y("8, 64: 25"));
    assert!(svg.contains("class=\"in strong\"") && svg.contains("class=\"in faint\""));
    let mut log = new().y_log();
    log.series("1", SeriesStyle::Plain, [(1.0, 1.0), (2.0, 10.0), (3.0, 100.0)]).unwrap();
    let svg = drawn(&log);
    assert_eq!(cells(&svg).iter().map(|cell| cell.0).collect::<Vec<_>>(), [0, 4, 8]);
    assert!(svg.contains("100 (logarithmic)"));
    // Close values get close colours.
    let mut close = new();
    close.series("1", SeriesStyle::Plain, [(1.0, 50.0), (2.0, 100.0)]).unwrap();
    assert_eq!(cells(&drawn(&close))[0].0, 4);
    let mut equal = new();
    equal.series("1", SeriesStyle::Plain, [("a", 5.0), ("b", 5.0)]).unwrap();
    drawn(&equal);
    assert!(drawn(&new()).contains("no data"));
    // Labels have room with any number of columns.
    let mut many = new();
    many.series("r", SeriesStyle::Plain, (0..200).map(|i| (f64::from(i) / 7.0, f64::from(i)))).unwrap();
    let labels = drawn(&many).matches("text-anchor=\"middle\"").count();
    assert!((3..40).contains(&labels), "{labels}");
}

#[test]
fn labels_of_an_axis_do_not_crowd() {
    let events = (1..=5).map(|i| (f64::from(i), 1.0));
    let mut chart = Chart::new("cuts", "Cuts", ChartKind::Lines).axes("cut", "ms");
    chart.series("a", SeriesStyle::Plain, events).unwrap();
    let svg = drawn(&chart);
    assert!(svg.contains(">4<") && !svg.contains(">4.5<") && !svg.contains(">4.0<"), "nothing is between two events");
    // Slanted labels: along the axis they are a line's height apart, over the sine of their slope.
    for count in [20, 30, 40, 80] {
        let mut chart = Chart::new("bars", "Bars", ChartKind::Bars).axes("cache", "s");
        chart.series("a", SeriesStyle::Plain, (0..count).map(|i| (format!("cache {i} of many lines"), 1.0))).unwrap();
        let svg = drawn(&chart);
        let places: Vec<f64> = svg
            .split("translate(")
            .skip(1)
            .filter(|rest| rest.contains("rotate(-40)"))
            .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
            .collect();
        assert!(places.len() > 5, "{count}: {svg}");
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 20.0), "{count}: {places:?}");
    }
}

#[test]
fn charts_must_be_aggregated_and_in_range() {
    let mut chart = Chart::new("big", "t", ChartKind::Step);
    chart.series("s", SeriesStyle::Plain, (0..=svg::MAX_POINTS).map(|i| (i as f64, 0.0))).unwrap();
    let error = svg::standalone(&chart).unwrap_err();
    assert_eq!(error.to_string(), "series `s` of chart `big` has 2001 points, more than 2000: aggregate it first");
    let mut doc = sample();
    doc.charts.push(chart.clone());
    assert_eq!(html::page(&doc), Err(error));
    chart.series[0].points.pop();
    drawn(&chart);
    chart.series[0].points[0].y = f64::MAX;
    assert!(matches!(svg::standalone(&chart), Err(Error::Range { .. })));
    chart.series[0].points[0].y = f64::NAN;
    assert!(matches!(svg::standalone(&chart), Err(Error::Range { .. })));
}

#[test]
fn page_with_the_largest_distributions_stays_small() {
    let mut doc = sample();
    let mut chart = Chart::new("cdf", "t", ChartKind::Step).axes("latency, µs", "share").x_log();
    for n in 1..=3 {
        let point = |i: u32| (f64::from(n) * 100.0 * (1.001f64).powi(i as i32), f64::from(i + 1) / 2000.0);
        chart.series(format!("s{n}"), SeriesStyle::Plain, (0..2000).map(point)).unwrap();
    }
    doc.charts = vec![chart];
    let page = html::page(&doc).unwrap();
    assert!(page.len() < 200_000, "{} bytes", page.len());
    assert_loads_nothing(&page);
}

/// Errors of +10 % and −20 % do not cancel.
#[test]
fn agreement_is_the_mean_size_of_errors() {
    let mut doc = Document::new("e", "t");
    for (case, simulated) in [("a", 110.0), ("b", 80.0)] {
        doc.row(case, "", SECONDS, simulated, Origin::Predicted).unwrap().published(100.0).unwrap();
    }
    let page = html::page(&doc).unwrap();
    assert!(page.contains("<td>2</td><td>1</td><td>15.0</td><td>−20.0</td><td class=\"name\">b</td>"), "{page}");
}
