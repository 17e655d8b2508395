// SPDX-License-Identifier: MIT OR Apache-2.0
//! Study files: levels, the settings of points, and places of errors.

use super::no_file;
use crate::study::{self, Assigned, Setting, Source, Study};

const STUDY: &str = r#"
schema = "readpath-study/1"
name = "s"
title = "A study"
seed = 1
device = "ufs21-64g"
set = { hpb = "dcm" }
[workload]
kind = "fio"
text = "[j]\nfilename=/dev/sda\nrw=randread\nbs=4k\nio_size=4m\nsize=1g"
"#;

fn parsed(more: &str) -> Result<Study, String> {
    study::parse(&format!("{STUDY}{more}"), "s.toml").map_err(|e| e.to_string())
}

fn texts(settings: &[Setting]) -> Vec<&str> {
    settings.iter().map(Setting::text).collect()
}

/// All levels of the first factor, as a crossed design has them.
fn levels(factor: &str) -> Vec<String> {
    let study = parsed(&format!("[[factor]]\n{factor}\n")).expect("a study");
    let factor = &study.factors[0];
    (0..factor.steps()).map(|level| texts(&factor.level(level)).join(" ")).collect()
}

#[test]
fn levels_of_factors() {
    for (factor, expected) in [
        ("key = \"a.b\"\nvalues = [1, 2.50, \"x\", \"512\", true, [1, 2], \"two words\"]", {
            vec!["1", "2.5", "x", "\"512\"", "true", "[1, 2]", "\"two words\""]
        }),
        ("key = \"a\"\nfrom = 0\nto = 10\nsteps = 5", vec!["0", "3", "5", "8", "10"]),
        ("key = \"a\"\nfrom = 1\nto = 1000\nsteps = 4\nscale = \"log\"", vec!["1", "10", "100", "1000"]),
        ("key = \"a\"\nfrom = 64\nto = 4096\nsteps = 3\nscale = \"log\"\nmultiple_of = 64", vec!["64", "512", "4096"]),
        ("key = \"a\"\nfrom = 0.0\nto = 1\nsteps = 4", vec!["0", "0.333", "0.667", "1"]),
        ("key = \"a\"\nfrom = -1\nto = 1\nsteps = 3\nmultiple_of = 0.5", vec!["-1", "0", "1"]),
        ("keys = [\"a\", \"b\"]\nvalues = [[1, \"x\"], [2, \"y\"]]", vec!["1 x", "2 y"]),
    ] {
        assert_eq!(levels(factor), expected, "{factor}");
    }
}

#[test]
fn mistakes_name_line_and_key() {
    for (more, says) in [
        ("", "s.toml:1:1: factor: is missing; expected an array of tables"),
        ("[[factor]]\nvalues = [1]", "factor[0].key: is missing; expected the key that is varied"),
        ("[[factor]]\nkey = \"a\"", "factor[0].values: is missing; expected values, or a range with from and to"),
        ("[[factor]]\nkey = \"a\"\nvalues = []", "factor[0].values: is empty; at least one level is needed"),
        ("[[factor]]\nkey = \"a\"\nvalues = [1, 2, 1]", "s.toml:13:17: factor[0].values[2]: stands there twice"),
        (
            "[[factor]]\nkey = \"a\"\nfrom = 2\nto = 2\nsteps = 2",
            "factor[0].to: is 2, which is not above from, 2: the range is empty",
        ),
        (
            "[[factor]]\nkey = \"a\"\nfrom = 2\nto = 3",
            "factor[0].steps: is missing: a crossed range has so many levels",
        ),
        (
            "[[factor]]\nkey = \"a\"\nfrom = 1\nto = 3\nsteps = 4",
            "factor[0].steps: is 4, which gives the level 2 twice",
        ),
        (
            "[[factor]]\nkey = \"a\"\nfrom = 0\nto = 3\nsteps = 2\nscale = \"log\"",
            "factor[0].from: is 0; a range in equal ratios begins above 0",
        ),
        ("[[factor]]\nkey = \"a\"\nvalues = [1]\nfrom = 1", "factor[0].from: belongs to a range, but there are values"),
        (
            "[[factor]]\nkeys = [\"a\", \"b\"]\nvalues = [[1]]",
            "factor[0].values[0]: is an array of 1; expected an array of 2 values",
        ),
        ("[[factor]]\nkeys = [\"a\", \"a\"]\nvalues = [[1, 2]]", "factor[0].keys: has \"a\" twice"),
        ("[[factor]]\nkey = \"hpb\"\nvalues = [\"off\"]", "factor[0]: sets hpb, which is set already"),
        (
            "[[factor]]\nkey = \"a\"\nvalues = [1]\n[design]\nkind = \"sobol\"\nsamples = 3",
            "design.samples: is 3; it must be a power of two",
        ),
        (
            "[[factor]]\nkey = \"a\"\nvalues = [1]\n[design]\nkind = \"cross\"\nsamples = 4",
            "design.samples: has no meaning for kind = \"cross\"",
        ),
        (
            "[[factor]]\nkey = \"a\"\nvalues = [1]\n[design]\nkind = \"morris\"\ntrajectories = 2\nlevels = 5",
            "design.levels: is 5; it must be even",
        ),
        (
            "[[factor]]\nkey = \"a\"\nfrom = 1\nto = 9\nsteps = 2\n[design]\nkind = \"latin-hypercube\"\nsamples = 4",
            "factor[0].steps: has no meaning with design \"latin-hypercube\"",
        ),
        ("[[factor]]\nkey = \"a\"\nfrom = 1e3\nto = 9", "factor[0].from: is 1e3; expected a number in plain digits"),
        (
            "[[factor]]\nkey = \"a\"\nfrom = 64\nto = 90\nsteps = 2\nmultiple_of = 64",
            "factor[0].to: is 90, no multiple of 64",
        ),
        (
            "[[factor]]\nkey = \"a\"\nfrom = 0.0005\nto = 1\nsteps = 2",
            "factor[0].from: is 0.0005, no multiple of 0.001",
        ),
        (
            "[[factor]]\nkey = \"a.b\"\nvalues = [1]\n[[factor]]\nkey = \"a\"\nvalues = [1]",
            "factor[1]: sets a, which has a key in common with a.b",
        ),
        (
            "[[factor]]\nkey = \"a\"\nvalues = [1, 2, 3]\n[design]\nkind = \"morris\"\ntrajectories = 2",
            "factor[0].values: has 3 values, but the design has 4 levels",
        ),
        ("[[factors]]\nkey = \"a\"", "factors: is not a key; did you mean factor?"),
    ] {
        let message = parsed(more).expect_err(more);
        assert!(message.contains(says), "{says}\n{message}");
    }
}

