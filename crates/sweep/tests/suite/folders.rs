// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records are kept for any workers, order and number of interruptions.

use super::{plan, plan_of, read};
use readpath_config::study;
use readpath_lab::runs::Shared;
use readpath_sweep::{Folder, Found, Made, Maker, OfPlan, Plan, Record, Shard, merge, work};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use tempfile::TempDir;

/// Twelve points, of which two cannot be made.
const TWELVE: &str = "[[factor]]\nkey = \"map_cache.size_kib\"\nvalues = [64, 128, 256]\n\
                      [[factor]]\nkey = \"job.iodepth\"\nvalues = [1, 2, 4, 0]\n";

fn make(plan: &Plan, folder: &Path, shard: &str, threads: usize) -> u64 {
    let found = Found::of(&[Folder::new(folder)], Some(&plan.header())).expect("its segments belong to the plan");
    let (shared, made) = (Shared::default(), Made::default());
    let shard: Shard = shard.parse().expect("a shard");
    let target = Folder::new(folder);
    let of_plan = OfPlan { plan, maker: &Maker::default(), read: &read };
    work(&of_plan, (&target, "points"), (shard, &found), threads, &shared, &made).expect("the folder can be written");
    made.points.load(Ordering::Relaxed)
}

fn tables(folders: &[&Path]) -> (String, String) {
    let out = TempDir::new().expect("a folder");
    let folders: Vec<Folder> = folders.iter().map(|path| Folder::new(*path)).collect();
    let mut found = Found::of(&folders, None).expect("segments of one plan");
    let merged = merge(&mut found, out.path()).expect("tables");
    let text = |path: &PathBuf| fs::read_to_string(path).expect("it was written");
    (text(&merged.points), merged.failed.as_ref().map(text).unwrap_or_default())
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    all.retain(|path| path.extension().is_some_and(|e| e == "seg"));
    all.sort();
    all
}

#[test]
fn threads_shards_and_interruptions_make_no_difference() {
    let plan = plan(TWELVE);
    let whole = TempDir::new().expect("a folder");
    assert_eq!(make(&plan, whole.path(), "1/1", 1), 12);
    let expected = tables(&[whole.path()]);
    assert_eq!((expected.0.lines().count(), expected.1.lines().count()), (1 + 9, 1 + 3));
    assert!(expected.1.contains("\n3,") && expected.1.contains(",64,0,\"job: iodepth: "), "{}", expected.1);
    let head = expected.0.lines().next().expect("a head");
    assert!(head.starts_with("point,seed,map_cache.size_kib,job.iodepth,"), "{head}");
    assert!(head.contains(",read_latency_mean (us),"), "{head}");

    let threads = TempDir::new().expect("a folder");
    assert_eq!(make(&plan, threads.path(), "1/1", 3), 12);
    assert_eq!(tables(&[threads.path()]), expected);
    assert_eq!(make(&plan, threads.path(), "1/1", 3), 0, "all are there");

    let parts: Vec<TempDir> = (0..5).map(|_| TempDir::new().expect("a folder")).collect();
    let sizes: Vec<u64> =
        parts.iter().enumerate().map(|(i, part)| make(&plan, part.path(), &format!("{}/5", i + 1), 2)).collect();
    assert_eq!(sizes, [3, 3, 2, 2, 2]);
    let paths: Vec<&Path> = parts.iter().rev().map(TempDir::path).collect();
    assert_eq!(tables(&paths), expected);
    // A shard that another folder has as well.
    let twice = [paths.as_slice(), &[whole.path()]].concat();
    assert_eq!(tables(&twice), expected);
    let ios = |folders: &[&Path]| {
        let folders: Vec<Folder> = folders.iter().map(|path| Folder::new(*path)).collect();
        Found::of(&folders, None).expect("segments of one plan").ios
    };
    assert_eq!(ios(&twice), ios(&[whole.path()]));
}

