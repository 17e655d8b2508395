// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much host memory a device should get: the experiment `hmb`, and recorded traces on its device, with a
//! recommendation for each case. Runs are cut into parts of equal time or equally many requests, so that the
//! recommendation has an interval. It opens no file.

mod recommend;

pub use recommend::{Advice, LEAST_PARTS, LITTLE_PERCENT, NoAdvice, PartTimes, Saving, SizeTimes, advise};

use crate::experiment::{self, document};
use crate::fragment::Fragment;
use crate::map_rows;
use crate::question::{Answer, AskError, Done, Point, Question, Shown};
use crate::replay::{self, Replay, ReplayCase, ReplayOptions, ReplayRun, ReplayTexts, ReplayVariant};
use crate::runs::{CaseRun, Plan};
use readpath_config::experiment::{Experiment, Variant};
use readpath_config::{ConfigFileError, DevicePreset, Event, EventKind};
use readpath_kit::Ns;
use readpath_results::{Document, Error, Note, NoteKind, metric};
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
    experiment: Experiment,
    plans: Vec<Plan>,
    /// The replays of each trace.
    traces: Vec<Vec<Replay>>,
    notes: Vec<Note>,
    points: Vec<Point>,
}

/// Cuts what each plan measures into parts of equal time. Plans without a time limit, or of several phases, stay whole.
fn mark(plans: &mut [Plan]) {
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
    /// The runs of the experiment, and recorded traces, each with its variants. `notes` say what was left out.
    pub fn new(
        experiment: Experiment,
        mut plans: Vec<Plan>,
        traces: Vec<(ReplayCase, Vec<ReplayVariant>)>,
        options: &ReplayOptions,
        notes: Vec<Note>,
    ) -> Self {
        mark(&mut plans);
        let replays = |(case, variants): (ReplayCase, Vec<ReplayVariant>)| {
            let variants: Vec<Arc<ReplayVariant>> = variants.into_iter().map(Arc::new).collect();
            Replay::all(&[Arc::new(case)], &variants, options)
        };
        let traces: Vec<Vec<Replay>> = traces.into_iter().map(replays).collect();
        let of_plans = plans.iter().map(|plan| Point::Workload(Box::new(plan.clone())));
        let points = of_plans.chain(traces.iter().flatten().cloned().map(Point::Replay)).collect();
        HostMemory { experiment, plans, traces, notes, points }
    }

    /// A run of the experiment without its parts.
    fn of_plan(&self, plan: &Plan, mut output: readpath_run::RunOutput) -> Result<Parted, Error> {
        let parts = measured(&std::mem::take(&mut output.spans));
        let mut unmarked = plan.clone();
        unmarked.setup.events.clear();
        let run = CaseRun { plan: &unmarked, output: &output };
        let run = experiment::fragment(&self.experiment, run, map_rows::matter(&self.plans))?;
        let bytes = given_host_memory(&plan.setup.preset.device, &plan.setup.host);
        let sized = Sized { case: plan.case.clone(), variant: plan.variant.clone(), bytes, parts };
        Ok(Parted { run, sized })
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
        self.experiment.title.clone()
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
        let (of_plans, mut of_traces) = done.split_at(self.plans.len());
        let runs: Vec<&Fragment> = of_plans.iter().map(|one| &one.run).collect();
        let mut doc = document(&self.experiment, &self.plans, &runs)?;
        for (i, replays) in self.traces.iter().enumerate() {
            let (of_trace, rest) = of_traces.split_at(replays.len());
            of_traces = rest;
            let title = replays.first().map(|replay| replay.case.name.clone()).unwrap_or_default();
            let texts = ReplayTexts { title, description: String::new(), settings: Value::Null };
            let runs: Vec<Option<&Fragment>> = of_trace.iter().map(|one| Some(&one.run)).collect();
            doc.absorb(replay::document(&texts, replays, &runs)?, &format!("trace_{}_", i + 1));
        }
        let sized: Vec<&Sized> = done.iter().map(|one| &one.sized).collect();
        Study { runs: &sized }.conclude(&mut doc)?;
        doc.notes.extend(self.notes.iter().cloned());
        let missing = runs.iter().filter_map(|run| run.incomplete.clone()).collect();
        Ok(Answer { missing, ..Answer::new(doc, runs.len()) })
    }
}

/// What runs say of sizes of memory.
struct Study<'a> {
    runs: &'a [&'a Sized],
}

impl Study<'_> {
    /// Adds to a document what the largest memory would save with each size, and for each case a recommendation, or why
    /// there is none.
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
        for case in cases {
            let sizes = self.sizes(case);
            let advice = match advise(&sizes) {
                Ok(advice) => advice,
                Err(why) => {
                    let note = Note::new(NoteKind::NoAdvice, silence(case, why));
                    // A single size holds for every case, so the note names none.
                    doc.note(if why == NoAdvice::OneSize { note } else { note.of_case(case) });
                    continue;
                }
            };
            for (size, saving) in sizes.iter().zip(&advice.left) {
                let saves = (metric::MEMORY_WOULD_SAVE, saving.percent);
                let error = saving.interval().map(|half| (metric::MEMORY_WOULD_SAVE_ERROR, half));
                doc.predicted(case, &size.variant, [saves].into_iter().chain(error))?;
            }
            let text = format!("{case}: {}", sentence(&sizes, &advice));
            let enough = advice.enough.unwrap_or(sizes.len() - 1);
            let note = Note::new(NoteKind::Advice, text).of_case(case).of_variant(&sizes[enough].variant);
            doc.note(note.with("host_memory_bytes", sizes[enough].bytes as f64));
        }
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

