// SPDX-License-Identifier: MIT OR Apache-2.0
//! The least value of a key with which a workload is served as well as by another variant. The search is written as if
//! all runs had been made; a missing run becomes a further point, and the search begins again with it. So each round
//! depends on figures alone, and its runs can be made anywhere.

use super::{Basis, Seeds, Trial, answer};
use crate::question::{Answer, AskError, Done, Point, Question, Shown};
use crate::runs::ExperimentError;
use crate::unused_hpb;
use readpath_config::experiment::Variant;
use readpath_config::{ConfigFileError, GivenKey};
use readpath_results::metric::Better;
use readpath_results::{Error, Metric, Note, NoteKind, Row};

/// Values that are tried at a time, whatever the number of threads: the answer must not depend on it.
const AT_A_TIME: u64 = 3;

/// The values that may be the answer, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    /// The least value.
    pub from: u64,
    /// The largest value.
    pub to: u64,
    /// Distance of the values.
    pub step: u64,
}

impl Grid {
    fn value(self, number: u64) -> u64 {
        self.to.min(self.from.saturating_add(number.saturating_mul(self.step)))
    }

    /// The number of the largest value.
    fn last(self) -> u64 {
        (self.to - self.from).div_ceil(self.step)
    }
}

/// What the search is for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The key.
    pub key: String,
    /// Its values; there are two at least.
    pub grid: Grid,
    /// The variant to be reached.
    pub against: Variant,
    /// Keys of every variant that is tried, in addition to the key of the search.
    pub with: Vec<GivenKey>,
    /// Name of the metric that is compared.
    pub metric: String,
    /// How much worse still counts as good, in percent.
    pub within: f64,
    /// Only rows of whole cases count: parts are what ran before the trace.
    pub whole_only: bool,
}

/// The search for the least value.
#[derive(Clone, Debug)]
pub struct BreakEven {
    basis: Basis,
    wanted: Wanted,
    seeds: Seeds,
    title: String,
    points: Vec<Point>,
}

/// What the search found.
struct Found {
    /// The value, or else the largest.
    value: u64,
    /// All values that were tried.
    tried: Vec<u64>,
    /// The answer in a sentence.
    sentence: String,
}

/// Why the search has found nothing yet.
enum Stop {
    /// It needs runs with these values.
    Needs(Vec<u64>),
    /// It has no answer.
    Wrong(String),
}

impl BreakEven {
    /// The search on a workload called `workload`.
    ///
    /// # Errors
    /// When a run cannot be planned, or the variant to be reached was to use HPB but runs without it.
    pub fn new(basis: Basis, wanted: Wanted, seeds: Seeds, workload: &str) -> Result<Self, AskError> {
        let title = format!("{workload}: the least {} that is as good as {}", wanted.key, wanted.against.name);
        let mut question = BreakEven { basis, wanted, seeds, title, points: Vec::new() };
        let Wanted { grid, against, .. } = &question.wanted;
        let mut first = vec![against.clone()];
        for value in [grid.value(0), grid.value(grid.last())] {
            first.push(question.variant(value)?);
        }
        let points = question.basis.points(&first, seeds)?;
        let name = &question.wanted.against.name;
        let unused = points.iter().filter(|point| point.variant() == name).find_map(unused_hpb::of_point);
        if let Some(why) = unused {
            return Err(AskError::Wrong(format!("--against {name}: {why}")));
        }
        question.points = points;
        Ok(question)
    }

    /// What the variant with a value is called.
    fn name(&self, value: u64) -> String {
        format!("{}={value}", self.wanted.key)
    }

    fn variant(&self, value: u64) -> Result<Variant, AskError> {
        let key = GivenKey::new(&*self.wanted.key, value.to_string(), "--key");
        let keys: Vec<GivenKey> = [key].into_iter().chain(self.wanted.with.iter().cloned()).collect();
        let variant: Result<Variant, ConfigFileError> = Variant::of_keys(&self.name(value), &keys);
        Ok(variant.map_err(ExperimentError::from)?)
    }

