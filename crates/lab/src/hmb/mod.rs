// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much host memory a device should get: the experiment `hmb`, and recorded traces on its device, with a
//! recommendation for each case. Runs are cut into parts of equal time or equally many requests, so that the
//! recommendation has an interval. It opens no file.

mod recommend;

pub use recommend::{Advice, LEAST_PARTS, LITTLE_PERCENT, NoAdvice, PartTimes, Saving, SizeTimes, advise};

use crate::experiment::{CaseRun, Plan};
use crate::replay::{ReplayCase, ReplayRun, ReplayVariant};
use readpath_config::experiment::Variant;
use readpath_config::{ConfigFileError, DevicePreset, Event, EventKind};
use readpath_kit::Ns;
use readpath_results::{Document, Error, Note, NoteKind, metric};
use readpath_run::Span;
use readpath_stack::given_host_memory;

/// The experiment's name.
pub const NAME: &str = "hmb";

/// Parts of a run.
const PARTS: u64 = 20;

/// What a run showed, part by part.
struct Parted {
    case: String,
    variant: String,
    bytes: u64,
    parts: Vec<PartTimes>,
}

/// Runs cut into parts, and what they say of sizes of memory.
#[derive(Default)]
pub struct Study {
    runs: Vec<Parted>,
}

/// Cuts what each plan measures into parts of equal time. Plans without a time limit, or of several phases, stay whole.
pub fn mark(plans: &mut [Plan]) {
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
    // The first mark is where the trace begins, so that what is before it is nothing.
    let marks: Vec<Event> = (0..PARTS).filter_map(at).map(|at| Event { at, kind: EventKind::Mark }).collect();
    let marked = |variant: &Variant| Ok(ReplayVariant { events: marks.clone(), ..ReplayVariant::new(variant, base)? });
    variants.iter().map(marked).collect()
}

impl Study {
    /// Takes the parts of runs of the experiment out of them.
    pub fn take(&mut self, runs: &mut [CaseRun]) {
        for run in runs {
            let spans = std::mem::take(&mut run.output.spans);
            run.plan.setup.events.clear();
            // The ramp is before the first mark, and what is behind the last one is not measured.
            let parts = spans.iter().skip(1).take(PARTS as usize).map(times).collect();
            let Plan { case, variant, setup, .. } = &run.plan;
            let bytes = given_host_memory(&setup.preset.device, &setup.host);
            self.runs.push(Parted { case: case.clone(), variant: variant.clone(), bytes, parts });
        }
    }

    /// Takes the parts of replays of one case out of them.
    pub fn take_replays(&mut self, case: &str, variants: &mut [ReplayVariant], runs: &mut [ReplayRun]) {
        for run in runs {
            let variant = &variants[run.variant];
            let parts = std::mem::take(&mut run.spans).iter().skip(1).map(times).collect();
            let bytes = given_host_memory(&variant.preset.device, &variant.host);
            self.runs.push(Parted { case: case.to_owned(), variant: variant.name.clone(), bytes, parts });
        }
        variants.iter_mut().for_each(|variant| variant.events.clear());
    }

    /// Adds to a document what the largest memory would save with each size, and for each case a recommendation, or why
    /// there is none.
    ///
    /// # Errors
    /// As [`Document::row`].
    pub fn conclude(&self, doc: &mut Document) -> Result<(), Error> {
        let mut cases: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !cases.contains(&run.case.as_str()) {
                cases.push(&run.case);
            }
        }
        for case in cases {
            let sizes = self.sizes(case);
            let advice = match advise(&sizes) {
                Ok(advice) => advice,
                Err(why) => {
                    doc.note(Note::remark(silence(case, why)));
                    continue;
                }
            };
            for (size, saving) in sizes.iter().zip(&advice.left) {
                let saves = (metric::MEMORY_WOULD_SAVE, saving.percent);
                let error = saving.interval().map(|half| (metric::MEMORY_WOULD_SAVE_ERROR, half));
                doc.predicted(case, &size.variant, [saves].into_iter().chain(error))?;
            }
            doc.note(Note::new(NoteKind::Advice, format!("{case}: {}", sentence(&sizes, &advice))));
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

    /// A study of one case with these sizes, whose parts take so many microseconds.
    fn study(sizes: &[(u64, &[f64])]) -> Study {
        let run = |(mib, us): &(u64, &[f64])| Parted {
            case: "t.csv".to_owned(),
            variant: format!("{mib} MiB"),
            bytes: mib << 20,
            parts: us.iter().map(|us| PartTimes { requests: 10, ns: us * 1e4 }).collect(),
        };
        Study { runs: sizes.iter().map(run).collect() }
    }

    fn concluded(sizes: &[(u64, &[f64])]) -> (Vec<String>, usize) {
        let mut doc = Document::new("test", "test");
        study(sizes).conclude(&mut doc).expect("a document");
        let errors = doc.rows.iter().filter(|row| row.metric == metric::MEMORY_WOULD_SAVE_ERROR).count();
        (doc.notes.iter().map(Note::to_string).collect(), errors)
    }

    #[test]
    fn what_is_the_same_everywhere_has_no_interval() {
        let (notes, errors) = concluded(&[(0, &[100.0; 5]), (64, &[100.0; 5])]);
        assert!(notes[0].ends_with("save less than 1 % of the time of a request (0.00 %)"), "{notes:?}");
        assert_eq!(errors, 0);
        // Nor has what is shown as nothing; the document has its digits.
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
}
