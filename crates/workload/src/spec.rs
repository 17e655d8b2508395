// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a stream of requests is to be like, and whether that is possible. Knows nothing of how requests are drawn.

use crate::IoKind;
use crate::dist::Zone;

/// Which kinds of requests a stream makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kinds {
    /// A single kind; not [`IoKind::Flush`].
    Only(IoKind),
    /// Reads and writes, each request drawn anew with this share of reads in percent (0 to 100).
    Mix(u8),
    /// Every place is trimmed and then written with the same length.
    TrimWrite,
}

/// How long requests are, in blocks of 4 KiB.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sizes {
    /// Always this many, at least 1.
    Fixed(u16),
    /// Evenly among the multiples of `min` from `min` to `max`; `min` at least 1.
    Range {
        /// Shortest.
        min: u16,
        /// Longest.
        max: u16,
    },
    /// Lengths with weights; at least one weight must not be zero, and no length with a weight may be zero.
    Split(Vec<(u16, u32)>),
}

impl Sizes {
    /// Shortest length that can be drawn; 0 when the choice is not valid.
    pub fn min(&self) -> u16 {
        match self {
            Sizes::Fixed(n) => *n,
            Sizes::Range { min, max } if min <= max => *min,
            Sizes::Range { .. } => 0,
            Sizes::Split(list) => list.iter().filter(|e| e.1 > 0).map(|e| e.0).min().unwrap_or(0),
        }
    }
}

/// Where requests begin. Random places are multiples of the kind's shortest length.
#[derive(Clone, PartialEq, Debug)]
pub enum Offsets {
    /// Ascending; begins again at the start after the end.
    Sequential,
    /// Any place, with replacement (fio `norandommap`).
    Uniform,
    /// Each place once per pass, every pass in a new order (fio's random map). Kinds with the same shortest length
    /// share the passes, as reads and writes do in fio.
    Once,
    /// Ranks by Zipf's law with this exponent (above 0, at most 10), scattered over the file.
    Zipf(f64),
    /// fio's `pareto:h` with h in (0, 1), scattered over the file.
    Pareto(f64),
    /// Zones with shares of accesses and of the file; 1 to 256 zones, both shares sum to 100.
    Zoned(Vec<Zone>),
}

/// Zones of sequential requests: only the beginning of each is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stride {
    /// Blocks after which the next zone begins, at least 1. The last request may go beyond.
    pub used: u32,
    /// Blocks from the start of one zone to that of the next.
    pub step: u32,
}

/// When what was written is read back: after as many blocks of requests, after as many writes, and at the end. Both at
/// least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadBack {
    /// Blocks of requests of any kind, without those read back.
    pub blocks: u64,
    /// Writes.
    pub writes: u64,
}

/// Everything about a stream but its seed. Arrays are indexed by kind: read, write, trim.
#[derive(Clone, PartialEq, Debug)]
pub struct StreamSpec {
    /// First logical block of the region.
    pub start_block: u32,
    /// Length of the region in blocks, at least the shortest request.
    pub blocks: u32,
    /// Kinds of requests.
    pub kinds: Kinds,
    /// Lengths of requests.
    pub sizes: [Sizes; 3],
    /// Places of requests.
    pub offsets: [Offsets; 3],
    /// Share of the requests placed by `offsets`, in percent; the others follow their kind's last request.
    pub random_percent: [u8; 3],
    /// Requests from one random place on, at least 1 (fio `rw=randread:N`).
    pub run: u32,
    /// Blocks left out after each sequential request (fio `rw=read:N`); below zero it goes back by as many, and at the
    /// start on from the end.
    pub skip_blocks: i64,
    /// Zones that sequential requests go through (fio `zonemode=strided`).
    pub stride: Option<Stride>,
    /// When what was written is read back, in the order in which it was written (fio `verify`).
    pub read_back: Option<ReadBack>,
    /// A flush follows every so many writes; two independent counts (fio `fsync`, `fdatasync`), 0 for none.
    pub flush_every: [u32; 2],
    /// Writes carry FUA.
    pub fua: bool,
    /// The stream ends once this many blocks were requested; `None` = never.
    pub limit_blocks: Option<u64>,
    /// A stream that ends asks for one flush at its end.
    pub end_flush: bool,
}

