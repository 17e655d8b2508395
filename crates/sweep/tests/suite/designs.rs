// SPDX-License-Identifier: MIT OR Apache-2.0
//! Designs have the points that their methods need, in the order in which analyses of them expect results.

use super::{HEAD, plan, plan_of};
use readpath_config::study;
use readpath_sweep::Plan;

/// Keys whose values are free: options of a job that take any number.
fn ranges(factors: usize, ends: &str) -> String {
    let keys = ["flash.read_us", "flash.transfer_4k_us", "link.request_us", "link.transfer_4k_us"];
    keys[..factors].iter().map(|key| format!("[[factor]]\nkey = \"{key}\"\n{ends}\nmultiple_of = 0.000001\n")).collect()
}

pub(super) fn design(kind: &str, factors: usize) -> Plan {
    // The device takes three decimals; these points are not run.
    let text =
        format!("{HEAD}[design]\n{kind}\n{}", ranges(factors, "from = 1.0\nto = 2.0").replace("0.000001", "0.001"));
    let study = study::parse(&text, "s.toml").expect("a study");
    Plan::new(study, &text, &super::read).expect("a plan")
}

/// Places from 0 to 1 of all points.
fn places(plan: &Plan) -> Vec<Vec<f64>> {
    let place = |index| plan.point(index).settings.iter().map(|s| s.as_number().expect("a number") - 1.0).collect();
    (0..plan.count()).map(place).collect()
}

#[test]
fn a_cross_has_every_level_with_every_other() {
    let plan = plan(
        "[[factor]]\nkey = \"map_cache.size_kib\"\nvalues = [64, 128]\n[[factor]]\nkeys = [\"job.bs\", \"job.iodepth\"]\n\
         values = [[\"4k\", 1], [\"8k\", 2], [\"16k\", 4]]\n",
    );
    let rows: Vec<String> = (0..plan.count()).map(|index| plan.describe(&plan.point(index))).collect();
    let row = |kib, bs, depth| format!("map_cache.size_kib={kib}, job.bs={bs}, job.iodepth={depth}");
    let of = |kib| [row(kib, "4k", 1), row(kib, "8k", 2), row(kib, "16k", 4)];
    assert_eq!(rows, [of(64), of(128)].concat());
}

#[test]
fn seeds_depend_on_settings_and_on_nothing_else() {
    let long = plan("[[factor]]\nkey = \"map_cache.size_kib\"\nvalues = [64, 128, 256]\n");
    let short = plan("[[factor]]\nkey = \"map_cache.size_kib\"\nvalues = [256, 64]\n");
    assert_eq!(long.point(0).seed, short.point(1).seed);
    assert_eq!(long.point(2).seed, short.point(0).seed);
    assert_ne!(long.point(0).seed, long.point(1).seed);
    assert!(long.point(0).seed < 1 << 53);
    let two = |a: &str, b: &str| plan(&format!("{a}{b}"));
    let (size, depth) = (
        "[[factor]]\nkey = \"map_cache.size_kib\"\nvalues = [64]\n",
        "[[factor]]\nkey = \"job.iodepth\"\nvalues = [4]\n",
    );
    assert_eq!(two(size, depth).point(0).seed, two(depth, size).point(0).seed);
    let other = plan_of(&format!("{HEAD}{size}").replace("seed = 7", "seed = 8"));
    assert_ne!(plan(size).point(0).seed, other.point(0).seed, "the study's seed counts");
    let said = plan(&format!("{size}[[factor]]\nkey = \"seed\"\nvalues = [77, 78]\n"));
    assert_eq!((said.point(0).seed, said.point(1).seed), (77, 78));
}

#[test]
fn a_latin_hypercube_has_one_point_in_each_part() {
    let plan = design("kind = \"latin-hypercube\"\nsamples = 50", 3);
    let all = places(&plan);
    assert_eq!(all.len(), 50);
    for factor in 0..3 {
        let mut parts: Vec<u32> = all.iter().map(|point| (point[factor] * 50.0 + 1e-6) as u32).collect();
        parts.sort_unstable();
        // Rounding to three decimals may move a point to the next part, once in a while.
        let right = parts.iter().enumerate().filter(|&(i, &part)| part == i as u32).count();
        assert!(right >= 45, "{parts:?}");
    }
    // Points lie anywhere in their parts, in the middle on average.
    let within: f64 = all.iter().flatten().map(|place| (place * 50.0 + 1e-6).fract()).sum();
    assert!((within / 150.0 - 0.5).abs() < 0.1, "{within}");
}

