// SPDX-License-Identifier: MIT OR Apache-2.0
//! The copies of map pages in host memory. Their index is SRAM of the device; their contents are kept apart from what
//! the device knows, so that an outdated or tampered copy does the same harm as in a real device. It knows no times.

use crate::config::{DeviceConfig, HostMap, MAP_ENTRY_BYTES};
use crate::ids::{Lpn, MapPage};
use readpath_flash::Ppn;
use readpath_kit::IndexLru;

const NONE: u32 = u32::MAX;

/// A frame of host memory, and which of its successive copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub frame: u32,
    /// Number of the copy, which changes with every write to the frame.
    pub copy: u32,
}

/// Index and contents of host memory.
pub(crate) struct Copies {
    frame_of_page: Vec<u32>,
    page_of_frame: Vec<u32>,
    copy_of_frame: Vec<u32>,
    lru: IndexLru,
    free: Vec<u32>,
    contents: Option<Contents>,
}

/// Contents of host memory. Kept only if data moves; otherwise only presence matters, because an indexed copy is
/// never outdated.
struct Contents {
    entries: Vec<u32>,
    tags: Vec<u64>,
    page_entries: u32,
    line_entries: u32,
    key: u64,
}

impl Copies {
    /// Bytes of SRAM for each frame: page and number of its copy, and two links.
    pub(crate) const FRAME_SRAM_BYTES: u64 = 2 + 4 + 4;
    /// Bytes of SRAM for each map page: its frame.
    pub(crate) const PAGE_SRAM_BYTES: u64 = 2;

    /// Host memory of `frames` frames without copies; with contents if they are looked at.
    pub(crate) fn new(config: &DeviceConfig, frames: u32, looks_at_contents: bool) -> Self {
        let pages = if frames > 0 { config.map_pages() } else { 0 };
        let contents = |host: &HostMap| {
            let page_entries = config.map_page_entries();
            Contents {
                entries: vec![NONE; (frames * page_entries) as usize],
                tags: vec![0; if host.check.is_some() { (frames * config.host_lines(host)) as usize } else { 0 }],
                page_entries,
                line_entries: host.line_bytes / MAP_ENTRY_BYTES,
                key: config.entry_key[0] ^ config.entry_key[1].rotate_left(32),
            }
        };
        Copies::empty(frames, pages, config.host_map().filter(|_| looks_at_contents).map(contents))
    }

    fn empty(frames: u32, pages: u32, contents: Option<Contents>) -> Self {
        Copies {
            frame_of_page: vec![NONE; pages as usize],
            page_of_frame: vec![NONE; frames as usize],
            copy_of_frame: vec![0; frames as usize],
            lru: IndexLru::new(frames as usize),
            free: (0..frames).rev().collect(),
            contents,
        }
    }

    /// Frames of host memory.
    pub(crate) fn frames(&self) -> u32 {
        self.page_of_frame.len() as u32
    }

    /// Where `page` is held, if it is.
    #[inline]
    pub(crate) fn held(&self, page: MapPage) -> Option<Held> {
        let frame = *self.frame_of_page.get(page.index())?;
        (frame != NONE).then(|| Held { frame, copy: self.copy_of_frame[frame as usize] })
    }

    /// Whether `page` is held; a held page becomes the most recently used.
    #[inline]
    pub(crate) fn touch(&mut self, page: MapPage) -> bool {
        let held = self.held(page);
        if let Some(Held { frame, .. }) = held {
            self.lru.touch(frame);
        }
        held.is_some()
    }

    /// Whether the copy `held` has not been replaced.
    pub(crate) fn is_there(&self, held: Held) -> bool {
        self.page_of_frame[held.frame as usize] != NONE && self.copy_of_frame[held.frame as usize] == held.copy
    }

    /// Writes `page` to a frame: its own, a free one, or that of the least recently used page. `place` gives the
    /// entry of each logical page.
    pub(crate) fn write(&mut self, page: MapPage, place: impl Fn(Lpn) -> Option<Ppn>) {
        let frame = match self.held(page) {
            Some(held) => held.frame,
            None => {
                let Some(frame) = self.free.pop().or_else(|| self.lru.pop_front()) else { return };
                let old = std::mem::replace(&mut self.page_of_frame[frame as usize], page.0);
                if old != NONE {
                    self.frame_of_page[old as usize] = NONE;
                }
                self.frame_of_page[page.index()] = frame;
                self.lru.push_back(frame);
                frame
            }
        };
        let copy = &mut self.copy_of_frame[frame as usize];
        *copy = copy.wrapping_add(1);
        if let Some(contents) = &mut self.contents {
            contents.write(Held { frame, copy: *copy }, page, place);
        }
    }

    /// Drops the copy of `page`.
    pub(crate) fn drop_page(&mut self, page: MapPage) {
        if let Some(Held { frame, .. }) = self.held(page) {
            self.frame_of_page[page.index()] = NONE;
            self.page_of_frame[frame as usize] = NONE;
            self.lru.remove(frame);
            self.free.push(frame);
        }
    }

    /// Drops all copies: host memory is withdrawn, or its contents are lost.
    pub(crate) fn drop_all(&mut self) {
        for page in 0..self.frame_of_page.len() as u32 {
            self.drop_page(MapPage(page));
        }
    }

    /// The entry of `lpn` in the copy `held`; `None` if contents are not looked at.
    pub(crate) fn place(&self, held: Held, lpn: Lpn) -> Option<Option<Ppn>> {
        self.contents.as_ref().map(|c| c.place_of(held.frame, lpn))
    }