fn point(more: &str, settings: &[&str]) -> Result<study::PointFile, String> {
    let study = parsed(more).expect("a study");
    let values: Vec<Setting> = settings
        .iter()
        .map(|text| Assigned::from_argument(&format!("k={text}"), "test").expect("a value").value)
        .collect();
    study.point(&values, &no_file).map_err(|e| e.to_string())
}

#[test]
fn a_point_has_its_settings() {
    let more = "[[factor]]\nkeys = [\"map_cache.size_kib\", \"job.iodepth\", \"precondition.layout\", \"seed\", \"order\"]\n\
                values = [[0, 0, 0, 0, 0]]";
    let made = point(more, &["256", "8", "random", "77", "recency"]).expect("a point");
    assert_eq!(made.seed, Some(77));
    let device = made.variant.device(&made.device).expect("a device").device;
    assert_eq!(device.map_cache_bytes, 256 << 10);
    let Source::Workload { experiment, case, options } = made.source else { panic!("a workload") };
    assert_eq!((case.as_str(), &options[..]), ("fio", &[("iodepth".to_owned(), "8".to_owned())][..]));
    assert_eq!(experiment.precondition.layout, crate::experiment::Layout::Random);
    // From an experiment, with the chosen case; keys of the study replace the experiment's.
    let more = "[[factor]]\nkey = \"case\"\nvalues = [1]";
    let text = STUDY.split("[workload]").next().expect("a head").to_owned() + "experiment = \"iozone\"\n" + more;
    let study = study::parse(&text, "s.toml").expect("a study");
    let four = Assigned::from_argument("k=\"4 threads\"", "t").expect("a value").value;
    let made = study.point(&[four], &no_file);
    let message = made.expect_err("no such case").to_string();
    assert!(message.contains("case: is \"4 threads\"; the cases of the workload are "), "{message}");
}

#[test]
fn what_a_point_lacks_is_named() {
    let factor = |key: &str| format!("[[factor]]\nkey = \"{key}\"\nvalues = [1]");
    for (key, value, says) in [
        ("map_cache.size_kb", "1", "s.toml:11: map_cache.size_kb: is not a key; did you mean size_kib?"),
        ("job.iodepth", "x", ""),
        ("device", "ufs99", "is no device"),
        ("trace.file", "t.csv", "workload: has no meaning beside a trace"),
        ("seed", "x", "seed: is x; expected a whole number"),
        ("workload.kind", "iozone", "workload.text: has no meaning for kind = \"iozone\""),
    ] {
        match point(&factor(key), &[value])
            .and_then(|made| made.variant.device(&made.device).map_err(|e| e.to_string()))
        {
            Ok(_) => assert!(says.is_empty(), "{key}"),
            Err(message) => assert!(!says.is_empty() && message.contains(says), "{key}: {says}\n{message}"),
        }
    }
    let without = format!("{}{}", STUDY.replace("hpb = \"dcm\"", "\"map_cache.size_kib\" = 64"), factor("job.bs"));
    let study = study::parse(&without, "s.toml").expect("a study");
    let value = Assigned::from_argument("k=4k", "t").expect("a value").value;
    let message = study.point(&[value], &no_file).expect_err("HPB is not said").to_string();
    assert!(message.contains("set.hpb: is missing: say in [set]"), "{message}");
}

#[test]
fn keys_are_fixed_for_all_points() {
    let mut study = parsed("[[factor]]\nkey = \"map_cache.size_kib\"\nvalues = [64]").expect("a study");
    let given = |text: &str| vec![Assigned::from_argument(text, "--set").expect("an argument")];
    study.fix(given("hpb=off")).expect("it is not varied");
    assert_eq!(study.set.len(), 1);
    assert_eq!(study.set[0].value.text(), "off");
    let message = study.fix(given("map_cache.size_kib=4")).expect_err("it is varied").to_string();
    assert!(message.starts_with("--set: map_cache.size_kib: is varied by a factor"), "{message}");
    let message = Assigned::from_argument("x", "--set").expect_err("no value").to_string();
    assert!(message.contains("has no '='"), "{message}");
}
