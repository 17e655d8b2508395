// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout of one chart: where the axes, the legend, the labels and the data go. Knows no page.

use std::collections::HashMap;
use std::fmt::Write;

use readpath_results::{Chart, ChartKind, Point, Series, SeriesStyle, X};

use super::Size;
use super::paint::{Look, Paint, Px, text_width};
use super::scale::{Scale, superscript};
use crate::{format, text};

const FONT: f64 = 12.5;
pub(super) const SMALL: f64 = 11.5;
pub(super) const TINY: f64 = 11.0;
/// How much wider bold text is.
const BOLD: f64 = 1.1;
/// Longest label of a category or series in a figure; the table below has all of it.
const LONGEST: usize = 26;
/// Room between labels below an axis.
const SLOT_GAP: f64 = 6.0;
/// How far a slanted label reaches across and down, for its length: cosine and sine of 40 degrees.
const SLANT_ACROSS: f64 = 0.77;
const SLANT_DOWN: f64 = 0.64;
/// Half of the width of an error bar's caps.
const CAP: f64 = 4.5;
/// A series with more points than this has no markers.
const MARKED: usize = 40;
/// Places of a curve without markers that say their values.
const TIPS: usize = 12;
/// Powers of two at most that are ticks of a logarithmic axis.
const MOST_POWERS: usize = 24;

/// The x axis.
enum Across {
    Categories { names: Vec<String>, of: HashMap<String, usize> },
    Numbers(Scale),
}

pub(super) struct Plot<'a> {
    chart: &'a Chart,
    size: Size,
    looks: Vec<Look>,
    across: Across,
    up: Scale,
    /// Values that a logarithmic axis cannot show.
    below: usize,
}

struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area {
    fn width(&self) -> f64 {
        self.right - self.left
    }

    fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }
}

impl<'a> Plot<'a> {
    pub(super) fn new(chart: &'a Chart, id: &str, size: Size) -> Self {
        let points = || chart.series.iter().flat_map(|s| &s.points);
        let mut below = 0;

        let categorical = chart.kind == ChartKind::Bars || points().any(|p| matches!(p.x, X::Label(_)));
        let across = if categorical {
            let (mut names, mut of) = (Vec::new(), HashMap::new());
            for point in points() {
                let name = category(point);
                of.entry(name).or_insert_with_key(|name| {
                    names.push(name.clone());
                    names.len() - 1
                });
            }
            Across::Categories { names, of }
        } else {
            let xs = || points().filter_map(|p| if let X::Number(x) = p.x { Some(x) } else { None });
            Across::Numbers(axis_of_numbers(xs, chart.x_log, size, &mut below))
        };

        let ys = || points().flat_map(|p| [Some(p.y), p.interval.map(|i| i.low), p.interval.map(|i| i.high)]).flatten();
        let (lo, hi) = span(ys());
        let positive = ys().filter(|y| *y > 0.0).fold(f64::INFINITY, f64::min);
        let up = if chart.y_log && positive.is_finite() {
            below += ys().filter(|y| *y <= 0.0).count();
            // Bars of the smallest value, and values of zero below it, need height to be seen.
            let room = if chart.kind == ChartKind::Bars || lo <= 0.0 { 0.5 } else { 1.0 };
            Scale::log(positive * room, hi, true)
        } else if chart.kind == ChartKind::Step && lo >= 0.0 && hi <= 1.0 && hi > 0.5 {
            Scale::linear(0.0, 1.0, 5, true)
        } else if chart.kind == ChartKind::Step && lo >= 0.0 && hi == 100.0 {
            // A distribution in percent that ends at 100.
            Scale::linear(0.0, 100.0, 5, true)
        } else {
            // Nearly equal values must not look different.
            let (least, most) = span(points().map(|p| p.y));
            let noise = chart.kind == ChartKind::Lines && most - least < 0.02 * most;
            let from_zero = chart.kind == ChartKind::Bars || lo >= 0.0 && (lo < 0.6 * hi || noise);
            let to_zero = chart.kind == ChartKind::Bars && hi < 0.0;
            Scale::linear(if from_zero { lo.min(0.0) } else { lo }, if to_zero { 0.0 } else { hi }, 5, true)
        };

        Self { chart, size, looks: looks(chart, id), across, up, below }
    }

