// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a prepared trace consists of: requests of 16 bytes, the account of what was changed, exact speeds.

use crate::{Io, IoKind};
use fixedbitset::FixedBitSet;
use readpath_kit::Ns;
use std::fmt;

/// A change of speed as a fraction, so that times stay exact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Speed {
    times: u32,
    over: u32,
}

impl Speed {
    /// The recorded speed.
    pub const RECORDED: Speed = Speed { times: 1, over: 1 };

    /// `times / over` times as fast as recorded.
    ///
    /// # Errors
    /// When one of them is zero.
    pub fn new(times: u32, over: u32) -> Result<Speed, String> {
        if times == 0 || over == 0 {
            return Err("a speed is larger than zero, such as 2 or 0.5".into());
        }
        Ok(Speed { times, over })
    }

    /// Reads a decimal number such as `2`, `0.5` or `1.25`, with at most 6 decimals.
    ///
    /// # Errors
    /// Says what would be right.
    pub fn parse(text: &str) -> Result<Speed, String> {
        let wrong = || {
            format!(
                "\"{text}\" is not a speed such as 2 or 0.5: at most 6 decimals, and at most 4294967295 without the \
                 point"
            )
        };
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(decimals) || decimals.len() > 6 || text.ends_with('.') {
            return Err(wrong());
        }
        let over = 10u32.pow(decimals.len() as u32);
        let whole: u32 = whole.parse().map_err(|_| wrong())?;
        let part: u32 = if decimals.is_empty() { 0 } else { decimals.parse().map_err(|_| wrong())? };
        let times = whole.checked_mul(over).and_then(|t| t.checked_add(part)).ok_or_else(wrong)?;
        Speed::new(times, over)
    }

    pub(super) fn apply(self, time: u64) -> Option<u64> {
        u64::try_from(u128::from(time) * u128::from(self.over) / u128::from(self.times)).ok()
    }
}

/// One request to the device and its time: 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimedIo {
    /// When, from the first.
    pub time: Ns,
    /// First block of 4 KiB.
    pub block: u32,
    /// Blocks; 0 for a flush.
    pub blocks: u16,
    /// What to do.
    pub kind: IoKind,
    pub(super) flags: u8,
}

impl TimedIo {
    pub(super) const FUA: u8 = 1;
    pub(super) const PREFLUSH: u8 = 2;
    pub(super) const PARTIAL_FIRST: u8 = 4;
    pub(super) const PARTIAL_LAST: u8 = 8;
    pub(super) const FOLDED: u8 = 16;
    pub(super) const CONTINUED: u8 = 32;

    /// The request as streams give them.
    pub fn io(&self) -> Io {
        Io { block: self.block, blocks: self.blocks, kind: self.kind, fua: self.fua() }
    }

    /// Force unit access.
    pub fn fua(&self) -> bool {
        self.flags & Self::FUA != 0
    }

    /// A flush is to be made before this write.
    pub fn preflush(&self) -> bool {
        self.flags & Self::PREFLUSH != 0
    }

    /// The first block is written in part only: it has to be read first.
    pub fn partial_first(&self) -> bool {
        self.flags & Self::PARTIAL_FIRST != 0
    }

    /// The last block is written in part only: it has to be read first. With a single block it may be the same one.
    pub fn partial_last(&self) -> bool {
        self.flags & Self::PARTIAL_LAST != 0
    }

    /// The address was beyond the device.
    pub fn folded(&self) -> bool {
        self.flags & Self::FOLDED != 0
    }

    /// This is a later piece of a request that was split; it belongs to the piece before.
    pub fn continued(&self) -> bool {
        self.flags & Self::CONTINUED != 0
    }
}

impl fmt::Debug for TimedIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {}+{} flags {:02x}", self.time, self.kind, self.block, self.blocks, self.flags)
    }
}

/// Counts of the preparation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Prepared {
    /// Requests of the trace.
    pub requests: u64,
    /// Requests to the device.
    pub ios: u64,
    /// Requests that were split because they were too long, or because folding put their end at the device's beginning.
    pub split: u64,
    /// Requests beyond the device that were folded onto it.
    pub folded: u64,
    /// Reads that were rounded outwards to whole blocks.
    pub rounded_reads: u64,
    /// Writes whose first or last block is partial: the device (or the host) has to read, modify and write.
    pub partial_writes: u64,
    /// Such blocks.
    pub partial_blocks: u64,
    /// Trims that were rounded inwards.
    pub rounded_trims: u64,
    /// Trims that contain no whole block and were left out.
    pub dropped_trims: u64,
    /// Trims longer than the device that were shortened to it (with [`super::Fit::Fold`]).
    pub shortened_trims: u64,
    /// Pauses that were cut.
    pub cut_pauses: u64,
    /// Recorded time that was cut out of pauses.
    pub cut_time: Ns,
    /// Requests that shared the time of another and got a time of their own.
    pub spread: u64,
    /// The most time over which they were spread.
    pub spread_over: Ns,
    /// Time of the last request.
    pub end: Ns,
}

impl Prepared {
    /// A note that the trace differs from the recorded one, if it does.
    pub fn altered(&self) -> Option<String> {
        let text = "lie beyond the device and were FOLDED onto it: different blocks of the trace became one";
        (self.folded > 0).then(|| format!("{} of {} requests {text}", self.folded, self.requests))
    }

    /// Further notes for the reader of a result.
    pub fn warnings(&self) -> Vec<String> {
        let mut list = Vec::new();
        let mut note = |n: u64, text: &str| {
            if n > 0 {
                list.push(format!("{n} of {} requests {text}", self.requests));
            }
        };
        note(self.partial_writes, "write parts of blocks: each such block has to be read first");
        note(self.rounded_reads, "read parts of blocks and were rounded outwards to 4 KiB");
        note(self.rounded_trims + self.dropped_trims, "discard parts of blocks and were rounded inwards or left out");
        note(self.shortened_trims, "discard more than the device and were shortened to it");
        if self.spread > 0 {
            list.push(format!(
                "{} of {} requests had the time of the one before and were SPREAD evenly until the next time, over at \
                 most {}: that they came at even distances is an assumption",
                self.spread, self.requests, self.spread_over
            ));
        }
        if self.cut_pauses > 0 {
            list.push(format!("{} pauses were cut by {} in all", self.cut_pauses, self.cut_time));
        }
        list
    }
}

/// Runs of ones.
pub(super) fn ranges(bits: &FixedBitSet) -> Vec<(u32, u32)> {
    let mut list: Vec<(u32, u32)> = Vec::new();
    for block in bits.ones().map(|block| block as u32) {
        match list.last_mut() {
            Some((first, blocks)) if *first + *blocks == block => *blocks += 1,
            _ => list.push((block, 1)),
        }
    }
    list
}

/// Spreads requests that share a time evenly until the next time, but at most over `most`. Pieces of one request stay
/// together. Returns how many got another time.
pub(super) fn spread(ios: &mut [TimedIo], most: Ns) -> u64 {
    let (mut from, mut moved) = (0, 0);
    while let Some(first) = ios.get(from) {
        let time = first.time;
        let to = from + ios[from..].iter().take_while(|io| io.time == time).count();
        let width = ios.get(to).map_or(most, |next| next.time.saturating_sub(time).min(most));
        let count = ios[from..to].iter().filter(|io| !io.continued()).count() as u128;
        let mut before = 0;
        for (i, io) in ios[from..to].iter_mut().enumerate() {
            before += u128::from(i > 0 && !io.continued());
            io.time = time + Ns((u128::from(width.0) * before / count.max(1)) as u64);
        }
        moved += before as u64;
        from = to;
    }
    moved
}