/// Wherever a worker was ended, the points that it had not kept whole are made again, and no other.
#[test]
fn a_segment_may_be_cut_anywhere() {
    let plan = plan(TWELVE);
    let whole = TempDir::new().expect("a folder");
    make(&plan, whole.path(), "1/1", 1);
    let expected = tables(&[whole.path()]);
    let segment = segments(whole.path()).remove(0);
    let bytes = fs::read(&segment).expect("a segment");
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).collect();
    assert_eq!(ends.len(), 13, "the header and twelve records");
    let within = |line: usize| ends[line] + (ends[line + 1] - ends[line]) / 2;
    for (cut, kept) in
        [(0, 0), (ends[0] / 2, 0), (ends[0], 0), (within(0), 0), (ends[4], 4), (within(4), 4), (ends[12] - 1, 11)]
    {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("points-0-0.seg"), &bytes[..cut]).expect("a torn segment");
        let found = Found::of(&[Folder::new(folder.path())], Some(&plan.header())).expect("torn, not wrong");
        assert_eq!(found.count(), kept, "cut at {cut}");
        assert_eq!(found.damaged.is_empty(), ends.contains(&cut) || cut == 0, "cut at {cut}: {:?}", found.damaged);
        assert_eq!(make(&plan, folder.path(), "1/1", 2), 12 - kept, "cut at {cut}");
        assert_eq!(tables(&[folder.path()]), expected, "cut at {cut}");
    }
}

#[test]
fn a_damaged_record_is_told_and_made_again() {
    let plan = plan(TWELVE);
    let folder = TempDir::new().expect("a folder");
    make(&plan, folder.path(), "1/1", 1);
    let expected = tables(&[folder.path()]);
    let segment = segments(folder.path()).remove(0);
    let mut bytes = fs::read(&segment).expect("a segment");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&segment, &bytes).expect("a damaged segment");
    let found = Found::of(&[Folder::new(folder.path())], Some(&plan.header())).expect("damaged, not wrong");
    assert_eq!(found.count(), 11);
    assert!(
        found.damaged[0].ends_with("is damaged") && found.damaged[0].contains("points-0-0.seg: line "),
        "{:?}",
        found.damaged
    );
    assert_eq!(make(&plan, folder.path(), "1/1", 1), 1);
    assert_eq!(tables(&[folder.path()]), expected);
    assert_eq!(fs::read(&segment).expect("the segment"), bytes, "nothing is changed that is there");
}

#[test]
fn results_of_another_plan_are_refused() {
    let ours = plan(TWELVE);
    let folder = TempDir::new().expect("a folder");
    make(&ours, folder.path(), "1/1", 1);
    let refused = |plan: &Plan| {
        Found::of(&[Folder::new(folder.path())], Some(&plan.header())).map(drop).expect_err("another plan").to_string()
    };
    let message = refused(&plan(&TWELVE.replace("[64, 128, 256]", "[64, 128, 512]")));
    assert!(message.contains("belongs to another plan of \"small\": an option, a key, or a file"), "{message}");
    let other = format!("{}{TWELVE}", super::HEAD).replace("name = \"small\"", "name = \"other\"");
    let message = refused(&plan_of(&other));
    assert!(message.contains("belongs to \"small\", not to \"other\""), "{message}");

    let with_key = |key: &str| {
        let text = format!("{}{TWELVE}", super::HEAD);
        let mut study = study::parse(&text, "study.toml").expect("a study");
        study.fix(vec![study::Assigned::from_argument(key, "--set").expect("a key")]).expect("it is not varied");
        Plan::new(study, &text, &read).expect("a plan").header().plan
    };
    assert_eq!(with_key("flash.read_us=50"), with_key("flash.read_us=50"));
    assert_ne!(with_key("flash.read_us=50"), with_key("flash.read_us=60"), "a key that was set has another value");

    let with_header = |change: &dyn Fn(&mut readpath_sweep::Header)| {
        let mut header = ours.header();
        change(&mut header);
        let folder = TempDir::new().expect("a folder");
        readpath_sweep::Segment::create(folder.path(), "points", &header).expect("a segment");
        Found::of(&[Folder::new(folder.path())], Some(&ours.header())).map(drop).expect_err("refused").to_string()
    };
    let message = with_header(&|header| header.schema = "readpath-sweep/9".into());
    assert!(message.contains("has schema \"readpath-sweep/9\"; this program reads \"readpath-sweep/1\""), "{message}");
    let message = with_header(&|header| header.program = "9.9.9".into());
    assert!(message.contains("was made by version 9.9.9, not by "), "{message}");
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("x.seg"), "hello\nworld\n").expect("a file");
    let message = Found::of(&[Folder::new(folder.path())], None).map(drop).expect_err("no segment").to_string();
    assert!(message.ends_with("its first line is not that of a segment, or damaged; move it away"), "{message}");
}

