// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdict on variants of one workload: which is the fastest, by how much, how sure that is, and what it costs in
//! memory. It compares figures of runs, in one sentence for each case or one for all, and makes no run.

use crate::compare::t_95;
use crate::saving::{PartTimes, half_of_mean, saving};
use readpath_kit::Ns;
use readpath_results::metric::{self, Figure::LatencyMean, Requests};
use readpath_results::{Document, Finding, Interval, Metric, Note, NoteKind, Row};
use readpath_run::{Bin, PhaseOutput, Series};
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
    fn place(&self) -> (&str, &str) {
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
    in_parts(series, measured, |part: &mut PartTimes, _, bin| {
        let latency = bin.latency[kind as usize];
        part.requests += latency.ios;
        part.ns += latency.total.0 as f64;
    })
}

/// Sums of parts of about equal time, to which `add` adds a bin and its length.
pub(crate) fn in_parts<T: Clone + Default>(
    series: &Series,
    measured: Measured,
    mut add: impl FnMut(&mut T, Ns, &Bin),
) -> Vec<T> {
    let begins = [series.from].into_iter().chain(series.bins.iter().map(|bin| bin.to));
    let within = begins.zip(&series.bins).filter(|(from, bin)| *from >= measured.from && bin.to <= measured.to);
    let bins: Vec<_> = within.collect();
    let mut parts = vec![T::default(); PARTS.min(bins.len())];
    for (i, (from, bin)) in bins.iter().enumerate() {
        let part = &mut parts[i * PARTS.min(bins.len()) / bins.len()];
        add(part, bin.to.saturating_sub(*from), bin);
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

    /// Whether it is slower than the first, as surely.
    fn loses(&self) -> bool {
        Candidate { saves: -self.saves, ..self.clone() }.gains()
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
        if best.mean_us == mean
            && !best.gains()
            && candidates.len() > 2
            && candidates.iter().any(|one| one.mean_us != mean)
        {
            let alike: Vec<String> =
                candidates.iter().filter(|one| one.mean_us == mean).map(|one| format!("'{}'", one.variant)).collect();
            let text = format!(
                "{prefix}{} are alike, and no other variant is faster: {requests} take {} us in the mean.",
                alike.join(" and "),
                digits(mean)
            );
            return self.note(NoteKind::NoDifference, base, text);
        }
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
            // None gains, but one of many may be slower for sure.
            let what = if candidates.iter().any(Candidate::loses) { "gain" } else { "difference" };
            let among = match candidates.len() {
                2 => String::new(),
                many => format!(" among {many} variants"),
            };
            let (first, second) = match candidates.len() {
                2 => ((best, ""), (base, "")),
                _ if best.saves < 0.0 => ((base, "the fastest, "), (best, "the next, ")),
                _ => ((best, "the fastest, "), (base, "")),
            };
            let with = |(one, place): (&Candidate, &str)| {
                format!("with {place}'{}'{}", one.variant, if place.is_empty() { "" } else { "," })
            };
            let text = format!(
                "{prefix}No {what} beyond chance{among}: {} {requests} take {} us in the mean, {} {} ({}).",
                with(first),
                digits(first.0.mean_us),
                with(second),
                digits(second.0.mean_us),
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
pub(crate) fn digits(value: f64) -> String {
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
mod tests;
