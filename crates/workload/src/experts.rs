// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weights of experts that a language model (a mixture of experts) reads from a drive: for each token every layer reads
//! a few of its experts. Which ones is drawn by popularity, or comes from a recorded list. It knows no
//! devices; the requests are those of a block trace.

use crate::trace::{Place, Reason, Request, TraceError};
use readpath_kit::{BLOCK_BYTES, Ns, Prng};

/// Shape of a model and of its reads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExpertSpec {
    /// Layers with experts.
    pub layers: u32,
    /// Experts of each layer.
    pub experts: u32,
    /// Weights of an expert in bytes, a multiple of 4 KiB. All lie one behind the other, layer by layer.
    pub expert_bytes: u64,
    /// Experts that a token reads of each layer.
    pub per_token: u32,
    /// Tokens.
    pub tokens: u32,
    /// Exponent of Zipf's law for the popularity of a layer's experts, 0 to 10; 0 is even.
    pub skew: f64,
    /// Bytes of a read at most, a multiple of 4 KiB: an expert is cut into so long ones.
    pub read_bytes: u64,
    /// Time of a token, of which each layer has an equal part.
    pub token: Ns,
    /// Seed of all draws.
    pub seed: u64,
}

/// Requests at most, which are kept in memory.
const MOST_REQUESTS: u64 = 20_000_000;
const MOST_EXPERTS: u32 = 1 << 20;
/// What is wrong with a time, and what would be right.
const TOO_LATE: &str = "end later than 64 bits of nanoseconds can tell";
const SHORTER: &str = "expected a shorter token, or numbers in a row";

impl ExpertSpec {
    /// Says what is wrong with it.
    ///
    /// # Errors
    /// The first number that is impossible, and what would be right.
    pub fn check(&self) -> Result<(), String> {
        let block = u64::from(BLOCK_BYTES);
        for (name, value) in [("an expert", self.expert_bytes), ("a read", self.read_bytes)] {
            if value == 0 || !value.is_multiple_of(block) || value > 1 << 30 {
                return Err(format!("{name} has {value} bytes; expected a multiple of {block}, at most 1 GiB"));
            }
        }
        let all = u64::from(self.layers) * u64::from(self.experts);
        if all == 0 || all > u64::from(MOST_EXPERTS) {
            let Self { layers, experts, .. } = self;
            return Err(format!("{layers} layers of {experts} experts are {all}; expected 1 to {MOST_EXPERTS}"));
        }
        if self.per_token == 0 || self.per_token > self.experts {
            let Self { per_token, experts, .. } = self;
            return Err(format!("{per_token} experts for each token; expected 1 to {experts}, those of a layer"));
        }
        if !(0.0..=10.0).contains(&self.skew) {
            return Err(format!("the skew is {}; expected 0 to 10", self.skew));
        }
        let reads = u64::from(self.tokens) * u64::from(self.layers) * u64::from(self.per_token) * self.reads_each();
        if !(1..=MOST_REQUESTS).contains(&reads) {
            return Err(format!("{reads} reads; expected 1 to {MOST_REQUESTS}: fewer tokens, or longer reads"));
        }
        match self.time(u64::from(self.tokens), 0) {
            Some(_) => Ok(()),
            None => Err(format!("{} tokens of {} {TOO_LATE}; expected fewer or shorter ones", self.tokens, self.token)),
        }
    }

    fn reads_each(&self) -> u64 {
        self.expert_bytes.div_ceil(self.read_bytes)
    }

    /// When a layer of a token is read, if 64 bits hold the time.
    fn time(&self, token: u64, layer: u32) -> Option<Ns> {
        let within = self.token.0 / u64::from(self.layers) * u64::from(layer);
        let time = Ns(self.token.0.checked_mul(token)?.checked_add(within)?);
        (time < Ns::NEVER).then_some(time)
    }

    fn read_expert(&self, time: Ns, layer: u32, expert: u32, requests: &mut Vec<Request>) {
        let first = (u64::from(layer) * u64::from(self.experts) + u64::from(expert)) * self.expert_bytes;
        cut(time, first, self.expert_bytes, self.read_bytes, requests);
    }

