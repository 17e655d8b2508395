// SPDX-License-Identifier: MIT OR Apache-2.0
//! The states that any disk may leave which keeps the rules of flush and FUA: what was answered before a flush was sent
//! that succeeded, or had FUA, is there; of everything else that was sent, any part may be missing, and a write may be
//! torn between two sectors.
//!
//! Systematic states come first, in an order that spreads any number of them over the recording: all that was sent is
//! there (at each moment: of a request, an answer with FUA, a mark), one write is torn, one is lost, one alone is kept
//! (when most may be lost: just before something becomes durable). Then random ones. State `n` depends on nothing but
//! the log, the seed and `n`.

use crate::base::Base;
use crate::error::CrashError;
use crate::log::{Log, range};
use crate::state::State;
use crate::states::States;
use readpath_kit::{Ns, Prng};
use readpath_serve::What;
use std::fmt::{self, Write as _};
use std::ops::Range;

/// What a name of these states begins with.
const KIND: &str = "permitted:";
const SECTOR: u64 = 512;

/// When power goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// When this request had been sent.
    Sent(u64),
    /// When this request had been answered.
    Answered(u64),
    /// When this mark had been made.
    Marked(u64),
}

/// One state: its moment, and which of the requests that may be lost then are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// When power goes.
    pub moment: Moment,
    /// Places of the lost changes in the log, ascending.
    pub lost: Vec<usize>,
    /// A change of which only these sectors of 512 bytes, counted in itself, are there.
    pub torn: Option<(usize, Range<u64>)>,
}

/// See the module.
pub struct Permitted<'a> {
    log: &'a Log,
    seed: u64,
    /// Moments in order: time, and the request.
    moments: Vec<(Ns, Moment)>,
    /// The last moments before something becomes durable, and how many changes may be lost then, added up.
    ends: Vec<(usize, u64)>,
    /// Kinds of tears of the changes, added up.
    tears: Vec<u64>,
}

