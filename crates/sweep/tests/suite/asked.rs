// SPDX-License-Identifier: MIT OR Apache-2.0
//! A question whose points are kept in a folder has the same figures as one whose points are made at once, for any
//! number of processes and interruptions.

use super::read;
use readpath_config::experiment;
use readpath_lab::experiment::plan;
use readpath_lab::question::{Answer, AskError, Done, Point, Question, Shown, make};
use readpath_lab::runs::Shared;
use readpath_results::{Document, Error};
use readpath_sweep::{Keep, Kept, Outcome, Record, Round, Segment, Shard, SweepError, Work, keep};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

const EXPERIMENT: &str = r#"
schema = "readpath-experiment/1"
name = "kept"
title = "Kept"
description = "Two variants"
citations = []
axis = "reads"
seed = 3
device = "ufs21-64g"
[precondition]
layout = "sequential"
range = "none"
[workload]
kind = "fio"
text = "[j]\nfilename=/dev/sda\nrw=randread\nbs=4k\nio_size=400k\nsize=1g\nioengine=libaio"
[[variant]]
name = "HPB off"
hpb = false
[[variant]]
name = "HPB dcm"
hpb = true
"#;

/// Three points, and three more with the seed that the sum of their latencies makes.
struct Stairs {
    points: Vec<Point>,
    /// Points that were made.
    made: AtomicU64,
    stands: bool,
}

fn point(variant: usize, seed: u64) -> Point {
    let mut experiment = experiment::parse(EXPERIMENT, "e.toml").expect("an experiment");
    experiment.seed = seed;
    Point::Workload(Box::new(plan(&experiment, &[], &read).expect("plans").remove(variant)))
}

fn stairs() -> Stairs {
    let points = vec![point(0, 1), point(1, 1), point(0, 2)];
    Stairs { points, made: AtomicU64::new(0), stands: false }
}

impl Question for Stairs {
    type Figures = (f64, u64);

    fn title(&self) -> String {
        "Stairs".into()
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn figures(&self, shown: Shown<'_>) -> Result<(f64, u64), Error> {
        let Shown::Workload(plan, run) = shown else { panic!("a workload") };
        self.made.fetch_add(1, Ordering::Relaxed);
        // A third does not have a short form in JSON.
        Ok((run.ios as f64 / 3.0, plan.setup.seed))
    }

    fn more(&self, done: &[Done<(f64, u64)>]) -> Result<Vec<Point>, AskError> {
        let seed = done.iter().flatten().map(|(mean, _)| *mean as u64).sum();
        Ok(if done.len() == 3 { vec![point(0, seed), point(1, seed), point(0, seed + 1)] } else { Vec::new() })
    }

    fn stands_without(&self) -> bool {
        self.stands
    }

    fn answer(&self, _: &[Done<(f64, u64)>]) -> Result<Answer, AskError> {
        Ok(Answer::new(Document::new("stairs", "Stairs"), 6))
    }
}

fn kept(question: &Stairs, folder: &Path, shard: &str) -> Result<Kept<(f64, u64)>, SweepError> {
    let shard: Shard = shard.parse().expect("a shard");
    let shared = Shared::default();
    keep(question, &Keep { folder: folder.to_owned(), shard }, 2, &shared)
}

fn all(kept: Result<Kept<(f64, u64)>, SweepError>) -> Vec<Done<(f64, u64)>> {
    match kept.expect("points") {
        Kept::All(done) => done,
        Kept::Part { made, points } => panic!("{made} of {points}"),
    }
}

fn made(question: &Stairs) -> u64 {
    question.made.swap(0, Ordering::Relaxed)
}

#[test]
fn shards_and_folders_make_no_difference() {
    let question = stairs();
    let expected = make(&question, &Shared::default()).expect("figures");
    assert_eq!((expected.len(), made(&question)), (6, 6));
    assert!(expected[0].as_ref().is_ok_and(|(mean, seed)| mean.fract() != 0.0 && *seed == 1));

    let whole = TempDir::new().expect("a folder");
    assert_eq!(all(kept(&question, whole.path(), "1/1")), expected);
    assert_eq!(made(&question), 6);
    assert_eq!(all(kept(&question, whole.path(), "1/1")), expected);
    assert_eq!(made(&question), 0, "all are there");

    // The second round begins when the first is whole.
    let parts = TempDir::new().expect("a folder");
    let part = |shard: &str| match kept(&question, parts.path(), shard).expect("points") {
        Kept::Part { made, points } => (made, points),
        Kept::All(_) => panic!("{shard}: other shards have points to make"),
    };
    assert_eq!(part("2/2"), (1, 3));
    assert_eq!(part("1/2"), (2, 3), "its two points end the first round; of the second it has two as well");
    assert_eq!(made(&question), 1 + 2 + 2);
    assert_eq!(all(kept(&question, parts.path(), "1/1")), expected);
    assert_eq!(made(&question), 1);
}

#[test]
fn a_folder_belongs_to_one_question() {
    let (question, folder) = (stairs(), TempDir::new().expect("a folder"));
    all(kept(&question, folder.path(), "1/1"));
    let mut other = stairs();
    other.points[2] = point(0, 3);
    let error = kept(&other, folder.path(), "1/1").expect_err("another seed").to_string();
    assert!(error.contains("belongs to another plan of \"Stairs\": an option, a key, or a file"), "{error}");
    assert!(error.ends_with("choose another folder, or move it away"), "{error}");
}

#[test]
fn a_record_that_is_damaged_is_made_again() {
    let (question, folder) = (stairs(), TempDir::new().expect("a folder"));
    let expected = all(kept(&question, folder.path(), "1/1"));
    made(&question);
    for entry in fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("a file").path()) {
        if entry.is_file() {
            let text = fs::read_to_string(&entry).expect("a segment");
            fs::write(&entry, text.replace(",1],", ",7],").replace(",1]}", ",7]}")).expect("a segment");
        }
    }
    assert_eq!(all(kept(&question, folder.path(), "1/1")), expected);
    assert_eq!(made(&question), 2, "those with seed 1");
}

