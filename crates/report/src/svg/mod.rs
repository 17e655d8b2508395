// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts as SVG: grouped bars, marked lines, steps, heat maps; linear and logarithmic axes. Knows charts, not
//! documents.
//!
//! This is own code rather than a vendored JavaScript library for four reasons: the page must stay small (well below
//! 200 KB), readable without scripts and printable as vectors, and no third-party code may be vendored into it.
//!
//! A figure is aggregated data, so a series has at most [`MAX_POINTS`] points. Colours, hatches and fonts come from a
//! style sheet: [`standalone`] brings one along, [`chart`] leaves it to the page.

mod heat;
mod paint;
mod plot;
mod scale;

use std::fmt::Write;

use readpath_results::{Chart, ChartKind, SeriesStyle, X};

use crate::{Error, format, style, text};

/// Largest number of points in a series.
pub const MAX_POINTS: usize = 2_000;

/// The width that a figure is drawn for. Both scale freely; this sets the size of text relative to the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// For a page or a column of a paper: 720 units.
    Wide,
    /// For a telephone: 380 units.
    Narrow,
}

impl Size {
    const fn units(self) -> (f64, f64) {
        match self {
            Self::Wide => (720.0, 390.0),
            Self::Narrow => (380.0, 330.0),
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }
}

/// Draws a chart as an `<svg>` element for a page that has the style sheet. `id` must be unique in that page and
/// consist of letters and digits; ids within the element start with it.
///
/// # Errors
/// [`Error::TooManyPoints`] if a series is not aggregated, [`Error::Range`] if a coordinate is not finite or beyond
/// ±10³⁰⁰.
pub fn chart(chart: &Chart, id: &str, size: Size) -> Result<String, Error> {
    draw(chart, id, size, "", "")
}

/// Draws a chart as a complete SVG file, in light colours on white.
pub fn standalone(chart: &Chart) -> Result<String, Error> {
    let sheet = format!("<style>{}{}</style>\n", style::LIGHT, style::CHART);
    draw(chart, "chart", Size::Wide, r#" xmlns="http://www.w3.org/2000/svg""#, &sheet)
}

fn draw(chart: &Chart, id: &str, size: Size, namespace: &str, sheet: &str) -> Result<String, Error> {
    check(chart)?;
    // A line through a single point is invisible: bars take its place.
    let single =
        !chart.series.is_empty() && chart.kind == ChartKind::Lines && chart.series.iter().all(|s| s.points.len() == 1);
    let bars = single.then(|| Chart { kind: ChartKind::Bars, ..chart.clone() });
    let chart = bars.as_ref().unwrap_or(chart);
    let (body, height) = match chart.kind {
        ChartKind::Heat => heat::draw(chart, size),
        _ => plot::Plot::new(chart, id, size).draw(),
    };
    let (width, class) = (size.units().0, size.class());
    let title = text::html(&chart.title);
    let desc = text::html(&describe(chart));
    let mut out = String::new();
    let _ = writeln!(
        out,
        r#"<svg{namespace} class="chart {class}" viewBox="0 0 {width} {}" role="img" aria-labelledby="{id}t {id}d">"#,
        paint::Px(height)
    );
    let _ = writeln!(out, r#"<title id="{id}t">{title}</title>"#);
    let _ = writeln!(out, r#"<desc id="{id}d">{desc}</desc>"#);
    out.push_str(sheet);
    out.push_str(&body);
    out.push_str("</svg>\n");
    Ok(out)
}

fn check(chart: &Chart) -> Result<(), Error> {
    for series in &chart.series {
        let name = || (chart.id.clone(), series.name.clone());
        if series.points.len() > MAX_POINTS {
            let (chart, name) = name();
            return Err(Error::TooManyPoints { chart, series: name, points: series.points.len(), limit: MAX_POINTS });
        }
        for point in &series.points {
            let x = if let X::Number(x) = point.x { x } else { 0.0 };
            let ends = point.interval.map_or([point.y; 2], |i| [i.low, i.high]);
            for value in [x, point.y, ends[0], ends[1]] {
                if !value.is_finite() || value.abs() > scale::LIMIT {
                    let (chart, series) = name();
                    return Err(Error::Range { chart, series, value });
                }
            }
        }
    }
    Ok(())
}

/// The figure in words, for screen readers.
fn describe(chart: &Chart) -> String {
    let kind = match chart.kind {
        ChartKind::Bars => "Grouped bars",
        ChartKind::Lines => "Lines",
        ChartKind::Step => "Steps",
        ChartKind::Heat => "Heat map",
    };
    let axis = |log: bool| if log { " on a logarithmic axis" } else { "" };
    let (x, y) = (format!("{}{}", chart.x_label, axis(chart.x_log)), format!("{}{}", chart.y_label, axis(chart.y_log)));
    let mut out = match chart.kind {
        ChartKind::Heat => format!("{kind}. Across: {x}. Upward: {}. Colour: {y}.", chart.series_label),
        _ => format!("{kind}. Across: {x}. Upward: {y}."),
    };
    for series in &chart.series {
        let (lo, hi) = series.points.iter().fold((f64::MAX, f64::MIN), |(a, b), p| (a.min(p.y), b.max(p.y)));
        let what = match series.style {
            SeriesStyle::Published => " (published)",
            SeriesStyle::Simulated => " (simulated)",
            SeriesStyle::Plain | SeriesStyle::Points => "",
        };
        let _ = match series.points.len() {
            0 => write!(out, " {}{what}: no points.", series.name),
            1 => write!(out, " {}{what}: {}.", series.name, format::number(hi)),
            n => {
                write!(out, " {}{what}: {n} points from {} to {}.", series.name, format::number(lo), format::number(hi))
            }
        };
    }
    if chart.series.iter().flat_map(|s| &s.points).any(|p| p.interval.is_some()) {
        out.push_str(" Error bars show intervals.");
    }
    out + " The data follow as a table."
}