#[test]
fn shards_are_checked() {
    for text in ["0/3", "4/3", "1", "a/b", "1/0", "-1/2", ""] {
        let message = text.parse::<Shard>().expect_err(text).to_string();
        assert!(message.contains("expected I/N with I from 1 to N"), "{message}");
    }
    let counts = (1..=4).map(|i| format!("{i}/4").parse::<Shard>().expect("a shard").count(10));
    assert_eq!(counts.collect::<Vec<_>>(), [3, 3, 2, 2]);
}

#[test]
fn a_shard_counts_its_own_points_among_those_found() {
    let (plan, folder) = (plan(TWELVE), TempDir::new().expect("a folder"));
    assert_eq!(make(&plan, folder.path(), "1/3", 1), 4);
    let found = Found::of(&[Folder::new(folder.path())], Some(&plan.header())).expect("its own");
    let done = |shard: &str| shard.parse::<Shard>().expect("a shard").done(&found);
    assert_eq!((done("1/3"), done("2/3"), done("1/1")), (4, 0, 4));
}

#[test]
fn a_seed_that_is_a_factor_has_one_column() {
    let (plan, folder) = (plan("[[factor]]\nkey = \"seed\"\nvalues = [77, 78]\n"), TempDir::new().expect("a folder"));
    assert_eq!(make(&plan, folder.path(), "1/1", 1), 2);
    let (points, _) = tables(&[folder.path()]);
    let lines: Vec<&str> = points.lines().collect();
    assert_eq!(lines[0].split(',').filter(|column| *column == "seed").count(), 1, "{}", lines[0]);
    assert!(lines[1].starts_with("0,77,") && lines[2].starts_with("1,78,"), "{points}");
}

#[test]
fn points_that_failed_can_be_made_again() {
    let folder = TempDir::new().expect("a folder");
    let job = folder.path().join("j.fio");
    let factor = format!("[[factor]]\nkey = \"workload.job\"\nvalues = [\"{}\"]\n", job.display());
    let factor = factor + "[[factor]]\nkey = \"job.iodepth\"\nvalues = [1, 2]\n";
    let head = super::HEAD.split("text =").next().expect("a head");
    fs::write(&job, "[j]\nfilename=/dev/sda\nrw=randread\nbs=4k\nio_size=40k\nsize=1g\n").expect("a job");
    let plan = plan_of(&format!("{head}{factor}"));
    // The job file is away, and comes back.
    fs::rename(&job, folder.path().join("away")).expect("a name");
    assert_eq!(make(&plan, folder.path(), "1/1", 1), 2);
    let of = || Found::of(&[Folder::new(folder.path())], Some(&plan.header())).expect("its own");
    assert_eq!((of().count(), of().failed()), (2, 2));
    let failed = merge(&mut of(), folder.path()).expect("tables").failed.expect("both failed");
    fs::rename(folder.path().join("away"), &job).expect("a name");
    assert_eq!(make(&plan, folder.path(), "1/1", 1), 0);
    // Segments are read by name, so a point that was made again comes before or behind the one that failed.
    for name in ["again", "retried"] {
        let mut found = of();
        found.retry_failed();
        let (shared, made) = (Shared::default(), Made::default());
        let target = Folder::new(folder.path());
        let of_plan = OfPlan { plan: &plan, maker: &Maker::default(), read: &read };
        work(&of_plan, (&target, name), (Shard::WHOLE, &found), 1, &shared, &made).expect("it can be written");
        let mut found = of();
        assert_eq!((found.count(), found.failed(), found.ios), (2, 0, 20), "{name}");
        let merged = merge(&mut found, folder.path()).expect("tables");
        assert_eq!(fs::read_to_string(&merged.points).expect("it was written").lines().count(), 3);
        assert!(merged.failed.is_none() && !failed.exists(), "{name}: failures of before are gone");
        let again = segments(folder.path()).into_iter().find(|path| path.ends_with(format!("{name}-0-0.seg")));
        fs::remove_file(again.expect("the segment of the points that were made again")).expect("it can go");
    }
}