    /// The elements of the figure, and its height.
    pub(super) fn draw(&self) -> (String, f64) {
        let (width, height) = self.size.units();
        let mut paint = Paint::default();
        let hatched: Vec<&Look> = self.looks.iter().filter(|look| look.style == SeriesStyle::Published).collect();
        if !hatched.is_empty() && self.chart.kind == ChartKind::Bars {
            paint.out.push_str("<defs>\n");
            hatched.iter().for_each(|look| paint.hatch(look));
            paint.out.push_str("</defs>\n");
        }

        let labels: Vec<String> = self.up.ticks.iter().map(|t| self.up.tick(*t)).collect();
        let left = labels.iter().map(|l| text_width(l, SMALL)).fold(0.0, f64::max) + 14.0;
        let direct = self.direct_labels(height);
        let right = match &direct {
            Some(ends) => ends.iter().map(|(_, name)| text_width(name, SMALL) * BOLD).fold(0.0, f64::max) + 12.0,
            None => self.last_label() / 2.0 + 2.0,
        };
        let left = self.left_of_slanted(left, width - right);
        let mut area = Area { left, right: width - right, top: 12.0, bottom: 0.0 };
        if direct.is_none() {
            area.top += self.legend(&mut paint, area.top, width);
        }
        if !self.chart.y_label.is_empty() || self.up.exponent != 0 {
            let label = with_exponent(&self.chart.y_label, self.up.exponent);
            paint.text("axis-title", (4.0, area.top + 9.0), "start", SMALL, &fit(&label, width - 8.0));
            area.top += 22.0;
        } else {
            area.top += 4.0;
        }
        area.bottom = area.top + height - 110.0;

        for (tick, label) in self.up.ticks.iter().zip(&labels) {
            let y = area.y(self.up.at(*tick));
            paint.line("grid", (area.left, y), (area.right, y));
            paint.text("tick", (area.left - 7.0, y + 4.0), "end", SMALL, label);
        }
        let below_axis = self.x_axis(&mut paint, &area);

        if self.chart.series.iter().all(|s| s.points.is_empty()) {
            let middle = ((area.left + area.right) / 2.0, (area.top + area.bottom) / 2.0);
            paint.text("tick", middle, "middle", FONT, "no data");
        }
        match self.chart.kind {
            ChartKind::Bars => self.bars(&mut paint, &area),
            ChartKind::Lines | ChartKind::Step | ChartKind::Heat => self.curves(&mut paint, &area),
        }
        let zero = if self.chart.kind == ChartKind::Bars { area.y(self.up.base()) } else { area.bottom };
        paint.line("axis", (area.left, zero), (area.right, zero));
        if let Some(ends) = direct {
            for ((share, name), look) in ends.iter().zip(&self.looks) {
                let class = format!("label k{}", look.place % super::paint::COLOURS);
                paint.text(&class, (area.right + 8.0, area.y(*share) + 4.0), "start", SMALL, name);
            }
        }

        let mut end = area.bottom + below_axis;
        if !self.chart.x_label.is_empty() || self.exponent_across() != 0 {
            let label = with_exponent(&self.chart.x_label, self.exponent_across());
            let middle = (area.left + area.right) / 2.0;
            paint.text("axis-title", (middle, end + 14.0), "middle", SMALL, &fit(&label, width - 8.0));
            end += 20.0;
        }
        if self.below > 0 {
            let note = format!("values of 0 or below ({}) lie on the edge of the logarithmic axis", self.below);
            paint.text("tick", (width - 8.0, end + 14.0), "end", TINY, &fit(&note, width - 8.0));
            end += 18.0;
        }
        (paint.out, end + 6.0)
    }