    /// What the search finds with the runs that there are.
    fn search(&self, trials: &[Trial]) -> Result<Found, Stop> {
        let Wanted { key, grid, against, metric, .. } = &self.wanted;
        let runs = Runs { trials, wanted: &self.wanted };
        let against = &against.name;
        let goal = runs.mean(against)?;
        let unit = match runs.unit(against) {
            unit if unit.is_empty() => unit,
            unit => format!(" {unit}"),
        };
        let is_good = |number: u64| runs.is_good(&self.name(grid.value(number)));
        let (mut bad, mut good) = (0, grid.last());
        let to = grid.value(good);
        let mut all = vec![grid.value(bad), to];
        if is_good(bad)? {
            good = 0;
        } else if !is_good(good)? {
            let reached = shown(runs.mean(&self.name(to))?);
            let sentence = format!(
                "no {key} up to {to}: even with {to} {metric} is {reached}{unit}; with {against} it is {}",
                shown(goal)
            );
            return Ok(Found { value: to, tried: all, sentence });
        }
        while good > bad + 1 {
            let span = u128::from(good - bad);
            let part = |k: u64| bad + (span * u128::from(k) / u128::from(AT_A_TIME + 1)) as u64;
            let mut tried: Vec<u64> = (1..=AT_A_TIME).map(part).filter(|&number| number > bad).collect();
            tried.dedup();
            let missing = tried.iter().map(|&number| grid.value(number)).filter(|&v| !runs.has(&self.name(v)));
            let missing: Vec<u64> = missing.collect();
            if !missing.is_empty() {
                return Err(Stop::Needs(missing));
            }
            all.extend(tried.iter().map(|&number| grid.value(number)));
            for number in tried {
                if is_good(number)? {
                    good = number;
                    break;
                }
                bad = number;
            }
        }
        let value = grid.value(good);
        let reached = shown(runs.mean(&self.name(value))?);
        let below = match good {
            0 => "it is the least that was looked at".to_owned(),
            _ => {
                let below = grid.value(good - 1);
                format!("with {below} it is {}", shown(runs.mean(&self.name(below))?))
            }
        };
        let sentence = format!(
            "{key}={value} is as good as {against}: {metric} is {reached}{unit}, and {} with {against}; {below}",
            shown(goal)
        );
        Ok(Found { value, tried: all, sentence })
    }
}

impl Question for BreakEven {
    type Figures = Trial;

    fn title(&self) -> String {
        self.title.clone()
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn figures(&self, shown: Shown<'_>) -> Result<Trial, Error> {
        self.basis.trial(shown)
    }

    fn more(&self, done: &[Done<Trial>]) -> Result<Vec<Point>, AskError> {
        match self.search(&trials(done)) {
            Ok(_) => Ok(Vec::new()),
            Err(Stop::Wrong(why)) => Err(AskError::Wrong(why)),
            Err(Stop::Needs(values)) => {
                let variants = values.into_iter().map(|value| self.variant(value)).collect::<Result<Vec<_>, _>>()?;
                self.basis.points(&variants, self.seeds)
            }
        }
    }

    fn answer(&self, done: &[Done<Trial>]) -> Result<Answer, AskError> {
        let mut trials = trials(done);
        let found = match self.search(&trials) {
            Ok(found) => found,
            Err(Stop::Wrong(why)) => return Err(AskError::Wrong(why)),
            Err(Stop::Needs(_)) => unreachable!("an answer is asked for when no further point is needed"),
        };
        let against = &self.wanted.against.name;
        // Only the two important variants are shown over time.
        let timed = [&self.name(found.value), against];
        trials.iter_mut().filter(|trial| !timed.contains(&&trial.variant)).for_each(|trial| trial.over_time.clear());
        // The reference comes first, then values in ascending order.
        let mut values = found.tried;
        values.sort_unstable();
        let variants: Vec<String> =
            [against.clone()].into_iter().chain(values.into_iter().map(|value| self.name(value))).collect();
        trials.sort_by_key(|trial| (variants.iter().position(|name| *name == trial.variant), trial.seed));
        let mut texts = self.basis.texts();
        texts.title.clone_from(&self.title);
        let mut answer = answer(&texts, &trials, &variants, against, self.seeds)?;
        let note = Note::new(NoteKind::Advice, found.sentence).of_variant(self.name(found.value));
        let note = note.with(&self.wanted.key, found.value as f64);
        if answer.document.notes.iter().any(|note| note.kind == NoteKind::CoarseTimes) {
            answer.document.notes.insert(0, note);
        } else {
            answer.document.verdict = vec![note];
        }
        Ok(answer)
    }
}

/// The runs that there are.
struct Runs<'a> {
    trials: &'a [Trial],
    wanted: &'a Wanted,
}

