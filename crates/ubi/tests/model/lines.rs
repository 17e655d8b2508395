// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cache of a few pages, each in the line that its number says; and one that does not listen.

use readpath_ubi::ReadCache;
use std::ops::Range;

const LINES: usize = 61;

pub struct Lines {
    page_bytes: usize,
    tags: [Option<(u32, u32)>; LINES],
    bytes: Vec<u8>,
    listens: bool,
    pub hits: u64,
}

fn line(peb: u32, page: u32) -> usize {
    (peb as usize * 8 + page as usize) % LINES
}

impl Lines {
    pub fn new(page_bytes: u32) -> Self {
        let page_bytes = page_bytes as usize;
        Lines { page_bytes, tags: [None; LINES], bytes: vec![0; LINES * page_bytes], listens: true, hits: 0 }
    }

    pub fn forgetful(page_bytes: u32) -> Self {
        Lines { listens: false, ..Lines::new(page_bytes) }
    }
}

impl ReadCache for Lines {
    fn lookup(&mut self, peb: u32, page: u32) -> Option<&[u8]> {
        let line = line(peb, page);
        let hit = self.tags[line] == Some((peb, page));
        self.hits += u64::from(hit);
        hit.then(|| &self.bytes[line * self.page_bytes..][..self.page_bytes])
    }

    fn room(&mut self, peb: u32, page: u32) -> Option<&mut [u8]> {
        let line = line(peb, page);
        self.tags[line] = None;
        Some(&mut self.bytes[line * self.page_bytes..][..self.page_bytes])
    }

    fn filled(&mut self, peb: u32, page: u32) {
        self.tags[line(peb, page)] = Some((peb, page));
    }

    fn invalidate(&mut self, peb: u32, pages: Range<u32>) {
        if self.listens {
            self.tags
                .iter_mut()
                .filter(|t| t.is_some_and(|(p, n)| p == peb && pages.contains(&n)))
                .for_each(|t| *t = None);
        }
    }
}
