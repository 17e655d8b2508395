// SPDX-License-Identifier: MIT OR Apache-2.0
//! A key-value store on a bare disk, and six classic mistakes of such stores: each is found, and the store without them
//! survives.
//!
//! Its disk has a header (generation, and which of two areas has the snapshot), the areas, and a log of slots. A put
//! writes the next slot, ends the log behind it, and flushes. A checkpoint writes a snapshot, then the header, and the
//! log begins again from its first slot.

use crate::recorded::{Empty, Recorder};
use crate::tried::{Disk, found};
use readpath_crash::{Budget, Found, Permitted};
use std::collections::BTreeMap;

const PUTS: u32 = 12;
const KEYS: u32 = 5;
/// Puts between two checkpoints.
const EVERY: u32 = 4;
const AREAS: [u64; 2] = [1 << 16, 1 << 17];
const LOG: u64 = 1 << 18;
const SLOT: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mistake {
    None,
    /// A put is answered though the log was not flushed.
    FileNotSynced,
    /// After a checkpoint the log begins again though the header was not flushed.
    FolderNotSynced,
    /// The header is written though the snapshot was not flushed.
    RenamedBeforeSync,
    /// The header is more than a sector.
    TornHeader,
    /// The sum of a slot does not cover its length.
    SumWithoutLength,
    /// The log is read beyond its end, into slots of the generation before.
    StaleLog,
}

const ALL: [Mistake; 7] = [
    Mistake::None,
    Mistake::FileNotSynced,
    Mistake::FolderNotSynced,
    Mistake::RenamedBeforeSync,
    Mistake::TornHeader,
    Mistake::SumWithoutLength,
    Mistake::StaleLog,
];

fn value(put: u32) -> Vec<u8> {
    let bytes = 1 + (put * 379 % 470) as usize;
    (0..bytes).map(|i| (put as usize + i) as u8 | 1).collect()
}

/// What the keys are after so many puts.
fn after(puts: u32) -> BTreeMap<u32, Vec<u8>> {
    (1..=puts).map(|put| (put % KEYS, value(put))).collect()
}

