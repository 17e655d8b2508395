// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries that came ahead of their HPB READ (HPB WRITE BUFFER 02h), in a fixed number of places, until that command
//! comes or they are displaced. The entries are not interpreted.

use crate::config::MOST_ENTRIES;
use readpath_proto::typed::HpbEntry;

pub(super) struct PreRequests {
    places: Vec<Place>,
    /// Number of pre-requests stored so far.
    now: u32,
}

struct Place {
    lun: u8,
    /// 0 if the place is free.
    read_id: u8,
    lba: u32,
    stored: u32,
    entries: Vec<u8>,
}

impl PreRequests {
    pub(super) fn new(places: u8) -> Self {
        let bytes = usize::from(MOST_ENTRIES) * HpbEntry::BYTES;
        let free = || Place { lun: 0, read_id: 0, lba: 0, stored: 0, entries: Vec::with_capacity(bytes) };
        PreRequests { places: (0..places).map(|_| free()).collect(), now: 0 }
    }

    /// Stores `entries` of the blocks from `lba` on: in place of those with the same READ ID, in a free place, or in
    /// that of the oldest.
    pub(super) fn store(&mut self, lun: u8, read_id: u8, lba: u32, entries: &[u8]) {
        self.now = self.now.wrapping_add(1);
        let now = self.now;
        let key = |p: &&mut Place| match p.read_id {
            id if id == read_id && p.lun == lun => (0, 0),
            0 => (1, 0),
            _ => (2, u32::MAX - now.wrapping_sub(p.stored)),
        };
        let Some(place) = self.places.iter_mut().min_by_key(key) else { return };
        (place.lun, place.read_id, place.lba, place.stored) = (lun, read_id, lba, now);
        place.entries.clear();
        place.entries.extend_from_slice(entries);
    }

    /// Takes the entries stored for this HPB READ, if any, and frees their place.
    pub(super) fn take(&mut self, lun: u8, read_id: u8, lba: u32, blocks: u32, into: &mut Vec<u8>) -> bool {
        let bytes = blocks as usize * HpbEntry::BYTES;
        let fits = |p: &&mut Place| {
            read_id != 0 && (p.lun, p.read_id, p.lba) == (lun, read_id, lba) && p.entries.len() >= bytes
        };
        let Some(place) = self.places.iter_mut().find(fits) else { return false };
        place.read_id = 0;
        into.clear();
        into.extend_from_slice(&place.entries[..bytes]);
        true
    }

    pub(super) fn clear(&mut self) {
        self.places.iter_mut().for_each(|p| p.read_id = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(p: &mut PreRequests, lun: u8, read_id: u8, lba: u32, blocks: u32) -> Option<Vec<u8>> {
        let mut into = vec![9];
        p.take(lun, read_id, lba, blocks, &mut into).then_some(into)
    }

    #[test]
    fn found_by_unit_id_and_block_and_given_once() {
        let mut p = PreRequests::new(3);
        p.store(0, 5, 100, &[1; 32]);
        for (lun, id, lba, blocks) in [(1, 5, 100, 4), (0, 6, 100, 4), (0, 5, 101, 4), (0, 5, 100, 5), (0, 0, 100, 4)] {
            assert_eq!(taken(&mut p, lun, id, lba, blocks), None, "{lun} {id} {lba} {blocks}");
        }
        assert_eq!(taken(&mut p, 0, 5, 100, 3), Some(vec![1; 24]), "a shorter read takes the first of them");
        assert_eq!(taken(&mut p, 0, 5, 100, 3), None, "once");
        assert_eq!(taken(&mut p, 0, 0, 100, 3), None, "a free place is not one of READ ID 0");
    }

    #[test]
    fn the_same_id_displaces_itself_another_the_oldest() {
        let mut p = PreRequests::new(2);
        p.store(0, 1, 10, &[1; 8]);
        p.store(0, 2, 20, &[2; 8]);
        p.store(0, 1, 30, &[3; 8]);
        assert_eq!(taken(&mut p, 0, 1, 10, 1), None);
        p.store(1, 1, 40, &[4; 8]);
        assert_eq!(taken(&mut p, 0, 2, 20, 1), None, "it was the oldest");
        assert_eq!(taken(&mut p, 0, 1, 30, 1), Some(vec![3; 8]));
        p.store(0, 3, 50, &[5; 8]);
        assert_eq!(taken(&mut p, 1, 1, 40, 1), Some(vec![4; 8]), "a free place is taken first");
        p.clear();
        assert_eq!(taken(&mut p, 0, 3, 50, 1), None);
    }
}