    /// Reads of experts that are drawn: for each token and layer different ones, the more popular the more often. Which
    /// are popular differs from layer to layer. [`ExpertSpec::check`] must have passed.
    pub fn draw(&self) -> Vec<Request> {
        let mut rng = Prng::stream(self.seed, "experts", 0);
        // One over the weight of each expert: a shuffled rank to the power of the skew.
        let rarity: Vec<Vec<f64>> = (0..self.layers)
            .map(|_| {
                let mut ranks: Vec<f64> =
                    (1..=self.experts).map(|rank| libm::pow(f64::from(rank), self.skew)).collect();
                for i in (1..ranks.len()).rev() {
                    ranks.swap(i, rng.below(i as u64 + 1) as usize);
                }
                ranks
            })
            .collect();
        let mut requests = Vec::new();
        let mut keys: Vec<(f64, u32)> = Vec::new();
        for token in 0..u64::from(self.tokens) {
            for (layer, rarity) in (0..).zip(&rarity) {
                // Of independent exponential times with the weights as rates, the first ones are a weighted draw
                // without replacement (Efraimidis and Spirakis 2006).
                keys.clear();
                let time = |(expert, rarity): (u32, &f64)| (-libm::log(1.0 - rng.unit_f64()) * rarity, expert);
                keys.extend((0..).zip(rarity).map(time));
                let last = self.per_token as usize - 1;
                keys.select_nth_unstable_by(last, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                keys.truncate(last + 1);
                keys.sort_unstable_by_key(|(_, expert)| *expert);
                // Within the time of all tokens, which was checked.
                let time = self.time(token, layer).unwrap_or(Ns::NEVER);
                keys.iter().for_each(|(_, expert)| self.read_expert(time, layer, *expert, &mut requests));
            }
        }
        requests
    }

    /// The reads of a list: CSV with the heading `token,layer,expert`, tokens in ascending order, or `offset,length` in
    /// bytes, each row as long after the one before as a token takes. `file` is for errors.
    ///
    /// # Errors
    /// The first line that is wrong, and what would be right.
    pub fn read_list(&self, text: &str, file: &str) -> Result<Vec<Request>, TraceError> {
        let wrong = |line: usize, reason: Reason, message: String| TraceError {
            place: Place::Line(line as u64),
            ..TraceError::of_file(file, reason, message)
        };
        let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines().zip(1..);
        let heading = lines.next().map_or("", |(line, _)| line.trim());
        let names: &[&str] = match heading.replace(' ', "").as_str() {
            "token,layer,expert" => &["token", "layer", "expert"],
            "offset,length" => &["offset", "length"],
            _ => {
                let message = format!("the heading is {heading:?}; expected token,layer,expert or offset,length");
                return Err(wrong(1, Reason::Format, message));
            }
        };
        let (mut requests, mut row, mut first) = (Vec::new(), 0, None);
        // Before they are made: a single row may be longer than memory.
        let has_room = |line: usize, before: usize, bytes: u64| {
            let (before, more) = (before as u64, bytes.div_ceil(self.read_bytes));
            match before + more <= MOST_REQUESTS {
                true => Ok(()),
                false => {
                    let message = format!(
                        "makes {more} reads after {before}; expected at most {MOST_REQUESTS}: give longer reads"
                    );
                    Err(wrong(line, Reason::Limit, message))
                }
            }
        };
        let mut last = (0, 0);
        for (line, number) in lines.filter(|(line, _)| !line.trim().is_empty()) {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            if fields.len() != names.len() {
                let message = format!("has {} fields; expected {heading}", fields.len());
                return Err(wrong(number, Reason::Syntax, message));
            }
            let mut values = [0u64; 3];
            for ((value, field), name) in values.iter_mut().zip(&fields).zip(names) {
                *value = field.parse().map_err(|_| {
                    wrong(number, Reason::Number, format!("{name} is {field:?}; expected a whole number"))
                })?;
            }
            match (names.len(), values) {
                (2, [offset, length, _]) => {
                    let block = u64::from(BLOCK_BYTES);
                    let fits = length > 0 && offset.is_multiple_of(block) && length.is_multiple_of(block);
                    if !fits || offset.checked_add(length).is_none() {
                        let message = format!("{offset},{length} is no range of whole blocks of {block} bytes");
                        return Err(wrong(number, Reason::Range, message));
                    }
                    has_room(number, requests.len(), length)?;
                    let time = self.time(row, 0).ok_or_else(|| {
                        let message =
                            format!("is row {}: so many tokens of {} {TOO_LATE}; {SHORTER}", row + 1, self.token);
                        wrong(number, Reason::Limit, message)
                    })?;
                    cut(time, offset, length, self.read_bytes, &mut requests);
                    row += 1;
                }
                (_, [token, layer, expert]) => {
                    for (name, value, all) in [("layer", layer, self.layers), ("expert", expert, self.experts)] {
                        if value >= u64::from(all) {
                            let message =
                                format!("{name} is {value}; expected 0 to {}, as there are {all} (--{name}s)", all - 1);
                            return Err(wrong(number, Reason::Range, message));
                        }
                    }
                    if (token, layer) < last {
                        let message =
                            format!("token {token}, layer {layer} is behind a later one; expected ascending ones");
                        return Err(wrong(number, Reason::Order, message));
                    }
                    last = (token, layer);
                    has_room(number, requests.len(), self.expert_bytes)?;
                    let first = *first.get_or_insert(token);
                    let time = self.time(token - first, layer as u32).ok_or_else(|| {
                        let message = format!(
                            "token is {token}, {} after the first: so many tokens of {} {TOO_LATE}; {SHORTER}",
                            token - first,
                            self.token
                        );
                        wrong(number, Reason::Limit, message)
                    })?;
                    self.read_expert(time, layer as u32, expert as u32, &mut requests);
                }
            }
        }
        match requests.is_empty() {
            true => Err(wrong(1, Reason::Empty, "is followed by no row".to_owned())),
            false => Ok(requests),
        }
    }
}

/// Reads of a range in pieces.
fn cut(time: Ns, offset: u64, bytes: u64, most: u64, requests: &mut Vec<Request>) {
    let piece = |at: u64| Request {
        time,
        offset: offset + at,
        bytes: most.min(bytes - at),
        kind: crate::IoKind::Read,
        ..Request::NONE
    };
    requests.extend((0..bytes).step_by(most as usize).map(piece));
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: ExpertSpec = ExpertSpec {
        layers: 3,
        experts: 16,
        expert_bytes: 40 << 10,
        per_token: 4,
        tokens: 500,
        skew: 1.0,
        read_bytes: 16 << 10,
        token: Ns(3_000_000),
        seed: 1,
    };

    /// Experts read, as (token, layer, expert), and how often each read length came.
    fn drawn(spec: &ExpertSpec) -> Vec<(u64, u64, u64)> {
        let requests = spec.draw();
        let whole: Vec<&[Request]> = requests.chunks(3).collect();
        whole
            .iter()
            .map(|pieces| {
                let [a, b, c] = pieces else { panic!("three reads an expert") };
                assert_eq!([a.bytes, b.bytes, c.bytes], [16 << 10, 16 << 10, 8 << 10]);
                assert_eq!((b.offset, c.offset), (a.offset + (16 << 10), a.offset + (32 << 10)));
                let number = a.offset / (40 << 10);
                assert_eq!((number * (40 << 10), a.time), (a.offset, c.time));
                let (token, layer) = (a.time.0 / 3_000_000, a.time.0 % 3_000_000 / 1_000_000);
                assert_eq!(layer, number / 16, "its time is that of its layer");
                (token, layer, number % 16)
            })
            .collect()
    }

    #[test]
    fn tokens_read_different_experts_of_each_layer_by_popularity() {
        let reads = drawn(&SPEC);
        assert_eq!(reads.len(), 500 * 3 * 4);
        assert!(reads.is_sorted() && reads.windows(2).all(|two| two[0] != two[1]), "no expert twice");
        let counts = |layer: u64| {
            let of = |expert| reads.iter().filter(|&&(_, l, e)| (l, e) == (layer, expert)).count();
            let by_expert: Vec<usize> = (0..16).map(of).collect();
            by_expert
        };
        let (first, second) = (counts(0), counts(1));
        assert_ne!(first, second, "other experts are popular");
        let mut sorted = first.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        // By Zipf's law the first of 16 ranks has a share of 0.3 of a single draw; of four without replacement it is in
        // about four of five, and the last in about one of ten.
        assert!((380..470).contains(&sorted[0]) && (30..90).contains(&sorted[15]), "{sorted:?}");
        let even = drawn(&ExpertSpec { skew: 0.0, ..SPEC });
        let of = |expert| even.iter().filter(|&&(_, layer, e)| (layer, e) == (0, expert)).count();
        assert!((0..16).all(|expert| (90..160).contains(&of(expert))), "each is read by a quarter of 500 tokens");
        assert_eq!(SPEC.draw(), SPEC.draw());
        assert_ne!(SPEC.draw(), ExpertSpec { seed: 2, ..SPEC }.draw());
    }

    #[test]
    fn lists_are_read() {
        let list = "token,layer,expert\n7,0,3\n7, 2, 15\n\n8,1,0\n";
        let requests = SPEC.read_list(list, "l.csv").expect("a list");
        let seen: Vec<(u64, u64)> = requests.iter().step_by(3).map(|r| (r.time.0, r.offset / (40 << 10))).collect();
        assert_eq!(seen, [(0, 3), (2_000_000, 47), (4_000_000, 16)]);
        // The latest layer that 64 bits of nanoseconds hold.
        let latest = SPEC.read_list("token,layer,expert\n1,0,0\n6148914691237,1,0", "l.csv").expect("a list");
        assert_eq!(latest.last().map(|r| r.time), Some(Ns(u64::MAX - 551_615)));
        let ranges = SPEC.read_list("offset,length\n4096,20480\n0,4096", "l.csv").expect("a list");
        let seen: Vec<(u64, u64, u64)> = ranges.iter().map(|r| (r.time.0, r.offset, r.bytes)).collect();
        assert_eq!(seen, [(0, 4096, 16384), (0, 20480, 4096), (3_000_000, 0, 4096)]);
    }

    #[test]
    fn wrong_lists_name_the_line_and_what_would_be_right() {
        for (list, says) in [
            ("", "l.csv:1: the heading is \"\"; expected token,layer,expert or offset,length"),
            ("token,layer,expert\n", "l.csv:1: is followed by no row"),
            ("token,layer,expert\n0,0,0\n0,1", "l.csv:3: has 2 fields; expected token,layer,expert"),
            ("token,layer,expert\n0,x,0", "l.csv:2: layer is \"x\"; expected a whole number"),
            ("token,layer,expert\n0,3,0", "l.csv:2: layer is 3; expected 0 to 2, as there are 3 (--layers)"),
            ("token,layer,expert\n0,0,16", "l.csv:2: expert is 16; expected 0 to 15, as there are 16 (--experts)"),
            (
                "token,layer,expert\n1,1,0\n1,0,0",
                "l.csv:3: token 1, layer 0 is behind a later one; expected ascending ones",
            ),
            ("offset,length\n1,4096", "l.csv:2: 1,4096 is no range of whole blocks of 4096 bytes"),
            ("offset,length\n18446744073709547520,8192", "l.csv:2: 18446744073709547520,8192 is no range"),
            // More reads than memory holds.
            (
                "offset,length\n0,4096\n0,18446744073709547520",
                "l.csv:3: makes 1125899906842624 reads after 1; expected at most 20000000: give longer reads",
            ),
            (
                "token,layer,expert\n1,0,0\n6148914691237,2,0",
                "l.csv:3: token is 6148914691237, 6148914691236 after the first: so many tokens of 3.000 ms end later \
                 than 64 bits of nanoseconds can tell; expected a shorter token",
            ),
        ] {
            let e = SPEC.read_list(list, "l.csv").expect_err(list).to_string();
            assert!(e.starts_with(says), "{e}\ninstead of\n{says}");
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (spec, says) in [
            (ExpertSpec { expert_bytes: 5000, ..SPEC }, "an expert has 5000 bytes; expected a multiple of 4096"),
            (ExpertSpec { read_bytes: 0, ..SPEC }, "a read has 0 bytes"),
            (ExpertSpec { layers: 0, ..SPEC }, "0 layers of 16 experts are 0; expected 1 to 1048576"),
            (ExpertSpec { per_token: 17, ..SPEC }, "17 experts for each token; expected 1 to 16"),
            (ExpertSpec { skew: f64::NAN, ..SPEC }, "the skew is NaN; expected 0 to 10"),
            (ExpertSpec { tokens: 0, ..SPEC }, "0 reads; expected 1 to 20000000"),
            (ExpertSpec { token: Ns(u64::MAX / 400), ..SPEC }, "500 tokens of 46116860.184 s end later than"),
        ] {
            let e = spec.check().expect_err(says);
            assert!(e.starts_with(says), "{e}");
        }
        assert_eq!(SPEC.check(), Ok(()));
    }
}