fn sum(bytes: &[u8]) -> u32 {
    // Zeros at the end change nothing.
    let each = bytes.iter().zip(1u32..).map(|(&byte, i)| u32::from(byte).wrapping_mul(i.wrapping_mul(2_654_435_761)));
    each.fold(7, u32::wrapping_add)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn put_word(bytes: &mut [u8], at: usize, word: u32) {
    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

/// The sum of a slot: its length lies in its first sector, and the rest of it in the second.
fn slot_sum(slot: &[u8], bytes: usize, mistake: Mistake) -> u32 {
    let length = if mistake == Mistake::SumWithoutLength { 0 } else { bytes as u32 };
    sum(&slot[512..520]) ^ sum(&slot[524..524 + bytes]) ^ length.wrapping_mul(0x9e37_79b9)
}

/// Where the second part of the header is: the area, and the sum.
fn header_rest(mistake: Mistake) -> usize {
    if mistake == Mistake::TornHeader { 512 } else { 4 }
}

fn checkpoint(disk: &mut Recorder, mistake: Mistake, generation: u32, puts: u32) {
    let area = generation as usize % 2;
    let mut snapshot = puts.to_le_bytes().to_vec();
    for (_, value) in after(puts) {
        snapshot.extend((value.len() as u32).to_le_bytes());
        snapshot.extend(value);
    }
    snapshot.extend(sum(&snapshot).to_le_bytes());
    snapshot.splice(0..0, (snapshot.len() as u32).to_le_bytes());
    disk.write(AREAS[area], &snapshot);
    if mistake != Mistake::RenamedBeforeSync {
        disk.flush();
    }
    let rest = header_rest(mistake);
    let mut header = vec![0; rest.next_multiple_of(512) + if rest == 512 { 512 } else { 0 }];
    put_word(&mut header, 0, generation);
    put_word(&mut header, rest, area as u32);
    let check = sum(&[&header[..4], &header[rest..rest + 4]].concat());
    put_word(&mut header, rest + 4, check);
    match mistake {
        // It is durable alone, whatever else is.
        Mistake::RenamedBeforeSync => _ = disk.fua(0, &header),
        _ => _ = disk.write(0, &header),
    }
    if !matches!(mistake, Mistake::FolderNotSynced | Mistake::RenamedBeforeSync) {
        disk.flush();
    }
}

fn recording(mistake: Mistake) -> Recorder {
    let mut disk = Recorder::new();
    let mut generation = 1;
    // Its first checkpoint is right, but for the shape of the header.
    let first = if mistake == Mistake::TornHeader { mistake } else { Mistake::None };
    checkpoint(&mut disk, first, 0, 0);
    checkpoint(&mut disk, mistake, generation, 0);
    disk.flush();
    disk.order("mark 0");
    let mut place = LOG;
    for put in 1..=PUTS {
        let value = value(put);
        let mut slot = vec![0; SLOT];
        put_word(&mut slot, 508, value.len() as u32);
        put_word(&mut slot, 512, generation);
        put_word(&mut slot, 516, put);
        slot[524..524 + value.len()].copy_from_slice(&value);
        let check = slot_sum(&slot, value.len(), mistake);
        put_word(&mut slot, 520, check);
        disk.write(place, &slot);
        place += SLOT as u64;
        disk.write(place, &[0; 512]);
        if mistake != Mistake::FileNotSynced {
            disk.flush();
        }
        disk.order(&format!("mark {put}"));
        if put % EVERY == 0 {
            generation += 1;
            checkpoint(&mut disk, mistake, generation, put);
            place = LOG;
        }
    }
    disk
}

/// What the store holds after it has recovered, and how many puts that are.
fn recovered(disk: &mut Disk, mistake: Mistake) -> (BTreeMap<u32, Vec<u8>>, u32) {
    let rest = header_rest(mistake);
    let header = disk.read(0, 1024);
    let (generation, area) = (word(&header, 0), word(&header, rest) as usize);
    let check = sum(&[&header[..4], &header[rest..rest + 4]].concat());
    if header.iter().all(|&byte| byte == 0) {
        // A store that has not begun.
        return (BTreeMap::new(), 0);
    }
    assert_eq!(word(&header, rest + 4), check, "the header is damaged");
    let snapshot = disk.read(AREAS[area], 8192);
    let bytes = word(&snapshot, 0) as usize;
    let snapshot = &snapshot[4..][..bytes.clamp(4, 8000)];
    let (snapshot, check) = snapshot.split_at(snapshot.len() - 4);
    assert_eq!(word(check, 0), sum(snapshot), "the snapshot is damaged");
    let mut puts = word(snapshot, 0);
    let mut keys = BTreeMap::new();
    let mut at = 4;
    for (key, _) in after(puts) {
        let bytes = word(snapshot, at) as usize;
        keys.insert(key, snapshot[at + 4..at + 4 + bytes].to_vec());
        at += 4 + bytes;
    }
    let log = disk.read(LOG, SLOT * (EVERY as usize + 1));
    for slot in log.chunks(SLOT) {
        let bytes = word(slot, 508) as usize;
        if !(1..=500).contains(&bytes) || word(slot, 520) != slot_sum(slot, bytes, mistake) {
            break;
        }
        if word(slot, 512) != generation && mistake != Mistake::StaleLog {
            break;
        }
        puts = word(slot, 516);
        keys.insert(puts % KEYS, slot[524..524 + bytes].to_vec());
    }
    (keys, puts)
}

/// Not a test unless a state is to be checked: the tests give it one after the other.
#[test]
fn as_check() {
    let Some(mut disk) = Disk::of_check() else { return };
    let mistake = ALL.into_iter().find(|mistake| std::env::args().any(|word| word == format!("{mistake:?}"))).unwrap();
    let mark: u32 = std::env::var("MARK").unwrap().parse().unwrap_or(0);
    let (keys, puts) = recovered(&mut disk, mistake);
    assert!(puts >= mark, "put {mark} was answered, and there are {puts}");
    assert!(puts <= mark + 1, "put {puts} was not made");
    assert!(keys == after(puts), "the keys are not those after {puts} puts");
}

fn search(mistake: Mistake) -> Found {
    let empty = Empty::new();
    let recorder = recording(mistake);
    let log = empty.log(&recorder);
    let exe = std::env::current_exe().unwrap().display().to_string();
    let words = [&exe, "--exact", "mistakes::as_check", "--nocapture", &format!("{mistake:?}")];
    found(&empty, &log, &Permitted::new(&log, 1), &words, Budget::States(700)).unwrap()
}

#[test]
fn each_mistake_is_found_and_nothing_else() {
    for mistake in ALL {
        let found = search(mistake);
        let smallest = found.reduced.first();
        match mistake {
            Mistake::None => assert!(found.failed.is_empty() && found.different > 50, "{found:?}"),
            _ => {
                let smallest = smallest.unwrap_or_else(|| panic!("{mistake:?} is not found in {found:?}"));
                assert!(smallest.losses.len() <= 1, "{mistake:?}: {smallest:?}");
            }
        }
        if mistake == Mistake::TornHeader {
            assert!(smallest.is_some_and(|smallest| smallest.name.contains("torn=")), "{smallest:?}");
        }
    }
}
