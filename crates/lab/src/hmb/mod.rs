// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much host memory a device should get: the experiment `hmb`, and recorded traces on its device, with a
//! recommendation for each case. Runs are cut into parts of equal time or equally many requests, so that the
//! recommendation has an interval. It opens no file.

mod recommend;

use recommend::{Advice, LITTLE_PERCENT, NoAdvice, SizeTimes, advise};

use crate::experiment::{self, document};
use crate::figures::MIB;
use crate::fragment::Fragment;
use crate::map_rows;
use crate::question::{Answer, AskError, Done, Point, Question, Shown};
use crate::replay::{self, Replay, ReplayCase, ReplayOptions, ReplayRun, ReplayTexts, ReplayVariant};
use crate::runs::{CaseRun, Plan};
use crate::saving::{LEAST_PARTS, PartTimes, Saving, TooFewParts, half_of_mean};
use crate::verdict;
use readpath_config::experiment::{Experiment, Variant};
use readpath_config::{ConfigFileError, DevicePreset, Event, EventKind};
use readpath_kit::Ns;
use readpath_results::{Chart, ChartKind, Document, Error, Interval, Note, NoteKind, SeriesStyle, metric};
use readpath_run::Span;
use readpath_stack::given_host_memory;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The experiment's name.
pub const NAME: &str = "hmb";

/// Parts of a run.
const PARTS: u64 = 20;

/// Figures of a run, in parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parted {
    run: Fragment,
    sized: Sized,
}

/// A run with one size of memory, part by part.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Sized {
    case: String,
    variant: String,
    bytes: u64,
    parts: Vec<PartTimes>,
}

/// How much host memory a device should get, as a question.
#[derive(Clone, Debug)]
pub struct HostMemory {
    /// The title where the inputs are the user's own; none for the experiment.
    own: Option<String>,
    /// The experiment, or that of each job, with its runs.
    jobs: Vec<(Experiment, Vec<Plan>)>,
    /// The replays of each trace.
    traces: Vec<Vec<Replay>>,
    notes: Vec<Note>,
    points: Vec<Point>,
}

/// Cuts what each plan measures into parts of equal time. Plans without a time limit, or of several phases, stay whole.
fn mark<'a>(plans: impl Iterator<Item = &'a mut Plan>) {
    for plan in plans {
        let [phase] = &plan.workload.phases[..] else { continue };
        let ramp = phase.jobs.iter().map(|job| job.ramp).max().unwrap_or_default();
        let Some(Some(end)) = phase.jobs.iter().map(|job| job.limits.runtime).min() else { continue };
        let measured = end.saturating_sub(ramp).0;
        let at = |part: u64| Event { at: ramp + Ns(measured / PARTS * part), kind: EventKind::Mark };
        plan.setup.events = (0..=PARTS).map(at).collect();
    }
}

/// The variants of the experiment for a trace, which is cut into parts of equally many requests.
///
/// # Errors
/// As [`ReplayVariant::new`].
pub fn variants(
    variants: &[Variant],
    base: &DevicePreset,
    case: &ReplayCase,
) -> Result<Vec<ReplayVariant>, ConfigFileError> {
    let ios = &case.trace.ios;
    let at = |part: u64| ios.get((ios.len() as u64 * part / PARTS) as usize).map(|io| io.time);
    // The first mark is at the beginning of the trace, so that no part lies before it.
    let marks: Vec<Event> = (0..PARTS).filter_map(at).map(|at| Event { at, kind: EventKind::Mark }).collect();
    let marked = |variant: &Variant| Ok(ReplayVariant { events: marks.clone(), ..ReplayVariant::new(variant, base)? });
    variants.iter().map(marked).collect()
}

impl HostMemory {
    /// The runs of the experiment. `notes` say what was left out.
    pub fn of_experiment(experiment: Experiment, plans: Vec<Plan>, notes: Vec<Note>) -> Self {
        HostMemory::made(None, vec![(experiment, plans)], Vec::new(), notes)
    }

