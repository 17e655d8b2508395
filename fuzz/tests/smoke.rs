// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every fuzz target on its seeds, on mutations of them and on noise: the same inputs every time, on any compiler.

use readpath_fuzz::TARGETS;
use readpath_kit::Prng;
use std::{fs, panic};
use std::path::{Path, PathBuf};

/// Inputs for each target, beside its seeds.
const INPUTS: u64 = 10_000;
/// Longest input.
const LONGEST: usize = 16 << 10;
/// What numbers are replaced by.
const NUMBERS: [&str; 10] =
    ["0", "1", "-1", "65535", "65536", "4294967296", "18446744073709551615", "1e300", "0.5", "99999999999999999999"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn files(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    paths.sort();
    paths.iter().filter(|p| p.is_file()).map(|p| fs::read(p).expect("a seed")).collect()
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut seeds = files(&root().join("seeds").join(target));
    match target {
        "device_toml" => seeds.extend(files(&root().join("../presets"))),
        "experiment_toml" => seeds.extend(files(&root().join("../experiments"))),
        "result_json" => seeds.extend(files(&root().join("../crates/results/tests/golden"))),
        _ => {}
    }
    assert!(!seeds.is_empty(), "{target} has seeds");
    seeds
}

/// One change of an input, of a kind that text and bytes both suffer from.
fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], p: &mut Prng) {
    let mut at = |n: usize| p.below(n.max(1) as u64) as usize;
    match at(9) {
        0 | 1 if !input.is_empty() => {
            let i = at(input.len());
            input[i] ^= 1 << at(8);
        }
        2 if !input.is_empty() => {
            let i = at(input.len());
            input[i] = [0, 0xFF, 0x7F, 0x80, b'\n', b'=', b'"', b'#'][at(8)];
        }
        3 => {
            let i = at(input.len() + 1);
            let text =
                [&b"["[..], b"]", b"{", b"}", b"\0", b"\xC3\xA4", b"\r\n", b"=", b"%", b"\xFF\xFF\xFF\xFF"][at(10)];
            input.splice(i..i, text.iter().copied());
        }
        4 => {
            let (a, b) = (at(input.len() + 1), at(input.len() + 1));
            input.drain(a.min(b)..a.max(b).min(a.min(b) + 64));
        }
        5 => {
            // A piece of the input again, elsewhere.
            let (a, to) = (at(input.len() + 1), at(input.len() + 1));
            let piece = input[a..input.len().min(a + 1 + at(200))].to_vec();
            input.splice(to..to, piece);
        }
        6 => {
            // The beginning of this and the end of another.
            let other = &seeds[at(seeds.len())];
            input.truncate(at(input.len() + 1));
            input.extend_from_slice(&other[at(other.len() + 1)..]);
        }
        _ => {
            // Another number.
            let starts: Vec<usize> = (0..input.len())
                .filter(|&i| input[i].is_ascii_digit() && (i == 0 || !input[i - 1].is_ascii_digit()))
                .collect();
            if let Some(&start) = starts.get(at(starts.len())) {
                let end = input[start..].iter().position(|b| !b.is_ascii_digit()).map_or(input.len(), |n| start + n);
                input.splice(start..end, NUMBERS[at(NUMBERS.len())].bytes());
            }
        }
    }
    input.truncate(LONGEST);
}

fn smoke(name: &str) {
    let (_, run) = TARGETS.iter().find(|t| t.0 == name).expect("a target");
    let seeds = seeds(name);
    let run = |input: &[u8], what: &str| {
        if panic::catch_unwind(|| run(input)).is_err() {
            panic!("{name}, {what}: panics on {:?}", String::from_utf8_lossy(input));
        }
    };
    run(&[], "empty");
    seeds.iter().for_each(|s| run(s, "seed"));
    for i in 0..INPUTS {
        let mut p = Prng::stream(1, name, i);
        let mut input = if i % 16 == 0 {
            (0..p.below(300)).map(|_| p.next_u64() as u8).collect()
        } else {
            seeds[p.below(seeds.len() as u64) as usize].clone()
        };
        for _ in 0..=p.below(4) {
            mutate(&mut input, &seeds, &mut p);
        }
        run(&input, &format!("input {i}"));
    }
}

macro_rules! smoke {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            smoke(stringify!($name));
        }
    )*

        #[test]
        fn every_target_is_here() {
            assert_eq!(TARGETS.iter().map(|t| t.0).collect::<Vec<_>>(), [$(stringify!($name)),*]);
            let mut found: Vec<String> = fs::read_dir(root().join("fuzz_targets"))
                .expect("the targets")
                .map(|e| e.expect("an entry").file_name().to_string_lossy().trim_end_matches(".rs").to_owned())
                .collect();
            found.sort();
            let mut known = vec![$(stringify!($name)),*];
            known.sort_unstable();
            assert_eq!(found, known);
        }
    };
}

smoke! {
    upiu cdb descriptors fio_job iozone_args device_toml experiment_toml study_toml result_json host_replies
    device_requests prototype_replies prototype_requests measurements_csv trace trace_columns ubi_attach
    ubi_volume_table ubi_stream ubi_costs ubifs_nodes ubifs_data ubifs_volume nbd_session image recording
    host_controller vfio_session
}