    /// Width of the last label of an axis of numbers, and at least of a mark.
    fn last_label(&self) -> f64 {
        let Across::Numbers(scale) = &self.across else { return 24.0 };
        scale.ticks.last().map_or(24.0, |tick| text_width(&scale.tick(*tick), SMALL)).max(24.0)
    }

    fn exponent_across(&self) -> i32 {
        if let Across::Numbers(scale) = &self.across { scale.exponent } else { 0 }
    }

    /// Draws the legend and returns its height. A single series without a name needs none.
    fn legend(&self, paint: &mut Paint, top: f64, width: f64) -> f64 {
        let named = self.chart.series.iter().any(|s| !s.name.is_empty());
        if !named {
            return 0.0;
        }
        const LINE: f64 = 20.0;
        let swatch = if self.chart.kind == ChartKind::Bars { 14.0 } else { 30.0 };
        let (mut x, mut y) = (4.0, top);
        let names = text::apart(self.chart.series.iter().map(|series| &*series.name), LONGEST + 10);
        for ((series, look), name) in self.chart.series.iter().zip(&self.looks).zip(names) {
            let needed = swatch + 6.0 + text_width(&name, SMALL) + 18.0;
            if x > 4.0 && x + needed - 18.0 > width {
                (x, y) = (4.0, y + LINE);
            }
            if self.chart.kind == ChartKind::Bars {
                paint.rect(look, x, y - 1.0, swatch, 11.0, "");
            } else {
                let middle = y + 4.5;
                paint.path(look, &format!("M{} {}H{}", Px(x), Px(middle), Px(x + swatch)), "");
                if self.marked(series) {
                    paint.marker(look, x + swatch / 2.0, middle, "");
                }
            }
            paint.text("label", (x + swatch + 6.0, y + 8.5), "start", SMALL, &name);
            x += needed;
        }
        y - top + LINE + 6.0
    }

    /// Names written where the curves end, if all end together and far enough from each other.
    fn direct_labels(&self, height: f64) -> Option<Vec<(f64, String)>> {
        let series = &self.chart.series;
        if self.chart.kind == ChartKind::Bars || series.len() > 8 {
            return None;
        }
        let (width, _) = self.size.units();
        let ends: Vec<(f64, String)> = series
            .iter()
            .map(|s| {
                let last = s.points.last().filter(|p| self.share(p) > 0.999)?;
                let fits = text_width(&s.name, SMALL) < 0.26 * width && !s.name.is_empty();
                fits.then(|| (self.up.at(last.y), s.name.clone()))
            })
            .collect::<Option<_>>()?;
        let mut shares: Vec<f64> = ends.iter().map(|(share, _)| *share).collect();
        shares.sort_by(f64::total_cmp);
        let apart = 1.3 * SMALL / (height - 110.0);
        shares.windows(2).all(|w| w[1] - w[0] > apart).then_some(ends)
    }

    /// Place of a point along the x axis, 0 to 1; the last category is at 1.
    fn share(&self, point: &Point) -> f64 {
        match (&self.across, &point.x) {
            (Across::Numbers(scale), X::Number(x)) => scale.at(*x),
            (Across::Categories { names, of }, _) => {
                let at = of.get(&category(point)).copied().unwrap_or(0);
                if names.len() > 1 { at as f64 / (names.len() - 1) as f64 } else { 1.0 }
            }
            _ => 0.0,
        }
    }

    /// Room between the ends of the x axis and the first and last mark.
    fn inset(&self, area: &Area) -> f64 {
        match &self.across {
            Across::Categories { names, .. } => area.width() / names.len().max(1) as f64 / 2.0,
            Across::Numbers(_) if self.chart.kind == ChartKind::Lines => 8.0,
            Across::Numbers(_) => 0.0,
        }
    }

