// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state that recovery assembles from the checkpoint, the journal, and spare areas. It knows neither time nor the
//! cost of reading.

use super::durable::{Checkpoint, Record};
use crate::config::{CellMode, OwnCells};
use crate::ftl::map::stretch::{self, Stretch};
use crate::ftl::map::{Entry, Map};
use crate::ftl::space::{State, Stream, Superblock};
use crate::ids::{Lpn, MapPage, Mark, SuperblockId};
use std::collections::{BTreeMap, BinaryHeap};

/// Blocks that were trimmed together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Trimmed {
    /// First logical page.
    pub first: Lpn,
    /// The logical page behind the last.
    pub end: Lpn,
    /// Orders it among writes.
    pub sequence: u32,
}

#[derive(Default)]
pub(crate) struct Recovered {
    pub table: Vec<Superblock>,
    /// Where each map page begins.
    pub directory: Vec<Option<readpath_flash::Ppn>>,
    /// Net references that map pages added, by superblock.
    pub written_refs: Vec<i64>,
    /// Newest sequence number and entry of each block whose data was found.
    pub newest: BTreeMap<Lpn, (u32, Entry)>,
    /// The final state of each block that changed, in order.
    pub changes: Vec<Stretch>,
    /// Trims that the journal names.
    pub trims: Vec<Trimmed>,
    /// Zones that it says were finished: first logical page, blocks that were written, sequence number.
    pub finished: Vec<(Lpn, u32, u32)>,
    /// Blocks of zones that lie in no whole program.
    pub rests: Vec<(Lpn, readpath_flash::Ppn)>,
    /// By map page, trimmed stretches that it does not include yet.
    pub stretches: Vec<u32>,
    /// By map page written after the checkpoint, the newest trim that it includes; 0 for the others.
    pub trims_written: Vec<u32>,
    /// Number of the newest write or trim.
    pub sequence: u32,
    /// Number of openings of superblocks and of map pages put together.
    pub ticks: u32,
    /// HPB generations up to this one may have been handed out.
    pub generations: u64,
    /// The checkpoint includes records up to this one.
    pub journal: Mark,
    /// Modes of what the device writes for itself.
    pub own_cells: OwnCells,
    /// Superblocks that were open, or were opened since, by mode.
    pub opened_in: [u32; CellMode::COUNT],
}

impl Recovered {
    /// Considers a slice whose spare area names `lpn`. At equal sequence numbers, as of a copy and its original, the
    /// later slice counts: the earlier one may have been erased.
    pub(super) fn consider(&mut self, lpn: Option<Lpn>, sequence: u32, entry: Entry) {
        let Some(lpn) = lpn else { return };
        self.sequence = self.sequence.max(sequence);
        let newest = self.newest.entry(lpn).or_insert((sequence, entry));
        if sequence >= newest.0 {
            *newest = (sequence, entry);
        }
    }

    /// Considers a map page that was written after the checkpoint, when `sequence` was the newest number.
    pub(super) fn written(&mut self, page: MapPage, sequence: u32) {
        self.sequence = self.sequence.max(sequence);
        self.trims_written[page.index()] = sequence;
    }

    /// A stream continues in another superblock.
    pub(super) fn open(&mut self, stream: Stream, superblock: SuperblockId, opened_at: u32) {
        // Each zone has a superblock of its own.
        for sb in self.table.iter_mut().filter(|_| stream != Stream::Zone) {
            if sb.state == State::Open(stream) {
                sb.state = State::Closed(stream);
                sb.closed_at = self.sequence;
            }
        }
        let sb = &mut self.table[superblock.index()];
        sb.state = State::Open(stream);
        sb.opened_at = opened_at;
        sb.mode = stream.mode(self.own_cells);
        self.opened_in[sb.mode.index()] += 1;
        sb.reads = 0;
        self.written_refs[superblock.index()] = 0;
        self.ticks = self.ticks.max(opened_at);
    }

    /// Applies the journal's `record`, its `number`-th.
    pub(super) fn apply(&mut self, number: Mark, record: &Record) {
        match *record {
            // Trims still have to be compared with data that was accepted before the checkpoint and programmed after
            // it; other old records have had their effect.
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
            Record::Finish { lpn, written, sequence } => {
                self.sequence = self.sequence.max(sequence);
                self.finished.push((lpn, written, sequence));
            }
            Record::Generations { up_to } => self.generations = self.generations.max(up_to),
        }
    }

