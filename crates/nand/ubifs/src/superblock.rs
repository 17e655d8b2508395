// SPDX-License-Identifier: MIT OR Apache-2.0
//! The superblock: constant sizes, and the areas of the volume, which depend on them.
//!
//! Facts: Linux `fs/ubifs/sb.c` (`validate_sb`, `ubifs_read_superblock`).

use crate::key::NameHash;
use crate::lebs::LebSizes;
use crate::node::{self, BRANCH_BYTES, INDEX_BYTES, NodeType, SUPERBLOCK_BYTES, le16, le32, le64};

/// Block of the superblock.
pub(crate) const SUPERBLOCK_LEB: u32 = 0;
/// First of the two master blocks.
pub(crate) const MASTER_LEB: u32 = 1;
/// First block of the log.
pub(crate) const LOG_LEB: u32 = 3;
/// Newest supported format.
pub(crate) const NEWEST_FORMAT: u32 = 5;

const FLAG_BIG_LPT: u32 = 2;
const FLAG_SPACE_FIXUP: u32 = 4;
const FLAG_DOUBLE_HASH: u32 = 8;
const FLAG_ENCRYPTION: u32 = 0x10;
const FLAG_AUTHENTICATION: u32 = 0x20;
const KNOWN_FLAGS: u32 = FLAG_BIG_LPT | FLAG_SPACE_FIXUP | FLAG_DOUBLE_HASH | FLAG_ENCRYPTION | FLAG_AUTHENTICATION;

/// Contents of the superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Hash of names.
    pub hash: NameHash,
    /// The properties tree has numbered nodes and a list of saved blocks.
    pub big_lpt: bool,
    /// The first mount with write access has to rewrite blocks.
    pub space_fixup: bool,
    /// Entries carry a second, random hash.
    pub double_hash: bool,
    /// Smallest unit of writing in bytes.
    pub min_io_bytes: u32,
    /// Bytes of a logical erase block.
    pub leb_bytes: u32,
    /// Blocks in use: a mount lets a smaller volume grow, as far as there are blocks.
    pub leb_count: u32,
    /// Blocks in use as on flash.
    pub written_leb_count: u32,
    /// Blocks that the volume may grow to.
    pub max_leb_count: u32,
    /// Most bytes of journal.
    pub max_bud_bytes: u64,
    /// Blocks of the log.
    pub log_lebs: u32,
    /// Blocks of the properties tree.
    pub lpt_lebs: u32,
    /// Blocks of the orphan area.
    pub orphan_lebs: u32,
    /// Journal heads: garbage collection, base, data.
    pub journal_heads: u32,
    /// Most children of an index node.
    pub fanout: u32,
    /// Number of saved blocks in that list.
    pub lsave_count: u32,
    /// Format version.
    pub format: u32,
    /// Compression for new files, as on flash.
    pub compression: u16,
    /// Bytes kept for the superuser.
    pub reserved_bytes: u64,
    /// Granularity of times in nanoseconds.
    pub time_granularity_ns: u32,
}

impl Superblock {
    /// Parses the first 4096 bytes of block 0 of a volume.
    pub(crate) fn parse(bytes: &[u8], volume: LebSizes) -> Result<Superblock, Refusal> {
        let LebSizes { leb_bytes, leb_count, min_io_bytes } = volume;
        let bad = |what: String| Refusal::Bad(what);
        let header = node::check(bytes, 8).map_err(|e| bad(e.to_string()))?;
        if header.kind != NodeType::Superblock {
            return Err(bad(format!("{}, expected the superblock", header.kind.one())));
        }
        debug_assert_eq!(header.len, SUPERBLOCK_BYTES);
        let format = le32(bytes, 80);
        if format > NEWEST_FORMAT && le32(bytes, 124) > 0 {
            return Err(Refusal::Unsupported(format!("format {format}, this reader knows up to {NEWEST_FORMAT}")));
        }
        if format < 3 {
            return Err(bad(format!("format {format}, which no released version of UBIFS wrote")));
        }
        if bytes[27] != 0 {
            return Err(Refusal::Unsupported(format!("keys of format {}, only the simple format 0 exists", bytes[27])));
        }
        let hash = match bytes[26] {
            0 => NameHash::R5,
            1 => NameHash::Test,
            other => return Err(bad(format!("hash {other} of names, expected 0 (R5) or 1 (test)"))),
        };
        let flags = le32(bytes, 28);
        if flags & FLAG_ENCRYPTION != 0 {
            return Err(Refusal::Unsupported("the volume is encrypted (superblock flag 0x10)".to_owned()));
        }
        if flags & FLAG_AUTHENTICATION != 0 {
            return Err(Refusal::Unsupported("the volume is authenticated (superblock flag 0x20)".to_owned()));
        }
        if flags & !KNOWN_FLAGS & !1 != 0 {
            return Err(Refusal::Unsupported(format!("superblock flags {flags:#x}, known are {KNOWN_FLAGS:#x}")));
        }
        let mut sb = Superblock {
            hash,
            big_lpt: flags & FLAG_BIG_LPT != 0,
            space_fixup: flags & FLAG_SPACE_FIXUP != 0,
            double_hash: flags & FLAG_DOUBLE_HASH != 0,
            min_io_bytes: le32(bytes, 32),
            leb_bytes: le32(bytes, 36),
            leb_count: le32(bytes, 40),
            written_leb_count: le32(bytes, 40),
            max_leb_count: le32(bytes, 44),
            max_bud_bytes: le64(bytes, 48),
            log_lebs: le32(bytes, 56),
            lpt_lebs: le32(bytes, 60),
            orphan_lebs: le32(bytes, 64),
            journal_heads: le32(bytes, 68).saturating_add(2),
            fanout: le32(bytes, 72),
            lsave_count: le32(bytes, 76),
            format,
            compression: le16(bytes, 84),
            reserved_bytes: le64(bytes, 96),
            time_granularity_ns: le32(bytes, 104),
        };
        if sb.written_leb_count == 0 || sb.written_leb_count > leb_count {
            return Err(bad(format!("{} erase blocks, the volume has {leb_count}", sb.written_leb_count)));
        }
        // A tool writes as few blocks as it used. As in Linux, the volume grows before its sizes are checked.
        sb.leb_count = sb.max_leb_count.min(leb_count).max(sb.written_leb_count);
        sb.validate(leb_bytes, min_io_bytes).map_err(bad)?;
        Ok(sb)
    }