    fn x(&self, point: &Point, area: &Area) -> f64 {
        if let Across::Categories { names, .. } = &self.across
            && names.len() == 1
        {
            return (area.left + area.right) / 2.0;
        }
        let inset = self.inset(area);
        area.left + inset + self.share(point) * (area.width() - 2.0 * inset)
    }

    /// The left end of the x axis from which slanted labels do not leave the paper: `left`, or up to a quarter of the
    /// way to `right`.
    fn left_of_slanted(&self, left: f64, right: f64) -> f64 {
        let Across::Categories { names, .. } = &self.across else { return left };
        let count = names.len() as f64;
        let widths: Vec<f64> = apart(names).iter().map(|name| text_width(name, SMALL)).collect();
        if widths.iter().all(|width| *width <= (right - left) / count - SLOT_GAP) {
            return left;
        }
        let least = widths.iter().enumerate().map(|(i, width)| {
            let share = (i as f64 + 0.5) / count;
            (width * SLANT_ACROSS + SMALL - right * share) / (1.0 - share)
        });
        least.fold(left, f64::max).min(left.max(0.25 * right))
    }

    /// Draws ticks and labels and returns the height they take below the axis.
    fn x_axis(&self, paint: &mut Paint, area: &Area) -> f64 {
        let inset = self.inset(area);
        let at = |share: f64| area.left + inset + share * (area.width() - 2.0 * inset);
        match &self.across {
            Across::Numbers(scale) => {
                let mut free = f64::MIN;
                for tick in &scale.ticks {
                    let (x, label) = (at(scale.at(*tick)), scale.tick(*tick));
                    paint.line("axis", (x, area.bottom), (x, area.bottom + 4.0));
                    let half = text_width(&label, SMALL) / 2.0;
                    if x - half > free {
                        paint.text("tick", (x, area.bottom + 18.0), "middle", SMALL, &label);
                        free = x + half + 6.0;
                    }
                }
                24.0
            }
            Across::Categories { names, .. } => {
                let slot = area.width() / names.len().max(1) as f64;
                let names = apart(names);
                let widest = names.iter().map(|name| text_width(name, SMALL)).fold(0.0, f64::max);
                let middle = |i: usize| area.left + slot * (i as f64 + 0.5);
                if widest <= slot - SLOT_GAP {
                    for (i, name) in names.iter().enumerate() {
                        paint.text("tick", (middle(i), area.bottom + 18.0), "middle", SMALL, name);
                    }
                    return 24.0;
                }
                // Slanted labels are as far apart as their slots, seen along the slope.
                let every = (SMALL * 1.2 / (SLANT_DOWN * slot)).ceil().max(1.0) as usize;
                let mut lowest: f64 = 0.0;
                for (i, name) in names.iter().enumerate().step_by(every) {
                    // A label reaches down and to the left of its slot; it must not leave the paper.
                    let room = (middle(i) - SMALL) / SLANT_ACROSS;
                    let name = if text_width(name, SMALL) > room { fit(name, room) } else { name.clone() };
                    lowest = lowest.max(text_width(&name, SMALL) * SLANT_DOWN);
                    paint.rotated_text("tick", (middle(i) + 4.0, area.bottom + 14.0), -40, SMALL, &name);
                }
                lowest + 24.0
            }
        }
    }