impl StreamSpec {
    /// Requests of one kind, length and order over a region, without end.
    pub fn plain(kind: IoKind, start_block: u32, blocks: u32, blocks_per_io: u16, offsets: Offsets) -> StreamSpec {
        StreamSpec {
            start_block,
            blocks,
            kinds: Kinds::Only(kind),
            sizes: std::array::from_fn(|_| Sizes::Fixed(blocks_per_io)),
            offsets: std::array::from_fn(|_| offsets.clone()),
            random_percent: [100; 3],
            run: 1,
            skip_blocks: 0,
            stride: None,
            read_back: None,
            flush_every: [0; 2],
            fua: false,
            limit_blocks: None,
            end_flush: false,
        }
    }
}

/// Why a [`StreamSpec`] cannot be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamError {
    /// No blocks.
    #[error("the region has no blocks")]
    EmptyRegion,
    /// The region does not fit into 32-bit block numbers.
    #[error("the region ends beyond the last block number")]
    RegionTooFar,
    /// A length of zero, a range from high to low or a split without weights.
    #[error("a request length is zero or its range is empty")]
    BadSize,
    /// The shortest request does not fit into the region.
    #[error("the shortest request is longer than the region")]
    SizeBeyondRegion,
    /// A percentage above 100.
    #[error("a percentage is above 100")]
    BadPercent,
    /// Flush cannot be the only kind.
    #[error("a stream cannot consist of flushes")]
    OnlyFlushes,
    /// Zipf exponent outside (0, 10].
    #[error("the Zipf exponent must be above 0 and at most 10")]
    BadZipf,
    /// Pareto parameter outside (0, 1).
    #[error("the Pareto parameter must lie between 0 and 1")]
    BadPareto,
    /// Zones whose shares do not sum to 100, or not 1 to 256 zones.
    #[error("there must be 1 to 256 zones whose shares of accesses and of the file sum to 100")]
    BadZones,
    /// A run of zero requests.
    #[error("a run must have at least one request")]
    ZeroRun,
    /// A zone of no blocks, or reading back after no blocks or writes.
    #[error("a zone, or what is read back at a time, is empty")]
    ZeroStep,
}

/// Whether kind number `i` is ever made, with a length and place of its own.
pub(crate) fn used(kinds: Kinds, i: usize) -> bool {
    match kinds {
        Kinds::Only(kind) => kind as usize == i,
        Kinds::Mix(_) => i < 2,
        Kinds::TrimWrite => i == 2,
    }
}

pub(crate) fn check(spec: &StreamSpec) -> Result<(), StreamError> {
    if spec.blocks == 0 {
        return Err(StreamError::EmptyRegion);
    }
    if u64::from(spec.start_block) + u64::from(spec.blocks) > 1 << 32 {
        return Err(StreamError::RegionTooFar);
    }
    if spec.run == 0 {
        return Err(StreamError::ZeroRun);
    }
    if spec.stride.is_some_and(|stride| stride.used == 0)
        || spec.read_back.is_some_and(|b| b.blocks == 0 || b.writes == 0)
    {
        return Err(StreamError::ZeroStep);
    }
    match spec.kinds {
        Kinds::Only(IoKind::Flush) => return Err(StreamError::OnlyFlushes),
        Kinds::Mix(reads) if reads > 100 => return Err(StreamError::BadPercent),
        _ => {}
    }
    for i in (0..3).filter(|&i| used(spec.kinds, i)) {
        let min = spec.sizes[i].min();
        if min == 0 {
            return Err(StreamError::BadSize);
        }
        if u32::from(min) > spec.blocks {
            return Err(StreamError::SizeBeyondRegion);
        }
        if spec.random_percent[i] > 100 {
            return Err(StreamError::BadPercent);
        }
        match &spec.offsets[i] {
            Offsets::Zipf(theta) if !(*theta > 0.0 && *theta <= 10.0) => return Err(StreamError::BadZipf),
            Offsets::Pareto(h) if !(*h > 0.0 && *h < 1.0) => return Err(StreamError::BadPareto),
            Offsets::Zoned(zones) => {
                let accesses: u32 = zones.iter().map(|z| u32::from(z.access_percent)).sum();
                let size: u32 = zones.iter().map(|z| u32::from(z.size_percent)).sum();
                if zones.len() > 256 || accesses != 100 || size != 100 {
                    return Err(StreamError::BadZones);
                }
            }
            _ => {}
        }
    }
    Ok(())
}
