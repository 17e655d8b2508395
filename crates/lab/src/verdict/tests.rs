// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts on made-up runs.

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
    assert!(note.numbers[2].0 == "saved_half_interval_points" && note.numbers[2].1 > 0.5, "{note:?}");
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
    let slow = run("c", "slow", &[300.0; 4], 16.0);
    let two = said(&[run("c", "off", &OFF, 0.0), run("c", "on", &OFF, 16.0), slow]);
    let text = "'off' and 'on' are alike, and no other variant is faster: reads take 200.0 us in the mean.";
    assert_eq!(two, [(NoteKind::NoDifference, text.to_owned())]);
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
        // One of them may be slower beyond chance.
        let text = text.replacen("No gain", "No difference", 1);
        let says = text.starts_with("No difference beyond chance among 31 variants: with the fastest, 'v");
        assert!(*kind == NoteKind::Gain || says, "{text}");
    }
    assert!(gains <= 10, "{gains} of 200");
}

/// The first may be the fastest of several, without being so for sure; and one of them may be slower for sure.
#[test]
fn the_fastest_may_be_the_first() {
    let noise = [190.0, 210.0, 200.0, 204.0];
    let slow = |us| run("c", "slow", &[us; 4], 0.0);
    let runs = |us| [run("c", "first", &OFF, 0.0), run("c", "next", &noise, 0.0), slow(us)];
    for (us, no) in [(201.5, "No difference"), (300.0, "No gain")] {
        let [(kind, text)] = &said(&runs(us))[..] else { panic!("one case") };
        let says = format!(
            "{no} beyond chance among 3 variants: with the fastest, 'first', reads take 200.0 us in the mean, with \
             the next, 'next', 201.0 (+0.50 ± "
        );
        assert!(*kind == NoteKind::NoDifference && text.starts_with(&says), "{text}");
    }
}

/// A variant that is surely faster is named, though another seems to be still faster.
#[test]
fn a_sure_gain_comes_before_an_unsure_one() {
    let unsure = [20.0, 180.0, 20.0, 180.0];
    let runs = [run("c", "off", &OFF, 0.0), run("c", "sure", &[150.0; 4], 0.0), run("c", "unsure", &unsure, 0.0)];
    assert!(said(&runs)[0].1.starts_with("'sure' makes reads 1.33 ± 0.0"), "{:?}", said(&runs));
}

/// A near variant that costs more is not named, and the price is what exceeds that of the first variant.
#[test]
fn what_costs_more_is_not_named() {
    let of = |case| [run(case, "off", &OFF, 4.0), run(case, "on", &ON, 16.0)];
    let near = run("a", "large", &[100.5; 4], 64.0);
    let text = &said(&[&of("a")[..], &[near]].concat())[0].1;
    assert!(text.ends_with(", for 12 MiB of host memory."), "{text}");
    let text = &said(&[of("a"), of("b"), of("c")].concat())[0].1;
    assert!(text.ends_with(", for at most 12 MiB of host memory."), "{text}");
}

/// Of many cases too a sure gain comes before one that may be chance.
#[test]
fn a_sure_gain_in_many_cases() {
    let of = |case| {
        let unsure = run(case, "unsure", &[20.0, 180.0, 20.0, 180.0], 0.0);
        [run(case, "off", &OFF, 0.0), unsure, run(case, "sure", &[150.0; 4], 0.0)]
    };
    let text = &said(&[of("a"), of("b"), of("c")].concat())[0].1;
    assert!(text.starts_with("'sure' makes reads faster than 'off' in 3 of 3 cases (1.33 "), "{text}");
}

/// Reads decide where all variants have them.
#[test]
fn writes_decide_where_a_variant_has_no_reads() {
    let mut runs = [run("c", "off", &OFF, 0.0), run("c", "on", &ON, 0.0)];
    for one in &mut runs {
        one.kinds[1] = one.kinds[0].clone();
    }
    runs[1].kinds[0] = Kind::default();
    assert!(said(&runs)[0].1.starts_with("'on' makes writes 2.00 ± "), "{:?}", said(&runs));
}

#[test]
fn a_row_has_the_interval_of_its_requests() {
    let kind = |us: &[f64], mean_us| Kind { ios: 40, mean_us, parts: parts(us) };
    let kinds = [kind(&OFF, 200.0), kind(&[10.0, 12.0, 8.0, 10.0], 10.0)];
    let outcome = Outcome { kinds, ..run("c", "on", &OFF, 0.0) };
    let interval = |case: &str, of: Requests, us: f64| {
        let row = Row::new(case, "on", of.of(LatencyMean), us, readpath_results::Origin::Predicted);
        outcome.interval(&row.expect("a row")).map(|interval| interval.high - us)
    };
    let half = |us: &[f64]| half_of_mean(&parts(us)).map(|ns| ns / 1e3).expect("an interval");
    let is = |found: Option<f64>, half: f64| found.is_some_and(|found| (found - half).abs() < 1e-9);
    assert!(is(interval("c", Requests::RandomRead, 200.0), half(&OFF)));
    assert!(is(interval("c", Requests::Write, 10.0), half(&[10.0, 12.0, 8.0, 10.0])));
    assert_eq!(interval("c", Requests::Read, 190.0), None, "the mean of other requests");
    assert_eq!(interval("d", Requests::Read, 200.0), None, "another case");
    let both = outcome.parts();
    assert_eq!((both.len(), both[1]), (4, PartTimes { requests: 20, ns: 2_140_000.0 }), "reads and writes");
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
    assert!(three.len() == 1 && three[0].1.starts_with("'on' makes reads faster than 'off' in 3 of 5"), "{three:?}");
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