    /// Whether the lines of `count` entries from `lpn` on are unchanged, as far as tags show, and every address
    /// exists in an array of `slices`.
    pub(crate) fn is_sound(&self, held: Held, lpn: Lpn, count: u32, slices: u32) -> bool {
        let Some(c) = &self.contents else { return true };
        let exists = |lpn: Lpn| c.place_of(held.frame, lpn).is_none_or(|ppn| ppn.0 < slices);
        let lines = lpn.0 / c.line_entries..=(lpn.0 + count - 1) / c.line_entries;
        (c.tags.is_empty() || lines.into_iter().all(|line| c.is_authentic(held, line))) && lpn.run(count).all(exists)
    }

    /// Simulates a host fault that alters copies: for each logical page, `change` gets the page and its address and
    /// returns another address.
    pub(crate) fn tamper(&mut self, mut change: impl FnMut(u32, u32) -> u32) {
        let Some(c) = &mut self.contents else { return };
        for (frame, &page) in self.page_of_frame.iter().enumerate().filter(|(_, page)| **page != NONE) {
            for i in 0..c.page_entries {
                let entry = &mut c.entries[frame * c.page_entries as usize + i as usize];
                if *entry != NONE {
                    *entry = change(page * c.page_entries + i, *entry);
                }
            }
        }
    }
}

impl Contents {
    fn place(&self, frame: u32, lpn: Lpn) -> usize {
        (frame * self.page_entries + lpn.0 % self.page_entries) as usize
    }

    fn place_of(&self, frame: u32, lpn: Lpn) -> Option<Ppn> {
        let ppn = self.entries[self.place(frame, lpn)];
        (ppn != NONE).then_some(Ppn(ppn))
    }

    fn write(&mut self, held: Held, page: MapPage, place_of: impl Fn(Lpn) -> Option<Ppn>) {
        let first = page.0 * self.page_entries;
        for lpn in Lpn(first).run(self.page_entries) {
            let place = self.place(held.frame, lpn);
            self.entries[place] = place_of(lpn).map_or(NONE, |ppn| ppn.0);
        }
        if !self.tags.is_empty() {
            for line in first / self.line_entries..(first + self.page_entries) / self.line_entries {
                let place = self.place(held.frame, Lpn(line * self.line_entries)) / self.line_entries as usize;
                self.tags[place] = self.tag(held, line);
            }
        }
    }

    fn is_authentic(&self, held: Held, line: u32) -> bool {
        let place = self.place(held.frame, Lpn(line * self.line_entries)) / self.line_entries as usize;
        self.tags[place] == self.tag(held, line)
    }

    /// Binds a line to its place, its copy and the key. It stands for an authentication code: it detects changes made
    /// without the key, which suffices here.
    fn tag(&self, held: Held, line: u32) -> u64 {
        let mix = |h: u64, word: u64| {
            let x = (h ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ (x >> 32)
        };
        let first = line * self.line_entries;
        let start = mix(mix(self.key, u64::from(line)), u64::from(held.copy));
        Lpn(first)
            .run(self.line_entries)
            .fold(start, |h, lpn| mix(h, self.place_of(held.frame, lpn).map_or(u64::MAX, |ppn| u64::from(ppn.0))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(frames: u32, pages: u32, tags: bool) -> Copies {
        let contents = Contents {
            entries: vec![NONE; (frames * 16) as usize],
            tags: vec![0; if tags { (frames * 4) as usize } else { 0 }],
            page_entries: 16,
            line_entries: 4,
            key: 7,
        };
        Copies::empty(frames, pages, Some(contents))
    }

    #[test]
    fn the_least_recently_used_page_makes_room() {
        let mut c = copies(2, 9, false);
        c.write(MapPage(3), |lpn| Some(Ppn(lpn.0)));
        c.write(MapPage(4), |lpn| Some(Ppn(lpn.0)));
        let (three, four) = (c.held(MapPage(3)).unwrap(), c.held(MapPage(4)).unwrap());
        assert!(c.touch(MapPage(3)) && !c.touch(MapPage(5)));
        c.write(MapPage(5), |lpn| Some(Ppn(lpn.0 + 1)));
        assert_eq!((c.held(MapPage(4)), c.held(MapPage(3))), (None, Some(three)));
        assert!(!c.is_there(four), "the frame of page 4 has another page");
        let five = c.held(MapPage(5)).unwrap();
        assert_eq!(c.place(five, Lpn(5 * 16 + 2)), Some(Some(Ppn(5 * 16 + 3))));
        c.write(MapPage(3), |_| None);
        assert!(
            !c.is_there(three) && c.held(MapPage(3)).unwrap().frame == three.frame,
            "a new copy of the page makes its old place stale"
        );
        c.drop_all();
        assert!((0..9).all(|page| c.held(MapPage(page)).is_none()));
        c.write(MapPage(8), |_| None);
        c.write(MapPage(7), |_| None);
        assert!(c.held(MapPage(8)).is_some() && c.held(MapPage(7)).is_some(), "every frame is free again");
    }

    #[test]
    fn tags_tell_what_was_changed_and_bounds_what_cannot_be() {
        for tags in [false, true] {
            let mut c = copies(2, 4, tags);
            c.write(MapPage(1), |lpn| Some(Ppn(100 + lpn.0)));
            let held = c.held(MapPage(1)).unwrap();
            assert!(c.is_sound(held, Lpn(16), 16, 1000));
            c.tamper(|lpn, ppn| if lpn == 21 { ppn + 1 } else { ppn });
            assert_eq!(c.is_sound(held, Lpn(20), 1, 1000), !tags, "block 21 shares the line of block 20");
            assert!(c.is_sound(held, Lpn(24), 8, 1000), "other lines are as they were");
            c.tamper(|_, ppn| ppn * 100);
            assert!(!c.is_sound(held, Lpn(30), 1, 1000), "there is no such address");
        }
    }
}