impl<'a> Permitted<'a> {
    /// The states of a log.
    pub fn new(log: &'a Log, seed: u64) -> Permitted<'a> {
        let mut moments = Vec::new();
        for change in &log.changes {
            if change.what != What::Flush {
                moments.push((change.sent, Moment::Sent(change.number)));
            }
            if change.fua {
                moments.push((change.answered, Moment::Answered(change.number)));
            }
        }
        if !moments.is_empty() {
            moments.extend(log.marks.iter().map(|mark| (mark.at, Moment::Marked(mark.number))));
        }
        moments.sort_by_key(|&(at, _)| at);
        let mut permitted = Permitted { log, seed, moments, ends: Vec::new(), tears: Vec::new() };
        permitted.count();
        permitted
    }

    fn count(&mut self) {
        let changes = || self.log.changes.iter().zip(&self.log.durable).filter(|(change, _)| change.bytes() > 0);
        let mut sent: Vec<Ns> = changes().map(|(change, _)| change.sent).collect();
        let mut durable: Vec<Ns> = changes().map(|(_, &durable)| durable).collect();
        sent.sort();
        durable.sort();
        let mut ends = durable.clone();
        ends.dedup();
        let mut sum = 0;
        for end in ends {
            // The moments before it.
            let Some(last) = self.moments.partition_point(|&(at, _)| at < end).checked_sub(1) else { continue };
            let now = self.moments[last].0;
            let optional = sent.partition_point(|&at| at <= now) - durable.partition_point(|&at| at <= now);
            sum += optional as u64;
            self.ends.push((last, sum));
        }
        let mut sum = 0;
        self.tears = self
            .log
            .changes
            .iter()
            .map(|change| {
                sum += tears(sectors(&range(change))).len() as u64;
                sum
            })
            .collect();
    }

    fn torn(&self) -> u64 {
        self.tears.last().copied().unwrap_or(0)
    }

    fn optional(&self) -> u64 {
        self.ends.last().map_or(0, |&(_, sum)| sum)
    }

    fn nth_of_all(&self, n: u64) -> Option<Spec> {
        let all = States::systematic(self);
        if all == 0 {
            return None;
        }
        if n >= all {
            return Some(self.random(n));
        }
        let mut n = spread(n, all);
        if n < self.moments.len() as u64 {
            return Some(Spec { moment: self.moments[n as usize].1, lost: Vec::new(), torn: None });
        }
        n -= self.moments.len() as u64;
        if n < self.torn() {
            let change = self.tears.partition_point(|&sum| sum <= n);
            let kind = n - change.checked_sub(1).map_or(0, |before| self.tears[before]);
            let change_of = &self.log.changes[change];
            let kept = tears(sectors(&range(change_of))).swap_remove(kind as usize);
            return Some(Spec { moment: Moment::Sent(change_of.number), lost: Vec::new(), torn: Some((change, kept)) });
        }
        n -= self.torn();
        let (alone, n) = (n >= self.optional(), n % self.optional());
        let end = self.ends.partition_point(|&(_, sum)| sum <= n);
        let within = (n - end.checked_sub(1).map_or(0, |before| self.ends[before].1)) as usize;
        let moment = self.moments[self.ends[end].0].1;
        let mut lost = self.may_be_lost(moment);
        let one = lost.remove(within);
        Some(Spec { moment, lost: if alone { lost } else { vec![one] }, torn: None })
    }

    fn random(&self, n: u64) -> Spec {
        let rng = &mut Prng::stream(self.seed, "crash", n);
        let moment = self.moments[rng.below(self.moments.len() as u64) as usize].1;
        let mut lost = self.may_be_lost(moment);
        let tear = rng.below(4) == 0;
        let torn = if tear && !lost.is_empty() {
            let change = lost[rng.below(lost.len() as u64) as usize];
            let mut kinds = tears(sectors(&range(&self.log.changes[change])));
            let kind = (!kinds.is_empty()).then(|| kinds.swap_remove(rng.below(kinds.len() as u64) as usize));
            kind.map(|kept| (change, kept))
        } else {
            None
        };
        let of_eight = [1, 4, 7][rng.below(3) as usize];
        lost.retain(|&change| rng.below(8) < of_eight && torn.as_ref().is_none_or(|&(torn, _)| torn != change));
        Spec { moment, lost, torn }
    }

    fn time(&self, moment: Moment) -> Option<Ns> {
        let change = |number| self.log.find(number).map(|change| &self.log.changes[change]);
        match moment {
            Moment::Sent(number) => change(number).map(|change| change.sent),
            Moment::Answered(number) => change(number).map(|change| change.answered),
            Moment::Marked(number) => self.log.marks.iter().find(|mark| mark.number == number).map(|mark| mark.at),
        }
    }

    /// Whether a change has been sent at a moment, and is not durable yet.
    fn is_optional(&self, change: usize, now: Ns) -> bool {
        let of = &self.log.changes[change];
        of.bytes() > 0 && of.sent <= now && self.log.durable[change] > now
    }

    /// The changes that may be lost at a moment.
    pub(crate) fn may_be_lost(&self, moment: Moment) -> Vec<usize> {
        let now = self.time(moment).unwrap_or(Ns::ZERO);
        (0..self.log.changes.len()).filter(|&change| self.is_optional(change, now)).collect()
    }

    fn parsed(&self, name: &str) -> Result<Spec, String> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("'{text}' is not a number"));
        let known = |n: u64| self.log.find(n).ok_or_else(|| format!("request {n} changes nothing, or is not recorded"));
        let words = name.strip_prefix(KIND).ok_or_else(|| format!("it does not begin with '{KIND}'"))?;
        let (moment, rest) = words.split_once(',').unwrap_or((words, ""));
        let moment = match moment.split_once('=') {
            Some(("sent", of)) => Moment::Sent(number(of)?),
            Some(("answered", of)) => Moment::Answered(number(of)?),
            Some(("marked", of)) => Moment::Marked(number(of)?),
            _ => return Err("sent=NUMBER, answered=NUMBER or marked=NUMBER comes first".to_owned()),
        };
        match moment {
            Moment::Sent(of) | Moment::Answered(of) => _ = known(of)?,
            Moment::Marked(of) if self.time(moment).is_none() => return Err(format!("order {of} is no mark")),
            Moment::Marked(_) => {}
        }
        let optional = self.may_be_lost(moment);
        let mut spec = Spec { moment, lost: Vec::new(), torn: None };
        let is_in = |list: &str| -> Result<Vec<usize>, String> {
            if list == "all" {
                return Ok(optional.clone());
            }
            let mut found = Vec::new();
            for run in list.split('+') {
                let (from, to) = run.split_once('-').unwrap_or((run, run));
                let (from, to) = (known(number(from)?)?, known(number(to)?)?);
                let of_run = optional.iter().copied().filter(|change| (from..=to).contains(change));
                let before = found.len();
                found.extend(of_run);
                if found.len() == before {
                    return Err(format!("{run} cannot be lost then: it was durable, or had not been sent"));
                }
            }
            found.sort_unstable();
            found.dedup();
            Ok(found)
        };
        for word in rest.split(',').filter(|word| !word.is_empty()) {
            match word.split_once('=') {
                Some(("lost", list)) => spec.lost = is_in(list)?,
                Some(("kept", list)) => {
                    let kept = is_in(list)?;
                    spec.lost = optional.iter().copied().filter(|change| !kept.contains(change)).collect();
                }
                Some(("torn", of)) => {
                    let (change, kept) = of.split_once('@').ok_or("torn=NUMBER@FROM-TO")?;
                    let (from, to) = kept.split_once('-').ok_or("torn=NUMBER@FROM-TO")?;
                    let (change, kept) = (known(number(change)?)?, number(from)?..number(to)?);
                    if !optional.contains(&change) {
                        return Err("what is torn was durable, or had not been sent".to_owned());
                    }
                    let most = sectors(&range(&self.log.changes[change]));
                    if kept.start >= kept.end || kept.end > most {
                        return Err(format!("the torn request has {most} sectors"));
                    }
                    spec.torn = Some((change, kept));
                }
                _ => return Err(format!("'{word}' is neither lost=, kept= nor torn=")),
            }
        }
        Ok(spec)
    }
}

