// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdict on variants of one workload: which is the fastest, by how much, how sure that is, and what it costs in
//! memory. It compares figures of runs, in one sentence for each case or one for all, and makes no run.

use crate::compare::t_95;
use crate::saving::{PartTimes, half_of_mean, saving};
use readpath_kit::Ns;
use readpath_results::metric::{self, Figure::LatencyMean, Requests};
use readpath_results::{Document, Finding, Interval, Metric, Note, NoteKind, Row};
use readpath_run::{PhaseOutput, Series};
use readpath_workload::IoKind;
use serde::{Deserialize, Serialize};

/// Parts of a run, from which the spread of its mean is estimated.
const PARTS: usize = 16;
/// Cases at most that have a sentence each; more have one together.
const MOST_SENTENCES: usize = 2;
/// A variant within so many percent of the best one is as good, if it takes less memory.
const NEAR_PERCENT: f64 = 1.0;
/// Ratios below this are given as a share of time saved.
const LEAST_RATIO: f64 = 1.1;

/// What a run says of one kind of request.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Kind {
    ios: u64,
    mean_us: f64,
    /// Times of its parts; none if they were not kept.
    parts: Vec<PartTimes>,
}

/// What a run, or one of its phases, says of its variant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    case: String,
    /// The phase, if the run has several.
    work: String,
    variant: String,
    /// Reads, and writes.
    kinds: [Kind; 2],
    memory: Memory,
}

/// Memory that a variant takes for the map, in bytes.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) host: f64,
    pub(crate) sram: f64,
}

/// When the requests of an outcome are measured, in virtual time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Measured {
    pub(crate) from: Ns,
    pub(crate) to: Ns,
}

impl Measured {
    /// The whole of a run.
    pub(crate) const ALL: Measured = Measured { from: Ns(0), to: Ns::NEVER };
}

impl Outcome {
    /// The outcome of these phases of a run, of which `series` is kept over time.
    pub(crate) fn new(
        (case, variant): (&str, &str),
        phases: &[&PhaseOutput],
        series: Option<&Series>,
        measured: Measured,
        memory: Memory,
    ) -> Self {
        let kind = |kind: IoKind| {
            let all = phases.iter().flat_map(|phase| &phase.stats.jobs).map(|job| &job.of(kind).latency);
            let (ios, ns) = all.fold((0, 0.0), |(n, ns), l| (n + l.count(), ns + l.mean() * l.count() as f64));
            let parts = series.map_or_else(Vec::new, |series| parts(series, measured, kind));
            Kind { ios, mean_us: ns / 1e3 / ios.max(1) as f64, parts }
        };
        let kinds = [kind(IoKind::Read), kind(IoKind::Write)];
        Outcome { case: case.to_owned(), work: String::new(), variant: variant.to_owned(), kinds, memory }
    }

    /// The same of one of several phases.
    pub(crate) fn of_phase(self, work: &str) -> Self {
        Outcome { work: work.to_owned(), ..self }
    }

    /// Its case and phase; outcomes of one place are compared.
    pub(crate) fn place(&self) -> (&str, &str) {
        (&self.case, &self.work)
    }

    /// Whether it has reads.
    pub(crate) fn reads(&self) -> bool {
        self.kinds[0].ios > 0
    }
}

impl Outcome {
    /// The 95 % interval of a row of this run, if the row is the mean latency of all its reads or of all its writes.
    pub(crate) fn interval(&self, row: &Row) -> Option<Interval> {
        let writes = [Requests::RandomWrite, Requests::Write].iter().any(|of| row.metric == of.of(LatencyMean));
        let kind = &self.kinds[usize::from(writes)];
        let is_all = (kind.mean_us - row.simulated).abs() <= 1e-9 * row.simulated;
        let half = half_of_mean(&kind.parts).filter(|_| is_all && *row.case == *self.case)? / 1e3;
        Some(Interval { low: (row.simulated - half).max(0.0), high: row.simulated + half })
    }

    /// The variant of the run.
    pub(crate) fn variant(&self) -> &str {
        &self.variant
    }

    /// The run in parts of about equal time, with requests of both kinds.
    pub(crate) fn parts(&self) -> Vec<PartTimes> {
        let [reads, writes] = &self.kinds;
        let both = |i: usize| [reads.parts.get(i), writes.parts.get(i)].into_iter().flatten();
        let sum = |i: usize| {
            both(i).fold(PartTimes::default(), |sum, part| PartTimes {
                requests: sum.requests + part.requests,
                ns: sum.ns + part.ns,
            })
        };
        (0..reads.parts.len().max(writes.parts.len())).map(sum).collect()
    }
}

