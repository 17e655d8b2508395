// SPDX-License-Identifier: MIT OR Apache-2.0
//! iozone command lines in throughput mode, as published with benchmark results, made into workloads. This module knows
//! the meaning of the arguments, not of the reported numbers.
//!
//! Facts from the public iozone documentation and source (3.4xx): every thread works on a file of its own; a random
//! test visits each record once, in a shuffled order that is made from a fixed seed, so all threads and both the read
//! and the write test use the same order. Versions before that drew records with replacement, also from a fixed seed.

use readpath_kit::{BLOCK_BYTES, Ns};

use crate::{Ends, FileExtent, FioReport, IoKind, Job, Limits, Offsets, Phase, Stream, StreamSpec, Think, Workload};

/// An argument that cannot be run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("argument {position} (\"{text}\"): {message}")]
pub struct ArgError {
    /// Place on the line, from 1; one more than there are arguments when something is missing at the end.
    pub position: usize,
    /// The argument as typed; empty when it is missing.
    pub text: String,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Most threads that a line may ask for.
const MAX_THREADS: u64 = 65_535;
/// Most blocks that all files may have together.
const MAX_BLOCKS: u64 = 1 << 31;
/// Defaults of iozone outside its automatic mode.
const DEFAULT_RECORD: u64 = 4 << 10;
const DEFAULT_FILE: u64 = 512 << 10;

/// A number of an option with its place on the line.
#[derive(Clone, Copy)]
struct At<T> {
    value: T,
    position: usize,
}

#[derive(Default)]
struct Line {
    tests: Vec<At<u8>>,
    record: Option<At<u64>>,
    file: Option<At<u64>>,
    threads: Option<At<u64>>,
    lower: Option<At<u64>>,
    upper: Option<At<u64>>,
    names: Vec<At<usize>>,
    compute_delay: Ns,
    flush_timed: bool,
    direct: bool,
    sync_writes: bool,
    no_retest: bool,
    no_stonewall: bool,
    notes: Vec<String>,
}

/// The tests to run, with every value of the line checked.
struct Plan {
    tests: Vec<u8>,
    record: u64,
    file: u64,
    names: Vec<String>,
    line: Line,
}

/// Makes a workload of an iozone argument vector (without the program's name).
///
/// `seed` chooses the order of the random tests.
///
/// # Errors
/// Names the argument that is unknown, not supported, missing or out of range, and what would be right.
pub fn parse<S: AsRef<str>>(args: &[S], seed: u64) -> Result<Workload, ArgError> {
    let args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
    let line = read_line(&args)?;
    let plan = plan(&args, line)?;
    Ok(build(plan, seed))
}

/// The workload of the published line `-r <record> -+n -i2 -ecI -t <threads> -l .. -u .. -s <total / threads> -F ..`
/// with files `mnt/tmp_1`, `mnt/tmp_2` and so on.
///
/// # Errors
/// As [`parse`] for that line; `total_bytes` must be a multiple of `threads`.
pub fn random(total_bytes: u64, threads: u32, record_bytes: u32, seed: u64) -> Result<Workload, ArgError> {
    if threads == 0 || !total_bytes.is_multiple_of(u64::from(threads)) {
        let message = format!("{total_bytes} bytes cannot be divided evenly among {threads} threads");
        return Err(ArgError { position: 0, text: total_bytes.to_string(), message });
    }
    // iozone counts in KiB; a remainder would be lost on the line.
    for bytes in [total_bytes / u64::from(threads), u64::from(record_bytes)] {
        if !bytes.is_multiple_of(1024) {
            return Err(ArgError { position: 0, text: bytes.to_string(), message: "not a multiple of 1 KiB".into() });
        }
    }
    let t = threads.to_string();
    let mut args = vec![String::from("-r"), format!("{}k", record_bytes / 1024), "-+n".into(), "-i2".into()];
    args.extend(["-ecI", "-t", &t, "-l", &t, "-u", &t, "-s"].map(String::from));
    args.push(format!("{}k", total_bytes / u64::from(threads) / 1024));
    args.push("-F".into());
    args.extend((1..=u64::from(threads).min(MAX_THREADS + 1)).map(|i| format!("mnt/tmp_{i}")));
    parse(&args, seed)
}

fn error(args: &[&str], index: usize, message: impl Into<String>) -> ArgError {
    let text = args.get(index).copied().unwrap_or_default();
    ArgError { position: index + 1, text: text.chars().take(200).collect(), message: message.into() }
}

/// Whether an option letter takes a value, as in iozone's usage.
fn takes_value(letter: char) -> bool {
    "bdfFgHijJkLnPqrsStuUlVyYX".contains(letter)
}

fn read_line(args: &[&str]) -> Result<Line, ArgError> {
    let mut line = Line::default();
    let mut i = 0;
    while i < args.len() {
        let here = i;
        i += 1;
        let Some(letters) = args[here].strip_prefix('-').filter(|l| !l.is_empty()) else {
            return Err(error(args, here, "expected an option such as -r 4k; file names belong after -F"));
        };
        if let Some(long) = letters.strip_prefix('+') {
            extended(args, here, long, &mut line)?;
            continue;
        }
        for (k, letter) in letters.char_indices() {
            if !takes_value(letter) {
                flag(args, here, letter, &mut line)?;
                continue;
            }
            let rest = &letters[k + letter.len_utf8()..];
            let (value, at) = if rest.is_empty() {
                let Some(value) = args.get(i) else {
                    if letter == 'F' {
                        return Err(error(args, here, "-F needs as many file names as there are threads"));
                    }
                    return Err(error(args, here, format!("-{letter} needs a value after it")));
                };
                i += 1;
                (*value, i - 1)
            } else {
                (rest, here)
            };
            if letter == 'F' {
                if !rest.is_empty() {
                    return Err(error(args, here, "write -F and the file names apart: -F name1 name2"));
                }
                i = at;
                while i < args.len() && !args[i].starts_with('-') {
                    line.names.push(At { value: i, position: i });
                    i += 1;
                }
                if line.names.is_empty() {
                    return Err(error(args, here, "-F needs as many file names as there are threads"));
                }
            } else {
                valued(args, at, letter, value, &mut line)?;
            }
            break;
        }
    }
    Ok(line)
}

fn extended(args: &[&str], here: usize, long: &str, line: &mut Line) -> Result<(), ArgError> {
    match long {
        "n" => line.no_retest = true,
        "u" | "d" | "r" | "A" | "D" | "N" => {
            line.notes.push(format!("iozone option -+{long} has no meaning here and is ignored"));
        }
        _ => return Err(error(args, here, "this extended option is not supported; -+n (no re-tests) is")),
    }
    Ok(())
}

fn flag(args: &[&str], here: usize, letter: char, line: &mut Line) -> Result<(), ArgError> {
    match letter {
        'e' => line.flush_timed = true,
        'I' => line.direct = true,
        'o' => line.sync_writes = true,
        'x' => line.no_stonewall = true,
        'c' => line.notes.push("iozone option -c: closing a file takes no time here".into()),
        'w' => line.notes.push("iozone option -w: files are always kept here".into()),
        'O' => line.notes.push("iozone option -O: reports give both operations and bytes per second".into()),
        'R' | 'C' | 'G' | 'D' | 'M' | 'N' | 'p' | 'Q' | 'T' | 'W' | 'm' => {
            line.notes.push(format!("iozone option -{letter} has no meaning here and is ignored"));
        }
        'a' | 'A' | 'z' => return Err(error(args, here, "automatic mode is not supported; give -s, -r, -t and -i")),
        'B' | 'Z' => return Err(error(args, here, "memory-mapped files are not supported; leave it out or use -I")),
        'E' | 'K' => return Err(error(args, here, format!("-{letter} (other access patterns) is not supported"))),
        'h' | 'v' => return Err(error(args, here, format!("-{letter} only prints text; it runs no test"))),
        _ => return Err(error(args, here, format!("-{letter} is not an iozone option that is known here"))),
    }
    Ok(())
}

fn valued(args: &[&str], at: usize, letter: char, text: &str, line: &mut Line) -> Result<(), ArgError> {
    let count = |what: &str| -> Result<At<u64>, ArgError> {
        match text.parse::<u64>() {
            Ok(value) if (1..=MAX_THREADS).contains(&value) => Ok(At { value, position: at }),
            _ => Err(error(args, at, format!("{what} must be a number from 1 to {MAX_THREADS}"))),
        }
    };
    let size = |what: &str| -> Result<At<u64>, ArgError> {
        let wrong =
            || error(args, at, format!("{what} must be a number with k, m or g after it (KiB without), not zero"));
        let value = parse_size(text).filter(|&v| v > 0).ok_or_else(wrong)?;
        Ok(At { value, position: at })
    };
    match letter {
        'r' => line.record = Some(size("the record size")?),
        's' => line.file = Some(size("the file size")?),
        't' => line.threads = Some(count("the number of threads")?),
        'l' => line.lower = Some(count("the lower number of processes")?),
        'u' => line.upper = Some(count("the upper number of processes")?),
        'f' => line.names.push(At { value: at, position: at }),
        'i' => match text.parse::<u8>() {
            Ok(value @ 0..=2) => line.tests.push(At { value, position: at }),
            Ok(3..=13) => {
                return Err(error(
                    args,
                    at,
                    format!("test {text} is not supported; 0 (write), 1 (read) and 2 (random) are"),
                ));
            }
            _ => return Err(error(args, at, "-i needs the number of a test: 0 (write), 1 (read) or 2 (random)")),
        },
        'J' => match text.parse::<u64>() {
            Ok(ms) if ms <= 86_400_000 => line.compute_delay = Ns::from_ms(ms),
            _ => return Err(error(args, at, "-J needs milliseconds, at most one day")),
        },
        'H' | 'k' => return Err(error(args, at, "asynchronous I/O is not supported; use more threads (-t)")),
        'X' | 'Y' => return Err(error(args, at, "telemetry files are not supported")),
        _ => line.notes.push(format!("iozone option -{letter} has no meaning here and is ignored")),
    }
    Ok(())
}

/// Bytes of an iozone size: a number with k, m or g, or a bare number of KiB.
fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'm' | b'M' => (&text[..text.len() - 1], 20),
        b'g' | b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 10),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn plan(args: &[&str], mut line: Line) -> Result<Plan, ArgError> {
    let fail = |at: usize, message: String| Err(error(args, at, message));
    if let (Some(l), Some(u)) = (line.lower, line.upper)
        && l.value > u.value
    {
        return fail(l.position, format!("the lower number of processes is above the upper one, {}", u.value));
    }
    if let Some(t) = line.threads {
        for (bound, outside) in [
            (line.lower, line.lower.is_some_and(|l| t.value < l.value)),
            (line.upper, line.upper.is_some_and(|u| t.value > u.value)),
        ] {
            if let Some(bound) = bound.filter(|_| outside) {
                return fail(t.position, format!("{} threads lie outside of -l and -u ({})", t.value, bound.value));
            }
        }
    }
    let asked = line.threads.or(line.upper).or(line.lower);
    let threads = asked.map_or(1, |a| a.value);
    if let (Some(l), Some(u)) = (line.lower, line.upper)
        && l.value < u.value
    {
        line.notes.push(format!("iozone -l {} -u {}: only the run with {threads} processes is made", l.value, u.value));
    }
    let record = line.record.map_or(DEFAULT_RECORD, |r| r.value);
    let record_at = line.record.map_or(args.len(), |r| r.position);
    let file = line.file.map_or(DEFAULT_FILE, |f| f.value);
    let file_at = line.file.map_or(args.len(), |f| f.position);
    let block = u64::from(BLOCK_BYTES);
    if !record.is_multiple_of(block) {
        return fail(record_at, format!("the record size, {record} bytes, must be a multiple of {block}"));
    }
    if record / block > u64::from(u16::MAX) {
        return fail(record_at, format!("the record size must be below {} bytes", block << 16));
    }
    if !file.is_multiple_of(record) {
        return fail(file_at, format!("the file size, {file} bytes, must be a multiple of the record size, {record}"));
    }
    let blocks = (file / block).checked_mul(threads).filter(|&b| b <= MAX_BLOCKS);
    if blocks.is_none() {
        return fail(file_at, format!("{threads} files of this size have more than {MAX_BLOCKS} blocks of 4 KiB"));
    }
    let names: Vec<String> = if line.names.is_empty() {
        (0..threads).map(|i| format!("iozone.DUMMY.{i}")).collect()
    } else {
        line.names.iter().map(|n| args[n.value].to_owned()).collect()
    };
    if names.len() as u64 != threads {
        let last = line.names.last().map_or(args.len(), |n| n.position);
        return fail(last, format!("{} file names for {threads} threads; there must be one each", names.len()));
    }
    let mut seen = std::collections::BTreeSet::new();
    for name in &line.names {
        if !seen.insert(args[name.value]) {
            return fail(name.position, "the name is given twice; every thread has a file of its own".into());
        }
    }
    if line.tests.is_empty() {
        return fail(args.len(), "no test: give -i 0 (write), -i 1 (read) or -i 2 (random)".into());
    }
    let mut tests: Vec<u8> = line.tests.iter().map(|t| t.value).collect();
    // iozone runs the tests in its own order, each once.
    tests.sort_unstable();
    tests.dedup();
    Ok(Plan { tests, record, file, names, line })
}