#[test]
fn what_was_made_before_a_stop_is_kept() {
    let (question, folder) = (stairs(), TempDir::new().expect("a folder"));
    let shared = Shared::default();
    shared.stop.store(true, Ordering::Relaxed);
    let at = Keep { folder: folder.path().to_owned(), shard: Shard::WHOLE };
    let stopped = keep(&question, &at, 1, &shared).expect_err("it is to stop");
    assert!(matches!(stopped, SweepError::Interrupted), "{stopped}");
    assert_eq!(made(&question), 0);
}

/// A device whose map does not fit cannot be made; the same at every attempt.
#[test]
fn a_failure_is_an_answer_only_where_the_question_stands_without() {
    let wrong = || {
        let Point::Workload(mut plan) = point(0, 1) else { panic!("a workload") };
        plan.setup.preset.device.lus.clear();
        Point::Workload(plan)
    };
    let mut question = stairs();
    question.points[1] = wrong();
    let folder = TempDir::new().expect("a folder");
    let error = kept(&question, folder.path(), "1/1").expect_err("no device");
    assert!(matches!(error, SweepError::Ask(AskError::Run(_))), "{error}");
    question.stands = true;
    let done = all(kept(&question, folder.path(), "1/1"));
    assert!(done[0].is_ok() && done[1].is_err() && done.len() == 6, "{done:?}");
    assert_eq!(make(&question, &Shared::default()).expect("figures"), done);
    question.points = vec![wrong()];
    let folder = TempDir::new().expect("a folder");
    assert!(matches!(kept(&question, folder.path(), "1/1"), Err(SweepError::AllFailed(_))));
}

/// The reason of a failure may have been the machine's, such as its memory.
#[test]
fn a_point_that_failed_is_made_again() {
    let (mut question, folder) = (stairs(), TempDir::new().expect("a folder"));
    question.stands = true;
    let header = Round::new(&question, &question.points, 0).header();
    let mut segment = Segment::create(folder.path(), "points", &header).expect("a segment");
    let outcome: Outcome<(f64, u64)> = Outcome::Error("no memory".into());
    let failed = Record { point: 1, seed: None, settings: vec![String::new(); 2], ios: 0, outcome };
    segment.append(&failed.line()).expect("a record");
    assert_eq!(all(kept(&question, folder.path(), "1/1")), make(&stairs(), &Shared::default()).expect("figures"));
    assert_eq!(made(&question), 6);
}
