// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for requests of clients: which requests each meets, and what it does to them. Chance comes from the seed, time
//! is that of the device, so a replay does the same. It knows no client, no device and no clock.

mod text;

use crate::edges::{Ask, BLOCK};
use crate::jobs::Job;
use crate::nbd::Errno;
use readpath_kit::{Ns, Prng};
use std::ops::Range;

/// Rules in effect; each request is compared with each. And rules that are over, of which the counters are kept.
const MOST: usize = 64;
const MOST_OVER: usize = 1024;

readpath_kit::named! {
    /// What a request is to a rule.
    pub enum Op {
        /// READ and CACHE.
        Read = "read",
        /// WRITE.
        Write = "write",
        /// FLUSH.
        Flush = "flush",
        /// TRIM.
        Trim = "trim",
        /// WRITE ZEROES.
        Zero = "zero",
    }
}

impl Op {
    fn of(ask: Ask) -> Op {
        match ask {
            Ask::Read | Ask::Cache => Op::Read,
            Ask::Write { .. } => Op::Write,
            Ask::Flush => Op::Flush,
            Ask::Trim { .. } => Op::Trim,
            Ask::Zero { .. } => Op::Zero,
        }
    }
}

readpath_kit::named! {
    /// The kinds of rules.
    pub enum Kind {
        /// Requests fail.
        Error = "error",
        /// Requests take longer.
        Slow = "slow",
        /// Requests are answered and not done.
        Drop = "drop",
        /// Of writes a beginning is done.
        Torn = "torn",
        /// Reads and writes go elsewhere.
        Misdirect = "misdirect",
        /// A bit of what is read or written is flipped.
        Corrupt = "corrupt",
    }
}

impl Kind {
    /// The requests that a rule of this kind can meet.
    fn ops(self) -> &'static [Op] {
        match self {
            Kind::Error | Kind::Slow => &Op::ALL,
            Kind::Drop => &[Op::Write, Op::Flush, Op::Trim, Op::Zero],
            Kind::Torn => &[Op::Write],
            Kind::Misdirect | Kind::Corrupt => &[Op::Read, Op::Write],
        }
    }
}

/// What a rule does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    Error(Errno),
    Slow(Ns),
    Drop,
    /// A whole number of units of so many bytes is written, fewer than all.
    Torn(u32),
    Misdirect,
    Corrupt,
}

impl Act {
    fn kind(self) -> Kind {
        match self {
            Act::Error(_) => Kind::Error,
            Act::Slow(_) => Kind::Slow,
            Act::Drop => Kind::Drop,
            Act::Torn(_) => Kind::Torn,
            Act::Misdirect => Kind::Misdirect,
            Act::Corrupt => Kind::Corrupt,
        }
    }
}

/// Which of the requests that it meets a rule acts on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    All,
    /// One of them, from 1.
    Nth(u64),
    /// Each so many-th.
    Every(u64),
    First(u64),
    /// So many in a million, by chance.
    Ppm(u32),
}

/// A rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    pub act: Act,
    /// The requests that it meets; none for all that its kind can meet.
    pub op: Option<Op>,
    /// Bytes that they touch.
    pub range: Option<Range<u64>>,
    /// The connection that they come from.
    pub client: Option<u32>,
    pub which: Which,
    /// It meets none for the first time, all for the second, and so on, from when it was given.
    pub window: Option<(Ns, Ns)>,
}

impl Rule {
    /// Whether its range lies on a logical unit of one of these sizes, in blocks.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn fits(&self, units: &[u32]) -> Result<(), String> {
        let bytes = units.iter().max().map_or(0, |&blocks| u64::from(blocks) * BLOCK as u64);
        match &self.range {
            Some(range) if range.end > bytes => {
                Err(format!("the largest unit has {bytes} bytes: nothing lies behind 0-{bytes}"))
            }
            _ => Ok(()),
        }
    }

    fn meets(&self, job: &Job, age: Ns) -> bool {
        let op = Op::of(job.ask);
        let is_op = self.op.map_or_else(|| self.act.kind().ops().contains(&op), |only| only == op);
        let end = job.offset + u64::from(job.bytes);
        // A flush has no place.
        let touches = |range: &Range<u64>| op != Op::Flush && range.start < end && job.offset < range.end;
        is_op
            && self.range.as_ref().is_none_or(touches)
            && self.client.is_none_or(|client| job.owner.is_some_and(|(_, life)| life == client))
            && self.window.is_none_or(|(up, down)| age.0 % (up.0 + down.0) >= up.0)
    }
}

