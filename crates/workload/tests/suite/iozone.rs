// SPDX-License-Identifier: MIT OR Apache-2.0
//! iozone command lines: the published one, defaults, every error with its place.

use proptest::prelude::*;
use readpath_kit::Ns;
use readpath_workload::{Io, IoKind, Workload, iozone};

fn args(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn published(size: &str) -> String {
    let files: Vec<String> = (1..=16).map(|i| format!("mnt/tmp_{i}")).collect();
    format!("-r 4k -+n -i2 -ecI -t 16 -l 16 -u 16 -s {size} -F {}", files.join(" "))
}

fn requests(work: &Workload, phase: usize, job: usize) -> Vec<Io> {
    let mut stream = work.phases[phase].jobs[job].stream.clone();
    let mut out = vec![Io { block: 0, blocks: 0, kind: IoKind::Flush, fua: false }; 1 << 16];
    let n = stream.fill(&mut out);
    out.truncate(n);
    out
}

#[test]
fn the_published_line() {
    let work = iozone::parse(&args(&published("64m")), 7).unwrap();
    assert_eq!(work.name, "iozone, 16 threads x 65536 KiB, records of 4 KiB");
    assert_eq!(work.phases.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["random read", "random write"]);
    assert_eq!(work.groups, ["random read", "random write"]);
    assert_eq!(work.files.len(), 16);
    for (i, file) in (0u32..).zip(&work.files) {
        assert_eq!((file.name.clone(), file.block, file.blocks), (format!("mnt/tmp_{}", i + 1), i * 16_384, 16_384));
    }
    let read = &work.phases[0].jobs[3];
    assert_eq!((read.name.as_str(), read.group, read.iodepth), ("thread 4", 0, 1));
    assert_eq!((read.limits.bytes, read.think.time, read.ramp), (Some(64 << 20), Ns::ZERO, Ns::ZERO));
    let first = requests(&work, 0, 0);
    let mut sorted: Vec<u32> = first.iter().map(|io| io.block).collect();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..16_384).collect::<Vec<_>>());
    // All threads and both tests use one order.
    let fourth = requests(&work, 0, 3);
    assert!(first.iter().zip(&fourth).all(|(a, b)| a.block + 3 * 16_384 == b.block && b.kind == IoKind::Read));
    let writes = requests(&work, 1, 0);
    assert_eq!(writes.len(), 16_385);
    assert!(first.iter().zip(&writes).all(|(a, b)| a.block == b.block && b.kind == IoKind::Write));
    assert_eq!(writes[16_384].kind, IoKind::Flush);
}

#[test]
fn the_builder_is_the_published_line() {
    for (total, size) in [(1u64 << 30, "64m"), (16 << 30, "1g"), (16 << 20, "1024")] {
        let parsed = iozone::parse(&args(&published(size)), 3).unwrap();
        let built = iozone::random(total, 16, 4096, 3).unwrap();
        assert_eq!(format!("{built:?}"), format!("{parsed:?}"));
    }
    assert!(iozone::random(1 << 30, 0, 4096, 0).is_err());
    assert!(iozone::random((1 << 30) + 1, 16, 4096, 0).is_err());
    assert!(iozone::random(1 << 30, 16, 5000, 0).is_err());
    assert!(iozone::random(1 << 30, u32::MAX, 4096, 0).is_err());
    assert!(iozone::random(0, 1, 4096, 0).is_err());
    assert!(iozone::random(1 << 50, 1, 4096, 0).is_err());
}