#[test]
fn a_choice_of_points_begins_with_the_first_and_has_each_once() {
    let plan = design("kind = \"latin-hypercube\"\nsamples = 50", 3);
    let mut some: Vec<u64> = plan.some(100).collect();
    assert_eq!(some[0], 0);
    some.sort_unstable();
    assert_eq!(some, (0..50).collect::<Vec<_>>());
}

#[test]
fn a_sobol_study_has_saltellis_rows() {
    for (second_order, rows) in [(true, 8), (false, 5)] {
        let plan = design(&format!("kind = \"sobol\"\nsamples = 64\nsecond_order = {second_order}"), 3);
        let all = places(&plan);
        assert_eq!(all.len(), 64 * rows);
        for block in all.chunks(rows) {
            let (a, b) = (&block[0], &block[rows - 1]);
            for factor in 0..3 {
                for other in 0..3 {
                    let (ab, from) = (&block[1 + factor], if other == factor { b } else { a });
                    assert_eq!(ab[other], from[other]);
                    if second_order {
                        let (ba, from) = (&block[4 + factor], if other == factor { a } else { b });
                        assert_eq!(ba[other], from[other]);
                    }
                }
            }
        }
    }
}

#[test]
fn a_trajectory_changes_each_factor_once() {
    let plan = design("kind = \"morris\"\ntrajectories = 40\nlevels = 4", 4);
    let all = places(&plan);
    assert_eq!(all.len(), 40 * 5);
    let (mut up, mut down, mut firsts) = (0, 0, [0; 4]);
    for trajectory in all.chunks(5) {
        let mut changed = Vec::new();
        for pair in trajectory.windows(2) {
            let differ: Vec<usize> = (0..4).filter(|&i| pair[0][i] != pair[1][i]).collect();
            let [factor] = differ[..] else { panic!("{differ:?} change at once") };
            let step = pair[1][factor] - pair[0][factor];
            assert!((step.abs() - 2.0 / 3.0).abs() < 0.002, "{step}");
            if step > 0.0 {
                up += 1
            } else {
                down += 1
            }
            changed.push(factor);
        }
        firsts[changed[0]] += 1;
        changed.sort_unstable();
        assert_eq!(changed, [0, 1, 2, 3]);
    }
    assert!(up > 40 && down > 40 && firsts.iter().all(|&n| n > 2), "{up} up, {down} down, {firsts:?} first");
}

#[test]
fn a_million_points_are_counted_and_none_is_made() {
    let plan = plan(
        "[design]\nkind = \"latin-hypercube\"\nsamples = 1000000\n[[factor]]\nkey = \"map_cache.size_kib\"\nfrom = 64\n\
         to = 65536\nmultiple_of = 16\n[[factor]]\nkey = \"flash.read_us\"\nfrom = 20.0\nto = 90.0\n",
    );
    assert_eq!(plan.count(), 1_000_000);
    assert_ne!(plan.point(999_999).settings, plan.point(0).settings);
}

#[test]
fn what_cannot_be_a_study_is_said_before_anything_runs() {
    let refused = |more: &str| {
        let text = format!("{HEAD}{more}");
        let study = study::parse(&text, "s.toml").expect("a study");
        Plan::new(study, &text, &super::read).map(drop).expect_err("it cannot be").to_string()
    };
    let message = refused("[[factor]]\nkey = \"map_cache.size_kb\"\nvalues = [64, 128]\n");
    assert!(
        message
            .starts_with("none of 2 points of the study that were tried can be made; point 0 (map_cache.size_kb=64): "),
        "{message}"
    );
    assert!(message.ends_with("map_cache.size_kb: is not a key; did you mean size_kib?"), "{message}");
    let factor = |key: &str| format!("[[factor]]\nkey = \"{key}\"\nfrom = 1\nto = 1048576\nsteps = 1048576\n");
    let message = refused(&format!("{}{}", factor("job.bs"), factor("job.iodepth")));
    assert!(message.contains("more than 4294967296 points; fewer levels, or a design that samples"), "{message}");
    let message = refused("[[factor]]\nkey = \"device\"\nvalues = [\"./missing.toml\"]\n");
    assert!(message.contains("./missing.toml: cannot be read"), "{message}");
    // One point that can be made is enough: the others fail individually.
    let text = format!("{HEAD}[[factor]]\nkey = \"job.iodepth\"\nvalues = [\"x\", 4]\n");
    let study = study::parse(&text, "s.toml").expect("a study");
    Plan::new(study, &text, &super::read).expect("a plan of which one point of two can be made");
}