    /// Combines what was found with the checkpoint and the map pages; `map` gives the contents of map pages.
    ///
    /// - Data found is newer than the checkpoint, because nothing was being programmed when that was put together;
    ///   unless it was trimmed later.
    /// - Trims found may be older than the checkpoint, which then includes them and whatever followed them.
    ///
    /// A trim stays a stretch: it takes a place for each map page in which it may have changed entries, as it did
    /// before. The entries of its blocks in map pages have not been read.
    pub(super) fn settle(&mut self, checkpoint: &Checkpoint, map: &Map) {
        let trims = newest_trims(std::mem::take(&mut self.trims));
        let mut later = trims.iter().peekable();
        self.newest.retain(|&lpn, (sequence, _)| {
            while later.next_if(|trim| trim.end <= lpn).is_some() {}
            !later.peek().is_some_and(|trim| trim.first <= lpn && trim.sequence > *sequence)
        });
        let still_there = checkpoint.changes().iter().filter(|change| {
            let lpn = change.first;
            let trim = trims.get(trims.partition_point(|trim| trim.end <= lpn));
            let is_gone = trim.is_some_and(|trim| trim.first <= lpn && trim.sequence > checkpoint.sequence);
            change.entry == Entry::UNMAPPED || !is_gone
        });
        let newest = std::mem::take(&mut self.newest);
        let newest = newest.into_iter().map(|(lpn, (_, entry))| Stretch::of(lpn, entry)).collect();
        let known = stretch::overlay(newest, still_there.copied());
        for &(page, stretches) in &checkpoint.trims {
            self.stretches[page.index()] = stretches;
        }
        // Adjacent trimmed stretches of one map page count as one.
        let mut counted_to = None;
        let mut gone = Vec::new();
        for trim in &trims {
            let mut first = trim.first;
            while first < trim.end {
                let page = map.page_of(first);
                let end = trim.end.min(map.end_of(page));
                let written = checkpoint.sequence.max(self.trims_written[page.index()]);
                if trim.sequence > written && self.directory[page.index()].is_some() {
                    // Blocks without newer data that are not known to be trimmed.
                    let before = gone.len();
                    gone.extend(stretch::gaps(&known, first, end));
                    let changes = gone.len() > before;
                    let goes_on = counted_to == Some((page, first));
                    self.stretches[page.index()] += u32::from(changes && !goes_on);
                    if changes || goes_on {
                        counted_to = Some((page, end));
                    }
                }
                first = end;
            }
        }
        let gone = gone.into_iter().map(|(first, end)| Stretch { first, end, entry: Entry::UNMAPPED });
        self.changes = stretch::in_order(known.into_iter().chain(gone).collect());
    }
}