/// A rule in effect, or one that was.
#[derive(Debug)]
struct Live {
    rule: Rule,
    /// Its place among all rules, from 1.
    number: u64,
    since: Ns,
    chance: Prng,
    /// Requests that it has met, and those that it has acted on.
    met: u64,
    done: u64,
}

impl Live {
    /// Whether it acts on the request that it meets now.
    fn takes(&mut self) -> bool {
        self.met += 1;
        match self.rule.which {
            Which::All => true,
            Which::Nth(n) => self.met == n,
            Which::Every(n) => self.met.is_multiple_of(n),
            Which::First(n) => self.met <= n,
            Which::Ppm(ppm) => self.chance.below(1_000_000) < u64::from(ppm),
        }
    }
}

/// What a rule has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleCount {
    /// Its place among all rules, from 1.
    pub number: u64,
    /// The rule, as it was given.
    pub rule: String,
    /// Requests that it has met.
    pub met: u64,
    /// Those that it has acted on.
    pub done: u64,
}

/// What rules do to a request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Fate {
    /// How much longer it takes.
    pub longer: Ns,
    /// How often requests that take longer had been told not to.
    pub hurries: u32,
    /// How far behind its place it goes, around the end of 64 bits.
    pub away: u64,
    /// The bit of what it reads that is flipped.
    pub flips: Option<u64>,
}

/// What a rule that is not slow does to a request that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deed {
    /// It fails, because of this rule.
    Fails(Errno, u64),
    /// None of it is done.
    Nothing,
    /// So many bytes of its beginning are done.
    Part(u32),
    /// All of it is done so many bytes behind its place.
    Elsewhere(u64),
    /// This bit of its data is flipped.
    Flips(u64),
}

/// The rules of a server.
#[derive(Default, Debug)]
pub(crate) struct Rules {
    live: Vec<Live>,
    over: Vec<Live>,
    given: u64,
    seed: u64,
    /// How often requests that take longer were told not to.
    hurries: u32,
    /// Blocks of each logical unit.
    units: Vec<u32>,
}

impl Rules {
    /// Whether there is one.
    #[inline]
    pub(crate) fn are_any(&self) -> bool {
        !self.live.is_empty()
    }

    /// A rule for logical units of so many blocks is in effect from now on.
    ///
    /// # Errors
    /// It fits no unit, or there are as many as there may be.
    pub(crate) fn add(&mut self, rule: Rule, now: Ns, units: &[u32]) -> Result<(), String> {
        rule.fits(units)?;
        units.clone_into(&mut self.units);
        if self.live.len() >= MOST {
            return Err(format!("{MOST} rules are in effect, and no more can be; 'slow off' ends those that slow"));
        }
        self.given += 1;
        let chance = Prng::stream(self.seed, "rules", self.given);
        self.live.push(Live { rule, number: self.given, since: now, chance, met: 0, done: 0 });
        Ok(())
    }

    /// Rules of a kind are over. Requests that they made slow are so no more.
    pub(crate) fn end(&mut self, kind: Kind) {
        self.over.extend(self.live.extract_if(.., |live| live.rule.act.kind() == kind));
        self.over.drain(..self.over.len().saturating_sub(MOST_OVER));
        self.hurries += u32::from(kind == Kind::Slow);
    }

    /// Chance begins anew.
    pub(crate) fn seed(&mut self, seed: u64) {
        self.seed = seed;
        self.live.iter_mut().for_each(|live| live.chance = Prng::stream(seed, "rules", live.number));
    }

    /// What becomes of a request that arrives at `now`. Rules are asked in the order in which they were given: those
    /// that slow add up; of the others none is asked behind the first that acts.
    pub(crate) fn meet(&mut self, now: Ns, job: &mut Job) -> Option<Deed> {
        job.fate = Fate { hurries: self.hurries, ..Fate::default() };
        let mut deed = None;
        for live in &mut self.live {
            let slow = if let Act::Slow(by) = live.rule.act { Some(by) } else { None };
            if (deed.is_some() && slow.is_none()) || !live.rule.meets(job, now - live.since) || !live.takes() {
                continue;
            }
            match slow {
                Some(by) => job.fate.longer = Ns(job.fate.longer.0.saturating_add(by.0)),
                None => deed = live.does(job, self.units[usize::from(job.unit)]),
            }
            live.done += u64::from(slow.is_some() || deed.is_some());
        }
        deed
    }