readpath_kit::named! {
    /// One of iozone's tests, each of which is a phase.
    pub enum Test {
        /// `-i 0`.
        InitialWrite = "initial write",
        /// `-i 0`, for the second time.
        Rewrite = "rewrite",
        /// `-i 1`.
        Read = "read",
        /// `-i 1`, for the second time.
        Reread = "re-read",
        /// `-i 2`, its first half.
        RandomRead = "random read",
        /// `-i 2`, its second half.
        RandomWrite = "random write",
    }
}

impl Test {
    /// Whether its requests go to random places.
    pub const fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite)
    }

    fn requests(self) -> (IoKind, Offsets) {
        let offsets = if self.is_random() { Offsets::Once } else { Offsets::Sequential };
        match self {
            Self::InitialWrite | Self::Rewrite | Self::RandomWrite => (IoKind::Write, offsets),
            Self::Read | Self::Reread | Self::RandomRead => (IoKind::Read, offsets),
        }
    }
}

fn build(plan: Plan, seed: u64) -> Workload {
    let line = plan.line;
    let block = u64::from(BLOCK_BYTES);
    // Both fit: checked by `plan`.
    let (blocks, record) = ((plan.file / block) as u32, (plan.record / block) as u16);
    let runs = if line.no_retest { 1 } else { 2 };
    let tests_of = |number: &u8| match number {
        0 => &[Test::InitialWrite, Test::Rewrite][..runs],
        1 => &[Test::Read, Test::Reread][..runs],
        _ => &[Test::RandomRead, Test::RandomWrite],
    };
    let tests: Vec<Test> = plan.tests.iter().flat_map(tests_of).copied().collect();
    let files: Vec<FileExtent> = (0u32..)
        .zip(&plan.names)
        .map(|(i, name)| FileExtent { name: name.clone(), lun: 0, block: i * blocks, blocks })
        .collect();
    let mut phases = Vec::with_capacity(tests.len());
    for (group, test) in tests.iter().enumerate() {
        let (kind, offsets) = test.requests();
        let mut spec = StreamSpec::plain(kind, 0, blocks, record, offsets);
        spec.limit_blocks = Some(u64::from(blocks));
        spec.fua = line.sync_writes && kind == IoKind::Write;
        spec.end_flush = line.flush_timed && kind == IoKind::Write;
        // `plan` has checked every value that the stream looks at.
        let Ok(first) = Stream::new(&spec, seed) else { unreachable!() };
        let jobs = (1u32..)
            .zip(&files)
            .map(|(thread, file)| {
                let Ok(stream) = first.sibling(file.block, seed) else { unreachable!() };
                // The flush at the end is part of the run, so there the stream itself says when it is over.
                let bytes = (!spec.end_flush).then_some(plan.file);
                Job {
                    name: format!("thread {thread}"),
                    group,
                    lun: 0,
                    iodepth: 1,
                    limits: Limits { bytes, ios: None, runtime: None },
                    ramp: Ns::ZERO,
                    start_delay: Ns::ZERO,
                    think: Think { time: line.compute_delay, every: 1 },
                    rate_bytes: [None; 3],
                    poisson: None,
                    zbd: None,
                    flow: None,
                    ends: Ends::Itself,
                    fio: FioReport::default(),
                    stream,
                }
            })
            .collect();
        phases.push(Phase { name: test.name().into(), jobs });
    }
    let groups = tests.iter().map(|test| test.name().into()).collect();
    let mut notes = line.notes;
    notes.push("iozone: effects of the file system are not modelled; the files lie one after another".into());
    notes.push(
        "iozone: a random test visits each record once, in one order for all threads, as iozone 3.4xx does".into(),
    );
    if !line.direct {
        notes.push("iozone: no page cache is modelled; requests reach the device as with -I".into());
    }
    if !line.no_stonewall {
        notes.push("iozone: a test ends when its last thread does; iozone without -x stops all at the first".into());
    }
    if line.flush_timed {
        notes.push("iozone option -e: each thread of a write test ends with a flush inside its time".into());
    }
    let name =
        format!("iozone, {} threads x {} KiB, records of {} KiB", files.len(), plan.file >> 10, plan.record >> 10);
    Workload { name, phases, groups, tests, files, notes, ..Workload::default() }
}