/// Stands for the tear of a state among its lost changes.
const TEAR: usize = usize::MAX;

impl States for Permitted<'_> {
    type Spec = Spec;

    fn systematic(&self) -> u64 {
        self.moments.len() as u64 + self.torn() + 2 * self.optional()
    }

    fn whole(&self) -> Option<Spec> {
        self.moments.last().map(|&(_, moment)| Spec { moment, lost: Vec::new(), torn: None })
    }

    fn nth(&self, n: u64) -> Option<Spec> {
        self.nth_of_all(n)
    }

    fn state(&self, spec: &Spec, base: &Base) -> Result<State, CrashError> {
        let now = self.time(spec.moment).unwrap_or(Ns::ZERO);
        let mut state = State::before(self.log, now);
        let mut lost = spec.lost.iter().peekable();
        for (index, change) in self.log.changes.iter().enumerate() {
            if lost.next_if_eq(&&index).is_some() || change.sent > now {
                continue;
            }
            let only = spec.torn.as_ref().filter(|(torn, _)| *torn == index).map(|(_, kept)| {
                let first = change.offset / SECTOR;
                (first + kept.start) * SECTOR..(first + kept.end) * SECTOR
            });
            state.apply(self.log, base, index, only)?;
        }
        Ok(state)
    }

    fn name(&self, spec: &Spec) -> String {
        let mut name = format!("{KIND}{}", spec.moment);
        let optional = self.may_be_lost(spec.moment);
        let is_kept = |change: &usize| spec.lost.binary_search(change).is_err();
        let kept: Vec<usize> = optional.iter().copied().filter(is_kept).collect();
        let runs = |of: &[usize]| runs(self.log, of, &optional);
        let (there, gone) = (runs(&kept), runs(&spec.lost));
        let _ = match (spec.lost.is_empty(), kept.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => write!(name, ",lost=all"),
            (false, false) if there.len() < gone.len() => write!(name, ",kept={there}"),
            (false, false) => write!(name, ",lost={gone}"),
        };
        if let Some((change, kept)) = &spec.torn {
            let _ = write!(name, ",torn={}@{}-{}", self.log.changes[*change].number, kept.start, kept.end);
        }
        name
    }

    fn parse(&self, name: &str) -> Result<Spec, CrashError> {
        self.parsed(name).map_err(|what| CrashError::Name { name: name.to_owned(), what })
    }

    fn losses(&self, spec: &Spec, _: &Base) -> Result<Vec<usize>, CrashError> {
        Ok(spec.lost.iter().copied().chain(spec.torn.as_ref().map(|_| TEAR)).collect())
    }

    fn with_losses(&self, spec: &Spec, losses: &[usize]) -> Spec {
        let lost = losses.iter().copied().filter(|&loss| loss != TEAR).collect();
        let torn = spec.torn.clone().filter(|_| losses.contains(&TEAR));
        Spec { moment: spec.moment, lost, torn }
    }

    fn earlier(&self, spec: &Spec) -> Vec<Spec> {
        let now = self.time(spec.moment).unwrap_or(Ns::ZERO);
        let lost = spec.lost.iter().chain(spec.torn.as_ref().map(|(torn, _)| torn));
        let from = lost.map(|&change| self.log.changes[change].sent).max().unwrap_or(Ns::ZERO);
        let moments = self.moments.iter().filter(|&&(at, _)| (from..now).contains(&at));
        moments.map(|&(_, moment)| Spec { moment, ..spec.clone() }).collect()
    }

    fn moment(&self, spec: &Spec) -> String {
        let described = |number| self.log.find(number).map(|change| self.log.described(change)).unwrap_or_default();
        let now = self.time(spec.moment).unwrap_or(Ns::ZERO);
        let mark = self.log.marked(now);
        match spec.moment {
            Moment::Sent(number) => format!("power goes behind {}{mark}", described(number)),
            Moment::Answered(number) => format!("power goes behind the answer to {}{mark}", described(number)),
            Moment::Marked(number) => {
                let words = self.log.mark(now).map_or("", |mark| &mark.words);
                format!("power goes behind mark {number} '{words}'")
            }
        }
    }

    fn described(&self, spec: &Spec) -> Vec<String> {
        let of = |change: &usize| self.log.described(*change);
        let mut lines: Vec<String> = spec.lost.iter().map(|change| format!("lost: {}", of(change))).collect();
        lines.extend(spec.torn.as_ref().map(|(change, kept)| {
            let Range { start, end } = kept;
            format!("torn: {}, of which sectors {start} to {} are there", of(change), end - 1)
        }));
        lines
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Moment::Sent(number) => write!(f, "sent={number}"),
            Moment::Answered(number) => write!(f, "answered={number}"),
            Moment::Marked(number) => write!(f, "marked={number}"),
        }
    }
}

