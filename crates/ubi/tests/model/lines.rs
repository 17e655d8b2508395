// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cache of a few pages, each in the line that its number says; and one that does not listen.

use readpath_ubi::device::{Media, ReadCache};

const LINES: usize = 61;

/// A cache that counts reads that were served without flash.
pub trait Counted: ReadCache {
    fn hits(&self) -> u64;
}

impl Counted for Lines {
    fn hits(&self) -> u64 {
        self.hits
    }
}

pub struct Lines {
    page_bytes: u32,
    tags: [Option<(u32, u32)>; LINES],
    bytes: Vec<u8>,
    listens: bool,
    hits: u64,
}

fn line(peb: u32, page: u32) -> usize {
    (peb as usize * 8 + page as usize) % LINES
}

impl Lines {
    pub fn new(page_bytes: u32) -> Self {
        let bytes = vec![0; LINES * page_bytes as usize];
        Lines { page_bytes, tags: [None; LINES], bytes, listens: true, hits: 0 }
    }

    pub fn forgetful(page_bytes: u32) -> Self {
        Lines { listens: false, ..Lines::new(page_bytes) }
    }

    fn drop_if(&mut self, dropped: impl Fn(u32, u32) -> bool) {
        if self.listens {
            self.tags.iter_mut().filter(|t| t.is_some_and(|(peb, page)| dropped(peb, page))).for_each(|t| *t = None);
        }
    }
}

impl ReadCache for Lines {
    fn read<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error> {
        let (page, from) = (offset / self.page_bytes, offset % self.page_bytes);
        if bytes >= self.page_bytes || from + bytes > self.page_bytes {
            return media.direct(peb, offset, bytes);
        }
        let line = line(peb, page);
        let room = &mut self.bytes[line * self.page_bytes as usize..][..self.page_bytes as usize];
        if self.tags[line] == Some((peb, page)) {
            self.hits += 1;
        } else {
            self.tags[line] = None;
            if media.fill(peb, page, room).is_err() {
                return media.direct(peb, offset, bytes);
            }
            self.tags[line] = Some((peb, page));
        }
        media.copy(room, from, offset, bytes);
        Ok(())
    }

    fn written(&mut self, peb: u32, offset: u32, bytes: u32) {
        let (first, last) = (offset / self.page_bytes, (offset + bytes - 1) / self.page_bytes);
        self.drop_if(|p, page| p == peb && (first..=last).contains(&page));
    }

    fn erased(&mut self, peb: u32) {
        self.drop_if(|p, _| p == peb);
    }
}

impl<P: readpath_ubi::cache::Policy> Counted for readpath_ubi::cache::ReadCache<P, readpath_ubi::cache::Lines> {
    fn hits(&self) -> u64 {
        self.counters().hits
    }
}
