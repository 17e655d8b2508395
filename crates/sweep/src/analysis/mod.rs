// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result document of a study: how its figures depend on the factors, how much each factor matters, and what host
//! memory gains. It has few figures; the table of points has all of them.

mod columns;
mod heat;
mod indices;

use crate::error::SweepError;
use crate::folder::Found;
use crate::plan::Plan;
use columns::{Column, Columns};
use indices::Estimate;
use readpath_config::study::{Design, Factor, Levels, Scale};
use readpath_results::metric::{self, Better};
use readpath_results::{Case, Chart, ChartKind, Document, Interval, Metric, Note, NoteKind, Origin, SeriesStyle, X};
use serde_json::json;

/// Studies of more points have no row for each in their document.
const MOST_ROWS: u64 = 64;
const MOST_LINES: u64 = 8;
/// Charts of one kind at most.
const MOST_CHARTS: usize = 12;
/// Points of a line at most: of more, every second, third and so on is drawn.
const MOST_POINTS: usize = 1000;
/// Parts of a range over which figures of sampled points are averaged.
const PARTS: usize = 8;

/// The document of a study; `process` is left to the caller.
///
/// # Errors
/// When a segment cannot be read again.
pub fn document(plan: &Plan, found: &mut Found) -> Result<Document, SweepError> {
    found.places.sort_unstable();
    let study = &plan.study;
    let mut doc = Document::new(&study.name, &study.title);
    doc.description = study.description.clone();
    doc.seed = study.seed;
    doc.simulated_ios = found.ios;
    let factors: Vec<_> = study.factors.iter().map(|factor| factor.keys.clone()).collect();
    let set: serde_json::Map<String, serde_json::Value> =
        study.set.iter().map(|one| (one.key.clone(), json!(one.value.text()))).collect();
    doc.configuration = json!({
        "study": study.file, "plan": plan.header().plan, "design": study.design.name(), "points": plan.count(),
        "factors": factors, "set": set,
    });
    let (count, failed) = (plan.count(), found.failed());
    if failed > 0 {
        doc.note(Note::remark(format!("{failed} of {count} points failed; failed.csv says which, and why")));
    }
    if let Some(columns) = Columns::of(found)? {
        let answer = Answer { plan, columns: &columns, whole: failed == 0 && found.count() == count };
        answer.fill(&mut doc).map_err(|e| SweepError::Study(format!("{}: {e}", study.file)))?;
    } else if failed < count {
        doc.verdict.push(Note::new(NoteKind::NoDifference, "No figure differs between the points."));
    }
    Ok(doc)
}

/// A study and the figures of its document.
struct Answer<'a> {
    plan: &'a Plan,
    columns: &'a Columns,
    /// No point is missing: the index of a value is that of its point.
    whole: bool,
}

type Added = Result<(), readpath_results::Error>;

/// What a factor is called.
fn name(factor: &Factor) -> String {
    factor.keys.join(" + ")
}

