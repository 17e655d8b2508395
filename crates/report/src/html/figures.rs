// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of the page, each with its table and its data as comma-separated values. The script, where it may run,
//! adds buttons that save figure and data as files; it reads both from the page.

use std::fmt::Write;

use readpath_results::{Chart, Point, Series, SeriesStyle, X, csv_cell};

use super::{Page, minus};
use crate::{Error, format, svg, text};

/// Longer tables show only some of their lines.
const MOST_TABLE_LINES: usize = 128;
/// Lines that a longer table shows, in addition to the last.
const LINES_OF_MANY: usize = 40;

/// Adds the buttons below each figure. A file of a figure gets the part of the style sheet that it needs; the CSV is
/// what the page has, to the character. No `<`, `>` or `&`, so that the page stays well-formed.
const SCRIPT: &str = include_str!("save.js");
/// What the policy of the page lets run: the SHA-256 of the script, and nothing else.
pub(super) const SCRIPT_HASH: &str = "sha256-zpu+/+DqhLnu7VJ6SzNNu6LUC6aeVFPB9Yj8HMMqvvo=";

impl Page {
    pub(super) fn script(&mut self) {
        let _ = writeln!(self.out, "<script>{SCRIPT}</script>");
    }

    pub(super) fn figures(&mut self, charts: &[Chart]) -> Result<(), Error> {
        if charts.is_empty() {
            return Ok(());
        }
        self.put("<section>\n<h2>More figures</h2>\n");
        charts.iter().try_for_each(|chart| self.figure(chart))?;
        self.put("</section>\n");
        Ok(())
    }

    pub(super) fn figure(&mut self, chart: &Chart) -> Result<(), Error> {
        self.figures += 1;
        let n = self.figures;
        let _ = writeln!(self.out, "<figure id=\"figure{n}\" data-file=\"{}\">", file_name(&chart.id));
        let wide = svg::chart(chart, &format!("f{n}w"), svg::Size::Wide)?;
        let narrow = svg::chart(chart, &format!("f{n}n"), svg::Size::Narrow)?;
        self.put(wide);
        self.put(narrow);
        let _ = writeln!(
            self.out,
            "<figcaption><b>Figure {n}.</b> <b>{}.</b> {}</figcaption>",
            text::html(chart.title.trim_end_matches('.')),
            text::html(&chart.caption)
        );
        self.data(chart, n);
        self.put("</figure>\n");
        Ok(())
    }

    /// The numbers behind a figure: a table, and all of them as text.
    fn data(&mut self, chart: &Chart, n: usize) {
        let lines = chart.series.iter().map(|s| s.points.len()).max().unwrap_or(0);
        let some = if lines > MOST_TABLE_LINES { " (some of the lines; the CSV has all)" } else { "" };
        let _ = writeln!(self.out, "<details>\n<summary>Data of figure {n}{some}</summary>");
        self.data_table(chart, lines);
        let csv = text::html_lines(&csv(chart));
        let _ = writeln!(self.out, "</details>\n<details>\n<summary>CSV of figure {n}</summary>\n<pre>{csv}</pre>");
        self.put("</details>\n");
    }

    /// One column of x if all series share it, otherwise one for each series.
    fn data_table(&mut self, chart: &Chart, lines: usize) {
        let title = text::html(&chart.title);
        let x_label = text::html(if chart.x_label.is_empty() { "x" } else { &chart.x_label });
        let y_label = text::html(if chart.y_label.is_empty() { "y" } else { &chart.y_label });
        let same = |a: &[Point], b: &[Point]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.x == b.x);
        let shared = chart.series.windows(2).all(|w| same(&w[0].points, &w[1].points));
        self.open_table(&format!("{title}: {y_label}"));
        if shared {
            let _ = write!(self.out, "<thead>\n<tr><th class=\"name\" scope=\"col\">{x_label}</th>");
            for series in &chart.series {
                let _ = write!(self.out, "<th scope=\"col\">{}</th>", heading(series));
            }
        } else {
            self.put("<thead>\n<tr>");
            for series in &chart.series {
                let name = heading(series);
                let _ = write!(self.out, "<th class=\"group\" scope=\"colgroup\" colspan=\"2\">{name}</th>");
            }
            self.put("</tr>\n<tr>");
            for i in 0..chart.series.len() {
                let class = if i == 0 { "sub" } else { "sub first" };
                let _ = write!(
                    self.out,
                    "<th class=\"{class}\" scope=\"col\">{x_label}</th><th class=\"sub\" scope=\"col\">{y_label}</th>"
                );
            }
        }
        self.put("</tr>\n</thead>\n<tbody>\n");
        let number = |x: &X| if let X::Number(x) = x { Some(*x) } else { None };
        let forms: Vec<_> = chart
            .series
            .iter()
            .map(|s| (decimals(s.points.iter().filter_map(|p| number(&p.x))), decimals(s.points.iter().map(|p| p.y))))
            .collect();
        for line in shown(lines) {
            self.put("<tr>");
            for (i, series) in chart.series.iter().enumerate() {
                let point = series.points.get(line);
                let x = point.map_or_else(String::new, |p| x_text(&p.x, forms[i].0));
                let _ = match (shared, i) {
                    (true, 0) => write!(self.out, "<th class=\"name\" scope=\"row\">{x}</th>"),
                    (true, _) => Ok(()),
                    (false, 0) => write!(self.out, "<td>{x}</td>"),
                    (false, _) => write!(self.out, "<td class=\"first\">{x}</td>"),
                };
                let y = point.map_or_else(String::new, |p| exact(p.y, forms[i].1));
                let ends = point.and_then(|p| p.interval).map(|i| minus(&format!(" ({})", format::interval(i))));
                let _ = write!(self.out, "<td>{y}{}</td>", ends.unwrap_or_default());
            }
            self.put("</tr>\n");
        }
        self.put("</tbody>\n");
        self.close_table();
    }
}

