// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for requests: which requests each meets, and what it does to them. Chance comes from the seed, time is that of
//! the device, so a second run does the same. It knows no client, no device and no clock.

mod file;
mod text;

pub use file::{Due, check, lines};
pub use text::{Exactly, RuleOrder, WORDS, Wrong, number, range, span};

use readpath_kit::{BLOCK_BYTES, Ns, Prng};
use std::ops::Range;

const BLOCK: u64 = BLOCK_BYTES as u64;

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

/// The errors that a request can end with, by their numbers in NBD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Errno {
    /// `EPERM`: operation not permitted.
    Perm = 1,
    /// `EIO`: input or output error.
    Io = 5,
    /// `ENOMEM`: out of memory.
    NoMem = 12,
    /// `EINVAL`: invalid argument.
    Inval = 22,
    /// `ENOSPC`: no space left on the device.
    NoSpace = 28,
    /// `EOVERFLOW`: value too large.
    Overflow = 75,
    /// `ENOTSUP`: not supported. NBD has it only for a fast WRITE_ZEROES.
    NotSup = 95,
    /// `ESHUTDOWN`: the server is shutting down.
    Shutdown = 108,
}

/// A request, as far as rules look at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What it is.
    pub op: Op,
    /// Its logical unit.
    pub unit: u8,
    /// The first byte that it touches; a flush has none.
    pub offset: u64,
    /// Bytes that it touches.
    pub bytes: u32,
    /// The connection that it comes from, from 1; none if there are no connections.
    pub client: Option<u32>,
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
pub enum Act {
    /// The request fails.
    Error(Errno),
    /// It takes longer by this time.
    Slow(Ns),
    /// It is answered and not done.
    Drop,
    /// A whole number of units of so many bytes is written, fewer than all.
    Torn(u32),
    /// It goes elsewhere.
    Misdirect,
    /// A bit of its data is flipped.
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
pub enum Which {
    /// Each.
    All,
    /// One of them, from 1.
    Nth(u64),
    /// Each so many-th.
    Every(u64),
    /// So many, and none after them.
    First(u64),
    /// So many in a million, by chance.
    Ppm(u32),
}

/// A rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// What it does.
    pub act: Act,
    /// The requests that it meets; none for all that its kind can meet.
    pub op: Option<Op>,
    /// Bytes that they touch.
    pub range: Option<Range<u64>>,
    /// The connection that they come from.
    pub client: Option<u32>,
    /// Which of them it acts on.
    pub which: Which,
    /// It meets none for the first time, all for the second, and so on, from when it was given.
    pub window: Option<(Ns, Ns)>,
}

impl Rule {
    /// Whether its range lies on a logical unit of one of these sizes, in blocks.
    ///
    /// # Errors
    /// It does not.
    pub fn fits(&self, units: &[u32]) -> Result<(), String> {
        let bytes = units.iter().max().map_or(0, |&blocks| u64::from(blocks) * BLOCK);
        match &self.range {
            Some(range) if range.end > bytes => {
                Err(format!("the largest unit has {bytes} bytes: nothing lies behind 0-{bytes}"))
            }
            _ => Ok(()),
        }
    }

    fn meets(&self, request: &Request, age: Ns) -> bool {
        let &Request { op, offset, bytes, .. } = request;
        let is_op = self.op.map_or_else(|| self.act.kind().ops().contains(&op), |only| only == op);
        let end = offset + u64::from(bytes);
        // A flush has no place.
        let touches = |range: &Range<u64>| op != Op::Flush && range.start < end && offset < range.end;
        is_op
            && self.range.as_ref().is_none_or(touches)
            && self.client.is_none_or(|client| request.client == Some(client))
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

/// How much longer a request takes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Late {
    by: Ns,
    /// How often requests that take longer had been told not to.
    hurries: u32,
}

/// What a rule that is not slow does to a request that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
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

/// Rules in effect, and those that were.
#[derive(Default, Debug)]
pub struct Rules {
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
    pub fn are_any(&self) -> bool {
        !self.live.is_empty()
    }

    /// Carries an order out, for logical units of so many blocks.
    ///
    /// # Errors
    /// As [`Rules::add`].
    pub fn carry_out(&mut self, order: &RuleOrder, now: Ns, units: &[u32]) -> Result<(), String> {
        match order {
            RuleOrder::Add(rule) => return self.add(rule.clone(), now, units),
            &RuleOrder::End(kind) => self.end(kind),
            &RuleOrder::Seed(seed) => self.seed(seed),
        }
        Ok(())
    }