impl<'a> Runs<'a> {
    fn of(&self, variant: &str) -> impl Iterator<Item = &'a Trial> {
        self.trials.iter().filter(move |trial| trial.variant == variant)
    }

    fn has(&self, variant: &str) -> bool {
        self.of(variant).next().is_some()
    }

    /// Rows of a variant that count.
    fn rows(&self, trial: &'a Trial) -> impl Iterator<Item = &'a Row> {
        let whole_only = self.wanted.whole_only;
        trial.document.rows.iter().filter(move |row| !whole_only || row.case.is_whole())
    }

    /// Figures of a variant, by seed.
    fn figures(&self, variant: &str) -> Result<Vec<(&'a Metric, f64)>, Stop> {
        let name = &self.wanted.metric;
        let mut found = Vec::new();
        for trial in self.of(variant) {
            let rows: Vec<&Row> = self.rows(trial).filter(|row| row.metric.name() == name).collect();
            let whole = rows.iter().copied().find(|row| row.case.is_whole());
            match (whole, &rows[..]) {
                (Some(row), _) | (None, &[row]) => found.push((&row.metric, row.simulated)),
                (None, []) => {}
                (None, _) => {
                    let names: Vec<String> = rows.iter().map(|row| format!("'{}'", &*row.case)).collect();
                    let names = names.join(", ");
                    let message = "group_reporting makes one of jobs that run together";
                    return Err(Stop::Wrong(format!("--metric {name}: {names} have it each; {message}")));
                }
            }
        }
        Ok(found)
    }

    fn mean(&self, variant: &str) -> Result<f64, Stop> {
        let figures = self.figures(variant)?;
        if figures.is_empty() {
            let rows = self.of(variant).flat_map(|trial| self.rows(trial));
            let mut names: Vec<&str> = rows.map(|row| row.metric.name()).collect();
            names.sort_unstable();
            names.dedup();
            let (metric, names) = (&self.wanted.metric, names.join(", "));
            return Err(Stop::Wrong(format!("--metric {metric}: {variant} does not have it; it has {names}")));
        }
        Ok(figures.iter().map(|(_, value)| value).sum::<f64>() / figures.len() as f64)
    }

    fn unit(&self, variant: &str) -> String {
        let figures = self.figures(variant).unwrap_or_default();
        figures.first().map(|(metric, _)| metric.unit().to_owned()).unwrap_or_default()
    }

    /// Whether a variant is as good as the reference.
    fn is_good(&self, variant: &str) -> Result<bool, Stop> {
        let against = &self.wanted.against.name;
        let (tried, goal) = (self.mean(variant)?, self.mean(against)?);
        let metric = self.figures(against)?[0].0;
        let slack = self.wanted.within / 100.0;
        match metric.definition().map(|d| d.better) {
            Some(Better::Less) => Ok(tried <= goal * (1.0 + slack)),
            Some(Better::More) => Ok(tried >= goal * (1.0 - slack)),
            _ => Err(Stop::Wrong(format!("--metric {}: neither more nor less of it is better", metric.name()))),
        }
    }
}

fn trials(done: &[Done<Trial>]) -> Vec<Trial> {
    done.iter().flatten().cloned().collect()
}