/// What is measured of a run, in parts of about equal time. Bins with anything else are left out.
fn parts(series: &Series, measured: Measured, kind: IoKind) -> Vec<PartTimes> {
    let begins = [series.from].into_iter().chain(series.bins.iter().map(|bin| bin.to));
    let within = begins.zip(&series.bins).filter(|(from, bin)| *from >= measured.from && bin.to <= measured.to);
    let bins: Vec<_> = within.map(|(_, bin)| bin.latency[kind as usize]).collect();
    let mut parts = vec![PartTimes::default(); PARTS.min(bins.len())];
    for (i, latency) in bins.iter().enumerate() {
        let part = &mut parts[i * PARTS.min(bins.len()) / bins.len()];
        part.requests += latency.ios;
        part.ns += latency.total.0 as f64;
    }
    parts
}

/// How sure a difference is.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Sure {
    /// Half of its interval, in points. Those of all comparisons cover together with 95 %: the best of many variants
    /// is not the best by chance.
    Within(f64),
    /// It has no part of chance.
    Exactly,
    /// Nothing tells.
    Unknown,
}

/// A variant beside the first one of its case.
#[derive(Clone, Debug)]
struct Candidate<'a> {
    variant: &'a str,
    mean_us: f64,
    /// Time of a request saved against the first, in percent of the first's.
    saves: f64,
    sure: Sure,
    memory: Memory,
}

/// The candidates of a case, of which the first is what the others are compared with.
#[derive(Clone, Debug)]
struct Contest<'a> {
    case: &'a str,
    /// The phase of a run, or its group of jobs, if there are several.
    work: &'a str,
    requests: &'static str,
    candidates: Vec<Candidate<'a>>,
}

/// The verdict on runs, which are in the order of their variants in each case.
pub(crate) fn of_runs<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Vec<Note> {
    let mut cases: Vec<Vec<&Outcome>> = Vec::new();
    for outcome in outcomes {
        match cases.iter_mut().find(|case| case[0].place() == outcome.place()) {
            Some(case) => case.push(outcome),
            None => cases.push(vec![outcome]),
        }
    }
    let comparisons = cases.iter().map(|outcomes| outcomes.len() - 1).sum();
    let contests: Vec<Contest> = cases.iter().filter_map(|outcomes| contest(outcomes, comparisons)).collect();
    if contests.is_empty() && !cases.is_empty() {
        return vec![Note::new(
            NoteKind::NoAdvice,
            "The workload reads and writes nothing: there is nothing to compare.",
        )];
    }
    sentences(&contests)
}

/// The verdict on a trace whose times are coarse.
pub(crate) fn not_from_these_times(coarse: &Note) -> Note {
    Note {
        kind: NoteKind::NoAdvice,
        text: format!("This cannot be told from this trace. {}", coarse.text),
        ..coarse.clone()
    }
}

/// Reads decide, or writes where there are no reads. The verdict makes so many comparisons in all.
fn contest<'a>(outcomes: &[&'a Outcome], comparisons: usize) -> Option<Contest<'a>> {
    let kind = (0..2).find(|&kind| outcomes.iter().all(|outcome| outcome.kinds[kind].ios > 0))?;
    let base = &outcomes[0].kinds[kind];
    let candidate = |outcome: &&'a Outcome| {
        let own = &outcome.kinds[kind];
        let sure = match saving(&base.parts, &own.parts, comparisons) {
            _ if own.mean_us == base.mean_us => Sure::Exactly,
            Ok(saving) => saving.interval().map_or(Sure::Exactly, Sure::Within),
            Err(_) => Sure::Unknown,
        };
        let saves = 100.0 * (1.0 - own.mean_us / base.mean_us);
        Candidate { variant: &outcome.variant, mean_us: own.mean_us, saves, sure, memory: outcome.memory }
    };
    let requests = ["reads", "writes"][kind];
    let Outcome { case, work, .. } = outcomes[0];
    Some(Contest { case, work, requests, candidates: outcomes.iter().map(candidate).collect() })
}

/// Mean latencies that decide, the first that a document has.
pub(crate) static DECIDING: [(Metric, &str); 4] = [
    (Requests::RandomRead.of(LatencyMean), "reads"),
    (Requests::Read.of(LatencyMean), "reads"),
    (Requests::RandomWrite.of(LatencyMean), "writes"),
    (Requests::Write.of(LatencyMean), "writes"),
];