/// Indices of the lines that are shown of a table of `lines` lines.
fn shown(lines: usize) -> impl Iterator<Item = usize> {
    let every = if lines > MOST_TABLE_LINES { lines.div_ceil(LINES_OF_MANY) } else { 1 };
    (0..lines).filter(move |line| line % every == 0 || line + 1 == lines)
}

/// All points: a line for each, with the name of its series, six digits of each number, and the ends of its interval
/// if any point has one.
fn csv(chart: &Chart) -> String {
    let word = |label: &str, other: &str| csv_cell(if label.is_empty() { other } else { label }).into_owned();
    let rows = word(&chart.series_label, "series");
    let mut out = format!("{rows},{},{}", word(&chart.x_label, "x"), word(&chart.y_label, "y"));
    let has_ends = chart.series.iter().flat_map(|s| &s.points).any(|p| p.interval.is_some());
    out.push_str(if has_ends { ",low,high\n" } else { "\n" });
    for series in &chart.series {
        let name = csv_cell(&plain_name(series)).into_owned();
        for Point { x, y, interval } in &series.points {
            let x = match x {
                X::Number(x) => format::six(*x).into(),
                X::Label(x) => csv_cell(x),
            };
            let _ = write!(out, "{name},{x},{}", format::six(*y));
            let ends = interval.map(|i| format!(",{},{}", format::six(i.low), format::six(i.high)));
            out.push_str(ends.as_deref().unwrap_or(if has_ends { ",," } else { "" }));
            out.push('\n');
        }
    }
    out
}

/// Name without `.csv` or `.svg`, fit for any file system.
fn file_name(id: &str) -> String {
    let name: String = id.chars().take(60).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.is_empty() { "figure".to_owned() } else { name }
}

/// Whether a series is of the literature or of the model, if its name does not say so.
fn style_word(series: &Series) -> Option<&'static str> {
    let word = match series.style {
        SeriesStyle::Published => "published",
        SeriesStyle::Simulated => "simulated",
        SeriesStyle::Plain | SeriesStyle::Points => return None,
    };
    (!series.name.contains(word)).then_some(word)
}

fn plain_name(series: &Series) -> String {
    style_word(series).map_or_else(|| series.name.clone(), |word| format!("{}, {word}", series.name))
}

fn heading(series: &Series) -> String {
    let name = text::html(&series.name);
    style_word(series).map_or(name.clone(), |word| format!("{name} <span class=\"unit\">{word}</span>"))
}

fn x_text(x: &X, decimals: Option<usize>) -> String {
    match x {
        X::Number(x) => exact(*x, decimals),
        X::Label(label) => text::html(label),
    }
}

/// Digits after the point that every number of a column needs; none if the column would be unreadably wide.
fn decimals(values: impl Iterator<Item = f64>) -> Option<usize> {
    let (mut before, mut after) = (0, 0);
    for value in values {
        let text = value.to_string();
        let point = text.find('.').unwrap_or(text.len());
        before = before.max(point);
        after = after.max(text.len().saturating_sub(point + 1));
    }
    (after == 0 && before <= 15 || after <= 6 && before + after <= 10).then_some(after)
}

fn exact(value: f64, decimals: Option<usize>) -> String {
    minus(&decimals.map_or_else(|| format::in_column(value, false), |d| format::grouped(value, d)))
}