/// The newest trim of each block: ordered stretches that do not overlap.
fn newest_trims(mut trims: Vec<Trimmed>) -> Vec<Trimmed> {
    trims.sort_unstable_by_key(|trim| (trim.first, trim.sequence));
    let mut newest: Vec<Trimmed> = Vec::new();
    // Sequence number and end of the trims that have begun.
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

    /// A moved slice has the sequence number of its original, whose superblock may be erased next.
    #[test]
    fn of_an_original_and_its_copy_the_copy_counts() {
        let mut found = Recovered::default();
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

    /// [`Recovered::settle`] block by block: the changed entries, and the places of trims.
    fn one_by_one(
        found: &Recovered,
        checkpoint: &Checkpoint,
        map: &Map,
    ) -> (BTreeMap<Lpn, Entry>, Vec<(MapPage, u32)>) {
        let trims = newest_trims(found.trims.clone());
        let trim_of = |lpn: Lpn| trims.iter().find(|trim| (trim.first..trim.end).contains(&lpn));
        let is_trimmed_after = |lpn, sequence| trim_of(lpn).is_some_and(|trim| trim.sequence > sequence);
        let mut known = BTreeMap::new();
        for change in checkpoint.changes() {
            for lpn in change.blocks() {
                if change.entry == Entry::UNMAPPED || !is_trimmed_after(lpn, checkpoint.sequence) {
                    known.insert(lpn, change.entry);
                }
            }
        }
        for (&lpn, &(sequence, entry)) in &found.newest {
            if !is_trimmed_after(lpn, sequence) {
                known.insert(lpn, entry);
            }
        }
        let mut places: BTreeMap<MapPage, u32> = checkpoint.trims.iter().copied().collect();
        let mut changes = known.clone();
        let mut counted_to = None;
        for trim in &trims {
            for page in map.all_pages() {
                let (start, stop) = (Lpn(page.0 * map.page_entries()), map.end_of(page));
                let (first, end) = (trim.first.max(start), trim.end.min(stop));
                let written = checkpoint.sequence.max(found.trims_written[page.index()]);
                if first >= end || trim.sequence <= written || found.directory[page.index()].is_none() {
                    continue;
                }
                let gone: Vec<Lpn> = first.run(end - first).filter(|lpn| !known.contains_key(lpn)).collect();
                changes.extend(gone.iter().map(|&lpn| (lpn, Entry::UNMAPPED)));
                let goes_on = counted_to == Some((page, first));
                *places.entry(page).or_default() += u32::from(!gone.is_empty() && !goes_on);
                if !gone.is_empty() || goes_on {
                    counted_to = Some((page, end));
                }
            }
        }
        places.retain(|_, places| *places > 0);
        (changes, places.into_iter().collect())
    }

    #[test]
    fn stretches_are_settled_as_blocks_one_by_one() {
        const PAGE: u32 = 8;
        const BLOCKS: u32 = 5 * PAGE;
        let rng = &mut Prng::new(2);
        for _ in 0..3000 {
            let map = crate::ftl::map::tests::map(BLOCKS, PAGE);
            let mut found = Recovered {
                stretches: vec![0; map.pages() as usize],
                directory: (0..map.pages()).map(|page| (rng.below(5) > 0).then_some(Ppn(page))).collect(),
                // Numbers up to 20 are part of the checkpoint; some of the trims were not in flash then.
                trims_written: (0..map.pages()).map(|_| rng.below(50) as u32).collect(),
                ..Recovered::default()
            };
            let mut changes = Vec::new();
            for lpn in Lpn(0).run(BLOCKS) {
                match rng.below(8) {
                    0 => stretch::push(&mut changes, Stretch::of(lpn, Entry::at(Ppn(100 + lpn.0)))),
                    1..=3 => stretch::push(&mut changes, Stretch::of(lpn, Entry::UNMAPPED)),
                    _ => {}
                }
                if rng.below(4) == 0 {
                    found.consider(Some(lpn), 15 + rng.below(35) as u32, Entry::at(Ppn(200 + lpn.0)));
                }
            }
            let checkpoint = Checkpoint {
                sequence: 20,
                oldest: 15,
                changes: Some(changes),
                trims: map.all_pages().map(|page| (page, rng.below(3) as u32)).collect(),
                ..Checkpoint::default()
            };
            for i in 0..rng.below(6) as u32 {
                let first = Lpn(rng.below(u64::from(BLOCKS)) as u32);
                let end = first + 1 + rng.below(u64::from(BLOCKS - first.0)) as u32;
                found.trims.push(Trimmed { first, end, sequence: 15 + i * 6 + rng.below(6) as u32 });
            }
            let expected = one_by_one(&found, &checkpoint, &map);
            found.settle(&checkpoint, &map);
            let known = found.changes.iter().flat_map(|change| change.blocks().map(|lpn| (lpn, change.entry)));
            let places = map.all_pages().zip(found.stretches.iter().copied()).filter(|&(_, places)| places > 0);
            assert_eq!((known.collect(), places.collect()), expected);
            assert!(found.changes.is_sorted_by(|a, b| a.end <= b.first));
        }
    }

    #[test]
    fn the_newest_trim_of_each_block() {
        let rng = &mut Prng::new(1);
        for round in 0..2000 {
            let trims: Vec<Trimmed> = (0..rng.below(12) as u32)
                .map(|i| {
                    let first = Lpn(rng.below(40) as u32);
                    // Numbers in any order, each once.
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