    /// The runs of jobs, and of traces, each with its variants.
    pub fn of_inputs(
        title: String,
        jobs: Vec<(Experiment, Vec<Plan>)>,
        traces: Vec<(ReplayCase, Vec<ReplayVariant>)>,
        options: &ReplayOptions,
        notes: Vec<Note>,
    ) -> Self {
        let replays = |(case, variants): (ReplayCase, Vec<ReplayVariant>)| {
            let variants: Vec<Arc<ReplayVariant>> = variants.into_iter().map(Arc::new).collect();
            Replay::all(&[Arc::new(case)], &variants, options)
        };
        HostMemory::made(Some(title), jobs, traces.into_iter().map(replays).collect(), notes)
    }

    fn made(
        own: Option<String>,
        mut jobs: Vec<(Experiment, Vec<Plan>)>,
        traces: Vec<Vec<Replay>>,
        notes: Vec<Note>,
    ) -> Self {
        mark(jobs.iter_mut().flat_map(|(_, plans)| plans));
        let plans = jobs.iter().flat_map(|(_, plans)| plans);
        let of_plans = plans.map(|plan| Point::Workload(Box::new(plan.clone())));
        let points = of_plans.chain(traces.iter().flatten().cloned().map(Point::Replay)).collect();
        HostMemory { own, jobs, traces, notes, points }
    }

    /// A run of a job without its parts.
    fn of_plan(&self, plan: &Plan, mut output: readpath_run::RunOutput) -> Result<Parted, Error> {
        let mut parts = measured(&std::mem::take(&mut output.spans));
        let mut unmarked = plan.clone();
        unmarked.setup.events.clear();
        let run = CaseRun { plan: &unmarked, output: &output };
        let of_case = |(_, plans): &&(Experiment, Vec<Plan>)| plans.iter().any(|one| one.case == plan.case);
        let Some((experiment, plans)) = self.jobs.iter().find(of_case) else {
            unreachable!("every run is that of a job")
        };
        let run = experiment::fragment(experiment, run, map_rows::matter(plans))?;
        if parts.is_empty() {
            parts = run.outcome.parts();
        }
        let bytes = given_host_memory(&plan.setup.preset.device, &plan.setup.host);
        let sized = Sized { case: plan.case.clone(), variant: plan.variant.clone(), bytes, parts };
        Ok(Parted { run, sized })
    }

    /// The document of the jobs, to which those of traces are added.
    fn of_jobs(&self, done: &[&Parted]) -> Result<Document, Error> {
        let mut doc: Option<Document> = self.own.as_ref().map(|title| Document::new(NAME, title));
        let mut rest = done;
        for (i, (experiment, plans)) in self.jobs.iter().enumerate() {
            let (own, others) = rest.split_at(plans.len());
            rest = others;
            let runs: Vec<&Fragment> = own.iter().map(|one| &one.run).collect();
            let of_job = document(experiment, plans, &runs)?;
            match &mut doc {
                None => doc = Some(of_job),
                Some(doc) => doc.absorb(of_job, &format!("job_{}_", i + 1)),
            }
        }
        Ok(doc.unwrap_or_else(|| Document::new(NAME, "")))
    }
}

/// A replay without its parts.
fn of_replay(replay: &Replay, mut output: ReplayRun) -> Result<Parted, Error> {
    let parts = std::mem::take(&mut output.spans).iter().skip(1).map(times).collect();
    let mut unmarked = ReplayVariant::clone(&replay.variant);
    unmarked.events.clear();
    let bytes = given_host_memory(&unmarked.preset.device, &unmarked.host);
    let (case, variant) = (replay.case.name.clone(), unmarked.name.clone());
    let run = replay::fragment(&Replay { variant: Arc::new(unmarked), ..replay.clone() }, &output)?;
    Ok(Parted { run, sized: Sized { case, variant, bytes, parts } })
}

impl Question for HostMemory {
    type Figures = Parted;

