// SPDX-License-Identifier: MIT OR Apache-2.0
//! At every memory budget the adaptive cache is close to the best that fits: no cache, or LRU with a fixed number of
//! lines and tables for exactly these.

use crate::common::{costs, load, replay, traces};
use readpath_ubi::cache::{Lru, Policy};
use readpath_ubi::stream::{Op, Pressure, Record, Step};
use std::collections::HashSet;
use std::path::PathBuf;

/// The most lines of the adaptive cache.
const MOST: u32 = 256;

fn ns(records: &[Record], page_bytes: u32, cache: &str, lines: u32, pressure: &Pressure) -> u64 {
    replay(records, page_bytes, cache, lines, pressure).totals.cost.total_ns()
}

fn bytes_of_lru(lines: u32, page_bytes: u32) -> u64 {
    u64::from(lines) * u64::from(page_bytes) + Lru::new(lines).metadata_bytes()
}

/// Fixed numbers of lines of LRU.
const FIXED: [u32; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 61, 96, 128, 192, 256];

/// Budgets that just fit some lines of LRU, budgets between these, and round ones.
fn budgets(page_bytes: u32) -> Vec<u64> {
    let tight = FIXED.iter().map(|&n| bytes_of_lru(n, page_bytes));
    let between = FIXED.iter().map(|&n| bytes_of_lru(n, page_bytes) + u64::from(page_bytes) / 2);
    let round = [0, 16, 32, 64, 256, 1024, 4096].map(|kib| kib << 10);
    let mut all: Vec<u64> = tight.chain(between).chain(round).chain([17_000, 33_000, 50_000, 100_000]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Recorded streams: names, pages and records.
fn recorded() -> Vec<(String, u32, Vec<Record>)> {
    let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data")];
    folders.extend(traces());
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        paths.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let page_bytes = match name.split('_').next() {
            Some("fx" | "fm") => 2048,
            Some("mlc8k") => 8192,
            _ => 16384,
        };
        let stream = load(path, page_bytes);
        (stream.summary.reads > 0).then_some((name, page_bytes, stream.records))
    };
    paths.iter().filter(|path| path.to_string_lossy().ends_with(".csv.gz")).filter_map(read).collect()
}

/// Synthetic streams: favourites among many pages, loops, a few pages among others that are never touched again, and
/// phases of all these.
fn made_up() -> Vec<(String, u32, Vec<Record>)> {
    let mut state = 1u32;
    let mut next = move |n: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % n
    };
    let favourite = |next: &mut dyn FnMut(u32) -> u32| (0..6).fold(2000, |most, _| next(most).max(1));
    let mut all = Vec::new();
    for page_bytes in [2048, 16384] {
        let read = |page: u32| Record { op: Op::Read, peb: page / 64, offset: page % 64 * page_bytes, bytes: 188 };
        let mut add = |what: String, pages: Vec<u32>| {
            all.push((
                format!("{what}, pages of {page_bytes} bytes"),
                page_bytes,
                pages.into_iter().map(read).collect(),
            ));
        };
        for n in [1, 2, 3, 20, 60, 256, 300] {
            add(format!("a loop of {n} pages"), (0..40_000).map(|i| i % n).collect());
        }
        for n in [1, 2, 6, 40, 200] {
            let page = |i: u32| if next(3) == 0 { 1000 + i } else { next(n) };
            add(format!("{n} pages and others"), (0..40_000).map(page).collect());
        }
        add("favourites".into(), (0..40_000).map(|_| favourite(&mut next)).collect());
        let phase = |i: u32| match i / 4000 % 4 {
            0 => favourite(&mut next),
            1 => 5000 + i % 50,
            2 => 10_000 + i,
            _ => next(300),
        };
        add("phases".into(), (0..80_000).map(phase).collect());
    }
    all
}

/// Runs each stream at each budget. The start is not free: a fill is an investment, hits pay for further ones, and
/// pages are read in parts until then. So for each page that is read and fits, `start` part reads are allowed in
/// addition to the 2 %.
fn within_2_percent_of_the_best(streams: Vec<(String, u32, Vec<Record>)>, start: u64) {
    let (mut pairs, mut faults) = (0, Vec::new());
    for (name, page_bytes, records) in streams {
        let free = Pressure::default();
        let none = ns(&records, page_bytes, "none", 1, &free);
        let fixed = |n| (bytes_of_lru(n, page_bytes), ns(&records, page_bytes, "lru+split", n, &free));
        let fixed: Vec<(u64, u64)> = FIXED.iter().map(|&n| fixed(n)).collect();
        let pages = records.iter().map(|r| (r.peb, r.offset / page_bytes)).collect::<HashSet<_>>().len() as u64;
        let part_ns = costs(page_bytes).steps(1).total_ns();
        let mut beyond = (0, 0.0);
        for bytes in budgets(page_bytes) {
            let fitting = fixed.iter().filter(|(needs, _)| *needs <= bytes).map(|(_, ns)| *ns);
            let best = fitting.chain([none]).min().expect("no cache fits always");
            let budget = Pressure { steps: vec![Step { read: 0, bytes }] };
            let adaptive = ns(&records, page_bytes, "adaptive+split", MOST, &budget);
            pairs += 1;
            if adaptive > best + best / 50 {
                let percent = 100.0 * (adaptive as f64 / best as f64 - 1.0);
                beyond = (beyond.0 + 1, percent.max(beyond.1));
            }
            if adaptive > best + best / 50 + start * part_ns * pages.min(bytes / u64::from(page_bytes)) {
                faults.push(format!("{name}, {bytes} bytes: {adaptive} ns, {best} at best"));
            }
        }
        if beyond.0 > 0 {
            let (n, percent) = beyond;
            println!("{name}, {} lines: {n} budgets beyond 2 %, at most {percent:.1} %", records.len());
        }
    }
    println!("{pairs} pairs of stream and budget");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn on_streams_that_were_made_up() {
    within_2_percent_of_the_best(made_up(), 4);
}

#[test]
fn on_streams_that_were_recorded() {
    within_2_percent_of_the_best(recorded(), 1);
}