    /// Checks the sizes of the volume after it has grown.
    fn validate(&self, leb_bytes: u32, min_io: u32) -> Result<(), String> {
        let want = |ok: bool, what: &dyn Fn() -> String| if ok { Ok(()) } else { Err(what()) };
        want(self.min_io_bytes == min_io, &|| {
            format!("units of writing of {} bytes, the volume has {min_io}", self.min_io_bytes)
        })?;
        want(min_io.is_power_of_two() && min_io >= 8, &|| {
            format!("units of writing of {min_io} bytes, expected a power of two from 8")
        })?;
        want(self.leb_bytes == leb_bytes, &|| {
            format!("erase blocks of {} bytes, the volume has {leb_bytes}", self.leb_bytes)
        })?;
        want(leb_bytes >= 15 * 1024 && leb_bytes.is_multiple_of(min_io) && leb_bytes <= 1 << 30, &|| {
            format!("erase blocks of {leb_bytes} bytes, expected a multiple of {min_io} from 15 KiB to 1 GiB")
        })?;
        want(self.max_leb_count >= self.written_leb_count && self.max_leb_count <= 1 << 24, &|| {
            format!("growth to {} blocks, expected {} to 2^24", self.max_leb_count, self.written_leb_count)
        })?;
        want(self.log_lebs >= 2, &|| format!("a log of {} blocks, expected at least 2", self.log_lebs))?;
        want(self.lpt_lebs >= 2, &|| format!("a properties tree of {} blocks, at least 2", self.lpt_lebs))?;
        want(self.orphan_lebs >= 1, &|| "no block for orphans".to_owned())?;
        let fixed = [self.log_lebs, self.lpt_lebs, self.orphan_lebs].iter().map(|&n| u64::from(n)).sum::<u64>() + 3;
        // Linux requires some more for writing; one is enough for reading.
        want(fixed < u64::from(self.leb_count), &|| {
            format!("{fixed} blocks besides the main area leave none of {}", self.leb_count)
        })?;
        let most = (leb_bytes - INDEX_BYTES) / BRANCH_BYTES;
        want((3..=most).contains(&self.fanout), &|| format!("a fanout of {}, expected 3 to {most}", self.fanout))?;
        want(self.journal_heads == 3, &|| format!("{} journal heads, expected 3", self.journal_heads))?;
        let main_bytes = (u64::from(self.leb_count) - fixed) * u64::from(leb_bytes);
        want((3 * u64::from(leb_bytes)..=main_bytes).contains(&self.max_bud_bytes), &|| {
            format!("{} bytes of journal, expected 3 blocks to {main_bytes}", self.max_bud_bytes)
        })?;
        want(self.reserved_bytes <= main_bytes, &|| {
            format!("{} reserved bytes, the main area has {main_bytes}", self.reserved_bytes)
        })?;
        want(self.compression < 4, &|| format!("compression {}, expected 0 to 3", self.compression))?;
        want((1..=1_000_000_000).contains(&self.time_granularity_ns), &|| {
            format!("times in steps of {} ns, expected 1 to 10^9", self.time_granularity_ns)
        })?;
        want(self.format < 5 || self.double_hash, &|| format!("format {} without double hashes", self.format))?;
        let most = (u64::from(self.max_leb_count) - fixed).max(256);
        want(u64::from(self.lsave_count) <= most, &|| {
            format!("a list of {} LEBs to save (lsave), expected at most {most}", self.lsave_count)
        })
    }

    /// First block of the properties tree.
    pub fn lpt_first(&self) -> u32 {
        LOG_LEB + self.log_lebs
    }

    /// First block of the orphan area.
    pub fn orphans_first(&self) -> u32 {
        self.lpt_first() + self.lpt_lebs
    }

    /// First block of the main area, which extends to the last block in use.
    pub fn main_first(&self) -> u32 {
        self.orphans_first() + self.orphan_lebs
    }

    /// Blocks of the main area.
    pub(crate) fn main_lebs(&self) -> u32 {
        self.leb_count - self.main_first()
    }

    /// The log block after `lnum`; the log is a ring.
    pub(crate) fn next_log(&self, lnum: u32) -> u32 {
        if lnum + 1 >= self.lpt_first() { LOG_LEB } else { lnum + 1 }
    }

    /// Whether `len` bytes at `offset` of `lnum` lie within the main area.
    pub(crate) fn in_main(&self, lnum: u32, offset: u32, len: u32) -> bool {
        (self.main_first()..self.leb_count).contains(&lnum)
            && u64::from(offset) + u64::from(len) <= u64::from(self.leb_bytes)
    }
}

/// Why a superblock is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Bad(String),
    Unsupported(String),
}