    /// A rule for logical units of so many blocks is in effect from now on.
    ///
    /// # Errors
    /// It fits no unit, or there are as many as there may be.
    pub fn add(&mut self, rule: Rule, now: Ns, units: &[u32]) -> Result<(), String> {
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
    pub fn end(&mut self, kind: Kind) {
        self.over.extend(self.live.extract_if(.., |live| live.rule.act.kind() == kind));
        self.over.drain(..self.over.len().saturating_sub(MOST_OVER));
        self.hurries += u32::from(kind == Kind::Slow);
    }

    /// Chance begins anew.
    pub fn seed(&mut self, seed: u64) {
        self.seed = seed;
        self.live.iter_mut().for_each(|live| live.chance = Prng::stream(seed, "rules", live.number));
    }

    /// What becomes of a request that arrives at `now`. Rules are asked in the order in which they were given: those
    /// that slow add up; of the others none is asked behind the first that acts.
    pub fn meet(&mut self, now: Ns, request: &Request) -> (Late, Option<Deed>) {
        let mut late = Late { by: Ns::ZERO, hurries: self.hurries };
        let mut deed = None;
        for live in &mut self.live {
            let slow = if let Act::Slow(by) = live.rule.act { Some(by) } else { None };
            if (deed.is_some() && slow.is_none()) || !live.rule.meets(request, now - live.since) || !live.takes() {
                continue;
            }
            match slow {
                Some(by) => late.by = Ns(late.by.0.saturating_add(by.0)),
                None => deed = live.does(request, self.units[usize::from(request.unit)]),
            }
            live.done += u64::from(slow.is_some() || deed.is_some());
        }
        (late, deed)
    }

    /// How much longer a request takes that has ended in the device.
    pub fn longer(&self, late: Late) -> Ns {
        if late.hurries == self.hurries { late.by } else { Ns::ZERO }
    }

    /// What rules have done, in the order in which they were given.
    pub fn counts(&self) -> Vec<RuleCount> {
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
    fn does(&mut self, request: &Request, blocks: u32) -> Option<Deed> {
        let (offset, bytes) = (request.offset, u64::from(request.bytes));
        match self.rule.act {
            Act::Slow(_) => None,
            Act::Error(errno) => Some(Deed::Fails(errno, self.number)),
            Act::Drop => Some(Deed::Nothing),
            Act::Torn(unit) => {
                // Units lie at multiples of their size.
                let unit = u64::from(unit);
                let (first, last) = (offset / unit, (offset + bytes - 1) / unit);
                let kept = first + self.chance.below(last - first + 1);
                (first < last).then(|| Deed::Part((kept * unit).saturating_sub(offset) as u32))
            }
            Act::Misdirect => {
                let at = offset / BLOCK;
                let span = (offset % BLOCK + bytes).div_ceil(BLOCK);
                // Places where no block of its own is.
                let (before, behind) = ((at + 1).saturating_sub(span), at + span);
                let last = u64::from(blocks).saturating_sub(span);
                let after = (last + 1).saturating_sub(behind);
                let draw = self.chance.below((before + after).max(1));
                let to = if draw < before { draw } else { behind + draw - before };
                (before + after > 0).then(|| Deed::Elsewhere(to.wrapping_sub(at).wrapping_mul(BLOCK)))
            }
            Act::Corrupt => Some(Deed::Flips(self.chance.below(bytes * 8))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(op: Op, offset: u64, bytes: u32, client: u32) -> Request {
        Request { op, unit: 0, offset, bytes, client: Some(client) }
    }

    fn rules(texts: &[&str]) -> Rules {
        let mut rules = Rules::default();
        for text in texts {
            rules.add(text.parse().unwrap_or_else(|error| panic!("{text}: {error}")), Ns::ZERO, &[1000]).unwrap();
        }
        rules
    }

    /// Which of the requests a rule acts on.
    fn acts(text: &str, asks: &[(Ns, Request)]) -> Vec<usize> {
        let mut rules = rules(&[text]);
        let mut acts = |(i, (at, request)): (usize, &(Ns, Request))| {
            let (late, deed) = rules.meet(*at, request);
            (deed.is_some() || late.by > Ns::ZERO).then_some(i)
        };
        asks.iter().enumerate().filter_map(&mut acts).collect()
    }

    #[test]
    fn a_rule_meets_what_it_names() {
        let asks = [
            (Op::Read, 4096, 1),
            (Op::Write, 4096, 1),
            (Op::Flush, 0, 2),
            (Op::Trim, 8191, 2),
            (Op::Zero, 8192, 2),
            (Op::Read, 0, 2),
        ];
        let asks = asks.map(|(op, offset, client)| (Ns::ZERO, request(op, offset, 4096, client)));
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
        let asks: Vec<(Ns, Request)> = (0..14).map(|s| (Ns::from_secs(s), request(Op::Read, 0, 4096, 1))).collect();
        assert_eq!(acts("error up 5s down 1s", &asks), [5, 11]);
        assert_eq!(acts("error up 2s down 3s every 2", &asks), [3, 7, 9, 13], "2 to 4, 7 to 9 and 12, 13 are met");
    }

    #[test]
    fn a_window_begins_when_its_rule_is_given() {
        let mut rules = Rules::default();
        rules.add("error up 2s down 1s".parse().unwrap(), Ns::from_secs(1), &[1000]).unwrap();
        let mut meets = |&s: &u64| rules.meet(Ns::from_secs(s), &request(Op::Read, 0, 4096, 1)).1.is_some();
        assert_eq!((1..8).filter(&mut meets).collect::<Vec<u64>>(), [3, 6]);
    }

    #[test]
    fn a_seed_is_also_that_of_later_rules() {
        let acted = |seed| {
            let mut rules = Rules::default();
            rules.seed(seed);
            rules.add("error 50%".parse().unwrap(), Ns::ZERO, &[1000]).unwrap();
            (0..64).map(|_| rules.meet(Ns::ZERO, &request(Op::Read, 0, 4096, 1)).1.is_some()).collect::<Vec<_>>()
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
        let asks: Vec<(Ns, Request)> = (0..10_000).map(|_| (Ns::ZERO, request(Op::Read, 0, 4096, 1))).collect();
        let acted = acts("error 10%", &asks);
        assert!((900..1100).contains(&acted.len()), "{}", acted.len());
        assert_eq!(acts("error 10%", &asks), acted);
        let mut other = rules(&["error 10%"]);
        other.seed(5);
        let others: Vec<usize> =
            (0..10_000).filter(|_| other.meet(Ns::ZERO, &request(Op::Read, 0, 4096, 1)).1.is_some()).collect();
        assert_ne!(others, acted);
    }

    #[test]
    fn each_rule_has_a_chance_of_its_own() {
        let mut rules = rules(&["slow 50% 1ms", "slow 50% 2ms"]);
        let mut longer: Vec<Ns> = Vec::new();
        for _ in 0..100 {
            let (late, _) = rules.meet(Ns::ZERO, &request(Op::Read, 0, 4096, 1));
            longer.push(rules.longer(late));
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
            let Some(Deed::Flips(bit)) = rules.meet(Ns::ZERO, &request(Op::Write, 0, 2, 1)).1 else { panic!("none") };
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
            let (late, deed) = rules.meet(Ns::ZERO, &request(Op::Write, 0, 4096, 1));
            deeds.push(deed);
            assert_eq!(rules.longer(late), Ns::from_ms(3));
        }
        let fails = Some(Deed::Fails(Errno::NoSpace, 3));
        assert_eq!(deeds, [fails, Some(Deed::Nothing), fails, Some(Deed::Nothing)]);
        let (read, deed) = rules.meet(Ns::ZERO, &request(Op::Read, 0, 4096, 1));
        assert_eq!((deed, rules.longer(read)), (None, Ns::from_ms(1)));
        let counts: Vec<_> = rules.counts().into_iter().map(|count| (count.number, count.met, count.done)).collect();
        assert_eq!(counts, [(1, 5, 5), (2, 4, 2), (3, 2, 2), (4, 4, 4)]);
        let refused = rules.add("error 0-40961".parse().unwrap(), Ns::ZERO, &[5, 10]).unwrap_err();
        assert_eq!(refused, "the largest unit has 40960 bytes: nothing lies behind 0-40960");
        rules.end(Kind::Slow);
        assert_eq!(rules.longer(read), Ns::ZERO, "also of those under way");
        assert_eq!(rules.counts().len(), 4, "their counters stay");
        rules.end(Kind::Drop);
        assert_eq!(rules.meet(Ns::ZERO, &request(Op::Write, 0, 4096, 1)).1, fails);
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
            match rules.meet(Ns::ZERO, &Request { unit: 1, ..request(Op::Write, offset, bytes, 1) }).1 {
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
