// SPDX-License-Identifier: MIT OR Apache-2.0
//! What recovery has found out so far, and how it is put together: the checkpoint, the journal, and what spare areas
//! say. It knows nothing of time or of what reading costs.

use super::durable::{Checkpoint, Record};
use super::map::{Entry, PageMap};
use super::superblock::{State, Stream, Superblock};
use crate::ids::{Lpn, MapPage, Mark, SuperblockId};
use std::collections::{BTreeMap, BinaryHeap};

/// Blocks that were trimmed together, however many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Trimmed {
    /// First logical page.
    pub first: Lpn,
    /// The logical page behind the last.
    pub end: Lpn,
    /// Orders it among writes.
    pub sequence: u32,
}

/// See the module.
pub(crate) struct Recovered {
    /// All superblocks.
    pub table: Vec<Superblock>,
    /// Where each map page begins.
    pub directory: Vec<Option<readpath_flash::Ppn>>,
    /// References that map pages hold, by superblock.
    pub written_refs: Vec<i64>,
    /// Newest sequence number and entry of each block that changed.
    pub newest: BTreeMap<Lpn, (u32, Entry)>,
    /// Trims that the journal names.
    pub trims: Vec<Trimmed>,
    /// Trimmed stretches that are not part of a map page yet, by map page.
    pub stretches: Vec<u32>,
    /// Trims up to this one are part of each map page that was written after the checkpoint; 0 for the others.
    pub trims_written: Vec<u32>,
    /// Number of the newest write or trim.
    pub sequence: u32,
    /// Openings of superblocks and map pages put together.
    pub ticks: u32,
    /// HPB generations up to this one may have been given out.
    pub generations: u64,
    /// Records up to this one are part of the checkpoint.
    pub journal: Mark,
    /// Superblocks of the WriteBooster buffer that were open, or were opened since.
    pub boosted_opened: u32,
}

impl Recovered {
    /// A slice says that it holds `lpn`. Of equals, a copy and what it was made from, the later is right: the earlier
    /// may have been erased.
    pub(super) fn consider(&mut self, lpn: Option<Lpn>, sequence: u32, entry: Entry) {
        let Some(lpn) = lpn else { return };
        self.sequence = self.sequence.max(sequence);
        let newest = self.newest.entry(lpn).or_insert((sequence, entry));
        if sequence >= newest.0 {
            *newest = (sequence, entry);
        }
    }

    /// A map page was written after the checkpoint, when `sequence` was the newest number; numbers go on behind it.
    pub(super) fn written(&mut self, page: MapPage, sequence: u32) {
        self.sequence = self.sequence.max(sequence);
        self.trims_written[page.index()] = sequence;
    }

    /// A stream goes on in another superblock.
    pub(super) fn open(&mut self, stream: Stream, superblock: SuperblockId, opened_at: u32) {
        for sb in &mut self.table {
            if sb.state == State::Open(stream) {
                sb.state = State::Closed(stream);
                sb.closed_at = self.sequence;
            }
        }
        let sb = &mut self.table[superblock.index()];
        sb.state = State::Open(stream);
        sb.opened_at = opened_at;
        sb.slc = stream == Stream::Boosted;
        sb.reads = 0;
        self.written_refs[superblock.index()] = 0;
        self.ticks = self.ticks.max(opened_at);
    }

    /// The journal says `record`, its `number`-th.
    pub(super) fn apply(&mut self, number: Mark, record: &Record) {
        self.boosted_opened += u32::from(matches!(record, Record::Open { stream: Stream::Boosted, .. }));
        match *record {
            // Trims have to be compared with data that was accepted before the checkpoint and programmed after it; the
            // others have had their effect.
            Record::Open { .. } | Record::Erase { .. } if number <= self.journal => {}
            Record::Open { stream, superblock, opened_at } => self.open(stream, superblock, opened_at),
            Record::Erase { superblock } => {
                self.table[superblock.index()].state = State::Erasing(0);
                self.written_refs[superblock.index()] = 0;
            }
            Record::Trim { lpn, count, sequence } => {
                self.sequence = self.sequence.max(sequence);
                self.trims.push(Trimmed { first: lpn, end: lpn + count, sequence });
            }
            Record::Generations { up_to } => self.generations = self.generations.max(up_to),
        }
    }

