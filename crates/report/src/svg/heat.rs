// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout of one heat map: a row of cells for each series, the first lowest. Knows no page.

use std::collections::HashMap;

use readpath_results::{Chart, Point, X};

use super::Size;
use super::paint::{Paint, text_width};
use super::plot::{SMALL, TINY, category, fit, short};
use super::scale::Scale;
use crate::{format, text};

/// Colours, from little to much; the style sheet has them.
const STEPS: usize = 9;
/// From this colour on, text in a cell has the colour of the paper.
const STRONG: usize = 5;
/// Largest height of a row.
const HIGHEST_ROW: f64 = 46.0;

/// Maps values to colours.
struct Colours {
    low: f64,
    high: f64,
    log: bool,
}

impl Colours {
    fn of(chart: &Chart) -> Self {
        let values = || chart.series.iter().flat_map(|s| &s.points).map(|p| p.y);
        let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), y| (lo.min(y), hi.max(y)));
        let (low, high) = if low <= high { (low, high) } else { (0.0, 0.0) };
        let log = chart.y_log && low > 0.0;
        // As on an axis, a small difference must not fill the whole range.
        let low = if !log && low >= 0.0 && (low < 0.6 * high || low == high) { 0.0 } else { low };
        Self { low, high, log }
    }

    fn step(&self, value: f64) -> usize {
        let share = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if share.is_finite() { ((share * STEPS as f64) as usize).min(STEPS - 1) } else { 0 }
    }
}

/// The elements of the figure, and its height.
pub(super) fn draw(chart: &Chart, size: Size) -> (String, f64) {
    let (width, height) = size.units();
    let mut paint = Paint::default();
    let mut columns: Vec<String> = Vec::new();
    let mut places: Vec<Option<f64>> = Vec::new();
    let mut of: HashMap<String, usize> = HashMap::new();
    for point in chart.series.iter().flat_map(|s| &s.points) {
        of.entry(category(point)).or_insert_with(|| {
            columns.push(label(point));
            places.push(if let X::Number(x) = point.x { Some(x) } else { None });
            columns.len() - 1
        });
    }
    let colours = Colours::of(chart);
    let mut top = legend(&mut paint, chart, &colours, width) + 10.0;
    if !chart.series_label.is_empty() {
        paint.text("axis-title", (4.0, top + 8.0), "start", SMALL, &fit(&chart.series_label, width - 8.0));
        top += 18.0;
    }
    if columns.is_empty() {
        paint.text("tick", (width / 2.0, top + 40.0), "middle", SMALL, "no data");
        return (paint.out, top + 80.0);
    }

    let widest = chart.series.iter().map(|s| text_width(&s.name, SMALL)).fold(0.0, f64::max);
    let left = widest.min(0.4 * width) + 12.0;
    let rows = chart.series.len();
    let row = ((height - 110.0) / rows as f64).min(HIGHEST_ROW);
    let column = (width - left - 14.0) / columns.len() as f64;
    let bottom = top + row * rows as f64;
    let every = (text_width("0", SMALL) * 2.4 / row).ceil().max(1.0) as usize;
    for (i, series) in chart.series.iter().enumerate() {
        let y = bottom - row * (i + 1) as f64;
        if i % every == 0 {
            let name = fit(&series.name, left - 12.0);
            paint.text("tick", (left - 7.0, y + row / 2.0 + 4.0), "end", SMALL, &name);
        }
        let place = |point: &Point| of.get(&category(point)).copied().unwrap_or(0);
        // Equal neighbours are drawn as one cell, so that a map of states has few.
        let joined = |a: &Point, b: &Point| a.y == b.y && place(a) + 1 == place(b);
        for cells in series.points.chunk_by(joined) {
            let (Some(first), Some(last)) = (cells.first(), cells.last()) else { continue };
            let (x, wide) = (left + column * place(first) as f64, column * cells.len() as f64);
            let across = if cells.len() > 1 { format!("{} to {}", label(first), label(last)) } else { label(first) };
            let step = colours.step(first.y);
            let tip = format!("{}, {across}: {}", series.name, format::number(first.y));
            paint.cell(step, (x, y), (wide, row), &tip);
            let value = short(first.y);
            let is_named = cells.len() == 1 || columns.len() <= MOST_NAMED;
            if is_named && row >= 16.0 && text_width(&value, TINY) <= wide - 4.0 {
                let class = if step >= STRONG { "in strong" } else { "in faint" };
                paint.text(class, (x + wide / 2.0, y + row / 2.0 + 4.0), "middle", TINY, &value);
            }
        }
    }
    paint.frame((left, top), (column * columns.len() as f64, bottom - top));

    let mut free = f64::MIN;
    let shown: Vec<(f64, String)> = match even(&places) {
        Some(places) => ticks(&places, size),
        None => {
            let names = text::apart(columns.iter().map(String::as_str), 16);
            names.into_iter().enumerate().map(|(i, name)| (i as f64, name)).collect()
        }
    };
    for (place, name) in shown {
        let middle = left + column * (place + 0.5);
        let half = text_width(&name, SMALL) / 2.0;
        if middle - half > free && middle + half <= width {
            paint.line("axis", (middle, bottom), (middle, bottom + 4.0));
            paint.text("tick", (middle, bottom + 18.0), "middle", SMALL, &name);
            free = middle + half + 6.0;
        }
    }
    let mut end = bottom + 24.0;
    if !chart.x_label.is_empty() {
        let middle = left + column * columns.len() as f64 / 2.0;
        let room = 2.0 * middle.min(width - middle);
        paint.text("axis-title", (middle, end + 14.0), "middle", SMALL, &fit(&chart.x_label, room));
        end += 20.0;
    }
    (paint.out, end + 6.0)
}

