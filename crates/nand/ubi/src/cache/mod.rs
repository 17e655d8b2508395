// SPDX-License-Identifier: MIT OR Apache-2.0
//! The read cache at `ubi_eba_read_leb`: pages of raw NAND in host memory, found by erase block and page.
//!
//! ```text
//!  read(peb, offset, bytes) ─▶ PageCache ─▶ Policy::touch ─▶ Hit    copy out of the line
//!                              (reader.rs)                ─▶ Fill   read the page into the line, then copy
//!                                   │                     ─▶ Bypass read just these bytes
//!                                   ├──────▶ Policy::peek  ─▶ a line that serves what is given none
//!                                   └─▶ Media: reads the flash and holds the caller's buffer
//! ```
//!
//! A [`Policy`] decides which pages have a line; it never sees data. A [`Store`] holds the lines' bytes: [`NoData`]
//! for replay, [`Lines`] for real reads. A [`PageCache`] joins the two and keeps the rules of a read: which reads may
//! be served, how they are split, and what happens when a fill fails. The key (erase block, page) survives moves of
//! wear levelling: the content of a page is valid until its erase block is erased.
//!
//! A [`ReadCache`] is a [`PageCache`], the one page of the NAND core ([`NandPage`]) or none ([`NoCache`]). A device
//! and a replay use it alike.
//!
//! Every decision rests on what UBI has in memory at that layer: place and length of the read, its cost, and the
//! past. [`Policy::metadata_bytes`] counts what a policy keeps for that.

mod adaptive;
mod arc;
mod clock;
mod counters;
mod direct;
mod frames;
mod ghosts;
mod index;
mod lru;
mod nand_page;
mod opt;
mod reader;
mod second_touch;
mod seen;
mod set_assoc;
mod store;
mod two_q;

pub use adaptive::Adaptive;
pub use arc::Arc;
pub use clock::Clock;
pub use counters::Counters;
pub use direct::Direct;
pub use lru::Lru;
pub use nand_page::NandPage;
pub use opt::{Future, Opt, TooLarge};
pub use reader::{BULK_PAGES, Media, NoCache, PageCache, ReadCache, Rules};
pub use second_touch::SecondTouch;
pub use set_assoc::SetAssoc;
pub use store::{Lines, NoData, Store};
pub use two_q::TwoQ;

/// A page of flash: erase block and number of the page in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Page(u64);

impl Page {
    /// Page `page` of erase block `peb`.
    #[inline]
    pub fn new(peb: u32, page: u32) -> Page {
        Page(u64::from(peb) << 32 | u64::from(page))
    }

    /// The erase block.
    #[inline]
    pub fn peb(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Number of the page in it.
    #[inline]
    pub fn number(self) -> u32 {
        self.0 as u32
    }

    /// Hash of the page: its high bits spread neighbouring erase blocks as evenly as neighbouring pages.
    ///
    /// There are two factors, because one over both numbers together would leave erase blocks just its low half,
    /// which is near 2^31. They are 2^64 over the real root of x^3 = x + 1, and over its square: multiples of neither
    /// cluster, alone or together.
    #[inline]
    fn hash(self) -> u64 {
        const PEB: u64 = 0xC13F_A9A9_02A6_328F;
        const NUMBER: u64 = 0x91E1_0DA5_C79E_7B1D;
        u64::from(self.peb()).wrapping_mul(PEB).wrapping_add(u64::from(self.number()).wrapping_mul(NUMBER))
    }
}

/// One page of a read, as a policy sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touch {
    /// The page.
    pub page: Page,
    /// First byte in it.
    pub offset: u32,
    /// Bytes wanted of it, at least 1.
    pub bytes: u32,
    /// What reading just these bytes from flash would cost, in ns, at most 2^32 - 1.
    pub part_ns: u32,
}

/// A policy's answer to a touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The page is in this line.
    Hit(u32),
    /// The page has been given this line, which is to be filled; its old page is evicted.
    Fill(u32),
    /// The page is not in the cache and gets no line.
    Bypass,
}

/// Decides which pages have a line. Lines are numbered from 0; a policy never uses one at or beyond its initial
/// number.
pub trait Policy {
    /// Decides about one page of a read.
    fn touch(&mut self, touch: &Touch) -> Answer;

    /// The line of a page for a part of a read that uses an existing line, but neither fills one nor counts as a use.
    fn peek(&mut self, touch: &Touch) -> Option<u32> {
        self.line_of(touch.page)
    }

    /// The line of the last [`Answer::Fill`] could not be filled: it holds nothing.
    fn abandon(&mut self, line: u32);

    /// Forgets `pages` pages from `first` on, all in one erase block; returns how many lines that emptied.
    fn invalidate(&mut self, first: Page, pages: u32) -> u32;

    /// Changes how many lines may be used, to at most the initial number; 0 is valid. Pages beyond are evicted, and
    /// `freed` gets every line whose memory is no longer needed.
    fn resize(&mut self, lines: u32, freed: &mut dyn FnMut(u32));

    /// Limits memory of lines and tables together to `bytes`, with at most the initial `most` lines. Nearly all
    /// policies keep tables for `most` lines, however few of them may be used.
    fn fit(&mut self, bytes: u64, line_bytes: u32, most: u32, freed: &mut dyn FnMut(u32)) {
        let lines = bytes.saturating_sub(self.metadata_bytes()) / u64::from(line_bytes);
        self.resize(u32::try_from(lines).unwrap_or(most).min(most), freed);
    }

    /// Lines that hold a page.
    fn resident(&self) -> u32;

    /// The line of a page; changes nothing.
    fn line_of(&self, page: Page) -> Option<u32>;

    /// Memory beside the lines' bytes.
    fn metadata_bytes(&self) -> u64;
}