    /// Puts what was found together with what the checkpoint and map pages know; `map` is what map pages say.
    ///
    /// - Data found is newer than the checkpoint, because nothing was being programmed when that was put together;
    ///   unless it was trimmed later.
    /// - Trims found may be older than the checkpoint: then what they did, and what came after them, is part of it.
    ///
    /// A trim stays a stretch: it takes a place for each map page of which it may have changed something, as it did
    /// before. What map pages say of its blocks has not been read.
    pub(super) fn settle(&mut self, checkpoint: &Checkpoint, map: &PageMap) {
        let trims = newest_trims(std::mem::take(&mut self.trims));
        let mut later = trims.iter().peekable();
        self.newest.retain(|&lpn, (sequence, _)| {
            while later.next_if(|trim| trim.end <= lpn).is_some() {}
            !later.peek().is_some_and(|trim| trim.first <= lpn && trim.sequence > *sequence)
        });
        for &(lpn, entry) in checkpoint.changes() {
            let trim = trims.get(trims.partition_point(|trim| trim.end <= lpn));
            let is_gone = trim.is_some_and(|trim| trim.first <= lpn && trim.sequence > checkpoint.sequence);
            if entry == Entry::UNMAPPED || !is_gone {
                self.newest.entry(lpn).or_insert((0, entry));
            }
        }
        for &(page, stretches) in &checkpoint.trims {
            self.stretches[page.index()] = stretches;
        }
        // The stretch that was counted last goes on as long as only trimmed blocks come.
        let mut counted_to = None;
        for trim in &trims {
            let mut first = trim.first;
            while first < trim.end {
                let page = map.page_of(first);
                let end = trim.end.min(map.end_of(page));
                let written = checkpoint.sequence.max(self.trims_written[page.index()]);
                if trim.sequence > written && self.directory[page.index()].is_some() {
                    let changes = self.trim(first, end);
                    let goes_on = counted_to == Some((page, first));
                    self.stretches[page.index()] += u32::from(changes && !goes_on);
                    if changes || goes_on {
                        counted_to = Some((page, end));
                    }
                }
                first = end;
            }
        }
    }

    /// Blocks of one map page mean nothing any more, unless there is newer data. Returns whether that changes anything.
    fn trim(&mut self, first: Lpn, end: Lpn) -> bool {
        let mut changes = false;
        for lpn in first.run(end - first) {
            self.newest.entry(lpn).or_insert_with(|| {
                changes = true;
                (0, Entry::UNMAPPED)
            });
        }
        changes
    }
}

/// The newest trim of each block that was trimmed: stretches in order that do not overlap.
fn newest_trims(mut trims: Vec<Trimmed>) -> Vec<Trimmed> {
    trims.sort_unstable_by_key(|trim| (trim.first, trim.sequence));
    let mut newest: Vec<Trimmed> = Vec::new();
    // Sequence number and end of those that have begun.
    let mut begun: BinaryHeap<(u32, Lpn)> = BinaryHeap::new();
    let (mut at, mut next) = (Lpn(0), 0);
    loop {
        while begun.peek().is_some_and(|&(_, end)| end <= at) {
            begun.pop();
        }
        let begins = trims.get(next).map(|trim| trim.first);
        match (begun.peek(), begins) {
            (None, None) => return newest,
            (None, Some(first)) => at = first,
            (Some(&(sequence, end)), begins) => {
                let to = begins.map_or(end, |first| first.min(end));
                match newest.last_mut() {
                    Some(last) if last.end == at && last.sequence == sequence => last.end = to,
                    _ if at < to => newest.push(Trimmed { first: at, end: to, sequence }),
                    _ => {}
                }
                at = to;
            }
        }
        while let Some(trim) = trims.get(next).filter(|trim| trim.first <= at) {
            begun.push((trim.sequence, trim.end));
            next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_flash::Ppn;
    use readpath_kit::Prng;

    fn nothing() -> Recovered {
        Recovered {
            table: Vec::new(),
            directory: Vec::new(),
            written_refs: Vec::new(),
            newest: BTreeMap::new(),
            trims: Vec::new(),
            stretches: Vec::new(),
            trims_written: Vec::new(),
            sequence: 0,
            ticks: 0,
            generations: 0,
            journal: 0,
            boosted_opened: 0,
        }
    }

    /// What was moved has the sequence number of its original, whose superblock may be about to be erased.
    #[test]
    fn of_an_original_and_its_copy_the_copy_counts() {
        let mut found = nothing();
        let mut newest_after = |lpn, sequence, ppn| {
            found.consider(lpn, sequence, Entry::at(Ppn(ppn)));
            (found.newest[&Lpn(7)].1, found.sequence)
        };
        assert_eq!(newest_after(Some(Lpn(7)), 3, 10), (Entry::at(Ppn(10)), 3));
        assert_eq!(newest_after(Some(Lpn(7)), 3, 20), (Entry::at(Ppn(20)), 3));
        assert_eq!(newest_after(Some(Lpn(7)), 2, 30), (Entry::at(Ppn(20)), 3), "older data, found later");
        assert_eq!(newest_after(Some(Lpn(7)), 5, 40), (Entry::at(Ppn(40)), 5));
        assert_eq!(newest_after(None, 6, 50), (Entry::at(Ppn(40)), 5), "it holds nothing");
    }

    #[test]
    fn the_newest_trim_of_each_block() {
        let rng = &mut Prng::new(1);
        for round in 0..2000 {
            let trims: Vec<Trimmed> = (0..rng.below(12) as u32)
                .map(|i| {
                    let first = Lpn(rng.below(40) as u32);
                    // In any order of numbers, each once.
                    let sequence = (i * 7 + round) % 13;
                    Trimmed { first, end: first + rng.below(20) as u32, sequence }
                })
                .collect();
            let newest = newest_trims(trims.clone());
            assert!(newest.windows(2).all(|two| two[0].end <= two[1].first), "{newest:?}");
            let of = |trims: &[Trimmed], lpn| {
                trims.iter().filter(|t| (t.first..t.end).contains(&lpn)).map(|t| t.sequence).max()
            };
            for lpn in Lpn(0).run(70) {
                assert_eq!(of(&newest, lpn), of(&trims, lpn), "{lpn:?} of {trims:?}: {newest:?}");
            }
        }
    }
}
