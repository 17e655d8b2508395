// SPDX-License-Identifier: MIT OR Apache-2.0
//! The states against the rules, written down once more and as simply as possible: each change has sectors of its own,
//! so what a state holds of each can be seen.

use crate::recorded::{Empty, Recorder};
use readpath_crash::{Log, Moment, Permitted, States};
use readpath_kit::Prng;
use std::collections::BTreeSet;

/// Sectors of a change, and where the first is: some lie in one block, and some reach into the next.
const SECTORS: u64 = 3;

struct Request {
    number: u64,
    sent: u64,
    answered: u64,
    /// A flush has no place.
    is_flush: bool,
    fua: bool,
}

struct Made {
    recorder: Recorder,
    requests: Vec<Request>,
    /// Numbers of marks, and when they were made.
    marks: Vec<(u64, u64)>,
}

fn made(rng: &mut Prng, count: u64) -> Made {
    let mut recorder = Recorder::new();
    let (mut requests, mut marks, mut now) = (Vec::new(), Vec::new(), 0);
    for place in 0..count {
        // Several are under way at a time.
        let (takes, gap) = (1 + rng.below(40), 1 + rng.below(20));
        let word = ["write", "write", "write-fua", "flush"][rng.below(4) as usize];
        let bytes = SECTORS as usize * 512;
        let number = match word {
            "flush" => recorder.request(word, (0, 0), &[], (takes, gap)),
            _ => recorder.request(word, (place * SECTORS * 512, bytes), &vec![place as u8 + 1; bytes], (takes, gap)),
        };
        let (is_flush, fua) = (word == "flush", word == "write-fua");
        requests.push(Request { number, sent: now, answered: now + takes, is_flush, fua });
        now += gap;
        if rng.below(8) == 0 {
            marks.push((recorder.order("mark here"), now));
            now += 10;
        }
    }
    Made { recorder, requests, marks }
}

impl Made {
    /// Whether a request must be there at a time.
    fn is_required(&self, of: &Request, now: u64) -> bool {
        let flushed = |flush: &Request| flush.is_flush && of.answered < flush.sent && flush.answered <= now;
        (of.fua && of.answered <= now) || self.requests.iter().any(flushed)
    }

    fn time(&self, moment: Moment) -> u64 {
        let of = |number| self.requests.iter().find(|request| request.number == number).unwrap();
        match moment {
            Moment::Sent(number) => of(number).sent,
            Moment::Answered(number) => of(number).answered,
            Moment::Marked(number) => self.marks.iter().find(|&&(mark, _)| mark == number).unwrap().1,
        }
    }
}

/// Which sectors of each change a state holds.
fn held(empty: &Empty, log: &Log, state: &readpath_crash::State, count: u64) -> Vec<Vec<bool>> {
    let sector = |number: u64| {
        let mut block = [0; 4096];
        state.read(log, &empty.base, (number / 8) as u32, &mut block).unwrap();
        let sector = &block[(number % 8) as usize * 512..][..512];
        assert!(sector.iter().all(|&byte| byte == sector[0]), "a sector is written whole or not");
        sector[0]
    };
    let of = |place: u64| {
        (0..SECTORS)
            .map(|i| match sector(place * SECTORS + i) {
                0 => false,
                byte => {
                    assert_eq!(u64::from(byte), place + 1, "the data of another request");
                    true
                }
            })
            .collect()
    };
    (0..count).map(of).collect()
}

#[test]
fn every_state_keeps_the_rules_and_every_permitted_state_is_made() {
    let empty = Empty::new();
    for seed in 0..40 {
        let rng = &mut Prng::new(seed);
        let count = 3 + rng.below(5);
        let made = made(rng, count);
        let log = empty.log(&made.recorder);
        let states = Permitted::new(&log, seed);
        let systematic = states.systematic();
        let (mut digests, mut contents, mut wholes) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for n in 0..systematic + 3000 {
            let Some(spec) = states.nth(n) else { break };
            let name = states.name(&spec);
            let state = states.state(&spec, &empty.base).unwrap();
            let again = states.state(&states.parse(&name).unwrap(), &empty.base).unwrap();
            assert_eq!(again.digest(&log), state.digest(&log), "seed {seed}: {name} names another state");
            let held = held(&empty, &log, &state, count);
            let now = made.time(spec.moment);
            for (request, held) in made.requests.iter().zip(&held).filter(|(request, _)| !request.is_flush) {
                let number = request.number;
                let (is_there, is_whole) = (held.contains(&true), !held.contains(&false));
                assert!(!is_there || request.sent <= now, "seed {seed}: {name} holds {number}, which was not sent");
                assert!(is_whole || !made.is_required(request, now), "seed {seed}: {name} lost {number}");
            }
            if held.iter().all(|held| held.iter().all(|&there| there == held[0])) {
                wholes.insert((now, held.clone()));
            }
            digests.insert(state.digest(&log));
            // All marks have the same words.
            contents.insert((held, made.marks.iter().any(|&(_, at)| at <= now)));
        }
        assert_eq!(digests.len(), contents.len(), "seed {seed}: equal digests mean equal content and mark");
        // With no tear and when most may be lost, every subset is made.
        let mut expected = BTreeSet::new();
        for moment in made.requests.iter().filter(|request| !request.is_flush).map(|request| request.sent) {
            let optional: Vec<usize> = (0..made.requests.len())
                .filter(|&i| !made.requests[i].is_flush && made.requests[i].sent <= moment)
                .filter(|&i| !made.is_required(&made.requests[i], moment))
                .collect();
            for subset in 0..1u32 << optional.len().min(4) {
                let mut held: Vec<Vec<bool>> = (0..count as usize)
                    .map(|i| {
                        let request = &made.requests[i];
                        vec![!request.is_flush && request.sent <= moment; SECTORS as usize]
                    })
                    .collect();
                for (bit, &i) in optional.iter().take(4).enumerate() {
                    held[i].fill(subset >> bit & 1 == 0);
                }
                expected.insert(held);
            }
        }
        let wholes: BTreeSet<_> = wholes.into_iter().map(|(_, held)| held).collect();
        let missing = expected.difference(&wholes).count();
        assert!(
            missing * 20 <= expected.len(),
            "seed {seed}: of {} permitted states {missing} are missing",
            expected.len()
        );
        let is_torn = |held: &Vec<Vec<bool>>| held.iter().any(|held| held.contains(&true) && held.contains(&false));
        assert!(contents.is_empty() || contents.iter().any(|(held, _)| is_torn(held)), "seed {seed}: no write is torn");
    }
}