/// Changes by their numbers: those that follow each other among `all` as a run.
fn runs(log: &Log, of: &[usize], all: &[usize]) -> String {
    let mut text = String::new();
    let mut i = 0;
    while i < of.len() {
        let place = all.partition_point(|&change| change < of[i]);
        let run = of[i..].iter().zip(&all[place..]).take_while(|(a, b)| a == b).count().max(1);
        let (first, last) = (log.changes[of[i]].number, log.changes[of[i + run - 1]].number);
        if !text.is_empty() {
            text.push('+');
        }
        let _ = if run == 1 { write!(text, "{first}") } else { write!(text, "{first}-{last}") };
        i += run;
    }
    text
}

/// Sectors that a range of bytes touches.
fn sectors(bytes: &Range<u64>) -> u64 {
    if bytes.is_empty() { 0 } else { bytes.end.div_ceil(SECTOR) - bytes.start / SECTOR }
}

/// Ways to tear a write of so many sectors: the sectors that are there. The beginning or the end is: one sector, one
/// block of 4 KiB, half, all but one sector.
fn tears(sectors: u64) -> Vec<Range<u64>> {
    let mut tears = Vec::new();
    for cut in [1, 8, sectors / 2, sectors.saturating_sub(8), sectors.saturating_sub(1)] {
        for kept in [0..cut, cut..sectors] {
            if 0 < cut && cut < sectors && !tears.contains(&kept) {
                tears.push(kept);
            }
        }
    }
    tears
}

/// A permutation of the numbers below `all`, whose first ones lie all over them.
pub(crate) fn spread(n: u64, all: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    // The golden ratio leaves the smallest gaps.
    let golden = (all as f64 * 0.618_033_988_749_895) as u64;
    let stride = (golden.max(1)..).find(|&stride| gcd(stride, all) == 1).unwrap_or(1);
    ((u128::from(n) * u128::from(stride)) % u128::from(all)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_a_permutation_without_large_gaps() {
        for all in [1, 2, 3, 10, 97, 1000, 4096] {
            let mut numbers: Vec<u64> = (0..all).map(|n| spread(n, all)).collect();
            let mut tenth: Vec<u64> = numbers.iter().copied().take(all as usize / 10).collect();
            tenth.sort_unstable();
            assert!(tenth.windows(2).all(|pair| pair[1] - pair[0] <= 50), "{all}: {tenth:?}");
            numbers.sort_unstable();
            assert_eq!(numbers, (0..all).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_write_tears_between_sectors() {
        assert_eq!(tears(0), []);
        assert_eq!(tears(1), []);
        assert_eq!(tears(2), [0..1, 1..2]);
        assert_eq!(tears(16), [0..1, 1..16, 0..8, 8..16, 0..15, 15..16]);
        assert_eq!((sectors(&(0..1)), sectors(&(511..513)), sectors(&(512..1024)), sectors(&(7..7))), (1, 2, 1, 0));
    }
}