/// The verdict on the rows of a comparison with `base`, whose differences have an interval of 95 % each.
pub(crate) fn of_comparison(doc: &Document, base: &str) -> Vec<Note> {
    let Some((metric, requests)) = DECIDING.iter().find(|(metric, _)| doc.rows.iter().any(|row| row.metric == *metric))
    else {
        return Vec::new();
    };
    let deciding = || doc.rows.iter().filter(|row| row.metric == *metric);
    let comparisons = deciding().filter(|row| row.variant != base).count();
    let mut contests: Vec<Contest> = Vec::new();
    for first in deciding().filter(|row| row.variant == base) {
        let others = deciding().filter(|row| row.case == first.case && row.variant != base);
        let candidates = [first].into_iter().chain(others).map(|row| compared(doc, first, row, comparisons)).collect();
        contests.push(Contest { case: &first.case, work: first.case.jobs_name().unwrap_or(""), requests, candidates });
    }
    sentences(&contests)
}

/// The candidate of a row beside that of the base.
fn compared<'a>(doc: &Document, base: &Row, row: &'a Row, comparisons: usize) -> Candidate<'a> {
    let memory_of = |metric: &Metric| doc.find(&row.case, &row.variant, metric).map_or(0.0, |row| row.simulated);
    let sure = match &row.difference {
        None => Sure::Exactly,
        Some(difference) => match (difference.finding, difference.percent_interval) {
            (Finding::Identical | Finding::Exact, _) => Sure::Exactly,
            (Finding::Shown | Finding::NotShown, Some(interval)) => {
                let freedom = row.sample.as_ref().map_or(1, |sample| sample.values.len() as u32 - 1);
                Sure::Within(interval.half() * t_95(freedom, comparisons) / t_95(freedom, 1))
            }
            _ => Sure::Unknown,
        },
    };
    Candidate {
        variant: &row.variant,
        mean_us: row.simulated,
        saves: 100.0 * (1.0 - row.simulated / base.simulated),
        sure,
        memory: Memory { host: memory_of(&metric::HOST_MEMORY), sram: memory_of(&metric::DEVICE_MAP_MEMORY) },
    }
}

fn sentences(contests: &[Contest]) -> Vec<Note> {
    match contests {
        [] => Vec::new(),
        [one] => vec![one.verdict("")],
        few if few.len() <= MOST_SENTENCES => {
            few.iter().map(|contest| contest.verdict(&format!("{}: ", contest.case))).collect()
        }
        many => {
            let mut works: Vec<&str> = Vec::new();
            for contest in many {
                if !works.contains(&contest.work) {
                    works.push(contest.work);
                }
            }
            if works.len() == 1 || works.len() > MOST_SENTENCES {
                return vec![together("", &many.iter().collect::<Vec<_>>())];
            }
            let of = |work: &str| many.iter().filter(|contest| contest.work == work).collect::<Vec<_>>();
            works.iter().map(|work| together(&format!("{work}: "), &of(work))).collect()
        }
    }
}

impl Candidate<'_> {
    /// Whether it is faster than the first, beyond chance; by [`NEAR_PERCENT`] where nothing tells what is chance.
    fn gains(&self) -> bool {
        match self.sure {
            Sure::Within(half) => self.saves > half,
            Sure::Exactly => self.saves > 0.0,
            Sure::Unknown => self.saves >= NEAR_PERCENT,
        }
    }
}