/// States that differ in the last byte of a block are two states; those that are equal are one.
#[test]
fn content_decides_which_states_are_equal() {
    let empty = Empty::new();
    let mut recorder = Recorder::new();
    let mut block = vec![1; 4096];
    let first = recorder.write(8192, &block);
    let second = recorder.write(8192, &block);
    block[4095] = 2;
    let third = recorder.write(8192, &block);
    recorder.order("mark here");
    let last = recorder.write(8192, &block);
    let log = empty.log(&recorder);
    let states = Permitted::new(&log, 1);
    let digest = |name: String| states.state(&states.parse(&name).unwrap(), &empty.base).unwrap().digest(&log);
    assert_eq!(digest(format!("permitted:sent={first}")), digest(format!("permitted:sent={second}")));
    assert_ne!(digest(format!("permitted:sent={second}")), digest(format!("permitted:sent={third}")));
    assert_ne!(digest(format!("permitted:sent={last}")), digest(format!("permitted:sent={third}")), "the mark differs");
    assert_eq!(digest(format!("permitted:sent={third},lost=all")), digest(format!("permitted:sent={first},lost=1")));
}

#[test]
fn orders_and_failures_count() {
    let empty = Empty::new();
    let optional = |recorder: &Recorder, number: u64, name: &str| {
        let log = empty.log(recorder);
        let states = Permitted::new(&log, 1);
        states.parse(&format!("permitted:{name},lost={number}")).is_ok()
    };
    let mut recorder = Recorder::new();
    let lost = recorder.write(0, &[1; 512]);
    let flush = recorder.flush();
    let last = recorder.write(4096, &[1; 512]);
    assert!(!optional(&recorder, lost, &format!("sent={last}")), "it was flushed");
    recorder.failed(flush);
    assert!(optional(&recorder, lost, &format!("sent={last}")), "the flush failed");
    let mut recorder = Recorder::new();
    recorder.order("lie on");
    let lost = recorder.fua(0, &[1; 512]);
    recorder.flush();
    recorder.order("lie off");
    let last = recorder.write(4096, &[1; 512]);
    assert!(optional(&recorder, lost, &format!("sent={last}")), "the flush and FUA were lies");
    recorder.flush();
    let last = recorder.write(8192, &[1; 512]);
    assert!(!optional(&recorder, lost, &format!("sent={last}")), "the second flush was true");
    recorder.order("cut 1ms");
    recorder.write(8192, &[1; 512]);
    let log = empty.log(&recorder);
    assert!(log.until.is_some_and(|(_, order)| order == "cut 1ms"));
    assert!(Permitted::new(&empty.log(&recorder), 1).parse(&format!("permitted:sent={}", last + 2)).is_err());
}

#[test]
fn names_that_mean_nothing_are_refused() {
    let empty = Empty::new();
    let mut recorder = Recorder::new();
    recorder.write(0, &[1; 1024]);
    recorder.flush();
    recorder.write(4096, &[1; 1024]);
    let log = empty.log(&recorder);
    let states = Permitted::new(&log, 1);
    for (name, what) in [
        ("sent=3", "does not begin with 'permitted:'"),
        ("permitted:", "comes first"),
        ("permitted:sent=x", "'x' is not a number"),
        ("permitted:sent=9", "request 9 changes nothing"),
        ("permitted:marked=1", "order 1 is no mark"),
        ("permitted:sent=3,lost=1", "1 cannot be lost then"),
        ("permitted:sent=1,lost=3", "3 cannot be lost then"),
        ("permitted:sent=3,gone=3", "neither lost="),
        ("permitted:sent=3,torn=3", "torn=NUMBER@FROM-TO"),
        ("permitted:sent=3,torn=3@0-3", "has 2 sectors"),
        ("permitted:sent=3,torn=3@1-1", "has 2 sectors"),
        ("permitted:sent=3,torn=1@0-1", "was durable"),
    ] {
        let error = states.parse(name).expect_err(name).to_string();
        assert!(error.contains(what), "{name}: {error}");
    }
}