/// The content of files counts, also of those that other files name; their paths do not.
#[test]
fn a_plan_is_that_of_its_files() {
    let at = |job: &str| {
        let folder = TempDir::new().expect("a folder");
        let text = format!("[j]\nfilename=/dev/sda\nrw=randread\nbs={job}\nio_size=40k\nsize=1g\n");
        fs::write(folder.path().join("j.fio"), text).expect("a job");
        let experiment = "schema = \"readpath-experiment/1\"\nname = \"e\"\ntitle = \"\"\ndescription = \"\"\n\
                          citations = []\ndevice = \"ufs21-64g\"\nseed = 1\n[precondition]\nlayout = \"random\"\n\
                          range = \"none\"\n[workload]\nkind = \"fio\"\njob = \"j.fio\"\n[[variant]]\nname = \"a\"\n\
                          hpb = false\n";
        fs::write(folder.path().join("e.toml"), experiment).expect("an experiment");
        let study = "schema = \"readpath-study/1\"\nname = \"s\"\ntitle = \"\"\nseed = 1\n[[factor]]\n\
                     key = \"experiment\"\nvalues = [\"./e.toml\"]\n[[factor]]\nkey = \"hpb\"\nvalues = [\"off\"]\n";
        let file = folder.path().join("s.toml");
        let parsed = readpath_config::study::parse(study, &file.to_string_lossy()).expect("a study");
        Plan::new(parsed, study, &read).expect("a plan").header().plan
    };
    assert_eq!(at("4k"), at("4k"));
    assert_ne!(at("4k"), at("8k"));
}

/// Reads of a recorded trace, at two sizes of the map cache.
const TRACED: &str = "schema = \"readpath-study/1\"\nname = \"traced\"\ntitle = \"t\"\nseed = 1\n\
                      device = \"ufs21-64g\"\nset = { hpb = \"dcm\" }\n[trace]\nfile = \"reads.csv\"\nmode = \"closed\"\n\
                      [[factor]]\nkey = \"map_cache.size_kib\"\nvalues = [64, 4096]\n";

#[test]
fn a_trace_may_be_elsewhere() {
    let (here, elsewhere) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    let rows: String = (0..300).map(|i| format!("{i},R,{},4096,,\n", (i * i % 61) << 22)).collect();
    let text = format!("time_ns,op,offset_bytes,size_bytes,process,latency_ns\n{rows}");
    let study = |name: &Path| study::parse(TRACED, &name.to_string_lossy()).expect("a study");
    let (file, moved) = (here.path().join("reads.csv"), elsewhere.path().join("moved"));
    fs::write(&file, &text).expect("it can be written");
    let name = here.path().join("study.toml");
    let plan = Plan::new(study(&name), TRACED, &read).expect("a plan");
    let [named] = plan.traces() else { panic!("one trace") };
    assert_eq!((Path::new(&named.path), named.sha256.len()), (&*file, 64));
    let lines = |plan: &Plan| -> Vec<Vec<u8>> {
        let maker = Maker::default();
        let make = |index| maker.make(plan, &plan.point(index), &read, &Shared::default()).expect("not stopped").line();
        (0..plan.count()).map(make).collect()
    };
    let expected = lines(&plan);
    assert!(expected.iter().all(|line| <Record>::of_line(line).is_some_and(|record| record.failure().is_none())));
    assert!(<Record>::of_line(&expected[0][1..]).is_none() && <Record>::of_line(b"").is_none());
    // The same under another path: errors, and so records, do not name the path.
    fs::rename(&file, &moved).expect("it can be moved");
    let places = HashMap::from([(named.path.clone(), moved)]);
    let other = Plan::with_traces(study(&name), TRACED, &read, places).expect("a plan");
    assert_eq!((other.header(), other.traces()), (plan.header(), plan.traces()));
    assert_eq!(lines(&other), expected);
    // Without the file, the plan is another.
    let without = Plan::new(study(&name), TRACED, &read).expect("a plan");
    assert_ne!(without.header(), plan.header());
}