/// Draws the legend of the colours and returns its lower edge.
fn legend(paint: &mut Paint, chart: &Chart, colours: &Colours, width: f64) -> f64 {
    const SWATCH: f64 = 15.0;
    paint.text("axis-title", (4.0, 18.0), "start", SMALL, &fit(&chart.y_label, width - 8.0));
    let (low, high) = (short(colours.low), short(colours.high));
    paint.text("tick", (4.0, 38.0), "start", SMALL, &low);
    let left = 4.0 + text_width(&low, SMALL) + 6.0;
    for step in 0..STEPS {
        paint.cell(step, (left + SWATCH * step as f64, 28.0), (SWATCH, 12.0), "");
    }
    paint.frame((left, 28.0), (SWATCH * STEPS as f64, 12.0));
    let scale = if colours.log { format!("{high} (logarithmic)") } else { high };
    paint.text("tick", (left + SWATCH * STEPS as f64 + 6.0, 38.0), "start", SMALL, &scale);
    44.0
}

/// Columns at most that are labelled by their own numbers where those are evenly spaced.
const MOST_NAMED: usize = 12;

/// The numbers of many columns, if they are evenly spaced; the last may be nearer.
fn even(places: &[Option<f64>]) -> Option<Vec<f64>> {
    let numbers: Vec<f64> = places.iter().copied().collect::<Option<_>>()?;
    let [first, second, ..] = numbers[..] else { return None };
    let step = second - first;
    let mut steps: Vec<f64> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let last = steps.pop()?;
    let is_even = steps.iter().all(|other| (other - step).abs() < 1e-6 * step) && last > 0.0 && last < 1.001 * step;
    (numbers.len() > MOST_NAMED && step > 0.0 && is_even).then_some(numbers)
}

/// Round numbers, and their places in columns.
fn ticks(numbers: &[f64], size: Size) -> Vec<(f64, String)> {
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    let scale = Scale::linear(first, last, if size == Size::Wide { 8 } else { 4 }, false);
    // Without the last step, which may be shorter.
    let step = (numbers[numbers.len() - 2] - first) / (numbers.len() - 2) as f64;
    scale.ticks.iter().map(|tick| ((tick - first) / step, format::six(*tick))).collect()
}

/// Name of a column.
fn label(point: &Point) -> String {
    if let X::Number(x) = point.x { format::six(x) } else { category(point) }
}