#[test]
fn defaults_and_other_tests() {
    let work = iozone::parse(&args("-i 0 -i 1 -o -J 2 -w -R -b out.xls"), 0).unwrap();
    let names: Vec<&str> = work.phases.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["initial write", "rewrite", "read", "re-read"]);
    assert_eq!((work.files[0].name.as_str(), work.files[0].blocks), ("iozone.DUMMY.0", 128));
    assert_eq!(work.phases[0].jobs[0].think.time, Ns::from_ms(2));
    let writes = requests(&work, 0, 0);
    assert!(writes.len() == 128 && writes.iter().all(|io| io.fua && io.kind == IoKind::Write));
    assert!(requests(&work, 2, 0).windows(2).all(|w| w[0].block + 1 == w[1].block && !w[0].fua));
    assert!(work.notes.iter().any(|n| n.contains("-b")) && work.notes.iter().any(|n| n.contains("file system")));
    let work = iozone::parse(&args("-i 0 -+n -r 8 -s 1m -l 2 -u 3"), 0).unwrap();
    assert_eq!((work.phases.len(), work.phases[0].jobs.len()), (1, 3));
    assert!(work.notes.iter().any(|n| n.contains("only the run with 3")));
    assert_eq!(requests(&work, 0, 2)[1].blocks, 2);
}

#[test]
fn errors_name_the_argument() {
    for (line, position, text, part) in [
        ("-i 2 -q", 3, "-q", "needs a value"),
        ("-i 2 -$", 3, "-$", "not an iozone option"),
        ("-i 2 file", 3, "file", "file names belong after -F"),
        ("-i 5", 2, "5", "not supported"),
        ("-i5", 1, "-i5", "not supported"),
        ("-i x", 2, "x", "number of a test"),
        ("-i 2 -r 5k", 4, "5k", "multiple of 4096"),
        ("-i 2 -r 0", 4, "0", "not zero"),
        ("-i 2 -r 512m", 4, "512m", "below"),
        ("-i 2 -r 8k -s 12k", 6, "12k", "multiple of the record"),
        ("-i 2 -s 0m", 4, "0m", "not zero"),
        ("-i 2 -s 1.5m", 4, "1.5m", "must be a number"),
        ("-i 2 -s 99999999999999999999g", 4, "99999999999999999999g", "must be a number"),
        ("-i 2 -s 1024g -t 9", 4, "1024g", "more than"),
        ("-i 2 -t 0", 4, "0", "from 1"),
        ("-i 2 -t 4 -l 5 -u 6", 4, "4", "outside"),
        ("-i 2 -t 4 -l 1 -u 3", 4, "4", "outside"),
        ("-i 2 -l 4 -u 3", 4, "4", "above the upper"),
        ("-i 2 -t 2 -F a", 6, "a", "1 file names for 2 threads"),
        ("-i 2 -t 2 -F a a", 7, "a", "twice"),
        ("-i 2 -F", 3, "-F", "needs as many"),
        ("-t 2", 3, "", "no test"),
        ("-a", 1, "-a", "automatic"),
        ("-i 2 -+p 30", 3, "-+p", "extended"),
        ("-i 2 -H 4", 4, "4", "asynchronous"),
        ("-", 1, "-", "expected an option"),
    ] {
        let e = iozone::parse(&args(line), 0).unwrap_err();
        assert_eq!((e.position, e.text.as_str()), (position, text), "{line}: {e}");
        assert!(e.message.contains(part), "{line}: {e}");
    }
    let e = iozone::parse(&["-i", "5"], 0).unwrap_err();
    assert!(e.to_string().starts_with("argument 2 (\"5\"): test 5 is not supported"));
}

proptest! {
    #[test]
    fn never_panics(words in prop::collection::vec("-?[a-zA-Z0-9+.é]{0,4}", 0..12)) {
        let _ = iozone::parse(&words, 1);
    }

    #[test]
    fn never_panics_on_nearly_good_lines(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "-i", "-i2", "-i0", "-r", "4k", "8k", "-s", "64m", "-t", "2", "3", "-l", "-u", "-F", "a", "b", "-ecI",
                "-+n", "-w", "-O", "0", "1g", "-J", "-Fx",
            ]),
            0..14,
        )
    ) {
        let _ = iozone::parse(&words, 1);
    }
}