impl<'a> Contest<'a> {
    /// The fastest of those that gain, or else of all but the first.
    fn best(&self) -> Option<&Candidate<'a>> {
        let others = &self.candidates[1..];
        others.iter().min_by(|a, b| b.gains().cmp(&a.gains()).then(a.mean_us.total_cmp(&b.mean_us)))
    }

    fn verdict(&self, prefix: &str) -> Note {
        let Contest { requests, candidates, .. } = self;
        let base = &candidates[0];
        let mean = base.mean_us;
        let Some(best) = self.best() else {
            let memory = price(&base.memory, &Memory::default());
            let with = memory.map_or_else(String::new, |memory| format!(" with {memory}"));
            let text = format!(
                "{prefix}{} of '{}' take {} us in the mean{with}. There is no other variant to compare it with.",
                if *requests == "reads" { "Reads" } else { "Writes" },
                base.variant,
                digits(mean)
            );
            return self.note(NoteKind::NoAdvice, base, text);
        };
        if candidates.iter().all(|one| one.mean_us == mean) {
            let names = if candidates.len() == 2 {
                format!("'{}' and '{}' are alike", base.variant, best.variant)
            } else {
                format!("All {} variants are alike", candidates.len())
            };
            return self.note(
                NoteKind::NoDifference,
                best,
                format!("{prefix}{names}: {requests} take {} us in the mean.", digits(mean)),
            );
        }
        let means = format!("{} us in the mean instead of {}", digits(best.mean_us), digits(mean));
        if let Sure::Within(half) = best.sure
            && best.saves.abs() <= half
        {
            let (among, fastest) = match candidates.len() {
                2 => (String::new(), ""),
                many => (format!(" among {many} variants"), "the fastest, "),
            };
            let text = format!(
                "{prefix}No difference beyond chance{among}: with {fastest}'{}' {requests} take {} us in the mean, \
                 with '{}' {} ({}).",
                best.variant,
                digits(best.mean_us),
                base.variant,
                digits(mean),
                signed(-best.saves, best.sure)
            );
            return self.note(NoteKind::NoDifference, best, text);
        }
        let unsure = if best.sure == Sure::Unknown { " One run of each has no interval." } else { "" };
        if best.saves <= 0.0 {
            let next = if candidates.len() > 2 { ", the next" } else { "" };
            let text = format!(
                "{prefix}'{}' is the fastest: {requests} take {} us in the mean, and {} more time with \
                 '{}'{next}.{unsure}",
                base.variant,
                digits(mean),
                share(-best.saves, best.sure),
                best.variant
            );
            return self.note(NoteKind::Gain, base, text);
        }
        let ratio = 1.0 / (1.0 - best.saves / 100.0);
        let gain = if ratio >= LEAST_RATIO {
            // A change of the share saved by a point changes the ratio by its square.
            let half = match best.sure {
                Sure::Within(half) => Some(ratio * ratio * half / 100.0),
                _ => None,
            };
            format!("makes {requests} {} × as fast as '{}'", plus_minus(ratio, half), base.variant)
        } else {
            format!("saves {} of the time that {requests} take with '{}'", share(best.saves, best.sure), base.variant)
        };
        let cost = price(&best.memory, &base.memory).map_or_else(String::new, |price| format!(", for {price}"));
        let near = self.cheaper(best).map(|one| {
            let price = price(&one.memory, &base.memory).unwrap_or_else(|| "no more memory".to_owned());
            format!(" '{}' comes within {NEAR_PERCENT} % of that for {price}.", one.variant)
        });
        let text = format!("{prefix}'{}' {gain} ({means}){cost}.{}{unsure}", best.variant, near.unwrap_or_default());
        self.note(NoteKind::Gain, best, text)
    }

    /// The candidate with the least memory that is as good as the best.
    fn cheaper(&self, best: &Candidate<'a>) -> Option<&Candidate<'a>> {
        let total = |one: &Candidate| one.memory.host + one.memory.sram;
        let near = |one: &&Candidate| one.mean_us <= best.mean_us * (1.0 + NEAR_PERCENT / 100.0);
        let cheaper = self.candidates.iter().filter(near).filter(|one| total(one) < total(best));
        cheaper.min_by(|a, b| total(a).total_cmp(&total(b)))
    }

    fn note(&self, kind: NoteKind, of: &Candidate<'a>, text: String) -> Note {
        let note = Note::new(kind, text).of_case(self.case).of_variant(of.variant).with("mean_us", of.mean_us);
        let note = note.with("saved_percent", of.saves);
        let note = match of.sure {
            Sure::Within(half) => note.with("saved_half_interval_points", half),
            Sure::Exactly | Sure::Unknown => note,
        };
        note.with("host_memory_bytes", of.memory.host).with("map_sram_bytes", of.memory.sram)
    }
}