    fn title(&self) -> String {
        let of_experiment = || self.jobs.first().map(|(experiment, _)| experiment.title.clone());
        self.own.clone().or_else(of_experiment).unwrap_or_default()
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn figures(&self, shown: Shown<'_>) -> Result<Parted, Error> {
        match shown {
            Shown::Workload(plan, output) => self.of_plan(plan, output),
            Shown::Replay(replay, output) => of_replay(replay, output),
            _ => unreachable!("points are workloads and replays"),
        }
    }

    fn answer(&self, done: &[Done<Parted>]) -> Result<Answer, AskError> {
        let done: Vec<&Parted> = done.iter().flatten().collect();
        let (of_plans, mut of_traces) = done.split_at(self.jobs.iter().map(|(_, plans)| plans.len()).sum());
        let mut doc = self.of_jobs(of_plans)?;
        let mut coarse = Vec::new();
        for (i, replays) in self.traces.iter().enumerate() {
            let (of_trace, rest) = of_traces.split_at(replays.len());
            of_traces = rest;
            let Some(first) = replays.first() else { continue };
            coarse.extend(first.case.coarse_times().map(|note| note.clone().of_case(&first.case.name)));
            let texts =
                ReplayTexts { title: first.case.name.clone(), description: String::new(), settings: Value::Null };
            let runs: Vec<Option<&Fragment>> = of_trace.iter().map(|one| Some(&one.run)).collect();
            doc.absorb(replay::document(&texts, replays, &runs)?, &format!("trace_{}_", i + 1));
        }
        let sized: Vec<&Sized> = done.iter().map(|one| &one.sized).collect();
        Study { runs: &sized, coarse: &coarse }.conclude(&mut doc)?;
        doc.notes.extend(self.notes.iter().cloned());
        let missing = done.iter().filter_map(|one| one.run.incomplete.clone()).collect();
        Ok(Answer { missing, ..Answer::new(doc, done.len()) })
    }
}

/// What runs say of sizes of memory.
struct Study<'a> {
    runs: &'a [&'a Sized],
    /// Notes on traces whose times say nothing of latencies, each with its case.
    coarse: &'a [Note],
}

/// Cases at most whose sentences are the verdict; of more, the verdict counts them.
const MOST_SENTENCES: usize = 2;

impl Study<'_> {
    /// Adds to a document what the largest memory would save with each size, a figure of it, and for each case a
    /// recommendation, or why there is none; and the verdict.
    ///
    /// # Errors
    /// As [`Document::row`].
    fn conclude(&self, doc: &mut Document) -> Result<(), Error> {
        let mut cases: Vec<&str> = Vec::new();
        for run in self.runs {
            if !cases.contains(&run.case.as_str()) {
                cases.push(&run.case);
            }
        }
        let mut chart = chart_of_sizes(cases.len());
        let mut said: Vec<(Note, Option<u64>)> = Vec::new();
        for &case in &cases {
            let sizes = self.sizes(case);
            chart.series_with_bars(case, SeriesStyle::Plain, points(&sizes, chart.kind))?;
            if let Some(note) = self.coarse.iter().find(|note| note.case.as_deref() == Some(case)) {
                said.push((verdict::not_from_these_times(note), None));
                continue;
            }
            let advice = match advise(&sizes) {
                Ok(advice) => advice,
                Err(why) => {
                    said.push((Note::new(NoteKind::NoAdvice, silence(why)).of_case(case), None));
                    continue;
                }
            };
            for (size, saving) in sizes.iter().zip(&advice.left) {
                let saves = (metric::MEMORY_WOULD_SAVE, saving.percent);
                let error = saving.interval().map(|half| (metric::MEMORY_WOULD_SAVE_ERROR, half));
                doc.predicted(case, &size.variant, [saves].into_iter().chain(error))?;
            }
            said.push(sentence(case, &sizes, &advice));
        }
        if cases.len() > 1 || chart.series.iter().any(|series| series.points.len() > 1) {
            doc.charts.insert(0, chart);
        }
        doc.verdict = if said.len() <= MOST_SENTENCES {
            let only = said.len() == 1;
            said.into_iter().map(|(note, _)| if only { note } else { named(note) }).collect()
        } else {
            let verdict = vec![together(&said)];
            said.into_iter().for_each(|(note, _)| doc.note(named(note)));
            verdict
        };
        Ok(())
    }

    /// The sizes of a case in order. Of variants with equal memory the first counts.
    fn sizes(&self, case: &str) -> Vec<SizeTimes> {
        let mut sizes: Vec<SizeTimes> = Vec::new();
        for run in self.runs.iter().filter(|run| run.case == case) {
            if sizes.iter().all(|size| size.bytes != run.bytes) {
                sizes.push(SizeTimes { bytes: run.bytes, variant: run.variant.clone(), parts: run.parts.clone() });
            }
        }
        sizes.sort_by_key(|size| size.bytes);
        sizes
    }
}