    /// How much longer a request takes that has ended in the device.
    pub(crate) fn longer(&self, job: &Job) -> Ns {
        if job.fate.hurries == self.hurries { job.fate.longer } else { Ns::ZERO }
    }

    /// What rules have done, in the order in which they were given.
    pub(crate) fn counts(&self) -> Vec<RuleCount> {
        let mut all: Vec<&Live> = self.over.iter().chain(&self.live).collect();
        all.sort_by_key(|live| live.number);
        let count = |live: &Live| RuleCount {
            number: live.number,
            rule: live.rule.to_string(),
            met: live.met,
            done: live.done,
        };
        all.into_iter().map(count).collect()
    }
}

impl Live {
    /// What it does to a request; nothing if it cannot: a write of one unit cannot be torn.
    fn does(&mut self, job: &Job, blocks: u32) -> Option<Deed> {
        let bytes = u64::from(job.bytes);
        match self.rule.act {
            Act::Slow(_) => None,
            Act::Error(errno) => Some(Deed::Fails(errno, self.number)),
            Act::Drop => Some(Deed::Nothing),
            Act::Torn(unit) => {
                // Units lie at multiples of their size.
                let unit = u64::from(unit);
                let (first, last) = (job.offset / unit, (job.offset + bytes - 1) / unit);
                let kept = first + self.chance.below(last - first + 1);
                (first < last).then(|| Deed::Part((kept * unit).saturating_sub(job.offset) as u32))
            }
            Act::Misdirect => {
                let size = BLOCK as u64;
                let at = job.offset / size;
                let span = (job.offset % size + bytes).div_ceil(size);
                // Places where no block of its own is.
                let (before, behind) = ((at + 1).saturating_sub(span), at + span);
                let last = u64::from(blocks).saturating_sub(span);
                let after = (last + 1).saturating_sub(behind);
                let draw = self.chance.below((before + after).max(1));
                let to = if draw < before { draw } else { behind + draw - before };
                (before + after > 0).then(|| Deed::Elsewhere(to.wrapping_sub(at).wrapping_mul(size)))
            }
            Act::Corrupt => Some(Deed::Flips(self.chance.below(bytes * 8))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(ask: Ask, offset: u64, bytes: u32, client: u32) -> Job {
        Job { ask, offset, bytes, owner: Some((0, client)), ..Job::default() }
    }

    const WRITE: Ask = Ask::Write { fua: false };

    fn rules(texts: &[&str]) -> Rules {
        let mut rules = Rules::default();
        for text in texts {
            rules.add(text.parse().unwrap_or_else(|error| panic!("{text}: {error}")), Ns::ZERO, &[1000]).unwrap();
        }
        rules
    }

    /// Which of the requests a rule acts on.
    fn acts(text: &str, asks: &[(Ns, Job)]) -> Vec<usize> {
        let mut rules = rules(&[text]);
        let again =
            |(at, job): &(Ns, Job)| (*at, Job { owner: job.owner, ..self::job(job.ask, job.offset, job.bytes, 0) });
        let asks: Vec<(Ns, Job)> = asks.iter().map(again).collect();
        let mut acts = |(i, (at, mut job)): (usize, (Ns, Job))| {
            let deed = rules.meet(at, &mut job);
            (deed.is_some() || job.fate.longer > Ns::ZERO).then_some(i)
        };
        asks.into_iter().enumerate().filter_map(&mut acts).collect()
    }

    #[test]
    fn a_rule_meets_what_it_names() {
        let asks = [
            (Ask::Read, 4096, 1),
            (WRITE, 4096, 1),
            (Ask::Flush, 0, 2),
            (Ask::Trim { fua: false }, 8191, 2),
            (Ask::Zero { fua: true, no_hole: true }, 8192, 2),
            (Ask::Cache, 0, 2),
        ];
        let asks = asks.map(|(ask, offset, client)| (Ns::ZERO, job(ask, offset, 4096, client)));
        for (text, on) in [
            ("error", &[0, 1, 2, 3, 4, 5][..]),
            ("error read", &[0, 5]),
            ("error write", &[1]),
            ("error zero", &[4]),
            ("slow trim 1ms", &[3]),
            ("error flush", &[2]),
            ("error client 2", &[2, 3, 4, 5]),
            ("error 4K-8K", &[0, 1, 3]),
            ("slow 0-4K client 2 1ms", &[5]),
            ("drop", &[1, 2, 3, 4]),
            ("torn 512", &[1]),
            ("misdirect", &[0, 1, 5]),
            ("corrupt", &[0, 1, 5]),
            ("error nth 2", &[1]),
            ("error every 2", &[1, 3, 5]),
            ("error first 2", &[0, 1]),
            ("error read first 1", &[0]),
        ] {
            assert_eq!(acts(text, &asks), on, "{text}");
        }
    }

    #[test]
    fn a_window_opens_and_closes() {
        let asks: Vec<(Ns, Job)> = (0..14).map(|s| (Ns::from_secs(s), job(Ask::Read, 0, 4096, 1))).collect();
        assert_eq!(acts("error up 5s down 1s", &asks), [5, 11]);
        assert_eq!(acts("error up 2s down 3s every 2", &asks), [3, 7, 9, 13], "2 to 4, 7 to 9 and 12, 13 are met");
    }

    #[test]
    fn a_window_begins_when_its_rule_is_given() {
        let mut rules = Rules::default();
        rules.add("error up 2s down 1s".parse().unwrap(), Ns::from_secs(1), &[1000]).unwrap();
        let mut meets = |&s: &u64| rules.meet(Ns::from_secs(s), &mut job(Ask::Read, 0, 4096, 1)).is_some();
        assert_eq!((1..8).filter(&mut meets).collect::<Vec<u64>>(), [3, 6]);
    }

    #[test]
    fn a_seed_is_also_that_of_later_rules() {
        let acted = |seed| {
            let mut rules = Rules::default();
            rules.seed(seed);
            rules.add("error 50%".parse().unwrap(), Ns::ZERO, &[1000]).unwrap();
            (0..64).map(|_| rules.meet(Ns::ZERO, &mut job(Ask::Read, 0, 4096, 1)).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(acted(5), acted(5));
        assert_ne!(acted(5), acted(6));
    }

    #[test]
    fn counters_of_the_newest_rules_stay_in_order() {
        let mut rules = rules(&["slow 1ms", "drop"]);
        rules.end(Kind::Drop);
        assert_eq!(rules.counts().iter().map(|count| count.number).collect::<Vec<_>>(), [1, 2]);
        for _ in 0..MOST_OVER + 5 {
            rules.add("drop".parse().unwrap(), Ns::ZERO, &[1000]).unwrap();
            rules.end(Kind::Drop);
        }
        let numbers: Vec<u64> = rules.counts().iter().map(|count| count.number).collect();
        assert_eq!((numbers.len(), &numbers[..2]), (MOST_OVER + 1, &[1, 8][..]));
    }

    #[test]
    fn chance_comes_from_the_seed() {
        let asks: Vec<(Ns, Job)> = (0..10_000).map(|_| (Ns::ZERO, job(Ask::Read, 0, 4096, 1))).collect();
        let acted = acts("error 10%", &asks);
        assert!((900..1100).contains(&acted.len()), "{}", acted.len());
        assert_eq!(acts("error 10%", &asks), acted);
        let mut other = rules(&["error 10%"]);
        other.seed(5);
        let others: Vec<usize> =
            (0..10_000).filter(|_| other.meet(Ns::ZERO, &mut job(Ask::Read, 0, 4096, 1)).is_some()).collect();
        assert_ne!(others, acted);
    }

    #[test]
    fn each_rule_has_a_chance_of_its_own() {
        let mut rules = rules(&["slow 50% 1ms", "slow 50% 2ms"]);
        let mut longer: Vec<Ns> = Vec::new();
        for _ in 0..100 {
            let mut read = job(Ask::Read, 0, 4096, 1);
            rules.meet(Ns::ZERO, &mut read);
            longer.push(rules.longer(&read));
        }
        for ms in 0..4 {
            assert!(longer.contains(&Ns::from_ms(ms)), "{ms} ms");
        }
    }

    #[test]
    fn any_bit_is_flipped_and_no_other() {
        let mut rules = rules(&["corrupt"]);
        let mut seen = [false; 16];
        for _ in 0..500 {
            let Some(Deed::Flips(bit)) = rules.meet(Ns::ZERO, &mut job(WRITE, 0, 2, 1)) else { panic!("none") };
            seen[bit as usize] = true;
        }
        assert_eq!(seen, [true; 16]);
    }

    #[test]
    fn there_are_not_more_rules_than_may_be() {
        let mut rules = rules(&["drop"; MOST]);
        let refused = rules.add("drop".parse().unwrap(), Ns::ZERO, &[1000]).unwrap_err();
        assert!(refused.starts_with("64 rules are in effect"), "{refused}");
    }

    #[test]
    fn rules_are_asked_in_order_and_slow_ones_add_up() {
        let mut rules = rules(&["slow 1ms", "drop write every 2", "error write ENOSPC", "slow write 2ms"]);
        let mut deeds = Vec::new();
        for _ in 0..4 {
            let mut write = job(WRITE, 0, 4096, 1);
            deeds.push(rules.meet(Ns::ZERO, &mut write));
            assert_eq!(rules.longer(&write), Ns::from_ms(3));
        }
        let fails = Some(Deed::Fails(Errno::NoSpace, 3));
        assert_eq!(deeds, [fails, Some(Deed::Nothing), fails, Some(Deed::Nothing)]);
        let mut read = job(Ask::Read, 0, 4096, 1);
        assert_eq!((rules.meet(Ns::ZERO, &mut read), rules.longer(&read)), (None, Ns::from_ms(1)));
        let counts: Vec<_> = rules.counts().into_iter().map(|count| (count.number, count.met, count.done)).collect();
        assert_eq!(counts, [(1, 5, 5), (2, 4, 2), (3, 2, 2), (4, 4, 4)]);
        let refused = rules.add("error 0-40961".parse().unwrap(), Ns::ZERO, &[5, 10]).unwrap_err();
        assert_eq!(refused, "the largest unit has 40960 bytes: nothing lies behind 0-40960");
        rules.end(Kind::Slow);
        assert_eq!(rules.longer(&read), Ns::ZERO, "also of those under way");
        assert_eq!(rules.counts().len(), 4, "their counters stay");
        rules.end(Kind::Drop);
        assert_eq!(rules.meet(Ns::ZERO, &mut job(WRITE, 0, 4096, 1)), fails);
    }

    #[test]
    fn what_is_torn_or_elsewhere_is_inside() {
        let mut rules = ["torn 4K", "misdirect"].map(|text| rules(&[text]));
        let rng = &mut Prng::new(1);
        let mut seen = [0; 3];
        for i in 0..20_000 {
            let rules = &mut rules[i % 2];
            let blocks = 1 + rng.below(8) as u32;
            let bytes = 1 + rng.below(u64::from(blocks) * 4096) as u32;
            let offset = rng.below(u64::from(blocks) * 4096 - u64::from(bytes) + 1);
            let touched = offset / 4096..(offset + u64::from(bytes)).div_ceil(4096);
            // The other unit is larger.
            rules.units = vec![1000, blocks];
            match rules.meet(Ns::ZERO, &mut Job { unit: 1, ..job(WRITE, offset, bytes, 1) }) {
                Some(Deed::Part(part)) => {
                    let end = offset + u64::from(part);
                    assert!(part < bytes && (part == 0 || end.is_multiple_of(4096)), "{offset}, {bytes}: {part}");
                    seen[0] += 1;
                }
                Some(Deed::Elsewhere(away)) => {
                    let to = offset.wrapping_add(away);
                    let there = to / 4096..(to + u64::from(bytes)).div_ceil(4096);
                    assert!(there.end <= u64::from(blocks) && to % 4096 == offset % 4096, "{offset}, {bytes}: {to}");
                    assert!(there.end <= touched.start || there.start >= touched.end, "{offset}, {bytes}: {to}");
                    seen[1] += 1;
                }
                None if i % 2 == 0 => assert_eq!(touched.end - touched.start, 1, "one block cannot be torn"),
                None => {
                    // Nowhere else is as much room.
                    let span = touched.end - touched.start;
                    assert!(touched.start < span && u64::from(blocks) - touched.end < span, "{offset}, {bytes}");
                    seen[2] += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(seen.iter().all(|&seen| seen > 1000), "{seen:?}");
    }
}
