// SPDX-License-Identifier: MIT OR Apache-2.0
//! Map pages that a device would load for reads, one at a time, with runs of the map and reading ahead: a model without
//! time, for data that was written in order. What is loaded ahead is there at once, and a run ends where data ends.

use readpath_device::DeviceConfig;
use readpath_kit::IndexLru;

/// Runs of a set, and bytes of each, as the device has them.
const WAYS: usize = 8;
const RUN_BYTES: u32 = 12;

/// The map cache of a device.
pub(crate) struct MapModel {
    page_entries: u32,
    /// Map pages in SRAM, and how many may be.
    pages: IndexLru,
    frames: u32,
    ahead: u32,
    /// First block of the runs of each set, the most recently used first, and the block behind the last.
    sets: Vec<Vec<(u32, u32)>>,
    /// Blocks with data, ascending: the first of each range, and the block behind its last.
    data: Vec<(u32, u32)>,
    /// Map pages that reads missed.
    pub(crate) loads: u64,
}

impl MapModel {
    /// Whether a device has runs of the map or reads ahead in it.
    pub(crate) fn is_for(device: &DeviceConfig) -> bool {
        device.map_runs_bytes > 0 || device.map_read_ahead > 0
    }

    /// The map cache of `device`, with `data` in ascending ranges of a first block and how many.
    pub(crate) fn new(device: &DeviceConfig, data: &[(u32, u32)]) -> Self {
        let sets = device.map_runs_bytes / (RUN_BYTES * WAYS as u32);
        MapModel {
            page_entries: device.map_page_entries(),
            pages: IndexLru::new(device.map_pages() as usize),
            frames: device.map_cache_bytes / device.map_page_bytes,
            ahead: device.map_read_ahead,
            sets: vec![Vec::with_capacity(WAYS + 1); sets as usize],
            data: data.iter().map(|&(first, blocks)| (first, first + blocks)).collect(),
            loads: 0,
        }
    }

    /// A read of these blocks, all of them with data.
    pub(crate) fn read(&mut self, first: u32, blocks: u32) {
        let end = first + blocks;
        let mut at = first;
        while at < end {
            self.look_up(at);
            at = (at / self.page_entries + 1) * self.page_entries;
        }
    }

    fn look_up(&mut self, block: u32) {
        let page = block / self.page_entries;
        let set = (!self.sets.is_empty()).then(|| page as usize % self.sets.len());
        if let Some(set) = set.map(|set| &mut self.sets[set])
            && let Some(at) = set.iter().position(|(first, end)| (*first..*end).contains(&block))
        {
            return set[..=at].rotate_right(1);
        }
        if self.pages.contains(page) {
            return self.pages.touch(page);
        }
        self.loads += 1;
        self.load(page);
        if let Some(set) = set {
            let run = self.run_around(block);
            self.sets[set].insert(0, run);
            self.sets[set].truncate(WAYS);
        }
        if page > 0 && self.pages.contains(page - 1) {
            for next in page + 1..=page + self.ahead {
                if self.has_data(next) && !self.pages.contains(next) {
                    self.load(next);
                }
            }
        }
    }

    fn load(&mut self, page: u32) {
        if self.pages.len() == self.frames {
            self.pages.pop_front();
        }
        self.pages.push_back(page);
    }

    /// The longest run around a block in its map page.
    fn run_around(&self, block: u32) -> (u32, u32) {
        let first = block / self.page_entries * self.page_entries;
        let range = self.data.partition_point(|range| range.0 <= block);
        let (from, to) = self.data[range - 1];
        (from.max(first), to.min(first + self.page_entries))
    }

    fn has_data(&self, page: u32) -> bool {
        let behind = (page + 1) * self.page_entries;
        let range = self.data.partition_point(|range| range.0 < behind);
        range > 0 && self.data[range - 1].1 > page * self.page_entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_config::DevicePreset;

    fn device(keys: &[(&str, &str)]) -> DevicePreset {
        let never = |path: &std::path::Path| panic!("{} is not built in", path.display());
        let preset = readpath_config::device::load("ufs31-128g", &never).expect("a preset");
        let keys = keys.iter().map(|(key, value)| readpath_config::Override::new(key, value, "").expect("a value"));
        preset.with_overrides(&keys.collect::<Vec<_>>()).expect("a device")
    }

    fn loads(keys: &[(&str, &str)], reads: &[u32]) -> u64 {
        let device = device(keys).device;
        let entries = device.map_page_entries();
        // Pages 0 to 9 have data but for the end of page 3; pages 20 and 21 have data again.
        let mut model =
            MapModel::new(&device, &[(0, 4 * entries - 9), (4 * entries, 6 * entries), (20 * entries, 2 * entries)]);
        reads.iter().for_each(|page| model.read(page * entries + 5, 1));
        model.loads
    }

    #[test]
    fn runs_and_pages_are_found_as_the_keys_say() {
        let page = |kib: &str| [("map_cache.size_kib", kib.to_owned())];
        let of = |kib: &str, more: &[(&str, &str)], reads: &[u32]| {
            let size = page(kib);
            let keys: Vec<_> = size.iter().map(|(k, v)| (*k, v.as_str())).chain(more.iter().copied()).collect();
            loads(&keys, reads)
        };
        let (one, two, six) = ("16", "32", "96");
        assert_eq!(of(one, &[], &[0, 0, 1, 0, 1]), 4);
        assert_eq!(of(two, &[], &[0, 1, 0, 1, 2, 0]), 4, "page 0 is the least recently used");
        let runs = [("map_cache.runs_kib", "1")];
        assert_eq!(of(one, &runs, &[0, 1, 0, 1, 2, 0, 20, 1]), 4);
        let ahead = [("map_cache.read_ahead", "2")];
        assert_eq!(of(six, &ahead, &[0, 1, 2, 3, 4, 5, 6]), 3, "0, 1 and 4");
        assert_eq!(of(six, &ahead, &[0, 2, 3]), 3, "nothing precedes page 2");
        assert_eq!(of(six, &ahead, &[8, 9, 8, 9, 20, 21]), 4, "nothing follows on data that ends");
    }
}