/// Cases at most that have curves; more have a row each of a heat map.
const MOST_CURVES: usize = 6;

fn chart_of_sizes(cases: usize) -> Chart {
    let kind = if cases <= MOST_CURVES { ChartKind::Lines } else { ChartKind::Heat };
    let chart = Chart::new("latency_by_size", "Latency over host memory", kind);
    match kind {
        ChartKind::Heat => chart
            .axes("host memory, MiB", "mean latency of a request, % of that with the least memory")
            .rows("workload")
            .caption("Means of all requests that were measured."),
        _ => chart
            .axes("host memory, MiB", "mean latency of a request, us")
            .caption("Means of all requests that were measured, with their 95 % confidence intervals."),
    }
}

/// The mean of each size, which is a category, as no size has no place on a logarithmic axis: with its interval, or in
/// percent of the first size's.
fn points(sizes: &[SizeTimes], kind: ChartKind) -> Vec<(String, f64, Option<Interval>)> {
    let least = sizes.first().map_or(1.0, SizeTimes::mean_us).max(f64::MIN_POSITIVE);
    let point = |size: &SizeTimes| {
        let (mib, mean) = ((size.bytes as f64 / MIB).to_string(), size.mean_us());
        if kind == ChartKind::Heat {
            return (mib, 100.0 * mean / least, None);
        }
        let half = half_of_mean(&size.parts).map(|ns| ns / 1e3);
        (mib, mean, half.map(|half| Interval { low: (mean - half).max(0.0), high: mean + half }))
    };
    sizes.iter().map(point).collect()
}

/// The parts between the first mark, which ends the ramp, and the last one.
fn measured(spans: &[Span]) -> Vec<PartTimes> {
    spans.iter().skip(1).take(PARTS as usize).map(times).collect()
}

fn times(span: &Span) -> PartTimes {
    span.latency.iter().fold(PartTimes::default(), |times, latency| PartTimes {
        requests: times.requests + latency.count(),
        ns: times.ns + latency.mean() * latency.count() as f64,
    })
}

/// A note whose sentence begins with its case.
fn named(note: Note) -> Note {
    match &note.case {
        Some(case) => Note { text: format!("{case}: {}", note.text), ..note },
        None => note,
    }
}