    fn bars(&self, paint: &mut Paint, area: &Area) {
        let Across::Categories { names, of } = &self.across else { return };
        let slot = area.width() / names.len().max(1) as f64;
        let group = (slot * 0.8).min(slot - 2.0).max(slot * 0.5);
        let each = (group / self.chart.series.len().max(1) as f64).min(64.0);
        let start = (slot - each * self.chart.series.len() as f64) / 2.0;
        let bar = (each - 2.0).max(each * 0.8);
        let zero = area.y(self.up.base());
        for (n, (series, look)) in self.chart.series.iter().zip(&self.looks).enumerate() {
            for point in &series.points {
                let Some(&i) = of.get(&category(point)) else { continue };
                let x = area.left + slot * i as f64 + start + each * n as f64 + (each - bar) / 2.0;
                let y = area.y(self.up.at(point.y));
                paint.rect(look, x, y.min(zero), bar, (y - zero).abs(), &self.tip(series, point));
                let mut end = y;
                if let Some((low, high)) = self.ends(point, area) {
                    paint.error_bar(x + bar / 2.0, low, high, CAP.min(bar / 2.0));
                    end = if point.y < 0.0 { low } else { high };
                }
                let label = short(point.y);
                if text_width(&label, TINY) <= each + 1.0 {
                    let y = if point.y < 0.0 && !self.chart.y_log { end + 13.0 } else { end - 4.0 };
                    paint.text("value", (x + bar / 2.0, y), "middle", TINY, &label);
                }
            }
        }
    }

    fn curves(&self, paint: &mut Paint, area: &Area) {
        let at = |point: &Point| (self.x(point, area), area.y(self.up.at(point.y)));
        for (series, look) in self.chart.series.iter().zip(&self.looks) {
            // What falls within one unit of the point before is not drawn again if the series is dense.
            let least = if series.points.len() > 10 * MARKED { 1.0 } else { 0.05 };
            let mut data = String::new();
            let mut last = (0.0, 0.0);
            for (i, point) in series.points.iter().enumerate() {
                let (x, y) = at(point);
                let near = (x - last.0).abs() < least && (y - last.1).abs() < least;
                if i > 0 && i + 1 < series.points.len() && near {
                    continue;
                }
                let (px, py) = (Px(x), Px(y));
                let _ = match (i, self.chart.kind) {
                    (0, _) => write!(data, "M{px} {py}"),
                    (_, ChartKind::Step) => write!(data, "H{px}V{py}"),
                    _ => write!(data, "L{px} {py}"),
                };
                last = (x, y);
            }
            if series.points.len() > 1 {
                paint.path(look, &data, &series.name);
            }
        }
        // A telephone has no pointer.
        let has_pointer = self.size == Size::Wide;
        for series in self.chart.series.iter().filter(|series| has_pointer && !self.marked(series)) {
            let every = series.points.len().div_ceil(TIPS);
            for point in series.points.iter().step_by(every.max(1)) {
                let (x, y) = at(point);
                paint.tip(x, y, &self.tip(series, point));
            }
        }
        for (series, look) in self.chart.series.iter().zip(&self.looks).filter(|(s, _)| self.marked(s)) {
            for point in &series.points {
                let (x, y) = at(point);
                if let Some((low, high)) = self.ends(point, area) {
                    paint.error_bar(x, low, high, CAP);
                }
                paint.marker(look, x, y, &self.tip(series, point));
            }
        }
    }

    /// Where the error bar of a point ends, low and high, if it has one.
    fn ends(&self, point: &Point, area: &Area) -> Option<(f64, f64)> {
        point.interval.map(|i| (area.y(self.up.at(i.low)), area.y(self.up.at(i.high))))
    }

    fn marked(&self, series: &Series) -> bool {
        series.points.len() == 1 || (self.chart.kind == ChartKind::Lines && series.points.len() <= MARKED)
    }

    fn tip(&self, series: &Series, point: &Point) -> String {
        let interval = point.interval.map_or_else(String::new, |i| format!(" ({})", format::interval(i)));
        let at = match point.x {
            X::Number(x) if x.fract() != 0.0 => format::six(x),
            _ => category(point),
        };
        format!("{}, {at}: {}{interval}", series.name, format::number(point.y))
    }
}

/// Names of categories as they stand below the axis.
fn apart(names: &[String]) -> Vec<String> {
    text::apart(names.iter().map(String::as_str), LONGEST)
}