/// Why there is no recommendation; the same sentence for all cases where that does not depend on the case.
fn silence(case: &str, why: NoAdvice) -> String {
    match why {
        NoAdvice::OneSize => {
            "NO RECOMMENDATION: only one size of memory was run, and there is nothing to compare it with".to_owned()
        }
        NoAdvice::FewParts(parts) => format!(
            "{case}: NO RECOMMENDATION: {parts} of its {PARTS} parts have requests, and its interval needs \
             {LEAST_PARTS} such parts at least"
        ),
    }
}

fn sentence(sizes: &[SizeTimes], advice: &Advice) -> String {
    let name = |size: &SizeTimes| match size.bytes {
        0 => "no host memory".to_owned(),
        bytes => format!("{} MiB", bytes >> 20),
    };
    let largest = sizes.last().map(name).unwrap_or_default();
    let said = |saving: &Saving| {
        // A saving of nothing has no sign.
        let percent = format!("{:.2} %", (saving.percent * 100.0).round() / 100.0 + 0.0);
        // An interval that is shown as nothing would look like certainty.
        match saving.interval().map(|half| format!("{half:.2}")).filter(|half| half != "0.00") {
            Some(half) => format!("{percent} ± {half}"),
            None => percent,
        }
    };
    match advice.enough {
        Some(0) if sizes[0].bytes == 0 => format!(
            "no host memory; {largest} save less than {LITTLE_PERCENT} % of the time of a request ({})",
            said(&advice.left[0])
        ),
        Some(enough) => format!(
            "{}; {largest} save less than {LITTLE_PERCENT} % more of the time of a request ({})",
            name(&sizes[enough]),
            said(&advice.left[enough])
        ),
        None => {
            let last = advice.left.len() - 1;
            format!(
                "{largest}, and more may save more: they save {} of the time of a request with {}",
                said(&advice.left[last]),
                name(&sizes[last])
            )
        }
    }
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

    fn concluded(sizes: &[(u64, &[f64])]) -> (Vec<String>, usize) {
        let mut doc = Document::new("test", "test");
        let runs = study(sizes);
        Study { runs: &runs.iter().collect::<Vec<_>>() }.conclude(&mut doc).expect("a document");
        let errors = doc.rows.iter().filter(|row| row.metric == metric::MEMORY_WOULD_SAVE_ERROR).count();
        (doc.notes.iter().map(Note::to_string).collect(), errors)
    }

    #[test]
    fn what_is_the_same_everywhere_has_no_interval() {
        let (notes, errors) = concluded(&[(0, &[100.0; 5]), (64, &[100.0; 5])]);
        assert!(notes[0].ends_with("save less than 1 % of the time of a request (0.00 %)"), "{notes:?}");
        assert_eq!(errors, 0);
        // An interval that would be shown as zero is left out; the document has its digits.
        let (notes, errors) = concluded(&[(0, &[100.0, 100.001, 100.0, 100.0]), (64, &[100.0; 4])]);
        assert!(notes[0].ends_with("of the time of a request (0.00 %)"), "{notes:?}");
        assert_eq!(errors, 1);
        let (notes, _) = concluded(&[(0, &[100.0, 100.1, 100.0, 100.0]), (64, &[100.0; 4])]);
        assert!(notes[0].ends_with("(0.02 % ± 0.08)"), "{notes:?}");
    }

    #[test]
    fn why_there_is_no_recommendation() {
        let (notes, _) = concluded(&[(0, &[100.0]), (64, &[90.0])]);
        let says = "t.csv: NO RECOMMENDATION: 1 of its 20 parts have requests, and its interval needs 2 such parts";
        assert_eq!(notes, [format!("{says} at least")]);
        let (notes, _) = concluded(&[(0, &[100.0; 20])]);
        assert!(notes.len() == 1 && notes[0].starts_with("NO RECOMMENDATION: only one size"), "{notes:?}");
    }

    /// A thousand requests a second, of which the first second is the ramp.
    #[test]
    fn parts_are_of_equal_time_and_begin_behind_the_ramp() {
        let none = |_: &std::path::Path| Err(std::io::Error::other("none"));
        let preset = readpath_config::device::load("ufs21-64g", &none).expect("it comes with the program");
        let text = "[j]\nrw=randread\nbs=4k\nsize=64m\nrate_iops=1000\nramp_time=1\nruntime=2\ntime_based=1\n";
        let context =
            readpath_workload::fio::Context { unit_blocks: &[preset.device.lus[0].blocks], seed: 3, options: &[] };
        let workload = readpath_workload::fio::parse("j", text, &none, &context).expect("a job");
        let precondition = Precondition { layout: Layout::Sequential, range: PreconditionRange::Files };
        let host = preset.host;
        let setup = Setup { preset, host, precondition, seed: 1, encoded: false, events: Vec::new(), over_time: false };
        let (case, variant) = ("j".to_owned(), "v".to_owned());
        let mut plans = vec![Plan { case, variant, setup, workload, inputs: Vec::new() }];
        mark(&mut plans);
        let at: Vec<u64> = plans[0].setup.events.iter().map(|event| event.at.0 / 1_000_000).collect();
        assert_eq!(at, (0..=20).map(|part| 1000 + 100 * part).collect::<Vec<_>>(), "milliseconds");
        let plan = plans.remove(0);
        let output = plan.make(0, None, &Shared::default()).0.expect("it runs");
        let parts = measured(&output.spans);
        assert_eq!(parts.len(), 20);
        assert!(parts.iter().all(|part| (99..=101).contains(&part.requests)), "{parts:?}");
    }
}
