// SPDX-License-Identifier: MIT OR Apache-2.0
//! What UBI asks of a read cache: it stands between the table of logical blocks and the flash, and knows pages by erase
//! block. Two simple caches; better ones live elsewhere.

/// Reads flash for a cache, and holds the buffer of whoever reads. Positions are in bytes of an erase block.
pub trait Media {
    /// Why flash could not be read.
    type Error;

    /// Reads page `page` of a block into a line. Corrected flips are no error.
    fn fill(&mut self, peb: u32, page: u32, line: &mut [u8]) -> Result<(), Self::Error>;

    /// Reads just these bytes into the caller's buffer. They may span pages.
    fn direct(&mut self, peb: u32, offset: u32, bytes: u32) -> Result<(), Self::Error>;

    /// Copies bytes of a line into the caller's buffer: `bytes` from `from` in `line`, which are those at `offset` in the
    /// block.
    fn copy(&mut self, line: &[u8], from: u32, offset: u32, bytes: u32);
}

/// A cache of pages of flash. UBI tells it of every change of flash, so what it holds is what flash holds.
pub trait ReadCache {
    /// One read of a logical block: `bytes` bytes, at least 1, at `offset` of erase block `peb`, not beyond its end. The
    /// error is that of the flash for just these bytes; a page that cannot be read to be kept is no error.
    fn read<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error>;

    /// Bytes of an erase block are being written.
    fn written(&mut self, peb: u32, offset: u32, bytes: u32);

    /// An erase block is being erased.
    fn erased(&mut self, peb: u32);
}

/// No cache: every read goes to flash as it is.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoCache;

impl ReadCache for NoCache {
    #[inline]
    fn read<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error> {
        media.direct(peb, offset, bytes)
    }

    fn written(&mut self, _peb: u32, _offset: u32, _bytes: u32) {}

    fn erased(&mut self, _peb: u32) {}
}

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
            if media.fill(peb, page, &mut self.bytes).is_err() {
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