/// `label`, cut to the width `room`.
pub(super) fn fit(label: &str, room: f64) -> String {
    // No letter is narrower than `i`. Starting from this bound, few letters are cut one by one.
    let most = 1 + (room / text_width("i", SMALL).max(1.0)) as usize;
    let longest = label.chars().count().min(most.max(1));
    let cut = (1..=longest).rev().map(|width| text::elide(label, width));
    cut.into_iter().find(|cut| text_width(cut, SMALL) <= room).unwrap_or_default()
}

pub(super) fn category(point: &Point) -> String {
    match &point.x {
        X::Label(label) => label.clone(),
        X::Number(x) => x.to_string(),
    }
}

/// Three digits are enough for the label of a bar.
pub(super) fn short(value: f64) -> String {
    let whole = value.fract() == 0.0 && value.abs() < 1000.0;
    let text = if whole || value.abs() >= 1000.0 { format::grouped(value, 0) } else { format::significant(value, 3) };
    text.strip_prefix('-').map_or(text.clone(), |rest| format!("−{rest}"))
}

fn with_exponent(label: &str, exponent: i32) -> String {
    match exponent {
        0 => label.to_owned(),
        _ => format!("{label} (×10{})", superscript(exponent)).trim_start().to_owned(),
    }
}

fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (lo, hi) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
    if lo <= hi { (lo, hi) } else { (0.0, 1.0) }
}

fn axis_of_numbers<I: Iterator<Item = f64>>(xs: impl Fn() -> I, log: bool, size: Size, below: &mut usize) -> Scale {
    let (lo, hi) = span(xs());
    let positive = xs().filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min);
    if log && let Some(powers) = powers_of_two(xs()) {
        return Scale::powers_of_two(powers, lo == 0.0);
    }
    if log && positive.is_finite() {
        *below += xs().filter(|x| *x <= 0.0).count();
        return Scale::log(if lo <= 0.0 { positive * 0.5 } else { positive }, hi, false);
    }
    let count = if size == Size::Wide { 8 } else { 4 };
    let lo = if lo > 0.0 && lo < 0.15 * hi { 0.0 } else { lo };
    // Whole numbers, such as those of events, have no ticks between them.
    let whole = xs().all(|x| x.fract() == 0.0) && hi - lo >= 1.0;
    let count = if whole { count.min((hi - lo) as usize) } else { count };
    Scale::linear(lo, hi, count, false)
}

/// The numbers above zero in order, if they are a few powers of two, and no number is below zero.
fn powers_of_two(xs: impl Iterator<Item = f64>) -> Option<Vec<f64>> {
    let mut powers: Vec<f64> = xs.filter(|x| *x != 0.0).collect();
    powers.sort_by(f64::total_cmp);
    powers.dedup();
    let are_powers = powers.iter().all(|x| *x > 0.0 && x.log2().fract() == 0.0);
    ((2..=MOST_POWERS).contains(&powers.len()) && are_powers).then_some(powers)
}

/// The n-th published and the n-th simulated series share a colour; plain ones follow.
fn looks(chart: &Chart, id: &str) -> Vec<Look> {
    let count = |style| chart.series.iter().filter(|s| s.style == style).count();
    let (published, simulated) = (count(SeriesStyle::Published), count(SeriesStyle::Simulated));
    let mut next = [0, 0, published.max(simulated)];
    chart
        .series
        .iter()
        .enumerate()
        .map(|(i, series)| {
            let slot = &mut next[match series.style {
                SeriesStyle::Published => 0,
                SeriesStyle::Simulated => 1,
                SeriesStyle::Plain | SeriesStyle::Points => 2,
            }];
            let place = *slot;
            *slot += 1;
            Look { place, style: series.style, hatch: format!("{id}h{i}"), dash_is_style: published > 0 }
        })
        .collect()
}