/// The verdict on many cases: how many of them each size serves.
fn together(said: &[(Note, Option<u64>)]) -> Note {
    let mut sizes: Vec<u64> = said.iter().filter_map(|(_, bytes)| *bytes).collect();
    sizes.sort_unstable();
    let Some(&most) = sizes.last() else {
        return Note::new(NoteKind::NoAdvice, format!("No size can be recommended for any of {} cases.", said.len()));
    };
    let mut text = format!("{} is enough for {} of {} cases", mib(most), sizes.len(), said.len());
    let median = sizes[sizes.len() / 2];
    if median < most {
        let served = sizes.iter().filter(|&&size| size <= median).count();
        text.push_str(&format!(", {} for {served}", mib(median)));
    }
    text.push('.');
    if said.len() > sizes.len() {
        let others = said.len() - sizes.len();
        text.push_str(&format!(" For {others} no size can be recommended; the notes say why."));
    }
    Note::new(NoteKind::Advice, text).with("host_memory_bytes", most as f64).with("cases", said.len() as f64)
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Why there is no recommendation.
fn silence(why: NoAdvice) -> String {
    match why {
        NoAdvice::OneSize => "One size of memory has nothing to be compared with: give several.".to_owned(),
        NoAdvice::FewParts(TooFewParts(parts)) => format!(
            "This cannot be told from this workload: {parts} of {PARTS} parts of its runs have requests, and an \
             interval needs {LEAST_PARTS} at least."
        ),
    }
}

/// The recommendation for a case, and the size that is enough, if one is.
fn sentence(case: &str, sizes: &[SizeTimes], advice: &Advice) -> (Note, Option<u64>) {
    let (first, largest) = (&sizes[0], &sizes[sizes.len() - 1]);
    let name = |size: &SizeTimes| if size.bytes == 0 { "none".to_owned() } else { mib(size.bytes) };
    let said = |saving: &Saving| format!("{} %", verdict::plus_minus(saving.percent, saving.interval()));
    let longer = |saving: &Saving| format!("{} %", verdict::plus_minus(-saving.percent, saving.interval()));
    let enough = advice.enough.unwrap_or(sizes.len() - 1);
    let size = &sizes[enough];
    let gained = enough.checked_sub(1).map(|at| advice.gained[at]);
    let (kind, text) = match gained {
        None => {
            let left = &advice.left[0];
            let more = match left.percent + left.half < 0.0 {
                // In a burst the order of requests changes with their latencies.
                true => format!("with {} requests take longer, by {}", mib(largest.bytes), longer(left)),
                false => format!("{} saves {} of the time of a request", mib(largest.bytes), said(left)),
            };
            let text = match first.bytes {
                0 => format!("No host memory is needed: {more}."),
                bytes => format!("{} is enough: {more}.", mib(bytes)),
            };
            (NoteKind::Advice, text)
        }
        Some(gained) if gained.percent <= gained.half => {
            let saves = said(&gained);
            let with = name(first);
            let text = format!(
                "No difference beyond chance: {} saves {saves} of the time that a request takes with {with}.",
                mib(size.bytes)
            );
            (NoteKind::NoDifference, text)
        }
        Some(gained) if gained.percent < LITTLE_PERCENT => {
            let (saves, with) = (said(&gained), name(first));
            let text = format!(
                "Host memory gains little here: {} saves {saves} of the time that a request takes with {with}.",
                mib(size.bytes)
            );
            (NoteKind::LittleGain, text)
        }
        Some(gained) => {
            let more = match advice.enough {
                Some(at) => format!("{} saves {} more", mib(largest.bytes), said(&advice.left[at])),
                None => "more than that was not run, and may save more".to_owned(),
            };
            let text = format!(
                "Give this device {}: a request takes {:.1} us in the mean instead of {:.1} with {} ({} less); {more}.",
                mib(size.bytes),
                size.mean_us(),
                first.mean_us(),
                name(first),
                said(&gained)
            );
            (NoteKind::Advice, text)
        }
    };
    let found = (kind == NoteKind::Advice).then_some(size.bytes);
    let note = Note::new(kind, text).of_case(case).of_variant(&size.variant);
    (note.with("host_memory_bytes", size.bytes as f64).with("mean_us", size.mean_us()), found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::Shared;
    use readpath_config::experiment::{Layout, Precondition, PreconditionRange};
    use readpath_run::Setup;

    /// A study of one case with these sizes, whose parts take so many microseconds.
    fn study(sizes: &[(u64, &[f64])]) -> Vec<Sized> {
        let run = |(mib, us): &(u64, &[f64])| Sized {
            case: "t.csv".to_owned(),
            variant: format!("{mib} MiB"),
            bytes: mib << 20,
            parts: us.iter().map(|us| PartTimes { requests: 10, ns: us * 1e4 }).collect(),
        };
        sizes.iter().map(run).collect()
    }

    /// The verdict of one case, and how many sizes have an interval.
    fn concluded(sizes: &[(u64, &[f64])]) -> (Note, usize) {
        let mut doc = Document::new("test", "test");
        let runs = study(sizes);
        let study = Study { runs: &runs.iter().collect::<Vec<_>>(), coarse: &[] };
        study.conclude(&mut doc).expect("a document");
        let errors = doc.rows.iter().filter(|row| row.metric == metric::MEMORY_WOULD_SAVE_ERROR).count();
        let [note] = &doc.verdict[..] else { panic!("{:?}", doc.verdict) };
        (note.clone(), errors)
    }

    #[test]
    fn what_is_the_same_everywhere_has_no_interval() {
        let (note, errors) = concluded(&[(0, &[100.0; 5]), (64, &[100.0; 5])]);
        assert_eq!(note.text, "No host memory is needed: 64 MiB saves 0.00 % of the time of a request.");
        assert_eq!((note.kind, errors), (NoteKind::Advice, 0));
        let (note, errors) = concluded(&[(0, &[100.0, 100.001, 100.0, 100.0]), (64, &[100.0; 4])]);
        assert!(note.text.contains("64 MiB saves 0.000 ± 0.001 % of"), "{note}");
        assert_eq!(errors, 1);
        let (note, _) = concluded(&[(0, &[100.0, 100.1, 100.0, 100.0]), (64, &[100.0; 4])]);
        assert!(note.text.contains("64 MiB saves 0.02 ± 0.08 % of"), "{note}");
        let (note, _) = concluded(&[(0, &[100.0, 101.0, 99.0, 100.0]), (64, &[125.0, 126.0, 124.0, 125.0])]);
        assert!(note.text.starts_with("No host memory is needed: with 64 MiB requests take longer, by 2"), "{note}");
    }

    #[test]
    fn the_least_memory_that_gains_is_recommended() {
        let (note, _) = concluded(&[(0, &[200.0, 202.0, 198.0, 200.0]), (8, &[100.0; 4]), (64, &[100.0; 4])]);
        assert_eq!(
            note.text,
            "Give this device 8 MiB: a request takes 100.0 us in the mean instead of 200.0 with none (50.00 ± 0.65 % \
             less); 64 MiB saves 0.00 % more."
        );
        assert_eq!((note.kind, note.numbers[0].1), (NoteKind::Advice, f64::from(8 << 20)));
        // The rows say what the largest saves of the time with each; a heat map has percent of the first.
        let runs = study(&[(0, &[200.0; 4]), (8, &[100.0; 4]), (64, &[100.0; 4])]);
        let mut doc = Document::new("test", "test");
        let study = Study { runs: &runs.iter().collect::<Vec<_>>(), coarse: &[] };
        study.conclude(&mut doc).expect("a document");
        let saves = |mib: &str| doc.find("t.csv", mib, &metric::MEMORY_WOULD_SAVE).map(|row| row.simulated);
        assert_eq!((saves("0 MiB"), saves("8 MiB"), saves("64 MiB")), (Some(50.0), Some(0.0), None));
        let percent = points(&study.sizes("t.csv"), ChartKind::Heat).into_iter().map(|(_, y, _)| y);
        assert_eq!(percent.collect::<Vec<_>>(), [100.0, 50.0, 50.0]);
        let (note, _) = concluded(&[(0, &[200.0; 4]), (8, &[150.0; 4]), (64, &[100.0; 4])]);
        assert!(note.text.starts_with("Give this device 64 MiB: "), "{note}");
        assert!(note.text.ends_with("; more than that was not run, and may save more."), "{note}");
    }

    /// A gain within its own interval, or below one percent, recommends nothing.
    #[test]
    fn no_memory_is_recommended_for_chance() {
        let (note, _) = concluded(&[(0, &[100.0, 104.0, 98.0, 100.0]), (8, &[100.0; 4]), (64, &[100.0; 4])]);
        assert!(note.text.starts_with("No difference beyond chance: 8 MiB saves 0.50 ± "), "{note}");
        assert_eq!(note.kind, NoteKind::NoDifference);
        let (note, _) = concluded(&[(0, &[100.8, 101.2, 100.3, 100.9]), (8, &[100.0; 4]), (64, &[100.0; 4])]);
        assert!(note.text.starts_with("Host memory gains little here: 8 MiB saves 0.79 ± 0."), "{note}");
        assert_eq!(note.kind, NoteKind::LittleGain);
    }

    #[test]
    fn why_there_is_no_recommendation() {
        let (note, _) = concluded(&[(0, &[100.0]), (64, &[90.0])]);
        let says = "This cannot be told from this workload: 1 of 20 parts of its runs have requests, and an interval";
        assert_eq!(note.text, format!("{says} needs 2 at least."));
        let (note, _) = concluded(&[(0, &[100.0; 20])]);
        assert_eq!(note.text, "One size of memory has nothing to be compared with: give several.");
    }

    /// Each of two cases has a sentence with its name, and a figure shows both, even of one size.
    #[test]
    fn two_cases_are_named() {
        let case = |name: &str, mib: u64| {
            let parts = vec![PartTimes { requests: 10, ns: 1e6 }; 4];
            Sized { case: name.to_owned(), variant: format!("{mib} MiB"), bytes: mib << 20, parts }
        };
        let runs = [case("a", 64), case("a", 0), case("b", 8)];
        let mut doc = Document::new("test", "test");
        let study = Study { runs: &runs.iter().collect::<Vec<_>>(), coarse: &[] };
        study.conclude(&mut doc).expect("a document");
        let said: Vec<&str> = doc.verdict.iter().map(|note| note.text.as_str()).collect();
        assert!(said[0].starts_with("a: No host memory is needed: 64 MiB saves 0.00 %"), "{said:?}");
        assert_eq!(said[1], "b: One size of memory has nothing to be compared with: give several.");
        let places = |at: usize| doc.charts[0].series[at].points.iter().map(|p| p.x.clone()).collect::<Vec<_>>();
        assert_eq!((places(0), places(1)), (vec!["0".into(), "64".into()], vec!["8".into()]));
        // Alone, a case of one size has no figure.
        let mut doc = Document::new("test", "test");
        Study { runs: &[&runs[2]], coarse: &[] }.conclude(&mut doc).expect("a document");
        assert_eq!((doc.charts.len(), doc.verdict.len()), (0, 1));
    }

    /// Of more than two cases the verdict counts how many each size serves, and the notes have the sentences.
    #[test]
    fn many_cases_have_one_verdict() {
        let mut runs = Vec::new();
        for (case, enough) in [("a", 8), ("b", 8), ("c", 64), ("d", 0)] {
            for mib in [0u64, 8, 64, 128] {
                let us = if mib < enough { 200.0 } else { 100.0 };
                let parts = vec![PartTimes { requests: 10, ns: us * 1e4 }; 4];
                runs.push(Sized { case: case.to_owned(), variant: format!("{mib} MiB"), bytes: mib << 20, parts });
            }
        }
        let coarse = [Note::new(NoteKind::CoarseTimes, "b: COARSE TIMES").of_case("b")];
        let mut doc = Document::new("test", "test");
        let study = Study { runs: &runs.iter().collect::<Vec<_>>(), coarse: &coarse };
        study.conclude(&mut doc).expect("a document");
        let text =
            "64 MiB is enough for 3 of 4 cases, 8 MiB for 2. For 1 no size can be recommended; the notes say why.";
        assert_eq!(doc.verdict[0].text, text);
        assert_eq!(doc.notes.len(), 4);
        assert!(doc.notes[0].text.starts_with("a: Give this device 8 MiB: "), "{}", doc.notes[0]);
        assert!(doc.notes[1].text.starts_with("b: This cannot be told from this trace. "), "{}", doc.notes[1]);
        let points = doc.charts[0].series[2].points.iter().map(|point| (point.x.clone(), point.y));
        let expected = [("0", 200.0), ("8", 200.0), ("64", 100.0), ("128", 100.0)];
        assert_eq!(points.collect::<Vec<_>>(), expected.map(|(mib, us)| (mib.into(), us)));
    }

    /// A thousand requests a second, of which the first second is the ramp.
    #[test]
    fn parts_are_of_equal_time_and_begin_behind_the_ramp() {
        let none = |_: &std::path::Path| Err(std::io::Error::other("none"));
        let preset = readpath_config::device::load("ufs21-64g", &none).expect("it comes with the program");
        let text = "[j]\nrw=randread\nbs=4k\nsize=64m\nrate_iops=1000\nramp_time=1\nruntime=2\ntime_based=1\n";
        let context = readpath_workload::fio::Context {
            unit_blocks: &[preset.device.lus[0].blocks],
            zones: &[],
            seed: 3,
            options: &[],
            defaults: "",
        };
        let workload = readpath_workload::fio::parse("j", text, &none, &context).expect("a job");
        let precondition = Precondition { layout: Layout::Sequential, range: PreconditionRange::Files };
        let host = preset.host;
        let setup = Setup { preset, host, precondition, seed: 1, encoded: false, events: Vec::new(), over_time: false };
        let (case, variant) = ("j".to_owned(), "v".to_owned());
        let mut plans = vec![Plan { case, variant, setup, workload, inputs: Vec::new() }];
        mark(plans.iter_mut());
        let at: Vec<u64> = plans[0].setup.events.iter().map(|event| event.at.0 / 1_000_000).collect();
        assert_eq!(at, (0..=20).map(|part| 1000 + 100 * part).collect::<Vec<_>>(), "milliseconds");
        let plan = plans.remove(0);
        let output = plan.make(0, None, &Shared::default()).0.expect("it runs");
        let parts = measured(&output.spans);
        assert_eq!(parts.len(), 20);
        assert!(parts.iter().all(|part| (99..=101).contains(&part.requests)), "{parts:?}");
    }
}