/// A figure as text.
fn shown(value: f64) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        10.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::make;
    use crate::runs::Shared;
    use readpath_config::experiment::{Experiment, Fio, Layout, Precondition, PreconditionRange, Workload};
    use readpath_results::{Document, Part};
    use std::sync::Arc;

    fn question() -> BreakEven {
        let text = "[job]\nioengine=psync\nrw=randread\nfilename=f\nsize=256m\nio_size=16m\nbs=4k\n".to_owned();
        let precondition = Precondition { layout: Layout::Sequential, range: PreconditionRange::Files };
        let source = Workload::Fio(Fio::Text { case: "job".to_owned(), text });
        let experiment = Experiment::new("test", "Test", "ufs21-64g", 1, precondition, source);
        let read = Arc::new(|_: &std::path::Path| -> std::io::Result<String> { unreachable!("it reads no file") });
        let basis = Basis::Experiment { experiment: Arc::new(experiment), set: Vec::new(), case: None, read };
        let off = GivenKey::new("hpb", "off", "--with");
        let wanted = Wanted {
            key: "map_cache.size_kib".to_owned(),
            grid: Grid { from: 32, to: 512, step: 32 },
            against: Variant::of_keys("HPB", &[GivenKey::new("hpb", "dcm", "--against")]).expect("a variant"),
            with: vec![off],
            metric: "read_latency_mean".to_owned(),
            within: 1.0,
            whole_only: false,
        };
        BreakEven::new(basis, wanted, Seeds::new(1, 1).expect("seeds"), "job").expect("a question")
    }

    /// Blanks every text of a document that is for people. Names of metrics and variants are no such texts.
    fn blank(document: &mut Document) {
        document.title.clear();
        document.description.clear();
        document.citations.clear();
        document.notes.iter_mut().for_each(|note| note.text.clear());
        for row in &mut document.rows {
            row.case =
                if row.case.is_whole() { "c".into() } else { readpath_results::Case::from("c").with(Part::Jobs, "p") };
        }
    }

    #[test]
    fn the_last_value_of_a_grid_is_its_end() {
        for (to, values) in [(10, vec![2, 6, 10]), (11, vec![2, 6, 10, 11]), (3, vec![2, 3])] {
            let grid = Grid { from: 2, to, step: 4 };
            assert_eq!((0..=grid.last()).map(|number| grid.value(number)).collect::<Vec<_>>(), values);
        }
    }

    #[test]
    fn as_good_is_within_a_share_in_the_direction_that_is_worse() {
        use readpath_results::Origin;
        use readpath_results::metric::{Figure, Requests};
        let good = |metric: Metric, value: f64| {
            let wanted = Wanted { metric: metric.name().to_owned(), ..question().wanted };
            let trial = |variant: &str, value| {
                let mut document = Document::new("e", "t");
                document.row("c", variant, metric.clone(), value, Origin::Predicted).unwrap();
                Trial { seed: 1, variant: variant.to_owned(), document, over_time: Vec::new(), incomplete: None }
            };
            let trials = [trial("HPB", 100.0), trial("tried", value)];
            Runs { trials: &trials, wanted: &wanted }.is_good("tried").ok()
        };
        let (latency, throughput) = (Requests::Read.of(Figure::LatencyMean), Requests::Read.of(Figure::Throughput));
        for (value, is_good) in [(50.0, true), (100.9, true), (101.1, false)] {
            assert_eq!(good(latency.clone(), value), Some(is_good), "{value} us");
        }
        for (value, is_good) in [(200.0, true), (99.1, true), (98.9, false)] {
            assert_eq!(good(throughput.clone(), value), Some(is_good), "{value} MiB/s");
        }
        assert_eq!(good(Requests::Read.of(Figure::Count), 1.0), None, "neither is better");
    }

    #[test]
    fn texts_decide_nothing() {
        let question = question();
        let done = make(&question, &Shared::default()).expect("runs");
        assert!(done.len() > question.points().len(), "it looked further");
        let mut blanked = done.clone();
        blanked.iter_mut().flatten().for_each(|trial| blank(&mut trial.document));
        for known in question.points().len()..=done.len() {
            let names = |done: &[Done<Trial>]| {
                let more = question.more(done).unwrap_or_else(|e| panic!("{e}"));
                more.iter().map(|point| point.variant().to_owned()).collect::<Vec<_>>()
            };
            assert_eq!(names(&done[..known]), names(&blanked[..known]));
        }
        let found = |done| question.answer(done).expect("an answer").document.verdict.remove(0);
        let (note, same) = (found(&done), found(&blanked));
        assert_eq!((note.kind, &note.variant, &note.numbers), (NoteKind::Advice, &same.variant, &same.numbers));
        assert!(note.numbers[0].1 > 32.0 && note.numbers[0].1 < 512.0, "{note:?}");
    }
}
