// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reorder window: rows that are a little out of order are sorted, and completions find their requests. Knows times
//! and keys, not formats.

use super::formats::{NO_LATENCY, Raw};
use readpath_kit::Ns;
use std::collections::{HashMap, VecDeque};

struct Entry {
    raw: Raw,
    /// Number of the row.
    sequence: u64,
}

/// Requests sorted by time; equal times stay in order of the rows.
#[derive(Default)]
pub(super) struct Window {
    entries: VecDeque<Entry>,
    capacity: usize,
    next_sequence: u64,
    /// Latest time seen.
    pub(super) latest: u64,
    /// Time of the last request given out.
    pub(super) given: u64,
    /// Issued requests by key: row and time. The order of its entries never affects results.
    outstanding: HashMap<u64, (u64, u64)>,
    /// (row, latency), by row modulo its length.
    latencies: Vec<(u64, u64)>,
    /// Rows that came after one with a later time.
    pub(super) inversions: u64,
    /// The longest time that one of them was behind.
    pub(super) furthest: Ns,
    /// Completions whose request was not seen, or too long ago.
    pub(super) unmatched: u64,
}

impl Window {
    pub(super) fn new(capacity: usize) -> Window {
        let entries = VecDeque::with_capacity((capacity + 1).min(1 << 16));
        Window { entries, capacity, ..Window::default() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Takes a request whose time is not before `given`.
    #[inline]
    pub(super) fn push(&mut self, raw: Raw) {
        let entry = Entry { raw, sequence: self.next_sequence };
        self.next_sequence += 1;
        if raw.time >= self.latest {
            self.latest = raw.time;
            self.entries.push_back(entry);
        } else {
            self.insert(entry);
        }
    }

    #[cold]
    fn insert(&mut self, entry: Entry) {
        self.inversions += 1;
        self.furthest = self.furthest.max(Ns(self.latest - entry.raw.time));
        let i = self.entries.partition_point(|e| e.raw.time <= entry.raw.time);
        self.entries.insert(i, entry);
    }

    /// As [`Window::push`], for a request whose completion may follow.
    #[inline]
    pub(super) fn push_issued(&mut self, raw: Raw, key: u64) {
        if self.latencies.is_empty() {
            self.latencies = vec![(u64::MAX, NO_LATENCY); (self.capacity + 1).next_power_of_two()];
        }
        // Completions get lost; requests that left the window long ago must not stay for ever.
        if self.outstanding.len() > 2 * self.latencies.len() {
            let oldest = self.next_sequence.saturating_sub(self.latencies.len() as u64);
            self.outstanding.retain(|_, (sequence, _)| *sequence >= oldest);
        }
        // The same tag or sector again means that a completion was lost or that the request was sent again.
        self.outstanding.insert(key, (self.next_sequence, raw.time));
        self.push(raw);
    }

    /// The outstanding request of that key completed.
    #[inline]
    pub(super) fn complete(&mut self, key: u64, time: u64) {
        let Some((sequence, issued)) = self.outstanding.remove(&key) else {
            self.unmatched += 1;
            return;
        };
        if let Some(latency) = time.checked_sub(issued) {
            let slots = self.latencies.len() as u64;
            self.latencies[(sequence & (slots - 1)) as usize] = (sequence, latency);
        }
    }

    /// The earliest request and its latency, once more requests than the capacity wait, or any when `all` is set.
    #[inline]
    pub(super) fn pop(&mut self, all: bool) -> Option<(Raw, u64)> {
        if self.entries.len() <= self.capacity && !all {
            return None;
        }
        let Entry { raw, sequence } = self.entries.pop_front()?;
        self.given = raw.time;
        if self.latencies.is_empty() {
            return Some((raw, raw.latency));
        }
        let slots = self.latencies.len() as u64;
        let (row, latency) = self.latencies[(sequence & (slots - 1)) as usize];
        Some((raw, if row == sequence { latency } else { raw.latency }))
    }
}