/// One sentence for many cases: the variant with the best geometric mean of all that have every case.
fn together(prefix: &str, contests: &[&Contest]) -> Note {
    let base = contests[0].candidates[0].variant;
    let of = |variant: &str| -> Option<Vec<(&Contest, &Candidate)>> {
        contests.iter().map(|c| Some((*c, c.candidates.iter().find(|one| one.variant == variant)?))).collect()
    };
    let ratio = |one: &Candidate| 1.0 / (1.0 - one.saves / 100.0);
    let product = |all: &[(&Contest, &Candidate)]| all.iter().map(|(_, one)| ratio(one)).product::<f64>();
    let variants = contests[0].candidates[1..].iter().filter_map(|one| Some((one.variant, of(one.variant)?)));
    let faster = |all: &[(&Contest, &Candidate)]| all.iter().filter(|(_, one)| one.gains()).count();
    let rank = |all: &[(&Contest, &Candidate)]| (faster(all) > 0, product(all));
    let order = |a: (bool, f64), b: (bool, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
    let Some((variant, all)) = variants.max_by(|a, b| order(rank(&a.1), rank(&b.1))) else {
        let text = format!(
            "{prefix}{} cases have no two variants in common: there is nothing to compare '{base}' with.",
            contests.len()
        );
        return Note::new(NoteKind::NoAdvice, text);
    };
    let mut ratios: Vec<f64> = all.iter().map(|(_, one)| ratio(one)).collect();
    ratios.sort_by(f64::total_cmp);
    let Some((most, _)) = all.iter().max_by(|a, b| ratio(a.1).total_cmp(&ratio(b.1))) else {
        unreachable!("there are several cases")
    };
    let faster = faster(&all);
    let host = all.iter().map(|(_, one)| one.memory.host).fold(0.0, f64::max);
    let sram = all.iter().map(|(_, one)| one.memory.sram).fold(0.0, f64::max);
    let base_memory = all
        .iter()
        .map(|(contest, _)| contest.candidates[0].memory)
        .fold(Memory::default(), |a, b| Memory { host: a.host.max(b.host), sram: a.sram.max(b.sram) });
    let price = price(&Memory { host, sram }, &base_memory).map_or_else(String::new, |p| format!(", for at most {p}"));
    let requests = contests[0].requests;
    let text = if faster == 0 {
        let by = match all.iter().any(|(_, one)| one.sure == Sure::Unknown) {
            true => format!("by {NEAR_PERCENT} % or more"),
            false => "beyond chance".to_owned(),
        };
        format!(
            "{prefix}In none of {} cases do {requests} of another variant take less time than those of '{base}' {by}.",
            all.len()
        )
    } else {
        format!(
            "{prefix}'{variant}' makes {requests} faster than '{base}' in {faster} of {} cases ({} to {} ×, most in \
             '{}'){price}.",
            all.len(),
            digits(ratios[0]),
            digits(ratios[ratios.len() - 1]),
            most.case
        )
    };
    let kind = if faster == 0 { NoteKind::NoDifference } else { NoteKind::Gain };
    Note::new(kind, text).of_variant(variant).with("cases", all.len() as f64).with("cases_faster", faster as f64)
}

/// How well a document meets published values, if it has any.
pub(crate) fn of_published(doc: &Document) -> Option<Note> {
    let errors: Vec<(&Row, f64)> = doc.rows.iter().filter_map(|row| Some((row, row.error_percent?.abs()))).collect();
    let (worst, largest) = errors.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let mean = errors.iter().map(|(_, error)| error).sum::<f64>() / errors.len() as f64;
    let place = [&*worst.case, &*worst.variant].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(", ");
    let text = format!(
        "Of {} published values the model is off by {mean:.2} % in the mean and by {largest:.2} % at most ({place}, \
         {}).",
        errors.len(),
        worst.metric.label()
    );
    let note = Note::new(NoteKind::Claim, text).with("published_values", errors.len() as f64);
    Some(note.with("mean_error_percent", mean).with("largest_error_percent", *largest))
}

/// What a variant takes more, or less, than another.
fn price(memory: &Memory, base: &Memory) -> Option<String> {
    let part = |bytes: f64, base: f64, of: &str| match bytes - base {
        0.0 => None,
        more if more > 0.0 => Some(format!("{} of {of}", size(more))),
        less => Some(format!("{} less of {of}", size(-less))),
    };
    let parts = [part(memory.host, base.host, "host memory"), part(memory.sram, base.sram, "SRAM")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// Bytes in the unit that leaves one to four digits before the point.
pub(crate) fn size(bytes: f64) -> String {
    const UNITS: [&str; 4] = ["bytes", "KiB", "MiB", "GiB"];
    let unit =
        UNITS[1..].iter().fold(
            (bytes, UNITS[0]),
            |(value, unit), &next| {
                if value >= 1024.0 { (value / 1024.0, next) } else { (value, unit) }
            },
        );
    match unit {
        (value, "bytes") => format!("{value:.0} bytes"),
        (value, unit) if (value - value.round()).abs() < 0.05 => format!("{value:.0} {unit}"),
        (value, unit) => format!("{value:.1} {unit}"),
    }
}

/// A number with at least three digits.
fn digits(value: f64) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A value and half of its interval to the same digit: two digits behind the point, or as many as the interval needs,
/// up to four. An interval is never shown as nothing.
pub(crate) fn plus_minus(value: f64, half: Option<f64>) -> String {
    let digits = match half {
        None | Some(0.005..) => 2,
        Some(0.0005..) => 3,
        Some(_) => 4,
    };
    let step = 0.1f64.powi(digits as i32);
    // A value of nothing has no sign.
    let value = if value.abs() < step / 2.0 { 0.0 } else { value };
    let half = half.map_or_else(String::new, |half| format!(" ± {:.digits$}", half.max(step)));
    format!("{value:.digits$}{half}")
}

fn share(percent: f64, sure: Sure) -> String {
    let half = if let Sure::Within(half) = sure { Some(half) } else { None };
    format!("{} %", plus_minus(percent, half))
}

fn signed(percent: f64, sure: Sure) -> String {
    let sign = if percent < 0.0 { "−" } else { "+" };
    format!("{sign}{}", share(percent.abs(), sure))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(us: &[f64]) -> Vec<PartTimes> {
        us.iter().map(|us| PartTimes { requests: 10, ns: us * 1e4 }).collect()
    }

    /// A run whose reads took so many microseconds part by part, with so many MiB of host memory.
    fn run(case: &str, variant: &str, us: &[f64], mib: f64) -> Outcome {
        let mean_us = us.iter().sum::<f64>() / us.len() as f64;
        let reads = Kind { ios: 10 * us.len() as u64, mean_us, parts: parts(us) };
        let memory = Memory { host: mib * 1024.0 * 1024.0, sram: 0.0 };
        let (case, variant) = (case.to_owned(), variant.to_owned());
        Outcome { case, work: String::new(), variant, kinds: [reads, Kind::default()], memory }
    }

    fn said(runs: &[Outcome]) -> Vec<(NoteKind, String)> {
        of_runs(runs).into_iter().map(|note| (note.kind, note.text)).collect()
    }

    const OFF: [f64; 4] = [200.0, 202.0, 198.0, 200.0];
    const ON: [f64; 4] = [100.0; 4];

    #[test]
    fn the_fastest_variant_its_interval_and_its_price() {
        let text = "'on' makes reads 2.00 ± 0.03 × as fast as 'off' (100.0 us in the mean instead of 200.0), for 16 \
                    MiB of host memory.";
        let runs = [run("c", "off", &OFF, 0.0), run("c", "on", &ON, 16.0)];
        assert_eq!(said(&runs), [(NoteKind::Gain, text.to_owned())]);
        let note = &of_runs(&runs)[0];
        assert_eq!((note.case.as_deref(), note.variant.as_deref()), (Some("c"), Some("on")));
        assert_eq!(note.numbers[..2], [("mean_us".to_owned(), 100.0), ("saved_percent".to_owned(), 50.0)]);
        let near = run("c", "small", &[100.5; 4], 2.0);
        let with_near = said(&[runs[0].clone(), runs[1].clone(), near]);
        assert_eq!(with_near[0].1, format!("{text} 'small' comes within 1 % of that for 2 MiB of host memory."));
        let little = said(&[run("c", "off", &OFF, 4.0), run("c", "on", &[196.0, 198.0, 194.0, 196.0], 2.0)]);
        let text = "'on' saves 2.00 ± 0.03 % of the time that reads take with 'off' (196.0 us in the mean instead of \
                    200.0), for 2 MiB less of host memory.";
        assert_eq!(little[0].1, text);
    }

    #[test]
    fn what_may_be_chance_is_no_gain() {
        let runs = [run("c", "off", &OFF, 0.0), run("c", "on", &[190.0, 206.0, 200.0, 202.0], 16.0)];
        let [(kind, text)] = &said(&runs)[..] else { panic!("one case") };
        assert_eq!(*kind, NoteKind::NoDifference);
        assert!(text.starts_with("No difference beyond chance: with 'on' reads take 199.5 us"), "{text}");
        assert!(text.contains("(−0.25 ± "), "{text}");
        let alike = said(&[run("c", "off", &OFF, 0.0), run("c", "on", &OFF, 16.0)]);
        assert_eq!(alike[0].1, "'off' and 'on' are alike: reads take 200.0 us in the mean.");
    }

    /// 30 variants whose parts differ from the base by noise only: at most one verdict in twenty is a gain, though the
    /// best of them nearly always has an interval of its own without zero.
    #[test]
    fn the_best_of_many_equal_variants_is_no_gain() {
        let mut gains = 0;
        for seed in 1..=200 {
            let mut draws = readpath_kit::Prng::new(seed);
            let mut noise = || (0..PARTS).map(|_| 100.0 + draws.below(1000) as f64 / 100.0).collect::<Vec<f64>>();
            let runs: Vec<Outcome> = (0..31).map(|n| run("c", &format!("v{n}"), &noise(), 0.0)).collect();
            let [(kind, text)] = &said(&runs)[..] else { panic!("one case") };
            gains += u32::from(*kind == NoteKind::Gain);
            let says = text.starts_with("No difference beyond chance among 31 variants: with the fastest, 'v");
            assert!(*kind == NoteKind::Gain || says, "{text}");
        }
        assert!(gains <= 10, "{gains} of 200");
    }

    /// A variant that is surely faster is named, though another seems to be still faster.
    #[test]
    fn a_sure_gain_comes_before_an_unsure_one() {
        let unsure = [20.0, 180.0, 20.0, 180.0];
        let runs = [run("c", "off", &OFF, 0.0), run("c", "sure", &[150.0; 4], 0.0), run("c", "unsure", &unsure, 0.0)];
        assert!(said(&runs)[0].1.starts_with("'sure' makes reads 1.33 ± 0.0"), "{:?}", said(&runs));
    }

    #[test]
    fn a_value_and_its_interval_end_with_the_same_digit() {
        let shown = [(1.7944, 0.0021), (1.7944, 0.02), (-0.001, 0.01), (2.0, 0.00004), (0.5, 1e-7)];
        let shown = shown.map(|(value, half)| plus_minus(value, Some(half)));
        assert_eq!(shown, ["1.794 ± 0.002", "1.79 ± 0.02", "0.00 ± 0.01", "2.0000 ± 0.0001", "0.5000 ± 0.0001"]);
        assert_eq!(plus_minus(-0.001, None), "0.00");
    }

    #[test]
    fn a_variant_that_loses() {
        let [(_, text)] = &said(&[run("c", "off", &ON, 0.0), run("c", "on", &OFF, 16.0)])[..] else { panic!("one") };
        let start = "'off' is the fastest: reads take 100.0 us in the mean, and 100.00 ± ";
        assert!(text.starts_with(start) && text.ends_with(" % more time with 'on'."), "{text}");
    }

    /// Without parts nothing tells what is chance; a variant alone has nothing to be compared with.
    #[test]
    fn what_cannot_be_told_is_said() {
        let bare = |variant: &str, us: f64| Outcome {
            kinds: [Kind { ios: 10, mean_us: us, parts: Vec::new() }, Kind::default()],
            ..run("c", variant, &[us], 0.0)
        };
        let [(_, text)] = &said(&[bare("off", 200.0), bare("on", 100.0)])[..] else { panic!("one") };
        assert!(text.starts_with("'on' makes reads 2.00 × as fast"), "{text}");
        assert!(text.ends_with(" One run of each has no interval."), "{text}");
        let alone = said(&[run("c", "on", &ON, 16.0)]);
        let text = "Reads of 'on' take 100.0 us in the mean with 16 MiB of host memory. There is no other variant to \
                    compare it with.";
        assert_eq!(alone, [(NoteKind::NoAdvice, text.to_owned())]);
        let idle = Outcome { kinds: Default::default(), ..run("c", "on", &ON, 16.0) };
        assert_eq!(said(&[idle])[0].0, NoteKind::NoAdvice);
        assert_eq!(said(&[]), []);
    }

    #[test]
    fn two_cases_have_a_sentence_each_and_more_have_one() {
        let of = |case: &str, us: f64| [run(case, "off", &OFF, 0.0), run(case, "on", &[us; 4], 16.0)];
        let two = said(&[of("a", 100.0), of("b", 50.0)].concat());
        assert!(two[0].1.starts_with("a: 'on' makes reads 2.00") && two[1].1.starts_with("b: 'on' makes reads 4.00"));
        let three = said(&[of("a", 100.0), of("b", 50.0), of("c", 200.1)].concat());
        let text = "'on' makes reads faster than 'off' in 2 of 3 cases (1.00 to 4.00 ×, most in 'b'), for at most 16 \
                    MiB of host memory.";
        assert_eq!(three, [(NoteKind::Gain, text.to_owned())]);
    }

    /// Phases of several cases have a sentence each, if there are two of them.
    #[test]
    fn two_phases_are_said_apart() {
        let of = |n: u32, work: &str, us: f64| {
            let case = format!("{n} threads: {work}");
            [run(&case, "off", &OFF, 0.0), run(&case, "on", &[us; 4], 16.0)].map(|one| one.of_phase(work))
        };
        let both = |n| [of(n, "in order", 200.1), of(n, "at random", 100.0 + f64::from(n))].concat();
        let text = "at random: 'on' makes reads faster than 'off' in 2 of 2 cases (1.96 to 1.98 ×, most in '1 threads: \
                    at random'), for at most 16 MiB of host memory.";
        let apart = said(&[both(1), both(2)].concat());
        let none = "in order: In none of 2 cases do reads of another variant take less time than those of 'off' \
                    beyond chance.";
        assert_eq!(apart, [(NoteKind::NoDifference, none.to_owned()), (NoteKind::Gain, text.to_owned())]);
        let three = said(&[both(1), both(2), of(1, "third", 150.0).to_vec()].concat());
        assert!(
            three.len() == 1 && three[0].1.starts_with("'on' makes reads faster than 'off' in 3 of 5"),
            "{three:?}"
        );
        // Less than one percent is no gain where nothing tells what is chance.
        let bare = |case: &str, variant: &str, us: f64| {
            let kinds = [Kind { ios: 10, mean_us: us, parts: Vec::new() }, Kind::default()];
            Outcome { kinds, ..run(case, variant, &[us], 0.0) }
        };
        let all = ["a", "b", "c"].map(|case| [bare(case, "off", 100.0), bare(case, "on", 99.5)]).concat();
        assert!(said(&all)[0].1.ends_with(" those of 'off' by 1 % or more."), "{:?}", said(&all));
    }

    /// Bins of the ramp are left out, and the others make parts that lose no request.
    #[test]
    fn parts_are_those_behind_the_ramp() {
        let latency = |ios: u64| readpath_run::Latency { ios, total: Ns(1000 * ios), p50: Ns(0), p99: Ns(0) };
        let bin = |at: u64| readpath_run::Bin {
            to: Ns(10 * at),
            device: Default::default(),
            host_memory: 0,
            valid: 0,
            latency: [latency(at), latency(0)],
        };
        let series = Series { from: Ns(0), bins: (1..=42).map(bin).collect(), regions: None };
        let all = |from| Measured { from: Ns(from), ..Measured::ALL };
        let of = |measured| -> Vec<u64> {
            super::parts(&series, measured, IoKind::Read).iter().map(|part| part.requests).collect()
        };
        let requests = |ramp| of(all(ramp));
        assert_eq!((requests(0).len(), requests(0).iter().sum::<u64>()), (PARTS, 42 * 43 / 2));
        assert_eq!(requests(400), [41, 42], "two bins end behind the ramp");
        assert_eq!(requests(399), [41, 42]);
        assert_eq!(requests(389), [40, 41, 42], "a bin that begins before is left out");
        assert_eq!(of(Measured { from: Ns(390), to: Ns(415) }), [40, 41], "as one that ends behind");
        let [first, _] = super::parts(&series, all(400), IoKind::Read)[..] else { panic!("two parts") };
        assert_eq!(first.ns, 41_000.0);
        assert!(requests(420).is_empty());
    }

    #[test]
    fn bytes_have_a_unit_with_few_digits() {
        let shown = [0.0, 512.0, 1024.0, 17_182_720.0, 3.5 * 1024.0 * 1024.0 * 1024.0].map(size);
        assert_eq!(shown, ["0 bytes", "512 bytes", "1 KiB", "16.4 MiB", "3.5 GiB"]);
    }

    #[test]
    fn published_values_are_summed_up() {
        let mut doc = Document::new("e", "t");
        assert_eq!(of_published(&doc), None);
        for (case, value) in [("a", 101.0), ("b", 97.0)] {
            let row = doc.row(case, "v", metric::SECONDS, value, readpath_results::Origin::Fit).expect("a row");
            row.published(100.0).expect("a value");
        }
        let note = of_published(&doc).expect("published values");
        assert!(note.text.starts_with("Of 2 published values the model is off by 2.00 % in the mean and by 3.00 %"));
        assert!(note.text.contains("(b, v, "), "{}", note.text);
    }
}