impl Answer<'_> {
    fn fill(&self, doc: &mut Document) -> Added {
        self.rows_of_points(doc)?;
        doc.verdict.extend(self.best());
        if !self.whole {
            let message = "How much each factor matters is not computed: that needs the figures of all points.";
            doc.note(Note::remark(message.to_owned()));
            return self.front(doc);
        }
        self.lines(doc)?;
        match self.plan.study.design {
            Design::Cross => {
                self.maps(doc)?;
                self.shares(doc)?;
            }
            Design::Sobol { second_order, .. } => self.sobol(doc, second_order)?,
            Design::Morris { .. } => self.morris(doc)?,
            Design::LatinHypercube { .. } => {}
        }
        let most = self.matters_most(doc);
        doc.verdict.extend(most);
        self.front(doc)
    }

    /// The best point by the first figure, and how far the points are apart.
    fn best(&self) -> Option<Note> {
        let column = self.columns.shown.first()?;
        let less = column.metric.definition().is_some_and(|d| d.better == Better::Less);
        let at = |better: bool| {
            let values = column.values.iter().enumerate();
            let found = if better {
                values.min_by(|a, b| a.1.total_cmp(b.1))
            } else {
                values.max_by(|a, b| a.1.total_cmp(b.1))
            };
            found.map(|(index, _)| index)
        };
        let (best, worst) = (at(less)?, at(!less)?);
        let pairs =
            self.plan.study.keys().zip(&self.columns.settings[best]).map(|(key, value)| format!("{key}={value}"));
        let settings = pairs.collect::<Vec<_>>().join(", ");
        let shown = |index: usize| shown(column.values[index]);
        let memory = match self.columns.memory.as_ref().map(|memory| memory.values[best]) {
            Some(bytes) if bytes > 0.0 => format!(", with {:.1} MiB of host memory", bytes / f64::from(1 << 20)),
            _ => String::new(),
        };
        let unit = column.metric.unit();
        let text = format!(
            "Of {} points {settings} is the best in {}: {} {unit}{memory}; the worst has {}.",
            column.values.len(),
            column.title(),
            shown(best),
            shown(worst)
        );
        let note = Note::new(NoteKind::Gain, text).of_case(settings).with(column.metric.name(), column.values[best]);
        Some(note.with("worst", column.values[worst]))
    }

    /// The factor that matters most for the first figure, with its interval where there is one.
    fn matters_most(&self, doc: &Document) -> Option<Note> {
        let column = self.columns.shown.first()?;
        let of = |metrics: [(Metric, Option<Metric>, &'static str); 3]| {
            metrics.into_iter().find_map(|(metric, error, verb)| {
                let is = |row: &&readpath_results::Row| row.metric == metric && *row.case == *column.title();
                let most = doc.rows.iter().filter(is).max_by(|a, b| a.simulated.total_cmp(&b.simulated))?;
                let half = error.and_then(|error| doc.find(&most.case, &most.variant, &error)).map(|row| row.simulated);
                Some((most, half, verb))
            })
        };
        let (most, half, verb) = of([
            (metric::TOTAL_EFFECT, Some(metric::TOTAL_EFFECT_ERROR), "has a part in"),
            (metric::VARIANCE_SHARE, None, "alone explains"),
            (metric::MEAN_EFFECT, None, "changes it by"),
        ])?;
        // An interval is never shown as nothing, and the value to the same digit.
        let digits = usize::from(half.is_some_and(|half| half < 0.5));
        let half = half.map_or_else(String::new, |half| format!(" ± {:.digits$}", half.max(0.1)));
        let what = if most.metric == metric::MEAN_EFFECT { "of its mean" } else { "of its variance" };
        let (factor, value) = (&most.variant, most.simulated);
        let text = format!("{factor} matters most for it: it {verb} {value:.digits$}{half} % {what}.");
        Some(Note::new(NoteKind::Gain, text).of_variant(factor).with(most.metric.name(), value))
    }

    /// A row for each figure of each setting. Samples may have equal settings; their seeds and figures are then equal
    /// too.
    fn rows_of_points(&self, doc: &mut Document) -> Added {
        if self.columns.settings.len() as u64 > MOST_ROWS {
            doc.note(Note::remark(format!(
                "The {} points are in points.csv, a row for each.",
                self.columns.settings.len()
            )));
            return Ok(());
        }
        let all = &self.columns.settings;
        for (index, settings) in all.iter().enumerate().filter(|(i, settings)| !all[..*i].contains(settings)) {
            let pairs = self.plan.study.keys().zip(settings).map(|(key, value)| format!("{key}={value}"));
            let case = Case::from(pairs.collect::<Vec<_>>().join(", "));
            for column in self.columns.shown.iter().chain(&self.columns.memory) {
                let case = if column.part.is_empty() { case.clone() } else { case.jobs(&column.part) };
                doc.row(case, "", column.metric.clone(), column.values[index], Origin::Predicted)?;
            }
            let equal = all.iter().filter(|other| *other == settings).count();
            if equal > 1 {
                doc.row(case, "", metric::POINTS, equal as f64, Origin::Predicted)?;
            }
        }
        Ok(())
    }

    /// The level of a factor at a point: in a crossed design its level, otherwise the part of its range.
    fn level(&self, factor: usize, index: usize) -> usize {
        let factors = &self.plan.study.factors;
        match self.plan.study.design {
            Design::Cross => {
                let behind: u64 = factors[factor + 1..].iter().map(Factor::steps).product();
                (index as u64 / behind % factors[factor].steps()) as usize
            }
            _ => self.part(factor, index),
        }
    }

    fn part(&self, factor: usize, index: usize) -> usize {
        let factors = &self.plan.study.factors;
        let at: usize = factors[..factor].iter().map(|factor| factor.keys.len()).sum();
        let settings = &self.columns.settings[index];
        match &factors[factor].levels {
            Levels::Listed(levels) => {
                let is = |level: &Vec<readpath_config::study::Setting>| {
                    level.iter().zip(&settings[at..]).all(|(a, b)| a.plain() == *b)
                };
                levels.iter().position(is).unwrap_or(0)
            }
            &Levels::Range { from, to, scale, .. } => {
                let value = number(&settings[at]).unwrap_or(from);
                let place = match scale {
                    Scale::Linear => (value - from) / (to - from),
                    Scale::Log => libm::log(value / from) / libm::log(to / from),
                };
                ((place * PARTS as f64) as usize).min(PARTS - 1)
            }
        }
    }

    /// Places of a factor's levels on an axis, and whether the axis is logarithmic.
    fn places(&self, factor: usize) -> (Vec<X>, bool) {
        let of = &self.plan.study.factors[factor];
        let crossed = self.plan.study.design == Design::Cross;
        let texts: Vec<String> = match &of.levels {
            Levels::Range { .. } if !crossed => {
                (0..PARTS).map(|part| of.at((part as f64 + 0.5) / PARTS as f64)[0].text().to_owned()).collect()
            }
            _ => (0..of.steps())
                .map(|level| of.level(level).iter().map(|one| one.text()).collect::<Vec<_>>().join(", "))
                .collect(),
        };
        let numbers: Option<Vec<f64>> = texts.iter().map(|text| number(text)).collect();
        let log = match &of.levels {
            Levels::Range { scale, .. } => *scale == Scale::Log,
            Levels::Listed(_) => {
                // Such as 64, 256, 1024.
                let wide = |all: &Vec<f64>| all.iter().all(|x| *x > 0.0) && all.last() >= Some(&(16.0 * all[0]));
                numbers.as_ref().is_some_and(wide)
            }
        };
        match numbers {
            Some(numbers) if numbers.windows(2).all(|pair| pair[0] < pair[1]) => {
                (numbers.into_iter().map(X::Number).collect(), log)
            }
            _ => (texts.into_iter().map(X::Label).collect(), false),
        }
    }

    fn chart(&self, id: String, column: &Column, factor: usize, log: bool) -> Chart {
        let key = name(&self.plan.study.factors[factor]);
        let chart = Chart::new(id, format!("{} by {key}", column.title()), ChartKind::Lines);
        let chart = chart.axes(key, column.metric.unit());
        if log { chart.x_log() } else { chart }
    }

    /// How figures depend on factors: all combinations if they are few, else the mean over all other factors.
    fn lines(&self, doc: &mut Document) -> Added {
        let factors = &self.plan.study.factors;
        let across =
            (0..factors.len()).max_by_key(|&i| (self.places(i).0.len(), matches!(self.places(i).0[0], X::Number(_))));
        let Some(across) = across else { return Ok(()) };
        let others: u64 = factors.iter().enumerate().filter(|(i, _)| *i != across).map(|(_, f)| f.steps()).product();
        if self.plan.study.design == Design::Cross && others <= MOST_LINES {
            return self.combinations(doc, across);
        }
        let mut charts = 0;
        for (number, column) in self.columns.shown.iter().enumerate() {
            for factor in 0..factors.len() {
                let (places, log) = self.places(factor);
                if places.len() < 2 || charts == MOST_CHARTS {
                    continue;
                }
                charts += 1;
                let means = indices::means(&column.values, |index| self.level(factor, index));
                let points: Vec<_> = places.into_iter().zip(means).filter(|(_, (_, n))| *n > 0).collect();
                let drawn = Drawn::of(points.len());
                let mut chart = self.chart(format!("effect_{number}_{factor}"), column, factor, log).caption(
                    drawn.told("Mean over the points of each level, whatever the other factors are.".to_owned()),
                );
                let points = drawn.some(points).map(|(x, (mean, _))| (x, mean));
                chart.series("mean", SeriesStyle::Plain, points)?;
                doc.charts.push(chart);
            }
        }
        Ok(())
    }

    fn setting(&self, factor: usize, index: usize) -> String {
        let of = &self.plan.study.factors[factor];
        let level = of.level(self.level(factor, index) as u64);
        of.keys.iter().zip(&level).map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
    }

    fn combinations(&self, doc: &mut Document, across: usize) -> Added {
        let (places, log) = self.places(across);
        let drawn = Drawn::of(places.len());
        for (number, column) in self.columns.shown.iter().enumerate() {
            let mut chart = self.chart(format!("lines_{number}"), column, across, log);
            if drawn.every > 1 {
                chart = chart.caption(drawn.told(String::new()));
            }
            let mut lines: Vec<(String, Vec<(X, f64)>)> = Vec::new();
            for (index, value) in column.values.iter().enumerate() {
                if !drawn.has(self.level(across, index)) {
                    continue;
                }
                let others = self.plan.study.factors.iter().enumerate().filter(|(i, _)| *i != across);
                let line = others.map(|(i, _)| self.setting(i, index)).collect::<Vec<_>>().join(", ");
                let point = (places[self.level(across, index)].clone(), *value);
                match lines.iter_mut().find(|(name, _)| *name == line) {
                    Some((_, points)) => points.push(point),
                    None => lines.push((line, vec![point])),
                }
            }
            for (line, points) in lines {
                let line = if line.is_empty() { "simulated".to_owned() } else { line };
                chart.series(line, SeriesStyle::Plain, points)?;
            }
            doc.charts.push(chart);
        }
        Ok(())
    }

    /// A row and a bar for each factor.
    fn matter(&self, doc: &mut Document, column: &Column, bars: &[Bars], caption: &str) -> Added {
        let case = Case::from(column.title());
        let id = format!("matter_{}_{}", column.metric.name(), doc.charts.len());
        let mut chart = Chart::new(id, format!("What matters for: {}", column.title()), ChartKind::Bars)
            .axes("factor", "%")
            .caption(caption);
        for bars in bars {
            let mut points = Vec::new();
            for (factor, estimate) in self.plan.study.factors.iter().zip(&bars.of_factors) {
                let (key, value, half) = (name(factor), 100.0 * estimate.value, 100.0 * estimate.half);
                doc.row(&case, &key, bars.metric.clone(), value, Origin::Predicted)?;
                if let Some(error) = &bars.error {
                    doc.row(&case, &key, error.clone(), half, Origin::Predicted)?;
                }
                let interval = Interval { low: value - half, high: value + half };
                points.push((key, value, bars.error.is_some().then_some(interval)));
            }
            chart.series_with_bars(bars.called, SeriesStyle::Plain, points)?;
        }
        doc.charts.push(chart);
        Ok(())
    }

    fn shares(&self, doc: &mut Document) -> Added {
        if self.plan.study.factors.len() < 2 {
            return Ok(());
        }
        for column in &self.columns.shown {
            let share = |factor| Estimate {
                value: indices::variance_share(&column.values, |index| self.level(factor, index)),
                half: 0.0,
            };
            let of_factors = (0..self.plan.study.factors.len()).map(share).collect();
            let bars = Bars { metric: metric::VARIANCE_SHARE, error: None, called: "alone", of_factors };
            let caption = "Share of the variance over all points that each factor alone explains. The rest to 100 % is \
                           due to interactions.";
            self.matter(doc, column, &[bars], caption)?;
        }
        Ok(())
    }

    fn sobol(&self, doc: &mut Document, second_order: bool) -> Added {
        let factors = self.plan.study.factors.len();
        let rows = if second_order { 2 * factors + 2 } else { factors + 2 };
        for column in &self.columns.shown {
            let found = indices::sobol(&column.values, factors, rows, self.plan.study.seed);
            let (first, total) = found.into_iter().unzip();
            let (metric, error) = (metric::FIRST_ORDER, Some(metric::FIRST_ORDER_ERROR));
            let first = Bars { metric, error, called: "alone", of_factors: first };
            let (metric, error) = (metric::TOTAL_EFFECT, Some(metric::TOTAL_EFFECT_ERROR));
            let total = Bars { metric, error, called: "with others", of_factors: total };
            let caption = "Sobol's indices: the share of the variance that each factor explains alone, and the share \
                           that it has a part in; with their 95 % intervals from resampled base samples.";
            self.matter(doc, column, &[first, total], caption)?;
        }
        Ok(())
    }

    fn morris(&self, doc: &mut Document) -> Added {
        for column in &self.columns.shown {
            let mean = column.values.iter().map(|y| y.abs()).sum::<f64>() / column.values.len() as f64;
            let factors = self.plan.study.factors.len();
            let effects = indices::morris(&column.values, factors, |index| self.plan.changed(index as u64));
            let estimate = |value: f64| Estimate { value: value / mean, half: 0.0 };
            let (sizes, spreads) = effects.into_iter().map(|(size, spread)| (estimate(size), estimate(spread))).unzip();
            let size = Bars { metric: metric::MEAN_EFFECT, error: None, called: "mean effect", of_factors: sizes };
            let spread = Bars { metric: metric::EFFECT_SPREAD, error: None, called: "spread", of_factors: spreads };
            let caption = "Morris's effects of half the levels of each factor, in percent of the mean: their size, and \
                           how much they differ with where the other factors are.";
            self.matter(doc, column, &[size, spread], caption)?;
        }
        Ok(())
    }

    /// The best figure for each amount of host memory.
    fn front(&self, doc: &mut Document) -> Added {
        let Some(memory) = &self.columns.memory else { return Ok(()) };
        for (number, column) in self.columns.shown.iter().enumerate() {
            let less = column.metric.definition().is_some_and(|d| d.better == Better::Less);
            let gain: Vec<f64> = column.values.iter().map(|y| if less { -y } else { *y }).collect();
            let front = indices::front(&memory.values, &gain);
            if front.len() < 2 {
                continue;
            }
            let drawn = Drawn::of(front.len());
            let points = drawn.some(front).map(|i| (memory.values[i] / f64::from(1 << 20), column.values[i]));
            let mut chart = Chart::new(
                format!("front_{number}"),
                format!("{}, for so much host memory", column.title()),
                ChartKind::Lines,
            )
            .axes("host memory, MiB", column.metric.unit())
            .caption(drawn.told(
                "Points that no other beats in both: with less memory and as good, or better with as much.".to_owned(),
            ));
            chart.series("best", SeriesStyle::Plain, points)?;
            doc.charts.push(chart);
        }
        Ok(())
    }
}

/// Which points of a line are drawn.
struct Drawn {
    points: usize,
    every: usize,
}

impl Drawn {
    fn of(points: usize) -> Self {
        Drawn { points, every: points.div_ceil(MOST_POINTS).max(1) }
    }

    /// Whether the point with this number is drawn. Both ends are.
    fn has(&self, point: usize) -> bool {
        point.is_multiple_of(self.every) || point + 1 == self.points
    }

    fn some<T>(&self, points: Vec<T>) -> impl Iterator<Item = T> {
        points.into_iter().enumerate().filter(|(i, _)| self.has(*i)).map(|(_, point)| point)
    }

    /// A caption that says so.
    fn told(&self, mut caption: String) -> String {
        if self.every > 1 {
            let gap = if caption.is_empty() { "" } else { " " };
            caption += &format!("{gap}One point of {} is drawn.", self.every);
        }
        caption
    }
}

/// A figure of each factor.
struct Bars {
    metric: Metric,
    /// The metric of half of its interval.
    error: Option<Metric>,
    called: &'static str,
    of_factors: Vec<Estimate>,
}

/// A figure with three digits at least.
fn shown(value: f64) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|x: &f64| x.is_finite())
}
