// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cache of one page that is as simple as can be: tests hold the others against it.

use readpath_ubi::cache::{Media, Page, ReadCache};

/// A cache of the page that was read last. It is asked for reads that are shorter than a page and lie within one.
#[derive(Clone, Debug)]
pub struct OnePage {
    page: Option<(u32, u32)>,
    bytes: Vec<u8>,
    /// Reads that were served without flash.
    pub hits: u64,
    /// Reads that were not.
    pub misses: u64,
    /// Reads for which it was not asked.
    pub not_asked: u64,
}

impl OnePage {
    /// For pages of `page_bytes` bytes.
    pub fn new(page_bytes: u32) -> Self {
        OnePage { page: None, bytes: vec![0; page_bytes as usize], hits: 0, misses: 0, not_asked: 0 }
    }
}

impl ReadCache for OnePage {
    fn read<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error> {
        let page_bytes = self.bytes.len() as u32;
        let (page, from) = (offset / page_bytes, offset % page_bytes);
        if bytes >= page_bytes || from + bytes > page_bytes {
            self.not_asked += 1;
            return media.direct(peb, offset, bytes);
        }
        if self.page == Some((peb, page)) {
            self.hits += 1;
        } else {
            self.misses += 1;
            self.page = None;
            if media.fill(Page::new(peb, page), &mut self.bytes).is_err() {
                // Another part of the page may be at fault: the request itself decides.
                return media.direct(peb, offset, bytes);
            }
            self.page = Some((peb, page));
        }
        media.copy(&self.bytes, from, offset, bytes);
        Ok(())
    }

    fn written(&mut self, peb: u32, offset: u32, bytes: u32) {
        let page_bytes = self.bytes.len() as u32;
        let pages = offset / page_bytes..(offset + bytes).div_ceil(page_bytes);
        if self.page.is_some_and(|(p, page)| p == peb && pages.contains(&page)) {
            self.page = None;
        }
    }

    fn erased(&mut self, peb: u32) {
        if self.page.is_some_and(|(p, _)| p == peb) {
            self.page = None;
        }
    }
}
